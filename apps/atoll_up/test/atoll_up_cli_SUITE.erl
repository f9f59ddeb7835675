%% SPDX-License-Identifier: Apache-2.0
%% Clusters that `atoll up' holds, and what `atoll status' tells of them.
-module(atoll_up_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    up_holds_groups_until_down/1,
    up_holds_an_overlay_and_status_tells_of_it/1,
    groups_are_cliques_of_an_overlay/1,
    a_cluster_is_not_called_as_a_context_is/1,
    without_a_home_no_cluster_starts/1
]).

%% How long what was started may outlive its program.
-define(GONE_MS, 5000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [up_holds_groups_until_down,
     up_holds_an_overlay_and_status_tells_of_it,
     groups_are_cliques_of_an_overlay,
     a_cluster_is_not_called_as_a_context_is,
     without_a_home_no_cluster_starts].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

up_holds_groups_until_down(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--groups", "2", "-c", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    [?assertMatch({match, _}, re:run(Said, Line, [multiline]), Said)
     || Line <- ["^reef1@127.0.0.1 +group1 gateways +3$", "^reef2@127.0.0.1 +group1 +2$",
                 "^reef4@127.0.0.1 +group2 gateways +2$", "^reef5@127.0.0.1 +group2 +1$"]],
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["status"]),
    ?assertMatch({match, _}, re:run(Table, "^reef +reef1@127.0.0.1 +up +3 ", [multiline])),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["status", "--json"]),
    ?assertMatch(#{<<"clusters">> := [#{<<"name">> := <<"reef">>, <<"nodes">> := [_, _, _, _, _]}]},
                 atoll_cli_os:decode(Json)),
    %% They run no overlay.
    #{<<"clusters">> := [#{<<"nodes">> := [First | _]}]} = atoll_cli_os:decode(Json),
    ?assertMatch(#{<<"overlay">> := null, <<"neighbours">> := null, <<"members">> := null, <<"parts">> := null}, First),
    #{<<"groups">> := Groups, <<"names">> := Names} = First,
    ?assertEqual(
        [{<<"gateways">>, [1, 4]}, {<<"group1">>, [1, 2, 3]}],
        [{Group, atoll_up_reef:numbers(Members)} || #{<<"group">> := Group, <<"nodes">> := Members} <- Groups]
    ),
    ?assertMatch(#{<<"names">> := 0, <<"operations">> := 0, <<"counters">> := #{<<"sent">> := _}}, Names),
    %% What changes something without a name means the cluster that `up' without a name has started.
    ?assertMatch(
        #{status := 3, stderr := <<"atoll down: No cluster named atoll is running, only reef.\n">>},
        atoll_cli_line:run(dir(Config), ["down"])),
    ?assertMatch(#{status := 0, stdout := <<>>}, atoll_cli_line:run(dir(Config), ["down", "-c", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

up_holds_an_overlay_and_status_tells_of_it(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--overlay", "hyparview", "--option", "active_max=4", "-c", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    ?assertMatch({match, _}, re:run(Said, "^node +neighbours +connections +members$", [multiline])),
    {match, Rows} = re:run(Said, "^reef[1-5]@127.0.0.1 +([1-4]) +([1-4]) +5$", [multiline, global]),
    ?assertEqual(5, length(Rows)),
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["status"]),
    ?assertMatch({match, _}, re:run(Table, "^reef +reef1@127.0.0.1 +up +[1-4] +hyparview +[1-4] +5 ", [multiline])),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["status", "--json"]),
    #{<<"clusters">> := [#{<<"nodes">> := Nodes}]} = atoll_cli_os:decode(Json),
    Views = maps:from_list([{Node, Neighbours} || #{<<"node">> := Node, <<"neighbours">> := Neighbours} <- Nodes]),
    ?assertEqual(5, map_size(Views)),
    [?assert(is_map_key(Peer, Views)) || Peers <- maps:values(Views), Peer <- Peers],
    [begin
        ?assertMatch(#{<<"overlay">> := <<"hyparview">>, <<"members">> := 5}, Node),
        ?assertMatch(#{<<"parts">> := #{<<"counters">> := #{<<"sent">> := N}, <<"strategy">> := #{<<"bounds">> := #{<<"active_max">> := 4}},
                                        <<"outbox">> := #{<<"dropped">> := 0}}} when N > 0, Node)
     end
     || Node <- Nodes],
    ok = atoll_up_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

groups_are_cliques_of_an_overlay(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "6", "--groups", "2", "--overlay", "cliques", "-c", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    [?assertMatch({match, _}, re:run(Said, Line, [multiline]), Said)
     || Line <- ["^reef1@127.0.0.1 +group1 gateways +3 +3 +6$", "^reef2@127.0.0.1 +group1 +2 +2 +6$",
                 "^reef4@127.0.0.1 +group2 gateways +3 +3 +6$", "^reef6@127.0.0.1 +group2 +2 +2 +6$"]].

%% Nobody could tell which is meant.
a_cluster_is_not_called_as_a_context_is(Config) ->
    #{status := 0} = atoll_cli_line:run(dir(Config), ["context", "add", "reef", "--node", "a@127.0.0.1"]),
    ?assertMatch(
        #{status := 3, stdout := <<>>, stderr := <<"atoll up: A context is named reef: remove it, or give the cluster another name.\n">>},
        atoll_cli_line:run(dir(Config), ["up", "1", "-c", "reef"], 20000)
    ).

%% As a service manager may start a program.
without_a_home_no_cluster_starts(Config) ->
    [
        begin
            Program = atoll_cli_os:start(dir(Config), {sh, [Without, "; exec bin/atoll up 2 -c reef"]}),
            #{status := Status, stderr := Said} = atoll_cli_os:await_exit(Program, 60000),
            ?assertEqual({3, Sentence}, {Status, Said})
        end
     || {Without, Sentence} <- [
            {"unset HOME", <<"atoll up: HOME is not set: nodes find their cookie in it.\n">>},
            {"export HOME=/no/such; unset XDG_CONFIG_HOME",
                <<"atoll up: The nodes find their cookie in HOME, and its file /no/such/.erlang.cookie cannot be made: no such file or directory.\n">>}
        ]
    ].

dir(Config) ->
    proplists:get_value(dir, Config).
