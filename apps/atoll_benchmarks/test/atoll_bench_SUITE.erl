%% SPDX-License-Identifier: Apache-2.0
%% The benchmarks, each for a round or two on real nodes: that they measure what
%% they say, and leave nothing behind. The fast tier has some of what is measured in
%% several ways, and each way at least once.
-module(atoll_bench_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0]).
-export([
    names_are_gone_from_every_node_before_the_next_round/1,
    names_count_as_visible_when_the_last_node_sees_them/1,
    nothing_is_timed_before_a_name_of_each_node_is_seen_on_all/1,
    groups_of_four_are_of_four_and_know_nobody_else/1,
    names_are_offered_at_the_rate_whatever_becomes_of_them/1,
    a_rate_that_is_too_high_is_a_sentence/1,
    messages_of_names_are_those_between_nodes/1,
    the_time_to_be_visible_is_that_of_the_last_node/1,
    a_look_up_sends_nothing/1,
    each_kind_of_load_is_measured/1,
    a_relay_is_what_is_measured_where_it_says_so/1,
    all_talk_to_all_over_the_gateways_of_their_groups/1,
    a_long_path_is_in_every_answer_and_goes_with_the_nodes/1,
    a_round_of_orbit_finds_the_same_in_each_mode/1,
    a_round_of_aco_finds_the_same_in_each_mode/1,
    a_round_of_debench_measures_all_of_it_and_leaves_no_name/1,
    a_round_of_debench_in_a_closed_loop_says_nothing_of_a_share/1,
    work_is_placed_where_the_rule_says_and_slow_nodes_are_slow/1,
    nodes_that_cannot_be_bounded_are_taken_down/1,
    a_herd_is_spread_by_claims_and_not_by_taking_the_first/1,
    nodes_that_cannot_be_made_ready_are_taken_down/1,
    what_goes_wrong_on_a_node_is_a_sentence/1
]).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    %% What the last node sees late is in the time of a single name, too.
    Slow = [names_count_as_visible_when_the_last_node_sees_them],
    Cases = [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info],
    [{group, waiting} | some((Cases -- Slow) -- waiting(), Slow)].

groups() -> [{waiting, [parallel], waiting()}].

%% What waits for seconds, and each has nodes of its own.
waiting() ->
    [
        a_rate_that_is_too_high_is_a_sentence, all_talk_to_all_over_the_gateways_of_their_groups,
        a_long_path_is_in_every_answer_and_goes_with_the_nodes, work_is_placed_where_the_rule_says_and_slow_nodes_are_slow
    ].

%% Of several, those of the fast tier or all.
some(Fast, More) ->
    case atoll_tier:tier() of
        fast -> Fast;
        deep -> Fast ++ More
    end.

