%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of the experiments, in Markdown: what the paper says beside what came of it
%% here. A pure function of what is stored; what is said of it is said by {@link
%% atoll_experiments_judge}.
-module(atoll_experiments_page).

-export([markdown/2]).

-export_type([entry/0]).

-import(atoll_experiments_judge, [number/1]).

-type entry() :: #{
    about := atoll_experiment:about(),
    %% Of the experiment in `run.json'.
    stored := #{binary() => term()},
    tables := [atoll_experiment:table()],
    results := atoll_experiments_judge:results(),
    findings := [atoll_experiments_judge:finding()],
    runs := [file:filename_all()]
}.

%% @doc The whole page.
-spec markdown(#{binary() => term()}, [entry()]) -> unicode:chardata().
markdown(Stored, Entries) ->
    Total = lists:sum([Seconds || #{stored := #{<<"seconds">> := Seconds}} <- Entries, Seconds =/= null]),
    [
        "# The papers' experiments, run again\n\n",
        "The paper is Trinder and others, *Scaling Reliably: Improving the Scalability of the Erlang Distributed Actor "
        "Platform* (ACM TOPLAS 39(4), 2017). Its clusters had up to 256 hosts with 24 cores each; here all nodes share one machine, "
        "so no claim is made on time that more hosts would take. This page is written by `make experiments` (`bin/atoll experiments`) "
        "from what it has stored of what ran; sentences and verdicts too.\n\n",
        lists:join($\n, lists:uniq([machine(Entry) || #{stored := Entry} <- Entries])),
        io_lib:format("\n\nAll of it took ~b min.\n\n", [ceil(Total / 60)]),
        small(Stored),
        row(["experiment", "question", "of the paper's statements", "time, and at most"]),
        row(["---", "---", "---", "---"]),
        [summary(Entry) || Entry <- Entries],
        "\n*Same* says that the statement holds for what was measured here, *not so here* that it does not. *Not shown* says that what was "
        "measured cannot tell: there was nothing, the paper has measured at other sizes, or the samples differ too much or are too few. That two variants "
        "differ is decided by `bench compare` ([measuring.md](../measuring.md)): a sample is a start of the nodes, rounds that other processes disturbed are left out, "
        "and all comparisons of an experiment are corrected together. A number with two in brackets is the median of the starts with its "
        "interval at 95 per cent (of fewer than six starts, the least and the most); as a ratio, that of both variants in the same start. *By arithmetic* is what follows from a formula, and was not measured.\n",
        [section(Entry) || Entry <- Entries]
    ].

machine(#{<<"machine">> := #{<<"cpu">> := Cpu, <<"cores">> := Cores, <<"memory_bytes">> := Memory, <<"kernel">> := Kernel, <<"otp">> := Otp}, <<"commit">> := Commit}) ->
    [
        io_lib:format("The machine: ~b processors (~ts)", [Cores, Cpu]),
        [[", ", atoll_bench_report_text:bytes(Memory)] || is_integer(Memory)],
        io_lib:format(", ~ts; Erlang/OTP ~ts", [Kernel, Otp]),
        [["; commit ", binary:part(Commit, 0, 12)] || is_binary(Commit)],
        [", changed" || is_binary(Commit), byte_size(Commit) > 40],
        "."
    ].

small(#{<<"size">> := <<"small">>}) -> "**This was the small run (`--size small`), which shows that everything runs and nothing else.**\n\n";
small(_) -> "".

summary(#{about := #{title := Title, question := Question, minutes := Minutes}, stored := #{<<"seconds">> := Seconds}, findings := Findings}) ->
    row([Title, Question, counted(Findings), [taken(Seconds), io_lib:format(", ~b min", [Minutes])]]).

taken(null) -> "interrupted";
taken(Seconds) -> io_lib:format("~b s", [ceil(Seconds)]).

counted(Findings) ->
    Counts = atoll_experiment:counts(Findings),
    Words = [{same, "same"}, {not_so, "not so here"}, {not_shown, "not shown"}, {simulation, "in simulation"}, {arithmetic, "by arithmetic"}],
    case [io_lib:format("~b ~ts", [N, Word]) || {Key, Word} <- Words, N <- [maps:get(Key, Counts)], N > 0] of
        [] -> "none";
        Some -> lists:join(", ", Some)
    end.

section(#{about := About, stored := #{<<"asks">> := Asks}, tables := Tables, results := Results, findings := Findings}) ->
    #{title := Title, question := Question, cannot := Cannot} = About,
    [
        "\n## ", Title, "\n\n", Question, "\n\n",
        [table(Table, maps:get(Of, Results, none)) || #{from := Of} = Table <- Tables],
        row(["", "the paper", "here", ""]),
        row(["---", "---", "---", "---"]),
        [finding(Finding) || Finding <- Findings],
        "\nWhat this machine cannot show: ", Cannot, "\n",
        "\nWhat was run:\n\n",
        [asked(Asked) || Asked <- Asks]
    ].

asked(#{<<"says">> := Says, <<"error">> := Error} = Asked) ->
    [
        "- ",
        case Says of <<"bin/atoll", _/binary>> -> ["`", Says, "`"]; _ -> Says end,
        case Asked of
            #{<<"rounds">> := Rounds, <<"disturbed">> := Disturbed, <<"starts">> := Starts} ->
                io_lib:format(" (~b rounds in ~b starts; ~b disturbed)", [Rounds, Starts, Disturbed]);
            #{} -> ""
        end,
        [[". It failed or was cut short, and what had been measured by then counts: ", Error] || Error =/= null],
        "\n"
    ].

%% Tables

table(_Table, none) ->
    "";
table(#{caption := Caption, kind := Kind, head := Head, rows := Fun}, Answer) ->
    case Fun(Answer) of
        [] -> "";
        Rows -> [drawn(Caption, Head, Rows), note(Kind, Answer)]
    end;
table(#{caption := Caption, down := Down, across := {Parameter, Across}, quantity := Quantity} = Table, {run, Run}) ->
    At = maps:get(at, Table, #{}),
    #{header := #{<<"points">> := Points}} = Run,
    Of = fun(D, A) ->
        Point = At#{Down => D, Parameter => A},
        case atoll_experiments_samples:by_start(Quantity, Point, Run) of
            [] -> {disturbed, atoll_experiments_samples:by_start(Quantity, Point, atoll_experiments_samples:heedless(Run))};
            Samples -> {quiet, Samples}
        end
    end,
    Key = atom_to_binary(Down),
    Cells = [{D, [Of(D, A) || A <- Across]} || D <- lists:usort([maps:get(Key, Point) || Point <- Points]), is_number(D)],
    case [Row || {_, Samples} = Row <- Cells, lists:any(fun({_, S}) -> S =/= [] end, Samples)] of
        [] -> "";
        Filled ->
            [
                drawn(Caption, [words(Down) | [words(A) || A <- Across]], [[number(D) | [cell(S) || S <- Samples]] || {D, Samples} <- Filled]),
                measured(Run, lists:append([pairs(Samples) || {_, Samples} <- Filled]))
            ]
    end.

words(Word) when is_atom(Word) -> string:replace(atom_to_list(Word), "_", " ", all);
words(Number) -> number(Number).

%% What others have disturbed throughout stands in parentheses.
cell({_, []}) ->
    number(none);
cell({disturbed, Samples}) ->
    ["(", number(atoll_bench_stats:median([V || {_, V} <- Samples])), ")"];
cell({quiet, Samples}) ->
    case atoll_experiments_judge:interval([V || {_, V} <- Samples]) of
        {Same, Same, Same} -> number(Same);
        {Median, Low, High} -> [number(Median), " [", number(Low), "–", number(High), "]"]
    end.

pairs([{quiet, First} | Others]) -> [{[V || {_, V} <- First], [V || {_, V} <- Other]} || {quiet, Other} <- Others];
pairs(_) -> [].

%% What the rounds were, and what could not be seen in them.
measured(Run, Pairs) ->
    {Disturbed, Rounds} = atoll_experiments_samples:disturbed(Run),
    [
        io_lib:format("*~b starts; ~b of ~b rounds were disturbed, and are left out (what has no others stands in parentheses). ", [atoll_experiments_samples:starts(Run), Disturbed, Rounds]),
        case [Least || {A, B} <- Pairs, Least <- [atoll_experiments_power:least(A, B)], Least =/= none] of
            [] -> "So few starts show no difference.*\n\n";
            Leasts -> ["A difference from the first column is seen from a factor of ", range(lists:min(Leasts), lists:max(Leasts)), " on.*\n\n"]
        end
    ].

range(Low, High) ->
    case {float_to_list(Low, [{decimals, 2}]), float_to_list(High, [{decimals, 2}])} of
        {Same, Same} -> Same;
        {Least, Most} -> [Least, " to ", Most, ", by the row,"]
    end.

note(arithmetic, _) -> "*By arithmetic: nothing was measured, so nothing could have been otherwise.*\n\n";
note(simulation, _) -> "*Simulated, one history of one seed: it shows nothing of real time, nor how histories differ.*\n\n";
note(counted, {rows, Rows}) -> io_lib:format("*Counted, ~b rows: whether something happened, not how fast. What happens once in many is not seen.*\n\n", [length(Rows)]);
note(_, {run, Run}) ->
    {Disturbed, Rounds} = atoll_experiments_samples:disturbed(Run),
    io_lib:format("*~b starts; ~b of ~b rounds were disturbed. What happens once in more runs than these is not seen.*\n\n", [
        atoll_experiments_samples:starts(Run), Disturbed, Rounds
    ]).

drawn(Caption, Head, Rows) ->
    [Caption, "\n\n", row(Head), row(["---" || _ <- Head]), [row(Row) || Row <- Rows], "\n"].

%% Findings

finding(#{figure := Figure, says := Says, here := Here, why := Why} = Finding) ->
    row([
        case Figure of none -> "not in the paper"; _ -> Figure end,
        Says,
        [Here, [[" ", Why] || not string:is_empty(Why)]],
        ["**", word(Finding), "**"]
    ]).

word(#{holds := unknown}) -> "not shown";
word(#{kind := arithmetic, holds := Holds}) -> ["by arithmetic", [", not so" || not Holds]];
word(#{kind := simulation, holds := Holds}) -> ["in simulation: ", case Holds of true -> "same"; false -> "not so" end];
word(#{figure := none, holds := true}) -> "holds";
word(#{figure := none, holds := false}) -> "does not hold";
word(#{holds := true}) -> "same";
word(#{holds := false}) -> "not so here".

%% A cell is one line, and a bar would end it.
row(Cells) ->
    ["| ", lists:join(" | ", [cell_text(Cell) || Cell <- Cells]), " |\n"].

cell_text(Text) ->
    string:replace(string:replace(Text, "|", "\\|", all), "\n", " ", all).
