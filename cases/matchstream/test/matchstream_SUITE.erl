%% SPDX-License-Identifier: Apache-2.0
%% A service on a real node, with a watcher over HTTP and clients over TCP.
-module(matchstream_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    a_thousand_clients_get_all_of_a_match/1, who_comes_late_gets_the_status_and_the_rest/1, the_history_is_what_was_registered/1,
    hostile_clients_are_told_and_closed/1, an_event_is_taken_once_however_often_it_is_sent/1,
    a_killed_redis_loses_nothing_acknowledged/1, the_first_stage_does_the_same/1
]).

-define(MS, 60000).
-define(MATCH, <<"rfc-bay-2026-03-14">>).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, mnesia}, {group, stage1}, {group, redis}].

groups() ->
    [
        {mnesia, [], [hostile_clients_are_told_and_closed, an_event_is_taken_once_however_often_it_is_sent, a_thousand_clients_get_all_of_a_match, who_comes_late_gets_the_status_and_the_rest, the_history_is_what_was_registered]},
        {stage1, [], [the_first_stage_does_the_same]},
        {redis, [], [a_killed_redis_loses_nothing_acknowledged]}
    ].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, File} = matchstream_script:find("sample"),
    {ok, Script} = matchstream_script:read(File),
    [{script, Script} | Config].

end_per_suite(_) -> ok.

init_per_group(redis, Config) ->
    case matchstream_redis:find() of
        ok -> Config;
        {error, Sentence} -> {skip, lists:flatten(Sentence)}
    end;
