%% SPDX-License-Identifier: Apache-2.0
%% @doc The archive of a release: a .tar.gz as it is, or one that is made of a folder. It is kept under its checksum, so
%% that what was uploaded stays what it was when the folder is compiled anew; the same folder gives the same checksum.
-module(atoll_deploy_release).

-include_lib("kernel/include/file.hrl").

-export([new/1, keep/2, archive/2, has/2, most/0]).

%% What an archive has at most, and how many files a folder.
-define(MOST, (1 bsl 30)).
-define(FILES, 100000).

%% @doc How many bytes an archive has at most.
-spec most() -> pos_integer().
most() -> ?MOST.

%% @doc Keeps the archive of a release in a folder, and says its checksum. Nothing is kept of one that is wrong.
-spec keep(atoll_deploy_thing:thing(), Dir :: file:filename()) -> {ok, Sum :: string()} | {error, unicode:chardata()}.
keep(#{name := Name, path := Path} = Release, Dir) ->
    Kept =
        case new(Dir) of
            {ok, New} ->
                Done = kept(Path, New, Release, Dir),
                _ = file:delete(New),
                Done;
            {error, _} = Error -> Error
        end,
    case Kept of
        {ok, Sum} -> {ok, Sum};
        {error, Why} -> {error, ["the release ", Name, ": ", Why]}
    end.

%% @doc A file for what is to be kept, in the folder, which is made. What a VM that was killed has left of its own is gone.
-spec new(Dir :: file:filename()) -> {ok, file:filename()} | {error, unicode:chardata()}.
new(Dir) ->
    case filelib:ensure_path(Dir) of
        ok ->
            _ = [file:delete(Old) || Old <- filelib:wildcard(Dir ++ "/.new-*"), [_, Pid, _] <- [string:lexemes(filename:basename(Old), "-")], not filelib:is_dir("/proc/" ++ Pid)],
            {ok, filename:join(Dir, lists:concat([".new-", os:getpid(), "-", erlang:unique_integer([positive])]))};
        {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
    end.

kept(Path, New, Release, Dir) ->
    Copied =
        case filelib:is_dir(Path) of
            true -> packed(Path, New);
            false -> copied(Path, New)
        end,
    case Copied of
        ok ->
            case {sum(New), Release} of
                {{ok, Sum}, #{sha256 := Wanted}} when Sum =/= Wanted ->
                    {error, ["the checksum of ", Path, " is ", Sum, ", and not the one that is told"]};
                {{ok, Sum}, _} ->
                    case file:rename(New, archive(Dir, Sum)) of
                        ok -> {ok, Sum};
                        {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
                    end;
                {{error, Reason}, _} ->
                    {error, [New, ": ", file:format_error(Reason)]}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The file of an archive that is kept.
-spec archive(Dir :: file:filename(), Sum :: string()) -> file:filename().
archive(Dir, Sum) -> lists:append([Dir, "/", Sum, ".tar.gz"]).

%% @doc Whether an archive is kept.
-spec has(Dir :: file:filename(), Sum :: string()) -> boolean().
has(Dir, Sum) -> filelib:is_regular(archive(Dir, Sum)).

%% What is in it must stay in the folder in which it is unpacked.
copied(Path, New) ->
    case filelib:is_regular(Path) andalso file:copy(Path, New, ?MOST + 1) of
        false ->
            case file:read_file_info(Path) of
                {ok, _} -> {error, [Path, " is neither a folder nor a file"]};
                {error, Reason} -> {error, [Path, ": ", file:format_error(Reason)]}
            end;
        {ok, Bytes} when Bytes > ?MOST ->
            too_large(Path);
        {ok, _} ->
            case erl_tar:table(New, [compressed]) of
                {ok, []} -> {error, [Path, " is an archive with nothing in it"]};
                {ok, Names} ->
                    case [Name || Name <- Names, filelib:safe_relative_path(Name, "/nowhere") =:= unsafe] of
                        [] -> ok;
                        [Name | _] -> {error, [Path, " has ", Name, " in it, which leads out of its folder"]}
                    end;
                {error, _} -> {error, [Path, " is neither a folder nor a .tar.gz"]}
            end;
        {error, Reason} ->
            {error, [Path, ": ", file:format_error(Reason)]}
    end.

too_large(Path) ->
    {error, io_lib:format("~ts has more than ~b bytes, or ~b files", [Path, ?MOST, ?FILES])}.

packed(Path, New) ->
    case made(Path) of
        {error, _} = Error -> Error;
        {ok, []} -> {error, [Path, " is a folder with nothing in it"]};
        {ok, Files} ->
            case erl_tar:open(New, [write, compressed]) of
                {ok, Tar} ->
                    %% Nothing of when and by whom it was compiled.
                    Added = added(Files, Tar),
                    case {Added, erl_tar:close(Tar)} of
                        {ok, ok} -> ok;
                        {{error, Reason}, _} -> {error, [Path, ": ", erl_tar:format_error(Reason)]};
                        {ok, {error, Reason}} -> {error, [New, ": ", erl_tar:format_error(Reason)]}
                    end;
                {error, Reason} ->
                    {error, [New, ": ", erl_tar:format_error(Reason)]}
            end
    end.

added([], _) ->
    ok;
added([{Name, File} | Files], Tar) ->
    case erl_tar:add(Tar, File, Name, [dereference, {mtime, 0}, {uid, 0}, {gid, 0}]) of
        ok -> added(Files, Tar);
        {error, _} = Error -> Error
    end.

%% The files of a folder that go into its archive, in order. A folder that is given by mistake is not looked through to its end.
made(Path) -> made([""], Path, {0, 0}, []).

made([], _, _, Files) ->
    {ok, lists:sort(Files)};
made(_, Path, {Count, Bytes}, _) when Count > ?FILES; Bytes > ?MOST ->
    too_large(Path);
made([Name | Names], Path, {Count, Bytes}, Files) ->
    File = case Name of "" -> Path; _ -> filename:join(Path, Name) end,
    case file:read_file_info(File) of
        {ok, #file_info{type = directory}} ->
            case file:list_dir(File) of
                {ok, In} ->
                    Seen = [case Name of "" -> One; _ -> filename:join(Name, One) end || [C | _] = One <- In, C =/= $.],
                    made(Seen ++ Names, Path, {Count + 1, Bytes}, Files);
                {error, Reason} ->
                    {error, [File, ": ", file:format_error(Reason)]}
            end;
        {ok, #file_info{type = regular, size = Size}} -> made(Names, Path, {Count + 1, Bytes + Size}, [{Name, File} | Files]);
        _ -> made(Names, Path, {Count, Bytes}, Files)
    end.

sum(File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Opened} ->
            Sum = sum(Opened, crypto:hash_init(sha256)),
            ok = file:close(Opened),
            Sum;
        {error, _} = Error ->
            Error
    end.

sum(File, State) ->
    case file:read(File, 1 bsl 20) of
        {ok, Data} -> sum(File, crypto:hash_update(State, Data));
        eof -> {ok, string:lowercase(binary_to_list(binary:encode_hex(crypto:hash_final(State))))};
        {error, _} = Error -> Error
    end.
