%% SPDX-License-Identifier: Apache-2.0
%% Choosing by attributes in virtual time: callers are spread, and attributes that are asked for
%% often cost no questions.
-module(atoll_sim_attr_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, [a, b, c, d, e]).

%% 200 callers on 20 nodes among 20 equal nodes.
callers_are_spread_without_a_coordinator_test_() ->
    {timeout, 300, fun() ->
        Fullest = fun(Rule) ->
            lists:max([map_get(fullest, herd(#{rule => Rule, seed => Seed})) || Seed <- lists:seq(1, 30)])
        end,
        ?assert(Fullest(line) =< 1.5),
        %% What the rule is there for.
        ?assert(Fullest(random) > 1.8),
        ?assert(Fullest(naive) == 20.0)
    end}.

they_are_whoever_calls_and_however_far_test_() ->
    [
        {timeout, 600, fun() ->
            #{chosen := 200, fullest := Fullest} = herd(Options),
            ?assert(Fullest =< 1.5, {Options, Fullest})
        end}
     || Seed <- [1, 2, 3],
        Options <- [
            #{seed => Seed, nodes => 100},
            #{seed => Seed, latency => {uniform, 1, 15}},
            #{seed => Seed, within_ms => 100}
        ]
    ].

who_chooses_alone_asks_one_node_test() ->
    ?assertMatch(#{chosen := 1, messages_per_choice := M} when M =< 2, herd(#{callers => 1})).

herd(Options) ->
    #{chosen := Chosen} = Result = atoll_sim_attr:herd(Options),
    ?assertEqual(maps:get(callers, Options, 200), Chosen),
    Result.

a_choice_asks_nobody_when_the_attributes_are_told_around_test_() ->
    Nodes = atoll_tier:size(place_sim_nodes),
    {timeout, 600, fun() ->
        Result = atoll_sim_cluster:isolated(fun() -> atoll_sim_attr:gossip(#{nodes => Nodes, seconds => 80}) end),
        First = Nodes - 1,
        ?assertMatch(#{questions_first := First, silent := 0}, Result),
        ?assert(map_get(questions_per_choice, Result) < 1),
        ?assert(map_get(answers_per_choice, Result) > 0.05 * Nodes),
        %% No older than was asked for.
        ?assert(map_get(age_ms_max, Result) =< 60000),
        ?assert(map_get(bytes_per_node_per_s, Result) < 8 * Nodes)
    end}.

%% Questions, with nodes that are not as they should be. Links are made on demand.

silent_and_dead_nodes_are_named_by_the_deadline_test() ->
    World0 = world(?NODES),
    World1 = atoll_sim_world:kill(d, atoll_sim_world:pause(c, World0)),
    Begin = atoll_sim_world:now(World1),
    {Id, World2} = ask(a, ?NODES, 0, World1),
    World = atoll_sim_world:run(Begin + 1000, World2),
    #{Id := {At, {ok, Answer}}} = atoll_sim_world:watched(World),
    ?assertEqual(Begin + 500, At),
    ?assertMatch(
        #{answers := [{a, #{load := 1}, 0}, {b, _, 0}, {e, _, 0}], silent := [c], unreachable := [d]}, Answer
    ).

connections_are_given_back_test() ->
    World0 = world(?NODES),
    {Id, World1} = ask(a, ?NODES, 0, World0),
    World = atoll_sim_world:run(atoll_sim_world:now(World1) + 5000, World1),
    #{Id := {At, {ok, #{answers := Answers, silent := [], unreachable := []}}}} = atoll_sim_world:watched(World),
    ?assertEqual(?NODES, [N || {N, _, _} <- Answers]),
    %% As soon as all have answered.
    ?assert(At < atoll_sim_world:now(World0) + 100),
    [?assertEqual([], atoll_sim_world:links(N, World)) || N <- ?NODES].

a_node_that_is_asked_twice_at_once_answers_twice_test() ->
    {Id1, World1} = ask(a, ?NODES, 0, world(?NODES)),
    {Id2, World2} = ask(a, [a, b], 0, World1),
    World = atoll_sim_world:run(atoll_sim_world:now(World2) + 1000, World2),
    ?assertMatch(#{Id1 := {_, {ok, #{silent := []}}}, Id2 := {_, {ok, #{silent := []}}}}, atoll_sim_world:watched(World)).

a_silent_node_is_not_chosen_test() ->
    World0 = atoll_sim_world:pause(c, world(?NODES)),
    Request = {choose, #{tiers => [[c], [d]], predicate => atoll_predicate:any(), names => [], ms => 500}},
    {Id, World1} = atoll_sim_world:call(a, Request, World0),
    World = atoll_sim_world:run(atoll_sim_world:now(World1) + 5000, World1),
    ?assertMatch(#{Id := {_, {ok, d, 1, _}}}, atoll_sim_world:watched(World)),
    %% What it comes to later is taken back.
    Resumed = atoll_sim_world:run(atoll_sim_world:now(World) + 100, atoll_sim_world:resume(c, World)),
    {_, [{reply, me, #{claims := Line}}]} =
        atoll_attr_core:handle({call, me, summary}, atoll_sim_world:now(Resumed), core(c, Resumed)),
    ?assertEqual(0, Line).

a_node_that_does_not_fit_any_more_is_not_chosen_test() ->
    {ok, Predicate} = atoll_predicate:new({load, lt, 3}),
    Request = {choose, #{tiers => [[c], [b]], predicate => Predicate, names => [load], ms => 500}},
    {Id, World1} = atoll_sim_world:call(a, Request, world(?NODES)),
    World = atoll_sim_world:run(atoll_sim_world:now(World1) + 1000, World1),
    ?assertMatch(#{Id := {_, {ok, b, 1, #{load := 2}}}}, atoll_sim_world:watched(World)).

every_question_is_answered_whatever_happens_test_() ->
    {timeout, 600, fun() -> [faults(Seed) || Seed <- lists:seq(1, 60)] end}.

%% Nodes die, stop and are cut off while others ask and choose.
faults(Seed) ->
    Deeds = fun(I) ->
        Node = lists:nth(erlang:phash2({Seed, I, node}, 4) + 2, ?NODES),
        case erlang:phash2({Seed, I}, 7) of
            0 -> fun(W) -> when_alive(Node, fun atoll_sim_world:kill/2, W) end;
            1 -> fun(W) -> when_alive(Node, fun atoll_sim_world:pause/2, W) end;
            2 -> fun(W) -> back(Node, W) end;
            3 -> fun(W) -> atoll_sim_world:set({partition, [[Node]]}, W) end;
            4 -> fun(W) -> atoll_sim_world:set(heal, W) end;
            5 -> fun(W) -> element(2, ask(a, ?NODES, 0, W)) end;
            6 -> fun(W) ->
                Choose = {choose, #{tiers => [?NODES], predicate => atoll_predicate:any(), names => [load], ms => 500}},
                element(2, atoll_sim_world:call(a, Choose, W))
            end
        end
    end,
    World0 = world(?NODES),
    Begin = atoll_sim_world:now(World0),
    World1 = lists:foldl(fun(I, W) -> atoll_sim_world:at(Begin + 30 * I, Deeds(I), W) end, World0, lists:seq(1, 60)),
    World = atoll_sim_world:run(Begin + 60 * 30 + 600, World1),
    Asked = length([I || I <- lists:seq(1, 60), erlang:phash2({Seed, I}, 7) >= 5]),
    ?assertEqual(Asked, map_size(atoll_sim_world:watched(World)), Seed).

when_alive(Node, Deed, World) ->
    case atoll_sim_world:status(Node, World) of
        alive -> Deed(Node, World);
        _ -> World
    end.

back(Node, World) ->
    case atoll_sim_world:status(Node, World) of
        dead -> atoll_sim_world:start(Node, World);
        paused -> atoll_sim_world:resume(Node, World);
        alive -> World
    end.

ask(Node, Nodes, MaxAge, World) ->
    atoll_sim_world:call(
        Node,
        {ask, #{nodes => Nodes, names => [load], predicate => atoll_predicate:any(), ms => 500, max_age => MaxAge}},
        World
    ).

core(Node, World) ->
    atoll_sim_attr_node:core(atoll_sim_world:state(Node, World)).

%% Nodes that nobody has linked; a has the load 1, b 2, and so on.
world(Names) ->
    World = atoll_sim_world:new(#{
        protocol => atoll_sim_attr_node,
        config => fun(Name, Incarnation, Seed) ->
            #{
                attr => #{
                    self => Name,
                    incarnation => Incarnation * 1000000,
                    seed => Seed,
                    options => #{},
                    definitions => [{load, {dynamic, {sim, load}}}]
                },
                peers => [],
                value => fun(Node, load, _Now) -> hd(atom_to_list(Node)) - $a + 1 end
            }
        end,
        seed => 1,
        latency => {uniform, 1, 5},
        watch => {
            fun
                (Now, _Node, {reply, Id, Answer}, Replies) -> Replies#{Id => {Now, Answer}};
                (_, _, _, Replies) -> Replies
            end,
            #{}
        }
    }),
    atoll_sim_world:run(100, lists:foldl(fun atoll_sim_world:start/2, World, Names)).
