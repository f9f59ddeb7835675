%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_pace_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

plan() -> #{rate => 100, start_ns => 5000000000, from_ms => 50, until_ms => 1000}.

at(Ms) -> 5000000000 + Ms * 1000000.

operations_begin_at_the_rate_test() ->
    ?assertEqual({'begin', at(0), out}, atoll_bench_pace:decide(1, at(0), plan())),
    ?assertEqual({'begin', at(40), out}, atoll_bench_pace:decide(5, at(3), plan())),
    ?assertEqual({'begin', at(50), in}, atoll_bench_pace:decide(6, at(3), plan())),
    ?assertEqual({'begin', at(990), in}, atoll_bench_pace:decide(100, at(3), plan())),
    ?assertEqual(over, atoll_bench_pace:decide(101, at(3), plan())).

what_nobody_took_in_time_is_shed_test() ->
    ?assertEqual({'begin', at(100), in}, atoll_bench_pace:decide(11, at(350), plan())),
    ?assertEqual({shed, in}, atoll_bench_pace:decide(11, at(351), plan())),
    ?assertEqual({shed, out}, atoll_bench_pace:decide(1, at(351), plan())),
    ?assertEqual(over, atoll_bench_pace:decide(101, at(9000), plan())).

a_worker_gets_its_operation_when_its_time_has_come_test() ->
    Start = erlang:monotonic_time(millisecond) + 30,
    Pace = atoll_bench_pace:new((plan())#{start_ns := Start * 1000000}),
    {'begin', First, out} = atoll_bench_pace:next(Pace),
    ?assertEqual(Start * 1000000, First),
    ?assert(erlang:monotonic_time(nanosecond) >= First),
    {'begin', Second, out} = atoll_bench_pace:next(Pace),
    ?assertEqual(10000000, Second - First).

in_a_closed_loop_an_operation_begins_when_it_is_asked_for_until_the_end_test() ->
    Closed = (plan())#{rate := closed},
    Decide = fun(Ms) -> atoll_bench_pace:decide(1000000, at(Ms), Closed) end,
    ?assertEqual([{'begin', at(49), out}, {'begin', at(50), in}, {'begin', at(999), in}, over], [Decide(Ms) || Ms <- [49, 50, 999, 1000]]).

of_a_closed_loop_what_is_offered_is_what_began_in_the_window_test() ->
    Now = erlang:monotonic_time(nanosecond),
    Pace = fun(From) -> atoll_bench_pace:new(#{rate => closed, start_ns => Now, from_ms => From, until_ms => From + 600000}) end,
    [
        begin
            P = Pace(From),
            ?assertMatch([{'begin', _, _}, {'begin', _, _}], [atoll_bench_pace:next(P) || _ <- [1, 2]]),
            ?assertEqual(Offered, atoll_bench_pace:offered(P, 600000))
        end
     || {From, Offered} <- [{0, 2}, {600000, 0}]
    ].

as_many_are_offered_as_begin_in_the_window_test_() ->
    atoll_prop:test(?FUNCTION_NAME, offered(), 200).

offered() ->
    ?FORALL({Rate, From, Length}, {integer(1, 3000), integer(0, 50), integer(1, 200)}, begin
        Plan = #{rate => Rate, start_ns => 0, from_ms => From, until_ms => From + Length},
        %% None is late at time 0.
        Decisions = [atoll_bench_pace:decide(N, 0, Plan) || N <- lists:seq(1, Rate * (From + Length) div 1000 + 2)],
        length([1 || {'begin', _, in} <- Decisions]) =:= atoll_bench_pace:offered(atoll_bench_pace:new(Plan), From + Length) andalso lists:last(Decisions) =:= over
    end).
