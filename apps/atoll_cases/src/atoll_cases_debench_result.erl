%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of DE-Bench has done, for people and for programs.
-module(atoll_cases_debench_result).

-export([json/2, table/2]).

%% @doc The object that `--json' prints.
-spec json(atoll_cases_debench_run:task(), atoll_cases_debench_run:result()) -> atoll_cli_json:object().
json(#{system := System, nodes := Nodes, group_size := Size, seed := Seed, out := Dir} = Task, Result) ->
    #{looks := Looks, chaos := Chaos} = Result,
    #{offered := Offered, completed := Completed, shed := Shed, labels := Labels, restarts := Restarts} = lists:last(Looks),
    {[
        {system, System},
        {nodes, many(Nodes)},
        {group_size, case System of groups when is_integer(Nodes) -> Size; _ -> null end},
        {seed, Seed},
        {seconds, seconds(Task)},
        {offered, Offered},
        {successful, successful(Labels)},
        {failed, Offered - successful(Labels)},
        {shed, Shed},
        {goodput_per_s, Completed / seconds(Task)},
        {goodput_percent, 100 * Completed / max(1, Offered)},
        {operations, [operation(Label, Of) || {Label, Of} <- Labels]},
        {windows, [window(Window) || Window <- windows(Looks)]},
        {restarts, Restarts},
        {chaos, chaos(Chaos)},
        {out, unicode:characters_to_binary(Dir)}
    ]}.

%% That of the load: what ended later was waited for.
seconds(#{config := #{duration := Minutes}}) -> max(0.001, 60 * Minutes).

successful(Labels) -> lists:sum([N || {_, #{ok := N}} <- Labels]).

operation(Label, #{ok := Ok, errors := Errors, latency := Latency}) ->
    {[
        {label, Label},
        {successful, Ok},
        {errors, lists:sum([N || {_, N} <- Errors])},
        {p50_us, us(atoll_histogram:percentile(Latency, 50))},
        {p99_us, us(atoll_histogram:percentile(Latency, 99))}
    ]}.

us(none) -> null;
us(Ns) -> Ns / 1000.

windows(Looks) ->
    Before = [atoll_bench_window:outset(hd(Looks)) | lists:droplast(Looks)],
    lists:zipwith(fun atoll_bench_window:between/2, Before, Looks).

window(#{elapsed_s := Elapsed, window_s := Length, successful := Ok, failed := Failed}) ->
    {[{elapsed_s, Elapsed}, {window_s, Length}, {successful, Ok}, {failed, Failed}]}.

chaos(none) ->
    null;
chaos(#{summary := Summary}) ->
    #{done := Kills, recovered := Recovered, never := Never, median_ms := Median, max_ms := Max} = kills(Summary),
    {[{kills, Kills}, {recovered, Recovered}, {never, Never}, {median_ms, null(Median)}, {max_ms, null(Max)}]}.

kills(Summary) ->
    None = #{done => 0, recovered => 0, never => 0, median_ms => none, max_ms => none},
    proplists:get_value(kill_process, Summary, None).

null(none) -> null;
null(Number) -> Number.

%% @doc The tables that are printed otherwise.
-spec table(atoll_cases_debench_run:task(), atoll_cases_debench_run:result()) -> iolist().
table(#{system := System, nodes := Nodes, group_size := Size, out := Dir} = Task, #{looks := Looks, chaos := Chaos}) ->
    #{offered := Offered, completed := Completed, labels := Labels, shed := Shed} = Last = lists:last(Looks),
    [
        io_lib:format("~b nodes in ~ts, ~ts\n\n", [
            many(Nodes), where(System, Size, Nodes), atoll_cli_table:seconds(round(1000 * seconds(Task)))
        ]),
        atoll_cli_table:format(
            [{left, "operation"}, {right, "successful"}, {right, "errors"}, {right, "p50 \x{b5}s"}, {right, "p99 \x{b5}s"}],
            [row(operation(Label, Of)) || {Label, Of} <- Labels]
        ),
        io_lib:format("\ngoodput: ~ts operations a second, ~ts of what was offered; ~ts failed, ~ts of them shed\n", [
            atoll_cli_table:decimal(Completed / seconds(Task)),
            atoll_cli_table:percent(Completed / max(1, Offered)),
            atoll_cli_table:count(Offered - successful(Labels)),
            atoll_cli_table:count(Shed)
        ]),
        harm(Chaos, Last),
        ["CSV files: ", Dir, "; graphs: atoll bench report ", filename:join(Dir, "run.jsonl"), $\n]
    ].

many(Nodes) when is_list(Nodes) -> length(Nodes);
many(Nodes) -> Nodes.

where(mesh, _Size, _Nodes) -> "a mesh with global";
where(groups, _Size, Nodes) when is_list(Nodes) -> "their groups";
where(groups, Size, _Nodes) -> ["groups of ", integer_to_list(Size)].

row({Fields}) ->
    [{label, Label} | Numbers] = Fields,
    [atom_to_list(Label) | [case N of null -> "-"; _ -> atoll_cli_table:decimal(N) end || {_, N} <- Numbers]].

harm(none, _Last) ->
    [];
harm(#{summary := Summary}, #{restarts := Restarts}) ->
    #{done := Kills, recovered := Recovered, median_ms := Median} = kills(Summary),
    io_lib:format("chaos: ~b workers killed, ~b back~ts; ~b started anew\n", [
        Kills,
        Recovered,
        case Median of none -> ""; _ -> [" after ", atoll_cli_table:decimal(Median), " ms (median)"] end,
        Restarts
    ]).
