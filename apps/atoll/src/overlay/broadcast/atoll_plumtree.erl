%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Broadcast to all nodes of an overlay: Plumtree (Leitão, Pereira, Rodrigues,
%% "Epidemic Broadcast Trees", SRDS 2007), with a tree per sender.
%%
%% A message is sent on to the *eager* neighbours at once and announced to the *lazy*
%% ones a little later, many announcements in one message. All neighbours are eager at
%% first. One that comes later is lazy in the trees that have a parent, unless it asks for
%% a baseline. Whoever gets a message a second time says so (prune), and the two
%% make each other lazy in that sender's tree; what remains of a flood is a tree. Whoever
%% hears of a message and does not get it asks an announcer for it (graft), which
%% makes that link eager and repairs the tree. And a link over which a message would have
%% come in clearly fewer hops than over the parent takes the parent's place.
%%
%% From time to time a node sends one neighbour the digest of what it has seen. The
%% neighbour sends what is lacking there, and asks for what is lacking here. So one
%% exchange is enough for a node that was cut off. It does not wait for its time where something
%% says that something is lacking: when the first neighbour comes after a time without; when messages
%% come that leave a large gap, or a small one that no announcement closes; when a sender wants to know
%% of a message that has not come; and when a node has sent something before it knew what others have
%% seen, maybe to nobody.
%%
%% A node that starts is *fresh*: it asks its neighbours what they have seen, and counts
%% that as seen too. It gets no history, only what is sent from then on, and what it
%% happens to hear before. If nobody that is settled itself answers in `fresh_ms',
%% because the whole cluster has just started, it begins with what it has heard.
%%
%% Where it differs from the paper: a tree per sender, of which only the lazy neighbours
%% are kept; the parent is remembered, a duplicate from it does not prune, and a prune
%% from it is answered with a graft, since otherwise copies that cross each other cut
%% nodes off; paths are compared by the same message, so that no node follows one that
%% follows it, and by duplicates too; a lazy neighbour is asked to take the place of a
%% parent that is lost, before anything is missing; the announcers of one sender's missing
%% messages are asked so that as few links as possible become eager; what an exchange
%% brought is announced to all neighbours, so that an island catches up faster than by
%% exchanges alone; and the exchange itself.
%%
%% Promised:
%% <ul>
%% <li>Each message is delivered at most once in each life of a node, its sender
%%   included, as long as there are not more than `max_senders' senders.</li>
%% <li>If the overlay is connected for long enough, every node that is settled when a
%%   message is sent delivers it, or is told that it missed it: `{missed, Sender,
%%   Count}'. It is missed when `patience' exchanges in a row, and one with each of the
%%   neighbours or with eight of them, found that they do not have it to give, or when
%%   the sender is `window' messages further. Nothing is waited for for ever.</li>
%% <li>The messages of one life of a sender are delivered in the order in which it sent them, and
%%   `missed' comes in the place of those that it counts: one that comes early is held until
%%   those before it have come or are missed. When it has been held for `hold_ms' all those
%%   are missed, for whatever reason they have not come. So it is from the moment on at which a
%%   node is settled; what a fresh one hears is delivered as it comes. With the option
%%   `{order, none}' nothing is held, and nothing of this is promised.</li>
%% <li>A node that sends faster than others can be sure to get it is told so: an own message stays in
%%   the cache for `keep_ms', whatever others send, and while there is no room for one
%%   more none is sent.</li>
%% <li>A sender that asks for it is told which members have delivered a message, or which have not
%%   said so in time ({@link atoll_plumtree_acks}). Whoever it is told of has; of the others
%%   it does not know.</li>
%% <li>Every table has a bound, and what is dropped is counted ({@link summary/1}).</li>
%% </ul>
%%
%% Not promised: an order among the messages of different senders. That messages which
%% an earlier life of a sender sent arrive after the first of its new life: they are
%% dropped, and only the known gaps among them are told as missed. The messages of a
%% sender that stopped before anybody had them. Anything at all to a node that is fresh.
%% With more than `max_senders' senders, those that were silent longest are forgotten: a
%% late copy of a forgotten sender's message is delivered again, and messages before the
%% first that is heard of a sender may be lost without being told. A large payload is
%% not cut in pieces: an answer with many of them holds the link for as long as it takes.
%%
%% It is long because a message that comes touches all of it: the tree, the order, what is missing
%% and the exchanges. What can be said of one of these alone is data of its own, in the
%% modules whose names begin like this one's.
-module(atoll_plumtree).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3, summary/1, payloads/1]).

-export_type([config/0, options/0, message/0, payload/0, notice/0, state/0]).

-type config() :: #{
    self := node(),
    %% Grows with each start of the node.
    incarnation := pos_integer(),
    seed := integer(),
    %% See options/0; those not given have their defaults.
    options := options()
}.

-type options() :: atoll_options:options().

-type message() ::
    %% The payload, and how many links it has crossed when it arrives.
    atoll_plumtree_cache:message()
    %% In this sender's tree: send me announcements only.
    | {prune, Root :: node()}
    %% I have these; Hops as if I had sent the message itself.
    | {ihave, [
        {Root :: node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq(), Hops :: pos_integer()}
    ]}
    %% In this sender's tree: send me messages, beginning with these.
    | {graft, Root :: node(), [{atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq()}]}
    %% A fresh node asks for a baseline; a settled one answers.
    | baseline
    | {baseline, Complete :: boolean(), atoll_plumtree_seen:digest()}
    %% What I have seen.
    | {exchange, Complete :: boolean(), atoll_plumtree_seen:digest()}
    %% Where I lack something that you have; what you lack; what of that is gone.
    | {answer, atoll_plumtree_seen:digest(), [atoll_plumtree_cache:message()], [gone()]}
    | {rest, [atoll_plumtree_cache:message()], [gone()]}
    | atoll_plumtree_acks:message().

