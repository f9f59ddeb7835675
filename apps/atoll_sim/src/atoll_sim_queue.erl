%% @doc What is to happen, in the order of its time; what was put in for the same
%% millisecond comes out in the order in which it was put in.
%%
%% A timing wheel of two levels. The present span of time has a bucket for each
%% millisecond, and they are looked at one after the other; later spans have one
%% bucket each, which is spread when its time has come. So neither putting nor
%% taking depends on how much is to happen.
-module(atoll_sim_queue).

-export([new/0, put/3, take/2, size/1]).

-export_type([queue/1]).

%% Milliseconds in a span.
-define(SPAN, 1024).

-record(queue, {
    %% The present span, and up to where it was looked at: nothing is earlier.
    span = 0 :: integer(),
    next = 0 :: integer(),
    %% Newest first.
    near = #{} :: #{Ms :: integer() => [term(), ...]},
    far = #{} :: #{Span :: integer() => [{Ms :: integer(), term()}, ...]},
    size = 0 :: non_neg_integer()
}).

-opaque queue(_Happening) :: #queue{}.

%% @doc Nothing is to happen.
-spec new() -> queue(none()).
new() ->
    #queue{}.

%% @doc Happening happens at Ms, or at once if that is over.
-spec put(Ms :: integer(), Happening, queue(Happening)) -> queue(Happening).
put(Ms, Happening, #queue{next = Next} = Queue) when Ms < Next ->
    put(Next, Happening, Queue);
put(Ms, Happening, #queue{span = Span, size = Size} = Queue) when Ms div ?SPAN =:= Span ->
    #queue{near = Near} = Queue,
    Queue#queue{near = bucket(Ms, Happening, Near), size = Size + 1};
put(Ms, Happening, #queue{far = Far, size = Size} = Queue) ->
    Queue#queue{far = bucket(Ms div ?SPAN, {Ms, Happening}, Far), size = Size + 1}.

bucket(Key, Element, Buckets) ->
    case Buckets of
        #{Key := Bucket} -> Buckets#{Key := [Element | Bucket]};
        #{} -> Buckets#{Key => [Element]}
    end.

%% @doc All that happens in the next millisecond that has something, if that is
%% not later than Until.
-spec take(Until :: integer(), queue(Happening)) -> {integer(), [Happening, ...], queue(Happening)} | none.
take(_Until, #queue{size = 0}) ->
    none;
take(Until, #queue{near = Near} = Queue) when map_size(Near) =:= 0 ->
    #queue{far = Far} = Queue,
    Span = lists:min(maps:keys(Far)),
    case Span * ?SPAN =< Until of
        true -> take(Until, spread(Span, Queue));
        false -> none
    end;
take(Until, #queue{next = Next}) when Next > Until ->
    none;
take(Until, #queue{near = Near, next = Next, size = Size} = Queue) ->
    case Near of
        #{Next := Bucket} ->
            Left = Queue#queue{near = maps:remove(Next, Near), size = Size - length(Bucket)},
            {Next, lists:reverse(Bucket), Left};
        #{} when Next < Until ->
            take(Until, Queue#queue{next = Next + 1});
        #{} ->
            none
    end.

%% The bucket has its newest first, and so have those that it is spread to.
spread(Span, #queue{far = Far, next = Next} = Queue) ->
    {Bucket, Rest} = maps:take(Span, Far),
    Near = lists:foldl(fun({Ms, Happening}, Near) -> bucket(Ms, Happening, Near) end, #{}, lists:reverse(Bucket)),
    Queue#queue{span = Span, next = max(Next, Span * ?SPAN), near = Near, far = Rest}.

%% @doc How much is to happen.
-spec size(queue(_)) -> non_neg_integer().
size(#queue{size = Size}) ->
    Size.
