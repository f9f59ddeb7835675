%% SPDX-License-Identifier: Apache-2.0
%% Injected faults: which packets are lost, and what is a fault.
-module(atoll_dist_fault_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'a@h').

own() -> atoll_dist_packet:own(?NODE).

pid() -> <<88, 119, 3, "a@h", 7:32, 0:32, 1:32>>.

%% SEND_SENDER and LINK.
control(send) -> <<104, 3, 97, 22, (pid())/binary, (pid())/binary>>;
control(link) -> <<104, 3, 97, 1, (pid())/binary, (pid())/binary>>.

whole(What) -> [<<131, 68, 0>>, control(What)].
first(Seq, Left) -> [<<131, 69, Seq:64, Left:64, 0>>, control(send)].
next(Seq, Left) -> [<<131, 70, Seq:64, Left:64>>, <<"data">>].

lost(Packets, Random, Faults0) ->
    {Lost, _} = lists:mapfoldl(fun(P, F) -> atoll_dist_fault:is_lost(P, own(), Random, F) end, Faults0, Packets),
    Lost.

dropping(Share) -> atoll_dist_fault:set({drop, Share}, atoll_dist_fault:new()).

whole_messages_are_lost_test() ->
    Packets = [first(1, 3), first(2, 2), next(1, 2), next(2, 1), next(1, 1), whole(send)],
    ?assertEqual([true || _ <- Packets], lost(Packets, 0.5, dropping(1))),
    ?assertEqual([false || _ <- Packets], lost(Packets, 0.5, dropping(0.5))).

a_message_that_has_begun_is_lost_to_its_end_though_healed_test() ->
    {true, Faults} = atoll_dist_fault:is_lost(first(1, 3), own(), 0.0, dropping(1)),
    Healed = atoll_dist_fault:set(heal, Faults),
    ?assertEqual([true, false, true, false], lost([next(1, 2), whole(send), next(1, 1), next(1, 1)], 0.0, Healed)).

no_other_signal_is_lost_test() ->
    ?assertEqual([false], lost([whole(link)], 0.0, dropping(1))).

what_is_a_fault_test() ->
    Good = [{drop, 0}, {drop, 0.3}, {delay, 0}, cut, {cut, 3}, black_hole, {black_hole, 0}, heal],
    ?assertEqual([true || _ <- Good], [atoll_dist_fault:is_fault(F, 4) || F <- Good]),
    Bad = [{drop, 1.1}, {drop, x}, {delay, -1}, {delay, 1.5}, {cut, 4}, {cut, -1}, {black_hole, x}, drop, []],
    ?assertEqual([false || _ <- Bad], [atoll_dist_fault:is_fault(F, 4) || F <- Bad]).
