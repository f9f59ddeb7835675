%% @doc One run of DE-Bench on a cluster of its own, which is gone when the run ends, whichever way
%% it ends; with workers that are killed, if that is asked for.
-module(atoll_cli_debench_run).

-export([run/1]).

-export_type([task/0, result/0]).

-type task() :: #{
    config := debench_config:config(),
    nodes := pos_integer(),
    system := debench_system:system(),
    group_size := pos_integer(),
    seed := integer(),
    %% Kills on each node in a second.
    chaos => number(),
    %% A directory for the files, which is made when the nodes are up.
    out := file:filename()
}.

-type result() :: #{
    %% Of all nodes, one for each interval.
    looks := [debench_peer:look(), ...],
    %% What became of the kills.
    chaos := atoll_chaos:result() | none
}.

%% @doc Runs, and writes the files.
-spec run(task()) -> {ok, result()} | {error, unicode:chardata()}.
run(#{config := Config, nodes := Nodes, system := System, group_size := Size} = Task) ->
    #{sleep_time_before_ping := Before, sleep_time_after_ping := After, node_name := Name} = Config,
    Cluster = #{args => atoll_bench_nodes:flags(), progress => atoll_cli_progress:bar("Starting nodes")},
    Started = debench_cluster:start(#{
        nodes => Nodes,
        system => System,
        group_size => Size,
        cluster => case Name of none -> Cluster; _ -> Cluster#{name => atom_to_list(Name)} end,
        before_ping => fun() -> pause(Before) end,
        after_ping => fun() -> pause(After) end
    }),
    case Started of
        {ok, #{cluster := Up} = Ready} ->
            try
                made(Ready, Task)
            after
                ok = atoll_cluster:stop(Up)
            end;
        {error, _} = Error ->
            Error
    end.

%% Only now: if the nodes do not start nothing is left that would refuse the next try.
made(Ready, #{out := Dir} = Task) ->
    case file:make_dir(Dir) of
        ok -> loaded(Ready, Task);
        {error, Reason} -> {error, unwritten(Dir, Reason)}
    end.

unwritten(Name, Reason) -> io_lib:format("~ts: ~ts", [Name, file:format_error(Reason)]).

pause(Seconds) ->
    receive
    after round(1000 * Seconds) -> ok
    end.

%% Nobody else would tell before the next look that a node is gone.
loaded(#{cluster := Cluster} = Ready, #{config := #{delay_after_bench_finished := Delay} = Config, out := Dir} = Task) ->
    Run = fun() ->
        ok = atoll_bench_nodes:sure(debench_cluster:begin_load(Ready, load(Ready, Task))),
        {Looks, Chaos} = harmed(Ready, Task, fun() -> watch(Ready, Config, []) end),
        ok = pause(Delay),
        ok = kept(Dir, Looks),
        #{looks => [merged(Look) || Look <- Looks], chaos => Chaos}
    end,
    case atoll_cli_program:watched(Cluster, "Running DE-Bench", fun() -> atoll_bench_nodes:answer(Run) end, none) of
        {ok, Result, _Killed} -> {ok, Result};
        {error, _} = Error -> Error
    end.

merged(Looks) -> debench_window:merged([Look || {_, Look} <- Looks]).

load(#{cluster := Cluster}, #{config := Config, system := System, seed := Seed}) ->
    #{
        duration := Minutes, concurrent := Workers, operations := Weighted, packet_size := Size, offered_load := Rate,
        delay_remote_function := Us, transitive_connection := Transitive
    } = Config,
    (maps:with([initial_global_size, initial_active_process], Config))#{
        system => System,
        nodes => atoll_cluster:nodes(Cluster),
        transitive => Transitive,
        weighted => Weighted,
        workers => Workers,
        rate => Rate,
        from_ms => 0,
        until_ms => max(1, round(Minutes * 60000)),
        packet_size => Size,
        delay_us => Us,
        seed => Seed
    }.

%% The workers of each node are killed at that rate while Fun looks on.
harmed(#{cluster := Cluster}, #{chaos := Rate, nodes := Nodes, seed := Seed}, Fun) ->
    Options = #{
        cluster => Cluster, rate => Rate * Nodes, kinds => [process], seed => Seed,
        what => {supervisor, debench_workers}
    },
    case atoll_chaos:start(Options) of
        {ok, Run} ->
            Result = Fun(),
            {Result, atoll_chaos:stop(Run)};
        {error, Error} ->
            throw({failed, atoll_chaos:format_error(Error)})
    end;
harmed(_Ready, _Task, Fun) ->
    {Fun(), none}.

%% A look at all nodes at each interval, and one when all is over.
watch(Ready, #{report_interval := Interval, duration := Minutes} = Config, Before) ->
    Until = round(Minutes * 60000),
    Elapsed = case Before of [] -> 0; [[{_, #{elapsed_ms := Ms}} | _] | _] -> Ms end,
    Next = (length(Before) + 1) * round(Interval * 1000),
    case Next < Until of
        true ->
            ok = pause(max(0, Next - Elapsed) / 1000),
            Looks = atoll_bench_nodes:sure(debench_cluster:look(Ready)),
            ok = say(Looks, Before),
            watch(Ready, Config, [Looks | Before]);
        false ->
            Looks = atoll_bench_nodes:sure(debench_cluster:finish(Ready, max(0, Until - Elapsed))),
            lists:reverse([Looks | Before])
    end.

say(Looks, Before) ->
    After = merged(Looks),
    Earlier = case Before of [] -> debench_window:outset(After); [Last | _] -> merged(Last) end,
    #{elapsed_s := Elapsed, window_s := Length, successful := Ok, failed := Failed} =
        debench_window:between(Earlier, After),
    atoll_cli_io:say_over(
        io_lib:format("~ts: ~ts operations a second, ~b failed, ~b workers started anew", [
            atoll_cli_table:seconds(round(1000 * Elapsed)),
            atoll_cli_table:decimal(Ok / max(0.001, Length)),
            Failed,
            maps:get(restarts, After)
        ])
    ).

%% A directory for each node, and one for all of them.
kept(Dir, Looks) ->
    Nodes = [Node || {Node, _} <- hd(Looks)],
    Of = fun(Node) -> [Look || Of <- Looks, {N, Look} <- Of, N =:= Node] end,
    lists:foreach(
        fun({Name, Own}) ->
            case debench_csv:write(filename:join(Dir, Name), debench_csv:files(Own)) of
                ok -> ok;
                {error, {File, Reason}} -> throw({failed, unwritten(File, Reason)})
            end
        end,
        [{atom_to_list(Node), Of(Node)} || Node <- Nodes] ++ [{"aggregated", [merged(Look) || Look <- Looks]}]
    ).
