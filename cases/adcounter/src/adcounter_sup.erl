%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The replica of this node, and after it whoever uses it.
-module(adcounter_sup).
-behaviour(supervisor).

-export([start_link/1, init/1]).

%% @private
-spec start_link(adcounter_options:options()) -> supervisor:startlink_ret().
start_link(Options) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Options).

%% @private
-spec init(adcounter_options:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{role := Role, how := How, propagation_ms := Ms, buffer_max := Max} = Options) ->
    Module = case Role of server -> adcounter_server; client -> adcounter_client end,
    %% A replica that was lost has lost what it had not told; so has who stands on it.
    {ok, {#{strategy => one_for_all}, [
        atoll_crdt_replica:child_spec({adcounter_replica, #{how => How, interval_ms => Ms, buffer_max => Max}}),
        #{id => Role, start => {Module, start_link, [Options]}}
    ]}}.
