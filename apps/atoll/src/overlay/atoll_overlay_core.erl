%% @doc The overlay of one node, as one pure protocol made of parts: a strategy
%% ({@link atoll_strategy}) that chooses the neighbours, failure detection
%% ({@link atoll_detector}), broadcast ({@link atoll_plumtree}), and discovery
%% ({@link atoll_discovery}). Each part is a pure protocol of its own. This module
%% routes what happens to the part that it concerns, and tells parts of each other:
%%
%% <ul>
%% <li>The strategy's neighbours are those that the detector watches, that
%%   broadcasts go to, and by which discovery knows whether the node is alone.</li>
%% <li>A verdict of the detector goes to the strategy as `{dead, Node}', and closes
%%   the link, so that monitors over it fire too; a neighbour that is silent on our
%%   own link only goes as `{down, Node, silent}'.</li>
%% <li>Discovery's table travels in the detector's beats, and what discovery says
%%   to join goes to the strategy.</li>
%% </ul>
%%
%% Lives. Every message carries when its sender was started, and the number of its
%% present life. One of an earlier life is dropped. The first one of a later start is
%% preceded by `{down, Node, restarted}' to all parts, also when the real `down' is
%% late, and that one is not passed on then. A node that hears that its present life
%% was declared dead begins a new one in place, with what it has: its links and its
%% neighbours stay, and whoever has buried it has closed its own links already.
%%
%% A part may send to any node. Without a link the message waits in an outbox, the
%% link is wanted for it, and wanted for a while longer, for an answer.
%%
%% Promised: the parts see of each peer one life after the other, and links and
%% neighbours in alternation of up and down. Not promised: that a message arrives;
%% the parts are built for that.
-module(atoll_overlay_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3, neighbours/1, incarnation/1, remembered/1, summary/1]).

-export_type([config/0, notice/0, state/0]).

-type config() :: #{
    self := node(),
    incarnation := pos_integer(),
    seed := integer(),
    %% The options are complete: see atoll_strategy:options/2.
    strategy := {module(), atoll_strategy:options()},
    %% Nodes to join by.
    contacts => [node()],
    %% Nodes that were known before a restart, if that was kept.
    remembered => [node()],
    %% The options of each part that differ from its defaults; without the part.
    detector => atoll_detector:options() | off,
    broadcast => atoll_plumtree:options() | off,
    discovery => atoll_discovery:options() | off
}.

-type notice() ::
    atoll_strategy:notice()
    | {broadcast, From :: node(), Payload :: term()}
    %% So many messages of that sender cannot be had any more.
    | {missed, From :: node(), pos_integer()}
    | {suspect, node()}
    | {cleared, node()}
    | {dead, node(), Incarnation :: pos_integer()}
    %% This node's life was declared dead; it goes on as this one.
    | {reborn, Incarnation :: pos_integer()}.

-type part() :: strategy | detector | broadcast | discovery.

