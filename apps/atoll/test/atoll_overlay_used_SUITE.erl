%% SPDX-License-Identifier: Apache-2.0
%% The overlay as users run it, on real nodes and for as long as it takes: a cluster that is
%% formed by atoll:join/1 rests; whoever starts again with no contact but itself is a member
%% as soon as its group has it; and a part that was cut off until the others held it for dead
%% comes back, though no contact is left.
%%
%% All of it is in the deep tier: the fast one has these promises with a few nodes and short
%% cuts (atoll_overlay_SUITE), and in the simulator. What the connections do that are full
%% all the time is docs/scripts/bulk.script.
%%
%% Each case says what it measured in its log.
-module(atoll_overlay_used_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    a_cluster_formed_by_join_rests/1,
    who_has_no_contact_but_itself_is_a_member_with_its_group/1,
    a_part_that_was_cut_off_is_back_though_all_contacts_died/1
]).

-define(CALL_MS, 130000).
%% For how long nothing happens before it counts.
-define(QUIET_MS, 120000).
%% The roster's audit: after so long each node asks one member, and has three others ask where the
%% answer is late, each over a connection that is made for it.
-define(AUDIT_MS, 30000).
-define(AUDIT_LINKS, 4).
-define(GROUP, team).

suite() -> [{timetrap, {minutes, 40}}].

all() ->
    case atoll_tier:tier() of
        fast ->
            [];
        deep ->
            [
                a_cluster_formed_by_join_rests,
                who_has_no_contact_but_itself_is_a_member_with_its_group,
                a_part_that_was_cut_off_is_back_though_all_contacts_died
            ]
    end.

