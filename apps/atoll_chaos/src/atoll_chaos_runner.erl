%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a run: it takes the deeds of a plan when they are due, has them
%% done ({@link atoll_chaos_deeds}), and heals in the end.
%%
%% Deeds are done in their order. One that touches a node that is just starting, or
%% leaving, waits until it is up or has left, and those after it with it. Nothing else is waited for:
%% whether what was harmed is back is looked for by processes of their own, each
%% with a deadline.
%%
%% In the end, or when it is stopped, it heals as a script does, waits for those
%% processes, and has the keeper make sure. When the caller is gone it ends at once,
%% and the keeper heals; when the keeper is gone, at work or not, it heals itself.
-module(atoll_chaos_runner).

-behaviour(gen_server).

-export([start/1, stop/1, await/1, events/1]).
-export([init/1, handle_call/3, handle_info/2, handle_cast/2]).

-export_type([job/0, ended/0]).

-type job() :: #{
    caller := pid(),
    backend := atoll_chaos_backend:backend(),
    %% Those who do not run at time 0 are killed before.
    start := [node()],
    plan := atoll_sim_plan:plan(),
    source := atoll_chaos_draw:source() | none,
    %% Whether the nodes run an overlay, and what is called on a node that has started.
    overlay := boolean(),
    %% Whether their connections can be harmed.
    carrier := atoll_chaos_damage:carrier(),
    told := #{node() => [{module(), Function :: atom(), Args :: [term()]}]},
    %% How long is waited for what was harmed.
    deadline_ms := pos_integer(),
    on_event := fun((atoll_chaos_log:event()) -> _)
}.

-type ended() :: atoll_chaos_deeds:result().

-record(state, {
    keeper :: pid(),
    keeper_ref :: reference(),
    caller_ref :: reference(),
    plan :: atoll_sim_plan:plan() | none,
    source :: atoll_chaos_draw:source() | none,
    %% What was done so far.
    deeds :: atoll_chaos_deeds:deeds(),
    %% Healed is it once, when nothing more is to come; then only waited for.
    phase = playing :: playing | healed,
    %% Deeds that are due, in order.
    todo = [] :: [{atoll_sim_plan:deed(), atoll_sim_script:place() | none}],
    timer = none :: reference() | none,
    ended = none :: ended() | none,
    waiting = [] :: [gen_server:from()]
}).

%% Until the agent of a node answers.
-define(CALL_MS, 5000).

%% @doc Starts a run, unless another one is at work on one of its nodes.
-spec start(job()) -> {ok, pid()} | {error, {taken, node()}}.
start(Job) ->
    case gen_server:start(?MODULE, Job, []) of
        {ok, Runner} -> {ok, Runner};
        {error, {shutdown, {taken, _} = Taken}} -> {error, Taken}
    end.

%% @doc Ends a run before its time; it heals.
-spec stop(pid()) -> ended().
stop(Runner) ->
    gen_server:call(Runner, stop, infinity).

%% @doc Waits until the run has ended.
-spec await(pid()) -> ended().
await(Runner) ->
    gen_server:call(Runner, await, infinity).

%% @doc What has happened so far.
-spec events(pid()) -> [atoll_chaos_log:event()].
events(Runner) ->
    gen_server:call(Runner, events, infinity).

