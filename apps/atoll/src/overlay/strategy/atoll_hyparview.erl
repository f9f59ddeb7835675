%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `hyparview': each node has a few neighbours, and knows some
%% more nodes that it would ask next. After Leitao, Pereira, Rodrigues, "HyParView:
%% a membership protocol for reliable gossip-based broadcast" (DSN 2007).
%%
%% == The protocol ==
%% <em>Links.</em> A node asks another to be its neighbour, with a high or a low
%% priority. High is always accepted, if need be by evicting a random neighbour; low
%% is accepted if there is room. The asked node takes the asker in as it accepts,
%% the asker takes the asked in as it hears so. An answer that comes when nobody
%% waits for it any more is answered with `disconnect', and so is what only a
%% neighbour may send. Each request has a number, which its answer repeats.
%%
%% <em>Joining.</em> A `join' is a request of high priority that also sends the
%% newcomer's name on random walks, one over each other link of the contact. Where a
%% walk ends (after `arwl' steps, or at a node that has no other link) the node asks
%% the newcomer, with high priority, to be its neighbour; at step `arwl - prwl' the
%% name goes into a passive view.
%%
%% <em>Repair.</em> When a link breaks, the node asks nodes of its passive view, as
%% many at once as it has room for. One that cannot be reached or is silent is taken
%% out of the view, one that refuses stays. After some refusals it waits for the
%% promotion timer, which runs only while there is room.
%%
%% <em>Shuffles.</em> Now and then a sample of both views goes on a random walk, and
%% where the walk ends it is exchanged for a sample of the passive view there. The
%% answer goes back the way it came, so a shuffle opens no connection.
%%
%% With `xbot' links are exchanged for shorter ones: {@link atoll_hyparview_swap}.
%%
%% == Where it differs from the paper ==
%% <ul>
%% <li>A node with fewer than two neighbours does not wait for the promotion timer,
%%   and asks with high priority: two nodes that have only each other are an island,
%%   and if all others are full every low request would be refused. Only as many
%%   high requests are on their way as are missing to two, since each may cost
%%   somebody a link.</li>
%% <li>`disconnect' and the answer to a `join' bring a few names, so that nobody
%%   is left without anybody to ask. In a storm of joins nearly all nodes are evicted
%%   by the contact soon after they came, and would otherwise know it alone.</li>
%% <li>Nodes that come in a burst are linked with those that came just before, and
%%   shuffles do not change that: 2,000 nodes in two seconds made a chain of 17 hops.
%%   So with each of its first `mixes' shuffles a full node asks a random node of its
%%   passive view for a link, which takes the place of one of the first. That made
%%   it 9 hops, as in a random graph.</li>
%% <li>What the bound pushes out of the passive view is kept a while longer, and asked
%%   by a node with fewer than two neighbours that has nobody left: after a loss of
%%   nine nodes in ten there are only a few living names in a passive view.</li>
%% <li>Walks take 8 steps, not 6. With 6 the node farthest from a sender among 10,000 was 9 to 11
%%   links away, with 8 it is 8 or 9, as in a random graph; 10 come to the same.</li>
%% <li>A forwarded name is walked on even if it comes from one that is no neighbour
%%   any more.</li>
%% <li>A walk does not visit a node twice, as long as there is another way.</li>
%% <li>A node that leaves says so, and is not kept in anybody's passive view.</li>
%% </ul>
%%
%% == What it promises ==
%% Never more than `active_max' neighbours; while there are other nodes in its
%% passive view that live, a node comes to have at least two. If messages are not
%% lost, neighbourhood is mutual once they have arrived.
%%
%% == What it does not promise ==
%% That the overlay is connected. It almost always is, since it is a random graph;
%% after a loss of most nodes at once, or a long partition, there may be islands that
%% know nobody outside: these heal by joining again, which is the business of
%% discovery. If an answer is lost, one of two nodes may take the other for a
%% neighbour until a message of its own, or a failure detector (`stranger'), tells
%% it. Names of dead nodes may circulate in passive views.
%%
%% It is long because whatever comes to pass with a link, a request or a walk may leave a place to be filled,
%% which is one rule. The views, and exchanging links, are modules of their own.
-module(atoll_hyparview).
-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, message/0, priority/0]).

-import(atoll_random, [pick/2, sample/3]).

-type priority() :: high | low.

-type request() :: pos_integer().
%% Its number.

-type message() ::
    %% Two requests, and their answers, which have the request's number.
    {join, request()}
    | {neighbour, request(), priority()}
    | {accepted, request(), Known :: [node()]}
    | {refused, request()}
    %% You are no neighbour of mine (any more); these you could ask.
    | {disconnect, Known :: [node()]}
    %% The sender is about to leave the cluster, or has left it.
    | leaving
    | {forward_join, New :: node(), Ttl :: non_neg_integer()}
    %% Path: who has sent it on, the last one first, the origin last; for an answer,
    %% who is still to send it on, beginning with its receiver.
    | {shuffle, Ttl :: pos_integer(), Path :: [node(), ...], [node()]}
    | {shuffled, Path :: [node(), ...], [node()]}
    | {swap, atoll_hyparview_swap:message()}.

-type purpose() ::
    %% For a `{cast, {join, _}}'.
    join
    %% A forwarded join ended here.
    | take
    %% To fill a place.
    | priority().

-record(state, {
    self :: node(),
    options :: atoll_options:options(),
    views :: atoll_hyparview_views:views(),
    %% Requests without an answer yet. At most `pending_max'.
    pending = [] :: [{node(), request(), purpose()}],
    %% Numbers them.
    requests = 0 :: non_neg_integer(),
    %% Contacts to try if the one that was asked to let us join does not answer.
    contacts = [] :: [node()],
    %% Who refused since the last promotion. At most `passive_max'.
    refused = [] :: [node()],
    %% Whether the promotion timer runs.
    promoting = false :: boolean(),
    %% After `leave', until `join'.
    left = false :: boolean(),
    %% With how many shuffles more one of the first links may give way to a random one.
    mixes = 0 :: non_neg_integer(),
    %% What the last shuffle brought to others.
    shuffled = [] :: [node()],
    swap :: atoll_hyparview_swap:state(),
    rand :: rand:state(),
    counts = #{} :: #{count() => pos_integer()},
    %% The effects of the event under way, the last one first.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

-type count() ::
    %% Neighbours evicted to make room for another.
    evicted
    %% Requests that we refused, that we were refused, that nobody answered, that
    %% were not sent since `pending_max' were on their way.
    | refused
    | refusals
    | unanswered
    | not_asked
    %% Answers that nobody waited for any more.
    | late
    %% Messages of a neighbour's kind from one that is none, and strangers we were
    %% told of.
    | strangers
    %% Answers to a shuffle whose way back was broken.
    | strayed
    %% Contacts of one join, and nodes that refused, beyond `passive_max'.
    | contacts_dropped
    | refused_dropped
    %% Terms that it was told and does not know, which is any.
    | not_understood.

%% With fewer neighbours than this a node may be on an island.
-define(ENOUGH, 2).

%% @doc See the module's description. `request_ms': how long an answer is awaited;
%% `refusals': how many nodes are asked in vain before the next promotion;
%% `pending_max': the bound of requests on their way. The `xbot' ones belong to
%% {@link atoll_hyparview_swap}.
-spec options() -> atoll_options:known().
options() ->
    #{
        active_max => {pos_integer, 5},
        passive_max => {pos_integer, 30},
        mixes => {non_neg_integer, 5},
        arwl => {pos_integer, 8},
        prwl => {non_neg_integer, 3},
        shuffle_ms => {pos_integer, 10000},
        shuffle_active => {non_neg_integer, 3},
        shuffle_passive => {non_neg_integer, 4},
        promotion_ms => {pos_integer, 5000},
        request_ms => {pos_integer, 2000},
        refusals => {pos_integer, 5},
        pending_max => {pos_integer, 20},
        xbot => {boolean, false},
        xbot_ms => {pos_integer, 10000},
        xbot_unbiased => {non_neg_integer, 2},
        xbot_gain_ms => {pos_integer, 10},
        xbot_probes => {pos_integer, 2},
        xbot_timeout_ms => {pos_integer, 5000}
    }.

%% @doc A node without neighbours. It asks those that it remembers, if any.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) ->
    {state(), [atoll_protocol:effect()]}.
init(#{self := Self, seed := Seed, options := Options, remembered := Remembered}, _Now) ->
    #{active_max := ActiveMax, passive_max := PassiveMax} = Options,
    Views0 = atoll_hyparview_views:new(Self, ActiveMax, PassiveMax),
    {Views, Rand} = atoll_hyparview_views:merge(Remembered, [], Views0, atoll_random:seed(Seed)),
    State0 = #state{
        self = Self,
        options = Options,
        views = Views,
        mixes = maps:get(mixes, Options),
        swap = atoll_hyparview_swap:new(Self, Options),
        rand = Rand
    },
    %% Nodes that start together do not shuffle together.
    State1 = start_timer(shuffle, maps:get(shuffle_ms, Options), State0),
    State =
        case Options of
            #{xbot := true, xbot_ms := Ms} -> start_timer(xbot, Ms, State1);
            #{} -> State1
        end,
    done(repair(State)).

start_timer(Key, Ms, #state{rand = Rand0} = State) ->
    {First, Rand} = rand:uniform_s(Ms, Rand0),
    emit({timer, Key, First}, State#state{rand = Rand}).

%% @doc Takes one event; see {@link atoll_strategy}.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, {shuffle, Ttl, Path, Nodes}}, _Now, State) ->
    shuffle(From, Ttl, Path, Nodes, State);
handle({message, From, {shuffled, Path, Nodes}}, _Now, State) ->
    shuffled(From, Path, Nodes, State);
handle({message, From, {swap, Message}}, Now, State) ->
    done(swap_message(From, Message, Now, State));
handle({message, From, Message}, _Now, State) ->
    done(message(From, Message, State));
handle({timeout, shuffle}, _Now, State) ->
    done(start_shuffle(State));
handle({timeout, promotion}, _Now, State) ->
    done(repair(State#state{promoting = false, refused = []}));
handle({timeout, {request, Node}}, _Now, State) ->
    done(unanswered(Node, State));
handle({timeout, xbot}, Now, State) ->
    done(start_swap(Now, State));
handle({timeout, swap}, _Now, #state{swap = Swap0} = State) ->
    {Swap, Deeds} = atoll_hyparview_swap:expired(Swap0),
    done(swap_deeds(Deeds, State#state{swap = Swap}));
handle({up, _Node}, _Now, State) ->
    %% What makes a neighbour is an answer, and that needs a link.
    {State, []};
handle({down, Node, Reason}, _Now, State) ->
    done(down(Node, Reason, State));
handle({cast, {unreachable, Node}}, _Now, State) ->
    done(gone(Node, lost, State));
handle({cast, {dead, Node}}, _Now, State) ->
    done(gone(Node, lost, State));
handle({cast, {stranger, Node}}, _Now, State) ->
    done(stranger(Node, State));
handle({cast, {join, Contacts}}, _Now, State) ->
    done(join(Contacts, State));
handle({cast, leave}, _Now, State) ->
    done(leave(State));
handle({cast, {tell, _Unknown}}, _Now, State) ->
    {count(not_understood, State), []}.

%% @doc The active view, in the order of names.
-spec neighbours(state()) -> [node()].
neighbours(#state{views = Views}) -> atoll_hyparview_views:active(Views).

%% @doc The passive view.
-spec known(state()) -> [node()].
known(#state{views = Views}) -> atoll_hyparview_views:passive(Views).

%% @doc Sizes, bounds and counts; the keys of counts are those of the type. Names that
%% the bound pushed out of the passive view (`passive_dropped') are spare; `spare_dropped'
%% are those that are forgotten, and `names_dropped' those of which more came at once
%% than a passive view has room for.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{views = Views, options = Options, counts = Counts, swap = Swap} = State) ->
    None = maps:from_list([
        {Count, 0}
     || Count <- [
            evicted,
            refused,
            refusals,
            unanswered,
            not_asked,
            late,
            strangers,
            strayed,
            contacts_dropped,
            refused_dropped,
            not_understood
        ]
    ]),
    (maps:merge(None, Counts))#{
        active => atoll_hyparview_views:size(Views),
        passive => length(atoll_hyparview_views:passive(Views)),
        pending => length(State#state.pending),
        bounds => maps:with([active_max, passive_max, pending_max], Options),
        spare => atoll_hyparview_views:spare(Views),
        contacts => length(State#state.contacts),
        refused_lately => length(State#state.refused),
        passive_dropped => atoll_hyparview_views:dropped(Views),
        spare_dropped => atoll_hyparview_views:spare_dropped(Views),
        names_dropped => atoll_hyparview_views:names_dropped(Views),
        left => State#state.left,
        swap => atoll_hyparview_swap:summary(Swap)
    }.

%% Messages about links

message(From, Message, #state{left = true} = State) ->
    case Message of
        {join, _} -> send(From, leaving, State);
        {neighbour, _, _} -> send(From, leaving, State);
        {accepted, _, _} -> send(From, leaving, State);
        _ -> State
    end;
message(From, {join, Number}, #state{views = Views} = State0) ->
    {Known, State1} = some_of(atoll_hyparview_views:active(Views) -- [From], State0),
    State = adopt(From, send(From, {accepted, Number, Known}, State1)),
    walk_out(From, State);
message(From, {neighbour, Number, Priority}, State) ->
    case is_welcome(From, Priority, State) of
        true -> adopt(From, send(From, {accepted, Number, []}, State));
        false -> count(refused, send(From, {refused, Number}, State))
    end;
message(From, {accepted, Number, Known}, #state{pending = Pending} = State) ->
    case lists:keyfind(From, 1, Pending) of
        {From, Number, join} -> accepted(From, join, Known, State#state{contacts = []});
        {From, Number, Purpose} -> accepted(From, Purpose, Known, State);
        {From, _Later, _} -> count(late, State);
        false -> late(From, State)
    end;
message(From, {refused, Number}, #state{pending = Pending} = State) ->
    case lists:keyfind(From, 1, Pending) of
        {From, Number, Purpose} -> refused(From, Purpose, State);
        _ -> count(late, State)
    end;
message(From, {disconnect, Known}, #state{pending = Pending} = State0) ->
    State = learn(Known, State0),
    case lists:keyfind(From, 1, Pending) of
        {From, _Number, Purpose} -> refused(From, Purpose, State);
        false -> tend(drop(From, State))
    end;
message(From, leaving, State) ->
    gone(From, dropped, State);
message(From, {forward_join, New, Ttl}, #state{views = Views} = State) ->
    case atoll_hyparview_views:is_active(From, Views) of
        true -> walk(From, New, Ttl, State);
        false -> walk(From, New, Ttl, not_a_neighbour(From, State))
    end.

%% One whom we are asking is welcome even if we have no room any more: the answer to
%% our own request is on its way, and may say that we are neighbours.
is_welcome(_From, high, _State) ->
    true;
is_welcome(From, low, #state{views = Views, pending = Pending}) ->
    atoll_hyparview_views:room(Views) > 0 orelse
        atoll_hyparview_views:is_active(From, Views) orelse
        lists:keymember(From, 1, Pending).

accepted(From, Purpose, Known, #state{views = Views} = State0) ->
    State = learn(Known, State0),
    Needed = Purpose =:= join orelse Purpose =:= take,
    case Needed orelse atoll_hyparview_views:room(Views) > 0 of
        true ->
            adopt(From, State);
        false ->
            %% The place was taken meanwhile.
            send(From, {disconnect, []}, note(From, settled(From, State)))
    end.

late(From, #state{views = Views} = State) ->
    case atoll_hyparview_views:is_active(From, Views) of
        true -> State;
        false -> count(late, send(From, {disconnect, []}, State))
    end.

refused(From, join, State) ->
    next_contact(settled(From, State));
refused(From, _Purpose, #state{refused = Refused0, options = #{passive_max := Max}} = State) ->
    Refused = lists:sublist([From | Refused0], Max),
    Counted = count(refused_dropped, 1 + length(Refused0) - length(Refused), count(refusals, State)),
    repair(settled(From, Counted#state{refused = Refused})).

%% What only a neighbour sends came from one that is none, or none any more.
not_a_neighbour(From, State) ->
    count(strangers, send(From, {disconnect, []}, State)).

stranger(Node, #state{views = Views} = State) ->
    case atoll_hyparview_views:is_active(Node, Views) of
        true -> tend(drop(Node, not_a_neighbour(Node, State)));
        false -> State
    end.

%% Joining and leaving

join(Contacts0, #state{self = Self, views = Views, rand = Rand0} = State0) ->
    Strangers = (Contacts0 -- [Self]) -- atoll_hyparview_views:active(Views),
    {Contacts, Rand} = sample(maps:get(passive_max, State0#state.options), Strangers, Rand0),
    Kept = State0#state{contacts = Contacts, rand = Rand, left = false},
    State1 = count(contacts_dropped, length(Strangers) - length(Contacts), Kept),
    State = learn(lists:sublist(Contacts, maps:get(shuffle_passive, State0#state.options)), State1),
    case lists:keymember(join, 3, State#state.pending) of
        true -> State;
        false -> next_contact(State)
    end.

next_contact(#state{contacts = []} = State) ->
    repair(State);
next_contact(#state{contacts = Contacts, rand = Rand0} = State0) ->
    {Contact, Rand} = pick(Contacts, Rand0),
    State = State0#state{contacts = lists:delete(Contact, Contacts), rand = Rand},
    %% It may be a neighbour by now, or be asked for another reason, which a join
    %% takes the place of.
    case atoll_hyparview_views:is_active(Contact, State#state.views) of
        true -> next_contact(State);
        false -> request(Contact, join, settled(Contact, State))
    end.

walk_out(New, #state{views = Views, options = #{arwl := Ttl}} = State) ->
    Others = atoll_hyparview_views:active(Views) -- [New],
    lists:foldl(fun(Node, S) -> send(Node, {forward_join, New, Ttl}, S) end, State, Others).

walk(_From, Self, _Ttl, #state{self = Self} = State) ->
    State;
walk(From, New, Ttl, #state{views = Views, options = #{prwl := Prwl}, rand = Rand0} = State0) ->
    case (atoll_hyparview_views:active(Views) -- [From]) -- [New] of
        [_ | _] = Next when Ttl > 0 ->
            {Node, Rand} = pick(Next, Rand0),
            State = send(Node, {forward_join, New, Ttl - 1}, State0#state{rand = Rand}),
            case Ttl of
                Prwl -> tend(note(New, State));
                _ -> State
            end;
        _ ->
            take(New, State0)
    end.

take(New, #state{views = Views, pending = Pending} = State) ->
    Known =
        atoll_hyparview_views:is_active(New, Views) orelse lists:keymember(New, 1, Pending),
    case Known of
        true -> State;
        false -> request(New, take, State)
    end.

leave(#state{views = Views, pending = Pending} = State0) ->
    Active = atoll_hyparview_views:active(Views),
    Asked = [Node || {Node, _, _} <- Pending],
    State1 = lists:foldl(fun(Node, S) -> send(Node, leaving, S) end, State0, Active ++ Asked),
    State2 = lists:foldl(fun drop/2, lists:foldl(fun settled/2, State1, Asked), Active),
    State2#state{
        views = atoll_hyparview_views:clear(State2#state.views),
        contacts = [],
        refused = [],
        shuffled = [],
        swap = atoll_hyparview_swap:new(State2#state.self, State2#state.options),
        left = true
    }.

%% Losses and repair

down(Node, Reason, #state{views = Views, pending = Pending} = State) ->
    Concerns =
        atoll_hyparview_views:is_active(Node, Views) orelse lists:keymember(Node, 1, Pending),
    case Concerns of
        false -> State;
        %% The next life, of the peer or of this node itself, is as good as any other.
        true when Reason =:= restarted; Reason =:= reborn -> note(Node, gone(Node, lost, State));
        true -> gone(Node, lost, State)
    end.

%% It is a candidate no longer, and if it had a place, that is to be filled.
gone(Node, Why, #state{views = Views, pending = Pending, swap = Swap} = State0) ->
    State = State0#state{
        views = atoll_hyparview_views:forget(Node, Views),
        swap = atoll_hyparview_swap:gone(Node, Swap)
    },
    case atoll_hyparview_views:is_active(Node, Views) of
        true ->
            repair(part(Node, Why, State));
        false ->
            case lists:keyfind(Node, 1, Pending) of
                {Node, _Number, join} -> next_contact(settled(Node, State));
                {Node, _Number, _} -> repair(settled(Node, State));
                false -> State
            end
    end.

unanswered(Node, State) ->
    %% It may have accepted, and its answer may be lost.
    gone(Node, lost, count(unanswered, send(Node, {disconnect, []}, State))).

%% Asks for as many neighbours as there is room for.
repair(#state{left = true} = State) ->
    State;
repair(State0) ->
    State = tend(State0),
    #state{views = Views, pending = Pending, refused = Refused, options = Options} = State,
    Room = atoll_hyparview_views:room(Views) - length(Pending),
    Tries = maps:get(refusals, Options) - length(Refused),
    ask(min(Room, Tries), low, State).

%% Asks for what a node must not be without, and sees to the rest later.
tend(#state{left = true} = State) ->
    State;
tend(#state{views = Views, pending = Pending, options = Options, promoting = Promoting} = State0) ->
    #{active_max := Max, promotion_ms := Ms} = Options,
    Size = atoll_hyparview_views:size(Views),
    Urgent = min(?ENOUGH, Max) - Size,
    State =
        case Urgent > 0 of
            true -> ask(Urgent - length([N || {N, _, P} <- Pending, P =/= low]), high, State0);
            false -> State0
        end,
    case Size < Max andalso not Promoting of
        true -> emit({timer, promotion, Ms}, State#state{promoting = true});
        false -> State
    end.

ask(N, _Priority, State) when N =< 0 ->
    State;
ask(N, Priority, State0) ->
    case candidates(Priority, State0) of
        {[], State} ->
            State;
        {Candidates, State} ->
            {Node, Rand} = pick(Candidates, State#state.rand),
            ask(N - 1, Priority, request(Node, Priority, State#state{rand = Rand}))
    end.

%% One that may be on an island asks those too that the bound pushed out.
candidates(Priority, #state{views = Views0, rand = Rand0} = State) ->
    case {Priority, unasked(State)} of
        {high, []} ->
            {Views, Rand} = atoll_hyparview_views:replenish(Views0, Rand0),
            Replenished = State#state{views = Views, rand = Rand},
            {unasked(Replenished), Replenished};
        {_, Candidates} ->
            {Candidates, State}
    end.

unasked(#state{views = Views, pending = Pending, refused = Refused}) ->
    (atoll_hyparview_views:passive(Views) -- [Node || {Node, _, _} <- Pending]) -- Refused.

request(Node, Purpose, #state{pending = Pending, options = Options, requests = N} = State0) ->
    case length(Pending) < maps:get(pending_max, Options) of
        true ->
            Number = N + 1,
            State = State0#state{
                pending = [{Node, Number, Purpose} | Pending], requests = Number
            },
            Message =
                case Purpose of
                    join -> {join, Number};
                    take -> {neighbour, Number, high};
                    Priority -> {neighbour, Number, Priority}
                end,
            Ms = maps:get(request_ms, Options),
            emit({timer, {request, Node}, Ms}, send(Node, Message, State));
        false ->
            count(not_asked, State0)
    end.

%% The request to this node, if there is one, needs no answer any more.
settled(Node, #state{pending = Pending} = State) ->
    case lists:keytake(Node, 1, Pending) of
        {value, _, Others} -> emit({cancel, {request, Node}}, State#state{pending = Others});
        false -> State
    end.

%% Becoming and ceasing to be neighbours

adopt(Node, #state{views = Views0, rand = Rand0} = State0) ->
    State1 = settled(Node, State0),
    case atoll_hyparview_views:is_active(Node, Views0) of
        true ->
            State1;
        false ->
            {Views, Evicted, Rand} = atoll_hyparview_views:adopt(Node, Views0, Rand0),
            State2 = evict(Evicted, State1#state{views = Views, rand = Rand}),
            tend(emit({notify, {neighbour_up, Node}}, emit({want, Node}, State2)))
    end.

evict(none, State) ->
    State;
evict({evicted, Node}, #state{views = Views} = State0) ->
    {Known, State} = some_of(atoll_hyparview_views:active(Views), State0),
    count(evicted, part(Node, dropped, send(Node, {disconnect, Known}, State))).

%% The link is given up; both ends know.
drop(Node, #state{views = Views0, rand = Rand0} = State) ->
    case atoll_hyparview_views:is_active(Node, Views0) of
        true ->
            {Views, Rand} = atoll_hyparview_views:demote(Node, Views0, Rand0),
            part(Node, dropped, State#state{views = Views, rand = Rand});
        false ->
            State
    end.

part(Node, Why, State) ->
    emit({notify, {neighbour_down, Node, Why}}, emit({unwant, Node}, State)).

%% Passive views

note(Node, State) ->
    learn([Node], State).

learn([], State) ->
    State;
learn(Nodes, #state{views = Views0, rand = Rand0} = State) ->
    {Views, Rand} = atoll_hyparview_views:merge(Nodes, [], Views0, Rand0),
    State#state{views = Views, rand = Rand}.

some_of(Nodes, #state{rand = Rand0, options = #{shuffle_active := N}} = State) ->
    {Some, Rand} = sample(N, Nodes, Rand0),
    {Some, State#state{rand = Rand}}.

start_shuffle(#state{options = #{shuffle_ms := Ms}} = State0) ->
    State = mix(emit({timer, shuffle, Ms}, State0)),
    #state{views = Views, options = Options, rand = Rand0} = State,
    #{shuffle_active := A, shuffle_passive := P, arwl := Ttl} = Options,
    case atoll_hyparview_views:active(Views) of
        [] ->
            State;
        Active ->
            Self = State#state.self,
            {Node, Rand1} = pick(Active, Rand0),
            {Neighbours, Rand2} = sample(A, lists:delete(Node, Active), Rand1),
            {Others, Rand} = sample(P, atoll_hyparview_views:passive(Views), Rand2),
            Nodes = [Self | Neighbours ++ Others],
            send(Node, {shuffle, Ttl, [Self], Nodes}, State#state{rand = Rand, shuffled = Nodes})
    end.

%% Takes the place of a link that was made when the node was new. Only for so many
%% shuffles, so that an overlay to which nobody comes is at rest soon.
mix(#state{mixes = 0} = State) ->
    State;
mix(#state{mixes = Left, views = Views, rand = Rand0} = State0) ->
    State = State0#state{mixes = Left - 1},
    Asked = [Node || {Node, _, _} <- State#state.pending],
    case atoll_hyparview_views:room(Views) =:= 0 andalso atoll_hyparview_views:passive(Views) -- Asked of
        [_ | _] = Candidates ->
            {Node, Rand} = pick(Candidates, Rand0),
            request(Node, take, State#state{rand = Rand});
        _ ->
            State
    end.

%% The next two are what the overlay does most of the time, and are kept cheap.

shuffle(From, Ttl, Path, Nodes, #state{views = Views, self = Self} = State) ->
    Active = atoll_hyparview_views:active(Views),
    case lists:member(From, Active) of
        true when Ttl > 1 ->
            case Active -- Path of
                [] ->
                    exchange(Path, Nodes, State);
                Next ->
                    {Node, Rand} = pick(Next, State#state.rand),
                    Message = {shuffle, Ttl - 1, [Self | Path], Nodes},
                    {State#state{rand = Rand}, [{send, Node, Message}]}
            end;
        true ->
            exchange(Path, Nodes, State);
        false ->
            done(not_a_neighbour(From, State))
    end.

shuffled(_From, [_Self], Nodes, #state{shuffled = Sent} = State) ->
    exchanged(Nodes, Sent, [], State);
shuffled(_From, [_Self | [Next | _] = Path], Nodes, #state{views = Views} = State) ->
    case atoll_hyparview_views:is_active(Next, Views) of
        true -> {State, [{send, Next, {shuffled, Path, Nodes}}]};
        false -> {count(strayed, State), []}
    end.

%% A walk ends here. Neighbours make up for what the passive view does not have yet.
exchange([Last | _] = Path, Nodes, #state{views = Views, rand = Rand0} = State) ->
    Wanted = length(Nodes),
    Active = atoll_hyparview_views:active(Views),
    {Passive, Rand1} = sample(Wanted, atoll_hyparview_views:passive(Views) -- Nodes, Rand0),
    {More, Rand} = sample(Wanted - length(Passive), Active -- Nodes, Rand1),
    Answer = Passive ++ More,
    Send = [{send, Last, {shuffled, Path, Answer}}],
    exchanged(Nodes, Answer, Send, State#state{rand = Rand}).

exchanged(Nodes, Given, Effects, #state{views = Views0, rand = Rand0} = State0) ->
    {Views, Rand} = atoll_hyparview_views:merge(Nodes, Given, Views0, Rand0),
    State = State0#state{views = Views, rand = Rand},
    case atoll_hyparview_views:size(Views) < ?ENOUGH of
        true ->
            {Tended, More} = done(tend(State)),
            {Tended, Effects ++ More};
        false ->
            {State, Effects}
    end.

%% Exchanging links for shorter ones

start_swap(Now, #state{views = Views, swap = Swap0, rand = Rand0, options = Options} = State0) ->
    State = emit({timer, xbot, maps:get(xbot_ms, Options)}, State0),
    {Swap, Deeds, Rand} = atoll_hyparview_swap:tick(Views, Now, Rand0, Swap0),
    swap_deeds(Deeds, State#state{swap = Swap, rand = Rand}).

swap_message(From, Message, Now, #state{views = Views, swap = Swap0} = State) ->
    {Swap, Deeds} = atoll_hyparview_swap:message(From, Message, Views, Now, Swap0),
    swap_deeds(Deeds, State#state{swap = Swap}).

swap_deeds(Deeds, State) ->
    lists:foldl(fun swap_deed/2, State, Deeds).

swap_deed({tell, Node, Message}, State) ->
    send(Node, {swap, Message}, State);
swap_deed({adopt, Node}, State) ->
    adopt(Node, State);
swap_deed({drop, Node}, State) ->
    drop(Node, send(Node, {disconnect, []}, State));
swap_deed({wait, Ms}, State) ->
    emit({timer, swap, Ms}, State);
swap_deed(wait_no_longer, State) ->
    emit({cancel, swap}, State).

%% Effects

send(Node, Message, State) ->
    emit({send, Node, Message}, State).

emit(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

done(#state{effects = Effects} = State) ->
    {State#state{effects = []}, lists:reverse(Effects)}.

count(What, State) ->
    count(What, 1, State).

count(_What, 0, State) ->
    State;
count(What, More, #state{counts = Counts} = State) ->
    State#state{counts = maps:update_with(What, fun(N) -> N + More end, More, Counts)}.