%% Measures with Module at a point for some rounds.
with(Module, Point, Fun) ->
    {ok, State} = Module:setup(Point#{seed => 1}),
    try
        Fun(State)
    after
        ok = Module:teardown(State),
        ?assertNot(is_process_alive(map_get(cluster, State)))
    end.

point(System) ->
    #{nodes => 3, callers => 1, on => first, rate => 0, system => System}.

names_are_gone_from_every_node_before_the_next_round(_) ->
    [
        with(atoll_bench_names, (point(System))#{callers := Callers, on := On}, fun(State0) ->
            #{cluster := Cluster} = State0,
            {ok, Measures, State} = atoll_bench_names:round(State0),
            ?assertEqual([], names(System, Cluster)),
            #{registrations_per_s := Rate, visible_per_s := Visible, visible_ms := Times, latency := Latency} = Measures,
            ?assert(Rate > 0 andalso Visible > 0 andalso Visible =< Rate),
            ?assert(lists:all(fun(Ms) -> Ms > 0 end, Times)),
            ?assert(atoll_histogram:count(Latency) >= case On of first -> Callers; each -> 3 * Callers end),
            #{cpu_us_per_op := Cpu, messages_per_op := Messages, lookups_per_s := LookUps, lookup_factor := Factor} = Measures,
            ?assert(Cpu > 0 andalso Messages > 0 andalso LookUps > 0 andalso Factor > 0),
            %% The next one has names of its own.
            ?assertMatch({ok, _, #{round := 3}}, atoll_bench_names:round(State))
        end)
     || {System, Callers, On} <- some([{global, 20, first}], [{s_group_of_4, 2, each}, {pg, 20, first}, {s_group, 20, first}])
    ].

%% The last node gets to look at what it has heard ten seconds later.
names_count_as_visible_when_the_last_node_sees_them(_) ->
    with(atoll_bench_names, (point(pg))#{nodes := 2}, fun(#{cluster := Cluster} = State) ->
        [_, Last] = atoll_cluster:nodes(Cluster),
        ok = late(Cluster, Last, 10000),
        {ok, #{visible_per_s := Visible, registrations_per_s := Rate, latency := Latency}, _} = atoll_bench_names:round(State),
        Names = atoll_histogram:count(Latency),
        ?assert(Names / Visible >= 7, {Names, Visible}),
        %% Those who register did not wait for it.
        ?assert(Names / Rate =< 7, {Names, Rate})
    end).

nothing_is_timed_before_a_name_of_each_node_is_seen_on_all(_) ->
    Test = self(),
    Pid = spawn_link(fun() ->
        receive go -> ok end,
        with(atoll_bench_names, point(pg), fun(#{cluster := Cluster}) ->
            Test ! {up, atoll_cluster:nodes(Cluster)},
            receive looked -> ok end
        end),
        Test ! down
    end),
    Traced = [{atoll_bench_nodes, call, 5}, {atoll_cluster, multicall, 5}],
    1 = erlang:trace(Pid, true, [call]),
    [1 = erlang:trace_pattern(Function, true, []) || Function <- Traced],
    Pid ! go,
    Nodes = receive {up, Up} -> Up end,
    [1 = erlang:trace_pattern(Function, false, []) || Function <- Traced],
    Pid ! looked,
    receive down -> ok end,
    Asked = asked(Pid),
    ?assertEqual(
        lists:append([[{register, {probe, Node}}, {see, {probe, Node}}] || Node <- Nodes]),
        [Step || {What, _} = Step <- Asked, What =:= register orelse What =:= see]
    ).

%% What the setup had done on the nodes, in order.
asked(Pid) ->
    receive
        {trace, Pid, call, {atoll_bench_nodes, call, [_, _, {_, Function}, [_, Batch | _], _]}} -> [{Function, Batch} | asked(Pid)];
        {trace, Pid, call, {atoll_cluster, multicall, [_, _, Function, [_, Batch | _], _]}} -> [{Function, Batch} | asked(Pid)];
        {trace, Pid, call, _} -> asked(Pid)
    after 0 -> []
    end.

%% pg's process on a node hears nothing for so long.
late(Cluster, Node, Ms) ->
    ok = atoll_cluster:call(Cluster, Node, sys, suspend, [atoll_bench_names_system]),
    {ok, _} = atoll_cluster:call(Cluster, Node, timer, apply_after, [Ms, sys, resume, [atoll_bench_names_system]]),
    ok.

groups_of_four_are_of_four_and_know_nobody_else(_) ->
    Count = lists:last(some([6], [8])),
    with(atoll_bench_names, (point(s_group_of_4))#{nodes := Count, on := each}, fun(#{cluster := Cluster} = State) ->
        {ok, _, _} = atoll_bench_names:round(State),
        Nodes = atoll_cluster:nodes(Cluster),
        {Four, Others} = lists:split(4, Nodes),
        [
            ?assertEqual({ok, lists:sort(Group -- [Node])}, sorted(atoll_cluster:multicall(Cluster, erlang, nodes, []), Node))
         || Group <- [Four, Others],
            Node <- Group
        ]
    end).

sorted(Answers, Node) ->
    {Node, {ok, Nodes}} = lists:keyfind(Node, 1, Answers),
    {ok, lists:sort(Nodes)}.

names_are_offered_at_the_rate_whatever_becomes_of_them(_) ->
    with(atoll_bench_names, (point(s_group))#{callers := 50, on := each, rate := 40}, fun(State) ->
        {ok, #{latency := Latency}, _} = atoll_bench_names:round(State),
        %% A second of them on three nodes.
        ?assertEqual(120, atoll_histogram:count(Latency))
    end).

a_rate_that_is_too_high_is_a_sentence(_) ->
    with(atoll_bench_names, (point(s_group))#{rate := 1000}, fun(#{cluster := Cluster} = State) ->
        [First | _] = atoll_cluster:nodes(Cluster),
        %% What is never answered, with one caller, keeps all others from beginning.
        ok = atoll_cluster:call(Cluster, First, sys, suspend, [atoll_name]),
        {error, Sentence} = atoll_bench_names:round(State),
        ?assertEqual(
            "the rate is too high: 1000 registrations did not come to an end on " ++ atom_to_list(First),
            lists:flatten(Sentence)
        )
    end).

%% pg tells each of the others of each name, and of the process's monitor nothing.
messages_of_names_are_those_between_nodes(_) ->
    with(atoll_bench_names, (point(pg))#{nodes := 4, callers := 10}, fun(State) ->
        {ok, #{messages_per_op := Messages}, _} = atoll_bench_names:round(State),
        ?assert(abs(Messages - 3) < 0.2, Messages)
    end).

the_time_to_be_visible_is_that_of_the_last_node(_) ->
    with(atoll_bench_names, point(pg), fun(#{cluster := Cluster}) ->
        [First, _, Last] = atoll_cluster:nodes(Cluster),
        %% Much later than a call takes on a busy machine.
        ok = late(Cluster, Last, 3000),
        [Slow, Quick] = atoll_cluster:call(Cluster, First, atoll_bench_names_load, visible, [pg, {round, 1}, 2], 30000),
        ?assert(Slow > 1000, Slow),
        ?assert(Quick < Slow, {Quick, Slow})
    end).

a_look_up_sends_nothing(_) ->
    with(atoll_bench_names, point(s_group), fun(#{cluster := Cluster}) ->
        [First | _] = atoll_cluster:nodes(Cluster),
        {Looked, Registered} = atoll_cluster:call(Cluster, First, erlang, apply, [fun looked_up/0, []]),
        ?assertEqual({true, []}, Looked),
        %% What sends would have been seen.
        ?assertMatch({ok, [_ | _]}, Registered)
    end).

looked_up() ->
    {Pid, _} = spawn_monitor(timer, sleep, [60000]),
    Here = atoll_bench_names_system:here(s_group),
    Registered = sending(fun() -> atoll_bench_names_system:give(Here, name, Pid) end),
    {sending(fun() -> atoll_bench_names_system:whereis(Here, name) =:= Pid end), Registered}.

%% What a function returns, and what its process sent or started meanwhile.
sending(Fun) ->
    Self = self(),
    Looker = spawn_link(fun() ->
        receive go -> ok end,
        Self ! {value, self(), Fun()}
    end),
    1 = erlang:trace(Looker, true, [send, procs]),
    Looker ! go,
    Value = receive {value, Looker, V} -> V end,
    Delivered = erlang:trace_delivered(Looker),
    receive {trace_delivered, Looker, Delivered} -> ok end,
    {Value, sent(Looker) -- [{value, Looker, Value}]}.

sent(Pid) ->
    receive
        {trace, Pid, send, Message, _To} -> [Message | sent(Pid)];
        {trace, Pid, spawn, Started, _} -> [Started | sent(Pid)];
        {trace, Pid, _, _} -> sent(Pid)
    after 0 -> []
    end.

names(global, Cluster) ->
    answers(Cluster, global, registered_names, []);
names(pg, Cluster) ->
    answers(Cluster, pg, which_groups, [atoll_bench_names_system]);
names(_OfGroups, Cluster) ->
    answers(Cluster, atoll_name, names, []).

answers(Cluster, Module, Function, Args) ->
    lists:append([Answer || {_, {ok, Answer}} <- atoll_cluster:multicall(Cluster, Module, Function, Args)]).

each_kind_of_load_is_measured(_) ->
    [
        with(atoll_bench_dist, #{kind => Kind, rtt => 0, actors => 4, size => 1000, system => System}, fun(State) ->
            {ok, #{ops_per_s := Ops, mb_per_s := Mb} = Measures, _} = atoll_bench_dist:round(State),
            ?assert(Ops > 0),
            ?assert(abs(Mb - Ops / 1000) < 0.001 * Mb),
            case {Kind, Measures} of
                {flood, _} -> ?assertNot(is_map_key(latency, Measures));
                %% A second at 200 a second, however slow they are.
                {ping_beside_bulk, #{latency := Latency}} -> ?assertEqual(200, atoll_histogram:count(Latency));
                {_, #{latency := Latency}} -> ?assert(atoll_histogram:count(Latency) > 0)
            end
        end)
     || {Kind, System} <- some([{flood, lanes4}, {ping_beside_bulk, direct_latency}], [{request, stock}])
    ].

a_relay_is_what_is_measured_where_it_says_so(_) ->
    Point = #{kind => request, rtt => 0, actors => 2, size => 1000, system => relay_sealed},
    with(atoll_bench_dist, Point, fun(#{cluster := Cluster} = State) ->
        [Here, There, Gateway] = atoll_cluster:nodes(Cluster),
        {ok, #{ops_per_s := Ops}, _} = atoll_bench_dist:round(State),
        [#{path := [_, Gateway, _] = Path, sealed := true}] =
            [Link || #{kind := relay} = Link <- atoll_cluster:call(Cluster, Here, atoll_dist, links, [])],
        ?assertEqual([Here, There], lists:sort(Path -- [Gateway])),
        #{bytes := Bytes} = atoll_cluster:call(Cluster, Gateway, atoll_dist, relay, []),
        %% There is no other way that they can have gone.
        ?assert(Bytes > 0.5 * Ops * 1000)
    end).

%% Two groups of four, joined by a group of two gateways of each.
all_talk_to_all_over_the_gateways_of_their_groups(_) ->
    Point = #{nodes => 8, seconds => 1, broadcasts => 1, workload => all_to_all, overlay => groups},
    with(atoll_bench_overlay, Point, fun(#{cluster := Cluster} = State) ->
        {ok, Measures, _} = atoll_bench_overlay:round(State),
        #{neighbours := Links, connections := Connected, gateway_circuits := Circuits, gateway_circuits_max := Most} = Measures,
        ?assertEqual([5, 5, 3, 3, 5, 5, 3, 3], Links),
        ?assertEqual([7, 7, 7, 7, 7, 7, 7, 7], Connected),
        %% From plain to plain two each for four pairs, from plain to gateway one for eight. One that two nodes open
        %% to each other at once is two for a moment.
        Needed = 4 * 2 + 8,
        ?assert(lists:sum(Circuits) >= Needed, Circuits),
        Relayed = fun() -> lists:sum([N || {_, {ok, #{circuits := N}}} <- atoll_cluster:multicall(Cluster, atoll_dist, relay, [])]) end,
        ?assertEqual(ok, atoll_cli_os:await(fun() -> Relayed() =:= Needed end, 10000), Relayed()),
        ?assertEqual(lists:max(Circuits), Most),
        #{word := Latency, cpu_us_per_word := Cpu} = Measures,
        %% As often as there is room for in a second.
        ?assertEqual(8 * 56, atoll_histogram:count(Latency)),
        ?assert(Cpu > 0),
        _ = [silent(Cluster, State) || _ <- some([], [deep])]
    end).

%% With somebody silent a round is no measure.
silent(Cluster, State) ->
    [First | _] = atoll_cluster:nodes(Cluster),
    Pid = atoll_cluster:call(Cluster, First, erlang, whereis, [atoll_bench_overlay_words]),
    true = atoll_cluster:call(Cluster, First, erlang, exit, [Pid, kill]),
    {error, Sentence} = atoll_bench_overlay:round(State),
    ?assertEqual(atom_to_list(First) ++ " did not answer", lists:flatten(Sentence)).

a_long_path_is_in_every_answer_and_goes_with_the_nodes(_) ->
    case atoll_wire:available() of
        ok ->
            with(atoll_bench_dist, #{kind => request, rtt => 20, actors => 2, size => 1000, system => stock_tuned}, fun(State) ->
                {ok, #{latency := Latency, cpu := Cpu}, _} = atoll_bench_dist:round(State),
                %% Buckets are a hundredth wide.
                ?assert(atoll_histogram:percentile(Latency, 0) >= 19800000),
                ?assert(Cpu > 0),
                self() ! {wire, map_get(wire, State)}
            end),
            receive {wire, Wire} -> ?assertNot(is_process_alive(Wire)) end;
        {error, Error} ->
            {skip, lists:flatten(unicode:characters_to_list(atoll_wire:format_error(Error)))}
    end.

a_round_of_orbit_finds_the_same_in_each_mode(_) ->
    [
        with(atoll_bench_orbit, #{nodes => 3, space => 500, workers => 1, group_size => 2, mode => Mode}, fun(State) ->
            {ok, #{vertices_per_s := Rate, wall_ms := Ms, packets := Packets, cpu_ms := Cpu, memory_mb := Memory} = Measures, _} =
                atoll_bench_orbit:round(State),
            ?assert(Rate > 0 andalso Ms >= 0 andalso Packets > 0 andalso Cpu >= 0 andalso Memory > 10),
            %% In a mesh each has two, and there are three; in groups of two one has one, and the other has it too.
            #{connections_max := Most, connections_mean := Mean, connections_all := All} = Measures,
            ?assert(Most >= Mean andalso Mean > 0),
            ?assertEqual(3 * Mean / 2, All),
            Mode =:= mesh andalso ?assertEqual(3.0, All)
        end)
     || Mode <- some([mesh, 'groups-native'], [groups, ring])
    ].

a_round_of_aco_finds_the_same_in_each_mode(_) ->
    Point = #{nodes => 5, degree => 2, jobs => 10, ants => 2, local_iterations => 2, global_iterations => 2,
              local_search => none, pace_ms => 0, chaos => 0},
    Rounds = fun(Mode) ->
        with(atoll_bench_aco, Point#{mode => Mode}, fun(State) ->
            {ok, #{cost := First, packets := Packets, connections_max := 4, names := Names}, Next} =
                atoll_bench_aco:round(State),
            ?assert(Packets > 0),
            %% The master, two submasters, four colonies.
            ?assertEqual(case Mode of ml -> 0; _ -> 7 end, Names),
            {ok, #{cost := Second}, _} = atoll_bench_aco:round(Next),
            [First, Second]
        end)
    end,
    ?assertMatch([_], lists:usort([Rounds(Mode) || Mode <- some([ml, sr], [gr])])).

debenching(System) ->
    #{
        nodes => 4, global => 30, offered => 100, workers => 10, group_size => 2, packet_size => 100, delay_us => 0,
        ramp_ms => 200, window_ms => 1000, system => System
    }.

a_round_of_debench_measures_all_of_it_and_leaves_no_name(_) ->
    [
        with(atoll_bench_debench, debenching(System), fun(#{cluster := Cluster} = State0) ->
            {ok, Measures, State} = atoll_bench_debench:round(State0),
            #{goodput_per_s := Goodput, goodput_percent := Percent, failed_per_s := Failed} = Measures,
            ?assert(abs(Percent - 100 * Goodput / 400) < 0.001),
            ?assert(Goodput > 0 andalso Failed >= 0),
            [?assert(atoll_histogram:count(map_get(Kind, Measures)) > 0) || Kind <- [register, unregister, p2p, gen_server, gen_statem, local]],
            Left = atoll_cluster:multicall(Cluster, debench_peer, gone, [System, 0]),
            ?assertEqual([{ok, ok}, {ok, ok}, {ok, ok}, {ok, ok}], [Said || {_, Said} <- Left]),
            ?assertMatch({ok, _, #{seed := 3}}, atoll_bench_debench:round(State))
        end)
     || System <- some([groups], [mesh])
    ].

a_round_of_debench_in_a_closed_loop_says_nothing_of_a_share(_) ->
    with(atoll_bench_debench, (debenching(mesh))#{nodes := 2, offered := 0, global := 0}, fun(State) ->
        {ok, #{goodput_per_s := Goodput} = Measures, _} = atoll_bench_debench:round(State),
        %% No rate bounds it: a hundred a second is what the nodes do in an open loop.
        ?assert(Goodput > 200, Goodput),
        ?assertNot(is_map_key(goodput_percent, Measures)),
        ?assertMatch(#{messages_per_op := Messages} when Messages > 0, Measures)
    end).

work_is_placed_where_the_rule_says_and_slow_nodes_are_slow(_) ->
    bounded(fun() ->
        Rules = some([{round_robin, 8000}, {attributes, 8000}], [{random, 100}, {attributes_aged, 8000}]),
        [
            with(atoll_bench_place, (placing(Rule))#{work := Work}, fun(#{quota := Quota} = State) ->
                Groups = atoll_quota:groups(Quota),
                ?assertMatch([_, _, _, _], [Group || Group <- Groups, filelib:is_dir(Group)]),
                {ok, Measures, _} = atoll_bench_place:round(State),
                #{run_ms := RunMs, slow_items := Slow, fullest := Fullest, choice := Choice} = Measures,
                ?assertEqual(8, atoll_histogram:count(Choice)),
                case Rule of
                    random -> ?assert(RunMs > 0 andalso Slow >= 0 andalso Fullest >= 1);
                    %% Of two items of 10 ms and more a slow node does 5 ms in a tenth of a second.
                    round_robin -> ?assert(Slow == 50 andalso Fullest == 1 andalso RunMs >= 100, Measures);
                    %% Two nodes have all.
                    _Attributes -> ?assert(Slow == 0 andalso Fullest >= 2, Measures)
                end,
                self() ! {groups, Groups}
            end)
         || {Rule, Work} <- Rules
        ],
        [receive {groups, Groups} -> ?assertEqual([], [Group || Group <- Groups, filelib:is_dir(Group)]) end || _ <- Rules],
        ok
    end).

nodes_that_cannot_be_bounded_are_taken_down(_) ->
    bounded(fun() ->
        Running = lists:sort(atoll_cluster:running()),
        %% As on a system that says something else of its control groups.
        {error, Sentence} = atoll_bench_place:setup((placing(random))#{nodes := 2, slow := 1, slow_percent := 0.5}),
        ?assertEqual(
            "the option cpus must be numbers of processors from 0.01 to 1000",
            lists:flatten(unicode:characters_to_list(Sentence))
        ),
        ?assertEqual([], lists:sort(atoll_cluster:running()) -- Running)
    end).

placing(Rule) ->
    #{workload => unequal, nodes => 4, each => 2, slow => 2, slow_percent => 5, percent => 30, work => 100, rule => Rule}.

%% Where nothing can be bounded, such a case is skipped.
bounded(Case) ->
    case atoll_quota:available() of
        ok -> Case();
        {error, Error} -> {skip, lists:flatten(unicode:characters_to_list(atoll_quota:format_error(Error)))}
    end.

a_herd_is_spread_by_claims_and_not_by_taking_the_first(_) ->
    [
        with(
            atoll_bench_place,
            #{workload => herd, nodes => 4, each => 10, slow => 0, slow_percent => 100, percent => 100, work => 0, rule => Rule},
            fun(State) ->
                {ok, #{fullest := Fullest, messages_per_choice := Messages, choice := Choice}, _} = atoll_bench_place:round(State),
                ?assertEqual(40, atoll_histogram:count(Choice)),
                %% Three others are asked, and answer.
                ?assert(Messages >= 6, Messages),
                case Rule of
                    first -> ?assertEqual(4.0, Fullest);
                    claims -> ?assert(Fullest =< 1.5, Fullest)
                end
            end
        )
     || Rule <- some([claims], [first])
    ],
    ok.

nodes_that_cannot_be_made_ready_are_taken_down(_) ->
    Self = self(),
    Answer = atoll_bench_nodes:start(#{nodes => 1}, fun(Cluster) ->
        Self ! {cluster, Cluster},
        {error, "it is not ready"}
    end),
    ?assertEqual({error, "it is not ready"}, Answer),
    receive
        {cluster, Cluster} -> ?assertNot(is_process_alive(Cluster))
    end.

what_goes_wrong_on_a_node_is_a_sentence(_) ->
    {ok, Cluster} = atoll_bench_nodes:start(#{nodes => 1}, fun(Cluster) -> {ok, Cluster} end),
    try
        [Node] = atoll_cluster:nodes(Cluster),
        Name = atom_to_list(Node),
        Call = fun(Function, Args, Ms) ->
            case atoll_bench_nodes:call(Cluster, Node, Function, Args, Ms) of
                {error, Sentence} -> lists:flatten(unicode:characters_to_list(Sentence));
                Answer -> Answer
            end
        end,
        ?assertEqual({ok, Node}, Call({erlang, node}, [], 5000)),
        ?assertEqual("erlang:hd failed on " ++ Name ++ ": badarg", Call({erlang, hd}, [[]], 5000)),
        ?assertEqual("erlang:throw ended on " ++ Name ++ " with throw no", Call({erlang, throw}, [no], 5000)),
        ?assertMatch({match, _}, re:run(Call({timer, sleep}, [60000], 100), Name)),
        %% A node of a mesh that is not there.
        ?assertMatch({missing, [nobody@nowhere]}, atoll_cluster:call(Cluster, Node, atoll_bench_node, mesh, [[Node, nobody@nowhere], 100])),
        ?assertEqual({ok, meshed}, atoll_bench_nodes:meshed(Cluster)),
        {ok, {done, Used}} = atoll_bench_nodes:spending(Cluster, fun() -> {ok, done} end),
        ?assert(Used >= 0),
        Killing = fun() -> ok = atoll_cluster:kill(Cluster, Node), {ok, done} end,
        %% A sum without the node would be less than was used, and nobody would see it.
        {error, Lost} = atoll_bench_nodes:spending(Cluster, Killing),
        ?assertMatch({match, _}, re:run(unicode:characters_to_list(Lost), Name)),
        ?assertMatch([_ | _], Call({erlang, node}, [], 5000))
    after
        ok = atoll_bench_nodes:stop(Cluster)
    end.
