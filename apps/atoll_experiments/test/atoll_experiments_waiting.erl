%% SPDX-License-Identifier: Apache-2.0
%% A benchmark that starts nothing: a round tells the process `waiting' that it has begun, and ends when that says
%% so. What it measures is its seed.
-module(atoll_experiments_waiting).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, setup/1, round/1, teardown/1]).

summary() -> "Waits".

parameters() -> [#{name => who, type => atom, values => [a, b, broken, failing], one_of => [a, b, broken, failing], help => "who"}].

variant() -> who.

metrics() -> [#{name => start, label => "Seed", unit => "", better => less, kind => value}].

points(Points) -> Points.

check(_) -> ok.

setup(#{who := broken}) -> {error, "it is broken"};
setup(#{who := Who, seed := Seed}) -> {ok, {Who, Seed}}.

round({failing, _}) ->
    {error, "it fails"};
round({Who, Start} = State) ->
    waiting ! {self(), begun, Who},
    receive {waiting, go_on} -> {ok, #{start => Start, said => atom_to_binary(Who)}, State} end.

teardown({Who, _}) ->
    waiting ! {down, Who},
    ok.
