%% SPDX-License-Identifier: Apache-2.0
%% The procedure on a real service, the shop of priv/example: its limit is found, what makes it is named, a change
%% is compared, and nothing is left of it, however it ends.
-module(atoll_scale_SUITE).
-include_lib("stdlib/include/assert.hrl").

-import(atoll_scale_shop, [dir/1, plan/2, found/2]).

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([a_backlog_is_found_and_named/1, nothing_is_left_of_one_that_is_killed/1, a_service_that_cannot_start_is_said/1]).
-export([a_command_is_a_load/1, a_kernel_setting_is_given_back/1, a_change_by_hand_is_asked_for_and_taken_back/1]).
-export([a_change_that_is_asked_for_is_compared/1, ab_makes_a_load/1, users_of_tsung_make_a_load/1, garbage_collection_is_counted_and_no_longer/1]).
-export([collect/1]).

-define(GONE_MS, 10000).
-define(HELD_MS, 5000).
-define(COUNTS_MS, 10000).

suite() -> [{timetrap, {minutes, 20}}].

all() ->
    [a_backlog_is_found_and_named, nothing_is_left_of_one_that_is_killed, a_service_that_cannot_start_is_said, a_command_is_a_load,
     a_kernel_setting_is_given_back, a_change_by_hand_is_asked_for_and_taken_back] ++
        [Case || atoll_tier:tier() =:= deep, Case <- [
            a_change_that_is_asked_for_is_compared, ab_makes_a_load, users_of_tsung_make_a_load, garbage_collection_is_counted_and_no_longer
        ]].

init_per_testcase(ab_makes_a_load, Config) ->
    case os:find_executable("ab") of
        false -> {skip, "ab is not installed (apache2-utils of Debian)"};
        _ -> atoll_scale_shop:begin_case(Config)
    end;
init_per_testcase(users_of_tsung_make_a_load, Config) ->
    case atoll_tsung:version() of
        {ok, _} -> atoll_scale_shop:begin_case(Config);
        {error, _} -> {skip, "Tsung is not installed (tsung of Debian)"}
    end;
init_per_testcase(_, Config) -> atoll_scale_shop:begin_case(Config).

end_per_testcase(_, Config) -> atoll_scale_shop:end_case(Config).

