%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc One end of a circuit: packets go in at one end and come out at the other, whatever
%% becomes of the paths between.
%%
%% A circuit goes over one path at a time: over a neighbour's connection and other nodes'
%% behind it, or over a connection of its own, which is a path of two nodes. The end that
%% opened the circuit chooses the path, and asks for another one when it is lost: when the
%% first node goes, when one further on says that it cannot go on, or when nothing comes
%% though it asked for a sign. The other end waits. It may also be given a better path
%% while all is well; until both have agreed on that they use the one they have.
%%
%% Each path has a number, the epoch. The opener sends `open', the other end `opened' with
%% how much it has got, the opener `confirm' with how much it has got, and each sends again
%% what the other has not got. What comes of another epoch is left alone.
%%
%% Promised:
%% <ul>
%% <li>Every packet comes out once and in order, or the circuit ends. It ends once at each
%%   end, with a reason. One end may have ended before the other knows.</li>
%% <li>What an end keeps is at most the window of what it sent, what waits to be sent
%%   ({@link wants/1} says when that is enough), and one packet that is being joined.
%%   What it has handed to be sent at one time is bounded too.</li>
%% <li>With a seal ({@link atoll_dist_seal}) what is altered on the way ends the circuit.</li>
%% </ul>
%% How long it takes: a path of which a node says that it is lost, or whose first node has
%% gone, is replaced at once if there is another. A silent one is after `probe_ms' and
%% `silent_ms' (more where the round trip is long) while the opener has something under way, and `silent_ms' after as long
%% again as the circuit had been unused otherwise: `quiet_ms' at least, `idle_ms' at most
%% ({@link atoll_dist_circuit_pulse}).
%% The opener gives up `resume_ms' after the loss if it knows that there is no way, and
%% `silence_ms' after it if there seems to be a way but nobody answers, or nobody says whether
%% there is one, as on a node that is too busy for it. The other end
%% waits for it twice as long, and as long as both together where there seems to be a way to it.
%% Where the last node of the path says that its connection with the other end has gone, as it has
%% when that one was killed, either end gives up at once if somebody says that there is no other
%% way, or all others are refused because their last nodes have no such connection either. An end
%% that was opened cannot open, so it tries these with an `open' that is refused where the other
%% end is no more, and not answered by that one. A circuit that never was up is tried
%% for as long, from its beginning on: what this end goes by may be behind, and lead over nodes that have gone. It is
%% given up at once where nobody knows a way, and where all ways were refused for a
%% reason that stays: no connection of their last node with the other end, above all.
%%
%% Not promised: that the other end got what was sent before the circuit ended.
%%
%% It is long because a path may be lost, replaced or given up in each of its states, and what was
%% sent and not acknowledged has to survive each of these changes.
-module(atoll_dist_circuit).

-behaviour(atoll_protocol).

-export([init/2, handle/3, wants/1, figures/1]).

-export_type([config/0, leg/0, path/0, event/0, act/0, avoid/0, state/0]).

-type name() :: atoll_dist_circuit_frame:name().

%% A way to the path's first node that is not here. What it is, only who runs this knows.
-type leg() :: term().

%% All nodes, from the end that opens.
-type path() :: [name(), ...].

%% The paths that failed since there was one, the latest first, and what became of each.
-type avoid() :: [{path(), atoll_dist_circuit_reason:failure()}].

-type config() :: #{
    id := atoll_dist_circuit_frame:id(),
    %% This node and the other end.
    here := name(),
    there := name(),
    %% It opens, or it was opened: what came, and over what.
    role := opener | {acceptor, leg(), Open :: binary()},
    %% The window that the path is to have: `window', and where its round trip is long and it
    %% carries a window in that time, more by and by: as much as goes by in it at a gigabyte a
    %% second, `max_window' at most.
    window => atoll_dist_circuit_frame:window(),
    max_window => atoll_dist_circuit_frame:window(),
    %% How many bytes may be handed to be sent over one leg, and wait before that.
    handed => pos_integer(),
    pending => pos_integer(),
    max_packet => pos_integer(),
    consumption => at_once | told,
    %% `off' seals if the other end requires it. An opener hears that by a refusal, and opens
    %% once more.
    seal => off | required,
    %% Both are wanted for a seal; without them this end refuses it.
    keys => atoll_dist_seal:keys(),
    cookie => binary(),
    ack_ms => pos_integer(),
    probe_ms => pos_integer(),
    silent_ms => pos_integer(),
    %% For how long nothing may come, where something is missing that may have been overtaken.
    gap_ms => pos_integer(),
    quiet_ms => pos_integer(),
    idle_ms => pos_integer(),
    %% How long an answer to `open' may take at first, four times as long after two that did not
    %% come; and what is between two attempts that fail.
    open_ms => pos_integer(),
    retry_ms => pos_integer(),
    resume_ms => pos_integer(),
    silence_ms => pos_integer()
}.

-type event() ::
    {cast,
        {packets, [atoll_dist_circuit_out:packet()]}
        %% The user has consumed so many of the packets that it got.
        | {consumed, pos_integer()}
        | {frame, leg(), binary()}
        %% So many bytes of what was handed to the leg are gone.
        | {sent, leg(), pos_integer()}
        %% The leg's node, or connection, has gone; nothing of an earlier one comes later.
        | {down, leg()}
        %% The answer to `route': a path, or that there is none, or that nobody knows. Or a path
        %% that is better than the present one.
        | {route, leg(), path()}
        | no_route
        | no_answer
        | {better, leg(), path()}
        %% The user wants something to be sent.
        | tick
        | {close, Why :: term()}}
    | {timeout, timer()}.

-type timer() :: ack | look | gap | attempt | deadline.

