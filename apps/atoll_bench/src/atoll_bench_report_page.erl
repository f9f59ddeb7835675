%% @doc The page of a report. It holds all that it shows: the tables as they are, the
%% charts as data with the script that draws them. It loads nothing, and its policy
%% lets no script run but that one.
-module(atoll_bench_report_page).

-export([html/2]).

-import(atoll_bench_report_text, [html/1]).

%% Up to so many rows are open at once.
-define(OPEN, 12).

%% @doc The page of some runs.
-spec html([atoll_bench_report_parts:parts(), ...], atoll_bench_report_bundle:bundle()) -> iodata().
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
        "<header class=\"top\"><h1>Atoll <span>benchmark report</span></h1>"
        "<button type=\"button\" id=\"look\" hidden></button></header>\n",
        contents(Runs),
        "<main id=\"main\">\n",
        "<noscript><p class=\"banner\">The charts need JavaScript. They are also in the SVG files beside this page, "
        "and their numbers in the tables.</p></noscript>\n",
        [run(Run) || Run <- Runs],
        "</main>\n<script type=\"application/json\" id=\"charts\">", embedded(Charts), "</script>\n",
        "<script>", Script, "</script>\n</body>\n</html>\n"
    ].

%% Nothing in it can end the element that it stands in.
embedded(Charts) ->
    binary:replace(iolist_to_binary(atoll_bench_json:encode(Charts)), <<"<">>, <<"\\u003c">>, [global]).

