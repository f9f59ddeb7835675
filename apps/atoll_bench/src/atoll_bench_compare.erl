%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a second run was faster or slower than a first one.
%%
%% Four verdicts: `faster' and `slower' are differences that chance does not explain.
%% `same' says that there is none, and that one of 10 per cent would have been seen:
%% the interval rules it out. `unclear' is all the rest, and always that of fewer
%% than 5 samples: the data cannot tell.
%%
%% == What is promised ==
%% Of 100 comparisons of two runs of the same thing at most 2 (on average) find a
%% difference anywhere in them, however many points they have and however the samples
%% are distributed, as long as the samples do not depend on each other and the machine is
%% the same in both runs. Rounds do depend on each other, and so {@link atoll_bench_pair}
%% gives a sample for each start of the nodes. What is left is a machine that changes
%% for longer than a run: no test can tell that from a program that has changed.
%% docs/measuring.md says what came of real runs. Each point is tested by rank ({@link atoll_bench_rank});
%% the many are corrected after Benjamini and Hochberg (Controlling the False
%% Discovery Rate, 1995). Where some points do differ, at most 2 per cent (on
%% average) of the differences found are none. A correction such as Holm's would keep even a single
%% false one out there, but with 5 rounds and dozens of points it could never find
%% anything: the p-value of 5 against 5 is 0.008 at best.
%%
%% == What it takes ==
%% A difference of 10 per cent in one point is found in at least 95 of 100 tries, and
%% none is `same' in as many, with 15 samples that spread by 5 per cent (standard
%% deviation), with 7 at 3 per cent, and with 5 at 2 per cent; with 20 where
%% they spread by 3 per cent and one in ten is 20 to 100 per cent slower. In 1,000
%% simulations with 15 at 5 per cent it was found in 99.8 of 100.
%%
%% One point that alone differs among 48 takes more: 20 samples at 5 per cent, 10 at 3
%% (with 15 at 5 per cent it is found in 82 of 100 tries). With 5 samples it cannot be
%% found at all, but a change of all points is.
-module(atoll_bench_compare).

-export([two/4, all/2, fewest/0]).

-export_type([comparison/0, result/0, verdict/0, options/0]).

-type better() :: more | less.

%% The samples of one metric at one point in two runs, and what is better. There may be
%% none.
-type comparison() :: {Key :: term(), First :: [number()], Second :: [number()], better()}.

-type verdict() :: same | faster | slower | unclear.

%% `order' is whose numbers are the larger ones, by the rank test;
%% `ratio' is by what factor the second run's numbers are larger, whatever is
%% better, and `low' and `high' its interval at 95 per cent for this comparison
%% alone; see {@link atoll_bench_rank}.
-type result() :: #{
    order := first | second | none,
    ratio := float() | none,
    low := float() | none,
    high := float() | none,
    p := float(),
    verdict := verdict()
}.

%% `level': in which share of comparisons of two runs of the same thing a
%% difference may be found (0.02). `least': a smaller factor is no
%% difference, however sure it is (0.02). `margin': what must be ruled out for
%% things to be the same (0.1).
-type options() :: #{level => float(), least => float(), margin => float()}.

-define(FEWEST, 5).

%% @doc Compares one metric at one point.
-spec two([number()], [number()], better(), options()) -> result().
two(First, Second, Better, Options) ->
    [{_, Result}] = all([{one, First, Second, Better}], Options),
    Result.

%% @doc With fewer samples, in either run, nothing is said.
-spec fewest() -> pos_integer().
fewest() -> ?FEWEST.

%% @doc Compares everything that was measured in two runs, in the order given.
-spec all([comparison()], options()) -> [{Key :: term(), result()}].
all(Comparisons, Options) ->
    Tested = [{Comparison, tested(Comparison)} || Comparison <- Comparisons],
    Limit = limit([P || {Comparison, #{p := P}} <- Tested, enough(Comparison)], maps:get(level, Options, 0.02)),
    [
        {Key, Result#{verdict => verdict(Comparison, Result, P =< Limit, Options)}}
     || {{Key, _, _, _} = Comparison, #{p := P} = Result} <- Tested
    ].

tested({_Key, First, Second, _Better}) when First =:= []; Second =:= [] ->
    #{p => 1.0, order => none, ratio => none, low => none, high => none};
tested({_Key, First, Second, _Better}) ->
    atoll_bench_rank:test(First, Second, 0.95).

enough({_Key, First, Second, _Better}) ->
    length(First) >= ?FEWEST andalso length(Second) >= ?FEWEST.

%% The largest p-value that counts, after Benjamini and Hochberg; -1 for none.
limit(Ps, Level) ->
    Count = length(Ps),
    Ranked = lists:zip(lists:seq(1, Count), lists:sort(Ps)),
    lists:max([-1 | [P || {Rank, P} <- Ranked, P =< Level * Rank / Count]]).

verdict({_Key, First, Second, Better} = Comparison, Result, Found, Options) ->
    Least = 1 + maps:get(least, Options, 0.02),
    Margin = 1 + maps:get(margin, Options, 0.1),
    case enough(Comparison) of
        false -> unclear;
        true when Found -> found(Result, First, Second, Better, Least, Margin);
        true -> not_found(Result, First, Second, Margin)
    end.

%% Not by the medians: of samples that are zero for the most part these are equal.
found(#{ratio := none, order := Order}, _First, _Second, Better, _Least, _Margin) ->
    direction(Order =:= second, Better);
found(#{ratio := Ratio}, _First, _Second, Better, Least, _Margin) when Ratio >= Least; Ratio =< 1 / Least ->
    direction(Ratio > 1, Better);
found(Result, First, Second, _Better, _Least, Margin) ->
    not_found(Result, First, Second, Margin).

direction(true, more) -> faster;
direction(true, less) -> slower;
direction(false, more) -> slower;
direction(false, less) -> faster.

not_found(#{ratio := none}, First, Second, _Margin) ->
    case lists:usort(First ++ Second) of
        [_] -> same;
        _ -> unclear
    end;
not_found(#{low := Low, high := High}, _First, _Second, Margin) when Low >= 1 / Margin, High =< Margin ->
    same;
not_found(_Result, _First, _Second, _Margin) ->
    unclear.
