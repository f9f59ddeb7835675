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
