%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll scale' have in common: reading a description, the journal beside it, and what is
%% said while runs go on.
-module(atoll_scale_cli).

-export([plan/1, options/0, settings/2, within/4, note/1, searched/1, limit/4, change_line/1]).

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
        #{name => set, value => "SWITCH=VALUE", repeat => true, read => atoll_cli_read:setting(), help => "a switch has this value, one of its own, in place of the first"},
        #{name => journal, value => "FILE", help => "where all is written down (PLAN.journal unless told)"},
        atoll_cli_json:switch()
    ].

%% @doc The switches as the description and the command line have them.
-spec settings(atoll_scale_plan:plan(), [string()]) -> {ok, atoll_scale_plan:settings()} | {error, unicode:chardata()}.
settings(#{switches := Switches} = Plan, Typed) ->
    lists:foldl(
        fun
            (_, {error, _} = Error) -> Error;
            (Text, {ok, Settings}) ->
                [Name, Value] = string:split(Text, "="),
                case [Switch || #{name := Is} = Switch <- Switches, atom_to_list(Is) =:= Name] of
                    [#{name := Key, values := Values}] ->
                        case [Is || Is <- Values, atoll_scale_plan:filled("{value}", #{value => Is}) =:= Value] of
                            [Is] -> {ok, Settings#{Key := Is}};
                            [] -> {error, ["--set: ", Name, " has no value ", Value, "; there are ", lists:join(", ", [atoll_scale_plan:filled("{value}", #{value => Is}) || Is <- Values])]}
                        end;
                    [] -> {error, ["--set: there is no switch ", Name, [["; there are ", lists:join(", ", [atom_to_list(Is) || #{name := Is} <- Switches])] || Switches =/= []]]}
                end
        end,
        {ok, atoll_scale_plan:settings(Plan)},
        Typed
    ).

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

%% @doc A comparison in words.
-spec change_line(atoll_scale_tune:compared()) -> unicode:chardata().
change_line(#{before := Before, 'after' := After, verdict := Verdict} = Compared) ->
    [
        "  before ", counts(Before), "; after ", counts(After), ": ", atom_to_list(Verdict),
        case Compared of
            #{ratio := Ratio, low := Low, high := High} when is_float(Ratio), is_number(Low) -> io_lib:format(", ~.2f times (~.2f to ~.2f at 95 %)", [Ratio, float(Low), float(High)]);
            #{} -> ""
        end
    ].

counts(Limits) -> lists:join(" ", [atoll_cli_table:count(Limit) || Limit <- Limits]).
