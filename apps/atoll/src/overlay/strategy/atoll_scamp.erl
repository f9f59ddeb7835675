%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `scamp': partial views whose size follows the cluster's, with
%% nobody knowing that size.
%%
%% SCAMP (Ganesh, Kermarrec, Massoulié: Peer-to-peer membership management for
%% gossip-based protocols, IEEE Transactions on Computers 52(2), 2003), with the
%% in-views of its full version:
%% <ul>
%% <li>Subscription. A joiner asks a contact. The request first goes on a short
%%   random walk, so that one well-known contact does not become everybody's; where
%%   it ends is the joiner's first out-view. That node forwards a copy to each
%%   member of its own out-view and `c' more to random ones. Who gets a copy keeps
%%   the joiner in its out-view with probability 1/(1 + its size), else hands the
%%   copy to a random member. After `hops' such steps it is kept by whoever does
%%   not have it yet, so that nothing circles for ever.</li>
%% <li>Unsubscription. Who leaves tells all but c + 1 of its in-view to replace it by
%%   members of its out-view, and those to drop it.</li>
%% <li>Isolation. A node whose in-view was empty for `window' periods, or whose
%%   out-view is empty, subscribes again.</li>
%% </ul>
%% A node wants the links of its out-view. Whoever has a node in its out-view says
%% so in its hello ({@link atoll_peers}), and that makes the other's in-view: it is
%% as true as the links are, and no heartbeats are needed. Both views are
%% neighbours. Heartbeats would cost a message for each arc and period; here the
%% failure detector watches the links anyway.
%%
%% Promised: nodes that subscribe one after the other have a mean out-view of about
%% (c + 1) ln n. Not promised: that many who subscribe at once get as much (a copy
%% for each member of views that are still small: of a thousand nodes that start
%% within a second the mean is half of that); that the graph is connected (it is with high
%% probability; discovery joins islands), that a view is refilled after the death
%% of its members, or a bound on a single in-view. A node that could not be reached
%% several times in a row is dropped, so the halves of a long partition forget each
%% other and are joined again by their contacts. After `leave' a node stays outside
%% until it is started again. That messages may come twice, which Erlang's distribution does
%% not do: each copy goes on by itself, and where everybody has the joiner already it takes
%% all `hops', so that of 20 nodes one in twenty messages that comes twice makes a flood.
-module(atoll_scamp).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, message/0]).

-type message() ::
    %% Offers say whether the receiver is in the sender's out-view.
    atoll_peers:hello()
    %% Who wants to join, and how far the request goes before it is granted.
    | {subscribe, node(), Steps :: non_neg_integer()}
    %% The sender is the first member of the receiver's out-view.
    | granted
    %% Keep this node, or hand it on.
    | {copy, node(), Steps :: non_neg_integer()}
    %% The sender leaves; who is to take its place.
    | {unsubscribe, node() | nobody}.

-record(state, {
    self :: node(),
    options :: atoll_options:options(),
    %% The out-view, newest first.
    out = [] :: [node()],
    size = 0 :: non_neg_integer(),
    %% Members that could not be reached, and how often in a row.
    failures = #{} :: #{node() => pos_integer()},
    peers :: atoll_peers:peers(),
    contacts = atoll_contacts:new() :: atoll_contacts:contacts(),
    %% Periods without an in-view.
    silent = 0 :: non_neg_integer(),
    left = false :: boolean(),
    %% How often it subscribed; what ended without being kept; and members that
    %% a full view did not take.
    subscribed = 0 :: non_neg_integer(),
    spent = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer(),
    %% Terms that it was told and does not know.
    not_understood = 0 :: non_neg_integer(),
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% @doc Copies beyond the view's size; the steps of a request and of a copy; the
%% largest out-view; the period, and how many without an in-view mean isolation;
%% failed attempts in a row until a member is dropped; and after which time an
%% unanswered hello is said again.
-spec options() -> atoll_options:known().
options() ->
    #{
        c => {non_neg_integer, 5},
        walk => {non_neg_integer, 10},
        hops => {pos_integer, 300},
        view_max => {pos_integer, 200},
        period_ms => {pos_integer, 10000},
        window => {pos_integer, 10},
        attempts => {pos_integer, 3},
        hello_ms => {pos_integer, 5000}
    }.

%% @doc Empty views; nodes of an earlier life serve as contacts.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, seed := Seed, options := #{hello_ms := HelloMs} = Options, remembered := Remembered}, _Now) ->
    State = #state{
        self = Self,
        options = Options,
        peers = atoll_peers:new(either, HelloMs),
        rand = rand:seed_s(exsss, Seed)
    },
    done(join(Remembered, next_period(State))).

