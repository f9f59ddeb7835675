%% @doc ACO for the experiments: problems, and runs on clusters of their own.
-module(atoll_experiments_aco).

-export([exact/1, cluster/3, run/2, run_losing/4, figures/1, parallel/1]).
-export([losing/3]).

-export_type([task/0]).

%% What is to be run: {@link aco:spec()}, but for the nodes, which are those of a cluster; and how many
%% kills a second on each of them.
-type task() :: #{
    problem := aco_problem:problem(),
    options := aco_options:given(),
    mode := aco_tree:mode(),
    pace_ms => non_neg_integer(),
    chaos => number()
}.

-define(RUN_MS, 900000).

%% @doc The least cost of a small problem, by dynamic programming over the sets of the jobs that
%% are done (Held and Karp, 1962): the last one of a set ends when all of it have been done.
-spec exact(aco_problem:problem()) -> aco_schedule:cost().
exact(Problem) ->
    Jobs = aco_problem:jobs(Problem),
    Last = (1 bsl length(Jobs)) - 1,
    Numbered = lists:zip(lists:seq(0, length(Jobs) - 1), Jobs),
    Costs = lists:foldl(fun(Set, Known) -> Known#{Set => least(Set, Numbered, Known)} end, #{0 => 0}, lists:seq(1, Last)),
    maps:get(Last, Costs).

least(Set, Numbered, Known) ->
    In = [{N, Job} || {N, Job} <- Numbered, Set band (1 bsl N) =/= 0],
    End = lists:sum([Duration || {_, {_, Duration, _, _}} <- In]),
    lists:min([maps:get(Set bxor (1 bsl N), Known) + Weight * max(0, End - Due) || {N, {_, _, Weight, Due}} <- In]).

%% @doc What a function returns of a cluster on which a mode can run; the cluster is gone then.
-spec cluster(aco_tree:mode(), Nodes :: pos_integer(), fun((atoll_cluster:cluster()) -> Result)) ->
    Result | {error, unicode:chardata()}.
cluster(Mode, Count, Fun) ->
    #{args := Args} = Options = atoll_bench_aco:options(#{nodes => Count, mode => Mode}),
    atoll_cluster:with_cluster(Options#{args := ["-kernel", "logger_level", "none" | Args]}, Fun).

%% @doc A run on all nodes of a cluster; an error is a sentence.
-spec run(atoll_cluster:cluster(), task()) -> {ok, map()} | {error, unicode:chardata()}.
run(Cluster, Task) ->
    atoll_bench_ants:run(Cluster, maps:remove(chaos, Task), maps:get(chaos, Task, 0), ?RUN_MS).

answer({ok, {ok, Result}}) -> {ok, Result};
answer({ok, {error, Reason}}) -> {error, aco:format_error(Reason)};
answer({error, _} = Error) -> Error.

%% @doc A run on all nodes, some of which are killed, all at once, as soon as this round is over.
-spec run_losing(atoll_cluster:cluster(), Victims :: [node()], Round :: pos_integer(), task()) ->
    {ok, map()} | {error, unicode:chardata()}.
run_losing(Cluster, Victims, Round, Task) ->
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    OsPids = [Pid || #{node := Node, os_pid := Pid} <- Infos, lists:member(Node, Victims)],
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    answer(atoll_bench_nodes:call(Cluster, First, {?MODULE, losing}, [(maps:remove(chaos, Task))#{nodes => Nodes}, Round, OsPids], ?RUN_MS)).

%% @doc Called on the first node, which is where the run tells how far it is; the nodes are
%% processes of one machine.
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

%% @doc Of a result what can be kept as JSON; of an error its sentence.
-spec figures({ok, map()} | {error, unicode:chardata()}) -> map().
figures({ok, #{nodes_lost := Lost} = Result}) ->
    Keys = [best, rounds, build_ms, wall_ms, mode, nodes, colonies, packets_sent, connections_max, connections_mean, names, kills, restarts,
            back_ms_median, back_ms_max],
    Known = maps:filter(fun(_, Value) -> Value =/= none end, maps:with(Keys, Result)),
    Known#{connections_all => lists:sum(maps:values(maps:get(connections, Result, #{}))) / 2, nodes_lost => length(Lost)};
figures({error, Why}) ->
    #{failed => unicode:characters_to_binary(Why)}.

%% @doc What functions return that run at the same time; one that ends with an exception ends
%% the caller too, and with the caller all end.
-spec parallel([fun(() -> Result)]) -> [Result].
parallel(Funs) ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), Fun()} end) || Fun <- Funs],
    [receive {Pid, Result} -> Result end || Pid <- Pids].
