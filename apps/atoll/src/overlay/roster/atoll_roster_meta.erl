%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What members say of themselves: a map for each, in which the last word of the node
%% itself wins. Pure data, which merges to the same whatever the order, however often.
%%
%% A map has a stamp: the life of the node, and how often it has changed its word in that
%% life. Only the node itself gives stamps, so two maps with the same one are equal. A node
%% that has said nothing has no entry.
%%
%% The entries stand in {@link atoll_buckets}, by which what differs is found.
-module(atoll_roster_meta).

-export([check/1, new/0, put/3, drop/2, entry/2, root/1, hashes/1, differing/2, bucket/2, newer/3]).
-export([format_error/1]).

-export_type([metas/0, entry/0, error/0]).

-type stamp() :: {atoll_roster_table:life(), Revision :: pos_integer()}.

-type entry() :: {stamp(), map()}.
%% As it travels.

-opaque metas() :: atoll_buckets:buckets().

-type error() :: {bad_meta, not_a_map | {bytes, pos_integer()}}.

%% Each member keeps those of all.
-define(MAX_BYTES, 1024).

%% @doc Whether a term can be what a node says of itself: a map of 1,024 bytes at most in
%% the external term format.
-spec check(term()) -> ok | {error, error()}.
check(#{} = Meta) ->
    case erlang:external_size(Meta) of
        Bytes when Bytes > ?MAX_BYTES -> {error, {bad_meta, {bytes, Bytes}}};
        _ -> ok
    end;
check(_) ->
    {error, {bad_meta, not_a_map}}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_meta, not_a_map}) ->
    "the metadata of a node must be a map";
format_error({bad_meta, {bytes, Bytes}}) ->
    io_lib:format("the metadata of a node must be ~b bytes at most in the external term format, not ~b", [?MAX_BYTES, Bytes]).

%% @doc Nobody has said anything.
-spec new() -> metas().
new() ->
    atoll_buckets:new().

%% @doc Merges one entry; says whether it is a later word than what was known.
-spec put(node(), entry(), metas()) -> {changed | known, metas()}.
put(Node, {Stamp, _} = Entry, Metas0) ->
    case entry(Node, Metas0) of
        {Known, _} when Known >= Stamp ->
            {known, Metas0};
        _ ->
            Metas = atoll_buckets:put(Node, Entry, drop(Node, Metas0)),
            {changed, atoll_buckets:mark(Node, Stamp, Metas)}
    end.

%% @doc Forgets what a node has said.
-spec drop(node(), metas()) -> metas().
drop(Node, Metas0) ->
    case atoll_buckets:take(Node, Metas0) of
        {{Stamp, _}, Metas} -> atoll_buckets:mark(Node, Stamp, Metas);
        error -> Metas0
    end.

%% @doc What a node has said.
-spec entry(node(), metas()) -> entry() | unknown.
entry(Node, Metas) ->
    case atoll_buckets:find(Node, Metas) of
        {ok, Entry} -> Entry;
        error -> unknown
    end.

%% @doc Equal where the same is known, and hardly ever else; `none' where nothing is.
-spec root(metas()) -> none | non_neg_integer().
root(Metas) ->
    case new() of
        Metas -> none;
        _ -> atoll_buckets:root(Metas)
    end.

%% @doc What stands for each bucket.
-spec hashes(metas()) -> atoll_buckets:hashes().
hashes(Metas) ->
    atoll_buckets:hashes(Metas).

%% @doc The buckets that differ from somebody else's.
-spec differing(atoll_buckets:hashes(), metas()) -> [atoll_buckets:index()].
differing(Theirs, Metas) ->
    atoll_buckets:differing(Theirs, Metas).

%% @doc All of a bucket, in the order of the names.
-spec bucket(atoll_buckets:index(), metas()) -> [{node(), entry()}].
bucket(Index, Metas) ->
    atoll_buckets:bucket(Index, Metas).

%% @doc Of a bucket what somebody whose entries in it are these does not know.
-spec newer(atoll_buckets:index(), [{node(), entry()}], metas()) -> [{node(), entry()}].
newer(Index, Theirs, Metas) ->
    Known = maps:from_list([{Node, Stamp} || {Node, {Stamp, _}} <- Theirs]),
    [{Node, Entry} || {Node, {Stamp, _} = Entry} <- bucket(Index, Metas), Stamp > maps:get(Node, Known, {0, 0})].
