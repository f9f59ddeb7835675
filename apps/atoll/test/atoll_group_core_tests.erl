%% SPDX-License-Identifier: Apache-2.0
%% The group protocol in virtual time: what its module promises.
-module(atoll_group_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, [n1, n2, n3, n4, n5]).

%% Counterexamples that once failed stay here: {Property, Counterexample}.
-define(REGRESSIONS, [
    %% Who is removed again, while the removal has not come everywhere.
    {prop_linearizable, [
        {245959117, [
            {n4, {new, g, [n4, n2, n3, n1]}, 33},
            {n1, {remove, g, [n3]}, 14},
            {n1, {remove, g, [n3]}, 4},
            {n3, {new, g, [n3]}, 2}
        ]}
    ]},
    {prop_converges, [
        {28, [
            {call, n2, {new, h, [n1, n2, n3, n4]}},
            {cut, [n4]},
            {wait, 2491},
            {call, n3, {remove, h, [n2]}},
            {cut, [n2, n4]},
            {wait, 6500},
            {pause, n2},
            {call, n2, {remove, h, [n1, n3, n4]}},
            {steps, 35}
        ]}
    ]}
]).

properties_test_() ->
    atoll_prop:tests([
        {"concurrent operations happen one after the other", prop_linearizable(), 5000},
        {"after partitions, kills and losses all members agree", prop_converges(), 1500},
        {"configured members and those that keep their groups agree too", prop_starts_in_groups(), 1000},
        {"members that keep their groups are in them when all are killed", prop_kept(), 300},
        {"a process that is started anew is in its groups at once, and nobody hears of it", prop_rebooted(), 300},
        {"a node that dies at any step of an operation holds up nobody", prop_dies(), 500},
        {"a silent node holds up others for a while, and then agrees", prop_silent(), 1000},
        {"a lost message leaves nobody out", prop_lossy(), 500},
        {"a node that goes on late changes nothing by old locks", prop_late(), 500},
        {"the same events give the same effects", prop_deterministic(), 20}
    ]).

%% Nodes that are all connected when they want to be.

prop_linearizable() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), calls()},
        begin
            World = atoll_group_world:settle(start_calls(Calls, atoll_group_world:new(?NODES, Seed))),
            History = history(Calls, World),
            Last = groups_named(g, World),
            ?WHENFAIL(
                io:format("history ~p~ngroups ~p~n", [History, atoll_group_world:views(World)]),
                atoll_group_world:pending(World) =:= #{} andalso
                    atoll_group_world:leftovers(World) =:= [] andalso
                    agree(World) andalso
                    atoll_group_model:explains(History, [], Last)
            )
        end
    ).

%% n3 is told that n5 is in another group while n1, which is too, does not know yet.
what_a_node_knows_may_be_less_than_what_others_have_found_test() ->
    Calls = [{n3, {new, g, [n3, n5]}, 4}, {n5, {new, g, [n5, n1]}, 16}, {n3, {new, g, [n3, n5]}, 9}, {n1, {add, g, [n2]}, 0}],
    World = atoll_group_world:settle(start_calls(Calls, atoll_group_world:new(?NODES, 2))),
    History = history(Calls, World),
    ?assertMatch([_, _, _, {n1, _, At, {error, node_does_not_belong_to_the_s_group}, At}], History),
    ?assert(atoll_group_model:explains(History, [], groups_named(g, World))).

calls() ->
    resize(6, non_empty(list(?LET(Node, oneof(?NODES), {Node, operation(Node, g), choose(0, 40)})))).

%% Most calls make sense where they are made.
operation(Node, Name) ->
    frequency([
        {4, {new, Name, ?LET(Nodes, nodes_(), [Node | Nodes])}},
        {1, {new, Name, nodes_()}},
        {2, {add, Name, nodes_()}},
        {3, {remove, Name, ?LET(Nodes, nodes_(), Nodes -- [Node])}},
        {1, {remove, Name, nodes_()}},
        {1, {delete, Name, []}}
    ]).

nodes_() -> resize(5, list(oneof(?NODES))).

seed() -> choose(1, 1 bsl 30).

