%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The overlay of one node, as one pure protocol made of parts: a strategy
%% ({@link atoll_strategy}) that chooses the neighbours, failure detection
%% ({@link atoll_detector}), broadcast ({@link atoll_plumtree}), discovery
%% ({@link atoll_discovery}), and the roster of all members ({@link atoll_roster}).
%% Each part is a pure protocol of its own, in a folder of its own, and calls no other part.
%% What they have in common stands beside this module, which routes what happens to the part
%% that it concerns, and tells parts of each other:
%%
%% <ul>
%% <li>The strategy's neighbours are those that the detector watches, that
%%   broadcasts go to, by which discovery knows whether the node is alone, and over
%%   which the news of members travel.</li>
%% <li>A verdict of the detector goes to the strategy as `{dead, Node}', and closes
%%   the link, so that monitors over it fire too; a neighbour that is silent on our
%%   own link only goes as `{down, Node, silent}'. It ends that life in the roster.</li>
%% <li>Discovery's table travels in the detector's beats, and what discovery says
%%   to join goes to the strategy. A node that is alone also joins by nodes that it has
%%   a link with for whatever reason, and by some that the roster knows.</li>
%% <li>A node that the roster held to be dead, and that answers, is joined by: it may
%%   be on another island. It is asked when a link with it comes up, too.</li>
%% </ul>
%%
%% Lives. Every message carries when its sender was started, and the number of its
%% present life. One of an earlier life is dropped. The first one of a later start is
%% preceded by `{down, Node, restarted}' to all parts, and by an `up' of the link, which
%% may be the same: what was started again may be the overlay alone. A node that hears
%% that its present life
%% was declared dead begins a new one in place, with what it has: its links and its
%% neighbours stay, and whoever has buried it has closed its own links already.
%%
%% Leaving. The roster tells the neighbours first; when they have heard, the strategy
%% parts from them, and whoever has called to leave is answered. From then on discovery
%% finds nothing to join by, until somebody says to join. That is a new life, for which
%% the strategy is started anew with the nodes that it knew: what it was told by
%% `tell' it has to be told again.
%%
%% A part may send to any node. Without a link the message waits in an outbox, the
%% link is wanted for it, and wanted for a while longer, for an answer.
%%
%% Promised: the parts see of each peer one life after the other, and links and
%% neighbours in alternation of up and down. Not promised: that a message arrives;
%% the parts are built for that.
-module(atoll_overlay_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).
-export([neighbours/1, members/1, meta/2, incarnation/1, remembered/1, summary/1]).

-export_type([config/0, notice/0, state/0]).

-type config() :: #{
    self := node(),
    incarnation := pos_integer(),
    seed := integer(),
    %% The options are complete: see atoll_options:complete/2.
    strategy := {module(), atoll_options:options()},
    %% Nodes to join by.
    contacts => [node()],
    %% Nodes that were known before a restart, if that was kept.
    remembered => [node()],
    %% What this node says of itself to all.
    meta => map(),
    %% What the roster knows when it starts, see atoll_roster:config().
    members => atoll_roster_table:table(),
    %% Whether it is to stay outside until it is told to join.
    left => boolean(),
    %% The options of each part that differ from its defaults; `off' without the part.
    detector => atoll_detector:spec(),
    broadcast => atoll_plumtree:options() | off,
    discovery => atoll_discovery:options() | off,
    roster => atoll_roster:options() | off
}.

