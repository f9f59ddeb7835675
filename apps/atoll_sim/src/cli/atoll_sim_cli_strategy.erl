%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads which overlay a user asks for: a strategy, of ours or a module of the
%% user's own, with its options.
-module(atoll_sim_cli_strategy).

-export([code/0, option/0, add_code/1, read/4, settings/3]).

%% @doc The option that says where a strategy from outside is.
-spec code() -> atoll_cli_options:option().
code() ->
    #{name => code, value => "DIR", read => atoll_cli_read:directory(),
      help => "where the compiled modules of your own are"}.

%% @doc The option for one of the strategy's.
-spec option() -> atoll_cli_options:option().
option() ->
    #{name => option, value => "KEY=VALUE", repeat => true, read => atoll_cli_read:setting(),
      help => "an option of the strategy, such as xbot=true; may be repeated"}.

%% @doc Lets modules be loaded from the directory of `--code'.
-spec add_code(atoll_cli_options:values()) -> ok.
add_code(#{code := Dir}) ->
    true = code:add_pathz(Dir),
    ok;
add_code(#{}) ->
    ok.

%% @doc The strategy that was typed with that flag, with the settings of `--option';
%% a name that nobody knows gets a sentence with the nearest one.
-spec read(Flag :: string(), Typed :: string(), Settings :: [string()], atoll_cli_options:values()) ->
    {ok, {Name :: atom(), module(), atoll_options:options()}} | {error, unicode:chardata()}.
read(Flag, Typed, Settings, Values) ->
    %% One of ours has a name that is known; another is a module that can be loaded.
    ok = add_code(Values),
    case length(Typed) =< 255 andalso atoll_strategy:module(list_to_atom(Typed)) of
        {ok, Module} ->
            case settings(Typed, Module, Settings) of
                {ok, Options} -> {ok, {list_to_atom(Typed), Module, Options}};
                {error, _} = Error -> Error
            end;
        _ ->
            {error, unknown(Flag, Typed)}
    end.

unknown(Flag, Typed) ->
    Names = [atom_to_list(Name) || Name <- atoll_strategy:names()],
    Guess =
        case atoll_cli_nearest:of_words(Typed, Names) of
            {ok, Near} -> ["; did you mean ", Near, "?"];
            none -> ""
        end,
    [Flag, " must be one of ", lists:join(", ", Names), ", or a module that is one, in the directory of "
     "--code, not \"", Typed, $", Guess].

%% @doc What was typed with `--option' for a module that has options, which is called
%% so.
-spec settings(Typed :: string(), module(), Settings :: [string()]) ->
    {ok, atoll_options:options()} | {error, unicode:chardata()}.
settings(Typed, Module, Settings) ->
    Known = Module:options(),
    case read_settings([list_to_tuple(string:split(S, "=")) || S <- Settings], Typed, Known, #{}) of
        {ok, Options} ->
            case atoll_options:complete(Module, Options) of
                {ok, _} -> {ok, Options};
                {error, Error} -> {error, ["--option: ", atoll_options:format_error(Error)]}
            end;
        {error, _} = Error ->
            Error
    end.

read_settings([], _, _, Options) ->
    {ok, Options};
read_settings([{Name, Text} | Settings], Strategy, Known, Options) ->
    case [{Key, Kind} || {Key, {Kind, _}} <- maps:to_list(Known), atom_to_list(Key) =:= Name] of
        [{Key, _}] when is_map_key(Key, Options) ->
            {error, ["--option ", Name, " is given twice"]};
        [{Key, Kind}] ->
            read_settings(Settings, Strategy, Known, Options#{Key => setting(Kind, Text)});
        [] ->
            {error, unknown_setting(Strategy, Name, [atom_to_list(Key) || Key <- lists:sort(maps:keys(Known))])}
    end.

unknown_setting(Strategy, Name, []) ->
    ["--option: ", Strategy, " has no options, not \"", Name, $"];
unknown_setting(Strategy, Name, Names) ->
    ["--option: ", Strategy, " has no option \"", Name, "\"; it has ", lists:join(", ", Names)].

%% What cannot be read stays as it was typed: the strategy says what it must be.
setting(Kind, Text) when Kind =:= pos_integer; Kind =:= non_neg_integer ->
    case string:to_integer(Text) of
        {N, []} when is_integer(N) -> N;
        _ -> Text
    end;
setting(boolean, "true") -> true;
setting(boolean, "false") -> false;
setting({one_of, Words}, Text) ->
    case [Word || Word <- Words, atom_to_list(Word) =:= Text] of
        [Word] -> Word;
        [] -> Text
    end;
setting(nodes, Text) ->
    [list_to_atom(lists:sublist(Name, 255)) || Name <- string:lexemes(Text, ",")];
setting(_, Text) ->
    Text.
