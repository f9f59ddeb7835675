%% SPDX-License-Identifier: Apache-2.0
%% @doc The command line of Atoll: finds the command, has its options read, runs
%% it, and ends the VM with an exit status that means something ({@link atoll_cli_exit}).
%% With every status but 0 goes one sentence on standard error. A stack trace is for faults
%% of our own.
-module(atoll_cli).

-include_lib("kernel/include/file.hrl").

-export([main/0, execute/1, options/2, values/1]).

%% @doc Where `bin/atoll' starts.
-spec main() -> pid().
main() ->
    %% Signals mean now what they mean to any program; what has to be done on
    %% the way down is done by the watchdogs of the clusters, not by this VM.
    ok = os:set_signal(sigterm, default),
    ok = os:set_signal(sigusr1, default),
    spawn(fun run/0).

%% @doc Runs a command line; says who speaks, and whether other programs read the answer.
-spec execute([string()]) -> {Who :: string(), Json :: boolean(), atoll_cli_command:outcome()}.
execute([]) ->
    execute(["help"]);
execute(["-h" | _]) ->
    execute(["help"]);
execute(["--" ++ _ = Flag | Args]) when Flag =:= "--help"; Flag =:= "--version" ->
    execute([lists:nthtail(2, Flag) | Args]);
execute(Args) ->
    case atoll_cli_commands:find(Args) of
        {ok, Name, Module, Rest} -> {"atoll " ++ Name, wants_json(Module, Rest), execute(Module, Name, Rest)};
        {group, Word} -> {"atoll " ++ Word, false, execute_group(Word, Args)};
        {error, Sentence} -> {"atoll", false, {usage, Sentence}}
    end.

execute(Module, Name, Args) ->
    case has_flag(["--help", "-h"], Args) of
        true -> atoll_cli_help:run(#{}, string:lexemes(Name, " "));
        false -> read_and_run(Module, Args)
    end.

execute_group(Word, Args) ->
    case has_flag(["--help", "-h"], Args) of
        true ->
            atoll_cli_help:run(#{}, [Word]);
        false ->
            {usage, ["one of ", lists:join(", ", atoll_cli_commands:members(Word)), " must follow; \"atoll help ", Word,
                     "\" says what they do"]}
    end.

read_and_run(Module, Args) ->
    case read(Module, Args) of
        {ok, Values, Operands} ->
            Options = Module:options(),
            case unreadable(atoll_cli_options:inputs(Options, Module:operands(), Values, Operands)) of
                none ->
                    case atoll_cli_options:first(Options, Values) of
                        ok -> Module:run(Values, Operands);
                        {error, Sentence} -> {unable, Sentence}
                    end;
                {File, Reason} -> {unable, [File, ": ", file:format_error(Reason)]}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

read(Module, Args) ->
    case options(Module, Args) of
        {ok, Options} -> atoll_cli_options:parse(Options, Module:operands(), Args);
        {error, _} = Error -> Error
    end.

%% The first that is not there, or not to be read. It is not opened: it may be a pipe.
unreadable([]) ->
    none;
unreadable([File | Files]) ->
    case file:read_file_info(File) of
        {ok, #file_info{type = directory}} -> {File, eisdir};
        {ok, #file_info{access = Access}} when Access =:= read; Access =:= read_write -> unreadable(Files);
        {ok, _} -> {File, eacces};
        {error, Reason} -> {File, Reason}
    end.

%% Whatever else is typed, right or wrong.
wants_json(Module, Args) ->
    has_flag(["--json"], Args) andalso lists:any(fun(#{name := Name}) -> Name =:= json end, Module:options()).

has_flag(Flags, Args) ->
    lists:any(fun(Arg) -> lists:member(Arg, Flags) end, lists:takewhile(fun(Arg) -> Arg =/= "--" end, Args)).

%% @doc The values of the options of a command line that can be read, for who has to know
%% them before it is run.
-spec values([string()]) -> {ok, module(), atoll_cli_options:values()} | none.
values([]) ->
    none;
values(Args) ->
    case atoll_cli_commands:find(Args) of
        {ok, _, Module, Rest} ->
            case read(Module, Rest) of
                {ok, Values, _} -> {ok, Module, Values};
                {error, _} -> none
            end;
        _ ->
            none
    end.

%% @doc The options of a command; those of some hang on what they are to do.
-spec options(module(), [string()]) -> {ok, [atoll_cli_options:option()]} | {error, unicode:chardata()}.
options(Module, Args) ->
    {module, Module} = code:ensure_loaded(Module),
    case erlang:function_exported(Module, options, 1) of
        true -> Module:options(Args);
        false -> {ok, Module:options()}
    end.

%% What the other process ended with is ended with here, by a function that returns nothing.
-dialyzer({nowarn_function, run/0}).

%% The work is done in a process of its own, so that this one is there to end
%% the VM whatever becomes of it.
-spec run() -> no_return().
run() ->
    ok = atoll_cli_io:init(),
    ok = atoll_cli_tie:start(),
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Self ! {status, self(), atoll_cli_exit:run(fun() -> execute(init:get_plain_arguments()) end)}
    end),
    receive
        {status, Pid, Status} -> halt(Status);
        {'DOWN', Ref, process, Pid, Reason} -> halt(atoll_cli_exit:run(fun() -> exit(Reason) end))
    end.
