%% SPDX-License-Identifier: Apache-2.0
%% `atoll sim': experiments, scripts, traces and recordings.
-module(atoll_sim_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    every_experiment_prints_its_keys_first/1,
    a_simulation_is_repeated_by_its_line/1,
    a_simulation_prints_a_table/1,
    a_terminal_sees_the_virtual_time/1,
    a_trace_is_written_and_shown/1,
    a_trace_that_is_cut_is_shown_and_told/1,
    a_recording_is_replayed/1,
    an_interrupted_run_leaves_the_old_trace/1,
    no_file_is_read_and_destroyed/1,
    a_file_that_cannot_be_written_is_told/1,
    a_strategy_of_ones_own_is_run/1,
    a_script_is_played/1,
    a_script_that_fails_is_repeated_by_its_line/1,
    a_name_of_a_group_that_nobody_is_in_is_told_so/1,
    a_script_that_is_wrong_is_told_with_its_line/1
]).

%% How long what was started may outlive its program.
-define(GONE_MS, 5000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [every_experiment_prints_its_keys_first,
     a_simulation_is_repeated_by_its_line,
     a_simulation_prints_a_table,
     a_terminal_sees_the_virtual_time,
     a_trace_is_written_and_shown,
     a_trace_that_is_cut_is_shown_and_told,
     a_recording_is_replayed,
     an_interrupted_run_leaves_the_old_trace,
     no_file_is_read_and_destroyed,
     a_file_that_cannot_be_written_is_told,
     a_strategy_of_ones_own_is_run,
     a_script_is_played,
     a_script_that_fails_is_repeated_by_its_line,
     a_name_of_a_group_that_nobody_is_in_is_told_so,
     a_script_that_is_wrong_is_told_with_its_line].

init_per_testcase(a_terminal_sees_the_virtual_time, Config) ->
    case atoll_cli_os:has_terminals() of
        true -> [{dir, atoll_cli_os:new_dir()} | Config];
        false -> {skip, "this system gives no pseudo-terminals"}
    end;
init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

every_experiment_prints_its_keys_first(Config) ->
    Page = atoll_cli_page:read("docs/simulator.md"),
    [begin
        #{status := 0, stdout := Stdout} =
            atoll_cli_line:run(dir(Config), ["sim", Name, "--nodes", "20", "--seed", "7", "--json" | Args]),
        ?assertMatch([_, <<>>], binary:split(Stdout, <<"\n">>, [global])),
        ?assertEqual(First, lists:sublist(keys(Stdout), length(First))),
        ?assertEqual([], atoll_cli_page:unexplained(Stdout, Page)),
        ?assertEqual(<<"again">>, lists:last(keys(Stdout)))
     end
     || {Name, Args, First} <- [
            {"overlay", ["--kill", "0.25"],
             [<<"strategy">>, <<"nodes">>, <<"killed">>, <<"seed">>, <<"virtual_ms">>, <<"wall_ms">>,
              <<"events_per_s">>, <<"connected_before">>, <<"connected_after">>, <<"active_min">>,
              <<"active_max">>, <<"symmetric">>, <<"messages_per_node_per_s">>]},
            {"broadcast", ["--messages", "10"],
             [<<"delivered">>, <<"redundancy">>, <<"hops_max">>, <<"latency_ms_p99">>]},
            {"directory", ["--group-size", "5", "--changes", "3", "--minutes", "1"],
             [<<"topology">>, <<"nodes">>, <<"groups">>, <<"links_per_node">>, <<"seed">>]},
            {"detect", ["--minutes", "1"],
             [<<"detect_ms_p50">>, <<"detect_ms_p99">>, <<"false_deaths_per_hour">>,
              <<"messages_per_node_per_s">>]},
            {"reach", ["--group-size", "5"],
             [<<"nodes">>, <<"topology">>, <<"groups">>, <<"gateways">>, <<"pairs">>, <<"all_pairs">>, <<"relayed">>,
              <<"reached">>]}]].

a_simulation_is_repeated_by_its_line(Config) ->
    Args = ["sim", "overlay", "--nodes", "30", "--kill", "0.4", "--seed", "11", "--option", "active_max=4", "--json"],
    #{status := 0, stdout := Once} = atoll_cli_line:run(dir(Config), Args),
    #{<<"again">> := <<"atoll ", Again/binary>>, <<"killed">> := 12} = atoll_cli_os:decode(Once),
    #{status := 0, stdout := Twice} =
        atoll_cli_line:run(dir(Config), string:lexemes(binary_to_list(Again), " ") ++ ["--json"]),
    Essence = fun(Json) -> maps:without([<<"wall_ms">>, <<"events_per_s">>], atoll_cli_os:decode(Json)) end,
    ?assertEqual(Essence(Once), Essence(Twice)).

a_simulation_prints_a_table(Config) ->
    #{status := 0, stdout := Stdout, stderr := Stderr} =
        atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "20", "--kill", "0", "--seed", "3"]),
    [?assertMatch({match, _}, re:run(Stdout, Line, [multiline]), Line)
     || Line <- ["^strategy +hyparview$", "^nodes killed +0$", "^connected before the kill +100 %$",
                 "^again: atoll sim overlay --strategy hyparview --nodes 20 --kill 0.0 --seed 3$"]],
    ?assertEqual(<<"Simulating 20 nodes, strategy hyparview\n">>, Stderr).

a_terminal_sees_the_virtual_time(Config) ->
    Line = "script -qec 'stty cols 60; exec bin/atoll sim overlay --nodes 20 >/dev/null' /dev/null",
    #{status := 0, stdout := Seen} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}), 30000),
    ?assertMatch({_, _}, binary:match(Seen, <<"\r\e[KVirtual time 34 s">>)),
    %% And it is taken away again.
    ?assertEqual(<<"\r\e[K">>, binary:part(Seen, byte_size(Seen), -4)).

a_trace_is_written_and_shown(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    Svg = filename:join(dir(Config), "a.svg"),
    Args = ["sim", "overlay", "--nodes", "20", "--seed", "7", "--trace"],
    #{status := 0} = atoll_cli_line:run(dir(Config), Args ++ [Trace]),
    #{status := 0} = atoll_cli_line:run(dir(Config), Args ++ [Trace ++ "2"]),
    {ok, Bytes} = file:read_file(Trace),
    ?assertEqual({ok, Bytes}, file:read_file(Trace ++ "2")),
    #{status := 0, stdout := Line} = atoll_cli_line:run(dir(Config), ["sim", "show", Trace]),
    ?assertMatch({_, _}, binary:match(Line, <<"atoll sim overlay --strategy hyparview --nodes 20 --kill 0.5 --seed 7\n">>)),
    #{status := 0} = atoll_cli_line:run(dir(Config), ["sim", "show", Trace, "--node", "n01", "--at", "30000", "--svg", Svg]),
    ?assertMatch({ok, <<"<svg ", _/binary>>}, file:read_file(Svg)),
    ?assertMatch(#{status := 2, stdout := <<>>, stderr := <<"atoll sim show: --node must be a node of the trace", _/binary>>},
                 atoll_cli_line:run(dir(Config), ["sim", "show", Trace, "--node", "nobody"])),
    ?assertMatch(#{status := 2, stdout := <<>>, stderr := <<"atoll sim show: README.md:1: ", _/binary>>},
                 atoll_cli_line:run(dir(Config), ["sim", "show", "README.md"])).

a_trace_that_is_cut_is_shown_and_told(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    #{status := 0} = atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    ?assertMatch(#{status := 0, stderr := <<>>}, atoll_cli_line:run(dir(Config), ["sim", "show", Trace])),
    {ok, Bytes} = file:read_file(Trace),
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    ok = file:write_file(Trace, lists:join("\n", lists:sublist(Lines, 3) ++ [""])),
    #{status := 0, stdout := Line, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["sim", "show", Trace]),
    ?assertMatch({_, _}, binary:match(Line, <<"shows   2 events\n">>)),
    ?assertEqual(iolist_to_binary([Trace, ":4: the trace is cut off here\n"]), Stderr).

a_recording_is_replayed(Config) ->
    Link = filename:join(dir(Config), "link.rec"),
    Overlay = filename:join(dir(Config), "overlay.rec"),
    Events = atoll_sim_recorded:link(Link),
    _ = atoll_sim_recorded:overlay(Overlay),
    Replay = fun(Args) -> atoll_cli_line:run(dir(Config), ["sim", "replay" | Args]) end,
    #{status := 0, stdout := Table, stderr := <<>>} = Replay([Link, Overlay]),
    Row = ["link.rec +n1@reef +atoll_link_core +", integer_to_list(Events), " +0 +whole +identical\n"],
    ?assertMatch({match, _}, re:run(Table, Row)),
    ?assertMatch({match, _}, re:run(Table, "overlay.rec +n1@reef +atoll_overlay_core ")),
    ok = atoll_sim_recorded:tampered(Link, 9),
    #{status := 1, stdout := Differs, stderr := Stderr} = Replay([Link, Overlay]),
    ?assertMatch({match, _}, re:run(Differs, "differ at event 9\n")),
    ?assertMatch({match, _}, re:run(Differs, "link.rec, event 9:\n  event .*\n  recorded  .*tampered.*\n  replayed ")),
    ?assertEqual(iolist_to_binary(["atoll sim replay: ", Link, " has other effects than were recorded, or cannot be replayed\n"]), Stderr),
    #{status := 1, stdout := Json} = Replay(["--json", Link, Overlay]),
    #{<<"recordings">> := [One, Other]} = atoll_cli_os:decode(Json),
    ?assertMatch(#{<<"node">> := <<"n1@reef">>, <<"otp">> := <<"25">>, <<"protocol">> := <<"atoll_link_core">>,
                   <<"events">> := Events, <<"lost">> := 0, <<"cut">> := false, <<"identical">> := false,
                   <<"difference">> := #{<<"event">> := 9}}, One),
    ?assertMatch(#{<<"identical">> := true, <<"difference">> := null}, Other),
    ?assertMatch(#{status := 2, stderr := <<"atoll sim replay: README.md: this is no recording of Atoll\n">>},
                 Replay(["README.md"])).

an_interrupted_run_leaves_the_old_trace(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    Link = filename:join(dir(Config), "a.link"),
    ok = file:write_file(Trace, "old"),
    ok = file:make_symlink(Trace, Link),
    Program = atoll_cli_os:start(dir(Config), ["sim", "overlay", "--nodes", "1000", "--trace", Link]),
    Part = filename:join(dir(Config), "a.trace.*.part"),
    ok = atoll_cli_os:await(fun() -> filelib:wildcard(Part) =/= [] end, 30000),
    ok = atoll_cli_os:signal_group(Program, "INT"),
    #{status := Status} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ?assertNotEqual(0, Status),
    ?assertEqual({ok, <<"old">>}, file:read_file(Trace)),
    #{status := 0} = atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Link]),
    ?assertMatch({ok, _}, file:read_link(Link)),
    ?assertMatch({ok, <<"{atoll_trace,", _/binary>>}, file:read_file(Trace)).

no_file_is_read_and_destroyed(Config) ->
    Script = script(Config, "{at, 0, heal}.\n"),
    Link = filename:join(dir(Config), "a.link"),
    ok = file:make_symlink(Script, Link),
    Trace = filename:join(dir(Config), "a.trace"),
    #{status := 0} = atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    [begin
        {ok, Bytes} = file:read_file(Read),
        ?assertEqual(
            {2, <<>>, iolist_to_binary(["atoll ", lists:join(" ", lists:sublist(Args, 2)), ": ", Sentence, "\n"])},
            outcome(atoll_cli_line:run(dir(Config), Args))
        ),
        ?assertEqual({ok, Bytes}, file:read_file(Read))
     end
     || {Read, Args, Sentence} <- [
            {Script, ["sim", "run", Script, "--trace", Script], ["--trace ", Script, " is the script itself"]},
            {Script, ["sim", "run", Script, "--trace", Link], ["--trace ", Link, " is the script itself"]},
            {Trace, ["sim", "show", Trace, "--svg", Trace], ["--svg ", Trace, " is the trace itself"]}]].

a_file_that_cannot_be_written_is_told(Config) ->
    Missing = filename:join([dir(Config), "missing", "a"]),
    Trace = filename:join(dir(Config), "a.trace"),
    [begin
        #{status := Status, stdout := Stdout, stderr := Stderr} =
            atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "20", "--trace", File]),
        ?assertEqual({File, 3, <<>>}, {File, Status, Stdout}),
        Said = lists:last(binary:split(string:trim(Stderr), <<"\n">>, [global])),
        Begin = iolist_to_binary(["atoll sim overlay: the trace ", File, " could not be written: "]),
        ?assertEqual(Begin, binary:part(Said, 0, byte_size(Begin)))
     end
     || File <- [Missing, dir(Config), "/dev/full"]],
    #{status := 0} = atoll_cli_line:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    #{status := 3, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["sim", "show", Trace, "--svg", Missing]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"the drawing ">>)).

%% It names nobody for a neighbour, until it fails.
a_strategy_of_ones_own_is_run(Config) ->
    Source = "-module(alone). -export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).\n"
        "options() -> #{limit => {pos_integer, 1000000}}.\n"
        "init(#{options := #{limit := Limit}}, _) -> {Limit, []}.\n"
        "handle(_, Now, Limit) when Now < Limit -> {Limit, []}.\n"
        "neighbours(_) -> []. known(_) -> []. summary(_) -> #{}.\n",
    File = filename:join(dir(Config), "alone.erl"),
    ok = file:write_file(File, Source),
    {ok, alone} = compile:file(File, [{outdir, dir(Config)}]),
    Args = ["sim", "overlay", "--strategy", "alone", "--code", dir(Config), "--nodes", "20", "--kill", "0"],
    #{status := 0, stdout := Stdout} = atoll_cli_line:run(dir(Config), Args),
    ?assertMatch({match, _}, re:run(Stdout, "^connected before the kill +5 %$", [multiline])),
    #{status := 3, stdout := <<>>, stderr := Stderr} =
        atoll_cli_line:run(dir(Config), Args ++ ["--option", "limit=1000"]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"atoll sim overlay: the strategy alone failed: ">>)),
    ?assertMatch({_, _}, binary:match(Stderr, <<"alone:handle(">>)).

a_script_is_played(Config) ->
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["sim", "run", "docs/scripts/partition.script"]),
    [?assertMatch({match, _}, re:run(Table, Line, [multiline]), Line)
     || Line <- ["^expectations +2$", "^expectations that failed +0$",
                 "^again: atoll sim run docs/scripts/partition.script --seed 7$"]],
    #{status := 0, stdout := Json} =
        atoll_cli_line:run(dir(Config), ["sim", "run", "docs/scripts/leave.script", "--seed", "8", "--json"]),
    ?assertMatch(#{<<"seed">> := 8, <<"failed">> := []}, atoll_cli_os:decode(Json)).

a_script_that_fails_is_repeated_by_its_line(Config) ->
    File = script(Config, "{cluster, #{nodes => 10}}.\n{at, 0, {expect, {connected, 1.0}}}.\n"),
    #{status := 1, stdout := Json, stderr := Stderr} =
        atoll_cli_line:run(dir(Config), ["sim", "run", File, "--seed", "3", "--json"]),
    ?assertMatch(#{<<"failed">> := [#{<<"line">> := 2, <<"ms">> := 0, <<"was">> := _}]}, atoll_cli_os:decode(Json)),
    [?assertMatch({_, _}, binary:match(Stderr, iolist_to_binary(Part)), Stderr)
     || Part <- ["1 of 1 expectations failed, the first at ", [File, ":2"], ["again: atoll sim run ", File, " --seed 3\n"]]].

%% That is no list of those who broke it.
a_name_of_a_group_that_nobody_is_in_is_told_so(Config) ->
    File = script(Config, "{cluster, #{nodes => 3}}.\n{at, {5, s}, {expect, {name, reef, shop, all}}}.\n"),
    #{status := 1, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["sim", "run", File]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"was expected, but no living node is in that group; again: ">>), Stderr).

a_script_that_is_wrong_is_told_with_its_line(Config) ->
    [begin
        File = script(Config, Text),
        #{status := 2, stdout := <<>>, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["sim", "run", File]),
        Begin = iolist_to_binary(["atoll sim run: ", File, Sentence]),
        ?assertEqual(Begin, binary:part(Stderr, 0, min(byte_size(Begin), byte_size(Stderr)))),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr)
     end
     || {Text, Sentence} <- [
            {"{cluster, #{nodes => 10}}.\n\n{at, 5, {explode, all}}.\n", ":3: there is no step {explode,all}"},
            {"{at, 5, {kill, {share, 1.5}}}.\n", ":1: in {kill,{share,1.5}}: "},
            {"{cluster, #{strategy => circle}}.\n", ":1: there is no strategy circle"},
            {"{at, 5, {kill, nobody}}.\n", ":1: there is no node nobody"},
            {"{at, 5\n", ":1: "}]].

outcome(#{status := Status, stdout := Stdout, stderr := Stderr}) -> {Status, Stdout, Stderr}.

script(Config, Text) ->
    File = filename:join(dir(Config), "a.script"),
    ok = file:write_file(File, Text),
    File.

%% In the order in which they stand.
keys(Json) ->
    {match, Keys} = re:run(Json, "\"([a-z_0-9]+)\":", [global, {capture, all_but_first, binary}]),
    lists:append(Keys).

dir(Config) ->
    proplists:get_value(dir, Config).
