%% SPDX-License-Identifier: Apache-2.0
%% Distances in a declared network are those of the paper, and an ultrametric; a term or a
%% file that is none is told of with the place.
-module(atoll_network_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The network of the paper's library: clusters A, B and C, without names.
-define(PAPER, [
    "{network, [",
    "  {network, [",
    "    {network, [",
    "      {network, [{node,'Anne@ash'},{node,'Brian@ash'},{node,'Clara@ash'}]},",
    "      {network, [{node,'Derek@bay'},{node,'Eve@bay'},{node,'Fred@bay'},{node,'Gwen@bay'}]}]},",
    "    {network, [",
    "      {network, [{node,'Henrietta@cypress'},{node,'Ian@cypress'},{node,'Jane@cypress'}]}]}]},",
    "  {network, [",
    "    {network, [{node,'Aud@Thor'},{node,'Bolli@Thor'},{node,'Egil@Thor'}]},",
    "    {network, [{node,'Dido@Zeus'},{node,'Leda@Zeus'}]},",
    "    {network, [{node,'Finn@Lug'}]}]},",
    "  {network, [{network, [{network, [{node,'Zoe@deep'}]}]}]}]}."
]).

paper() ->
    {ok, Network} = parse(?PAPER),
    Network.

parse(Lines) -> atoll_network_file:parse(unicode:characters_to_binary(lists:join("\n", Lines))).

the_papers_network_has_its_distances_test() ->
    Network = paper(),
    ?assertEqual(17, length(atoll_network:nodes(Network))),
    Far = fun(B) -> atoll_network:distance('Anne@ash', B, Network) end,
    ?assertEqual({ok, 0.0}, Far('Anne@ash')),
    ?assertEqual({ok, 0.125}, Far('Brian@ash')),
    ?assertEqual({ok, 0.25}, Far('Derek@bay')),
    ?assertEqual({ok, 0.5}, Far('Henrietta@cypress')),
    ?assertEqual({ok, 1.0}, Far('Aud@Thor')),
    ?assertEqual(0.125, atoll_network:min_distance(Network)),
    ?assertEqual(1.0, atoll_network:max_distance(Network)).

balls_and_spheres_of_the_papers_network_test() ->
    Network = paper(),
    Choose = fun(Predicates) -> atoll_network:choose('Anne@ash', atoll_network:nodes(Network), Predicates, Network) end,
    Near = ['Anne@ash', 'Brian@ash', 'Clara@ash', 'Derek@bay', 'Eve@bay', 'Fred@bay', 'Gwen@bay'],
    ?assertEqual(Near, Choose({dist, le, 0.25})),
    ?assertEqual(Near, atoll_network:ball('Anne@ash', 0.25, Network)),
    ?assertEqual(
        ['Aud@Thor', 'Bolli@Thor', 'Dido@Zeus', 'Egil@Thor', 'Finn@Lug', 'Leda@Zeus', 'Zoe@deep'],
        Choose({dist, gt, 0.5})
    ),
    ?assertEqual(['Henrietta@cypress', 'Ian@cypress', 'Jane@cypress'], Choose([{dist, gt, 0.25}, {dist, lt, 1}])),
    ?assertEqual(Choose({dist, eq, 1}), atoll_network:sphere('Anne@ash', 1, Network)),
    ?assertEqual(7, length(Choose([{dist, ne, 0}, {dist, ge, 1}]))),
    ?assertEqual(17, length(Choose([]))).

the_nearest_come_first_and_a_stranger_not_at_all_test() ->
    Nodes = ['Aud@Thor', stranger@h, 'Derek@bay', 'Brian@ash', 'Clara@ash'],
    ?assertEqual(
        ['Brian@ash', 'Clara@ash', 'Derek@bay'], atoll_network:nearest(3, 'Anne@ash', Nodes, paper())
    ),
    ?assertEqual(4, length(atoll_network:nearest(9, 'Anne@ash', Nodes, paper()))),
    ?assertEqual([], atoll_network:choose(stranger@h, Nodes, {dist, ge, 0}, paper())),
    ?assertEqual({error, {not_in_network, stranger@h}}, atoll_network:distance(stranger@h, stranger@h, paper())),
    ?assertEqual({error, {not_in_network, stranger@h}}, atoll_network:distance('Anne@ash', stranger@h, paper())).

small_networks_have_no_distances_test_() ->
    [
        fun() ->
            {ok, Network} = atoll_network:new(Term),
            ?assertEqual({0.0, 0.0}, {atoll_network:min_distance(Network), atoll_network:max_distance(Network)}),
            ?assertEqual(Nodes, atoll_network:nodes(Network))
        end
     || {Term, Nodes} <- [{{node, a}, [a]}, {{network, []}, []}, {{network, [{network, []}, {node, a}]}, [a]}]
    ].

an_only_subnet_of_the_root_is_nearer_than_the_root_test() ->
    {ok, Network} = atoll_network:new({network, site, [{network, "a room", [{node, a}, {node, b}]}]}),
    ?assertEqual({0.5, 0.5}, {atoll_network:min_distance(Network), atoll_network:max_distance(Network)}).

names_are_given_to_those_without_test() ->
    {ok, Network} = atoll_network:new({network, [{network, site, [{node, a}]}, {network, [{network, []}]}]}),
    ?assertEqual(
        {network, "<v1>", [{network, site, [{node, a}]}, {network, "<v2>", [{network, "<v3>", []}]}]},
        atoll_network:term(Network)
    ).

what_is_wrong_with_a_file_is_told_with_its_line_test_() ->
    [
        {Expected, fun() ->
            {error, Error} = parse(Lines),
            ?assertEqual(Expected, lists:flatten(io_lib:format("~ts", [atoll_network_file:format_error(Error)])))
        end}
     || {Expected, Lines} <- [
            {"line 3: a second root begins here, and the network that begins in line 1 is to be all",
                ["{network, [{node, a@h},", " {node, b@h}]}.", "{node, c@h}."]},
            {"line 4: the node a@h stands in the network twice, first in line 1",
                ["{network, [{node, a@h}, % here", "  {network,", "    here,", "     [{node, a@h}]}]}."]},
            {"line 2: syntax error before: ']'", ["{network, [{node, a@h},", " ]}."]},
            {"line 2: what stands here is none of {node,Node}, {network,[Sub]} and {network,Name,[Sub]}",
                ["{network, [{node, a@h},", " {nod, b@h}]}."]},
            {"line 2: a node is named by an atom, not by \"b@h\"", ["{network, [{node, a@h},", " {node, \"b@h\"}]}."]},
            {"line 1: a network is named by an atom or a text, not by 7", ["{network, 7, []}."]},
            {"line 1: the parts of a network are a list, not {node,b@h}", ["{network, {node, b@h}}."]},
            {"line 1: what stands here is none of {node,Node}, {network,[Sub]} and {network,Name,[Sub]}",
                ["{network, \"ab\"}."]},
            {"line 2: the network ends without a full stop", ["{network,", "[]}"]},
            {"line 1: it is no plain term of atoms, tuples, lists and texts", ["{node, Node}."]},
            {"line 2: a network is one term, without commas behind it", ["{node, a},", "{node, b}."]},
            {"line 2: unterminated string starting with \"abc.\"", ["", "\"abc."]},
            {"there is no network in it", ["% nothing"]}
        ]
    ].

more_than_so_deep_is_no_network_test() ->
    Deep = fun(N) -> lists:foldl(fun(_, Sub) -> {network, [Sub]} end, {network, [{node, a}, {node, b}]}, lists:seq(1, N)) end,
    {ok, Network} = atoll_network:new(Deep(999)),
    ?assert(atoll_network:min_distance(Network) > 0),
    ?assertMatch({error, {_, too_deep}}, atoll_network:new(Deep(1000))).

a_file_that_is_not_there_or_no_text_is_told_of_test() ->
    {error, Error} = atoll_network_file:read("/nowhere/at/all"),
    ?assertEqual("no such file or directory", lists:flatten(atoll_network_file:format_error(Error))),
    {error, NoText} = atoll_network_file:parse(<<"{node,\n'", 255, "'}.">>),
    ?assertEqual("line 2: what follows is not UTF-8", lists:flatten(atoll_network_file:format_error(NoText))).

a_drawing_holds_every_vertex_test() ->
    {ok, Network} = atoll_network:new({network, 'the "site"', [{node, a@h}, {network, "a<b", [{node, b@h}]}]}),
    Drawing = atoll_tree_drawing:network(Network),
    ?assertEqual(
        "the \"site\"\n"
        "\x{251c}\x{2500} a@h\n"
        "\x{2514}\x{2500} a<b\n"
        "   \x{2514}\x{2500} b@h\n",
        unicode:characters_to_list(atoll_tree_drawing:text(Drawing))
    ),
    ?assertEqual(
        "graph network {\n"
        "    rankdir=LR;\n"
        "    v1 [label=\"the \\\"site\\\"\"];\n"
        "    v2 [label=\"a@h\", shape=box];\n"
        "    v1 -- v2;\n"
        "    v3 [label=\"a<b\"];\n"
        "    v4 [label=\"b@h\", shape=box];\n"
        "    v3 -- v4;\n"
        "    v1 -- v3;\n"
        "}\n",
        unicode:characters_to_list(atoll_tree_drawing:dot(Drawing))
    ),
    Svg = unicode:characters_to_list(atoll_tree_drawing:svg("site & room", {Drawing, logarithmic})),
    {Root, _} = xmerl_scan:string(Svg, [{quiet, true}]),
    ?assertEqual(svg, element(2, Root)),
    [?assertNotEqual(nomatch, string:find(Svg, Part)) || Part <- ["a@h", "b@h", "a&lt;b", "site &amp; room"]].

no_line_of_a_picture_goes_through_a_text_test_() ->
    Leaf = fun(Name) -> {leaf, Name} end,
    [
        {Title, ?_assertEqual([], crossed(atoll_tree_drawing:svg("title", {Drawing, Scale})))}
     || {Title, Drawing} <- [
            {"joins that are close by each other",
                {inner, "457.6 us", 457.6, [
                    {inner, "446 us", 446, [{inner, "295.9 us", 295.9, [Leaf("a@h"), Leaf("b@h")]}, Leaf("c@h")]}, Leaf("d@h")]}},
            {"networks in each other",
                {inner, "planet", 1.0, [
                    {inner, "europe", 0.5, [{inner, "rack 1", 0.25, [Leaf("a@h"), Leaf("b@h")]}, {inner, "rack 2", 0.25, [Leaf("c@h")]}]},
                    {inner, "asia", 0.5, [Leaf("d@h")]}]}}
        ],
        Scale <- [linear, logarithmic]
    ].

%% The texts under the title that a line touches, as high and as wide as they are about.
crossed(Svg) ->
    Number = fun(Text) -> {N, _} = string:to_float(Text), N end,
    Found = fun(Pattern) ->
        {match, All} = re:run(unicode:characters_to_list(Svg), Pattern, [global, {capture, all_but_first, list}]),
        All
    end,
    Lines =
        [{X, Y, Right, Y} || [A, B, C] <- Found("M([0-9.]+) ([0-9.]+) H([0-9.]+)"), {X, Y, Right} <- [{Number(A), Number(B), Number(C)}]] ++
            [{X, Y, X, Down} || [A, B, C] <- Found("M([0-9.]+) ([0-9.]+)V([0-9.]+)"), {X, Y, Down} <- [{Number(A), Number(B), Number(C)}]],
    ?assertMatch([_, _, _, _ | _], Lines),
    Texts = Found("x=\"(-?[0-9.]+)\" y=\"([0-9.]+)\" text-anchor=\"([a-z]+)\">([^<]*)<"),
    ?assertMatch([_, _, _, _ | _], Texts),
    [
        Text
     || [A, B, Anchor, Text] <- Texts,
        Y <- [Number(B)],
        Width <- [6 * length(Text)],
        Left <- [case Anchor of "start" -> Number(A); "end" -> Number(A) - Width end],
        lists:any(
            fun({X1, Y1, X2, Y2}) -> X1 < Left + Width andalso X2 > Left andalso Y1 < Y + 2 andalso Y2 > Y - 10 end, Lines
        )
    ].

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 300)
     || {Title, Property} <- [
            {"a node is at 0 from itself alone, and as far from another as that from it",
                ?FORALL({N, A, B}, pairs(), begin
                    D = far(A, B, N),
                    D =:= far(B, A, N) andalso (A =:= B) =:= (D == 0) andalso D =< 1
                end)},
            {"of three distances none is above the larger of the others",
                ?FORALL({N, A, B}, pairs(), lists:all(fun(C) -> far(A, B, N) =< max(far(A, C, N), far(C, B, N)) end, atoll_network:nodes(N)))},
            {"balls of one node lie in each other by their radius",
                ?FORALL({{N, A, _}, R, More}, {pairs(), radius(), radius()}, atoll_network:ball(A, R, N) -- atoll_network:ball(A, R + More, N) =:= [])},
            {"two balls of one radius are the same, or have nothing in common",
                ?FORALL({{N, A, B}, R}, {pairs(), radius()}, begin
                    {One, Other} = {atoll_network:ball(A, R, N), atoll_network:ball(B, R, N)},
                    One =:= Other orelse One -- Other =:= One
                end)},
            {"what is within a radius and what is beyond it is all",
                ?FORALL({{N, A, _}, R}, {pairs(), radius()}, begin
                    All = atoll_network:nodes(N),
                    Of = fun(Op) -> atoll_network:choose(A, All, {dist, Op, R}, N) end,
                    lists:sort(Of(le) ++ Of(gt)) =:= All andalso lists:sort(Of(lt) ++ Of(ge)) =:= All andalso
                        lists:sort(Of(eq) ++ Of(ne)) =:= All
                end)},
            {"the diameter and the granularity are the extremes",
                ?FORALL({N, _, _}, pairs(), begin
                    All = [far(A, B, N) || A <- atoll_network:nodes(N), B <- atoll_network:nodes(N), A =/= B],
                    {lists:min([9 | All]), lists:max([0 | All])} == {case All of [] -> 9; _ -> atoll_network:min_distance(N) end, atoll_network:max_distance(N)}
                end)},
            {"what is written to a file is read from it",
                ?FORALL({N, _, _}, pairs(), atoll_network_file:parse(unicode:characters_to_binary(atoll_network_file:text(N))) =:= {ok, N})}
        ]
    ].

