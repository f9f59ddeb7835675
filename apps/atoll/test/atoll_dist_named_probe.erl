%% SPDX-License-Identifier: Apache-2.0
%% What the suite of the named channels has done on a node.
-module(atoll_dist_named_probe).
-behaviour(gen_server).

-export([asks/4, asks_registered/3, asks_behaviour/2, asks_application/3, wanders/4, collects/0, collected/1]).
-export([reads_slowly/2, states/4, told/1, sends/4, hands/3, tells/4, scope/1, where/1, joins/4, looks/1, seen/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(MS, 10000).

%% How many of so many processes in a channel are answered in that time.
asks(Node, Channel, Count, Ms) ->
    Askers = [
        spawn_monitor(fun() ->
            ok = atoll:channel(Channel),
            exit(asked(Node, Ms))
        end)
     || _ <- lists:seq(1, Count)
    ],
    length([yes || {_, Ref} <- Askers, yes <- [receive {'DOWN', Ref, process, _, Answer} -> Answer end]]).

asked(Node, Ms) ->
    try gen_server:call({echo, Node}, x, Ms) of
        x -> yes
    catch
        exit:{timeout, _} -> no
    end.

%% So many times when it is in a channel, which it is some time after the first time.
many(Node, Times) ->
    yes = asked(Node, ?MS),
    atoll_dist_nodes:until(fun() -> where(self()) =/= default end),
    [yes = asked(Node, ?MS) || _ <- lists:seq(1, Times)].

%% A registered process asks so many times.
asks_registered(Node, Name, Times) ->
    runs(fun() ->
        true = register(Name, self()),
        many(Node, Times)
    end).

%% So does a server of this module.
asks_behaviour(Node, Times) ->
    {ok, Pid} = gen_server:start(?MODULE, [], []),
    gen_server:call(Pid, {ask, Node, Times}, infinity).

%% And a process of an application.
asks_application(Node, Application, Times) ->
    Leader = hd([Pid || Pid <- processes(), application:get_application(Pid) =:= {ok, Application}]),
    {group_leader, Master} = process_info(Leader, group_leader),
    runs(fun() ->
        true = group_leader(Master, self()),
        many(Node, Times)
    end).

runs(Do) ->
    {_, Ref} = spawn_monitor(fun() -> _ = Do(), exit(done) end),
    receive
        {'DOWN', Ref, process, _, done} -> ok
    end.

init([]) -> {ok, []}.
handle_call({ask, Node, Times}, _From, State) -> {reply, many(Node, Times), State}.
handle_cast(_, State) -> {noreply, State}.

%% A process sends numbers, from 1 on, some of them large, and goes from channel to channel.
wanders(To, Count, Every, Channels) ->
    runs(fun() -> wander(1, To, Count, Every, Channels) end).

wander(I, _To, Count, _Every, _Channels) when I > Count ->
    ok;
wander(I, To, Count, Every, [Channel | Channels]) when I rem Every =:= 0 ->
    ok = atoll:channel(Channel),
    send(I, To),
    wander(I + 1, To, Count, Every, Channels ++ [Channel]);
wander(I, To, Count, Every, Channels) ->
    send(I, To),
    wander(I + 1, To, Count, Every, Channels).

send(I, To) when I rem 7 =:= 0 -> To ! {number, I, <<0:(150000 * 8)>>};
send(I, To) -> To ! {number, I, <<>>}.

%% A process that remembers what numbers it got; all of them, the first one first.
collects() -> spawn(fun() -> collect([]) end).

collect(Got) ->
    receive
        {number, I, {At, _}} -> collect([{I, os:system_time(microsecond) - At} | Got]);
        {number, I, _} -> collect([I | Got]);
        {get, From, Ref} -> From ! {Ref, lists:reverse(Got)}, collect(Got)
    end.

collected(Pid) ->
    Ref = make_ref(),
    Pid ! {get, self(), Ref},
    receive {Ref, Got} -> Got after ?MS -> none end.

%% A process in a channel tells the numbers from 1 on, each with such bytes, as fast as it can.
tells(To, Channel, Count, Bytes) ->
    runs(fun() ->
        ok = atoll:channel(Channel),
        [To ! {number, I, Bytes} || I <- lists:seq(1, Count)]
    end).

%% A scope of pg.
scope(Scope) ->
    {ok, Pid} = pg:start(Scope),
    Pid.

%% In which channel a process is.
where(Pid) -> atoll_dist_member:channel(atoll_dist_packet:key(Pid)).

%% A process in a channel lets so many processes join a group, and tells of each when it has.
joins(To, Scope, Channel, Count) ->
    Members = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, Count)],
    runs(fun() ->
        ok = atoll:channel(Channel),
        [begin ok = pg:join(Scope, group, Pid), To ! {joined, Pid} end || Pid <- Members]
    end),
    Members.

%% A process that says of each of whom it hears whether the group has it, as the scope's process
%% knows it when it has done what came before.
looks(Scope) -> spawn(fun() -> look(Scope, []) end).

look(Scope, Seen) ->
    receive
        {joined, Pid} ->
            _ = sys:get_state(Scope),
            look(Scope, [lists:member(Pid, pg:get_members(Scope, group)) | Seen]);
        {get, From, Ref} ->
            From ! {Ref, Seen},
            look(Scope, Seen)
    end.

seen(Pid) -> collected(Pid).

%% A process sends so many numbers, each with the next of these keys, in a channel that it is
%% not in itself, and ends.
sends(To, Channel, Keys, Count) ->
    runs(fun() ->
        [
            ok = atoll:send(To, {number, {Key, I}, <<0:((I rem 7) * 100000)>>}, #{channel => Channel, key => Key})
         || I <- lists:seq(1, Count), Key <- Keys
        ]
    end).

%% A process hands over messages as fast as it may, for ever.
hands(To, Channel, Bytes) ->
    spawn(fun() -> hand(To, Channel, <<0:(Bytes * 8)>>) end).

hand(To, Channel, Message) ->
    ok = atoll:send(To, Message, #{channel => Channel}),
    hand(To, Channel, Message).

%% The channels of a connection, as events tell of them.
told(Node) ->
    ok = atoll:subscribe(channel),
    ok = atoll_channel_figures:tell(),
    [receive {atoll, channel, #{node := Node, channel := Channel}} -> Channel after ?MS -> none end || _ <- [1, 2]].

%% Lets the connection with a node be read for a moment every so many milliseconds only.
reads_slowly(Node, EveryMs) ->
    {ok, Input} = atoll_dist_keeper:channel(Node),
    spawn(fun() -> read_slowly(Input, EveryMs) end).

read_slowly(Input, EveryMs) ->
    true = erlang:suspend_process(Input),
    receive after EveryMs -> ok end,
    true = erlang:resume_process(Input),
    receive after 1 -> read_slowly(Input, EveryMs) end.

%% A process tells so many states, so many in a second.
states(To, Channel, Count, Rate) ->
    runs(fun() ->
        ok = atoll:channel(Channel),
        state(To, 0, Count, Rate, erlang:monotonic_time(microsecond))
    end).

state(_To, Count, Count, _Rate, _Begin) ->
    ok;
state(To, Told, Count, Rate, Begin) ->
    Due = min(Count, (erlang:monotonic_time(microsecond) - Begin) * Rate div 1000000),
    [To ! {number, I, {os:system_time(microsecond), <<0:8000>>}} || I <- lists:seq(Told + 1, Due)],
    receive after 1 -> state(To, Due, Count, Rate, Begin) end.
