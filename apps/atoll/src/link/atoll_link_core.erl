%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The protocol that owns connections: who wants to be connected with whom.
%%
%% Owners (processes of upper rooms) say which peers they want. A peer that
%% somebody wants is connected, and connected again when the connection is lost,
%% with growing pauses between attempts, one attempt at a time. A connection that
%% nobody wants is closed, but never because it looks idle:
%%
%% <ol>
%% <li>it must have been unwanted for its time, and then quiet for as long again: its packets are
%%   read, which costs next to nothing.
%%   One that was made for an owner here has the linger time. One that came up by
%%   itself, because a program or the peer made it, is there on demand and has
%%   `on_demand_ms'; with `infinity' either is left alone. A tick is no traffic;</li>
%% <li>then no monitor and no link may be known over it on this side. To read these stops the
%%   runtime for a moment, so it is not done while packets flow;</li>
%% <li>the peer is asked, and agrees only if nobody wants it there either and
%%   no monitor or link is known on that side;</li>
%% <li>then this side looks once more, and disconnects.</li>
%% </ol>
%%
%% If both ends want to close, the one with the smaller name does. A peer that
%% does not answer (it runs no Atoll, or it is silent) stays connected, and so does
%% a hidden one, a shell or a tool: its use reads as unknown. A connection that is
%% in use, by packets or by monitors, is looked at again after a pause that doubles each time;
%% how long it has to be quiet does not grow, since rooms above may say something now and then.
%%
%% `{disconnect, Peer}' is for a room above that knows the peer to be dead, or the
%% connection of no use: it is closed at once, whoever wants it and whatever
%% monitors are over it, since these are to fire. If it is wanted it is tried again
%% after a pause.
%%
%% A peer that answers, but refuses the connection, as one with another cookie does, writes each
%% refusal into its log. So after the first one nobody's want shortens the pauses, which go on growing
%% to half a minute, and are remembered while nobody wants the peer. That it refuses is said once.
%%
%% The carrier below may have a channel with a peer that is no connection of its own, but
%% goes over others'. One that somebody wants is to have one of its own, so that is said
%% (`own') before the first attempt, and taken back when nobody has wanted it for the
%% linger time: then a channel that is in use may go over others' again. To what is said
%% above such a channel is a connection like any other.
%%
%% Promised: but for that, a connection is not closed while an owner at either end
%% wants it, or a monitor or link over it was known to the end that looked. One
%% that nobody uses is closed in bounded time if both ends run this, with a finite
%% `on_demand_ms' at one of them at least where neither end made it for an owner.
%%
%% Not promised: a monitor that is set while the peer's consent is on its way
%% back, and has not reached the wire when this side looks again, hears
%% `noconnection' from a live process; and a want in that moment has its
%% connection taken away, and made again. Stock distribution has no way to hold it
%% back; linger and the two looks make the window one round trip after a silence.
-module(atoll_link_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, summary/1]).

-export_type([config/0, options/0, owner/0, purpose/0, usage/0, notice/0, state/0]).

-type config() :: #{self := node(), seed := integer(), options := options()}.

-type options() :: #{
    %% Pauses between attempts to connect: the first, and the longest.
    retry_min_ms := pos_integer(),
    retry_max_ms := pos_integer(),
    %% How long an unwanted connection stays, and the longest pause between two
    %% looks at one that is still in use.
    linger_ms := pos_integer() | infinity,
    linger_max_ms := pos_integer(),
    %% The same for a connection that came up by itself; its longest pause is this
    %% or linger_max_ms, whichever is longer.
    on_demand_ms := pos_integer() | infinity
}.

-type owner() :: term().
%% Whoever wants; a pid on a real node, opaque here.

