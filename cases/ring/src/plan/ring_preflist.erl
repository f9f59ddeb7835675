%% SPDX-License-Identifier: Apache-2.0
%% @doc The preference list of a partition: who is asked for a key of it. Pure.
%%
%% There are N partitions in a row, the key's own first, each with its owner, the *primary*. In the place of one that is not well another node, the *fallback*,
%% keeps what is meant for its partition until it is back. Fallbacks are the owners of the partitions that follow, as far as they are well and not in the
%% list yet; without enough of them the list is shorter. Source: DeCandia and others, Dynamo (2007), sections 4.3 and 4.6.
-module(ring_preflist).

-export([of_partition/5]).

-export_type([entry/0]).

-type entry() :: {ring_hash:partition(), node(), primary | fallback}.

%% @doc So many entries, in the order of the ring. `Owner' says who has a partition, and `IsUp' who is well.
-spec of_partition(ring_hash:partition(), N :: pos_integer(), ring_hash:count(), fun((ring_hash:partition()) -> node()), fun((node()) -> boolean())) -> [entry()].
of_partition(Partition, N, Count, Owner, IsUp) ->
    Primaries = [{P, Owner(P)} || P <- ring_hash:successors(Partition, N, Count)],
    case [P || {P, Node} <- Primaries, not IsUp(Node)] of
        [] -> [{P, Node, primary} || {P, Node} <- Primaries];
        Down ->
            Well = [Node || {_, Node} <- Primaries, IsUp(Node)],
            Others = others(lists:nthtail(min(N, Count), ring_hash:successors(Partition, Count, Count)), length(Down), Well, Owner, IsUp),
            Stand = maps:from_list(lists:zip(lists:sublist(Down, length(Others)), Others)),
            lists:append([
                case {IsUp(Node), Stand} of
                    {true, _} -> [{P, Node, primary}];
                    {false, #{P := Other}} -> [{P, Other, fallback}];
                    {false, #{}} -> []
                end
             || {P, Node} <- Primaries
            ])
    end.

others(_, 0, _, _, _) -> [];
others([], _, _, _, _) -> [];
others([P | Partitions], N, Used, Owner, IsUp) ->
    Node = Owner(P),
    case IsUp(Node) andalso not lists:member(Node, Used) of
        true -> [Node | others(Partitions, N - 1, [Node | Used], Owner, IsUp)];
        false -> others(Partitions, N, Used, Owner, IsUp)
    end.
