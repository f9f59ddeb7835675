%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter on real nodes: what the benchmark, the command line and the tests all make.
%%
%% Before anything is started it is looked whether the machine has the memory for so many nodes.
-module(atoll_bench_adcounter_run).

-export([enough/1, enough/2, start/2, run/2, stop/1]).

-export_type([shape/0, ready/0]).

-type shape() :: #{nodes := pos_integer(), mode := adcounter:mode()}.

-type ready() :: #{cluster := atoll_cluster:cluster(), mode := adcounter:mode(), nodes := [node(), ...]}.

-define(CONTACTS, 3).
%% What a node with one scheduler takes, its own pages and its share of the others: 30 MB of 60 nodes after three runs, and room for
%% more.
-define(NODE_MB, 40).
%% Hundreds of nodes that load the same modules at once share the processors.
-define(CALL_MS, 120_000).
-define(SETTLE_MS, 300_000).
-define(LOOK_MS, 100).
%% A machine with other work to do may let all nodes wait.
-define(SLACK_MS, 5000).
%% Beside the time in which as many impressions are shown as were paid for.
-define(PATIENCE_MS, 120_000).

%% @doc Whether the machine has the memory for so many nodes, as far as it tells.
-spec enough(pos_integer()) -> ok | {error, unicode:chardata()}.
enough(Nodes) -> enough(Nodes, available_mb()).

%% @doc The same with so much memory.
-spec enough(pos_integer(), AvailableMb :: non_neg_integer() | unknown) -> ok | {error, unicode:chardata()}.
enough(Nodes, AvailableMb) when is_integer(AvailableMb), Nodes * ?NODE_MB > AvailableMb ->
    {error, io_lib:format(
        "~b nodes take ~b MB of memory, ~b each, and this machine has ~b MB to give: that is ~b nodes. --simulated takes more of them.",
        [Nodes, Nodes * ?NODE_MB, ?NODE_MB, AvailableMb, AvailableMb div ?NODE_MB]
    )};
enough(_, _) ->
    ok.

%% What the machine has, or less where a control group does not allow as much.
available_mb() ->
    case {atoll_cluster_os:available_memory(), group_bytes()} of
        {unknown, _} -> unknown;
        {{ok, Bytes}, unknown} -> Bytes div 1048576;
        {{ok, Bytes}, Allowed} -> min(Bytes, Allowed) div 1048576
    end.

