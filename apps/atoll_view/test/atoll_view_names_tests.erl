%% SPDX-License-Identifier: Apache-2.0
%% What members say of names, side by side.
-module(atoll_view_names_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ALL, [n1, n2, n3]).

members_that_agree_do_not_differ_test() ->
    [Pid, Other] = pids(2),
    Groups = [{a, ?ALL, [{y, Other, 7}, {x, Pid, undefined}]}],
    Compared = atoll_view_names:compare([{Node, Groups} || Node <- ?ALL]),
    ?assertMatch(
        [#{group := a, silent := [], apart := [], names := [#{name := x, pid := Pid, differ := []}, #{name := y, meta := 7, differ := []}]}],
        Compared
    ),
    ?assertEqual(none, atoll_view_names:wrong(Compared)).

who_has_something_else_is_named_test() ->
    [Pid, Other] = pids(2),
    Compared = atoll_view_names:compare([
        {n1, [{a, ?ALL, [{x, Pid, undefined}]}]}, {n2, [{a, ?ALL, [{x, Other, 1}]}]}, {n3, [{a, ?ALL, []}]}, {n4, [{a, [n4], []}]}
    ]),
    %% One each: the order of the processes decides.
    [#{names := [#{pid := Most, differ := Differ}]}, #{nodes := [n4], names := []}] = Compared,
    ?assertEqual(lists:max([Pid, Other]), Most),
    ?assertEqual(
        lists:sort([{n3, none} | [{N, H} || {N, {P, _} = H} <- [{n1, {Pid, undefined}}, {n2, {Other, 1}}], P =/= Most]]),
        lists:sort(Differ)
    ),
    ?assertEqual("one name is not the same on all members", said(Compared)).

of_two_the_one_counts_that_its_own_node_has_test() ->
    %% Made later, so larger; but its node does not say so.
    [Mine, Later] = pids(2),
    Has = fun(Pid) -> [{a, [node(), n2], [{x, Pid, undefined}]}] end,
    ?assertMatch([#{names := [#{pid := Mine, differ := [{n2, {Later, _}}]}]}], atoll_view_names:compare([{node(), Has(Mine)}, {n2, Has(Later)}])).

the_silent_and_those_apart_are_named_test() ->
    Compared = atoll_view_names:compare([{n1, [{a, ?ALL, []}]}, {n2, [{b, [n2], []}]}]),
    ?assertMatch([#{group := a, silent := [n3], apart := [n2]}, #{group := b, silent := [], apart := []}], Compared),
    ?assertEqual("these do not agree with the others on who is in their group: n2", said(Compared)).

what_is_gone_at_the_second_look_was_no_difference_test() ->
    [Pid] = pids(1),
    Look = fun(On2, On3) ->
        atoll_view_names:compare([{n1, has([x, y], Pid)}, {n2, has(On2, Pid)}, {n3, has(On3, Pid)}])
    end,
    ?assertMatch([#{names := [#{differ := [{n2, none}]}, #{differ := []}]}], lasting(Look([y], [x]), Look([y], [x, y]))),
    %% Different ones are on their way each time.
    ?assertEqual(none, atoll_view_names:wrong(lasting(Look([y], [x, y]), Look([x], [x, y])))),
    ?assertEqual(none, atoll_view_names:wrong(lasting([], Look([], [])))),
    Apart = atoll_view_names:compare([{n1, has([x], Pid)}, {n2, []}]),
    ?assertMatch([#{apart := [n2]}], lasting(Apart, Apart)),
    ?assertMatch([#{apart := []}], lasting(Look([], []), Apart)).

has(Names, Pid) -> [{a, ?ALL, [{Name, Pid, undefined} || Name <- Names]}].

lasting(First, Second) -> atoll_view_names:lasting(First, Second).

said(Compared) -> lists:flatten(atoll_view_names:wrong(Compared)).

pids(N) -> lists:sort([spawn(fun() -> ok end) || _ <- lists:seq(1, N)]).
