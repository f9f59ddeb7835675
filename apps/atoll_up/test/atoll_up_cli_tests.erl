%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a cluster that is to be started is said before.
-module(atoll_up_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["up"], "the argument N is missing"},
        {["up", "many"], "N must be a whole number from 1 to 1,000, not \"many\""},
        {["up", "3", "4"], "the argument \"4\" is one too many"},
        {["up", "3", "--groups", "4"],
         "--groups must be at most the number of nodes, which is 3, not \"4\""},
        {["up", "3", "--groups", "0"],
         "--groups must be a whole number from 1 to 1,000, not \"0\""},
        {["up", "3", "-c", "a b"],
         "--cluster must be a letter and at most 39 letters, digits, _ or -, not \"a b\""},
        {["up", "3", "--overlay", "hyparvew"],
         "--overlay must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"hyparvew\"; did you mean hyparview?"},
        {["up", "3", "--overlay", "cliques"],
         "--overlay cliques wants --groups K: the groups say who is in which clique"},
        {["up", "3", "--option", "active_max=4"],
         "--option is for a strategy, and --overlay, which says which one, is missing"},
        {["up", "3", "--overlay", "hyparview", "--option", "active_max=x"],
         "--option: the option active_max must be a whole number from 1 to 2147483647, not \"x\""},
        {["down", "reef"], "the argument \"reef\" is one too many; a cluster is named with --cluster, or -c"}
    ]).

%% It would tell them nothing; nothing is started.
a_network_without_any_of_the_nodes_is_a_mistake_test() ->
    File = atoll_test_file:temporary("atoll_up_cli_tests"),
    ok = file:write_file(File, "{network, [{node, a@h}, {node, 'reef3@127.0.0.1'}]}.\n"),
    try
        ?assertEqual(
            {usage, "--network: " ++ File ++ " has none of the nodes that are to be started, such as reef1@127.0.0.1"},
            atoll_cli_line:outcome(["up", "2", "-c", "reef", "--network", File])
        ),
        ?assertMatch({ok, _}, atoll_view_cli_distance:args(#{network => File, distances => false}, ['reef2@127.0.0.1', 'reef3@127.0.0.1']))
    after
        ok = file:delete(File)
    end.

a_kind_is_read_as_it_is_shown_test() ->
    Read = atoll_up_cli_carrier:kind(),
    [?assertEqual({ok, Kind}, Read(atoll_view_kind:shown(Kind))) || Kind <- [auto, direct, {lanes, 1}, {lanes, 64}]],
    [?assertMatch({error, _}, Read(Text)) || Text <- ["", "lanes", "lanes0", "lanes65", "lanes4x", "lanes-1", "stock"]].
