%% SPDX-License-Identifier: Apache-2.0
-module(subscribers_gate_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 5000).

gate_test_() ->
    {foreach, fun() -> ok = subscribers_gate:new(2) end, fun(_) -> true = ets:delete(subscribers_gate) end, [
        fun one_more_than_may_be_within_is_told_at_once/0,
        fun the_place_of_one_that_was_killed_within_is_free_again/0,
        fun who_was_killed_right_after_another_was_refused_makes_room_a_while_later/0,
        fun what_is_counted_is_told/0
    ]}.

caller() ->
    Self = self(),
    Pid = spawn(fun() ->
        Self ! {self(), subscribers_gate:enter()},
        receive leave -> ok = subscribers_gate:leave() end,
        Self ! {self(), left}
    end),
    {Pid, receive {Pid, Answer} -> Answer after ?MS -> error(silent) end}.

one_more_than_may_be_within_is_told_at_once() ->
    {A, ok} = caller(),
    {_B, ok} = caller(),
    ?assertMatch({_, {full, 2}}, caller()),
    ?assertEqual(2, subscribers_gate:within()),
    A ! leave,
    receive {A, left} -> ok after ?MS -> error(silent) end,
    ?assertMatch({_, ok}, caller()).

the_place_of_one_that_was_killed_within_is_free_again() ->
    {A, ok} = caller(),
    {_B, ok} = caller(),
    Ref = monitor(process, A),
    true = exit(A, kill),
    receive {'DOWN', Ref, process, A, killed} -> ok end,
    ?assertMatch({_, ok}, caller()),
    ?assertMatch({_, {full, 2}}, caller()).

%% The one that was refused has looked already, and not found it.
who_was_killed_right_after_another_was_refused_makes_room_a_while_later() ->
    {A, ok} = caller(),
    {_B, ok} = caller(),
    {_, {full, 2}} = caller(),
    Ref = monitor(process, A),
    true = exit(A, kill),
    receive {'DOWN', Ref, process, A, killed} -> ok end,
    ?assertEqual(ok, until_let_in(erlang:monotonic_time(millisecond) + ?MS)).

until_let_in(Deadline) ->
    case {caller(), erlang:monotonic_time(millisecond) < Deadline} of
        {{_, {full, 2}}, true} -> until_let_in(Deadline);
        {{_, Answer}, _} -> Answer
    end.

what_is_counted_is_told() ->
    ok = subscribers_gate:count(timed_out),
    ok = subscribers_gate:count(lost),
    ok = subscribers_gate:count(lost),
    ?assertMatch(#{timed_out := 1, lost := 2, overloaded := 0}, subscribers_gate:counts()).

one_without_a_service_is_none_test() ->
    ?assertEqual(none, subscribers_gate:enter()),
    ?assertEqual(ok, subscribers_gate:leave()).
