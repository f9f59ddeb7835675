%% SPDX-License-Identifier: Apache-2.0
%% The conversation of two nodes: all that is said arrives once and in order, whatever is
%% lost, and a new life of one end begins anew.
-module(atoll_session_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, atoll_session).

limits() -> #{batch => 3, window => 2, resend_ms => 100, answer_ms => 1000}.

properties_test_() ->
    atoll_prop:tests([
        {"what is said arrives once and in order", prop_in_order(), 1000},
        {"what a new life of the other end has not heard is said again", prop_reborn(), 3000},
        {"what an end gave up is said anew by both", prop_anew(), 3000}
    ]).

%% Two ends, a and b; wires on their way between them, some of which are lost.

prop_in_order() ->
    ?FORALL(Deeds, list(deed()), begin
        World = calm(lists:foldl(fun do/2, world(), Deeds)),
        heard(a, World) =:= said(b, World) andalso heard(b, World) =:= said(a, World)
    end).

%% After it, each end has heard all that the other end said since it began anew, and
%% nothing of what came before.
prop_reborn() ->
    ?FORALL(Deeds, list(frequency([{12, deed()}, {1, {reborn, side()}}])), begin
        World = calm(lists:foldl(fun do/2, calm(world()), Deeds)),
        ?WHENFAIL(
            io:format("~p~n", [World]),
            heard(a, World) =:= said(b, World) andalso heard(b, World) =:= said(a, World)
        )
    end).

%% The same where an end gives up what the other lacks.
prop_anew() ->
    ?FORALL(Deeds, list(frequency([{12, deed()}, {1, {anew, side()}}])), begin
        World = calm(lists:foldl(fun do/2, calm(world()), Deeds)),
        ?WHENFAIL(
            io:format("~p~n", [World]),
            heard(a, World) =:= said(b, World) andalso heard(b, World) =:= said(a, World)
        )
    end).

deed() -> frequency([{4, {say, side()}}, {3, {flush, side()}}, {5, {arrive, side()}}, {2, {lose, side()}}, {2, {tick, choose(1, 200)}}]).

side() -> oneof([a, b]).

