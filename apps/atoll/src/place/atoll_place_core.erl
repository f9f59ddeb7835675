%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The protocol that watches whether the nodes of placed processes still fit.
%%
%% Every `check_ms' the nodes of the watched processes are asked for the attributes that their
%% conditions speak of: one question for each distinct set of attributes, of all nodes that
%% matter to it, a few questions at a time. The next round begins that long after the last one
%% has ended.
%%
%% A process is misplaced when its node has answered twice in a row with values that the condition
%% does not hold for; what is undefined counts as such, as it does in a choice. That is told once,
%% and again only after it has fitted between. Who is to be ended for it is ended only while some
%% other node fits and its own does not, one process after the other, so that each is placed in
%% view of the last. That is found out beside the protocol, which looks again before the end: who
%% is watched no more by then, or fits again, is let be.
%%
%% Not promised: that a node which does not answer fits; nothing is known of it, and its processes
%% are not misplaced. That what changed for less than two rounds is seen.
%%
%% There are at most `max_placed' watched processes; one more is refused. Those that end are
%% forgotten. What is watched outlives the process of this protocol, by the deeds `keep' and `drop'.
-module(atoll_place_core).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).

-export_type([config/0, options/0, watch/0, ending/0, request/0, notice/0, state/0]).

-type options() :: #{check_ms := pos_integer(), max_placed := pos_integer()}.

-type config() :: #{
    options := options(),
    %% What was watched before the process was lost.
    watches := [{reference(), watch()}]
}.

-type ending() ::
    none
    %% By an exit signal; through its bridge.
    | direct
    | {bridge, pid()}.

-type watch() :: #{
    pid := pid(),
    node := node(),
    wish := atoll_place_choice:wish(),
    %% How it is ended when it is misplaced.
    ending := ending(),
    misplaced := boolean()
}.

-type request() :: {watch, reference(), watch()} | {unwatch, reference()} | summary.

-type notice() ::
    {misplaced, #{
        pid := pid(),
        node := node(),
        where := atoll_predicate:source(),
        values := atoll_predicate:values(),
        watch := reference()
    }}.

-record(watched, {
    watch :: watch(),
    predicate :: atoll_predicate:predicate(),
    names :: [atoll_predicate:name()],
    %% Answers in a row by which it does not fit, as far as they matter.
    misfits = 0 :: 0..2,
    %% It was told to end.
    ended = false :: boolean()
}).

-type question() :: {[atoll_predicate:name()], [node()]}.

-record(state, {
    options :: options(),
    watched = #{} :: #{reference() => #watched{}},
    %% Whose condition speaks of these attributes.
    by_names = #{} :: #{[atoll_predicate:name()] => #{reference() => []}},
    %% Whether the timer of the next round runs; else a round is under way, or nobody is watched.
    waiting = false :: boolean(),
    %% The questions of this round that are to be asked, and that are under way.
    pending = [] :: [question()],
    asked = #{} :: #{[atoll_predicate:name()] => []},
    %% Those that are to be ended, the one whose turn it is first.
    ending = [] :: [reference()],
    counts = #{rounds => 0, questions => 0, failed => 0, misplaced => 0, ended => 0, kept => 0, refused => 0} ::
        #{atom() => non_neg_integer()}
}).

-opaque state() :: #state{}.

%% Questions at once.
-define(AT_ONCE, 4).
-define(ENOUGH, 2).
%% A node has so long to answer: nobody waits for it but the next round.
-define(ANSWER_MS, 2000).

