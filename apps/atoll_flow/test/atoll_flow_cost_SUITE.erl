%% SPDX-License-Identifier: Apache-2.0
%% What it costs nodes on Atoll's carrier that their traffic is looked at, in the deep tier. Both ends of a load share one processor, and
%% who looks has another one: so what they get done in a second of it is less by what they have to do for who looks, and by nothing else. What others
%% take of that processor does not count. Short rounds come in turns, without, with, with, without; of each four the share of the two is a sample.
%% What was measured is in the log of the case.
%%
%% A round differs from the next one by some hundredths, whatever is done. So it is looked two hundred times a second in place of five to see what
%% counting costs: a look costs the same however often there is one.
-module(atoll_flow_cost_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    a_look_takes_little_of_the_processor/1,
    counting_costs_next_to_nothing/1,
    what_tracing_costs_is_measured/1,
    packets_of_lanes_and_circuits_are_counted/1
]).

-import(atoll_watch_peers, [await/2]).

-define(ROUND_MS, 600).
-define(WARM_MS, 200).
-define(LATE_MS, 60000).
-define(MOST, 0.005).
-define(OFTEN_MS, 4).
-define(USUAL, 5).
-define(SPENT_MS, 10000).
-define(STRETCHES, 6).
%% How wide the interval is, at most, when the cost is known well enough.
-define(KNOWN, 0.004).

suite() -> [{timetrap, {minutes, 20}}, {userdata, quiet}].

all() ->
    [Case || atoll_tier:tier() =:= deep, Case <- [a_look_takes_little_of_the_processor, counting_costs_next_to_nothing, what_tracing_costs_is_measured, packets_of_lanes_and_circuits_are_counted]].

