%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `distance': how good network coordinates are, after some minutes of
%% probing in a network of regions.
%%
%% The error of a pair is the difference between the estimate by the two nodes' own coordinates and
%% the round trip that it has on average, as a share of that. Nodes that lie are in no pair. What nodes know
%% of others is looked at too: of how many, and how good an estimate by what they know is.
-module(atoll_sim_distance).

-export([run/1, run/2, world/1, errors/2, errors_of/3]).

-export_type([options/0, result/0]).

-type options() :: #{
    nodes => pos_integer(),
    %% Round trips from region to region, and by what share one takes longer at most.
    regions => [[number(), ...], ...],
    jitter => number(),
    minutes => pos_integer(),
    %% With how many random others a node is linked; or with all.
    links => pos_integer() | all,
    %% This share of the nodes lies.
    liars => float(),
    seed => integer(),
    distance => atoll_distance_core:options()
}.

-type result() :: #{
    nodes := pos_integer(),
    seed := integer(),
    %% Of all pairs: the middle one, and the one that 9 of 10 are better than.
    error_p50 := float(),
    error_p90 := float(),
    %% Of pairs in one region, and of the others.
    within_p50 := float() | none,
    between_p50 := float() | none,
    %% By what nodes know of each other, and the share of nodes known.
    known_p50 := float(),
    known := float(),
    %% Of the node that made most of them, in any whole minute.
    probes_per_minute_max := float(),
    bytes_per_node_per_s := float(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer()
}.

-define(DEFAULTS, #{
    nodes => 200,
    regions => [[2, 40, 80, 150], [40, 2, 80, 150], [80, 80, 2, 150], [150, 150, 150, 2]],
    jitter => 0.1,
    minutes => 10,
    links => all,
    liars => 0.0,
    seed => 1,
    distance => #{}
}).

%% @doc Runs the experiment.
-spec run(options()) -> result().
run(Options) ->
    run(Options, fun(World) -> World end).

%% @doc The same; something is done to the world before it runs.
-spec run(options(), fun((atoll_sim_world:world()) -> atoll_sim_world:world())) -> result().
run(Given, Change) ->
    Started = erlang:monotonic_time(millisecond),
    #{nodes := Count, seed := Seed, minutes := Minutes} = Options = maps:merge(?DEFAULTS, Given),
    World = atoll_sim_world:run(Minutes * 60000, Change(world(Given))),
    Errors = errors(Options, World),
    All = lists:sort([Error || {_, Error} <- Errors]),
    {KnownErrors, Known} = known(Options, World),
    {Bytes, Probes} = atoll_sim_world:watched(World),
    #{
        nodes => Count,
        seed => Seed,
        error_p50 => at(0.5, All),
        error_p90 => at(0.9, All),
        within_p50 => at(0.5, lists:sort([Error || {within, Error} <- Errors])),
        between_p50 => at(0.5, lists:sort([Error || {between, Error} <- Errors])),
        known_p50 => at(0.5, lists:sort(KnownErrors)),
        known => Known,
        probes_per_minute_max => lists:max([0 | maps:values(Probes)]),
        bytes_per_node_per_s => Bytes / Count / (Minutes * 60),
        virtual_ms => atoll_sim_world:now(World),
        wall_ms => erlang:monotonic_time(millisecond) - Started
    }.

at(_Share, []) -> none;
at(Share, Sorted) -> lists:nth(max(1, ceil(Share * length(Sorted))), Sorted).

%% @doc The world of the experiment, at its beginning.
-spec world(options()) -> atoll_sim_world:world().
world(Given) ->
    #{seed := Seed, jitter := Jitter, regions := Rows, distance := Distance} = Options = maps:merge(?DEFAULTS, Given),
    Names = names(Options),
    Liars = liars(Options),
    Peers = peers(Names, Options),
    Config = fun(Name, Incarnation, NodeSeed) ->
        #{
            core => #{self => Name, incarnation => Incarnation, seed => NodeSeed, options => Distance},
            peers => map_get(Name, Peers),
            lies => lists:member(Name, Liars)
        }
    end,
    Empty = atoll_sim_world:new(#{
        protocol => atoll_sim_distance_node,
        config => Config,
        seed => Seed,
        latency => {regions, Rows, Jitter},
        messages => true,
        watch => {fun watch/4, {0, #{}}}
    }),
    lists:foldl(fun atoll_sim_world:start/2, Empty, Names).

%% Bytes, and the probes of each node in each minute.
watch(Now, From, {sent, _To, Message}, {Bytes, Probes}) ->
    More =
        case Message of
            {1, {echo, _, _}} -> maps:update_with({From, Now div 60000}, fun(N) -> N + 1 end, 1, Probes);
            _ -> Probes
        end,
    {Bytes + erlang:external_size({atoll, 1, From, Message}), More};
watch(_Now, _Where, _Sight, Kept) ->
    Kept.

names(#{nodes := Count}) -> atoll_sim_cluster:names_of(Count).

%% The last ones.
liars(#{liars := Share, nodes := Count} = Options) ->
    lists:nthtail(Count - round(Share * Count), names(Options)).

peers(Names, #{links := all}) ->
    maps:from_list([{Name, lists:delete(Name, Names)} || Name <- Names]);
peers(Names, #{links := Links, seed := Seed}) ->
    %% Each link is wanted by one of its ends.
    {Peers, _} = lists:mapfoldl(
        fun(Name, Rand0) ->
            {Some, Rand} = atoll_random:sample(max(1, Links div 2), lists:delete(Name, Names), Rand0),
            {{Name, Some}, Rand}
        end,
        rand:seed_s(exsss, Seed),
        Names
    ),
    maps:from_list(Peers).

%% @doc The error of each pair of honest nodes that are alive, and whether they are in one region.
-spec errors(options(), atoll_sim_world:world()) -> [{within | between, float()}].
errors(Given, World) ->
    Options = maps:merge(?DEFAULTS, Given),
    Cores = cores(Options, World),
    [pair(A, B, Options) || {NameA, _} = A <- Cores, {NameB, _} = B <- Cores, NameA < NameB].

%% @doc The same of one node with all others.
-spec errors_of(node(), options(), atoll_sim_world:world()) -> [{within | between, float()}].
errors_of(Name, Given, World) ->
    Options = maps:merge(?DEFAULTS, Given),
    {[Node], Others} = lists:partition(fun({N, _}) -> N =:= Name end, cores(Options, World)),
    [pair(Node, Other, Options) || Other <- Others].

pair({NameA, A}, {NameB, B}, Options) ->
    Real = real(Options),
    Ms = Real(NameA, NameB),
    Estimate = atoll_vivaldi:estimate(atoll_distance_core:coordinate(A), atoll_distance_core:coordinate(B)),
    {where(Ms, Options), abs(Estimate - Ms) / Ms}.

where(Ms, #{regions := Rows, jitter := Jitter}) ->
    Within = lists:max([lists:nth(N, Row) || {N, Row} <- lists:zip(lists:seq(1, length(Rows)), Rows)]),
    case Ms =< Within * (1 + Jitter) of
        true -> within;
        false -> between
    end.

%% By what nodes know.
known(Options, World) ->
    Cores = cores(Options, World),
    Real = real(Options),
    Each = [
        {
            [
                abs(atoll_vivaldi:estimate(Own, Coordinate) - Ms) / Ms
             || {Other, _} <- Cores, #{Other := Coordinate} <- [Known], Ms <- [Real(Node, Other)]
            ],
            length([Other || {Other, _} <- Cores, Other =/= Node])
        }
     || {Node, Core} <- Cores, Own <- [atoll_distance_core:coordinate(Core)], Known <- [maps:remove(Node, atoll_distance_core:known(Core))]
    ],
    {lists:append([Errors || {Errors, _} <- Each]), lists:sum([length(E) || {E, _} <- Each]) / max(1, lists:sum([N || {_, N} <- Each]))}.

cores(Options, World) ->
    Liars = liars(Options),
    [
        {Node, atoll_sim_distance_node:core(atoll_sim_world:state(Node, World))}
     || Node <- atoll_sim_world:alive(World), not lists:member(Node, Liars)
    ].

%% The round trip without what is random, and half of what that may be.
real(#{regions := Rows, jitter := Jitter}) ->
    Net = atoll_sim_net:new({regions, Rows, 0.0}, 0),
    fun(A, B) ->
        RoundTrip = atoll_sim_net:sample(A, B, Net) + atoll_sim_net:sample(B, A, Net),
        %% Whole milliseconds, as the network has them.
        case RoundTrip * Jitter < 2 of
            true -> RoundTrip;
            false -> RoundTrip * (1 + Jitter / 2)
        end
    end.
