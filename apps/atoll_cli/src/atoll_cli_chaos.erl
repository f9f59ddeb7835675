%% @doc What the commands of `atoll chaos' have in common: where the faults are
%% made, and what is shown of them.
-module(atoll_cli_chaos).

-export([where/0, closing/0, on/3, harm/4, become_hidden/0]).

-define(MAX_NODES, 100).

%% @doc The options that say on which nodes.
-spec where() -> [atoll_cli_options:option()].
where() ->
    [
        #{name => nodes, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "start a cluster of so many nodes for it"},
        #{name => name, value => "CLUSTER", read => atoll_cli_read:name(),
          help => "do it to this cluster, which \"atoll up\" holds"}
    ].

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [atoll_cli_json:switch()].

%% @doc Calls Fun with how many nodes there are and with what they are reached by,
%% as atoll_chaos takes it: those of the cluster that is named, or of one that is
%% started for it and gone afterwards.
-spec on(atoll_cli_options:values(), pos_integer(), fun((map()) -> Outcome)) ->
    Outcome | atoll_cli_command:outcome().
on(#{name := Name}, _Nodes, Fun) ->
    case atoll_cluster:ask(Name, status) of
        {ok, #{nodes := Infos}} ->
            case become_hidden() of
                ok -> Fun(#{nodes => [binary_to_atom(Node) || #{node := Node} <- Infos]});
                {error, Sentence} -> {failed, Sentence}
            end;
        {error, Reason} ->
            {failed, atoll_cluster:format_error(Reason)}
    end;
on(_, Nodes, _) when Nodes > ?MAX_NODES ->
    {usage, io_lib:format("--nodes must say how many of the script's ~b nodes there are, at most ~b", [Nodes, ?MAX_NODES])};
on(_, Nodes, Fun) ->
    Options = #{
        nodes => Nodes,
        connect_all => false,
        apps => [atoll],
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    case atoll_cluster:start(Options) of
        {ok, Cluster} ->
            try
                Fun(#{cluster => Cluster})
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, Reason} ->
            {failed, atoll_cluster:format_error(Reason)}
    end.

%% @doc Makes this VM a node, to connect with those of this machine and bring no two
%% of them together by it. It listens to nobody elsewhere.
-spec become_hidden() -> ok | {error, unicode:chardata()}.
become_hidden() ->
    ok = application:set_env(kernel, inet_dist_use_interface, {127, 0, 0, 1}),
    Name = list_to_atom(lists:concat(["atoll_chaos", os:getpid(), "@127.0.0.1"])),
    case net_kernel:start(Name, #{name_domain => longnames, hidden => true}) of
        {ok, _} -> ok;
        {error, Reason} -> {error, io_lib:format("This program could not become a node: ~0tp.", [Reason])}
    end.

%% @doc Does it, and prints what came of it; a script that cannot be played is
%% given back.
-spec harm(atoll_chaos:options(), Head :: unicode:chardata(), Again :: string(), atoll_cli_options:values()) ->
    atoll_cli_command:outcome() | {script, atoll_sim_script:error()}.
harm(Options, Head, Again, Values) ->
    ok = atoll_cli_progress:now_doing(["Doing harm: ", Head]),
    Ran = atoll_chaos:run(Options#{on_event => fun(Event) -> atoll_cli_io:say_over(atoll_cli_chaos_result:line(Event)) end}),
    ok = atoll_cli_progress:done(),
    case Ran of
        {ok, Result} -> show(Result, nodes_of(Options), Again, Values);
        {error, {script, Error}} -> {script, Error};
        {error, Error} -> {failed, atoll_chaos:format_error(Error)}
    end.

nodes_of(#{cluster := Cluster}) -> atoll_cluster:nodes(Cluster);
nodes_of(#{nodes := Nodes}) -> Nodes.

show(Result, Nodes, Again, #{json := true}) ->
    atoll_cli_io:print_json(atoll_cli_chaos_result:json(Result, Nodes, Again));
show(Result, Nodes, Again, #{json := false}) ->
    atoll_cli_io:print([atoll_cli_chaos_result:table(Result, Nodes), "\nagain: ", Again, $\n]).
