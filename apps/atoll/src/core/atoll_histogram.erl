%% SPDX-License-Identifier: Apache-2.0
%% @doc A histogram of times, sizes or counts: log-linear, after HdrHistogram (Gil Tene,
%% hdrhistogram.org).
%%
%% It holds whole numbers from 0 to 3,600,000,000,000, which is an hour of nanoseconds. Up to 255
%% a bucket is one value; above, each power of two has 128 buckets of the same width. What is read of a
%% bucket is its middle, so no value, mean or percentile is more than 1/128 (in fact
%% 1/256) off. A larger one goes into the last bucket, and is counted as clipped.
%%
%% Any number of processes may record into one histogram at once. Recording
%% a value took 25 ns on two cores of an AMD EPYC with OTP 25, and 80 to 130 ns when
%% these were busy with other work too; a test holds it under 200 ns. What is read
%% while others record is of some moment during the reading; when they
%% have ended and said so, it is exact.
%%
%% An export is plain data without the empty buckets. Whoever asks several things
%% exports once: each reading of a histogram walks through all its buckets.
-module(atoll_histogram).

-export([new/0, new/1, record/2, merge/1, since/2]).
-export([count/1, clipped/1, min/1, max/1, mean/1, buckets/1, percentile/2]).
-export([export/1, import/1]).

-export_type([hist/0, export/0, source/0]).

%% The buckets from index 1, and then the count of the clipped.
-record(hist, {counts :: counters:counters_ref()}).

-opaque hist() :: #hist{}.

%% `buckets' are pairs `[Bucket, Count]' by rising bucket, without those that are
%% empty; `count' is the sum of their counts. `bits' says which buckets these are:
%% 2^7 to each power of two.
-type export() :: #{
    bits := 7,
    count := non_neg_integer(),
    clipped := non_neg_integer(),
    buckets := [[non_neg_integer(), ...]]
}.

-type source() :: hist() | export().

-define(BITS, 7).
-define(TOP, 3600000000000).

%% The bucket of ?TOP: 3.6e12 is 209 * 2^34 and something.
-define(LAST, (34 * 128 + 209)).

%% Where the clipped are counted: bucket B is counted at B + 1.
-define(CLIPPED, (?LAST + 2)).

%% @doc An empty histogram, for many who record at once. It is gone when nobody refers to it any more.
-spec new() -> hist().
new() -> new(many).

%% @doc For many who record at once it takes 37 KB for each scheduler, for few 37 KB.
-spec new(Writers :: many | few) -> hist().
new(many) -> #hist{counts = counters:new(?CLIPPED, [write_concurrency])};
new(few) -> #hist{counts = counters:new(?CLIPPED, [atomics])}.

