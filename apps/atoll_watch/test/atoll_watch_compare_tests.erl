%% SPDX-License-Identifier: Apache-2.0
%% What is wrong between nodes, beside nodes that were made so.
-module(atoll_watch_compare_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, atoll_watch_compare).

properties_test_() ->
    atoll_prop:tests([
        {a_cut_is_one_finding_of_the_nodes_that_it_is_between, a_cut_is_one_finding(), 500},
        {pairs_are_those_that_a_third_one_is_with, pairs_are_those_that_a_third_one_is_with(), 2000},
        {a_module_has_as_many_versions_as_there_are, a_module_has_as_many_versions(), 500}
    ]).

facts() ->
    #{otp => <<"25">>, cookie => 1, flags => [{net_ticktime, <<"60">>}, {dist_flags, <<"7">>}], mesh => none, names => [], modules => [], code => 0}.

about(Node, Facts) ->
    #{modules := Modules} = All = maps:merge(facts(), Facts),
    #{node => Node, state => up, readings => #{}, facts => All#{code := erlang:phash2(Modules)}}.

all(Abouts) -> [{Kind, Of, N, Nodes} || Kind <- ?C:kinds(), {Of, N, Nodes, Said} <- ?C:findings(Kind, Abouts), is_binary(Said)].

nodes_that_are_alike_have_nothing_test() ->
    ?assertEqual([], all([])),
    ?assertEqual([], all([about(N, #{mesh => [a, b, c] -- [N], modules => [{<<"m">>, 1}], names => [{<<"n">>, 5, a}]}) || N <- [a, b, c]])).

%% Who is not up says nothing.
each_is_found_once_test() ->
    Cases = [
        {[{otp, none, 2, [c]}], #{otp => <<"26">>}},
        {[{cookies, none, 2, [c]}], #{cookie => 2}},
        {[{flags, net_ticktime, 2, [c]}], #{flags => [{net_ticktime, <<"15">>}]}},
        {[{flags, dist_flags, 2, [c]}], #{flags => [{dist_flags, <<"8">>}]}},
        %% The flags of another release are others, and so is its code.
        {[{otp, none, 2, [c]}], #{otp => <<"26">>, flags => [{net_ticktime, <<"60">>}, {dist_flags, <<"8">>}], modules => [{<<"lists">>, 2}]}},
        {[{modules, <<"lists">>, 2, [c]}], #{modules => [{<<"lists">>, 2}, {<<"other">>, 3}]}},
        {[{names, <<"n">>, 2, [a, c]}], #{names => [{<<"n">>, 9, c}]}}
    ],
    [begin
        Abouts = [about(N, #{modules => [{<<"lists">>, 1}], names => [{<<"n">>, 5, a}]}) || N <- [a, b]],
        ?assertEqual({Odd, Expected}, {Odd, all(Abouts ++ [about(c, Odd)])}),
        ?assertEqual([], all(Abouts ++ [(about(c, Odd))#{state := silent}]))
     end || {Expected, Odd} <- Cases].

what_is_found_is_told_test() ->
    Said = fun(Kind, Abouts) -> [Text || {_, _, _, Text} <- ?C:findings(Kind, Abouts)] end,
    Many = [about(list_to_atom([$n | integer_to_list(N)]), #{}) || N <- lists:seq(1, 6)],
    ?assertEqual([<<"60 on n1, n2, n3, n4 and 2 more; 15 on z">>], Said(flags, Many ++ [about(z, #{flags => [{net_ticktime, <<"15">>}]})])),
    ?assertEqual([<<"2 cookies: another one on z">>], Said(cookies, Many ++ [about(z, #{cookie => 2})])),
    ?assertEqual([<<"2 processes have it: one on a, for a, b; one on c, for c">>],
                 Said(names, [about(a, #{names => [{<<"n">>, 5, a}]}), about(b, #{names => [{<<"n">>, 5, a}]}), about(c, #{names => [{<<"n">>, 9, c}]})])).

many_modules_are_one_finding_test() ->
    Of = fun(Version, N) -> [{integer_to_binary(M), Version} || M <- lists:seq(1, N)] end,
    Two = fun(N) -> ?C:findings(modules, [about(a, #{modules => Of(1, N)}), about(b, #{modules => Of(2, N)})]) end,
    ?assertEqual(20, length(Two(20))),
    ?assertMatch([{<<"many modules">>, 21, [b], <<"21 modules: ", _/binary>>}], Two(21)).

%% A sees B and C, and these do not see each other.
overlapping_partition_test() ->
    ?assertMatch([{b, 1, [b, c], <<"1 pairs of 2 nodes are not connected, as b and c">>}], ?C:findings(partition, [about(a, #{mesh => [b, c]}), about(b, #{mesh => [a]}), about(c, #{mesh => [a]})])),
    %% One side knows yet, and nodes that are not meant to be a mesh.
    ?assertEqual([], ?C:findings(partition, [about(a, #{mesh => [b, c]}), about(b, #{mesh => [a, c]}), about(c, #{mesh => [a]})])),
    ?assertEqual([], ?C:findings(partition, [about(a, #{}), about(b, #{}), about(c, #{})])),
    ?assertEqual([], ?C:findings(partition, [about(a, #{mesh => [b, c]}), about(b, #{mesh => [a]}), about(c, #{mesh => none})])),
    %% Those who have nobody in common may be two clusters.
    ?assertEqual([], ?C:findings(partition, [about(a, #{mesh => [b]}), about(b, #{mesh => [a]}), about(c, #{mesh => [d]}), about(d, #{mesh => [c]})])).

%% A bridge that all see, and others on two sides.
a_cut_is_one_finding() ->
    ?FORALL({Left, Right}, {integer(1, 6), integer(1, 6)}, begin
        [Ls, Rs] = [[list_to_atom(Side ++ integer_to_list(N)) || N <- lists:seq(1, Count)] || {Side, Count} <- [{"l", Left}, {"r", Right}]],
        Mesh = fun(N, Same) -> about(N, #{mesh => [bridge | Same -- [N]]}) end,
        [{_, Pairs, Nodes, _}] = ?C:findings(partition, [about(bridge, #{mesh => Ls ++ Rs}) | [Mesh(N, Ls) || N <- Ls] ++ [Mesh(N, Rs) || N <- Rs]]),
        Pairs =:= Left * Right andalso lists:sort(Nodes) =:= lists:sort(Ls ++ Rs)
    end).

%% Each pair of nodes by itself, whoever knows of whom.
pairs_are_those_that_a_third_one_is_with() ->
    Names = [a, b, c, d, e, f, g],
    ?FORALL(Meshes, list({oneof(Names), list(oneof(Names))}), begin
        With = [{Node, lists:usort(Mesh) -- [Node]} || {Node, Mesh} <- lists:ukeysort(1, Meshes)],
        Pairs = [{A, B} || {A, As} <- With, {B, Bs} <- With, A < B, not lists:member(B, As), not lists:member(A, Bs),
                           lists:any(fun({C, _}) -> lists:member(C, As) andalso lists:member(C, Bs) end, With)],
        Expected = lists:sort([begin
            Part = [Pair || {A, _} = Pair <- Pairs, lists:member(A, Nodes)],
            Most = [Node || {_, Node} <- lists:sort([{-length([N || {A, B} <- Part, N <- [A, B], N =:= Node]), Node} || Node <- Nodes])],
            {A, B} = hd(Part),
            {hd(Most), length(Part), Most, iolist_to_binary(io_lib:format("~b pairs of ~b nodes are not connected, as ~ts and ~ts", [length(Part), length(Nodes), A, B]))}
        end || Nodes <- lists:usort([reached([A], Pairs) || {A, _} <- Pairs])]),
        ?C:findings(partition, [about(Node, #{mesh => Mesh}) || {Node, Mesh} <- With]) =:= Expected
    end).

reached(Nodes, Pairs) ->
    case lists:usort(Nodes ++ [N || {A, B} <- Pairs, lists:member(A, Nodes) orelse lists:member(B, Nodes), N <- [A, B]]) of
        Nodes -> Nodes;
        More -> reached(More, Pairs)
    end.

a_module_has_as_many_versions() ->
    ?FORALL(Versions, list(list({oneof([<<"m">>, <<"n">>]), integer(1, 3)})), begin
        Modules = lists:sort([{list_to_atom(integer_to_list(N)), lists:ukeysort(1, Of)} || {N, Of} <- lists:enumerate(Versions)]),
        Have = fun(Module, Version) -> [Node || {Node, Of} <- Modules, lists:member({Module, Version}, Of)] end,
        Expected = [{Module, length(Each), lists:append(lists:reverse(Fewer))}
                    || Module <- [<<"m">>, <<"n">>], [_ | [_ | _] = Fewer] = Each <- [lists:sort(fun(As, Bs) -> length(As) >= length(Bs) end, [Nodes || V <- [1, 2, 3], [_ | _] = Nodes <- [Have(Module, V)]])]],
        [{Module, N, Nodes} || {Module, N, Nodes, _} <- ?C:findings(modules, [about(Node, #{modules => Of}) || {Node, Of} <- Modules])] =:= Expected
    end).

clock(Node, Offset, Uncertainty) -> (about(Node, #{}))#{readings := #{clock_offset => Offset, clock_uncertainty => Uncertainty}}.

a_clock_is_beside_that_of_most_and_what_is_uncertain_does_not_count_test() ->
    ?assertEqual([], ?C:findings(clocks, [clock(a, 5000, 1), clock(b, 5001, 1), clock(c, 5000.5, 1)])),
    ?assertMatch([{<<"c">>, Off, [c], <<"3.0 s behind the clock of most nodes, to 0.110 s">>}] when Off == 2890, ?C:findings(clocks, [clock(a, 5000, 10), clock(b, 5000, 10), clock(c, 2000, 100)])),
    ?assertEqual([], ?C:findings(clocks, [clock(a, 0, 1), clock(b, 0, 1), clock(c, 3000, 4000)])),
    ?assertMatch([{<<"b">>, _, [b], _}], ?C:findings(clocks, [clock(a, 0, 1), clock(b, 3000, 1)])).

a_dump_is_one_however_many_nodes_would_write_it_test() ->
    At = fun(Node, File) -> (about(Node, #{}))#{readings := #{{crash_dump, File} => 700}} end,
    ?assertEqual([{<<"h:/x">>, 700, [a, b], <<"in the directory of a, b">>}, {<<"h:/y">>, 700, [c], <<"in the directory of c">>}],
                 ?C:findings(dumps, [At(a, <<"h:/x">>), At(b, <<"h:/x">>), At(c, <<"h:/y">>)])).
