%% SPDX-License-Identifier: Apache-2.0
%% X-BOT between nodes whose distances are given.
-module(atoll_hyparview_swap_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{xbot_unbiased => 0, xbot_probes => 1, xbot_gain_ms => 10, xbot_timeout_ms => 5000}).

%% i and c are in one region, o and d in the other; the rest is where its partner is.
-define(LINKS, [{i, o}, {c, d}, {i, i2}, {c, c2}, {o, o2}, {d, d2}]).
-define(ONE_REGION, [i, c, i2, c2]).
-define(NEARER, [{i, [c, i2]}, {c, [c2, i]}, {o, [d, o2]}, {d, [d2, o]}]).
-define(AS_BEFORE, [{i, [i2, o]}, {c, [c2, d]}, {o, [i, o2]}, {d, [c, d2]}]).

four_nodes_exchange_their_links_for_nearer_ones_test() ->
    World = exchange(none, ?OPTIONS),
    ?assertEqual(?NEARER, views(World)),
    ?assertEqual([], one_sided(World)).

a_node_offers_nothing_that_it_keeps_test() ->
    ?assertEqual(?AS_BEFORE, views(exchange(none, maps:put(xbot_unbiased, 1, ?OPTIONS)))).

a_gain_too_small_is_none_test() ->
    ?assertEqual(?AS_BEFORE, views(exchange(none, maps:put(xbot_gain_ms, 1000, ?OPTIONS)))).

a_message_lost_on_the_way_there_changes_nothing_test() ->
    [?assertEqual({Lost, ?AS_BEFORE}, {Lost, views(exchange(Lost, ?OPTIONS))}) || Lost <- [optimise, replace, switch]].

an_answer_lost_leaves_no_link_that_only_one_end_holds_test() ->
    [
        ?assertEqual({Lost, []}, {Lost, one_sided(exchange(Lost, ?OPTIONS))})
     || Lost <- [switched, replaced, optimised]
    ].

after_its_time_everybody_is_idle_and_an_exchange_can_begin_anew_test() ->
    [
        begin
            World = exchange(Lost, ?OPTIONS),
            ?assertEqual({Lost, []}, {Lost, [Node || Node <- nodes_of(World), phase(Node, World) =/= idle]})
        end
     || Lost <- [none, optimise, replace, switch, switched, replaced, optimised]
    ].

who_takes_part_in_one_exchange_refuses_another_test() ->
    Views = views_of(c, [c2, d]),
    Swap0 = known([{c2, 2}, {d, 100}], Views, atoll_hyparview_swap:new(c, ?OPTIONS)),
    Optimise = fun(I, N) -> {optimise, {I, N}, o, 2, 100} end,
    {Swap, Deeds} = atoll_hyparview_swap:message(i, Optimise(i, 1), Views, 0, Swap0),
    ?assertEqual([{wait, 5000}, {tell, d, {replace, {i, 1}, i, o, 198}}], Deeds),
    ?assertMatch(
        {Swap, [{tell, j, {optimised, {j, 1}, false}}]},
        atoll_hyparview_swap:message(j, Optimise(j, 1), Views, 0, Swap)
    ).

