%% SPDX-License-Identifier: Apache-2.0
%% @doc A journal as the table of stages that the paper has: what was changed, what the limit was before and after, and what that
%% brought. Pure.
-module(atoll_scale_report).

-export([stages/1, text/1, html/2]).

-export_type([stage/0]).

%% A stage is a limit that was found, or a change that was compared.
-type stage() :: #{
    at := binary(),
    what := binary(),
    limit := number() | null,
    low := number() | null,
    high := number() | null,
    %% Of a change: by what factor the limit is larger, its interval, the verdict, and whether it stays.
    ratio := number() | null,
    ratio_low := number() | null,
    ratio_high := number() | null,
    verdict := binary() | null,
    kept := boolean() | null,
    %% What limits the service then, the likeliest cause first.
    findings := [binary()]
}.

%% @doc The stages of a journal.
-spec stages([atoll_scale_journal:entry()]) -> [stage()].
stages(Entries) ->
    lists:append([stage(Entry) || Entry <- Entries]).

stage(#{<<"what">> := <<"limit">>, <<"at">> := At, <<"limit">> := Limit, <<"low">> := Low, <<"high">> := High, <<"findings">> := Findings} = Entry) ->
    [#{
        at => At, what => [<<"limit">>, of_settings(maps:get(<<"settings">>, Entry, #{}))], limit => Limit, low => Low, high => High, ratio => null, ratio_low => null,
        ratio_high => null, verdict => null, kept => null, findings => [Says || #{<<"says">> := Says} <- Findings]
    }];
stage(#{<<"what">> := <<"change">>, <<"at">> := At, <<"switch">> := Switch, <<"from">> := From, <<"to">> := To, <<"after">> := After,
        <<"ratio">> := Ratio, <<"low">> := Low, <<"high">> := High, <<"verdict">> := Verdict, <<"kept">> := Kept}) ->
    [#{
        at => At, what => [Switch, ": ", spelt(From), " to ", spelt(To)], limit => atoll_bench_stats:median(After), low => null, high => null,
        ratio => Ratio, ratio_low => Low, ratio_high => High, verdict => Verdict, kept => Kept, findings => []
    }];
stage(_) ->
    [].

of_settings(Settings) when map_size(Settings) =:= 0 -> "";
of_settings(Settings) -> [" with ", lists:join(", ", [[Name, $\s, spelt(Value)] || {Name, Value} <- lists:sort(maps:to_list(Settings))])].

spelt(Value) when is_integer(Value) -> integer_to_binary(Value);
spelt(Value) when is_float(Value) -> float_to_binary(Value, [short]);
spelt(Value) when is_atom(Value) -> atom_to_binary(Value);
spelt(Value) -> Value.

-define(HEADS, [{right, "stage"}, {left, "what"}, {right, "limit"}, {right, "95 %"}, {right, "factor"}, {right, "95 %"}, {left, "verdict"}]).

rows(Stages) ->
    [
        [
            integer_to_list(N), What, number(Limit), range(Low, High, fun number/1), factor(Ratio), range(RatioLow, RatioHigh, fun factor/1),
            case {Verdict, Kept} of {null, _} -> ""; {_, true} -> [Verdict, ", kept"]; {_, _} -> [Verdict, ", taken back"] end
        ]
     || {N, #{what := What, limit := Limit, low := Low, high := High, ratio := Ratio, ratio_low := RatioLow, ratio_high := RatioHigh, verdict := Verdict, kept := Kept}}
            <- lists:zip(lists:seq(1, length(Stages)), Stages)
    ].

number(null) -> "-";
number(N) -> atoll_cli_table:decimal(N).

factor(null) -> "";
factor(Factor) -> float_to_list(float(Factor), [{decimals, 2}]).

range(null, _, _) -> "";
range(Low, High, Spelt) -> [Spelt(Low), " - ", Spelt(High)].

%% @doc For a terminal.
-spec text([stage()]) -> unicode:chardata().
text(Stages) ->
    [
        atoll_cli_table:format(?HEADS, rows(Stages)),
        [[io_lib:format("\nWhat limits it at stage ~b:\n", [N]), [["  ", Says, $\n] || Says <- Findings]] || {N, [_ | _] = Findings} <- found(Stages)]
    ].

found(Stages) -> lists:zip(lists:seq(1, length(Stages)), [Findings || #{findings := Findings} <- Stages]).

%% @doc A page that stands alone.
-spec html(Title :: unicode:chardata(), [stage()]) -> unicode:chardata().
html(Title, Stages) ->
    [
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>", escaped(Title), "</title>\n",
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
        "th,td{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:left}.right{text-align:right}</style>\n",
        "<h1>", escaped(Title), "</h1>\n<table>\n<tr>", [["<th", class(Align), ">", escaped(Head), "</th>"] || {Align, Head} <- ?HEADS], "</tr>\n",
        [["<tr>", [["<td", class(Align), ">", escaped(Cell), "</td>"] || {{Align, _}, Cell} <- lists:zip(?HEADS, Row)], "</tr>\n"] || Row <- rows(Stages)],
        "</table>\n",
        [[io_lib:format("<h2>What limits it at stage ~b</h2>\n<ol>\n", [N]), [["<li>", escaped(Says), "</li>\n"] || Says <- Findings], "</ol>\n"] || {N, [_ | _] = Findings} <- found(Stages)],
        "</html>\n"
    ].

class(left) -> "";
class(right) -> " class=\"right\"".

escaped(Text) ->
    [case C of $< -> "&lt;"; $> -> "&gt;"; $& -> "&amp;"; _ -> C end || C <- unicode:characters_to_list(Text)].
