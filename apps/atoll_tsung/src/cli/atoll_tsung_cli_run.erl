%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll tsung run': runs a scenario of Tsung.
-module(atoll_tsung_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "run a scenario of Tsung, and say what came of its requests".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options("the nodes are those that the scenario names, and let in whoever has your own cookie") ++
    [
        #{name => runs, value => "N", default => "1", read => atoll_cli_read:whole(1, 100), help => "how often it is run"},
        #{name => here, help => "have the hosts of its clients be this machine: VMs of their own, without ssh"},
        #{name => address, value => "IP", read => fun address/1, spell => fun inet:ntoa/1, help => "the address of this machine, by which clients on others reach it"},
        #{name => ssh, value => "PROGRAM", help => "a program in the place of ssh"},
        #{name => scenario, value => "NAME", read => fun text/1, help => "what the scenario is called in the result (as its file unless told)"},
        #{name => out, value => "DIR", help => "a new directory for the logs and the result (atoll-tsung-TIME unless told)"},
        atoll_cli_json:switch()
    ].

address(Text) ->
    case inet:parse_ipv4strict_address(Text) of
        {ok, Address} -> {ok, Address};
        {error, _} -> {error, "must be an IPv4 address"}
    end.

text([_ | _] = Text) -> {ok, Text};
text("") -> {error, "must be a name"}.

-spec more() -> unicode:chardata().
more() -> "docs/tsung.md says what a scenario looks like; \"atoll tsung init\" writes one".

-spec operands() -> [string()].
operands() -> ["FILE"].

-spec examples() -> [string()].
examples() ->
    ["atoll tsung run docs/examples/tsung.xml -c reef", "atoll tsung run tsung.xml --runs 5 --out before", "atoll tsung run tsung.xml --here --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{here := true, ssh := _}, _) ->
    {usage, "--ssh is for clients on other machines, and --here says that there are none: not both"};
run(Values, [File]) ->
    case atoll_view_cli_where:is_given(Values) of
        true -> atoll_view_cli_where:on(looks, otp, Values, fun(View) -> ran(atoll_view:way(View), Values, File) end);
        false -> ran(#{}, Values, File)
    end.

ran(Way, #{json := Json, runs := Runs} = Values, File) ->
    Dir = maps:get(out, Values, atoll_bench_cli_run:timely("atoll-tsung", "")),
    Options = maps:merge(maps:with([here, address, runs], Values), maps:with([cookie_file, tls_options_file], Way)),
    More = [{connector, Program} || #{ssh := Program} <- [Values]] ++ [{name, Name} || #{scenario := Name} <- [Values]],
    ok = atoll_cli_progress:now_doing(["Tsung runs ", File, case Runs of 1 -> ""; _ -> io_lib:format(", ~b times", [Runs]) end, "; its logs go to ", Dir]),
    case atoll_tsung:run(maps:merge(Options, maps:from_list([
        {scenario, File}, {out, Dir}, {progress, atoll_cli_progress:bar("Running Tsung")},
        {command, atoll_cli_again:line(["tsung run ", atoll_cli_again:quoted(File), [" --here" || maps:get(here, Values)]], options(), Values)} | More
    ]))) of
        {ok, Result} ->
            ok = atoll_cli_progress:done(),
            atoll_tsung_cli_report:show(Json, Result);
        {error, Sentence} ->
            {unable, Sentence}
    end.
