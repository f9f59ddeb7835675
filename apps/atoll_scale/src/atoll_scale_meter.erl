%% SPDX-License-Identifier: Apache-2.0
%% @doc What the machine shows of a service during a run, black-box: open files, listen queues, what the kernel has
%% dropped, sockets, processors, memory. It looks many times a second, since what is full is so for a
%% moment; the largest of each counts. What it costs is the looking, in the program that makes the load.
-module(atoll_scale_meter).

-export([start/1, stop/1]).

-export_type([seen/0]).

-type seen() :: #{
    ms := non_neg_integer(),
    cores := pos_integer(),
    %% Processors that were kept busy, on average.
    service_cpu := float(),
    load_cpu := float(),
    %% The processes of the service that came nearest to their limit of open files.
    files := [#{name := binary(), most := non_neg_integer(), limit := pos_integer() | infinity}],
    load_files := #{most := non_neg_integer(), limit := pos_integer() | infinity} | none,
    %% Its sockets that listen: the most connections that waited to be accepted.
    listeners := [#{port := inet:port_number(), backlog := non_neg_integer(), most := non_neg_integer()}],
    %% Of all in the network namespace.
    overflows := non_neg_integer(),
    somaxconn := pos_integer() | none,
    outgoing := #{most := non_neg_integer(), of_all := pos_integer()} | none,
    service_memory := non_neg_integer(),
    available := non_neg_integer() | unknown,
    memory := pos_integer() | none,
    %% What the service said last, if it has ended.
    ended => binary()
}.

-record(meter, {
    pids :: [pos_integer()],
    begun :: integer(),
    %% Ticks of the service and of all else that this VM has started, at the beginning.
    ticks :: {number(), number()},
    counters :: #{binary() => integer()},
    %% Sockets of the service.
    inodes :: [non_neg_integer()],
    files = #{} :: #{pos_integer() | self => {non_neg_integer(), pos_integer() | infinity}},
    listeners = #{} :: #{inet:port_number() => {Backlog :: non_neg_integer(), Most :: non_neg_integer()}},
    %% At so many looks in a row some connection waited to be accepted.
    waits = 0 :: non_neg_integer(),
    sockets = 0 :: non_neg_integer(),
    memory = 0 :: non_neg_integer(),
    available = unknown :: non_neg_integer() | unknown
}).

%% A listen queue is full for a moment: it is looked at each time, files and sockets once in so many looks, and memory
%% once in so many of those.
-define(LOOK_MS, 20).
-define(SELDOM, 5).
-define(HARDLY, 50).
%% A service that has no file left for a connection may try again later, and have files again before the next look. So where
%% connections have waited this long, everything is looked at as often as can be, for so many looks or until none waits.
-define(LONG, 3).
-define(CLOSELY, 300).
-define(STOP_MS, 10000).
-define(SHOWN, 3).

%% @doc Starts one for the processes of a service; it ends with the caller.
-spec start([pos_integer()]) -> pid().
start(Pids) ->
    Caller = self(),
    spawn_link(fun() -> loop(looked(0, begun(Pids)), 1, Caller) end).

%% @doc What it has seen.
-spec stop(pid()) -> seen().
stop(Meter) ->
    Ref = monitor(process, Meter),
    Meter ! {stop, self(), Ref},
    receive
        {Ref, Seen} -> true = demonitor(Ref, [flush]), Seen;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after ?STOP_MS -> exit({late, ?MODULE})
    end.

loop(Meter, Looks, Caller) ->
    receive
        {stop, Caller, Ref} -> Caller ! {Ref, seen(looked(0, Meter))}
    after pause(Meter) ->
        loop(looked(Looks, Meter), Looks + 1, Caller)
    end.

begun(Pids) ->
    #meter{
        pids = Pids, begun = erlang:monotonic_time(millisecond), ticks = ticks(Pids), counters = atoll_scale_proc:counters(self),
        inodes = lists:append([atoll_scale_listen:inodes(Pid) || Pid <- Pids])
    }.

pause(Meter) ->
    case is_close(Meter) of true -> 1; false -> ?LOOK_MS end.

