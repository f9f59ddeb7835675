%% SPDX-License-Identifier: Apache-2.0
%% @doc The master: it does what {@link orbit_ledger} decides, in the process that has called
%% orbit:run/1. That one must live anyway, so nothing of the master can be lost alone. It hears from
%% the submaster of its node, and watches that one in each epoch.
-module(orbit_master).

-export([run/1, tell/2]).

-record(state, {
    run :: orbit_host:run(),
    ledger :: orbit_ledger:ledger(),
    %% when the epoch is to be prepared, in milliseconds
    deadline = infinity :: integer() | infinity,
    %% of the submaster of this node
    watch = none :: reference() | none,
    %% when the first vertex was sent, native
    began = none :: integer() | none,
    survey = #{} :: #{node() => term()}
}).

-type answer() :: {ok, #{tally := orbit_tally:tally(), survey := #{node() => term()}, wall_ms := non_neg_integer(),
                         epochs := pos_integer()}} | {error, term()}.

-define(PREPARE_MS, 30_000).

%% @doc Runs it, until there is a result. What was started is still there; the plan says where.
-spec run(map()) -> {answer(), orbit_plan:plan()}.
run(#{plan := Plan, generators := Name, space := Space} = Asked) ->
    %% What comes when it is over goes nowhere.
    Master = alias(),
    Degree = length(orbit_generators:functions(Name, Space)),
    Run = Asked#{master => Master, caller => self()},
    {Answer, S} = event(start, #state{run = Run, ledger = orbit_ledger:new(Plan, Degree)}),
    true = unalias(Master),
    _ = unwatched(S),
    ok = forget(Master),
    {Answer, orbit_ledger:plan(S#state.ledger)}.

forget(Master) -> receive {Master, _} -> forget(Master) after 0 -> ok end.

%% @doc Tells the master of a run.
-spec tell(orbit_host:run(), orbit_ledger:event() | {result, orbit_part:epoch(), node(), {orbit_tally:tally(), Said :: term()}}) -> ok.
tell(#{master := Master}, Event) ->
    Master ! {Master, Event},
    ok.

next_event(#state{run = #{master := Master}, watch = Watch, ledger = Ledger, survey = Survey} = S) ->
    Epoch = orbit_ledger:epoch(Ledger),
    receive
        {Master, {result, Of, Node, {Tally, Said}}} -> event({result, Of, Node, Tally}, S#state{survey = Survey#{Node => Said}});
        {Master, Event} -> event(Event, S);
        {'DOWN', Watch, process, _, shutdown} -> event({failed, ended}, S);
        {'DOWN', Watch, process, _, Why} -> event(orbit_submaster:loss(node(), Epoch, Why), S)
    after left(S) -> event({deadline, Epoch}, S#state{deadline = infinity})
    end.

left(#state{deadline = infinity}) -> infinity;
left(#state{deadline = Deadline}) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

event(Event, #state{ledger = Ledger} = S) ->
    {Effects, Next} = orbit_ledger:handle(Event, Ledger),
    act(Effects, S#state{ledger = Next}).

act([], S) ->
    next_event(S);
act([{prepare, Epoch, Plan}], #state{run = Run} = S) ->
    Begun = (unwatched(S))#state{deadline = erlang:monotonic_time(millisecond) + ?PREPARE_MS},
    case orbit_host:prepare(node(), Run, Epoch, Plan) of
        {ready, Is} -> event({ready, Epoch, node(), Is}, Begun);
        %% The submaster has said why, or there was one in between that has gone.
        old -> next_event(Begun);
        {error, Reason} -> event({failed, Reason}, Begun)
    end;
act([{go, _, #{} = Ready, _} = Go], #state{began = Before} = S) ->
    #{submaster := Submaster} = maps:get(node(), Ready),
    Began = case Before of none -> erlang:monotonic_time(); _ -> Before end,
    told(Go, S#state{began = Began, deadline = infinity, watch = monitor(process, Submaster)});
act([{collect, _} = Collect], S) ->
    told(Collect, S#state{survey = #{}});
act([{done, Tally}], #state{began = Began, ledger = Ledger, survey = Survey} = S) ->
    Took = erlang:convert_time_unit(erlang:monotonic_time() - Began, native, millisecond),
    {{ok, #{tally => Tally, survey => Survey, wall_ms => Took, epochs => orbit_ledger:epoch(Ledger)}}, S};
act([{fail, Reason}], S) ->
    {{error, Reason}, S}.

told(Message, #state{run = #{id := RunId}} = S) ->
    ok = orbit_submaster:tell(RunId, {down, node(), Message}),
    next_event(S).

unwatched(#state{watch = none} = S) -> S;
unwatched(#state{watch = Watch} = S) ->
    true = demonitor(Watch, [flush]),
    S#state{watch = none}.
