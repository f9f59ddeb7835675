%% SPDX-License-Identifier: Apache-2.0
-module(atoll_watch_cli_top_tests).

-include_lib("eunit/include/eunit.hrl").

seen(Node, State, Readings, Rates) ->
    #{node => Node, state => State, since => 0, why => none, readings => Readings, rates => Rates}.

screen(Rows) ->
    Up = seen('a@h', up, #{utilisation => 0.5, run_queue_total => 1, memory_total => 15000000, processes => 1234, mailbox_longest => 7,
                           {mailbox, <<"desk">>} => 7, uptime => 3661000},
              #{reductions => 12000.4, {dist_in, 'b@h'} => 1500.0, {dist_in, 'c@h'} => 500.0}),
    Seen = [Up, seen('b@h', down, #{processes => 9}, #{})],
    Alarms = [#{node => 'b@h', rule => node_down}],
    string:lexemes(unicode:characters_to_list(atoll_watch_cli_top:screen("reef", Seen, Alarms, Rows)), "\n").

what_a_node_said_before_it_was_down_is_not_shown_test() ->
    ?assertEqual(
        [
            "reef: 1 of 2 nodes up, 1 alarm",
            "node  state  utilisation  run queue  memory  processes  reductions/s  mailbox  of    in/s  out/s  up for  alarms",
            "a@h   up         50.00 %          1   15 MB      1,234        12,000        7  desk  2 kB      -  1 h 01",
            "b@h   down             -          -       -          -             -        -  -        -      -       -       1"
        ],
        screen(infinity)
    ).

who_has_no_place_on_a_terminal_is_counted_test() ->
    ?assertMatch([_, _, "a@h " ++ _, "and 1 more"], screen(1)).
