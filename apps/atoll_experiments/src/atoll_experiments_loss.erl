%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a run outlives what is taken from it: the ant colonies (`gr', `sr', `ml') and
%% Orbit in groups, while processes or nodes are killed. A value says that it ended with a result
%% or did not; what it said where it did not is kept too. A round may cost the nodes, so there is one for each start
%% ({@link atoll_experiments_at_once}).
%%
%% <dl>
%% <dt>`nothing'</dt><dd>is killed.</dd>
%% <dt>`storm'</dt><dd>a process a second on every node.</dd>
%% <dt>`submasters', `colony', `both'</dt><dd>after some rounds their nodes, all at once: the second
%%   node has submasters, and in `sr' is a gateway; the last one has a colony.</dd>
%% <dt>`gateway', `member'</dt><dd>when all nodes compute, one of Orbit's second group.</dd>
%% </dl>
-module(atoll_experiments_loss).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, setup/1, round/1, teardown/1]).
-export([losing/3, is_computing/0]).

-define(RUN_MS, 120000).
-define(ROUNDS, 20).
%% The nodes are killed when this round is over.
-define(LOST_AFTER, 5).
-define(PACE_MS, 150).
%% Orbit takes many times as long as it is left alone.
-define(ORBIT_SPACE, 100000).
-define(ORBIT_SIZE, 68859).
-define(ASK_MS, 100).
%% Reductions of a worker.
-define(STARTED, 50000).

-spec summary() -> string().
summary() -> "Whether ant colonies and Orbit outlive what is killed".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    {Programs, Lost} = {[gr, sr, ml, orbit], [nothing, submasters, colony, both, storm, gateway, member]},
    [
        #{name => nodes, type => integer, values => [11], min => 6, max => 64, help => "nodes of the run"},
        #{name => program, type => atom, values => Programs, one_of => Programs, help => "what runs"},
        #{name => lost, type => atom, values => Lost, one_of => Lost, help => "what is killed"}
    ].

-spec variant() -> atom().
variant() -> lost.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => Name, label => Label, unit => "", better => Better, kind => value}
     || {Name, Label, Better} <- [
            {ended, "Ended with all rounds", more},
            {nodes_lost, "Nodes lost", less},
            {restarts, "Names registered again", less},
            {kills, "Processes killed", less},
            {cost, "Cost of the best schedule", less}
        ]
    ].

