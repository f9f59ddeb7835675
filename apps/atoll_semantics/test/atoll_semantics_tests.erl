%% SPDX-License-Identifier: Apache-2.0
%% The semantics of s_group holds together, and the protocols that run on real nodes do
%% the same in virtual time. A failure prints what to give replay/2.
-module(atoll_semantics_tests).

-include_lib("eunit/include/eunit.hrl").

-export([replay/2]).

-define(LENGTH, 20).
-define(WITH_FAULTS, 40).

the_invariant_holds_after_every_step_test_() ->
    Count = atoll_tier:tests(500),
    {timeout, 60 + Count, fun() -> [?assertEqual(ok, invariant(Seed)) || Seed <- seeds(Count)] end}.

%% So many one after the other, of this run's own.
seeds(Count) ->
    First = atoll_tier:seed(?MODULE),
    lists:seq(First, First + Count - 1).

invariant(Seed) ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    Sequence = atoll_semantics_commands:sequence(Seed, 60),
    {_, _, Broken} = lists:foldl(
        fun({Ni, Written}, {State0, Dead, Broken}) ->
            {State, _} = atoll_semantics:step(State0, atoll_semantics_commands:with_life(Written, Dead), Ni),
            Died = atoll_semantics_commands:dead([{Ni, Written}], Dead),
            New = [{Seed, Ni, Written, What} || {broken, What} <- [atoll_semantics:invariant(State)]],
            {State, Died, Broken ++ dead_have_names(State, Died) ++ New}
        end,
        {atoll_semantics:new(Normal, Hidden), #{}, []},
        Sequence
    ),
    case Broken of
        [] -> ok;
        _ -> Broken
    end.

dead_have_names(State, Dead) ->
    All = lists:append([Names || #{names := Names} <- maps:values(atoll_semantics:views(State))]),
    [{dead, Name} || {_, _, P} = Name <- All, is_map_key(P, Dead)].

%% What once differed stays: {Seed, Commands}.
-define(REGRESSIONS, [
    %% A free node makes a group with free nodes of another free group: the two have nothing
    %% to do with each other.
    {24, [
        {n6, {new_s_group, g1, [n6, n5, n4, n4, x2]}},
        {x2, {delete_s_group, g1}},
        {n6, {new_s_group, g1, [n6, n3, n1, n2, n6]}}
    ]},
    %% A new member has the others answer before its own readers find the group.
    {2, [
        {x2, {new_s_group, g3, [x2, n6, n6]}},
        {n6, {remove_nodes, g3, [x2, n3]}},
        {n6, {add_nodes, g3, [x1]}}
    ]},
    %% A former member tells the last member, which was killed, of the group that it had.
    {644, [
        {n2, {new_s_group, g3, [n6, n2]}},
        {n6, {remove_nodes, g3, [n2]}},
        {n6, kill},
        {n6, start}
    ]},
    %% The only node that has heard of a deletion is killed before the sides meet.
    {1020, [
        {x1, {new_s_group, g2, [x1, n5, n3, n6]}},
        {n1, {cut, [[n1, n4, x1, x2], [n2, n3, n5, n6]]}},
        {x1, {delete_s_group, g2}},
        {x1, kill},
        {n6, {register_name, g2, a, {n5, 1}}},
        {n1, heal}
    ]},
    %% Of a group that one side has deleted the others meet first: the loser of a name is told.
    {25730, [
        {n1, {new_s_group, g1, [n4, x2, n1, n6]}},
        {n1, kill},
        {n4, {re_register_name, g1, {c, 1}, {x2, 2}}},
        {n3, {send, undefined, a, hello}},
        {n1, {cut, [[n4], [n1, n2, n3, n5, n6, x1], [x2]]}},
        {n6, {delete_s_group, g1}},
        {n4, {re_register_name, g1, {c, 1}, {n4, 2}}},
        {n1, heal}
    ]},
    %% Both ways: the name is with the one on the smaller node, whoever meets whom.
    {32, [
        {n2, {new_s_group, g1, [n2, x1, n5, n6]}},
        {n1, {cut, [[n5, n6], [n2, x1]]}},
        {n6, {register_name, g1, a, {n6, 1}}},
        {n2, {register_name, g1, a, {n2, 1}}},
        {n6, {register_name, g1, <<"b">>, {n6, 2}}},
        {n2, {register_name, g1, <<"b">>, {n2, 2}}},
        {n5, {register_name, g1, {c, 1}, {n5, 1}}},
        {x1, {register_name, g1, {c, 1}, {x1, 1}}},
        {n5, {register_name, g1, "d", {n5, 2}}},
        {x1, {register_name, g1, "d", {x1, 2}}},
        {n1, heal}
    ]},
    %% Half of a group without its first cannot remove the other half, and the half with it can.
    {1, [
        {n1, {new_s_group, g1, [n1, n2, n3, n4]}},
        {n1, {cut, [[n1, n2], [n3, n4]]}},
        {n4, {remove_nodes, g1, [n1]}},
        {n1, {remove_nodes, g1, [n4]}},
        {n1, heal}
    ]},
    %% A process loses a name in each of two groups.
    {36387966, [
        {n1, {new_s_group, g3, [n1, n6, n5]}},
        {n1, {register_name, g3, <<"b">>, {n5, 2}}},
        {x1, {new_s_group, g1, [x1, n6, n2, n2, n5]}},
        {x1, {re_register_name, g1, a, {n5, 1}}},
        {n1, {cut, [[n2, n5, x1, x2], [n1, n3, n4, n6]]}},
        {n6, {register_name, g1, a, {n6, 3}}},
        {n6, {re_register_name, g3, <<"b">>, {n6, 3}}},
        {n1, heal}
    ]},
    %% A dead node is killed once more: nothing happens, and no numbers of processes are used up.
    {7, [
        {n1, kill},
        {n1, kill},
        {n1, start},
        {n1, {register_name, undefined, a, {n1, 101}}}
    ]},
    %% Two groups of one name have one node in common, which is dead.
    {20115, [
        {n6, {new_s_group, g4, [n6, n2, n4]}},
        {n1, {cut, [[n1, n4, x1], [n2, n5], [n3, n6, x2]]}},
        {n6, {delete_s_group, g4}},
        {n6, {new_s_group, g4, [n6, x2]}},
        {n6, kill},
        {n1, heal},
        {n6, start}
    ]}
]).

what_once_differed_does_no_more_test_() ->
    [?_assertEqual({ok, length(Sequence)}, replay(Seed, Sequence)) || {Seed, Sequence} <- ?REGRESSIONS].

%% Commands are drawn where a dead node is in two groups of one name.
what_once_was_not_drawn_is_test() ->
    ?assertEqual(?WITH_FAULTS, length(atoll_semantics_commands:sequence(88758480, ?WITH_FAULTS, faults))).

in_virtual_time_all_is_as_it_is_meant_test_() ->
    Count = atoll_tier:size(semantics_sequences),
    {timeout, 300 + Count, fun() -> ?assertEqual(ok, compare([{Seed, atoll_semantics_commands:sequence(Seed, ?LENGTH)} || Seed <- seeds(Count)])) end}.

%% And where nodes are cut off from each other, are killed, and come back.
with_faults_in_virtual_time_all_is_as_it_is_meant_test_() ->
    Count = atoll_tier:size(semantics_faults),
    Sequences = fun() -> compare([{Seed, atoll_semantics_commands:sequence(Seed, ?WITH_FAULTS, faults)} || Seed <- seeds(Count)]) end,
    {timeout, 300 + Count, fun() -> ?assertEqual(ok, Sequences()) end}.

compare([]) ->
    ok;
compare([{Seed, Sequence} | Seeds]) ->
    case replay(Seed, Sequence) of
        {ok, _} ->
            compare(Seeds);
        {differs, _} ->
            Shorter = atoll_semantics_commands:shrink(Sequence, fun(S) -> element(1, replay(Seed, S)) =:= differs end),
            {differs, Difference} = replay(Seed, Shorter),
            io:format(user, "~ts", [atoll_semantics_lockstep:format(Seed, {Shorter, Difference})]),
            {failed, Seed}
    end.

%% These commands, in the world of that seed.
replay(Seed, Sequence) ->
    case atoll_semantics_lockstep:run(Sequence, atoll_semantics_sim:backend(), atoll_semantics_sim:new(Seed)) of
        {ok, Compared, _World} -> {ok, Compared};
        {differs, Difference, _World} -> {differs, Difference}
    end.
