%% SPDX-License-Identifier: Apache-2.0
%% @doc The connections of a door, none of which is started again.
-module(im_door_connections).

-behaviour(supervisor).

-export([start_link/1, init/1]).

%% @doc None yet.
-spec start_link(im_door_connection:options()) -> supervisor:startlink_ret().
start_link(Options) -> supervisor:start_link(?MODULE, Options).

%% @private
-spec init(im_door_connection:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Options) ->
    {ok, {#{strategy => simple_one_for_one}, [#{id => im_door_connection, start => {im_door_connection, start_link, [Options]}, restart => temporary, shutdown => 2000}]}}.
