%% SPDX-License-Identifier: Apache-2.0
%% @doc A service that streams match events, stage by stage: the limits that Benavides found, as far as one program can make the load.
-module(atoll_experiment_matchstream).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(PAPER, "Benavides (2011)").
-define(BENCH, "matchstream").
-define(STARTS, 5).
%% The most that are tried: what the paper has at stage 3, and what two processors connect within a second.
-define(CLIENTS, 4096).
-define(AT_ONCE, 1024).
-define(STAGES, [stage2, stage3, stage4, stage5]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => matchstream,
        title => "MatchStream, stage by stage",
        question => "How many clients does a service of match events hold, and how many connect at once, after each stage of the procedure that made it scale?",
        minutes => 11,
        cannot => "more clients than one program has open files for, which is what makes the load; what more nodes bring, since they share two processors with it. The "
            "settings of the kernel of then are the machine's own now, and the VM has kernel poll by itself. Its web interface is loaded by `bin/atoll scale` with `ab` (docs/scaling.md)."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Of = fun(Sweep) -> {bench, ?BENCH, #{sweep => Sweep#{events => [2], rate => [20], change => [stage2, stage4]}, rounds => 1, starts => 1}} end,
    [#{key => clients, do => Of(#{find => [clients], clients => [32]})}, #{key => at_once, do => Of(#{find => [at_once], clients => [8]})}];
asks(#{size := full}) ->
    [
        #{key => at_once, do => {bench, ?BENCH, #{sweep => #{find => [at_once], clients => [?AT_ONCE], change => [stage3, stage4]}, rounds => ?STARTS, starts => ?STARTS}}},
        #{key => clients, do => {bench, ?BENCH, #{sweep => #{find => [clients], clients => [?CLIENTS], events => [4], rate => [4], change => ?STAGES}, rounds => 1, starts => 1}}}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{
            caption => io_lib:format("Clients that follow a match, the most that passed (99 of 100 got all of it, within a second; ~b were the most that were tried):", [?CLIENTS]),
            from => clients, kind => counted, head => ["stage", "clients", "the paper"],
            rows => fun(Answer) -> [[word(Stage), limits(Found), paper(clients, Stage)] || Stage <- ?STAGES, [_ | _] = Found <- [found(Stage, Answer)]] end
        },
        #{
            caption => io_lib:format("Clients that connect at once, the most that passed (99 of 100 had their status within a second; ~b were the most that were tried):", [?AT_ONCE]),
            from => at_once, kind => counted, head => ["stage", "at once", "the paper"],
            rows => fun(Answer) -> [[word(Stage), limits(Found), paper(at_once, Stage)] || Stage <- ?STAGES, [_ | _] = Found <- [found(Stage, Answer)]] end
        }
    ].

word(Stage) -> string:replace(atom_to_list(Stage), "stage", "").

found(Stage, Answer) ->
    Word = atom_to_binary(Stage),
    [Limit || #{<<"change">> := Is, <<"limit">> := Limit} <- atoll_experiments_samples:rows(Answer), Is =:= Word].

limits([Limit]) -> number(Limit);
limits(Limits) ->
    {Median, Low, High} = atoll_experiments_judge:interval(Limits),
    [number(Median), " [", number(Low), "–", number(High), "]"].

paper(clients, stage2) -> "1,000";
paper(clients, stage3) -> "4,096";
paper(clients, stage4) -> "64,000";
paper(clients, stage5) -> "25,000 more with each node";
paper(at_once, stage4) -> "more than 8,000";
paper(at_once, stage5) -> "–";
paper(at_once, _) -> "4".

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => [?PAPER, ", stage 2"],
            says => "As it was written it holds some 1,000 clients.",
            kind => counted, from => clients,
            by => fun(Answer) -> held(stage2, fun(Limit) -> Limit >= 900 andalso Limit =< 1100 end, Answer) end,
            why => "That is how many files a program may have open by itself."
        },
        #{
            figure => [?PAPER, ", stage 3"],
            says => "With settings of the system and of the VM alone it holds 4,096.",
            kind => counted, from => clients,
            by => fun(Answer) -> held(stage3, fun(Limit) -> Limit >= ?CLIENTS end, Answer) end
        },
        #{
            figure => [?PAPER, ", stage 4"],
            says => "With changes of the program more clients connect at once: more than 8,000, where it were 4.",
            kind => {differs, more}, from => at_once,
            by => #{
                quantity => limit, called => "At stage 4 as many times as many clients connected at once as at stage 3",
                first => #{change => stage4}, over => #{change => stage3}, at => [#{find => at_once}]
            },
            why => "The load and the service share two processors, and no more than what they connect within a second can be seen."
        },
        #{figure => [?PAPER, ", stage 4"], says => "With changes of the program it holds 64,000.", kind => counted, from => none, why => "One program has no files open for so many clients."},
        #{figure => [?PAPER, ", stage 5"], says => "Each node more holds 25,000 clients more.", kind => counted, from => none, why => "All nodes share one machine."}
    ].

held(Stage, Is, Answer) ->
    case found(Stage, Answer) of
        [] -> {unknown, "Nothing was found."};
        Limits -> {lists:all(Is, Limits), ["The most clients that passed: ", limits(Limits), "."]}
    end.
