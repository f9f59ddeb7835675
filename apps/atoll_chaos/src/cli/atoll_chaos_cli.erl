%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll chaos' have in common: where the faults are
%% made, and what is shown of them.
-module(atoll_chaos_cli).

-export([where/1, closing/0, check/1, on/4, harm/4]).

-define(MAX_NODES, 100).

%% @doc The options that say on which nodes, and which overlay they run without one.
-spec where(Overlay :: string()) -> [atoll_cli_options:option()].
where(Overlay) ->
    [
        #{name => nodes, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "start a cluster of so many nodes for it"}
        | atoll_view_cli_where:options("one is started for it") ++ atoll_up_cli_overlay:options(Overlay) ++ atoll_up_cli_carrier:options() ++ atoll_deploy_cluster:options()
    ].

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [atoll_cli_json:switch()].

%% @doc What is wrong with the options that say on which nodes, in combination.
-spec check(atoll_cli_options:values()) -> ok | {error, unicode:chardata()}.
check(Values) ->
    Given = atoll_view_cli_where:is_given(Values),
    case [{Key, Why} || {Key, Why} <- [{nodes, ""}, {family, ""}, {overlay, ", with the overlay that it has"}, {carrier, ", with the carrier that it has"}],
                        Given, is_map_key(Key, Values)] of
        [{Key, Why} | _] ->
            {error, [atoll_cli_options:flag(Key), " is for a cluster that is started, and --cluster and --node for one that runs", Why, ": not both"]};
        [] ->
            case atoll_up_cli_carrier:read(Values) of
                {ok, _} -> ok;
                {error, _} = Error -> Error
            end
    end.

%% @doc Calls Fun with what the nodes are reached by, as atoll_chaos takes it: those of
%% the cluster that is named, or of one that is started for it, with so many nodes and
%% that overlay, and gone afterwards.
-spec on(atoll_cli_options:values(), pos_integer(), atoll_up_overlay:overlay() | none, fun((map()) -> Outcome)) ->
    Outcome | atoll_cli_command:outcome().
on(Values, Nodes, Overlay, Fun) ->
    case atoll_view_cli_where:is_given(Values) of
        true -> atoll_view_cli_where:on_up(Values, fun(Up) -> Fun(#{nodes => Up}) end);
        false -> start(Values, Nodes, Overlay, Fun)
    end.

start(_Values, Nodes, _Overlay, _Fun) when Nodes > ?MAX_NODES ->
    {usage, io_lib:format("--nodes must say how many of the script's ~b nodes there are, at most ~b", [Nodes, ?MAX_NODES])};
start(Values, Nodes, Overlay, Fun) ->
    %% On stock distribution there is nothing that could let connections be harmed.
    {ok, Carrier} = atoll_up_cli_carrier:read(Values#{faults => maps:get(carrier, Values, stock) =:= atoll}),
    Options = #{
        nodes => Nodes,
        connect_all => false,
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    case atoll_cluster:start(atoll_up_carrier:cluster(Carrier, maps:merge(Options, atoll_up_overlay:cluster(Overlay)))) of
        {ok, Cluster} ->
            try
                started(Cluster, Overlay, Fun)
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Reason} ->
            {unable, atoll_cluster:format_error(Reason)}
    end.

started(Cluster, none, Fun) ->
    Fun(#{cluster => Cluster});
started(Cluster, Overlay, Fun) ->
    HasGroups = maps:get(groups, Overlay, false),
    case atoll_up_overlay:tell(Cluster, Overlay, HasGroups) of
        ok -> Fun(#{cluster => Cluster, told => atoll_up_overlay:told(Overlay, HasGroups, atoll_cluster:nodes(Cluster))});
        {error, Sentence} -> {unable, Sentence}
    end.

%% @doc Does it, and prints what came of it; a script that cannot be played is
%% given back.
-spec harm(atoll_chaos:options(), Head :: unicode:chardata(), Again :: string(), atoll_cli_options:values()) ->
    {ok, atoll_chaos:result()} | atoll_cli_command:outcome() | {script, atoll_sim_script:error()}.
harm(Options, Head, Again, Values) ->
    OnEvent = fun(Event) -> atoll_cli_io:say_over(atoll_chaos_cli_result:line(Event)) end,
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
            {unable, atoll_chaos:format_error(Error)}
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
    atoll_cli_io:print_json(atoll_chaos_cli_result:json(Result, Nodes, Again));
show(Result, Nodes, Again, #{json := false}) ->
    atoll_cli_io:print([atoll_chaos_cli_result:table(Result, Nodes), "\nagain: ", Again, $\n]).
