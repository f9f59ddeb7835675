%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The directory: on every node, where every node stands, that is in which cliques, for
%% whom it relays, and by which links of its own it is reached where no clique says so. From it
%% {@link atoll_routes} computes how to get from here to anywhere. What is known stands in
%% {@link atoll_directory_table}.
%%
%% Over which links. The directory wants none: it uses those that are there, whoever
%% wants them, and hears of them as `up' and `down'. A message goes to a linked node alone.
%%
%% News. A node tells its linked nodes what has changed: at once, and what comes within
%% `gather_ms' of that together, so there is one message for each link in that time. What
%% it was told it tells on, but for those who told it, and for those who share a clique with
%% one of these: such a one has told them itself. A clique therefore hears of a change about
%% once for each member. Of linked nodes that share no clique with it, a node tells `fanout' at
%% most, at random.
%%
%% Comparing. With each new link, and every `compare_ms' with one at random, a node compares
%% tables by one number. Where it is in cliques that is a co-member, but for one time in
%% eight: a link that is there on demand would otherwise never be quiet for long enough to be
%% closed. Where these differ, the hashes of the buckets go back, then four
%% bytes for each entry in those that differ, and then what either lacks: so a table that is
%% being changed elsewhere at this moment costs some hundred bytes and not its buckets. What is
%% learned so is news, as long as it is little; if it is much the node compares with its other
%% neighbours. Who tells what is over is told so.
%%
%% Who is no more. A room below that knows says so (`member_down'); nobody is told, since
%% all hear it there. Where there is no such room, or it was too early for an entry that came
%% later, the cliques see to it: members of one are linked with each other, so who
%% is not linked with a co-member for `vouch_ms' says that it is gone, unless it has no links at
%% all. Who is gone and hears of it says the contrary with a higher version; the doubter then
%% waits twice as long. What is left is entries from which no chain of cliques and links
%% leads here, of a clique that died as a whole: those are forgotten after two
%% sweeps ({@link atoll_directory_age}).
%%
%% Its own links, of which a node tells where no clique explains how to reach it, are some of
%% those that it was said to have. Of one or two it tells what is so, since there may be no other way to
%% it or past it. If there are more they are told anew when there is room for another one, and otherwise only
%% when fewer than half of them stand: the state of all links of a large cluster is too much for all to
%% know, a few that last are enough.
%%
%% Promised: while the linked nodes are connected with each other and stay as they are, all tables come to
%% hold the same places, each node's own last one, whatever was lost, and in whatever order lives
%% of a node follow each other. Sizes are bounded; what is odd in a message is left
%% out and counted, and does no other harm. One of a newer version is counted too.
%%
%% Not promised: that a table is right at any moment; that a node which lies is not
%% believed, about others too; more than `max_places' nodes. A clique with two parts that
%% cannot reach each other has its members say of each other that they are gone, less and less often.
-module(atoll_directory).

-behaviour(atoll_protocol).

-export([options/0, init/2, handle/3]).
-export([table/1, linked/1, revision/1, place/1, summary/1]).

-export_type([config/0, options/0, message/0, notice/0, state/0]).

-type config() :: #{
    self := node(),
    %% When it was started; a later life has a higher one, or learns from others.
    incarnation := atoll_directory_table:version(),
    seed := integer(),
    %% Those that differ from the defaults.
    options := options(),
    %% Where it stands from the start.
    place => atoll_directory_place:place(),
    %% What it begins with in the place of an empty table.
    table => atoll_directory_table:table()
}.

-type options() :: #{
    %% Between two messages of news over one link, and how many entries a message has
    %% at most.
    gather_ms => pos_integer(),
    max_news => pos_integer(),
    %% To how many that share no clique news go.
    fanout => pos_integer(),
    %% Between two comparisons with a random neighbour, and between those with
    %% several one after the other.
    compare_ms => pos_integer(),
    pause_ms => pos_integer(),
    %% How long a co-member of a clique may be without a link.
    vouch_ms => pos_integer(),
    %% Between two sweeps.
    sweep_ms => pos_integer(),
    max_places => pos_integer(),
    max_gone => non_neg_integer()
}.

-type entries() :: [{node(), atoll_directory_table:entry()}].