init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% What a function does with a service, which is gone afterwards.
with_service(Store, Stage, Settings, Fun) ->
    Options = matchstream_cluster:options(#{nodes => 1, store => Store, switches => matchstream_switches:of_stage(Stage) -- [nodes], settings => Settings}),
    {ok, Cluster} = atoll_cluster:start(Options),
    try
        [Node] = atoll_cluster:nodes(Cluster),
        Call = fun(M, F, A) -> atoll_cluster:call(Cluster, Node, M, F, A, ?MS) end,
        ok = await(fun() -> Call(matchstream_store, is_ready, []) end),
        #{ports := Ports, web := Web} = Call(matchstream, status, []),
        Fun(#{call => Call, ports => Ports, base => "http://127.0.0.1:" ++ integer_to_list(Web)})
    after
        ok = atoll_cluster:stop(Cluster)
    end.

mnesia() -> #{module => matchstream_store_mnesia}.

await(Fun) -> await(Fun, erlang:monotonic_time(millisecond) + ?MS).

await(Fun, Deadline) ->
    case Fun() of
        true -> ok;
        _ ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 10 -> ok end,
            await(Fun, Deadline)
    end.

%% Plays the script; the function is called before that event.
play(#{base := Base}, Script, Before, Fun) ->
    Own = self(),
    {Pid, _} = spawn_monitor(fun() ->
        Stop = fun(Seq, _) when Seq =:= Before -> Own ! {at, self()}, receive go -> ok end; (_, _) -> ok end,
        exit({played, matchstream_watcher:play(Base, Script, #{speed => 100, before => Stop})})
    end),
    receive {at, Pid} -> ok after ?MS -> ct:fail(no_play) end,
    Made = Fun(),
    Pid ! go,
    receive {'DOWN', _, process, Pid, {played, {ok, Played}}} -> {Made, Played} after ?MS -> ct:fail(no_end) end.

clients(#{ports := Ports, call := Call}, Count) ->
    #{counts := #{clients := Already}} = Call(matchstream, status, []),
    Viewers = matchstream_viewers:start(#{host => {127, 0, 0, 1}, ports => Ports, match => first, count => Count, at_once => 100}),
    {ok, {Count, 0}} = matchstream_viewers:connected(Viewers, ?MS),
    ok = await(fun() -> #{counts := #{clients := N}} = Call(matchstream, status, []), N =:= Already + Count end),
    Viewers.

judged(Viewers, #{call := Call}, #{about := About}, #{sent := Sent}) ->
    {ok, Seen} = matchstream_viewers:ended(Viewers, ?MS),
    {ok, History} = Call(matchstream, history, [?MATCH, 0]),
    matchstream_viewers:judge(Seen, #{about => About, history => History, sent => Sent}).

all_of_it(Count, Store, Stage, Config) ->
    Script = ?config(script, Config),
    with_service(Store, Stage, #{}, fun(Service) ->
        {Viewers, Played} = play(Service, Script, 2, fun() -> clients(Service, Count) end),
        #{kinds := Kinds} = matchstream_script:summary(Script),
        Received = Count * (lists:sum(maps:values(Kinds)) - 1),
        ?assertMatch(#{complete := Count, wrong := 0, cut := 0, refused := 0, received := Received}, judged(Viewers, Service, Script, Played))
    end).

a_thousand_clients_get_all_of_a_match(Config) -> all_of_it(1000, mnesia(), 4, Config).

the_first_stage_does_the_same(Config) -> all_of_it(50, mnesia(), 1, Config).

who_comes_late_gets_the_status_and_the_rest(Config) ->
    Script = ?config(script, Config),
    with_service(mnesia(), 5, #{}, fun(Service) ->
        {Viewers, Played} = play(Service, Script, 20, fun() -> clients(Service, 10) end),
        ?assertMatch(#{complete := 10, received := Received} when Received < 300, judged(Viewers, Service, Script, Played))
    end).

the_history_is_what_was_registered(Config) ->
    #{steps := Steps} = Script = ?config(script, Config),
    with_service(mnesia(), 5, #{}, fun(#{base := Base, call := Call} = Service) ->
        {none, _} = play(Service, Script, 2, fun() -> none end),
        {ok, History} = Call(matchstream, history, [?MATCH, 0]),
        ?assertEqual([Kind || {Kind, _} <- Steps, Kind =/= sleep], [Kind || #{kind := Kind} <- History]),
        {200, Text} = fetch(Base ++ "/1/match/rfc-bay-2026-03-14/history"),
        ?assertEqual(length(History), length(binary:matches(Text, <<"\"kind\":">>))),
        {200, Match} = fetch(Base ++ "/1/match/rfc-bay-2026-03-14"),
        ?assertMatch({_, _}, binary:match(Match, <<"\"home_score\":4">>)),
        ?assertMatch({404, _}, fetch(Base ++ "/1/match/nobody")),
        ?assertMatch({200, <<"[\"rfc-bay-2026-03-14\"]">>}, fetch(Base ++ "/1/matches")),
        %% A match that has ended is told of, and the connection is closed.
        ?assertMatch(<<"Welcome", _/binary>>, said(Service, "VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14\r\n")),
        ?assertMatch({_, _}, binary:match(said(Service, "VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14\r\n"), <<"period: ended">>))
    end).

fetch(Url) ->
    {ok, {{_, Code, _}, _, Text}} = httpc:request(get, {Url, []}, [{timeout, ?MS}], [{body_format, binary}]),
    {Code, Text}.

%% All that comes until the end, after these bytes.
said(#{ports := [Port | _]}, Bytes) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    _ = gen_tcp:send(Socket, Bytes),
    Said = rest(Socket, <<>>),
    ok = gen_tcp:close(Socket),
    Said.

rest(Socket, Said) ->
    case gen_tcp:recv(Socket, 0, ?MS) of
        {ok, Bytes} -> rest(Socket, <<Said/binary, Bytes/binary>>);
        {error, closed} -> Said
    end.

hostile_clients_are_told_and_closed(_) ->
    with_service(mnesia(), 4, #{request_ms => 300, connections => 3}, fun(#{ports := [Port | _], call := Call} = Service) ->
        [
            ?assertMatch({Bytes, {_, _}}, {Bytes, binary:match(said(Service, Bytes), Error)})
         || {Bytes, Error} <- [
                {"V:2:a", <<"ERROR: Nothing was asked for in time.">>}, {"", <<"ERROR: Nothing was asked for in time.">>},
                {"GET / HTTP/1.1\r\n", <<"ERROR: Say V:2:NAME">>}, {"V:2:ada\r\n", <<"ERROR: There is no match to watch.">>},
                {"VERSION:1:CONNECT:ada:MATCH:x\r\n", <<"ERROR: There is no such match.">>},
                {binary:copy(<<"x">>, 1000000), <<"ERROR: A line has at most 512 bytes.">>}
            ]
        ],
        ok = await(fun() -> #{counts := #{connections := N}} = Call(matchstream, status, []), N =:= 0 end),
        Held = [begin {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]), {ok, _} = gen_tcp:recv(Socket, 0, ?MS), Socket end || _ <- [1, 2, 3]],
        ?assertMatch({_, _}, binary:match(said(Service, ""), <<"ERROR: Too many connections">>)),
        [gen_tcp:close(Socket) || Socket <- Held]
    end).

an_event_is_taken_once_however_often_it_is_sent(Config) ->
    #{about := About, steps := Steps} = ?config(script, Config),
    [{Kind, Data} | _] = [Step || {Kind, _} = Step <- Steps, Kind =/= sleep],
    with_service(mnesia(), 4, #{}, fun(#{call := Call}) ->
        {ok, ?MATCH} = Call(matchstream, new_match, [About]),
        ?assertEqual({error, exists}, Call(matchstream, new_match, [About])),
        {ok, Event} = Call(matchstream, register, [?MATCH, Kind, Data, 1]),
        ?assertEqual({ok, Event}, Call(matchstream, register, [?MATCH, Kind, Data, 1])),
        ?assertEqual({error, {conflict, 1}}, Call(matchstream, register, [?MATCH, stop, [], 1])),
        ?assertEqual({error, {conflict, 3}}, Call(matchstream, register, [?MATCH, stop, [], 3])),
        ?assertEqual({ok, [Event]}, Call(matchstream, history, [?MATCH, 0]))
    end).

a_killed_redis_loses_nothing_acknowledged(Config) ->
    Script = ?config(script, Config),
    {ok, Redis} = matchstream_redis:start_link(filename:join("/tmp", "ms-redis-" ++ os:getpid())),
    with_service(#{module => matchstream_store_redis, socket => matchstream_redis:socket(Redis)}, 4, #{}, fun(Service) ->
        {Viewers, Played} = play(Service, Script, 10, fun() ->
            Clients = clients(Service, 20),
            ok = matchstream_redis:kill(Redis),
            %% It is back when an event could not be stored.
            _ = spawn_link(fun() ->
                ok = await(fun() -> #{counts := #{unstored := N}} = (map_get(call, Service))(matchstream, status, []), N > 0 end),
                ok = matchstream_redis:restart(Redis)
            end),
            Clients
        end),
        ?assertMatch(#{again := Again} when Again > 0, Played),
        ?assertMatch(#{complete := 20}, judged(Viewers, Service, Script, Played))
    end),
    ok = matchstream_redis:stop(Redis),
    ok = file:del_dir_r(filename:join("/tmp", "ms-redis-" ++ os:getpid())).
