%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll bench knee': at how many nodes what is done stops following what is offered.
-module(atoll_bench_cli_knee).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "say at how many nodes goodput stops following the load, from runs of debench".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => tolerance, value => "SHARE", default => "0.95", read => atoll_cli_read:share(),
          help => "of what is offered: goodput that is surely below it does not follow"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["FILE", "[FILE...]"].

-spec examples() -> [string()].
examples() -> ["atoll bench knee debench.jsonl", "atoll bench knee mesh.jsonl groups.jsonl --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json, tolerance := Tolerance}, Files) ->
    Read = [atoll_bench_file:read(File) || File <- Files],
    case [Error || {error, Error} <- Read] of
        [] -> knees(Json, Tolerance, [Run || {ok, Run} <- Read]);
        [Error | _] -> {usage, atoll_bench_file:format_error(Error)}
    end.

knees(Json, Tolerance, Runs) ->
    case atoll_bench_knee_curves:knees(Runs, #{tolerance => Tolerance}) of
        {ok, []} ->
            {usage, "all of this is a closed loop, in which nothing is offered that goodput could follow"};
        {ok, Rows} ->
            ok = say_left_out(Runs),
            show(Json, Tolerance, Rows);
        {error, Error} ->
            {usage, atoll_bench_knee_curves:format_error(Error)}
    end.

say_left_out(Runs) ->
    _ = [
        atoll_cli_io:say(io_lib:format("~ts: ~b points failed, and are left out.", [File, length(Errors)]))
     || #{file := File, errors := [_ | _] = Errors} <- Runs
    ],
    case atoll_bench_knee_curves:disturbed(Runs) of
        {0, _} ->
            ok;
        {Disturbed, All} ->
            atoll_cli_io:say(
                io_lib:format("~b of ~b rounds were disturbed; they are left out where a point has others.", [
                    Disturbed, All
                ])
            )
    end.

show(true, Tolerance, Rows) ->
    atoll_cli_io:print_json({[{tolerance, Tolerance}, {rows, [row(Row) || Row <- Rows]}]});
show(false, _Tolerance, [{Key, _, _, _} | _] = Rows) ->
    Columns =
        [{left, Name} || {Name, _} <- Key] ++
            [{right, "nodes"}, {left, "knee at"}, {right, "95 %"}, {left, "goodput, of what is offered"}],
    atoll_cli_io:print(
        atoll_cli_table:format(Columns, [
            [atoll_cli_table:value(Value) || {_, Value} <- Own] ++
                [sizes(Curve), [At, failed(Failed)], Interval, followed(Curve)]
         || {Own, Curve, Knee, Failed} <- Rows, [At, Interval] <- [cells(Knee)]
        ])
    ).

sizes([]) -> "-";
sizes(Curve) -> listed([N || {N, _} <- Curve]).

listed(Numbers) -> lists:join(",", [integer_to_list(N) || N <- Numbers]).

failed([]) -> "";
failed(Nodes) -> [", failed at ", listed(Nodes)].

followed([]) -> "-";
followed(Curve) ->
    lists:join(", ", [
        atoll_cli_table:percent(round(100 * atoll_bench_stats:median(Shares)) / 100)
     || {_, Shares} <- Curve
    ]).

cells(#{verdict := knee, nodes := K, low := Low, high := High}) ->
    [[atoll_cli_table:decimal(K), " nodes"], [atoll_cli_table:decimal(Low), " - ", atoll_cli_table:decimal(High)]];
cells(#{verdict := at_most, nodes := N}) ->
    [["at most ", atoll_cli_table:count(N), " nodes"], "-"];
cells(#{verdict := none, up_to := N}) ->
    [["none up to ", atoll_cli_table:count(N), " nodes"], "-"];
cells(#{verdict := too_few}) ->
    ["too few sizes", "-"].

row({Key, Curve, Knee, Failed}) ->
    {Key ++ [
        {verdict, maps:get(verdict, Knee)},
        {knee_nodes, maps:get(nodes, Knee, null)},
        {knee_low, maps:get(low, Knee, null)},
        {knee_high, maps:get(high, Knee, null)},
        {between, case Knee of #{between := {A, B}} -> [A, B]; _ -> null end},
        {up_to, maps:get(up_to, Knee, null)},
        {slope, maps:get(slope, Knee, null)},
        {plateau, maps:get(plateau, Knee, null)},
        {failed_at, Failed},
        {curve, [
            {[{nodes, N}, {rounds, length(Shares)}, {goodput_percent, 100 * atoll_bench_stats:median(Shares)}]}
         || {N, Shares} <- Curve
        ]}
    ]}.
