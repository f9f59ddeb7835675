%% @doc What a run of Orbit has found, for people and for programs.
-module(atoll_cli_result).

-export([json/2, head/1, table/1, table/2, same/2]).

-type facts() :: [{Name :: string(), Value :: unicode:chardata()}].

%% @doc The object that `--json' prints.
-spec json(atoll_cli_run:task(), orbit:result()) -> atoll_cli_json:object().
json(#{mode := Mode, generators := Generators, space := Space}, Result) ->
    #{connections_mean := Mean, messages := Messages} = Result,
    Same = [{Key, maps:get(Key, Result)}
            || Key <- [size, vertices_received, wall_ms, nodes, connections_max]],
    {[{mode, Mode}, {generators, Generators}, {space, Space} | Same] ++
     [{connections_mean, round(Mean * 100) / 100},
      {messages, {[{Kind, maps:get(Kind, Messages)} || Kind <- kinds()]}},
      {packets, known(maps:get(packets, Result))}]}.

known(unknown) -> null;
known(Count) -> Count.

%% @doc What a run is called: its mode, and the sizes that its groups really have.
-spec head(atoll_cli_run:task()) -> unicode:chardata().
head(#{mode := mesh}) -> "full mesh";
head(#{mode := groups} = Task) -> sizes(Task);
head(#{mode := ring} = Task) -> ["ring, ", sizes(Task)];
head(#{mode := 'groups-native'} = Task) -> ["mesh over ", sizes(Task#{mode := groups})];
head(#{mode := Mode}) -> atom_to_list(Mode).

sizes(#{mode := Mode, nodes := Count, group_size := Size}) ->
    case lists:usort(orbit_plan:sizes(Mode, Count, Size)) of
        [Count] -> io_lib:format("one group of ~b", [Count]);
        [Equal] -> io_lib:format("groups of ~b", [Equal]);
        [Least | More] -> io_lib:format("groups of ~b to ~b", [Least, lists:last(More)])
    end.

%% @doc Results side by side, each under a head.
-spec table([{Head :: unicode:chardata(), atoll_cli_run:task(), orbit:result()}, ...]) -> iolist().
table(Runs) ->
    table(Runs, []).

%% @doc As table/1, with these facts too.
-spec table([{Head :: unicode:chardata(), atoll_cli_run:task(), orbit:result()}, ...], [packets]) -> iolist().
table(Runs, More) ->
    {Heads, Facts} = lists:unzip([{Head, facts(Task, Result, More)} || {Head, Task, Result} <- Runs]),
    Columns = [{left, ""} | [{right, Head} || Head <- Heads]],
    Names = [Name || {Name, _} <- hd(Facts)],
    Values = [[Value || {_, Value} <- F] || F <- Facts],
    atoll_cli_table:format(Columns, rows([Names | Values])).

%% @doc Whether two runs have found the same set: as many vertices, with the
%% same checksum.
-spec same(orbit:result(), orbit:result()) -> boolean().
same(A, B) ->
    maps:with([size, checksum], A) =:= maps:with([size, checksum], B).

-spec facts(atoll_cli_run:task(), orbit:result(), [packets]) -> facts().
facts(#{generators := Generators, space := Space}, Result, More) ->
    #{size := Size, vertices_received := Received, wall_ms := Ms, nodes := Nodes,
      connections_max := Max, connections_mean := Mean, messages := Messages} = Result,
    [{"generators", atom_to_list(Generators)},
     {"space", atoll_cli_table:count(Space)},
     {"size", atoll_cli_table:count(Size)},
     {"vertices received", atoll_cli_table:count(Received)},
     {"nodes", atoll_cli_table:count(Nodes)},
     {"connections of a node, at most", atoll_cli_table:count(Max)},
     {"connections of a node, on average", atoll_cli_table:decimal(Mean)}] ++
    [{["messages between nodes: ", atom_to_list(Kind)],
      atoll_cli_table:count(maps:get(Kind, Messages))} || Kind <- kinds()] ++
    [{"messages between nodes: all", atoll_cli_table:count(lists:sum(maps:values(Messages)))},
     {"time", atoll_cli_table:seconds(Ms)}] ++
    [{"packets between nodes", packets(maps:get(packets, Result))} || packets <- More].

packets(unknown) -> "-";
packets(Count) -> atoll_cli_table:count(Count).

kinds() -> [vertex, gateway, credit, control].

%% From columns to rows.
rows([[] | _]) -> [];
rows(Columns) -> [[hd(C) || C <- Columns] | rows([tl(C) || C <- Columns])].
