%% SPDX-License-Identifier: Apache-2.0
%% The bookkeeping of operations and of what processes have; who goes first and who
%% loses where two entries meet.
-module(atoll_name_ops_tests).

-include_lib("eunit/include/eunit.hrl").

-define(O, atoll_name_ops).
-define(P, atoll_name_pids).

op(Ref, Name) ->
    #{
        ref => Ref, kind => register, id => id(), name => Name, pid => self(), meta => none, from => {remote, x, Ref},
        phase => waiting, entry => none, await => #{}, contested => [], retries => 0
    }.

id() -> {g, {1, n, 1}}.

who_came_first_waits_first_test() ->
    Ops = lists:foldl(fun ?O:wait/2, ?O:new(), [op(1, a), op(3, b), op(2, a)]),
    ?assertEqual([1, 2], ?O:waiting(id(), a, Ops)),
    ?assertEqual([a, b], lists:sort(?O:waited(id(), Ops))),
    Left = ?O:remove(op(1, a), Ops),
    ?assertEqual({[2], none, 2}, {?O:waiting(id(), a, Left), ?O:find(1, Left), ?O:size(Left)}),
    ?assertEqual([], ?O:waited(id(), lists:foldl(fun ?O:wait_no_more/2, Ops, [op(1, a), op(2, a), op(3, b)]))).

an_entry_leads_to_its_operation_until_it_is_taken_back_test() ->
    Op = (op(1, a))#{entry := 7, phase := putting, await := #{n => 7}},
    Ops = ?O:put(Op, ?O:wait(op(1, a), ?O:new())),
    ?assertEqual({{ok, Op}, []}, {?O:of_entry(7, Ops), ?O:waiting(id(), a, Ops)}),
    {Back, Without} = ?O:taken_back(Op, Ops),
    ?assertMatch(#{entry := none, phase := backing_off, await := Await} when Await =:= #{}, Back),
    ?assertEqual({none, {ok, Back}}, {?O:of_entry(7, Without), ?O:find(1, Without)}),
    ?assertEqual(none, ?O:of_entry(7, ?O:remove(Op, Ops))).

a_process_is_monitored_while_it_has_anything_test() ->
    Pid = self(),
    {[{act, {monitor, Pid}}], Pids1} = ?P:has(Pid, g, {op, 1}, ?P:new()),
    {[], Pids2} = ?P:has(Pid, g, {name, a}, Pids1),
    {[], Pids3} = ?P:has(Pid, h, {name, b}, Pids2),
    ?assertEqual({false, true, [{g, {name, a}}, {h, {name, b}}]}, {?P:is_free(Pid, g, Pids3), ?P:is_free(Pid, i, Pids3), ?P:all(Pid, Pids3)}),
    {[], Pids4} = ?P:has_not(Pid, g, Pids3),
    {[{act, {demonitor, Pid}}], Pids5} = ?P:has_not(Pid, h, Pids4),
    ?assertEqual({[], ?P:new()}, ?P:has_not(Pid, h, Pids5)).

%% Two entries

entry(Kind, Owner) -> atoll_name_slot:entry(Kind, Owner, 1, list_to_pid("<0.1.0>"), Owner).

who_gives_way_test() ->
    Ways = fun(A, B) -> atoll_name_clash:gives_way(entry(A, n1), entry(B, n2), a) end,
    ?assertEqual([true, true, true], [Ways(K, held) || K <- [put, firm, put]]),
    ?assertEqual({true, false}, {Ways(put, firm), Ways(firm, put)}),
    %% Of two alike exactly one.
    [
        ?assertNotEqual(
            atoll_name_clash:gives_way(entry(K, n1), entry(K, n2), Name), atoll_name_clash:gives_way(entry(K, n2), entry(K, n1), Name)
        )
     || K <- [put, firm], Name <- lists:seq(1, 20)
    ].

one_of_two_holders_decides_test() ->
    Decides = fun(Self, Other, Name) -> atoll_name_clash:rival(Self, Name, entry(held, Self), [entry(held, Other)]) =/= none end,
    [?assertNotEqual(Decides(n1, n2, Name), Decides(n2, n1, Name)) || Name <- lists:seq(1, 20)],
    %% Not about one that was judged, is not held, or where another is in front.
    [Name | _] = [N || N <- lists:seq(1, 20), Decides(n1, n2, N)],
    Judged = (entry(held, n2))#{judged := true},
    ?assertEqual(none, atoll_name_clash:rival(n1, Name, entry(held, n1), [Judged, entry(put, n3)])),
    ?assertEqual(none, atoll_name_clash:rival(n1, Name, entry(held, n3), [entry(held, n2), entry(held, n1)])).

what_the_loser_is_told_test() ->
    {P1, P2} = {list_to_pid("<0.1.0>"), list_to_pid("<0.2.0>")},
    {A, B} = {entry(held, n1), (entry(held, n2))#{pid := P2, meta := zz}},
    Judge = fun(Rule) -> atoll_name_clash:judge(Rule, {id(), a}, A, B) end,
    ?assertEqual(#{first => keeps, second => {loses, P1, P1}, how => notify}, Judge({keep, min})),
    ?assertEqual(#{first => {loses, P2, P2}, second => keeps, how => notify}, Judge({keep, max})),
    ?assertEqual(#{first => {loses, none, P2}, second => {loses, none, P1}, how => notify}, Judge(notify_all)),
    ?assertEqual({ask, {decide, {id(), a, 1, n2, 1}, {m, f, [a, {P1, n1}, {P2, zz}]}}}, Judge({fn, m, f})),
    ?assertEqual(Judge({keep, max}), atoll_name_clash:decided(P2, A, B)),
    ?assertEqual(Judge(notify_all), atoll_name_clash:decided(whatever, A, B)).
