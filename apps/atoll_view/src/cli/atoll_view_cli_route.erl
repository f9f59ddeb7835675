%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll route': how one node of a running cluster reaches another one, and why so.
-module(atoll_view_cli_route).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, table/3, json/3, why_not/1]).

-spec summary() -> string().
summary() -> "show how a node of a running cluster reaches another one".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options(looks) ++ [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> ["FROM", "TO"].

-spec examples() -> [string()].
examples() -> ["atoll route reef2 reef5 -c reef", "atoll route reef2 reef5 -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [TypedFrom, TypedTo]) ->
    atoll_view_cli_where:on(looks, atoll, Values, fun(View) ->
        case {atoll_view_cli_where:named([TypedFrom], View), atoll_view_cli_where:named([TypedTo], View)} of
            {{ok, [Same]}, {ok, [Same]}} -> {usage, "FROM and TO must be two nodes"};
            {{ok, [From]}, {ok, [To]}} -> show(From, To, atoll_view:ask(From, atoll, route, [To]), Values);
            {{error, Sentence}, _} -> {usage, Sentence};
            {_, {error, Sentence}} -> {usage, Sentence}
        end
    end).

show(From, To, {ok, {ok, Route}}, #{json := true}) ->
    atoll_cli_io:print_json(json(From, To, Route));
show(From, To, {ok, {ok, Route}}, #{json := false}) ->
    atoll_cli_io:print(table(From, To, Route));
show(_From, _To, {ok, {error, {route, _} = Error}}, _Values) ->
    {failed, atoll:format_error(Error)};
show(From, _To, {ok, {error, Error}}, _Values) ->
    {unable, [atom_to_list(From), ": ", why_not(Error)]};
show(_From, _To, {error, Sentence}, _Values) ->
    {unable, Sentence}.

%% @private The node speaks of keys of the application; who typed a command has options.
-spec why_not(atoll:error()) -> unicode:chardata().
why_not(directory_off) -> [atoll:format_error(directory_off), "; \"atoll up N --groups K --carrier atoll --relay\" does"];
why_not(Error) -> atoll:format_error(Error).

%% @doc The route as people read it.
-spec table(From :: node(), To :: node(), atoll:route()) -> iolist().
table(From, To, #{hops := Hops, alternatives := Others, now := Now}) ->
    Columns = [{left, "from"}, {left, "to"}, {left, "why"}, {right, "others that would do"}],
    Rows = [
        [atom_to_list(A), atom_to_list(B), why(Via), others(From, Hop)]
     || #{from := A, to := B, via := Via} = Hop <- Hops
    ],
    Also = [{"or over", between(From, To, Path)} || Path <- Others],
    [
        atoll_cli_table:format(Columns, Rows),
        $\n,
        atoll_cli_table:lines([left, left], [[Word, Text] || {Word, Text} <- Also ++ [{"now", now(From, To, Now)}]])
    ].

why({group, Group}) -> ["both are in ", atom_to_list(Group)];
why(link) -> "a link of the two".

%% In the place of the first node of a hop, which at the beginning nobody can take.
others(From, #{from := From}) -> "-";
others(_From, #{choices := Choices}) -> atoll_cli_table:count(Choices - 1).

between(From, To, Path) -> listed(Path -- [From, To]).

listed(Nodes) -> lists:join($\s, [shown(Node) || Node <- Nodes]).

shown(Node) when is_atom(Node) -> atom_to_list(Node);
shown(Node) -> Node.

now(_From, _To, none) -> "they are not connected";
now(_From, _To, link) -> "they have a connection of their own";
now(From, To, {relay, Path}) ->
    case between(From, To, Path) of
        [] -> "they are connected";
        Nodes -> ["they are connected over ", Nodes]
    end.

%% @doc The same for programs.
-spec json(From :: node(), To :: node(), atoll:route()) -> atoll_cli_json:object().
json(From, To, #{path := Path, hops := Hops, alternatives := Others, now := Now}) ->
    {[
        {from, From},
        {to, To},
        {path, Path},
        {hops, [
            {[{from, A}, {to, B}, {group, group(Via)}, {choices, Choices}]}
         || #{from := A, to := B, via := Via, choices := Choices} <- Hops
        ]},
        {alternatives, Others},
        {now, case Now of
            {relay, Over} -> {[{kind, relay}, {path, Over}]};
            Word -> {[{kind, Word}, {path, null}]}
        end}
    ]}.

group({group, Group}) -> Group;
group(link) -> null.
