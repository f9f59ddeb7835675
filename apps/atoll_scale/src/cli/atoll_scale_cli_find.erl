%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll scale find': the limit of a service, and what makes it.
-module(atoll_scale_cli_find).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "find the limit of a service, and what was at its limit while it failed".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => searches, value => "N", default => "5", read => atoll_cli_read:whole(1, 100), help => "how often it is looked for; an interval takes five"},
        #{name => from, value => "LEVEL", read => atoll_cli_read:whole(1, 1000000000), help => "the level to begin with, in place of the description's"}
        | atoll_scale_cli:options()
    ].

-spec operands() -> [string()].
operands() -> ["PLAN"].

-spec examples() -> [string()].
examples() -> ["atoll scale find shop.plan", "atoll scale find shop.plan --searches 1 --set backlog=128"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{set := Set} = Values, [File]) ->
    case atoll_scale_cli:plan(File) of
        {ok, Plan} ->
            case atoll_scale_cli:settings(Plan, Set) of
                {ok, Settings} -> atoll_scale_cli:within("find", {File, Plan}, Values, fun(Opened) -> find(Plan, Settings, Values, Opened) end);
                {error, Sentence} -> {usage, Sentence}
            end;
        Wrong ->
            Wrong
    end.

find(#{level := Level} = Plan, Settings, #{searches := Searches, json := Json} = Values, #{session := Session, journal := Journal}) ->
    Options = (maps:with([from], Values))#{settings => Settings, searches => Searches, session => Session},
    case atoll_scale_find:find(Plan, Options, atoll_scale_cli:note(Journal), fun atoll_scale_cli:searched/1) of
        {ok, #{summary := Summary, runs := Runs, findings := Findings}} ->
            ok = atoll_scale_journal:add(Summary#{what => limit, settings => atoll_scale_plan:json(Settings), findings => Findings}, Journal),
            case Json of
                true -> atoll_cli_io:print_json(object(Summary, Runs, Findings));
                false -> atoll_cli_io:print(atoll_scale_cli:limit(Summary, Level, Findings, Runs))
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

object(#{limit := Limit, low := Low, high := High, limits := Limits, at_least := AtLeast}, Runs, Findings) ->
    {[
        {limit, Limit}, {low, null(Low)}, {high, null(High)}, {at_least, AtLeast}, {limits, Limits},
        {runs, [{[{level, Level}, {passed, Passed}, {failed, Failed}]} || {Level, {Passed, Failed}} <- lists:sort(maps:to_list(Runs))]},
        {findings, [{[{cause, Cause}, {subject, Subject}, {says, Says}, {change, Change}]} || #{cause := Cause, subject := Subject, says := Says, change := Change} <- Findings]}
    ]}.

null(none) -> null;
null(Value) -> Value.
