%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `detect': how soon the nodes hear of one that fell silent
%% with its sockets open, and whether anybody is buried who lives.
%%
%% While messages are lost and nodes pause, one node after another falls silent for
%% ever. Every node that was awake then and hears the verdict counts with the time
%% until it does. A minute later the silent node is started again, as a new life.
%% Whoever was awake and had a neighbour when it fell silent, and has neither died nor fallen silent
%% since, must have heard by then, also if it was paused meanwhile; otherwise it has
%% missed it, and counts as one that heard later than all others. Who was alone, as one that has just
%% started, is owed nothing: it is told who the members are when it has found them. A verdict on a node
%% that is not silent is a false death. Of pauses: at any moment so large a share of
%% the nodes is in one, and none twice in a row.
-module(atoll_sim_detect).

-export([run/1]).

-export_type([options/0, result/0]).

-type options() :: #{
    nodes := pos_integer(),
    %% The share of messages that is lost.
    loss := float(),
    %% How long a pause is, 0 for none, and what share of the nodes is in one.
    pause := non_neg_integer(),
    paused := float(),
    %% Virtual time, after the cluster has settled.
    minutes := pos_integer(),
    atom() => term()
}.

-type result() :: #{
    strategy := atom(),
    nodes := pos_integer(),
    seed := integer(),
    %% Nodes that fell silent, and how many of these somebody missed.
    silent := non_neg_integer(),
    missed := non_neg_integer(),
    %% None if so many have missed it.
    detect_ms_p50 := number() | none,
    detect_ms_p99 := number() | none,
    %% The first verdict on each.
    first_ms_p99 := number() | none,
    false_deaths := non_neg_integer(),
    false_deaths_per_hour := float(),
    messages_per_node_per_s := float(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    events_per_s := non_neg_integer()
}.

%% Between two nodes that fall silent, and how long each has to be heard of.
-define(SILENT_EVERY_MS, 20000).
-define(HEARD_MS, 60000).
%% The time of who has not heard, later than all others.
-define(MISSED_MS, (?HEARD_MS + 1)).
%% How often somebody is paused.
-define(PAUSE_STEP_MS, 100).

%% What the watcher keeps.
-record(seen, {
    %% Who is silent now.
    silent = #{} :: #{node() => []},
    %% Of each life that ended in silence: since when, who was awake and had a neighbour, who of them heard
    %% within the minute and how much later, and, when that is over, how many missed it.
    heard = #{} :: #{
        {node(), Life :: pos_integer()} => {integer(), #{node() => []}, #{node() => integer()}, non_neg_integer()}
    },
    %% Lives that were declared dead and were not.
    false = #{} :: #{{node(), pos_integer()} => []}
}).

-record(play, {
    cluster :: atoll_sim_cluster:cluster(),
    %% Who was paused when, newest first.
    rested = [] :: [{integer(), node()}],
    %% Pauses that are due but would not fill a node yet.
    owed = 0.0 :: float()
}).

%% @doc Runs the experiment.
-spec run(options()) -> {ok, result()} | {error, atoll_sim_cluster:error()}.
run(#{loss := Loss} = Options) ->
    Own = [loss, pause, paused, minutes],
    Watched = (maps:without(Own, Options))#{watch => {fun see/4, #seen{}}},
    atoll_sim_cluster:experiment(Watched, fun(New) ->
        Grown = atoll_sim_cluster:grow(New),
        play(Options, atoll_sim_cluster:update(fun(W) -> atoll_sim_world:set({loss, Loss}, W) end, Grown))
    end).

play(#{minutes := Minutes} = Options, Cluster0) ->
    World0 = atoll_sim_cluster:world(Cluster0),
    #{sent := Sent0} = atoll_sim_world:counters(World0),
    Begin = atoll_sim_world:now(World0),
    End = Begin + Minutes * 60000,
    #play{cluster = Cluster} = steps(Begin, Begin, End, Options, #play{cluster = Cluster0}),
    World = atoll_sim_cluster:world(Cluster),
    #{sent := Sent, events := Events} = atoll_sim_world:counters(World),
    #{strategy := Strategy, nodes := Nodes, seed := Seed} = atoll_sim_cluster:options(Cluster),
    #seen{heard = Heard, false = False} = atoll_sim_world:watched(World),
    Times = [maps:values(Of) ++ lists:duplicate(Missed, ?MISSED_MS) || {_, _, Of, Missed} <- maps:values(Heard)],
    Flat = lists:append(Times),
    First = [lists:min([?MISSED_MS | Of]) || Of <- Times],
    #{
        strategy => Strategy,
        nodes => Nodes,
        seed => Seed,
        silent => map_size(Heard),
        missed => length([Life || {Life, {_, _, _, Missed}} <- maps:to_list(Heard), Missed > 0]),
        detect_ms_p50 => percentile(Flat, 50),
        detect_ms_p99 => percentile(Flat, 99),
        first_ms_p99 => percentile(First, 99),
        false_deaths => map_size(False),
        false_deaths_per_hour => map_size(False) * 60 / Minutes,
        messages_per_node_per_s => (Sent - Sent0) * 1000 / (End - Begin) / Nodes,
        virtual_ms => atoll_sim_world:now(World),
        events => Events
    }.

percentile(Times, P) ->
    case atoll_sim_stats:percentile(Times, P) of
        ?MISSED_MS -> none;
        Ms -> Ms
    end.

steps(Now, _Begin, End, _Options, Play) when Now >= End ->
    Play;
steps(Now, Begin, End, Options, Play0) ->
    Play1 = rest(Options, Play0),
    IsTime = (Now - Begin) rem ?SILENT_EVERY_MS =:= 0 andalso Now + ?HEARD_MS =< End,
    #play{cluster = Cluster} =
        Play2 =
        case IsTime of
            true -> silence(Play1);
            false -> Play1
        end,
    Next = Now + ?PAUSE_STEP_MS,
    steps(Next, Begin, End, Options, Play2#play{cluster = atoll_sim_cluster:run(Next, Cluster)}).

%% Somebody falls silent, and comes back as a new life when all have heard.
silence(#play{cluster = Cluster0} = Play) ->
    Mortal = awake(Cluster0) -- atoll_sim_cluster:contacts(Cluster0),
    {Nodes, Cluster} = atoll_sim_cluster:random(1, Mortal, Cluster0),
    %% Nobody, if all are paused.
    Play#play{cluster = lists:foldl(fun silence_one/2, Cluster, Nodes)}.

silence_one(Node, Cluster) ->
    Start = atoll_sim_cluster:starter(Cluster),
    Names = atoll_sim_cluster:names(Cluster),
    atoll_sim_cluster:update(
        fun(W0) ->
            Life = atoll_overlay_core:incarnation(atoll_sim_world:state(Node, W0)),
            Paused = atoll_sim_world:pause(Node, W0),
            Awake = [{Other, atoll_sim_world:incarnation(Other, Paused)} || Other <- awake(Names, Paused), has_neighbour(Other, Paused)],
            W = atoll_sim_world:note(Node, {silent, Life, [Other || {Other, _} <- Awake]}, Paused),
            atoll_sim_world:at(
                atoll_sim_world:now(W) + ?HEARD_MS,
                fun(Then) ->
                    Over = {over, Life, missed({Node, Life}, Awake, Then)},
                    Start(Node, atoll_sim_world:kill(Node, atoll_sim_world:note(Node, Over, Then)))
                end,
                W
            )
        end,
        Cluster
    ).

%% Those of these lives that go on and have not heard.
missed(Silent, Lives, World) ->
    #seen{silent = AlsoSilent, heard = #{Silent := {_, _, Times, _}}} = atoll_sim_world:watched(World),
    [
        Node
     || {Node, Incarnation} <- Lives,
        not is_map_key(Node, Times),
        not is_map_key(Node, AlsoSilent),
        atoll_sim_world:status(Node, World) =/= dead,
        atoll_sim_world:incarnation(Node, World) =:= Incarnation
    ].

awake(Cluster) ->
    awake(atoll_sim_cluster:names(Cluster), atoll_sim_cluster:world(Cluster)).

has_neighbour(Node, World) ->
    atoll_overlay_core:neighbours(atoll_sim_world:state(Node, World)) =/= [].

%% Names are in order.
awake(Names, World) ->
    [Node || Node <- Names, atoll_sim_world:status(Node, World) =:= alive].

%% A few nodes pause for a while.
rest(#{pause := 0}, Play) ->
    Play;
rest(#{pause := Ms, paused := Share, nodes := Nodes}, #play{rested = Rested0, owed = Owed0} = Play) ->
    #play{cluster = Cluster0} = Play,
    Now = atoll_sim_cluster:now(Cluster0),
    Rested = lists:takewhile(fun({At, _}) -> At > Now - 2 * Ms end, Rested0),
    Owed = Owed0 + Nodes * Share * ?PAUSE_STEP_MS / Ms,
    Tired = maps:from_list([{Node, []} || {_, Node} <- Rested]),
    Ready = [Node || Node <- awake(Cluster0), not is_map_key(Node, Tired)],
    {Chosen, Cluster} = atoll_sim_cluster:random(trunc(Owed), Ready, Cluster0),
    Paused = atoll_sim_cluster:update(
        fun(W0) ->
            W = lists:foldl(fun atoll_sim_world:pause/2, W0, Chosen),
            atoll_sim_world:at(Now + Ms, fun(Then) -> lists:foldl(fun go_on/2, Then, Chosen) end, W)
        end,
        Cluster
    ),
    Play#play{cluster = Paused, rested = [{Now, Node} || Node <- Chosen] ++ Rested, owed = Owed - trunc(Owed)}.

%% One that fell silent meanwhile stays so.
go_on(Node, World) ->
    #seen{silent = Silent} = atoll_sim_world:watched(World),
    case Silent of
        #{Node := _} -> World;
        #{} -> atoll_sim_world:resume(Node, World)
    end.

see(Now, Node, {note, {silent, Life, Awake}}, #seen{silent = Silent, heard = Heard} = Seen) ->
    Fallen = {Now, maps:from_keys(Awake, []), #{}, 0},
    Seen#seen{silent = Silent#{Node => []}, heard = Heard#{{Node, Life} => Fallen}};
see(_Now, Node, {note, {over, Life, Missed}}, #seen{silent = Silent, heard = Heard} = Seen) ->
    #{{Node, Life} := {Since, Awake, Times, 0}} = Heard,
    Judged = {Since, Awake, Times, length(Missed)},
    Seen#seen{silent = maps:remove(Node, Silent), heard = Heard#{{Node, Life} := Judged}};
see(Now, Node, {notice, {dead, Of, Life}}, #seen{heard = Heard, false = False} = Seen) ->
    case Heard of
        #{{Of, Life} := {Since, Awake, Times, 0}} when is_map_key(Node, Awake), Now - Since =< ?HEARD_MS ->
            %% Who was started again meanwhile may hear once more.
            Earliest = maps:merge(#{Node => Now - Since}, Times),
            Seen#seen{heard = Heard#{{Of, Life} := {Since, Awake, Earliest, 0}}};
        #{{Of, Life} := _} ->
            %% Too late, or a newcomer, to which nothing is owed.
            Seen;
        #{} ->
            Seen#seen{false = False#{{Of, Life} => []}}
    end;
see(_Now, _Node, _Sight, Seen) ->
    Seen.
