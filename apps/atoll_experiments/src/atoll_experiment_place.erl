%% SPDX-License-Identifier: Apache-2.0
%% @doc Submasters placed by attributes on unequal nodes, against any order of the nodes.
-module(atoll_experiment_place).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(PAPER, "MacKenzie et al., section 3").
-define(ANTS, [1, 80]).
%% So near is what was measured to be to what was expected.
-define(NEAR, 0.2).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => place,
        title => "Placement by attributes",
        question => "By how much is ML-ACO faster when its submasters are on the weak nodes, chosen by what the nodes say of themselves, than in any order?",
        minutes => 3,
        cannot => "nodes with more processors than others: a node is made weak by a bound on its processor time (control groups), and what it says of itself is "
            "that bound (cgroup_cpus)."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Sweep = #{nodes => [5], slow => [1], ants => [2], local_iterations => [1], global_iterations => [2]},
    [#{key => unequal, do => {bench, "aco_place", #{sweep => Sweep, rounds => 1, starts => 1}}}];
asks(#{size := full}) ->
    [#{key => unequal, do => {bench, "aco_place", #{sweep => #{ants => ?ANTS}, rounds => 6, starts => 6}}}].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => unequal, down => ants, across => {order, [random, attributes]}, quantity => Quantity}
     || {Caption, Quantity} <- [
            {"Three of 11 nodes have 4 % of a processor, the others 16 %. All rounds, ms, by the ants of a colony:", run_ms},
            {"The least that a node with a colony may use, %:", least_percent},
            {"Colonies on weak nodes, %:", slow_colonies}
        ]
    ].

%% Where the colonies' work is all there is, a time is as the reciprocal of the least that one of them has.
-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    Most = lists:last(?ANTS),
    Orders = #{first => #{order => random}, over => #{order => attributes}},
    [
        #{
            figure => ?PAPER,
            says => "Without attributes the run is slower.",
            kind => {differs, more},
            from => unequal,
            by => Orders#{quantity => run_ms, called => "In any order a run took as many times as long", at => [#{ants => Most}]}
        },
        #{
            figure => ?PAPER,
            says => "It is so towards the factor by which the nodes differ (24 there, 4 here).",
            kind => {near, 1, ?NEAR},
            from => unequal,
            by => Orders#{
                quantity => {product, [run_ms, least_percent]},
                called => "Of the factor that follows from the roles that were really dealt out (the least that a colony's node may use) the measured one was",
                at => [#{ants => Most}]
            },
            why => io_lib:format("Within ~b % is what was aimed at.", [round(100 * ?NEAR)])
        },
        #{
            figure => ?PAPER,
            says => "The factor grows with the number of ants.",
            kind => {differs, more},
            from => unequal,
            by => #{
                quantity => {times, run_ms, #{order => attributes}},
                called => io_lib:format("With ~b ants the factor was as many times that with ~b", [Most, hd(?ANTS)]),
                first => #{ants => Most},
                over => #{ants => hd(?ANTS)},
                at => [#{order => random}]
            }
        },
        #{
            figure => none,
            says => "Where a colony runs must not change the schedule that is found.",
            kind => counted,
            from => unequal,
            by => fun(Answer) ->
                Found = [{Ants, Best} || #{<<"ants">> := Ants, <<"best">> := Best} <- atoll_experiments_samples:rows(Answer)],
                Costs = maps:groups_from_list(fun({Ants, _}) -> Ants end, fun({_, Best}) -> Best end, Found),
                Same = [Ants || {Ants, Bests} <- maps:to_list(Costs), length(lists:usort(Bests)) =:= 1],
                {length(Same) =:= map_size(Costs), io_lib:format("With ~b of ~b numbers of ants all rounds found the same cost.", [length(Same), map_size(Costs)])}
            end
        }
    ].
