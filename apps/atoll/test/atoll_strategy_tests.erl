%% SPDX-License-Identifier: Apache-2.0
%% What every strategy owes its user.
-module(atoll_strategy_tests).

-include_lib("eunit/include/eunit.hrl").

each(Test) ->
    [{atom_to_list(Name), fun() -> Test(Name) end} || Name <- atoll_strategy:names()].

new(Name) ->
    {ok, Module} = atoll_strategy:module(Name),
    {ok, Options} = atoll_options:complete(Module, #{}),
    {State, _} = Module:init(
        #{self => n1, incarnation => 1, seed => 1, options => Options, remembered => []}, 0
    ),
    {Module, State}.

what_it_does_not_know_is_counted_and_changes_nothing_test_() ->
    each(fun(Name) ->
        {Module, State0} = new(Name),
        Terms = [
            nothing,
            {nothing, n2},
            {join, "n2"},
            {part, 7},
            {cliques, a},
            {cliques, [a]},
            {cliques, [{a, n2}]},
            {cliques, [{a, [7]}]},
            {cliques, [{a, [n2]} | b]},
            {cliques, [{a, [n2 | n3]}]}
        ],
        State = lists:foldl(
            fun(Term, S0) ->
                {S, Effects} = Module:handle({cast, {tell, Term}}, 0, S0),
                ?assertEqual({Term, []}, {Term, Effects}),
                S
            end,
            State0,
            Terms
        ),
        Before = Module:summary(State0),
        ?assertEqual(Before#{not_understood := length(Terms)}, Module:summary(State))
    end).

options_that_are_none_are_said_in_a_sentence_test() ->
    {error, Error} = atoll_options:complete(lists, #{}),
    ?assertEqual(
        "lists:options/0 must give a map of {Kind, Default}, and came to undef",
        lists:flatten(atoll_options:format_error(Error))
    ).

%% What it holds of contacts is bounded, and what it left out is in its summary.
contacts_too_many_are_dropped_and_counted_test_() ->
    Contacts = [list_to_atom("c" ++ integer_to_list(N)) || N <- lists:seq(1, 150)],
    [
        {atom_to_list(Name), fun() ->
            {Module, State0} = new(Name),
            {State, _} = Module:handle({cast, {join, Contacts}}, 0, State0),
            ?assertMatch(#{contacts := Kept, contacts_dropped := Dropped}, Module:summary(State)),
            {Left, _} = Module:handle({cast, leave}, 0, State),
            ?assertMatch(#{contacts := 0}, Module:summary(Left))
        end}
     || {Name, Kept, Dropped} <- [{mesh, 100, 50}, {scamp, 100, 50}, {hyparview, 29, 120}]
    ].
