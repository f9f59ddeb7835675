%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver that does nothing, for what the driver and its generators cost themselves.
-module(atoll_load_null).
-behaviour(atoll_load_driver).

-export([new/1, run/4]).

-spec new(pos_integer()) -> {ok, none}.
new(_) -> {ok, none}.

-spec run(term(), atoll_load_keys:generator(), atoll_load_keys:generator(), none) -> {ok, none}.
run(put, Key, Value, none) ->
    _ = Key(),
    _ = Value(),
    {ok, none};
run(_, Key, _, none) ->
    _ = Key(),
    {ok, none}.
