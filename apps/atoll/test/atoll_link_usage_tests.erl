%% SPDX-License-Identifier: Apache-2.0
%% Reading the use of a connection.
-module(atoll_link_usage_tests).

-include_lib("eunit/include/eunit.hrl").

text() ->
    <<
        "=node:'a@h'\n"
        "=visible_node:8473\n"
        "Name: 'b@h'\n"
        "Controller: #Port<0.10>\n"
        "Remote monitoring: <0.94.0> <8473.0.0>\n"
        "Remote link: <8473.0.0> <0.94.0>\n"
        "=visible_node:8474\n"
        "Name: 'c@h'\n"
        "Remotely monitored by: <0.0.0> <8474.94.0>\n"
        "=visible_node:8475\n"
        "Name: 'd@h'\n"
        "Controller: #Port<0.11>\n"
        "=not_connected:3\n"
        "Name: 'nonode@nohost'\n"
        "\n"
    >>.

monitors_and_links_count_in_both_directions_test() ->
    ?assertEqual(2, atoll_link_usage:uses('b@h', text())),
    ?assertEqual(1, atoll_link_usage:uses('c@h', text())).

those_of_pg_do_not_count_test() ->
    {ok, Scope} = pg:start(?MODULE),
    try
        Line = fun(Pid) -> io_lib:format("Remote monitoring: ~w <8473.1.0>\nRemotely monitored by: ~w <8473.1.0>\n", [Pid, Pid]) end,
        With = fun(Pids) -> ["=visible_node:8473\nName: 'b@h'\n", [Line(Pid) || Pid <- Pids], "=not_connected:3\n"] end,
        ?assertEqual(0, atoll_link_usage:uses('b@h', With([Scope]))),
        ?assertEqual(4, atoll_link_usage:uses('b@h', With([Scope, self(), whereis(init)])))
    after
        exit(Scope, kill)
    end.

a_connection_without_them_is_unused_test() ->
    ?assertEqual(0, atoll_link_usage:uses('d@h', text())),
    ?assertEqual(0, atoll_link_usage:uses('unknown@h', text())).
