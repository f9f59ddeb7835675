%% SPDX-License-Identifier: Apache-2.0
%% @doc Who does what: the tree of submasters over the nodes of a run, and their groups, as data.
%%
%% The nodes take their roles in the order in which they are given: the master's node, the nodes
%% of submasters level by level, and then those of colonies. So who orders the nodes places the
%% roles.
%%
%% Under a tree of degree P the first node has the master and the P submasters of the first level.
%% Every further submaster node has the P submasters of one of the level above it; and each
%% submaster of the last level has about P nodes of colonies. With X levels, that of the colonies
%% included, that takes 1 + P + .. + P^(X-2) nodes for submasters and P^X for colonies; X is the
%% greatest for which there are enough. The formula leaves what is beyond it idle. Here all nodes
%% that are left are colony nodes, dealt out in order and as evenly as can be. In the mode `tl'
%% there are no submasters: all nodes but the first are the master's colony nodes.
%%
%% Thirteen nodes a to m of degree 2 make three levels: a has the master, [1] and [2]; b has [1,1]
%% and [1,2]; c has [2,1] and [2,2]; and of the colony nodes d to m three are below [1,1], three
%% below [1,2], and two below each of the others. Their groups are
%% ```
%% {above,[]}   a b c        the master's: names of [], [1], [2], [1,1] .. [2,2]
%% {last,[1,1]} b d e f      names of colonies 1 to 3, and so on:
%% {last,[1,2]} b g h i      {last,[2,1]} c j k      {last,[2,2]} c l m
%% '''
%% A group `above' is that of a node above the last level and the submasters' nodes below it. A
%% name is in the group that its process shares with the one above it, which calls it by it. A
%% colony node is in one group.
-module(aco_tree).

-export([new/4, place/2, colonies/1, roles/1, groups/1, format_error/1]).

-export_type([mode/0, path/0, id/0, run_id/0, group/0, place/0, tree/0, role/0, reason/0]).

-type mode() :: tl | ml | gr | sr.

%% A submaster by the way to it: [2, 1] is the first one below the second one of the first level.
%% The master is [].
-type path() :: [pos_integer()].

-type id() :: path() | aco_colony:id().

%% In the names of a run's groups and processes, and nowhere else.
-type run_id() :: string().

-type group() :: {above | last, path()}.

-type place() :: #{
    %% where it is started at first, and where it goes on when that is lost
    nodes := [node(), ...],
    %% those that it starts and asks
    below := [id()],
    %% in which it has its name
    group := group()
}.

-type tree() :: #{id() => place()}.

-type role() :: master | submaster | colony.

-type reason() :: {too_few_nodes, Given :: non_neg_integer(), Needed :: pos_integer(), Degree :: pos_integer() | none}.

%% @doc Lays a run out.
-spec new(mode(), [node()], Degree :: pos_integer(), ColoniesPerNode :: pos_integer()) -> {ok, tree()} | {error, reason()}.
new(tl, [Master | [_ | _] = Nodes], _, Each) ->
    {ok, tree([], #{[] => Master}, [{[], Nodes}], 1, Each)};
new(tl, Nodes, _, _) ->
    {error, {too_few_nodes, length(Nodes), 2, none}};
new(_, Nodes, Degree, _) when length(Nodes) < 1 + Degree * Degree ->
    {error, {too_few_nodes, length(Nodes), 1 + Degree * Degree, Degree}};
new(_, Nodes, Degree, Each) ->
    Depth = depth(length(Nodes), Degree, 1),
    Above = lists:append([paths(Length, Degree) || Length <- lists:seq(0, Depth - 1)]),
    {Heads, Rest} = lists:split(length(Above), Nodes),
    Last = paths(Depth, Degree),
    {ok, tree(Above, maps:from_list(lists:zip(Above, Heads)), lists:zip(Last, dealt(Rest, length(Last))), Degree, Each)}.

%% How many levels of submasters there can be: one less than with that of the colonies.
depth(Count, Degree, Depth) ->
    Heads = lists:sum([power(Degree, Length) || Length <- lists:seq(0, Depth)]),
    case Heads + power(Degree, Depth + 2) =< Count of
        true -> depth(Count, Degree, Depth + 1);
        false -> Depth
    end.

power(Base, Exponent) ->
    lists:foldl(fun(_, Product) -> Product * Base end, 1, lists:seq(1, Exponent)).

%% All of a length, in order.
paths(0, _) -> [[]];
paths(Length, Degree) -> [[I | Path] || I <- lists:seq(1, Degree), Path <- paths(Length - 1, Degree)].

%% Into so many hands, the first ones with one more where it does not come out even.
dealt(_, 0) -> [];
dealt(Nodes, Hands) ->
    {Hand, Rest} = lists:split((length(Nodes) + Hands - 1) div Hands, Nodes),
    [Hand | dealt(Rest, Hands - 1)].

%% `Heads' has the node of those below a path, `Last' the colony nodes of each last submaster. A
%% submaster goes on on a node of those below it, which is in a group with them; a colony on
%% another one of its submaster, and in the end on that one's own.
tree(Above, Heads, Last, Degree, Each) ->
    Home = fun([]) -> maps:get([], Heads); (Path) -> maps:get(lists:droplast(Path), Heads) end,
    Upper = [{Path, #{nodes => unique([Home(Path), maps:get(Path, Heads)]), group => group_of(Path),
                      below => [Path ++ [I] || I <- lists:seq(1, Degree)]}} || Path <- Above],
    {Lower, _} = lists:mapfoldl(fun({Path, Nodes}, First) ->
        All = lists:zip(lists:seq(First, First + Each * length(Nodes) - 1), [Node || Node <- Nodes, _ <- lists:seq(1, Each)]),
        Submaster = #{nodes => unique([Home(Path) | Nodes]), group => group_of(Path), below => [Id || {Id, _} <- All]},
        Colonies = [{Id, #{nodes => unique(from(Node, Nodes) ++ [Home(Path)]), group => {last, Path}, below => []}}
                    || {Id, Node} <- All],
        {[{Path, Submaster} | Colonies], First + length(All)}
    end, 1, Last),
    maps:from_list(Upper ++ lists:append(Lower)).

%% That of its parent's node and its own.
group_of(Path) when length(Path) < 2 -> {above, []};
group_of(Path) -> {above, lists:sublist(Path, length(Path) - 2)}.

%% Round: so what was on one node is not all on one again.
from(Node, Nodes) ->
    {Before, After} = lists:splitwith(fun(Other) -> Other =/= Node end, Nodes),
    After ++ Before.

%% Without those that have come before.
unique([Node | Nodes]) -> [Node | unique([Other || Other <- Nodes, Other =/= Node])];
unique([]) -> [].

%% @doc The place of one.
-spec place(id(), tree()) -> place().
place(Id, Tree) -> maps:get(Id, Tree).

%% @doc The numbers of all colonies, from 1 on.
-spec colonies(tree()) -> [aco_colony:id(), ...].
colonies(Tree) -> lists:sort([Id || Id <- maps:keys(Tree), is_integer(Id)]).

%% @doc What each node is, in the order in which roles are dealt. The master's node has the
%% submasters of the first level too.
-spec roles(tree()) -> [{node(), role()}, ...].
roles(Tree) ->
    At = fun(Ids) -> unique([hd(maps:get(nodes, maps:get(Id, Tree))) || Id <- Ids]) end,
    [Master | Submasters] = At([Path || {_, Path} <- lists:sort([{length(Path), Path} || Path <- maps:keys(Tree), is_list(Path)])]),
    [{Master, master}] ++ [{Node, submaster} || Node <- Submasters] ++ [{Node, colony} || Node <- At(colonies(Tree))].

%% @doc The nodes of each group at first: of those in it, and of those above them.
-spec groups(tree()) -> #{group() => [node(), ...]}.
groups(Tree) ->
    Members = [{Group, Node} || {Id, #{below := Below, nodes := [Own | _]}} <- maps:to_list(Tree),
                                #{group := Group, nodes := [At | _]} <- [maps:get(B, Tree) || B <- Below],
                                Node <- [Own, At], is_list(Id)],
    maps:map(fun(_, Nodes) -> lists:usort(Nodes) end, maps:groups_from_list(fun({G, _}) -> G end, fun({_, N}) -> N end, Members)).

%% @doc One plain sentence.
-spec format_error(reason()) -> unicode:chardata().
format_error({too_few_nodes, Given, Needed, none}) ->
    io_lib:format("The mode tl takes ~b nodes or more, not ~b.", [Needed, Given]);
format_error({too_few_nodes, Given, Needed, Degree}) ->
    io_lib:format("A tree of degree ~b takes ~b nodes or more, not ~b.", [Degree, Needed, Given]).
