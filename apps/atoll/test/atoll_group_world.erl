%% SPDX-License-Identifier: Apache-2.0
%% A small world for the group protocol: the very module that runs on real nodes,
%% in virtual time, with messages that take their time, get lost, and nodes that
%% are cut off, killed and started again. One seed gives one history.
%%
%% The link room is played by the world itself: a wanted peer is connected after
%% a while if it can be reached, and otherwise reported unreachable; a connection
%% that neither end wants and no program uses is closed after a while, whatever is
%% on its way.
-module(atoll_group_world).

-export([new/2, new/3, new/4, options/0, call/3, step/1, settle/1, settle/2]).
-export([cut/2, heal/1, meet/1, kill/2, start/2, reboot/2, forget/2, pause/2, resume/1, lossy/2]).
-export([readers_first/1, told/2, notices/2]).
-export([kept/2, replies/1, pending/1, groups/1, views/1, linked/1, alive/1, now/1, leftovers/1]).

-record(world, {
    now = 0 :: integer(),
    rand :: rand:state(),
    options :: atoll_group_core:options(),
    %% What else nodes start with: `configured' and `has_file' of the configuration.
    boot = #{} :: map(),
    %% What they have kept, which without a file goes with the node.
    kept = #{} :: #{node() => [atoll_group_view:view()]},
    nodes = #{} :: #{node() => atoll_group_core:state()},
    %% How often each node was started: its incarnation.
    starts = #{} :: #{node() => pos_integer()},
    %% Connected pairs, and pairs that cannot connect; smaller name first.
    links = #{} :: #{{node(), node()} => []},
    cuts = #{} :: #{{node(), node()} => []},
    %% Connections that programs use.
    used = #{} :: #{{node(), node()} => []},
    %% Messages on their way, oldest first.
    channels = #{} :: #{{From :: node(), To :: node()} => [term()]},
    wants = #{} :: #{{node(), node()} => []},
    timers = #{} :: #{{node(), Key :: term()} => Due :: integer()},
    %% What the rooms below were told at each change, and its subscribers, newest first.
    told = #{} :: #{node() => [[{atoll_group_view:id(), [node()]}]]},
    notices = #{} :: #{node() => [term()]},
    %% What each node's readers see.
    published = #{} :: #{node() => [atoll_group_rules:published()]},
    asked = 0 :: non_neg_integer(),
    replies = #{} :: #{pos_integer() => {Reply :: term(), Asked :: integer(), At :: integer()}},
    open = #{} :: #{pos_integer() => {node(), Asked :: integer()}},
    %% Nodes that are there but do nothing.
    paused = #{} :: #{node() => []},
    loss = 0.0 :: float()
}).

%% How often a wanted connection is attempted.
-define(RETRY_MS, 100).
%% How long an unwanted one stays.
-define(LINGER_MS, 20).

new(Names, Seed) ->
    new(Names, Seed, options()).

new(Names, Seed, Options) ->
    new(Names, Seed, Options, #{}).

new(Names, Seed, Options, Boot) ->
    World = #world{rand = rand:seed_s(exsss, Seed), options = Options, boot = Boot},
    lists:foldl(fun start/2, World, Names).

options() ->
    #{
        answer_ms => 3000,
        operation_ms => 10000,
        settle_ms => 5000,
        gossip_ms => 2000,
        max_operations => 100,
        max_asks => 1000,
        max_tombstones => 50,
        removal => majority
    }.

%% What may be done from outside.

