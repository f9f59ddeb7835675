%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of Orbit has found, for people and for programs.
-module(atoll_cases_orbit_result).

-export([json/2, head/1, table/1, same/2]).

-type facts() :: [{Name :: string(), Value :: unicode:chardata()}].

%% @doc The object that `--json' prints.
-spec json(atoll_cases_orbit_run:task(), atoll_bench_case:result()) -> atoll_cli_json:object().
json(#{mode := Mode, generators := Generators, space := Space}, #{connections_mean := Mean, nodes_lost := Lost} = Result) ->
    Same = [{Key, maps:get(Key, Result)} || Key <- [size, vertices_received, wall_ms, nodes, epochs, kills, node_kills, connections_max]],
    {[{mode, Mode}, {generators, Generators}, {space, Space} | Same] ++
     [{nodes_lost, length(Lost)}, {connections_mean, round(Mean * 100) / 100}, {packets, known(maps:get(packets_sent, Result))}] ++
     [{workers, [worker(Worker) || Worker <- Workers]} || #{workers := Workers} <- [Result]]}.

worker(#{fill := Fill} = Worker) ->
    {[{Key, maps:get(Key, Worker)} || Key <- [node, part, size, received, credit_returned, least_credit | idle()]]
     ++ maps:to_list(Fill)}.

idle() -> [init_idle_ms, max_idle_ms, tail_idle_ms].

known(unknown) -> null;
known(Count) -> Count.

%% @doc What a run is called: its mode, and the sizes that its groups really have.
-spec head(atoll_cases_orbit_run:task()) -> unicode:chardata().
head(#{mode := mesh}) -> "full mesh";
head(#{mode := groups} = Task) -> sizes(Task);
head(#{mode := ring} = Task) -> ["ring, ", sizes(Task)];
head(#{mode := 'groups-native'} = Task) -> ["mesh over ", sizes(Task)];
head(#{mode := Mode}) -> atom_to_list(Mode).

%% Of at least that size, equal or one more.
sizes(#{nodes := Count, group_size := Size}) ->
    case max(1, Count div Size) of
        1 -> io_lib:format("one group of ~b", [Count]);
        Groups when Count rem Groups =:= 0 -> io_lib:format("groups of ~b", [Count div Groups]);
        Groups -> io_lib:format("groups of ~b to ~b", [Count div Groups, Count div Groups + 1])
    end.

%% @doc Results side by side, each under a head.
-spec table([{Head :: unicode:chardata(), atoll_cases_orbit_run:task(), atoll_bench_case:result()}, ...]) -> iolist().
table(Runs) ->
    {Heads, Facts} = lists:unzip([{Head, facts(Task, Result)} || {Head, Task, Result} <- Runs]),
    Columns = [{left, ""} | [{right, Head} || Head <- Heads]],
    Names = [Name || {Name, _} <- hd(Facts)],
    Values = [[Value || {_, Value} <- F] || F <- Facts],
    atoll_cli_table:format(Columns, rows([Names | Values])).

%% @doc Whether two runs have found the same set: as many vertices, with the
%% same checksum.
-spec same(atoll_bench_case:result(), atoll_bench_case:result()) -> boolean().
same(A, B) ->
    maps:with([size, checksum], A) =:= maps:with([size, checksum], B).

-spec facts(atoll_cases_orbit_run:task(), atoll_bench_case:result()) -> facts().
facts(#{generators := Generators, space := Space}, Result) ->
    #{size := Size, vertices_received := Received, wall_ms := Ms, nodes := Nodes, epochs := Epochs, kills := Kills, node_kills := NodeKills,
      connections_max := Max, connections_mean := Mean, packets_sent := Packets} = Result,
    [{"generators", atom_to_list(Generators)},
     {"space", atoll_cli_table:count(Space)},
     {"size", atoll_cli_table:count(Size)},
     {"vertices received", atoll_cli_table:count(Received)},
     {"nodes", atoll_cli_table:count(Nodes)},
     {"connections of a node, at most", atoll_cli_table:count(Max)},
     {"connections of a node, on average", atoll_cli_table:decimal(Mean)},
     {"packets between nodes", case Packets of unknown -> "-"; _ -> atoll_cli_table:count(Packets) end},
     {"time", atoll_cli_table:seconds(Ms)}] ++
    [{Name, atoll_cli_table:count(Count)} || Kills + NodeKills + Epochs > 1,
     {Name, Count} <- [{"processes killed", Kills}, {"nodes killed", NodeKills}, {"epochs", Epochs}]] ++
    lists:append([said(Workers) || #{workers := [_ | _] = Workers} <- [Result]]).

said(Workers) ->
    Most = fun(Key) -> lists:max([maps:get(Key, Worker) || Worker <- Workers]) end,
    Fill = fun(Key) -> [maps:get(Key, F) || #{fill := F} <- Workers] end,
    [{"workers", atoll_cli_table:count(length(Workers))},
     {"idle at first, at most", atoll_cli_table:seconds(round(Most(init_idle_ms)))},
     {"idle between, at most", atoll_cli_table:seconds(round(Most(max_idle_ms)))},
     {"idle in the end, at most", atoll_cli_table:seconds(round(Most(tail_idle_ms)))},
     {"credit given back, times", atoll_cli_table:count(lists:sum([C || #{credit_returned := C} <- Workers]))},
     {"least credit, 2 to the power of", [$-, atoll_cli_table:count(Most(least_credit))]},
     {"slots with vertices", atoll_cli_table:percent(lists:sum(Fill(nonempty)) / lists:sum(Fill(slots)))},
     {"vertices of a slot, at most", atoll_cli_table:count(lists:max(Fill(fullest)))}].

%% From columns to rows.
rows([[] | _]) -> [];
rows(Columns) -> [[hd(C) || C <- Columns] | rows([tl(C) || C <- Columns])].
