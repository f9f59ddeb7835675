%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cluster_output_tests).
-include_lib("eunit/include/eunit.hrl").

in_a_file_test_() ->
    {foreach,
        fun() ->
            File = string:trim(os:cmd("mktemp")),
            {ok, Output} = atoll_cluster_output:start_link(File),
            {File, Output}
        end,
        fun({File, Output}) ->
            true = unlink(Output),
            true = exit(Output, kill),
            ok = file:delete(File)
        end,
        [
            fun text_is_written/1,
            fun bytes_of_no_encoding_are_written_as_they_are/1,
            fun a_format_that_fails_fails_its_caller_alone/1,
            fun nothing_is_read/1,
            fun the_file_has_a_bound/1
        ]}.

text_is_written({File, Output}) ->
    ok = io:format(Output, "~ts ~b~n", ["\x{e9}\x{2713}", 1]),
    ok = io:requests(Output, [{put_chars, unicode, "a"}, nl]),
    ?_assertEqual({ok, <<"\x{e9}\x{2713} 1\na\n"/utf8>>}, file:read_file(File)).

bytes_of_no_encoding_are_written_as_they_are({File, Output}) ->
    ok = io:put_chars(Output, <<"a", 233, "b">>),
    ?_assertEqual({ok, <<"a", 233, "b">>}, file:read_file(File)).

a_format_that_fails_fails_its_caller_alone({File, Output}) ->
    ?assertError(badarg, io:format(Output, "~b~n", [x])),
    ok = io:format(Output, "on", []),
    ?_assertEqual({ok, <<"on">>}, file:read_file(File)).

nothing_is_read({_File, Output}) ->
    ?_assertEqual({error, enotsup}, io:get_line(Output, "")).

the_file_has_a_bound({File, Output}) ->
    Chunk = binary:copy(<<"x">>, 300000),
    [ok = io:put_chars(Output, Chunk) || _ <- lists:seq(1, 10)],
    {ok, Bin} = file:read_file(File),
    [?_assert(byte_size(Bin) < 1000100),
        ?_assertMatch({match, _}, re:run(Bin, "x\n\\(the rest is left out\\)\n$", [dollar_endonly]))].
