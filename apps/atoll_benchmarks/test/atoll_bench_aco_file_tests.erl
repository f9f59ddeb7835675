%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_aco_file_tests).

-include_lib("eunit/include/eunit.hrl").

a_plain_file_has_durations_then_weights_then_due_dates_test() ->
    {ok, Problem} = atoll_bench_aco_file:parse("3\n 4 5 6\n1 2 3\r\n\t10 20 30", #{}),
    ?assertEqual([{1, 4, 1, 10}, {2, 5, 2, 20}, {3, 6, 3, 30}], aco_problem:jobs(Problem)),
    ?assertEqual(3, aco_problem:size(Problem)),
    ?assertEqual({2, 5, 2, 20}, aco_problem:job(2, Problem)).

of_a_collection_the_asked_problem_is_read_test() ->
    Text = <<"1 2 3 4 5 6\n 7 8 9 10 11 12\n">>,
    Read = fun(Options) -> {ok, P} = atoll_bench_aco_file:parse(Text, Options), aco_problem:jobs(P) end,
    ?assertEqual([{1, 1, 3, 5}, {2, 2, 4, 6}], Read(#{jobs => 2})),
    ?assertEqual([{1, 7, 9, 11}, {2, 8, 10, 12}], Read(#{jobs => 2, problem => 2})).

the_problems_of_a_collection_have_forty_jobs_unless_told_test() ->
    Text = lists:join($\s, [integer_to_list(N) || N <- lists:seq(1, 240)]),
    {ok, Problem} = atoll_bench_aco_file:parse(Text, #{problem => 2}),
    ?assertEqual(40, aco_problem:size(Problem)),
    ?assertEqual({1, 121, 161, 201}, aco_problem:job(1, Problem)).

%% The sentence must name what is wrong, and stand behind a file's name.
bad_text_is_refused_with_a_sentence_that_names_the_fault_test_() ->
    [{Names, fun() ->
        {error, Reason} = atoll_bench_aco_file:parse(Text, Options),
        ?assertEqual(Expected, Reason),
        Sentence = unicode:characters_to_list(atoll_bench_aco_file:format_error(Reason)),
        ?assertNotEqual(nomatch, string:find(Sentence, Names)),
        ?assertEqual(nomatch, string:find(Sentence, "\n")),
        ?assertNotEqual($., lists:last(Sentence))
    end} || {Text, Options, Expected, Names} <- [
        {"", #{}, no_numbers, "no numbers"},
        {" \n\t", #{}, no_numbers, "no numbers"},
        {<<1, 255, 2>>, #{}, not_text, "not text"},
        {"1 2\n3 four", #{}, {not_a_number, 2, "four"}, "\"four\" in line 2"},
        {"1 2.5", #{}, {not_a_number, 1, "2.5"}, "\"2.5\" in line 1"},
        {"1 7 0\n\n-3", #{}, {negative, 3, -3}, "-3 in line 3"},
        {"1 7 0 1000001", #{}, {too_great, 1, "1000001", 1000000}, "1000001 in line 1"},
        {"2 1 2 1 2 1 2 3 4 5", #{}, {wrong_count, 2, 10}, "need 6 numbers after it, not 9"},
        {"4 1 2 1 2 1 2", #{}, {wrong_count, 4, 7}, "need 12 numbers after it, not 6"},
        {"0", #{}, {wrong_count, 0, 1}, "begins with 0, and a problem has one job at least"},
        {"1 2 3 4 5", #{jobs => 2}, {no_whole_problems, 2, 5}, "5 numbers, which is no multiple of the 6"},
        {"1 2 3 4 5 6", #{}, {no_whole_problems, 40, 6}, "problem of 40 jobs"},
        {"1 2 3 4 5 6", #{jobs => 1, problem => 3}, {no_such_problem, 3, 2}, "2 problems, and no 3"},
        {"1 5 5 5", #{problem => 2}, {no_such_problem, 2, 1}, "one problem, and no 2"},
        {"2 5 0 1 1 1 1", #{}, {no_duration, 2}, "the 2. of its problem"},
        {lists:duplicate(2001 * 3, "1 "), #{jobs => 2001}, {too_many_jobs, 2001}, "2001 jobs"}
    ]].

%% A cost may be as large as a schedule of a problem that is read may cost, and no larger.
optima_are_read_as_they_stand_test() ->
    ?assertEqual({ok, [913, 1225, 0]}, atoll_bench_aco_file:parse_optima(<<"913\n 1225\n0\n">>)),
    #{most_cost := Most, most_jobs := Jobs} = atoll_bench_aco_file:limits(),
    {ok, Dear} = aco_problem:new(lists:duplicate(Jobs, {1000000, 1000000, 0})),
    ?assert(aco_schedule:cost(lists:seq(1, Jobs), Dear) =< Most),
    ?assertEqual({ok, [2000000, Most]}, atoll_bench_aco_file:parse_optima(["2000000 ", integer_to_list(Most)])),
    ?assertEqual({error, {too_great, 1, integer_to_list(Most + 1), Most}}, atoll_bench_aco_file:parse_optima(integer_to_list(Most + 1))),
    ?assertEqual({error, {not_a_number, 2, "x"}}, atoll_bench_aco_file:parse_optima("913\nx")),
    ?assertEqual({error, no_numbers}, atoll_bench_aco_file:parse_optima("")).
