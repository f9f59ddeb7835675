%% SPDX-License-Identifier: Apache-2.0
%% @doc What is to happen, in the order of its time; what was put in for the same
%% millisecond comes out in the order in which it was put in.
%%
%% A timing wheel of two levels. The present span of time has a bucket for each
%% millisecond, and they are looked at one after the other; later spans have one
%% bucket each, which is spread when its time has come. So neither putting nor
%% taking depends on how much is to happen.
%%
%% A queue is a value, but something is taken out of an open one only. Its buckets lie in
%% the dictionary of the process that has opened it, where they are changed in place: in a
%% map each change copies three of its nodes, which was a quarter of all that an event
%% allocated. So of an open queue there is only the latest. A process has one open queue at
%% a time.
-module(atoll_sim_queue).

-export([new/0, put/3, open/1, take/2, close/1, drop/0, size/1]).

-export_type([queue/1]).

%% Milliseconds in a span.
-define(SPAN, 1024).
%% The keys of buckets in the dictionary.
-define(NEAR(Ms), (2 * (Ms))).
-define(FAR(Span), (2 * (Span) + 1)).

-record(queue, {
    %% The present span, and up to where it was looked at: nothing is earlier.
    span = 0 :: integer(),
    next = 0 :: integer(),
    %% By their keys, the newest of each first: for a millisecond what happens, for a span
    %% with the millisecond. In the dictionary if it is open.
    buckets = #{} :: #{non_neg_integer() => [term(), ...]} | open
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
put(Ms, Happening, #queue{span = Span} = Queue) when Ms div ?SPAN =:= Span ->
    add(?NEAR(Ms), Happening, Queue);
put(Ms, Happening, Queue) ->
    add(?FAR(Ms div ?SPAN), {Ms, Happening}, Queue).

add(Key, Element, #queue{buckets = open} = Queue) ->
    add(Key, Element),
    Queue;
add(Key, Element, #queue{buckets = Buckets} = Queue) ->
    case Buckets of
        #{Key := Bucket} -> Queue#queue{buckets = Buckets#{Key := [Element | Bucket]}};
        #{} -> Queue#queue{buckets = Buckets#{Key => [Element]}}
    end.

add(Key, Element) ->
    case get(Key) of
        undefined -> put(Key, [Element]);
        Bucket -> put(Key, [Element | Bucket])
    end.

%% @doc From now on it can be taken from.
-spec open(queue(Happening)) -> queue(Happening).
open(#queue{buckets = Buckets} = Queue) when is_map(Buckets) ->
    undefined = put(?MODULE, open),
    maps:foreach(fun(Key, Bucket) -> put(Key, Bucket) end, Buckets),
    Queue#queue{buckets = open}.

%% @doc All that happens in the next millisecond that has something, if that is
%% not later than Until.
-spec take(Until :: integer(), queue(Happening)) ->
    {integer(), [Happening, ...], queue(Happening)} | {none, queue(Happening)}.
take(Until, #queue{span = Span, next = Next} = Queue) ->
    Last = Span * ?SPAN + ?SPAN - 1,
    case next(Next, min(Until, Last)) of
        %% More may be put in for the same moment.
        {Ms, Bucket} -> {Ms, lists:reverse(Bucket), Queue#queue{next = Ms}};
        none when Until =< Last -> {none, Queue#queue{next = max(Next, Until)}};
        none -> take_later(Until, later_span(), Queue)
    end.

take_later(Until, Span, #queue{next = Next} = Queue) when Span =/= none, Span * ?SPAN =< Until ->
    spread(Span),
    take(Until, Queue#queue{span = Span, next = max(Next, Span * ?SPAN)});
take_later(Until, _Span, #queue{next = Next} = Queue) ->
    {none, Queue#queue{next = max(Next, Until)}}.

next(Ms, Last) when Ms > Last ->
    none;
next(Ms, Last) ->
    case erase(?NEAR(Ms)) of
        undefined -> next(Ms + 1, Last);
        Bucket -> {Ms, Bucket}
    end.

%% When the present span is empty all that is left is in later ones.
later_span() ->
    case keys() of
        [] -> none;
        Keys -> lists:min(Keys) div 2
    end.

%% The bucket has its newest first, and so have those that it is spread to.
spread(Span) ->
    Bucket = erase(?FAR(Span)),
    lists:foreach(fun({Ms, Happening}) -> add(?NEAR(Ms), Happening) end, lists:reverse(Bucket)).

%% @doc A value again.
-spec close(queue(Happening)) -> queue(Happening).
close(#queue{buckets = open} = Queue) ->
    erase(?MODULE),
    Queue#queue{buckets = maps:from_list([{Key, erase(Key)} || Key <- keys()])}.

%% @doc Forgets what is open, if something is: whoever had opened it has failed.
-spec drop() -> ok.
drop() ->
    erase(?MODULE),
    lists:foreach(fun erlang:erase/1, keys()).

keys() ->
    [Key || Key <- get_keys(), is_integer(Key)].

%% @doc How much is to happen.
-spec size(queue(_)) -> non_neg_integer().
size(#queue{buckets = open}) ->
    lists:sum([length(get(Key)) || Key <- keys()]);
size(#queue{buckets = Buckets}) ->
    maps:fold(fun(_, Bucket, Sum) -> length(Bucket) + Sum end, 0, Buckets).
