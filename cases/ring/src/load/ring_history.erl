%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a history of sessions with the store is one that it promises. Pure.
%%
%% Each value is written once in a history, with what its writer had seen of the key: so of two values it is known whether one stands over
%% the other. From the values that are read at the end everything must be reachable over that which was acknowledged; what a session reads must reach everything
%% that it has read and has had acknowledged before.
-module(ring_history).

-export([check/2]).

-export_type([event/0, value/0, verdict/0]).

-type value() :: term().

-type event() ::
    %% A write of a value over these, and whether it was acknowledged; it may have been done if not.
    {write, Session :: term(), Key :: term(), value(), Over :: [value()], ok | unknown}
    %% A read that is to know what its session has seen.
    | {read, Session :: term(), Key :: term(), [value()]}.

-type verdict() :: #{
    acknowledged := non_neg_integer(),
    reads := non_neg_integer(),
    %% Acknowledged, and neither there at the end nor under what is there.
    lost := [{Key :: term(), value()}],
    %% There, and written by nobody.
    invented := [{Key :: term(), value()}],
    %% Reads of a session that did not know what it had seen, with one thing that they did not.
    older := [{Session :: term(), Key :: term(), value()}]
}.

%% @doc The events of each session in their order, and what is read of each key at the end.
-spec check([event()], #{Key :: term() => [value()]}) -> verdict().
check(Events, Final) ->
    Over = maps:from_list([{{Key, Value}, Under} || {write, _, Key, Value, Under, _} <- Events]),
    Acknowledged = [{Key, Value} || {write, _, Key, Value, _, ok} <- Events],
    Reached = maps:map(fun(Key, Values) -> reached(Key, Values, Over) end, Final),
    Read = [{Key, Value} || {read, _, Key, Values} <- Events, Value <- Values] ++ [{Key, Value} || {Key, Values} <- maps:to_list(Final), Value <- Values],
    #{
        acknowledged => length(Acknowledged),
        reads => length([read || {read, _, _, _} <- Events]),
        lost => [{Key, Value} || {Key, Value} <- Acknowledged, not is_map_key(Value, maps:get(Key, Reached, #{}))],
        invented => lists:usort([Pair || Pair <- Read, not is_map_key(Pair, Over)]),
        older => older(Events, Over)
    }.

%% What these values stand over, themselves among it.
reached(Key, Values, Over) -> reached(Key, Values, Over, #{}).

reached(_, [], _, Seen) -> Seen;
reached(Key, [Value | Values], Over, Seen) when is_map_key(Value, Seen) -> reached(Key, Values, Over, Seen);
reached(Key, [Value | Values], Over, Seen) -> reached(Key, maps:get({Key, Value}, Over, []) ++ Values, Over, Seen#{Value => true}).

older(Events, Over) ->
    {Older, _} = lists:foldl(fun(Event, Acc) -> seen(Event, Acc, Over) end, {[], #{}}, Events),
    lists:reverse(Older).

%% Of what a session knows that is kept which stands over the rest.
seen({write, Session, Key, Value, _, ok}, {Older, Known}, Over) ->
    Beside = unreached(Key, [Value], maps:get({Session, Key}, Known, []), Over),
    {Older, Known#{{Session, Key} => [Value | Beside]}};
seen({write, _, _, _, _, unknown}, Acc, _) ->
    Acc;
seen({read, Session, Key, Values}, {Older, Known}, Over) ->
    Lacks = unreached(Key, Values, maps:get({Session, Key}, Known, []), Over),
    {[{Session, Key, Value} || Value <- lists:sublist(Lacks, 1)] ++ Older, Known#{{Session, Key} => Values ++ Lacks}}.

%% Which of these the values do not stand over. A history has very many values of a key, and what is looked for is near.
unreached(Key, Values, Wanted, Over) -> unreached(Key, Values, Wanted -- Values, Over, maps:from_keys(Values, true)).

unreached(_, _, [], _, _) -> [];
unreached(_, [], Wanted, _, _) -> Wanted;
unreached(Key, Values, Wanted, Over, Seen) ->
    Next = [Value || Value <- lists:usort(lists:append([maps:get({Key, Of}, Over, []) || Of <- Values])), not is_map_key(Value, Seen)],
    unreached(Key, Next, Wanted -- Next, Over, maps:merge(Seen, maps:from_keys(Next, true))).