title(Runs) ->
    Names = lists:usort([Name || #{data := #{name := Name}} <- Runs]),
    [lists:join(", ", Names), " \x{2013} Atoll benchmark report"].

contents(Runs) ->
    [
        "<nav class=\"contents\" aria-label=\"Contents\"><ul>",
        [
            [
                "<li><a href=\"#", Id, "\">", html(Name), "</a><ul>",
                [["<li><a href=\"#", anchor(Id, Metric), "\">", html(maps:get(label, Metric)), "</a></li>"] || {Metric, _} <- Metrics],
                "<li><a href=\"#", Id, "-how\">How it was run</a></li></ul></li>"
            ]
         || #{data := #{id := Id, name := Name}, metrics := Metrics} <- Runs
        ],
        "</ul></nav>\n"
    ].

anchor(Id, #{name := Name}) ->
    [Id, "-about-", atoll_bench_report_text:slug(Name)].

run(#{data := #{id := Id, name := Name, header := Header} = Data, metrics := Metrics} = Parts) ->
    [
        "<section class=\"run\" aria-labelledby=\"", Id, "\">\n<h2 id=\"", Id, "\">", html(Name), "</h2>\n",
        [["<p class=\"lead\">", html(Summary), "</p>\n"] || #{<<"summary">> := Summary} <- [Header], is_binary(Summary)],
        banner(Data),
        "<p class=\"command\"><span class=\"visually-hidden\">Command: </span><code>", html(field(<<"command">>, Header)), "</code></p>\n",
        facts(Data),
        failures(Data),
        [metric(Id, Metric, Figures) || {Metric, Figures} <- Metrics],
        how(Parts),
        "</section>\n"
    ].

banner(#{status := complete}) ->
    [];
banner(#{status := Status, rounds := Rounds, points := Points}) ->
    Why =
        case Status of
            interrupted -> "This run was interrupted.";
            partial -> "This result is partial: its file ends before the run did."
        end,
    [
        "<p class=\"banner\" role=\"note\"><strong>", Why, "</strong> What is shown was measured until then: ",
        integer_to_list(map_size(Rounds)), " of ", count(map_size(Points), "point"), " have rounds.</p>\n"
    ].

facts(#{header := Header, rounds := Rounds, fixed := Fixed} = Data) ->
    All = lists:append(maps:values(Rounds)),
    Disturbed = length([R || R <- All, atoll_bench_report_data:disturbed(R)]),
    Facts =
        [
            {"started", field(<<"started">>, Header)},
            {"took", took(All)},
            {"points", atoll_bench_report_text:number(map_size(maps:get(points, Data)))},
            {"rounds", atoll_bench_report_text:number(length(All))},
            {"disturbed", [atoll_bench_report_text:number(Disturbed), " (", atoll_bench_report_text:percent(Disturbed / max(1, length(All))), ")"]}
        ] ++ [{atoll_bench_report_data:label(P), atoll_bench_report_text:value(V)} || {P, V} <- Fixed],
    ["<dl class=\"facts\">", [["<div><dt>", html(K), "</dt><dd>", html(V), "</dd></div>"] || {K, V} <- Facts], "</dl>\n"].

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

metric(Id, #{label := Label, unit := Unit, better := Better} = Metric, Figures) ->
    [
        "<section class=\"metric\">\n<h3 id=\"", anchor(Id, Metric), "\">", html(Label),
        [[" <span class=\"unit\">", html(Unit), "</span>"] || Unit =/= <<>>], "</h3>\n",
        "<p class=\"hint\">", atom_to_list(Better), " is better; the median of the rounds with its 95&nbsp;% interval", "</p>\n",
        [figure(Metric, Figure) || Figure <- Figures],
        "</section>\n"
    ].

figure(_Metric, #{chart := #{id := Id, kind := Kind} = Chart} = Figure) ->
    Title = maps:get(title, Chart),
    [
        "<figure class=\"", atom_to_list(Kind), "\" id=\"", Id, "\">\n<figcaption><h4>", html(Title), "</h4>",
        "<span class=\"files\">", link(Id, ".svg", Title), [link(Name, ".csv", Title) || #{table := #{name := Name}} <- [Figure]], "</span></figcaption>\n",
        remark(Kind),
        "<div class=\"controls\"></div>\n<div class=\"panels\"></div>\n",
        [table(Table, Title) || #{table := Table} <- [Figure]],
        "</figure>\n"
    ].

remark(speedup) ->
    "<p class=\"remark\">Each variant against itself at the least value. The bars are the widest that the intervals of the two medians allow.</p>\n";
remark(cdf) ->
    "<p class=\"remark\">All rounds together. The marks are p50, p90, p99 and p99.9.</p>\n";
remark(_) ->
    [].

link(Name, Type, Title) ->
    ["<a href=\"", Name, Type, "\" download aria-label=\"", html([string:uppercase(tl(Type)), " of ", Title]), "\">", string:uppercase(tl(Type)), "</a>"].

table(#{rows := []}, _Title) ->
    [];
table(#{columns := Columns, rows := Rows}, Title) ->
    [
        "<details", [" open" || length(Rows) =< ?OPEN], "><summary>Table <span>", count(length(Rows), "row"), "</span></summary>\n",
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", html(["Table: ", Title]), "\"><table>",
        "<caption class=\"visually-hidden\">", html(Title), "</caption><thead><tr>",
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

how(#{data := #{id := Id, file := File, header := Header}, load := Load, disturbed := Disturbed, rounds := #{name := Rounds}}) ->
    Machine = maps:get(<<"machine">>, Header, #{}),
    Facts =
        [{"file", File}] ++
            [{Label, field(Key, Header)} || {Label, Key} <- [{"Atoll", <<"atoll">>}, {"rounds wanted", <<"rounds">>}, {"seed", <<"seed">>}], is_map_key(Key, Header)] ++
            [{string:replace(Key, "_", " ", all), machine(Key, Value)} || {Key, Value} <- lists:sort(maps:to_list(Machine))],
    [
        "<section class=\"metric how\">\n<h3 id=\"", Id, "-how\">How it was run</h3>\n<dl class=\"machine\">",
        [["<div><dt>", html(K), "</dt><dd>", html(V), "</dd></div>"] || {K, V} <- Facts],
        "</dl>\n",
        figure(none, #{chart => Load}),
        case Disturbed of
            #{rows := []} -> "<p>No round was disturbed: other processes never used more than 20&nbsp;% of the machine.</p>\n";
            _ -> table(Disturbed, <<"Disturbed rounds: other processes used more than 20 % of the machine">>)
        end,
        "<p class=\"hint\">All rounds: ", link(Rounds, ".csv", "all rounds"), "</p>\n</section>\n"
    ].

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
