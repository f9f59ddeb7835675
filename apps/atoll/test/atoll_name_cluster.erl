%% SPDX-License-Identifier: Apache-2.0
%% Clusters of real nodes with names, for the suites: how they are told what to do, and
%% how they are cut in two and joined again.
-module(atoll_name_cluster).

-include_lib("stdlib/include/assert.hrl").

-export([start/2, group/3, call/5, try_call/6, each/5, await/2]).
-export([cut/3, mend/3, reconnect/3, apart/2, work/1, result/1, report/2]).

%% Beyond the longest that anything may take: it only ends what hangs.
-define(CALL_MS, 60000).

%% @doc Starts nodes that run atoll, each writing down its connections.
-spec start(pos_integer(), [string()] | fun(([node()]) -> [string()])) -> atoll_cluster:cluster().
start(Count, Args) ->
    Cluster = atoll_cluster_owned:start(#{nodes => Count, connect_all => false, apps => [atoll], args => Args}),
    [ok = call(Cluster, N, atoll_name_witness, start, []) || N <- atoll_cluster:nodes(Cluster)],
    Cluster.

%% @doc Makes a group of all these nodes, from the first. On a loaded machine one may be
%% silent for long enough to be left out: it is added.
-spec group(atoll_cluster:cluster(), atom(), [node()]) -> ok.
group(C, Name, [First | _] = Nodes) ->
    {ok, Name, _} = call(C, First, s_group, new_s_group, [Name, Nodes]),
    await(
        fun() ->
            case Nodes -- call(C, First, s_group, own_nodes, [Name]) of
                [] -> [];
                Missing -> {ok, Name, _} = call(C, First, s_group, add_nodes, [Name, Missing]), Missing
            end
        end,
        []
    ).

-spec call(atoll_cluster:cluster(), node(), module(), atom(), [term()]) -> term().
call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

%% @doc The same on a node that may be down, or be killed meanwhile.
-spec try_call(atoll_cluster:cluster(), node(), module(), atom(), [term()], timeout()) ->
    {ok, term()} | {error, node_down | timeout | busy}.
try_call(C, Node, M, F, A, Ms) ->
    try
        {ok, atoll_cluster:call(C, Node, M, F, A, Ms)}
    catch
        error:{Why, Node} when Why =:= node_down; Why =:= timeout; Why =:= busy -> {error, Why}
    end.

%% @doc Calls a function on each of these nodes at once; the arguments may hang on the node.
-spec each(atoll_cluster:cluster(), [node()], module(), atom(), [term()] | fun((node()) -> [term()])) -> [{node(), term()}].
each(C, Nodes, M, F, Args) ->
    Of = fun(N) -> case is_function(Args) of true -> Args(N); false -> Args end end,
    Works = [{N, work(fun() -> call(C, N, M, F, Of(N)) end)} || N <- Nodes],
    [{N, result(W)} || {N, W} <- Works].

%% @doc Looks again until it sees that. Between two looks the nodes have the machine.
-spec await(fun(() -> term()), Expected :: term()) -> ok.
await(Look, Expected) ->
    await(Look, Expected, erlang:monotonic_time(millisecond) + ?CALL_MS).

await(Look, Expected, Deadline) ->
    case Look() of
        Expected ->
            ok;
        Seen ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, {still, Seen, instead_of, Expected}),
            receive after 10 -> await(Look, Expected, Deadline) end
    end.

%% @doc The nodes of one side cannot reach those of the other: their cookies for each
%% other differ.
-spec cut(atoll_cluster:cluster(), [node()], [node()]) -> ok.
cut(C, Left, Right) ->
    _ = [set_cookies(C, N, Others, Cookie) || {N, Others, Cookie} <- sides(Left, Right, cut, torn)],
    lists:foreach(
        fun({N, Other}) ->
            _ = call(C, N, erlang, disconnect_node, [Other]),
            ok = await(fun() -> lists:member(Other, call(C, N, erlang, nodes, [connected])) end, false)
        end,
        [{N, Other} || {N, Others, _} <- sides(Left, Right, cut, torn), Other <- Others]
    ).

%% @doc They can reach each other again.
-spec mend(atoll_cluster:cluster(), [node()], [node()]) -> ok.
mend(C, Left, Right) ->
    Cookie = call(C, hd(Left), erlang, get_cookie, []),
    Works = [work(fun() -> set_cookies(C, N, Others, Cookie) end) || {N, Others, _} <- sides(Left, Right, Cookie, Cookie)],
    lists:foreach(fun(W) -> ok = result(W) end, Works).

%% @doc Connects each node of one side with each of the other, once they can reach each other
%% again: what they do by themselves takes its time, since who refuses is tried seldom. An attempt
%% that began with the wrong cookie may be under way, and what asks meanwhile gets its outcome.
-spec reconnect(atoll_cluster:cluster(), [node()], [node()]) -> ok.
reconnect(C, Left, Right) ->
    _ = [ok = await(fun() -> call(C, Here, net_kernel, connect_node, [There]) end, true) || Here <- Left, There <- Right],
    ok.

%% @doc Nobody of these is connected with anybody, at one look; Atoll has been stopped on all. One
%% after the other is not enough: OTP's process `rex' answers each node that comes up, and
%% connects again with one that has just gone.
-spec apart(atoll_cluster:cluster(), [node()]) -> ok.
apart(C, Nodes) ->
    await(
        fun() ->
            [ok = call(C, N, atoll_barrier, apart, []) || N <- Nodes],
            [N || N <- Nodes, call(C, N, atoll_barrier, connections, []) =/= []]
        end,
        []
    ).

sides(Left, Right, ToRight, ToLeft) ->
    [{N, Right, ToRight} || N <- Left] ++ [{N, Left, ToLeft} || N <- Right].

set_cookies(C, Node, Others, Cookie) ->
    lists:foreach(fun(Other) -> true = call(C, Node, erlang, set_cookie, [Other, Cookie]) end, Others).

%% @doc Does it in a process of its own.
-spec work(fun(() -> term())) -> {pid(), reference()}.
work(Fun) ->
    spawn_monitor(fun() -> exit({result, Fun()}) end).

%% @doc What came of it.
-spec result({pid(), reference()}) -> term().
result({Pid, Ref}) ->
    receive
        {'DOWN', Ref, process, Pid, {result, Result}} -> Result;
        {'DOWN', Ref, process, Pid, Crash} -> error(Crash)
    end.

%% @doc Says what was measured, in the log and on the terminal.
-spec report(string(), [term()]) -> ok.
report(Format, Args) ->
    ct:pal(Format, Args),
    io:format(user, "~n" ++ Format ++ "~n", Args).
