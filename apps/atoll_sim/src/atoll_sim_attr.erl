%% SPDX-License-Identifier: Apache-2.0
%% @doc Experiments on choosing nodes by their attributes, in virtual time.
%%
%% `herd/1': callers on several nodes choose among equal nodes at the same moment. How full is
%% the fullest, measured in means? By three rules: `naive' takes the first of the fitting nodes,
%% `random' any of them, `line' is {@link atoll_choosing}.
%%
%% `gossip/1': nodes are linked with a few others each. Some of them choose among all now and
%% then, by an attribute that changes. What does that cost, before and after it is told
%% around, and how old is what they learn?
-module(atoll_sim_attr).

-export([herd/1, gossip/1]).

-export_type([herd_options/0, herd_result/0, gossip_options/0, gossip_result/0]).

-type herd_options() :: #{
    rule => naive | random | line,
    %% On which nodes the callers are; and among how many they choose.
    nodes => pos_integer(),
    callers => pos_integer(),
    among => pos_integer(),
    seed => integer(),
    latency => atoll_sim_net:latency(),
    %% Within which time all of them call.
    within_ms => non_neg_integer(),
    attr => atoll_attr_core:options()
}.

-type herd_result() :: #{
    %% What the fullest and the emptiest have, in means.
    fullest := float(),
    emptiest := float(),
    chosen := non_neg_integer(),
    messages_per_choice := float(),
    ms_p50 := number() | none,
    ms_max := number() | none
}.

-type gossip_options() :: #{
    nodes => pos_integer(),
    askers => pos_integer(),
    %% Between two choices of an asker, and how old values may be.
    every_ms => pos_integer(),
    max_age => pos_integer(),
    seconds => pos_integer(),
    seed => integer(),
    latency => atoll_sim_net:latency(),
    attr => atoll_attr_core:options()
}.

-type gossip_result() :: #{
    nodes := pos_integer(),
    %% Of the second half of the time, when it is told around.
    choices := non_neg_integer(),
    answers_per_choice := float(),
    questions_per_choice := float(),
    messages_per_node_per_s := float(),
    bytes_per_node_per_s := float(),
    %% Of the first choice of all.
    questions_first := non_neg_integer(),
    %% Of the oldest value in an answer.
    age_ms_p50 := number() | none,
    age_ms_max := number() | none,
    %% Nodes that did not answer, in all.
    silent := non_neg_integer(),
    %% The share of the nodes in an answer that fit by what they are then.
    fit_still := float(),
    %% The share of the nodes that fit then that is in the answer.
    found := float()
}.

-record(seen, {
    messages = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    asks = 0 :: non_neg_integer(),
    replies = #{} :: #{pos_integer() => {Now :: integer(), node(), term()}}
}).

-define(LINK_MS, 3000).
-define(LOAD_MS, 10000).

%% Together

%% @doc Runs the experiment.
-spec herd(herd_options()) -> herd_result().
herd(Given) ->
    Options = maps:merge(
        #{rule => line, nodes => 20, callers => 200, among => 20, seed => 1, latency => {uniform, 1, 3}, within_ms => 1, attr => #{}},
        Given
    ),
    #{nodes := Count, among := Among, callers := Callers, rule := Rule, seed := Seed} = Options,
    Names = atoll_sim_cluster:names_of(max(Count, Among)),
    Targets = lists:sublist(Names, Among),
    Result =
        case Rule of
            line -> line(Names, Targets, Options);
            naive -> #{chosen => lists:duplicate(Callers, hd(Targets)), messages => 0, ms => []};
            random -> #{chosen => random(Callers, Targets, Seed), messages => 0, ms => []}
        end,
    #{chosen := Chosen, messages := Messages, ms := Ms} = Result,
    Loads = [length([N || N <- Chosen, N =:= Target]) || Target <- Targets],
    Mean = Callers / Among,
    #{
        fullest => lists:max(Loads) / Mean,
        emptiest => lists:min(Loads) / Mean,
        chosen => length(Chosen),
        messages_per_choice => Messages / Callers,
        ms_p50 => atoll_sim_stats:percentile(lists:sort(Ms), 50),
        ms_max => atoll_sim_stats:percentile(lists:sort(Ms), 100)
    }.

random(Callers, Targets, Seed) ->
    Table = list_to_tuple(Targets),
    {Drawn, _} = lists:mapfoldl(
        fun(_, R0) ->
            {I, R} = rand:uniform_s(tuple_size(Table), R0),
            {element(I, Table), R}
        end,
        rand:seed_s(exsss, erlang:phash2({herd, Seed})),
        lists:seq(1, Callers)
    ),
    Drawn.

line(Names, Targets, #{nodes := Count, callers := Callers, within_ms := Within} = Options) ->
    World0 = world(Names, fun(Name) -> lists:delete(Name, Names) end, Options),
    Begin = atoll_sim_world:now(World0),
    Request = {choose, #{tiers => [Targets], predicate => atoll_predicate:any(), names => [], ms => 500}},
    Callers1 = [lists:nth(I rem Count + 1, Names) || I <- lists:seq(0, Callers - 1)],
    World1 = lists:foldl(
        fun({I, Name}, W) ->
            atoll_sim_world:at(Begin + I * Within div Callers, fun(W1) -> element(2, atoll_sim_world:call(Name, Request, W1)) end, W)
        end,
        World0,
        lists:zip(lists:seq(0, Callers - 1), Callers1)
    ),
    #seen{messages = Messages, replies = Replies} = atoll_sim_world:watched(atoll_sim_world:run(Begin + 1000, World1)),
    Answers = maps:values(Replies),
    #{
        chosen => [Node || {_, _, {ok, Node, _, _}} <- Answers],
        messages => Messages,
        ms => [At - Begin || {At, _, _} <- Answers]
    }.

%% Told around

%% @doc Runs the experiment.
-spec gossip(gossip_options()) -> gossip_result().
gossip(Given) ->
    Options = maps:merge(
        #{nodes => 1000, askers => 20, every_ms => 5000, max_age => 60000, seconds => 120, seed => 1,
          latency => {uniform, 1, 20}, attr => #{}},
        Given
    ),
    #{nodes := Count, askers := Askers, every_ms := Every, seconds := Seconds, seed := Seed} = Options,
    Names = atoll_sim_cluster:names_of(Count),
    Told = atoll_sim_cluster:told(atoll_static, Names, Seed),
    Ends = lists:append([[{A, B}, {B, A}] || {A, Joins} <- maps:to_list(Told), {join, B} <- Joins]),
    Peers = maps:map(fun(_, P) -> lists:usort(P) end, maps:groups_from_list(fun({A, _}) -> A end, fun({_, B}) -> B end, Ends)),
    World0 = world(Names, fun(Name) -> map_get(Name, Peers) end, Options),
    Begin = atoll_sim_world:now(World0),
    End = Begin + 1000 * Seconds,
    Half = Begin + 500 * Seconds,
    Moments = lists:sort([
        {Begin + 1000 + I * Every div Askers + K * Every, lists:nth(I * (Count div Askers) + 1, Names)}
     || I <- lists:seq(0, Askers - 1), K <- lists:seq(0, 1000 * Seconds div Every - 1)
    ]),
    World1 = lists:foldl(fun({At, Name}, W) -> asks(At, Name, Names, Options, W) end, World0, Moments),
    [{First, _} | _] = Moments,
    After1 = atoll_sim_world:run(First + 200, World1),
    #seen{asks = FirstAsks} = atoll_sim_world:watched(After1),
    Warm = atoll_sim_world:run(Half, After1),
    Fresh = atoll_sim_world:watch({fun see/4, #seen{}}, Warm),
    #seen{messages = Messages, bytes = Bytes, asks = Asks, replies = Replies} =
        atoll_sim_world:watched(atoll_sim_world:run(End, Fresh)),
    Answers = [{At, Asked} || {At, _, {ok, Asked}} <- maps:values(Replies)],
    Choices = length(Answers),
    Ages = lists:sort([lists:max([0 | [Age || {_, _, Age} <- A]]) || {_, #{answers := A}} <- Answers]),
    Truth = [{nodes_that_fit(Names, At, Seed), [N || {N, _, _} <- A]} || {At, #{answers := A}} <- Answers],
    Both = lists:sum([length([N || N <- Found, is_map_key(N, Fit)]) || {Fit, Found} <- Truth]),
    PerNode = fun(N) -> N / Count / (Seconds / 2) end,
    #{
        nodes => Count,
        choices => Choices,
        answers_per_choice => lists:sum([length(A) || {_, #{answers := A}} <- Answers]) / Choices,
        questions_per_choice => Asks / Choices,
        messages_per_node_per_s => PerNode(Messages),
        bytes_per_node_per_s => PerNode(Bytes),
        questions_first => FirstAsks,
        age_ms_p50 => atoll_sim_stats:percentile(Ages, 50),
        age_ms_max => atoll_sim_stats:percentile(Ages, 100),
        silent => lists:sum([length(S) || {_, #{silent := S}} <- Answers]),
        fit_still => Both / max(1, lists:sum([length(Found) || {_, Found} <- Truth])),
        found => Both / max(1, lists:sum([map_size(Fit) || {Fit, _} <- Truth]))
    }.

asks(At, Name, Names, #{max_age := MaxAge}, World) ->
    {ok, Predicate} = atoll_predicate:new({load, lt, 10}),
    Request = {ask, #{nodes => Names, names => [load], predicate => Predicate, ms => 500, max_age => MaxAge}},
    atoll_sim_world:at(At, fun(W) -> element(2, atoll_sim_world:call(Name, Request, W)) end, World).

nodes_that_fit(Names, At, Seed) ->
    maps:from_keys([Name || Name <- Names, load(Name, At, Seed) < 10], []).

%% From 0 to 99; half of the nodes keep theirs for each while.
load(Name, At, Seed) ->
    While = At div ?LOAD_MS,
    case erlang:phash2({Name, While, Seed}, 2) of
        1 when While > 0 -> load(Name, At - ?LOAD_MS, Seed);
        _ -> erlang:phash2({Name, While, Seed, load}, 100)
    end.

%% Both

world(Names, Peers, #{seed := Seed, latency := Latency, attr := Attr}) ->
    Empty = atoll_sim_world:new(#{
        protocol => atoll_sim_attr_node,
        config => fun(Name, Incarnation, NodeSeed) ->
            #{
                attr => #{
                    self => Name,
                    incarnation => Incarnation * 1000000,
                    seed => NodeSeed,
                    options => Attr,
                    definitions => [{load, {dynamic, {sim, load}}}]
                },
                peers => Peers(Name),
                value => fun(Node, load, Now) -> load(Node, Now, Seed) end
            }
        end,
        seed => Seed,
        latency => Latency,
        watch => {fun see/4, #seen{}},
        messages => true
    }),
    Linked = atoll_sim_world:run(?LINK_MS, lists:foldl(fun atoll_sim_world:start/2, Empty, Names)),
    atoll_sim_world:watch({fun see/4, #seen{}}, Linked).

see(_Now, _Node, {sent, _To, {_, Body} = Message}, #seen{messages = Messages, bytes = Bytes, asks = Asks} = Seen) ->
    Ask = case element(1, Body) of ask -> 1; _ -> 0 end,
    %% With the envelope of the interpreter, the name of any node standing for the sender's.
    Size = erlang:external_size({atoll, 1, node(), Message}),
    Seen#seen{messages = Messages + 1, bytes = Bytes + Size, asks = Asks + Ask};
see(Now, Node, {reply, Id, Answer}, #seen{replies = Replies} = Seen) ->
    Seen#seen{replies = Replies#{Id => {Now, Node, Answer}}};
see(_Now, _Node, _Sight, Seen) ->
    Seen.
