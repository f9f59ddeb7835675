%% SPDX-License-Identifier: Apache-2.0
%% The options of a wire, and the sentences of its errors; no wire is needed for either.
-module(atoll_wire_tests).
-include_lib("eunit/include/eunit.hrl").

%% Also where there can be no wire: options are looked at first.
a_bad_option_is_one_sentence_test_() ->
    [
        {lists:flatten(io_lib:format("~p", [Option])), fun() ->
            {error, {bad_option, Key, _} = Error} = atoll_wire:start(maps:from_list([Option])),
            ?assertEqual(Key, element(1, Option)),
            Said = lists:flatten(io_lib:format("~ts", [atoll_wire:format_error(Error)])),
            ?assertMatch({match, _}, re:run(Said, "^Option [a-z_]+ [^\n]*\\.$"))
        end}
     || Option <- [
            {rtt_ms, -1}, {rtt_ms, "1"}, {rtt_ms, 60001}, {jitter_ms, -0.5}, {loss, 1.1}, {loss, -1}, {loss, half},
            {rate_mbit, -1}, {rate_mbit, 1.0e9}, {buffer, 1.5}, {buffer, -1}, {buffer, 1000000000}, {color, red}
        ]
    ].

options_are_a_map_test() ->
    ?assertMatch({error, {bad_option, [{rtt_ms, 1}], _}}, atoll_wire:start([{rtt_ms, 1}])).

every_error_is_one_sentence_test_() ->
    [
        ?_assertMatch({match, _}, re:run(unicode:characters_to_binary(atoll_wire:format_error(Error)), "^[A-Z][^\n]*\\.$"))
     || Error <- [
            not_linux, not_root, late, {lacks, "nsenter"}, {no_program, "/x"}, {unable, <<"A wire.\n">>},
            {failed, <<"A wire.">>}, {not_built, <<"wire.c:1:\n error.\n">>}
        ]
    ].
