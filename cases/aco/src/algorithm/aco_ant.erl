%% SPDX-License-Identifier: Apache-2.0
%% @doc An ant: it makes one order of the jobs, place by place, and may search
%% near it. What it needs is its errand, and what it finds hangs on that alone, not on
%% where and when it runs: its draws are made of which ant it is.
%%
%% At each place a job that is not done yet has the weight
%% pheromone^alpha * worth^beta. With the chance `q0' the ant takes the
%% heaviest, the first of equal ones; otherwise it draws one by weight.
-module(aco_ant).

-export([run/1]).

-export_type([errand/0, key/0]).

-type key() :: {
    Seed :: integer(),
    Colony :: aco_colony:id(),
    Round :: pos_integer(),
    Generation :: pos_integer(),
    Ant :: pos_integer()
}.

-type errand() :: #{
    problem := aco_problem:problem(),
    options := aco_options:options(),
    pheromone := aco_pheromone:pheromone(),
    %% which ant it is
    key := key()
}.

%% What does not change from place to place.
-record(way, {
    pheromone :: aco_pheromone:pheromone(),
    heuristic :: aco_heuristic:rule(),
    alpha :: float(),
    beta :: float(),
    q0 :: float()
}).

%% @doc Does the errand.
-spec run(errand()) -> aco_schedule:solution().
run(#{problem := Problem, options := Options, pheromone := Pheromone, key := Key}) ->
    #{local_search := Search, heuristic := Heuristic, alpha := Alpha, beta := Beta, q0 := Q0} = Options,
    Way = #way{pheromone = Pheromone, heuristic = Heuristic, alpha = Alpha, beta = Beta, q0 = Q0},
    Jobs = aco_problem:jobs(Problem),
    Left = lists:sum([Duration || {_, Duration, _, _} <- Jobs]),
    Order = walk(1, 0, Left, Jobs, draws(Key), Way),
    aco_search:run(Search, aco_schedule:solution(Order, Problem), Problem).

%% More bits than one hash of 32 has.
draws(Key) ->
    [A, B, C] = [erlang:phash2({Part, Key}, 1 bsl 32) || Part <- [1, 2, 3]],
    rand:seed_s(exsss, {A, B, C}).

%% `Left' is how long the jobs take that are not done yet.
walk(_, _, _, [{Number, _, _, _}], _, _) ->
    [Number];
walk(Place, Time, Left, Jobs, Random, #way{q0 = Q0} = Way) ->
    Row = aco_pheromone:row(Place, Way#way.pheromone),
    Mean = Left / length(Jobs),
    {Draw, Random1} = rand:uniform_s(Random),
    {{Number, Duration, _, _} = Next, Random2} =
        case Draw < Q0 of
            true -> {heaviest(Jobs, Time, Mean, Row, Way), Random1};
            false -> drawn([{weight(Job, Time, Mean, Row, Way), Job} || Job <- Jobs], Random1)
        end,
    [Number | walk(Place + 1, Time + Duration, Left - Duration, lists:delete(Next, Jobs), Random2, Way)].

heaviest([Job | Jobs], Time, Mean, Row, Way) ->
    heaviest(Jobs, Time, Mean, Row, Way, weight(Job, Time, Mean, Row, Way), Job).

heaviest([Job | Jobs], Time, Mean, Row, Way, Most, Heaviest) ->
    case weight(Job, Time, Mean, Row, Way) of
        Weight when Weight > Most -> heaviest(Jobs, Time, Mean, Row, Way, Weight, Job);
        _ -> heaviest(Jobs, Time, Mean, Row, Way, Most, Heaviest)
    end;
heaviest([], _, _, _, _, _, Heaviest) ->
    Heaviest.

drawn(Weighed, Random) ->
    {Draw, Random1} = rand:uniform_s(Random),
    {at(Draw * lists:sum([Weight || {Weight, _} <- Weighed]), Weighed), Random1}.

%% The last one is also there for what rounding leaves.
at(_, [{_, Job}]) -> Job;
at(Mark, [{Weight, Job} | _]) when Mark < Weight -> Job;
at(Mark, [{Weight, _} | Weighed]) -> at(Mark - Weight, Weighed).

-compile({inline, [weight/5, power/2]}).
weight({Number, _, _, _} = Job, Time, Mean, Row, #way{heuristic = Heuristic, alpha = Alpha, beta = Beta}) ->
    power(element(Number, Row), Alpha) * power(aco_heuristic:worth(Heuristic, Job, Time, Mean), Beta).

%% The usual exponents need no logarithm.
power(Base, 1.0) -> Base;
power(Base, 2.0) -> Base * Base;
power(_, Exponent) when Exponent == 0 -> 1.0;
power(Base, Exponent) -> math:pow(Base, Exponent).
