%% SPDX-License-Identifier: Apache-2.0
%% Who is connected in hiding is heard of when it is wanted, or speaks.
-module(atoll_hidden_tests).

-include_lib("eunit/include/eunit.hrl").

%% The events that follow from each in turn.
run(Outside) ->
    {Events, _} = lists:mapfoldl(fun atoll_hidden:events/2, atoll_hidden:new(), Outside),
    Events.

who_is_not_hidden_is_heard_of_at_once_test() ->
    ?assertEqual([[{up, a}], [{message, a, m}], [{down, a, r}]], run([{up, a}, {message, a, m}, {down, a, r}])).

who_stays_quiet_is_never_heard_of_test() ->
    ?assertEqual([[], [], [], []], run([{quiet, a}, {down, a, r}, {quiet, a}, {down, a, r}])).

who_speaks_is_up_before_it_test() ->
    ?assertEqual(
        [[], [{up, a}, {message, a, m}], [{message, a, n}], [{down, a, r}]],
        run([{quiet, a}, {message, a, m}, {message, a, n}, {down, a, r}])
    ).

who_is_wanted_is_up_once_test() ->
    ?assertEqual([[], [{up, a}], [], [{message, a, m}]], run([{quiet, a}, {wanted, a}, {wanted, a}, {message, a, m}])),
    %% And that of one that is not connected in hiding changes nothing.
    ?assertEqual([[{up, a}], []], run([{up, a}, {wanted, a}])).

who_is_told_of_twice_is_still_what_it_was_test() ->
    ?assertEqual([[], [{up, a}], [], [{down, a, r}]], run([{quiet, a}, {wanted, a}, {quiet, a}, {down, a, r}])).

the_next_connection_is_quiet_again_test() ->
    ?assertEqual(
        [[], [{up, a}], [{down, a, r}], [], [{up, a}]],
        run([{quiet, a}, {wanted, a}, {down, a, r}, {quiet, a}, {wanted, a}])
    ).

what_is_no_matter_of_a_peer_passes_test() ->
    Events = [{cast, {unreachable, a}}, {timeout, a}],
    ?assertEqual([[], [lists:nth(1, Events)], [lists:nth(2, Events)]], run([{quiet, a} | Events])).

%% Whether it is connected in hiding or not.
who_has_no_version_in_common_is_down_until_it_has_one_test() ->
    Apart = {down, a, no_common_version},
    ?assertEqual(
        [[{up, a}], [Apart], [], [], [], [{up, a}], [{message, a, m}], [{down, a, r}]],
        run([{up, a}, {apart, a}, {apart, a}, {up, a}, {wanted, a}, {together, a}, {message, a, m}, {down, a, r}])
    ),
    ?assertEqual([[], [], [], []], run([{quiet, a}, {apart, a}, {quiet, a}, {down, a, r}])),
    ?assertEqual([[], [{up, a}], [Apart], [], [{up, a}]], run([{quiet, a}, {wanted, a}, {apart, a}, {down, a, r}, {up, a}])).
