%% SPDX-License-Identifier: Apache-2.0
%% Clusters that Atoll did not start, nodes of a plain erl with a cookie, looked at from outside as the
%% commands do.
-module(atoll_view_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    stock_nodes_are_looked_at_and_left_as_they_were/1,
    what_takes_atoll_says_so/1,
    the_environment_and_the_command_line_name_a_cluster_too/1,
    a_cluster_that_cannot_be_joined_is_told_why/1,
    a_user_without_a_home_names_the_cookie_s_file/1,
    harm_that_is_ended_by_a_signal_leaves_nothing/1,
    with_the_library_all_commands_work/1,
    a_cluster_that_takes_tls_is_looked_at/1,
    a_cluster_on_ipv6_alone_is_looked_at/1,
    a_cluster_with_short_names_is_looked_at/1
]).

-define(COOKIE, "sesame").
%% The machine may be busy.
-define(LATE_MS, 30000).

suite() ->
    [{timetrap, {minutes, 3}}].

%% In this order: the library is added last. Each can be run alone.
all() ->
    [stock_nodes_are_looked_at_and_left_as_they_were, what_takes_atoll_says_so,
     the_environment_and_the_command_line_name_a_cluster_too, a_cluster_that_cannot_be_joined_is_told_why,
     a_user_without_a_home_names_the_cookie_s_file, harm_that_is_ended_by_a_signal_leaves_nothing, with_the_library_all_commands_work, a_cluster_that_takes_tls_is_looked_at,
     a_cluster_on_ipv6_alone_is_looked_at, a_cluster_with_short_names_is_looked_at].

%% Who has started them must live as long.
init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, [?COOKIE, $\n]),
    Self = self(),
    Holder = spawn(fun() ->
        Peers = [start(Name, []) || Name <- ["shop1", "shop2", "shop3"]],
        Self ! {self(), Peers},
        receive
            stop -> lists:foreach(fun({Peer, _}) -> ok = peer:stop(Peer) end, Peers)
        end
    end),
    Ref = monitor(process, Holder),
    receive
        {Holder, Peers} ->
            true = demonitor(Ref),
            [First | _] = Nodes = [Node || {_, Node} <- Peers],
            [true = call(Peer, net_kernel, connect_node, [Node]) || {Peer, Own} <- Peers, Node <- Nodes, Node =/= Own],
            All = [{dir, Dir}, {cookie, Cookie}, {holder, Holder}, {peers, Peers}, {first, atom_to_list(First)} | Config],
            ?assertMatch(
                #{status := 0, stdout := <<>>, stderr := <<"Context prod is added, and in use.\n">>},
                run(All, ["context", "add", "prod", "--node", atom_to_list(First), "--cookie-file", Cookie])
            ),
            All;
        {'DOWN', Ref, process, Holder, Reason} ->
            error(Reason)
    end.

end_per_suite(Config) ->
    Holder = proplists:get_value(holder, Config),
    Ref = monitor(process, Holder),
    Holder ! stop,
    receive
        {'DOWN', Ref, process, Holder, Reason} -> normal = Reason
    end,
    atoll_cli_os:remove_dir(dir(Config)).

%% As a user would start it, without anything of ours.
start(Name, Args) ->
    start(Name, "127.0.0.1", Args).

start(Name, Host, Args) ->
    Options = #{
        name => Name, host => Host, longnames => lists:any(fun(C) -> lists:member(C, Host) end, ".:"), connection => standard_io, wait_boot => ?LATE_MS,
        args => ["-setcookie", ?COOKIE | Args], env => [{"ERL_LIBS", ""}, {"ERL_FLAGS", ""}, {"ERL_AFLAGS", ""}, {"ERL_ZFLAGS", ""}]
    },
    {ok, Peer, Node} = peer:start(Options),
    non_existing = call(Peer, code, which, [atoll]),
    %% OTP starts what looks up hosts when a node first connects to another, if only to answer one that has gone: here it is there before
    %% known/1 looks.
    {ok, _} = call(Peer, inet, gethostbyname, ["localhost"]),
    {Peer, Node}.

%% One that is paused answers when it goes on.
call(Peer, M, F, A) -> peer:call(Peer, M, F, A, ?LATE_MS).

dir(Config) -> proplists:get_value(dir, Config).

peers(Config) -> proplists:get_value(peers, Config).

run(Config, Args) -> atoll_cli_line:run(dir(Config), Args).

