%% SPDX-License-Identifier: Apache-2.0
%% The application in this VM, with Mnesia in memory: what is bounded, and what goes again when nobody needs it.
-module(matchstream_service_tests).
-include_lib("eunit/include/eunit.hrl").

-define(MS, 20000).
%% Two looks of the process of a match.
-define(GONE_MS, 10000).

-define(ABOUT(Home), #{home => Home, visit => <<"b">>, start_date => {2026, 1, 1}}).

service(Stage, Settings, Tests) -> {timeout, 60, {setup, fun() -> started([{switches, matchstream_switches:of_stage(Stage)} | Settings]) end, fun ended/1, Tests}}.

started(Settings) ->
    _ = application:load(matchstream),
    _ = [ok = application:set_env(matchstream, Key, Value) || {Key, Value} <- Settings],
    {ok, Apps} = application:ensure_all_started(matchstream),
    ok = await(fun matchstream_store:is_ready/0),
    {Apps, Settings}.

%% The store has started Mnesia.
ended({Apps, Settings}) ->
    _ = [ok = application:stop(App) || App <- lists:reverse(Apps) ++ [mnesia]],
    _ = [ok = application:unset_env(matchstream, Key) || {Key, _} <- Settings],
    ok.

await(Fun) -> atoll_cli_os:await(Fun, ?MS).

new(Home) ->
    {ok, Id} = matchstream:new_match(?ABOUT(Home)),
    Id.

tell(Id, Kind) ->
    {ok, Event} = matchstream:register(Id, Kind, []),
    Event.

base() -> #{web := Web} = matchstream:status(), "http://127.0.0.1:" ++ integer_to_list(Web).

fetch(Path) -> answer(httpc:request(get, {base() ++ Path, []}, [{timeout, ?MS}], [{body_format, binary}])).

post(Path, Body) -> answer(httpc:request(post, {base() ++ Path, [], "application/json", Body}, [{timeout, ?MS}], [{body_format, binary}])).

answer({ok, {{_, Code, _}, _, Text}}) -> {Code, Text}.

connected(Line) ->
    #{ports := [Port | _]} = matchstream:status(),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {recbuf, 2048}]),
    ok = gen_tcp:send(Socket, Line),
    Socket.

%% What comes until it has this.
until(Socket, Part) -> until(Socket, Part, <<>>).

until(Socket, Part, Said) ->
    case binary:match(Said, Part) of
        nomatch ->
            {ok, Bytes} = gen_tcp:recv(Socket, 0, ?MS),
            until(Socket, Part, <<Said/binary, Bytes/binary>>);
        _ -> Said
    end.

repeaters() -> length([Pid || Pid <- processes(), process_info(Pid, current_function) =:= {current_function, {matchstream_outlet, repeat, 1}}]).

lives() -> ets:info(matchstream_lives, size).

%% The process of a match looks every two seconds whether it is needed, which may be too soon on a busy machine. This one does not.
held(Id) ->
    {ok, Pid} = matchstream_lives:find(Id),
    ok = sys:suspend(Pid, ?MS),
    Pid.

%% Both take the time of some looks, and so are one test.
nothing_stays_of_a_match_that_has_ended_and_those_that_nobody_follows_hold_up_nobody_test_() ->
    service(5, [{matches, 31}, {playing, 4}], fun(_) ->
        {timeout, 60, fun() ->
            %% Who asks for the match that runs is told, and starts none of those before it.
            Names = [new(<<"n", (integer_to_binary(N))/binary>>) || N <- lists:seq(10, 28)],
            Over = new(<<"a">>),
            _ = [tell(Over, Kind) || Kind <- [start, stop]],
            Ended = held(Over),
            _ = tell(new(<<"z">>), start),
            Follower = connected("V:2:me\r\n"),
            _ = until(Follower, <<"home: <<\"z\">>">>),
            %% One that has just begun, or passes something on, does not wait yet.
            ?assertEqual(ok, await(fun() -> {lives(), repeaters()} =:= {2, 32} end)),
            [First, Second, Third | _] = Names,
            _ = [tell(Id, start) || Id <- [First, Second]],
            Begun = [held(Id) || Id <- [First, Second]],
            ?assertEqual({error, busy}, matchstream:register(Third, start, [])),
            ?assertMatch({503, <<"{\"error\":\"4 matches are played on this node already", _/binary>>}, post("/1/match/n12-b-2026-01-01/events", "{\"kind\":\"start\"}")),
            _ = until(connected("VERSION:1:CONNECT:me:MATCH:n12-b-2026-01-01\r\n"), <<"ERROR: 4 matches are played on this node already">>),
            %% The one that has ended goes, and those that have no client; the one that is followed stays.
            _ = [ok = sys:resume(Pid) || Pid <- [Ended | Begun]],
            ?assertEqual(ok, atoll_cli_os:await(fun() -> {lives(), repeaters()} =:= {1, 16} end, ?GONE_MS)),
            %% Whoever asks for one over HTTP needs no process of it, and what a client starts goes again.
            ?assertMatch({200, _}, fetch("/1/match/a-b-2026-01-01")),
            ?assertEqual({1, 16}, {lives(), repeaters()}),
            _ = until(connected("VERSION:1:CONNECT:me:MATCH:a-b-2026-01-01\r\n"), <<"period: ended">>),
            Again = held(Over),
            ?assertEqual(ok, await(fun() -> {lives(), repeaters()} =:= {2, 32} end)),
            ok = sys:resume(Again),
            ?assertMatch(#{seq := 1}, tell(Third, start)),
            ?assertEqual(ok, atoll_cli_os:await(fun() -> {lives(), repeaters()} =:= {1, 16} end, ?GONE_MS)),
            ?assertEqual({error, timeout}, gen_tcp:recv(Follower, 0, 0)),
            %% There are so many matches at most.
            _ = [new(<<"o", (integer_to_binary(N))/binary>>) || N <- lists:seq(1, 10)],
            ?assertEqual({error, full}, matchstream:new_match(?ABOUT(<<"p">>))),
            ?assertMatch({503, <<"{\"error\":\"31 matches are kept, and no more:", _/binary>>}, post("/1/matches", "{\"home\":\"p\",\"visit\":\"b\",\"start_date\":\"2026-01-01\"}")),
            ?assertEqual({error, exists}, matchstream:new_match(?ABOUT(<<"z">>)))
        end}
    end).

an_event_is_taken_once_however_often_it_is_sent_test_() ->
    service(4, [], fun(_) ->
        fun() ->
            Id = new(<<"a">>),
            ?assertEqual({error, exists}, matchstream:new_match(?ABOUT(<<"a">>))),
            Players = [{home_players, [{9, <<"Breaker">>}]}, {visit_players, []}],
            {ok, Event} = matchstream:register(Id, start, Players, 1),
            ?assertEqual({ok, Event}, matchstream:register(Id, start, Players, 1)),
            ?assertEqual({error, {conflict, 1}}, matchstream:register(Id, stop, [], 1)),
            ?assertEqual({error, {conflict, 3}}, matchstream:register(Id, stop, [], 3)),
            ?assertEqual({ok, [Event]}, matchstream:history(Id, 0))
        end
    end).

%% As if no broadcast had come, and as if one had come too early.
what_another_node_has_taken_comes_without_a_broadcast_test_() ->
    service(4, [], fun(_) ->
        {timeout, 60, fun() ->
            Id = new(<<"a">>),
            #{at := At} = tell(Id, start),
            Socket = connected("V:2:me\r\n"),
            _ = until(Socket, <<"status:">>),
            Event = fun(Seq, Kind) -> #{seq => Seq, at => At, kind => Kind, data => []} end,
            ok = matchstream_store:append(Id, Event(2, continue)),
            _ = until(Socket, <<": continue:">>),
            {ok, Live} = matchstream_lives:find(Id),
            _ = [ok = matchstream_store:append(Id, Event(Seq, Kind)) || {Seq, Kind} <- [{3, halftime_start}, {4, halftime_stop}]],
            ok = matchstream_live:remote(Live, Event(4, halftime_stop)),
            Said = until(Socket, <<": halftime_stop:">>),
            ?assertMatch({_, _}, binary:match(Said, <<": halftime_start:">>)),
            _ = tell(Id, stop),
            ?assertEqual({error, closed}, gen_tcp:recv(Socket, byte_size(until(Socket, <<": stop:\n\r\n">>)), ?MS))
        end}
    end).

%% A hundred clients ask for two thousand long events, and read nothing.
who_asks_for_all_events_costs_a_part_of_them_test_() ->
    service(4, [{send_ms, 60000}], fun(_) ->
        {timeout, 60, fun() ->
            #{about := About, steps := Steps} = matchstream_script:made(2000),
            {ok, Id} = matchstream:new_match(About),
            _ = [{ok, _} = matchstream:register(Id, Kind, Data) || {Kind, Data} <- Steps, Kind =/= sleep, Kind =/= stop],
            Before = erlang:memory(total),
            Sockets = [connected(["VERSION:1:CONNECT:me:MATCH:", Id, ":AFTER:0\r\n"]) || _ <- lists:seq(1, 100)],
            ok = await(fun() -> #{clients := N} = matchstream_count:all(), N =:= 100 end),
            %% Each has sent what the system takes, and waits.
            ok = await(fun() -> Sent = matchstream_count:get(delivered), receive after 200 -> ok end, Sent =:= matchstream_count:get(delivered) end),
            ?assertMatch(Each when Each < 300000, (erlang:memory(total) - Before) div 100),
            %% More events than may wait come meanwhile.
            _ = [tell(Id, continue) || _ <- lists:seq(1, 300)],
            [One | _] = Sockets,
            _ = until(One, <<"ERROR: This client reads too slowly.">>),
            [gen_tcp:close(Socket) || Socket <- Sockets]
        end}
    end).

what_is_wrong_over_http_is_a_sentence_test_() ->
    service(4, [], fun(_) ->
        Id = new(<<"z">>),
        _ = [tell(Id, Kind) || Kind <- [start, continue, continue]],
        Count = fun(Query) ->
            case fetch("/1/match/z-b-2026-01-01/history" ++ Query) of
                {200, Text} -> length(binary:matches(Text, <<"\"kind\"">>));
                {Code, _} -> Code
            end
        end,
        [
            {Body, fun() -> ?assertEqual({400, iolist_to_binary(["{\"error\":\"", Said, "\"}"])}, post("/1/match/z-b-2026-01-01/events", Body)) end}
         || {Body, Said} <- [
                {"{\"kind\":\"shot\",\"seq\":-1}", "seq is to be a whole number from 1 on."},
                {"{\"kind\":\"shot\",\"seq\":\"1\"}", "seq is to be a whole number from 1 on."},
                {"{\"kind\":\"shot\",\"data\":7}", "data is to be an object."},
                {"{\"kind\":7}", "An event needs a kind."},
                {"[]", "The body is to be a JSON object."},
                {"{", "The body is no JSON."},
                {"{\"kind\":\"shot\",\"sequence\":1}", "sequence is not known here."}
            ]
        ] ++ [
            ?_assertEqual({Query, Expected}, {Query, Count(Query)})
         || {Query, Expected} <- [
                {"", 3}, {"?since=2", 1}, {"?since=2&_=1", 1}, {"?x=1&since=2", 1}, {"?since=-1", 400}, {"?since=2%", 400}, {"?since", 400}, {"?since=1&since=2", 400}, {"?_=1", 3}
            ]
        ]
    end).

%% The match is cancelled as soon as that can be kept.
a_simulated_match_that_is_stopped_is_cancelled_test_() ->
    service(4, [], fun(_) ->
        {timeout, 60, fun() ->
            ok = matchstream_simulator:start("sample", 10),
            ok = await(fun() -> maps:get(done, matchstream_simulator:status()) >= 1 end),
            ok = matchstream_simulator:set_speed(0.01),
            #{match := Id} = matchstream_simulator:status(),
            Socket = connected(["VERSION:1:CONNECT:me:MATCH:", Id, "\r\n"]),
            _ = until(Socket, <<"status:">>),
            %% As if the keeper was not there.
            Kept = sys:replace_state(matchstream_store, fun(S) -> setelement(3, S, []) end),
            ?assertMatch({state, _, []}, Kept),
            ?assertEqual({error, unavailable}, matchstream_simulator:stop()),
            ?assertMatch(#{running := true, error := <<"It is stopped, and cancelled as soon as the store answers.">>}, matchstream_simulator:status()),
            ?assertEqual({error, running}, matchstream_simulator:start("sample", 1)),
            _ = sys:replace_state(matchstream_store, fun(S) -> setelement(3, S, [mnesia]) end),
            _ = until(Socket, <<": cancel:">>),
            ok = await(fun() -> not maps:get(running, matchstream_simulator:status()) end),
            ?assertMatch(#{error := <<"It was stopped.">>}, matchstream_simulator:status()),
            ?assertEqual({error, not_running}, matchstream_simulator:stop())
        end}
    end).
