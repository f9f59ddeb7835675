%% SPDX-License-Identifier: Apache-2.0
%% @doc What an experiment is made of, as data: what it asks of the harness, the tables of what
%% came, and questions, each a statement of the paper with what would decide it. Which there are
%% says {@link atoll_experiments}; {@link atoll_experiments_judge} answers the questions, and no
%% experiment does so by itself.
%%
%% == Kinds of question ==
%% <dl>
%% <dt>`differs'</dt><dd>of two variants one has more: `bench compare' decides, by starts of the
%%   nodes. Decided at all places or not at all.</dd>
%% <dt>`near', `at_most'</dt><dd>by which factor they differ: the interval of the ratios of both in
%%   the same start decides.</dd>
%% <dt>`knee'</dt><dd>where curves stop following the load: `bench knee' has found them.</dd>
%% <dt>`counted'</dt><dd>what does not vary with the machine: connections, runs that ended, a cost.</dd>
%% <dt>`simulation'</dt><dd>the same of protocols in virtual time.</dd>
%% <dt>`arithmetic'</dt><dd>a formula was worked out, and nothing was run: nobody could find otherwise.</dd>
%% </dl>
-module(atoll_experiment).

-export([says/1, counts/1]).

-export_type([about/0, size/0, context/0, ask/0, plan/0, row/0, question/0, kind/0, comparison/0, point/0, quantity/0, table/0, holds/0, said/0, answer/0]).

-type about() :: #{
    %% What the command line calls it.
    name := atom(),
    title := unicode:chardata(),
    question := unicode:chardata(),
    %% It is cut short after so many; what was measured until then counts.
    minutes := pos_integer(),
    %% The same of the size `whole', where that has more than `full'.
    whole => pos_integer(),
    %% What no run on such a machine can show.
    cannot := unicode:chardata()
}.

-type size() :: full | whole | small.
%% `small' is to see that everything runs, and shows nothing; `whole' has what takes hours.

-type context() :: #{
    size := size(),
    %% A folder with the files `wt40.txt' and `wtopt40.txt' of OR-Library.
    orlib := file:filename_all() | none
}.

-type ask() :: #{
    %% Unique in the experiment; part of the name of its file.
    key := atom(),
    do :=
        %% A benchmark of the harness, or any other module that is one: its variants in turns.
        {bench, atoll_bench:name() | module(), plan()}
        %% All its points at the same time, and nothing warmed up ({@link atoll_experiments_at_once}).
        | {at_once, atoll_bench:name() | module(), plan()}
        %% What a function has found, said in less than a line.
        | {rows, Says :: unicode:chardata(), fun(() -> {ok, [row()]} | {error, unicode:chardata()})}
}.

-type plan() :: #{sweep := atoll_bench:sweep(), rounds => pos_integer(), starts := pos_integer()}.

-type row() :: #{atom() | binary() => atoll_bench_json:value()}.
%% Binaries are its keys when it is read again. Of a run there is one for each round, with its
%% point, its start and its values.

-type question() :: #{
    %% Such as "Figure 29"; `none' of what is not in the paper, and is to hold all the same.
    figure := unicode:chardata() | none,
    says := unicode:chardata(),
    %% What the paper has measured: of parameters the values, or all between two. Whatever was measured elsewhere
    %% is told, and decides nothing. Not needed where the statement has no size.
    paper_has => #{atom() => [number(), ...] | {number(), number()}},
    kind := kind(),
    %% Of which ask.
    from := atom(),
    by => comparison() | fun((answer()) -> said()),
    %% Why it may differ, or what else must be known.
    why => unicode:chardata()
}.

-type kind() ::
    {differs, more | less}
    | {near, number(), Share :: number()}
    | {at_most, number()}
    | knee | counted | simulation | arithmetic.

%% A quantity of one part of the points over the same of another, at each of some places.
-type comparison() :: #{
    quantity := quantity(),
    %% What it is called in a sentence.
    called := unicode:chardata(),
    first := point(),
    over := point(),
    at := [point(), ...],
    %% Starts count only where this metric is at least so much.
    where => {atom(), AtLeast :: number()}
}.

-type point() :: #{atom() => number() | atom()}.
%% Some of the parameters.

%% Of a start: the median of the rounds of a metric (of a latency, of their medians); a sum or a product; how many times what it is
%% where some parameters differ; by how much it is more than there.
-type quantity() :: atom() | {sum | product, [quantity(), ...]} | {times | more_than, quantity(), point()}.

-type answer() :: {run, atoll_bench_file:run()} | {rows, [row()]}.

-type said() :: {holds(), Here :: unicode:chardata()}.

%% `unknown': nothing was found that could tell.
-type holds() :: boolean() | unknown.

%% With `quantity' a row for each value of one parameter and a column for each of another; with
%% `rows' as that function makes them.
-type table() :: #{
    caption := unicode:chardata(),
    from := atom(),
    down => atom(),
    across => {atom(), [number() | atom(), ...]},
    at => point(),
    quantity => quantity(),
    kind => counted | simulation | arithmetic | knee,
    head => [unicode:chardata(), ...],
    rows => fun((answer()) -> [[unicode:chardata(), ...]])
}.

-callback about() -> about().

-callback asks(context()) -> [ask(), ...].

-callback tables() -> [table()].

-callback questions() -> [question(), ...].

%% @doc How an ask is done by hand, as it is typed, or in words.
-spec says(ask()) -> unicode:chardata().
says(#{do := {rows, Says, _}}) ->
    Says;
says(#{do := {How, Bench, #{sweep := Sweep, starts := Starts} = Plan}}) ->
    Values = [[" --", dashed(P), " ", lists:join($,, [word(V) || V <- Vs])] || {P, Vs} <- lists:sort(maps:to_list(Sweep))],
    Rounds = [[" --rounds ", integer_to_list(N)] || #{rounds := N} <- [Plan]],
    Said = [words(Bench), Values, Rounds, " --starts ", integer_to_list(Starts)],
    case How of
        bench when is_list(Bench) -> ["bin/atoll bench run ", Said];
        bench -> Said;
        at_once -> [Said, ", all points at once"]
    end.

words(Name) when is_list(Name) -> Name;
words(Module) -> atom_to_list(Module).

dashed(Parameter) -> string:replace(atom_to_list(Parameter), "_", "-", all).

word(Value) when is_atom(Value) -> atom_to_list(Value);
word(Value) -> io_lib:format("~w", [Value]).

%% @doc Of the paper's statements, how many are the same, not so here, and not shown, by what was
%% run; and how many are the same in simulation, or by arithmetic alone. What is not the paper's
%% does not count.
-spec counts([#{figure := unicode:chardata() | none, kind := kind(), holds := holds(), _ => _}]) ->
    #{same | not_so | not_shown | simulation | arithmetic := non_neg_integer()}.
counts(Findings) ->
    Words = [counted_as(Kind, Holds) || #{figure := Figure, kind := Kind, holds := Holds} <- Findings, Figure =/= none],
    maps:from_list([{Word, length([1 || W <- Words, W =:= Word])} || Word <- [same, not_so, not_shown, simulation, arithmetic]]).

counted_as(arithmetic, true) -> arithmetic;
counted_as(simulation, true) -> simulation;
counted_as(_, true) -> same;
counted_as(_, false) -> not_so;
counted_as(_, unknown) -> not_shown.