%% What is asked of each.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    [Point || #{program := Program, lost := Lost} = Point <- Points, lists:member(Lost, of_program(Program))].

of_program(ml) -> [storm];
of_program(orbit) -> [gateway, member];
of_program(_) -> [nothing, submasters, colony, both, storm].

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(_Point) -> ok.

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{nodes := Count, program := Program} = Point) ->
    #{args := Args} = Options = atoll_bench_nodes:options(node_options(Program), Count),
    Quiet = Options#{args := fun(Nodes) -> ["-kernel", "logger_level", "none"] ++ given(Args, Nodes) end},
    atoll_bench_nodes:start(Quiet, fun(Cluster) -> {ok, Point#{cluster => Cluster}} end).

node_options(orbit) -> orbit:node_options(groups);
node_options(Mode) -> aco:node_options(Mode).

given(Args, Nodes) when is_function(Args) -> Args(Nodes);
given(Args, _Nodes) -> Args.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()}.
round(#{program := orbit, lost := Lost, cluster := Cluster} = State) ->
    Nodes = atoll_cluster:nodes(Cluster),
    %% The first node of a group is its gateway; the second group is nodes 4 to 6.
    Victim = lists:nth(case Lost of gateway -> 4; member -> 5 end, Nodes),
    Spec = #{generators => g124, space => ?ORBIT_SPACE, mode => groups, group_size => 3, nodes => Nodes},
    Killer = spawn_link(fun() ->
        ok = computing(Cluster),
        ok = atoll_cluster:kill(Cluster, Victim)
    end),
    Answer = atoll_bench_nodes:call(Cluster, hd(Nodes), {orbit, run}, [Spec], ?RUN_MS),
    true = unlink(Killer),
    true = exit(Killer, kill),
    {ok, case Answer of
        {ok, {ok, #{size := ?ORBIT_SIZE, nodes_lost := Gone}}} -> #{ended => 1, nodes_lost => length(Gone)};
        {ok, {ok, #{size := Size}}} -> told(io_lib:format("It found ~b vertices.", [Size]));
        {ok, {error, Reason}} -> told(orbit:format_error(Reason));
        {error, Why} -> told(Why)
    end, State};
round(#{lost := Lost, cluster := Cluster, program := Mode} = State) ->
    Spec = #{
        problem => atoll_bench_aco_sample:problem(40, 1),
        options => #{ants => 4, local_iterations => 4, global_iterations => ?ROUNDS, seed => 1},
        mode => Mode,
        pace_ms => ?PACE_MS
    },
    Answer = case Lost of
        storm -> atoll_bench_ants:run(Cluster, Spec, 1, ?RUN_MS);
        _ -> taking(Cluster, Spec, Lost)
    end,
    {ok, case Answer of
        {ok, #{rounds := ?ROUNDS, best := Cost, nodes_lost := Gone} = Result} ->
            (maps:with([restarts, kills], Result))#{ended => 1, cost => Cost, nodes_lost => length(Gone)};
        {ok, #{rounds := Rounds}} ->
            told(io_lib:format("It ended after ~b rounds.", [Rounds]));
        {error, Why} ->
            told(Why)
    end, State}.

%% A node that is not there when a run begins is another thing than one that is lost. How long it takes to
%% begin depends on what else the machine does.
computing(Cluster) ->
    case lists:all(fun({_, Answer}) -> Answer =:= {ok, true} end, atoll_cluster:multicall(Cluster, ?MODULE, is_computing, [])) of
        true -> ok;
        false -> receive after ?ASK_MS -> computing(Cluster) end
    end.

%% @doc Called on each node: whether a worker of Orbit has done more there than starting takes.
-spec is_computing() -> boolean().
is_computing() ->
    lists:any(
        fun(Pid) -> proc_lib:translate_initial_call(Pid) =:= {orbit_worker, init, 1} andalso has_worked(process_info(Pid, reductions)) end,
        processes()
    ).

has_worked({reductions, N}) -> N > ?STARTED;
has_worked(undefined) -> false.

told(Why) -> #{ended => 0, said => unicode:characters_to_binary(Why)}.

%% The nodes are processes of one machine.
taking(Cluster, Spec, Lost) ->
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    Victims = [lists:nth(Which, Nodes) || Which <- victims(Lost, length(Nodes))],
    OsPids = [Pid || #{node := Node, os_pid := Pid} <- Infos, lists:member(Node, Victims)],
    case atoll_bench_nodes:call(Cluster, First, {?MODULE, losing}, [Spec#{nodes => Nodes}, ?LOST_AFTER, OsPids], ?RUN_MS) of
        {ok, {ok, Result}} -> {ok, Result};
        {ok, {error, Reason}} -> {error, aco:format_error(Reason)};
        {error, _} = Error -> Error
    end.

victims(nothing, _) -> [];
victims(submasters, _) -> [2];
victims(colony, Last) -> [Last];
victims(both, Last) -> [2, Last].

%% @doc Called on the first node, which is where the run tells how far it is.
-spec losing(aco:spec(), Round :: pos_integer(), OsPids :: [pos_integer()]) -> {ok, aco:result()} | {error, aco:reason()}.
losing(Spec, _Round, []) ->
    aco:run(Spec);
losing(Spec, Round, OsPids) ->
    Killer = spawn_link(fun() ->
        receive
            {aco, best, Round, _} -> [] = os:cmd(lists:flatten(["kill -9", [[$\s, integer_to_list(OsPid)] || OsPid <- OsPids]]))
        end
    end),
    aco:run(Spec#{watcher => Killer}).

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) -> atoll_bench_nodes:stop(Cluster).