%% As it travels: one that is to be acknowledged says its number itself. Whoever broadcasts sends
%% no payload that looks like that; the overlay's are `{Topic, Payload}'.
-type payload() :: {acknowledge, atoll_plumtree_waits:id(), term()} | term().

-type gone() :: {Root :: node(), atoll_plumtree_mark:incarnation(), Upto :: pos_integer()}.

-type notice() ::
    {broadcast, From :: node(), Payload :: term()}
    | {missed, From :: node(), Count :: pos_integer()}.

-record(state, {
    self :: node(),
    incarnation :: pos_integer(),
    %% Of the last own message in this incarnation.
    seq = 0 :: non_neg_integer(),
    options :: atoll_options:options(),
    %% The neighbours, in the order in which they came.
    up = [] :: [node()],
    %% Those among them with whom no exchange was begun since they came.
    unmet = [] :: [node()],
    %% Until when a baseline is looked for, once there are neighbours.
    fresh_until = never :: never | atoll_protocol:now_ms(),
    seen :: atoll_plumtree_seen:seen(),
    trees :: atoll_plumtree_trees:trees(),
    missing :: atoll_plumtree_missing:missing(),
    cache :: atoll_plumtree_cache:cache(),
    held :: atoll_plumtree_held:held(),
    acks :: atoll_plumtree_acks:acks(),
    %% Announcements to be made, newest first, and to whom.
    pending = [] :: [{tuple(), [node()]}],
    pending_size = 0 :: non_neg_integer(),
    %% No exchange because of a large gap, or for a sender that asks, before this.
    hurry_at :: atoll_protocol:now_ms(),
    payloads = 0 :: non_neg_integer(),
    delivered = 0 :: non_neg_integer(),
    hops_max = 0 :: non_neg_integer(),
    counts :: #{atom() => non_neg_integer()},
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% How many different neighbours are enough to say for all that something is gone.
-define(WITNESSES, 8).
%% A gap of that many messages is more than messages overtaking each other.
-define(GAP, 8).

%% @doc The options with their defaults; times are in milliseconds.
-spec options() -> atoll_options:known().
options() ->
    #{
        %% How long announcements are collected, and how many at most.
        lazy_ms => {pos_integer, 300},
        ihave_max => {pos_integer, 500},
        %% How long after an announcement the message is asked for, and again.
        graft_ms => {pos_integer, 500},
        missing_max => {pos_integer, 1000},
        %% How many hops less are worth a change of parent. With 1 the tree comes down to
        %% the shortest paths that the overlay has; the paper takes more.
        threshold => {pos_integer, 1},
        exchange_ms => {pos_integer, 10000},
        %% Messages in one answer.
        exchange_max => {pos_integer, 1000},
        patience => {pos_integer, 3},
        fresh_ms => {pos_integer, 2000},
        cache_max => {pos_integer, 8192},
        cache_bytes => {pos_integer, 33554432},
        %% How long an own message is certainly kept for those who ask for it: twice
        %% lazy_ms and graft_ms. What the cache has no room for is not sent.
        keep_ms => {non_neg_integer, 1600},
        max_trees => {pos_integer, 64},
        max_senders => {pos_integer, 1024},
        window => {pos_integer, 4096},
        %% Whether what comes early waits for what its sender sent before, how much may
        %% wait, and for how long.
        order => {{one_of, [fifo, none]}, fifo},
        held_max => {pos_integer, 4096},
        held_bytes => {pos_integer, 16777216},
        hold_ms => {pos_integer, 60000},
        %% See atoll_plumtree_acks.
        ack_ms => {pos_integer, 50},
        ask_ms => {pos_integer, 1000},
        acks_max => {pos_integer, 256},
        waits_max => {pos_integer, 64}
    }.

%% @doc The state of a node without neighbours.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Given}, Now) ->
    {ok, Options} = atoll_options:complete(?MODULE, Given),
    #{max_senders := MaxSenders, window := Window, max_trees := MaxTrees} = Options,
    #{missing_max := MissingMax, graft_ms := GraftMs} = Options,
    #{cache_max := CacheMax, cache_bytes := CacheBytes, keep_ms := KeepMs} = Options,
    #{held_max := HeldMax, held_bytes := HeldBytes} = Options,
    Counts =
        [duplicates, fetched, grafts, prunes, swaps, ihaves, exchanges, missed] ++
            [old, own, unasked, uncached, strangers, early, refused],
    exchange_timer(#state{
        self = Self,
        incarnation = Incarnation,
        options = Options,
        seen = atoll_plumtree_seen:new(MaxSenders, Window),
        trees = atoll_plumtree_trees:new(MaxTrees),
        missing = atoll_plumtree_missing:new(MissingMax, GraftMs),
        cache = atoll_plumtree_cache:new(#{
            self => Self,
            max => CacheMax,
            max_bytes => CacheBytes,
            %% What is further back than the window nobody asks for.
            own_max => Window,
            keep_ms => KeepMs
        }),
        held = atoll_plumtree_held:new(HeldMax, HeldBytes),
        acks = atoll_plumtree_acks:new(Self, Options),
        hurry_at = Now,
        counts = maps:from_list([{Count, 0} || Count <- Counts]),
        rand = atoll_random:seed(Seed)
    }).

