%% SPDX-License-Identifier: Apache-2.0
%% `atoll group' on clusters that `atoll up' holds: groups are changed and shown, and names
%% are shown and checked.
-module(atoll_view_cli_group_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    groups_of_a_held_cluster_are_changed_and_shown/1,
    a_group_that_does_not_get_all_its_nodes_is_told/1,
    names_are_shown_and_checked/1,
    names_of_free_nodes_are_shown/1,
    a_topology_is_drawn_without_a_cluster/1,
    a_node_s_recordings_are_replayed/1
]).

%% How long what was started may outlive its program.
-define(GONE_MS, 5000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [groups_of_a_held_cluster_are_changed_and_shown,
     a_group_that_does_not_get_all_its_nodes_is_told,
     names_are_shown_and_checked,
     names_of_free_nodes_are_shown,
     a_topology_is_drawn_without_a_cluster,
     a_node_s_recordings_are_replayed].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

groups_of_a_held_cluster_are_changed_and_shown(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["5", "--groups", "2"]),
    Does = fun(Args) ->
        #{status := 0, stdout := Stdout} = atoll_cli_line:run(dir(Config), ["group" | Args] ++ ["-c", "reef"]),
        Stdout
    end,
    ?assertEqual(<<"group  fish\nnodes  reef2@127.0.0.1 reef5@127.0.0.1\n">>, Does(["new", "fish", "reef5", "reef2@127.0.0.1"])),
    ?assertEqual(
        #{<<"group">> => <<"fish">>, <<"nodes">> => [atoll_up_reef:node_of(2), atoll_up_reef:node_of(3), atoll_up_reef:node_of(5)], <<"added">> => [atoll_up_reef:node_of(3)], <<"left_out">> => []},
        atoll_cli_os:decode(Does(["add", "fish", "reef3", "reef2", "--json"]))
    ),
    ?assertEqual(
        #{<<"group">> => <<"fish">>, <<"nodes">> => [atoll_up_reef:node_of(3), atoll_up_reef:node_of(5)], <<"removed">> => [atoll_up_reef:node_of(2)]},
        atoll_cli_os:decode(Does(["remove", "fish", "reef2", "reef1", "--json"]))
    ),
    ?assertMatch({match, _}, re:run(Does(["list"]), "^fish +2 +2 +reef3@127.0.0.1 reef5@127.0.0.1$", [multiline])),
    #{<<"cluster">> := <<"reef">>, <<"free">> := [], <<"silent">> := [], <<"groups">> := Groups} = atoll_cli_os:decode(Does(["list", "--json"])),
    ?assertEqual(
        [{<<"fish">>, [3, 5], [3, 5]}, {<<"gateways">>, [1, 4], [1, 4]}, {<<"group1">>, [1, 2, 3], [1, 3]}, {<<"group2">>, [4, 5], [4, 5]}],
        [{Name, atoll_up_reef:numbers(Nodes), atoll_up_reef:numbers(Gateways)} || #{<<"group">> := Name, <<"nodes">> := Nodes, <<"gateways">> := Gateways} <- Groups]
    ),
    ?assertMatch({match, _}, re:run(Does(["draw"]), "^group2 +reef4@127.0.0.1\\* reef5@127.0.0.1\\*$", [multiline])),
    Svg = filename:join(dir(Config), "reef.svg"),
    Dot = filename:join(dir(Config), "reef.dot"),
    ?assertEqual(<<>>, Does(["draw", "--svg", Svg, "--dot", Dot])),
    {ok, Picture} = file:read_file(Svg),
    %% Five connections: 1-2, 1-3, 2-3 in a group, 4-5 in the other, 1-4 of the gateways, and 3-5.
    ?assertMatch({match, [_, _, _, _, _, _]}, re:run(Picture, "<path d=", [global])),
    {ok, <<"graph groups {", _/binary>>} = file:read_file(Dot),
    #{<<"group">> := <<"group1">>} = atoll_cli_os:decode(Does(["delete", "group1", "--json"])),
    ?assertMatch(#{<<"free">> := [_]}, atoll_cli_os:decode(Does(["list", "--json"]))),
    %% The same name far away, and which is meant.
    _ = Does(["new", "group2", "reef1", "reef2"]),
    ?assertMatch(
        #{status := 3, stderr := <<"atoll group delete: several groups are called group2; --at NODE says which is meant\n">>},
        atoll_cli_line:run(dir(Config), ["group", "delete", "group2", "-c", "reef"])
    ),
    #{<<"deleted_from">> := Gone} = atoll_cli_os:decode(Does(["delete", "group2", "--at", "reef2", "--json"])),
    ?assertEqual([1, 2], atoll_up_reef:numbers(Gone)),
    ok = atoll_up_reef:down(dir(Config), Program).

a_group_that_does_not_get_all_its_nodes_is_told(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["4", "--groups", "2"]),
    Fails = fun(Status, Args) ->
        #{status := Status, stdout := Stdout, stderr := Stderr} = atoll_cli_line:run(dir(Config), ["group" | Args] ++ ["-c", "reef"]),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr),
        {Stdout, Stderr}
    end,
    [
        ?assertMatch({<<>>, <<"atoll group ", _/binary>>}, Fails(Status, Args), Args)
     || {Status, Args} <- [
            {2, ["new", "fish", "reef1", "reef9"]},
            {3, ["new", "group1", "reef1"]},
            {3, ["new", "undefined", "reef1"]},
            {3, ["delete", "fish"]},
            {3, ["add", "fish", "reef1"]},
            {3, ["remove", "group1", "reef1", "reef2"]}
        ]
    ],
    #{<<"clusters">> := [#{<<"nodes">> := Nodes}]} = atoll_cli_os:decode(maps:get(stdout, atoll_cli_line:run(dir(Config), ["status", "--json"]))),
    [Pid] = [P || #{<<"node">> := <<"reef2@127.0.0.1">>, <<"os_pid">> := P} <- Nodes],
    ok = atoll_cli_os:signal(Pid, "KILL"),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Node reef2@127.0.0.1 went down.\n">>),
    {Json, _} = Fails(1, ["new", "fish", "reef2", "reef3", "--json"]),
    ?assertEqual(#{<<"group">> => <<"fish">>, <<"nodes">> => [atoll_up_reef:node_of(3)], <<"left_out">> => [atoll_up_reef:node_of(2)]}, atoll_cli_os:decode(Json)),
    {Listed, Silent} = Fails(1, ["list", "--json"]),
    ?assertMatch(#{<<"silent">> := [<<"reef2@127.0.0.1">>]}, atoll_cli_os:decode(Listed)),
    ?assertEqual(<<"atoll group list: these do not answer: reef2@127.0.0.1\n">>, Silent),
    ok = atoll_up_reef:down(dir(Config), Program).

names_are_shown_and_checked(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["5", "--groups", "2"]),
    Names = fun(Args) -> atoll_cli_line:run(dir(Config), ["group", "names" | Args] ++ ["-c", "reef"]) end,
    Register = "lists:foreach(fun({G, N, M}) -> yes = atoll_name:register(G, N, spawn(fun() -> receive after infinity -> ok end end), M) end, ",
    ok = atoll_up_reef:on_node(1, [Register, "[{group1, tea, undefined}, {group1, {\"two\", 2}, #{size => 7}}, {gateways, door, undefined}])"]),
    #{status := 0, stdout := Table, stderr := <<>>} = Names([]),
    [
        ?assertMatch({match, _}, re:run(Table, Line, [multiline]), Table)
     || Line <- [
            "^group +name +node +process +metadata$",
            "^group1 +tea +reef1@127.0.0.1 +<0\\.[0-9]+\\.0>$",
            "^group1 +{\"two\",2} +reef1@127.0.0.1 +<0\\.[0-9]+\\.0> +#{size => 7}$",
            "^gateways +door +reef1@127.0.0.1 +<0\\.[0-9]+\\.0>$"
        ]
    ],
    %% A process of its own, for a name that another node has lost, and one that it alone has.
    ok = atoll_up_reef:on_node(2, "true = ets:delete(atoll_name, {group1, tea}), true = ets:insert(atoll_name, {{group1, ghost}, self(), undefined, other})"),
    ok = atoll_up_reef:on_node(3, "true = ets:insert(atoll_name, {{group1, {\"two\", 2}}, whereis(init), undefined, other})"),
    #{status := 1, stdout := Json, stderr := Differ} = Names(["group1", "--json"]),
    ?assertEqual(<<"atoll group names: 3 names are not the same on all members\n">>, Differ),
    #{<<"cluster">> := <<"reef">>, <<"silent">> := [], <<"groups">> := [#{<<"group">> := <<"group1">>, <<"nodes">> := Nodes, <<"names">> := Shown}]} =
        atoll_cli_os:decode(Json),
    ?assertEqual([1, 2, 3], atoll_up_reef:numbers(Nodes)),
    {One, Two, Three} = {atoll_up_reef:node_of(1), atoll_up_reef:node_of(2), atoll_up_reef:node_of(3)},
    ?assertMatch(
        [
            #{<<"name">> := <<"ghost">>, <<"node">> := Two, <<"differ">> := [#{<<"member">> := One, <<"process">> := null}, #{<<"member">> := Three}]},
            #{<<"name">> := <<"tea">>, <<"node">> := One, <<"metadata">> := null, <<"differ">> := [#{<<"member">> := Two, <<"node">> := null}]},
            #{<<"name">> := <<"{\"two\",2}">>, <<"node">> := One, <<"metadata">> := <<"#{size => 7}">>,
              <<"differ">> := [#{<<"member">> := Three, <<"node">> := Three, <<"metadata">> := null}]}
        ],
        Shown
    ),
    #{status := 1, stdout := Differs} = Names(["--at", "reef3"]),
    ?assertMatch({match, _}, re:run(Differs, "tea .* reef2@127.0.0.1 has none$", [multiline]), Differs),
    ?assertMatch({match, _}, re:run(Differs, " reef3@127.0.0.1 has <0\\.[0-9]+\\.0> on reef3@127.0.0.1$", [multiline]), Differs),
    ?assertEqual(nomatch, re:run(Differs, "door")),
    %% One that says nothing is no difference.
    #{status := 0, stdout := Gateways} = Names(["gateways"]),
    ?assertEqual(nomatch, re:run(Gateways, "silent")),
    ok = atoll_up_reef:on_node(4, "halt(0, [{flush, false}])"),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Node reef4@127.0.0.1 went down.\n">>),
    #{status := 1, stdout := Silent, stderr := <<"atoll group names: these do not answer: reef4@127.0.0.1\n">>} = Names(["gateways"]),
    ?assertMatch({match, _}, re:run(Silent, "^\\(silent\\) +reef4@127.0.0.1$", [multiline]), Silent),
    [
        ?assertEqual({Status, <<>>, iolist_to_binary(["atoll group names: ", Sentence, "\n"])}, {Status1, Stdout, Stderr})
     || {Status, Args, Sentence} <- [
            {3, ["fish"], "no node that answers is in a group fish"},
            {3, ["group2", "--at", "reef1"], "no node that answers is in a group group2 with reef1"},
            {2, ["--at", "reef9"], "the cluster has no node reef9; did you mean reef1?"}
        ],
        #{status := Status1, stdout := Stdout, stderr := Stderr} <- [Names(Args)]
    ],
    [ok = atoll_up_reef:on_node(I, "halt(0, [{flush, false}])") || I <- [1, 2, 3, 5]],
    [_ = atoll_cli_os:await_line(Program, stderr, <<"Node ", (atoll_up_reef:node_of(I))/binary, " went down.\n">>) || I <- [1, 2, 3, 5]],
    ?assertMatch(#{status := 3, stdout := <<>>, stderr := <<"atoll group names: no node of the cluster answers\n">>}, Names([])).

%% They share one namespace; or each has its own, with the same name in it.
names_of_free_nodes_are_shown(Config) ->
    lists:foreach(
        fun({Overlay, Registered, Rows, Groups}) ->
            Program = atoll_cli_os:start(dir(Config), ["up", "3", "-c", "reef" | Overlay]),
            _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
            Await = io_lib:format("Look = fun Look() -> case length(s_group:own_nodes()) of ~b -> ok; _ -> Look() end end, Look()", [3 div Groups]),
            [ok = atoll_up_reef:on_node(I, Await) || I <- [1, 2, 3]],
            [ok = atoll_up_reef:on_node(I, "yes = s_group:register_name(undefined, tea, spawn(timer, sleep, [infinity]))") || I <- Registered],
            Names = fun(Args) ->
                #{status := 0, stdout := Stdout} = atoll_cli_line:run(dir(Config), ["group", "names" | Args] ++ ["-c", "reef"]),
                Stdout
            end,
            {match, Shown} = re:run(Names([]), "^\\(free nodes\\) +tea +reef[1-3]@127.0.0.1 +<", [multiline, global]),
            ?assertEqual(Rows, length(Shown)),
            #{<<"groups">> := Each} = atoll_cli_os:decode(Names(["undefined", "--json"])),
            ?assertEqual(Groups, length(Each)),
            ?assertMatch(#{status := 0}, atoll_cli_line:run(dir(Config), ["down", "-c", "reef"])),
            ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS))
        end,
        [{[], [2], 1, 1}, {["--overlay", "hyparview"], [1, 2, 3], 3, 3}]
    ).

%% With so many names that the order of a map is not that of its keys.
a_node_s_recordings_are_replayed(Config) ->
    Program = atoll_up_reef:up(dir(Config), ["4", "--groups", "2"]),
    Folder = fun(I) -> filename:join(dir(Config), "recorded" ++ integer_to_list(I)) end,
    [ok = atoll_up_reef:on_node(I, ["ok = atoll:record(\"", Folder(I), "\")"]) || I <- [1, 2]],
    Names = "[list_to_atom(lists:concat([name, I, \"of\", node()])) || I <- lists:seq(1, 100)]",
    [ok = atoll_up_reef:on_node(I, ["[yes = s_group:register_name(group1, N, spawn(timer, sleep, [infinity])) || N <- ", Names, "]"]) || I <- [1, 2]],
    %% Each forgets the other's names, and is told them again.
    Await = "Look = fun Look() -> case length(atoll_name:names(group1)) of 200 -> ok; _ -> _ = atoll_name:info(), Look() end end, Look()",
    ok = atoll_up_reef:on_node(1, "true = disconnect_node(hd(s_group:own_nodes(group1) -- [node()]))"),
    [ok = atoll_up_reef:on_node(I, Await) || I <- [1, 2]],
    ok = atoll_up_reef:on_node(1, "[ok = s_group:unregister_name(group1, N) || N <- " ++ Names ++ "]"),
    [ok = atoll_up_reef:on_node(I, "{ok, #{name := #{lost := 0}}} = atoll:record(off)") || I <- [1, 2]],
    Files = lists:append([filelib:wildcard(filename:join(Folder(I), "*.rec")) || I <- [1, 2]]),
    ?assertEqual(
        ["attr.rec", "group.rec", "link.rec", "name.rec", "place.rec"], [filename:basename(File) || File <- lists:sublist(Files, 5)]
    ),
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["sim", "replay", "--json" | Files]),
    #{<<"recordings">> := Recordings} = atoll_cli_os:decode(Json),
    ?assertEqual(10, length(Recordings)),
    [?assertMatch(#{<<"identical">> := true, <<"cut">> := false, <<"lost">> := 0}, Recording) || Recording <- Recordings],
    [?assert(Events > 200, Events) || #{<<"protocol">> := <<"atoll_name_core">>, <<"events">> := Events} <- Recordings],
    ok = atoll_up_reef:down(dir(Config), Program).

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
