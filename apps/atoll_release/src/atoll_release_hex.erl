%% SPDX-License-Identifier: Apache-2.0
%% @doc The tarball of a package as Hex has it (version 3 of its format): a tar file with `VERSION',
%% `CHECKSUM', `metadata.config' and `contents.tar.gz'. The same files make the same bytes: no
%% time and no user is in it.
-module(atoll_release_hex).

-export([tarball/2]).

-define(VERSION, <<"3">>).

%% @doc The tarball of these files with this metadata, whose list of files it makes.
-spec tarball([{Key :: binary(), term()}], [{file:filename(), binary()}]) -> binary().
tarball(Metadata, Files) ->
    Listed = Metadata ++ [{<<"files">>, [unicode:characters_to_binary(Name) || {Name, _} <- Files]}],
    Meta = unicode:characters_to_binary([io_lib:format("~tp.~n", [Pair]) || Pair <- Listed]),
    Contents = zlib:gzip(tar(Files)),
    Sum = crypto:hash(sha256, [?VERSION, Meta, Contents]),
    tar([
        {"VERSION", ?VERSION},
        {"CHECKSUM", list_to_binary([io_lib:format("~2.16.0B", [Byte]) || <<Byte>> <= Sum])},
        {"metadata.config", Meta},
        {"contents.tar.gz", Contents}
    ]).

%% It is made in memory: erl_tar asks for a function that does what file does. It does not close
%% the file, which would be gone then.
tar(Files) ->
    {ok, Ram} = file:open(<<>>, [ram, read, write, binary]),
    {ok, Tar} = erl_tar:init(Ram, write, fun tar/2),
    [ok = erl_tar:add(Tar, Text, Name, [{atime, 0}, {mtime, 0}, {ctime, 0}, {uid, 0}, {gid, 0}]) || {Name, Text} <- Files],
    ok = erl_tar:close(Tar),
    {ok, Size} = file:position(Ram, eof),
    {ok, Made} = file:pread(Ram, 0, Size),
    ok = file:close(Ram),
    iolist_to_binary(Made).

tar(write, {Ram, Data}) -> file:write(Ram, Data);
tar(position, {Ram, At}) -> file:position(Ram, At);
tar(close, _Ram) -> ok.
