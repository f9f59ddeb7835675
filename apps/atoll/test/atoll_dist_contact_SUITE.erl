%% SPDX-License-Identifier: Apache-2.0
%% How long a first contact takes over the carrier and over stock distribution. It compares times.
-module(atoll_dist_contact_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, carrier/0, name/1, call/4, apart/2]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([it_takes_little_longer_than_over_stock/1]).

%% Seven contacts of each kind, so often at most.
-define(CONTACTS, 6).

suite() -> [{timetrap, {minutes, 15}}, {userdata, quiet}].

all() -> [it_takes_little_longer_than_over_stock || atoll_tier:tier() =:= deep].

init_per_suite(Config) -> atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) -> atoll_dist_nodes:end_suite(Config).

init_per_testcase(_Case, Config) -> atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) -> atoll_dist_nodes:end_case(Config).

%% Of fresh nodes in interactive mode, each of which loads what it needs when it first connects.
%% The least of several, and of more where other work has disturbed them.
it_takes_little_longer_than_over_stock(Config) ->
    takes_little_longer([], ?CONTACTS, Config).

takes_little_longer(Times, 0, _Config) ->
    error({takes_longer, Times});
takes_little_longer(Times, Left, Config) ->
    More = [{Args, contacts(Config, Args)} || _ <- lists:seq(1, 7), Args <- [[], carrier()]] ++ Times,
    Least = fun(Of, At) -> lists:min([element(At, Us) || {Args, Us} <- More, Args =:= Of]) end,
    ct:pal("~p", [More]),
    %% Nobody waits for an acknowledgement, which comes after 40 ms.
    case Least(carrier(), 1) < 1.5 * Least([], 1) andalso Least(carrier(), 2) < Least([], 2) + 10000 of
        true -> ok;
        false -> takes_little_longer(More, Left - 1, Config)
    end.

%% Of two fresh nodes the first one and the next one, in microseconds.
contacts(Config, Args) ->
    [A, B] = [node(Config, Name, Args) || Name <- ["a", "b"]],
    Contact = fun() ->
        {Us, true} = call(A, timer, tc, [net_kernel, connect_node, [name(B)]]),
        Us
    end,
    %% The module that measures is no part of it.
    {module, timer} = call(A, code, ensure_loaded, [timer]),
    First = Contact(),
    ok = apart(A, B),
    Next = Contact(),
    ?assertEqual([false, false], [call(At, code, is_loaded, [crypto]) || At <- [A, B]]),
    [ok = peer:stop(Peer) || #{peer := Peer} <- [A, B]],
    {First, Next}.
