%% SPDX-License-Identifier: Apache-2.0
%% What the two ends of a circuit decide about a connection of its own: each case alone,
%% and both ends in a little world where everything takes its time.
-module(atoll_dist_own_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OWN, atoll_dist_own).

new(Here, There, Role) -> ?OWN:new(#{here => Here, there => There, role => Role}).

opener() -> new(<<"a">>, <<"b">>, opener).
acceptor() -> new(<<"b">>, <<"a">>, acceptor).

%% The acts of the last of these events.
run(Events, Own) ->
    lists:foldl(fun(Event, {_, O}) -> ?OWN:handle(Event, O) end, {[], Own}, Events).

acts(Events, Own) -> element(1, run(Events, Own)).

who_is_wanted_is_connected_with_once_test() ->
    ?assertEqual([cancel, connect], acts([{wants, true}], opener())),
    ?assertEqual([], acts([{wants, true}, {wants, true}], opener())),
    ?assertEqual([stop], acts([{wants, true}, {wants, false}], opener())).

an_attempt_that_fails_is_made_again_with_growing_pauses_test() ->
    Failed = fun(Times) -> [{wants, true} | lists:append(lists:duplicate(Times, [timeout, failed]))] end,
    Pauses = [Ms || Times <- lists:seq(1, 12), {timer, Ms} <- acts(Failed(Times), opener())],
    ?assertEqual(lists:sort(Pauses), Pauses),
    ?assertMatch({250, 30000, 12}, {hd(Pauses), lists:last(Pauses), length(Pauses)}),
    %% Until it is not wanted.
    ?assertEqual([], acts(Failed(3) ++ [{wants, false}, timeout], opener())).

the_circuit_goes_over_it_by_the_one_that_opened_it_test() ->
    Up = [{wants, true}, up],
    ?assertEqual([{tell, true}, better, {timer, 2000}], acts(Up, opener())),
    ?assertEqual([{tell, true}], acts(Up, acceptor())),
    %% It does not at once: the circuit was on its way elsewhere.
    ?assertEqual([better, {timer, 2000}], acts(Up ++ [timeout], opener())),
    ?assertEqual([{timer, 10000}], acts(Up ++ [{moved, own}], opener())).

it_is_closed_when_the_circuit_has_left_it_test() ->
    Used = [{wants, true}, up, {theirs, false}, {moved, own}],
    ?assertEqual([{tell, false}, {counts, false}, back, {timer, 2000}], acts(Used ++ [{wants, false}], opener())),
    ?assertEqual([{tell, false}, {counts, false}], acts(Used ++ [{wants, false}], acceptor())),
    ?assertEqual([cancel, close], acts(Used ++ [{wants, false}, {moved, others}], opener())),
    %% There is no way yet.
    ?assertEqual([back, {timer, 2000}], acts(Used ++ [{wants, false}, not_moved, timeout], opener())),
    %% It is wanted again before.
    ?assertEqual([{tell, true}, {counts, true}], acts(Used ++ [{wants, false}, {wants, true}], opener())),
    %% The other end wants it still.
    ?assertEqual([{tell, false}], acts([{wants, true}, up, {theirs, true}, {moved, own}, {wants, false}], opener())).

one_that_the_circuit_leaves_is_closed_and_made_again_later_test() ->
    Left = [{wants, true}, up, {moved, own}, {moved, others}],
    ?assertEqual([cancel, close], acts(Left, opener())),
    ?assertEqual([{timer, 250}], acts(Left ++ [lost], opener())),
    ?assertEqual([connect], acts(Left ++ [lost, timeout], opener())),
    %% One that is lost again and again is not made at once each time; one that held is.
    Again = Left ++ [lost, timeout, up, {moved, own}],
    ?assertEqual([{timer, 500}], acts(Again ++ [lost], opener())),
    ?assertEqual([{timer, 250}], acts(Again ++ [timeout, lost], opener())).

of_two_attempts_at_once_that_of_the_smaller_name_goes_on_test() ->
    ?assertEqual([{answer, refused}], acts([{wants, true}, knock], opener())),
    ?assertEqual([stop, {answer, come_in}], acts([{wants, true}, knock], acceptor())),
    %% One that has begun before is left to it.
    ?assertEqual([], acts([knock, {wants, true}], opener())),
    ?assertEqual([cancel, {answer, come_in}], acts([knock], opener())),
    ?assertEqual([{answer, refused}], acts([knock, knock], opener())),
    ?assertEqual([{answer, refused}], acts([knock, up, knock], acceptor())).

who_knocks_in_vain_takes_nobodys_turn_test() ->
    %% Its failures make this end's pauses no longer.
    ?assertEqual([{timer, 250}], acts([{wants, true}, failed] ++ lists:append(lists:duplicate(20, [knock, failed])), opener())).

%% Both ends, whatever they want in between, have one connection in the end, used and
%% known at both, if either wants one; and none if neither does.
both_ends_agree_in_the_end_test_() ->
    {timeout, 60, fun() -> [agree(Seed) || Seed <- lists:seq(1, 2000)] end}.

agree(Seed) ->
    {Wishes, Rand} = wishes(rand:seed_s(exsss, Seed)),
    W0 = #{
        now => 0, n => 0, queue => gb_sets:new(), rand => Rand, connection => none, made => 0, over => others,
        a => side(opener()), b => side(acceptor())
    },
    W1 = lists:foldl(fun({At, Side, Wants}, W) -> later(At, {Side, {wants, Wants}}, W) end, W0, Wishes),
    #{connection := Connection, over := Over, made := Made, a := A, b := B} = until(60000, W1),
    Last = [lists:last([false | [Wants || {_, S, Wants} <- Wishes, S =:= Side]]) || Side <- [a, b]],
    Wanted = lists:member(true, Last),
    ?assertEqual(
        {Seed, Wanted, case Wanted of true -> own; false -> others end, Wanted, Wanted},
        {Seed, Connection =/= none, Over, is_up(A), is_up(B)}
    ),
    %% It is made once for each time that somebody begins to want it, at most.
    ?assert(Made =< length([begins || {_, _, true} <- Wishes])).