-record(state, {
    self :: node(),
    %% The incarnation that it was started as, and that of its present life.
    start :: pos_integer(),
    incarnation :: pos_integer(),
    module :: module(),
    strategy :: term(),
    detector = off :: term(),
    broadcast = off :: term(),
    discovery = off :: term(),
    %% Peers that a link is up with.
    linked = #{} :: #{node() => []},
    %% What each peer was started as and its life, if it was heard since its link
    %% came up.
    lives = #{} :: #{node() => {Start :: pos_integer(), Life :: pos_integer()}},
    %% Peers whose new life was heard before the end of the link with the old one.
    overtaken = #{} :: #{node() => []},
    wants = #{} :: #{node() => []},
    outbox :: atoll_outbox:outbox(),
    %% Peers that are wanted for the outbox.
    held = #{} :: #{node() => []},
    stale = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% How many nodes the outbox waits for, and with how many messages each.
-define(OUTBOX_NODES, 64).
-define(OUTBOX_MESSAGES, 32).
%% How long a link that was made for a message is wanted for its answer.
-define(HOLD_MS, 2000).

%% @doc A node that knows its contacts and has no neighbours.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, strategy := {Module, Options}} = Config, Now) ->
    Contacts = maps:get(contacts, Config, []),
    Base = #{self => Self, incarnation => Incarnation},
    {Strategy, Effects} = Module:init(
        Base#{seed => seed(strategy, Seed), options => Options, remembered => maps:get(remembered, Config, [])},
        Now
    ),
    State = #state{
        self = Self,
        start = Incarnation,
        incarnation = Incarnation,
        module = Module,
        strategy = Strategy,
        outbox = atoll_outbox:new(?OUTBOX_NODES, ?OUTBOX_MESSAGES)
    },
    Parts = [
        {detector, maps:get(detector, Config, #{})},
        {broadcast, maps:get(broadcast, Config, #{})},
        {discovery, contacts(Contacts, maps:get(discovery, Config, #{}))}
    ],
    done(
        lists:foldl(
            fun
                ({_Part, off}, Done) ->
                    Done;
                ({Part, PartOptions}, {S, Acc}) ->
                    PartConfig = Base#{seed => seed(Part, Seed), options => PartOptions},
                    {Inner, PartEffects} = (module(Part, S)):init(PartConfig, Now),
                    collect(PartEffects, Part, Now, set(Part, Inner, S), Acc)
            end,
            collect(Effects, strategy, Now, State, []),
            Parts
        )
    ).

seed(Part, Seed) ->
    erlang:phash2({Part, Seed}).

contacts(_Contacts, off) -> off;
contacts(Contacts, Options) -> Options#{contacts => Contacts}.

%% @doc Takes one event. Casts are `{contacts, [Node]}' to add some, `{join, [Node]}'
%% to add them and join by them now, `{broadcast, Payload}', `leave', `{tell, Term}' to the strategy, and
%% `{unreachable, Node}' from the link room; calls are `neighbours' and `status'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, {Start, Life, Part, Message}}, Now, #state{lives = Lives} = State) ->
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
handle({timeout, {Part, Key}}, Now, State) ->
    done(tell(Part, {timeout, Key}, Now, State, []));
handle({up, Node}, _Now, #state{linked = Linked} = State) when is_map_key(Node, Linked) ->
    {State, []};
handle({up, Node}, Now, #state{linked = Linked} = State) ->
    {Flushed, Acc} = flush(Node, State#state{linked = Linked#{Node => []}}),
    done(tell(strategy, {up, Node}, Now, Flushed, Acc));
handle({down, Node, _Reason}, _Now, #state{overtaken = Overtaken} = State) when is_map_key(Node, Overtaken) ->
    %% The parts have heard; the link with the new life is up, or comes up now.
    {State#state{overtaken = maps:remove(Node, Overtaken)}, []};
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
            [strategy, detector, discovery]
        )
    );
handle({cast, {contacts, _} = Contacts}, Now, State) ->
    done(tell(discovery, {cast, Contacts}, Now, State, []));
handle({cast, {join, Contacts} = Join}, Now, State0) ->
    {State, Acc} = tell(discovery, {cast, {contacts, Contacts}}, Now, State0, []),
    done(tell(strategy, {cast, Join}, Now, State, Acc));
handle({cast, {broadcast, _} = Broadcast}, Now, State) ->
    done(tell(broadcast, {cast, Broadcast}, Now, State, []));
handle({cast, leave}, Now, State) ->
    done(tell(strategy, {cast, leave}, Now, State, []));
handle({cast, {tell, _} = Told}, Now, State) ->
    done(tell(strategy, {cast, Told}, Now, State, []));
handle({call, From, neighbours}, _Now, State) ->
    {State, [{reply, From, neighbours(State)}]};
handle({call, From, status}, _Now, State) ->
    {State, [{reply, From, summary(State)}]}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{module = Module, strategy = Strategy}) ->
    Module:neighbours(Strategy).

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
    Parts = [Part || Part <- [strategy, detector, broadcast, discovery], get(Part, State) =/= off],
    maps:merge(
        #{
            incarnation => State#state.incarnation,
            links => map_size(State#state.linked),
            wants => map_size(State#state.wants),
            outbox => atoll_outbox:summary(State#state.outbox),
            held => map_size(State#state.held),
            overtaken => map_size(State#state.overtaken),
            stale => State#state.stale
        },
        maps:from_list([{Part, (module(Part, State)):summary(get(Part, State))} || Part <- Parts])
    ).

%% Parts

module(strategy, #state{module = Module}) -> Module;
module(detector, _) -> atoll_detector;
module(broadcast, _) -> atoll_plumtree;
module(discovery, _) -> atoll_discovery.

get(strategy, #state{strategy = Inner}) -> Inner;
get(detector, #state{detector = Inner}) -> Inner;
get(broadcast, #state{broadcast = Inner}) -> Inner;
get(discovery, #state{discovery = Inner}) -> Inner.

set(strategy, Inner, State) -> State#state{strategy = Inner};
set(detector, Inner, State) -> State#state{detector = Inner};
set(broadcast, Inner, State) -> State#state{broadcast = Inner};
set(discovery, Inner, State) -> State#state{discovery = Inner}.

%% One part takes an event; Acc has the effects so far, newest first.
-spec tell(part(), atoll_protocol:event(), atoll_protocol:now_ms(), state(), [atoll_protocol:effect()]) ->
    {state(), [atoll_protocol:effect()]}.
tell(Part, Event, Now, State, Acc) ->
    case get(Part, State) of
        off ->
            {State, Acc};
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
collect([{send, Node, Message} | Effects], Part, Now, State0, Acc0) ->
    #state{start = Start, incarnation = Life, linked = Linked} = State0,
    Wrapped = {Start, Life, Part, Message},
    case Linked of
        #{Node := _} ->
            collect(Effects, Part, Now, State0, [{send, Node, Wrapped} | Acc0]);
        #{} ->
            {State, Acc} = post(Node, Wrapped, State0, Acc0),
            collect(Effects, Part, Now, State, Acc)
    end;
collect([{timer, Key, Ms} | Effects], Part, Now, State, Acc) ->
    collect(Effects, Part, Now, State, [{timer, {Part, Key}, Ms} | Acc]);
collect([{cancel, Key} | Effects], Part, Now, State, Acc) ->
    collect(Effects, Part, Now, State, [{cancel, {Part, Key}} | Acc]);
collect([{want, Node} | Effects], strategy, Now, #state{wants = Wants} = State, Acc) ->
    collect(Effects, strategy, Now, State#state{wants = Wants#{Node => []}}, [{want, Node} | Acc]);
collect([{unwant, Node} | Effects], strategy, Now, #state{wants = Wants} = State0, Acc0) ->
    {State, Acc} = unwant(Node, State0#state{wants = maps:remove(Node, Wants)}, Acc0),
    collect(Effects, strategy, Now, State, Acc);
collect([{notify, Notice} | Effects], Part, Now, State0, Acc0) ->
    {State, Acc} = notice(Part, Notice, Now, State0, Acc0),
    collect(Effects, Part, Now, State, Acc).

%% What a part has to say, to the others and to subscribers.

notice(strategy, {neighbour_up, Node} = Notice, Now, State, Acc) ->
    tell_all([detector, broadcast, discovery], {up, Node}, Now, State, [{notify, Notice} | Acc]);
notice(strategy, {neighbour_down, Node, Why} = Notice, Now, State, Acc) ->
    tell_all([detector, broadcast, discovery], {down, Node, Why}, Now, State, [{notify, Notice} | Acc]);
notice(detector, {dead, Node, Life} = Notice, Now, #state{lives = Lives} = State, Acc) ->
    case Lives of
        #{Node := {_, Later}} when Later > Life ->
            %% Of a life that is over and replaced.
            {State, [{notify, Notice} | Acc]};
        #{} ->
            tell(strategy, {cast, {dead, Node}}, Now, State, disconnect(Node, State, [{notify, Notice} | Acc]))
    end;
notice(detector, {silent, Node}, Now, State, Acc) ->
    tell(strategy, {down, Node, silent}, Now, State, disconnect(Node, State, Acc));
notice(detector, {stranger, Node}, Now, State, Acc) ->
    tell(strategy, {cast, {stranger, Node}}, Now, State, Acc);
notice(detector, {cargo, Node, Table}, Now, State, Acc) ->
    tell(discovery, {cast, {cargo, Node, Table}}, Now, State, Acc);
notice(detector, {buried, Life}, Now, State, Acc) ->
    begin_anew(Life, Now, State, Acc);
notice(discovery, {cargo, Table}, Now, State, Acc) ->
    tell(detector, {cast, {cargo, Table}}, Now, State, Acc);
notice(discovery, {join, Contacts}, Now, State, Acc) ->
    tell(strategy, {cast, {join, Contacts}}, Now, State, Acc);
notice(_Part, Notice, _Now, State, Acc) ->
    {State, [{notify, Notice} | Acc]}.

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
restarted(Node, Now, #state{overtaken = Overtaken} = State0) ->
    State = State0#state{overtaken = Overtaken#{Node => []}},
    {Down, Acc} = tell(strategy, {down, Node, restarted}, Now, State, []),
    tell(strategy, {up, Node}, Now, Down, Acc).

begin_anew(Life, Now, #state{incarnation = Present} = State, Acc) when Life >= Present ->
    tell_all(
        [detector, broadcast],
        {cast, {incarnation, Life + 1}},
        Now,
        State#state{incarnation = Life + 1},
        [{notify, {reborn, Life + 1}} | Acc]
    );
begin_anew(_Earlier, _Now, State, Acc) ->
    {State, Acc}.

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