%% @doc A node that goes on watching these.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{options := Options, watches := Watches}, _Now) ->
    State = lists:foldl(fun({Ref, Watch}, S) -> enlist(Ref, watched(Watch), S) end, #state{options = Options}, Watches),
    wait([{act, {monitor, Ref, Pid}} || {Ref, #{pid := Pid}} <- lists:sort(Watches)], State).

watched(#{wish := Wish, misplaced := Misplaced} = Watch) ->
    {Predicate, Names} = atoll_place_choice:condition(Wish),
    Misfits =
        case Misplaced of
            true -> ?ENOUGH;
            false -> 0
        end,
    #watched{watch = Watch, predicate = Predicate, names = Names, misfits = Misfits}.

%% @doc Takes one event. Casts are `{gone, Ref}' for a process that has ended, `{asked, Names,
%% Answer}', `{weighed, Ref, may | kept}' and `{ended, Ref, ended | kept}' from the deeds `ask',
%% `weigh' and `end'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({call, From, Request}, _Now, State) ->
    call(Request, From, State);
handle({cast, {gone, Ref}}, _Now, State) ->
    forget(Ref, [], State);
handle({cast, {asked, Names, Answer}}, _Now, #state{asked = Asked} = State0) ->
    {State, Effects} = judged(Names, Answer, State0#state{asked = maps:remove(Names, Asked)}),
    ask(Effects, State);
handle({cast, {weighed, Ref, may}}, _Now, #state{ending = [Ref | Rest], watched = Watched} = State) ->
    case Watched of
        #{Ref := #watched{watch = #{misplaced := true} = Watch}} -> {State, [{act, {'end', Ref, Watch}}]};
        #{} -> end_next(State#state{ending = Rest})
    end;
handle({cast, {weighed, Ref, kept}}, _Now, #state{ending = [Ref | Rest]} = State) ->
    end_next(count(kept, State#state{ending = Rest}));
handle({cast, {ended, Ref, Outcome}}, _Now, #state{ending = [Ref | Rest], watched = Watched} = State) ->
    Told = count(Outcome, State#state{
        ending = Rest,
        watched =
            case Watched of
                #{Ref := One} when Outcome =:= ended -> Watched#{Ref := One#watched{ended = true}};
                #{} -> Watched
            end
    }),
    end_next(Told);
handle({timeout, check}, _Now, #state{by_names = ByNames} = State) ->
    Questions = [{Names, nodes_of(Refs, State)} || {Names, Refs} <- lists:sort(maps:to_list(ByNames)), Names =/= []],
    ask([], count(rounds, State#state{waiting = false, pending = Questions})).

call({watch, _Ref, _Watch}, From, #state{watched = Watched, options = #{max_placed := Max}} = State) when
    map_size(Watched) >= Max
->
    {count(refused, State), [{reply, From, {error, {too_many_watched, Max}}}]};
call({watch, Ref, #{pid := Pid} = Watch}, From, State) ->
    Effects = [{act, {monitor, Ref, Pid}}, {act, {keep, Ref, Watch}}, {reply, From, ok}],
    wait(Effects, enlist(Ref, watched(Watch), State));
call({unwatch, Ref}, From, #state{watched = Watched} = State) ->
    Effects = [{act, {demonitor, Ref}} || is_map_key(Ref, Watched)],
    forget(Ref, Effects ++ [{reply, From, ok}], State);
call(summary, From, #state{watched = Watched, counts = Counts} = State) ->
    Misplaced = [Ref || {Ref, #watched{watch = #{misplaced := true}}} <- maps:to_list(Watched)],
    Summary = #{watched => map_size(Watched), misplaced => length(Misplaced), counts => Counts},
    {State, [{reply, From, Summary}]}.

enlist(Ref, #watched{names = Names} = One, #state{watched = Watched, by_names = ByNames} = State) ->
    Refs = maps:get(Names, ByNames, #{}),
    State#state{watched = Watched#{Ref => One}, by_names = ByNames#{Names => Refs#{Ref => []}}}.

forget(Ref, Effects, #state{watched = Watched, by_names = ByNames} = State) ->
    case maps:take(Ref, Watched) of
        {#watched{names = Names}, Rest} ->
            #{Names := Refs} = ByNames,
            Left =
                case maps:remove(Ref, Refs) of
                    None when map_size(None) =:= 0 -> maps:remove(Names, ByNames);
                    Others -> ByNames#{Names := Others}
                end,
            {State#state{watched = Rest, by_names = Left}, Effects ++ [{act, {drop, Ref}}]};
        error ->
            {State, Effects}
    end.

nodes_of(Refs, #state{watched = Watched}) ->
    lists:usort([Node || Ref <- maps:keys(Refs), #{Ref := #watched{watch = #{node := Node}}} <- [Watched]]).

%% Sets the timer of the next round, if none is under way or expected, and somebody is watched.
wait(Effects, #state{waiting = false, pending = [], asked = Asked, watched = Watched, options = #{check_ms := Ms}} = State) when
    map_size(Asked) =:= 0, map_size(Watched) > 0
->
    {State#state{waiting = true}, Effects ++ [{timer, check, Ms}]};
wait(Effects, State) ->
    {State, Effects}.

ask(Effects, #state{pending = [], asked = Asked} = State0) when map_size(Asked) =:= 0 ->
    {State, Ends} = end_misplaced(State0),
    wait(Effects ++ Ends, State);
ask(Effects, #state{pending = [{Names, Nodes} | Pending], asked = Asked, options = #{check_ms := Ms}} = State) when
    map_size(Asked) < ?AT_ONCE
->
    Question = {act, {ask, Names, Nodes, min(Ms, ?ANSWER_MS)}},
    ask(Effects ++ [Question], count(questions, State#state{pending = Pending, asked = Asked#{Names => []}}));
ask(Effects, State) ->
    {State, Effects}.

%% What the nodes that have answered are like now.
judged(_Names, failed, State) ->
    {count(failed, State), []};
judged(Names, {ok, Values}, #state{watched = Watched, by_names = ByNames} = State0) ->
    {Told, State} = lists:mapfoldl(
        fun(Ref, S) ->
            #{Ref := #watched{watch = #{node := Node}} = One} = Watched,
            case Values of
                #{Node := Seen} ->
                    {Next, Effects} = judge(Ref, One, Seen, S),
                    {Effects, Next};
                #{} ->
                    {[], S}
            end
        end,
        State0,
        lists:sort(maps:keys(maps:get(Names, ByNames, #{})))
    ),
    {State, lists:append(Told)}.

judge(Ref, #watched{predicate = Predicate, misfits = Misfits, watch = #{misplaced := Misplaced} = Watch} = One, Values, State) ->
    case atoll_predicate:holds(Predicate, Values) of
        true when Misplaced ->
            enter(Ref, One#watched{misfits = 0, ended = false, watch = Watch#{misplaced := false}}, [], State);
        true ->
            {store(Ref, One#watched{misfits = 0}, State), []};
        false when Misfits + 1 =:= ?ENOUGH ->
            #{pid := Pid, node := Node, wish := #{source := Source}} = Watch,
            Told = {notify, {misplaced, #{pid => Pid, node => Node, where => Source, values => Values, watch => Ref}}},
            enter(Ref, One#watched{misfits = ?ENOUGH, watch = Watch#{misplaced := true}}, [Told], count(misplaced, State));
        false ->
            {store(Ref, One#watched{misfits = min(Misfits + 1, ?ENOUGH)}, State), []}
    end.

enter(Ref, #watched{watch = Watch} = One, Effects, State) ->
    {store(Ref, One, State), [{act, {keep, Ref, Watch}} | Effects]}.

store(Ref, One, #state{watched = Watched} = State) ->
    State#state{watched = Watched#{Ref := One}}.

%% Those of the last round may still have their turns.
end_misplaced(#state{ending = [], watched = Watched} = State) ->
    Ending = [
        Ref
     || {Ref, #watched{ended = false, watch = #{misplaced := true, ending := Ending}}} <- maps:to_list(Watched), Ending =/= none
    ],
    end_next(State#state{ending = lists:sort(Ending)});
end_misplaced(State) ->
    {State, []}.

end_next(#state{ending = []} = State) ->
    {State, []};
end_next(#state{ending = [Ref | Rest], watched = Watched} = State) ->
    case Watched of
        #{Ref := #watched{watch = #{misplaced := true} = Watch}} -> {State, [{act, {weigh, Ref, Watch}}]};
        #{} -> end_next(State#state{ending = Rest})
    end.

count(What, #state{counts = Counts} = State) ->
    #{What := N} = Counts,
    State#state{counts = Counts#{What := N + 1}}.
