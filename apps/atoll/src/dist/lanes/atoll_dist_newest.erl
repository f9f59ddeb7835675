%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What waits for a lane of a monotonic channel: of the messages from one process to
%% another the newest alone.
%%
%% A message that may be dropped ({@link atoll_dist_packet:plain/1}) and has not been taken yet
%% is dropped when a newer one from the same sender to the same receiver comes. The newer one
%% takes its place, so nothing that waits is put off by what comes after. But it goes to the
%% end if something that must not be dropped came in between, lest it overtakes that.
%%
%% Promised: what is taken of each sender and receiver is in the order in which it came, and
%% its last message is among it; everything else is taken, in order; what is dropped and
%% what is taken is together what came. So never more messages wait than there are pairs.
-module(atoll_dist_newest).

-export([new/0, push/4, take/2, is_empty/1, dropped/1]).

-export_type([newest/0, pair/0, packet/0]).

-type pair() :: {Sender :: atoll_dist_packet:key(), Receiver :: binary()}.

-type packet() :: {Size :: pos_integer(), erlang:iovec()}.

-record(newest, {
    %% What waits, by its place; places are in a row from the first to the next, but for those
    %% of what was dropped.
    packets = #{} :: #{non_neg_integer() => {packet(), pair() | kept}},
    first = 0 :: non_neg_integer(),
    next = 0 :: non_neg_integer(),
    pairs = #{} :: #{pair() => non_neg_integer()},
    %% The place behind the last one that must not be dropped.
    behind = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-opaque newest() :: #newest{}.

%% @doc Nothing waits.
-spec new() -> newest().
new() -> #newest{}.

%% @doc A packet has come, of such a pair or one to be kept: how many bytes were dropped for it.
-spec push(pair() | kept, pos_integer(), erlang:iovec(), newest()) -> {none | pos_integer(), newest()}.
push(kept, Size, Iovec, #newest{next = Next} = Newest) ->
    {none, (append({Size, Iovec}, kept, Newest))#newest{behind = Next + 1}};
push(Pair, Size, Iovec, #newest{packets = Packets, pairs = Pairs, behind = Behind, dropped = Dropped} = Newest) ->
    case Pairs of
        #{Pair := Place} ->
            #{Place := {{Was, _}, Pair}} = Packets,
            Left = Newest#newest{dropped = Dropped + 1},
            case Place >= Behind of
                true -> {Was, Left#newest{packets = Packets#{Place := {{Size, Iovec}, Pair}}}};
                false -> {Was, append({Size, Iovec}, Pair, Left#newest{packets = maps:remove(Place, Packets)})}
            end;
        #{} ->
            {none, append({Size, Iovec}, Pair, Newest)}
    end.

append(Packet, kept, #newest{packets = Packets, next = Next} = Newest) ->
    Newest#newest{packets = Packets#{Next => {Packet, kept}}, next = Next + 1};
append(Packet, Pair, #newest{packets = Packets, next = Next, pairs = Pairs} = Newest) ->
    Newest#newest{packets = Packets#{Next => {Packet, Pair}}, next = Next + 1, pairs = Pairs#{Pair => Next}}.

%% @doc The first ones, in order: as many as have so many bytes together, and one at least.
-spec take(pos_integer() | all, newest()) -> {[packet()], newest()}.
take(Max, Newest) -> take(Max, Newest, []).

take(_Max, #newest{first = Next, next = Next} = Newest, Taken) ->
    {lists:reverse(Taken), Newest};
take(Max, #newest{first = First, packets = Packets, pairs = Pairs} = Newest, Taken) ->
    case Packets of
        #{First := {{Size, _}, _}} when Taken =/= [], Size > Max ->
            {lists:reverse(Taken), Newest};
        #{First := {{Size, _} = Packet, Pair}} ->
            Left = case Max of all -> all; _ -> max(0, Max - Size) end,
            After = Newest#newest{first = First + 1, packets = maps:remove(First, Packets), pairs = maps:remove(Pair, Pairs)},
            take(Left, After, [Packet | Taken]);
        #{} ->
            take(Max, Newest#newest{first = First + 1}, Taken)
    end.

%% @doc Whether nothing waits.
-spec is_empty(newest()) -> boolean().
is_empty(#newest{packets = Packets}) -> map_size(Packets) =:= 0.

%% @doc How many messages were dropped.
-spec dropped(newest()) -> non_neg_integer().
dropped(#newest{dropped = Dropped}) -> Dropped.
