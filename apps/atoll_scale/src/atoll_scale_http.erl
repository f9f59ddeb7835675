%% SPDX-License-Identifier: Apache-2.0
%% @doc HTTP clients as a load: so many at once, each with a new connection for each request, one
%% after the other. So at the start as many connect at once as there are clients, which is what a listen queue must bear.
%%
%% Options: `url', of http alone; `timeout_ms', after which a request has failed (5000). A request has failed also by a status of
%% 400 or more, and by an answer that is cut.
-module(atoll_scale_http).
-behaviour(atoll_scale_driver).

-export([check/1, run/3]).

-define(TIMEOUT_MS, 5000).
-define(REASONS, [<<"econnrefused">>, <<"timeout">>, <<"closed">>, <<"econnreset">>, <<"eaddrnotavail">>, <<"emfile">>, <<"status">>, <<"other">>]).

-spec check(map()) -> ok | {error, unicode:chardata()}.
check(Options) ->
    case {maps:keys(maps:without([url, timeout_ms], Options)), target(Options), maps:get(timeout_ms, Options, ?TIMEOUT_MS)} of
        {[Key | _], _, _} -> {error, io_lib:format("atoll_scale_http has no option ~tp; there are url and timeout_ms", [Key])};
        {[], error, _} -> {error, "atoll_scale_http wants a url, such as \"http://127.0.0.1:8081/\""};
        {[], _, Ms} when is_integer(Ms), Ms > 0 -> ok;
        _ -> {error, "the option timeout_ms of atoll_scale_http must be a whole number above 0"}
    end.

target(#{url := Url}) ->
    case io_lib:printable_unicode_list(Url) andalso uri_string:parse(Url) of
        #{scheme := "http", host := [_ | _] = Host} = Parts ->
            Path = case maps:get(path, Parts, "") of "" -> "/"; Is -> Is end,
            {Host, maps:get(port, Parts, 80), [Path, [[$?, Query] || #{query := Query} <- [Parts]]]};
        _ ->
            error
    end;
target(_) ->
    error.

-spec run(pos_integer(), pos_integer(), map()) -> {ok, atoll_scale_driver:load()} | {error, unicode:chardata()}.
run(Level, Seconds, Options) ->
    {Host, Port, Path} = target(Options),
    case inet:getaddr(Host, inet) of
        {ok, Address} ->
            Counts = counters:new(length(?REASONS), [write_concurrency]),
            Request = ["GET ", Path, " HTTP/1.1\r\nHost: ", Host, "\r\nConnection: close\r\n\r\n"],
            Ms = maps:get(timeout_ms, Options, ?TIMEOUT_MS),
            {ok, told(atoll_bench_load:closed(fun() -> asked(Address, Port, Request, Ms, Counts) end,
                #{workers => Level, ms => 1000 * Seconds, grace => Ms + 1000}), Counts)};
        {error, Reason} ->
            {error, [Host, ": ", inet:format_error(Reason)]}
    end.

told(#{latency := Latency, finished := Finished, failed := Failed, unfinished := Unfinished, took_ns := Took}, Counts) ->
    Reasons = maps:from_list([{Reason, N} || {I, Reason} <- numbered(), N <- [counters:get(Counts, I)], N > 0]),
    Times = atoll_histogram:export(Latency),
    #{
        requests => Finished + Unfinished,
        failures => Failed + Unfinished,
        refused => maps:get(<<"econnrefused">>, Reasons, 0),
        p50_ms => ms(atoll_histogram:percentile(Times, 50)),
        p99_ms => ms(atoll_histogram:percentile(Times, 99)),
        per_second => (Finished - Failed) * 1.0e9 / max(1, Took),
        reasons => Reasons
    }.

numbered() -> lists:zip(lists:seq(1, length(?REASONS)), ?REASONS).

ms(none) -> 0;
ms(Ns) -> Ns / 1.0e6.

asked(Address, Port, Request, Ms, Counts) ->
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    case gen_tcp:connect(Address, Port, [binary, {active, false}, {packet, http_bin}, {nodelay, true}], Ms) of
        {ok, Socket} ->
            Answer = answer(Socket, Request, Deadline),
            ok = gen_tcp:close(Socket),
            counted(Answer, Counts);
        {error, Reason} ->
            counted({error, Reason}, Counts)
    end.

answer(Socket, Request, Deadline) ->
    case gen_tcp:send(Socket, Request) of
        ok ->
            case gen_tcp:recv(Socket, 0, left(Deadline)) of
                {ok, {http_response, _, Status, _}} when Status < 400 -> headers(Socket, Deadline, none);
                {ok, _} -> {error, status};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% Without a length the end of the connection is that of the answer.
headers(Socket, Deadline, Length) ->
    case gen_tcp:recv(Socket, 0, left(Deadline)) of
        {ok, {http_header, _, 'Content-Length', _, Value}} -> headers(Socket, Deadline, binary_to_integer(Value));
        {ok, {http_header, _, _, _, _}} -> headers(Socket, Deadline, Length);
        {ok, http_eoh} ->
            ok = inet:setopts(Socket, [{packet, raw}]),
            body(Socket, Deadline, Length);
        {ok, _} -> {error, status};
        {error, _} = Error -> Error
    end.

body(_, _, 0) -> ok;
body(Socket, Deadline, none) ->
    case gen_tcp:recv(Socket, 0, left(Deadline)) of
        {ok, _} -> body(Socket, Deadline, none);
        {error, closed} -> ok;
        {error, _} = Error -> Error
    end;
body(Socket, Deadline, Length) ->
    case gen_tcp:recv(Socket, Length, left(Deadline)) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

counted(ok, _) ->
    ok;
counted({error, Reason}, Counts) ->
    Word = case is_atom(Reason) andalso atom_to_binary(Reason) of false -> <<"other">>; Text -> Text end,
    Known = case lists:keyfind(Word, 2, numbered()) of {I, _} -> I; false -> length(?REASONS) end,
    ok = counters:add(Counts, Known, 1),
    error.
