%% @doc A world in virtual time: nodes that run a pure protocol, the links between
%% them, and a network. It plays for the protocol what {@link atoll_interpreter}
%% and the link room are on a real node; the protocol is the very same module.
%%
%% One seed, one history: nothing here reads a clock, and no result hangs on the
%% order in which a map is walked. A world is a value, so one that has run for a
%% while can be used several times, each with another future.
%%
%% How links are played:
%% <ul>
%% <li>A wanted link is tried at once, and takes three times the latency. A dead
%%   peer refuses; one that is paused or cut off lets the attempt run into its
%%   time limit. After a failed attempt the protocol hears
%%   `{cast, {unreachable, Peer}}', and the next one comes after a growing
%%   pause, as long as the peer is wanted.</li>
%% <li>A link that neither end wants is closed when it has been so for its time, and
%%   then quiet for as long.</li>
%% <li>One that the protocol has had closed and wants is tried again after a pause.</li>
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
%%   drops it. The protocol's deed `{listen, Peer, Ms}' is answered by `{cast, {bytes, Peer}}'
%%   if a message or bulk has come since it was done last, no longer ago than was said then.</li>
%% <li>Messages over one link arrive in order unless the network reorders them;
%%   those on their way over a link that is gone are gone.</li>
%% </ul>
%% A paused node gets its messages and timers when it goes on, in the order in
%% which they came, up to a bound. So does one whose protocol alone stands still: its
%% links come and go meanwhile, and it hears of that late too; a slow one takes a while for each event, and
%% comes to them in that order too.
-module(atoll_sim_world).

-compile({no_auto_import, [nodes/1]}).

-export([new/1, start/2, start/3, kill/2, pause/2, stall/2, resume/2, slow/3, set/2]).
-export([cast/3, call/3, run/2, at/3]).
-export([now/1, nodes/1, alive/1, status/2, state/2, incarnation/2, links/2, counters/1, delay/3]).
-export([watched/1, watch/2, note/3]).

-export_type([world/0, options/0, status/0, sight/0, watcher/0]).

-type options() :: #{
    protocol := module(),
    %% What a node's protocol is started with.
    config := fun((node(), Incarnation :: pos_integer(), Seed :: integer()) -> term()),
    seed := integer(),
    latency => atoll_sim_net:latency(),
    %% As the link room of a node has it.
    link => atoll_link_core:options(),
    %% Bytes that a link carries in a second, and that its queue holds.
    rate => pos_integer(),
    queue => pos_integer(),
    %% Sees what happens, and keeps what it wants of it.
    watch => {watcher(), term()},
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
    | {reply, Id :: pos_integer(), term()}
    | {sent, node(), term()}
    | {lost, node(), term()}
    | {got, node(), term()}
    %% Said by whoever drives the world.
    | {note, term()}.

-type status() ::
    alive
    | paused
    %% Its protocol stands still, and nothing else of it.
    | stalled
    | dead.

