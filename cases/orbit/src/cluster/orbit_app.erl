%% SPDX-License-Identifier: Apache-2.0
%% @doc The application, which runs on every node. Its supervisor has a child for each run that the
%% node takes part in ({@link orbit_host}).
-module(orbit_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()}.
start(_, _) -> {ok, _} = supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), []}}.
init([]) ->
    %% A kill each few milliseconds is no reason to give up.
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 10}, []}}.
