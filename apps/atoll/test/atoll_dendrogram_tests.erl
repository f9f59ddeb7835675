%% SPDX-License-Identifier: Apache-2.0
%% Complete linkage: the joins are those of the definition, whatever the order of what was
%% measured, and the network that is cut from them can be written and read.
-module(atoll_dendrogram_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Two sites with two racks each.
measured() ->
    maps:from_list([{{A, B}, far(A, B)} || A <- names(), B <- names(), A < B]).

names() -> [a1, a2, b1, b2, c1, c2, d1].

far(A, B) ->
    [RackA, _] = atom_to_list(A),
    [RackB, _] = atom_to_list(B),
    case {RackA =:= RackB, (RackA =< $b) =:= (RackB =< $b)} of
        {true, _} -> 0.2;
        {_, true} -> 3.0;
        _ -> 90.0
    end + (hd(lists:reverse(atom_to_list(B))) - $0) / 100.

racks_and_sites_are_found_test() ->
    {ok, Dendrogram} = atoll_dendrogram:new(names(), measured()),
    {ok, Expected} = atoll_network:new(
        {network, [
            {network, [{network, [{node, a1}, {node, a2}]}, {network, [{node, b1}, {node, b2}]}]},
            {network, [{network, [{node, c1}, {node, c2}]}, {node, d1}]}
        ]}
    ),
    ?assertEqual(Expected, atoll_dendrogram:network({ratio, 2}, Dendrogram)),
    ?assertEqual(Expected, atoll_dendrogram:network([1.0, 10.0], Dendrogram)),
    {ok, Sites} = atoll_network:new({network, [
        {network, [{node, N} || N <- [a1, a2, b1, b2]]}, {network, [{node, N} || N <- [c1, c2, d1]]}
    ]}),
    ?assertEqual(Sites, atoll_dendrogram:network([10.0], Dendrogram)),
    {ok, Flat} = atoll_network:new({network, [{node, N} || N <- names()]}),
    ?assertEqual(Flat, atoll_dendrogram:network([], Dendrogram)),
    ?assertEqual(90.02, atoll_dendrogram:height(Dendrogram)).

one_node_is_a_network_test() ->
    {ok, Dendrogram} = atoll_dendrogram:new([a], #{}),
    ?assertEqual([a], atoll_network:nodes(atoll_dendrogram:network({ratio, 2}, Dendrogram))),
    ?assertEqual({error, no_nodes}, atoll_dendrogram:new([], #{})).

what_was_not_measured_is_named_test() ->
    {error, Error} = atoll_dendrogram:new(names(), maps:remove({b1, c2}, measured())),
    ?assertEqual("nothing was measured between b1 and c2", lists:flatten(atoll_dendrogram:format_error(Error))),
    ?assertEqual({error, {negative, a, b, -1.0}}, atoll_dendrogram:new([a, b], #{{a, b} => -1})).

both_ways_count_by_their_mean_test() ->
    {ok, Dendrogram} = atoll_dendrogram:new([a, b], #{{a, b} => 1, {b, a} => 2}),
    ?assertEqual({join, 1.5, {leaf, a}, {leaf, b}}, Dendrogram),
    ?assertEqual([{1.5, [a], [b]}], atoll_dendrogram:joins(Dendrogram)).

it_is_drawn_test() ->
    {ok, Dendrogram} = atoll_dendrogram:new([c1, a1, a2], measured()),
    Drawing = atoll_dendrogram:drawing(fun(Ms) -> io_lib:format("~.1f ms", [Ms]) end, Dendrogram),
    ?assertEqual(
        "90.0 ms\n"
        "\x{251c}\x{2500} 0.2 ms\n"
        "\x{2502}  \x{251c}\x{2500} a1\n"
        "\x{2502}  \x{2514}\x{2500} a2\n"
        "\x{2514}\x{2500} c1\n",
        unicode:characters_to_list(atoll_tree_drawing:text(Drawing))
    ).

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 300)
     || {Title, Property} <- [
            {"the joins are those of the definition",
                ?FORALL({Nodes, Measured}, matrix(distinct), heights(Nodes, Measured) =:= naive(Nodes, Measured))},
            {"a join is as high as its farthest nodes are from each other, and no lower than those below",
                ?FORALL({Nodes, Measured}, matrix(any), is_complete(dendrogram(Nodes, Measured), Measured))},
            {"the order of the nodes means nothing",
                ?FORALL({Nodes, Measured}, matrix(any), dendrogram(lists:reverse(Nodes), Measured) =:= dendrogram(Nodes, Measured))},
            {"each node stands in the network that is cut from it, which is read back from its text",
                ?FORALL({{Nodes, Measured}, Cut}, {matrix(any), oneof([{ratio, 2}, {ratio, 1.5}, list(choose(0, 20))])}, begin
                    Network = atoll_dendrogram:network(Cut, dendrogram(Nodes, Measured)),
                    atoll_network:nodes(Network) =:= lists:sort(Nodes) andalso
                        atoll_network_file:parse(unicode:characters_to_binary(atoll_network_file:text(Network))) =:= {ok, Network}
                end)}
        ]
    ].

matrix(Kind) ->
    ?LET(Count, choose(1, 9), begin
        Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)],
        Pairs = [{A, B} || A <- Nodes, B <- Nodes, A < B],
        ?LET(Values, vector(length(Pairs), choose(0, 20)), begin
            Apart = case Kind of distinct -> 0.001; any -> 0 end,
            {Nodes, maps:from_list([{P, float(V + I * Apart)} || {P, V, I} <- lists:zip3(Pairs, Values, lists:seq(1, length(Pairs)))])}
        end)
    end).

dendrogram(Nodes, Measured) ->
    {ok, Dendrogram} = atoll_dendrogram:new(Nodes, Measured),
    Dendrogram.

heights(Nodes, Measured) ->
    [{H, lists:sort([lists:sort(A), lists:sort(B)])} || {H, A, B} <- atoll_dendrogram:joins(dendrogram(Nodes, Measured))].

naive(Nodes, Measured) -> naive_join([[Node] || Node <- Nodes], Measured).

naive_join([_], _Measured) -> [];
naive_join(Clusters, Measured) ->
    {H, A, B} = lists:min([{between(X, Y, Measured), X, Y} || X <- Clusters, Y <- Clusters, X < Y]),
    [{H, lists:sort([lists:sort(A), lists:sort(B)])} | naive_join([lists:sort(A ++ B) | Clusters -- [A, B]], Measured)].

between(A, B, Measured) ->
    lists:max([maps:get({min(X, Y), max(X, Y)}, Measured) || X <- A, Y <- B]).

is_complete({leaf, _}, _Measured) -> true;
is_complete({join, Height, A, B}, Measured) ->
    Height =:= between(atoll_dendrogram:nodes(A), atoll_dendrogram:nodes(B), Measured) andalso
        Height >= atoll_dendrogram:height(A) andalso Height >= atoll_dendrogram:height(B) andalso
        is_complete(A, Measured) andalso is_complete(B, Measured).
