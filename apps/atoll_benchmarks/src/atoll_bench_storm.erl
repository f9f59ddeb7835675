%% SPDX-License-Identifier: Apache-2.0
%% @doc A storm over one of the cases, ant colonies or Orbit, by a script of faults for {@link
%% atoll_chaos}, which says what came back and how long it took. At a rate, one of the case's processes
%% is killed on each node; one time in three it is the host, with which all of them go. What has a name is
%% back when it has registered it again. And now and then a node is killed, but for the first, and
%% started again a second later.
-module(atoll_bench_storm).

-export([start/3, none/0, play/3, node_kills/4, stop/1]).

-export_type([storm/0, harm/0, result/0]).

-type storm() :: term().

-type harm() :: #{
    program := aco | orbit,
    %% kills a second on each node; 0 unless told
    rate => number(),
    %% a node is killed each so many seconds, one or more; 0, never, unless told
    node_every => number()
}.

-type result() :: #{
    kills := non_neg_integer(),
    node_kills := non_neg_integer(),
    %% how many of the processes were there again, and after how many milliseconds
    back := non_neg_integer(),
    back_ms_median := number() | none,
    back_ms_max := number() | none
}.

-define(MOST_SECONDS, 3_600).
-define(DOWN_MS, 1_000).

%% @doc Begins; it ends with the calling process if not before, and after an hour.
-spec start(atoll_cluster:cluster(), harm(), Seed :: integer()) ->
    {ok, storm()} | {error, Sentence :: unicode:chardata()}.
start(_Cluster, #{node_every := Seconds}, _Seed) when Seconds > 0, Seconds * 1000 < ?DOWN_MS ->
    {error, io_lib:format("a node that is killed is down for a second: one can be killed each second at most, and not every ~w s", [Seconds])};
start(Cluster, #{program := Program} = Harm, Seed) ->
    Nodes = length(atoll_cluster:nodes(Cluster)),
    Steps = processes(maps:get(rate, Harm, 0), Nodes, [{2, {application, Program}}, {1, {module, host(Program)}}])
        ++ node_kills(maps:get(node_every, Harm, 0), lists:seq(2, Nodes), ?MOST_SECONDS, Seed),
    play(Cluster, Steps, Seed).

%% @doc Plays these steps of a script.
-spec play(atoll_cluster:cluster(), [{at, Ms :: non_neg_integer(), Step :: term()}], Seed :: integer()) ->
    {ok, storm()} | {error, Sentence :: unicode:chardata()}.
play(Cluster, Steps, Seed) ->
    Head = {cluster, #{nodes => length(atoll_cluster:nodes(Cluster)), seed => abs(Seed) rem 1_000_000_000}},
    {ok, Script} = atoll_sim_script:check([Head | lists:sort(Steps)]),
    case atoll_chaos:start(#{cluster => Cluster, script => Script}) of
        {ok, Storm} -> {ok, Storm};
        {error, Error} -> {error, atoll_chaos:format_error(Error)}
    end.

host(aco) -> aco_host;
host(orbit) -> orbit_host.

%% Not on all at once: one after the other, as monkeys that know nothing of each other.
processes(Rate, _, _) when Rate == 0 -> [];
processes(Rate, Nodes, What) ->
    [{at, round(I * 1000 / (Rate * Nodes)), {every, {1000 / Rate, ms}, {?MOST_SECONDS, s}, {kill_process, {nodes, I, I}, What}}}
     || I <- lists:seq(1, Nodes)].

%% @doc The steps that kill one of the nodes with these numbers each so many seconds, for so many seconds, and start
%% it again a second later.
-spec node_kills(Every :: number(), Numbers :: [pos_integer()], For :: number(), Seed :: integer()) -> [{at, non_neg_integer(), term()}].
node_kills(Every, Numbers, _, _) when Every == 0; Numbers =:= [] -> [];
node_kills(Every, Numbers, For, Seed) ->
    {Steps, _} = lists:mapfoldl(fun(N, Drawn) ->
        {Nth, Next} = rand:uniform_s(length(Numbers), Drawn),
        I = lists:nth(Nth, Numbers),
        At = round(N * Every * 1000),
        {[{at, At, {kill, {nodes, I, I}}}, {at, At + ?DOWN_MS, {restart, {nodes, I, I}, fresh}}], Next}
    end, rand:seed_s(exsss, Seed), lists:seq(1, floor(For / Every))),
    lists:append(Steps).

%% @doc Ends it.
-spec stop(storm()) -> result().
stop(Storm) ->
    #{summary := Summary} = atoll_chaos:stop(Storm),
    NodeKills = case lists:keyfind(kill, 1, Summary) of {_, #{done := Done}} -> Done; false -> 0 end,
    case lists:keyfind(kill_process, 1, Summary) of
        {_, #{done := Kills, recovered := Back, median_ms := Median, max_ms := Max}} ->
            #{kills => Kills, node_kills => NodeKills, back => Back, back_ms_median => Median, back_ms_max => Max};
        false ->
            (none())#{node_kills => NodeKills}
    end.

%% @doc What came of none.
-spec none() -> result().
none() -> #{kills => 0, node_kills => 0, back => 0, back_ms_median => none, back_ms_max => none}.
