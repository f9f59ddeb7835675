%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor at the top: what the store needs. It owns the gate's table too, which so lasts as long as the service.
-module(subscribers_sup).
-behaviour(supervisor).

-export([start_link/2, init/1]).

%% @doc Starts it under its name.
-spec start_link(module(), subscribers_options:options()) -> supervisor:startlink_ret().
start_link(Store, Options) -> supervisor:start_link({local, ?MODULE}, ?MODULE, {Store, Options}).

%% @private
-spec init({module(), subscribers_options:options()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Store, #{callers := Callers} = Options}) ->
    ok = subscribers_gate:new(Callers),
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Store:children(Options)}}.
