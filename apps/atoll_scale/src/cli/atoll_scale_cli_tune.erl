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
more() -> "It finds the limit and what makes it, takes the next value of a switch that may help with that, compares before and after in\nturns, keeps the change if the limit is larger, and begins anew. A switch that you change yourself is asked for.".

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
tune(Left, Settings, Tried, {#{level := Level, switches := Switches} = Plan, _, #{session := Session, journal := Journal}} = Tuning) ->
    Options = #{settings => Settings, searches => 1, session => Session},
    case atoll_scale_find:find(Plan, Options, atoll_scale_cli:note(Journal), fun atoll_scale_cli:searched/1) of
        {ok, #{summary := #{limit := Limit} = Summary, runs := Runs, findings := Findings}} ->
            ok = atoll_scale_journal:add(Summary#{what => limit, settings => atoll_scale_plan:json(Settings), findings => Findings}, Journal),
            ok = atoll_cli_io:say(atoll_scale_cli:limit(Summary, Level, Findings, Runs)),
            case {Summary, atoll_scale_tune:next(Findings, Tried, {Switches, Settings})} of
                {#{at_least := true}, _} -> ended(Settings, "the largest level passes", Tuning);
                {_, none} -> ended(Settings, "no switch is left that may help with what limits it", Tuning);
                {_, {ok, _}} when Left =:= 0 -> ended(Settings, "that was the last change", Tuning);
                {_, {ok, Change}} -> changed(Left, Change, max(1, Limit), Settings, Tried, Tuning)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

changed(Left, #{switch := Switch, from := From, to := To, cause := Cause} = Change, Limit, Settings, Tried, {#{switches := Switches} = Plan, #{rounds := Rounds}, #{session := Session, journal := Journal}} = Tuning) ->
    [#{in := In, what := What}] = [Is || #{name := Name} = Is <- Switches, Name =:= Switch],
    ok = atoll_cli_io:say([atom_to_list(Switch), [[" (", What, ")"] || What =/= ""], ": ", spelt(From), " before, ", spelt(To), " after, for the cause ", atom_to_list(Cause)]),
    Note = atoll_scale_cli:note(Journal),
    Measure = fun(Side) ->
        case atoll_scale_find:search(Plan, case Side of before -> Settings; 'after' -> Settings#{Switch := To} end, Limit, {Note, Session}) of
            {ok, {#{limit := Found} = Result, _, _}} -> ok = atoll_scale_cli:searched(Result), {ok, Found};
            {error, _} = Error -> Error
        end
    end,
    case atoll_scale_tune:compare(Rounds, In =/= ask, fun(Side) -> asked(In, Side, Change) end, Measure) of
        {ok, #{verdict := Verdict} = Compared} ->
            Kept = Verdict =:= better,
            ok = atoll_scale_journal:add(maps:merge(Change#{from := atoll_scale_plan:json(From), to := atoll_scale_plan:json(To)}, Compared#{what => change, kept => Kept}), Journal),
            ok = atoll_cli_io:say([atoll_scale_cli:change_line(Compared), case Kept of true -> "; it is kept"; false -> "; it is taken back" end]),
            tune(Left - 1, case Kept of true -> Settings#{Switch := To}; false -> Settings end, [{Switch, To} | Tried], Tuning);
        {error, Sentence} ->
            {unable, Sentence}
    end.

asked(ask, 'after', #{switch := Switch, to := To}) ->
    ok = atoll_cli_io:say(["Now set ", atom_to_list(Switch), " to ", spelt(To), ", and press Enter when the service runs with it."]),
    case io:get_line("") of
        Line when is_list(Line); is_binary(Line) -> ok;
        _ -> {error, ["nobody is there to set ", atom_to_list(Switch), ": the standard input has ended"]}
    end;
asked(_, _, _) ->
    ok.

spelt(Value) -> atoll_scale_plan:filled("{value}", #{value => Value}).

ended(Settings, Why, {#{}, #{json := Json}, #{journal := Journal}}) ->
    ok = atoll_scale_journal:add(#{what => settled, settings => atoll_scale_plan:json(Settings), why => list_to_binary(Why)}, Journal),
    Switches = lists:sort(maps:to_list(Settings)),
    case Json of
        true -> atoll_cli_io:print_json({[{why, list_to_binary(Why)}, {settings, {[{Name, list_to_binary(spelt(Value))} || {Name, Value} <- Switches]}}]});
        false -> atoll_cli_io:print(["It ends here, since ", Why, ".\n", [[atom_to_list(Name), " = ", spelt(Value), $\n] || {Name, Value} <- Switches]])
    end.
