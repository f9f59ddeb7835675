%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs commands of which nothing is left: a small shell script, `priv/guardian', stands
%% before each. When the command ends, or this VM does, in whatever way, the script kills all
%% processes that the command has started, and removes the directory for what they do not
%% keep. It takes Linux; elsewhere it kills the command alone.
-module(atoll_cluster_guardian).

-export([start/4, finish/1]).

%% @doc Starts a command in its directory, with its output in a file. The caller hears
%% `{Port, {exit_status, Status}}' when it has ended and nothing of it is left. The options
%% are those of `open_port/2'.
-spec start(Dir :: file:filename(), Log :: file:filename(), Command :: [string()], [{env | cd, term()}]) -> port().
start(Dir, Log, Command, Options) ->
    %% The command may have another folder.
    Guardian = filename:absname(filename:join(code:priv_dir(atoll_cluster), "guardian")),
    open_port({spawn_executable, Guardian}, [{args, [Dir, Log | Command]}, exit_status, hide | Options]).

%% @doc Ends it, and waits until nothing of it is left.
-spec finish(port()) -> ok.
finish(Port) ->
    _ = Port ! {self(), {command, "end\n"}},
    receive
        {Port, {exit_status, _}} -> ok
    end.
