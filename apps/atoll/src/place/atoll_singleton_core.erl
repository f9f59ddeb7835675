%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a node that stands by for a singleton does: the decisions of one
%% {@link atoll_singleton} on one node, as a pure function of events and time.
%%
%% <b>The name is the lock.</b> A server that is started registers the name before it does
%% anything, and where the name cannot be had it does not run. So of all that is said here
%% nothing is needed for safety: who starts when it should not is refused. What this module
%% decides is when to try, so that few try, and the right one first.
%%
%% <b>Who tries.</b> A node follows the process that has the name, with a monitor. When it
%% ends, the nodes that stand by are put in an order, and the one in place K tries after K times
%% `step_ms', if nobody has the name by then. The order is that in which names rank nodes
%% ({@link atoll_name_rules:outranks/3}), among those that placement lets through, or the one
%% that placement gives. Nodes that see the same stand-bys have the same order.
%% Where the process crashed, its node comes first, and starts it at once. Where it was shut down,
%% its node is out. Where the connection was lost, everybody waits one step more: a
%% connection that comes back at once brings the name with it.
%%
%% <b>No storm.</b> After a start that failed, a node waits `retry_ms', twice as long each time, at
%% most `max_retry_ms'. After more than `intensity' restarts in `period_ms' it waits for
%% `period_ms' and leaves it to others. Both are forgotten once somebody has had the name for
%% `period_ms'. Nothing here ever ends the supervisor.
%%
%% <b>A name that is gone from under a process that lives</b> (its node was taken out of the
%% group, somebody unregistered it) is seen by looking: at each change of the group, and every
%% `look_ms'. Its own node ends the process; the others give that `handover_ms' before they
%% try.
%%
%% Not promised: that the node in the first place is really the first. Two that see different
%% stand-bys, or hear of an end at different times, may both try; one is refused.
-module(atoll_singleton_core).

-export([init/2, handle/3, defaults/0, info/1]).

-export_type([config/0, options/0, process/0, view/0, event/0, effect/0, state/0]).

-type config() :: #{
    self := node(),
    name := term(),
    %% Whether placement is asked, and whether its order counts.
    placed := no | fits | ranked,
    options := options()
}.

-type options() :: #{
    step_ms := pos_integer(),
    retry_ms := pos_integer(),
    max_retry_ms := pos_integer(),
    %% How often a node looks that is not in the group; that follows or holds; that does not fit.
    away_ms := pos_integer(),
    look_ms := pos_integer(),
    unfit_ms := pos_integer(),
    %% A second look, before it is believed that a name is gone.
    again_ms := pos_integer(),
    handover_ms := pos_integer(),
    intensity := non_neg_integer(),
    period_ms := pos_integer()
}.

-type process() :: {node(), pid()}.

-type view() ::
    %% This node is not in the group, or the application does not run here.
    away
    | #{holder := none | process(), standbys := [node()]}.

-type event() ::
    %% A timer, or something may have changed.
    {look | 'try', view()}
    %% The process that is followed has ended, or is out of reach.
    | {gone, process(), Reason :: term(), view()}
    %% What placement says: those that fit, the best first.
    | {placed, {ok, [node()]} | failed}
    %% What became of the start.
    | {started, process(), view()}
    | {taken, view()}
    | {failed, Reason :: term(), view()}
    %% The process of this node has ended; it has lost the name.
    | {ended, process(), Reason :: term(), view()}
    | {lost, process(), Winner :: none | pid()}
    %% It is to run here no more: never, or as long as the application does.
    | {stop | leave, From :: term()}.

-type effect() ::
    {follow, process()}
    | unfollow
    | {place, [node()]}
    | start
    %% In order; at once.
    | {'end', process()}
    | {kill, process()}
    | {timer, look | 'try', Ms :: non_neg_integer()}
    | {cancel, 'try'}
    | {reply, From :: term()}
    | stop
    %% What an operator wants to know.
    | {note, singleton_not_started | singleton_left_to_others | singleton_lost, Why :: term()}.

