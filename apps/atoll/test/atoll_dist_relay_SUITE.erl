%% Connections over other nodes, on real ones: two nodes that have no connection of their
%% own, with gateways between.
-module(atoll_dist_relay_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, carrier/1, name/1, call/4, works/2, listed/2]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    two_nodes_work_over_a_third/1
]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

%% Nobody is to connect who is not told to.
relayed(Config, Name, Options) ->
    One = node(Config, Name, carrier(Options) ++ ["-connect_all", "false"]),
    ok = call(One, atoll_dist_ways, start, []),
    One.

%% A and B, and so many gateways between, each connected with both.
between(Config, Gateways) -> between(Config, Gateways, []).

between(Config, Gateways, Options) ->
    [A, B | Gs] = Nodes = [relayed(Config, Name, Options) || Name <- ["a", "b" | lists:duplicate(Gateways, "g")]],
    [works(End, G) || End <- [A, B], G <- Gs],
    ok = ways(A, B, Gs),
    Nodes.

%% Each to the other over these.
ways(A, B, Gs) ->
    Names = [name(G) || G <- Gs],
    ok = call(A, atoll_dist_ways, set, [name(B), Names]),
    ok = call(B, atoll_dist_ways, set, [name(A), Names]).

links(Remote) -> call(Remote, atoll_dist, links, []).

two_nodes_work_over_a_third(Config) ->
    [A, B, G] = between(Config, 1),
    works(A, B),
    ok = listed(A, [{name(B), relay}, {name(G), direct}]),
    ok = listed(B, [{name(A), relay}, {name(G), direct}]),
    ok = listed(G, [{name(A), direct}, {name(B), direct}]),
    Path = [name(N) || N <- [A, G, B]],
    [#{path := Path, sealed := false, started := here}] = [L || #{kind := relay} = L <- links(A)],
    [#{path := Path, sealed := false, started := there}] = [L || #{kind := relay} = L <- links(B)],
    ?assertMatch(#{circuits := 1, ends := 0}, call(G, atoll_dist, relay, [])).