start_calls(Calls, World) ->
    lists:foldl(
        fun({Node, Operation, Steps}, World0) ->
            {_, World1} = atoll_group_world:call(Node, Operation, World0),
            steps(Steps, World1)
        end,
        World,
        Calls
    ).

%% Between two calls some steps pass, or none.
steps(0, World) -> World;
steps(N, World) -> steps(N - 1, atoll_group_world:step(World)).

%% Calls whose answers depend on nothing else are left out.
history(Calls, World) ->
    Replies = atoll_group_world:replies(World),
    [
        {Node, Operation, Asked, Answer, Answered}
     || {N, {Node, Operation, _}} <- number(Calls),
        {Answer, Asked, Answered} <- [maps:get(N, Replies, {none, 0, 0})],
        Answer =/= {error, remote_s_group}
    ].

number(List) -> lists:zip(lists:seq(1, length(List)), List).

groups_named(Name, World) ->
    Views = lists:append(maps:values(atoll_group_world:views(World))),
    lists:usort([Nodes || {N, _, Nodes} <- Views, N =:= Name]).

%% Every member of a group, and nobody else, holds the same view of it; no node
%% is in two groups of a name.
agree(World) ->
    Views = atoll_group_world:views(World),
    All = lists:usort(lists:append(maps:values(Views))),
    Ids = lists:usort([Id || {_, Id, _} <- All]),
    length(Ids) =:= length(All) andalso
        lists:all(
            fun({_, _, Nodes} = Group) ->
                Nodes =:= [N || N <- maps:keys(Views), lists:member(Group, maps:get(N, Views))]
            end,
            All
        ) andalso
        lists:all(
            fun(Groups) -> length(Groups) =:= length(lists:ukeysort(1, Groups)) end,
            maps:values(Views)
        ).

%% Faults, and then none any more.

prop_converges() ->
    ?FORALL(
        {Seed, Deeds},
        {seed(), resize(40, list(deed()))},
        begin
            World0 = atoll_group_world:new(?NODES, Seed),
            World1 = lists:foldl(fun do/2, World0, Deeds),
            World2 = atoll_group_world:resume(atoll_group_world:heal(World1)),
            Healed = start_all(atoll_group_world:lossy(0.0, World2)),
            World = atoll_group_world:settle(60000, atoll_group_world:meet(Healed)),
            ?WHENFAIL(
                io:format("seed ~p~ndeeds ~p~ngroups ~p~npending ~p~nleft ~p~n", [
                    Seed,
                    Deeds,
                    atoll_group_world:views(World),
                    atoll_group_world:pending(World),
                    atoll_group_world:leftovers(World)
                ]),
                atoll_group_world:pending(World) =:= #{} andalso
                    atoll_group_world:leftovers(World) =:= [] andalso
                    agree(World) andalso
                    are_linked(World) andalso
                    lists:all(fun(Name) -> is_free_again(Name, World) end, [g, h])
            )
        end
    ).

%% The same of nodes that start in groups, by configuration or by what they kept.
prop_starts_in_groups() ->
    ?FORALL(
        {Seed, Keeps, Deeds},
        {seed(), boolean(), resize(40, list(frequency([{9, deed()}, {1, {sync, oneof(?NODES)}}])))},
        begin
            Boot = #{configured => [{g, [n1, n2, n3]}, {h, [n3, n4]}], has_file => Keeps},
            World0 = atoll_group_world:new(?NODES, Seed, atoll_group_world:options(), Boot),
            World1 = lists:foldl(fun do/2, World0, Deeds),
            World2 = atoll_group_world:resume(atoll_group_world:heal(World1)),
            Healed = start_all(atoll_group_world:lossy(0.0, World2)),
            World = atoll_group_world:settle(60000, atoll_group_world:meet(Healed)),
            ?WHENFAIL(
                io:format("groups ~p~npending ~p~nleft ~p~n", [
                    atoll_group_world:views(World),
                    atoll_group_world:pending(World),
                    atoll_group_world:leftovers(World)
                ]),
                atoll_group_world:pending(World) =:= #{} andalso
                    atoll_group_world:leftovers(World) =:= [] andalso
                    agree(World) andalso
                    are_linked(World)
            )
        end
    ).

