%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process that takes packets from the VM and sends each on its lane: the
%% distribution controller of a connection with lanes.
%%
%% It takes as long as {@link atoll_dist_sorter} wants more and the VM has more, and then
%% writes the batches. It never waits for a lane: a batch that a socket does not take at
%% once goes to that lane's writer, and so do those after it until the writer has written
%% all of them. What the VM's senders have beyond the budget stays with the VM, which
%% suspends them.
-module(atoll_dist_controller).

-export([start/5, up/2]).
-export([init/6, wait/1, look/1]).

%% The key in the process dictionary under which the peer's name is, for what may have to
%% be said in the end.
-define(PEER, atoll_dist_peer).

%% How much is taken before it is written. A fragment has 64 KB.
-define(ROUND, 262144).

%% A larger batch is given to the writer, since writing takes time.
-define(AT_ONCE, 65536).

%% Deaths of named processes that come one by one share a fence if they are no further
%% apart; the first one goes out at once.
-define(LATE_MS, 2).

-record(state, {
    handle :: erlang:dist_handle(),
    sorter :: atoll_dist_sorter:sorter(),
    input :: pid(),
    %% Of each lane the socket, the writer, and how many batches the writer has.
    sockets :: tuple(),
    writers :: tuple(),
    busy :: tuple(),
    %% Lanes whose writers make batches smaller.
    smaller :: [atoll_dist_lanes:lane()],
    %% When packets that are late last went out, and whether a timer for the next runs.
    late_at :: integer(),
    late_timer = false :: boolean(),
    %% Up to which size batches are written at once.
    at_once = ?AT_ONCE :: -1 | pos_integer(),
    %% And what a pid of this node looks like, which tells what can be lost.
    faults = none :: none | {atoll_dist_fault:faults(), atoll_dist_packet:own()}
}).

%% @doc Starts the controller of a connection with that peer, linked to the calling process.
-spec start(Peer :: binary(), [atoll_dist_transport:socket(), ...], Input :: pid(), [atoll_dist_named:group(), ...], atoll_dist_config:config()) -> pid().
start(Peer, Sockets, Input, Groups, Config) ->
    case atoll_dist_process:start(?MODULE, init, [self(), Peer, Sockets, Input, Groups, Config], [link]) of
        Pid when is_pid(Pid) -> Pid
    end.

%% @doc The connection is up: from now on packets are taken and given.
-spec up(pid(), erlang:dist_handle()) -> ok.
up(Controller, Handle) ->
    Controller ! {self(), up, Handle},
    ok.

