%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `names': what it costs to give a process a name that other nodes
%% can look up, and how long until they can.
%%
%% <dl>
%% <dt>`global', `pg'</dt><dd>of a mesh of stock distribution, without Atoll.</dd>
%% <dt>`s_group'</dt><dd>one group of all nodes, with `-connect_all false'.</dd>
%% <dt>`s_group_of_4'</dt><dd>groups of four nodes: a name is seen by the four.</dd>
%% </dl>
%% Callers on the first node, or on each, register names of their own. With a rate of 0
%% that is a closed loop: a caller begins when it has its answer, for a while. With
%% another it is an open one: so many registrations begin in a second on each node that
%% registers, and `callers' is how many can be under way on it.
%%
%% == What the metrics are ==
%% <ul>
%% <li>The latency is that of a caller's registration, in an open loop from its intended
%%   start. `visible_per_s' counts until the last name is seen by the last node, which
%%   for a system that answers before that is the rate that it keeps up with.</li>
%% <li>Processor time is that of all nodes, and messages are those that all nodes sent,
%%   as the sockets of distribution count them: both from the first registration until
%%   the last name is seen everywhere, the load itself and what nodes do anyhow
%%   included.</li>
%% <li>`visible_ms' is of names that are registered one by one when all else is done:
%%   from the beginning until each node has been asked, sees it, and has said so. The
%%   file keeps each; the value is their median.</li>
%% <li>A look-up and a bare `ets:lookup/2' take turns in one process on the first node
%%   ({@link atoll_bench_names_lookup}).</li>
%% </ul>
%% After a round every name is looked up on every node that is to see it. Then they are
%% taken away again, until no node sees one any more, and that is not counted.
-module(atoll_bench_names).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-define(ROUND_MS, 1000).
%% A registration that has begun is waited for, and so is the last name's way.
-define(DRAIN_MS, 60000).
-define(VISIBLE, 20).

-spec summary() -> string().
summary() -> "what a name costs that other nodes can look up".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Systems = atoll_bench_names_system:all(),
    [
        #{name => nodes, type => integer, values => [2, 4, 8, 16], min => 2, max => 64, help => "nodes of the cluster"},
        #{name => callers, type => integer, values => [1, 100], max => 10000,
          help => "processes that register at the same time, on a node that registers"},
        #{name => on, type => atom, values => [first, each], one_of => [first, each],
          help => "nodes that register: the first; each (next to the first, with the fewest callers only)"},
        #{name => rate, type => integer, values => [0], min => 0, max => 100000, unit => "1/s",
          help => "registrations offered to a node that registers; 0: as fast as it answers"},
        #{name => system, type => atom, values => Systems, one_of => Systems, help => "who keeps the names"}
    ].

-spec variant() -> atom().
variant() -> system.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        value(registrations_per_s, "Names registered", "1/s", more),
        value(visible_per_s, "Names visible on every node", "1/s", more),
        value(visible_ms, "One name, visible on every node", "ms", less),
        value(cpu_us_per_op, "Processor time per name, all nodes", "\x{b5}s", less),
        value(messages_per_op, "Messages per name, all nodes", "", less),
        value(lookups_per_s, "Look-ups", "1/s", more),
        value(lookup_factor, "Look-up, times a bare read of a table", "", less),
        #{name => latency, label => "Registration", unit => "ns", better => less, kind => latency}
    ].

value(Name, Label, Unit, Better) ->
    #{name => Name, label => Label, unit => Unit, better => Better, kind => value}.

%% Many callers on each of many nodes are a load that global does not come out of; who
%% wants it asks for it alone.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    Fewest = lists:min([Callers || #{callers := Callers} <- Points]),
    case lists:usort([On || #{on := On} <- Points]) of
        [_, _] -> [Point || #{on := On, callers := Callers} = Point <- Points, On =:= first orelse Callers =:= Fewest];
        [_] -> Points
    end.

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{system := s_group_of_4, nodes := Nodes}) when Nodes > 4, Nodes rem 4 =/= 0 ->
    {error, "groups of four are of two to four nodes, or of a multiple of four"};
check(_Point) ->
    ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> atoll_bench_nodes:flags().

%% Each system has a cluster of its own; nodes have one scheduler, so that a cluster on a
%% small machine is no crowd of threads. Before anything is timed every node sees those
%% that it shares names with, and a name given on each is seen by all of them.
-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{nodes := Count, system := System} = Point) ->
    Options = (atoll_bench_names_system:options(System))#{nodes => Count, args => flags(Point)},
    atoll_bench_nodes:start(Options, fun(Cluster) ->
        answer(fun() ->
            State = Point#{cluster => Cluster, round => 1},
            ok = connect(State),
            ok = all(State, begin_with, [System]),
            lists:foreach(fun(Node) -> ok = seen_from(Node, State) end, atoll_cluster:nodes(Cluster)),
            State
        end)
    end).

connect(#{cluster := Cluster, system := System}) ->
    case atoll_bench_names_system:groups(System, atoll_cluster:nodes(Cluster)) of
        mesh ->
            meshed = sure(atoll_bench_nodes:meshed(Cluster)),
            ok;
        Groups ->
            lists:foreach(
                fun({Group, Nodes}) -> grouped = sure(atoll_bench_nodes:grouped(Cluster, Group, Nodes, ?DRAIN_MS)) end,
                Groups
            )
    end.

seen_from(Node, #{system := System} = State) ->
    Batch = {probe, Node},
    {Counts, _, _} = on(State, Node, register, [System, Batch, #{callers => 1, ms => 0, rate => 0}]),
    Registered = [{Node, Counts}],
    ok = all(State, see, [System, Batch, Registered, every, ?DRAIN_MS]),
    forgotten(Batch, Registered, State).

forgotten(Batch, Registered, #{system := System} = State) ->
    ok = all(State, forget, [System, Batch, Registered]),
    all(State, gone, [System, Batch, ?DRAIN_MS]).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{round := Number} = State) ->
    case answer(fun() -> measured(State) end) of
        {ok, Measures} -> {ok, Measures, State#{round := Number + 1}};
        {error, _} = Error -> Error
    end.

measured(#{cluster := Cluster, system := System, round := Number} = State) ->
    Batch = {round, Number},
    [First | _] = atoll_cluster:nodes(Cluster),
    Sent0 = sent(State),
    {{{Registered, Us, Latency}, Visible}, Cpu} = sure(atoll_bench_nodes:spending(Cluster, fun() ->
        Begin = erlang:monotonic_time(microsecond),
        {Names, _, _} = Said = registered(Batch, State),
        %% What a caller registers comes in its order, in every system: looking all up would
        %% cost more than the registering in some of them.
        ok = all(State, see, [System, Batch, Names, last, ?DRAIN_MS]),
        {ok, {Said, erlang:monotonic_time(microsecond) - Begin}}
    end)),
    Sent = sent(State) - Sent0,
    ok = all(State, see, [System, Batch, Registered, every, ?DRAIN_MS]),
    {LookUpNs, BareNs} = on(State, First, look_up, [System, Batch, Registered]),
    VisibleMs = on(State, First, visible, [System, Batch, ?VISIBLE]),
    ok = forgotten(Batch, Registered, State),
    Names = lists:sum([lists:sum(Counts) || {_, Counts} <- Registered]),
    #{
        registrations_per_s => Names * 1000000 / Us,
        visible_per_s => Names * 1000000 / Visible,
        visible_ms => VisibleMs,
        cpu_us_per_op => Cpu / Names,
        messages_per_op => Sent / Names,
        lookups_per_s => 1.0e9 / LookUpNs,
        lookup_factor => LookUpNs / BareNs,
        latency => Latency
    }.

%% What all nodes have sent. The messages of this asking go another way.
sent(#{cluster := Cluster}) ->
    lists:sum([Count || {_, Count} <- sure(atoll_bench_nodes:each(Cluster, {atoll_bench_machine, sent}, [], ?DRAIN_MS))]).

%% By the slowest node's time.
registered(Batch, #{cluster := Cluster, system := System, on := On} = State) ->
    [First | _] = atoll_cluster:nodes(Cluster),
    Args = [System, Batch, (maps:with([callers, rate], State))#{ms => ?ROUND_MS}],
    Said =
        case On of
            first -> [{First, on(State, First, register, Args)}];
            each -> asked(State, register, Args)
        end,
    _ = [throw({failed, unfinished(Node, Count)}) || {Node, {unfinished, Count}} <- Said],
    {
        [{Node, Counts} || {Node, {Counts, _, _}} <- Said],
        lists:max([Us || {_, {_, Us, _}} <- Said]),
        atoll_histogram:merge([Latency || {_, {_, _, Latency}} <- Said])
    }.

unfinished(Node, Count) ->
    io_lib:format("the rate is too high: ~b registrations did not come to an end on ~ts", [Count, Node]).

on(#{cluster := Cluster}, Node, Function, Args) ->
    sure(atoll_bench_nodes:call(Cluster, Node, {atoll_bench_names_load, Function}, Args, ?ROUND_MS + ?DRAIN_MS)).

%% What each node says, all at once.
asked(#{cluster := Cluster}, Function, Args) ->
    Said = atoll_cluster:multicall(Cluster, atoll_bench_names_load, Function, Args, ?ROUND_MS + ?DRAIN_MS),
    _ = [throw({failed, atoll_cluster:format_error(Reason)}) || {_, {error, Reason}} <- Said],
    [{Node, Answer} || {Node, {ok, Answer}} <- Said].

%% Each has to say that it is done.
all(State, Function, Args) ->
    case [Answer || {_, What} = Answer <- asked(State, Function, Args), What =/= ok] of
        [] -> ok;
        [{Node, {unseen, Count}} | _] -> throw({failed, io_lib:format("~b names did not come to ~ts", [Count, Node])});
        [{Node, {left, Count}} | _] -> throw({failed, io_lib:format("~b names did not go from ~ts", [Count, Node])})
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).