far(A, B, Network) ->
    {ok, Distance} = atoll_network:distance(A, B, Network),
    Distance.

radius() -> oneof([0, 0.125, 0.25, 0.5, 1, float(0.0, 1.0)]).

%% A network, and two of its nodes.
pairs() ->
    ?LET(
        Network,
        ?SUCHTHAT(N, network(), atoll_network:nodes(N) =/= []),
        ?LET({A, B}, {oneof(atoll_network:nodes(Network)), oneof(atoll_network:nodes(Network))}, {Network, A, B})
    ).

network() ->
    ?LET(Shape, ?SIZED(Size, shape(min(Size, 30))), begin
        {Term, _} = numbered(Shape, 1),
        {ok, Network} = atoll_network:new(Term),
        Network
    end).

shape(0) -> leaf;
shape(Size) -> frequency([{1, leaf}, {4, {oneof([none, site, "a \"room\"", <<"r\x{e4}ck"/utf8>>]), ?LAZY(?LET(N, choose(1, 4), vector(N, shape(Size div N))))}}]).

numbered(leaf, N) -> {{node, list_to_atom("n" ++ integer_to_list(N) ++ "@h")}, N + 1};
numbered({Name, Shapes}, N) ->
    {Subs, Next} = lists:mapfoldl(fun numbered/2, N, Shapes),
    case Name of
        none -> {{network, Subs}, Next};
        _ -> {{network, Name, Subs}, Next}
    end.
