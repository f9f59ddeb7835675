%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `overlay': what it costs a node to be in a cluster, against the
%% number of nodes.
%%
%% <dl>
%% <dt>`bare'</dt><dd>as many nodes, and no cluster: what a node takes anyhow.</dd>
%% <dt>`stock'</dt><dd>the mesh that stock distribution makes by itself, without
%%   Atoll.</dd>
%% <dt>any other</dt><dd>that strategy of Atoll's, of those that need no names of nodes in
%%   their options; everything at its defaults, with
%%   `-connect_all false'.</dd>
%% </dl>
%% A round of a cluster that has settled: a window in which nothing is asked of it,
%% broadcasts from one of its nodes, and one more node that joins by another and is
%% killed when all know it. What concerns each node is measured on all of them; the
%% result is their median, and the file keeps each.
%%
%% == What the metrics are ==
%% <ul>
%% <li>Standing connections are those with the neighbours (in stock distribution: all);
%%   open ones are all that there are at the end of the window.</li>
%% <li>Processor time is that of all of a VM's threads in a second of the window.</li>
%% <li>Bytes and messages are counted by the sockets of distribution, sent and received,
%%   with ticks and the four bytes before each message, without TCP's own headers. A
%%   connection that ends within the window takes its counts with it.</li>
%% <li>The memory of a process is its PSS: its own pages, and its share of those that it
%%   shares with other nodes.</li>
%% <li>A broadcast's time is until the last node has it; in stock distribution it is a
%%   message to each. A joined node is known to all when each node has been told of it,
%%   and it of each; a killed one, when each has been told so.</li>
%% </ul>
%% With the workload `all_to_all' a process on each node asks one on every other node by a plain
%% `!', and gets an answer ({@link atoll_bench_overlay_words}), after the same window:
%% <dl>
%% <dt>`stock'</dt><dd>in the mesh of stock distribution.</dd>
%% <dt>`carrier'</dt><dd>in a mesh of the carrier's direct connections.</dd>
%% <dt>`groups'</dt><dd>on nodes that are linked in groups of eight alone (of four, where there are
%%   fewer than 16 nodes), with two gateways each: the others are reached over circuits.</dd>
%% </dl>
%% Five hundred questions a second in all, however many nodes there are: latency is that of
%% a machine that is not full. Standing connections are then those of a node's own, and open ones
%% are all nodes that it is connected with, over circuits too.
%%
%% Times between nodes are those of the machine's clock. The clusters of all variants run
%% side by side: what is idle takes little, but latencies are those of a machine that
%% has that many nodes. Not measured: what a payload costs that is large, or a load.
-module(atoll_bench_overlay).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-define(BOOT_MS, 60000).
-define(SETTLE_MS, 180000).
-define(HEAR_MS, 60000).
%% Long enough for one broadcast to be over before the next begins.
-define(PAUSE_MS, 50).
-define(WARM_MS, 1000).
%% Questions of all nodes in a second, and the shortest time that they take.
-define(WORDS_PER_S, 500).
-define(WORDS_MS, 1000).
%% An answer that takes longer does not come any more.
-define(ANSWER_MS, 10000).
%% How often all ask all until all connections are made.
-define(TRIES, 5).

-spec summary() -> string().
summary() -> "what it costs a node to be in a cluster of so many".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    [
        #{name => nodes, type => integer, values => [10, 20, 40, 60], min => 2, max => 200, help => "nodes of the cluster"},
        %% Stock distribution ticks every 15 seconds: a shorter window sees it on some nodes only.
        #{name => seconds, type => integer, values => [15], max => 3600, unit => "s",
          help => "how long the window is in which nothing is asked of the nodes"},
        #{name => broadcasts, type => integer, values => [50], max => 10000, help => "broadcasts of a round"},
        #{name => workload, type => atom, values => [standing], one_of => [standing, all_to_all],
          help => "what a cluster takes by itself, or that all talk to all by !"},
        #{name => overlay, type => atom, values => [bare, stock, mesh, hyparview, carrier, groups],
          one_of => [bare, stock, mesh, hyparview, scamp, carrier, groups],
          help => "none, the mesh of stock distribution, or a strategy; for all_to_all stock, or carrier and groups"}
    ].

-spec variant() -> atom().
variant() -> overlay.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        value(neighbours, "Standing connections", "per node"),
        value(connections, "Open connections", "per node"),
        value(cpu_us_per_s, "Idle processor time of a node", "\x{b5}s/s"),
        value(bytes_per_s, "Idle traffic of a node", "bytes/s"),
        value(messages_per_s, "Idle messages of a node", "1/s"),
        value(memory_kib, "Memory allocated by a node", "KiB"),
        value(pss_kib, "Memory of a node's process", "KiB"),
        value(join_ms, "Joined, first neighbour", "ms"),
        value(joined_ms, "Joined, known to all", "ms"),
        value(killed_ms, "Killed, known to all", "ms"),
        #{name => broadcast, label => "Broadcast, all have it", unit => "ns", better => less, kind => latency},
        value(cpu_us_per_word, "Processor time of a question and its answer", "\x{b5}s"),
        value(gateway_circuits, "Circuits over a gateway", ""),
        value(gateway_circuits_max, "Circuits over the fullest gateway", ""),
        #{name => word, label => "Question and answer", unit => "ns", better => less, kind => latency}
    ].

value(Name, Label, Unit) ->
    #{name => Name, label => Label, unit => Unit, better => less, kind => value}.

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    [Point || #{workload := Workload, overlay := System} = Point <- Points, lists:member(System, systems(Workload))].

systems(standing) -> [bare, stock, mesh, hyparview, scamp];
systems(all_to_all) -> [stock, carrier, groups].

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(_Point) -> ok.

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{nodes := Count, overlay := System, workload := Workload} = Point) ->
    atoll_bench_nodes:start(options(System, Count), fun(Cluster) ->
        answer(fun() ->
            State0 = Point#{cluster => Cluster, round => 0},
            [ok = Said || Workload =:= standing, Said <- all(Cluster, listen, [System], ?BOOT_MS)],
            [ok = Said || Workload =:= all_to_all, Said <- words(Cluster, answer, [], ?BOOT_MS)],
            State = gather(State0),
            ok = settle(State),
            [ok = introduced(State, ?TRIES) || Workload =:= all_to_all],
            State
        end)
    end).

%% One scheduler each and no busy waiting, as all nodes of a cluster.
-spec flags(atoll_bench:point()) -> [string()].
flags(#{overlay := System}) when System =:= bare; System =:= stock -> [];
flags(#{overlay := carrier}) -> carried("[{kind,direct}]");
%% Without a way there is no connection, rather than one that no group asks for.
flags(#{overlay := groups}) -> carried("[{kind,direct},{unrouted,refuse}]") ++ ["-atoll", "directory", "on"];
flags(#{overlay := Strategy}) -> ["-atoll", "overlay", atom_to_list(Strategy)].

carried(Options) -> ["-proto_dist", "atoll", "-kernel", "atoll_dist", Options].

options(bare, Count) -> #{nodes => Count, connect_all => false};
options(stock, Count) -> #{nodes => Count, connect_all => true};
options(carrier, Count) -> #{nodes => Count, connect_all => true, args => flags(#{overlay => carrier})};
options(Strategy, Count) ->
    #{nodes => Count, connect_all => false, apps => [atoll], args => flags(#{overlay => Strategy})}.

%% All at once, by the first.
gather(#{overlay := bare} = State) ->
    State;
gather(#{overlay := System, cluster := Cluster} = State) when System =:= stock; System =:= carrier ->
    meshed = sure(atoll_bench_nodes:meshed(Cluster)),
    State;
gather(#{overlay := groups, cluster := Cluster} = State) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Size = case length(Nodes) of Few when Few < 16 -> 4; _ -> 8 end,
    {ok, Topology} = atoll_topology:star(Nodes, #{group_size => Size, gateways => 2}),
    Groups = atoll_topology:groups(Topology),
    lists:foreach(fun({Name, [First | _] = Members}) -> ok = made(Cluster, First, Name, Members) end, Groups),
    State#{groups => Groups};
gather(#{overlay := Strategy, cluster := Cluster} = State) ->
    [First | _] = atoll_cluster:nodes(Cluster),
    %% Whoever finds no neighbour in time goes on trying, and is waited for later.
    _ = atoll_cluster:multicall(Cluster, atoll_bench_overlay_load, join, [Strategy, First], ?BOOT_MS),
    State.

made(Cluster, Node, Name, Members) ->
    case sure(atoll_bench_nodes:call(Cluster, Node, {s_group, new_s_group}, [Name, Members], ?BOOT_MS)) of
        {ok, Name, Members} -> ok;
        {ok, Name, Fewer} -> throw({failed, io_lib:format("the group ~ts is without ~0tp", [Name, Members -- Fewer])});
        {error, Error} -> throw({failed, s_group:format_error(Error)})
    end.

%% Connections are made when they are needed, and what is sent to a node with which none can be
%% made at that moment is lost, as with any `!'.
introduced(#{cluster := Cluster} = State, Tries) ->
    Said = asked(1, State),
    case {lists:append([Silent || #{silent := Silent} <- Said]), Tries} of
        {[], _} -> ok;
        {[_ | _], More} when More > 1 -> introduced(State, More - 1);
        {[Node | _] = Silent, _} -> throw({failed, io_lib:format("~ts does not answer all (~b of ~b questions)", [
            Node, length(Silent), length(atoll_cluster:nodes(Cluster)) * (length(atoll_cluster:nodes(Cluster)) - 1)
        ])})
    end.

%% Every node asks all others, each so often.
asked(Times, #{cluster := Cluster}) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Count = length(Nodes),
    Ms = max(?WORDS_MS, Times * Count * (Count - 1) * 1000 div ?WORDS_PER_S),
    words(Cluster, ask, fun(Node) -> [Nodes -- [Node], Times, Ms, ?ANSWER_MS] end, Ms + ?HEAR_MS).

%% No event tells of a state that is one of all nodes together, so it is looked at again.
settle(State) ->
    settle(State, erlang:monotonic_time(millisecond) + ?SETTLE_MS).

settle(#{cluster := Cluster, overlay := System} = State, Deadline) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Views = maps:from_list(lists:zip(Nodes, all(Cluster, view, [System], ?HEAR_MS))),
    case {atoll_bench_overlay_settled:check(shape(State), Nodes, Views), erlang:monotonic_time(millisecond) < Deadline} of
        {ok, _} ->
            ok;
        {{not_yet, _}, true} ->
            receive
            after 200 -> settle(State, Deadline)
            end;
        {{not_yet, Why}, false} ->
            throw({failed, ["the cluster did not settle: ", Why]})
    end.

shape(#{overlay := bare}) -> alone;
shape(#{overlay := System}) when System =:= stock; System =:= carrier; System =:= mesh -> mesh;
shape(#{groups := Groups}) -> {groups, [Nodes || {_, Nodes} <- Groups]};
shape(_Partial) -> some.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{round := Round} = State) ->
    Measured = answer(fun() ->
        ok = settle(State),
        Idle = idle(State),
        case State of
            #{overlay := bare} -> Idle;
            #{workload := all_to_all} -> maps:merge(Idle, talk(State));
            _ -> maps:merge(Idle, maps:merge(broadcasts(State), guest(State)))
        end
    end),
    case Measured of
        {ok, Measures} -> {ok, Measures, State#{round := Round + 1}};
        {error, _} = Error -> Error
    end.

%% The first round is to warm up, which takes no long window. The processor time is read
%% from outside and the nodes are asked before and after, so that they do nothing for it.
idle(#{cluster := Cluster, overlay := System, seconds := Seconds, round := Round}) ->
    Ms = case Round of 0 -> ?WARM_MS; _ -> Seconds * 1000 end,
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    Pids = [Pid || #{os_pid := Pid} <- Infos],
    Traffic0 = all(Cluster, traffic, [], ?HEAR_MS),
    Cpu0 = [processor(Pid) || Pid <- Pids],
    receive
    after Ms -> ok
    end,
    Cpu = [processor(Pid) || Pid <- Pids],
    Traffic = all(Cluster, traffic, [], ?HEAR_MS),
    Views = all(Cluster, view, [System], ?HEAR_MS),
    {Bytes, Messages} = lists:unzip(lists:zipwith(fun atoll_bench_overlay_load:rates/2, Traffic0, Traffic)),
    #{
        neighbours => [length(Neighbours) || {_, Neighbours, _} <- Views],
        connections => [length(Connected) || {_, _, Connected} <- Views],
        cpu_us_per_s => lists:zipwith(fun({At0, Ns0}, {At, Ns}) -> (Ns - Ns0) * 1.0e6 / (At - At0) end, Cpu0, Cpu),
        bytes_per_s => Bytes,
        messages_per_s => Messages,
        memory_kib => [Allocated / 1024 || Allocated <- all(Cluster, allocated, [], ?HEAR_MS)],
        pss_kib => [known(atoll_bench_machine:pss_kib(Pid)) || Pid <- Pids]
    }.

processor(Pid) ->
    {atoll_bench_overlay_load:now_ns(), known(atoll_bench_machine:cpu_ns(Pid))}.

known({ok, Value}) -> Value;
known(error) -> throw({failed, "a node has ended"}).

%% The fewer nodes there are the more often each asks, that there is something to measure.
talk(#{cluster := Cluster, overlay := System} = State) ->
    Count = length(atoll_cluster:nodes(Cluster)),
    Times = max(1, ?WORDS_PER_S * ?WORDS_MS div 1000 div (Count * (Count - 1))),
    {Said, Cpu} = sure(atoll_bench_nodes:spending(Cluster, fun() -> {ok, asked(Times, State)} end)),
    [throw({failed, io_lib:format("~ts did not answer", [Node])}) || #{silent := [Node | _]} <- Said],
    Words = #{
        word => atoll_histogram:merge([Latency || #{latency := Latency} <- Said]),
        cpu_us_per_word => Cpu / lists:sum([Asked || #{asked := Asked} <- Said])
    },
    case {System, lists:zip(atoll_cluster:nodes(Cluster), words(Cluster, relayed, [], ?HEAR_MS))} of
        {groups, Relayed} ->
            #{groups := Groups} = State,
            Gateways = atoll_topology:gateways(atoll_topology:of_groups(Groups)),
            Circuits = [N || {Node, N} <- Relayed, lists:member(Node, Gateways)],
            %% Few nodes are one group, without gateways.
            case Circuits of
                [] -> Words;
                _ -> Words#{gateway_circuits => Circuits, gateway_circuits_max => lists:max(Circuits)}
            end;
        {_, _} ->
            Words
    end.

%% The latency of a broadcast is that of the last node.
broadcasts(#{cluster := Cluster, overlay := System, broadcasts := Count, round := Round}) ->
    [First | _] = atoll_cluster:nodes(Cluster),
    Sent = on(Cluster, First, broadcast, [System, Round, Count, ?PAUSE_MS], Count * ?PAUSE_MS * 2 + ?HEAR_MS),
    Came = when_heard(Cluster, [{got, Round, Number} || Number <- lists:seq(1, Count)]),
    Hist = atoll_histogram:new(),
    lists:foreach(
        fun({At, Last}) -> ok = atoll_histogram:record(max(0, Last - At), Hist) end,
        lists:zip(Sent, latest(Came))
    ),
    #{broadcast => atoll_histogram:export(Hist)}.

%% Of lists with a time for each thing, when the last had it.
latest([First | Others]) ->
    lists:foldl(fun(Times, Latest) -> lists:zipwith(fun erlang:max/2, Times, Latest) end, First, Others).

%% A new node of its own name each time: nobody has heard of it before.
guest(#{overlay := System} = State) ->
    case atoll_bench_nodes:start(options(System, 1), fun(Guests) -> {ok, Guests} end) of
        {ok, Guests} ->
            try
                visit(Guests, State)
            after
                ok = atoll_bench_nodes:stop(Guests),
                ok = flush(Guests)
            end;
        {error, Why} ->
            throw({failed, Why})
    end.

%% What it told its owner of its end.
flush(Cluster) ->
    receive
        {atoll_cluster, Cluster, _} -> flush(Cluster)
    after 0 -> ok
    end.

visit(Guests, #{cluster := Cluster, overlay := System}) ->
    [Guest] = atoll_cluster:nodes(Guests),
    Nodes = atoll_cluster:nodes(Cluster),
    [ok] = all(Guests, listen, [System], ?BOOT_MS),
    {Begin, Neighbour} = sure(on(Guests, Guest, join, [System, lists:last(Nodes)], ?HEAR_MS)),
    [Theirs] = when_heard(Guests, [{up, Node} || Node <- Nodes]),
    Ours = when_heard(Cluster, [{up, Guest}]),
    Known = lists:max(Theirs ++ lists:append(Ours)),
    Kill = atoll_bench_overlay_load:now_ns(),
    ok = atoll_cluster:kill(Guests, Guest),
    Gone = lists:max(lists:append(when_heard(Cluster, [{down, Guest}]))),
    #{join_ms => (Neighbour - Begin) / 1.0e6, joined_ms => (Known - Begin) / 1.0e6, killed_ms => (Gone - Kill) / 1.0e6}.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).

on(Cluster, Node, Function, Args, Ms) ->
    sure(atoll_bench_nodes:call(Cluster, Node, {atoll_bench_overlay_load, Function}, Args, Ms)).

%% What each node says, in the order of the nodes.
all(Cluster, Function, Args, Ms) ->
    Said = atoll_cluster:multicall(Cluster, atoll_bench_overlay_load, Function, Args, Ms),
    case [Reason || {_, {error, Reason}} <- Said] of
        [] -> [Result || {_, {ok, Result}} <- Said];
        [Reason | _] -> throw({failed, atoll_cluster:format_error(Reason)})
    end.

words(Cluster, Function, Args, Ms) when is_list(Args) ->
    words(Cluster, Function, fun(_Node) -> Args end, Ms);
words(Cluster, Function, ArgsOf, Ms) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Self = self(),
    Tag = make_ref(),
    _ = [
        spawn_link(fun() ->
            Self ! {Tag, Node, atoll_bench_nodes:call(Cluster, Node, {atoll_bench_overlay_words, Function}, ArgsOf(Node), Ms)}
        end)
     || Node <- Nodes
    ],
    [sure(receive {Tag, Node, Answer} -> Answer end) || Node <- Nodes].

when_heard(Cluster, Keys) ->
    Said = lists:zip(atoll_cluster:nodes(Cluster), all(Cluster, heard, [Keys, ?HEAR_MS], ?HEAR_MS + 5000)),
    case [{Node, Missing} || {Node, {missing, Missing}} <- Said] of
        [] -> [Times || {_, {ok, Times}} <- Said];
        [{Node, Missing} | _] -> throw({failed, io_lib:format("~ts did not hear of ~0tp", [Node, Missing])})
    end.
