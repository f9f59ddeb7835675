%% SPDX-License-Identifier: Apache-2.0
%% How it is seen that make was interrupted.
-module(atoll_cli_tie_tests).

-include_lib("eunit/include/eunit.hrl").

the_mask_of_a_process_says_whether_it_catches_sigint_test_() ->
    Text = fun(Mask) ->
        <<"Name:\tmake\nSigIgn:\t0000000000000002\nSigCgt:\t", Mask/binary, "\nCapInh:\t2\n">>
    end,
    [
        ?_assert(atoll_cli_tie:catches_interrupt(Text(<<"0000000001814207">>))),
        ?_assertNot(atoll_cli_tie:catches_interrupt(Text(<<"0000000001814205">>))),
        ?_assertNot(atoll_cli_tie:catches_interrupt(<<>>))
    ].
