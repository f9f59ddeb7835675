%% SPDX-License-Identifier: Apache-2.0
%% The same with time to run.
-module(atoll_experiments_fake_long).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

about() -> (atoll_experiments_fake:about())#{minutes := 1}.

asks(Context) -> atoll_experiments_fake:asks(Context).

tables() -> atoll_experiments_fake:tables().

questions() -> atoll_experiments_fake:questions().
