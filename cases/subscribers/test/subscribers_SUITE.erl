%% SPDX-License-Identifier: Apache-2.0
%% The service on real nodes, over a real MariaDB and over Mnesia.
-module(subscribers_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([
    what_was_put_is_there_whatever_its_bytes/1,
    whoever_finds_no_free_connection_waits_a_bounded_time_and_is_told/1,
    one_caller_too_many_is_told_at_once/1,
    an_answer_that_is_too_late_reaches_nobody/1,
    a_database_that_is_killed_and_back_has_the_service_whole_and_no_connection_more/1,
    settings_that_are_wrong_are_named_by_the_start/1,
    mnesia_keeps_it_on_two_nodes_in_fragments_and_over_a_restart/1,
    each_access_of_mnesia_does_the_same/1
]).
-export([exhausted/2, full/1, late/0, bytes/0, round_trip/1]).

-define(POOL, 3).
-define(WAIT_MS, 200).
-define(QUERY_MS, 1000).
-define(CALLERS, 20).
-define(CALL_MS, 30_000).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, mysql}, {group, mnesia}].

groups() ->
    [
        {mysql, [], [
            what_was_put_is_there_whatever_its_bytes,
            whoever_finds_no_free_connection_waits_a_bounded_time_and_is_told,
            one_caller_too_many_is_told_at_once,
            an_answer_that_is_too_late_reaches_nobody,
            a_database_that_is_killed_and_back_has_the_service_whole_and_no_connection_more
        ]},
        {mnesia, [], [
            settings_that_are_wrong_are_named_by_the_start,
            mnesia_keeps_it_on_two_nodes_in_fragments_and_over_a_restart,
            each_access_of_mnesia_does_the_same
        ]}
    ].

