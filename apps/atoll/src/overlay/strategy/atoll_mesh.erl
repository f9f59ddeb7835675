%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The strategy `mesh': all with all.
%%
%% Who belongs to the mesh is {@link atoll_mesh_members}. A node wants a link with every
%% live member, and those whose link is up are its neighbours. News travel so:
%% <ul>
%% <li>A joiner sends its members to a contact and gets the contact's. It links with
%%   all of them, and each hears of it by its hello. Both ends pass on what they
%%   learned so to the members they had before: two meshes that meet are one.</li>
%% <li>Every gossip period a node sends the digest of its members to a random one;
%%   only if the digests differ are the lists exchanged. Who learned something does
%%   so again soon, so that news spread in a logarithm of short rounds.</li>
%% <li>A verdict of the failure detector makes a member gone, and so does its own
%%   leave. That its link is down does not: the link room tries on, and only a
%%   member that was out of reach for long is given up.</li>
%% <li>Who is told that a neighbour of his is gone does not believe it, but tells
%%   the neighbour. A node that finds itself gone takes a higher incarnation and
%%   says so to all.</li>
%% <li>Once in a while a gone node is knocked at, so that the parts of a mesh find
%%   each other after a partition that was taken for deaths.</li>
%% </ul>
%%
%% Promised: any two nodes that exchange messages long enough, over whomever, know
%% the same members, and all live members that reach each other are neighbours.
%% Not promised: that a node which was forgotten (see {@link atoll_mesh_members}) stays
%% so; that two members which others reach, but not each other, leave the others in
%% peace: each time one gives the other up, that one has to object. After `leave' a
%% node stays outside until it is started again. The cost is that of a mesh: links
%% and memory grow with the cluster, per node.
-module(atoll_mesh).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-export_type([state/0, message/0]).

-type message() ::
    atoll_peers:hello()
    %% Offers are incarnations.
    | {join, [{node(), atoll_mesh_members:entry()}]}
    | {digest, non_neg_integer()}
    %% What the receiver may not know; whether it should say what we do not know.
    | {members, [{node(), atoll_mesh_members:entry()}], Answer :: boolean()}
    %% A few entries, in passing.
    | {news, [{node(), atoll_mesh_members:entry()}]}.

-record(state, {
    self :: node(),
    options :: atoll_options:options(),
    members :: atoll_mesh_members:members(),
    %% Of the members; unknown after a change.
    digest = unknown :: unknown | non_neg_integer(),
    peers :: atoll_peers:peers(),
    contacts = atoll_contacts:new() :: atoll_contacts:contacts(),
    %% Live members that cannot be reached, and since when in their present life.
    failing = #{} :: #{node() => atoll_protocol:now_ms()},
    %% Whether the next gossip is to be soon.
    news = false :: boolean(),
    left = false :: boolean(),
    forgotten = 0 :: non_neg_integer(),
    %% Terms that it was told and does not know.
    not_understood = 0 :: non_neg_integer(),
    rand :: rand:state()
}).

-opaque state() :: #state{}.

%% How many members without a link are worth remembering over a restart.
-define(KNOWN, 100).

%% @doc The pause between two comparisons with a random member; while there are
%% news; between two knocks at a gone one; after which an unanswered hello is said
%% again; for how long a member may be out of reach; and how many gone ones are
%% remembered.
-spec options() -> atoll_options:known().
options() ->
    #{
        gossip_ms => {pos_integer, 10000},
        news_ms => {pos_integer, 1000},
        knock_ms => {pos_integer, 60000},
        hello_ms => {pos_integer, 5000},
        give_up_ms => {pos_integer, 60000},
        max_gone => {non_neg_integer, 1000}
    }.

%% @doc A mesh of one.
-spec init(atoll_strategy:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Options} = Config, _Now) ->
    #{hello_ms := HelloMs, gossip_ms := GossipMs, knock_ms := KnockMs} = Options,
    State = #state{
        self = Self,
        options = Options,
        members = atoll_mesh_members:new(Self, Incarnation),
        peers = atoll_peers:new(both, HelloMs),
        rand = rand:seed_s(exsss, Seed)
    },
    Timed = timer(knock, KnockMs, timer(gossip, GossipMs, State)),
    done(join(maps:get(remembered, Config), Timed)).

%% @doc Takes one event.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, Message}, _Now, #state{left = true} = State) ->
    done(after_leave(From, Message, State));
handle({message, From, Message}, _Now, State) ->
    done(message(Message, From, State));
