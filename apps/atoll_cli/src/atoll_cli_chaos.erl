%% @doc What the commands of `atoll chaos' have in common: where the faults are
%% made, and what is shown of them.
-module(atoll_cli_chaos).

-export([where/1, closing/0, check/1, on/4, harm/4]).

-define(MAX_NODES, 100).

%% @doc The options that say on which nodes, and which overlay they run without one.
-spec where(Overlay :: string()) -> [atoll_cli_options:option()].
where(Overlay) ->
    [
        #{name => nodes, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "start a cluster of so many nodes for it"},
        #{name => name, value => "CLUSTER", read => atoll_cli_read:name(),
          help => "do it to this cluster, which \"atoll up\" holds"}
        | atoll_cli_overlay:options(Overlay) ++ atoll_cli_carrier:options()
    ].

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [atoll_cli_json:switch()].

%% @doc What is wrong with the options that say on which nodes, in combination.
-spec check(atoll_cli_options:values()) -> ok | {error, unicode:chardata()}.
check(#{name := _, nodes := _}) ->
    {error, "--nodes is for a cluster that is started, and --name for one that runs: not both"};
check(#{name := _, overlay := _}) ->
    {error, "--overlay is for a cluster that is started, and --name for one that runs, with the overlay that it has: not both"};
check(#{name := _, carrier := _}) ->
    {error, "--carrier is for a cluster that is started, and --name for one that runs, with the carrier that it has: not both"};
check(Values) ->
    case atoll_cli_carrier:read(Values) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Calls Fun with what the nodes are reached by, as atoll_chaos takes it: those of
%% the cluster that is named, or of one that is started for it, with so many nodes and
%% that overlay, and gone afterwards.
-spec on(atoll_cli_options:values(), pos_integer(), atoll_cli_overlay:overlay() | none, fun((map()) -> Outcome)) ->
    Outcome | atoll_cli_command:outcome().
on(#{name := Name}, _Nodes, _Overlay, Fun) ->
    case atoll_cli_held:reach(Name) of
        {ok, Nodes} ->
            %% Those that are not up would not answer.
            _ = [
                atoll_cli_io:say([atom_to_list(Node), " is ", atom_to_list(State), ", and left out; the others are numbered without it"])
             || {Node, State} <- Nodes, State =/= up
            ],
            case [Node || {Node, up} <- Nodes] of
                [] -> {failed, ["No node of ", Name, " is up."]};
                Up -> Fun(#{nodes => Up})
            end;
        {error, Sentence} ->
            {failed, Sentence}
    end;
on(_, Nodes, _, _) when Nodes > ?MAX_NODES ->
    {usage, io_lib:format("--nodes must say how many of the script's ~b nodes there are, at most ~b", [Nodes, ?MAX_NODES])};
on(Values, Nodes, Overlay, Fun) ->
    %% On stock distribution there is nothing that could let connections be harmed.
    {ok, Carrier} = atoll_cli_carrier:read(Values#{faults => maps:get(carrier, Values, stock) =:= atoll}),
    Options = #{
        nodes => Nodes,
        connect_all => false,
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    case atoll_cluster:start(atoll_cli_carrier:cluster(Carrier, maps:merge(Options, atoll_cli_overlay:cluster(Overlay)))) of
        {ok, Cluster} ->
            try
                started(Cluster, Overlay, Fun)
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Reason} ->
            {failed, atoll_cluster:format_error(Reason)}
    end.

started(Cluster, none, Fun) ->
    Fun(#{cluster => Cluster});
started(Cluster, Overlay, Fun) ->
    HasGroups = maps:get(groups, Overlay, false),
    case atoll_cli_overlay:tell(Cluster, Overlay, HasGroups) of
        ok -> Fun(#{cluster => Cluster, told => atoll_cli_overlay:told(Overlay, HasGroups, atoll_cluster:nodes(Cluster))});
        {error, Sentence} -> {failed, Sentence}
    end.

%% @doc Does it, and prints what came of it; a script that cannot be played is
%% given back.
-spec harm(atoll_chaos:options(), Head :: unicode:chardata(), Again :: string(), atoll_cli_options:values()) ->
    {ok, atoll_chaos:result()} | atoll_cli_command:outcome() | {script, atoll_sim_script:error()}.
harm(Options, Head, Again, Values) ->
    OnEvent = fun(Event) -> atoll_cli_io:say_over(atoll_cli_chaos_result:line(Event)) end,
    Ran = atoll_cli_interrupt:catching(fun() ->
        %% Who reads this may press Ctrl-C at once.
        ok = atoll_cli_progress:now_doing(["Doing harm: ", Head]),
        run(Options#{on_event => OnEvent})
    end),
    ok = atoll_cli_progress:done(),
    case Ran of
        {Ended, Result} when Ended =:= ok; Ended =:= interrupted ->
            ok = show(Result, nodes_of(Options), Again, Values),
            case Ended of
                ok -> {ok, Result};
                interrupted -> interrupted
            end;
        {error, {script, Error}} ->
            {script, Error};
        {error, Error} ->
            {failed, atoll_chaos:format_error(Error)}
    end.

run(Options) ->
    case atoll_chaos:start(Options) of
        {ok, Run} ->
            Self = self(),
            {Pid, Ref} = spawn_monitor(fun() -> Self ! {ended, self(), atoll_chaos:await(Run)} end),
            await(Run, Pid, Ref, ok);
        {error, _} = Error ->
            Error
    end.

await(Run, Pid, Ref, Ended) ->
    receive
        {ended, Pid, Result} ->
            true = demonitor(Ref, [flush]),
            {Ended, Result};
        {'DOWN', Ref, process, Pid, Reason} ->
            exit(Reason);
        interrupted ->
            ok = atoll_cli_io:say("Healing. Ctrl-C again ends it without a word."),
            %% Whoever waits already gets the result, too; or the run is just over.
            _ = spawn(fun() -> atoll_chaos:stop(Run) end),
            await(Run, Pid, Ref, interrupted)
    end.

nodes_of(#{cluster := Cluster}) -> atoll_cluster:nodes(Cluster);
nodes_of(#{nodes := Nodes}) -> Nodes.

show(Result, Nodes, Again, #{json := true}) ->
    atoll_cli_io:print_json(atoll_cli_chaos_result:json(Result, Nodes, Again));
show(Result, Nodes, Again, #{json := false}) ->
    atoll_cli_io:print([atoll_cli_chaos_result:table(Result, Nodes), "\nagain: ", Again, $\n]).
