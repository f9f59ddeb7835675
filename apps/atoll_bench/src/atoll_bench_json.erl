%% @doc JSON as maps: what is decoded has binaries for keys and for texts, and
%% `null'. It is OTP's own from 27 on, and jiffy's before.
-module(atoll_bench_json).

-export([encode/1, decode/1]).

-export_type([value/0]).

-type value() ::
    #{atom() | binary() => value()} | [value()] | integer() | float() | boolean() | null | binary() | atom().

%% @doc The text of a value, in UTF-8.
-spec encode(value()) -> iodata().
encode(Value) ->
    case code:ensure_loaded(json) of
        {module, Json} ->
            Json:encode(Value);
        {error, _} ->
            {module, Jiffy} = code:ensure_loaded(jiffy),
            Jiffy:encode(Value)
    end.

%% @doc The value of a text.
-spec decode(iodata()) -> {ok, value()} | {error, no_json}.
decode(Text) ->
    Binary = iolist_to_binary(Text),
    %% Each decoder has classes and reasons of its own for what is no JSON.
    try
        {ok, decode_with(code:ensure_loaded(json), Binary)}
    catch
        error:_ -> {error, no_json};
        throw:_ -> {error, no_json}
    end.

decode_with({module, Json}, Binary) ->
    Json:decode(Binary);
decode_with({error, _}, Binary) ->
    {module, Jiffy} = code:ensure_loaded(jiffy),
    Jiffy:decode(Binary, [return_maps]).