%% A local process of Node asks; gives the request's number.
call(Node, Request, #world{asked = N, open = Open, now = Now} = World) ->
    Id = N + 1,
    Asked = World#world{asked = Id, open = Open#{Id => {Node, Now}}},
    {Id, event(Node, {call, {self(), Id}, Request}, Asked)}.

%% Nodes of different sets cannot reach each other.
cut(Sets, #world{links = Links} = World) ->
    Pairs = [pair(A, B) || S1 <- Sets, S2 <- Sets, S1 < S2, A <- S1, B <- S2],
    Cut = World#world{cuts = maps:from_keys(Pairs, [])},
    lists:foldl(fun break/2, Cut, [P || P <- Pairs, maps:is_key(P, Links)]).

heal(World) ->
    World#world{cuts = #{}}.

%% It is there, its connections too, and does nothing.
pause(Node, #world{paused = Paused} = World) ->
    World#world{paused = Paused#{Node => []}}.

%% All go on; their timers are overdue.
resume(World) ->
    World#world{paused = #{}}.

%% A program on each node goes on sending to every other, as long as they are
%% connected.
meet(#world{nodes = Nodes} = World) ->
    Names = lists:sort(maps:keys(Nodes)),
    Pairs = [{A, B} || A <- Names, B <- Names, A < B],
    lists:foldl(fun link_pair/2, World#world{used = maps:from_keys(Pairs, [])}, Pairs).

%% The share of messages that a congested connection drops.
lossy(Share, World) ->
    World#world{loss = Share}.

kill(Node, #world{nodes = Nodes, links = Links, boot = Boot} = World0) when is_map_key(Node, Nodes) ->
    Broken = [P || {A, B} = P <- lists:sort(maps:keys(Links)), A =:= Node orelse B =:= Node],
    World = ended(Node, World0),
    Kept =
        case Boot of
            #{has_file := true} -> World#world.kept;
            #{} -> maps:remove(Node, World#world.kept)
        end,
    Dead = World#world{
        paused = maps:remove(Node, World#world.paused), kept = Kept, published = maps:remove(Node, World#world.published)
    },
    lists:foldl(fun break/2, Dead, Broken).

%% Its process has ended, and nobody waits for an answer of it.
ended(Node, #world{nodes = Nodes} = World) ->
    World#world{
        nodes = maps:remove(Node, Nodes),
        timers = maps:filter(fun({N, _}, _) -> N =/= Node end, World#world.timers),
        wants = maps:filter(fun({N, _}, _) -> N =/= Node end, World#world.wants),
        open = maps:filter(fun(_, {N, _}) -> N =/= Node end, World#world.open)
    }.

%% It comes up with nothing in its memory but what it has kept.
start(Node, #world{nodes = Nodes, starts = Starts, options = Options, boot = Boot, kept = Kept} = World0) ->
    Incarnation = maps:get(Node, Starts, 0) + 1,
    Config = Boot#{
        self => Node,
        incarnation => Incarnation,
        seed => erlang:phash2({Node, Incarnation}),
        options => Options,
        kept => maps:get(Node, Kept, []),
        published => maps:get(Node, World0#world.published, [])
    },
    {State, Effects} = atoll_group_core:init(Config, World0#world.now),
    World = World0#world{nodes = Nodes#{Node => State}, starts = Starts#{Node => Incarnation}},
    lists:foldl(fun(Effect, W) -> perform(Effect, Node, W) end, World, Effects).

%% A dead node never comes back: the world holds nothing of it.
forget(Node, #world{starts = Starts, told = Told, notices = Notices, kept = Kept} = World) ->
    World#world{
        starts = maps:remove(Node, Starts),
        told = maps:remove(Node, Told),
        notices = maps:remove(Node, Notices),
        kept = maps:remove(Node, Kept)
    }.

%% The process ends and is started anew; the connections stay, and so does what is in the table.
reboot(Node, #world{links = Links} = World) ->
    Peers = [P || Pair <- lists:sort(maps:keys(Links)), lists:member(Node, tuple_to_list(Pair)), P <- tuple_to_list(Pair), P =/= Node],
    lists:foldl(fun(Peer, W) -> event(Node, {up, Peer}, W) end, start(Node, ended(Node, World)), Peers).

%% Running

%% Until no answer is owed and the members have had time to compare notes.
settle(World) ->
    settle(30000, World).

settle(Ms, #world{now = Now} = World) ->
    run(Now + Ms, World).

run(Until, #world{now = Now} = World) when Now >= Until ->
    World;
run(Until, World) ->
    run(Until, step(World)).

%% One thing happens: a message arrives, or the next timer fires.
step(#world{channels = Channels, timers = Timers, paused = Paused, now = Now} = World) ->
    Running = [{K, At} || {{Node, _} = K, At} <- maps:to_list(Timers), not is_map_key(Node, Paused)],
    Due = lists:sort([K || {K, At} <- Running, At =< Now]),
    Waiting = lists:sort([C || {_, To} = C <- maps:keys(Channels), not is_map_key(To, Paused)]),
    case {Due, Waiting} of
        {[], []} ->
            World#world{now = max(Now, lists:min([Now + 1000 | [At || {_, At} <- Running]]))};
        {[], _} ->
            deliver_one(Waiting, World);
        {[Key | _], []} ->
            fire(Key, World);
        {[Key | _], _} ->
            %% A node that was stopped may read what came before it looks at the time.
            case chance(2, World) of
                {1, Chosen} -> fire(Key, Chosen);
                {2, Chosen} -> deliver_one(Waiting, Chosen)
            end
    end.

deliver_one(Channels, #world{now = Now} = World0) ->
    {Nth, World1} = chance(length(Channels), World0),
    {Ms, World} = chance(3, World1),
    deliver(lists:nth(Nth, Channels), World#world{now = Now + Ms - 1}).

chance(N, #world{rand = Rand0} = World) ->
    {X, Rand} = rand:uniform_s(N, Rand0),
    {X, World#world{rand = Rand}}.

deliver({From, To} = Channel, #world{channels = Channels} = World) ->
    #{Channel := [Message | Rest]} = Channels,
    Left =
        case Rest of
            [] -> maps:remove(Channel, Channels);
            _ -> Channels#{Channel := Rest}
        end,
    event(To, {message, From, Message}, World#world{channels = Left}).

fire({_Node, {connect, A, B}} = Key, #world{timers = Timers} = World) ->
    connect(A, B, World#world{timers = maps:remove(Key, Timers)});
fire({_Node, {close, A, B}} = Key, #world{timers = Timers} = World0) ->
    World = World0#world{timers = maps:remove(Key, Timers)},
    case is_wanted(A, B, World) orelse not is_map_key(pair(A, B), World#world.links) of
        true -> World;
        false -> break(pair(A, B), World)
    end;
fire({Node, Name} = Key, #world{timers = Timers} = World) ->
    event(Node, {timeout, Name}, World#world{timers = maps:remove(Key, Timers)}).

connect(A, B, #world{links = Links, cuts = Cuts, nodes = Nodes, wants = Wants} = World) ->
    Pair = pair(A, B),
    IsWanted = maps:is_key({A, B}, Wants),
    CanReach = maps:is_key(B, Nodes) andalso not maps:is_key(Pair, Cuts),
    case {maps:is_key(Pair, Links), IsWanted, CanReach} of
        {true, _, _} ->
            World;
        {false, false, _} ->
            World;
        {false, true, true} ->
            link_pair(Pair, World);
        {false, true, false} ->
            try_later(A, B, event(A, {cast, {unreachable, B}}, World))
    end.

link_pair(Pair, #world{links = Links} = World) when is_map_key(Pair, Links) ->
    World;
link_pair({A, B} = Pair, #world{links = Links} = World) ->
    event(B, {up, A}, event(A, {up, B}, World#world{links = Links#{Pair => []}})).

try_later(A, B, #world{timers = Timers, now = Now} = World) ->
    World#world{timers = Timers#{{A, {connect, A, B}} => Now + ?RETRY_MS}}.

break({A, B} = Pair, #world{links = Links, channels = Channels, timers = Timers} = World0) ->
    World1 = World0#world{
        links = maps:remove(Pair, Links),
        used = maps:remove(Pair, World0#world.used),
        channels = maps:without([{A, B}, {B, A}], Channels),
        %% The next connection has a time of its own.
        timers = maps:without([{A, {close, A, B}}, {B, {close, B, A}}], Timers)
    },
    World2 = down(A, B, World1),
    down(B, A, World2).

down(Node, Peer, #world{nodes = Nodes, wants = Wants} = World0) when is_map_key(Node, Nodes) ->
    World = event(Node, {down, Peer, lost}, World0),
    case Wants of
        #{{Node, Peer} := _} -> try_later(Node, Peer, World);
        #{} -> World
    end;
down(_Dead, _Peer, World) ->
    World.

event(Node, Event, #world{nodes = Nodes, now = Now} = World) ->
    #{Node := State0} = Nodes,
    {State, Effects} = atoll_group_core:handle(Event, Now, State0),
    lists:foldl(
        fun(Effect, W) -> perform(Effect, Node, W) end,
        World#world{nodes = Nodes#{Node := State}},
        readers_first(Effects)
    ).

%% The same effects. In virtual time all of an event happen at once; on a real node another
%% one may go on, and its caller ask here, between any two of them. So their order is looked
%% at: what lets somebody be answered comes after all that readers and other rooms are told.
readers_first(Effects) ->
    IsTold = fun
        ({act, _}) -> true;
        ({notify, _}) -> true;
        (_) -> false
    end,
    IsAnswer = fun
        ({reply, _, _}) -> true;
        ({send, _, {ready, _}}) -> true;
        (_) -> false
    end,
    case [Late || Late <- lists:dropwhile(fun(E) -> not IsAnswer(E) end, Effects), IsTold(Late)] of
        [] -> Effects;
        TooLate -> error({told_after_the_answer, TooLate, Effects})
    end.

perform({send, To, Message}, From, #world{links = Links, channels = Channels} = World0) ->
    {Lost, World} = is_lost(World0),
    case maps:is_key(pair(From, To), Links) andalso not Lost of
        true ->
            Queue = maps:get({From, To}, Channels, []),
            World#world{channels = Channels#{{From, To} => Queue ++ [Message]}};
        false ->
            World
    end;
perform({want, Peer}, Node, #world{wants = Wants} = World) ->
    Wanted = World#world{wants = Wants#{{Node, Peer} => []}},
    case maps:is_key(pair(Node, Peer), Wanted#world.links) of
        true -> Wanted;
        false -> try_later(Node, Peer, Wanted)
    end;
perform({unwant, Peer}, Node, #world{wants = Wants, timers = Timers, now = Now} = World0) ->
    World = World0#world{wants = maps:remove({Node, Peer}, Wants)},
    case is_wanted(Node, Peer, World) of
        true -> World;
        false -> World#world{timers = Timers#{{Node, {close, Node, Peer}} => Now + ?LINGER_MS}}
    end;
perform({timer, Key, Ms}, Node, #world{timers = Timers, now = Now} = World) ->
    World#world{timers = Timers#{{Node, Key} => Now + Ms}};
perform({cancel, Key}, Node, #world{timers = Timers} = World) ->
    World#world{timers = maps:remove({Node, Key}, Timers)};
perform({reply, {_, Id}, Reply}, Node, #world{replies = Replies, open = Open, now = Now} = World) ->
    %% Exactly one reply is owed.
    #{Id := {Node, Asked}} = Open,
    World#world{replies = Replies#{Id => {Reply, Asked, Now}}, open = maps:remove(Id, Open)};
perform({act, {keep, Views}}, Node, #world{kept = Kept} = World) ->
    World#world{kept = Kept#{Node => Views}};
perform({act, {configured, _Groups}}, _Node, World) ->
    World;
perform({act, {publish, Groups}}, Node, #world{published = Published, told = Told} = World) ->
    Cliques = [{Id, Nodes} || {_, Id, Nodes} <- Groups],
    World#world{
        published = Published#{Node => Groups}, told = Told#{Node => [Cliques | maps:get(Node, Told, [])]}
    };
perform({notify, Notice}, Node, #world{notices = Notices} = World) ->
    World#world{notices = Notices#{Node => [Notice | maps:get(Node, Notices, [])]}}.

is_lost(#world{loss = Loss} = World) when Loss == 0 ->
    {false, World};
is_lost(#world{loss = Share, rand = Rand0} = World) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {X < Share, World#world{rand = Rand}}.

is_wanted(A, B, #world{wants = Wants, used = Used}) ->
    is_map_key({A, B}, Wants) orelse is_map_key({B, A}, Wants) orelse
        is_map_key(pair(A, B), Used).

pair(A, B) -> {min(A, B), max(A, B)}.

%% What can be seen

replies(#world{replies = Replies}) -> Replies.

%% What the node would go on with.
kept(Node, #world{kept = Kept}) -> maps:get(Node, Kept, []).

%% Oldest first.
told(Node, #world{told = Told}) -> lists:reverse(maps:get(Node, Told, [])).
notices(Node, #world{notices = Notices}) -> lists:reverse(maps:get(Node, Notices, [])).

pending(#world{open = Open}) -> Open.

alive(#world{nodes = Nodes}) -> lists:sort(maps:keys(Nodes)).

now(#world{now = Now}) -> Now.

%% What readers on each live node see: names and members.
groups(#world{nodes = Nodes, published = Published}) ->
    maps:map(
        fun(Node, _) -> [{Name, Ns} || {Name, _, Ns} <- maps:get(Node, Published, [])] end,
        Nodes
    ).

%% The same with identities.
views(#world{nodes = Nodes, published = Published}) ->
    maps:map(fun(Node, _) -> maps:get(Node, Published, []) end, Nodes).

linked(#world{links = Links}) -> lists:sort(maps:keys(Links)).

%% What should have come to an end: timers of operations, and leases.
leftovers(#world{timers = Timers}) ->
    [
        K
     || {_, Key} = K <- maps:keys(Timers),
        Key =/= gossip,
        not lists:member(element(1, Key), [connect, close])
    ].
