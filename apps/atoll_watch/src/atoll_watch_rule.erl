%% SPDX-License-Identifier: Apache-2.0
%% @doc When an alarm is raised and when it is cleared: the table of rules. Data, and how a rule
%% reads what a node says.
%%
%% A rule about a value holds when the value has been `raise' or more at so many looks in a row, and
%% is over when it has been below `clear' at as many. Between the two nothing changes. One
%% about the state of a node holds when the node has been in it at so many looks in a row, and is
%% over at the first look at which it is not. One about several nodes reads what {@link atoll_watch_compare} finds, once in a period.
%% Where `raise' is below `clear', it is about what is too low: at `raise' or less, and over above `clear'.
-module(atoll_watch_rule).

-export([all/0, looks/2, judged/2, is_zero/2]).

-export_type([rule/0, id/0, what/0, severity/0, instance/0]).

-type id() :: atom().
-type severity() :: critical | major | minor | warning.

-type what() ::
    {state, atoll_watch_core:state()}
    %% What is wrong between nodes.
    | {nodes, atoll_watch_compare:kind()}
    | {value, atoll_watch_metric:name()}
    %% One by another.
    | {share, atoll_watch_metric:name(), Of :: atoll_watch_metric:name()}
    %% Each value of a metric with a label. What is not said is 0, or not known.
    | {each, atoll_watch_metric:name(), Absent :: zero | unknown}
    %% The one with this label; it is over when there is none.
    | {'of', atoll_watch_metric:name(), Label :: binary()}
    %% What a counter gains in a second.
    | {rate, atoll_watch_metric:name()}
    | {rate, atoll_watch_metric:name(), Label :: binary()}.

-type rule() :: #{
    id := id(),
    what := what(),
    %% Of a state neither means anything.
    raise := number(),
    clear := number(),
    %% How many looks in a row.
    looks := pos_integer(),
    severity := severity(),
    cause := string(),
    repair := string()
}.

-type instance() :: none | atom() | binary().
%% Of which of several an alarm is.

%% @doc The rules. A share of a limit is high at four fifths: what leaks goes on, and there is time to act.
-spec all() -> [rule()].
all() ->
    [
        rule(node_down, {state, down}, 1, 1, 1, critical, "its VM has ended or is stopped, its machine is off, or the network to it is cut",
             "look at its machine and at its log; start it again"),
        rule(node_silent, {state, silent}, 1, 1, 1, major, "its VM is stopped or starved, its connection is full, or the network drops packets",
             "look at the load of its machine, and at the queue of its connections"),
        rule(node_refused, {state, refused}, 1, 1, 2, warning, "another version of the watcher has its agent there, or the node does not load code",
             "end the other watcher"),
        rule(processes, {share, processes, processes_limit}, 0.8, 0.7, 3, critical, "processes are started and do not end",
             "see which function has most of them; +P gives room for more"),
        rule(ports, {share, ports, ports_limit}, 0.8, 0.7, 3, critical, "sockets or files are opened and not closed",
             "see who owns them; +Q gives room for more"),
        rule(atoms, {share, atoms, atoms_limit}, 0.8, 0.8, 1, critical, "atoms are made of what comes from outside; none is ever freed, and at the limit the VM ends",
             "find who calls list_to_atom or binary_to_term on input; start the node again; +t gives room for more"),
        rule(ets_tables, {share, ets_tables, ets_tables_limit}, 0.8, 0.7, 3, warning, "tables are made and not deleted",
             "see who owns them"),
        rule(memory, {share, memory_total, os_memory}, 0.8, 0.7, 3, critical, "the node holds most of the memory of its machine",
             "see which kind of memory grows: processes, binaries, ETS; atoll metrics has them"),
        rule(disk, {each, os_disk_used, unknown}, 0.9, 0.85, 3, major, "a disk of its machine is nearly full", "make room on it"),
        rule(mailbox, {each, mailbox, zero}, 10000, 1000, 2, major, "a process gets more messages than it handles, or waits for something that does not come",
             "see what it is doing; send it less, or have several do its work"),
        rule(run_queue, {share, run_queue_total, schedulers_online}, 10, 3, 3, minor, "there is more to do than the schedulers do",
             "take load away, or give the node more processors"),
        rule(dist_busy, {each, dist_queue, zero}, 8192, 1, 3, major, "a node does not take what is sent to it as fast as it is sent: senders are stopped",
             "see whether that node or the network is slow, and who sends so much"),
        rule(supervisor_restarts, {each, supervisor_ended, zero}, 5, 1, 1, minor, "children of a supervisor end again and again; past its limit, which it tells nobody, it gives up",
             "see why they end: the node's log has it, and so have the notifications"),
        rule(supervisor_limit, {each, supervisor_gave_up, zero}, 1, 1, 1, critical, "children have ended more often than their supervisor allows, and it has ended with all of them",
             "see why they end; what it ran is gone unless the supervisor above has started it again"),
        rule(crash_dump, {nodes, dumps}, 1, 1, 1, major, "a VM has crashed there and left a crash dump", "read it (crashdump_viewer), and put it away"),
        rule(partition, {nodes, partition}, 1, 1, 3, critical, "the network between some nodes is cut, and others reach both; global and pg say different things on them",
             "see what is between these nodes; connect them again, or end one side"),
        rule(flags, {nodes, flags}, 2, 2, 3, warning, "nodes of one cluster were started with different flags", "start those that are fewer again with the flags of the others"),
        rule(cookies, {nodes, cookies}, 2, 2, 3, major, "nodes have different cookies: connections that are there stay, and new ones fail", "give them the same cookie"),
        rule(otp_versions, {nodes, otp}, 2, 2, 3, warning, "nodes run different releases of OTP, as while they are upgraded", "upgrade the others too"),
        rule(module_versions, {nodes, modules}, 2, 2, 3, warning, "nodes have different code under the same name, as while they are upgraded", "load the same version on all of them"),
        rule(name_conflict, {nodes, names}, 2, 2, 3, major, "two processes have one name of global, each on its side of a cut that was",
             "end one of them, and see whether the nodes are connected"),
        rule(clock_skew, {nodes, clocks}, 1000, 500, 3, major, "the clock of its machine is not set by the time of the others", "see whether NTP runs there")
    ].

rule(Id, What, Raise, Clear, Looks, Severity, Cause, Repair) ->
    #{id => Id, what => What, raise => Raise, clear => Clear, looks => Looks, severity => Severity, cause => Cause, repair => Repair}.

%% @doc What a rule makes of a look at a node, with the value for each; nothing of what is not known.
-spec looks(rule(), atoll_watch_core:seen()) -> [{instance(), Value :: number() | none, raises | clears | between}].
looks(#{what := {state, State}}, #{state := State}) ->
    [{none, none, raises}];
looks(#{what := {state, _}}, #{}) ->
    [{none, none, clears}];
looks(#{what := {nodes, _}}, #{}) ->
    [];
%% What it said before is not how it is.
looks(_, #{state := State}) when State =/= up ->
    [];
looks(#{what := {value, Name}} = Rule, #{readings := Readings}) ->
    [{none, Value, judged(Value, Rule)} || #{Name := Value} <- [Readings]];
looks(#{what := {share, Name, Of}} = Rule, #{readings := Readings}) ->
    [{none, Value / Limit, judged(Value / Limit, Rule)} || #{Name := Value, Of := Limit} <- [Readings], Limit > 0];
looks(#{what := {each, Name, _}} = Rule, #{readings := Readings}) ->
    lists:sort([{Label, Value, judged(Value, Rule)} || {{Is, Label}, Value} <- maps:to_list(Readings), Is =:= Name]);
looks(#{what := {'of', Name, Label}} = Rule, #{readings := Readings}) ->
    labelled(Name, Label, Rule, Readings);
looks(#{what := {rate, Name}} = Rule, #{rates := Rates}) ->
    [{none, Value, judged(Value, Rule)} || #{Name := Value} <- [Rates]];
looks(#{what := {rate, Name, Label}} = Rule, #{rates := Rates}) ->
    labelled(Name, Label, Rule, Rates).

labelled(Name, Label, Rule, Readings) ->
    [{Label, Value, judged(Value, Rule)} || {{Is, Of}, Value} <- maps:to_list(Readings), Is =:= Name, Label =:= Of orelse (is_atom(Of) andalso atom_to_binary(Of) =:= Label)].

%% @doc Whether what is not said is as if it were nothing.
-spec is_zero(rule(), atoll_watch_core:state()) -> boolean().
is_zero(#{what := {each, _, zero}}, up) -> true;
is_zero(#{what := {'of', _, _}}, up) -> true;
is_zero(#{what := {rate, _, _}}, up) -> true;
is_zero(#{}, _) -> false.

%% @doc What a rule makes of a value.
-spec judged(number(), rule()) -> raises | clears | between.
judged(Value, #{raise := Raise, clear := Clear}) when Clear > Raise ->
    if
        Value =< Raise -> raises;
        Value > Clear -> clears;
        true -> between
    end;
judged(Value, #{raise := Raise}) when Value >= Raise -> raises;
judged(Value, #{clear := Clear}) when Value < Clear -> clears;
judged(_, _) -> between.
