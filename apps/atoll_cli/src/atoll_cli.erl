%% @doc The command line of Atoll: finds the command, has its options read, runs
%% it, and ends the VM with an exit status that means something: 0 for done, 1
%% for a run that failed, 2 for a command line that is wrong, 130 for Ctrl-C. With 1 and 2
%% goes one sentence on standard error. A stack trace is for faults of our own.
-module(atoll_cli).

-export([main/0, commands/0, groups/0, find/1, execute/1, options/2]).

%% @doc Where `bin/atoll' starts.
-spec main() -> pid().
main() ->
    %% Signals mean now what they mean to any program; what has to be done on
    %% the way down is done by the watchdogs of the clusters, not by this VM.
    ok = os:set_signal(sigterm, default),
    ok = os:set_signal(sigusr1, default),
    spawn(fun run/0).

%% @doc The commands, as the help lists them.
-spec commands() -> [{Name :: string(), module()}].
commands() ->
    [
        {"demo", atoll_cli_demo},
        {"orbit", atoll_cli_orbit},
        {"aco", atoll_cli_aco},
        {"up", atoll_cli_up},
        {"status", atoll_cli_status},
        {"links", atoll_cli_links},
        {"route", atoll_cli_route},
        {"down", atoll_cli_down},
        {"group new", atoll_cli_group_new},
        {"group delete", atoll_cli_group_delete},
        {"group add", atoll_cli_group_add},
        {"group remove", atoll_cli_group_remove},
        {"group list", atoll_cli_group_list},
        {"group names", atoll_cli_group_names},
        {"group draw", atoll_cli_group_draw},
        {"place", atoll_cli_place},
        {"distance matrix", atoll_cli_distance_matrix},
        {"distance measure", atoll_cli_distance_measure},
        {"distance draw", atoll_cli_distance_draw},
        {"sim overlay", atoll_cli_sim_overlay},
        {"sim broadcast", atoll_cli_sim_broadcast},
        {"sim detect", atoll_cli_sim_detect},
        {"sim directory", atoll_cli_sim_directory},
        {"sim reach", atoll_cli_sim_reach},
        {"sim run", atoll_cli_sim_run},
        {"sim show", atoll_cli_sim_show},
        {"sim replay", atoll_cli_sim_replay},
        {"bench list", atoll_cli_bench_list},
        {"bench run", atoll_cli_bench_run},
        {"bench compare", atoll_cli_bench_compare},
        {"bench report", atoll_cli_bench_report},
        {"bench knee", atoll_cli_bench_knee},
        {"debench", atoll_cli_debench},
        {"experiments", atoll_cli_experiments},
        {"chaos run", atoll_cli_chaos_run},
        {"chaos random", atoll_cli_chaos_random},
        {"semantics", atoll_cli_semantics},
        {"help", atoll_cli_help},
        {"version", atoll_cli_version}
    ].

%% @doc The first words of the commands that have two, with what they are about.
-spec groups() -> [{Word :: string(), Summary :: string()}].
groups() ->
    [
        {"group", "make, change and show the groups of a running cluster"},
        {"distance", "how far nodes are from each other: measure, show and draw it"},
        {"sim", "run the protocols of many nodes in virtual time"},
        {"bench", "measure, compare and report"},
        {"chaos", "do harm to real nodes, and see what recovers"}
    ].

%% @doc The command that a line begins with, and the rest of the line; or the
%% group, if the line names no more; or what to say if there is neither.
-spec find([string(), ...]) ->
    {ok, Name :: string(), module(), Rest :: [string()]}
    | {group, Word :: string()}
    | {error, unicode:chardata()}.
find([Word | Rest]) ->
    case {lists:keyfind(Word, 1, commands()), lists:keymember(Word, 1, groups())} of
        {{_, Module}, _} -> {ok, Word, Module, Rest};
        {false, true} -> find_in(Word, Rest);
        {false, false} -> {error, unknown(Word, Word, "", words(), "atoll help")}
    end.

find_in(Group, [[C | _] = Word | Rest]) when C =/= $- ->
    Name = Group ++ " " ++ Word,
    case lists:keyfind(Name, 1, commands()) of
        {_, Module} -> {ok, Name, Module, Rest};
        false -> {error, unknown(Name, Word, Group ++ " ", members(Group), "atoll help " ++ Group)}
    end;
find_in(Group, _) ->
    {group, Group}.

%% Somebody may have mistyped a group, or left it out.
words() ->
    [Name || {Name, _} <- commands()] ++ [Word || {Word, _} <- groups()].

members(Group) ->
    [Member || {Name, _} <- commands(), [First, Member] <- [string:lexemes(Name, " ")], First =:= Group].

%% @doc Runs a command line.
-spec execute([string()]) -> {Who :: string(), atoll_cli_command:outcome()}.
execute([]) ->
    {"atoll", {usage, "a command is missing; \"atoll help\" lists them"}};
execute(["-h" | _]) ->
    execute(["help"]);
execute(["--" ++ _ = Flag | Args]) when Flag =:= "--help"; Flag =:= "--version" ->
    execute([lists:nthtail(2, Flag) | Args]);
execute(Args) ->
    case find(Args) of
        {ok, Name, Module, Rest} -> {"atoll " ++ Name, execute(Module, Name, Rest)};
        {group, Word} -> {"atoll " ++ Word, execute_group(Word, Args)};
        {error, Sentence} -> {"atoll", {usage, Sentence}}
    end.

execute(Module, Name, Args) ->
    case asks_for_help(Args) of
        true -> atoll_cli_help:run(#{}, string:lexemes(Name, " "));
        false -> read_and_run(Module, Args)
    end.

execute_group(Word, Args) ->
    case asks_for_help(Args) of
        true ->
            atoll_cli_help:run(#{}, [Word]);
        false ->
            {usage, ["one of ", lists:join(", ", members(Word)), " must follow; \"atoll help ", Word,
                     "\" says what they do"]}
    end.

read_and_run(Module, Args) ->
    case options(Module, Args) of
        {ok, Options} ->
            case atoll_cli_options:parse(Options, Module:operands(), Args) of
                {ok, Values, Operands} -> Module:run(Values, Operands);
                {error, Sentence} -> {usage, Sentence}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

%% @doc The options of a command; those of some hang on what they are to do.
-spec options(module(), [string()]) -> {ok, [atoll_cli_options:option()]} | {error, unicode:chardata()}.
options(Module, Args) ->
    {module, Module} = code:ensure_loaded(Module),
    case erlang:function_exported(Module, options, 1) of
        true -> Module:options(Args);
        false -> {ok, Module:options()}
    end.

asks_for_help(Args) ->
    Flags = lists:takewhile(fun(Arg) -> Arg =/= "--" end, Args),
    lists:member("--help", Flags) orelse lists:member("-h", Flags).

unknown(Name, Word, Before, Known, Help) ->
    case atoll_cli_nearest:of_words(Word, Known) of
        {ok, Near} -> ["there is no command \"", Name, "\"; did you mean ", Before, Near, "?"];
        none -> ["there is no command \"", Name, "\"; \"", Help, "\" lists them"]
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
        {Who, interrupted} -> complain(Who, "interrupted; all is healed", 130);
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
