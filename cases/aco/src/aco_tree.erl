%% @doc Who does what: the tree of submasters over the nodes of a run, as data.
%%
%% The nodes take their roles in the order in which they are given: the master's
%% node, the nodes of submasters level by level, and then those of colonies. So who
%% orders the nodes places the roles.
%%
%% Under a tree of degree P the first node has the master and the P submasters of
%% the first level. Every further submaster node has the P submasters of one of the
%% level above it; and each submaster of the last level has about P nodes of
%% colonies. With X levels, that of the colonies included, that takes
%% 1 + P + .. + P^(X-2) nodes for submasters and P^X for colonies; X is the greatest
%% for which there are enough. The formula leaves what is beyond it idle. Here all
%% nodes that are left are colony nodes, dealt out in order and as evenly as can be.
%%
%% Thirteen nodes a to m of degree 2 make three levels: a has the master, [1] and
%% [2]; b has [1,1] and [1,2]; c has [2,1] and [2,2]; and of the colony nodes d to m
%% three are below [1,1], three below [1,2], and two below each of the others.
%%
%% In the mode `tl' there are no submasters: all nodes but the first are the
%% master's colony nodes.
%%
%% `sr' has a group for each node above the last level, of that node and those of the
%% submasters below it; and one for each submaster of the last level, of its node and
%% those of its colonies. A colony node is in one group.
-module(aco_tree).

-export([new/4, children/1, moved/2, colonies/1, roles/1, groups/1, format_error/1]).

-export_type([mode/0, path/0, id/0, branch/0, child/0, group/0, role/0, reason/0]).

-type mode() :: tl | ml | gr | sr.

%% A submaster by the way to it: [2, 1] is the first one below the second one of the
%% first level. The master is [].
-type path() :: [pos_integer()].

-type id() :: path() | aco_colony:id().

%% The s_group of a submaster and those below it. The number tells apart the groups
%% of those that have one node.
-type group() :: #{id := {above | last, path()}, nodes := [node(), ...]}.

%% A submaster, or the master, with all that is below it.
-type branch() :: #{
    path := path(),
    node := node(),
    group := group() | none,
    below := {submasters, [branch(), ...]} | {colonies, [{aco_colony:id(), node()}, ...]}
}.

%% One that a submaster starts, and where.
-type child() :: #{
    id := id(),
    %% where it is started at first, and where it goes on when that is lost
    node := node(),
    spare := [node()],
    %% what it is made of; none for a colony
    branch := branch() | none
}.

-type role() :: master | submaster | colony.

-type reason() :: {too_few_nodes, Given :: non_neg_integer(), Needed :: pos_integer(), Degree :: pos_integer() | none}.

%% @doc Lays a run out.
-spec new(mode(), [node()], Degree :: pos_integer(), ColoniesPerNode :: pos_integer()) ->
    {ok, branch()} | {error, reason()}.
new(tl, [Master, First | More], _, Each) ->
    [Colonies] = numbered([[First | More]], Each, 1),
    {ok, #{path => [], node => Master, group => none, below => {colonies, Colonies}}};
new(tl, Nodes, _, _) ->
    {error, {too_few_nodes, length(Nodes), 2, none}};
new(Mode, Nodes, Degree, Each) ->
    case length(Nodes) < 1 + Degree * Degree of
        true ->
            {error, {too_few_nodes, length(Nodes), 1 + Degree * Degree, Degree}};
        false ->
            Depth = depth(length(Nodes), Degree, 1),
            Above = lists:append([paths(Length, Degree) || Length <- lists:seq(0, Depth - 1)]),
            {Heads, Rest} = lists:split(length(Above), Nodes),
            Last = paths(Depth, Degree),
            Colonies = numbered(dealt(Rest, length(Last)), Each, 1),
            Plan = #{
                grouped => Mode =:= sr,
                degree => Degree,
                heads => maps:from_list(lists:zip(Above, Heads)),
                colonies => maps:from_list(lists:zip(Last, Colonies))
            },
            {ok, branch([], Plan)}
    end.

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
paths(0, _) ->
    [[]];
paths(Length, Degree) ->
    [[I | Path] || I <- lists:seq(1, Degree), Path <- paths(Length - 1, Degree)].

%% Into so many hands, the first ones with one more where it does not come out even.
dealt(_, 0) ->
    [];
dealt(Nodes, Hands) ->
    {Hand, Rest} = lists:split((length(Nodes) + Hands - 1) div Hands, Nodes),
    [Hand | dealt(Rest, Hands - 1)].

numbered([Hand | Hands], Each, Next) ->
    All = [Node || Node <- Hand, _ <- lists:seq(1, Each)],
    [lists:zip(lists:seq(Next, Next + length(All) - 1), All) | numbered(Hands, Each, Next + length(All))];
