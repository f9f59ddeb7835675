%% SPDX-License-Identifier: Apache-2.0
%% A command as a person writes it.
-module(atoll_semantics_line_tests).

-include_lib("eunit/include/eunit.hrl").

-define(L, atoll_semantics_line).

%% Whatever the generator draws can be written as a line, and is read again as what it was.
each_command_has_a_line_test_() ->
    Seed = atoll_tier:seed(?MODULE),
    {"seed " ++ integer_to_list(Seed), fun() ->
        Sequence = atoll_semantics_commands:sequence(Seed, 400, faults),
        lists:foreach(
            fun({_, Written} = Command) ->
                Line = unicode:characters_to_list(?L:format(Command)),
                {ok, {_, Read} = Again} = ?L:parse(Line),
                ?assertEqual({Line, Written}, {Line, Read}),
                atoll_semantics_commands:is_fault(Written) orelse ?assertEqual(Command, Again)
            end,
            Sequence
        )
    end}.

a_wrong_line_is_told_in_a_sentence_test_() ->
    [
        {Line, fun() ->
            {error, Said} = ?L:parse(Line),
            ?assertNotEqual(nomatch, string:find(lists:flatten(Said), Part))
        end}
     || {Line, Part} <- [
            {"", "begins with one of n1"},
            {"n9 info", "begins with one of n1"},
            {"n1", "n1 is to do is missing"},
            {"n1 new_s_group(g, [n1", "not Erlang"},
            {"n1 'new", "not Erlang"},
            {"n1 new_s_group(g, [n1, n7])", "[n1,n7] is no list of nodes"},
            {"n1 new_s_group(g, n1)", "n1 is no list of nodes"},
            {"n1 new_s_group(\"g\", [n1])", "is an atom"},
            {"n1 register_name(g, a, p1)", "a process is {Node, Number}"},
            {"n1 register_name(g, a, {n1, 0})", "a process is {Node, Number}"},
            {"n1 register_name(g, a, self())", "only terms"},
            {"n1 send(g, a, bye)", "is hello"},
            {"n1 info(), n2", "one call"},
            {"n1 erlang:halt()", "one call"},
            {"n1 halt()", "halt/0 is none of the functions"},
            {"cut", "needs the nodes"},
            {"cut(n1)", "no list of nodes"},
            {"cut([n1 | n2])", "no list of nodes"},
            {"n1 whereis_name(g, 1.0)", "a float"},
            {"cut([n1, n2], [n2])", "n2 is named twice"},
            {"n1 new_s_group(g, [n1 | n2])", "no list of nodes"},
            {"heal(n1)", "no arguments"}
        ]
    ].
