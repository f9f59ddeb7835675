%% SPDX-License-Identifier: Apache-2.0
%% @doc The archive of a release: a .tar.gz as it is, or one that is made of a folder. It is kept under its checksum, so
%% that what was uploaded stays what it was when the folder is compiled anew; the same folder gives the same checksum.
-module(atoll_deploy_release).

-export([keep/2, archive/2, made/1]).

-type files() :: [{NameInArchive :: string(), File :: file:filename()}].

%% @doc Keeps the archive of a release in a folder, and says its checksum. Nothing is kept of one that is wrong.
-spec keep(atoll_deploy_thing:thing(), Dir :: file:filename()) -> {ok, Sum :: string()} | {error, unicode:chardata()}.
keep(#{name := Name, path := Path} = Release, Dir) ->
    New = filename:join(Dir, lists:concat([".new-", os:getpid(), "-", erlang:unique_integer([positive])])),
    Kept =
        case filelib:ensure_path(Dir) of
            ok -> kept(Path, New, Release, Dir);
            {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
        end,
    _ = file:delete(New),
    case Kept of
        {ok, Sum} -> {ok, Sum};
        {error, Why} -> {error, ["the release ", Name, ": ", Why]}
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

%% What is in it must stay in the folder in which it is unpacked.
copied(Path, New) ->
    case file:copy(Path, New) of
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

packed(Path, New) ->
    case made(Path) of
        [] -> {error, [Path, " is a folder with nothing in it"]};
        Files ->
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

%% @doc The files of a folder that go into its archive, in order.
-spec made(Path :: file:filename()) -> files().
made(Path) ->
    [{Name, filename:join(Path, Name)} || Name <- lists:sort(filelib:wildcard("**", Path)), filelib:is_regular(filename:join(Path, Name))].

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