%% @private
-spec init(job()) -> {ok, #state{}} | {stop, {shutdown, {taken, node()}}}.
init(#{backend := {Module, B} = Backend, start := Start, carrier := Carrier} = Job) ->
    Nodes = Module:nodes(B),
    Damage0 = atoll_chaos_damage:new(Nodes, Carrier),
    Run = {os:getpid(), erlang:system_time(), erlang:unique_integer()},
    {ok, Keeper} = atoll_chaos_keeper:start(Backend, Damage0, Run),
    case [Node || Node <- Nodes, is_taken(Node, atoll_chaos_keeper:claim(Run, Keeper, Backend), Backend)] of
        [] ->
            begin_with(Start, Damage0, Run, Keeper, Job);
        [Taken | _] ->
            _ = atoll_chaos_keeper:heal(Keeper),
            {stop, {shutdown, {taken, Taken}}}
    end.

%% One that does not answer is told who it works for when it does.
is_taken(Node, Claim, {Module, B}) ->
    case Module:call(B, Node, {atoll_chaos_agent, ensure, [Claim]}, ?CALL_MS) of
        {ok, {error, {taken, _}}} -> true;
        _ -> false
    end.

begin_with(Start, Damage0, Run, Keeper, #{caller := Caller, plan := Plan, source := Source} = Job) ->
    #{backend := {Module, B} = Backend} = Job,
    #{overlay := IsOn} = Job,
    Overlay = atoll_chaos_overlay:open(IsOn, Backend, Start, Module:owner(B, Keeper)),
    %% It is linked to nobody: it ends when its caller does, in its own way.
    {Acts, Damage} = atoll_chaos_damage:take({kill, Module:nodes(B) -- Start}, Damage0),
    _ = atoll_chaos_keeper:do(Keeper, Acts, Damage),
    self() ! due,
    Own = maps:with([backend, told, deadline_ms, on_event], Job),
    {ok, #state{
        keeper = Keeper,
        keeper_ref = monitor(process, Keeper),
        caller_ref = monitor(process, Caller),
        plan = Plan,
        source = Source,
        deeds = atoll_chaos_deeds:new(Own#{run => Run, keeper => Keeper, damage => Damage, overlay => Overlay})
    }}.

%% @private
-spec handle_call(stop | await | events, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}} | {stop, normal, #state{}}.
handle_call(events, _From, #state{deeds = Deeds} = State) ->
    {reply, atoll_chaos_deeds:events(Deeds), State};
handle_call(_, _From, #state{ended = #{} = Ended} = State) ->
    {stop, normal, Ended, State};
handle_call(await, From, #state{waiting = Waiting} = State) ->
    {noreply, State#state{waiting = [From | Waiting]}};
handle_call(stop, From, #state{waiting = Waiting, deeds = Deeds} = State) ->
    ok = atoll_chaos_deeds:stop_sending(Deeds),
    advanced(State#state{plan = none, source = none, todo = [], waiting = [From | Waiting]}).

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message :: due | {sent, node(), Us :: integer(), Id :: non_neg_integer()} | {'DOWN', reference(), process, pid(), term()}.
handle_info(due, State) ->
    advanced(State#state{timer = none});
handle_info({sent, Node, Us, Id}, #state{deeds = Deeds} = State) ->
    {noreply, State#state{deeds = atoll_chaos_deeds:sent(Us, Node, Id, Deeds)}};
handle_info({'DOWN', Ref, process, _, _}, #state{caller_ref = Ref} = State) ->
    %% The keeper sees the end of this process, and heals.
    {stop, normal, State};
handle_info({'DOWN', Ref, process, _, _}, #state{keeper_ref = Ref, ended = none} = State) ->
    _ = atoll_chaos_deeds:heal_alone(State#state.deeds),
    {stop, keeper_lost, State};
handle_info({'DOWN', Ref, process, _, _}, #state{keeper_ref = Ref} = State) ->
    {noreply, State};
handle_info({'DOWN', Ref, process, _, Reason}, #state{deeds = Deeds0} = State) ->
    advanced(
        fun(S) ->
            case atoll_chaos_deeds:ended(Ref, Reason, Deeds0) of
                {ok, Deeds} -> S#state{deeds = Deeds};
                unknown -> S
            end
        end,
        State
    ).

%% Time

advanced(State) -> advanced(fun(S) -> S end, State).

advanced(Before, State0) ->
    try advance(Before(State0)) of
        #state{ended = #{} = Ended, waiting = [_ | _] = Waiting} = State ->
            _ = [gen_server:reply(From, Ended) || From <- Waiting],
            {stop, normal, State};
        State ->
            {noreply, State}
    catch
        %% At its work. How far that had come nobody knows, and need not know.
        throw:{keeper_lost, Damage} ->
            _ = atoll_chaos_deeds:heal_alone(Damage, State0#state.deeds),
            {stop, keeper_lost, State0}
    end.

advance(#state{ended = #{}} = State) ->
    State;
advance(#state{todo = [{Deed, Place} | Todo]} = State) ->
    case atoll_chaos_deeds:must_wait(Deed, State#state.deeds) of
        true -> State;
        false -> advance(do(Deed, Place, State#state{todo = Todo}))
    end;
advance(State0) ->
    #state{plan = Plan0} = State = fed(State0),
    case due(Plan0) of
        none ->
            ending(State);
        {ok, Ms} ->
            case Ms - atoll_chaos_deeds:now_ms(State#state.deeds) of
                Left when Left > 0 ->
                    wake(Left, State);
                _ ->
                    {_, Deeds, {_, Place}, Plan} = atoll_sim_plan:next(Plan0),
                    advance(State#state{plan = Plan, todo = [{Deed, Place} || Deed <- Deeds]})
            end
    end.

do(Deed, Place, #state{deeds = Deeds} = State) ->
    State#state{deeds = atoll_chaos_deeds:do(Deed, Place, Deeds)}.

due(none) -> none;
due(Plan) -> atoll_sim_plan:due(Plan).

%% The next of the faults that are drawn is added once nothing comes before it.
fed(#state{source = none} = State) ->
    State;
fed(#state{source = Source0, plan = Plan} = State) ->
    case {atoll_chaos_draw:due(Source0), atoll_sim_plan:due(Plan)} of
        {none, _} ->
            State#state{source = none};
        {{ok, Ms}, {ok, Earlier}} when Earlier < Ms ->
            State;
        _ ->
            {Steps, Source} = atoll_chaos_draw:next(Source0),
            Fed = lists:foldl(fun({At, Step}, P) -> atoll_sim_plan:add(At, Step, none, P) end, Plan, Steps),
            fed(State#state{source = Source, plan = Fed})
    end.

wake(_Left, #state{timer = Timer} = State) when Timer =/= none ->
    State;
wake(Left, State) ->
    State#state{timer = erlang:send_after(Left, self(), due)}.

%% The script is over: it heals, then all is waited for that is looked after.
ending(#state{phase = playing} = State) ->
    ending(do(heal, none, State#state{plan = none, phase = healed}));
ending(#state{phase = healed, deeds = Deeds} = State) ->
    case atoll_chaos_deeds:is_watching(Deeds) of
        true -> State;
        false -> over(State)
    end.

%% All is healed by now; the keeper makes sure, and takes the witnesses away.
over(#state{keeper = Keeper, keeper_ref = Ref, deeds = Deeds0} = State) ->
    {Facts, Deeds} = atoll_chaos_deeds:facts(Deeds0),
    true = demonitor(Ref, [flush]),
    Healed =
        try
            atoll_chaos_keeper:heal(Keeper)
        catch
            exit:{_, {gen_server, call, _}} -> atoll_chaos_deeds:heal_alone(Deeds)
        end,
    State#state{deeds = Deeds, ended = atoll_chaos_deeds:over(Healed, Facts, Deeds)}.
