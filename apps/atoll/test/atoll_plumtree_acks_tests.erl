%% SPDX-License-Identifier: Apache-2.0
%% Acknowledgements of broadcasts: who waits for them, and how they go to the sender.
-module(atoll_plumtree_acks_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Who waits

from(Need) -> {self(), Need}.

waits(Needs, Members) ->
    lists:foldl(
        fun(Need, W) -> atoll_plumtree_waits:start({1, Need}, from(Need), Need, Members, W) end,
        atoll_plumtree_waits:new(),
        Needs
    ).

acked(Need, Nodes, Waits) ->
    {Ended, Left} = atoll_plumtree_waits:acked({1, Need}, lists:sort(Nodes), Waits),
    {[Answer || {{1, N}, {_, N}, Answer} <- Ended, N =:= Need], Left}.

all_have_acknowledged_when_the_last_has_test() ->
    {[], W1} = acked(all, [c, a], waits([all], [a, b, c])),
    ?assertEqual([b], atoll_plumtree_waits:waiting({1, all}, W1)),
    {[Answer], W2} = acked(all, [b, x], W1),
    ?assertEqual({{ok, [a, b, c]}, 0}, {Answer, atoll_plumtree_waits:size(W2)}),
    %% What comes late or twice changes nothing.
    ?assertEqual({[], W2}, acked(all, [b], W2)),
    ?assertEqual({[], W1}, acked(all, [a], W1)).

as_many_as_were_asked_for_are_enough_test() ->
    {[], W1} = acked(2, [c], waits([2], [a, b, c])),
    ?assertMatch({[{ok, [a, c]}], _}, acked(2, [a], W1)),
    ?assertMatch({{{1, 2}, {_, 2}, {error, {acknowledged, 1, 2}}}, _}, atoll_plumtree_waits:expired({1, 2}, W1)).

a_member_that_is_gone_has_not_answered_and_is_not_waited_for_test() ->
    {[], W1} = acked(all, [a], waits([all], [a, b, c])),
    {[], W2} = atoll_plumtree_waits:gone(b, W1),
    {[Answer], _} = acked(all, [c], W2),
    ?assertEqual({error, {unanswered, [b]}}, Answer),
    %% Who had answered has.
    {[], W3} = atoll_plumtree_waits:gone(a, W1),
    ?assertMatch({[{ok, [a, b, c]}], _}, acked(all, [b, c], W3)),
    ?assertMatch({{_, _, {error, {unanswered, [b, c]}}}, _}, atoll_plumtree_waits:expired({1, all}, W2)).

when_no_more_can_acknowledge_that_is_said_at_once_test() ->
    {[], W1} = acked(2, [a], waits([2], [a, b, c])),
    {[], W2} = atoll_plumtree_waits:gone(b, W1),
    ?assertMatch({[{{1, 2}, _, {error, {acknowledged, 1, 2}}}], _}, atoll_plumtree_waits:gone(c, W2)).

%% As many die or acknowledge, of few members and of many.
what_a_member_costs_does_not_grow_with_the_members_test_() ->
    {timeout, 60, fun what_a_member_costs_does_not_grow_with_the_members/0}.

what_a_member_costs_does_not_grow_with_the_members() ->
    Cost = fun(Count) ->
        Make = fun() ->
            Members = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
            {lists:sublist(Members, 1, 20), lists:sublist(Members, 21, 20), waits([all | lists:seq(41, 60)], Members)}
        end,
        atoll_test_cost:reductions(Make, fun({Gone, Acked, Waits}) ->
            Left = lists:foldl(fun(N, W) -> element(2, atoll_plumtree_waits:gone(N, W)) end, Waits, Gone),
            lists:foldl(fun(N, W) -> element(2, atoll_plumtree_waits:acked({1, all}, [N], W)) end, Left, Acked)
        end)
    end,
    {Few, Many} = {Cost(200), Cost(20000)},
    ?assert(Many < 5 * Few, {Few, Many}).

%% Whatever comes in whatever order: it ends once, and says what was so.
a_wait_ends_once_and_says_what_was_so_test_() ->
    atoll_prop:test(?FUNCTION_NAME, waits_end(), 500).

waits_end() ->
    Node = elements([a, b, c, d, x]),
    ?FORALL(
        {Need, Steps},
        {oneof([all, range(1, 4)]), list(oneof([{acked, list(Node)}, {gone, Node}]))},
        begin
            Step = fun
                ({acked, Nodes}, W) -> atoll_plumtree_waits:acked({1, Need}, lists:usort(Nodes), W);
                ({gone, N}, W) -> atoll_plumtree_waits:gone(N, W)
            end,
            {Answers, Left} = lists:foldl(
                fun(S, {Before, W0}) ->
                    {Ended, W} = Step(S, W0),
                    {Before ++ [A || {_, _, A} <- Ended], W}
                end,
                {[], waits([Need], [a, b, c, d])},
                Steps
            ),
            {Acked, Gone, Answer} = lists:foldl(fun(S, Model) -> model(S, Need, Model) end, {[], [], none}, Steps),
            case Answers of
                [] -> atoll_plumtree_waits:size(Left) =:= 1 andalso Answer =:= none;
                [Only] -> atoll_plumtree_waits:size(Left) =:= 0 andalso Only =:= Answer;
                _ -> {Acked, Gone} =:= twice
            end
        end
    ).

model(_Step, _Need, {_, _, Answer} = Done) when Answer =/= none -> Done;
model(Step, Need, {Acked0, Gone0, none}) ->
    Members = [a, b, c, d],
    {Acked, Gone} =
        case Step of
            {acked, Nodes} -> {lists:usort(Acked0 ++ [N || N <- Nodes, lists:member(N, Members), not lists:member(N, Gone0)]), Gone0};
            {gone, N} -> {Acked0, lists:usort(Gone0 ++ [M || M <- [N], lists:member(M, Members), not lists:member(M, Acked0)])}
        end,
    Open = (Members -- Acked) -- Gone,
    Count = case Need of all -> 4; _ -> Need end,
    Answer =
        if
            length(Acked) >= Count -> {ok, Acked};
            Need =:= all, Open =:= [] -> {error, {unanswered, Gone}};
            Need =/= all, length(Acked) + length(Open) < Count -> {error, {acknowledged, length(Acked), Need}};
            true -> none
        end,
    {Acked, Gone, Answer}.

%% How they go

options(Options) ->
    maps:merge(#{ack_ms => 50, ask_ms => 1000, acks_max => 3, waits_max => 2}, Options).

new() -> new(#{}).
new(Options) -> atoll_plumtree_acks:new(me, options(Options)).

run(Steps, Acks) -> lists:foldl(fun(Step, {A, _}) -> Step(A) end, {Acks, []}, Steps).

came(Id, From) -> came(Id, From, 0).
came(Id, From, Now) -> fun(A) -> {atoll_plumtree_acks:came(Id, From, Now, A), []} end.
delivered(Id) -> fun(A) -> atoll_plumtree_acks:delivered(Id, 0, A) end.
received(List) -> fun(A) -> atoll_plumtree_acks:received(List, A) end.
lost(Node) -> lost(Node, 0).
lost(Node, Now) -> fun(A) -> atoll_plumtree_acks:lost(Node, Now, A) end.
flush() -> flush([p, q]).
flush(Up) -> fun(A) -> atoll_plumtree_acks:flush(Up, A) end.

acknowledgements_are_gathered_and_go_to_whom_the_message_came_from_test() ->
    [Id1, Id2] = [{r, 1, 1}, {s, 1, 9}],
    {Acks, Timer} = run([came(Id1, p), delivered(Id1)], new()),
    ?assertEqual([{timer, acks, 50}], Timer),
    {Flushed, Sends} = run([received([{Id1, [a, b]}]), came(Id2, q), received([{Id2, [c]}]), received([{Id1, [a]}]), flush()], Acks),
    ?assertEqual([{send, p, {acks, [{Id1, [a, b, me]}]}}, {send, q, {acks, [{Id2, [c]}]}}], Sends),
    %% What is known is not told again.
    ?assertMatch({_, []}, run([received([{Id1, [b]}])], Flushed)),
    {_, More} = run([received([{Id1, [d]}]), flush()], Flushed),
    ?assertEqual([{send, p, {acks, [{Id1, [d]}]}}], More).

what_a_lost_neighbour_was_told_the_sender_is_told_again_test() ->
    Id = {r, 1, 1},
    {Acks, _} = run([came(Id, p), delivered(Id), received([{Id, [a]}]), flush()], new()),
    {Lost, Timer} = run([lost(p)], Acks),
    ?assertEqual([{timer, acks, 50}], Timer),
    {Told, Sends} = run([flush([q])], Lost),
    ?assertEqual([{send, r, {acks, [{Id, [a, me]}]}}], Sends),
    %% And what comes later.
    {_, More} = run([received([{Id, [b]}]), flush([q])], Told),
    ?assertEqual([{send, r, {acks, [{Id, [b]}]}}], More),
    ?assertEqual({Acks, []}, run([lost(q)], Acks)).

who_is_asked_says_all_that_it_knows_test() ->
    Id = {r, 1, 1},
    {Acks, _} = run([came(Id, p), received([{Id, [a]}]), delivered(Id), flush()], new()),
    ?assertEqual([{send, r, {acks, [{Id, [a, me]}]}}], atoll_plumtree_acks:wanted(r, [{1, 1}, {1, 2}], Acks)),
    %% It says so when it has delivered it.
    ?assertEqual([], atoll_plumtree_acks:wanted(r, [{1, 3}], Acks)).

a_sender_asks_those_that_it_has_not_heard_of_until_it_has_test() ->
    Members = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 40)],
    {Acks, Timers} = atoll_plumtree_acks:request({1, 1}, from(all), {all, 9000}, [me | Members], new()),
    ?assertEqual([{timer, {ack, {1, 1}}, 9000}, {timer, {ask, {1, 1}}, 1000}], Timers),
    {_, [Again | Sends]} = atoll_plumtree_acks:ask({1, 1}, rand:seed_s(exsss, 1), Acks),
    ?assertEqual({timer, {ask, {1, 1}}, 1000}, Again),
    Asked = [Node || {send, Node, {acks_wanted, [{1, 1}]}} <- Sends],
    ?assertEqual({16, []}, {length(lists:usort(Asked)), Asked -- Members}),
    {Done, Ended} = run([received([{{me, 1, 1}, lists:sort(Members)}])], Acks),
    ?assertEqual([{reply, from(all), {ok, lists:sort([me | Members])}}, {cancel, {ack, {1, 1}}}, {cancel, {ask, {1, 1}}}], Ended),
    ?assertMatch({_, []}, atoll_plumtree_acks:ask({1, 1}, rand:seed_s(exsss, 1), Done)).

callers_too_many_are_refused_and_counted_test() ->
    Request = fun(Seq) -> fun(A) -> atoll_plumtree_acks:request({1, Seq}, from(all), {all, 9000}, [me, a], A) end end,
    {Acks, _} = run([Request(1), Request(2)], new()),
    {true, Refused} = atoll_plumtree_acks:is_full(Acks),
    ?assertEqual(#{acknowledged => 0, waiting => 2, waiting_refused => 1, strays => 0}, atoll_plumtree_acks:summary(Refused)),
    {Less, [{reply, _, {error, {unanswered, [a]}}} | _]} = atoll_plumtree_acks:expired({1, 1}, Refused),
    ?assertMatch({false, _}, atoll_plumtree_acks:is_full(Less)).

acknowledgements_are_waited_for_a_minute_at_most_test() ->
    Say = fun(Ms) -> atoll:broadcast(t, x, #{ack => all, timeout => Ms}) end,
    ?assertMatch({error, Off} when Off =:= overlay_off; Off =:= not_running, Say(60000)),
    {error, {bad_acknowledgement, _} = Error} = Say(60001),
    ?assert(string:find(atoll:format_error(Error), "60000 at most") =/= nomatch).

the_oldest_message_is_forgotten_for_a_newer_one_and_counted_test() ->
    {Acks, _} = run([came({r, 1, Seq}, p) || Seq <- [1, 2, 3, 4]], new()),
    ?assertMatch({#{acknowledged := 3}, 1}, {atoll_plumtree_acks:summary(Acks), atoll_plumtree_acks:dropped(Acks)}),
    %% What comes for it is no more told of.
    {Stray, Effects} = run([received([{{r, 1, 1}, [a]}, {{r, 1, 5}, [a]}])], Acks),
    ?assertMatch({#{acknowledged := 3, strays := 2}, []}, {atoll_plumtree_acks:summary(Stray), Effects}).

who_has_delivered_a_message_says_so_when_asked_though_it_is_forgotten_test() ->
    Ids = [{r, 1, Seq} || Seq <- [1, 2, 3, 4]],
    {Acks, _} = run([Step || Id <- Ids, Step <- [came(Id, p), delivered(Id)]], new()),
    ?assertEqual([{send, r, {acks, [{{r, 1, 1}, [me]}]}}], atoll_plumtree_acks:wanted(r, [{1, 1}, {1, 9}], Acks)),
    %% Of so many, and no more.
    {Later, _} = run([delivered({s, 1, Seq}) || Seq <- lists:seq(1, 16 * 3)], Acks),
    ?assertEqual([], atoll_plumtree_acks:wanted(r, [{1, 1}], Later)),
    ?assertMatch([_], atoll_plumtree_acks:wanted(s, [{1, 1}], Later)).

what_is_old_no_neighbour_is_told_again_test() ->
    [Old, Young] = [{r, 1, 1}, {r, 1, 2}],
    {Acks, _} = run([came(Old, p), delivered(Old), flush(), came(Young, p, 2000), received([{Young, [a]}]), flush()], new()),
    {Lost, _} = run([lost(p, 5000)], Acks),
    {_, Sends} = run([flush([q])], Lost),
    ?assertEqual([{send, r, {acks, [{Young, [a]}]}}], Sends),
    ?assertMatch({#{acknowledged := 1}, 0}, {atoll_plumtree_acks:summary(Lost), atoll_plumtree_acks:dropped(Lost)}),
    ?assertMatch({_, []}, run([lost(p, 7000)], Acks)).

%% Whoever brought a message had it before, so what goes to the sender goes in no circle: whichever
%% neighbours are lost on the way, the sender hears of all, without asking.
the_sender_hears_of_all_whichever_neighbours_are_lost_test_() ->
    atoll_prop:test(?FUNCTION_NAME, heard_of_all(), 500).

%% Node 0 is the sender. Each other one has the message of a node before it, and may lose that one
%% in some round.
heard_of_all() ->
    ?FORALL(
        Nodes,
        ?LET(N, range(1, 20), [{I, range(0, I - 1), oneof([never, range(1, 12)])} || I <- lists:seq(1, N)]),
        begin
            Id = {0, 1, 1},
            Begun = maps:from_list([
                {I, element(1, run([came(Id, First), delivered(Id)], atoll_plumtree_acks:new(I, options(#{}))))}
             || {I, First, _} <- Nodes
            ]),
            [I || {I, _, _} <- Nodes] =:= rounds(1, Nodes, Begun, [])
        end
    ).

rounds(Round, Nodes, Acks0, Heard) ->
    Up = fun(First, Lost) -> [First || Round < Lost] end,
    Acks1 = maps:from_list([
        {I, case Round of Lost -> element(1, run([lost(First)], map_get(I, Acks0))); _ -> map_get(I, Acks0) end}
     || {I, First, Lost} <- Nodes
    ]),
    Flushed = [{I, atoll_plumtree_acks:flush(Up(First, Lost), map_get(I, Acks1))} || {I, First, Lost} <- Nodes],
    Mail = [{To, List} || {_, {_, Sends}} <- Flushed, {send, To, {acks, List}} <- Sends],
    Acks = lists:foldl(
        fun
            ({0, _}, All) -> All;
            ({To, List}, All) -> maps:update_with(To, fun(A) -> element(1, run([received(List)], A)) end, All)
        end,
        maps:from_list([{I, A} || {I, {A, _}} <- Flushed]),
        Mail
    ),
    More = lists:umerge([Heard | [Of || {0, List} <- Mail, {_, Of} <- List]]),
    case Mail of
        [] when Round > 12 -> More;
        _ -> rounds(Round + 1, Nodes, Acks, More)
    end.
