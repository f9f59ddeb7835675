%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes a user asks to be killed: as they are typed, and typed again.
-module(atoll_chaos_cli_processes).

-export([reader/0, typed/1]).

%% @doc Reads them, as a step of a fault script says it; of several one with a weight each.
-spec reader() -> atoll_cli_options:reader().
reader() ->
    fun(Text) ->
        case [weighted(Typed) || Typed <- string:split(Text, ",", all)] of
            [{1, {ok, What}}] -> {ok, What};
            Weighted ->
                case [{Weight, What} || {Weight, {ok, What}} <- Weighted] of
                    Read when length(Read) =:= length(Weighted) -> {ok, Read};
                    _ -> bad_processes()
                end
        end
    end.

weighted(Text) ->
    case string:split(Text, "=", trailing) of
        [Typed, Weight] ->
            case atoll_cli_read:to_number(Weight) of
                {ok, N} when N > 0 -> {N, what(Typed)};
                {ok, _} -> {0, error};
                error -> {1, what(Text)}
            end;
        [Text] ->
            {1, what(Text)}
    end.

what("any") -> {ok, any};
what("any_name:global") -> {ok, {any_name, global}};
what("any_name:group:" ++ Group) when Group =/= "", length(Group) =< 255 -> {ok, {any_name, {group, list_to_atom(Group)}}};
what(Text) ->
    case string:split(Text, ":") of
        [Kind, [_ | _] = Name] when length(Name) =< 255 ->
            case [K || K <- [name, supervisor, module, application], atom_to_list(K) =:= Kind] of
                [K] -> {ok, {K, list_to_atom(Name)}};
                [] -> error
            end;
        _ ->
            error
    end.

bad_processes() ->
    {error, "must be any, any_name:global, any_name:group:NAME, or name:, supervisor:, module: or application: with a name; "
            "or several with commas between, each with a weight, such as application:shop=3,any=1"}.

%% @doc The same as they are typed.
-spec typed(atoll_sim_step:what() | [{number(), atoll_sim_step:what()}, ...]) -> string().
typed([_ | _] = Weighted) ->
    lists:flatten(lists:join(",", [[atoll_cli_again:spelt(What), $=, atoll_cli_again:spelt(Weight)] || {Weight, What} <- Weighted]));
typed(What) ->
    atoll_cli_again:spelt(What).
