%% SPDX-License-Identifier: Apache-2.0
%% The commands that look at a cluster and change it, as far as there is none.
-module(atoll_view_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["status", "--frobnicate"], "there is no option --frobnicate"},
        {["links", "--name", "reef"], "there is no option --name; a cluster is named with --cluster, or -c"},
        {["links", "-c", "reef", "--cluster", "reef"], "--cluster is given twice"},
        {["links", "-c", "reef", "--node", "a@h"], "--cluster and --node both say which cluster: not both"},
        {["links", "-c", "reef", "--cookie-file", code:which(?MODULE)],
         "--cookie-file is for --node; the cluster reef is reached as it was named"},
        {["links", "--node", "shop"], "--node must be the name of a node, as in a@host, or several with commas between, not \"shop\""},
        {["route", "a", "b", "--cookie-file", code:which(?MODULE)], "--cookie-file is for --node, which is missing"},
        {["distance"], "one of matrix, measure, draw must follow; \"atoll help distance\" says what they do"},
        {["distance", "measure", "--ratio", "0"], "--ratio must be a number from 1 to 1,000, not \"0\""},
        {["distance", "matrix", "--batches", "0"], "--batches must be a whole number from 1 to 100,000, not \"0\""},
        {["distance", "draw"], "the argument FILE is missing"}
    ]).

who_did_not_answer_is_told_from_who_had_not_measured_all_test_() ->
    [?_assertEqual(Sentence, lists:flatten(atoll_view_cli_distance:absent(#{silent => Silent, late => Late})))
     || {Silent, Late, Sentence} <- [
            {[], [], ""},
            {[a@h], [], "a@h did not answer"},
            {[], [a@h, b@h], "a@h, b@h had not measured all when the time was up (--deadline)"},
            {[c@h], [a@h], "c@h did not answer; a@h had not measured all when the time was up (--deadline)"}]].

what_a_route_takes_is_had_by_an_option_test() ->
    ?assertEqual(
        "this node has no directory; set the option directory of atoll; \"atoll up N --groups K --carrier atoll --relay\" does",
        lists:flatten(atoll_view_cli_route:why_not(directory_off))
    ).

a_connection_of_a_circuit_s_own_is_told_from_one_over_others_test() ->
    Row = fun(Path) ->
        Link = #{
            from => b, to => a, kind => relay, rtt_us => 40, connected_by => b, age_ms => 9, bytes_there => 11, bytes_back => 21
        },
        lists:last(string:lexemes(unicode:characters_to_list(atoll_view_cli_links:table([Link#{path => Path, sealed => true}])), "\n"))
    end,
    ?assert(lists:suffix("  own, sealed", Row([b, a]))),
    ?assert(lists:suffix("  g, sealed", Row([b, g, a]))).
