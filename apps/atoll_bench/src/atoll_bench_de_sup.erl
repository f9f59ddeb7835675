%% @doc The supervisors of a node in DE-Bench: what other nodes call, and the workers under
%% one of their own, `atoll_bench_de_workers'. A worker that is killed comes back; one that
%% is done does not.
-module(atoll_bench_de_sup).
-behaviour(supervisor).

-export([start_link/1, start_workers/1]).
-export([init/1]).

%% Whoever kills workers at a rate is not to end the node's part in it.
-define(INTENSITY, 1000).

%% @doc Starts all but the workers, for a load.
-spec start_link(atoll_bench_de_peer:load()) -> supervisor:startlink_ret().
start_link(Load) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, {peer, Load}).

%% @doc Starts the workers, for what they have in common.
-spec start_workers(atoll_bench_de_worker:shared()) -> ok.
start_workers(Shared) ->
    {ok, _} = supervisor:start_child(?MODULE, #{
        id => workers,
        start => {supervisor, start_link, [{local, atoll_bench_de_workers}, ?MODULE, {workers, Shared}]},
        type => supervisor
    }),
    ok.

%% @private
-spec init({peer, atoll_bench_de_peer:load()} | {workers, atoll_bench_de_worker:shared()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({peer, Load}) ->
    {ok, {flags(), [
        #{id => server, start => {atoll_bench_de_op, start_server, []}},
        #{id => fsm, start => {atoll_bench_de_op, start_fsm, []}},
        #{id => ballast, start => {atoll_bench_de_ballast, start_link, [Load]}, shutdown => brutal_kill},
        #{id => peer, start => {atoll_bench_de_peer, start_link, [Load]}, shutdown => brutal_kill}
    ]}};
init({workers, #{starts := Starts} = Shared}) ->
    #{size := Count} = counters:info(Starts),
    {ok, {flags(), [
        #{id => N, start => {atoll_bench_de_worker, start_link, [N, Shared]}, restart => transient, shutdown => brutal_kill}
     || N <- lists:seq(1, Count)
    ]}}.

flags() -> #{strategy => one_for_one, intensity => ?INTENSITY, period => 1}.
