%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a description is said in a sentence that names the key.
-module(atoll_scale_plan_tests).

-include_lib("eunit/include/eunit.hrl").

terms() ->
    [{name, "shop"}, {start, "./shop --backlog {backlog}"}, {load, {command, "ab -c {level} -n 100 http://127.0.0.1/"}},
     {switches, [{backlog, #{values => [5, 128], helps => [backlog]}}]}].

%% The terms with one in the place of that key's, or without it.
with(Key, Term) -> [Term | without(Key)].
without(Key) -> lists:keydelete(Key, 1, terms()).

said(Terms) ->
    case atoll_scale_plan:check(Terms, "/") of
        {error, Sentence} -> lists:flatten(Sentence);
        {ok, _} -> right
    end.

what_is_right_is_read_with_what_is_left_out_test() ->
    {ok, Plan} = atoll_scale_plan:check(terms(), "/srv"),
    ?assertMatch(#{dir := "/srv", from := 4, to := 65536, seconds := 3, failures := 0.01, level := "clients at once"}, Plan),
    ?assertNot(is_map_key(p99_ms, Plan)),
    ?assertEqual(#{backlog => 5}, atoll_scale_plan:settings(Plan)).

the_template_and_the_example_are_right_test_() ->
    Priv = code:priv_dir(atoll_scale),
    [{File, ?_assertMatch({ok, _}, atoll_scale_plan:read(filename:join(Priv, File)))} || File <- ["template.plan", "example/shop.plan", "example/shop-ab.plan", "example/shop-tsung.plan"]].

%% Each key of it stands in the template, as one that may be left out or not.
the_template_explains_every_key_test_() ->
    Text = unicode:characters_to_list(atoll_scale_plan:template()),
    [{Key, ?_assertMatch({match, _}, re:run(Text, "(^|[ %])\\{" ++ Key ++ ", ", [multiline]))}
     || Key <- ["name", "start", "ready", "ready_seconds", "node", "cookie_file", "pid_file", "load", "code", "level", "from", "to", "precision",
                "seconds", "failures", "p99_ms", "refused", "switches"]].

what_is_wrong_is_named_test_() ->
    [{Sentence, ?_assertEqual(Sentence, said(Terms))} || {Terms, Sentence} <- [
        {[hello | terms()], "hello is none of its terms, which are {Key, Value}"},
        {[{loads, 1} | terms()], "there is no key loads; did you mean load?"},
        {[{name, "again"} | terms()], "the key name stands there twice"},
        {without(name), "the key name is missing; it is a text, such as \"shop\""},
        {without(load), "the key load is missing; it is {command, Text}, {driver, Module, Options} or {tsung, File}"},
        {with(name, {name, shop}), "the key name must be a text, such as \"shop\", not shop"},
        {with(load, {load, "ab"}), "the key load must be {command, Text}, {driver, Module, Options} or {tsung, File}, not \"ab\""},
        {with(load, {load, {command, "ab"}}), "the command of the key load has no {level}, which is what it is run with"},
        {without(start), "one of the keys start, node and pid_file must say what the service is"},
        {[{pid_file, "p"} | terms()], "the key pid_file is for a service that runs already, and start starts one"},
        {[{cookie_file, "c"} | terms()], "the key cookie_file is for a node, and node is missing"},
        {[{node, shop} | terms()], "the key node must be the name of a node, such as 'shop@127.0.0.1', not shop"},
        {[{from, 0} | terms()], "the key from must be a whole number from 1 to 1000000000, not 0"},
        {[{from, 10}, {to, 5} | terms()], "the key from must be at most that of to, which is 5, not 10"},
        {[{precision, 2} | terms()], "the key precision must be a number from 0.01 to 1, not 2"},
        {[{failures, -1} | terms()], "the key failures must be a share from 0 to 1, not -1"},
        {[{p99_ms, 0} | terms()], "the key p99_ms must be a number above 0, not 0"},
        {[{ready, {port, 70000}} | terms()], "the key ready must be {port, N} or {command, Text}, not {port,70000}"},
        {with(switches, {switches, [backlog]}), "a switch is {Name, #{values => [Value, ...]}}, not backlog"},
        {with(switches, {switches, [{backlog, #{values => [5]}}]}),
         "of the switch backlog, values must be a list of numbers, words or texts, two or more, each once; the first is how it is now, not [5]"},
        {with(switches, {switches, [{backlog, #{values => [5, 128], help => "x"}}]}), "the switch backlog has no key help; did you mean helps?"},
        {with(switches, {switches, [{level, #{values => [5, 128]}}]}), "a switch cannot be called level, which stands for a number of the load"},
        {with(switches, {switches, [{files, #{values => [5, 128]}}]}), "the switch files stands in no command, as {files}"},
        {with(switches, {switches, [{backlog, #{values => [5, 128], in => {kernel, "../x"}}}]}),
         "of the switch backlog, in must be command, {env, Text}, {kernel, Text} or ask, not {kernel,\"../x\"}"}
    ]].

a_file_that_cannot_be_read_is_named_with_the_line_test() ->
    File = atoll_test_file:temporary("atoll_scale_plan_tests"),
    ok = file:write_file(File, "{name, \"shop\"}.\n{load\n"),
    try
        {error, Sentence} = atoll_scale_plan:read(File),
        ?assertMatch({match, _}, re:run(Sentence, "atoll_scale_plan_tests.*: line [23]: ")),
        ?assertMatch({error, _}, atoll_scale_plan:read(File ++ ".none"))
    after
        ok = file:delete(File)
    end.

words_in_braces_are_filled_in_and_other_braces_stay_test() ->
    ?assertEqual("ab -c 16 ${HOME} {print $1} 0.5 yes", atoll_scale_plan:filled("ab -c {level} ${HOME} {print $1} {a} {b}", #{level => 16, a => 0.5, b => yes})).
