%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim run': plays a fault script, and fails if one of its expectations
%% does.
-module(atoll_sim_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "play a fault script, and see whether its expectations hold".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        atoll_sim_cli_strategy:code(),
        (atoll_cli_again:seed())#{help => "what all chance is drawn from, in place of the script's"},
        atoll_sim_cli_options:trace(),
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["SCRIPT"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim run docs/scripts/partition.script",
        "atoll sim run docs/scripts/partition.script --seed 8 --trace partition.trace"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    %% A script may name a strategy from there.
    ok = atoll_sim_cli_strategy:add_code(Values),
    case read(File) of
        {ok, Script} ->
            case is_map_key(trace, Values) andalso atoll_sim_cli_file:is_same(File, map_get(trace, Values)) of
                true -> {usage, ["--trace ", map_get(trace, Values), " is the script itself"]};
                false -> play(File, Script, Values)
            end;
        {error, Error} ->
            {usage, atoll_sim_script:format_error(Error)}
    end.

%% Whether the nodes that it names are there is known before anything is simulated.
read(File) ->
    case atoll_sim_script:read(File) of
        {ok, Script} ->
            case atoll_sim_play:check(Script) of
                ok -> {ok, Script};
                {error, {none, Place, Reason}} -> {error, {File, Place, Reason}}
            end;
        {error, _} = Error ->
            Error
    end.

play(File, #{cluster := Cluster0} = Script, Values) ->
    #{seed := Seed} = Cluster = maps:merge(Cluster0, maps:with([seed], Values)),
    Again = atoll_sim_cli_options:again(["sim run ", atoll_cli_again:quoted(File)], options(), Values#{seed => Seed}),
    Play = fun(Hooks) -> atoll_sim_play:run(Script, Hooks#{seed => Seed}) end,
    case atoll_sim_cli_experiment:simulate(Cluster, Again, Values, Play) of
        {ok, {ok, #{failed := Failed, expectations := Count} = Result}} ->
            ok = show(Values, Result, Again),
            atoll_sim_cli_expect:judge(File, Failed, Count, Again);
        {ok, {error, Error}} ->
            {usage, atoll_sim_script:format_error(setelement(1, Error, File))};
        {error, Sentence} ->
            {unable, Sentence}
    end.

show(#{json := true}, #{failed := Failed} = Result, Again) ->
    Object = Result#{failed := atoll_sim_cli_expect:json(Failed)},
    atoll_cli_io:print_json(atoll_sim_cli_result:json([], named(fun atoll_sim_cli_result:names/1, grouped(fun atoll_sim_cli_result:groups/1, Object)), Again));
show(#{json := false}, #{failed := Failed} = Result, Again) ->
    Table = atoll_sim_cli_result:table(named(fun names/1, grouped(fun groups/1, Result#{failed := length(Failed)}))),
    atoll_cli_io:print([Table, "\nagain: ", Again, $\n]).

grouped(Fun, #{groups := Groups} = Result) -> Result#{groups := Fun(Groups)};
grouped(_, Result) -> Result.

named(Fun, #{names := Names} = Result) -> Result#{names := Fun(Names)};
named(_, Result) -> Result.

groups(Groups) ->
    length(lists:usort(lists:append(maps:values(Groups)))).

names(Names) ->
    length(lists:usort([{Group, Name} || {Group, Name, _} <- lists:append(maps:values(Names))])).
