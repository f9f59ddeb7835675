%% SPDX-License-Identifier: Apache-2.0
%% @doc Which commit of its sources a benchmark was run from. Git is asked where this
%% application was built; where there is no repository, or no Git, nobody knows.
-module(atoll_bench_commit).

-export([describe/0, describe/1]).

-define(GIT_MS, 10000).

%% @doc The commit in hexadecimal, with `-dirty' if what is there differs from it.
-spec describe() -> binary() | null.
describe() ->
    describe(filename:dirname(code:which(?MODULE))).

%% @doc That of the repository in which a directory lies.
-spec describe(file:filename()) -> binary() | null.
describe(Dir) ->
    case git(["rev-parse", "--verify", "HEAD"], Dir) of
        %% And not a warning.
        {ok, <<Commit:40/binary>>} ->
            case git(["status", "--porcelain", "--untracked-files=no"], Dir) of
                {ok, <<>>} -> Commit;
                {ok, _} -> <<Commit/binary, "-dirty">>;
                error -> null
            end;
        _ ->
            null
    end.

git(Args, Dir) ->
    case os:find_executable("git") of
        false ->
            error;
        Git ->
            Port = open_port({spawn_executable, Git}, [{args, ["-C", Dir | Args]}, exit_status, stderr_to_stdout, binary, hide]),
            said(Port, erlang:monotonic_time(millisecond) + ?GIT_MS, <<>>)
    end.

said(Port, Until, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, Until, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> {ok, string:trim(Said)};
        {Port, {exit_status, _}} -> error
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = port_close(Port),
        error
    end.
