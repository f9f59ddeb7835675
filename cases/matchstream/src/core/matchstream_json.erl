%% SPDX-License-Identifier: Apache-2.0
%% @doc Matches and events as JSON, and what comes from outside as events. JSON is read and written by the library that there is: OTP's own
%% from 27 on, jiffy before.
%%
%% Promised: what comes from outside makes no atom, and what is wrong with it is a sentence.
-module(matchstream_json).

-export([encode/1, match/1, event/1, event_body/3, event_given/1, match_given/1, simulator_given/1]).

-define(IS_SPEED(Speed), is_number(Speed) andalso Speed >= 0.01 andalso Speed =< 100000).

%% @doc A term of maps, lists, binaries, atoms and numbers as text.
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

%% They raise errors of several kinds.
decode(Text) ->
    Library = library(),
    try
        case Library of
            jiffy -> Library:decode(Text, [return_maps]);
            _ -> Library:decode(Text)
        end
    of
        #{} = Object -> Object;
        _ -> throw({wrong, "The body is to be a JSON object."})
    catch
        _:_ -> throw({wrong, "The body is no JSON."})
    end.

%% @doc A match, to be encoded.
-spec match(matchstream_match:match()) -> #{atom() => term()}.
match(Match) ->
    maps:map(fun
        (start_date, {Y, M, D}) -> iolist_to_binary(io_lib:format("~4..0b-~2..0b-~2..0b", [Y, M, D]));
        (Key, Players) when Key =:= home_players; Key =:= visit_players -> [player(Player) || Player <- Players];
        (_, Value) -> Value
    end, matchstream_match:to_map(Match)).

%% @doc An event, to be encoded.
-spec event(matchstream_match:event()) -> #{atom() => term()}.
event(#{seq := Seq, at := At, kind := Kind, data := Data}) ->
    #{seq => Seq, timestamp => At, kind => Kind, data => maps:from_list([{Key, value(Value)} || {Key, Value} <- Data])}.

value(Players) when is_list(Players) -> [player(Player) || Player <- Players];
value({_, _} = Player) -> player(Player);
value(Value) -> Value.

player({Number, Name}) -> #{number => Number, name => Name}.

%% @doc An event as a watcher gives it: its kind, its data, and if it says so the number that it is to have.
-spec event_given(binary()) -> {ok, {atom() | binary(), [{atom() | binary(), term()}], pos_integer() | any}} | {error, unicode:chardata()}.
event_given(Text) ->
    given(Text, [<<"kind">>, <<"data">>, <<"seq">>], fun
        (#{<<"kind">> := Kind} = Object) when is_binary(Kind) ->
            {ok, {word(Kind, matchstream_match:kinds()), data(maps:get(<<"data">>, Object, #{})), seq(maps:get(<<"seq">>, Object, any))}};
        (_) -> {error, "An event needs a kind."}
    end).

data(#{} = Data) ->
    [data(word(Key, [team, player, player_team, player_in, player_out, card, home_players, visit_players]), Value) || {Key, Value} <- maps:to_list(Data)];
data(_) -> throw({wrong, "data is to be an object."}).

data(card, Card) -> {card, word(Card, [yellow, red])};
data(Key, Players) when is_list(Players) -> {Key, [player_given(Player) || Player <- Players]};
data(Key, Value) -> {Key, player_given(Value)}.

player_given(#{<<"number">> := Number, <<"name">> := Name}) -> {Number, Name};
player_given(Value) -> Value.

seq(any) -> any;
seq(Seq) when is_integer(Seq), Seq > 0 -> Seq;
seq(_) -> throw({wrong, "seq is to be a whole number from 1 on."}).

%% One of these as an atom; anything else stays what it is, for the rules to name.
word(Word, Words) ->
    case [Is || Is <- Words, atom_to_binary(Is) =:= Word] of
        [Is] -> Is;
        [] -> Word
    end.

%% @doc A match as a watcher gives it.
-spec match_given(binary()) -> {ok, matchstream_match:about()} | {error, unicode:chardata()}.
match_given(Text) ->
    given(Text, [<<"home">>, <<"visit">>, <<"start_date">>, <<"stadium">>], fun(Object) ->
        {ok, maps:from_list([{word(Key, [home, visit, start_date, stadium]), case Key of <<"start_date">> -> date(Value); _ -> Value end} || {Key, Value} <- maps:to_list(Object)])}
    end).

date(Text) when is_binary(Text) ->
    case re:run(Text, "^([0-9]{4})-([0-9]{2})-([0-9]{2})$", [dollar_endonly, {capture, all_but_first, binary}]) of
        {match, Parts} -> list_to_tuple([binary_to_integer(Part) || Part <- Parts]);
        nomatch -> none
    end;
date(_) -> none.

%% @doc What the simulator is told: to start a script, to be so fast, or to stop.
-spec simulator_given(binary()) -> {ok, {start, string(), number()} | {speed, number()} | stop} | {error, unicode:chardata()}.
simulator_given(Text) ->
    given(Text, [<<"script">>, <<"speed">>, <<"stop">>], fun
        (#{<<"stop">> := true} = Object) when map_size(Object) =:= 1 -> {ok, stop};
        (#{<<"script">> := Script, <<"speed">> := Speed} = Object) when is_binary(Script), ?IS_SPEED(Speed), map_size(Object) =:= 2 ->
            {ok, {start, unicode:characters_to_list(Script), Speed}};
        (#{<<"speed">> := Speed} = Object) when ?IS_SPEED(Speed), map_size(Object) =:= 1 -> {ok, {speed, Speed}};
        (_) -> {error, "The simulator is told script and speed, or speed, which is a number from 0.01 to 100000, or stop, which is true."}
    end).

given(Text, Keys, Fun) ->
    try
        Object = decode(Text),
        case maps:keys(Object) -- Keys of
            [] -> Fun(Object);
            [Key | _] -> {error, io_lib:format("~ts is not known here.", [Key])}
        end
    catch
        throw:{wrong, Sentence} -> {error, Sentence}
    end.

%% @doc An event of a script as a watcher sends it.
-spec event_body(matchstream_match:kind(), [{atom(), term()}], pos_integer()) -> iodata().
event_body(Kind, Data, Seq) -> encode(#{kind => Kind, seq => Seq, data => maps:from_list([{Key, value(Value)} || {Key, Value} <- Data])}).
