%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process that reads all lanes of a connection and gives the VM what arrives:
%% the input handler of a connection with lanes.
%%
%% It owns the sockets, first while further lanes join ({@link atoll_dist_join}), then to
%% read them. Each lane is read so far ahead and no further; one that is held at a fence
%% ({@link atoll_dist_fence}) is not read on. It sees to it that a dead lane is found
%% ({@link atoll_dist_tick}).
%%
%% The connection ends when a lane does. When all of them end at nearly the same time it
%% was the peer that has gone, and the reason is what it is in Erlang's own distribution,
%% `connection_closed'; else it is `{lane_closed, Lane}'. So it is with a peer from which
%% nothing comes: `net_tick_timeout', or `{lane_silent, Lane}' if others were heard.
-module(atoll_dist_input).

-export([start/2, join/3, up/3, tick/1, ticks/1, fault/2, figures/1]).
-export([init/3, loop/1]).

%% So many frames of a lane are read ahead of being given to the VM.
-define(AHEAD, 16).

%% How far apart in milliseconds the ends of a gone peer's lanes may be. An end waits
%% twice as long before it gives up the others: if it is the first to, the other end,
%% which may have noticed later, sees that they ended well after the one that was lost.
-define(TOGETHER, 200).
-define(WAIT, (2 * ?TOGETHER)).

-record(state, {
    handle :: erlang:dist_handle(),
    peer :: binary(),
    n :: atoll_dist_lanes:count(),
    sockets :: tuple(),
    lanes :: #{atoll_dist_transport:tag() => atoll_dist_lanes:lane()},
    fence :: atoll_dist_fence:reader(),
    tick :: atoll_dist_tick:tick(),
    %% The timer to look at the lanes, and both ends' ticktimes, this one's first.
    timer :: reference(),
    ticktimes :: {pos_integer(), pos_integer()},
    %% How much was read of all lanes, and since when it has been that much.
    heard :: {non_neg_integer(), integer()},
    controller :: pid(),
    %% Whether faults can be injected, and the lanes that are black holes.
    faults :: boolean(),
    holes = [] :: [atoll_dist_lanes:lane()],
    %% Lanes that are not read for now.
    stopped = [] :: [atoll_dist_lanes:lane()],
    %% Lanes that have ended, the first one last, and when and why that one did.
    ended = [] :: [atoll_dist_lanes:lane()],
    since = 0 :: integer(),
    why = closed :: term(),
    %% The process that asks kernel for the ticktime, while it does.
    asking = none :: none | reference()
}).

%% @doc Starts the input handler of a connection that is about to be made, linked to the
%% calling process. The other end's lanes may knock from now on, unless those of another
%% connection of the same id do.
-spec start(atoll_dist_handshake:link(), atoll_dist_config:config()) -> {ok, pid()} | taken.
start(#{hello := {#{id := Id}, _}, at := At, kind := {lanes, N}} = Link, Config) ->
    case atoll_dist_process:start(?MODULE, init, [self(), Link, Config], [link]) of
        Pid when is_pid(Pid), At =:= none, N > 1 ->
            case atoll_dist_keeper:awaits(Id, Pid) of
                ok -> {ok, Pid};
                taken -> taken
            end;
        Pid when is_pid(Pid) ->
            {ok, Pid}
    end.

%% @doc Gives it the first lane, and has the others join: the sockets of all lanes, the
%% first one first.
-spec join(pid(), atoll_dist_transport:socket(), Key :: binary()) -> [atoll_dist_transport:socket(), ...].
join(Input, Socket, Key) ->
    Input ! {self(), join, Socket, Key},
    receive
        {Input, joined, Sockets} -> Sockets
    end.

%% @doc The connection is up: from now on what arrives is given to the VM.
-spec up(pid(), erlang:dist_handle(), Controller :: pid()) -> ok.
up(Input, Handle, Controller) ->
    Input ! {up, Handle, Controller},
    ok.

%% @doc Sends a sign of life that the VM wants; the lanes' own come as they need them.
-spec tick(pid()) -> ok.
tick(Input) ->
    Input ! tick,
    ok.

%% @doc This node has ticked, as often as its ticktime wants it, which may have changed.
-spec ticks(pid()) -> ok.
ticks(Input) ->
    Input ! ticks,
    ok.

%% @doc Injects a fault.
-spec fault(pid(), term()) -> ok | {error, faults_off | bad_fault | not_connected}.
fault(Input, Fault) ->
    Ref = monitor(process, Input),
    Input ! {fault, Fault, Ref, self()},
    receive
        {Ref, Answer} ->
            true = demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Input, _} ->
            {error, not_connected}
    end.

