%% SPDX-License-Identifier: Apache-2.0
%% @doc At which rate of arrivals a service is saturated: where to try next, and what was found. Pure.
%%
%% A rate is tried for a while with an open loop. It saturates the service if requests were unfinished at the end, or if a request took
%% more than three times as long, on average, as at the first rate, at which the service has little to do. The rate is doubled until
%% it saturates, and the gap between the largest that did not and the smallest that did is halved, on a scale of factors, until it is narrow
%% enough. Both are told, so what is found is an interval: the service was seen to follow the one and not the other.
%%
%% A search that is begun anew with what another one has found looks at both ends first: it is over after two tries if nothing has changed.
%%
%% Not promised: that a service which follows a rate for seconds does so for hours.
-module(atoll_bench_saturation).

-export([new/1, again/2, next/1, tried/2]).

-export_type([search/0, options/0, found/0, outcome/0]).

-type options() :: #{
    %% Requests in a second. The first one is not to saturate.
    first := pos_integer(),
    %% Where the search ends.
    most := pos_integer(),
    %% By what factor the ends of the interval may differ.
    width := float(),
    %% How many times longer than at the first rate a request may take.
    factor := number()
}.

-type outcome() :: #{mean_ns := number() | none, unfinished := non_neg_integer()}.

-type found() :: #{
    %% The largest rate that was followed; 0 if the first was not.
    low := non_neg_integer(),
    %% The smallest that was not; `none' if all were.
    high := pos_integer() | none,
    %% How long a request took at the first rate.
    mean_ns := number()
}.

-record(search, {
    options :: options(),
    base = none :: number() | none,
    low = 0 :: non_neg_integer(),
    high = none :: pos_integer() | none,
    %% Rates to be tried before all else.
    first :: [pos_integer()]
}).

-opaque search() :: #search{}.

%% @doc A search that knows nothing.
-spec new(options()) -> search().
new(#{first := First} = Options) -> #search{options = Options, first = [First]}.

%% @doc A search that begins with what was found before.
-spec again(options(), found()) -> search().
again(#{first := First} = Options, #{low := Low, high := High}) ->
    #search{options = Options, first = lists:usort([First | [Rate || Rate <- [Low, High], is_integer(Rate), Rate > First]])}.

%% @doc The rate that is to be tried next, or what was found.
-spec next(search()) -> {try_rate, pos_integer()} | {found, found()}.
next(#search{high = High, low = Low, first = [Rate | Rates]} = Search) when Rate =< Low; is_integer(High), Rate >= High ->
    next(Search#search{first = Rates});
next(#search{first = [Rate | _]}) ->
    {try_rate, Rate};
next(#search{low = 0} = Search) ->
    found(Search);
next(#search{low = Low, high = none, options = #{most := Most}} = Search) when Low >= Most ->
    found(Search);
next(#search{low = Low, high = none, options = #{most := Most}}) ->
    {try_rate, min(Most, 2 * Low)};
next(#search{low = Low, high = High, options = #{width := Width}} = Search) ->
    Middle = round(math:sqrt(Low * High)),
    case High =< Low * Width orelse Middle =< Low orelse Middle >= High of
        true -> found(Search);
        false -> {try_rate, Middle}
    end.

found(#search{low = Low, high = High, base = Base}) -> {found, #{low => Low, high => High, mean_ns => Base}}.

%% @doc What became of the rate that {@link next/1} has said.
-spec tried(outcome(), search()) -> search().
tried(Outcome, Search) ->
    {try_rate, Rate} = next(Search),
    tried(Rate, Outcome, Search).

tried(Rate, #{unfinished := Unfinished, mean_ns := Mean}, #search{base = none} = Search) when Unfinished > 0; Mean =:= none ->
    %% There is nothing that it could be compared with.
    Search#search{base = case Mean of none -> 0; _ -> Mean end, high = Rate, first = []};
tried(Rate, #{mean_ns := Mean}, #search{base = none} = Search) ->
    Search#search{base = Mean, low = Rate};
tried(Rate, #{mean_ns := Mean, unfinished := Unfinished}, #search{base = Base, options = #{factor := Factor}} = Search) ->
    case Unfinished > 0 orelse Mean =:= none orelse Mean > Factor * Base of
        true -> Search#search{high = Rate};
        false -> Search#search{low = Rate}
    end.
