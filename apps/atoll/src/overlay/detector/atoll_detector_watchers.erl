%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The detector `watchers': nodes watch some of their neighbours, at a cost for each that
%% does not depend on the size of the cluster.
%%
%% Watching. Each node chooses a few of its neighbours as its watchers and sends
%% each of them a beat every period. Whoever gets beats watches their sender. A
%% beat names all watchers of its sender, so they know of each other. Where a node
%% has more neighbours than it needs for watchers it takes its successors on a ring
%% ({@link atoll_ring}): in a mesh each node is then watched by as many as it
%% watches. A neighbour that is not chosen is told so; until then it watches too.
%%
%% Suspicion. A node that is silent for `suspect_ms', or whose link broke, is
%% suspected: it is pinged, and its other watchers are asked when they last heard
%% it, again and again until something comes of it. A lost beat or a bad link
%% therefore means nothing. As in SWIM (Das, Gupta, Motivala 2002) a few others, at
%% random each time, are asked too, who do not watch it: they ping it. A beat is dropped
%% where the connection is busy, so bytes of any kind that arrive over it count as well: those
%% of the suspect, and those of some others, since silence counts only while somebody is heard.
%% And who is pinged again and again by a node, which then does not hear the answers, has
%% others tell that one: some neighbours, and some members.
%%
%% Verdict. Who was heard by nobody for `dead_ms' is dead, and so, after
%% `suspect_ms', is who refuses the connection again and again. Its obituary goes
%% from neighbour to neighbour, at once and then again to those who have not shown
%% that they have it. The verdict holds for one life, that is an incarnation; it
%% stands even if it was wrong: a node that hears of its own death begins a new
%% life. The obituary of a node is kept for a while ({@link atoll_obituaries}), and
%% a beat from a buried life is answered with it.
%%
%% A node blames nobody for its own faults (as in Lifeguard, Dadgar, Phillips,
%% Currey 2017, by plainer means):
%% <ul>
%% <li>If its own timer comes late it was paused or starved, and the time it missed
%%   does not count as anybody's silence.</li>
%% <li>Nor does time in which it heard nobody at all: then it is itself cut off.
%%   Alone in a cluster of two it must decide on less.</li>
%% </ul>
%%
%% Promised: a node that falls silent is declared dead `dead_ms' after its last sign of
%% life, by any of its watchers that is up and goes on hearing others. Each
%% `{suspect, N, _}' is followed by exactly one of `{cleared, N}', `{silent, N}' and
%% `{dead, N, Life}'. `{dead, N, Life}' comes at most once for a life, as long as
%% its obituary is remembered.
%%
%% Not promised: that a verdict is right. A node that is paused for longer than
%% `dead_ms', or cut off so long from all its watchers and those that these ask, is
%% buried, and the two sides of a partition bury each other's nodes at the seam; if they
%% meet while these verdicts are being told, some of their own too. That everybody hears
%% of a verdict: a node that is cut off for longer than the obituary is repeated does not,
%% unless it has just begun and gets a neighbour within `keep_ms'. That a node without
%% neighbours is watched. That more deaths than the table of obituaries has room for, in
%% the time it keeps each, are told: then some are known only to the neighbours.
%%
%% It is long because each sign of life may end a suspicion, and each suspicion a neighbour. The
%% ring, the obituaries, how they are told, and pings for others are data of their own.
-module(atoll_detector_watchers).

-behaviour(atoll_detector).

-export([options/0, init/2, handle/3, summary/1]).

-export_type([options/0, message/0, state/0]).

-type options() :: #{
    %% Between two beats, and how many neighbours get them.
    period_ms => pos_integer(),
    watchers => pos_integer(),
    %% Silence on the own link until a node is suspected; silence for everybody
    %% until it is dead; silence on the own link until that is given up.
    suspect_ms => pos_integer(),
    dead_ms => pos_integer(),
    silent_ms => pos_integer(),
    %% Between two rounds of questions about the suspected.
    ask_ms => pos_integer(),
    %% Rounds in which a node must refuse the connection to be dead sooner.
    refusals => pos_integer(),
    %% How late the own timer may be without meaning anything.
    late_ms => pos_integer(),
    %% To how many random neighbours an obituary goes where there are more, how
    %% often it is repeated, and how long others are gathered to go with it.
    fanout => pos_integer(),
    repeats => non_neg_integer(),
    gather_ms => pos_integer(),
    %% Obituaries that are remembered, and for how long at least; so long a newcomer is
    %% told of them.
    max_obituaries => pos_integer(),
    keep_ms => pos_integer(),
    %% Nodes that this one watches, and senders of beats that are no neighbours.
    max_watched => pos_integer(),
    max_strangers => pos_integer()
}.

