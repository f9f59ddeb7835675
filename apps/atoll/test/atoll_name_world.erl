%% SPDX-License-Identifier: Apache-2.0
%% A small world for the protocol of names: the very module that runs on real nodes,
%% in virtual time. Connections keep the order of messages and may lose some; they
%% break and come back; nodes are killed, started again and paused; processes die;
%% each node hears of its groups in its own time. One seed gives one history.
%%
%% All nodes are connected with each other as soon as they can be; with the option `auto' as
%% false only those in a group, those that a node wants, and those that connect/3
%% connects. Nodes in the option `hidden' are hidden.
%%
%% The world looks at every `yes' when it is given: each member that is connected with
%% the owner, and knows it as a member, must have the pid in its table; but not one that
%% the owner has found silent, and has not heard since.
-module(atoll_name_world).

-export([new/2, new/3, options/0, call/3, step/1, steps/2, run/2, settle/1, quiet/1]).
-export([members/3, hears/4, making/3, connect/3, cut/2, break/3, heal/1, kill/2, start/2, reboot/2, pause/2, resume/1, stop/2, lossy/2]).
-export([pid/2, die/2, is_alive/2, do/3]).
-export([group_members/2, replies/1, pending/1, tables/1, free_nodes/2, wants/1, is_linked/3, told/1, yes/1, alive/1, now/1, sent/1, faults/1, infos/1]).

-record(world, {
    now = 0 :: integer(),
    rand,
    options,
    nodes = #{},
    starts = #{},
    links = #{},
    cuts = #{},
    %% {From, To} => messages; oldest first.
    channels = #{},
    timers = #{},
    %% What happened at a node beside messages, oldest first.
    inbox = #{},
    %% Members of each group; what each node has heard of its groups.
    groups = #{},
    heard = #{},
    tables = #{},
    %% {Node, Key of its table}: a name that the node has in the world.
    own = #{},
    dead = #{},
    monitors = #{},
    wants = #{},
    asked = 0,
    replies = #{},
    open = #{},
    paused = #{},
    %% Connected, with no process that runs the protocol.
    without = #{},
    %% {Node, Peer}: Node's process was started anew, and Peer has not heard of it.
    unaware = #{},
    %% {Node, Peer}: Node has found Peer silent, and does not wait for it.
    silent = #{},
    %% Who says now whether it is free: it may cease to be a member and be one again
    %% in one event, in the midst of which a `yes' is right without it.
    hearing = none,
    loss = 0.0,
    told = [],
    yes = [],
    sent = 0,
    %% Broken promises, found on the way.
    faults = []
}).

-define(RETRY_MS, 100).

new(Names, Seed) -> new(Names, Seed, #{}).

new(Names, Seed, Options) ->
    World = #world{rand = rand:seed_s(exsss, Seed), options = maps:merge(options(), Options)},
    lists:foldl(fun start/2, World, Names).

options() ->
    #{
        answer_ms => 3000, operation_ms => 10000, tick_ms => 50, resend_ms => 200, batch => 5,
        window => 4, max_backlog => 1000, max_operations => 100, max_names => 1000,
        max_bytes => 1000, rules => #{}, rule => random_notify, free => mesh, seek_ms => 2000, max_sought => 100,
        remind_ms => 500, auto => true, hidden => []
    }.

config(Node, Starts, #world{options = #{hidden := Hidden} = Options}) ->
    Free =
        case lists:member(Node, Hidden) of
            true -> Options#{free := alone};
            false -> Options
        end,
    #{self => Node, incarnation => 1000000 * maps:get(Node, Starts), options => Free}.

%% A process of that node; the term is a pid for whom node/1 is that node.
pid(Node, N) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, N:32, 0:32, 1:32>>).

