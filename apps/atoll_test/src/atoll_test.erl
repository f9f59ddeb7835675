%% @doc The runner of the tests: `make test', `make soak' and `make flaky' are this.
%%
%% Compiles the tests, runs them from one queue, and prints a line for each job that ends;
%% then what failed, with the line that runs it again, what each application took of its
%% budget, and at last "N passed, N failed" and ", N skipped" if there were any. It ends
%% with 0 only if something ran and nothing failed, and with 2 for a wrong command line.
-module(atoll_test).

-export([main/0]).

-type options() :: #{
    root := file:filename(),
    names := [string()],
    'case' := string(),
    seed := none | non_neg_integer(),
    tier := string(),
    jobs := pos_integer(),
    repeat := pos_integer(),
    busy := non_neg_integer(),
    record := boolean()
}.

%% What hangs is ended.
-define(LIMIT_MS, #{"fast" => 600000, "deep" => 3000000}).

%% Lines of a failure's reason.
-define(REASON_LINES, 20).

%% @doc The entry point: plain arguments are those of `scripts/test'.
-spec main() -> no_return().
main() ->
    Status =
        try options(init:get_plain_arguments()) of
            {ok, Options} -> run(Options);
            {error, Why} -> say(["scripts/test: ", Why]), 2
        catch
            Class:Reason:Stack -> say(io_lib:format("scripts/test: ~p:~p~n~p", [Class, Reason, Stack])), 3
        end,
    erlang:halt(Status).

%% Command line

specs() ->
    [
        {suite, undefined, "suite", {string, ""}, "These suites, EUnit modules or applications only, divided by commas."},
        {'case', undefined, "case", {string, ""}, "One case of one suite."},
        {seed, undefined, "seed", {string, ""}, "What is drawn is drawn from this number."},
        {tier, undefined, "tier", {string, "fast"}, "fast or deep."},
        {jobs, undefined, "jobs", {string, ""}, "So many jobs at once."},
        {repeat, undefined, "repeat", {string, "1"}, "So many times, each with a seed of its own."},
        {busy, undefined, "busy", {string, "0"}, "Beside so many busy loops."},
        {record, undefined, "record", {boolean, false}, "Keeps what each module took, for the order of later runs."}
    ].

-spec options([string()]) -> {ok, options()} | {error, iolist()}.
options(Arguments) ->
    case getopt:parse(specs(), Arguments) of
        {ok, {Given, []}} -> checked(maps:from_list(Given));
        {ok, {_, [Rest | _]}} -> {error, ["what is \"", Rest, "\"?"]};
        {error, _} = Error -> {error, getopt:format_error(specs(), Error)}
    end.

checked(#{suite := Suites, 'case' := Case, tier := Tier} = Given) ->
    try
        lists:member(Tier, ["fast", "deep"]) orelse throw(["the tier is fast or deep, not \"", Tier, "\"."]),
        Case =:= "" orelse Suites =/= "" orelse throw("CASE goes with the SUITE that it is of."),
        {ok, Root} = file:get_cwd(),
        {ok, #{
            root => Root,
            names => string:lexemes(Suites, ", "),
            'case' => Case,
            tier => Tier,
            seed => number(seed, Given, none, 0),
            jobs => number(jobs, Given, 2 * erlang:system_info(schedulers_online), 1),
            repeat => number(repeat, Given, 1, 1),
            busy => number(busy, Given, 0, 0),
            record => maps:get(record, Given)
        }}
    catch
        throw:Why -> {error, Why}
    end.

number(Key, Given, Default, Least) ->
    case maps:get(Key, Given) of
        "" ->
            Default;
        Text ->
            case string:to_integer(Text) of
                {Number, ""} when Number >= Least -> Number;
                _ -> throw(io_lib:format("~p is a number of ~b or more, not \"~ts\".", [Key, Least, Text]))
            end
    end.

%% The run

-spec run(options()) -> 0..2.
run(#{root := Root, names := Names, 'case' := Case} = Options) ->
    Sources = atoll_test_jobs:sources(Root),
    Times = atoll_test_times:read(),
    case jobs(Names, Case, Sources, Times) of
        {error, Why} ->
            say(["scripts/test: ", Why]),
            2;
        {ok, Jobs} ->
            Ebin = filename:join([Root, "_build", "test", "ebin"]),
            case atoll_test_build:build([File || {_, File} <- Sources], Ebin) of
                ok ->
                    repeat(Jobs, Ebin, Options);
                {error, Errors} ->
                    print("~ts~n0 passed, 1 failed~n", [Errors]),
                    1
            end
    end.

jobs([], "", Sources, Times) -> {ok, atoll_test_jobs:all(Sources, Times)};
jobs(Names, Case, Sources, Times) -> atoll_test_jobs:only(Names, Case, Sources, Times).

repeat(Jobs, Ebin, #{busy := Busy, repeat := Repeat, jobs := Many} = Options) ->
    Loops = [spawn(fun busy/0) || _ <- lists:seq(1, Busy)],
    Temporary = string:trim(os:cmd("mktemp -d")),
    try
        Places = places(min(Many, length(Jobs)), Temporary),
        Runs = [once(N, Jobs, Places, Ebin, Options) || N <- lists:seq(1, Repeat)],
        close(Runs, Options)
    after
        _ = [exit(Loop, kill) || Loop <- Loops],
        _ = file:del_dir_r(Temporary)
    end.

%% A scheduler of its own: with as many loops as processors, none is left idle.
busy() -> busy().

%% Each place has an epmd on a port outside of where the system takes its own from.
places(Many, Temporary) ->
    Ports = free(Many, []),
    _ = [atoll_test_job:start_epmd(Port) || Port <- Ports],
    maps:from_list([
        {N, {Port, filename:join(Temporary, integer_to_list(N))}}
     || {N, Port} <- lists:zip(lists:seq(1, Many), Ports)
    ]).

free(0, Ports) ->
    Ports;
free(Many, Ports) ->
    Port = 10000 + rand:uniform(20000),
    case lists:member(Port, Ports) orelse gen_tcp:listen(Port, [{reuseaddr, true}]) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), free(Many - 1, [Port | Ports]);
        _ -> free(Many, Ports)
    end.

once(N, Jobs, Places, Ebin, #{root := Root, tier := Tier, repeat := Repeat} = Options) ->
    Seed =
        case Options of
            #{seed := none} -> rand:uniform(1000000);
            #{seed := Given} -> Given + N - 1
        end,
    print("~ts tier, ~b jobs, ~b at once, SEED=~b~n", [Tier, length(Jobs), map_size(Places), Seed]),
    Results = filename:join([Root, "_build", "test", "results"]),
    Repeat =:= 1 andalso N =:= 1 andalso map_size(Places) > 1 andalso file:del_dir_r(Results),
    Begun = erlang:monotonic_time(millisecond),
    Run = fun(Job, Number) ->
        {Port, Temporary} = maps:get(Number, Places),
        _ = file:del_dir_r(filename:join(Results, atoll_test_job:directory(Job))),
        atoll_test_job:run(Job, #{
            paths => [Ebin | filelib:wildcard(filename:join([Root, "_build", "default", "lib", "*", "ebin"]))],
            results => Results,
            temporary => Temporary,
            epmd => Port,
            env => [{"TIER", Tier}, {"SEED", integer_to_list(Seed)}],
            limit_ms => maps:get(Tier, ?LIMIT_MS)
        })
    end,
    Ended = fun(Job, Result, Left) -> ended(Job, Result, Left, Begun) end,
    Done = atoll_test_queue:run(Jobs, map_size(Places), Run, Ended),
    {Seed, (erlang:monotonic_time(millisecond) - Begun) / 1000, Done}.

%% What is said

ended(#{name := Name}, #{results := Results, seconds := Seconds, broken := Broken}, Left, Begun) ->
    Failed = length([R || #{outcome := failed} = R <- Results]) + length([Broken || Broken =/= none]),
    Word =
        case Failed of
            0 -> "ok    ";
            _ -> io_lib:format("FAILED ~b of", [Failed])
        end,
    print("~5.1f s  ~ts ~3b  ~ts (~.1f s), ~b left~n", [
        (erlang:monotonic_time(millisecond) - Begun) / 1000, Word, length(Results), Name, Seconds, Left
    ]).

close([{Seed, Seconds, Done}], #{tier := Tier, names := Names, record := Record}) ->
    Record andalso atoll_test_times:write(Done),
    Failures = failures(Done, Seed, Tier),
    print("~n", []),
    Names =:= [] andalso Tier =:= "fast" andalso print("~ts~n", [atoll_test_budget:lines(Done)]),
    Failures =:= [] orelse print("Failed:~n~ts", [Failures]),
    print("~b s, SEED=~b~n", [round(Seconds), Seed]),
    counted(Done);
close(Runs, #{tier := Tier}) ->
    Bad = [{Seed, Failures} || {Seed, _, Done} <- Runs, Failures <- [failures(Done, Seed, Tier)], Failures =/= []],
    print("~n", []),
    _ = [print("SEED=~b failed:~n~ts", [Seed, Failures]) || {Seed, Failures} <- Bad],
    Seconds = lists:sort([S || {_, S, _} <- Runs]),
    print("~b of ~b runs were green; a run took ~.1f s (~.1f-~.1f).~n", [
        length(Runs) - length(Bad), length(Runs), lists:nth((length(Seconds) + 1) div 2, Seconds), hd(Seconds), lists:last(Seconds)
    ]),
    counted(lists:append([Done || {_, _, Done} <- Runs])).

counted(Done) ->
    Outcomes = [O || {_, #{results := Results}} <- Done, #{outcome := O} <- Results],
    Broken = length([B || {_, #{broken := B}} <- Done, B =/= none]),
    Count = fun(Outcome) -> length([O || O <- Outcomes, O =:= Outcome]) end,
    {Passed, Failed, Skipped} = {Count(passed), Count(failed) + Broken, Count(skipped)},
    print("~b passed, ~b failed~ts~n", [Passed, Failed, [io_lib:format(", ~b skipped", [Skipped]) || Skipped > 0]]),
    case Failed =:= 0 andalso Passed > 0 of
        true -> 0;
        false -> 1
    end.

failures(Done, Seed, Tier) ->
    [
        [
            [
                io_lib:format("  ~ts ~ts~n~ts    again: ~ts~n", [Suite, Case, indented(Why), again(Job, Suite, Case, Seed, Tier)])
             || #{outcome := failed, suite := Suite, name := Case, why := Why} <- Results
            ],
            [io_lib:format("  ~ts: ~ts; ~ts~n", [maps:get(name, Job), Broken, Log]) || Broken =/= none]
        ]
     || {Job, #{results := Results, broken := Broken, log := Log}} <- Done,
        Broken =/= none orelse [R || #{outcome := failed} = R <- Results] =/= []
    ].

indented(Why) ->
    Lines = [Line || Line <- string:lexemes(Why, "\n"), string:trim(Line) =/= ""],
    [["    ", string:slice(Line, 0, 160), $\n] || Line <- lists:sublist(Lines, ?REASON_LINES)].

again(#{kind := ct}, Suite, Case, Seed, Tier) ->
    again(Suite, [" CASE=" ++ Case || not lists:prefix("init_per_", Case), not lists:prefix("end_per_", Case)], Seed, Tier);
again(#{kind := eunit}, Suite, _Case, Seed, Tier) ->
    again(Suite, "", Seed, Tier).

again(Suite, Case, Seed, Tier) ->
    Target =
        case Tier of
            "fast" -> "test";
            "deep" -> "soak"
        end,
    io_lib:format("make ~ts SUITE=~ts~ts SEED=~b", [Target, Suite, Case, Seed]).

print(Format, Arguments) ->
    io:put_chars(unicode:characters_to_binary(io_lib:format(Format, Arguments))).

say(Text) ->
    io:put_chars(standard_error, [Text, $\n]).
