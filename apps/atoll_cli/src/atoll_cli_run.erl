%% @doc One run of Orbit on a cluster of its own, which is gone when the run
%% ends, whichever way it ends.
-module(atoll_cli_run).

-export([orbit/1]).

-export_type([task/0, mode/0]).

%% How Orbit is run; or its program of the mesh, on nodes that are in groups
%% (see orbit_native).
-type mode() :: seq | par | mesh | groups | ring | 'groups-native'.

-type task() :: #{
    generators := orbit_generators:name(),
    space := pos_integer(),
    mode := mode(),
    %% how many
    nodes := pos_integer(),
    group_size := pos_integer(),
    workers := pos_integer()
}.

%% All nodes hear of each other at once, but the machine is shared.
-define(WAYS_MS, 60000).
-define(CALL_MS, 10000).

%% @doc Starts the nodes, runs, and takes the nodes down. An error is a sentence.
-spec orbit(task()) -> {ok, orbit:result()} | {error, unicode:chardata()}.
orbit(#{nodes := Count, mode := Mode, group_size := Size} = Task) ->
    Grouped = lists:member(Mode, [groups, ring, 'groups-native']),
    Options = #{
        nodes => Count,
        connect_all => not Grouped,
        %% The others are plain Erlang nodes: that is what groups are compared with.
        apps => [atoll || Grouped],
        args => case Mode of
                    'groups-native' -> fun(Nodes) -> orbit_native:args(Nodes, Size) end;
                    _ -> []
                end,
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    case atoll_cluster:start(Options) of
        {ok, Cluster} ->
            try
                case prepare(Cluster, Mode) of
                    ok -> run(Cluster, Task);
                    {error, _} = Error -> Error
                end
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end.

prepare(Cluster, 'groups-native') ->
    ok = atoll_cli_progress:now_doing("Waiting until every node has a way to every other"),
    Nodes = atoll_cluster:nodes(Cluster),
    Answers = atoll_cluster:multicall(Cluster, orbit_native, await, [Nodes, ?WAYS_MS], ?WAYS_MS + ?CALL_MS),
    ok = atoll_cli_progress:done(),
    case [Late || {_, Answer} = Late <- Answers, Answer =/= {ok, ok}] of
        [] ->
            ok;
        [{Node, {ok, {no_way, Other}}} | _] ->
            {error, io_lib:format("Node ~ts has found no way to ~ts within ~b s.", [Node, Other, ?WAYS_MS div 1000])};
        [{_, {error, Reason}} | _] ->
            {error, atoll_cluster:format_error(Reason)}
    end;
prepare(_Cluster, _Mode) ->
    ok.

%% The run is called from a process of its own: a node that dies or falls silent
%% may take the answer with it, and this process hears of that instead.
run(Cluster, #{mode := Mode} = Task) ->
    ok = atoll_cli_progress:now_doing(["Running Orbit in mode ", atom_to_list(Mode)]),
    Spec = Task#{nodes := atoll_cluster:nodes(Cluster), mode := program(Mode)},
    Pulse = atoll_cli_pulse:start_link(Cluster),
    Self = self(),
    Runner = spawn_link(fun() -> Self ! {answer, self(), call(Cluster, Spec)} end),
    Answer = await(Cluster, Runner, Pulse),
    ok = atoll_cli_progress:done(),
    ok = lists:foreach(fun end_process/1, [Runner, Pulse]),
    case Answer of
        {ok, Result} -> {ok, Result};
        {error, Sentence} -> {error, blame(Cluster, Sentence)};
        {stopped, Sentence} -> {error, Sentence}
    end.

%% Which program that is.
program('groups-native') -> mesh;
program(Mode) -> Mode.

%% What it may have said already is of no use any more, and goes with its pid.
end_process(Pid) ->
    true = unlink(Pid),
    true = exit(Pid, kill).

call(Cluster, #{nodes := [First | _]} = Spec) ->
    try atoll_cluster:call(Cluster, First, orbit, run, [Spec], infinity) of
        {ok, Result} -> {ok, Result};
        {error, Reason} -> {error, orbit:format_error(Reason)}
    catch
        error:Reason -> {error, atoll_cluster:format_error(Reason)}
    end.

await(Cluster, Runner, Pulse) ->
    receive
        {answer, Runner, Answer} ->
            Answer;
        {atoll_cluster, Cluster, {node_down, Node, _}} ->
            {error, sentence(down, Node)};
        {silent, Pulse, Node} ->
            {error, sentence(paused, Node)};
        {atoll_cluster, Cluster, stopped} ->
            {stopped, "The cluster was stopped during the run."}
    end.

%% A run sees connections go, and each of their two ends says it of the other.
%% Which node it really was, the system knows.
blame(Cluster, Sentence) ->
    try atoll_cluster:info(Cluster) of
        #{nodes := Infos} ->
            case [{State, Node} || #{node := Node, state := State} <- Infos, State =/= up] of
                [{State, Node} | _] -> sentence(State, Node);
                [] -> Sentence
            end
    catch
        %% The whole cluster is gone meanwhile.
        exit:_ -> Sentence
    end.

sentence(down, Node) -> io_lib:format("Node ~ts was lost during the run.", [Node]);
sentence(paused, Node) -> io_lib:format("Node ~ts does not answer any more.", [Node]).
