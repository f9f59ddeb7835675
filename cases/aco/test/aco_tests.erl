%% SPDX-License-Identifier: Apache-2.0
-module(aco_tests).

-include_lib("eunit/include/eunit.hrl").

%% What is wrong is said in one sentence, and nothing is started.
every_fault_has_its_sentence_test_() ->
    [{Sentence, ?_assertEqual(Sentence, sentence(Spec))} || {Sentence, Spec} <- [
        {"The option problem is missing.", maps:remove(problem, spec())},
        {"There is no option ant.", (spec())#{ant => 1}},
        {"There is no option ant.", (spec())#{options => #{ant => 1}}},
        {"The option ants must be a whole number from 1 to 10000, not 0.", (spec())#{options => #{ants => 0}}},
        {"The option degree must be a whole number from 2 to 1000, not 1.", (spec())#{degree => 1}},
        {"The option duplicating must be a whole number from 1 to 10000, not 0.", (spec())#{duplicating => 0}},
        {"The option mode must be one of tl, ml, gr, sr, not xl.", (spec())#{mode => xl}},
        {"The option nodes must be a list of nodes, not [a|b].", (spec())#{nodes => [a | b]}},
        {"Node b is given twice.", (spec())#{nodes => [node(), b, b]}},
        {"The run must be started on b, the first of its nodes, not on nonode@nohost.",
         (spec())#{mode => tl, nodes => [b, c]}},
        {"A tree of degree 3 takes 10 nodes or more, not 5.", (spec())#{degree => 3}},
        {"Node nonode@nohost is not distributed, and the mode asks for a cluster.", spec()},
        {"The run is to end at the optimum, and the option optimum is missing.", (spec())#{until_optimum => true}}
    ]].

spec() ->
    {ok, Problem} = aco_problem:new([{1, 1, 1}]),
    #{problem => Problem, mode => sr, nodes => [node(), b, c, d, e]}.

sentence(Spec) ->
    {error, Reason} = aco:check(Spec),
    ?assertEqual({error, Reason}, aco:run(Spec)),
    lists:flatten(aco:format_error(Reason)).
