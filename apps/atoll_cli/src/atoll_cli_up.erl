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
          help => "put the nodes in K groups, joined by gateways; without, and with no overlay, a full mesh"},
        #{name => gateways, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000),
          help => "with --groups, so many gateways in each"},
        #{name => name, value => "NAME", default => default_name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ] ++ atoll_cli_carrier:options() ++ [atoll_cli_carrier:faults() | atoll_cli_carrier:relay()] ++
        atoll_cli_overlay:options("the nodes run no overlay") ++ atoll_cli_distance:started().

-spec operands() -> [string()].
operands() -> ["N"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll up 3",
        "atoll up 9 --groups 3 --name reef",
        "atoll up 20 --overlay hyparview",
        "atoll up 9 --groups 3 --overlay cliques",
        "atoll up 3 --carrier atoll --kind lanes4",
        "atoll up 9 --groups 3 --gateways 2 --carrier atoll --relay",
        "atoll up 4 --distances"
    ].

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
check(#{groups := Groups, gateways := Gateways}, Count) when Gateways > Count div Groups ->
    {usage, io_lib:format("--gateways must be at most the number of nodes of a group, which is ~b, not \"~b\"",
                          [Count div Groups, Gateways])};
check(#{gateways := Gateways} = Values, _Count) when Gateways > 1, not is_map_key(groups, Values) ->
    {usage, "--gateways is for --groups"};
check(Values, Count) ->
    case {atoll_cli_overlay:read(Values), atoll_cli_carrier:read(Values)} of
        {{ok, #{strategy := {_, atoll_cliques, _}}}, _} when not is_map_key(groups, Values) ->
            {usage, "--overlay cliques wants --groups K: the groups say who is in which clique"};
        {{error, Sentence}, _} ->
            {usage, Sentence};
        {_, {error, Sentence}} ->
            {usage, Sentence};
        {{ok, none}, {ok, {atoll, _, _, Relay}}} when Relay =/= no, not is_map_key(groups, Values) ->
            {usage, "--relay wants --groups K or --overlay STRATEGY: without, all are connected with all"};
        {{ok, Overlay}, {ok, Carrier}} ->
            case atoll_cli_distance:args(Values, named(Values, Count)) of
                {ok, Args} -> start(Values, Overlay, Carrier, Args, Count);
                {error, Outcome} -> Outcome
            end
    end.

%% As atoll_cluster names them.
named(#{name := Name}, Count) ->
    [list_to_atom(lists:concat([Name, I, "@127.0.0.1"])) || I <- lists:seq(1, Count)].

start(#{name := Name} = Values, Overlay, Carrier, Args, Count) ->
    Groups = maps:get(groups, Values, none),
    Options = #{
        nodes => Count,
        name => Name,
        connect_all => Groups =:= none,
        progress => atoll_cli_progress:bar("Starting nodes")
    },
    Nodes = atoll_cli_carrier:cluster(Carrier, maps:merge(Options, atoll_cli_overlay:cluster(Overlay))),
    case atoll_cluster:start(atoll_cli_carrier:with_args(Args, Nodes)) of
        {ok, Cluster} -> join_and_hold(Cluster, groups(Groups, Values), Overlay, relays(Carrier), Name);
        {error, Reason} -> {failed, atoll_cluster:format_error(Reason)}
    end.

groups(none, _Values) -> none;
groups(Count, #{gateways := Each}) -> {Count, Each}.

relays({atoll, _, _, Relay}) -> Relay =/= no;
relays(stock) -> false.

join_and_hold(Cluster, Groups, Overlay, Relays, Name) ->
    case reach(Relays, Cluster, join(Cluster, Groups, Overlay)) of
        {ok, Members} ->
            ok = atoll_cli_io:print(report(Cluster, Members, Overlay, Name)),
            hold(Cluster);
        {error, Sentence} ->
            ok = atoll_cluster:stop(Cluster),
            {failed, Sentence}
    end.

join(Cluster, none, none) ->
    atoll_cli_join:mesh(Cluster);
join(Cluster, {Count, Each}, none) ->
    atoll_cli_join:groups(Cluster, Count, Each);
join(Cluster, none, Overlay) ->
    settle(Cluster, Overlay, []);
join(Cluster, {Count, Each}, Overlay) ->
    case atoll_cli_join:groups(Cluster, Count, Each) of
        {ok, Members} -> settle(Cluster, Overlay, Members);
        {error, _} = Error -> Error
    end.

%% Where nodes relay, until each knows how to reach all.
reach(true, Cluster, {ok, Members}) ->
    ok = atoll_cli_progress:now_doing("Waiting until all nodes know how to reach each other"),
    Reached = atoll_cli_overlay:reach(Cluster),
    ok = atoll_cli_progress:done(),
    case Reached of
        ok -> {ok, Members};
        {error, Sentence} -> {error, Sentence}
    end;
reach(_Relays, _Cluster, Joined) ->
    Joined.

settle(Cluster, Overlay, Members) ->
    ok = atoll_cli_progress:now_doing("Waiting until all nodes know each other"),
    Settled =
        case atoll_cli_overlay:tell(Cluster, Overlay, Members =/= []) of
            ok -> atoll_cli_overlay:settle(Cluster);
            {error, _} = Error -> Error
        end,
    ok = atoll_cli_progress:done(),
    case Settled of
        ok -> {ok, Members};
        {error, Sentence} -> {error, Sentence}
    end.

report(Cluster, Members, Overlay, Name) ->
    #{nodes := [#{node := First} | _] = Nodes} = atoll_cluster:status(Cluster),
    {Columns, Rows} = lists:unzip(columns(Nodes, Members, Overlay)),
    [
        atoll_cli_table:format(Columns, transposed(Rows)),
        "\nattach a shell:  erl -name me@127.0.0.1 -hidden -remsh ", atom_to_list(First), $\n,
        "stop:            Ctrl-C here, or: atoll down ", Name, $\n
    ].

%% Those that there is something to say in.
columns(Nodes, Members, Overlay) ->
    [{{left, "node"}, [atom_to_list(Node) || #{node := Node} <- Nodes]}] ++
        [{{left, "groups"}, [groups_of(Node, Members) || #{node := Node} <- Nodes]}
         || Members =/= [] orelse Overlay =:= none] ++
        [{{right, "neighbours"}, [probed(fun(#{neighbours := N}) -> length(N) end, Info) || Info <- Nodes]}
         || Overlay =/= none] ++
        [{{right, "connections"}, [count(Connections) || #{connections := Connections} <- Nodes]}] ++
        [{{right, "members"}, [probed(fun(#{members := N}) -> N end, Info) || Info <- Nodes]} || Overlay =/= none].

transposed([[] | _]) -> [];
transposed(Columns) -> [[hd(C) || C <- Columns] | transposed([tl(C) || C <- Columns])].

probed(Get, #{probe := #{} = Probe}) -> count(Get(Probe));
probed(_Get, #{probe := undefined}) -> "-".

count(undefined) -> "-";
count(N) -> atoll_cli_table:count(N).

groups_of(Node, Members) ->
    case [atom_to_list(Group) || {Group, Nodes} <- Members, lists:member(Node, Nodes)] of
        [] -> "-";
        Groups -> lists:join(" ", Groups)
    end.

hold(Cluster) ->
    receive
        {atoll_cluster, Cluster, {node_down, Node, _}} ->
            ok = atoll_cli_io:say(["Node ", atom_to_list(Node), " went down."]),
            hold(Cluster);
        {atoll_cluster, Cluster, stopped} ->
            atoll_cli_io:say("The cluster was stopped.")
    end.
