%% SPDX-License-Identifier: Apache-2.0
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
    %% Suites, EUnit modules or applications; all without.
    suite => string(),
    'case' => string(),
    seed => non_neg_integer(),
    tier := atoll_tier:tier(),
    %% So many at once.
    jobs => pos_integer(),
    repeat := pos_integer(),
    %% So many busy loops beside.
    busy := non_neg_integer(),
    record := boolean(),
    %% So many are planted.
    faults => pos_integer() | all
}.

-define(SEEDS, 1000000).

%% Options: a value's reader says what it may be.
-define(OPTIONS, [
    #{name => suite, value => "NAME,...", help => "these suites, EUnit modules or applications only; of faults, those of these modules or applications"},
    #{name => 'case', value => "NAME", help => "one case of one suite"},
    #{name => seed, value => "N", read => atoll_cli_read:whole(0, ?SEEDS), help => "what is drawn is drawn from this number"},
    #{name => tier, value => "TIER", default => "fast", read => atoll_cli_read:one_of([fast, deep]), help => "fast or deep"},
    #{name => jobs, value => "N", read => atoll_cli_read:whole(1, 64), help => "so many at once"},
    #{name => repeat, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000), help => "so many times"},
    #{name => busy, value => "N", default => "0", read => atoll_cli_read:whole(0, 64), help => "beside so many busy loops"},
    #{name => record, help => "keeps what each module took, for the order of later runs"},
    #{name => faults, value => "N|all", read => fun many/1, help => "plants all faults, or so many that the seed draws, each of which must be found"}
]).

%% @doc The entry point: plain arguments are those of `scripts/test'.
-spec main() -> no_return().
main() ->
    %% A run that is told to end is no success. The guardians take down what it has started.
    ok = os:set_signal(sigterm, default),
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

many("all") ->
    {ok, all};
many(Text) ->
    case (atoll_cli_read:whole(1, 10000))(Text) of
        {ok, _} = Many -> Many;
        {error, Why} -> {error, [Why, ", or all"]}
    end.

wrong(Why) ->
    io:put_chars(standard_error, unicode:characters_to_binary(["scripts/test: ", Why, $\n])),
    2.

%% @doc Reads a command line.
-spec options([string()]) -> {ok, options()} | {error, unicode:chardata()}.
options(Arguments) ->
    case atoll_cli_options:parse(?OPTIONS, [], Arguments) of
        {ok, #{'case' := _} = Options, []} when not is_map_key(suite, Options) ->
            {error, "--case goes with the --suite that it is of"};
        {ok, Options, []} ->
            {ok, Options};
        {error, _} = Error ->
            Error
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

built(Root, _Sources, #{faults := Many} = Options) ->
    Seed = seed(0, Options),
    case atoll_test_faults:chosen(names(Options), Many, Seed) of
        {error, Why} -> wrong(Why);
        {ok, Faults} -> planted(Faults, Root, copies(length(Faults), Options), Seed)
    end;
built(Root, Sources, #{tier := Tier} = Options) ->
    case jobs(names(Options), maps:get('case', Options, ""), Sources, atoll_test_times:read(Tier)) of
        {error, Why} -> wrong(Why);
        {ok, Jobs} -> repeated(atoll_test_jobs:with_cases(Jobs), Root, Options)
    end.

names(Options) -> string:lexemes(maps:get(suite, Options, ""), ", ").

%% As many places as were asked for, or as the machine carries.
firsts(Jobs, #{jobs := Many}) -> lists:duplicate(min(Jobs, Many), fun(_) -> true end);
firsts(Jobs, _) -> lists:sublist(atoll_test_jobs:places(erlang:system_info(schedulers_online)), Jobs).

%% Faults are planted in as many copies of the tree.
copies(Faults, Options) ->
    min(Faults, maps:get(jobs, Options, 2 * erlang:system_info(schedulers_online))).

jobs([], "", Sources, Times) -> {ok, atoll_test_jobs:all(Sources, Times)};
jobs(Names, Case, Sources, Times) -> atoll_test_jobs:only(Names, Case, Sources, Times).

repeated(Jobs, Root, #{repeat := Repeat, tier := Tier, record := Record} = Options) ->
    Results = filename:join([Root, "_build", "test", "results"]),
    _ = [file:del_dir_r(Old) || Old <- filelib:wildcard(filename:join(Results, "seed-*"))],
    Firsts = firsts(length(Jobs), Options),
    Runs = atoll_test_places:with(length(Firsts), Root, fun(Places) ->
        Once = fun(Seed, Dir) -> once(Jobs, Firsts, [P#{tier => Tier, seed => Seed, results => Dir} || P <- Places], Seed, Tier) end,
        [one_of(Repeat, Results, seed(N, Options), Once) || N <- lists:seq(0, Repeat - 1)]
    end),
    _ = [atoll_test_times:write(Tier, Done) || Record, {_, _, Done} <- Runs],
    atoll_test_report:close(Runs, Tier, names(Options) =:= [] andalso Tier =:= fast).

seed(N, #{seed := First}) -> (First + N) rem (?SEEDS + 1);
seed(_, _) -> rand:uniform(?SEEDS).

%% Of several runs those that fail keep their results, each for itself.
one_of(1, Results, Seed, Once) ->
    Once(Seed, Results);
one_of(_, Results, Seed, Once) ->
    Dir = filename:join(Results, lists:concat(["seed-", Seed])),
    {_, _, Done} = Run = Once(Seed, Dir),
    _ = atoll_test_report:is_red(Done) orelse file:del_dir_r(Dir),
    Run.

once(Jobs, Firsts, Places, Seed, Tier) ->
    atoll_test_report:begun(Tier, length(Jobs), length(Places), Seed),
    Begun = erlang:monotonic_time(millisecond),
    Run = fun(Job, Number) -> atoll_test_job:run(Job, lists:nth(Number, Places)) end,
    Ended = fun(More) -> fun(Job, Result, Left) -> atoll_test_report:ended(Job, Result, Left + More, Begun) end end,
    {Beside, Alone} = atoll_test_jobs:quiet(Jobs),
    Done = atoll_test_queue:run(Beside, Firsts, Run, Ended(length(Alone))) ++ atoll_test_queue:run(Alone, 1, Run, Ended(0)),
    {Seed, (erlang:monotonic_time(millisecond) - Begun) / 1000, Done}.

planted(Faults, Root, Many, Seed) ->
    atoll_test_report:print("~b faults, ~b at once, SEED=~b~n", [length(Faults), Many, Seed]),
    atoll_test_places:with(Many, Root, fun(Places) ->
        Told = fun(Fault, Found) -> atoll_test_report:fault(Seed, Fault, Found) end,
        atoll_test_report:faults(atoll_test_faults:run(Faults, Root, [P#{seed => Seed} || P <- Places], Told))
    end).
