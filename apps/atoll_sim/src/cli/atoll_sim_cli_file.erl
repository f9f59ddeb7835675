%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of the simulator's commands: none is destroyed by mistake, and
%% none is there by half under its name.
-module(atoll_sim_cli_file).

-export([is_same/2, replacing/2]).

-include_lib("kernel/include/file.hrl").

%% Links to links: as many as the kernel follows.
-define(MAX_LINKS, 40).

%% @doc Whether two names are those of one file that is there.
-spec is_same(file:filename(), file:filename()) -> boolean().
is_same(One, Other) ->
    case {identity(One), identity(Other)} of
        {{ok, Same}, {ok, Same}} -> true;
        _ -> false
    end.

identity(File) ->
    case file:read_file_info(File) of
        {ok, #file_info{inode = Inode, major_device = Major, minor_device = Minor}} -> {ok, {Inode, Major, Minor}};
        {error, _} = Error -> Error
    end.

%% @doc Lets Fun write a file under a temporary name beside it, and gives it its
%% name if Fun returns `{ok, _}'; otherwise what stood there stays. What is no
%% regular file, a pipe or a device, is written as it is.
-spec replacing(file:filename(), fun((file:filename()) -> {ok, Result} | {error, Reason})) ->
    {ok, Result} | {error, Reason | file:posix() | badarg}.
replacing(File, Fun) ->
    case file:read_file_info(File) of
        {ok, #file_info{type = directory}} -> {error, eisdir};
        {ok, #file_info{type = regular}} -> replace(target(File, ?MAX_LINKS), Fun);
        {ok, #file_info{}} -> Fun(File);
        {error, _} -> replace(target(File, ?MAX_LINKS), Fun)
    end.

replace(File, Fun) ->
    %% Of this run: another may write the same file.
    Part = lists:concat([File, ".", os:getpid(), ".part"]),
    try Fun(Part) of
        {ok, Result} ->
            case file:rename(Part, File) of
                ok -> {ok, Result};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    after
        %% Nothing is there any more if all went well.
        file:delete(Part)
    end.

%% A link stays what it is.
target(File, 0) ->
    File;
target(File, Links) ->
    case file:read_link_all(File) of
        {ok, To} -> target(filename:absname(To, filename:dirname(File)), Links - 1);
        {error, _} -> File
    end.
