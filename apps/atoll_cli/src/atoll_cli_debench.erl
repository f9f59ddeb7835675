%% @doc `atoll debench': a configuration of DE-Bench on a cluster of its own.
-module(atoll_cli_debench).
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
        #{name => on, value => "NODES", read => fun names/1,
          help => "run on these nodes, which are up already, in place of ours, with commas between; config: those of erlange_nodes"},
        #{name => cookie, value => "COOKIE", read => fun cookie/1, help => "the cookie of these (that of ~/.erlang.cookie unless told)"},
        #{name => offered, value => "N", read => fun offered/1,
          help => "operations that begin on each node in a second, in place of the configuration's offered_load; or closed"},
        #{name => chaos, value => "R", read => atoll_cli_read:number(100),
          help => "kill so many workers on each node in a second"},
        #{name => seed, value => "N", default => "1", read => atoll_cli_read:whole(0, 1000000000),
          help => "what all chance is drawn from"},
        #{name => out, value => "DIR", help => "a new directory for the CSV files (atoll-debench-TIME unless told)"},
        atoll_cli_json:switch()
    ].

%% At most 200 atoms.
names("config") ->
    {ok, config};
names(Text) ->
    Typed = string:split(Text, ",", all),
    case lists:all(fun is_whole/1, Typed) andalso length(lists:usort(Typed)) =:= length(Typed) andalso length(Typed) =< ?MAX_NODES of
        true -> {ok, [list_to_atom(Name) || Name <- Typed]};
        false -> {error, "must be different names of nodes with commas between, such as a@host,b@host, or config"}
    end.

is_whole(Name) ->
    length(Name) < 256 andalso re:run(Name, "^[^@\\s]+@[^@\\s]+$", [unicode, dollar_endonly, {capture, none}]) =:= match.

cookie(Text) ->
    case length(Text) < 256 of
        true -> {ok, list_to_atom(Text)};
        false -> {error, "must be shorter than 256 characters"}
    end.

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
        "atoll debench docs/examples/debench.config --on a@host,b@host,c@host --cookie COOKIE"
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
check(Values, #{operations := Operations} = Config) ->
    Nodes = how_many(Values, Config),
    Whole = [Node || is_list(Nodes), Node <- Nodes, is_whole(atom_to_list(Node))],
    Registers = [O || {_, O, Weight} <- Operations, Weight > 0, lists:member(O, [global_register, local_register])],
    case Values of
        #{on := config} when Nodes =:= [] ->
            {usage, "--on config wants nodes in erlange_nodes, and the configuration has none"};
        #{on := _} when length(Whole) < length(Nodes) ->
            {usage, io_lib:format("~ts is no name of a node", [hd(Nodes -- Whole)])};
        #{on := _, nodes := _} ->
            {usage, "--nodes is how many to start, and with --on none is started"};
        #{cookie := _} when not is_list(Nodes) ->
            {usage, "--cookie is that of the nodes of --on"};
        #{} when Registers =:= [], length(Nodes) =:= 1 ->
            {usage, "all operations are of two nodes, and a node has no other one there"};
        #{on := _} ->
            check_dir(Values, Config, Nodes);
        #{system := groups, group_size := Size} when Size > Nodes ->
            {usage,
                io_lib:format("--group-size must be at most the number of nodes, which is ~b, not \"~b\"", [
                    Nodes, Size
                ])};
        #{} when Nodes > ?MAX_NODES ->
            {usage, io_lib:format("there are at most ~b nodes, and erlange_nodes names ~b", [?MAX_NODES, Nodes])};
        #{system := System, group_size := Size} when
            Registers =:= [], (Nodes =:= 1 orelse (System =:= groups andalso Size =:= 1))
        ->
            {usage, "all operations are of two nodes, and a node has no other one there"};
        #{} ->
            check_dir(Values, Config, Nodes)
    end.

%% Of those that are up, which.
how_many(#{on := config}, #{erlange_nodes := Named}) -> Named;
how_many(#{on := Nodes}, _Config) -> Nodes;
how_many(#{nodes := Nodes}, _Config) -> Nodes;
how_many(_Values, #{erlange_nodes := []}) -> ?NODES;
how_many(_Values, #{erlange_nodes := Named}) -> length(Named).

%% Whether the directory can be made is seen by making it; it is taken away again, and made for
%% good when the nodes are up.
check_dir(Values, Config, Nodes) ->
    Dir = maps:get(out, Values, atoll_cli_bench_run:timely("atoll-debench", "")),
    case file:make_dir(Dir) of
        ok ->
            ok = file:del_dir(Dir),
            measure(Values#{out => Dir}, Config, Nodes);
        {error, Reason} ->
            {usage, io_lib:format("--out: ~ts: ~ts", [Dir, file:format_error(Reason)])}
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
    Run = (maps:with([system, group_size, seed, chaos, out, cookie], Values))#{
        config => Config, nodes => Nodes, command => command(Values)
    },
    case atoll_cli_debench_run:run(Run) of
        {ok, Result} when Json -> atoll_cli_io:print_json(atoll_cli_debench_result:json(Run, Result));
        {ok, Result} -> atoll_cli_io:print(atoll_cli_debench_result:table(Run, Result));
        {error, Sentence} -> {failed, Sentence}
    end.

%% Nothing that tells a cookie, or the names of nodes that are not ours.
command(#{config_file := File, system := System, group_size := Size, seed := Seed} = Values) ->
    Told = [io_lib:format(" --~ts ~w", [Key, Value]) || Key <- [nodes, offered, chaos], #{Key := Value} <- [Values]],
    io_lib:format("atoll debench ~ts --system ~ts --group-size ~b --seed ~b~ts", [filename:basename(File), System, Size, Seed, Told]).
