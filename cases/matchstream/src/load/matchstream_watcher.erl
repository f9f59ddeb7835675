%% SPDX-License-Identifier: Apache-2.0
%% @doc A watcher that plays a script over the web interface, as fast as is wanted. Each event has its number, so one whose answer was lost,
%% or that could not be stored, is sent again with no harm until it is taken.
%%
%% What it promises its callers: each event of the script was acknowledged, in order, or the play has failed.
-module(matchstream_watcher).

-export([create/2, play/3, is_over/2, format_error/1]).

-export_type([options/0, played/0, error/0]).

-type options() :: #{
    %% how many times as fast as in the script
    speed => number(),
    %% called before an event is sent for the first time
    before => fun((Seq :: pos_integer(), matchstream_match:kind()) -> any()),
    %% how long an event is sent again and again
    patience_ms => pos_integer(),
    %% web interfaces of other nodes: one that does not answer is left for the next one
    others => [string()]
}.

-type played() :: #{
    id := matchstream_match:id(),
    %% when each was sent first, microseconds of the system's clock
    sent := #{pos_integer() => integer()},
    %% until it was acknowledged, microseconds
    taken := [non_neg_integer()],
    %% how often one was sent again
    again := non_neg_integer()
}.

-type error() :: {answer, pos_integer(), binary()} | {unreached, term()}.

-define(ANSWER_MS, 10000).
-define(PATIENCE_MS, 30000).
-define(AGAIN_MS, 100).

%% @doc Makes the match of a script; the base is such as "http://127.0.0.1:8888". One that is there already is left.
-spec create(string(), matchstream_script:script()) -> {ok, matchstream_match:id()} | {error, error()}.
create(Base, #{about := #{start_date := {Y, M, D}} = About}) ->
    {ok, Match} = matchstream_match:new(About),
    Body = matchstream_json:encode(About#{start_date := iolist_to_binary(io_lib:format("~4..0b-~2..0b-~2..0b", [Y, M, D]))}),
    case post(Base ++ "/1/matches", Body) of
        {ok, Code, _} when Code =:= 201; Code =:= 409 -> {ok, matchstream_match:id(Match)};
        {ok, Code, Text} -> {error, {answer, Code, Text}};
        {error, Why} -> {error, {unreached, Why}}
    end.

%% @doc Whether the match of a script is there and has ended. If that cannot be known it is not.
-spec is_over(string(), matchstream_script:script()) -> boolean().
is_over(Base, #{about := About}) ->
    {ok, Match} = matchstream_match:new(About),
    case httpc:request(get, {Base ++ "/1/match/" ++ binary_to_list(matchstream_match:id(Match)), []}, [{timeout, ?ANSWER_MS}], [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Text}} -> binary:match(Text, <<"\"period\":\"ended\"">>) =/= nomatch;
        _ -> false
    end.

%% @doc Plays it from the first event to the last.
-spec play(string(), matchstream_script:script(), options()) -> {ok, played()} | {error, error()}.
play(Base, Script, Options) ->
    case create(Base, Script) of
        {ok, Id} ->
            Schedule = matchstream_script:schedule(Script, maps:get(speed, Options, 1)),
            Urls = [Web ++ "/1/match/" ++ binary_to_list(Id) ++ "/events" || Web <- [Base | maps:get(others, Options, [])]],
            Begun = erlang:monotonic_time(millisecond),
            played(lists:zip(lists:seq(1, length(Schedule)), Schedule), Urls, Begun, Options, #{id => Id, sent => #{}, taken => [], again => 0});
        {error, _} = Error -> Error
    end.

played([], _, _, _, Played) -> {ok, Played};
played([{Seq, {Ms, Kind, Data}} | Steps], Urls, Begun, Options, #{sent := Sent, taken := Taken, again := Again} = Played) ->
    receive after max(0, Begun + Ms - erlang:monotonic_time(millisecond)) -> ok end,
    _ = (maps:get(before, Options, fun(_, _) -> ok end))(Seq, Kind),
    At = erlang:system_time(microsecond),
    Deadline = erlang:monotonic_time(millisecond) + maps:get(patience_ms, Options, ?PATIENCE_MS),
    case acknowledged(Urls, matchstream_json:event_body(Kind, Data, Seq), Deadline, 0) of
        {ok, Tries, Left} ->
            %% What waits for this one is late by no fault of its own, and is sent at once.
            played(Steps, Left, Begun, Options, Played#{sent := Sent#{Seq => At}, taken := [erlang:system_time(microsecond) - At | Taken], again := Again + Tries});
        {error, _} = Error -> Error
    end.

acknowledged([Url | Others] = Urls, Body, Deadline, Tries) ->
    Late = erlang:monotonic_time(millisecond) >= Deadline,
    case post(Url, Body) of
        {ok, 201, _} -> {ok, Tries, Urls};
        {ok, Code, Text} when Code =/= 503; Late -> {error, {answer, Code, Text}};
        {error, Why} when Late -> {error, {unreached, Why}};
        _ ->
            receive after ?AGAIN_MS -> ok end,
            acknowledged(Others ++ [Url], Body, Deadline, Tries + 1)
    end.

post(Url, Body) ->
    case httpc:request(post, {Url, [], "application/json", iolist_to_binary(Body)}, [{timeout, ?ANSWER_MS}], [{body_format, binary}]) of
        {ok, {{_, Code, _}, _, Text}} -> {ok, Code, Text};
        {error, Why} -> {error, Why}
    end.

%% @doc What went wrong, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({answer, Code, Text}) -> io_lib:format("The service has answered with ~b: ~ts", [Code, string:slice(Text, 0, 200)]);
format_error({unreached, {failed_connect, Details}} = Error) ->
    case lists:keyfind(inet, 1, Details) of
        {inet, _, Why} -> ["The service cannot be reached: ", inet:format_error(Why), "."];
        false -> unreached(Error)
    end;
format_error({unreached, _} = Error) -> unreached(Error).

unreached({unreached, Why}) -> io_lib:format("The service cannot be reached: ~0tP.", [Why, 12]).
