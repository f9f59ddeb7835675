%% SPDX-License-Identifier: Apache-2.0
%% @doc A world in virtual time: nodes, each with the pure protocols that run on it, the
%% connections between them, and a network. It plays for them what
%% {@link atoll_interpreter} and the runtime are on a real node; the protocols are the
%% very same modules, and {@link atoll_link_core}, the one owner of connections, runs on
%% every node.
%%
%% One seed, one history: nothing here reads a clock, and no result hangs on the
%% order in which a map is walked. A world is a value, so one that has run for a
%% while can be used several times, each with another future.
%%
%% A node is made of rooms, each with a protocol. What a room's process does with notices
%% and deeds on a real node, which concern other rooms or tables, is done by the wiring,
%% a module with the callbacks below. A world of one protocol has one room and no wiring.
%% The first room is the one that is meant where none is named.
%%
%% How connections are played:
%% <ul>
%% <li>What a room wants is told to the link room, with the room as the owner. It says when
%%   a connection is tried, and when it is closed: for as long as one room at either end
%%   wants it, it is not. No monitor is ever over one here, so it is in use while messages
%%   or bulk pass.</li>
%% <li>An attempt takes three times the latency. A dead
%%   peer refuses; one that is paused or cut off lets the attempt run into its
%%   time limit. Of a failed one, rooms hear `{cast, {unreachable, Peer}}'.</li>
%% <li>All rooms hear `up' and `down', the link room first.</li>
%% <li>When a node is killed its sockets close, and its peers hear `down' after
%%   the latency. A partition or a cut closes nothing: messages are lost and the
%%   links stay up.</li>
%% <li>The end of a link passes a partition or a cut no more than a message does. A
%%   peer that does not hear of it keeps its half, until something that it sends
%%   comes to the other end, which has no such link and answers with a reset, if it
%%   can; or for a minute, the kernel's `net_ticktime'. Who is dead answers too:
%%   its machine does.</li>
%% <li>Bulk that programs send goes over the links that there are, and is no message. One
%%   behind it waits, and one that finds the queue full is dropped, as the interpreter
%%   drops it. A room's deed `{listen, Peer, Ms}' is answered by `{cast, {bytes, Peer}}'
%%   if a message or bulk has come since it was done last, no longer ago than was said then.</li>
%% <li>Messages over one link arrive in order unless the network reorders them;
%%   those on their way over a link that is gone are gone.</li>
%% </ul>
%% A paused node gets its messages and timers when it goes on, in the order in
%% which they came, up to a bound. So does the first room of one that stands still: its
%% connections and its other rooms go on meanwhile, and it hears of that late too. A slow
%% node takes a while for each event, and comes to them in that order too.
%%
%% It is long because a node's state, its links and the queue change in every event, and what one does
%% to the others is the simulation. The network, the queue and what a node is made of are modules of their own.
-module(atoll_sim_world).

-compile({no_auto_import, [nodes/1]}).

-export([new/1, start/2, start/3, kill/2, pause/2, stall/2, resume/2, slow/3, set/2]).
-export([cast/3, cast/4, call/3, call/4, run/2, at/3, compact/1]).
-export([now/1, nodes/1, alive/1, status/2, has_started/2, life_from/1, state/2, state/3, has_room/3, local/2, update_local/3, incarnation/2, links/2, counters/1, delay/3]).
-export([watched/1, watch/2, note/3]).

-export_type([world/0, options/0, status/0, sight/0, watcher/0, room/0, local/0]).

-type room() :: atom().

-type local() :: term().
%% What the wiring of a node keeps: the tables of its rooms, and the like.

%% What a node has beside its rooms when it starts, and what is said to them then.
-callback begun(node(), Configs :: #{room() => term()}) -> {[{room(), atoll_protocol:event()}], local()}.
%% A room says or does something that is its process's to do: what other rooms hear of it.
-callback done(room(), {notify | act, term()}, local()) -> {[{room(), atoll_protocol:event()}], local()}.

-type options() :: #{
    %% One protocol, or several rooms, the first one first, and what is between them.
    protocol => module(),
    rooms => [{room(), module()}, ...],
    wiring => module(),
    %% What a node's protocol is started with; of rooms a map with that of each. A room that
    %% is not in it does not run on that node.
    config := fun((node(), Incarnation :: pos_integer(), Seed :: integer()) -> term()),
    seed := integer(),
    latency => atoll_sim_net:latency(),
    %% As the link room of a node has it.
    link => atoll_link_core:options(),
    %% Bytes that a link carries in a second, and that its queue holds.
    rate => pos_integer(),
    queue => pos_integer(),
    %% Sees what happens, and keeps what it wants of it.
    watch => {watcher(), term()} | none,
    %% Whether it sees each message too.
    messages => boolean()
}.

-type watcher() :: fun((Now :: integer(), node() | world, sight(), Kept) -> Kept).

-type sight() ::
    {started, Incarnation :: pos_integer()}
    | killed
    | paused
    | stalled
    | resumed
    | {slow, Ms :: non_neg_integer()}
    | {link_up, node()}
    | {link_down, node()}
    | {notice, term()}
    | {deed, term()}
    %% Of a room that is not the first.
    | {room, room(), {notice | deed, term()}}
    | {reply, Id :: pos_integer(), term()}
    | {sent, node(), term()}
    | {lost, node(), term()}
    | {got, node(), term()}
    %% Said by whoever drives the world.
    | {note, term()}.

-type status() ::
    alive
    | paused
    %% Its first room stands still, and nothing else of it.
    | stalled
    | dead.

-record(node, {
    name :: node(),
    status = alive :: status(),
    incarnation :: pos_integer(),
    %% The states of its protocols.
    rooms = #{} :: #{room() => term()},
    local = none :: local(),
    %% Peer => the link's number, when the last message over it arrives, and how many there
    %% were.
    links = #{} :: #{node() => {pos_integer(), integer(), non_neg_integer()}},
    %% Of each room that has had some, the number of each that runs.
    timers = #{} :: #{room() => #{Key :: term() => pos_integer()}},
    %% The links that were listened to: when, until when that counts, which, and whether a
    %% message came since.
    looks = #{} :: #{node() => {integer(), integer(), pos_integer(), boolean()}},
    %% What came and waits because it is paused or slow, oldest first; nothing else
    %% has any.
    held = queue:new() :: queue:queue(happening()),
    held_count = 0 :: non_neg_integer(),
    %% What an event costs it, and the number of the one that it is busy with.
    slow = 0 :: non_neg_integer(),
    work = none :: none | pos_integer()
}).

-type happening() ::
    {message, To :: node(), From :: node(), Link :: pos_integer(), room(), term()}
    | {timer, node(), Number :: pos_integer(), room(), Key :: term()}
    %% An attempt comes to its end, or to its limit.
    | {connect | timed_out, node(), Incarnation :: pos_integer(), Peer :: node()}
    | {down, node(), Peer :: node(), Link :: pos_integer(), Reason :: term()}
    %% Something local, in that life or in whichever there is; or it came to a room that
    %% stands still.
    | {event, node(), any | pos_integer(), room(), atoll_protocol:event()}
    %% A slow node comes to the oldest that it has.
    | {work, node(), Number :: pos_integer()}
    %% Not at a node: whoever drives the world does something to it.
    | {deed, fun((world()) -> world())}.

%% What stays as it is while the world runs.
-record(rules, {
    %% In order, and the protocol of each. The configuration is that of the first alone where
    %% there is no other.
    rooms :: [room(), ...],
    first :: room(),
    modules :: #{room() => module()},
    wiring :: module() | none,
    is_single :: boolean(),
    config :: fun((node(), pos_integer(), integer()) -> term()),
    seed :: integer(),
    watcher :: watcher() | none,
    messages :: boolean(),
    link :: atoll_link_core:options()
}).

%% It is copied with each event: what changes seldom is kept together.
-record(world, {
    now = 0 :: integer(),
    queue = atoll_sim_queue:new() :: atoll_sim_queue:queue(happening()),
    nodes = atoll_sim_nodes:new() :: atoll_sim_nodes:nodes(#node{}),
    net :: atoll_sim_net:net(),
    rules :: #rules{},
    kept :: term(),
    %% Numbers links, timers, calls and work.
    number = 0 :: non_neg_integer(),
    %% In the dictionary while it runs.
    events = 0 :: non_neg_integer() | open,
    sent = 0 :: non_neg_integer(),
    %% By the network; without a link; at a full queue; by a paused or slow node that had too much.
    dropped = #{lost => 0, unconnected => 0, busy => 0, overflown => 0} :: #{atom() => non_neg_integer()}
}).

-opaque world() :: #world{}.

%% What the kernel does on a real node, where nobody has told it otherwise.
-define(SETUP_MS, 7000).
-define(TICK_MS, 60000).
%% The room that owns connections is on every node.
-define(LINK, link).
%% The key of the dictionary under which events are counted while a world runs.
-define(EVENTS, {?MODULE, events}).
%% What a paused or a slow node can owe at most.
-define(MAX_HELD, 20000).

%% @doc A world without nodes.
-spec new(options()) -> world().
new(#{config := Config, seed := Seed} = Options) ->
    {IsSingle, Rooms} =
        case Options of
            #{protocol := Protocol} -> {true, [{protocol, Protocol}]};
            #{rooms := Named} -> {false, Named}
        end,
    {Watcher, Kept} =
        case Options of
            #{watch := {_, _} = Watch} -> Watch;
            #{} -> {none, none}
        end,
    Net = atoll_sim_net:new(maps:get(latency, Options, {uniform, 1, 20}), erlang:phash2({net, Seed})),
    #world{
        net =
            case Options of
                #{rate := Rate, queue := Queue} -> atoll_sim_net:set({rate, Rate, Queue}, Net);
                #{} -> Net
            end,
        rules = #rules{
            rooms = [?LINK | [Room || {Room, _} <- Rooms]],
            first = element(1, hd(Rooms)),
            modules = maps:from_list([{?LINK, atoll_link_core} | Rooms]),
            wiring = maps:get(wiring, Options, none),
            is_single = IsSingle,
            config = Config,
            seed = Seed,
            watcher = Watcher,
            messages = maps:get(messages, Options, false),
            link = maps:get(link, Options, atoll_sim_defaults:link())
        },
        kept = Kept
    }.

%% @doc Starts a node, for the first time or anew; it remembers nothing.
-spec start(node(), world()) -> world().
start(Name, World) ->
    start(Name, fun(Config) -> Config end, World).

%% @doc The same, its configuration changed: that is how it may remember.
-spec start(node(), fun((term()) -> term()), world()) -> world().
start(Name, Change, #world{now = Now, rules = Rules} = World) ->
    #rules{first = First, is_single = IsSingle, config = Config, seed = WorldSeed, link = Link, wiring = Wiring} = Rules,
    dead = status(Name, World),
    Incarnation = life_from(Now),
    Seed = erlang:phash2({WorldSeed, Name, Incarnation}),
    Given = Change(Config(Name, Incarnation, Seed)),
    Configs =
        case IsSingle of
            true -> #{First => Given};
            false -> Given
        end,
    {Events, Local} =
        case Wiring of
            none -> {[], none};
            _ -> Wiring:begun(Name, Configs)
        end,
    Node = #node{name = Name, incarnation = Incarnation, local = Local},
    Started = see(Name, {started, Incarnation}, put_node(Node, World)),
    All = Configs#{?LINK => #{self => Name, seed => erlang:phash2({link, Seed}), options => Link}},
    Opened = lists:foldl(fun(Room, W) -> open(Room, Name, All, W) end, Started, Rules#rules.rooms),
    soon(Events, find(Name, Opened), Opened).

%% @doc The incarnation of a node that starts then: as on a real one, where it is made of the clock at the start.
-spec life_from(Ms :: non_neg_integer()) -> pos_integer().
life_from(Ms) when is_integer(Ms), Ms >= 0 -> Ms + 1.

open(Room, Name, Configs, #world{now = Now, rules = #rules{modules = Modules}} = World) ->
    case Configs of
        #{Room := Config} ->
            #{Room := Protocol} = Modules,
            #node{rooms = Rooms} = Node = find(Name, World),
            {State, Effects} = Protocol:init(Config, Now),
            {Opened, Performed} = perform(Effects, Room, Node#node{rooms = Rooms#{Room => State}}, World),
            put_node(Opened, Performed);
        #{} ->
            World
    end.

%% @doc The node is gone from one moment to the next; its sockets close.
-spec kill(node(), world()) -> world().
kill(Name, World0) ->
    #node{links = Links} = Node = find(Name, World0),
    Dead = Node#node{
        status = dead,
        links = #{},
        timers = #{},
        looks = #{},
        held = queue:new(),
        held_count = 0,
        work = none,
        rooms = #{},
        local = none
    },
    World = see(Name, killed, put_node(Dead, World0)),
    lists:foldl(
        fun({Peer, {Link, _, _}}, W) -> tell_down(Name, Peer, Link, connection_closed, W) end,
        World,
        lists:sort(maps:to_list(Links))
    ).

%% @doc The node does nothing from now on; its sockets stay open.
-spec pause(node(), world()) -> world().
pause(Name, World) ->
    case find(Name, World) of
        #node{status = Status} = Node when Status =:= alive; Status =:= stalled ->
            see(Name, paused, put_node(Node#node{status = paused, work = none}, World));
        _ ->
            World
    end.

%% @doc Its first room does nothing from now on; the node itself goes on, and its links come and go.
-spec stall(node(), world()) -> world().
stall(Name, World) ->
    case find(Name, World) of
        #node{status = alive} = Node -> see(Name, stalled, put_node(Node#node{status = stalled, work = none}, World));
        _ -> World
    end.

%% @doc It goes on, with what has come for it meanwhile.
-spec resume(node(), world()) -> world().
resume(Name, World) ->
    case find(Name, World) of
        #node{status = Status} = Node when Status =:= paused; Status =:= stalled ->
            go_on(Name, see(Name, resumed, put_node(Node#node{status = alive}, World)));
        _ ->
            World
    end.

%% @doc From now on each event costs the node so many milliseconds, the one that it
%% is busy with excepted; with 0 it does at once what it has not come to.
-spec slow(node(), Ms :: non_neg_integer(), world()) -> world().
slow(Name, Ms, World) ->
    #node{} = Node = find(Name, World),
    go_on(Name, see(Name, {slow, Ms}, put_node(Node#node{slow = Ms}, World))).

%% @doc Changes the network. Bulk begins now.
-spec set(atoll_sim_net:setting() | {bulk, [node()], [node()], 0 | atoll_sim_bulk:rate()}, world()) -> world().
set({bulk, From, To, Rate}, #world{now = Now} = World) ->
    set({bulk, From, To, Rate, Now}, World);
set(Setting, #world{net = Net} = World) ->
    World#world{net = atoll_sim_net:set(Setting, Net)}.

%% @doc Something local happens on a node; nothing if it is dead.
-spec cast(node(), term(), world()) -> world().
cast(Name, Notice, #world{rules = #rules{first = First}} = World) ->
    cast(Name, First, Notice, World).

%% @doc The same in one of its rooms.
-spec cast(node(), room(), term(), world()) -> world().
cast(Name, Room, Notice, World) ->
    happen({event, Name, any, Room, {cast, Notice}}, World).

%% @doc A local process asks; the answer is seen as `{reply, Id, Answer}'.
-spec call(node(), term(), world()) -> {Id :: pos_integer(), world()}.
call(Name, Request, #world{rules = #rules{first = First}} = World) ->
    call(Name, First, Request, World).

%% @doc The same of one of its rooms.
-spec call(node(), room(), term(), world()) -> {Id :: pos_integer(), world()}.
call(Name, Room, Request, #world{number = Number} = World) ->
    Id = Number + 1,
    {Id, happen({event, Name, any, Room, {call, {self(), Id}, Request}}, World#world{number = Id})}.

%% @doc At that time, do this to the world, which is running then: the deed must not run
%% it itself, and what it returns takes the place of what it was given.
-spec at(integer(), fun((world()) -> world()), world()) -> world().
at(Ms, Deed, #world{queue = Queue, now = Now} = World) ->
    World#world{queue = atoll_sim_queue:put(max(Now, Ms), {deed, Deed}, Queue)}.

%% @doc Lets everything happen that happens until then, that millisecond included.
-spec run(Until :: integer(), world()) -> world().
run(Until, #world{queue = Closed, nodes = Nodes0, events = Events} = World0) ->
    _ = put(?EVENTS, Events),
    try run_on(Until, World0#world{queue = atoll_sim_queue:open(Closed), nodes = atoll_sim_nodes:open(Nodes0), events = open}) of
        #world{now = Now, queue = Queue, nodes = Nodes} = World ->
            World#world{
                now = max(Until, Now),
                queue = atoll_sim_queue:close(Queue),
                nodes = atoll_sim_nodes:close(Nodes),
                events = erase(?EVENTS)
            }
    catch
        Class:Reason:Stack ->
            atoll_sim_queue:drop(),
            atoll_sim_nodes:drop(),
            _ = erase(?EVENTS),
            erlang:raise(Class, Reason, Stack)
    end.

run_on(Until, #world{queue = Queue} = World) ->
    case atoll_sim_queue:take(Until, Queue) of
        {Ms, Happenings, Rest} -> run_on(Until, happen_all(Happenings, World#world{now = Ms, queue = Rest}));
        {none, Rest} -> World#world{queue = Rest}
    end.

happen_all([Happening | Happenings], World) ->
    happen_all(Happenings, happen(Happening, World));
happen_all([], World) ->
    World.

%% @doc The same world in less memory: what is equal on the nodes, as all that they know of each other
%% is in a world at rest, is one term where that costs little to find.
-spec compact(world()) -> world().
compact(#world{nodes = Nodes} = World) ->
    case [Rooms || {Name, Status} <- nodes(World), Status =/= dead, #node{rooms = Rooms} <- [find(Name, World)]] of
        [Models | _] -> World#world{nodes = atoll_sim_nodes:map(fun(Node) -> alike(Models, Node) end, Nodes)};
        [] -> World
    end.

alike(Models, #node{rooms = Rooms} = Node) ->
    Node#node{
        rooms = maps:fold(
            fun(Room, Model, Others) ->
                case Others of
                    #{Room := State} -> Others#{Room := atoll_sim_alike:like(Model, State)};
                    #{} -> Others
                end
            end,
            Rooms,
            Models
        )
    }.

%% What can be seen

%% @doc The time, in milliseconds.
-spec now(world()) -> integer().
now(#world{now = Now}) -> Now.

%% @doc All nodes that were ever started, in the order of their names.
-spec nodes(world()) -> [{node(), status()}].
nodes(#world{nodes = Nodes} = World) ->
    [{Name, status(Name, World)} || Name <- atoll_sim_nodes:names(Nodes)].

%% @doc Those that are alive, paused ones among them.
-spec alive(world()) -> [node()].
alive(World) ->
    [Name || {Name, Status} <- nodes(World), Status =/= dead].

%% @doc A node that was never started is dead.
-spec status(node(), world()) -> status().
status(Name, World) ->
    case find(Name, World) of
        #node{status = Status} -> Status;
        undefined -> dead
    end.

%% @doc Whether it was ever started.
-spec has_started(node(), world()) -> boolean().
has_started(Name, World) -> find(Name, World) =/= undefined.

%% @doc The state of a live node's protocol.
-spec state(node(), world()) -> term().
state(Name, #world{rules = #rules{first = First}} = World) ->
    state(Name, First, World).

%% @doc The same of one of its rooms, which runs there.
-spec state(node(), room(), world()) -> term().
state(Name, Room, World) ->
    #node{rooms = #{Room := State}} = find(Name, World),
    State.

%% @doc Whether that room runs on a node.
-spec has_room(node(), room(), world()) -> boolean().
has_room(Name, Room, World) ->
    #node{rooms = Rooms} = find(Name, World),
    is_map_key(Room, Rooms).

%% @doc What the wiring of a live node keeps.
-spec local(node(), world()) -> local().
local(Name, World) ->
    #node{local = Local} = find(Name, World),
    Local.

%% @doc Changes that, on behalf of whoever drives the world.
-spec update_local(node(), fun((local()) -> local()), world()) -> world().
update_local(Name, Change, World) ->
    #node{local = Local} = Node = find(Name, World),
    put_node(Node#node{local = Change(Local)}, World).

%% @doc Of the present or the last start.
-spec incarnation(node(), world()) -> pos_integer().
incarnation(Name, World) ->
    #node{incarnation = Incarnation} = find(Name, World),
    Incarnation.

%% @doc The peers with which a node holds a link.
-spec links(node(), world()) -> [node()].
links(Name, World) ->
    #node{links = Links} = find(Name, World),
    lists:sort(maps:keys(Links)).

%% @doc What happened so far, in numbers.
-spec counters(world()) -> #{atom() => non_neg_integer()}.
counters(#world{events = open} = World) ->
    counters(World#world{events = get(?EVENTS)});
counters(#world{events = Events, sent = Sent, dropped = Dropped, queue = Queue}) ->
    Dropped#{events => Events, sent => Sent, queued => atoll_sim_queue:size(Queue)}.

%% @doc How long a message from one node to another might take now; the world
%% takes no notice.
-spec delay(node(), node(), world()) -> non_neg_integer().
delay(From, To, #world{net = Net}) ->
    atoll_sim_net:sample(From, To, Net).

%% @doc What the watcher has kept.
-spec watched(world()) -> term().
watched(#world{kept = Kept}) -> Kept.

%% @doc From now on somebody else watches.
-spec watch({watcher(), term()}, world()) -> world().
watch({Watcher, Kept}, #world{rules = Rules} = World) ->
    World#world{rules = Rules#rules{watcher = Watcher}, kept = Kept}.

%% @doc Lets the watcher see a remark of whoever drives the world.
-spec note(node() | world, term(), world()) -> world().
note(Where, Remark, World) ->
    see(Where, {note, Remark}, World).

see(_Where, _Sight, #world{rules = #rules{watcher = none}} = World) ->
    World;
see(Where, Sight, #world{rules = #rules{watcher = Watcher}, kept = Kept, now = Now} = World) ->
    World#world{kept = Watcher(Now, Where, Sight, Kept)}.

%% One thing happens

happen({deed, Deed}, World) ->
    Deed(World);
happen({work, Name, Number}, World0) ->
    case find(Name, World0) of
        #node{status = alive, work = Number, held = Held0, held_count = Count} = Node0 ->
            {{value, Happening}, Held} = queue:out(Held0),
            World = work_later(Node0#node{held = Held, held_count = Count - 1, work = none}, World0),
            happen(Happening, find(Name, World), World);
        _ ->
            World0
    end;
happen(Happening, World) ->
    case find(element(2, Happening), World) of
        #node{status = alive, slow = 0} = Node ->
            happen(Happening, Node, World);
        #node{status = stalled} = Node ->
            case is_timer_of_first(Happening, World) of
                true -> hold(Happening, Node, World);
                false -> happen(Happening, Node, World)
            end;
        #node{status = dead} ->
            refuse(Happening, World);
        #node{} = Node ->
            hold(Happening, Node, World);
        undefined ->
            World
    end.

%% It may still be cancelled by what came before it.
is_timer_of_first({timer, _, _, Room, _}, #world{rules = #rules{first = First}}) -> Room =:= First;
is_timer_of_first(_, _World) -> false.

hold(_Happening, #node{held_count = ?MAX_HELD}, World) ->
    drop(overflown, World);
hold(Happening, #node{held = Held, held_count = Count} = Node, World) ->
    work_later(Node#node{held = queue:in(Happening, Held), held_count = Count + 1}, World).

%% One thing at a time, unless it is paused.
work_later(#node{name = Name, status = alive, work = none, held_count = Count, slow = Ms} = Node, World) when Count > 0 ->
    #world{number = N, now = Now} = World,
    put_node(Node#node{work = N + 1}, later(Now + Ms, {work, Name, N + 1}, World#world{number = N + 1}));
work_later(Node, World) ->
    put_node(Node, World).

%% With what it has not come to: at once, before all that comes after it.
go_on(Name, World) ->
    case find(Name, World) of
        #node{status = alive, slow = 0, held = Held} = Node ->
            Free = Node#node{held = queue:new(), held_count = 0, work = none},
            lists:foldl(fun happen/2, put_node(Free, World), queue:to_list(Held));
        #node{status = alive} = Node ->
            work_later(Node, World);
        _ ->
            World
    end.

happen({message, _To, From, Link, Room, Message}, #node{links = Links} = Node, World) ->
    case Links of
        #{From := {Link, _, _}} ->
            event({message, From, Message}, Room, came(From, Node), see_message(got, Room, Node, From, Message, World));
        #{} ->
            reset(From, Node#node.name, Link, World)
    end;
happen({timer, _Name, Number, Room, Key}, #node{timers = Timers} = Node, World) ->
    case Timers of
        #{Room := #{Key := Number} = Running} ->
            event({timeout, Key}, Room, Node#node{timers = Timers#{Room := maps:remove(Key, Running)}}, World);
        #{} ->
            World
    end;
happen({event, _Name, Life, Room, Event}, #node{incarnation = Incarnation} = Node, World) when Life =:= any; Life =:= Incarnation ->
    event(Event, Room, Node, World);
happen({connect, _Name, Incarnation, Peer}, #node{incarnation = Incarnation} = Node, World) ->
    connect(Peer, Node, World);
happen({timed_out, _Name, Incarnation, Peer}, #node{incarnation = Incarnation, links = Links} = Node, World) ->
    connected(is_map_key(Peer, Links), Peer, Node, World);
happen({down, _Name, Peer, Link, Reason}, #node{links = Links} = Node, World) ->
    case Links of
        #{Peer := {Link, _, _}} -> break(Peer, Reason, Node, World);
        #{} -> World
    end;
happen(_OfAnEarlierLife, _Node, World) ->
    World.

%% One room of a node takes an event.
event(Event, Room, #node{name = Name, status = stalled} = Node, #world{rules = #rules{first = Room}} = World) ->
    hold({event, Name, any, Room, Event}, Node, World);
event(Event, Room, #node{rooms = Rooms} = Node0, #world{rules = #rules{modules = Modules}, now = Now} = World0) ->
    case Rooms of
        #{Room := State0} ->
            #{Room := Protocol} = Modules,
            case Protocol:handle(Event, Now, State0) of
                %% Most events are beats that come: nothing but the state is new.
                {State, []} ->
                    put_node(Node0#node{rooms = Rooms#{Room := State}}, counted(World0));
                {State, Effects} ->
                    {Node, World} = perform(Effects, Room, Node0#node{rooms = Rooms#{Room := State}}, counted(World0)),
                    put_node(Node, World)
            end;
        #{} ->
            put_node(Node0, World0)
    end.

%% All of its rooms do.
event_all(Event, Node, #world{rules = #rules{rooms = Rooms}} = World) ->
    event_all(Rooms, Event, Node, World).

event_all([], _Event, Node, World) ->
    put_node(Node, World);
event_all([Room | Rooms], Event, #node{name = Name, status = stalled} = Node, #world{rules = #rules{first = Room}} = World0) ->
    World = event(Event, Room, Node, World0),
    event_all(Rooms, Event, find(Name, World), World);
event_all([Room | Rooms], Event, Node0, World0) ->
    {Node, World} = handle(Event, Room, Node0, World0),
    event_all(Rooms, Event, Node, World).

%% As the nodes: a world would be copied for it with each event.
counted(#world{events = open} = World) ->
    _ = put(?EVENTS, get(?EVENTS) + 1),
    World;
counted(#world{events = N} = World) ->
    World#world{events = N + 1}.

find(Name, #world{nodes = Nodes}) ->
    atoll_sim_nodes:find(Name, Nodes).

%% An open table stays the same term.
put_node(#node{name = Name} = Node, #world{nodes = Nodes} = World) ->
    case atoll_sim_nodes:put(Name, Node, Nodes) of
        Nodes -> World;
        Changed -> World#world{nodes = Changed}
    end.

%% The node is in hand until it is put back. A room that does not run there hears nothing.
handle(Event, Room, #node{rooms = Rooms} = Node, #world{rules = #rules{modules = Modules}, now = Now} = World) ->
    case Rooms of
        #{Room := State0} ->
            #{Room := Protocol} = Modules,
            case Protocol:handle(Event, Now, State0) of
                {State, []} -> {Node#node{rooms = Rooms#{Room := State}}, counted(World)};
                {State, Effects} -> perform(Effects, Room, Node#node{rooms = Rooms#{Room := State}}, counted(World))
            end;
        #{} ->
            {Node, World}
    end.

perform([], _Room, Node, World) ->
    {Node, World};
perform([{send, Peer, Message} | Effects], Room, Node, World0) ->
    {Sent, World} = send(Peer, Room, Message, Node, World0),
    perform(Effects, Room, Sent, World);
perform([{timer, Key, Ms} | Effects], Room, #node{name = Name, timers = Timers} = Node, World) ->
    #world{number = N, now = Now} = World,
    Number = N + 1,
    Set = later(Now + Ms, {timer, Name, Number, Room, Key}, World#world{number = Number}),
    Running =
        case Timers of
            #{Room := Others} -> Others#{Key => Number};
            #{} -> #{Key => Number}
        end,
    perform(Effects, Room, Node#node{timers = Timers#{Room => Running}}, Set);
perform([{cancel, Key} | Effects], Room, #node{timers = Timers} = Node, World) ->
    case Timers of
        #{Room := #{Key := _} = Running} -> perform(Effects, Room, Node#node{timers = Timers#{Room := maps:remove(Key, Running)}}, World);
        #{} -> perform(Effects, Room, Node, World)
    end;
perform([{Want, Peer} | Effects], Room, Node0, World0) when Want =:= want; Want =:= unwant ->
    {Node, World} = handle({cast, {Want, Room, Peer}}, ?LINK, Node0, World0),
    perform(Effects, Room, Node, World);
perform([{act, Deed} | Effects], ?LINK, Node0, World0) ->
    {Node, World} = link_deed(Deed, Node0, World0),
    perform(Effects, ?LINK, Node, World);
perform([{act, {disconnect, _} = Disconnect} | Effects], Room, Node0, World0) ->
    {Node, World} = handle({cast, Disconnect}, ?LINK, Node0, World0),
    perform(Effects, Room, Node, World);
perform([{act, {listen, Peer, Ms}} | Effects], Room, Node, World0) ->
    {Listened, World} = listen(Peer, Ms, Room, Node, World0),
    perform(Effects, Room, Listened, World);
perform([{reply, {_, Id}, Answer} | Effects], Room, #node{name = Name} = Node, World) ->
    perform(Effects, Room, Node, see(Name, {reply, Id, Answer}, World));
perform([Other | Effects], Room, Node0, World0) ->
    %% A notice, or a deed.
    {Node, World} = process(Room, Other, Node0, World0),
    perform(Effects, Room, Node, World).

%% What the room's process does with it.
process(Room, Effect, #node{local = Local0} = Node, #world{rules = #rules{wiring = Wiring}} = World) ->
    Seen = see_effect(Room, Effect, Node, World),
    case Wiring of
        none ->
            {Node, soon([{First, Event} || {First, Event} <- of_link(Room, Effect, World)], Node, Seen)};
        _ ->
            case Wiring:done(Room, Effect, Local0) of
                {[], Local0} -> {Node, Seen};
                {Events, Local} -> {Node#node{local = Local}, soon(Events, Node, Seen)}
            end
    end.

of_link(?LINK, {notify, {unreachable, _} = Notice}, #world{rules = #rules{first = First}}) -> [{First, {cast, Notice}}];
of_link(_Room, _Effect, _World) -> [].

see_effect(?LINK, _Effect, _Node, World) ->
    World;
see_effect(First, {notify, Notice}, #node{name = Name}, #world{rules = #rules{first = First}} = World) ->
    see(Name, {notice, Notice}, World);
see_effect(First, {act, Deed}, #node{name = Name}, #world{rules = #rules{first = First}} = World) ->
    see(Name, {deed, Deed}, World);
see_effect(Room, {notify, Notice}, #node{name = Name}, World) ->
    see(Name, {room, Room, {notice, Notice}}, World);
see_effect(Room, {act, Deed}, #node{name = Name}, World) ->
    see(Name, {room, Room, {deed, Deed}}, World).

%% To rooms of the node, in this life, after what happens now.
soon(Events, #node{name = Name, incarnation = Life}, World) ->
    lists:foldl(
        fun({Room, Event}, #world{now = Now} = W) -> later(Now, {event, Name, Life, Room, Event}, W) end, World, Events
    ).

%% Messages

send(Peer, Room, Message, #node{name = Name, links = Links} = Node, #world{net = Net0} = World0) ->
    case Links of
        #{Peer := {Link, Last, Count}} ->
            {Fate, Net} = atoll_sim_net:deliver(Name, Peer, World0#world.now, Net0),
            Happening = {message, Peer, Name, Link, Room, Message},
            Sent = World0#world{net = Net, sent = World0#world.sent + 1},
            World = see_message(sent, Room, Node, Peer, Message, Sent),
            carry(Fate, Happening, Last, Count + 1, Node, World);
        #{} ->
            {Node, drop(unconnected, World0)}
    end.

carry({in_order, Ms}, Happening, Last, Count, #node{links = Links} = Node, #world{now = Now} = World) ->
    Arrival = max(Now + Ms, Last),
    {message, Peer, _, Link, _, _} = Happening,
    {Node#node{links = Links#{Peer := {Link, Arrival, Count}}}, later(Arrival, Happening, World)};
carry({out_of_order, Ms}, Happening, _Last, _Count, Node, #world{now = Now} = World) ->
    {Node, later(Now + Ms, Happening, World)};
carry({twice, Ms, Again}, Happening, Last, Count, Node0, World0) ->
    {Node, World} = carry({in_order, Ms}, Happening, Last, Count, Node0, World0),
    carry({out_of_order, Again}, Happening, Last, Count, Node, World);
carry(Lost, {message, Peer, _, _, Room, Message}, _Last, _Count, Node, World) ->
    {Node, see_message(lost, Room, Node, Peer, Message, drop(Lost, World))}.

%% Somebody may have listened.
came(_From, #node{looks = Looks} = Node) when map_size(Looks) =:= 0 ->
    Node;
came(From, #node{looks = Looks} = Node) ->
    case Looks of
        #{From := {At, Until, Link, false}} -> Node#node{looks = Looks#{From := {At, Until, Link, true}}};
        #{} -> Node
    end.

%% As atoll_overlay does it: whether bytes have come since the look before, whoever sent them.
listen(Peer, Ms, Room, #node{name = Name, links = Links, looks = Looks0} = Node, #world{now = Now} = World0) ->
    Looks = maps:filter(fun(_, {_, Until, _, _}) -> Now =< Until end, Looks0),
    case Links of
        #{Peer := {Link, _, _}} ->
            {Came, World} =
                case Looks of
                    #{Peer := {_, _, Link, true}} -> {true, World0};
                    #{Peer := {At, _, Link, false}} -> came_bulk(Peer, Name, At, World0);
                    #{} -> {false, World0}
                end,
            {Node#node{looks = Looks#{Peer => {Now, Now + Ms, Link, false}}}, soon([{Room, {cast, {bytes, Peer}}} || Came], Node, World)};
        #{} ->
            {Node#node{looks = Looks}, World0}
    end.

came_bulk(Peer, Name, Since, #world{net = Net0, now = Now} = World) ->
    case status(Peer, World) of
        Status when Status =:= alive; Status =:= stalled ->
            {Came, Net} = atoll_sim_net:came(Peer, Name, Since, Now, Net0),
            {Came, World#world{net = Net}};
        _ ->
            {false, World}
    end.

%% An open queue stays the same term.
later(Ms, Happening, #world{queue = Queue} = World) ->
    case atoll_sim_queue:put(Ms, Happening, Queue) of
        Queue -> World;
        Longer -> World#world{queue = Longer}
    end.

drop(How, #world{dropped = Dropped} = World) ->
    World#world{dropped = Dropped#{How := maps:get(How, Dropped) + 1}}.

see_message(_What, _Room, _Node, _Peer, _Message, #world{rules = #rules{messages = false}} = World) ->
    World;
see_message(What, First, #node{name = Name}, Peer, Message, #world{rules = #rules{first = First}} = World) ->
    see(Name, {What, Peer, Message}, World);
see_message(What, Room, #node{name = Name}, Peer, Message, World) ->
    see(Name, {What, Peer, {Room, Message}}, World).

%% Links

%% The link room has it done.
link_deed({connect, Peer}, #node{name = Name, incarnation = Life} = Node, #world{net = Net0, now = Now} = World) ->
    {Ms, Net} = atoll_sim_net:delay(Name, Peer, Net0),
    {Node, later(Now + 3 * Ms, {connect, Name, Life, Peer}, World#world{net = Net})};
link_deed({disconnect, Peer}, #node{name = Name, links = Links} = Node, #world{now = Now} = World) ->
    case Links of
        #{Peer := {Link, _, _}} ->
            %% It hears of it as of any other loss of the link.
            {Node, tell_down(Name, Peer, Link, connection_closed, later(Now, {down, Name, Peer, Link, disconnected}, World))};
        #{} ->
            {Node, World}
    end;
link_deed({measure, Purpose, Peer}, Node, World) ->
    %% It takes no time.
    handle({cast, {usage, Purpose, Peer, usage(Peer, Node, World)}}, ?LINK, Node, World);
link_deed(_ForTheCarrierOrOfProcesses, Node, World) ->
    {Node, World}.

%% No process of a node has a monitor or a link on another.
usage(Peer, #node{name = Name, links = Links}, #world{net = Net, now = Now} = World) ->
    case Links of
        #{Peer := {Link, _, Out}} ->
            In =
                case find(Peer, World) of
                    #node{links = #{Name := {Link, _, Count}}} -> Count;
                    _ -> 0
                end,
            Bulk =
                case [bulk || {A, B} <- [{Name, Peer}, {Peer, Name}], atoll_sim_net:bulk(A, B, Net) =/= none] of
                    [] -> 0;
                    [_ | _] -> Now
                end,
            #{uses => 0, traffic => Out + In + Bulk, payload => Out + In + Bulk};
        #{} ->
            unknown
    end.

connect(Peer, #node{links = Links} = Node, World) when is_map_key(Peer, Links) ->
    connected(true, Peer, Node, World);
connect(Peer, #node{name = Name, incarnation = Life} = Node, #world{net = Net, now = Now} = World) ->
    Reaches = atoll_sim_net:reaches(Name, Peer, Net) andalso atoll_sim_net:reaches(Peer, Name, Net),
    case find(Peer, World) of
        #node{status = Status} = Other when Reaches, Status =:= alive orelse Status =:= stalled ->
            establish(Node, Other, World);
        #node{status = Status} when Status =/= dead; not Reaches ->
            later(Now + ?SETUP_MS, {timed_out, Name, Life, Peer}, World);
        _ ->
            connected(false, Peer, Node, World)
    end.

connected(Whether, Peer, Node, World) ->
    event({cast, {connected, Peer, Whether}}, ?LINK, Node, World).

%% The other end may not have heard yet that an earlier link is gone.
establish(#node{name = Name} = Node, #node{name = Peer, links = Links} = Other, World0) ->
    case Links of
        #{Name := _} ->
            World = break(Name, connection_closed, Other, World0),
            establish(find(Name, World), find(Peer, World), World);
        #{} ->
            Link = World0#world.number + 1,
            One = Node#node{links = (Node#node.links)#{Peer => {Link, 0, 0}}},
            Two = Other#node{links = Links#{Name => {Link, 0, 0}}},
            World1 = put_node(One, put_node(Two, World0#world{number = Link})),
            World2 = see(Peer, {link_up, Name}, see(Name, {link_up, Peer}, World1)),
            World3 = event_all({up, Peer}, One, World2),
            event_all({up, Name}, find(Peer, World3), World3)
    end.

tell_down(Name, Peer, Link, Reason, #world{net = Net0, now = Now, queue = Queue} = World) ->
    {Ms, Net} =
        case atoll_sim_net:reaches(Name, Peer, Net0) of
            true -> atoll_sim_net:delay(Name, Peer, Net0);
            false -> {?TICK_MS, Net0}
        end,
    World#world{net = Net, queue = atoll_sim_queue:put(Now + Ms, {down, Peer, Name, Link, Reason}, Queue)}.

%% Nobody listens any more.
refuse({message, Name, From, Link, _, _}, World) -> reset(From, Name, Link, World);
refuse(_Happening, World) -> World.

%% The sender may have a link of which this end knows nothing.
reset(Sender, Name, Link, #world{net = Net} = World) ->
    case find(Sender, World) of
        #node{links = #{Name := {Link, _, _}}} ->
            case atoll_sim_net:reaches(Name, Sender, Net) of
                true -> tell_down(Name, Sender, Link, connection_closed, World);
                false -> World
            end;
        _ ->
            World
    end.

break(Peer, Reason, #node{name = Name, links = Links} = Node, World) ->
    event_all({down, Peer, Reason}, Node#node{links = maps:remove(Peer, Links)}, see(Name, {link_down, Peer}, World)).
