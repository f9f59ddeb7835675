%% @doc What a command of `bin/atoll' is made of. A command is a module named
%% `atoll_cli_NAME' that is listed in {@link atoll_cli:commands/0}.
%%
%% Its options are read before it runs: what `run' gets is right key by key, and
%% it has only to check what is wrong in combination, before it starts anything.
-module(atoll_cli_command).

-export_type([outcome/0]).

-type outcome() ::
    %% exit status 0
    ok
    %% exit status 1: what went wrong, in a sentence
    | {failed, unicode:chardata()}
    %% exit status 130: Ctrl-C came, and it has said what there was to say
    | interrupted
    %% exit status 2: what is wrong with the command line, in a sentence
    | {usage, unicode:chardata()}.

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
