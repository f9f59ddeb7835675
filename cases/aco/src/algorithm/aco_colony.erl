%% SPDX-License-Identifier: Apache-2.0
%% @doc A colony: what it has learned and the best it has found. It hands out
%% errands, one for each ant of a generation, and takes back what the ants have
%% found, in the order of the errands; who runs them, and where, is not its
%% business.
%%
%% What a colony finds hangs on the problem, the options, its number, and the
%% best solutions that it was told after each round, and on nothing else: not on
%% which node it is, nor how often it was lost and run again from the beginning.
%%
%% A round is `local_iterations' generations. After each generation the
%% pheromone is updated with the colony's best so far. The best is at first the
%% order by due dates, which the pheromone's first value is made of anyway. After a
%% round the best of all colonies is told to all of them; but for the one that
%% has found it, each updates its pheromone with it once, and keeps a best of its own.
-module(aco_colony).

-export([new/3, errands/1, take/2, best/1, round/1, global/3, run_round/1]).
-export([offer/1, better/2]).

-export_type([colony/0, id/0, offer/0]).

%% Colonies are numbered from 1.
-type id() :: pos_integer().

-record(colony, {
    id :: id(),
    problem :: aco_problem:problem(),
    options :: aco_options:options(),
    pheromone :: aco_pheromone:pheromone(),
    best :: aco_schedule:solution(),
    %% rounds that are over
    rounds = 0 :: non_neg_integer(),
    %% generations of the present round that are over
    generations = 0 :: non_neg_integer()
}).

-opaque colony() :: #colony{}.

%% A colony's best, with whose it is. Offers are ordered by cost, and then by
%% who makes them: so the best of many does not hang on who speaks first.
-type offer() :: {aco_schedule:cost(), id(), aco_schedule:order()}.

%% @doc A colony that has not done anything yet.
-spec new(aco_problem:problem(), aco_options:options(), id()) -> colony().
new(Problem, #{ants := Ants, tau0 := Tau0} = Options, Id) ->
    {Cost, _} = Best = aco_schedule:edd(Problem),
    First = case Tau0 of
                auto when Cost =:= 0 -> 1.0;
                auto -> 1 / (Ants * Cost);
                _ -> Tau0
            end,
    #colony{id = Id, problem = Problem, options = Options, best = Best,
            pheromone = aco_pheromone:new(aco_problem:size(Problem), First)}.

%% @doc The errands of the present generation, one for each ant.
-spec errands(colony()) -> [aco_ant:errand(), ...].
errands(#colony{id = Id, problem = Problem, options = Options, pheromone = Pheromone} = Colony) ->
    #colony{rounds = Rounds, generations = Generations} = Colony,
    #{ants := Ants, seed := Seed} = Options,
    [#{problem => Problem, options => Options, pheromone => Pheromone,
       key => {Seed, Id, Rounds + 1, Generations + 1, Ant}}
     || Ant <- lists:seq(1, Ants)].

%% @doc Takes what the ants of the present generation have found, in the order
%% of their errands.
-spec take([aco_schedule:solution(), ...], colony()) -> {generation_over | round_over, colony()}.
take(Found, #colony{options = #{ants := Ants, local_iterations := Each} = Options} = Colony)
  when length(Found) =:= Ants ->
    Best = lists:foldl(fun aco_schedule:newer/2, Colony#colony.best, Found),
    Pheromone = aco_pheromone:update(Best, Options, Colony#colony.pheromone),
    Learned = Colony#colony{best = Best, pheromone = Pheromone},
    case Colony#colony.generations + 1 of
        Each -> {round_over, Learned#colony{generations = 0, rounds = Colony#colony.rounds + 1}};
        Generations -> {generation_over, Learned#colony{generations = Generations}}
    end.

%% @doc The best it has found.
-spec best(colony()) -> aco_schedule:solution().
best(#colony{best = Best}) -> Best.

%% @doc How many rounds are over.
-spec round(colony()) -> non_neg_integer().
round(#colony{rounds = Rounds}) -> Rounds.

%% @doc Tells it the best of all colonies after a round, and whose it is.
-spec global(aco_schedule:solution(), Owner :: id(), colony()) -> colony().
global(_, Id, #colony{id = Id} = Colony) ->
    Colony;
global(Best, _, #colony{options = Options, pheromone = Pheromone} = Colony) ->
    Colony#colony{pheromone = aco_pheromone:update(Best, Options, Pheromone)}.

%% @doc Runs what is left of the present round in the calling process.
-spec run_round(colony()) -> colony().
run_round(Colony) ->
    case take([aco_ant:run(Errand) || Errand <- errands(Colony)], Colony) of
        {generation_over, Next} -> run_round(Next);
        {round_over, Next} -> Next
    end.

%% @doc What it offers as the best of all.
-spec offer(colony()) -> offer().
offer(#colony{id = Id, best = {Cost, Order}}) -> {Cost, Id, Order}.

%% @doc The better of two offers: the cheaper, of equally cheap ones that of the
%% lower number. Whoever combines offers, in whatever order and however often
%% the same, comes to the same one.
-spec better(offer(), offer()) -> offer().
better(A, B) -> min(A, B).
