%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated cluster: a world whose nodes run the overlay, with the
%% strategy, the network and the contacts that were asked for; what every
%% experiment begins with and looks at. With groups they run what a node runs: the groups,
%% their names, and the directory if it is on ({@link atoll_sim_node}).
%%
%% The first nodes are the contacts. They start first, the others within a while,
%% so many a second, each at a moment of its own. How a node hears of the contacts is
%% how users form a cluster: they stand in its configuration, it is told to join by
%% them, or it reads them from a source that changes, such as a list in DNS. A strategy that needs data gets
%% what fits the number of nodes: `star' has the contacts for servers, `cliques'
%% stand in a ring in which neighbours share a gateway, and `static' is a ring
%% with two random chords a node.
-module(atoll_sim_cluster).

-export([defaults/0, new/1, experiment/2, grow/1, launch/2, start/3, starter/1, source/2, check/1, format_error/1, isolated/1, isolated/2]).
-export([run/2, wait/2, at/3, update/2, watch/2, watched/1]).
-export([world/1, now/1, counters/1, names/1, contacts/1, options/1]).
-export([neighbours/1, views/1, overlay/2, random/3, told/3, names_of/1]).

-export_type([cluster/0, options/0, formed/0, memory/0, error/0]).

-type options() :: #{
    nodes := pos_integer(),
    strategy => atom(),
    %% The strategy's.
    options => atoll_options:options(),
    %% Those of the other parts that differ from what a node has by default; without the part.
    detector => atoll_detector:spec(),
    broadcast => map() | off,
    discovery => map() | off,
    roster => map() | off,
    %% Whether each node has all of them in its roster when it starts, as one has that has been up: it is not told
    %% of them. To learn of each other takes 10,000 nodes most of the time that they are simulated.
    full_rosters => boolean(),
    %% Whether groups and names run beside the overlay, and with them the directory.
    groups => on | off,
    directory => off | on | atoll_directory:options(),
    %% Whether a strategy that needs data gets some; groups say themselves which the cliques are.
    told => boolean(),
    seed => integer(),
    contacts => pos_integer(),
    formed => formed(),
    latency => atoll_sim_net:latency(),
    %% Bytes that a link carries in a second, and that its queue holds.
    rate => pos_integer(),
    queue => pos_integer(),
    %% Nodes that start each second, and how long they then have to settle.
    starts_per_s => pos_integer(),
    settle_ms => non_neg_integer(),
    %% Sees what happens and keeps what it wants of it.
    watch => {atoll_sim_world:watcher(), term()},
    %% Is told of the same, to write it down.
    trace => fun((Now :: integer(), node() | world, atoll_sim_world:sight()) -> _),
    %% Whether both hear of each message too.
    messages => boolean(),
    %% Hears each second of virtual time, so that a person can be told.
    progress => fun((Now :: integer()) -> _)
}.

-type formed() ::
    %% Each node has the contacts in its configuration.
    listed
    %% It has none, and is told to join by them when it starts, as by atoll:join/1.
    | join
    %% It has none, and reads them when it starts and now and again: see source/2.
    | source.

-type memory() ::
    %% The nodes that it knew; nothing; or nothing, and no contact but itself.
    {remembered, [node()]} | fresh | alone
    %% All of the cluster, by its roster.
    | {members, atoll_roster_table:table()}.

-type error() :: atoll_options:error() | atoll_detector:error().

-record(cluster, {
    %% None while it runs.
    world :: atoll_sim_world:world() | none,
    names :: [node(), ...],
    contacts :: [node()],
    %% What the source of contacts says now.
    source :: [node()],
    options :: options(),
    %% For what is drawn by whoever drives the cluster.
    rand :: rand:state(),
    %% What a node is told when it starts.
    told = #{} :: #{node() => [term()]}
}).

-opaque cluster() :: #cluster{}.

%% How many nodes a clique has, without the gateway of the next.
-define(CLIQUE, 8).
%% How often what nodes have in common is looked for.
-define(COMPACT_MS, 10000).
%% Words of the heap of a small world; and of that of a large one for each node, and for each that it
%% knows by its roster.
-define(WORDS, 4000000).
-define(NODE, 5000).
-define(MEMBER, 6).
%% So many are chosen without sorting all.
-define(FEW, 16).

%% @doc What a cluster is of which only the number of nodes is told. What runs on its nodes is
%% what runs on nodes by default.
-spec defaults() -> #{atom() => term()}.
defaults() ->
    (maps:merge(atoll_sim_defaults:parts(), atoll_sim_net:rate()))#{
        strategy => hyparview,
        options => #{},
        seed => 1,
        contacts => 5,
        formed => listed,
        full_rosters => false,
        groups => off,
        directory => off,
        told => true,
        latency => {uniform, 1, 20},
        starts_per_s => 1000,
        settle_ms => 60000,
        progress => fun(_) -> ok end
    }.

%% @doc A cluster none of whose nodes has started.
-spec new(options()) -> {ok, cluster()} | {error, error()}.
new(Given) ->
    case check(Given) of
        {ok, Module, StrategyOptions, Options} -> {ok, make(Module, StrategyOptions, Options)};
        {error, _} = Error -> Error
    end.

%% @doc Makes a cluster and an experiment with it, whose result says how many
%% `events' there were: in place of that it gets the time that it took, `wall_ms',
%% and how many of them there were in each second of that.
-spec experiment(options(), fun((cluster()) -> #{atom() => term()})) ->
    {ok, #{atom() => term()}} | {error, error()}.
experiment(Options, Experiment) ->
    Started = erlang:monotonic_time(millisecond),
    case new(Options) of
        {ok, Cluster} ->
            {Events, Result} = maps:take(events, Experiment(Cluster)),
            Wall = erlang:monotonic_time(millisecond) - Started,
            {ok, Result#{wall_ms => Wall, events_per_s => Events * 1000 div max(1, Wall)}};
        {error, _} = Error ->
            Error
    end.

%% @doc The strategy's module and options, and all options with the defaults.
-spec check(options()) ->
    {ok, module(), atoll_options:options(), options()} | {error, error()}.
check(Given) ->
    #{strategy := Strategy, options := StrategyGiven, detector := Detector} = Options = maps:merge(defaults(), Given),
    case {atoll_strategy:module(Strategy), atoll_detector:new(Detector)} of
        {{ok, Module}, {ok, _}} ->
            case atoll_options:complete(Module, StrategyGiven) of
                {ok, StrategyOptions} -> {ok, Module, StrategyOptions, Options};
                {error, _} = Error -> Error
            end;
        {{error, _} = Error, _} ->
            Error;
        {_, {error, _} = Error} ->
            Error
    end.

make(Module, StrategyOptions, #{nodes := Count, contacts := ContactCount, formed := Formed, seed := Seed} = Options) ->
    Names = names_of(Count),
    Contacts = lists:sublist(Names, ContactCount),
    Own = own_options(Module, Contacts, StrategyOptions),
    {Told, Rand} = told_or_not(Options, Module, Names, rand:seed_s(exsss, erlang:phash2({cluster, Seed}))),
    Rooms = rooms(Module, Own, Options),
    Parts = parts(Options),
    Config = fun(Name, Incarnation, NodeSeed) ->
        Overlay = maps:merge(
            Parts,
            #{
                self => Name,
                incarnation => Incarnation,
                seed => NodeSeed,
                strategy => {Module, Own},
                contacts => [Contact || Contact <- Contacts, Formed =:= listed, not is_map_key(Name, Told)]
            }
        ),
        atoll_sim_node:config(Overlay, Rooms)
    end,
    World = atoll_sim_world:new(
        maps:merge(
            maps:with([latency, rate, queue, messages], Options),
            #{
                rooms => atoll_sim_node:rooms(),
                wiring => atoll_sim_node,
                config => Config,
                seed => Seed,
                watch => traced(maps:get(watch, Options, none), Options)
            }
        )
    ),
    #cluster{
        world = World,
        names = Names,
        contacts = Contacts,
        source = Contacts,
        options = Options,
        rand = Rand,
        told = Told
    }.

%% Complete, so that the nodes have one term of each in common: it is read in nearly every event.
parts(#{detector := Detector, broadcast := Broadcast, discovery := Discovery, roster := Roster}) ->
    {ok, Module} = atoll_detector:new(Detector),
    #{
        detector => Module,
        broadcast => complete(atoll_plumtree, Broadcast),
        discovery => Discovery,
        roster => complete(atoll_roster, Roster)
    }.

complete(_Part, off) ->
    off;
complete(Part, Given) ->
    {ok, Options} = atoll_options:complete(Part, Given),
    Options.

rooms(_Module, _Own, #{groups := off}) ->
    off;
rooms(Module, Own, #{groups := on, directory := Directory}) ->
    {ok, Rooms} = atoll_sim_defaults:rooms(Module, Own, Directory),
    Rooms.

told_or_not(#{told := true}, Module, Names, Rand) -> tell(Module, Names, Rand);
told_or_not(#{told := false}, _Module, _Names, Rand) -> {#{}, Rand}.

%% @doc The names of so many nodes, in order.
-spec names_of(pos_integer()) -> [node(), ...].
names_of(Count) ->
    Width = length(integer_to_list(Count)),
    [list_to_atom(lists:flatten(io_lib:format("n~*..0b", [Width, N]))) || N <- lists:seq(1, Count)].

own_options(atoll_star, Contacts, #{servers := []} = Options) -> Options#{servers := Contacts};
own_options(_Module, _Contacts, Options) -> Options.

%% @doc What nodes of these names are told when they start, in order, before they hear
%% of their contacts: by strategies that need data. Others are told nothing.
-spec told(module(), [node(), ...], Seed :: integer()) -> #{node() => [term()]}.
told(Module, Names, Seed) ->
    {Told, _} = tell(Module, Names, rand:seed_s(exsss, erlang:phash2({cluster, Seed}))),
    Told.

tell(atoll_cliques, Names, Rand) ->
    {cliques(Names), Rand};
tell(atoll_static, Names, Rand) ->
    ring_with_chords(Names, Rand);
tell(_Module, _Names, Rand) ->
    {#{}, Rand}.

cliques(Names) ->
    Parts = split(Names),
    Next = tl(Parts) ++ [hd(Parts)],
    Cliques = [
        {Id, lists:usort([hd(After) | Part])}
     || {Id, Part, After} <- lists:zip3(lists:seq(1, length(Parts)), Parts, Next)
    ],
    maps:from_list([
        {Name, [{cliques, [Clique || {_, Members} = Clique <- Cliques, lists:member(Name, Members)]}]}
     || Name <- Names
    ]).

split(Names) when length(Names) =< ?CLIQUE -> [Names];
split(Names) ->
    {Part, Rest} = lists:split(?CLIQUE, Names),
    [Part | split(Rest)].

ring_with_chords(Names, Rand0) ->
    Count = length(Names),
    Table = list_to_tuple(Names),
    lists:foldl(
        fun(N, {Told, R0}) ->
            {A, R1} = rand:uniform_s(Count, R0),
            {B, R2} = rand:uniform_s(Count, R1),
            Peers = lists:usort([element(I, Table) || I <- [N rem Count + 1, A, B], I =/= N]),
            {Told#{element(N, Table) => [{join, Peer} || Peer <- Peers]}, R2}
        end,
        {#{}, Rand0},
        lists:seq(1, Count)
    ).

%% @doc Starts all nodes and lets them settle.
-spec grow(cluster()) -> cluster().
grow(#cluster{names = Names, options = #{settle_ms := SettleMs}} = Cluster) ->
    run(spread(Names, Cluster) + SettleMs, launch(Names, Cluster)).

%% @doc Has these nodes, which have never run, start, contacts now and the others soon.
-spec launch([node()], cluster()) -> cluster().
launch(Nodes, #cluster{contacts = Contacts, rand = Rand0} = Cluster) ->
    Spread = spread(Nodes, Cluster),
    Now = now(Cluster),
    IsContact = maps:from_keys(Contacts, []),
    {First, Others} = lists:partition(fun(Node) -> is_map_key(Node, IsContact) end, Nodes),
    {Later, Rand} = lists:mapfoldl(
        fun(Node, R0) ->
            {Ms, R} = rand:uniform_s(Spread, R0),
            {{Node, Now + Ms}, R}
        end,
        Rand0,
        Others
    ),
    Memory = memory([{Node, Now} || Node <- First] ++ Later, Cluster),
    Beginning = beginning(Cluster),
    Started = lists:foldl(fun(Node, C) -> start(Node, Memory, C) end, Cluster#cluster{rand = Rand}, First),
    lists:foldl(
        fun({Node, Ms}, C) -> at(Ms, fun(World) -> start_late(Node, Memory, Beginning, World) end, C) end, Started, Later
    ).

memory(Starts, #cluster{options = #{full_rosters := true, roster := #{} = Given}}) ->
    #{max_members := MaxMembers, max_gone := MaxGone} = complete(atoll_roster, Given),
    {members,
        lists:foldl(
            fun({Node, Ms}, Table0) ->
                {_, Table} = atoll_roster_table:put(Node, {atoll_sim_world:life_from(Ms), alive}, Table0),
                Table
            end,
            atoll_roster_table:new(element(1, hd(Starts)), MaxMembers, MaxGone),
            Starts
        )};
memory(_Starts, _Cluster) ->
    fresh.

%% Somebody may have started it meanwhile.
start_late(Node, Memory, Beginning, World) ->
    case atoll_sim_world:has_started(Node, World) of
        true -> World;
        false -> start(Node, Memory, Beginning, World)
    end.

spread(Nodes, #cluster{options = #{starts_per_s := PerSecond}}) ->
    max(1, length(Nodes) * 1000 div PerSecond).

%% @doc Starts a dead node.
-spec start(node(), memory(), cluster()) -> cluster().
start(Name, Memory, #cluster{world = World} = Cluster) ->
    Cluster#cluster{world = start(Name, Memory, beginning(Cluster), World)}.

%% @doc What starts a dead node of this cluster, with nothing in its memory, in the
%% world that is there by then: for what is done later, see {@link at/3}. It does
%% not hold the present world.
-spec starter(cluster()) -> fun((node(), atoll_sim_world:world()) -> atoll_sim_world:world()).
starter(Cluster) ->
    Beginning = beginning(Cluster),
    fun(Name, World) -> start(Name, fresh, Beginning, World) end.

%% What nodes are told, and how they hear of whom.
beginning(#cluster{told = Told, contacts = Contacts, source = Source, options = #{formed := Formed}}) ->
    case Formed of
        source -> {Told, Formed, Source};
        _ -> {Told, Formed, Contacts}
    end.

start(Name, Memory, {Told, Formed, Contacts}, World) ->
    Terms = maps:get(Name, Told, []),
    Heard =
        case {Memory, Formed} of
            {alone, _} -> [];
            {_, join} -> [{join, Contacts -- [Name]}];
            %% It has them in its configuration.
            {_, listed} when Terms =:= [] -> [];
            {_, _} -> [{contacts, Contacts}]
        end,
    %% Contacts last: one that it heard of first it would be linked with, too.
    lists:foldl(
        fun(Notice, W) -> atoll_sim_world:cast(Name, Notice, W) end,
        atoll_sim_world:start(Name, fun(Config) -> remember(Memory, Name, Config) end, World),
        [{tell, Term} || Term <- Terms] ++ [Notice || {_, [_ | _]} = Notice <- Heard]
    ).

remember(fresh, _Name, Config) -> Config;
remember({remembered, Nodes}, _Name, #{overlay := Overlay} = Config) -> Config#{overlay := Overlay#{remembered => Nodes}};
remember({members, Members}, _Name, #{overlay := Overlay} = Config) -> Config#{overlay := Overlay#{members => Members}};
remember(alone, Name, #{overlay := Overlay} = Config) -> Config#{overlay := Overlay#{contacts => [Name]}}.

%% @doc From now on the source of contacts lists these: each node hears of them when it reads
%% it next. Where the cluster is not formed by a source nobody does.
-spec source([node()], cluster()) -> cluster().
source(Listed, #cluster{names = Names, rand = Rand0, options = #{formed := source}} = Cluster) ->
    Ms = atoll_sim_defaults:source_ms(),
    Now = now(Cluster),
    {Told, Rand} = lists:foldl(
        fun(Name, {C, R0}) ->
            %% Up to a quarter more than it says.
            {Wait, R} = rand:uniform_s(Ms + Ms div 4, R0),
            {at(Now + Wait, fun(World) -> read_source(Name, Listed, World) end, C), R}
        end,
        {Cluster, Rand0},
        Names
    ),
    Told#cluster{source = Listed, rand = Rand};
source(_Listed, Cluster) ->
    Cluster.

read_source(_Name, [], World) -> World;
read_source(Name, Listed, World) -> atoll_sim_world:cast(Name, {contacts, Listed}, World).

%% @doc Runs Fun in a process with a heap for a large world, and gives what it
%% returns; the process's memory is gone with it.
-spec isolated(fun(() -> Result)) -> Result.
isolated(Fun) ->
    isolated(Fun, #{}).

%% @doc The same for a cluster of these options. The heap of a large one is sized by it, and what is not used
%% any more is always looked for in all of it: a heap of generations takes three times as much for a while each time
%% that an old one is begun, and keeps what is not used.
-spec isolated(fun(() -> Result), #{nodes => pos_integer(), roster => map() | off, atom() => term()}) -> Result.
isolated(Fun, Options) ->
    Caller = self(),
    Tag = make_ref(),
    {Pid, Ref} = spawn_opt(
        fun() ->
            Worker = self(),
            %% A caller that is gone needs no result.
            _ = spawn(fun() -> guard(Caller, Worker) end),
            Outcome =
                try
                    {returned, Fun()}
                catch
                    Class:Reason:Stack -> {raised, Class, Reason, Stack}
                end,
            Caller ! {Tag, Outcome}
        end,
        [monitor | heap(words(Options))]
    ),
    receive
        {Tag, Outcome} ->
            %% Its memory is gone when it is.
            receive
                {'DOWN', Ref, process, Pid, _} -> outcome(Outcome)
            end;
        {'DOWN', Ref, process, Pid, Reason} ->
            exit(Reason)
    end.

heap(Words) when Words > ?WORDS -> [{min_heap_size, Words}, {fullsweep_after, 0}];
heap(_Few) -> [{min_heap_size, ?WORDS}, {fullsweep_after, 50}].

%% Some three times what they take.
words(#{nodes := Nodes, roster := off}) -> Nodes * ?NODE;
words(#{nodes := Nodes}) -> Nodes * (?NODE + Nodes * ?MEMBER);
words(#{}) -> 0.

outcome({returned, Result}) -> Result;
outcome({raised, Class, Reason, Stack}) -> erlang:raise(Class, Reason, Stack).

guard(Caller, Worker) ->
    CallerRef = erlang:monitor(process, Caller),
    WorkerRef = erlang:monitor(process, Worker),
    receive
        {'DOWN', CallerRef, _, _, _} -> exit(Worker, kill);
        {'DOWN', WorkerRef, _, _, _} -> ok
    end.

%% @doc Lets it run until then.
-spec run(Until :: integer(), cluster()) -> cluster().
run(Until, #cluster{world = World} = Cluster) ->
    %% Whoever holds the world that it was holds twice as much while it changes.
    run(Until, World, Cluster#cluster{world = none}).

run(Until, World0, #cluster{options = #{progress := Progress, roster := Roster}} = Cluster) ->
    Now = atoll_sim_world:now(World0),
    Next = min(Until, (Now div 1000 + 1) * 1000),
    World = compact(Next, Roster, atoll_sim_world:run(Next, World0)),
    _ = Progress(Next),
    case Next < Until of
        true -> run(Until, World, Cluster);
        false -> Cluster#cluster{world = World}
    end.

%% It is the tables of all members that are worth it.
compact(Now, Roster, World) when Roster =/= off, Now rem ?COMPACT_MS =:= 0 -> atoll_sim_world:compact(World);
compact(_Now, _Roster, World) -> World.

%% @doc Lets it run for so long.
-spec wait(Ms :: non_neg_integer(), cluster()) -> cluster().
wait(Ms, Cluster) ->
    run(now(Cluster) + Ms, Cluster).

%% @doc At that time, this is done to the world.
-spec at(Ms :: integer(), fun((atoll_sim_world:world()) -> atoll_sim_world:world()), cluster()) -> cluster().
at(Ms, Deed, Cluster) ->
    update(fun(World) -> atoll_sim_world:at(Ms, Deed, World) end, Cluster).

%% @doc From now on somebody else watches.
-spec watch({atoll_sim_world:watcher(), term()}, cluster()) -> cluster().
watch(Watch, #cluster{world = World, options = Options} = Cluster) ->
    Cluster#cluster{world = atoll_sim_world:watch(traced(Watch, Options), World)}.

traced(none, #{trace := _} = Options) ->
    traced({fun(_, _, _, Kept) -> Kept end, none}, Options);
traced({Watcher, Kept}, #{trace := Trace}) ->
    {
        fun(Now, Where, Sight, K) ->
            _ = Trace(Now, Where, Sight),
            Watcher(Now, Where, Sight, K)
        end,
        Kept
    };
traced(Watch, _Options) ->
    Watch.

%% @doc What the watcher has kept.
-spec watched(cluster()) -> term().
watched(#cluster{world = World}) -> atoll_sim_world:watched(World).

%% @doc The world as it is.
-spec world(cluster()) -> atoll_sim_world:world().
world(#cluster{world = none}) -> error(running);
world(#cluster{world = World}) -> World.

%% @doc Its virtual time.
-spec now(cluster()) -> integer().
now(#cluster{world = World}) -> atoll_sim_world:now(World).

%% @doc The world's counters.
-spec counters(cluster()) -> #{atom() => non_neg_integer()}.
counters(#cluster{world = World}) -> atoll_sim_world:counters(World).

%% @doc The cluster after something was done to its world.
-spec update(fun((atoll_sim_world:world()) -> atoll_sim_world:world()), cluster()) -> cluster().
update(Fun, #cluster{world = World} = Cluster) -> Cluster#cluster{world = Fun(World)}.

%% @doc All nodes, dead ones too.
-spec names(cluster()) -> [node(), ...].
names(#cluster{names = Names}) -> Names.

%% @doc The nodes that others join by.
-spec contacts(cluster()) -> [node(), ...].
contacts(#cluster{contacts = Contacts}) -> Contacts.

%% @doc What it was made of, with the defaults.
-spec options(cluster()) -> options().
options(#cluster{options = Options}) -> Options.

%% @doc The live nodes with their neighbours, in the order of their names.
-spec neighbours(cluster()) -> [{node(), [node()]}].
neighbours(#cluster{world = World}) ->
    [
        {Name, atoll_overlay_core:neighbours(atoll_sim_world:state(Name, World))}
     || Name <- atoll_sim_world:alive(World)
    ].

%% @doc What readers find on each living node, in the order of their names.
-spec views(cluster()) -> atoll_sim_expect:views().
views(#cluster{world = World}) ->
    [{Name, atoll_sim_node:view(Name, World)} || Name <- atoll_sim_world:alive(World)].

%% @doc The overlay of a live node.
-spec overlay(node(), cluster()) -> atoll_overlay_core:state().
overlay(Name, #cluster{world = World}) ->
    atoll_sim_world:state(Name, World).

%% @doc So many of these nodes, drawn at random.
-spec random(non_neg_integer(), [node()], cluster()) -> {[node()], cluster()}.
random(Count, Nodes, #cluster{rand = Rand0} = Cluster) ->
    {Chosen, Rand} =
        case Count =< ?FEW of
            true -> few(Nodes, Count, [], Rand0);
            false -> many(Nodes, Count, Rand0)
        end,
    {lists:sort([Node || {_, Node} <- Chosen]), Cluster#cluster{rand = Rand}}.

%% Those with the smallest numbers. A few are kept as they come, the largest number first:
%% `sim detect' chooses a few of all nodes ten times a second.
few([Node | Nodes], Room, Chosen, Rand0) ->
    {X, Rand} = rand:uniform_s(Rand0),
    case Chosen of
        _ when Room > 0 -> few(Nodes, Room - 1, insert({X, Node}, Chosen), Rand);
        [Largest | Others] when {X, Node} < Largest -> few(Nodes, 0, insert({X, Node}, Others), Rand);
        _ -> few(Nodes, 0, Chosen, Rand)
    end;
few([], _Room, Chosen, Rand) ->
    {Chosen, Rand}.

insert(Keyed, [Larger | Chosen]) when Keyed < Larger -> [Larger | insert(Keyed, Chosen)];
insert(Keyed, Chosen) -> [Keyed | Chosen].

many(Nodes, Count, Rand0) ->
    {Keyed, Rand} = lists:mapfoldl(
        fun(Node, R0) ->
            {X, R} = rand:uniform_s(R0),
            {{X, Node}, R}
        end,
        Rand0,
        Nodes
    ),
    {lists:sublist(lists:sort(Keyed), Count), Rand}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(Error) ->
    atoll_detector:format_error(Error).
