%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll demo': what groups are for, each time beside the full mesh. Names, which
%% `global' gives in a mesh and a group among its own nodes; connections, by Orbit in a mesh and
%% in groups; and failures, by ant colonies in groups, which find what they would have found
%% although processes are killed all the time.
-module(atoll_cases_demo).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, names_table/2]).

-define(NODES, 12).
-define(GROUP_SIZE, 4).

%% Rounds of each way of giving names, in turns, of which the median is shown.
-define(NAME_ROUNDS, 3).
%% A round of the colonies begins each second.
-define(ROUNDS, 20).
-define(ROUND_MS, 1000).

-spec summary() -> string().
summary() -> "show in a minute what groups do for names, connections and failures".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll demo"].

%% Each part is shown as soon as it is over.
-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json}, []) ->
    case parts([fun names/0, fun connections/0, fun failures/0], Json, []) of
        {ok, Facts} ->
            ok = show_json(Json, Facts),
            judge(Facts);
        {error, Sentence} ->
            {unable, Sentence}
    end.

parts([], _Json, Facts) ->
    {ok, Facts};
parts([Part | Parts], Json, Before) ->
    case Part() of
        {ok, Text, Facts} ->
            ok = show(Json, [[$\n || Before =/= []] | Text]),
            parts(Parts, Json, Before ++ Facts);
        {error, _} = Error ->
            Error
    end.

show(true, _) -> ok;
show(false, Text) -> atoll_cli_io:print(Text).

show_json(true, Facts) -> atoll_cli_io:print_json({Facts});
show_json(false, _) -> ok.

judge(Facts) ->
    case {proplists:get_value(equal, Facts), proplists:get_value(aco_equal, Facts)} of
        {true, true} -> ok;
        {false, _} -> {failed, "the two runs have found different sets"};
        {true, false} -> {failed, "the ant colonies have found another schedule than without kills"}
    end.

say(What) ->
    atoll_cli_io:say([integer_to_list(?NODES), " nodes: ", What]).

%% Names.

%% The benchmark `names', with one caller on each node.
names() ->
    ok = say("names, by global in a full mesh and by s_group in groups"),
    Points = [#{nodes => ?NODES, callers => 1, on => each, rate => 0, system => System} || System <- [global, s_group_of_4]],
    case named(Points, []) of
        {ok, Rounds} ->
            [Mesh, Groups] = Medians = [medians(Of) || Of <- turned(Rounds)],
            {ok, names_table(Mesh, Groups), [{names, {lists:zip([mesh, groups], [{maps:to_list(M)} || M <- Medians])}}]};
        {error, _} = Error ->
            Error
    end.

%% Sets up one after the other, and measures in turns.
named([Point | Points], States) ->
    case atoll_bench_names:setup(Point#{seed => 1}) of
        {ok, State} ->
            try
                named(Points, States ++ [State])
            after
                ok = atoll_bench_names:teardown(State)
            end;
        {error, _} = Error ->
            Error
    end;
named([], States) ->
    named_rounds(?NAME_ROUNDS, States, []).

named_rounds(0, _States, Rounds) ->
    {ok, Rounds};
named_rounds(Left, States, Rounds) ->
    Answers = [atoll_bench_names:round(State) || State <- States],
    case [Error || {error, _} = Error <- Answers] of
        [] -> named_rounds(Left - 1, [Next || {ok, _, Next} <- Answers], [[Of || {ok, Of, _} <- Answers] | Rounds]);
        [Error | _] -> Error
    end.

turned(Rounds) -> [[lists:nth(N, Round) || Round <- Rounds] || N <- [1, 2]].

medians(Rounds) ->
    maps:from_list([
        {Key, atoll_bench_stats:median([maps:get(Key, Round) || Round <- Rounds])}
     || Key <- [registrations_per_s, cpu_us_per_op, messages_per_op]
    ]).

%% @doc What was measured of names. Who does better with groups by a factor below one does worse.
-spec names_table(Mesh :: #{atom() => number()}, Groups :: #{atom() => number()}) -> unicode:chardata().
names_table(Mesh, Groups) ->
    Row = fun(Name, Key, Better, Text) ->
        #{Key := M} = Mesh,
        #{Key := G} = Groups,
        [Name, Text(M), Text(G), times(case Better of more -> G / M; fewer -> M / G end)]
    end,
    Of = integer_to_list(?GROUP_SIZE),
    [
        atoll_cli_table:format(
            [{left, "Names"}, {right, "global, full mesh"}, {right, ["s_group, groups of ", Of]}, {right, "better"}],
            [
                Row("names registered in a second", registrations_per_s, more, fun(N) -> atoll_cli_table:count(round(N)) end),
                Row("processor time of all nodes for a name", cpu_us_per_op, fewer, fun(Us) -> milliseconds(Us / 1000) end),
                Row("messages between nodes for a name", messages_per_op, fewer, fun atoll_cli_table:decimal/1)
            ]
        ),
        ["For a name, global locks all ", integer_to_list(?NODES), " nodes. That of a group concerns its ", Of, " nodes alone.\n"]
    ].

times(Factor) when Factor < 10 -> [atoll_cli_table:decimal(Factor), " times"];
times(Factor) -> [atoll_cli_table:count(round(Factor)), " times"].

milliseconds(Ms) -> io_lib:format("~.1f ms", [Ms]).

%% Connections.

connections() ->
    [Mesh, Groups] = Tasks = [orbit(mesh), orbit(groups)],
    case [run_orbit(Task) || Task <- Tasks] of
        [{ok, A}, {ok, B}] ->
            Same = atoll_cases_orbit_result:same(A, B),
            {ok, sets(Same, [{Mesh, A}, {Groups, B}]),
             [{mesh, atoll_cases_orbit_result:json(Mesh, A)}, {groups, atoll_cases_orbit_result:json(Groups, B)}, {equal, Same}]};
        Answers ->
            hd([Error || {error, _} = Error <- Answers])
    end.

orbit(Mode) ->
    #{generators => g124, space => 100000, mode => Mode, nodes => ?NODES,
      group_size => ?GROUP_SIZE, workers => 4}.

run_orbit(Task) ->
    ok = say(["Orbit, ", atoll_cases_orbit_result:head(Task)]),
    atoll_cases_orbit_run:orbit(Task).

sets(Same, Runs) ->
    [
        atoll_cli_table:format(
            [{left, "Connections"} | [{right, atoll_cases_orbit_result:head(Task)} || {Task, _} <- Runs]],
            [
                [Name | [Text(maps:get(Key, Result)) || {_, Result} <- Runs]]
             || {Name, Key, Text} <- [
                    {"connections of a node, at most", connections_max, fun atoll_cli_table:count/1},
                    {"connections of a node, on average", connections_mean, fun atoll_cli_table:decimal/1},
                    {"Orbit, a distributed hash table: its size", size, fun atoll_cli_table:count/1},
                    {"packets between nodes", packets_sent, fun packets/1},
                    {"time", wall_ms, fun atoll_cli_table:seconds/1}
                ]
            ]
        ),
        case Same of
            true -> "Both runs have found the same set. What is for another group goes through gateways, which costs packets.\n";
            false -> "The two runs have found different sets.\n"
        end
    ].

packets(unknown) -> "-";
packets(Count) -> atoll_cli_table:count(Count).

%% Failures.

failures() ->
    Task = ants(),
    ok = say("ant colonies, one process killed each second on each node"),
    case atoll_cases_aco_run:run(Task) of
        {ok, Result} ->
            Spared = spared(Task, Result),
            {ok, schedules(Spared, Result), [{aco, atoll_cases_aco_result:json(Task, Result)}, {aco_equal, Spared}]};
        {error, _} = Error ->
            Error
    end.

%% As `atoll aco' with these options.
ants() ->
    Asked = #{ants => 4, local_iterations => 10, global_iterations => ?ROUNDS, local_search => o12,
              pace => ?ROUND_MS, nodes => ?NODES, chaos => 1},
    {ok, Defaults, []} = atoll_cli_options:parse(atoll_cases_aco:options(), [], []),
    {ok, Problem, none} = atoll_cases_aco_problem:read(Defaults),
    atoll_cases_aco_run:task(Problem, none, maps:merge(Defaults, Asked)).

%% Whether they have found what one process does of which nothing is killed.
spared(#{problem := Problem, options := Options}, #{order := Order, colonies := Colonies}) ->
    Ran = aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies}),
    Order =:= maps:get(order, Ran).

schedules(Spared, Result) ->
    Count = fun(Key) -> atoll_cli_table:count(maps:get(Key, Result)) end,
    [
        atoll_cli_table:format([{left, "Failures"}, {right, "ant colonies in groups"}], [
            [Name, Count(Key)]
         || {Name, Key} <- [{"colonies, each a server with a name", colonies}, {"rounds done", rounds}, {"processes killed", kills},
                            {"processes started again", restarts}, {"cost of the schedule", best}]
        ]),
        case Spared of
            true -> "Without kills the colonies find the same schedule.\n";
            false -> "Without kills the colonies find another schedule.\n"
        end
    ].
