%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll load run': a load by a configuration in Basho Bench's form.
-module(atoll_load_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-define(SHOWN, 5).

-spec summary() -> string().
summary() -> "load a store by a configuration in Basho Bench's form".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => out, value => "DIR", help => "a new directory for the files (atoll-load-TIME unless told)"},
        atoll_cli_json:switch()
    ].

-spec more() -> unicode:chardata().
more() -> "docs/load.md has the keys of the configuration, and the drivers".

-spec operands() -> [string()].
operands() -> ["FILE"].

-spec examples() -> [string()].
examples() -> ["atoll load run docs/examples/load-ring.config", "atoll load run docs/examples/load-ring.config --out before --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, [File]) ->
    case atoll_load_config:read(File) of
        {ok, Config} ->
            Dir = maps:get(out, Values, atoll_bench_cli_run:timely("atoll-load", "")),
            ok = atoll_cli_progress:now_doing(["The load of ", File, " runs; its files go to ", Dir]),
            Ran = atoll_load:run(Config, #{out => Dir, command => atoll_cli_again:line(["load run ", atoll_cli_again:quoted(File)], options(), Values)}),
            ok = atoll_cli_progress:done(),
            case Ran of
                {ok, Result} -> show(Json, Dir, Result);
                {error, Sentence} -> {unable, Sentence}
            end;
        {error, Error} -> {usage, atoll_load_config:format_error(Error)}
    end.

show(Json, Dir, #{looks := Looks, ended := Ended, servers := Servers}) ->
    #{elapsed_ms := Ms, labels := Labels, shed := Shed, offered := Offered, completed := Completed} = lists:last(Looks),
    Errors = lists:reverse(lists:keysort(3, [{Label, Reason, N} || {Label, #{errors := Of}} <- Labels, {Reason, N} <- Of])),
    Shown = lists:sublist(Servers, ?SHOWN),
    ok = case Json of
        true -> atoll_cli_io:print_json({[
            {seconds, Ms / 1000}, {offered, Offered}, {shed, Shed}, {files, unicode:characters_to_binary(Dir)},
            {operations, {[{Label, {of_label(Of, Ms)}} || {Label, Of} <- Labels]}},
            {errors, [{[{operation, Label}, {reason, reason(Reason)}, {count, N}]} || {Label, Reason, N} <- lists:sublist(Errors, ?SHOWN)]},
            {servers, [{[{name, named(Server)} | [{Key, map_get(Key, Server)} || Key <- [busy, waiting, waiting_max]]]} || Server <- Shown]},
            {suspects, [named(Server) || Server <- atoll_bench_servers:suspects(Servers)]}
        ]});
        false -> atoll_cli_io:print([
            atoll_cli_table:format(
                [{left, "operation"} | [{right, Head} || Head <- ["a second", "p50 ms", "p99 ms", "max ms", "errors", "their p50 ms", "their p99 ms"]]],
                [[atom_to_list(Label) | [number(V) || {Key, V} <- of_label(Of, Ms), Key =/= ok]] || {Label, Of} <- Labels]
            ), $\n,
            [io_lib:format("~ts of ~ts operations were not begun: no worker was free for them within a quarter of a second. The times are those of the others.~n", [atoll_cli_table:count(Shed), atoll_cli_table:count(Offered)]) || Shed > 0],
            [io_lib:format("~ts: ~ts, ~ts times~n", [Label, reason(Reason), atoll_cli_table:count(N)]) || {Label, Reason, N} <- lists:sublist(Errors, ?SHOWN)],
            [$\n || Shed > 0 orelse Errors =/= []],
            atoll_cli_table:format(
                [{left, "server"}, {right, "busy %"}, {right, "waiting"}, {right, "at most"}],
                [[named(Server) | [number(map_get(Key, Server)) || Key <- [busy, waiting, waiting_max]]] || Server <- Shown]
            ),
            $\n, atoll_bench_servers:says(Servers), $\n,
            "files: ", Dir, $\n
        ])
    end,
    case Ended of
        whole when Completed =:= 0, Offered > 0 -> {failed, "no operation went well"};
        whole -> ok;
        {stopped, Reason} -> {failed, io_lib:format("the load was stopped by an error: ~0tP", [Reason, 9])}
    end.

named(#{name := Name}) -> unicode:characters_to_binary(atoll_bench_servers:format(Name)).

of_label(#{latency := Latency, failed := Failed, ok := Ok, errors := Errors}, Ms) ->
    [{ok, Ok}, {per_s, 1000 * Ok / max(1, Ms)}] ++
        [{Key, milliseconds(Ns)} || {Key, Ns} <- [
            {p50_ms, atoll_histogram:percentile(Latency, 50)}, {p99_ms, atoll_histogram:percentile(Latency, 99)}, {max_ms, atoll_histogram:max(Latency)}
        ]] ++ [{errors, lists:sum([N || {_, N} <- Errors])}] ++
        [{Key, milliseconds(atoll_histogram:percentile(Failed, P))} || {Key, P} <- [{errors_p50_ms, 50}, {errors_p99_ms, 99}]].

reason(Reason) when is_binary(Reason) -> Reason;
reason(Reason) -> atom_to_binary(Reason).

milliseconds(none) -> null;
milliseconds(Ns) -> Ns / 1_000_000.

number(null) -> "-";
number(N) when is_integer(N) -> atoll_cli_table:count(N);
number(N) -> io_lib:format("~.2f", [float(N)]).