%% The object that a command prints.
told(Config, Args) ->
    #{status := 0, stdout := Json} = run(Config, Args ++ ["--json"]),
    atoll_cli_os:decode(Json).

%% What a node has of what looking might change.
known(Peer) ->
    #{
        nodes => lists:sort(call(Peer, erlang, nodes, [])),
        connected => lists:sort(call(Peer, erlang, nodes, [connected])),
        modules => lists:sort([M || {M, _} <- call(Peer, code, all_loaded, [])]),
        registered => lists:sort(call(Peer, erlang, registered, [])),
        applications => call(Peer, application, which_applications, [])
    }.

stock_nodes_are_looked_at_and_left_as_they_were(Config) ->
    Before = [known(Peer) || {Peer, _} <- peers(Config)],
    #{status := 0, stdout := Table, stderr := <<>>} = run(Config, ["status"]),
    [Head | Rows] = binary:split(Table, <<"\n">>, [global, trim]),
    ?assertMatch({match, _}, re:run(Head, "^cluster +node +state +connections ")),
    [?assertMatch({match, _}, re:run(Row, "^prod +shop[123]@127.0.0.1 +up +2 +\\(no atoll\\) +- +- +[0-9]+ MB +[0-9]+$"), Row) || Row <- Rows],
    ?assertEqual(3, length(Rows)),
    #{<<"clusters">> := [#{<<"name">> := <<"prod">>, <<"owner_pid">> := null, <<"nodes">> := Nodes}]} = told(Config, ["status"]),
    ?assertEqual(
        [atom_to_binary(Node) || {_, Node} <- lists:keysort(2, peers(Config))],
        [Node || #{<<"node">> := Node, <<"state">> := <<"up">>, <<"connections">> := 2, <<"atoll">> := <<"off">>, <<"memory">> := M} <- Nodes, M > 0]
    ),
    #{<<"cluster">> := <<"prod">>, <<"links">> := Links, <<"silent">> := []} = told(Config, ["links", "-c", "prod"]),
    ?assertMatch([_, _, _], Links),
    [?assertMatch(#{<<"kind">> := <<"stock">>, <<"bytes_there">> := There, <<"bytes_back">> := Back} when There > 0 andalso Back > 0, Link) || Link <- Links],
    ok = atoll_cli_line:as_node(fun() -> is_seen_by_nobody(Config) end),
    %% That a connection has gone is seen there a moment later.
    After = fun() -> [known(Peer) || {Peer, _} <- peers(Config)] end,
    _ = atoll_cli_os:await(fun() -> After() =:= Before end, ?LATE_MS),
    ?assertEqual(Before, After()).

%% Not even while it looks.
is_seen_by_nobody(Config) ->
    {_, First} = hd(peers(Config)),
    {ok, View} = atoll_view:open({joined, "shop", #{nodes => [First], cookie_file => proplists:get_value(cookie, Config)}}),
    All = lists:sort([Node || {_, Node} <- peers(Config)]),
    ?assertEqual(All, atoll_view:up(View)),
    [?assertEqual({Own, All -- [Own]}, {Own, lists:sort(call(Peer, erlang, nodes, []))}) || {Peer, Own} <- peers(Config)],
    {ok, Registered} = erl_epmd:names({127, 0, 0, 1}),
    ?assertEqual([], [Name || {Name, _} <- Registered, lists:prefix(Name ++ "@", atom_to_list(node()))]),
    ok.

what_takes_atoll_says_so(Config) ->
    Says = <<": Atoll does not run on the nodes of prod: \"atoll status\", \"links\", \"top\", \"metrics\", \"alarms\", \"watch\", \"chaos\" and \"debench\" work there; ">>,
    [
        begin
            #{status := 3, stdout := <<>>, stderr := Stderr} = run(Config, Args),
            ?assertMatch({_, _}, binary:match(Stderr, Says), Stderr)
        end
     || Args <- [["group", "list"], ["group", "new", "fish", "shop1"], ["group", "names"], ["route", "shop1", "shop2"],
                 ["place", "--where", "loadavg1 < 8"], ["distance", "matrix"]]
    ],
    ?assertMatch(
        #{status := 3, stderr := <<"atoll down: prod is a context: Atoll did not start that cluster, and does not stop it.\n">>},
        run(Config, ["down", "-c", "prod"])
    ).

the_environment_and_the_command_line_name_a_cluster_too(Config) ->
    #{status := 0} = run(Config, ["context", "use"]),
    ?assertMatch(#{status := 0, stdout := <<"No cluster is running.\n">>}, run(Config, ["status"])),
    First = proplists:get_value(first, Config),
    Cookie = proplists:get_value(cookie, Config),
    #{<<"links">> := Typed} = told(Config, ["links", "--node", First, "--cookie-file", Cookie]),
    true = os:putenv("ATOLL_NODE", First),
    true = os:putenv("ATOLL_COOKIE_FILE", Cookie),
    try
        #{<<"links">> := Links} = told(Config, ["links"]),
        ?assertEqual([3, 3], [length(L) || L <- [Typed, Links]])
    after
        true = os:unsetenv("ATOLL_NODE"),
        true = os:unsetenv("ATOLL_COOKIE_FILE")
    end,
    #{<<"in_use">> := null, <<"contexts">> := [#{<<"name">> := <<"prod">>, <<"tls_options_file">> := null}]} = told(Config, ["context", "list"]),
    #{status := 0} = run(Config, ["context", "use", "prod"]).

a_cluster_that_cannot_be_joined_is_told_why(Config) ->
    Wrong = filename:join(dir(Config), "wrong"),
    ok = file:write_file(Wrong, "open\n"),
    [
        begin
            #{status := 3, stdout := Stdout, stderr := Stderr} = run(Config, ["links", "--json" | Args]),
            ?assertMatch(#{<<"error">> := _}, atoll_cli_os:decode(Stdout)),
            ?assertMatch({match, _}, re:run(Stderr, Sentence), Stderr)
        end
     || {Args, Sentence} <- [
            {["--node", proplists:get_value(first, Config), "--cookie-file", Wrong], " is there, and does not let this program in: the cookie is not its cookie, its full name is another one, .* or it is stopped\\."},
            {["--node", "nobody_at_all@127.0.0.1"], "^atoll links: No node called nobody_at_all is registered on 127.0.0.1"},
            {["--node", "a@127.0.0.1", "--cookie-file", "no/such/file"], ": no/such/file: no such file or directory\n$"},
            {["-c", "nobody"], "^atoll links: No cluster named nobody is running; contexts: prod\\.\n$"}
        ]
    ].

%% As in a container.
a_user_without_a_home_names_the_cookie_s_file(Config) ->
    Node = proplists:get_value(first, Config),
    Status = fun(Without, Args) ->
        Program = atoll_cli_os:start(dir(Config), {sh, [Without, "; exec bin/atoll status --node ", Node | Args]}),
        atoll_cli_os:await_exit(Program, ?LATE_MS)
    end,
    [
        begin
            ?assertMatch(#{status := 0, stderr := <<>>}, Status(Without, [" --cookie-file ", proplists:get_value(cookie, Config)])),
            ?assertMatch(
                #{status := 3, stderr := <<"atoll status: There is no .erlang.cookie in HOME, and no other cookie file is named: --cookie-file FILE.\n">>},
                Status(Without, [])
            )
        end
     || Without <- ["unset HOME", "export HOME=/no/such"]
    ],
    %% That of the user is read where none is named.
    Home = dir(Config),
    File = filename:join(Home, ".erlang.cookie"),
    ok = file:write_file(File, [?COOKIE, $\n]),
    ?assertMatch(#{status := 0, stderr := <<>>}, Status(["export HOME=", Home], [])),
    ok = file:delete(File).

%% By KILL too, but then nobody says so.
harm_that_is_ended_by_a_signal_leaves_nothing(Config) ->
    Before = [known(Peer) || {Peer, _} <- peers(Config)],
    Changed = fun() ->
        Now = [maps:with([nodes, connected, registered], known(Peer)) || {Peer, _} <- peers(Config)],
        Ours = [M || {Peer, _} <- peers(Config), {M, _} <- call(Peer, code, all_loaded, []), lists:prefix("atoll_", atom_to_list(M))],
        {Now -- [maps:with([nodes, connected, registered], Known) || Known <- Before], Ours}
    end,
    [
        begin
            Program = atoll_cli_os:start(dir(Config), [
                "chaos", "random", "--node", proplists:get_value(first, Config), "--cookie-file", proplists:get_value(cookie, Config),
                "--kinds", "pause", "--rate", "5", "--seconds", "600"]),
            _ = atoll_cli_os:await_line(Program, stderr, <<"Doing harm">>),
            ok = atoll_cli_os:await(fun() -> element(2, Changed()) =/= [] end, ?LATE_MS),
            ok = atoll_cli_os:signal(Program, Signal),
            #{status := Status, stdout := Table, stderr := Said} =
                try atoll_cli_os:await_exit(Program, ?LATE_MS)
                catch error:Still -> error({Signal, Still})
                end,
            case Signal of
                "KILL" ->
                    ok;
                _ ->
                    ?assertMatch({Signal, 130, {match, _}}, {Signal, Status, re:run(Table, " heal +- *$", [multiline])}),
                    ?assertMatch({_, _}, binary:match(Said, <<"interrupted; all is healed\n">>))
            end,
            _ = atoll_cli_os:await(fun() -> Changed() =:= {[], []} end, ?LATE_MS),
            ?assertEqual({Signal, {[], []}}, {Signal, Changed()})
        end
     || Signal <- ["TERM", "HUP", "KILL"]
    ].

%% On the code path, and started; the directory is for the routes.
with_the_library_all_commands_work(Config) ->
    Paths = [filename:dirname(code:which(atoll))],
    [
        begin
            ok = call(Peer, code, add_paths, [Paths]),
            ok = call(Peer, application, load, [atoll]),
            ok = call(Peer, application, set_env, [atoll, directory, on]),
            {ok, _} = call(Peer, application, ensure_all_started, [atoll])
        end
     || {Peer, _} <- peers(Config)
    ],
    [One, Two, Three] = [atom_to_list(Node) || {_, Node} <- peers(Config)],
    {First, _} = hd(peers(Config)),
    ok = call(First, application, stop, [atoll]),
    Without = iolist_to_binary(["atoll group new: atoll does not run on ", One, "\n"]),
    ?assertMatch(#{status := 3, stdout := <<>>, stderr := Without}, run(Config, ["group", "new", "fish", One, Two])),
    {ok, _} = call(First, application, ensure_all_started, [atoll]),
    Unknown = <<"atoll group new: the cluster has no node else@here, or no other of its nodes is connected with it\n">>,
    ?assertMatch(#{status := 2, stderr := Unknown}, run(Config, ["group", "new", "fish", "else@here"])),
    #{<<"group">> := <<"fish">>, <<"nodes">> := [_, _]} = told(Config, ["group", "new", "fish", One, Two]),
    #{<<"group">> := <<"fish">>, <<"added">> := [Added]} = told(Config, ["group", "add", "fish", Three]),
    ?assertEqual(list_to_binary(Three), Added),
    #{<<"groups">> := [#{<<"group">> := <<"fish">>, <<"nodes">> := [_, _, _]}], <<"without">> := []} = told(Config, ["group", "list"]),
    yes = call(First, s_group, register_name, [fish, shop, call(First, erlang, whereis, [init])]),
    #{<<"groups">> := [#{<<"names">> := [#{<<"name">> := <<"shop">>, <<"differ">> := []}]}]} = told(Config, ["group", "names"]),
    %% Its own links a node knows at once; of the groups of others it hears.
    ok = atoll_cli_os:await(
        fun() ->
            case run(Config, ["route", "--json", One, Two]) of
                #{status := 0, stdout := Route} ->
                    #{<<"path">> := [_, _], <<"hops">> := [#{<<"group">> := Group}]} = atoll_cli_os:decode(Route),
                    Group =:= <<"fish">>;
                #{status := 3} ->
                    false
            end
        end,
        ?LATE_MS
    ),
    %% On a busy machine half a second is not much.
    ?assertMatch(
        #{<<"nodes">> := [_, _, _], <<"silent">> := [], <<"unreachable">> := []},
        told(Config, ["place", "--where", "mem_total > 1000", "--deadline", integer_to_list(?LATE_MS)])
    ),
    #{<<"pairs">> := Pairs, <<"silent">> := []} = told(Config, ["distance", "matrix", "--batches", "2", "--messages", "5"]),
    ?assertEqual(6, length(Pairs)),
    #{<<"clusters">> := [#{<<"nodes">> := [#{<<"atoll">> := <<"running">>, <<"groups">> := [_]} | _]}]} = told(Config, ["status"]),
    #{<<"links">> := [_, _, _]} = told(Config, ["links"]),
    ?assertMatch(#{status := 0}, run(Config, ["group", "delete", "fish"])).

%% A VM speaks TLS if it was started so: it takes the program itself.
a_cluster_that_takes_tls_is_looked_at(Config) ->
    Options = tls_options(dir(Config)),
    {Peer, Node} = start("tls", ["-proto_dist", "inet_tls", "-ssl_dist_optfile", Options]),
    try
        Cookie = proplists:get_value(cookie, Config),
        #{status := 0} = run(Config, ["context", "add", "safe", "--node", atom_to_list(Node), "--cookie-file", Cookie, "--tls-options-file", Options]),
        %% Certificates are read, and keys agreed on: on a busy machine that may be too long for once.
        InTime = fun InTime(Args, Cwd, Deadline) ->
            case atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), Args, Cwd), ?LATE_MS) of
                #{status := 0} = Ended -> Ended;
                Ended -> ?assert(erlang:monotonic_time(millisecond) < Deadline, Ended), InTime(Args, Cwd, Deadline)
            end
        end,
        Run = fun(Args, Cwd) -> InTime(Args, Cwd, erlang:monotonic_time(millisecond) + ?LATE_MS) end,
        _ = Run(["links", "-c", "safe"], atoll_cli_os:root()),
        #{stdout := Table} = Run(["status", "-c", "safe"], atoll_cli_os:root()),
        ?assertMatch({match, _}, re:run(Table, ["\nsafe +", atom_to_list(Node), " +up +0 "])),
        %% OTP would look for a mere name in the code path.
        Named = ["status", "--node", atom_to_list(Node), "--cookie-file", Cookie, "--tls-options-file", filename:basename(Options)],
        _ = Run(Named, filename:dirname(Options)),
        %% Without it nobody is let in.
        ?assertMatch(#{status := 3}, run(Config, ["status", "--node", atom_to_list(Node), "--cookie-file", Cookie]))
    after
        peer:stop(Peer)
    end.

%% Its own protocol is OTP's for it, too.
a_cluster_on_ipv6_alone_is_looked_at(Config) ->
    case gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            Cookie = ["--cookie-file", proplists:get_value(cookie, Config)],
            {Peer, Node} = start("six", "::1", ["-proto_dist", "inet6_tcp"]),
            try
                #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["status", "--node", atom_to_list(Node) | Cookie]),
                ?assertMatch({match, _}, re:run(Table, "six@::1 +up +0 ")),
                #{status := 3, stderr := Said} = atoll_cli_os:run(dir(Config), ["status", "--node", "seven@::1" | Cookie]),
                ?assertMatch({_, _}, binary:match(Said, <<"No node called seven is registered on ::1">>))
            after
                peer:stop(Peer)
            end;
        {error, Reason} ->
            {skip, {"this machine has no IPv6", Reason}}
    end.

%% This machine's own name has an IPv4 address, and with OTP an IPv6 one too, by which the node is
%% not there.
a_cluster_with_short_names_is_looked_at(Config) ->
    {ok, Here} = inet:gethostname(),
    [Host | _] = string:split(Here, "."),
    {Peer, Node} = start("short", Host, []),
    try
        Args = ["status", "--node", atom_to_list(Node), "--cookie-file", proplists:get_value(cookie, Config)],
        #{status := Status, stdout := Table, stderr := Said} = atoll_cli_os:run(dir(Config), Args),
        ?assertMatch({0, <<>>}, {Status, Said}),
        ?assertMatch({match, _}, re:run(Table, [$\s, atom_to_list(Node), " +up +0 "]))
    after
        peer:stop(Peer)
    end.

%% Certificates of an authority of the test's own, both ways.
tls_options(Dir) ->
    Chain = #{root => [{key, {namedCurve, secp256r1}}], intermediates => [], peer => [{key, {namedCurve, secp256r1}}]},
    #{server_config := Server, client_config := Client} = public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    Sides = [{server, Server, [{verify, verify_none}]}, {client, Client, [{verify, verify_none}]}],
    File = filename:join(Dir, "tls.options"),
    Terms = [{Side, pems(Dir, Side, Made) ++ More} || {Side, Made, More} <- Sides],
    ok = file:write_file(File, io_lib:format("~tp.~n", [Terms])),
    File.

pems(Dir, Side, Made) ->
    {Type, Key} = proplists:get_value(key, Made),
    [
        begin
            File = filename:join(Dir, lists:concat([Side, ".", Name])),
            ok = file:write_file(File, public_key:pem_encode(Entries)),
            {Name, File}
        end
     || {Name, Entries} <- [
            {certfile, [{'Certificate', proplists:get_value(cert, Made), not_encrypted}]},
            {keyfile, [{Type, Key, not_encrypted}]},
            {cacertfile, [{'Certificate', Der, not_encrypted} || Der <- proplists:get_value(cacerts, Made)]}
        ]
    ].
