%% SPDX-License-Identifier: Apache-2.0
%% Which nodes are of one family, and what is said of them together.
-module(atoll_watch_family_tests).

-include_lib("eunit/include/eunit.hrl").

a_family_is_the_name_without_its_number_test() ->
    ?assertEqual([<<"shop">>, <<"shop">>, <<"shop">>, <<"shop">>, <<"shop2go">>, <<"42">>, <<"shop_a">>],
                 [atoll_watch_family:of_node(Node) || Node <- ['shop1@h', 'shop-12@h', 'shop_3@127.0.0.1', 'shop@a', 'shop2go7@h', '42@h', 'shop_a@h']]).

a_family_sums_what_its_nodes_say_test() ->
    Row = fun(Node, State, Figures) -> #{node => Node, state => State, figures => Figures} end,
    Rows = [Row('a1@h', up, #{utilisation => 0.2, memory => 10}), Row('b@h', down, #{}), Row('a2@h', up, #{utilisation => 0.6, memory => 5}), Row('a3@h', silent, #{})],
    ?assertMatch([
        #{name := <<"a">>, nodes := 3, states := #{up := 2, silent := 1}, alarms := 3, worst := major, figures := #{utilisation := 0.4, memory := 15}},
        #{name := <<"b">>, nodes := 1, states := #{down := 1}, alarms := 0, worst := none, figures := F}
    ] when F =:= #{}, atoll_watch_family:all(Rows, #{'a1@h' => {1, minor}, 'a3@h' => {2, major}})).
