%% SPDX-License-Identifier: Apache-2.0
%% Events reach who subscribed to them, and nobody else.
-module(atoll_events_tests).

-include_lib("eunit/include/eunit.hrl").

events_test_() ->
    {foreach, fun start/0, fun stop/1, [
        fun(_) -> {Title, Test} end
     || {Title, Test} <- [
            {"a subscriber hears the kinds it asked for, in order", fun hears_its_kinds/0},
            {"who subscribed twice hears once", fun hears_once/0},
            {"a part of a kind is heard alone, or with the whole once", fun hears_parts/0},
            {"what finds no room is dropped and counted, until something is taken", fun finds_no_room/0},
            {"the room of one is nothing to the others", fun has_its_own_room/0},
            {"after unsubscribing nothing is heard", fun unsubscribes/0},
            {"who has ended is forgotten", fun forgets/0},
            {"subscriptions outlive the process", fun survives/0},
            {"an event without subscribers goes nowhere, also without the process", fun unheard/0},
            {"telemetry is told of each with its numbers and when it was", fun telemetry/0},
            {"what takes work to measure is measured for telemetry alone", fun measures_for_telemetry_alone/0},
            {"a handler of telemetry that crashes is counted and harms nobody", fun a_bad_handler/0}
        ]
    ]}.

start() ->
    ok = atoll_events:create_table(),
    {ok, Pid} = atoll_events:start_link(),
    true = unlink(Pid),
    Pid.

stop(_) ->
    kill(whereis(atoll_events)),
    true = ets:delete(atoll_events).

kill(undefined) ->
    ok;
