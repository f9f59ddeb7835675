%% SPDX-License-Identifier: Apache-2.0
%% The protocol of names in virtual time: what its module promises.
-module(atoll_name_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_name_world).
-define(NODES, [n1, n2, n3, n4]).

%% Counterexamples that once failed stay here: {Property, Counterexample}.
-define(REGRESSIONS, [
    %% Who registers comes between the holder and who replaces it.
    {prop_linearizable, [
        {1, [
            {n4, {register, g, b, ?W:pid(n4, 1), none}, 1},
            {n2, {register, g, b, ?W:pid(n2, 1), none}, 9},
            {n1, {re_register, g, b, ?W:pid(n1, 1), none}, 9},
            {n2, {register, g, b, ?W:pid(n4, 1), none}, 0},
            {n2, {register, g, a, ?W:pid(n1, 1), none}, 0}
        ]}
    ]},
    {prop_linearizable, [
        {3, [
            {n1, {re_register, g, a, ?W:pid(n1, 1), none}, 2},
            {n1, {register, g, a, ?W:pid(n1, 1), none}, 9},
            {n1, {register, g, a, ?W:pid(n4, 1), none}, 0},
            {n2, {re_register, g, a, ?W:pid(n2, 1), none}, 18},
            {n1, {register, g, a, ?W:pid(n1, 1), none}, 0}
        ]}
    ]},
    %% A member that was started anew is not waited for.
    {prop_converges, [
        {1, random_exit, [
            {call, n4, {register, g, a, ?W:pid(n1, 1), none}},
            {reboot, n1},
            {call, n2, {register, g, a, ?W:pid(n2, 1), none}}
        ]}
    ]},
    %% A member leaves and comes back while its answer is on its way.
    {prop_converges, [
        {2, random_exit, [
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {members, [n1, n4]},
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {members, [n1, n2]}
        ]}
    ]},
    %% Members that were paused when the owner began anew: it has given them up, they come
    %% back, and while what they say is on its way the owner answers without them.
    {prop_converges, [
        {15, random_exit, [
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {call, n3, {register, g, a, ?W:pid(n1, 2), 1}},
            {pause, n2},
            {reboot, n4},
            {pause, n3},
            {cut, [n3, n2, n4]},
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {wait, 3101},
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {call, n4, {register, g, a, ?W:pid(n4, 1), none}}
        ]}
    ]},
    %% A member that has never spoken to the owner's new life is given up, and resumes just then.
    {prop_converges, [
        {6, random_exit, [
            {call, n1, {re_register, g, a, ?W:pid(n1, 1), none}},
            {reboot, n3},
            {steps, 12},
            {pause, n2},
            {call, n1, {register, g, b, ?W:pid(n3, 1), none}},
            {wait, 2951}
        ]}
    ]},
    %% One that was found silent, before it had spoken, is connected with anew and has not spoken yet.
    {prop_converges, [
        {1, random_exit, [
            {break, n1, n4},
            {pause, n4},
            {wait, 3001},
            {call, n3, {register, g, a, ?W:pid(n2, 1), none}},
            {pause, n1},
            {call, n1, {register, g, a, ?W:pid(n1, 1), none}},
            {break, n4, n1},
            {reboot, n4},
            {steps, 14},
            {steps, 1}
        ]}
    ]},
    %% Two are found silent at once.
    {prop_converges, [
        {1, random_exit, [
            {pause, n1}, {call, n2, {register, g, a, ?W:pid(n4, 1), none}}, {pause, n3}, {wait, 3003}
        ]}
    ]}
]).

properties_test_() ->
    Times = atoll_tier:size(name_runs),
    atoll_prop:tests([
        {"concurrent calls are answered as one after the other", prop_linearizable(), 3000 * Times},
        {"after faults all tables agree, and no name is stuck", prop_converges(), 2000 * Times},
        {"one of many who want a name at once gets it", prop_race(), 1000 * Times},
        {"one holder is left where two parts meet, and each loser is told once", prop_heals(), 1000 * Times},
        {"nobody misses a name that goes from one to the next", prop_without_a_gap(), 1000 * Times},
        {"a silent member holds up a yes for a while, once", prop_silent(), 300 * Times},
        {"a lost message costs time only", prop_lossy(), 300 * Times},
        {"the same events give the same effects", prop_deterministic(), 50 * Times}
    ]).

%% Histories without faults

