%% SPDX-License-Identifier: Apache-2.0
%% Whom readers find where several nodes say they have a name.
-module(atoll_name_slot_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, atoll_name_slot).

entry(Owner, Ref) -> ?S:entry(put, Owner, Ref, self(), {Owner, Ref}).

all(_) -> true.

front(Slot) ->
    case ?S:front(Slot) of
        none -> none;
        #{owner := Owner, ref := Ref} -> {Owner, Ref}
    end.

the_first_stays_in_front_test() ->
    Slot = ?S:settle(fun all/1, ?S:add(entry(b, 2), ?S:settle(fun all/1, ?S:add(entry(a, 1), ?S:new())))),
    ?assertEqual({a, 1}, front(Slot)),
    ?assertEqual({b, 2}, front(?S:settle(fun all/1, ?S:remove(a, Slot)))),
    ?assertEqual({a, 1}, front(?S:settle(fun all/1, ?S:remove(b, Slot)))).

who_may_not_be_there_is_not_seen_test() ->
    Slot0 = ?S:add(entry(b, 2), ?S:add(entry(a, 1), ?S:new())),
    Slot = ?S:settle(fun(N) -> N =:= b end, Slot0),
    ?assertEqual({b, 2}, front(Slot)),
    %% And does not come back before another who is.
    ?assertEqual({b, 2}, front(?S:settle(fun all/1, Slot))),
    ?assertEqual({a, 1}, front(?S:settle(fun(N) -> N =:= a end, Slot))),
    ?assertEqual(none, front(?S:settle(fun(_) -> false end, Slot))).

what_readers_are_told_test() ->
    Slot0 = ?S:settle(fun all/1, ?S:add(entry(a, 1), ?S:new())),
    ?assertEqual({self(), {a, 1}}, ?S:shown(x, Slot0)),
    Slot1 = ?S:show(x, Slot0),
    ?assertEqual(same, ?S:shown(x, Slot1)),
    ?assertEqual(same, ?S:shown(x, ?S:add(entry(b, 1), Slot1))),
    Slot2 = ?S:remove(a, Slot1),
    ?assertEqual(none, ?S:shown(x, Slot2)),
    ?assertNot(?S:is_empty(Slot2)),
    ?assert(?S:is_empty(?S:show(x, Slot2))).

ones_own_is_shown_when_it_is_held_test() ->
    Put = ?S:settle(fun all/1, ?S:add(entry(a, 1), ?S:new())),
    ?assertEqual(same, ?S:shown(a, Put)),
    Held = ?S:update((entry(a, 1))#{committed := true}, Put),
    ?assertEqual({self(), {a, 1}}, ?S:shown(a, Held)),
    %% What takes the place of another at once.
    Given = ?S:add(?S:entry(firm, a, 2, self(), none), ?S:show(a, Held)),
    ?assertEqual({self(), none}, ?S:shown(a, Given)).

who_hands_it_over_is_found_meanwhile_test() ->
    Had = ?S:show(x, ?S:settle(fun all/1, ?S:add(entry(a, 1), ?S:new()))),
    Waits = ?S:settle(fun all/1, ?S:hand_over(a, Had)),
    ?assertEqual(none, front(Waits)),
    ?assertEqual(same, ?S:shown(x, Waits)),
    ?assertEqual(Waits, ?S:show(x, Waits)),
    ?assert(?S:waits(a, Waits)),
    %% Until there is another.
    Next = ?S:settle(fun all/1, ?S:add(entry(b, 1), Waits)),
    ?assertEqual({self(), {b, 1}}, ?S:shown(x, Next)),
    ?assertEqual(none, ?S:shown(x, ?S:remove(b, ?S:show(x, Next)))),
    %% Or nobody waits for one, or the owner is no member any more.
    ?assertEqual(none, ?S:shown(x, ?S:wait_no_more(Waits))),
    ?assertEqual(none, ?S:shown(x, ?S:settle(fun(Node) -> Node =/= a end, Waits))),
    %% What nobody was told of is not waited for.
    ?assertEqual(none, ?S:shown(x, ?S:remove(b, ?S:hand_over(a, ?S:show(x, Next))))).

one_entry_of_an_owner_test() ->
    Slot = ?S:settle(fun all/1, ?S:add(entry(b, 1), ?S:add(entry(a, 1), ?S:new()))),
    ?assertMatch([#{ref := 2}], ?S:rest(?S:add(entry(b, 2), Slot))),
    ?assertEqual({a, 2}, front(?S:add(entry(a, 2), Slot))).

a_given_name_takes_the_place_test() ->
    Slot = ?S:settle(fun all/1, ?S:add(entry(b, 1), ?S:add(entry(a, 1), ?S:new()))),
    ?assertEqual({c, 1}, front(?S:replace({a, 1}, entry(c, 1), Slot))),
    %% Not of an entry that is not there any more.
    ?assertEqual({a, 1}, front(?S:replace({a, 9}, entry(c, 1), Slot))).