handle({up, Node}, _Now, #state{failing = Failing} = State) ->
    Reached = reached(Node, State#state{failing = maps:remove(Node, Failing)}),
    done(peers(fun(P) -> atoll_peers:up(Node, P) end, Reached));
handle({down, Node, _Reason}, _Now, State) ->
    done(peers(fun(P) -> atoll_peers:down(Node, P) end, State));
handle({timeout, hello}, _Now, State) ->
    done(peers(fun atoll_peers:remind/1, State));
handle({timeout, gossip}, _Now, #state{peers = Peers, options = #{gossip_ms := Ms}} = State) ->
    done(timer(gossip, Ms, compare(atoll_peers:neighbours(Peers), State#state{news = false})));
handle({timeout, knock}, _Now, #state{members = Members, options = #{knock_ms := Ms}} = State) ->
    done(timer(knock, Ms, compare(atoll_mesh_members:gone(Members), State)));
handle({cast, {join, Contacts}}, _Now, State) ->
    done(join(Contacts, State));
handle({cast, {unreachable, Node}}, Now, State) ->
    done(unreachable(Node, Now, next_contact(Node, State)));
handle({cast, {dead, Node}}, _Now, State) ->
    done(bury(Node, State));
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

%% @doc Live members with which there is no link, a hundred at most.
-spec known(state()) -> [node()].
known(#state{self = Self, members = Members, peers = Peers}) ->
    lists:sublist(atoll_mesh_members:alive(Members) -- [Self | atoll_peers:neighbours(Peers)], ?KNOWN).

%% @doc Sizes, and what was dropped.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{self = Self, members = Members, peers = Peers, forgotten = Forgotten} = State) ->
    {Incarnation, _} = atoll_mesh_members:entry(Self, Members),
    (atoll_contacts:summary(State#state.contacts))#{
        strategy => mesh,
        incarnation => Incarnation,
        members => length(atoll_mesh_members:alive(Members)),
        gone => length(atoll_mesh_members:gone(Members)),
        neighbours => atoll_peers:count(Peers),
        failing => map_size(State#state.failing),
        forgotten => Forgotten,
        not_understood => State#state.not_understood,
        hellos => atoll_peers:summary(Peers)
    }.

%% Messages

message({hello, Answer, Offer}, From, State0) ->
    State = introduced(From, Offer, State0),
    peers(fun(P) -> atoll_peers:heard(From, Answer, Offer, P) end, State);
message({join, List}, From, #state{members = Before} = State0) ->
    State = learn(From, List, State0),
    send(From, {members, newer(State, List), false}, pass_on(From, Before, State));
message({news, List}, From, State) ->
    learn(From, List, State);
message({digest, Digest}, From, State0) ->
    case digest(State0) of
        {Digest, State} -> State;
        {_, #state{members = Members} = State} -> send(From, {members, atoll_mesh_members:to_list(Members), true}, State)
    end;
message({members, List, Answer}, From, #state{members = Before} = State0) ->
    State = learn(From, List, State0),
    case {Answer, newer(State, List)} of
        {false, _} -> pass_on(From, Before, State);
        {true, []} -> State;
        {true, Newer} -> send(From, {members, Newer, false}, State)
    end.

newer(#state{members = Members}, List) ->
    atoll_mesh_members:newer(Members, atoll_mesh_members:from_list(List)).

%% A hello says that its sender lives. If it is held to be gone in this very life,
%% it has to hear so.
introduced(_From, false, State) ->
    State;
introduced(From, Incarnation, #state{members = Members} = State) ->
    case atoll_mesh_members:entry(From, Members) of
        {Known, gone} = Entry when Known >= Incarnation -> send(From, {news, [{From, Entry}]}, State);
        _ -> learn(From, [{From, {Incarnation, alive}}], State)
    end.

%% What a few know is passed on at once only where two meshes meet; the rest is
%% gossip.
pass_on(From, Before, #state{self = Self, members = Members, peers = Peers} = State) ->
    case [Entry || {Node, {_, alive}} = Entry <- atoll_mesh_members:newer(Members, Before), Node =/= From, Node =/= Self] of
        [] -> State;
        News -> send_all(atoll_peers:neighbours(Peers) -- [From], {news, News}, State)
    end.

%% Members

learn(From, List, #state{self = Self, members = Members} = State0) ->
    {Doubted, Believed} = lists:partition(fun(Entry) -> is_doubted(From, Entry, State0) end, List),
    State = lists:foldl(
        fun({Node, _} = Entry, S) -> send(Node, {news, [Entry]}, S) end, State0, Doubted
    ),
    Merged = atoll_mesh_members:merge(Members, atoll_mesh_members:from_list(Believed)),
    case atoll_mesh_members:entry(Self, Merged) of
        {Incarnation, gone} ->
            become(atoll_mesh_members:merge(Merged, atoll_mesh_members:new(Self, Incarnation + 1)), State);
        _ ->
            become(Merged, State)
    end.

%% A neighbour's link is better evidence than hearsay, unless it says so itself.
is_doubted(From, {Node, {Incarnation, gone}}, #state{members = Members, peers = Peers}) when Node =/= From ->
    {Incarnation, alive} =:= atoll_mesh_members:entry(Node, Members) andalso atoll_peers:is_neighbour(Node, Peers);
is_doubted(_From, _Entry, _State) ->
    false.

become(Merged, #state{members = Before, options = #{max_gone := Max}, forgotten = Forgotten} = State) ->
    case atoll_mesh_members:forget(Max, Merged) of
        {Before, Dropped} ->
            State#state{forgotten = Forgotten + Dropped};
        {Members, Dropped} ->
            Changed = State#state{members = Members, digest = unknown, forgotten = Forgotten + Dropped},
            soon(lists:foldl(fun meet/2, Changed, atoll_mesh_members:newer(Merged, Before)))
    end.

%% A member's life has begun or is over, and with it what was known of its reach.
meet({Self, _}, #state{self = Self, members = Members} = State) ->
    CoMembers = atoll_mesh_members:alive(Members) -- [Self],
    lists:foldl(fun hold/2, State, CoMembers);
meet({Node, {_, alive}}, #state{failing = Failing} = State) ->
    hold(Node, State#state{failing = maps:remove(Node, Failing)});
meet({Node, {_, gone}}, #state{failing = Failing} = State) ->
    release(Node, State#state{failing = maps:remove(Node, Failing)}).

hold(Node, #state{self = Self, members = Members} = State) ->
    {Incarnation, _} = atoll_mesh_members:entry(Self, Members),
    peers(fun(P) -> atoll_peers:offer(Node, Incarnation, atoll_peers:want(Node, P)) end, State).

release(Node, State) ->
    peers(fun(P) -> atoll_peers:offer(Node, false, atoll_peers:unwant(Node, P)) end, State).

bury(Node, #state{members = Members} = State) ->
    become(atoll_mesh_members:bury(Node, Members), State).

%% Who had no watcher left when it died gets no verdict.
unreachable(Node, Now, #state{peers = Peers, failing = Failing, options = #{give_up_ms := Ms}} = State) ->
    case atoll_peers:offered(Node, Peers) =/= false andalso not atoll_peers:is_up(Node, Peers) of
        false ->
            State;
        true ->
            case Failing of
                #{Node := Since} when Now - Since >= Ms -> bury(Node, State);
                #{Node := _} -> State;
                #{} -> State#state{failing = Failing#{Node => Now}}
            end
    end.

soon(#state{news = true} = State) ->
    State;
soon(#state{options = #{news_ms := Ms}} = State) ->
    timer(gossip, Ms, State#state{news = true}).

digest(#state{digest = unknown, members = Members} = State) ->
    Digest = atoll_mesh_members:digest(Members),
    {Digest, State#state{digest = Digest}};
digest(#state{digest = Digest} = State) ->
    {Digest, State}.

compare(_Nodes, #state{left = true} = State) ->
    State;
compare(Nodes, #state{rand = Rand0} = State0) ->
    {Chosen, Rand} = atoll_random:sample(1, Nodes, Rand0),
    {Digest, State} = digest(State0#state{rand = Rand}),
    send_all(Chosen, {digest, Digest}, State).

%% Joining and leaving

join(_Contacts, #state{left = true} = State) ->
    State;
join(Contacts, #state{self = Self, peers = Peers} = State) ->
    Others = [N || N <- lists:usort(Contacts), N =/= Self, not atoll_peers:is_neighbour(N, Peers)],
    join_by(Others, State).

join_by(Nodes, #state{contacts = Contacts0, rand = Rand0} = State) ->
    {Contacts, Rand} = atoll_contacts:put(Nodes, Rand0, Contacts0),
    ask_to_join(State#state{contacts = Contacts, rand = Rand}).

ask_to_join(#state{contacts = Contacts} = State) ->
    case atoll_contacts:first(Contacts) of
        {ok, Contact} -> ask_to_join(Contact, State);
        none -> State
    end.

ask_to_join(Contact, #state{members = Members, peers = Peers} = State0) ->
    State = send(Contact, {join, atoll_mesh_members:to_list(Members)}, State0),
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

leave(#state{self = Self, members = Members, peers = Peers, contacts = Contacts} = State0) ->
    Buried = atoll_mesh_members:bury(Self, Members),
    Farewell = {news, [{Self, atoll_mesh_members:entry(Self, Buried)}]},
    State = send_all(atoll_peers:neighbours(Peers), Farewell, State0),
    CoMembers = atoll_mesh_members:alive(Buried),
    lists:foldl(
        fun release/2,
        State#state{
            left = true,
            contacts = atoll_contacts:clear(Contacts),
            failing = #{},
            members = Buried,
            digest = unknown
        },
        CoMembers
    ).

%% Somebody did not hear of it.
after_leave(From, Message, #state{self = Self, members = Members} = State) ->
    case Message of
        {hello, _, Offer} when Offer =/= false ->
            send(From, {news, [{Self, atoll_mesh_members:entry(Self, Members)}]}, State);
        _ ->
            State
    end.

%% Effects

done(#state{peers = Peers0} = State) ->
    {Peers, Effects} = atoll_peers:take(Peers0),
    {State#state{peers = Peers}, Effects}.

peers(Fun, #state{peers = Peers} = State) ->
    State#state{peers = Fun(Peers)}.

send(Node, Message, State) ->
    peers(fun(P) -> atoll_peers:emit({send, Node, Message}, P) end, State).

send_all(Nodes, Message, State) ->
    lists:foldl(fun(Node, S) -> send(Node, Message, S) end, State, Nodes).

%% Up to half as long again, so that members do not go in step.
timer(Key, Ms, #state{rand = Rand0} = State) ->
    {More, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    peers(fun(P) -> atoll_peers:emit({timer, Key, Ms + More - 1}, P) end, State#state{rand = Rand}).
