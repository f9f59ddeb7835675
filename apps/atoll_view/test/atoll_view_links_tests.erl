%% SPDX-License-Identifier: Apache-2.0
%% Connections as their two ends tell of them, each shown once.
-module(atoll_view_links_tests).

-include_lib("eunit/include/eunit.hrl").

end_of(Peer, Started, In, Out) ->
    #{node => Peer, kind => direct, rtt_us => 40, started => Started, age_ms => 9, bytes_in => In, bytes_out => Out}.

link(From, To, By, There, Back) ->
    #{from => From, to => To, kind => direct, rtt_us => 40, connected_by => By, age_ms => 9, bytes_there => There, bytes_back => Back}.

a_connection_goes_from_the_end_that_connected_test() ->
    Told = [{a, [end_of(b, there, 10, 20)]}, {b, [end_of(a, here, 21, 11)]}],
    ?assertEqual([link(b, a, b, 11, 21)], atoll_view_links:paired(Told)),
    ?assertEqual([link(b, a, b, 11, 21)], atoll_view_links:paired(lists:reverse(Told))).

one_end_is_enough_test() ->
    ?assertEqual([link(b, a, b, 10, 20)], atoll_view_links:paired([{a, [end_of(b, there, 10, 20)]}])),
    ?assertEqual([link(b, a, b, 11, 21)], atoll_view_links:paired([{b, [end_of(a, here, 21, 11)]}])).

where_nobody_knows_who_connected_it_goes_by_name_test() ->
    Told = [{b, [end_of(a, unknown, 10, 20)]}, {a, [end_of(b, unknown, 21, 11)]}],
    ?assertEqual([link(a, b, unknown, 11, 21)], atoll_view_links:paired(Told)),
    ?assertEqual([link(a, b, unknown, 10, 20)], atoll_view_links:paired([{b, [end_of(a, unknown, 10, 20)]}])).

they_are_sorted_test() ->
    Told = [{c, [end_of(a, here, 1, 1), end_of(b, there, 1, 1)]}],
    ?assertEqual([{b, c}, {c, a}], [{F, T} || #{from := F, to := T} <- atoll_view_links:paired(Told)]).

a_circuit_is_shown_with_its_path_from_the_end_that_made_it_test() ->
    Circuit = #{kind => relay, path => [b, g, a], sealed => true},
    Told = [{a, [maps:merge(end_of(b, there, 10, 20), Circuit)]}, {b, [maps:merge(end_of(a, here, 21, 11), Circuit)]}],
    ?assertEqual([maps:merge(link(b, a, b, 11, 21), Circuit)], atoll_view_links:paired(Told)).

what_both_ends_write_in_channels_is_shown_test() ->
    Figures = #{lanes => 2, bytes => 1234, packets => 3, waiting => 0, dropped => 5},
    Told = [{a, [(end_of(b, there, 10, 20))#{channels => #{bulk => Figures}}]}, {b, [(end_of(a, here, 21, 11))#{channels => #{gossip => Figures}}]}],
    [#{channels := Channels} = Link] = atoll_view_links:paired(Told),
    ?assertEqual(link(b, a, b, 11, 21), maps:remove(channels, Link)),
    ?assertEqual([Figures#{from => a, to => b, channel => bulk}, Figures#{from => b, to => a, channel => gossip}], Channels),
    Shown = unicode:characters_to_list(atoll_view_cli_links:channel_table(Channels)),
    ?assertEqual(["b", "a", "gossip", "2", "3", "1,234", "0", "5"], lists:last([string:lexemes(Row, " ") || Row <- string:lexemes(Shown, "\n")])).
