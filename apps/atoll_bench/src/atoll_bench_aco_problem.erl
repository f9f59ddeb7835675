%% @doc Problems for ACO, made here: the same for the same seed.
-module(atoll_bench_aco_problem).

-export([made/2]).

%% @doc A problem of so many jobs: durations to 100, weights to 10, and due dates spread over
%% 60 per cent of the whole time from a tenth of it on, as in OR-Library's
%% (Potts and Van Wassenhove, 1991).
-spec made(Jobs :: pos_integer(), Seed :: integer()) -> aco_problem:problem().
made(Count, Seed) ->
    {Drawn, Rand} = lists:mapfoldl(
        fun(_, R0) ->
            {Duration, R1} = rand:uniform_s(100, R0),
            {Weight, R} = rand:uniform_s(10, R1),
            {{Duration, Weight}, R}
        end,
        rand:seed_s(exsss, Seed),
        lists:seq(1, Count)
    ),
    Whole = lists:sum([Duration || {Duration, _} <- Drawn]),
    {Jobs, _} = lists:mapfoldl(
        fun({Duration, Weight}, R0) ->
            {Due, R} = rand:uniform_s(max(1, Whole * 6 div 10), R0),
            {{Duration, Weight, Whole div 10 + Due}, R}
        end,
        Rand,
        Drawn
    ),
    {ok, Problem} = aco_problem:new(Jobs),
    Problem.
