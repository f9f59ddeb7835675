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

a_key_sorts_pauses_or_ends_and_others_do_nothing_test() ->
    All = #{of_node => all, key => name, paused => false},
    One = All#{of_node := 'a@h', key := memory},
    ?assertEqual([All#{key := utilisation}, All#{key := mailbox}, All#{paused := true}, quit, All],
                 [atoll_watch_cli_top:pressed(Key, All) || Key <- "ul qz"]),
    %% Processes have no share of the schedulers.
    ?assertEqual([One, One#{key := reductions}], [atoll_watch_cli_top:pressed(Key, One) || Key <- "ur"]),
    ?assertEqual(All, atoll_watch_cli_top:pressed($\s, All#{paused := true})).

processes_have_what_they_did_since_the_look_before_test() ->
    Is = fun(Pid, Name, Reductions) ->
        #{pid => Pid, name => Name, initial_call => <<"shop:init/1">>, current => <<"gen_server:loop/7">>, memory => 12345, reductions => Reductions, message_queue => 2, status => <<"waiting">>}
    end,
    Asked = fun(At, Items) -> {ok, At, #{items => Items, total => 1234, looked_at => 1234}} end,
    Screen = fun(Before, Now) -> string:lexemes(unicode:characters_to_list(atoll_watch_cli_top_node:screen('a@h', reductions, Before, Now)), "\n") end,
    Now = Asked(3000, [Is(<<"<0.1.0>">>, <<"desk">>, 7000), Is(<<"<0.2.0>">>, null, 10)]),
    ?assertEqual([
        "a@h: 1,234 processes, by reductions",
        "process  name or first call  memory  reductions  in a second  mailbox  status   is in",
        "<0.1.0>  desk                 12 kB       7,000        3,000        2  waiting  gen_server:loop/7",
        "<0.2.0>  shop:init/1          12 kB          10            -        2  waiting  gen_server:loop/7"
    ], Screen(Asked(1000, [Is(<<"<0.1.0>">>, <<"desk">>, 1000)]), Now)),
    ?assertEqual(["a@h: It is gone."], Screen(Now, {error, "It is gone."})).

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["top", "a", "--sort", "utilisation"], "processes are not sorted by utilisation, but by memory, reductions or mailbox"},
        {["top", "a", "b"], "the argument \"b\" is one too many"}
    ]).
