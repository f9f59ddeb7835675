%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `names': what it costs to register a name in a group of so many nodes, in
%% virtual time. The group is alone: others would send nothing to it.
%%
%% Names are registered by drawn members, one every so often, each when all members are
%% connected; what is sent meanwhile is counted. Nobody fails.
-module(atoll_sim_names).

-export([run/1]).

-export_type([options/0, result/0]).

-type options() :: #{
    %% Of the group.
    nodes := pos_integer(),
    names => pos_integer(),
    latency => atoll_sim_net:latency(),
    seed => integer()
}.

-type result() :: #{
    nodes := pos_integer(),
    names := pos_integer(),
    %% How many registrations were answered with yes.
    yes := non_neg_integer(),
    links := non_neg_integer(),
    %% Of all members, from the first registration until all was said.
    messages_per_name := float(),
    %% From the call to the answer.
    answer_ms_p50 := number() | none,
    answer_ms_max := number() | none
}.

-define(DEFAULTS, #{names => 20, latency => {uniform, 1, 20}, seed => 1}).
-define(SETTLE_MS, 10000).
-define(PAUSE_MS, 500).

%% @doc Runs the experiment.
-spec run(options()) -> result().
run(Given) ->
    #{nodes := Count, names := Names, latency := Latency, seed := Seed} = maps:merge(?DEFAULTS, Given),
    Members = atoll_sim_cluster:names_of(Count),
    Empty = atoll_sim_world:new(#{
        protocol => atoll_sim_names_node,
        config => fun(Name, Incarnation, _) -> #{self => Name, incarnation => Incarnation, members => Members} end,
        seed => Seed,
        latency => Latency,
        watch => {fun answered/4, #{}}
    }),
    Settled = atoll_sim_world:run(?SETTLE_MS, lists:foldl(fun atoll_sim_world:start/2, Empty, Members)),
    #{sent := Before} = atoll_sim_world:counters(Settled),
    {Asked, World} = registered(Names, Members, rand:seed_s(exsss, Seed), #{}, Settled),
    #{sent := After} = atoll_sim_world:counters(World),
    Answers = atoll_sim_world:watched(World),
    Times = [At - map_get(Id, Asked) || {Id, {yes, At}} <- maps:to_list(Answers), is_map_key(Id, Asked)],
    #{
        nodes => Count,
        names => Names,
        yes => length(Times),
        links => lists:sum([length(atoll_sim_world:links(Member, World)) || Member <- Members]) div 2,
        messages_per_name => (After - Before) / Names,
        answer_ms_p50 => case Times of [] -> none; _ -> lists:nth((length(Times) + 1) div 2, lists:sort(Times)) end,
        answer_ms_max => case Times of [] -> none; _ -> lists:max(Times) end
    }.

registered(0, _Members, _Rand, Asked, World) ->
    {Asked, World};
registered(Left, Members, Rand0, Asked, World0) ->
    {N, Rand} = rand:uniform_s(length(Members), Rand0),
    Member = lists:nth(N, Members),
    Now = atoll_sim_world:now(World0),
    {Id, World} = atoll_sim_world:call(Member, {register, g, {name, Left}, process_of(Member, Left), none}, World0),
    registered(Left - 1, Members, Rand, Asked#{Id => Now}, atoll_sim_world:run(Now + ?PAUSE_MS, World)).

%% A process of that node: a pid for which node/1 is that node, in the external term format
%% (NEW_PID_EXT of a SMALL_ATOM_UTF8_EXT).
process_of(Node, Number) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Number:32, 0:32, 1:32>>).

answered(Now, _Node, {reply, Id, Answer}, Answers) -> Answers#{Id => {Answer, Now}};
answered(_Now, _Node, _Sight, Answers) -> Answers.
