%% What is wrong with a command line is said in one sentence that names the
%% flag, before anything is started. No command here gets as far as a cluster.
-module(atoll_cli_tests).
-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    [{string:join(["atoll" | Args], " "),
      ?_assertEqual({usage, Sentence}, outcome(Args))}
     || {Args, Sentence} <- wrong()].

wrong() ->
    [
        {[], "a command is missing; \"atoll help\" lists them"},
        {["frobnicate"], "there is no command \"frobnicate\"; \"atoll help\" lists them"},
        {["orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["help", "orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["orbit", "--generators", "g6"],
         "--generators must be g and some of the digits 1 to 5 in order, such as g124, not \"g6\""},
        {["orbit", "--generators", "g421"],
         "--generators must be g and some of the digits 1 to 5 in order, such as g124, not \"g421\""},
        {["orbit", "--space", "0"], "--space must be a whole number from 1 to 1,000,000,000, not \"0\""},
        {["orbit", "--space", "abc"], "--space must be a whole number from 1 to 1,000,000,000, not \"abc\""},
        {["orbit", "--space", "-5"], "--space must be a whole number from 1 to 1,000,000,000, not \"-5\""},
        {["orbit", "--space", "1.5"], "--space must be a whole number from 1 to 1,000,000,000, not \"1.5\""},
        {["orbit", "--space", "1000000001"],
         "--space must be a whole number from 1 to 1,000,000,000, not \"1000000001\""},
        {["orbit", "--space="], "--space must be a whole number from 1 to 1,000,000,000, not \"\""},
        {["orbit", "--space"], "--space needs a value"},
        {["orbit", "--space", "10", "--space", "10"], "--space is given twice"},
        {["orbit", "--json", "--json"], "--json is given twice"},
        {["orbit", "--json=yes"], "--json takes no value"},
        {["orbit", "--mode", "star"],
         "--mode must be one of seq, par, mesh, groups, ring, groups-native, not \"star\""},
        {["orbit", "--nodes", "0"], "--nodes must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "1001"],
         "--nodes must be a whole number from 1 to 1,000, not \"1001\""},
        {["orbit", "--workers", "none"],
         "--workers must be a whole number from 1 to 1,000, not \"none\""},
        {["orbit", "--group-size", "0"],
         "--group-size must be a whole number from 1 to 1,000, not \"0\""},
        {["orbit", "--nodes", "2", "--group-size", "3"],
         "--group-size must be at most --nodes, which is 2, not \"3\""},
        {["orbit", "--group_size", "3"],
         "there is no option --group_size; did you mean --group-size?"},
        {["orbit", "--frobnicate=3"], "there is no option --frobnicate"},
        {["orbit", "-n", "3"], "there is no option -n"},
        {["orbit", "g124"], "the argument \"g124\" is one too many"},
        {["up"], "the argument N is missing"},
        {["up", "many"], "N must be a whole number from 1 to 1,000, not \"many\""},
        {["up", "3", "4"], "the argument \"4\" is one too many"},
        {["up", "3", "--groups", "4"],
         "--groups must be at most the number of nodes, which is 3, not \"4\""},
        {["up", "3", "--groups", "0"],
         "--groups must be a whole number from 1 to 1,000, not \"0\""},
        {["up", "3", "--name", "a b"],
         "--name must be a letter and at most 39 letters, digits, _ or -, not \"a b\""},
        {["bench", "run", "--out", "dist", "names", "--actors", "1"], "there is no option --actors"},
        {["bench", "run", "--json", "names", "--actors", "1"], "there is no option --actors"},
        {["bench", "run", "--rounds", "names", "--out=dist", "nmaes"], "there is no benchmark \"nmaes\"; did you mean names?"},
        {["up", "3", "--overlay", "hyparvew"],
         "--overlay must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"hyparvew\"; did you mean hyparview?"},
        {["up", "3", "--overlay", "cliques"],
         "--overlay cliques wants --groups K: the groups say who is in which clique"},
        {["up", "3", "--option", "active_max=4"],
         "--option is for a strategy, and --overlay, which says which one, is missing"},
        {["up", "3", "--overlay", "hyparview", "--option", "active_max=x"],
         "--option: the option active_max must be a whole number from 1 to 2147483647, not \"x\""},
        {["chaos", "random", "--overlay", "mash"],
         "--overlay must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"mash\"; did you mean mesh?"},
        {["chaos", "random", "--overlay", "mesh", "--name", "reef"],
         "--overlay is for a cluster that is started, and --name for one that runs, with the overlay that it has: "
         "not both"},
        {["status", "--wide"], "there is no option --wide"},
        {["down", "a", "b"], "the argument \"b\" is one too many"},
        {["demo", "9"], "the argument \"9\" is one too many"},
        {["help", "up", "down"], "the argument \"down\" is one too many"},
        {["sim"],
         "one of overlay, broadcast, detect, directory, reach, run, show, replay must follow; \"atoll help sim\" says what they do"},
        {["sim", "--json"],
         "one of overlay, broadcast, detect, directory, reach, run, show, replay must follow; \"atoll help sim\" says what they do"},
        {["simm", "overlay"], "there is no command \"simm\"; did you mean sim?"},
        {["overlay"], "there is no command \"overlay\"; did you mean sim overlay?"},
        {["sim", "frobnicate"], "there is no command \"sim frobnicate\"; \"atoll help sim\" lists them"},
        {["sim", "overlap"], "there is no command \"sim overlap\"; did you mean sim overlay?"},
        {["help", "sim", "overlap"], "there is no command \"sim overlap\"; did you mean sim overlay?"},
        {["help", "sim", "overlay", "now"], "the argument \"now\" is one too many"},
        {["sim", "overlay", "now"], "the argument \"now\" is one too many"},
        {["sim", "overlay", "--kill", "1.5"], "--kill must be a share from 0 to 1, such as 0.5, not \"1.5\""},
        {["sim", "overlay", "--kill", "-0.5"], "--kill must be a share from 0 to 1, such as 0.5, not \"-0.5\""},
        {["sim", "overlay", "--kill", "80%"], "--kill must be a share from 0 to 1, such as 0.5, not \"80%\""},
        {["sim", "overlay", "--kill", "nan"], "--kill must be a share from 0 to 1, such as 0.5, not \"nan\""},
        {["sim", "overlay", "--nodes", "1"],
         "--nodes must be a whole number from 2 to 100,000, not \"1\""},
        {["sim", "overlay", "--nodes", "9", "--contacts", "10"],
         "--contacts must be at most --nodes, which is 9, not \"10\""},
        {["sim", "overlay", "--seed", "x"],
         "--seed must be a whole number from 0 to 1,000,000,000, not \"x\""},
        {["sim", "overlay", "--latency", "uniform:20:1"], latency("uniform:20:1")},
        {["sim", "overlay", "--latency", "gauss:1:2"], latency("gauss:1:2")},
        {["sim", "overlay", "--latency", "constant"], latency("constant")},
        {["sim", "overlay", "--latency", "lognormal:20:-1"], latency("lognormal:20:-1")},
        {["sim", "overlay", "--strategy", "ring"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"ring\""},
        {["sim", "overlay", "--strategy", "lists"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"lists\""},
        {["sim", "overlay", "--strategy", "hyparvew"],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"hyparvew\"; did you mean hyparview?"},
        {["sim", "overlay", "--strategy", lists:duplicate(300, $a)],
         "--strategy must be one of cliques, hyparview, mesh, scamp, star, static, or a module that is one, "
         "in the directory of --code, not \"" ++ lists:duplicate(300, $a) ++ "\""},
        {["sim", "overlay", "--code", "no/such/directory"],
         "--code must be a directory, not \"no/such/directory\""},
        {["sim", "overlay", "--option", "xbot"], "--option must be KEY=VALUE, such as xbot=true, not \"xbot\""},
        {["sim", "overlay", "--option", "xbot=2"], "--option: the option xbot must be true or false, not \"2\""},
        {["sim", "overlay", "--option", "active_max=0"],
         "--option: the option active_max must be a whole number from 1 to 2147483647, not 0"},
        {["sim", "overlay", "--option", "xbot=true", "--option", "xbot=true"], "--option xbot is given twice"},
        {["sim", "overlay", "--nodes", "9", "--nodes", "9"], "--nodes is given twice"},
        {["sim", "broadcast", "--nodes", "9", "--senders", "10"],
         "--senders must be at most --nodes, which is 9, not \"10\""},
        {["sim", "broadcast", "--churn", "2"], "--churn must be a share from 0 to 1, such as 0.5, not \"2\""},
        {["sim", "broadcast", "--messages", "0"],
         "--messages must be a whole number from 1 to 100,000, not \"0\""},
        {["sim", "detect", "--nodes", "9"],
         "--nodes must be at least 5 more than the contacts, who never fall silent and are 5, not \"9\""},
        {["sim", "run"], "the argument SCRIPT is missing"},
        {["sim", "run", "no/such.script"], "no/such.script: it cannot be read: no such file or directory"},
        {["sim", "overlay", "--trace", ""], "--trace needs a value"},
        {["sim", "show", "a.trace", "--svg="], "--svg needs a value"},
        {["sim", "show"], "the argument TRACE is missing"},
        {["sim", "show", "a.trace", "--from", "2", "--to", "1"], "--to must be at least --from, which is 2, not \"1\""},
        {["sim", "show", "a.trace", "--at", "2"],
         "--at says what is drawn, and --svg, the file for it, is missing"},
        {["sim", "show", "no/such.trace"], "no/such.trace: it cannot be read: no such file or directory"},
        {["sim", "replay"], "the argument FILE is missing"},
        {["sim", "replay", "no/such.rec"], "no/such.rec: it cannot be read: no such file or directory"},
        {["distance"], "one of matrix, measure, draw must follow; \"atoll help distance\" says what they do"},
        {["distance", "measure", "--ratio", "0"], "--ratio must be a number from 1 to 1,000, not \"0\""},
        {["distance", "matrix", "--batches", "0"], "--batches must be a whole number from 1 to 100,000, not \"0\""},
        {["distance", "draw"], "the argument FILE is missing"},
        {["distance", "draw", "no/such.network"], "no/such.network: no such file or directory"},
        {["chaos"], "one of run, random must follow; \"atoll help chaos\" says what they do"},
        {["chaos", "run"], "the argument SCRIPT is missing"},
        {["chaos", "run", "no/such.script"], "no/such.script: it cannot be read: no such file or directory"},
        {["chaos", "run", "x.script", "--nodes", "0"], "--nodes must be a whole number from 1 to 100, not \"0\""},
        {["chaos", "random", "--rate", "0"], "--rate must be a number above 0, at most 1,000, not \"0\""},
        {["chaos", "random", "--seconds", "x"], "--seconds must be a number above 0, at most 86,400, not \"x\""},
        {["chaos", "random", "--kinds", "node,node"],
         "--kinds must be some of process, node, pause, cut, slow, each once, with commas between, "
         "not \"node,node\""},
        {["chaos", "random", "--kinds", "node", "--name", "reef"],
         "--kinds: with --name nodes are not killed here, since nobody would start them again"},
        {["chaos", "random", "--nodes", "1", "--kinds", "process,cut"], "--kinds: one node alone can be cut off from nobody"},
        {["chaos", "random", "--kinds", "node", "--what", "any"], "--what is for faults of the kind process, which --kinds leaves out"},
        {["chaos", "random", "--what", "shop"],
            "--what must be any, or name:, supervisor:, module: or application: with a name, such as application:shop, not \"shop\""},
        {["chaos", "random", "--nodes", "3", "--name", "reef"],
         "--nodes is for a cluster that is started, and --name for one that runs: not both"},
        {["sim", "detect", "--loss", "5"], "--loss must be a share from 0 to 1, such as 0.5, not \"5\""}
    ].

latency(Typed) ->
    "--latency must be constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA or regions, "
    "such as uniform:1:20, not \"" ++ Typed ++ "\"".

an_unknown_option_of_a_strategy_is_told_with_those_that_there_are_test() ->
    {usage, Sentence} = outcome(["sim", "overlay", "--option", "xbotty=true"]),
    ?assertMatch("--option: hyparview has no option \"xbotty\"; it has " ++ _, Sentence),
    ?assertMatch({match, _}, re:run(Sentence, ", xbot(,|$)")).

the_overlay_of_a_cluster_stands_on_its_nodes_command_lines_test_() ->
    Nodes = ['r1@h', 'r2@h', 'r3@h', 'r4@h'],
    Args = fun(Overlay) ->
        #{args := Make, connect_all := false} = atoll_cli_overlay:cluster(Overlay),
        pairs(Make(Nodes))
    end,
    Read = fun(Strategy, Settings) ->
        {ok, Overlay} = atoll_cli_overlay:read(#{overlay => Strategy, option => Settings}),
        Overlay
    end,
    [
        ?_assertEqual(
            [{"overlay", "hyparview"}, {"overlay_options", "#{active_max => 4}"}, {"contacts", "[r1@h,r2@h,r3@h]"}],
            Args(Read("hyparview", ["active_max=4"]))
        ),
        ?_assertEqual(
            [{"overlay", "star"}, {"overlay_options", "#{servers => [r1@h,r2@h,r3@h]}"}, {"contacts", "[r1@h,r2@h,r3@h]"}],
            Args(Read("star", []))
        ),
        %% Who is told its neighbours hears of the contacts later.
        ?_assertEqual([{"overlay", "static"}, {"overlay_options", "#{}"}, {"contacts", "[]"}], Args(Read("static", []))),
        ?_assertEqual(
            [{"overlay", "hyparview"}, {"overlay_options", "#{active_max => 4}"}, {"contacts", "[r1@h]"},
             {"beacons", "off"}, {"detector", "#{period_ms => 500}"}],
            begin
                {ok, Script} = atoll_sim_script:check([{cluster, #{
                    strategy => hyparview, contacts => 1, options => #{active_max => 4}, discovery => off,
                    detector => #{period_ms => 500}
                }}]),
                Args(atoll_cli_overlay:of_script(Script))
            end
        ),
        ?_assertNot(is_map_key(args, atoll_cli_overlay:cluster(none)))
    ].

pairs([]) -> [];
pairs(["-atoll", Key, [_ | _] = Value | Args]) ->
    {ok, Tokens, _} = erl_scan:string(Value ++ "."),
    {ok, _} = erl_parse:parse_term(Tokens),
    [{Key, unquoted(Value)} | pairs(Args)].

unquoted(Text) -> [C || C <- Text, C =/= $'].

what_static_nodes_are_told_is_a_ring_with_chords_test() ->
    Nodes = [list_to_atom(lists:concat([r, I, "@h"])) || I <- lists:seq(1, 9)],
    {ok, Overlay} = atoll_cli_overlay:read(#{overlay => "static", option => []}),
    Told = atoll_cli_overlay:told(Overlay, false, Nodes),
    [begin
        #{Node := Calls} = Told,
        ?assertEqual({atoll_overlay, contacts, [lists:sublist(Nodes, 3)]}, lists:last(Calls)),
        Joined = [Peer || {atoll, tell, [{join, Peer}]} <- Calls],
        ?assert(lists:member(Next, Joined) andalso length(Joined) =< 3)
     end
     || {Node, Next} <- lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)])],
    {ok, Hyparview} = atoll_cli_overlay:read(#{overlay => "hyparview", option => []}),
    ?assertEqual(#{}, atoll_cli_overlay:told(Hyparview, false, Nodes)).

groups_say_who_is_in_which_clique_test() ->
    {ok, Cliques} = atoll_cli_overlay:read(#{overlay => "cliques", option => []}),
    ?assertMatch(#{a@h := [{atoll_overlay, contacts, _}]}, atoll_cli_overlay:told(Cliques, true, [a@h, b@h])),
    ?assertMatch(#{a@h := [{atoll, tell, [{cliques, [_ | _]}]}, _]}, atoll_cli_overlay:told(Cliques, false, [a@h, b@h])).

every_group_has_a_page_that_lists_its_commands_test_() ->
    [{Word ++ " " ++ Name,
      ?_assertMatch({match, _}, re:run(atoll_cli_help:group(Word), "\n  " ++ Word ++ " " ++ Name ++ " "))}
     || {Word, Names} <- [{"sim", ["overlay", "broadcast", "detect", "run", "show", "replay"]}, {"chaos", ["run", "random"]}],
        lists:keymember(Word, 1, atoll_cli:groups()), Name <- Names].

a_latency_is_read_test_() ->
    [{Text, ?_assertEqual({ok, Latency}, (atoll_cli_read:latency())(Text))}
     || {Text, Latency} <- [{"constant:5", {constant, 5}}, {"uniform:1:20", {uniform, 1, 20}},
                            {"exponential:10", {exponential, 10}}, {"lognormal:20:0.5", {lognormal, 20, 0.5}},
                            {"regions", regions}]].

an_option_that_may_be_repeated_is_a_list_test() ->
    Parse = fun(Args) -> atoll_cli_options:parse(atoll_cli_sim_overlay:options(), [], Args) end,
    ?assertMatch({ok, #{option := []}, []}, Parse([])),
    ?assertMatch({ok, #{option := ["a=1", "b=2"]}, []}, Parse(["--option", "a=1", "--option=b=2"])).

the_line_that_repeats_a_run_asks_for_the_same_test_() ->
    [{Line, ?_assertEqual(Line, again(Line))}
     || Line <- ["atoll sim overlay --strategy hyparview --nodes 1000 --kill 0.5 --seed 1",
                 "atoll sim overlay --strategy hyparview --nodes 300 --contacts 3 --kill 0.25 --seed 7",
                 "atoll sim overlay --strategy hyparview --option xbot=true --option active_max=6 --nodes 10 "
                 "--latency lognormal:20:0.5 --settle 1000 --kill 0.0 --seed 0"]].

again("atoll sim overlay " ++ Line) ->
    Options = atoll_cli_sim_overlay:options(),
    {ok, Values, []} = atoll_cli_options:parse(Options, [], string:lexemes(Line, " ")),
    atoll_cli_sim_options:again("sim overlay", Options, Values).

what_a_shell_would_read_otherwise_is_quoted_in_it_test() ->
    Options = [#{name => code, value => "DIR", help => ""}],
    ?assertEqual("atoll x --code 'a b'\\''s'", atoll_cli_sim_options:again("x", Options, #{code => "a b's"})).

a_result_begins_with_its_keys_and_loses_none_test() ->
    ?assertEqual({[{seed, 7}, {nodes, 3}, {killed, 1}, {rejoined_ms, null}, {new_key, 1.5}, {again, <<"atoll x">>}]},
                 atoll_cli_sim_result:json([seed, nodes], #{killed => 1, nodes => 3, seed => 7, new_key => 1.5,
                                                            rejoined_ms => never}, "atoll x")),
    ?assertEqual("nodes                                1,000\n"
                 "all survivors connected again after  never\n"
                 "new key                                1.5\n",
                 lists:flatten(atoll_cli_sim_result:table(#{nodes => 1000, new_key => 1.5, rejoined_ms => never}))).

a_run_is_called_by_the_sizes_of_its_groups_test_() ->
    [?_assertEqual(Head, lists:flatten(atoll_cli_result:head(#{mode => Mode, nodes => N, group_size => Size})))
     || {Mode, N, Size, Head} <- [{mesh, 9, 3, "full mesh"}, {seq, 1, 1, "seq"},
                                  {groups, 9, 3, "groups of 3"}, {groups, 5, 3, "one group of 5"},
                                  {groups, 7, 3, "groups of 3 to 4"}, {groups, 2, 1, "groups of 1"},
                                  {ring, 9, 3, "ring, groups of 3"},
                                  {'groups-native', 7, 3, "mesh over groups of 3 to 4"}]].

every_command_has_a_page_of_help_test_() ->
    [{Name, ?_assertMatch({match, _}, re:run(page(Module), "examples:\n  atoll " ++ Name))}
     || {Name, Module} <- atoll_cli:commands()].

the_examples_of_the_help_are_right_test_() ->
    [{Example, ?_assertMatch({ok, _, _}, atoll_cli_options:parse(Options, Module:operands(), Args))}
     || {Name, Module} <- atoll_cli:commands(),
        Example <- Module:examples(),
        ["atoll" | Line] <- [words(Example)],
        Args <- [lists:nthtail(length(string:lexemes(Name, " ")), Line)],
        {ok, Options} <- [atoll_cli:options(Module, Args)]].

%% It would tell them nothing; nothing is started.
a_network_without_any_of_the_nodes_is_a_mistake_test() ->
    File = atoll_test_file:temporary("atoll_cli_tests"),
    ok = file:write_file(File, "{network, [{node, a@h}, {node, 'reef3@127.0.0.1'}]}.\n"),
    try
        ?assertEqual(
            {usage, "--network: " ++ File ++ " has none of the nodes that are to be started, such as reef1@127.0.0.1"},
            outcome(["up", "2", "--name", "reef", "--network", File])
        ),
        ?assertMatch({ok, _}, atoll_cli_distance:args(#{network => File, distances => false}, ['reef2@127.0.0.1', 'reef3@127.0.0.1']))
    after
        ok = file:delete(File)
    end.

who_did_not_answer_is_told_from_who_had_not_measured_all_test_() ->
    [?_assertEqual(Sentence, lists:flatten(atoll_cli_distance:absent(#{silent => Silent, late => Late})))
     || {Silent, Late, Sentence} <- [
            {[], [], ""},
            {[a@h], [], "a@h did not answer"},
            {[], [a@h, b@h], "a@h, b@h had not measured all when the time was up (--deadline)"},
            {[c@h], [a@h], "c@h did not answer; a@h had not measured all when the time was up (--deadline)"}]].

%% As a shell reads a line. Without quotes nothing may stand there that means something to one, but a
%% pattern of file names, which is for it.
words(Line) -> words(Line, none, []).

words([], none, Words) -> lists:reverse(Words);
words([$\s | Line], none, Words) -> words(Line, none, Words);
words(Line, none, Words) -> words(Line, [], Words);
words([$' | Line], Word, Words) ->
    [Quoted, Rest] = string:split(Line, "'"),
    words(Rest, Word ++ Quoted, Words);
words([C | Line], Word, Words) when C =/= $\s ->
    case lists:member(C, "<>{}|&;()$`\\\"!#~[]") of
        true -> error({needs_quotes, [C]});
        false -> words(Line, Word ++ [C], Words)
    end;
words(Line, Word, Words) -> words(Line, none, [Word | Words]).

the_examples_are_read_as_a_shell_reads_them_test_() ->
    [?_assertEqual(["a", "b < 1 c", "de"], words("a  'b < 1 c' d'e'")),
     ?_assertError({needs_quotes, "<"}, words("atoll place --where loadavg1<8")),
     ?_assertError({needs_quotes, "{"}, words("atoll place --where os_type=={unix,linux}"))].

the_help_says_where_the_options_of_a_benchmark_are_told_test() ->
    ?assertMatch({match, _}, re:run(page(atoll_cli_bench_run), "\"atoll bench list NAME\" says which\\.\n\nexamples:")).

an_option_has_its_default_and_a_switch_is_off_test() ->
    {ok, Values, []} = atoll_cli_options:parse(atoll_cli_orbit:options(), [], []),
    ?assertEqual(#{generators => g124, space => 100000, mode => groups, nodes => 9, workers => 4, chaos => 0,
                   kill_node_every => 0, seed => 1, image_processes => false, separate_submasters => false,
                   statistics => false, json => false},
                 Values).

a_value_may_stand_behind_an_equals_sign_test() ->
    {ok, Values, []} =
        atoll_cli_options:parse(atoll_cli_orbit:options(), [], ["--space=7", "--group-size=2"]),
    ?assertMatch(#{space := 7, group_size := 2}, Values).

what_follows_two_dashes_is_an_operand_test() ->
    ?assertMatch({ok, _, ["--json"]},
                 atoll_cli_options:parse([], ["[NAME]"], ["--", "--json"])).

groups_differ_by_one_node_at_most_test_() ->
    [?_assertEqual(Lengths, [length(P) || P <- atoll_cli_join:cut(lists:seq(1, N), K)])
     || {N, K, Lengths} <- [{9, 3, [3, 3, 3]}, {5, 2, [3, 2]}, {7, 3, [3, 2, 2]}, {4, 4, [1, 1, 1, 1]},
                            {3, 1, [3]}]].

outcome(Args) ->
    {_, {Kind, Sentence}} = atoll_cli:execute(Args),
    {Kind, lists:flatten(Sentence)}.

page(Module) ->
    {Name, Module} = lists:keyfind(Module, 2, atoll_cli:commands()),
    atoll_cli_help:page(Name, Module).
