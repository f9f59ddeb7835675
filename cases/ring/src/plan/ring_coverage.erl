%% SPDX-License-Identifier: Apache-2.0
%% @doc As few partitions as there are that hold all keys between them, for what is asked of all keys. Pure.
%%
%% A key stands in its own partition and in those that follow it, N in all, so about each Nth partition is asked: each for the keys of certain partitions, so that none
%% is counted twice.
-module(ring_coverage).

-export([plan/4]).

-export_type([part/0]).

-type part() :: {Asked :: ring_hash:partition(), node(), Of :: [ring_hash:partition(), ...]}.
%% Whom to ask, and for the keys of which partitions.

%% @doc Whom to ask. `Owner' says who has a partition, and `IsUp' who is well; with so many down that a partition's keys have no copy left, that is the error.
-spec plan(ring_hash:count(), N :: pos_integer(), fun((ring_hash:partition()) -> node()), fun((node()) -> boolean())) ->
    {ok, [part(), ...]} | {error, {uncovered, ring_hash:partition()}}.
plan(Count, N, Owner, IsUp) -> plan(0, Count, min(N, Count), Owner, IsUp, []).

plan(From, Count, _, _, _, Parts) when From >= Count -> {ok, lists:reverse(Parts)};
plan(From, Count, N, Owner, IsUp, Parts) ->
    %% The last one that has the keys of `From' has those of all between as well.
    case [Step || Step <- lists:seq(N - 1, 0, -1), IsUp(Owner((From + Step) rem Count))] of
        [Step | _] ->
            Asked = (From + Step) rem Count,
            To = min(From + Step, Count - 1),
            plan(To + 1, Count, N, Owner, IsUp, [{Asked, Owner(Asked), lists:seq(From, To)} | Parts]);
        [] -> {error, {uncovered, From}}
    end.