%% @doc Records one value.
-spec record(non_neg_integer(), hist()) -> ok.
record(Value, #hist{counts = Counts}) when is_integer(Value), Value >= 0, Value =< ?TOP ->
    counters:add(Counts, bucket(Value) + 1, 1);
record(Value, #hist{counts = Counts}) when is_integer(Value), Value > ?TOP ->
    counters:add(Counts, ?CLIPPED, 1),
    counters:add(Counts, ?LAST + 1, 1).

%% The bucket of a value with the top bit at E >= 7 is (E - 7) * 128 and the value's
%% first eight bits. The shift E - 7 is found by halves.
bucket(V) when V >= 1 bsl 40 -> bucket_2(V bsr 32, 32 * 128);
bucket(V) when V >= 1 bsl 24 -> bucket_8(V bsr 16, 16 * 128);
bucket(V) -> bucket_8(V, 0).

bucket_8(V, Base) when V >= 1 bsl 16 -> bucket_4(V bsr 8, Base + 8 * 128);
bucket_8(V, Base) -> bucket_4(V, Base).

bucket_4(V, Base) when V >= 1 bsl 12 -> bucket_2(V bsr 4, Base + 4 * 128);
bucket_4(V, Base) -> bucket_2(V, Base).

bucket_2(V, Base) when V >= 1 bsl 10 -> bucket_1(V bsr 2, Base + 2 * 128);
bucket_2(V, Base) -> bucket_1(V, Base).

bucket_1(V, Base) when V >= 1 bsl 9 -> Base + 2 * 128 + (V bsr 2);
bucket_1(V, Base) when V >= 1 bsl 8 -> Base + 128 + (V bsr 1);
bucket_1(V, Base) -> Base + V.

%% What is told of a bucket.
middle(Bucket) ->
    {Low, High} = bounds(Bucket),
    min(?TOP, Low + (High - Low + 1) div 2).

%% The values that a bucket is for.
bounds(Bucket) when Bucket < 256 ->
    {Bucket, Bucket};
bounds(Bucket) ->
    Shift = Bucket div 128 - 1,
    Low = (Bucket - Shift * 128) bsl Shift,
    {Low, Low + (1 bsl Shift) - 1}.

%% @doc The buckets that are not empty: their smallest and largest value, and how
%% many values each has.
-spec buckets(source()) -> [{Low :: non_neg_integer(), High :: non_neg_integer(), pos_integer()}].
buckets(Source) ->
    #{buckets := Buckets} = export(Source),
    [
        begin
            {Low, High} = bounds(Bucket),
            {Low, High, Count}
        end
     || [Bucket, Count] <- Buckets
    ].

%% @doc All values of several in one.
-spec merge([source()]) -> export().
merge(Sources) ->
    Exports = [export(Source) || Source <- Sources],
    Buckets = lists:foldl(fun(#{buckets := B}, Sum) -> added(B, Sum) end, [], Exports),
    made(Buckets, lists:sum([N || #{clipped := N} <- Exports])).

added([[B, N] | As], [[B, M] | Bs]) -> [[B, N + M] | added(As, Bs)];
added([[A, _] = Pair | As], [[B, _] | _] = Bs) when A < B -> [Pair | added(As, Bs)];
added([_ | _] = As, [Pair | Bs]) -> [Pair | added(As, Bs)];
added([], Bs) -> Bs;
added(As, []) -> As.

%% @doc What was recorded after an earlier export of the same histogram.
-spec since(Earlier :: export(), source()) -> export().
since(#{buckets := Before, clipped := Clipped}, Later) ->
    #{buckets := Buckets, clipped := All} = export(Later),
    made(less(Buckets, Before), All - Clipped).

less([[B, N] | Bs], [[B, N] | As]) -> less(Bs, As);
less([[B, N] | Bs], [[B, M] | As]) -> [[B, N - M] | less(Bs, As)];
less([Pair | Bs], As) -> [Pair | less(Bs, As)];
less([], []) -> [].

made(Buckets, Clipped) ->
    #{bits => ?BITS, count => total(Buckets), clipped => Clipped, buckets => Buckets}.

total(Buckets) ->
    lists:sum([N || [_, N] <- Buckets]).

%% @doc How many values there are, the clipped among them.
-spec count(source()) -> non_neg_integer().
count(Source) ->
    maps:get(count, export(Source)).

%% @doc How many values were larger than it holds.
-spec clipped(source()) -> non_neg_integer().
clipped(Source) ->
    maps:get(clipped, export(Source)).

%% @doc The smallest value; `none' of no values.
-spec min(source()) -> non_neg_integer() | none.
min(Source) ->
    percentile(Source, 0).

%% @doc The largest value; `none' of no values.
-spec max(source()) -> non_neg_integer() | none.
max(Source) ->
    percentile(Source, 100).

%% @doc The arithmetic mean; `none' of no values.
-spec mean(source()) -> float() | none.
mean(Source) ->
    case export(Source) of
        #{count := 0} -> none;
        #{count := Count, buckets := Buckets} -> lists:sum([middle(B) * N || [B, N] <- Buckets]) / Count
    end.

%% @doc The percentile by nearest rank: the smallest value that at least `P' per
%% cent of all are not above; `none' of no values.
-spec percentile(source(), P :: number()) -> non_neg_integer() | none.
percentile(Source, P) when P >= 0, P =< 100 ->
    case export(Source) of
        #{count := 0} -> none;
        %% P is multiplied before it is divided: 0.07 * 100 is not 7.
        #{count := Count, buckets := Buckets} -> at_rank(max(1, ceil(P * Count / 100)), Buckets)
    end.

at_rank(Rank, [[Bucket, N] | _]) when Rank =< N -> middle(Bucket);
at_rank(Rank, [[_, N] | Buckets]) -> at_rank(Rank - N, Buckets).

%% @doc The histogram as plain data: maps with atoms as keys, lists and integers.
-spec export(source()) -> export().
export(#hist{counts = Counts}) ->
    Buckets = filled(?LAST, Counts, []),
    %% Others may have recorded since the buckets were read.
    made(Buckets, min(in_last(Buckets), counters:get(Counts, ?CLIPPED)));
export(#{buckets := _} = Export) ->
    Export.

filled(-1, _Counts, Buckets) ->
    Buckets;
filled(Bucket, Counts, Buckets) ->
    case counters:get(Counts, Bucket + 1) of
        0 -> filled(Bucket - 1, Counts, Buckets);
        N -> filled(Bucket - 1, Counts, [[Bucket, N] | Buckets])
    end.

in_last([[?LAST, N]]) -> N;
in_last([_ | Buckets]) -> in_last(Buckets);
in_last([]) -> 0.

%% @doc Reads an export back, also after it has been through JSON, where the keys
%% became binaries. An error is whatever no export can be: a key that is missing,
%% other buckets, numbers that contradict each other.
-spec import(term()) -> {ok, export()} | error.
import(#{<<"bits">> := Bits, <<"count">> := Count, <<"clipped">> := Clipped, <<"buckets">> := Buckets}) ->
    import(#{bits => Bits, count => Count, clipped => Clipped, buckets => Buckets});
import(#{bits := ?BITS, count := Count, clipped := Clipped, buckets := Buckets}) when
    is_integer(Clipped), Clipped >= 0
->
    case rising(-1, Buckets) andalso Clipped =< in_last(Buckets) andalso Count =:= total(Buckets) of
        true -> {ok, made(Buckets, Clipped)};
        false -> error
    end;
import(_) ->
    error.

rising(Before, [[Bucket, N] | Buckets]) when
    is_integer(Bucket), Bucket > Before, Bucket =< ?LAST, is_integer(N), N > 0
->
    rising(Bucket, Buckets);
rising(_Before, Rest) ->
    Rest =:= [].
