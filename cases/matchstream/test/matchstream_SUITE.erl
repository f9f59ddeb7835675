%% SPDX-License-Identifier: Apache-2.0
%% A service on a real node, with a watcher over HTTP and clients over TCP.
-module(matchstream_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    a_thousand_clients_get_all_of_a_match/1, who_comes_late_gets_the_status_and_the_rest/1, the_history_is_what_was_registered/1,
    hostile_clients_are_told_and_closed/1,
    a_killed_redis_loses_nothing_acknowledged/1, a_redis_that_ends_is_started_again/1, a_redis_that_cannot_start_is_said/1, the_first_stage_does_the_same/1,
    a_killed_node_loses_nothing_and_its_clients_go_on_elsewhere/1, who_reads_too_slowly_is_told/1, who_reads_nothing_is_closed/1,
    who_says_nothing_is_told_and_costs_the_others_nothing/1, a_service_finds_its_matches_on_disk/1, the_page_starts_and_stops_a_match/1, a_node_that_was_cut_off_says_so_until_it_is_started_again/1
]).
%% Called on nodes.
-export([until_many_wait/2, register_all/2]).

-define(MS, 60000).
-define(MATCH, <<"rfc-bay-2026-03-14">>).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, mnesia}, {group, redis} | [{group, stage1} || atoll_tier:tier() =:= deep]].

