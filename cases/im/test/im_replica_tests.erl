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

fault() ->
    Of = frequency([{3, main}, {2, replica}, {2, {peer, range(1, 7)}}]),
    frequency([{4, {oneof([kill_process, kill_node]), Of}}, {1, {stop, Of, oneof([range(100, 4000), range(5500, 9000)])}}]).

with_cuts() ->
    ?LET({Options, Cuts}, {options(), list({range(100, ?MS - 4000), {cut, non_empty(list(range(1, 7))), range(50, 3000)}})},
         begin #{faults := Faults} = Options, Options#{faults := Faults ++ Cuts} end).

kills_lose_nothing_that_was_answered_test_() ->
    atoll_prop:test(kills, ?FORALL(Options, options(), begin
        {Holds, Result} = kept(Options),
        ?WHENFAIL(io:format("~p~n", [Result]), Holds)
    end), 1000).

kept(Options) ->
    #{acknowledged := Acknowledged, final := Final, read := Read, wrong := Wrong, settled := Settled} = Result = im_replica_world:run(Options),
    Lost = case Final of none -> all; _ -> (Acknowledged -- Final) ++ (Read -- Final) end,
    {Wrong =:= [] andalso Settled andalso Lost =:= [], Result#{lost => Lost}}.

%% Worlds in which something was lost, or hung, that had not been thought of.
worlds_that_were_not_thought_of_test_() ->
    [?_assertMatch({true, _}, kept(#{peers => Peers, seed => Seed, faults => Faults, ms => ?MS, replication => acknowledged})) || {Peers, Seed, Faults} <- [
        %% beside a peer that had said nothing yet
        {3, 3735, [{169, {kill_node, replica}}, {491, {kill_node, replica}}, {1781, {kill_process, {peer, 2}}}, {2190, {kill_node, {peer, 6}}},
                {2271, {kill_node, {peer, 4}}}, {3379, {kill_node, main}}, {4247, {kill_process, replica}}, {4443, {kill_node, replica}},
                {4982, {kill_node, {peer, 6}}}, {5896, {stop, {peer, 1}, 2218}}, {5986, {kill_node, main}}, {6297, {kill_process, {peer, 2}}}]},
        %% the stopped one held another one for a main that was none any more
        {3, 2, [{133, {kill_node, main}}, {156, {stop, {peer, 3}, 5500}}]},
        %% one was stopped that had more than the last copy
        {6, 3, [{1832, {stop, replica, 7808}}, {1724, {kill_process, replica}}, {4614, {kill_process, {peer, 3}}}, {157, {kill_process, main}},
                {1793, {stop, main, 5500}}, {4338, {kill_node, main}}]}
    ]].

after_cuts_there_is_one_main_with_a_replica_test_() ->
    atoll_prop:test(cuts, ?FORALL(Options, with_cuts(), begin
        #{wrong := Wrong, settled := Settled} = Result = im_replica_world:run(Options),
        ?WHENFAIL(io:format("~p~n", [Result]), Settled andalso [W || {two_mains, _} = W <- Wrong] =:= [])
    end), 1000).

%%% One peer of three, a, b and c, with a router; the other peers are what the test says.

peer(Self, Up) ->
    next(0, [], infinity, im_replica:new(#{self => Self, peers => [a, b, c], members => [r, a, b, c], up => Up, table => im_replica_world,
                     limits => #{max_sessions => 1, away_messages => 1}, replication => acknowledged, max_waiting => 100}, 0)).

%% One event after the other, and the wakes between them; all that comes of them.
run(Events, Peer) -> lists:foldl(fun event/2, Peer, Events).

event({At, Event}, {S, Effects, Due}) when At >= Due -> event({At, Event}, one(Due, wake, S, Effects, infinity));
event({At, Event}, {S, Effects, Due}) -> one(At, Event, S, Effects, Due).

one(At, Event, S, Effects, Due) -> next(At, Effects, Due, im_replica:handle(Event, At, S)).

next(At, Effects, Due, {S, More}) -> {S, Effects ++ More, hd([At + Ms || {wake, Ms} <- More] ++ [Due])}.

%% Nothing comes until then.
until(At) -> {At, {down, nobody}}.

%% What comes of these alone.
last(Events, {S, _, Due}) -> {_, Effects, _} = run(Events, {S, [], Due}), Effects.

copies(To, Effects) -> [Copy || {copy, _, _, _} = Copy <- sent(To, Effects)].

says(From, Message) -> {from, From, {pid, From}, Message}.

%% c, which has a copy of epoch 4096 from its main a.
replica() ->
    run([{1, says(a, {state, {main, 4096, {4096, 1}}})}, {2, says(a, {copy, 4096, 2, {table, 4096, #{1 => []}}})}], peer(c, [r, a])).

%% a, which found nobody for five seconds.
alone() ->
    {S, _, _} = Alone = run([until(5100)], peer(a, [r])),
    #{role := main} = im_replica:info(S),
    Alone.

%% The same, and b has a copy; with their epoch.
with_replica() ->
    {S, _, _} = Asked = run([{5110, {nodeup, b}}, {5111, says(b, {hello, {standby, 0, none}})}], alone()),
    #{epoch := Epoch, rank := {Epoch, Number}} = im_replica:info(S),
    {Epoch, run([{5112, says(b, {ack, Epoch, Number})}], Asked)}.

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
    Mains = fun(Peer) -> {_, Effects, _} = without_a(Peer), [Epoch || {role, main, Epoch} <- Effects] end,
    ?assertMatch([_], Mains(replica())),
    Strange = run([{3, {nodeup, b}}], replica()),
    ?assertEqual([], Mains(Strange)),
    ?assertMatch([_], [Epoch || {role, main, Epoch} <- last([until(5200)], without_a(Strange))]).

%% It may have promised a higher epoch to somebody who has answered since.
no_main_answers_alone_beside_a_peer_that_has_said_nothing_test() ->
    Op = {op, one, {add, 1}},
    ?assertEqual([{one, ok}], answers(last([{5200, Op}], alone()))),
    Strange = run([{5110, {nodeup, b}}], alone()),
    ?assertEqual([{one, {error, no_majority}}], answers(last([{5200, Op}], Strange))),
    ?assertEqual([{one, ok}], answers(last([{10_200, Op}], Strange))).

%% The copy that b has lacks the change, so its rank must be lower.
what_is_changed_alone_has_a_rank_of_its_own_test() ->
    {_, Two} = with_replica(),
    {Before, _, _} = Alone = run([{5200, {down, {pid, b}}}, {5200, {nodedown, b}}], Two),
    {After, Effects, _} = run([{5201, {op, one, {add, 1}}}], Alone),
    ?assert(lists:member({one, ok}, answers(Effects))),
    ?assert(map_get(rank, im_replica:info(After)) > map_get(rank, im_replica:info(Before))).

an_operation_is_answered_when_the_replica_has_it_test() ->
    {Epoch, Two} = with_replica(),
    {S, _, _} = Asked = run([{5200, {op, one, {add, 1}}}], Two),
    ?assertEqual([], answers(last([{5200, {op, one, {add, 1}}}], Two))),
    #{rank := {Epoch, Number}} = im_replica:info(S),
    ?assertEqual([{one, ok}], answers(last([{5201, says(b, {ack, Epoch, Number})}], Asked))).

%% b is connected and says nothing; until when.
silent(Until) -> silent(Until, []).

silent(Until, Before) ->
    {Epoch, Two} = with_replica(),
    {Epoch, run([{6000, {op, one, {add, 1}}} | Before] ++ [until(Until)], Two)}.

-define(LAST, until(11_100)).

who_does_not_acknowledge_in_five_seconds_counts_as_lost_test() ->
    {_, Silent} = silent(10_900),
    ?assertEqual([], answers(last([until(10_990)], Silent))),
    Effects = last([?LAST], Silent),
    ?assertEqual([{one, ok}], answers(Effects)),
    %% When it goes on it says what it has.
    ?assertMatch([b], [Node || {hello, Node, _} <- Effects]).

%% Others may have a main by now.
a_main_that_stood_still_itself_counts_nobody_as_lost_test() ->
    {_, {S, _, _}} = silent(6000),
    {Later, Effects} = im_replica:handle(wake, 100_000, S),
    {_, More} = im_replica:handle(wake, 100_050, Later),
    ?assertEqual([], answers(Effects ++ More)).

%% The same for who waits for a table that is there.
who_stood_still_begins_with_no_empty_table_test() ->
    {S, _, _} = run([until(100)], peer(a, [r, b, c])),
    ?assertEqual([], [main || {role, main, _} <- element(2, im_replica:handle(wake, 100_000, S))]).

without_a_majority_the_silent_one_is_waited_for_test() ->
    {Epoch, {S, _, _} = Alone} = silent(10_950, [{6001, {nodedown, r}}]),
    ?assertEqual([], answers(last([?LAST], Alone))),
    #{rank := {Epoch, Number}} = im_replica:info(S),
    ?assertEqual([{one, ok}], answers(last([?LAST, {12_001, says(b, {ack, Epoch, Number})}], Alone))).

who_was_silent_gets_a_copy_with_what_it_has_missed_test() ->
    {Epoch, Silent} = silent(10_950),
    {S, _, _} = Late = run([?LAST, {12_001, {op, two, {add, 2}}}], Silent),
    #{rank := {Epoch, Alone}} = im_replica:info(S),
    %% Its acknowledgement answers nothing more, and is no copy.
    ?assertEqual([], last([{12_002, says(b, {ack, Epoch, Alone - 1})}], Late)),
    Back = last([{12_003, says(b, {state, {replica, Epoch, {Epoch, Alone - 1}}})}], Late),
    ?assertMatch([{copy, Epoch, Number, {table, _, #{1 := _, 2 := _}}}] when Number > Alone, copies(b, Back)).

what_waits_goes_to_the_next_one_when_the_replica_is_silent_test() ->
    {Epoch, Silent} = silent(10_950, [{6001, {nodeup, c}}, {6002, says(c, {hello, {standby, 0, none}})}]),
    {S, _, _} = Late = run([?LAST], Silent),
    #{rank := {Epoch, Number}} = im_replica:info(S),
    Effects = last([?LAST], Silent),
    ?assertMatch({[], [{copy, Epoch, Number, {table, _, #{1 := _}}}]}, {answers(Effects), sent(c, Effects)}),
    ?assertEqual([{one, ok}], answers(last([{12_001, says(c, {ack, Epoch, Number})}], Late))),
    %% b comes first.
    Back = last([{12_001, says(c, {ack, Epoch, Number})}, {12_002, says(b, {state, {replica, Epoch, {Epoch, Number - 1}}})}], Late),
    ?assertMatch([{copy, Epoch, _, {table, _, #{1 := _}}}], copies(b, Back)).

%% It would hold it for a main for ever.
who_answers_a_hello_of_one_that_was_main_hears_what_it_is_now_test() ->
    {Epoch, Main} = silent(10_950, [{6001, {nodeup, c}}, {6002, says(c, {hello, {standby, 0, none}})}]),
    Gone = run([?LAST, {12_001, says(c, {state, {main, Epoch + 4096, {Epoch + 4096, 0}}})}], Main),
    Late = last([{12_002, says(b, {state, {replica, Epoch, {Epoch, 2}}})}], Gone),
    ?assertMatch([{state, {standby, _, _}} | _], sent(b, Late)).

%% It claimed before it had heard of the main.
who_has_claimed_in_vain_gives_up_old_data_test() ->
    Claimed = run([{11, says(b, {refuse, 40_962, 40_962})}, {12, says(b, {state, {main, 20_481, {20_481, 5}}})}], without_a(with_b({4096, 1}))),
    {S, _, _} = run([{13, says(b, {dismiss, 20_481})}], Claimed),
    ?assertMatch(#{role := standby, rank := none}, im_replica:info(S)).

%% b voted for c, which copies to it and steps down: b, which comes first, claims in the same millisecond.
a_vote_delays_nobody_once_its_main_was_there_test() ->
    Voted = run([{1, says(a, {state, {main, 4096, {4096, 1}}})}, {2, says(c, {state, {replica, 4096, {4096, 1}}})},
                 {10, {down, {pid, a}}}, {10, {nodedown, a}}, {11, says(c, {claim, 8194, {4096, 1}})},
                 {12, says(c, {copy, 8194, 1, {table, 4096, #{1 => []}}})}], peer(b, [r, a, c])),
    ?assertMatch([{claim, _, {8194, 1}}], [M || {claim, _, _} = M <- sent(c, last([{13, says(c, {state, {standby, 8194, {8194, 1}}})}], Voted))]).

%% So whoever looks before and after tells data that were lost from data that were only moved.
data_keep_the_epoch_of_their_birth_test() ->
    {First, _, _} = alone(),
    #{epoch := Epoch} = im_replica:info(First),
    ?assertMatch(#{born := Epoch}, im_replica:info(First)),
    %% c has a copy of data that were born in 4096, and is main of them later.
    {Next, _, _} = Peer = run([{11, says(b, {state, {standby, 8193, none}})}, {12, says(b, {grant, 20_482, none})}, until(5100)], without_a(with_b(none))),
    ?assertMatch(#{role := main, born := 4096}, im_replica:info(Next)),
    ?assertMatch([{copy, _, _, {table, 4096, _}} | _], copies(b, element(2, Peer))).
