%% SPDX-License-Identifier: Apache-2.0
%% `atoll watch' as a program, beside two stock nodes: what it answers, to whom, and what is left when it or a node is killed.
-module(atoll_watch_web_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    all_that_is_answered_is_as_the_interface_says/1,
    nobody_is_answered_without_the_token/1,
    a_page_gets_a_cookie_for_the_token/1,
    what_is_asked_wrongly_is_told_in_a_sentence/1,
    no_path_leads_elsewhere/1,
    what_is_too_much_is_refused/1,
    a_name_with_a_script_is_only_a_name/1,
    pages_have_everything_once/1,
    what_runs_on_a_node_can_be_explored/1,
    a_family_is_deployed_over_http/1,
    what_a_node_logs_is_a_notification/1,
    what_flows_is_streamed_as_long_as_somebody_looks/1,
    a_program_has_metrics_of_its_own_whatever_they_are_called/1,
    the_five_windows_say_the_same/1,
    a_graphite_server_is_told/1,
    a_node_is_killed_stopped_and_back/1,
    a_watch_that_is_killed_goes_on_where_it_was/1,
    it_speaks_tls/1,
    others_read_what_it_says/1
]).

-import(atoll_watch_peers, [call/4, await/2]).
-import(atoll_watch_web, [started/6, ask/3, ask/4, get/2, raw/2, valid/3]).

-define(PERIOD_MS, 500).
-define(PERIOD, ["--period", "0.5"]).
-define(LATE_MS, 30000).
-define(IDLE, 1000).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [all_that_is_answered_is_as_the_interface_says, nobody_is_answered_without_the_token, a_page_gets_a_cookie_for_the_token, what_is_asked_wrongly_is_told_in_a_sentence,
     no_path_leads_elsewhere, what_is_too_much_is_refused, a_name_with_a_script_is_only_a_name, pages_have_everything_once, what_runs_on_a_node_can_be_explored,
     a_family_is_deployed_over_http, what_a_node_logs_is_a_notification, what_flows_is_streamed_as_long_as_somebody_looks, a_program_has_metrics_of_its_own_whatever_they_are_called,
     the_five_windows_say_the_same, a_graphite_server_is_told, a_node_is_killed_stopped_and_back] ++
    [Case || atoll_tier:tier() =:= deep, Case <- [a_watch_that_is_killed_goes_on_where_it_was, it_speaks_tls, others_read_what_it_says]].

init_per_suite(Config) ->
    case atoll_watch_yaws:find() of
        none -> {skip, "Yaws is not installed: scripts/setup erlang-yaws"};
        ok ->
            Dir = atoll_cli_os:new_dir(),
            Cookie = filename:join(Dir, "cookie"),
            ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
            %% The program's outputs are those of who starts it.
            {Holder, {[{_, A}, {_, B}] = Peers, Watch, Graphite}} = atoll_watch_peers:start(fun() ->
                {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {packet, line}]),
                {ok, Port} = inet:port(Listener),
                [{_, First}, Second] = Both = [atoll_watch_peers:watched(["-connect_all", "false"]) || _ <- [1, 2]],
                true = call(Second, net_kernel, connect_node, [First]),
                {Both, started(Dir, First, Cookie, filename:join(Dir, "data"), atoll_test_port:free(), ?PERIOD ++ ["--deployments", filename:join(Dir, "deployments"), "--graphite", "127.0.0.1:" ++ integer_to_list(Port)]), Listener}
            end),
            Started = [{graphite, Graphite}, {holder, Holder}, {peers, Peers}, {dir, Dir}, {cookie, Cookie}, {watch, Watch} | Config],
            _ = await(fun() -> states(Started) end, fun(Is) -> Is =:= lists:sort([{name(A), <<"up">>}, {name(B), <<"up">>}]) end),
            Started
    end.

end_per_suite(Config) ->
    #{program := Program} = watch(Config),
    ok = atoll_cli_os:signal(Program, "TERM"),
    %% Nothing of it is left in the nodes.
    [false = await(fun() -> call(Peer, erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end) || Peer <- peers(Config)],
    ok = atoll_watch_peers:stop(proplists:get_value(holder, Config)),
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

watch(Config) -> proplists:get_value(watch, Config).
peers(Config) -> proplists:get_value(peers, Config).
name({_, Node}) -> name(Node);
name(Node) -> atom_to_binary(Node).

states(Config) ->
    {200, _, #{<<"items">> := Nodes}} = get("/api/v1/nodes", watch(Config)),
    [{Node, State} || #{<<"node">> := Node, <<"state">> := State} <- Nodes].

%% What it answers

all_that_is_answered_is_as_the_interface_says(Config) ->
    [{_, A} | _] = Peers = peers(Config),
    Watch = watch(Config),
    {200, Headers, OpenApi} = raw(#{method => "GET", path => "/openapi.json"}, Watch),
    <<"application/json", _/binary>> = proplists:get_value(<<"content-type">>, Headers),
    %% A kernel that has a name, a supervisor, an alarm that stands.
    Node = uri_string:quote(name(A)),
    Busy = busy(hd(Peers)),
    #{<<"id">> := Id} = await(fun() -> alarm(<<"mailbox">>, Watch) end, fun is_map/1),
    Fill = #{<<"{node}">> => Node, <<"{pid}">> => <<"kernel_sup">>, <<"{id}">> => integer_to_binary(Id)},
    Queries = #{<<"/api/v1/series">> => "?window=15min&metric=processes,run_queue,reductions", <<"/api/v1/nodes">> => "?limit=1", <<"/api/v1/alarms">> => "?state=all"},
    #{<<"paths">> := Paths} = OpenApi,
    Reads = [Path || {Path, #{<<"get">> := _}} <- lists:sort(maps:to_list(Paths)), not lists:member(Path, [<<"/openapi.json">>, <<"/metrics">>, <<"/api/v1/events">>, <<"/api/v1/traffic">>])],
    ?assert(length(Reads) > 15),
    [begin
         Filled = maps:fold(fun(Key, Value, Text) -> binary:replace(Text, Key, Value) end, Path, Fill),
         {Status, _, Object} = get([Filled, maps:get(Path, Queries, "")], Watch),
         ?assertEqual({Path, 200, ok}, {Path, Status, valid(Object, [Path, <<"get">>], OpenApi)})
     end || Path <- Reads],
    Posted = fun(Path, Object) -> ask("POST", Path, Object, Watch) end,
    [begin
         {Status, _, Object} = Posted(binary:replace(Path, <<"{id}">>, integer_to_binary(Id)), Body),
         ?assertEqual({Path, Expected, ok}, {Path, Status, valid(Object, [Path, <<"post">>], OpenApi)})
     end || {Path, Body, Expected} <- [
        {<<"/api/v1/alarms/{id}/acknowledge">>, {[{who, <<"ann">>}]}, 200}, {<<"/api/v1/alarms/{id}/comments">>, {[{who, <<"bob">>}, {text, <<"it is the test">>}]}, 201},
        {<<"/api/v1/nodes">>, {[{node, <<"nobody@127.0.0.1">>}]}, 201}
     ]],
    {200, _, #{<<"state">> := <<"acknowledged">>, <<"acknowledged">> := #{<<"who">> := <<"ann">>}, <<"comments">> := [#{<<"who">> := <<"bob">>, <<"text">> := <<"it is the test">>}]}} =
        get(["/api/v1/alarms/", integer_to_binary(Id)], Watch),
    {204, _, none} = ask("DELETE", "/api/v1/nodes/nobody%40127.0.0.1", Watch),
    %% Each of these stands in the log, and who asked.
    [_ = atoll_cli_os:await_line(maps:get(program, Watch), stderr, iolist_to_binary(["atoll watch: 127.0.0.1 ", Did])) || Did <- [
        ["acknowledged alarm ", integer_to_binary(Id), " for ann"], ["commented on alarm ", integer_to_binary(Id), " for bob"], "added the node nobody@127.0.0.1", "removed the node nobody@127.0.0.1"
    ]],
    {404, _, Error} = get("/api/v1/nodes/nobody%40127.0.0.1", Watch),
    ?assertEqual(ok, valid(Error, [<<"/api/v1/nodes/{node}">>, <<"get">>, <<"404">>], OpenApi)),
    {200, TextHeaders, Text} = raw(#{method => "GET", path => "/metrics", headers => [atoll_watch_web:bearer(Watch)]}, Watch),
    <<"text/plain; version=0.0.4", _/binary>> = proplists:get_value(<<"content-type">>, TextHeaders),
    ?assertMatch({match, _}, re:run(Text, ["erlang_node_up{node=\"", name(A), "\"} 1\n"])),
    true = call(hd(Peers), erlang, exit, [Busy, kill]),
    none = await(fun() -> alarm(<<"mailbox">>, Watch) end, fun(Is) -> Is =:= none end).

busy(Peer) ->
    Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
    _ = call(Peer, lists, zipwith, [fun erlang:send/2, lists:duplicate(10001, Sleeper), lists:seq(1, 10001)]),
    Sleeper.

alarm(Rule, Watch) ->
    {200, _, #{<<"items">> := Alarms}} = get("/api/v1/alarms", Watch),
    case [Alarm || #{<<"rule">> := Is} = Alarm <- Alarms, Is =:= Rule] of
        [Alarm | _] -> Alarm;
        [] -> none
    end.

%% To whom

nobody_is_answered_without_the_token(Config) ->
    #{token := Token} = Watch = watch(Config),
    {200, _, #{<<"paths">> := Paths}} = raw(#{method => "GET", path => "/openapi.json"}, Watch),
    Guarded = [{Method, Path} || {Path, Methods} <- maps:to_list(Paths), {Method, #{} = Is} <- maps:to_list(Methods), not is_map_key(<<"security">>, Is)],
    ?assert(length(Guarded) > 20),
    Wrong = <<(binary:part(Token, 0, byte_size(Token) - 1))/binary, (case binary:last(Token) of $_ -> $-; _ -> $_ end)>>,
    [begin
         {401, Headers, Body} = raw(#{method => string:uppercase(Method), path => [Path, Query], headers => With}, Watch),
         ?assertMatch({_, #{<<"error">> := _}}, {Path, Body}),
         ?assertEqual(<<"nosniff">>, proplists:get_value(<<"x-content-type-options">>, Headers))
     end || {Method, Path} <- Guarded, {Query, With} <- [
        {"", []}, {"", [{"Authorization", ["Bearer ", Wrong]}]}, {"", [{"Authorization", "Basic YTpi"}]}, {["?token=", Token], []}, {"", [{"Cookie", [cookie_name(Watch), $=, Token]}]}
     ]],
    [#{mode := Mode}] = [#{mode => element(8, Info) band 8#777} || {ok, Info} <- [file:read_file_info(filename:join(maps:get(data, Watch), "token"))]],
    ?assertEqual(8#600, Mode),
    %% It is said once.
    ?assertMatch({match, _}, re:run(maps:get(said, Watch), ["http://127.0.0.1:[0-9]+/#token=", Token, "\n"])),
    %% A name that somebody has lead to this machine.
    [begin
         {403, _, _} = raw(#{method => "GET", path => "/api/v1/cluster", host => Host, headers => [atoll_watch_web:bearer(Watch)]}, Watch),
         {403, _, _} = raw(#{method => "GET", path => "/", host => Host}, Watch)
     end || Host <- ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", ""]].

cookie_name(#{port := Port}) -> ["atoll_watch_", integer_to_list(Port)].

a_page_gets_a_cookie_for_the_token(Config) ->
    #{token := Token, port := Port} = Watch = watch(Config),
    Origin = ["http://127.0.0.1:", integer_to_list(Port)],
    Session = fun(Given, With) -> raw(#{method => "POST", path => "/api/v1/session", headers => [{"Content-Type", "application/json"} | With], body => ["{\"token\":\"", Given, "\"}"]}, Watch) end,
    {204, Headers, _} = Session(Token, [{"Origin", Origin}]),
    Set = proplists:get_value(<<"set-cookie">>, Headers),
    {match, [Cookie]} = re:run(Set, "^(atoll_watch_[0-9]+=[0-9A-F]{64}); Path=/; HttpOnly; SameSite=Strict$", [{capture, [1], binary}]),
    {401, _, _} = Session("wrong", [{"Origin", Origin}]),
    {403, _, _} = Session(Token, [{"Origin", "http://evil.example"}]),
    {303, Moved, _} = raw(#{method => "GET", path => ["/?token=", Token]}, Watch),
    ?assertEqual([Set, <<"/">>], [proplists:get_value(Name, Moved) || Name <- [<<"set-cookie">>, <<"location">>]]),
    {401, _, _} = raw(#{method => "GET", path => "/?token=wrong"}, Watch),
    With = fun(Method, Path, More) -> element(1, raw(#{method => Method, path => Path, headers => [{"Cookie", ["a=b; ", Cookie]}, {"Content-Type", "application/json"} | More], body => "{\"node\":\"x\"}"}, Watch)) end,
    ?assertEqual(200, With("GET", "/api/v1/cluster", [])),
    %% A page of elsewhere changes nothing, if a browser should send the cookie for it.
    ?assertEqual([403, 403, 400], [With("POST", "/api/v1/nodes", More) || More <- [[{"Origin", "http://evil.example"}], [{"Sec-Fetch-Site", "cross-site"}], [{"Origin", Origin}]]]).

what_is_asked_wrongly_is_told_in_a_sentence(Config) ->
    [{_, A} | _] = peers(Config),
    Watch = watch(Config),
    Node = uri_string:quote(name(A)),
    [begin
         {Is, _, Body} = get(Path, Watch),
         ?assertMatch({_, Status, #{<<"error">> := _}}, {Path, Is, Body})
     end || {Status, Path} <- [
        {400, "/api/v1/nodes?limit=0"}, {400, "/api/v1/nodes?limit=9999999999999999999999"}, {400, "/api/v1/nodes?limit=x"}, {400, "/api/v1/nodes?colour=red"},
        {400, "/api/v1/nodes?limit=1&limit=2"}, {400, "/api/v1/nodes?state=happy"}, {400, "/api/v1/nodes?search=%ff"}, {400, "/api/v1/alarms?cursor=%21%21"}, {400, "/api/v1/alarms?cursor=YWJj"},
        {400, "/api/v1/notifications?cursor=MS4y-"}, {400, "/api/v1/notifications?severity=terrible"}, {400, "/api/v1/series?window=year&metric=processes"}, {400, "/api/v1/series?window=hour"},
        {400, "/api/v1/series?window=hour&metric=nothing"}, {404, "/api/v1/series?window=hour&metric=processes&node=x@y"}, {404, "/api/v1/nodes/x@y"}, {404, "/api/v1/nodes/x@y/processes"},
        {404, "/api/v1/alarms/999999"}, {404, "/api/v1/alarms/x"}, {404, "/api/v1/nothing"}, {404, "/api/v1"}, {404, "/api/v2/cluster"}, {404, "/api/v1/cluster/more"},
        {404, ["/api/v1/nodes/", Node, "/processes/%3C0.99999.0%3E"]}, {404, ["/api/v1/nodes/", Node, "/processes/no_such_name"]}, {404, ["/api/v1/nodes/", Node, "/supervision?root=x"]},
        {400, ["/api/v1/nodes/", Node, "/processes?sort=beauty"]}, {400, ["/api/v1/nodes/", Node, "/metrics?metric=nothing"]}
     ]],
    [?assertMatch({_, 400, #{<<"error">> := _}}, {Body, element(1, Answer), element(3, Answer)}) || Body <- ["", "{", "[]", "{}", "{\"node\":1}", "{\"node\":\"a\"}", "{\"node\":\"a@b@c\"}", "{\"node\":\"short@name\"}",
        "{\"node\":\"a@127.0.0.1\",\"more\":1}", <<"{\"node\":\"a", 255, "@127.0.0.1\"}">>, ["{\"node\":\"", lists:duplicate(300, $a), "@127.0.0.1\"}"]],
        Answer <- [raw(#{method => "POST", path => "/api/v1/nodes", headers => [atoll_watch_web:bearer(Watch), {"Content-Type", "application/json"}], body => Body}, Watch)]],
    {400, _, _} = raw(#{method => "POST", path => "/api/v1/nodes", headers => [atoll_watch_web:bearer(Watch), {"Content-Type", "text/plain"}], body => "{\"node\":\"a@127.0.0.1\"}"}, Watch),
    {405, Headers, _} = ask("PUT", "/api/v1/nodes", Watch),
    ?assertEqual(<<"GET, POST">>, proplists:get_value(<<"allow">>, Headers)),
    %% No node came of it.
    ?assertEqual(lists:sort([name(Peer) || Peer <- peers(Config)]), [N || {N, _} <- states(Config)]).

no_path_leads_elsewhere(Config) ->
    Watch = watch(Config),
    [begin
         {Status, Headers, Body} = raw(#{method => "GET", path => Path, headers => [atoll_watch_web:bearer(Watch)]}, Watch),
         %% Yaws has no answer to some of them, and closes.
         ?assert(lists:member(Status, [0, 400, 404]), {Path, Status}),
         [?assertMatch({_, #{<<"error">> := _}, <<"nosniff">>}, {Path, Body, proplists:get_value(<<"x-content-type-options">>, Headers)}) || Status =/= 0]
     end || Path <- ["/../token", "/..%2ftoken", "/%2e%2e/token", "/....//token", "//etc/passwd", "/assets/../../token", "/assets/..%5c..%5ctoken", "/index.html%00.js", "/.git/config", "/a//b", "/a/", "/token",
                     "/api/v1/../../token", "/api/v1/nodes/..%2f..%2ftoken", "/api/v1/nodes/%00", "/api/v1/nodes/%zz", "/api/v1/nodes/%c0%ae"]].

%% How much

what_is_too_much_is_refused(Config) ->
    #{port := Port} = Watch = watch(Config),
    Bearer = atoll_watch_web:bearer(Watch),
    {413, _, #{<<"error">> := _}} = raw(#{method => "POST", path => "/api/v1/nodes", headers => [Bearer, {"Content-Type", "application/json"}], body => binary:copy(<<"x">>, 1000000)}, Watch),
    {411, _, _} = raw(#{method => "POST", path => "/api/v1/nodes", headers => [Bearer, {"Transfer-Encoding", "chunked"}]}, Watch),
    {400, _, _} = raw(#{method => "POST", path => "/api/v1/nodes", headers => [Bearer, {"Content-Length", "-1"}]}, Watch),
    Idle = [connected(Port) || _ <- lists:seq(1, ?IDLE)],
    Slow = [begin Socket = connected(Port), ok = gen_tcp:send(Socket, Begun), Socket end || Begun <- ["GET /api", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", "POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"]],
    {200, _, _} = get("/api/v1/cluster", Watch),
    %% Those who say nothing are closed by and by, within ten seconds; one of each kind is waited for.
    [?assertMatch({error, _}, last(Socket)) || atoll_tier:tier() =:= deep, Socket <- [hd(Idle) | Slow]],
    [ok = gen_tcp:close(Socket) || Socket <- Idle ++ Slow],
    Streams = [begin Socket = connected(Port), ok = gen_tcp:send(Socket, ["GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n", atoll_watch_web:line(Bearer), "\r\n"]), Socket end || _ <- lists:seq(1, 50)],
    50 = await(fun() -> {200, _, #{<<"streams">> := N}} = get("/api/v1/cluster", Watch), N end, fun(N) -> N =:= 50 end),
    {503, _, #{<<"error">> := _}} = get("/api/v1/events", Watch),
    [ok = gen_tcp:close(Socket) || Socket <- Streams],
    0 = await(fun() -> {200, _, #{<<"streams">> := N}} = get("/api/v1/cluster", Watch), N end, fun(N) -> N =:= 0 end).

connected(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    Socket.

last(Socket) ->
    case gen_tcp:recv(Socket, 0, ?LATE_MS) of
        {ok, _} -> last(Socket);
        {error, timeout} -> still_open;
        {error, _} = Closed -> Closed
    end.

a_name_with_a_script_is_only_a_name(Config) ->
    Watch = watch(Config),
    Name = <<"<script>alert(1)</script>@127.0.0.1">>,
    {201, _, #{<<"node">> := Name}} = ask("POST", "/api/v1/nodes", {[{node, Name}]}, Watch),
    {200, Headers, #{<<"node">> := Name}} = get(["/api/v1/nodes/", uri_string:quote(Name)], Watch),
    ?assertEqual([<<"application/json; charset=utf-8">>, <<"nosniff">>], [proplists:get_value(Key, Headers) || Key <- [<<"content-type">>, <<"x-content-type-options">>]]),
    ?assertMatch({match, _}, re:run(proplists:get_value(<<"content-security-policy">>, Headers), "default-src 'none'; script-src 'self';")),
    {404, Not, #{<<"error">> := Sentence}} = get(["/api/v1/nodes/x", uri_string:quote(Name)], Watch),
    ?assertMatch({match, _}, re:run(Sentence, "<script>")),
    ?assertEqual(<<"application/json; charset=utf-8">>, proplists:get_value(<<"content-type">>, Not)),
    #{<<"id">> := Id} = await(fun() -> alarm(<<"node_down">>, Watch) end, fun is_map/1),
    {200, Plain, Text} = raw(#{method => "GET", path => "/metrics", headers => [atoll_watch_web:bearer(Watch)]}, Watch),
    ?assertMatch({match, _}, re:run(Text, "erlang_node_up\\{node=\"<script>alert\\(1\\)</script>@127.0.0.1\"\\} 0\n")),
    <<"text/plain", _/binary>> = proplists:get_value(<<"content-type">>, Plain),
    %% What people say of an alarm.
    Said = <<"<img src=x onerror=alert(1)>\r\nevent: alarm\ndata: {}">>,
    {201, _, #{<<"comments">> := [#{<<"who">> := <<"<b>ann">>, <<"text">> := Said}]}} =
        ask("POST", ["/api/v1/alarms/", integer_to_binary(Id), "/comments"], {[{who, <<"<b>ann">>}, {text, Said}]}, Watch),
    {204, _, none} = ask("DELETE", ["/api/v1/nodes/", uri_string:quote(Name)], Watch).

pages_have_everything_once(Config) ->
    Watch = watch(Config),
    All = fun All(Path, Limit, Cursor) ->
        {200, _, #{<<"next">> := Next} = Page} = get([Path, "?limit=", integer_to_list(Limit), [["&cursor=", uri_string:quote(Cursor)] || Cursor =/= none]], Watch),
        [Items] = [Items || Name <- [<<"items">>, <<"readings">>, <<"series">>], #{Name := Items} <- [Page]],
        ?assert(length(Items) =< Limit),
        case Next of null -> Items; _ -> Items ++ All(Path, Limit, Next) end
    end,
    [begin
         Items = All(Path, 3, none),
         Keys = [maps:get(Key, Item) || Item <- Items],
         ?assertEqual(lists:usort(Keys), case Order of up -> Keys; down -> lists:reverse(Keys) end),
         {200, _, #{<<"total">> := Total}} = get(Path, Watch),
         ?assert(Total >= length(Items) andalso Items =/= [])
     end || {Path, Key, Order} <- [{"/api/v1/metrics", <<"name">>, up}, {"/api/v1/nodes", <<"node">>, up}, {"/api/v1/rules", <<"rule">>, up}, {"/api/v1/notifications", <<"id">>, down},
                                   {"/api/v1/families", <<"family">>, up}, {"/api/v1/links", <<"from">>, up}]],
    [begin
         Of = [{Metric, Label} || #{<<"metric">> := Metric, <<"label">> := Label} <- All(["/api/v1/nodes/", uri_string:quote(name(hd(peers(Config)))), Part], 25, none)],
         ?assertEqual({Part, lists:usort(Of)}, {Part, Of}),
         ?assert(length(Of) > 60)
     end || Part <- ["/metrics", "/series"]],
    {200, _, #{<<"items">> := Found}} = get("/api/v1/notifications?search=STARTED&kind=watch", Watch),
    ?assertMatch([#{<<"text">> := <<"the watch was started">>, <<"severity">> := <<"info">>}], Found).

what_runs_on_a_node_can_be_explored(Config) ->
    [{_, A} = Peer | _] = peers(Config),
    Watch = watch(Config),
    Before = atoll_watch_peers:known(Peer),
    Of = fun(Path) -> {200, _, Object} = get(["/api/v1/nodes/", uri_string:quote(name(A)), Path], Watch), Object end,
    #{<<"items">> := [#{<<"pid">> := Pid} | _] = Most, <<"total">> := Total} = Of("/processes?sort=memory&limit=5"),
    ?assert(length(Most) =:= 5 andalso Total > 30),
    Memory = [N || #{<<"memory">> := N} <- Most],
    ?assertEqual(Memory, lists:reverse(lists:sort(Memory))),
    ?assertMatch(#{<<"pid">> := Pid, <<"stacktrace">> := [_ | _]}, Of(["/processes/", uri_string:quote(Pid)])),
    ?assertMatch(#{<<"name">> := <<"kernel_sup">>, <<"links">> := [_ | _]}, Of("/processes/kernel_sup")),
    #{<<"items">> := Tables} = Of("/tables?limit=3"),
    ?assertEqual(3, length(Tables)),
    #{<<"items">> := Apps} = Of("/supervision"),
    [#{<<"type">> := <<"application">>, <<"children">> := Children}] = [App || #{<<"id">> := <<"kernel">>} = App <- Apps],
    ?assert(lists:any(fun(#{<<"id">> := Id, <<"type">> := Type}) -> {Id, Type} =:= {<<"kernel_safe_sup">>, <<"supervisor">>} end, Children)),
    #{<<"items">> := [#{<<"children">> := [_ | _]}]} = Of("/supervision?root=kernel_sup"),
    ?assertEqual(maps:with([registered, tables, handlers], Before), maps:with([registered, tables, handlers], atoll_watch_peers:known(Peer))).

what_a_node_logs_is_a_notification(Config) ->
    [{_, A} = Peer | _] = peers(Config),
    Watch = watch(Config),
    {200, _, OpenApi} = raw(#{method => "GET", path => "/openapi.json"}, Watch),
    ok = call(Peer, logger, error, ["the <b>desk</b> of ~ts is on fire", [<<"Größe"/utf8>>]]),
    #{<<"items">> := [Note]} = Page = await(fun() -> element(3, get("/api/v1/notifications?kind=log&search=on%20fire", Watch)) end, fun(#{<<"items">> := Items}) -> Items =/= [] end),
    ?assertEqual(ok, valid(Page, [<<"/api/v1/notifications">>, <<"get">>], OpenApi)),
    Name = name(A),
    ?assertMatch(#{<<"kind">> := <<"log">>, <<"level">> := <<"error">>, <<"severity">> := <<"major">>, <<"node">> := Name, <<"text">> := <<"the <b>desk</b> of Größe is on fire"/utf8>>}, Note),
    ?assert(abs(maps:get(<<"time_ms">>, Note) - erlang:system_time(millisecond)) < ?LATE_MS).

%% The five steps; then all of it goes.
a_family_is_deployed_over_http(Config) ->
    Watch = watch(Config),
    Dir = proplists:get_value(dir, Config),
    {200, _, OpenApi} = raw(#{method => "GET", path => "/openapi.json"}, Watch),
    Post = fun(Path, Expected, Body) ->
        {Status, _, Object} = ask("POST", Path, Body, Watch),
        ?assertEqual({Path, Expected}, {Path, Status}, Object),
        Object
    end,
    Sum = sent(Dir, Watch, OpenApi),
    Things = [
        {"provider", <<"here">>, {[{driver, <<"local">>}]}}, {"release", <<"one">>, {[{sha256, Sum}]}},
        {"domain", <<"here">>, {[{provider, <<"here">>}, {hosts, [{[{host, <<"127.0.0.1">>}, {cores, 100}]}]}, {dir, list_to_binary(filename:join(Dir, "hosts"))}]}},
        {"family", <<"web">>, {[{release, <<"one">>}, {domains, [<<"here">>]}, {flags, [<<"+S">>, <<"1:1">>]}, {needs, {[{cores, 1}]}}]}}
    ],
    [?assertEqual(ok, valid(Post("/api/v1/deploy/" ++ Kind, 201, {[{name, Name}, {settings, Settings}]}), [<<"/api/v1/deploy/{kind}">>, <<"post">>], OpenApi)) || {Kind, Name, Settings} <- Things],
    #{<<"error">> := <<"The domain x lacks provider, which is the name of a provider, as a text.">>} = Post("/api/v1/deploy/domain", 400, {[{name, <<"x">>}, {settings, {[]}}]}),
    #{<<"error">> := <<"The release two has no path, and no archive with its checksum was sent.">>} = Post("/api/v1/deploy/release", 400, {[{name, <<"two">>}, {settings, {[{sha256, binary:copy(<<"0">>, 64)}]}}]}),
    #{<<"error">> := <<"There is no family nobody.">>} = Post("/api/v1/deploy/family/nobody/run", 404, {[{count, 1}]}),
    _ = Post("/api/v1/deploy/family/web/run", 400, {[{count, -1}]}),
    Ended = fun() ->
        {200, _, All} = get("/api/v1/deploy", Watch),
        ?assertEqual(ok, valid(All, [<<"/api/v1/deploy">>, <<"get">>], OpenApi)),
        All
    end,
    Done = fun(#{<<"operation">> := #{<<"state">> := State}}) -> State =/= <<"running">> end,
    ?assertEqual(ok, valid(Post("/api/v1/deploy/family/web/run", 202, {[{count, 2}]}), [<<"/api/v1/deploy/family/{name}/run">>, <<"post">>], OpenApi)),
    #{<<"nodes">> := Nodes, <<"operation">> := #{<<"state">> := <<"done">>, <<"done">> := 2, <<"total">> := 2}} = await(Ended, Done),
    ?assertEqual([{<<"web1@127.0.0.1">>, <<"up">>}, {<<"web2@127.0.0.1">>, <<"up">>}], [{Node, State} || #{<<"node">> := Node, <<"state">> := State} <- Nodes]),
    _ = Post("/api/v1/deploy/family/web/plan", 202, {[{count, 1}]}),
    #{<<"operation">> := #{<<"steps">> := [#{<<"do">> := <<"stop">>, <<"node">> := <<"web2@127.0.0.1">>}]}} = await(Ended, Done),
    {409, _, _} = ask("DELETE", "/api/v1/deploy/release/one", Watch),
    _ = Post("/api/v1/deploy/family/web/terminate", 202, {[]}),
    #{<<"nodes">> := [], <<"operation">> := #{<<"state">> := <<"done">>}} = await(Ended, Done),
    [{204, _, none} = ask("DELETE", ["/api/v1/deploy/", Kind, $/, Name], Watch) || {Kind, Name, _} <- lists:reverse(Things)].

%% The checksum of an archive that was sent. One that is not what it should be is not kept, nor one that comes beside another.
sent(Dir, #{port := Port} = Watch, OpenApi) ->
    File = filename:join(Dir, "release.tar.gz"),
    ok = erl_tar:create(File, [{"ebin/" ++ filename:basename(Beam), Beam} || Beam <- [code:which(atoll_watch_agent)]], [compressed]),
    {ok, Archive} = file:read_file(File),
    Sum = string:lowercase(binary:encode_hex(crypto:hash(sha256, Archive))),
    Path = ["/api/v1/deploy/archive/", Sum],
    Put = fun(Request) -> raw(maps:merge(#{method => "PUT", path => Path, headers => [atoll_watch_web:bearer(Watch)]}, Request), Watch) end,
    {400, _, #{<<"error">> := Wrong}} = Put(#{body => <<Archive/binary, 0>>}),
    ?assertMatch({match, _}, re:run(Wrong, "^The release that was sent: the checksum of it is [0-9a-f]{64}, and not the one that is told\\.$")),
    {400, _, #{<<"error">> := <<"The body is to be an archive, as a .tar.gz.">>}} = Put(#{}),
    {401, _, _} = Put(#{headers => [], body => <<"x">>}),
    {413, _, _} = Put(#{headers => [atoll_watch_web:bearer(Watch), {"Content-Length", "1073741825"}]}),
    {ok, Slow} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?LATE_MS),
    ok = gen_tcp:send(Slow, ["PUT ", Path, " HTTP/1.1\r\n", [[Name, ": ", Value, "\r\n"] || {Name, Value} <- [{"Host", "127.0.0.1"}, {"Connection", "close"}, {"Expect", "100-continue"}, {"Content-Length", integer_to_list(byte_size(Archive))}, atoll_watch_web:bearer(Watch)]], "\r\n"]),
    {ok, <<"HTTP/1.1 100 ", _/binary>>} = gen_tcp:recv(Slow, 0, ?LATE_MS),
    {409, _, _} = Put(#{body => Archive}),
    ok = gen_tcp:close(Slow),
    %% Nothing is left of the one that was given up.
    {201, _, Kept} = await(fun() -> Put(#{body => Archive}) end, fun({Status, _, _}) -> Status =/= 409 end),
    ?assertEqual(ok, valid(Kept, [<<"/api/v1/deploy/archive/{sum}">>, <<"put">>], OpenApi)),
    ?assertEqual([Sum], [hd(binary:split(list_to_binary(filename:basename(Name)), <<".">>)) || Name <- filelib:wildcard(filename:join([Dir, "deployments", "releases", "{.,}*"]))]),
    Sum.

a_graphite_server_is_told(Config) ->
    {ok, Socket} = gen_tcp:accept(proplists:get_value(graphite, Config), ?LATE_MS),
    Wanted = [["^atoll\\.", binary:replace(name(Peer), <<".">>, <<"_">>, [global]), "\\.memory_total [0-9]+ [0-9]{10}\n$"] || Peer <- peers(Config)],
    ok = told_all(Socket, Wanted),
    #{<<"counts">> := #{<<"graphite_dropped">> := 0, <<"graphite_sent">> := Sent}} = element(3, get("/api/v1/cluster", watch(Config))),
    ?assert(Sent > 100),
    ok = gen_tcp:close(Socket).

told_all(_, []) -> ok;
told_all(Socket, Wanted) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?LATE_MS),
    told_all(Socket, [Is || Is <- Wanted, re:run(Line, Is, [{capture, none}]) =/= match]).

%% What becomes of it

a_node_is_killed_stopped_and_back(Config) ->
    [First | _] = peers(Config),
    #{port := Port} = Watch = watch(Config),
    Events = connected(Port),
    ok = gen_tcp:send(Events, ["GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n", atoll_watch_web:line(atoll_watch_web:bearer(Watch)), "\r\n"]),
    Peer = {_, Node} = atoll_watch_peers:watched(["-connect_all", "false"]),
    true = call(First, net_kernel, connect_node, [Node]),
    _ = until(<<"up">>, Node, Config),
    %% That is promised: within a period and six seconds.
    [begin
         OsPid = call(Peer, os, getpid, []),
         [] = os:cmd("kill -STOP " ++ OsPid),
         ?assert(until(<<"silent">>, Node, Config) =< ?PERIOD_MS + 6000 + lag()),
         [] = os:cmd("kill -CONT " ++ OsPid),
         ?assert(until(<<"up">>, Node, Config) =< 3000 + lag())
     end || atoll_tier:tier() =:= deep],
    ok = atoll_watch_peers:kill(Peer),
    ?assert(until(<<"down">>, Node, Config) =< ?PERIOD_MS + 6000 + lag()),
    #{<<"id">> := Id} = await(fun() -> alarm(<<"node_down">>, Watch) end, fun is_map/1),
    {200, _, _} = ask("POST", ["/api/v1/alarms/", integer_to_binary(Id), "/acknowledge"], {[{who, <<"ann">>}]}, Watch),
    {201, _, _} = ask("POST", ["/api/v1/alarms/", integer_to_binary(Id), "/comments"], {[{who, <<"bob">>}, {text, <<"a test">>}]}, Watch),
    Again = atoll_watch_peers:restarted(Peer, ["-connect_all", "false"]),
    ?assert(until(<<"up">>, Node, Config) =< 3000 + lag()),
    #{<<"state">> := <<"cleared">>} = await(fun() -> element(3, get(["/api/v1/alarms/", integer_to_binary(Id)], Watch)) end, fun(#{<<"state">> := State}) -> State =:= <<"cleared">> end),
    %% Who listens was told.
    Told = heard(Events, <<>>, <<"\"rule\":\"node_down\"">>),
    [?assertMatch({_, {match, _}}, {Event, re:run(Told, Event)}) || Event <- ["event: cluster\n", "event: nodes\n", "event: alarm\n", "event: notification\n"]],
    ok = gen_tcp:close(Events),
    ok = atoll_watch_peers:kill(Again),
    %% The same again is another alarm; what was said of the one before stays with that.
    Of = fun(State) -> {200, _, #{<<"items">> := Alarms}} = get(["/api/v1/alarms?state=", State, "&node=", uri_string:quote(name(Node))], Watch), Alarms end,
    [#{<<"id">> := Next, <<"rule">> := <<"node_down">>, <<"state">> := <<"new">>, <<"comments">> := []}] = await(fun() -> Of("standing") end, fun(Is) -> Is =/= [] end),
    ?assert(Next > Id),
    History = Of("cleared"),
    ?assertMatch([#{<<"state">> := <<"cleared">>, <<"acknowledged">> := #{<<"who">> := <<"ann">>}, <<"comments">> := [#{<<"who">> := <<"bob">>, <<"text">> := <<"a test">>}]}],
                 [Alarm || #{<<"id">> := Is} = Alarm <- History, Is =:= Id]),
    {204, _, none} = ask("DELETE", ["/api/v1/nodes/", uri_string:quote(name(Node))], Watch).

%% The machine may be busy with other tests.
lag() -> 8000.

%% Where it is silent the deep tier looks: it takes five seconds to be.
until(State, Node, Config) ->
    Begun = erlang:monotonic_time(millisecond),
    _ = await(fun() -> proplists:get_value(name(Node), states(Config)) end, fun(Is) -> Is =:= State end),
    erlang:monotonic_time(millisecond) - Begun.

heard(Socket, Seen, Text) ->
    case binary:match(Seen, Text) of
        nomatch -> {ok, More} = gen_tcp:recv(Socket, 0, ?LATE_MS), heard(Socket, <<Seen/binary, More/binary>>, Text);
        _ -> Seen
    end.

%% A window's points have the average of what lies between the least and the most; and a month has the least and the
%% most of the 15 minutes that there are: those before, or those of a look that came meanwhile.
the_five_windows_say_the_same(Config) ->
    [{_, A} | _] = peers(Config),
    Watch = watch(Config),
    Of = fun(Window) ->
        {200, _, #{<<"step_ms">> := Step, <<"series">> := Found}} = get(["/api/v1/series?window=", Window, "&metric=memory_total&node=", uri_string:quote(name(A))], Watch),
        {Step, [Point || #{<<"points">> := Points} <- Found, Point <- Points]}
    end,
    Least = fun(Points) -> lists:min([Min || [_, _, Min, _] <- Points]) end,
    Most = fun(Points) -> lists:max([Max || [_, _, _, Max] <- Points]) end,
    {5000, Before} = await(fun() -> Of("15min") end, fun({_, Points}) -> length(Points) >= 2 end),
    Wider = [Of(Window) || Window <- ["hour", "day", "week", "month"]],
    {5000, After} = Of("15min"),
    ?assertEqual([20000, 300000, 1800000, 7200000], [Step || {Step, _} <- Wider]),
    [begin
         ?assert(Min > 0 andalso Min =< Average andalso Average =< Max, {Step, Point}),
         ?assertEqual(0, Time rem Step)
     end || {Step, Points} <- [{5000, Before} | Wider], [Time, Average, Min, Max] = Point <- Points],
    [begin
         ?assert(Least(After) =< Least(Points) andalso Least(Points) =< Least(Before)),
         ?assert(Most(Before) =< Most(Points) andalso Most(Points) =< Most(After))
     end || {_, Points} <- Wider].

%% To two at once the same; and when both are gone so is all that was put into the nodes for them.
what_flows_is_streamed_as_long_as_somebody_looks(Config) ->
    #{port := Port} = Watch = proplists:get_value(watch, Config),
    [{_, A} = PeerA, {_, B} = PeerB] = proplists:get_value(peers, Config),
    _ = [atoll_flow_script:load(Peer) || Peer <- [PeerA, PeerB]],
    ok = call(PeerB, atoll_flow_script, echo, []),
    Probes = fun() -> [call(Peer, erlang, whereis, [atoll_flow_probe]) || Peer <- [PeerA, PeerB]] end,
    ?assertEqual([undefined, undefined], Probes()),
    Open = fun(Query) ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, line}, {recbuf, 1000000}], ?LATE_MS),
        ok = gen_tcp:send(Socket, ["GET /api/v1/traffic", Query, " HTTP/1.1\r\nHost: localhost\r\n", atoll_watch_web:line(atoll_watch_web:bearer(Watch)), "\r\n"]),
        Socket
    end,
    One = Open(["?trace=true&load=", atom_to_list(A)]),
    #{<<"v">> := 1, <<"n">> := Names} = Begin = frame(One, fun(Frame) -> is_map_key(<<"v">>, Frame) end),
    ?assertEqual(lists:sort([atom_to_binary(Node) || Node <- [A, B]]), lists:sort(Names)),
    %% Where its schedulers are is said with its first load, which may be in the first frame already.
    HasLoad = fun(Frame) -> is_map_key(<<"l">>, Frame) end,
    #{<<"l">> := [#{<<"q">> := [_ | _], <<"c">> := [_ | _]}]} = case HasLoad(Begin) of true -> Begin; false -> frame(One, HasLoad) end,
    Other = Open(""),
    _ = frame(Other, fun(Frame) -> is_map_key(<<"v">>, Frame) end),
    %% Both name the nodes in the order of their names.
    [From, To] = [length(lists:takewhile(fun(N) -> N =/= atom_to_binary(Node) end, lists:sort(Names))) || Node <- [A, B]],
    ok = call(PeerA, atoll_flow_script, ping, [B, 500]),
    ?assertEqual([500, 500], [edges(Socket, From, To, 500) || Socket <- [One, Other]]),
    {400, _, #{<<"error">> := _}} = get("/api/v1/traffic?trace=maybe", Watch),
    {404, _, #{<<"error">> := _}} = get("/api/v1/traffic?load=nobody@nowhere", Watch),
    ok = gen_tcp:close(One),
    ok = call(PeerA, atoll_flow_script, ping, [B, 10]),
    _ = frame(Other, fun(Frame) -> is_map_key(<<"e">>, Frame) end),
    ?assertMatch([_, _], [Pid || Pid <- Probes(), is_pid(Pid)]),
    ok = gen_tcp:close(Other),
    _ = await(Probes, fun(Is) -> Is =:= [undefined, undefined] end),
    ok = call(PeerB, atoll_flow_script, hush, []).

%% The first that is so.
frame(Socket, Test) ->
    case gen_tcp:recv(Socket, 0, ?LATE_MS) of
        {ok, <<"data: ", Data/binary>>} ->
            Frame = atoll_cli_os:decode(Data),
            case Test(Frame) of true -> Frame; false -> frame(Socket, Test) end;
        {ok, _} -> frame(Socket, Test)
    end.

%% So many in all.
edges(_, _, _, Left) when Left =< 0 -> 500 - Left;
edges(Socket, From, To, Left) ->
    #{<<"e">> := Edges} = frame(Socket, fun(Frame) -> is_map_key(<<"e">>, Frame) end),
    edges(Socket, From, To, Left - lists:sum([N || [F, T, N, _] <- Edges, F =:= From, T =:= To])).

a_program_has_metrics_of_its_own_whatever_they_are_called(Config) ->
    [First | _] = peers(Config),
    Watch = watch(Config),
    Peer = {_, Node} = atoll_watch_peers:watched(["-connect_all", "false"]),
    true = call(First, net_kernel, connect_node, [Node]),
    ok = call(Peer, code, add_paths, [[filename:dirname(code:which(atoll))]]),
    {ok, _} = call(Peer, application, ensure_all_started, [atoll]),
    Script = '<script>alert("3")</script>',
    {error, {bad_name, Script}} = call(Peer, atoll_metric, new, [Script, counter]),
    ok = call(Peer, atoll_metric, new, [orders, counter]),
    ok = call(Peer, atoll_metric, add, [orders, 42]),
    %% A process may be called so.
    Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
    true = call(Peer, erlang, register, [Script, Sleeper]),
    _ = call(Peer, erlang, send, [Sleeper, one]),
    Path = ["/api/v1/nodes/", uri_string:quote(name(Node)), "/metrics?metric=user_counter,mailbox"],
    Read = fun() -> case get(Path, Watch) of {200, _, #{<<"readings">> := Readings}} -> [{Metric, Label, Value} || #{<<"metric">> := Metric, <<"label">> := Label, <<"value">> := Value} <- Readings]; {404, _, _} -> [] end end,
    _ = await(Read, fun(Is) -> Is =:= [{<<"mailbox">>, <<"<script>alert(\"3\")</script>">>, 1}, {<<"user_counter">>, <<"orders">>, 42}] end),
    %% A look at which a busy node did not say them in time has them not.
    Text = fun() -> {200, _, Is} = raw(#{method => "GET", path => "/metrics", headers => [atoll_watch_web:bearer(Watch)]}, Watch), Is end,
    [_ = await(Text, fun(Is) -> binary:match(Is, Line) =/= nomatch end) || Line <- [<<"=\"<script>alert(\\\"3\\\")</script>\"} 1\n">>, <<"=\"orders\"} 42\n">>]],
    ok = atoll_watch_peers:kill(Peer),
    {204, _, none} = ask("DELETE", ["/api/v1/nodes/", uri_string:quote(name(Node))], Watch).

a_watch_that_is_killed_goes_on_where_it_was(Config) ->
    [{_, A} = Peer, {_, B}] = peers(Config),
    Links = fun() -> [lists:sort(call(One, erlang, nodes, [])) || One <- peers(Config)] end,
    ?assertEqual([[B], [A]], Links()),
    Dir = proplists:get_value(dir, Config),
    Data = filename:join(Dir, "killed"),
    Port = atoll_test_port:free(),
    Others = call(Peer, erlang, nodes, [hidden]),
    Start = fun() -> started(Dir, A, proplists:get_value(cookie, Config), Data, Port, ?PERIOD) end,
    First = Start(),
    Busy = busy(Peer),
    #{<<"id">> := Id} = await(fun() -> alarm(<<"mailbox">>, First) end, fun is_map/1),
    {201, _, _} = ask("POST", ["/api/v1/alarms/", integer_to_binary(Id), "/comments"], {[{who, <<"ann">>}, {text, <<"before">>}]}, First),
    {201, _, _} = ask("POST", "/api/v1/nodes", {[{node, <<"gone@127.0.0.1">>}]}, First),
    _ = await(fun() -> points(A, First) end, fun(Points) -> length(Points) >= 2 end),
    %% Another one is not let in.
    #{status := 3, stderr := Twice} = atoll_cli_os:run(Dir, ["watch", "--node", atom_to_list(A), "--cookie-file", proplists:get_value(cookie, Config), "--port", integer_to_list(atoll_test_port:free()), "--data", Data]),
    ?assertMatch({match, _}, re:run(Twice, "Another watch has its data in ")),
    %% A manager first, and then the watch.
    Managers = fun() -> {200, _, #{<<"items">> := Items}} = get("/api/v1/managers", First), Items end,
    [#{<<"os_pid">> := Manager, <<"state">> := <<"up">>}] = Managers(),
    [] = os:cmd("kill -9 " ++ integer_to_list(Manager)),
    [#{<<"os_pid">> := Replaced}] = await(Managers, fun([#{<<"lost">> := Lost, <<"state">> := Is}]) -> Lost =:= 1 andalso Is =:= <<"up">> end),
    {ok, Since} = atoll_cluster_os:start_time(Replaced),
    ?assertEqual([], [Note || #{<<"kind">> := <<"state">>} = Note <- notes(name(A), First)]),
    Killed = erlang:system_time(millisecond),
    [] = os:cmd("kill -9 " ++ atoll_watch_web:vm(First)),
    gone = await(fun() -> atoll_cluster_os:state({Replaced, Since}) end, fun(Is) -> Is =:= gone end),
    _ = atoll_cli_os:await_exit(maps:get(program, First), ?LATE_MS),
    %% The other watch still has its agent there.
    _ = await(fun() -> call(Peer, erlang, nodes, [hidden]) end, fun(Is) -> lists:sort(Is) =:= lists:sort(Others) end),
    Second = Start(),
    ?assertMatch({match, _}, re:run(maps:get(said, Second), "the token is in ")),
    ?assertEqual(nomatch, re:run(maps:get(said, Second), "#token=")),
    ?assertEqual(maps:get(token, First), maps:get(token, Second)),
    Back = erlang:system_time(millisecond),
    ?assertMatch(#{<<"id">> := Id, <<"comments">> := [#{<<"text">> := <<"before">>}]}, alarm(<<"mailbox">>, Second)),
    {200, _, #{<<"by_hand">> := true}} = await(fun() -> get("/api/v1/nodes/gone%40127.0.0.1", Second) end, fun({Status, _, _}) -> Status =:= 200 end),
    Now = await(fun() -> points(A, Second) end, fun(Points) -> lists:max([Time || [Time | _] <- Points]) + 5000 > Back end),
    Times = [Time || [Time | _] <- Now],
    %% Two points, and as long as it was away.
    Hole = lists:max([0 | [Next - Time || {Time, Next} <- lists:zip(lists:droplast(Times), tl(Times))]]),
    ?assert(Hole =< 2 * 5000 + (Back - Killed), {Hole, Back - Killed, Times}),
    true = call(Peer, erlang, exit, [Busy, kill]),
    ?assertEqual([[B], [A]], Links()),
    ok = atoll_cli_os:signal(maps:get(program, Second), "INT"),
    #{status := 0} = atoll_cli_os:await_exit(maps:get(program, Second), ?LATE_MS).

notes(Node, Watch) ->
    {200, _, #{<<"items">> := Notes}} = get(["/api/v1/notifications?node=", uri_string:quote(Node)], Watch),
    Notes.

points(Node, Watch) ->
    case get(["/api/v1/series?window=15min&metric=processes&node=", uri_string:quote(name(Node))], Watch) of
        {200, _, #{<<"series">> := [#{<<"points">> := Points}]}} -> Points;
        {_, _, _} -> []
    end.

%% Deep tier

it_speaks_tls(Config) ->
    [{_, A} | _] = peers(Config),
    Dir = proplists:get_value(dir, Config),
    Chain = #{root => [{digest, sha256}, {key, {rsa, 2048, 65537}}], intermediates => [], peer => [{digest, sha256}, {key, {rsa, 2048, 65537}}]},
    #{server_config := Server} = public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {KeyType, Key} = proplists:get_value(key, Server),
    Pem = filename:join(Dir, "cert.pem"),
    ok = file:write_file(Pem, public_key:pem_encode([{'Certificate', proplists:get_value(cert, Server), not_encrypted}, {KeyType, Key, not_encrypted}])),
    {ok, _} = application:ensure_all_started(ssl),
    #{port := Port, token := Token, program := Program} = started(Dir, A, proplists:get_value(cookie, Config), filename:join(Dir, "tls"), atoll_test_port:free(), ["--certfile", Pem | ?PERIOD]),
    {ok, Socket} = ssl:connect({127, 0, 0, 1}, Port, [{verify, verify_none}, {active, false}, binary], ?LATE_MS),
    ok = ssl:send(Socket, ["GET /api/v1/cluster HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ", Token, "\r\nConnection: close\r\n\r\n"]),
    {ok, <<"HTTP/1.1 200 OK\r\n", _/binary>>} = ssl:recv(Socket, 0, ?LATE_MS),
    ok = ssl:close(Socket),
    ok = atoll_cli_os:signal(Program, "TERM"),
    #{status := 0} = atoll_cli_os:await_exit(Program, ?LATE_MS).

%% What others have written to read it: from PyPI, in an environment that ATOLL_WATCH_PYTHON names.
others_read_what_it_says(Config) ->
    case os:getenv("ATOLL_WATCH_PYTHON") of
        false -> {skip, "ATOLL_WATCH_PYTHON names no Python with openapi-spec-validator and prometheus_client"};
        Python ->
            Watch = watch(Config),
            _ = await(fun() -> lists:usort([State || {_, State} <- states(Config)]) end, fun(Is) -> Is =:= [<<"up">>] end),
            {200, _, Text} = raw(#{method => "GET", path => "/metrics", headers => [atoll_watch_web:bearer(Watch)]}, Watch),
            Dir = proplists:get_value(dir, Config),
            ok = file:write_file(filename:join(Dir, "metrics.txt"), Text),
            Priv = filename:join([atoll_cli_os:root(), "apps", "atoll_watch", "priv", "openapi.json"]),
            Script = "import sys, json, openapi_spec_validator as v\nfrom prometheus_client.parser import text_string_to_metric_families as p\n"
                "v.validate(json.load(open(sys.argv[1])))\nf = list(p(open(sys.argv[2]).read()))\nassert len(f) > 30 and all(s.labels['node'] for m in f for s in m.samples)\nprint('fine')\n",
            ok = file:write_file(filename:join(Dir, "read.py"), Script),
            ?assertEqual("fine\n", os:cmd(lists:join($\s, [Python, filename:join(Dir, "read.py"), Priv, filename:join(Dir, "metrics.txt")])))
    end.
