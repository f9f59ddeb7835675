%% SPDX-License-Identifier: Apache-2.0
%% @doc Plays a fault script ({@link atoll_sim_script}) in a simulated cluster.
%%
%% The nodes run what nodes run, in one world: a script may do to the overlay, to groups and to
%% names what it likes, and expect of all of them.
%%
%% The deeds are those of the script's plan ({@link atoll_sim_plan}), which real nodes get too.
%% After the last of them everything heals and the cluster settles.
-module(atoll_sim_play).

-compile({no_auto_import, [now/0, nodes/1]}).

-export([run/2, check/1]).

-export_type([options/0, result/0, failure/0]).

-type options() :: #{
    %% In place of the script's.
    seed => integer(),
    %% See atoll_sim_cluster:options().
    trace => fun((integer(), node() | world, atoll_sim_world:sight()) -> _),
    messages => boolean(),
    progress => fun((integer()) -> _),
    %% Looks at the cluster when it has settled; what it returns is in the result.
    look => fun((atoll_sim_cluster:cluster()) -> term())
}.

-type failure() :: #{
    place := atoll_sim_script:place(),
    ms := non_neg_integer(),
    expectation := atoll_sim_step:expectation(),
    was := atoll_sim_expect:was()
}.

-type result() :: #{
    strategy := atom(),
    nodes := pos_integer(),
    seed := integer(),
    steps := non_neg_integer(),
    expectations := non_neg_integer(),
    failed := [failure()],
    %% When it has healed and settled, see atoll_sim_expect:facts().
    alive := non_neg_integer(),
    connected := float(),
    components := non_neg_integer(),
    symmetric := float(),
    active_min := non_neg_integer(),
    active_mean := float(),
    active_max := non_neg_integer(),
    delivered := float(),
    false_deaths := non_neg_integer(),
    %% How often a process was to be killed, and a simulated node has no such one.
    passed_over := non_neg_integer(),
    %% If the script has steps on groups, or on names: who sees which, when it has settled.
    groups => atoll_sim_expect:groups(),
    names => atoll_sim_expect:names(),
    looked => term(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    events_per_s := non_neg_integer()
}.

%% An island without contacts finds out in half a minute that it is one, and joins
%% within another.
-define(SETTLE_MS, 90000).

-record(play, {
    cluster :: atoll_sim_cluster:cluster(),
    begun :: atoll_sim_script:cluster(),
    plan :: atoll_sim_plan:plan(),
    %% Who starts at time 0.
    launched :: #{node() => []},
    %% Broadcasts to come, by time, and how many there were.
    sends = gb_trees:empty() :: gb_trees:tree({integer(), pos_integer()}, {node(), Left :: pos_integer(), Every :: non_neg_integer()}),
    send = 0 :: non_neg_integer(),
    messages = 0 :: non_neg_integer(),
    %% What the dead knew.
    memories = #{} :: #{node() => [node()]},
    %% Who leaves by which step: it stops by that one too.
    leaving = #{} :: #{node() => atoll_sim_script:place()},
    slow = [] :: [node()],
    expectations = 0 :: non_neg_integer(),
    failed = [] :: [failure()],
    passed_over = 0 :: non_neg_integer()
}).

