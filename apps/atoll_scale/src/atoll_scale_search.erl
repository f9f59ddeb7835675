%% SPDX-License-Identifier: Apache-2.0
%% @doc The search for the largest level that passes: doubling until one fails, then bisection. Pure.
%%
%% A run near the limit may pass or fail by chance. So no level fails by a single run: one that failed is
%% run again until two runs agree. A level passes by one run while the search goes on, and the limit itself
%% by two. What was run at each level is kept ({@link runs/1}), passes and failures, so that whoever reads the
%% result sees where they are mixed.
%%
%% Promised: it ends, after three runs at most of each level that it looks at; the limit is a level at which
%% most runs passed, and the next level above it at which most failed is nearer than the precision. Not promised: that a service
%% which passes and fails by turns, as the level goes up, has one limit: the search finds one of its edges. One search says nothing of how much its result
%% varies: {@link summary/1} does, of several.
-module(atoll_scale_search).

-export([new/1, next/1, told/3, runs/1, summary/1]).

-export_type([search/0, options/0, result/0, runs/0, summary/0]).

-type level() :: pos_integer().

%% Where it begins, the largest level, and how near the limit is looked for, as a share of it.
-type options() :: #{from := level(), to := level(), precision := float()}.

-type runs() :: #{level() => {Passed :: non_neg_integer(), Failed :: non_neg_integer()}}.

-record(search, {options :: options(), runs = #{} :: runs()}).
-opaque search() :: #search{}.

%% `limit' passed; 0 is that even level 1 fails. `fails' is the lowest level above it that failed; `none' if
%% the largest level passed.
-type result() :: #{limit := non_neg_integer(), fails := level() | none}.

%% Of several searches: the median of their limits, its interval at 95 per cent where there are five or more, and whether
%% any of them found no level that fails.
-type summary() :: #{
    limit := number(),
    low := number() | none,
    high := number() | none,
    limits := [non_neg_integer(), ...],
    at_least := boolean()
}.

%% Runs that agree.
-define(AGREE, 2).
-define(FEWEST, 5).

%% @doc A search that has run nothing.
-spec new(options()) -> search().
new(#{from := From, to := To, precision := Precision} = Options) when From >= 1, From =< To, Precision > 0 ->
    #search{options = Options}.

%% @doc What was run.
-spec runs(search()) -> runs().
runs(#search{runs = Runs}) -> Runs.

%% @doc A run at a level has passed, or failed.
-spec told(level(), boolean(), search()) -> search().
told(Level, Passed, #search{runs = Runs} = Search) ->
    {P, F} = maps:get(Level, Runs, {0, 0}),
    Search#search{runs = Runs#{Level => case Passed of true -> {P + 1, F}; false -> {P, F + 1} end}}.

%% @doc The level to run next, or what was found.
-spec next(search()) -> {run, level()} | {found, result()}.
next(#search{options = Options, runs = Runs}) ->
    Fails = lists:min([none | [Level || {Level, Of} <- maps:to_list(Runs), outcome(Of) =:= fails]]),
    Passes = lists:max([0 | [Level || {Level, Of} <- maps:to_list(Runs), outcome(Of) =:= passes, Level < Fails]]),
    %% Runs at these do not agree yet.
    case [Level || {Level, Of} <- lists:sort(maps:to_list(Runs)), outcome(Of) =:= unclear, Level > Passes, Level < Fails] of
        [Level | _] -> {run, Level};
        [] -> between(Passes, Fails, Options, Runs)
    end.

%% An atom is above all numbers.
between(0, none, #{from := From}, _) -> {run, From};
between(To, none, #{to := To}, Runs) -> ended(To, none, Runs);
between(Passes, none, #{to := To}, _) -> {run, min(2 * Passes, To)};
between(Passes, Fails, #{precision := Precision}, Runs) ->
    case Fails - Passes =< max(1, Precision * Passes) of
        true -> ended(Passes, Fails, Runs);
        false -> {run, (Passes + Fails) div 2}
    end.

ended(0, Fails, _) ->
    {found, #{limit => 0, fails => Fails}};
ended(Limit, Fails, Runs) ->
    case Runs of
        #{Limit := {Passed, _}} when Passed < ?AGREE -> {run, Limit};
        #{} -> {found, #{limit => Limit, fails => Fails}}
    end.

outcome({_, Failed}) when Failed >= ?AGREE -> fails;
outcome({Passed, _}) when Passed >= ?AGREE -> passes;
outcome({1, 0}) -> passes;
outcome({_, _}) -> unclear.

%% @doc What several searches have found together.
-spec summary([result(), ...]) -> summary().
summary(Results) ->
    Limits = [Limit || #{limit := Limit} <- Results],
    {Low, High} =
        case length(Limits) >= ?FEWEST of
            true -> atoll_bench_stats:interval(Limits, #{seed => 1});
            false -> {none, none}
        end,
    #{
        limit => atoll_bench_stats:median(Limits), low => Low, high => High, limits => Limits,
        at_least => lists:any(fun(#{fails := Fails}) -> Fails =:= none end, Results)
    }.
