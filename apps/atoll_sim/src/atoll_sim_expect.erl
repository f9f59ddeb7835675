%% @doc Whether what a fault script expects holds, and the few facts by which two
%% runs are compared: one judge for simulated nodes and for real ones.
%%
%% It is shown who names whom for a neighbour, and what was seen of broadcasts and
%% of verdicts; where that was seen makes no difference to it.
-module(atoll_sim_expect).

-export([new/0, see/4, holds/3, facts/2]).

-export_type([seen/0, was/0, facts/0]).

-record(seen, {
    deliveries = atoll_sim_deliveries:new() :: atoll_sim_deliveries:deliveries(),
    verdicts = atoll_sim_verdicts:new() :: atoll_sim_verdicts:verdicts()
}).

-opaque seen() :: #seen{}.

-type was() :: number() | [term()].
%% The share that it was, or who broke it.

-type facts() :: #{
    %% Nodes that live.
    alive := non_neg_integer(),
    %% The share of them in the largest part, and how many parts there are.
    connected := float(),
    components := non_neg_integer(),
    %% The share of the links that both ends name.
    symmetric := float(),
    %% How many neighbours a node names.
    active_min := non_neg_integer(),
    active_mean := float(),
    active_max := non_neg_integer(),
    %% The share of the broadcasts that reached whom they were owed to.
    delivered := float(),
    %% Lives that were declared dead while they were awake.
    false_deaths := non_neg_integer()
}.

%% @doc Nothing was seen.
-spec new() -> seen().
new() ->
    #seen{}.

%% @doc Takes what a watcher of a world sees, or of nodes what is put in its words.
-spec see(integer(), node() | world, atoll_sim_world:sight(), seen()) -> seen().
see(Now, Where, Sight, #seen{deliveries = Deliveries, verdicts = Verdicts}) ->
    #seen{
        deliveries = atoll_sim_deliveries:see(Now, Where, Sight, Deliveries),
        verdicts = atoll_sim_verdicts:see(Now, Where, Sight, Verdicts)
    }.

%% @doc Whether it holds, with the living nodes linked so; or what it was.
-spec holds(atoll_sim_step:expectation(), atoll_sim_graph:graph(), seen()) -> true | {false, was()}.
holds({connected, Share}, Graph, _Seen) ->
    at_least(Share, atoll_sim_graph:connected(Graph));
holds({delivered, Share}, _Graph, Seen) ->
    at_least(Share, delivered(Seen));
holds(symmetric, Graph, _Seen) ->
    Living = living(Graph),
    nobody([Link || {_, To} = Link <- atoll_sim_graph:one_sided(Graph), is_map_key(To, Living)]);
holds({neighbours, Min, Max}, Graph, _Seen) ->
    Living = living(Graph),
    nobody([
        {Node, Count}
     || {Node, Peers} <- Graph,
        Count <- [length([Peer || Peer <- Peers, is_map_key(Peer, Living)])],
        Count < Min orelse Count > Max
    ]);
holds({no, false_death}, _Graph, #seen{verdicts = Verdicts}) ->
    nobody([Node || {Node, _} <- atoll_sim_verdicts:false_deaths(Verdicts)]).

%% @doc The facts, with the living nodes linked so.
-spec facts(atoll_sim_graph:graph(), seen()) -> facts().
facts(Graph, #seen{verdicts = Verdicts} = Seen) ->
    #{
        nodes := Nodes,
        components := Components,
        connected := Connected,
        symmetric := Symmetric,
        degree_min := Min,
        degree_mean := Mean,
        degree_max := Max
    } = atoll_sim_graph:summary(Graph),
    #{
        alive => Nodes,
        connected => Connected,
        components => Components,
        symmetric => Symmetric,
        active_min => Min,
        active_mean => Mean,
        active_max => Max,
        delivered => delivered(Seen),
        false_deaths => length(atoll_sim_verdicts:false_deaths(Verdicts))
    }.

delivered(#seen{deliveries = Deliveries}) ->
    {Owed, Made} = atoll_sim_deliveries:owed(Deliveries),
    atoll_sim_stats:share(Made, Owed).

living(Graph) ->
    maps:from_keys([Node || {Node, _} <- Graph], []).

at_least(Share, Was) when Was >= Share -> true;
at_least(_Share, Was) -> {false, Was}.

nobody([]) -> true;
nobody(Those) -> {false, Those}.
