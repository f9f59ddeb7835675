%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll status': the nodes of a cluster, or of all clusters of this user that run on this
%% machine.
-module(atoll_view_cli_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show the nodes of a cluster, or of all that run here".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options("the context in use, or all that run here") ++ [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll status", "atoll status -c reef --json", "atoll status --node shop@10.0.0.7 --cookie-file prod.cookie"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, []) ->
    ok = know_the_answer(),
    case targets(Values) of
        {ok, Targets} -> report(Json, Targets);
        Wrong -> Wrong
    end.

targets(Values) ->
    case {atoll_view_cli_where:target(all, Values), atoll_cluster:check()} of
        {{ok, all}, {error, Reason}} -> {unable, atoll_cluster:format_error(Reason)};
        {{ok, all}, ok} -> {ok, {all, [{held, Name} || #{name := Name} <- atoll_cluster:running()]}};
        {{ok, Target}, _} -> {ok, {one, [Target]}};
        {Wrong, _} -> Wrong
    end.

report(Json, {Which, Targets}) ->
    Asked = [{Target, atoll_view:status(Target)} || Target <- Targets],
    Clusters = [Status || {_, {ok, Status}} <- Asked],
    %% Of all that run, one that has ended meanwhile is none that does not answer.
    Errors = [Sentence || {{_, Name}, {error, Sentence}} <- Asked, is_running(Name)] ++
        [Sentence || {_, {error, Sentence}} <- Asked, Which =:= one],
    case {Errors, Which} of
        {[Sentence | _], one} ->
            {unable, Sentence};
        _ ->
            ok = show(Json, Clusters),
            judged(Errors, Clusters)
    end.

is_running(Name) -> lists:any(fun(#{name := Running}) -> Running =:= Name end, atoll_cluster:running()).

judged([Sentence | _], _Clusters) ->
    {unable, Sentence};
judged([], Clusters) ->
    atoll_view_cli_where:judged([Node || #{nodes := Nodes} <- Clusters, #{node := Node, state := silent} <- Nodes]).

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
    [Cluster, name(Node), atom_to_list(State),
     known(Connections, fun atoll_cli_table:count/1),
     case Info of #{atoll := off} -> "(no atoll)"; #{} -> known(Overlay, fun(Name) -> Name end) end,
     known(Neighbours, fun(Nodes) -> atoll_cli_table:count(length(Nodes)) end),
     known(Members, fun atoll_cli_table:count/1),
     known(Memory, fun atoll_cli_table:bytes/1),
     known(Pid, fun erlang:integer_to_list/1)].

name(Node) when is_atom(Node) -> atom_to_list(Node);
name(Node) -> binary_to_list(Node).

%% What atoll:status/0 said, from where its atoms are known.
overlay(#{atoll := #{<<"strategy">> := Overlay} = Atoll}) when Overlay =/= <<"off">> ->
    #{<<"neighbours">> := Neighbours, <<"members">> := Members, <<"overlay">> := Parts} = Atoll,
    #{overlay => Overlay, neighbours => Neighbours, members => Members, parts => Parts};
overlay(#{}) ->
    #{overlay => undefined, neighbours => undefined, members => undefined, parts => undefined}.

%% No answer, nothing known.
groups(#{atoll := #{<<"groups">> := Groups, <<"names">> := Names}}) ->
    [{groups, [{[{group, Group}, {nodes, Nodes}]} || {Group, Nodes} <- Groups]}, {names, json(Names)}];
groups(#{}) ->
    [{groups, null}, {names, null}].

known(undefined, _) -> "-";
known(Value, Write) -> Write(Value).

cluster_json(#{name := Name, owner_pid := Owner, nodes := Nodes}) ->
    {[{name, unicode:characters_to_binary(Name)},
      {owner_pid, or_null(Owner)},
      {nodes, [node_json(Info) || Info <- Nodes]}]}.

node_json(#{node := Node} = Info) ->
    #{parts := Parts} = Overlay = overlay(Info),
    {[{node, Node}]
     ++ [{Key, or_null(maps:get(Key, Info))} || Key <- [state, connections, memory, os_pid]]
     ++ [{atoll, case Info of #{atoll := off} -> off; #{atoll := undefined} -> null; #{} -> running end}]
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
