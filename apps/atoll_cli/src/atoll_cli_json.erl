%% SPDX-License-Identifier: Apache-2.0
%% @doc JSON for other programs: objects with their keys in the order in which
%% they are written.
-module(atoll_cli_json).

-export([switch/0, encode/1]).

-export_type([value/0, object/0]).

-type value() :: object() | [value()] | integer() | float() | boolean() | null | binary() | atom().

%% In a tuple, so that an empty object is no empty list.
-type object() :: {[{atom() | binary(), value()}]}.

%% @doc The option of the commands that can print JSON.
-spec switch() -> atoll_cli_options:option().
switch() ->
    #{name => json, help => "print one JSON object"}.

%% @doc The text of a value, in UTF-8.
-spec encode(value()) -> iodata().
encode(Value) ->
    case code:ensure_loaded(json) of
        {module, Json} -> Json:encode(Value, fun(V, Encode) -> encoded(Json, V, Encode) end);
        {error, _} -> encode_before_27(Value)
    end.

%% OTP 27 and later.
encoded(Json, {Pairs}, Encode) -> Json:encode_key_value_list(Pairs, Encode);
encoded(Json, Value, Encode) -> Json:encode_value(Value, Encode).

%% OTP has no JSON of its own there.
encode_before_27(Value) ->
    {module, Jiffy} = code:ensure_loaded(jiffy),
    Jiffy:encode(Value).
