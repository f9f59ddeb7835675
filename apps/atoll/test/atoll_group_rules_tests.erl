%% SPDX-License-Identifier: Apache-2.0
%% The return values of SD Erlang's s_group, row by row.
-module(atoll_group_rules_tests).

-include_lib("eunit/include/eunit.hrl").

own() -> atoll_group_view:new(g, [n1, n2, n3], {1, n1, 0}).

check(Operation) -> atoll_group_rules:check(Operation, n1, own()).
check_free(Operation) -> atoll_group_rules:check(Operation, n1, none).

new_s_group_test_() ->
    [
        ?_assertEqual({done, {error, reserved_s_group_name}}, check_free({new, undefined, [n1]})),
        ?_assertEqual({done, {ok, g, []}}, check_free({new, g, []})),
        ?_assertEqual({done, {error, remote_s_group}}, check_free({new, g, [n2]})),
        ?_assertEqual({done, {error, s_group_name_is_in_use}}, check({new, g, [n1]})),
        ?_assertEqual({go, none}, check_free({new, g, [n1, n2]}))
    ].

add_nodes_test_() ->
    [
        ?_assertEqual({done, {ok, g, []}}, check({add, g, [n1]})),
        ?_assertEqual({done, {ok, g, []}}, check_free({add, g, []})),
        ?_assertEqual({done, {ok, g, [n2]}}, check({add, g, [n1, n2]})),
        ?_assertEqual(
            {done, {error, node_does_not_belong_to_the_s_group}}, check_free({add, g, [n2]})
        ),
        ?_assertEqual({go, own()}, check({add, g, [n2, n4]}))
    ].

remove_nodes_test_() ->
    [
        ?_assertEqual({done, {error, "cannot_remove_itself"}}, check({remove, g, [n1, n2]})),
        ?_assertEqual({done, ok}, check({remove, g, [n4]})),
        ?_assertEqual({done, ok}, check({remove, g, []})),
        ?_assertEqual(
            {done, {error, {"node_does_not_belong_to_s_group", g}}}, check_free({remove, g, [n2]})
        ),
        ?_assertEqual({go, own()}, check({remove, g, [n2]}))
    ].

delete_s_group_test_() ->
    [
        ?_assertEqual({done, {error, {"remote_s_group", g}}}, check_free({delete, g, []})),
        ?_assertEqual({go, own()}, check({delete, g, []}))
    ].

only_nodes_that_agreed_are_added_test() ->
    {View, Answer} = atoll_group_rules:change({add, g, [n2, n4, n5]}, own(), [n1, n2, n4], {2, n1, 0}),
    ?assertEqual({ok, g, [n4]}, Answer),
    ?assertEqual([n1, n2, n3, n4], atoll_group_view:members(View)).

every_error_has_a_sentence_test_() ->
    Errors = [
        E
     || {done, {error, E}} <- [
            check_free({new, undefined, [n1]}),
            check_free({new, g, [n2]}),
            check({new, g, [n1]}),
            check_free({add, g, [n2]}),
            check({remove, g, [n1]}),
            check_free({remove, g, [n2]}),
            check_free({delete, g, []})
        ]
    ] ++ [timeout, overloaded, s_group_not_runnig, {bad_name, "g"}, {bad_nodes, n1}],
    [?_assert(is_sentence(s_group:format_error(E))) || E <- Errors].

is_sentence(Chars) ->
    Text = unicode:characters_to_list(Chars),
    length(Text) > 20 andalso not lists:member($\n, Text).

what_happened_is_told_test() ->
    Before = [{a, {a, 1}, [n1, n2]}, {b, {b, 1}, [n1]}],
    Now = [{a, {a, 1}, [n1, n3]}, {c, {c, 1}, [n1, n4]}],
    ?assertEqual(
        [
            {s_group, deleted, b, [n1]},
            {s_group, nodes_added, a, [n3]},
            {s_group, nodes_removed, a, [n2]},
            {s_group, created, c, [n1, n4]}
        ],
        atoll_group_rules:notices(Before, Now)
    ).
