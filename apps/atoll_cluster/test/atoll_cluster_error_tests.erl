%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cluster_error_tests).
-include_lib("eunit/include/eunit.hrl").

every_error_is_one_sentence_test_() ->
    Node = 'a1@127.0.0.1',
    Errors = [
        {bad_option, nodes, "must be above 0"}, {bad_option, [{nodes, 1}], "is not a map"},
        {name_in_use, "a"}, {not_running, "a"}, {no_answer, "a"}, {node_name_in_use, Node},
        {too_many_nodes, 1000, 40}, {path_too_long, "/tmp/long"}, {run_dir, "/tmp/x", enoent},
        {run_dir_unsafe, "/tmp/x"}, {control, "/tmp/x", eaddrinuse}, {watchdog, timeout},
        {epmd, not_found}, {cookie, {"/h/.erlang.cookie", eacces}}, {cookie, no_home},
        {node_failed, Node, boot_timeout, <<>>},
        {node_failed, Node, {exit_status, 1}, <<"bad\r\n\n flag \tx\n">>},
        {node_failed, Node, {something, 'else'}, <<"ov", 255, "er\n">>},
        {app_failed, Node, some, {"no such file or directory", "some.app"}},
        {node_down, Node}, {node_up, Node}, {unknown_node, Node}, {timeout, Node}, {busy, Node},
        {raised, error, badarg}, stopped, {anything, ['else']}
    ],
    [{lists:flatten(io_lib:format("~p", [E])), fun() -> is_sentence(atoll_cluster:format_error(E)) end} || E <- Errors].

is_sentence(Text) ->
    Line = unicode:characters_to_list(Text),
    ?assertMatch([Upper | _] when Upper >= $A, Line),
    ?assertEqual($., lists:last(Line)),
    ?assertNot(lists:member($\n, Line)).

a_failed_node_is_quoted_on_one_line_test() ->
    Error = {node_failed, 'a1@127.0.0.1', {exit_status, 1}, <<"bad\r\n\n flag \tx\n">>},
    ?assertEqual("Node a1@127.0.0.1 did not start: it ended with status 1, saying: bad flag x.",
        unicode:characters_to_list(atoll_cluster:format_error(Error))).
