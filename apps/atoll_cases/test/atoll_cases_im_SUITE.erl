%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll im' as a user has it.
-module(atoll_cases_im_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    traffic_under_kills_loses_nothing/1,
    a_messenger_that_is_held_is_shown_loaded_harmed_and_gone/1,
    every_mode_keeps_its_promise/1,
    wrong_usage_says_one_sentence_and_starts_nothing/1
]).

-define(LINE_MS, 60000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> cases(atoll_tier:tier()).

cases(fast) -> [traffic_under_kills_loses_nothing, a_messenger_that_is_held_is_shown_loaded_harmed_and_gone, wrong_usage_says_one_sentence_and_starts_nothing];
cases(deep) -> cases(fast) ++ [every_mode_keeps_its_promise].

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

traffic_under_kills_loses_nothing(Config) ->
    Csv = filename:join(?config(dir, Config), "csv"),
    Result = talk(Config, ["--routers", "1", "--servers", "2", "--client-nodes", "1", "--clients", "40", "--seconds", "1", "--rhesus", "150", "--csv", Csv]),
    #{<<"kills">> := Kills, <<"delivered">> := Delivered, <<"logins">> := 40, <<"violations">> := Violations} = Result,
    ?assertEqual({true, #{}}, {maps:get(<<"kept">>, Result), Violations}),
    ?assert(Kills > 0),
    #{<<"left">> := Left, <<"both_copies_lost">> := []} = Result,
    ?assertMatch(#{<<"rows">> := 0, <<"clients">> := 0, <<"sessions">> := 0, <<"names">> := 0}, Left),
    ?assert(Delivered > 0),
    {ok, Files} = file:list_dir(Csv),
    ?assertMatch([_], [File || File <- Files, string:find(File, "_Throughput_1_2_40_Node_1") =/= nomatch]),
    ?assertEqual(ok, atoll_cli_os:await_none_left(?config(dir, Config))).

every_mode_keeps_its_promise(Config) ->
    [
        ?assertMatch(
            {Mode, #{<<"kept">> := true, <<"is_drained">> := true}},
            {Mode, talk(Config, Mode ++ ["--clients", "200", "--seconds", "60", "--rhesus", "1000", "--baboon", "2000", "--kill-node-every", "20"])}
        )
     || Mode <- [["--mode", "rd"], ["--mode", "rsd"], ["--mode", "rsd", "--reach", "relays"]]
    ].

talk(Config, Args) ->
    #{status := Status, stdout := Json, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["im", "traffic", "--load", "closed", "--json" | Args]),
    ?assertEqual({0, Said, Json}, {Status, Said, Json}),
    atoll_cli_os:decode(Json).

a_messenger_that_is_held_is_shown_loaded_harmed_and_gone(Config) ->
    Dir = ?config(dir, Config),
    Up = atoll_cli_os:start(Dir, ["im", "up", "--routers", "1", "--servers", "3", "-c", "reef", "--door", "0"]),
    {match, [Door]} = re:run(atoll_cli_os:await_line(Up, stdout, <<"stop: ">>), "--connect (.*)", [{capture, all_but_first, list}]),
    #{status := 0, stdout := Json} = status(Dir, ["--json"]),
    %% R(R-1)/2 + R s(s-1)/2, with a router and its three servers; each of these has two databases.
    #{<<"mode">> := <<"rsd">>, <<"connections">> := 6, <<"connections_formula">> := 6, <<"nodes">> := Nodes} = atoll_cli_os:decode(Json),
    ?assertEqual({6, 6}, {lists:sum([N || #{<<"main">> := N} <- Nodes, is_integer(N)]), lists:sum([N || #{<<"replica">> := N} <- Nodes, is_integer(N)])}),
    #{<<"delivered">> := Delivered, <<"kept">> := true} = talk(Config, ["-c", "reef", "--client-nodes", "1", "--clients", "20", "--seconds", "1"]),
    ?assert(Delivered > 0),
    lines_of_a_pipe_are_said_or_the_command_fails(Dir, Door),
    [Pid] = [Pid || {Pid, "reef_server_2@127.0.0.1"} <- atoll_cli_os:beams(Dir)],
    ok = atoll_cli_os:signal(Pid, "KILL"),
    %% Its connections may be missed before it is.
    ok = atoll_cli_os:await(
        fun() ->
            #{status := Status, stderr := Said} = status(Dir, []),
            {Status, binary:match(Said, <<"node reef_server_2@127.0.0.1 does not answer">>) =/= nomatch} =:= {1, true}
        end,
        ?LINE_MS
    ),
    #{status := 0} = atoll_cli_line:run(Dir, ["down", "-c", "reef"]),
    _ = atoll_cli_os:await_exit(Up, ?LINE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

lines_of_a_pipe_are_said_or_the_command_fails(Dir, Door) ->
    Bob = atoll_cli_os:start(Dir, {sh, "tail -f /dev/null | bin/atoll im chat --as bob --connect " ++ Door}),
    _ = atoll_cli_os:await_line(Bob, stderr, <<"Logged in as bob.">>),
    Said = fun(As, Peer) -> atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, io_lib:format("echo hello | bin/atoll im chat ~s --as ~s --connect ~s", [Peer, As, Door])}), ?LINE_MS) end,
    ?assertMatch(#{status := 0}, Said("ann", "bob")),
    _ = atoll_cli_os:await_line(Bob, stdout, <<"ann: hello\n">>),
    ?assertMatch(#{status := 1, stderr := <<_/binary>>}, Said("carl", "nobody")),
    ok = atoll_cli_os:signal_group(Bob, "TERM"),
    _ = atoll_cli_os:await_exit(Bob, ?LINE_MS).

status(Dir, More) -> atoll_cli_line:run(Dir, ["im", "status", "-c", "reef" | More]).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    [
        begin
            #{status := Status, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["im" | Args]),
            ?assertEqual({Args, 2}, {Args, Status}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, Sentence)})
        end
     || {Args, Sentence} <- [
            {["up", "--routers", "3", "--servers", "2"], <<"--servers must be at least --routers, which is 3">>},
            {["up", "--mode", "rd", "--reach", "relays"], <<"--reach is for --mode rsd">>},
            {["traffic", "--load", "open"], <<"--load open needs --rate">>},
            {["traffic", "--clients", "4", "--conversations", "7"], <<"--conversations must be at most 6, the pairs of --clients">>},
            {["traffic", "--rate", "5"], <<"--rate is for --load open">>},
            {["traffic", "-c", "reef", "--rhesus", "5"], <<"--rhesus is for a messenger that is started here">>}
        ]
    ].