%% One server and one service for all cases. They end with their owner, and the process that sets a group up ends before the cases.
init_per_group(mysql, Config) ->
    case atoll_bench_mariadb:missing() of
        [] ->
            Settings = #{pool => ?POOL, wait_ms => ?WAIT_MS, query_ms => ?QUERY_MS, callers => ?CALLERS},
            [{service, owned(shape(#{store => mysql, flush => 2, settings => Settings}))} | Config];
        Packages ->
            {skip, lists:flatten(["Not installed: scripts/setup ", lists:join(" ", Packages)])}
    end;
init_per_group(mnesia, Config) ->
    Config.

end_per_group(mysql, Config) ->
    {Owner, _} = ?config(service, Config),
    Ref = monitor(process, Owner),
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, normal} -> ok end;
end_per_group(mnesia, _) ->
    ok.

shape(Shape) -> maps:merge(#{nodes => 1, emulator => no_wait, rows => 0}, Shape).

owned(Shape) ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Ready} = atoll_bench_subscribers_run:start(Shape, #{}),
        Self ! {self(), Ready},
        receive stop -> ok = atoll_bench_subscribers_run:stop(Ready) end
    end),
    receive
        {Owner, Ready} -> true = demonitor(Ref, [flush]), {Owner, Ready};
        {'DOWN', Ref, process, Owner, Why} -> error(Why)
    end.

ready(Config) -> element(2, ?config(service, Config)).

call(#{cluster := Cluster, services := [Node | _]}, Function, Args) -> atoll_cluster:call(Cluster, Node, ?MODULE, Function, Args, ?CALL_MS).

status(Ready) ->
    [{_, #{} = Status} | _] = atoll_bench_subscribers_run:status(Ready),
    Status.

%% MySQL

what_was_put_is_there_whatever_its_bytes(Config) -> ok = call(ready(Config), bytes, []).

%% On a node.
bytes() ->
    All = << <<B>> || B <- lists:seq(0, 63) >>,
    One = #{msisdn => 46701234567, imsi => <<"240011">>, imei => <<>>, device => All, settings => <<"'; DROP TABLE subscriber; --\\\"">>, updated => 1},
    round_trip(One),
    round_trip(One#{device := << <<B>> || B <- lists:seq(192, 255) >>, msisdn := 999_999_999_999_999}).

round_trip(#{msisdn := Msisdn} = One) ->
    {ok, Before} = subscribers:count(),
    not_found = subscribers:get(Msisdn),
    ok = subscribers:put(One),
    {ok, One} = subscribers:get(Msisdn),
    Other = One#{imsi := <<"9">>, updated := 7},
    ok = subscribers:put(Other),
    {ok, Other} = subscribers:get(Msisdn),
    {ok, After} = subscribers:count(),
    1 = After - Before,
    ok = subscribers:delete(Msisdn),
    ok = subscribers:delete(Msisdn),
    not_found = subscribers:get(Msisdn),
    {ok, Before} = subscribers:count(),
    ok.

whoever_finds_no_free_connection_waits_a_bounded_time_and_is_told(Config) ->
    {Ms, Answer} = call(ready(Config), exhausted, [?POOL, ?WAIT_MS]),
    ?assertEqual({error, {no_connection_free, ?WAIT_MS}}, Answer),
    ?assert(Ms >= ?WAIT_MS andalso Ms < ?WAIT_MS + 2000),
    {error, Why} = Answer,
    ?assertEqual("All connections with the database have been in use for 200 ms.", lists:flatten(subscribers:format_error(Why))),
    ?assertMatch(#{counts := #{no_connection_free := N}, free := ?POOL, callers := 0} when N > 0, status(ready(Config))).

%% On a node: this process takes all connections.
exhausted(Count, _) ->
    Taken = [poolboy:checkout(subscribers_pool, false) || _ <- lists:seq(1, Count)],
    true = lists:all(fun is_pid/1, Taken),
    At = erlang:monotonic_time(millisecond),
    Answer = subscribers:get(1),
    Ms = erlang:monotonic_time(millisecond) - At,
    _ = [ok = poolboy:checkin(subscribers_pool, Worker) || Worker <- Taken],
    {Ms, Answer}.

one_caller_too_many_is_told_at_once(Config) ->
    Answers = call(ready(Config), full, [?CALLERS]),
    ?assertEqual({?CALLERS, 1}, {length([1 || {error, {no_connection_free, _}} <- Answers]), length([1 || {error, {overloaded, ?CALLERS}} <- Answers])}),
    ?assertMatch(#{counts := #{overloaded := 1}, callers := 0}, status(ready(Config))).

%% On a node: so many callers wait for connections that this process has, and one more comes.
full(Callers) ->
    Taken = [poolboy:checkout(subscribers_pool, false) || _ <- lists:seq(1, ?POOL)],
    Asking = [spawn_monitor(fun() -> exit({answer, subscribers:get(1)}) end) || _ <- lists:seq(1, Callers)],
    ok = within(Callers, Asking),
    Last = subscribers:get(1),
    Answers = [receive {'DOWN', Ref, process, Pid, {answer, Answer}} -> Answer end || {Pid, Ref} <- Asking],
    _ = [ok = poolboy:checkin(subscribers_pool, Worker) || Worker <- Taken],
    case Last of
        {error, {no_connection_free, _}} -> full(Callers);
        _ -> [Last | Answers]
    end.

%% Nobody tells. On a busy machine the first has left before the last is within, and all begin again.
within(N, Asking) ->
    case subscribers_gate:within() =:= N orelse not lists:all(fun({Pid, _}) -> is_process_alive(Pid) end, Asking) of
        true -> ok;
        false -> erlang:yield(), within(N, Asking)
    end.

an_answer_that_is_too_late_reaches_nobody(Config) ->
    #{counts := #{lost := Before}} = status(ready(Config)),
    ?assertEqual({{error, {timed_out, 100}}, [{error, disconnected}, {rows, [[<<"2">>]]}]}, call(ready(Config), late, [])),
    {ok, _} = atoll_bench_subscribers_run:whole(ready(Config), ?CALL_MS),
    #{counts := #{lost := After}} = status(ready(Config)),
    ?assertEqual(1, After - Before),
    ?assertEqual(?POOL, atoll_bench_subscribers_run:connections(ready(Config))).

%% On a node: the connection is closed, and another one is made.
late() ->
    Worker = poolboy:checkout(subscribers_pool, false),
    Late = subscribers_connection:query(Worker, "SELECT SLEEP(1), 1", 100),
    Answers = asked_until_there(Worker),
    ok = poolboy:checkin(subscribers_pool, Worker),
    {Late, lists:uniq(Answers)}.

asked_until_there(Worker) ->
    case subscribers_connection:query(Worker, "SELECT 2", ?CALL_MS) of
        {rows, _} = Answer -> [{error, disconnected}, Answer];
        {error, disconnected} = Answer -> [Answer | asked_until_there(Worker)]
    end.

a_database_that_is_killed_and_back_has_the_service_whole_and_no_connection_more(Config) ->
    #{server := Server} = Ready = ready(Config),
    ?POOL = atoll_bench_subscribers_run:connections(Ready),
    Request = #{operation => write, operations => 2, rate => 100, ms => 2500},
    {ok, #{finished := Finished, failed := Failed, errors := Errors}, {whole_after, Ms}} =
        atoll_bench_subscribers_run:harmed(Ready, Request, #{after_ms => 500, down_ms => 500}),
    ?assert(Failed > 0 andalso Failed < Finished),
    ?assertEqual(Failed, lists:sum(maps:values(Errors))),
    ?assertEqual([], maps:keys(Errors) -- [disconnected, timed_out, no_connection_free, overloaded]),
    ?assert(is_integer(Ms) andalso Ms =< 5000),
    ?assertEqual(?POOL, atoll_bench_subscribers_run:connections(Ready)),
    ?assertMatch(#{connected := ?POOL, free := ?POOL, callers := 0}, status(Ready)),
    ok = call(Ready, bytes, []),
    {ok, _} = atoll_bench_mariadb:os_pid(Server).

%% Mnesia

settings_that_are_wrong_are_named_by_the_start(_) ->
    ?assertEqual(
        {error, <<"The setting access of subscribers must be transaction, sync_transaction, async_dirty or sync_dirty.">>},
        case atoll_bench_subscribers_run:start(shape(#{store => mnesia, settings => #{access => careful}}), #{}) of
            {error, Why} -> {error, re:replace(unicode:characters_to_binary(Why), "^\\S+: ", "", [{return, binary}])}
        end
    ).

mnesia_keeps_it_on_two_nodes_in_fragments_and_over_a_restart(_) ->
    {ok, Ready} = atoll_bench_subscribers_run:start(shape(#{store => mnesia, nodes => 2, rows => 100, requester => false, settings => #{fragments => 4}}), #{}),
    #{cluster := Cluster, services := [A, B]} = Ready,
    ok = call(Ready, bytes, []),
    {ok, One} = atoll_cluster:call(Cluster, A, subscribers, get, [77]),
    ?assertEqual({ok, One}, atoll_cluster:call(Cluster, B, subscribers, get, [77])),
    %% Of all four fragments both have a copy.
    ?assertEqual([[A, B] || _ <- lists:seq(1, 4)],
        [lists:sort(atoll_cluster:call(Cluster, B, mnesia, table_info, [Table, disc_copies])) || Table <- atoll_cluster:call(Cluster, B, subscribers_mnesia, tables, [])]),
    ok = atoll_cluster:kill(Cluster, B),
    ok = atoll_cluster:call(Cluster, A, subscribers, delete, [78], ?CALL_MS),
    ok = atoll_cluster:restart(Cluster, B),
    ok = atoll_bench_subscribers_run:serve_again(Ready, B),
    ?assertEqual({{ok, 99}, {ok, One}}, {atoll_cluster:call(Cluster, B, subscribers, count, []), atoll_cluster:call(Cluster, B, subscribers, get, [77])}),
    ok = atoll_bench_subscribers_run:stop(Ready).

each_access_of_mnesia_does_the_same(_) ->
    [
        begin
            {ok, Ready} = atoll_bench_subscribers_run:start(shape(#{store => mnesia, requester => false, settings => #{access => Access}}), #{}),
            ok = call(Ready, bytes, []),
            ?assertMatch(#{access := Access, rows := 0, partitions := 0}, status(Ready)),
            ok = atoll_bench_subscribers_run:stop(Ready)
        end
     || Access <- [transaction, sync_transaction, async_dirty, sync_dirty]
    ].
