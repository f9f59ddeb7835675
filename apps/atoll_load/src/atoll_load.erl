%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads a store as Basho Bench does, and keeps what came in its files and in that of the harness.
%%
%% ```
%% {ok, Config} = atoll_load_config:read("ring.config").
%% {ok, Result} = atoll_load:run(Config, #{out => "results", command => ""}).
%% '''
%% The folder has a file of each operation's times, `summary.csv' and `errors.csv', as Basho Bench writes them ({@link atoll_bench_csv}), and `run.jsonl', which `atoll bench
%% report' reads. Promised: what the driver has started is gone when this returns, whichever way, and with the calling process.
%%
%% Who loads one store several times starts it, and stops it in the end.
-module(atoll_load).

-export([run/2, start/1, load/2, stop/1]).

-export_type([result/0, started/0, loaded/0]).

%% The process of a load ends by exit, with what was said.
-dialyzer({nowarn_function, guarded/1}).

-type result() :: #{
    looks := [atoll_bench_window:look(), ...],
    ended := atoll_load_run:ended(),
    %% Of the store's nodes, or of this one; the busiest first.
    servers := [atoll_bench_servers:server()]
}.

-type started() :: #{store := atoll_load_driver:store(), workers := here | #{cluster := atoll_cluster:cluster(), nodes := [node(), ...]}}.

-type loaded() :: {ok, result()} | {error, Sentence :: unicode:chardata()}.

%% Beyond the time of the load: to begin and to end.
-define(MORE_MS, 60_000).

%% @doc Runs it. The folder must not be there yet; it is made when the store is up.
-spec run(atoll_load_config:config(), #{out := file:filename(), command => unicode:chardata()}) -> loaded().
run(Config, #{out := Dir} = Options) ->
    case start(Config) of
        {ok, Started} ->
            try file:make_dir(Dir) of
                ok ->
                    try
                        kept(load(Started, Config), Config, Options)
                    after
                        %% With nothing in it it would refuse the next try.
                        file:del_dir(Dir)
                    end;
                {error, Reason} -> {error, [Dir, ": ", file:format_error(Reason)]}
            after
                ok = stop(Started)
            end;
        {error, _} = Error -> Error
    end.

%% @doc Starts the store, and the nodes from which it is loaded; the caller owns both.
-spec start(atoll_load_config:config()) -> {ok, started()} | {error, Sentence :: unicode:chardata()}.
start(#{driver := Driver, settings := Settings} = Config) ->
    case atoll_load_driver:prepare(Driver, Settings) of
        {ok, #{where := Where, stop := Stop} = Store} ->
            case workers(Where, names(Config)) of
                {ok, Workers} -> {ok, #{store => Store, workers => Workers}};
                {error, _} = Error ->
                    ok = Stop(),
                    Error
            end;
        {error, _} = Error -> Error
    end.

%% No node is without a worker, or without an operation a second.
names(#{remote_nodes := Remote, concurrent := Workers, offered_load := Rate}) ->
    [Name || {localhost, Name} <- lists:sublist(Remote, case Rate of closed -> Workers; _ -> min(Workers, Rate) end)].

workers(here, [_ | _]) -> {error, "The store of this driver is in the command's own VM, where no remote_nodes reach it."};
workers(elsewhere, []) -> workers(elsewhere, [client]);
workers(_, []) -> {ok, here};
workers(_, Names) ->
    Kinds = [#{kind => lists:concat(["_", Name, "_"]), count => 1} || Name <- Names],
    atoll_bench_nodes:start(#{nodes => Kinds, connect_all => false, args => ["-hidden"]}, fun(Cluster) ->
        {ok, #{cluster => Cluster, nodes => atoll_cluster:nodes(Cluster)}}
    end).

%% @doc Takes both down.
-spec stop(started()) -> ok.
stop(#{store := #{stop := Stop}, workers := Workers}) ->
    ok = case Workers of here -> ok; #{cluster := Cluster} -> atoll_bench_nodes:stop(Cluster) end,
    Stop().

%% @doc Loads what was started, once.
-spec load(started(), atoll_load_config:config()) -> loaded().
load(#{store := #{settings := Settings} = Store, workers := Workers}, Config) ->
    Ms = most_ms(Config),
    Stores = maps:get(stores, Store, here),
    ok = watch(Stores, Ms),
    ok = (maps:get(begins, Store, fun() -> ok end))(),
    Ran = ran(Workers, Config, Settings, Ms),
    Servers = atoll_bench_servers:merged(watched(Stores)),
    case Ran of
        {ok, Looks, Ended} -> {ok, #{looks => Looks, ended => Ended, servers => Servers}};
        {error, _} = Error -> Error
    end.

most_ms(#{duration := Minutes}) -> round(60_000 * Minutes) + ?MORE_MS.

%% One that is killed meanwhile has seen nothing when it is back, and one that is not there yet sees nothing.
watch(here, Ms) -> atoll_bench_servers:start(Ms);
watch(#{cluster := Cluster, nodes := Nodes}, Ms) ->
    _ = [atoll_bench_nodes:call(Cluster, Node, {atoll_bench_servers, start}, [Ms], ?MORE_MS) || Node <- Nodes],
    ok.

watched(here) -> [atoll_bench_servers:stop()];
watched(#{cluster := Cluster, nodes := Nodes}) ->
    [Servers || Node <- Nodes, {ok, Servers} <- [atoll_bench_nodes:call(Cluster, Node, {atoll_bench_servers, stop}, [], ?MORE_MS)]].

ran(here, Config, Settings, _) ->
    guarded(fun() -> atoll_load_run:run(Config, Settings) end);
ran(#{cluster := Cluster, nodes := Nodes}, Config, Settings, Ms) ->
    case atoll_bench_nodes:each(Cluster, {atoll_load_run, part}, [Nodes, Config, Settings], Ms) of
        {ok, Said} ->
            case [Error || {_, {error, _} = Error} <- Said] of
                [] ->
                    All = lists:reverse(lists:sort([{length(Looks), Looks} || {_, {ok, Looks, _}} <- Said])),
                    Ended = [Stopped || {_, {ok, _, {stopped, _} = Stopped}} <- Said],
                    {ok, together([Looks || {_, Looks} <- All]), hd(Ended ++ [whole])};
                [Error | _] -> Error
            end;
        {error, _} = Error -> Error
    end.

%% The nodes look at the same times, and whoever has ended has no more to add.
together([Longest | _] = All) ->
    [atoll_bench_window:merged([lists:nth(min(N, length(Looks)), Looks) || Looks <- All]) || N <- lists:seq(1, length(Longest))].

%% A worker that fails is a fault of its driver, and is told as a sentence.
guarded(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({said, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {said, Said}} -> Said;
        {'DOWN', Ref, process, Pid, {worker, Why}} -> {error, io_lib:format("A worker has failed: ~0tP", [Why, 20])};
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

kept({ok, #{looks := Looks} = Result}, #{rng_seed := Seed}, #{out := Dir} = Options) ->
    About = #{seed => erlang:phash2(Seed), command => maps:get(command, Options, ""), benchmark => <<"load_run">>, summary => <<"a load of a store: what was done in each interval">>},
    case [Error || {error, _} = Error <- [atoll_bench_csv:write(Dir, atoll_bench_csv:files(Looks)), atoll_bench_record:write(filename:join(Dir, "run.jsonl"), Looks, About)]] of
        [] -> {ok, Result};
        [{error, {Name, Reason}} | _] -> {error, [Name, ": ", file:format_error(Reason)]}
    end;
kept({error, _} = Error, _, _) -> Error.
