%% SPDX-License-Identifier: Apache-2.0
%% Nodes that stand by for one singleton, in virtual time: the decisions of the library, over
%% names, monitors and servers as simple as can be. What is random hangs on the seed.
-module(atoll_singleton_world).

-export([new/2, run/2, do/2, runs/1, holders/1, view/2, starts/2, info/2]).

%% How long the news of an end, a start and an end in order take at most.
-define(NEWS_MS, 50).
-define(START_MS, 100).
-define(END_MS, 900).

-record(world, {
    now = 0,
    seq = 0,
    rand,
    %% {At, Seq, Event}
    queue = gb_sets:new(),
    %% Node => #{core, timers, follows, side, member, up, broken, life}
    nodes = #{},
    %% {Node, Number} => #{since, reason, name_until}
    servers = #{},
    starts = []
}).

new(Names, Seed) ->
    lists:foldl(fun boot/2, #world{rand = rand:seed_s(exsss, Seed)}, Names).

boot(N, #world{nodes = Nodes} = W) ->
    Old = maps:get(N, Nodes, #{side => 1, member => true, broken => false, life => 0}),
    {Core, Effects} = atoll_singleton_core:init(
        #{self => N, name => thing, placed => no, options => atoll_singleton_core:defaults()}, W#world.now
    ),
    #{life := Life} = Old,
    Node = Old#{core => Core, timers => #{}, follows => none, up => true, life := Life + 1},
    perform(N, Effects, W#world{nodes = Nodes#{N => Node}}).

%% So many milliseconds pass.
run(Ms, #world{now = Now} = W) -> until(Now + Ms, W).

until(End, #world{queue = Queue} = W) ->
    case gb_sets:is_empty(Queue) orelse gb_sets:smallest(Queue) of
        {At, _, Event} when At =< End ->
            until(End, happen(Event, W#world{now = At, queue = gb_sets:delete({At, element(2, gb_sets:smallest(Queue)), Event}, Queue)}));
        _ ->
            W#world{now = End}
    end.

later(Ms, Event, #world{now = Now, seq = Seq, queue = Queue} = W) ->
    W#world{seq = Seq + 1, queue = gb_sets:add({Now + Ms, Seq, Event}, Queue)}.

soon(Max, Event, #world{rand = Rand0} = W) ->
    {Ms, Rand} = rand:uniform_s(Max, Rand0),
    later(Ms, Event, W#world{rand = Rand}).

%% What happens from outside.

do({crash, Reason}, W) ->
    lists:foldl(fun(S, W1) -> die(S, Reason, W1) end, W, holders(W));
do({kill, N}, #world{nodes = Nodes} = W0) ->
    #{N := Node} = Nodes,
    W = W0#world{nodes = Nodes#{N := Node#{up := false}}},
    lists:foldl(fun(S, W1) -> die(S, noconnection, W1) end, W, [S || {M, _} = S <- alive(W), M =:= N]);
do({boot, N}, #world{nodes = Nodes} = W) ->
    case Nodes of
        #{N := #{up := true}} -> W;
        _ -> boot(N, W)
    end;
do({split, Left}, #world{nodes = Nodes} = W0) ->
    W = W0#world{nodes = maps:map(fun(N, Node) -> Node#{side := case lists:member(N, Left) of true -> 1; false -> 2 end} end, Nodes)},
    lists:foldl(
        fun
            ({N, #{follows := {M, _} = S}}, W1) ->
                case side(N, W1) =:= side(M, W1) of
                    true -> W1;
                    false -> soon(?NEWS_MS, {gone, N, life(N, W1), S, noconnection}, W1)
                end;
            (_, W1) -> W1
        end,
        clashes(W),
        lists:sort(maps:to_list(W#world.nodes))
    );
do(heal, #world{nodes = Nodes} = W) ->
    clashes(W#world{nodes = maps:map(fun(_, Node) -> Node#{side := 1} end, Nodes)});
do({member, N, Flag}, #world{nodes = Nodes} = W0) ->
    #{N := Node} = Nodes,
    W1 = W0#world{nodes = Nodes#{N := Node#{member := Flag}}},
    W = lists:foldl(fun(S, W2) -> unname(S, W2) end, W1, [S || {M, _} = S <- alive(W1), M =:= N, not Flag]),
    lists:foldl(fun(M, W2) -> later(0, {look, M, life(M, W2)}, W2) end, W, lists:sort(maps:keys(Nodes)));
do({broken, N, Flag}, #world{nodes = Nodes} = W) ->
    #{N := Node} = Nodes,
    W#world{nodes = Nodes#{N := Node#{broken := Flag}}};
do({tell, N, Event}, W) ->
    tell(N, Event, W).

%% Of those that see each other now the first keeps the name.
clashes(W) ->
    Of = fun(Side) -> [S || {N, _} = S <- holders(W), side(N, W) =:= Side] end,
    Pairs = [{Winner, Loser} || Side <- [1, 2], [Winner | Losers] <- [Of(Side)], Loser <- Losers],
    lists:foldl(fun({Winner, Loser}, W1) -> soon(?NEWS_MS, {conflict, Loser, Winner}, W1) end, W, Pairs).

%% What happens by itself.

happen({timer, N, Life, Key, Ref}, W) ->
    case node_of(N, Life, W) of
        #{timers := #{Key := Ref} = Timers} -> tell(N, {Key, view(N, W)}, set(N, timers, maps:remove(Key, Timers), W));
        _ -> W
    end;
happen({look, N, Life}, W) ->
    case node_of(N, Life, W) of
        none -> W;
        _ -> tell(N, {look, view(N, W)}, W)
    end;
happen({gone, N, Life, Server, Reason}, W) ->
    case node_of(N, Life, W) of
        #{follows := Server} -> tell(N, {gone, Server, Reason, view(N, W)}, set(N, follows, none, W));
        _ -> W
    end;
happen({start, N, Life}, #world{now = Now, seq = Seq, servers = Servers, starts = Starts} = W0) ->
    W = W0#world{starts = [{Now, N} | Starts]},
    case {node_of(N, Life, W), view(N, W)} of
        {none, _} -> W;
        {#{broken := true}, View} -> tell(N, {failed, broken, View}, W);
        {_, #{holder := none}} ->
            Server = {N, Seq},
            Started = W#world{seq = Seq + 1, servers = Servers#{Server => #{since => Now, ended => never, name_until => infinity}}},
            tell(N, {started, Server, view(N, Started)}, Started);
        {_, View} -> tell(N, {taken, View}, W)
    end;
happen({'end', Server}, W) ->
    case lists:member(Server, alive(W)) of
        true -> die(Server, shutdown, W);
        false -> W
    end;
happen({conflict, {M, _} = Loser, {N, _} = Winner}, W) ->
    case [S || S <- [Loser, Winner], lists:member(S, holders(W)), side(M, W) =:= side(N, W)] of
        [_, _] -> tell(element(1, Loser), {lost, Loser, Winner}, unname(Loser, W));
        _ -> W
    end;
happen({ended, N, Life, Server, Reason}, W) ->
    case node_of(N, Life, W) of
        none -> W;
        _ -> tell(N, {ended, Server, Reason, view(N, W)}, W)
    end.

die({N, _} = Server, Reason, #world{now = Now, nodes = Nodes, servers = Servers, rand = Rand0} = W0) ->
    {Stale, Rand} = rand:uniform_s(?NEWS_MS, Rand0),
    #{Server := #{name_until := Until} = Process} = Servers,
    Ended = Process#{ended := Now, name_until := min(Until, Now + Stale)},
    W = later(0, {ended, N, life(N, W0), Server, Reason}, W0#world{rand = Rand, servers = Servers#{Server := Ended}}),
    lists:foldl(
        fun
            ({M, #{follows := S}}, W1) when S =:= Server -> soon(?NEWS_MS, {gone, M, life(M, W1), Server, Reason}, W1);
            (_, W1) -> W1
        end,
        W,
        lists:sort(maps:to_list(Nodes))
    ).

unname(Server, #world{now = Now, servers = Servers} = W) ->
    #{Server := Process} = Servers,
    W#world{servers = Servers#{Server := Process#{name_until := Now}}}.

tell(N, Event, #world{nodes = Nodes, now = Now} = W) ->
    #{N := #{core := Core0} = Node} = Nodes,
    {Core, Effects} = atoll_singleton_core:handle(Event, Now, Core0),
    perform(N, Effects, W#world{nodes = Nodes#{N := Node#{core := Core}}}).

perform(N, Effects, W) ->
    lists:foldl(fun(Effect, W1) -> act(Effect, N, W1) end, W, Effects).

act({timer, Key, Ms}, N, #world{seq = Seq, nodes = Nodes} = W) ->
    #{N := #{timers := Timers}} = Nodes,
    later(Ms, {timer, N, life(N, W), Key, Seq}, set(N, timers, Timers#{Key => Seq}, W));
act({cancel, Key}, N, #world{nodes = Nodes} = W) ->
    #{N := #{timers := Timers}} = Nodes,
    set(N, timers, maps:remove(Key, Timers), W);
act({follow, {M, _} = Server}, N, W0) ->
    W = set(N, follows, Server, W0),
    case {side(N, W) =:= side(M, W), lists:member(Server, alive(W))} of
        {false, _} -> later(0, {gone, N, life(N, W), Server, noconnection}, W);
        {true, false} -> later(0, {gone, N, life(N, W), Server, noproc}, W);
        {true, true} -> W
    end;
act(unfollow, N, W) -> set(N, follows, none, W);
act(start, N, W) -> soon(?START_MS, {start, N, life(N, W)}, W);
act({'end', Server}, _N, W) -> soon(?END_MS, {'end', Server}, W);
act({kill, Server}, _N, W) -> later(0, {'end', Server}, W);
act(_, _N, W) -> W.

set(N, Key, Value, #world{nodes = Nodes} = W) ->
    #{N := Node} = Nodes,
    W#world{nodes = Nodes#{N := Node#{Key := Value}}}.

life(N, #world{nodes = Nodes}) -> maps:get(life, maps:get(N, Nodes)).
side(N, #world{nodes = Nodes}) -> maps:get(side, maps:get(N, Nodes)).

node_of(N, Life, #world{nodes = Nodes}) ->
    case Nodes of
        #{N := #{up := true, life := Life} = Node} -> Node;
        _ -> none
    end.

%% What a node sees.
view(N, #world{now = Now, nodes = Nodes, servers = Servers} = W) ->
    case Nodes of
        #{N := #{member := false}} ->
            away;
        _ ->
            Side = side(N, W),
            Seen = [S || {{M, _} = S, #{name_until := Until}} <- lists:sort(maps:to_list(Servers)), Now < Until, side(M, W) =:= Side],
            Own = [S || {M, _} = S <- Seen, M =:= N, lists:member(S, alive(W))],
            Others = [S || {M, _} = S <- Seen, M =/= N],
            #{
                holder => case Own ++ Others of [] -> none; [S | _] -> S end,
                standbys => [M || {M, #{up := true, member := true, side := Its}} <- lists:sort(maps:to_list(Nodes)), Its =:= Side]
            }
    end.

alive(#world{servers = Servers}) -> [S || {S, #{ended := never}} <- lists:sort(maps:to_list(Servers))].

%% Servers that live and have the name.
holders(#world{servers = Servers}) -> [S || {S, #{ended := never, name_until := infinity}} <- lists:sort(maps:to_list(Servers))].

%% {Server, Since, Until} of all.
runs(#world{servers = Servers}) -> [{S, Since, Ended} || {S, #{since := Since, ended := Ended}} <- lists:sort(maps:to_list(Servers))].

starts(N, #world{starts = Starts}) -> [At || {At, M} <- lists:reverse(Starts), M =:= N].

info(N, #world{nodes = Nodes}) ->
    #{N := #{core := Core}} = Nodes,
    atoll_singleton_core:info(Core).
