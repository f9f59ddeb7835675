%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands that a description names, and what they start. A session has a folder for what they say; each program has a
%% guardian ({@link atoll_cluster_guardian}) that kills all that it has started, when it is told and when this VM
%% ends in whatever way. The folder has one too, so it does not stay either.
%%
%% A session and its programs belong to the process that opened it: that one hears of their ends.
-module(atoll_scale_programs).

-export([open/0, close/1, folder/1, start/4, run/4, stop/1, ended/1, pids/1, said/1]).

-export_type([session/0, program/0]).

-opaque session() :: #{dir := file:filename(), keeper := port()}.

-opaque program() :: #{port := port(), dir := file:filename(), log := file:filename()}.

%% What is kept of what a program says.
-define(SAID_BYTES, (1 bsl 20)).
-define(LAST_LINES, 3).

%% @doc Opens a session.
-spec open() -> {ok, session()} | {error, unicode:chardata()}.
open() ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["atoll-scale-", os:getpid(), "-", erlang:unique_integer([positive])])),
    case file:make_dir(Dir) of
        ok -> {ok, #{dir => Dir, keeper => atoll_cluster_guardian:start(Dir, "/dev/null", ["sleep", "infinity"], [])}};
        {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
    end.

%% @doc Closes it, when its programs are stopped.
-spec close(session()) -> ok.
close(#{keeper := Keeper}) -> atoll_cluster_guardian:finish(Keeper).

%% @doc The name of a folder that is not there yet, and goes with the session.
-spec folder(session()) -> file:filename().
folder(#{dir := Session}) -> lists:concat([Session, "/", erlang:unique_integer([positive])]).

%% @doc Starts a command of the shell, in a folder, with variables of its environment.
-spec start(string(), file:filename(), [{string(), string()}], session()) -> program().
start(Command, Cwd, Env, Session) ->
    Dir = folder(Session),
    ok = file:make_dir(Dir),
    Log = Dir ++ ".log",
    #{dir => Dir, log => Log, port => atoll_cluster_guardian:start(Dir, Log, ["/bin/sh", "-c", Command], [{cd, Cwd}, {env, Env}])}.

%% @doc Runs a command to its end, or for so long.
-spec run(string(), file:filename(), timeout(), session()) -> {Status :: non_neg_integer() | late, Said :: binary()}.
run(Command, Cwd, Ms, Session) ->
    #{port := Port} = Program = start(Command, Cwd, [], Session),
    Status =
        receive
            {Port, {exit_status, Is}} -> Is
        after Ms ->
            ok = stop(Program),
            late
        end,
    Said = text(Program),
    _ = file:delete(maps:get(log, Program)),
    {Status, Said}.

%% @doc Ends it, and all that it has started.
-spec stop(program()) -> ok.
stop(#{port := Port}) ->
    case erlang:port_info(Port) of
        undefined -> receive {Port, {exit_status, _}} -> ok after 0 -> ok end;
        _ -> atoll_cluster_guardian:finish(Port)
    end.

%% @doc Whether it has ended by itself, with which status.
-spec ended(program()) -> {true, Status :: non_neg_integer()} | false.
ended(#{port := Port}) ->
    receive
        {Port, {exit_status, Status}} ->
            self() ! {Port, {exit_status, Status}},
            {true, Status}
    after 0 -> false
    end.

%% @doc The processes of it that live.
-spec pids(program()) -> [pos_integer()].
pids(#{dir := Dir}) -> atoll_scale_proc:marked(["<", Dir, ">"]).

%% @doc The last lines that it has said, as one.
-spec said(program()) -> binary().
said(Program) ->
    Lines = [Line || Line <- string:lexemes(text(Program), "\n"), string:trim(Line) =/= <<>>],
    iolist_to_binary(lists:join("; ", lists:nthtail(max(0, length(Lines) - ?LAST_LINES), Lines))).

%% The end of it.
text(#{log := Log}) ->
    case file:open(Log, [read, raw, binary]) of
        {ok, File} ->
            {ok, Size} = file:position(File, eof),
            Text = case file:pread(File, max(0, Size - ?SAID_BYTES), ?SAID_BYTES) of {ok, Is} -> Is; eof -> <<>> end,
            ok = file:close(File),
            readable(Text);
        {error, _} ->
            <<>>
    end.

%% Of what is no UTF-8 each byte is a character.
readable(Text) ->
    case unicode:characters_to_binary(Text) of
        <<_/binary>> = Is -> Is;
        _ -> <<_/binary>> = unicode:characters_to_binary(Text, latin1)
    end.
