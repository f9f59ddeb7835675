%% SPDX-License-Identifier: Apache-2.0
%% The module dist as programs know it: its examples, on the two networks that came with it, with
%% names and without, and what it refuses.
-module(dist_tests).

-include_lib("eunit/include/eunit.hrl").

dist_test_() ->
    {foreach, fun() -> atoll_test_file:temporary("dist_tests") end, fun stop/1,
        [fun(File) -> {Title, fun() -> with(Network, File, fun examples/0) end} end
         || {Title, Network} <- [{"its examples, with names", network(fun named/2)}, {"its examples, without names", network(fun unnamed/2)}]]
        ++ [
            fun(File) -> {"any process has the network", fun() -> with(network(fun named/2), File, fun elsewhere/0) end} end,
            fun(File) -> {"it is drawn", fun() -> with(network(fun named/2), File, fun() -> drawn(File) end) end} end,
            fun(File) -> {"what is wrong is told", fun() -> wrong(File) end} end
        ]}.

stop(File) ->
    ok = atoll_distance:declare(none),
    _ = file:delete(File),
    ok.

with(Network, File, Then) ->
    ok = file:write_file(File, io_lib:format("~p.~n", [Network])),
    ?assertEqual(ok, dist:init(File)),
    Then().

%% Two clusters of machines and one that is deep.
network(Net) ->
    Machine = fun(Name, People) -> Net(Name, [{node, list_to_atom(Person ++ "@" ++ Name)} || Person <- People]) end,
    Net("cloud", [
        Net("A", [
            Net("A1", [Machine("ash", ["Anne", "Brian", "Carol"]), Machine("bay", ["Derek", "Ed", "Fay", "Gus"])]),
            Net("A2", [Machine("cypress", ["Henrietta", "Ida", "Jo"])])
        ]),
        Net("B", [Machine("Thor", ["Aud", "Egil", "Nora"]), Machine("Zeus", ["Ada", "Kai"]), Net("B1", [Machine("Lug", ["Finn"])])]),
        Net("C", [Net("C1", [Net("C2", [Machine("C3", ["deep"])])])])
    ]).

named(Name, Subs) -> {network, list_to_atom(Name), Subs}.
unnamed(_Name, Subs) -> {network, Subs}.

examples() ->
    Anne = 'Anne@ash',
    ?assertEqual(17, length(dist:nodenames())),
    ?assertEqual(
        [0.0, 0.125, 0.25, 0.5, 1.0],
        [dist:distance(Anne, Other) || Other <- [Anne, 'Brian@ash', 'Derek@bay', 'Henrietta@cypress', 'Aud@Thor']]
    ),
    ?assertEqual({0.125, 1.0}, {dist:min_dist(), dist:max_dist()}),
    Near = [N || N <- dist:nodenames(), Host <- ["@ash", "@bay"], lists:suffix(Host, atom_to_list(N))],
    ?assertEqual({7, Near}, {length(Near), dist:choose_nodes(Anne, {dist, le, 0.25})}),
    Far = [N || N <- dist:nodenames(), Host <- ["@Thor", "@Zeus", "@Lug", "@C3"], lists:suffix(Host, atom_to_list(N))],
    ?assertEqual({7, Far}, {length(Far), dist:choose_nodes(Anne, {dist, gt, 0.5})}),
    ?assertEqual(['Henrietta@cypress', 'Ida@cypress', 'Jo@cypress'], dist:choose_nodes(Anne, [{dist, ge, 0.5}, {dist, ne, 1}])),
    ?assertEqual(['Brian@ash'], dist:choose_nodes(Anne, ['Aud@Thor', 'Brian@ash', 'no@body'], {dist, lt, 0.25})),
    ?assertEqual([], dist:choose_nodes('no@body', {dist, gt, 0})),
    ?assertEqual(Anne, dist:choose_node(Anne, {dist, eq, 0})),
    ?assertEqual(none, dist:choose_node(Anne, ['Aud@Thor'], {dist, le, 0.5})),
    ?assertEqual({error, {node_not_found, 'no@body'}}, dist:distance(Anne, 'no@body')),
    ?assertEqual({error, {node_not_found, 'no@body'}}, dist:distance('no@body', 'no@body')).

elsewhere() ->
    {_, Ref} = spawn_monitor(fun() -> exit(dist:max_dist()) end),
    receive {'DOWN', Ref, process, _, Answer} -> ?assertEqual(1.0, Answer) end.

drawn(File) ->
    ?assertEqual({ok, File}, dist:render(File)),
    {ok, Dot} = file:read_file(File),
    [?assertMatch({match, _}, re:run(Dot, Part)) || Part <- ["rankdir=LR", "\"Anne@ash\", shape=box", "\"cypress\""]],
    ?assertEqual({error, eisdir}, dist:render("/")).

wrong(File) ->
    ?assertError(dist_library_not_initialised, dist:nodenames()),
    ?assertError(dist_library_not_initialised, dist:choose_node(a, [a], {dist, eq, 0})),
    ?assertEqual({error, enoent}, dist:init("/nowhere/at/all")),
    ok = file:write_file(File, "{node, a}. {node, b}."),
    ?assertEqual({error, unconnected_graph}, dist:init(File)),
    ok = file:write_file(File, "{network, [{node, 7}]}."),
    ?assertMatch({error, {bad_network, "line 1: a node is named by an atom" ++ _}}, dist:init(File)),
    ok = file:write_file(File, "{node, a}."),
    ok = dist:init(File),
    ?assertEqual({0.0, 0.0}, {dist:max_dist(), dist:min_dist()}),
    ?assertError({bad_predicate, "a predicate is {dist,Op,Number}" ++ _}, dist:choose_nodes(a, {dist, near, 1})).