-type usage() ::
    %% Not connected, or it could not be read: that counts as in use.
    unknown
    | #{
        %% Monitors and links across the connection, in either direction; not for the purpose
        %% `traffic'.
        uses => non_neg_integer(),
        %% Packets in and out so far, ticks among them if they are counted.
        traffic := non_neg_integer(),
        %% What is in them but ticks: bytes beside their heads, or signals where those
        %% alone are counted. Where that cannot be read, how often there may be a tick each way, in milliseconds.
        payload := non_neg_integer() | {ticks, pos_integer()}
    }.

-type notice() ::
    {up, node()}
    | {down, node(), Reason :: term()}
    %% An attempt to connect with a wanted peer failed.
    | {unreachable, node()}
    %% It was there and refused, twice in a row.
    | {refused, node()}
    %% Nobody here wants the connection, but it is in use: it stays for now.
    | {kept, node()}
    %% One with a hidden node, and somebody here wants it.
    | {wanted, node()}.

-type phase() ::
    %% Not connected: an attempt is under way, or the pause before the next one.
    %% Ms is the last pause, 0 before the first.
    {trying, Ms :: non_neg_integer()}
    | {waiting, Ms :: pos_integer()}
    %% Connected: wanted; or there by itself and left alone.
    | held
    | foreign
    %% Connected, and unwanted since: waiting for the linger time; reading its packets, and
    %% where it is quiet its monitors; asking the peer; reading once more after it agreed; being
    %% closed.
    | {lingering, Ms :: pos_integer()}
    | {traffic, Ms :: pos_integer()}
    | {reading, Ms :: pos_integer()}
    | {asking, Ms :: pos_integer()}
    | {agreed, Ms :: pos_integer()}
    | closing.

-type purpose() ::
    %% Why a connection's use is read: to know whether it is quiet, to ask the peer, to close after
    %% it agreed, or to answer the peer that asks.
    traffic
    | reading
    | agreed
    | {asked, N :: pos_integer()}.

-record(peer, {
    phase :: phase(),
    up = false :: boolean(),
    %% It came up without an attempt of ours.
    foreign = false :: boolean(),
    %% The connection is a hidden one.
    hidden = false :: boolean(),
    %% The carrier was told that it is to have a connection of its own.
    own = false :: boolean(),
    owners = #{} :: #{owner() => []},
    %% The question that the peer is to answer.
    question = 0 :: non_neg_integer(),
    %% The room above had it closed: no new attempt without a pause.
    cut = false :: boolean(),
    %% Packets and payload at the last reading. What both ends' questions and answers add to
    %% the packets meanwhile is in the first.
    last = unknown :: unknown | {non_neg_integer(), non_neg_integer() | {ticks, pos_integer()}}
}).

-record(state, {
    self :: node(),
    options :: options(),
    peers = #{} :: #{node() => #peer{}},
    %% Numbers the questions, so that a late answer is known.
    questions = 0 :: non_neg_integer(),
    %% Who refused the last attempt: how often in a row, the pause since, and when that is over.
    refusing = #{} :: #{node() => {pos_integer(), pos_integer(), atoll_protocol:now_ms()}},
    %% How many peers each owner wants; nobody is here with none.
    owners = #{} :: #{owner() => pos_integer()},
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% Two packets, the question and its answer, pass between a reading and the next.
-define(OWN_PACKETS, 2).
%% The longest pause before one that refuses is tried again; how many are remembered.
-define(REFUSED_MAX_MS, 30000).
-define(MAX_REFUSING, 10000).

%% @doc The state of a node that wants nobody.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, seed := Seed, options := Options}, _Now) ->
    {#state{self = Self, options = Options, rand = rand:seed_s(exsss, Seed)}, []}.

%% @doc Takes one event. Casts are `{want, Owner, Peer}', `{unwant, Owner, Peer}',
%% `{forget, Owner}' from owners, `{disconnect, Peer}' from whoever knows better,
%% `{hidden, Peer}' when it was connected in hiding (once for each that hears of it),
%% `{connected, Peer, boolean() | refused}' and `{usage, Purpose, Peer, usage()}' from the
%% deeds `connect' and `measure'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]};
handle({cast, {want, Owner, Node}}, Now, State) ->
    want(Owner, Node, Now, State);
handle({cast, {unwant, Owner, Node}}, _Now, State) ->
    unwant(Owner, Node, State);