%% @doc Takes one event.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, {hello, Answer, Offer}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:heard(From, Answer, Offer, P) end, State));
handle({message, From, {unsubscribe, Heir}}, _Now, State) ->
    done(replace(From, Heir, State));
handle({message, _From, _Message}, _Now, #state{left = true} = State) ->
    {State, []};
handle({message, _From, {copy, Node, Steps}}, _Now, State) ->
    done(copy(Node, Steps, State));
handle({message, _From, {subscribe, Node, Steps}}, _Now, State) ->
    done(subscription(Node, Steps, State));
handle({message, From, granted}, _Now, #state{contacts = Contacts} = State) ->
    done(keep(From, State#state{contacts = atoll_contacts:clear(Contacts)}));
handle({up, Node}, _Now, #state{failures = Failures} = State) ->
    Reached = reached(Node, State#state{failures = maps:remove(Node, Failures)}),
    done(peers(fun(P) -> atoll_peers:up(Node, P) end, Reached));
handle({down, Node, restarted}, _Now, State) ->
    %% Its subscription was its earlier life's.
    done(drop(Node, peers(fun(P) -> atoll_peers:down(Node, P) end, State)));
handle({down, Node, _Reason}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:down(Node, P) end, State));
handle({timeout, hello}, _Now, State) ->
    done(peers(fun atoll_peers:remind/1, State));
handle({timeout, period}, _Now, State) ->
    done(next_period(look_around(State)));
handle({cast, {join, Contacts}}, _Now, State) ->
    done(join(Contacts, State));
handle({cast, {unreachable, Node}}, _Now, State) ->
    done(failed(Node, next_contact(Node, State)));
handle({cast, {dead, Node}}, _Now, State) ->
    done(drop(Node, State));
handle({cast, {stranger, Node}}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:ask(Node, P) end, State));
handle({cast, leave}, _Now, State) ->
    done(leave(State));
handle({cast, {tell, _Unknown}}, _Now, #state{not_understood = N} = State) ->
    {State#state{not_understood = N + 1}, []}.

%% @doc In the order of their names.
-spec neighbours(state()) -> [node()].
neighbours(#state{peers = Peers}) ->
    atoll_peers:neighbours(Peers).

%% @doc Members of the out-view whose link is down.
-spec known(state()) -> [node()].
known(#state{out = Out, peers = Peers}) ->
    lists:sort(Out) -- atoll_peers:neighbours(Peers).

%% @doc Sizes, and what was dropped.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{size = Size, peers = Peers} = State) ->
    (atoll_contacts:summary(State#state.contacts))#{
        strategy => scamp,
        out => Size,
        in => length(atoll_peers:heard(Peers)),
        neighbours => atoll_peers:count(Peers),
        failing => map_size(State#state.failures),
        subscribed => State#state.subscribed,
        spent => State#state.spent,
        refused => State#state.refused,
        not_understood => State#state.not_understood,
        hellos => atoll_peers:summary(Peers)
    }.

%% Subscribing

join(_Contacts, #state{left = true} = State) ->
    State;
join(Contacts, #state{self = Self, peers = Peers} = State0) ->
    Others = [N || N <- lists:usort(Contacts), N =/= Self, not atoll_peers:is_neighbour(N, Peers)],
    case {Others, atoll_peers:count(Peers)} of
        {_, 0} ->
            join_by(Others, State0);
        {[], _} ->
            State0;
        {_, _} ->
            %% Two islands meet: one arc is enough to join them.
            {Contact, State} = choose(Others, State0),
            keep(Contact, State)
    end.

join_by(Nodes, #state{contacts = Contacts0, rand = Rand0} = State) ->
    {Contacts, Rand} = atoll_contacts:put(Nodes, Rand0, Contacts0),
    ask_to_join(State#state{contacts = Contacts, rand = Rand}).

ask_to_join(#state{contacts = Contacts} = State) ->
    case atoll_contacts:first(Contacts) of
        {ok, Contact} -> ask_to_join(Contact, State);
        none -> State
    end.

ask_to_join(Contact, #state{self = Self, peers = Peers, options = #{walk := Steps}} = State0) ->
    State = send(Contact, {subscribe, Self, Steps}, State0#state{subscribed = State0#state.subscribed + 1}),
    case atoll_peers:is_up(Contact, Peers) of
        true -> reached(Contact, State);
        false -> State
    end.

reached(Node, #state{contacts = Contacts} = State) ->
    State#state{contacts = atoll_contacts:reached(Node, Contacts)}.

next_contact(Node, #state{contacts = Contacts0} = State) ->
    case atoll_contacts:failed(Node, Contacts0) of
        {next, Contacts} -> ask_to_join(State#state{contacts = Contacts});
        other -> State
    end.

%% A request travels over both views.
subscription(Node, Steps, #state{self = Self, peers = Peers} = State0) ->
    case atoll_peers:neighbours(Peers) -- [Node] of
        [] when Node =:= Self -> State0;
        [_ | _] when Node =:= Self, Steps =:= 0 -> State0#state{spent = State0#state.spent + 1};
        [_ | _] = Neighbours when Steps > 0 ->
            {Next, State} = choose(Neighbours, State0),
            send(Next, {subscribe, Node, Steps - 1}, State);
        _ ->
            grant(Node, State0)
    end.

grant(Node, #state{out = Out, options = #{c := C, hops := Hops}} = State0) ->
    State = send(Node, granted, State0),
    case lists:delete(Node, Out) of
        [] ->
            keep(Node, State);
        Others ->
            Each = lists:foldl(fun(Member, S) -> send(Member, {copy, Node, Hops}, S) end, State, Others),
            lists:foldl(
                fun(_, S0) ->
                    {Member, S} = choose(Others, S0),
                    send(Member, {copy, Node, Hops}, S)
                end,
                Each,
                lists:seq(1, C)
            )
    end.

copy(Node, Steps, #state{self = Self, size = Size, rand = Rand0} = State0) ->
    {X, Rand} = rand:uniform_s(Size + 1, Rand0),
    State = State0#state{rand = Rand},
    case Node =/= Self andalso (X =:= 1 orelse Steps =:= 0) andalso can_keep(Node, State) of
        true -> keep(Node, State);
        false when Steps =:= 0; Size =:= 0 -> State#state{spent = State#state.spent + 1};
        false -> hand_on(Node, Steps - 1, State)
    end.

hand_on(Node, Steps, #state{out = Out} = State0) ->
    {Next, State} = choose(Out, State0),
    send(Next, {copy, Node, Steps}, State).

can_keep(Node, #state{peers = Peers, size = Size, options = #{view_max := Max}}) ->
    atoll_peers:offered(Node, Peers) =:= false andalso Size < Max.

%% Views

keep(Node, #state{self = Self, out = Out, size = Size, peers = Peers} = State) ->
    case Node =/= Self andalso atoll_peers:offered(Node, Peers) =:= false of
        true ->
            case can_keep(Node, State) of
                true ->
                    Grown = State#state{out = [Node | Out], size = Size + 1},
                    peers(fun(P) -> atoll_peers:offer(Node, true, atoll_peers:want(Node, P)) end, Grown);
                false ->
                    State#state{refused = State#state.refused + 1}
            end;
        false ->
            State
    end.

drop(Node, #state{out = Out, size = Size, failures = Failures, peers = Peers} = State) ->
    case atoll_peers:offered(Node, Peers) of
        false ->
            State;
        _ ->
            Less = State#state{
                out = lists:delete(Node, Out), size = Size - 1, failures = maps:remove(Node, Failures)
            },
            peers(fun(P) -> atoll_peers:unwant(Node, atoll_peers:offer(Node, false, P)) end, Less)
    end.

failed(Node, #state{failures = Failures, peers = Peers, options = #{attempts := Attempts}} = State) ->
    Failed = maps:get(Node, Failures, 0) + 1,
    case atoll_peers:offered(Node, Peers) =:= false orelse atoll_peers:is_up(Node, Peers) of
        true -> State;
        false when Failed >= Attempts -> drop(Node, State);
        false -> State#state{failures = Failures#{Node => Failed}}
    end.

%% Leaving

leave(#state{out = Out, peers = Peers, contacts = Contacts, rand = Rand0, options = #{c := C}} = State0) ->
    {In, Rand} = atoll_random:shuffle(atoll_peers:heard(Peers), Rand0),
    State1 = State0#state{rand = Rand},
    {Dropping, Replacing} = lists:split(min(C + 1, length(In)), In),
    State2 = lists:foldl(fun(Node, S) -> send(Node, {unsubscribe, nobody}, S) end, State1, Dropping),
    State = lists:foldl(
        fun({Node, Heir}, S) -> send(Node, {unsubscribe, Heir}, S) end,
        State2,
        lists:zip(Replacing, heirs(length(Replacing), Out))
    ),
    lists:foldl(fun drop/2, State#state{left = true, contacts = atoll_contacts:clear(Contacts)}, Out).

%% The out-view over and over, as many as are needed.
heirs(Count, []) ->
    lists:duplicate(Count, nobody);
heirs(Count, Out) ->
    lists:sublist(lists:append(lists:duplicate(Count div length(Out) + 1, Out)), Count).

replace(Node, Heir, #state{peers = Peers, left = Left} = State) ->
    case atoll_peers:offered(Node, Peers) =/= false andalso Heir =/= nobody andalso not Left of
        true -> keep(Heir, drop(Node, State));
        false -> drop(Node, State)
    end.

%% Isolation

look_around(#state{left = true} = State) ->
    State;
look_around(#state{size = Size, silent = Silent0, peers = Peers, options = #{window := Window}} = State) ->
    Silent =
        case atoll_peers:heard(Peers) of
            [] -> Silent0 + 1;
            _ -> 0
        end,
    case Size =:= 0 orelse Silent >= Window of
        true -> resubscribe(State#state{silent = 0});
        false -> State#state{silent = Silent}
    end.

%% Through anybody; who has nobody is told by discovery to join.
resubscribe(#state{peers = Peers} = State) ->
    join_by(atoll_peers:neighbours(Peers), State).

%% Effects

done(#state{peers = Peers0} = State) ->
    {Peers, Effects} = atoll_peers:take(Peers0),
    {State#state{peers = Peers}, Effects}.

peers(Fun, #state{peers = Peers} = State) ->
    State#state{peers = Fun(Peers)}.

send(Node, Message, State) ->
    peers(fun(P) -> atoll_peers:emit({send, Node, Message}, P) end, State).

%% Up to half as long again, so that nodes do not go in step.
next_period(#state{rand = Rand0, options = #{period_ms := Ms}} = State) ->
    {More, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    peers(fun(P) -> atoll_peers:emit({timer, period, Ms + More - 1}, P) end, State#state{rand = Rand}).

choose(Nodes, #state{rand = Rand0} = State) ->
    {Node, Rand} = atoll_random:pick(Nodes, Rand0),
    {Node, State#state{rand = Rand}}.