-type message() ::
    %% The sender is alive; its watchers, and what it was given to carry.
    {beat, atoll_detector:life(), Watchers :: [node()], Cargo :: term()}
    %% The receiver is no watcher of the sender (any more).
    | unwatch
    | ping
    %% What the receiver is to the sender.
    | {pong, atoll_detector:life(), watcher | neighbour | stranger}
    | {who_heard, node(), atoll_detector:life()}
    | {heard, node(), atoll_detector:life(), AgeMs :: non_neg_integer()}
    %% The sender has it of one that heard it then.
    | {heard_of, node(), atoll_detector:life(), AgeMs :: non_neg_integer()}
    | atoll_news:message()
    %% The receiver's lives up to this one are over.
    | {buried, atoll_detector:life()}
    %% The sender has heard beats of the receiver, and they are no neighbours.
    | stranger
    %% Tell this node, which does not hear the sender, that the receiver does, in that life.
    | {vouch, node(), atoll_detector:life()}.

-record(watch, {
    %% 0 until it is known.
    life = 0 :: atoll_obituaries:life(),
    watchers = [] :: [node()],
    cargo = none :: term(),
    %% The last sign of life here, and the newest that this node knows of.
    own :: atoll_protocol:now_ms(),
    newest :: atoll_protocol:now_ms(),
    %% The last sign of life here as far as others may be told of it: not excused,
    %% and not one that may have waited for a node that was paused.
    sure :: atoll_protocol:now_ms(),
    %% The newest that somebody has heard who said so here, as far as others may be told of that.
    said :: atoll_protocol:now_ms(),
    suspected = false :: boolean(),
    %% Since when the link is lost: it is no neighbour any more.
    lost = false :: false | atoll_protocol:now_ms(),
    %% Whether it refused the connection since the last question, and how often
    %% it has.
    refused = false :: boolean(),
    refusals = 0 :: non_neg_integer()
}).

-record(state, {
    self :: node(),
    life :: atoll_detector:life(),
    options :: options(),
    rand :: rand:state(),
    cargo = none :: term(),
    neighbours = atoll_ring:new() :: atoll_ring:ring(),
    watchers = [] :: [node()],
    %% What goes to each of them, made once.
    beat :: message(),
    watched = #{} :: #{node() => #watch{}},
    suspects = [] :: ordsets:ordset(node()),
    pings = atoll_detector_pings:new() :: atoll_detector_pings:pings(),
    %% Senders of beats that are no neighbours, and since when.
    strangers = #{} :: #{node() => {atoll_protocol:now_ms(), message()}},
    obituaries :: atoll_obituaries:table(),
    news :: atoll_news:news(),
    %% When each timer is due, to see whether it is late.
    due = #{} :: #{tick | ask => atoll_protocol:now_ms()},
    %% When any node was heard last; until when silence has been excused.
    any :: atoll_protocol:now_ms(),
    excused :: atoll_protocol:now_ms(),
    %% Until then it is a newcomer.
    keep_from :: atoll_protocol:now_ms(),
    %% The last own life of whose death the stack has been told.
    told = 0 :: atoll_obituaries:life(),
    unwatched = 0 :: non_neg_integer(),
    ignored = 0 :: non_neg_integer(),
    excuses = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% How many neighbours that do not watch a suspect are asked about it at a time.
-define(HELPERS, 3).
%% So many neighbours, and as many members, vouch each time for a node that is not heard.
-define(VOUCHERS, 5).
%% Looks at the bytes of a suspect that are further apart than so many questions are not of
%% one suspicion.
-define(LOOKS, 3).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads
%% them.
-spec options() -> atoll_options:known().
options() ->
    #{
        period_ms => {pos_integer, 1000},
        watchers => {pos_integer, 5},
        suspect_ms => {pos_integer, 2200},
        dead_ms => {pos_integer, 4500},
        silent_ms => {pos_integer, 9000},
        ask_ms => {pos_integer, 500},
        refusals => {pos_integer, 3},
        late_ms => {pos_integer, 300},
        fanout => {pos_integer, 20},
        repeats => {non_neg_integer, 5},
        gather_ms => {pos_integer, 100},
        max_obituaries => {pos_integer, 1000},
        keep_ms => {pos_integer, 30000},
        max_watched => {pos_integer, 10000},
        max_strangers => {pos_integer, 100}
    }.

%% @doc A node without neighbours.
-spec init(atoll_detector:config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Life, seed := Seed, options := Options}, Now) ->
    #{period_ms := Period, max_obituaries := Max, keep_ms := Keep} = Options,
    %% Nodes that start together do not beat together.
    {First, Rand} = rand:uniform_s(Period, atoll_random:seed(Seed)),
    State = #state{
        self = Self,
        life = Life,
        options = Options,
        rand = Rand,
        beat = {beat, Life, [], none},
        obituaries = atoll_obituaries:new(Max, Keep),
        news = atoll_news:new(Options, Now),
        due = #{tick => Now + First},
        any = Now,
        excused = Now,
        keep_from = Now + Keep
    },
    {State, [{timer, tick, First}]}.

