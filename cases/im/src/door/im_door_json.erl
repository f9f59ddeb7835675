%% SPDX-License-Identifier: Apache-2.0
%% @doc JSON by the library that there is: OTP's own from 27 on, jiffy before. Objects are maps, texts are UTF-8.
-module(im_door_json).

-export([decode/1, encode/1]).

%% @doc What was written, or that it is no JSON.
-spec decode(binary()) -> {ok, term()} | error.
decode(Text) ->
    Decode = case library() of
        json -> fun(Json) -> Json:decode(Text) end;
        jiffy -> fun(Jiffy) -> Jiffy:decode(Text, [return_maps]) end
    end,
    %% They raise errors of several kinds.
    try {ok, Decode(library())} catch error:_ -> error; throw:_ -> error end.

%% @doc A term of maps, lists, binaries and numbers.
-spec encode(term()) -> iodata().
encode(Term) ->
    Library = library(),
    Library:encode(Term).

%% The code server is asked once: it would look for a module that is not there each time.
library() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Library = case code:ensure_loaded(json) of
                {module, Json} -> Json;
                {error, _} -> jiffy
            end,
            ok = persistent_term:put(?MODULE, Library),
            Library;
        Library -> Library
    end.
