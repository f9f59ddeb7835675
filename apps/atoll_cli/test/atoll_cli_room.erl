%% SPDX-License-Identifier: Apache-2.0
%% A clean Debian without a network, in which commands run (scripts/clean-room). It ends with
%% the process that has opened it, in whatever way that ends, and all that runs there with it.
-module(atoll_cli_room).

-export([can/0, open/2, dir/0, command/3]).

-export_type([room/0]).

%% The process whose namespaces are the room.
-opaque room() :: #{pid := string()}.

%% The first time its packages are fetched; nothing is promised of that.
-define(OPEN_MS, 1200000).

%% @doc Whether there can be one here.
-spec can() -> ok | {skip, string()}.
can() ->
    case {os:find_executable("apt-get"), os:cmd("unshare --mount --uts --ipc --net --pid --fork true 2>&1")} of
        {false, _} -> {skip, "a Debian root is made with apt-get, which is not installed"};
        {_, ""} -> ok;
        {_, Why} -> {skip, "there can be no namespaces here: " ++ Why}
    end.

%% @doc Opens a room that has these packages, and the directory.
-spec open(Dir :: file:filename(), Packages :: [string(), ...]) -> room().
open(Dir, Packages) ->
    Script = filename:join([atoll_cli_os:root(), "scripts", "clean-room"]),
    Port = open_port({spawn_executable, Script}, [
        {args, [Dir | Packages]}, {env, [{"XDG_RUNTIME_DIR", Dir}]}, {line, 1000}, exit_status, use_stdio
    ]),
    receive
        {Port, {data, {eol, Pid}}} -> #{pid => Pid};
        {Port, {exit_status, Status}} -> error({no_room, Status})
    after ?OPEN_MS -> error(no_room)
    end.

%% @doc Where its directory stands there.
-spec dir() -> file:filename().
dir() -> "/mnt".

%% @doc What runs a command there, with nothing in its environment but this.
-spec command(room(), Environment :: [string()], Command :: [unicode:chardata(), ...]) -> [unicode:chardata(), ...].
command(#{pid := Pid}, Environment, Command) ->
    [os:find_executable("nsenter"), "-t", Pid, "-a", "-r", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb"
     | Environment ++ Command].
