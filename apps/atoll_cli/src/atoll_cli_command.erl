%% SPDX-License-Identifier: Apache-2.0
%% @doc What a command of `bin/atoll' is made of. A command is a module of the tool that it
%% belongs to, and the tool's application says so, see {@link atoll_cli_commands}.
%%
%% Its options are read before it runs: what `run' gets is right key by key, and
%% it has only to check what is wrong in combination, before it starts anything.
-module(atoll_cli_command).

-export_type([outcome/0]).

%% What came of it. {@link atoll_cli_exit} has the exit statuses.
-type outcome() ::
    ok
    %% It was done, and what came of it is not as it should be: what, in a sentence.
    | {failed, unicode:chardata()}
    %% What is wrong with the command line.
    | {usage, unicode:chardata()}
    %% Why it could not be done.
    | {unable, unicode:chardata()}
    %% Ctrl-C came, and it has said what there was to say.
    | interrupted.

%% What it does, in less than a line.
-callback summary() -> string().

%% Those that the help shows.
-callback options() -> [atoll_cli_options:option()].

%% Where they hang on what else is typed.
-callback options(Args :: [string()]) -> {ok, [atoll_cli_options:option()]} | {error, unicode:chardata()}.

%% What the help says below them, in a sentence.
-callback more() -> unicode:chardata().
-optional_callbacks([options/1, more/0]).

%% What stands beside the options, in order; an optional one in brackets.
-callback operands() -> [Name :: string()].

%% Command lines that work as they stand.
-callback examples() -> [string()].

-callback run(atoll_cli_options:values(), Operands :: [string()]) -> outcome().