%% @private
-spec init(pid(), binary(), [atoll_dist_transport:socket(), ...], pid(), [atoll_dist_named:group(), ...], atoll_dist_config:config()) -> no_return().
init(Connection, Peer, Sockets, Input, Groups, #{budget := Budget, faults := Faults}) ->
    _ = put(?PEER, Peer),
    N = length(Sockets),
    Lanes = lists:zip(lists:seq(0, N - 1), Sockets),
    Writers = [atoll_dist_writer:start(Lane, Socket, Input, Faults) || {Lane, Socket} <- Lanes],
    Smaller = [
        {Lane, Level}
     || #{first := First, lanes := Count, compression := Level} <- Groups, Level > 0, Lane <- lists:seq(First, First + Count - 1)
    ],
    lists:foreach(fun({Lane, Level}) -> ok = atoll_dist_writer:smaller(lists:nth(Lane + 1, Writers), Level) end, Smaller),
    receive
        {Connection, up, Handle} ->
            false = erlang:dist_ctrl_set_opt(Handle, get_size, true),
            ok = erlang:dist_ctrl_input_handler(Handle, Input),
            ok = atoll_dist_input:up(Input, Handle, self()),
            State = #state{
                handle = Handle,
                sorter = atoll_dist_sorter:new(node(), N, #{
                    budget => Budget, round => ?ROUND, groups => Groups, member => fun atoll_dist_member:channel/1,
                    changes => atoll_dist_member:changes()
                }),
                input = Input,
                sockets = list_to_tuple(Sockets),
                writers = list_to_tuple(Writers),
                busy = erlang:make_tuple(N, 0),
                smaller = [Lane || {Lane, _} <- Smaller],
                late_at = now_ms() - ?LATE_MS
            },
            case Faults of
                false -> pull(State);
                %% Faults are the writers'.
                true -> pull(State#state{at_once = -1, faults = {atoll_dist_fault:new(), atoll_dist_packet:own(node())}})
            end
    end.

pull(#state{handle = Handle, sorter = Sorter, faults = none} = State) ->
    pulled(pull(Handle, Sorter), State);
pull(#state{handle = Handle, sorter = Sorter, faults = {Faults0, Own}} = State) ->
    {Why, Pulled, Faults} = pull(Handle, Sorter, Own, Faults0),
    pulled({Why, Pulled}, State#state{faults = {Faults, Own}}).

pulled({none, Sorter}, #state{handle = Handle} = State) ->
    ok = erlang:dist_ctrl_get_data_notification(Handle),
    case atoll_dist_sorter:has_late(Sorter) of
        false -> ?MODULE:wait(batches(State#state{sorter = Sorter}));
        true -> ?MODULE:wait(late(now_ms(), State#state{sorter = Sorter}))
    end;
pulled({take, Sorter}, State) ->
    ?MODULE:look(batches(State#state{sorter = Sorter}));
pulled({wait, Sorter}, State) ->
    ?MODULE:wait(State#state{sorter = Sorter}).

pull(Handle, Sorter0) ->
    case atoll_dist_sorter:wants(Sorter0) of
        more ->
            case erlang:dist_ctrl_get_data(Handle) of
                {Size, Packet} ->
                    pull(Handle, push(Size, Packet, Sorter0));
                none ->
                    {none, Sorter0}
            end;
        Other ->
            {Other, Sorter0}
    end.

push(Size, Packet, Sorter0) ->
    Size =< atoll_dist_frame:max_packet() orelse cannot_send({too_large, Size}),
    case atoll_dist_sorter:push(Size, Packet, Sorter0) of
        {ok, Sorter} -> Sorter;
        {error, Reason} -> cannot_send(Reason)
    end.

%% The VM made something that this module does not know, or more than a frame can have,
%% which it does for a peer that takes no fragments.
-spec cannot_send(atoll_dist_sorter:reason() | {too_large, pos_integer()}) -> no_return().
cannot_send(Reason) ->
    Peer = get(?PEER),
    Why = io_lib:format("Ended the connection with ~ts: what the VM gives for it cannot be sent over lanes (~0tp).", [Peer, Reason]),
    ok = atoll_dist_keeper:say_once(carrier_cannot_send, Peer, Why),
    atoll_dist_process:over(Reason).

%% The same where packets may be lost.
pull(Handle, Sorter0, Own, Faults0) ->
    case atoll_dist_sorter:wants(Sorter0) of
        more ->
            case erlang:dist_ctrl_get_data(Handle) of
                {Size, Packet} ->
                    case atoll_dist_fault:is_lost(Packet, Own, rand:uniform(), Faults0) of
                        {true, Faults} ->
                            pull(Handle, Sorter0, Own, Faults);
                        {false, Faults} ->
                            pull(Handle, push(Size, Packet, Sorter0), Own, Faults)
                    end;
                none ->
                    {none, Sorter0, Faults0}
            end;
        Other ->
            {Other, Sorter0, Faults0}
    end.

fault(Fault, Ref, From, #state{faults = {Faults, Own}, writers = Writers} = State) ->
    From ! {Ref, ok},
    case Fault of
        heal -> lists:foreach(fun atoll_dist_writer:heal/1, tuple_to_list(Writers));
        {drop, _} -> ok;
        {delay, _} -> ok;
        _ -> black_hole(Fault, Writers)
    end,
    State#state{faults = {atoll_dist_fault:set(Fault, Faults), Own}}.

black_hole(Fault, Writers) ->
    lists:foreach(
        fun(Lane) -> atoll_dist_writer:black_hole(element(Lane + 1, Writers)) end,
        atoll_dist_fault:lanes(Fault, tuple_size(Writers))
    ).

now_ms() -> erlang:monotonic_time(millisecond).

late(Now, #state{late_at = At} = State) when Now - At >= ?LATE_MS ->
    batches(State#state{late_at = Now});
late(_Now, #state{late_timer = HasTimer, sorter = Sorter0} = State) ->
    _ = [erlang:send_after(?LATE_MS, self(), late) || not HasTimer],
    {Batches, Sorter} = atoll_dist_sorter:take_without_late(Sorter0),
    lists:foldl(fun write/2, State#state{sorter = Sorter, late_timer = true}, Batches).

%% There is more to take, or it waits for a writer: what does not matter to `written'.
%% @private
-spec wait(#state{}) -> no_return().
wait(State) ->
    receive
        dist_data -> pull(State);
        {written, Lane, Bytes, Count} -> written(Lane, Bytes, Count, State);
        {say, Lane, Frame} -> ?MODULE:wait(say(Lane, Frame, State));
        late -> ?MODULE:wait(batches(State#state{late_at = now_ms(), late_timer = false}));
        {figures, Held, Ref, From} -> ?MODULE:wait(figures(Held, Ref, From, State));
        {fault, Fault, Ref, From} -> ?MODULE:wait(fault(Fault, Ref, From, State))
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, wait, [State])
    end.

%% Who asks something is answered here too, since there may always be more to take.
%% @private
-spec look(#state{}) -> no_return().
look(State) ->
    receive
        {written, Lane, Bytes, Count} -> look(done(Lane, Bytes, Count, State));
        {say, Lane, Frame} -> look(say(Lane, Frame, State));
        {figures, Held, Ref, From} -> look(figures(Held, Ref, From, State));
        {fault, Fault, Ref, From} -> look(fault(Fault, Ref, From, State))
    after 0 -> pull(State)
    end.

say(Lane, Frame, #state{writers = Writers} = State) ->
    ok = atoll_dist_writer:say(element(Lane + 1, Writers), Frame),
    State.

figures(Held, Ref, From, #state{sorter = Sorter} = State) ->
    From ! {Ref, (atoll_dist_sorter:figures(Sorter))#{held => Held}},
    State.

written(Lane, Bytes, Count, #state{sorter = Sorter} = State0) ->
    State = done(Lane, Bytes, Count, State0),
    %% If it did not wait for this, the VM tells when it has something.
    case atoll_dist_sorter:wants(Sorter) of
        wait -> pull(State);
        _ -> ?MODULE:wait(ready(State))
    end.

done(Lane, Bytes, Count, #state{sorter = Sorter, busy = Busy} = State) ->
    State#state{
        sorter = atoll_dist_sorter:written(Lane, Bytes, Count, Sorter),
        busy = setelement(Lane + 1, Busy, element(Lane + 1, Busy) - 1)
    }.

batches(#state{sorter = Sorter0} = State) ->
    {Batches, Sorter} = atoll_dist_sorter:take(Sorter0),
    ready(lists:foldl(fun write/2, State#state{sorter = Sorter}, Batches)).

%% What waits in a monotonic channel goes out when its lane is free.
ready(#state{sorter = Sorter} = State) ->
    case atoll_dist_sorter:is_ready(Sorter) of
        true -> batches(State);
        false -> State
    end.

write({Lane, Items, Bytes, Count}, #state{busy = Busy, sockets = Sockets, sorter = Sorter, input = Input, at_once = AtOnce} = State) ->
    %% Small pieces in one binary each, which makes it short for a writer and the socket.
    Data = erlang:iolist_to_iovec(Items),
    Socket = element(Lane + 1, Sockets),
    IsIdle = element(Lane + 1, Busy) =:= 0 andalso Bytes =< AtOnce andalso not is_smaller(Lane, Bytes, State),
    case IsIdle andalso atoll_dist_transport:offer(Socket, Data) of
        ok ->
            State#state{sorter = atoll_dist_sorter:written(Lane, Bytes, Count, Sorter)};
        false ->
            give(Lane, Data, Bytes, Count, State);
        {error, busy} ->
            give(Lane, Data, Bytes, Count, State);
        {error, Reason} ->
            Input ! {lane_failed, Lane, Reason},
            State#state{sorter = atoll_dist_sorter:written(Lane, Bytes, Count, Sorter)}
    end.

is_smaller(_Lane, _Bytes, #state{smaller = []}) -> false;
is_smaller(Lane, Bytes, #state{smaller = Lanes}) -> atoll_dist_deflate:pays(Bytes) andalso lists:member(Lane, Lanes).

give(Lane, Data, Bytes, Count, #state{busy = Busy, writers = Writers, faults = Faults} = State) ->
    ok = atoll_dist_writer:write(element(Lane + 1, Writers), Data, Bytes, Count, delay(Faults)),
    State#state{busy = setelement(Lane + 1, Busy, element(Lane + 1, Busy) + 1)}.

delay(none) -> 0;
delay({Faults, _}) -> atoll_dist_fault:delay(Faults).
