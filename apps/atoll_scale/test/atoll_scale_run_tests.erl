%% SPDX-License-Identifier: Apache-2.0
%% What a load has printed, and whether it has failed; HTTP clients against a server of the test.
-module(atoll_scale_run_tests).

-include_lib("eunit/include/eunit.hrl").

what_ab_prints_is_read_test() ->
    Text = <<"Concurrency Level:      100\nTime taken for tests:   1.234 seconds\nComplete requests:      1000\nFailed requests:        12\n"
             "   (Connect: 0, Receive: 0, Length: 12, Exceptions: 0)\nRequests per second:    810.37 [#/sec] (mean)\n"
             "Percentage of the requests served within a certain time (ms)\n  50%     11\n  95%     40\n  99%     95\n 100%    210 (longest request)\n">>,
    ?assertEqual(#{requests => 1000, failures => 12, per_second => 810.37, p50_ms => 11, p99_ms => 95}, atoll_scale_run:figures(Text)).

an_answer_of_another_status_has_failed_too_test() ->
    Text = <<"Complete requests:      500\nFailed requests:        3\n   (Connect: 0, Receive: 3, Length: 0, Exceptions: 0)\nNon-2xx responses:      40\n">>,
    ?assertEqual(#{requests => 500, failures => 43}, atoll_scale_run:figures(Text)).

lines_of_a_key_and_a_number_are_read_test() ->
    ?assertEqual(
        #{requests => 1000, failures => 3, refused => 1, p99_ms => 12.5},
        atoll_scale_run:figures(<<"hello\nrequests 1000\nfailures: 3\nrefused=1\np99_ms = 12.5\nrequests_else 7\n">>)
    ).

%% What a program such as ab says of its own files is a cause, and no fault of the service.
a_command_without_a_file_left_is_known_by_its_words_test() ->
    ?assertMatch(#{requests := 1, failures := 1, reasons := #{<<"emfile">> := 1, <<"the command of the load ended with 24: socket: Too many open files (24)">> := 1}},
        atoll_scale_run:failed(24, <<"Benchmarking 127.0.0.1 (be patient)\nsocket: Too many open files (24)\n">>)),
    ?assertEqual(#{<<"the command of the load ended with 1: it said nothing">> => 1}, maps:get(reasons, atoll_scale_run:failed(1, <<>>))).

plan() -> #{failures => 0.01, p99_ms => 100, refused => 0}.

a_load_fails_by_each_bound_test_() ->
    [?_assertEqual(Said, [unicode:characters_to_list(Why) || Why <- atoll_scale_run:judged(plan(), Load)]) || {Load, Said} <- [
        {#{requests => 100, failures => 1, p99_ms => 100, refused => 0}, []},
        {#{requests => 100, failures => 2, reasons => #{<<"timeout">> => 1, <<"closed">> => 2}}, ["2 % of the requests failed (2 closed)"]},
        {#{requests => 100, failures => 0, p99_ms => 1012.25}, ["99 % of the requests took up to 1,012.3 ms"]},
        {#{requests => 100, failures => 0, refused => 7}, ["7 connections were refused"]},
        {#{requests => 0, failures => 0}, ["nothing was requested"]}
    ]].

what_is_not_bounded_does_not_fail_test() ->
    ?assertEqual([], atoll_scale_run:judged(#{failures => 1}, #{requests => 10, failures => 10, refused => 9, p99_ms => 1.0e6})).

a_driver_that_is_none_is_said_before_anything_is_started_test_() ->
    Check = fun(Module, Options) ->
        case atoll_scale_run:check(#{load => {driver, Module, Options}, dir => "/"}) of
            ok -> ok;
            {error, Sentence} -> lists:flatten(Sentence)
        end
    end,
    [
        ?_assertEqual("the module atoll_scale_nobody of the key load is not there; the key code names the folder of its beam file", Check(atoll_scale_nobody, #{})),
        ?_assertEqual("the module lists of the key load has not the functions check/1 and run/3 of a driver", Check(lists, #{})),
        ?_assertEqual("atoll_scale_http wants a url, such as \"http://127.0.0.1:8081/\"", Check(atoll_scale_http, #{url => "https://x/"})),
        ?_assertEqual("atoll_scale_http has no option urls; there are url and timeout_ms", Check(atoll_scale_http, #{urls => 1})),
        ?_assertEqual(ok, Check(atoll_scale_http, #{url => "http://127.0.0.1/"}))
    ].

%% Answers as it is told to, for as long as the test lives.
server(Answer) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {packet, http_bin}, {active, false}, {backlog, 128}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    _ = [spawn_link(fun() -> serve(Listen, Answer) end) || _ <- lists:seq(1, 4)],
    {Listen, lists:concat(["http://127.0.0.1:", Port, "/x"])}.

serve(Listen, Answer) ->
    case gen_tcp:accept(Listen) of
        {ok, Socket} ->
            {ok, {http_request, 'GET', {abs_path, <<"/x">>}, _}} = gen_tcp:recv(Socket, 0),
            ok = headers(Socket),
            _ = gen_tcp:send(Socket, Answer),
            ok = gen_tcp:close(Socket),
            serve(Listen, Answer);
        {error, closed} ->
            ok
    end.

headers(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, http_eoh} -> ok;
        {ok, _} -> headers(Socket)
    end.

loaded(Answer) ->
    {Listen, Url} = server(Answer),
    %% Nobody gives up, however busy the machine: a client that has gone is not what is counted here.
    {ok, Load} = atoll_scale_http:run(3, 1, #{url => Url, timeout_ms => 10000}),
    ok = gen_tcp:close(Listen),
    Load.

answers_are_counted_and_failures_with_their_reasons_test_() ->
    {timeout, 30, fun() ->
        {Us, #{requests := Requests, failures := 0, p99_ms := Ms, refused := 0}} = timer:tc(fun() -> loaded("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") end),
        ?assert(Requests > 10 andalso Ms > 0 andalso Ms =< Us / 1000),
        #{requests := Wrong, failures := Wrong, reasons := #{<<"status">> := Wrong}} = loaded("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
        #{requests := Cut, failures := Cut, reasons := #{<<"closed">> := Cut}} = loaded("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"),
        {ok, #{requests := None, failures := None, refused := None}} = atoll_scale_http:run(1, 1, #{url => "http://127.0.0.1:1/"})
    end}.
