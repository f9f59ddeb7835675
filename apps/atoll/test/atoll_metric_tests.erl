%% SPDX-License-Identifier: Apache-2.0
%% Metrics of a program, beside what was written to them.
-module(atoll_metric_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, atoll_metric).

metric_test_() ->
    {foreach, fun begin_with/0, fun end_with/1, [
        fun(_) -> atoll_prop:test("each says what was written to it", says_what_was_written(), 300) end,
        {"what cannot be done is told", fun what_cannot_be_done_is_told/0},
        {"there are so many at most", fun there_are_so_many_at_most/0},
        {"what was made stays, also where there may be no more", {timeout, 30, fun what_was_made_stays/0}},
        {"nothing is lost when many write at once", fun nothing_is_lost/0},
        {"a meter knows the last minute", fun a_meter_knows_the_last_minute/0},
        {"percentiles are of the last minutes, and off by little", fun percentiles/0},
        {"a histogram that is made again begins anew", fun a_histogram_begins_anew/0},
        {"of what is deleted while it is read nothing stays", {timeout, 30, fun nothing_stays_of_what_is_deleted/0}},
        {"a counter of the program is read", fun a_counter_of_the_program_is_read/0},
        {"events of telemetry are counted and summed", {timeout, 30, fun telemetry/0}},
        {"telemetry takes nothing that is not its own", {timeout, 30, fun telemetry_takes_its_own/0}},
        {"writing costs little", fun writing_costs_little/0}
    ]}.

%% The table of a node that runs here already would do as well.
begin_with() ->
    undefined = ets:whereis(?M),
    ?M:create_table().

%% A case may have made it anew; then it ended with that.
end_with(ok) -> [true = ets:delete(?M) || ets:whereis(?M) =/= undefined].

