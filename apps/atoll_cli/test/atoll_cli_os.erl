%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a program as a user would, for the suites: its two outputs apart,
%% its exit status, its signals.
%%
%% Each program gets a directory of its own for what its clusters keep of
%% themselves (XDG_RUNTIME_DIR). So it sees no cluster of anybody else, and all
%% that it starts carries that directory's name in its environment: what is left
%% of it is found by that, whatever it is.
-module(atoll_cli_os).

-export([root/0, folders/1, new_dir/0, remove_dir/1, run/2, run/3, start/2, start/3, await_exit/2, await_line/3, signal/2, signal_group/2]).
-export([decode/1, has_terminals/0]).
-export([left/1, left/2, await_none_left/1, await/2, beams/1, is_vm/1]).

-export_type([program/0, ended/0]).

-type program() :: #{port := port(), os_pid := pos_integer(), stderr := file:filename(),
                     dir := file:filename()}.

-type ended() :: #{status := non_neg_integer(), stdout := binary(), stderr := binary(),
                   dir := file:filename()}.

%% Ends what hangs; nothing is promised of it.
-define(RUN_MS, 300000).
%% How long what was started may outlive its program, with a database that has files to write too.
-define(GONE_MS, 20000).
-define(LOOK_MS, 50).

%% @doc The working tree.
-spec root() -> file:filename().
root() ->
    filename:absname(filename:join([code:lib_dir(atoll_cli), "..", "..", "..", ".."])).

%% @doc A directory for a program. Short, since a socket's path has to fit: the
%% test's own directory has a long one.
-spec new_dir() -> file:filename().
new_dir() ->
    Dir = atoll_test_file:temporary("atoll-cli"),
    ok = file:make_dir(Dir),
    ok = file:change_mode(Dir, 8#700),
    Dir.

%% @doc Removes it, and ends what may be left of the program: a test that fails
%% must leave nothing behind either. The watchdogs are left to do their work.
-spec remove_dir(file:filename()) -> ok.
remove_dir(Dir) ->
    ok = lists:foreach(fun({Pid, _}) -> signal(Pid, "KILL") end,
                       [Vm || {Pid, _} = Vm <- left(Dir), is_vm(Pid)]),
    case await_none_left(Dir) of
        ok -> file:del_dir_r(Dir);
        {left, Left} -> error({left, Left})
    end.

%% @doc Runs a program of the tree until it ends. Dir is an empty directory, or
%% one that another program has.
-spec run(file:filename(), [string()]) -> ended().
run(Dir, Args) ->
    run(Dir, Args, ?RUN_MS).

-spec run(file:filename(), [string()], timeout()) -> ended().
run(Dir, Args, Ms) ->
    await_exit(start(Dir, Args), Ms).

%% @doc Starts `bin/atoll' with arguments, or `{sh, Text}', in the tree's root.
-spec start(file:filename(), [string()] | {sh, string()}) -> program().
start(Dir, What) ->
    start(Dir, What, root()).

-spec start(file:filename(), [string()] | {sh, string()}, file:filename()) -> program().
start(Dir, {sh, Text}, Cwd) ->
    start_program(Dir, ["/bin/sh", "-c", Text], Cwd);
start(Dir, Args, Cwd) ->
    start_program(Dir, [filename:join([root(), "bin", "atoll"]) | Args], Cwd).

%% @doc The variables by which a program finds what clusters keep of themselves, and the contexts.
-spec folders(file:filename()) -> [{Variable :: string(), file:filename()}].
folders(Dir) ->
    [{"XDG_RUNTIME_DIR", Dir}, {"XDG_CONFIG_HOME", filename:join(Dir, "config")}].

%% The shell only divides the outputs; what it becomes has its pid. A test that
%% runs in the background has SIGINT ignored, and one under nohup SIGHUP, which must not be handed down.
start_program(Dir, Command, Cwd) ->
    Stderr = filename:join(Dir, io_lib:format("stderr.~b", [erlang:unique_integer([positive])])),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "f=$1; shift; exec env --default-signal=INT,HUP \"$@\" 2>\"$f\" </dev/null", "sh",
                Stderr | Command]},
        {env, folders(Dir) ++ [{Name, false} || Name <- ["MAKEFLAGS", "MAKELEVEL", "MFLAGS"]]},
        {cd, Cwd}, exit_status, binary, use_stdio
    ]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    #{port => Port, os_pid => Pid, stderr => Stderr, dir => Dir}.

%% @doc Waits until it ends; what it has printed to standard output since it was
%% last looked at, and all of standard error.
-spec await_exit(program(), timeout()) -> ended().
await_exit(Program, Ms) ->
    await_exit(Program, deadline(Ms), <<>>).

