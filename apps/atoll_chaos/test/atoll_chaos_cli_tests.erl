%% SPDX-License-Identifier: Apache-2.0
%% What the commands of chaos start, and show.
-module(atoll_chaos_cli_tests).

-include_lib("eunit/include/eunit.hrl").

%% Asked for by name or not: it is the same distribution.
the_stock_carrier_may_be_asked_for_test_() ->
    {timeout, 60, fun() ->
        Asked = fun(#{cluster := Cluster}) ->
            [Node] = atoll_cluster:nodes(Cluster),
            {started, atoll_cluster:call(Cluster, Node, init, get_argument, [proto_dist], 5000)}
        end,
        ?assertEqual({started, error}, atoll_chaos_cli:on(#{carrier => stock}, 1, none, Asked))
    end}.

%% What comes after it in the script may rest on it.
a_name_that_was_refused_is_told_so_test() ->
    Events = [
        #{
            at_ms => 1000, fault => name, nodes => [n1], target => {register, fish, shop}, outcome => done,
            recovered_ms => none, took_ms => 3, answer => Answer
        }
     || Answer <- [yes, {no, name_or_pid_already_registered}]
    ],
    Lines = table(#{events => Events, overlay => none, expectations => 0, failed => []}),
    ?assertMatch({match, _}, re:run(Lines, "answered in 3 ms\n.*answer: another process of the group has the name,"), Lines).

%% What is expected of groups needs no overlay.
expectations_are_counted_where_no_overlay_runs_test() ->
    Judged = fun(Count, Failed) -> table(#{events => [], overlay => none, expectations => Count, failed => Failed}) end,
    ?assertMatch({match, _}, re:run(Judged(2, [failure]), "expectations +2\nexpectations that failed +1\n")),
    ?assertEqual(nomatch, re:run(Judged(0, []), "expectations")).

table(Result) ->
    unicode:characters_to_binary(atoll_chaos_cli_result:table(Result#{left_out => 0, summary => [], groups => none}, [n1])).

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["chaos", "random", "--overlay", "mash"],
         "--overlay must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"mash\"; did you mean mesh?"},
        {["chaos", "random", "--overlay", "mesh", "-c", "reef"],
         "--overlay is for a cluster that is started, and --cluster and --node for one that runs, with the overlay that it has: "
         "not both"},
        {["chaos"], "one of run, random must follow; \"atoll help chaos\" says what they do"},
        {["chaos", "run"], "the argument SCRIPT is missing"},
        {["chaos", "run", "x.script", "--nodes", "0"], "--nodes must be a whole number from 1 to 100, not \"0\""},
        {["chaos", "random", "--rate", "0"], rate("0")},
        {["chaos", "random", "--rate", "1:0"], rate("1:0")},
        {["chaos", "random", "--rate", "1:2:3"], rate("1:2:3")},
        {["chaos", "random", "--jitter", "2"], "--jitter must be a share from 0 to 1, such as 0.5, not \"2\""},
        {["chaos", "random", "--start-after", "x"], "--start-after must be a number from 0 to 86,400, not \"x\""},
        {["chaos", "random", "--seconds", "x"], "--seconds must be a number above 0, at most 86,400, not \"x\""},
        {["chaos", "random", "--kinds", "node,node"],
         "--kinds must be some of process, node, pause, cut, slow, each once, with commas between, "
         "not \"node,node\""},
        {["chaos", "random", "--kinds", "node", "-c", "reef"],
         "--kinds: of a cluster that runs nodes are not killed here, since nobody would start them again"},
        {["chaos", "random", "--nodes", "1", "--kinds", "process,cut"], "--kinds: one node alone can be cut off from nobody"},
        {["chaos", "random", "--kinds", "node", "--what", "any"], "--what is for faults of the kind process, which --kinds leaves out"},
        {["chaos", "random", "--what", "shop"], what("shop")},
        {["chaos", "random", "--what", "application:shop=0"], what("application:shop=0")},
        {["chaos", "random", "--what", "any,"], what("any,")},
        {["chaos", "random", "--what", "any_name:shop"], what("any_name:shop")},
        {["chaos", "random", "--what", "any_name:group:=2"], what("any_name:group:=2")},
        {["chaos", "random", "--nodes", "3", "-c", "reef"],
         "--nodes is for a cluster that is started, and --cluster and --node for one that runs: not both"}
    ]).

rate(Typed) ->
    "--rate must be a number above 0, at most 1,000, or two such, from and to, as in 1:10, not \"" ++ Typed ++ "\"".

what(Typed) ->
    "--what must be any, any_name:global, any_name:group:NAME, or name:, supervisor:, module: or application: with a name; "
    "or several with commas between, each with a weight, such as application:shop=3,any=1, not \"" ++ Typed ++ "\"".

%% As they were typed, so that the line that repeats a run can be typed too.
what_is_typed_for_processes_is_what_a_script_says_and_is_typed_again_test_() ->
    Read = atoll_chaos_cli_processes:reader(),
    Options = [Option || #{name := what} = Option <- atoll_chaos_cli_random:options()],
    [
        {Typed, fun() ->
            ?assertEqual({ok, What}, Read(Typed)),
            ?assertEqual(ok, element(1, atoll_sim_step:check({kill_process, all, What}, 1))),
            ?assertEqual("atoll x --what " ++ Again, atoll_cli_again:line("x", Options, #{what => What}))
        end}
     || {Typed, What, Again} <- [
            {"any", any, "any"},
            {"name:a=b", {name, 'a=b'}, "name:a=b"},
            {"any_name:global", {any_name, global}, "any_name:global"},
            {"any_name:group:fish", {any_name, {group, fish}}, "any_name:group:fish"},
            {"application:shop=3,any=1", [{3, {application, shop}}, {1, any}], "application:shop=3,any=1"},
            {"application:shop=0.5,any_name:global,module:m=2", [{0.5, {application, shop}}, {1, {any_name, global}}, {2, {module, m}}],
                "application:shop=0.5,any_name:global=1,module:m=2"}
        ]
    ].
