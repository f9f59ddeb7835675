%% SPDX-License-Identifier: Apache-2.0
%% @doc One run of DE-Bench, on a cluster of its own or on nodes that are up already. When it ends,
%% whichever way, the cluster is gone, and the nodes that are not ours are as they were.
-module(atoll_cases_debench_run).

-export([run/1, options/1]).

-export_type([task/0, result/0]).

-type task() :: #{
    config := debench_config:config(),
    %% How many to start, or which are up.
    nodes := pos_integer() | [node(), ...],
    system := debench_system:system(),
    group_size := pos_integer(),
    seed := integer(),
    %% Kills on each node in a second.
    chaos => number(),
    %% A directory for the files, which is made when the nodes are up.
    out := file:filename(),
    command := unicode:chardata()
}.

-type result() :: #{
    %% Of all nodes, one for each interval.
    looks := [atoll_bench_window:look(), ...],
    %% What became of the kills.
    chaos := atoll_chaos:result() | none
}.

%% How long a killed worker is waited for.
-define(BACK_MS, 2000).

%% @doc Runs, and writes the files.
-spec run(task()) -> {ok, result()} | {error, unicode:chardata()}.
run(#{nodes := Nodes} = Task) when is_list(Nodes) ->
    case debench_own:start(maps:with([nodes, system], Task)) of
        {ok, Started} ->
            try
                made(Task, fun() -> debench_own:lost(Nodes, fun() -> load(Started, Task) end) end)
            after
                ok = debench_own:stop(Started),
                ok = atoll_cli_progress:done()
            end;
        {error, _} = Error ->
            Error
    end;
run(Task) ->
    case debench_cluster:start(options(Task)) of
        {ok, #{cluster := Cluster} = Started} ->
            try
                made(Task, fun() -> watched(Cluster, fun() -> load(Started, Task) end) end)
            after
                ok = atoll_cluster:stop(Cluster)
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc What is started: as the benchmark starts it, under the name that the configuration has, and
%% after its waits.
-spec options(task()) -> debench_cluster:options().
options(#{config := Config} = Task) ->
    #{sleep_time_before_ping := Before, sleep_time_after_ping := After, node_name := Name} = Config,
    Named = case Name of none -> #{}; _ -> #{name => atom_to_list(Name)} end,
    (atoll_bench_debench:options(Task))#{
        cluster => Named#{progress => atoll_cli_progress:bar("Starting nodes")},
        before_ping => fun() -> pause(Before) end,
        after_ping => fun() -> pause(After) end
    }.

pause(Seconds) ->
    receive
    after round(1000 * Seconds) -> ok
    end.

%% Only when the nodes are up: if they do not start nothing is left that would refuse the next try.
made(#{out := Dir} = Task, Load) ->
    case file:make_dir(Dir) of
        ok -> kept(Load(), Task);
        {error, Reason} -> unwritten(Dir, Reason)
    end.

kept({ok, #{looks := Looks} = Result}, #{out := Dir} = Task) ->
    case debench:write(Dir, Looks, maps:with([seed, command], Task)) of
        ok -> {ok, Result#{looks := debench:merged(Looks)}};
        {error, {Name, Reason}} -> unwritten(Name, Reason)
    end;
kept({error, _} = Error, #{out := Dir}) ->
    %% Nothing is in it, and it would refuse the next try.
    _ = file:del_dir(Dir),
    Error.

unwritten(Name, Reason) -> {error, io_lib:format("~ts: ~ts", [Name, file:format_error(Reason)])}.

%% Nobody else would tell before the next look that a node is gone.
watched(Cluster, Fun) ->
    case atoll_cases_program:watched(Cluster, "Running DE-Bench", Fun, none) of
        {ok, Result, _Killed} -> {ok, Result};
        {error, _} = Error -> Error
    end.

load(Started, #{config := Config, seed := Seed} = Task) ->
    Self = self(),
    Ref = make_ref(),
    Options = #{
        seed => Seed,
        seen => fun(Looks) -> say(lists:reverse(lists:sublist(debench:merged(lists:sublist(Looks, 2)), 2))) end,
        beside => fun(Fun) ->
            {Looks, Chaos} = harmed(Started, Task, Fun),
            Self ! {Ref, Chaos},
            Looks
        end
    },
    case debench:run(Started, Config, Options) of
        {ok, Looks} -> {ok, #{looks => Looks, chaos => receive {Ref, Chaos} -> Chaos end}};
        {error, _} = Error -> Error
    end.

%% The workers of each node are killed at that rate while Fun has them work. What kills is there before
%% the load begins, however long it takes to get there. A worker is back within milliseconds, or its load
%% is over and it does not come back at all: that is not waited for for long.
harmed(#{nodes := Nodes} = Started, #{chaos := Rate, seed := Seed}, Fun) ->
    Options = (maps:with([case Started of #{cluster := _} -> cluster; #{} -> nodes end], Started))#{
        rate => Rate * length(Nodes), kinds => [process], seed => Seed, what => {supervisor, debench_workers}, deadline_ms => ?BACK_MS
    },
    case atoll_chaos:start(Options) of
        {ok, Run} ->
            try Fun() of
                Result -> {Result, atoll_chaos:stop(Run)}
            catch
                Class:Reason:Trace ->
                    _ = atoll_chaos:stop(Run),
                    erlang:raise(Class, Reason, Trace)
            end;
        {error, Error} ->
            throw({unable, atoll_chaos:format_error(Error)})
    end;
harmed(_Started, _Task, Fun) ->
    {Fun(), none}.

say(Looks) ->
    [Earlier, After] = case Looks of [Only] -> [atoll_bench_window:outset(Only), Only]; _ -> Looks end,
    #{elapsed_s := Elapsed, window_s := Length, successful := Ok, failed := Failed} = atoll_bench_window:between(Earlier, After),
    atoll_cli_io:say_over(
        io_lib:format("~ts: ~ts operations a second, ~b failed, ~b workers started anew", [
            atoll_cli_table:seconds(round(1000 * Elapsed)),
            atoll_cli_table:decimal(Ok / max(0.001, Length)),
            Failed,
            maps:get(restarts, After)
        ])
    ).
