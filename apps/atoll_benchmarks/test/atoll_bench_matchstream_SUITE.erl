%% SPDX-License-Identifier: Apache-2.0
%% The benchmark `matchstream' for a round on real nodes: that it measures what it says, and leaves no client behind.
-module(atoll_bench_matchstream_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    a_round_delivers_each_event_to_each_client/1, a_stage_of_three_nodes_is_measured_on_all/1, each_change_alone_is_measured/1,
    limits_are_found/1, who_cannot_be_served_is_counted/1
]).

-define(MS, 10000).

%% Limits of two stages are compared.
suite() -> [{timetrap, {minutes, 10}} | [{userdata, quiet} || atoll_tier:tier() =:= deep]].

all() ->
    case atoll_tier:tier() of
        fast -> [a_round_delivers_each_event_to_each_client];
        deep -> [
            a_round_delivers_each_event_to_each_client, a_stage_of_three_nodes_is_measured_on_all, each_change_alone_is_measured, limits_are_found,
            who_cannot_be_served_is_counted
        ]
    end.

point(Point) -> maps:merge(#{store => mnesia, find => no, within => 1000, clients => 40, at_once => 10, events => 5, rate => 50, change => stage4, seed => 1}, Point).

with(Point, Fun) ->
    {ok, #{cluster := Cluster} = State} = atoll_bench_matchstream:setup(point(Point)),
    try
        Fun(State)
    after
        ok = atoll_bench_matchstream:teardown(State),
        ?assertNot(is_process_alive(Cluster))
    end.

%% Five events and the end of the match.
a_round_delivers_each_event_to_each_client(_) ->
    with(#{}, fun(#{cluster := Cluster, ready := #{webs := Webs}} = State0) ->
        [Node] = atoll_cluster:nodes(Cluster),
        {ok, #{held := 40, lost := 0, latency := Latency, delivered_per_s := Rate, following_ms := Ms, kib_per_client := KiB}, State} = atoll_bench_matchstream:round(State0),
        ?assertEqual(40 * 6, atoll_histogram:count(Latency)),
        ?assert(Rate > 0 andalso Ms >= 0 andalso is_float(KiB)),
        ?assertMatch(#{counts := #{delivered := 240}}, atoll_cluster:call(Cluster, Node, matchstream, status, [])),
        %% Each with a match of its own.
        {ok, #{held := 40}, _} = atoll_bench_matchstream:round(State),
        {ok, #{requests := Requests, failures := 0, reasons := Reasons, times := Times}} = atoll_bench_matchstream_run:connect(#{webs => Webs, clients => 10, ms => 100}),
        ?assert(Requests >= 10 andalso Reasons =:= #{}),
        ?assertEqual(Requests, atoll_histogram:count(Times)),
        ?assertMatch({ok, [_, _, _]}, atoll_cluster:call(Cluster, Node, matchstream, matches, [])),
        ok = gone(Cluster, Node, erlang:monotonic_time(millisecond) + ?MS)
    end).

%% The last of them are still on their way.
gone(Cluster, Node, Deadline) ->
    #{counts := #{connections := Left}} = atoll_cluster:call(Cluster, Node, matchstream, status, []),
    case Left of
        0 -> ok;
        _ ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, {left, Left}),
            receive after 20 -> gone(Cluster, Node, Deadline) end
    end.

a_stage_of_three_nodes_is_measured_on_all(_) ->
    with(#{change => stage5, clients => 60}, fun(#{cluster := Cluster} = State) ->
        {ok, #{held := 60}, _} = atoll_bench_matchstream:round(State),
        Delivered = [N || {_, {ok, #{counts := #{delivered := N}}}} <- atoll_cluster:multicall(Cluster, matchstream, status, [])],
        ?assertEqual({3, 60 * 6}, {length([N || N <- Delivered, N > 0]), lists:sum(Delivered)})
    end).

each_change_alone_is_measured(_) ->
    [
        with(#{change => Change}, fun(State) ->
            {ok, #{held := Held}, _} = atoll_bench_matchstream:round(State),
            ?assertEqual({Change, 40}, {Change, Held})
        end)
     || {Change, _, _} <- matchstream_switches:names(), atoll_bench_matchstream:check(point(#{change => Change})) =:= ok
    ].

%% Fewer clients than the 1,024 files. With 20 s to serve them it is the files that limit, on a slow machine too.
limits_are_found(_) ->
    with(#{change => stage2, find => clients, clients => 2000, rate => 5, within => 20000}, fun(State) ->
        {ok, #{limit := Limit}, #{from := Limit}} = atoll_bench_matchstream:round(State),
        ?assert(Limit > 800 andalso Limit < 1024, Limit)
    end),
    [Before, After] = [
        begin
            Self = self(),
            with(#{change => Change, find => at_once, clients => 512}, fun(State) ->
                {ok, #{limit := Limit}, _} = atoll_bench_matchstream:round(State),
                Self ! {limit, Limit}
            end),
            receive {limit, Is} -> Is end
        end
     || Change <- [stage3, stage4]
    ],
    ?assert(After > Before, {Before, After}).

%% More than the service may have files for.
who_cannot_be_served_is_counted(_) ->
    with(#{change => stage1, clients => 1200, rate => 0}, fun(#{ready := #{webs := Webs}}) ->
        case atoll_bench_matchstream_run:follow(#{webs => Webs, clients => 1200, at_once => 4, events => 2, rate => 0}) of
            {ok, #{complete := Complete}} -> ?assert(Complete < 1100, Complete);
            {error, Sentence} -> ?assert(iolist_size(unicode:characters_to_binary(Sentence)) > 10)
        end
    end).
