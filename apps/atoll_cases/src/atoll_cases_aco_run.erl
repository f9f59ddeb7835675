%% SPDX-License-Identifier: Apache-2.0
%% @doc One run of the ant colonies on a cluster of its own, which is gone when
%% the run ends, whichever way it ends.
-module(atoll_cases_aco_run).

-export([task/3, check/1, options/1, run/1, run/3]).

-export_type([task/0, role/0]).

%% Nodes that can be killed: one with colonies, one with submasters.
-type role() :: colony | gateway.

-type task() :: #{
    problem := aco_problem:problem(),
    optimum := aco_schedule:cost() | none,
    until_optimum := boolean(),
    options := aco_options:options(),
    mode := aco_tree:mode(),
    %% how many
    nodes := pos_integer(),
    degree := pos_integer(),
    colonies := pos_integer(),
    duplicating := pos_integer(),
    pace := non_neg_integer(),
    %% kills per second and node
    chaos := number(),
    kill := [role()]
}.

%% How often it is looked how far the run is.
-define(LOOK_MS, 200).

%% @doc The task that the options of the command line ask for.
-spec task(aco_problem:problem(), aco_schedule:cost() | none, atoll_cli_options:values()) -> task().
task(Problem, Optimum, Values) ->
    {ok, Options} = aco_options:new(maps:with(maps:keys(aco_options:defaults()), Values)),
    Task = maps:with([until_optimum, mode, nodes, degree, colonies, duplicating, pace, chaos], Values),
    Task#{problem => Problem, optimum => Optimum, options => Options, kill => maps:get(kill, Values, [])}.

%% @doc Whether there are nodes enough for what is asked; or what is wrong, in a
%% sentence that names the flag.
-spec check(task()) -> ok | {error, unicode:chardata()}.
check(#{nodes := Count} = Task) ->
    %% Which nodes they are makes no difference.
    case layout([list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, Count)], Task) of
        {ok, Tree} ->
            case [Role || {Role, []} <- victims(Tree, Task)] of
                [] -> ok;
                [gateway | _] -> {error, no_gateway(Task)}
            end;
        {error, {too_few_nodes, Count, Needed, none}} ->
            {error, io_lib:format("--nodes must be at least ~b in mode tl, not \"~b\"", [Needed, Count])};
        {error, {too_few_nodes, Count, Needed, Degree}} ->
            {error, io_lib:format("--nodes must be at least ~b for --degree ~b, not \"~b\"", [Needed, Degree, Count])}
    end.

no_gateway(#{mode := tl}) ->
    "--kill gateway is for modes with submasters, which are ml, gr and sr";
no_gateway(#{nodes := Count, degree := Degree}) ->
    %% Only a second level of submasters has nodes beside the master's.
    io_lib:format("--nodes must be at least ~b for --kill gateway with --degree ~b, not \"~b\"",
                  [1 + Degree + Degree * Degree * Degree, Degree, Count]).

layout(Nodes, #{mode := Mode, degree := Degree, colonies := Colonies}) ->
    aco_tree:new(Mode, Nodes, Degree, Colonies).

%% The nodes that are killed, by what they are killed for: one or none. The
%% master's node is not among them.
victims(Tree, #{kill := Kill}) ->
    Roles = aco_tree:roles(Tree),
    [{Role, lists:sublist([Node || {Node, Is} <- Roles, Is =:= as(Role)], 1)} || Role <- Kill].

as(colony) -> colony;
as(gateway) -> submaster.

%% @doc Starts the nodes, runs, and takes the nodes down. An error is a sentence.
-spec run(task()) -> {ok, atoll_bench_ants:result()} | {error, unicode:chardata()}.
run(Task) -> run(Task, #{}, fun() -> ok end).

%% @doc The same, on a cluster that may have a name; Started is called when the nodes are there.
-spec run(task(), #{name => string()}, fun(() -> ok)) -> {ok, atoll_bench_ants:result()} | {error, unicode:chardata()}.
run(#{kill := Kill} = Task, More, Started) ->
    Options = maps:merge((options(Task))#{progress => atoll_cli_progress:bar("Starting nodes")}, More),
    Run = fun(Cluster) ->
        ok = Started(),
        on(Cluster, Task)
    end,
    case atoll_cluster:with_cluster(Options, Run) of
        {ok, _, Killed} when length(Killed) < length(Kill) ->
            {error, "The run was over before the nodes could be killed; with more rounds, or a --pace, it takes longer."};
        {ok, Result, _} ->
            {ok, Result};
        {error, _} = Error ->
            Error
    end.

%% @doc How the nodes are started: as those of the benchmark.
-spec options(task()) -> atoll_cluster:options().
options(Task) -> atoll_bench_aco:options(Task).

on(Cluster, #{problem := Problem, options := Options, mode := Mode, optimum := Optimum, chaos := Chaos} = Task) ->
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    Watcher = atoll_cluster:call(Cluster, First, atoll_cases_aco_progress, start, []),
    {ok, Tree} = layout(Nodes, Task),
    Spec = #{
        problem => Problem,
        options => Options,
        mode => Mode,
        optimum => Optimum,
        degree => maps:get(degree, Task),
        colonies_per_node => maps:get(colonies, Task),
        duplicating => maps:get(duplicating, Task),
        pace_ms => maps:get(pace, Task),
        until_optimum => maps:get(until_optimum, Task),
        watcher => Watcher
    },
    #{global_iterations := Rounds} = Options,
    Victims = lists:append([Found || {_, Found} <- victims(Tree, Task)]),
    Look = fun() -> atoll_cluster:call(Cluster, First, atoll_cases_aco_progress, latest, [Watcher]) end,
    Kill = fun(Node) -> atoll_cluster:kill(Cluster, Node) end,
    atoll_cases_program:watched(Cluster, ["Running ACO in mode ", atom_to_list(Mode)],
        fun() -> atoll_bench_ants:run(Cluster, Spec, Chaos) end,
        fun() -> watch(Look, Kill, Victims, Rounds, Mode) end).

%% Shows the best so far, and kills the nodes when a third of the rounds is over.
%% Whoever runs the program hears of a node or a cluster that is gone; one that does not answer in time is asked again.
watch(Look, Kill, Victims, Rounds, Mode) ->
    Left =
        try
            look(Look(), Kill, Victims, Rounds, Mode)
        catch
            error:{Late, _Node} when Late =:= timeout; Late =:= busy -> Victims;
            error:{Gone, _Node} when Gone =:= node_down; Gone =:= unknown_node -> gone;
            exit:_ -> gone
        end,
    case Left of
        gone ->
            ok;
        _ ->
            receive
            after ?LOOK_MS -> watch(Look, Kill, Left, Rounds, Mode)
            end
    end.

%% Those that are still to be killed.
look(none, _Kill, Victims, _Rounds, _Mode) ->
    Victims;
look({Round, Best}, Kill, Victims, Rounds, Mode) ->
    ok = atoll_cli_io:say_over(io_lib:format("ACO in mode ~s: round ~b of ~b, best ~ts",
                                             [Mode, Round, Rounds, atoll_cli_table:count(Best)])),
    Due = [Node || Node <- Victims, 3 * Round >= Rounds],
    %% One that is down already is not among the killed.
    _ = [Kill(Node) || Node <- Due],
    Victims -- Due.
