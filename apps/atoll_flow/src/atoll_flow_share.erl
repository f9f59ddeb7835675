%% SPDX-License-Identifier: Apache-2.0
%% @doc Which part of the time a node was traced since somebody looks, from what its probe says again and again. Pure. What was before
%% the first look is nobody's: the probe may have been there for another program.
-module(atoll_flow_share).

-export([looked/2, all/1, fresh/1, estimated/1, is_sampled/1]).

-export_type([share/0]).

%% Microseconds that were traced, microseconds that there were, messages that are estimates.
-type sum() :: {Traced :: non_neg_integer(), All :: non_neg_integer(), Estimated :: number()}.

-record(share, {
    last :: {Epoch :: reference(), sum()},
    all :: sum(),
    fresh :: sum(),
    is_sampled :: boolean()
}).

-opaque share() :: #share{}.

%% @doc The first look, or one more.
-spec looked(atoll_flow_probe:tracing(), none | share()) -> share().
looked(#{epoch := Epoch, traced := Traced, all := All, estimated := Estimated, whole := Whole}, Before) ->
    Now = {Traced, All, Estimated},
    case Before of
        none -> #share{last = {Epoch, Now}, all = {0, 0, 0}, fresh = {0, 0, 0}, is_sampled = not Whole};
        #share{last = {Epoch, Last}, all = Sum} -> Gain = less(Now, Last), Before#share{last = {Epoch, Now}, all = more(Gain, Sum), fresh = Gain, is_sampled = not Whole};
        %% All of it is anew.
        #share{all = Sum} -> Before#share{last = {Epoch, Now}, all = more(Now, Sum), fresh = Now, is_sampled = not Whole}
    end.

less({T1, A1, E1}, {T0, A0, E0}) -> {T1 - T0, A1 - A0, E1 - E0}.

more({T1, A1, E1}, {T0, A0, E0}) -> {T1 + T0, A1 + A0, E1 + E0}.

%% @doc Of all the time since the first look; 1.0 if nothing was left out.
-spec all(share()) -> float().
all(#share{all = Sum}) -> part(Sum).

%% @doc Of the time since the look before the last.
-spec fresh(share()) -> float().
fresh(#share{fresh = Sum}) -> part(Sum).

part({_, 0, _}) -> 1.0;
part({Traced, All, _}) -> Traced / All.

%% @doc How many of the messages that it sent were not seen, but taken from others.
-spec estimated(share()) -> non_neg_integer().
estimated(#share{all = {_, _, Estimated}}) -> round(Estimated).

%% @doc Whether only a part of the time is traced now.
-spec is_sampled(share()) -> boolean().
is_sampled(#share{is_sampled = Is}) -> Is.
