%% SPDX-License-Identifier: Apache-2.0
%% @doc Hands what a partition has to another node, while commands for it go on: all items once, then those that have changed meanwhile, until few are left
%% ({@link ring_vnode}). One piece is on its way at a time, and after each of them it rests for some times as long as that took: who asks for keys meanwhile
%% has the rest of the processors and of the network, and where they are busy a handoff slows down by itself.
-module(ring_handoff).

-export([run/4]).

%% For a piece to be merged there, behind what waits for that partition.
-define(TAKE_MS, 30_000).
%% So many times as long as a piece took. The last ones, for which commands wait, come without.
-define(REST, 9).

%% @doc Hands it over; to be called by a process of its own, whose end is the result: `{handed, Items}', or why not. After anything else than `handed' the
%% partition goes on here as if nothing had been.
-spec run(pid(), module(), ring_hash:partition(), node()) -> no_return().
run(Vnode, Module, Partition, Node) ->
    case gen_server:call(Vnode, handoff, infinity) of
        ok ->
            N = all(first, Vnode, Module, Partition, Node, 0),
            exit({handed, rest(Vnode, Module, Partition, Node, N)});
        {passing, Node} -> exit({handed, 0});
        {passing, _} -> exit({shutdown, turned});
        busy -> exit({shutdown, busy})
    end.

all(After, Vnode, Module, Partition, Node, N) ->
    Begin = erlang:monotonic_time(millisecond),
    case gen_server:call(Vnode, {items, After}, infinity) of
        {[], _} -> N;
        {Items, Place} ->
            ok = sent(Items, Module, Partition, Node),
            receive after ?REST * (erlang:monotonic_time(millisecond) - Begin) -> ok end,
            all(Place, Vnode, Module, Partition, Node, N + length(Items))
    end.

rest(Vnode, Module, Partition, Node, N) ->
    {What, Items} = gen_server:call(Vnode, changed, infinity),
    ok = sent(Items, Module, Partition, Node),
    case What of
        more -> rest(Vnode, Module, Partition, Node, N + length(Items));
        last ->
            ok = gen_server:call(Vnode, {handed, Node}, infinity),
            N + length(Items)
    end.

sent([], _, _, _) -> ok;
sent(Items, Module, Partition, Node) ->
    case ring_send:call(Node, {Module, Partition, here}, {take, Items}, ?TAKE_MS) of
        {ok, taken} -> ok;
        {ok, {error, overloaded}} ->
            receive after 10 -> ok end,
            sent(Items, Module, Partition, Node);
        {ok, {error, Why}} -> exit({shutdown, Why});
        {error, Why} -> exit({shutdown, Why})
    end.
