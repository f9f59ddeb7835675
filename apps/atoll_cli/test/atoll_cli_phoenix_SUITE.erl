%% SPDX-License-Identifier: Apache-2.0
%% Atoll's adapter for Phoenix.PubSub (elixir/atoll_pubsub) on six nodes in two groups of which one node is in both,
%% beside the adapter that Phoenix has itself; and docs/howto-phoenix.md, from an empty directory.
%%
%% Phoenix.PubSub cannot be had without Hex: test/double there is what it is published to do. The page is followed with the
%% library itself where PHOENIX_PUBSUB names a folder that has it.
-module(atoll_cli_phoenix_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_group/2, end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([
    what_was_followed_is_in_every_claim/1,
    a_message_reaches_every_subscriber_once/1,
    a_direct_message_reaches_one_node/1,
    a_tracked_topic_goes_to_those_who_follow_it/1,
    who_has_just_followed_misses_nothing/1,
    a_node_in_doubt_sends_to_all/1,
    a_node_that_starts_again_leaves_nobody_out/1,
    the_publisher_is_told_what_is_not_sent/1,
    what_waits_is_bounded_and_counted/1,
    a_wrong_option_is_a_sentence/1,
    the_examples_are_the_files_of_the_page/1,
    the_page_from_an_empty_directory/1
]).

-define(P, atoll_cli_phoenix_probe).
-define(ATOLL, 'Elixir.Atoll.PubSub').
-define(CALL_MS, 60000).
%% Long enough for a slow machine to be in it, and not much to wait for.
-define(OPTIONS, [{tracked, [<<"room:">>]}, {few, 2}, {doubt_ms, 3000}]).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [{group, nodes}, the_examples_are_the_files_of_the_page | deep(atoll_tier:tier())].

%% A reader has builds to wait for.
deep(fast) -> [];
deep(deep) -> [the_page_from_an_empty_directory].

groups() -> [{nodes, [], cases(atoll_tier:tier())}].

cases(fast) ->
    [
        what_was_followed_is_in_every_claim,
        a_message_reaches_every_subscriber_once,
        a_tracked_topic_goes_to_those_who_follow_it,
        who_has_just_followed_misses_nothing,
        a_wrong_option_is_a_sentence
    ];
cases(deep) ->
    cases(fast) ++ [
        a_direct_message_reaches_one_node,
        a_node_in_doubt_sends_to_all,
        a_node_that_starts_again_leaves_nobody_out,
        the_publisher_is_told_what_is_not_sent,
        what_waits_is_bounded_and_counted
    ].

init_per_suite(Config) ->
    case os:find_executable("elixir") of
        false -> [{elixir, none} | Config];
        Elixir -> [{elixir, Elixir} | Config]
    end.

end_per_suite(_Config) -> ok.

%% It is compiled once, by the Elixir that then runs the tests of what is pure.
init_per_group(nodes, Config) ->
    case ?config(elixir, Config) of
        none ->
            {skip, "Elixir is not installed"};
        _ ->
            Dir = atoll_cli_os:new_dir(),
            case compiled(Dir) of
                #{status := 0, stdout := Said} ->
                    Cluster = cluster(paths(Dir, Said)),
                    [{dir, Dir}, {said, Said}, {cluster, Cluster} | Config];
                #{stdout := Out, stderr := Err} ->
                    ok = atoll_cli_os:remove_dir(Dir),
                    case re:run([Out, Err], "elixir_|OTP", [{capture, none}]) of
                        match when Out =:= <<>> ->
                            {skip, lists:flatten(["the Elixir that is installed does not run on OTP ", erlang:system_info(otp_release)])};
                        _ ->
                            error({not_compiled, Out, Err})
                    end
            end
    end.

end_per_group(nodes, Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)),
    atoll_cli_os:remove_dir(?config(dir, Config)).

