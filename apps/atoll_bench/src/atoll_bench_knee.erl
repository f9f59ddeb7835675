%% SPDX-License-Identifier: Apache-2.0
%% @doc At how many nodes what is done stops following what is offered. Pure.
%%
%% What is looked at is the share that is done, by the number of nodes. Up to the knee it is
%% on one level, and beyond it every further node adds a part of what it is offered, or takes
%% some away: two lines that meet. {@link atoll_bench_knee_fit} says where, and within which
%% interval at 95 per cent.
%%
%% There is a knee at all if the share of the largest number of nodes falls short: the whole
%% interval of its median lies below the tolerance, 0.95 unless said otherwise. Without that
%% there is none up to that number. What is short at the smallest number already, declines from
%% there on, or is as short at all of them as far as the rounds tell, is told as such: it is not
%% the knee that was looked for.
%%
%% Not promised: that a curve which goes back up has one knee, or that three sizes say where it
%% is between two of them; the two between which it was found are told too.
-module(atoll_bench_knee).

-export([find/2]).

-export_type([curve/0, options/0, knee/0]).

-type curve() :: [{Nodes :: pos_integer(), Shares :: [number(), ...]}].
%% For each number of nodes, the share of what was offered that each round has done.

-type options() :: #{
    %% Below which share it falls short.
    tolerance => float(),
    seed => integer()
}.

-type knee() ::
    #{
        verdict := knee,
        nodes := float(),
        low := float(),
        high := float(),
        %% The measured numbers of nodes around it.
        between := {pos_integer(), pos_integer()},
        %% The share that is done up to the knee.
        plateau := float(),
        %% How much of its load a further node adds beyond it.
        slope := float()
    }
    %% Already the smallest number falls short, or it declines from there on.
    | #{verdict := at_most, nodes := pos_integer()}
    | #{verdict := none, up_to := pos_integer()}
    %% Fewer than two numbers of nodes.
    | #{verdict := too_few}.

-define(TOLERANCE, 0.95).

%% @doc Where the knee of a curve is, if there is one.
-spec find(curve(), options()) -> knee().
find(Curve, Options) when length(Curve) >= 2 ->
    Sorted = [{Smallest, First} | _] = lists:keysort(1, Curve),
    {Largest, Last} = lists:last(Sorted),
    case {falls_short(First, Options), falls_short(Last, Options)} of
        {_, false} -> #{verdict => none, up_to => Largest};
        {true, true} -> #{verdict => at_most, nodes => Smallest};
        {false, true} -> knee(Sorted, Smallest, Options)
    end;
find(_Curve, _Options) ->
    #{verdict => too_few}.

falls_short(Shares, Options) ->
    {_Low, High} = interval(Shares, Options),
    High < maps:get(tolerance, Options, ?TOLERANCE).

%% Of one round there is nothing to draw.
interval([Share], _Options) -> {Share, Share};
interval(Shares, Options) -> atoll_bench_stats:interval(Shares, #{seed => seed(Options)}).

seed(Options) -> maps:get(seed, Options, 1).

%% One level for all is as short everywhere only if the smallest is short too, if not for certain.
knee([{_, First} | _] = Curve, Smallest, Options) ->
    Short = atoll_bench_stats:median(First) < maps:get(tolerance, Options, ?TOLERANCE),
    case atoll_bench_knee_fit:fit(Curve) of
        #{nodes := K, level := Level} when Level andalso Short; K == Smallest ->
            #{verdict => at_most, nodes => Smallest};
        #{nodes := K} = Fit ->
            (maps:remove(level, Fit))#{verdict => knee, between => around(K, [N || {N, _} <- Curve])}
    end.

around(K, [A, B | _]) when K =< B -> {A, B};
around(K, [_ | [_, _ | _] = Ns]) -> around(K, Ns);
around(_K, [A, B]) -> {A, B}.
