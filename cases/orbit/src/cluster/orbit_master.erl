%% @doc The process of the master, on the node where the run was started: it does what {@link
%% orbit_ledger} decides. It writes down where it is whenever an epoch begins, so that if it is killed the
%% one in its place begins the next. Whoever has called orbit:run/1 asks that one again, by its name.
-module(orbit_master).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    run :: orbit_host:run(),
    ledger :: orbit_ledger:ledger(),
    %% who waits for the result
    caller = none :: gen_server:from() | none,
    monitor = none :: reference() | none,
    %% when the first vertex was sent, native
    began = none :: integer() | none,
    survey = #{} :: #{node() => term()}
}).

%% Within which an epoch is to be prepared; and the caller is to ask one that was started again.
-define(PREPARE_MS, 30_000).
-define(CALLER_MS, 30_000).

%% @doc Starts it, for a host.
-spec start_link(orbit_host:run()) -> {ok, pid()}.
start_link(#{id := RunId} = Run) ->
    orbit_host:start_named(orbit_host:name(master, RunId), ?MODULE, Run).

%% @private
-spec init(orbit_host:run()) -> {ok, #state{}}.
init(#{id := RunId, plan := Plan, generators := Name, space := Space} = Run) ->
    _ = erlang:send_after(?CALLER_MS, self(), caller_deadline),
    Degree = length(orbit_generators:functions(Name, Space)),
    case ets:lookup(orbit_app, RunId) of
        [] -> {ok, #state{run = Run, ledger = orbit_ledger:new(Plan, Degree)}};
        [{_, Kept, Began}] -> {ok, #state{run = Run, ledger = orbit_ledger:resumed(Kept, Degree), began = Began}}
    end.

%% @private
-spec handle_call(run, gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call(run, {Pid, _} = From, #state{caller = none} = S) ->
    {noreply, event(start, S#state{caller = From, monitor = monitor(process, Pid)})}.

%% @private
-spec handle_cast(orbit_ledger:event() | {result, orbit_part:epoch(), node(), {orbit_tally:tally(), Said :: term()}}, #state{}) -> {noreply, #state{}}.
handle_cast({result, Epoch, Node, {Tally, Said}}, #state{survey = Survey} = S) ->
    {noreply, event({result, Epoch, Node, Tally}, S#state{survey = Survey#{Node => Said}})};
handle_cast(Event, S) ->
    {noreply, event(Event, S)}.

%% @private
-spec handle_info({deadline, orbit_part:epoch()} | caller_deadline | {'DOWN', reference(), process, pid(), term()}, #state{}) -> {noreply, #state{}}.
handle_info({deadline, _} = Deadline, S) ->
    {noreply, event(Deadline, S)};
handle_info(caller_deadline, #state{caller = none} = S) ->
    {noreply, over(S)};
handle_info(caller_deadline, S) ->
    {noreply, S};
handle_info({'DOWN', Ref, process, _, _}, #state{monitor = Ref} = S) ->
    {noreply, over(S)};
%% The submaster of this node, in the epoch for which it was ready.
handle_info({{lost, Epoch}, _, process, _, Why}, S) ->
    {noreply, event(orbit_submaster:loss(node(), Epoch, Why), S)}.

event(Event, #state{ledger = Ledger} = S) ->
    {Effects, Next} = orbit_ledger:handle(Event, Ledger),
    lists:foldl(fun act/2, S#state{ledger = Next}, Effects).

act({prepare, Epoch, Plan}, #state{run = Run} = S) ->
    _ = erlang:send_after(?PREPARE_MS, self(), {deadline, Epoch}),
    Master = self(),
    _ = spawn_link(fun() -> prepared(Master, Run, Epoch, Plan) end),
    kept(S);
act({go, Epoch, Ready, _} = Go, #state{began = Before} = S) ->
    #{submaster := Submaster} = maps:get(node(), Ready),
    _ = monitor(process, Submaster, [{tag, {lost, Epoch}}]),
    told(Go, kept(S#state{began = case Before of none -> erlang:monotonic_time(); _ -> Before end}));
act({collect, _} = Collect, S) ->
    told(Collect, S#state{survey = #{}});
act({done, Tally}, #state{began = Began, ledger = Ledger, survey = Survey} = S) ->
    Took = erlang:convert_time_unit(erlang:monotonic_time() - Began, native, millisecond),
    answer({ok, #{tally => Tally, survey => Survey, wall_ms => Took, epochs => orbit_ledger:epoch(Ledger)}}, S);
act({fail, Reason}, S) ->
    answer({error, Reason}, S).

prepared(Master, Run, Epoch, Plan) ->
    case orbit_host:prepare(node(), Run, Epoch, Plan) of
        {ready, Is} -> gen_server:cast(Master, {ready, Epoch, node(), Is});
        old -> ok;
        {error, Reason} -> gen_server:cast(Master, {failed, Reason})
    end.

kept(#state{run = #{id := RunId}, ledger = Ledger, began = Began} = S) ->
    true = ets:insert(orbit_app, {RunId, orbit_ledger:kept(Ledger), Began}),
    S.

told(Message, #state{run = #{id := RunId}} = S) ->
    ok = orbit_submaster:tell(RunId, {down, node(), Message}),
    S.

answer(Answer, #state{caller = Caller, ledger = Ledger} = S) ->
    gen_server:reply(Caller, {Answer, orbit_ledger:plan(Ledger)}),
    S.

%% Not by this process, which ends with it.
over(#state{run = #{id := RunId}, ledger = Ledger} = S) ->
    _ = spawn(orbit_host, finish, [RunId, orbit_ledger:plan(Ledger)]),
    S.
