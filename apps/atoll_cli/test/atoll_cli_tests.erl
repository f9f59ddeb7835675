%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a command line is said in one sentence that names the
%% flag, before anything is started. No command here gets as far as a cluster.
-module(atoll_cli_tests).
-include_lib("eunit/include/eunit.hrl").

-export([words/1]).

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["frobnicate"], "there is no command \"frobnicate\"; \"atoll help\" lists them"},
        {["orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["help", "orbti"], "there is no command \"orbti\"; did you mean orbit?"},
        {["completion", "tcsh"], "SHELL must be bash, zsh or fish, not \"tcsh\""},
        {["help", "up", "down"], "the argument \"down\" is one too many"},
        {["simm", "overlay"], "there is no command \"simm\"; did you mean sim?"},
        {["overlay"], "there is no command \"overlay\"; did you mean sim overlay?"},
        {["help", "sim", "overlap"], "there is no command \"sim overlap\"; did you mean sim overlay?"},
        {["help", "sim", "overlay", "now"], "the argument \"now\" is one too many"}
    ]).

every_group_has_a_page_that_lists_its_commands_test_() ->
    [{Word ++ " " ++ Name,
      ?_assertMatch({match, _}, re:run(atoll_cli_help:group(Word), "\n  " ++ Word ++ " " ++ Name ++ " "))}
     || {Word, _} <- atoll_cli_commands:groups(), Name <- atoll_cli_commands:members(Word)].

%% Of a command that nobody has.
options() ->
    [
        #{name => space, short => $s, value => "N", default => "9", read => atoll_cli_read:whole(1, 1000), help => ""},
        #{name => group_size, value => "N", read => atoll_cli_read:whole(1, 1000), help => ""},
        #{name => option, value => "KEY=VALUE", repeat => true, read => atoll_cli_read:setting(), help => ""},
        #{name => out, value => "FILE", help => ""},
        #{name => json, help => ""}
    ].

parse(Args) ->
    case atoll_cli_options:parse(options(), ["N", "[NAME]"], Args) of
        {error, Sentence} -> lists:flatten(Sentence);
        Parsed -> Parsed
    end.

what_is_wrong_with_an_option_names_it_as_it_is_typed_test_() ->
    [{string:join(Args, " "), ?_assertEqual(Sentence, parse(Args))}
     || {Args, Sentence} <- [
            {["1", "--space"], "--space needs a value"},
            {["1", "--out="], "--out needs a value"},
            {["1", "--space=", "4"], "--space must be a whole number from 1 to 1,000, not \"\""},
            {["1", "-s", "4", "--space", "4"], "--space is given twice"},
            {["1", "--json", "--json"], "--json is given twice"},
            {["1", "--json=yes"], "--json takes no value"},
            {["1", "--group_size", "3"], "there is no option --group_size; did you mean --group-size?"},
            {["1", "-n", "3"], "there is no option -n"},
            {[], "the argument N is missing"},
            {["1", "a", "b"], "the argument \"b\" is one too many"}
        ]].

an_option_that_may_be_repeated_is_a_list_test() ->
    ?assertMatch({ok, #{option := []}, ["1"]}, parse(["1"])),
    ?assertMatch({ok, #{option := ["a=1", "b=2"]}, ["1"]}, parse(["--option", "a=1", "1", "--option=b=2"])).

what_a_shell_would_read_otherwise_is_quoted_in_it_test() ->
    Options = [#{name => code, value => "DIR", help => ""}],
    ?assertEqual("atoll x --code 'a b'\\''s'", atoll_cli_again:line("x", Options, #{code => "a b's"})).

every_command_has_a_page_of_help_test_() ->
    [{Name, ?_assertMatch({match, _}, re:run(page(Module), "examples:\n  atoll " ++ Name))}
     || {Name, Module} <- atoll_cli_commands:all()].

the_examples_of_the_help_are_right_test_() ->
    [{Example, ?_assertMatch({ok, _, _}, atoll_cli_options:parse(Options, Module:operands(), Args))}
     || {Name, Module} <- atoll_cli_commands:all(),
        Example <- Module:examples(),
        ["atoll" | Line] <- [words(Example)],
        Args <- [lists:nthtail(length(string:lexemes(Name, " ")), Line)],
        {ok, Options} <- [atoll_cli:options(Module, Args)]].

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

an_option_has_its_default_and_a_switch_is_off_test() ->
    ?assertEqual({ok, #{space => 9, option => [], json => false}, ["1"]}, parse(["1"])).

a_value_may_stand_behind_an_equals_sign_test() ->
    ?assertMatch({ok, #{space := 7, group_size := 2}, ["1"]}, parse(["--space=7", "--group-size=2", "1"])).

what_is_spelt_otherwise_is_typed_so_again_test() ->
    Options = [#{name => kind, value => "KIND", spell => fun({lanes, N}) -> "lanes" ++ integer_to_list(N) end, help => ""}],
    ?assertEqual("atoll x --kind lanes4", atoll_cli_again:line("x", Options, #{kind => {lanes, 4}})).

what_follows_two_dashes_is_an_operand_test() ->
    ?assertMatch({ok, _, ["--json"]},
                 atoll_cli_options:parse([], ["[NAME]"], ["--", "--json"])).

page(Module) ->
    {Name, Module} = lists:keyfind(Module, 2, atoll_cli_commands:all()),
    atoll_cli_help:page(Name, Module).
