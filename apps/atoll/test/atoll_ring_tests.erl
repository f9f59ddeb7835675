%% SPDX-License-Identifier: Apache-2.0
%% The ring of neighbours, and the table of obituaries, against their models.
-module(atoll_ring_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([prop_successors/0, prop_obituaries/0]).

name() -> oneof([a, b, c, d, e, f, g, h, i, j]).

ring(Nodes) -> lists:foldl(fun atoll_ring:add/2, atoll_ring:new(), Nodes).

%% In a mesh each is taken by as many as it takes.
everybody_is_chosen_equally_often_in_a_mesh_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 100)],
    Chosen = lists:append([atoll_ring:successors(N, 5, ring(Nodes -- [N])) || N <- Nodes]),
    ?assertEqual(lists:sort(lists:append(lists:duplicate(5, Nodes))), lists:sort(Chosen)).

successors_are_the_next_on_the_ring_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_successors(), 500).

prop_successors() ->
    ?FORALL({Self, Nodes, K}, {name(), list(name()), range(1, 6)}, begin
        Places = lists:usort([{erlang:phash2(N), N} || N <- Nodes, N =/= Self]),
        {Before, After} = lists:partition(fun(P) -> P < {erlang:phash2(Self), Self} end, Places),
        [N || {_, N} <- lists:sublist(After ++ Before, K)] =:= atoll_ring:successors(Self, K, ring(Nodes))
    end).

obituaries_keep_the_last_life_and_their_bound_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_obituaries(), 500).

%% The model is a list, oldest first.
prop_obituaries() ->
    ?FORALL(Deaths, list({name(), range(1, 5), range(0, 40)}), begin
        {_, _, Good} = lists:foldl(
            fun({Node, Life, Ms}, {Now0, {Table0, Model0}, Good}) ->
                Now = Now0 + Ms,
                {Said, Table} = atoll_obituaries:bury(Node, Life, Now, Table0),
                {Expected, Model} = model(Node, Life, Now, Model0),
                Same = [atoll_obituaries:last(N, Table) || {N, _, _} <- Model] =:= [L || {_, L, _} <- Model],
                {Now, {Table, Model},
                    Good andalso Said =:= Expected andalso Same andalso
                        atoll_obituaries:size(Table) =:= length(Model)}
            end,
            {0, {atoll_obituaries:new(4, 100), []}, true},
            Deaths
        ),
        Good
    end).

model(Node, Life, Now, Model) ->
    case {lists:keyfind(Node, 1, Model), Model} of
        {{Node, Last, _}, _} when Last >= Life -> {known, Model};
        {{Node, _, _}, _} -> {new, lists:keydelete(Node, 1, Model) ++ [{Node, Life, Now}]};
        {false, _} when length(Model) < 4 -> {new, Model ++ [{Node, Life, Now}]};
        {false, [{_, _, Since} | Rest]} when Now - Since >= 100 -> {new, Rest ++ [{Node, Life, Now}]};
        {false, _} -> {refused, Model}
    end.
