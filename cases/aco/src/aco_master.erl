%% @doc The master of a run, on the node that asked for it.
%%
%% It has the first host, and with it the whole tree; builds it, which is round 0; asks for
%% one round after the other, each with the best of the one before; and has
%% everything taken down before it answers, by its own exit reason: nothing reaches a
%% caller that is not of the run it has started.
-module(aco_master).

-export([run/1]).
-export([init/2]).

-export_type([outcome/0, ended/0]).

-type ended() :: #{
    best := aco_colony:offer(),
    rounds := pos_integer(),
    %% until the last process was there
    build_ms := non_neg_integer(),
    %% from then to the last round's answer
    wall_ms := non_neg_integer(),
    report := aco_report:report()
}.

-type outcome() :: {ok, ended()} | {error, aco_failure:reason()}.

-record(master, {
    run :: aco_run:run(),
    caller :: reference(),
    host :: pid(),
    gather :: aco_gather:gather(),
    round = 0 :: aco_branch:round_number(),
    %% monotonic, in milliseconds: of the run, of round 1, of the present round
    started :: integer(),
    began = 0 :: integer(),
    asked = 0 :: integer()
}).

%% Within which a run is taken down; nodes that are silent then are given up, and end by
%% themselves.
-define(TAKE_DOWN_MS, 20_000).
%% Within which all processes are to be there: `global' can take minutes for many nodes, and
%% there are states that it does not get out of.
-define(BUILD_MS, 300_000).

%% @doc Runs it. If the caller dies in the meantime, the run is taken down.
-spec run(aco_run:run()) -> outcome().
run(Run) ->
    {Master, Ref} = spawn_monitor(?MODULE, init, [self(), Run]),
    receive
        {'DOWN', Ref, process, Master, {outcome, Outcome}} -> Outcome;
        {'DOWN', Ref, process, Master, {shutdown, Reason}} -> {error, Reason};
        {'DOWN', Ref, process, Master, Why} -> {error, {master_failed, node(), Why}}
    end.

%% @private
-spec init(pid(), aco_run:run()) -> no_return().
init(Caller, #{tree := Tree, reliable := Reliable} = Run) ->
    Ref = monitor(process, Caller),
    %% Linked: neither outlives the other's failure.
    Host = aco_host:start_link(maps:without([tree, watcher], Run)),
    %% Its own: that of the host goes with the host.
    Keep = aco_keep:new(),
    _ = erlang:send_after(?BUILD_MS, self(), build_deadline),
    Started = now_ms(),
    Master = #master{run = Run, caller = Ref, host = Host, started = Started,
                     gather = aco_gather:new(Host, Keep, Tree, Reliable)},
    loop(ask(none, Master)).

loop(Master) ->
    receive
        Message -> loop(handle(Message, Master))
    end.

handle({next, Told}, #master{round = Round} = Master) ->
    ask(Told, Master#master{round = Round + 1});
handle(build_deadline, #master{round = 0} = Master) ->
    finish({error, {not_built, ?BUILD_MS div 1000}}, Master);
handle(build_deadline, Master) ->
    Master;
handle({failed, Reason}, Master) ->
    finish({error, Reason}, Master);
handle({'DOWN', Caller, process, _, _}, #master{caller = Caller} = Master) ->
    finish({error, caller_gone}, Master);
handle(Message, #master{gather = Gather} = Master) ->
    outcome(aco_gather:handle(Message, Gather), Master).

ask(Told, #master{round = Round, gather = Gather} = Master) ->
    outcome(aco_gather:ask(Round, Told, Gather), Master#master{asked = now_ms()}).

outcome({none, Gather}, Master) ->
    Master#master{gather = Gather};
outcome({{answer, 0, none}, Gather}, Master) ->
    ask(none, Master#master{gather = Gather, round = 1, began = now_ms()});
outcome({{answer, Round, Best}, Gather}, #master{round = Round} = Master) ->
    round_over(Best, Master#master{gather = Gather});
outcome({{fail, Reason}, _}, Master) ->
    finish({error, Reason}, Master).

round_over({Cost, Owner, Order} = Best, #master{run = Run, round = Round, asked = Asked} = Master) ->
    ok = watch(Round, Cost, Run),
    case is_last(Round, Cost, Run) of
        true ->
            #master{started = Started, began = Began} = Master,
            Times = #{build_ms => Began - Started, wall_ms => now_ms() - Began},
            finish({ok, Times#{best => Best, rounds => Round}}, Master);
        false ->
            #{pace_ms := Pace} = Run,
            _ = erlang:send_after(max(0, Asked + Pace - now_ms()), self(), {next, {{Cost, Order}, Owner}}),
            Master
    end.

is_last(Round, Cost, #{options := #{global_iterations := Rounds}, until_optimum := Until, optimum := Optimum}) ->
    Round >= Rounds orelse (Until andalso Cost =< Optimum).

watch(_, _, #{watcher := none}) ->
    ok;
watch(Round, Cost, #{watcher := Watcher}) ->
    Watcher ! {aco, best, Round, Cost},
    ok.

%% The outcome is known, and all is taken down.
-spec finish({ok, map()} | {error, aco_failure:reason()}, #master{}) -> no_return().
finish(Outcome, #master{host = Host}) ->
    Host ! {stop, self(), ?TAKE_DOWN_MS},
    receive
        {stopped, Host, Report} ->
            exit({outcome, case Outcome of
                               {ok, Ended} -> {ok, Ended#{report => Report}};
                               {error, Reason} -> {error, Reason}
                           end})
    after ?TAKE_DOWN_MS + 5_000 ->
        %% It ends with this process.
        exit({outcome, {error, {host_failed, node(), silent}}})
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
