%% @doc Plays a fault script ({@link atoll_sim_script}) in a simulated cluster.
%%
%% What is to be done stands in an agenda: the script's steps, and what they bring
%% with them (the kills of a churn, the messages of a broadcast, the end of a
%% pause). After the last of it everything heals and the cluster settles.
%%
%% The overlay knows no groups: a script with steps on groups is played once more
%% by {@link atoll_sim_groups}, with the same choices of nodes.
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
    %% Steps that mean nothing to a simulated node.
    passed_over := non_neg_integer(),
    %% If the script has steps on groups: who sees which, when it has settled.
    groups => atoll_sim_groups:groups(),
    looked => term(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    events_per_s := non_neg_integer()
}.

%% An island without contacts finds out in half a minute that it is one, and joins
%% within another.
-define(SETTLE_MS, 90000).
%% How long a node that leaves has to say so.
-define(LEAVE_MS, 1000).

-type item() ::
    {step, atoll_sim_step:step(), atoll_sim_script:place()}
    | {churn, Share :: number(), Until :: integer()}
    | {broadcast, node(), Left :: pos_integer(), Every :: non_neg_integer()}
    | {resume, [node()]}
    | {mend, From :: [node()], To :: [node()]}
    | {gone, [{node(), Incarnation :: pos_integer()}]}.

-record(play, {
    cluster :: atoll_sim_cluster:cluster(),
    begun :: atoll_sim_script:cluster(),
    rand :: rand:state(),
    %% By time; of one time in the order in which it came in.
    agenda :: gb_trees:tree({integer(), pos_integer()}, item()),
    items = 0 :: non_neg_integer(),
    %% What the dead knew.
    memories = #{} :: #{node() => [node()]},
    churn = atoll_sim_churn:new() :: atoll_sim_churn:churn(),
    messages = 0 :: non_neg_integer(),
    %% Until when who is paused, or stands still, stays so.
    paused = #{} :: #{node() => integer() | forever},
    slow = [] :: [node()],
    failed = [] :: [failure()]
}).

