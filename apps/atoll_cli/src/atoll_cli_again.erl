%% SPDX-License-Identifier: Apache-2.0
%% @doc What repeats a run: the seed that its chance is drawn from, and the command line.
-module(atoll_cli_again).

-export([seed/0, line/3, spelt/1, quoted/1]).

-define(MAX_SEED, 1000000000).

%% @doc The seed, without what it is unless told.
-spec seed() -> atoll_cli_options:option().
seed() ->
    #{name => seed, value => "N", read => atoll_cli_read:whole(0, ?MAX_SEED), help => "what all chance is drawn from"}.

%% @doc The command line that repeats a run: the values of these options, as they are typed.
-spec line(Name :: iodata(), [atoll_cli_options:option()], atoll_cli_options:values()) -> string().
line(Name, Options, Values) ->
    Said = [
        [$\s, atoll_cli_options:flag(Key), $\s, quoted((maps:get(spell, Option, fun spelt/1))(Value))]
     || #{name := Key, value := _} = Option <- Options,
        Value <- typed(Option, Values)
    ],
    lists:flatten(["atoll ", Name, Said]).

typed(#{name := Key, repeat := true}, Values) -> map_get(Key, Values);
typed(#{name := Key}, Values) -> [map_get(Key, Values) || is_map_key(Key, Values)].

%% @doc A value as it is typed.
-spec spelt(term()) -> string().
spelt(Text) when is_list(Text) -> Text;
spelt(Word) when is_atom(Word) -> atom_to_list(Word);
spelt(N) when is_integer(N) -> integer_to_list(N);
spelt(N) when is_float(N) -> float_to_list(N, [{decimals, 15}, compact]);
spelt(Tuple) -> lists:flatten(lists:join($:, [spelt(Part) || Part <- tuple_to_list(Tuple)])).

%% @doc A word as a shell reads it.
-spec quoted(string()) -> unicode:chardata().
quoted(Text) ->
    case re:run(Text, "^[-A-Za-z0-9_./:=,@+]+$", [dollar_endonly, unicode, {capture, none}]) of
        match -> Text;
        nomatch -> [$', string:replace(Text, "'", "'\\''", all), $']
    end.
