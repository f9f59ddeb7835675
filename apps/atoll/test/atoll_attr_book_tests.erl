%% SPDX-License-Identifier: Apache-2.0
%% The attributes of a node, and the file that defines some.
-module(atoll_attr_book_tests).

-include_lib("eunit/include/eunit.hrl").

-define(B, atoll_attr_book).

what_a_definition_means_test() ->
    Book = ?B:new([{a, 1}, {b, {dynamic, {m, f}}}, {c, {automatic, {m, f, [x]}}}, {d, {dynamic, so}}]),
    ?assertEqual({static, 1}, ?B:look(a, Book)),
    ?assertEqual({dynamic, {m, f, []}}, ?B:look(b, Book)),
    ?assertEqual({automatic, {m, f, [x]}}, ?B:look(c, Book)),
    ?assertEqual({static, {dynamic, so}}, ?B:look(d, Book)),
    ?assertEqual(none, ?B:look(e, Book)),
    ?assertEqual([{c, {m, f, [x]}}], ?B:automatics(Book)).

a_later_definition_overrides_test() ->
    ?assertEqual({static, 2}, ?B:look(a, ?B:new([{a, 1}, {a, 2}]))).

an_automatic_one_is_static_once_evaluated_test() ->
    Source = {m, f, []},
    Book = ?B:evaluated(a, {Source, 7}, ?B:new([{a, {automatic, {m, f}}}])),
    ?assertEqual({static, 7}, ?B:look(a, Book)),
    ?assertEqual([], ?B:automatics(Book)),
    %% It was given another value meanwhile.
    {ok, Updated} = ?B:update(a, 8, ?B:new([{a, {automatic, {m, f}}}])),
    ?assertEqual({static, 8}, ?B:look(a, ?B:evaluated(a, {Source, 7}, Updated))).

inserting_updating_and_deleting_test() ->
    Empty = ?B:new([]),
    {ok, One} = ?B:insert(a, 1, permanent, Empty),
    ?assertEqual({error, {attr_exists, a}}, ?B:insert(a, 2, permanent, One)),
    {ok, Two} = ?B:update(a, 2, One),
    ?assertEqual({static, 2}, ?B:look(a, Two)),
    ?assertEqual({error, {attr_not_set, b}}, ?B:update(b, 2, Two)),
    ?assertEqual({ok, Empty}, ?B:delete(a, Two)),
    ?assertEqual({error, {attr_not_set, b}}, ?B:delete(b, Two)).

what_a_process_owns_goes_with_it_test() ->
    {ok, One} = ?B:insert(a, 1, {process, p}, ?B:new([{c, 3}])),
    {ok, Two} = ?B:insert(b, 2, permanent, One),
    {ok, Updated} = ?B:update(a, 5, Two),
    ?assertEqual([p], ?B:owners(Updated)),
    ?assertEqual([b, c], ?B:names(?B:gone(p, Updated))),
    ?assertEqual([a, b, c], ?B:names(?B:gone(q, Updated))).

loading_replaces_what_was_configured_and_nothing_else_test() ->
    {ok, Book} = ?B:insert(mine, 1, permanent, ?B:new([{a, 1}, {b, 2}])),
    Loaded = ?B:load([{b, 3}, {c, 4}], Book),
    ?assertEqual([b, c, mine], ?B:names(Loaded)),
    ?assertEqual({static, 3}, ?B:look(b, Loaded)).

a_book_has_its_bounds_test() ->
    Bounds = #{max_value => 100, max_attributes => 2},
    Long = lists:seq(1, 1000),
    ?assertEqual(ok, ?B:within(?B:new([{a, 1}, {b, 2}]), Bounds)),
    [
        begin
            {error, Error} = ?B:within(?B:new(Definitions), Bounds),
            ?assertMatch({match, _}, re:run(?B:format_error(Error), ["^", Said, "$"]))
        end
     || {Definitions, Said} <- [
            {[{a, 1}, {b, 2}, {c, 3}], "there are 3 attributes, and 2 are the most of a node"},
            {[{b, Long}], "the attribute b has [0-9]+ bytes, and 100 are the most"},
            {[{b, {automatic, {m, f, [Long]}}}], "the attribute b has [0-9]+ bytes, and 100 are the most"}
        ]
    ].

%% Files

a_file_defines_attributes_test() ->
    ?assertEqual(
        {ok, [{a, 1}, {b, {dynamic, {m, f}}}]},
        read("%% Ours.\n[{a, 1},\n {b, {dynamic, {m, f}}}].\n%% The end.\n")
    ),
    ?assertEqual({ok, []}, read("[].")).

a_wrong_file_is_an_error_in_a_sentence_test() ->
    [
        begin
            {error, Error} = read(Text),
            Said = unicode:characters_to_list(atoll_attr_file:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words), {Text, Said}),
            ?assertEqual(nomatch, re:run(Said, "\n"))
        end
     || {Text, Words} <- [
            {"", "no list of attributes"},
            {"%% nothing\n", "no list of attributes"},
            {"[{a, 1}", "full stop|line 1"},
            {"[{a, 1}]", "full stop|line 1"},
            {"[{a, 1},\n {b, }].", "line 2: syntax error"},
            {"[{a, 1},\n {b, \"}].", "line 2: "},
            {"[]. [].", "more than one"},
            {"[{a, 1}].\n{b", "line 2"},
            {"{a, 1}.", "in a list"},
            {"[a].", "a defines no attribute"},
            {"[{\"a\", 1}].", "the name of an attribute"},
            {"[{a, {dynamic, so}}].", "attribute a comes from so, which is neither"},
            {"[{a, {automatic, {m, f, x}}}].", "attribute a comes from"},
            {"[{a, 1}, {a, 2}].", "a is defined twice"},
            {<<"[{a, \"", 255, "\"}].">>, "is no text"},
            {lists:duplicate(1 bsl 20 + 1, $\s), "larger than"}
        ]
    ],
    {error, Missing} = atoll_attr_file:read("/nowhere/at/all"),
    ?assertEqual(
        "/nowhere/at/all cannot be read: no such file or directory",
        lists:flatten(atoll_attr_file:format_error(Missing))
    ).

a_file_that_is_too_large_is_not_read_to_its_end_test() ->
    Path = atoll_test_file:temporary("atoll_attr_book"),
    {ok, File} = file:open(Path, [write, raw]),
    try
        %% It has holes, and more bytes than any memory.
        {ok, _} = file:position(File, 1 bsl 42),
        ok = file:truncate(File),
        ?assertEqual({error, {Path, too_large}}, atoll_attr_file:read(Path))
    after
        ok = file:close(File),
        ok = file:delete(Path)
    end.

read(Text) ->
    Path = atoll_test_file:temporary("atoll_attr_book"),
    ok = file:write_file(Path, Text),
    try
        atoll_attr_file:read(Path)
    after
        file:delete(Path)
    end.
