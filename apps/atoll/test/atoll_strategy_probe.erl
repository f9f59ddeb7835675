%% SPDX-License-Identifier: Apache-2.0
%% A strategy for the tests of the overlay: it does the effects that it is told,
%% and tells what it hears.
-module(atoll_strategy_probe).

-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

options() -> #{}.

init(#{options := Options}, _Now) -> {maps:get(neighbours, Options, []), []}.

handle({cast, {tell, {effects, Effects}}}, _Now, State) -> {State, Effects};
handle(Event, _Now, State) -> {State, [{notify, {heard, Event}}]}.

neighbours(State) -> State.

known(_State) -> [].

summary(_State) -> #{}.
