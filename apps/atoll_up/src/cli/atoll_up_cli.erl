%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll up': holds a cluster until it is told to stop, or its terminal
%% is gone.
-module(atoll_up_cli).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, hold/1]).

-spec summary() -> string().
summary() -> "start a cluster and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => groups, value => "K", read => atoll_cli_read:whole(1, 1000),
          help => "put the nodes in K groups, joined by gateways; without, and with no overlay, a full mesh"},
        #{name => gateways, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000),
          help => "with --groups, so many gateways in each"},
        #{name => cluster, short => $c, value => "NAME", default => atoll_view_cli_where:default_name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ] ++ atoll_up_cli_carrier:options() ++ [atoll_up_cli_carrier:faults(), atoll_up_cli_carrier:tls() | atoll_up_cli_carrier:relay()] ++
        atoll_up_cli_overlay:options("the nodes run no overlay") ++ atoll_view_cli_distance:started().

-spec operands() -> [string()].
operands() -> ["N"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll up 3",
        "atoll up 9 --groups 3 -c reef",
        "atoll up 20 --overlay hyparview",
        "atoll up 9 --groups 3 --overlay cliques",
        "atoll up 3 --carrier atoll --kind lanes4",
        "atoll up 9 --groups 3 --gateways 2 --carrier atoll --relay",
        "atoll up 4 --distances"
    ].

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
    case {atoll_up_cli_overlay:read(Values), atoll_up_cli_carrier:read(Values)} of
        {{ok, #{strategy := {_, atoll_cliques, _}}}, _} when not is_map_key(groups, Values) ->
            {usage, "--overlay cliques wants --groups K: the groups say who is in which clique"};
        {{error, Sentence}, _} ->
            {usage, Sentence};
        {_, {error, Sentence}} ->
            {usage, Sentence};
        {{ok, none}, {ok, {atoll, _, _, Relay, _}}} when Relay =/= no, not is_map_key(groups, Values) ->
            {usage, "--relay wants --groups K or --overlay STRATEGY: without, all are connected with all"};
        {{ok, Overlay}, {ok, Carrier}} ->
            case atoll_view_cli_distance:args(Values, named(Values, Count)) of
                {ok, Args} -> free(Values, fun() -> start(Values, Overlay, Carrier, Args, Count) end);
                {error, Outcome} -> Outcome
            end
    end.

%% One of two of the same name would be out of reach.
free(#{cluster := Name}, Start) ->
    case atoll_view_context:find(Name) of
        {ok, {held, Name}} -> Start();
        {ok, {joined, Name, _}} -> {unable, ["A context is named ", Name, ": remove it, or give the cluster another name."]};
        {error, Sentence} -> {unable, Sentence}
    end.

%% As atoll_cluster names them.
named(#{cluster := Name}, Count) ->
    [list_to_atom(lists:concat([Name, I, "@127.0.0.1"])) || I <- lists:seq(1, Count)].

start(#{cluster := Name} = Values, Overlay, Carrier, Args, Count) ->
    Groups =
        case Values of
            #{groups := Parts, gateways := Each} -> {Parts, Each};
            #{} -> none
        end,
    Plan = #{nodes => Count, name => Name, groups => Groups, overlay => Overlay, carrier => Carrier, args => Args},
    Bar = atoll_cli_progress:bar("Starting nodes"),
    Tell = fun
        ({started, Done, All}) -> Bar(Done, All);
        ({waiting, What}) -> atoll_cli_progress:now_doing(What);
        (waited) -> atoll_cli_progress:done()
    end,
    case atoll_up:start(Plan, Tell) of
        {ok, Cluster, Members} ->
            ok = atoll_cli_io:print(report(Cluster, Members, Overlay, Carrier, Name)),
            hold(Cluster);
        {error, Sentence} ->
            {unable, Sentence}
    end.

report(Cluster, Members, Overlay, Carrier, Name) ->
    #{nodes := [#{node := First} | _] = Nodes} = atoll_cluster:status(Cluster),
    {Columns, Rows} = lists:unzip(columns(Nodes, Members, Overlay)),
    [
        atoll_cli_table:format(Columns, transposed(Rows)),
        "\nattach a shell:  erl -name me@127.0.0.1 -hidden ", tls(Carrier, Cluster), "-remsh ", atom_to_list(First), $\n,
        "stop:            Ctrl-C here, or: atoll down -c ", Name, $\n
    ].

%% The nodes let a shell in that has their certificates.
tls({atoll, _, _, _, true}, Cluster) ->
    #{dir := Dir} = atoll_cluster:info(Cluster),
    ["-proto_dist inet_tls ", [[Arg, " "] || Arg <- atoll_certificates:arguments(atoll_cluster_rundir:certificates(Dir))]];
tls(_Carrier, _Cluster) ->
    "".

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

%% @doc Returns when a cluster was stopped, and tells of its nodes until then.
-spec hold(atoll_cluster:cluster()) -> ok.
hold(Cluster) ->
    receive
        {atoll_cluster, Cluster, {node_down, Node, _}} ->
            ok = atoll_cli_io:say(["Node ", atom_to_list(Node), " went down."]),
            hold(Cluster);
        {atoll_cluster, Cluster, stopped} ->
            atoll_cli_io:say("The cluster was stopped.")
    end.
