%% SPDX-License-Identifier: Apache-2.0
%% @doc What the experiments of the simulator have in common on the command
%% line: which cluster is simulated, and the line that repeats a run.
-module(atoll_sim_cli_options).

-export([shared/0, closing/0, trace/0, latency/0, cluster/1, again/3]).

-define(MAX_NODES, 100000).
%% Unless told, or unless there are fewer nodes.
-define(CONTACTS, 5).
-define(MAX_MS, 3600000).
%% A longer way between two nodes is none of this planet.
-define(MAX_LATENCY_MS, 600000).
%% Beyond, a logarithm's deviation makes numbers that are no times any more.
-define(MAX_SIGMA, 5).

%% @doc The options of a cluster, but for how many nodes it has unless told.
-spec shared() -> [atoll_cli_options:option()].
shared() ->
    [
        #{name => strategy, value => "NAME", default => "hyparview",
          help => [lists:join(", ", [atom_to_list(Name) || Name <- atoll_strategy:names()]),
                   ", or a module of your own"]},
        atoll_sim_cli_strategy:code(),
        atoll_sim_cli_strategy:option(),
        #{name => nodes, value => "N", default => "1000", read => atoll_cli_read:whole(2, ?MAX_NODES),
          help => "nodes of the cluster"},
        #{name => contacts, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "nodes that all others know from the start (5 unless told, or all if fewer)"},
        #{name => latency, value => "L", default => "uniform:1:20", read => latency(),
          help => "constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA, regions"},
        #{name => roster, value => "on|full|off", default => "on", read => atoll_cli_read:one_of([on, full, off]),
          help => "whether every node knows all members, which takes a table of all on each; full: already when it starts"},
        #{name => settle, value => "MS", default => "60000", read => atoll_cli_read:whole(0, ?MAX_MS),
          help => "how long the cluster has to settle when all nodes have started"}
    ].

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [
        (atoll_cli_again:seed())#{default => "1"},
        trace(),
        atoll_cli_json:switch()
    ].

%% @doc The option that says where a trace goes.
-spec trace() -> atoll_cli_options:option().
trace() ->
    #{name => trace, value => "FILE", help => "write what happens into this file, for \"atoll sim show\""}.

%% @doc How long messages take in a simulated network.
-spec latency() -> atoll_cli_options:reader().
latency() ->
    fun(Text) ->
        [Name | Typed] = string:split(Text, ":", all),
        Numbers = [N || Number <- Typed, {ok, N} <- [atoll_cli_read:to_number(Number)]],
        case length(Numbers) =:= length(Typed) andalso distribution(Name, Numbers) of
            {ok, Latency} -> {ok, Latency};
            _ -> {error, "must be constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA "
                         "or regions, such as uniform:1:20"}
        end
    end.

distribution("constant", [Ms]) when is_integer(Ms), Ms =< ?MAX_LATENCY_MS -> {ok, {constant, Ms}};
distribution("uniform", [Min, Max])
        when is_integer(Min), is_integer(Max), Min =< Max, Max =< ?MAX_LATENCY_MS ->
    {ok, {uniform, Min, Max}};
distribution("exponential", [Mean]) when Mean > 0, Mean =< ?MAX_LATENCY_MS -> {ok, {exponential, Mean}};
distribution("lognormal", [Median, Sigma])
        when Median > 0, Median =< ?MAX_LATENCY_MS, Sigma =< ?MAX_SIGMA ->
    {ok, {lognormal, Median, Sigma}};
distribution("regions", []) -> {ok, regions};
distribution(_, _) -> error.

%% @doc The cluster that the options ask for; or what is wrong with them in
%% combination.
-spec cluster(atoll_cli_options:values()) ->
    {ok, atoll_sim_cluster:options()} | {error, unicode:chardata()}.
cluster(#{nodes := Nodes, contacts := Contacts}) when Contacts > Nodes ->
    {error, io_lib:format("--contacts must be at most --nodes, which is ~b, not \"~b\"", [Nodes, Contacts])};
cluster(#{strategy := Typed, option := Settings, nodes := Nodes, settle := SettleMs, roster := Roster} = Values) ->
    case atoll_sim_cli_strategy:read("--strategy", Typed, Settings, Values) of
        {ok, {Strategy, _Module, Options}} ->
            Cluster = maps:merge(maps:with([nodes, latency, seed], Values), roster(Roster)),
            {ok, Cluster#{
                strategy => Strategy,
                options => Options,
                contacts => maps:get(contacts, Values, min(?CONTACTS, Nodes)),
                settle_ms => SettleMs
            }};
        {error, _} = Error ->
            Error
    end.

roster(on) -> #{};
roster(full) -> #{full_rosters => true};
roster(off) -> #{roster => off}.

%% @doc The command line that repeats a run. What is as it is unless told is left
%% out of the cluster's finer points, and a trace is none of the run's.
-spec again(Name :: iodata(), [atoll_cli_options:option()], atoll_cli_options:values()) -> string().
again(Name, Options, Values) ->
    atoll_cli_again:line(Name, [Option || Option <- Options, is_told(Option, Values)], Values).

is_told(#{name := trace}, _) ->
    false;
is_told(#{name := Key, default := Text, read := Read}, Values) when
    Key =:= latency; Key =:= settle; Key =:= roster; Key =:= spare
->
    Read(Text) =/= {ok, map_get(Key, Values)};
is_told(_, _) ->
    true.
