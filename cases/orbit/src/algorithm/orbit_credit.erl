%% SPDX-License-Identifier: Apache-2.0
%% @doc Credit, by which a distributed computation knows that it has ended.
%%
%% F. Mattern, "Global quiescence detection based on credit distribution and
%% recovery", Information Processing Letters 30 (1989). The first message of a
%% run carries the credit 1. Whoever sends a message puts a part of its own
%% credit inside; whoever receives one adds it to its own; whoever has nothing
%% to do sends all it holds back to the master. Credit is neither made nor
%% lost, so at any moment
%%
%%     held by workers + inside messages + collected by the master = 1
%%
%% and when the master has collected 1 there is no message left anywhere. Where messages and workers
%% can be lost, it is {@link orbit_part} that says what holds.
%%
%% Parts are exact, whatever their size. The exponent `K' stands for the unit
%% 1/2^K, and a credit is a strictly descending list of exponents, that is, a
%% binary fraction: `[]' is 0, `[0]' is 1, and `[3, 1]' is 1/8 + 1/2. Two equal
%% units make one of twice the value, `add(3, [3, 1])' is `[2, 1]'. The head is
%% the smallest unit held, and the one that is given away: the large ones stay,
%% and exponents grow slowly.
-module(orbit_credit).

-export([none/0, all/0, shares/1, add/2, sum/2, debit/1, debit_keeping/1]).

-export_type([credit/0, unit/0]).

%% `K' stands for 1/2^K. It is what a message carries.
-type unit() :: non_neg_integer().

%% Strictly descending.
-type credit() :: [unit()].

%% @doc No credit at all.
-spec none() -> credit().
none() -> [].

%% @doc The credit of a whole run.
-spec all() -> credit().
all() -> [0].

%% @doc Equal shares of all credit for so many, and what is left over.
-spec shares(pos_integer()) -> {unit(), Rest :: credit()}.
shares(Count) ->
    K = hd([K || K <- lists:seq(0, Count), 1 bsl K >= Count]),
    {K, lists:foldl(fun add/2, none(), lists:duplicate((1 bsl K) - Count, K))}.

%% @doc Adds a unit. More than 1 cannot come together in a run: it is a fault
%% of the caller, and a crash.
-spec add(unit(), credit()) -> credit().
add(K, [Smaller | Rest]) when Smaller > K -> [Smaller | add(K, Rest)];
add(K, [K | Rest]) when K > 0 -> add(K - 1, Rest);
add(K, [Larger | _] = Credit) when Larger < K -> [K | Credit];
add(K, []) -> [K].

%% @doc Adds up two credits.
-spec sum(credit(), credit()) -> credit().
sum(A, B) ->
    lists:foldl(fun add/2, B, A).

%% @doc Gives the smallest unit away.
-spec debit([unit(), ...]) -> {unit(), credit()}.
debit([K | Rest]) -> {K, Rest}.

%% @doc Gives a unit away and keeps something: a single unit is split in two.
-spec debit_keeping([unit(), ...]) -> {unit(), [unit(), ...]}.
debit_keeping([K]) -> {K + 1, [K + 1]};
debit_keeping([K | Rest]) -> {K, Rest}.
