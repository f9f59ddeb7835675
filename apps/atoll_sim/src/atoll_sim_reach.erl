%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `reach': every process reaches every other one by a plain message, on
%% nodes that are linked only with the members of their groups. The others are reached over
%% circuits, through gateways ({@link atoll_sim_reach_node}).
%%
%% Each node talks to all others, or to some that are drawn: with many thousands of nodes a
%% circuit for each pair has no room. In a pair one asks and the other answers; first all pairs once, in
%% the course of a while, which makes the circuits, and then some more times. Then nothing is said for a
%% while, and what the circuits send by themselves is counted.
%%
%% It is compared with a mesh in the same network: there a question and its answer take one
%% message each, with the latency of the two nodes. The directory is as it is when all know all; what
%% it takes to get there is the experiment {@link atoll_sim_directory}. Nobody fails here.
-module(atoll_sim_reach).

-export([run/1]).

-export_type([options/0, result/0]).

-type options() :: #{
    nodes := pos_integer(),
    topology => atoll_sim_places:shape(),
    group_size => pos_integer(),
    gateways => pos_integer(),
    fanout => pos_integer(),
    %% With how many others each node begins to talk; all, if there are no more. Unless told,
    %% all where they are few.
    peers => pos_integer(),
    %% How often each pair talks when its circuit is there.
    words => pos_integer(),
    %% How many circuits a node relays at most; with very many its budget of bytes grows too.
    relay_circuits => pos_integer(),
    latency => atoll_sim_net:latency(),
    seed => integer(),
    progress => fun((Now :: integer()) -> _)
}.

-type result() :: #{
    topology := atom(),
    nodes := pos_integer(),
    groups := pos_integer(),
    gateways := non_neg_integer(),
    seed := integer(),
    %% Pairs that talk, how many of them over a circuit, and whether that is every pair there is.
    pairs := pos_integer(),
    relayed := non_neg_integer(),
    all_pairs := boolean(),
    %% The share of the pairs in which every question was answered.
    reached := float(),
    %% Openings that a relay refused, and paths that were lost.
    refused := non_neg_integer(),
    lost := non_neg_integer(),
    %% Of a node; of one that is in one group only; in a mesh.
    connections_mean := float(),
    connections_plain := float() | none,
    connections_max := non_neg_integer(),
    connections_mesh := non_neg_integer(),
    %% Over a circuit.
    hops_mean := float() | none,
    hops_max := non_neg_integer() | none,
    %% Question and answer of pairs over circuits, the first one with the making of the circuit;
    %% and of the same pairs in a mesh.
    round_trip_ms_p50 := number() | none,
    round_trip_ms_p99 := number() | none,
    first_ms_p50 := number() | none,
    first_ms_p99 := number() | none,
    mesh_ms_p50 := number() | none,
    mesh_ms_p99 := number() | none,
    %% Circuits that a gateway relays.
    gateway_circuits_mean := float() | none,
    gateway_circuits_max := non_neg_integer() | none,
    %% The bytes that the fullest has promised.
    gateway_reserved_max := non_neg_integer() | none,
    %% Of a node: its directory, the ends of its circuits, what it keeps as a relay, and all three.
    directory_bytes := non_neg_integer(),
    end_bytes_mean := float(),
    relay_bytes_max := non_neg_integer(),
    node_bytes_mean := float(),
    node_bytes_max := non_neg_integer(),
    %% While nothing is said.
    idle_messages_per_node_per_s := float(),
    virtual_ms := non_neg_integer(),
    events_per_s := non_neg_integer(),
    wall_ms := non_neg_integer()
}.

-record(seen, {
    %% Of pairs over circuits, by whether it was the first.
    first = #{} :: atoll_sim_stats:tally(),
    later = #{} :: atoll_sim_stats:tally(),
    %% How many answers each pair has got.
    answers = #{} :: #{{node(), node()} => pos_integer()},
    hops = #{} :: #{{node(), node()} => pos_integer()},
    lost = 0 :: non_neg_integer()
}).

-define(DEFAULTS, #{
    topology => star,
    group_size => 32,
    gateways => 2,
    fanout => 8,
    words => 3,
    relay_circuits => 256,
    latency => {uniform, 1, 20},
    seed => 1,
    progress => fun(_) -> ok end
}).
%% For links to come up; for all pairs to talk for the first time, and for each time more; for
%% what is under way to end; and of silence, first till circuits have come to rest.
-define(SETTLE_MS, 10000).
-define(OPEN_MS, 5000).
-define(WORD_MS, 1000).
-define(REST_MS, 3000).
-define(CALM_MS, 30000).
-define(IDLE_MS, 30000).
%% So many nodes are few.
-define(FEW, 64).
%% What a relay may hold: so much, as with the carrier's defaults, or so much for each circuit if
%% that is more.
-define(RELAY_BYTES, 134217728).
-define(CIRCUIT_BYTES, 524288).

%% @doc Runs the experiment.
-spec run(options()) -> {ok, result()} | {error, atoll_topology:error()}.
run(Given) ->
    Started = erlang:monotonic_time(millisecond),
    #{nodes := Count, topology := Shape} = Options = maps:merge(maps:put(peers, peers(Given), ?DEFAULTS), Given),
    Names = atoll_sim_cluster:names_of(Count),
    case atoll_sim_places:of_topology(Shape, Names, Options) of
        {ok, Places} ->
            {Result, Events} = measure(Names, Places, Options),
            Ms = max(1, erlang:monotonic_time(millisecond) - Started),
            {ok, Result#{wall_ms => Ms, events_per_s => Events * 1000 div Ms}};
        {error, _} = Error ->
            Error
    end.

peers(#{nodes := Count}) when Count =< ?FEW -> Count - 1;
peers(#{}) -> 2.

measure(Names, #{places := Standing, gateways := Gateways, groups := Groups} = Places, Options) ->
    #{nodes := Count, topology := Shape, seed := Seed, words := Words, latency := Latency} = Options,
    Table = atoll_sim_places:table(Names, Standing, #{}),
    Linked = linked(Names, Places, Table, Options),
    {Pairs, AllPairs} = pairs(Names, Options),
    Relayed = relayed(Pairs, Places),
    Opened = talk(?OPEN_MS, [0], Pairs, Linked, Options),
    Talked = talk(?WORD_MS, lists:seq(1, Words), Pairs, Opened, Options),
    Calm = run(atoll_sim_world:now(Talked) + ?CALM_MS, Talked, Options),
    #{sent := Sent} = atoll_sim_world:counters(Calm),
    Idle = run(atoll_sim_world:now(Calm) + ?IDLE_MS, Calm, Options),
    #{sent := SentIdle, events := Events} = atoll_sim_world:counters(Idle),
    #seen{first = First, later = Later, answers = Answers, hops = Hops, lost = Lost} = atoll_sim_world:watched(Idle),
    Figures = [{Node, atoll_sim_reach_node:figures(atoll_sim_world:state(Node, Idle))} || Node <- Names],
    Relays = [maps:get(relay, F) || {_, F} <- Figures],
    IsGateway = maps:from_keys(Gateways, []),
    OfGateways = [Relay || {{Node, _}, Relay} <- lists:zip(Figures, Relays), is_map_key(Node, IsGateway)],
    Links = [Of || {_, #{links := Of}} <- Figures],
    Ends = lists:sum([N || {_, #{circuits := N}} <- Figures]),
    EndBytes = [Bytes || {_, #{end_bytes := Bytes}} <- Figures],
    RelayBytes = [Bytes || {_, #{relay_bytes := Bytes}} <- Figures],
    Directory = erts_debug:flat_size(Table) * erlang:system_info(wordsize),
    Whole = [Directory + End + Relay || {End, Relay} <- lists:zip(EndBytes, RelayBytes)],
    Mesh = mesh(maps:keys(Relayed), Latency, Seed),
    {#{
        topology => Shape,
        nodes => Count,
        groups => Groups,
        gateways => length(Gateways),
        seed => Seed,
        pairs => length(Pairs),
        relayed => map_size(Relayed),
        all_pairs => AllPairs,
        reached => length([Pair || Pair <- Pairs, maps:get(Pair, Answers, 0) =:= Words + 1]) / length(Pairs),
        refused => lists:sum([N || #{refused := Refused} <- Relays, N <- maps:values(Refused)]),
        lost => Lost,
        connections_mean => atoll_sim_stats:mean(Links),
        connections_plain => atoll_sim_stats:mean([Of || {Node, #{links := Of}} <- Figures, not is_map_key(Node, IsGateway)]),
        connections_max => lists:max(Links),
        connections_mesh => Count - 1,
        hops_mean => atoll_sim_stats:mean(maps:values(Hops)),
        hops_max => greatest(maps:values(Hops)),
        round_trip_ms_p50 => atoll_sim_stats:percentile(Later, 50),
        round_trip_ms_p99 => atoll_sim_stats:percentile(Later, 99),
        first_ms_p50 => atoll_sim_stats:percentile(First, 50),
        first_ms_p99 => atoll_sim_stats:percentile(First, 99),
        mesh_ms_p50 => atoll_sim_stats:percentile(Mesh, 50),
        mesh_ms_p99 => atoll_sim_stats:percentile(Mesh, 99),
        gateway_circuits_mean => atoll_sim_stats:mean([N || #{circuits := N} <- OfGateways]),
        gateway_circuits_max => greatest([N || #{circuits := N} <- OfGateways]),
        gateway_reserved_max => greatest([Bytes || #{reserved := Bytes} <- OfGateways]),
        directory_bytes => Directory,
        end_bytes_mean => case Ends of 0 -> 0.0; _ -> lists:sum(EndBytes) / Ends end,
        relay_bytes_max => lists:max(RelayBytes),
        node_bytes_mean => atoll_sim_stats:mean(Whole),
        node_bytes_max => lists:max(Whole),
        idle_messages_per_node_per_s => (SentIdle - Sent) / Count / (?IDLE_MS / 1000),
        virtual_ms => atoll_sim_world:now(Idle)
    }, Events}.

greatest([]) -> none;
greatest(Values) -> lists:max(Values).

%% All are there, and know where all are.
linked(Names, #{peers := Peers} = Places, Table, Options) ->
    #{seed := Seed, latency := Latency, relay_circuits := Circuits} = Options,
    Relay = #{max_circuits => Circuits, budget => max(?RELAY_BYTES, Circuits * ?CIRCUIT_BYTES)},
    Config = fun(Name, _Incarnation, _Seed) ->
        %% One end of each link makes it.
        Links = [Peer || Peer <- map_get(Name, Peers), Peer > Name],
        #{self => Name, links => Links, table => Table, relay => Relay, circuit => #{}}
    end,
    Empty = atoll_sim_world:new(#{
        protocol => atoll_sim_reach_node,
        config => Config,
        seed => Seed,
        latency => Latency,
        watch => {see(Places), #seen{}}
    }),
    run(?SETTLE_MS, lists:foldl(fun atoll_sim_world:start/2, Empty, Names), Options).

%% Each with all others; or with those that it draws, and with those who draw it.
pairs(Names, #{nodes := Count, peers := Peers}) when Peers >= Count - 1 ->
    {[{A, B} || A <- Names, B <- Names, A < B], true};
pairs(Names, #{nodes := Count, peers := Peers, seed := Seed}) ->
    Numbered = list_to_tuple(Names),
    {Drawn, _} = lists:mapfoldl(
        fun(I, Rand) -> others(I, Peers, Count, #{}, Rand) end,
        rand:seed_s(exsss, erlang:phash2({reach, Seed})),
        lists:seq(1, Count)
    ),
    {lists:usort([{element(I, Numbered), element(J, Numbered)} || {I, J} <- lists:append(Drawn)]), false}.

%% That many others of one. In a pair the one with the lower number asks.
others(I, Peers, _Count, Drawn, Rand) when map_size(Drawn) =:= Peers ->
    {[{min(I, J), max(I, J)} || J <- maps:keys(Drawn)], Rand};
others(I, Peers, Count, Drawn, Rand0) ->
    {J, Rand} = rand:uniform_s(Count, Rand0),
    case J of
        I -> others(I, Peers, Count, Drawn, Rand);
        _ -> others(I, Peers, Count, Drawn#{J => []}, Rand)
    end.

%% Those that have no link.
relayed(Pairs, #{peers := Peers}) ->
    Sets = maps:map(fun(_, Of) -> maps:from_keys(Of, []) end, Peers),
    maps:from_keys([{A, B} || {A, B} <- Pairs, not is_map_key(B, map_get(A, Sets))], []).

%% Every pair so often, each time at some moment of its while; and what is under way comes to its end.
talk(Ms, Numbers, Pairs, World0, #{seed := Seed} = Options) ->
    Begin = atoll_sim_world:now(World0),
    World = lists:foldl(
        fun({Whiles, Number, {A, B} = Pair}, W) ->
            At = Begin + Whiles * Ms + 1 + erlang:phash2({Pair, Number, Seed}, Ms),
            atoll_sim_world:at(At, fun(Then) -> atoll_sim_world:cast(A, {ask, B, Number}, Then) end, W)
        end,
        World0,
        [{Whiles, Number, Pair} || {Whiles, Number} <- lists:zip(lists:seq(0, length(Numbers) - 1), Numbers), Pair <- Pairs]
    ),
    run(Begin + length(Numbers) * Ms + ?REST_MS, World, Options).

see(#{peers := Peers}) ->
    Sets = maps:map(fun(_, Of) -> maps:from_keys(Of, []) end, Peers),
    fun(_Now, Node, Sight, Seen) -> see(Node, Sight, Sets, Seen) end.

see(Node, {notice, {answered, To, Number, Ms}}, Sets, #seen{first = First, later = Later, answers = Answers} = Seen0) ->
    Seen = Seen0#seen{answers = maps:update_with({Node, To}, fun(N) -> N + 1 end, 1, Answers)},
    case {is_map_key(To, map_get(Node, Sets)), Number} of
        {true, _} -> Seen;
        {false, 0} -> Seen#seen{first = atoll_sim_stats:add(Ms, First)};
        {false, _} -> Seen#seen{later = atoll_sim_stats:add(Ms, Later)}
    end;
see(Node, {notice, {path, To, Count}}, _Sets, #seen{hops = Hops} = Seen) ->
    Seen#seen{hops = Hops#{{Node, To} => Count}};
see(_Node, {notice, {lost, _To, _Why}}, _Sets, #seen{lost = Lost} = Seen) ->
    Seen#seen{lost = Lost + 1};
see(_Node, _Sight, _Sets, Seen) ->
    Seen.

run(Until, World, #{progress := Progress} = Options) ->
    Next = min(Until, (atoll_sim_world:now(World) div 1000 + 1) * 1000),
    Later = atoll_sim_world:run(Next, World),
    _ = Progress(Next),
    case Next < Until of
        true -> run(Until, Later, Options);
        false -> Later
    end.

%% The same pairs where all are linked with all: there and back.
mesh(Pairs, Latency, Seed) ->
    {Tally, _} = lists:foldl(
        fun({A, B}, {Tally, Net0}) ->
            {There, Net1} = atoll_sim_net:delay(A, B, Net0),
            {Back, Net} = atoll_sim_net:delay(B, A, Net1),
            {atoll_sim_stats:add(There + Back, Tally), Net}
        end,
        {#{}, atoll_sim_net:new(Latency, erlang:phash2({mesh, Seed}))},
        lists:sort(Pairs)
    ),
    Tally.
