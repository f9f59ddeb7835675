%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench on a node: its load, from start/1 to stop/0. Nobody coordinates the operations; what
%% calls here, over the control connection of a cluster, only begins, looks and ends.
%%
%% The process keeps what the workers share, and looks at what the node has sent and the
%% processor time that it has used when the window begins and when it ends.
-module(debench_peer).
-behaviour(gen_server).

-export([start/1, look/0, finish/1, stop/0, run/2, gone/2]).
-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([load/0]).

-type load() :: #{
    system := debench_system:system(),
    %% All nodes of the cluster.
    nodes := [node(), ...],
    transitive := boolean(),
    weighted := [debench_config:weighted(), ...],
    workers := pos_integer(),
    %% Operations that begin on this node in a second, from the start until so many
    %% milliseconds later, and since when they are measured.
    rate := atoll_bench_pace:rate(),
    from_ms := non_neg_integer(),
    until_ms := pos_integer(),
    packet_size := pos_integer(),
    delay_us := non_neg_integer(),
    initial_global_size := non_neg_integer(),
    initial_active_process := non_neg_integer(),
    seed := integer()
}.

%% So that the workers are there when it begins.
-define(AHEAD_MS, 20).
-define(CALL_MS, 30000).
%% Nobody tells of a name that has gone, so it is looked again after a while.
-define(GONE_MS, 10).

%% @doc Begins a load on this node.
-spec start(load()) -> ok | {error, Reason :: term()}.
start(Load) ->
    %% A supervisor that cannot start takes its parent, this call's process, with it.
    Trapped = process_flag(trap_exit, true),
    Started = debench_sup:start_link(Load),
    _ = process_flag(trap_exit, Trapped),
    case Started of
        {ok, Sup} ->
            ok = debench_sup:start_workers(gen_server:call(?MODULE, begin_load, ?CALL_MS)),
            true = unlink(Sup),
            ok;
        {error, _} = Error ->
            Error
    end.

%% @doc What the workers have done so far.
-spec look() -> atoll_bench_window:look().
look() -> gen_server:call(?MODULE, look, ?CALL_MS).

%% @doc Waits until the load is over and all workers have ended, at most so long after its
%% end.
-spec finish(GraceMs :: non_neg_integer()) -> atoll_bench_window:look().
finish(GraceMs) ->
    #{left_ms := Left} = gen_server:call(?MODULE, left, ?CALL_MS),
    Timer = erlang:start_timer(max(0, Left) + GraceMs, self(), finish),
    ok = ended(Timer),
    _ = erlang:cancel_timer(Timer),
    gen_server:call(?MODULE, final, ?CALL_MS).

%% One that was killed has another in its place.
ended(Timer) ->
    case [Pid || {_, Pid, _, _} <- supervisor:which_children(debench_workers), Pid =/= undefined] of
        [] ->
            ok;
        [Pid | _] when is_pid(Pid) ->
            Ref = monitor(process, Pid),
            receive
                {'DOWN', Ref, process, Pid, _} ->
                    ended(Timer);
                {timeout, Timer, finish} ->
                    true = demonitor(Ref, [flush]),
                    ok
            end;
        [restarting | _] ->
            ended(Timer)
    end.

%% @doc Ends all of it, whatever is under way.
-spec stop() -> ok.
stop() ->
    case whereis(debench_sup) of
        undefined -> ok;
        Sup -> gen_server:stop(Sup, shutdown, ?CALL_MS)
    end.

%% @doc A load from its start to its stop.
-spec run(load(), GraceMs :: non_neg_integer()) -> {ok, atoll_bench_window:look()} | {error, Reason :: term()}.
run(Load, GraceMs) ->
    case start(Load) of
        ok ->
            Look = finish(GraceMs),
            ok = stop(),
            {ok, Look};
        {error, _} = Error ->
            Error
    end.

%% @doc Waits until this node sees no name of the benchmark any more.
-spec gone(debench_system:system(), Ms :: non_neg_integer()) -> ok | {left, pos_integer()}.
gone(System, Ms) ->
    going(debench_system:here(System), erlang:monotonic_time(millisecond) + Ms).

going(Here, Deadline) ->
    case [Name || Name <- debench_system:names(Here), element(1, Name) =:= debench] of
        [] ->
            ok;
        Left ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive
                    after ?GONE_MS -> going(Here, Deadline)
                    end;
                false ->
                    {left, length(Left)}
            end
    end.

