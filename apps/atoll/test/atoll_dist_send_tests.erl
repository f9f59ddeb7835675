%% SPDX-License-Identifier: Apache-2.0
%% Sending in a channel where there is none: as any other message. With channels it is in
%% atoll_dist_named_SUITE.
-module(atoll_dist_send_tests).

-include_lib("eunit/include/eunit.hrl").

without_the_carrier_it_is_sent_as_any_other_test() ->
    register(?MODULE, self()),
    [
        begin
            ?assertEqual(ok, atoll:send(To, {message, Options}, Options)),
            receive {message, Options} -> ok after 0 -> error(lost) end
        end
     || Options <- [#{}, #{channel => bulk}, #{key => 7}, #{channel => bulk, key => {a, b}}],
        To <- [self(), ?MODULE, {?MODULE, node()}, alias()]
    ],
    unregister(?MODULE).

other_options_are_refused_test() ->
    [?assertEqual({error, {bad_send, Options}}, atoll:send(self(), x, Options)) || Options <- [[], #{channels => bulk}, #{key => 1, x => 2}]].
