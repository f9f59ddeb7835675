%% The same with time to run.
-module(atoll_experiments_fake_long).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

about() -> (atoll_experiments_fake:about())#{minutes := 1}.

steps(Context) -> atoll_experiments_fake:steps(Context).

verdict(Results) -> atoll_experiments_fake:verdict(Results).