%% @doc Takes one event; {@link atoll_detector} says which there are.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) ->
    {state(), [atoll_protocol:effect()]}.
handle({message, Node, Message}, Now, State) ->
    message(Message, Node, Now, listen(Now, State));
handle({timeout, tick}, Now, State) ->
    tick(Now, excuse_late(tick, Now, State));
handle({timeout, ask}, Now, State) ->
    ask_on(Now, excuse_late(ask, Now, State));
handle({timeout, gather}, _Now, #state{neighbours = Neighbours, news = News0} = State) ->
    {News, Effects} = atoll_news:gathered(Neighbours, News0),
    {State#state{news = News}, Effects};
handle({up, Node}, Now, State) ->
    up(Node, Now, State);
handle({down, Node, Why}, Now, State) ->
    down(Why, Node, Now, State);
handle({cast, {unreachable, Node}}, _Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := #watch{suspected = true} = Watch} ->
            {store(Node, Watch#watch{refused = true}, State), []};
        #{} ->
            {State, []}
    end;
handle({cast, {bytes, Node}}, Now, State) ->
    sign(Node, Now, listen(Now, State), []);
handle({cast, {cargo, Cargo}}, _Now, State) ->
    {make_beat(State#state{cargo = Cargo}), []};
handle({cast, {incarnation, Life}}, _Now, State) ->
    {make_beat(State#state{life = Life}), []}.

%% @doc For people: sizes, and what was dropped, by reason.
-spec summary(state()) -> #{atom() => term()}.
summary(#state{obituaries = Obituaries, news = News} = State) ->
    #{told := Told, gathered := Gathered} = atoll_news:sizes(News),
    #{forgotten := Forgotten, refused := Refused} = atoll_obituaries:counts(Obituaries),
    #{
        neighbours => atoll_ring:size(State#state.neighbours),
        watchers => length(State#state.watchers),
        watched => map_size(State#state.watched),
        suspects => length(State#state.suspects),
        strangers => map_size(State#state.strangers),
        obituaries => atoll_obituaries:size(Obituaries),
        told => Told,
        gathered => Gathered,
        excuses => State#state.excuses,
        dropped => #{
            obituaries_forgotten => Forgotten,
            obituaries_refused => Refused,
            neighbours_unwatched => State#state.unwatched,
            strangers_ignored => State#state.ignored,
            pings_refused => atoll_detector_pings:refused(State#state.pings)
        }
    }.

%% Messages

message({beat, Life, Watchers, Cargo}, Node, Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := #watch{life = Life, suspected = false, cargo = Cargo} = Watch} ->
            Heard = heard_now(Now, Watch#watch{watchers = Watchers}, State),
            {State#state{watched = Watched#{Node := Heard}}, []};
        #{} ->
            beat(atoll_obituaries:last(Node, State#state.obituaries), Life, Watchers, Cargo, Node, Now, State)
    end;
message(unwatch, Node, _Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := #watch{lost = false}} -> forget(Node, State);
        #{} -> {State, []}
    end;
message(ping, Node, Now, #state{life = Life} = State0) ->
    {State, Vouching} = have_vouched(Node, Now, State0),
    sign(Node, Now, State, [{send, Node, {pong, Life, standing(Node, State)}} | Vouching]);
message({vouch, For, Life}, Node, Now, #state{self = Self, obituaries = Obituaries} = State) ->
    Words =
        case atoll_obituaries:last(Node, Obituaries) of
            Buried when Buried >= Life -> [{send, Node, {buried, Buried}}];
            _ -> [{send, For, {heard, Node, Life, 0}} || For =/= Self]
        end,
    sign(Node, Now, State, Words);
message({pong, Life, Standing}, Node, Now, #state{obituaries = Obituaries} = State) ->
    case atoll_obituaries:last(Node, Obituaries) of
        Buried when Buried >= Life ->
            {State, [{send, Node, {buried, Buried}}]};
        _ ->
            {Told, Answers} = tell_askers(Node, Life, Now, State),
            {Ponged, Effects} = pong(Standing, Life, Node, Now, Told),
            {Ponged, Answers ++ Effects}
    end;
message({who_heard, About, Life}, Node, Now, #state{watched = Watched, obituaries = Obituaries} = State) ->
    %% What was heard here, or by who said so here, and no more: what is told on grows younger by the way.
    Answer =
        case {Watched, atoll_obituaries:last(About, Obituaries)} of
            %% Of a life that is not known to the asker none was buried.
            {_, Buried} when Buried >= Life, Buried > 0 -> [{send, Node, {obituaries, false, [{About, Buried}]}}];
            {#{About := #watch{life = Life, sure = Sure, said = Said}}, _} when Said > Sure -> [{send, Node, {heard_of, About, Life, Now - Said}}];
            {#{About := #watch{life = Life, sure = Sure}}, _} -> [{send, Node, {heard, About, Life, Now - Sure}}];
            _ -> none
        end,
    case Answer of
        none ->
            {Pinged, Ping} = ping_for(Node, About, Now, State),
            sign(Node, Now, Pinged, Ping);
        _ ->
            sign(Node, Now, State, Answer)
    end;
message({heard, About, Life, Age}, Node, Now, State0) ->
    {State, Effects} = sign(Node, Now, State0, []),
    {Told, More} = hearsay(About, Life, Now - Age, said(About, Life, Now - Age, Now, State)),
    {Told, Effects ++ More};
message({heard_of, About, Life, Age}, Node, Now, State0) ->
    {State, Effects} = sign(Node, Now, State0, []),
    {Told, More} = hearsay(About, Life, Now - Age, State),
    {Told, Effects ++ More};
message({obituaries, true, []}, Node, Now, #state{news = News} = State) ->
    %% Of its own earlier lives it knows.
    Recent = [Obituary || {Dead, _} = Obituary <- atoll_news:recent(Now, News), Dead =/= Node],
    sign(Node, Now, State, [{send, Node, {obituaries, false, Recent}} || Recent =/= []]);
message({obituaries, Answer, Obituaries}, Node, Now, State0) ->
    {State1, Effects} = sign(Node, Now, State0, []),
    {State, More} = each(fun({Dead, Life}, S) -> obituary(Dead, Life, Node, Now, S) end, Obituaries, State1),
    Answers = [{send, Node, {obituaries, false, Obituaries}} || Answer],
    {State, Effects ++ More ++ Answers};
message({buried, Life}, Node, Now, State0) ->
    {State, Effects} = sign(Node, Now, State0, []),
    {Told, More} = own_death(Life, State),
    {Told, Effects ++ More};
message(stranger, Node, Now, #state{neighbours = Neighbours} = State) ->
    case atoll_ring:is_member(Node, Neighbours) of
        true -> sign(Node, Now, State, [{notify, {stranger, Node}}]);
        false -> {State, []}
    end.

beat(Buried, Life, _Watchers, _Cargo, Node, _Now, State) when Buried >= Life ->
    {State, [{send, Node, {buried, Buried}}]};
beat(_Buried, Life, Watchers, Cargo, Node, Now, #state{watched = Watched, neighbours = Neighbours} = State) ->
    case Watched of
        #{Node := #watch{life = Known}} when Known > Life ->
            {State, []};
        #{Node := #watch{lost = false, cargo = Last} = Watch} ->
            {Cleared, Effects} = clear(Node, Watch, State),
            Heard = heard_now(Now, Watch#watch{life = Life, watchers = Watchers, cargo = Cargo}, State),
            {store(Node, Heard, Cleared), Effects ++ [{notify, {cargo, Node, Cargo}} || Cargo =/= Last]};
        #{} ->
            case atoll_ring:is_member(Node, Neighbours) of
                true -> watch(Node, {beat, Life, Watchers, Cargo}, Now, State);
                false -> stranger(Node, {beat, Life, Watchers, Cargo}, Now, State)
            end
    end.

%% A first beat may have overtaken the word that they are neighbours.
stranger(Node, Beat, Now, #state{strangers = Strangers, options = Options} = State) ->
    #{period_ms := Period, max_strangers := Max} = Options,
    case Strangers of
        #{Node := {Since, _}} when Now - Since >= Period * 3 div 4 ->
            {State#state{strangers = Strangers#{Node := {Now, Beat}}}, [{send, Node, stranger}]};
        #{Node := {Since, _}} ->
            {State#state{strangers = Strangers#{Node := {Since, Beat}}}, []};
        #{} when map_size(Strangers) < Max ->
            {State#state{strangers = Strangers#{Node => {Now, Beat}}}, []};
        #{} ->
            {State#state{ignored = State#state.ignored + 1}, []}
    end.

standing(Node, #state{watchers = Watchers, neighbours = Neighbours}) ->
    case lists:member(Node, Watchers) of
        true -> watcher;
        false ->
            case atoll_ring:is_member(Node, Neighbours) of
                true -> neighbour;
                false -> stranger
            end
    end.

pong(Standing, Life, Node, Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := #watch{life = Known}} when Known > Life ->
            {State, []};
        #{Node := #watch{lost = false} = Watch} when Standing =:= watcher ->
            {Cleared, Effects} = clear(Node, Watch, State),
            {store(Node, heard_now(Now, Watch#watch{life = Life}, State), Cleared), Effects};
        #{Node := #watch{lost = Lost}} ->
            %% Alive, and watched by those that it has chosen.
            {State1, Effects} = forget(Node, State),
            {State1, Effects ++ [{notify, {stranger, Node}} || Lost =:= false, Standing =:= stranger]};
        #{} ->
            {State, []}
    end.

%% Any message of a node that is watched over a link is a sign of its life.
sign(Node, Now, #state{watched = Watched} = State, Effects) ->
    case Watched of
        #{Node := #watch{lost = false} = Watch} ->
            {Cleared, Notices} = clear(Node, Watch, State),
            {store(Node, heard_now(Now, Watch, State), Cleared), Notices ++ Effects};
        #{} ->
            {State, Effects}
    end.

heard_now(Now, Watch, #state{excused = Excused, options = #{late_ms := LateMs}}) ->
    Sure =
        case Now - Excused >= LateMs of
            true -> Now;
            %% It may be one of many that had waited.
            false -> Watch#watch.sure
        end,
    Watch#watch{own = Now, newest = Now, sure = Sure, suspected = false, refused = false, refusals = 0}.

%% Who pings again so soon suspects this node, and does not hear the answers: others tell it.
have_vouched(Node, Now, #state{life = Life, pings = Pings0, options = #{ask_ms := AskMs}} = State) ->
    case atoll_detector_pings:is_unheard(Node, Now - AskMs - AskMs div 2, Now, Pings0) of
        {true, Pings} ->
            Vouch = {vouch, Node, Life},
            Neighbours = atoll_ring:nodes(State#state.neighbours) -- [Node],
            {Others, Rand} = atoll_random:sample(?VOUCHERS, Neighbours, State#state.rand),
            {
                State#state{pings = Pings, rand = Rand},
                [{send, Other, Vouch} || Other <- Others] ++ [{notify, {tell_some, ?VOUCHERS, Vouch}}]
            };
        {false, Pings} ->
            {State#state{pings = Pings}, []}
    end.

%% Not more often than once in a period, however many ask.
ping_for(Asker, About, _Now, #state{self = Self} = State) when About =:= Self; About =:= Asker ->
    {State, []};
ping_for(Asker, About, Now, #state{pings = Pings0, options = #{period_ms := Period}} = State) ->
    {IsPinged, Pings} = atoll_detector_pings:ask({Asker, About}, Now - Period, Now, Pings0),
    {State#state{pings = Pings}, [{send, About, ping} || IsPinged]}.

tell_askers(Node, Life, Now, #state{pings = Pings0} = State) ->
    {Askers, Pings} = atoll_detector_pings:answered(Node, Pings0),
    {State#state{pings = Pings}, [{send, Asker, {heard, Node, Life, Now - Since}} || {Asker, Since} <- Askers]}.

forget_pings(Now, #state{pings = Pings, options = #{dead_ms := Ms}} = State) ->
    State#state{pings = atoll_detector_pings:forget(Now - Ms, Pings)}.

said(About, Life, When, Now, #state{watched = Watched, excused = Excused, options = #{late_ms := LateMs}} = State) ->
    case Watched of
        %% If it comes soon after a pause it may have waited, as in heard_now/3.
        #{About := #watch{life = Life, said = Said} = Watch} when When > Said, Now - Excused >= LateMs ->
            store(About, Watch#watch{said = When}, State);
        #{} ->
            State
    end.

hearsay(About, Life, When, #state{watched = Watched, options = #{ask_ms := AskMs}} = State) ->
    case Watched of
        #{About := #watch{life = Life, lost = Lost}} when is_integer(Lost), When > Lost + AskMs ->
            %% Not a beat that was under way when the link broke.
            forget(About, State);
        #{About := #watch{life = Life, newest = Newest} = Watch} when When > Newest ->
            {store(About, Watch#watch{newest = When}, State), []};
        #{} ->
            {State, []}
    end.

%% Neighbours

up(Node, Now, #state{neighbours = Neighbours, strangers = Strangers} = State0) ->
    case atoll_ring:is_member(Node, Neighbours) of
        true ->
            {State0, []};
        false ->
            {State1, Cleared} = forget(Node, State0),
            {Watching, Notices} = watch(Node, first_beat(Node, State0), Now, State1),
            State2 = Watching#state{
                neighbours = atoll_ring:add(Node, Neighbours),
                strangers = maps:remove(Node, Strangers)
            },
            {State, Effects} = choose(State2),
            Unchosen = [{send, Node, unwatch} || not lists:member(Node, State#state.watchers)],
            Newcomer = [{send, Node, {obituaries, true, []}} || Now < State#state.keep_from],
            {State, Cleared ++ Notices ++ Effects ++ Unchosen ++ Newcomer}
    end.

%% The beat that overtook the word of the neighbour, unless its life is over by now.
first_beat(Node, #state{strangers = Strangers, obituaries = Obituaries}) ->
    Buried = atoll_obituaries:last(Node, Obituaries),
    case Strangers of
        #{Node := {_, {beat, Life, _, _} = Beat}} when Life > Buried -> Beat;
        #{} -> none
    end.

watch(_Node, _Beat, _Now, #state{watched = Watched, options = #{max_watched := Max}} = State) when
    map_size(Watched) >= Max
->
    {State#state{unwatched = State#state.unwatched + 1}, []};
watch(Node, none, Now, State) ->
    {store(Node, #watch{own = Now, newest = Now, sure = Now, said = Now}, State), []};
watch(Node, {beat, Life, Watchers, Cargo}, Now, State) ->
    Watch = #watch{own = Now, newest = Now, sure = Now, said = Now, life = Life, watchers = Watchers, cargo = Cargo},
    {store(Node, Watch, State), [{notify, {cargo, Node, Cargo}} || Cargo =/= none]}.

down(Why, Node, Now, #state{neighbours = Neighbours} = State0) ->
    case atoll_ring:is_member(Node, Neighbours) of
        false ->
            {State0, []};
        true ->
            WasWatcher = lists:member(Node, State0#state.watchers),
            {State1, Chosen} = choose(State0#state{neighbours = atoll_ring:delete(Node, Neighbours)}),
            {State, Effects} = down_watched(Why, Node, Now, State1),
            %% Should it not know that it was dropped, it does not take our silence for death.
            {State, Chosen ++ Effects ++ [{send, Node, unwatch} || WasWatcher, Why =:= dropped]}
    end.

down_watched(lost, Node, Now, #state{watched = Watched} = State) ->
    case Watched of
        #{Node := #watch{life = Life} = Watch} when Life > 0 ->
            suspect(Node, Watch#watch{lost = Now}, Now, State);
        #{} ->
            forget(Node, State)
    end;
down_watched(dropped, Node, _Now, State) ->
    forget(Node, State).

%% The watchers, chosen anew: those that are new get a beat at once.
choose(#state{self = Self, neighbours = Neighbours, watchers = Old, options = #{watchers := Count}} = State0) ->
    case atoll_ring:successors(Self, Count, Neighbours) of
        Old ->
            {State0, []};
        Watchers ->
            #state{beat = Beat} = State = make_beat(State0#state{watchers = Watchers}),
            Left = [Node || Node <- Old -- Watchers, atoll_ring:is_member(Node, Neighbours)],
            {State, [{send, Node, Beat} || Node <- Watchers -- Old] ++ [{send, Node, unwatch} || Node <- Left]}
    end.

make_beat(#state{life = Life, watchers = Watchers, cargo = Cargo} = State) ->
    State#state{beat = {beat, Life, Watchers, Cargo}}.

%% Time

tick(Now, #state{options = #{period_ms := Period}, watchers = Watchers, beat = Beat} = State0) ->
    {State1, Suspected} = suspect_silent(Now, State0),
    {State2, Told} = tell_again(State1),
    State = forget_pings(Now, forget_strangers(Now, State2)),
    Beats = [{send, Node, Beat} || Node <- Watchers],
    {State#state{due = (State#state.due)#{tick => Now + Period}},
        Beats ++ Suspected ++ Told ++ [{timer, tick, Period}]}.

suspect_silent(Now, #state{watched = Watched, options = #{suspect_ms := SuspectMs}} = State) ->
    Before = Now - SuspectMs,
    Silent = maps:fold(
        fun
            (Node, #watch{own = Own, suspected = false}, Acc) when Own =< Before -> [Node | Acc];
            (_, _, Acc) -> Acc
        end,
        [],
        Watched
    ),
    each(
        fun(Node, S) -> suspect(Node, maps:get(Node, S#state.watched), Now, S) end,
        lists:sort(Silent),
        State
    ).

suspect(Node, #watch{own = Own, suspected = Already} = Watch, Now, #state{suspects = Suspects} = State0) ->
    {State, Timer} =
        case Suspects of
            [] -> ask_timer(Now, State0#state{suspects = [Node]});
            _ -> {State0#state{suspects = ordsets:add_element(Node, Suspects)}, []}
        end,
    {Asked, Questions} = ask(Node, Watch, State),
    {
        store(Node, Watch#watch{suspected = true}, Asked),
        [{notify, {suspect, Node, Now - Own}} || not Already] ++ Questions ++ Timer
    }.

ask(Node, #watch{life = Life, watchers = Watchers, lost = Lost}, State) ->
    #state{self = Self, rand = Rand0, options = #{ask_ms := AskMs}} = State,
    Neighbours = atoll_ring:nodes(State#state.neighbours) -- [Node],
    {Helpers, Rand} = atoll_random:sample(?HELPERS, Neighbours -- Watchers, Rand0),
    %% Where all connections are busy their bytes alone say that the own network works.
    Listen = [Node || Lost =:= false] ++ lists:sublist(Neighbours, ?HELPERS),
    {
        State#state{rand = Rand},
        [{notify, {listen, Of, ?LOOKS * AskMs}} || Of <- Listen] ++ [{send, Node, ping}] ++
            [{send, Other, {who_heard, Node, Life}} || Other <- Watchers ++ Helpers, Other =/= Self]
    }.

ask_timer(Now, #state{options = #{ask_ms := AskMs}} = State) ->
    ask_timer(AskMs, Now, State).

ask_timer(Ms, Now, #state{due = Due} = State) ->
    {State#state{due = Due#{ask => Now + Ms}}, [{timer, ask, Ms}]}.

%% The suspects, once more: some are judged, the others asked about again.
ask_on(Now, #state{suspects = Suspects} = State0) ->
    {State1, Effects} = each(
        fun(Node, S) -> judge(Node, count_refusal(maps:get(Node, S#state.watched)), Now, S) end,
        Suspects,
        State0
    ),
    case State1#state.suspects of
        [] ->
            {State1, Effects};
        Left ->
            {State, Timer} = ask_timer(next_look(Left, Now, State1), Now, State1),
            {State, Effects ++ Timer}
    end.

count_refusal(#watch{refused = true, refusals = Refusals} = Watch) ->
    Watch#watch{refused = false, refusals = Refusals + 1};
count_refusal(Watch) ->
    Watch.

%% Not later than the moment in which the first of them is dead.
next_look(Suspects, Now, #state{watched = Watched, options = #{ask_ms := AskMs, dead_ms := DeadMs}}) ->
    lists:foldl(
        fun(Node, Ms) ->
            #{Node := #watch{newest = Newest}} = Watched,
            case Newest + DeadMs - Now of
                Left when Left > 0 -> min(Left, Ms);
                _ -> Ms
            end
        end,
        AskMs,
        Suspects
    ).

judge(Node, #watch{life = Life, lost = Lost, own = Own} = Watch, Now, State) ->
    #state{options = #{dead_ms := DeadMs, silent_ms := SilentMs}} = State,
    case is_dead(Node, Watch, Now, State) of
        true ->
            verdict(Node, Life, Now, State);
        false when Now - Own >= SilentMs; Life =:= 0, Now - Own >= DeadMs ->
            Word =
                case Lost of
                    false -> silent;
                    _ -> cleared
                end,
            unsuspect(Node, [{notify, {Word, Node}}], remove(Node, State));
        false ->
            ask(Node, Watch, store(Node, Watch, State))
    end.

is_dead(_Node, #watch{life = 0}, _Now, _State) ->
    false;
is_dead(Node, #watch{newest = Newest} = Watch, Now, #state{options = Options} = State) ->
    #{dead_ms := DeadMs, suspect_ms := SuspectMs, refusals := Refusals} = Options,
    Refuses = Watch#watch.lost =/= false andalso Watch#watch.refusals >= Refusals,
    (Now - Newest >= DeadMs orelse (Refuses andalso Now - Newest >= SuspectMs)) andalso
        may_blame(Node, Watch, State).

%% Others were heard while it was silent; or there are no others.
may_blame(_Node, #watch{newest = Newest}, #state{any = Any, options = #{suspect_ms := SuspectMs}}) when
    Any - Newest >= SuspectMs
->
    true;
may_blame(Node, #watch{watchers = Watchers}, #state{self = Self, neighbours = Neighbours}) ->
    Watchers -- [Self] =:= [] andalso atoll_ring:nodes(Neighbours) -- [Node] =:= [].

%% Verdicts

verdict(Node, Life, Now, #state{obituaries = Obituaries0} = State) ->
    case atoll_obituaries:bury(Node, Life, Now, Obituaries0) of
        {new, Obituaries} ->
            publish(Node, Life, [], Now, State#state{obituaries = Obituaries});
        {refused, Obituaries} ->
            unsuspect(Node, [{notify, {dead, Node, Life}}], remove(Node, State#state{obituaries = Obituaries}))
    end.

obituary(Self, Life, _From, _Now, #state{self = Self} = State) ->
    own_death(Life, State);
obituary(Node, Life, From, Now, #state{obituaries = Obituaries0} = State) ->
    case atoll_obituaries:bury(Node, Life, Now, Obituaries0) of
        {new, Obituaries} -> publish(Node, Life, [From], Now, State#state{obituaries = Obituaries});
        {known, _} -> {State#state{news = atoll_news:knows(From, {Node, Life}, State#state.news)}, []};
        {refused, Obituaries} -> {State#state{obituaries = Obituaries}, []}
    end.

own_death(Life, #state{life = Own, told = Told} = State) when Life >= Own, Life > Told ->
    {State#state{told = Life}, [{notify, {buried, Life}}]};
own_death(_Earlier, State) ->
    {State, []}.

publish(Node, Life, From, Now, #state{watched = Watched} = State0) ->
    Verdict = [{notify, {dead, Node, Life}}],
    {State1, Notices} =
        case Watched of
            #{Node := #watch{life = Known}} when Known =< Life -> unsuspect(Node, Verdict, remove(Node, State0));
            #{} -> {State0, Verdict}
        end,
    {State, Effects} = spread(Node, Life, From, Now, State1),
    {State, Notices ++ Effects}.

spread(Node, Life, From, Now, #state{neighbours = Neighbours, news = News0} = State0) ->
    {Targets, State} = targets(State0),
    {News, Effects} = atoll_news:tell({Node, Life}, From, Targets -- [Node], Neighbours, Now, News0),
    {State#state{news = News}, Effects}.

%% All neighbours if they are few. Otherwise those that this node watches, or is
%% watched by, and some at random: so a node that has chosen its watchers hears of
%% it from them, and elsewhere there are paths enough.
targets(#state{neighbours = Neighbours, news = News, options = #{fanout := Fanout}} = State) ->
    case atoll_news:targets(News) of
        [_ | _] = Targets ->
            {Targets, State};
        [] ->
            case atoll_ring:size(Neighbours) =< Fanout of
                true -> {atoll_ring:nodes(Neighbours), State};
                false -> some(State)
            end
    end.

some(#state{neighbours = Neighbours, options = #{fanout := Fanout}} = State) ->
    {Random, Rand} = atoll_ring:from(Fanout, Neighbours, State#state.rand),
    Watched = maps:keys(State#state.watched),
    {lists:usort(Random ++ Watched ++ State#state.watchers), State#state{rand = Rand}}.

tell_again(#state{news = News0, neighbours = Neighbours} = State) ->
    {News, Effects} = atoll_news:again(Neighbours, News0),
    {State#state{news = News}, Effects}.

forget_strangers(_Now, #state{strangers = Strangers} = State) when map_size(Strangers) =:= 0 ->
    State;
forget_strangers(Now, #state{strangers = Strangers, options = #{period_ms := Period}} = State) ->
    State#state{strangers = maps:filter(fun(_, {Since, _}) -> Now - Since < 5 * Period end, Strangers)}.

%% Excuses: time that does not count as silence

listen(Now, #state{any = Any, excused = Excused, watched = Watched, options = #{suspect_ms := SuspectMs}} = State) ->
    case Now - max(Any, Excused) of
        Gap when Gap > SuspectMs, map_size(Watched) > 1 ->
            %% Nobody was heard at all: it was the own network.
            excuse(Gap, Now, State#state{any = Now});
        %% It was heard in this very moment.
        _ when Any =:= Now ->
            State;
        _ ->
            State#state{any = Now}
    end.

excuse_late(Timer, Now, #state{due = Due, excused = Excused, options = #{late_ms := LateMs}} = State) ->
    #{Timer := At} = Due,
    case Now - max(At, Excused) of
        Late when Late > LateMs -> excuse(Late, Now, State);
        _ -> State
    end.

excuse(Ms, Now, #state{watched = Watched} = State) ->
    State#state{
        excused = Now,
        excuses = State#state.excuses + 1,
        watched = maps:map(
            fun(_, #watch{own = Own, newest = Newest, sure = Sure, said = Said} = Watch) ->
                Watch#watch{
                    own = min(Now, Own + Ms),
                    newest = min(Now, Newest + Ms),
                    sure = min(Sure, Now - Ms),
                    said = min(Said, Now - Ms)
                }
            end,
            Watched
        )
    }.

%% The table of the watched

store(Node, Watch, #state{watched = Watched} = State) ->
    State#state{watched = Watched#{Node => Watch}}.

remove(Node, #state{watched = Watched} = State) ->
    State#state{watched = maps:remove(Node, Watched)}.

forget(Node, State) ->
    unsuspect(Node, remove(Node, State)).

clear(_Node, #watch{suspected = false}, State) ->
    {State, []};
clear(Node, #watch{suspected = true}, State) ->
    unsuspect(Node, State).

unsuspect(Node, #state{suspects = Suspects} = State) ->
    unsuspect(Node, [{notify, {cleared, Node}} || ordsets:is_element(Node, Suspects)], State).

%% With these words for an end.
unsuspect(Node, Words, #state{suspects = Suspects} = State) ->
    case ordsets:del_element(Node, Suspects) of
        Suspects -> {State, Words};
        [] -> {State#state{suspects = []}, [{cancel, ask} | Words]};
        Left -> {State#state{suspects = Left}, Words}
    end.

%% Fun for one after the other; all their effects.
each(Fun, Elements, State0) ->
    {Effects, State} = lists:mapfoldl(
        fun(Element, S0) ->
            {S, E} = Fun(Element, S0),
            {E, S}
        end,
        State0,
        Elements
    ),
    {State, lists:append(Effects)}.
