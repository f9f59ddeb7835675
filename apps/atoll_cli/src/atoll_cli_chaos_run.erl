%% @doc `atoll chaos run': plays a fault script on real nodes.
-module(atoll_cli_chaos_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "play a fault script on real nodes".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cli_chaos:where() ++
        [(atoll_cli_sim_options:seed())#{help => "what all chance is drawn from, in place of the script's"}] ++
        atoll_cli_chaos:closing().

-spec operands() -> [string()].
operands() -> ["SCRIPT"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll chaos run docs/scripts/groups.script",
        "atoll chaos run docs/scripts/groups.script --name reef --seed 8"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    case atoll_sim_script:read(File) of
        {ok, Script} -> check(File, Script, Values);
        {error, Error} -> {usage, atoll_sim_script:format_error(Error)}
    end.

%% What cannot be done is known before anything starts; of a cluster that runs
%% already, as soon as it is known.
check(_, _, #{name := _, nodes := _}) ->
    {usage, "--nodes is for a cluster that is started, and --name for one that runs: not both"};
check(File, Script, #{name := _} = Values) ->
    play(File, Script, 1, Values);
check(File, #{cluster := #{nodes := Own}} = Script, Values) ->
    Count = maps:get(nodes, Values, Own),
    case {atoll_chaos_check:script(Script, Count, [start, kill, pause, slow]), atoll_sim_script:check_names(Script, [])} of
        {ok, ok} -> play(File, Script, Count, Values);
        {{error, Error}, _} -> wrong(File, Error);
        {ok, {error, Error}} -> wrong(File, Error)
    end.

wrong(File, Error) ->
    {usage, atoll_sim_script:format_error(setelement(1, Error, File))}.

play(File, #{cluster := #{seed := Own}, steps := Steps} = Script, Count, Values) ->
    Seed = maps:get(seed, Values, Own),
    Again = atoll_cli_sim_options:again(
        ["chaos run ", atoll_cli_sim_options:quoted(File)], options(), Values#{seed => Seed}
    ),
    Last = lists:max([0 | [Ms || {Ms, _, _} <- Steps]]),
    Head = [File, ", ", atoll_cli_table:seconds(Last)],
    case atoll_cli_chaos:on(Values, Count, fun(Where) ->
        atoll_cli_chaos:harm(Where#{script => Script, seed => Seed}, Head, Again, Values)
    end) of
        {script, Error} -> wrong(File, Error);
        Outcome -> Outcome
    end.
