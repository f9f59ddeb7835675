%% SPDX-License-Identifier: Apache-2.0
%% Who goes first, and who keeps a name.
-module(atoll_name_rules_tests).

-include_lib("eunit/include/eunit.hrl").

-define(R, atoll_name_rules).

nodes_are_in_one_order_for_a_name_test() ->
    Nodes = [n1, n2, n3, n4, n5],
    Orders = [lists:sort(fun(A, B) -> ?R:outranks(A, B, Name) end, Nodes) || Name <- lists:seq(1, 100)],
    ?assertEqual([false], lists:usort([?R:outranks(N, N, x) || N <- Nodes])),
    ?assertEqual(
        [true],
        lists:usort([?R:outranks(A, B, x) =/= ?R:outranks(B, A, x) || A <- Nodes, B <- Nodes, A =/= B])
    ),
    %% Different ones for different names: each is the first of some.
    ?assertEqual(Nodes, lists:usort([hd(Order) || Order <- Orders])).

side(Owner, Ref, Meta) -> #{owner => Owner, ref => Ref, pid => self(), meta => Meta}.

chance_is_the_same_from_both_ends_test() ->
    Sides = [side(Owner, Ref, none) || Owner <- [n1, n2, n3], Ref <- lists:seq(1, 10)],
    [
        ?assertNotEqual(?R:judge(random_exit, A, B), ?R:judge(random_exit, B, A))
     || A <- Sides, B <- Sides, A =/= B
    ].

each_rule_test() ->
    A = side(n1, 1, 5),
    B = side(n2, 1, 7),
    {Winner, exit} = ?R:judge(random_exit, A, B),
    ?assertEqual({Winner, notify}, ?R:judge(random_notify, A, B)),
    ?assertEqual({none, notify}, ?R:judge(notify_all, A, B)),
    ?assertEqual({first, notify}, ?R:judge({keep, min}, A, B)),
    ?assertEqual({second, notify}, ?R:judge({keep, max}, A, B)),
    ?assertEqual({Winner, notify}, ?R:judge({keep, max}, A, B#{meta := 5})),
    ?assertEqual({ask, m, f, [{self(), 5}, {self(), 7}]}, ?R:judge({fn, m, f}, A, B)).

%% As `global' has it: the name's own rule, and its words.
names_of_global_have_their_own_rule_test() ->
    Side = fun(Rule) -> side(n1, 1, ?R:as_global(Rule)) end,
    Rival = side(n2, 1, ?R:as_global(none)),
    ?assertEqual({none, notify}, ?R:judge(random_exit, Side(notify_all), Rival)),
    ?assertMatch({_, notify}, ?R:judge(random_exit, Side(random_notify), Rival)),
    ?assertEqual(?R:judge(notify_all, Side(none), Rival), ?R:judge(notify_all, side(n1, 1, a), Rival)),
    ?assertEqual({ask, m, f, [self(), self()]}, ?R:judge(random_exit, Side({call, m, f}), Rival)),
    %% The group's function sees no metadata but the program's.
    ?assertEqual({ask, m, f, [{self(), undefined}, {self(), 5}]}, ?R:judge({fn, m, f}, Side(none), side(n2, 1, 5))),
    Told = fun(Rule, Winner) -> ?R:told(?R:as_global(Rule), g, name, Winner, other) end,
    ?assertEqual({ok, {global_name_conflict, name}}, Told(random_notify, winner)),
    ?assertEqual({ok, {global_name_conflict, name, other}}, Told(notify_all, none)),
    ?assertEqual(none, Told({call, m, f}, winner)),
    ?assertEqual({ok, {name_conflict, g, name, winner}}, ?R:told(meta, g, name, winner, other)),
    ?assertEqual([undefined, meta], [?R:users(M) || M <- [?R:as_global(none), meta]]).

what_is_a_rule_test() ->
    Rules = [random_exit, random_notify, notify_all, {keep, min}, {keep, max}, {fn, m, f}],
    ?assertEqual([true], lists:usort([?R:is_rule(R) || R <- Rules])),
    ?assertEqual([false], lists:usort([?R:is_rule(R) || R <- [x, {keep, x}, {fn, m, "f"}, {fn, m}]])).
