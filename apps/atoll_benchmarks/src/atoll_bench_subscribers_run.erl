%% SPDX-License-Identifier: Apache-2.0
%% @doc The subscriber service on nodes of its own, with its database, and requests that come to it over
%% distribution: what the benchmark, the command line and the tests all make.
%%
%% One node sends requests, the others are the service. Each request takes the next service node in turn, and is, as in
%% the thesis, so many operations one after the other. Requests begin at a rate, whatever becomes of them, and their time counts
%% from the intended start.
-module(atoll_bench_subscribers_run).

-export([start/2, requester_options/0, serve_again/2, stop/1, load/2, harmed/3, settled/2, connections/1, status/1, whole/2]).
-export([requests/1, fill/1, sockets/1]).

-export_type([shape/0, ready/0, request/0, result/0]).

-type shape() :: #{
    store := mysql | mnesia,
    %% service nodes
    nodes := pos_integer(),
    emulator := atoll_bench_emulator:word(),
    %% subscribers that are there before the first request, with the numbers from 1
    rows := non_neg_integer(),
    %% whether there is a node that sends requests; there is unless told
    requester => boolean(),
    %% further settings, as subscribers_options has them
    settings => #{atom() => term()},
    flush => 1 | 2
}.

-type ready() :: #{
    cluster := atoll_cluster:cluster(),
    services := [node(), ...],
    requester := node() | none,
    server := atoll_bench_mariadb:server() | none,
    %% of what was started here
    shape => shape()
}.

-type request() :: #{
    operation := write | read,
    %% operations of a request
    operations := pos_integer(),
    %% requests that begin in a second, for so long
    rate := pos_integer(),
    ms := pos_integer()
}.

