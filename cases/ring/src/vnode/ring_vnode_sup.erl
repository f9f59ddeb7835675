%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor of the partitions that run here. One that has failed is not started again by it: the next command starts it ({@link ring_master}).
-module(ring_vnode_sup).
-behaviour(supervisor).

-export([start_link/0, start_vnode/2, init/1]).

%% @doc Starts it under its name.
-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc Starts a partition.
-spec start_vnode({module(), ring_hash:partition()}, counters:counters_ref()) -> {ok, pid()} | {error, term()}.
start_vnode(Id, Queue) ->
    case supervisor:start_child(?MODULE, [Id, Queue]) of
        {ok, Pid} when is_pid(Pid) -> {ok, Pid};
        {error, _} = Error -> Error
    end.

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one}, [#{id => vnode, start => {ring_vnode, start_link, []}, restart => temporary}]}}.
