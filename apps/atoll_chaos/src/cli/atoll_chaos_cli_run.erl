%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll chaos run': plays a fault script on real nodes.
-module(atoll_chaos_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "play a fault script on real nodes".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_chaos_cli:where("that of the script, if it names one") ++
        [(atoll_cli_again:seed())#{help => "what all chance is drawn from, in place of the script's"}] ++
        atoll_chaos_cli:closing().

-spec operands() -> [string()].
operands() -> ["SCRIPT"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll chaos run docs/scripts/groups.script",
        "atoll chaos run docs/scripts/leave.script --overlay mesh --nodes 9",
        "atoll chaos run docs/scripts/groups.script -c reef --seed 8"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    %% A script may name a strategy from there.
    ok = atoll_sim_cli_strategy:add_code(Values),
    case atoll_sim_script:read(File) of
        {ok, Script} -> check(File, Script, Values);
        {error, Error} -> {usage, atoll_sim_script:format_error(Error)}
    end.

%% What cannot be done is known before anything starts; of a cluster that runs
%% already, as soon as it is known.
check(File, #{steps := []}, _Values) ->
    {usage, [File, ": it has no steps"]};
check(File, #{given := Given} = Script, Values) ->
    %% The simulator's default is for the simulator.
    case lists:member(nodes, Given) orelse is_map_key(nodes, Values) orelse atoll_view_cli_where:is_given(Values) of
        true -> check_where(File, Script, Values);
        false -> {usage, [File, ": it does not say how many nodes there are, so --nodes N must"]}
    end.

check_where(File, Script, Values) ->
    case {atoll_chaos_cli:check(Values), overlay(Script, Values)} of
        {{error, Sentence}, _} -> {usage, Sentence};
        {ok, {error, Sentence}} -> {usage, Sentence};
        {ok, {ok, Overlay}} -> check(File, Script, Overlay, Values)
    end.

check(File, Script, Overlay, Values) ->
    case atoll_view_cli_where:is_given(Values) of
        true -> play(File, Script, 1, Overlay, Values);
        false -> check_started(File, Script, Overlay, Values)
    end.

check_started(File, #{cluster := #{nodes := Own}} = Script, Overlay, Values) ->
    Count = maps:get(nodes, Values, Own),
    Able = [start, kill, pause, slow] ++ [overlay || Overlay =/= none] ++ [carrier || is_map_key(carrier, Values), map_get(carrier, Values) =:= atoll],
    case {atoll_chaos_check:script(Script, Count, Able), atoll_sim_script:check_names(Script, [])} of
        {ok, ok} -> play(File, Script, Count, Overlay, Values);
        {{error, Error}, _} -> wrong(File, Error);
        {ok, {error, Error}} -> wrong(File, Error)
    end.

%% The one that is asked for, or else the script's, if it says which.
overlay(#{given := Given} = Script, Values) ->
    case atoll_up_cli_overlay:read(Values) of
        {ok, none} ->
            case lists:member(strategy, Given) of
                true -> {ok, atoll_up_overlay:of_script(Script)};
                false -> {ok, none}
            end;
        Read ->
            Read
    end.

wrong(File, Error) ->
    {usage, atoll_sim_script:format_error(setelement(1, Error, File))}.

play(File, #{cluster := #{seed := Own}} = Script, Count, Overlay, Values) ->
    Seed = maps:get(seed, Values, Own),
    Again = atoll_cli_again:line(
        ["chaos run ", atoll_cli_again:quoted(File)], options(), Values#{seed => Seed}
    ),
    Head = [File, ", ", atoll_cli_table:seconds(atoll_sim_script:ms(Script))],
    case atoll_chaos_cli:on(Values, Count, Overlay, fun(Where) ->
        atoll_chaos_cli:harm(Where#{script => Script, seed => Seed}, Head, Again, Values)
    end) of
        {ok, #{failed := Failed, expectations := Expected}} -> atoll_sim_cli_expect:judge(File, Failed, Expected, Again);
        {script, Error} -> wrong(File, Error);
        Outcome -> Outcome
    end.
