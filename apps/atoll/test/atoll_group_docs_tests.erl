%% SPDX-License-Identifier: Apache-2.0
%% docs/groups.md says what is so.
-module(atoll_group_docs_tests).

-include_lib("eunit/include/eunit.hrl").

every_function_stands_there_test() ->
    %% Some rows have two, between backticks.
    Cells = firsts("Functions", "^\\| (`[^|]+`) \\|"),
    Named = [arity(Call) || Cell <- Cells, Call <- string:lexemes(Cell, "`"), Call =/= ", "],
    Exported = [F || {Name, _} = F <- s_group:module_info(exports), Name =/= module_info],
    ?assertEqual(lists:sort(Exported), lists:sort(Named)).

every_rule_is_one_test() ->
    Cells = firsts("Names", "^\\| (`[^|]+`) \\| (?:chance|nobody|the)"),
    Rules = [term(Text) || Cell <- Cells, Text <- string:lexemes(Cell, "`"), Text =/= ", "],
    ?assertMatch([_, _, _, _, _, _], Rules),
    [?assert(atoll_name_rules:is_rule(Rule), Rule) || Rule <- Rules].

every_reason_has_a_sentence_test() ->
    Reasons = [term(Text) || Cell <- firsts("Names", "^\\| (`[a-z_`, ]+`) \\| [^|]+ \\|$"), Text <- string:lexemes(Cell, "`, ")],
    Others = [term(Text) || Text <- lists:append(firsts_of_all("Functions", "{no, ([a-z_]+)}"))],
    [?assertMatch([_ | _], lists:flatten(s_group:format_error(Reason))) || Reason <- Reasons ++ Others],
    ?assertMatch({12, [_ | _]}, {length(Reasons), Others}).

every_shape_stands_there_test() ->
    [
        ?assert(lists:member(arity(Call), atoll_topology:module_info(exports)), Call)
     || Call <- firsts("Topologies", "^\\| `([^`]+)` \\|")
    ].

every_property_of_info_stands_there_test() ->
    Cells = firsts("Info", "^\\| (`[^|]+`) \\|"),
    Named = [Word || Cell <- Cells, Word <- string:lexemes(Cell, "`, ")],
    Known = [atom_to_list(Key) || {Key, _} <- atoll_group_rules:info(n1, [], [], 0)],
    ?assertEqual(lists:sort(Known), lists:sort(Named)).

every_oddity_has_its_row_test() ->
    Numbers = firsts("The original's oddities", "^\\| ([0-9]+) \\|"),
    ?assertEqual([integer_to_list(I) || I <- lists:seq(1, 12)], Numbers).

every_oddity_has_a_test_that_is_there_test_() ->
    Cells = firsts("The original's oddities", "^\\| [0-9]+ \\|.*\\| (`[^|]+`) \\|$"),
    Named = [[string:lexemes(Test, ":") || Test <- string:lexemes(Cell, "`, ")] || Cell <- Cells],
    [?_assertEqual(12, length(Named))] ++
        [
            ?_assertEqual({Test, true}, {Test, is_test(list_to_atom(Module), list_to_atom(Case))})
         || [Module, Case] = Test <- lists:usort(lists:append(Named))
        ].

%% A case of a suite that is run, or an EUnit test.
is_test(Module, Case) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, Case, 0) orelse
        (erlang:function_exported(Module, Case, 1) andalso lists:member(Case, Module:all())).

arity(Call) ->
    [Name, Args] = string:split(string:trim(Call, trailing, ")"), "("),
    {list_to_atom(Name), length(string:lexemes(Args, ","))}.

%% As it stands there, with a capital for an atom that is the reader's.
term(Text) ->
    {ok, Tokens, _} = erl_scan:string(string:lowercase(Text) ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

firsts(Title, Pattern) -> lists:append(firsts_of_all(Title, Pattern)).

firsts_of_all(Title, Pattern) ->
    [_, After] = binary:split(page(), list_to_binary(["\n## ", Title, "\n"])),
    [Section | _] = binary:split(After, <<"\n## ">>),
    {match, Found} = re:run(Section, Pattern, [global, multiline, {capture, all_but_first, list}]),
    Found.

page() ->
    {ok, Text} = file:read_file(filename:join([root(filename:absname(code:lib_dir(atoll))), "docs", "groups.md"])),
    Text.

%% The tests run in a build directory inside of the working tree.
root(Dir) ->
    case filelib:is_file(filename:join([Dir, "docs", "groups.md"])) of
        true -> Dir;
        false when Dir =/= "/" -> root(filename:dirname(Dir))
    end.
