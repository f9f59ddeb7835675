%% SPDX-License-Identifier: Apache-2.0
%% @doc The generators of keys and values of Basho Bench, by the terms of its configuration.
%%
%% A generator is a function that gives the next one. It draws from the random state of the process that calls it, so that the same seed gives the same
%% ones. What counts on counts in a counter of its own, for each worker.
-module(atoll_load_keys).

-export([check_key/1, check_value/1, key/2, value/1]).

-export_type([generator/0, worker/0]).

-type generator() :: fun(() -> term()).

-type worker() :: {Id :: pos_integer(), Workers :: pos_integer()}.

%% Of Pareto's distribution: with this shape, and a fifth of the keys as its mean, four of five draws fall on the first fifth of the keys.
-define(SHAPE, 1.5).
-define(SHARE, 0.2).
%% Values are parts of a block of bytes that is drawn once for all workers, so that to make them costs little.
-define(BLOCK, 16_777_216).

%% @doc Whether a term names a generator of keys; what is wrong is said after its name.
-spec check_key(term()) -> ok | {error, unicode:chardata()}.
check_key({Kind, N}) when Kind =:= sequential_int; Kind =:= partitioned_sequential_int; Kind =:= uniform_int; Kind =:= pareto_int; Kind =:= truncated_pareto_int ->
    positive(N);
check_key({partitioned_sequential_int, Start, N}) when is_integer(Start), Start >= 0 ->
    positive(N);
check_key({Kind, Of}) when Kind =:= int_to_bin_bigendian; Kind =:= int_to_bin_littleendian; Kind =:= int_to_bin; Kind =:= int_to_str -> takes([integer], Of);
check_key({str_to_bin, Of}) -> takes([text], Of);
check_key({base64, Of}) -> takes([text, bytes], Of);
check_key({crypto_hash, Hash, Of}) ->
    case lists:member(Hash, crypto:supports(hashs)) of
        true -> takes([text, bytes], Of);
        false -> {error, io_lib:format("has ~0tp, which is no hash", [Hash])}
    end;
check_key({to_binstr, Format, Of}) when is_list(Format) -> check_key(Of);
check_key({concat_binary, A, B}) ->
    case {of_binaries(A), of_binaries(B)} of
        {ok, ok} -> ok;
        {ok, Error} -> Error;
        {Error, _} -> Error
    end;
check_key({function, Module, Function, Args}) when is_atom(Module), is_atom(Function), is_list(Args) -> is_there(Module, Function, Args);
check_key(uuid_v4) -> ok;
check_key({uuid_v4}) -> ok;
check_key({file_line_bin, File}) when is_list(File) ->
    case filelib:is_regular(File) of
        true -> ok;
        false -> {error, ["names the file ", File, ", which is none"]}
    end;
check_key(Other) -> unknown(Other).

of_binaries(Text) when is_binary(Text) -> ok;
of_binaries(Of) -> takes([bytes], Of).

%% Whether a generator is one, and gives what goes on with it.
takes(Kinds, Of) ->
    case {check_key(Of), lists:member(gives(Of), [any | Kinds])} of
        {ok, true} -> ok;
        {ok, false} -> {error, io_lib:format("has ~0tP where one that gives ~ts must stand", [Of, 9, lists:join(" or ", [kind(Kind) || Kind <- Kinds])])};
        {Error, _} -> Error
    end.

gives({Kind, _}) when Kind =:= int_to_bin_bigendian; Kind =:= int_to_bin_littleendian; Kind =:= int_to_bin; Kind =:= str_to_bin; Kind =:= base64; Kind =:= file_line_bin -> bytes;
gives({Kind, _, _}) when Kind =:= crypto_hash; Kind =:= to_binstr; Kind =:= concat_binary -> bytes;
gives({int_to_str, _}) -> text;
gives({function, _, _, _}) -> any;
gives(Uuid) when Uuid =:= uuid_v4; Uuid =:= {uuid_v4} -> bytes;
gives(_) -> integer.

kind(integer) -> "whole numbers";
kind(text) -> "strings";
kind(bytes) -> "binaries".

%% They are called with the worker's number first.
is_there(Module, Function, Args) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, Function, 1 + length(Args)) of
                true -> ok;
                false -> {error, io_lib:format("has ~ts:~ts/~b, which is no function", [Module, Function, 1 + length(Args)])}
            end;
        {error, _} -> {error, io_lib:format("has the module ~ts, which is not found", [Module])}
    end.

positive(N) when is_integer(N), N > 0 -> ok;
positive(N) -> {error, io_lib:format("has ~0tp, where a whole number above 0 must stand", [N])}.

unknown(Other) -> {error, io_lib:format("has ~0tP, which is no generator", [Other, 9])}.

%% @doc Whether a term names a generator of values.
-spec check_value(term()) -> ok | {error, unicode:chardata()}.
check_value({fixed_bin, N}) -> in_size(N);
check_value({fixed_char, N}) -> in_size(N);
check_value({uniform_int, N}) -> positive(N);
check_value({exponential_bin, Least, Mean}) -> sizes(Least, Mean);
check_value({uniform_bin, Least, Most}) -> sizes(Least, Most);
check_value({function, Module, Function, Args}) when is_atom(Module), is_atom(Function), is_list(Args) -> is_there(Module, Function, Args);
check_value(Other) -> unknown(Other).