-type phase() ::
    away
    | {behind, process()}
    %% Until the timer `try': then it is started, or placement is asked again.
    | {waiting, start | place}
    | {placing, First :: none | node(), BaseMs :: non_neg_integer()}
    | starting
    | {holding, process()}
    | {ending, process()}
    | leaving.

-record(state, {
    config :: config(),
    phase = away :: phase(),
    %% Who asked for the end, of which kind.
    wanted = none :: none | {stop | leave, From :: term()},
    %% Since when the process that is followed, or held, has the name; and since when not.
    since = 0 :: integer(),
    missing = none :: none | integer(),
    %% Starts that failed one after the other, restarts of late, and until when it is left to
    %% others because of them.
    failures = 0 :: non_neg_integer(),
    restarts = [] :: [integer()],
    not_before = none :: none | integer(),
    counts = #{started => 0, refused => 0, failed => 0, restarted => 0, left_to_others => 0, lost => 0, ended => 0} ::
        #{atom() => non_neg_integer()},
    %% The latest first.
    effects = [] :: [effect()]
}).

-opaque state() :: #state{}.

%% @doc The numbers that suit most.
-spec defaults() -> options().
defaults() ->
    #{
        step_ms => 500,
        retry_ms => 200,
        max_retry_ms => 30000,
        away_ms => 1000,
        look_ms => 5000,
        unfit_ms => 2000,
        again_ms => 200,
        handover_ms => 5000,
        intensity => 3,
        period_ms => 10000
    }.

%% @doc A node that has not looked yet.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [effect()]}.
init(Config, _Now) ->
    {#state{config = Config}, [{timer, look, 0}]}.

%% @doc For people: what it does, and what was counted.
-spec info(state()) -> #{state := away | standby | holder | leaving, counts := #{atom() => non_neg_integer()}}.
info(#state{phase = Phase, counts = Counts}) ->
    Does =
        case Phase of
            away -> away;
            leaving -> leaving;
            {holding, _} -> holder;
            {ending, _} -> holder;
            _ -> standby
        end,
    #{state => Does, counts => Counts}.

%% @doc Takes one event.
-spec handle(event(), atoll_protocol:now_ms(), state()) -> {state(), [effect()]}.
handle(Event, Now, State0) ->
    #state{effects = Effects} = State = event(Event, Now, State0),
    {State#state{effects = []}, lists:reverse(Effects)}.

event({look, View}, Now, State) ->
    again(Now, look(View, Now, State));
event({'try', View}, Now, #state{phase = {waiting, What}} = State) ->
    case View of
        #{holder := none} when What =:= start -> start(State);
        #{holder := none} -> contend([], none, 0, View, Now, State);
        _ -> look(View, Now, State)
    end;
event({gone, Holder, Reason, View}, Now, #state{phase = {behind, Holder}} = State0) ->
    State = calm(Now, State0#state{phase = away}),
    case View of
        #{holder := Other} when Other =/= none, Other =/= Holder -> follow(Other, Now, State);
        away -> State;
        #{} -> succeed(Holder, Reason, View, Now, State)
    end;
event({placed, {ok, Fitting}}, Now, #state{phase = {placing, First, Base}, config = #{self := Self}} = State) ->
    case lists:member(Self, Fitting) of
        true -> wait(start, Base + place_of(Self, in_order(Fitting, First, State), State), Now, State);
        false -> wait(place, option(unfit_ms, State), Now, State)
    end;
event({placed, failed}, Now, #state{phase = {placing, _, _}} = State) ->
    wait(place, option(unfit_ms, State), Now, State);
event({started, Server, View}, Now, #state{phase = starting} = State0) ->
    State = count(started, State0#state{phase = {holding, Server}, since = Now, missing = none}),
    case State of
        #state{wanted = none} -> look(View, Now, State);
        #state{} -> end_it(State)
    end;
event({taken, View}, Now, #state{phase = starting} = State0) ->
    State = wait(start, option(retry_ms, State0), Now, count(refused, State0)),
    asked_for(look(View, Now, State));
event({failed, Reason, View}, Now, #state{phase = starting, failures = Failures} = State0) ->
    Pause = min(option(max_retry_ms, State0), option(retry_ms, State0) bsl min(Failures, 16)),
    Noted = effect({note, singleton_not_started, Reason}, count(failed, State0#state{failures = Failures + 1})),
    State = wait(start, 0, Now, Noted#state{not_before = Now + Pause}),
    asked_for(look(View, Now, State));
event({ended, Server, _Reason, View}, Now, #state{phase = {ending, Server}} = State) ->
    asked_for(look(View, Now, count(ended, State#state{phase = away})));
event({ended, Server, Reason, View}, Now, #state{phase = {holding, Server}} = State0) ->
    State = calm(Now, State0#state{phase = away}),
    case {View, Reason} of
        {#{holder := Holder}, {shutdown, _}} when Holder =:= none; Holder =:= Server ->
            contend([], none, 0, View, Now, State);
        {#{holder := Holder}, _} when Holder =:= none; Holder =:= Server ->
            restart(Now, State);
        _ ->
            look(View, Now, State)
    end;
event({lost, Server, Winner}, _Now, #state{phase = {holding, Server}} = State) ->
    end_it(effect({note, singleton_lost, Winner}, count(lost, State)));
event({lost, Server, Winner}, _Now, #state{phase = starting} = State) ->
    %% It is being started, and has the name since then: nobody can end it in order yet.
    effect({kill, Server}, effect({note, singleton_lost, Winner}, count(lost, State)));
event({What, From}, _Now, #state{phase = Phase, wanted = none} = State) when What =:= stop; What =:= leave ->
    Wanted = State#state{wanted = {What, From}},
    case Phase of
        starting -> Wanted;
        {ending, _} -> Wanted;
        {holding, _} -> end_it(Wanted);
        _ -> asked_for(Wanted)
    end;
event({What, From}, _Now, State) when What =:= stop; What =:= leave ->
    effect({reply, From}, State);
%% An answer, or the end of somebody, that does not matter any more.
event(_, _Now, State) ->
    State.

%% Looking

look(_View, _Now, #state{phase = starting} = State) -> State;
look(_View, _Now, #state{phase = {ending, _}} = State) -> State;
look(away, _Now, #state{phase = {holding, _}} = State) -> end_it(State);
look(away, _Now, State) -> idle(State);
look(_View, _Now, #state{phase = leaving} = State) -> State;
look(#{holder := Has}, _Now, #state{phase = {_, Has}} = State) -> State#state{missing = none};
look(_View, Now, #state{phase = {holding, _}} = State) -> missing(again_ms, fun end_it/1, Now, State);
look(#{holder := none} = View, Now, #state{phase = {behind, _}} = State) ->
    missing(handover_ms, fun(S) -> contend([], none, 0, View, Now, idle(S)) end, Now, State);
look(#{holder := none} = View, Now, #state{phase = away} = State) -> contend([], none, 0, View, Now, State);
look(#{holder := none}, _Now, State) -> State;
look(#{holder := Holder}, Now, State) -> follow(Holder, Now, idle(State)).

%% The process lives, and has the name no more.
missing(_Option, _Then, Now, #state{missing = none} = State) ->
    State#state{missing = Now};
missing(Option, Then, Now, #state{missing = Since} = State) ->
    case Now - Since >= option(Option, State) of
        true -> Then(State#state{missing = none});
        false -> State
    end.

again(_Now, #state{missing = Missing} = State) when Missing =/= none -> timer(look, option(again_ms, State), State);
again(_Now, #state{phase = Phase} = State) when Phase =:= away; Phase =:= leaving -> timer(look, option(away_ms, State), State);
again(_Now, State) -> timer(look, option(look_ms, State), State).

idle(#state{phase = {behind, _}} = State) -> effect(unfollow, State#state{phase = away, missing = none});
idle(#state{phase = {waiting, _}} = State) -> effect({cancel, 'try'}, State#state{phase = away});
idle(State) -> State#state{phase = away, missing = none}.

follow(Holder, Now, State) ->
    effect({follow, Holder}, State#state{phase = {behind, Holder}, since = Now, missing = none}).

%% Trying

succeed({Node, _}, noconnection, View, Now, State) ->
    contend([Node], none, option(step_ms, State), View, Now, State);
%% It had ended before it was followed: the table has not heard of that yet.
succeed({Node, _}, noproc, View, Now, State) ->
    contend([Node], none, option(retry_ms, State), View, Now, State);
succeed({Node, _}, shutdown, View, Now, State) ->
    contend([Node], none, 0, View, Now, State);
succeed(_Holder, {shutdown, _}, View, Now, State) ->
    contend([], none, 0, View, Now, State);
succeed({Node, _}, _Crash, View, Now, State) ->
    contend([], Node, 0, View, Now, State).

%% Without these, with that one first, each not before so long.
contend(Out, First, Base, #{standbys := StandBys}, Now, #state{config = #{self := Self, placed := Placed}} = State) ->
    Candidates = lists:usort([Self | StandBys -- Out]),
    case Placed of
        no -> wait(start, Base + place_of(Self, in_order(Candidates, First, State), State), Now, State);
        _ -> effect({place, Candidates}, State#state{phase = {placing, First, Base}})
    end.

in_order(Nodes, First, #state{config = #{name := Name, placed := Placed}}) ->
    Order =
        case Placed of
            ranked -> Nodes;
            _ -> lists:sort(fun(A, B) -> A =:= B orelse atoll_name_rules:outranks(A, B, Name) end, Nodes)
        end,
    [N || N <- Order, N =:= First] ++ [N || N <- Order, N =/= First].

place_of(Self, Order, State) ->
    length(lists:takewhile(fun(N) -> N =/= Self end, Order)) * option(step_ms, State).

wait(What, Ms, Now, #state{not_before = NotBefore} = State) ->
    Least =
        case NotBefore of
            none -> 0;
            _ -> max(0, NotBefore - Now)
        end,
    timer('try', max(Ms, Least), State#state{phase = {waiting, What}}).

start(State) ->
    effect(start, State#state{phase = starting}).

restart(Now, #state{restarts = Restarts0} = State) ->
    Restarts = [At || At <- Restarts0, Now - At < option(period_ms, State)],
    case length(Restarts) < option(intensity, State) of
        true ->
            start(count(restarted, State#state{restarts = [Now | Restarts]}));
        false ->
            Left = effect({note, singleton_left_to_others, restarts}, count(left_to_others, State)),
            wait(start, 0, Now, Left#state{restarts = [], not_before = Now + option(period_ms, State)})
    end.

%% Somebody has had the name, well or not.
calm(Now, #state{since = Since} = State) ->
    case Now - Since >= option(period_ms, State) of
        true -> State#state{failures = 0, not_before = none, missing = none};
        false -> State#state{missing = none}
    end.

%% Ending

end_it(#state{phase = {holding, Server}} = State) ->
    effect({'end', Server}, State#state{phase = {ending, Server}, missing = none}).

%% Nothing runs here, and nothing begins.
asked_for(#state{wanted = none} = State) ->
    State;
asked_for(#state{wanted = {What, From}} = State0) ->
    State = effect({reply, From}, (idle(State0))#state{wanted = none}),
    case What of
        stop -> effect(stop, State);
        leave -> State#state{phase = leaving}
    end.

option(Key, #state{config = #{options := Options}}) ->
    #{Key := Value} = Options,
    Value.

timer(Key, Ms, State) -> effect({timer, Key, Ms}, State).

effect(Effect, #state{effects = Effects} = State) -> State#state{effects = [Effect | Effects]}.

count(What, #state{counts = Counts} = State) ->
    #{What := N} = Counts,
    State#state{counts = Counts#{What := N + 1}}.
