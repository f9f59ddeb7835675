%% SPDX-License-Identifier: Apache-2.0
%% What the overlay promises of faults that end, with all that a node runs by default:
%% - when everything is healed all that live are connected and know each other within a minute
%%   and a half, whatever had happened;
%% - bulk on all connections buries nobody, and hides nobody's death;
%% - a node whom two others hear is not buried for those that do not hear it; one that is dead
%%   is found in spite of them;
%% - who was cut off while all contacts died comes back within a minute;
%% - where nearly all die at once, nobody lists the dead for longer than two minutes.
-module(atoll_sim_faults_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Used by hand.
-export([prop_heals/0, asymmetric/3, bulk/2, cut_off/2]).

-define(SETTLED_MS, 30000).

seeds(Name, Fun) ->
    Count = atoll_tier:size(fault_seeds),
    {inparallel, 2, [
        {lists:concat(["seed ", Seed]), {timeout, 600, fun() -> atoll_sim_cluster:isolated(fun() -> Fun(Seed) end) end}}
     || Seed <- [atoll_tier:seed({Name, N}) || N <- lists:seq(1, Count)]
    ]}.

%% Random scripts

whatever_happened_all_that_live_know_each_other_when_it_is_over_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_heals(), 300).

prop_heals() ->
    ?FORALL(
        {Formed, Strategy, Seed, Steps},
        {oneof([listed, join, source]), oneof([hyparview, mesh]), nat(), resize(12, list(timed()))},
        begin
            Cluster = #{nodes => 12, contacts => 2, formed => Formed, strategy => Strategy, seed => Seed},
            {ok, Script} = atoll_sim_script:check([
                {cluster, Cluster}, {at, ?SETTLED_MS, heal} | [Step || {_, _, What} = Step <- Steps, fits(What, Formed)]
            ]),
            {ok, #{looked := Wrong}} = atoll_sim_play:run(Script, #{look => fun wrong/1}),
            ?WHENFAIL(io:format("~p~n~p~n", [Script, Wrong]), Wrong =:= [])
        end
    ).

fits({source, _}, Formed) -> Formed =:= source;
fits(_Step, _Formed) -> true.

timed() -> {then, choose(0, 15000), step()}.

%% Contacts live.
step() ->
    Who = oneof([{random, 1}, {random, 4}, {nodes, 3, 12}]),
    Mortal = {nodes, choose(3, 6), choose(7, 12)},
    Ms = choose(1, 30000),
    frequency([
        {2, {cut, Who, Who, Ms}},
        {2, {black_hole, Who, Who, Ms}},
        {1, {partition, [{share, 0.4}]}},
        {2, {pause, Who, Ms}},
        {2, {stall, Who, Ms}},
        {1, {slow, Who, choose(1, 100)}},
        {2, {bulk, Who, Who, oneof([full, 0, 50000000])}},
        {1, {loss, 0.2}},
        {2, {kill, Mortal}},
        {2, {restart, Mortal, oneof([fresh, remembered, alone])}},
        {1, {source, [n01, n02, n05]}}
    ]).

%% Who does not know just those that live, or is not connected with them.
wrong(Cluster) ->
    Lists = atoll_sim_cluster:neighbours(Cluster),
    Alive = [Node || {Node, _} <- Lists],
    Members = fun(Node) -> atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, Cluster)) end,
    [apart || atoll_sim_graph:connected(Lists) < 1] ++
        [{Node, {lacks, Alive -- Of}, {has, Of -- Alive}} || Node <- Alive, Of <- [Members(Node)], Of =/= Alive].

%% Bulk

bulk_between_all_buries_nobody_and_hides_no_death_test_() ->
    [{timeout, 60, fun() -> no_harm(Nodes, Seed) end} || {Nodes, Seed} <- [{3, 9}, {8, 7}]] ++
        seeds(?FUNCTION_NAME, fun(Seed) -> [no_harm(Nodes, Seed) || Nodes <- [3, 8]] end).

no_harm(Nodes, Seed) ->
    {False, FirstMs} = bulk(Nodes, Seed),
    ?assertEqual([], False),
    ?assert(FirstMs =< 6000).

