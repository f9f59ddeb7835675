%% SPDX-License-Identifier: Apache-2.0
%% A term in which a model's parts stand is the same term, and takes less beside the model.
-module(atoll_sim_alike_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

it_is_the_same_term_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_same(), 1000).

%% Two that have parts in common, and tuples of different sizes among them.
prop_same() ->
    ?FORALL({Model, Term}, {part(), part()}, begin
        Pair = {Model, Term, Model},
        atoll_sim_alike:like(Model, Term) =:= Term andalso atoll_sim_alike:like({Term, Model, Term}, Pair) =:= Pair
    end).

%% Of few values, so that some are equal and some nearly so.
part() ->
    ?SIZED(Size, part(Size)).

part(0) -> oneof([1, 1.0, a, [], [1], #{}, #{a => 1}, #{a => 2}]);
part(Size) ->
    Smaller = ?LAZY(part(Size div 3)),
    oneof([part(0), {Smaller, Smaller}, {Smaller, Smaller, Smaller}, [Smaller], ?LET(Value, Smaller, #{a => Value})]).

what_is_equal_at_one_place_lies_in_memory_once_test() ->
    Table = fun(Own) -> {table, Own, {[1 | maps:from_keys(lists:seq(1, 100), known)], [2 | maps:from_keys(lists:seq(1, Own), own)]}} end,
    Model = Table(50),
    Term = Table(60),
    Apart = erts_debug:size({Model, Term}),
    Shared = erts_debug:size({Model, atoll_sim_alike:like(Model, Term)}),
    ?assert(Apart - Shared > 200).
