%% SPDX-License-Identifier: Apache-2.0
%% What it costs nodes on Atoll's carrier that their traffic is looked at, in the deep tier. Both ends of a load share one processor, and
%% who looks has another one: so what the load gets done there is less by what the nodes have to do for it, and by nothing else.
%% Short rounds come in turns, without, with, with, without; of each four the share of the two is a sample. What was measured is in
%% the log of the case.
-module(atoll_flow_cost_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    counting_costs_next_to_nothing/1,
    what_tracing_costs_is_measured/1,
    packets_of_lanes_and_circuits_are_counted/1
]).

-import(atoll_watch_peers, [await/2]).

-define(ROUND_MS, 600).
-define(WARM_MS, 200).
-define(LATE_MS, 60000).
-define(MOST, 0.005).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [Case || atoll_tier:tier() =:= deep, Case <- [counting_costs_next_to_nothing, what_tracing_costs_is_measured, packets_of_lanes_and_circuits_are_counted]].

counting_costs_next_to_nothing(_Config) ->
    apart(fun() ->
        Losses = [{Name, loss(["counters, a flood over ", Name], Kind, #{}, flood, atoll_tier:size(flow_cost_s))}
                  || {Name, Kind} <- [{"a direct connection", "direct"}, {"four lanes", "{lanes,4}"}]],
        [?assert(Loss =< ?MOST andalso High - Low =< 4 * ?MOST, {Name, Is}) || {Name, {Loss, {Low, High}} = Is} <- Losses]
    end).

what_tracing_costs_is_measured(_Config) ->
    apart(fun() ->
        Seconds = atoll_tier:size(flow_cost_s) div 2,
        %% Each message is traced of the first; a flood is more than the limit.
        [?assert(Loss < 1, Name) || {Name, Load} <- [{"pings", pings}, {"a flood", flood}], {Loss, _} <- [loss(["tracing, ", Name], "direct", #{trace => true}, Load, Seconds)]]
    end).

%% Which part of what gets done is lost, and between which bounds that is in 95 of 100 cases.
loss(Name, Kind, Options, Load, Seconds) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 2, hosts => [#{address => {127, 0, 0, 1}, wrap => ["taskset", "-c", "0"]}],
        args => ["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{stock,accept},{kind," ++ Kind ++ "}]", "+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]
    }),
    try
        [A, B] = Nodes = atoll_cluster:nodes(Cluster),
        ok = call(Cluster, B, echo, []),
        Round = fun(Ms) -> call(Cluster, A, Load, [B, Ms]) end,
        Deadline = erlang:monotonic_time(millisecond) + Seconds * 1000,
        {Rates, Shares} = lists:unzip(blocks(Deadline, Nodes, Options, Round)),
        Seed = atoll_tier:seed(?MODULE),
        {Low, High} = atoll_bench_stats:interval(Shares, #{seed => Seed}),
        Loss = 1 - atoll_bench_stats:median(Shares),
        ct:pal("~ts: ~b messages a second without, ~.2f % less with it, 95 % of the interval from ~.2f to ~.2f %; ~b blocks of four rounds of ~b ms",
               [Name, round(atoll_bench_stats:median(Rates) * 1000), 100 * Loss, 100 * (1 - High), 100 * (1 - Low), length(Shares), ?ROUND_MS]),
        {Loss, {1 - High, 1 - Low}}
    after
        atoll_cluster_owned:stop(Cluster)
    end.

blocks(Deadline, Nodes, Options, Round) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> [block(Nodes, Options, Round) | blocks(Deadline, Nodes, Options, Round)];
        false -> []
    end.

%% A load that has just begun is slower, and so is one beside code that is loaded.
block(Nodes, Options, Round) ->
    _ = Round(?WARM_MS),
    First = Round(?ROUND_MS),
    With = observing(Nodes, Options, fun() -> _ = Round(?WARM_MS), Round(?ROUND_MS) + Round(?ROUND_MS) end),
    _ = Round(?WARM_MS),
    Without = First + Round(?ROUND_MS),
    {Without / (2 * ?ROUND_MS), With / Without}.

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
