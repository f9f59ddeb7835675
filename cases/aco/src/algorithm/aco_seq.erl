%% SPDX-License-Identifier: Apache-2.0
%% @doc ACO in one process, with no messages: what all distributed modes must
%% agree with.
-module(aco_seq).

-export([run/1]).

-export_type([spec/0, result/0]).

-type spec() :: #{
    problem := aco_problem:problem(),
    options := aco_options:options(),
    colonies := pos_integer(),
    %% stop after the round in which this cost is reached
    until => aco_schedule:cost()
}.

-type result() :: #{
    best := aco_schedule:cost(),
    order := aco_schedule:order(),
    %% whose it is
    colony := aco_colony:id(),
    %% how many were run
    rounds := pos_integer(),
    %% the best after each, the first round first
    course := [{aco_schedule:solution(), aco_colony:id()}, ...]
}.

%% @doc Runs it in the calling process.
-spec run(spec()) -> result().
run(#{problem := Problem, options := Options, colonies := Count} = Spec) ->
    Colonies = [aco_colony:new(Problem, Options, Id) || Id <- lists:seq(1, Count)],
    #{global_iterations := Rounds} = Options,
    rounds(Rounds, Colonies, maps:get(until, Spec, -1), []).

rounds(Left, Colonies, Until, Course) ->
    Ran = [aco_colony:run_round(Colony) || Colony <- Colonies],
    [First | Offers] = [aco_colony:offer(Colony) || Colony <- Ran],
    {Cost, Owner, Order} = lists:foldl(fun aco_colony:better/2, First, Offers),
    Best = {Cost, Order},
    Done = [{Best, Owner} | Course],
    case Left > 1 andalso Cost > Until of
        true ->
            rounds(Left - 1, [aco_colony:global(Best, Owner, Colony) || Colony <- Ran], Until, Done);
        false ->
            #{best => Cost, order => Order, colony => Owner, rounds => length(Done), course => lists:reverse(Done)}
    end.
