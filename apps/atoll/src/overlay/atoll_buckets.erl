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

-export([new/0, find/2, put/3, put/4, take/2, fold/3, bucket/2]).
-export([mark/3, print/2, root/1, hashes/1, differing/2]).

-export_type([buckets/0, hashes/0, index/0]).

-type index() :: 1..128.

-type hashes() :: tuple().
%% One number for each bucket, below 2 to the power of 32.

-record(buckets, {
    %% In 16 groups of 8: a change copies one group, and not all of them.
    groups :: tuple()
}).

-opaque buckets() :: #buckets{}.

%% A cell of a list takes two words, and a pair three.
-type bucket() :: nonempty_improper_list(Hash :: non_neg_integer(), map()).

-dialyzer(no_improper_lists).

-define(BUCKETS, 128).
-define(GROUPS, 16).
-define(IN_GROUP, 8).
-define(RANGE, (1 bsl 32)).

%% @doc Nothing.
-spec new() -> buckets().
new() ->
    #buckets{groups = erlang:make_tuple(?GROUPS, erlang:make_tuple(?IN_GROUP, [0 | #{}]))}.

%% @doc What stands under this key.
-spec find(Key :: term(), buckets()) -> {ok, Value :: term()} | error.
find(Key, Buckets) ->
    [_ | Map] = get(index(Key), Buckets),
    case Map of
        #{Key := Value} -> {ok, Value};
        #{} -> error
    end.

%% @doc Puts a value under a key, in the place of the one that is there.
-spec put(Key :: term(), Value :: term(), buckets()) -> buckets().
put(Key, Value, Buckets) ->
    Index = index(Key),
    [Hash | Map] = get(Index, Buckets),
    set(Index, [Hash | Map#{Key => Value}], Buckets).

%% @doc The same, and puts a mark on the key, or takes it off.
-spec put(Key :: term(), Value :: term(), Mark :: term(), buckets()) -> buckets().
put(Key, Value, Mark, Buckets) ->
    Index = index(Key),
    [Hash | Map] = get(Index, Buckets),
    set(Index, [Hash bxor print(Key, Mark) | Map#{Key => Value}], Buckets).

%% @doc Takes a key away.
-spec take(Key :: term(), buckets()) -> {Value :: term(), buckets()} | error.
take(Key, Buckets) ->
    Index = index(Key),
    [Hash | Map0] = get(Index, Buckets),
    case maps:take(Key, Map0) of
        {Value, Map} -> {Value, set(Index, [Hash | Map], Buckets)};
        error -> error
    end.

%% @doc Goes through all of it, in no order that means something.
-spec fold(fun((Key :: term(), Value :: term(), Acc) -> Acc), Acc, buckets()) -> Acc.
fold(Fun, Acc0, Buckets) ->
    lists:foldl(fun([_ | Map], Acc) -> maps:fold(Fun, Acc, Map) end, Acc0, all(Buckets)).

%% @doc What stands in a bucket, in the order of the keys.
-spec bucket(index(), buckets()) -> [{Key :: term(), Value :: term()}].
bucket(Index, Buckets) ->
    [_ | Map] = get(Index, Buckets),
    lists:sort(maps:to_list(Map)).

%% @doc Puts a mark on a key, or takes it off.
-spec mark(Key :: term(), Mark :: term(), buckets()) -> buckets().
mark(Key, Mark, Buckets) ->
    Index = index(Key),
    [Hash | Map] = get(Index, Buckets),
    set(Index, [Hash bxor print(Key, Mark) | Map], Buckets).

%% @doc The number that a mark counts as.
-spec print(Key :: term(), Mark :: term()) -> non_neg_integer().
print(Key, Mark) ->
    erlang:phash2({Key, Mark}, ?RANGE).

%% @doc Equal for the same marks, and hardly ever for others.
-spec root(buckets()) -> non_neg_integer().
root(Buckets) ->
    erlang:phash2(hashes(Buckets), ?RANGE).

%% @doc What stands for each bucket.
-spec hashes(buckets()) -> hashes().
hashes(Buckets) ->
    list_to_tuple([Hash || [Hash | _] <- all(Buckets)]).

%% @doc The buckets that differ from somebody else's.
-spec differing(hashes(), buckets()) -> [index()].
differing(Theirs, Buckets) ->
    Hashes = hashes(Buckets),
    [I || I <- lists:seq(1, ?BUCKETS), element(I, Theirs) =/= element(I, Hashes)].

index(Key) ->
    erlang:phash2(Key, ?BUCKETS) + 1.

-spec get(index(), buckets()) -> bucket().
get(Index, #buckets{groups = Groups}) ->
    element((Index - 1) rem ?IN_GROUP + 1, element((Index - 1) div ?IN_GROUP + 1, Groups)).

-spec set(index(), bucket(), buckets()) -> buckets().
set(Index, Bucket, #buckets{groups = Groups}) ->
    Number = (Index - 1) div ?IN_GROUP + 1,
    Group = setelement((Index - 1) rem ?IN_GROUP + 1, element(Number, Groups), Bucket),
    #buckets{groups = setelement(Number, Groups, Group)}.

%% In the order of their numbers.
-spec all(buckets()) -> [bucket()].
all(#buckets{groups = Groups}) ->
    [Bucket || Group <- tuple_to_list(Groups), Bucket <- tuple_to_list(Group)].
