%% @doc The process of a run: it takes the deeds of a plan when they are due, has
%% the keeper do what touches nodes, and writes the log.
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

%% What looks after something ends with exit/1 by design.
-dialyzer({nowarn_function, look/4}).

-type job() :: #{
    caller := pid(),
    backend := atoll_chaos_backend:backend(),
    %% Those who do not run at time 0 are killed before.
    start := [node()],
    plan := atoll_sim_plan:plan(),
    source := atoll_chaos_draw:source() | none,
    %% Whether the nodes run an overlay, and what is called on a node that has started.
    overlay := boolean(),
    told := #{node() => [{module(), Function :: atom(), Args :: [term()]}]},
    %% How long is waited for what was harmed.
    deadline_ms := pos_integer(),
    on_event := fun((atoll_chaos_log:event()) -> _)
}.

-type ended() :: #{
    events := [atoll_chaos_log:event()],
    %% How many there were before these.
    left_out := non_neg_integer(),
    %% Who of the nodes that answer sees which groups, if a step was about groups.
    groups := atoll_sim_groups:groups() | none,
    %% If the nodes run an overlay: what it looks like in the end, and which of so many
    %% expectations did not hold.
    overlay := atoll_sim_expect:facts() | none,
    expectations := non_neg_integer(),
    failed := [atoll_chaos_overlay:failure()],
    %% What the witnesses saw and had no room for.
    unseen := non_neg_integer(),
    ms := non_neg_integer()
}.

-record(state, {
    job :: job(),
    run :: atoll_chaos_agent:run(),
    keeper :: pid(),
    keeper_ref :: reference(),
    caller_ref :: reference(),
    begun :: integer(),
    plan :: atoll_sim_plan:plan() | none,
    source :: atoll_chaos_draw:source() | none,
    damage :: atoll_chaos_damage:damage(),
    log = atoll_chaos_log:new() :: atoll_chaos_log:log(),
    %% Healed is it once, when nothing more is to come; then only waited for.
    phase = playing :: playing | healed,
    %% Deeds that are due, in order.
    todo = [] :: [{atoll_sim_plan:deed(), term()}],
    timer = none :: reference() | none,
    %% What each process that looks after something looks after.
    watches = #{} :: #{reference() => watch()},
    %% Events that are not over: a node that is down, a fault that lasts.
    open = [] :: [{Key :: term(), atoll_chaos_log:id(), SinceMs :: non_neg_integer()}],
    has_groups = false :: boolean(),
    overlay :: atoll_chaos_overlay:overlay() | none,
    expectations = 0 :: non_neg_integer(),
    %% Who has left by which step.
    left = #{} :: #{node() => term()},
    ended = none :: ended() | none,
    waiting = [] :: [gen_server:from()]
}).

-type watch() ::
    {start, node(), BegunUs :: integer()}
    | {leave, node(), atoll_chaos_log:id()}
    | {broadcast, atoll_chaos_log:id(), pid()}
    | {answer | process | group, atoll_chaos_log:id()}.

-define(SETTLE_MS, 15000).
-define(LOOK_MS, 200).
%% What a call may take beside what it waits for.
-define(CALL_MS, 5000).
%% Leaving takes a node two seconds at most.
-define(LEAVE_MS, 10000).
%% A group operation answers within its operation and settle times.
-define(GROUP_MS, 30000).

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
init(#{backend := {Module, B} = Backend, start := Start} = Job) ->
    Nodes = Module:nodes(B),
    Damage0 = atoll_chaos_damage:new(Nodes),
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
    Overlay =
        case Job of
            #{overlay := true} -> atoll_chaos_overlay:open(Backend, Start, Module:owner(B, Keeper));
            #{overlay := false} -> none
        end,
    %% It is linked to nobody: it ends when its caller does, in its own way.
    {Acts, Damage} = atoll_chaos_damage:take({kill, Module:nodes(B) -- Start}, Damage0),
    _ = atoll_chaos_keeper:do(Keeper, Acts, Damage),
    self() ! due,
    {ok, #state{
        job = Job,
        run = Run,
        keeper = Keeper,
        keeper_ref = monitor(process, Keeper),
        caller_ref = monitor(process, Caller),
        begun = erlang:monotonic_time(millisecond),
        plan = Plan,
        source = Source,
        damage = Damage,
        overlay = Overlay
    }}.

