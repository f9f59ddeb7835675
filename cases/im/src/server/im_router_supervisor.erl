%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor of the router processes of a node, `router_1' and so on: the paper's
%% router_supervisor. What watches it in turn, the paper's router_supervisor_monitor, is the
%% supervisor above ({@link im_sup}).
-module(im_router_supervisor).
-behaviour(supervisor).

-export([start_link/0, init/1]).

%% @doc Starts it under the name `router_supervisor'.
-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, router_supervisor}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Count = im_plan:setting(routers_per_node, im_plan:this()),
    %% A kill each few milliseconds is no reason to give up.
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 10},
          [#{id => K, start => {im_router, start_link, [K]}} || K <- lists:seq(1, Count)]}}.