-type notice() ::
    atoll_strategy:notice()
    | {broadcast, From :: node(), Payload :: term()}
    %% So many messages of that sender cannot be had any more.
    | {missed, From :: node(), pos_integer()}
    | {suspect, node(), SilenceMs :: non_neg_integer()}
    | {cleared, node()}
    | {dead, node(), Incarnation :: pos_integer()}
    %% Of the whole cluster.
    | {member_up, node()}
    | {member_down, node(), dead | left}
    | {member_meta, node(), map()}
    %% This node has left the cluster; the next life is announced as `reborn'.
    | left
    %% This node's life was declared dead; it goes on as this one.
    | {reborn, Incarnation :: pos_integer()}.

-type part() :: strategy | detector | broadcast | discovery | roster | foreign.

-record(state, {
    self :: node(),
    %% The incarnation that it was started as, and that of its present life.
    start :: pos_integer(),
    incarnation :: pos_integer(),
    module :: module(),
    strategy :: term(),
    %% What the strategy was started with, and how often it was started anew.
    config :: atoll_strategy:config(),
    restarts = 0 :: non_neg_integer(),
    detector = off :: term(),
    detector_module = none :: module(),
    broadcast = off :: term(),
    discovery = off :: term(),
    roster = off :: term(),
    %% Whether it says farewell, or has left, and who waits for that.
    leaving = no :: no | farewell | left,
    leavers = [] :: [atoll_protocol:from()],
    %% Who waits for a first neighbour, by the number of the call.
    joiners = #{} :: #{pos_integer() => atoll_protocol:from()},
    calls = 0 :: non_neg_integer(),
    %% Calls that found too many others waiting.
    refused = 0 :: non_neg_integer(),
    %% Peers that a link is up with.
    linked = #{} :: #{node() => []},
    %% What each peer was started as and its life, if it was heard since its link
    %% came up.
    lives = #{} :: #{node() => {Start :: pos_integer(), Life :: pos_integer()}},
    wants = #{} :: #{node() => []},
    outbox :: atoll_outbox:outbox(),
    %% Peers that are wanted for the outbox.
    held = #{} :: #{node() => []},
    stale = 0 :: non_neg_integer(),
    %% Messages of another detector.
    foreign = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% The parts that are told of neighbours.
-define(TOLD, [detector, broadcast, discovery, roster]).
%% How many nodes the outbox waits for, and with how many messages each.
-define(OUTBOX_NODES, 64).
-define(OUTBOX_MESSAGES, 32).
%% How long a link that was made for a message is wanted for its answer.
-define(HOLD_MS, 2000).
%% How many linked nodes, and how many that the roster knows, a lone node joins by at a time.
-define(KNOWN, 5).
%% How many calls may wait to join, and to leave.
-define(MAX_WAITING, 64).

%% @doc A node that knows its contacts and has no neighbours.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, strategy := {Module, Options}} = Config, Now) ->
    Contacts = maps:get(contacts, Config, []),
    Base = #{self => Self, incarnation => Incarnation},
    StrategyConfig = Base#{
        seed => seed(strategy, Seed), options => Options, remembered => maps:get(remembered, Config, [])
    },
    {Strategy, Effects} = Module:init(StrategyConfig, Now),
    {ok, Detector} = atoll_detector:new(maps:get(detector, Config, #{})),
    {DetectorModule, DetectorOptions} = split(Detector),
    State = #state{
        self = Self,
        start = Incarnation,
        incarnation = Incarnation,
        module = Module,
        strategy = Strategy,
        detector_module = DetectorModule,
        config = StrategyConfig,
        leaving = leaving(Config),
        outbox = atoll_outbox:new(?OUTBOX_NODES, ?OUTBOX_MESSAGES)
    },
    Parts = [
        {detector, DetectorOptions},
        {broadcast, maps:get(broadcast, Config, #{})},
        {discovery, contacts(Contacts, maps:get(discovery, Config, #{}))},
        {roster, maps:get(roster, Config, #{})}
    ],
    PartBase = maps:merge(Base, maps:with([meta, members], Config)),
    {Begun, Acc} = lists:foldl(
        fun
            ({_Part, off}, Done) ->
                Done;
            ({Part, PartOptions}, {S, A}) ->
                PartConfig = PartBase#{seed => seed(Part, Seed), options => PartOptions},
                {Inner, PartEffects} = (module(Part, S)):init(PartConfig, Now),
                collect(PartEffects, Part, Now, set(Part, Inner, S), A)
        end,
        collect(Effects, strategy, Now, State, []),
        Parts
    ),
    done(stay_out(Now, Begun, Acc)).

split(off) -> {none, off};
split({Module, Options}) -> {Module, Options}.

%% Nobody has heard of this life, so that there is nobody to take leave of.
leaving(#{left := true}) -> left;
leaving(#{}) -> no.

stay_out(_Now, #state{leaving = no} = State, Acc) ->
    {State, Acc};
stay_out(Now, #state{leaving = left} = State0, Acc0) ->
    {State, Acc} = tell(roster, {cast, leave}, Now, State0, Acc0),
    tell(strategy, {cast, leave}, Now, State, Acc).

seed(Part, Seed) ->
    erlang:phash2({Part, Seed}).

contacts(_Contacts, off) -> off;
contacts(Contacts, Options) -> Options#{contacts => Contacts}.

%% @doc Takes one event. Casts are `{contacts, [Node]}' to add some, `{join, [Node]}'
%% to add them and join by them now, `{set_meta, Map}', `{broadcast, Payload}', `leave', `{tell, Term}' to the strategy, and
%% `{unreachable, Node}' from the link room, and `{bytes, Node}', that some have come from
%% it. Calls are `neighbours', `members', `status',
%% `{set_meta, Map}', `{broadcast, Payload}', `{broadcast, Payload, all | N, Ms}', which is answered as
%% {@link atoll_plumtree_waits:answer()} says, of all members of now, `leave', which is answered when the node has left, and
%% `{join, [Node], Ms}', answered when it has a neighbour or, with `{error, timeout}',
%% after so long; it goes on trying.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, {Start, Life, On, Message}}, Now, #state{lives = Lives} = State) ->
    Part = part(On, State),
    case Lives of
        #{From := {Start, Life}} ->
            done(tell(Part, {message, From, Message}, Now, State, []));
        #{From := Later} when Later > {Start, Life} ->
            {State#state{stale = State#state.stale + 1}, []};
        #{From := {Earlier, _}} when Earlier < Start ->
            {Restarted, Acc} = restarted(From, Now, State),
            done(tell(Part, {message, From, Message}, Now, live(From, Start, Life, Restarted), Acc));
        #{} ->
            %% The first since the link came up, or of a life begun in place.
            done(tell(Part, {message, From, Message}, Now, live(From, Start, Life, State), []))
    end;
handle({timeout, {hold, Node}}, _Now, State) ->
    done(release(Node, State));
handle({timeout, {join, Number}}, _Now, #state{joiners = Joiners0} = State) ->
    {From, Joiners} = maps:take(Number, Joiners0),
    {State#state{joiners = Joiners}, [{reply, From, {error, timeout}}]};
handle({timeout, {{strategy, Restarts}, Key}}, Now, #state{restarts = Restarts} = State) ->
    done(tell(strategy, {timeout, Key}, Now, State, []));
handle({timeout, {{strategy, _Earlier}, _Key}}, _Now, State) ->
    {State, []};
handle({timeout, {strategy, _Key}}, _Now, #state{restarts = Restarts} = State) when Restarts > 0 ->
    {State, []};
handle({timeout, {Part, Key}}, Now, State) ->
    done(tell(Part, {timeout, Key}, Now, State, []));
handle({up, Node}, _Now, #state{linked = Linked} = State) when is_map_key(Node, Linked) ->
    {State, []};
handle({up, Node}, Now, #state{linked = Linked} = State) ->
    {Flushed, Acc0} = flush(Node, State#state{linked = Linked#{Node => []}}),
    {Told, Acc1} = tell(strategy, {up, Node}, Now, Flushed, Acc0),
    {Linked1, Acc} = tell(discovery, {cast, {linked, Node}}, Now, Told, Acc1),
    done(tell(roster, {cast, {linked, Node}}, Now, Linked1, Acc));
handle({down, Node, Reason}, Now, #state{linked = Linked, lives = Lives} = State) ->
    Unlinked = State#state{linked = maps:remove(Node, Linked), lives = maps:remove(Node, Lives)},
    done(tell(strategy, {down, Node, Reason}, Now, Unlinked, []));
handle({cast, {unreachable, Node} = Notice}, Now, #state{outbox = Outbox0} = State0) ->
    {_Forgotten, Outbox} = atoll_outbox:take(Node, Outbox0),
    Released = release(Node, State0#state{outbox = Outbox}),
    done(
        lists:foldl(
            fun(Part, {S, Acc}) -> tell(Part, {cast, Notice}, Now, S, Acc) end,
            Released,
            [strategy, detector, discovery, roster]
        )
    );
handle({cast, {bytes, _} = Bytes}, Now, State) ->
    done(tell(detector, {cast, Bytes}, Now, State, []));
handle({cast, {contacts, _} = Contacts}, Now, State) ->
    done(tell(discovery, {cast, Contacts}, Now, State, []));
handle({cast, {join, Contacts}}, Now, State) ->
    done(join(Contacts, Now, State));
handle({cast, {set_meta, Meta}}, Now, State) ->
    done(tell(roster, {cast, {meta, Meta}}, Now, State, []));
handle({cast, {broadcast, _} = Broadcast}, Now, State) ->
    done(tell(broadcast, {cast, Broadcast}, Now, State, []));
handle({cast, leave}, Now, #state{roster = off} = State) ->
    done(tell(strategy, {cast, leave}, Now, State, []));
handle({cast, leave}, Now, State) ->
    done(leave(Now, State));
handle({cast, {tell, _} = Told}, Now, State) ->
    done(tell(strategy, {cast, Told}, Now, State, []));
handle({call, From, neighbours}, _Now, State) ->
    {State, [{reply, From, neighbours(State)}]};
handle({call, From, members}, _Now, State) ->
    {State, [{reply, From, members(State)}]};
handle({call, From, {set_meta, _}}, _Now, #state{roster = off} = State) ->
    {State, [{reply, From, {error, roster_off}}]};
handle({call, From, {set_meta, Meta}}, Now, State) ->
    %% Whoever asks after the answer sees it.
    {Told, Acc} = tell(roster, {cast, {meta, Meta}}, Now, State, []),
    done({Told, [{reply, From, ok} | Acc]});
handle({call, From, {broadcast, _}}, _Now, #state{broadcast = off} = State) ->
    {State, [{reply, From, {error, broadcast_off}}]};
handle({call, From, {broadcast, _}}, _Now, #state{leaving = left} = State) ->
    {State, [{reply, From, {error, left}}]};
handle({call, From, {broadcast, _} = Broadcast}, Now, State) ->
    done(tell(broadcast, {call, From, Broadcast}, Now, State, []));
handle({call, From, {broadcast, Payload, Need, Ms}}, Now, State) ->
    Members = members(State),
    case State of
        #state{broadcast = off} -> {State, [{reply, From, {error, broadcast_off}}]};
        #state{leaving = left} -> {State, [{reply, From, {error, left}}]};
        #state{roster = off} -> {State, [{reply, From, {error, roster_off}}]};
        #state{} when is_integer(Need), Need > length(Members) ->
            {State, [{reply, From, {error, {too_few_members, length(Members), Need}}}]};
        #state{} ->
            done(tell(broadcast, {call, From, {broadcast, Payload, Need, Ms, Members}}, Now, State, []))
    end;
handle({call, From, {join, Contacts, Ms}}, Now, State0) ->
    {State, Acc} = join(Contacts, Now, State0),
    done(wait_to_join(From, Ms, State, Acc));
handle({call, From, leave}, Now, State) ->
    done(call_leave(From, Now, State));
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{module = Module, strategy = Strategy}) ->
    Module:neighbours(Strategy).

%% @doc All members of the cluster as far as this node knows, in the order of their
%% names, itself among them unless it has left. Without a roster those are its
%% neighbours.
-spec members(state()) -> [node()].
members(#state{roster = off, self = Self, leaving = Leaving} = State) ->
    lists:usort([Self || Leaving =/= left] ++ neighbours(State));
members(#state{roster = Roster}) ->
    atoll_roster:members(Roster).

%% @doc What a member says of itself, as far as this node knows.
-spec meta(node(), state()) -> map().
meta(_Node, #state{roster = off}) -> #{};
meta(Node, #state{roster = Roster}) -> atoll_roster:meta(Node, Roster).

%% @doc The number of this node's present life.
-spec incarnation(state()) -> pos_integer().
incarnation(#state{incarnation = Incarnation}) ->
    Incarnation.

%% @doc What is worth keeping over a restart: nodes to try.
-spec remembered(state()) -> [node()].
remembered(#state{module = Module, strategy = Strategy}) ->
    lists:usort(Module:neighbours(Strategy) ++ Module:known(Strategy)).

%% @doc For people: each part's own summary, and what this module holds.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{} = State) ->
    Parts = [Part || Part <- [strategy, detector, broadcast, discovery, roster], get(Part, State) =/= off],
    maps:merge(
        #{
            incarnation => State#state.incarnation,
            links => map_size(State#state.linked),
            wants => map_size(State#state.wants),
            outbox => atoll_outbox:summary(State#state.outbox),
            held => map_size(State#state.held),
            leaving => State#state.leaving,
            waiting => map_size(State#state.joiners) + length(State#state.leavers),
            calls_refused => State#state.refused,
            stale => State#state.stale,
            foreign => State#state.foreign
        },
        maps:from_list([{Part, summary(module(Part, State), get(Part, State))} || Part <- Parts])
    ).

%% Nobody loses the overlay because somebody looks at it.
summary(Module, Inner) ->
    case atoll_plug:call(Module, summary, [Inner]) of
        {ok, Summary} -> Summary;
        {error, Crash} -> #{crashed => Crash}
    end.

%% Parts

module(strategy, #state{module = Module}) -> Module;
module(detector, #state{detector_module = Module}) -> Module;
module(broadcast, _) -> atoll_plumtree;
module(discovery, _) -> atoll_discovery;
module(roster, _) -> atoll_roster.

get(foreign, _State) -> foreign;
get(strategy, #state{strategy = Inner}) -> Inner;
get(detector, #state{detector = Inner}) -> Inner;
get(broadcast, #state{broadcast = Inner}) -> Inner;
get(discovery, #state{discovery = Inner}) -> Inner;
get(roster, #state{roster = Inner}) -> Inner.

set(strategy, Inner, State) -> State#state{strategy = Inner};
set(detector, Inner, State) -> State#state{detector = Inner};
set(broadcast, Inner, State) -> State#state{broadcast = Inner};
set(discovery, Inner, State) -> State#state{discovery = Inner};
set(roster, Inner, State) -> State#state{roster = Inner}.

%% One part takes an event; Acc has the effects so far, newest first.
-spec tell(part(), atoll_protocol:event(), atoll_protocol:now_ms(), state(), [atoll_protocol:effect()]) ->
    {state(), [atoll_protocol:effect()]}.
tell(Part, Event, Now, State, Acc) ->
    case get(Part, State) of
        off ->
            {State, Acc};
        foreign ->
            {State#state{foreign = State#state.foreign + 1}, Acc};
        Inner0 ->
            {Inner, Effects} = (module(Part, State)):handle(Event, Now, Inner0),
            collect(Effects, Part, Now, set(Part, Inner, State), Acc)
    end.

tell_all(Parts, Event, Now, State, Acc) ->
    lists:foldl(fun(Part, {S, A}) -> tell(Part, Event, Now, S, A) end, {State, Acc}, Parts).

done({State, Acc}) ->
    {State, lists:reverse(Acc)}.

collect([], _Part, _Now, State, Acc) ->
    {State, Acc};
collect([{send, _, _} | Effects], discovery, Now, #state{leaving = left} = State, Acc) ->
    %% It asks nobody until it is told to join.
    collect(Effects, discovery, Now, State, Acc);
collect([{send, Node, Message} | Effects], Part, Now, State0, Acc0) ->
    #state{start = Start, incarnation = Life, linked = Linked} = State0,
    Wrapped = {Start, Life, on_wire(Part, State0), Message},
    case Linked of
        #{Node := _} ->
            collect(Effects, Part, Now, State0, [{send, Node, Wrapped} | Acc0]);
        #{} ->
            {State, Acc} = post(Node, Wrapped, State0, Acc0),
            collect(Effects, Part, Now, State, Acc)
    end;
collect([{timer, Key, Ms} | Effects], Part, Now, State, Acc) ->
    collect(Effects, Part, Now, State, [{timer, {owner(Part, State), Key}, Ms} | Acc]);
collect([{cancel, Key} | Effects], Part, Now, State, Acc) ->
    collect(Effects, Part, Now, State, [{cancel, {owner(Part, State), Key}} | Acc]);
collect([{want, Node} | Effects], strategy, Now, #state{wants = Wants} = State, Acc) ->
    collect(Effects, strategy, Now, State#state{wants = Wants#{Node => []}}, [{want, Node} | Acc]);
collect([{unwant, Node} | Effects], strategy, Now, #state{wants = Wants} = State0, Acc0) ->
    {State, Acc} = unwant(Node, State0#state{wants = maps:remove(Node, Wants)}, Acc0),
    collect(Effects, strategy, Now, State, Acc);
collect([{reply, _, _} = Reply | Effects], broadcast, Now, State, Acc) ->
    collect(Effects, broadcast, Now, State, [Reply | Acc]);
collect([{notify, Notice} | Effects], Part, Now, State0, Acc0) ->
    {State, Acc} = notice(Part, Notice, Now, State0, Acc0),
    collect(Effects, Part, Now, State, Acc).

%% Detectors do not understand each other's messages: ours is `detector', and others have
%% names of their own.
on_wire(detector, #state{detector_module = Module}) when Module =/= none, Module =/= atoll_detector_watchers ->
    {detector, Module};
on_wire(Part, _State) -> Part.

part(On, State) ->
    case {On, on_wire(detector, State)} of
        {Same, Same} -> detector;
        {detector, _} -> foreign;
        {{detector, _}, _} -> foreign;
        {Part, _} -> Part
    end.

%% Timers of a strategy that is no more do not reach the next one.
owner(strategy, #state{restarts = Restarts}) when Restarts > 0 -> {strategy, Restarts};
owner(Part, _State) -> Part.

%% What a part has to say, to the others and to subscribers.

notice(strategy, {neighbour_up, Node} = Notice, Now, State0, Acc0) ->
    {State, Acc} = brought_back(Now, State0, Acc0),
    {Answered, Replies} = joined(State, [{notify, Notice} | Acc]),
    tell_all(?TOLD, {up, Node}, Now, Answered, Replies);
notice(strategy, {neighbour_down, Node, Why} = Notice, Now, State, Acc) ->
    tell_all(?TOLD, {down, Node, Why}, Now, State, [{notify, Notice} | Acc]);
notice(detector, {Verdict, Node, Life} = Notice, Now, #state{lives = Lives} = State0, Acc0) when
    Verdict =:= dead; Verdict =:= found_dead
->
    {State, Acc} = tell(roster, {cast, Notice}, Now, State0, [{notify, {dead, Node, Life}} | Acc0]),
    case {Lives, later_life(Node, State)} of
        %% Of a life that is over and replaced.
        {#{Node := {_, Later}}, _} when Later > Life -> {State, Acc};
        {_, Later} when Later > Life -> {State, Acc};
        _ -> tell(strategy, {cast, {dead, Node}}, Now, State, disconnect(Node, State, Acc))
    end;
notice(detector, {silent, Node}, Now, State, Acc) ->
    tell(strategy, {down, Node, silent}, Now, State, disconnect(Node, State, [{notify, {cleared, Node}} | Acc]));
notice(detector, {listen, _Node, _Ms} = Listen, _Now, State, Acc) ->
    {State, [{act, Listen} | Acc]};
notice(detector, {tell_some, Count, Message}, Now, State0, Acc) ->
    {Known, State} = known(Count, State0),
    collect([{send, Node, Message} || Node <- Known], detector, Now, State, Acc);
notice(detector, {stranger, Node}, Now, State, Acc) ->
    tell(strategy, {cast, {stranger, Node}}, Now, State, Acc);
notice(detector, {cargo, Node, Table}, Now, State, Acc) ->
    tell(discovery, {cast, {cargo, Node, Table}}, Now, State, Acc);
notice(detector, {buried, Life}, Now, State, Acc) ->
    begin_anew(Life, Now, State, Acc);
notice(discovery, {cargo, Table}, Now, State, Acc) ->
    tell(detector, {cast, {cargo, Table}}, Now, State, Acc);
notice(roster, {buried, Life}, Now, State, Acc) ->
    begin_anew(Life, Now, State, Acc);
notice(roster, {member_down, Node, _Why} = Notice, Now, State, Acc) ->
    tell(broadcast, {cast, {gone, Node}}, Now, State, [{notify, Notice} | Acc]);
notice(roster, left, _Now, #state{leaving = left} = State, Acc) ->
    %% It has stayed outside.
    {State, Acc};
notice(roster, left, Now, State, Acc) ->
    part(Now, State, Acc);
notice(discovery, {join, _}, _Now, #state{leaving = left} = State, Acc) ->
    {State, Acc};
notice(discovery, {alone, _}, _Now, #state{leaving = left} = State, Acc) ->
    {State, Acc};
notice(discovery, {join, Contacts}, Now, State, Acc) ->
    tell(strategy, {cast, {join, Contacts}}, Now, State, Acc);
notice(discovery, {alone, Draw}, Now, State, Acc) ->
    join_by_known(Draw, Now, State, Acc);
notice(roster, {found, Node}, Now, #state{leaving = no} = State, Acc) ->
    join_by([Node], Now, State, Acc);
notice(roster, {found, _Node}, _Now, State, Acc) ->
    {State, Acc};
notice(_Part, Notice, _Now, State, Acc) ->
    {State, [{notify, Notice} | Acc]}.

%% The life that goes on as far as the roster knows; 0 if none does.
later_life(_Node, #state{roster = off}) -> 0;
later_life(Node, #state{roster = Roster}) -> atoll_roster:life(Node, Roster).

disconnect(Node, #state{linked = Linked}, Acc) ->
    case Linked of
        #{Node := _} -> [{act, {disconnect, Node}} | Acc];
        #{} -> Acc
    end.

%% Lives

live(Node, Start, Life, #state{linked = Linked, lives = Lives} = State) ->
    case Linked of
        #{Node := _} -> State#state{lives = Lives#{Node => {Start, Life}}};
        #{} -> State
    end.

%% Lives are known of peers with a link alone.
restarted(Node, Now, State) ->
    {Down, Acc} = tell(strategy, {down, Node, restarted}, Now, State, []),
    tell(strategy, {up, Node}, Now, Down, Acc).

begin_anew(Life, Now, #state{incarnation = Present} = State, Acc) when Life >= Present ->
    tell_all(
        [detector, broadcast, roster],
        {cast, {incarnation, Life + 1}},
        Now,
        State#state{incarnation = Life + 1},
        [{notify, {reborn, Life + 1}} | Acc]
    );
begin_anew(_Earlier, _Now, State, Acc) ->
    {State, Acc}.

%% Joining and leaving

join(Contacts, Now, State0) ->
    {State1, Acc1} = come_back(Now, State0),
    {State, Acc} = tell(discovery, {cast, {join, Contacts}}, Now, State1, Acc1),
    tell(strategy, {cast, {join, Contacts}}, Now, State, Acc).

%% The life that was taken leave of is over.
come_back(_Now, #state{leaving = no} = State) ->
    {State, []};
come_back(Now, #state{leaving = farewell, incarnation = Life} = State0) ->
    {State, Acc} = answer_leavers(State0#state{leaving = no}, []),
    begin_anew(Life, Now, State, Acc);
come_back(Now, #state{leaving = left, incarnation = Life} = State0) ->
    {State, Acc} = begin_anew(Life, Now, State0#state{leaving = no}, []),
    restart_strategy(Now, State, Acc).

%% A strategy that was told something may come back without being told to join.
brought_back(Now, #state{leaving = left, incarnation = Life} = State, Acc) ->
    begin_anew(Life, Now, State#state{leaving = no}, Acc);
brought_back(_Now, State, Acc) ->
    {State, Acc}.

%% It has parted from all; should there be something left of that, it ends here.
restart_strategy(Now, #state{module = Module, strategy = Old, config = Config} = State0, Acc0) ->
    {State1, Acc1} = lists:foldl(
        fun(Node, {S, A}) -> notice(strategy, {neighbour_down, Node, dropped}, Now, S, A) end,
        {State0, Acc0},
        Module:neighbours(Old)
    ),
    {State2, Acc2} = lists:foldl(
        fun(Node, {S, A}) -> unwant(Node, S#state{wants = maps:remove(Node, S#state.wants)}, A) end,
        {State1, Acc1},
        lists:sort(maps:keys(State1#state.wants))
    ),
    {Strategy, Effects} = Module:init(
        Config#{incarnation => State2#state.incarnation, remembered => Module:known(Old)}, Now
    ),
    State3 = State2#state{strategy = Strategy, restarts = State2#state.restarts + 1},
    {State, Acc} = collect(Effects, strategy, Now, State3, Acc2),
    lists:foldl(
        fun(Node, {S, A}) -> tell(strategy, {up, Node}, Now, S, A) end,
        {State, Acc},
        lists:sort(maps:keys(State#state.linked))
    ).

%% Others of the linked ones each time.
join_by_known(Draw, Now, #state{linked = Linked} = State0, Acc) ->
    {Known, State} = known(?KNOWN, State0),
    Sorted = lists:sort(maps:keys(Linked)),
    {Before, After} = lists:split(Draw rem max(1, length(Sorted)), Sorted),
    join_by(lists:usort(lists:sublist(After ++ Before, ?KNOWN) ++ Known), Now, State, Acc).

known(_Count, #state{roster = off} = State) ->
    {[], State};
known(Count, #state{roster = Roster0} = State) ->
    {Known, Roster} = atoll_roster:some(Count, Roster0),
    {Known, State#state{roster = Roster}}.

%% To `static' a join is a link that stays until somebody parts the two.
join_by([], _Now, State, Acc) -> {State, Acc};
join_by(_Nodes, _Now, #state{module = atoll_static} = State, Acc) -> {State, Acc};
join_by(Nodes, Now, State, Acc) -> tell(strategy, {cast, {join, Nodes}}, Now, State, Acc).

wait_to_join(From, Ms, #state{joiners = Joiners, calls = Calls, refused = Refused} = State, Acc) ->
    case neighbours(State) of
        [_ | _] ->
            {State, [{reply, From, ok} | Acc]};
        [] when map_size(Joiners) >= ?MAX_WAITING ->
            {State#state{refused = Refused + 1}, [{reply, From, {error, overloaded}} | Acc]};
        [] ->
            Number = Calls + 1,
            {State#state{joiners = Joiners#{Number => From}, calls = Number}, [{timer, {join, Number}, Ms} | Acc]}
    end.

joined(#state{joiners = Joiners} = State, Acc) when map_size(Joiners) =:= 0 ->
    {State, Acc};
joined(#state{joiners = Joiners} = State, Acc) ->
    {
        State#state{joiners = #{}},
        lists:foldl(
            fun({Number, From}, A) -> [{reply, From, ok}, {cancel, {join, Number}} | A] end,
            Acc,
            lists:sort(maps:to_list(Joiners))
        )
    }.

call_leave(From, _Now, #state{leaving = left} = State) ->
    {State, [{reply, From, ok}]};
call_leave(From, _Now, #state{leavers = Leavers, refused = Refused} = State) when length(Leavers) >= ?MAX_WAITING ->
    %% It leaves, as it has been asked to before.
    {State#state{refused = Refused + 1}, [{reply, From, ok}]};
call_leave(From, Now, #state{leavers = Leavers} = State) ->
    leave(Now, State#state{leavers = [From | Leavers]}).

leave(Now, #state{leaving = no, roster = off} = State) ->
    part(Now, State, []);
leave(Now, #state{leaving = no} = State) ->
    tell(roster, {cast, leave}, Now, State#state{leaving = farewell}, []);
leave(_Now, State) ->
    {State, []}.

part(Now, State0, Acc0) ->
    {State1, Acc1} = tell(broadcast, {cast, leave}, Now, State0, Acc0),
    {State, Acc} = tell(strategy, {cast, leave}, Now, State1#state{leaving = left}, Acc1),
    answer_leavers(State, [{notify, left} | Acc]).

answer_leavers(#state{leavers = Leavers} = State, Acc) ->
    {State#state{leavers = []}, [{reply, From, ok} || From <- Leavers] ++ Acc}.

%% Sending without a link

post(Node, _Message, #state{self = Node} = State, Acc) ->
    {State, Acc};
post(Node, Message, #state{outbox = Outbox0, held = Held} = State, Acc) ->
    case atoll_outbox:put(Node, Message, Outbox0) of
        {connect, Outbox} ->
            %% It may be held for the answer to an earlier message, over a link that is gone.
            Cancel = [{cancel, {hold, Node}} || is_map_key(Node, Held)],
            {State#state{outbox = Outbox, held = Held#{Node => []}}, [{want, Node} | Cancel ++ Acc]};
        {_, Outbox} ->
            {State#state{outbox = Outbox}, Acc}
    end.

flush(Node, #state{outbox = Outbox0} = State) ->
    case atoll_outbox:take(Node, Outbox0) of
        {[], _} ->
            {State, []};
        {Messages, Outbox} ->
            Sends = [{send, Node, Message} || Message <- Messages],
            {State#state{outbox = Outbox}, [{timer, {hold, Node}, ?HOLD_MS} | lists:reverse(Sends)]}
    end.

%% The link is not wanted for messages any more.
release(Node, #state{held = Held} = State) ->
    unwant(Node, State#state{held = maps:remove(Node, Held)}, []).

%% One want of two reasons.
unwant(Node, #state{wants = Wants, held = Held} = State, Acc) ->
    case is_map_key(Node, Wants) orelse is_map_key(Node, Held) of
        true -> {State, Acc};
        false -> {State, [{unwant, Node} | Acc]}
    end.
