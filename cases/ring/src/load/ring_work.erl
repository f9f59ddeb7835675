%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's two programs, as operations that somebody repeats: on a node of a ring, in each of its workers.
%%
%% Source: Meiklejohn and others, Partisan: Scaling the Distributed Actor Runtime (2019), section 5, and its harness. A node's workers send one
%% binary, made once. Echo draws one of 1,024 keys and sends the binary to the partition of it, which sends it back. The store draws a key from a
%% normal distribution, some ten thousand of them, and writes each tenth time.
-module(ring_work).

-export([payload/1, fill/2, operation/3, key/2]).

-export_type([kind/0]).

%% Who fills ends by exit, with what it could not write.
-dialyzer({nowarn_function, fill/2}).

-type kind() :: echo | kvs.

-define(ECHO_KEYS, 1024).
-define(WRITES, 10).
-define(DRAWS, 100).
-define(FILLERS, 16).

%% @doc So many bytes that do not compress.
-spec payload(Bytes :: non_neg_integer()) -> binary().
payload(Bytes) -> rand:bytes(Bytes).

%% @doc Writes all keys that are drawn but for one in a thousand, three times as many as they are called: so that reads find something. The paper's store begins empty, and runs for longer.
-spec fill(binary(), Keys :: pos_integer()) -> ok | {error, term()}.
fill(Payload, Keys) ->
    All = [{N rem ?FILLERS, {<<"objects">>, N - Keys}} || N <- lists:seq(0, 3 * Keys - 1)],
    Filling = [spawn_monitor(fun() -> exit({filled, [Key || {J, Key} <- All, J =:= I, written(Key, Payload) =/= ok]}) end) || I <- lists:seq(0, ?FILLERS - 1)],
    case [Why || {Pid, Ref} <- Filling, Why <- [receive {'DOWN', Ref, process, Pid, Is} -> Is end], Why =/= {filled, []}] of
        [] -> ok;
        [{filled, [Key | _]} | _] -> {error, {not_written, Key}};
        [Why | _] -> {error, Why}
    end.

%% @doc An operation with this payload, and of the store with about so many keys, 10,000 in the paper. What is not found is found not to be there, and no failure.
%% With `owners' keys are drawn again until the first copy is with one of these nodes, a hundred times at most.
-spec operation(kind(), binary(), #{keys := pos_integer(), owners := all | [node()]}) -> fun(() -> ok | {error, term()}).
operation(echo, Payload, #{owners := Owners}) ->
    fun() ->
        case ring_echo:echo(drawn(fun() -> rand:uniform(?ECHO_KEYS) end, fun ring_echo:key/1, Owners), Payload) of
            {ok, _} -> ok;
            {error, _} = Error -> Error
        end
    end;
operation(kvs, Payload, #{keys := Keys, owners := Owners}) ->
    fun() ->
        Key = drawn(fun() -> key(rand:normal(), Keys) end, fun(Key) -> Key end, Owners),
        case rand:uniform(?WRITES) of
            1 -> written(Key, Payload);
            _ -> read(Key)
        end
    end.

drawn(Draw, _, all) -> Draw();
drawn(Draw, Hashed, Owners) -> drawn(Draw, Hashed, Owners, ?DRAWS).

drawn(Draw, _, _, 1) -> Draw();
drawn(Draw, Hashed, Owners, Left) ->
    Key = Draw(),
    case ring_view:preflist(Hashed(Key), 1) of
        {ok, _, [{_, Node, _}]} ->
            case lists:member(Node, Owners) of
                true -> Key;
                false -> drawn(Draw, Hashed, Owners, Left - 1)
            end;
        %% Then the operation says what is wrong.
        _ -> Key
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
