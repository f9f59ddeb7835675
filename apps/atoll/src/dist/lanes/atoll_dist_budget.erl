%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc How much was taken from the VM and is not yet written to a socket.
%%
%% The VM holds its senders back by what has not been taken from it; what was taken is
%% the carrier's, and must be bounded. Taking stops when the budget is spent, and goes on
%% when a quarter of it is free again, so that it goes on for more than one packet. What
%% waits is at most the budget and one packet: a large message comes in fragments of
%% 64 KB, but a peer that takes no fragments gets it whole.
%%
%% A packet is charged its bytes and what it costs beside them, so that many small
%% packets are bounded too.
-module(atoll_dist_budget).

-export([new/2, add/3, written/4, dropped/3, may_take/1, total/1, waiting/1, figures/1]).

-export_type([budget/0, figure/0]).

-record(budget, {
    limit :: pos_integer(),
    total = 0 :: non_neg_integer(),
    is_spent = false :: boolean(),
    %% How often it was spent.
    spent = 0 :: non_neg_integer(),
    %% What waits on each lane, and the most that ever waited.
    waiting :: tuple(),
    most :: tuple(),
    %% Bytes and packets of each lane that were written.
    bytes :: tuple(),
    packets :: tuple()
}).

-opaque budget() :: #budget{}.

-type figure() :: #{
    lane := atoll_dist_lanes:lane(),
    waiting := non_neg_integer(),
    most_waiting := non_neg_integer(),
    bytes := non_neg_integer(),
    packets := non_neg_integer()
}.

%% A packet's list, three binaries that are parts of one, the head of an item, and the
%% place in a batch: about 30 words.
-define(OVERHEAD, 256).

%% @doc So many lanes, together so many bytes.
-spec new(atoll_dist_lanes:count(), pos_integer()) -> budget().
new(N, Limit) ->
    Zeros = erlang:make_tuple(N, 0),
    #budget{limit = Limit, waiting = Zeros, most = Zeros, bytes = Zeros, packets = Zeros}.

%% @doc A packet was taken, for that lane.
-spec add(atoll_dist_lanes:lane(), pos_integer(), budget()) -> budget().
add(Lane, Size, #budget{total = Total0, waiting = Waiting} = Budget) ->
    I = Lane + 1,
    Cost = Size + ?OVERHEAD,
    Total = Total0 + Cost,
    spend(Budget#budget{total = Total, waiting = setelement(I, Waiting, element(I, Waiting) + Cost)}).

spend(#budget{total = Total, limit = Limit, is_spent = false, spent = Spent} = Budget) when Total >= Limit ->
    Budget#budget{is_spent = true, spent = Spent + 1};
spend(Budget) ->
    Budget.

%% @doc So many bytes in so many packets of that lane were written.
-spec written(atoll_dist_lanes:lane(), non_neg_integer(), non_neg_integer(), budget()) -> budget().
written(Lane, Size, Count, #budget{total = Total0, waiting = Waiting} = Budget0) ->
    #budget{limit = Limit, is_spent = IsSpent, most = Most, bytes = Bytes, packets = Packets} = Budget0,
    I = Lane + 1,
    Cost = Size + Count * ?OVERHEAD,
    Was = element(I, Waiting),
    true = Cost =< Was,
    Total = Total0 - Cost,
    Budget0#budget{
        total = Total,
        is_spent = IsSpent andalso 4 * Total > 3 * Limit,
        waiting = setelement(I, Waiting, Was - Cost),
        %% It is most before something is written.
        most = setelement(I, Most, max(Was, element(I, Most))),
        bytes = setelement(I, Bytes, element(I, Bytes) + Size),
        packets = setelement(I, Packets, element(I, Packets) + Count)
    }.

%% @doc A packet of that size, which waited for that lane, will not be written.
-spec dropped(atoll_dist_lanes:lane(), pos_integer(), budget()) -> budget().
dropped(Lane, Size, #budget{bytes = Bytes, packets = Packets} = Budget) ->
    (written(Lane, Size, 1, Budget))#budget{bytes = Bytes, packets = Packets}.

%% @doc Whether more may be taken.
-spec may_take(budget()) -> boolean().
may_take(#budget{is_spent = IsSpent}) -> not IsSpent.

%% @doc What waits on all lanes together.
-spec total(budget()) -> non_neg_integer().
total(#budget{total = Total}) -> Total.

%% @doc What waits on each lane.
-spec waiting(budget()) -> atoll_dist_lanes:waiting().
waiting(#budget{waiting = Waiting}) -> Waiting.

%% @doc How often the budget was spent, and the figures of each lane.
-spec figures(budget()) -> {non_neg_integer(), [figure()]}.
figures(#budget{spent = Spent, waiting = Waiting, most = Most, bytes = Bytes, packets = Packets}) ->
    {Spent, [
        #{
            lane => I - 1,
            waiting => element(I, Waiting),
            most_waiting => max(element(I, Waiting), element(I, Most)),
            bytes => element(I, Bytes),
            packets => element(I, Packets)
        }
     || I <- lists:seq(1, tuple_size(Waiting))
    ]}.
