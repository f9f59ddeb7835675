%% SPDX-License-Identifier: Apache-2.0
%% Which nodes a watch knows, and what it makes of what managers say, without a node.
-module(atoll_watch_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{whatever_happens, whatever_happens(), 2000}]).

-define(NODES, [a, b, c, d, e, f]).
-define(MOST, 5).

up(Node, Life, Peers) ->
    #{node => Node, lease => 1, state => up, why => none, log => [], sample => #{at => 0, life => Life, peers => Peers, more => Life}, readings => {whole, #{processes => Life}}, rates => {whole, #{}}}.

failed(Node, State) -> #{node => Node, lease => 1, log => [], state => State, why => case State of refused -> "no"; _ -> none end}.

new(Named) -> atoll_watch_core:new(Named, #{max_nodes => ?MOST, forget => 100}).

%% Those are known that were met and neither removed nor forgotten, none of them beyond the most; each state that is told
%% follows from the one told before, and a node starts again when its life is another one.
whatever_happens() ->
    Outcome = oneof([{up, oneof([1, 2]), list(oneof(?NODES))}, down, silent, refused]),
    ?FORALL(Steps, list(frequency([{2, tick}, {8, {nth, pos_integer(), Outcome}}, {1, {oneof([add, remove]), oneof(?NODES)}}])), begin
        #{core := Core, said := Said} = World = lists:foldl(fun play/2, stepped(tick, #{core => new([a]), met => [], removed => [], said => #{}, lives => #{}, now => 0}), Steps),
        Nodes = atoll_watch_core:nodes(Core),
        [Node || #{node := Node} <- Nodes] =:= lists:sort(maps:get(met, World)) andalso length(Nodes) =< ?MOST andalso
            lists:all(fun(#{node := Node, state := State}) -> State =:= maps:get(Node, Said, unknown) end, Nodes)
    end).

play({nth, _, _}, #{met := []} = World) ->
    World;
play({nth, N, Outcome}, #{met := Met} = World) ->
    Node = lists:nth(1 + N rem length(Met), Met),
    stepped({looked, case Outcome of {up, Life, Peers} -> up(Node, Life, Peers); State -> failed(Node, State) end}, World);
play({remove, Node}, #{removed := Removed} = World) ->
    stepped({remove, Node}, World#{removed := [Node | Removed]});
play({add, Node}, #{removed := Removed} = World) ->
    stepped({add, Node}, World#{removed := [Is || Is <- Removed, Is =/= Node]});
play(tick, World) ->
    stepped(tick, World).

stepped(Input, #{core := Core0, now := Now} = World) ->
    {Effects, Core} = atoll_watch_core:step(Input, Now, Core0),
    lists:foldl(fun done/2, World#{core := Core, now := Now + 10}, Effects).

done({meet, Nodes}, #{met := Met, removed := Removed} = World) ->
    [] = [Node || Node <- Nodes, lists:member(Node, Met ++ Removed)],
    World#{met := Nodes ++ Met};
done({leave, Node}, #{met := Met} = World) ->
    true = lists:member(Node, Met),
    World#{met := Met -- [Node]};
done({tell, {state, Node, Was, Is}}, #{said := Said} = World) ->
    Was = maps:get(Node, Said, unknown),
    true = Is =/= Was,
    World#{said := Said#{Node => Is}};
done({tell, {forgotten, Node}}, #{said := Said, lives := Lives} = World) ->
    down = maps:get(Node, Said),
    World#{said := maps:remove(Node, Said), lives := maps:remove(Node, Lives)};
done({tell, {removed, Node}}, #{said := Said, lives := Lives} = World) ->
    World#{said := maps:remove(Node, Said), lives := maps:remove(Node, Lives)};
done({tell, {restarted, Node}}, #{lives := Lives} = World) ->
    World#{lives := Lives#{Node := again}};
done({tell, {looked, #{node := Node, state := up, sample := #{life := Life}}}}, #{lives := Lives} = World) ->
    true = lists:member(maps:get(Node, Lives, Life), [Life, again]),
    World#{lives := Lives#{Node => Life}};
done({tell, {looked, _}}, World) ->
    World.

%% One after the other: the effects of each.
run(Inputs, Core) ->
    lists:mapfoldl(fun({Now, Input}, C) -> atoll_watch_core:step(Input, Now, C) end, Core, Inputs).

who_is_known_is_met_test() ->
    {Effects, _} = run([{0, tick}, {1, {looked, up(a, 1, [b, c])}}], new([a])),
    ?assertMatch([[{meet, [a]}], [{tell, {state, a, unknown, up}}, {tell, {looked, #{node := a, state := up, readings := #{processes := 1}, sample := #{more := 1}}}}, {meet, [b, c]}]], Effects).

what_was_logged_is_told_once_test() ->
    Said = [{7, error, <<"x">>}],
    {Effects, _} = run([{0, tick}, {1, {looked, (up(a, 1, []))#{log := Said}}}, {6, {looked, (failed(a, down))#{log := Said}}}, {7, {looked, up(a, 1, [])}}], new([a])),
    ?assertEqual([{said, a, Said}, {said, a, Said}], [Event || {tell, {said, _, _} = Event} <- lists:append(Effects)]).

%% The modules of a node come when they are others.
what_nodes_say_can_be_compared_test() ->
    Says = fun(Facts) -> #{sample := Sample} = Look = up(a, 1, []), {looked, Look#{sample := Sample#{facts => Facts}}} end,
    Of = fun(Modules) -> #{otp => <<"25">>, modules => Modules, code => 1} end,
    {Known, Core} = lists:mapfoldl(fun(Input, Acc) ->
        {_, Next} = atoll_watch_core:step(Input, 0, Acc),
        [#{node := a, state := State, facts := Is}] = atoll_watch_core:abouts(Next),
        {{State, case Is of none -> none; #{modules := Modules} -> Modules end}, Next}
    end, new([a]), [tick, Says(Of([m])), Says(Of(same)), Says(none), Says(Of([n])), {looked, failed(a, down)}]),
    ?assertEqual([{unknown, none}, {up, [m]}, {up, [m]}, {up, [m]}, {up, [n]}, {down, [n]}], Known),
    %% They are not told to all who listen.
    [#{sample := Sample}] = atoll_watch_core:nodes(Core),
    ?assertNot(is_map_key(facts, Sample)).

a_node_that_is_silent_is_not_down_test() ->
    {Effects, Core} = run([{0, tick}, {1, {looked, up(a, 1, [])}}, {9, {looked, failed(a, silent)}}, {11, {looked, failed(a, down)}}, {16, {looked, up(a, 2, [])}}], new([a])),
    ?assertEqual([{state, a, unknown, up}, {state, a, up, silent}, {state, a, silent, down}, {restarted, a}, {state, a, down, up}],
                 [Event || {tell, Event} <- lists:append(Effects), element(1, Event) =/= looked]),
    ?assertMatch([#{node := a, state := up, since := 16}], atoll_watch_core:nodes(Core)).

%% Another manager goes on from there.
what_a_node_said_last_is_known_as_it_was_said_test() ->
    Changed = (up(a, 1, []))#{readings := {#{{run_queue, dirty_io} => 3}, []}},
    {_, Core} = run([{0, tick}, {1, {looked, up(a, 1, [])}}, {2, {looked, Changed}}, {3, {looked, failed(a, down)}}], new([a])),
    ?assertEqual(#{at => 0, log => [], facts => none, life => 1, peers => [], more => 1, readings => [{processes, 1}, {run_queue, dirty_io, 3}]}, atoll_watch_core:before(a, Core)),
    ?assertEqual(none, atoll_watch_core:before(b, Core)).

beyond_the_most_none_is_watched_and_that_is_counted_test() ->
    {_, Core} = run([{0, tick}, {1, {looked, up(a, 1, ?NODES)}}], new([a])),
    ?assertEqual(?MOST, length(atoll_watch_core:nodes(Core))),
    ?assertMatch(#{beyond := 1}, atoll_watch_core:counts(Core)).

who_is_down_and_known_to_nobody_is_forgotten_but_not_who_was_named_test() ->
    {_, Core0} = run([{0, tick}, {1, {looked, up(a, 1, [b])}}, {2, {looked, failed(b, down)}}, {5, tick}], new([a])),
    ?assertMatch({[[]], _}, run([{150, tick}], Core0)),
    %% It is asked again, and a knows it no more.
    {_, Core1} = run([{151, {looked, up(a, 1, [])}}, {152, {looked, failed(b, down)}}], Core0),
    {[Now], Core} = run([{160, tick}], Core1),
    ?assertEqual([{leave, b}, {tell, {forgotten, b}}], Now),
    {_, Last} = run([{161, {looked, failed(a, down)}}, {500, tick}], Core),
    ?assertMatch([#{node := a}], atoll_watch_core:nodes(Last)).

who_was_known_before_is_asked_and_forgotten_as_others_are_test() ->
    {[First, _, _, Later], Core} = run([{0, tick}, {1, {looked, up(a, 1, [c])}}, {2, {looked, failed(b, down)}}, {200, tick}],
                                       atoll_watch_core:new([a], #{known => [b, c], removed => [c], forget => 100})),
    ?assertEqual([{meet, [a, b]}], First),
    ?assertEqual([{leave, b}, {tell, {forgotten, b}}], Later),
    ?assertMatch([#{node := a}], atoll_watch_core:nodes(Core)).
