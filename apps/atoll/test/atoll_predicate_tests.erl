%% SPDX-License-Identifier: Apache-2.0
%% Conditions on attributes: which nodes they choose, and what is said of wrong ones.
-module(atoll_predicate_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Terms

numbers_are_equal_whatever_their_type_test() ->
    ?assert(holds({speed, eq, 2000}, #{speed => 2000.0})),
    ?assertNot(holds({speed, ne, 2000}, #{speed => 2000.0})).

the_operators_are_those_of_erlang_test() ->
    [
        ?assertEqual(erlang:Sign(A, B), holds({x, Op, B}, #{x => A}), {A, Op, B})
     || {Op, Sign} <- [{eq, '=='}, {ne, '/='}, {lt, '<'}, {le, '=<'}, {gt, '>'}, {ge, '>='}],
        A <- [1, 1.0, 2, atom, "text", {1, 2}],
        B <- [1, 1.0, 2, atom, "text", {1, 2}]
    ].

a_truth_is_matched_exactly_test() ->
    [
        ?assertEqual(A =:= B, holds({storage, A}, #{storage => B}))
     || A <- [true, false, yes, no], B <- [true, false, yes, no]
    ].

a_list_is_a_conjunction_and_nothing_is_asked_of_any_node_test() ->
    ?assert(holds([{a, true}, {b, gt, 1}], #{a => true, b => 2})),
    ?assertNot(holds([{a, true}, {b, gt, 2}], #{a => true, b => 2})),
    [?assert(holds(Any, #{})) || Any <- [{}, [], {'and', []}]],
    ?assertNot(holds({'or', []}, #{})).

what_is_undefined_matches_nothing_test() ->
    Every = [{x, Op, C} || Op <- [eq, ne, lt, le, gt, ge], C <- [1, undefined]] ++ [{x, T} || T <- [true, false, yes, no]],
    [
        ?assertNot(holds(P, Values), {P, Values})
     || One <- Every, P <- [One, {'not', One}, {'not', {'not', One}}], Values <- [#{}, #{x => undefined}]
    ].

what_decides_is_enough_test() ->
    ?assert(holds({'or', [{x, eq, 1}, {y, eq, 2}]}, #{y => 2})),
    ?assert(holds({'not', {'and', [{x, eq, 1}, {y, eq, 2}]}}, #{y => 3})),
    ?assertNot(holds({'or', [{x, eq, 1}, {y, eq, 2}]}, #{y => 3})).

the_names_are_those_it_speaks_of_test() ->
    {ok, P} = atoll_predicate:new([{b, true}, {'or', [{a, eq, 1}, {'not', {b, lt, 2}}, {}]}]),
    ?assertEqual([a, b], atoll_predicate:names(P)).

a_wrong_term_is_named_in_a_sentence_test() ->
    [
        begin
            {error, Error} = atoll_predicate:new(Term),
            Said = unicode:characters_to_list(atoll_predicate:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words), Said)
        end
     || {Term, Words} <- [
            {storage, "storage is no condition"},
            {{storage, maybe_so}, "is no condition"},
            {{a, above, 2}, "above where one of eq"},
            {{"a", eq, 2}, "the name of an attribute, an atom"},
            {[{a, true} | b], "is no condition"},
            {{'or', {a, true}}, "is no condition"},
            {{'not', true}, "true is no condition"},
            {"a > ", "at character 5"}
        ]
    ].

%% Text

text_says_what_terms_say_test() ->
    [
        ?assertEqual({ok, Term}, atoll_predicate_text:parse(Text), Text)
     || {Text, Term} <- [
            {"mem_free > 1000000 and loadavg1 < 2", {'and', [{mem_free, gt, 1000000}, {loadavg1, lt, 2}]}},
            {"a=1", {a, eq, 1}},
            {"a == 1 or b != 2 and c", {'or', [{a, eq, 1}, {'and', [{b, ne, 2}, {c, true}]}]}},
            {"(a == 1 or b /= 2) and not c", {'and', [{'or', [{a, eq, 1}, {b, ne, 2}]}, {'not', {c, true}}]}},
            {"not not a", {'not', {'not', {a, true}}}},
            {"{}", {}},
            {"a is no", {a, no}},
            {"a == no", {a, eq, no}},
            {"a lt -1.5e3 and b ge +2", {'and', [{a, lt, -1500.0}, {b, ge, 2}]}},
            {"a =< 1_000", {a, le, 1000}},
            {"a >= 1e3", {a, ge, 1000.0}},
            {"os_type == {unix, linux}", {os_type, eq, {unix, linux}}},
            {"tags == [a, 'B c', \"d\\\"\", []]", {tags, eq, [a, 'B c', "d\"", []]}},
            {"'and' == {}", {'and', eq, {}}},
            {" a\n", {a, true}}
        ]
    ].

an_error_says_where_and_points_there_test() ->
    [
        begin
            {error, Error} = atoll_predicate_text:parse(Text),
            ?assertEqual(At, element(1, Error), Text),
            Said = unicode:characters_to_list(atoll_predicate_text:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words, [unicode]), {Text, Said}),
            ?assertNotEqual(nomatch, string:find(Said, integer_to_list(At))),
            Pointer = unicode:characters_to_list(atoll_predicate_text:pointer(Text, Error)),
            [_, Caret] = string:split(Pointer, "\n", trailing),
            ?assertEqual($^, lists:last(Caret))
        end
     || {Text, At, Words} <- [
            {"", 1, "the end where the name of an attribute"},
            {"a >", 4, "the end where a constant"},
            {"a > and b", 5, "\"and\" where a constant"},
            {"a b", 3, "\"b\" where an operator"},
            {"a > 1 b", 7, "\"b\" where \"and\""},
            {"(a > 1", 7, "the end where .*\"\\)\""},
            {"a > 1)", 6, "\"\\)\" where"},
            {"1 > a", 1, "1 where the name of an attribute"},
            {"a > 1 & b", 7, "&, which means"},
            {"a == 'b", 6, "never closed"},
            {"a == \"b\\x\"", 8, "backslash"},
            {"a > 1.2.3", 5, "no number"},
            {"a > 1e999", 5, "no number"},
            {"a > -", 5, "no number"},
            {"a == {1,}", 9, "\"}\" where a constant"},
            {"a == [1 2]", 9, "2 where"},
            {"a is 1", 6, "1 where true, false"},
            {"or", 1, "\"or\" where the name"},
            {"mem > 1 and\n  ! b", 15, "!, which"},
            {"grösse > 1", 3, "ö, which"},
            {lists:duplicate(300, $a), 1, "longer than 255"}
        ]
    ].

a_caret_stands_under_the_place_test() ->
    Text = "mem > 1 and\n\tload << 2",
    {error, Error} = atoll_predicate_text:parse(Text),
    ?assertEqual(" load << 2\n       ^", lists:flatten(atoll_predicate_text:pointer(Text, Error))).

what_is_no_text_or_too_long_is_an_error_test() ->
    {error, {3, not_text} = NotText} = atoll_predicate_text:parse(<<"a ", 255>>),
    ?assertEqual("a \n  ^", lists:flatten(atoll_predicate_text:pointer(<<"a ", 255>>, NotText))),
    {error, {_, long_text} = Long} = atoll_predicate_text:parse(lists:duplicate(10001, $\s)),
    ?assertMatch("the condition is longer" ++ _, lists:flatten(atoll_predicate_text:format_error(Long))).

%% Properties

properties_test_() ->
    [
        atoll_prop:test(Name, Property, 300)
     || {Name, Property} <- [
            {"text gives the condition back", text_gives_it_back()},
            {"to know more changes no verdict", more_changes_nothing()},
            {"and, or and not are each other's mirror", mirror()},
            {"any text is read or refused", any_text()}
        ]
    ].

text_gives_it_back() ->
    ?FORALL({Term, Values}, {predicate(), values()}, begin
        {ok, P} = atoll_predicate:new(Term),
        {ok, Again} = atoll_predicate:new(unicode:characters_to_binary(atoll_predicate:to_text(P))),
        atoll_predicate:value(P, Values) =:= atoll_predicate:value(Again, Values) andalso
            atoll_predicate:names(P) =:= atoll_predicate:names(Again)
    end).

more_changes_nothing() ->
    ?FORALL({Term, Values, Hidden}, {predicate(), values(), list(name())}, begin
        {ok, P} = atoll_predicate:new(Term),
        Less = atoll_predicate:value(P, maps:without(Hidden, Values)),
        Less =:= unknown orelse Less =:= atoll_predicate:value(P, Values)
    end).

mirror() ->
    ?FORALL({Terms, Values}, {list(predicate()), values()}, begin
        {ok, All} = atoll_predicate:new({'and', Terms}),
        {ok, Some} = atoll_predicate:new({'not', {'or', [{'not', T} || T <- Terms]}}),
        atoll_predicate:value(All, Values) =:= atoll_predicate:value(Some, Values)
    end).

any_text() ->
    ?FORALL(Text, list(oneof([char(), oneof("ab1 <>=!()'\"{}[],.-"), oneof(" andortis")])), begin
        case atoll_predicate_text:parse(Text) of
            {ok, Term} ->
                {ok, _} = atoll_predicate:new(Term),
                true;
            {error, Error} ->
                At = element(1, Error),
                is_list(unicode:characters_to_list(atoll_predicate_text:format_error(Error))) andalso
                    At >= 1 andalso At =< length(Text) + 1
        end
    end).

predicate() ->
    ?SIZED(Size, predicate(Size)).

predicate(0) ->
    oneof([{}, {name(), oneof([eq, ne, lt, le, gt, ge]), const()}, {name(), oneof([true, false, yes, no])}]);
predicate(Size) ->
    Part = ?LAZY(predicate(Size div 3)),
    Few = ?LET(N, choose(0, 3), vector(N, Part)),
    oneof([predicate(0), {'not', Part}, {oneof(['and', 'or']), Few}, Few]).

name() -> oneof([a, b, mem_free, 'or', 'it\'s']).

values() ->
    ?LET(Pairs, list({name(), oneof([const(), undefined])}), maps:from_list(Pairs)).

const() ->
    oneof([choose(-3, 3), 1.5, 1.0e22, true, no, 'A b', "text", {unix, linux}, []]).

holds(Term, Values) ->
    {ok, P} = atoll_predicate:new(Term),
    atoll_predicate:holds(P, Values).
