%% SPDX-License-Identifier: Apache-2.0
%% @doc JSON as maps: what is decoded has binaries for keys and for texts, and
%% `null'. It is OTP's own from 27 on, and jiffy's before.
-module(atoll_bench_json).

-export([encode/1, decode/1]).

-export_type([value/0]).

-type value() ::
    #{atom() | binary() => value()} | [value()] | integer() | float() | boolean() | null | binary() | atom().

%% Of which one, there may be no trace on this machine.
-if(?OTP_RELEASE >= 27).
-define(LIBRARY, json).
-define(DECODE_OPTIONS, []).
-else.
-define(LIBRARY, jiffy).
-define(DECODE_OPTIONS, [[return_maps]]).
-endif.

%% @doc The text of a value, in UTF-8.
-spec encode(value()) -> iodata().
encode(Value) ->
    apply(?LIBRARY, encode, [Value]).

%% @doc The value of a text.
-spec decode(iodata()) -> {ok, value()} | {error, no_json}.
decode(Text) ->
    %% Each library has classes and reasons of its own for what is no JSON.
    try
        {ok, apply(?LIBRARY, decode, [iolist_to_binary(Text) | ?DECODE_OPTIONS])}
    catch
        error:_ -> {error, no_json};
        throw:_ -> {error, no_json}
    end.