is_alive(Pid, #world{dead = Dead, nodes = Nodes}) ->
    is_map_key(node(Pid), Nodes) andalso not is_map_key(Pid, Dead).

die(Pid, #world{dead = Dead, monitors = Monitors} = World) ->
    Died = World#world{dead = Dead#{Pid => []}},
    case is_map_key({node(Pid), Pid}, Monitors) of
        true -> happens(node(Pid), {cast, {died, Pid}}, Died);
        false -> Died
    end.

call(Node, Request, #world{asked = N, open = Open, now = Now} = World) ->
    Id = N + 1,
    {Id, happens(Node, {call, {self(), Id}, Request}, World#world{asked = Id, open = Open#{Id => {Node, Request, Now}}})}.

%% The group has these members; each node concerned hears of it in its own time.
members(Group, Members, #world{groups = Groups} = World) ->
    {Id, Before} =
        case Groups of
            #{Group := {I, Ms}} when Ms =/= [] -> {I, Ms};
            #{Group := {{_, {C, n1, 1}}, []}} -> {{Group, {C + 1, n1, 1}}, []};
            #{} -> {{Group, {1, n1, 1}}, []}
        end,
    New = World#world{groups = Groups#{Group => {Id, lists:usort(Members)}}},
    Told = lists:foldl(fun tell_groups/2, New, [N || N <- lists:usort(Before ++ Members), is_map_key(N, New#world.nodes)]),
    lists:foldl(fun({A, B}, W) -> try_later(A, B, W) end, Told, [{A, B} || A <- Members, B <- Members, A < B]).

%% This node alone hears, now, that the group has these members.
hears(Node, Group, Members, #world{groups = Groups} = World) ->
    #{Group := {Id, _}} = Groups,
    event(Node, {cast, {groups, [{Group, Id, Members}]}}, World).

%% The node makes a group, or does so no more.
making(Node, Flag, World) -> happens(Node, {cast, {making, Flag}}, World).

tell_groups(Node, World) -> happens(Node, {cast, {groups, own_groups(Node, World)}}, World).

own_groups(Node, #world{groups = Groups}) ->
    [{G, Id, Ms} || {G, {Id, Ms}} <- lists:sort(maps:to_list(Groups)), lists:member(Node, Ms)].

cut(Sets, #world{links = Links} = World) ->
    Pairs = [pair(A, B) || S1 <- Sets, S2 <- Sets, S1 < S2, A <- S1, B <- S2],
    Cut = World#world{cuts = maps:from_keys(Pairs, [])},
    lists:foldl(fun break/2, Cut, [P || P <- Pairs, maps:is_key(P, Links)]).

break(A, B, #world{links = Links} = World) ->
    case is_map_key(pair(A, B), Links) of
        true -> break(pair(A, B), World);
        false -> World
    end.

heal(World) -> World#world{cuts = #{}}.

pause(Node, #world{paused = Paused} = World) -> World#world{paused = Paused#{Node => []}}.

resume(World) -> World#world{paused = #{}}.

%% The process ends for good, unseen; the node is the same otherwise. A reboot/2 starts it again.
stop(Node, #world{without = Without} = World) -> pause(Node, World#world{without = Without#{Node => []}}).

lossy(Share, World) -> World#world{loss = Share}.

kill(Node, #world{links = Links} = World) ->
    Gone = clear(Node, World#world{nodes = maps:remove(Node, World#world.nodes)}),
    Broken = [P || {A, B} = P <- lists:sort(maps:keys(Links)), A =:= Node orelse B =:= Node],
    Dead = Gone#world{
        paused = maps:remove(Node, Gone#world.paused),
        dead = maps:merge(Gone#world.dead, maps:from_keys([pid(Node, N) || N <- lists:seq(1, 50)], []))
    },
    lists:foldl(fun break/2, Dead, Broken).

clear(Node, World) ->
    Others = fun({N, _}, _) -> N =/= Node end,
    World#world{
        timers = maps:filter(fun({N, K}, _) -> N =/= Node orelse is_connect(K) end, World#world.timers),
        monitors = maps:filter(Others, World#world.monitors),
        inbox = maps:remove(Node, World#world.inbox),
        heard = maps:remove(Node, World#world.heard),
        wants = maps:filter(Others, World#world.wants),
        tables = maps:remove(Node, World#world.tables),
        silent = maps:filter(Others, World#world.silent),
        open = maps:filter(fun(_, {N, _, _}) -> N =/= Node end, World#world.open)
    }.

is_connect({connect, _}) -> true;
is_connect(_) -> false.

start(Node, #world{starts = Starts, nodes = Nodes} = World0) ->
    Starts1 = maps:update_with(Node, fun(N) -> N + 1 end, 1, Starts),
    {State, []} = atoll_name_core:init(config(Node, Starts1, World0), World0#world.now),
    %% Its pids are new ones; the test gives them the old numbers.
    Alive = maps:filter(fun(Pid, _) -> node(Pid) =/= Node end, World0#world.dead),
    World = World0#world{nodes = Nodes#{Node => State}, starts = Starts1, dead = Alive, tables = (World0#world.tables)#{Node => #{}}},
    World1 = tell_groups(Node, World),
    lists:foldl(fun(Other, W) -> try_later(Node, Other, W) end, World1, maps:keys(Nodes) -- [Node]).

%% The process that runs the protocol ends and is started anew; the connections stay.
reboot(Node, #world{starts = Starts, now = Now, paused = Paused, without = Without} = Running) ->
    World0 = Running#world{paused = maps:without([N || N <- [Node], is_map_key(N, Without)], Paused), without = maps:remove(Node, Without)},
    Starts1 = maps:update_with(Node, fun(N) -> N + 1 end, 1, Starts),
    #{Node := Table} = World0#world.tables,
    Own = maps:filter(fun(Key, _) -> is_map_key({Node, Key}, World0#world.own) end, Table),
    #{Node := #{names := Ids}} = World0#world.nodes,
    Held = lists:sort([{maps:get(G, Ids), N, Pid, Meta} || {{G, N}, {Pid, Meta}} <- maps:to_list(Own)]),
    Config = (config(Node, Starts1, World0))#{published => own_groups(Node, World0), held => Held},
    {State, Effects} = atoll_name_core:init(Config, Now),
    Cleared = clear(Node, World0),
    Begun = Cleared#world{
        nodes = (Cleared#world.nodes)#{Node => State},
        starts = Starts1,
        heard = (Cleared#world.heard)#{Node => own_groups(Node, World0)},
        tables = (Cleared#world.tables)#{Node => Own}
    },
    World = lists:foldl(fun(E, W) -> perform(E, Node, W) end, Begun, Effects),
    Peers = [P || {A, B} <- lists:sort(maps:keys(World#world.links)), P <- [A, B], P =/= Node, A =:= Node orelse B =:= Node],
    Unaware = maps:merge(World#world.unaware, maps:from_keys([{Node, P} || P <- Peers], [])),
    Told = tell_groups(Node, World#world{unaware = Unaware}),
    lists:foldl(fun(P, W) -> happens(Node, {up, P}, W) end, Told, Peers).

%% Running

settle(World) -> run(40000, World).

run(Ms, #world{now = Now} = World) -> run_until(Now + Ms, World).

run_until(Until, #world{now = Now} = World) when Now >= Until -> World;
run_until(Until, World) -> run_until(Until, step(World)).

steps(0, World) -> World;
steps(N, World) -> steps(N - 1, step(World)).

%% No faults any more, and time to get over them.
quiet(World0) ->
    World = lists:foldl(
        fun({A, B}, W) -> try_later(A, B, W) end,
        resume(heal(lossy(0.0, World0))),
        [{A, B} || A <- maps:keys(World0#world.nodes), B <- maps:keys(World0#world.nodes), A < B]
    ),
    settle(World).

step(#world{now = Now, timers = Timers, channels = Channels, inbox = Inbox, paused = Paused} = World) ->
    Runs = fun(Node) -> not is_map_key(Node, Paused) end,
    Running = [{K, At} || {{Node, Key} = K, At} <- maps:to_list(Timers), Runs(Node) orelse is_connect(Key)],
    Due = [{timer, K} || {K, At} <- lists:sort(Running), At =< Now],
    Arrive = [{channel, C} || {_, To} = C <- lists:sort(maps:keys(Channels)), Runs(To), not is_map_key(To, Inbox)],
    Local = [{inbox, Node} || Node <- lists:sort(maps:keys(Inbox)), Runs(Node)],
    case Due ++ Arrive ++ Local of
        [] ->
            World#world{now = max(Now, lists:min([Now + 1000 | [At || {_, At} <- Running]]))};
        Things ->
            {N, World1} = chance(length(Things), World),
            {Ms, World2} = chance(3, World1),
            Later =
                case Due of
                    [] -> World2#world{now = Now + Ms - 1};
                    _ -> World2
                end,
            thing(lists:nth(N, Things), Later)
    end.

thing({timer, {Node, {connect, Peer}} = Key}, #world{timers = Timers} = World) ->
    try_to_connect(Node, Peer, World#world{timers = maps:remove(Key, Timers)});
thing({timer, {Node, Name} = Key}, #world{timers = Timers} = World) ->
    event(Node, {timeout, Name}, World#world{timers = maps:remove(Key, Timers)});
thing({channel, {From, To} = Channel}, #world{channels = Channels} = World) ->
    #{Channel := [Message | Rest]} = Channels,
    Unaware =
        case {Message, World#world.starts} of
            {{b, {Incarnation, _}, _, 1, _, _}, #{From := Starts}} when Incarnation =:= 1000000 * Starts -> maps:remove(Channel, World#world.unaware);
            _ -> World#world.unaware
        end,
    {b, _, _, _, _, Items} = Message,
    Hearing =
        case lists:keymember(hello, 1, Items) of
            true -> From;
            false -> none
        end,
    Taken = World#world{channels = put_list(Channel, Rest, Channels), unaware = Unaware, hearing = Hearing},
    (event(To, {message, From, Message}, Taken))#world{hearing = none};
thing({inbox, Node}, #world{inbox = Inbox} = World) ->
    #{Node := [Event | Rest]} = Inbox,
    event(Node, Event, World#world{inbox = put_list(Node, Rest, Inbox)}).

put_list(Key, [], Map) -> maps:remove(Key, Map);
put_list(Key, List, Map) -> Map#{Key => List}.

chance(N, #world{rand = Rand0} = World) ->
    {X, Rand} = rand:uniform_s(N, Rand0),
    {X, World#world{rand = Rand}}.

happens(Node, Event, #world{inbox = Inbox} = World) ->
    World#world{inbox = Inbox#{Node => maps:get(Node, Inbox, []) ++ [Event]}}.

%% A message from one to the other, for example.
connect(A, B, #world{links = Links, cuts = Cuts, nodes = Nodes} = World) ->
    Pair = pair(A, B),
    case {is_map_key(Pair, Links), is_map_key(A, Nodes) andalso is_map_key(B, Nodes), is_map_key(Pair, Cuts)} of
        {true, _, _} -> World;
        {false, false, _} -> again(A, B, World);
        {false, true, true} -> again(A, B, World);
        {false, true, false} ->
            happens(B, {up, A}, happens(A, {up, B}, World#world{links = Links#{Pair => []}}))
    end.

%% As the room of links does, and that of groups, which wants all members of its groups.
try_to_connect(A, B, #world{options = #{auto := true}} = World) ->
    connect(A, B, World);
try_to_connect(A, B, World) ->
    case is_wanted(A, B, World) of
        true -> connect(A, B, World);
        false -> World
    end.

again(A, B, #world{options = #{auto := true}, nodes = Nodes} = World) ->
    case is_map_key(A, Nodes) andalso is_map_key(B, Nodes) of
        true -> try_later(A, B, World);
        false -> World
    end;
again(A, B, World) ->
    case is_wanted(A, B, World) of
        true -> try_later(A, B, World);
        false -> World
    end.

is_wanted(A, B, #world{wants = Wants, groups = Groups}) ->
    is_map_key({A, B}, Wants) orelse is_map_key({B, A}, Wants) orelse
        lists:any(fun({_, Members}) -> [A, B] -- Members =:= [] end, maps:values(Groups)).

try_later(A, B, #world{timers = Timers, now = Now} = World) ->
    World#world{timers = Timers#{{A, {connect, B}} => Now + ?RETRY_MS}}.

break({A, B} = Pair, #world{links = Links} = World0) ->
    World1 = World0#world{
        links = maps:remove(Pair, Links), unaware = maps:without([{A, B}, {B, A}], World0#world.unaware)
    },
    World2 = try_later(A, B, down(A, B, down(B, A, World1))),
    World2#world{channels = maps:without([{A, B}, {B, A}], World2#world.channels)}.

%% Some of what was on its way arrives before the loss is noticed: a running node
%% notices at once, as the world looks at links.
down(Node, Peer, #world{nodes = Nodes, paused = Paused, channels = Channels} = World) ->
    case {is_map_key(Node, Nodes), is_map_key(Node, Paused)} of
        {false, _} ->
            World;
        {true, true} ->
            On = maps:get({Peer, Node}, Channels, []),
            {N, World1} = chance(length(On) + 1, World),
            Arrived = lists:sublist(On, N - 1),
            World2 = lists:foldl(fun(M, W) -> happens(Node, {message, Peer, M}, W) end, World1, Arrived),
            happens(Node, {down, Peer, lost}, World2);
        {true, false} ->
            catch_up(Node, {down, Peer, lost}, World)
    end.

%% What it has not looked at yet comes first.
catch_up(Node, Event, #world{inbox = Inbox} = World) ->
    case Inbox of
        #{Node := [First | Rest]} -> catch_up(Node, Event, event(Node, First, World#world{inbox = put_list(Node, Rest, Inbox)}));
        #{} -> event(Node, Event, World)
    end.

event(Node, Event, #world{nodes = Nodes, now = Now} = World0) ->
    World =
        case Event of
            {cast, {groups, Own}} ->
                World0#world{heard = (World0#world.heard)#{Node => Own}};
            {down, Peer, _} ->
                World0#world{silent = maps:remove({Node, Peer}, World0#world.silent)};
            _ -> World0
        end,
    #{Node := State0} = Nodes,
    {State, Effects} = atoll_name_core:handle(Event, Now, State0),
    lists:foldl(fun(E, W) -> perform(E, Node, W) end, World#world{nodes = (World#world.nodes)#{Node := State}}, Effects).

perform({send, To, Message}, From, #world{links = Links, channels = Channels, sent = Sent} = World0) ->
    {IsLost, World} = is_lost(World0),
    case is_map_key(pair(From, To), Links) andalso not IsLost of
        true ->
            World#world{
                channels = Channels#{{From, To} => maps:get({From, To}, Channels, []) ++ [Message]}, sent = Sent + 1
            };
        false ->
            World
    end;
perform({timer, Key, Ms}, Node, #world{timers = Timers, now = Now} = World) ->
    World#world{timers = Timers#{{Node, Key} => Now + Ms}};
perform({cancel, Key}, Node, #world{timers = Timers} = World) ->
    World#world{timers = maps:remove({Node, Key}, Timers)};
perform({notify, {silent, Peer}}, Node, World) ->
    silent(Node, Peer, World);
perform({notify, {heard, Peer}}, Node, World) ->
    heard(Node, Peer, World);
perform({act, {look_for, Peer, Mark}}, Node, #world{nodes = Nodes, without = Without} = World) ->
    case is_map_key(Peer, Nodes) andalso not is_map_key(Peer, Without) of
        true -> World;
        false -> happens(Node, {cast, {absent, Peer, Mark}}, World)
    end;
perform({reply, {_, Id}, Reply}, Node, #world{replies = Replies, open = Open, now = Now} = World) ->
    %% Exactly one is owed.
    #{Id := {Node, Request, Asked}} = Open,
    World#world{replies = Replies#{Id => {Reply, Request, Asked, Now}}, open = maps:remove(Id, Open)};
perform({notify, {registered, Group, Name, Pid}}, Node, #world{yes = Yes} = World) ->
    look(Group, Name, Pid, Node, World#world{yes = [{Group, Name, Pid} | Yes]});
perform({act, {insert, Group, Name, Pid, Meta, Whose}}, Node, #world{tables = Tables, own = Own0} = World) ->
    #{Node := Table} = Tables,
    Own =
        case Whose of
            other -> maps:remove({Node, {Group, Name}}, Own0);
            {own, _} -> Own0#{{Node, {Group, Name}} => []}
        end,
    World#world{own = Own, tables = Tables#{Node := Table#{{Group, Name} => {Pid, Meta}}}};
perform({act, {delete, Group, Name}}, Node, #world{tables = Tables} = World) ->
    #{Node := Table} = Tables,
    true = is_map_key({Group, Name}, Table),
    World#world{tables = Tables#{Node := maps:remove({Group, Name}, Table)}};
perform({act, {monitor, Pid}}, Node, #world{monitors = Monitors} = World) ->
    Node = node(Pid),
    Monitored = World#world{monitors = Monitors#{{Node, Pid} => []}},
    case is_alive(Pid, World) of
        true -> Monitored;
        false -> happens(Node, {cast, {died, Pid}}, Monitored)
    end;
perform({act, {demonitor, Pid}}, Node, #world{monitors = Monitors} = World) ->
    World#world{monitors = maps:remove({Node, Pid}, Monitors)};
perform({want, Peer}, Node, #world{wants = Wants} = World) ->
    false = is_map_key({Node, Peer}, Wants),
    try_later(Node, Peer, World#world{wants = Wants#{{Node, Peer} => []}});
perform({unwant, Peer}, Node, #world{wants = Wants} = World) ->
    true = is_map_key({Node, Peer}, Wants),
    World#world{wants = maps:remove({Node, Peer}, Wants)};
perform({act, {tell, Pid, {ok, Message}, Message}}, Node, #world{told = Told} = World) ->
    Node = node(Pid),
    World#world{told = [{Pid, Message} | Told]};
perform({act, {kill, Pid, Message}}, Node, #world{told = Told} = World) ->
    Node = node(Pid),
    die(Pid, World#world{told = [{Pid, Message} | Told]});
perform({act, {decide, Key, {keep, first, [_Name, {Pid, _}, _]}}}, Node, World) ->
    happens(Node, {cast, {decided, Key, Pid}}, World);
perform({act, {decide, Key, {_Module, _Function, [_Name, {Pid1, _}, {Pid2, _}]}}}, Node, World) ->
    happens(Node, {cast, {decided, Key, max(Pid1, Pid2)}}, World).

silent(Node, Peer, #world{silent = Silent} = World) -> World#world{silent = Silent#{{Node, Peer} => []}}.
heard(Node, Peer, #world{silent = Silent} = World) -> World#world{silent = maps:remove({Node, Peer}, Silent)}.

is_lost(#world{loss = Loss} = World) when Loss == 0 -> {false, World};
is_lost(#world{loss = Share, rand = Rand0} = World) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {X < Share, World#world{rand = Rand}}.

%% A `yes': who is connected with the owner, both being members for each other, has it.
look(Group, Name, Pid, Owner, #world{nodes = Nodes, tables = Tables, links = Links, faults = Faults} = World) ->
    Without = [
        Node
     || Node <- lists:sort(maps:keys(Nodes)),
        Node =:= Owner orelse is_map_key(pair(Node, Owner), Links),
        knows(Owner, Group, Node, Owner, World) andalso knows(Node, Group, Owner, Owner, World),
        not is_new(Node, Owner, World),
        not is_map_key({Owner, Node}, World#world.silent),
        not (Group =:= undefined andalso Node =:= World#world.hearing),
        not is_map_key({Group, Name}, maps:get(Node, Tables)) orelse
            element(1, maps:get({Group, Name}, maps:get(Node, Tables))) =/= Pid
    ],
    case Without of
        [] -> World;
        _ -> World#world{faults = [{yes_without, Without, Group, Name, Pid} | Faults]}
    end.

%% Of a connection that was made just now, the owner has not heard.
is_new(Node, Owner, #world{unaware = Unaware}) when is_map_key({Node, Owner}, Unaware); is_map_key({Owner, Node}, Unaware) ->
    true;
is_new(Node, Owner, #world{inbox = Inbox}) ->
    lists:member({up, Node}, maps:get(Owner, Inbox, [])) orelse lists:member({up, Owner}, maps:get(Node, Inbox, [])).

%% Whether Node's view of the group is that of the owner, and has Other in it.
knows(Node, undefined, Other, _Owner, World) ->
    lists:member(Other, free_nodes(Node, World));
knows(Node, Group, Other, Owner, #world{heard = Heard}) ->
    case {lists:keyfind(Group, 1, maps:get(Node, Heard, [])), lists:keyfind(Group, 1, maps:get(Owner, Heard, []))} of
        {{_, Id, Members}, {_, Id, _}} -> lists:member(Other, Members);
        _ -> false
    end.

pair(A, B) -> {min(A, B), max(A, B)}.

%% What can be seen

group_members(Group, #world{groups = Groups}) ->
    {_, Members} = maps:get(Group, Groups),
    Members.

replies(#world{replies = Replies}) -> Replies.
pending(#world{open = Open}) -> Open.
alive(#world{nodes = Nodes}) -> lists:sort(maps:keys(Nodes)).
now(#world{now = Now}) -> Now.
tables(#world{tables = Tables}) -> Tables.

%% With whom the node shares the namespace of the free nodes, as it knows.
free_nodes(Node, #world{nodes = Nodes, now = Now}) ->
    {_, Effects} = atoll_name_core:handle({call, {self(), 0}, free_nodes}, Now, maps:get(Node, Nodes)),
    {reply, _, Free} = lists:keyfind(reply, 1, Effects),
    Free.

wants(#world{wants = Wants}) -> lists:sort(maps:keys(Wants)).
is_linked(A, B, #world{links = Links}) -> is_map_key(pair(A, B), Links).
told(#world{told = Told}) -> lists:reverse(Told).
yes(#world{yes = Yes}) -> lists:reverse(Yes).
sent(#world{sent = Sent}) -> Sent.
faults(#world{faults = Faults}) -> lists:reverse(Faults).

%% What each node says of itself.
infos(#world{nodes = Nodes, now = Now}) ->
    maps:map(
        fun(_, State) ->
            {_, Effects} = atoll_name_core:handle({call, {self(), 0}, info}, Now, State),
            {reply, _, Info} = lists:keyfind(reply, 1, Effects),
            Info
        end,
        Nodes
    ).

%% Deeds of a random history, in a world of these nodes.

do({call, Node, Request}, _Nodes, World) ->
    when_alive(Node, World, fun() -> element(2, call(Node, Request, World)) end);
do({steps, N}, _Nodes, World) -> steps(N, World);
do({wait, Ms}, _Nodes, World) -> run(Ms, World);
do({die, Pid}, _Nodes, World) -> when_alive(node(Pid), World, fun() -> die(Pid, World) end);
do({kill, Node}, _Nodes, World) -> when_alive(Node, World, fun() -> kill(Node, World) end);
do({start, Node}, _Nodes, World) ->
    case lists:member(Node, alive(World)) of
        true -> World;
        false -> start(Node, World)
    end;
do({reboot, Node}, _Nodes, World) -> when_alive(Node, World, fun() -> reboot(Node, World) end);
do({pause, Node}, _Nodes, World) -> when_alive(Node, World, fun() -> pause(Node, World) end);
do(resume, _Nodes, World) -> resume(World);
do({cut, Side}, Nodes, World) -> cut([lists:usort(Side), Nodes -- Side], World);
do({break, A, B}, _Nodes, World) -> break(A, B, World);
do(heal, _Nodes, World) -> heal(World);
do({lossy, Share}, _Nodes, World) -> lossy(Share, World);
do({members, Members}, _Nodes, World) -> members(g, Members, World).

when_alive(Node, World, Fun) ->
    case lists:member(Node, alive(World)) of
        true -> Fun();
        false -> World
    end.
