%% @doc ACO's schedules against the best ones that are known: OR-Library's 125 problems of 40
%% jobs; where these are not at hand, small ones that are solved exactly.
-module(atoll_experiment_optimum).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiments_data, [number/1]).

%% Each problem may take so long; and all together, so that there is a result in the end.
-define(EACH_MS, 10000).
-define(ALL_MS, 50000).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => optimum,
        title => "Ant Colony Optimisation: how good the schedules are",
        question => "How many problems does ACO solve to the best cost that is known, in ten seconds each?",
        minutes => 1,
        cannot => "nothing here: the result hangs on the seed alone, and not on the machine, but for the ten seconds."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) ->
    [made(2)];
steps(#{orlib := none}) ->
    [made(60)];
steps(#{orlib := Dir}) ->
    [#{
        key => solved,
        says => "ACO (aco_seq: one colony of 8 ants, local search o12, seed 1) on the problems of OR-Library's wt40, one on each processor",
        run => {job, fun() -> orlib(Dir) end}
    }].

made(Count) ->
    #{
        key => solved,
        says => io_lib:format("ACO (aco_seq: one colony of 8 ants, local search o12, seed 1) on ~b made problems of 12 jobs, solved exactly too", [Count]),
        run => {job, fun() -> {ok, solved(<<"made">>, [exact(Seed) || Seed <- lists:seq(1, Count)])} end}
    }.

exact(Seed) ->
    Problem = aco_sample:problem(12, Seed),
    {Problem, atoll_experiments_aco:exact(Problem)}.

orlib(Dir) ->
    case {file:read_file(filename:join(Dir, "wt40.txt")), file:read_file(filename:join(Dir, "wtopt40.txt"))} of
        {{ok, Text}, {ok, Listed}} ->
            {ok, Optima} = aco_problem:parse_optima(Listed),
            Each = lists:zip(lists:seq(1, length(Optima)), Optima),
            {ok, solved(<<"wt40">>, [{problem(Text, N), Optimum} || {N, Optimum} <- Each])};
        {{error, Reason}, _} ->
            {error, ["wt40.txt: ", file:format_error(Reason)]};
        {_, {error, Reason}} ->
            {error, ["wtopt40.txt: ", file:format_error(Reason)]}
    end.

problem(Text, N) ->
    {ok, Problem} = aco_problem:parse(Text, #{jobs => 40, problem => N}),
    Problem.

%% Dealt out to the processors; who has no time left is not tried.
solved(Set, Problems) ->
    Until = erlang:monotonic_time(millisecond) + ?ALL_MS,
    Hands = erlang:system_info(schedulers_online),
    Numbered = lists:zip(lists:seq(1, length(Problems)), Problems),
    Dealt = [[P || {N, P} <- Numbered, N rem Hands =:= Hand] || Hand <- lists:seq(0, Hands - 1)],
    Tried = lists:append(atoll_experiments_aco:parallel([fun() -> tried(Hand, Until) end || Hand <- Dealt])),
    #{set => Set, problems => length(Problems), tried => Tried}.

tried([{Problem, Optimum} | Rest], Until) ->
    case Until - erlang:monotonic_time(millisecond) of
        Left when Left > 0 -> [one(Problem, Optimum, min(Left, ?EACH_MS)) | tried(Rest, Until)];
        _ -> []
    end;
tried([], _Until) ->
    [].

%% The best so far is kept by whoever waits, round by round.
one(Problem, Optimum, Ms) ->
    {ok, Options} = aco_options:new(#{local_search => o12, ants => 8, local_iterations => 1, global_iterations => 1}),
    Begun = erlang:monotonic_time(millisecond),
    Self = self(),
    Pid = spawn_link(fun() -> rounds(aco_colony:new(Problem, Options, 1), Optimum, Self) end),
    Best = best(Pid, Begun + Ms, none),
    #{optimum => Optimum, best => Best, ms => erlang:monotonic_time(millisecond) - Begun}.

rounds(Colony0, Optimum, Told) ->
    Colony = aco_colony:run_round(Colony0),
    {Cost, _Order} = aco_colony:best(Colony),
    Told ! {self(), Cost, Cost =< Optimum},
    Cost =< Optimum orelse rounds(Colony, Optimum, Told).

best(Pid, Until, Best) ->
    receive
        {Pid, Cost, true} -> Cost;
        {Pid, Cost, false} -> best(Pid, Until, Cost)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = unlink(Pid),
        true = exit(Pid, kill),
        Best
    end.

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(#{solved := {ok, #{<<"set">> := Set, <<"problems">> := Count, <<"tried">> := Tried}}}) ->
    Known = [T || #{<<"best">> := Best} = T <- Tried, is_number(Best)],
    Reached = [T || #{<<"best">> := Best, <<"optimum">> := Optimum} = T <- Known, Best =:= Optimum],
    Below = [T || #{<<"best">> := Best, <<"optimum">> := Optimum} = T <- Known, Best < Optimum],
    Gaps = [(Best - Optimum) / max(1, Optimum) || #{<<"best">> := Best, <<"optimum">> := Optimum} <- Known, Best > Optimum],
    Times = [Ms || #{<<"ms">> := Ms} <- Reached],
    #{
        tables => [
            #{
                caption => "",
                head => ["problems", "tried", "best cost reached", "below it", "median time", "longest time", "largest gap of the others"],
                rows => [[
                    [Set, ", ", number(Count)], number(length(Tried)), number(length(Reached)), number(length(Below)),
                    ms(Times, fun atoll_bench_stats:median/1), ms(Times, fun lists:max/1),
                    case Gaps of [] -> "–"; _ -> atoll_bench_report_text:percent(lists:max(Gaps)) end
                ]]
            }
        ],
        claims => [
            atoll_experiment:claim("the authors' TL-ACO report", "ACO finds the best cost of almost all of OR-Library's problems of 40 jobs in a few seconds.",
                almost_all(Set, Count, Tried, Reached, Below),
                io_lib:format("~b of ~b reached the best cost that is known, ~b of ~b tried in ten seconds each; ~b came below it.", [
                    length(Reached), Count, length(Reached), length(Tried), length(Below)
                ]),
                case Set of
                    <<"wt40">> -> "";
                    _ -> "These are small problems of our own: set ATOLL_ORLIB to the folder of OR-Library's files for the real ones."
                end)
        ]
    };
verdict(_) ->
    #{
        tables => [],
        claims => [atoll_experiment:claim("the authors' TL-ACO report", "ACO finds the best cost of almost all problems of 40 jobs.", unknown, none, "")]
    }.

%% Four of five, as many as are asked of us; and a cost below the best would be a fault of ours.
almost_all(<<"wt40">>, Count, _Tried, Reached, Below) -> Below =:= [] andalso length(Reached) >= 0.8 * Count;
almost_all(_, _Count, _Tried, _Reached, [_ | _]) -> false;
almost_all(_, _Count, _Tried, _Reached, []) -> unknown.

ms([], _) -> "–";
ms(Times, Of) -> atoll_bench_report_text:time(Of(Times) * 1000000).
