%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench: how many distributed operations a cluster gets done, and how long they take, with
%% some of them on global names (A. Ghaffari: Investigating the scalability limits of distributed Erlang,
%% Erlang Workshop 2014).
%%
%% Every node is a peer with workers of its own ({@link debench_worker}): nobody coordinates the
%% operations. Who calls here takes no part in them. The nodes are a cluster of its own
%% ({@link debench_cluster}), or nodes that are up already and know nothing of Atoll
%% ({@link debench_own}).
-module(debench).

-export([node_options/1, weights/1, run/3, merged/1, write/3]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-export_type([options/0]).

-type options() :: #{
    %% What all chance is drawn from.
    seed := integer(),
    %% What looks on while the load goes on; called in the process that runs it, with the looks so far
    %% whenever there is one more, the last one first.
    seen => fun(([debench_cluster:looks(), ...]) -> _),
    %% Runs what it is given, which is the load, and something beside it.
    beside => fun((fun(() -> Looks)) -> Looks)
}.

%% @doc How the nodes of a system are started, for {@link atoll_cluster:start/1}. Where there are
%% groups, nodes that are in none yet are to be connected with nobody.
-spec node_options(debench_system:system()) ->
    #{connect_all := boolean(), apps := [atom()], args := [string()]}.
node_options(mesh) -> #{connect_all => true, apps => [], args => []};
node_options(groups) -> #{connect_all => false, apps => [atoll], args => ["-atoll", "free_group", "off"]}.

%% @doc The weights with which so many per cent of the operations that are done are global: a
%% registration that is drawn is three operations. The others are halves of operations of two nodes
%% and of those of one alone.
-spec weights(Global :: number()) -> [debench_config:weighted(), ...].
weights(Global) ->
    Others = (100 - Global) / 2,
    [{global_register, global_register, Global / 3}, {local_register, local_register, Others / 3}] ++
        [{P2p, P2p, Others / 4} || P2p <- [spawning, remote_call, gen_server_call, fsm_server_call]].

%% @doc Runs a configuration on nodes that were started: what each had done at the end of each
%% interval, and when all was over.
-spec run(debench_cluster:started(), debench_config:config(), options()) ->
    atoll_bench_nodes:answer([debench_cluster:looks(), ...]).
run(Started, #{delay_after_bench_finished := Delay} = Config, #{seed := Seed} = Options) ->
    Seen = maps:get(seen, Options, fun(_) -> ok end),
    Beside = maps:get(beside, Options, fun(Fun) -> Fun() end),
    answer(fun() ->
        Looks = Beside(fun() ->
            ok = sure(debench_cluster:begin_load(Started, load(Started, Config, Seed))),
            watch(Started, Config, Seen, [])
        end),
        ok = pause(1000 * Delay),
        ok = sure(debench_cluster:stop_load(Started)),
        Looks
    end).

%% @doc What all nodes together had done, at each look.
-spec merged([debench_cluster:looks(), ...]) -> [atoll_bench_window:look(), ...].
merged(Looks) -> [atoll_bench_window:merged([Look || {_, Look} <- Of]) || Of <- Looks].

%% @doc Writes what a run has done into a directory, which is there: a directory for each node and one
%% for all of them, with the original's files, and `run.jsonl', which `atoll bench report' draws.
-spec write(file:filename(), [debench_cluster:looks(), ...], #{seed := integer(), command := unicode:chardata()}) ->
    ok | {error, {file:filename_all(), file:posix() | badarg | terminated | system_limit}}.
write(Dir, [First | _] = Looks, About) ->
    All = merged(Looks),
    Of = fun(Node) -> [proplists:get_value(Node, Look) || Look <- Looks] end,
    write_each(Dir, [{"aggregated", All} | [{atom_to_list(Node), Of(Node)} || {Node, _} <- First]], fun() ->
        atoll_bench_record:write(filename:join(Dir, "run.jsonl"), All, About#{benchmark => <<"debench_run">>, summary => <<"a run of DE-Bench: what was done in each interval">>})
    end).

write_each(_Dir, [], Last) ->
    Last();
write_each(Dir, [{Name, Looks} | More], Last) ->
    case atoll_bench_csv:write(filename:join(Dir, Name), atoll_bench_csv:files(Looks)) of
        ok -> write_each(Dir, More, Last);
        {error, _} = Error -> Error
    end.

load(#{nodes := Nodes, system := System}, Config, Seed) ->
    #{
        duration := Minutes, concurrent := Workers, operations := Weighted, packet_size := Size, offered_load := Rate,
        delay_remote_function := Us, transitive_connection := Transitive
    } = Config,
    (maps:with([initial_global_size, initial_active_process], Config))#{
        system => System,
        nodes => Nodes,
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

watch(Started, #{report_interval := Interval, duration := Minutes} = Config, Seen, Before) ->
    Until = round(Minutes * 60000),
    Elapsed = case Before of [] -> 0; [[{_, #{elapsed_ms := Ms}} | _] | _] -> Ms end,
    Next = (length(Before) + 1) * round(Interval * 1000),
    case Next < Until of
        true ->
            ok = pause(max(0, Next - Elapsed)),
            Looks = [sure(debench_cluster:look(Started)) | Before],
            _ = Seen(Looks),
            watch(Started, Config, Seen, Looks);
        false ->
            lists:reverse([sure(debench_cluster:finish(Started, max(0, Until - Elapsed))) | Before])
    end.

pause(Ms) ->
    receive
    after round(Ms) -> ok
    end.