numbered([], _, _) ->
    [].

%% The submasters with one parent are on one node, which `heads' has under the parent's path.
branch(Path, #{colonies := Colonies} = Plan) when is_map_key(Path, Colonies) ->
    #{Path := [_ | _] = Below} = Colonies,
    Node = home(Path, Plan),
    #{path => Path, node => Node, below => {colonies, Below},
      group => group({last, Path}, [Node | [At || {_, At} <- Below]], Plan)};
branch(Path, #{degree := Degree} = Plan) ->
    #{path => Path, node => home(Path, Plan), group => group_above(Path, Plan),
      below => {submasters, [branch(Path ++ [I], Plan) || I <- lists:seq(1, Degree)]}}.

home([], #{heads := #{[] := Master}}) -> Master;
home(Path, #{heads := Heads}) -> maps:get(lists:droplast(Path), Heads).

%% The master's submasters are on its own node.
group_above([], _) ->
    none;
group_above(Path, #{heads := Heads, degree := Degree} = Plan) ->
    Parent = lists:droplast(Path),
    group({above, Parent}, [maps:get(P, Heads) || P <- [Parent | [Parent ++ [I] || I <- lists:seq(1, Degree)]]], Plan).

group(Id, Nodes, #{grouped := true}) -> #{id => Id, nodes => unique(Nodes)};
group(_, _, #{grouped := false}) -> none.

%% Without those that have come before.
unique([Node | Nodes]) -> [Node | unique([Other || Other <- Nodes, Other =/= Node])];
unique([]) -> [].

%% @doc Those that a submaster starts. A submaster goes on on a node of those below it, which
%% is in a group with them; a colony on that of another of the same submaster, and where
%% there is none, on the submaster's own.
-spec children(branch()) -> [child(), ...].
children(#{below := {submasters, Branches}}) ->
    [#{id => Path, node => Node, spare => [At || At <- nodes_below(Branch), At =/= Node], branch => Branch}
     || #{path := Path, node := Node} = Branch <- Branches];
children(#{node := Own, below := {colonies, Colonies}} = Branch) ->
    [#{id => Id, node => Node, spare => spare(Node, nodes_below(Branch)) ++ [Own || Node =/= Own], branch => none}
     || {Id, Node} <- Colonies].

nodes_below(#{below := {submasters, Branches}}) -> unique([Node || #{node := Node} <- Branches]);
nodes_below(#{below := {colonies, Colonies}}) -> unique([Node || {_, Node} <- Colonies]).

%% From the next one on, round: so what was on one node is not all on one again.
spare(Node, Nodes) ->
    {Before, [Node | After]} = lists:splitwith(fun(Other) -> Other =/= Node end, Nodes),
    After ++ Before.

%% @doc The same branch with its submaster on another node.
-spec moved(branch(), node()) -> branch().
moved(Branch, Node) -> Branch#{node := Node}.

%% @doc The numbers of all colonies, from 1 on.
-spec colonies(branch()) -> [aco_colony:id(), ...].
colonies(Branch) -> [Id || {Id, _} <- colony_places(Branch)].

colony_places(#{below := {colonies, Colonies}}) -> Colonies;
colony_places(#{below := {submasters, Branches}}) -> lists:append([colony_places(Branch) || Branch <- Branches]).

%% @doc What each node is, in the order in which roles are dealt. The master's node has the
%% submasters of the first level too.
-spec roles(branch()) -> [{node(), role()}, ...].
roles(#{node := Master} = Branch) ->
    Submasters = unique([Node || #{path := [_ | _], node := Node} <- by_level([Branch])]) -- [Master],
    [{Master, master}]
        ++ [{Node, submaster} || Node <- Submasters]
        ++ [{Node, colony} || Node <- unique([At || {_, At} <- colony_places(Branch)])].

by_level([]) -> [];
by_level(Level) -> Level ++ by_level([B || #{below := {submasters, Branches}} <- Level, B <- Branches]).

%% @doc All groups of a run.
-spec groups(branch()) -> [group()].
groups(Branch) ->
    unique([Group || #{group := Group} <- by_level([Branch]), Group =/= none]).

%% @doc One plain sentence.
-spec format_error(reason()) -> unicode:chardata().
format_error({too_few_nodes, Given, Needed, none}) ->
    io_lib:format("The mode tl takes ~b nodes or more, not ~b.", [Needed, Given]);
format_error({too_few_nodes, Given, Needed, Degree}) ->
    io_lib:format("A tree of degree ~b takes ~b nodes or more, not ~b.", [Degree, Needed, Given]).