handle({cast, {forget, Owner}}, _Now, #state{peers = Peers} = State) ->
    Wanted = lists:sort([N || {N, #peer{owners = #{Owner := _}}} <- maps:to_list(Peers)]),
    lists:foldl(
        fun(Node, {S0, Effects}) ->
            {S, More} = unwant(Owner, Node, S0),
            {S, Effects ++ More}
        end,
        {State, []},
        Wanted
    );
handle({cast, {disconnect, Node}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> disconnect(Node, Peer, State) end);
handle({cast, {hidden, Node}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) ->
        Hidden = Peer#peer{hidden = true},
        store(Node, Hidden, State, wanted(Node, Hidden))
    end);
handle({cast, {connected, Node, refused}}, Now, State) ->
    with_peer(Node, State, fun(Peer) -> refused(Node, Peer, Now, State) end);
handle({cast, {connected, Node, Success}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> connected(Success, Node, Peer, admitted(Node, State)) end);
handle({cast, {usage, Purpose, Node, Usage}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> usage(Purpose, Usage, Node, Peer, State) end);
handle({up, Node}, _Now, State) ->
    up(Node, admitted(Node, State));
handle({down, Node, Reason}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> down(Reason, Node, Peer, State) end);
handle({timeout, {retry, Node}}, _Now, State) ->
    with_peer(Node, State, fun(#peer{phase = {waiting, Ms}} = Peer) ->
        store(Node, Peer#peer{phase = {trying, Ms}}, State, [{act, {connect, Node}}])
    end);
handle({timeout, {own, Node}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> store(Node, Peer#peer{own = false}, State, [{act, {own, Node, false}}]) end);
handle({timeout, {linger, Node}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> linger_over(Node, Peer, State) end);
handle({message, Node, {may_close, N}}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> may_close(N, Node, Peer, State) end);
handle({message, Node, {close, N, Agreed}}, _Now, State) ->
    with_peer(Node, State, fun
        (#peer{question = Question} = Peer) when N =:= Question ->
            answered(Agreed, Node, Peer, State);
        (_) ->
            {State, []}
    end);
handle({message, Node, released}, _Now, State) ->
    with_peer(Node, State, fun(Peer) -> released_there(Node, Peer, State) end).

%% @doc For people: each known peer, whether it is connected, its phase, and how
%% many owners want it. One that refuses is in the phase `refused'.
-spec summary(state()) ->
    [#{node := node(), connected := boolean(), phase := atom(), wanted_by := non_neg_integer()}].
summary(#state{peers = Peers, refusing = Refusing}) ->
    [
        #{
            node => Node,
            connected => Up,
            phase => phase_name(Phase, is_map_key(Node, Refusing)),
            wanted_by => map_size(Owners)
        }
     || {Node, #peer{phase = Phase, up = Up, owners = Owners}} <- lists:sort(maps:to_list(Peers))
    ].

%% Owners

want(_Owner, Node, _Now, #state{self = Node} = State) ->
    {State, []};
want(Owner, Node, Now, #state{peers = Peers} = State0) ->
    case maps:get(Node, Peers, undefined) of
        #peer{owners = #{Owner := _}, phase = {waiting, _}} = Peer ->
            hold(Node, Peer, State0);
        #peer{owners = #{Owner := _}} ->
            {State0, []};
        undefined ->
            {State1, Watch} = owner_wants(Owner, State0),
            {State, Effects} = first_attempt(Node, #{Owner => []}, Now, State1),
            {State, Watch ++ [{act, {own, Node, true}} | Effects]};
        #peer{owners = Owners} = Peer0 ->
            {State1, Watch} = owner_wants(Owner, State0),
            {Peer, Own} = own(Node, Peer0#peer{owners = Owners#{Owner => []}}),
            {State, Effects} = hold(Node, Peer, State1),
            First = [Effect || map_size(Owners) =:= 0, Effect <- Own ++ wanted(Node, Peer)],
            {State, Watch ++ First ++ Effects}
    end.

first_attempt(Node, Owners, Now, #state{refusing = Refusing} = State) ->
    Peer = #peer{phase = {trying, 0}, own = true, owners = Owners},
    case Refusing of
        #{Node := {_, Pause, At}} when At > Now ->
            Effects = [{timer, {retry, Node}, At - Now}, {notify, {unreachable, Node}}],
            store(Node, Peer#peer{phase = {waiting, Pause}}, State, Effects);
        #{} ->
            store(Node, Peer, State, [{act, {connect, Node}}])
    end.

%% A connection of its own is wanted now; or still, though for a while nobody wanted it.
own(Node, #peer{own = false} = Peer) -> {Peer#peer{own = true}, [{act, {own, Node, true}}]};
own(Node, #peer{own = true} = Peer) -> {Peer, [{cancel, {own, Node}}]}.

%% The rooms speak to it now.
wanted(Node, #peer{hidden = true, owners = Owners}) when map_size(Owners) > 0 -> [{notify, {wanted, Node}}];
wanted(_Node, _Peer) -> [].

hold(Node, #peer{up = true} = Peer, State) ->
    store(Node, Peer#peer{phase = held, last = unknown}, State, [{cancel, {linger, Node}}]);
hold(Node, #peer{phase = {waiting, _}} = Peer, #state{refusing = Refusing} = State) when
    not is_map_key(Node, Refusing)
->
    %% Who says it anew may know that the peer is there now.
    store(Node, Peer#peer{phase = {trying, 0}}, State, [{cancel, {retry, Node}}, {act, {connect, Node}}]);
hold(Node, Peer, State) ->
    %% An attempt is under way, or it would be refused again.
    store(Node, Peer, State, []).

unwant(Owner, Node, #state{peers = Peers} = State0) ->
    case maps:get(Node, Peers, undefined) of
        #peer{owners = #{Owner := _} = Owners} = Peer0 ->
            {State, Unwatch} = owner_unwants(Owner, State0),
            Peer = Peer0#peer{owners = maps:remove(Owner, Owners)},
            {Stored, Effects} = release(Node, Peer, State),
            {Stored, Unwatch ++ Effects};
        _ ->
            {State0, []}
    end.

release(Node, #peer{owners = Owners} = Peer, State) when map_size(Owners) > 0 ->
    store(Node, Peer, State, []);
release(Node, #peer{phase = {waiting, _}}, State) ->
    forget(Node, State, [{cancel, {retry, Node}}, {act, {own, Node, false}}]);
release(Node, Peer, #state{options = #{linger_ms := Ms}} = State0) ->
    {State, Effects} = released(Node, Peer, State0),
    {State, Effects ++ [{timer, {own, Node}, Ms} || Ms =/= infinity]}.

released(Node, #peer{up = true, cut = true} = Peer, State) ->
    %% It is being closed.
    store(Node, Peer, State, []);
released(Node, #peer{up = true, foreign = true} = Peer, State0) ->
    {State, Effects} = unwanted(Node, Peer, State0),
    %% The peer that made it may have been waiting for us.
    {State, [{send, Node, released} | Effects]};
released(Node, #peer{up = true} = Peer, State) ->
    unwanted(Node, Peer, State);
released(Node, #peer{phase = {trying, _}} = Peer, State) ->
    %% The attempt may still succeed; then it lingers.
    store(Node, Peer, State, []).

owner_wants(Owner, #state{owners = Owners} = State) ->
    case Owners of
        #{Owner := N} -> {State#state{owners = Owners#{Owner := N + 1}}, []};
        #{} -> {State#state{owners = Owners#{Owner => 1}}, [{act, {watch, Owner}}]}
    end.

owner_unwants(Owner, #state{owners = Owners} = State) ->
    case Owners of
        #{Owner := 1} ->
            {State#state{owners = maps:remove(Owner, Owners)}, [{act, {unwatch, Owner}}]};
        #{Owner := N} ->
            {State#state{owners = Owners#{Owner := N - 1}}, []}
    end.

%% Connecting

connected(true, _Node, _Peer, State) ->
    %% `up' came before, or is on its way: it comes for every connection.
    {State, []};
connected(false, Node, #peer{phase = {trying, Last}} = Peer, State0) ->
    {Ms, State} = pause(Last, State0),
    wait(Ms, Node, Peer, State);
connected(false, _Node, _Peer, State) ->
    %% It was the peer's attempt that succeeded.
    {State, []}.

wait(_Ms, Node, #peer{owners = Owners} = Peer, State) when map_size(Owners) =:= 0 ->
    %% Unwanted while it was tried.
    forget(Node, State, disown(Node, Peer));
wait(Ms, Node, Peer, State) ->
    Effects = [{timer, {retry, Node}, Ms}, {notify, {unreachable, Node}}],
    store(Node, Peer#peer{phase = {waiting, Ms}}, State, Effects).

%% A peer that has just been started may have been there a moment too late: it is told of the second time.
refused(Node, #peer{phase = {trying, _}} = Peer, Now, #state{refusing = Refusing, options = Options} = State0) ->
    #{retry_min_ms := Min} = Options,
    {Times, Last, _} = maps:get(Node, Refusing, {0, 0, Now}),
    {Known, Longest} =
        case room(Node, Now, Refusing) of
            {true, Left} -> {Left, max(Min, min(?REFUSED_MAX_MS, 2 * Last))};
            {false, Left} -> {Left, ?REFUSED_MAX_MS}
        end,
    {Ms, State1} = jitter(Longest, State0),
    State2 = State1#state{refusing = remember(Node, {Times + 1, Ms, Now + Ms}, Known)},
    {State, Effects} = wait(Ms, Node, Peer, State2),
    {State, [{notify, {refused, Node}} || Times =:= 1] ++ Effects};
refused(_Node, _Peer, _Now, State) ->
    %% It was the peer's attempt that succeeded.
    {State, []}.

%% Those whose pause is over make room.
room(Node, _Now, Refusing) when map_size(Refusing) < ?MAX_REFUSING; is_map_key(Node, Refusing) ->
    {true, Refusing};
room(_Node, Now, Refusing) ->
    Left = maps:filter(fun(_, {_, _, At}) -> At > Now end, Refusing),
    {map_size(Left) < ?MAX_REFUSING, Left}.

remember(Node, Refusal, Refusing) when map_size(Refusing) < ?MAX_REFUSING; is_map_key(Node, Refusing) ->
    Refusing#{Node => Refusal};
remember(_Node, _Refusal, Refusing) ->
    Refusing.

%% It refuses no more, or is not there to refuse.
admitted(Node, #state{refusing = Refusing} = State) ->
    State#state{refusing = maps:remove(Node, Refusing)}.

disown(Node, #peer{own = true}) -> [{cancel, {own, Node}}, {act, {own, Node, false}}];
disown(_Node, _Peer) -> [].

pause(Last, #state{options = #{retry_min_ms := Min, retry_max_ms := Max}} = State) ->
    jitter(max(Min, min(Max, 2 * Last)), State).

%% Up to a quarter less, so that peers that were lost together do not return in step.
jitter(Ms, #state{rand = Rand0} = State) ->
    {Less, Rand} = rand:uniform_s(max(1, Ms div 4), Rand0),
    {max(1, Ms - Less + 1), State#state{rand = Rand}}.

up(Node, #state{peers = Peers} = State) ->
    case maps:get(Node, Peers, undefined) of
        undefined ->
            Peer = #peer{phase = foreign, up = true, foreign = true},
            came_up(Node, Peer, State);
        #peer{up = true} ->
            {State, []};
        #peer{owners = Owners} = Peer when map_size(Owners) > 0 ->
            Effects = [{cancel, {retry, Node}}, {notify, {up, Node}}],
            store(Node, Peer#peer{up = true, phase = held}, State, Effects);
        Peer ->
            came_up(Node, Peer#peer{up = true}, State)
    end.

%% And nobody here wants it.
came_up(Node, Peer, State0) ->
    {State, Effects} = unwanted(Node, Peer, State0),
    {State, Effects ++ [{notify, {up, Node}}]}.

down(Reason, Node, #peer{up = true, cut = true, own = Own, owners = Owners}, State0) when map_size(Owners) > 0 ->
    {Ms, State} = pause(0, State0),
    Effects = [{notify, {down, Node, Reason}}, {timer, {retry, Node}, Ms}],
    store(Node, #peer{phase = {waiting, Ms}, own = Own, owners = Owners}, State, Effects);
down(Reason, Node, #peer{up = true, own = Own, owners = Owners}, State) when map_size(Owners) > 0 ->
    Effects = [{notify, {down, Node, Reason}}, {act, {connect, Node}}],
    store(Node, #peer{phase = {trying, 0}, own = Own, owners = Owners}, State, Effects);
down(Reason, Node, #peer{up = true} = Peer, State) ->
    forget(Node, State, [{cancel, {linger, Node}}, {notify, {down, Node, Reason}}] ++ disown(Node, Peer));
down(_Reason, _Node, #peer{up = false}, State) ->
    {State, []}.

%% Closing

disconnect(Node, #peer{up = true, cut = false} = Peer, State) ->
    Effects = [{cancel, {linger, Node}}, {act, {disconnect, Node}}],
    store(Node, Peer#peer{phase = closing, cut = true}, State, Effects);
disconnect(_Node, _Peer, State) ->
    %% It is down or on its way there.
    {State, []}.

%% Nobody wants it any more, or nobody ever did.
unwanted(Node, Peer, State) ->
    case first_pause(Peer, State) of
        infinity -> store(Node, Peer#peer{phase = foreign}, State, []);
        Ms -> linger(Node, Ms, Peer#peer{last = unknown}, State)
    end.

first_pause(#peer{foreign = true}, #state{options = #{on_demand_ms := Ms}}) -> Ms;
first_pause(#peer{foreign = false}, #state{options = #{linger_ms := Ms}}) -> Ms.

longest_pause(Peer, #state{options = #{linger_max_ms := Max}} = State) ->
    max(Max, first_pause(Peer, State)).

linger(Node, Ms, Peer, State) ->
    store(Node, Peer#peer{phase = {lingering, Ms}}, State, [{timer, {linger, Node}, Ms}]).

%% Later each time, so that a connection in long use is not read all the time.
linger_longer(Node, Ms, Peer, State0) ->
    Longer = min(longest_pause(Peer, State0), 2 * Ms),
    {State, Effects} = linger(Node, Longer, Peer#peer{last = unknown}, State0),
    {State, Effects ++ [{notify, {kept, Node}}]}.

linger_over(Node, #peer{phase = {lingering, Ms}} = Peer, State) ->
    store(Node, Peer#peer{phase = {traffic, Ms}}, State, [{act, {measure, traffic, Node}}]);
linger_over(Node, #peer{phase = {asking, Ms}} = Peer, State) ->
    %% No answer: the peer keeps the connection by its silence.
    linger_longer(Node, Ms, Peer, State).

usage({asked, N}, Usage, Node, #peer{owners = Owners}, State) ->
    Agreed = map_size(Owners) =:= 0 andalso unused(Usage),
    {State, [{send, Node, {close, N, Agreed}}]};
usage(traffic, #{traffic := Packets, payload := Payload}, Node, #peer{phase = {traffic, Ms}, last = unknown} = Peer, State) ->
    %% However long the pauses are by now, so long it has to be quiet.
    Looked = Peer#peer{phase = {lingering, Ms}, last = {Packets, Payload}},
    store(Node, Looked, State, [{timer, {linger, Node}, first_pause(Peer, State)}]);
usage(traffic, #{} = Usage, Node, #peer{phase = {traffic, Ms}, last = Last} = Peer, State) ->
    case is_quiet(Usage, Last, first_pause(Peer, State)) of
        true -> store(Node, Peer#peer{phase = {reading, Ms}}, State, [{act, {measure, reading, Node}}]);
        false -> linger_longer(Node, Ms, Peer, State)
    end;
usage(reading, #{uses := 0, traffic := Packets, payload := Payload}, Node, #peer{phase = {reading, Ms}} = Peer, State) ->
    N = State#state.questions + 1,
    Effects = [{send, Node, {may_close, N}}, {timer, {linger, Node}, Ms}],
    Asking = Peer#peer{phase = {asking, Ms}, question = N, last = {Packets, Payload}},
    store(Node, Asking, State#state{questions = N}, Effects);
usage(agreed, #{uses := 0, traffic := Now}, Node, #peer{phase = {agreed, _}, last = {Then, _}} = Peer, State) when
    Now =< Then + ?OWN_PACKETS
->
    store(Node, Peer#peer{phase = closing}, State, [{act, {disconnect, Node}}]);
usage(Purpose, _InUse, Node, #peer{phase = {Purpose, Ms}} = Peer, State) ->
    linger_longer(Node, Ms, Peer, State);
usage(_Purpose, _Usage, _Node, _Peer, State) ->
    %% Wanted again, or yielded, while it was read.
    {State, []}.

%% Nothing but ticks since the last reading, this long ago.
is_quiet(#{payload := {ticks, TickMs}, traffic := Now}, {Then, _}, Ms) when 4 * Ms < TickMs ->
    Now =:= Then;
is_quiet(#{payload := {ticks, TickMs}, traffic := Now}, {Then, _}, Ms) ->
    Now =< Then + 2 * (Ms div TickMs + 1);
is_quiet(#{payload := Now}, {_, Then}, _Ms) ->
    Now =:= Then.

unused(#{uses := 0}) -> true;
unused(_) -> false.

may_close(N, Node, #peer{owners = Owners}, State) when map_size(Owners) > 0 ->
    {State, [{send, Node, {close, N, false}}]};
may_close(_N, _Node, #peer{phase = closing}, State) ->
    {State, []};
may_close(N, Node, #peer{phase = {Phase, _}} = Peer, #state{self = Self} = State) when
    (Phase =:= asking orelse Phase =:= agreed), Self < Node
->
    %% Both ends are closing: the smaller name goes on. This question and its
    %% answer are no traffic either.
    {Packets, Payload} = Peer#peer.last,
    Last = {Packets + ?OWN_PACKETS, Payload},
    store(Node, Peer#peer{last = Last}, State, [{send, Node, {close, N, false}}]);
may_close(N, Node, #peer{up = true, phase = {_, Ms}} = Peer, State) ->
    %% The other yields, and whoever has not asked yet leaves it to the peer. Else
    %% two in step would take each other's questions for traffic, for ever.
    {Yielded, Effects} = linger(Node, Ms, Peer#peer{last = unknown}, State),
    {Yielded, Effects ++ [{act, {measure, {asked, N}, Node}}]};
may_close(N, Node, _Peer, State) ->
    {State, [{act, {measure, {asked, N}, Node}}]}.

%% The peer no longer wants it: if nobody here does, it need not last longer.
released_there(Node, #peer{phase = {lingering, _}} = Peer, State) ->
    linger(Node, first_pause(Peer, State), Peer, State);
released_there(_Node, _Peer, State) ->
    {State, []}.

answered(true, Node, #peer{phase = {asking, Ms}} = Peer, State) ->
    Effects = [{cancel, {linger, Node}}, {act, {measure, agreed, Node}}],
    store(Node, Peer#peer{phase = {agreed, Ms}}, State, Effects);
answered(false, Node, #peer{phase = {asking, Ms}} = Peer, State) ->
    linger_longer(Node, Ms, Peer, State);
answered(_Agreed, _Node, _Peer, State) ->
    %% Wanted again, or yielded, while the answer was on its way.
    {State, []}.

%% The table of peers

with_peer(Node, #state{peers = Peers} = State, Fun) ->
    case Peers of
        #{Node := Peer} -> Fun(Peer);
        #{} -> {State, []}
    end.

store(Node, Peer, #state{peers = Peers} = State, Effects) ->
    {State#state{peers = Peers#{Node => Peer}}, Effects}.

forget(Node, #state{peers = Peers} = State, Effects) ->
    {State#state{peers = maps:remove(Node, Peers)}, Effects}.

phase_name({waiting, _}, true) -> refused;
phase_name({Phase, _}, _) -> Phase;
phase_name(Phase, _) -> Phase.
