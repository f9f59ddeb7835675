%% @doc `atoll status': the clusters of this user that run on this machine.
-module(atoll_cli_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show the clusters that are running".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll status", "atoll status --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json}, []) ->
    case atoll_cluster:check() of
        ok -> report(Json);
        {error, Reason} -> {failed, atoll_cluster:format_error(Reason)}
    end.

report(Json) ->
    ok = know_the_answer(),
    Asked = [{Name, atoll_cluster:ask(Name, status)} || #{name := Name} <- atoll_cluster:running()],
    Clusters = [Status || {_, {ok, Status}} <- Asked],
    ok = show(Json, Clusters),
    %% A cluster that has ended meanwhile is none that does not answer.
    case [Reason || {_, {error, Reason}} <- Asked, element(1, Reason) =/= not_running] of
        [] -> ok;
        [Reason | _] -> {failed, atoll_cluster:format_error(Reason)}
    end.

%% No atom is made of what another VM answers: the keys of the answer are known
%% here only once the modules that they are from are loaded.
know_the_answer() ->
    case application:load(atoll_cluster) of
        ok -> ok;
        {error, {already_loaded, _}} -> ok
    end,
    {ok, Modules} = application:get_key(atoll_cluster, modules),
    code:ensure_modules_loaded(Modules).

show(true, Clusters) ->
    atoll_cli_io:print_json({[{clusters, [cluster_json(C) || C <- Clusters]}]});
show(false, []) ->
    atoll_cli_io:print("No cluster is running.\n");
show(false, Clusters) ->
    Columns = [{left, "cluster"}, {left, "node"}, {left, "state"}, {right, "connections"},
               {left, "overlay"}, {right, "neighbours"}, {right, "members"}, {right, "memory"}, {right, "pid"}],
    Rows = [row(Name, Node) || #{name := Name, nodes := Nodes} <- Clusters, Node <- Nodes],
    atoll_cli_io:print(atoll_cli_table:format(Columns, Rows)).

row(Cluster, #{node := Node, state := State, connections := Connections, memory := Memory,
               os_pid := Pid} = Info) ->
    #{overlay := Overlay, neighbours := Neighbours, members := Members} = overlay(Info),
    [Cluster, Node, atom_to_list(State),
     known(Connections, fun atoll_cli_table:count/1),
     known(Overlay, fun(Name) -> Name end),
     known(Neighbours, fun(Nodes) -> atoll_cli_table:count(length(Nodes)) end),
     known(Members, fun atoll_cli_table:count/1),
     known(Memory, fun atoll_cli_table:bytes/1),
     known(Pid, fun erlang:integer_to_list/1)].

%% What atoll_cli_node:probe/0 said, from where its atoms are known.
overlay(#{probe := #{<<"overlay">> := Overlay} = Probe}) when Overlay =/= <<"off">> ->
    #{<<"neighbours">> := Neighbours, <<"members">> := Members, <<"parts">> := Parts} = Probe,
    #{overlay => Overlay, neighbours => Neighbours, members => Members, parts => Parts};
overlay(#{}) ->
    #{overlay => undefined, neighbours => undefined, members => undefined, parts => undefined}.

%% No probe, no answer.
groups(#{probe := #{<<"groups">> := Groups, <<"names">> := Names}}) ->
    [{groups, [{[{group, Group}, {nodes, Nodes}]} || {Group, Nodes} <- Groups]}, {names, json(Names)}];
groups(#{}) ->
    [{groups, null}, {names, null}].

known(undefined, _) -> "-";
known(Value, Write) -> Write(Value).

cluster_json(#{name := Name, owner_pid := Owner, nodes := Nodes}) ->
    {[{name, unicode:characters_to_binary(Name)},
      {owner_pid, Owner},
      {nodes, [node_json(Info) || Info <- Nodes]}]}.

node_json(#{node := Node} = Info) ->
    #{parts := Parts} = Overlay = overlay(Info),
    {[{node, Node}]
     ++ [{Key, or_null(maps:get(Key, Info))} || Key <- [state, connections, memory, os_pid]]
     ++ [{Key, or_null(maps:get(Key, Overlay))} || Key <- [overlay, neighbours, members]]
     ++ [{parts, json(Parts)} | groups(Info)]}.

%% Terms as atoll_cluster_plain makes them.
json(undefined) -> null;
json(Map) when is_map(Map) -> {[{key(Key), json(Value)} || {Key, Value} <- lists:sort(maps:to_list(Map))]};
json(Tuple) when is_tuple(Tuple) -> [json(Part) || Part <- tuple_to_list(Tuple)];
json(List) when is_list(List) -> [json(Element) || Element <- List];
json(Value) -> Value.

key(Key) when is_binary(Key) -> Key;
key(Key) -> unicode:characters_to_binary(io_lib:format("~0tp", [Key])).

or_null(undefined) -> null;
or_null(Value) -> Value.
