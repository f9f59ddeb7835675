%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbit's mesh over groups: how the nodes are started on which it runs.
%%
%% The program is that of the mode `mesh', as it stands: every worker sends to every other by plain
%% `!'. The nodes use Atoll's carrier and are in groups from the start: each has connections
%% with its own group alone, but for the gateways: the first two of a group, or the first one
%% where there is a group of two, meet those of the other groups in one more. Whom a node
%% has no connection with it reaches over these. It makes no other: where there is no way over
%% groups there is none.
-module(atoll_bench_orbit_native).

-export([node_options/1, await/2, talk/1]).

-define(LOOK_MS, 20).

%% @doc How they are started, in groups of so many, for {@link atoll_cluster:start/1}.
-spec node_options(Size :: pos_integer()) ->
    #{connect_all := boolean(), apps := [atom()], args := fun(([node(), ...]) -> [string()])}.
node_options(Size) ->
    #{connect_all => false, apps => [atoll, orbit], args => fun(Nodes) ->
        ["-proto_dist", "atoll",
         "-kernel", "atoll_dist", text([{unrouted, refuse}]),
         "-atoll", "directory", "on",
         "-atoll", "s_groups", text(groups(Nodes, Size))]
    end}.

%% As in the mode `groups', with two gateways. Two would leave nobody else in a group of two.
groups(Nodes, Size) ->
    Gateways = case length(Nodes) div max(1, length(Nodes) div Size) of Least when Least > 2 -> 2; _ -> 1 end,
    {ok, Topology} = atoll_topology:star(Nodes, #{group_size => Size, gateways => Gateways, prefix => orbit}),
    atoll_topology:groups(Topology).

text(Term) ->
    lists:flatten(io_lib:format("~0tp", [Term])).

%% @doc Called on each of the nodes: waits until it is connected with its groups and has a way
%% to every other node, at most for so long; then it says to whom there is none.
-spec await([node(), ...], Ms :: non_neg_integer()) -> ok | {no_way, node()}.
await(Nodes, Ms) ->
    await_until(lists:delete(node(), Nodes), erlang:monotonic_time(millisecond) + Ms).

await_until(Nodes, Deadline) ->
    case unreached(Nodes) of
        [] ->
            ok;
        [Node | _] ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive after ?LOOK_MS -> ok end,
                    await_until(Nodes, Deadline);
                false ->
                    {no_way, Node}
            end
    end.

unreached(Nodes) ->
    Linked = [Node || #{node := Node} <- atoll:links()],
    CoMembers = lists:usort(lists:append([Members || {_, Members} <- s_group:own_s_groups()])),
    %% All of these relay for all, so a chain of groups is a way.
    Reached =
        case atoll:reachable() of
            {ok, Some} -> Some;
            {error, _} -> []
        end,
    [
        Node
     || Node <- Nodes,
        not lists:member(Node, Linked),
        lists:member(Node, CoMembers) orelse not lists:member(Node, Reached)
    ].

%% @doc Called on each of the nodes, on one after the other: has an answer from every other, so
%% that there are circuits with all. When a run makes them, all at the same moment, many nodes on few
%% processors take longer for it than a circuit waits.
-spec talk([node(), ...]) -> ok | {no_answer, node()}.
talk(Nodes) ->
    case [Node || Node <- lists:delete(node(), Nodes), net_adm:ping(Node) =/= pong] of
        [] -> ok;
        [Node | _] -> {no_answer, Node}
    end.
