%% SPDX-License-Identifier: Apache-2.0
%% The types: the laws of a join-semilattice, deltas, and what each one's value is to be whatever the history.
-module(atoll_crdt_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

laws_test_() ->
    atoll_prop:tests([
        {"joins are commutative, associative and idempotent", prop_laws(), 3000},
        {"a join knows what both know", prop_least(), 3000},
        {"deltas joined with each other are joined as one", prop_groups(), 3000},
        {"a difference is what the other does not know, and no more than that", prop_difference(), 3000},
        {"a value is what the history says", prop_history(), 4000},
        {"deltas in any order, twice or lost, come to what the history says", prop_deltas(), 4000}
    ]).

%% Three states of one history.
states(Type) -> ?LET(Steps, atoll_crdt_history:steps(Type, [state, delta]), lists:sublist(atoll_crdt_history:states(atoll_crdt_history:run(Type, unchecked, Steps)), 3)).

prop_laws() ->
    ?FORALL([A, B, C], ?LET(Type, atoll_crdt_history:type(), states(Type)), begin
        J = fun atoll_crdt:join/2,
        J(A, B) =:= J(B, A) andalso J(A, J(B, C)) =:= J(J(A, B), C) andalso J(A, A) =:= A
    end).

prop_least() ->
    ?FORALL([A, B, C], ?LET(Type, atoll_crdt_history:type(), states(Type)), begin
        Both = atoll_crdt:join(A, B),
        Above = atoll_crdt:join(C, Both),
        atoll_crdt:includes(Both, A) andalso atoll_crdt:includes(Both, B) andalso
            atoll_crdt:includes(Above, Both) andalso
            atoll_crdt:includes(atoll_crdt:new(atoll_crdt:type(A)), A) =:= (A =:= atoll_crdt:new(atoll_crdt:type(A))) andalso
            (atoll_crdt:hash(A) =:= atoll_crdt:hash(B)) =:= atoll_crdt:equal(A, B)
    end).

prop_groups() ->
    ?FORALL({Type, Steps}, typed([state]), begin
        History = atoll_crdt_history:run(Type, unchecked, Steps),
        Deltas = atoll_crdt_history:know(deltas, History),
        New = atoll_crdt:new(Type),
        Join = fun(Delta, Acc) -> atoll_crdt:join(Acc, Delta) end,
        {Some, Others} = lists:split(length(Deltas) div 2, Deltas),
        OneByOne = lists:foldl(Join, New, Deltas),
        Grouped = atoll_crdt:join(lists:foldl(Join, New, Some), lists:foldl(Join, New, Others)),
        %% Together they are all that was ever done.
        [All | _] = atoll_crdt_history:states(atoll_crdt_history:spread(History)),
        OneByOne =:= Grouped andalso OneByOne =:= All
    end).

prop_difference() ->
    ?FORALL([A, B, _], ?LET(Type, atoll_crdt_history:type(), states(Type)), begin
        Both = atoll_crdt:join(A, B),
        Difference = atoll_crdt:difference(B, A),
        atoll_crdt:join(A, Difference) =:= Both andalso
            atoll_crdt:join(A, atoll_crdt:difference(Both, A)) =:= Both andalso
            atoll_crdt:includes(B, Difference) andalso
            atoll_crdt:difference(A, Both) =:= atoll_crdt:new(atoll_crdt:type(A)) andalso
            atoll_crdt:difference(A, A) =:= atoll_crdt:new(atoll_crdt:type(A))
    end).

prop_history() ->
    ?FORALL({Type, Steps}, typed([state]), atoll_crdt_history:know(agrees, atoll_crdt_history:run(Type, checked, Steps))).

prop_deltas() ->
    ?FORALL({Type, Steps}, typed([state, delta]), begin
        History = atoll_crdt_history:spread(atoll_crdt_history:run(Type, unchecked, Steps)),
        States = atoll_crdt_history:states(History),
        length(lists:usort(States)) =:= 1 andalso atoll_crdt:value(hd(States)) =:= atoll_crdt_history:know(value, History)
    end).

%% Of each the first is not heard of. SEED=775078 had that, and the specification wanted the first one back.
what_was_done_again_and_undone_is_undone_test_() ->
    [
        ?_test(begin
            Steps = [{change, 4, Done}, {change, 4, Done}, {delta, 3, 0}, {change, 3, Undone}],
            History = atoll_crdt_history:spread(atoll_crdt_history:run(Type, checked, Steps)),
            [State | _] = atoll_crdt_history:states(History),
            ?assertEqual(atoll_crdt:value(atoll_crdt:new(Type)), atoll_crdt:value(State)),
            ?assertEqual(atoll_crdt:value(State), atoll_crdt_history:know(value, History)),
            ?assert(atoll_crdt_history:know(agrees, History))
        end)
     || {Type, Done, Undone} <- [{enable_wins, enable, disable}, {disable_wins, disable, enable}, {set, {add, a}, {remove, a}}, {mv, {put, a}, clear}]
    ].

typed(Ways) -> ?LET(Type, atoll_crdt_history:type(), {Type, atoll_crdt_history:steps(Type, Ways)}).

%% What a removed thing costs

a_removed_element_leaves_nothing_but_the_context_test() ->
    Set = lists:foldl(
        fun(N, S) -> done({remove, N}, a, done({add, N}, a, S)) end, atoll_crdt:new(set), lists:seq(1, 2000)
    ),
    ?assertEqual([], atoll_crdt:value(Set)),
    ?assert(atoll_crdt:bytes(Set) < 60, atoll_crdt:bytes(Set)).

an_element_that_is_added_again_and_again_costs_the_same_test() ->
    Again = fun(N) -> atoll_crdt:bytes(lists:foldl(fun(_, S) -> done({add, x}, a, S) end, atoll_crdt:new(set), lists:seq(1, N))) end,
    ?assertEqual(Again(2), Again(200)).

the_delta_of_a_large_counter_is_small_test() ->
    Large = lists:foldl(fun(Actor, C) -> done(increment, Actor, C) end, atoll_crdt:new(gcounter), lists:seq(1, 1000)),
    {ok, _, Delta} = atoll_crdt:update(increment, 7, Large),
    ?assert(atoll_crdt:bytes(Delta) * 50 < atoll_crdt:bytes(Large)).

a_removed_map_comes_back_without_what_it_held_test() ->
    Field = {profile, map},
    Name = {update, Field, {update, {name, mv}, {put, ann}}},
    Here = done(Name, a, atoll_crdt:new(map)),
    Removed = done({remove, Field}, b, Here),
    %% An update that the removal does not know of wins, alone.
    Updated = done({update, Field, {update, {age, mv}, {put, 7}}}, a, Here),
    ?assertEqual(#{}, atoll_crdt:value(Removed)),
    ?assertEqual(#{Field => #{{age, mv} => [7]}}, atoll_crdt:value(atoll_crdt:join(Removed, Updated))).

done(Operation, Actor, State) ->
    {ok, Next, _} = atoll_crdt:update(Operation, Actor, State),
    Next.

%% What is no operation

each_type_refuses_what_it_does_not_know_with_a_sentence_test() ->
    [
        begin
            {error, Error} = atoll_crdt:update(Operation, a, atoll_crdt:new(Type)),
            ?assertEqual(Sentence, lists:flatten(atoll_crdt:format_error(Error)))
        end
     || {Type, Operation, Sentence} <-
            [{Type, {fold, 1}, "{fold,1} is no operation of the type " ++ atom_to_list(Type) ++ "."} || Type <- atoll_crdt:types()] ++ [
                {gcounter, {increment, 0}, "{increment,0} is no operation of the type gcounter."},
                {pncounter, {decrement, -1}, "{decrement,-1} is no operation of the type pncounter."},
                {map, {update, {k, set}, enable}, "enable is no operation of the type set."},
                {map, {update, {k, gcounter}, increment},
                    "A map has keys {Key, Type}, where Type is mv, enable_wins, disable_wins, set, map, and not {k,gcounter}."},
                {map, {remove, k}, "A map has keys {Key, Type}, where Type is mv, enable_wins, disable_wins, set, map, and not k."}
            ]
    ].
