%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs an experiment of the simulator and shows what it has found; what its
%% commands have in common.
-module(atoll_sim_cli_experiment).

-export([run/2, simulate/4]).

-export_type([experiment/0]).

-type experiment() :: #{
    %% Of the command, and its options.
    name := string(),
    options := [atoll_cli_options:option()],
    run := fun((map()) -> {ok, #{atom() => term()}} | {error, atoll_sim_cluster:error()}),
    %% What the experiment takes beside the cluster's options.
    own := #{atom() => term()},
    %% The keys of its result that the JSON object begins with.
    keys := [atom()]
}.

%% @doc Runs it on the cluster that the options ask for.
-spec run(experiment(), atoll_cli_options:values()) -> atoll_cli_command:outcome().
run(Experiment, Values) ->
    case atoll_sim_cli_options:cluster(Values) of
        {ok, Cluster} -> run(Experiment, Values, Cluster);
        {error, Sentence} -> {usage, Sentence}
    end.

run(#{name := Name, options := Options, run := Run, own := Own} = Experiment, Values, Cluster) ->
    Again = atoll_sim_cli_options:again(Name, Options, Values),
    case simulate(Cluster, Again, Values, fun(Hooks) -> Run(maps:merge(maps:merge(Cluster, Own), Hooks)) end) of
        {ok, {ok, Result}} -> show(Experiment, Values, Result, Again);
        {ok, {error, Error}} -> {usage, atoll_sim_cluster:format_error(Error)};
        {error, Sentence} -> {unable, Sentence}
    end.

%% @doc Calls Fun with the options by which a cluster shows its progress and writes
%% the trace that is asked for, where a large world has room. An error is a sentence.
-spec simulate(#{atom() => term()}, Again :: string(), atoll_cli_options:values(), fun((map()) -> Result)) ->
    {ok, Result} | {error, unicode:chardata()}.
simulate(#{nodes := Nodes, strategy := Strategy, seed := Seed} = Cluster, Again, Values, Fun) ->
    Header = #{repeat => Again, nodes => Nodes, strategy => Strategy, seed => Seed},
    Outcome = guarded(Cluster, fun() ->
        atoll_sim_cli_trace:writing(maps:get(trace, Values, none), Header, fun(Traced) ->
            ok = atoll_cli_progress:now_doing(["Simulating ", head(Nodes, Strategy)]),
            Fun(Traced#{progress => atoll_cli_progress:virtual_time()})
        end)
    end),
    ok = atoll_cli_progress:done(),
    Outcome.

%% A strategy of the user's own may fail, and that is no fault of this program;
%% where it failed is what its author wants to know.
guarded(#{strategy := Strategy} = Cluster, Fun) ->
    IsOurs = lists:member(Strategy, atoll_strategy:names()),
    try
        atoll_sim_cluster:isolated(Fun, Cluster)
    catch
        Class:Reason:Stack when not IsOurs ->
            {error, ["the strategy ", atom_to_list(Strategy), " failed: ",
                     erl_error:format_exception(Class, Reason, Stack)]}
    end.

head(Nodes, Strategy) ->
    [atoll_cli_table:count(Nodes), " nodes, strategy ", atom_to_list(Strategy)].

show(#{keys := Keys}, #{json := true}, Result, Again) ->
    atoll_cli_io:print_json(atoll_sim_cli_result:json(Keys, Result, Again));
show(_, #{json := false}, Result, Again) ->
    atoll_cli_io:print([atoll_sim_cli_result:table(Result), "\nagain: ", Again, $\n]).