kill(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

hears_its_kinds() ->
    ok = atoll_events:subscribe([member_up, member_down]),
    ok = atoll_events:emit(member_up, #{node => a}),
    ok = atoll_events:emit(link_up, #{node => a}),
    ok = atoll_events:emit(member_down, #{node => a}),
    ?assertEqual([{member_up, #{node => a}}, {member_down, #{node => a}}], heard()).

hears_once() ->
    ok = atoll_events:subscribe([link_up]),
    ok = atoll_events:subscribe([link_up]),
    ok = atoll_events:emit(link_up, #{node => a}),
    ?assertEqual([{link_up, #{node => a}}], heard()).

hears_parts() ->
    ok = atoll_events:subscribe([{broadcast, news}]),
    ok = atoll_events:emit(broadcast, news, #{payload => 1}, #{}),
    ok = atoll_events:emit(broadcast, other, #{payload => 2}, #{}),
    ?assertEqual([{broadcast, #{payload => 1}}], heard()),
    ok = atoll_events:subscribe([broadcast]),
    ok = atoll_events:emit(broadcast, news, #{payload => 3}, #{}),
    ok = atoll_events:emit(broadcast, other, #{payload => 4}, #{}),
    ?assertEqual([{broadcast, #{payload => 3}}, {broadcast, #{payload => 4}}], heard()).

finds_no_room() ->
    Bound = atoll_events:bound(2),
    ok = atoll_events:subscribe([{broadcast, news}], Bound),
    Say = fun(N) -> ok = atoll_events:emit(broadcast, news, #{payload => N}, #{}) end,
    lists:foreach(Say, [1, 2, 3, 4]),
    ?assertEqual([{broadcast, #{payload => 1}}, {broadcast, #{payload => 2}}], heard()),
    ?assertEqual(2, atoll_events:dropped(Bound)),
    ?assertEqual([1, 0], [atoll_events:took(Bound), atoll_events:took(Bound)]),
    lists:foreach(Say, [5, 6, 7]),
    ?assertEqual([{broadcast, #{payload => 5}}, {broadcast, #{payload => 6}}], heard()),
    ?assertEqual(3, atoll_events:dropped(Bound)).

has_its_own_room() ->
    ok = atoll_events:subscribe([link_up]),
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        ok = atoll_events:subscribe([link_up], atoll_events:bound(1)),
        Self ! {self(), ready},
        receive stop -> exit({heard, length(heard())}) end
    end),
    receive {Pid, ready} -> ok end,
    lists:foreach(fun(N) -> ok = atoll_events:emit(link_up, #{node => N}) end, [a, b, c]),
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual({heard, 1}, Reason) end,
    ?assertEqual(3, length(heard())).

unsubscribes() ->
    ok = atoll_events:subscribe([link_up]),
    ok = atoll_events:subscribe([link_down], atoll_events:bound(1)),
    ok = atoll_events:unsubscribe(),
    ok = atoll_events:emit(link_up, #{node => a}),
    ok = atoll_events:emit(link_down, #{node => a}),
    ?assertEqual([], heard()).

forgets() ->
    Rows = ets:info(atoll_events, size),
    {Pid, Ref} = spawn_monitor(fun() ->
        ok = atoll_events:subscribe([link_up, link_down]),
        ok = atoll_events:subscribe([broadcast], atoll_events:bound(1))
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    end,
    forgotten(Pid, erlang:monotonic_time(millisecond) + 5000),
    ?assertEqual(Rows, ets:info(atoll_events, size)).

%% Its monitor may fire later than ours.
forgotten(Pid, Deadline) ->
    case sys:get_state(atoll_events) of
        #{Pid := _} ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            forgotten(Pid, Deadline);
        #{} ->
            ok
    end.

survives() ->
    ok = atoll_events:subscribe([link_up]),
    kill(whereis(atoll_events)),
    {ok, Pid} = atoll_events:start_link(),
    true = unlink(Pid),
    ok = atoll_events:emit(link_up, #{node => a}),
    ?assertEqual([{link_up, #{node => a}}], heard()),
    %% The new process forgets it, too.
    ok = atoll_events:unsubscribe(),
    ok = atoll_events:emit(link_up, #{node => b}),
    ?assertEqual([], heard()).

unheard() ->
    kill(whereis(atoll_events)),
    ?assertEqual(ok, atoll_events:emit(link_up, #{node => a})).

telemetry() ->
    with_telemetry(fun() ->
        ok = atoll_events:subscribe([link_up, link_down, broadcast]),
        Before = erlang:system_time(),
        ok = atoll_events:emit(link_up, #{node => a}),
        ok = atoll_events:emit(link_down, #{node => a}, #{duration_ms => 7}),
        ok = atoll_events:emit(broadcast, news, #{payload => x}, fun() -> #{bytes => 3} end),
        _ = sys:get_state(atoll_events),
        [
            {[atoll, link_up], #{system_time := T1} = M1, #{node := a}},
            {[atoll, link_down], #{system_time := T2, duration_ms := 7}, #{node := a}},
            {[atoll, broadcast], #{system_time := T3, bytes := 3}, #{payload := x}}
        ] = atoll_telemetry_probe:seen(),
        ?assertEqual(1, map_size(M1)),
        Times = [Before, T1, T2, T3, erlang:system_time()],
        ?assertEqual(lists:sort(Times), Times),
        ?assertEqual([{link_up, #{node => a}}, {link_down, #{node => a}}, {broadcast, #{payload => x}}], heard())
    end).

measures_for_telemetry_alone() ->
    ok = atoll_events:subscribe([link_up]),
    ?assertEqual(ok, atoll_events:emit(link_up, #{node => a}, fun() -> error(measured) end)).

a_bad_handler() ->
    with_telemetry(fun() ->
        true = exit(whereis(atoll_telemetry_probe), kill),
        ok = wait_until(fun() -> whereis(atoll_telemetry_probe) =:= undefined end),
        ok = atoll_events:emit(link_up, #{node => a}),
        _ = sys:get_state(atoll_events),
        ?assertEqual(1, atoll_events:dropped())
    end).

wait_until(Holds) ->
    case Holds() of
        true -> ok;
        false -> wait_until(Holds)
    end.

with_telemetry(Test) ->
    ok = atoll_telemetry_probe:load(),
    try
        Test()
    after
        atoll_telemetry_probe:unload()
    end.

heard() ->
    receive
        {atoll, Kind, Details} -> [{Kind, Details} | heard()]
    after 0 -> []
    end.