a_backlog_is_found_and_named(Config) ->
    {File, Port} = plan([{from, 8}, {to, 512}, {precision, 1}], Config),
    #{<<"limit">> := Limit, <<"at_least">> := false, <<"findings">> := [First | _]} =
        found([File, "--searches", "1", "--set", "files=16384", "--set", "servers=16"], Config),
    ?assert(Limit < 512),
    Subject = integer_to_binary(Port),
    ?assertMatch(#{<<"cause">> := <<"backlog">>, <<"subject">> := Subject}, First),
    %% A look may have met it full, or nearly so.
    ?assertMatch({match, _}, re:run(map_get(<<"says">>, First), "(has room for|of) 5 connections")),
    {ok, Entries, 0} = atoll_scale_journal:read(File ++ ".journal"),
    ?assertMatch([<<"begun">>, <<"run">> | _], [What || #{<<"what">> := What} <- Entries]),
    ?assertMatch([_ | _], [Run || #{<<"what">> := <<"run">>, <<"passed">> := false, <<"node">> := #{<<"looks">> := Looks}} = Run <- Entries, Looks > 1]),
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["scale", "report", File ++ ".journal"]),
    ?assertMatch({match, _}, re:run(Table, "^ +1  limit with backlog 5, files 16384, servers 16", [multiline])),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

nothing_is_left_of_one_that_is_killed(Config) ->
    {File, _} = plan([], Config),
    Program = atoll_cli_os:start(dir(Config), ["scale", "find", File]),
    _ = atoll_cli_os:await_line(Program, stderr, <<"passed">>),
    ?assertMatch([_, _ | _], [Vm || {Pid, _} = Vm <- atoll_cli_os:left(dir(Config)), atoll_cli_os:is_vm(Pid)]),
    ok = atoll_cli_os:signal(Program, "KILL"),
    _ = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))),
    {ok, Entries, _} = atoll_scale_journal:read(File ++ ".journal"),
    ?assertMatch([#{<<"what">> := <<"begun">>}, #{<<"what">> := <<"run">>, <<"passed">> := true} | _], Entries).

a_service_that_cannot_start_is_said(Config) ->
    {File, _} = plan([{start, "echo no shop today; exit 4 # {files} {backlog} {servers}"}], Config),
    #{status := 3, stderr := Said} = atoll_cli_line:run(dir(Config), ["scale", "find", File]),
    ?assertMatch({match, _}, re:run(Said, "atoll scale find: the service has ended: no shop today \\(status 4\\)\n$")).

%% Of a service that runs already. It passes up to 20. What is found of the whole
%% machine is the work of the suites beside this one.
a_command_is_a_load(Config) ->
    File = filename:join(dir(Config), "x.plan"),
    ok = file:write_file(filename:join(dir(Config), "pid"), os:getpid()),
    Load = "echo requests 100; if [ {level} -gt 20 ]; then echo failures 7; else echo failures 0; fi",
    ok = file:write_file(File, io_lib:format("{name, \"x\"}.~n{pid_file, \"pid\"}.~n{from, 16}.~n{load, {command, ~tp}}.~n", [Load])),
    ?assertMatch(
        #{<<"limit">> := 20, <<"limits">> := [20], <<"findings">> := [], <<"runs">> := [#{<<"level">> := 16} | _]},
        maps:update_with(<<"findings">>, fun(Found) -> [Is || Is <- Found, not of_the_machine(Is)] end,
            found([File, "--searches", "1"], Config))
    ),
    Silent = io_lib:format("{name, \"x\"}.~n{pid_file, \"pid\"}.~n{load, {command, \"echo {level}\"}}.~n", []),
    ok = file:write_file(File, Silent),
    #{status := 3, stderr := Said} = atoll_cli_line:run(dir(Config), ["scale", "find", File]),
    ?assertMatch({match, _}, re:run(Said, "must print its requests and its failures.*; it said: 4\n$")).

of_the_machine(#{<<"cause">> := <<"backlog">>, <<"subject">> := Subject}) -> Subject =:= <<>>;
of_the_machine(#{<<"cause">> := Cause}) -> lists:member(Cause, [<<"processors">>, <<"load">>]).

%% Of the network namespace; a machine that forbids it says so. What a program has not given back is given back here:
%% a planted fault is such a program.
a_kernel_setting_is_given_back(_) ->
    Setting = "/proc/sys/net/ipv4/tcp_fin_timeout",
    {ok, Before} = file:read_file(Setting),
    try given_back("net.ipv4.tcp_fin_timeout", Setting, Before)
    after
        _ = [file:write_file(Setting, Before) || file:read_file(Setting) =/= {ok, Before}]
    end,
    ?assertMatch({error, _}, atoll_scale_kernel:hold("net.ipv4.no_such_setting", 1)).

given_back(Name, Setting, Before) ->
    Is = binary_to_integer(string:trim(Before)),
    ?assertEqual({ok, unchanged}, atoll_scale_kernel:hold(Name, Is)),
    case atoll_scale_kernel:hold(Name, Is + 1) of
        {ok, Held} ->
            ?assertEqual({ok, line(Is + 1)}, file:read_file(Setting)),
            %% Each would give back what the other has set.
            ?assertEqual(
                {error, "this machine does not let the kernel's " ++ Name ++ " be set: another program holds it"},
                case atoll_scale_kernel:hold(Name, Is + 2) of {error, Why} -> {error, lists:flatten(Why)}; Other -> Other end
            ),
            ok = atoll_scale_kernel:release(Held),
            ?assertEqual({ok, Before}, file:read_file(Setting)),
            %% The owner is killed.
            {Owner, Ref} = spawn_monitor(fun() -> {ok, _} = atoll_scale_kernel:hold(Name, Is + 3), receive after infinity -> ok end end),
            ok = atoll_cli_os:await(fun() -> file:read_file(Setting) =:= {ok, line(Is + 3)} end, ?HELD_MS),
            true = exit(Owner, kill),
            receive {'DOWN', Ref, process, Owner, _} -> ok end,
            ?assertEqual(ok, atoll_cli_os:await(fun() -> file:read_file(Setting) =:= {ok, Before} end, ?HELD_MS));
        {error, Sentence} ->
            ?assertMatch({match, _}, re:run(Sentence, "^this machine does not let the kernel's " ++ Name ++ " be set: .*[a-z]")),
            ct:comment("~ts", [Sentence])
    end.

line(Value) -> <<(integer_to_binary(Value))/binary, "\n">>.

%% By bin/atoll, which must let its standard input be read.
a_change_by_hand_is_asked_for_and_taken_back(Config) ->
    File = filename:join(dir(Config), "x.plan"),
    ok = file:write_file(filename:join(dir(Config), "pid"), os:getpid()),
    ok = file:write_file(File,
        "{name, \"x\"}.\n{pid_file, \"pid\"}.\n{from, 1}.\n{to, 1}.\n{load, {command, \"echo requests 1; echo failures 0 # {level}\"}}.\n"
        "{switches, [{cache, #{values => [small, large], in => ask}}, {disk, #{values => [slow, fast], in => ask}}]}.\n"),
    Line = ["printf '\\n\\n\\n' | bin/atoll scale compare ", File, " cache=large disk=fast --rounds 1"],
    #{status := 3, stderr := Said} = atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, lists:flatten(Line)}), 60000),
    {match, Asked} = re:run(Said, "Now set (.*?), and", [global, {capture, [1], binary}]),
    ?assertEqual([[<<"cache to large">>], [<<"cache to small">>], [<<"disk to fast">>], [<<"disk to slow">>]], Asked),
    %% The last line was missing.
    ?assertMatch({match, _}, re:run(Said, "nobody is there to set disk: the standard input has ended\n$")).

%% Nothing of it is kept.
a_change_that_is_asked_for_is_compared(Config) ->
    {File, _} = plan([{seconds, 1}, {from, 8}, {to, 256}, {precision, 1}], Config),
    #{status := 0, stdout := Json, stderr := Said} = atoll_cli_line:run(dir(Config),
        ["scale", "compare", File, "files=16384", "backlog=1024", "--set", "servers=16", "--rounds", "2", "--json"], 600000),
    ct:log("~ts", [Said]),
    #{<<"changes">> := [Files, Backlog]} = atoll_cli_os:decode(Json),
    ?assertMatch(#{<<"switch">> := <<"files">>, <<"from">> := <<"64">>, <<"to">> := <<"16384">>, <<"verdict">> := <<"unclear">>, <<"before">> := [_, _], <<"after">> := [_, _]}, Files),
    ?assertMatch(#{<<"switch">> := <<"backlog">>, <<"from">> := <<"5">>}, Backlog),
    {ok, Entries, 0} = atoll_scale_journal:read(File ++ ".journal"),
    ?assertEqual([false, false], [Kept || #{<<"what">> := <<"change">>, <<"kept">> := Kept} <- Entries]),
    ?assertEqual([], atoll_cli_page:unexplained(Json, atoll_cli_page:read("docs/scaling.md"))).

ab_makes_a_load(Config) ->
    {File, Port} = plan([{to, 128}], Config),
    with_load({command, lists:concat(["ab -q -l -r -s 5 -t {seconds} -n 1000000 -c {level} http://127.0.0.1:", Port, "/stock"])}, File),
    #{<<"limit">> := Limit} = found([File, "--searches", "1", "--set", "files=16384", "--set", "backlog=1024", "--set", "servers=16"], Config),
    ?assert(Limit >= 16),
    {ok, Entries, 0} = atoll_scale_journal:read(File ++ ".journal"),
    ?assertMatch([#{<<"requests">> := N, <<"failures">> := 0, <<"p99_ms">> := Ms} | _] when N > 10 andalso Ms > 1, [Load || #{<<"what">> := <<"run">>, <<"load">> := Load} <- Entries]).

%% The same file with another load.
with_load(Load, File) ->
    {ok, Terms} = file:consult(File),
    ok = file:write_file(File, [io_lib:format("~0tp.~n", [Term]) || Term <- lists:keystore(load, 1, Terms, {load, Load})]).

users_of_tsung_make_a_load(Config) ->
    {File, Port} = plan([{from, 16}, {to, 32}, {precision, 1}, {seconds, 2}, {level, "users a second"}], Config),
    {ok, Text} = file:read_file(filename:join([code:priv_dir(atoll_scale), "example", "shop.xml"])),
    ok = file:write_file(filename:join(dir(Config), "shop.xml"), string:replace(Text, "8081", integer_to_list(Port))),
    with_load({tsung, "shop.xml"}, File),
    #{<<"limit">> := 32, <<"at_least">> := true} = found([File, "--searches", "1", "--set", "files=16384", "--set", "backlog=1024", "--set", "servers=16"], Config),
    {ok, Entries, 0} = atoll_scale_journal:read(File ++ ".journal"),
    Loads = [Load || #{<<"what">> := <<"run">>, <<"load">> := Load} <- Entries],
    ?assertMatch([#{<<"requests">> := N, <<"failures">> := 0, <<"p99_ms">> := Ms} | _] when N > 5 andalso Ms >= 2, Loads),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% A node that does little else.
garbage_collection_is_counted_and_no_longer(_) ->
    Alive = is_alive(),
    atoll_cluster:with_cluster(#{nodes => 1}, fun(Cluster) ->
        [Node] = atoll_cluster:nodes(Cluster),
        ok = atoll_scale_node:join(#{node => Node, dir => "/"}),
        Off = atoll_cluster:call(Cluster, Node, erlang, system_flag, [microstate_accounting, false]),
        Asking = atoll_scale_node:start(Node),
        %% What is collected before it counts is not in it.
        Counters = fun() -> atoll_cluster:call(Cluster, Node, erlang, statistics, [microstate_accounting]) end,
        Before = Counters(),
        ok = atoll_cli_os:await(fun() -> Counters() =/= Before end, ?COUNTS_MS),
        _ = [atoll_cluster:call(Cluster, Node, ?MODULE, collect, [200]) || _ <- lists:seq(1, 3)],
        ?assertMatch(#{collecting := Share, locks := none} when Share > 0.3, atoll_scale_node:stop(Asking)),
        ?assertEqual({Off, false}, {false, atoll_cluster:call(Cluster, Node, erlang, system_flag, [microstate_accounting, false])})
    end),
    _ = [ok = net_kernel:stop() || not Alive].

%% On the node.
collect(Times) ->
    Kept = lists:seq(1, 200000),
    _ = [erlang:garbage_collect() || _ <- lists:seq(1, Times)],
    length(Kept).
