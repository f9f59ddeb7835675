%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The roster: who is a member of the whole cluster, on every node, whoever its
%% neighbours are. What is known of each node stands in {@link atoll_roster_table}.
%%
%% News. What changes the members here is gathered for `gather_ms' and told to the
%% neighbours, but for those who told it, so it goes through the overlay once. A
%% verdict of the failure detector is no news: its obituary reaches all by itself.
%%
%% Comparing. With each new neighbour, and every `exchange_ms' with a random one, a
%% node compares tables by one number. Equal ones cost no more than that message.
%% Otherwise the hashes of the buckets are sent, the entries of those that differ, and
%% in return what the other knows better. What is learned so is news too, as long as
%% it is little. Much of it means that two tables differ because one node or a whole
%% island has been elsewhere: then the node does not tell it all, but compares with its
%% other neighbours, one after the other. A joiner's neighbours know it all already, and
%% it costs one number each; on an island each node gets all that is new to it about
%% once.
%%
%% Metadata. A node may say something of itself ({@link atoll_roster_meta}), which travels in
%% the same ways beside the entries: as news, and by comparing with a number of its own. Where
%% nobody says anything it costs nothing. It is kept of live members only, and ends with the
%% life in which it was said; a new life brings its own.
%%
%% Who is told what it knows to be over says so. And each node looks after one member
%% that nobody else may be watching, and after more of them when that is dead ({@link atoll_roster_audit}).
%%
%% Knocking. At each audit a node also tries some of the dead that stand on the same ring
%% between itself and the next live member that knows of them, so that each dead node is tried by one
%% member of an island. Who answers is `found': the two have been apart, and each side
%% has held the other for dead; or it has started again, with nobody to join by. A dead one with
%% which a link comes up, because a group or a program wants it, is tried too, if it is not alive for
%% this node a moment later: one that was started again joins by itself meanwhile.
%%
%% Leaving. A node that leaves says farewell to its neighbours, waits until they have
%% heard, and notices `left'. Until a new life begins it stays so.
%%
%% What it costs, with N members and neighbours up to `fanout': a change goes over each
%% link once or twice, some 40 bytes each time; a joiner's first table is N entries and
%% the ends that are remembered, once, in messages of at most `max_news' entries (or of
%% one bucket, that is a 128th of all); two islands of N and M send all N + M to each of
%% their nodes. At rest it is
%% one small message per node every `exchange_ms', and a connection for a question and
%% its answer every `audit_ms' if the member that it looks after is no neighbour, and as
%% long as dead ones are remembered an attempt to connect with some of them.
%%
%% Promised: in a connected overlay that stays as it is, the live entries of all tables
%% become equal, each that of the latest life that somebody knew of, and with them the last
%% word of each member about itself; of each node `member_up' and `member_down' alternate,
%% beginning with `member_up', and `member_meta' comes while it is up. A node that is
%% held to be dead and is not hears of it and notices `buried'. A member that cannot be
%% reached is out of the tables in the end, whoever was its neighbour: the audit takes
%% up to one and a half `audit_ms' and a few `check_ms' for one, and as many more for the two that
%% stand next to it on the ring, for the four after these, and so on.
%%
%% Not promised: that a table is right at any moment, or that all go through the same
%% changes: a short life may be missed. That the dead do not come back: a node that was
%% cut off while more nodes ended than are remembered brings those that the others have
%% forgotten back as alive, until the audit has found them. A node that has just begun
%% had fewer members at once, and remembers fewer ends. That a partition which lasts
%% longer than the audit takes leaves the lives of the other side alone: each side buries
%% the other, and when they meet all begin new lives. More than `max_members' nodes.
%%
%% It is long because news, comparisons, the audit and a farewell all change one table and tell of it in one
%% way. The table, metadata and the audit's judgement are modules of their own.
-module(atoll_roster).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3, members/1, life/2, meta/2, some/2, summary/1]).

-export_type([config/0, options/0, notice/0, message/0, state/0]).

-type config() :: #{
    self := node(),
    incarnation := atoll_roster_table:life(),
    seed := integer(),
    %% What it says of itself; nothing if that is missing.
    meta => map(),
    %% What it knows when it starts, and does not tell of: so begin simulations of clusters that have been up.
    members => atoll_roster_table:table(),
    %% Those that differ from the defaults.
    options := options()
}.

-type options() :: #{
    %% How long news are gathered, and how many entries a message has at most.
    gather_ms => pos_integer(),
    max_news => pos_integer(),
    %% The same for metadata, which may be large.
    max_metas => pos_integer(),
    %% To how many neighbours, at random, news go where there are more.
    fanout => pos_integer(),
    %% Between two comparisons with a random neighbour, and between those with
    %% several one after the other.
    exchange_ms => pos_integer(),
    compare_ms => pos_integer(),
    %% How long a node that leaves waits for its neighbours to hear.
    farewell_ms => pos_integer(),
    %% Between two audits, and how long a member has to answer. Longer than it takes
    %% to find that a connection cannot be made.
    audit_ms => pos_integer(),
    check_ms => pos_integer(),
    %% Live members; and ends that are remembered, where no more were members at once.
    max_members => pos_integer(),
    max_gone => non_neg_integer()
}.

-type entries() :: [{node(), atoll_roster_table:entry()}].
-type metas() :: [{node(), atoll_roster_meta:entry()}].

-type message() ::
    %% What the receiver may not know.
    {news, entries()}
    %% What the sender's live entries come to, and its metadata if it has any.
    | {hash, non_neg_integer()}
    | {hash, non_neg_integer(), none | non_neg_integer()}
    %% The same, bucket by bucket.
    | {hashes, atoll_buckets:hashes()}
    %% All that the sender has in these buckets.
    | {buckets, [{atoll_buckets:index(), entries()}]}
    %% What the receiver lacks, in answer.
    | {entries, entries()}
    %% The same four of metadata.
    | {meta, {news | entries, metas()} | {hashes, atoll_buckets:hashes()} | {buckets, [{atoll_buckets:index(), metas()}]}}
    %% The sender leaves; the sender has heard that the receiver does.
    | {farewell, atoll_roster_table:life()}
    | {heard, atoll_roster_table:life()}
    %% The receiver shall say how it is.
    | ping
    | {pong, atoll_roster_table:entry()}
    %% The receiver shall try to reach this node; what came of it.
    | {try_it, node()}
    | {reached | unreached, node()}.

-type notice() ::
    {member_up, node()}
    | {member_down, node(), dead | left}
    %% What it says of itself from now on; this node too.
    | {member_meta, node(), map()}
    %% It was held to be dead, and has answered.
    | {found, node()}
    %% Somebody knows of this life's end, or of a later one's.
    | {buried, atoll_roster_table:life()}
    %% The neighbours have heard the farewell, or had the time to.
    | left.

-record(state, {
    self :: node(),
    life :: atoll_roster_table:life(),
    %% Whether it has left, or is about to.
    left = false :: boolean(),
    options :: options(),
    rand :: rand:state(),
    neighbours = [] :: ordsets:ordset(node()),
    %% Since when it has some.
    joined :: undefined | atoll_protocol:now_ms(),
    table :: atoll_roster_table:table(),
    %% What this node says of itself, and how often it has said something else.
    meta = {0, #{}} :: {Revision :: non_neg_integer(), map()},
    %% Of live members.
    metas = atoll_roster_meta:new() :: atoll_roster_meta:metas(),
    %% Whose entries and metadata are gathered as news, and who knows each.
    news = #{} :: #{item() => [node()]},
    %% Neighbours to compare with, the next one first, and whether the timer runs.
    compare = [] :: [node()],
    comparing = false :: boolean(),
    %% Neighbours that have not heard the farewell.
    waiting = none :: none | {first | last, [node(), ...]},
    audit = atoll_roster_audit:new() :: atoll_roster_audit:audit(),
    %% Members that this node has found dead.
    found = 0 :: non_neg_integer(),
    exchanges = 0 :: non_neg_integer(),
    differed = 0 :: non_neg_integer(),
    corrected = 0 :: non_neg_integer(),
    %% Newest first, until the event is done with.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

-type item() :: node() | {meta, node()}.

%% How soon after its first neighbour a node still is a newcomer, who asks at once;
%% the others leave it the time to.
-define(NEW_MS, 5000).
%% So few entries are never much.
-define(FEW, 4).
%% How many neighbours try too before a member is dead.
-define(HELPERS, 3).
%% How many of the dead are tried at an audit, so that those that came back together, knowing nobody, are all
%% found by one.
-define(KNOCKS, 10).
%% After so long at least, and at most twice that, a dead one with a link is tried.
-define(LINKED_MS, 1000).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads
%% them.
-spec options() -> atoll_options:known().
options() ->
    #{
        gather_ms => {pos_integer, 100},
        max_news => {pos_integer, 500},
        max_metas => {pos_integer, 50},
        fanout => {pos_integer, 20},
        exchange_ms => {pos_integer, 10000},
        compare_ms => {pos_integer, 500},
        farewell_ms => {pos_integer, 2000},
        audit_ms => {pos_integer, 30000},
        check_ms => {pos_integer, 8000},
        max_members => {pos_integer, 20000},
        max_gone => {non_neg_integer, 1000}
    }.

%% @doc A node that knows of itself.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Life, seed := Seed, options := Given} = Config, _Now) ->
    {ok, #{max_members := MaxMembers, max_gone := MaxGone} = Options} = atoll_options:complete(?MODULE, Given),
    Table =
        case Config of
            #{members := Known} -> atoll_roster_table:owned_by(Self, Known);
            #{} -> atoll_roster_table:new(Self, MaxMembers, MaxGone)
        end,
    State = #state{
        self = Self,
        life = Life,
        options = Options,
        rand = atoll_random:seed(Seed),
        table = Table
    },
    done(audit_later(exchange_later(say(maps:get(meta, Config, #{}), own(alive, State))))).

%% @doc Takes one event. `up' and `down' are of neighbours, not of links. Casts are
%% `{dead, Node, Life}', a verdict that all hear; `{found_dead, Node, Life}', one that the roster
%% tells; `{linked, Node}', for whatever reason; `{unreachable, Node}'; `{meta, Map}', what this node says of itself from now on; `leave';
%% and `{incarnation, Life}' when
%% this node begins a new life.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, Message}, _Now, State) ->
    done(message(Message, From, State));
