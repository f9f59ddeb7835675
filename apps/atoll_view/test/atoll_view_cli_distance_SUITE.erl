%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll distance' on a held cluster and on files.
-module(atoll_view_cli_distance_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([a_cluster_is_measured_clustered_drawn_and_declared/1, a_network_file_is_checked_and_drawn/1,
         a_cluster_that_does_not_run_is_told/1, nothing_is_written_where_somebody_is_left_out/1]).

-define(GONE_MS, 5000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_cluster_is_measured_clustered_drawn_and_declared, a_network_file_is_checked_and_drawn,
     a_cluster_that_does_not_run_is_told, nothing_is_written_where_somebody_is_left_out].

%% The first command may have to build what is tested.
init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
    ok = atoll_cli_os:remove_dir(Dir),
    Config.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(dir(Config)).

dir(Config) -> proplists:get_value(dir, Config).

run(Config, Args) -> atoll_cli_line:run(dir(Config), ["distance" | Args]).

a_cluster_is_measured_clustered_drawn_and_declared(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "4", "-c", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    [File, Svg, Dot] = [filename:join(dir(Config), Name) || Name <- ["reef.network", "reef.svg", "reef.dot"]],
    Effort = ["-c", "reef", "--batches", "3", "--messages", "10"],
    #{status := 0, stdout := Text} = run(Config, ["measure", "--write", File, "--svg", Svg, "--dot", Dot | Effort]),
    Nodes = ['reef1@127.0.0.1', 'reef2@127.0.0.1', 'reef3@127.0.0.1', 'reef4@127.0.0.1'],
    [?assertNotEqual(nomatch, binary:match(Text, atom_to_binary(Node))) || Node <- Nodes],
    {ok, Network} = atoll_network_file:read(File),
    ?assertEqual(Nodes, atoll_network:nodes(Network)),
    {ok, <<"<svg", _/binary>>} = file:read_file(Svg),
    {ok, <<"graph network {", _/binary>>} = file:read_file(Dot),
    #{status := 0, stdout := Json, stderr := <<"While they measure, the nodes are connected all with all.\n">>} = run(Config, ["matrix", "--json" | Effort]),
    #{<<"nodes">> := [_, _, _, _], <<"pairs">> := Pairs, <<"silent">> := [], <<"late">> := []} = atoll_cli_os:decode(Json),
    ?assertEqual(12, length(Pairs)),
    [?assert(Us > 0) || #{<<"round_trip_us">> := Us} <- Pairs],
    #{status := 0, stdout := Told} = run(Config, ["measure", "--json" | Effort]),
    ?assertMatch(#{<<"joins">> := [_, _, _], <<"network">> := <<"%%", _/binary>>}, atoll_cli_os:decode(Told)),
    #{status := 0, stdout := Declared} = run(Config, ["matrix", "--network", File]),
    ?assertEqual(5, length(binary:split(string:trim(Declared), <<"\n">>, [global]))),
    ?assertMatch(#{status := 0}, atoll_cli_line:run(dir(Config), ["down", "-c", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)).

a_network_file_is_checked_and_drawn(Config) ->
    File = filename:join(dir(Config), "a.network"),
    ok = file:write_file(File, "{network, site,\n [{node, a@h}, {network, [{node, b@h}, {node, c@h}]}]}.\n"),
    ?assertMatch(
        #{status := 0, stdout := <<"site\n├─ a@h\n└─ <v1>\n   ├─ b@h\n   └─ c@h\n"/utf8>>},
        run(Config, ["draw", File])
    ),
    #{status := 0, stdout := Json} = run(Config, ["matrix", "--network", File, "--json"]),
    #{<<"pairs">> := Pairs} = atoll_cli_os:decode(Json),
    ?assertEqual([0.5, 1.0], lists:usort([D || #{<<"distance">> := D} <- Pairs])),
    ok = file:write_file(File, "{network, [{node, a@h}]}.\n\n{node, b@h}.\n"),
    Sentence = iolist_to_binary([File, ": line 3: a second root begins here, and the network that begins in line 1 is to be all\n"]),
    [
        ?assertEqual(
            #{status => 2, stdout => <<>>, stderr => iolist_to_binary(["atoll distance ", hd(Args), ": ", Sentence])},
            maps:with([status, stdout, stderr], run(Config, Args))
        )
     || Args <- [["draw", File], ["matrix", "--network", File]]
    ].

a_cluster_that_does_not_run_is_told(Config) ->
    [
        begin
            #{status := 3, stdout := <<>>, stderr := Said} = run(Config, [Command, "-c", "nowhere"]),
            Sentence = <<"atoll distance ", (list_to_binary(Command))/binary, ": No cluster named nowhere is running">>,
            ?assertEqual({0, byte_size(Sentence)}, binary:match(Said, Sentence)),
            ?assertMatch([_], string:lexemes(Said, "\n"))
        end
     || Command <- ["measure", "matrix"]
    ].

nothing_is_written_where_somebody_is_left_out(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "3", "-c", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    File = filename:join(dir(Config), "reef.network"),
    ok = file:write_file(File, "a good one"),
    %% Nobody can measure so much in a second.
    ?assertMatch(
        #{status := 3, stdout := <<>>,
          stderr := <<"While they measure, the nodes are connected all with all.\natoll distance measure: nothing was measured: reef1@127.0.0.1, reef2@127.0.0.1, reef3@127.0.0.1 "
                      "had not measured all when the time was up (--deadline)\n">>},
        run(Config, ["measure", "-c", "reef", "--batches", "100000", "--deadline", "1", "--write", File])
    ),
    #{status := 0, stdout := Status} = atoll_cli_line:run(dir(Config), ["status", "--json"]),
    #{<<"clusters">> := [#{<<"nodes">> := [_, _, #{<<"node">> := <<"reef3@127.0.0.1">>, <<"os_pid">> := Third}]}]} = atoll_cli_os:decode(Status),
    ok = atoll_cli_os:signal(Third, "STOP"),
    try
        #{status := 1, stdout := Text, stderr := Told} =
            run(Config, ["measure", "-c", "reef", "--batches", "3", "--messages", "10", "--write", File]),
        ?assertEqual(<<"While they measure, the nodes are connected all with all.\natoll distance measure: reef3@127.0.0.1 did not answer; so no file is written\n">>, Told),
        [?assertNotEqual(nomatch, binary:match(Text, Node)) || Node <- [<<"reef1@">>, <<"reef2@">>]]
    after
        ok = atoll_cli_os:signal(Third, "CONT")
    end,
    ?assertEqual({ok, <<"a good one">>}, file:read_file(File)),
    ?assertMatch(#{status := 0}, atoll_cli_line:run(dir(Config), ["down", "-c", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)).
