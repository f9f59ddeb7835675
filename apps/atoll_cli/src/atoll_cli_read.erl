%% @doc Readers of what a user types for a value; see {@link atoll_cli_options}.
-module(atoll_cli_read).

-export([whole/2, number/1, number/2, one_of/1, some_of/1, share/0, latency/0, setting/0, directory/0, generators/0, name/0, processes/0]).

%% A longer way between two nodes is none of this planet.
-define(MAX_LATENCY_MS, 600000).
%% Beyond, a logarithm's deviation makes numbers that are no times any more.
-define(MAX_SIGMA, 5).

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

%% @doc A number of a range, with or without a fraction.
-spec number(Min :: non_neg_integer(), Max :: pos_integer()) -> atoll_cli_options:reader().
number(Min, Max) ->
    fun(Text) ->
        case to_number(Text) of
            {ok, N} when N >= Min, N =< Max -> {ok, N};
            _ -> {error, ["must be a number from ", atoll_cli_table:count(Min), " to ", atoll_cli_table:count(Max)]}
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

%% @doc How long messages take in a simulated network.
-spec latency() -> atoll_cli_options:reader().
latency() ->
    fun(Text) ->
        [Name | Typed] = string:split(Text, ":", all),
        Numbers = [N || Number <- Typed, {ok, N} <- [to_number(Number)]],
        case length(Numbers) =:= length(Typed) andalso distribution(Name, Numbers) of
            {ok, Latency} -> {ok, Latency};
            _ -> {error, "must be constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA "
                         "or regions, such as uniform:1:20"}
        end
    end.

distribution("constant", [Ms]) when is_integer(Ms), Ms =< ?MAX_LATENCY_MS -> {ok, {constant, Ms}};
distribution("uniform", [Min, Max])
        when is_integer(Min), is_integer(Max), Min =< Max, Max =< ?MAX_LATENCY_MS ->
    {ok, {uniform, Min, Max}};
distribution("exponential", [Mean]) when Mean > 0, Mean =< ?MAX_LATENCY_MS -> {ok, {exponential, Mean}};
distribution("lognormal", [Median, Sigma])
        when Median > 0, Median =< ?MAX_LATENCY_MS, Sigma =< ?MAX_SIGMA ->
    {ok, {lognormal, Median, Sigma}};
distribution("regions", []) -> {ok, regions};
distribution(_, _) -> error.

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

%% @doc Which processes, as a step of a fault script says it.
-spec processes() -> atoll_cli_options:reader().
processes() ->
    fun(Text) ->
        case string:split(Text, ":") of
            ["any"] ->
                {ok, any};
            [Kind, [_ | _] = Name] when length(Name) =< 255 ->
                case [K || K <- [name, supervisor, module, application], atom_to_list(K) =:= Kind] of
                    [K] -> {ok, {K, list_to_atom(Name)}};
                    [] -> bad_processes()
                end;
            _ ->
                bad_processes()
        end
    end.

bad_processes() ->
    {error, "must be any, or name:, supervisor:, module: or application: with a name, such as application:shop"}.

%% Digits only: list_to_integer/1 would take a sign too.
to_integer(Text) ->
    case Text =/= [] andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Text) of
        true -> {ok, list_to_integer(Text)};
        false -> error
    end.

%% Digits, and some more after a point if there is one.
to_number(Text) ->
    case re:run(Text, "^[0-9]{1,15}(\\.[0-9]{1,15})?$", [dollar_endonly, {capture, all_but_first, list}]) of
        {match, []} -> {ok, list_to_integer(Text)};
        {match, [_]} -> {ok, list_to_float(Text)};
        nomatch -> error
    end.
