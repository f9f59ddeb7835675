%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for our ring. It starts one, of `ring_nodes' nodes (3), over `ring_carrier' (`stock', or `lanes'), with `ring_settings' as the ring's own, a list of pairs. Workers ask its nodes in turn,
%% from nodes that are not in the ring; one whose connection is lost they leave out until it is there again, and in the place of one that has begun nothing, since its ring does not run yet, they ask the next one, as clients do
%% that know several servers. What was under way at a node that is killed fails, and is not done again. With `{ring_kill, Seconds}' one of the nodes is killed so long after a load began, and started again a second later.
%%
%% `put' writes beside what there is, as one does who has seen nothing; `update' reads, and writes over that.
-module(atoll_load_ring).
-behaviour(atoll_load_driver).

-export([operations/0, rules/0, prepare/1, new/2, run/4]).
-export([in_turn/3, asked/2]).

-define(CALL_MS, 12_000).
-define(READY_MS, 30_000).
-define(LOOK_MS, 20).
-define(DOWN_MS, 1000).
-define(KNOCK_MS, 200).

%% Whose turn it is, and when it has tried last to reach one whose connection was lost.
-record(worker, {nodes :: [node(), ...], at :: pos_integer(), knocked = never :: never | integer()}).

-spec operations() -> [atom(), ...].
operations() -> [get, put, update, delete].

-spec rules() -> [atoll_bench_config:rule()].
rules() ->
    Whole = fun atoll_bench_config:whole/2,
    [
        {ring_nodes, 3, Whole(1, 50), "a whole number from 1 to 50"},
        {ring_carrier, stock, atoll_bench_config:kept(fun(Word) -> lists:member(Word, [stock, lanes]) end), "stock or lanes"},
        {ring_settings, [], fun settings/1, "a list of settings of the ring"},
        {ring_kill, 0, Whole(0, 86_400), "a whole number of seconds"}
    ].

settings(List) when is_list(List) ->
    case lists:all(fun({Key, _}) -> is_atom(Key); (_) -> false end, List) andalso ring_options:check(maps:from_list(List)) of
        false -> error;
        {ok, _} -> {ok, List};
        {error, Error} -> {error, ["is wrong: ", ring_options:format_error(Error)]}
    end;
settings(_) -> error.

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()} | {error, unicode:chardata()}.
prepare(#{ring_nodes := Count, ring_carrier := Carrier, ring_settings := Settings, ring_kill := Kill} = All) ->
    Shape = #{nodes => Count, carrier => Carrier, settings => maps:from_list(Settings)},
    atoll_bench_nodes:start(ring_cluster:options(Shape), fun(Cluster) ->
        Nodes = atoll_cluster:nodes(Cluster),
        case ready(Cluster, Nodes, erlang:monotonic_time(millisecond) + ?READY_MS) of
            ok ->
                Harm = harm(Kill, Cluster, lists:last(Nodes)),
                {ok, #{
                    where => elsewhere, stores => #{cluster => Cluster, nodes => Nodes}, settings => All#{nodes => Nodes},
                    begins => fun() -> _ = [Harm ! go || Kill > 0], ok end,
                    stop => fun() -> true = unlink(Harm), true = exit(Harm, kill), atoll_cluster:stop(Cluster) end
                }};
            late -> {error, io_lib:format("The ring is not whole after ~b s.", [?READY_MS div 1000])}
        end
    end).

%% Nobody tells when they see each other.
ready(Cluster, Nodes, Deadline) ->
    Said = [Status || {_, {ok, {ok, Status}}} <- atoll_cluster:multicall(Cluster, ring, status, [])],
    case {length(Said) =:= length(Nodes) andalso lists:all(fun(#{up := Up}) -> length(Up) =:= length(Nodes) end, Said), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, false} -> late;
        {false, true} ->
            receive after ?LOOK_MS -> ok end,
            ready(Cluster, Nodes, Deadline)
    end.

%% Once in each load.
harm(Seconds, Cluster, Node) ->
    spawn_link(fun() -> harming(Seconds, Cluster, Node) end).

harming(Seconds, Cluster, Node) ->
    receive go -> ok end,
    receive after 1000 * Seconds -> ok end,
    ok = atoll_cluster:kill(Cluster, Node),
    receive after ?DOWN_MS -> ok end,
    ok = atoll_cluster:restart(Cluster, Node),
    harming(Seconds, Cluster, Node).

%% From now on who is not connected is lost.
-spec new(pos_integer(), #{nodes := [node(), ...], _ => _}) -> {ok, #worker{}}.
new(Id, #{nodes := Nodes}) ->
    _ = [net_kernel:connect_node(Node) || Node <- Nodes],
    {ok, #worker{nodes = Nodes, at = Id}}.

-spec run(get | put | update | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), #worker{}) -> atoll_load_driver:answer(#worker{}).
run(get, Key, _, Worker) -> ask(get, [Key()], Worker);
run(put, Key, Value, Worker) -> ask(put, [Key(), Value()], Worker);
run(update, Key, Value, Worker) -> ask(replace, [Key(), Value()], Worker);
run(delete, Key, _, Worker) -> ask(delete, [Key()], Worker).

ask(Function, Args, #worker{nodes = Nodes, at = At} = Worker0) ->
    {Turn, Asked} = in_turn(Nodes, At, nodes(connected)),
    Worker1 = Worker0#worker{at = At + 1},
    Worker = case Asked of [Turn | _] -> Worker1; _ -> knocked(Turn, Worker1) end,
    case asked(fun(Node) -> called(Node, Function, Args) end, Asked) of
        {error, Why} -> {error, Why, Worker};
        _ -> {ok, Worker}
    end.

called(Node, Function, Args) ->
    try
        erpc:call(Node, ring_kvs, Function, Args, ?CALL_MS)
    catch
        error:{erpc, Why} -> {error, Why}
    end.

%% @doc Whose turn it is, and who is asked, one after the other: him first, and none that is lost; if all are, him.
-spec in_turn([node(), ...], At :: pos_integer(), Connected :: [node()]) -> {node(), [node(), ...]}.
in_turn(Nodes, At, Connected) ->
    {Before, From} = lists:split(At rem length(Nodes), Nodes),
    [Turn | _] = All = From ++ Before,
    case [Node || Node <- All, lists:member(Node, Connected)] of
        [] -> {Turn, [Turn]};
        There -> {Turn, There}
    end.

%% @doc What the first of these nodes says that has begun with it. Of all other errors nobody knows what was done.
-spec asked(fun((node()) -> Answer), [node(), ...]) -> Answer.
asked(Ask, [Node | Others]) ->
    case Ask(Node) of
        {error, Why} when Others =/= [], Why =:= not_started orelse Why =:= starting orelse Why =:= no_ring -> asked(Ask, Others);
        Answer -> Answer
    end.

%% To connect may take long.
knocked(Node, #worker{knocked = Last} = Worker) ->
    case erlang:monotonic_time(millisecond) of
        Now when Last =:= never; Now - Last >= ?KNOCK_MS ->
            _ = spawn(net_kernel, connect_node, [Node]),
            Worker#worker{knocked = Now};
        _ ->
            Worker
    end.
