%% SPDX-License-Identifier: Apache-2.0
%% @doc Consistent hashing: the numbers of SHA-1, 0 to 2^160 - 1, closed to a ring and cut into equal partitions. Pure.
%%
%% There is a power of two of partitions, numbered from 0. A key belongs to the partition in which its hash lies, and its copies
%% are in that one and in those that follow it. Nodes come and go, and a key's partition stays; only who has the partition changes.
%% Source: Karger and others, Consistent Hashing and Random Trees (1997); DeCandia and others, Dynamo (2007), section 6.2, strategy 3.
-module(ring_hash).

-export([is_count/1, partition/2, range/2, successors/3]).

-export_type([partition/0, count/0]).

-type partition() :: non_neg_integer().

-type count() :: pos_integer().
%% Of partitions: a power of two, 65536 at most.

-define(BITS, 160).
-define(MOST, 65536).

%% @doc Whether there may be so many partitions.
-spec is_count(term()) -> boolean().
is_count(N) -> is_integer(N) andalso N > 0 andalso N =< ?MOST andalso N band (N - 1) =:= 0.

%% @doc The partition of a key, which may be any term.
-spec partition(Key :: term(), count()) -> partition().
partition(Key, Count) ->
    <<Hash:?BITS>> = crypto:hash(sha, term_to_binary(Key, [{minor_version, 2}])),
    Hash div ((1 bsl ?BITS) div Count).

%% @doc The hashes of a partition, the first and the last.
-spec range(partition(), count()) -> {non_neg_integer(), non_neg_integer()}.
range(Partition, Count) ->
    Width = (1 bsl ?BITS) div Count,
    {Partition * Width, (Partition + 1) * Width - 1}.

%% @doc So many partitions in the order of the ring, this one first; each once at most.
-spec successors(partition(), pos_integer(), count()) -> [partition(), ...].
successors(Partition, N, Count) -> [(Partition + I) rem Count || I <- lists:seq(0, min(N, Count) - 1)].