%% @doc What its lanes have carried: the figures of the writing end, and how many bytes
%% the reading end holds back.
-spec figures(pid()) -> {ok, map()} | {error, not_connected}.
figures(Input) ->
    Ref = monitor(process, Input),
    Input ! {figures, Ref, self()},
    receive
        {Ref, Figures} ->
            true = demonitor(Ref, [flush]),
            {ok, Figures};
        {'DOWN', Ref, process, Input, _} ->
            {error, not_connected}
    end.

%% @private
-spec init(pid(), atoll_dist_handshake:link(), atoll_dist_config:config()) -> no_return().
init(Connection, #{kind := {lanes, N}, hello := {Offer, Answer}, driver := Driver, at := At, peer := Peer}, #{faults := Faults}) ->
    #{id := Id, ticktime_ms := OneMs} = Offer,
    #{nonce := Nonce, ticktime_ms := OtherMs} = Answer,
    Sockets =
        receive
            {Connection, join, First, Key} ->
                _ = [ok = atoll_dist_keeper:expects(Id, N - 1) || At =:= none, N > 1],
                Needs = #{lanes => N, key => Key, said => [Id, Nonce], driver => Driver, at => At, peer => Peer},
                Further = atoll_dist_join:lanes(Needs, net_kernel:connecttime()),
                _ = [ok = atoll_dist_keeper:joined(Id) || At =:= none, N > 1],
                [First | Further]
        end,
    Connection ! {self(), joined, Sockets},
    receive
        {up, Handle, Controller} ->
            {OwnMs, PeerMs} =
                case At of
                    none -> {OtherMs, OneMs};
                    _ -> {OneMs, OtherMs}
                end,
            Ticktimes = {max(1, OwnMs), max(1, PeerMs)},
            Tick = atoll_dist_tick:new(N, max(1, OwnMs), max(1, PeerMs), now_ms()),
            lists:foreach(fun read_on/1, Sockets),
            loop(#state{
                handle = Handle,
                peer = Peer,
                n = N,
                sockets = list_to_tuple(Sockets),
                lanes = maps:from_list(lists:zip([atoll_dist_transport:tag(S) || S <- Sockets], lists:seq(0, N - 1))),
                fence = atoll_dist_fence:reader(N),
                tick = Tick,
                timer = later(Tick),
                ticktimes = Ticktimes,
                heard = {0, now_ms()},
                controller = Controller,
                faults = Faults
            })
    end.

read_on(Socket) ->
    atoll_dist_transport:active(Socket, ?AHEAD).

later(Tick) ->
    erlang:send_after(atoll_dist_tick:period(Tick), self(), look_at_lanes).

now_ms() -> erlang:monotonic_time(millisecond).