world() ->
    lists:foldl(fun(S, W) -> do({reborn, S}, W) end, #{ends => #{}, now => 0, n => 1}, [a, b]).

do({say, Side}, #{n := N} = World) ->
    say(Side, N, World#{n := N + 1});
do({flush, Side}, #{now := Now} = World) ->
    {C0, Said, Heard, On} = get_end(Side, World),
    {Wires, C} = ?C:flush(Now, C0),
    set_end(Side, {C, Said, Heard, On ++ Wires}, World);
do({arrive, Side}, #{now := Now, n := N} = World0) ->
    %% What the side has sent arrives at the other.
    case get_end(Side, World0) of
        {_, _, _, []} ->
            World0;
        {C, Said, Heard, [Wire | On]} ->
            World = set_end(Side, {C, Said, Heard, On}, World0#{n := N + 1}),
            Other = other(Side),
            {C1, Said1, Heard1, On1} = get_end(Other, World),
            {What, Items, C2} = ?C:take(Wire, {{N, N}, Now}, C1),
            case What of
                same -> set_end(Other, {C2, Said1, Heard1 ++ Items, On1}, World);
                reset -> set_end(Other, {C2, Said1, Items, On1}, World);
                restart -> say(Other, N, set_end(Other, {C2, [], Items, On1}, World))
            end
    end;
do({lose, Side}, World) ->
    case get_end(Side, World) of
        {C, Said, Heard, [_ | On]} -> set_end(Side, {C, Said, Heard, On}, World);
        _ -> World
    end;
do({tick, Ms}, #{now := Now0} = World) ->
    Now = Now0 + Ms,
    lists:foldl(
        fun(Side, W) ->
            {C0, Said, Heard, On} = get_end(Side, W),
            {_, Wires, C} = ?C:tick(Now, C0),
            set_end(Side, {C, Said, Heard, On ++ Wires}, W)
        end,
        World#{now := Now},
        [a, b]
    );
do({anew, Side}, #{now := Now, n := N} = World) ->
    {C, _, Heard, On} = get_end(Side, World),
    say(Side, N, set_end(Side, {?C:begin_anew({N, N}, Now, C), [], Heard, On}, World#{n := N + 1}));
do({reborn, Side}, #{now := Now, n := N, ends := Ends} = World) ->
    On =
        case Ends of
            #{Side := {_, _, _, Sent}} -> Sent;
            #{} -> []
        end,
    %% It says something at once, so that the other hears of it.
    say(Side, N, set_end(Side, {?C:new({N, N}, limits(), Now), [], [], On}, World#{n := N + 1})).

say(Side, N, World) ->
    {C, Said, Heard, On} = get_end(Side, World),
    set_end(Side, {?C:push({Side, N}, C), Said ++ [{Side, N}], Heard, On}, World).

get_end(Side, #{ends := Ends}) -> maps:get(Side, Ends).
set_end(Side, End, #{ends := Ends} = World) -> World#{ends := Ends#{Side => End}}.
other(a) -> b;
other(b) -> a.

said(Side, World) -> element(2, get_end(Side, World)).
heard(Side, World) -> element(3, get_end(Side, World)).

calm(World) ->
    lists:foldl(
        fun(_, W) -> lists:foldl(fun do/2, W, [{flush, a}, {flush, b}, {arrive, a}, {arrive, b}, {arrive, a}, {arrive, b}, {arrive, a}, {arrive, b}, {tick, 60}]) end,
        World,
        lists:seq(1, 400)
    ).

one_message_for_many_test() ->
    C0 = lists:foldl(fun ?C:push/2, ?C:new({1, 1}, limits(), 0), [1, 2, 3, 4, 5, 6, 7, 8]),
    {Wires, C} = ?C:flush(0, C0),
    %% Two batches of three; the window is full, two wait.
    ?assertMatch([{b, {1, 1}, none, 1, 0, [1, 2, 3]}, {b, {1, 1}, none, 2, 0, [4, 5, 6]}], Wires),
    ?assertEqual(2, ?C:backlog(C)),
    ?assertMatch({[], _}, ?C:flush(0, C)).

a_silent_peer_is_noticed_test() ->
    {_, C} = ?C:flush(0, ?C:push(x, ?C:new({1, 1}, limits(), 0))),
    ?assertMatch({ok, [_], _}, ?C:tick(999, C)),
    {silent, [Again], Silent} = ?C:tick(1000, C),
    ?assertEqual([false, true], [?C:is_silent(End) || End <- [C, Silent]]),
    %% It is found silent once in a while, and heard as soon as it acknowledges something.
    ?assertMatch({ok, _, _}, ?C:tick(1999, Silent)),
    ?assertMatch({silent, _, _}, ?C:tick(2000, Silent)),
    {same, [x], Other} = ?C:take(Again, {{2, 2}, 5000}, ?C:new({2, 1}, limits(), 0)),
    {[Answer], _} = ?C:flush(5000, ?C:push(y, Other)),
    {same, [y], Heard} = ?C:take(Answer, {{1, 2}, 5000}, Silent),
    ?assertNot(?C:is_silent(Heard)),
    ?assertMatch({ok, _, _}, ?C:tick(1000, ?C:excuse(500, C))).

a_silent_peer_is_told_the_first_batch_again_test() ->
    {[First, _], C} = ?C:flush(0, lists:foldl(fun ?C:push/2, ?C:new({1, 1}, limits(), 0), [1, 2, 3, 4])),
    ?assertMatch({ok, [First, _], _}, ?C:tick(100, C)),
    {silent, _, Silent} = ?C:tick(1000, C),
    ?assertMatch({ok, [First], _}, ?C:tick(1100, Silent)).

silence_counts_from_when_something_was_said_test() ->
    {_, C} = ?C:flush(5000, ?C:push(x, ?C:new({1, 1}, limits(), 0))),
    ?assertMatch({ok, _, _}, ?C:tick(5999, C)),
    ?assertMatch({silent, _, _}, ?C:tick(6000, C)).

quiet_when_nothing_is_owed_test() ->
    C0 = ?C:new({1, 1}, limits(), 0),
    ?assert(?C:is_quiet(C0)),
    {same, [x], C1} = ?C:take({b, {2, 1}, none, 1, 0, [x]}, {{1, 9}, 0}, C0),
    ?assertNot(?C:is_quiet(C1)),
    {ok, [{b, {1, 1}, {2, 1}, 0, 1, []}], C2} = ?C:tick(50, C1),
    ?assert(?C:is_quiet(C2)).

%% Over several lanes what an earlier life has said may come after what the later one says.
an_older_stream_is_no_new_one_test() ->
    New = ?C:new({9, 9}, limits(), 0),
    Batch = fun(Id, Seq, Item) -> {b, Id, none, Seq, 0, [Item]} end,
    {same, [one], Later} = ?C:take(Batch({2, 1}, 1, one), {{9, 10}, 1}, New),
    {same, [], Same} = ?C:take(Batch({1, 5}, 1, old), {{9, 11}, 2}, Later),
    ?assertMatch({same, [two], _}, ?C:take(Batch({2, 1}, 2, two), {{9, 12}, 3}, Same)),
    %% A later one is: what was said before is void.
    ?assertMatch({reset, [three], _}, ?C:take(Batch({3, 1}, 1, three), {{9, 13}, 4}, Same)).
