%% SPDX-License-Identifier: Apache-2.0
%% The driver is this module: a node that answers, is down, or is silent.
-module(atoll_cluster_call_tests).
-include_lib("eunit/include/eunit.hrl").

-export([call/4]).

call(#{behaves := answers}, M, F, A) -> {ok, apply(M, F, A)};
call(#{behaves := down}, _, _, _) -> down;
call(#{behaves := {raises, Class, Reason}}, _, _, _) -> {raised, Class, Reason, []};
call(#{behaves := {silent, Until}}, _, _, _) ->
    Ref = monitor(process, Until),
    receive {'DOWN', Ref, process, _, _} -> {ok, late} end.

target(Node, Behaves) -> atoll_cluster_call:target(Node, ?MODULE, #{behaves => Behaves}).

silent() -> spawn(fun() -> receive stop -> ok end end).

plus() -> {erlang, '+', [1, 2]}.

a_call_gives_the_result_test() ->
    ?assertEqual({ok, 3}, atoll_cluster_call:call(target(a, answers), plus(), 1000)).

a_call_to_a_dead_node_fails_test() ->
    ?assertEqual({error, {node_down, a}}, atoll_cluster_call:call(target(a, down), plus(), infinity)).

a_silent_node_is_given_up_at_the_deadline_test() ->
    Silent = silent(),
    Target = target(a, {silent, Silent}),
    ?assertEqual({error, {timeout, a}}, atoll_cluster_call:call(Target, plus(), 10)),
    Silent ! stop.

one_silent_node_does_not_hide_the_others_test() ->
    Silent = silent(),
    Nodes = [{a, {ok, target(a, {silent, Silent})}}, {b, {ok, target(b, answers)}},
        {c, {error, {node_down, c}}}, {d, {ok, target(d, {raises, throw, x})}}],
    ?assertEqual(
        [{a, {error, {timeout, a}}}, {b, {ok, 3}}, {c, {error, {node_down, c}}}, {d, {error, {raised, throw, x}}}],
        atoll_cluster_call:multicall(Nodes, plus(), 1000)),
    Silent ! stop.

what_can_pile_up_before_a_silent_node_is_bounded_test() ->
    Silent = silent(),
    Target = target(a, {silent, Silent}),
    Results = [atoll_cluster_call:call(Target, plus(), 0) || _ <- lists:seq(1, 300)],
    ?assertEqual(lists:duplicate(256, {error, {timeout, a}}) ++ lists:duplicate(44, {error, {busy, a}}), Results),
    Silent ! stop.

slots_are_given_back_test() ->
    Target = target(a, answers),
    ?assertEqual([{ok, 3}], lists:usort([atoll_cluster_call:call(Target, plus(), 1000) || _ <- lists:seq(1, 600)])).
