%% SPDX-License-Identifier: Apache-2.0
%% What is not as meant is seen, and told to people. The other side is here the semantics itself,
%% with one lie.
-module(atoll_semantics_lockstep_tests).

-include_lib("eunit/include/eunit.hrl").

-define(L, atoll_semantics_lockstep).

%% Does what is meant, but for that lie.
truthful() -> #{do => fun(V) -> V end, views => fun(V) -> V end}.

backend(#{do := Do, views := Views}) ->
    Seen = fun(Sides) -> Views(atoll_semantics_sides:views(Sides)) end,
    #{
        do => fun(Ni, Written, Sides) ->
            {Next, Value} = atoll_semantics_sides:step(Sides, atoll_semantics_commands:with_life(Written, #{}), Ni),
            {Do(told(Value)), Next}
        end,
        now => Seen,
        views => fun(_, Sides) -> {Seen(Sides), Sides} end
    }.

%% One of those that may be told.
told({no, [Reason | _]}) -> {no, Reason};
told(Value) -> Value.

sides() ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    atoll_semantics_sides:new(Normal, Hidden).

step(Line, Lie) ->
    {ok, Command} = atoll_semantics_line:parse(Line),
    {Outcome, _, _} = ?L:step(Command, ?L:new(), backend(Lie), sides()),
    Outcome.

what_is_as_meant_has_no_differences_test() ->
    ?assertMatch(#{was := {ok, g, [n1, n2]}, differences := []}, step("n1 new_s_group(g, [n1, n2])", truthful())),
    ?assertMatch(#{was := {error, remote_s_group}, differences := []}, step("n1 new_s_group(g, [n2])", truthful())).

another_value_is_seen_test() ->
    #{differences := Differences} = Outcome = step("n1 new_s_group(g, [n1, n2])", (truthful())#{do => fun(_) -> {ok, g, [n1]} end}),
    ?assertEqual([{value, [{meant, {ok, g, [n1, n2]}}, {was, {ok, g, [n1]}}]}], Differences),
    ?assertEqual(
        "  {ok,g,[n1]}, not as meant\n    meant: {ok,g,[n1,n2]}\n",
        lists:flatten(atoll_semantics_cli:outcome(Outcome))
    ).

a_node_that_says_something_else_is_seen_test() ->
    Forgets = fun(#{n2 := View} = Views) -> Views#{n2 := View#{groups := []}} end,
    #{differences := Differences} = Outcome = step("n1 new_s_group(g, [n1, n2])", (truthful())#{views => Forgets}),
    ?assertMatch([{n2, [{meant, _}, {was, _}]}, {at_once, n2, [{meant, [{g, _}]}, {was, []}]}], lists:sort(fun(A, B) -> element(1, B) =:= at_once orelse A =< B end, Differences)),
    ?assertEqual(
        "  {ok,g,[n1,n2]}, not as meant\n"
        "    n2: groups [], meant: [{g,[n1,n2]}]\n"
        "    n2, when the call was answered: [], meant: [{g,[n1,n2]}]\n",
        lists:flatten(atoll_semantics_cli:outcome(Outcome))
    ).

%% A run ends at the first that differs, and says which.
a_run_ends_where_it_differs_test() ->
    Commands = [element(2, atoll_semantics_line:parse(L)) || L <- ["n1 s_groups", "n1 new_s_group(g, [n1])", "n1 s_groups"]],
    ?assertMatch({ok, 3, _}, ?L:run(Commands, backend(truthful()), sides())),
    Lies = fun(V) -> case V of {ok, g, _} -> ok; _ -> V end end,
    ?assertMatch({differs, #{command := {2, n1, _}}, _}, ?L:run(Commands, backend((truthful())#{do => Lies}), sides())).
