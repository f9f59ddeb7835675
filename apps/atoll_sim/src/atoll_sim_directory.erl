%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `directory': what it costs that every node knows where every other one
%% stands, and how soon a change is known everywhere.
%%
%% The nodes are in groups of a topology, whose members are linked with each other and with
%% nobody else. All know all from the start, and share that table, so that many thousands
%% have room. Then, for some minutes, nodes are killed, evenly spaced, each to start again later with
%% nothing in its memory; that they are gone their co-members have to find out. Meanwhile a node
%% changes its place now and then, and the time is taken until all who lived throughout know. In the
%% end there is no churn for a while, and the tables are compared.
%%
%% Bytes are those of the external term format with the envelope of the interpreter, and with all
%% names of nodes and groups written out: on a real connection most of these are a byte or two.
-module(atoll_sim_directory).

-export([run/1, check/1]).

-export_type([options/0, result/0]).

-type options() :: #{
    nodes := pos_integer(),
    %% Of the groups, see atoll_topology; `links' has none, and a ring with two random chords a node.
    topology => star | ring | tree | hierarchy | links,
    group_size => pos_integer(),
    gateways => pos_integer(),
    fanout => pos_integer(),
    seed => integer(),
    latency => atoll_sim_net:latency(),
    %% The share of the nodes that is killed each minute, how long each is away, and how
    %% many minutes.
    churn => float(),
    away_ms => pos_integer(),
    minutes => pos_integer(),
    %% How often a place is changed.
    changes => pos_integer(),
    %% Of the directory.
    directory => atoll_directory:options(),
    progress => fun((Now :: integer()) -> _)
}.

