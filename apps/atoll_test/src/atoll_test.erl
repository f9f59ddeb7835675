%% @doc The runner of the tests: `make test', `make soak', `make flaky' and `make faults'
%% are this.
%%
%% Compiles the tests, runs them from one queue, and prints a line for each job that ends;
%% then what failed, with the line that runs it again, what each application took of its
%% budget, and at last "N passed, N failed", with ", N skipped" if there were any. It ends
%% with 0 only if something ran and nothing failed, and with 2 for a wrong command line.
-module(atoll_test).

-export([main/0, options/1]).

-export_type([options/0]).

-type options() :: #{
    %% Suites, EUnit modules or applications; all with none.
    names := [string()],
    'case' := string(),
    seed := none | non_neg_integer(),
    tier := atoll_tier:tier(),
    %% So many at once.
    jobs := pos_integer(),
    repeat := pos_integer(),
    busy := non_neg_integer(),
    record := boolean(),
    faults := boolean()
}.

-define(SEEDS, 1000000).

%% @doc The entry point: plain arguments are those of `scripts/test'.
-spec main() -> no_return().
main() ->
    Status =
        try
            case options(init:get_plain_arguments()) of
                {ok, Options} -> run(Options);
                {error, Why} -> wrong(Why)
            end
        catch
            Class:Reason:Stack ->
                atoll_test_report:print("scripts/test: ~p:~p~n~p~n0 passed, 1 failed~n", [Class, Reason, Stack]),
                3
        end,
    erlang:halt(Status).

wrong(Why) ->
    io:put_chars(standard_error, ["scripts/test: ", Why, $\n]),
    2.

specs() ->
    [
        {suite, undefined, "suite", {string, ""}, "These suites, EUnit modules or applications only, divided by commas."},
        {'case', undefined, "case", {string, ""}, "One case of one suite."},
        {seed, undefined, "seed", {string, ""}, "What is drawn is drawn from this number."},
        {tier, undefined, "tier", {string, "fast"}, "fast or deep."},
        {jobs, undefined, "jobs", {string, ""}, "So many jobs at once."},
        {repeat, undefined, "repeat", {string, ""}, "So many times, each with a seed of its own."},
        {busy, undefined, "busy", {string, ""}, "Beside so many busy loops."},
        {record, undefined, "record", {boolean, false}, "Keeps what each module took, for the order of later runs."},
        {faults, undefined, "faults", {boolean, false}, "Plants faults; each must be found."}
    ].

%% @doc Reads a command line.
-spec options([string()]) -> {ok, options()} | {error, iodata()}.
options(Arguments) ->
    case getopt:parse(specs(), Arguments) of
        {ok, {Given, []}} -> checked(maps:from_list(Given));
        {ok, {_, [Rest | _]}} -> {error, ["there is no argument \"", Rest, "\"."]};
        {error, _} = Error -> {error, getopt:format_error(specs(), Error)}
    end.

checked(#{suite := Suites, 'case' := Case, record := Record, faults := Faults} = Given) ->
    try
        _ = [throw("CASE goes with the SUITE that it is of.") || Case =/= "", Suites =:= ""],
        {ok, #{
            names => string:lexemes(Suites, ", "),
            'case' => Case,
            tier => tier(maps:get(tier, Given)),
            seed => number(seed, Given, none, 0),
            jobs => number(jobs, Given, 2 * erlang:system_info(schedulers_online), 1),
            repeat => number(repeat, Given, 1, 1),
            busy => number(busy, Given, 0, 0),
            record => Record,
            faults => Faults
        }}
    catch
        throw:Why -> {error, Why}
    end.

tier("fast") -> fast;
tier("deep") -> deep;
tier(Other) -> throw(["the tier is fast or deep, not \"", Other, "\"."]).

number(Key, Given, Default, Least) ->
    case maps:get(Key, Given) of
        "" ->
            Default;
        Text ->
            case string:to_integer(Text) of
                {Number, ""} when Number >= Least -> Number;
                _ -> throw(io_lib:format("~p is a whole number of ~b or more, not \"~ts\".", [Key, Least, Text]))
            end
    end.

-spec run(options()) -> 0..3.
run(#{busy := Busy, tier := Tier} = Options) ->
    %% What tests there are may hang on the tier.
    true = os:putenv("TIER", atom_to_list(Tier)),
    {ok, Root} = file:get_cwd(),
    Sources = atoll_test_jobs:sources(Root),
    case atoll_test_build:build([File || {_, File} <- Sources], filename:join([Root, "_build", "test", "ebin"])) of
        ok ->
            Loops = [spawn(fun busy/0) || _ <- lists:seq(1, Busy)],
            Status = built(Root, Sources, Options),
            _ = [exit(Loop, kill) || Loop <- Loops],
            Status;
        {error, Errors} ->
            atoll_test_report:print("~ts~n0 passed, 1 failed~n", [Errors]),
            1
    end.

busy() -> busy().

built(Root, _Sources, #{faults := true, names := Names, jobs := Many}) ->
    case atoll_test_faults:chosen(Names) of
        {error, Why} -> wrong(Why);
        {ok, Faults} -> planted(Faults, Root, Many)
    end;
built(Root, Sources, #{names := Names, 'case' := Case} = Options) ->
    case jobs(Names, Case, Sources, atoll_test_times:read()) of
        {error, Why} -> wrong(Why);
        {ok, Jobs} -> repeated([Job || Job <- Jobs, atoll_test_jobs:has_cases(Job)], Root, Options)
    end.

jobs([], "", Sources, Times) -> {ok, atoll_test_jobs:all(Sources, Times)};
jobs(Names, Case, Sources, Times) -> atoll_test_jobs:only(Names, Case, Sources, Times).

repeated(Jobs, Root, #{jobs := Many, repeat := Repeat, tier := Tier, names := Names, record := Record} = Options) ->
    Runs = atoll_test_places:with(min(Many, length(Jobs)), Root, fun(Places) ->
        [once(Jobs, Places, seed(N, Options), Tier) || N <- lists:seq(1, Repeat)]
    end),
    _ = [atoll_test_times:write(Done) || Record, {_, _, Done} <- Runs],
    atoll_test_report:close(Runs, Tier, Names =:= [] andalso Tier =:= fast).

seed(_, #{seed := none}) -> rand:uniform(?SEEDS);
seed(N, #{seed := Seed}) -> Seed + N - 1.

once(Jobs, Places, Seed, Tier) ->
    atoll_test_report:begun(Tier, length(Jobs), length(Places), Seed),
    Begun = erlang:monotonic_time(millisecond),
    Run = fun(Job, Number) -> atoll_test_job:run(Job, (lists:nth(Number, Places))#{tier => Tier, seed => Seed}) end,
    Ended = fun(Job, Result, Left) -> atoll_test_report:ended(Job, Result, Left, Begun) end,
    Done = atoll_test_queue:run(Jobs, length(Places), Run, Ended),
    {Seed, (erlang:monotonic_time(millisecond) - Begun) / 1000, Done}.

planted(Faults, Root, Many) ->
    Seed = rand:uniform(?SEEDS),
    atoll_test_places:with(min(Many, length(Faults)), Root, fun(Places) ->
        atoll_test_report:faults(atoll_test_faults:run(Faults, Root, [P#{seed => Seed} || P <- Places], fun atoll_test_report:fault/2))
    end).
