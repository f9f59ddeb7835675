%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cluster_options_tests).
-include_lib("eunit/include/eunit.hrl").

-define(check(Options), atoll_cluster_options:check(Options)).

defaults_fill_what_is_not_given_test() ->
    {ok, Config} = ?check(#{nodes => 3}),
    ?assertMatch(#{nodes := 3, kinds := [#{kind := "", count := 3, connect_all := true, apps := [], args := []}], probe := none,
        boot_timeout := 30000, driver := atoll_cluster_local}, Config),
    ?assert(maps:get(parallel, Config) > 0).

made_up_names_differ_test() ->
    {ok, #{name := A}} = ?check(#{nodes => 1}),
    {ok, #{name := B}} = ?check(#{nodes => 1}),
    ?assertNotEqual(A, B),
    ?assertMatch({ok, #{name := A}}, ?check(#{nodes => 1, name => A})).

a_kind_has_what_all_have_unless_it_says_otherwise_test() ->
    Kinds = [#{kind => "_r_", count => 2}, #{kind => "_c_", count => 3, connect_all => false, args => ["-hidden"]}],
    {ok, Config} = ?check(#{nodes => Kinds, apps => [atoll], args => ["-x"]}),
    ?assertMatch(#{nodes := 5, kinds := [
        #{kind := "_r_", count := 2, connect_all := true, apps := [atoll], args := ["-x"]},
        #{kind := "_c_", count := 3, connect_all := false, apps := [atoll], args := ["-hidden"]}]}, Config).

every_bad_value_is_named_by_its_key_test_() ->
    Bad = [
        {nodes, 0}, {nodes, -1}, {nodes, 1.5}, {nodes, "3"}, {nodes, []}, {nodes, [#{kind => "a"}]},
        {nodes, [#{kind => "a", count => 0}]}, {nodes, [#{kind => "a1", count => 1}]}, {nodes, [#{kind => "", count => 1}]},
        {nodes, [#{kind => "a", count => 1}, #{kind => "a", count => 2}]}, {nodes, [#{kind => "a", count => 1, apps => kernel}]},
        {nodes, [#{kind => "a", count => 1, boot_timeout => 1}]}, {nodes, [#{kind => "a@", count => 1}]},
        {name, ""}, {name, "1a"}, {name, "a b"}, {name, "a/b"}, {name, ".a"}, {name, "a\n"},
        {name, lists:duplicate(41, $a)}, {name, atom}, {name, <<"a">>}, {name, "a@b"},
        {connect_all, yes}, {apps, kernel}, {apps, ["kernel"]}, {apps, [a | b]},
        {args, "-x"}, {args, [x]}, {args, ["a\0b"]}, {args, [[16#D800]]}, {args, ["a" | b]},
        {args, fun() -> [] end}, {probe, erlang}, {probe, {erlang, nodes, 0}}, {probe, {erlang, "nodes", []}},
        {hosts, []}, {hosts, loopback}, {hosts, [#{}]}, {hosts, [#{address => {127, 0, 0, 1}}]},
        {hosts, [#{address => "127.0.0.1", wrap => []}]}, {hosts, [#{address => {127, 0, 0, 1}, wrap => [env]}]},
        {hosts, [#{address => {127, 0, 0, 1}, wrap => [], name => "a b"}]}, {hosts, [#{address => {127, 0, 0, 1}, wrap => [], port => 1}]},
        {parallel, 0}, {boot_timeout, infinity}, {boot_timeout, 0},
        {progress, fun(_) -> ok end}, {driver, lists}, {driver, no_such_module}, {color, red}
    ],
    [{lists:flatten(io_lib:format("~p", [KV])),
        ?_assertMatch({error, {bad_option, Key, _}}, ?check(maps:merge(#{nodes => 1}, #{Key => Value})))}
     || {Key, Value} = KV <- Bad].

a_host_may_have_a_name_by_which_its_nodes_are_named_test() ->
    Hosts = [#{address => {127, 0, 0, 1}, wrap => [], name => "localhost"}],
    ?assertMatch({ok, #{hosts := Hosts}}, ?check(#{nodes => 1, hosts => Hosts})),
    ?assertEqual(['a1@localhost'], atoll_cluster_local:nodes("a", Hosts)).

the_number_of_nodes_must_be_given_test() ->
    ?assertEqual({error, {bad_option, nodes, "is missing"}}, ?check(#{})).

options_are_a_map_test() ->
    ?assertMatch({error, {bad_option, [{nodes, 1}], _}}, ?check([{nodes, 1}])).
