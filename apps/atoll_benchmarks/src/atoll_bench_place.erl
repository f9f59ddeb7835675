%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `place': what it brings to ask what nodes are like before work is placed,
%% and what many who ask at once do to each other.
%%
%% With the workload `unequal' some of the nodes may use a small part of a processor, and the
%% others a larger one ({@link atoll_quota}). One more node, which is not bounded and does no
%% work, places equal items on them, all at once, each by a process of its own:
%% <dl>
%% <dt>`random'</dt><dd>on any node, without looking.</dd>
%% <dt>`round_robin'</dt><dd>on one after the other, so on each as many.</dd>
%% <dt>`attributes'</dt><dd>on one of those with the most `cgroup_cpus', by
%%   {@link atoll_attr:choose_node/3} as it stands.</dd>
%% <dt>`attributes_aged'</dt><dd>the same, with values that may be a minute old: only the node
%%   that is chosen is asked.</dd>
%% </dl>
%% With `herd' all nodes are equal and not bounded, and callers on each choose one of them at
%% the same moment, by {@link atoll_attr}; nothing is placed:
%% <dl>
%% <dt>`first'</dt><dd>the head of the fitting nodes.</dd>
%% <dt>`random'</dt><dd>one of the best: without standing in line (`claim').</dd>
%% <dt>`claims'</dt><dd>`choose_node' as it stands.</dd>
%% </dl>
%%
%% == What the metrics are ==
%% <ul>
%% <li>`run_ms' is from before the first choice until the last item has ended, as in the
%%   paper's experiment (MacKenzie, Chechina, Trinder: Performance portability through
%%   semi-explicit placement in distributed Erlang, 2015, section 3).</li>
%% <li>`slow_items' is the share of the items that came to nodes with the smaller part.</li>
%% <li>`fullest' is what the node with the most has, in means.</li>
%% <li>`messages_per_choice' are those that all nodes sent, as the sockets of distribution
%%   count them.</li>
%% <li>The latency is that of a choice, from the moment at which it should begin.</li>
%% </ul>
%% Together the nodes may use three quarters of the machine's processors at most, so that it
%% is their bounds that hold them up and not each other. Before a round no one stands in line.
-module(atoll_bench_place).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

%% The longest that a round may take, and that lines may stand.
-define(RUN_MS, 600000).
-define(LINES_MS, 60000).
-define(ASK_MS, 60000).
%% All callers of a herd are told to begin so long before they should.
-define(HERD_MS, 500).

-spec summary() -> string().
summary() -> "work on unequal nodes, placed blindly or by attributes; many who choose at once".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Rules = [random, round_robin, attributes, attributes_aged, first, claims],
    [
        #{name => workload, type => atom, values => [unequal], one_of => [unequal, herd],
          help => "work on nodes of which some are slow, or callers that choose at the same moment"},
        #{name => nodes, type => integer, values => [8], min => 2, max => 64, help => "nodes to choose from"},
        #{name => each, type => integer, values => [2], max => 1000,
          help => "items of work, or callers, for each node on average"},
        #{name => slow, type => integer, values => [4], min => 0, max => 64, help => "of the nodes, how many are slow"},
        #{name => slow_percent, type => integer, values => [5], max => 100, unit => "%",
          help => "of a processor that a slow node may use"},
        #{name => percent, type => integer, values => [25], max => 100, unit => "%",
          help => "of a processor that any other node may use"},
        #{name => work, type => integer, values => [500, 2000, 8000, 32000], max => 1000000, unit => "1000 steps",
          help => "how long an item is; a thousand steps take some microseconds"},
        #{name => rule, type => atom, values => Rules, one_of => Rules,
          help => "unequal: random, round_robin, attributes, attributes_aged; herd: first, random, claims"}
    ].

-spec variant() -> atom().
variant() -> rule.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        value(run_ms, "Until the last item has ended", "ms"),
        value(slow_items, "Items on slow nodes", "%"),
        value(cpu_ms, "Processor time, all nodes", "ms"),
        value(fullest, "Fullest node, times the mean", ""),
        value(messages_per_choice, "Messages for a choice, all nodes", ""),
        #{name => choice, label => "Choice", unit => "ns", better => less, kind => latency}
    ].

value(Name, Label, Unit) ->
    #{name => Name, label => Label, unit => Unit, better => less, kind => value}.

%% A herd has no slow nodes and no work, whatever is swept.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    lists:uniq([
        case Workload of
            unequal -> Point;
            herd -> Point#{slow := 0, slow_percent := 100, percent := 100, work := 0}
        end
     || #{workload := Workload, rule := Rule} = Point <- Points, lists:member(Rule, rules(Workload))
    ]).

rules(unequal) -> [random, round_robin, attributes, attributes_aged];
rules(herd) -> [first, random, claims].

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{workload := herd}) ->
    ok;
