%% SPDX-License-Identifier: Apache-2.0
%% @doc Who talks with whom: each pair has one node that begins, and all are about equally likely.
-module(im_traffic_pairs_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(DRAWS, 200).

properties_test_() ->
    atoll_prop:tests([
        {"the nodes have as many each, or one more, and the names of all differ", prop_shares(), 300},
        {"a node begins with a client of its own, with another one, and no other node begins with these two", prop_draws(), 300}
    ]).

prop_shares() ->
    ?FORALL(
        {All, N},
        {range(0, 500), range(1, 20)},
        begin
            Shares = [im_traffic_pairs:share(All, K, N) || K <- lists:seq(1, N)],
            Names = [im_traffic_pairs:name(Number, N) || Number <- lists:seq(1, All)],
            lists:sum(Shares) =:= All andalso lists:max(Shares) - lists:min(Shares) =< 1 andalso
                lists:sort(Names) =:= lists:sort(names(Shares))
        end
    ).

names(Shares) ->
    [
        iolist_to_binary(io_lib:format("tc~b_~b", [I, K]))
     || {K, Share} <- lists:zip(lists:seq(1, length(Shares)), Shares), I <- lists:seq(1, Share)
    ].

prop_draws() ->
    ?FORALL(
        {Clients, N, Seed},
        {range(2, 30), range(1, 4), integer()},
        begin
            Drawn = [{K, Pair} || K <- lists:seq(1, N), Pair <- drawn(Clients, {K, N}, Seed + K)],
            Begins = maps:groups_from_list(fun({_, {A, B}}) -> {min(A, B), max(A, B)} end, fun({K, _}) -> K end, Drawn),
            lists:all(fun({K, {A, B}}) -> A =/= B andalso (A - 1) rem N + 1 =:= K andalso B =< Clients end, Drawn) andalso
                lists:all(fun(Ks) -> length(lists:usort(Ks)) =:= 1 end, maps:values(Begins))
        end
    ).

drawn(Clients, Place, Seed) ->
    {Pairs, _} = lists:mapfoldl(
        fun(_, Rand) -> im_traffic_pairs:draw(Clients, Place, fun(_, _) -> true end, Rand) end,
        rand:seed_s(exsss, Seed),
        lists:seq(1, ?DRAWS)
    ),
    [Pair || Pair <- Pairs, Pair =/= none].

all_pairs_are_drawn_about_as_often_test() ->
    {Clients, N, Each} = {10, 2, 50},
    Pairs = lists:append([drawn(Clients, {K, N}, Seed) || K <- lists:seq(1, N), Seed <- lists:seq(1, Each)]),
    Counts = maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun({A, B}) -> {min(A, B), max(A, B)} end, Pairs)),
    ?assertEqual(45, map_size(Counts)),
    Mean = length(Pairs) / 45,
    %% Five standard deviations.
    [?assert(abs(Count - Mean) < 5 * math:sqrt(Mean)) || Count <- maps:values(Counts)].

where_all_pairs_are_taken_there_is_none_test() ->
    ?assertMatch({none, _}, im_traffic_pairs:draw(4, {1, 1}, fun(_, _) -> false end, rand:seed_s(exsss, 1))),
    ?assertMatch({none, _}, im_traffic_pairs:draw(1, {1, 1}, fun(_, _) -> true end, rand:seed_s(exsss, 1))),
    ?assertMatch({none, _}, im_traffic_pairs:draw(1, {2, 2}, fun(_, _) -> true end, rand:seed_s(exsss, 1))).
