%% What the process that measures makes of what the runtime says.
-module(atoll_distance_tests).

-include_lib("eunit/include/eunit.hrl").

%% It was lost between the start of the process and its first look at what was connected.
a_connection_that_was_lost_meanwhile_is_not_up_test() ->
    ?assertEqual({[], #{}}, atoll_distance:event({atoll_distance, connected, 'lost@127.0.0.1'}, #{})),
    ?assertEqual({[{up, 'new@127.0.0.1'}], #{}}, atoll_distance:event({nodeup, 'new@127.0.0.1', []}, #{})).
