%% SPDX-License-Identifier: Apache-2.0
%% Groups of a configuration are normalised as SD Erlang does, or refused in a sentence.
-module(atoll_group_config_tests).

-include_lib("eunit/include/eunit.hrl").

groups_are_normalised_test() ->
    [
        ?assertEqual({ok, Groups}, atoll_group_config:new(Term))
     || {Term, Groups} <- [
            {[], []},
            {[{b, ['n2@h', 'n1@h', 'n2@h']}, {a, normal, ['n1@h']}], [{a, ['n1@h']}, {b, ['n1@h', 'n2@h']}]},
            {[{a, ['n1@h']}, {a, normal, ['n2@h', 'n1@h']}], [{a, ['n1@h', 'n2@h']}]},
            {[{undefined, ['n1@h']}, {no_group, ['n1@h']}, {a, []}], []}
        ]
    ].

the_groups_of_a_node_test() ->
    {ok, Groups} = atoll_group_config:new([{a, ['n1@h']}, {b, ['n1@h', 'n2@h']}]),
    ?assertEqual([{b, ['n1@h', 'n2@h']}], atoll_group_config:of_node('n2@h', Groups)),
    ?assertEqual([], atoll_group_config:of_node('n3@h', Groups)).

what_is_wrong_stops_the_start_in_a_sentence_test() ->
    [
        begin
            {error, Error} = atoll_config:new([{Key, Term}], false),
            ?assertEqual(Text, lists:flatten(atoll_config:format_error(Error)))
        end
     || {Key, Term, Text} <- [
            {s_groups, a, "the option s_groups must be a list, not a"},
            {s_groups, [a], "the option s_groups: a group is given as {Name, Nodes} or {Name, normal, Nodes}, not a"},
            {s_groups, [a | b], "the option s_groups must be a list, not [a|b]"},
            {s_groups, [{a, ['n1@h']} | b], "the option s_groups must be a list, not [{a,[n1@h]}|b]"},
            {s_groups, [{"a", ['n1@h']}], "the option s_groups: a group's name is an atom, not \"a\""},
            {s_groups, [{a, hidden, ['n1@h']}],
                "the option s_groups: a group is given as {Name, Nodes} or {Name, normal, Nodes}, not {a,hidden,[n1@h]}"},
            {s_groups, [{a, ['n1@h', "n2"]}], "the option s_groups: the group a needs a list of nodes, not [n1@h,\"n2\"]"},
            {s_groups, [{a, 'n1@h'}], "the option s_groups: the group a needs a list of nodes, not n1@h"},
            {record_groups, true, "the option record_groups must be the name of a folder, or off, not true"},
            {record_groups, "", "the option record_groups must be the name of a folder, or off, not []"}
        ]
    ].

the_start_gets_groups_and_file_test() ->
    {ok, Config} = atoll_config:new([{s_groups, [{a, normal, ['n1@h']}]}, {record_groups, "/some/where"}], false),
    ?assertEqual(#{configured => [{a, ['n1@h']}], file => "/some/where/nonode@nohost.groups"}, atoll_config:boot(Config)),
    {ok, Default} = atoll_config:new([], false),
    ?assertEqual(#{configured => [], file => none}, atoll_config:boot(Default)).
