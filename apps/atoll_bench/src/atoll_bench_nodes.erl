%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of a point: a cluster of its own, and what is asked of it. What
%% goes wrong is a sentence.
-module(atoll_bench_nodes).

-export([flags/0, options/2, start/2, stop/1, call/5, each/4, spending/2, memory_kib/1, meshed/1, grouped/4]).
-export([answer/1, sure/1]).

-export_type([answer/1]).

-type answer(Result) :: {ok, Result} | {error, unicode:chardata()}.

-define(MESH_MS, 30000).
-define(ASK_MS, 5000).

%% @doc What the VMs of many nodes on few processors are started with: one scheduler each, which
%% does not spin where it has nothing to do.
-spec flags() -> [string()].
flags() -> ["+S", "1:1", "+sbwt", "none"].

%% @doc So many nodes as a case says that they are started (its `node_options/1'), for a benchmark and
%% for the command that runs the same.
-spec options(#{args := [string()] | fun(([node(), ...]) -> [string()]), _ => _}, Count :: pos_integer()) ->
    atoll_cluster:options().
options(#{args := Args} = Case, Count) ->
    Case#{
        nodes => Count,
        args := case is_function(Args) of true -> fun(Nodes) -> flags() ++ Args(Nodes) end; false -> flags() ++ Args end
    }.

%% @doc Starts a cluster ({@link atoll_cluster:start/1}) and makes it ready; what
%% that returns, for a `stop/1' that is to come. If it cannot be made ready it is taken down again.
-spec start(atoll_cluster:options(), fun((atoll_cluster:cluster()) -> answer(Ready))) -> answer(Ready).
start(Options, Prepare) ->
    case atoll_cluster:start(Options) of
        {ok, Cluster} ->
            try Prepare(Cluster) of
                {ok, Ready} ->
                    {ok, Ready};
                {error, _} = Error ->
                    ok = stop(Cluster),
                    Error
            catch
                Class:Reason:Stack ->
                    ok = stop(Cluster),
                    erlang:raise(Class, Reason, Stack)
            end;
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc Takes it down.
-spec stop(atoll_cluster:cluster()) -> ok.
stop(Cluster) ->
    atoll_cluster:stop(Cluster).

%% @doc Applies a function of this application's on a node, within a deadline.
-spec call(atoll_cluster:cluster(), node(), {module(), atom()}, [term()], timeout()) -> answer(term()).
call(Cluster, Node, {Module, Function}, Args, Ms) ->
    try
        {ok, atoll_cluster:call(Cluster, Node, Module, Function, Args, Ms)}
    catch
        error:Reason:Stack ->
            case Stack of
                %% Raised here, by the call itself.
                [{atoll_cluster, _, _, _} | _] -> {error, atoll_cluster:format_error(Reason)};
                _ -> {error, io_lib:format("~ts:~ts failed on ~ts: ~0tp", [Module, Function, Node, Reason])}
            end;
        Class:Reason ->
            {error, io_lib:format("~ts:~ts ended on ~ts with ~ts ~0tp", [Module, Function, Node, Class, Reason])}
    end.

%% @doc Applies a function of this application's on all nodes at once, within a deadline, and
%% says what each answered, in their order; or of one why it did not.
-spec each(atoll_cluster:cluster(), {module(), atom()}, [term()], timeout()) -> answer([{node(), Answer :: term()}]).
each(Cluster, {Module, Function}, Args, Ms) ->
    Said = atoll_cluster:multicall(Cluster, Module, Function, Args, Ms),
    case [{Node, Reason} || {Node, {error, Reason}} <- Said] of
        [] -> {ok, [{Node, Answer} || {Node, {ok, Answer}} <- Said]};
        [{Node, Reason} | _] -> {error, io_lib:format("~ts: ~ts", [Node, atoll_cluster:format_error(Reason)])}
    end.

%% @doc What a function answers, with the processor time in microseconds that all nodes together
%% have used meanwhile. Of a node that does not tell it, that is the error.
-spec spending(atoll_cluster:cluster(), fun(() -> answer(Result))) -> answer({Result, Us :: integer()}).
spending(Cluster, Fun) ->
    answer(fun() ->
        Before = cpu_us(Cluster),
        Result = sure(Fun()),
        {Result, cpu_us(Cluster) - Before}
    end).

cpu_us(Cluster) ->
    sum([Us || {_, Us} <- sure(each(Cluster, {atoll_bench_machine, own_cpu_us}, [], ?ASK_MS))]).

%% Of integers: that of lists may be a float.
sum([Us | More]) when is_integer(Us) -> Us + sum(More);
sum([]) -> 0.

%% @doc The memory of all nodes together, KiB ({@link atoll_bench_machine:pss_kib/1}).
-spec memory_kib(atoll_cluster:cluster()) -> {ok, non_neg_integer()} | unknown.
memory_kib(Cluster) ->
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    Known = [KiB || #{os_pid := OsPid} <- Infos, {ok, KiB} <- [atoll_bench_machine:pss_kib(OsPid)]],
    case length(Known) =:= length(Infos) of
        true -> {ok, sum(Known)};
        false -> unknown
    end.

%% @doc Connects every node with every other, and returns when each sees all of them.
-spec meshed(atoll_cluster:cluster()) -> answer(meshed).
meshed(Cluster) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Answers = atoll_cluster:multicall(Cluster, atoll_bench_node, mesh, [Nodes, ?MESH_MS], ?MESH_MS + 5000),
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, ok}] of
        [] -> {ok, meshed};
        [{Node, {ok, {missing, Missing}}} | _] ->
            {error, io_lib:format("~ts does not come to see ~0tp", [Node, Missing])};
        [{_Node, {error, Reason}} | _] ->
            {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc Makes an s_group of these nodes, made by the first of them; all of them are in it when this
%% returns.
-spec grouped(atoll_cluster:cluster(), Name :: atom(), [node(), ...], Ms :: pos_integer()) -> answer(grouped).
grouped(Cluster, Name, [First | _] = Nodes, Ms) ->
    All = lists:sort(Nodes),
    case call(Cluster, First, {s_group, new_s_group}, [Name, Nodes], Ms) of
        {ok, {ok, Name, All}} -> {ok, grouped};
        {ok, {ok, Name, Some}} -> {error, io_lib:format("~0tp did not come into a group", [All -- Some])};
        {ok, {error, Error}} -> {error, s_group:format_error(Error)};
        {error, _} = Error -> Error
    end.

%% @doc What a function returns, or the sentence that it throws as `{failed, Sentence}'.
-spec answer(fun(() -> Result)) -> answer(Result).
answer(Fun) ->
    try
        {ok, Fun()}
    catch
        throw:{failed, Why} -> {error, Why}
    end.

%% @doc The result of an answer; within {@link answer/1} an error ends that.
-spec sure(answer(Result)) -> Result.
sure({ok, Result}) -> Result;
sure({error, Why}) -> throw({failed, Why}).
