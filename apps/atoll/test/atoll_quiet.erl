%% SPDX-License-Identifier: Apache-2.0
%% Runs what is expected to complain, without the complaints on the console.
-module(atoll_quiet).

-export([run/1]).

run(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try
        Fun()
    after
        logger:set_primary_config(level, Level)
    end.
