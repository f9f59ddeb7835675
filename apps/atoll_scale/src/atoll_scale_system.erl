%% SPDX-License-Identifier: Apache-2.0
%% @doc The service of a description: started with the switches so or so, or found running. It is ready when its
%% description says so, and goes when it is stopped, or with this VM.
%%
%% A service that runs already is never stopped, and its switches are what they are. Where one is to be started its port must be
%% free: else what holds that would be taken for it.
-module(atoll_scale_system).

-export([start/3, allows/3, stop/1, ready/1, ended/1, pids/1, plan/1, settings/1, session/1]).

-export_type([system/0]).

-record(system, {
    plan :: atoll_scale_plan:plan(),
    settings :: atoll_scale_plan:settings(),
    session :: atoll_scale_programs:session(),
    program = none :: atoll_scale_programs:program() | none,
    kernel = [] :: [atoll_scale_kernel:held()]
}).
-opaque system() :: #system{}.

-define(CONNECT_MS, 1000).
-define(LOOK_MS, 50).
-define(FREE_MS, 1000).

%% @doc Starts it, and waits until it is ready. After an error nothing is left.
-spec start(atoll_scale_plan:plan(), atoll_scale_plan:settings(), atoll_scale_programs:session()) ->
    {ok, system()} | {error, unicode:chardata()}.
