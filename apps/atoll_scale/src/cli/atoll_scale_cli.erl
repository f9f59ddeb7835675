%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll scale' have in common: reading a description, the journal beside it, and what is
%% said while runs go on.
-module(atoll_scale_cli).

-export([plan/1, options/0, settings/2, change/2, within/4, note/1, searched/1, limit/4, compared/4, change_line/1, spelt/1]).

-type opened() :: #{session := atoll_scale_programs:session(), journal := atoll_scale_journal:journal()}.

%% @doc A description, with a load that is there.
-spec plan(file:filename()) -> {ok, atoll_scale_plan:plan()} | atoll_cli_command:outcome().
plan(File) ->
    case atoll_scale_plan:read(File) of
        {ok, Plan} ->
            case atoll_scale_run:check(Plan) of
                ok -> {ok, Plan};
                {error, Sentence} -> {usage, [File, ": ", Sentence]}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

%% @doc The options of those that run something.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => set, value => "SWITCH=VALUE", repeat => true, help => "a switch has this value, one of its own, in place of the first"},
        #{name => journal, value => "FILE", help => "where all is written down (PLAN.journal unless told)"},
        atoll_cli_json:switch()
    ].

%% @doc The switches as the description and the command line have them.
-spec settings(atoll_scale_plan:plan(), [string()]) -> {ok, atoll_scale_plan:settings()} | {error, unicode:chardata()}.
settings(Plan, Typed) ->
    lists:foldl(
        fun
            (_, {error, _} = Error) -> Error;
            (Text, {ok, Settings}) ->
                case change(Plan, Text) of
                    {ok, {Name, Value}} -> {ok, Settings#{Name := Value}};
                    {error, Sentence} -> {error, ["--set: ", Sentence]}
                end
        end,
        {ok, atoll_scale_plan:settings(Plan)},
        Typed
    ).

%% @doc A switch with one of its values, typed as SWITCH=VALUE.
-spec change(atoll_scale_plan:plan(), string()) -> {ok, {atom(), atoll_scale_plan:value()}} | {error, unicode:chardata()}.
change(#{switches := Switches}, Text) ->
    case string:split(Text, "=") of
        [Typed, Value] ->
            case [{Key, Values} || #{name := Key, values := Values} <- Switches, atom_to_list(Key) =:= Typed] of
                [{Key, Values}] ->
                    case [Is || Is <- Values, spelt(Is) =:= Value] of
                        [Is] -> {ok, {Key, Is}};
                        [] -> {error, [Typed, " has no value ", Value, "; there are ", lists:join(", ", [spelt(Is) || Is <- Values])]}
                    end;
                [] -> {error, ["there is no switch ", Typed, [["; there are ", lists:join(", ", [atom_to_list(Is) || #{name := Is} <- Switches])] || Switches =/= []]]}
            end;
        _ ->
            {error, ["it must be SWITCH=VALUE, not \"", Text, $"]}
    end.

%% @doc Calls a function with a session and the journal open, and closes both, whatever comes of it.
-spec within(Command :: string(), {file:filename(), atoll_scale_plan:plan()}, atoll_cli_options:values(), fun((opened()) -> atoll_cli_command:outcome())) ->
    atoll_cli_command:outcome().
within(Command, {File, #{name := Name} = Plan}, Values, Fun) ->
    Journal = maps:get(journal, Values, File ++ ".journal"),
    case atoll_scale_node:join(Plan) of
        ok ->
            case atoll_scale_journal:open(Journal) of
                {ok, Opened} ->
                    try
                        in_session(Command, Name, Journal, Opened, Fun)
                    after
                        atoll_scale_journal:close(Opened)
                    end;
                {error, Sentence} ->
                    {unable, Sentence}
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

in_session(Command, Name, File, Journal, Fun) ->
    case atoll_scale_programs:open() of
        {ok, Session} ->
            ok = atoll_scale_journal:add(#{what => begun, command => list_to_binary(Command), name => unicode:characters_to_binary(Name), machine => atoll_bench_machine:describe()}, Journal),
            ok = atoll_cli_io:say([File, " has all that is run; Ctrl-C ends it, and leaves nothing running"]),
            try
                Outcome = Fun(#{session => Session, journal => Journal}),
                ok = atoll_scale_journal:add(#{what => ended, command => list_to_binary(Command)}, Journal),
                Outcome
            after
                atoll_scale_programs:close(Session)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

%% @doc What is told of each run: it is written down, and said.
-spec note(atoll_scale_journal:journal()) -> atoll_scale_find:note().
note(Journal) ->
    fun(#{level := Level, passed := Passed, why := Why, load := Load} = Run) ->
        ok = atoll_scale_journal:add(Run#{what => run}, Journal),
        atoll_cli_io:say([
            "  ", string:pad(atoll_cli_table:count(Level), 9, leading), $\s,
            case Passed of
                true -> ["passed", [[": 99 % within ", atoll_cli_table:decimal(Ms), " ms"] || #{p99_ms := Ms} <- [Load]]];
                false -> ["failed: ", lists:join(", ", Why)]
            end
        ])
    end.

%% @doc What is said of each search.
-spec searched(atoll_scale_search:result()) -> ok.
searched(#{limit := Limit, fails := none}) -> atoll_cli_io:say(["  ", atoll_cli_table:count(Limit), " passes, and it was not to go further"]);
searched(#{limit := Limit, fails := Fails}) -> atoll_cli_io:say(["  ", atoll_cli_table:count(Limit), " passes, ", atoll_cli_table:count(Fails), " does not"]).

%% @doc A limit in words.
-spec limit(atoll_scale_search:summary(), string(), [atoll_scale_advise:finding()], atoll_scale_search:runs()) -> unicode:chardata().
limit(#{limit := Limit, limits := Limits, at_least := AtLeast} = Summary, Level, Findings, Runs) ->
    [
        ["The limit is ", ["at least " || AtLeast], atoll_cli_table:decimal(Limit), $\s, Level, interval(Summary), ", in ", searches(Limits), ": ",
         lists:join(", ", [atoll_cli_table:count(Is) || Is <- Limits]), ".\n\n"],
        atoll_cli_table:format([{right, "level"}, {right, "passed"}, {right, "failed"}], [
            [atoll_cli_table:count(Is), integer_to_list(Passed), integer_to_list(Failed)] || {Is, {Passed, Failed}} <- lists:sort(maps:to_list(Runs))
        ]),
        case {Findings, AtLeast} of
            {[], true} -> "";
            {[], false} -> "\nNothing of what was measured was at its limit while it failed: look at the runs in the journal.\n";
            _ -> ["\nWhat was at its limit while it failed, the likeliest cause first:\n",
                  [["  ", integer_to_list(N), ". ", Says, "\n     ", Change, $\n]
                   || {N, #{says := Says, change := Change}} <- lists:zip(lists:seq(1, length(Findings)), Findings)]]
        end
    ].

interval(#{low := none}) -> "";
interval(#{low := Low, high := High}) -> [" (", atoll_cli_table:decimal(Low), " to ", atoll_cli_table:decimal(High), " at 95 %)"].

searches([_]) -> "one search";
searches(Limits) -> [integer_to_list(length(Limits)), " searches"].

%% @doc Compares a change with what is before it, so many times each from a level on, and says so and writes it down, with whether it
%% is kept. A user who has made it by hand is told to take it back if it is not.
-spec compared(atoll_scale_tune:change(), {Rounds :: pos_integer(), From :: pos_integer()}, Keeps :: fun((Verdict :: atom()) -> boolean()),
    {atoll_scale_plan:plan(), atoll_scale_plan:settings(), opened()}) -> {ok, #{kept := boolean(), _ => _}} | {error, unicode:chardata()}.
compared(#{switch := Switch, from := Before, to := To} = Change, {Rounds, From}, Keeps, {#{switches := Switches} = Plan, Settings, #{session := Session, journal := Journal}}) ->
    [#{in := In, what := What}] = [Is || #{name := Name} = Is <- Switches, Name =:= Switch],
    Why = [[", for the cause ", atom_to_list(Cause)] || #{cause := Cause} <- [Change]],
    ok = atoll_cli_io:say([atom_to_list(Switch), [[" (", What, ")"] || What =/= ""], ": ", spelt(Before), " before, ", spelt(To), " after", Why]),
    Note = note(Journal),
    Measure = fun(Side) ->
        case atoll_scale_find:search(Plan, case Side of before -> Settings; 'after' -> Settings#{Switch := To} end, From, {Note, Session}) of
            {ok, {#{limit := Found} = Result, _, _}} -> ok = searched(Result), {ok, Found};
            {error, _} = Error -> Error
        end
    end,
    Switched = fun(before) -> ok; ('after') -> asked(In, Switch, To) end,
    case atoll_scale_tune:compare(Rounds, In =/= ask, Switched, Measure) of
        {ok, #{verdict := Verdict} = Compared} ->
            IsKept = Keeps(Verdict),
            Whole = Compared#{kept => IsKept},
            ok = atoll_scale_journal:add(maps:merge(Change#{from := atoll_scale_plan:json(Before), to := atoll_scale_plan:json(To)}, Whole#{what => change}), Journal),
            ok = atoll_cli_io:say(["  ", change_line(Compared), case IsKept of true -> "; it is kept"; false -> "; it is taken back" end]),
            %% What is measured next is measured as it was before.
            case IsKept orelse asked(In, Switch, Before) of
                {error, _} = Error -> Error;
                _ -> {ok, Whole}
            end;
        {error, Sentence} when In =:= ask ->
            {error, [Sentence, "; ", atom_to_list(Switch), " is to be ", spelt(Before), " again"]};
        {error, _} = Error ->
            Error
    end.

asked(ask, Switch, Value) ->
    ok = atoll_cli_io:say(["Now set ", atom_to_list(Switch), " to ", spelt(Value), ", and press Enter when the service runs with it."]),
    case io:get_line("") of
        Line when is_list(Line); is_binary(Line) -> ok;
        _ -> {error, ["nobody is there to set ", atom_to_list(Switch), ": the standard input has ended"]}
    end;
asked(_, _, _) ->
    ok.

%% @doc A value of a switch as it is typed.
-spec spelt(atoll_scale_plan:value()) -> string().
spelt(Value) -> atoll_scale_plan:filled("{value}", #{value => Value}).

%% @doc A comparison in words.
-spec change_line(#{verdict := atom(), _ => _}) -> unicode:chardata().
change_line(#{before := Before, 'after' := After, verdict := Verdict} = Compared) ->
    [
        "before ", counts(Before), "; after ", counts(After), ": ", atom_to_list(Verdict),
        case Compared of
            #{ratio := Ratio, low := Low, high := High} when is_float(Ratio), is_number(Low) -> io_lib:format(", ~.2f times (~.2f to ~.2f at 95 %)", [Ratio, float(Low), float(High)]);
            #{} -> ""
        end
    ].

counts(Limits) -> lists:join(" ", [atoll_cli_table:count(Limit) || Limit <- Limits]).
