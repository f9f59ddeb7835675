%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `debench': at which share of global operations, and on how many nodes,
%% what is done stops following what is offered; DE-Bench (Ghaffari, Chechina, Trinder et al.)
%% as a benchmark of the harness. docs/debench.md says what it is.
%%
%% <dl>
%% <dt>`mesh'</dt><dd>stock distribution with `global'.</dd>
%% <dt>`groups'</dt><dd>s_groups of `group_size' nodes, or one more: names and partners are those of a
%%   node's own group.</dd>
%% </dl>
%% Each node is a peer: its workers draw an operation and another node, and do it. So many
%% operations begin on each node in a second, whatever becomes of the others, or, with `offered' 0,
%% each when its worker's last has ended ({@link atoll_bench_pace}); what is offered is not known then, and
%% neither is which share of it is done. Of all operations, on any number of nodes and in both systems,
%% `global' per cent are registrations,
%% look-ups and removals of names that others see, a third each; the others are halves of
%% operations of two nodes (spawn, rpc, gen_server, gen_statem) and of names of the node
%% alone, registration, look-up and removal.
%%
%% == What the metrics are ==
%% <ul>
%% <li>A round is `ramp_ms' of load that is not counted, and then the window of `window_ms'.
%%   What piles up more slowly than in the ramp, because few operations are global and each of
%%   them keeps one of the workers, does not show in its whole extent.</li>
%% <li>Goodput is what went well and ended within the window, of all nodes, in a second; in
%%   per cent of what was to begin. `failed' is what was to begin in it and did not go well:
%%   refused, wrong, shed because too many were waiting, or not over ten seconds later.</li>
%% <li>Messages are those that all nodes sent in the window, as the sockets of distribution
%%   count them, and processor time is that of all nodes, the load itself included; by what
%%   was done. Where goodput is below 95 per cent nothing is said of either: what was begun and not
%%   done has its part in them.</li>
%% <li>Latencies are those of what went well, from the intended start.</li>
%% </ul>
%% After a round all names are gone everywhere.
-module(atoll_bench_debench).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([options/1, measures/2]).

%% What is lost along the way costs something too, and is not told from what is done.
-define(WHOLE_PERCENT, 95).

-spec summary() -> string().
summary() -> "distributed operations at a fixed load, some of them on global names".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => nodes, type => integer, values => [10, 20, 30], min => 2, max => 200, scales => true,
          help => "nodes of the cluster"},
        #{name => global, type => number, values => [0, 0.5, 1, 2], min => 0, max => 100, unit => "%",
          help => "share of operations on names that other nodes see"},
        #{name => offered, type => integer, values => [200], min => 0, max => 100000, unit => "1/s",
          help => "operations that begin on each node in a second; 0: each when its worker's last has ended"},
        #{name => workers, type => integer, values => [10], max => 1000, help => "worker processes of a node"},
        #{name => group_size, type => integer, values => [10], min => 2, max => 200,
          help => "nodes of a group, or one more (a mesh with the first only)"},
        #{name => packet_size, type => integer, values => [1000], max => 10000000, unit => "bytes",
          help => "what an operation of two nodes sends, and gets back"},
        #{name => delay_us, type => integer, values => [0], min => 0, max => 10000000, unit => "\x{b5}s",
          help => "how long it keeps the other node's processor busy"},
        #{name => ramp_ms, type => integer, values => [1500], min => 0, max => 60000, unit => "ms",
          help => "load of a round before the window that is measured"},
        #{name => window_ms, type => integer, values => [1000], min => 100, max => 60000, unit => "ms",
          help => "the window that is measured"},
        #{name => system, type => atom, values => debench_system:all(), one_of => debench_system:all(),
          help => "a mesh with global, or s_groups"}
    ].

-spec variant() -> atom().
variant() -> system.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        value(goodput_per_s, "Goodput, all nodes", "1/s", more),
        (value(goodput_percent, "Goodput, of what is offered", "%", more))#{derived => true},
        value(failed_per_s, "Failed, all nodes", "1/s", less),
        value(messages_per_op, "Messages per operation, all nodes", "", less),
        value(cpu_us_per_op, "Processor time per operation, all nodes", "\x{b5}s", less),
        latency(register, "Global register"),
        latency(unregister, "Global unregister"),
        latency(p2p, "Two nodes"),
        latency(gen_server, "Two nodes, by gen_server"),
        latency(gen_statem, "Two nodes, by gen_statem"),
        latency(local, "One node alone")
    ].

value(Name, Label, Unit, Better) ->
    #{name => Name, label => Label, unit => Unit, better => Better, kind => value}.

latency(Name, Label) ->
    #{name => Name, label => Label, unit => "ns", better => less, kind => latency}.

%% A mesh has no groups.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points([#{group_size := First} | _] = Points) ->
    [Point || #{system := System, group_size := Size} = Point <- Points, System =:= groups orelse Size =:= First].

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{system := groups, nodes := Nodes, group_size := Size}) when Size > Nodes ->
    {error, "a group is not of more nodes than there are"};
check(_Point) ->
    ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> atoll_bench_nodes:flags().

%% Both variants are up at once, and nodes have one scheduler, as in the benchmark `names'.
-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(Point) ->
    case debench_cluster:start(options(Point)) of
        {ok, Started} -> {ok, maps:merge(Point, Started)};
        {error, _} = Error -> Error
    end.

