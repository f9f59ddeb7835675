%% SPDX-License-Identifier: Apache-2.0
%% The commands of the simulator, without a simulation.
-module(atoll_sim_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["sim"],
         "one of overlay, broadcast, detect, directory, reach, run, show, replay must follow; \"atoll help sim\" says what they do"},
        {["sim", "--json"],
         "one of overlay, broadcast, detect, directory, reach, run, show, replay must follow; \"atoll help sim\" says what they do"},
        {["sim", "frobnicate"], "there is no command \"sim frobnicate\"; \"atoll help sim\" lists them"},
        {["sim", "overlap"], "there is no command \"sim overlap\"; did you mean sim overlay?"},
        {["sim", "overlay", "now"], "the argument \"now\" is one too many"},
        {["sim", "overlay", "--kill", "1.5"], "--kill must be a share from 0 to 1, such as 0.5, not \"1.5\""},
        {["sim", "overlay", "--kill", "-0.5"], "--kill must be a share from 0 to 1, such as 0.5, not \"-0.5\""},
        {["sim", "overlay", "--kill", "80%"], "--kill must be a share from 0 to 1, such as 0.5, not \"80%\""},
        {["sim", "overlay", "--kill", "nan"], "--kill must be a share from 0 to 1, such as 0.5, not \"nan\""},
        {["sim", "overlay", "--nodes", "1"],
         "--nodes must be a whole number from 2 to 100,000, not \"1\""},
        {["sim", "overlay", "--nodes", "9", "--contacts", "10"],
         "--contacts must be at most --nodes, which is 9, not \"10\""},
        {["sim", "overlay", "--seed", "x"],
         "--seed must be a whole number from 0 to 1,000,000,000, not \"x\""},
        {["sim", "overlay", "--latency", "uniform:20:1"], latency("uniform:20:1")},
        {["sim", "overlay", "--latency", "gauss:1:2"], latency("gauss:1:2")},
        {["sim", "overlay", "--latency", "constant"], latency("constant")},
        {["sim", "overlay", "--latency", "lognormal:20:-1"], latency("lognormal:20:-1")},
        {["sim", "overlay", "--strategy", "ring"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"ring\""},
        {["sim", "overlay", "--strategy", "lists"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"lists\""},
        {["sim", "overlay", "--strategy", "hyparvew"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"hyparvew\"; did you mean hyparview?"},
        {["sim", "overlay", "--strategy", lists:duplicate(300, $a)],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"" ++ lists:duplicate(300, $a) ++ "\""},
        {["sim", "overlay", "--roster", "whole"], "--roster must be one of on, full, off, not \"whole\""},
        {["sim", "overlay", "--code", "no/such/directory"],
         "--code must be a directory, not \"no/such/directory\""},
        {["sim", "overlay", "--option", "xbot"], "--option must be KEY=VALUE, such as xbot=true, not \"xbot\""},
        {["sim", "overlay", "--option", "xbot=2"], "--option: the option xbot must be true or false, not \"2\""},
        {["sim", "overlay", "--option", "active_max=0"],
         "--option: the option active_max must be a whole number from 1 to 2147483647, not 0"},
        {["sim", "overlay", "--option", "xbot=true", "--option", "xbot=true"], "--option xbot is given twice"},
        {["sim", "overlay", "--nodes", "9", "--nodes", "9"], "--nodes is given twice"},
        {["sim", "broadcast", "--nodes", "9", "--senders", "10"],
         "--senders must be at most --nodes, which is 9, not \"10\""},
        {["sim", "broadcast", "--churn", "2"], "--churn must be a share from 0 to 1, such as 0.5, not \"2\""},
        {["sim", "broadcast", "--messages", "0"],
         "--messages must be a whole number from 1 to 100,000, not \"0\""},
        {["sim", "detect", "--nodes", "9"],
         "--nodes must be at least 5 more than the contacts, who never fall silent and are 5, not \"9\""},
        {["sim", "run"], "the argument SCRIPT is missing"},
        {["sim", "overlay", "--trace", ""], "--trace needs a value"},
        {["sim", "show", "a.trace", "--svg="], "--svg needs a value"},
        {["sim", "show"], "the argument TRACE is missing"},
        {["sim", "show", code:which(?MODULE), "--from", "2", "--to", "1"], "--to must be at least --from, which is 2, not \"1\""},
        {["sim", "show", code:which(?MODULE), "--at", "2"],
         "--at says what is drawn, and --svg, the file for it, is missing"},
        {["sim", "replay"], "the argument FILE is missing"},
        {["sim", "detect", "--loss", "5"], "--loss must be a share from 0 to 1, such as 0.5, not \"5\""}
    ]).

latency(Typed) ->
    "--latency must be constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA or regions, "
    "such as uniform:1:20, not \"" ++ Typed ++ "\"".

an_unknown_option_of_a_strategy_is_told_with_those_that_there_are_test() ->
    {usage, Sentence} = atoll_cli_line:outcome(["sim", "overlay", "--option", "xbotty=true"]),
    ?assertMatch("--option: hyparview has no option \"xbotty\"; it has " ++ _, Sentence),
    ?assertMatch({match, _}, re:run(Sentence, ", xbot(,|$)")).

a_latency_is_read_test_() ->
    [{Text, ?_assertEqual({ok, Latency}, (atoll_sim_cli_options:latency())(Text))}
     || {Text, Latency} <- [{"constant:5", {constant, 5}}, {"uniform:1:20", {uniform, 1, 20}},
                            {"exponential:10", {exponential, 10}}, {"lognormal:20:0.5", {lognormal, 20, 0.5}},
                            {"regions", regions}]].

the_line_that_repeats_a_run_asks_for_the_same_test_() ->
    [{Line, ?_assertEqual(Line, again(Line))}
     || Line <- ["atoll sim overlay --strategy hyparview --nodes 1000 --kill 0.5 --seed 1",
                 "atoll sim overlay --strategy hyparview --nodes 1000 --roster full --kill 0.5 --spare nobody --seed 1",
                 "atoll sim overlay --strategy hyparview --nodes 300 --contacts 3 --kill 0.25 --seed 7",
                 "atoll sim overlay --strategy hyparview --option xbot=true --option active_max=6 --nodes 10 "
                 "--latency lognormal:20:0.5 --settle 1000 --kill 0.0 --seed 0"]].

again("atoll sim overlay " ++ Line) ->
    Options = atoll_sim_cli_overlay:options(),
    {ok, Values, []} = atoll_cli_options:parse(Options, [], string:lexemes(Line, " ")),
    atoll_sim_cli_options:again("sim overlay", Options, Values).

a_result_begins_with_its_keys_and_loses_none_test() ->
    ?assertEqual({[{seed, 7}, {nodes, 3}, {killed, 1}, {rejoined_ms, null}, {new_key, 1.5}, {again, <<"atoll x">>}]},
                 atoll_sim_cli_result:json([seed, nodes], #{killed => 1, nodes => 3, seed => 7, new_key => 1.5,
                                                            rejoined_ms => never}, "atoll x")),
    ?assertEqual("nodes                                1,000\n"
                 "all survivors connected again after  never\n"
                 "new key                                1.5\n",
                 lists:flatten(atoll_sim_cli_result:table(#{nodes => 1000, new_key => 1.5, rejoined_ms => never}))).
