%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll help': what the commands are, and how each is used.
-module(atoll_cli_help).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).
-export([page/2, group/1]).

-spec summary() -> string().
summary() -> "say how a command is used".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[COMMAND...]"].

-spec examples() -> [string()].
examples() -> ["atoll help orbit", "atoll help sim overlay"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    atoll_cli_io:print(overview());
run(_, Words) ->
    case atoll_cli_commands:find(Words) of
        {ok, Name, Module, []} -> atoll_cli_io:print(page(Name, Module));
        {ok, _, _, [More | _]} -> {usage, ["the argument \"", More, "\" is one too many"]};
        {group, Word} -> atoll_cli_io:print(group(Word));
        {error, Sentence} -> {usage, Sentence}
    end.

overview() ->
    [
        "usage: atoll COMMAND [OPTION...]\n\n",
        atoll_cli_table:lines([left, left], lists:append([
            [[[Title, $:], ""] | rows(Commands)] ++ [["", ""]] || {Title, Commands} <- atoll_cli_commands:sections()
        ])),
        "\"atoll COMMAND --help\" says more. The exit status: ",
        lists:join(", ", [[integer_to_list(Status), $\s, Meaning] || {Status, _, Meaning} <- atoll_cli_exit:table()]), ".\n"
    ].

%% @doc What the commands are that begin with a word.
-spec group(string()) -> iolist().
group(Word) ->
    {Word, Summary} = lists:keyfind(Word, 1, atoll_cli_commands:groups()),
    Before = Word ++ " ",
    [
        ["usage: atoll ", Word, " COMMAND [OPTION...]\n\n"],
        [capital(Summary), ".\n\n"],
        listed([Command || {Name, _} = Command <- atoll_cli_commands:all(), lists:prefix(Before, Name)]),
        ["\n\"atoll ", Word, " COMMAND --help\" says more.\n"]
    ].

listed(Commands) ->
    atoll_cli_table:lines([left, left], rows(Commands)).

rows(Commands) ->
    [["  " ++ Name, Module:summary()] || {Name, Module} <- Commands].

%% @doc How a command is used.
-spec page(string(), module()) -> iolist().
page(Name, Module) ->
    [
        ["usage: ", lists:join($\s, ["atoll", Name | forms(Module)]), "\n\n"],
        [capital(Module:summary()), ".\n"],
        options_part(Module:options()),
        more(Module),
        ["\nexamples:\n", [["  ", Example, $\n] || Example <- Module:examples()]]
    ].

forms(Module) ->
    Module:operands() ++ ["[OPTION...]" || Module:options() =/= []].

options_part([]) ->
    [];
options_part(Options) ->
    Rows = [["  " ++ spelling(Option), meaning(Option)] || Option <- Options],
    ["\noptions:\n", atoll_cli_table:lines([left, left], Rows)].

more(Module) ->
    case erlang:function_exported(Module, more, 0) of
        true -> [$\n, Module:more(), ".\n"];
        false -> ""
    end.

spelling(#{short := Short} = Option) -> [$-, Short, $,, $\s | spelling(maps:remove(short, Option))];
spelling(#{name := Name, value := Value}) -> atoll_cli_options:flag(Name) ++ [$\s | Value];
spelling(#{name := Name}) -> atoll_cli_options:flag(Name).

meaning(#{help := Help, default := Default}) -> [Help, " (", Default, " unless told)"];
meaning(#{help := Help}) -> Help.

capital([C | Rest]) -> [string:to_upper(C) | Rest].