%% @private
-spec handle_call(stop | await | events, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}} | {stop, normal, #state{}}.
handle_call(events, _From, #state{log = Log} = State) ->
    {reply, atoll_chaos_log:events(Log), State};
handle_call(_, _From, #state{ended = #{} = Ended} = State) ->
    {stop, normal, Ended, State};
handle_call(await, From, #state{waiting = Waiting} = State) ->
    {noreply, State#state{waiting = [From | Waiting]}};
handle_call(stop, From, #state{waiting = Waiting, watches = Watches} = State) ->
    _ = [exit(Pid, kill) || {broadcast, _, Pid} <- maps:values(Watches)],
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
handle_info({sent, Node, Us, Id}, State) ->
    {noreply, noted(Us, [Node], {sends, Id}, State)};
handle_info({'DOWN', Ref, process, _, _}, #state{caller_ref = Ref} = State) ->
    %% The keeper sees the end of this process, and heals.
    {stop, normal, State};
handle_info({'DOWN', Ref, process, _, _}, #state{keeper_ref = Ref, ended = none} = State) ->
    _ = heal_alone(State),
    {stop, keeper_lost, State};
handle_info({'DOWN', Ref, process, _, _}, #state{keeper_ref = Ref} = State) ->
    {noreply, State};
handle_info({'DOWN', Ref, process, _, Reason}, #state{watches = Watches} = State) ->
    case maps:take(Ref, Watches) of
        {Watch, Left} -> advanced(fun(S) -> watched(Watch, result(Reason), S) end, State#state{watches = Left});
        error -> {noreply, State}
    end.

result({?MODULE, Result}) -> Result;
result({atoll_chaos_sender, Result}) -> {0, Result};
result(Crash) -> {error, Crash}.

%% Time

now_ms(#state{begun = Begun}) ->
    erlang:monotonic_time(millisecond) - Begun.

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
            State = State0#state{damage = Damage},
            _ = heal_alone(State),
            {stop, keeper_lost, State}
    end.

heal_alone(#state{damage = Damage, job = #{backend := Backend}} = State) ->
    [{Act, atoll_chaos_keeper:act(Act, claim(State), Backend)} || Act <- atoll_chaos_damage:healing(Damage)].

advance(#state{ended = #{}} = State) ->
    State;
advance(#state{todo = [{Deed, Place} | Todo]} = State) ->
    case is_busy(nodes_of(Deed), State) of
        true -> State;
        false -> advance(do(Deed, Place, State#state{todo = Todo}))
    end;
advance(State0) ->
    #state{plan = Plan0} = State = fed(State0),
    case due(Plan0) of
        none ->
            ending(State);
        {ok, Ms} ->
            case Ms - now_ms(State) of
                Left when Left > 0 ->
                    wake(Left, State);
                _ ->
                    {_, Deeds, Place, Plan} = atoll_sim_plan:next(Plan0),
                    advance(State#state{plan = Plan, todo = [{Deed, Place} || Deed <- Deeds]})
            end
    end.

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
ending(#state{phase = healed, watches = Watches} = State) when map_size(Watches) > 0 ->
    State;
ending(#state{phase = healed} = State) ->
    over(State).

over(#state{keeper = Keeper, keeper_ref = Ref, has_groups = HasGroups} = State0) ->
    %% All is healed by now; the keeper makes sure, and takes the witnesses away.
    {Facts, Judged0} = overlay_facts(State0),
    true = demonitor(Ref, [flush]),
    Healed =
        try
            atoll_chaos_keeper:heal(Keeper)
        catch
            exit:{_, {gen_server, call, _}} -> heal_alone(Judged0)
        end,
    Judged = lists:foldl(fun not_healed/2, Judged0, Healed),
    Groups =
        case HasGroups of
            true -> settle(Judged, now_ms(Judged) + ?SETTLE_MS);
            false -> none
        end,
    %% What is down still never came back.
    #state{log = Log} = State = lists:foldl(fun never/2, Judged, Judged#state.open),
    State#state{
        open = [],
        ended = Facts#{
            events => atoll_chaos_log:events(Log),
            left_out => atoll_chaos_log:left_out(Log),
            groups => Groups,
            ms => now_ms(State)
        }
    }.

%% What was to start did not; or something stays on a node that could be reached.
not_healed({{start, Node}, {error, Why}}, State) when Why =/= {unreachable, Node, {node_up, Node}} ->
    failed_to_heal(start, Node, Why, State);
not_healed({{rest, Node}, {error, Why}}, #state{damage = Damage} = State) ->
    case atoll_chaos_damage:is_down(Node, Damage) of
        true -> State;
        false -> failed_to_heal(rest, Node, Why, State)
    end;
not_healed(_, State) ->
    State.

failed_to_heal(Act, Node, Why, State0) ->
    Event = event(heal, [Node], Act, none, State0),
    {_, State} = add(Event#{outcome := failed, why => Why}, State0),
    State.

overlay_facts(#state{overlay = none} = State) ->
    {#{overlay => none, expectations => 0, failed => [], unseen => 0}, State};
overlay_facts(#state{overlay = Overlay0, damage = Damage, expectations = Expectations} = State) ->
    Awake = atoll_chaos_damage:awake(Damage),
    Overlay = atoll_chaos_overlay:settle(Awake, Overlay0),
    Facts = #{
        overlay => atoll_chaos_overlay:facts(Awake, Overlay),
        expectations => Expectations,
        failed => atoll_chaos_overlay:failed(Overlay),
        unseen => atoll_chaos_overlay:dropped(Overlay)
    },
    {Facts, State#state{overlay = Overlay}}.

never({{down, _}, Id, _}, State) -> amend(Id, #{recovered_ms => never}, State);
never(_, State) -> State.

%% Until all who answer see the same.
settle(#state{job = #{backend := {Module, B}}} = State, Until) ->
    Groups = maps:from_list([
        {Node, Own}
     || Node <- Module:nodes(B), {ok, Own} <- [Module:call(B, Node, {s_group, own_s_groups, []}, ?CALL_MS)]
    ]),
    case atoll_sim_groups:agree(Groups) orelse now_ms(State) >= Until of
        true ->
            Groups;
        false ->
            %% Members tell each other in their own time, and nobody else.
            receive
            after ?LOOK_MS -> settle(State, Until)
            end
    end.

%% Deeds

nodes_of({partition, _}) -> [];
nodes_of({cut, _, _}) -> [];
nodes_of({mend, _, _}) -> [];
nodes_of({other, _}) -> [];
nodes_of(heal) -> [];
nodes_of(Deed) -> element(2, Deed).

is_busy(Nodes, #state{watches = Watches}) ->
    lists:any(
        fun
            ({Doing, Node, _}) when Doing =:= start; Doing =:= leave -> lists:member(Node, Nodes);
            (_) -> false
        end,
        maps:values(Watches)
    ).

do({kill_process, Nodes, What, Which}, Place, #state{job = #{deadline_ms := Deadline}} = State) ->
    Order = #{what => What, which => Which, deadline_ms => Deadline, claim => claim(State)},
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(kill_process, [Node], What, Place, S0), S0),
            look({process, Id}, fun() -> call(Node, {atoll_chaos_kill, run, [Order]}, Deadline + ?CALL_MS, S) end, S)
        end,
        State,
        Nodes
    );
do({group, Nodes, Operation}, Place, State) ->
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(group, [Node], Operation, Place, S0), S0),
            look({group, Id}, fun() -> call(Node, request(Operation), ?GROUP_MS, S) end, S)
        end,
        State#state{has_groups = true},
        Nodes
    );
do({kill, Nodes} = Deed, Place, #state{left = Left} = State0) ->
    {Outcomes, State1} = acts(Deed, State0),
    State = closed(is_of(Nodes), State1),
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(judged({kill, Node}, Outcomes, event(kill, [Node], none, Place, S0)), S0),
            opened({down, Node}, Id, S)
        end,
        State,
        %% Who has left stops after a while, and that is the end of leaving.
        [Node || Node <- Nodes, maps:get(Node, Left, stayed) =/= Place]
    );
do({leave, Nodes}, Place, State) ->
    lists:foldl(
        fun(Node, #state{left = Left} = S0) ->
            {Id, S} = add(event(leave, [Node], none, Place, S0), S0#state{left = Left#{Node => Place}}),
            look({leave, Node, Id}, fun() -> call(Node, {atoll, leave, []}, ?LEAVE_MS, S) end, S)
        end,
        State,
        Nodes
    );
do({broadcast, Nodes, Count, Every}, Place, #state{job = #{backend := Backend}} = State) ->
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(broadcast, [Node], {Count, Every}, Place, S0), S0),
            {Pid, Ref} = atoll_chaos_sender:start(Backend, Node, Count, Every),
            S#state{watches = (S#state.watches)#{Ref => {broadcast, Id, Pid}}}
        end,
        State,
        Nodes
    );
do({other, {expect, Expectation}}, Place, #state{overlay = Overlay0, damage = Damage, expectations = Count} = State) ->
    Awake = atoll_chaos_damage:awake(Damage),
    {_, Overlay} = atoll_chaos_overlay:expect(Expectation, Place, now_ms(State), Awake, Overlay0),
    State#state{overlay = Overlay, expectations = Count + 1};
do({restart, Nodes, _} = Deed, Place, State0) ->
    Since = now_ms(State0),
    {Outcomes, State1} = acts(Deed, State0),
    State = closed(is_of(Nodes), State1),
    lists:foldl(
        fun(Node, S0) ->
            Event = judged({kill, Node}, Outcomes, event(restart, [Node], none, Place, S0)),
            {Id, S} = add(Event#{at_ms := Since}, S0),
            start_node(Node, opened({down, Node}, Id, Since, S))
        end,
        State,
        Nodes
    );
do({start, Nodes, _} = Deed, Place, State0) ->
    {_, State} = acts(Deed, State0),
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(event(start, [Node], none, Place, S0), S0),
            start_node(Node, opened({down, Node}, Id, S))
        end,
        State,
        Nodes
    );
do({pause, _} = Deed, Place, State0) ->
    {Outcomes, State} = acts(Deed, State0),
    lists:foldl(
        fun(Node, S0) ->
            {Id, S} = add(judged({pause, Node}, Outcomes, event(pause, [Node], none, Place, S0)), S0),
            opened({paused, Node}, Id, S)
        end,
        State,
        [Node || {{pause, Node}, _} <- Outcomes]
    );
do({resume, _} = Deed, _Place, State0) ->
    {_, State} = resumed(Deed, State0),
    State;
do({slow, Nodes, 0} = Deed, _Place, State0) ->
    {_, State} = acts(Deed, State0),
    lists:foldl(fun(Node, S) -> closed(fun(Key) -> Key =:= {slow, Node} end, S) end, State, Nodes);
do({slow, Nodes, Ms} = Deed, Place, State0) ->
    {Outcomes, State} = acts(Deed, State0),
    lists:foldl(
        fun(Node, S0) ->
            Event = event(slow, [Node], Ms, Place, S0),
            case lists:keymember({slow, Node, Ms}, 1, Outcomes) of
                true ->
                    {Id, S} = add(judged({slow, Node, Ms}, Outcomes, Event), S0),
                    opened({slow, Node}, Id, S);
                %% What is stopped for good cannot be slow.
                false ->
                    {_, S} = add(Event#{outcome := passed_over, why => paused}, S0),
                    S
            end
        end,
        State,
        Nodes
    );
do({partition, Parts} = Deed, Place, State0) ->
    {Outcomes, State1} = acts(Deed, State0),
    State2 = closed(fun(Key) -> Key =:= partition end, State1),
    {Id, State} = add(all_judged(Outcomes, event(partition, lists:append(Parts), Parts, Place, State2)), State2),
    opened(partition, Id, State);
do({cut, From, To} = Deed, Place, State0) ->
    {Outcomes, State1} = acts(Deed, State0),
    {Id, State} = add(all_judged(Outcomes, event(cut, From, To, Place, State1)), State1),
    opened({cut, From, To}, Id, State);
do({mend, From, To} = Deed, _Place, State0) ->
    {_, State} = acts(Deed, State0),
    first_closed({cut, From, To}, State);
do(heal, Place, State0) ->
    {Outcomes, State1} = resumed(heal, State0),
    {_, State} = add(all_judged(Outcomes, event(heal, [], none, Place, State1)), State1),
    closed(fun is_healed/1, State);
do(_Other, _Place, State) ->
    State.

%% What a node that ends has no more of.
is_of(Nodes) ->
    fun
        ({What, Node}) when What =:= paused; What =:= slow -> lists:member(Node, Nodes);
        (_) -> false
    end.

is_healed(partition) -> true;
is_healed({cut, _, _}) -> true;
is_healed({slow, _}) -> true;
is_healed(_) -> false.

request({new, Name, Nodes}) -> {s_group, new_s_group, [Name, Nodes]};
request({add, Name, Nodes}) -> {s_group, add_nodes, [Name, Nodes]};
request({remove, Name, Nodes}) -> {s_group, remove_nodes, [Name, Nodes]};
request({delete, Name}) -> {s_group, delete_s_group, [Name]}.

claim(#state{run = Run, job = #{backend := Backend}, keeper = Keeper}) -> atoll_chaos_keeper:claim(Run, Keeper, Backend).

owner(State) ->
    {_, Owner} = claim(State),
    Owner.

call(Node, MFA, Ms, #state{job = #{backend := {Module, B}}}) -> Module:call(B, Node, MFA, Ms).

acts(Deed, #state{damage = Damage0} = State) ->
    did(atoll_chaos_damage:take(Deed, Damage0), State).

did({Acts, Damage}, #state{keeper = Keeper, overlay = Overlay} = State) ->
    Us = os:system_time(microsecond),
    try atoll_chaos_keeper:do(Keeper, Acts, Damage) of
        Outcomes ->
            Noted =
                case Overlay of
                    none -> none;
                    _ -> atoll_chaos_overlay:did(Us, [Act || {Act, ok} <- Outcomes], Overlay)
                end,
            {Outcomes, State#state{damage = Damage, overlay = Noted}}
    catch
        exit:{_, {gen_server, call, _}} -> throw({keeper_lost, Damage})
    end.

%% Acts of which some let nodes go on: each of these is asked at once whether it is
%% there, before the next act, for its time counts from its own.
resumed(Deed, #state{damage = Damage0} = State0) ->
    {Acts, Damage} = atoll_chaos_damage:take(Deed, Damage0),
    lists:foldl(
        fun(Act, {Outcomes, S0}) ->
            Since = erlang:monotonic_time(microsecond),
            {Outcome, S} = did({[Act], Damage}, S0),
            {Outcomes ++ Outcome, gone_on(Act, Since, S)}
        end,
        {[], State0#state{damage = Damage}},
        Acts
    ).

noted(_Us, _Nodes, _Did, #state{overlay = none} = State) -> State;
noted(Us, Nodes, Did, #state{overlay = Overlay} = State) ->
    State#state{overlay = atoll_chaos_overlay:note(Us, Nodes, Did, Overlay)}.

%% A process of its own does what takes time; its end tells.
look(Watch, Fun, State) ->
    look(Watch, Fun, erlang:monotonic_time(microsecond), State).

look(Watch, Fun, Since, #state{watches = Watches} = State) ->
    {_, Ref} = spawn_monitor(fun() -> exit({?MODULE, timed(Fun, Since)}) end),
    State#state{watches = Watches#{Ref => Watch}}.

timed(Fun, Since) ->
    Result = Fun(),
    {(erlang:monotonic_time(microsecond) - Since) / 1000, Result}.

start_node(Node, #state{job = #{backend := {Module, B}}, left = Left} = State) ->
    Us = os:system_time(microsecond),
    Begin = fun() ->
        case Module:start(B, Node) of
            ok -> begun(Node, State);
            {error, _} = Error -> Error
        end
    end,
    look({start, Node, Us}, Begin, State#state{left = maps:remove(Node, Left)}).

begun(_Node, #state{overlay = none}) ->
    ok;
begun(Node, #state{job = #{backend := Backend, told := Told}} = State) ->
    atoll_chaos_overlay:attach(Backend, Node, owner(State), maps:get(Node, Told, [])).

%% A node that goes on is there again when it answers.
gone_on({resume, Node}, Since, #state{open = Open, job = #{deadline_ms := Deadline}} = State0) ->
    case lists:keytake({paused, Node}, 1, Open) of
        {value, {_, Id, _}, Left} ->
            State = amend(Id, #{ended_ms => now_ms(State0)}, State0#state{open = Left}),
            look({answer, Id}, fun() -> call(Node, {erlang, node, []}, Deadline, State) end, Since, State);
        false ->
            State0
    end;
gone_on(_Act, _Since, State) ->
    State.

%% What became of it

watched({process, Id}, {_, {ok, {killed, Path, Recovered}}}, State) ->
    amend(Id, #{target => Path, recovered_ms => Recovered}, State);
watched({process, Id}, {_, {ok, {passed_over, Why}}}, State) ->
    amend(Id, #{outcome => passed_over, why => Why}, State);
watched({group, Id}, {Ms, {ok, Answer}}, State) ->
    amend(Id, #{answer => Answer, took_ms => round(Ms)}, State);
watched({answer, Id}, {Ms, {ok, _}}, State) ->
    amend(Id, #{recovered_ms => Ms}, State);
watched({answer, Id}, _, State) ->
    amend(Id, #{recovered_ms => never}, State);
watched({start, Node, Us}, {_, ok}, #state{damage = Damage} = State0) ->
    {_, State} = did(atoll_chaos_damage:started(Node, Damage), noted(Us, [Node], started, State0)),
    Now = now_ms(State),
    {Mine, Others} = lists:partition(fun({Key, _, _}) -> Key =:= {down, Node} end, State#state.open),
    lists:foldl(
        fun({_, Id, Since}, S) -> amend(Id, #{recovered_ms => Now - Since}, S) end,
        State#state{open = Others},
        Mine
    );
watched({start, Node, _}, Failed, #state{open = Open} = State) ->
    %% Who started it is the youngest.
    case lists:keyfind({down, Node}, 1, Open) of
        {_, Id, _} -> amend(Id, #{outcome => failed, why => why(Failed)}, State);
        false -> State
    end;
watched({leave, _, _}, {_, {ok, ok}}, State) ->
    State;
watched({leave, _, Id}, Failed, State) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, State);
watched({broadcast, _, _}, {_, ok}, State) ->
    State;
watched({broadcast, Id, _}, Failed, State) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, State);
watched({_, Id}, Failed, State) ->
    amend(Id, #{outcome => failed, why => why(Failed)}, State).

why({_, {ok, {error, Reason}}}) -> Reason;
why({_, {error, Reason}}) -> Reason;
why({error, Reason}) -> Reason;
why(Other) -> Other.

%% The log

event(Fault, Nodes, Target, Place, State) ->
    Event = #{
        at_ms => now_ms(State),
        fault => Fault,
        nodes => Nodes,
        target => Target,
        outcome => done,
        recovered_ms => none
    },
    case Place of
        none -> Event;
        _ -> Event#{place => Place}
    end.

judged(Act, Outcomes, Event) ->
    case lists:keyfind(Act, 1, Outcomes) of
        {Act, {error, Why}} -> Event#{outcome := failed, why => Why};
        _ -> Event
    end.

all_judged(Outcomes, Event) ->
    case [Why || {_, {error, Why}} <- Outcomes] of
        [] -> Event;
        [Why | _] -> Event#{outcome := failed, why => Why}
    end.

add(Event, #state{log = Log0, job = #{on_event := OnEvent}} = State) ->
    _ = OnEvent(Event),
    {Id, Log} = atoll_chaos_log:add(Event, Log0),
    {Id, State#state{log = Log}}.

amend(Id, More, #state{log = Log} = State) ->
    State#state{log = atoll_chaos_log:amend(Id, More, Log)}.

opened(Key, Id, State) ->
    opened(Key, Id, now_ms(State), State).

opened(Key, Id, Since, #state{open = Open} = State) ->
    State#state{open = [{Key, Id, Since} | Open]}.

closed(Is, #state{open = Open} = State) ->
    {Closed, Others} = lists:partition(fun({Key, _, _}) -> Is(Key) end, Open),
    Now = now_ms(State),
    lists:foldl(fun({_, Id, _}, S) -> amend(Id, #{ended_ms => Now}, S) end, State#state{open = Others}, Closed).

%% Of equal ones, such as cuts that overlap, the one that is open for longest.
first_closed(Key, #state{open = Open} = State) ->
    case lists:keytake(Key, 1, lists:reverse(Open)) of
        {value, {_, Id, _}, Left} ->
            amend(Id, #{ended_ms => now_ms(State)}, State#state{open = lists:reverse(Left)});
        false ->
            State
    end.
