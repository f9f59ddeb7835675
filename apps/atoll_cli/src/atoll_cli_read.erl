%% SPDX-License-Identifier: Apache-2.0
%% @doc Readers of what a user types for a value; see {@link atoll_cli_options}.
-module(atoll_cli_read).

-export([whole/2, number/1, number/2, one_of/1, some_of/1, share/0, setting/0, directory/0, name/0, rate/1, to_number/1]).

%% @doc A whole number of a range.
-spec whole(integer(), integer()) -> atoll_cli_options:reader().
whole(Min, Max) ->
    fun(Text) ->
        case to_integer(Text) of
            {ok, N} when N >= Min, N =< Max -> {ok, N};
            _ -> {error, ["must be a whole number from ", atoll_cli_table:count(Min), " to ",
                         atoll_cli_table:count(Max)]}
        end
    end.

%% @doc A number above 0, with or without a fraction.
-spec number(Max :: pos_integer()) -> atoll_cli_options:reader().
number(Max) ->
    fun(Text) ->
        case to_number(Text) of
            {ok, N} when N > 0, N =< Max -> {ok, N};
            _ -> {error, ["must be a number above 0, at most ", atoll_cli_table:count(Max)]}
        end
    end.

%% @doc A rate above 0, or two between which it goes.
-spec rate(Max :: pos_integer()) -> atoll_cli_options:reader().
rate(Max) ->
    fun(Text) ->
        case [to_number(Typed) || Typed <- string:split(Text, ":", all)] of
            [{ok, N}] when N > 0, N =< Max -> {ok, N};
            [{ok, N}, {ok, M}] when N > 0, N =< Max, M > 0, M =< Max -> {ok, {N, M}};
            _ -> {error, ["must be a number above 0, at most ", atoll_cli_table:count(Max), ", or two such, from and to, as in 1:10"]}
        end
    end.

%% @doc A number of a range, with or without a fraction.
-spec number(Min :: number(), Max :: pos_integer()) -> atoll_cli_options:reader().
number(Min, Max) ->
    fun(Text) ->
        case to_number(Text) of
            {ok, N} when N >= Min, N =< Max -> {ok, N};
            _ -> {error, ["must be a number from ", atoll_cli_table:value(Min), " to ", atoll_cli_table:count(Max)]}
        end
    end.

%% @doc Some of some words, with commas between.
-spec some_of([atom(), ...]) -> atoll_cli_options:reader().
some_of(Words) ->
    fun(Text) ->
        Typed = string:split(Text, ",", all),
        Known = [Word || T <- Typed, Word <- Words, atom_to_list(Word) =:= T],
        case length(Known) =:= length(Typed) andalso length(lists:usort(Known)) =:= length(Known) of
            true -> {ok, Known};
            false -> {error, ["must be some of ", lists:join(", ", [atom_to_list(W) || W <- Words]),
                              ", each once, with commas between"]}
        end
    end.

%% @doc One of some words.
-spec one_of([atom(), ...]) -> atoll_cli_options:reader().
one_of(Words) ->
    fun(Text) ->
        case [Word || Word <- Words, atom_to_list(Word) =:= Text] of
            [Word] -> {ok, Word};
            [] -> {error, ["must be one of ", lists:join(", ", [atom_to_list(W) || W <- Words])]}
        end
    end.

%% @doc A share, from 0 to 1.
-spec share() -> atoll_cli_options:reader().
share() ->
    fun(Text) ->
        case to_number(Text) of
            {ok, N} when N =< 1 -> {ok, float(N)};
            _ -> {error, "must be a share from 0 to 1, such as 0.5"}
        end
    end.

%% @doc A key and its value, as they were typed.
-spec setting() -> atoll_cli_options:reader().
setting() ->
    fun(Text) ->
        case string:split(Text, "=") of
            [[_ | _], _] -> {ok, Text};
            _ -> {error, "must be KEY=VALUE, such as xbot=true"}
        end
    end.

%% @doc A directory that is there.
-spec directory() -> atoll_cli_options:reader().
directory() ->
    fun(Text) ->
        case filelib:is_dir(Text) of
            true -> {ok, Text};
            false -> {error, "must be a directory"}
        end
    end.

%% @doc The name of a cluster.
-spec name() -> atoll_cli_options:reader().
name() ->
    fun(Text) ->
        case re:run(Text, "^[a-zA-Z][a-zA-Z0-9_-]{0,39}$", [dollar_endonly, {capture, none}]) of
            match -> {ok, Text};
            nomatch -> {error, "must be a letter and at most 39 letters, digits, _ or -"}
        end
    end.

%% Digits only: list_to_integer/1 would take a sign too.
to_integer(Text) ->
    case Text =/= [] andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Text) of
        true -> {ok, list_to_integer(Text)};
        false -> error
    end.

%% @doc Digits, and some more after a point if there is one.
-spec to_number(string()) -> {ok, number()} | error.
to_number(Text) ->
    case re:run(Text, "^[0-9]{1,15}(\\.[0-9]{1,15})?$", [dollar_endonly, {capture, all_but_first, list}]) of
        {match, []} -> {ok, list_to_integer(Text)};
        {match, [_]} -> {ok, list_to_float(Text)};
        nomatch -> error
    end.
