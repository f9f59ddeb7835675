%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter in virtual time: as many nodes as memory holds, each with the overlay and the replica of a real node.
%%
%% The cluster starts and settles; then the server has its advertisements, and clients begin. It ends when all clients have seen that all
%% are disabled and all counters are the same, or in vain.
-module(atoll_bench_adcounter_sim).

-export([run/1]).

-export_type([shape/0]).

-type shape() :: #{
    nodes := pos_integer(),
    mode := adcounter:mode(),
    seed := integer(),
    settings := adcounter_options:options(),
    %% Hears each second of virtual time.
    progress => fun((NowMs :: integer()) -> _)
}.

-record(kept, {
    %% Client => when it has shown one, newest first.
    shown = #{} :: #{node() => [integer()]},
    seen = #{} :: #{node() => integer()},
    disabled_at = never :: never | integer()
}).

-define(CONTACTS, 3).
-define(STARTS_PER_S, 500).
-define(SETTLE_MS, 20_000).
-define(STEP_MS, 250).
%% After the moment at which so many impressions could have been shown as were paid for.
-define(PATIENCE_MS, 600_000).
%% With more nodes each does without the list of all members, which nothing here reads.
-define(ROSTER, 500).

%% @doc Runs it.
-spec run(shape()) -> adcounter_result:result().
run(#{nodes := Count, settings := #{ads := Ads, budget := Budget, impression_ms := ImpressionMs} = Settings} = Shape) ->
    Names = atoll_sim_cluster:names_of(Count),
    Progress = maps:get(progress, Shape, fun(_) -> ok end),
    Started = pass(?SETTLE_MS, Progress, started(Names, world(Names, Shape))),
    Opened = lists:foldl(fun(Node, W) -> atoll_sim_world:cast(Node, program, open, W) end, atoll_sim_world:watch({fun see/4, #kept{}}, Started), Names),
    Clients = Count - 1,
    Most = atoll_sim_world:now(Opened) + 2 * Ads * Budget * ImpressionMs div Clients + ?PATIENCE_MS,
    {EqualAt, End} = until_equal(Clients, Most, Progress, Opened),
    #kept{shown = Shown, seen = Seen, disabled_at = DisabledAt} = atoll_sim_world:watched(End),
    Replicas = [atoll_bench_adcounter_node:replica(atoll_sim_world:state(Node, program, End)) || Node <- Names],
    Summaries = [atoll_crdt_replica_core:summary(Replica) || Replica <- Replicas],
    adcounter_result:new(Settings, Clients, #{
        clients => [{maps:get(Node, Shown, []), maps:get(Node, Seen, never)} || Node <- tl(Names)],
        disabled_at => DisabledAt,
        equal_at => EqualAt,
        counts => [counts(Ads, Replica) || Replica <- Replicas],
        sent => [Sent || #{sent := Sent} <- Summaries],
        counted => Summaries,
        hops => adcounter:hops(map_get(mode, Shape), Count),
        slack_ms => 0
    }).

world([Server | _] = Names, #{mode := Mode, seed := Seed, settings := #{how := How, propagation_ms := Ms, buffer_max := Max} = Settings}) ->
    {Strategy, Contacts} =
        case Mode of
            server -> {{atoll_star, complete(atoll_star, #{servers => [Server]})}, [Server]};
            peer -> {{atoll_hyparview, complete(atoll_hyparview, #{})}, lists:sublist(Names, ?CONTACTS)}
        end,
    Options = complete(atoll_crdt_replica_core, #{how => How, interval_ms => Ms, buffer_max => Max}),
    #{detector := Detector, broadcast := Broadcast, discovery := Discovery, roster := Roster} = atoll_sim_defaults:parts(),
    {ok, Watching} = atoll_detector:new(Detector),
    %% Complete, so that the nodes have one term of each in common.
    Parts = #{
        detector => Watching,
        broadcast => complete(atoll_plumtree, Broadcast),
        discovery => Discovery,
        roster => case length(Names) > ?ROSTER of true -> off; false -> complete(atoll_roster, Roster) end
    },
    atoll_sim_world:new(#{
        rooms => [{overlay, atoll_overlay_core}, {program, atoll_bench_adcounter_node}],
        wiring => atoll_bench_adcounter_node,
        seed => Seed,
        config => fun(Node, Incarnation, NodeSeed) ->
            #{
                overlay => Parts#{self => Node, incarnation => Incarnation, seed => NodeSeed, strategy => Strategy, contacts => Contacts},
                program => #{
                    replica => #{self => Node, life => <<(erlang:phash2({Node, Incarnation}, 1 bsl 32)):64>>, seed => NodeSeed, options => Options},
                    role => case Node of Server -> server; _ -> client end,
                    seed => erlang:phash2({phone, NodeSeed}),
                    settings => Settings
                }
            }
        end
    }).

complete(Module, Given) ->
    {ok, Options} = atoll_options:complete(Module, Given),
    Options.

started([Server | Names], World0) ->
    %% The first is there before the others come to it.
    {_, World} = lists:foldl(
        fun(Node, {N, W}) -> {N + 1, atoll_sim_world:at(N * 1000 div ?STARTS_PER_S, fun(Running) -> atoll_sim_world:start(Node, Running) end, W)} end,
        {1, atoll_sim_world:start(Server, World0)},
        Names
    ),
    atoll_sim_world:run(length(Names) * 1000 div ?STARTS_PER_S, World).

pass(Ms, Progress, World0) when Ms > 1000 -> pass(Ms - 1000, Progress, pass(1000, Progress, World0));
pass(Ms, Progress, World0) ->
    World = atoll_sim_world:run(atoll_sim_world:now(World0) + Ms, World0),
    _ = Progress(atoll_sim_world:now(World)),
    World.

until_equal(Clients, Most, Progress, World0) ->
    World = pass(?STEP_MS, Progress, World0),
    #kept{seen = Seen} = atoll_sim_world:watched(World),
    case map_size(Seen) =:= Clients andalso is_equal(World) of
        true -> {atoll_sim_world:now(World), World};
        false ->
            case atoll_sim_world:now(World) >= Most of
                true -> {never, World};
                false -> until_equal(Clients, Most, Progress, World)
            end
    end.

is_equal(World) ->
    [First | Others] = atoll_sim_world:alive(World),
    Objects = fun(Node) ->
        Replica = atoll_bench_adcounter_node:replica(atoll_sim_world:state(Node, program, World)),
        [atoll_crdt_replica_core:object(Name, Replica) || Name <- atoll_crdt_replica_core:names(Replica)]
    end,
    Same = Objects(First),
    lists:all(fun(Node) -> Objects(Node) =:= Same end, Others).

counts(Ads, Replica) ->
    [adcounter_program:impressions(Ad, fun(Name) -> atoll_crdt_replica_core:value(Name, Replica) end) || Ad <- lists:seq(1, Ads)].

see(Now, Node, {room, program, {notice, {shown, _}}}, #kept{shown = Shown} = Kept) ->
    Kept#kept{shown = Shown#{Node => [Now | maps:get(Node, Shown, [])]}};
see(Now, Node, {room, program, {notice, seen}}, #kept{seen = Seen} = Kept) ->
    Kept#kept{seen = Seen#{Node => Now}};
see(Now, _, {room, program, {notice, disabled}}, Kept) ->
    Kept#kept{disabled_at = Now};
see(_, _, _, Kept) ->
    Kept.
