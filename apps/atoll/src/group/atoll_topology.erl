%% SPDX-License-Identifier: Apache-2.0
%% @doc Topologies as data: which groups a list of nodes is put in, and which nodes
%% join the groups. Pure but for {@link make/1}.
%%
%% The nodes are cut, in the order in which they are given, into groups of equal
%% size or one more, the home groups: each node is in exactly one. How these are
%% joined is what the shapes differ in. A node that is in more than one group is a
%% gateway; `gateways' says how many join one group with its neighbours, the first
%% ones of its list, so that a group stays joined when one fewer fail.
%%
%% Nine nodes in home groups of three, one gateway each (in capitals):
%% <ul>
%% <li>`star': one more group of all gateways. `A b c', `D e f', `G h i', `A D G'.</li>
%% <li>`ring': the gateways of a group are in the next group too.
%%   `A b c G', `D e f A', `G h i D'.</li>
%% <li>`tree': the gateways of a group are in the group above it too, which is the
%%   first of all, or one that has fewer than `fanout' below it.
%%   `a b c D G', `D e f', `G h i'.</li>
%% <li>`hierarchy': at most `fanout' home groups are joined by a group of their
%%   gateways; these are joined in the same way, and so on, until one is on top.
%%   With `fanout' 2: `A b c', `D e f', `G h i', `A D', and `A G' above it.</li>
%% </ul>
%%
%% With G gateways, a node of a home group of s nodes is connected with so many:
%% <ul>
%% <li>`star' of k groups: s - 1, and a gateway with (k - 1) G more.</li>
%% <li>`ring' of three or more: s - 1 + G, and a gateway with as many more as the
%%   next home group has nodes.</li>
%% <li>`tree': s - 1 + c G, where c is the number of groups below; a gateway with
%%   s' + (c' - 1) G more, those of the group above.</li>
%% <li>`hierarchy': s - 1, and for each group above that it is in with the gateways
%%   of c parts, (c - 1) G more.</li>
%% </ul>
%% So in all of them what a node costs hangs on the sizes of its own groups, and not
%% on the number of nodes; in a star, a gateway's on the number of groups.
-module(atoll_topology).

-export([star/2, ring/2, tree/2, hierarchy/2, of_groups/1]).
-export([groups/1, members/1, gateways/1, home/2, connections/1]).
-export([make/1, format_error/1]).
-export([text/1, dot/1]).

-export_type([topology/0, options/0, group/0, error/0, make_error/0]).

-type group() :: {s_group:name(), [node()]}.

-type options() :: #{
    %% How many nodes a home group has at least; or how many home groups there are.
    %% One of the two must be given.
    group_size => pos_integer(),
    groups => pos_integer(),
    %% How many nodes join a group with its neighbours; 1 unless told.
    gateways => pos_integer(),
    %% How many groups are below one, in a tree and in a hierarchy; 2 unless told.
    fanout => pos_integer(),
    %% What the groups' names begin with; `group' unless told.
    prefix => atom()
}.

-record(topology, {
    %% Home groups first, each with its own nodes first, in the order in which to make them.
    groups :: [group()]
}).

-opaque topology() :: #topology{}.

-type error() ::
    {bad_nodes, term()}
    | {twice, node()}
    | no_nodes
    | {bad_options, term()}
    | {unknown_option, term()}
    | {bad_value, atom(), term()}
    %% Neither a size nor a number of groups, or both.
    | no_size
    | two_sizes
    %% A hierarchy would not come to an end.
    | no_fanout
    | {more_groups_than_nodes, Groups :: pos_integer(), Nodes :: pos_integer()}
    %% The smallest home group has not so many.
    | {too_many_gateways, Gateways :: pos_integer(), Size :: pos_integer()}.

-type make_error() :: #{
    %% The groups that stand now, with the members that they have.
    made := [group()],
    failed := s_group:name(),
    why :=
        {left_out, [node()]}
        | {refused, term()}
        | {unreachable, node()}
}.

%% How long one group may take, beyond what the operation itself allows.
-define(MAKE_MS, 60000).

