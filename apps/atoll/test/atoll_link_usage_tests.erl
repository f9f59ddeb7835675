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

a_connection_without_them_is_unused_test() ->
    ?assertEqual(0, atoll_link_usage:uses('d@h', text())),
    ?assertEqual(0, atoll_link_usage:uses('unknown@h', text())).
