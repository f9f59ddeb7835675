%% SPDX-License-Identifier: Apache-2.0
%% Replicas in simulated clusters: whatever happens, all that live end equal, and with the values that a model says; and what
%% that costs is bounded.
-module(atoll_crdt_replica_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_crdt_world, [pass/2, update/5, online/3, names/1, values/2, equal/1, summary/2]).

set(Setting, World) -> atoll_sim_world:set(Setting, World).

cluster(Count, Options) -> atoll_crdt_world:new(Count, #{options => Options}, 1).

count(Node, Times, World) -> lists:foldl(fun(_, W) -> pass(50, update(Node, hits, gcounter, increment, W)) end, World, lists:seq(1, Times)).

%% Ms until a condition holds, looked at each 100 ms.
await(IsTrue, Max, World) -> await(IsTrue, 0, Max, World).

await(IsTrue, Ms, Max, World) ->
    case IsTrue(World) of
        true ->
            {Ms, World};
        false ->
            ?assert(Ms < Max),
            await(IsTrue, Ms + 100, Max, pass(100, World))
    end.

has_all(N) -> fun(World) -> [V || {_, V} <- values(hits, World), V =/= {ok, N}] =:= [] end.

%% Equal again

two_sides_of_a_partition_become_equal_test_() ->
    {timeout, 120, [{atom_to_list(How), fun() -> two_sides(How) end} || How <- [state, delta, broadcast]]}.

two_sides(How) ->
    Names = names(30),
    {Here, There} = lists:split(15, Names),
    Apart = pass(15000, set({partition, [Here, There]}, cluster(30, #{how => How}))),
    Wrote = pass(5000, count(n30, 20, count(n01, 20, Apart))),
    ?assertEqual([{ok, 20}], lists:usort([V || {_, V} <- values(hits, Wrote)])),
    {Ms, _} = await(has_all(40), 60000, set(heal, Wrote)),
    ?assert(Ms =< 20000, Ms).

who_starts_late_or_anew_has_all_test_() ->
    {timeout, 120, [{atom_to_list(How), fun() -> late(How) end} || How <- [state, delta, broadcast]]}.

late(How) ->
    Begun = atoll_crdt_world:new(10, #{options => #{how => How}, late => [n10]}, 2),
    World = pass(5000, count(n01, 30, Begun)),
    {_, Late} = await(has_all(30), 20000, atoll_sim_world:start(n10, World)),
    Killed = pass(10000, atoll_sim_world:kill(n03, Late)),
    {_, Anew} = await(has_all(30), 20000, atoll_sim_world:start(n03, Killed)),
    ?assert(equal(Anew)).

%% What it counted off line comes when it is back, and nothing goes to it meanwhile.
who_was_off_line_tells_and_is_told_test_() ->
    {timeout, 120, [{atom_to_list(How), fun() -> off_line(How) end} || How <- [state, delta, broadcast]]}.

off_line(How) ->
    Off = online(n4, false, cluster(8, #{how => How})),
    World = pass(10000, count(n4, 5, count(n1, 7, Off))),
    ?assertEqual([{ok, 5}], [V || {n4, V} <- values(hits, World)]),
    ?assertEqual([{ok, 7}], lists:usort([V || {Node, V} <- values(hits, World), Node =/= n4])),
    case How of
        %% Broadcasts go to all.
        broadcast -> ok;
        %% Others may say hello before they hear that it is gone.
        _ -> ?assert(maps:get(unheard, summary(n4, World)) < 20)
    end,
    {_, _} = await(has_all(12), 20000, online(n4, true, World)).

%% What it costs

deltas_say_nothing_when_all_is_said_test() ->
    World = pass(20000, count(n1, 20, atoll_crdt_world:new(8, #{strategy => mesh, options => #{how => delta}}, 1))),
    ?assert((has_all(20))(World)),
    Sent = fun(W) -> [maps:get(sent, summary(Node, W)) || Node <- names(8)] end,
    ?assertEqual(Sent(World), Sent(pass(60000, World))).

deltas_cost_less_than_states_test() ->
    Bytes = fun(How, Kinds) ->
        World = lists:foldl(fun(N, W) -> count(lists:nth(1 + N rem 20, names(20)), 1, W) end, cluster(20, #{how => How}), lists:seq(1, 400)),
        After = pass(5000, World),
        ?assert((has_all(400))(After)),
        lists:sum([B || Node <- names(20), {Kind, #{bytes := B}} <- maps:to_list(maps:get(sent, summary(Node, After))), lists:member(Kind, Kinds)])
    end,
    ?assert(Bytes(delta, [delta, ack, digest, wanted, state, hello]) < Bytes(state, [state])).

%% A neighbour that is off line for longer than the buffer holds gets states, of what differs, when it is back.
a_forgotten_delta_is_replaced_by_the_state_test() ->
    Begun = update(n1, calm, max, {put, 1}, cluster(4, #{how => delta, buffer_max => 5})),
    World = count(n1, 50, online(n4, false, pass(5000, Begun))),
    #{buffered := Buffered, forgotten := Forgotten} = summary(n1, World),
    ?assert(Buffered =< 5),
    ?assert(Forgotten > 0),
    Before = state_bytes(World),
    {_, Equal} = await(has_all(50), 20000, online(n4, true, World)),
    ?assert(state_bytes(Equal) > Before),
    ?assert(lists:sum([maps:get(fallbacks, summary(Node, Equal)) || Node <- names(4)]) > 0).

state_bytes(World) ->
    lists:sum([B || Node <- atoll_sim_world:alive(World), #{state := #{bytes := B}} <- [maps:get(sent, summary(Node, World))]]).

a_buffer_is_bounded_by_bytes_too_test() ->
    Large = fun(N, W) -> update(n1, {o, N}, max, {put, binary:copy(<<N>>, 1000)}, W) end,
    World = lists:foldl(Large, cluster(3, #{how => delta, buffer_bytes => 5000}), lists:seq(1, 100)),
    #{buffered_bytes := Bytes, forgotten := Forgotten} = summary(n1, World),
    ?assert(Bytes =< 5000),
    ?assert(Forgotten >= 94),
    ?assert(equal(pass(20000, World))).

%% A server of very many clients may come to nothing but reading: what waits for it must not grow with the time.
who_does_not_answer_is_told_less_and_less_often_test_() ->
    [
        {atom_to_list(How), fun() ->
            {S0, _} = atoll_crdt_replica_core:init(#{self => a, life => <<"a">>, seed => 1, options => #{how => How}}, 0),
            {S1, _} = atoll_crdt_replica_core:handle({up, b}, 0, S0),
            {S2, []} = atoll_crdt_replica_core:handle({message, b, {<<"b">>, {ack, <<"a">>, 0}}}, 0, S1),
            {Silent, S3} = ticks(320, S2),
            %% At once, and after 0, 1, 3, 7 and 15 intervals, and then after 31 each time.
            ?assertEqual([1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320], [N || {N, _} <- Silent]),
            %% It answers the last thing that it was told, and is told all again.
            {_, Last} = lists:last(Silent),
            {S4, []} = atoll_crdt_replica_core:handle({message, b, {<<"b">>, {ack, <<"a">>, Last}}}, 0, S3),
            ?assertMatch({[{1, _}], _}, ticks(1, S4)),
            %% One that comes back on line too.
            {S5, _} = atoll_crdt_replica_core:handle({message, b, {<<"b">>, hello}}, 0, S3),
            ?assertMatch({[{1, _}], _}, ticks(1, S5))
        end}
     || How <- [state, delta, broadcast]
    ].

%% In which of so many intervals, each with a change, the neighbour is told something, and up to which number.
ticks(Count, S0) ->
    lists:foldl(
        fun(N, {Told, S1}) ->
            {S2, _} = atoll_crdt_replica_core:handle({call, me, {update, hits, gcounter, increment}}, 0, S1),
            {S3, Effects} = atoll_crdt_replica_core:handle({timeout, tick}, 0, S2),
            {Told ++ [{N, element(2, Body)} || {send, b, {_, Body}} <- Effects], S3}
        end,
        {[], S0},
        lists:seq(1, Count)
    ).

%% A life is an entry, however often it has changed an object; whoever only reads it is none.
an_object_grows_with_the_lives_that_changed_it_and_with_nothing_else_test() ->
    Grown = fun(Lives, Changes) ->
        lists:foldl(
            fun(Life, {Counter, Set}) ->
                lists:foldl(
                    fun(N, {C, S}) ->
                        {ok, C1, _} = atoll_crdt:update(increment, Life, C),
                        {ok, S1, _} = atoll_crdt:update({add, N}, Life, S),
                        {ok, S2, _} = atoll_crdt:update({remove, N}, Life, S1),
                        {C1, S2}
                    end,
                    {Counter, Set},
                    lists:seq(1, Changes)
                )
            end,
            {atoll_crdt:new(gcounter), atoll_crdt:new(set)},
            [<<Life:64>> || Life <- lists:seq(1, Lives)]
        )
    end,
    Bytes = fun({Counter, Set}) -> {atoll_crdt:bytes(Counter), atoll_crdt:bytes(Set)} end,
    {Empty, _} = Bytes(Grown(0, 0)),
    {Once, OnceSet} = Bytes(Grown(100, 1)),
    {Often, OftenSet} = Bytes(Grown(100, 100)),
    %% A life is 8 bytes with 5 to say so, and its number 2, or 5 when that is large.
    ?assertEqual(100 * 15, Once - Empty),
    ?assertEqual(100 * 15, Often - Empty),
    ?assertEqual(OnceSet, OftenSet),
    {Twice, TwiceSet} = Bytes(Grown(200, 1)),
    ?assertEqual({100 * 15, 100 * 15}, {Twice - Once, TwiceSet - OnceSet}).

objects_are_bounded_and_another_type_is_refused_test() ->
    World = pass(5000, update(n2, a, gcounter, increment, cluster(3, #{how => state, objects_max => 2}))),
    State = atoll_sim_world:state(n1, crdt, World),
    Ask = fun(Request, S0) ->
        {S, [{reply, me, Answer} | _]} = atoll_crdt_replica_core:handle({call, me, Request}, 0, S0),
        {Answer, S}
    end,
    ?assertMatch({{error, {other_type, a, gcounter, set}}, State}, Ask({update, a, set, {add, 1}}, State)),
    ?assertMatch({{error, {no_such_type, heap}}, State}, Ask({update, b, heap, x}, State)),
    ?assertMatch({{error, {crdt, {no_such_operation, gcounter, x}}}, State}, Ask({update, a, gcounter, x}, State)),
    {ok, Two} = Ask({update, b, set, {add, 1}}, State),
    {Full, Two} = Ask({update, c, set, {add, 1}}, Two),
    ?assertEqual({error, {too_many_objects, 2}}, Full),
    %% From elsewhere too, and it is counted.
    Told = {message, n2, {<<"life">>, {state, 0, [{b, atoll_crdt:new(gcounter)}, {c, atoll_crdt:new(set)}]}}},
    {After, []} = atoll_crdt_replica_core:handle(Told, 0, Two),
    ?assertMatch(#{refused := 2, objects := 2}, atoll_crdt_replica_core:summary(After)).

%% Both have made it before they heard of each other: one of the two stays, on all, and nobody goes on about it.
of_two_types_of_one_name_one_stays_everywhere_test_() ->
    {timeout, 120, [{atom_to_list(How), fun() -> two_types(How) end} || How <- [state, delta, broadcast]]}.

two_types(How) ->
    Names = names(6),
    {Here, There} = lists:split(3, Names),
    Apart = pass(15000, set({partition, [Here, There]}, cluster(6, #{how => How}))),
    Made = pass(5000, update(n6, x, set, {add, 1}, update(n1, x, gcounter, increment, Apart))),
    ?assertEqual([{ok, 1}, {ok, [1]}], lists:usort([V || {_, V} <- values(x, Made)])),
    {_, Healed} = await(fun(W) -> lists:usort([V || {_, V} <- values(x, W)]) =:= [{ok, [1]}] end, 40000, set(heal, Made)),
    Quiet = pass(10000, Healed),
    Told = fun(W) -> lists:sum([N || Node <- Names, {Kind, #{messages := N}} <- maps:to_list(maps:get(sent, summary(Node, W))), Kind =:= delta orelse Kind =:= state orelse Kind =:= wanted]) end,
    Later = pass(60000, Quiet),
    case How of
        %% It says all each interval anyhow.
        state -> ?assert(Told(Later) - Told(Quiet) =< 6 * 5 * 80);
        _ -> ?assertEqual(Told(Quiet), Told(Later))
    end,
    {_, [{reply, me, Said} | _]} = atoll_crdt_replica_core:handle({call, me, {update, x, gcounter, increment}}, 0, atoll_sim_world:state(n1, crdt, Later)),
    ?assertEqual({error, {other_type, x, set, gcounter}}, Said).

%% By hand: one that lost its process is linked as before, and nobody says that a neighbour went.
who_has_lost_its_objects_is_told_anew_test() ->
    Told = fun(Event, S0) -> atoll_crdt_replica_core:handle(Event, 0, S0) end,
    Heard = fun(Life, Body) -> {message, b, {Life, Body}} end,
    {A0, _} = atoll_crdt_replica_core:init(#{self => a, life => <<"a">>, seed => 1, options => #{how => delta}}, 0),
    {A1, _} = Told({up, b}, A0),
    {A2, _} = Told({call, me, {update, hits, gcounter, increment}}, A1),
    {A3, [{send, b, {<<"a">>, {ack, <<"b1">>, 0}}}]} = Told(Heard(<<"b1">>, hello), A2),
    {A4, [{send, b, {_, {digest, 1, [{hits, _}]}}}, _]} = Told({timeout, tick}, A3),
    {A5, [{send, b, {_, {state, 1, [{hits, _}]}}}]} = Told(Heard(<<"b1">>, {wanted, 1, [hits]}), A4),
    {A6, []} = Told(Heard(<<"b1">>, {ack, <<"a">>, 1}), A5),
    {A7, [{timer, tick, _}]} = Told({timeout, tick}, A6),
    %% Nothing to acknowledge to another life of this one either.
    {A7, []} = Told(Heard(<<"b1">>, {ack, <<"z">>, 9}), A7),
    {A8, _} = Told(Heard(<<"b2">>, hello), A7),
    ?assertMatch({_, [{send, b, {_, {digest, 1, [{hits, _}]}}}, _]}, Told({timeout, tick}, A8)).

%% Whatever happens

%% Each change is counted exactly: what is added to the set is another element each time, so it is there in the end
%% unless somebody who saw it has removed it.
whatever_is_lost_late_or_apart_all_end_with_the_values_of_the_model_test_() ->
    atoll_prop:test("whatever is lost, late or apart, all end with the values of the model", prop_exact(), 200).

prop_exact() ->
    ?FORALL({How, Strategy, Seed, Steps}, {how(), strategy(), seed(), list(step())}, begin
        {World, Model} = lists:foldl(fun do/2, {begun(How, Strategy, Seed), #{hits => 0, added => [], removed => []}}, Steps),
        End = pass(90000, calm(World)),
        #{hits := Hits, added := Added, removed := Removed} = Model,
        Expected = [{hits, gcounter, {ok, Hits}} || Hits > 0] ++ [{set, set, {ok, lists:usort(Added) -- Removed}} || Added =/= []],
        ?WHENFAIL(
            io:format("~p~n~p~n", [Model, [{Name, values(Name, End)} || Name <- [hits, set]]]),
            equal(End) andalso lists:all(fun({Name, _, Value}) -> lists:usort([V || {_, V} <- values(Name, End)]) =:= [Value] end, Expected)
        )
    end).

%% n1 and n2 live through all of it: what they counted is counted, and nothing is that nobody counted.
whoever_is_killed_all_end_equal_test_() ->
    atoll_prop:test("whoever is killed, all end equal", prop_killed(), 200).

prop_killed() ->
    ?FORALL({How, Strategy, Seed, Steps}, {how(), strategy(), seed(), list(oneof([step(), killing()]))}, begin
        {World, #{hits := Most}} = lists:foldl(fun do/2, {begun(How, Strategy, Seed), #{hits => 0, added => [], removed => []}}, Steps),
        End = pass(90000, calm(World)),
        Least = length([N || {count, N} <- Steps, N =:= n1 orelse N =:= n2]),
        equal(End) andalso
            case values(hits, End) of
                [{_, {ok, Hits}} | _] -> Hits >= Least andalso Hits =< Most;
                [{_, none} | _] -> Least =:= 0
            end
    end).

begun(How, Strategy, Seed) -> atoll_crdt_world:new(5, #{strategy => Strategy, options => #{how => How, buffer_max => 4}}, Seed).

how() -> oneof([state, delta, broadcast]).
strategy() -> oneof([hyparview, mesh, star]).
seed() -> range(1, 1 bsl 20).

step() ->
    frequency([
        {6, {count, oneof(names(5))}},
        {4, {add, oneof(names(5))}},
        {3, {remove, oneof(names(5))}},
        {3, {pass, range(1, 8000)}},
        {1, {partition, range(1, 4)}},
        {1, {loss, oneof([0.05, 0.3])}},
        {1, {duplicate, 0.3}},
        {1, {online, oneof(names(5)), boolean()}},
        {1, heal}
    ]).

killing() -> oneof([{kill, oneof([n3, n4, n5])}, {start, oneof([n3, n4, n5])}]).

do({kill, Node}, {World, Model}) ->
    {case atoll_sim_world:status(Node, World) of dead -> World; _ -> atoll_sim_world:kill(Node, World) end, Model};
do({start, Node}, {World, Model}) ->
    {case atoll_sim_world:status(Node, World) of dead -> pass(1, atoll_sim_world:start(Node, World)); _ -> World end, Model};
do({pass, Ms}, {World, Model}) ->
    {pass(Ms, World), Model};
do({partition, At}, {World, Model}) ->
    {Here, There} = lists:split(At, names(5)),
    {set({partition, [Here, There]}, World), Model};
do({loss, Share}, {World, Model}) ->
    {set({loss, Share}, World), Model};
do({duplicate, Share}, {World, Model}) ->
    {set({duplicate, Share}, World), Model};
do(heal, {World, Model}) ->
    {set(heal, World), Model};
do(Step, {World, Model}) ->
    case atoll_sim_world:status(element(2, Step), World) of
        dead -> {World, Model};
        _ -> act(Step, World, Model)
    end.

act({online, Node, IsOnline}, World, Model) ->
    {online(Node, IsOnline, World), Model};
act({count, Node}, World, #{hits := Hits} = Model) ->
    {update(Node, hits, gcounter, increment, World), Model#{hits := Hits + 1}};
act({add, Node}, World, #{added := Added} = Model) ->
    Element = length(Added) + 1,
    {update(Node, set, set, {add, Element}, World), Model#{added := [Element | Added]}};
act({remove, Node}, World, #{removed := Removed} = Model) ->
    case atoll_crdt_replica_core:value(set, atoll_sim_world:state(Node, crdt, World)) of
        {ok, [Seen | _]} -> {update(Node, set, set, {remove, Seen}, World), Model#{removed := [Seen | Removed]}};
        _ -> {World, Model}
    end.

calm(World0) ->
    World = set({loss, 0}, set(heal, World0)),
    lists:foldl(fun(Node, W) -> online(Node, true, W) end, World, atoll_sim_world:alive(World)).