prop_kept() ->
    ?FORALL({Seed, Calls}, {seed(), calls()}, begin
        Boot = #{has_file => true},
        Before = atoll_group_world:settle(
            start_calls(Calls, atoll_group_world:new(?NODES, Seed, atoll_group_world:options(), Boot))
        ),
        Dead = lists:foldl(fun atoll_group_world:kill/2, Before, ?NODES),
        %% At once, before they have heard of each other, and in the end.
        After = lists:foldl(fun atoll_group_world:start/2, Dead, ?NODES),
        atoll_group_world:views(After) =:= atoll_group_world:views(Before) andalso
            atoll_group_world:views(atoll_group_world:settle(After)) =:= atoll_group_world:views(Before)
    end).

%% Without a file too, and in the midst of operations: what was read before is read still.
prop_rebooted() ->
    ?FORALL({Seed, Calls, Steps, Node}, {seed(), calls(), choose(0, 60), oneof(?NODES)}, begin
        Before = steps(Steps, start_calls(Calls, atoll_group_world:new(?NODES, Seed))),
        After = atoll_group_world:reboot(Node, Before),
        World = atoll_group_world:settle(60000, After),
        maps:get(Node, atoll_group_world:views(After)) =:= maps:get(Node, atoll_group_world:views(Before)) andalso
            [] =:= atoll_group_world:notices(Node, After) -- atoll_group_world:notices(Node, Before) andalso
            atoll_group_world:leftovers(World) =:= [] andalso agree(World) andalso are_linked(World)
    end).

%% What both sides of a partition have changed has no number by which one side's would be newer: the
%% neighbours are those of the members, whatever was told before.
neighbours_are_the_members_after_a_partition_test_() ->
    [
        {lists:flatten(io_lib:format("~p and ~p", [Left, Right])), fun() -> neighbours_after(Left, Right) end}
     || {Left, Right} <- [
            {[{n1, {add, g, [n5]}}], [{n3, {add, g, [n6]}}]},
            {[{n1, {add, g, [n5]}}], [{n3, {add, g, [n6]}}, {n3, {add, g, [n7]}}, {n3, {remove, g, [n7]}}]},
            {[{n1, {remove, g, [n3]}}], [{n4, {remove, g, [n2]}}]}
        ]
    ].

