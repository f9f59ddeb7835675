%% @doc Runs an experiment of the simulator and shows what it has found; what its
%% commands have in common.
-module(atoll_cli_sim_experiment).

-export([run/2]).

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
    case atoll_cli_sim_options:cluster(Values) of
        {ok, Cluster} -> run(Experiment, Values, Cluster);
        {error, Sentence} -> {usage, Sentence}
    end.

run(#{run := Run, own := Own} = Experiment, Values, #{nodes := Nodes, strategy := Strategy} = Cluster) ->
    Head = [atoll_cli_table:count(Nodes), " nodes with the strategy ", atom_to_list(Strategy)],
    ok = atoll_cli_progress:now_doing(["Simulating ", Head]),
    Options = maps:merge(Cluster#{progress => atoll_cli_progress:virtual_time()}, Own),
    Outcome = atoll_sim_cluster:isolated(fun() -> Run(Options) end),
    ok = atoll_cli_progress:done(),
    case Outcome of
        {ok, Result} -> show(Experiment, Values, Result);
        {error, Error} -> {usage, atoll_sim_cluster:format_error(Error)}
    end.

show(#{name := Name, options := Options, keys := Keys}, #{json := Json} = Values, Result) ->
    Again = atoll_cli_sim_options:again(Name, Options, Values),
    case Json of
        true -> atoll_cli_io:print_json(atoll_cli_sim_result:json(Keys, Result, Again));
        false -> atoll_cli_io:print([atoll_cli_sim_result:table(Result), "\nagain: ", Again, $\n])
    end.
