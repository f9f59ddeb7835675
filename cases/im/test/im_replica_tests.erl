%% SPDX-License-Identifier: Apache-2.0
%% What im_replica promises, in virtual time.
-module(im_replica_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% How long the faults last.
-define(MS, 8000).

options() ->
    ?LET({Peers, Seed, Faults}, {range(2, 7), range(1, 1_000_000), list({range(100, ?MS - 100), fault()})},
         #{peers => Peers, seed => Seed, faults => Faults, ms => ?MS, replication => acknowledged}).

fault() -> {oneof([kill_process, kill_node]), frequency([{3, main}, {2, replica}, {2, {peer, range(1, 7)}}])}.

with_cuts() ->
    ?LET({Options, Cuts}, {options(), list({range(100, ?MS - 4000), {cut, non_empty(list(range(1, 7))), range(50, 3000)}})},
         begin #{faults := Faults} = Options, Options#{faults := Faults ++ Cuts} end).

kills_lose_nothing_that_was_answered_test_() ->
    atoll_prop:test(kills, ?FORALL(Options, options(), begin
        #{acknowledged := Acknowledged, final := Final, read := Read, wrong := Wrong, settled := Settled} = Result = im_replica_world:run(Options),
        Holds = Wrong =:= [] andalso Settled andalso Acknowledged -- Final =:= [] andalso Read -- Final =:= [],
        ?WHENFAIL(io:format("~p~n", [Result#{lost => catch (Acknowledged -- Final)}]), Holds)
    end), 1000).

after_cuts_there_is_one_main_with_a_replica_test_() ->
    atoll_prop:test(cuts, ?FORALL(Options, with_cuts(), begin
        #{wrong := Wrong, settled := Settled} = Result = im_replica_world:run(Options),
        ?WHENFAIL(io:format("~p~n", [Result]), Settled andalso [W || {two_mains, _} = W <- Wrong] =:= [])
    end), 1000).

%%% One peer of three, a, b and c, with a router; the other peers are what the test says.

peer(Self, Up) ->
    im_replica:new(#{self => Self, peers => [a, b, c], members => [r, a, b, c], up => Up, table => im_replica_world,
                     limits => #{max_sessions => 1, away_messages => 1}, replication => acknowledged, max_waiting => 100}, 0).

%% One event after the other; all that comes of them.
run(Events, {S0, Effects0}) ->
    lists:foldl(fun({At, Event}, {S, Effects}) ->
        {Next, More} = im_replica:handle(Event, At, S),
        {Next, Effects ++ More}
    end, {S0, Effects0}, Events).

%% What comes of the last one alone.
last(Events, {S, _}) -> {_, Effects} = run(Events, {S, []}), Effects.

says(From, Message) -> {from, From, {pid, From}, Message}.

%% c, which has a copy of epoch 4096 from its main a.
replica() ->
    run([{1, says(a, {state, {main, 4096, {4096, 1}}})}, {2, says(a, {copy, 4096, 2, {table, #{1 => []}}})}], peer(c, [r, a])).

%% a, which found nobody for five seconds.
alone() ->
    {S, _} = Alone = run([{5000, wake}], peer(a, [r])),
    #{role := main} = im_replica:info(S),
    Alone.

%% The same, and b has a copy; with their epoch.
with_replica() ->
    {S, _} = Asked = run([{5010, {nodeup, b}}, {5011, says(b, {hello, {standby, 0, none}})}], alone()),
    #{epoch := Epoch, rank := {Epoch, Number}} = im_replica:info(S),
    {Epoch, run([{5012, says(b, {ack, Epoch, Number})}], Asked)}.

answers(Effects) -> [{From, Reply} || {answer, From, Reply} <- Effects].

sent(To, Effects) -> [Message || {send, {pid, Of}, Message} <- Effects, Of =:= To].

with_b(Rank) -> run([{3, {nodeup, b}}, {4, says(b, {state, {standby, 4096, Rank}})}], replica()).

without_a(Peer) -> run([{10, {down, {pid, a}}}, {10, {nodedown, a}}], Peer).

votes(Claim, Peer) -> sent(b, last([{11, says(b, {claim, 8193, Claim})}], Peer)).

who_has_more_data_refuses_a_vote_test() ->
    Peer = without_a(with_b({4096, 2})),
    ?assertMatch([{refuse, 8193, _}], votes({4096, 1}, Peer)),
    ?assertMatch([{grant, 8193, {4096, 2}}], votes({4096, 2}, Peer)).

who_knows_a_main_refuses_a_vote_test() ->
    ?assertMatch([{refuse, 8193, _}], votes({4096, 2}, with_b({4096, 2}))).

%% It may have data of a higher rank.
nobody_claims_beside_a_peer_that_has_said_nothing_test() ->
    Mains = fun(Peer) -> {_, Effects} = without_a(Peer), [Epoch || {role, main, Epoch} <- Effects] end,
    ?assertMatch([_], Mains(replica())),
    Strange = run([{3, {nodeup, b}}], replica()),
    ?assertEqual([], Mains(Strange)),
    ?assertMatch([_], [Epoch || {role, main, Epoch} <- last([{5003, wake}], without_a(Strange))]).

%% It may have promised a higher epoch to somebody who has answered since.
no_main_answers_alone_beside_a_peer_that_has_said_nothing_test() ->
    Op = {op, one, {add, 1}},
    ?assertEqual([{one, ok}], answers(last([{5100, Op}], alone()))),
    Strange = run([{5010, {nodeup, b}}], alone()),
    ?assertEqual([{one, {error, no_majority}}], answers(last([{5100, Op}], Strange))),
    ?assertEqual([{one, ok}], answers(last([{10_010, Op}], Strange))).

%% The copy that b has lacks the change, so its rank must be lower.
what_is_changed_alone_has_a_rank_of_its_own_test() ->
    {_, Two} = with_replica(),
    {Before, _} = Alone = run([{5100, {down, {pid, b}}}, {5100, {nodedown, b}}], Two),
    {After, Effects} = run([{5101, {op, one, {add, 1}}}], Alone),
    ?assert(lists:member({one, ok}, answers(Effects))),
    ?assert(map_get(rank, im_replica:info(After)) > map_get(rank, im_replica:info(Before))).

an_operation_is_answered_when_the_replica_has_it_test() ->
    {Epoch, Two} = with_replica(),
    {S, _} = Asked = run([{5100, {op, one, {add, 1}}}], Two),
    ?assertEqual([], answers(last([{5100, {op, one, {add, 1}}}], Two))),
    #{rank := {Epoch, Number}} = im_replica:info(S),
    ?assertEqual([{one, ok}], answers(last([{5101, says(b, {ack, Epoch, Number})}], Asked))).

%% b voted for c, which copies to it and steps down: b, which comes first, claims in the same millisecond.
a_vote_delays_nobody_once_its_main_was_there_test() ->
    Voted = run([{1, says(a, {state, {main, 4096, {4096, 1}}})}, {2, says(c, {state, {replica, 4096, {4096, 1}}})},
                 {10, {down, {pid, a}}}, {10, {nodedown, a}}, {11, says(c, {claim, 8194, {4096, 1}})},
                 {12, says(c, {copy, 8194, 1, {table, #{1 => []}}})}], peer(b, [r, a, c])),
    ?assertMatch([{claim, _, {8194, 1}}], [M || {claim, _, _} = M <- sent(c, last([{13, says(c, {state, {standby, 8194, {8194, 1}}})}], Voted))]).
