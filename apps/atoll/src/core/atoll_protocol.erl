%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The behaviour of a pure protocol.
%%
%% A protocol is two functions. `init/2' makes the state of one node, `handle/3'
%% takes one event and gives the next state and a list of effects. Neither reads
%% a clock, a random source, a process or a table: time comes in as an argument,
%% randomness is a seeded `rand' state inside the protocol's own state, and an
%% effect is data that somebody else performs. So the same module runs under
%% {@link atoll_interpreter} on a real node and in virtual time in a simulator,
%% and a recorded list of events gives the same effects again ({@link replay/2}).
%%
%% What a protocol may assume of whoever runs it:
%% <ul>
%% <li>Events come one at a time. Effects of one event are performed in their
%%   order, before the next event is handled.</li>
%% <li>Messages from one life of a peer's process come in the order in which it sent them, but
%%   any of them may be missing: a send is dropped when there is no connection
%%   or when the connection is full and another one waits for room already.</li>
%% <li>`{up, Peer}' may come twice in a row (a subscription overlaps with the list
%%   of what was up before); `{down, Peer, _}' may follow messages of the peer's
%%   next incarnation.</li>
%% <li>A timer fires once, never after it was cancelled or set again.</li>
%% </ul>
%%
%% A protocol whose messages have changed exports `wire/0', which says the versions that it has on
%% the wire, the oldest and the newest, and where the form of the older ones is another,
%% `encode/2' and `decode/2', which are pure: they make that version of a message of the newest
%% form, and the other way round. `handle/3' sees the newest form alone. Which version goes
%% to whom is decided for each peer ({@link atoll_versions}); one that has no version in common
%% is `down' for the protocol, with the reason `no_common_version', while the connection stays.
%% Without these a protocol has version 1 alone, as it is. So that two releases that follow each
%% other work side by side, a release that adds a version keeps the one before.
-module(atoll_protocol).

-export([replay/2]).

-export_type([event/0, effect/0, from/0, now_ms/0, recording/0]).

-type now_ms() :: integer().
%% Monotonic time in milliseconds. Only differences mean something.

-type from() :: gen_server:from().
%% Who asked. A protocol keeps it and gives it back in a `reply', nothing else.

-type event() ::
    %% A connection with this node was made / is gone.
    {up, node()}
    | {down, node(), Reason :: term()}
    %% What the same protocol sent on that node.
    | {message, node(), Message :: term()}
    %% The timer that was set with this key.
    | {timeout, Key :: term()}
    %% A local process asks and waits; it is owed exactly one `reply'.
    | {call, from(), Request :: term()}
    %% Something local happened; nobody waits.
    | {cast, Notice :: term()}.

-type effect() ::
    %% To the same protocol on that node, if it is connected now.
    {send, node(), Message :: term()}
    %% This protocol needs / no longer needs a connection with that node.
    | {want, node()}
    | {unwant, node()}
    %% Set (or set anew) the timer of this key; take it back.
    | {timer, Key :: term(), Ms :: non_neg_integer()}
    | {cancel, Key :: term()}
    | {reply, from(), Answer :: term()}
    %% Something that subscribers of this protocol want to hear.
    | {notify, Notice :: term()}
    %% A deed only this protocol knows; its process module performs it.
    | {act, Deed :: term()}.

-type recording() :: #{
    %% The protocol's module.
    protocol := module(),
    %% Its state when recording began.
    state := term(),
    %% What happened since, oldest first, with the effects it had.
    events := [{event(), now_ms(), [effect()]}],
    %% Events that were not recorded because the bound was reached.
    lost := non_neg_integer()
}.

-callback init(Config :: term(), now_ms()) -> {State :: term(), [effect()]}.
-callback handle(event(), now_ms(), State) -> {State, [effect()]}.
%% The versions of its messages.
-callback wire() -> atoll_versions:range().
%% A message in that version of it, and the message of that.
-callback encode(Message :: term(), atoll_versions:version()) -> Wire :: term().
-callback decode(Wire :: term(), atoll_versions:version()) -> Message :: term().
-optional_callbacks([wire/0, encode/2, decode/2]).

%% @doc Runs the recorded events through `Protocol' again and compares.
%% The first event whose effects differ is named with its position, what was
%% recorded, and what came now.
-spec replay(module(), recording()) ->
    ok | {differs, pos_integer(), Recorded :: [effect()], Replayed :: [effect()]}.
replay(Protocol, #{state := State, events := Events}) ->
    replay(Protocol, State, Events, 1).

replay(_Protocol, _State, [], _N) ->
    ok;
replay(Protocol, State0, [{Event, Now, Recorded} | Events], N) ->
    case Protocol:handle(Event, Now, State0) of
        {State, Recorded} -> replay(Protocol, State, Events, N + 1);
        {_State, Replayed} -> {differs, N, Recorded, Replayed}
    end.
