%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A map whose keys stand in 128 buckets by their hash, so that two nodes can find
%% where their maps differ without a look at what is equal. Pure data.
%%
%% Each bucket has a number that its marks add up to. A mark is whatever the owner of the
%% map wants to compare: it is put on a key, and must be taken off, by putting the very same
%% one again, before what it stands for changes. So the numbers follow every change at no
%% cost, whatever the order of the changes, and a key without a mark does not count.
%%
%% ```
%% B0 = atoll_buckets:mark(n1, 7, atoll_buckets:put(n1, some_value, atoll_buckets:new())),
%% {ok, some_value} = atoll_buckets:find(n1, B0),
%% [Index] = atoll_buckets:differing(atoll_buckets:hashes(atoll_buckets:new()), B0),
%% [{n1, some_value}] = atoll_buckets:bucket(Index, B0)
%% '''
-module(atoll_buckets).

-export([new/0, find/2, put/3, take/2, fold/3, bucket/2]).
-export([mark/3, print/2, root/1, hashes/1, differing/2]).

-export_type([buckets/0, hashes/0, index/0]).

-type index() :: 1..128.

-type hashes() :: tuple().
%% One number for each bucket, below 2 to the power of 32.

-record(buckets, {
    maps :: tuple(),
    hashes :: hashes()
}).

-opaque buckets() :: #buckets{}.

-define(BUCKETS, 128).
-define(RANGE, (1 bsl 32)).

%% @doc Nothing.
-spec new() -> buckets().
new() ->
    #buckets{maps = erlang:make_tuple(?BUCKETS, #{}), hashes = erlang:make_tuple(?BUCKETS, 0)}.

%% @doc What stands under this key.
-spec find(Key :: term(), buckets()) -> {ok, Value :: term()} | error.
find(Key, #buckets{maps = Maps}) ->
    maps:find(Key, element(index(Key), Maps)).

%% @doc Puts a value under a key, in the place of the one that is there.
-spec put(Key :: term(), Value :: term(), buckets()) -> buckets().
put(Key, Value, #buckets{maps = Maps} = Buckets) ->
    Index = index(Key),
    Map = element(Index, Maps),
    Buckets#buckets{maps = setelement(Index, Maps, Map#{Key => Value})}.

%% @doc Takes a key away.
-spec take(Key :: term(), buckets()) -> {Value :: term(), buckets()} | error.
take(Key, #buckets{maps = Maps} = Buckets) ->
    Index = index(Key),
    case maps:take(Key, element(Index, Maps)) of
        {Value, Map} -> {Value, Buckets#buckets{maps = setelement(Index, Maps, Map)}};
        error -> error
    end.

%% @doc Goes through all of it, in no order that means something.
-spec fold(fun((Key :: term(), Value :: term(), Acc) -> Acc), Acc, buckets()) -> Acc.
fold(Fun, Acc0, #buckets{maps = Maps}) ->
    lists:foldl(fun(Map, Acc) -> maps:fold(Fun, Acc, Map) end, Acc0, tuple_to_list(Maps)).

%% @doc What stands in a bucket, in the order of the keys.
-spec bucket(index(), buckets()) -> [{Key :: term(), Value :: term()}].
bucket(Index, #buckets{maps = Maps}) ->
    lists:sort(maps:to_list(element(Index, Maps))).

%% @doc Puts a mark on a key, or takes it off.
-spec mark(Key :: term(), Mark :: term(), buckets()) -> buckets().
mark(Key, Mark, #buckets{hashes = Hashes} = Buckets) ->
    Index = index(Key),
    Hash = element(Index, Hashes) bxor print(Key, Mark),
    Buckets#buckets{hashes = setelement(Index, Hashes, Hash)}.

%% @doc The number that a mark counts as.
-spec print(Key :: term(), Mark :: term()) -> non_neg_integer().
print(Key, Mark) ->
    erlang:phash2({Key, Mark}, ?RANGE).

%% @doc Equal for the same marks, and hardly ever for others.
-spec root(buckets()) -> non_neg_integer().
root(#buckets{hashes = Hashes}) ->
    erlang:phash2(Hashes, ?RANGE).

%% @doc What stands for each bucket.
-spec hashes(buckets()) -> hashes().
hashes(#buckets{hashes = Hashes}) ->
    Hashes.

%% @doc The buckets that differ from somebody else's.
-spec differing(hashes(), buckets()) -> [index()].
differing(Theirs, #buckets{hashes = Hashes}) ->
    [I || I <- lists:seq(1, ?BUCKETS), element(I, Theirs) =/= element(I, Hashes)].

index(Key) ->
    erlang:phash2(Key, ?BUCKETS) + 1.
