%% SPDX-License-Identifier: Apache-2.0
%% Whom a step means.
-module(atoll_sim_who_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

who_is_who_test() ->
    Nodes = [{a, alive}, {b, dead}, {c, alive}, {d, alive}],
    Resolve = fun(Who) -> element(1, atoll_sim_who:resolve(Who, Nodes, [c, a], seed(1))) end,
    ?assertEqual([a, b, c, d], Resolve(all)),
    ?assertEqual([a, c, d], Resolve(alive)),
    ?assertEqual([b], Resolve(dead)),
    ?assertEqual([a, c], Resolve(contacts)),
    ?assertEqual([b], Resolve(b)),
    ?assertEqual([], Resolve(z)),
    ?assertEqual([b, d], Resolve([d, b])),
    ?assertEqual([b, c], Resolve({nodes, 2, 3})),
    ?assertEqual([a, c, d], Resolve({random, 9})),
    ?assertEqual([], Resolve({share, 0})).

a_step_happens_to_those_it_can_happen_to_test() ->
    Nodes = [{a, alive}, {b, dead}, {c, dead}],
    Targets = fun(Step) -> element(1, atoll_sim_who:targets(Step, Nodes, [], seed(1))) end,
    ?assertEqual([a], Targets({kill, all})),
    ?assertEqual([b, c], Targets({start, all})),
    ?assertEqual([b, c], Targets({start, {random, 2}})),
    ?assertEqual([a, b, c], Targets({restart, all, fresh})),
    ?assertEqual([a], Targets({restart, {share, 1.0}, fresh})).

the_rest_is_a_part_of_its_own_test() ->
    Nodes = [{a, alive}, {b, alive}, {c, dead}, {d, alive}],
    Parts = fun(Whos) -> element(1, atoll_sim_who:parts(Whos, Nodes, [a], seed(1))) end,
    ?assertEqual([[b], [a, c, d]], Parts([b])),
    ?assertEqual([[b, c], [a], [d]], Parts([{nodes, 2, 3}, {nodes, 1, 2}])),
    ?assertEqual([[a, b, c, d]], Parts([all, a])),
    ?assertEqual([[a], [d], [b, c]], Parts([contacts, d])).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_choice(), 300).

%% A choice is of the living, in order, of the right number, and the seed's.
prop_choice() ->
    ?FORALL({Living, Share, Seed}, {list(boolean()), choose(0, 100), integer()}, begin
        Nodes = [
            {list_to_atom("n" ++ integer_to_list(I)), case Lives of true -> alive; false -> dead end}
         || {I, Lives} <- lists:zip(lists:seq(1, length(Living)), Living)
        ],
        Alive = [N || {N, alive} <- Nodes],
        {Chosen, _} = atoll_sim_who:resolve({share, Share / 100}, Nodes, [], seed(Seed)),
        {Again, _} = atoll_sim_who:resolve({share, Share / 100}, Nodes, [], seed(Seed)),
        Chosen =:= Again andalso length(Chosen) =:= round(Share / 100 * length(Alive)) andalso
            Chosen =:= [N || N <- Alive, lists:member(N, Chosen)]
    end).

seed(Seed) ->
    rand:seed_s(exsss, Seed).