%% @private
-spec loop(#state{}) -> no_return().
loop(#state{lanes = Lanes} = State) ->
    receive
        {Tcp, Socket, Frame} when Tcp =:= tcp; Tcp =:= ssl ->
            #{Socket := Lane} = Lanes,
            ?MODULE:loop(arrived(Lane, Frame, State));
        {Passive, Socket} when Passive =:= tcp_passive; Passive =:= ssl_passive ->
            #{Socket := Lane} = Lanes,
            #state{stopped = Stopped} = State,
            ?MODULE:loop(go_on(State#state{stopped = [Lane | Stopped]}));
        {Closed, Socket} when Closed =:= tcp_closed; Closed =:= ssl_closed ->
            #{Socket := Lane} = Lanes,
            ?MODULE:loop(ended(Lane, closed, State));
        {Error, Socket, Why} when Error =:= tcp_error; Error =:= ssl_error ->
            %% It is closed next, if it was not passive.
            #{Socket := Lane} = Lanes,
            ?MODULE:loop(ended(Lane, Why, State));
        {lane_failed, Lane, Why} ->
            ?MODULE:loop(ended(Lane, Why, State));
        look_at_lanes ->
            ?MODULE:loop(look(State));
        {all_ended_by_now, Lane} ->
            all_ended_by_now(Lane, State);
        tick ->
            ok = tick(0, State),
            ?MODULE:loop(State);
        ticks ->
            ?MODULE:loop(ask_ticktime(State));
        {'DOWN', Asking, process, _, _} when Asking =:= State#state.asking ->
            ?MODULE:loop(State#state{asking = none});
        {ticktime, Ms} ->
            #state{ticktimes = {_, PeerMs}} = State,
            ?MODULE:loop(ticktimes({max(1, Ms), PeerMs}, State));
        {fault, Fault, Ref, From} ->
            ?MODULE:loop(fault(Fault, Ref, From, State));
        {figures, Ref, From} ->
            #state{controller = Controller, fence = Fence} = State,
            Controller ! {figures, atoll_dist_fence:held(Fence), Ref, From},
            ?MODULE:loop(State);
        {knock, Doorkeeper, _} ->
            %% It found the connection when that was not yet up.
            Doorkeeper ! {self(), refused},
            ?MODULE:loop(State)
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, loop, [State])
    end.

arrived(Lane, Frame, #state{handle = Handle, fence = Fence0} = State) ->
    case atoll_dist_frame:parse(Frame) of
        {ok, []} ->
            State;
        {ticktime, Ms} ->
            #state{ticktimes = {OwnMs, _}} = State,
            ticktimes({OwnMs, max(1, Ms)}, State);
        {ok, Segments} ->
            case atoll_dist_fence:arrive(Lane, Segments, Fence0) of
                {ok, Packets, Fence} ->
                    ok = deliver(Handle, Packets),
                    go_on(State#state{fence = Fence});
                {error, Reason} ->
                    end_of(Reason, "carries what cannot be", Lane, State)
            end;
        {error, Reason} ->
            end_of(Reason, "carries what cannot be", Lane, State)
    end.

deliver(Handle, [[Packet | Packets] | Rest]) ->
    ok = erlang:dist_ctrl_put_data(Handle, atoll_dist_frame:alone(Packet)),
    deliver(Handle, [Packets | Rest]);
deliver(Handle, [[] | Rest]) ->
    deliver(Handle, Rest);
deliver(_Handle, []) ->
    ok.

go_on(#state{stopped = []} = State) ->
    State;
go_on(#state{stopped = Stopped, fence = Fence, sockets = Sockets, holes = Holes} = State) ->
    IsHeld = fun(Lane) -> atoll_dist_fence:is_held(Lane, Fence) orelse lists:member(Lane, Holes) end,
    {Held, Free} = lists:partition(IsHeld, Stopped),
    lists:foreach(fun(Lane) -> read_on(element(Lane + 1, Sockets)) end, Free),
    State#state{stopped = Held}.

%% What has arrived on the others is still given to the VM.
ended(_Lane, _Why, #state{n = 1}) ->
    atoll_dist_process:over(connection_closed);
ended(Lane, Why, #state{ended = []} = State) ->
    _ = erlang:send_after(?WAIT, self(), {all_ended_by_now, Lane}),
    State#state{ended = [Lane], since = now_ms(), why = Why};
ended(Lane, _Why, #state{ended = Ended0, since = Since, n = N} = State) ->
    %% It may be said twice, by who reads it and by who writes it.
    Ended = [Lane || not lists:member(Lane, Ended0)] ++ Ended0,
    case length(Ended) =:= N andalso now_ms() - Since of
        false -> State#state{ended = Ended};
        Ms when Ms =< ?TOGETHER -> atoll_dist_process:over(connection_closed);
        _ -> one_ended(lists:last(Ended), State)
    end.

%% One that is not read, as it is held at a fence, does not say that it is closed.
-spec all_ended_by_now(atoll_dist_lanes:lane(), #state{}) -> no_return().
all_ended_by_now(Lane, #state{n = N, ended = Ended, stopped = Stopped, sockets = Sockets} = State) ->
    Silent = lists:seq(0, N - 1) -- Ended,
    case Silent -- Stopped =:= [] andalso lists:all(fun(L) -> atoll_dist_socket:has_ended(element(L + 1, Sockets)) end, Silent) of
        true -> atoll_dist_process:over(connection_closed);
        false -> one_ended(Lane, State)
    end.

-spec one_ended(atoll_dist_lanes:lane(), #state{}) -> no_return().
one_ended(Lane, #state{why = Why} = State) ->
    end_of({lane_closed, Lane}, io_lib:format("has ended (~0tp) though others had not", [Why]), Lane, State).

look(State) ->
    look_at_all(ask_ticktime(State)).

look_at_all(#state{sockets = Sockets, fence = Fence, tick = Tick0} = State0) ->
    Lanes = lists:zip(lists:seq(0, tuple_size(Sockets) - 1), tuple_to_list(Sockets)),
    Samples = [sample(Socket, atoll_dist_fence:is_held(Lane, Fence)) || {Lane, Socket} <- Lanes],
    Now = now_ms(),
    State = heard(Now, Samples, State0),
    case atoll_dist_tick:check(Now, Samples, Tick0) of
        {ok, Ticks, Tick} ->
            lists:foreach(fun(Lane) -> ok = tick(Lane, State) end, Ticks),
            State#state{tick = Tick, timer = later(Tick)};
        {dead, {lane_silent, Lane} = Silent, SilentMs} ->
            #state{heard = {_, Since}} = State,
            What = ["has been silent for ", integer_to_list(SilentMs), " ms"],
            case Since > Now - SilentMs + atoll_dist_tick:period(Tick0) of
                true -> end_of(Silent, What, Lane, State);
                false -> end_of(net_tick_timeout, [What, ", and so were all"], Lane, State)
            end
    end.

heard(Now, Samples, #state{heard = {Was, _}} = State) ->
    case lists:sum([Read || {Read, _, _, _} <- Samples]) of
        Was -> State;
        Is -> State#state{heard = {Is, Now}}
    end.

%% A process of kernel's knows it, for which nobody must wait here. One asks at a time.
ask_ticktime(#state{asking = none} = State) ->
    Self = self(),
    {_, Asking} = spawn_monitor(fun() ->
        case net_kernel:get_net_ticktime() of
            %% The node's distribution ends.
            ignored -> ok;
            Ticktime -> Self ! {ticktime, atoll_dist_tick:ms(Ticktime)}
        end
    end),
    State#state{asking = Asking};
ask_ticktime(State) ->
    State.

%% One of them has changed, this end's or the other's, which is told.
ticktimes(Same, #state{ticktimes = Same} = State) ->
    State;
ticktimes({OwnMs, PeerMs}, #state{ticktimes = {WasMs, _}, tick = Tick0, timer = Timer} = State) ->
    _ = [ok = say(0, atoll_dist_frame:ticktime(OwnMs), State) || OwnMs =/= WasMs],
    _ = erlang:cancel_timer(Timer),
    ok = receive look_at_lanes -> ok after 0 -> ok end,
    Tick = atoll_dist_tick:change(OwnMs, PeerMs, now_ms(), Tick0),
    State#state{ticktimes = {OwnMs, PeerMs}, tick = Tick, timer = later(Tick)}.

tick(Lane, State) -> say(Lane, atoll_dist_frame:tick(), State).

say(Lane, Frame, #state{sockets = Sockets, holes = Holes, controller = Controller}) ->
    Socket = element(Lane + 1, Sockets),
    case {lists:member(Lane, Holes), atoll_dist_transport:is_plain(Socket)} of
        {true, _} ->
            ok;
        {false, true} ->
            %% Also where the lane is busy: nobody must wait here. If it fails the socket has ended.
            _ = inet_tcp:send(Socket, Frame, [force]),
            ok;
        {false, false} ->
            Controller ! {say, Lane, Frame},
            ok
    end.

fault(_Fault, Ref, From, #state{faults = false} = State) ->
    From ! {Ref, {error, faults_off}},
    State;
fault(Fault, Ref, From, #state{n = N, controller = Controller} = State) ->
    case atoll_dist_fault:is_fault(Fault, N) of
        true ->
            _ =
                case Fault =:= cut orelse (is_tuple(Fault) andalso element(1, Fault) =:= cut) of
                    true -> From ! {Ref, ok};
                    %% Who answers when it has heard of it.
                    false -> Controller ! {fault, Fault, Ref, From}
                end,
            inject(Fault, State);
        false ->
            From ! {Ref, {error, bad_fault}},
            State
    end.

inject(heal, State) ->
    go_on(State#state{holes = []});
inject(Fault, #state{n = N} = State) when Fault =:= cut; element(1, Fault) =:= cut ->
    %% One that is not read, as a black hole is not, would not say that it is closed.
    lists:foreach(fun(Lane) -> self() ! {lane_failed, Lane, cut} end, atoll_dist_fault:lanes(Fault, N)),
    on_lanes(fun(Socket) -> gen_tcp:shutdown(atoll_dist_transport:inet(Socket), read_write) end, Fault, State);
inject(Fault, #state{n = N, holes = Holes, stopped = Stopped} = State0) when
    Fault =:= black_hole; element(1, Fault) =:= black_hole
->
    State = on_lanes(fun(Socket) -> atoll_dist_transport:active(Socket, false) end, Fault, State0),
    Lanes = atoll_dist_fault:lanes(Fault, N),
    State#state{holes = lists:usort(Lanes ++ Holes), stopped = lists:usort(Lanes ++ Stopped)};
inject(_, State) ->
    State.

on_lanes(Do, Fault, #state{n = N, sockets = Sockets} = State) ->
    _ = [Do(element(Lane + 1, Sockets)) || Lane <- atoll_dist_fault:lanes(Fault, N)],
    State.

%% One that has ended counts as held: it is not silent.
sample(Socket, IsHeld) ->
    case atoll_dist_socket:counters(Socket) of
        {ok, Read, Written, Waiting} -> {Read, Written, Waiting, IsHeld};
        {error, _} -> {0, 0, 0, true}
    end.

-spec end_of(term(), iodata(), atoll_dist_lanes:lane(), #state{}) -> no_return().
end_of(Reason, What, Lane, #state{peer = Peer}) ->
    Why = ["Ended the connection with ", Peer, ": its lane ", integer_to_list(Lane), " ", What, "."],
    ok = atoll_dist_keeper:say_once(carrier_lane_lost, Peer, Why),
    atoll_dist_process:over(Reason).
