%% SPDX-License-Identifier: Apache-2.0
%% @doc Answers the questions of an experiment from what was measured; the one place where a
%% verdict is made. Pure.
%%
%% == What decides ==
%% <ul>
%% <li>That two variants differ says {@link atoll_bench_compare}, as `bench compare' does: by
%%   starts of the nodes, without disturbed rounds, five starts of each at least, all comparisons of
%%   an experiment corrected together. Of experiments in which nothing differs 2 in 100 say that
%%   something does.</li>
%% <li>By which factor they do, by the ratios of both in the same start: the interval of their
%%   median at 95 per cent by order (the sign test's; Hollander, Wolfe, Chicken: Nonparametric
%%   Statistical Methods, 2014, section 3.6), which takes six starts. It must lie within what was asked, or beyond it.</li>
%% <li>Beside each comparison stands the smallest factor that it could have seen
%%   ({@link atoll_experiments_power}).</li>
%% <li>What was measured where the paper has not measured decides nothing of the paper.</li>
%% <li>All else is `unknown': not shown.</li>
%% </ul>
-module(atoll_experiments_judge).

-export([findings/2, interval/1, number/1, cell/1]).

-export_type([results/0, finding/0]).

-type results() :: #{Key :: atom() => atoll_experiment:answer() | none}.

-type finding() :: #{
    figure := unicode:chardata() | none,
    says := unicode:chardata(),
    kind := atoll_experiment:kind(),
    holds := atoll_experiment:holds(),
    %% With the numbers that it rests on.
    here := unicode:chardata(),
    why := unicode:chardata()
}.

%% One comparison at one place, before and after all are corrected together.
-record(pair, {
    at :: atoll_experiment:point(),
    first :: [number()],
    over :: [number()],
    ratios :: [float()],
    found = no :: more | less | no
}).

%% For an interval at 95 per cent.
-define(FEWEST_RATIOS, 6).

