%% SPDX-License-Identifier: Apache-2.0
%% Locks: one holder, and nobody waits in a circle.
-module(atoll_group_lock_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HOLDER, {5, n1, 0}).
-define(OLDER, {2, n2, 0}).
-define(OLD, {4, n3, 0}).
-define(YOUNGER, {9, n2, 0}).

holder_waits_and_dies_test() ->
    {granted, L1} = atoll_group_lock:request(?HOLDER, atoll_group_lock:new()),
    ?assertMatch({die, _}, atoll_group_lock:request(?YOUNGER, L1)),
    {waiting, L2} = atoll_group_lock:request(?OLDER, L1),
    ?assertMatch({granted, L2}, atoll_group_lock:request(?HOLDER, L2)),
    ?assertMatch({waiting, L2}, atoll_group_lock:request(?OLDER, L2)).

the_youngest_that_waits_is_next_test() ->
    {granted, L1} = atoll_group_lock:request(?HOLDER, atoll_group_lock:new()),
    {waiting, L2} = atoll_group_lock:request(?OLDER, L1),
    {waiting, L3} = atoll_group_lock:request(?OLD, L2),
    {{granted, ?OLD}, L4} = atoll_group_lock:release(?HOLDER, L3),
    {{granted, ?OLDER}, L5} = atoll_group_lock:release(?OLD, L4),
    ?assertMatch({free, _}, atoll_group_lock:release(?OLDER, L5)).

who_stops_waiting_is_passed_over_test() ->
    {granted, L1} = atoll_group_lock:request(?HOLDER, atoll_group_lock:new()),
    {waiting, L2} = atoll_group_lock:request(?OLDER, L1),
    {unchanged, L3} = atoll_group_lock:release(?OLDER, L2),
    ?assertMatch({free, _}, atoll_group_lock:release(?HOLDER, L3)).

at_most_64_wait_test() ->
    {granted, L1} = atoll_group_lock:request({1000, n1, 0}, atoll_group_lock:new()),
    Full = lists:foldl(
        fun(N, L) ->
            {waiting, Next} = atoll_group_lock:request({N, n2, 0}, L),
            Next
        end,
        L1,
        lists:seq(1, 64)
    ),
    ?assertMatch({die, Full}, atoll_group_lock:request({65, n2, 0}, Full)).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_waits(), 2000).

%% Whatever is asked and released, everybody who waits is older than the holder,
%% and somebody who waits has somebody to wait for.
prop_waits() ->
    ?FORALL(
        Deeds,
        list({oneof([request, release]), {choose(1, 20), oneof([n1, n2, n3]), 0}}),
        holds(Deeds, atoll_group_lock:new())
    ).

holds([], _Lock) ->
    true;
holds([{Deed, Stamp} | Deeds], Lock0) ->
    {_, Lock} = atoll_group_lock:Deed(Stamp, Lock0),
    case {atoll_group_lock:holder(Lock), atoll_group_lock:waiting(Lock)} of
        {none, Waiting} -> Waiting =:= [];
        {Holder, Waiting} -> lists:all(fun(W) -> W < Holder end, Waiting)
    end andalso holds(Deeds, Lock).