is_close(#meter{waits = Waits}) -> Waits >= ?LONG andalso Waits < ?LONG + ?CLOSELY.

looked(Looks, Meter0) ->
    Meter1 = queues(Meter0),
    %% Also at the look at which none waits any more: the files that they take are open now.
    Meter2 = case is_close(Meter0) orelse Looks rem ?SELDOM =:= 0 of true -> files(Meter1); false -> Meter1 end,
    case Looks rem ?HARDLY of 0 -> memory(Meter2); _ -> Meter2 end.

queues(#meter{inodes = Inodes, listeners = Listeners, waits = Waits} = Meter) ->
    Own = [Is || #{inode := Inode} = Is <- atoll_scale_listen:all(), lists:member(Inode, Inodes)],
    Meter#meter{
        listeners = lists:foldl(fun waiting/2, Listeners, Own),
        waits = case [N || #{waiting := N} <- Own, N > 0] of [] -> 0; _ -> Waits + 1 end
    }.

files(#meter{pids = Pids, files = Files, sockets = Most} = Meter) ->
    Sockets = case atoll_scale_proc:sockets(self) of #{in_use := InUse, waiting := Waiting} -> InUse + Waiting; #{} -> 0 end,
    Meter#meter{files = lists:foldl(fun more_files/2, Files, [self | Pids]), sockets = max(Sockets, Most)}.

more_files(Pid, Files) ->
    case atoll_scale_proc:files(Pid) of
        {ok, Open, Limit} -> Files#{Pid => {max(Open, element(1, maps:get(Pid, Files, {0, Limit}))), Limit}};
        none -> Files
    end.

waiting(#{port := Port, backlog := Backlog, waiting := Waiting}, Listeners) ->
    {_, Most} = maps:get(Port, Listeners, {Backlog, 0}),
    Listeners#{Port => {Backlog, max(Waiting, Most)}}.

memory(#meter{pids = Pids, memory = Memory, available = Least} = Meter) ->
    Available = case atoll_cluster_os:available_memory() of {ok, Bytes} -> min(Bytes, Least); unknown -> Least end,
    Meter#meter{memory = max(Memory, lists:sum([atoll_scale_proc:memory(Pid) || Pid <- Pids])), available = Available}.

%% What was started meanwhile, such as a command that makes the load, is counted by those that have waited for its end.
ticks(Pids) ->
    Family = atoll_scale_proc:children(list_to_integer(os:getpid())),
    {atoll_scale_proc:ticks(Pids), atoll_scale_proc:ticks(Family -- Pids)}.

seen(#meter{pids = Pids, begun = Begun, ticks = {Service0, Load0}, counters = Before, files = Files, listeners = Listeners} = Meter) ->
    Ms = max(1, erlang:monotonic_time(millisecond) - Begun),
    {Service, Load} = ticks(Pids),
    After = atoll_scale_proc:counters(self),
    Own = maps:get(self, Files, none),
    Named = [#{name => Name, most => Most, limit => Limit} || {Pid, Name} <- atoll_scale_proc:processes(Pids), {Most, Limit} <- [maps:get(Pid, Files, none)]],
    #{
        ms => Ms,
        cores => erlang:system_info(logical_processors_available),
        %% A tick is ten milliseconds.
        service_cpu => max(0.0, (Service - Service0) * 10 / Ms),
        load_cpu => max(0.0, (Load - Load0) * 10 / Ms),
        files => lists:sublist(lists:sort(fun nearer/2, Named), ?SHOWN),
        load_files => case Own of {Most, Limit} -> #{most => Most, limit => Limit}; none -> none end,
        listeners => [#{port => Port, backlog => Backlog, most => Most} || {Port, {Backlog, Most}} <- lists:sort(maps:to_list(Listeners))],
        overflows => max(0, maps:get(<<"ListenOverflows">>, After, 0) - maps:get(<<"ListenOverflows">>, Before, 0)),
        somaxconn => atoll_scale_proc:number("/proc/sys/net/core/somaxconn"),
        outgoing => case atoll_scale_proc:outgoing() of none -> none; All -> #{most => to_one(Meter#meter.sockets, All), of_all => All} end,
        service_memory => Meter#meter.memory,
        available => Meter#meter.available,
        memory => case atoll_bench_machine:describe() of #{memory_bytes := Bytes} when is_integer(Bytes) -> Bytes; #{} -> none end
    }.

%% No more than all of them; those of other programs, to other places, have the same ports, and are not in the way.
to_one(Sockets, All) when 2 * Sockets < All -> Sockets;
to_one(Sockets, _) -> min(Sockets, atoll_scale_proc:most_to_one()).

nearer(#{most := A, limit := LimitA}, #{most := B, limit := LimitB}) -> share(A, LimitA) >= share(B, LimitB).

share(_, infinity) -> 0;
share(Most, Limit) -> Most / Limit.
