%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads a store as Basho Bench does, and keeps what came in its files and in that of the harness.
%%
%% ```
%% {ok, Config} = atoll_load_config:read("ring.config").
%% {ok, Result} = atoll_load:run(Config, #{out => "results", command => ""}).
%% '''
%% The folder has a file of each operation's times, `summary.csv' and `errors.csv', as Basho Bench writes them ({@link debench_csv}), and `run.jsonl', which `atoll bench
%% report' reads. Promised: what the driver has started is gone when this returns, whichever way, and with the calling process.
-module(atoll_load).

-export([run/2]).

-export_type([result/0]).

%% The process of a load ends by exit, with what was said.
-dialyzer({nowarn_function, guarded/1}).

-type result() :: #{
    looks := [debench_peer:look(), ...],
    ended := atoll_load_run:ended(),
    %% Of the store's nodes, or of this one; the busiest first.
    servers := [atoll_bench_servers:server()]
}.

%% Beyond the time of the load: to begin and to end.
-define(MORE_MS, 60_000).

%% @doc Runs it. The folder must not be there yet; it is made when the store is up.
-spec run(atoll_load_config:config(), #{out := file:filename(), command => unicode:chardata()}) -> {ok, result()} | {error, Sentence :: unicode:chardata()}.
run(#{driver := Driver, settings := Settings} = Config, #{out := Dir} = Options) ->
    case atoll_load_driver:prepare(Driver, Settings) of
        {ok, #{where := Where, settings := Prepared, stop := Stop}} ->
            try file:make_dir(Dir) of
                ok -> kept(loaded(Where, Config, Prepared), Config, Options);
                {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
            after
                ok = Stop()
            end;
        {error, _} = Error -> Error
    end.

loaded(here, Config, Settings) ->
    ok = atoll_bench_servers:start(most_ms(Config)),
    Ended = guarded(fun() -> atoll_load_run:run(Config, Settings) end),
    {Ended, atoll_bench_servers:merged([atoll_bench_servers:stop()])};
loaded(#{cluster := Cluster, node := Node, stores := Stores}, Config, Settings) ->
    _ = [started(Cluster, Store, Config) || Store <- Stores],
    Ended = case atoll_bench_nodes:call(Cluster, Node, {atoll_load_run, run}, [Config, Settings], most_ms(Config)) of
        {ok, Said} -> Said;
        {error, _} = Error -> Error
    end,
    {Ended, atoll_bench_servers:merged([Servers || Store <- Stores, {ok, Servers} <- [atoll_bench_nodes:call(Cluster, Store, {atoll_bench_servers, stop}, [], ?MORE_MS)]])}.

%% One that is killed meanwhile has seen nothing when it is back.
started(Cluster, Store, Config) -> atoll_bench_nodes:call(Cluster, Store, {atoll_bench_servers, start}, [most_ms(Config)], ?MORE_MS).

most_ms(#{duration := Minutes}) -> round(60_000 * Minutes) + ?MORE_MS.

%% A worker that fails is a fault of its driver, and is told as a sentence.
guarded(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({said, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {said, Said}} -> Said;
        {'DOWN', Ref, process, Pid, {worker, Why}} -> {error, io_lib:format("A worker has failed: ~0tP", [Why, 20])};
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

kept({{ok, Looks, Ended}, Servers}, #{rng_seed := Seed}, #{out := Dir} = Options) ->
    About = #{seed => erlang:phash2(Seed), command => maps:get(command, Options, ""), benchmark => <<"load_run">>, summary => <<"a load of a store: what was done in each interval">>},
    case [Error || {error, _} = Error <- [debench_csv:write(Dir, debench_csv:files(Looks)), debench_record:write(filename:join(Dir, "run.jsonl"), Looks, About)]] of
        [] -> {ok, #{looks => Looks, ended => Ended, servers => Servers}};
        [{error, {Name, Reason}} | _] -> {error, [Name, ": ", file:format_error(Reason)]}
    end;
kept({{error, _} = Error, _}, _, #{out := Dir}) ->
    %% Nothing is in it, and it would refuse the next try.
    _ = file:del_dir(Dir),
    Error.
