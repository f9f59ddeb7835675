%% SPDX-License-Identifier: Apache-2.0
-module(atoll_sim_expect_tests).

-include_lib("eunit/include/eunit.hrl").

members_are_those_of_the_roster_and_of_nobody_without_one_test() ->
    Holds = fun(Members) -> atoll_sim_expect:holds(members, [{a, view([a, b])}, {b, view(Members)}], atoll_sim_expect:new()) end,
    ?assertEqual(true, Holds([b, a])),
    ?assertEqual({false, [{b, {lacks, [a]}, {has, [c]}}]}, Holds([b, c])),
    ?assertEqual({false, [{b, {lacks, all}}]}, Holds(off)),
    ?assertEqual({false, [{b, {lacks, all}}]}, Holds([])).

%% Whom it has for neighbours is no matter.
view(Members) -> #{neighbours => [a, b], members => Members}.