%% @doc Whether the nodes that a script names are there, and its steps can be simulated.
-spec check(atoll_sim_script:script()) -> ok | {error, atoll_sim_script:error()}.
check(#{cluster := Begun} = Script) ->
    case [{Step, Place} || {_, {lane, _, _, _, _} = Step, Place} <- maps:get(steps, Script)] of
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
run(#{cluster := Begun0, steps := Steps} = Script, Options) ->
    Begun = maps:merge(Begun0, maps:with([seed], Options)),
    case check(Script) of
        ok ->
            {ok, _} = atoll_sim_cluster:experiment(cluster_options(Begun, Options), fun(Cluster) ->
                #play{cluster = Settled} = Play = play(Steps, Begun, Cluster),
                Seen = maps:from_list([{looked, Look(Settled)} || #{look := Look} <- [Options]]),
                lists:foldl(fun maps:merge/2, played(Play, Steps), [Seen, groups(Script, Options, Cluster)])
            end);
        {error, _} = Error ->
            Error
    end.

groups(#{steps := Steps} = Script, Options, Cluster) ->
    case [Step || {_, {group, _, _} = Step, _} <- Steps] of
        [] ->
            #{};
        _ ->
            Names = atoll_sim_cluster:names(Cluster),
            #{groups := Groups} = atoll_sim_groups:run(Script, (maps:with([seed], Options))#{nodes => Names}),
            #{groups => Groups}
    end.

cluster_options(Begun, Options) ->
    maps:merge(
        maps:with([nodes, strategy, contacts, formed, latency, rate, queue, seed, options, detector, broadcast, discovery, roster], Begun),
        (maps:with([trace, messages, progress], Options))#{
            watch => {fun atoll_sim_expect:see/4, atoll_sim_expect:new()}
        }
    ).

play(Steps, #{seed := Seed, start := Who} = Begun, Cluster) ->
    Play0 = #play{
        cluster = Cluster,
        begun = Begun,
        rand = rand:seed_s(exsss, erlang:phash2({play, Seed})),
        agenda = gb_trees:empty()
    },
    {Nodes, Play1} = targets({start, Who}, network(Play0)),
    Launched = with_cluster(fun(C) -> atoll_sim_cluster:launch(Nodes, C) end, Play1),
    Play = lists:foldl(fun({Ms, Step, Place}, P) -> later(Ms, {step, Step, Place}, P) end, Launched, Steps),
    with_cluster(fun(C) -> atoll_sim_cluster:wait(?SETTLE_MS, C) end, heal(agenda(Play))).

played(#play{cluster = Cluster, failed = Failed}, Steps) ->
    #{strategy := Strategy, nodes := Nodes, seed := Seed} = atoll_sim_cluster:options(Cluster),
    Facts = atoll_sim_expect:facts(atoll_sim_cluster:neighbours(Cluster), atoll_sim_cluster:watched(Cluster)),
    Facts#{
        strategy => Strategy,
        nodes => Nodes,
        seed => Seed,
        steps => length(Steps),
        expectations => length([E || {_, {expect, E}, _} <- Steps]),
        failed => lists:reverse(Failed),
        passed_over => length([W || {_, {kill_process, _, W}, _} <- Steps]),
        virtual_ms => atoll_sim_cluster:now(Cluster),
        events => maps:get(events, atoll_sim_cluster:counters(Cluster))
    }.

%% The agenda

later(Ms, Item, #play{agenda = Agenda, items = N} = Play) ->
    Play#play{agenda = gb_trees:insert({Ms, N + 1}, Item, Agenda), items = N + 1}.

agenda(#play{agenda = Agenda0} = Play0) ->
    case gb_trees:is_empty(Agenda0) of
        true ->
            Play0;
        false ->
            {{Ms, _}, Item, Agenda} = gb_trees:take_smallest(Agenda0),
            Play = with_cluster(fun(C) -> atoll_sim_cluster:run(Ms, C) end, Play0#play{agenda = Agenda}),
            agenda(item(Item, Ms, Play))
    end.

item({step, {expect, Expectation}, Place}, Ms, Play) ->
    expect(Expectation, Place, Ms, Play);
item({step, Step, _Place}, _Ms, Play) ->
    step(Step, note(world, {fault, Step}, Play));
item({resume, Nodes}, Ms, #play{paused = Paused} = Play) ->
    %% Not in a longer pause. No time is after `forever': numbers are less than atoms.
    resume([Node || Node <- Nodes, maps:get(Node, Paused, forever) =< Ms], Play);
item({mend, _, _} = Mend, _Ms, Play) ->
    set(Mend, Play);
item({gone, Lives}, _Ms, Play) ->
    %% Who was started again meanwhile has not left.
    Living = [Node || {Node, _} = Life <- Lives, is_alive(Node, Play), life(Node, Play) =:= Life],
    kill(Living, lists:foldl(fun(Node, P) -> note(Node, left, P) end, Play, Living));
item({broadcast, Node, Left, Every}, Ms, #play{messages = Id} = Play) ->
    Next =
        case Left of
            1 -> Play;
            _ -> later(Ms + Every, {broadcast, Node, Left - 1, Every}, Play)
        end,
    case is_alive(Node, Play) of
        true ->
            Send = fun(World) -> atoll_sim_deliveries:send(Id + 1, Node, World) end,
            with_world(Send, Next#play{messages = Id + 1});
        false ->
            Next
    end;
item({churn, _Share, Until}, Ms, Play) when Ms >= Until ->
    Play;
item({churn, Share, Until} = Churn, Ms, Play) ->
    churn(Share, later(atoll_sim_churn:next_ms(Ms, Until), Churn, Play)).

%% Steps

step(heal, Play) -> heal(Play);
step({start, _} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    lists:foldl(fun(Node, P) -> start(Node, fresh, P) end, Play, Nodes);
step({kill, _} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    kill(Nodes, Play);
step({restart, _, Memory} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    Dead = kill([Node || Node <- Nodes, is_alive(Node, Play)], Play),
    lists:foldl(fun(Node, P) -> start(Node, Memory, P) end, Dead, Nodes);
step({source, Who}, Play0) ->
    {Nodes, Play} = resolve(Who, Play0),
    with_cluster(fun(C) -> atoll_sim_cluster:source(Nodes, C) end, Play);
step({leave, _} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    Leaving = world(fun(Node, World) -> atoll_sim_world:cast(Node, leave, World) end, Nodes, Play),
    later(now(Leaving) + ?LEAVE_MS, {gone, [life(Node, Leaving) || Node <- Nodes]}, Leaving);
step({Still, _} = Step, Play0) when Still =:= pause; Still =:= stall ->
    {Nodes, Play} = targets(Step, Play0),
    stand_still(Still, Nodes, forever, Play);
step({Still, _, Ms} = Step, Play0) when Still =:= pause; Still =:= stall ->
    {Nodes, Play} = targets(Step, Play0),
    Until = now(Play) + Ms,
    later(Until, {resume, Nodes}, stand_still(Still, Nodes, Until, Play));
step({resume, _} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    resume(Nodes, Play);
step({slow, _, Ms} = Step, #play{slow = Slow} = Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    Slowed = world(fun(Node, World) -> atoll_sim_world:slow(Node, Ms, World) end, Nodes, Play),
    Slowed#play{slow = lists:usort(Nodes ++ Slow)};
step({partition, Whos}, #play{rand = Rand0} = Play) ->
    {Parts, Rand} = atoll_sim_who:parts(Whos, living_and_dead(Play), contacts(Play), Rand0),
    set({partition, Parts}, Play#play{rand = Rand});
step({cut, From, To}, Play0) ->
    {A, B, Play} = resolve_two(From, To, Play0),
    set({cut, A, B}, Play);
step({cut, From, To, Ms}, Play0) ->
    {A, B, Play} = resolve_two(From, To, Play0),
    later(now(Play) + Ms, {mend, A, B}, set({cut, A, B}, Play));
step({black_hole, One, Other}, Play0) ->
    {A, B, Play} = resolve_two(One, Other, Play0),
    set({cut, B, A}, set({cut, A, B}, Play));
step({black_hole, One, Other, Ms}, Play0) ->
    {A, B, Play} = resolve_two(One, Other, Play0),
    Until = now(Play) + Ms,
    later(Until, {mend, B, A}, later(Until, {mend, A, B}, set({cut, B, A}, set({cut, A, B}, Play))));
step({Between, From, To, HowMuch}, Play0) when Between =:= delay; Between =:= bulk; Between =:= loss ->
    {A, B, Play} = resolve_two(From, To, Play0),
    set({Between, A, B, HowMuch}, Play);
step({kill_process, _, _}, Play) ->
    Play;
step({group, _, _}, Play) ->
    Play;
step({churn, Share, Ms}, Play) ->
    later(now(Play), {churn, Share, now(Play) + Ms}, Play);
step({broadcast, _, Count, Every} = Step, Play0) ->
    {Nodes, Play} = targets(Step, Play0),
    lists:foldl(fun(Node, P) -> later(now(P), {broadcast, Node, Count, Every}, P) end, Play, Nodes);
step(Setting, Play) ->
    %% Of the network: loss, duplicate, reorder, latency.
    set(Setting, Play).

resolve_two(From, To, Play0) ->
    {A, Play1} = resolve(From, Play0),
    {B, Play} = resolve(To, Play1),
    {A, B, Play}.

%% Of several pauses the longest counts.
stand_still(Still, Nodes, Until, #play{paused = Paused0} = Play) ->
    Paused = lists:foldl(fun(Node, P) -> P#{Node => max(Until, maps:get(Node, P, Until))} end, Paused0, Nodes),
    Stop =
        case Still of
            pause -> fun atoll_sim_world:pause/2;
            stall -> fun atoll_sim_world:stall/2
        end,
    world(Stop, Nodes, Play#play{paused = Paused}).

resume(Nodes, #play{paused = Paused} = Play) ->
    world(fun atoll_sim_world:resume/2, Nodes, Play#play{paused = maps:without(Nodes, Paused)}).

heal(#play{slow = Slow, agenda = Agenda} = Play) ->
    Still = [Node || {Node, Status} <- nodes(Play), Status =:= paused orelse Status =:= stalled],
    Resumed = resume(Still, network(set(heal, Play))),
    Quick = world(
        fun(Node, World) -> atoll_sim_world:slow(Node, 0, World) end,
        [Node || Node <- Slow, is_alive(Node, Resumed)],
        Resumed
    ),
    Kept = [Entry || {_, Item} = Entry <- gb_trees:to_list(Agenda), not is_churn(Item)],
    Quick#play{slow = [], churn = atoll_sim_churn:new(), agenda = gb_trees:from_orddict(Kept)}.

is_churn({churn, _, _}) -> true;
is_churn(_) -> false.

%% The network as it was in the beginning.
network(#play{begun = #{latency := Latency, loss := Loss, duplicate := Duplicate}} = Play) ->
    lists:foldl(fun set/2, Play, [{latency, Latency}, {loss, Loss}, {duplicate, Duplicate}]).

churn(Share, #play{churn = Churn0} = Play0) ->
    Awake = length([Node || {Node, alive} <- nodes(Play0)]),
    {Killed, Back, Play1, Churn} = atoll_sim_churn:step(
        Share,
        Awake,
        fun(Node) -> is_alive(Node, Play0) end,
        fun(Count) -> resolve({random, Count}, Play0) end,
        Churn0
    ),
    lists:foldl(fun(Node, P) -> start(Node, fresh, P) end, kill(Killed, Play1#play{churn = Churn}), Back).

kill(Nodes, #play{cluster = Cluster, memories = Memories0, paused = Paused} = Play) ->
    Memories = lists:foldl(
        fun(Node, M) -> M#{Node => atoll_overlay_core:remembered(atoll_sim_cluster:overlay(Node, Cluster))} end,
        Memories0,
        Nodes
    ),
    world(fun atoll_sim_world:kill/2, Nodes, Play#play{memories = Memories, paused = maps:without(Nodes, Paused)}).

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

expect(Expectation, Place, Ms, #play{cluster = Cluster, failed = Failed} = Play) ->
    Graph = atoll_sim_cluster:neighbours(Cluster),
    case atoll_sim_expect:holds(Expectation, Graph, atoll_sim_cluster:watched(Cluster)) of
        true ->
            note(world, {holds, Expectation}, Play);
        {false, Was} ->
            Failure = #{place => Place, ms => Ms, expectation => Expectation, was => Was},
            note(world, {fails, Expectation, Was}, Play#play{failed = [Failure | Failed]})
    end.

%% The world, through the cluster

targets(Step, #play{rand = Rand0} = Play) ->
    {Nodes, Rand} = atoll_sim_who:targets(Step, living_and_dead(Play), contacts(Play), Rand0),
    {Nodes, Play#play{rand = Rand}}.

resolve(Who, #play{rand = Rand0} = Play) ->
    {Nodes, Rand} = atoll_sim_who:resolve(Who, living_and_dead(Play), contacts(Play), Rand0),
    {Nodes, Play#play{rand = Rand}}.

living_and_dead(#play{cluster = Cluster}) ->
    World = atoll_sim_cluster:world(Cluster),
    [
        case atoll_sim_world:status(Node, World) of
            dead -> {Node, dead};
            _ -> {Node, alive}
        end
     || Node <- atoll_sim_cluster:names(Cluster)
    ].

contacts(#play{cluster = Cluster}) -> atoll_sim_cluster:contacts(Cluster).

nodes(#play{cluster = Cluster}) -> atoll_sim_world:nodes(atoll_sim_cluster:world(Cluster)).

is_alive(Node, #play{cluster = Cluster}) ->
    atoll_sim_world:status(Node, atoll_sim_cluster:world(Cluster)) =/= dead.

life(Node, #play{cluster = Cluster}) ->
    {Node, atoll_sim_world:incarnation(Node, atoll_sim_cluster:world(Cluster))}.

now(#play{cluster = Cluster}) -> atoll_sim_cluster:now(Cluster).

set(Setting, Play) -> with_world(fun(World) -> atoll_sim_world:set(Setting, World) end, Play).

note(Where, Remark, Play) -> with_world(fun(World) -> atoll_sim_world:note(Where, Remark, World) end, Play).

world(Fun, Nodes, Play) -> with_world(fun(World) -> lists:foldl(Fun, World, Nodes) end, Play).

with_world(Fun, Play) -> with_cluster(fun(Cluster) -> atoll_sim_cluster:update(Fun, Cluster) end, Play).

with_cluster(Fun, #play{cluster = Cluster} = Play) -> Play#play{cluster = Fun(Cluster)}.
