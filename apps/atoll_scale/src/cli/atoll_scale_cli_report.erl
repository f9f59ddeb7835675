%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll scale report': a journal as a table of stages.
-module(atoll_scale_cli_report).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show a journal as a table of stages".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => html, value => "FILE", help => "write it as a page, in place of printing it"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["JOURNAL"].

-spec examples() -> [string()].
examples() -> ["atoll scale report shop.plan.journal", "atoll scale report shop.plan.journal --html stages.html"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, [Journal]) ->
    case atoll_scale_journal:read(Journal) of
        {ok, Entries, Broken} ->
            _ = [atoll_cli_io:say(io_lib:format("~ts: ~b lines were cut, and are left out", [Journal, Broken])) || Broken > 0],
            shown(Json, Values, Journal, atoll_scale_report:stages(Entries));
        {error, Sentence} ->
            {unable, Sentence}
    end.

shown(_, _, Journal, []) ->
    {failed, [Journal, " has no limit and no change yet"]};
shown(true, _, _, Stages) ->
    atoll_cli_io:print_json({[{stages, [{[{Key, text(Key, map_get(Key, Stage))} || Key <- keys()]} || Stage <- Stages]}]});
shown(false, #{html := File}, Journal, Stages) ->
    case file:write_file(File, unicode:characters_to_binary(atoll_scale_report:html(Journal, Stages))) of
        ok -> atoll_cli_io:say([File, " is written"]);
        {error, Reason} -> {unable, [File, ": ", file:format_error(Reason)]}
    end;
shown(false, _, _, Stages) ->
    atoll_cli_io:print(atoll_scale_report:text(Stages)).

keys() -> [at, what, limit, low, high, ratio, ratio_low, ratio_high, verdict, kept, findings].

text(what, What) -> unicode:characters_to_binary(What);
text(_, Value) -> Value.
