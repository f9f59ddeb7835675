%% SPDX-License-Identifier: Apache-2.0
%% The commands of the harness, where nothing is measured.
-module(atoll_bench_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["bench", "run", "--out", "dist", "names", "--actors", "1"], "there is no option --actors"},
        {["bench", "run", "--json", "names", "--actors", "1"], "there is no option --actors"},
        {["bench", "run", "--rounds", "names", "--out=dist", "nmaes"], "there is no benchmark \"nmaes\"; did you mean names?"}
    ]).

the_help_says_where_the_options_of_a_benchmark_are_told_test() ->
    ?assertMatch({match, _}, re:run(atoll_cli_help:page("bench run", atoll_bench_cli_run), "\"atoll bench list NAME\" says which\\.\n\nexamples:")).

a_comparison_fails_on_the_verdicts_that_shall_not_be_test_() ->
    Results = [{point, #{verdict => V}} || V <- [same, slower, faster, slower]],
    [?_assertEqual(Outcome, case atoll_bench_cli_compare:judged(Against, Results) of {failed, S} -> lists:flatten(S); ok -> ok end)
     || {Against, Outcome} <- [
            {[], ok}, {[unclear], ok},
            {[slower], "2 of 4 comparisons: the second run is slower"},
            {[unclear, faster], "1 of 4 comparisons: the second run is faster"}]].
