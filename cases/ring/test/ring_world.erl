%% SPDX-License-Identifier: Apache-2.0
%% Rings on real nodes for suites, and sessions that miss what was lost.
-module(ring_world).

-include_lib("stdlib/include/assert.hrl").

-export([started/1, call/5, status/2, whole/3, await/1]).
-export([sessions/3, judged/3, written/2, fill/2]).

-define(MS, 30_000).
-define(KEYS, 40).
-define(FILLERS, 16).

%% @doc Starts a cluster with a ring on so many nodes, and waits until it is at rest.
started(#{nodes := Count} = Shape) ->
    C = atoll_cluster_owned:start(ring_cluster:options(Shape)),
    Ring = lists:sublist(atoll_cluster:nodes(C), Count),
    ok = whole(C, Ring, Ring),
    C.

%% @doc Calls a function on a node.
call(C, Node, M, F, Args) -> atoll_cluster:call(C, Node, M, F, Args, ?MS).

%% @doc What a node says of its ring.
status(C, Node) ->
    {ok, Status} = call(C, Node, ring, status, []),
    Status.

%% @doc These nodes have a ring of these members that is at rest, and take all of them for well.
whole(C, Nodes, Members) ->
    await(fun() ->
        lists:all(
            fun(Node) ->
                #{members := Are, up := Up} = status(C, Node),
                call(C, Node, ring, is_settled, []) andalso [M || {M, _} <- Are] =:= lists:sort(Members) andalso Members -- Up =:= []
            end,
            Nodes
        )
    end).

%% @doc Waits until it is so; gives `late' when it is not in time.
await(Is) -> await(Is, erlang:monotonic_time(millisecond) + ?MS).

await(Is, Deadline) ->
    case {Is(), erlang:monotonic_time(millisecond) >= Deadline} of
        {true, _} -> ok;
        {false, true} -> late;
        {false, false} -> receive after 20 -> await(Is, Deadline) end
    end.

%% @doc Begins sessions on a few keys, by the ring's nodes: for that time, or longer where all is slow.
sessions(C, Ms, Tag) ->
    Nodes = [Node || Node <- atoll_cluster:nodes(C), string:find(atom_to_list(Node), "_ring_") =/= nomatch],
    [Client] = atoll_cluster:nodes(C) -- Nodes,
    Self = self(),
    Seed = atoll_tier:seed(Tag),
    Options = #{sessions => 4, keys => ?KEYS, ms => Ms, turns => 15, seed => Seed},
    Ref = make_ref(),
    _ = spawn_link(fun() -> Self ! {Ref, atoll_cluster:call(C, Client, ring_sessions, run, [lists:sublist(Nodes, 3), Options, Tag], Ms + 300_000)} end),
    {Ref, Client, lists:sublist(Nodes, 3)}.

%% @doc What sessions were told, when they have ended, agrees with what the ring has: gives it.
%% All values of a cluster were written by its sessions: the checker is told of all of them, the earlier ones among it.
judged(C, {Ref, Client, Nodes}, Before) ->
    #{events := Events, failed := Failed} = receive {Ref, Told} -> Told after 600_000 -> error(late) end,
    ok = await(fun() -> hinted(C) =:= [] end),
    {ok, Final} = atoll_cluster:call(C, Client, ring_sessions, final, [Nodes, ?KEYS, #{copies => 3, ms => ?MS}], 2 * ?MS),
    #{acknowledged := N, reads := Reads} = Verdict = ring_history:check(Before ++ Events, Final),
    ct:pal("~b acknowledged, ~b reads, ~b failed", [N, Reads, Failed]),
    ?assertMatch(#{lost := [], invented := [], older := []}, Verdict),
    ?assert(N > 20),
    Events.

%% What nodes have of partitions that are others'.
hinted(C) ->
    Owners = maps:from_list(call(C, hd(atoll_cluster:nodes(C)), ring, partitions, [])),
    [{Node, P} || {Node, {ok, All}} <- atoll_cluster:multicall(C, ring, stored, []), is_list(All), {P, Keys} <- All, Keys > 0, map_get(P, Owners) =/= Node].

%% @doc The keys that sessions have written, and a node reads.
written(C, Node) -> [N || N <- lists:seq(1, ?KEYS), {ok, _, _} <- [call(C, Node, ring_kvs, get, [{key, N}])]].

%% @doc On a node: so many keys are written.
fill(What, Count) ->
    Each = (Count + ?FILLERS - 1) div ?FILLERS,
    Ns = [{I * Each + 1, min(Count, (I + 1) * Each)} || I <- lists:seq(0, ?FILLERS - 1), I * Each < Count],
    {#{copies := W}, _} = ring_options:installed(),
    Filling = [spawn_monitor(fun() -> [{ok, _} = ring_kvs:put({What, N}, N, #{w => W}) || N <- lists:seq(From, To)] end) || {From, To} <- Ns],
    lists:foreach(fun({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, Why} -> normal = Why end end, Filling).