-type message() ::
    %% The version of what follows.
    {1,
        %% What the receiver may not know.
        {news, entries()}
        %% What the sender's places come to.
        | {root, non_neg_integer()}
        %% The same, bucket by bucket.
        | {hashes, binary()}
        %% What stands for each place in these buckets.
        | {prints, [{atoll_buckets:index(), binary()}]}
        %% What the receiver lacks, in answer; and the sender.
        | {entries, entries()}
        | {wanted, [{atoll_buckets:index(), binary()}]}}.

-type notice() ::
    %% The node has a place, or another one; or is no more.
    {placed, node(), atoll_directory_table:version()}
    | {gone, node()}.

-record(state, {
    self :: node(),
    version :: atoll_directory_table:version(),
    cliques = [] :: [atoll_directory_place:clique()],
    relays = all :: atoll_directory_place:relays(),
    %% The links of which it tells, of those that it was said to have.
    links = [] :: [node()],
    left = false :: boolean(),
    options :: options(),
    rand :: rand:state(),
    linked = [] :: ordsets:ordset(node()),
    table :: atoll_directory_table:table(),
    %% Counts the changes of the table and of the links.
    revision = 0 :: non_neg_integer(),
    %% Whose entries are to be told, and who knows each; whether some were told within
    %% `gather_ms'.
    news = #{} :: #{node() => [node()]},
    gathering = false :: boolean(),
    %% Neighbours to compare with, the next one first; whether the timer runs.
    compare = [] :: [node()],
    comparing = false :: boolean(),
    watch = atoll_directory_watch:new() :: atoll_directory_watch:watch(),
    watching = false :: boolean(),
    age = atoll_directory_age:new() :: atoll_directory_age:age(),
    comparisons = 0 :: non_neg_integer(),
    differed = 0 :: non_neg_integer(),
    refuted = 0 :: non_neg_integer(),
    declared = 0 :: non_neg_integer(),
    aged = 0 :: non_neg_integer(),
    %% Left out: parts of messages that nobody like this one sends, messages of newer
    %% versions, cliques and links of its own beyond the bounds.
    odd = 0 :: non_neg_integer(),
    newer = 0 :: non_neg_integer(),
    cut_off = 0 :: non_neg_integer(),
    %% Newest first, until the event is done with.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

-define(VERSION, 1).
%% So many entries are read in a message, whatever this node itself sends at most: nodes with
%% other options learn from each other.
-define(MOST_NEWS, 10000).
%% So few entries are never much.
-define(FEW, 4).
%% Of so many links it tells exactly.
-define(FEW_LINKS, 2).
%% One of so many comparisons is with any linked node, the others are with co-members.
-define(SELDOM, 8).
%% Versions stay small integers.
-define(MAX_VERSION, (1 bsl 58)).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads them.
-spec options() -> atoll_options:known().
options() ->
    #{
        gather_ms => {pos_integer, 1000},
        max_news => {pos_integer, 500},
        fanout => {pos_integer, 20},
        compare_ms => {pos_integer, 15000},
        pause_ms => {pos_integer, 500},
        vouch_ms => {pos_integer, 15000},
        sweep_ms => {pos_integer, 300000},
        max_places => {pos_integer, 20000},
        max_gone => {non_neg_integer, 1000}
    }.

%% @doc A node that knows of itself.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Given} = Config, Now) ->
    Defaults = maps:map(fun(_Key, {_Kind, Default}) -> Default end, options()),
    Options = maps:merge(Defaults, Given),
    {Cliques, Relays, Links} = maps:get(place, Config, atoll_directory_place:new()),
    Table =
        case Config of
            #{table := Old} -> atoll_directory_table:owned_by(Self, Old);
            #{} -> atoll_directory_table:new(Self, maps:with([max_places, max_gone], Options))
        end,
    State0 = #state{
        self = Self,
        version = Incarnation,
        cliques = Cliques,
        relays = Relays,
        links = Links,
        options = Options,
        rand = rand:seed_s(exsss, Seed),
        table = Table
    },
    Own = {Incarnation, place(State0)},
    State =
        case atoll_directory_table:entry(Self, Table) of
            {Before, _} = Known when Before >= Incarnation, Known =/= Own -> State0#state{version = Before + 1};
            _ -> State0
        end,
    done(sweep_later(compare_later(co_members(Now, own(State))))).

%% @doc Takes one event. `up' and `down' are of links. Casts are `{cliques, Names}',
%% `{relays, Relays}' and `{links, Nodes}', each with all of them;
%% `{member_down, Node, Why}' of the room that knows the members; `{incarnation, Life}' when this
%% node begins a new life; and `leave'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, From, {?VERSION, Message}}, Now, State) ->
    done(message(Message, From, Now, State));
handle({message, _From, Message}, _Now, State) ->
    {unread(Message, State), []};
handle({timeout, gather}, _Now, #state{news = News} = State) when map_size(News) =:= 0 ->
    {State#state{gathering = false}, []};
handle({timeout, gather}, _Now, State) ->
    done(State#state{gathering = false});
handle({timeout, compare}, _Now, State) ->
    done(compare_later(compare_with_one(State)));
handle({timeout, pause}, _Now, State) ->
    done(compare_next(State#state{comparing = false}));
handle({timeout, watch}, Now, State) ->
    done(watch_later(doubt(Now, State#state{watching = false})));
handle({timeout, sweep}, _Now, State) ->
    done(sweep_later(sweep(State)));
handle({up, Node}, _Now, State) ->
    done(up(Node, State));
handle({down, Node, _Reason}, Now, #state{linked = Linked, watch = Watch, options = #{vouch_ms := Ms}} = State) ->
    done(
        watch_later(
            touched(State#state{
                linked = ordsets:del_element(Node, Linked), watch = atoll_directory_watch:down(Node, Now, Ms, Watch)
            })
        )
    );
handle({cast, {cliques, Cliques}}, Now, State) ->
    done(co_members(Now, changed(State#state{cliques = Cliques}, State)));
handle({cast, {relays, Relays}}, _Now, State) ->
    true = atoll_directory_place:is_relays(Relays),
    done(changed(State#state{relays = Relays}, State));
handle({cast, {links, Links}}, _Now, State) ->
    done(changed(links(Links, State), State));
handle({cast, {member_down, Node, _Why}}, Now, State) ->
    done(buried(Node, Now, State));
handle({cast, {incarnation, Life}}, _Now, #state{version = Version} = State) ->
    done(renewed(max(Life, Version + 1), State#state{left = false}));
handle({cast, leave}, _Now, #state{version = Version} = State) ->
    %% At once: whoever leaves may be gone in a moment.
    done(tell_all(enter_own({Version, gone}, State#state{left = true, gathering = false}))).

%% @doc What is known of all.
-spec table(state()) -> atoll_directory_table:table().
table(#state{table = Table}) -> Table.

%% @doc The nodes that this one has a link with.
-spec linked(state()) -> [node()].
linked(#state{linked = Linked}) -> Linked.

%% @doc Another number after each change by which a route may be another.
-spec revision(state()) -> non_neg_integer().
revision(#state{revision = Revision}) -> Revision.

%% @doc Where this node stands.
-spec place(state()) -> atoll_directory_place:place().
place(#state{cliques = Cliques, relays = Relays, links = Links}) ->
    atoll_directory_place:new(Cliques, Relays, Links).

%% @doc For people: sizes, and what was left out, by reason.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{table = Table} = State) ->
    #{places := Places, cliques := Cliques, gone := Gone, forgotten := Forgotten, refused := Refused} =
        atoll_directory_table:counts(Table),
    #{
        self => State#state.self,
        places => Places,
        cliques => Cliques,
        gone => Gone,
        left => State#state.left,
        linked => length(State#state.linked),
        gathered => map_size(State#state.news),
        comparisons => State#state.comparisons,
        differed => State#state.differed,
        refuted => State#state.refuted,
        declared_gone => State#state.declared,
        aged => State#state.aged,
        missing => atoll_directory_watch:missing(State#state.watch),
        dropped => #{
            gone_forgotten => Forgotten,
            places_refused => Refused,
            odd => State#state.odd,
            newer_version => State#state.newer,
            own_place_cut => State#state.cut_off
        }
    }.

%% Messages

message({news, Entries}, From, Now, State0) ->
    {Good, State1} = good(Entries, State0),
    {News, State} = learn(Good, Now, knows(From, Good, State1)),
    correct(Good, From, gather(News, From, State));
message({root, Root}, From, _Now, #state{table = Table} = State) when is_integer(Root) ->
    case atoll_directory_table:root(Table) of
        Root -> State;
        _ -> send(From, {hashes, atoll_directory_table:hashes(Table)}, differ(State))
    end;
message({hashes, Hashes}, From, _Now, #state{table = Table} = State) when is_binary(Hashes) ->
    case atoll_directory_table:differing(Hashes, Table) of
        error -> odd(State);
        [] -> State;
        Indices -> send(From, {prints, [{I, atoll_directory_table:prints(I, Table)} || I <- Indices]}, differ(State))
    end;
message({prints, Printed}, From, _Now, #state{table = Table} = State0) ->
    {Good, State} = good_prints(Printed, State0),
    Beyond = [{I, atoll_directory_table:beyond(I, Prints, Table)} || {I, Prints} <- Good],
    Told = tell(From, entries, lists:append([Entries || {_, {Entries, _}} <- Beyond]), State),
    case [{I, Wanted} || {I, {_, Wanted}} <- Beyond, Wanted =/= <<>>] of
        [] -> Told;
        Wanted -> send(From, {wanted, Wanted}, Told)
    end;
message({wanted, Wanted}, From, _Now, #state{table = Table} = State0) ->
    {Good, State} = good_prints(Wanted, State0),
    tell(From, entries, lists:append([atoll_directory_table:with_prints(I, P, Table) || {I, P} <- Good]), State);
message({entries, Entries}, From, Now, State0) ->
    {Good, State} = good(Entries, State0),
    correct(Good, From, learn_apart(Good, From, Now, State));
message(_Odd, _From, _Now, State) ->
    odd(State).

unread({Version, _}, #state{newer = N} = State) when is_integer(Version), Version > ?VERSION ->
    State#state{newer = N + 1};
unread(_Message, State) ->
    odd(State).

differ(#state{differed = N} = State) -> State#state{differed = N + 1}.

odd(#state{odd = N} = State) -> State#state{odd = N + 1}.

good(Entries, State) ->
    good(fun is_entry/1, ?MOST_NEWS, Entries, State).

good_prints(Printed, State) ->
    good(fun is_printed/1, 128, Printed, State).

%% Its guard fails for a list that is none to the end.
good(Is, Max, List, State) when length(List) =< Max ->
    case lists:partition(Is, List) of
        {Good, []} -> {Good, State};
        {Good, _} -> {Good, odd(State)}
    end;
good(_Is, _Max, _Odd, State) ->
    {[], odd(State)}.

is_entry({Node, {Version, What}}) when is_atom(Node), is_integer(Version), Version > 0, Version < ?MAX_VERSION ->
    What =:= gone orelse atoll_directory_place:is_place(What);
is_entry(_) ->
    false.

is_printed({Index, Prints}) when is_integer(Index), Index > 0, Index =< 128, is_binary(Prints) ->
    byte_size(Prints) rem 4 =:= 0;
is_printed(_) ->
    false.

%% The teller may have heard nothing since. Its answer, if there is one, is newer still, so
%% this ends.
correct(Entries, From, #state{table = Table} = State) ->
    Newer = [
        {Node, Known}
     || {Node, Entry} <- Entries,
        Known <- [atoll_directory_table:entry(Node, Table)],
        Known =/= unknown,
        atoll_directory_table:wins(Known, Entry) =/= Entry
    ],
    tell(From, entries, Newer, State).

%% Learning

%% Those whose entries are news now, for others too.
learn(Entries, Now, #state{age = Age0, self = Self, linked = Linked, table = Table} = State0) ->
    {Credible, Age} = atoll_directory_age:credible(Entries, [Self | Linked], Table, Age0),
    {News, State} = lists:foldl(
        fun({Node, Entry}, {News0, S0}) ->
            case enter(Node, Entry, Now, S0) of
                {true, S} -> {[Node | News0], S};
                {false, S} -> {News0, S}
            end
        end,
        {[], State0#state{age = Age}},
        Credible
    ),
    {News, watch_later(State)}.

%% From a comparison.
learn_apart(Entries, From, Now, #state{table = Before, linked = Linked} = State) ->
    {News, Learned} = learn(Entries, Now, State),
    case is_much(length(News), Before, State) of
        false -> gather(News, From, Learned);
        true -> compare_with(Linked -- [From], Learned)
    end.

is_much(Count, _Before, _State) when Count =< ?FEW ->
    false;
is_much(Count, Before, #state{options = #{max_news := Max}}) ->
    #{places := Places} = atoll_directory_table:counts(Before),
    4 * Count > min(4 * Max, Places).

%% Whether the places are others now.
enter(Self, Entry, _Now, #state{self = Self} = State) ->
    {false, refute(Entry, State)};
enter(Node, {Version, What} = Entry, Now, #state{table = Table0} = State0) ->
    {Done, Table} = atoll_directory_table:put(Node, Entry, Table0),
    State = State0#state{table = Table},
    case {Done, What} of
        {{changed, Before}, gone} ->
            Gone = vanished(Node, Before, State),
            {Gone =/= State, Gone};
        {{changed, _}, _Place} ->
            {true, co_member(Node, Now, effect({notify, {placed, Node, Version}}, touched(State)))};
        {_, _} ->
            {false, State}
    end.

%% The end of somebody who was not known is kept, and not told on.
vanished(_Node, unknown, State) -> State;
vanished(_Node, {_, gone}, State) -> State;
vanished(Node, {_, _Place}, #state{watch = Watch} = State) ->
    effect({notify, {gone, Node}}, touched(State#state{watch = atoll_directory_watch:gone(Node, Watch)})).

touched(#state{revision = Revision} = State) ->
    State#state{revision = Revision + 1}.

%% What others say of this node itself.
refute(_Entry, #state{left = true} = State) ->
    State;
refute({Version, _} = Entry, #state{self = Self, table = Table, refuted = N} = State) ->
    Own = atoll_directory_table:entry(Self, Table),
    case atoll_directory_table:wins(Own, Entry) of
        Own -> State;
        %% There is no higher one to answer with.
        _ when Version + 1 >= ?MAX_VERSION -> odd(State);
        _ -> renewed(Version + 1, State#state{refuted = N + 1})
    end.

%% This node

renewed(Version, State) ->
    tell_all(own(State#state{version = Version})).

own(#state{version = Version} = State) ->
    enter_own({Version, place(State)}, State).

enter_own(Entry, #state{self = Self, table = Table0} = State) ->
    {_, Table} = atoll_directory_table:put(Self, Entry, Table0),
    touched(State#state{table = Table}).

tell_all(#state{self = Self} = State) ->
    gather([Self], Self, State).

%% To have left is to have no place, wherever it would be.
changed(#state{left = true} = State, _Before) ->
    State;
changed(#state{version = Version, cut_off = Cut} = State, Before) ->
    case {place(State), place(Before)} of
        {Same, Same} ->
            State;
        _ ->
            More = atoll_directory_place:bounded(State#state.cliques, State#state.links),
            renewed(Version + 1, State#state{cut_off = Cut + More})
    end.

%% The ones that it tells of as long as there is no room for others and half of them stand.
links(Given, #state{links = Told} = State) ->
    {_, _, Best} = atoll_directory_place:new([], all, Given),
    Standing = [Node || Node <- Told, lists:member(Node, Given)],
    case length(Best) > ?FEW_LINKS andalso length(Told) >= length(Best) andalso 2 * length(Standing) >= length(Told) of
        true -> State;
        false -> State#state{links = lists:sublist(Standing ++ (Given -- Standing), length(Best))}
    end.

%% News

gather([], _From, State) ->
    State;
gather(Nodes, From, #state{news = News0} = State) ->
    State#state{news = lists:foldl(fun(Node, News) -> News#{Node => [From]} end, News0, Nodes)}.

%% Who tells what is gathered here has no need to hear it.
knows(_From, _Entries, #state{news = News} = State) when map_size(News) =:= 0 ->
    State;
knows(From, Entries, #state{news = News0, table = Table} = State) ->
    News = lists:foldl(
        fun({Node, Entry}, News1) ->
            case News1 of
                #{Node := Tellers} ->
                    case atoll_directory_table:entry(Node, Table) of
                        Entry -> News1#{Node := [From | Tellers]};
                        _ -> News1
                    end;
                #{} ->
                    News1
            end
        end,
        News0,
        Entries
    ),
    State#state{news = News}.

tell_news(#state{news = News, table = Table, options = #{gather_ms := Ms}} = State0) ->
    Entries = [
        {Tellers, {Node, Entry}}
     || {Node, Tellers} <- lists:sort(maps:to_list(News)),
        Entry <- [atoll_directory_table:entry(Node, Table)],
        %% It may be forgotten by now.
        Entry =/= unknown
    ],
    {Targets, State} = targets(State0#state{news = #{}, gathering = true}),
    Tellers = lists:usort(lists:append([Those || {Those, _} <- Entries])),
    Cliques = maps:from_list([{Node, cliques(Node, State)} || Node <- Tellers ++ Targets]),
    lists:foldl(
        fun(To, S) ->
            Informed = [T || T <- Tellers, has_told(T, To, Cliques, State)],
            tell(To, news, [Entry || {Those, Entry} <- Entries, not share(Those, Informed)], S)
        end,
        effect({timer, gather, Ms}, State),
        Targets
    ).

has_told(To, To, _Cliques, _State) -> true;
has_told(Self, _To, _Cliques, #state{self = Self}) -> false;
has_told(Teller, To, Cliques, _State) -> share(map_get(Teller, Cliques), map_get(To, Cliques)).

share([], _) -> false;
share([A | As], Bs) -> lists:member(A, Bs) orelse share(As, Bs).

%% Co-members, and some of the others.
targets(#state{rand = Rand0, options = #{fanout := Fanout}} = State) ->
    {CoMembers, Others} = co_members(State),
    {Some, Rand} = atoll_random:sample(Fanout, Others, Rand0),
    {CoMembers ++ Some, State#state{rand = Rand}}.

%% The linked nodes that share a clique with this one, and the others.
co_members(#state{self = Self, linked = Linked} = State) ->
    Own = cliques(Self, State),
    lists:partition(fun(Node) -> share(cliques(Node, State), Own) end, Linked).

cliques(Node, #state{table = Table}) ->
    case atoll_directory_table:standing(Node, Table) of
        {Cliques, _, _} -> Cliques;
        unknown -> []
    end.

tell(_To, _Kind, [], State) ->
    State;
tell(To, Kind, Entries, #state{options = #{max_news := Given}} = State) ->
    Max = min(Given, ?MOST_NEWS),
    case length(Entries) > Max of
        true ->
            {Some, Others} = lists:split(Max, Entries),
            tell(To, Kind, Others, send(To, {Kind, Some}, State));
        false ->
            send(To, {Kind, Entries}, State)
    end.

%% Comparing

up(Node, #state{linked = Linked, table = Table, compare = Compare, watch = Watch} = State0) ->
    State = touched(State0#state{
        linked = ordsets:add_element(Node, Linked), watch = atoll_directory_watch:up(Node, Watch)
    }),
    case {Compare, atoll_directory_table:counts(Table)} of
        %% It knows nothing yet: the others may follow when it has heard from this one.
        {[], #{places := Places}} when Places =< 1 -> send_root(Node, State);
        {_, _} -> compare_with(Compare ++ ([Node] -- Compare), State)
    end.

%% In a moment, one after the other.
compare_with(Nodes, #state{options = #{fanout := Max}} = State) ->
    pause(State#state{compare = lists:sublist(Nodes, Max)}).

pause(#state{comparing = false, compare = [_ | _], options = #{pause_ms := Ms}} = State) ->
    timer(pause, 2 * Ms, State#state{comparing = true});
pause(State) ->
    State.

compare_next(#state{compare = []} = State) ->
    State;
compare_next(#state{compare = [Node | Nodes], linked = Linked} = State0) ->
    State = State0#state{compare = Nodes},
    case ordsets:is_element(Node, Linked) of
        true -> pause(send_root(Node, State));
        false -> compare_next(State)
    end.

compare_with_one(#state{linked = []} = State) ->
    State;
compare_with_one(#state{linked = Linked, rand = Rand0} = State) ->
    {Seldom, Rand1} = rand:uniform_s(?SELDOM, Rand0),
    Among =
        case co_members(State) of
            {[_ | _] = CoMembers, _} when Seldom > 1 -> CoMembers;
            _ -> Linked
        end,
    {Node, Rand} = atoll_random:pick(Among, Rand1),
    send_root(Node, State#state{rand = Rand}).

compare_later(#state{options = #{compare_ms := Ms}} = State) ->
    timer(compare, Ms, State).

send_root(Node, #state{table = Table, comparisons = N} = State) ->
    send(Node, {root, atoll_directory_table:root(Table)}, State#state{comparisons = N + 1}).

%% Who is no more

%% A room that all hear has said so.
buried(Self, _Now, #state{self = Self} = State) ->
    State;
buried(Node, Now, #state{table = Table} = State0) ->
    case atoll_directory_table:entry(Node, Table) of
        {Version, Place} when Place =/= gone ->
            {_, State} = enter(Node, {Version, gone}, Now, State0),
            State;
        _ ->
            State0
    end.

%% Whoever shares a clique with this node now.
co_members(Now, #state{self = Self, linked = Linked, watch = Watch, table = Table, options = #{vouch_ms := Ms}} = State) ->
    Own = cliques(Self, State),
    CoMembers = atoll_directory_table:fold(
        fun
            (Node, _, {Cliques, _, _}, Nodes) when Node =/= Self -> [Node || share(Cliques, Own)] ++ Nodes;
            (_, _, _, Nodes) -> Nodes
        end,
        [],
        Table
    ),
    watch_later(State#state{watch = atoll_directory_watch:co_members(lists:sort(CoMembers), Linked, Now, Ms, Watch)}).

co_member(Node, Now, #state{self = Self, linked = Linked, watch = Watch0, options = #{vouch_ms := Ms}} = State) ->
    IsLinked = ordsets:is_element(Node, Linked),
    Watch =
        case share(cliques(Node, State), cliques(Self, State)) of
            true -> atoll_directory_watch:co_member(Node, IsLinked, Now, Ms, Watch0);
            false -> atoll_directory_watch:parted(Node, Watch0)
        end,
    State#state{watch = Watch}.

watch_later(#state{watching = false, watch = Watch, options = #{vouch_ms := Ms}} = State) ->
    case atoll_directory_watch:missing(Watch) of
        0 -> State;
        _ -> effect({timer, watch, max(1, Ms div 3)}, State#state{watching = true})
    end;
watch_later(State) ->
    State.

%% This node alone may be cut off: it blames nobody then, nor once it has left.
doubt(_Now, #state{linked = Linked, left = Left} = State) when Linked =:= []; Left ->
    State;
doubt(Now, #state{self = Self, watch = Watch0} = State0) ->
    {Due, Watch} = atoll_directory_watch:due(Now, Watch0),
    lists:foldl(
        fun(Node, #state{table = Table, declared = N} = S0) ->
            {Version, _} = atoll_directory_table:entry(Node, Table),
            {true, S} = enter(Node, {Version, gone}, Now, S0),
            gather([Node], Self, S#state{declared = N + 1})
        end,
        State0#state{watch = Watch},
        Due
    ).

sweep(#state{linked = []} = State) ->
    State;
sweep(#state{self = Self, linked = Linked, age = Age0, table = Table} = State) ->
    {Aged, Age} = atoll_directory_age:sweep([Self | Linked], Table, Age0),
    lists:foldl(
        fun(Node, #state{table = T, aged = N} = S) ->
            vanished(Node, atoll_directory_table:entry(Node, T), S#state{table = atoll_directory_table:drop(Node, T), aged = N + 1})
        end,
        State#state{age = Age},
        Aged
    ).

sweep_later(#state{options = #{sweep_ms := Ms}} = State) ->
    timer(sweep, Ms, State).

%% Effects

%% What is news after an event is told, unless some was told a moment ago.
done(#state{news = News, gathering = false, linked = [_ | _]} = State) when map_size(News) > 0 ->
    done(tell_news(State));
done(#state{linked = []} = State) ->
    %% Whoever comes compares.
    emptied(State#state{news = #{}});
done(State) ->
    emptied(State).

emptied(#state{effects = Effects} = State) ->
    {State#state{effects = []}, lists:reverse(Effects)}.

effect(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

send(Node, Message, State) ->
    effect({send, Node, {?VERSION, Message}}, State).

%% Up to half as long again, so that nodes do not go in step.
timer(Key, Ms, #state{rand = Rand0} = State) ->
    {More, Rand} = rand:uniform_s(Ms div 2 + 1, Rand0),
    effect({timer, Key, Ms + More - 1}, State#state{rand = Rand}).
