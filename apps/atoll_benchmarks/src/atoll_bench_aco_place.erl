%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `aco_place': ACO's tree (mode `ml') on nodes of which some may use a small
%% part of a processor and the others a larger one, with its roles dealt out by what the nodes say
%% of themselves, or blindly. It is the validation of placement in MacKenzie, Chechina, Trinder:
%% Performance portability through semi-explicit placement in distributed Erlang (2015, section 3).
%%
%% Submasters have little to do, colonies all the work, and each round waits for the slowest of
%% these. The nodes' order deals the roles out ({@link aco_tree}):
%%
%% <dl>
%% <dt>`attributes'</dt><dd>those with `cgroup_cpus' below the middle of the two parts first: they
%%   become submasters, as many as there are submaster nodes at most.</dd>
%% <dt>`random'</dt><dd>any order, another one in each round, whose seed draws it.</dd>
%% </dl>
%%
%% == What the metrics are ==
%% <ul>
%% <li>`run_ms' is from when the tree stands until the last round has ended; `choose_ms' is
%%   the asking before.</li>
%% <li>`least_percent' is the smallest part that a node with a colony may use. Times are to be as
%%   its reciprocal where the colonies' work is all there is: that is what is expected of a ratio
%%   of two orders.</li>
%% <li>`best' is the cost of the schedule, which the order must not change.</li>
%% </ul>
-module(atoll_bench_aco_place).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-define(RUN_MS, 600000).
-define(ASK_MS, 20000).
-define(JOBS, 40).

-spec summary() -> string().
summary() -> "ACO on unequal nodes, its roles dealt out blindly or by attributes".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Orders = [random, attributes],
    [
        #{name => nodes, type => integer, values => [11], min => 5, max => 64, help => "nodes to place roles on; the tree's degree is 2"},
        #{name => slow, type => integer, values => [3], min => 0, max => 64, help => "of the nodes, how many are slow"},
        #{name => slow_percent, type => integer, values => [4], max => 100, unit => "%",
          help => "of a processor that a slow node may use"},
        #{name => percent, type => integer, values => [16], max => 100, unit => "%",
          help => "of a processor that any other node may use"},
        #{name => ants, type => integer, values => [1, 5, 20, 80], max => 10000, help => "ants of a colony"},
        #{name => local_iterations, type => integer, values => [5], max => 1000, help => "generations of ants in a round"},
        #{name => global_iterations, type => integer, values => [4], max => 1000, help => "rounds of the algorithm"},
        #{name => order, type => atom, values => Orders, one_of => Orders, help => "how the roles are dealt out"}
    ].

-spec variant() -> atom().
variant() -> order.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        value(run_ms, "All rounds of the algorithm", "ms", less),
        value(choose_ms, "Choosing", "ms", less),
        value(least_percent, "Least that a node with a colony may use", "%", more),
        value(slow_colonies, "Colonies on slow nodes", "%", less),
        value(cpu_ms, "Processor time, all nodes", "ms", less),
        value(best, "Cost of the best schedule", "", less)
    ].

value(Name, Label, Unit, Better) ->
    #{name => Name, label => Label, unit => Unit, better => Better, kind => value}.

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) -> Points.

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(Point) ->
    atoll_bench_unequal:check(Point).

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) ->
    atoll_bench_nodes:flags() ++ ["-atoll", "free_group", "off"].

%% One node more, which is not bounded and asks the others.
-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{nodes := Count} = Point) ->
    Shares = atoll_bench_unequal:shares(Point),
    Options = #{nodes => Count + 1, connect_all => true, apps => [atoll, aco], args => flags(Point)},
    atoll_bench_nodes:start(Options, fun(Cluster) ->
        [Placer | Nodes] = atoll_cluster:nodes(Cluster),
        case atoll_bench_nodes:meshed(Cluster) of
            {ok, meshed} ->
                case atoll_bench_unequal:bound(Cluster, Placer, Nodes, Shares) of
                    {ok, Quota} ->
                        {ok, Point#{cluster => Cluster, quota => Quota, placer => Placer, nodes := lists:zip(Nodes, Shares)}};
                    {error, _} = Error ->
                        Error
                end;
            {error, _} = Error ->
                Error
        end
    end).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{seed := Seed} = State) ->
    case answer(fun() -> measured(State) end) of
        {ok, Measures} -> {ok, Measures, State#{seed := Seed + 1}};
        {error, _} = Error -> Error
    end.

measured(#{cluster := Cluster, nodes := Placed} = State) ->
    {Us, [First | _] = Nodes} = timer:tc(fun() -> order(State) end),
    Spec = #{
        %% Always the same: so is the work of a colony, whichever node it is on.
        problem => atoll_bench_aco_sample:problem(?JOBS, 1),
        options => maps:with([ants, local_iterations, global_iterations], State),
        mode => ml,
        nodes => Nodes
    },
    Run = fun() -> atoll_bench_nodes:call(Cluster, First, {aco, run}, [Spec], ?RUN_MS) end,
    case sure(atoll_bench_nodes:spending(Cluster, Run)) of
        {{ok, #{wall_ms := WallMs, roles := Roles, best := Best}}, CpuUs} ->
            Colonies = [maps:get(Node, maps:from_list(Placed)) || {Node, colony} <- Roles],
            Most = lists:max([Share || {_, Share} <- Placed]),
            #{
                run_ms => WallMs,
                choose_ms => Us / 1000,
                least_percent => 100 * lists:min(Colonies),
                slow_colonies => 100 * length([Share || Share <- Colonies, Share < Most]) / length(Colonies),
                cpu_ms => CpuUs / 1000,
                best => Best
            };
        {{error, Reason}, _} ->
            throw({failed, aco:format_error(Reason)})
    end.

order(#{order := random, nodes := Placed, seed := Seed}) ->
    {Order, _} = atoll_random:shuffle([Node || {Node, _} <- Placed], rand:seed_s(exsss, Seed)),
    Order;
order(#{order := attributes, nodes := Placed, slow_percent := Less, percent := More, cluster := Cluster, placer := Placer}) ->
    Nodes = [Node || {Node, _} <- Placed],
    Condition = {cgroup_cpus, lt, (Less + More) / 200},
    case sure(atoll_bench_nodes:call(Cluster, Placer, {aco, order}, [Nodes, Condition], ?ASK_MS)) of
        {ok, Order} -> Order;
        {error, Error} -> throw({failed, atoll_place:format_error(Error)})
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster, quota := Quota}) ->
    ok = atoll_bench_nodes:stop(Cluster),
    ok = atoll_quota:stop(Quota).