%% @doc Whether the nodes that a script names are there, and its steps can be simulated.
-spec check(atoll_sim_script:script()) -> ok | {error, atoll_sim_script:error()}.
check(#{cluster := Begun} = Script) ->
    case [{Step, Place} || {_, Step, Place} <- maps:get(steps, Script), atoll_sim_step:is_about(lane, Step)] of
        [] ->
            {ok, Cluster} = atoll_sim_cluster:new(cluster_options(Begun, #{})),
            atoll_sim_script:check_names(Script, atoll_sim_cluster:names(Cluster));
        [{Step, Place} | _] ->
            {error, {none, Place, {refused, Step, "a simulated connection has no lanes; this is for real nodes with the carrier"}}}
    end.

%% @doc Plays a script. An expectation that does not hold is no error: it is in the
%% result.
-spec run(atoll_sim_script:script(), options()) ->
    {ok, result()} | {error, atoll_sim_script:error()}.
run(#{cluster := Begun0, steps := Steps} = Script, Options0) ->
    Begun = maps:merge(Begun0, maps:with([seed], Options0)),
    Options = Options0#{told => told(Script)},
    case check(Script) of
        ok ->
            {ok, _} = atoll_sim_cluster:experiment(cluster_options(Begun, Options), fun(Cluster) ->
                #play{cluster = Settled} = Play = play(Script, Begun, Cluster),
                Seen = maps:from_list([{looked, Look(Settled)} || #{look := Look} <- [Options]]),
                maps:merge(played(Play, Steps), Seen)
            end);
        {error, _} = Error ->
            Error
    end.

cluster_options(Begun, Options) ->
    maps:merge(
        maps:with(
            [nodes, strategy, contacts, formed, latency, rate, queue, seed, options, detector, broadcast, discovery, roster, groups, directory],
            Begun
        ),
        (maps:with([trace, messages, progress, told], Options))#{
            watch => {fun atoll_sim_expect:see/4, atoll_sim_expect:new()}
        }
    ).

%% As on nodes, groups say which the cliques are, if there are some.
told(#{cluster := #{strategy := cliques}, steps := Steps}) -> not has(group, Steps);
told(_Script) -> true.

has(Kind, Steps) -> lists:any(fun({_, Step, _}) -> atoll_sim_step:is_about(Kind, Step) end, Steps).

play(Script, #{seed := Seed} = Begun, Cluster) ->
    {Nodes, Plan} = atoll_sim_plan:script(Script, atoll_sim_cluster:names(Cluster), Seed),
    Begins = network(#play{cluster = Cluster, begun = Begun, plan = Plan, launched = maps:from_keys(Nodes, [])}),
    Play = advance(with_cluster(fun(C) -> atoll_sim_cluster:launch(Nodes, C) end, Begins)),
    with_cluster(fun(C) -> atoll_sim_cluster:wait(?SETTLE_MS, C) end, heal(Play)).

played(#play{cluster = Cluster, expectations = Expectations, failed = Failed, passed_over = PassedOver}, Steps) ->
    #{strategy := Strategy, nodes := Nodes, seed := Seed} = atoll_sim_cluster:options(Cluster),
    Views = atoll_sim_cluster:views(Cluster),
    Facts = atoll_sim_expect:facts(Views, atoll_sim_cluster:watched(Cluster)),
    maps:merge(
        Facts#{
            strategy => Strategy,
            nodes => Nodes,
            seed => Seed,
            steps => length(Steps),
            expectations => Expectations,
            failed => lists:reverse(Failed),
            passed_over => PassedOver,
            virtual_ms => atoll_sim_cluster:now(Cluster),
            events => maps:get(events, atoll_sim_cluster:counters(Cluster))
        },
        maps:from_list(
            [{groups, atoll_sim_expect:groups(Views)} || has(group, Steps)] ++
                [{names, atoll_sim_expect:names(Views)} || has(name, Steps)]
        )
    ).

%% What comes next, until nothing does. Of one moment, what is in the script comes first.
advance(#play{plan = Plan0, sends = Sends} = Play) ->
    NextSend =
        case gb_trees:is_empty(Sends) of
            true -> none;
            false -> {ok, element(1, element(1, gb_trees:smallest(Sends)))}
        end,
    case {atoll_sim_plan:due(Plan0), NextSend} of
        {none, none} ->
            Play;
        {{ok, Ms}, {ok, Earlier}} when Earlier < Ms ->
            advance(send(Play));
        {none, {ok, _}} ->
            advance(send(Play));
        _ ->
            {Ms, Deeds, {Step, Place}, Plan} = atoll_sim_plan:next(Plan0),
            Then = begin_with(Step, run_to(Ms, Play#play{plan = Plan})),
            advance(lists:foldl(fun(Deed, P) -> deed(Deed, Place, Ms, started(Deed, P)) end, Then, Deeds))
    end.

%% To whom something happens has begun: all who are to start run at time 0, though in a world
%% of many they start one after the other.
started(Deed, #play{launched = Launched} = Play) when is_tuple(Deed), element(1, Deed) =/= passed_over, is_list(element(2, Deed)) ->
    World = atoll_sim_cluster:world(Play#play.cluster),
    Late = [Node || Node <- element(2, Deed), is_map_key(Node, Launched), not atoll_sim_world:has_started(Node, World)],
    lists:foldl(fun(Node, P) -> start(Node, fresh, P) end, Play, Late);
started(_Deed, Play) ->
    Play.

run_to(Ms, Play) ->
    with_cluster(fun(C) -> atoll_sim_cluster:run(Ms, C) end, Play).

%% What a step brings with it later is not told, and an expectation with what came of it.
begin_with(later, Play) -> Play;
begin_with({expect, _}, Play) -> Play;
begin_with({kill_process, _, _} = Step, #play{passed_over = N} = Play) -> note(world, {fault, Step}, Play#play{passed_over = N + 1});
begin_with(Step, Play) -> note(world, {fault, Step}, Play).

send(#play{sends = Sends0, messages = Id} = Play0) ->
    {{Ms, _}, {Node, Left, Every}, Sends} = gb_trees:take_smallest(Sends0),
    Play = run_to(Ms, Play0#play{sends = Sends}),
    Next =
        case Left of
            1 -> Play;
            _ -> send_later(Ms + Every, {Node, Left - 1, Every}, Play)
        end,
    case is_alive(Node, Play) of
        true -> with_world(fun(World) -> atoll_sim_deliveries:send(Id + 1, Node, World) end, Next#play{messages = Id + 1});
        false -> Next
    end.

send_later(Ms, What, #play{sends = Sends, send = N} = Play) ->
    Play#play{sends = gb_trees:insert({Ms, N + 1}, What, Sends), send = N + 1}.

%% Deeds

deed({start, Nodes, Memory}, _Place, _Ms, Play) ->
    lists:foldl(fun(Node, P) -> start(Node, Memory, P) end, Play, Nodes);
deed({restart, Nodes, Memory}, _Place, _Ms, Play) ->
    lists:foldl(fun(Node, P) -> start(Node, Memory, P) end, kill(Nodes, Play), Nodes);
deed({kill, Nodes}, Place, _Ms, #play{leaving = Leaving} = Play) ->
    Left = [Node || Node <- Nodes, maps:get(Node, Leaving, stays) =:= Place],
    kill(Nodes, lists:foldl(fun(Node, P) -> note(Node, left, P) end, Play, Left));
deed({leave, Nodes}, Place, _Ms, #play{leaving = Leaving} = Play) ->
    world(
        fun(Node, World) -> atoll_sim_world:cast(Node, leave, World) end,
        Nodes,
        Play#play{leaving = maps:merge(Leaving, maps:from_keys(Nodes, Place))}
    );
deed({source, Nodes}, _Place, _Ms, Play) ->
    with_cluster(fun(C) -> atoll_sim_cluster:source(Nodes, C) end, Play);
deed({pause, Nodes}, _Place, _Ms, Play) ->
    world(fun atoll_sim_world:pause/2, Nodes, Play);
deed({stall, Nodes}, _Place, _Ms, Play) ->
    world(fun atoll_sim_world:stall/2, Nodes, Play);
deed({resume, Nodes}, _Place, _Ms, Play) ->
    world(fun atoll_sim_world:resume/2, Nodes, Play);
deed({slow, Nodes, Each}, _Place, _Ms, #play{slow = Slow} = Play) ->
    Slowed = world(fun(Node, World) -> atoll_sim_world:slow(Node, Each, World) end, [N || N <- Nodes, is_alive(N, Play)], Play),
    Slowed#play{slow = lists:usort(Nodes ++ Slow)};
deed({black_hole, One, Other}, _Place, _Ms, Play) ->
    set({cut, Other, One}, set({cut, One, Other}, Play));
deed({fill, One, Other}, _Place, _Ms, Play) ->
    set({mend, Other, One}, set({mend, One, Other}, Play));
deed({group, Nodes, Operation}, _Place, _Ms, Play) ->
    world(fun(Node, World) -> atoll_sim_node:ask_group(Node, Operation, World) end, Nodes, Play);
deed({name, Nodes, Operation}, _Place, _Ms, Play) ->
    world(fun(Node, World) -> atoll_sim_node:ask_name(Node, Operation, World) end, Nodes, Play);
deed({broadcast, Nodes, Count, Every}, _Place, Ms, Play) ->
    lists:foldl(fun(Node, P) -> send_later(Ms, {Node, Count, Every}, P) end, Play, Nodes);
deed({kill_process, Nodes, {any_name, {group, Group}}, Which}, _Place, _Ms, #play{passed_over = N} = Play) ->
    World = atoll_sim_cluster:world(Play#play.cluster),
    Named = lists:keysort(1, [{Name, Node} || Node <- Nodes, Name <- atoll_sim_node:own_names(Node, Group, World)]),
    case atoll_sim_who:from(Which, Named) of
        [] -> Play;
        [{Name, Node} | _] -> with_world(fun(W) -> atoll_sim_node:kill_named(Node, Group, Name, W) end, Play#play{passed_over = N - 1})
    end;
deed({kill_process, _, _, _}, _Place, _Ms, Play) ->
    Play;
deed({passed_over, _, _, _}, _Place, _Ms, Play) ->
    Play;
deed({other, {expect, Expectation}}, Place, Ms, Play) ->
    expect(Expectation, Place, Ms, Play);
deed({other, Setting}, _Place, _Ms, Play) ->
    %% Of the network: loss, duplicate, reorder, latency.
    set(Setting, Play);
deed(heal, _Place, _Ms, Play) ->
    heal(Play);
deed(Setting, _Place, _Ms, Play) ->
    %% A partition, a cut or its end, a loss, a delay or bulk between some.
    set(Setting, Play).

heal(#play{slow = Slow} = Play) ->
    Still = [Node || {Node, Status} <- nodes(Play), Status =:= paused orelse Status =:= stalled],
    Resumed = world(fun atoll_sim_world:resume/2, Still, network(set(heal, Play))),
    Quick = world(
        fun(Node, World) -> atoll_sim_world:slow(Node, 0, World) end,
        [Node || Node <- Slow, is_alive(Node, Resumed)],
        Resumed
    ),
    Quick#play{slow = []}.

%% The network as it was in the beginning.
network(#play{begun = #{latency := Latency, loss := Loss, duplicate := Duplicate}} = Play) ->
    lists:foldl(fun set/2, Play, [{latency, Latency}, {loss, Loss}, {duplicate, Duplicate}]).

kill(Nodes, #play{cluster = Cluster, memories = Memories0} = Play) ->
    Living = [Node || Node <- Nodes, is_alive(Node, Play)],
    Memories = lists:foldl(
        fun(Node, M) -> M#{Node => atoll_overlay_core:remembered(atoll_sim_cluster:overlay(Node, Cluster))} end,
        Memories0,
        Living
    ),
    world(fun atoll_sim_world:kill/2, Living, Play#play{memories = Memories}).

%% One that is alive already stays as it is.
start(Node, Memory, #play{memories = Memories} = Play) ->
    Known =
        case Memory of
            _ when Memory =/= remembered -> Memory;
            remembered -> {remembered, maps:get(Node, Memories, [])}
        end,
    case is_alive(Node, Play) of
        true -> Play;
        false -> with_cluster(fun(Cluster) -> atoll_sim_cluster:start(Node, Known, Cluster) end, Play)
    end.

%% Expectations

expect(Expectation, Place, Ms, #play{cluster = Cluster, expectations = Count, failed = Failed} = Play0) ->
    Play = Play0#play{expectations = Count + 1},
    case atoll_sim_expect:holds(Expectation, atoll_sim_cluster:views(Cluster), atoll_sim_cluster:watched(Cluster)) of
        true ->
            note(world, {holds, Expectation}, Play);
        {false, Was} ->
            Failure = #{place => Place, ms => Ms, expectation => Expectation, was => Was},
            note(world, {fails, Expectation, Was}, Play#play{failed = [Failure | Failed]})
    end.

%% The world, through the cluster

nodes(#play{cluster = Cluster}) -> atoll_sim_world:nodes(atoll_sim_cluster:world(Cluster)).

is_alive(Node, #play{cluster = Cluster}) ->
    atoll_sim_world:status(Node, atoll_sim_cluster:world(Cluster)) =/= dead.

set(Setting, Play) -> with_world(fun(World) -> atoll_sim_world:set(Setting, World) end, Play).

note(Where, Remark, Play) -> with_world(fun(World) -> atoll_sim_world:note(Where, Remark, World) end, Play).

world(Fun, Nodes, Play) -> with_world(fun(World) -> lists:foldl(Fun, World, Nodes) end, Play).

with_world(Fun, Play) -> with_cluster(fun(Cluster) -> atoll_sim_cluster:update(Fun, Cluster) end, Play).

with_cluster(Fun, #play{cluster = Cluster} = Play) -> Play#play{cluster = Fun(Cluster)}.
