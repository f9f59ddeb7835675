%% SPDX-License-Identifier: Apache-2.0
%% Two link protocols on a connection that is played: programs that send and
%% monitor over it, owners that want it, a channel that keeps the order and loses
%% some, ticks, and readings that take their time. Every time that one of them
%% closes the connection it is checked that it might.
-module(atoll_link_pair).
-compile({no_auto_import, [get/1, put/2]}).

-export([run/2]).

-export_type([command/0, options/0]).

-type command() ::
    {want | unwant, a | b, Owner :: term()}
    | {disconnect, a | b}
    %% A program sends; it sets or takes back a monitor, or a link.
    | {traffic | monitor | demonitor, a | b}
    %% As a monitor, but nothing of it goes to the other end: only this one can
    %% object.
    | {half | unhalf, a | b}.

-type options() :: #{
    seed := integer(),
    %% Share of the protocols' messages that are lost.
    loss := float(),
    link := atoll_link_core:options(),
    %% Whether ticks can be told from traffic.
    ticks := told | untold
}.

-define(TICK_MS, 15000).

-record(side, {
    core :: term(),
    %% Key => the number of the timer that runs for it.
    timers = #{} :: #{term() => pos_integer()},
    owners = #{} :: #{term() => []},
    %% The number of the attempt that is under way.
    attempt = none :: none | pos_integer(),
    %% Monitors that programs here have set, and those of the other end that are
    %% known here.
    own = 0 :: non_neg_integer(),
    half = 0 :: non_neg_integer(),
    seen = 0 :: integer(),
    packets = 0 :: non_neg_integer(),
    payload = 0 :: non_neg_integer(),
    %% The monitors at the last two looks of this end, the newest first.
    looks = [] :: [non_neg_integer()],
    %% The last answer to a question of the other end, and what was true then.
    answer = none :: none | {boolean(), Wanted :: boolean(), Uses :: non_neg_integer()},
    %% Latest arrival of what was sent to this end, and of an up or a down.
    latest = 0 :: non_neg_integer(),
    announced = 0 :: non_neg_integer()
}).

-record(world, {
    now = 0 :: non_neg_integer(),
    count = 0 :: non_neg_integer(),
    queue = gb_sets:new(),
    %% The number of the connection, and whether it was closed from above.
    connection = none :: none | pos_integer(),
    a :: #side{},
    b :: #side{},
    options :: map(),
    loss :: float(),
    rand :: rand:state(),
    faults = [] :: [term()],
    %% How the connection ended, each time.
    closed = #{cut => 0, room => 0} :: map()
}).

name(a) -> n1;
name(b) -> n2.

other(a) -> b;
other(b) -> a.