-type result() :: #{
    latency := atoll_histogram:export(),
    finished := non_neg_integer(),
    failed := non_neg_integer(),
    unfinished := non_neg_integer(),
    %% of the failed, how many had which error first
    errors := #{atom() => pos_integer()},
    mean_ns := float() | none,
    sd_ns := float() | none,
    %% of one processor, while requests came and until the last was over; `none' of what somebody else has started
    service_cpu := float() | none,
    database_cpu := float() | none,
    took_ms := float()
}.

%% What the harm has come to is the exit of its process.
-dialyzer({nowarn_function, harmed/3}).

-define(CALL_MS, 10_000).
-define(FILL_MS, 300_000).
-define(WHOLE_MS, 30_000).
-define(FILLERS, 50).
-define(WORKERS, 2000).
%% A request that has not ended so long after the last one began is unfinished.
-define(GRACE_MS, 2000).
-define(REQUEST_MS, 60_000).
-define(LOOK_MS, 10).

%% @doc Starts it; the caller owns it. `Further' are options of the cluster. After an error nothing is left.
-spec start(shape(), #{atom() => term()}) -> {ok, ready()} | {error, unicode:chardata()}.
start(#{store := Store} = Shape, Further) ->
    case Store of
        mysql ->
            case atoll_bench_mariadb:start(maps:with([flush], Shape)) of
                {ok, Server} ->
                    case start(Shape, Server, Further) of
                        {ok, _} = Ready ->
                            Ready;
                        {error, _} = Error ->
                            ok = atoll_bench_mariadb:stop(Server),
                            Error
                    end;
                {error, _} = Error ->
                    Error
            end;
        mnesia ->
            start(Shape, none, Further)
    end.

start(#{nodes := Count, emulator := Emulator} = Shape, Server, Further) ->
    #{nodes := Requesters} = requester_options(),
    Kinds = [
        #{kind => "_service_", count => Count, args => atoll_bench_emulator:flags(Emulator)}
        | case Shape of #{requester := false} -> []; #{} -> Requesters end
    ],
    atoll_bench_nodes:start(Further#{nodes => Kinds}, fun(Cluster) ->
        {Services, Others} = lists:split(Count, atoll_cluster:nodes(Cluster)),
        Requester = case Others of [Node] -> Node; [] -> none end,
        Ready = #{cluster => Cluster, services => Services, requester => Requester, server => Server, shape => Shape},
        atoll_bench_nodes:answer(fun() ->
            served = atoll_bench_nodes:sure(served(Ready)),
            Ready
        end)
    end).

%% @doc The node that sends requests, as a cluster of its own: for a service that somebody else has started.
-spec requester_options() -> #{nodes := [map(), ...]}.
requester_options() ->
    #{nodes => [#{kind => "_requests_", count => 1, connect_all => false, args => ["-hidden" | atoll_bench_nodes:flags()]}]}.

%% The first node makes Mnesia's table, so all start at once.
served(#{cluster := Cluster, services := Services, shape := #{rows := Rows}} = Ready) ->
    _ = [ok = set(Node, Ready) || Node <- Services],
    Started = atoll_cluster:multicall(Cluster, application, ensure_all_started, [subscribers], ?FILL_MS),
    case [{Node, Why} || {Node, Answer} <- Started, lists:member(Node, Services), Why <- not_started(Answer)] of
        [] ->
            case whole(Ready, ?CALL_MS) of
                {ok, _} -> filled(Rows, Ready);
                late -> {error, io_lib:format("The service is not whole after ~b s.", [?CALL_MS div 1000])}
            end;
        [{Node, Why} | _] ->
            {error, io_lib:format("~ts: ~ts", [Node, Why])}
    end.

set(Node, #{cluster := Cluster} = Ready) ->
    atoll_cluster:call(Cluster, Node, application, set_env, [[{subscribers, [{dir, dir(Cluster, Node)} | maps:to_list(settings(Ready))]}]]).

%% @doc The service of a node that was started again.
-spec serve_again(ready(), node()) -> ok | {error, unicode:chardata()}.
serve_again(#{cluster := Cluster} = Ready, Node) ->
    ok = set(Node, Ready),
    case not_started({ok, atoll_cluster:call(Cluster, Node, application, ensure_all_started, [subscribers], ?FILL_MS)}) of
        [] -> ok;
        [Why] -> {error, Why}
    end.

not_started({ok, {ok, _}}) -> [];
not_started({ok, {error, {subscribers, {{_, Sentence}, {subscribers_app, start, _}}}}}) -> [Sentence];
not_started({ok, {error, {subscribers, {bad_return, {_, {error, {_, Sentence}}}}}}}) -> [Sentence];
not_started({ok, {error, Other}}) -> [io_lib:format("~0tP", [Other, 20])];
not_started({error, Reason}) -> [atoll_cluster:format_error(Reason)].

settings(#{services := Services, server := Server, shape := #{store := Store, rows := Rows} = Shape}) ->
    Of = case Server of
        none -> #{copies => Services};
        _ -> atoll_bench_mariadb:settings(Server)
    end,
    Range = maps:from_list([{range, Rows} || Rows > 0]),
    lists:foldl(fun maps:merge/2, #{store => Store}, [Of, Range, maps:get(settings, Shape, #{})]).

%% The run directory of the cluster goes with it.
dir(Cluster, Node) ->
    #{dir := Dir} = atoll_cluster:info(Cluster),
    filename:join([Dir, "mnesia", atom_to_list(Node)]).

filled(0, _) -> {ok, served};
filled(Rows, #{cluster := Cluster, services := [Service | _]}) ->
    case atoll_bench_nodes:call(Cluster, Service, {?MODULE, fill}, [Rows], ?FILL_MS) of
        {ok, ok} -> {ok, served};
        {ok, {error, Why}} -> {error, subscribers:format_error(Why)};
        {error, _} = Error -> Error
    end.

%% @private On a service node: writes the subscribers of 1 to so many.
-spec fill(pos_integer()) -> ok | {error, subscribers:error()}.
fill(Rows) ->
    Last = fun(K) -> Rows * K div ?FILLERS end,
    Parts = atoll_bench_node:together(?FILLERS, fun(K) -> put_all(Last(K - 1) + 1, Last(K)) end, ?FILL_MS),
    case [Error || {error, _} = Error <- Parts] of
        [] -> ok;
        [Error | _] -> Error
    end.

put_all(From, To) when From > To -> ok;
put_all(From, To) ->
    case subscribers:put((subscribers_record:random(1))#{msisdn := From}) of
        ok -> put_all(From + 1, To);
        {error, _} = Error -> Error
    end.

%% @doc Takes it down.
-spec stop(ready()) -> ok.
stop(#{cluster := Cluster, server := Server}) ->
    ok = atoll_bench_nodes:stop(Cluster),
    _ = [ok = atoll_bench_mariadb:stop(Server) || Server =/= none],
    ok.

%% @doc Requests at a rate.
-spec load(ready(), request()) -> {ok, result()} | {error, unicode:chardata()}.
load(#{cluster := Cluster, services := Services, requester := Requester} = Ready, #{ms := Ms} = Request) ->
    Before = cpu(Ready),
    At = erlang:monotonic_time(microsecond),
    case atoll_bench_nodes:call(Cluster, Requester, {?MODULE, requests}, [Request#{services => Services}], Ms + ?GRACE_MS + ?CALL_MS) of
        {ok, #{latency := Latency} = Said} ->
            After = cpu(Ready),
            Us = erlang:monotonic_time(microsecond) - At,
            Percent = fun(What) ->
                case {map_get(What, Before), map_get(What, After)} of
                    %% One that was started anew meanwhile has begun with nothing.
                    {From, To} when is_integer(From), is_integer(To), To >= From -> (To - From) / 10 / Us;
                    _ -> none
                end
            end,
            {ok, Said#{
                mean_ns => atoll_histogram:mean(Latency),
                sd_ns => sd(Latency),
                service_cpu => Percent(service),
                database_cpu => Percent(database),
                took_ms => Us / 1000
            }};
        {error, _} = Error ->
            Error
    end.

%% @doc The same, while the database is killed so long after the first request, and is started again so much later. Says too after
%% how many milliseconds from its first answer the service was whole.
-spec harmed(ready(), request(), #{after_ms := non_neg_integer(), down_ms := non_neg_integer()}) ->
    {ok, result(), {whole_after, non_neg_integer() | late}} | {error, unicode:chardata()}.
harmed(#{server := Server} = Ready, Request, #{after_ms := AfterMs, down_ms := DownMs}) ->
    {Harm, Ref} = spawn_monitor(fun() ->
        receive after AfterMs -> ok end,
        ok = atoll_bench_mariadb:kill(Server),
        receive after DownMs -> ok end,
        exit(case atoll_bench_mariadb:again(Server) of
            ok -> {back, whole(Ready, ?WHOLE_MS)};
            {error, _} = Error -> Error
        end)
    end),
    Loaded = load(Ready, Request),
    receive
        {'DOWN', Ref, process, Harm, Ended} ->
            case {Loaded, Ended} of
                {{ok, Result}, {back, {ok, Ms}}} -> {ok, Result, {whole_after, Ms}};
                {{ok, Result}, {back, late}} -> {ok, Result, {whole_after, late}};
                {{error, _} = Error, _} -> Error;
                {_, {error, _} = Error} -> Error;
                {_, Reason} -> exit(Reason)
            end
    end.

%% Nanoseconds so far. One that was killed meanwhile has taken its time with it.
cpu(#{cluster := Cluster, services := Services, server := Server}) ->
    #{nodes := Nodes} = atoll_cluster:info(Cluster),
    #{
        service => sum([cpu_ns(Pid) || #{node := Node, os_pid := Pid} <- Nodes, lists:member(Node, Services), is_integer(Pid)]),
        database => sum([cpu_ns(Pid) || Server =/= none, {ok, Pid} <- [atoll_bench_mariadb:os_pid(Server)]])
    }.

sum([]) -> none;
sum(Ns) -> added(Ns).

%% Of integers: the sum of a list may be a float.
added([N | More]) when is_integer(N) -> N + added(More);
added([]) -> 0.

cpu_ns(Pid) ->
    case atoll_bench_machine:cpu_ns(Pid) of
        {ok, Ns} -> Ns;
        error -> 0
    end.

%% Of the values in the middle of their buckets.
sd(Latency) ->
    case atoll_histogram:count(Latency) of
        N when N < 2 ->
            none;
        N ->
            Mean = atoll_histogram:mean(Latency),
            math:sqrt(lists:sum([Count * math:pow((Low + High) / 2 - Mean, 2) || {Low, High, Count} <- atoll_histogram:buckets(Latency)]) / (N - 1))
    end.

%% @private On the requesting node.
-spec requests(#{services := [node(), ...], operation := write | read, operations := pos_integer(), rate := pos_integer(), ms := pos_integer()}) ->
    #{latency := atoll_histogram:export(), finished | failed | unfinished := non_neg_integer(), errors := #{atom() => pos_integer()}}.
requests(#{services := Services, operation := Operation, operations := Operations, rate := Rate, ms := Ms}) ->
    Turn = atomics:new(1, []),
    Nodes = list_to_tuple(Services),
    Errors = ets:new(errors, [public, {write_concurrency, true}]),
    Request = fun() ->
        Node = element(atomics:add_get(Turn, 1, 1) rem tuple_size(Nodes) + 1, Nodes),
        case asked(Node, Operation, Operations) of
            ok -> ok;
            {error, Why} ->
                Kind = case is_tuple(Why) of true -> element(1, Why); false -> Why end,
                _ = ets:update_counter(Errors, Kind, 1, {Kind, 0}),
                {error, Kind}
        end
    end,
    #{latency := Latency} = Said = atoll_bench_load:open(Request, #{rate => Rate, ms => Ms, workers_max => ?WORKERS, grace => ?GRACE_MS}),
    Counted = maps:from_list(ets:tab2list(Errors)),
    true = ets:delete(Errors),
    (maps:with([finished, failed, unfinished], Said))#{latency => atoll_histogram:export(Latency), errors => Counted}.

asked(Node, Operation, Operations) ->
    try
        erpc:call(Node, subscribers, Operation, [Operations], ?REQUEST_MS)
    catch
        error:{erpc, Reason} -> {error, Reason}
    end.

%% @doc Waits until no request is within the service any longer.
-spec settled(ready(), Ms :: non_neg_integer()) -> ok | late.
settled(Ready, Ms) -> settled_by(Ready, erlang:monotonic_time(millisecond) + Ms).

settled_by(Ready, Deadline) ->
    case {[N || {_, #{callers := N}} <- status(Ready), N > 0], erlang:monotonic_time(millisecond) >= Deadline} of
        {[], _} -> ok;
        {_, true} -> late;
        {_, false} ->
            receive after ?LOOK_MS -> ok end,
            settled_by(Ready, Deadline)
    end.

%% @doc What the service nodes say of themselves.
-spec status(ready()) -> [{node(), subscribers:status() | silent}].
status(#{cluster := Cluster, services := Services}) ->
    Said = atoll_cluster:multicall(Cluster, subscribers, status, [], ?CALL_MS),
    [{Node, case Answer of {ok, {ok, Status}} -> Status; _ -> silent end} || {Node, Answer} <- Said, lists:member(Node, Services)].

%% @doc Waits until the service is whole: all connections of all pools are there, or all nodes have the table. Says after how many
%% milliseconds it was.
-spec whole(ready(), Ms :: non_neg_integer()) -> {ok, non_neg_integer()} | late.
whole(Ready, Ms) ->
    Now = erlang:monotonic_time(millisecond),
    whole(Ready, Now, Now + Ms).

whole(#{services := Services} = Ready, Since, Deadline) ->
    Now = erlang:monotonic_time(millisecond),
    case {[Node || {Node, Status} <- status(Ready), not is_whole(Status, length(Services))], Now >= Deadline} of
        {[], _} -> {ok, Now - Since};
        {_, true} -> late;
        {_, false} ->
            receive after ?LOOK_MS -> ok end,
            whole(Ready, Since, Deadline)
    end.

is_whole(#{store := mysql, pool := Pool, connected := Connected}, _) -> Connected =:= Pool;
is_whole(#{store := mnesia, rows := Rows, running := Running}, Count) -> is_integer(Rows) andalso length(Running) =:= Count;
is_whole(silent, _) -> false.

%% @doc The sockets that the service nodes have with the database, all together.
-spec connections(ready()) -> non_neg_integer().
connections(#{server := none}) -> 0;
connections(#{cluster := Cluster, services := Services, server := Server}) ->
    #{port := Port} = atoll_bench_mariadb:settings(Server),
    added([atoll_cluster:call(Cluster, Node, ?MODULE, sockets, [Port], ?CALL_MS) || Node <- Services]).

%% @private On a service node.
-spec sockets(inet:port_number()) -> non_neg_integer().
sockets(Port) -> length([Socket || Socket <- erlang:ports(), erlang:port_info(Socket, name) =:= {name, "tcp_inet"}, {ok, {_, Peer}} <- [inet:peername(Socket)], Peer =:= Port]).
