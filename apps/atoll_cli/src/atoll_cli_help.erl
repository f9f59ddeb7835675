%% @doc `atoll help': what the commands are, and how each is used.
-module(atoll_cli_help).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).
-export([page/2]).

-spec summary() -> string().
summary() -> "say how a command is used".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[COMMAND]"].

-spec examples() -> [string()].
examples() -> ["atoll help orbit"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    atoll_cli_io:print(overview());
run(_, [Name]) ->
    case atoll_cli:find(Name) of
        {ok, Module} -> atoll_cli_io:print(page(Name, Module));
        {error, Sentence} -> {usage, Sentence}
    end.

overview() ->
    [
        "usage: atoll COMMAND [OPTION...]\n\n",
        atoll_cli_table:lines([left, left], [
            ["  " ++ Name, Module:summary()]
         || {Name, Module} <- atoll_cli:commands()
        ]),
        "\n\"atoll COMMAND --help\" says more.\n"
    ].

%% @doc How a command is used.
-spec page(string(), module()) -> iolist().
page(Name, Module) ->
    [
        ["usage: ", lists:join($\s, ["atoll", Name | forms(Module)]), "\n\n"],
        [capital(Module:summary()), ".\n"],
        options_part(Module:options()),
        ["\nexamples:\n", [["  ", Example, $\n] || Example <- Module:examples()]]
    ].

forms(Module) ->
    Module:operands() ++ ["[OPTION...]" || Module:options() =/= []].

options_part([]) ->
    [];
options_part(Options) ->
    Rows = [["  " ++ spelling(Option), meaning(Option)] || Option <- Options],
    ["\noptions:\n", atoll_cli_table:lines([left, left], Rows)].

spelling(#{name := Name, value := Value}) -> atoll_cli_options:flag(Name) ++ [$\s | Value];
spelling(#{name := Name}) -> atoll_cli_options:flag(Name).

meaning(#{help := Help, default := Default}) -> [Help, " (", Default, " unless told)"];
meaning(#{help := Help}) -> Help.

capital([C | Rest]) -> [string:to_upper(C) | Rest].
