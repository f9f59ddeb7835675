%% SPDX-License-Identifier: Apache-2.0
%% What can be said wrong to atoll_distance, and is answered with a sentence; and what its process
%% makes of what the runtime says.
-module(atoll_distance_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TREE, {network, [{node, a@h}, {network, [{node, b@h}, {node, c@h}]}]}).

declared_test_() ->
    {foreach, fun atoll_distance:declared/0,
        fun
            ({ok, Before}) -> ok = atoll_distance:declare(Before);
            ({error, no_network}) -> ok = atoll_distance:declare(none)
        end,
        [
            fun a_term_is_declared_as_well_as_a_network/0,
            fun what_is_no_network_is_not_declared/0,
            fun a_count_that_is_none_is_a_sentence/0
        ]}.

a_term_is_declared_as_well_as_a_network() ->
    {ok, Network} = atoll_network:new(?TREE),
    [
        begin
            ok = atoll_distance:declare(none),
            ok = atoll_distance:declare(Given),
            ?assertEqual({ok, 0.5}, atoll_distance:distance(b@h, c@h)),
            ?assertEqual({ok, [c@h]}, atoll_distance:nearest(1, b@h))
        end
     || Given <- [?TREE, Network]
    ].

what_is_no_network_is_not_declared() ->
    ok = atoll_distance:declare(?TREE),
    {error, Error} = atoll_distance:declare({network, [{node, a@h}, {node, a@h}]}),
    ?assertEqual(
        "this is no network; subnet 2: the node a@h stands in the network twice, first as subnet 1",
        sentence(Error)
    ),
    {error, _} = atoll_distance:declare({file, "reef.network"}),
    ?assertEqual({ok, 1.0}, atoll_distance:distance(a@h, c@h)).

a_count_that_is_none_is_a_sentence() ->
    ok = atoll_distance:declare(?TREE),
    ?assertEqual({ok, []}, atoll_distance:nearest(0, a@h)),
    [
        begin
            {error, Error} = atoll_distance:nearest(Count, a@h),
            ?assertEqual(Sentence, sentence(Error))
        end
     || {Count, Sentence} <- [
            {-1, "how many nodes is a whole number, 0 or more, not -1"},
            {a, "how many nodes is a whole number, 0 or more, not a"}
        ]
    ].

sentence(Error) -> unicode:characters_to_list(atoll_distance:format_error(Error)).

%% It was lost between the start of the process and its first look at what was connected.
a_connection_that_was_lost_meanwhile_is_not_up_test() ->
    ?assertEqual({[], #{}}, atoll_distance:event({atoll_distance, connected, 'lost@127.0.0.1'}, #{})),
    ?assertEqual({[{up, 'new@127.0.0.1'}], #{}}, atoll_distance:event({nodeup, 'new@127.0.0.1', []}, #{})).