prop_linearizable() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), resize(6, non_empty(list({oneof(?NODES), request(), choose(0, 30)})))},
        begin
            World = ?W:settle(do_calls(Calls, connected(Seed))),
            History0 = [{R, A, Asked, At} || {A, R, Asked, At} <- maps:values(?W:replies(World))],
            History = [Call || Call <- History0, not is_excused(Call, History0)],
            Tables = lists:usort(maps:values(?W:tables(World))),
            ?WHENFAIL(
                begin show(World), io:format("calls ~p~n", [{Seed, Calls}]) end,
                ?W:faults(World) =:= [] andalso
                    ?W:pending(World) =:= #{} andalso
                    length(Tables) =:= 1 andalso
                    atoll_name_model:explains(History, [], names(hd(Tables)))
            )
        end
    ).

names(Table) -> lists:sort([{Name, Pid} || {{g, Name}, {Pid, _}} <- maps:to_list(Table)]).

%% A `no' because of another call that was under way for that name or that process.
is_excused({Request, {no, _}, Asked, At} = Call, History) ->
    lists:any(
        fun({Other, _, Asked2, At2}) ->
            Asked2 =< At andalso Asked =< At2 andalso share(Request, Other)
        end,
        History -- [Call]
    );
is_excused(_, _) ->
    false.

share({_, _, _, Pid, _}, {_, _, _, Pid, _}) -> true;
share(A, B) -> element(3, A) =:= element(3, B).

do_calls(Calls, World) ->
    lists:foldl(
        fun({Node, Request, Steps}, W0) ->
            {_, W} = ?W:call(Node, Request, W0),
            ?W:steps(Steps, W)
        end,
        World,
        Calls
    ).

connected(Seed) -> connected(Seed, #{}).

connected(Seed, Options) ->
    ?W:run(2000, ?W:members(g, ?NODES, ?W:new(?NODES, Seed, Options))).

request() ->
    frequency([
        {4, {register, g, name(), pid_(), oneof([none, 1, 2])}},
        {2, {re_register, g, name(), pid_(), none}},
        {2, {unregister, g, name()}}
    ]).

name() -> oneof([a, b]).

pid_() -> ?LET({Node, N}, {oneof(?NODES), choose(1, 3)}, ?W:pid(Node, N)).

seed() -> choose(1, 1 bsl 30).

show(World) ->
    io:format("replies ~p~ntables ~p~nfaults ~p~npending ~p~ninfo ~p~n", [
        ?W:replies(World), ?W:tables(World), ?W:faults(World), ?W:pending(World), ?W:infos(World)
    ]).

%% Everyone wants it at once.
prop_race() ->
    ?FORALL(
        {Seed, Nodes, Steps},
        {seed(), non_empty(list(oneof(?NODES))), choose(0, 3)},
        begin
            Numbered = lists:zip(lists:seq(1, length(Nodes)), Nodes),
            Calls = [{Node, {register, g, a, ?W:pid(Node, N), none}, Steps} || {N, Node} <- Numbered],
            World0 = do_calls(Calls, connected(Seed)),
            World = ?W:settle(World0),
            Answers = maps:values(?W:replies(World)),
            [_] = [A || {yes, _, _, _} = A <- Answers],
            Slowest = lists:max([At - Asked || {_, _, Asked, At} <- Answers]),
            ?WHENFAIL(show(World), ?W:faults(World) =:= [] andalso agree(World) andalso Slowest < 1500)
        end
    ).

%% From the first `yes' on each member's readers find somebody at each moment, whoever takes the
%% name from whom, one after the other.
prop_without_a_gap() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), resize(5, non_empty(list({oneof(?NODES), oneof(?NODES)})))},
        begin
            {_, Asked} = ?W:call(n1, {register, g, a, ?W:pid(n1, 1), none}, connected(Seed)),
            First = ?W:run(2000, Asked),
            Numbered = lists:zip(lists:seq(11, 10 + length(Calls)), Calls),
            {World, Missed} = lists:foldl(
                fun({N, {By, Node}}, {W, M}) ->
                    {Id, Called} = ?W:call(By, {re_register, g, a, ?W:pid(Node, N), none}, W),
                    missing(fun(Now) -> is_map_key(Id, ?W:replies(Now)) end, Called, M)
                end,
                {First, missing(First)},
                Numbered
            ),
            {Last, Without} = missing(fun(Now) -> ?W:now(Now) > ?W:now(World) + 5000 end, World, Missed),
            ?WHENFAIL(
                begin show(Last), io:format("missed ~p~n", [Without]) end,
                Without =:= [] andalso ?W:faults(Last) =:= [] andalso ?W:pending(Last) =:= #{} andalso agree(?W:settle(Last))
            )
        end
    ).

