%% SPDX-License-Identifier: Apache-2.0
%% Seeds for what holds whatever the seed: each run draws its own.
-module(atoll_sim_seeds).

-export([of_run/2, each/3]).

%% So many in the deep tier, and a third in the fast one.
of_run(Name, Deep) ->
    Count =
        case atoll_tier:tier() of
            fast -> (Deep + 1) div 3;
            deep -> Deep
        end,
    [atoll_tier:seed({Name, N}) || N <- lists:seq(1, Count)].

%% A test with each of them.
each(Name, Deep, Fun) ->
    [{lists:concat(["seed ", Seed]), {timeout, 600, fun() -> Fun(Seed) end}} || Seed <- of_run(Name, Deep)].
