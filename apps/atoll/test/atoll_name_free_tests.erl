%% SPDX-License-Identifier: Apache-2.0
%% The namespace of the free nodes, in virtual time and as data: who shares it with
%% whom, and what becomes of the names when nodes join groups and leave them. Nodes are
%% connected only where something connects them.
-module(atoll_name_free_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_name_world).
-define(F, atoll_name_free).
-define(NODES, [n1, n2, n3, n4, n5]).
-define(ALL, [h1 | ?NODES]).

properties_test_() ->
    Times = atoll_tier:size(name_runs),
    atoll_prop:tests([
        {"concurrent calls are answered as one after the other", prop_linearizable(), 1000 * Times},
        {"after faults free nodes are cliques, each with one namespace", prop_cliques(), 1500 * Times}
    ]).

%% All free, nobody connected with anybody.
world() -> world(1).

world(Seed) -> world(Seed, #{}).

world(Seed, Options) ->
    ?W:run(100, ?W:new(?ALL, Seed, maps:merge(#{auto => false, hidden => [h1]}, Options))).

connect(Pairs, World) ->
    ?W:run(2000, lists:foldl(fun({A, B}, W) -> ?W:connect(A, B, W) end, World, Pairs)).

chain(World) -> connect([{n1, n2}, {n2, n3}, {n4, n5}, {n3, n4}], World).

ask(Node, Request, World0) ->
    {Id, World1} = ?W:call(Node, Request, World0),
    World = ?W:run(500, World1),
    #{Id := {Answer, _, _, _}} = ?W:replies(World),
    {Answer, World}.

reg(Name, Pid) -> reg(undefined, Name, Pid).

reg(Group, Name, Pid) -> {register, Group, Name, Pid, none}.

free_nodes(World) -> [{N, ?W:free_nodes(N, World)} || N <- ?W:alive(World)].

%% {Group, Name} pairs that a node's readers find.
found(Node, World) -> lists:sort(maps:keys(maps:get(Node, ?W:tables(World)))).

%% Who shares with whom

alone_at_first_test() ->
    ?assertEqual([{N, [N]} || N <- ?ALL], free_nodes(world())),
    ?assertEqual([], ?W:wants(world())).

all_that_meet_are_connected_with_all_test() ->
    World = chain(world()),
    ?assertEqual([{h1, [h1]} | [{N, ?NODES} || N <- ?NODES]], free_nodes(World)),
    ?assertEqual([{A, B} || A <- ?NODES, B <- ?NODES, A =/= B], ?W:wants(World)).

two_cliques_that_meet_are_one_test() ->
    World0 = connect([{n1, n2}, {n3, n4}, {n4, n5}], world()),
    {yes, World1} = ask(n1, reg(a, ?W:pid(n2, 1)), World0),
    {yes, World2} = ask(n4, reg(b, ?W:pid(n5, 1)), World1),
    {yes, World3} = ask(n1, reg(c, ?W:pid(n1, 1)), World2),
    {yes, World4} = ask(n4, reg(c, ?W:pid(n4, 1)), World3),
    World = connect([{n2, n3}], World4),
    ?assertEqual([{N, ?NODES} || N <- ?NODES], tl(free_nodes(World))),
    [Table] = lists:usort([maps:get(N, ?W:tables(World)) || N <- ?NODES]),
    ?assertEqual([{undefined, a}, {undefined, b}, {undefined, c}], lists:sort(maps:keys(Table))),
    %% One of the two that had the same name lost it.
    ?assertMatch([{_, {name_conflict, undefined, c, _}}], ?W:told(World)).

a_hidden_node_has_names_of_its_own_test() ->
    World0 = connect([{n1, h1}, {n1, n2}, {n2, h1}], world()),
    {yes, World1} = ask(h1, reg(a, ?W:pid(h1, 1)), World0),
    {yes, World2} = ask(n1, reg(a, ?W:pid(n2, 1)), World1),
    {{no, pid_is_not_on_a_member}, World3} = ask(h1, reg(b, ?W:pid(n1, 2)), World2),
    {{no, pid_is_not_on_a_member}, World} = ask(n1, reg(b, ?W:pid(h1, 2)), World3),
    ?assertEqual([{h1, [h1]}, {n1, [n1, n2]}], lists:sublist(free_nodes(World), 2)),
    Pid = ?W:pid(h1, 1),
    ?assertMatch(#{{undefined, a} := {Pid, _}}, maps:get(h1, ?W:tables(World))),
    ?assertEqual([{n1, n2}, {n2, n1}], ?W:wants(World)).

who_joins_a_group_leaves_the_free_nodes_test() ->
    World0 = chain(world()),
    {yes, World1} = ask(n1, reg(a, ?W:pid(n1, 1)), World0),
    {yes, World2} = ask(n1, reg(b, ?W:pid(n3, 1)), World1),
    World3 = ?W:run(1000, ?W:members(g, [n1, n2, h1], World2)),
    ?assertEqual([[], [], [{undefined, b}]], [found(N, World3) || N <- [n1, n2, n4]]),
    ?assertEqual(
        [{h1, []}, {n1, []}, {n2, []}, {n3, [n3, n4, n5]}, {n4, [n3, n4, n5]}, {n5, [n3, n4, n5]}], free_nodes(World3)
    ),
    ?assertEqual([{A, B} || A <- [n3, n4, n5], B <- [n3, n4, n5], A =/= B], ?W:wants(World3)),
    Remote = {no, cannot_register_in_remote_group},
    {Remote, World4} = ask(n1, reg(a, ?W:pid(n1, 1)), World3),
    %% The name is free, and the process may have one in the group.
    {yes, World5} = ask(n4, reg(a, ?W:pid(n4, 1)), World4),
    {yes, World6} = ask(n1, reg(g, a, ?W:pid(n1, 1)), World5),
    %% They come back without names.
    World = ?W:run(1000, ?W:members(g, [], World6)),
    ?assertEqual([{h1, [h1]} | [{N, ?NODES} || N <- ?NODES]], free_nodes(World)),
    [?assertEqual([{undefined, a}, {undefined, b}], found(N, World)) || N <- ?NODES],
    ?assertEqual([], found(h1, World)).

who_leaves_a_group_joins_the_free_nodes_it_is_connected_with_test() ->
    World0 = connect([{n1, n4}, {n2, n5}], ?W:members(g, [n1, n2, n3], world())),
    {yes, World1} = ask(n4, reg(a, ?W:pid(n4, 1)), World0),
    {yes, World2} = ask(n5, reg(b, ?W:pid(n5, 1)), World1),
    World = ?W:run(2000, ?W:members(g, [], World2)),
    [?assertEqual([{undefined, a}, {undefined, b}], found(N, World)) || N <- ?NODES],
    ?assertEqual([{N, ?NODES} || N <- ?NODES], tl(free_nodes(World))).

who_makes_a_group_meets_nobody_as_a_free_node_test() ->
    World0 = connect([{n1, n2}, {n3, n4}], world()),
    World1 = connect([{n2, n3}, {n2, n5}], ?W:run(10, ?W:making(n2, true, World0))),
    Apart = [{n1, [n1, n2]}, {n2, [n1, n2]}, {n3, [n3, n4]}, {n4, [n3, n4]}, {n5, [n5]}],
    ?assertEqual(Apart, tl(free_nodes(World1))),
    %% Nothing came of it, and one connection was lost meanwhile.
    World2 = ?W:run(2000, ?W:making(n2, false, ?W:break(n2, n5, World1))),
    ?assertEqual([{N, [n1, n2, n3, n4]} || N <- [n1, n2, n3, n4]], lists:droplast(tl(free_nodes(World2)))),
    ?assertEqual([{N, ?NODES} || N <- ?NODES], tl(free_nodes(connect([{n2, n5}], World2)))).

%% Lost and unreachable nodes

who_cannot_be_reached_is_given_up_and_told_of_again_test() ->
    World0 = ?W:cut([[n1], [n3]], world()),
    World1 = ?W:run(10000, connect([{n1, n2}, {n2, n3}], World0)),
    ?assertEqual({[n1, n2], [n1, n2, n3]}, {?W:free_nodes(n1, World1), ?W:free_nodes(n2, World1)}),
    %% Two that have no co-member in common are not told of each other.
    World2 = ?W:run(10000, ?W:cut([[n1], [n2, n3]], World1)),
    ?assertEqual([{n2, n3}, {n3, n2}], ?W:wants(World2)),
    World3 = ?W:run(10000, ?W:heal(World2)),
    ?assertEqual([n1], ?W:free_nodes(n1, World3)),
    World = connect([{n1, n2}], World3),
    [?assertEqual([n1, n2, n3], ?W:free_nodes(N, World)) || N <- [n1, n2, n3]].

a_short_loss_is_mended_test() ->
    World0 = ?W:cut([[n1, n2], [n3, n4, n5]], chain(world())),
    World1 = ?W:run(500, World0),
    ?assertEqual([n1, n2], ?W:free_nodes(n1, World1)),
    World = ?W:run(1500, ?W:heal(World1)),
    ?assertEqual([{N, ?NODES} || N <- ?NODES], tl(free_nodes(World))).

%% Who does not speak: x is connected, and its process does nothing.

a_silent_node_is_waited_for_in_a_group_only_test() ->
    %% Connected before n3 has said anything.
    World0 = ?W:run(20000, ?W:connect(n1, n3, ?W:pause(n3, connect([{n1, n2}], world())))),
    ?assertEqual({[n1, n2], true}, {?W:free_nodes(n1, World0), ?W:is_linked(n1, n3, World0)}),
    %% Nor is it waited for, or spoken to often.
    World1 = ?W:run(200000, World0),
    ?assert(?W:sent(World1) - ?W:sent(World0) < 100),
    {yes, World2} = ask(n1, reg(a, ?W:pid(n1, 1)), World1),
    %% It speaks.
    World3 = ?W:run(2000, ?W:resume(World2)),
    ?assertEqual({[n1, n2, n3], [{undefined, a}]}, {?W:free_nodes(n1, World3), found(n3, World3)}),
    %% In a group it is waited for.
    World4 = ?W:run(20000, ?W:connect(n1, n4, ?W:pause(n4, World3))),
    ?assert(?W:is_linked(n1, n4, World4)),
    World5 = ?W:hears(n1, g, [n1, n4], ?W:members(g, [n4], World4)),
    {Id, World6} = ?W:call(n1, reg(g, a, ?W:pid(n1, 2)), World5),
    World7 = ?W:run(1000, World6),
    ?assertNot(is_map_key(Id, ?W:replies(World7))),
    World = ?W:run(3000, World7),
    ?assertMatch(#{Id := {yes, _, _, _}}, ?W:replies(World)),
    ?assert(?W:is_linked(n1, n4, World)).

%% Once it has spoken it is told all, however much is lost meanwhile.
who_has_spoken_is_told_all_test() ->
    {yes, World0} = ask(n1, reg(a, ?W:pid(n1, 1)), connect([{n1, n2}], world())),
    World1 = ?W:run(10000, ?W:members(g, [n1], ?W:lossy(1.0, World0))),
    ?assertEqual({true, [{undefined, a}]}, {?W:is_linked(n1, n2, World1), found(n2, World1)}),
    World = ?W:run(1000, ?W:lossy(0.0, World1)),
    ?assertEqual({true, [], [n2]}, {?W:is_linked(n1, n2, World), found(n2, World), ?W:free_nodes(n2, World)}).

%% Data

limits() -> #{seek_ms => 10, remind_ms => 5, max_sought => 2}.

free(Deeds) ->
    lists:foldl(
        fun({Function, Args}, F) -> element(2, apply(?F, Function, Args ++ [F])) end, ?F:new(mesh, limits()), Deeds
    ).

so_many_are_sought_at_once_test() ->
    {Effects, Free} = ?F:told(a, [a, b, c, d], free([{stand, [true]}])),
    ?assertEqual([{want, b}, {timer, {seek, b}, 10}, {want, c}, {timer, {seek, c}, 10}], Effects),
    {Given, Left} = ?F:give_up(b, Free),
    ?assertEqual([{cancel, {seek, b}}, {unwant, b}], Given),
    ?assertMatch({[{want, d}, _], _}, ?F:told(a, [d], Left)),
    %% A co-member that is lost is not sought then, and not wanted either.
    Full = free([{stand, [true]}, {said, [x, true]}, {told, [a, [b, c]]}]),
    ?assertMatch({[{unwant, x}], _}, ?F:gone(x, Full)).

each_co_member_is_reminded_in_turn_test() ->
    Free0 = free([{stand, [true]} | [{said, [N, true]} || N <- [b, c, d]]]),
    {Told, _} = lists:mapfoldl(fun(_, F) -> ?F:remind(F) end, Free0, lists:seq(1, 4)),
    ?assertMatch(
        [[{know, b, [c, d]}, {timer, remind, 5}], [{know, c, [b, d]}, _], [{know, d, [b, c]}, _], [{know, b, _}, _]], Told
    ).

who_is_in_a_group_wants_nobody_test() ->
    Free = free([{stand, [true]}, {said, [b, true]}, {said, [c, true]}, {told, [a, [d]]}]),
    {Effects, Grouped} = ?F:stand(false, Free),
    ?assertEqual([{cancel, remind}, {cancel, {seek, d}}, {unwant, b}, {unwant, c}, {unwant, d}], Effects),
    ?assertEqual({none, []}, {?F:members(a, Grouped), ?F:others(Grouped)}),
    ?assertMatch({[], _}, ?F:told(a, [d], Grouped)),
    %% Who had said it is free is a co-member at once.
    ?assertMatch({[{want, b}, {want, c} | _], _}, ?F:stand(true, Grouped)).

%% Histories without faults, as for other groups.

prop_linearizable() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), resize(6, non_empty(list({oneof(?NODES), request([undefined], ?NODES), choose(0, 30)})))},
        begin
            World0 = lists:foldl(
                fun({Node, Request, Steps}, W) -> ?W:steps(Steps, element(2, ?W:call(Node, Request, W))) end,
                chain(world(Seed)),
                Calls
            ),
            World = ?W:settle(World0),
            History0 = [{R, A, Asked, At} || {A, R, Asked, At} <- maps:values(?W:replies(World))],
            History = [Call || Call <- History0, not is_excused(Call, History0)],
            Tables = lists:usort([maps:get(N, ?W:tables(World)) || N <- ?NODES]),
            ?WHENFAIL(
                begin show(World), io:format("calls ~p~n", [{Seed, Calls}]) end,
                ?W:faults(World) =:= [] andalso
                    ?W:pending(World) =:= #{} andalso
                    length(Tables) =:= 1 andalso
                    atoll_name_model:explains(History, [], names(hd(Tables)))
            )
        end
    ).

names(Table) -> lists:sort([{Name, Pid} || {{undefined, Name}, {Pid, _}} <- maps:to_list(Table)]).

%% A `no' because of another call that was under way for that name or that process.
is_excused({Request, {no, _}, Asked, At} = Call, History) ->
    lists:any(
        fun({Other, _, Asked2, At2}) ->
            Asked2 =< At andalso Asked =< At2 andalso
                (element(3, Request) =:= element(3, Other) orelse
                    (tuple_size(Request) =:= tuple_size(Other) andalso element(4, Request) =:= element(4, Other)))
        end,
        History -- [Call]
    );
is_excused(_, _) ->
    false.

request(Groups, Nodes) ->
    frequency([
        {4, {register, oneof(Groups), name(), pid_(Nodes), oneof([none, 1, 2])}},
        {2, {re_register, oneof(Groups), name(), pid_(Nodes), none}},
        {2, {unregister, oneof(Groups), name()}}
    ]).

name() -> oneof([a, b]).

pid_(Nodes) -> ?LET({Node, N}, {oneof(Nodes), choose(1, 3)}, ?W:pid(Node, N)).

seed() -> choose(1, 1 bsl 30).

show(World) ->
    io:format("replies ~p~ntables ~p~nfaults ~p~npending ~p~ninfo ~p~nfree ~p~nwants ~p~n", [
        ?W:replies(World), ?W:tables(World), ?W:faults(World), ?W:pending(World), ?W:infos(World), free_nodes(World), ?W:wants(World)
    ]).

%% Counterexamples that once failed.
regressions_test_() ->
    [
        atoll_prop:again(prop_cliques, prop_cliques(), [Counterexample])
     || Counterexample <- [
            %% A co-member joins a group and leaves it, and the last answer is in between.
            {101, [
                {connect, h1, n4}, {wait, 1421}, {members, [n1, n2, h1]}, {steps, 38}, {call, n1, {unregister, g, a}},
                {kill, n3}, {steps, 30}, {kill, n2}, {connect, h1, n5}, {steps, 20}, {members, [h1, n3, n1, n2]},
                {cut, [n5, n1]}, heal, {break, n4, h1}, {connect, n4, n5}, {reboot, n4},
                {call, n4, {register, undefined, a, ?W:pid(n3, 3), 1}}, {steps, 25}, {members, [n2, h1, h1, n5]},
                {members, [n2]}, {call, n4, {register, g, a, ?W:pid(n3, 3), 2}},
                {call, n4, {re_register, undefined, a, ?W:pid(n4, 2), none}}, {steps, 8}
            ]}
        ]
    ].

%% Faults, and then none any more

prop_cliques() ->
    ?FORALL(
        {Seed, Deeds},
        {seed(), resize(40, list(deed()))},
        begin
            World0 = ?W:members(g, [n1, n2], world(Seed)),
            World1 = lists:foldl(fun do/2, World0, Deeds),
            World2 = ?W:quiet(lists:foldl(fun(N, W) -> do({start, N}, W) end, World1, ?ALL)),
            World = ?W:quiet(World2),
            ?WHENFAIL(
                begin show(World), io:format("deeds ~p~n", [{Seed, Deeds}]) end,
                ?W:faults(World) =:= [] andalso
                    ?W:pending(World) =:= #{} andalso
                    is_idle(World) andalso
                    wrong(World) =:= []
            )
        end
    ).

is_idle(World) ->
    lists:all(fun(#{operations := Ops, asks := Asks}) -> Ops =:= 0 andalso Asks =:= 0 end, maps:values(?W:infos(World))).

%% What is not as it has to be.
wrong(World) ->
    Grouped = ?W:group_members(g, World),
    Free = ?ALL -- [h1 | Grouped],
    Of = fun(Node) -> ?W:free_nodes(Node, World) end,
    Names = fun(Group, Node) ->
        lists:sort([{N, Pid} || {{G, N}, {Pid, _}} <- maps:to_list(maps:get(Node, ?W:tables(World))), G =:= Group])
    end,
    [{not_one_part, A, B} || A <- Free, B <- Free, ?W:is_linked(A, B, World), Of(A) =/= Of(B)] ++
        [{not_connected, A, B} || A <- Free, B <- Of(A), A =/= B, not ?W:is_linked(A, B, World)] ++
        [{not_free, A, B} || A <- Free, B <- Of(A), not lists:member(B, Free)] ++
        [{names_differ, A, B} || A <- Free, B <- Of(A), Names(undefined, A) =/= Names(undefined, B)] ++
        [{foreign, Node, Name} || Node <- Free, {Name, Pid} <- Names(undefined, Node), not lists:member(node(Pid), Of(Node))] ++
        [{names_in_group, Node} || Node <- Grouped, Of(Node) =/= [] orelse Names(undefined, Node) =/= []] ++
        [{group_differs, A, B} || A <- Grouped, B <- Grouped, Names(g, A) =/= Names(g, B)] ++
        [{not_a_member, Node} || Node <- [h1 | Free] -- Grouped, Names(g, Node) =/= []] ++
        [{hidden, Names(undefined, h1)} || not lists:member(h1, Grouped), {_, Pid} <- Names(undefined, h1), node(Pid) =/= h1] ++
        [{dead, Node, Name} || Node <- ?ALL, G <- [g, undefined], {Name, Pid} <- Names(G, Node), not ?W:is_alive(Pid, World)] ++
        [{wants, ?W:wants(World)} || ?W:wants(World) =/= lists:sort([{A, B} || A <- Free, B <- Of(A), A =/= B])].

deed() ->
    frequency([
        {12, {call, oneof(?ALL), request([undefined, undefined, g], ?ALL)}},
        {8, {connect, oneof(?ALL), oneof(?ALL)}},
        {5, {steps, choose(1, 40)}},
        {1, {wait, choose(1, 5000)}},
        {2, {die, pid_(?ALL)}},
        {1, {kill, oneof(?ALL)}},
        {1, {start, oneof(?ALL)}},
        {1, {reboot, oneof(?ALL)}},
        {1, {pause, oneof(?ALL)}},
        {1, resume},
        {1, {cut, resize(3, list(oneof(?ALL)))}},
        {2, {break, oneof(?ALL), oneof(?ALL)}},
        {1, heal},
        {1, {lossy, oneof([0.0, 0.2, 0.6])}},
        {3, {members, resize(4, list(oneof(?ALL)))}}
    ]).

do({connect, Node, Node}, World) -> World;
do({connect, A, B}, World) -> ?W:connect(A, B, World);
do(Deed, World) -> ?W:do(Deed, ?ALL, World).
