%% SPDX-License-Identifier: Apache-2.0
%% @doc How kinds of connections are written.
-module(atoll_view_kind).

-export([shown/1, read/1]).

%% @doc A kind as it is typed.
-spec shown(atoll_dist_kind:asked() | stock | relay) -> string().
shown({lanes, N}) -> "lanes" ++ integer_to_list(N);
shown(Kind) -> atom_to_list(Kind).

%% @doc The kind that is written so.
-spec read(string()) -> {ok, atoll_dist_kind:asked()} | none.
read("auto") -> {ok, auto};
read("direct") -> {ok, direct};
read("lanes" ++ Digits) ->
    case string:to_integer(Digits) of
        {N, []} when N >= 1, N =< 64 -> {ok, {lanes, N}};
        _ -> none
    end;
read(_) ->
    none.
