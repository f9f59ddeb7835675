%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisors of a node in DE-Bench: what other nodes call, and the workers under
%% one of their own, `debench_workers'. A worker that is killed comes back; one that
%% is done does not.
-module(debench_sup).
-behaviour(supervisor).

-export([start_link/1, start_workers/1]).
-export([init/1]).

%% Whoever kills workers at a rate is not to end the node's part in it.
-define(INTENSITY, 1000).

%% @doc Starts all but the workers, for a load.
-spec start_link(debench_peer:load()) -> supervisor:startlink_ret().
start_link(Load) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, {peer, Load}).

%% @doc Starts the workers, for what they have in common.
-spec start_workers(debench_worker:shared()) -> ok.
start_workers(Shared) ->
    {ok, _} = supervisor:start_child(?MODULE, #{
        id => workers,
        start => {supervisor, start_link, [{local, debench_workers}, ?MODULE, {workers, Shared}]},
        type => supervisor
    }),
    ok.

%% @private
-spec init({peer, debench_peer:load()} | {workers, debench_worker:shared()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({peer, Load}) ->
    {ok, {flags(), [
        #{id => server, start => {debench_op, start_server, []}},
        #{id => fsm, start => {debench_op, start_fsm, []}},
        #{id => ballast, start => {debench_ballast, start_link, [Load]}, shutdown => brutal_kill},
        #{id => peer, start => {debench_peer, start_link, [Load]}, shutdown => brutal_kill}
    ]}};
init({workers, #{starts := Starts} = Shared}) ->
    #{size := Count} = counters:info(Starts),
    {ok, {flags(), [
        #{id => N, start => {debench_worker, start_link, [N, Shared]}, restart => transient, shutdown => brutal_kill}
     || N <- lists:seq(1, Count)
    ]}}.

flags() -> #{strategy => one_for_one, intensity => ?INTENSITY, period => 1}.
