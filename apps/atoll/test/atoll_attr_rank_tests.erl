%% SPDX-License-Identifier: Apache-2.0
%% In which order nodes are preferred.
-module(atoll_attr_rank_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, [{a, #{mem => 100}}, {b, #{mem => 95}}, {c, #{mem => 50}}, {d, #{mem => undefined}}, {e, #{}}]).

without_a_rank_all_are_equal_test() ->
    ?assertEqual([[a, b, c, d, e]], atoll_attr_rank:tiers(?NODES, none, 0.1, infinity)),
    ?assertEqual([], atoll_attr_rank:tiers([], none, 0.1, infinity)).

by_an_attribute_with_what_is_unknown_last_test() ->
    ?assertEqual([[a, b], [c], [d, e]], atoll_attr_rank:tiers(?NODES, {most, mem}, 0.1, infinity)),
    ?assertEqual([[c], [b, a], [d, e]], atoll_attr_rank:tiers(?NODES, {least, mem}, 0.1, infinity)),
    ?assertEqual([[a], [b], [c], [d, e]], atoll_attr_rank:tiers(?NODES, {most, mem}, 0, infinity)).

by_distance_test() ->
    Distance = #{a => 0.5, b => 0.125, c => 0, d => 0.13},
    Tiers = [[c], [b, d], [a], [e]],
    ?assertEqual(Tiers, atoll_attr_rank:tiers(?NODES, {nearest, Distance}, 0.1, infinity)),
    ?assertEqual(Tiers, atoll_attr_rank:tiers(?NODES, {nearest, fun(N) -> maps:get(N, Distance, {error, who}) end}, 0.1, infinity)).

a_ball_is_closed_and_has_nobody_unknown_test() ->
    Distance = #{a => 0.5, b => 0.25, c => 0.125},
    ?assertEqual([[c], [b]], atoll_attr_rank:tiers(?NODES, {nearest, Distance}, 0, 0.25)),
    ?assertEqual([[a], [b]], atoll_attr_rank:tiers(?NODES, {most, mem}, 0, 95)).

%% Whatever a node says of itself, and whatever slack there is.
no_number_is_too_large_to_be_ranked_test() ->
    Huge = [1 bsl 1100, -(1 bsl 1100), 1.7e308, -1.7e308],
    Nodes = [{a, #{q => 1.0e150}}, {b, #{q => 1}} | [{c, #{q => Q}} || Q <- Huge]],
    [
        ?assertEqual(Tiers, atoll_attr_rank:tiers(Nodes, Rank, Slack, infinity))
     || {Rank, Slack, Tiers} <- [
            {{most, q}, 0.1, [[a], [b], [c, c, c, c]]},
            {{least, q}, 0.1, [[b], [a], [c, c, c, c]]},
            {{most, q}, 1.7e308, [[a, b], [c, c, c, c]]},
            {{least, q}, 1 bsl 1100, [[b, a], [c, c, c, c]]},
            {{nearest, fun(_) -> 1 bsl 1100 end}, 0.1, [[a, b, c, c, c, c]]}
        ]
    ],
    ?assertEqual([[a], [b]], atoll_attr_rank:tiers(Nodes, {most, q}, 0.1, -1.7e308)).

what_is_a_rank_test() ->
    [?assert(atoll_attr_rank:is_rank(R)) || R <- [none, {least, a}, {most, a}, {nearest, #{}}, {nearest, fun(_) -> 1 end}]],
    [?assertNot(atoll_attr_rank:is_rank(R)) || R <- [a, {least, "a"}, {nearest, 1}, {nearest, fun() -> 1 end}]],
    ?assertEqual([a], atoll_attr_rank:name({most, a})),
    ?assertEqual([], atoll_attr_rank:name(none)).
