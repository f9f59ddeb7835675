%% SPDX-License-Identifier: Apache-2.0
%% Orbit and the demonstration, as far as no node is started.
-module(atoll_cases_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
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
         "--mode must be one of seq, par, mesh, groups, ring, groups-native, not \"star\""},
        {["orbit", "--nodes", "0"], "--nodes must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "1001"],
         "--nodes must be a whole number from 1 to 1,000, not \"1001\""},
        {["orbit", "--workers", "none"],
         "--workers must be a whole number from 1 to 1,000, not \"none\""},
        {["orbit", "--group-size", "0"],
         "--group-size must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "2", "--group-size", "3"],
         "--group-size must be at most --nodes, which is 2, not \"3\""},
        {["orbit", "--mode", "seq", "--nodes", "4"], "--nodes means nothing in mode seq"},
        {["orbit", "--mode", "seq", "--workers", "4"], "--workers means nothing in mode seq"},
        {["orbit", "--mode", "seq", "--statistics"], "--statistics means nothing in mode seq"},
        {["orbit", "--mode", "par", "--kill-node-every", "9"], "--kill-node-every means nothing in mode par"},
        {["orbit", "--mode", "mesh", "--group-size", "3"], "--group-size means nothing in mode mesh"},
        {["orbit", "--mode", "groups-native", "--separate-submasters"], "--separate-submasters means nothing in mode groups-native"},
        {["orbit", "--kill-node-every", "0.5"], "--kill-node-every must be 0, or a number of seconds from 1 to 3,600, not \"0.5\""},
        {["orbit", "--kill-node-every", "x"], "--kill-node-every must be 0, or a number of seconds from 1 to 3,600, not \"x\""},
        {["orbit", "--group_size", "3"],
         "there is no option --group_size; did you mean --group-size?"},
        {["orbit", "--frobnicate=3"], "there is no option --frobnicate"},
        {["orbit", "-n", "3"], "there is no option -n"},
        {["orbit", "g124"], "the argument \"g124\" is one too many"},
        {["demo", "9"], "the argument \"9\" is one too many"}
    ]).

a_run_is_called_by_the_sizes_of_its_groups_test_() ->
    [?_assertEqual(Head, lists:flatten(atoll_cases_orbit_result:head(#{mode => Mode, nodes => N, group_size => Size})))
     || {Mode, N, Size, Head} <- [{mesh, 9, 3, "full mesh"}, {seq, 1, 1, "seq"},
                                  {groups, 9, 3, "groups of 3"}, {groups, 5, 3, "one group of 5"},
                                  {groups, 7, 3, "groups of 3 to 4"}, {groups, 2, 1, "groups of 1"},
                                  {ring, 9, 3, "ring, groups of 3"},
                                  {'groups-native', 7, 3, "mesh over groups of 3 to 4"}]].

what_groups_do_worse_is_not_called_better_test() ->
    Of = fun(PerS, Us, Messages) -> #{registrations_per_s => PerS, cpu_us_per_op => Us, messages_per_op => Messages} end,
    Times = fun(Mesh, Groups) ->
        Table = unicode:characters_to_list(atoll_cases_demo:names_table(Mesh, Groups)),
        {match, Found} = re:run(Table, "([0-9.]+) times$", [global, multiline, {capture, all_but_first, list}]),
        lists:append(Found)
    end,
    ?assertEqual(["20", "4", "3"], Times(Of(100, 400, 30), Of(2000, 100, 10))),
    ?assertEqual(["0.5", "0.2", "0.1"], Times(Of(100, 400, 1), Of(50, 2000, 10))).

every_set_of_generators_is_read_test() ->
    Read = atoll_cases_orbit:generators(),
    ?assertEqual([{ok, Name} || Name <- orbit_generators:names()], [Read(atom_to_list(Name)) || Name <- orbit_generators:names()]),
    ?assertEqual([], [Text || Text <- ["", "g", "g6", "g21", "g11", "G1", " g1", "124"], {ok, _} <- [Read(Text)]]).

reading_generators_makes_no_atom_test() ->
    {error, _} = (atoll_cases_orbit:generators())("g_no_such_generators_anywhere"),
    ?assertError(badarg, list_to_existing_atom("g_no_such" ++ "_generators_anywhere")).