compiled(Dir) ->
    Package = filename:join([atoll_cli_os:root(), "elixir", "atoll_pubsub"]),
    Script = "
        [root, out] = System.argv()
        files = Path.wildcard(root <> \"/test/double/lib/*.ex\") ++ Path.wildcard(root <> \"/lib/**/*.ex\")
        {:ok, _, []} = Kernel.ParallelCompiler.compile_to_path(files, out)
        true = Code.prepend_path(out)
        for app <- [:elixir, :logger], do: IO.puts(\"path \" <> Application.app_dir(app, \"ebin\"))
        Code.require_file(root <> \"/test/test_helper.exs\")
        for file <- Path.wildcard(root <> \"/test/*_test.exs\"), do: Code.require_file(file)
    ",
    File = filename:join(Dir, "compile.exs"),
    Out = filename:join(Dir, "ebin"),
    ok = file:make_dir(Out),
    ok = file:write_file(File, Script),
    Command = lists:flatten(["ATOLL_TEST_SEED=", integer_to_list(atoll_tier:seed(?MODULE) rem 1000000),
        " exec elixir -pa ", filename:dirname(code:which(atoll)), " ", File, " ", Package, " ", Out]),
    atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, Command}, Dir), 240000).

paths(Dir, Said) ->
    {match, Paths} = re:run(Said, "^path (.*)$", [global, multiline, {capture, all_but_first, list}]),
    [filename:join(Dir, "ebin") | lists:append(Paths)].

%% Nodes 1 to 3 and 3 to 6: the third is the gateway.
cluster(Paths) ->
    atoll_cluster_owned:start(#{
        nodes => 6, connect_all => false, apps => [atoll],
        args => fun(Nodes) ->
            Groups = [{north, lists:sublist(Nodes, 3)}, {south, lists:nthtail(2, Nodes)}],
            ["-pa" | Paths] ++ ["-atoll", "overlay", "cliques", "-atoll", "s_groups", lists:flatten(io_lib:format("~tw", [Groups]))]
        end
    }).

init_per_testcase(the_page_from_an_empty_directory, Config) ->
    case ?config(elixir, Config) of
        none -> {skip, "Elixir is not installed"};
        _ -> [{page_dir, atoll_cli_os:new_dir()} | Config]
    end;
init_per_testcase(_Case, Config) ->
    Config.

end_per_testcase(Case, Config) ->
    _ = [atoll_cli_reader:take_down(Dir) || {page_dir, Dir} <- Config],
    _ = [on(C, atoll_cluster:nodes(C), stop, []) || {cluster, C} <- Config, Case =/= what_was_followed_is_in_every_claim],
    ok.

call(C, Node, M, F, A) -> atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

on(C, Nodes, F, Args) ->
    ?assertEqual([], [A || {_, Answer} = A <- atoll_overlay_cluster:each(C, Nodes, ?P, F, Args), Answer =/= ok]).

%% All have started it, and are sure of what the others claim.
started(C, Options) ->
    Nodes = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_overlay_witness, start, []) || N <- Nodes],
    [ok = call(C, N, atoll_overlay_witness, await, [members, lists:sort(Nodes)]) || N <- Nodes],
    on(C, Nodes, start, [Options]),
    Nodes.

got(C, Nodes, Name) -> [call(C, N, ?P, got, [Name]) || N <- Nodes].

%% The tests of the package that need no nodes have run when it was compiled.
what_was_followed_is_in_every_claim(Config) ->
    ?assertMatch({match, _}, re:run(?config(said, Config), "4 tests, 0 failures")).

