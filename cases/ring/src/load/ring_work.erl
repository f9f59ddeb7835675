%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's two programs, as operations that somebody repeats: on a node of a ring, in each of its workers.
%%
%% Source: Meiklejohn and others, Partisan: Scaling the Distributed Actor Runtime (2019), section 5, and its harness. A node's workers send one
%% binary, made once. Echo draws one of 1,024 keys and sends the binary to the partition of it, which sends it back. The store draws a key from a
%% normal distribution, some ten thousand of them, and writes each tenth time.
-module(ring_work).

-export([payload/1, operation/3, key/2]).

-export_type([kind/0]).

-type kind() :: echo | kvs.

-define(ECHO_KEYS, 1024).
-define(WRITES, 10).

%% @doc So many bytes that do not compress.
-spec payload(Bytes :: non_neg_integer()) -> binary().
payload(Bytes) -> rand:bytes(Bytes).

%% @doc An operation with this payload, and of the store with about so many keys, 10,000 in the paper. What is not found is found not to be there, and no failure.
-spec operation(kind(), binary(), Keys :: pos_integer()) -> fun(() -> ok | {error, term()}).
operation(echo, Payload, _) ->
    fun() ->
        case ring_echo:echo(rand:uniform(?ECHO_KEYS), Payload) of
            {ok, _} -> ok;
            {error, _} = Error -> Error
        end
    end;
operation(kvs, Payload, Keys) ->
    fun() ->
        Key = key(rand:normal(), Keys),
        case rand:uniform(?WRITES) of
            1 -> written(Key, Payload);
            _ -> read(Key)
        end
    end.

read(Key) ->
    case ring_kvs:get(Key) of
        {error, _} = Error -> Error;
        _ -> ok
    end.

%% Who writes has seen nothing: the paper's store takes what was written last.
written(Key, Payload) ->
    case ring_kvs:put(Key, Payload) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc The key of a number of a normal distribution.
-spec key(float(), Keys :: pos_integer()) -> {binary(), integer()}.
key(Normal, Keys) -> {<<"objects">>, trunc((Normal + 1) * Keys / 2)}.