-type result() :: #{
    topology := atom(),
    nodes := pos_integer(),
    groups := non_neg_integer(),
    seed := integer(),
    links_per_node := float(),
    %% All that the directory of a node keeps in the end, after the churn, for each node of the
    %% cluster: of half of the nodes no more, and of none more.
    bytes_held_per_node := float(),
    bytes_held_per_node_max := float(),
    %% Of all messages while there was churn, for each node and second.
    bytes_per_node_per_s := float(),
    messages_per_node_per_s := float(),
    %% The same by the kind of message.
    bytes_by_kind := #{atom() => float()},
    killed := non_neg_integer(),
    changes := non_neg_integer(),
    %% From a change until all knew, and the same in rounds of `gather_ms'.
    known_ms_p50 := number() | none,
    known_ms_max := number() | none,
    rounds_max := number() | none,
    %% Pairs of a change and a node that had not heard of it at the end.
    unheard := non_neg_integer(),
    %% The share of the nodes whose table is right in the end.
    right := float(),
    %% What the parts of the directory did, in all.
    declared_gone := non_neg_integer(),
    refuted := non_neg_integer(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer()
}.

-record(seen, {
    messages = 0 :: non_neg_integer(),
    bytes = #{} :: #{atom() => non_neg_integer()},
    %% Who has heard of which changed place, and when.
    heard = #{} :: #{{node(), atoll_directory_table:version()} => #{node() => integer()}}
}).

-define(DEFAULTS, #{
    topology => hierarchy,
    group_size => 8,
    gateways => 2,
    fanout => 8,
    seed => 1,
    latency => {uniform, 1, 20},
    churn => 0.01,
    away_ms => 30000,
    minutes => 2,
    changes => 20,
    directory => #{},
    progress => fun(_) -> ok end
}).
%% For links to come up, and for what is under way to end.
-define(SETTLE_MS, 10000).
-define(REST_MS, 120000).

%% @doc Runs the experiment.
-spec run(options()) -> {ok, result()} | {error, atoll_topology:error()}.
run(Given) ->
    Started = erlang:monotonic_time(millisecond),
    #{nodes := Count} = Options = maps:merge(?DEFAULTS, Given),
    Names = atoll_sim_cluster:names_of(Count),
    case layout(Names, Options) of
        {ok, Places, Peers} ->
            Result = measure(Names, Places, Peers, Options),
            {ok, Result#{wall_ms => erlang:monotonic_time(millisecond) - Started}};
        {error, _} = Error ->
            Error
    end.

%% @doc Whether there is such a cluster.
-spec check(options()) -> ok | {error, atoll_topology:error()}.
check(Given) ->
    #{nodes := Count} = Options = maps:merge(?DEFAULTS, Given),
    case layout(atoll_sim_cluster:names_of(Count), Options) of
        {ok, _, _} -> ok;
        {error, _} = Error -> Error
    end.

%% The place of each node, and whom it is linked with.
layout(Names, #{topology := links, seed := Seed}) ->
    Told = atoll_sim_cluster:told(atoll_static, Names, Seed),
    Ends = lists:append([[{A, B}, {B, A}] || {A, Joins} <- maps:to_list(Told), {join, B} <- Joins]),
    Peers = maps:map(
        fun(_, Nodes) -> lists:usort(Nodes) end,
        maps:groups_from_list(fun({A, _}) -> A end, fun({_, B}) -> B end, Ends)
    ),
    {ok, maps:map(fun(_, Nodes) -> atoll_directory_place:new([], all, Nodes) end, Peers), Peers};
layout(Names, #{topology := Shape} = Options) ->
    case atoll_sim_places:of_topology(Shape, Names, Options) of
        {ok, #{places := Places, peers := Peers}} -> {ok, Places, Peers};
        {error, _} = Error -> Error
    end.

measure(Names, Places, Peers, Options) ->
    #{seed := Seed, minutes := Minutes, changes := Changes, churn := Churn, latency := Latency} = Options,
    #{nodes := Count, topology := Shape, away_ms := Away} = Options,
    Table = atoll_sim_places:table(Names, Places, maps:get(directory, Options)),
    Config = fun(Name, Incarnation, NodeSeed) ->
        #{
            peers => map_get(Name, Peers),
            directory => maps:merge(
                #{
                    self => Name,
                    incarnation => Incarnation,
                    seed => NodeSeed,
                    options => maps:get(directory, Options),
                    place => map_get(Name, Places)
                },
                maps:from_list([{table, Table} || Incarnation =:= 1])
            )
        }
    end,
    Empty = atoll_sim_world:new(#{
        protocol => atoll_sim_directory_node,
        config => Config,
        seed => Seed,
        latency => Latency,
        watch => {fun see/4, #seen{}},
        messages => true
    }),
    Linked = run(?SETTLE_MS, lists:foldl(fun atoll_sim_world:start/2, Empty, Names), Options),
    Begin = atoll_sim_world:now(Linked),
    End = Begin + Minutes * 60000,
    Fresh = atoll_sim_world:watch({fun see/4, #seen{}}, Linked),
    Kills = round(Churn * Count * Minutes),
    {Victims, Others} = draw(Kills, Names, Seed),
    Dying = lists:foldl(
        fun({I, Node}, W) -> dies(Begin + I * (End - Begin) div max(1, Kills), Away, Node, W) end,
        Fresh,
        lists:zip(lists:seq(0, Kills - 1), Victims)
    ),
    Changing = lists:sublist(Others, Changes),
    Moments = [{Begin + 5000 + I * (End - Begin - 5000) div max(1, length(Changing)), Node}
               || {I, Node} <- lists:zip(lists:seq(0, length(Changing) - 1), Changing)],
    Changed = lists:foldl(fun({At, Node}, W) -> changes(At, Node, map_get(Node, Places), W) end, Dying, Moments),
    Churned = run(End, Changed, Options),
    #seen{messages = Messages, bytes = Bytes} = atoll_sim_world:watched(Churned),
    Rested = run(End + ?REST_MS, Churned, Options),
    PerNode = fun(N) -> N / Count / ((End - Begin) / 1000) end,
    #{gather_ms := {_, Default}} = atoll_directory:options(),
    GatherMs = maps:get(gather_ms, maps:get(directory, Options), Default),
    {Known, Missed} = known(Moments, Others, Rested),
    Directories = directories(Rested),
    Summaries = [atoll_directory:summary(State) || {_, State} <- Directories],
    Held = lists:sort([erts_debug:flat_size(State) * erlang:system_info(wordsize) || {_, State} <- Directories]),
    Sum = fun(Key) -> lists:sum([map_get(Key, Summary) || Summary <- Summaries]) end,
    #{cliques := Groups} = atoll_directory_table:counts(Table),
    #{
        topology => Shape,
        nodes => Count,
        groups => Groups,
        seed => Seed,
        links_per_node => lists:sum([length(P) || P <- maps:values(Peers)]) / Count,
        bytes_held_per_node => atoll_sim_stats:percentile(Held, 50) / Count,
        bytes_held_per_node_max => lists:last(Held) / Count,
        bytes_per_node_per_s => PerNode(lists:sum(maps:values(Bytes))),
        messages_per_node_per_s => PerNode(Messages),
        bytes_by_kind => maps:map(fun(_, N) -> PerNode(N) end, Bytes),
        killed => Kills,
        changes => length(Changing),
        known_ms_p50 => atoll_sim_stats:percentile(Known, 50),
        known_ms_max => atoll_sim_stats:percentile(Known, 100),
        rounds_max => case Known of [] -> none; _ -> lists:max(Known) / GatherMs end,
        unheard => Missed,
        right => right(Rested, Changing, Places),
        declared_gone => Sum(declared_gone),
        refuted => Sum(refuted),
        virtual_ms => atoll_sim_world:now(Rested)
    }.

run(Until, World, #{progress := Progress} = Options) ->
    Next = min(Until, (atoll_sim_world:now(World) div 1000 + 1) * 1000),
    Later = atoll_sim_world:run(Next, World),
    _ = Progress(Next),
    case Next < Until of
        true -> run(Until, Later, Options);
        false -> Later
    end.

%% Who is killed, in order, and the others.
draw(Count, Names, Seed) ->
    {Drawn, Others, _} = atoll_random:split(Count, Names, rand:seed_s(exsss, erlang:phash2({directory, Seed}))),
    {Drawn, Others}.

dies(At, Away, Node, World0) ->
    World = atoll_sim_world:at(At, fun(W) -> atoll_sim_world:kill(Node, W) end, World0),
    atoll_sim_world:at(At + Away, fun(W) -> atoll_sim_world:start(Node, W) end, World).

%% A clique of its own: another member would have to be linked with it.
changes(At, Node, {Cliques, _, _}, World) ->
    atoll_sim_world:at(At, fun(W) -> atoll_sim_world:cast(Node, {cliques, [{own, Node} | Cliques]}, W) end, World).

see(_Now, _Node, {sent, _To, {1, Body} = Message}, #seen{messages = Messages, bytes = Bytes} = Seen) ->
    Kind = element(1, Body),
    %% The name of the sender in it stands for that of any.
    Size = erlang:external_size({atoll, 1, element(1, Body), Message}),
    Seen#seen{messages = Messages + 1, bytes = Bytes#{Kind => maps:get(Kind, Bytes, 0) + Size}};
see(Now, Node, {notice, {placed, Of, Version}}, #seen{heard = Heard} = Seen) ->
    %% The second version of a first life: somebody changed.
    case Version of
        2 -> Seen#seen{heard = maps:update_with({Of, 2}, fun(By) -> By#{Node => Now} end, #{Node => Now}, Heard)};
        _ -> Seen
    end;
see(_Now, _Node, _Sight, Seen) ->
    Seen.

%% For each change how long it took all who lived from the beginning to the end; and who missed it.
known(Moments, Lasting, World) ->
    #seen{heard = Heard} = atoll_sim_world:watched(World),
    Each = [
        begin
            By = maps:get({Node, 2}, Heard, #{}),
            {
                lists:max([0 | [map_get(N, By) - At || N <- Lasting, is_map_key(N, By)]]),
                length([N || N <- Lasting, N =/= Node, not is_map_key(N, By)])
            }
        end
     || {At, Node} <- Moments
    ],
    {lists:sort([Ms || {Ms, _} <- Each]), lists:sum([Missed || {_, Missed} <- Each])}.

directories(World) ->
    [
        {Node, atoll_sim_directory_node:directory(atoll_sim_world:state(Node, World))}
     || Node <- atoll_sim_world:alive(World)
    ].

%% Tables with the same root hold the same, so one of each is looked at.
right(World, Changing, Places) ->
    Directories = directories(World),
    ByRoot = maps:groups_from_list(
        fun({Table, _}) -> atoll_directory_table:root(Table) end,
        [{atoll_directory:table(State), Node} || {Node, State} <- Directories]
    ),
    Expected = maps:merge(
        maps:with([Node || {Node, _} <- Directories], Places),
        maps:from_list([
            {Node, atoll_directory_place:new([{own, Node} | Cliques], Relays, Links)}
         || Node <- Changing, {Cliques, Relays, Links} <- [map_get(Node, Places)]
        ])
    ),
    Right = [length(Same) || [{Table, _} | _] = Same <- maps:values(ByRoot), places(Table) =:= Expected],
    lists:sum(Right) / length(Directories).

places(Table) ->
    maps:from_list([
        {Node, element(2, atoll_directory_table:entry(Node, Table))}
     || Node <- atoll_directory_table:nodes(Table)
    ]).
