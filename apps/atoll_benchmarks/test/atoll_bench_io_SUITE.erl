%% SPDX-License-Identifier: Apache-2.0
%% The benchmarks `io' and `subscribers' for a round on a real node: that each kind does what it says, and leaves nothing.
-module(atoll_bench_io_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    each_kind_is_measured_and_leaves_nothing/1,
    a_line_that_is_counted_is_in_the_log/1,
    a_rate_is_followed_and_measured/1,
    the_rate_of_saturation_is_found_and_found_again/1,
    a_service_that_does_not_start_is_a_sentence_and_leaves_nothing/1
]).
-export([left/0]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info, atoll_tier:tier() =:= deep orelse F =/= the_rate_of_saturation_is_found_and_found_again].

each_kind_is_measured_and_leaves_nothing(_) ->
    Point = #{callers => 3, size => 100, ms => 30, emulator => no_wait, seed => 1},
    {ok, #{cluster := Cluster, node := Node, dir := Dir} = State} = atoll_bench_io:setup(Point#{kind => ets}),
    Before = atoll_cluster:call(Cluster, Node, ?MODULE, left, []),
    [
        begin
            {ok, #{per_s := Rate, time := Latency, cpu_us := _}, _} = atoll_bench_io:round(State#{kind := Kind}),
            ?assert(Rate > 0, Kind),
            ?assert(atoll_histogram:count(Latency) >= 3, Kind),
            ?assertEqual({Kind, {ok, []}}, {Kind, listed(Dir)})
        end
     || Kind <- atoll_bench_io_load:kinds()
    ],
    ?assertEqual(Before, atoll_cluster:call(Cluster, Node, ?MODULE, left, [])),
    ok = atoll_bench_io:teardown(State).

%% The folder is a link, which alone is deleted in the end.
a_line_that_is_counted_is_in_the_log(_) ->
    {ok, #{cluster := Cluster, node := Node, dir := Dir} = State} =
        atoll_bench_io:setup(#{callers => 3, size => 100, ms => 30, emulator => no_wait, seed => 1, kind => logger}),
    {Real, Link} = {Dir ++ "-real", Dir ++ "-link"},
    ok = filelib:ensure_path(Real),
    ok = file:make_symlink(Real, Link),
    #{finished := Finished} = atoll_cluster:call(Cluster, Node, atoll_bench_io_load, run, [#{kind => logger, callers => 3, size => 100, ms => 300, dir => Link}]),
    {ok, Lines} = file:read_file(filename:join(Real, "log")),
    ?assert(Finished > 10),
    ?assertEqual(Finished, length(binary:matches(Lines, <<"\n">>))),
    ok = file:del_dir_r(Real),
    ok = atoll_bench_io:teardown(State).

listed(Dir) ->
    case file:list_dir(Dir) of
        {error, enoent} -> {ok, []};
        Listed -> Listed
    end.

%% On the node.
left() ->
    {length([Port || Port <- erlang:ports(), erlang:port_info(Port, name) =:= {name, "tcp_inet"}]), mnesia:system_info(is_running), [Id || #{id := Id, level := Level} <- logger:get_handler_config(), Level =/= none]}.

point(Point) ->
    maps:merge(
        #{
            store => mnesia, operation => write, operations => 5, rate => 40, seconds => 0.5, nodes => 1, rows => 50, pool => 4, flush => 2,
            access => transaction, fragments => 1, dump_writes => 50000, emulator => no_wait, seed => 1
        },
        Point
    ).

with(Point, Fun) ->
    {ok, #{ready := #{cluster := Cluster}} = State} = atoll_bench_subscribers:setup(point(Point)),
    Fun(State),
    ok = atoll_bench_subscribers:teardown(State),
    ?assertNot(is_process_alive(Cluster)).

a_rate_is_followed_and_measured(_) ->
    with(#{operation => read}, fun(#{ready := #{services := [Node], cluster := Cluster}} = State) ->
        {ok, #{request := Latency, mean_ms := Mean, sd_ms := Sd, done_per_s := Done, failed := 0, unfinished := 0, service_cpu := Cpu}, _} = atoll_bench_subscribers:round(State),
        ?assertEqual(20, atoll_histogram:count(Latency)),
        ?assert(Mean > 0 andalso Sd > 0 andalso Done > 0 andalso Cpu > 0),
        %% All that are read are there.
        ?assertEqual({ok, 50}, atoll_cluster:call(Cluster, Node, subscribers, count, []))
    end).

the_rate_of_saturation_is_found_and_found_again(_) ->
    %% A request of so many operations, of which few fit in a second.
    with(#{rate => 0, operations => 3000, seconds => 0.3}, fun(State) ->
        {ok, #{followed_per_s := Low, saturated_per_s := High, operations_per_s := Operations}, #{found := #{low := Low, high := High}} = Next} = atoll_bench_subscribers:round(State),
        ?assert(High > Low andalso High =< 1024),
        ?assertEqual(3000 * Low, Operations),
        ?assertMatch({ok, #{followed_per_s := _}, _}, atoll_bench_subscribers:round(Next))
    end).

a_service_that_does_not_start_is_a_sentence_and_leaves_nothing(_) ->
    Before = atoll_cluster:running(),
    {error, Sentence} = atoll_bench_subscribers_run:start(#{store => mnesia, nodes => 1, emulator => no_wait, rows => 0, settings => #{callers => 0}}, #{}),
    ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Sentence), "The setting callers of subscribers must be a whole number above 0\\.")),
    ?assertEqual(Before, atoll_cluster:running()).