%% @doc Takes one event. The casts are `{broadcast, Payload}' and `{incarnation, I}'; the call
%% `{broadcast, Payload}' is answered with `ok', or with `{error, overloaded}' where nothing is
%% sent, as with a cast then. The call `{broadcast, Payload, Need, Ms, Members}' is answered when
%% as many of these have acknowledged, or cannot any more, or after so long, see
%% {@link atoll_plumtree_waits:answer()}; the cast `{gone, Node}' says that one is a member no more,
%% and `leave' that this node has left.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, {gossip, Root, Incarnation, Seq, Hops, Payload}}, Now, State) ->
    gossip(From, Root, Incarnation, Seq, Hops, Payload, Now, State);
handle({message, From, {ihave, Announcements}}, Now, State) ->
    case is_neighbour(From, State) of
        false -> {count(strangers, 1, State), []};
        true -> announced(From, Announcements, Now, State)
    end;
handle({message, From, {prune, Root}}, Now, State) ->
    case is_neighbour(From, State) of
        true -> pruned(From, Root, Now, State);
        false -> {count(strangers, 1, State), []}
    end;
handle({message, From, {graft, Root, Ids}}, Now, State) ->
    graft(From, Root, Ids, Now, State);
handle({message, From, {exchange, Complete, Digest}}, Now, State) ->
    exchange(From, Complete, Digest, adopt(Complete, Digest, Now, State));
handle({message, From, {answer, Lacks, Messages, Gone}}, Now, State) ->
    answer(From, Lacks, Messages, Gone, Now, State);
handle({message, From, {rest, Messages, Gone}}, Now, State) ->
    fetched(From, Messages, Gone, Now, State);
handle({message, _From, {acks, List}}, _Now, #state{acks = Acks} = State) ->
    acks(atoll_plumtree_acks:received(List, Acks), State);
handle({message, From, {acks_wanted, Ids}}, Now, #state{acks = Acks} = State0) ->
    {State, Exchange} = get_wanted(From, Ids, Now, State0),
    {State, atoll_plumtree_acks:wanted(From, Ids, Acks) ++ Exchange};
handle({message, From, baseline}, _Now, #state{seen = Seen} = State) ->
    case is_fresh(State) of
        true ->
            {State, []};
        false ->
            Eager = State#state{trees = atoll_plumtree_trees:lost(From, State#state.trees)},
            {Eager, [{send, From, {baseline, atoll_plumtree_seen:is_complete(Seen), digest(State)}}]}
    end;
handle({message, _From, {baseline, Complete, Digest}}, Now, State) ->
    case is_fresh(State) of
        true -> make_up(adopt(Complete, Digest, Now, State));
        false -> {State, []}
    end;
handle({up, Node}, Now, #state{up = Up} = State) ->
    case lists:member(Node, Up) of
        true -> {State, []};
        false ->
            Gained = State#state{
                up = Up ++ [Node],
                unmet = State#state.unmet ++ [Node],
                trees = atoll_plumtree_trees:gained(Node, Up, State#state.trees)
            },
            up(Node, Up =:= [], Now, Gained)
    end;
handle({down, Node, _Why}, Now, State) ->
    case is_neighbour(Node, State) of
        true -> down(Node, Now, State);
        false -> {State, []}
    end;
handle({timeout, lazy}, _Now, State) ->
    announce_now(State);
handle({timeout, graft}, Now, State) ->
    ask_for_missing(Now, State);
handle({timeout, hold}, Now, State) ->
    hold_no_longer(Now, State);
handle({timeout, gap}, Now, State) ->
    close_gap(Now, State);
handle({timeout, exchange}, _Now, State0) ->
    {State1, Timer} = exchange_timer(State0),
    {State, Sent} = begin_exchange(State1),
    {State, Timer ++ Sent};
handle({timeout, acks}, _Now, #state{acks = Acks, up = Up} = State) ->
    acks(atoll_plumtree_acks:flush(Up, Acks), State);
handle({timeout, {ask, Id}}, _Now, #state{acks = Acks, rand = Rand0} = State) ->
    {Rand, Effects} = atoll_plumtree_acks:ask(Id, Rand0, Acks),
    {State#state{rand = Rand}, Effects};
handle({timeout, {ack, Id}}, _Now, #state{acks = Acks} = State) ->
    acks(atoll_plumtree_acks:expired(Id, Acks), State);
handle({timeout, fresh}, Now, State) ->
    still_fresh(Now, State);
handle({cast, {broadcast, Payload}}, Now, State0) ->
    case is_room(Payload, Now, State0) of
        {true, State} -> broadcast(Payload, Now, State);
        {false, State} -> {State, []}
    end;
handle({call, From, {broadcast, Payload}}, Now, State0) ->
    case is_room(Payload, Now, State0) of
        {true, State1} ->
            {State, Effects} = broadcast(Payload, Now, State1),
            {State, [{reply, From, ok} | Effects]};
        {false, State} ->
            {State, [{reply, From, {error, overloaded}}]}
    end;
handle({call, From, {broadcast, Payload, Need, Ms, Members}}, Now, State0) ->
    #state{incarnation = Life, seq = Last, acks = Acks0} = State0,
    {IsFull, Acks1} = atoll_plumtree_acks:is_full(Acks0),
    Id = {Life, Last + 1},
    Asking = {acknowledge, Id, Payload},
    case is_room(Asking, Now, State0#state{acks = Acks1}) of
        {true, State1} when not IsFull ->
            {State2, Sent} = broadcast(Asking, Now, State1),
            {State, Waits} = acks(atoll_plumtree_acks:request(Id, From, {Need, Ms}, Members, Acks1), State2),
            {State, Sent ++ Waits};
        {_, State} ->
            {State, [{reply, From, {error, overloaded}}]}
    end;
handle({cast, {gone, Node}}, _Now, #state{acks = Acks} = State) ->
    acks(atoll_plumtree_acks:gone(Node, Acks), State);
handle({cast, leave}, _Now, #state{acks = Acks} = State) ->
    acks(atoll_plumtree_acks:left(Acks), State);
handle({cast, {incarnation, Incarnation}}, _Now, #state{incarnation = Old} = State) when Incarnation > Old ->
    {State#state{incarnation = Incarnation, seq = 0}, []}.

%% @doc For people: sizes and counts since the start. `payloads' are all copies that
%% came over trees, `fetched' those that an exchange brought; `delivered' are without
%% the own ones; `unanswered' are missing messages that no announcer sent, `uncached' those
%% that were asked for here and were not there; `refused' are own ones that were not sent.
-spec summary(state()) -> #{atom() => term()}.
summary(State) ->
    #state{seen = Seen, trees = Trees, missing = Missing, cache = Cache, held = Held, acks = Acks, counts = Counts} = State,
    Said = maps:with([duplicates, fetched, grafts, prunes, swaps, ihaves, exchanges, missed, uncached, refused], Counts),
    Said#{
        neighbours => length(State#state.up),
        fresh => is_fresh(State),
        payloads => State#state.payloads,
        delivered => State#state.delivered,
        hops_max => State#state.hops_max,
        senders => atoll_plumtree_seen:senders(Seen),
        trees => atoll_plumtree_trees:size(Trees),
        missing => atoll_plumtree_missing:size(Missing),
        unanswered => atoll_plumtree_missing:unanswered(Missing),
        pending => State#state.pending_size,
        cache => atoll_plumtree_cache:size(Cache),
        cache_bytes => atoll_plumtree_cache:bytes(Cache),
        held => atoll_plumtree_held:size(Held),
        held_bytes => atoll_plumtree_held:bytes(Held),
        acks => atoll_plumtree_acks:summary(Acks),
        dropped => #{
            cache => atoll_plumtree_cache:dropped(Cache),
            missing => atoll_plumtree_missing:dropped(Missing),
            %% Messages that came too early; they come again.
            held => atoll_plumtree_held:dropped(Held),
            acks => atoll_plumtree_acks:dropped(Acks),
            senders => atoll_plumtree_seen:forgotten(Seen),
            trees => atoll_plumtree_trees:forgotten(Trees),
            %% Messages of an earlier life: of another sender, of this node.
            old => maps:get(old, Counts),
            own => maps:get(own, Counts),
            %% Answers that a fresh node cannot have asked for.
            unasked => maps:get(unasked, Counts),
            %% Announcements and prunes from who is no neighbour; and messages that were
            %% announced to a fresh node.
            strangers => maps:get(strangers, Counts),
            early => maps:get(early, Counts)
        }
    }.

%% @doc For whoever counts: of each payload that a message carries, the links that
%% it has crossed when it arrives.
-spec payloads(message()) -> [Hops :: pos_integer()].
payloads({gossip, _, _, _, Hops, _}) -> [Hops];
payloads({answer, _Lacks, Messages, _Gone}) -> lists:append([payloads(M) || M <- Messages]);
payloads({rest, Messages, _Gone}) -> lists:append([payloads(M) || M <- Messages]);
payloads(_) -> [].

%% Messages, eager and lazy

is_room(Payload, Now, #state{cache = Cache0} = State) ->
    case atoll_plumtree_cache:is_full(Now, erlang:external_size(Payload), Cache0) of
        {false, Cache} -> {true, State#state{cache = Cache}};
        {true, Cache} -> {false, count(refused, 1, State#state{cache = Cache})}
    end.

broadcast(Payload, Now, #state{self = Self, incarnation = Incarnation, up = Up} = State) ->
    Seq = State#state.seq + 1,
    Message = {gossip, Self, Incarnation, Seq, 1, Payload},
    {Lazy, Trees} = atoll_plumtree_trees:sent(Self, Now, State#state.trees),
    Cache = atoll_plumtree_cache:add(Self, Incarnation, Seq, Message, Now, State#state.cache),
    Sends = [{send, Node, Message} || Node <- Up, not lists:member(Node, Lazy)],
    {Announced, Timer} = announce(Message, Lazy, State#state{seq = Seq, trees = Trees, cache = Cache}),
    {Announced, [{notify, {broadcast, Self, plain(Payload)}}] ++ Sends ++ Timer}.

gossip(From, Self, Incarnation, Seq, _, _, Now, #state{self = Self, payloads = N} = State0) ->
    State = State0#state{payloads = N + 1},
    case State of
        #state{incarnation = Incarnation, seq = Last} when Seq =< Last -> prune(From, Self, Now, duplicate(State));
        #state{} -> {count(own, 1, State), []}
    end;
gossip(From, Root, Incarnation, Seq, Hops, Payload, Now, #state{seen = Seen0, payloads = N} = State) ->
    case atoll_plumtree_seen:take(Root, Incarnation, Seq, Now, Seen0) of
        {new, Ahead, Missed, Seen} ->
            #state{up = Up, trees = Trees0, cache = Cache0, missing = Missing} = State,
            {Kind, Lazy, Trees} = atoll_plumtree_trees:delivered(Root, From, Hops, Now, Trees0),
            Message = {gossip, Root, Incarnation, Seq, Hops + 1, Payload},
            {Eager, Announced, Cache} = spread(Up, Lazy, Now, Message, Cache0),
            Taken = State#state{
                seen = Seen,
                trees = Trees,
                cache = Cache,
                missing = atoll_plumtree_missing:came({Root, Incarnation, Seq}, Missing),
                payloads = N + 1,
                hops_max = max(Hops, State#state.hops_max)
            },
            {Delivered, Notices} = deliver(Root, Seq, Ahead, Missed, Payload, Now, to_acknowledge(Root, Payload, From, Now, Taken)),
            {Announcing, Timer} = announce(Message, Announced, Delivered),
            {Hurried, Exchange} = large_gap(Ahead, From, Now, Announcing),
            {Pruned, Prune} = prune_again(Kind, From, Root, Hurried),
            {Pruned, Notices ++ sends(Eager, From, Lazy, Message, Timer ++ Exchange ++ Prune)};
        seen ->
            again(From, Root, Incarnation, Seq, Hops, Now, duplicate(State#state{payloads = N + 1}));
        old ->
            {count(old, 1, State#state{payloads = N + 1}), []}
    end.

%% To whom a message is to be sent and announced. One that was given back has been before, if
%% it is in the cache still.
spread(Up, Lazy, Now, {gossip, Root, Incarnation, Seq, _, _} = Message, Cache) ->
    case atoll_plumtree_cache:find(Root, Incarnation, Seq, Cache) of
        {ok, _} -> {[], [], Cache};
        error -> {Up, Lazy, atoll_plumtree_cache:add(Root, Incarnation, Seq, Message, Now, Cache)}
    end.

sends([From | Up], From, Lazy, Message, Effects) ->
    sends(Up, From, Lazy, Message, Effects);
sends([Node | Up], From, Lazy, Message, Effects) ->
    case lists:member(Node, Lazy) of
        true -> sends(Up, From, Lazy, Message, Effects);
        false -> [{send, Node, Message} | sends(Up, From, Lazy, Message, Effects)]
    end;
sends([], _From, _Lazy, _Message, Effects) ->
    Effects.

duplicate(State) ->
    count(duplicates, 1, State).

%% It came before, from another neighbour or from this one. Of two that are eager the
%% one over which it came in fewer hops is to stay.
again(From, Root, Incarnation, Seq, Hops, Now, #state{trees = Trees} = State) ->
    case atoll_plumtree_trees:parent(Root, Trees) =:= From orelse not is_neighbour(From, State) of
        true ->
            {State, []};
        false ->
            Shorter =
                not atoll_plumtree_trees:is_lazy(Root, From, Trees) andalso
                    is_shorter(Root, Incarnation, Seq, Hops, 1, State),
            case Shorter of
                true -> follow(From, Root, Hops, Now, State);
                false -> prune(From, Root, Now, State)
            end
    end.

prune(From, Root, Now, #state{trees = Trees} = State) ->
    case is_neighbour(From, State) of
        true ->
            Lazy = State#state{trees = atoll_plumtree_trees:make_lazy(Root, From, Now, Trees)},
            {count(prunes, 1, Lazy), [{send, From, {prune, Root}}]};
        false ->
            {State, []}
    end.

%% The first prune was lost, or is still on its way.
prune_again(eager, _From, _Root, State) -> {State, []};
prune_again(lazy, From, Root, State) -> {count(prunes, 1, State), [{send, From, {prune, Root}}]}.

%% Shorter than this message came, and than the last one over the present parent. That
%% it is the same message keeps a node from following one that follows it.
is_shorter(Root, Incarnation, Seq, Hops, Threshold, #state{trees = Trees, cache = Cache}) ->
    atoll_plumtree_trees:is_shorter(Root, Hops, Threshold, Trees) andalso
        case atoll_plumtree_cache:find(Root, Incarnation, Seq, Cache) of
            %% It is kept as it was sent on, one link later.
            {ok, {gossip, _, _, _, Next, _}} -> Hops + Threshold < Next;
            error -> false
        end.

follow(From, Root, Hops, Now, #state{up = Up, trees = Trees0} = State) ->
    {Old, Trees} = atoll_plumtree_trees:follow(Root, From, Hops, Up, Now, Trees0),
    Followed = count(swaps, 1, State#state{trees = Trees}),
    {Followed, [{send, From, {graft, Root, []}} | [{send, Old, {prune, Root}} || Old =/= none]]}.

%% The parent says so because of a copy that was on its way to it before it was the
%% parent; without it nothing would come any more.
pruned(From, Root, Now, #state{trees = Trees} = State) ->
    case atoll_plumtree_trees:parent(Root, Trees) of
        From -> {State, [{send, From, {graft, Root, []}}]};
        _ -> {State#state{trees = atoll_plumtree_trees:make_lazy(Root, From, Now, Trees)}, []}
    end.

announce(_Message, [], State) ->
    {State, []};
announce({gossip, Root, Incarnation, Seq, Hops, _}, Nodes, #state{pending = Pending, pending_size = N} = State0) ->
    State = State0#state{pending = [{{Root, Incarnation, Seq, Hops}, Nodes} | Pending], pending_size = N + 1},
    case State#state.options of
        #{lazy_ms := Ms} when N =:= 0 -> {State, [{timer, lazy, Ms}]};
        #{ihave_max := Max} when N + 1 >= Max -> announce_early(State);
        #{} -> {State, []}
    end.

announce_now(#state{up = Up, pending = Pending} = State) ->
    InOrder = lists:reverse(Pending),
    Batches = [
        {Node, Batch}
     || Node <- Up, Batch <- [[A || {A, Nodes} <- InOrder, lists:member(Node, Nodes)]], Batch =/= []
    ],
    {
        count(ihaves, length(Batches), State#state{pending = [], pending_size = 0}),
        [{send, Node, {ihave, Batch}} || {Node, Batch} <- Batches]
    }.

announce_early(State0) ->
    {State, Sends} = announce_now(State0),
    {State, [{cancel, lazy} | Sends]}.

%% A fresh node cannot tell history from what it missed.
announced(From, Announcements, Now, State) ->
    case is_fresh(State) of
        true -> {count(early, length(Announcements), State), []};
        false -> collect(fun(Announcement, S) -> ihave(From, Announcement, Now, S) end, Announcements, State)
    end.

ihave(_From, {Self, _, _, _}, _Now, #state{self = Self} = State) ->
    {State, []};
ihave(From, {Root, Incarnation, Seq, Hops}, Now, #state{seen = Seen, missing = Missing0} = State) ->
    case atoll_plumtree_seen:status(Root, Incarnation, Seq, Seen) of
        new ->
            {Look, Missing} = atoll_plumtree_missing:announced({Root, Incarnation, Seq}, From, Hops, Now, Missing0),
            {State#state{missing = Missing}, look(Look)};
        seen ->
            shorten(From, Root, Incarnation, Seq, Hops, Now, State);
        old ->
            {State, []}
    end.

look({look_in, Ms}) -> [{timer, graft, Ms}];
look(_) -> [].

shorten(From, Root, Incarnation, Seq, Hops, Now, #state{options = #{threshold := Threshold}} = State) ->
    Shorter =
        is_shorter(Root, Incarnation, Seq, Hops, Threshold, State) andalso
            atoll_plumtree_trees:is_lazy(Root, From, State#state.trees),
    case Shorter of
        true -> follow(From, Root, Hops, Now, State);
        false -> {State, []}
    end.

ask_for_missing(Now, #state{trees = Trees0, missing = Missing0} = State) ->
    %% Who is eager already need not become it.
    Choose = fun(Root, [First | _] = Nodes) ->
        case [Node || Node <- Nodes, not atoll_plumtree_trees:is_lazy(Root, Node, Trees0)] of
            [Eager | _] -> Eager;
            [] -> First
        end
    end,
    {Asked, Look, Missing} = atoll_plumtree_missing:due(Choose, Now, Missing0),
    Trees = lists:foldl(
        fun({{Node, Root}, _}, T) -> atoll_plumtree_trees:make_eager(Root, Node, Now, T) end,
        Trees0,
        Asked
    ),
    Grafts = [
        {send, Node, {graft, Root, [{Incarnation, Seq} || {_, Incarnation, Seq} <- Ids]}}
     || {{Node, Root}, Ids} <- Asked
    ],
    {count(grafts, length(Grafts), State#state{missing = Missing, trees = Trees}), Grafts ++ look(Look)}.

graft(From, Root, Ids, Now, #state{trees = Trees, cache = Cache} = State) ->
    Found = [atoll_plumtree_cache:find(Root, Incarnation, Seq, Cache) || {Incarnation, Seq} <- Ids],
    Messages = [Message || {ok, Message} <- Found],
    {
        count(uncached, length(Ids) - length(Messages), State#state{
            trees = atoll_plumtree_trees:make_eager(Root, From, Now, Trees)
        }),
        [{send, From, Message} || Message <- Messages]
    }.

%% Neighbours

up(Node, First, Now, State) ->
    case State of
        #state{fresh_until = never, options = #{fresh_ms := Ms}} ->
            case is_fresh(State) of
                true -> ask_for_baseline(Node, Now, State#state{fresh_until = Now + Ms});
                false when First -> begin_exchange(Node, State);
                false -> {State, []}
            end;
        #state{} ->
            {State, [{send, Node, baseline}]}
    end.

down(Node, Now, #state{up = Up, unmet = Unmet, trees = Trees0, missing = Missing, acks = Acks} = State0) ->
    {Adopted, Trees} = atoll_plumtree_trees:orphaned(Node, Now, atoll_plumtree_trees:lost(Node, Trees0)),
    {State, Timer} = acks(atoll_plumtree_acks:lost(Node, Now, Acks), State0#state{
        up = lists:delete(Node, Up),
        unmet = lists:delete(Node, Unmet),
        trees = Trees,
        missing = atoll_plumtree_missing:lost(Node, Missing)
    }),
    {State, [{send, Parent, {graft, Root, []}} || {Root, Parent} <- Adopted] ++ Timer}.

is_neighbour(Node, #state{up = Up}) ->
    lists:member(Node, Up).

%% The baseline

is_fresh(#state{seen = Seen}) ->
    atoll_plumtree_seen:is_fresh(Seen).

ask_for_baseline(Node, Now, #state{fresh_until = Until, options = #{fresh_ms := Ms}} = State) ->
    Again = max(1, min(Until - Now, Ms div 4)),
    {State, [{send, Node, baseline}, {timer, fresh, Again}]}.

still_fresh(Now, #state{fresh_until = Until, seen = Seen, up = Up} = State) ->
    case is_fresh(State) of
        false ->
            {State, []};
        true when Up =:= [] ->
            %% Alone again: the next neighbour is the first.
            {State#state{fresh_until = never}, []};
        true when Now >= Until ->
            make_up(State#state{fresh_until = never, seen = from_here(atoll_plumtree_seen:settle(Seen), State)});
        true ->
            {Node, Drawn} = random_neighbour(State),
            ask_for_baseline(Node, Now, Drawn)
    end.

adopt(Complete, Digest, Now, #state{self = Self, seen = Seen} = State) ->
    case is_fresh(State) of
        true ->
            Others = lists:keydelete(Self, 1, Digest),
            Adopted = atoll_plumtree_seen:adopt(Others, Complete, Now, Seen),
            State#state{fresh_until = never, seen = from_here(Adopted, State)};
        false ->
            State
    end.

%% What a fresh node sends may go to nobody: it has no neighbours yet, or they are as fresh.
make_up(#state{seq = 0} = State) -> {State, []};
make_up(State) -> begin_exchange(State).

%% What was overtaken by what it has delivered already would come out of order.
from_here(Seen, #state{options = #{order := none}}) -> Seen;
from_here(Seen, _State) -> atoll_plumtree_seen:close(Seen).

%% Exchanges

exchange_timer(#state{options = #{exchange_ms := Ms}, rand = Rand0} = State) ->
    %% Between three and five quarters of it, so that neighbours do not go in step.
    {Extra, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    {State#state{rand = Rand}, [{timer, exchange, max(1, Ms - Ms div 4 + Extra - 1)}]}.

begin_exchange(#state{up = Up, unmet = Unmet} = State) ->
    case is_fresh(State) orelse Up =:= [] of
        true ->
            {State, []};
        false when Unmet =/= [] ->
            begin_exchange(hd(Unmet), State);
        false ->
            {Node, Drawn} = random_neighbour(State),
            begin_exchange(Node, Drawn)
    end.

begin_exchange(Node, #state{seen = Seen, unmet = Unmet} = State) ->
    Begun = count(exchanges, 1, State#state{unmet = lists:delete(Node, Unmet)}),
    {Begun, [{send, Node, {exchange, atoll_plumtree_seen:is_complete(Seen), digest(State)}}]}.

%% Whoever has sent what follows has seen more than we have.
large_gap(Ahead, From, Now, State) when Ahead > ?GAP -> hurry(From, Now, State);
large_gap(_Ahead, _From, _Now, State) -> {State, []}.

%% Whoever asks has what is lacking, and what is held here waits for others of that one.
get_wanted(From, Ids, Now, #state{seen = Seen, held = Held} = State) ->
    IsLacking = fun({Life, Seq}) -> atoll_plumtree_seen:status(From, Life, Seq, Seen) =:= new end,
    case atoll_plumtree_held:is_held(From, Held) orelse lists:any(IsLacking, Ids) of
        true -> hurry(From, Now, State);
        false -> {State, []}
    end.

%% One is on its way for a while, whatever else comes meanwhile.
hurry(Node, Now, #state{hurry_at = At} = State) ->
    case is_fresh(State) orelse Now < At of
        true -> {State, []};
        false -> begin_exchange(Node, State#state{hurry_at = Now + gap_ms(State)})
    end.

%% What was sent when there was no way is announced by nobody. Who has brought what follows it is
%% the nearest to it; where that one does not have it, another may.
close_gap(Now, #state{held = Held} = State0) ->
    Ms = gap_ms(State0),
    case atoll_plumtree_held:oldest(Held) of
        none ->
            {State0, []};
        {Since, _Root} when Since + Ms > Now ->
            {State0, [{timer, gap, Since + Ms - Now}]};
        {Since, Root} ->
            Parent = atoll_plumtree_trees:parent(Root, State0#state.trees),
            {State, Exchange} =
                case Since + 2 * Ms > Now andalso is_neighbour(Parent, State0) of
                    true -> begin_exchange(Parent, State0);
                    false -> begin_exchange(State0)
                end,
            {State, Exchange ++ [{timer, gap, Ms}]}
    end.

%% Longer than an announcement takes to be made and answered, and not as long as the sender is sure
%% to have it.
gap_ms(#state{options = #{graft_ms := Ms}}) -> 2 * Ms.

random_neighbour(#state{up = Up, rand = Rand0} = State) ->
    {Node, Rand} = atoll_random:pick(Up, Rand0),
    {Node, State#state{rand = Rand}}.

%% Of this node itself too, even before its first message: that says that its earlier
%% lives are over.
digest(#state{self = Self, incarnation = Incarnation, seq = Seq, seen = Seen}) ->
    lists:merge([{Self, Incarnation, Seq, 0}], atoll_plumtree_seen:digest(Seen)).

exchange(From, Complete, Theirs, #state{seen = Seen} = State) ->
    OurComplete = atoll_plumtree_seen:is_complete(Seen),
    case atoll_plumtree_seen:compare(Theirs, Complete, digest(State), OurComplete) of
        {[], []} ->
            {State, []};
        {TheyLack, WeLack} ->
            {Messages, Gone} = give(TheyLack, State),
            {State, [{send, From, {answer, WeLack, Messages, Gone}}]}
    end.

answer(From, Lacks, Messages, Gone, Now, State0) ->
    {State, Effects} = fetched(From, Messages, Gone, Now, State0),
    case give(Lacks, State) of
        {[], []} -> {State, Effects};
        {Rest, RestGone} -> {State, Effects ++ [{send, From, {rest, Rest, RestGone}}]}
    end.

give([], _State) ->
    {[], []};
give(Lacks, #state{cache = Cache, options = #{exchange_max := Max}} = State) ->
    Ours = maps:from_list([{Root, {Life, Low, Above}} || {Root, Life, Low, Above} <- digest(State)]),
    {_, Messages, Gone} = lists:foldl(
        fun({Root, Life, Low, Above}, {Left, Given, Gone}) ->
            case Ours of
                #{Root := {OurLife, _, _} = Our} ->
                    {More, Upto} = atoll_plumtree_cache:lacking(Root, {Life, Low, Above}, Our, Left, Cache),
                    Past = [{Root, OurLife, Upto} || OurLife > Life orelse Upto > Low, Upto > 0],
                    {Left - length(More), [More | Given], Past ++ Gone};
                #{} ->
                    {Left, Given, Gone}
            end
        end,
        {Max, [], []},
        Lacks
    ),
    {lists:append(lists:reverse(Messages)), lists:reverse(Gone)}.

fetched(From, Messages, Gone, Now, State0) ->
    case is_fresh(State0) of
        true ->
            {count(unasked, length(Messages), State0), []};
        false ->
            {State1, Effects1} = collect(fun(M, S) -> fetch(From, M, Now, S) end, Messages, State0),
            {State, Effects2} = collect(fun(G, S) -> gone(From, G, Now, S) end, Gone, State1),
            {State, Effects1 ++ Effects2}
    end.

fetch(_From, {gossip, Self, _, _, _, _}, _Now, #state{self = Self} = State) ->
    {count(own, 1, State), []};
fetch(From, {gossip, Root, Incarnation, Seq, Hops, Payload}, Now, #state{seen = Seen0} = State) ->
    case atoll_plumtree_seen:take(Root, Incarnation, Seq, Now, Seen0) of
        {new, Ahead, Missed, Seen} ->
            #state{up = Up, cache = Cache0, missing = Missing} = State,
            Message = {gossip, Root, Incarnation, Seq, Hops + 1, Payload},
            {_, Others, Cache} = spread([], lists:delete(From, Up), Now, Message, Cache0),
            Fetched = State#state{
                seen = Seen,
                cache = Cache,
                missing = atoll_plumtree_missing:came({Root, Incarnation, Seq}, Missing)
            },
            Wanted = to_acknowledge(Root, Payload, From, Now, count(fetched, 1, Fetched)),
            {Delivered, Notices} = deliver(Root, Seq, Ahead, Missed, Payload, Now, Wanted),
            {Announced, Timer} = announce(Message, Others, Delivered),
            {Announced, Notices ++ Timer};
        seen ->
            {count(duplicates, 1, State), []};
        old ->
            {count(old, 1, State), []}
    end.

gone(_From, {Self, _, _}, _Now, #state{self = Self} = State) ->
    {State, []};
gone(From, {Root, _, _} = Line, Now, #state{up = Up, seen = Seen0, options = #{patience := Patience}} = State) ->
    %% One that was restarted may never have had what others still have.
    IsEnough = fun({Times, Nodes}) ->
        Times >= Patience andalso (length(Nodes) >= ?WITNESSES orelse Up -- Nodes =:= [])
    end,
    {Missed, Seen} = atoll_plumtree_seen:gone(Line, From, IsEnough, Now, Seen0),
    moved(Root, Missed, Now, State#state{seen = Seen}).

%% Order

%% A message that is new. A fresh node waits for nothing.
deliver(Root, Seq, Ahead, Missed, Payload, Now, #state{seen = Seen0, held = Held0} = State) ->
    InTurn = Ahead =:= 0 andalso not atoll_plumtree_held:is_held(Root, Held0),
    case InTurn orelse not is_ordered(State) of
        true ->
            tell(Root, [{missed, Missed} || Missed > 0] ++ [{payload, Payload}], Now, State);
        false ->
            Place = atoll_plumtree_seen:place(Root, Seen0),
            {Out, Back, Held} = atoll_plumtree_held:take(Root, Place, Missed, {Seq, Payload}, Now, Held0),
            Seen = atoll_plumtree_seen:unsee(Root, Back, Seen0),
            {Told, Notices} = tell(Root, Out, Now, State#state{seen = Seen, held = Held}),
            {Told, Notices ++ first_held(Held0, Held, State)}
    end.

is_ordered(#state{options = #{order := none}}) -> false;
is_ordered(State) -> not is_fresh(State).

first_held(Before, After, #state{options = #{hold_ms := Ms}} = State) ->
    case atoll_plumtree_held:size(Before) =:= 0 andalso atoll_plumtree_held:size(After) > 0 of
        true -> [{timer, hold, Ms}, {timer, gap, gap_ms(State)}];
        false -> []
    end.

%% Something of this sender is not waited for any more.
moved(Root, Missed, Now, #state{seen = Seen, held = Held0} = State) ->
    case atoll_plumtree_held:is_held(Root, Held0) of
        true ->
            {Out, Held} = atoll_plumtree_held:release(Root, atoll_plumtree_seen:place(Root, Seen), Missed, Held0),
            tell(Root, Out, Now, State#state{held = Held});
        false ->
            tell(Root, [{missed, Missed} || Missed > 0], Now, State)
    end.

%% A message that no living node has, or that is lost again and again, is not waited for for ever.
hold_no_longer(Now, #state{held = Held, options = #{hold_ms := Ms}} = State0) ->
    Overdue = atoll_plumtree_held:overdue(Now - Ms, Held),
    {State, Effects} = collect(fun(Last, S) -> give_up(Last, Now, S) end, Overdue, State0),
    case atoll_plumtree_held:oldest(State#state.held) of
        none -> {State, Effects};
        {Since, _Root} -> {State, Effects ++ [{timer, hold, max(1, Since + Ms - Now)}]}
    end.

give_up({Root, Life, Last}, Now, #state{seen = Seen0, held = Held0} = State) ->
    {Missed, Seen} = atoll_plumtree_seen:give_up({Root, Life, Last - 1}, Now, Seen0),
    {Out, Held} =
        case atoll_plumtree_seen:place(Root, Seen) of
            {Life, Low} -> atoll_plumtree_held:release(Root, {Life, max(Last, Low)}, Missed, Held0);
            %% The sender was forgotten.
            _ -> atoll_plumtree_held:forget(Root, Held0)
        end,
    tell(Root, Out, Now, State#state{seen = Seen, held = Held}).

tell(Root, [{payload, {acknowledge, {Life, Seq}, Payload}}], Now, #state{acks = Acks} = State0) ->
    {State1, Notices} = tell(Root, [{payload, Payload}], Now, State0),
    {State, Timer} = acks(atoll_plumtree_acks:delivered({Root, Life, Seq}, Now, Acks), State1),
    {State, Notices ++ Timer};
tell(Root, [{payload, Payload}], _Now, #state{delivered = Delivered} = State) ->
    {State#state{delivered = Delivered + 1}, [{notify, {broadcast, Root, Payload}}]};
tell(Root, Out, Now, State) ->
    collect(
        fun
            ({missed, Count}, S) -> {count(missed, Count, S), [{notify, {missed, Root, Count}}]};
            (Payload, S) -> tell(Root, [Payload], Now, S)
        end,
        Out,
        State
    ).

%% Acknowledgements

acks({Acks, Effects}, State) ->
    {State#state{acks = Acks}, Effects}.

plain({acknowledge, _Id, Payload}) -> Payload;
plain(Payload) -> Payload.

to_acknowledge(Root, {acknowledge, {Life, Seq}, _}, From, Now, #state{acks = Acks} = State) ->
    State#state{acks = atoll_plumtree_acks:came({Root, Life, Seq}, From, Now, Acks)};
to_acknowledge(_Root, _Payload, _From, _Now, State) ->
    State.

%% Runs a function over a list; gives all effects in order.
collect(Fun, List, State) ->
    {End, Effects} = lists:foldl(
        fun(Element, {S0, Before}) ->
            case Fun(Element, S0) of
                {S, []} -> {S, Before};
                {S, More} -> {S, lists:reverse(More, Before)}
            end
        end,
        {State, []},
        List
    ),
    {End, lists:reverse(Effects)}.

count(_Count, 0, State) ->
    State;
count(Count, N, #state{counts = Counts} = State) ->
    #{Count := Before} = Counts,
    State#state{counts = Counts#{Count := Before + N}}.