%% The processor time of nodes that do nothing else, with many looks and without. Other work on the machine makes it more and not less.
a_look_takes_little_of_the_processor(_Config) ->
    [begin
        Cluster = started(Kind),
        try
            [A, B] = Nodes = atoll_cluster:nodes(Cluster),
            ok = call(Cluster, B, echo, []),
            ok = call(Cluster, A, ping, [B, 10]),
            OsPids = os_pids(Cluster),
            {Idle, +0.0} = spent(OsPids, fun() -> 0 end),
            {Busy, Looks} = observing(Nodes, #{period => ?OFTEN_MS}, fun() -> spent(OsPids, fun() -> answers(Nodes) end) end),
            Each = (Busy - Idle) / Looks,
            ct:pal("~ts: ~.1f looks a second at a node, ~b microseconds of the processor each: five a second take ~.3f % of it", [Name, Looks / 2, round(Each * 1.0e6), 100 * ?USUAL * Each]),
            ?assert(?USUAL * Each =< ?MOST, {Name, Each})
        after
            atoll_cluster_owned:stop(Cluster)
        end
    end || {Name, Kind} <- kinds()].

kinds() -> [{"a direct connection", "direct"}, {"four lanes", "{lanes,4}"}].

%% Seconds of processor time in a second, of all of them, and how much something has grown by in a second.
spent(OsPids, Read) ->
    {RanBefore, Before, Begun} = {ran(OsPids), Read(), erlang:monotonic_time()},
    receive after ?SPENT_MS -> ok end,
    Seconds = erlang:convert_time_unit(erlang:monotonic_time() - Begun, native, microsecond) / 1.0e6,
    {(ran(OsPids) - RanBefore) / Seconds, (Read() - Before) / Seconds}.

%% Seconds of a processor that they have had so far.
ran(OsPids) ->
    lists:sum([
        list_to_integer(hd(string:lexemes(binary_to_list(Text), " ")))
     || OsPid <- OsPids, File <- filelib:wildcard(lists:concat(["/proc/", OsPid, "/task/*/schedstat"])), {ok, Text} <- [file:read_file(File)]
    ]) / 1.0e9.

os_pids(Cluster) -> [atoll_cluster:call(Cluster, Node, os, getpid, [], ?LATE_MS) || Node <- atoll_cluster:nodes(Cluster)].

%% Some machines want longer than others until it is known well enough, whatever it is. It is judged once, then.
counting_costs_next_to_nothing(_Config) ->
    Enough = fun({Low, High}, Rate) -> (High - Low) * ?USUAL / Rate =< ?KNOWN end,
    apart(fun() ->
        Losses = [{Name, loss(["counters, a flood over ", Name], Kind, #{period => ?OFTEN_MS}, flood, ?STRETCHES, Enough)} || {Name, Kind} <- kinds()],
        [begin
            Usual = [Part * ?USUAL / Rate || Part <- [Low, Loss, High]],
            ct:pal("~ts, five looks a second: ~.3f % less, 95 % of the interval from ~.3f to ~.3f %", [Name | [100 * Part || Part <- [lists:nth(2, Usual), hd(Usual), lists:last(Usual)]]]),
            ?assert(Rate > 10 * ?USUAL),
            ?assert(lists:last(Usual) =< ?MOST, {Name, Usual})
        end || {Name, {Loss, {Low, High}, Rate}} <- Losses]
    end).

what_tracing_costs_is_measured(_Config) ->
    apart(fun() ->
        %% Each message is traced of the first; a flood is more than the limit.
        [begin
            {Loss, _, _} = loss(["tracing, ", Name], "direct", #{trace => true}, Load, 1, fun(_, _) -> true end),
            ?assert(Loss < 1, Name)
        end || {Name, Load} <- [{"pings", pings}, {"a flood", flood}]]
    end).

%% Which part of what gets done is lost, between which bounds that is in 95 of 100 cases, and how many looks at a node there were in a second:
%% of one stretch of time, and of another one with those before until it is enough, or there are none left.
loss(Name, Kind, Options, Load, Stretches, Enough) ->
    Cluster = started(Kind),
    try
        [A, B] = Nodes = atoll_cluster:nodes(Cluster),
        ok = call(Cluster, B, echo, []),
        OsPids = os_pids(Cluster),
        Round = fun(Ms) ->
            Before = ran(OsPids),
            Done = call(Cluster, A, Load, [B, Ms]),
            {Done, Done / (ran(OsPids) - Before)}
        end,
        loss(Name, Stretches, Enough, fun() ->
            blocks(erlang:monotonic_time(millisecond) + 1000 * atoll_tier:size(flow_cost_s), Nodes, Options, Round)
        end, [])
    after
        atoll_cluster_owned:stop(Cluster)
    end.

loss(Name, Stretches, Enough, Stretch, Before) ->
    Blocks = Stretch() ++ Before,
    {Rates, Shares, Looks} = lists:unzip3(Blocks),
    {Low, High} = atoll_bench_stats:interval(Shares, #{seed => atoll_tier:seed(?MODULE)}),
    Loss = 1 - atoll_bench_stats:median(Shares),
    Often = atoll_bench_stats:median(Looks),
    ct:pal("~ts: ~b messages a second without, ~.2f % less for a second of the processor with it, 95 % of the interval from ~.2f to ~.2f %; ~.1f looks a second, ~b blocks of four rounds of ~b ms",
           [Name, round(atoll_bench_stats:median(Rates) * 1000), 100 * Loss, 100 * (1 - High), 100 * (1 - Low), Often, length(Shares), ?ROUND_MS]),
    case Stretches > 1 andalso not Enough({1 - High, 1 - Low}, Often) of
        true -> loss(Name, Stretches - 1, Enough, Stretch, Blocks);
        false -> {Loss, {1 - High, 1 - Low}, Often}
    end.

started(Kind) ->
    atoll_cluster_owned:start(#{
        nodes => 2, hosts => [#{address => {127, 0, 0, 1}, wrap => ["taskset", "-c", "0"]}],
        args => ["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{stock,accept},{kind," ++ Kind ++ "}]", "+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]
    }).

blocks(Deadline, Nodes, Options, Round) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> [block(Nodes, Options, Round) | blocks(Deadline, Nodes, Options, Round)];
        false -> []
    end.

%% A load that has just begun is slower, and so is one beside code that is loaded.
block(Nodes, Options, Round) ->
    _ = Round(?WARM_MS),
    {Done, First} = Round(?ROUND_MS),
    {With, Looks} = observing(Nodes, Options, fun() ->
        _ = Round(?WARM_MS),
        {Before, Begun} = {answers(Nodes), erlang:monotonic_time(millisecond)},
        {{_, With1}, {_, With2}} = {Round(?ROUND_MS), Round(?ROUND_MS)},
        {With1 + With2, 1000 * (answers(Nodes) - Before) / length(Nodes) / (erlang:monotonic_time(millisecond) - Begun)}
    end),
    _ = Round(?WARM_MS),
    {More, Last} = Round(?ROUND_MS),
    {(Done + More) / (2 * ?ROUND_MS), With / (First + Last), Looks}.

%% What has come from the nodes: nothing else but answers.
answers(Nodes) ->
    lists:sum([Count || {Node, Port} <- erlang:system_info(dist_ctrl), lists:member(Node, Nodes), {ok, [{recv_cnt, Count}]} <- [inet:getstat(Port, [recv_cnt])]]).

observing(Nodes, Options, Fun) ->
    atoll_cli_line:as_node(fun() ->
        {ok, Flow} = atoll_flow:start_link({joined, "cost", #{nodes => Nodes}}, Options),
        try
            ok = atoll_flow:settle(Flow, ?LATE_MS),
            Fun()
        after
            ok = gen_server:stop(Flow)
        end
    end).

call(Cluster, Node, F, Args) -> atoll_cluster:call(Cluster, Node, atoll_flow_script, F, Args, ?LATE_MS).

%% This VM has the second processor meanwhile.
apart(Fun) ->
    case {os:find_executable("taskset"), erlang:system_info(logical_processors_available)} of
        {[_ | _], N} when is_integer(N), N >= 2 ->
            Pinned = fun(Cpus) -> os:cmd(lists:concat(["taskset -apc ", Cpus, " ", os:getpid()])) end,
            _ = Pinned(1),
            try Fun() after Pinned(lists:concat(["0-", N - 1])) end;
        _ ->
            {skip, "there is one processor, or no taskset"}
    end.

%% A gateway with two groups, which relays for both: to it there are lanes, and over it a circuit.
packets_of_lanes_and_circuits_are_counted(_Config) ->
    Text = fun(Term) -> lists:flatten(io_lib:format("~0p", [Term])) end,
    Cluster = atoll_cluster_owned:start(#{
        nodes => 3, connect_all => false, apps => [atoll],
        args => fun([Gateway, A, B]) ->
            ["-proto_dist", "atoll", "-kernel", "atoll_dist", Text([{kind, {lanes, 4}}, {unrouted, refuse}]),
             "-atoll", "directory", "on", "-atoll", "s_groups", Text([{one, [Gateway, A]}, {two, [Gateway, B]}]), "-atoll", "relays", Text([one, two])]
        end
    }),
    try
        [Gateway, A, B] = atoll_cluster:nodes(Cluster),
        Call = fun(Node, M, F, Args) -> atoll_cluster:call(Cluster, Node, M, F, Args, ?LATE_MS) end,
        ok = await(fun() -> element(1, Call(A, atoll, route, [B])) end, fun(Is) -> Is =:= ok end),
        _ = [ok = call(Cluster, Node, echo, []) || Node <- [Gateway, B]],
        true = Call(A, net_kernel, connect_node, [B]),
        Kinds = maps:from_list([{Node, Kind} || #{node := Node, kind := Kind} <- Call(A, atoll, links, [])]),
        ?assertMatch(#{Gateway := {lanes, 4}, B := relay}, Kinds),
        Sent = fun(Node) -> [{Packets, Bytes}] = [{P, Of} || {Its, P, Of} <- Call(A, atoll_flow_facts, connections, []), Its =:= Node], {Packets, Bytes} end,
        [begin
            {PacketsBefore, BytesBefore} = Sent(Node),
            ok = call(Cluster, A, ping, [Node, 5000]),
            {Packets, Bytes} = Sent(Node),
            ct:pal("~w: ~b packets, ~b bytes for 5,000 messages", [maps:get(Node, Kinds), Packets - PacketsBefore, Bytes - BytesBefore]),
            ?assert(Packets - PacketsBefore >= 5000 andalso Packets - PacketsBefore < 5500),
            ?assert(Bytes - BytesBefore > 5000 * 20)
        end || Node <- [Gateway, B]]
    after
        atoll_cluster_owned:stop(Cluster)
    end.
