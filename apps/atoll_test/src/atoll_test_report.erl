%% SPDX-License-Identifier: Apache-2.0
%% @doc What the runner of the tests says.
-module(atoll_test_report).

-export([begun/4, ended/4, is_red/1, close/3, fault/3, faults/1, print/2]).

-type done() :: [{atoll_test_jobs:job(), atoll_test_job:ended()}].

%% Lines of a failure's reason, and the characters of one.
-define(LINES, 20).
-define(COLUMNS, 160).

%% @doc A run begins.
-spec begun(atoll_tier:tier(), non_neg_integer(), non_neg_integer(), non_neg_integer()) -> ok.
begun(Tier, Jobs, Places, Seed) ->
    print("~ts tier: ~b jobs, ~b at once, SEED=~b~n", [Tier, Jobs, Places, Seed]).

%% @doc A job has ended, with so many left, in a run that began then.
-spec ended(atoll_test_jobs:job(), atoll_test_job:ended(), non_neg_integer(), integer()) -> ok.
ended(#{name := Name}, #{results := Results, seconds := Seconds} = Ended, Left, Begun) ->
    print("~7.1f s  ~-7ts~4b tests in ~6.1f s, ~b left: ~ts~n", [
        (erlang:monotonic_time(millisecond) - Begun) / 1000,
        case failed(Ended) of
            0 -> "ok";
            _ -> "FAILED"
        end,
        length(Results),
        Seconds,
        Left,
        Name
    ]).

%% @doc The end of all runs: what failed, budgets if they are asked for, the counts. Gives
%% the exit status.
-spec close([{Seed :: non_neg_integer(), Seconds :: float(), done()}], atoll_tier:tier(), boolean()) -> 0 | 1.
close([{Seed, Seconds, Done}], Tier, WithBudgets) ->
    print("~n", []),
    _ = [print("~ts~n", [atoll_test_budget:lines(Done)]) || WithBudgets],
    _ = [print("Failed:~n~ts~n", [failures(Done, Seed, Tier)]) || is_red(Done)],
    print("~b s, SEED=~b~n", [round(Seconds), Seed]),
    counted(Done);
close(Runs, Tier, _WithBudgets) ->
    Red = [Run || {_, _, Done} = Run <- Runs, is_red(Done)],
    print("~n", []),
    _ = [print("SEED=~b failed, see ~ts:~n~ts~n", [Seed, results(Done), failures(Done, Seed, Tier)]) || {Seed, _, Done} <- Red],
    Seconds = lists:sort([S || {_, S, _} <- Runs]),
    print("~b of ~b runs were green, with a seed each; a run took ~.1f s (~.1f to ~.1f).~n", [
        length(Runs) - length(Red), length(Runs), lists:nth((length(Seconds) + 1) div 2, Seconds), hd(Seconds), lists:last(Seconds)
    ]),
    counted(lists:append([Done || {_, _, Done} <- Runs])).

%% Where those of one run are.
results([{_, #{log := Log}} | _]) -> filename:dirname(filename:dirname(Log)).

%% @doc Whether something has failed.
-spec is_red(done()) -> boolean().
is_red(Done) -> lists:any(fun({_, Ended}) -> failed(Ended) > 0 end, Done).

failed(#{results := Results, broken := Broken}) ->
    length([R || #{outcome := failed} = R <- Results]) + length([Broken || Broken =/= none]).

counted(Done) ->
    Outcomes = [Outcome || {_, #{results := Results}} <- Done, #{outcome := Outcome} <- Results],
    Count = fun(Wanted) -> length([Outcome || Outcome <- Outcomes, Outcome =:= Wanted]) end,
    counted(Count(passed), lists:sum([failed(Ended) || {_, Ended} <- Done]), Count(skipped)).

counted(Passed, Failed, Skipped) ->
    print("~b passed, ~b failed~ts~n", [Passed, Failed, [io_lib:format(", ~b skipped", [Skipped]) || Skipped > 0]]),
    case Failed =:= 0 andalso Passed > 0 of
        true -> 0;
        false -> 1
    end.

failures(Done, Seed, Tier) ->
    [failure(Job, Ended, Seed, Tier) || {Job, Ended} <- Done, failed(Ended) > 0].

failure(#{name := Name} = Job, #{results := Results, broken := Broken, log := Log}, Seed, Tier) ->
    [
        [
            io_lib:format("  ~ts ~ts~n~ts    again: ~ts~n", [Suite, Case, reason(Why), again(Job, Suite, Case, Seed, Tier)])
         || #{outcome := failed, suite := Suite, name := Case, why := Why} <- Results
        ],
        [io_lib:format("  ~ts: ~ts; see ~ts~n", [Name, Broken, Log]) || Broken =/= none]
    ].

%% Where in OTP's test tools a case was called says nothing.
-define(TOOLS, "^ *$|(eunit_test|eunit_proc|test_server|atoll_test_vm)\\b").

reason(Why) ->
    Lines = [Line || Line <- string:lexemes(Why, "\n"), re:run(Line, ?TOOLS, [unicode]) =:= nomatch],
    [["    ", string:slice(Line, 0, ?COLUMNS), $\n] || Line <- lists:sublist(Lines, ?LINES)].

again(Job, Suite, Case, Seed, Tier) ->
    io_lib:format("make ~ts SUITE=~ts~ts SEED=~b", [target(Tier), Suite, only(Job, Case), Seed]).

%% EUnit names a test by its function, or by a function that stands in it.
only(#{kind := eunit}, Case) ->
    case re:run(Case, "^[^ ]* -?([a-z][a-zA-Z0-9_@]*_test_?)\\b", [{capture, all_but_first, list}]) of
        {match, [Function]} -> [" CASE=", Function];
        nomatch -> ""
    end;
only(#{kind := ct}, Case) ->
    [[" CASE=", Case] || atoll_test_result:is_case(Case)].

target(fast) -> "test";
target(deep) -> "soak".

%% @doc What came of a planted fault, and how those of its module are planted again (of its application, where that has the same name).
-spec fault(Seed :: non_neg_integer(), atoll_test_faults:fault(), atoll_test_faults:found()) -> ok.
fault(Seed, #{file := File, breaks := Breaks}, Found) ->
    Module = atoll_test_faults:module(File),
    {Word, Behind} =
        case Found of
            {not_planted, Why} -> {"WRONG", [" (", Why, ")"]};
            missed -> {"MISSED", io_lib:format("~n  again: make faults SUITE=~ts SEED=~b", [Module, Seed])};
            Tier -> {atom_to_list(Tier), ""}
        end,
    print("~-8ts~ts: ~ts~ts~n", [Word, Module, Breaks, Behind]).

%% @doc The end of planted faults. Gives the exit status.
-spec faults([{atoll_test_faults:fault(), atoll_test_faults:found()}]) -> 0 | 1.
faults(Done) ->
    Count = fun(Wanted) -> length([Found || {_, Found} <- Done, Found =:= Wanted]) end,
    {Fast, Deep} = {Count(fast), Count(deep)},
    print("~n~b planted faults: the fast tier found ~b, the deep one ~b more.~n", [length(Done), Fast, Deep]),
    counted(Fast + Deep, length(Done) - Fast - Deep, 0).

%% @doc Prints to standard output, in UTF-8.
-spec print(io:format(), [term()]) -> ok.
print(Format, Arguments) ->
    io:put_chars(unicode:characters_to_binary(io_lib:format(Format, Arguments))).
