%% SPDX-License-Identifier: Apache-2.0
-module(atoll_singleton_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_singleton_world).
-define(NODES, [n1, n2, n3, n4]).

%% One of all that begin at once runs it, and the others know.
all_begin_at_once_and_one_has_it_test() ->
    [
        begin
            W = ?W:run(3000, ?W:new(?NODES, Seed)),
            ?assertMatch({Seed, [_]}, {Seed, ?W:holders(W)}),
            ?assertEqual({Seed, 1}, {Seed, length(?W:runs(W))})
        end
     || Seed <- lists:seq(1, 50)
    ].

a_crash_is_mended_at_home_test() ->
    W0 = begun(1),
    [{Home, _} = Before] = ?W:holders(W0),
    W = ?W:run(2000, ?W:do({crash, oops}, W0)),
    ?assertMatch([{Home, _}], ?W:holders(W)),
    ?assertNotEqual([Before], ?W:holders(W)),
    ?assertEqual(2, length(?W:runs(W))).

%% Others get it, and the node does not try again for a while.
too_many_crashes_leave_it_to_others_test() ->
    W0 = begun(1),
    [{Home, _}] = ?W:holders(W0),
    W = lists:foldl(fun(_, W1) -> ?W:run(700, ?W:do({crash, oops}, W1)) end, W0, lists:seq(1, 4)),
    ?assertMatch([{Node, _}] when Node =/= Home, ?W:holders(?W:run(2000, W))),
    ?assertMatch(#{counts := #{restarted := 3, left_to_others := 1}}, ?W:info(Home, W)).

%% A server that cannot be started is tried ever more seldom, and never given up.
a_start_that_fails_is_tried_again_ever_later_test() ->
    W0 = lists:foldl(fun(N, W1) -> ?W:do({broken, N, true}, W1) end, ?W:new(?NODES, 1), ?NODES),
    W = ?W:run(600000, W0),
    [
        begin
            Tries = ?W:starts(N, W),
            ?assert(length(Tries) < 35),
            ?assert(lists:last(Tries) > 560000)
        end
     || N <- ?NODES
    ],
    Mended = ?W:run(31000, ?W:do({broken, n3, false}, W)),
    ?assertMatch([{n3, _}], ?W:holders(Mended)).

a_dead_node_has_one_successor_test() ->
    [
        begin
            W0 = begun(Seed),
            [{Home, _}] = ?W:holders(W0),
            W = ?W:run(1500, ?W:do({kill, Home}, W0)),
            ?assertMatch({Seed, [{Node, _}]} when Node =/= Home, {Seed, ?W:holders(W)}),
            %% The first in line alone has tried.
            ?assertEqual({Seed, 2}, {Seed, length(?W:runs(W))})
        end
     || Seed <- lists:seq(1, 50)
    ].

%% The old one has ended before the new one begins.
who_leaves_the_group_hands_over_test() ->
    W0 = begun(1),
    [{Home, _} = Old] = ?W:holders(W0),
    W = ?W:run(4000, ?W:do({member, Home, false}, W0)),
    [{Node, _} = New] = ?W:holders(W),
    ?assertNotEqual(Home, Node),
    Runs = ?W:runs(W),
    {_, _, Ended} = lists:keyfind(Old, 1, Runs),
    {_, Began, _} = lists:keyfind(New, 1, Runs),
    ?assert(Began >= Ended).

each_side_has_one_and_one_stays_test() ->
    [
        begin
            Split = ?W:run(3000, ?W:do({split, [n1, n2]}, begun(Seed))),
            ?assertMatch({Seed, [_, _]}, {Seed, lists:usort([side(N) || {N, _} <- ?W:holders(Split)])}),
            Healed = ?W:run(3000, ?W:do(heal, Split)),
            ?assertMatch({Seed, [_]}, {Seed, ?W:holders(Healed)}),
            ?assertEqual({Seed, 1}, {Seed, length([S || {S, _, never} <- ?W:runs(Healed)])})
        end
     || Seed <- lists:seq(1, 50)
    ].

side(N) -> lists:member(N, [n1, n2]).

%% Once a name is lost the server gets its end in order, once; while it is being started, a kill.
a_server_that_has_lost_is_ended_test() ->
    {S0, _} = core(no),
    {S1, [{timer, 'try', 0}, {timer, look, _}]} = handle({look, view(none)}, S0),
    {S2, [start]} = handle({'try', view(none)}, S1),
    {_, [_, {kill, {n1, p}}]} = handle({lost, {n1, p}, q}, S2),
    {S3, []} = handle({started, {n1, p}, view({n1, p})}, S2),
    {S4, [{note, singleton_lost, q}, {'end', {n1, p}}]} = handle({lost, {n1, p}, q}, S3),
    ?assertMatch({_, []}, handle({lost, {n1, p}, q}, S4)),
    {_, [{follow, {n2, q}}]} = handle({ended, {n1, p}, shutdown, view({n2, q})}, S4).

%% What is only doubtful is looked at twice.
a_name_that_is_gone_is_looked_for_twice_test() ->
    S0 = holding(),
    {S1, [{timer, look, Ms}]} = handle({look, view(none)}, 0, S0),
    ?assertMatch({_, [{timer, look, 5000}]}, handle({look, view({n1, p})}, Ms, S1)),
    ?assertMatch({_, [{'end', {n1, p}} | _]}, handle({look, view(none)}, Ms, S1)).

where_placement_lets_none_through_nobody_tries_test() ->
    {S0, _} = core(fits),
    {S1, [{place, [n1, n2]} | _]} = handle({look, #{holder => none, standbys => [n2]}}, S0),
    {S2, [{timer, 'try', 2000}]} = handle({placed, {ok, [n2]}}, S1),
    {S3, [{place, _}]} = handle({'try', view(none)}, S2),
    {_, [{timer, 'try', 0}]} = handle({placed, {ok, [n1]}}, S3),
    ?assertMatch({_, [{timer, 'try', 2000}]}, handle({placed, failed}, S3)).

placement_that_ranks_says_who_is_first_test() ->
    [Last, First] = lists:sort(fun(A, B) -> atoll_name_rules:outranks(A, B, thing) end, [n1, n2]),
    Delay = fun(Placed, Self, Order) ->
        {S0, _} = core(Placed, Self),
        {S1, _} = handle({look, view(none)}, S0),
        {_, [{timer, 'try', Ms}]} = handle({placed, {ok, Order}}, S1),
        Ms
    end,
    ?assertEqual([0, 500], [Delay(ranked, N, [First, Last]) || N <- [First, Last]]),
    ?assertEqual([500, 0], [Delay(fits, N, [First, Last]) || N <- [First, Last]]).

%% Ended for a misfit: placed anew, its own node as the others.
what_does_not_fit_is_placed_anew_test() ->
    {S0, _} = core(fits),
    {S1, _} = handle({look, view(none)}, S0),
    {S2, _} = handle({placed, {ok, [n1]}}, S1),
    {S3, _} = handle({'try', view(none)}, S2),
    {S4, _} = handle({started, {n1, p}, view({n1, p})}, S3),
    ?assertMatch({_, [{place, _}]}, handle({ended, {n1, p}, {shutdown, misplaced}, view(none)}, S4)),
    ?assertMatch({_, [start]}, handle({ended, {n1, p}, oops, view(none)}, S4)).

stop_ends_it_and_then_the_process_test() ->
    {S, [{'end', {n1, p}}]} = handle({stop, me}, holding()),
    ?assertMatch({_, [{reply, other}]}, handle({stop, other}, S)),
    {_, Effects} = handle({ended, {n1, p}, shutdown, view(none)}, S),
    ?assertEqual([{reply, me}, stop], [E || E <- Effects, E =:= {reply, me} orelse E =:= stop]),
    ?assertNot(lists:member(start, Effects)),
    {Away, _} = core(no),
    ?assertMatch({_, [{reply, me}, stop]}, handle({stop, me}, Away)).

%% Until the application has gone, and is there again.
who_leaves_does_not_try_test() ->
    {S1, _} = handle({leave, me}, holding()),
    {S2, Effects} = handle({ended, {n1, p}, shutdown, view(none)}, S1),
    ?assert(lists:member({reply, me}, Effects)),
    {S3, [{timer, look, 1000}]} = handle({look, view(none)}, S2),
    {S4, [{timer, look, 1000}]} = handle({look, away}, S3),
    ?assertMatch({_, [{timer, 'try', 0} | _]}, handle({look, view(none)}, S4)).

holding() ->
    {S0, _} = core(no),
    {S1, _} = handle({look, view(none)}, S0),
    {S2, _} = handle({'try', view(none)}, S1),
    {S3, _} = handle({started, {n1, p}, view({n1, p})}, S2),
    S3.

core(Placed) -> core(Placed, n1).

core(Placed, Self) ->
    atoll_singleton_core:init(#{self => Self, name => thing, placed => Placed, options => atoll_singleton_core:defaults()}, 0).

handle(Event, S) -> handle(Event, 0, S).

handle(Event, Now, S) -> atoll_singleton_core:handle(Event, Now, S).

%% n1 alone, or first, unless placement is asked.
view(Holder) -> #{holder => Holder, standbys => [n2 || Holder =:= none, is_second()]}.

is_second() -> atoll_name_rules:outranks(n1, n2, thing).

begun(Seed) -> ?W:run(3000, ?W:new(?NODES, Seed)).

%% Whatever happens: those that see each other never have two for long, and in the end there is one.
one_whatever_happens_test_() ->
    atoll_prop:test("one singleton", prop_one(), 2000).

prop_one() ->
    ?FORALL(
        {Seed, Steps},
        {integer(1, 1000000), list({step(), integer(0, 3000)})},
        begin
            W = lists:foldl(fun({Step, Ms}, W1) -> ?W:run(Ms, step(Step, W1)) end, ?W:new(?NODES, Seed), Steps),
            Whole = lists:foldl(
                fun(N, W1) -> ?W:do({member, N, true}, ?W:do({broken, N, false}, ?W:do({boot, N}, W1))) end, ?W:do(heal, W), ?NODES
            ),
            End = ?W:run(45000, Whole),
            Alive = [S || {S, _, never} <- ?W:runs(End)],
            ?WHENFAIL(
                io:format("~p~n~p~n", [?W:runs(End), [{N, ?W:info(N, End)} || N <- ?NODES]]),
                length(Alive) =:= 1 andalso ?W:holders(End) =:= Alive andalso
                    [?W:view(N, End) || N <- ?NODES, maps:get(holder, ?W:view(N, End)) =/= hd(Alive)] =:= [] andalso
                    no_pair_for_long(End, Steps)
            )
        end
    ).

%% Without a partition two overlap only while the first one ends.
no_pair_for_long(W, Steps) ->
    Runs = ?W:runs(W),
    lists:any(fun({Step, _}) -> element(1, Step) =:= split end, Steps) orelse
        lists:all(
            fun({{S1, Since1, Until1}, {S2, Since2, Until2}}) ->
                S1 >= S2 orelse min(last(Until1), last(Until2)) - max(Since1, Since2) =< 1000
            end,
            [{A, B} || A <- Runs, B <- Runs]
        ).

last(never) -> 1 bsl 40;
last(At) -> At.

step() ->
    oneof([
        {crash, oneof([oops, normal, {shutdown, misplaced}])},
        {kill, oneof(?NODES)},
        {boot, oneof(?NODES)},
        {split, oneof([[n1], [n1, n2], [n1, n2, n3]])},
        {heal, now},
        {member, oneof(?NODES), boolean()},
        {broken, oneof(?NODES), boolean()}
    ]).

step({heal, now}, W) -> ?W:do(heal, W);
step(Step, W) -> ?W:do(Step, W).