side(Own) -> #{own => Own, timer => none, attempt => none, in => none}.

is_up(#{own := Own}) -> ?OWN:is_up(Own) andalso ?OWN:is_used(Own).

wishes(Rand0) ->
    {Count, Rand1} = rand:uniform_s(6, Rand0),
    {Wishes, Rand} = lists:mapfoldl(
        fun(_, R0) ->
            {Ms, R1} = rand:uniform_s(400, R0),
            {Side, R2} = rand:uniform_s(2, R1),
            {Wants, R} = rand:uniform_s(2, R2),
            {{Ms, lists:nth(Side, [a, b]), Wants =:= 1}, R}
        end,
        Rand1,
        lists:seq(1, Count)
    ),
    {lists:ukeysort(1, Wishes), Rand}.

later(Ms, What, #{now := Now, n := N, queue := Queue} = W) ->
    W#{n := N + 1, queue := gb_sets:add({Now + Ms, N, What}, Queue)}.

%% What goes over a network takes its time, and comes in order.
soon(What, #{rand := Rand0} = W) ->
    {_, Rand} = rand:uniform_s(20, Rand0),
    later(20, What, W#{rand := Rand}).

until(Deadline, #{queue := Queue0} = W) ->
    case gb_sets:is_empty(Queue0) orelse gb_sets:take_smallest(Queue0) of
        {{At, _, What}, Queue} when At =< Deadline -> until(Deadline, happen(What, W#{now := At, queue := Queue}));
        _ -> W
    end.

other(a) -> b;
other(b) -> a.

happen({Side, {timer, N}}, W) ->
    case W of
        #{Side := #{timer := N} = S} -> event(Side, timeout, W#{Side := S#{timer := none}});
        _ -> W
    end;
%% An attempt N of that side has come to the other.
happen({Side, {knocks, N}}, W) ->
    case W of
        #{Side := #{attempt := N}} -> event(other(Side), knock, W, N);
        _ -> W
    end;
happen({Side, {refused, N}}, W) -> attempted(Side, N, failed, W);
happen({Side, {stands, N}}, #{made := Made} = W) ->
    Other = other(Side),
    case W of
        #{Side := #{attempt := N}, Other := #{in := N} = O} ->
            Let = event(Other, up, W#{connection := N, made := Made + 1, Other := O#{in := none}}),
            attempted(Side, N, up, Let);
        #{Other := #{in := N} = O} ->
            event(Other, failed, W#{Other := O#{in := none}});
        _ ->
            W
    end;
happen({over, N, Over}, #{connection := N} = W) ->
    event(b, {moved, Over}, event(a, {moved, Over}, W#{over := Over}));
happen({over, _, own}, W) -> event(a, not_moved, W);
happen({over, _, others}, W) -> W;
happen({Side, {theirs, N, Wants}}, #{connection := N} = W) -> event(Side, {theirs, Wants}, W);
happen({_, {theirs, _, _}}, W) -> W;
happen({closed, N}, #{connection := N} = W) ->
    event(b, lost, event(a, lost, W#{connection := none, over := others}));
happen({closed, _}, W) -> W;
happen({Side, Event}, W) -> event(Side, Event, W).

attempted(Side, N, Came, W) ->
    case W of
        #{Side := #{attempt := N} = S} -> event(Side, Came, W#{Side := S#{attempt := none}});
        _ -> W
    end.

event(Side, Event, W) -> event(Side, Event, W, none).

event(Side, Event, W, Knock) ->
    #{Side := #{own := Own0} = S} = W,
    {Acts, Own} = ?OWN:handle(Event, Own0),
    lists:foldl(fun(Act, Acc) -> act(Act, Side, Knock, Acc) end, W#{Side := S#{own := Own}}, Acts).

act(connect, Side, _, #{n := N} = W) ->
    #{Side := S} = W,
    soon({Side, {knocks, N}}, W#{Side := S#{attempt := N}});
act(stop, Side, _, W) ->
    #{Side := S} = W,
    W#{Side := S#{attempt := none}};
act({answer, come_in}, Side, N, W) ->
    #{Side := S} = W,
    soon({other(Side), {stands, N}}, W#{Side := S#{in := N}});
act({answer, refused}, Side, N, W) -> soon({other(Side), {refused, N}}, W);
act({tell, Wants}, Side, _, #{connection := N} = W) -> soon({other(Side), {theirs, N, Wants}}, W);
act({counts, _}, _Side, _, W) -> W;
act(better, _Side, _, #{connection := N} = W) -> soon({over, N, own}, W);
act(back, _Side, _, #{connection := N} = W) -> soon({over, N, others}, W);
act(close, _Side, _, #{connection := N} = W) -> soon({closed, N}, W);
act({timer, Ms}, Side, _, #{n := N} = W) ->
    #{Side := S} = W,
    later(Ms, {Side, {timer, N}}, W#{Side := S#{timer := N}});
act(cancel, Side, _, W) ->
    #{Side := S} = W,
    W#{Side := S#{timer := none}}.
