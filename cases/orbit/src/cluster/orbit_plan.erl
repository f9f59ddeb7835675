%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is where: the nodes of a run, their groups, the ways between them, and the parts of the
%% table, as data. It is what becomes of it when nodes are lost, too.
%%
%% The nodes are cut into home groups, in the order in which they are given; `groups' and `ring' are
%% {@link atoll_topology:star/2} and {@link atoll_topology:ring/2} with one gateway to a group. Nine
%% nodes in groups of three, gateways in capitals:
%% ```
%% mesh    A b c d e f g h i                      one group, and no gateway
%% groups  A b c    D e f    G h i    A D G
%% ring    A b c G  D e f A  G h i D
%% '''
%% Nodes talk with each other inside a group, and only there. To any other node the way goes over the
%% next hop on a shortest way, and backwards the ways to the master's node, the first, are the tree
%% along which the run is started, told and ended.
%%
%% Each node has as many parts as there are workers on a node, or none if it is a gateway and those are
%% kept apart. When a node is lost, the members of its home group that are left have the places in its
%% groups: who is first takes the first one, and so is the gateway; who comes back is the last. The
%% parts of the lost one go to those of its home group that have the fewest, and stay there.
-module(orbit_plan).

-export([new/4, without/2, back/2, present/1, absent/2, groups/1, neighbours/2, hops/2, above/2, below/2]).
-export([parts/1, parts/2, relays/2, format_error/1]).

-export_type([plan/0, mode/0, options/0, reason/0]).

-type mode() :: par | mesh | groups | ring.

-type options() :: #{
    %% means something to groups and ring alone
    group_size := pos_integer(),
    workers := pos_integer(),
    %% gateways have no workers
    separate_submasters := boolean(),
    %% what the names of groups begin with
    prefix := atom()
}.

-type plan() :: #{
    %% those that are there, the most senior first
    present := [node(), ...],
    %% as they were at first, in order
    homes := [[node(), ...], ...],
    groups := [{s_group:name() | none, [node(), ...]}, ...],
    workers := pos_integer(),
    separate := boolean(),
    where := #{orbit_part:id() => node()}
}.

-type reason() :: {group_lost, [node()]} | atoll_topology:error().

%% @doc Lays a run out.
-spec new(mode(), [node(), ...], pos_integer(), options()) -> {ok, plan()} | {error, reason()}.
new(Mode, Nodes, Size, #{workers := Workers, separate_submasters := Separate, prefix := Prefix}) ->
    case laid_out(Mode, Nodes, Size, Prefix) of
        {ok, Homes, Groups} ->
            Plan = #{present => Nodes, homes => Homes, groups => Groups, workers => Workers, separate => Separate, where => #{}},
            At = [Node || Home <- Homes, Node <- workers(Home, Plan), _ <- lists:seq(1, Workers)],
            {ok, Plan#{where := maps:from_list(lists:zip(lists:seq(0, length(At) - 1), At))}};
        {error, _} = Error -> Error
    end.

laid_out(Mode, Nodes, _, _) when Mode =:= par; Mode =:= mesh ->
    {ok, [Nodes], [{none, Nodes}]};
laid_out(Mode, Nodes, Size, Prefix) ->
    Options = #{group_size => Size, prefix => Prefix},
    case atoll_topology:star(Nodes, Options) of
        {ok, Star} ->
            {ok, Topology} = case Mode of groups -> {ok, Star}; ring -> atoll_topology:ring(Nodes, Options) end,
            Home = fun(Node) -> {ok, Name} = atoll_topology:home(Node, Star), Name end,
            Homes = [[Node || Node <- Nodes, Home(Node) =:= Name] || {Name, _} <- atoll_topology:groups(Star)],
            {ok, [Members || [_ | _] = Members <- Homes], atoll_topology:groups(Topology)};
        {error, _} = Error -> Error
    end.

%% Those of a home group that may have parts; if nobody else is left, the gateway.
workers([_, _ | _] = Home, #{separate := true, homes := [_, _ | _]}) -> tl(Home);
workers(Home, _) -> Home.

%% @doc Without these nodes.
-spec without([node()], plan()) -> {ok, plan()} | {error, reason()}.
without(Lost, #{present := Present, homes := Homes, where := Where} = Plan) ->
    Left = Plan#{present := Present -- Lost},
    case [Home || Home <- Homes, left(Home, Left) =:= []] of
        [] -> {ok, Left#{where := lists:foldl(fun(Part, W) -> moved(Part, Lost, W, Left) end, Where, lists:sort(maps:keys(Where)))}};
        [Home | _] -> {error, {group_lost, Home}}
    end.

left(Home, #{present := Present}) -> [Node || Node <- Present, lists:member(Node, Home)].

moved(Part, Lost, Where, #{homes := Homes} = Plan) ->
    #{Part := Node} = Where,
    case lists:member(Node, Lost) of
        true ->
            [Home] = [Home || Home <- Homes, lists:member(Node, Home)],
            {_, _, To} = lists:min([{length([Here || Here <- maps:values(Where), Here =:= N]), I, N}
                                    || {I, N} <- numbered(workers(left(Home, Plan), Plan))]),
            Where#{Part := To};
        false -> Where
    end.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% @doc With a node that was lost. It has no parts for now.
-spec back(node(), plan()) -> plan().
back(Node, #{present := Present} = Plan) ->
    case lists:member(Node, Present) of
        true -> Plan;
        false -> Plan#{present := Present ++ [Node]}
    end.

%% @doc The nodes that are there, the master's first.
-spec present(plan()) -> [node(), ...].
present(#{present := Present}) -> Present.

%% @doc The lost nodes that this node looks for: its home group's gateway does.
-spec absent(node(), plan()) -> [node()].
absent(Node, #{homes := Homes, present := Present} = Plan) ->
    lists:append([Home -- Present || Home <- Homes, hd(left(Home, Plan)) =:= Node]).

%% @doc The groups now, each with one first that has been in it: the most senior of those whose home
%% it is, or of all gateways.
-spec groups(plan()) -> [{s_group:name() | none, [node(), ...]}, ...].
groups(#{groups := Groups, homes := Homes, present := Present} = Plan) ->
    In = maps:from_list(lists:append([lists:zip(lists:sublist(Home, length(left(Home, Plan))), left(Home, Plan)) || Home <- Homes])),
    [begin
         Now = maps:values(maps:with(Members, In)),
         {Name, [Node || Node <- left(Home, Plan), lists:member(Node, Now)] ++ [Node || Node <- Present -- Home, lists:member(Node, Now)]}
     end || {{Name, Members}, Home} <- lists:zip(Groups, Homes ++ [[] || length(Groups) > length(Homes)])].

%% @doc With whom a node is to be connected.
-spec neighbours(node(), plan()) -> [node()].
neighbours(Node, Plan) -> near(Node, groups(Plan)).

near(Node, Groups) ->
    lists:usort(lists:append([Members || {_, Members} <- Groups, lists:member(Node, Members)])) -- [Node].

%% @doc For every other node that of the neighbours over which the way goes.
-spec hops(node(), plan()) -> #{node() => node()}.
hops(Node, Plan) ->
    maps:remove(Node, maps:map(fun(_, {_, Hop}) -> Hop end, ways(Node, Plan))).

%% @doc Who is next on the way to the master's node; none there.
-spec above(node(), plan()) -> node() | none.
above(Node, #{present := [First | _]} = Plan) ->
    #{Node := {Before, _}} = ways(First, Plan),
    Before.

%% @doc Those whose way to the master's node has this one next.
-spec below(node(), plan()) -> [node()].
below(Node, #{present := [First | _]} = Plan) ->
    [Other || {Other, {Before, _}} <- lists:sort(maps:to_list(ways(First, Plan))), Before =:= Node].

%% Breadth first: for each node who comes before it, and who first, on the way there.
ways(From, Plan) -> ways([From], groups(Plan), #{From => {none, From}}).

ways([], _, Found) -> Found;
ways([Node | Queue], Groups, Found) ->
    New = [Next || Next <- near(Node, Groups), not is_map_key(Next, Found)],
    Hop = fun(Next) -> case Found of #{Node := {none, _}} -> Next; #{Node := {_, First}} -> First end end,
    ways(Queue ++ New, Groups, maps:merge(Found, maps:from_list([{Next, {Node, Hop(Next)}} || Next <- New]))).

%% @doc How many parts there are.
-spec parts(plan()) -> pos_integer().
parts(#{where := Where}) -> map_size(Where).

%% @doc Those of a node.
-spec parts(node(), plan()) -> [orbit_part:id()].
parts(Node, #{where := Where}) -> lists:sort([Part || {Part, At} <- maps:to_list(Where), At =:= Node]).

%% @doc How many processes hand vertices on there. As many as a node has workers: at the busiest each
%% of them has one to wait for.
-spec relays(node(), plan()) -> non_neg_integer().
relays(Node, #{workers := Workers} = Plan) ->
    case [Name || {Name, Members} <- groups(Plan), lists:member(Node, Members)] of
        [_, _ | _] -> Workers;
        _ -> 0
    end.

%% @doc One plain sentence.
-spec format_error(reason()) -> unicode:chardata().
format_error({group_lost, Nodes}) ->
    ["All nodes of one group were lost during the run: ", lists:join(", ", [atom_to_list(Node) || Node <- Nodes]), "."];
format_error(Reason) ->
    ["The nodes cannot be put in groups: ", atoll_topology:format_error(Reason), "."].