says_what_was_written() ->
    Kind = oneof([counter, gauge, meter, histogram]),
    Step = oneof([{new, name(), Kind}, {add, name(), number()}, {set, name(), number()}, {record, name(), number()}, {delete, name()}]),
    ?FORALL(Steps, list(frequency([{1, Step}, {4, {add, name(), integer(0, 1000)}}, {2, {new, name(), Kind}}, {2, {record, name(), integer(0, 255)}}])), begin
        [ok = ?M:delete(Name) || Name <- ?M:names()],
        Model = lists:foldl(fun step/2, #{}, Steps),
        ?M:names() =:= lists:sort(maps:keys(Model)) andalso lists:all(fun({Name, {Of, Values}}) -> says(Of, Values, ?M:value(Name)) end, maps:to_list(Model))
    end).

name() -> oneof([a, b, 'c.d']).

step({new, Name, Kind}, Model) ->
    case Model of
        #{Name := {Kind, _}} -> ok = ?M:new(Name, Kind), Model;
        #{Name := _} -> {error, {is_there, Name}} = ?M:new(Name, Kind), Model;
        #{} -> ok = ?M:new(Name, Kind), Model#{Name => {Kind, []}}
    end;
step({delete, Name}, Model) ->
    ok = ?M:delete(Name),
    maps:remove(Name, Model);
step({How, Name, N}, Model) ->
    Fits = fits(How, N, maps:get(Name, Model, none)),
    case ?M:How(Name, N) of
        ok when Fits ->
            #{Name := {Kind, Values}} = Model,
            Model#{Name := {Kind, [{How, N} | Values]}};
        {error, Error} when not Fits ->
            _ = unicode:characters_to_binary(?M:format_error(Error)),
            Model
    end.

fits(add, N, {Kind, _}) when Kind =:= counter; Kind =:= meter -> is_integer(N) andalso N >= 0;
fits(add, _, {gauge, _}) -> true;
fits(set, _, {gauge, _}) -> true;
fits(record, N, {histogram, _}) -> is_integer(N) andalso N >= 0;
fits(_, _, _) -> false.

says(counter, Values, {ok, N}) -> N =:= lists:sum([By || {add, By} <- Values]);
says(meter, Values, {ok, #{count := N, rate := Rate}}) -> N =:= lists:sum([By || {add, By} <- Values]) andalso Rate =< N;
says(gauge, Values, {ok, N}) ->
    Expected = lists:foldr(fun({set, Is}, _) -> Is; ({add, By}, Was) -> Was + By end, 0, Values),
    abs(N - Expected) =< 1.0e-9 * (1 + lists:sum([abs(V) || {_, V} <- Values]));
says(histogram, [], {ok, Is}) -> Is =:= #{count => 0};
says(histogram, Values, {ok, #{count := Count, min := Min, max := Max, mean := Mean}}) ->
    All = [N || {record, N} <- Values],
    near(Min, lists:min(All)) andalso near(Max, lists:max(All)) andalso near(Mean, lists:sum(All) / length(All)) andalso Count =:= length(All).

near(A, B) -> abs(A - B) =< B / 128.

what_cannot_be_done_is_told() ->
    [?assertMatch({error, {bad_name, Name}}, ?M:new(Name, counter)) || Name <- ["orders", <<"orders">>, '', '1st', '<script>', 'a b', list_to_atom(lists:duplicate(61, $a)), 'größe', 7]],
    ok = ?M:new(list_to_atom(lists:duplicate(60, $a)), counter),
    [?assertEqual({error, {bad_kind, Kind}}, ?M:new(x, Kind)) || Kind <- [timer, {counters, x, 1}, {counters, counters:new(2, []), 3}, {counters, counters:new(2, []), 0}]],
    ?assertEqual({error, {no_metric, x}}, ?M:add(x, 1)),
    ?assertEqual({error, {no_metric, x}}, ?M:value(x)),
    ok = ?M:new(x, counter),
    [?assertEqual({error, {bad_value, x, N}}, ?M:add(x, N)) || N <- [-1, 1.5, a, 1 bsl 70]],
    ?assertEqual({error, {is_a, counter, x}}, ?M:set(x, 1)),
    ?assertEqual({error, {is_a, counter, x}}, ?M:record(x, 1)),
    ok = ?M:new(g, gauge),
    [?assertEqual({error, {bad_value, g, N}}, ?M:set(g, N)) || N <- [a, 1 bsl 2000]],
    %% The sum would be too large, and nothing was added.
    ok = ?M:set(g, 1.0e300),
    ?assertEqual({error, {bad_value, g, 1.0e300}}, ?M:add(g, 1.0e300)),
    {ok, Largest} = ?M:value(g),
    ?assert(Largest == 1.0e300),
    ?assertEqual({error, no_telemetry}, ?M:telemetry([a, b], [])),
    [?assertMatch({error, {bad_event, _}}, ?M:telemetry(Event, Of)) || {Event, Of} <- [{[], []}, {a, []}, {[a | b], []}, {["a"], []}, {[a], x}, {[a], lists:duplicate(11, b)}]],
    [?assert(is_binary(unicode:characters_to_binary(?M:format_error(Error)))) || Error <- [{bad_name, "x"}, {bad_kind, y}, {bad_event, z}, too_many, no_telemetry, not_running, {is_a, gauge, g}]],
    true = ets:delete(?M),
    ?assertEqual({[], []}, {?M:names(), ?M:readings()}),
    [?assertEqual({error, not_running}, Is) || Is <- [?M:new(x, counter), ?M:add(x, 1), ?M:value(x), ?M:delete(x)]],
    ok = ?M:create_table().

there_are_so_many_at_most() ->
    Made = [?M:new(list_to_atom("m" ++ integer_to_list(N)), counter) || N <- lists:seq(1, 205)],
    ?assertEqual(lists:duplicate(200, ok) ++ lists:duplicate(5, {error, too_many}), Made),
    ok = ?M:delete(m1),
    ok = ?M:new(another, gauge).

what_was_made_stays() ->
    %% Many who make the same ones at once take a place for each of them, and not more.
    Some = [list_to_atom("m" ++ integer_to_list(N)) || N <- lists:seq(1, 100)],
    [begin
        ok = at_once(fun() -> [ok = ?M:new(Name, histogram) || Name <- Some] end),
        [ok = ?M:delete(Name) || Name <- Some, _ <- [once, twice]]
    end || _ <- lists:seq(1, 20)],
    ?assertEqual([], ?M:names()),
    [ok = ?M:new(list_to_atom("m" ++ integer_to_list(N)), counter) || N <- lists:seq(1, 200)],
    %% There is no place for it, so nobody is told that there is one.
    ok = at_once(fun() -> [{error, too_many} = ?M:new(x, counter) || _ <- lists:seq(1, 3000)] end),
    ok = ?M:delete(m1),
    ?assertEqual([ok, {error, too_many}], [?M:new(Name, counter) || Name <- [x, y]]).

at_once(Fun) ->
    Pids = [spawn_monitor(Fun) || _ <- lists:seq(1, 4)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end || {Pid, Ref} <- Pids],
    ok.

nothing_is_lost() ->
    [ok = ?M:new(Kind, Kind) || Kind <- [counter, gauge, meter, histogram]],
    Times = 2000,
    ok = at_once(fun() -> lists:foreach(fun(N) ->
        ok = ?M:add(counter, 1), ok = ?M:add(gauge, 1), ok = ?M:add(meter, 1), ok = ?M:record(histogram, N)
    end, lists:seq(1, Times)) end),
    ?assertMatch([{ok, 8000}, {ok, 8000}, {ok, #{count := 8000}}, {ok, #{count := 8000}}], [?M:value(Kind) || Kind <- [counter, gauge, meter, histogram]]).

%% By the slots that it has, as if time had passed.
a_meter_knows_the_last_minute() ->
    ok = ?M:new(visits, meter),
    [{_, meter, {_, Slots}}] = ets:lookup(?M, visits),
    {ok, #{rate := Rate0}} = ?M:value(visits),
    ?assert(Rate0 == 0),
    Now = erlang:monotonic_time(second) div 5,
    %% 600 in each slot of an hour until now is 120 a second, and what is older counts no more.
    lists:foreach(fun(Slot) -> lists:foreach(fun(N) -> ok = ?M:marked(Slots, Slot, N) end, [500, 100]) end, lists:seq(Now - 720, Now - 1)),
    {ok, #{rate := Rate}} = ?M:value(visits),
    %% A slot may have ended meanwhile.
    ?assert(Rate =< 120 andalso Rate >= 90, Rate),
    %% Nothing came after it, so it is still where the last minute would be.
    ok = ?M:new(old, meter),
    [{_, meter, {_, Old}}] = ets:lookup(?M, old),
    lists:foreach(fun(Slot) -> ok = ?M:marked(Old, Slot, 600) end, lists:seq(Now - 28, Now - 17)),
    {ok, #{rate := Rate1}} = ?M:value(old),
    ?assert(Rate1 == 0, Rate1).

percentiles() ->
    ok = ?M:new(waits, histogram),
    lists:foreach(fun(N) -> ok = ?M:record(waits, N * 1000) end, lists:seq(1, 1000)),
    #{user_counter := 1000, user_p50 := P50, user_p99 := P99, user_max := Max} = waits(),
    [?assert(abs(Is - Should) =< Should / 256 + 1, {Is, Should}) || {Is, Should} <- [{P50, 500000}, {P99, 990000}, {Max, 1000000}]],
    %% Two minutes later these are over.
    ok = a_minute_passes(),
    ?assertEqual(#{user_counter => 1000}, waits()),
    ok = ?M:record(waits, 7),
    ?assertMatch(#{user_counter := 1001, user_p50 := 7, user_max := 7}, waits()),
    ok = a_minute_passes(),
    ?assertMatch(#{user_counter := 1001, user_p50 := 7}, waits()),
    ok = a_minute_passes(),
    ?assertEqual(#{user_counter => 1001}, waits()).

waits() -> maps:from_list([{Name, N} || {Name, <<"waits">>, N} <- ?M:readings()]).

%% By what was kept of the last readings, as if it were older.
a_minute_passes() ->
    [{Key, {Ref, {A, X}, {B, Y}}}] = ets:lookup(?M, {recent, waits}),
    true = ets:insert(?M, {Key, {Ref, {A - 60000, X}, {B - 60000, Y}}}),
    ok.

%% Who was at reading the old one keeps what that one had.
a_histogram_begins_anew() ->
    ok = ?M:new(waits, histogram),
    [ok = ?M:record(waits, N) || N <- [1, 2, 7, 7]],
    #{user_counter := 4} = waits(),
    ok = a_minute_passes(),
    Kept = ets:lookup(?M, {recent, waits}),
    ok = ?M:delete(waits),
    ok = ?M:new(waits, histogram),
    ok = ?M:record(waits, 7),
    true = ets:insert(?M, Kept),
    ?assertMatch(#{user_counter := 1, user_p50 := 7, user_mean := 7.0}, waits()),
    ok = a_minute_passes(),
    ?assertEqual(#{user_counter => 1}, waits()).

nothing_stays_of_what_is_deleted() ->
    Before = ets:tab2list(?M),
    {Pid, Ref} = spawn_monitor(fun read_until_told/0),
    lists:foreach(fun(N) ->
        Name = list_to_atom("h" ++ integer_to_list(N)),
        ok = ?M:new(Name, histogram),
        [ok = ?M:record(Name, V) || V <- lists:seq(N, N + 10)],
        ok = ?M:delete(Name)
    end, lists:seq(1, 1000)),
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    ?assertEqual(Before, ets:tab2list(?M)).

read_until_told() ->
    _ = ?M:readings(),
    receive stop -> ok after 0 -> read_until_told() end.

a_counter_of_the_program_is_read() ->
    Own = counters:new(3, []),
    ok = ?M:new(own, {counters, Own, 2}),
    ok = ?M:new(own, {counters, Own, 2}),
    ok = counters:add(Own, 2, 42),
    ?assertEqual({ok, 42}, ?M:value(own)),
    ?assertEqual([{user_counter, <<"own">>, 42}], ?M:readings()),
    ?assertEqual({error, {is_a, counters, own}}, ?M:add(own, 1)).

telemetry() ->
    ok = atoll_telemetry_probe:load(),
    try
        Event = [shop, order, stop],
        ok = ?M:telemetry(Event, [duration, items]),
        ?assertEqual(['shop.order.stop', 'shop.order.stop.duration', 'shop.order.stop.items'], ?M:names()),
        [ok = telemetry:execute(Event, Of, #{}) || Of <- [#{duration => 5, items => 2}, #{duration => 1.6}, #{duration => <<"long">>, items => -3}, #{}]],
        ok = telemetry:execute([shop, order, start], #{duration => 100}, #{}),
        ?assertEqual([{ok, 4}, {ok, 7}, {ok, 2}], [?M:value(Name) || Name <- ?M:names()]),
        %% Asked again, it is anew.
        ok = ?M:telemetry(Event, [items]),
        ?assertEqual([{ok, 0}, {ok, 0}], [?M:value(Name) || Name <- ?M:names()]),
        ok = telemetry:execute(Event, #{items => 1}, #{}),
        ?assertEqual([{ok, 1}, {ok, 1}], [?M:value(Name) || Name <- ?M:names()]),
        ok = ?M:telemetry_off(Event),
        ?assertEqual({[], []}, {?M:names(), telemetry:list_handlers([])}),
        ok = ?M:telemetry(Event, []),
        ok = ?M:stopped(),
        ?assertEqual([], telemetry:list_handlers([]))
    after
        atoll_telemetry_probe:unload()
    end.

telemetry_takes_its_own() ->
    ok = atoll_telemetry_probe:load(),
    try
        %% What the program has stays, and what was made for an event that is not counted goes.
        ok = ?M:new('shop.order.stop.duration', gauge),
        ok = ?M:set('shop.order.stop.duration', 7),
        ?assertEqual({error, {is_there, 'shop.order.stop.duration'}}, ?M:telemetry([shop, order, stop], [items, duration])),
        ?assertEqual({['shop.order.stop.duration'], {ok, 7}, []}, {?M:names(), ?M:value('shop.order.stop.duration'), telemetry:list_handlers([])}),
        ok = ?M:delete('shop.order.stop.duration'),
        %% A counter of the program counts on, and is there afterwards.
        ok = ?M:new('shop.sold', counter),
        ok = ?M:add('shop.sold', 5),
        ok = ?M:telemetry([shop, sold], []),
        ok = telemetry:execute([shop, sold], #{}, #{}),
        ok = ?M:telemetry_off([shop, sold]),
        ?assertEqual({ok, 6}, ?M:value('shop.sold')),
        ok = ?M:delete('shop.sold'),
        %% Two events have a counter in common, which the last one takes with it.
        [begin
            ok = ?M:telemetry([a, b], [c]),
            ok = ?M:telemetry([a, b, c], []),
            ok = ?M:telemetry_off(First),
            ok = ?M:add('a.b.c', 1),
            ok = ?M:telemetry_off(Second),
            ?assertEqual([], ?M:names())
        end || {First, Second} <- [{[a, b], [a, b, c]}, {[a, b, c], [a, b]}]],
        %% Twice the same is summed once.
        ok = ?M:telemetry([a, b], [c, c]),
        ok = telemetry:execute([a, b], #{c => 2}, #{}),
        ?assertEqual({ok, 2}, ?M:value('a.b.c')),
        %% A name that is none is told, and what was counted is counted on.
        [?assertMatch({error, {bad_name, _}}, ?M:telemetry(Event, Of)) || {Event, Of} <- [{[a, b], ['größe']}, {[a, b], [c, list_to_atom(lists:duplicate(60, $d))]}, {lists:duplicate(200, ab), []}, {['1st'], []}]],
        {error, TooLong} = ?M:telemetry(lists:duplicate(200, ab), []),
        ?assertMatch("\"ab.ab." ++ _, lists:flatten(?M:format_error(TooLong))),
        ?assertEqual({ok, 2}, ?M:value('a.b.c')),
        ok = ?M:telemetry_off([a, b]),
        %% One of two has a place.
        [ok = ?M:new(list_to_atom("m" ++ integer_to_list(N)), counter) || N <- lists:seq(1, 199)],
        ?assertEqual({error, too_many}, ?M:telemetry([m1], [a, b])),
        ?assertEqual(199, length(?M:names())),
        ok = ?M:new(x, counter)
    after
        atoll_telemetry_probe:unload()
    end.

%% A machine that is busy with other work is slower, but not by so much.
writing_costs_little() ->
    [ok = ?M:new(Kind, Kind) || Kind <- [counter, gauge, meter, histogram]],
    Times = lists:seq(1, 500),
    Ns = fun(Write) ->
        Began = erlang:monotonic_time(nanosecond),
        ok = lists:foreach(fun(_) -> ok = Write() end, Times),
        (erlang:monotonic_time(nanosecond) - Began) / length(Times)
    end,
    %% Of many that are so short that nobody else had the processor during one of them.
    Each = [{Kind, lists:min([Ns(Write) || _ <- lists:seq(1, 200)])} || {Kind, Write} <- [
        {counter, fun() -> ?M:add(counter, 1) end}, {gauge, fun() -> ?M:set(gauge, 1.5) end}, {meter, fun() -> ?M:add(meter, 1) end}, {histogram, fun() -> ?M:record(histogram, 12345) end}
    ]],
    ?debugFmt("nanoseconds to write: ~p", [Each]),
    [?assert(Ns0 < 3000, Each) || {_, Ns0} <- Each].