handle({timeout, gather}, _Now, State) ->
    done(tell_news(State));
handle({timeout, compare}, _Now, State) ->
    done(compare_next(State#state{comparing = false}));
handle({timeout, exchange}, _Now, State) ->
    done(exchange_later(exchange(State)));
handle({timeout, farewell}, _Now, State) ->
    done(farewell_over(State));
handle({timeout, audit}, _Now, State) ->
    done(knock(audit(State)));
handle({timeout, {check, Node}}, _Now, State) ->
    done(checked(failed, Node, State));
handle({timeout, {helpers, Node}}, _Now, #state{audit = Audit} = State) ->
    done(outcomes(atoll_roster_audit:silent(Node, Audit), State));
handle({timeout, {linked, Node}}, _Now, State) ->
    done(knock_at(Node, State));
handle({cast, {unreachable, Node}}, _Now, State) ->
    done(checked(failed, Node, State));
handle({cast, {linked, Node}}, _Now, State) ->
    done(linked(Node, State));
handle({up, Node}, Now, State) ->
    done(up(Node, Now, State));
handle({down, Node, _Why}, _Now, #state{neighbours = Neighbours} = State) ->
    done(has_heard(Node, State#state{neighbours = ordsets:del_element(Node, Neighbours)}));
handle({cast, {_Verdict, Self, _Life}}, _Now, #state{self = Self} = State) ->
    %% Whoever says so to this node itself waits for its answer.
    {State, []};
handle({cast, {dead, Node, Life}}, _Now, State0) ->
    {_, State} = enter(Node, {Life, dead}, State0),
    done(State);
handle({cast, {found_dead, Node, Life}}, _Now, State) ->
    done(found_dead(Node, Life, State));
handle({cast, {meta, Meta}}, _Now, State) ->
    done(say(Meta, State));
handle({cast, leave}, _Now, State) ->
    done(leave(State));
handle({cast, {incarnation, Life}}, _Now, State) ->
    done(begin_anew(Life, State)).

%% @doc The live members as far as this node knows, in the order of their names; itself
%% among them unless it has left.
-spec members(state()) -> [node()].
members(#state{table = Table}) ->
    atoll_roster_table:alive(Table).

%% @doc The life of a member, 0 of one that is none.
-spec life(node(), state()) -> atoll_roster_table:life() | 0.
life(Node, #state{table = Table}) ->
    case atoll_roster_table:entry(Node, Table) of
        {Life, alive} -> Life;
        _ -> 0
    end.

%% @doc What a member says of itself.
-spec meta(node(), state()) -> map().
meta(Node, #state{metas = Metas}) ->
    case atoll_roster_meta:entry(Node, Metas) of
        {_, Meta} -> Meta;
        unknown -> #{}
    end.

%% @doc So many other nodes at random: members, and dead ones if those are too few.
-spec some(non_neg_integer(), state()) -> {[node()], state()}.
some(Count, #state{self = Self, table = Table, rand = Rand0} = State) ->
    {Alive, Rand1} = atoll_random:sample(Count, lists:delete(Self, atoll_roster_table:alive(Table)), Rand0),
    {Dead, Rand} = atoll_random:sample(Count - length(Alive), atoll_roster_table:dead(Table), Rand1),
    {Alive ++ Dead, State#state{rand = Rand}}.

%% @doc For people: sizes, and what was dropped, by reason.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{table = Table, news = News, compare = Compare} = State) ->
    #{alive := Alive, gone := Gone, forgotten := Forgotten, refused := Refused} = atoll_roster_table:counts(Table),
    #{
        members => Alive,
        gone => Gone,
        left => State#state.left,
        neighbours => length(State#state.neighbours),
        gathered => map_size(News),
        to_compare => length(Compare),
        exchanges => State#state.exchanges,
        differed => State#state.differed,
        corrected => State#state.corrected,
        checks => atoll_roster_audit:tries(State#state.audit),
        found_dead => State#state.found,
        dropped => #{gone_forgotten => Forgotten, members_refused => Refused}
    }.

%% Messages

message({news, Entries}, From, #state{table = Table} = State) ->
    %% Most of it somebody else has told already.
    {Known, Other} = lists:partition(fun({Node, Entry}) -> atoll_roster_table:entry(Node, Table) =:= Entry end, Entries),
    {Changed, Learned} = learn(Other, knows(From, Known, State)),
    correct(Other, From, gather(Changed, From, Learned));
message({hash, Hash}, From, State) ->
    message({hash, Hash, none}, From, State);
message({hash, Hash, MetaHash}, From, #state{table = Table, metas = Metas} = State) ->
    Compared =
        case atoll_roster_table:root(Table) of
            Hash -> State;
            _ -> send(From, {hashes, atoll_roster_table:hashes(Table)}, differ(State))
        end,
    case atoll_roster_meta:root(Metas) of
        MetaHash -> Compared;
        _ -> send(From, {meta, {hashes, atoll_roster_meta:hashes(Metas)}}, Compared)
    end;
message({hashes, Hashes}, From, #state{table = Table, options = #{max_news := Max}} = State) ->
    Differing = atoll_roster_table:differing(Hashes, Table),
    Buckets = [{Index, atoll_roster_table:bucket(Index, Table)} || Index <- Differing],
    lists:foldl(fun(Some, S) -> send(From, {buckets, Some}, S) end, differ(State), portions(Buckets, Max));
message({buckets, Buckets}, From, #state{table = Table} = State) ->
    Newer = lists:append([atoll_roster_table:newer(Index, Theirs, Table) || {Index, Theirs} <- Buckets]),
    Told = tell(From, entries, Newer, State),
    learn_apart(lists:append([Theirs || {_, Theirs} <- Buckets]), From, Told);
message({entries, Entries}, From, State) ->
    correct(Entries, From, learn_apart(Entries, From, State));
message({meta, {news, Entries}}, From, State) ->
    {Changed, Learned} = learn_metas(Entries, State),
    gather(Changed, From, knows_metas(From, Entries, Learned));
message({meta, {hashes, Hashes}}, From, #state{metas = Metas, options = #{max_metas := Max}} = State) ->
    Buckets = [{Index, atoll_roster_meta:bucket(Index, Metas)} || Index <- atoll_roster_meta:differing(Hashes, Metas)],
    lists:foldl(fun(Some, S) -> send(From, {meta, {buckets, Some}}, S) end, State, portions(Buckets, Max));
message({meta, {buckets, Buckets}}, From, #state{metas = Metas} = State) ->
    Newer = lists:append([atoll_roster_meta:newer(Index, Theirs, Metas) || {Index, Theirs} <- Buckets]),
    Told = tell(From, {meta, entries}, Newer, State),
    message({meta, {entries, lists:append([Theirs || {_, Theirs} <- Buckets])}}, From, Told);
message({meta, {entries, Entries}}, From, #state{table = Table} = State) ->
    {Changed, Learned} = learn_metas(Entries, State),
    tell_apart(Changed, From, Table, Learned);
message({farewell, Life}, From, State) ->
    {Changed, Learned} = learn([{From, {Life, left}}], State),
    send(From, {heard, Life}, gather(Changed, From, Learned));
message({heard, Life}, From, #state{life = Life} = State) ->
    has_heard(From, State);
message({heard, _Earlier}, _From, State) ->
    State;
message(ping, From, #state{self = Self, table = Table} = State) ->
    send(From, {pong, atoll_roster_table:entry(Self, Table)}, State);
message({pong, {_, Status} = Entry}, From, #state{table = Table} = State) ->
    Found =
        case atoll_roster_table:entry(From, Table) of
            {_, dead} when Status =:= alive -> effect({notify, {found, From}}, State);
            _ -> State
        end,
    message({news, [{From, Entry}]}, From, checked(answered, From, Found));
message({try_it, Node}, From, State) ->
    check(From, Node, State);
message({Said, Node}, From, #state{audit = Audit} = State) when Said =:= reached; Said =:= unreached ->
    outcomes(atoll_roster_audit:said(From, Node, Said, Audit), State).

differ(#state{differed = N} = State) ->
    State#state{differed = N + 1}.

%% Whole buckets, as many as go into a message; more than that if it is one.
portions(Buckets, Max) ->
    {Last, _, Portions} = lists:foldl(
        fun({_, Entries} = Bucket, {Open, Size, Full}) ->
            case Size + length(Entries) of
                More when More > Max, Open =/= [] -> {[Bucket], length(Entries), [lists:reverse(Open) | Full]};
                More -> {[Bucket | Open], More, Full}
            end
        end,
        {[], 0, []},
        Buckets
    ),
    lists:reverse([lists:reverse(Last) || Last =/= []] ++ Portions).

%% The teller may have heard nothing since. Its answer, if there is one, is newer
%% still, so this ends.
correct([], _From, State) ->
    State;
correct(Entries, From, #state{table = Table} = State) ->
    Newer = [
        {Node, Known}
     || {Node, Entry} <- Entries,
        Known <- [atoll_roster_table:entry(Node, Table)],
        Known =/= unknown,
        atoll_roster_table:wins(Known, Entry) =/= Entry
    ],
    case Newer of
        [] -> State;
        _ -> tell(From, entries, Newer, State#state{corrected = State#state.corrected + 1})
    end.

%% Learning

%% Those whose entries are news now, for others too.
learn(Entries, State) ->
    lists:foldl(
        fun({Node, Entry}, {Changed, S0}) ->
            case enter(Node, Entry, S0) of
                {true, S} -> {[Node | Changed], S};
                {false, S} -> {Changed, S}
            end
        end,
        {[], State},
        Entries
    ).

%% From a comparison.
learn_apart(Entries, From, #state{table = Before} = State) ->
    {Changed, Learned} = learn(Entries, State),
    tell_apart(Changed, From, Before, Learned).

tell_apart(Changed, From, Before, #state{neighbours = Neighbours} = State) ->
    case is_much(length(Changed), Before, State) of
        false -> gather(Changed, From, State);
        true -> compare_with(Neighbours -- [From], State)
    end.

%% Of live members, as far as it was said in that life.
learn_metas(Entries, State) ->
    lists:foldl(
        fun({Node, {{Life, _}, Meta} = Entry}, {Changed, #state{self = Self, metas = Metas0} = S}) ->
            case Node =/= Self andalso life(Node, S) =:= Life andalso atoll_roster_meta:put(Node, Entry, Metas0) of
                {changed, Metas} ->
                    {[{meta, Node} | Changed], effect({notify, {member_meta, Node, Meta}}, S#state{metas = Metas})};
                _ ->
                    {Changed, S}
            end
        end,
        {[], State},
        Entries
    ).

is_much(Count, _Before, _State) when Count =< ?FEW ->
    false;
is_much(Count, Before, #state{options = #{max_news := Max}}) ->
    #{alive := Alive} = atoll_roster_table:counts(Before),
    Count > Max orelse 4 * Count > Alive.

%% Whether the members are others now.
enter(Self, {_, _} = Entry, #state{self = Self, left = false, life = Life} = State) ->
    case atoll_roster_table:wins(Entry, {Life, alive}) of
        {Life, alive} -> {false, State};
        {Buried, _} -> {false, effect({notify, {buried, Buried}}, State)}
    end;
enter(Self, _Entry, #state{self = Self} = State) ->
    {false, State};
enter(Node, {_, Status} = Entry, #state{table = Table0} = State0) ->
    case atoll_roster_table:put(Node, Entry, Table0) of
        {known, _} -> {false, State0};
        {refused, Table} -> {false, State0#state{table = Table}};
        {{changed, Before}, Table} -> changed(Before, Node, Status, Table, State0)
    end.

%% In one copy of the state: to a joiner all members are new.
changed({_, alive}, Node, alive, Table, #state{effects = Effects} = State) ->
    Notices = [{notify, {member_up, Node}}, {notify, {member_down, Node, dead}} | Effects],
    {true, forget_meta(Node, State#state{table = Table, effects = Notices})};
changed({_, alive}, Node, End, Table, #state{effects = Effects} = State) ->
    {true, forget_meta(Node, State#state{table = Table, effects = [{notify, {member_down, Node, End}} | Effects]})};
changed(_Ended, Node, alive, Table, #state{effects = Effects} = State) ->
    {true, State#state{table = Table, effects = [{notify, {member_up, Node}} | Effects]}};
changed(_Ended, _Node, _End, Table, State) ->
    {false, State#state{table = Table}}.

forget_meta(Node, #state{metas = Metas} = State) ->
    State#state{metas = atoll_roster_meta:drop(Node, Metas)}.

%% News

gather([], _From, State) ->
    State;
gather(Items, From, #state{news = News0, options = #{gather_ms := Ms}} = State) ->
    News = lists:foldl(fun(Item, N) -> N#{Item => [From]} end, News0, Items),
    case map_size(News0) of
        0 -> effect({timer, gather, Ms}, State#state{news = News});
        _ -> State#state{news = News}
    end.

%% Who tells what is gathered here has no need to hear it.
knows(_From, _Known, #state{news = News} = State) when map_size(News) =:= 0 ->
    State;
knows(From, Known, State) ->
    tellers(From, [Node || {Node, _} <- Known], State).

knows_metas(From, Entries, #state{metas = Metas} = State) ->
    tellers(From, [{meta, Node} || {Node, Entry} <- Entries, atoll_roster_meta:entry(Node, Metas) =:= Entry], State).

tellers(From, Items, #state{news = News} = State) ->
    State#state{
        news = lists:foldl(
            fun(Item, N) ->
                case N of
                    #{Item := Tellers} -> N#{Item := [From | Tellers]};
                    #{} -> N
                end
            end,
            News,
            Items
        )
    }.

tell_news(#state{news = News} = State0) ->
    {Targets, #state{table = Table, metas = Metas} = State} = targets(State0#state{news = #{}}),
    Items = lists:sort(maps:to_list(News)),
    Entries = known([{Tellers, Node, atoll_roster_table:entry(Node, Table)} || {Node, Tellers} <- Items, is_atom(Node)]),
    Said = known([{Tellers, Node, atoll_roster_meta:entry(Node, Metas)} || {{meta, Node}, Tellers} <- Items]),
    lists:foldl(
        %% Metadata of somebody who is not known would be of no use.
        fun(To, S) -> tell(To, {meta, news}, news_to(To, Said), tell(To, news, news_to(To, Entries), S)) end,
        State,
        Targets
    ).

%% An end may be forgotten by now.
known(Items) -> [Item || {_, _, Entry} = Item <- Items, Entry =/= unknown].

news_to(To, Items) -> [{Node, Entry} || {Tellers, Node, Entry} <- Items, not lists:member(To, Tellers)].

targets(#state{neighbours = Neighbours, rand = Rand0, options = #{fanout := Fanout}} = State) ->
    {Targets, Rand} = atoll_random:sample(Fanout, Neighbours, Rand0),
    {Targets, State#state{rand = Rand}}.

tell(_To, _Kind, [], State) ->
    State;
tell(To, Kind, Entries, State) ->
    Max = most(Kind, State),
    case length(Entries) > Max of
        true ->
            {Some, Others} = lists:split(Max, Entries),
            tell(To, Kind, Others, send(To, letter(Kind, Some), State));
        false ->
            send(To, letter(Kind, Entries), State)
    end.

most({meta, _Kind}, #state{options = #{max_metas := Max}}) -> Max;
most(_Kind, #state{options = #{max_news := Max}}) -> Max.

letter({meta, Kind}, Entries) -> {meta, {Kind, Entries}};
letter(Kind, Entries) -> {Kind, Entries}.

%% Neighbours and comparing

up(Node, Now, #state{neighbours = Neighbours, joined = Joined0} = State0) ->
    Joined =
        case Neighbours of
            [] -> Now;
            _ -> Joined0
        end,
    State = State0#state{neighbours = ordsets:add_element(Node, Neighbours), joined = Joined},
    #state{compare = Compare, options = #{gather_ms := GatherMs, compare_ms := CompareMs, fanout := Max}} = State,
    Added = State#state{compare = lists:sublist(Compare ++ ([Node] -- Compare), Max)},
    case Now - Joined < ?NEW_MS of
        true -> compare_after(GatherMs, Added);
        false -> compare_after(2 * CompareMs, Added)
    end.

%% Not before all of what is coming has come.
compare_with(Nodes, #state{options = #{compare_ms := Ms, fanout := Max}} = State0) ->
    {Shuffled, Rand} = atoll_random:shuffle(Nodes, State0#state.rand),
    State = State0#state{compare = lists:sublist(Shuffled, Max), rand = Rand, comparing = false},
    compare_after(Ms, State).

compare_after(_Ms, #state{comparing = true} = State) -> State;
compare_after(_Ms, #state{compare = []} = State) -> effect({cancel, compare}, State);
compare_after(Ms, State) -> timer(compare, Ms, State#state{comparing = true}).

compare_next(#state{compare = []} = State) ->
    State;
compare_next(#state{compare = [Node | Nodes], options = #{compare_ms := Ms}} = State0) ->
    State = State0#state{compare = Nodes},
    case ordsets:is_element(Node, State#state.neighbours) of
        true ->
            Asked = send_hash(Node, State),
            case Nodes of
                [] -> Asked;
                _ -> compare_after(Ms, Asked)
            end;
        false -> compare_next(State)
    end.

send_hash(Node, #state{table = Table, metas = Metas, exchanges = N} = State) ->
    Hash = atoll_roster_table:root(Table),
    Message =
        case atoll_roster_meta:root(Metas) of
            none -> {hash, Hash};
            MetaHash -> {hash, Hash, MetaHash}
        end,
    send(Node, Message, State#state{exchanges = N + 1}).

exchange(#state{neighbours = []} = State) ->
    State;
exchange(#state{neighbours = Neighbours, rand = Rand0} = State) ->
    {Node, Rand} = atoll_random:pick(Neighbours, Rand0),
    send_hash(Node, State#state{rand = Rand}).

exchange_later(#state{options = #{exchange_ms := Ms}} = State) ->
    timer(exchange, Ms, State).

%% The audit

%% The detector watches neighbours.
audit(#state{self = Self, table = Table, neighbours = Neighbours, left = Left, audit = Audit} = State) ->
    Next = atoll_roster_table:successors(Self, atoll_roster_audit:width(Audit), Table),
    case [Node || Node <- Next, not ordsets:is_element(Node, Neighbours)] of
        [_ | _] = Subjects when not Left, Neighbours =/= [] ->
            Lives = [{Node, element(1, atoll_roster_table:entry(Node, Table))} || Node <- Subjects],
            Begun = State#state{audit = atoll_roster_audit:begin_with(Lives, Audit)},
            %% The helpers of the round before may still have time left.
            lists:foldl(fun(Node, S) -> check(self, Node, effect({cancel, {helpers, Node}}, S)) end, Begun, Subjects);
        _ ->
            audit_later(State)
    end.

%% Whoever it is will answer, or not.
knock(#state{self = Self, table = Table, neighbours = Neighbours, left = Left, rand = Rand0} = State) ->
    case Left orelse Neighbours =:= [] orelse atoll_roster_table:dead_after(Self, Table) of
        [_ | _] = Dead ->
            {Nodes, Rand} = atoll_random:sample(?KNOCKS, Dead, Rand0),
            lists:foldl(fun(Node, S) -> send(Node, ping, S) end, State#state{rand = Rand}, Nodes);
        _ ->
            State
    end.

%% Not all members of a group in one moment: who hears that it lives need not try it.
linked(Node, #state{rand = Rand0} = State) ->
    case is_dead(Node, State) of
        true ->
            {More, Rand} = rand:uniform_s(?LINKED_MS, Rand0),
            timer({linked, Node}, ?LINKED_MS + More, State#state{rand = Rand});
        false ->
            State
    end.

knock_at(Node, State) ->
    case is_dead(Node, State) of
        true -> send(Node, ping, State);
        false -> State
    end.

is_dead(_Node, #state{left = true}) ->
    false;
is_dead(Node, #state{table = Table}) ->
    case atoll_roster_table:entry(Node, Table) of
        {_, dead} -> true;
        _ -> false
    end.

audit_later(#state{options = #{audit_ms := Ms}} = State) ->
    timer(audit, Ms, State).

check(Asker, Node, #state{audit = Audit0, options = #{check_ms := Ms}} = State0) ->
    {Done, Audit} = atoll_roster_audit:try_for(Asker, Node, Audit0),
    State = State0#state{audit = Audit},
    case Done of
        'try' -> effect({timer, {check, Node}, Ms}, send(Node, ping, State));
        tried -> State;
        refused when Asker =:= self -> outcomes(atoll_roster_audit:helpers(Node, [], Audit), State);
        refused -> State
    end.

checked(How, Node, #state{audit = Audit0} = State0) ->
    {Others, Outcomes, Audit} = atoll_roster_audit:How(Node, Audit0),
    case Others of
        untried ->
            State0;
        _ ->
            State = outcomes({Outcomes, Audit}, effect({cancel, {check, Node}}, State0)),
            lists:foldl(fun(Other, S) -> send(Other, {said(How), Node}, S) end, State, Others)
    end.

said(answered) -> reached;
said(failed) -> unreached.

outcomes({Outcomes, Audit}, State) ->
    lists:foldl(fun outcome/2, State#state{audit = Audit}, Outcomes).

outcome({help, Node}, #state{neighbours = Neighbours, audit = Audit, rand = Rand0, options = #{check_ms := Ms}} = State0) ->
    {Helpers, Rand} = atoll_random:sample(?HELPERS, Neighbours, Rand0),
    State1 = lists:foldl(fun(Helper, S) -> send(Helper, {try_it, Node}, S) end, State0#state{rand = Rand}, Helpers),
    State = effect({timer, {helpers, Node}, Ms + Ms div 2}, State1),
    outcomes(atoll_roster_audit:helpers(Node, Helpers, Audit), State);
outcome({dead, Node, Life}, #state{found = Found} = State) ->
    found_dead(Node, Life, State#state{found = Found + 1});
outcome({round, over}, State) ->
    audit_later(State);
outcome({round, again}, #state{options = #{check_ms := Ms}} = State) ->
    timer(audit, Ms, State);
outcome({round, found}, #state{options = #{gather_ms := Ms}} = State) ->
    %% Who comes next on the ring may have gone with them.
    timer(audit, Ms, State).

found_dead(Node, Life, #state{self = Self} = State0) ->
    {IsNews, State} = enter(Node, {Life, dead}, State0),
    gather([Node || IsNews], Self, State).

%% This node

own(Status, #state{self = Self, life = Life, table = Table0} = State) ->
    {_, Table} = atoll_roster_table:put(Self, {Life, Status}, Table0),
    own_meta(Status, State#state{table = Table}).

own_meta(alive, #state{self = Self, life = Life, meta = {Revision, Meta}, metas = Metas0} = State) when Revision > 0 ->
    {_, Metas} = atoll_roster_meta:put(Self, {{Life, Revision}, Meta}, Metas0),
    State#state{metas = Metas};
own_meta(_Status, #state{self = Self} = State) ->
    forget_meta(Self, State).

say(Meta, #state{meta = {_, Meta}} = State) ->
    State;
say(Meta, #state{self = Self, left = Left, meta = {Revision, _}} = State) ->
    Said = effect({notify, {member_meta, Self, Meta}}, State#state{meta = {Revision + 1, Meta}}),
    case Left of
        true -> Said;
        false -> gather([{meta, Self}], Self, own_meta(alive, Said))
    end.

begin_anew(Life, #state{self = Self, waiting = Waiting} = State0) ->
    State = own(alive, State0#state{life = Life, left = false, waiting = none}),
    Kept =
        case Waiting of
            none -> State;
            _ -> effect({cancel, farewell}, State)
        end,
    gather([Self, {meta, Self}], Self, Kept).

leave(#state{left = true, waiting = none} = State) ->
    effect({notify, left}, State);
leave(#state{left = true} = State) ->
    State;
leave(#state{neighbours = Neighbours} = State) ->
    Left = own(left, State#state{left = true}),
    case Neighbours of
        [] -> effect({notify, left}, Left);
        _ -> say_farewell(first, Neighbours, Left)
    end.

%% Twice, as the first may be lost.
say_farewell(Time, Nodes, #state{life = Life, options = #{farewell_ms := Ms}} = State0) ->
    State = lists:foldl(fun(Node, S) -> send(Node, {farewell, Life}, S) end, State0, Nodes),
    effect({timer, farewell, max(1, Ms div 2)}, State#state{waiting = {Time, Nodes}}).

farewell_over(#state{waiting = {first, Nodes}} = State) ->
    say_farewell(last, Nodes, State);
farewell_over(#state{waiting = {last, _}} = State) ->
    effect({notify, left}, State#state{waiting = none}).

has_heard(Node, #state{waiting = {Time, Nodes}} = State) ->
    case lists:delete(Node, Nodes) of
        [] -> effect({notify, left}, effect({cancel, farewell}, State#state{waiting = none}));
        Left -> State#state{waiting = {Time, Left}}
    end;
has_heard(_Node, State) ->
    State.

%% Effects

done(#state{effects = Effects} = State) ->
    {State#state{effects = []}, lists:reverse(Effects)}.

effect(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

send(Node, Message, State) ->
    effect({send, Node, Message}, State).

%% Up to half as long again, so that nodes do not go in step.
timer(Key, Ms, #state{rand = Rand0} = State) ->
    {More, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    effect({timer, Key, Ms + More - 1}, State#state{rand = Rand}).