%% @doc Starts the process that the workers' common things are kept by.
-spec start_link(load()) -> {ok, pid()}.
start_link(Load) ->
    {ok, _} = gen_server:start_link({local, ?MODULE}, ?MODULE, Load, []).

-record(peer, {
    load :: load(),
    tally :: debench_tally:tally(),
    starts :: counters:counters_ref(),
    %% When the load has begun: in nanoseconds, and how it goes on.
    start_ns = 0 :: integer(),
    pace = none :: atoll_bench_pace:pace() | none,
    %% What was sent, and the processor time, when the window began; and within it.
    before = none :: {number(), non_neg_integer()} | none,
    used = #{} :: #{sent => number(), cpu_us => non_neg_integer()}
}).

%% @private
-spec init(load()) -> {ok, #peer{}}.
init(#{weighted := Weighted, workers := Workers} = Load) ->
    Labels = [Label || {Label, _} <- debench_choice:labels(Weighted)],
    Tally = debench_tally:new(lists:usort(Labels)),
    {ok, #peer{load = Load, tally = Tally, starts = counters:new(Workers, [atomics])}}.

%% @private
-spec handle_call(begin_load | look | left | final, gen_server:from(), #peer{}) -> {reply, term(), #peer{}}.
handle_call(begin_load, _From, #peer{load = Load, pace = none} = State) ->
    #{system := System, nodes := Nodes, transitive := Transitive, packet_size := Size} = Load,
    #{from_ms := From, until_ms := Until} = Load,
    StartMs = erlang:monotonic_time(millisecond) + ?AHEAD_MS,
    Pace = atoll_bench_pace:new((maps:with([rate, from_ms, until_ms], Load))#{start_ns => StartMs * 1000000}),
    _ = erlang:start_timer(StartMs + From, self(), from, [{abs, true}]),
    _ = erlang:start_timer(StartMs + Until, self(), until, [{abs, true}]),
    Here = debench_system:here(System),
    Shared = (maps:with([weighted, delay_us, seed], Load))#{
        partners => debench_system:partners(Here, Nodes, Transitive),
        here => Here,
        payload => rand:bytes(Size),
        pace => Pace,
        tally => State#peer.tally,
        starts => State#peer.starts
    },
    {reply, Shared, State#peer{start_ns = StartMs * 1000000, pace = Pace}};
handle_call(look, _From, State) ->
    {reply, looked(State), State};
handle_call(left, _From, #peer{load = #{until_ms := Until}} = State) ->
    {reply, #{left_ms => Until - elapsed(State)}, State};
%% All workers may have ended a little before the time of the load is over.
handle_call(final, From, #peer{used = Used} = State) when map_size(Used) =:= 0 ->
    receive
        {timeout, _, from} -> handle_call(final, From, began(State));
        {timeout, _, until} -> handle_call(final, From, over(State))
    end;
handle_call(final, _From, State) ->
    {reply, looked(State), State}.

%% @private
-spec handle_cast(term(), #peer{}) -> no_return().
handle_cast(Message, _State) -> error({unknown_cast, Message}).

%% @private
-spec handle_info({timeout, reference(), from | until}, #peer{}) -> {noreply, #peer{}}.
handle_info({timeout, _, from}, State) -> {noreply, began(State)};
handle_info({timeout, _, until}, State) -> {noreply, over(State)}.

began(State) -> State#peer{before = used()}.

over(#peer{before = {Sent0, Cpu0}} = State) ->
    {Sent, Cpu} = used(),
    State#peer{used = #{sent => Sent - Sent0, cpu_us => Cpu - Cpu0}}.

used() -> {atoll_bench_machine:sent(), atoll_bench_machine:own_cpu_us()}.

elapsed(#peer{start_ns = Start}) ->
    max(0, (erlang:monotonic_time(nanosecond) - Start) div 1000000).

looked(#peer{pace = Pace, tally = Tally, starts = Starts, used = Used} = State) ->
    #peer{load = #{workers := Workers}} = State,
    Elapsed = elapsed(State),
    Started = lists:sum([counters:get(Starts, N) || N <- lists:seq(1, Workers)]),
    maps:merge(
        (debench_tally:look(Tally))#{
            elapsed_ms => Elapsed,
            restarts => max(0, Started - Workers),
            offered => atoll_bench_pace:offered(Pace, Elapsed)
        },
        Used
    ).
