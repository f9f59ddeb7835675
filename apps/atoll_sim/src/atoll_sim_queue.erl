%% @doc What is to happen, in the order of its time; what was put in for the same
%% millisecond comes out in the order in which it was put in.
%%
%% A bucket for each millisecond that has something, and an ordered set of these
%% milliseconds: a world of thousands of nodes has several happenings in each, so
%% that the set is seldom touched.
-module(atoll_sim_queue).

-export([new/0, put/3, take/2, size/1]).

-export_type([queue/1]).

-record(queue, {
    %% Newest first.
    buckets = #{} :: #{Ms :: integer() => [term(), ...]},
    order = gb_sets:new() :: gb_sets:set(integer()),
    size = 0 :: non_neg_integer()
}).

-opaque queue(_Happening) :: #queue{}.

%% @doc Nothing is to happen.
-spec new() -> queue(none()).
new() ->
    #queue{}.

%% @doc Happening happens at Ms.
-spec put(Ms :: integer(), Happening, queue(Happening)) -> queue(Happening).
put(Ms, Happening, #queue{buckets = Buckets, order = Order, size = Size} = Queue) ->
    case Buckets of
        #{Ms := Bucket} ->
            Queue#queue{buckets = Buckets#{Ms := [Happening | Bucket]}, size = Size + 1};
        #{} ->
            Queue#queue{
                buckets = Buckets#{Ms => [Happening]},
                order = gb_sets:add_element(Ms, Order),
                size = Size + 1
            }
    end.

%% @doc All that happens in the next millisecond that has something, if that is
%% not later than Until.
-spec take(Until :: integer(), queue(Happening)) -> {integer(), [Happening, ...], queue(Happening)} | none.
take(Until, #queue{buckets = Buckets, order = Order, size = Size} = Queue) ->
    case Size > 0 andalso gb_sets:smallest(Order) of
        Ms when is_integer(Ms), Ms =< Until ->
            {Bucket, Rest} = maps:take(Ms, Buckets),
            Left = Queue#queue{
                buckets = Rest,
                order = gb_sets:delete(Ms, Order),
                size = Size - length(Bucket)
            },
            {Ms, lists:reverse(Bucket), Left};
        _ ->
            none
    end.

%% @doc How much is to happen.
-spec size(queue(_)) -> non_neg_integer().
size(#queue{size = Size}) ->
    Size.
