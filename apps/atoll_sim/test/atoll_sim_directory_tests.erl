%% SPDX-License-Identifier: Apache-2.0
%% The directory in virtual time: whatever happens all tables become right, and what that costs.
-module(atoll_sim_directory_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The goals of the directory, with churn of one in a hundred a minute. docs/reach.md has ten
%% thousand nodes, which take some minutes and 4 GB.
what_the_directory_costs_and_how_soon_all_know_test_() ->
    Nodes = atoll_tier:size(directory_nodes),
    {timeout, 1200, fun() ->
        {ok, Result} = atoll_sim_cluster:isolated(fun() -> atoll_sim_directory:run(#{nodes => Nodes, seed => 3}) end),
        ?assertMatch(#{killed := Killed, unheard := 0} when Killed * 50 =:= Nodes, Result),
        ?assert(map_get(right, Result) == 1.0),
        ?assert(map_get(bytes_held_per_node_max, Result) =< 100),
        ?assert(map_get(bytes_per_node_per_s, Result) =< 1000),
        ?assert(map_get(rounds_max, Result) =< 12),
        %% Who comes back is not taken for gone any more.
        ?assertEqual(0, map_get(refuted, Result))
    end}.

other_topologies_do_as_well_test_() ->
    Nodes = atoll_tier:size(directory_shape_nodes),
    [
        {atom_to_list(Shape), {timeout, 60, fun() ->
            {ok, Result} = atoll_sim_directory:run(Options#{nodes => Nodes, topology => Shape, minutes => 1, churn => 0.03}),
            Killed = Nodes * 3 div 100,
            ?assertMatch(#{unheard := 0, killed := Killed}, Result),
            ?assert(map_get(right, Result) == 1.0),
            ?assert(map_get(rounds_max, Result) =< 12)
        end}}
     || {Shape, Options} <- [{star, #{}}, {ring, #{group_size => 30, gateways => 3}}, {tree, #{gateways => 3}}]
    ].

a_topology_that_cannot_be_made_is_an_error_test() ->
    ?assertMatch({error, _}, atoll_sim_directory:run(#{nodes => 100, gateways => 20})).

%% Faults. Fifteen nodes, in three groups of five and one of their six gateways.

-define(OPTIONS, #{compare_ms => 1000, vouch_ms => 2000, sweep_ms => 10000, pause_ms => 100, gather_ms => 200}).
-define(NAMES, [a1, a2, a3, a4, a5, b1, b2, b3, b4, b5, c1, c2, c3, c4, c5]).

after_any_faults_all_tables_are_right_and_so_are_the_routes_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL({Seed, Steps}, {choose(1, 100000), list(step())}, ends_well(Seed, Steps)), 60, [{max_size, 20}]).

step() ->
    Node = oneof(?NAMES),
    frequency([
        {2, {kill, Node}},
        %% With an incarnation so much higher or lower than the time says; as another one perhaps.
        {2, {start, Node, choose(-100000, 100000)}},
        {4, {restart, Node, choose(0, 10000), choose(-100000, 100000), boolean()}},
        {2, {cliques, Node, oneof([[], [extra], [two, more]])}},
        {1, {relays, Node, oneof([all, none, [a]])}},
        {1, {leave, Node}},
        {2, {loss, oneof([0.1, 0.5])}},
        {2, {partition, non_empty(list(Node))}},
        {1, heal},
        {1, {pause, Node}},
        {6, {wait, choose(1, 15000)}}
    ]).

ends_well(Seed, Steps) ->
    Empty = atoll_sim_world:new(#{protocol => atoll_sim_directory_node, config => fun config/3, seed => Seed}),
    Started = atoll_sim_world:run(3000, lists:foldl(fun atoll_sim_world:start/2, Empty, ?NAMES)),
    {Hurt, Left} = lists:foldl(fun do/2, {Started, []}, Steps),
    Healed = lists:foldl(
        fun atoll_sim_world:resume/2, atoll_sim_world:set(heal, Hurt), atoll_sim_world:alive(Hurt)
    ),
    %% Doubts are farther and farther apart, and what was forgotten may be refused for some sweeps.
    World = atoll_sim_world:run(atoll_sim_world:now(Healed) + 240000, Healed),
    Directories = [{Node, atoll_sim_world:state(Node, World)} || Node <- atoll_sim_world:alive(World)],
    Expected = [{Node, atoll_directory:place(State)} || {Node, State} <- Directories, not lists:member(Node, Left)],
    %% Those from which a chain leads here; the others may be here still.
    Wrong = [
        {Node, Lacks, Has}
     || {Node, State} <- Directories,
        not lists:member(Node, Left),
        Table <- [atoll_directory:table(State)],
        Known <- [[{N, Place} || N <- atoll_directory_table:nodes(Table), {_, Place} <- [atoll_directory_table:entry(N, Table)]]],
        Reach <- [reach(Node, [N || {N, _} <- Expected])],
        Lacks <- [[P || {N, _} = P <- Expected, lists:member(N, Reach)] -- Known],
        Has <- [[P || {N, _} = P <- Known, lists:member(N, Reach)] -- Expected],
        Lacks =/= [] orelse Has =/= []
    ],
    case Wrong of
        [] -> lists:all(fun({_, State}) -> routes_are_right(State, Expected) end, [D || {N, _} = D <- Directories, not lists:member(N, Left)]);
        _ -> io:format(user, "~p~n", [Wrong]), false
    end.

config(Name, Incarnation, Seed) ->
    #{
        peers => co_members(Name),
        directory => #{
            self => Name, incarnation => Incarnation, seed => Seed, options => ?OPTIONS,
            place => atoll_directory_place:new(groups(Name), all, [])
        }
    }.

groups(Name) ->
    [Letter, Digit] = atom_to_list(Name),
    [list_to_atom([Letter])] ++ [gateways || Digit =< $2].

co_members(Name) ->
    [Other || Other <- ?NAMES, Other =/= Name, groups(Other) -- groups(Name) =/= groups(Other)].

%% Over links of living nodes.
reach(Node, Living) -> reach([Node], Living, []).

reach([], _Living, Reached) -> Reached;
reach([Node | Nodes], Living, Reached) ->
    case lists:member(Node, Reached) of
        true -> reach(Nodes, Living, Reached);
        false -> reach([N || N <- co_members(Node), lists:member(N, Living)] ++ Nodes, Living, [Node | Reached])
    end.

do({wait, Ms}, {W, Left}) -> {atoll_sim_world:run(atoll_sim_world:now(W) + Ms, W), Left};
do({kill, Node}, {W, Left}) ->
    case atoll_sim_world:status(Node, W) of
        dead -> {W, Left};
        _ -> {atoll_sim_world:kill(Node, W), lists:delete(Node, Left)}
    end;
do({start, Node, More}, {W, Left}) ->
    case atoll_sim_world:status(Node, W) of
        dead -> {atoll_sim_world:start(Node, fun(Config) -> shifted(More, Config) end, W), Left};
        _ -> {W, Left}
    end;
do({cliques, Node, Value}, {W, Left}) ->
    %% Beside its groups, of which its links come; nobody else is in them.
    {atoll_sim_world:cast(Node, {cliques, [{Node, V} || V <- Value] ++ groups(Node)}, W), Left};
do({restart, Node, Away, More, IsOther}, World) ->
    Steps = [{kill, Node}, {wait, Away}, {start, Node, More}] ++ [{cliques, Node, [other]} || IsOther],
    lists:foldl(fun do/2, World, Steps);
do({relays, Node, Value}, {W, Left}) -> {atoll_sim_world:cast(Node, {relays, Value}, W), Left};
do({leave, Node}, {W, Left}) ->
    case atoll_sim_world:status(Node, W) of
        alive -> {atoll_sim_world:cast(Node, leave, W), [Node | Left]};
        _ -> {W, Left}
    end;
do({loss, Share}, {W, Left}) -> {atoll_sim_world:set({loss, Share}, W), Left};
do({partition, Nodes}, {W, Left}) ->
    Part = lists:usort(Nodes),
    {atoll_sim_world:set({partition, [Part, ?NAMES -- Part]}, W), Left};
do(heal, {W, Left}) -> {atoll_sim_world:set(heal, W), Left};
do({pause, Node}, {W, Left}) -> {atoll_sim_world:pause(Node, W), Left}.

shifted(More, #{directory := #{incarnation := Incarnation} = Directory} = Config) ->
    Config#{directory := Directory#{incarnation := max(1, Incarnation + More)}}.

%% Each hop is a link that is there; what cannot be reached is not said to be.
routes_are_right(State, Expected) ->
    Nodes = [N || {N, _} <- Expected],
    #{self := From} = atoll_directory:summary(State),
    lists:all(
        fun(To) ->
            Options = #{linked => atoll_directory:linked(State)},
            case atoll_routes:find(From, To, Options, atoll_directory:table(State)) of
                {ok, Route} ->
                    length(Route) =:= length(lists:usort(Route)) andalso
                        lists:all(
                            fun({A, B}) -> lists:member(B, co_members(A)) andalso lists:member(B, Nodes) end,
                            lists:zip(lists:droplast(Route), tl(Route))
                        );
                {error, {refused, _, _, _}} -> true;
                {error, _} -> not lists:member(To, reach(From, Nodes))
            end
        end,
        Nodes -- [From]
    ).