neighbours_after(Left, Right) ->
    Nodes = [n1, n2, n3, n4, n5, n6, n7],
    {{ok, g, _}, World0} = answer(n1, {new, g, [n1, n2, n3, n4]}, atoll_group_world:new(Nodes, 1)),
    Cut = atoll_group_world:cut([[n1, n2, n5], [n3, n4, n6, n7]], World0),
    World1 = lists:foldl(fun({N, Op}, W) -> element(2, answer(N, Op, W)) end, Cut, Left ++ Right),
    World = atoll_group_world:settle(60000, atoll_group_world:meet(atoll_group_world:heal(World1))),
    ?assert(agree(World)),
    {ok, Options} = atoll_options:complete(atoll_cliques, #{}),
    [
        begin
            {State0, _} = atoll_cliques:init(#{self => N, incarnation => 1, seed => 1, options => Options, remembered => []}, 0),
            Wanted = lists:foldl(
                fun(Cliques, {S0, W}) ->
                    {S, Effects} = atoll_cliques:handle({cast, {tell, {cliques, Cliques}}}, 0, S0),
                    {S, (W ++ [P || {want, P} <- Effects]) -- [P || {unwant, P} <- Effects]}
                end,
                {State0, []},
                atoll_group_world:told(N, World)
            ),
            Members = lists:usort(lists:append([Ns || {g, Ns} <- maps:get(N, atoll_group_world:groups(World))])),
            ?assertEqual({N, Members -- [N]}, {N, lists:sort(element(2, Wanted))})
        end
     || N <- Nodes
    ].

a_configured_group_stands_at_the_start_test() ->
    Boot = #{configured => [{g, [n1, n2]}, {h, [n4]}]},
    World = atoll_group_world:new([n1, n2, n3], 1, atoll_group_world:options(), Boot),
    ?assertEqual(#{n1 => [{g, [n1, n2]}], n2 => [{g, [n1, n2]}], n3 => []}, atoll_group_world:groups(World)),
    {Id, Asked} = atoll_group_world:call(n1, {sync, maps:get(configured, Boot)}, World),
    ?assertMatch(#{Id := {ok, _, _}}, atoll_group_world:replies(atoll_group_world:settle(Asked))).

%% What could not be reached a while ago is tried again before the answer.
sync_waits_for_who_can_be_reached_again_test() ->
    {{ok, g, [n1, n2]}, World0} = answer(n1, {new, g, [n1, n2]}, atoll_group_world:new([n1, n2], 1)),
    Apart = atoll_group_world:settle(500, atoll_group_world:cut([[n1], [n2]], World0)),
    {ok, Still} = answer(n1, {sync, []}, Apart),
    ?assertEqual([], atoll_group_world:linked(Still)),
    {ok, Met} = answer(n1, {sync, []}, atoll_group_world:heal(Still)),
    ?assertEqual([{n1, n2}], atoll_group_world:linked(Met)).

%% On a real node the caller may be answered, and ask there, before the next effect is done.
a_node_says_that_it_is_ready_when_its_readers_know_test() ->
    Config = #{self => n2, incarnation => 1, seed => 1, options => atoll_group_world:options()},
    {State0, _} = atoll_group_core:init(Config, 0),
    {State1, _} = atoll_group_core:handle({up, n1}, 0, State0),
    Made = {1, n1, 1},
    New = atoll_group_view:new(g, [n1, n2], Made),
    {State2, Joined} = change(Made, join, New, State1),
    ?assertMatch(
        [{act, {publish, [{g, _, [n1, n2]}]}}, {notify, {s_group, created, g, [n1, n2]}}, {send, n1, {ready, Made}}],
        [Effect || Effect <- Joined, is_told(Effect)]
    ),
    Removed = {2, n1, 1},
    {_, Left} = change(Removed, change, atoll_group_view:remove([n2], Removed, New), State2),
    ?assertMatch(
        [{act, {publish, []}}, {notify, {s_group, deleted, g, _}}, {send, n1, {ready, Removed}}],
        [Effect || Effect <- Left, is_told(Effect)]
    ).

%% Node n1 takes its turn and ends it with that view.
change(Stamp, Why, View, State0) ->
    Take = {take, Stamp, {1, 0}, {Why, atoll_group_view:id(View)}},
    {State, _} = atoll_group_core:handle({message, n1, Take}, 0, State0),
    atoll_group_core:handle({message, n1, {release, Stamp, View}}, 0, State).

is_told({act, {publish, _}}) -> true;
is_told({notify, _}) -> true;
is_told({send, _, {ready, _}}) -> true;
is_told(_) -> false.

deed() ->
    frequency([
        {6, ?LET(Node, oneof(?NODES), {call, Node, operation(Node, oneof([g, h]))})},
        {3, {steps, choose(1, 60)}},
        {1, {wait, choose(1, 15000)}},
        {1, {kill, oneof(?NODES)}},
        {1, {pause, oneof(?NODES)}},
        {1, resume},
        {1, {start, oneof(?NODES)}},
        {1, {reboot, oneof(?NODES)}},
        {1, {cut, resize(3, list(oneof(?NODES)))}},
        {1, heal},
        {1, {lossy, oneof([0.0, 0.2, 0.9])}}
    ]).

do({call, Node, Operation}, World) ->
    when_alive(Node, World, fun() -> element(2, atoll_group_world:call(Node, Operation, World)) end);
do({sync, Node}, World) ->
    Again = {sync, [{g, [n1, n2, n4]}]},
    when_alive(Node, World, fun() -> element(2, atoll_group_world:call(Node, Again, World)) end);
do({steps, N}, World) ->
    steps(N, World);
do({wait, Ms}, World) ->
    atoll_group_world:settle(Ms, World);
do({kill, Node}, World) ->
    when_alive(Node, World, fun() -> atoll_group_world:kill(Node, World) end);
do({start, Node}, World) ->
    case lists:member(Node, atoll_group_world:alive(World)) of
        true -> World;
        false -> atoll_group_world:start(Node, World)
    end;
do({reboot, Node}, World) ->
    when_alive(Node, World, fun() -> atoll_group_world:reboot(Node, World) end);
do({cut, Side}, World) ->
    atoll_group_world:cut([lists:usort(Side), ?NODES -- Side], World);
do({pause, Node}, World) ->
    when_alive(Node, World, fun() -> atoll_group_world:pause(Node, World) end);
do(resume, World) ->
    atoll_group_world:resume(World);
do(heal, World) ->
    atoll_group_world:heal(World);
do({lossy, Share}, World) ->
    atoll_group_world:lossy(Share, World).

when_alive(Node, World, Fun) ->
    case lists:member(Node, atoll_group_world:alive(World)) of
        true -> Fun();
        false -> World
    end.

%% A connection comes up, but what each says first is lost; it lasts, and neither looks
%% for the other.
two_that_removed_each_other_are_out_whatever_was_lost_test() ->
    {{ok, g, [n1, n2]}, World0} =
        answer(n1, {new, g, [n1, n2]}, atoll_group_world:new([n1, n2], 1, (atoll_group_world:options())#{removal := always})),
    World1 = atoll_group_world:cut([[n1], [n2]], World0),
    {ok, World2} = answer(n1, {remove, g, [n2]}, World1),
    {ok, World3} = answer(n2, {remove, g, [n1]}, World2),
    ?assertMatch(#{n1 := [{g, [n1]}], n2 := [{g, [n2]}]}, atoll_group_world:groups(World3)),
    Deaf = atoll_group_world:lossy(1.0, atoll_group_world:settle(atoll_group_world:heal(World3))),
    Met = atoll_group_world:settle(100, atoll_group_world:meet(Deaf)),
    ?assertEqual([{n1, n2}], atoll_group_world:linked(Met)),
    World = atoll_group_world:settle(10000, atoll_group_world:lossy(0.0, Met)),
    ?assertEqual(#{n1 => [], n2 => []}, atoll_group_world:groups(World)).

%% At most one side of a partition can remove the other, so somebody is left when they meet.
one_side_can_remove_the_other_test_() ->
    [
        {lists:flatten(io_lib:format("~p of ~p", [Side, Nodes])), fun() -> sides_remove(Side, Nodes) end}
     || {Side, Nodes} <- [
            {[n1], [n1, n2]}, {[n1, n2], [n1, n2, n3]}, {[n2, n3], [n1, n2, n3]},
            {[n1, n2], [n1, n2, n3, n4]}, {[n1, n4], [n1, n2, n3, n4]}, {[n2, n3, n4], [n1, n2, n3, n4]}
        ]
    ].

%% Side is the one that can.
sides_remove(Side, Nodes) ->
    Other = Nodes -- Side,
    {{ok, g, Nodes}, World0} = answer(hd(Nodes), {new, g, Nodes}, atoll_group_world:new(Nodes, 1)),
    Cut = atoll_group_world:settle(5000, atoll_group_world:cut([Side, Other], World0)),
    ?assertMatch({{error, {no_majority, Side}}, _}, answer(hd(Other), {remove, g, Side}, Cut)),
    {_, World1} = answer(hd(Other), {remove, g, Side}, Cut),
    ?assertEqual(Nodes, proplists:get_value(g, maps:get(hd(Other), atoll_group_world:groups(World1)))),
    {ok, World2} = answer(hd(Side), {remove, g, Other}, World1),
    World = atoll_group_world:settle(60000, atoll_group_world:meet(atoll_group_world:heal(World2))),
    ?assertEqual(
        maps:from_list([{N, [{g, Side}]} || N <- Side] ++ [{N, []} || N <- Other]), atoll_group_world:groups(World)
    ),
    %% Who answers can be removed by anybody.
    case Side of
        [A, B | _] ->
            {ok, Last} = answer(B, {remove, g, [A]}, World),
            ?assertEqual([], maps:get(A, atoll_group_world:groups(atoll_group_world:settle(Last))));
        [_] ->
            ok
    end.

%% Nodes with new names come and go, as those of a cloud do: what the members hold does not grow,
%% and so does not what it takes.
nodes_that_pass_through_leave_no_trace_test_() ->
    {timeout, 600, fun() ->
        Members = [list_to_atom("m" ++ integer_to_list(N)) || N <- lists:seq(1, 10)],
        {{ok, g, _}, World0} = answer(m1, {new, g, Members}, atoll_group_world:new(Members, 1)),
        Count = atoll_tier:size(group_passers),
        {World, Costs} = lists:foldl(
            fun(N, {W0, Before}) ->
                {reductions, Began} = process_info(self(), reductions),
                Node = list_to_atom("p" ++ integer_to_list(N)),
                W1 = atoll_group_world:start(Node, W0),
                {{ok, g, [Node]}, W2} = answer(m1, {add, g, [Node]}, W1),
                %% Some leave in order, of some the machine is gone.
                {ok, W3} =
                    case N rem 2 of
                        0 -> answer(m2, {remove, g, [Node]}, W2);
                        1 -> answer(m2, {remove, g, [Node]}, atoll_group_world:kill(Node, W2))
                    end,
                W4 =
                    case lists:member(Node, atoll_group_world:alive(W3)) of
                        true -> atoll_group_world:kill(Node, W3);
                        false -> W3
                    end,
                {reductions, Ended} = process_info(self(), reductions),
                {atoll_group_world:forget(Node, W4), [Ended - Began | Before]}
            end,
            {World0, []},
            lists:seq(1, Count)
        ),
        Part = Count div 6,
        ?assert(lists:sum(lists:sublist(Costs, Part)) < 1.5 * lists:sum(lists:nthtail(Count - Part, Costs))),
        Quiet = atoll_group_world:settle(60000, World),
        ?assert(agree(Quiet)),
        Bytes = [erlang:external_size(View) || M <- Members, View <- atoll_group_world:kept(M, Quiet)],
        ?assertEqual([], [B || B <- Bytes, B > 4096])
    end}.

start_all(World) ->
    lists:foldl(
        fun(Node, W) -> do({start, Node}, W) end, World, ?NODES
    ).

are_linked(World) ->
    Wanted = lists:usort([
        {A, B}
     || Groups <- maps:values(atoll_group_world:groups(World)),
        {_, Nodes} <- Groups,
        A <- Nodes,
        B <- Nodes,
        A < B
    ]),
    Wanted -- atoll_group_world:linked(World) =:= [].

%% No lock was forgotten anywhere: once all groups of the name are deleted, one of
%% all nodes can be made.
is_free_again(Name, World0) ->
    World1 = lists:foldl(
        fun(Node, W) ->
            {_, Called} = atoll_group_world:call(Node, {delete, Name, []}, W),
            atoll_group_world:settle(1000, Called)
        end,
        World0,
        ?NODES
    ),
    {Id, World2} = atoll_group_world:call(n1, {new, Name, ?NODES}, World1),
    #{Id := {Answer, _, _}} = atoll_group_world:replies(atoll_group_world:settle(World2)),
    Answer =:= {ok, Name, ?NODES}.

prop_dies() ->
    ?FORALL(
        {Seed, Steps, Nodes},
        {seed(), choose(0, 60), nodes_()},
        begin
            World0 = atoll_group_world:new(?NODES, Seed),
            {_, World1} = atoll_group_world:call(n1, {new, g, [n1, n2, n3 | Nodes]}, World0),
            World2 = atoll_group_world:kill(n1, steps(Steps, World1)),
            {Id, World3} = atoll_group_world:call(n2, {new, g, [n2, n3]}, World2),
            World = atoll_group_world:settle(World3),
            #{Id := {Answer, Asked, Answered}} = atoll_group_world:replies(World),
            Answered - Asked < 1000 andalso
                %% The dead node's group may have reached both, n3 alone, or none.
                lists:member(Answer, [
                    {ok, g, [n2, n3]}, {ok, g, [n2]}, {error, s_group_name_is_in_use}
                ])
        end
    ).

%% n1 falls silent at any step of an operation of its own, and goes on later.
prop_silent() ->
    ?FORALL(
        {Seed, Steps, Nodes, Ms},
        {seed(), choose(0, 60), nodes_(), choose(6000, 30000)},
        begin
            World0 = atoll_group_world:new(?NODES, Seed),
            {_, World1} = atoll_group_world:call(n1, {new, g, [n1, n2, n3 | Nodes]}, World0),
            World2 = atoll_group_world:pause(n1, steps(Steps, World1)),
            {Id, World3} = atoll_group_world:call(n2, {new, g, [n2, n3]}, World2),
            World4 = atoll_group_world:settle(Ms, World3),
            #{Id := {Answer, Asked, Answered}} = atoll_group_world:replies(World4),
            World = atoll_group_world:settle(60000, atoll_group_world:resume(World4)),
            ?WHENFAIL(
                io:format("~p after ~p~n~p~n", [
                    Answer, Answered - Asked, atoll_group_world:views(World)
                ]),
                Answered - Asked < 5000 andalso
                    lists:member(Answer, [
                        {ok, g, [n2, n3]}, {ok, g, [n2]}, {error, s_group_name_is_in_use}
                    ]) andalso
                    atoll_group_world:pending(World) =:= #{} andalso
                    atoll_group_world:leftovers(World) =:= [] andalso
                    agree(World)
            )
        end
    ).

%% Every tenth message is lost; groups come and go, and connections with them.
prop_lossy() ->
    ?FORALL(
        {Seed, Callers},
        {seed(), non_empty(resize(6, list(oneof(?NODES))))},
        begin
            World0 = atoll_group_world:lossy(0.1, atoll_group_world:new(?NODES, Seed)),
            {Answers, _} = lists:mapfoldl(
                fun(Caller, W0) ->
                    {Made, W1} = answer(Caller, {new, g, ?NODES}, W0),
                    {Gone, W2} = answer(Caller, {delete, g, []}, W1),
                    {{Made, Gone}, W2}
                end,
                World0,
                Callers
            ),
            lists:all(fun(Answer) -> Answer =:= {{ok, g, ?NODES}, ok} end, Answers)
        end
    ).

answer(Node, Operation, World0) ->
    {Id, World1} = atoll_group_world:call(Node, Operation, World0),
    await(Id, World1).

await(Id, World) ->
    case atoll_group_world:replies(World) of
        #{Id := {Answer, _, _}} -> {Answer, World};
        #{} -> await(Id, atoll_group_world:step(World))
    end.

%% n1 has all its locks but the last when it falls silent; the others go on with
%% the group. When n1 goes on, what it does is in order with that.
prop_late() ->
    ?FORALL(
        {Seed, Steps, Ms},
        {seed(), choose(0, 40), choose(3100, 9000)},
        begin
            {{ok, g, _}, World0} =
                answer(n1, {new, g, [n1, n2, n3]}, atoll_group_world:new(?NODES, Seed)),
            {Remove, World1} = atoll_group_world:call(n1, {remove, g, [n2]}, World0),
            World2 = atoll_group_world:pause(n1, steps(Steps, World1)),
            {Answer, World3} = answer(n2, {remove, g, [n1]}, World2),
            World4 = atoll_group_world:resume(atoll_group_world:settle(Ms, World3)),
            World = atoll_group_world:settle(60000, World4),
            #{Remove := {Late, _, _}} = atoll_group_world:replies(World),
            NotIn = {error, {"node_does_not_belong_to_s_group", g}},
            ?WHENFAIL(
                io:format("n1 ~p n2 ~p~n~p~n", [Late, Answer, atoll_group_world:views(World)]),
                agree(World) andalso
                    (({Late, Answer} =:= {ok, NotIn}) orelse
                        ({Late, Answer} =:= {NotIn, ok}) orelse
                        ({Late, Answer} =:= {{error, timeout}, ok}))
            )
        end
    ).

prop_deterministic() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), calls()},
        begin
            Run = fun() -> start_calls(Calls, atoll_group_world:new(?NODES, Seed)) end,
            Run() =:= Run()
        end
    ).

regressions_test_() ->
    [atoll_prop:again(Property, ?MODULE:Property(), Counterexample) || {Property, Counterexample} <- ?REGRESSIONS].