costs_and_pings_are_bounded_test() ->
    Nodes = [list_to_atom("x" ++ integer_to_list(N)) || N <- lists:seq(1, 100)],
    Views = views_of(c, Nodes),
    Swap0 = atoll_hyparview_swap:new(c, ?OPTIONS),
    Swap1 = lists:foldl(
        fun(N, S0) ->
            D = list_to_atom("d" ++ integer_to_list(N)),
            {S, _} = atoll_hyparview_swap:message(D, {switch, {i, N}, x1, 5}, Views, 0, S0),
            S
        end,
        Swap0,
        lists:seq(1, 100)
    ),
    {Swap, _, _} = atoll_hyparview_swap:tick(Views, 0, rand:seed_s(exsss, 1), Swap1),
    ?assertMatch(#{costs := 40, dropped := #{costs := 60, pings := 0}}, atoll_hyparview_swap:summary(Swap1)),
    %% A hundred neighbours are to be measured, and the costs of ten others stay.
    ?assertMatch(
        #{costs := 10, pings := 20, dropped := #{costs := 90, pings := 80}}, atoll_hyparview_swap:summary(Swap)
    ),
    {Later, _, _} = atoll_hyparview_swap:tick(Views, 5000, rand:seed_s(exsss, 1), Swap),
    ?assertMatch(#{pings := 20, unanswered := 20}, atoll_hyparview_swap:summary(Later)).

%% Each neighbour is pinged, and pinged again.
known(Costs, Views, Swap0) ->
    {Swap, Pings, _} = atoll_hyparview_swap:tick(Views, 0, rand:seed_s(exsss, 1), Swap0),
    lists:foldl(
        fun({tell, Node, {ping, N}}, S0) ->
            Cost = proplists:get_value(Node, Costs),
            {S1, [{tell, Node, {ping, M}}]} =
                atoll_hyparview_swap:message(Node, {pong, N}, Views, 3 * Cost, S0),
            {S, []} = atoll_hyparview_swap:message(Node, {pong, M}, Views, 4 * Cost, S1),
            S
        end,
        Swap,
        Pings
    ).

views_of(Self, Active) ->
    lists:foldl(
        fun(Node, Views0) ->
            {Views, none, _} = atoll_hyparview_views:adopt(Node, Views0, rand:seed_s(exsss, 1)),
            Views
        end,
        atoll_hyparview_views:new(Self, length(Active), 5),
        Active
    ).

%% A world of two regions: messages come in order, everybody measures its neighbours
%% and i measures c; then i begins. One kind of message is lost.
exchange(Lost, Options) ->
    Names = lists:usort(lists:append([[A, B] || {A, B} <- ?LINKS])),
    Nodes = maps:from_list([
        {Name, {views_of(Name, peers(Name)), atoll_hyparview_swap:new(Name, Options)}}
     || Name <- Names
    ]),
    {ViewsI, Swap} = maps:get(i, Nodes),
    {Noted, _} = atoll_hyparview_views:note(c, ViewsI, rand:seed_s(exsss, 1)),
    World0 = #{now => 0, nodes => Nodes#{i := {Noted, Swap}}, mail => [], lost => none, waits => []},
    Measured = run(lists:foldl(fun tick/2, World0, Names)),
    expire(run(tick(i, Measured#{lost := Lost}))).

peers(Name) ->
    lists:sort([B || {A, B} <- ?LINKS, A =:= Name] ++ [A || {A, B} <- ?LINKS, B =:= Name]).

tick(Name, #{nodes := Nodes, now := Now} = World) ->
    #{Name := {Views, Swap0}} = Nodes,
    {Swap, Deeds, _} = atoll_hyparview_swap:tick(Views, Now, rand:seed_s(exsss, 1), Swap0),
    do(Name, Deeds, World#{nodes := Nodes#{Name := {Views, Swap}}}).

run(#{mail := []} = World) ->
    World;
run(#{mail := Mail, nodes := Nodes} = World0) ->
    [{Now, _, From, To, Message} | Rest] = lists:sort(Mail),
    World = World0#{mail := Rest, now := Now},
    #{To := {Views, Swap0}} = Nodes,
    case Message of
        disconnect ->
            run(World#{nodes := Nodes#{To := {without(From, Views), Swap0}}});
        _ ->
            {Swap, Deeds} = atoll_hyparview_swap:message(From, Message, Views, Now, Swap0),
            run(do(To, Deeds, World#{nodes := Nodes#{To := {Views, Swap}}}))
    end.

%% The time to wait is over for those who still wait.
expire(#{waits := []} = World) ->
    World;
expire(#{waits := [Name | Waits], nodes := Nodes} = World) ->
    #{Name := {Views, Swap0}} = Nodes,
    {Swap, Deeds} = atoll_hyparview_swap:expired(Swap0),
    expire(run(do(Name, Deeds, World#{waits := Waits, nodes := Nodes#{Name := {Views, Swap}}}))).

do(Name, Deeds, World) ->
    lists:foldl(fun(Deed, W) -> deed(Deed, Name, W) end, World, Deeds).

deed({tell, _To, Message}, _Name, #{lost := Lost} = World) when element(1, Message) =:= Lost ->
    World;
deed({tell, To, Message}, Name, World) ->
    post(Name, To, Message, World);
deed({adopt, Node}, Name, #{nodes := Nodes} = World) ->
    #{Name := {Views0, Swap}} = Nodes,
    {Views, none, _} = atoll_hyparview_views:adopt(Node, Views0, rand:seed_s(exsss, 1)),
    World#{nodes := Nodes#{Name := {Views, Swap}}};
deed({drop, Node}, Name, #{nodes := Nodes} = World) ->
    #{Name := {Views, Swap}} = Nodes,
    post(Name, Node, disconnect, World#{nodes := Nodes#{Name := {without(Node, Views), Swap}}});
deed({wait, _Ms}, Name, #{waits := Waits} = World) ->
    World#{waits := Waits ++ [Name]};
deed(wait_no_longer, Name, #{waits := Waits} = World) ->
    World#{waits := lists:delete(Name, Waits)}.

post(From, To, Message, #{now := Now, mail := Mail} = World) ->
    World#{mail := Mail ++ [{Now + distance(From, To), length(Mail), From, To, Message}]}.

distance(A, B) ->
    case lists:member(A, ?ONE_REGION) =:= lists:member(B, ?ONE_REGION) of
        true -> 1;
        false -> 50
    end.

without(Node, Views) -> atoll_hyparview_views:forget(Node, Views).

nodes_of(#{nodes := Nodes}) -> lists:sort(maps:keys(Nodes)).

views(World) -> [{Node, active(Node, World)} || Node <- [i, c, o, d]].

active(Node, #{nodes := Nodes}) -> atoll_hyparview_views:active(element(1, maps:get(Node, Nodes))).

phase(Node, #{nodes := Nodes}) ->
    maps:get(phase, atoll_hyparview_swap:summary(element(2, maps:get(Node, Nodes)))).

one_sided(World) ->
    [{A, B} || A <- nodes_of(World), B <- active(A, World), not lists:member(A, active(B, World))].