check(Point) ->
    atoll_bench_unequal:check(Point).

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) ->
    atoll_bench_nodes:flags() ++ ["-atoll", "free_group", "off", "attributes", "[{free,true}]"].

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{workload := herd, nodes := Count} = Point) ->
    start(Count, Point, fun(Cluster) -> {ok, Point#{cluster => Cluster, nodes := atoll_cluster:nodes(Cluster)}} end);
setup(#{workload := unequal, nodes := Count, slow_percent := Less} = Point) ->
    Cpus = atoll_bench_unequal:shares(Point),
    start(Count + 1, Point, fun(Cluster) ->
        [Placer | Nodes] = atoll_cluster:nodes(Cluster),
        State = Point#{cluster => Cluster, placer => Placer, nodes := Nodes},
        case atoll_bench_unequal:bound(Cluster, Placer, Nodes, Cpus) of
            {ok, Quota} ->
                Slow = [Node || {Node, Share} <- lists:zip(Nodes, Cpus), Share =< Less / 100],
                {ok, State#{quota => Quota, slow_nodes => Slow}};
            {error, _} = Error ->
                Error
        end
    end).

%% Connections are none of its business.
start(Count, Point, Prepare) ->
    Options = #{nodes => Count, connect_all => true, apps => [atoll], args => flags(Point)},
    atoll_bench_nodes:start(Options, fun(Cluster) ->
        case atoll_bench_nodes:meshed(Cluster) of
            {ok, meshed} -> Prepare(Cluster);
            {error, _} = Error -> Error
        end
    end).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, workload := Workload} = State) ->
    case
        answer(fun() ->
            ok = no_lines(Cluster, erlang:monotonic_time(millisecond) + ?LINES_MS),
            Sent0 = sent(Cluster),
            Load = fun() -> {ok, case Workload of unequal -> work(State); herd -> herd(State) end} end,
            {{Chosen, Measures}, Cpu} = sure(atoll_bench_nodes:spending(Cluster, Load)),
            Measures#{
                cpu_ms => Cpu / 1000,
                fullest => fullest(Chosen, State),
                messages_per_choice => (sent(Cluster) - Sent0) / length(Chosen)
            }
        end)
    of
        {ok, Measures} -> {ok, Measures, State};
        {error, _} = Error -> Error
    end.

%% Claims end by themselves, and nobody tells of it.
no_lines(Cluster, Deadline) ->
    case {lists:sum(all(Cluster, atoll_bench_place_load, line, [])), erlang:monotonic_time(millisecond) < Deadline} of
        {0, _} ->
            ok;
        {_, true} ->
            receive
            after 100 -> no_lines(Cluster, Deadline)
            end;
        {Claims, false} ->
            throw({failed, io_lib:format("~b claims did not end", [Claims])})
    end.

sent(Cluster) -> lists:sum(all(Cluster, atoll_bench_machine, sent, [])).

fullest(Chosen, #{nodes := Nodes}) ->
    lists:max([length([One || One <- Chosen, One =:= Node]) || Node <- Nodes]) * length(Nodes) / length(Chosen).

work(#{cluster := Cluster, placer := Placer, nodes := Nodes, each := Each, work := Work, rule := Rule, slow_nodes := Slow}) ->
    Args = [Rule, Nodes, Each * length(Nodes), Work * 1000],
    {Us, Chosen, Choice} = sure(atoll_bench_nodes:call(Cluster, Placer, {atoll_bench_place_load, run}, Args, ?RUN_MS)),
    OnSlow = length([Node || Node <- Chosen, lists:member(Node, Slow)]),
    {Chosen, #{run_ms => Us / 1000, slow_items => 100 * OnSlow / length(Chosen), choice => Choice}}.

herd(#{cluster := Cluster, nodes := Nodes, each := Each, rule := Rule}) ->
    At = erlang:system_time(millisecond) + ?HERD_MS,
    {Chosen, Choices} = lists:unzip(all(Cluster, atoll_bench_place_load, herd, [Rule, Nodes, Each, At])),
    {lists:append(Chosen), #{choice => atoll_histogram:merge(Choices)}}.

all(Cluster, Module, Function, Args) ->
    Said = atoll_cluster:multicall(Cluster, Module, Function, Args, ?ASK_MS),
    _ = [throw({failed, wrong(Node, Reason)}) || {Node, {error, Reason}} <- Said],
    [Answer || {_, {ok, Answer}} <- Said].

wrong(Node, Reason) ->
    [atom_to_list(Node), ": ", atoll_cluster:format_error(Reason)].

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster} = State) ->
    ok = atoll_bench_nodes:stop(Cluster),
    case State of
        #{quota := Quota} -> ok = atoll_quota:stop(Quota);
        #{} -> ok
    end.