missing(IsOver, World0, Missed) ->
    World = ?W:step(World0),
    case IsOver(World) of
        true -> {World, missing(World) ++ Missed};
        false -> missing(IsOver, World, missing(World) ++ Missed)
    end.

missing(World) -> [{?W:now(World), Node} || {Node, Table} <- maps:to_list(?W:tables(World)), not is_map_key({g, a}, Table)].

%% Faults, and then none any more

prop_converges() ->
    ?FORALL(
        {Seed, Rule, Deeds},
        {seed(), rule(), resize(40, list(deed()))},
        begin
            World0 = connected(Seed, #{rule => Rule}),
            World1 = lists:foldl(fun do/2, World0, Deeds),
            World2 = ?W:quiet(start_all(World1)),
            World = ?W:quiet(World2),
            {Free, Last} = is_free_again(World),
            Late = [
                R
             || {_, _, Asked, At} = R <- maps:values(?W:replies(World1)), not lists:keymember(pause, 1, Deeds),
                At - Asked > 13500
            ],
            ?WHENFAIL(
                io:format("deeds ~p~nfaults ~p~ntables~p~ninfos~p~nlate ~p~nfree ~p~n", [
                    {Seed, Rule, Deeds}, ?W:faults(Last), ?W:tables(World), ?W:infos(World), Late, Free
                ]),
                ?W:faults(Last) =:= [] andalso
                    ?W:pending(World) =:= #{} andalso
                    Late =:= [] andalso
                    agree(World) andalso
                    is_idle(World) andalso
                    Free
            )
        end
    ).

rule() -> oneof([random_exit, random_notify, notify_all, {keep, max}, {keep, min}, {fn, keep, first}]).

deed() ->
    frequency([
        {12, {call, oneof(?NODES), request()}},
        {5, {steps, choose(1, 40)}},
        {1, {wait, choose(1, 5000)}},
        {2, {die, pid_()}},
        {1, {kill, oneof(?NODES)}},
        {1, {start, oneof(?NODES)}},
        {1, {reboot, oneof(?NODES)}},
        {1, {pause, oneof(?NODES)}},
        {1, resume},
        {1, {cut, resize(3, list(oneof(?NODES)))}},
        {2, {break, oneof(?NODES), oneof(?NODES)}},
        {1, heal},
        {1, {lossy, oneof([0.0, 0.2, 0.6])}},
        {2, {members, resize(4, list(oneof(?NODES)))}}
    ]).

do(Deed, World) -> ?W:do(Deed, ?NODES, World).

start_all(World) -> lists:foldl(fun(Node, W) -> do({start, Node}, W) end, World, ?NODES).

%% All members have the same names, others none; they are of processes that live, on
%% members.
agree(World) ->
    Members = members(World),
    Tables = ?W:tables(World),
    All = lists:usort([maps:get(Node, Tables) || Node <- Members]),
    lists:all(fun(Node) -> maps:get(Node, Tables) =:= #{} end, ?NODES -- Members) andalso
        length(All) =< 1 andalso
        lists:all(
            fun({_, {Pid, _}}) -> ?W:is_alive(Pid, World) andalso lists:member(node(Pid), Members) end,
            lists:append([maps:to_list(Table) || Table <- All])
        ).

members(World) -> ?W:group_members(g, World).

is_idle(World) ->
    lists:all(
        fun(#{operations := Ops, asks := Asks}) -> Ops =:= 0 andalso Asks =:= 0 end,
        maps:values(?W:infos(World))
    ) andalso
        length(lists:usort([maps:get(names, maps:get(N, ?W:infos(World))) || N <- members(World)])) =< 1.

%% When all processes are dead there is no name any more, and each can be registered.
is_free_again(World0) ->
    World1 = ?W:run(2000, ?W:members(g, ?NODES, World0)),
    Pids = [?W:pid(Node, N) || Node <- ?NODES, N <- lists:seq(1, 3)],
    World2 = ?W:run(2000, lists:foldl(fun ?W:die/2, World1, Pids)),
    IsEmpty = lists:all(fun(Table) -> Table =:= #{} end, maps:values(?W:tables(World2))),
    {A, World3} = ?W:call(n1, {register, g, a, ?W:pid(n1, 9), none}, World2),
    {B, World4} = ?W:call(n2, {register, g, b, ?W:pid(n3, 9), none}, World3),
    World = ?W:run(1000, World4),
    #{A := {Answer1, _, _, _}, B := {Answer2, _, _, _}} = maps:merge(#{A => {none, 0, 0, 0}, B => {none, 0, 0, 0}}, ?W:replies(World)),
    {IsEmpty andalso {Answer1, Answer2} =:= {yes, yes}, World}.

%% Two parts

prop_heals() ->
    ?FORALL(
        {Seed, Rule, Left, Right},
        {seed(), rule(), names_(), names_()},
        begin
            World0 = ?W:cut([[n1, n2], [n3, n4]], connected(Seed, #{rule => Rule})),
            Register = fun(Node, Names, W) ->
                lists:foldl(
                    fun({N, Name}, W1) ->
                        Request = {register, g, Name, ?W:pid(lists:nth(1 + N rem 2, Node), N), N rem 3},
                        element(2, ?W:call(hd(Node), Request, W1))
                    end,
                    W,
                    lists:zip(lists:seq(1, length(Names)), Names)
                )
            end,
            World1 = ?W:run(2000, Register([n3, n4], Right, Register([n1, n2], Left, World0))),
            Before = [lists:sort(maps:keys(maps:get(N, ?W:tables(World1)))) || N <- [n1, n3]],
            Clashes = [Name || Name <- Left, lists:member(Name, Right)],
            World = ?W:run(2000, ?W:heal(World1)),
            Told = ?W:told(World),
            Table = maps:get(n1, ?W:tables(World)),
            Losers = case Rule of notify_all -> 2; _ -> 1 end,
            ?WHENFAIL(
                begin show(World), io:format("told ~p~n", [Told]) end,
                Before =:= [[{g, N} || N <- lists:sort(Left)], [{g, N} || N <- lists:sort(Right)]] andalso
                    agree(World) andalso
                    length(Told) =:= length(Clashes) * Losers andalso
                    length(lists:usort([Pid || {Pid, _} <- Told])) =:= length(Told) andalso
                    lists:all(
                        fun({Pid, {name_conflict, g, Name, Winner}}) ->
                            lists:member(Name, Clashes) andalso Pid =/= Winner andalso
                                Winner =:= holder(Name, Table) andalso (Winner =:= none) =:= (Rule =:= notify_all)
                        end,
                        Told
                    )
            )
        end
    ).

names_() -> ?LET(Names, list(choose(1, 12)), lists:usort(Names)).

holder(Name, Table) ->
    case Table of
        #{{g, Name} := {Pid, _}} -> Pid;
        #{} -> none
    end.

%% Three parts meet two by two; a rule that makes an order leaves one.
three_parts_test_() ->
    {timeout, 100, fun() -> [three_parts(Seed, Rule) || Seed <- atoll_tier:seeds({?MODULE, three_parts}, 100), Rule <- [random_exit, random_notify, {keep, max}, {keep, min}]] end}.

three_parts(Seed, Rule) ->
    World0 = ?W:cut([[n1], [n2], [n3, n4]], connected(Seed, #{rule => Rule})),
    World1 = lists:foldl(
        fun(Node, W) -> element(2, ?W:call(Node, {register, g, a, ?W:pid(Node, 1), none}, W)) end, World0, [n1, n2, n3]
    ),
    World = ?W:run(3000, ?W:heal(?W:run(1000, World1))),
    ?assertMatch([#{{g, a} := _}], lists:usort(maps:values(?W:tables(World)))),
    ?assertEqual(2, length(?W:told(World))),
    ?assertEqual(2, length(lists:usort([Pid || {Pid, _} <- ?W:told(World)]))).

%% Silence and loss

prop_silent() ->
    ?FORALL(
        {Seed, Steps},
        {seed(), choose(0, 40)},
        begin
            World0 = connected(Seed),
            {A, World1} = ?W:call(n1, {register, g, a, ?W:pid(n1, 1), none}, World0),
            World2 = ?W:pause(n3, ?W:steps(Steps, World1)),
            World3 = ?W:run(5000, World2),
            {B, World4} = ?W:call(n1, {register, g, b, ?W:pid(n2, 1), none}, World3),
            World5 = ?W:run(1000, World4),
            {C, World6} = ?W:call(n3, {register, g, c, ?W:pid(n2, 2), none}, ?W:run(4000, World5)),
            World7 = ?W:run(1000, World6),
            {D, World8} = ?W:call(n1, {register, g, d, ?W:pid(n2, 3), none}, World7),
            World9 = ?W:run(1000, World8),
            #{A := {yes, _, Asked, At}, B := {yes, _, AskedB, AtB}, D := {yes, _, AskedD, AtD}} = ?W:replies(World9),
            World = ?W:quiet(World9),
            ?WHENFAIL(
                show(World),
                At - Asked < 3500 andalso AtB - AskedB < 3500 andalso AtD - AskedD < 200 andalso
                    is_map_key(C, ?W:replies(World)) andalso
                    agree(World) andalso ?W:faults(World) =:= []
            )
        end
    ).

%% Its process ends for good and unseen: also those that had nothing to tell it find out, and its
%% names come with its next life.
where_the_process_is_gone_its_names_are_gone_everywhere_test() ->
    {A, World0} = ?W:call(n4, {register, g, there, ?W:pid(n4, 1), none}, ?W:run(60000, connected(1))),
    World1 = ?W:stop(n4, ?W:run(60000, World0)),
    {B, World2} = ?W:call(n1, {register, g, new, ?W:pid(n1, 1), none}, World1),
    World3 = ?W:run(6000, World2),
    ?assertMatch(#{A := {yes, _, _, _}, B := {yes, _, _, _}}, ?W:replies(World3)),
    ?assertEqual([{N, [{g, new}]} || N <- [n1, n2, n3]], [{N, maps:keys(maps:get(N, ?W:tables(World3)))} || N <- [n1, n2, n3]]),
    World = ?W:quiet(?W:reboot(n4, World3)),
    ?assertEqual([{N, [{g, new}, {g, there}]} || N <- ?NODES], [{N, maps:keys(maps:get(N, ?W:tables(World)))} || N <- ?NODES]),
    ?assertEqual([], ?W:faults(World)).

prop_lossy() ->
    ?FORALL(
        {Seed, Calls},
        {seed(), resize(10, list({oneof(?NODES), choose(1, 30)}))},
        begin
            World0 = ?W:lossy(0.2, connected(Seed)),
            Unique = lists:ukeysort(2, Calls),
            Requests = [{C, {register, g, N, ?W:pid(C, N), none}, 5} || {C, N} <- Unique],
            World = ?W:settle(do_calls(Requests, World0)),
            ?WHENFAIL(
                show(World),
                [] =:= [A || {A, _, _, _} <- maps:values(?W:replies(World)), A =/= yes] andalso
                    map_size(?W:replies(World)) =:= length(Unique) andalso agree(World) andalso ?W:faults(World) =:= []
            )
        end
    ).

prop_deterministic() ->
    ?FORALL(
        {Seed, Deeds},
        {seed(), list(deed())},
        begin
            Run = fun() -> lists:foldl(fun do/2, connected(Seed), Deeds) end,
            Run() =:= Run()
        end
    ).

%% Each step of a registration: n1 asks for a process of n2; n3 and n4 are members.
%% One of them is killed, paused, rebooted or cut off after that step.
each_step_test_() ->
    {timeout, 300, fun() ->
        _ = [
            each_step(Seed, Victim, Deed, Kind, Step)
         || Seed <- atoll_tier:seeds({?MODULE, each_step}, 3),
            Kind <- [register, re_register, unregister],
            Victim <- [n1, n2, n3],
            Deed <- [kill, pause, reboot, break],
            Step <- steps(atoll_tier:tier(), Seed)
        ],
        ok
    end}.

%% All of them, or each fifth, the first of which is drawn.
steps(fast, Seed) -> lists:seq(Seed rem 5, 45, 5);
steps(deep, _Seed) -> lists:seq(0, 45).

each_step(Seed, Victim, Deed, Kind, Step) ->
    World0 = connected(Seed),
    World1 =
        case Kind of
            register ->
                World0;
            re_register ->
                {_, W} = ?W:call(n3, {register, g, a, ?W:pid(n3, 1), none}, World0),
                ?W:run(500, W);
            unregister ->
                {_, W} = ?W:call(n2, {register, g, a, ?W:pid(n2, 1), none}, World0),
                ?W:run(500, W)
        end,
    Request =
        case Kind of
            unregister -> {unregister, g, a};
            _ -> {Kind, g, a, ?W:pid(n2, 1), none}
        end,
    {Call, World2} = ?W:call(n1, Request, World1),
    World3 = ?W:steps(Step, World2),
    World4 =
        case Deed of
            kill -> ?W:kill(Victim, World3);
            pause -> ?W:pause(Victim, World3);
            reboot -> ?W:reboot(Victim, World3);
            break -> ?W:break(n2, case Victim of n2 -> n1; _ -> Victim end, World3)
        end,
    %% As long as a call may take at most, should its owner be silent.
    World5 = ?W:run(13500, World4),
    Case = {Seed, Victim, Deed, Kind, Step},
    %% It was answered, where somebody was left to hear it.
    Heard = is_map_key(Call, ?W:replies(World5)),
    ?assertEqual({Case, true}, {Case, Heard orelse (Victim =:= n1 andalso Deed =/= break)}),
    %% Whoever is left agrees; of a silent node they may have heard, or not.
    Left = [T || {N, T} <- maps:to_list(?W:tables(World5)), N =/= Victim orelse Deed =:= break],
    ?assertEqual({Case, true}, {Case, Deed =:= pause orelse length(lists:usort(Left)) =:= 1}),
    %% The name can be had when its process is dead, and its node has heard of that.
    World6 = ?W:run(1000, ?W:die(?W:pid(n3, 1), ?W:die(?W:pid(n2, 1), ?W:resume(World5)))),
    {Again, World7} = ?W:call(n4, {register, g, a, ?W:pid(n4, 1), none}, World6),
    World8 = ?W:run(4000, World7),
    ?assertMatch({Case, #{Again := {yes, _, _, _}}}, {Case, ?W:replies(World8)}),
    World = ?W:quiet(?W:quiet(start_all(World8))),
    ?assertEqual({Case, []}, {Case, ?W:faults(World)}),
    ?assertEqual({Case, #{}}, {Case, ?W:pending(World)}),
    ?assertEqual({Case, true}, {Case, agree(World) andalso is_idle(World)}).

regressions_test_() ->
    [atoll_prop:again(Property, ?MODULE:Property(), Counterexample) || {Property, Counterexample} <- ?REGRESSIONS].

%% One member asks this node to look for another one, which has come back when the answer is here.
who_is_found_gone_and_has_come_back_keeps_its_names_test_() ->
    Id = {g, {1, n1, 1}},
    Config = #{self => n1, incarnation => 1, options => ?W:options(), published => [{g, Id, [n1, n2, n3]}], held => []},
    Says = fun(Peer, Life, Seq, Item) -> {message, Peer, {b, {Life, 1}, none, Seq, 0, [Item]}} end,
    Name = fun(State) -> atoll_name_core:handle({call, {self(), x}, info}, 9, State) end,
    Pid = ?W:pid(n2, 1),
    {S0, _} = atoll_name_core:init(Config, 0),
    Events = [{up, n2}, {up, n3}, Says(n2, 5, 1, {have, Id, a, 7, Pid, none})],
    S1 = lists:foldl(fun(E, S) -> element(1, atoll_name_core:handle(E, 1, S)) end, S0, Events),
    {S2, Looks} = atoll_name_core:handle(Says(n3, 5, 1, {look_for, n2}), 2, S1),
    [Mark] = [M || {act, {look_for, n2, M}} <- Looks],
    Names = fun(S) -> [N || {reply, _, #{names := N}} <- element(2, Name(S))] end,
    Gone = fun(S) -> element(1, atoll_name_core:handle({cast, {absent, n2, Mark}}, 4, S)) end,
    {Back, _} = atoll_name_core:handle(Says(n2, 6, 1, {have, Id, a, 8, Pid, none}), 3, S2),
    [?_assertEqual([0], Names(Gone(S2))), ?_assertEqual([1], Names(Gone(Back)))].

%% The name of a process on no member is this node's, and is so after a restart; one of a group that
%% was made anew meanwhile is not.
a_name_on_this_node_s_account_is_held_after_a_restart_test_() ->
    Id = {g, {1, n1, 1}},
    Held = fun(Group) ->
        {_, Effects} = atoll_name_core:init(
            #{
                self => n1,
                incarnation => 1,
                options => ?W:options(),
                published => [{g, Id, [n1, n2]}],
                held => [{Group, a, ?W:pid(far, 1), none}]
            },
            0
        ),
        [Act || {act, {What, _, _} = Act} <- Effects, What =:= delete] ++ [Act || {act, Act} <- Effects, element(1, Act) =:= insert]
    end,
    [
        ?_assertMatch([{insert, g, a, _, none, {own, Id}}], Held(Id)),
        ?_assertEqual([{delete, g, a}], Held({g, {7, n2, 1}}))
    ].
