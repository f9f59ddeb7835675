%% SPDX-License-Identifier: Apache-2.0
%% @doc How often something happens again and again: evenly, ever faster or slower, and more
%% or less at random. Pure data; chance is drawn from the state that is passed.
%%
%% Time runs from 0, where the first one may come. A pace counts in intervals and not in
%% milliseconds: the one that is due after so many intervals comes when as many have gone by.
%% So no rounding adds up, and a ramp brings as many as its two rates on average.
-module(atoll_sim_pace).

-export([first/0, next/3, due/3, read/2]).

-export_type([pace/1, intervals/0]).

-type pace(Ms) ::
    %% one each so long
    Ms
    %% the rate goes evenly from one each so long to one each so long, over the time that it lasts
    | {ramp, Ms, Ms}
    %% each interval is up to that share, from 0 to 1, longer or shorter
    | {jitter, Ms | {ramp, Ms, Ms}, Share :: number()}.

-type intervals() :: float().
%% How many have gone by.

%% @doc The one that comes at once.
-spec first() -> intervals().
first() -> 0.0.

%% @doc The one after this one.
-spec next(intervals(), pace(_), rand:state()) -> {intervals(), rand:state()}.
next(N, {jitter, _, Share}, Rand0) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {N + 1 + Share * (2 * X - 1), Rand};
next(N, _Pace, Rand) ->
    {N + 1, Rand}.

%% @doc When it comes, in something that lasts so long; it may be after the end, and `never' where
%% a pace has come to its end before.
-spec due(intervals(), pace(number()), Lasts :: number() | infinity) -> Ms :: non_neg_integer() | never.
due(N, {jitter, Pace, _}, Lasts) ->
    due(N, Pace, Lasts);
due(N, {ramp, From, To}, Lasts) ->
    %% So many have gone by at t: t / From + t * t * (1 / To - 1 / From) / (2 * Lasts).
    Rate = 1 / From,
    case Rate * Rate + 2 * N * (1 / To - Rate) / Lasts of
        Square when Square >= 0 -> round(2 * N / (Rate + math:sqrt(Square)));
        _ -> never
    end;
due(N, Ms, _Lasts) ->
    round(N * Ms).

%% @doc The pace that a term says; Read reads an interval of it.
-spec read(term(), Read :: fun((term()) -> {ok, Ms} | error)) -> {ok, pace(Ms)} | error.
read({jitter, {jitter, _, _}, _}, _Read) ->
    error;
read({jitter, Term, Share}, Read) when is_number(Share), Share >= 0, Share =< 1 ->
    case read(Term, Read) of
        {ok, Pace} -> {ok, {jitter, Pace, Share}};
        error -> error
    end;
read({ramp, From, To}, Read) ->
    case {Read(From), Read(To)} of
        {{ok, First}, {ok, Last}} -> {ok, {ramp, First, Last}};
        _ -> error
    end;
read(Interval, Read) ->
    Read(Interval).