await_exit(#{port := Port, stderr := Stderr, dir := Dir} = Program, Deadline, Stdout) ->
    receive
        {Port, {data, Data}} ->
            await_exit(Program, Deadline, <<Stdout/binary, Data/binary>>);
        {Port, {exit_status, Status}} ->
            {ok, Talk} = file:read_file(Stderr),
            #{status => Status, stdout => Stdout, stderr => Talk, dir => Dir}
    after left_of(Deadline) ->
        %% What holds its output, and whether it is stopped.
        Left = [{Pid, state(Pid), Command} || {Pid, [Command | _]} <- left(Dir)],
        ok = signal(Program, "KILL"),
        error({still_running, Stdout, file:read_file(Stderr), Left})
    end.

state(Pid) ->
    case file:read_file(lists:concat(["/proc/", Pid, "/status"])) of
        {ok, Text} -> [Line || Line <- binary:split(Text, <<"\n">>, [global]), Key <- [<<"State">>, <<"PPid">>, <<"SigPnd">>, <<"ShdPnd">>], string:prefix(Line, Key) =/= nomatch];
        {error, _} -> gone
    end.

%% @doc What a program has printed as JSON.
-spec decode(binary()) -> term().
decode(Json) ->
    case code:ensure_loaded(json) of
        {module, Module} -> Module:decode(Json);
        {error, _} -> jiffy:decode(Json, [return_maps])
    end.

%% @doc Whether a program can be run on a terminal of its own here.
-spec has_terminals() -> boolean().
has_terminals() ->
    os:cmd("script -qec true /dev/null >/dev/null 2>&1 && printf yes") =:= "yes".

%% @doc Waits for a text on an output; returns all of that output so far.
-spec await_line(program(), stdout | stderr, binary()) -> binary().
await_line(Program, Output, Text) ->
    await_line(Program, Output, Text, deadline(?RUN_MS), <<>>).

await_line(#{port := Port} = Program, stdout, Text, Deadline, Seen) ->
    case binary:match(Seen, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} ->
                    await_line(Program, stdout, Text, Deadline, <<Seen/binary, Data/binary>>)
            after left_of(Deadline) -> error({not_said, Text, Seen})
            end;
        _ ->
            Seen
    end;
await_line(#{stderr := File}, stderr, Text, Deadline, _) ->
    Read = fun() -> case file:read_file(File) of {ok, Seen} -> Seen; {error, enoent} -> <<>> end end,
    Said = fun() -> binary:match(Read(), Text) =/= nomatch end,
    case wait_until(Said, Deadline) of
        true -> Read();
        false -> error({not_said, Text, Read()})
    end.

%% @doc Sends a signal, such as "KILL", to the program itself.
-spec signal(program() | pos_integer(), string()) -> ok.
signal(#{os_pid := Pid}, Signal) ->
    signal(Pid, Signal);
signal(Pid, Signal) ->
    kill(Signal, integer_to_list(Pid)).

%% @doc Sends a signal to the program and all that it has in its process group,
%% as a terminal does.
-spec signal_group(program(), string()) -> ok.
signal_group(#{os_pid := Pid}, Signal) ->
    kill(Signal, [$- | integer_to_list(Pid)]).

%% @doc The processes that a program with this directory has left, whatever
%% they are.
-spec left(file:filename()) -> [{pos_integer(), [string()]}].
left(Dir) ->
    left(Dir, fun(_) -> true end).

%% @doc Those whose command line is as it should be.
-spec left(file:filename(), fun(([string()]) -> boolean())) -> [{pos_integer(), [string()]}].
left(Dir, Test) ->
    Mark = iolist_to_binary(["XDG_RUNTIME_DIR=", Dir, 0]),
    [{list_to_integer(Pid), Command}
     || Pid <- filelib:wildcard("[0-9]*", "/proc"),
        {ok, Environment} <- [file:read_file("/proc/" ++ Pid ++ "/environ")],
        binary:match(Environment, Mark) =/= nomatch,
        {ok, Line} <- [file:read_file("/proc/" ++ Pid ++ "/cmdline")],
        Command <- [[binary_to_list(Arg) || Arg <- binary:split(Line, <<0>>, [global])]],
        Test(Command)].

%% @doc Waits until nothing is left, for as long as that may take.
-spec await_none_left(file:filename()) -> ok | {left, [term()]}.
await_none_left(Dir) ->
    case wait_until(fun() -> left(Dir) =:= [] end, deadline(?GONE_MS)) of
        true -> ok;
        false -> {left, left(Dir)}
    end.

%% @doc Waits until something holds of which nothing tells: that a file has changed.
-spec await(fun(() -> boolean()), timeout()) -> ok | late.
await(Test, Ms) ->
    case wait_until(Test, deadline(Ms)) of
        true -> ok;
        false -> late
    end.

%% @doc The nodes: VMs that have a name, with it.
-spec beams(file:filename()) -> [{pos_integer(), Name :: string()}].
beams(Dir) ->
    [{Pid, Name} || {Pid, Args} <- left(Dir),
                    is_vm(Pid),
                    ["-name", Name | _] <- [lists:dropwhile(fun(A) -> A =/= "-name" end, Args)]].

%% @doc Whether a process is an Erlang VM.
-spec is_vm(pos_integer()) -> boolean().
is_vm(Pid) ->
    case file:read_link(lists:concat(["/proc/", Pid, "/exe"])) of
        {ok, Program} -> filename:basename(Program) =:= "beam.smp";
        {error, _} -> false
    end.

kill(Signal, Whom) ->
    Port = open_port({spawn_executable, "/bin/kill"},
                     [{args, ["-" ++ Signal, "--", Whom]}, exit_status, stderr_to_stdout]),
    receive
        %% It may have ended by itself.
        {Port, {exit_status, _}} -> ok
    end.

%% The system has no event for the end of a process that is not one's child.
wait_until(Test, Deadline) ->
    case Test() of
        true ->
            true;
        false ->
            case left_of(Deadline) of
                0 -> false;
                _ ->
                    receive
                    after ?LOOK_MS -> wait_until(Test, Deadline)
                    end
            end
    end.

deadline(Ms) -> erlang:monotonic_time(millisecond) + Ms.

left_of(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).
