%% @doc A storm over ant colonies: at a rate, one of their processes is killed on each node, by a script
%% of faults for {@link atoll_chaos}, which says what came back and how long it took. It draws among
%% submasters, colonies and the leash of the node; one time in three it is the host, with which all of
%% them go. What has a name is back when it has registered it again.
-module(atoll_bench_storm).

-export([start/3, stop/1]).

-export_type([storm/0, result/0]).

-type storm() :: term().

-type result() :: #{
    kills := non_neg_integer(),
    %% how many of them were there again, and after how many milliseconds
    back := non_neg_integer(),
    back_ms_median := number() | none,
    back_ms_max := number() | none
}.

%% One in three is a host.
-define(WHAT, [{2, {application, aco}}, {1, {module, aco_host}}]).
-define(MOST_STEPS, 50_000).
-define(MOST_SECONDS, 3_600).

%% @doc Begins, with so many kills a second on each node; it ends with the calling process if not
%% before, and after an hour.
-spec start(atoll_cluster:cluster(), Rate :: number(), Seed :: integer()) ->
    {ok, storm()} | {error, Sentence :: unicode:chardata()}.
start(Cluster, Rate, Seed) ->
    Nodes = length(atoll_cluster:nodes(Cluster)),
    %% Not on all at once: one after the other, as monkeys that know nothing of each other.
    Steps = [{at, round(N * 1000 / (Rate * Nodes)), {kill_process, {nodes, I, I}, ?WHAT}}
             || N <- lists:seq(1, min(?MOST_STEPS, ceil(?MOST_SECONDS * Rate * Nodes))), I <- [1 + N rem Nodes]],
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => Nodes, seed => abs(Seed) rem 1_000_000_000}} | Steps]),
    case atoll_chaos:start(#{cluster => Cluster, script => Script}) of
        {ok, Storm} -> {ok, Storm};
        {error, Error} -> {error, atoll_chaos:format_error(Error)}
    end.

%% @doc Ends it.
-spec stop(storm()) -> result().
stop(Storm) ->
    #{summary := Summary} = atoll_chaos:stop(Storm),
    case lists:keyfind(kill_process, 1, Summary) of
        {_, #{done := Kills, recovered := Back, median_ms := Median, max_ms := Max}} ->
            #{kills => Kills, back => Back, back_ms_median => Median, back_ms_max => Max};
        false ->
            #{kills => 0, back => 0, back_ms_median => none, back_ms_max => none}
    end.
