%% SPDX-License-Identifier: Apache-2.0
%% The same with nothing planted.
-module(atoll_experiments_equal_one).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

about() -> (atoll_experiments_slowed_one:about())#{name := equal}.

asks(_) -> atoll_experiments_slowed_one:of_planted(0).

tables() -> atoll_experiments_slowed_one:tables().

questions() -> atoll_experiments_slowed_one:questions().
