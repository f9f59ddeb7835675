%% SPDX-License-Identifier: Apache-2.0
%% @doc The databases of this node: for each shard of which it may have a copy, that of the clients and
%% that of the sessions.
-module(im_db_sup).
-behaviour(supervisor).

-export([start_link/0, init/1]).

%% @doc Starts them by the plan of this node.
-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = im_names:create_table(),
    Plan = im_plan:this(),
    Children = [#{id => {Server, Kind}, start => {im_db, start_link, [Server, Kind]}}
                || {Server, Kind} <- im_db:here(Plan)],
    %% A kill each few milliseconds is no reason to give up.
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 10}, Children}}.