in_size(N) when is_integer(N), N >= 0, N =< ?BLOCK -> ok;
in_size(N) -> {error, io_lib:format("has ~0tp, where a number of bytes up to ~b must stand", [N, ?BLOCK])}.

sizes(A, B) ->
    case {in_size(A), in_size(B)} of
        {ok, ok} when A =< B -> ok;
        {ok, ok} -> {error, io_lib:format("has ~b before ~b, and must begin with the smaller one", [A, B])};
        {ok, Error} -> Error;
        {Error, _} -> Error
    end.

%% @doc A generator of keys for a worker.
-spec key(term(), worker()) -> generator().
key({sequential_int, N}, _) -> counting(0, N);
key({partitioned_sequential_int, N}, Worker) -> key({partitioned_sequential_int, 0, N}, Worker);
key({partitioned_sequential_int, Start, N}, {Id, Workers}) ->
    %% Each worker has a part of its own, and the last one what is left over.
    Part = max(1, N div Workers),
    First = (Id - 1) * Part rem N,
    counting(Start + First, case Id of Workers -> max(1, N - First); _ -> Part end);
key({uniform_int, N}, _) -> fun() -> rand:uniform(N) - 1 end;
key({pareto_int, N}, _) -> fun() -> pareto(N) end;
key({truncated_pareto_int, N}, _) -> fun() -> truncated(N) end;
key({int_to_bin_bigendian, Of}, Worker) -> mapped(fun(N) -> <<N:32/big>> end, Of, Worker);
key({int_to_bin, Of}, Worker) -> mapped(fun(N) -> <<N:32/native>> end, Of, Worker);
key({int_to_bin_littleendian, Of}, Worker) -> mapped(fun(N) -> <<N:32/little>> end, Of, Worker);
key({int_to_str, Of}, Worker) -> mapped(fun integer_to_list/1, Of, Worker);
key({str_to_bin, Of}, Worker) -> mapped(fun unicode:characters_to_binary/1, Of, Worker);
key({base64, Of}, Worker) -> mapped(fun base64:encode/1, Of, Worker);
key({crypto_hash, Hash, Of}, Worker) -> mapped(fun(Text) -> crypto:hash(Hash, Text) end, Of, Worker);
key({to_binstr, Format, Of}, Worker) -> mapped(fun(Term) -> unicode:characters_to_binary(io_lib:format(Format, [Term])) end, Of, Worker);
key({concat_binary, A, B}, Worker) ->
    {First, Second} = {binaries(A, Worker), binaries(B, Worker)},
    fun() -> <<(First())/binary, (Second())/binary>> end;
key({function, Module, Function, Args}, {Id, _}) -> apply(Module, Function, [Id | Args]);
key({uuid_v4}, Worker) -> key(uuid_v4, Worker);
key(uuid_v4, _) -> fun uuid/0;
key({file_line_bin, File}, _) ->
    {ok, Text} = file:read_file(File),
    Lines = list_to_tuple(binary:split(string:trim(Text, trailing, "\n"), <<"\n">>, [global])),
    Next = counting(0, tuple_size(Lines)),
    fun() -> element(Next() + 1, Lines) end.

binaries(Text, _) when is_binary(Text) -> fun() -> Text end;
binaries(Of, Worker) -> key(Of, Worker).

mapped(Fun, Of, Worker) ->
    Next = key(Of, Worker),
    fun() -> Fun(Next()) end.

%% From the first of so many to the last, and again.
counting(First, N) ->
    Counter = atomics:new(1, []),
    fun() -> First + (atomics:add_get(Counter, 1, 1) - 1) rem N end.

pareto(N) -> trunc((math:pow(1 - rand:uniform(), -1 / ?SHAPE) - 1) * N * ?SHARE * (?SHAPE - 1)).

truncated(N) ->
    case pareto(N) of
        Key when Key < N -> Key;
        _ -> truncated(N)
    end.

%% RFC 4122, section 4.4.
uuid() ->
    <<A:48, _:4, B:12, _:2, C:62>> = rand:bytes(16),
    <<A:48, 4:4, B:12, 2:2, C:62>>.

%% @doc The generator of values of each worker, by its number. All take their values from one block.
-spec value(term()) -> fun((Id :: pos_integer()) -> generator()).
value({function, Module, Function, Args}) ->
    fun(Id) -> apply(Module, Function, [Id | Args]) end;
value(Term) ->
    Generator = one_value(Term),
    fun(_) -> Generator end.

one_value({fixed_bin, N}) -> bytes(fun() -> N end, N);
one_value({fixed_char, N}) ->
    %% Text that a line or a statement may hold.
    Bytes = one_value({fixed_bin, (N + 1) div 2}),
    fun() -> binary:part(binary:encode_hex(Bytes()), 0, N) end;
one_value({uniform_int, N}) -> fun() -> rand:uniform(N) end;
one_value({uniform_bin, Least, Most}) -> bytes(fun() -> Least + rand:uniform(Most - Least + 1) - 1 end, Most);
one_value({exponential_bin, Least, Mean}) ->
    bytes(fun() -> min(?BLOCK, Least + trunc(-math:log(1 - rand:uniform()) * (Mean - Least))) end, 10 * Mean).

bytes(Size, About) ->
    Block = rand:bytes(min(?BLOCK, max(4096, 2 * About))),
    fun() ->
        N = min(Size(), byte_size(Block)),
        binary:part(Block, rand:uniform(byte_size(Block) - N + 1) - 1, N)
    end.