a_message_reaches_every_subscriber_once(Config) ->
    C = ?config(cluster, Config),
    [A, B, G | Others] = Nodes = started(C, []),
    on(C, Nodes, subscriber, [s1, none, [{far, <<"news">>}, {near, <<"news">>}]]),
    on(C, Nodes, subscriber, [s2, none, [{far, <<"news">>}]]),
    ok = call(C, A, atoll_overlay_witness, await, [neighbours, lists:sort([B, G])]),
    %% What `pg' knows is what is connected: the gateway and the other one of the group, and hardly ever one with which there
    %% was something to settle.
    ok = call(C, A, ?P, publish, [near, <<"news">>, near]),
    Near = lists:sort([node(P) || P <- call(C, A, pg, get_members, ['Elixir.Phoenix.PubSub', 'Elixir.near.Adapter'])]),
    on(C, [A, B, G], await, [s1, near]),
    ?assertEqual([], [B, G] -- Near),
    [ok = call(C, A, ?P, publish, [far, <<"news">>, N]) || N <- [1, 2, 3]],
    on(C, Nodes, await, [s1, 3]),
    on(C, Nodes, await, [s2, 3]),
    %% Nothing is under way any more when another one's has come.
    ok = call(C, lists:last(Others), ?P, publish, [far, <<"news">>, last]),
    on(C, Nodes, await, [s1, last]),
    on(C, Nodes, await, [s2, last]),
    ?assertEqual([[near, 1, 2, 3, last] || _ <- [A, B, G]], got(C, [A, B, G], s1)),
    ?assertEqual([[1, 2, 3, last] || _ <- Nodes -- Near], got(C, Nodes -- Near, s1)),
    ?assertEqual([[1, 2, 3, last] || _ <- Nodes], got(C, Nodes, s2)).

a_direct_message_reaches_one_node(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = started(C, []),
    Far = lists:last(Nodes),
    on(C, Nodes, subscriber, [s, none, [{far, <<"news">>}]]),
    [ok = call(C, A, 'Elixir.Phoenix.PubSub', direct_broadcast, [N, far, <<"news">>, {atoll_cli, N}]) || N <- [B, Far, A]],
    [ok = call(C, N, ?P, await, [s, N]) || N <- [A, B, Far]],
    ok = call(C, A, ?P, publish, [far, <<"news">>, last]),
    on(C, Nodes, await, [s, last]),
    ?assertEqual([[N || lists:member(N, [A, B, Far])] ++ [last] || N <- Nodes], got(C, Nodes, s)),
    ?assertEqual(A, call(C, A, 'Elixir.Phoenix.PubSub', node_name, [far])).

a_tracked_topic_goes_to_those_who_follow_it(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = started(C, ?OPTIONS),
    Far = lists:last(Nodes),
    on(C, Nodes, await_status, [doubt, false]),
    Room = <<"room:1">>,
    on(C, [B, Far], subscriber, [s, ?ATOLL, [{far, Room}]]),
    #{claims := Claims} = call(C, A, ?ATOLL, status, [far]),
    ?assertEqual([B, Far], lists:sort([N || {N, 1} <- maps:to_list(Claims)])),
    ok = call(C, A, ?P, publish, [far, Room, 1]),
    ok = call(C, A, ?P, publish, [far, <<"room:none">>, 1]),
    on(C, [B, Far], await, [s, 1]),
    ?assertMatch(#{to_few := 2, sent := 2, to_all := 0}, call(C, A, ?ATOLL, status, [far])),
    ?assertEqual([case lists:member(N, [B, Far]) of true -> 1; false -> 0 end || N <- Nodes],
                 [maps:get(received, call(C, N, ?ATOLL, status, [far])) || N <- Nodes]),
    %% More than two follow it: by the overlay, to all.
    [_, _, G | _] = Nodes,
    on(C, [G], subscriber, [s, ?ATOLL, [{far, Room}]]),
    ok = call(C, A, ?P, publish, [far, Room, 2]),
    on(C, [B, G, Far], await, [s, 2]),
    ?assertMatch(#{to_few := 2, to_all := 1}, call(C, A, ?ATOLL, status, [far])),
    %% One has ended, and nobody is told so before the node looks.
    true = call(C, G, erlang, exit, [call(C, G, erlang, whereis, [s]), kill]),
    tidy = call(C, G, erlang, send, ['Elixir.far.Adapter.Follower', tidy]),
    Left = maps:from_list([{N, case lists:member(N, [B, Far]) of true -> 1; false -> 0 end} || N <- Nodes]),
    on(C, Nodes, await_status, [claims, Left]),
    ok = call(C, A, ?P, publish, [far, Room, 3]),
    on(C, [B, Far], await, [s, 3]),
    ?assertEqual([[1, 2, 3], [1, 2, 3]], got(C, [B, Far], s)),
    ?assertMatch(#{to_few := 3, to_all := 1}, call(C, A, ?ATOLL, status, [far])).

%% The publisher is asked when the follower's call has returned: from then on nothing may be missing.
who_has_just_followed_misses_nothing(Config) ->
    C = ?config(cluster, Config),
    [A | _] = Nodes = started(C, ?OPTIONS),
    Far = lists:last(Nodes),
    on(C, Nodes, await_status, [doubt, false]),
    [begin
         Room = iolist_to_binary(io_lib:format("room:s~b", [N])),
         Name = list_to_atom("stream" ++ integer_to_list(N)),
         ok = call(C, A, ?P, stream, [Name, Room]),
         {Ms, Last, Missing} = call(C, Far, ?P, follow_stream, [{Name, A}, Room]),
         ct:pal("~b ms until it was followed, ~b published by then", [Ms, Last]),
         ?assertEqual([], Missing)
     end
     || N <- [1, 2, 3]],
    #{to_few := Few, to_all := 0} = call(C, A, ?ATOLL, status, [far]),
    ?assert(Few > 300).

%% One that has started has no claims that it can be sure of.
a_node_in_doubt_sends_to_all(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = started(C, [{doubt_ms, 600000} | proplists:delete(doubt_ms, ?OPTIONS)]),
    Far = lists:last(Nodes),
    %% Who does not say that it follows gets what goes to all.
    on(C, [Far], subscriber, [s, none, [{far, <<"room:1">>}]]),
    on(C, [B], subscriber, [s, ?ATOLL, [{far, <<"room:1">>}]]),
    ok = call(C, A, ?P, publish, [far, <<"room:1">>, 1]),
    on(C, [B, Far], await, [s, 1]),
    ?assertMatch(#{doubt := true, to_all := 1, to_few := 0}, call(C, A, ?ATOLL, status, [far])).

%% What it had followed is forgotten; what others follow it does not know when it publishes first.
a_node_that_starts_again_leaves_nobody_out(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = started(C, ?OPTIONS),
    Far = lists:last(Nodes),
    Room = <<"room:1">>,
    on(C, [B, Far], subscriber, [s, ?ATOLL, [{far, Room}]]),
    ok = atoll_cluster:kill(C, B),
    ok = atoll_cluster:restart(C, B),
    ok = call(C, B, atoll_overlay_witness, start, []),
    ok = call(C, B, atoll_overlay_witness, await, [members, lists:sort(Nodes)]),
    on(C, [B], start, [?OPTIONS]),
    ok = call(C, B, ?P, publish, [far, Room, 1]),
    on(C, [Far], await, [s, 1]),
    Left = maps:from_list([{N, case N of Far -> 1; _ -> 0 end} || N <- Nodes]),
    on(C, [A, B], await_status, [claims, Left]),
    on(C, [A, B], await_status, [doubt, false]),
    [ok = call(C, N, ?P, publish, [far, Room, N]) || N <- [A, B]],
    [on(C, [Far], await, [s, N]) || N <- [A, B]],
    ?assertMatch(#{to_all := 1, to_few := 1, sent := 1}, call(C, B, ?ATOLL, status, [far])),
    ?assertEqual([1, A, B], lists:sort(hd(got(C, [Far], s)))).

the_publisher_is_told_what_is_not_sent(Config) ->
    C = ?config(cluster, Config),
    [A | _] = Nodes = started(C, []),
    on(C, Nodes, subscriber, [s, none, [{far, <<"news">>}]]),
    %% Together more than the overlay keeps for those who miss it. What was refused has come to nobody, here neither.
    Sent = call(C, A, ?P, publish_until_refused, [<<"news">>, 15 bsl 20]),
    ok = call(C, A, ?P, publish_again, [<<"news">>, last]),
    on(C, Nodes, await, [s, last]),
    ?assertEqual([lists:duplicate(Sent, {bytes, 15 bsl 20}) ++ [last] || _ <- Nodes], got(C, Nodes, s)),
    #{refused := Refused, to_all := ToAll} = call(C, A, ?ATOLL, status, [far]),
    ?assertEqual(Sent + 1, ToAll),
    ?assert(Refused >= 1).

what_waits_is_bounded_and_counted(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = started(C, [{queue_max, 20}]),
    on(C, [B], subscriber, [s, none, [{far, <<"news">>}]]),
    ok = call(C, B, sys, suspend, ['Elixir.far.Adapter']),
    [ok = call(C, A, 'Elixir.Phoenix.PubSub', direct_broadcast, [B, far, <<"news">>, {atoll_cli, N}]) || N <- lists:seq(1, 60)],
    ok = call(C, A, ?P, publish, [far, <<"news">>, last]),
    %% What is suspended is not read: all that was sent waits.
    Waits = fun() -> {message_queue_len, N} = call(C, B, erlang, process_info, [call(C, B, erlang, whereis, ['Elixir.far.Adapter']), message_queue_len]), N >= 61 end,
    ok = atoll_cli_os:await(Waits, 30000),
    ok = call(C, B, sys, resume, ['Elixir.far.Adapter']),
    ok = call(C, B, ?P, await, [s, last]),
    [Got] = got(C, [B], s),
    ?assertEqual(lists:seq(62 - length(Got), 60) ++ [last], Got),
    #{dropped := Dropped, received := Received} = call(C, B, ?ATOLL, status, [far]),
    ?assertEqual(61, Dropped + Received),
    ?assert(Received =< 22, Received).

a_wrong_option_is_a_sentence(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    [begin
         {error, Reason} = call(C, A, ?P, start, [[Option]]),
         ?assertMatch({match, _}, re:run(io_lib:format("~tp", [Reason]), Sentence))
     end
     || {Option, Sentence} <- [
            {{tracked, <<"room:">>}, "the option :tracked is a list of prefixes, none of them empty, not"},
            {{few, 0}, "the option :few is a number above 0, not 0"}
        ]].

the_examples_are_the_files_of_the_page(_Config) ->
    Root = filename:join([atoll_cli_os:root(), "docs", "examples", "phoenix"]),
    Example = [{File, read(filename:join(Root, File))}
               || File <- filelib:wildcard("**", Root), filelib:is_regular(filename:join(Root, File))],
    ?assertEqual(lists:sort(Example), lists:sort([{File, Text} || {file, File, Text} <- page()])).

the_page_from_an_empty_directory(Config) ->
    Double = filename:join([atoll_cli_os:root(), "elixir", "atoll_pubsub", "test", "double"]),
    Library = os:getenv("PHOENIX_PUBSUB", Double),
    Dir = ?config(page_dir, Config),
    ok = atoll_cli_reader:checkout(Dir),
    atoll_cli_reader:follow([{commands, [iolist_to_binary(["cp -R ", Library, " ../phoenix_pubsub"]), <<"export PHOENIX_PUBSUB=$(cd ../phoenix_pubsub && pwd)">>]} | page()], Dir).

page() -> atoll_cli_page:steps(atoll_cli_page:read("docs/howto-phoenix.md")).

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.
