%% SPDX-License-Identifier: Apache-2.0
%% What `atoll links' and `atoll route' tell of a cluster on the carrier.
-module(atoll_view_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    links_shows_the_connections_of_a_carrier/1,
    nodes_reach_each_other_over_gateways_and_route_says_how/1
]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [links_shows_the_connections_of_a_carrier, nodes_reach_each_other_over_gateways_and_route_says_how].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

%% Groups too, which are changed over a connection that this program makes without the
%% carrier.
links_shows_the_connections_of_a_carrier(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["4", "--groups", "2", "--carrier", "atoll", "--kind", "lanes2"]),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["links", "-c", "reef", "--json"]),
    #{<<"cluster">> := <<"reef">>, <<"links">> := Links, <<"silent">> := []} = atoll_cli_os:decode(Json),
    %% The two of each group, and the gateways.
    ?assertEqual([[1, 2], [1, 3], [3, 4]], lists:sort([lists:sort(atoll_up_reef:numbers([F, T])) || #{<<"from">> := F, <<"to">> := T} <- Links])),
    [
        begin
            ?assertMatch(#{<<"kind">> := <<"lanes2">>, <<"connected_by">> := From}, Link),
            [?assert(is_integer(map_get(Key, Link)), Link) || Key <- [<<"rtt_us">>, <<"age_ms">>, <<"bytes_there">>, <<"bytes_back">>]]
        end
     || #{<<"from">> := From} = Link <- Links
    ],
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["links", "-c", "reef"]),
    [Head | Rows] = binary:split(Table, <<"\n">>, [global, trim]),
    ?assertMatch({match, _}, re:run(Head, "^from +to +kind +round trip +connected by +up for +bytes there +bytes back$")),
    Row = "^(reef[1-4]@127.0.0.1) +reef[1-4]@127.0.0.1 +lanes2 +(?:[1-9][0-9]* \x{b5}s|[1-9][0-9.,]* ms) +\\g1 +[0-9.]+ s +[0-9,]+ +[0-9,]+$",
    ?assertMatch([{match, _}, {match, _}, {match, _}], [re:run(R, Row, [unicode]) || R <- Rows], Table),
    %% Without a name it means the only one that runs.
    #{status := 0, stdout := Alone} = atoll_cli_line:run(dir(Config), ["links", "--json"]),
    ?assertMatch(#{<<"cluster">> := <<"reef">>, <<"links">> := [_, _, _]}, atoll_cli_os:decode(Alone)),
    ?assertMatch(#{status := 0}, atoll_cli_line:run(dir(Config), ["group", "new", "fish", "reef2", "reef4", "-c", "reef"])),
    %% A node that is silent is told, and with --json too.
    #{status := 0, stdout := Status} = atoll_cli_line:run(dir(Config), ["status", "--json"]),
    #{<<"clusters">> := [#{<<"nodes">> := [_, _, _, #{<<"os_pid">> := Fourth}]}]} = atoll_cli_os:decode(Status),
    ok = atoll_cli_os:signal(Fourth, "STOP"),
    [
        begin
            #{status := 1, stdout := Seen, stderr := Silent} = atoll_cli_line:run(dir(Config), ["links" | Args]),
            ?assertEqual(<<"atoll links: these do not answer: reef4@127.0.0.1\n">>, Silent),
            Args =:= [] orelse ?assertMatch(#{<<"silent">> := [<<"reef4@127.0.0.1">>]}, atoll_cli_os:decode(Seen))
        end
     || Args <- [[], ["--json"]]
    ],
    ok = atoll_up_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% And says so when there is no way any more, and why.
nodes_reach_each_other_over_gateways_and_route_says_how(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["6", "--groups", "2", "--gateways", "2", "--carrier", "atoll", "--relay", "--seal"]),
    Does = fun(Args) -> atoll_cli_line:run(dir(Config), Args ++ ["-c", "reef"]) end,
    #{status := 0, stdout := Json} = Does(["route", "reef3", "reef6", "--json"]),
    #{<<"path">> := Path, <<"hops">> := Hops, <<"alternatives">> := Others, <<"now">> := Now} = atoll_cli_os:decode(Json),
    [3, G, H, 6] = atoll_up_reef:numbers(Path),
    ?assert(lists:member(G, [1, 2]) andalso lists:member(H, [4, 5])),
    ?assertMatch([[_, _, _, _], [_, _, _, _], [_, _, _, _]], Others),
    ?assertMatch(
        [#{<<"group">> := <<"group1">>, <<"choices">> := 1}, #{<<"group">> := <<"gateways">>, <<"choices">> := 2},
         #{<<"group">> := <<"group2">>, <<"choices">> := 2}],
        Hops
    ),
    ?assertEqual(#{<<"kind">> => <<"none">>, <<"path">> => null}, Now),
    %% A plain ping does it.
    ok = atoll_up_reef:on_node(3, "pong = net_adm:ping('reef6@127.0.0.1')"),
    #{status := 0, stdout := Table} = Does(["route", "reef3", "reef6"]),
    ?assertMatch({match, _}, re:run(Table, "^from +to +why +others that would do$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef3@127.0.0.1 +reef[12]@127.0.0.1 +both are in group1 +-$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef[12]@127.0.0.1 +reef[45]@127.0.0.1 +both are in gateways +1$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^now +they are connected over reef[12]@127.0.0.1 reef[45]@127.0.0.1$", [multiline])),
    #{status := 0, stdout := Said} = atoll_cli_line:run(dir(Config), ["links", "-c", "reef", "--json"]),
    #{<<"links">> := Links, <<"relays">> := Relays} = atoll_cli_os:decode(Said),
    [#{<<"path">> := Over, <<"from">> := From, <<"sealed">> := true}] = [L || #{<<"kind">> := <<"relay">>} = L <- Links],
    ?assertMatch({[3, A, B, 6], [3]} when A < 3 andalso B > 3, {atoll_up_reef:numbers(Over), atoll_up_reef:numbers([From])}),
    ?assertEqual(lists:sort(atoll_up_reef:numbers(Over) -- [3, 6]), atoll_up_reef:numbers([Node || #{<<"node">> := Node, <<"circuits">> := 1} <- Relays])),
    %% Each plain node has the links of its group, and no more.
    ?assertEqual(2, length([L || #{<<"from">> := F, <<"to">> := T, <<"path">> := null} = L <- Links, lists:member(3, atoll_up_reef:numbers([F, T]))])),
    #{status := 0, stdout := Shown} = atoll_cli_line:run(dir(Config), ["links", "-c", "reef"]),
    ?assertMatch({match, _}, re:run(Shown, "^reef3@127.0.0.1 +reef6@127.0.0.1 +relay .* reef[12]@127.0.0.1 reef[45]@127.0.0.1, sealed$", [multiline])),
    ?assertMatch({match, [_, _]}, re:run(Shown, "^reef[1245]@127.0.0.1 +1 +1 +0 +0 +0 +[0-9,]+ +268,435,456 +[0-9,]+$", [multiline, global])),
    [ok = atoll_up_reef:on_node(I, "ok = application:stop(atoll)") || I <- [1, 2, 6]],
    [
        begin
            Line = iolist_to_binary(["atoll route: ", Sentence, $\n]),
            ?assertMatch({#{status := Status, stdout := <<>>, stderr := Line}, _}, {Does(["route" | Args]), Args})
        end
     || {Status, Args, Sentence} <- [
            {1, ["reef3", "reef4"], "no chain of groups and links leads from reef3@127.0.0.1 to reef4@127.0.0.1"},
            {3, ["reef6", "reef3"], "reef6@127.0.0.1: atoll does not run on this node"},
            {2, ["reef3", "reef7"], "the cluster has no node reef7; did you mean reef1?"},
            {2, ["reef3", "reef3@127.0.0.1"], "FROM and TO must be two nodes"}
        ]
    ],
    ok = atoll_up_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

dir(Config) ->
    proplists:get_value(dir, Config).
