%% Clusters that `atoll up' holds, and what the commands that see one tell of it: its nodes,
%% connections and routes.
-module(atoll_cli_up_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    up_holds_groups_until_down/1,
    up_takes_a_carrier_and_links_shows_its_connections/1,
    nodes_reach_each_other_over_gateways_and_route_says_how/1,
    links_of_stock_nodes_are_shown_too/1,
    up_holds_an_overlay_and_status_tells_of_it/1,
    groups_are_cliques_of_an_overlay/1,
    a_topology_is_drawn_without_a_cluster/1
]).

%% How long what was started may outlive its program.
-define(GONE_MS, 5000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [up_holds_groups_until_down,
     up_takes_a_carrier_and_links_shows_its_connections,
     nodes_reach_each_other_over_gateways_and_route_says_how,
     links_of_stock_nodes_are_shown_too,
     up_holds_an_overlay_and_status_tells_of_it,
     groups_are_cliques_of_an_overlay,
     a_topology_is_drawn_without_a_cluster].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

up_holds_groups_until_down(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--groups", "2", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
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
        [{Group, atoll_cli_reef:numbers(Members)} || #{<<"group">> := Group, <<"nodes">> := Members} <- Groups]
    ),
    ?assertMatch(#{<<"names">> := 0, <<"operations">> := 0, <<"counters">> := #{<<"sent">> := _}}, Names),
    %% Without a name it means the cluster that `up' without a name has started.
    ?assertMatch(
        #{status := 1, stderr := <<"atoll down: No cluster named atoll is running, only reef.\n">>},
        atoll_cli_line:run(dir(Config), ["down"])),
    ?assertMatch(#{status := 0, stdout := <<>>}, atoll_cli_line:run(dir(Config), ["down", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% Groups too, which are changed over a connection that this program makes without the
%% carrier.
up_takes_a_carrier_and_links_shows_its_connections(Config) ->
    Program = atoll_cli_reef:up(dir(Config), ["4", "--groups", "2", "--carrier", "atoll", "--kind", "lanes2"]),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["links", "reef", "--json"]),
    #{<<"cluster">> := <<"reef">>, <<"links">> := Links, <<"silent">> := []} = atoll_cli_os:decode(Json),
    %% The two of each group, and the gateways.
    ?assertEqual([[1, 2], [1, 3], [3, 4]], lists:sort([lists:sort(atoll_cli_reef:numbers([F, T])) || #{<<"from">> := F, <<"to">> := T} <- Links])),
    [
        begin
            ?assertMatch(#{<<"kind">> := <<"lanes2">>, <<"connected_by">> := From}, Link),
            [?assert(is_integer(map_get(Key, Link)), Link) || Key <- [<<"rtt_us">>, <<"age_ms">>, <<"bytes_there">>, <<"bytes_back">>]]
        end
     || #{<<"from">> := From} = Link <- Links
    ],
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["links", "reef"]),
    [Head | Rows] = binary:split(Table, <<"\n">>, [global, trim]),
    ?assertMatch({match, _}, re:run(Head, "^from +to +kind +round trip +connected by +up for +bytes there +bytes back$")),
    Row = "^(reef[1-4]@127.0.0.1) +reef[1-4]@127.0.0.1 +lanes2 +(?:[1-9][0-9]* \x{b5}s|[1-9][0-9.,]* ms) +\\g1 +[0-9.]+ s +[0-9,]+ +[0-9,]+$",
    ?assertMatch([{match, _}, {match, _}, {match, _}], [re:run(R, Row, [unicode]) || R <- Rows], Table),
    ?assertMatch(
        #{status := 1, stdout := <<>>, stderr := <<"atoll links: No cluster named atoll is running, only reef.\n">>},
        atoll_cli_line:run(dir(Config), ["links"])
    ),
    ?assertMatch(#{status := 0}, atoll_cli_line:run(dir(Config), ["group", "new", "fish", "reef2", "reef4", "--name", "reef"])),
    ok = atoll_cli_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% And says so when there is no way any more, and why.
nodes_reach_each_other_over_gateways_and_route_says_how(Config) ->
    Program = atoll_cli_reef:up(dir(Config), ["6", "--groups", "2", "--gateways", "2", "--carrier", "atoll", "--relay", "--seal"]),
    Does = fun(Args) -> atoll_cli_line:run(dir(Config), Args ++ ["--name", "reef"]) end,
    #{status := 0, stdout := Json} = Does(["route", "reef3", "reef6", "--json"]),
    #{<<"path">> := Path, <<"hops">> := Hops, <<"alternatives">> := Others, <<"now">> := Now} = atoll_cli_os:decode(Json),
    [3, G, H, 6] = atoll_cli_reef:numbers(Path),
    ?assert(lists:member(G, [1, 2]) andalso lists:member(H, [4, 5])),
    ?assertMatch([[_, _, _, _], [_, _, _, _], [_, _, _, _]], Others),
    ?assertMatch(
        [#{<<"group">> := <<"group1">>, <<"choices">> := 1}, #{<<"group">> := <<"gateways">>, <<"choices">> := 2},
         #{<<"group">> := <<"group2">>, <<"choices">> := 2}],
        Hops
    ),
    ?assertEqual(#{<<"kind">> => <<"none">>, <<"path">> => null}, Now),
    %% A plain ping does it.
    ok = atoll_cli_reef:on_node(3, "pong = net_adm:ping('reef6@127.0.0.1')"),
    #{status := 0, stdout := Table} = Does(["route", "reef3", "reef6"]),
    ?assertMatch({match, _}, re:run(Table, "^from +to +why +others that would do$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef3@127.0.0.1 +reef[12]@127.0.0.1 +both are in group1 +-$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef[12]@127.0.0.1 +reef[45]@127.0.0.1 +both are in gateways +1$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^now +they are connected over reef[12]@127.0.0.1 reef[45]@127.0.0.1$", [multiline])),
    #{status := 0, stdout := Said} = atoll_cli_line:run(dir(Config), ["links", "reef", "--json"]),
    #{<<"links">> := Links, <<"relays">> := Relays} = atoll_cli_os:decode(Said),
    [#{<<"path">> := Over, <<"from">> := From, <<"sealed">> := true}] = [L || #{<<"kind">> := <<"relay">>} = L <- Links],
    ?assertMatch({[3, A, B, 6], [3]} when A < 3 andalso B > 3, {atoll_cli_reef:numbers(Over), atoll_cli_reef:numbers([From])}),
    ?assertEqual(lists:sort(atoll_cli_reef:numbers(Over) -- [3, 6]), atoll_cli_reef:numbers([Node || #{<<"node">> := Node, <<"circuits">> := 1} <- Relays])),
    %% Each plain node has the links of its group, and no more.
    ?assertEqual(2, length([L || #{<<"from">> := F, <<"to">> := T, <<"path">> := null} = L <- Links, lists:member(3, atoll_cli_reef:numbers([F, T]))])),
    #{status := 0, stdout := Shown} = atoll_cli_line:run(dir(Config), ["links", "reef"]),
    ?assertMatch({match, _}, re:run(Shown, "^reef3@127.0.0.1 +reef6@127.0.0.1 +relay .* reef[12]@127.0.0.1 reef[45]@127.0.0.1, sealed$", [multiline])),
    ?assertMatch({match, [_, _]}, re:run(Shown, "^reef[1245]@127.0.0.1 +1 +1 +0 +0 +0 +[0-9,]+ +134,217,728 +[0-9,]+$", [multiline, global])),
    [ok = atoll_cli_reef:on_node(I, "ok = application:stop(atoll)") || I <- [1, 2, 6]],
    [
        begin
            Line = iolist_to_binary(["atoll route: ", Sentence, $\n]),
            ?assertMatch({#{status := Status, stdout := <<>>, stderr := Line}, _}, {Does(["route" | Args]), Args})
        end
     || {Status, Args, Sentence} <- [
            {1, ["reef3", "reef4"], "no chain of groups and links leads from reef3@127.0.0.1 to reef4@127.0.0.1"},
            {1, ["reef6", "reef3"], "atoll does not run on this node"},
            {2, ["reef3", "reef7"], "the cluster has no node reef7; did you mean reef1?"},
            {2, ["reef3", "reef3@127.0.0.1"], "FROM and TO must be two nodes"}
        ]
    ],
    ok = atoll_cli_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

links_of_stock_nodes_are_shown_too(Config) ->
    ?assertMatch(
        #{status := 1, stdout := <<>>, stderr := <<"atoll links: No cluster named atoll is running", _/binary>>},
        atoll_cli_line:run(dir(Config), ["links"])
    ),
    Program = atoll_cli_os:start(dir(Config), ["up", "3"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down atoll\n">>),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["links", "--json"]),
    #{<<"links">> := [First, _, _]} = atoll_cli_os:decode(Json),
    ?assertMatch(
        #{<<"from">> := <<"atoll1@127.0.0.1">>, <<"to">> := <<"atoll2@127.0.0.1">>, <<"kind">> := <<"stock">>,
          <<"rtt_us">> := null, <<"connected_by">> := null, <<"age_ms">> := null},
        First
    ),
    #{status := 0, stdout := Table} = atoll_cli_line:run(dir(Config), ["links"]),
    ?assertMatch({match, _}, re:run(Table, "^atoll2@127.0.0.1 +atoll3@127.0.0.1 +stock +- +- +- +[0-9,]+ +[0-9,]+$", [multiline])),
    #{status := 0} = atoll_cli_line:run(dir(Config), ["down"]),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

up_holds_an_overlay_and_status_tells_of_it(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--overlay", "hyparview", "--option", "active_max=4", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
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
    ok = atoll_cli_reef:down(dir(Config), Program),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

groups_are_cliques_of_an_overlay(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "6", "--groups", "2", "--overlay", "cliques", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    [?assertMatch({match, _}, re:run(Said, Line, [multiline]), Said)
     || Line <- ["^reef1@127.0.0.1 +group1 gateways +3 +3 +6$", "^reef2@127.0.0.1 +group1 +2 +2 +6$",
                 "^reef4@127.0.0.1 +group2 gateways +3 +3 +6$", "^reef6@127.0.0.1 +group2 +2 +2 +6$"]].

a_topology_is_drawn_without_a_cluster(Config) ->
    ?assertMatch(
        #{status := 0, stdout := <<"group1  n1* n2 n5*\ngroup2  n3* n4 n1*\ngroup3  n5* n6 n3*\n3 groups", _/binary>>},
        atoll_cli_line:run(dir(Config), ["group", "draw", "ring", "--nodes", "6", "--group-size", "2"])
    ),
    [
        ?assertMatch(#{status := 2, stdout := <<>>}, atoll_cli_line:run(dir(Config), ["group", "draw" | Args]))
     || Args <- [["rng", "--nodes", "6", "--group-size", "2"], ["ring"], ["--nodes", "6"],
                 ["ring", "--nodes", "6", "--group-size", "2", "--gateways", "3"]]
    ].

dir(Config) ->
    proplists:get_value(dir, Config).
