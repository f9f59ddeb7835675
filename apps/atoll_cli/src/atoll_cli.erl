%% @doc The command line of Atoll: finds the command, has its options read, runs
%% it, and ends the VM with an exit status that means something: 0 for done, 1
%% for a run that failed, 2 for a command line that is wrong. With 1 and 2 goes
%% one sentence on standard error. A stack trace is for faults of our own.
-module(atoll_cli).

-export([main/0, commands/0, find/1, execute/1]).

%% @doc Where `bin/atoll' starts.
-spec main() -> pid().
main() ->
    %% Signals mean now what they mean to any program; what has to be done on
    %% the way down is done by the watchdogs of the clusters, not by this VM.
    ok = os:set_signal(sigterm, default),
    spawn(fun run/0).

%% @doc The commands, as the help lists them.
-spec commands() -> [{Name :: string(), module()}].
commands() ->
    [
        {"demo", atoll_cli_demo},
        {"orbit", atoll_cli_orbit},
        {"up", atoll_cli_up},
        {"status", atoll_cli_status},
        {"down", atoll_cli_down},
        {"help", atoll_cli_help},
        {"version", atoll_cli_version}
    ].

%% @doc A command by its name, or what to say if there is none.
-spec find(string()) -> {ok, module()} | {error, unicode:chardata()}.
find(Name) ->
    case lists:keyfind(Name, 1, commands()) of
        {_, Module} -> {ok, Module};
        false -> {error, unknown(Name, [Known || {Known, _} <- commands()])}
    end.

%% @doc Runs a command line.
-spec execute([string()]) -> {Who :: string(), atoll_cli_command:outcome()}.
execute([]) ->
    {"atoll", {usage, "a command is missing; \"atoll help\" lists them"}};
execute(["-h" | _]) ->
    execute(["help"]);
execute(["--" ++ _ = Flag | Args]) when Flag =:= "--help"; Flag =:= "--version" ->
    execute([lists:nthtail(2, Flag) | Args]);
execute([Name | Args]) ->
    case find(Name) of
        {ok, Module} -> {"atoll " ++ Name, execute(Module, Name, Args)};
        {error, Sentence} -> {"atoll", {usage, Sentence}}
    end.

execute(Module, Name, Args) ->
    case asks_for_help(Args) of
        true -> atoll_cli_help:run(#{}, [Name]);
        false -> read_and_run(Module, Args)
    end.

read_and_run(Module, Args) ->
    case atoll_cli_options:parse(Module:options(), Module:operands(), Args) of
        {ok, Values, Operands} -> Module:run(Values, Operands);
        {error, Sentence} -> {usage, Sentence}
    end.

asks_for_help(Args) ->
    Flags = lists:takewhile(fun(Arg) -> Arg =/= "--" end, Args),
    lists:member("--help", Flags) orelse lists:member("-h", Flags).

unknown(Name, Known) ->
    case atoll_cli_nearest:of_words(Name, Known) of
        {ok, Near} -> ["there is no command \"", Name, "\"; did you mean ", Near, "?"];
        none -> ["there is no command \"", Name, "\"; \"atoll help\" lists them"]
    end.

%% The work is done in a process of its own, so that this one is there to end
%% the VM whatever becomes of it.
-spec run() -> no_return().
run() ->
    ok = atoll_cli_io:init(),
    ok = atoll_cli_tie:start(),
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Self ! {status, self(), status(init:get_plain_arguments())}
    end),
    receive
        {status, Pid, Status} -> halt(Status);
        {'DOWN', Ref, process, Pid, Reason} -> halt(fault(io_lib:format("~0tp", [Reason])))
    end.

status(Args) ->
    try execute(Args) of
        {_, ok} -> 0;
        {Who, {failed, Sentence}} -> complain(Who, Sentence, 1);
        {Who, {usage, Sentence}} -> complain(Who, Sentence, 2)
    catch
        throw:{not_printed, Sentence} -> complain("atoll", Sentence, 1);
        Class:Reason:Stack ->
            fault(erl_error:format_exception(Class, Reason, Stack))
    end.

fault(Trace) ->
    complain("atoll", ["this is a fault of the program: ", Trace], 1).

complain(Who, Sentence, Status) ->
    ok = atoll_cli_io:say([Who, ": ", Sentence]),
    Status.
