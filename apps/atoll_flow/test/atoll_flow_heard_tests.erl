%% SPDX-License-Identifier: Apache-2.0
%% What is known of the observed nodes, from what they have said.
-module(atoll_flow_heard_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HOUR_MS, 3600000).

one_that_is_lost_for_an_hour_is_observed_no_more_test() ->
    Down = atoll_flow_heard:down(b, 0, looked(a, look([b]), 0, atoll_flow_heard:new([a], []))),
    At = fun(Ms, Peers) -> element(2, atoll_flow_heard:picture(looked(a, look(Peers), Ms, Down))) end,
    ?assertEqual([a, b], At(?HOUR_MS, [])),
    ?assertEqual([a], At(?HOUR_MS + 1, [])),
    ?assertEqual([{a, up}, {b, down}], states(Down)),
    ?assertEqual([{a, up}, {b, up}], states(atoll_flow_heard:up(b, Down))).

what_a_forgotten_node_has_said_last_is_forgotten_too_test() ->
    In = fun(Its) -> (look([]))#{groups => Its} end,
    Both = looked(a, In([{reef, [a, b]}]), 0, looked(b, In([{reef, [a, b]}]), 0, atoll_flow_heard:new([a, b], []))),
    Left = looked(a, In([{reef, [a]}]), ?HOUR_MS + 1, atoll_flow_heard:down(b, 0, Both)),
    ?assertEqual({[{reef, [a]}], []}, atoll_flow_heard:picture(Left)),
    ?assertEqual([{a, up}, {b, unknown}], states(Left)).

one_that_others_still_name_is_lost_for_as_long_as_they_do_test() ->
    Named = [look([b]), (look([]))#{groups => [{reef, [a, b]}]}],
    [begin
        Down = atoll_flow_heard:down(b, 0, looked(a, Look, 0, looked(b, look([a]), 0, atoll_flow_heard:new([a, b], [])))),
        Still = looked(a, Look, 2 * ?HOUR_MS, Down),
        ?assertEqual([{a, up}, {b, down}], states(Still)),
        %% Nobody waits for a look at it.
        ?assertEqual(1, atoll_flow_heard:looked_after([a, b], Still)),
        ?assertEqual([{a, up}, {b, down}], states(looked(a, look([]), 3 * ?HOUR_MS, Still))),
        ?assertEqual([{a, up}, {b, unknown}], states(looked(a, look([]), 3 * ?HOUR_MS + 1, Still)))
    end || Look <- Named].

a_lost_node_has_no_load_test() ->
    Loaded = looked(a, (look([]))#{load := #{queues => [0], migrations => [], mailboxes => [], topology => undefined}}, 0, atoll_flow_heard:new([a], [])),
    Loads = fun(Heard) -> maps:get(loads, element(1, atoll_flow_heard:frame(#{at => 1, nodes => [a], groups => []}, false, Heard))) end,
    ?assertMatch([{a, _}], Loads(Loaded)),
    ?assertEqual([], Loads(atoll_flow_heard:down(a, 0, Loaded))).

there_are_two_thousand_at_most_and_the_others_are_counted_test() ->
    Peers = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 2005)],
    Heard = looked(a, look(Peers), 0, atoll_flow_heard:new([a], [])),
    ?assertEqual(2000, length(element(2, atoll_flow_heard:picture(Heard)))),
    ?assertMatch(#{beyond := 6}, atoll_flow_heard:status([], Heard)).

a_frame_has_what_has_come_since_the_one_before_test() ->
    Load = fun(N) -> (look([b]))#{load := #{queues => [0], migrations => [{1, 2, N}], mailboxes => [], topology => undefined}, connections := [{b, N, 10 * N}]} end,
    Of = #{at => 1, nodes => [a, b], groups => []},
    First = looked(a, Load(3), 0, atoll_flow_heard:new([a, b], [])),
    {#{edges := [], loads := [{a, #{migrations := [{1, 2, 3}]}}], counts := packets}, Told} = atoll_flow_heard:frame(Of, false, First),
    Twice = looked(a, Load(9), 2, looked(a, Load(5), 1, Told)),
    {#{edges := [{a, b, 6, 60}], loads := [{a, #{migrations := [{1, 2, 6}]}}]}, Later} = atoll_flow_heard:frame(Of, false, Twice),
    ?assertMatch({#{edges := [], loads := [{a, #{migrations := []}}]}, _}, atoll_flow_heard:frame(Of, false, Later)).

all_have_been_looked_at_when_the_last_that_is_there_was_test() ->
    After = fun(Heard) -> atoll_flow_heard:looked_after([a, b], Heard) end,
    None = atoll_flow_heard:new([a, b], []),
    One = atoll_flow_heard:looked(a, 7, look([]), [], 0, None),
    ?assertEqual([-1, -1, 7], [After(None), After(One), After(atoll_flow_heard:down(b, 0, One))]),
    ?assert(After(atoll_flow_heard:failed([a, b], timeout, None)) >= 7),
    ?assertEqual([false, true], [atoll_flow_heard:is_anybody(Heard) || Heard <- [None, One]]).

what_is_sent_to_one_whose_group_has_just_gone_was_sent_to_that_group_test() ->
    Groups = [{reef, [a, b]}],
    In = (look([]))#{groups := Groups},
    Both = atoll_flow_heard:looked(b, 1, In, Groups, 0, atoll_flow_heard:looked(a, 1, In, Groups, 0, atoll_flow_heard:new([a, b], []))),
    Sent = In#{connections := [{b, 4, 40}]},
    Sums = atoll_flow_sums:totals(atoll_flow_heard:sums(atoll_flow_heard:looked(a, 1, Sent, [], 1, Both))),
    ?assertEqual(#{{a, b, {[reef], {ok, reef}, [reef]}, wire, any} => {4, 40}}, Sums).

looked(Node, Look, Ms, Heard) -> atoll_flow_heard:looked(Node, 1, Look, [], Ms, Heard).

look(Peers) ->
    #{at => 0, life => 1, groups => none, peers => Peers, connections => [{Peer, 0, 0} || Peer <- Peers], tracing => off, sent => [], load => none}.

states(Heard) ->
    #{nodes := Nodes} = atoll_flow_heard:status([a, b], Heard),
    Nodes.
