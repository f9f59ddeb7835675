%% SPDX-License-Identifier: Apache-2.0
%% The truth of `yes' on real nodes: after each one every live member has the name, while
%% members are killed and started again, and stopped and let go on, all the time.
%%
%% A member is live for a `yes' when it answers a question that is put to it right after, and it
%% and the process's node were connected, and neither silent for the other, from when that node
%% decided until the question, as both have written down. Then it must have the process. A name is
%% not given back before all have been asked.
%%
%% The faults and the callers are drawn from the seed; what happens when hangs on the machine.
-module(atoll_name_truth_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([after_each_yes_every_live_member_has_it/1]).

-define(C, atoll_name_cluster).
-define(CALL_MS, 60000).
-define(ANSWER_MS, 700).
-define(CALLERS, 40).
%% At least so many faults in a run, however few names.
-define(FAULTS, 8).
%% Before the decision / after the question, in which a loss of the connection excuses a
%% member: an owner that has lost a member says `yes' without it, and the news of it
%% may be written down after it was acted on.
-define(BEFORE_US, 100000).
-define(AFTER_US, 200000).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [after_each_yes_every_live_member_has_it].

init_per_suite(Config) ->
    Cluster = atoll_name_cluster:start(
        6,
        ["-atoll", "connect_retry_max", "500"] ++
            ["name_answer_timeout", integer_to_list(?ANSWER_MS), "name_rule", "random_notify"]
    ),
    ok = ?C:group(Cluster, g, atoll_cluster:nodes(Cluster)),
    [ok = ?C:call(Cluster, N, atoll_name_witness, watch_decisions, []) || N <- atoll_cluster:nodes(Cluster)],
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

after_each_yes_every_live_member_has_it(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Goal = atoll_tier:size(name_truth),
    Seed = atoll_tier:seed(?FUNCTION_NAME),
    World = #{
        cluster => C,
        nodes => Nodes,
        %% Who is being killed or stopped: not asked.
        faulty => ets:new(faulty, [public]),
        %% What was done to whom, from when to when.
        done => ets:new(done, [public]),
        counts => atomics:new(2, []),
        goal => Goal
    },
    Started = erlang:monotonic_time(millisecond),
    {Left, Right} = lists:split(3, Nodes),
    Nemeses = [?C:work(fun() -> nemesis(World, Own, rand:seed_s(exsss, {Seed, N, 0}), #{}) end) || {N, Own} <- [{1, Left}, {2, Right}]],
    Callers = [?C:work(fun() -> caller(World, N, rand:seed_s(exsss, {Seed, N, 1}), #{}) end) || N <- lists:seq(1, ?CALLERS)],
    Told = add_all([?C:result(W) || W <- Callers]),
    Faults = add_all([?C:result(W) || W <- Nemeses]),
    Ms = erlang:monotonic_time(millisecond) - Started,
    _ = [?C:report("~p", [F]) || F <- maps:get(false, Told, [])],
    ?C:report("~b ms, seed ~b~nfaults ~0p~nanswers ~0p", [Ms, Seed, Faults, maps:without([false], Told)]),
    ?assertEqual([], maps:get(false, Told, [])),
    ?assert(maps:get(yes, Told) >= Goal),
    %% An excuse is rare: most of what is read counts.
    #{reads := Reads} = Told,
    ?assert(10 * maps:get(lost, Told, 0) < Reads),
    Undocumented = maps:keys(maps:without(known(), Told)),
    ?assertEqual([], Undocumented),
    %% All have ended, and no name is left anywhere.
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [g, [], 10000]) || N <- Nodes].

known() ->
    [turns, yes, reads, silent, clash, lost, held_up_ms] ++
        [{no, R} || R <- [name_or_pid_already_registered, pid_is_already_registered, pid_is_not_on_a_member]] ++
        [{no, R} || R <- [no_process, timeout, connection_lost]] ++
        %% A caller's node that was just started is not back in the group yet.
        [{no, R} || R <- [cannot_register_in_remote_group, cannot_re_register_in_remote_group]] ++
        [{caller, node_down}].

add_all(Maps) -> lists:foldl(fun(M, Sum) -> maps:fold(fun add/3, Sum, M) end, #{}, Maps).

add(held_up_ms, Ms, Sum) -> maps:update_with(held_up_ms, fun(Most) -> max(Most, Ms) end, Ms, Sum);
add(Key, N, Sum) when is_integer(N) -> maps:update_with(Key, fun(M) -> M + N end, N, Sum);
add(Key, L, Sum) -> maps:update_with(Key, fun(M) -> L ++ M end, L, Sum).

is_over(#{counts := Counts, goal := Goal}) ->
    atomics:get(Counts, 1) >= Goal andalso atomics:get(Counts, 2) >= ?FAULTS.

%% The faults: one of these nodes at a time.

nemesis(#{cluster := C, faulty := Faulty, done := Log, counts := Counts} = World, Nodes, Random0, Done) ->
    case is_over(World) of
        true ->
            Done;
        false ->
            {Node, Random1} = pick(Nodes, Random0),
            {Kind, Random2} = pick([kill, short_pause, short_pause, long_pause], Random1),
            {Chance, Random3} = rand:uniform_s(Random2),
            {Rest, Random} = rand:uniform_s(Random3),
            true = ets:insert(Faulty, {Node}),
            Fault = {Node, os:system_time(microsecond)},
            true = ets:insert(Log, {Fault, Kind, still}),
            ok = fault(Kind, Chance, C, Node),
            true = ets:delete(Faulty, Node),
            true = ets:insert(Log, {Fault, Kind, os:system_time(microsecond)}),
            ok = atomics:add(Counts, 2, 1),
            last(200 * Rest),
            nemesis(World, Nodes, Random, add(Kind, 1, Done))
    end.

fault(kill, Chance, C, Node) ->
    ok = atoll_cluster:kill(C, Node),
    last(200 * Chance),
    ok = atoll_cluster:restart(C, Node),
    ok = ?C:call(C, Node, atoll_name_witness, start, []),
    ?C:call(C, Node, atoll_name_witness, watch_decisions, []);
fault(short_pause, Chance, C, Node) ->
    ok = atoll_cluster:pause(C, Node),
    last(20 + (?ANSWER_MS - 100) * Chance),
    atoll_cluster:resume(C, Node);
fault(long_pause, Chance, C, Node) ->
    ok = atoll_cluster:pause(C, Node),
    last(?ANSWER_MS + 100 + 1000 * Chance),
    atoll_cluster:resume(C, Node).

%% How long a fault lasts, and the time without one.
last(Ms) ->
    receive
    after round(Ms) -> ok
    end.

%% The callers: each gives a name, perhaps to another process then, and takes it back.

caller(World, N, Random, Told) ->
    case is_over(World) of
        true -> Told;
        false -> turn(World, N, Random, add(turns, 1, Told))
    end.

turn(#{nodes := Nodes} = World, N, Random0, Told0) ->
    {Chance, Random1} = rand:uniform_s(Random0),
    {Name, Random2} =
        case Chance < 0.2 of
            %% One that others want too.
            true ->
                {K, R} = rand:uniform_s(4, Random1),
                {{shared, K}, R};
            false ->
                {{N, maps:get(turns, Told0, 0)}, Random1}
        end,
    {Owner, Random3} = pick(Nodes, Random2),
    {Next, Random4} = pick(Nodes, Random3),
    {By, Random5} = pick(Nodes, Random4),
    {ByNext, Random6} = pick(Nodes, Random5),
    {End, Random} = rand:uniform_s(Random6),
    {First, Told1} = give(World, register_name, By, Owner, Name, Told0),
    {Second, Told2} =
        case {First, Name, End < 0.5} of
            {{yes, _}, {M, _}, true} when is_integer(M) -> give(World, re_register_name, ByNext, Next, Name, Told1);
            _ -> {none, Told1}
        end,
    Pids = [Pid || {_, Pid} <- [First, Second]],
    %% What others want too goes with its process: it may be another's by now.
    case {[x || {yes, _} <- [First, Second]], Name, End < 0.25 orelse End > 0.75} of
        {[_ | _], {Mine, _}, true} when Mine =/= shared -> _ = ?C:try_call(maps:get(cluster, World), ByNext, s_group, unregister_name, [g, Name], ?CALL_MS);
        _ -> ok
    end,
    _ = [?C:try_call(maps:get(cluster, World), node(Pid), atoll_name_witness, end_all, [[Pid]], ?CALL_MS) || Pid <- Pids],
    caller(World, N, Random, Told2).

%% By this node, a process of that node.
give(#{cluster := C, counts := Counts} = World, How, By, Owner, Name, Told) ->
    case ?C:try_call(C, Owner, atoll_name_witness, holders, [1], ?CALL_MS) of
        {error, _} ->
            {none, Told};
        {ok, [Pid]} ->
            case ?C:try_call(C, By, atoll_name_witness, register, [How, g, Name, Pid], ?CALL_MS) of
                {ok, {yes, Since, Until}} ->
                    Checked = check(World, {How, By, Name}, Pid, Since, Until),
                    ok = atomics:add(Counts, 1, 1),
                    {{yes, Pid}, add_all([Told, #{yes => 1, held_up_ms => (Until - Since) div 1000}, Checked])};
                {ok, {{no, _} = No, _, _}} ->
                    {{no, Pid}, add(No, 1, Told)};
                {error, Why} ->
                    {{no, Pid}, add({caller, Why}, 1, Told)}
            end
    end.

%% Asks all that may be live, at once.
check(#{cluster := C, nodes := Nodes, faulty := Faulty} = World, {_, _, Name} = Op, Pid, Since, Until) ->
    Asked = [{N, ?C:work(fun() -> ?C:try_call(C, N, atoll_name_witness, read, [g, Name], 2000) end)} || N <- Nodes, not ets:member(Faulty, N)],
    add_all([
        case ?C:result(Work) of
            {ok, {Pid, _At}} -> #{reads => 1};
            {ok, {Other, At}} -> excuse(World, Member, {Op, Pid}, Other, {Since, Until, At});
            {error, _} -> #{silent => 1}
        end
     || {Member, Work} <- Asked
    ]).

%% Why this member does not have it.
excuse(#{cluster := C} = World, Member, {{_, _, Name} = Op, Pid}, Other, {Since, _, At} = Times) ->
    Owner = node(Pid),
    case ?C:try_call(C, Owner, atoll_name_witness, decided, [Name, Pid, Since], ?CALL_MS) of
        {ok, Decided} when is_integer(Decided) ->
            From = max(Since, Decided - ?BEFORE_US),
            Answers = [
                ?C:try_call(C, N, atoll_name_witness, steady, [M, From, At + ?AFTER_US], ?CALL_MS)
             || {N, M} <- [{Member, Owner}, {Owner, Member}]
            ],
            case [x || S <- Answers, S =/= {ok, true}] of
                [_ | _] -> #{lost => 1};
                [] -> clashed(World, Member, Op, Pid, Other, Times)
            end;
        {ok, never} ->
            #{false => [story(World, Member, Op, Pid, Other, never, Times)]};
        _ ->
            %% The owner's node has ended since, or had just begun.
            #{lost => 1}
    end.

clashed(#{cluster := C} = World, Member, {_, _, Name} = Op, Pid, Other, Times) ->
    case ?C:try_call(C, node(Pid), atoll_name_witness, told, [[Pid]], ?CALL_MS) of
        {ok, [{Pid, [{name_conflict, g, Name, _} | _]}]} -> #{clash => 1};
        Told -> #{false => [story(World, Member, Op, Pid, Other, Told, Times)]}
    end.

%% All that is known of one that cannot be excused; times from when it was read, in milliseconds.
story(#{cluster := C, done := Log}, Member, {_, By, _} = Op, Pid, Other, Told, {Since, Until, At}) ->
    Ms = fun(Us) -> (Us - At) div 1000 end,
    #{
        op => Op,
        pid => Pid,
        at => {Member, Other},
        told => Told,
        called => Ms(Since),
        answered => Ms(Until),
        faults => lists:sort([{Ms(Began), N, Kind, till(Ended, Ms)} || {{N, Began}, Kind, Ended} <- ets:tab2list(Log), At - Began < 10000000]),
        seen => [
            case ?C:try_call(C, N, atoll_name_witness, log, [], ?CALL_MS) of
                {ok, {Began, Seen}} -> {N, Ms(Began), [{Ms(T), What, O} || {T, What, O} <- Seen, At - T < 10000000]};
                Error -> {N, Error}
            end
         || N <- lists:usort([Member, node(Pid), By])
        ]
    }.

till(still, _Ms) -> still;
till(Us, Ms) -> Ms(Us).

pick(List, Random0) ->
    {N, Random} = rand:uniform_s(length(List), Random0),
    {lists:nth(N, List), Random}.
