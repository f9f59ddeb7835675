%% SPDX-License-Identifier: Apache-2.0
%% Each driver over its real store, and the command.
-module(atoll_load_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    tables_are_loaded_and_gone/1,
    a_ring_is_loaded_from_outside_and_a_node_is_killed_meanwhile/1,
    redis_is_loaded_and_gone/1,
    mariadb_is_loaded_and_gone/1,
    a_service_over_http_is_loaded/1,
    workers_on_other_nodes_are_counted_as_one_load/1,
    the_command_writes_its_files_and_names_what_is_wrong/1
]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

init_per_testcase(Case, Config) ->
    Missing = case Case of
        redis_is_loaded_and_gone -> case matchstream_redis:find() of ok -> []; {error, Sentence} -> [Sentence] end;
        mariadb_is_loaded_and_gone -> [lists:flatten(["Not installed: ", Package]) || Package <- atoll_bench_mariadb:missing()];
        _ -> []
    end,
    case Missing of
        [] -> [{dir, atoll_cli_os:new_dir()} | Config];
        [Why | _] -> {skip, unicode:characters_to_list(Why)}
    end.

end_per_testcase(_, Config) -> atoll_cli_os:remove_dir(?config(dir, Config)).

run(Config, Terms) ->
    Usual = #{duration => 0.01, report_interval => 0.2, key_generator => {int_to_bin, {uniform_int, 50}}},
    {ok, Checked} = atoll_load_config:check([{1, Term} || Term <- maps:to_list(maps:merge(Usual, maps:from_list(Terms)))]),
    Out = filename:join(?config(dir, Config), lists:concat(["out", erlang:unique_integer([positive])])),
    {ok, #{looks := Looks, ended := whole} = Result} = atoll_load:run(Checked, #{out => Out}),
    {ok, #{status := complete, header := #{<<"benchmark">> := <<"load_run">>}, rounds := [_ | _]}} = atoll_bench_file:read(filename:join(Out, "run.jsonl")),
    #{labels := Labels} = lists:last(Looks),
    {maps:from_list(Labels), Result}.

all_well(Labels) ->
    [?assertMatch({Label, #{errors := [], ok := N}} when N > 0, {Label, Of}) || {Label, Of} <- maps:to_list(Labels)],
    ok.

tables_are_loaded_and_gone(Config) ->
    [ok = all_well(element(1, run(Config, [{driver, Driver}]))) || Driver <- [null, ets]],
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => all}),
    {Mnesia, _} = run(Config, [{driver, mnesia}, {mnesia_access, async_dirty}]),
    ok = application:start(mnesia),
    ok = application:stop(mnesia),
    ok = logger:remove_handler(?MODULE),
    ok = all_well(Mnesia),
    %% Its end is told where somebody else stops it, and not in the middle of what the load prints.
    ?assertMatch([_], [Report || #{label := {application_controller, exit}, report := Report} <- logged()]),
    ?assertEqual(no, mnesia:system_info(is_running)),
    ?assertEqual([], [Table || Table <- ets:all(), lists:member(ets:info(Table, name), [atoll_load_ets, atoll_load_tally])]).

%% For logger: the test hears of what is logged.
log(#{msg := {report, Report}}, #{config := Test}) -> Test ! {logged, Report};
log(_, _) -> ok.

logged() -> receive {logged, Report} -> [Report | logged()] after 0 -> [] end.

a_ring_is_loaded_from_outside_and_a_node_is_killed_meanwhile(Config) ->
    {#{get := #{ok := Gets, drawn := Read, errors := Misread}, update := #{ok := Updates, drawn := Written, errors := Errors}}, #{servers := Servers, looks := Looks}} = run(Config, [
        {driver, ring}, {ring_settings, [{partitions, 16}]}, {ring_kill, 1}, {duration, 0.06}, {offered_load, 100}, {concurrent, 20}, {operations, [{get, 3}, {update, 1}]}
    ]),
    ct:pal("~b gets, ~b updates, errors ~p", [Gets, Updates, {Misread, Errors}]),
    ?assert(Gets > 0 andalso Updates > 0),
    %% Of an open loop each operation is done, has an error, or is shed.
    #{shed := Shed} = lists:last(Looks),
    ?assertEqual(360, Read + Written + Shed),
    ?assertMatch([_ | _], [Name || #{name := ring_master = Name} <- Servers]),
    %% What was under way at the node that was killed, was ordered by it, or had a copy there without which too few nodes have one, and nothing later: not by one that is back and has no ring yet.
    ?assertEqual([], [Reason || Of <- [Misread, Errors], {Reason, _} <- Of, not lists:member(Reason, [noconnection, lost, too_few_nodes])]).

redis_is_loaded_and_gone(Config) ->
    Before = servers("redis-server"),
    {Labels, _} = run(Config, [{driver, redis}]),
    ok = all_well(Labels),
    ?assertEqual(Before, servers("redis-server")).

mariadb_is_loaded_and_gone(Config) ->
    Before = servers("mariadbd"),
    {Labels, _} = run(Config, [{driver, mariadb}, {mariadb_flush, 2}]),
    ok = all_well(Labels),
    ?assertEqual(Before, servers("mariadbd")).

%% Those that this VM has started, whatever runs beside it: what it starts has its own parent.
servers(Name) -> lists:sort(string:lexemes(os:cmd("pgrep -x " ++ Name ++ " -P \"$(pgrep -d, -P " ++ os:getpid() ++ ")\""), "\n")).

a_service_over_http_is_loaded(Config) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {packet, http_bin}, {ip, {127, 0, 0, 1}}, {backlog, 64}]),
    {ok, Port} = inet:port(Listen),
    Server = spawn_link(fun() -> accepting(Listen) end),
    {Labels, _} = run(Config, [{driver, http}, {http_url, lists:concat(["http://127.0.0.1:", Port, "/keys/"])}, {operations, [{get, 2}, {put, 1}, {delete, 1}]}]),
    true = unlink(Server),
    true = exit(Server, kill),
    #{get := #{errors := [], ok := Gets}, put := #{errors := [], ok := Puts}, delete := #{ok := 0, errors := [{<<"500">>, Deletes}]}} = Labels,
    ?assert(Gets > 10 andalso Puts > 10 andalso Deletes > 10).

%% GET finds nothing, PUT is taken, and DELETE is more than it can do; the connection is closed after each tenth answer.
accepting(Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Pid = spawn_link(fun() -> receive go -> serving(Socket, 1) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accepting(Listen).

serving(Socket, N) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, {http_request, Method, {abs_path, <<"/keys/", _/binary>>}, _}} ->
            Length = headers(Socket, 0),
            ok = inet:setopts(Socket, [{packet, raw}]),
            {ok, _} = case Length of 0 -> {ok, <<>>}; _ -> gen_tcp:recv(Socket, Length) end,
            ok = inet:setopts(Socket, [{packet, http_bin}]),
            Status = case Method of 'GET' -> "404 Not Found"; 'PUT' -> "201 Created"; 'DELETE' -> "500 No" end,
            Last = N rem 10 =:= 0,
            ok = gen_tcp:send(Socket, ["HTTP/1.1 ", Status, "\r\ncontent-length: 2\r\n", ["connection: close\r\n" || Last], "\r\nok"]),
            case Last of true -> gen_tcp:close(Socket); false -> serving(Socket, N + 1) end;
        {error, closed} -> ok
    end.

headers(Socket, Length) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, {http_header, _, 'Content-Length', _, Text}} -> headers(Socket, binary_to_integer(Text));
        {ok, {http_header, _, _, _, _}} -> headers(Socket, Length);
        {ok, http_eoh} -> Length
    end.

workers_on_other_nodes_are_counted_as_one_load(Config) ->
    Of = fun(Terms) -> run(Config, [{driver, null}, {distribute_work, true}, {remote_nodes, [{localhost, one}, {localhost, two}]}, {concurrent, 5} | Terms]) end,
    {#{get := #{ok := Ok, errors := []}}, #{looks := Looks}} = Of([{operations, [{get, 1}]}, {offered_load, 301}, {key_generator, {uniform_int, 9}}]),
    %% 0.6 seconds of an open loop: 151 operations a second on one node and 150 on the other.
    #{offered := Offered, shed := Shed} = lists:last(Looks),
    ?assertEqual({91 + 90, 91 + 90}, {Ok + Shed, Offered}),
    ?assert(length(Looks) >= 3),
    %% What is in this VM's memory they cannot reach.
    {ok, Ets} = atoll_load_config:check([{1, Term} || Term <- [{driver, ets}, {distribute_work, true}, {remote_nodes, [{localhost, one}]}]]),
    {error, Sentence} = atoll_load:run(Ets, #{out => filename:join(?config(dir, Config), "none")}),
    ?assertEqual("The store of this driver is in the command's own VM, where no remote_nodes reach it.", Sentence).

the_command_writes_its_files_and_names_what_is_wrong(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "ets.config"),
    ok = file:write_file(File, "{driver, ets}. {duration, 0.01}. {report_interval, 0.2}. {operations, [{get, 1}]}."),
    Out = filename:join(Dir, "out"),
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, ["load", "run", File, "--out", Out, "--json"]),
    #{<<"operations">> := #{<<"get">> := #{<<"ok">> := N, <<"errors">> := 0}}, <<"shed">> := 0, <<"offered">> := N, <<"errors">> := []} = atoll_cli_os:decode(Json),
    ?assert(N > 100),
    {ok, Files} = file:list_dir(Out),
    ?assertEqual(["errors.csv", "get_latencies.csv", "run.jsonl", "summary.csv"], lists:sort(Files)),
    %% What is there is not written over.
    #{status := 3, stderr := Exists} = atoll_cli_line:run(Dir, ["load", "run", File, "--out", Out]),
    ?assertMatch({_, _}, binary:match(Exists, <<"file already exists">>)),
    %% Where there is no service all fails, and the reason is told; one worker takes none of those that come at once.
    ok = file:write_file(File, "{driver, http}. {http_url, \"http://127.0.0.1:1/\"}. {duration, 0.005}. {offered_load, 500}."),
    #{status := 1, stdout := Table, stderr := Failed} = atoll_cli_line:run(Dir, ["load", "run", File, "--out", filename:join(Dir, "none")]),
    ?assertMatch({_, _}, binary:match(Table, <<"econnrefused, ">>)),
    ?assertMatch({_, _}, binary:match(Failed, <<"no operation went well">>)),
    ok = file:write_file(File, "{driver, ets}.\n{duration, long}."),
    #{status := 2, stderr := Said} = atoll_cli_line:run(Dir, ["load", "run", File]),
    ?assertMatch({_, _}, binary:match(Said, <<"ets.config: line 2: duration must be a number of minutes above 0, at most a day, not long">>)).