%% Nobody has a contact but the one that it was told to join by. The only connections that may
%% come and go are those of the audit; none is made anew between neighbours.
a_cluster_formed_by_join_rests(_Config) ->
    with_cluster(atoll_tier:size(overlay_nodes), fun(_) -> [] end, [atoll], fun(C) ->
        [First | Others] = Nodes = atoll_cluster:nodes(C),
        ok = form(C, First, Others),
        ok = last(?QUIET_MS),
        ok = atoll_overlay_cluster:settle(C),
        Before = atoll_overlay_cluster:views(C),
        RestMs = 1000 * atoll_tier:size(rest_s),
        ok = last(RestMs),
        Seen = [{N, Kind, Details} || {N, S} <- each(C, Nodes, atoll_overlay_witness, seen, []), {_, Kind, Details} <- S],
        Counts = lists:foldl(fun({_, Kind, _}, Acc) -> maps:update_with(Kind, fun(X) -> X + 1 end, 1, Acc) end, #{}, Seen),
        report("~b nodes formed by join/1, at rest for ~b s: ~p", [length(Nodes), RestMs div 1000, Counts]),
        ?assertEqual([], [E || {_, Kind, _} = E <- Seen, Kind =/= link_up, Kind =/= link_down]),
        ?assertEqual(Before, atoll_overlay_cluster:views(C)),
        Views = maps:from_list(Before),
        ?assertEqual([], [E || {N, _, #{node := Of}} = E <- Seen, lists:member(Of, map_get(N, Views))]),
        %% Both ends see each.
        ?assert(maps:get(link_up, Counts, 0) =< 2 * ?AUDIT_LINKS * length(Nodes) * (RestMs div ?AUDIT_MS + 1))
    end).

%% The first node is the contact of the others and its own, and is killed again and again.
who_has_no_contact_but_itself_is_a_member_with_its_group(_Config) ->
    with_cluster(6, fun(Nodes) -> [hd(Nodes)] end, [], fun(C) ->
        [First | _] = Nodes = atoll_cluster:nodes(C),
        [{_, {ok, _}} = Started || Started <- each(C, Nodes, application, ensure_all_started, [atoll])],
        [{_, ok} = A || A <- each(C, Nodes, atoll_overlay_witness, await, [members, Nodes])],
        Team = lists:sublist(Nodes, 3),
        ok = atoll_name_cluster:group(C, ?GROUP, Team),
        Times = [one_restart(C, First, Nodes, Team) || _ <- lists:seq(1, atoll_tier:size(overlay_lives))],
        Behind = lists:sort([Member - Grouped || {Grouped, Member} <- Times]),
        Alone = lists:sort([Member || {_, Member} <- Times]),
        report("~b times killed and started again: a member ~b ms after its group in the median, ~b at most; ~b and ~b ms after its start", [
            length(Times), median(Behind), lists:last(Behind), median(Alone), lists:last(Alone)
        ]),
        ?assert(lists:last(Behind) =< 3000, Times)
    end).

one_restart(C, First, Nodes, Team) ->
    ok = atoll_cluster:kill(C, First),
    %% It comes back to those who know that it was dead, as it does for a user.
    [{_, ok} = A || A <- each(C, Nodes -- [First], atoll_overlay_witness, await, [members, Nodes -- [First]])],
    ok = atoll_cluster:restart(C, First),
    Times = {_, _} = call(C, First, atoll_overlay_witness, start_timed, [?GROUP, Team, Nodes]),
    [?assertEqual({N, ok}, {N, A}) || {N, A} <- each(C, Nodes, atoll_overlay_witness, await, [members, Nodes])],
    Times.

%% Three clusters at once, of which one node, a part and half are cut off.
a_part_that_was_cut_off_is_back_though_all_contacts_died(_Config) ->
    Works = [{Size, atoll_name_cluster:work(fun() -> cut_off(Size) end)} || Size <- [1, 4, 6]],
    Took = [{Size, atoll_name_cluster:result(W)} || {Size, W} <- Works],
    report("of 12 nodes cut off for ~b s, while the 3 contacts died: ~p (nodes cut off, ms until whole)", [atoll_tier:size(cut_s), Took]),
    ?assertEqual([], [Late || {_, Ms} = Late <- Took, Ms > 60000]).

cut_off(Size) ->
    with_cluster(12, fun(Nodes) -> lists:sublist(Nodes, 3) end, [atoll], fun(C) ->
        Nodes = atoll_cluster:nodes(C),
        [{_, ok} = A || A <- each(C, Nodes, atoll_overlay_witness, await, [members, Nodes])],
        {Contacts, Others} = lists:split(3, Nodes),
        {Rest, Part} = lists:split(length(Others) - Size, Others),
        ok = atoll_name_cluster:cut(C, Part, Contacts ++ Rest),
        [ok = atoll_cluster:kill(C, N) || N <- Contacts],
        ok = last(1000 * atoll_tier:size(cut_s)),
        [?assertEqual([], call(C, N, atoll, neighbours, []) -- Side) || Side <- [Part, Rest], N <- Side],
        ok = atoll_name_cluster:mend(C, Part, Rest),
        Healed = erlang:monotonic_time(millisecond),
        [?assertEqual({N, ok}, {N, A}) || {N, A} <- each(C, Others, atoll_overlay_witness, await, [members, Others, ?QUIET_MS])],
        Took = erlang:monotonic_time(millisecond) - Healed,
        Living = [V || {N, _} = V <- atoll_overlay_cluster:views(C), lists:member(N, Others)],
        ?assertEqual([{length(Others), lists:sort(Others)}], atoll_overlay_cluster:components(Living)),
        Took
    end).

with_cluster(Count, Contacts, Apps, Fun) ->
    Args = fun(Nodes) ->
        ["-atoll", "overlay", "hyparview", "-atoll", "contacts", lists:flatten(io_lib:format("~w", [Contacts(Nodes)]))]
    end,
    {ok, C} = atoll_cluster:start(#{nodes => Count, connect_all => false, apps => Apps, args => Args}),
    try
        Fun(C)
    after
        ok = atoll_cluster:stop(C)
    end.

form(C, First, Others) ->
    [?assertEqual({N, ok}, {N, A}) || {N, A} <- each(C, Others, atoll, join, [First])],
    atoll_overlay_cluster:settle(C).

%% How long a state lasts that is what a case is about.
last(Ms) ->
    receive
    after Ms -> ok
    end.

median(Sorted) -> lists:nth((length(Sorted) + 1) div 2, Sorted).

call(C, N, M, F, A) -> atoll_cluster:call(C, N, M, F, A, ?CALL_MS).

each(C, Nodes, M, F, A) -> atoll_overlay_cluster:each(C, Nodes, M, F, A).

report(Format, Args) -> atoll_name_cluster:report(Format, Args).
