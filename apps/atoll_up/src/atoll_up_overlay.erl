%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters whose nodes run an overlay: how they are started, what their nodes
%% are told, and when they are settled.
%%
%% The first nodes are the contacts of all. A strategy that needs data gets what fits
%% the nodes, as in the simulator: `star' has the contacts for servers, `static' is a
%% ring with chords, and `cliques' stand in a ring, unless groups say which they are.
-module(atoll_up_overlay).

-export([new/2, of_script/1, cluster/1, told/3, tell/3, settle/1, reach/1]).

-export_type([overlay/0, strategy/0, told/0]).

-type strategy() :: {Name :: atom(), module(), atoll_options:options()}.
%% One of ours by its name, or a module of the user's own, with its options.

-type overlay() :: #{
    strategy := strategy(),
    %% How many of the first nodes are contacts.
    contacts := pos_integer(),
    %% Options of the other parts: keys of the application atoll.
    parts := #{atom() => map() | off},
    %% Whether groups will say which the cliques are; not unless told.
    groups => boolean()
}.

-type told() :: #{node() => [{module(), Function :: atom(), Args :: [term()]}]}.
%% What is called on a node that has started.

-define(CONTACTS, 3).
%% All that wait are told at once, but the machine is shared.
-define(SETTLE_MS, 60000).
%% Beside the time that a node takes to wait.
-define(CALL_MS, 10000).
%% What the ring's chords are drawn from.
-define(SEED, 1).

%% @doc An overlay with that strategy, and options of its other parts.
-spec new(strategy(), #{atom() => map() | off}) -> overlay().
new(Strategy, Parts) ->
    #{strategy => Strategy, contacts => ?CONTACTS, parts => Parts}.

%% @doc The overlay of a script's cluster. What the script leaves open is as the
%% application has it.
-spec of_script(atoll_sim_script:script()) -> overlay().
of_script(#{cluster := #{strategy := Name, options := Options, contacts := Contacts} = Cluster, steps := Steps}) ->
    {ok, Module} = atoll_strategy:module(Name),
    {ok, #{cluster := Default}} = atoll_sim_script:check([]),
    Parts = maps:from_list([
        {Key, Value}
     || {Part, Key} <- [{detector, detector}, {broadcast, broadcast}, {roster, roster}, {discovery, beacons}, {directory, directory}],
        #{Part := Value} <- [Cluster],
        Value =/= map_get(Part, Default)
    ]),
    HasGroups = lists:any(fun({_, Step, _}) -> atoll_sim_step:is_about(group, Step) end, Steps),
    (new({Name, Module, Options}, Parts))#{contacts := Contacts, groups => HasGroups}.

%% @doc The options of atoll_cluster for nodes that run it, or none.
-spec cluster(overlay() | none) -> #{atom() => term()}.
cluster(none) ->
    #{apps => [atoll], probe => {atoll, status, []}};
cluster(Overlay) ->
    (cluster(none))#{connect_all => false, args => fun(Nodes) -> args(Overlay, Nodes) end}.

args(#{strategy := {Name, Module, Options}, parts := Parts} = Overlay, Nodes) ->
    Contacts = contacts(Overlay, Nodes),
    Environment = [
        {overlay, Name},
        {overlay_options, strategy_options(Module, Options, Contacts)},
        {contacts, [Contact || Contact <- Contacts, not is_told(Module)]}
        | maps:to_list(Parts)
    ],
    lists:append([
        ["-atoll", atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))]
     || {Key, Value} <- Environment
    ]).

strategy_options(atoll_star, Options, Contacts) -> maps:merge(#{servers => Contacts}, Options);
strategy_options(_Module, Options, _Contacts) -> Options.

contacts(#{contacts := Count}, Nodes) -> lists:sublist(Nodes, Count).

%% Who is told its neighbours hears of the contacts after that: one that it heard of
%% first it would be linked with, too.
is_told(Module) -> Module =:= atoll_static orelse Module =:= atoll_cliques.

%% @doc What is called on each of these nodes when it has started. Groups, if there
%% are some, say themselves which the cliques are.
-spec told(overlay(), HasGroups :: boolean(), [node(), ...]) -> told().
told(#{strategy := {_, Module, _}} = Overlay, HasGroups, Nodes) ->
    Terms =
        case Module =:= atoll_cliques andalso HasGroups of
            true -> #{};
            false -> atoll_sim_cluster:told(Module, Nodes, ?SEED)
        end,
    Contacts = [{atoll_overlay, contacts, [contacts(Overlay, Nodes)]}],
    maps:from_list([
        {Node, [{atoll, tell, [Term]} || Term <- maps:get(Node, Terms, [])] ++ Contacts}
     || Node <- Nodes, is_told(Module)
    ]).

%% @doc Tells the nodes of a cluster that has just started.
-spec tell(atoll_cluster:cluster(), overlay(), HasGroups :: boolean()) -> ok | {error, unicode:chardata()}.
tell(Cluster, Overlay, HasGroups) ->
    Told = told(Overlay, HasGroups, atoll_cluster:nodes(Cluster)),
    try
        maps:foreach(
            fun(Node, Calls) -> [ok = atoll_cluster:call(Cluster, Node, M, F, A) || {M, F, A} <- Calls] end,
            Told
        )
    catch
        error:Reason -> {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc Waits until every node has a neighbour and knows all nodes.
-spec settle(atoll_cluster:cluster()) -> ok | {error, unicode:chardata()}.
settle(Cluster) ->
    Count = length(atoll_cluster:nodes(Cluster)),
    Asked = atoll_cluster:multicall(
        Cluster, atoll_up_ready, await_settled, [Count, ?SETTLE_MS], ?SETTLE_MS + ?CALL_MS
    ),
    case [Late || {_, Answer} = Late <- Asked, Answer =/= {ok, ok}] of
        [] ->
            ok;
        [{Node, {ok, {late, #{members := Members, neighbours := Neighbours}}}} | _] = Late ->
            {error, io_lib:format(
                "After ~b s ~b of ~b nodes are not settled; ~ts has ~b neighbours and knows ~b nodes.",
                [?SETTLE_MS div 1000, length(Late), Count, Node, Neighbours, Members]
            )};
        [{_, {error, Reason}} | _] ->
            {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc Waits until every node knows how to reach all others.
-spec reach(atoll_cluster:cluster()) -> ok | {error, unicode:chardata()}.
reach(Cluster) ->
    Count = length(atoll_cluster:nodes(Cluster)),
    Asked = atoll_cluster:multicall(
        Cluster, atoll_up_ready, await_reach, [Count - 1, ?SETTLE_MS], ?SETTLE_MS + ?CALL_MS
    ),
    case [Late || {_, Answer} = Late <- Asked, Answer =/= {ok, ok}] of
        [] ->
            ok;
        [{Node, {ok, {late, Reaches}}} | _] ->
            {error, io_lib:format("After ~b s ~ts knows how to reach ~b of ~b nodes.", [
                ?SETTLE_MS div 1000, Node, Reaches, Count - 1
            ])};
        [{_, {error, Reason}} | _] ->
            {error, atoll_cluster:format_error(Reason)}
    end.
