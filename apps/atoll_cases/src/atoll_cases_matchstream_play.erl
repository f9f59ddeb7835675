%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll matchstream play': a watcher that registers the events of a script.
-module(atoll_cases_matchstream_play).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "register the events of a script, as a watcher in the stadium does".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => web, value => "URL", default => "http://127.0.0.1:8888", read => fun web/1, help => "the web interface of a service"},
        #{name => speed, value => "X", default => "1", read => atoll_cli_read:number(0.01, 100000), help => "how many times as fast as in the script"}
    ].

web(Text) ->
    case uri_string:parse(Text) of
        #{scheme := "http", host := [_ | _] = Host, path := Path} = Uri when Path =:= ""; Path =:= "/" ->
            {ok, lists:flatten(["http://", Host, [[$: | integer_to_list(Port)] || #{port := Port} <- [Uri], is_integer(Port)]])};
        _ -> {error, "must be an address such as http://127.0.0.1:8888"}
    end.

-spec operands() -> [string()].
operands() -> ["MATCH"].

-spec examples() -> [string()].
examples() -> ["atoll matchstream play sample --speed 10"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{web := Base, speed := Speed}, [Given]) ->
    case atoll_cases_matchstream:script(Given) of
        {ok, Script} ->
            {ok, _} = application:ensure_all_started(inets),
            played(matchstream_watcher:is_over(Base, Script), Base, Script, Speed);
        {error, Sentence} -> {usage, Sentence}
    end.

played(true, _, #{about := About}, _) ->
    {ok, Match} = matchstream_match:new(About),
    atoll_cli_io:print(io_lib:format("~ts is there already, and has ended: nothing was played.\n", [matchstream_match:id(Match)]));
played(false, Base, Script, Speed) ->
    Doing = fun(Seq, Kind) -> atoll_cli_progress:now_doing(io_lib:format("Event ~b: ~s", [Seq, Kind])) end,
    Played = matchstream_watcher:play(Base, Script, #{speed => Speed, before => Doing}),
    ok = atoll_cli_progress:done(),
    case Played of
        {ok, #{id := Id, sent := Sent, again := Again}} ->
            atoll_cli_io:print(io_lib:format("~ts: ~b events, all acknowledged; ~b were sent again.\n", [Id, map_size(Sent), Again]));
        {error, Error} -> {unable, matchstream_watcher:format_error(Error)}
    end.
