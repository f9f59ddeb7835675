%% @doc Plays a fault script on s_groups in virtual time: the group protocol of
%% real nodes ({@link atoll_group_core}), on simulated ones, and who is in which
%% group in the end.
%%
%% What a script does to nodes and to the network is done; steps of the overlay
%% (broadcasts, expectations) and process kills are passed over and counted. In
%% the end everything heals and the members have half a minute to agree.
-module(atoll_sim_groups).

-export([run/2, agree/1]).

-export_type([options/0, result/0, groups/0]).

-type options() :: #{
    %% Their names, in order; `n1' and so on unless told.
    nodes => [node(), ...],
    %% In place of the script's.
    seed => integer()
}.

-type groups() :: #{node() => [{Name :: atom(), Members :: [node()]}]}.
%% What each living node sees.

-type result() :: #{
    groups := groups(),
    %% Whether all see the same.
    agree := boolean(),
    %% In the order in which they came.
    answers := [{node(), atoll_sim_step:operation([node()]), Answer :: term()}],
    passed_over := non_neg_integer()
}.

%% What is seen of the world.
-record(seen, {
    groups = #{} :: groups(),
    asked = #{} :: #{pos_integer() => {node(), atoll_sim_step:operation([node()])}},
    %% Newest first.
    answers = [] :: [{pos_integer(), Answer :: term()}]
}).

-define(SETTLE_MS, 30000).

%% @doc Plays a script.
-spec run(atoll_sim_script:script(), options()) -> result().
run(#{cluster := #{nodes := Count, seed := Seed0, latency := Latency} = Cluster} = Script, Options) ->
    Nodes = maps:get(nodes, Options, [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)]),
    Seed = maps:get(seed, Options, Seed0),
    {ok, Config} = atoll_config:new([], false),
    Empty = atoll_sim_world:new(#{
        protocol => atoll_group_core,
        config => fun(Name, Incarnation, S) ->
            #{self => Name, incarnation => Incarnation, seed => S, options => atoll_config:group(Config)}
        end,
        seed => Seed,
        latency => Latency,
        watch => {fun see/4, #seen{}}
    }),
    {Started, Plan} = atoll_sim_plan:script(Script, Nodes, Seed),
    World0 = network(Cluster, start(Started, Empty)),
    {World1, PassedOver} = play(Plan, Cluster, World0, 0),
    World = atoll_sim_world:run(atoll_sim_world:now(World1) + ?SETTLE_MS, heal(Cluster, World1)),
    #seen{groups = Groups, asked = Asked, answers = Newest} = atoll_sim_world:watched(World),
    Answers = [
        begin
            #{Id := {Node, Operation}} = Asked,
            {Node, Operation, Answer}
        end
     || {Id, Answer} <- lists:reverse(Newest)
    ],
    #{groups => Groups, agree => agree(Groups), answers => Answers, passed_over => PassedOver}.

%% @doc Whether every living member of a group that somebody sees sees the same.
-spec agree(groups()) -> boolean().
agree(Groups) ->
    lists:all(
        fun({Name, Members} = Group) ->
            lists:all(
                fun(Member) ->
                    case Groups of
                        #{Member := Own} -> lists:keyfind(Name, 1, Own) =:= Group;
                        #{} -> true
                    end
                end,
                Members
            )
        end,
        lists:usort(lists:append(maps:values(Groups)))
    ) andalso
        lists:all(
            fun({Node, Own}) -> lists:all(fun({_, Members}) -> lists:member(Node, Members) end, Own) end,
            maps:to_list(Groups)
        ).

see(_Now, Node, {started, _}, #seen{groups = Groups} = Seen) ->
    Seen#seen{groups = Groups#{Node => []}};
see(_Now, Node, killed, #seen{groups = Groups} = Seen) ->
    Seen#seen{groups = maps:remove(Node, Groups)};
see(_Now, Node, {deed, {publish, Own}}, #seen{groups = Groups} = Seen) ->
    Seen#seen{groups = Groups#{Node => lists:sort([{Name, Members} || {Name, _, Members} <- Own])}};
see(_Now, world, {note, {asked, Id, Node, Operation}}, #seen{asked = Asked} = Seen) ->
    Seen#seen{asked = Asked#{Id => {Node, Operation}}};
see(_Now, _Node, {reply, Id, Answer}, #seen{answers = Answers} = Seen) ->
    Seen#seen{answers = [{Id, Answer} | Answers]};
see(_Now, _Where, _Sight, Seen) ->
    Seen.

play(Plan0, Cluster, World0, PassedOver) ->
    case atoll_sim_plan:next(Plan0) of
        {Ms, Deeds, _Place, Plan} ->
            World1 = atoll_sim_world:run(Ms, World0),
            Played = [Deed || Deed <- Deeds, not is_passed_over(Deed)],
            World = lists:foldl(fun(Deed, W) -> deed(Deed, Cluster, W) end, World1, Played),
            play(Plan, Cluster, World, PassedOver + length(Deeds) - length(Played));
        none ->
            {World0, PassedOver}
    end.

is_passed_over({kill_process, _, _, _}) -> true;
is_passed_over({broadcast, _, _, _}) -> true;
is_passed_over({other, {expect, _}}) -> true;
is_passed_over(_) -> false.

deed({start, Nodes, _Memory}, _, World) ->
    start(Nodes, World);
deed({restart, Nodes, _Memory}, _, World) ->
    start(Nodes, kill(Nodes, World));
deed({kill, Nodes}, _, World) ->
    kill(Nodes, World);
deed({Passed, _}, _, World) when Passed =:= leave; Passed =:= source; Passed =:= stall ->
    World;
deed({passed_over, _, _, _}, _, World) ->
    World;
deed({pause, Nodes}, _, World) ->
    lists:foldl(fun atoll_sim_world:pause/2, World, Nodes);
deed({resume, Nodes}, _, World) ->
    lists:foldl(fun atoll_sim_world:resume/2, World, Nodes);
deed({slow, Nodes, Ms}, _, World) ->
    lists:foldl(fun(Node, W) -> atoll_sim_world:slow(Node, Ms, W) end, World, Nodes);
deed({group, Nodes, Operation}, _, World) ->
    lists:foldl(fun(Node, W) -> ask(Node, Operation, W) end, World, Nodes);
deed(heal, Cluster, World) ->
    heal(Cluster, World);
deed({other, Setting}, _, World) ->
    set(Setting, World);
deed({black_hole, One, Other}, _, World) ->
    set({cut, Other, One}, set({cut, One, Other}, World));
deed({fill, One, Other}, _, World) ->
    set({mend, Other, One}, set({mend, One, Other}, World));
deed(Setting, _, World) ->
    %% A partition, a cut or its end, a loss or a delay between some.
    set(Setting, World).

%% What s_group asks the protocol.
ask(Node, Operation, World0) ->
    Request =
        case Operation of
            {delete, Name} -> {delete, Name, []};
            {Verb, Name, Nodes} -> {Verb, Name, lists:usort(Nodes)}
        end,
    {Id, World} = atoll_sim_world:call(Node, Request, World0),
    atoll_sim_world:note(world, {asked, Id, Node, Operation}, World).

start(Nodes, World) ->
    lists:foldl(fun atoll_sim_world:start/2, World, [N || N <- Nodes, status(N, World) =:= dead]).

kill(Nodes, World) ->
    lists:foldl(fun atoll_sim_world:kill/2, World, [N || N <- Nodes, status(N, World) =/= dead]).

heal(Cluster, World0) ->
    World = network(Cluster, set(heal, World0)),
    lists:foldl(
        fun(Node, W) -> atoll_sim_world:slow(Node, 0, atoll_sim_world:resume(Node, W)) end,
        World,
        atoll_sim_world:alive(World)
    ).

network(#{latency := Latency, loss := Loss, duplicate := Duplicate}, World) ->
    lists:foldl(fun set/2, World, [{latency, Latency}, {loss, Loss}, {duplicate, Duplicate}]).

set(Setting, World) -> atoll_sim_world:set(Setting, World).

status(Node, World) -> atoll_sim_world:status(Node, World).
