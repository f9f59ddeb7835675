%% SPDX-License-Identifier: Apache-2.0
%% Rules of a user: what they change, and what is told of each mistake.
-module(atoll_watch_rule_file_tests).

-include_lib("eunit/include/eunit.hrl").

-define(F, atoll_watch_rule_file).

rule(Id, Terms) ->
    {ok, Rules} = ?F:rules(Terms),
    case [Rule || #{id := Is} = Rule <- Rules, Is =:= Id] of
        [Rule] -> Rule;
        [] -> none
    end.

none_changes_none_test() ->
    ?assertEqual({ok, atoll_watch_rule:all()}, ?F:rules([])).

what_is_given_is_changed_and_the_rest_stays_test() ->
    Was = rule(mailbox, []),
    ?assertEqual(Was#{raise := 50000, clear := 100, severity := critical}, rule(mailbox, [{mailbox, #{raise => 50000, clear => 100, severity => critical}}])),
    ?assertEqual(Was#{cause := "too slow"}, rule(mailbox, [{mailbox, #{cause => <<"too slow">>, off => false}}])),
    ?assertEqual(none, rule(mailbox, [{mailbox, #{off => true}}])),
    {ok, Rules} = ?F:rules([{mailbox, #{off => true}}]),
    ?assertEqual(length(atoll_watch_rule:all()) - 1, length(Rules)).

new_ones_are_about_any_metric_test() ->
    Own = fun(About) -> maps:get(what, rule(own, [{own, #{about => About, raise => 2, clear => 1, cause => "c"}}])) end,
    [?assertEqual({About, What}, {About, Own(About)}) || {About, What} <- [
        {{value, processes}, {value, processes}}, {{share, ports, ports_limit}, {share, ports, ports_limit}}, {{each, user_gauge}, {each, user_gauge, zero}},
        {{label, user_gauge, stock}, {'of', user_gauge, <<"stock">>}}, {{label, user_p99, "answer.us"}, {'of', user_p99, <<"answer.us">>}},
        {{rate, reductions}, {rate, reductions}}, {{rate, user_counter, <<"orders">>}, {rate, user_counter, <<"orders">>}}
    ]],
    ?assertMatch(#{looks := 3, severity := warning, repair := "see why"}, rule(own, [{own, #{about => {value, processes}, raise => 2, clear => 1, cause => "c"}}])).

%% What a user reads names the rule, and the key.
each_mistake_is_told_in_a_sentence_test() ->
    New = #{about => {value, processes}, raise => 2, clear => 1, cause => "c"},
    [begin
        {error, Sentence} = ?F:rules(Terms),
        ?assertEqual(Expected, unicode:characters_to_binary(Sentence))
     end || {Terms, Expected} <- [
        {[mailbox], <<"mailbox is no rule: one is {Name, #{Key => Value}}.">>},
        {[{"mailbox", #{}}], <<"{\"mailbox\",#{}} is no rule: one is {Name, #{Key => Value}}.">>},
        {[{mailbox, #{}}, {mailbox, #{}}], <<"the rule mailbox stands there twice.">>},
        {[{mailbox, #{rais => 1}}], <<"the rule mailbox has no key rais; did you mean raise?">>},
        {[{mailbox, #{raise => "1"}}], <<"the rule mailbox: raise must be a number.">>},
        {[{mailbox, #{looks => 0}}], <<"the rule mailbox: looks must be a whole number from 1 to 1,000.">>},
        {[{mailbox, #{severity => terrible}}], <<"the rule mailbox: severity must be one of critical, major, minor, warning.">>},
        {[{mailbox, #{cause => 7}}], <<"the rule mailbox: cause must be a text of at most 300 characters.">>},
        {[{mailbox, #{off => 1}}], <<"the rule mailbox: off must be true or false.">>},
        {[{mailbox, #{raise => 5}}], <<"the rule mailbox is raised at 5 and cleared at 1000: to turn it round, give both raise and clear.">>},
        {[{node_down, #{raise => 5}}], <<"the rule node_down is about a state of a node, and has no raise.">>},
        {[{own, #{}}], <<"the rule own is no rule that is there, and as a new one it needs about.">>},
        {[{own, maps:remove(cause, New)}], <<"the rule own is no rule that is there, and as a new one it needs cause.">>},
        {[{own, New#{about := {value, nothing}}}], <<"the rule own: about is of the metric nothing, which is none.">>},
        {[{own, New#{about := {value, mailbox}}}], <<"the rule own: about is of mailbox, which has a value for each process: {each, mailbox}, or one with its label.">>},
        {[{own, New#{about := {each, processes}}}], <<"the rule own: about is of processes, which has no label.">>},
        {[{own, New#{about := {rate, processes}}}], <<"the rule own: about is of processes, which is no counter.">>},
        {[{own, New#{about := {label, user_gauge, 7}}}], <<"the rule own: about has a label that is no text.">>},
        {[{own, New#{off => true}}], <<"the rule own has no key off.">>}
    ]],
    {error, About} = ?F:rules([{own, New#{about := processes}}]),
    ?assertMatch({match, _}, re:run(About, "^the rule own: about must be \\{value, Metric\\}, ")).

a_file_that_cannot_be_read_is_told_test() ->
    Dir = atoll_cli_os:new_dir(),
    File = filename:join(Dir, "shop.rules"),
    Said = fun(Text) -> ok = file:write_file(File, Text), {error, Sentence} = ?F:read(File), string:replace(unicode:characters_to_list(Sentence), Dir, "") end,
    try
        ?assertMatch({error, _}, ?F:read(File)),
        ?assertMatch({match, _}, re:run(Said("{mailbox, #{raise => 1.\n"), "shop.rules, line 1: syntax error before")),
        ?assertMatch({match, _}, re:run(Said(<<255, 254, 0>>), "shop.rules is no text in UTF-8.")),
        ?assertMatch({match, _}, re:run(Said("{mailbox, #{looks => x}}.\n"), "shop.rules: the rule mailbox: looks must be")),
        ok = file:write_file(File, "%% Ours.\n{mailbox, #{raise => 20000}}.\n"),
        ?assertMatch({ok, _}, ?F:read(File))
    after
        atoll_cli_os:remove_dir(Dir)
    end.

too_many_are_refused_test() ->
    New = #{about => {value, processes}, raise => 2, clear => 1, cause => "c"},
    {error, Sentence} = ?F:rules([{list_to_atom("r" ++ integer_to_list(N)), New} || N <- lists:seq(1, 200)]),
    ?assertEqual("there may be 200 rules at most.", lists:flatten(Sentence)).

%% A rule about what is too low is raised from above.
low_is_raised_and_cleared_the_other_way_round_test() ->
    Rule = rule(own, [{own, #{about => {rate, user_counter, orders}, raise => 10, clear => 20, cause => "nobody buys"}}]),
    ?assertEqual([raises, raises, between, between, clears], [atoll_watch_rule:judged(N, Rule) || N <- [0, 10, 11, 20, 21]]),
    Seen = #{node => a, state => up, since => 0, why => none, readings => #{}, rates => #{{user_counter, <<"orders">>} => 3.0, {user_counter, <<"others">>} => 1}},
    ?assertEqual([{<<"orders">>, 3.0, raises}], atoll_watch_rule:looks(Rule, Seen)).
