%% SPDX-License-Identifier: Apache-2.0
%% @doc The metrics: what each is called, its unit, whether it counts up or goes up and down,
%% and what it is a metric of. Data only.
%%
%% What the agent reads is raw ({@link atoll_watch_agent}); `readings/2' makes of it what
%% takes two samples, the shares of time that schedulers were at work.
-module(atoll_watch_metric).

-export([all/0, find/1, is_stored/1, readings/2, rates/2, prometheus/1]).

-export_type([metric/0, name/0, key/0, readings/0, unit/0]).

-type name() :: atom().
-type unit() :: none | bytes | milliseconds | microseconds | ratio.

-type metric() :: #{
    name := name(),
    unit := unit(),
    %% A counter counts from the start of the node, or of the agent, and never goes down.
    kind := counter | gauge,
    %% What tells several values of it apart; none where there is one.
    label := none | atom(),
    help := string()
}.

-type key() :: name() | {name(), Label :: atom() | binary()}.
-type readings() :: #{key() => number()}.

%% Name, unit, kind, label, help.
-define(METRICS, [
    {uptime, milliseconds, gauge, none, "time since the node was started"},
    {answer_time, milliseconds, gauge, none, "time that the watcher waited for this sample"},
    {clock_offset, milliseconds, gauge, none, "how far its clock is before that of the watcher"},
    {clock_uncertainty, milliseconds, gauge, none, "how much that may be off: half of the round trip"},
    {cpu_time, milliseconds, counter, none, "time that the processors worked for the node"},
    {memory_total, bytes, gauge, none, "memory that the node has allocated"},
    {memory_processes, bytes, gauge, none, "memory of processes"},
    {memory_processes_used, bytes, gauge, none, "memory of processes that is used"},
    {memory_system, bytes, gauge, none, "memory of no process"},
    {memory_atoms, bytes, gauge, none, "memory of atoms"},
    {memory_atoms_used, bytes, gauge, none, "memory of atoms that is used"},
    {memory_binaries, bytes, gauge, none, "memory of binaries outside of processes"},
    {memory_code, bytes, gauge, none, "memory of code"},
    {memory_ets, bytes, gauge, none, "memory of ETS tables"},
    {persistent_terms, none, gauge, none, "persistent terms"},
    {persistent_terms_memory, bytes, gauge, none, "memory of persistent terms"},
    {allocator_carriers, bytes, gauge, allocator, "memory that an allocator has of the operating system"},
    {allocator_blocks, bytes, gauge, allocator, "the part of it that is in use"},
    {processes, none, gauge, none, "processes"},
    {processes_limit, none, gauge, none, "processes that there may be"},
    {processes_suspended, none, gauge, none, "processes that wait for a busy port or connection, of those looked at"},
    {ports, none, gauge, none, "ports"},
    {ports_limit, none, gauge, none, "ports that there may be"},
    {atoms, none, gauge, none, "atoms"},
    {atoms_limit, none, gauge, none, "atoms that there may be"},
    {ets_tables, none, gauge, none, "ETS tables"},
    {ets_tables_limit, none, gauge, none, "ETS tables that the node was started for; it may have more"},
    {modules, none, gauge, none, "modules that are loaded"},
    {schedulers_online, none, gauge, none, "schedulers that run processes"},
    {dirty_cpu_schedulers_online, none, gauge, none, "dirty schedulers for work of the processor"},
    {dirty_io_schedulers, none, gauge, none, "dirty schedulers for input and output"},
    {run_queue_total, none, gauge, none, "processes and ports that wait to run"},
    {run_queue, none, gauge, queue, "processes and ports that wait to run, by queue"},
    {active_tasks_total, none, gauge, none, "processes and ports that run or wait to run"},
    {active_tasks, none, gauge, queue, "processes and ports that run or wait to run, by queue"},
    {scheduler_active, none, counter, scheduler, "time that a scheduler was at work, in a unit of the node's"},
    {scheduler_time, none, counter, scheduler, "time that it was there, in the same unit"},
    {scheduler_utilisation, ratio, gauge, scheduler, "share of its time that a scheduler was at work"},
    {utilisation, ratio, gauge, none, "the mean of that of the normal schedulers"},
    {utilisation_dirty_cpu, ratio, gauge, none, "the mean of that of the dirty schedulers for work of the processor"},
    {utilisation_dirty_io, ratio, gauge, none, "the mean of that of the dirty schedulers for input and output"},
    {reductions, none, counter, none, "reductions"},
    {context_switches, none, counter, none, "times that a scheduler took another process"},
    {garbage_collections, none, counter, none, "garbage collections"},
    {garbage_collected, bytes, counter, none, "memory that they have freed"},
    {io_in, bytes, counter, none, "bytes that ports have received"},
    {io_out, bytes, counter, none, "bytes that ports have sent"},
    {mailbox_longest, none, gauge, none, "messages in the longest mailbox"},
    {mailbox_messages, none, gauge, none, "messages in all mailboxes that were looked at"},
    {mailbox, none, gauge, process, "messages in each of the five longest mailboxes"},
    {log_events, none, counter, level, "events that were logged since the agent is there"},
    {log_left_out, none, counter, none, "events of warning and above whose text was not taken, since there were too many"},
    {supervisor_ended, none, gauge, supervisor, "children of a supervisor that have ended in the last minute, as it has logged"},
    {supervisor_gave_up, none, gauge, supervisor, "1 if it has reached its limit in the last ten minutes"},
    {nodes_visible, none, gauge, none, "nodes that are connected visibly"},
    {nodes_hidden, none, gauge, none, "nodes that are connected hidden, the watcher among them"},
    {dist_in, bytes, counter, peer, "bytes that came over the connection with a node"},
    {dist_out, bytes, counter, peer, "bytes that went over it"},
    {dist_packets_in, none, counter, peer, "packets that came over it"},
    {dist_packets_out, none, counter, peer, "packets that went over it"},
    {dist_queue, bytes, gauge, peer, "bytes in the driver of its port that are not sent yet"},
    {dist_buffer_limit, bytes, gauge, none, "bytes for one node that make a connection busy"},
    {user_counter, none, counter, metric, "a counter of a program (atoll_metric), and how often a meter or a histogram was written to"},
    {user_gauge, none, gauge, metric, "a gauge of a program"},
    {user_rate, none, gauge, metric, "what was added to a meter in a second, over the last minute"},
    {user_mean, none, gauge, metric, "mean of a histogram of a program, since a reading one to two minutes ago"},
    {user_p50, none, gauge, metric, "its median"},
    {user_p90, none, gauge, metric, "what nine in ten values are not above"},
    {user_p99, none, gauge, metric, "what 99 in a hundred are not above"},
    {user_p999, none, gauge, metric, "what 999 in a thousand are not above"},
    {user_max, none, gauge, metric, "its largest value"},
    {atoll_members, none, gauge, none, "members of the overlay that the node knows"},
    {atoll_neighbours, none, gauge, none, "its neighbours in the overlay"},
    {atoll_groups, none, gauge, none, "groups that it is in"},
    {atoll_names, none, gauge, none, "names that it knows"},
    {atoll_connections, none, gauge, kind, "connections of a kind, that of the watcher among them"},
    {atoll_round_trip, microseconds, gauge, peer, "round trip to a node over the carrier"},
    {atoll_relay_circuits, none, gauge, none, "circuits that it relays"},
    {atoll_relay_opened, none, counter, none, "circuits that it has relayed"},
    {atoll_relay_queue, none, gauge, none, "messages that wait for the relay"},
    {atoll_relay_held, bytes, gauge, none, "bytes that the relay holds"},
    {atoll_relay_budget, bytes, gauge, none, "bytes that it may hold"},
    {atoll_relay_forwarded, bytes, counter, none, "bytes that it has passed on"},
    {atoll_relay_refused, none, counter, none, "circuits that it has refused"},
    {atoll_relay_lost, none, counter, none, "circuits that were lost"},
    {atoll_relay_dropped, none, counter, none, "frames that it has dropped"},
    {mnesia_commits, none, counter, none, "transactions of Mnesia that were committed"},
    {mnesia_failures, none, counter, none, "transactions that failed"},
    {mnesia_restarts, none, counter, none, "transactions that were started again"},
    {mnesia_log_writes, none, counter, none, "writes to the log of Mnesia"},
    {mnesia_tables, none, gauge, none, "tables of Mnesia"},
    {mnesia_nodes, none, gauge, none, "nodes of its database"},
    {mnesia_nodes_running, none, gauge, none, "those of them on which it runs"},
    {os_memory, bytes, gauge, none, "memory of the machine"},
    {os_memory_available, bytes, gauge, none, "memory of the machine that is free or can be freed"},
    {os_disk, bytes, gauge, disk, "size of a disk"},
    {os_disk_used, ratio, gauge, disk, "share of it that is used"},
    {crash_dump, bytes, gauge, file, "size of the crash dump that lies where the node would write one"},
    {os_load_1, none, gauge, none, "load of the machine, over one minute"},
    {os_load_5, none, gauge, none, "load of the machine, over five minutes"},
    {os_load_15, none, gauge, none, "load of the machine, over 15 minutes"}
]).

%% @doc All of them.
-spec all() -> [metric()].
all() ->
    [
        #{name => Name, unit => Unit, kind => Kind, label => Label, help => Help}
     || {Name, Unit, Kind, Label, Help} <- ?METRICS
    ].

%% @doc One by its name.
-spec find(name()) -> {ok, metric()} | error.
find(Name) ->
    case [Metric || #{name := Is} = Metric <- all(), Is =:= Name] of
        [Metric] -> {ok, Metric};
        [] -> error
    end.

%% @doc Whether series of it are kept: not where what tells several apart changes all the while, nor of what
%% says nothing alone.
-spec is_stored(metric()) -> boolean().
is_stored(#{name := Name, label := Label}) -> Label =/= process andalso not lists:member(Name, [scheduler_active, scheduler_time]).

%% @doc What a sample says, and since the one before it in the same life of the node. What the
%% table does not have, as an agent of another version may say, is left out.
-spec readings(Before :: atoll_watch_agent:sample() | none, atoll_watch_agent:sample()) -> readings().
readings(Before, #{readings := Raw} = Sample) ->
    Known = maps:from_keys([Name || {Name, _, _, _, _} <- ?METRICS], []),
    Now = maps:from_list([key(Reading) || Reading <- Raw, is_map_key(element(1, Reading), Known)]),
    maps:merge(Now, utilisation(earlier(Before, Sample), Now)).

key({Name, Value}) -> {Name, Value};
key({Name, Label, Value}) -> {{Name, Label}, Value}.

earlier(#{life := Life, readings := Raw}, #{life := Life}) -> maps:from_list([key(Reading) || Reading <- Raw]);
earlier(_, _) -> #{}.

utilisation(Before, Now) ->
    Each = maps:from_list([
        {Label, Worked / There}
     || {{scheduler_active, Label}, Active} <- maps:to_list(Now),
        #{{scheduler_active, Label} := Active0, {scheduler_time, Label} := Time0} <- [Before],
        #{{scheduler_time, Label} := Time} <- [Now],
        Worked <- [Active - Active0], There <- [Time - Time0],
        %% Counting began anew in between.
        Worked >= 0, There > 0, Worked =< There
    ]),
    Means = [
        {Name, lists:sum(Shares) / length(Shares)}
     || {Name, Kind} <- [{utilisation, <<"normal_">>}, {utilisation_dirty_cpu, <<"dirty_cpu_">>}, {utilisation_dirty_io, <<"dirty_io_">>}],
        [_ | _] = Shares <- [[Share || {Label, Share} <- maps:to_list(online(Kind, Now, Each)), string:prefix(Label, Kind) =/= nomatch]]
    ],
    maps:from_list(Means ++ [{{scheduler_utilisation, Label}, Share} || {Label, Share} <- maps:to_list(Each)]).

%% Schedulers that are not online have nothing to do.
online(<<"normal_">> = Kind, #{schedulers_online := Online}, Each) -> first(Online, Kind, Each);
online(<<"dirty_cpu_">> = Kind, #{dirty_cpu_schedulers_online := Online}, Each) -> first(Online, Kind, Each);
online(_, _, Each) -> Each.

first(Online, Kind, Each) ->
    maps:with([<<Kind/binary, (integer_to_binary(N))/binary>> || N <- lists:seq(1, Online)], Each).

%% @doc What each counter has gained in a second, between two samples of one life of the node.
-spec rates(Before :: atoll_watch_agent:sample() | none, atoll_watch_agent:sample()) -> readings().
rates(#{at := At0, life := Life, readings := Raw0}, #{at := At, life := Life, readings := Raw}) when At > At0 ->
    Counters = maps:from_keys([Name || {Name, _, counter, _, _} <- ?METRICS], []),
    Before = maps:from_list([key(Reading) || Reading <- Raw0]),
    maps:from_list([
        {Key, (Value - Value0) * 1000000 / (At - At0)}
     || Reading <- Raw, is_map_key(element(1, Reading), Counters),
        {Key, Value} <- [key(Reading)], #{Key := Value0} <- [Before], Value >= Value0
    ]);
rates(_, _) ->
    #{}.

%% @doc What Prometheus calls it, by its rules: base units, and `_total' for counters; and by what
%% a value is multiplied.
-spec prometheus(metric()) -> {Name :: string(), Factor :: number()}.
prometheus(#{name := Name, unit := Unit, kind := Kind}) ->
    {Suffix, Factor} =
        case Unit of
            none -> {"", 1};
            bytes -> {"_bytes", 1};
            ratio -> {"_ratio", 1};
            milliseconds -> {"_seconds", 0.001};
            microseconds -> {"_seconds", 0.000001}
        end,
    {lists:concat(["erlang_", Name, Suffix, case Kind of counter -> "_total"; gauge -> "" end]), Factor}.