%% Ten minutes of it, in which these seeds have buried some who lived and found a death late:
%% 8 nodes with 1, 2, 3, 5 and 7, 3 nodes with 2, 6 and 9. Then a node is killed: who was buried before, and how soon it is found.
bulk(Nodes, Seed) ->
    Grown = grown(#{nodes => Nodes, seed => Seed, contacts => 3}),
    Names = atoll_sim_cluster:names(Grown),
    Busy = atoll_sim_cluster:wait(600000, set({bulk, Names, Names, full}, Grown)),
    Begin = atoll_sim_cluster:now(Busy),
    Victim = lists:last(Names),
    After = atoll_sim_cluster:wait(30000, do(fun(W) -> atoll_sim_world:kill(Victim, W) end, Busy)),
    Dead = atoll_sim_cluster:watched(After),
    Found = [At || {At, _, Of} <- Dead, Of =:= Victim, At >= Begin],
    {[D || {At, _, Of} = D <- Dead, Of =/= Victim orelse At < Begin], lists:min([infinity | [At - Begin || At <- Found]])}.

%% Nearly all die

the_dead_are_listed_for_two_minutes_at_most_though_nearly_all_have_died_test_() ->
    seeds(?FUNCTION_NAME, fun(Seed) ->
        Grown = grown(#{nodes => 60, seed => Seed, contacts => 3}),
        Victims = lists:nthtail(4, atoll_sim_cluster:names(Grown)),
        Few = lists:foldl(fun(Node, C) -> do(fun(W) -> atoll_sim_world:kill(Node, W) end, C) end, Grown, Victims),
        ?assertEqual([], wrong(atoll_sim_cluster:wait(120000, Few)))
    end).

%% Some do not hear one

whom_two_others_hear_is_not_buried_and_the_dead_are_found_test_() ->
    Trials = atoll_tier:size(fault_cuts),
    {inparallel, 2, [
        {"mesh", {timeout, 3000, fun() ->
            ?assertEqual([], buried(mesh, [atoll_tier:seed({asymmetric, N}) || N <- lists:seq(1, Trials)]))
        end}},
        %% The first of these have buried somebody.
        {"hyparview", {timeout, 3000, fun() ->
            ?assertEqual([], buried(hyparview, [8, 61, 592, 21396275] ++ [atoll_tier:seed({asymmetric, N}) || N <- lists:seq(1, Trials)]))
        end}}
    ]}.

%% The seeds with which somebody is buried who lives; all that are dead are found.
buried(Strategy, Seeds) ->
    Results = [{Seed, atoll_sim_cluster:isolated(fun() -> asymmetric(12, Strategy, Seed) end)} || Seed <- Seeds],
    ?assert(atoll_sim_stats:percentile([Ms || {_, {_, Ms}} <- Results], 99) =< 8000),
    [Seed || {Seed, {[_ | _], _}} <- Results].

%% So many do not hear one node that it is heard by two or more; then it falls silent. Who was
%% buried before that, and how soon it is found.
asymmetric(Nodes, Strategy, Seed) ->
    C0 = grown(#{nodes => Nodes, strategy => Strategy, seed => Seed}),
    {[Node], C1} = atoll_sim_cluster:random(1, atoll_sim_cluster:names(C0), C0),
    Others = atoll_sim_cluster:names(C0) -- [Node],
    {Deaf, C2} = atoll_sim_cluster:random(1 + Seed rem (length(Others) - 2), Others, C1),
    C3 = atoll_sim_cluster:wait(30000, set({cut, [Node], Deaf}, C2)),
    Begin = atoll_sim_cluster:now(C3),
    C = atoll_sim_cluster:wait(30000, do(fun(W) -> atoll_sim_world:pause(Node, W) end, C3)),
    Dead = atoll_sim_cluster:watched(C),
    {
        [D || {At, _, Of} = D <- Dead, Of =/= Node orelse At < Begin],
        lists:min([infinity | [At - Begin || {At, _, Of} <- Dead, Of =:= Node, At >= Begin]])
    }.

%% Cut off

who_is_cut_off_while_all_contacts_die_is_back_within_a_minute_test_() ->
    seeds(?FUNCTION_NAME, fun(Seed) ->
        ?assertMatch(Ms when is_integer(Ms), cut_off(atoll_tier:size(fault_nodes), Seed))
    end).

%% A part of the cluster for five minutes; how soon after the heal all know each other, looked at
%% each second.
cut_off(Nodes, Seed) ->
    Grown = grown(#{nodes => Nodes, seed => Seed, formed => join, contacts => 3}),
    Contacts = atoll_sim_cluster:contacts(Grown),
    Others = atoll_sim_cluster:names(Grown) -- Contacts,
    {Island, C1} = atoll_sim_cluster:random(1 + Seed rem (Nodes div 3), Others, Grown),
    Cut = set({partition, [Island, atoll_sim_cluster:names(C1) -- Island]}, C1),
    Dead = do(fun(W) -> lists:foldl(fun atoll_sim_world:kill/2, W, Contacts) end, Cut),
    whole_after(0, set(heal, atoll_sim_cluster:wait(300000, Dead))).

whole_after(Ms, Cluster) ->
    case wrong(Cluster) of
        [] -> Ms;
        _ when Ms < 60000 -> whole_after(Ms + 1000, atoll_sim_cluster:wait(1000, Cluster));
        Wrong -> {not_whole, Wrong}
    end.

%% A cluster that has settled, whose watcher keeps the verdicts.
grown(Options) ->
    {ok, New} = atoll_sim_cluster:new(Options#{settle_ms => ?SETTLED_MS, watch => {fun see/4, []}}),
    atoll_sim_cluster:grow(New).

see(Now, Node, {notice, {dead, Of, _}}, Kept) -> [{Now, Node, Of} | Kept];
see(_Now, _Node, _Sight, Kept) -> Kept.

set(Setting, Cluster) -> do(fun(World) -> atoll_sim_world:set(Setting, World) end, Cluster).

do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).
