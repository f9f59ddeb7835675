%% SPDX-License-Identifier: Apache-2.0
%% @doc ACO while processes are killed, and nodes (section VIII.ii, Reliability); and Orbit.
-module(atoll_experiment_chaos).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(PAPER, "section VIII.ii").
-define(MODES, [gr, sr]).
%% Up to this factor counts as no impact.
-define(NONE, 1.1).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => chaos,
        title => "Chaos",
        question => "Do the reliable versions of ACO come to the same result when processes are killed all the time, and when nodes are lost; and what does it cost?",
        minutes => 6,
        cannot => "that a lost host is survived: all nodes are on one. A node is killed as a host would fail (SIGKILL to its process), but the kernel still "
            "closes its sockets, so the others hear of it at once."
    }.

%% The rounds follow each other without a pause, so that whatever recovery takes is in the time.
-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := Size}) ->
    {Nodes, Iterations, Starts, Lost} = case Size of
        full -> {8, 150, 6, #{}};
        small -> {5, 4, 1, #{nodes => [6], program => [orbit], lost => [member]}}
    end,
    Sweep = #{nodes => [Nodes], mode => ?MODES, chaos => [0, 1], jobs => [40], ants => [4], local_iterations => [10], global_iterations => [Iterations]},
    [
        #{key => storm, do => {bench, atoll_experiments_storm, #{sweep => Sweep, rounds => Starts, starts => Starts}}},
        #{key => lost, do => {at_once, atoll_experiments_loss, #{sweep => Lost, starts => case Size of full -> 3; small -> 1 end}}}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => storm, down => chaos, across => {mode, ?MODES}, quantity => Metric}
     || {Caption, Metric} <- [{"Time, ms, by kills a second on each node:", wall_ms}, {"Processes killed:", kills}, {"Names registered again:", restarts}]
    ] ++ [#{
        caption => "What was killed, and what came of it:",
        from => lost,
        kind => counted,
        head => ["program", "killed", "runs", "ended with a result", "processes killed", "nodes lost", "costs found"],
        rows => fun(Answer) ->
            Rows = atoll_experiments_samples:rows(Answer),
            [
                [
                    Program, Lost, number(length(Own)), number(sum(<<"ended">>, Own)), number(sum(<<"kills">>, Own)), number(sum(<<"nodes_lost">>, Own)),
                    lists:join(", ", [number(Cost) || Cost <- lists:usort([C || #{<<"cost">> := C} <- Own])])
                ]
             || {Program, Lost} <- lists:usort([{P, L} || #{<<"program">> := P, <<"lost">> := L} <- Rows]), Own <- [of_kind(Program, [Lost], Rows)]
            ]
        end
    }].

of_kind(Program, Lost, Rows) ->
    [Row || #{<<"program">> := P, <<"lost">> := L} = Row <- Rows, P =:= Program, lists:member(L, Lost)].

sum(Key, Rows) -> lists:sum([Value || #{Key := Value} <- Rows]).

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => ?PAPER,
            says => [string:uppercase(atom_to_list(Mode)), "-ACO runs to completion under a Chaos Monkey on every node."],
            kind => counted,
            from => storm,
            by => fun(Answer) -> survives(atom_to_binary(Mode), Answer) end
        }
     || Mode <- ?MODES
    ] ++ [
        #{
            figure => ?PAPER,
            says => "Recovery at a kill a second has no measurable impact on the time of a run.",
            kind => {at_most, ?NONE},
            from => storm,
            by => #{
                quantity => wall_ms,
                called => "With kills a run took as many times as long",
                first => #{chaos => 1},
                over => #{chaos => 0},
                at => [#{mode => Mode} || Mode <- ?MODES]
            },
            why => io_lib:format("Up to ~ts counts as none. Rounds follow each other without a pause, and each waits for what is being recovered.", [number(?NONE)])
        },
        #{figure => "section IV", says => "ML-ACO is not reliable.", kind => counted, from => lost, by => fun(Answer) -> ends(<<"ml">>, Answer) end},
        #{
            figure => none,
            says => "Nodes may be lost too (there processes are killed, and no nodes).",
            kind => counted,
            from => lost,
            by => fun survives_nodes/1
        },
        #{
            figure => none,
            says => "Orbit survives the loss of a gateway, and of another node: what was lost is computed again.",
            kind => counted,
            from => lost,
            by => fun finds_all/1
        }
    ].

%% That the schedule is the one of a single process the benchmark itself holds.
survives(Mode, {run, #{header := #{<<"points">> := Points}, errors := Errors}} = Answer) ->
    Own = [Row || #{<<"mode">> := M, <<"chaos">> := Chaos} = Row <- atoll_experiments_samples:rows(Answer), M =:= Mode, Chaos > 0],
    Failed = [Why || #{<<"point">> := Index, <<"error">> := Why} <- Errors, #{<<"mode">> := M, <<"chaos">> := C} <- [lists:nth(Index + 1, Points)], M =:= Mode, C > 0],
    {
        case {Own, sum(<<"kills">>, Own)} of
            {_, _} when Failed =/= [] -> false;
            {[], _} -> unknown;
            %% Nobody was killed: nothing was survived.
            {_, 0} -> unknown;
            _ -> true
        end,
        [
            io_lib:format("~b of ~b runs ended with all rounds and the schedule that one process finds, through ~b kills and ~b restarts.", [
                length(Own), length(Own) + length(Failed), sum(<<"kills">>, Own), sum(<<"restarts">>, Own)
            ]),
            [[" One that did not said: ", Why] || Why <- lists:sublist(Failed, 1)]
        ]
    }.

ends(Program, Answer) ->
    Own = [Row || #{<<"program">> := P} = Row <- atoll_experiments_samples:rows(Answer), P =:= Program],
    Said = [Why || #{<<"ended">> := 0, <<"said">> := Why} <- Own],
    {
        case Own of [] -> unknown; _ -> length(Said) =:= length(Own) end,
        [io_lib:format("~b of ~b runs ended before their time, with a sentence.", [length(Said), length(Own)]), [[" One said: ", Why] || Why <- lists:sublist(Said, 1)]]
    }.

finds_all(Answer) ->
    Own = [Row || #{<<"program">> := <<"orbit">>} = Row <- atoll_experiments_samples:rows(Answer)],
    Ended = [Row || #{<<"ended">> := 1} = Row <- Own],
    Missed = [1 || #{<<"nodes_lost">> := 0} <- Ended],
    {
        case {Own, Own -- Ended, Missed} of
            {[], _, _} -> unknown;
            {_, [_ | _], _} -> false;
            {_, [], [_ | _]} -> unknown;
            _ -> true
        end,
        [
            io_lib:format("~b of ~b runs found all of the set; ~b were over before the node was killed.", [length(Ended), length(Own), length(Missed)]),
            [[" One that did not said: ", Why] || #{<<"said">> := Why} <- lists:sublist(Own -- Ended, 1)]
        ]
    }.

survives_nodes(Answer) ->
    Rows = atoll_experiments_samples:rows(Answer),
    Own = lists:append([of_kind(Mode, [<<"nothing">>, <<"submasters">>, <<"colony">>, <<"both">>], Rows) || Mode <- [<<"gr">>, <<"sr">>]]),
    Ended = [Row || #{<<"ended">> := 1} = Row <- Own],
    Costs = lists:usort([Cost || #{<<"cost">> := Cost} <- Ended]),
    Missed = [1 || #{<<"lost">> := Lost, <<"nodes_lost">> := N} <- Ended, N < to_lose(Lost)],
    {
        case Own of
            [] -> unknown;
            _ when length(Ended) < length(Own) -> false;
            _ when length(Costs) > 1 -> false;
            _ -> case Missed of [] -> true; _ -> unknown end
        end,
        [
            io_lib:format("With a colony's node, that of submasters, or both at once killed (with none too) ~b of ~b runs ended with all rounds, and found ~b different best cost~ts.", [
                length(Ended), length(Own), length(Costs), case Costs of [_] -> ""; _ -> "s" end
            ]),
            [io_lib:format(" ~b were over before the node was killed.", [length(Missed)]) || Missed =/= []],
            [[" One that did not end said: ", Why] || #{<<"said">> := Why} <- lists:sublist(Own -- Ended, 1)]
        ]
    }.

to_lose(<<"nothing">>) -> 0;
to_lose(<<"both">>) -> 2;
to_lose(_) -> 1.