%% @doc What is started.
-spec options(#{nodes := pos_integer(), system := debench_system:system(), group_size := pos_integer(), _ => _}) ->
    debench_cluster:options().
options(Point) -> maps:with([nodes, system, group_size], Point).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{seed := Seed} = State) ->
    case debench_cluster:run(State, load(State)) of
        {ok, Looks} ->
            Merged = atoll_bench_window:merged([Look || {_, Look} <- Looks]),
            {ok, measures(Merged, State), State#{seed := Seed + 1}};
        {error, _} = Error -> Error
    end.

load(#{nodes := Nodes, seed := Seed, global := Global, offered := Offered, system := System, workers := Workers} = State) ->
    #{packet_size := Size, delay_us := Delay, ramp_ms := Ramp, window_ms := Window} = State,
    #{
        system => System,
        nodes => Nodes,
        transitive => false,
        weighted => debench:weights(Global),
        workers => Workers,
        rate => case Offered of 0 -> closed; _ -> Offered end,
        from_ms => Ramp,
        until_ms => Ramp + Window,
        packet_size => Size,
        delay_us => Delay,
        initial_global_size => 0,
        initial_active_process => 0,
        seed => Seed
    }.

%% @doc The measures of a window in which all nodes together have done that.
-spec measures(atoll_bench_window:look(), #{window_ms := pos_integer(), offered := non_neg_integer(), _ => _}) ->
    #{atom() => atoll_bench:measure()}.
measures(#{offered := Offered, completed := Completed, labels := Labels} = Look, #{window_ms := Window, offered := Rate}) ->
    Ok = lists:sum([N || {_, #{ok := N}} <- Labels]),
    %% In a closed loop all that is offered is done, sooner or later.
    Followed = case Rate of 0 -> #{}; _ -> #{goodput_percent => 100 * Completed / max(1, Offered)} end,
    Whole = 100 * case Rate of 0 -> Ok; _ -> Completed end >= ?WHOLE_PERCENT * Offered,
    lists:foldl(fun maps:merge/2, latencies(Labels), [
        #{goodput_per_s => Completed * 1000 / Window, failed_per_s => max(0, Offered - Ok) * 1000 / Window},
        Followed,
        case Whole andalso Completed > 0 of true -> costs(Look); false -> #{} end
    ]).

costs(#{completed := Done, sent := Sent, cpu_us := Cpu}) ->
    #{messages_per_op => Sent / Done, cpu_us_per_op => Cpu / Done}.

%% Of what was not done there is none.
latencies(Labels) ->
    Kinds = [
        {register, [global_register]}, {unregister, [global_unregister]}, {gen_server, [gen_server_call]},
        {gen_statem, [fsm_server_call]}
    ] ++
        [{Family, [L || {L, _} <- Labels, debench_op:family(L) =:= Family]} || Family <- [p2p, local]],
    maps:from_list([
        {Kind, Latency}
     || {Kind, Of} <- Kinds,
        Latency <- [atoll_histogram:merge([L || {Label, #{latency := L}} <- Labels, lists:member(Label, Of)])],
        atoll_histogram:count(Latency) > 0
    ]).

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).
