%% SPDX-License-Identifier: Apache-2.0
%% @doc How a node that was just started says that it is ready: what runs there for whoever started
%% it, since it waits for what the node is told.
-module(atoll_up_ready).

-export([await_settled/2, await_reach/2]).

-export_type([unsettled/0]).

%% A link that comes up is told to nobody.
-define(LOOK_MS, 200).

-type unsettled() :: #{members := non_neg_integer(), neighbours := non_neg_integer()}.

%% @doc Waits until this node knows so many members and, unless it is alone, has a
%% neighbour; at most for so long.
-spec await_settled(Members :: pos_integer(), Ms :: non_neg_integer()) -> ok | {late, unsettled()}.
await_settled(Count, Ms) ->
    ok = atoll:subscribe([member_up, member_down, neighbour_up]),
    Settled = await(Count, erlang:monotonic_time(millisecond) + Ms),
    ok = atoll:unsubscribe(),
    Settled.

await(Count, Deadline) ->
    case {length(atoll:members()), length(atoll:neighbours())} of
        {Count, Neighbours} when Neighbours > 0; Count =:= 1 ->
            ok;
        {Members, Neighbours} ->
            receive
                {atoll, _Kind, _Details} -> await(Count, Deadline)
            after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
                {late, #{members => Members, neighbours => Neighbours}}
            end
    end.

%% @doc Waits until this node knows how to reach so many others; at most for so long.
-spec await_reach(non_neg_integer(), Ms :: non_neg_integer()) -> ok | {late, non_neg_integer()}.
await_reach(Count, Ms) ->
    ok = atoll_interpreter:subscribe(atoll_route),
    Reached = await_reached(Count, erlang:monotonic_time(millisecond) + Ms),
    ok = atoll_interpreter:unsubscribe(atoll_route),
    Reached.

await_reached(Count, Deadline) ->
    {ok, Nodes} = atoll:reachable(),
    case length(Nodes) of
        Enough when Enough >= Count ->
            ok;
        Reached ->
            receive
                {atoll, atoll_route, _Notice} -> await_reached(Count, Deadline)
            after min(?LOOK_MS, max(0, Deadline - erlang:monotonic_time(millisecond))) ->
                case erlang:monotonic_time(millisecond) < Deadline of
                    true -> await_reached(Count, Deadline);
                    false -> {late, Reached}
                end
            end
    end.
