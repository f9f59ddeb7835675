%% SPDX-License-Identifier: Apache-2.0
%% @doc The load of MatchStream for `atoll scale': clients that follow a match, or that connect all at once, as many as the level says.
%%
%% Options: `webs', the web interfaces of its nodes (those of more nodes than there are may stand behind the first), and `clients':
%% `follow', with `at_once', how many connect at a time (4), and `rate', events in a second (2); or `connect'. Times are those
%% from a watcher to a client, or from the first packet to the status.
-module(atoll_cases_matchstream_load).
-behaviour(atoll_scale_driver).

-export([check/1, run/3]).

-define(AT_ONCE, 4).
-define(RATE, 2).

-spec check(map()) -> ok | {error, unicode:chardata()}.
check(Options) ->
    Whole = maps:merge(#{at_once => ?AT_ONCE, rate => ?RATE, clients => follow}, Options),
    Wrong = [io_lib:format("the load of MatchStream has no option ~tp; there are webs, clients, at_once and rate", [Key]) || Key <- maps:keys(maps:without([webs, clients, at_once, rate], Options))]
        ++ [["the option ", atom_to_list(Key), " of MatchStream's load must be ", Must] || {Key, Must, Is} <- [
            {webs, "a list of addresses, such as [\"http://127.0.0.1:8888\"]", fun are_webs/1},
            {clients, "follow or connect", fun(Word) -> Word =:= follow orelse Word =:= connect end},
            {at_once, "a whole number above 0", fun(N) -> is_integer(N) andalso N > 0 end},
            {rate, "a number above 0", fun(N) -> is_number(N) andalso N > 0 end}
        ], not Is(maps:get(Key, Whole, none))],
    case Wrong of
        [] -> ok;
        [Sentence | _] -> {error, Sentence}
    end.

are_webs([_ | _] = Webs) -> lists:all(fun(Web) -> io_lib:char_list(Web) andalso lists:prefix("http://", Web) end, Webs);
are_webs(_) -> false.

%% What the service does not do beside its clients it owes to all of them.
-spec run(pos_integer(), pos_integer(), map()) -> {ok, atoll_scale_driver:load()}.
run(Level, Seconds, #{webs := Webs} = Options) ->
    case maps:get(clients, Options, follow) of
        follow ->
            Rate = maps:get(rate, Options, ?RATE),
            Following = #{webs => Webs, clients => Level, at_once => maps:get(at_once, Options, ?AT_ONCE), events => max(1, round(Rate * Seconds)), rate => Rate},
            told(atoll_bench_matchstream_run:follow(Following), Level);
        connect ->
            told(atoll_bench_matchstream_run:connect(#{webs => Webs, clients => Level, ms => 1000 * Seconds}), Level)
    end.

told({ok, #{complete := Complete, unconnected := Unconnected, refused := Refused, lost := Lost, latency := Latency, delivered_per_s := Delivered}}, Level) ->
    Reasons = #{<<"unconnected">> => Unconnected, <<"refused">> => Refused, <<"lost">> => Lost},
    {ok, (times(Latency))#{requests => Level, failures => Level - Complete, per_second => Delivered, reasons => maps:filter(fun(_, N) -> N > 0 end, Reasons)}};
told({ok, #{requests := Requests, failures := Failures, times := Times, reasons := Reasons}}, _) ->
    {ok, (times(Times))#{requests => Requests, failures => Failures, refused => maps:get(<<"econnrefused">>, Reasons, 0), reasons => Reasons}};
told({error, Sentence}, Level) ->
    {ok, #{requests => Level, failures => Level, reasons => #{unicode:characters_to_binary(Sentence) => Level}}}.

times(Times) ->
    maps:from_list([{Key, Ns / 1.0e6} || {Key, Percent} <- [{p50_ms, 50}, {p99_ms, 99}], Ns <- [atoll_histogram:percentile(Times, Percent)], Ns =/= none]).
