%% @doc `atoll up': holds a cluster until it is told to stop, or its terminal
%% is gone.
-module(atoll_cli_up).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, default_name/0]).

-spec summary() -> string().
summary() -> "start a cluster and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => groups, value => "K", read => atoll_cli_read:whole(1, 1000),
          help => "put the nodes in K groups, joined by gateways; a full mesh without"},
        #{name => name, value => "NAME", default => default_name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ].

-spec operands() -> [string()].
operands() -> ["N"].

-spec examples() -> [string()].
examples() -> ["atoll up 3", "atoll up 9 --groups 3 --name reef"].

%% @doc What a cluster is called when it is given no name.
-spec default_name() -> string().
default_name() -> "atoll".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed]) ->
    case (atoll_cli_read:whole(1, 1000))(Typed) of
        {ok, Count} ->
            check(Values, Count);
        {error, Must} ->
            {usage, ["N ", Must, ", not \"", Typed, $"]}
    end.

check(#{groups := Groups}, Count) when Groups > Count ->
    {usage, io_lib:format("--groups must be at most the number of nodes, which is ~b, not \"~b\"",
                          [Count, Groups])};
check(#{name := Name} = Values, Count) ->
    Groups = maps:get(groups, Values, none),
    Options = #{
        nodes => Count,
        name => Name,
        connect_all => Groups =:= none,
        apps => [atoll],
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    case atoll_cluster:start(Options) of
        {ok, Cluster} -> join_and_hold(Cluster, Groups, Name);
        {error, Reason} -> {failed, atoll_cluster:format_error(Reason)}
    end.

join_and_hold(Cluster, Groups, Name) ->
    case join(Cluster, Groups) of
        {ok, Members} ->
            ok = atoll_cli_io:print(report(Cluster, Members, Name)),
            hold(Cluster);
        {error, Sentence} ->
            ok = atoll_cluster:stop(Cluster),
            {failed, Sentence}
    end.

join(Cluster, none) -> atoll_cli_join:mesh(Cluster);
join(Cluster, Groups) -> atoll_cli_join:groups(Cluster, Groups).

report(Cluster, Members, Name) ->
    Connected = maps:from_list(atoll_cluster:multicall(Cluster, erlang, nodes, [connected])),
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    Rows = [[atom_to_list(Node), groups_of(Node, Members), connections(maps:get(Node, Connected))]
            || Node <- Nodes],
    [
        atoll_cli_table:format([{left, "node"}, {left, "groups"}, {right, "connections"}], Rows),
        "\nattach a shell:  erl -name me@127.0.0.1 -hidden -remsh ", atom_to_list(First), $\n,
        "stop:            Ctrl-C here, or: atoll down ", Name, $\n
    ].

groups_of(Node, Members) ->
    case [atom_to_list(Group) || {Group, Nodes} <- Members, lists:member(Node, Nodes)] of
        [] -> "-";
        Groups -> lists:join(" ", Groups)
    end.

connections({ok, Nodes}) -> atoll_cli_table:count(length(Nodes));
connections({error, _}) -> "-".

hold(Cluster) ->
    receive
        {atoll_cluster, Cluster, {node_down, Node, _}} ->
            ok = atoll_cli_io:say(["Node ", atom_to_list(Node), " went down."]),
            hold(Cluster);
        {atoll_cluster, Cluster, stopped} ->
            atoll_cli_io:say("The cluster was stopped.")
    end.
