%% SPDX-License-Identifier: Apache-2.0
%% `atoll chaos' on real nodes.
-module(atoll_chaos_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_script_that_fails_does_so_in_both_worlds/1,
    an_interrupted_harm_ends_in_other_ways_too/1,
    a_script_ends_with_the_same_facts_in_both_worlds/1,
    an_expectation_that_fails_on_real_nodes_fails_the_run/1,
    a_held_cluster_is_harmed_and_stays/1,
    a_script_that_cannot_be_played_starts_nothing/1,
    faults_at_a_rate_print_one_object/1,
    an_interrupted_harm_says_what_happened/1
]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [a_script_that_fails_does_so_in_both_worlds, a_held_cluster_is_harmed_and_stays,
     a_script_that_cannot_be_played_starts_nothing, faults_at_a_rate_print_one_object,
     an_interrupted_harm_says_what_happened];
%% Overlays take their time to settle.
cases(deep) ->
    cases(fast) ++
        [a_script_ends_with_the_same_facts_in_both_worlds, an_expectation_that_fails_on_real_nodes_fails_the_run,
         an_interrupted_harm_ends_in_other_ways_too].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

a_script_ends_with_the_same_facts_in_both_worlds(Config) ->
    [Simulated, Real] = [
        begin
            #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), [World, "run", "docs/scripts/leave.script", "--json"], 120000),
            atoll_cli_os:decode(Json)
        end
     || World <- ["sim", "chaos"]
    ],
    Same = [<<"seed">>, <<"expectations">>, <<"failed">>, <<"alive">>, <<"connected">>, <<"components">>, <<"symmetric">>,
            <<"delivered">>, <<"false_deaths">>],
    ?assertEqual(maps:with(Same, Simulated), maps:with(Same, Real)),
    ?assertEqual(length(Same), map_size(maps:with(Same, Real))),
    [?assertMatch(#{<<"active_min">> := Min, <<"active_max">> := Max} when Min >= 1 andalso Max =< 5, R) || R <- [Simulated, Real]],
    ?assertMatch(#{<<"unseen">> := 0, <<"events">> := [#{<<"fault">> := <<"leave">>, <<"line">> := 4} | _]}, Real),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

a_script_that_fails_does_so_in_both_worlds(Config) ->
    File = script(Config,
        "{cluster, #{nodes => 3, strategy => mesh, contacts => 1, seed => 7}}.\n{at, 500, {kill, {nodes, 3, 3}}}.\n"
        "{then, 500, {start, {nodes, 3, 3}}}.\n{then, 2500, {broadcast, {nodes, 1, 1}, 2, 100}}.\n"
        "{then, 1000, {expect, {delivered, 1.0}}}.\n{then, 0, {expect, {neighbours, 3, 9}}}.\n"),
    [Simulated, Real] = [
        begin
            #{status := 1, stdout := Json, stderr := Stderr} = atoll_cli_line:run(dir(Config), Args ++ [File, "--json"]),
            Said = iolist_to_binary(["1 of 2 expectations failed, the first at ", File, ":6"]),
            ?assertMatch({_, _}, binary:match(Stderr, Said), Stderr),
            %% The page on faults sends its reader to the other.
            Explained = iolist_to_binary([atoll_cli_page:read(Page) || Page <- ["docs/simulator.md" | Pages]]),
            ?assertEqual([], atoll_cli_page:unexplained(Json, Explained)),
            atoll_cli_os:decode(Json)
        end
     || {Args, Pages} <- [{["sim", "run"], []}, {["chaos", "run"], ["docs/chaos.md"]}]
    ],
    Same = [<<"seed">>, <<"expectations">>, <<"alive">>, <<"connected">>, <<"components">>, <<"symmetric">>, <<"delivered">>,
            <<"active_min">>, <<"active_max">>],
    ?assertEqual(maps:with(Same, Simulated), maps:with(Same, Real)),
    ?assertEqual(length(Same), map_size(maps:with(Same, Real))),
    ?assertMatch(#{<<"alive">> := 3, <<"delivered">> := 1.0, <<"active_max">> := 2}, Real),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

an_expectation_that_fails_on_real_nodes_fails_the_run(Config) ->
    File = script(Config, "{at, 4000, {expect, {neighbours, 2, 2}}}.\n{then, 0, {expect, {neighbours, 3, 9}}}.\n"),
    #{status := 1, stdout := Table, stderr := Stderr} =
        atoll_cli_line:run(dir(Config), ["chaos", "run", File, "--nodes", "3", "--overlay", "mesh"]),
    [?assertMatch({match, _}, re:run(Table, Line, [multiline]), Table)
     || Line <- ["^expectations +2$", "^expectations that failed +1$", "^nodes alive at the end +3$",
                 "^neighbours of a node, at most +2$", "^again: atoll chaos run .* --nodes 3 --overlay mesh --seed 1$"]],
    ?assertMatch({_, _}, binary:match(Stderr, iolist_to_binary(["1 of 2 expectations failed, the first at ", File, ":2, after "])), Stderr).

a_held_cluster_is_harmed_and_stays(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["3", "--overlay", "mesh"]),
    File = script(Config, "{at, 0, {broadcast, all, 2, 100}}.\n{at, 100, {pause, {nodes, 2, 2}, 300}}.\n"
                          "{at, 1500, {expect, {delivered, 1.0}}}.\n{at, 1500, {expect, symmetric}}.\n"),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["chaos", "run", File, "-c", "reef", "--json"]),
    ?assertMatch(#{<<"failed">> := [], <<"alive">> := 3, <<"connected">> := 1.0, <<"delivered">> := 1.0}, atoll_cli_os:decode(Json)),
    [
        begin
            #{status := 0, stdout := Random} =
                atoll_cli_line:run(dir(Config), ["chaos", "random", "-c", "reef", "--kinds", "pause,cut", "--rate", "3", "--seconds", "1"]),
            ?assertMatch({match, _}, re:run(Random, "^nodes alive at the end +3$", [multiline]))
        end
     || atoll_tier:tier() =:= deep
    ],
    %% Nobody there could start it again.
    Restart = script(Config, "{at, 0, {restart, all, fresh}}.\n"),
    ?assertMatch(#{status := 2, stdout := <<>>}, atoll_cli_line:run(dir(Config), ["chaos", "run", Restart, "-c", "reef"])),
    #{status := 0, stdout := Status} = atoll_cli_line:run(dir(Config), ["status"]),
    ?assertMatch({match, [_, _, _]}, re:run(Status, "^reef +reef[1-3]@127.0.0.1 +up ", [multiline, global])),
    %% One that is down is left out, and its number is that of the next one.
    [Second] = [Pid || {Pid, "reef2@127.0.0.1"} <- atoll_cli_os:beams(dir(Config))],
    ok = atoll_cli_os:signal(Second, "KILL"),
    _ = atoll_cli_os:await_line(Program, stderr, <<"reef2@127.0.0.1 went down">>),
    Two = script(Config, "{at, 0, {kill_process, {nodes, 2, 2}, {name, atoll_group}}}.\n"),
    #{status := 0, stdout := Left, stderr := Said} = atoll_cli_line:run(dir(Config), ["chaos", "run", Two, "-c", "reef", "--json"]),
    ?assertMatch({_, _}, binary:match(Said, <<"reef2@127.0.0.1 is down, and left out">>)),
    ?assertMatch(#{<<"nodes">> := [<<"reef1@127.0.0.1">>, <<"reef3@127.0.0.1">>], <<"events">> := [
        #{<<"nodes">> := [<<"reef3@127.0.0.1">>], <<"outcome">> := <<"done">>} | _]}, atoll_cli_os:decode(Left)).

a_script_that_cannot_be_played_starts_nothing(Config) ->
    File = script(Config, "{at, 0, heal}.\n{at, 1, {expect, symmetric}}.\n"),
    #{status := 2, stdout := <<>>, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["chaos", "run", File, "--nodes", "3"]),
    ?assertEqual(
        iolist_to_binary(["atoll chaos run: ", File, ":2: in {expect,symmetric}: it is about the overlay, and these nodes run none\n"]),
        Stderr
    ),
    Says = fun(Text) ->
        Other = script(Config, Text),
        #{status := 2, stdout := <<>>, stderr := Said} = atoll_cli_line:run(dir(Config), ["chaos", "run", Other]),
        [<<>>, Sentence] = binary:split(Said, iolist_to_binary(["atoll chaos run: ", Other, ": "])),
        Sentence
    end,
    ?assertEqual(<<"it has no steps\n">>, Says("{cluster, #{nodes => 3}}.\n")),
    ?assertEqual(<<"it does not say how many nodes there are, so --nodes N must\n">>, Says("{at, 0, heal}.\n")),
    ?assertMatch(#{status := 3, stderr := <<"atoll chaos run: No cluster named nobody is running.\n">>},
                 atoll_cli_line:run(dir(Config), ["chaos", "run", "docs/scripts/groups.script", "-c", "nobody"])).

faults_at_a_rate_print_one_object(Config) ->
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), [
        "chaos", "random", "--nodes", "3", "--rate", "4", "--kinds", "process,node", "--seconds", "1", "--seed", "7", "--json"]),
    ?assertMatch([_, <<>>], binary:split(Json, <<"\n">>, [global])),
    ?assertEqual([], atoll_cli_page:unexplained(Json, atoll_cli_page:read("docs/chaos.md"))),
    #{<<"nodes">> := [_, _, _], <<"seed">> := 7, <<"events">> := Events, <<"summary">> := [_ | _], <<"again">> := Again} = atoll_cli_os:decode(Json),
    ?assertEqual(5, length(Events)),
    ?assertMatch(#{<<"fault">> := <<"heal">>}, lists:last(Events)),
    ?assertEqual(<<"atoll chaos random --rate 4 --kinds process,node --seconds 1 --nodes 3 --seed 7">>, Again),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% It heals, prints what there is, and takes its nodes down.
an_interrupted_harm_says_what_happened(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["chaos", "random", "--nodes", "2", "--rate", "20", "--kinds", "process", "--seconds", "600"]),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Doing harm">>),
    ok = atoll_cli_os:signal(Program, "INT"),
    #{status := 130, stdout := Table, stderr := Said} = atoll_cli_os:await_exit(Program, 30000),
    [?assertMatch({match, _}, re:run(Table, Line, [multiline]), Table)
     || Line <- [" heal +- *$", "^again: atoll chaos random .* --nodes 2 --seed 1$"]],
    ?assertMatch({_, _}, binary:match(Said, <<"atoll chaos random: interrupted; all is healed\n">>)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% It is the shell before the VM that is told alone, or with the VM as a terminal does.
an_interrupted_harm_ends_in_other_ways_too(Config) ->
    [
        begin
            Program = atoll_cli_os:start(dir(Config), [
                "chaos", "random", "--nodes", "2", "--rate", "20", "--kinds", "process", "--seconds", "600", "--json"]),
            _ = atoll_cli_os:await_line(Program, stderr, <<"Doing harm">>),
            ok = atoll_cli_os:Signal(Program, "INT"),
            #{status := 130, stdout := Json, stderr := Said} = atoll_cli_os:await_exit(Program, 30000),
            #{<<"events">> := Events} = atoll_cli_os:decode(Json),
            ?assertMatch(#{<<"fault">> := <<"heal">>}, lists:last(Events)),
            ?assertMatch({_, _}, binary:match(Said, <<"atoll chaos random: interrupted; all is healed\n">>)),
            ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config)))
        end
     || Signal <- [signal, signal_group]
    ],
    %% The second time it ends at once; an overlay takes some seconds to settle.
    Twice = atoll_cli_os:start(dir(Config), ["chaos", "run", "docs/scripts/leave.script"]),
    _ = atoll_cli_os:await_line(Twice, stderr, <<"Doing harm">>),
    ok = atoll_cli_os:signal(Twice, "INT"),
    _ = atoll_cli_os:await_line(Twice, stderr, <<"Healing.">>),
    ok = atoll_cli_os:signal(Twice, "INT"),
    ?assertMatch(#{status := 130, stdout := <<>>}, atoll_cli_os:await_exit(Twice, 20000)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))),
    %% Without a word, whoever of the two is killed.
    Killed = atoll_cli_os:start(dir(Config), ["chaos", "random", "--nodes", "2", "--kinds", "process", "--seconds", "600"]),
    _ = atoll_cli_os:await_line(Killed, stderr, <<"Doing harm">>),
    ok = atoll_cli_os:signal(Killed, "KILL"),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

script(Config, Text) ->
    File = filename:join(dir(Config), "a.script"),
    ok = file:write_file(File, Text),
    File.

dir(Config) ->
    proplists:get_value(dir, Config).
