%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of a report. It holds all that it shows: the tables as they are, the
%% charts as data with the script that draws them. It loads nothing, and its policy
%% lets no script run but that one.
-module(atoll_bench_report_page).

-export([html/2, mark/0]).

-import(atoll_bench_report_text, [html/1]).

%% Up to so many rows are open at once.
-define(OPEN, 12).

%% What is known of a machine, in the order in which it is told.
-define(ABOUT, [
    {<<"cpu">>, "CPU"}, {<<"cores">>, "cores"}, {<<"memory_bytes">>, "memory"}, {<<"kernel">>, "kernel"},
    {<<"otp">>, "OTP"}, {<<"erts">>, "ERTS"}, {<<"emulator">>, "emulator"}, {<<"emu_flavor">>, "emulator"},
    {<<"schedulers">>, "schedulers"}, {<<"flags">>, "flags"}
]).

%% @doc The page of some runs.
-spec html([atoll_bench_report_parts:parts(), ...], atoll_bench_report_bundle:bundle()) -> iolist().
html(Runs, #{script := Script, style := Style}) ->
    Charts = lists:append([atoll_bench_report_parts:charts(Run) || Run <- Runs]),
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
        "style-src 'unsafe-inline'; script-src 'sha256-", base64:encode(crypto:hash(sha256, Script)), "'\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n",
        "<title>", html(title(Runs)), "</title>\n<style>", Style, "</style>\n</head>\n<body>\n",
        "<a class=\"skip\" href=\"#main\">Skip to the results</a>\n",
        "<header class=\"top\">", mark(),
        "<button type=\"button\" id=\"look\" hidden></button></header>\n",
        contents(Runs),
        "<main id=\"main\">\n",
        "<noscript><p class=\"banner\">The charts need JavaScript. They are also in the SVG files beside this page, "
        "and their numbers in the tables.</p></noscript>\n",
        [run(Run, mark(Run, Runs)) || Run <- Runs],
        "</main>\n<script type=\"application/json\" id=\"charts\">", embedded(Charts), "</script>\n",
        "<script>", Script, "</script>\n</body>\n</html>\n"
    ].

%% @doc What every page of a report has, and hardly anything else.
-spec mark() -> binary().
mark() -> <<"<h1>Atoll <span>benchmark report</span></h1>">>.

%% Nothing in it can end the element that it stands in.
embedded(Charts) ->
    binary:replace(iolist_to_binary(atoll_bench_json:encode(Charts)), <<"<">>, <<"\\u003c">>, [global]).

