%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll scale tune': one change at a time, each compared with what was before it, until none is left that helps.
-module(atoll_scale_cli_tune).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "change a service step by step, and keep what has made its limit larger".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => rounds, value => "N", default => "5", read => atoll_cli_read:whole(1, 100), help => "how often each side of a comparison is measured; with fewer than five nothing is sure, and nothing kept"},
        #{name => changes, value => "N", default => "10", read => atoll_cli_read:whole(1, 1000), help => "changes at most"}
        | atoll_scale_cli:options()
    ].

-spec more() -> unicode:chardata().
more() -> "It finds the limit and what makes it, takes the next value of a switch that may help with that, compares before and after in\nturns, keeps the change if the limit is larger, and begins anew. A switch that you change yourself is asked for".

-spec operands() -> [string()].
operands() -> ["PLAN"].

-spec examples() -> [string()].
examples() -> ["atoll scale tune shop.plan", "atoll scale tune shop.plan --changes 1 --journal first.journal"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{set := Set, changes := Changes} = Values, [File]) ->
    case atoll_scale_cli:plan(File) of
        {ok, Plan} ->
            case atoll_scale_cli:settings(Plan, Set) of
                {ok, Settings} ->
                    atoll_scale_cli:within("tune", {File, Plan}, Values, fun(Opened) -> tune(Changes, Settings, [], {Plan, Values, Opened}) end);
                {error, Sentence} -> {usage, Sentence}
            end;
        Wrong ->
            Wrong
    end.

%% One search says where to begin, and what limits it; the comparison has the samples.
tune(Left, Settings, Tried, {#{level := Level} = Plan, _, #{session := Session, journal := Journal}} = Tuning) ->
    Options = #{settings => Settings, searches => 1, session => Session},
    case atoll_scale_find:find(Plan, Options, atoll_scale_cli:note(Journal), fun atoll_scale_cli:searched/1) of
        {ok, #{summary := #{limit := Limit} = Summary, runs := Runs, findings := Findings}} ->
            ok = atoll_scale_journal:add(Summary#{what => limit, settings => atoll_scale_plan:json(Settings), findings => Findings}, Journal),
            ok = atoll_cli_io:say(atoll_scale_cli:limit(Summary, Level, Findings, Runs)),
            case {Summary, next(Findings, Tried, Settings, Plan)} of
                {#{at_least := true}, _} -> ended(Settings, "the largest level passes", Tuning);
                {_, none} -> ended(Settings, "no switch is left that may help with what limits it", Tuning);
                {_, {_, _}} when Left =:= 0 -> ended(Settings, "that was the last change", Tuning);
                {_, {Change, Now}} -> changed(Left, Change, max(1, Limit), Settings, Now, Tuning)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

%% What the machine forbids is said, and counts as tried.
next(Findings, Tried, Settings, #{switches := Switches} = Plan) ->
    case atoll_scale_tune:next(Findings, Tried, {Switches, Settings}) of
        {ok, #{switch := Switch, to := To} = Change} ->
            case atoll_scale_system:allows(Switch, To, Plan) of
                ok -> {Change, Tried};
                {error, Sentence} ->
                    ok = atoll_cli_io:say([atom_to_list(Switch), ": ", Sentence]),
                    next(Findings, atoll_scale_tune:tried(Change, false, Tried), Settings, Plan)
            end;
        none -> none
    end.

changed(Left, #{switch := Switch, to := To} = Change, Limit, Settings, Tried, {Plan, #{rounds := Rounds}, Opened} = Tuning) ->
    case atoll_scale_cli:compared(Change, {Rounds, Limit}, fun(Verdict) -> Verdict =:= better end, {Plan, Settings, Opened}) of
        {ok, #{kept := Kept}} ->
            tune(Left - 1, case Kept of true -> Settings#{Switch := To}; false -> Settings end, atoll_scale_tune:tried(Change, Kept, Tried), Tuning);
        {error, Sentence} ->
            {unable, Sentence}
    end.

ended(Settings, Why, {#{}, #{json := Json}, #{journal := Journal}}) ->
    ok = atoll_scale_journal:add(#{what => settled, settings => atoll_scale_plan:json(Settings), why => list_to_binary(Why)}, Journal),
    Switches = lists:sort(maps:to_list(Settings)),
    case Json of
        true -> atoll_cli_io:print_json({[{why, list_to_binary(Why)}, {settings, {[{Name, list_to_binary(atoll_scale_cli:spelt(Value))} || {Name, Value} <- Switches]}}]});
        false -> atoll_cli_io:print(["It ends here, since ", Why, ".\n", [[atom_to_list(Name), " = ", atoll_scale_cli:spelt(Value), $\n] || {Name, Value} <- Switches]])
    end.
