%% SPDX-License-Identifier: Apache-2.0
-module(atoll_dist_router_tests).

-include_lib("eunit/include/eunit.hrl").

%% A way around nodes: the first of these with none of them on it.
find(Ways) ->
    fun(Names) ->
        case [Way || Way <- Ways, Way -- Names =:= Way] of
            [Way | _] -> {ok, Way};
            [] -> {error, {around, Names}}
        end
    end.

silent(Between) -> {[<<"a">>] ++ Between ++ [<<"b">>], {silent, <<"b">>}}.

a_path_that_fell_silent_is_gone_around_altogether_where_that_can_be_test() ->
    Ways = [[<<"g1">>, <<"g3">>], [<<"g1">>, <<"g4">>], [<<"g2">>, <<"g4">>]],
    ?assertEqual({ok, [<<"g2">>, <<"g4">>]}, atoll_dist_router:around(find(Ways), [silent([<<"g1">>, <<"g3">>])])).

a_far_node_that_fell_silent_leaves_the_only_near_one_in_use_test() ->
    Ways = [[<<"g1">>, <<"g3">>], [<<"g1">>, <<"g4">>]],
    ?assertEqual({ok, [<<"g1">>, <<"g4">>]}, atoll_dist_router:around(find(Ways), [silent([<<"g1">>, <<"g3">>])])).

a_near_node_that_fell_silent_leaves_the_only_far_one_in_use_test() ->
    Ways = [[<<"g1">>, <<"g3">>], [<<"g2">>, <<"g3">>]],
    ?assertEqual({ok, [<<"g2">>, <<"g3">>]}, atoll_dist_router:around(find(Ways), [silent([<<"g1">>, <<"g3">>])])).

who_said_what_is_lost_is_avoided_alone_and_always_test() ->
    Lost = {[<<"a">>, <<"g1">>, <<"g3">>, <<"b">>], {path_lost, {<<"g1">>, link_down, <<"g3">>}}},
    Ways = [[<<"g1">>, <<"g3">>], [<<"g1">>, <<"g4">>]],
    ?assertEqual({ok, [<<"g1">>, <<"g4">>]}, atoll_dist_router:around(find(Ways), [Lost])),
    ?assertEqual({error, {around, [<<"g3">>]}}, atoll_dist_router:around(find([[<<"g1">>, <<"g3">>]]), [Lost])).

without_any_way_it_is_said_what_stands_in_the_way_of_all_test() ->
    ?assertEqual({error, {around, [<<"g1">>, <<"g3">>]}}, atoll_dist_router:around(find([]), [silent([<<"g1">>, <<"g3">>])])).

%% Around all, all but the nearest one, and that one alone: three questions, and nobody answers.
all_that_is_asked_for_one_path_has_one_deadline_test_() ->
    {setup, fun mute/0, fun unmute/1, fun(_) ->
        %% What a busy machine adds, it does not add to all.
        {timeout, 60, ?_assert(lists:any(fun(_) -> until_nobody_answered() < 1000 end, lists:seq(1, 5)))}
    end}.

until_nobody_answered() ->
    Ask = atoll_dist_router:asker('b@127.0.0.1', salt, 500),
    {Us, Answer} = timer:tc(fun() -> atoll_dist_router:around(fun(_Texts) -> Ask([]) end, [silent([<<"g1">>, <<"g3">>])]) end),
    ?assertMatch({error, {no_answer, "who knows the ways does not answer"}}, Answer),
    ?assert(Us >= 400000, Us),
    Us div 1000.

mute() ->
    Before = persistent_term:get(atoll_dist_router, none),
    Pid = spawn(fun() -> receive stop -> ok end end),
    true = register(?MODULE, Pid),
    ok = atoll_dist_router:set(?MODULE),
    {Pid, Before}.

unmute({Pid, Before}) ->
    ok = atoll_dist_router:set(Before),
    Pid ! stop.
