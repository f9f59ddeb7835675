%% SPDX-License-Identifier: Apache-2.0
%% Whom a watcher asks, and what it makes of the answers, without a node.
-module(atoll_watch_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{whatever_happens, whatever_happens(), 2000}]).

-define(NODES, [a, b, c, d, e, f]).
-define(AT_ONCE, 2).
-define(MOST, 5).

sample(Life, Peers) -> #{at => 0, life => Life, peers => Peers, readings => [{processes, 1}], log => [], facts => none}.

new(Named) -> atoll_watch_core:new(Named, #{at_once => ?AT_ONCE, max_nodes => ?MOST, forget => 100}).

%% None is asked that was removed by hand. No node is asked twice at once, no more than so many are, none beyond the most; each state that is told
%% follows from the one told before; and at the end of a period in which all have answered
%% everybody was asked.
whatever_happens() ->
    Life = oneof([1, 2]),
    Outcome = oneof([{up, Life, list(oneof(?NODES))}, down, silent, {refused, "no"}]),
    ?FORALL(Steps, list(frequency([{4, tick}, {8, {nth, pos_integer(), Outcome}}, {1, {oneof([add, remove]), oneof(?NODES)}}])), begin
        World0 = #{core => new([a]), asked => [], said => #{}, now => 0},
        #{core := Core, asked := Asked, now := Now} = World = lists:foldl(fun play/2, World0, Steps),
        %% Whoever is still asked answers, then there is a period.
        Quiet = lists:foldl(fun(_, W) -> play({nth, 1, {up, 1, []}}, W) end, play({add, a}, World), lists:seq(1, 20)),
        Ticked = play(tick, Quiet),
        Before = length(maps:get(asked, Ticked)),
        Ended = lists:foldl(fun(_, W) -> play({nth, 1, {up, 1, []}}, W) end, Ticked, lists:seq(1, 20)),
        length(Asked) =< ?AT_ONCE andalso length(atoll_watch_core:nodes(Core)) =< ?MOST andalso Now >= 0 andalso
            Before =< ?AT_ONCE andalso
            lists:all(fun(#{state := State}) -> State =:= up end, atoll_watch_core:nodes(maps:get(core, Ended))) andalso
            atoll_watch_core:turns(maps:get(core, Ended)) > 0
    end).

play({nth, _, _}, #{asked := []} = World) ->
    World;
play({nth, N, Outcome}, #{asked := Asked} = World) ->
    Node = lists:nth(1 + N rem length(Asked), Asked),
    Input =
        case Outcome of
            {up, Life, Peers} -> {answered, Node, sample(Life, Peers)};
            Failure -> {failed, Node, Failure}
        end,
    stepped(Input, World#{asked := Asked -- [Node]});
play({remove, Node}, World) ->
    #{core := Core} = Removed = stepped({remove, Node}, World),
    error = atoll_watch_core:node(Node, Core),
    Removed#{removed => [Node | maps:get(removed, World, [])]};
play({add, Node}, World) ->
    stepped({add, Node}, World#{removed => lists:delete(Node, lists:usort(maps:get(removed, World, [])))});
play(tick, World) ->
    stepped(tick, World).

stepped(Input, #{core := Core0, now := Now} = World) ->
    {Effects, Core} = atoll_watch_core:step(Input, Now, Core0),
    lists:foldl(fun done/2, World#{core := Core, now := Now + 10}, Effects).

done({ask, Node}, #{asked := Asked} = World) ->
    false = lists:member(Node, Asked ++ maps:get(removed, World, [])),
    true = length(Asked) < ?AT_ONCE,
    World#{asked := [Node | Asked]};
done({tell, {state, Node, Was, Is}}, #{said := Said} = World) ->
    Was = maps:get(Node, Said, unknown),
    true = Is =/= Was,
    World#{said := Said#{Node => Is}};
done({tell, {forgotten, Node}}, #{said := Said} = World) ->
    down = maps:get(Node, Said),
    World#{said := maps:remove(Node, Said)};
done({tell, {removed, Node}}, #{said := Said} = World) ->
    World#{said := maps:remove(Node, Said)};
done({leave, Node}, #{asked := Asked} = World) ->
    World#{asked := Asked -- [Node]};
done(_, World) ->
    World.

%% One after the other: the effects of each.
run(Inputs, Core) ->
    lists:mapfoldl(fun({Now, Input}, C) -> atoll_watch_core:step(Input, Now, C) end, Core, Inputs).

who_is_known_is_met_and_asked_test() ->
    {Effects, _} = run([{0, tick}, {1, {answered, a, sample(1, [b, c])}}], new([a])),
    ?assertMatch([[{compare, [#{node := a, state := unknown}]}, {meet, [a]}, {ask, a}], [{tell, {state, a, unknown, up}}, {tell, {looked, #{node := a, state := up, readings := #{processes := 1}}}}, {meet, [b, c]}, {ask, b}, {ask, c}]], Effects).

what_was_logged_is_told_once_test() ->
    {Effects, Core} = run([{0, tick}, {1, {answered, a, (sample(1, []))#{log := [{7, error, <<"x">>}]}}}, {5, tick}, {6, {answered, a, sample(1, [])}}], new([a])),
    ?assertEqual([{said, a, [{7, error, <<"x">>}]}], [Event || {tell, {said, _, _} = Event} <- lists:append(Effects)]),
    ?assertNot(is_map_key(log, hd(atoll_watch_core:nodes(Core)))).

%% The modules of a node come when they are others.
what_nodes_say_is_compared_when_a_period_begins_test() ->
    Facts = fun(Modules) -> (sample(1, []))#{facts := #{otp => <<"25">>, modules => Modules}} end,
    Compared = fun(Effects) -> [[{Node, State, case Is of none -> none; #{modules := Modules} -> Modules end} || #{node := Node, state := State, facts := Is} <- Abouts] || {compare, Abouts} <- Effects] end,
    {Effects, _} = run([{0, tick}, {1, {answered, a, Facts([m])}}, {5, tick}, {6, {answered, a, Facts(same)}}, {10, tick}, {11, {answered, a, sample(1, [])}},
                        {15, tick}, {16, {answered, a, Facts([n])}}, {20, tick}, {21, {failed, a, down}}, {25, tick}], new([a])),
    ?assertEqual([[{a, unknown, none}], [{a, up, [m]}], [{a, up, [m]}], [{a, up, [m]}], [{a, up, [n]}], [{a, down, [n]}]], lists:append([Compared(E) || E <- Effects])).

a_node_that_is_silent_is_not_down_test() ->
    {Effects, Core} = run([{0, tick}, {1, {answered, a, sample(1, [])}}, {5, tick}, {9, {failed, a, silent}}, {10, tick}, {11, {failed, a, down}},
                           {15, tick}, {16, {answered, a, sample(2, [])}}], new([a])),
    ?assertEqual([{state, a, unknown, up}, {state, a, up, silent}, {state, a, silent, down}, {restarted, a}, {state, a, down, up}],
                 [Event || {tell, Event} <- lists:append(Effects), element(1, Event) =/= looked]),
    ?assertMatch([#{node := a, state := up, since := 16}], atoll_watch_core:nodes(Core)).

a_turn_that_comes_too_early_is_missed_and_counted_test() ->
    {Effects, Core} = run([{0, tick}, {5, tick}], new([a])),
    ?assertEqual([1, 0], [length([N || {ask, N} <- E]) || E <- Effects]),
    ?assertEqual(#{missed => 1, beyond => 0}, atoll_watch_core:counts(Core)).

those_that_are_up_are_asked_first_test() ->
    {Effects, _} = run([{0, tick}, {1, {answered, a, sample(1, [])}}, {1, {failed, b, down}}, {2, {answered, c, sample(1, [])}}, {5, tick}], new([a, b, c])),
    ?assertEqual([a, c], [N || {ask, N} <- lists:last(Effects)]).

beyond_the_most_none_is_watched_and_that_is_counted_test() ->
    {_, Core} = run([{0, tick}, {1, {answered, a, sample(1, ?NODES)}}], new([a])),
    ?assertEqual(?MOST, length(atoll_watch_core:nodes(Core))),
    ?assertMatch(#{beyond := 1}, atoll_watch_core:counts(Core)).

who_is_down_and_known_to_nobody_is_forgotten_but_not_who_was_named_test() ->
    {_, Core0} = run([{0, tick}, {1, {answered, a, sample(1, [b])}}, {2, {failed, b, down}}, {5, tick}], new([a])),
    {[Still], Core1} = run([{150, tick}], Core0),
    ?assertEqual([], [Event || {tell, {forgotten, _} = Event} <- Still]),
    %% It is asked again, and a knows it no more.
    {_, Core2} = run([{151, {answered, a, sample(1, [])}}, {152, {failed, b, down}}], Core1),
    {[Now], Core} = run([{160, tick}], Core2),
    ?assertEqual([b], [Node || {tell, {forgotten, Node}} <- Now]),
    {_, Last} = run([{161, {failed, a, down}}, {500, tick}], Core),
    ?assertMatch([#{node := a}], atoll_watch_core:nodes(Last)).

who_was_known_before_is_asked_and_forgotten_as_others_are_test() ->
    {[First, _, _, Later], Core} = run([{0, tick}, {1, {answered, a, sample(1, [c])}}, {2, {failed, b, down}}, {200, tick}],
                                       atoll_watch_core:new([a], #{known => [b, c], removed => [c], forget => 100})),
    ?assertEqual([[a, b]], [Met || {meet, Met} <- First]),
    ?assertEqual([b], [Node || {tell, {forgotten, Node}} <- Later]),
    ?assertMatch([#{node := a}], atoll_watch_core:nodes(Core)).
