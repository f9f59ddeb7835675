%% SPDX-License-Identifier: Apache-2.0
%% What is known of a node is answered from there; everything else is erl_epmd's.
-module(atoll_epmd_tests).

-include_lib("eunit/include/eunit.hrl").

-export([
    t_nothing_known_is_erl_epmd/0,
    t_address_and_port_are_answered/0,
    t_a_port_alone_needs_no_epmd/0,
    t_an_address_alone_leaves_the_port_to_epmd/0,
    t_an_address_of_the_other_family_is_no_use/0,
    t_an_address_as_host_is_understood/0,
    t_the_bound_holds_and_is_counted/0,
    t_every_callback_of_erl_epmd_is_there/0
]).

epmd_test_() ->
    {foreach, fun forget/0, fun(_) -> forget() end, [
        {atom_to_list(F), fun() -> ?MODULE:F() end}
     || {F, 0} <- ?MODULE:module_info(exports), lists:prefix("t_", atom_to_list(F))
    ]}.

forget() ->
    _ = persistent_term:erase(atoll_epmd),
    ok.

t_nothing_known_is_erl_epmd() ->
    ?assertEqual({ok, {127, 0, 0, 9}}, atoll_epmd:address_please("b", "127.0.0.9", inet)),
    ?assertMatch({error, _}, atoll_epmd:address_please("b", "nowhere.invalid", inet)),
    ?assertEqual(erl_epmd:listen_port_please("b", "h"), atoll_epmd:listen_port_please("b", "h")),
    ?assertNot(atoll_epmd:in_use()).

t_address_and_port_are_answered() ->
    ok = atoll_epmd:learn(#{<<"b@nowhere.invalid">> => #{address => {127, 0, 0, 3}, port => 9100}}, 10),
    ?assertEqual({ok, {127, 0, 0, 3}, 9100, 6}, atoll_epmd:address_please("b", "nowhere.invalid", inet)),
    ?assertEqual({port, 9100, 6}, atoll_epmd:port_please("b", "nowhere.invalid")),
    %% Of that node only.
    ?assertMatch({error, _}, atoll_epmd:address_please("c", "nowhere.invalid", inet)),
    ok = atoll_epmd:learn(#{<<"b@nowhere.invalid">> => #{}}, 10),
    ?assertMatch({error, _}, atoll_epmd:address_please("b", "nowhere.invalid", inet)).

t_a_port_alone_needs_no_epmd() ->
    ok = atoll_epmd:learn(#{<<"b@127.0.0.9">> => #{port => 9100}, <<"b@nowhere.invalid">> => #{port => 1}}, 10),
    ?assertEqual({ok, {127, 0, 0, 9}, 9100, 6}, atoll_epmd:address_please("b", "127.0.0.9", inet)),
    ?assertMatch({error, _}, atoll_epmd:address_please("b", "nowhere.invalid", inet)).

t_an_address_alone_leaves_the_port_to_epmd() ->
    ok = atoll_epmd:learn(#{<<"b@h">> => #{address => {127, 0, 0, 3}}}, 10),
    ?assertEqual({ok, {127, 0, 0, 3}}, atoll_epmd:address_please("b", "h", inet)).

t_an_address_of_the_other_family_is_no_use() ->
    ok = atoll_epmd:learn(#{<<"b@127.0.0.9">> => #{address => {0, 0, 0, 0, 0, 0, 0, 1}, port => 1}}, 10),
    ?assertEqual({ok, {0, 0, 0, 0, 0, 0, 0, 1}, 1, 6}, atoll_epmd:address_please("b", "127.0.0.9", inet6)),
    ?assertEqual({ok, {127, 0, 0, 9}}, atoll_epmd:address_please("b", "127.0.0.9", inet)).

t_an_address_as_host_is_understood() ->
    ok = atoll_epmd:learn(#{<<"b@127.0.0.9">> => #{port => 9100}, <<"b@fe80::1">> => #{port => 9200}}, 10),
    ?assertEqual({port, 9100, 6}, atoll_epmd:port_please(b, {127, 0, 0, 9}, 1000)),
    ?assertEqual({port, 9200, 6}, atoll_epmd:port_please("b", {16#fe80, 0, 0, 0, 0, 0, 0, 1}, 1000)).

t_the_bound_holds_and_is_counted() ->
    Ways = maps:from_list([{<<N, "@h">>, #{port => N}} || N <- lists:seq($a, $z)]),
    ok = atoll_epmd:learn(Ways, 10),
    ?assertEqual(#{known => 10, refused => 16}, atoll_epmd:summary()),
    %% What is known can still change, and what goes makes room.
    ok = atoll_epmd:learn(#{<<"a@h">> => #{port => 1}}, 10),
    ok = atoll_epmd:learn(#{<<"b@h">> => #{}}, 10),
    ok = atoll_epmd:learn(#{<<"z@h">> => #{port => 2}}, 10),
    ?assertEqual({port, 1, 6}, atoll_epmd:port_please("a", "h")),
    ?assertEqual({port, 2, 6}, atoll_epmd:port_please("z", "h")),
    ?assertEqual(#{known => 10, refused => 16}, atoll_epmd:summary()).

%% What the kernel of this release may call, but for what only erl_epmd's own process
%% and tools need.
t_every_callback_of_erl_epmd_is_there() ->
    Own = [start, stop, open, init, handle_call, handle_cast, handle_info, terminate, code_change, module_info],
    Asked = [F || {Name, _} = F <- erl_epmd:module_info(exports), not lists:member(Name, Own)],
    ?assertEqual([], Asked -- atoll_epmd:module_info(exports)).