group_bytes() ->
    case {number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")} of
        {Max, Now} when is_integer(Max), is_integer(Now) -> max(0, Max - Now);
        _ -> unknown
    end.

number(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            try binary_to_integer(string:trim(Text)) catch error:badarg -> unknown end;
        {error, _} ->
            unknown
    end.

%% @doc Starts the nodes, and returns when each knows all others and has a neighbour; the caller owns them. `Further' are options of the
%% cluster. After an error nothing is left.
-spec start(shape(), #{atom() => term()}) -> {ok, ready()} | {error, unicode:chardata()}.
start(#{nodes := Count, mode := Mode}, Further) ->
    case enough(Count) of
        ok ->
            Options = atoll_bench_nodes:options(adcounter:node_options(Mode, ?CONTACTS), Count),
            atoll_bench_nodes:start(maps:merge(Options, Further), fun(Cluster) ->
                case settled(Count, Cluster) of
                    ok -> {ok, #{cluster => Cluster, mode => Mode, nodes => atoll_cluster:nodes(Cluster)}};
                    {error, _} = Error -> Error
                end
            end);
        {error, _} = Error ->
            Error
    end.

settled(Count, Cluster) ->
    Said = atoll_cluster:multicall(Cluster, adcounter, await_members, [Count, ?SETTLE_MS], ?SETTLE_MS + ?CALL_MS),
    case [Late || {_, Answer} = Late <- Said, Answer =/= {ok, ok}] of
        [] -> ok;
        [{Node, {ok, {late, Members, Neighbours}}} | _] ->
            {error, io_lib:format("~ts has ~b neighbours and knows ~b of ~b nodes after ~b s.", [Node, Neighbours, Members, Count, ?SETTLE_MS div 1000])};
        [{_, {error, Reason}} | _] -> {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc One run with these settings; the first node is the server. The nodes can have another one after it. The result also says what waited for the server's replica, and what memory the nodes have.
-spec run(ready(), adcounter_options:options()) -> {ok, adcounter_result:result()} | {error, unicode:chardata()}.
run(#{cluster := Cluster, mode := Mode, nodes := [Server | Clients]}, #{ads := Ads, budget := Budget, impression_ms := ImpressionMs} = Settings) ->
    Count = length(Clients),
    atoll_bench_nodes:answer(fun() ->
        %% All end before one begins, that nobody gets what was.
        _ = all(Cluster, application, stop, [adcounter]),
        Told = maps:to_list(Settings#{clients := Count}),
        ok = everywhere(ok, all(Cluster, application, set_env, [[{adcounter, Told}]])),
        ok = on(Cluster, Server, application, set_env, [adcounter, role, server]),
        _ = [started(Node, Answer) || {Node, Answer} <- all(Cluster, application, ensure_all_started, [adcounter])],
        ok = on(Cluster, Server, adcounter_server, open, []),
        Ms = 2 * Ads * Budget * ImpressionMs div Count + ?PATIENCE_MS,
        ok = on(Cluster, Server, atoll_bench_servers, start, [Ms + ?CALL_MS]),
        Deadline = erlang:monotonic_time(millisecond) + Ms,
        _ = sure(atoll_bench_nodes:call(Cluster, Server, {adcounter_server, await}, [Ms], Ms + ?CALL_MS)),
        {EqualAt, Status} = until_equal(Cluster, Deadline),
        Reports = maps:from_list([{Node, on(Cluster, Node, adcounter_client, report, [])} || Node <- Clients]),
        DisabledAt = on(Cluster, Server, adcounter_server, disabled_at, []),
        Servers = on(Cluster, Server, atoll_bench_servers, stop, []),
        Memory = memory(Server, Cluster),
        _ = all(Cluster, application, stop, [adcounter]),
        Result = adcounter_result:new(Settings, Count, #{
            clients => [map_get(Node, Reports) || Node <- Clients],
            disabled_at => DisabledAt,
            equal_at => EqualAt,
            counts => [Counts || #{counts := Counts} <- Status],
            sent => [Sent || #{replica := #{sent := Sent}} <- Status],
            counted => [Replica || #{replica := Replica} <- Status],
            hops => adcounter:hops(Mode, Count + 1),
            slack_ms => ?SLACK_MS
        }),
        Result#{memory_mb => Memory, server => waited(Servers)}
    end).

waited(Servers) ->
    case [Server || #{name := adcounter_replica} = Server <- Servers] of
        [Server] -> maps:remove(name, Server);
        [] -> #{busy => 0.0, waiting => 0.0, waiting_max => 0}
    end.

memory(Server, Cluster) ->
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    Known = [{Node, KiB / 1024} || #{node := Node, os_pid := OsPid} <- Infos, {ok, KiB} <- [atoll_bench_machine:pss_kib(OsPid)]],
    case {Known, [MB || {Node, MB} <- Known, Node =/= Server]} of
        {[{Server, Mb} | _], [_ | _] = Others} -> #{server => Mb, client => lists:sum(Others) / length(Others)};
        _ -> #{}
    end.

started(_, {ok, _}) -> ok;
started(Node, {error, {adcounter, {{bad_settings, Sentence}, {adcounter_app, start, _}}}}) -> throw({failed, [atom_to_list(Node), ": ", Sentence]});
started(Node, {error, Reason}) -> throw({failed, io_lib:format("~ts: ~0tP", [Node, Reason, 20])}).

all(Cluster, Module, Function, Args) -> sure(atoll_bench_nodes:each(Cluster, {Module, Function}, Args, ?CALL_MS)).

on(Cluster, Node, Module, Function, Args) -> sure(atoll_bench_nodes:call(Cluster, Node, {Module, Function}, Args, ?CALL_MS)).

everywhere(Answer, Said) ->
    case [Node || {Node, Other} <- Said, Other =/= Answer] of
        [] -> Answer;
        [Node | _] -> throw({failed, io_lib:format("~ts cannot be told its settings", [Node])})
    end.

sure(Answer) -> atoll_bench_nodes:sure(Answer).

%% No event tells of what all nodes together have come to, so it is looked at again.
until_equal(Cluster, Deadline) ->
    Status = [Said || {_, Said} <- all(Cluster, adcounter, status, [])],
    Now = erlang:system_time(millisecond),
    case {lists:usort([Counts || #{counts := Counts} <- Status]), erlang:monotonic_time(millisecond) >= Deadline} of
        {[[_ | _]], _} -> {Now, Status};
        {_, true} -> {never, Status};
        {_, false} ->
            receive after ?LOOK_MS -> ok end,
            until_equal(Cluster, Deadline)
    end.

%% @doc Takes the nodes down.
-spec stop(ready()) -> ok.
stop(#{cluster := Cluster}) -> atoll_bench_nodes:stop(Cluster).