-record(node, {
    name :: node(),
    status = alive :: status(),
    incarnation :: pos_integer(),
    state :: term(),
    %% Peer => the link's number, and when the last message over it arrives.
    links = #{} :: #{node() => {pos_integer(), integer()}},
    %% Peer => the number of the want, so that a try for an earlier one is known.
    wants = #{} :: #{node() => pos_integer()},
    timers = #{} :: #{Key :: term() => pos_integer()},
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
    {message, To :: node(), From :: node(), Link :: pos_integer(), term()}
    | {timer, node(), Number :: pos_integer(), Key :: term()}
    | {connect, node(), Peer :: node(), Want :: pos_integer(), Pause :: non_neg_integer()}
    | {timed_out, node(), Peer :: node(), Want :: pos_integer(), Pause :: non_neg_integer()}
    | {idle, node(), Peer :: node(), Link :: pos_integer()}
    | {down, node(), Peer :: node(), Link :: pos_integer(), Reason :: term()}
    | {cast, node(), term()}
    | {call, node(), Id :: pos_integer(), term()}
    %% It came to a protocol that stands still.
    | {event, node(), atoll_protocol:event()}
    %% A slow node comes to the oldest that it has.
    | {work, node(), Number :: pos_integer()}
    %% Not at a node: whoever drives the world does something to it.
    | {deed, fun((world()) -> world())}.

%% What stays as it is while the world runs.
-record(rules, {
    protocol :: module(),
    config :: fun((node(), pos_integer(), integer()) -> term()),
    seed :: integer(),
    watcher :: watcher(),
    messages :: boolean(),
    link :: atoll_link_core:options()
}).

%% It is copied with each event: what changes seldom is kept together.
-record(world, {
    now = 0 :: integer(),
    queue = atoll_sim_queue:new() :: atoll_sim_queue:queue(happening()),
    nodes = #{} :: #{node() => #node{}},
    net :: atoll_sim_net:net(),
    rules :: #rules{},
    kept :: term(),
    %% Numbers links, wants, timers, calls and work.
    number = 0 :: non_neg_integer(),
    events = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    %% By the network; without a link; at a full queue; by a paused or slow node that had too much.
    dropped = #{lost => 0, unconnected => 0, busy => 0, overflown => 0} :: #{atom() => non_neg_integer()}
}).

-opaque world() :: #world{}.

%% What the kernel does on a real node, where nobody has told it otherwise.
-define(SETUP_MS, 7000).
-define(TICK_MS, 60000).
%% What a paused or a slow node can owe at most.
-define(MAX_HELD, 20000).

%% @doc A world without nodes.
-spec new(options()) -> world().
new(#{protocol := Protocol, config := Config, seed := Seed} = Options) ->
    {Watcher, Kept} = maps:get(watch, Options, {fun(_, _, _, K) -> K end, none}),
    Net = atoll_sim_net:new(maps:get(latency, Options, {uniform, 1, 20}), erlang:phash2({net, Seed})),
    #world{
        net =
            case Options of
                #{rate := Rate, queue := Queue} -> atoll_sim_net:set({rate, Rate, Queue}, Net);
                #{} -> Net
            end,
        rules = #rules{
            protocol = Protocol,
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
start(Name, Change, #world{now = Now, rules = Rules, nodes = Nodes} = World) ->
    #rules{protocol = Protocol, config = Config, seed = WorldSeed} = Rules,
    dead = status(Name, World),
    %% As on a real node, where it is made of the clock at the start.
    Incarnation = Now + 1,
    Seed = erlang:phash2({WorldSeed, Name, Incarnation}),
    {State, Effects} = Protocol:init(Change(Config(Name, Incarnation, Seed)), Now),
    Node = #node{name = Name, incarnation = Incarnation, state = State},
    Started = see(Name, {started, Incarnation}, World#world{nodes = Nodes#{Name => Node}}),
    perform(Effects, Node, Started).

%% @doc The node is gone from one moment to the next; its sockets close.
-spec kill(node(), world()) -> world().
kill(Name, #world{nodes = Nodes} = World0) ->
    #{Name := #node{links = Links} = Node} = Nodes,
    Dead = Node#node{
        status = dead,
        links = #{},
        wants = #{},
        timers = #{},
        looks = #{},
        held = queue:new(),
        held_count = 0,
        work = none,
        state = none
    },
    World = see(Name, killed, World0#world{nodes = Nodes#{Name := Dead}}),
    lists:foldl(
        fun({Peer, {Link, _}}, W) -> tell_down(Name, Peer, Link, connection_closed, W) end,
        World,
        lists:sort(maps:to_list(Links))
    ).

%% @doc The node does nothing from now on; its sockets stay open.
-spec pause(node(), world()) -> world().
pause(Name, #world{nodes = Nodes} = World) ->
    case Nodes of
        #{Name := #node{status = Status} = Node} when Status =:= alive; Status =:= stalled ->
            see(Name, paused, World#world{nodes = Nodes#{Name := Node#node{status = paused, work = none}}});
        #{} ->
            World
    end.

%% @doc Its protocol does nothing from now on; the node itself goes on, and its links come and go.
-spec stall(node(), world()) -> world().
stall(Name, #world{nodes = Nodes} = World) ->
    case Nodes of
        #{Name := #node{status = alive} = Node} ->
            see(Name, stalled, World#world{nodes = Nodes#{Name := Node#node{status = stalled, work = none}}});
        #{} ->
            World
    end.

%% @doc It goes on, with what has come for it meanwhile.
-spec resume(node(), world()) -> world().
resume(Name, #world{nodes = Nodes} = World) ->
    case Nodes of
        #{Name := #node{status = Status} = Node} when Status =:= paused; Status =:= stalled ->
            go_on(Name, see(Name, resumed, World#world{nodes = Nodes#{Name := Node#node{status = alive}}}));
        #{} ->
            World
    end.

%% @doc From now on each event costs the node so many milliseconds, the one that it
%% is busy with excepted; with 0 it does at once what it has not come to.
-spec slow(node(), Ms :: non_neg_integer(), world()) -> world().
slow(Name, Ms, #world{nodes = Nodes} = World) ->
    #{Name := Node} = Nodes,
    go_on(Name, see(Name, {slow, Ms}, World#world{nodes = Nodes#{Name := Node#node{slow = Ms}}})).

%% @doc Changes the network. Bulk begins now.
-spec set(atoll_sim_net:setting() | {bulk, [node()], [node()], 0 | atoll_sim_bulk:rate()}, world()) -> world().
set({bulk, From, To, Rate}, #world{now = Now} = World) ->
    set({bulk, From, To, Rate, Now}, World);
set(Setting, #world{net = Net} = World) ->
    World#world{net = atoll_sim_net:set(Setting, Net)}.

%% @doc Something local happens on a node; nothing if it is dead.
-spec cast(node(), term(), world()) -> world().
cast(Name, Notice, World) ->
    happen({cast, Name, Notice}, World).

%% @doc A local process asks; the answer is seen as `{reply, Id, Answer}'.
-spec call(node(), term(), world()) -> {Id :: pos_integer(), world()}.
call(Name, Request, #world{number = Number} = World) ->
    Id = Number + 1,
    {Id, happen({call, Name, Id, Request}, World#world{number = Id})}.

%% @doc At that time, do this to the world, which is running then: the deed must not run
%% it itself, and what it returns takes the place of what it was given.
-spec at(integer(), fun((world()) -> world()), world()) -> world().
at(Ms, Deed, #world{queue = Queue, now = Now} = World) ->
    World#world{queue = atoll_sim_queue:put(max(Now, Ms), {deed, Deed}, Queue)}.

%% @doc Lets everything happen that happens until then, that millisecond included.
-spec run(Until :: integer(), world()) -> world().
run(Until, #world{queue = Closed} = World0) ->
    try run_on(Until, World0#world{queue = atoll_sim_queue:open(Closed)}) of
        #world{now = Now, queue = Queue} = World ->
            World#world{now = max(Until, Now), queue = atoll_sim_queue:close(Queue)}
    catch
        Class:Reason:Stack ->
            atoll_sim_queue:drop(),
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

%% What can be seen

%% @doc The time, in milliseconds.
-spec now(world()) -> integer().
now(#world{now = Now}) -> Now.

%% @doc All nodes that were ever started, in the order of their names.
-spec nodes(world()) -> [{node(), status()}].
nodes(#world{nodes = Nodes}) ->
    lists:sort([{Name, Status} || {Name, #node{status = Status}} <- maps:to_list(Nodes)]).

%% @doc Those that are alive, paused ones among them.
-spec alive(world()) -> [node()].
alive(World) ->
    [Name || {Name, Status} <- nodes(World), Status =/= dead].

%% @doc A node that was never started is dead.
-spec status(node(), world()) -> status().
status(Name, #world{nodes = Nodes}) ->
    case Nodes of
        #{Name := #node{status = Status}} -> Status;
        #{} -> dead
    end.

%% @doc The state of a live node's protocol.
-spec state(node(), world()) -> term().
state(Name, #world{nodes = Nodes}) ->
    #{Name := #node{state = State}} = Nodes,
    State.

%% @doc Of the present or the last start.
-spec incarnation(node(), world()) -> pos_integer().
incarnation(Name, #world{nodes = Nodes}) ->
    #{Name := #node{incarnation = Incarnation}} = Nodes,
    Incarnation.

%% @doc The peers with which a node holds a link.
-spec links(node(), world()) -> [node()].
links(Name, #world{nodes = Nodes}) ->
    #{Name := #node{links = Links}} = Nodes,
    lists:sort(maps:keys(Links)).

%% @doc What happened so far, in numbers.
-spec counters(world()) -> #{atom() => non_neg_integer()}.
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

see(Where, Sight, #world{rules = #rules{watcher = Watcher}, kept = Kept, now = Now} = World) ->
    World#world{kept = Watcher(Now, Where, Sight, Kept)}.

%% One thing happens

happen({deed, Deed}, World) ->
    Deed(World);
happen({work, Name, Number}, #world{nodes = Nodes} = World0) ->
    case Nodes of
        #{Name := #node{status = alive, work = Number, held = Held0, held_count = Count} = Node0} ->
            {{value, Happening}, Held} = queue:out(Held0),
            Left = Node0#node{held = Held, held_count = Count - 1, work = none},
            #world{nodes = #{Name := Node}} = World = work_later(Left, World0),
            happen(Happening, Node, World);
        #{} ->
            World0
    end;
happen(Happening, #world{nodes = Nodes} = World) ->
    Name = element(2, Happening),
    case Nodes of
        #{Name := #node{status = alive, slow = 0} = Node} -> happen(Happening, Node, World);
        #{Name := #node{status = stalled} = Node} when element(1, Happening) =/= timer -> happen(Happening, Node, World);
        #{Name := #node{status = dead}} -> refuse(Happening, World);
        #{Name := #node{} = Node} -> hold(Happening, Node, World);
        #{} -> World
    end.

hold(_Happening, #node{held_count = ?MAX_HELD}, World) ->
    drop(overflown, World);
hold(Happening, #node{held = Held, held_count = Count} = Node, World) ->
    work_later(Node#node{held = queue:in(Happening, Held), held_count = Count + 1}, World).

%% One thing at a time, unless it is paused.
work_later(#node{name = Name, status = alive, work = none, held_count = Count, slow = Ms} = Node, World) when Count > 0 ->
    #world{number = N, now = Now, queue = Queue, nodes = Nodes} = World,
    World#world{
        number = N + 1,
        queue = atoll_sim_queue:put(Now + Ms, {work, Name, N + 1}, Queue),
        nodes = Nodes#{Name := Node#node{work = N + 1}}
    };
work_later(#node{name = Name} = Node, #world{nodes = Nodes} = World) ->
    World#world{nodes = Nodes#{Name := Node}}.

%% With what it has not come to: at once, before all that comes after it.
go_on(Name, #world{nodes = Nodes} = World) ->
    case Nodes of
        #{Name := #node{status = alive, slow = 0, held = Held} = Node} ->
            Free = Node#node{held = queue:new(), held_count = 0, work = none},
            lists:foldl(fun happen/2, World#world{nodes = Nodes#{Name := Free}}, queue:to_list(Held));
        #{Name := #node{status = alive} = Node} ->
            work_later(Node, World);
        #{} ->
            World
    end.

happen({message, _To, From, Link, Message}, #node{links = Links} = Node, World) ->
    case Links of
        #{From := {Link, _}} -> event({message, From, Message}, came(From, Node), see_message(got, Node, From, Message, World));
        #{} -> reset(From, Node#node.name, Link, World)
    end;
happen({timer, _Name, Number, Key}, #node{timers = Timers} = Node, World) ->
    case Timers of
        #{Key := Number} -> event({timeout, Key}, Node#node{timers = maps:remove(Key, Timers)}, World);
        #{} -> World
    end;
happen({connect, _Name, Peer, Want, Pause}, #node{wants = Wants, links = Links} = Node, World) ->
    case {Wants, Links} of
        {_, #{Peer := _}} -> World;
        {#{Peer := Want}, _} -> connect(Peer, Want, Pause, Node, World);
        {#{}, _} -> World
    end;
happen({timed_out, _Name, Peer, Want, Pause}, #node{wants = Wants, links = Links} = Node, World) ->
    case {Wants, Links} of
        {_, #{Peer := _}} -> World;
        {#{Peer := Want}, _} -> unreachable(Peer, Want, Pause, Node, World);
        {#{}, _} -> World
    end;
happen({idle, _Name, Peer, Link}, #node{name = Name, wants = Wants, links = Links} = Node, World) ->
    case {Wants, Links} of
        {#{Peer := _}, _} -> World;
        {_, #{Peer := {Link, _}}} -> close_idle(Name, Peer, Link, Node, World);
        {_, #{}} -> World
    end;
happen({down, _Name, Peer, Link, Reason}, #node{links = Links} = Node, World) ->
    case Links of
        #{Peer := {Link, _}} -> break(Peer, Reason, Node, World);
        #{} -> World
    end;
happen({cast, _Name, Notice}, Node, World) ->
    event({cast, Notice}, Node, World);
happen({call, _Name, Id, Request}, Node, World) ->
    event({call, {self(), Id}, Request}, Node, World);
happen({event, _Name, Event}, Node, World) ->
    event(Event, Node, World).

event(Event, #node{name = Name, status = stalled} = Node, World) ->
    hold({event, Name, Event}, Node, World);
event(Event, #node{state = State0} = Node, #world{rules = #rules{protocol = Protocol}, now = Now, events = N} = World) ->
    case Protocol:handle(Event, Now, State0) of
        %% Most events are beats that come: nothing but the state is new.
        {State, []} ->
            #node{name = Name} = Node,
            #world{nodes = Nodes} = World,
            World#world{events = N + 1, nodes = Nodes#{Name := Node#node{state = State}}};
        {State, Effects} ->
            perform(Effects, Node#node{state = State}, World#world{events = N + 1})
    end.

%% The node is in hand while its effects are performed, and put back at the end.
perform([], #node{name = Name} = Node, #world{nodes = Nodes} = World) ->
    World#world{nodes = Nodes#{Name := Node}};
perform([{send, Peer, Message} | Effects], Node, World0) ->
    {Sent, World} = send(Peer, Message, Node, World0),
    perform(Effects, Sent, World);
perform([{timer, Key, Ms} | Effects], #node{name = Name, timers = Timers} = Node, World) ->
    #world{number = N, now = Now, queue = Queue} = World,
    Number = N + 1,
    Set = World#world{
        number = Number, queue = atoll_sim_queue:put(Now + Ms, {timer, Name, Number, Key}, Queue)
    },
    perform(Effects, Node#node{timers = Timers#{Key => Number}}, Set);
perform([{cancel, Key} | Effects], #node{timers = Timers} = Node, World) ->
    perform(Effects, Node#node{timers = maps:remove(Key, Timers)}, World);
perform([{want, Peer} | Effects], #node{name = Name, wants = Wants, links = Links} = Node, World0) ->
    #world{number = N} = World0,
    case Peer =:= Name orelse is_map_key(Peer, Wants) of
        true ->
            perform(Effects, Node, World0);
        false when is_map_key(Peer, Links) ->
            perform(Effects, Node#node{wants = Wants#{Peer => N + 1}}, World0#world{number = N + 1});
        false ->
            Wanting = Node#node{wants = Wants#{Peer => N + 1}},
            World = attempt(Peer, N + 1, 0, 0, Wanting, World0#world{number = N + 1}),
            perform(Effects, Wanting, World)
    end;
perform([{unwant, Peer} | Effects], #node{wants = Wants} = Node0, World) ->
    Node = Node0#node{wants = maps:remove(Peer, Wants)},
    perform(Effects, Node, idle_later(Peer, Node, World));
perform([{act, {disconnect, Peer}} | Effects], #node{name = Name, links = Links} = Node, World0) ->
    case Links of
        #{Peer := {Link, _}} ->
            %% It hears of it as of any other loss of the link.
            Queue = atoll_sim_queue:put(
                World0#world.now, {down, Name, Peer, Link, disconnected}, World0#world.queue
            ),
            World = tell_down(Name, Peer, Link, connection_closed, World0#world{queue = Queue}),
            perform(Effects, Node, World);
        #{} ->
            perform(Effects, Node, World0)
    end;
perform([{act, {listen, Peer, Ms}} | Effects], Node, World0) ->
    {Listened, World} = listen(Peer, Ms, Node, World0),
    perform(Effects, Listened, World);
perform([{notify, Notice} | Effects], #node{name = Name} = Node, World) ->
    perform(Effects, Node, see(Name, {notice, Notice}, World));
perform([{reply, {_, Id}, Answer} | Effects], #node{name = Name} = Node, World) ->
    perform(Effects, Node, see(Name, {reply, Id, Answer}, World));
perform([{act, Deed} | Effects], #node{name = Name} = Node, World) ->
    perform(Effects, Node, see(Name, {deed, Deed}, World)).

%% Messages

send(Peer, Message, #node{name = Name, links = Links} = Node, #world{net = Net0} = World0) ->
    case Links of
        #{Peer := {Link, Last}} ->
            {Fate, Net} = atoll_sim_net:deliver(Name, Peer, World0#world.now, Net0),
            Happening = {message, Peer, Name, Link, Message},
            Sent = World0#world{net = Net, sent = World0#world.sent + 1},
            World = see_message(sent, Node, Peer, Message, Sent),
            carry(Fate, Happening, Last, Node, World);
        #{} ->
            {Node, drop(unconnected, World0)}
    end.

carry({in_order, Ms}, Happening, Last, #node{links = Links} = Node, #world{now = Now} = World) ->
    Arrival = max(Now + Ms, Last),
    {message, Peer, _, Link, _} = Happening,
    {Node#node{links = Links#{Peer := {Link, Arrival}}}, later(Arrival, Happening, World)};
carry({out_of_order, Ms}, Happening, _Last, Node, #world{now = Now, queue = Queue} = World) ->
    {Node, World#world{queue = atoll_sim_queue:put(Now + Ms, Happening, Queue)}};
carry({twice, Ms, Again}, Happening, Last, Node0, World0) ->
    {Node, World} = carry({in_order, Ms}, Happening, Last, Node0, World0),
    carry({out_of_order, Again}, Happening, Last, Node, World);
carry(Lost, {message, Peer, _, _, Message}, _Last, Node, World) ->
    {Node, see_message(lost, Node, Peer, Message, drop(Lost, World))}.

%% Somebody may have listened.
came(_From, #node{looks = Looks} = Node) when map_size(Looks) =:= 0 ->
    Node;
came(From, #node{looks = Looks} = Node) ->
    case Looks of
        #{From := {At, Until, Link, false}} -> Node#node{looks = Looks#{From := {At, Until, Link, true}}};
        #{} -> Node
    end.

%% As atoll_overlay does it: whether bytes have come since the look before, whoever sent them.
listen(Peer, Ms, #node{name = Name, links = Links, looks = Looks0} = Node, #world{now = Now} = World0) ->
    Looks = maps:filter(fun(_, {_, Until, _, _}) -> Now =< Until end, Looks0),
    case Links of
        #{Peer := {Link, _}} ->
            {Came, World} =
                case Looks of
                    #{Peer := {_, _, Link, true}} -> {true, World0};
                    #{Peer := {At, _, Link, false}} -> came_bulk(Peer, Name, At, World0);
                    #{} -> {false, World0}
                end,
            {Node#node{looks = Looks#{Peer => {Now, Now + Ms, Link, false}}}, tell_bytes(Came, Name, Peer, World)};
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

tell_bytes(false, _Name, _Peer, World) ->
    World;
tell_bytes(true, Name, Peer, #world{now = Now, queue = Queue} = World) ->
    World#world{queue = atoll_sim_queue:put(Now, {cast, Name, {bytes, Peer}}, Queue)}.

%% An open queue stays the same term.
later(Ms, Happening, #world{queue = Queue} = World) ->
    case atoll_sim_queue:put(Ms, Happening, Queue) of
        Queue -> World;
        Longer -> World#world{queue = Longer}
    end.

drop(How, #world{dropped = Dropped} = World) ->
    World#world{dropped = Dropped#{How := maps:get(How, Dropped) + 1}}.

see_message(_What, _Node, _Peer, _Message, #world{rules = #rules{messages = false}} = World) ->
    World;
see_message(What, #node{name = Name}, Peer, Message, World) ->
    see(Name, {What, Peer, Message}, World).

%% Links

%% An attempt takes its three ways from when its pause is over.
attempt(Peer, Want, Pause, Next, #node{name = Name}, #world{net = Net0} = World) ->
    {Ms, Net} = atoll_sim_net:delay(Name, Peer, Net0),
    At = World#world.now + Pause + 3 * Ms,
    Queue = atoll_sim_queue:put(At, {connect, Name, Peer, Want, Next}, World#world.queue),
    World#world{net = Net, queue = Queue}.

connect(Peer, Want, Pause, #node{name = Name} = Node, #world{net = Net, nodes = Nodes} = World) ->
    Reaches = atoll_sim_net:reaches(Name, Peer, Net) andalso atoll_sim_net:reaches(Peer, Name, Net),
    case Nodes of
        #{Peer := #node{status = Status} = Other} when Reaches, Status =:= alive orelse Status =:= stalled ->
            establish(Node, Other, World);
        #{Peer := #node{status = Status}} when Status =/= dead; not Reaches ->
            Queue = atoll_sim_queue:put(
                World#world.now + ?SETUP_MS, {timed_out, Name, Peer, Want, Pause}, World#world.queue
            ),
            World#world{queue = Queue};
        #{} ->
            unreachable(Peer, Want, Pause, Node, World)
    end.

unreachable(Peer, Want, Last, #node{name = Name} = Node, #world{rules = #rules{link = Options}} = World0) ->
    #{retry_min_ms := Min, retry_max_ms := Max} = Options,
    Pause = max(Min, min(Max, 2 * Last)),
    World = attempt(Peer, Want, Pause, Pause, Node, World0),
    happen({cast, Name, {unreachable, Peer}}, World).

%% The other end may not have heard yet that an earlier link is gone.
establish(#node{name = Name} = Node, #node{name = Peer, links = Links} = Other, World0) ->
    case Links of
        #{Name := _} ->
            World = break(Name, connection_closed, Other, World0),
            establish(maps:get(Name, World#world.nodes), maps:get(Peer, World#world.nodes), World);
        #{} ->
            Link = World0#world.number + 1,
            One = Node#node{links = (Node#node.links)#{Peer => {Link, 0}}},
            Two = Other#node{links = Links#{Name => {Link, 0}}},
            Nodes = (World0#world.nodes)#{Name := One, Peer := Two},
            World1 = World0#world{number = Link, nodes = Nodes},
            World2 = see(Peer, {link_up, Name}, see(Name, {link_up, Peer}, World1)),
            %% Somebody may have stopped wanting it while it was made.
            World3 = event({up, Peer}, One, World2),
            World4 = event({up, Name}, maps:get(Peer, World3#world.nodes), World3),
            idle_later(Peer, maps:get(Name, World4#world.nodes), World4)
    end.

%% It is unwanted for its time, and then quiet for as long.
idle_later(Peer, #node{links = Links, wants = Wants} = Node, World) ->
    case Links of
        #{Peer := {Link, _}} when not is_map_key(Peer, Wants) -> look_later(2 * linger_ms(World), Peer, Link, Node, World);
        #{} -> World
    end.

look_later(Ms, Peer, Link, #node{name = Name}, #world{now = Now, queue = Queue} = World) ->
    World#world{queue = atoll_sim_queue:put(Now + Ms, {idle, Name, Peer, Link}, Queue)}.

linger_ms(#world{rules = #rules{link = #{linger_ms := Ms}}}) -> Ms.

close_idle(Name, Peer, Link, #node{links = Links} = Node, #world{nodes = Nodes, net = Net} = World0) ->
    #{Peer := {Link, Sent}} = Links,
    [BulkHere, BulkThere] = [atoll_sim_net:bulk(A, B, Net) || {A, B} <- [{Name, Peer}, {Peer, Name}]],
    Quiet = World0#world.now - linger_ms(World0),
    case Nodes of
        #{Peer := #node{wants = #{Name := _}}} ->
            World0;
        #{Peer := #node{links = #{Name := {Link, Got}}}} when Got > Quiet; Sent > Quiet ->
            look_later(linger_ms(World0), Peer, Link, Node, World0);
        #{} when BulkHere =/= none; BulkThere =/= none ->
            look_later(linger_ms(World0), Peer, Link, Node, World0);
        #{} ->
            World = tell_down(Name, Peer, Link, connection_closed, World0),
            break(Peer, disconnected, Node, World)
    end.

tell_down(Name, Peer, Link, Reason, #world{net = Net0, now = Now, queue = Queue} = World) ->
    {Ms, Net} =
        case atoll_sim_net:reaches(Name, Peer, Net0) of
            true -> atoll_sim_net:delay(Name, Peer, Net0);
            false -> {?TICK_MS, Net0}
        end,
    World#world{net = Net, queue = atoll_sim_queue:put(Now + Ms, {down, Peer, Name, Link, Reason}, Queue)}.

%% Nobody listens any more.
refuse({message, Name, From, Link, _}, World) -> reset(From, Name, Link, World);
refuse(_Happening, World) -> World.

%% The sender may have a link of which this end knows nothing.
reset(Sender, Name, Link, #world{net = Net, nodes = Nodes} = World) ->
    case Nodes of
        #{Sender := #node{links = #{Name := {Link, _}}}} ->
            case atoll_sim_net:reaches(Name, Sender, Net) of
                true -> tell_down(Name, Sender, Link, connection_closed, World);
                false -> World
            end;
        #{} ->
            World
    end.

break(Peer, Reason, #node{name = Name, links = Links} = Node0, World0) ->
    Node1 = Node0#node{links = maps:remove(Peer, Links)},
    World1 = see(Name, {link_down, Peer}, World0),
    World = event({down, Peer, Reason}, Node1, World1),
    #{Name := Node} = World#world.nodes,
    case Node of
        #node{wants = #{Peer := Want}, links = Left} when not is_map_key(Peer, Left) ->
            Pause = first_pause(Reason, World),
            attempt(Peer, Want, Pause, Pause, Node, World);
        #node{} ->
            World
    end.

first_pause(disconnected, #world{rules = #rules{link = #{retry_min_ms := Ms}}}) -> Ms;
first_pause(_Reason, _World) -> 0.
