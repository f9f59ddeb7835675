%% What is wrong with a command line is said in one sentence that names the
%% flag, before anything is started. No command here gets as far as a cluster.
-module(atoll_cli_tests).
-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    [{string:join(["atoll" | Args], " "),
      ?_assertEqual({usage, Sentence}, outcome(Args))}
     || {Args, Sentence} <- wrong()].

wrong() ->
    [
        {[], "a command is missing; \"atoll help\" lists them"},
        {["frobnicate"], "there is no command \"frobnicate\"; \"atoll help\" lists them"},
        {["orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["help", "orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["orbit", "--generators", "g6"],
         "--generators must be g and some of the digits 1 to 5 in order, such as g124, not \"g6\""},
        {["orbit", "--generators", "g421"],
         "--generators must be g and some of the digits 1 to 5 in order, such as g124, not \"g421\""},
        {["orbit", "--space", "0"], "--space must be a whole number from 1 to 1,000,000,000, not \"0\""},
        {["orbit", "--space", "abc"], "--space must be a whole number from 1 to 1,000,000,000, not \"abc\""},
        {["orbit", "--space", "-5"], "--space must be a whole number from 1 to 1,000,000,000, not \"-5\""},
        {["orbit", "--space", "1.5"], "--space must be a whole number from 1 to 1,000,000,000, not \"1.5\""},
        {["orbit", "--space", "1000000001"],
         "--space must be a whole number from 1 to 1,000,000,000, not \"1000000001\""},
        {["orbit", "--space="], "--space must be a whole number from 1 to 1,000,000,000, not \"\""},
        {["orbit", "--space"], "--space needs a value"},
        {["orbit", "--space", "10", "--space", "10"], "--space is given twice"},
        {["orbit", "--json", "--json"], "--json is given twice"},
        {["orbit", "--json=yes"], "--json takes no value"},
        {["orbit", "--mode", "star"],
         "--mode must be one of seq, par, mesh, groups, ring, not \"star\""},
        {["orbit", "--nodes", "0"], "--nodes must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "1001"],
         "--nodes must be a whole number from 1 to 1,000, not \"1001\""},
        {["orbit", "--workers", "none"],
         "--workers must be a whole number from 1 to 1,000, not \"none\""},
        {["orbit", "--group-size", "0"],
         "--group-size must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "2", "--group-size", "3"],
         "--group-size must be at most --nodes, which is 2, not \"3\""},
        {["orbit", "--group_size", "3"],
         "there is no option --group_size; did you mean --group-size?"},
        {["orbit", "--frobnicate=3"], "there is no option --frobnicate"},
        {["orbit", "-n", "3"], "there is no option -n"},
        {["orbit", "g124"], "the argument \"g124\" is one too many"},
        {["up"], "the argument N is missing"},
        {["up", "many"], "N must be a whole number from 1 to 1,000, not \"many\""},
        {["up", "3", "4"], "the argument \"4\" is one too many"},
        {["up", "3", "--groups", "4"],
         "--groups must be at most the number of nodes, which is 3, not \"4\""},
        {["up", "3", "--groups", "0"],
         "--groups must be a whole number from 1 to 1,000, not \"0\""},
        {["up", "3", "--name", "a b"],
         "--name must be a letter and at most 39 letters, digits, _ or -, not \"a b\""},
        {["status", "--wide"], "there is no option --wide"},
        {["down", "a", "b"], "the argument \"b\" is one too many"},
        {["demo", "9"], "the argument \"9\" is one too many"}
    ].

a_run_is_called_by_the_sizes_of_its_groups_test_() ->
    [?_assertEqual(Head, lists:flatten(atoll_cli_result:head(#{mode => Mode, nodes => N, group_size => Size})))
     || {Mode, N, Size, Head} <- [{mesh, 9, 3, "full mesh"}, {seq, 1, 1, "seq"},
                                  {groups, 9, 3, "groups of 3"}, {groups, 5, 3, "one group of 5"},
                                  {groups, 7, 3, "groups of 3 to 4"}, {groups, 2, 1, "groups of 1"},
                                  {ring, 9, 3, "ring, groups of 3"}]].

every_command_has_a_page_of_help_test_() ->
    [{Name, ?_assertMatch({match, _}, re:run(page(Module), "examples:\n  atoll " ++ Name))}
     || {Name, Module} <- atoll_cli:commands()].

the_examples_of_the_help_are_right_test_() ->
    [{Example, ?_assertMatch({ok, _, _}, atoll_cli_options:parse(
        Module:options(), Module:operands(), Args))}
     || {_, Module} <- atoll_cli:commands(),
        Example <- Module:examples(),
        ["atoll", _ | Args] <- [string:lexemes(Example, " ")]].

an_option_has_its_default_and_a_switch_is_off_test() ->
    {ok, Values, []} = atoll_cli_options:parse(atoll_cli_orbit:options(), [], []),
    ?assertEqual(#{generators => g124, space => 100000, mode => groups, nodes => 9, workers => 4,
                   json => false},
                 Values).

a_value_may_stand_behind_an_equals_sign_test() ->
    {ok, Values, []} =
        atoll_cli_options:parse(atoll_cli_orbit:options(), [], ["--space=7", "--group-size=2"]),
    ?assertMatch(#{space := 7, group_size := 2}, Values).

what_follows_two_dashes_is_an_operand_test() ->
    ?assertMatch({ok, _, ["--json"]},
                 atoll_cli_options:parse([], ["[NAME]"], ["--", "--json"])).

groups_differ_by_one_node_at_most_test_() ->
    [?_assertEqual(Lengths, [length(P) || P <- atoll_cli_join:cut(lists:seq(1, N), K)])
     || {N, K, Lengths} <- [{9, 3, [3, 3, 3]}, {5, 2, [3, 2]}, {7, 3, [3, 2, 2]}, {4, 4, [1, 1, 1, 1]},
                            {3, 1, [3]}]].

outcome(Args) ->
    {_, {Kind, Sentence}} = atoll_cli:execute(Args),
    {Kind, lists:flatten(Sentence)}.

page(Module) ->
    {Name, Module} = lists:keyfind(Module, 2, atoll_cli:commands()),
    atoll_cli_help:page(Name, Module).
