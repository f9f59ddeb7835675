%% SPDX-License-Identifier: Apache-2.0
%% Sessions without a ring: each turn fails, and at once.
-module(ring_sessions_tests).

-include_lib("eunit/include/eunit.hrl").

each_session_has_its_turns_however_short_the_time_test() ->
    #{events := [], failed := Failed} = ring_sessions:run([node()], #{sessions => 3, keys => 2, ms => 1, turns => 2000, seed => 1}, none),
    ?assert(Failed >= 3 * 2000).
