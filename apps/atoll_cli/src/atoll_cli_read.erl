%% @doc Readers of what a user types for a value; see {@link atoll_cli_options}.
-module(atoll_cli_read).

-export([whole/2, one_of/1, generators/0, name/0]).

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

%% @doc One of some words.
-spec one_of([atom(), ...]) -> atoll_cli_options:reader().
one_of(Words) ->
    fun(Text) ->
        case [Word || Word <- Words, atom_to_list(Word) =:= Text] of
            [Word] -> {ok, Word};
            [] -> {error, ["must be one of ", lists:join(", ", [atom_to_list(W) || W <- Words])]}
        end
    end.

%% @doc A set of Orbit's generators.
-spec generators() -> atoll_cli_options:reader().
generators() ->
    fun(Text) ->
        case orbit_generators:parse(Text) of
            {ok, Name} -> {ok, Name};
            {error, _} -> {error, "must be g and some of the digits 1 to 5 in order, such as g124"}
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