%% @doc What is to be said of each question.
-spec findings([atoll_experiment:question()], results()) -> [finding()].
findings(Questions, Results) ->
    Asked = [{Question, pairs(Question, Results)} || Question <- Questions],
    Compared = [
        {{Number, Place}, First, Over, less}
     || {Number, {#{kind := {differs, _}}, Pairs}} <- lists:enumerate(Asked),
        {Place, #pair{first = First, over = Over}} <- lists:enumerate(Pairs)
    ],
    Found = maps:from_list([{Key, found(Result)} || {Key, Result} <- atoll_bench_compare:all(Compared, #{})]),
    [
        finding(Question, [Pair#pair{found = maps:get({Number, Place}, Found, no)} || {Place, Pair} <- lists:enumerate(Pairs)], Results)
     || {Number, {Question, Pairs}} <- lists:enumerate(Asked)
    ].

%% The first samples are those of which it is asked.
found(#{verdict := faster, order := Order}) -> direction(Order);
found(#{verdict := slower, order := Order}) -> direction(Order);
found(_) -> no.

direction(first) -> more;
direction(second) -> less;
direction(none) -> no.

pairs(#{from := Key, by := #{quantity := Quantity, first := First, over := Over, at := Places} = By}, Results) ->
    case Results of
        #{Key := {run, Run}} ->
            Of = fun(Point) -> counting(maps:get(where, By, none), Point, Run, atoll_experiments_samples:by_start(Quantity, Point, Run)) end,
            [pair(At, Of(maps:merge(At, First)), Of(maps:merge(At, Over))) || At <- Places];
        #{} ->
            []
    end;
pairs(_Question, _Results) ->
    [].

counting(none, _Point, _Run, Samples) ->
    Samples;
counting({Metric, AtLeast}, Point, Run, Samples) ->
    Good = [Start || {Start, Value} <- atoll_experiments_samples:by_start(Metric, Point, Run), Value >= AtLeast],
    [Sample || {Start, _} = Sample <- Samples, lists:member(Start, Good)].

pair(At, First, Over) ->
    #pair{
        at = At,
        first = [V || {_, V} <- First],
        over = [V || {_, V} <- Over],
        ratios = [A / B || {Start, A} <- First, {Same, B} <- Over, Start =:= Same, B > 0]
    }.

finding(#{figure := Figure, says := Says, kind := Kind} = Question, Pairs, Results) ->
    {Holds, Here} = decided(Question, Pairs, Results),
    Base = #{figure => Figure, says => Says, kind => Kind, why => maps:get(why, Question, "")},
    case elsewhere(Question, Results) of
        [] -> Base#{holds => Holds, here => Here};
        Beyond -> Base#{holds => unknown, here => [Here, " ", Beyond]}
    end.

decided(#{from := Key, by := By} = Question, Pairs, Results) ->
    case {Results, By} of
        {#{Key := {run, Run}}, #{}} ->
            by_pairs(Question, [Pair || #pair{first = [_ | _], over = [_ | _]} = Pair <- Pairs], length(Pairs), Run);
        {#{Key := {_, _} = Answer}, _} when is_function(By) ->
            by_answer(Question, Answer);
        _ ->
            {unknown, "Nothing was measured."}
    end;
%% Nothing here could tell.
decided(#{}, _Pairs, _Results) ->
    {unknown, "Nothing was measured that could tell."}.

by_answer(#{kind := knee, by := Fun}, {run, Run} = Answer) ->
    {Holds, Here} = Fun(Answer),
    case atoll_experiments_samples:starts(Run) >= atoll_bench_compare:fewest() of
        true -> {Holds, Here};
        false -> {unknown, [Here, " There are too few starts of the nodes."]}
    end;
by_answer(#{by := Fun}, Answer) ->
    Fun(Answer).

by_pairs(_Question, [], _Places, #{rounds := Rounds} = Run) ->
    {unknown, case {Rounds, atoll_experiments_samples:disturbed(Run)} of
        {[_ | _], {All, All}} -> "All rounds were disturbed by other processes.";
        _ -> "Nothing was measured there."
    end};
by_pairs(#{kind := Kind, by := #{called := Called}}, Pairs, Places, _Run) ->
    Each = [holds(Kind, Pair) || Pair <- Pairs],
    Holds = case {lists:member(false, Each), lists:usort(Each)} of
        {true, _} -> false;
        {false, [true]} when length(Pairs) =:= Places -> true;
        _ -> unknown
    end,
    {Holds, [Called, ": ", lists:join("; ", [said(Kind, Pair, One) || {Pair, One} <- lists:zip(Pairs, Each)]), "."]}.

holds({differs, _}, #pair{found = no}) ->
    unknown;
holds({differs, Wanted}, #pair{found = Found}) ->
    Wanted =:= Found;
holds(Kind, #pair{ratios = Ratios}) when length(Ratios) >= ?FEWEST_RATIOS ->
    {_, Low, High} = interval(Ratios),
    within(Kind, Low, High);
holds(_Kind, _Pair) ->
    unknown.

within({near, Expected, Share}, Low, High) ->
    {Least, Most} = {Expected / (1 + Share), Expected * (1 + Share)},
    if
        Low >= Least, High =< Most -> true;
        High < Least; Low > Most -> false;
        true -> unknown
    end;
within({at_most, Most}, Low, High) ->
    if
        High =< Most -> true;
        Low > Most -> false;
        true -> unknown
    end.

said(Kind, #pair{at = At, first = First, over = Over, ratios = Ratios}, Holds) ->
    Starts = min(length(First), length(Over)),
    [
        ratio(Ratios), place(At),
        case {Holds, Kind} of
            {unknown, _} when Starts < 5 -> io_lib:format(", not told: ~b starts", [Starts]);
            {unknown, {differs, _}} -> [", not told apart", sees(First, Over)];
            {unknown, _} -> ", not told";
            {_, {differs, _}} -> sees(First, Over);
            _ -> ""
        end
    ].

place(At) when map_size(At) =:= 0 -> "";
place(At) -> [" at ", lists:join(", ", [[string:replace(atom_to_list(P), "_", " ", all), " ", value(V)] || {P, V} <- lists:sort(maps:to_list(At))])].

value(Value) when is_atom(Value) -> atom_to_list(Value);
value(Value) -> number(Value).

%% From which factor on a difference is seen.
sees(First, Over) ->
    case atoll_experiments_power:least(First, Over) of
        none -> "";
        Least -> [" (seen from a factor of ", number(Least), " on)"]
    end.

ratio([]) ->
    "no ratio";
ratio(Ratios) ->
    {Median, Low, High} = interval(Ratios),
    [number(Median), " [", number(Low), "–", number(High), "]"].

%% @doc The median of samples, and the interval that holds that of what they are drawn from in 95
%% of 100 cases; of fewer than six the least and the most, which hold it in fewer.
-spec interval([number(), ...]) -> {number(), Low :: number(), High :: number()}.
interval(Samples) ->
    Sorted = lists:sort(Samples),
    N = length(Sorted),
    Out = left_out(N, 0, 1, 1),
    {atoll_bench_stats:median(Samples), lists:nth(Out + 1, Sorted), lists:nth(N - Out, Sorted)}.

%% How many at either end may be left out: the largest such number whose tail of the binomial distribution
%% is 2.5 per cent at most; Tail is that of so many, and Next the number of ways to have one more.
left_out(N, Out, Tail, Ways) ->
    Next = Ways * (N - Out) div (Out + 1),
    %% To leave out one more, all up to Out of N must be that rare.
    case 2 * Tail =< 0.05 * (1 bsl N) andalso 2 * (Out + 1) < N of
        true -> left_out(N, Out + 1, Tail + Next, Next);
        false -> max(0, Out - 1)
    end.

%% What the paper has, and where this was not.
elsewhere(#{paper_has := Has, from := Key} = Question, Results) ->
    case Results of
        #{Key := {run, #{header := #{<<"points">> := Points}}}} ->
            Of = case Question of #{by := #{first := First, at := Places}} -> [maps:merge(At, First) || At <- Places]; #{} -> [#{}] end,
            Used = [Point || Point <- Points, lists:any(fun(Some) -> is_part(Some, Point) end, Of)],
            lists:join(" ", [
                beyond(Parameter, Values, Others)
             || {Parameter, Values} <- lists:sort(maps:to_list(Has)),
                [_ | _] = Others <- [lists:usort([V || #{} = Point <- Used, V <- [maps:get(atom_to_binary(Parameter), Point)], not is_among(V, Values)])]
            ]);
        #{} ->
            []
    end;
elsewhere(#{}, _Results) ->
    [].

is_part(Some, Point) ->
    lists:all(fun({P, V}) -> maps:get(atom_to_binary(P), Point, none) == case is_atom(V) of true -> atom_to_binary(V); false -> V end end, maps:to_list(Some)).

is_among(Value, {Least, Most}) -> Value >= Least andalso Value =< Most;
is_among(Value, Values) -> lists:any(fun(V) -> V == Value end, Values).

beyond(Parameter, Values, Others) ->
    [
        "The paper has ", string:replace(atom_to_list(Parameter), "_", " ", all), " ",
        case Values of
            {Least, Most} -> [number(Least), "–", number(Most)];
            _ -> listed(Values)
        end,
        ", and this is ", listed(Others), ": so nothing is shown of it."
    ].

listed(Values) -> lists:join(", ", [number(V) || V <- Values]).

%% @doc A number as a page has it; a dash for none.
-spec number(number() | none | null) -> binary().
number(None) when None =:= none; None =:= null -> <<"–"/utf8>>;
number(N) when is_float(N), N == trunc(N), abs(N) < 1.0e15 -> atoll_bench_report_text:number(trunc(N));
number(N) -> atoll_bench_report_text:number(N).

%% @doc Samples as a cell of a table has them: their median and its interval; a dash for none.
-spec cell(atoll_experiments_samples:samples()) -> unicode:chardata().
cell([]) ->
    number(none);
cell(Samples) ->
    {Median, Low, High} = interval([V || {_, V} <- Samples]),
    [number(Median), " [", number(Low), "–", number(High), "]"].
