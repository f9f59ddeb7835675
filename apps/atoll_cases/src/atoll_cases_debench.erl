%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll debench': a configuration of DE-Bench on a cluster of its own, or on one that runs.
-module(atoll_cases_debench).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(NODES, 4).
-define(MAX_NODES, 200).

-spec summary() -> string().
summary() -> "run a configuration of DE-Bench, distributed operations at a fixed load".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => nodes, value => "N", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "nodes to start (as many as erlange_nodes names, or else 4)"},
        #{name => system, value => "SYSTEM", default => "mesh",
          read => atoll_cli_read:one_of(debench_system:all()),
          help => "mesh: stock distribution with global; groups: s_groups"},
        #{name => group_size, value => "N", default => "4", read => atoll_cli_read:whole(1, ?MAX_NODES),
          help => "nodes of a group"},
        #{name => offered, value => "N", read => fun offered/1,
          help => "operations that begin on each node in a second, in place of the configuration's offered_load; or closed"},
        #{name => chaos, value => "R", read => atoll_cli_read:number(100),
          help => "kill so many workers on each node in a second"},
        #{name => seed, value => "N", default => "1", read => atoll_cli_read:whole(0, 1000000000),
          help => "what all chance is drawn from"},
        #{name => out, value => "DIR", help => "a new directory for the CSV files (atoll-debench-TIME unless told)"},
        atoll_cli_json:switch()
        | atoll_view_cli_where:options("one is started for it") ++ atoll_deploy_cluster:options()
    ].

offered("closed") ->
    {ok, closed};
offered(Text) ->
    case (atoll_cli_read:whole(1, 100000))(Text) of
        {ok, N} -> {ok, N};
        {error, Must} -> {error, [Must, ", or closed"]}
    end.

-spec operands() -> [string()].
operands() -> ["CONFIG"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll debench docs/examples/debench.config",
        "atoll debench docs/examples/debench.config --system groups --nodes 8 --group-size 4 --chaos 1 --json",
        "atoll debench docs/examples/debench.config -c reef",
        "atoll debench docs/examples/debench.config --node a@host,b@host,c@host --cookie-file FILE"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    case debench_config:read(File) of
        {ok, Config} -> check(Values#{config_file => File}, with_offered(Values, Config));
        {error, Error} -> {usage, debench_config:format_error(Error)}
    end.

with_offered(#{offered := Offered}, Config) -> Config#{offered_load := Offered};
with_offered(_Values, Config) -> Config.

%% What is wrong is known before anything starts.
check(Values, Config) ->
    case {atoll_view_cli_where:is_given(Values), Values} of
        {true, _} when is_map_key(nodes, Values); is_map_key(family, Values) ->
            Flag = case Values of #{nodes := _} -> "--nodes"; _ -> "--family" end,
            {usage, [Flag, " is for a cluster that is started, and --cluster and --node for one that runs: not both"]};
        {true, _} -> atoll_view_cli_where:on_up(Values, fun(Up) -> check(Values, Config, Up) end);
        {false, _} -> check(Values, Config, how_many(Values, Config))
    end.

check(Values, #{operations := Operations} = Config, Nodes) ->
    Registers = [O || {_, O, Weight} <- Operations, Weight > 0, lists:member(O, [global_register, local_register])],
    Count = case Nodes of [_ | _] -> length(Nodes); _ -> Nodes end,
    case Values of
        #{} when Count > ?MAX_NODES ->
            {usage, io_lib:format("there are at most ~b nodes, and these are ~b", [?MAX_NODES, Count])};
        #{} when Registers =:= [], Count =:= 1 ->
            {usage, "all operations are of two nodes, and a node has no other one there"};
        #{} when is_list(Nodes) ->
            check_dir(Values, Config, Nodes);
        #{system := groups, group_size := Size} when Size > Nodes ->
            {usage,
                io_lib:format("--group-size must be at most the number of nodes, which is ~b, not \"~b\"", [
                    Nodes, Size
                ])};
        #{system := groups, group_size := 1} when Registers =:= [] ->
            {usage, "all operations are of two nodes, and a node has no other one there"};
        #{} ->
            check_dir(Values, Config, Nodes)
    end.

how_many(#{nodes := Nodes}, _Config) -> Nodes;
how_many(_Values, #{erlange_nodes := []}) -> ?NODES;
how_many(_Values, #{erlange_nodes := Named}) -> length(Named).

%% Whether the directory can be made is seen by making it; it is taken away again, and made for
%% good when the nodes are up.
check_dir(Values, Config, Nodes) ->
    Dir = maps:get(out, Values, atoll_bench_cli_run:timely("atoll-debench", "")),
    case file:make_dir(Dir) of
        ok ->
            ok = file:del_dir(Dir),
            measure(Values#{out => Dir}, Config, Nodes);
        {error, Reason} ->
            {unable, io_lib:format("--out: ~ts: ~ts", [Dir, file:format_error(Reason)])}
    end.

measure(#{json := Json} = Values, #{erlange_nodes := Named} = Config, Nodes) ->
    _ = [
        atoll_cli_io:say(
            io_lib:format("The nodes are started here: ~b of them, in place of the ~b of erlange_nodes.", [
                Nodes, length(Named)
            ])
        )
     || Named =/= [], is_integer(Nodes)
    ],
    Run = (maps:with([system, group_size, seed, chaos, out], Values))#{
        config => Config, nodes => Nodes, command => command(Values)
    },
    case atoll_cases_debench_run:run(Run) of
        {ok, Result} when Json -> atoll_cli_io:print_json(atoll_cases_debench_result:json(Run, Result));
        {ok, Result} -> atoll_cli_io:print(atoll_cases_debench_result:table(Run, Result));
        {error, Sentence} -> {unable, Sentence}
    end.

%% Nothing that tells a cookie, or the names of nodes that are not ours.
command(#{config_file := File, system := System, group_size := Size, seed := Seed} = Values) ->
    Told = [io_lib:format(" --~ts ~w", [Key, Value]) || Key <- [nodes, offered, chaos], #{Key := Value} <- [Values]],
    io_lib:format("atoll debench ~ts --system ~ts --group-size ~b --seed ~b~ts", [filename:basename(File), System, Size, Seed, Told]).