title(Runs) ->
    Names = lists:usort([Name || #{data := #{name := Name}} <- Runs]),
    [lists:join(", ", Names), " \x{2013} Atoll benchmark report"].

%% What tells a run from the others of the page, of which some may be of the same
%% benchmark, or the same file; nothing if it is alone. Goes wherever a name is heard
%% without what stands around it.
mark(_Run, [_]) -> [];
mark(#{data := #{number := Number}}, _Runs) -> [", run ", integer_to_list(Number)].

%% The file is for people: two may have the same name.
heading(#{data := #{name := Name}}, []) -> html(Name);
heading(#{data := #{name := Name, file := File}}, Mark) -> [html(Name), " <span class=\"unit\">", html([string:prefix(Mark, ", "), ", ", File]), "</span>"].

contents(Runs) ->
    [
        "<nav class=\"contents\" aria-label=\"Contents\"><ul>",
        [
            [
                "<li><a href=\"#", Id, "\">", heading(Run, mark(Run, Runs)), "</a><ul>",
                [["<li><a href=\"#", anchor(Id, Metric), "\">", html(maps:get(label, Metric)), "</a></li>"] || {Metric, _} <- Metrics],
                "<li><a href=\"#", Id, "-how\">How it was run</a></li></ul></li>"
            ]
         || #{data := #{id := Id}, metrics := Metrics} = Run <- Runs
        ],
        "</ul></nav>\n"
    ].

anchor(Id, #{name := Name}) ->
    [Id, "-about-", atoll_bench_report_text:slug(Name)].

run(#{data := #{id := Id, header := Header} = Data, metrics := Metrics} = Parts, Mark) ->
    [
        "<section class=\"run\" aria-labelledby=\"", Id, "\">\n<h2 id=\"", Id, "\">", heading(Parts, Mark), "</h2>\n",
        [["<p class=\"lead\">", html(Summary), "</p>\n"] || #{<<"summary">> := Summary} <- [Header], is_binary(Summary)],
        banner(Data),
        "<p class=\"command\"><span class=\"visually-hidden\">Command: </span><code>", html(field(<<"command">>, Header)), "</code></p>\n",
        facts(Data),
        failures(Data),
        [metric(Id, Metric, Figures, Mark) || {Metric, Figures} <- Metrics],
        how(Parts, Mark),
        "</section>\n"
    ].

banner(#{status := complete}) ->
    [];
banner(#{status := partial, rounds := Rounds, points := Points, header := Header}) ->
    Done = lists:sum([length(Of) || Of <- maps:values(Rounds)]),
    Planned =
        case Header of
            #{<<"rounds">> := Each} when is_integer(Each) -> [" of ", atoll_bench_report_text:number(Each * map_size(Points))];
            _ -> []
        end,
    [
        "<p class=\"banner\" role=\"note\"><strong>This result is partial: its file ends before the run did.</strong> "
        "What is shown was measured until then: ",
        atoll_bench_report_text:number(Done), Planned, " rounds.</p>\n"
    ].

facts(#{header := Header, rounds := Rounds, fixed := Fixed} = Data) ->
    All = lists:append(maps:values(Rounds)),
    Disturbed = length([R || R <- All, atoll_bench_report_data:disturbed(R)]),
    Facts =
        [
            {"started", moment(field(<<"started">>, Header))},
            {"took", took(All)},
            {"points", atoll_bench_report_text:number(map_size(maps:get(points, Data)))},
            {"disturbed rounds", [atoll_bench_report_text:number(Disturbed), " of ", atoll_bench_report_text:number(length(All))]}
        ] ++ [{atoll_bench_report_data:label(P), atoll_bench_report_text:value(V)} || {P, V} <- Fixed],
    ["<dl class=\"facts\">", [["<div><dt>", html(K), "</dt><dd>", html(V), "</dd></div>"] || {K, V} <- Facts], "</dl>\n"].

%% 2026-11-21T14:03:12Z
moment(Text) ->
    re:replace(Text, "^(\\d{4}-\\d\\d-\\d\\d)T(\\d\\d:\\d\\d:\\d\\d)(\\.\\d+)?Z$", "\\1 \\2 UTC", [{return, binary}, unicode]).

took([]) ->
    <<"\x{2013}"/utf8>>;
took(Rounds) ->
    Seconds = round(lists:max([At + Wall || #{<<"at_ms">> := At, <<"wall_ms">> := Wall} <- Rounds] ++ [0]) / 1000),
    case Seconds of
        S when S < 120 -> count(S, "second");
        S when S < 7200 -> count(round(S / 60), "minute");
        S -> [atoll_bench_report_text:number(round(S / 360) / 10), " hours"]
    end.

count(1, Thing) -> ["1 ", Thing];
count(N, Thing) -> [atoll_bench_report_text:number(N), $\s, Thing, $s].

failures(#{errors := []}) ->
    [];
failures(#{errors := Errors}) ->
    [
        "<div class=\"failures\" role=\"note\"><p><strong>", count(length(Errors), "point"), " failed:</strong></p><ul>",
        [["<li>", point(Point), html(Sentence), "</li>"] || {Point, Sentence} <- Errors],
        "</ul></div>\n"
    ].

point(Point) ->
    Values = [[Name, " = ", atoll_bench_report_text:value(V)] || {Name, V} <- maps:to_list(Point)],
    ["<span class=\"point\">", html(lists:join(", ", Values)), "</span> "].

metric(Id, #{label := Label, better := Better} = Metric, Figures, Mark) ->
    Unit = unit(Metric),
    [
        "<section class=\"metric\">\n<h3 id=\"", anchor(Id, Metric), "\">", html(Label),
        [[" <span class=\"unit\">", html(Unit), "</span>"] || Unit =/= <<>>], "</h3>\n",
        "<p class=\"hint\">", atom_to_list(Better), " is better; the median of the rounds with its 95&nbsp;% interval, which takes 5 rounds", "</p>\n",
        [figure(Figure, Mark) || Figure <- Figures],
        "</section>\n"
    ].

%% A time is shown in the unit that suits it.
unit(#{kind := latency}) -> <<>>;
unit(#{unit := Unit}) -> Unit.

figure(#{chart := #{id := Id, kind := Kind, title := Title}, table := Table}, Mark) ->
    Heard = [Title, Mark],
    [
        "<figure class=\"", atom_to_list(Kind), "\" id=\"", Id, "\">\n<figcaption><h4>", html(Title), "</h4>",
        "<span class=\"files\">", link(Id, ".svg", Heard), link(maps:get(name, Table), ".csv", Heard), "</span></figcaption>\n",
        remark(Kind),
        "<div class=\"controls\"></div>\n<div class=\"panels\"></div>\n",
        table(Table, Heard),
        "</figure>\n"
    ].

remark(speedup) ->
    "<p class=\"remark\">Each variant against itself at the least value. "
    "The bars are the widest that the intervals of the two medians allow.</p>\n";
remark(cdf) ->
    "<p class=\"remark\">All rounds together. The marks are p50, p90, p99 and p99.9.</p>\n";
remark(load) ->
    "<p class=\"remark\">A point for each round. A round during which other processes used more than 5&nbsp;% of the machine "
    "counts as disturbed; the table names these.</p>\n";
remark(sweep) ->
    [].

link(Name, Type, Heard) ->
    Form = string:uppercase(tl(Type)),
    ["<a href=\"", Name, Type, "\" download aria-label=\"", html([Form, " of ", Heard]), "\">", Form, "</a>"].

table(#{rows := []}, _Heard) ->
    [];
table(#{columns := Columns, rows := Rows}, Heard) ->
    [
        "<details", [" open" || length(Rows) =< ?OPEN], "><summary>Table <span>", count(length(Rows), "row"), "</span></summary>\n",
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", html(["Table: ", Heard]), "\"><table>",
        "<caption class=\"visually-hidden\">", html(Heard), "</caption><thead><tr>",
        [["<th scope=\"col\"", align(Column), ">", html(Label), "</th>"] || #{label := Label} = Column <- Columns],
        "</tr></thead><tbody>\n",
        [["<tr>", [cell(Column, Cell) || {Column, Cell} <- lists:zip(Columns, Row)], "</tr>\n"] || Row <- Rows],
        "</tbody></table></div></details>\n"
    ].

align(#{numeric := true}) -> " class=\"number\"";
align(#{numeric := false}) -> [].

cell(Column, Cell) ->
    ["<td", align(Column), ">", html(shown(Cell)), "</td>"].

shown(none) -> <<"\x{2013}"/utf8>>;
shown({_, null}) -> <<"\x{2013}"/utf8>>;
shown({time, Ns}) -> atoll_bench_report_text:time(Ns);
shown({share, Share}) -> atoll_bench_report_text:percent(Share);
shown({_, Value}) -> atoll_bench_report_text:value(Value).

how(#{data := #{id := Id, file := File, header := Header}, load := Load, disturbed := Disturbed, rounds := #{name := Rounds}}, Mark) ->
    Machine = maps:get(<<"machine">>, Header, #{}),
    Facts =
        [{"file", File}] ++
            [
                {Label, field(Key, Header)}
             || {Label, Key} <- [
                    {"Atoll", <<"atoll">>}, {"commit", <<"commit">>}, {"rounds wanted", <<"rounds">>}, {"starts", <<"starts">>},
                    {"seed", <<"seed">>}
                ],
                is_map_key(Key, Header)
            ] ++
            node_flags(Header) ++
            [{Label, machine(Key, maps:get(Key, Machine))} || {Key, Label} <- ?ABOUT, is_map_key(Key, Machine)] ++
            [{Key, machine(Key, Value)} || {Key, Value} <- lists:sort(maps:to_list(maps:without([Key || {Key, _} <- ?ABOUT], Machine)))],
    [
        "<section class=\"metric how\">\n<h3 id=\"", Id, "-how\">How it was run</h3>\n<dl class=\"machine\">",
        [["<div><dt>", html(K), "</dt><dd>", html(V), "</dd></div>"] || {K, V} <- Facts],
        "</dl>\n",
        figure(#{chart => Load, table => Disturbed}, Mark),
        "<p class=\"hint\">Every round with all that was measured in it: ", link(Rounds, ".csv", ["all rounds", Mark]), "</p>\n</section>\n"
    ].

%% For each variant's nodes, if these differ.
node_flags(#{<<"flags">> := [_ | _] = Flags, <<"points">> := Points, <<"variant">> := Variant}) when length(Flags) =:= length(Points) ->
    Of = lists:uniq([{maps:get(Variant, Point, <<>>), machine(<<"flags">>, F)} || {Point, F} <- lists:zip(Points, Flags)]),
    case lists:usort([F || {_, F} <- Of]) of
        [Same] -> [{"flags of the nodes", Same}];
        _ -> [{["flags of the nodes, ", atoll_bench_report_text:value(V)], F} || {V, F} <- Of]
    end;
node_flags(_Header) ->
    [].

machine(<<"memory_bytes">>, N) when is_integer(N) -> atoll_bench_report_text:bytes(N);
machine(_Key, [_ | _] = List) -> lists:join(" ", [atoll_bench_report_text:value(V) || V <- List]);
machine(_Key, []) -> "none";
machine(_Key, null) -> <<"\x{2013}"/utf8>>;
machine(_Key, Value) -> atoll_bench_report_text:value(Value).

field(Key, Map) ->
    case Map of
        #{Key := Value} when Value =/= null -> atoll_bench_report_text:value(Value);
        _ -> <<"\x{2013}"/utf8>>
    end.
