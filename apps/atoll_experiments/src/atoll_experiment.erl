%% @doc What an experiment is made of: a question, steps that measure, and a verdict on what
%% they gave. Which there are says {@link atoll_experiments}.
%%
%% A verdict is a pure function of the results. It holds nothing that was known before: each of
%% its claims says a thing of the paper beside what came of it here, with its numbers, and whether
%% that is the same; of a step that failed or was cut short it says what can be said without it.
-module(atoll_experiment).

-export([bench/3, claim/5, within/3, verdict_of/1, counts/1]).

-export_type([about/0, context/0, step/0, results/0, verdict/0, table/0, claim/0, holds/0, bench/0]).

-type about() :: #{
    %% What the command line calls it.
    name := atom(),
    title := unicode:chardata(),
    question := unicode:chardata(),
    %% It is cut short after so many; what was measured until then counts.
    minutes := pos_integer(),
    %% What no run on such a machine can show.
    cannot := unicode:chardata()
}.

-type context() :: #{
    %% `small' is to see that everything runs, and shows nothing.
    size := full | small,
    %% A folder with the files `wt40.txt' and `wtopt40.txt' of OR-Library.
    orlib := file:filename_all() | none
}.

-type step() :: #{
    %% Unique in the experiment; part of the name of its file.
    key := atom(),
    %% What is done, in less than a line.
    says := unicode:chardata(),
    run :=
        {bench, atoll_bench:name(), bench()}
        %% Its result is whatever JSON can hold.
        | {job, fun(() -> {ok, atoll_bench_json:value()} | {error, unicode:chardata()})}
}.

-type bench() :: #{sweep := atoll_bench:sweep(), rounds := pos_integer(), starts := pos_integer()}.

%% By the keys of the steps: a run as its file has it, or the result of a job after its way
%% through JSON, so that keys and texts are binaries.
-type results() :: #{atom() => {ok, atoll_bench_file:run() | term()} | {error, unicode:chardata()}}.

-type verdict() :: #{tables := [table()], claims := [claim()]}.

-type table() :: #{
    caption := unicode:chardata(),
    head := [unicode:chardata(), ...],
    rows := [[unicode:chardata(), ...]]
}.

%% `unknown': nothing was measured that could tell.
-type holds() :: boolean() | unknown.

-type claim() :: #{
    %% Such as "Figure 29"; none of what is not in the paper, and is to hold all the same.
    figure := unicode:chardata() | none,
    paper := unicode:chardata(),
    holds := holds(),
    %% With the numbers that it rests on.
    here := unicode:chardata(),
    %% Why it differs, or what else must be known; may be empty.
    why := unicode:chardata()
}.

-callback about() -> about().

-callback steps(context()) -> [step(), ...].

-callback verdict(results()) -> verdict().

%% @doc The step that runs a benchmark; it says how that is done by hand.
-spec bench(atom(), atoll_bench:name(), bench()) -> step().
bench(Key, Name, #{sweep := Sweep, rounds := Rounds, starts := Starts} = Bench) ->
    Swept = [
        io_lib:format(" --~ts ~ts", [string:replace(atom_to_list(P), "_", "-", all), lists:join($,, [io_lib:format("~tp", [V]) || V <- Values])])
     || {P, Values} <- lists:sort(maps:to_list(Sweep))
    ],
    Says = io_lib:format("bin/atoll bench run ~ts~ts --rounds ~b --starts ~b", [Name, Swept, Rounds, Starts]),
    %% As they are typed.
    #{key => Key, says => string:replace(Says, "'", "", all), run => {bench, Name, Bench}}.

%% @doc A claim; `none' says that nothing was measured which belongs to it, and nothing more.
-spec claim(Figure :: unicode:chardata() | none, Paper :: unicode:chardata(), holds(), Here :: unicode:chardata() | none,
            Why :: unicode:chardata()) -> claim().
claim(Figure, Paper, _Holds, none, _Why) ->
    claim(Figure, Paper, unknown, "Nothing was measured.", "");
claim(Figure, Paper, Holds, Here, Why) ->
    #{figure => Figure, paper => Paper, holds => Holds, here => Here, why => Why}.

%% @doc Whether a number is that close to what was expected, as a share of it.
-spec within(number(), Expected :: number(), Share :: number()) -> boolean().
within(Number, Expected, Share) ->
    abs(Number - Expected) =< Share * Expected.

%% @doc What is to be said of things that hold each for itself: all of them must, and one must be
%% known at least.
-spec verdict_of([holds()]) -> holds().
verdict_of(Each) ->
    case {lists:member(false, Each), lists:member(true, Each)} of
        {true, _} -> false;
        {false, true} -> true;
        {false, false} -> unknown
    end.

%% @doc Of the paper's statements, how many are the same, not so here, and not shown; what is not
%% the paper's does not count.
-spec counts([claim()]) -> #{same | not_so | not_shown := non_neg_integer()}.
counts(Claims) ->
    Holds = [Each || #{figure := Figure, holds := Each} <- Claims, Figure =/= none],
    maps:map(fun(_, Wanted) -> length([1 || Each <- Holds, Each =:= Wanted]) end, #{same => true, not_so => false, not_shown => unknown}).
