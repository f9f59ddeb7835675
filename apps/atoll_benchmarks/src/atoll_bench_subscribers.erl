%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `subscribers': a service that keeps subscribers in MySQL over a pool or in Mnesia, by how its emulator is
%% started: the matrix of Dervishi's thesis (Evaluate the benefits of SMP support for IO-intensive Erlang
%% applications, KTH, 2012) as a benchmark of the harness.
%%
%% A request is `operations' operations one after the other; 500 in the thesis. With a `rate' so many requests begin in a second,
%% whatever becomes of them, for a round of `seconds'; their time, its spread and the processor time are measured. With `rate' 0 each round
%% searches for the rate at which the service is saturated ({@link atoll_bench_saturation}), each rate for `seconds'.
%%
%% The requesting node and, with MySQL, the server share the processors with the service. All variants are up at once,
%% each with a database of its own, and take turns.
-module(atoll_bench_subscribers).
-compile({no_auto_import, [round/1]}).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-define(FIRST, 4).
-define(MOST, 65536).
-define(WIDTH, 1.15).
-define(FACTOR, 3).
-define(SETTLE_MS, 30_000).

-spec summary() -> string().
summary() -> "a service over MySQL or Mnesia, by how its emulator is started: request time, processor time, saturation".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Emulators = atoll_bench_emulator:words(),
    Access = [transaction, sync_transaction, async_dirty, sync_dirty],
    [
        #{name => store, type => atom, values => [mysql, mnesia], one_of => [mysql, mnesia], help => "where subscribers are kept"},
        #{name => operation, type => atom, values => [write, read], one_of => [write, read], help => "what all requests do"},
        #{name => operations, type => integer, values => [50], max => 10000, help => "operations of a request"},
        #{name => rate, type => integer, values => [0], min => 0, max => 100000, unit => "1/s",
          help => "requests that begin in a second; 0: the rate is searched for at which the service is saturated"},
        #{name => seconds, type => number, values => [1], min => 0, max => 3600, unit => "s", help => "of a round, or of each rate that is tried"},
        #{name => nodes, type => integer, values => [1], max => 16, help => "service nodes"},
        #{name => rows, type => integer, values => [5000], max => 7000000, help => "subscribers that are there to be read"},
        #{name => pool, type => integer, values => [50], max => 1000, help => "connections of a service node with MySQL (50 in the thesis)"},
        #{name => flush, type => integer, values => [1], min => 1, max => 2, help => "of MySQL: 1 writes to the disc at each commit, 2 once a second"},
        #{name => access, type => atom, values => [transaction], one_of => Access, help => "how Mnesia is used"},
        #{name => fragments, type => integer, values => [1], max => 1024, help => "of Mnesia's table"},
        #{name => dump_writes, type => integer, values => [50000], max => 1000000, help => "writes to Mnesia's log until it is dumped (100 in the Mnesia of the thesis, unless told otherwise)"},
        #{name => emulator, type => atom, values => [all, one], one_of => Emulators,
          help => "how the service's nodes are started (docs/measuring.md)"}
    ].

-spec variant() -> atom().
variant() -> emulator.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit, Better) -> #{name => Name, label => Label, unit => Unit, better => Better, kind => value} end,
    [
        #{name => request, label => "A request", unit => "ns", better => less, kind => latency},
        Value(mean_ms, "A request, mean", "ms", less),
        Value(sd_ms, "A request, standard deviation", "ms", less),
        Value(done_per_s, "Operations of requests that ended well", "1/s", more),
        Value(service_cpu, "Processors of the service", "%", less),
        Value(database_cpu, "Processors of the database", "%", less),
        Value(failed, "Requests with an error", "", less),
        Value(unfinished, "Requests that had not ended", "", less),
        Value(followed_per_s, "Requests that were followed", "1/s", more),
        (Value(saturated_per_s, "Requests that saturate", "1/s", more))#{derived => true},
        (Value(operations_per_s, "Operations that were followed", "1/s", more))#{derived => true}
    ].

%% What is a setting of one store has its first value with the other; and what is read is there before.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points([First | _] = Points) ->
    Others = #{mysql => [access, fragments, dump_writes], mnesia => [pool, flush]},
    lists:uniq([maps:merge(Point, maps:with(map_get(Store, Others), First)) || #{store := Store} = Point <- Points]).

-spec check(atoll_bench:point()) -> ok.
check(_) -> ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(#{emulator := Emulator}) -> atoll_bench_emulator:flags(Emulator).

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(Point) ->
    case [Package || #{store := mysql} <- [Point], Package <- atoll_bench_mariadb:missing()] of
        [] -> start(Point);
        Packages -> {error, ["MySQL takes what is not installed here: ", lists:join(", ", Packages), " (Debian's packages)."]}
    end.

start(#{operation := Operation, rows := Rows} = Point) ->
    Shape0 = maps:with([store, nodes, emulator, flush], Point),
    Shape = Shape0#{rows => case Operation of read -> Rows; write -> 0 end, settings => maps:with([pool, access, fragments, dump_writes], Point)},
    case atoll_bench_subscribers_run:start(Shape, #{}) of
        {ok, Ready} -> {ok, #{ready => Ready, point => Point, found => none}};
        {error, _} = Error -> Error
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{point := #{rate := 0, operations := Operations}, found := Before} = State) ->
    Options = #{first => ?FIRST, most => ?MOST, width => ?WIDTH, factor => ?FACTOR},
    Search = case Before of none -> atoll_bench_saturation:new(Options); _ -> atoll_bench_saturation:again(Options, Before) end,
    case search(Search, State) of
        {ok, #{low := Low, high := High} = Found} ->
            {ok, maps:from_list([{saturated_per_s, High} || High =/= none] ++ [{followed_per_s, Low}, {operations_per_s, Low * Operations}]), State#{found := Found}};
        {error, _} = Error ->
            Error
    end;
round(#{point := #{rate := Rate, operations := Operations}} = State) ->
    case tried(Rate, State) of
        {ok, #{latency := Latency, finished := Finished, failed := Failed, unfinished := Unfinished, took_ms := Ms, mean_ns := Mean, sd_ns := Sd} = Result} ->
            Spread = maps:from_list([{Key, Ns / 1.0e6} || {Key, Ns} <- [{mean_ms, Mean}, {sd_ms, Sd}], Ns =/= none]),
            Cpu = maps:filter(fun(_, Percent) -> Percent =/= none end, maps:with([service_cpu, database_cpu], Result)),
            {ok, maps:merge(Spread, Cpu#{
                request => Latency,
                done_per_s => (Finished - Failed) * Operations * 1000 / Ms,
                failed => Failed,
                unfinished => Unfinished
            }), State};
        {error, _} = Error ->
            Error
    end.

search(Search, State) ->
    case atoll_bench_saturation:next(Search) of
        {found, Found} ->
            {ok, Found};
        {try_rate, Rate} ->
            case tried(Rate, State) of
                {ok, Result} -> search(atoll_bench_saturation:tried(outcome(Result), Search), State);
                {error, _} = Error -> Error
            end
    end.

%% A request that had an error was not served.
outcome(#{mean_ns := Mean, unfinished := Unfinished, failed := Failed}) -> #{mean_ns => Mean, unfinished => Unfinished + Failed}.

%% What the last rate has left in the service goes on to its end first.
tried(Rate, #{ready := Ready, point := #{operation := Operation, operations := Operations, seconds := Seconds}}) ->
    case atoll_bench_subscribers_run:settled(Ready, ?SETTLE_MS) of
        ok -> atoll_bench_subscribers_run:load(Ready, #{operation => Operation, operations => Operations, rate => Rate, ms => max(1, erlang:round(1000 * Seconds))});
        late -> {error, io_lib:format("Requests have not ended within ~b s.", [?SETTLE_MS div 1000])}
    end.

-spec teardown(map()) -> ok.
teardown(#{ready := Ready}) -> atoll_bench_subscribers_run:stop(Ready).
