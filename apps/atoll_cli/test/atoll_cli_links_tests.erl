%% Connections as their two ends tell of them, each shown once.
-module(atoll_cli_links_tests).

-include_lib("eunit/include/eunit.hrl").

end_of(Peer, Started, In, Out) ->
    #{node => Peer, kind => direct, rtt_us => 40, started => Started, age_ms => 9, bytes_in => In, bytes_out => Out}.

link(From, To, By, There, Back) ->
    #{from => From, to => To, kind => direct, rtt_us => 40, connected_by => By, age_ms => 9, bytes_there => There, bytes_back => Back}.

a_connection_goes_from_the_end_that_connected_test() ->
    Told = [{a, [end_of(b, there, 10, 20)]}, {b, [end_of(a, here, 21, 11)]}],
    ?assertEqual([link(b, a, b, 11, 21)], atoll_cli_links:paired(Told)),
    ?assertEqual([link(b, a, b, 11, 21)], atoll_cli_links:paired(lists:reverse(Told))).

one_end_is_enough_test() ->
    ?assertEqual([link(b, a, b, 10, 20)], atoll_cli_links:paired([{a, [end_of(b, there, 10, 20)]}])),
    ?assertEqual([link(b, a, b, 11, 21)], atoll_cli_links:paired([{b, [end_of(a, here, 21, 11)]}])).

where_nobody_knows_who_connected_it_goes_by_name_test() ->
    Told = [{b, [end_of(a, unknown, 10, 20)]}, {a, [end_of(b, unknown, 21, 11)]}],
    ?assertEqual([link(a, b, unknown, 11, 21)], atoll_cli_links:paired(Told)),
    ?assertEqual([link(a, b, unknown, 10, 20)], atoll_cli_links:paired([{b, [end_of(a, unknown, 10, 20)]}])).

they_are_sorted_test() ->
    Told = [{c, [end_of(a, here, 1, 1), end_of(b, there, 1, 1)]}],
    ?assertEqual([{b, c}, {c, a}], [{F, T} || #{from := F, to := T} <- atoll_cli_links:paired(Told)]).

a_kind_is_read_as_it_is_shown_test() ->
    Read = atoll_cli_carrier:kind(),
    [?assertEqual({ok, Kind}, Read(atoll_cli_carrier:shown(Kind))) || Kind <- [auto, direct, {lanes, 1}, {lanes, 64}]],
    [?assertMatch({error, _}, Read(Text)) || Text <- ["", "lanes", "lanes0", "lanes65", "lanes4x", "lanes-1", "stock"]].

nodes_with_the_carrier_keep_their_other_arguments_test() ->
    Carrier = {atoll, {lanes, 4}, true, no},
    #{args := Own} = atoll_cli_carrier:cluster(Carrier, #{}),
    ?assertEqual(["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{kind,{lanes,4}},{stock,accept},{faults,true}]"], Own),
    #{args := Made} = atoll_cli_carrier:cluster(Carrier, #{args => fun([_, _]) -> ["-x"] end}),
    ?assertEqual(Own ++ ["-x"], Made([a, b])),
    #{args := Relaying} = atoll_cli_carrier:cluster({atoll, auto, false, sealed}, #{}),
    ?assertEqual(
        ["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{kind,auto},{stock,accept},{faults,false},{seal,required}]",
         "-atoll", "directory", "on"],
        Relaying
    ),
    ?assertEqual(#{nodes => 1}, atoll_cli_carrier:cluster(stock, #{nodes => 1})).

a_circuit_is_shown_with_its_path_from_the_end_that_made_it_test() ->
    Circuit = #{kind => relay, path => [b, g, a], sealed => true},
    Told = [{a, [maps:merge(end_of(b, there, 10, 20), Circuit)]}, {b, [maps:merge(end_of(a, here, 21, 11), Circuit)]}],
    ?assertEqual([maps:merge(link(b, a, b, 11, 21), Circuit)], atoll_cli_links:paired(Told)).

a_connection_of_a_circuit_s_own_is_told_from_one_over_others_test() ->
    Row = fun(Path) ->
        Link = link(b, a, b, 11, 21),
        lists:last(string:lexemes(unicode:characters_to_list(atoll_cli_links:table([Link#{path => Path, sealed => true}])), "\n"))
    end,
    ?assert(lists:suffix("  own, sealed", Row([b, a]))),
    ?assert(lists:suffix("  g, sealed", Row([b, g, a]))).
