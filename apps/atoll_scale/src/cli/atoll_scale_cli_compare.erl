%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll scale compare': changes that are asked for, each compared with the service without it.
-module(atoll_scale_cli_compare).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "compare a service with what it is after a change, or after each of several".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => rounds, value => "N", default => "5", read => atoll_cli_read:whole(1, 100), help => "how often each side is measured; with fewer than five nothing is sure"}
        | atoll_scale_cli:options()
    ].

-spec more() -> unicode:chardata().
more() -> "A CHANGE is SWITCH=VALUE. Before is as the description and --set have it, after has one change more; both are measured in turns.\nEach change is taken back before the next one".

-spec operands() -> [string()].
operands() -> ["PLAN", "CHANGE", "[CHANGE...]"].

-spec examples() -> [string()].
examples() -> ["atoll scale compare shop.plan backlog=1024", "atoll scale compare shop.plan backlog=128 backlog=1024 --set files=16384 --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{set := Set} = Values, [File | Typed]) ->
    case atoll_scale_cli:plan(File) of
        {ok, Plan} ->
            case atoll_scale_cli:settings(Plan, Set) of
                {ok, Settings} ->
                    case changes(Typed, Plan, Settings) of
                        {ok, Changes} -> atoll_scale_cli:within("compare", {File, Plan}, Values, fun(Opened) -> compare(Changes, {Plan, Settings, Opened}, Values) end);
                        {error, Sentence} -> {usage, Sentence}
                    end;
                {error, Sentence} ->
                    {usage, Sentence}
            end;
        Wrong ->
            Wrong
    end.

%% One after the other, each read as a `--set' would be.
changes(Typed, Plan, Settings) ->
    Twice = (Typed -- lists:usort(Typed)) ++ [none],
    lists:foldr(
        fun
            (_, {error, _} = Error) -> Error;
            (Text, {ok, Changes}) ->
                case atoll_scale_cli:change(Plan, Text) of
                    {ok, {Switch, To}} ->
                        case Settings of
                            #{} when hd(Twice) =:= Text -> {error, [Text, " stands there twice"]};
                            #{Switch := To} -> {error, [Text, " is so before the change"]};
                            #{Switch := Before} -> {ok, [#{switch => Switch, from => Before, to => To} | Changes]}
                        end;
                    {error, _} = Error -> Error
                end
        end,
        {ok, []}, Typed).

%% One search says where the others begin.
compare(Changes, {Plan, Settings, #{session := Session, journal := Journal}} = Opened, #{rounds := Rounds, json := Json}) ->
    case atoll_scale_find:find(Plan, #{settings => Settings, searches => 1, session => Session}, atoll_scale_cli:note(Journal), fun atoll_scale_cli:searched/1) of
        {ok, #{summary := #{limit := Limit}}} ->
            case all(Changes, {Rounds, max(1, Limit)}, Opened, []) of
                {ok, Compared} when Json -> atoll_cli_io:print_json({[{changes, [object(Change, Result) || {Change, Result} <- Compared]}]});
                {ok, Compared} -> atoll_cli_io:print([[atom_to_list(Switch), $=, atoll_scale_cli:spelt(To), ": ", atoll_scale_cli:change_line(Result), $\n] || {#{switch := Switch, to := To}, Result} <- Compared]);
                {error, Sentence} -> {unable, Sentence}
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

all([], _, _, Compared) -> {ok, lists:reverse(Compared)};
all([Change | Changes], From, Opened, Compared) ->
    case atoll_scale_cli:compared(Change, From, fun(_) -> false end, Opened) of
        {ok, Result} -> all(Changes, From, Opened, [{Change, Result} | Compared]);
        {error, _} = Error -> Error
    end.

object(#{switch := Switch, from := From, to := To}, #{before := Before, 'after' := After, verdict := Verdict, ratio := Ratio, low := Low, high := High}) ->
    {[
        {switch, Switch}, {from, list_to_binary(atoll_scale_cli:spelt(From))}, {to, list_to_binary(atoll_scale_cli:spelt(To))}, {before, Before}, {'after', After},
        {verdict, Verdict}, {ratio, null(Ratio)}, {ratio_low, null(Low)}, {ratio_high, null(High)}
    ]}.

null(none) -> null;
null(Value) -> Value.
