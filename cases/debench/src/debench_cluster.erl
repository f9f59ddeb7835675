%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of DE-Bench, and a load on all of them at once. They are a cluster of its own, in a
%% mesh or in groups, or somebody else's ({@link debench_own}): what is here goes for both.
-module(debench_cluster).

-export([start/1, run/2, begin_load/2, look/1, finish/2, stop_load/1]).
-export([see_each_other/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-export_type([options/0, started/0, ask/0, looks/0]).

-type options() :: #{
    nodes := pos_integer(),
    system := debench_system:system(),
    %% Nodes of a group.
    group_size := pos_integer(),
    %% Further options of the cluster.
    cluster => map(),
    %% Called before and after the nodes are connected.
    before_ping => fun(() -> _),
    after_ping => fun(() -> _)
}.

-type started() :: #{
    nodes := [node(), ...],
    system := debench_system:system(),
    ask := ask(),
    %% If it is our own.
    cluster => atoll_cluster:cluster(),
    _ => _
}.

%% Applies a function on all nodes at once, within a deadline: what each says, or the sentence why one
%% does not.
-type ask() :: fun(({module(), atom()}, Args :: [term()], timeout()) -> atoll_bench_nodes:answer([{node(), term()}])).

-type looks() :: [{node(), atoll_bench_window:look()}, ...].

-define(BOOT_MS, 60000).
-define(CALL_MS, 60000).
%% For a load that has ended, until its workers have and its names are gone.
-define(GRACE_MS, 10000).
-define(GONE_MS, 60000).

%% @doc Starts the nodes; those of a mesh see all others, and those of a group each other.
-spec start(options()) -> atoll_bench_nodes:answer(started()).
start(#{nodes := Count, system := System, group_size := Size} = Options) ->
    Asked = atoll_bench_nodes:options(debench:node_options(System), Count),
    atoll_bench_nodes:start(maps:merge(Asked, maps:get(cluster, Options, #{})), fun(Cluster) ->
        answer(fun() ->
            Ask = fun(Function, Args, Ms) -> atoll_bench_nodes:each(Cluster, Function, Args, Ms) end,
            Started = #{nodes => atoll_cluster:nodes(Cluster), system => System, ask => Ask, cluster => Cluster},
            _ = (maps:get(before_ping, Options, fun() -> ok end))(),
            ok = connect(Started, Size),
            _ = (maps:get(after_ping, Options, fun() -> ok end))(),
            Started
        end)
    end).

connect(#{system := mesh} = Started, _Size) ->
    see_each_other(Started);
connect(#{system := groups, cluster := Cluster, nodes := Nodes}, Size) ->
    lists:foreach(
        fun({Name, Members}) -> grouped = sure(atoll_bench_nodes:grouped(Cluster, Name, Members, ?BOOT_MS)) end,
        groups(Nodes, Size)
    ).

%% Each of so many nodes or more, of equal size or one more. They are not joined: nothing here needs it.
groups(Nodes, Size) ->
    {ok, Topology} = atoll_topology:star(Nodes, #{group_size => Size, prefix => debench}),
    lists:sublist(atoll_topology:groups(Topology), length(Nodes) div Size).

%% @doc Connects every node with every other; names are only given out when all are in one mesh. What
%% goes wrong is thrown, as {@link atoll_bench_nodes:answer/1} has it.
-spec see_each_other(started()) -> ok.
see_each_other(#{nodes := Nodes} = Started) ->
    Said = each(Started, atoll_bench_node, mesh, [Nodes, ?BOOT_MS], ?BOOT_MS + 5000),
    _ = [throw({failed, io_lib:format("~ts does not come to see ~0tp", [Node, Others])}) || {Node, {missing, Others}} <- Said],
    _ = each(Started, global, sync, [], ?BOOT_MS),
    ok.

%% @doc A load from its begin to its end, on all nodes; the names are gone when it
%% returns.
-spec run(started(), debench_peer:load()) -> atoll_bench_nodes:answer(looks()).
run(#{system := System} = Started, #{until_ms := Until} = Load) ->
    answer(fun() ->
        Looks = [
            case Answer of
                {ok, Look} -> {Node, Look};
                {error, Reason} -> throw({failed, refused(Node, Reason)})
            end
         || {Node, Answer} <- each(Started, debench_peer, run, [Load, ?GRACE_MS], Until + ?GRACE_MS + ?CALL_MS)
        ],
        ok = gone(Started, System),
        Looks
    end).

refused(Node, Reason) -> io_lib:format("the load could not begin on ~ts: ~0tP", [Node, Reason, 20]).

gone(Started, System) ->
    Said = each(Started, debench_peer, gone, [System, ?GONE_MS], ?GONE_MS + ?CALL_MS),
    case [{Node, Count} || {Node, {left, Count}} <- Said] of
        [] -> ok;
        [{Node, Count} | _] -> throw({failed, io_lib:format("~b names did not go from ~ts", [Count, Node])})
    end.

%% @doc Begins a load on all nodes.
-spec begin_load(started(), debench_peer:load()) -> atoll_bench_nodes:answer(ok).
begin_load(Started, Load) ->
    answer(fun() ->
        lists:foreach(
            fun
                ({_Node, ok}) -> ok;
                ({Node, {error, Reason}}) -> throw({failed, refused(Node, Reason)})
            end,
            each(Started, debench_peer, start, [Load], ?CALL_MS)
        )
    end).

%% @doc What has been done so far, by node.
-spec look(started()) -> atoll_bench_nodes:answer(looks()).
look(Started) ->
    answer(fun() -> each(Started, debench_peer, look, [], ?CALL_MS) end).

%% @doc Waits for the end of the load, and says what has been done.
-spec finish(started(), LeftMs :: non_neg_integer()) -> atoll_bench_nodes:answer(looks()).
finish(Started, LeftMs) ->
    answer(fun() -> each(Started, debench_peer, finish, [?GRACE_MS], LeftMs + ?GRACE_MS + ?CALL_MS) end).

%% @doc Ends it on all nodes.
-spec stop_load(started()) -> atoll_bench_nodes:answer(ok).
stop_load(Started) ->
    answer(fun() ->
        _ = each(Started, debench_peer, stop, [], ?CALL_MS),
        ok
    end).

each(#{ask := Ask}, Module, Function, Args, Ms) ->
    sure(Ask({Module, Function}, Args, Ms)).
