%% @doc Clusters for DE-Bench: nodes in a mesh or in groups, and a load on all of them at
%% once. Who calls here takes no part in the operations.
-module(debench_cluster).

-export([start/1, run/2, begin_load/2, look/1, finish/2, stop_load/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-export_type([options/0, started/0, looks/0]).

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

-type started() :: #{cluster := atoll_cluster:cluster(), system := debench_system:system(), _ => _}.

-type looks() :: [{node(), debench_peer:look()}, ...].

-define(BOOT_MS, 60000).
-define(CALL_MS, 60000).
%% For a load that has ended, until its workers have and its names are gone.
-define(GRACE_MS, 10000).
-define(GONE_MS, 60000).

%% @doc Starts the nodes; those of a mesh see all others, and those of a group each other.
-spec start(options()) -> atoll_bench_nodes:answer(started()).
start(#{nodes := Count, system := System, group_size := Size} = Options) ->
    Cluster = maps:merge((debench_system:options(System))#{nodes => Count}, maps:get(cluster, Options, #{})),
    atoll_bench_nodes:start(Cluster, fun(Started) ->
        answer(fun() ->
            _ = (maps:get(before_ping, Options, fun() -> ok end))(),
            ok = connect(Started, System, Size),
            _ = (maps:get(after_ping, Options, fun() -> ok end))(),
            #{cluster => Started, system => System}
        end)
    end).

connect(Cluster, mesh, _Size) ->
    meshed = sure(atoll_bench_nodes:meshed(Cluster)),
    %% Names are only given out when a node and the others are in one mesh.
    _ = each(Cluster, global, sync, [], ?BOOT_MS),
    ok;
connect(Cluster, groups, Size) ->
    Groups = debench_system:groups(groups, atoll_cluster:nodes(Cluster), Size),
    lists:foreach(
        fun({Name, Nodes}) -> grouped = sure(atoll_bench_nodes:grouped(Cluster, Name, Nodes, ?BOOT_MS)) end,
        Groups
    ).

%% @doc A load from its begin to its end, on all nodes; the names are gone when it
%% returns.
-spec run(started(), debench_peer:load()) -> atoll_bench_nodes:answer(looks()).
run(#{cluster := Cluster, system := System}, #{until_ms := Until} = Load) ->
    answer(fun() ->
        Looks = [
            case Answer of
                {ok, Look} -> {Node, Look};
                {error, Reason} -> throw({failed, refused(Node, Reason)})
            end
         || {Node, Answer} <- each(Cluster, debench_peer, run, [Load, ?GRACE_MS], Until + ?GRACE_MS + ?CALL_MS)
        ],
        ok = gone(Cluster, System),
        Looks
    end).

refused(Node, Reason) -> io_lib:format("the load could not begin on ~ts: ~0tP", [Node, Reason, 20]).

gone(Cluster, System) ->
    Said = each(Cluster, debench_peer, gone, [System, ?GONE_MS], ?GONE_MS + ?CALL_MS),
    case [{Node, Count} || {Node, {left, Count}} <- Said] of
        [] -> ok;
        [{Node, Count} | _] -> throw({failed, io_lib:format("~b names did not go from ~ts", [Count, Node])})
    end.

%% @doc Begins a load on all nodes.
-spec begin_load(started(), debench_peer:load()) -> atoll_bench_nodes:answer(ok).
begin_load(#{cluster := Cluster}, Load) ->
    answer(fun() ->
        lists:foreach(
            fun
                ({_Node, ok}) -> ok;
                ({Node, {error, Reason}}) -> throw({failed, refused(Node, Reason)})
            end,
            each(Cluster, debench_peer, start, [Load], ?CALL_MS)
        )
    end).

%% @doc What has been done so far, by node.
-spec look(started()) -> atoll_bench_nodes:answer(looks()).
look(#{cluster := Cluster}) ->
    answer(fun() -> each(Cluster, debench_peer, look, [], ?CALL_MS) end).

%% @doc Waits for the end of the load, and says what has been done.
-spec finish(started(), LeftMs :: non_neg_integer()) -> atoll_bench_nodes:answer(looks()).
finish(#{cluster := Cluster}, LeftMs) ->
    answer(fun() -> each(Cluster, debench_peer, finish, [?GRACE_MS], LeftMs + ?GRACE_MS + ?CALL_MS) end).

%% @doc Ends it on all nodes.
-spec stop_load(started()) -> atoll_bench_nodes:answer(ok).
stop_load(#{cluster := Cluster}) ->
    answer(fun() ->
        _ = each(Cluster, debench_peer, stop, [], ?CALL_MS),
        ok
    end).

each(Cluster, Module, Function, Args, Ms) ->
    sure(atoll_bench_nodes:each(Cluster, {Module, Function}, Args, Ms)).
