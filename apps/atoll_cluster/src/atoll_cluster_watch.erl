%% SPDX-License-Identifier: Apache-2.0
%% @doc Work on a cluster that is over at once when a node of it is lost or falls silent, unless that
%% was killed through {@link atoll_cluster:kill/2}: whoever did so wants to see it go on.
-module(atoll_cluster_watch).

-export([watched/3]).

-export_type([beside/0]).

%% What is done beside it in this VM: in a process that is ended when the work has.
-type beside() :: fun(() -> term()) | none.

%% @doc Runs a function, which asks a cluster that the caller has started, and ends it when a
%% node of that is lost or falls silent; what the function returns comes with the nodes that were
%% killed meanwhile.
%%
%% The function is called in a process of its own: a node that dies or falls silent
%% may take the answer with it, and this process hears of that instead.
-spec watched(atoll_cluster:cluster(), fun(() -> Answer), beside()) ->
    {ok, Result, Killed :: [node()]} | {error, unicode:chardata()}
when
    Answer :: {ok, Result} | {error, unicode:chardata()}.
watched(Cluster, Fun, Beside) ->
    Pulse = atoll_cluster_pulse:start_link(Cluster),
    Self = self(),
    Runner = spawn_link(fun() -> Self ! {answer, self(), Fun()} end),
    Others = [spawn_link(Beside) || Beside =/= none],
    {Answer, Killed} = await(Cluster, Runner, Pulse, []),
    ok = lists:foreach(fun end_process/1, [Runner, Pulse | Others]),
    case Answer of
        {ok, Result} -> {ok, Result, Killed};
        {error, Sentence} -> {error, blame(Cluster, Sentence, Killed)};
        {stopped, Sentence} -> {error, Sentence}
    end.

%% What it may have said already is of no use any more, and goes with its pid.
end_process(Pid) ->
    true = unlink(Pid),
    true = exit(Pid, kill).

await(Cluster, Runner, Pulse, Killed) ->
    receive
        {answer, Runner, Answer} ->
            {Answer, Killed};
        {atoll_cluster, Cluster, {node_down, Node, killed}} ->
            await(Cluster, Runner, Pulse, [Node | Killed]);
        {atoll_cluster, Cluster, {node_down, Node, _}} ->
            {{error, sentence(down, Node)}, Killed};
        {silent, Pulse, Node} ->
            {{error, sentence(paused, Node)}, Killed};
        {atoll_cluster, Cluster, stopped} ->
            {{stopped, "The cluster was stopped during the run."}, Killed}
    end.

%% A run sees connections go, and each of their two ends says it of the other.
%% Which node it really was, the system knows.
blame(Cluster, Sentence, Killed) ->
    try atoll_cluster:info(Cluster) of
        #{nodes := Infos} ->
            case [{State, Node} || #{node := Node, state := State} <- Infos, State =/= up,
                                   not lists:member(Node, Killed)] of
                [{State, Node} | _] -> sentence(State, Node);
                [] -> Sentence
            end
    catch
        %% The whole cluster is gone meanwhile.
        exit:_ -> Sentence
    end.

sentence(down, Node) -> io_lib:format("Node ~ts was lost during the run.", [Node]);
sentence(paused, Node) -> io_lib:format("Node ~ts does not answer any more.", [Node]).