-type act() ::
    {act,
        {send, leg(), binary()}
        %% A path is wanted; answered by `route', `no_route' or `no_answer'.
        | {route, avoid()}
        | {deliver, [iodata(), ...]}}
    | {timer, timer(), non_neg_integer()}
    | {cancel, timer()}
    | {notify,
        {up, #{path := path(), window := atoll_dist_circuit_frame:window(), sealed := boolean()}}
        | {lost, atoll_dist_circuit_reason:failure()}
        %% Another path is in use, after a loss or instead of one that was well.
        | {moved, path()}
        %% The same path is in use, with another window.
        | {widened, path()}
        | {not_moved, atoll_dist_circuit_reason:failure()}
        %% Nothing comes after this.
        | {ended, atoll_dist_circuit_reason:reason()}}.

-record(path, {
    key :: atoll_dist_circuit_frame:key(),
    leg :: leg(),
    nodes :: path(),
    window :: atoll_dist_circuit_frame:window(),
    %% What all its nodes can.
    can = 0 :: atoll_dist_circuit_frame:abilities(),
    %% What of it was asked for, the shortest round trip that was measured, and how long it took
    %% till the other end had all of a window, the last time that this was full.
    asked :: atoll_dist_circuit_frame:window(),
    rtt_ms = unknown :: unknown | non_neg_integer(),
    full_ms = unknown :: unknown | non_neg_integer(),
    %% What the other end was known to have got when the path was opened.
    least = 0 :: atoll_dist_circuit_frame:position(),
    %% When it was begun to be agreed.
    at = none :: none | atoll_protocol:now_ms()
}).

-record(state, {
    config :: config(),
    role :: opener | acceptor,
    %% The latest that the opener tried, or that the other end has in use or had.
    epoch = 0 :: non_neg_integer(),
    current = none :: none | #path{},
    %% What shall take its place: a path is being asked for, or opened, or it is tried
    %% again a little later.
    %% The end that was opened only asks for one, to learn whether there is any: it sees by a probe.
    attempt = none :: none | routing | later | #path{} | {probe, #path{}},
    %% Whether there was a path before.
    was_up = false :: boolean(),
    out = atoll_dist_circuit_out:new() :: atoll_dist_circuit_out:out(),
    in :: atoll_dist_circuit_in:in(),
    handed = #{} :: #{leg() => non_neg_integer()},
    %% Since when there is no path, and whether somebody said so last or it is silent.
    lost_at :: atoll_protocol:now_ms(),
    is_silent = true :: boolean(),
    failed = [] :: avoid(),
    %% How many attempts have had no answer since then.
    unanswered = 0 :: non_neg_integer(),
    %% An `ack' will be sent a while later; or as soon as the leg takes it.
    ack_timer = false :: boolean(),
    owed = no :: no | ack | asks,
    %% Data may overtake others on the path in use; the other end was told that it is narrow.
    order = kept :: atoll_dist_circuit_frame:order(),
    is_told_narrow = false :: boolean(),
    %% Where the window ended, and when it was full.
    full = none :: none | {atoll_dist_circuit_frame:position(), atoll_protocol:now_ms()},
    %% For which missing payload a timer runs, and when data came last while one was missing.
    gap = none :: none | atoll_dist_circuit_frame:position(),
    came_at = 0 :: atoll_protocol:now_ms(),
    %% Of the path in use.
    pulse :: atoll_dist_circuit_pulse:pulse(),
    seal = none :: none | atoll_dist_seal:seal(),
    %% Whether the opener says, and wants to hear, what makes one.
    seals = false :: boolean(),
    %% What every `opened' or the first `confirm' has of the seal.
    answer = <<>> :: binary(),
    has_ended = false :: boolean(),
    %% Effects of this event, the latest first.
    acts = [] :: [act()],
    moves = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    resent = 0 :: non_neg_integer(),
    ignored = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

-define(DEFAULTS, #{
    window => 1048576,
    max_window => 33554432,
    handed => 262144,
    pending => 262144,
    max_packet => 67108864,
    consumption => at_once,
    seal => off,
    ack_ms => 25,
    probe_ms => 150,
    silent_ms => 400,
    gap_ms => 2000,
    quiet_ms => 1000,
    %% A quarter of what net_ticktime is by default: as often as the VM ticks.
    idle_ms => 15000,
    open_ms => 1000,
    retry_ms => 100,
    resume_ms => 2000,
    silence_ms => 15000
}).

-define(MAX_FAILED, 8).

%% Of a probe: no path gets there.
-define(PROBE, 16#FFFFFFFF).

%% Bytes in a millisecond for which a window has room.
-define(RATE, 1048576).
%% How many times as wide a path is opened anew.
-define(WIDER, 4).

%% @private
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [act()]}.
init(Given, Now) ->
    #{role := Role, consumption := Consumption, max_packet := Max, seal := Seal} = Config = maps:merge(?DEFAULTS, Given),
    State = #state{
        config = Config,
        role = case Role of opener -> opener; _ -> acceptor end,
        in = atoll_dist_circuit_in:new(Consumption, Max),
        lost_at = Now,
        seals = Seal =:= required,
        pulse = atoll_dist_circuit_pulse:new(Now, 0)
    },
    case Role of
        opener -> finish(Now, ask_route(State));
        {acceptor, Leg, Frame} -> finish(Now, accept(Leg, atoll_dist_circuit_frame:parse(Frame), State))
    end.

%% @private
-spec handle(event(), atoll_protocol:now_ms(), state()) -> {state(), [act()]}.
handle(_Event, _Now, #state{has_ended = true} = State) ->
    {State, []};
handle(Event, Now, State) ->
    finish(Now, event(Event, Now, State)).

%% @doc Whether the user should put in more packets.
-spec wants(state()) -> more | wait.
wants(#state{out = Out, config = #{pending := Max}}) ->
    case atoll_dist_circuit_out:pending(Out) < Max of
        true -> more;
        false -> wait
    end.

finish(Now, State0) ->
    #state{acts = Acts} = State = begun(Now, flushed(Now, State0)),
    {State#state{acts = []}, lists:reverse(Acts)}.

flushed(_Now, #state{has_ended = true} = State) -> State;
flushed(_Now, #state{current = none} = State) -> State;
flushed(Now, State) -> look_due(Now, filled(Now, flush(State))).

filled(Now, #state{full = none, out = Out} = State) ->
    case atoll_dist_circuit_out:is_stopped(Out) of
        true -> State#state{full = {atoll_dist_circuit_out:end_of(Out), Now}};
        false -> State
    end;
filled(_Now, State) ->
    State.

begun(Now, #state{attempt = #path{at = none} = Attempt} = State) -> State#state{attempt = Attempt#path{at = Now}};
begun(_Now, State) -> State.

%% Events

event({cast, {packets, Packets}}, _Now, #state{out = Out, config = #{max_packet := Max}} = State) ->
    case [Size || {Size, _} <- Packets, Size > Max] of
        [] -> State#state{out = atoll_dist_circuit_out:push(Packets, Out)};
        [Size | _] -> end_of(too_large, {packet_too_large, Size}, State)
    end;
event({cast, {frame, Leg, Frame}}, Now, State) ->
    case atoll_dist_circuit_frame:parse(Frame) of
        {ok, Parsed} -> frame(Parsed, Leg, Now, State);
        {error, _} -> ignored(State)
    end;
event({cast, {sent, Leg, Bytes}}, Now, #state{handed = Handed} = State0) ->
    State = gone(Leg, Bytes, Now, State0),
    case Handed of
        #{Leg := Before} when Before > Bytes -> State#state{handed = Handed#{Leg := Before - Bytes}};
        #{} -> State#state{handed = maps:remove(Leg, Handed)}
    end;
event({cast, {consumed, N}}, _Now, #state{in = In} = State) ->
    acked(State#state{in = atoll_dist_circuit_in:consumed(N, In)});
event({cast, {down, Leg}}, Now, #state{handed = Handed} = State) ->
    down(Leg, Now, State#state{handed = maps:remove(Leg, Handed)});
event({cast, {route, Leg, Nodes}}, _Now, #state{role = acceptor, attempt = routing} = State) ->
    probe(Leg, Nodes, State);
event({cast, {route, Leg, Nodes}}, _Now, #state{attempt = Attempt} = State) when Attempt =:= routing; Attempt =:= later ->
    %% Or just before it is asked for again: the answer was late.
    open(Leg, Nodes, State);
event({cast, {route, _Leg, _Nodes}}, _Now, State) ->
    State;
event({cast, None}, Now, #state{attempt = routing, failed = Failed, is_silent = IsSilent} = State) when None =:= no_route; None =:= no_answer ->
    %% Where none was to be avoided there is nobody who could answer yet.
    no_way(None, Now, State#state{attempt = none, is_silent = IsSilent andalso Failed =/= []});
event({cast, None}, _Now, State) when None =:= no_route; None =:= no_answer ->
    State;
event({cast, {better, Leg, Nodes}}, _Now, #state{role = opener, current = #path{}, attempt = none} = State) ->
    open(Leg, Nodes, State);
event({cast, {better, _Leg, _Nodes}}, _Now, State) ->
    State;
event({cast, tick}, _Now, State) ->
    owe(ack, State);
event({cast, {close, Why}}, _Now, State) ->
    end_of({closed, about(Why)}, {closed_here, Why}, State);
event({timeout, ack}, _Now, State) ->
    owe(ack, State#state{ack_timer = false});
event({timeout, look}, Now, #state{current = #path{}} = State) ->
    look(Now, State);
event({timeout, gap}, Now, #state{current = #path{} = Current, in = In, gap = Gap, came_at = At, config = Config} = State) ->
    #{there := There, gap_ms := Ms} = Config,
    case atoll_dist_circuit_in:missing(In) of
        none -> State#state{gap = none};
        Gap when Now - At >= Ms -> lost({gap, There}, false, Now, leave(Current, gap, State#state{gap = none}));
        Missing -> act({timer, gap, max(1, Ms - (Now - At))}, State#state{gap = Missing})
    end;
event({timeout, attempt}, Now, #state{attempt = #path{} = Attempt, config = #{there := There}} = State) ->
    failed(Attempt, {silent, There}, Now, leave(Attempt, moved, State));
event({timeout, attempt}, Now, #state{attempt = routing, failed = Failed, config = #{there := There}} = State) ->
    %% Nobody has said that there is no way.
    Unanswered = State#state{attempt = none, is_silent = true},
    case is_over(Now, Unanswered) of
        true -> end_of(silent, case Failed of [{_, Why} | _] -> Why; [] -> {silent, There} end, Unanswered);
        false -> later(Unanswered)
    end;
event({timeout, attempt}, _Now, #state{attempt = later} = State) ->
    ask_route(State);
event({timeout, deadline}, Now, #state{current = none, was_up = true, is_silent = false, attempt = Attempt} = State) ->
    %% It may be too busy to come, on a node that has what this one has to do.
    waits(Attempt =:= none, Now, State#state{is_silent = true});
event({timeout, deadline}, _Now, #state{current = none, failed = Failed, config = #{there := There}} = State) ->
    end_of(silent, case Failed of [{_, Why} | _] -> Why; [] -> {silent, There} end, State).

about(Why) ->
    %% A code point is four bytes at most; what looks like one letter may be any number of them.
    unicode:characters_to_binary(lists:sublist(lists:flatten(io_lib:format("~0tP", [Why, 16])), 60)).

frame({Type, Key, Body}, Leg, Now, #state{current = #path{key = Key, leg = Leg}} = State) ->
    current(Type, Body, Now, heard(Now, stands(State)));
frame({data, Key, At, Payload}, Leg, Now, #state{current = #path{key = Key, leg = Leg}} = State) ->
    data(At, Payload, Now, used(Now, stands(State)));
frame({Type, Key, Body}, Leg, Now, #state{attempt = #path{key = Key, leg = Leg}} = State) ->
    attempt(Type, Body, Now, State);
frame({Type, Key, Body}, Leg, _Now, #state{attempt = {probe, #path{key = Key, leg = Leg} = Path}} = State) ->
    probed(Type, Body, Path, State);
frame({open, _, _} = Open, Leg, _Now, #state{role = acceptor} = State) ->
    reopened(Leg, Open, State);
frame(_, _Leg, _Now, State) ->
    ignored(State).

%% The other end has confirmed the path.
stands(#state{current = #path{can = Can}} = State) -> State#state{order = atoll_dist_circuit_frame:order(Can)}.

heard(Now, #state{pulse = Pulse} = State) ->
    State#state{pulse = atoll_dist_circuit_pulse:heard(Now, Pulse)}.

used(Now, #state{pulse = Pulse} = State) ->
    State#state{pulse = atoll_dist_circuit_pulse:used(Now, Pulse)}.

ignored(#state{ignored = Ignored} = State) -> State#state{ignored = Ignored + 1}.

%% On the path in use

current(ack, #{received := Received, consumed := Consumed, asks := Asks, narrow := Narrow}, Now, #state{out = Out0} = State0) ->
    case atoll_dist_circuit_out:ack(Received, Consumed, Out0) of
        {ok, Out} ->
            State = carried(Received, Now, State0),
            Acked = case Asks of true -> owe(ack, State#state{out = Out}); false -> State#state{out = Out} end,
            case Narrow of true -> widen(Acked); false -> Acked end;
        error ->
            end_of(bad_frame, bad_ack, State0)
    end;
current(path_lost, {_, Why, _} = Said, Now, State) ->
    lost({path_lost, Said}, Why =:= silent, Now, State);
current(close, Said, _Now, State) ->
    ended({closed, Said}, State);
current(_Type, _Body, _Now, State) ->
    ignored(State).

%% A window that was full has come over there.
carried(Received, Now, #state{full = {End, At}, current = Current, pulse = Pulse} = State) when Received >= End ->
    Ms = Now - At,
    State#state{full = none, current = Current#path{full_ms = Ms}, pulse = atoll_dist_circuit_pulse:measured(Ms, Pulse)};
carried(_Received, _Now, State) ->
    State.

data(At, Payload, Now, #state{in = In0} = State) ->
    case atoll_dist_circuit_in:arrive(At, Payload, In0) of
        {ok, [], In} -> acked(gap(Now, State#state{in = In}));
        {ok, Packets, In} -> acked(gap(Now, act({act, {deliver, Packets}}, State#state{in = In})));
        known -> ignored(State);
        {error, Why} -> end_of(code(Why), Why, State)
    end.

%% What is missing may have been overtaken, on a lane that is slow: as long as other data come
%% it is waited for, and the other end is to hear that they do.
gap(Now, #state{in = In, gap = Gap, config = #{gap_ms := Ms}} = State) ->
    case {atoll_dist_circuit_in:missing(In), Gap} of
        {none, _} -> State;
        {At, none} -> ack_later(act({timer, gap, Ms}, State#state{gap = At, came_at = Now}));
        {_, _} -> ack_later(State#state{came_at = Now})
    end.

code(window_exceeded) -> window_exceeded;
code(bad_packet) -> bad_frame;
code({packet_too_large, _}) -> too_large;
code({altered, _}) -> altered.

acked(#state{in = In} = State) ->
    case atoll_dist_circuit_in:wants_ack(In) of
        now -> owe(ack, State);
        later -> ack_later(State);
        no -> State
    end.

ack_later(#state{ack_timer = true} = State) -> State;
ack_later(#state{config = #{ack_ms := Ms}} = State) -> act({timer, ack, Ms}, State#state{ack_timer = true}).

owe(asks, State) -> State#state{owed = asks};
owe(ack, #state{owed = no} = State) -> State#state{owed = ack};
owe(ack, State) -> State.

%% Sends what the leg takes: an `ack' that is owed, then data. One that asks for a sign of
%% life waits for nothing: there is one in `silent_ms' at most, and it is counted from then.
flush(#state{current = #path{leg = Leg, key = Key}, handed = Handed, owed = Owed, config = #{handed := Max}} = State) ->
    case Handed of
        #{Leg := Bytes} when Bytes >= Max, Owed =/= asks -> State;
        #{} -> flush(Leg, Key, State)
    end.

flush(_Leg, Key, #state{owed = Owed, in = In, current = Current} = State) when Owed =/= no ->
    {Received, Consumed} = atoll_dist_circuit_in:positions(In),
    Ack = #{received => Received, consumed => Consumed, asks => Owed =:= asks, narrow => is_narrow(State)},
    Told = State#state{owed = no, in = atoll_dist_circuit_in:told(In)},
    flush(send(Current, atoll_dist_circuit_frame:make({ack, Key, Ack}), Told));
flush(_Leg, Key, #state{out = Out0, order = Order, current = Current} = State) ->
    case atoll_dist_circuit_out:next(Out0) of
        {At, Payload, Out} -> flush(data_out(At, Current, atoll_dist_circuit_frame:data(Order, Key, At, Payload), State#state{out = Out}));
        none -> narrow(is_narrow(State), State)
    end.

%% A path over which more could be under way is opened anew, with a wider window. What is
%% on its way over the present one is sent again. Where a full window takes longer than the
%% round trip, and than an `ack' may wait, it is the path that is slow: with a wider window
%% more would wait in it, and everything else behind that.
narrow(true, #state{role = opener} = State) -> widen(State);
narrow(true, #state{is_told_narrow = false} = State) -> flush(owe(ack, State#state{is_told_narrow = true}));
narrow(_, State) -> State.

is_narrow(#state{out = Out, current = #path{window = Window, rtt_ms = RttMs, full_ms = FullMs} = Path, config = #{ack_ms := AckMs}} = State) ->
    is_integer(FullMs) andalso FullMs =< 2 * (RttMs + AckMs) andalso atoll_dist_circuit_out:is_stopped(Out) andalso
        asks(Path, State) >= 2 * Window.

widen(#state{role = opener, attempt = none, current = #path{leg = Leg, nodes = Nodes, asked = Asked} = Path} = State) ->
    case asks(Path, State) of
        Window when Window >= 2 * Asked -> open(Leg, Nodes, State);
        _ -> State
    end;
widen(State) ->
    State.

asks(#path{rtt_ms = RttMs, window = Window}, #state{config = #{window := Least, max_window := Most}}) ->
    lists:max([Least, Window, lists:min([Most, RttMs * ?RATE, ?WIDER * Window])]).

data_out(At, Path, Frame, #state{sent = Sent, resent = Resent} = State) when At < Sent ->
    send(Path, Frame, State#state{resent = Resent + byte_size(Frame)});
data_out(At, Path, Frame, State) ->
    send(Path, Frame, State#state{sent = At + 1}).

send(#path{leg = Leg}, Frame, #state{handed = Handed} = State) ->
    Bytes = maps:get(Leg, Handed, 0) + byte_size(Frame),
    act({act, {send, Leg, Frame}}, State#state{handed = Handed#{Leg => Bytes}}).

act(Act, #state{acts = Acts} = State) -> State#state{acts = [Act | Acts]}.

%% Whether it is alive

look_due(Now, #state{out = Out, pulse = Pulse0, config = Config} = State) ->
    case atoll_dist_circuit_pulse:due(atoll_dist_circuit_out:under_way(Out), Config, Now, Pulse0) of
        {none, Pulse} -> State#state{pulse = Pulse};
        {Ms, Pulse} -> act({timer, look, Ms}, State#state{pulse = Pulse})
    end.

gone(Leg, Bytes, Now, #state{current = #path{leg = Leg}, pulse = Pulse} = State) ->
    State#state{pulse = atoll_dist_circuit_pulse:gone(Bytes, Now, Pulse)};
gone(_Leg, _Bytes, _Now, State) ->
    State.

look(Now, #state{out = Out, pulse = Pulse0, handed = Handed, current = #path{leg = Leg} = Current, config = #{there := There} = Config} = State) ->
    Ahead = maps:get(Leg, Handed, 0),
    case atoll_dist_circuit_pulse:look(atoll_dist_circuit_out:under_way(Out), Ahead, Config, Now, Pulse0) of
        {wait, Ms, Pulse} -> act({timer, look, Ms}, State#state{pulse = Pulse});
        {ask, Ms, Pulse} -> act({timer, look, Ms}, owe(asks, State#state{pulse = Pulse}));
        silent -> lost({silent, There}, true, Now, leave(Current, silent, State))
    end.

%% Losing a path

down(Leg, Now, State0) ->
    State =
        case State0 of
            #state{current = #path{leg = Leg}} -> lost({down, Leg}, false, Now, State0);
            _ -> State0
        end,
    case State of
        #state{has_ended = false, attempt = #path{leg = Leg} = Attempt} -> failed(Attempt, {down, Leg}, Now, State);
        #state{attempt = {probe, #path{leg = Leg}}} -> State#state{attempt = none};
        _ -> State
    end.

lost(Why, IsSilent, Now, #state{current = #path{nodes = Nodes}, out = Out, attempt = Attempt, role = Role} = State0) ->
    State = act({notify, {lost, Why}}, act({cancel, look}, act({cancel, gap}, act({cancel, ack}, State0#state{
        current = none,
        gap = none,
        full = none,
        out = atoll_dist_circuit_out:pause(Out),
        lost_at = Now,
        is_silent = IsSilent,
        failed = [{Nodes, Why}],
        unanswered = 0,
        ack_timer = false,
        owed = no
    })))),
    case Role of
        acceptor -> waits(Attempt =:= none andalso is_cut_off(State), Now, State);
        opener when Attempt =:= none -> ask_route(State);
        opener -> State
    end.

patience(#state{is_silent = false, config = #{resume_ms := Ms}}) -> 2 * Ms;
patience(#state{is_silent = true, config = #{resume_ms := ResumeMs, silence_ms := SilenceMs}}) -> ResumeMs + SilenceMs.

%% Those on a path that is given up need not keep it.
leave(#path{key = Key} = Path, Why, #state{config = #{here := Here}} = State) ->
    send(Path, atoll_dist_circuit_frame:make({path_lost, Key, {Here, Why, <<>>}}), State).

%% The opener's attempts

ask_route(#state{failed = Failed, config = #{open_ms := Ms}} = State) ->
    act({timer, attempt, Ms}, act({act, {route, Failed}}, State#state{attempt = routing})).

open(Leg, Nodes, #state{epoch = Epoch0, was_up = WasUp, out = Out, current = Current, config = #{id := Id, window := Least}} = State) ->
    Epoch = Epoch0 + 1,
    Window =
        case Current of
            #path{nodes = Nodes} -> asks(Current, State);
            _ -> Least
        end,
    Path = #path{
        key = atoll_dist_circuit_frame:key(Id, Epoch), leg = Leg, nodes = Nodes, window = Window, asked = Window,
        rtt_ms = known(Nodes, Current), least = atoll_dist_circuit_out:received(Out)
    },
    Open = #{window => Window, can => atoll_dist_circuit_frame:abilities(), fresh => not WasUp, hello => hello(State), path => Nodes},
    Frame = atoll_dist_circuit_frame:make({open, Path#path.key, Open}),
    act({timer, attempt, patience_to_open(State)}, send(Path, Frame, State#state{epoch = Epoch, attempt = Path})).

%% Where all nodes are too busy an answer that is late every time would come if it were waited for.
patience_to_open(#state{unanswered = Unanswered, config = #{open_ms := Ms}}) ->
    Ms bsl min(Unanswered, 2).

hello(#state{was_up = false, seals = true, config = #{keys := Keys}}) -> atoll_dist_seal:hello(Keys);
hello(_State) -> <<>>.

attempt(opened, #{window := Window, can := Can, received := Received, consumed := Consumed, answer := Answer}, Now, #state{role = opener} = State0) ->
    #state{attempt = #path{window = Most, least = Least} = Attempt} = State0,
    case finished(Answer, State0) of
        {error, Error} ->
            end_of(seal, {seal, Error}, State0);
        {ok, #state{out = Out0} = State} ->
            IsWide = Window >= atoll_dist_circuit_frame:min_window() andalso Window =< Most,
            case IsWide andalso atoll_dist_circuit_out:resume(Received, Consumed, Window, Least, Out0) of
                {ok, Out} -> use(Attempt#path{window = Window, can = Can}, Now, confirmed(Attempt, State#state{out = Out}));
                false -> failed(Attempt, {refused, {here(State), window, <<>>}}, Now, leave(Attempt, moved, State));
                error -> end_of(bad_frame, bad_ack, State)
            end
    end;
attempt(confirm, #{received := Received, consumed := Consumed, proof := Proof}, Now, #state{role = acceptor, attempt = Attempt, out = Out0} = State) ->
    case is_proven(Proof, Received, Consumed, State) of
        true ->
            #path{window = Window} = Attempt,
            case atoll_dist_circuit_out:resume(Received, Consumed, Window, Out0) of
                {ok, Out} -> use(Attempt, Now, State#state{out = Out});
                error -> end_of(bad_frame, bad_ack, State)
            end;
        false when not State#state.was_up ->
            end_of(seal, {seal, cookie}, State);
        false ->
            %% Somebody else's; the opener may yet come.
            ignored(State#state{attempt = none})
    end;
%% The other end requires a seal, or a relay says so: then it has only what is sealed.
attempt(refused, {There, seal, _}, _Now, #state{was_up = false, seals = false, attempt = #path{} = Path, config = #{there := There, keys := _}} = State) ->
    open(Path#path.leg, Path#path.nodes, State#state{seals = true});
attempt(refused, {_, Why, _} = Said, Now, #state{role = opener, attempt = Attempt, was_up = WasUp} = State) ->
    case Why of
        unknown_circuit when WasUp -> end_of(silent, {refused, Said}, State);
        _ -> failed(Attempt, {refused, Said}, Now, State)
    end;
attempt(path_lost, Said, Now, #state{attempt = Attempt} = State) ->
    failed(Attempt, {path_lost, Said}, Now, State);
attempt(close, Said, _Now, State) ->
    ended({closed, Said}, State);
attempt(_Type, _Body, _Now, State) ->
    ignored(State).

here(#state{config = #{here := Here}}) -> Here.

confirmed(#path{key = Key} = Path, #state{in = In, was_up = WasUp, answer = Answer, seal = Seal} = State) ->
    {Received, Consumed} = atoll_dist_circuit_in:positions(In),
    Proof =
        case WasUp andalso Seal =/= none of
            true -> atoll_dist_seal:confirm(atoll_dist_circuit_frame:epoch(Key), Received, Consumed, Seal);
            false -> Answer
        end,
    send(Path, atoll_dist_circuit_frame:make({confirm, Key, #{received => Received, consumed => Consumed, proof => Proof}}), State).

%% The path is agreed.
use(#path{key = Key, window = Window, nodes = Nodes, can = Can, at = At, rtt_ms = Known} = Path, Now, #state{current = Old, was_up = WasUp, in = In, seal = Seal, moves = Moves, role = Role} = State0) ->
    State1 =
        case {Old, Role} of
            {#path{}, opener} -> leave(Old, moved, State0);
            _ -> State0
        end,
    State = State1#state{
        current = Path#path{rtt_ms = min(Known, Now - At)},
        epoch = atoll_dist_circuit_frame:epoch(Key),
        attempt = none,
        was_up = true,
        in = atoll_dist_circuit_in:path(Window, In),
        failed = [],
        pulse = atoll_dist_circuit_pulse:new(Now, Now - At),
        owed = no,
        order = case Role of opener -> kept; acceptor -> atoll_dist_circuit_frame:order(Can) end,
        is_told_narrow = false,
        gap = none,
        full = none
    },
    {Notice, Moved} =
        case Old of
            none when not WasUp -> {{up, #{path => Nodes, window => Window, sealed => Seal =/= none}}, 0};
            #path{nodes = Nodes} -> {{widened, Nodes}, 0};
            _ -> {{moved, Nodes}, 1}
        end,
    Settled = act({cancel, gap}, act({cancel, case Role of opener -> attempt; acceptor -> deadline end}, State)),
    act({notify, Notice}, Settled#state{moves = Moves + Moved}).

failed(_Path, _Why, _Now, #state{role = acceptor} = State) ->
    State#state{attempt = none};
failed(#path{nodes = Nodes, asked = Asked}, _Why, _Now, #state{current = #path{nodes = Nodes} = Current} = State) ->
    %% It stays as wide as it is.
    act({cancel, attempt}, State#state{attempt = none, current = Current#path{asked = Asked}});
failed(_Path, Why, _Now, #state{current = #path{}} = State) ->
    act({notify, {not_moved, Why}}, act({cancel, attempt}, State#state{attempt = none}));
failed(#path{nodes = Nodes}, Why, Now, #state{failed = Failed, unanswered = Unanswered} = State0) ->
    WasKnown = lists:keymember(Nodes, 1, Failed),
    IsSilent = element(1, Why) =:= silent,
    State = State0#state{
        attempt = none,
        is_silent = IsSilent,
        unanswered = Unanswered + (case IsSilent of true -> 1; false -> 0 end),
        failed = lists:sublist([{Nodes, Why} | lists:keydelete(Nodes, 1, Failed)], ?MAX_FAILED)
    },
    case is_over(Now, State) of
        true -> end_of(silent, Why, State);
        false when WasKnown -> later(State);
        false -> ask_route(State)
    end.

no_way(None, Now, #state{role = acceptor, lost_at = At, failed = [{_, Why} | _]} = State) ->
    IsLate = Now - At >= patience(State#state{is_silent = false}),
    case None =:= no_route andalso (IsLate orelse is_cut_off(State)) of
        true -> end_of(silent, Why, State);
        false -> State
    end;
no_way(None, Now, #state{failed = Failed} = State) ->
    Why =
        case Failed of
            [] -> no_route;
            [{_, Last} | _] -> Last
        end,
    case is_over(Now, State) orelse is_hopeless(None, State) of
        true -> end_of(silent, Why, State);
        %% What failed may do now.
        false -> later(State#state{failed = []})
    end.

%% Nobody waits for a circuit that never was if there is no reason to.
is_hopeless(None, #state{was_up = true} = State) ->
    None =:= no_route andalso is_cut_off(State);
is_hopeless(_None, #state{failed = [], epoch = Epoch}) ->
    %% Nobody has ever known a way. Had there been one, another might come.
    Epoch =:= 0;
is_hopeless(_None, #state{failed = Failed, config = #{there := There}}) ->
    lists:all(fun({_, Why}) -> stays(Why, There) end, Failed).

%% The path was lost because its last node has no connection with the other end any more, which
%% for two nodes is this one, and those of all other ways have none either. One that never had
%% may be about to get it, so without such a loss it is waited for.
is_cut_off(#state{failed = []}) ->
    false;
is_cut_off(#state{failed = Failed, config = #{there := There}}) ->
    {Nodes, Why} = lists:last(Failed),
    is_gone(Nodes, Why, There) andalso lists:all(fun({Ns, W}) -> is_gone(Ns, W, There) orelse has_none(W, There) end, Failed).

is_gone(_Nodes, {path_lost, {_, link_down, There}}, There) -> true;
is_gone([_, _], {down, _}, _There) -> true;
is_gone(_Nodes, _Why, _There) -> false.

has_none({refused, {_, no_link, There}}, There) -> true;
has_none(_Why, _There) -> false.

%% Whoever is in a group with the other end and has no connection with it knows best.
stays({refused, {_, Why, _}} = Refused, There) -> has_none(Refused, There) orelse lists:member(Why, [hops, loop, version, seal]);
stays(_Why, _There) -> false.

is_over(Now, #state{lost_at = At, is_silent = false, config = #{resume_ms := Ms}}) -> Now - At >= Ms;
is_over(Now, #state{lost_at = At, is_silent = true, config = #{silence_ms := Ms}}) -> Now - At >= Ms.

later(#state{config = #{retry_ms := Ms}} = State) ->
    act({timer, attempt, Ms}, State#state{attempt = later}).

%% The other end's

accept(Leg, {ok, {open, Key, #{window := Window, can := Can, hello := Hello, path := Nodes}}}, #state{config = Config} = State0) ->
    case greeted(Hello, State0) of
        {ok, State} ->
            offered(#path{key = Key, leg = Leg, nodes = Nodes, window = least(Window, Config), can = both(Can), asked = Window}, State);
        {error, Error} ->
            Path = #path{key = Key, leg = Leg, nodes = Nodes, window = 0, asked = Window},
            Said = {here(State0), seal, atom_to_binary(Error)},
            ended({seal, Error}, send(Path, atoll_dist_circuit_frame:make({refused, Key, Said}), State0))
    end.

greeted(<<>>, #state{config = #{seal := off}} = State) ->
    {ok, State};
greeted(Hello, #state{config = #{keys := Keys}} = State) ->
    sealed(atoll_dist_seal:answer(Hello, sealed_about(State), Keys), State);
greeted(_Hello, _State) ->
    {error, missing}.

%% The opener's half of it.
finished(_Answer, #state{was_up = true} = State) ->
    {ok, State};
finished(Answer, #state{seals = true, config = #{keys := Keys}} = State) ->
    sealed(atoll_dist_seal:finish(Answer, sealed_about(State), Keys), State);
finished(_Answer, State) ->
    {ok, State}.

sealed({ok, Answer, Seal}, #state{in = In, out = Out} = State) ->
    {ok, State#state{answer = Answer, seal = Seal, in = atoll_dist_circuit_in:seal(Seal, In), out = atoll_dist_circuit_out:seal(Seal, Out)}};
sealed({error, _} = Error, _State) ->
    Error.

sealed_about(#state{role = opener, config = #{id := Id, here := Here, there := There, cookie := Cookie}}) ->
    #{id => Id, opener => Here, acceptor => There, cookie => Cookie};
sealed_about(#state{role = acceptor, config = #{id := Id, here := Here, there := There, cookie := Cookie}}) ->
    #{id => Id, opener => There, acceptor => Here, cookie => Cookie}.

is_proven(_Proof, _Received, _Consumed, #state{seal = none}) ->
    true;
is_proven(Proof, Received, Consumed, #state{seal = Seal, was_up = WasUp, attempt = #path{key = Key}}) ->
    %% If the opener's first one was lost this is of a further path for it, and the first here:
    %% who can make it has the keys, and so knows the cookie.
    (not WasUp andalso atoll_dist_seal:is_proof(Proof, Seal)) orelse
        atoll_dist_seal:is_confirm(Proof, atoll_dist_circuit_frame:epoch(Key), Received, Consumed, Seal).

%% Until the opener comes, for so long; and perhaps it looks meanwhile whether there is any way to
%% the opener, which may have been killed. Whoever has no connection with that one refuses, and so
%% does the next life of it; it does not itself, and then nothing is known.
waits(Looks, Now, #state{lost_at = At} = State) ->
    Waits = act({timer, deadline, max(0, patience(State) - (Now - At))}, State),
    case Looks of
        true -> look_for_ways(Waits);
        false -> Waits
    end.

look_for_ways(#state{failed = Failed} = State) ->
    act({act, {route, Failed}}, State#state{attempt = routing}).

probe(Leg, Nodes, #state{failed = Failed, config = #{id := Id}} = State) ->
    Window = atoll_dist_circuit_frame:min_window(),
    Path = #path{key = atoll_dist_circuit_frame:key(Id, ?PROBE), leg = Leg, nodes = Nodes, window = Window, asked = Window},
    Open = #{window => Window, can => 0, fresh => false, hello => <<>>, path => Nodes},
    case lists:keymember(Nodes, 1, Failed) of
        true -> State#state{attempt = none};
        false -> send(Path, atoll_dist_circuit_frame:make({open, Path#path.key, Open}), State#state{attempt = {probe, Path}})
    end.

probed(refused, {There, unknown_circuit, _} = Said, _Path, #state{config = #{there := There}} = State) ->
    end_of(silent, {refused, Said}, State#state{attempt = none});
probed(Type, {_, Why, _} = Said, #path{nodes = Nodes}, #state{failed = Failed} = State) when Type =:= refused; Why =:= link_down ->
    look_for_ways(State#state{failed = lists:sublist([{Nodes, {Type, Said}} | Failed], ?MAX_FAILED)});
probed(_Type, _Body, _Path, State) ->
    %% Who forgets a path that nobody answers says nothing of the other end.
    State#state{attempt = none}.

%% The opener wants another path.
reopened(Leg, {open, Key, #{window := Window, can := Can, path := [There | _] = Nodes}}, #state{config = #{there := There}} = State) ->
    #state{epoch = Epoch, attempt = Attempt, current = Current, config = #{id := Id} = Config} = State,
    Path = #path{
        key = Key, leg = Leg, nodes = Nodes, window = least(Window, Config), can = both(Can), asked = Window,
        rtt_ms = known(Nodes, Current)
    },
    IsTried = case Attempt of #path{key = Key} -> true; _ -> false end,
    case Key of
        %% Of an epoch that was not confirmed nobody knows whose it is.
        <<Id:16/binary, New:32>> when New > Epoch, not IsTried -> offered(Path, State);
        _ -> send(Path, atoll_dist_circuit_frame:make({refused, Key, {here(State), stale, <<>>}}), State)
    end;
reopened(_Leg, _Open, State) ->
    ignored(State).

both(Can) -> Can band atoll_dist_circuit_frame:abilities().

least(Window, #{window := Least, max_window := Most}) -> min(Window, max(Least, Most)).

known(Nodes, #path{nodes = Nodes, rtt_ms = RttMs}) -> RttMs;
known(_Nodes, _Other) -> unknown.

offered(#path{key = Key, window = Window, can = Can} = Path, #state{in = In, answer = Answer, was_up = WasUp, attempt = Before} = State0) ->
    {Received, Consumed} = atoll_dist_circuit_in:positions(In),
    Opened = #{window => Window, can => Can, received => Received, consumed => Consumed, answer => Answer},
    State =
        case Before of
            #path{} -> leave(Before, moved, State0);
            {probe, Probe} -> leave(Probe, moved, State0);
            _ -> State0
        end,
    Sent = send(Path, atoll_dist_circuit_frame:make({opened, Key, Opened}), State#state{attempt = Path}),
    case WasUp of
        false -> act({timer, deadline, patience(Sent)}, Sent);
        true -> Sent
    end.

%% The end

%% The other one hears of it, if there is a way.
end_of({Code, About}, Reason, State) -> end_of(Code, About, Reason, State);
end_of(Code, Reason, State) -> end_of(Code, <<>>, Reason, State).

end_of(Code, About, Reason, #state{current = Current, attempt = Attempt} = State) ->
    Close = fun(#path{key = Key} = Path, S) ->
        send(Path, atoll_dist_circuit_frame:make({close, Key, {here(S), Code, About}}), S)
    end,
    Probe = case Attempt of {probe, Probed} -> Probed; _ -> none end,
    ended(Reason, lists:foldl(Close, State, [Path || #path{} = Path <- [Current, Attempt, Probe]])).

ended(Reason, State) ->
    act({notify, {ended, Reason}}, State#state{has_ended = true, current = none, attempt = none}).

%% @doc What it carried: positions, and how much was sent again; how often it moved.
-spec figures(state()) -> #{
    state := opening | up | lost | ended,
    path := path() | none,
    epoch := non_neg_integer(),
    window := atoll_dist_circuit_frame:window(),
    sent := non_neg_integer(),
    received := non_neg_integer(),
    pending := non_neg_integer(),
    resent_bytes := non_neg_integer(),
    ignored := non_neg_integer(),
    moves := non_neg_integer()
}.
figures(#state{current = Current, epoch = Epoch, out = Out, in = In, was_up = WasUp} = State) ->
    {Nodes, Window, Is} =
        case Current of
            #path{nodes = P, window = W} -> {P, W, up};
            none when State#state.has_ended -> {none, 0, ended};
            none when WasUp -> {none, 0, lost};
            none -> {none, 0, opening}
        end,
    {Received, _} = atoll_dist_circuit_in:positions(In),
    #{
        state => Is, path => Nodes, epoch => Epoch, window => Window,
        sent => atoll_dist_circuit_out:end_of(Out), received => Received,
        pending => atoll_dist_circuit_out:pending(Out),
        resent_bytes => State#state.resent, ignored => State#state.ignored, moves => State#state.moves
    }.
