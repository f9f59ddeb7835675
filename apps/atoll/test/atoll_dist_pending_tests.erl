%% SPDX-License-Identifier: Apache-2.0
%% Which connection is closed when many are on their way to be up.
-module(atoll_dist_pending_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MAX, 8).

nobody_is_closed_as_long_as_there_are_few_test() ->
    {Pending, _} = added([{1, said} || _ <- lists:seq(1, ?MAX)] ++ [{1, silent} || _ <- lists:seq(1, ?MAX)]),
    ?assertEqual(no, crowded(Pending)).

who_has_the_most_loses_its_oldest_test() ->
    {Pending, Pids} = added([{2, silent} | [{1, silent} || _ <- lists:seq(1, ?MAX)]]),
    ?assertMatch({close, Pid, _} when Pid =:= hd(tl(Pids)), crowded(Pending)).

those_who_are_silent_push_out_nobody_who_speaks_test() ->
    {Pending, Pids} = added([{1, said} | [{1, silent} || _ <- lists:seq(0, ?MAX)]]),
    ?assertMatch({close, Pid, _} when Pid =:= hd(tl(Pids)), crowded(Pending)).

those_who_speak_push_out_nobody_who_is_silent_test() ->
    {Pending, Pids} = added([{1, silent} | [{1, said} || _ <- lists:seq(0, ?MAX)]]),
    ?assertMatch({close, Pid, _} when Pid =:= hd(tl(Pids)), crowded(Pending)).

%% More of them come from one address than of the kind that is too many.
those_of_the_other_kind_are_not_looked_at_test() ->
    {Pending, Pids} = added([{1, said}, {1, said} | [{N, silent} || N <- lists:seq(2, ?MAX + 2)]]),
    ?assertMatch({close, Pid, _} when Pid =:= hd(tl(tl(Pids))), crowded(Pending)).

one_network_is_one_address_test() ->
    Ip = fun(Last) -> {16#2001, 16#db8, 0, 1, 0, 0, 0, Last} end,
    {Pending, Pids} = added([{{16#2001, 16#db8, 0, 2, 0, 0, 0, 1}, silent} | [{Ip(N), silent} || N <- lists:seq(1, ?MAX)]]),
    ?assertMatch({close, Pid, _} when Pid =:= hd(tl(Pids)), crowded(Pending)).

as_many_more_as_are_expected_may_be_test() ->
    {Pending, _} = added([{1, silent} || _ <- lists:seq(0, ?MAX)]),
    ?assertEqual(no, atoll_dist_pending:crowded(fun() -> 1 end, Pending)).

%% A node's connection, whatever it has said: strangers from so few addresses that one of
%% them always has more never push it out, and are never too many.
strangers_of_few_addresses_push_out_only_each_other_test_() ->
    Stranger = {range(2, 4), oneof([silent, said])},
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Before, Own, After}, {list(Stranger), {1, oneof([silent, said])}, list(Stranger)}, begin
            {First, Some} = added(Before, atoll_dist_pending:new(?MAX)),
            {With, [Pid]} = added([Own], First),
            {Last, More} = added(After, With),
            There = [P || P <- [Pid | Some ++ More], atoll_dist_pending:gone(P, Last) =/= Last],
            length(There) =< 2 * ?MAX andalso lists:member(Pid, There)
        end),
        1000
    ).

crowded(Pending) -> atoll_dist_pending:crowded(fun() -> 0 end, Pending).

bounded(Pending0) ->
    case crowded(Pending0) of
        {close, _, Pending} -> bounded(Pending);
        no -> Pending0
    end.

added(Those) -> unbounded(Those, atoll_dist_pending:new(?MAX)).

%% Pids that tell them apart, in the order in which they came.
unbounded(Those, Pending) -> added(Those, fun(P) -> P end, Pending).

%% As a listener has them, which closes one when they are too many.
added(Those, Pending) -> added(Those, fun bounded/1, Pending).

added(Those, Then, Pending) ->
    lists:foldl(
        fun({Address, Speaks}, {P0, Pids}) ->
            Pid = spawn(fun() -> ok end),
            P = Then(atoll_dist_pending:add(Pid, address(Address), P0)),
            {case Speaks of said -> Then(atoll_dist_pending:said(Pid, P)); silent -> P end, Pids ++ [Pid]}
        end,
        {Pending, []},
        Those
    ).

address(N) when is_integer(N) -> {10, 0, 0, N};
address(Ip) -> Ip.