%% @doc Home groups, and one group of all their gateways.
-spec star([node()], options()) -> {ok, topology()} | {error, error()}.
star(Nodes, Options) ->
    lay_out(Nodes, Options, [], fun(Homes, #{gateways := G, prefix := Prefix}) ->
        named(Homes, Prefix) ++ [{name(Prefix, "_gateways"), gates(Homes, G)} || length(Homes) > 1]
    end).

%% @doc Home groups, each joined with the next one, and the last with the first.
-spec ring([node()], options()) -> {ok, topology()} | {error, error()}.
ring(Nodes, Options) ->
    lay_out(Nodes, Options, [], fun
        ([_] = Homes, #{prefix := Prefix}) ->
            named(Homes, Prefix);
        (Homes, #{gateways := G, prefix := Prefix}) ->
            Before = [lists:last(Homes) | lists:droplast(Homes)],
            named([Home ++ lists:sublist(Last, G) || {Home, Last} <- lists:zip(Homes, Before)], Prefix)
    end).

%% @doc Home groups, each but the first joined with the one above it.
-spec tree([node()], options()) -> {ok, topology()} | {error, error()}.
tree(Nodes, Options) ->
    lay_out(Nodes, Options, [fanout], fun(Homes, #{gateways := G, prefix := Prefix, fanout := Fanout}) ->
        Numbered = lists:zip(lists:seq(0, length(Homes) - 1), Homes),
        Below = maps:groups_from_list(
            fun({I, _}) -> (I - 1) div Fanout end, fun({_, Home}) -> lists:sublist(Home, G) end, tl(Numbered)
        ),
        named([Home ++ lists:append(maps:get(I, Below, [])) || {I, Home} <- Numbered], Prefix)
    end).

%% @doc Home groups, joined by groups of gateways, joined by groups of gateways, and so on.
-spec hierarchy([node()], options()) -> {ok, topology()} | {error, error()}.
hierarchy(_Nodes, #{fanout := 1}) ->
    {error, no_fanout};
hierarchy(Nodes, Options) ->
    lay_out(Nodes, Options, [fanout], fun(Homes, #{gateways := G, prefix := Prefix, fanout := Fanout}) ->
        named(Homes, Prefix) ++ above(Homes, 2, G, Fanout, Prefix)
    end).

%% The groups above these parts, each of which is known by the nodes it lends.
above([_], _Level, _G, _Fanout, _Prefix) ->
    [];
above(Parts, Level, G, Fanout, Prefix) ->
    Sets = cut(Parts, (length(Parts) + Fanout - 1) div Fanout),
    Next = [
        case Set of
            %% A part that is left alone goes up as it is.
            [Part] -> Part;
            _ -> gates(Set, G)
        end
     || Set <- Sets
    ],
    New = [Part || {Part, [_, _ | _]} <- lists:zip(Next, Sets)],
    named(New, name(Prefix, [integer_to_list(Level), $_])) ++ above(Next, Level + 1, G, Fanout, Prefix).

gates(Parts, G) ->
    lists:append([lists:sublist(Part, G) || Part <- Parts]).

named(Lists, Prefix) ->
    [{name(Prefix, integer_to_list(I)), List} || {I, List} <- lists:zip(lists:seq(1, length(Lists)), Lists)].

%% As many as there are groups, which are fewer than two for each node.
name(Prefix, More) ->
    binary_to_atom(unicode:characters_to_binary([atom_to_list(Prefix), More])).

%% Options

lay_out(Nodes, Options, More, Join) ->
    case check(Nodes, Options, More) of
        {ok, Count, Whole} -> {ok, #topology{groups = Join(cut(Nodes, Count), Whole)}};
        {error, _} = Error -> Error
    end.

check(Nodes, Options, More) ->
    case {check_nodes(Nodes), is_map(Options)} of
        {ok, true} ->
            Known = [group_size, groups, gateways, prefix | More],
            case [Error || Pair <- lists:sort(maps:to_list(Options)), {error, Error} <- [check_option(Pair, Known)]] of
                [] -> check_sizes(length(Nodes), maps:merge(#{gateways => 1, prefix => group, fanout => 2}, Options));
                [Error | _] -> {error, Error}
            end;
        {ok, false} ->
            {error, {bad_options, Options}};
        {{error, _} = Error, _} ->
            Error
    end.

check_nodes([]) ->
    {error, no_nodes};
check_nodes(Nodes) ->
    case are_atoms(Nodes) of
        true ->
            case Nodes -- lists:usort(Nodes) of
                [] -> ok;
                [Node | _] -> {error, {twice, Node}}
            end;
        false ->
            {error, {bad_nodes, Nodes}}
    end.

are_atoms([]) -> true;
are_atoms([Node | Nodes]) when is_atom(Node) -> are_atoms(Nodes);
are_atoms(_) -> false.

check_option({Key, Value}, Known) ->
    case {lists:member(Key, Known), Key} of
        {false, _} -> {error, {unknown_option, Key}};
        {true, prefix} when is_atom(Value) -> ok;
        {true, _} when Key =/= prefix, is_integer(Value), Value > 0 -> ok;
        {true, _} -> {error, {bad_value, Key, Value}}
    end.

check_sizes(_Nodes, #{group_size := _, groups := _}) ->
    {error, two_sizes};
check_sizes(Nodes, #{group_size := Size} = Options) ->
    check_gateways(Nodes, max(1, Nodes div Size), Options);
check_sizes(Nodes, #{groups := Count}) when Count > Nodes ->
    {error, {more_groups_than_nodes, Count, Nodes}};
check_sizes(Nodes, #{groups := Count} = Options) ->
    check_gateways(Nodes, Count, Options);
check_sizes(_Nodes, #{}) ->
    {error, no_size}.

check_gateways(Nodes, Count, #{gateways := G}) when Count > 1, G > Nodes div Count ->
    {error, {too_many_gateways, G, Nodes div Count}};
check_gateways(_Nodes, Count, Options) ->
    {ok, Count, Options}.

%% Parts whose lengths differ by one at most, the longer ones first.
cut(List, 1) ->
    [List];
cut(List, Count) ->
    {Part, Rest} = lists:split((length(List) + Count - 1) div Count, List),
    [Part | cut(Rest, Count - 1)].

%% What is in one

%% @doc The topology of groups that are there, such as `s_group:own_s_groups()'.
-spec of_groups([group()]) -> topology().
of_groups(Groups) ->
    #topology{groups = Groups}.

%% @doc The groups in the order in which to make them, each with its nodes sorted.
-spec groups(topology()) -> [group()].
groups(#topology{groups = Groups}) ->
    [{Name, lists:usort(Nodes)} || {Name, Nodes} <- Groups].

%% @doc All nodes, sorted.
-spec members(topology()) -> [node()].
members(#topology{groups = Groups}) ->
    lists:usort(lists:append([Nodes || {_, Nodes} <- Groups])).

%% @doc The nodes that are in more than one group, sorted.
-spec gateways(topology()) -> [node()].
gateways(Topology) ->
    All = lists:append([Nodes || {_, Nodes} <- groups(Topology)]),
    lists:usort(All -- lists:usort(All)).

%% @doc The first group that the node is in.
-spec home(node(), topology()) -> {ok, s_group:name()} | none.
home(Node, #topology{groups = Groups}) ->
    case [Name || {Name, Nodes} <- Groups, lists:member(Node, Nodes)] of
        [Name | _] -> {ok, Name};
        [] -> none
    end.

%% @doc With how many others each node is connected on its groups' account.
-spec connections(topology()) -> #{node() => non_neg_integer()}.
connections(Topology) ->
    CoMembers = lists:foldl(
        fun({_, Nodes}, Map) ->
            Members = maps:from_keys(Nodes, []),
            lists:foldl(
                fun(Node, M) -> M#{Node => maps:merge(maps:get(Node, M, #{}), Members)} end, Map, Nodes
            )
        end,
        #{},
        groups(Topology)
    ),
    maps:map(fun(_Node, Members) -> map_size(Members) - 1 end, CoMembers).

%% On nodes

%% @doc Makes the groups, one after the other, each on its first node, or here if
%% this node is in it. Stops at the first that does not get all its nodes, and says
%% which stand: nothing is taken back. The nodes must be reachable from this one.
-spec make(topology()) -> {ok, [group()]} | {error, make_error()}.
make(Topology) ->
    make(groups(Topology), []).

make([], Made) ->
    {ok, lists:reverse(Made)};
make([{Name, [First | _] = Nodes} = Group | Groups], Made) ->
    Maker =
        case lists:member(node(), Nodes) of
            true -> node();
            false -> First
        end,
    try erpc:call(Maker, s_group, new_s_group, [Name, Nodes], ?MAKE_MS) of
        {ok, Name, Nodes} -> make(Groups, [Group | Made]);
        {ok, Name, Fewer} -> failed({left_out, Nodes -- Fewer}, Name, [{Name, Fewer} | Made]);
        {error, Reason} -> failed({refused, Reason}, Name, Made)
    catch
        error:{erpc, _Reason} -> failed({unreachable, Maker}, Name, Made);
        %% The application is not there.
        error:{exception, undef, _} -> failed({refused, s_group_not_runnig}, Name, Made)
    end.

failed(Why, Name, Made) ->
    {error, #{failed => Name, why => Why, made => lists:reverse(Made)}}.

%% @doc One sentence for an error.
-spec format_error(error() | make_error()) -> unicode:chardata().
format_error(#{failed := Name, why := Why, made := Made}) ->
    [io_lib:format("the group ~tw ", [Name]), why(Why), "; ", made(Made)];
format_error(no_nodes) ->
    "a topology needs at least one node";
format_error({bad_nodes, Nodes}) ->
    io_lib:format("nodes are given as a list of atoms, not ~tp", [Nodes]);
format_error({twice, Node}) ->
    io_lib:format("the node ~tw is given twice", [Node]);
format_error({bad_options, Options}) ->
    io_lib:format("options are given as a map, not ~tp", [Options]);
format_error({unknown_option, Key}) ->
    io_lib:format("this shape knows no option ~tp", [Key]);
format_error({bad_value, prefix, Value}) ->
    io_lib:format("prefix must be an atom, not ~tp", [Value]);
format_error({bad_value, Key, Value}) ->
    io_lib:format("~tw must be a whole number above 0, not ~tp", [Key, Value]);
format_error(no_fanout) ->
    "fanout must be at least 2 in a hierarchy, not 1";
format_error(no_size) ->
    "group_size or groups must say how the nodes are cut into groups";
format_error(two_sizes) ->
    "group_size and groups are two ways to say the same: only one may be given";
format_error({more_groups_than_nodes, Groups, Nodes}) ->
    io_lib:format("~b nodes cannot be cut into ~b groups", [Nodes, Groups]);
format_error({too_many_gateways, Gateways, Size}) ->
    io_lib:format("a group of ~b has no ~b gateways", [Size, Gateways]).

why({left_out, Nodes}) -> ["stands without ", words(Nodes)];
why({refused, Reason}) -> ["was not made: ", s_group:format_error(Reason)];
why({unreachable, Node}) -> io_lib:format("was not made: ~tw did not answer", [Node]).

made([]) -> "no group stands";
made(Made) -> ["there are now ", words([Name || {Name, _} <- Made])].

words(Atoms) -> lists:join(", ", [atom_to_list(Atom) || Atom <- Atoms]).

%% Drawn

%% @doc A line for each group, with its nodes; a star marks gateways.
-spec text(topology()) -> unicode:chardata().
text(#topology{groups = Groups} = Topology) ->
    Gateways = gateways(Topology),
    Connections = connections(Topology),
    Width = lists:max([0 | [string:length(atom_to_list(Name)) || {Name, _} <- Groups]]),
    Most = lists:max([0 | maps:values(Connections)]),
    [
        [
            [string:pad(atom_to_list(Name), Width), "  ", lists:join($\s, [marked(N, Gateways) || N <- Nodes]), $\n]
         || {Name, Nodes} <- Groups
        ],
        io_lib:format("~b groups, ~b nodes, ~b of them gateways (*); a node has ~b connections at most~n", [
            length(Groups), map_size(Connections), length(Gateways), Most
        ])
    ].

marked(Node, Gateways) ->
    [atom_to_list(Node) | [$* || lists:member(Node, Gateways)]].

%% @doc A graph for Graphviz, best laid out by `neato' or `fdp': groups are boxes,
%% nodes ellipses, gateways with a double line.
-spec dot(topology()) -> unicode:chardata().
dot(#topology{groups = Groups} = Topology) ->
    Gateways = gateways(Topology),
    Numbered = lists:zip(lists:seq(1, length(Groups)), groups(Topology)),
    [
        "graph groups {\n  overlap=false;\n  splines=true;\n",
        [
            ["  ", box(I), " [shape=box, style=filled, fillcolor=\"#dbe9f9\", label=", quoted(Name), "];\n"]
         || {I, {Name, _}} <- Numbered
        ],
        [
            ["  ", quoted(Node), [" [peripheries=2]" || lists:member(Node, Gateways)], ";\n"]
         || Node <- members(Topology)
        ],
        [["  ", box(I), " -- ", quoted(Node), ";\n"] || {I, {_, Nodes}} <- Numbered, Node <- Nodes],
        "}\n"
    ].

%% A group may be called like a node, or like another group far away.
box(I) -> quoted(["group ", integer_to_list(I)]).

quoted(Atom) when is_atom(Atom) ->
    quoted(atom_to_list(Atom));
quoted(Text) ->
    [$", [escaped(C) || C <- unicode:characters_to_list(Text)], $"].

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped($\n) -> "\\n";
escaped(C) -> C.