start(#{start := _, ready := {port, Port}} = Plan, Settings, Session) ->
    case free(Port, erlang:monotonic_time(millisecond) + ?FREE_MS) of
        true -> held(Plan, Settings, Session);
        false -> {error, io_lib:format("port ~b is taken: ~ts answers there before the service is started", [Port, holder(Port)])}
    end;
start(Plan, Settings, Session) ->
    held(Plan, Settings, Session).

%% For some milliseconds after a process was killed and waited for Linux may still answer at its port. Where a
%% connection comes too late something is there, whose queue is full.
free(Port, Deadline) ->
    case {answers(Port), erlang:monotonic_time(millisecond) < Deadline} of
        {{error, Reason}, _} when Reason =/= timeout -> true;
        {_, true} -> receive after ?LOOK_MS -> free(Port, Deadline) end;
        {_, false} -> false
    end.

holder(Port) ->
    case atoll_scale_proc:processes(atoll_scale_listen:holders(Port)) of
        [{Pid, Name} | _] -> io_lib:format("process ~b (~ts)", [Pid, Name]);
        [] -> "something"
    end.

held(#{switches := Switches} = Plan, Settings, Session) ->
    case kernel([{Name, map_get(Switch, Settings)} || #{name := Switch, in := {kernel, Name}} <- Switches], []) of
        {ok, Held} ->
            Program = program(Plan, Settings, Session),
            System = #system{plan = Plan, settings = Settings, session = Session, program = Program, kernel = Held},
            case ready(System) of
                ok -> {ok, System};
                {error, _} = Error -> ok = stop(System), Error
            end;
        {error, _} = Error ->
            Error
    end.

kernel([], Held) -> {ok, Held};
%% As the machine has it.
kernel([{_, now} | Settings], Held) -> kernel(Settings, Held);
kernel([{Name, Value} | Settings], Held) ->
    case atoll_scale_kernel:hold(Name, Value) of
        {ok, One} -> kernel(Settings, [One | Held]);
        {error, _} = Error -> ok = lists:foreach(fun atoll_scale_kernel:release/1, Held), Error
    end.

%% @doc Whether this machine lets a switch have a value.
-spec allows(atom(), atoll_scale_plan:value(), atoll_scale_plan:plan()) -> ok | {error, unicode:chardata()}.
allows(Switch, Value, #{switches := Switches}) ->
    case kernel([{Name, Value} || #{name := Is, in := {kernel, Name}} <- Switches, Is =:= Switch], []) of
        {ok, Held} -> lists:foreach(fun atoll_scale_kernel:release/1, Held);
        {error, _} = Error -> Error
    end.

program(#{start := Command, dir := Dir, switches := Switches}, Settings, Session) ->
    Env = [{Variable, atoll_scale_plan:filled("{value}", #{value => map_get(Name, Settings)})} || #{name := Name, in := {env, Variable}} <- Switches],
    atoll_scale_programs:start(files() ++ atoll_scale_plan:filled(Command, Settings), Dir, Env, Session);
program(#{}, _, _) ->
    none.

%% `bin/atoll' has raised its own limit for the load.
files() ->
    case os:getenv("ATOLL_FILES", "") of
        "" -> "";
        Files -> "ulimit -S -n " ++ Files ++ "\n"
    end.

%% @doc Stops it, if it was started here, and gives the kernel back what it had.
-spec stop(system()) -> ok.
stop(#system{program = Program, kernel = Held}) ->
    _ = Program =:= none orelse atoll_scale_programs:stop(Program),
    lists:foreach(fun atoll_scale_kernel:release/1, Held).

%% @doc Waits until it is ready for a run.
-spec ready(system()) -> ok | {error, unicode:chardata()}.
ready(#system{plan = #{ready_seconds := Seconds}} = System) ->
    ready(System, erlang:monotonic_time(millisecond) + 1000 * Seconds).

ready(#system{plan = #{ready_seconds := Seconds}} = System, Deadline) ->
    case {ended(System), is_ready(System)} of
        {{true, Said}, _} -> {error, ["the service has ended: ", Said]};
        {false, true} -> ok;
        {false, {false, Why}} ->
            case erlang:monotonic_time(millisecond) < Deadline of
                %% No event tells of what another program does.
                true -> receive after ?LOOK_MS -> ok end, ready(System, Deadline);
                false -> {error, io_lib:format("the service was not ready within ~b s: ~ts", [Seconds, Why])}
            end
    end.

is_ready(#system{plan = #{ready := {port, Port}}}) ->
    case answers(Port) of
        ok -> true;
        {error, Reason} -> {false, io_lib:format("port ~b: ~ts", [Port, inet:format_error(Reason)])}
    end;
is_ready(#system{plan = #{ready := {command, Command}, dir := Dir, ready_seconds := Seconds}, session = Session}) ->
    case atoll_scale_programs:run(Command, Dir, 1000 * Seconds, Session) of
        {0, _} -> true;
        {_, Said} -> {false, ["its command says: ", Said]}
    end;
is_ready(#system{plan = #{node := Node}}) ->
    case net_kernel:connect_node(Node) of
        true -> true;
        _ -> {false, [atom_to_list(Node), " is not connected"]}
    end;
is_ready(_) ->
    true.

answers(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [], ?CONNECT_MS) of
        {ok, Socket} -> gen_tcp:close(Socket);
        {error, _} = Error -> Error
    end.

%% @doc Whether it has ended, with what it has said last.
-spec ended(system()) -> {true, binary()} | false.
ended(#system{program = none}) -> false;
ended(#system{program = Program}) ->
    case atoll_scale_programs:ended(Program) of
        {true, Status} -> {true, iolist_to_binary([atoll_scale_programs:said(Program), io_lib:format(" (status ~b)", [Status])])};
        false -> false
    end.

%% @doc Its processes on this machine, as far as they can be known.
-spec pids(system()) -> [pos_integer()].
pids(#system{program = none, plan = #{pid_file := File, dir := Dir}}) ->
    case file:read_file(filename:join(Dir, File)) of
        {ok, Text} ->
            case string:to_integer(string:trim(Text)) of
                {Pid, <<>>} when is_integer(Pid), Pid > 0 -> atoll_scale_proc:children(Pid);
                _ -> []
            end;
        {error, _} -> []
    end;
pids(#system{program = none, plan = #{node := Node}}) ->
    case atoll_scale_node:os_pid(Node) of
        {ok, Pid} -> atoll_scale_proc:children(Pid);
        none -> []
    end;
pids(#system{program = Program}) ->
    atoll_scale_programs:pids(Program).

%% @doc The description.
-spec plan(system()) -> atoll_scale_plan:plan().
plan(#system{plan = Plan}) -> Plan.

%% @doc How its switches are.
-spec settings(system()) -> atoll_scale_plan:settings().
settings(#system{settings = Settings}) -> Settings.

%% @doc For other commands beside it.
-spec session(system()) -> atoll_scale_programs:session().
session(#system{session = Session}) -> Session.
