%% SPDX-License-Identifier: Apache-2.0
%% Clusters of real nodes with an overlay, for the suites: how they start, when they are
%% settled, and what their neighbours look like together.
-module(atoll_overlay_cluster).

-include_lib("stdlib/include/assert.hrl").

-export([start/3, start_named/5, begin_anew/2, settle/1, settle/2, mend/1, await_down/2]).
-export([each/5, views/1, await_symmetric/1, components/1]).

%% Beyond the longest that a witness waits.
-define(CALL_MS, 130000).

%% @doc Starts nodes whose overlay is of that strategy; the first are the contacts. The
%% caller may end before the cluster does.
-spec start(pos_integer(), atom(), Args :: [string()]) -> atoll_cluster:cluster().
start(Count, Strategy, Args) ->
    Name = lists:concat(["o", os:getpid(), "x", erlang:unique_integer([positive]), "x"]),
    Nodes = [list_to_atom(lists:concat([Name, N, "@127.0.0.1"])) || N <- lists:seq(1, Count)],
    Servers = [
        lists:flatten(io_lib:format("#{servers => ~w}", [lists:sublist(Nodes, 2)]))
     || Strategy =:= star
    ],
    Own = lists:append([["-atoll", "overlay_options", S] || S <- Servers]),
    start_named(Name, Count, Strategy, contacts(Strategy, lists:sublist(Nodes, 3)), Own ++ Args).

%% @doc Starts nodes with that name and those contacts.
-spec start_named(string(), pos_integer(), atom(), [node()], Args :: [string()]) -> atoll_cluster:cluster().
start_named(Name, Count, Strategy, Contacts, Args) ->
    Own =
        ["-atoll", "overlay", atom_to_list(Strategy)] ++
            ["-atoll", "contacts", lists:flatten(io_lib:format("~w", [Contacts]))],
    atoll_cluster_owned:start(#{name => Name, nodes => Count, connect_all => false, apps => [atoll], args => Own ++ Args}).

%% @doc Atoll, which runs on all nodes, begins anew on them with these settings, when it has
%% ended on all and nobody is connected with anybody.
-spec begin_anew(atoll_cluster:cluster(), [{Key :: atom(), Value :: term()}]) -> ok.
begin_anew(C, Settings) ->
    Nodes = atoll_cluster:nodes(C),
    Ok = fun({M, F, Args}) -> [?assertEqual({N, ok}, {N, A}) || {N, A} <- each(C, Nodes, M, F, Args)] end,
    lists:foreach(Ok, [{atoll_overlay_witness, stop, []}, {application, stop, [atoll]}]),
    ok = atoll_name_cluster:apart(C, Nodes),
    lists:foreach(Ok, [{atoll_barrier, start_with, [Settings]}]).

%% These are told who their neighbours are.
contacts(Strategy, _Nodes) when Strategy =:= static; Strategy =:= cliques -> [];
contacts(_Strategy, Nodes) -> Nodes.

%% @doc Waits until every node knows all, and is a neighbour of one: a node that the others held
%% for dead is a member again before it is watched again. From then on its witness writes down anew.
-spec settle(atoll_cluster:cluster()) -> ok.
settle(C) ->
    settle(C, atoll_cluster:nodes(C)).

%% @doc As settle/1, of these nodes.
-spec settle(atoll_cluster:cluster(), [node()]) -> ok.
settle(C, Nodes) ->
    all(C, Nodes, start, []),
    all(C, Nodes, await, [members, lists:sort(Nodes)]),
    all(C, Nodes, await_neighbour, []),
    all(C, Nodes, await_history, []),
    all(C, Nodes, forget, []).

all(C, Nodes, F, Args) ->
    ?assertEqual([], [A || {_, Answer} = A <- each(C, Nodes, atoll_overlay_witness, F, Args), Answer =/= ok]).

%% @doc Calls a function on each of these nodes at once, and on no other: a node that is
%% stopped would be waited for.
-spec each(atoll_cluster:cluster(), [node()], module(), atom(), [term()]) -> [{node(), term()}].
each(C, Nodes, M, F, Args) ->
    Workers = [{N, spawn_monitor(fun() -> exit({answer, atoll_cluster:call(C, N, M, F, Args, ?CALL_MS)}) end)} || N <- Nodes],
    [
        receive
            {'DOWN', Ref, process, Pid, {answer, Answer}} -> {N, Answer};
            {'DOWN', Ref, process, Pid, Crash} -> error({N, Crash})
        end
     || {N, {Pid, Ref}} <- Workers
    ].

%% @doc Starts what is down, lets go on what is stopped, and has everybody join.
-spec mend(atoll_cluster:cluster()) -> ok.
mend(C) ->
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [ok = atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    Down = [N || #{node := N, state := down} <- Infos],
    [ok = await_down(C, N) || N <- Down],
    [ok = atoll_cluster:restart(C, N) || N <- Down],
    %% Who has left comes back.
    Nodes = atoll_cluster:nodes(C),
    Alone = [N || {N, []} <- views(C)],
    [ok = atoll_cluster:call(C, N, atoll, join, [lists:sublist(Nodes -- [N], 3)], ?CALL_MS) || N <- Alone, length(Nodes) > 1],
    ok.

%% @doc Waits until a node that was told to stop is down, for the cluster too: a call to it
%% may fail before, and only then can it be started again.
-spec await_down(atoll_cluster:cluster(), node()) -> ok.
await_down(C, Node) ->
    atoll_cluster_server:await_down(C, Node).

%% @doc The neighbours of each node that answers.
-spec views(atoll_cluster:cluster()) -> [{node(), [node()]}].
views(C) ->
    [{N, View} || {N, {ok, View}} <- atoll_cluster:multicall(C, atoll, neighbours, [], ?CALL_MS)].

%% @doc Waits until each neighbour of a node has it for a neighbour: views change while
%% nodes mix.
-spec await_symmetric(atoll_cluster:cluster()) -> ok.
await_symmetric(C) ->
    await_symmetric(C, erlang:monotonic_time(millisecond) + 30000).

await_symmetric(C, Deadline) ->
    Views = maps:from_list(views(C)),
    OneSided = [
        {A, B}
     || {A, View} <- maps:to_list(Views), B <- View, not lists:member(A, maps:get(B, Views, []))
    ],
    case OneSided of
        [] ->
            ok;
        _ ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, OneSided),
            receive after 20 -> await_symmetric(C, Deadline) end
    end.

%% @doc The connected parts of the graph, the largest first.
-spec components([{node(), [node()]}]) -> [[node()]].
components(Views) ->
    Graph = digraph:new(),
    try
        _ = [digraph:add_vertex(Graph, N) || {N, _} <- Views],
        _ = [digraph:add_edge(Graph, A, B) || {A, View} <- Views, B <- View],
        Parts = digraph_utils:components(Graph),
        lists:reverse(lists:sort([{length(P), lists:sort(P)} || P <- Parts]))
    after
        digraph:delete(Graph)
    end.
