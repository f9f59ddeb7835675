%% SPDX-License-Identifier: Apache-2.0
%% @doc Doped clients in a world of their own, in which every message arrives at once, or as the test says.
-module(im_doped_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, <<"tc1_1">>).
-define(B, <<"tc1_2">>).

properties_test_() ->
    atoll_prop:tests([
        {"a dialogue has all its messages and ends by itself, both sides clean", prop_dialogue(), 300},
        {"a monologue that is stopped is clean, and what was said was wanted", prop_monologue(), 300},
        {"numbers and text of a body", prop_body(), 1000}
    ]).

prop_dialogue() ->
    ?FORALL(
        {Length, Window, Think, Seed},
        {range(1, 30), range(1, 5), oneof([{0, 0}, {1, 20}]), integer()},
        begin
            World = run([{0, ?A, {converse, {1, 7}, ?B, Length}}], world(#{think_ms => Think, window => Window}, Seed)),
            #{sent := Sent, received := Received, delivered := Delivered, reports := Reports} = World,
            Ended = lists:sort([{Whose, Why} || {ended, {1, 7}, Whose, _, Why} <- Reports]),
            ?WHENFAIL(
                io:format("~p~n", [World]),
                Sent =:= Length * Window andalso Received =:= Sent andalso Delivered =:= Sent andalso
                    Ended =:= [{mine, finished}, {other, finished}] andalso is_clean(Reports)
            )
        end
    ).

prop_monologue() ->
    ?FORALL(
        {Gaps, Window, Seed},
        {list(range(0, 3000)), range(1, 4), integer()},
        begin
            {Speak, _} = lists:mapfoldl(fun(Gap, Us) -> {{Us + Gap, ?A, {speak, ?B, {2, 1}, Us + Gap}}, Us + Gap} end, 1000, Gaps),
            Last = lists:max([5000 | [Us || {Us, _, _} <- Speak]]) + 1,
            World0 = world(#{think_ms => {0, 0}, window => Window}, Seed),
            Events = [{0, ?A, {converse, {2, 1}, ?B, monologue}} | Speak] ++ [{Last, ?A, stop}, {Last, ?B, stop}, {Last + 5000, ?A, finish}],
            World = #{sent := Sent, received := Received, delivered := Delivered, shed := Shed, reports := Reports} = run(Events, World0),
            ?WHENFAIL(
                io:format("~p~n", [World]),
                Sent + Shed =:= length(Gaps) andalso Received =:= Sent andalso Delivered =:= Sent andalso
                    [open || {open, {2, 1}, ?B} <- Reports] =:= [open] andalso is_clean(Reports)
            )
        end
    ).

prop_body() ->
    ?FORALL(
        {Id, N, Left, Text},
        {{pos_integer(), pos_integer()}, pos_integer(), oneof([monologue, non_neg_integer()]), ?SUCHTHAT(T, binary(), T =/= <<>>)},
        im_doped_core:read(im_doped_core:body(Id, N, Left, Text)) =:= {Id, N, Left}
    ).

what_no_doped_client_has_said_is_read_by_none_test() ->
    [?assertEqual(error, im_doped_core:read(Body)) || Body <- [<<>>, <<"hello">>, <<"1.2.3">>, <<"1.2.0.4 a">>, <<"1.2.3.a b">>, <<"1..3.4 a">>, <<1, 2, 3>>]].

the_paper_s_text_and_time_to_think_test() ->
    World = run([{0, ?A, {converse, {1, 1}, ?B, 60}}], world(#{think_ms => {1000, 20000}, window => 1}, atoll_tier:seed(?MODULE))),
    #{bodies := Bodies, times := Times} = World,
    Texts = [lists:last(binary:split(Body, <<" ">>)) || Body <- Bodies],
    ?assertEqual(60, length(Texts)),
    ?assert(lists:all(fun(Text) -> byte_size(Text) >= 1 andalso byte_size(Text) =< 75 end, Texts)),
    ?assertEqual([], [C || Text <- Texts, <<C>> <= Text, C < $a orelse C > $z]),
    [First | _] = InOrder = lists:reverse(Times),
    Thought = [First | [Later - Earlier || {Earlier, Later} <- lists:zip(lists:droplast(InOrder), tl(InOrder))]],
    %% The messenger takes two milliseconds and the opening two.
    ?assert(lists:all(fun(Us) -> Us >= 1000000 andalso Us =< 20004000 end, Thought)).

a_lost_answer_is_found_though_all_stand_still_test() ->
    World0 = (world(#{think_ms => {0, 0}, window => 1}, 1))#{lose => 5},
    #{reports := Reports} = run([{0, ?A, {converse, {1, 1}, ?B, 20}}, {1000000, ?A, drained}, {1000000, ?B, drained}], World0),
    ?assertMatch(#{counts := #{lost := 1}}, report(Reports)).

latency_counts_from_when_it_was_to_be_said_test() ->
    Speak = [{10000, ?A, {speak, ?B, {1, 1}, 10000 - 100 * N}} || N <- [3, 2, 1]],
    #{latencies := Latencies} = run([{0, ?A, {converse, {1, 1}, ?B, monologue}} | Speak], world(#{think_ms => {0, 0}, window => 1}, 1)),
    %% Each takes four milliseconds, one after the other.
    ?assertEqual([4300, 8200, 12100], lists:reverse(Latencies)).

a_client_that_is_busy_with_that_peer_does_not_begin_again_test() ->
    Begin = [{0, ?A, {converse, {1, N}, ?B, 3}} || N <- [1, 2]],
    #{reports := Reports} = run(Begin, world(#{think_ms => {0, 0}, window => 1}, 1)),
    ?assertEqual([busy], [Why || {not_begun, {1, 2}, Why} <- Reports]),
    ?assert(is_clean(Reports)).

%% The world: who is doped, and what is under way, by time. A message and each word about it takes
%% two milliseconds.

-define(HOP_US, 2000).

world(Settings, Seed) ->
    #{
        clients => #{}, settings => Settings, seed => Seed, agenda => gb_trees:empty(), count => 0, lose => none,
        sent => 0, received => 0, delivered => 0, shed => 0, reports => [], bodies => [], times => [], latencies => []
    }.

run(Events, #{settings := Settings, seed := Seed} = World0) ->
    Clients = maps:from_list([{Name, im_doped_core:new(Name, Settings, Seed)} || Name <- [?A, ?B]]),
    run(lists:foldl(fun({Us, Who, Event}, W) -> later(Us, Who, Event, W) end, World0#{clients := Clients}, Events)).

run(#{agenda := Agenda0} = World) ->
    case gb_trees:is_empty(Agenda0) of
        true ->
            World;
        false ->
            {{Us, _}, {Who, Event}, Agenda} = gb_trees:take_smallest(Agenda0),
            #{clients := #{Who := Doped0} = Clients} = World,
            {Effects, Doped} = im_doped_core:event(Event, Us, Doped0),
            run(lists:foldl(fun(Effect, W) -> effect(Effect, Us, Who, W) end, World#{agenda := Agenda, clients := Clients#{Who := Doped}}, Effects))
    end.

later(Us, Who, Event, #{agenda := Agenda, count := Count} = World) ->
    World#{agenda := gb_trees:insert({Us, Count}, {Who, Event}, Agenda), count := Count + 1}.

effect({chat, Peer}, Us, Who, World) -> later(Us + ?HOP_US, Who, {session, Peer, online}, World);
effect({say, Peer, N, Body}, Us, Who, #{sent := Sent, lose := Lose, bodies := Bodies, times := Times} = World0) ->
    World = later(Us + ?HOP_US, Who, {accepted, Peer, N}, World0#{bodies := [Body | Bodies], times := [Us | Times]}),
    case Sent + 1 =:= Lose of
        true -> World;
        false -> later(Us + ?HOP_US, Peer, {message, Who, N, Body, none}, later(Us + 2 * ?HOP_US, Who, {delivered, Peer, N}, World))
    end;
effect({finish, Peer}, Us, Who, World) ->
    %% After what is under way.
    At = Us + 3 * ?HOP_US,
    later(At, Who, {ended, Peer, finished}, later(At, Peer, {ended, Who, finished}, World));
effect({later, Ms, Event}, Us, Who, World) -> later(Us + 1000 * Ms, Who, Event, World);
effect({report, Report}, _Us, _Who, #{reports := Reports} = World) -> World#{reports := [Report | Reports]};
effect({delivered, _, _, _, Latency}, _Us, _Who, #{delivered := N, latencies := Latencies} = World) ->
    World#{delivered := N + 1, latencies := [Latency | Latencies]};
effect(Count, _Us, _Who, World) -> maps:update_with(Count, fun(N) -> N + 1 end, World).

is_clean(Reports) -> im_history:is_clean(report(Reports)).

report(Reports) ->
    im_history:close(lists:foldl(fun im_history:event/2, im_history:new(), [{side, Side} || {ended, _, _, Side, _} <- Reports])).