groups() ->
    [
        {mnesia, [], [
            hostile_clients_are_told_and_closed, a_thousand_clients_get_all_of_a_match,
            who_comes_late_gets_the_status_and_the_rest, the_history_is_what_was_registered, a_killed_node_loses_nothing_and_its_clients_go_on_elsewhere,
            who_reads_too_slowly_is_told, who_reads_nothing_is_closed, who_says_nothing_is_told_and_costs_the_others_nothing,
            a_service_finds_its_matches_on_disk, the_page_starts_and_stops_a_match
        ] ++ [a_node_that_was_cut_off_says_so_until_it_is_started_again || atoll_tier:tier() =:= deep]},
        {stage1, [], [the_first_stage_does_the_same]},
        {redis, [], [a_redis_that_cannot_start_is_said, a_redis_that_ends_is_started_again, a_killed_redis_loses_nothing_acknowledged]}
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
with_service(Store, Stage, Settings, Fun) -> with_service(#{nodes => 1}, Store, Stage, Settings, Fun).

with_service(#{nodes := Count} = Further, Store, Stage, Settings, Fun) ->
    Options = matchstream_cluster:options(#{nodes => Count, store => Store, switches => matchstream_switches:of_stage(Stage) -- [nodes], settings => Settings}),
    {ok, Cluster} = atoll_cluster:start(maps:merge(Options, Further)),
    try
        [First | _] = Nodes = atoll_cluster:nodes(Cluster),
        On = fun(Node, M, F, A) -> atoll_cluster:call(Cluster, Node, M, F, A, ?MS) end,
        Each = [
            begin
                ok = await(fun() -> On(Node, matchstream_store, is_ready, []) end),
                #{ports := Ports, web := Web} = On(Node, matchstream, status, []),
                {Ports, "http://127.0.0.1:" ++ integer_to_list(Web)}
            end
         || Node <- Nodes
        ],
        {Ports, [Base | Others]} = lists:unzip(Each),
        Fun(#{call => fun(M, F, A) -> On(First, M, F, A) end, on => On, cluster => Cluster, nodes => Nodes, ports => lists:append(Ports), base => Base, others => Others})
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

%% Plays the script; each function is called before the event of its number.
play(#{base := Base, others := Others}, Script, Stops) ->
    Own = self(),
    {Pid, _} = spawn_monitor(fun() ->
        Stop = fun(Seq, _) -> case lists:keymember(Seq, 1, Stops) of true -> Own ! {at, self()}, receive go -> ok end; false -> ok end end,
        exit({played, matchstream_watcher:play(Base, Script, #{speed => 100, before => Stop, others => Others})})
    end),
    Made = [
        begin
            receive {at, Pid} -> ok after ?MS -> ct:fail(no_play) end,
            Is = Fun(),
            Pid ! go,
            Is
        end
     || {_, Fun} <- Stops
    ],
    receive {'DOWN', _, process, Pid, {played, {ok, Played}}} -> {Made, Played} after ?MS -> ct:fail(no_end) end.

followers(#{on := On, nodes := Nodes}) -> lists:sum([begin #{counts := #{clients := N}} = On(Node, matchstream, status, []), N end || Node <- Nodes]).

clients(Service, Count) -> clients(Service, Count, #{}).

clients(#{ports := Ports} = Service, Count, Further) ->
    Already = followers(Service),
    Viewers = matchstream_viewers:start(maps:merge(#{host => {127, 0, 0, 1}, ports => Ports, match => first, count => Count, at_once => 100}, Further)),
    ?assertEqual({ok, {Count, 0}}, matchstream_viewers:connected(Viewers, ?MS)),
    ok = await(fun() -> followers(Service) =:= Already + Count end),
    Viewers.

judged(Viewers, #{call := Call}, Script, Played) -> judged(Viewers, Call, Script, Played, ?MATCH).

judged(Viewers, Call, #{about := About}, #{sent := Sent}, Id) ->
    {ok, Seen} = matchstream_viewers:ended(Viewers, ?MS),
    {ok, History} = Call(matchstream, history, [Id, 0]),
    #{latencies := Latencies} = Verdict = matchstream_viewers:judge(Seen, #{about => About, history => History, sent => Sent}),
    _ = [ct:pal("99 of 100 events were with a client within ~b ms.", [lists:nth(length(Latencies) * 99 div 100, Latencies) div 1000]) || length(Latencies) >= 100],
    Verdict.

all_of_it(Count, AtOnce, Store, Stage, Config) ->
    Script = ?config(script, Config),
    with_service(Store, Stage, #{}, fun(Service) ->
        {[Viewers], Played} = play(Service, Script, [{2, fun() -> clients(Service, Count, #{at_once => AtOnce}) end}]),
        #{kinds := Kinds} = matchstream_script:summary(Script),
        Received = Count * (lists:sum(maps:values(Kinds)) - 1),
        ?assertMatch(#{complete := Count, wrong := 0, cut := 0, refused := 0, received := Received}, judged(Viewers, Service, Script, Played))
    end).

a_thousand_clients_get_all_of_a_match(Config) -> all_of_it(1000, 100, mnesia(), 4, Config).

%% More at once have to wait for each other, as in the paper.
the_first_stage_does_the_same(Config) -> all_of_it(50, 4, mnesia(), 1, Config).

who_comes_late_gets_the_status_and_the_rest(Config) ->
    Script = ?config(script, Config),
    with_service(mnesia(), 5, #{}, fun(Service) ->
        {[Viewers], Played} = play(Service, Script, [{20, fun() -> clients(Service, 10) end}]),
        ?assertMatch(#{complete := 10, received := Received} when Received < 300, judged(Viewers, Service, Script, Played))
    end).

the_history_is_what_was_registered(Config) ->
    #{steps := Steps} = Script = ?config(script, Config),
    with_service(mnesia(), 5, #{}, fun(#{base := Base, call := Call} = Service) ->
        {[], _} = play(Service, Script, []),
        {ok, History} = Call(matchstream, history, [?MATCH, 0]),
        ?assertEqual([Kind || {Kind, _} <- Steps, Kind =/= sleep], [Kind || #{kind := Kind} <- History]),
        {200, Text} = fetch(Base ++ "/1/match/rfc-bay-2026-03-14/history"),
        ?assertEqual(length(History), length(binary:matches(Text, <<"\"kind\":">>))),
        {200, Match} = fetch(Base ++ "/1/match/rfc-bay-2026-03-14"),
        ?assertMatch({_, _}, binary:match(Match, <<"\"home_score\":4">>)),
        ?assertMatch({404, _}, fetch(Base ++ "/1/match/nobody")),
        ?assertMatch({200, <<"[\"rfc-bay-2026-03-14\"]">>}, fetch(Base ++ "/1/matches")),
        %% A match that has ended is told of, and the connection is closed.
        Ended = said(Service, "VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14\r\n"),
        ?assertMatch(<<"Welcome", _/binary>>, Ended),
        ?assertMatch({_, _}, binary:match(Ended, <<"period: ended">>)),
        %% Who has some of it gets the rest, and no status.
        [Last | _] = lists:reverse(History),
        Rest = <<(matchstream_protocol:greeting())/binary, (matchstream_protocol:event(Last))/binary>>,
        ?assertEqual(Rest, said(Service, io_lib:format("VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14:AFTER:~b\r\n", [length(History) - 1]))),
        ?assertMatch({_, _}, binary:match(said(Service, "VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14:AFTER:99\r\n"), <<"ERROR: The match has no event 99.">>))
    end).

%% The one that is killed has made the tables, and the watcher speaks with it.
a_killed_node_loses_nothing_and_its_clients_go_on_elsewhere(Config) ->
    #{steps := Steps} = Script = ?config(script, Config),
    Count = atoll_tier:size(matchstream_moving),
    with_service(#{nodes => 3}, mnesia(), 5, #{}, fun(#{cluster := Cluster, nodes := [First, Second, Third] = Nodes, on := On} = Service) ->
        {[Viewers, Before, ok], Played} = play(Service, Script, [
            {2, fun() -> clients(Service, Count, #{does => go_on, match => ?MATCH}) end},
            {12, fun() ->
                {ok, History} = On(First, matchstream, history, [?MATCH, 0]),
                ok = atoll_cluster:kill(Cluster, First),
                History
            end},
            {20, fun() -> await(fun() -> followers(Service#{nodes := Nodes -- [First]}) =:= Count end) end}
        ]),
        Call = fun(M, F, A) -> On(Second, M, F, A) end,
        ?assertMatch(#{again := Again} when Again > 0, Played),
        ?assertMatch(#{complete := Count, again := Again} when Again >= Count div 3, judged(Viewers, Call, Script, Played, ?MATCH)),
        {ok, History} = Call(matchstream, history, [?MATCH, 0]),
        ?assertEqual([Kind || {Kind, _} <- Steps, Kind =/= sleep], [Kind || #{kind := Kind} <- History]),
        ?assertEqual({Before, History}, {lists:sublist(History, length(Before)), element(2, On(Third, matchstream, history, [?MATCH, 0]))}),
        %% It comes back, and has what it missed.
        ok = atoll_cluster:restart(Cluster, First),
        ok = await(fun() -> On(First, matchstream, history, [?MATCH, 0]) =:= {ok, History} end)
    end).

%% It gets more than the system holds for it, and then more than may wait.
who_reads_too_slowly_is_told(_) ->
    beside_who_reads(3000, #{waiting => 64, send_ms => ?MS}, until_many_wait, fun(#{call := Call}, Id, Socket) ->
        Said = rest(Socket, <<>>),
        Error = matchstream_protocol:error("This client reads too slowly."),
        ?assertEqual(Error, binary:part(Said, byte_size(Said), -byte_size(Error))),
        %% What it got before is all that it should have got.
        {ok, History} = Call(matchstream, history, [Id, 0]),
        Texts = [matchstream_protocol:event(Event) || Event <- History],
        [_, Events] = binary:split(binary:part(Said, 0, byte_size(Said) - byte_size(Error)), hd(tl(Texts))),
        ?assertEqual(Events, binary:part(iolist_to_binary(tl(tl(Texts))), 0, byte_size(Events)))
    end).

%% Everything may wait for it: that it takes nothing is all that is wrong with it.
who_reads_nothing_is_closed(_) ->
    beside_who_reads(1000, #{waiting => 10000, send_ms => 1000}, register_all, fun(Service, _, Socket) ->
        ok = await(fun() -> followers(Service) =:= 1 end),
        ?assertMatch({error, _}, nothing_more(Socket))
    end).

%% What happens to a client that does not read while events are registered. Another one reads, and has all.
beside_who_reads(Count, Settings, Register, Then) ->
    #{about := About, steps := [{start, Start} | Steps]} = Script = matchstream_script:made(Count),
    with_service(mnesia(), 4, Settings, fun(#{ports := [Port | _], call := Call} = Service) ->
        {ok, Id} = Call(matchstream, new_match, [About]),
        {ok, _} = Call(matchstream, register, [Id, start, Start]),
        Viewers = clients(Service, 1),
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {recbuf, 1024}]),
        ok = gen_tcp:send(Socket, ["VERSION:1:CONNECT:ada:MATCH:", Id, "\r\n"]),
        ok = await(fun() -> followers(Service) =:= 2 end),
        ok = Call(?MODULE, Register, [Id, [Step || {Kind, _} = Step <- Steps, Kind =/= sleep, Kind =/= stop]]),
        Then(Service, Id, Socket),
        ok = await(fun() -> #{counts := #{slow := Slow, clients := Left}} = Call(matchstream, status, []), {Slow, Left} =:= {1, 1} end),
        {ok, _} = Call(matchstream, register, [Id, stop, []]),
        ?assertMatch(#{complete := 1}, judged(Viewers, Call, Script, #{sent => #{}}, Id))
    end).

%% On the node.
until_many_wait(Id, [{Kind, Data} | Steps]) ->
    {ok, _} = matchstream:register(Id, Kind, Data),
    case slowest_has() > 80 of
        true -> ok;
        false -> until_many_wait(Id, Steps)
    end.

%% How many wait for the slowest, once few wait for the other one: on a busy machine who reads does not get to it at once.
slowest_has() ->
    Waiting = waiting(),
    case lists:min(Waiting) > 8 of
        true -> erlang:yield(), slowest_has();
        false -> lists:max(Waiting)
    end.

register_all(Id, Steps) -> lists:foreach(fun({Kind, Data}) -> {ok, _} = matchstream:register(Id, Kind, Data) end, Steps).

%% How many messages wait for each connection of this node.
waiting() ->
    [
        N
     || {{connections, _}, Supervisor, _, _} <- supervisor:which_children(matchstream_sup),
        {_, Connection, _, _} <- supervisor:which_children(Supervisor),
        {message_queue_len, N} <- [process_info(Connection, message_queue_len)]
    ].

%% What the system still holds, and then that it was closed.
nothing_more(Socket) ->
    case gen_tcp:recv(Socket, 0, ?MS) of
        {ok, Bytes} ->
            ?assertEqual(nomatch, binary:match(Bytes, <<"ERROR">>)),
            nothing_more(Socket);
        {error, Why} when Why =/= timeout -> {error, Why}
    end.

who_says_nothing_is_told_and_costs_the_others_nothing(Config) ->
    Script = ?config(script, Config),
    Count = atoll_tier:size(matchstream_idle),
    with_service(mnesia(), 4, #{request_ms => 1000}, fun(#{ports := Ports, call := Call} = Service) ->
        {[{Idle, Viewers}], Played} = play(Service, Script, [{2, fun() ->
            Following = clients(Service, 20),
            Silent = matchstream_viewers:start(#{host => {127, 0, 0, 1}, ports => Ports, match => first, count => Count, at_once => 500, does => say_nothing}),
            ?assertEqual({ok, {Count, 0}}, matchstream_viewers:connected(Silent, ?MS)),
            {Silent, Following}
        end}]),
        ?assertMatch(#{complete := 20}, judged(Viewers, Service, Script, Played)),
        ?assertMatch(#{refused := Count}, judged(Idle, Service, Script, Played)),
        ok = await(fun() -> #{counts := Counts} = Call(matchstream, status, []), {Count, 0} =:= {maps:get(refused, Counts), maps:get(connections, Counts)} end)
    end).

a_service_finds_its_matches_on_disk(Config) ->
    #{about := About, steps := Steps} = ?config(script, Config),
    [{Kind, Data} | _] = [Step || {Kind, _} = Step <- Steps, Kind =/= sleep],
    Further = #{nodes => atoll_tier:size(matchstream_disks), name => "ms-disk-" ++ os:getpid()},
    Dir = filename:join(?config(priv_dir, Config), "matches"),
    Store = (mnesia())#{dir => Dir},
    Event = with_service(Further, Store, 4, #{}, fun(#{call := Call}) ->
        {ok, ?MATCH} = Call(matchstream, new_match, [About]),
        {ok, Registered} = Call(matchstream, register, [?MATCH, Kind, Data]),
        Registered
    end),
    with_service(Further, Store, 4, #{}, fun(#{nodes := Nodes, on := On}) ->
        [?assertEqual({ok, [Event]}, On(Node, matchstream, history, [?MATCH, 0])) || Node <- Nodes],
        [?assert(filelib:is_regular(filename:join([Dir, Node, "schema.DAT"]))) || Node <- Nodes],
        ?assertMatch({ok, #{seq := 2}}, On(lists:last(Nodes), matchstream, register, [?MATCH, cancel, []]))
    end).

the_page_starts_and_stops_a_match(_) ->
    with_service(mnesia(), 4, #{}, fun(#{base := Base} = Service) ->
        Tell = fun(Body) ->
            {ok, {{_, Code, _}, _, Text}} = httpc:request(post, {Base ++ "/1/simulator", [], "application/json", Body}, [{timeout, ?MS}], [{body_format, binary}]),
            {Code, Text}
        end,
        Has = fun(Part) -> {200, Text} = fetch(Base ++ "/1/simulator"), binary:match(Text, Part) =/= nomatch end,
        ?assertMatch({409, _}, Tell("{\"stop\": true}")),
        ?assertMatch({400, _}, Tell("{\"script\": \"../sample\", \"speed\": 1}")),
        ?assertMatch({400, _}, Tell("{\"script\": \"sample\", \"speed\": 0}")),
        %% The first one plays to its end, the second one is a day later.
        ?assertMatch({200, _}, Tell("{\"script\": \"sample\", \"speed\": 1000}")),
        ok = await(fun() -> Has(<<"\"running\":false">>) end),
        ?assert(Has(<<"\"done\":27">>)),
        ?assertMatch({200, _}, Tell("{\"script\": \"sample\", \"speed\": 10}")),
        ?assertMatch({409, _}, Tell("{\"script\": \"sample\", \"speed\": 10}")),
        ok = await(fun() -> Has(<<"\"done\":1">>) end),
        %% So slow that it does not end by itself; who follows it is told that it was stopped.
        ?assertMatch({200, _}, Tell("{\"speed\": 0.01}")),
        Own = self(),
        _ = spawn_link(fun() -> Own ! {said, said(Service, "V:2:ada\r\n")} end),
        ok = await(fun() -> followers(Service) =:= 1 end),
        ?assertMatch({200, _}, Tell("{\"stop\": true}")),
        receive {said, Said} -> ?assertMatch({_, _}, binary:match(Said, <<": cancel:\n\r\n">>)) after ?MS -> ct:fail(nothing_said) end,
        ?assert(Has(<<"\"match\":\"rfc-bay-2026-03-15\"">>))
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

hostile_clients_are_told_and_closed(Config) ->
    #{about := About} = ?config(script, Config),
    with_service(mnesia(), 4, #{request_ms => 1000, connections => 3}, fun(#{ports := [Port | _], call := Call} = Service) ->
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
        %% Who has asked for something is not closed meanwhile.
        {ok, Id} = Call(matchstream, new_match, [About]),
        Held = [
            begin
                {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
                ok = gen_tcp:send(Socket, ["VERSION:1:CONNECT:ada:MATCH:", Id, "\r\n"]),
                Socket
            end
         || _ <- [1, 2, 3]
        ],
        ok = await(fun() -> followers(Service) =:= 3 end),
        ?assertMatch({_, _}, binary:match(said(Service, ""), <<"ERROR: Too many connections">>)),
        [gen_tcp:close(Socket) || Socket <- Held]
    end).

a_killed_redis_loses_nothing_acknowledged(Config) ->
    Script = ?config(script, Config),
    {ok, Redis} = matchstream_redis:start_link(filename:join("/tmp", "ms-redis-" ++ os:getpid())),
    with_service(#{module => matchstream_store_redis, socket => matchstream_redis:socket(Redis)}, 4, #{}, fun(Service) ->
        {[Viewers], Played} = play(Service, Script, [{10, fun() ->
            Clients = clients(Service, 20),
            ok = matchstream_redis:kill(Redis),
            %% It is back when an event could not be stored.
            _ = spawn_link(fun() ->
                ok = await(fun() -> #{counts := #{unstored := N}} = (map_get(call, Service))(matchstream, status, []), N > 0 end),
                ok = matchstream_redis:restart(Redis)
            end),
            Clients
        end}]),
        ?assertMatch(#{again := Again} when Again > 0, Played),
        ?assertMatch(#{complete := 20}, judged(Viewers, Service, Script, Played))
    end),
    ok = matchstream_redis:stop(Redis),
    ok = file:del_dir_r(filename:join("/tmp", "ms-redis-" ++ os:getpid())).

%% In this VM: what its folder has is broken, or it is no folder.
a_redis_that_cannot_start_is_said(Config) ->
    Dir = filename:join("/tmp", "ms-broken-" ++ os:getpid()),
    Manifest = filename:join([Dir, "appendonlydir", "appendonly.aof.manifest"]),
    ok = filelib:ensure_dir(Manifest),
    ok = file:write_file(Manifest, "no manifest\n"),
    {error, Sentence} = matchstream_redis:start_link(Dir),
    ?assertMatch({match, _}, re:run(Sentence, "^redis-server ended: .+")),
    ok = file:del_dir_r(Dir),
    ok = file:write_file(Dir, ""),
    {error, NoDir} = matchstream_redis:start_link(Dir),
    ?assertMatch({match, _}, re:run(NoDir, "^The folder /tmp/ms-broken-.* cannot be made: ")),
    ok = file:delete(Dir),
    Config.

%% It is told to end, as if somebody had killed it.
a_redis_that_ends_is_started_again(_) ->
    Dir = filename:join("/tmp", "ms-again-" ++ os:getpid()),
    {ok, Redis} = matchstream_redis:start_link(Dir),
    Asked = fun(Line) ->
        {ok, Socket} = gen_tcp:connect({local, matchstream_redis:socket(Redis)}, 0, [local, binary, {active, false}]),
        ok = gen_tcp:send(Socket, [Line, "\r\n"]),
        Said = gen_tcp:recv(Socket, 0, ?MS),
        ok = gen_tcp:close(Socket),
        Said
    end,
    ?assertEqual({ok, <<"+OK\r\n">>}, Asked("SET key kept")),
    ?assertEqual({error, closed}, Asked("SHUTDOWN NOSAVE")),
    %% The call waits until it is there again.
    ok = await(fun() -> ok = matchstream_redis:restart(Redis), try Asked("GET key") =:= {ok, <<"$4\r\nkept\r\n">>} catch error:{badmatch, {error, _}} -> false end end),
    ok = matchstream_redis:stop(Redis),
    ok = file:del_dir_r(Dir).

a_node_that_was_cut_off_says_so_until_it_is_started_again(Config) ->
    #{about := About} = ?config(script, Config),
    with_service(#{nodes => 3}, mnesia(), 5, #{}, fun(#{cluster := Cluster, on := On, nodes := [First, Second, Third] = Nodes, others := Others}) ->
        {ok, Id} = On(First, matchstream, new_match, [About]),
        {ok, _} = On(First, matchstream, register, [Id, start, []]),
        Running = fun(Node) -> lists:sort(On(Node, mnesia, system_info, [running_db_nodes])) end,
        Ready = fun() -> [On(Node, matchstream_store, is_ready, []) || Node <- Nodes] end,
        Cookie = On(First, erlang, get_cookie, []),
        %% Two cookies keep them apart, also where somebody connects them again.
        Cookies = fun(Is) -> [true = On(From, erlang, set_cookie, [To, Is]) || Node <- [First, Second], {From, To} <- [{Node, Third}, {Third, Node}]] end,
        _ = Cookies(apart),
        _ = [On(Third, erlang, disconnect_node, [Node]) || Node <- [First, Second]],
        ok = await(fun() -> {Running(First), Running(Third)} =:= {lists:sort([First, Second]), [Third]} end),
        ?assertMatch({ok, #{seq := 2}}, On(First, matchstream, register, [Id, continue, []])),
        ?assertEqual({error, unavailable}, On(Third, matchstream, register, [Id, continue, []])),
        _ = Cookies(Cookie),
        _ = [ok = await(fun() -> On(Third, net_kernel, connect_node, [Node]) =:= true end) || Node <- [First, Second]],
        ok = await(fun() -> Ready() =:= [true, true, false] end),
        Url = lists:last(Others) ++ "/1/match/" ++ binary_to_list(Id) ++ "/events",
        {ok, {{_, 503, _}, _, Said}} = httpc:request(post, {Url, [], "application/json", "{\"kind\": \"continue\"}"}, [{timeout, ?MS}], [{body_format, binary}]),
        ?assertMatch({match, _}, re:run(Said, "This node was cut off, and is apart from .* until it is started again: ask another one")),
        ok = atoll_cluster:kill(Cluster, Third),
        ok = atoll_cluster:restart(Cluster, Third),
        ok = await(fun() -> Ready() =:= [true, true, true] end),
        ?assertMatch({ok, #{seq := 3}}, On(Third, matchstream, register, [Id, continue, []]))
    end).
