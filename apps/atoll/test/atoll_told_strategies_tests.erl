%% SPDX-License-Identifier: Apache-2.0
%% The strategies that are told their links, event by event: cliques and static.
-module(atoll_told_strategies_tests).

-include_lib("eunit/include/eunit.hrl").

new(Module, Given) ->
    {ok, Options} = atoll_options:complete(Module, Given),
    {State, []} = Module:init(
        #{self => n1, incarnation => 1, seed => 1, options => Options, remembered => []}, 0
    ),
    {Module, State}.

run(Events, {Module, State}) ->
    lists:foldl(
        fun(Event, {{_, S0}, Effects}) ->
            {S, More} = Module:handle(Event, 0, S0),
            {{Module, S}, Effects ++ More}
        end,
        {{Module, State}, []},
        Events
    ).

summary({Module, State}) -> Module:summary(State).
neighbours({Module, State}) -> Module:neighbours(State).

told(Cliques) -> {cast, {tell, {cliques, Cliques}}}.
hello(Node, Offer) -> [{up, Node}, {message, Node, {hello, false, Offer}}].

cliques() -> new(atoll_cliques, #{}).

who_shares_a_clique_is_wanted_test() ->
    {_, Effects} = run([told([{a, [n1, n2]}, {b, [n1, n2, n3]}, {c, [n4, n5]}])], cliques()),
    ?assertEqual([{want, n2}, {want, n3}], Effects).

of_two_cliques_one_may_go_test() ->
    {State, _} = run([told([{a, [n1, n2]}, {b, [n1, n2, n3]}])], cliques()),
    ?assertMatch({_, [{unwant, n3}]}, run([told([{a, [n1, n2]}])], State)),
    ?assertMatch({_, []}, run([told([{b, [n1, n2, n3]}])], State)).

what_was_told_last_is_all_test() ->
    Told = [told([{a, [n1, n2]}]), told([{a, [n1, n3]}, {b, [n4]}])],
    {State, _} = run(Told, cliques()),
    ?assertMatch(#{cliques := 1, is_gateway := false, co_members := 1}, summary(State)),
    ?assertMatch({_, []}, run([lists:last(Told)], State)),
    {None, Effects} = run([told([])], State),
    ?assertEqual([{unwant, n3}], Effects),
    ?assertMatch(#{cliques := 0}, summary(None)).

a_member_that_does_not_know_yet_is_no_neighbour_test() ->
    {State, _} = run([told([{a, [n1, n2]}]), {up, n2}], cliques()),
    ?assertEqual([], neighbours(State)),
    {Agreed, _} = run([{message, n2, {hello, false, true}}], State),
    ?assertEqual([n2], neighbours(Agreed)).

a_verdict_changes_nothing_test() ->
    {State, _} = run([told([{a, [n1, n2]}]) | hello(n2, true)], cliques()),
    ?assertMatch({State, []}, run([{cast, {dead, n2}}, {cast, {join, [n3]}}, {cast, {unreachable, n2}}], State)).

static() -> new(atoll_static, #{max_peers => 2, max_parted => 2}).

join(Node) -> {cast, {tell, {join, Node}}}.
part(Node) -> {cast, {tell, {part, Node}}}.

the_other_end_takes_the_joiner_for_a_peer_test() ->
    {State, Effects} = run(hello(n2, 1), static()),
    ?assert(lists:member({want, n2}, Effects)),
    ?assertEqual([n2], neighbours(State)).

it_takes_so_many_at_the_wish_of_others_test() ->
    {State, Effects} = run(hello(n2, 1) ++ hello(n3, 1) ++ hello(n4, 1), static()),
    ?assertEqual([n2, n3], neighbours(State)),
    ?assert(lists:member({send, n4, {hello, false, false}}, Effects)),
    ?assertMatch(#{refused := 1}, summary(State)).

a_hello_of_before_the_parting_is_answered_with_it_test() ->
    {State, _} = run([join(n2)] ++ hello(n2, 1) ++ [part(n2)], static()),
    {Still, Effects} = run([{message, n2, {hello, false, 1}}], State),
    ?assert(lists:member({send, n2, {part, 1}}, Effects)),
    ?assertEqual([], neighbours(Still)),
    {Again, _} = run([{message, n2, {hello, false, 2}}], State),
    ?assertEqual([n2], neighbours(Again)).

a_parting_of_before_the_join_is_overruled_test() ->
    {State, _} = run([join(n2), {up, n2}], static()),
    {Overruled, Effects} = run([{message, n2, {part, 7}}], State),
    ?assert(lists:member({send, n2, {hello, false, 8}}, Effects)),
    %% Once.
    {Parted, _} = run([{message, n2, {part, 8}}], Overruled),
    ?assertMatch(#{peers := 0, parted := 1}, summary(Parted)).

the_parted_are_bounded_test() ->
    {State, _} = run(lists:append([[join(N), part(N)] || N <- [n2, n3, n4]]), static()),
    ?assertMatch(#{parted := 2, forgotten := 1}, summary(State)).

contacts_are_for_who_has_no_peers_test() ->
    {State, Effects} = run([{cast, {join, [n3, n2]}}], static()),
    ?assertEqual([{want, n2}, {want, n3}], Effects),
    ?assertMatch({_, []}, run([{cast, {join, [n4]}}], State)).
