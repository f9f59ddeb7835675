%% SPDX-License-Identifier: Apache-2.0
%% @doc Values on the disk: a file of OTP's Dets for each partition, in a folder for each node.
%%
%% Promised: what was put is in the file when put/3 returns, so it outlives a kill of the VM. A file that was not closed is repaired when it is opened. A file holds 2 GB at most, which Dets allows.
-module(ring_store_dets).
-behaviour(ring_store).

-export([check/1, open/2, get/2, put/3, fold/3, drop/1, close/1, kept/1]).

-define(END, ".dets").
%% In it the number of partitions: with another one keys would be looked for elsewhere.
-define(COUNT, "partitions").

-spec check(ring_options:options()) -> ok | {error, Sentence :: unicode:chardata()}.
check(#{partitions := Partitions} = Options) ->
    File = filename:join(folder(Options), ?COUNT),
    Is = integer_to_binary(Partitions),
    case file:read_file(File) of
        {ok, Is} -> ok;
        {ok, Other} -> {error, io_lib:format("The folder ~ts holds a ring of ~ts partitions, and the setting partitions says ~b.", [folder(Options), Other, Partitions])};
        {error, enoent} -> made(filelib:ensure_dir(File), File, Is);
        {error, _} = Error -> made(Error, File, Is)
    end.

made(ok, File, Is) -> written(file:write_file(File, Is), File);
made(Error, File, _) -> written(Error, File).

written(ok, _) -> ok;
written({error, Why}, File) -> {error, io_lib:format("The file ~ts cannot be written or read: ~ts.", [File, file:format_error(Why)])}.

-spec open(ring_hash:partition(), ring_options:options()) -> {reference(), file:filename()}.
open(Partition, Options) ->
    File = filename:join(folder(Options), integer_to_list(Partition) ++ ?END),
    ok = filelib:ensure_dir(File),
    {ok, Table} = dets:open_file(make_ref(), [{file, File}, {auto_save, infinity}]),
    {Table, File}.

%% A node's own, since the nodes of a machine may have one working directory.
folder(#{dir := Dir}) -> filename:join(Dir, atom_to_list(node())).

-spec get(ring_store:of_key(), {reference(), file:filename()}) -> {ok, ring_dvv:clock(term())} | none.
get(OfKey, {Table, _}) ->
    case dets:lookup(Table, OfKey) of
        [{_, Clock}] -> {ok, Clock};
        [] -> none
    end.

-spec put(ring_store:of_key(), ring_dvv:clock(term()), {reference(), file:filename()}) -> ok.
put(OfKey, Clock, {Table, _}) ->
    ok = dets:insert(Table, {OfKey, Clock}),
    ok = dets:sync(Table).

-spec fold(fun((ring_store:of_key(), ring_dvv:clock(term()), Acc) -> Acc), Acc, {reference(), file:filename()}) -> Acc.
fold(Fun, Acc, {Table, _}) -> dets:foldl(fun({OfKey, Clock}, Now) -> Fun(OfKey, Clock, Now) end, Acc, Table).

-spec drop({reference(), file:filename()}) -> ok.
drop({_, File} = Store) ->
    ok = close(Store),
    ok = file:delete(File).

-spec close({reference(), file:filename()}) -> ok.
close({Table, _}) -> ok = dets:close(Table).

-spec kept(ring_options:options()) -> [ring_hash:partition()].
kept(Options) ->
    Names = [filename:basename(File, ?END) || File <- filelib:wildcard("*" ++ ?END, folder(Options))],
    [list_to_integer(Name) || Name <- Names, lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Name)].
