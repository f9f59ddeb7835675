%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim replay': whether what was recorded on real nodes has the same
%% effects when it is replayed.
-module(atoll_sim_cli_replay).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "replay what was recorded on real nodes, and compare the effects".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_sim_cli_strategy:code(), atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> ["FILE", "[FILE...]"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim replay recorded/n1/overlay.rec",
        "atoll sim replay recorded/*/*.rec --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, Files) ->
    ok = atoll_sim_cli_strategy:add_code(Values),
    case replay(Files, []) of
        {ok, Results} ->
            ok = show(Json, Results),
            exit_status([File || {File, #{outcome := #{}}} <- Results]);
        {error, Sentence} ->
            {usage, Sentence}
    end.

%% One after the other: a recording may be large.
replay([], Results) ->
    {ok, lists:reverse(Results)};
replay([File | Files], Results) ->
    case atoll_sim_cluster:isolated(fun() -> atoll_sim_replay:run(File) end) of
        {ok, Result} -> replay(Files, [{File, Result} | Results]);
        {error, Error} -> {error, atoll_sim_replay:format_error(Error)}
    end.

exit_status([]) -> ok;
exit_status([File]) -> {failed, [File, " has other effects than were recorded, or cannot be replayed"]};
exit_status([File | More]) -> {failed, io_lib:format("~ts and ~b more have other effects than were recorded, or cannot be replayed", [File, length(More)])}.

show(true, Results) ->
    atoll_cli_io:print_json({[{recordings, [object(File, Result) || {File, Result} <- Results]}]});
show(false, Results) ->
    Columns = [
        {left, "file"}, {left, "node"}, {left, "protocol"}, {right, "events"}, {right, "lost"}, {left, "end"}, {left, "effects"}
    ],
    Rows = [row(File, Result) || {File, Result} <- Results],
    Details = [details(File, Outcome) || {File, #{outcome := #{} = Outcome}} <- Results],
    atoll_cli_io:print([atoll_cli_table:format(Columns, Rows), Details]).

row(File, #{node := Node, protocol := Protocol, events := Events, lost := Lost, cut := Cut, outcome := Outcome}) ->
    [
        File,
        atom_to_binary(Node),
        atom_to_binary(Protocol),
        atoll_cli_table:count(Events),
        atoll_cli_table:count(Lost),
        case Cut of
            true -> "cut";
            false -> "whole"
        end,
        effects(Outcome)
    ].

effects(identical) -> "identical";
effects(#{at := At}) -> ["differ at event ", atoll_cli_table:count(At)];
effects(#{crashed := _}) -> "not replayed".

details(File, #{at := At, event := Event, recorded := Recorded, replayed := Replayed}) ->
    Lines = [{"event", text(Event)}, {"recorded", text(Recorded)}, {"replayed", text(Replayed)}],
    [io_lib:format("\n~ts, event ~b:\n", [File, At]) | [["  ", Name, "  ", Text, $\n] || {Name, Text} <- padded(Lines)]];
details(File, #{crashed := Reason}) ->
    io_lib:format("\n~ts: the protocol takes no such state or event: ~ts\n", [File, text(Reason)]).

padded(Lines) ->
    [{string:pad(Name, length("recorded")), Text} || {Name, Text} <- Lines].

object(File, #{outcome := Outcome} = Result) ->
    #{node := Node, otp := Otp, protocol := Protocol, events := Events, lost := Lost, cut := Cut} = Result,
    {[
        {file, unicode:characters_to_binary(File)},
        {node, atom_to_binary(Node)},
        {otp, unicode:characters_to_binary(Otp)},
        {protocol, atom_to_binary(Protocol)},
        {events, Events},
        {lost, Lost},
        {cut, Cut},
        {identical, Outcome =:= identical},
        {difference, difference(Outcome)}
    ]}.

difference(identical) ->
    null;
difference(#{at := At, event := Event, recorded := Recorded, replayed := Replayed}) ->
    {[{event, At}, {what, text(Event)}, {recorded, text(Recorded)}, {replayed, text(Replayed)}]};
difference(#{crashed := Reason}) ->
    {[{crashed, text(Reason)}]}.

text(Term) -> unicode:characters_to_binary(atoll_sim_term:text(Term)).
