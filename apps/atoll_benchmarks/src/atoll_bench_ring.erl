%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `ring': the paper's echo and key-value store on a ring, over Erlang's own distribution and over lanes of the carrier.
%%
%% Each node of the ring runs workers in a closed loop, as the paper's harness does ({@link ring_work}); what is measured is what all of them get done in a round, and their times. With a round trip
%% above 0 the nodes are on the two ends of a path that takes so long ({@link atoll_wire}, which takes Linux and root), by turns: of three nodes the first and the third
%% are on one end, so four of nine requests for one copy go over the path. With `asks' as `across' a worker asks only for keys whose first copy is with a node on the other end: with
%% one copy of each key every request goes over the path there, and every answer back. Of `copies' more than half are to answer. `servers' says behind which server process callers stood in a row. The store keeps one version, as the paper's does, takes `delay' for each operation, and has a value of nearly all keys that are drawn when the first round begins.
-module(atoll_bench_ring).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([whole/2]).
-export([fill/2, work/5]).

-define(READY_MS, 30_000).
-define(LOOK_MS, 50).
-define(GRACE_MS, 15_000).
-define(FILL_MS, 120_000).
%% Of all values in all copies.
-define(MOST_BYTES, 3_000_000_000).

-spec summary() -> string().
summary() -> "Echo and a key-value store on a ring of partitions, over stock distribution and over lanes".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => program, type => atom, values => [echo, kvs], one_of => [echo, kvs], help => "echo, or the store: a write each ten requests"},
        #{name => rtt, row => rtt_ms, type => number, values => [0], min => 0, max => 60000, unit => "ms", help => "the round trip; 0: over loopback, more needs root"},
        #{name => size, type => integer, values => [1024], max => 16777216, unit => "bytes", help => "the payload"},
        #{name => workers, type => integer, values => [16], max => 1024, help => "workers of each node"},
        #{name => nodes, type => integer, values => [3], min => 2, max => 64, scales => true, help => "nodes of the ring"},
        #{name => partitions, type => integer, values => [1024], max => 65536, help => "partitions, a power of two"},
        #{name => copies, type => integer, values => [3], max => 16, help => "copies of a key, as many as nodes at most; more than half answer"},
        #{name => asks, type => atom, values => [all], one_of => [all, across], help => "keys of all nodes, or of those on the path's other end"},
        #{name => keys, type => integer, values => [10000], max => 10000000, help => "keys of the store, about"},
        #{name => delay, type => integer, values => [1], min => 0, max => 1000, unit => "ms", help => "for which the store holds each operation, as the paper's does"},
        #{name => seconds, type => number, values => [3], min => 0, max => 600, unit => "s", help => "of a round"},
        #{name => lanes, type => integer, values => [16], max => 64, help => "lanes of the carrier for messages of partitions"},
        #{name => system, type => atom, values => [stock, lanes], one_of => [stock, lanes], help => "Erlang's own distribution, or the carrier with lanes"}
    ].

-spec variant() -> atom().
variant() -> system.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    Value = fun(Name, Label, Unit, Better) -> #{name => Name, label => Label, unit => Unit, better => Better, kind => value} end,
    [
        Value(ops_per_s, "Requests", "1/s", more),
        (Value(mb_per_s, "Payload", "MB/s", more))#{derived => true},
        #{name => latency, label => "Request", unit => "ms", better => less, kind => latency},
        Value(cpu_us, "Processor time of a request, all nodes", "\x{b5}s", less),
        Value(failed, "Failed", "", less),
        Value(unfinished, "Not ended in time", "", less)
    ].

%% Echo has no keys, no copies and no delay.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points([First | _] = Points) ->
    Only = maps:with([keys, copies, delay], First),
    lists:uniq([case Point of #{program := echo} -> maps:merge(Point, Only); #{} -> Point end || Point <- Points]).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{partitions := Partitions} = Point) ->
    case {ring_hash:is_count(Partitions), Point} of
        {false, _} -> {error, io_lib:format("There must be a power of two of partitions, and not ~b.", [Partitions])};
        {true, #{program := kvs, size := Size, keys := Keys, copies := Copies}} when 3 * Keys * Size * Copies > ?MOST_BYTES ->
            {error, io_lib:format("~b keys of ~b bytes in ~b copies would take more memory than ~b MB: take fewer keys.", [3 * Keys, Size, Copies, ?MOST_BYTES div 1_000_000])};
        {true, #{asks := across, rtt := Ms}} when Ms == 0 ->
            {error, "there is no other end to ask without a path: a round trip above 0"};
        {true, #{rtt := Ms}} when Ms > 0 ->
            case atoll_wire:allowed() of
                ok -> ok;
                {error, Error} -> {error, atoll_wire:format_error(Error)}
            end;
        {true, _} -> ok
    end.

-spec flags(atoll_bench:point()) -> [string()].
flags(_) -> ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"].

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{rtt := Ms} = Point) when Ms > 0 ->
    case atoll_wire:start(#{rtt_ms => Ms}) of
        {ok, Wire} ->
            case started(Point, #{hosts => atoll_wire:ends(Wire)}) of
                {ok, State} -> {ok, State#{wire => Wire}};
                {error, _} = Error ->
                    ok = atoll_wire:stop(Wire),
                    Error
            end;
        {error, Error} -> {error, atoll_wire:format_error(Error)}
    end;
setup(Point) -> started(Point, #{}).

started(#{nodes := Count, system := System, lanes := Lanes, partitions := Partitions, delay := Delay, copies := Most} = Point, Where) ->
    Copies = min(Most, Count),
    Half = Copies div 2 + 1,
    Settings = #{partitions => Partitions, delay_ms => Delay, versions => last, copies => Copies, read => Half, write => Half, exchange_ms => 1000},
    #{nodes := [Kind]} = ring_cluster:options(#{nodes => Count, carrier => System, lanes => Lanes, settings => Settings}),
    #{args := Args} = Kind,
    Flagged = Kind#{args := fun(Nodes) -> flags(Point) ++ Args(Nodes) end},
    atoll_bench_nodes:start(Where#{nodes => [Flagged]}, fun(Cluster) ->
        case whole(Cluster, atoll_cluster:nodes(Cluster)) of
            ok -> filled(Point, #{cluster => Cluster, point => Point});
            late -> {error, io_lib:format("The ring is not whole after ~b s.", [?READY_MS div 1000])}
        end
    end).

filled(#{program := echo}, State) -> {ok, State};
filled(#{size := Size, keys := Keys}, #{cluster := Cluster} = State) ->
    case atoll_bench_nodes:call(Cluster, hd(atoll_cluster:nodes(Cluster)), {?MODULE, fill}, [Size, Keys], ?FILL_MS) of
        {ok, ok} -> {ok, State};
        {ok, {error, Why}} -> {error, io_lib:format("The store cannot be filled: ~0tP", [Why, 30])};
        {error, _} = Error -> Error
    end.

%% @doc On a node of a ring: writes all keys.
-spec fill(Size :: pos_integer(), Keys :: pos_integer()) -> ok | {error, term()}.
fill(Size, Keys) -> ring_work:fill(ring_work:payload(Size), Keys).

%% @doc Waits until these nodes take each other for well; nobody tells.
-spec whole(atoll_cluster:cluster(), [node(), ...]) -> ok | late.
whole(Cluster, Nodes) -> whole(Cluster, Nodes, erlang:monotonic_time(millisecond) + ?READY_MS).

whole(Cluster, Nodes, Deadline) ->
    Said = [Up || {Node, {ok, {ok, #{up := Up}}}} <- atoll_cluster:multicall(Cluster, ring, status, []), lists:member(Node, Nodes)],
    case {length(Said) =:= length(Nodes) andalso lists:all(fun(Up) -> Nodes -- Up =:= [] end, Said), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, false} -> late;
        {false, true} ->
            receive after ?LOOK_MS -> ok end,
            whole(Cluster, Nodes, Deadline)
    end.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, point := #{program := Program, size := Size, workers := Workers, keys := Keys, seconds := Seconds, asks := Asks}} = State) ->
    Ms = max(1, erlang:round(1000 * Seconds)),
    Ends = ends(Asks, atoll_cluster:nodes(Cluster)),
    Run = fun() -> atoll_bench_nodes:each(Cluster, {?MODULE, work}, [Program, Size, Workers, #{keys => Keys, ends => Ends}, Ms], Ms + 3 * ?GRACE_MS) end,
    case atoll_bench_nodes:spending(Cluster, Run) of
        {ok, {Said, Us}} ->
            Results = [Result || {_, Result} <- Said],
            Sum = fun(Key) -> lists:sum([maps:get(Key, Result) || Result <- Results]) end,
            Done = Sum(finished) - Sum(failed),
            Took = lists:max([Ns || #{took_ns := Ns} <- Results]) / 1_000_000_000,
            {ok, #{
                ops_per_s => Done / Took, mb_per_s => Done * Size / Took / 1_000_000, cpu_us => Us / max(1, Done), failed => Sum(failed), unfinished => Sum(unfinished),
                latency => atoll_histogram:merge([Latency || #{latency := Latency} <- Results]),
                servers => unicode:characters_to_binary(atoll_bench_servers:says(atoll_bench_servers:merged([Servers || #{servers := Servers} <- Results])))
            }, State};
        {error, _} = Error -> Error
    end.

%% The nodes of the path's ends, on which they are by turns.
ends(all, _) -> all;
ends(across, Nodes) ->
    {Near, Far} = lists:partition(fun({I, _}) -> I rem 2 =:= 1 end, lists:enumerate(Nodes)),
    [[Node || {_, Node} <- End] || End <- [Near, Far]].

%% @doc On a node of a ring: its workers, for so long. They ask for keys of all nodes, or of those on another end than this one.
-spec work(ring_work:kind(), Size :: pos_integer(), Workers :: pos_integer(), #{keys := pos_integer(), ends := all | [[node()]]}, Ms :: pos_integer()) -> #{atom() => term()}.
work(Program, Size, Workers, #{keys := Keys, ends := Ends}, Ms) ->
    ok = atoll_bench_servers:start(Ms + 3 * ?GRACE_MS),
    Owners = case Ends of all -> all; _ -> lists:append([End || End <- Ends, not lists:member(node(), End)]) end,
    Operation = ring_work:operation(Program, ring_work:payload(Size), #{keys => Keys, owners => Owners}),
    #{latency := Latency} = Result = atoll_bench_load:closed(Operation, #{workers => Workers, ms => Ms, grace => ?GRACE_MS}),
    Result#{latency := atoll_histogram:export(Latency), servers => atoll_bench_servers:stop()}.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster} = State) ->
    ok = atoll_bench_nodes:stop(Cluster),
    case State of
        #{wire := Wire} -> atoll_wire:stop(Wire);
        #{} -> ok
    end.