%% Runs the commands, each so many milliseconds after the one before. Then all is
%% let go and nothing is lost any more. Gives what was wrong on the way, how often
%% connections were closed, and how long the last one stayed after that; `never'
%% if it outstayed the bound.
run(Commands, #{seed := Seed, link := Link, loss := Loss} = Options) ->
    World0 = #world{
        a = side(a, Seed, Link),
        b = side(b, Seed, Link),
        options = Options,
        loss = Loss,
        rand = rand:seed_s(exsss, Seed)
    },
    World1 = schedule(1000, {tick, a}, schedule(8000, {tick, b}, World0)),
    World2 = lists:foldl(fun({Ms, Command}, W) -> do(Command, until(W#world.now + Ms, W)) end, World1, Commands),
    World3 = let_go(World2#world{loss = 0.0}),
    #{on_demand_ms := OnDemand, linger_max_ms := Max} = Link,
    Longest =
        case OnDemand of
            infinity -> Max;
            _ -> max(Max, OnDemand)
        end,
    Start = World3#world.now,
    Last = until_closed(Start + 10 * Longest + 4 * ?TICK_MS, World3),
    Stayed =
        case Last#world.connection of
            none -> Last#world.now - Start;
            _ -> never
        end,
    End = until(Last#world.now + 60000, Last),
    #world{a = #side{core = A}, b = #side{core = B}} = End,
    #{
        faults => lists:usort(End#world.faults),
        closed => Last#world.closed,
        stayed => Stayed,
        left => [atoll_link_core:summary(Core) || Core <- [A, B]]
    }.

side(Side, Seed, Link) ->
    {Core, []} = atoll_link_core:init(#{self => name(Side), seed => Seed, options => Link}, 0),
    #side{core = Core}.

let_go(World) ->
    lists:foldl(
        fun(Side, W0) ->
            #side{owners = Owners, own = Own} = S = get(Side, W0),
            W1 = lists:foldl(fun(Owner, W) -> do({unwant, Side, Owner}, W) end, put(Side, S#side{half = 0}, W0), maps:keys(Owners)),
            lists:foldl(fun(_, W) -> do({demonitor, Side}, W) end, W1, lists:seq(1, Own))
        end,
        World,
        [a, b]
    ).

%% Time

schedule(Ms, What, #world{now = Now, count = N, queue = Queue} = World) ->
    World#world{count = N + 1, queue = gb_sets:add({Now + Ms, N + 1, What}, Queue)}.

until(Time, World) ->
    case next(World) of
        {At, What, Rest} when At =< Time -> until(Time, happen(What, Rest#world{now = At}));
        _ -> World#world{now = Time}
    end.

until_closed(Deadline, World) ->
    case next(World) of
        _ when World#world.connection =:= none -> World;
        {At, What, Rest} when At =< Deadline -> until_closed(Deadline, happen(What, Rest#world{now = At}));
        _ -> World
    end.

%% Ticks go on for ever, so there is always something.
next(#world{queue = Queue} = World) ->
    {{At, _, What}, Rest} = gb_sets:take_smallest(Queue),
    {At, What, World#world{queue = Rest}}.

happen({event, Side, Event}, World) ->
    event(Side, Event, World);
happen({timer, Side, Key, N}, World) ->
    case get(Side, World) of
        #side{timers = #{Key := N} = Timers} = S ->
            event(Side, {timeout, Key}, put(Side, S#side{timers = maps:remove(Key, Timers)}, World));
        _ ->
            World
    end;
happen({attempted, Side, N}, World) ->
    case get(Side, World) of
        #side{attempt = N} = S when World#world.connection =:= none ->
            case chance(0.3, World) of
                {true, Next} ->
                    event(Side, connected(Side, false), put(Side, S#side{attempt = none}, Next));
                {false, Next} ->
                    connect(Next)
            end;
        _ ->
            World
    end;
happen({tick, Side}, World) ->
    schedule(?TICK_MS, {tick, Side}, packet(Side, 0, nothing, World));
happen({arrives, Side, Connection, Bytes, What}, #world{connection = Connection} = World) ->
    S = #side{seen = Seen} = counted(Bytes, get(Side, World)),
    case What of
        nothing -> put(Side, S, World);
        monitor -> put(Side, S#side{seen = Seen + 1}, World);
        demonitor -> put(Side, S#side{seen = Seen - 1}, World);
        {message, Message} -> event(Side, {message, name(other(Side)), Message}, put(Side, S, World))
    end;
happen({arrives, _Side, _Earlier, _Bytes, _What}, World) ->
    World;
happen({disconnect, Connection, How}, #world{connection = Connection} = World) ->
    close(How, World);
happen({disconnect, _Earlier, _How}, World) ->
    World.

%% The network

connect(#world{connection = none, count = N} = World0) ->
    World = World0#world{connection = N, count = N + 1},
    lists:foldl(
        fun(Side, W) ->
            #side{attempt = Attempt} = S = get(Side, W),
            {Ms, W1} = draw(20, put(Side, S#side{attempt = none}, W)),
            W2 = announce(Ms, Side, {up, name(other(Side))}, W1),
            case Attempt of
                none -> W2;
                _ -> schedule(Ms, {event, Side, connected(Side, true)}, W2)
            end
        end,
        World,
        [a, b]
    );
connect(World) ->
    World.

%% Up and down come in their order.
announce(Ms, Side, Event, #world{now = Now} = World) ->
    #side{announced = Before} = S = get(Side, World),
    At = max(Before, Now + Ms),
    schedule(At - Now, {event, Side, Event}, put(Side, S#side{announced = At}, World)).

connected(Side, Success) ->
    {cast, {connected, name(other(Side)), Success}}.

close(How, #world{closed = Closed} = World0) ->
    World = World0#world{connection = none, closed = maps:update_with(How, fun(N) -> N + 1 end, Closed)},
    lists:foldl(
        fun(Side, W) ->
            S = get(Side, W),
            Clean = S#side{own = 0, half = 0, seen = 0, packets = 0, payload = 0, looks = [], answer = none},
            {Ms, W1} = draw(20, put(Side, Clean, W)),
            announce(Ms, Side, {down, name(other(Side)), disconnect}, W1)
        end,
        World,
        [a, b]
    ).

packet(_Side, _Bytes, _What, #world{connection = none} = World) ->
    World;
packet(From, Bytes, What, #world{connection = Connection, now = Now} = World0) ->
    {Ms, World1} = draw(50, put(From, counted(Bytes, get(From, World0)), World0)),
    To = other(From),
    #side{latest = Latest} = S = get(To, World1),
    At = max(Latest, Now + Ms),
    World = put(To, S#side{latest = At}, World1),
    schedule(At - Now, {arrives, To, Connection, Bytes, What}, World).

counted(Bytes, #side{packets = Packets, payload = Payload} = S) ->
    S#side{packets = Packets + 1, payload = Payload + Bytes}.

%% Programs and owners

do({want, Side, Owner}, World) ->
    #side{owners = Owners} = S = get(Side, World),
    Wanted = put(Side, S#side{owners = Owners#{Owner => []}}, World),
    event(Side, {cast, {want, Owner, name(other(Side))}}, Wanted);
do({unwant, Side, Owner}, World) ->
    #side{owners = Owners} = S = get(Side, World),
    Unwanted = put(Side, S#side{owners = maps:remove(Owner, Owners)}, World),
    event(Side, {cast, {unwant, Owner, name(other(Side))}}, Unwanted);
do({disconnect, Side}, World) ->
    event(Side, {cast, {disconnect, name(other(Side))}}, cut, World);
do({traffic, Side}, World) ->
    packet(Side, 50, nothing, connect(World));
do({monitor, Side}, World0) ->
    World = connect(World0),
    #side{own = Own} = S = get(Side, World),
    packet(Side, 50, monitor, put(Side, S#side{own = Own + 1}, World));
do({half, Side}, World0) ->
    World = connect(World0),
    S = get(Side, World),
    put(Side, S#side{half = 1}, World);
do({unhalf, Side}, World) ->
    S = get(Side, World),
    put(Side, S#side{half = 0}, World);
do({demonitor, Side}, World) ->
    case get(Side, World) of
        #side{own = 0} -> World;
        #side{own = Own} = S -> packet(Side, 50, demonitor, put(Side, S#side{own = Own - 1}, World))
    end.

%% The protocols

event(Side, Event, World) ->
    event(Side, Event, room, World).

event(Side, Event, How, #world{now = Now} = World) ->
    #side{core = Core0} = S = get(Side, World),
    {Core, Effects} = atoll_link_core:handle(Event, Now, Core0),
    lists:foldl(
        fun(Effect, W) -> effect(Effect, Side, How, W) end, put(Side, S#side{core = Core}, World), Effects
    ).

effect({timer, Key, Ms}, Side, _How, #world{count = N} = World) ->
    #side{timers = Timers} = S = get(Side, World),
    schedule(Ms, {timer, Side, Key, N}, put(Side, S#side{timers = Timers#{Key => N}}, World));
effect({cancel, Key}, Side, _How, World) ->
    #side{timers = Timers} = S = get(Side, World),
    put(Side, S#side{timers = maps:remove(Key, Timers)}, World);
effect({send, _Peer, Message}, Side, _How, World0) ->
    World = answered(Message, Side, World0),
    case chance(World#world.loss, World) of
        {true, Lost} -> Lost;
        {false, Next} -> packet(Side, 60, {message, Message}, Next)
    end;
effect({act, {connect, _Peer}}, Side, _How, World0) ->
    {Ms, World} = draw(200, World0),
    case {get(Side, World), World#world.connection} of
        {#side{attempt = none}, Connection} when is_integer(Connection) ->
            schedule(Ms, {event, Side, connected(Side, true)}, World);
        {#side{attempt = none} = S, none} ->
            N = World#world.count,
            schedule(Ms, {attempted, Side, N}, put(Side, S#side{attempt = N}, World));
        {#side{}, _} ->
            fault({two_attempts, Side}, World)
    end;
effect({act, {measure, Purpose, Peer}}, Side, _How, World0) ->
    #side{own = Own, half = Half, seen = Seen, packets = Packets, payload = Payload, looks = Looks} = S =
        get(Side, World0),
    Uses = Own + Half + Seen,
    {Looked, Told} =
        case Purpose of
            traffic -> {Looks, #{}};
            _ -> {lists:sublist([Uses | Looks], 2), #{uses => Uses}}
        end,
    {Ms, World} = draw(30, put(Side, S#side{looks = Looked}, World0)),
    Read =
        case World of
            #world{connection = none} -> unknown;
            #world{options = #{ticks := told}} -> Told#{traffic => Packets, payload => Payload};
            #world{} -> Told#{traffic => Packets, payload => {ticks, ?TICK_MS}}
        end,
    schedule(Ms, {event, Side, {cast, {usage, Purpose, Peer, Read}}}, World);
effect({act, {disconnect, _Peer}}, Side, How, #world{connection = Connection} = World) ->
    {Ms, Next} = draw(5, check(How, Side, World)),
    schedule(Ms, {disconnect, Connection, How}, Next);
effect({act, _}, _Side, _How, World) ->
    World;
effect({notify, _}, _Side, _How, World) ->
    World.

answered({close, _, Agreed}, Side, World) ->
    #side{owners = Owners, looks = Looks} = S = get(Side, World),
    put(Side, S#side{answer = {Agreed, map_size(Owners) > 0, hd(Looks ++ [0])}}, World);
answered(_, _Side, World) ->
    World.

%% What must be true when this end closes the connection.
check(cut, _Side, World) ->
    World;
check(room, Side, World) ->
    #side{owners = Owners, looks = Looks} = get(Side, World),
    #side{answer = Answer} = get(other(Side), World),
    Wrong =
        [{wanted_here, Side} || map_size(Owners) > 0] ++
            [{monitored_here, Side, Looks} || Looks =/= [0, 0]] ++
            [{not_agreed_there, Side, Answer} || Answer =/= {true, false, 0}],
    lists:foldl(fun fault/2, World, Wrong).

fault(What, #world{faults = Faults} = World) ->
    World#world{faults = [What | Faults]}.

%% The record

get(a, #world{a = S}) -> S;
get(b, #world{b = S}) -> S.

put(a, S, World) -> World#world{a = S};
put(b, S, World) -> World#world{b = S}.

draw(Below, #world{rand = Rand0} = World) ->
    {N, Rand} = rand:uniform_s(Below, Rand0),
    {N, World#world{rand = Rand}}.

chance(Share, #world{rand = Rand0} = World) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {X < Share, World#world{rand = Rand}}.
