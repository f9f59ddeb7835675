%% SPDX-License-Identifier: Apache-2.0
%% What a report says of a run: series, facets, speed-ups, tables, and that nothing
%% in a result file is taken for markup. How it looks is checked by scripts/check-report.
-module(atoll_bench_report_tests).

-include_lib("eunit/include/eunit.hrl").

%% Charts

the_axis_is_what_was_swept_most_and_the_rest_are_facets_test_() ->
    {timeout, 60, fun() ->
        #{x := X, panels := Panels, series := Series, by := By} = chart(throughput(), sample()),
        ?assertMatch(#{label := <<"actors">>, scale := log, ticks := [1, 2, 4, 8, 16, 32, 64]}, X),
        ?assertEqual([<<"size = 100 bytes">>, <<"size = 1,024 bytes">>, <<"size = 65,536 bytes">>], [T || #{title := T} <- Panels]),
        ?assertEqual({[<<"atoll">>, <<"global">>, <<"sharded">>], <<"system">>}, {Series, By})
    end}.

a_line_has_the_median_and_its_interval_at_each_value_test() ->
    #{panels := [#{lines := [#{series := 0, points := [[1, Median, Low, High] | _]} | _]} | _]} =
        chart(throughput(), small([[10, 30, 20, 20, 20], [40, 40, 40, 40, 40]])),
    ?assertEqual(20.0, float(Median)),
    ?assert(Low >= 10 andalso Low =< 20 andalso High >= 20 andalso High =< 30).

a_decade_or_less_is_linear_test() ->
    Scale = fun(Values) -> #{y := #{scale := S}} = chart(throughput(), small(Values)), S end,
    ?assertEqual(linear, Scale([[10, 10, 10], [100, 100, 100]])),
    ?assertEqual(log, Scale([[10, 10, 10], [101, 101, 101]])),
    ?assertEqual(linear, Scale([[0, 0, 0], [100, 100, 100]])).

a_latency_has_a_panel_for_each_percentile_test() ->
    #{panels := Panels, y := Y} = chart(latency(), sample()),
    ?assertEqual(6, length(Panels)),
    ?assertMatch(#{format := time}, Y),
    ?assertMatch([#{title := <<"p50, size = 100 bytes">>} | _], Panels).

a_distribution_rises_from_nothing_to_all_test() ->
    Data = read(sample()),
    [#{panels := Panels, choice := #{first := 6}}] = atoll_bench_report_chart:cdf(metric(latency(), Data), Data),
    ?assertEqual(21, length(Panels)),
    lists:foreach(
        fun(Points) ->
            ?assertEqual([0.0, 1.0], [lists:last(hd(Points)), lists:last(lists:last(Points))]),
            ?assertEqual(Points, lists:sort(Points)),
            ?assertEqual([Y || [_, Y] <- Points], lists:sort([Y || [_, Y] <- Points])),
            ?assert(length(Points) < 400)
        end,
        [Points || #{lines := Lines} <- Panels, #{points := Points} <- Lines]
    ).

what_is_marked_is_in_the_data_test() ->
    Data = read(sample()),
    [#{panels := [#{lines := [#{points := Points, marks := Marks} | _]} | _]}] =
        atoll_bench_report_chart:cdf(metric(latency(), Data), Data),
    Shares = [Share || [_, Share] <- Points],
    ?assertEqual([length([S || S <- Shares, S < Mark]) || Mark <- [0.5, 0.9, 0.99, 0.999]], Marks),
    %% And of the rounds those that others disturbed.
    #{limit := #{value := Limit}, panels := [#{lines := [#{points := Rounds, marks := Disturbed}]}]} = atoll_bench_report_chart:load(Data),
    ?assert(Disturbed =/= []),
    ?assertEqual([S || [_, S] <- Rounds, S > Limit], [lists:last(lists:nth(I + 1, Rounds)) || I <- Disturbed]).

names_are_places_on_an_axis_of_categories_test() ->
    #{x := X, panels := [#{lines := [#{points := Points} | _]}]} = chart(<<"us">>, atoll_bench_sample:names()),
    ?assertMatch(#{scale := category, ticks := [<<"set">>, <<"ordered_set">>, <<"bag">>]}, X),
    ?assertEqual([0, 1, 2], [Place || [Place | _] <- Points]).

with_nothing_swept_the_variant_is_the_axis_test() ->
    #{x := X, panels := [#{lines := Lines}]} = chart(throughput(), only(#{<<"actors">> => 1, <<"size">> => 100})),
    ?assertMatch(#{label := <<"system">>, scale := category}, X),
    ?assertEqual([[0], [1], [2]], [[Place || [Place | _] <- Points] || #{points := Points} <- Lines]).

a_point_that_was_not_measured_is_left_out_test_() ->
    {timeout, 60, fun() ->
        #{rounds := Rounds} = Run = sample(),
        Cut = Run#{rounds := [R || #{<<"point">> := I} = R <- Rounds, I =/= 0]},
        #{panels := [#{lines := [#{points := Points} | _]} | _]} = chart(throughput(), Cut),
        ?assertEqual([2, 4, 8, 16, 32, 64], [X || [X | _] <- Points])
    end}.

%% Speed-up

a_speedup_is_one_at_the_least_and_has_the_ideal_beside_it_test() ->
    Data = read(atoll_bench_sample:scaling()),
    [#{panels := [#{lines := Lines, ideal := Ideal}]}] = atoll_bench_report_chart:speedup(metric(<<"vertices_per_s">>, Data), Data),
    ?assertEqual([[1, 1.0], [2, 2.0], [4, 4.0], [6, 6.0], [8, 8.0]], Ideal),
    lists:foreach(
        fun(#{points := [First | Rest]}) ->
            ?assertEqual([1, 1.0, 1.0, 1.0], First),
            ?assert(lists:all(fun([X, Y, Low, High]) -> Low =< Y andalso Y =< High andalso Y < X * 1.1 end, Rest))
        end,
        Lines
    ).

there_is_a_speedup_for_throughput_and_workers_alone_test() ->
    Data = read(sample()),
    ?assertEqual([], atoll_bench_report_chart:speedup(metric(throughput(), Data), Data)),
    Scaling = read(atoll_bench_sample:scaling()),
    Metric = metric(<<"vertices_per_s">>, Scaling),
    ?assertEqual([], atoll_bench_report_chart:speedup(Metric#{better := less}, Scaling)),
    ?assertEqual([], atoll_bench_report_chart:speedup(Metric#{derived := true}, Scaling)).

%% Many nodes of which one does the work are no reason to hope.
what_is_not_said_to_scale_has_no_speedup_test() ->
    #{header := #{<<"parameters">> := [Mode, Schedulers]} = Header} = Run = atoll_bench_sample:scaling(),
    Data = read(Run#{header := Header#{<<"parameters">> := [Mode, maps:remove(<<"scales">>, Schedulers)]}}),
    ?assertEqual([], atoll_bench_report_chart:speedup(metric(<<"vertices_per_s">>, Data), Data)).

of_our_own_benchmarks_orbit_debench_and_the_ring_scale_test() ->
    ?assertEqual(
        [{"orbit", nodes}, {"debench", nodes}, {"ring", nodes}],
        [{Name, P} || {Name, Module} <- atoll_bench:all(), #{name := P, scales := true} <- Module:parameters()]
    ).

fewer_than_five_rounds_are_shown_without_an_interval_test() ->
    Few = fun(#{rounds := Rounds} = Run) -> Run#{rounds := [R || #{<<"round">> := N} = R <- Rounds, N < 5]} end,
    #{panels := [#{lines := [#{points := [First | _]} | _]} | _]} = chart(throughput(), Few(sample())),
    ?assertMatch([1, _], First),
    Data = read(Few(atoll_bench_sample:scaling())),
    Metric = metric(<<"vertices_per_s">>, Data),
    ?assertMatch(#{rows := [[_, _, {number, _}, {number, null}, {number, null} | _] | _]}, atoll_bench_report_table:metric(Metric, Data)),
    [Speedup] = atoll_bench_report_chart:speedup(Metric, Data),
    ?assertMatch(#{panels := [#{lines := [#{points := [[1, 1.0], [2, _] | _]} | _]}]}, Speedup),
    ?assertMatch(#{rows := [[_, _, {number, 1.0}, none, none, {number, 1.0}] | _]}, atoll_bench_report_table:speedup(Speedup)).

a_series_without_its_first_point_has_no_speedup_test() ->
    #{rounds := Rounds} = Run = atoll_bench_sample:scaling(),
    Data = read(Run#{rounds := [R || #{<<"point">> := I} = R <- Rounds, I =/= 0]}),
    [#{panels := [#{lines := [Par, ParSeq]}]}] = atoll_bench_report_chart:speedup(metric(<<"vertices_per_s">>, Data), Data),
    ?assertMatch({#{points := []}, #{points := [_ | _]}}, {Par, ParSeq}).

%% Tables

a_table_is_in_the_order_of_the_charts_test() ->
    Data = read(sample()),
    #{columns := Columns, rows := Rows} = atoll_bench_report_table:metric(metric(throughput(), Data), Data),
    ?assertEqual(
        [<<"size">>, <<"actors">>, <<"system">>, <<"median">>, <<"low">>, <<"high">>, <<"rounds">>, <<"disturbed">>, <<"others_cpu_max">>],
        [Key || #{key := Key} <- Columns]
    ),
    ?assertEqual(63, length(Rows)),
    ?assertMatch([{value, 100}, {value, 1}, {value, <<"atoll">>} | _], hd(Rows)),
    ?assertMatch([{value, 65536}, {value, 64}, {value, <<"sharded">>} | _], lists:last(Rows)).

rounds_beside_a_busy_neighbour_are_named_test() ->
    #{rounds := Rounds} = Run = sample(),
    #{rows := Rows} = atoll_bench_report_table:disturbed(read(Run)),
    ?assertEqual(length([R || #{<<"others_cpu">> := Share} = R <- Rounds, Share > 0.05]), length(Rows)),
    ?assert(length(Rows) > 0).

csv_is_quoted_and_starts_no_formula_test() ->
    Table = #{
        name => <<"t">>,
        columns => [#{key => <<"a,b">>, label => <<>>, numeric => false}, #{key => <<"c">>, label => <<>>, numeric => true}],
        rows => [
            [{value, <<"say \"hi\"">>}, {number, 1.5}],
            [{value, <<"two\nlines">>}, none],
            [{value, <<"=1+1">>}, {number, -3}],
            %% In full, however small.
            [{value, <<"x">>}, {number, 1.2345e-7}]
        ]
    },
    ?assertEqual(
        <<"\"a,b\",c\r\n\"say \"\"hi\"\"\",1.5\r\n\"two\nlines\",\r\n'=1+1,-3\r\nx,1.2345e-7\r\n">>,
        iolist_to_binary(atoll_bench_report_table:csv(Table))
    ).

%% The page

no_text_of_a_file_is_markup_test() ->
    Page = page([atoll_bench_sample:names()]),
    ?assertEqual(nomatch, binary:match(Page, <<"<img">>)),
    ?assertEqual(nomatch, binary:match(Page, <<"<b>">>)),
    %% The data of the charts, and the script.
    ?assertEqual(2, length(binary:matches(Page, <<"</script>">>))).

the_page_loads_nothing_and_runs_its_own_script_alone_test() ->
    Page = page([sample()]),
    ?assertEqual(nomatch, re:run(Page, "(src|href)=\"(https?:)?//")),
    Hash = base64:encode(crypto:hash(sha256, <<"script()">>)),
    ?assertMatch({_, _}, binary:match(Page, <<"script-src 'sha256-", Hash/binary, "'">>)),
    ?assertMatch({_, _}, binary:match(Page, <<"default-src 'none'">>)).

every_chart_of_the_data_has_its_place_test() ->
    Page = page([sample(), atoll_bench_sample:scaling(), atoll_bench_sample:names()]),
    {match, [Json]} = re:run(Page, "id=\"charts\">([^<]*)<", [{capture, [1], binary}]),
    {ok, Charts} = atoll_bench_json:decode(Json),
    Ids = [Id || #{<<"id">> := Id} <- Charts],
    ?assertEqual(length(Ids), length(lists:usort(Ids))),
    ?assertEqual([], [Id || Id <- Ids, binary:match(Page, <<"<figure class=\"", (kind(Id, Charts))/binary, "\" id=\"", Id/binary, "\">">>) =:= nomatch]),
    %% Each panel is told in words.
    ?assertEqual([], [P || #{<<"panels">> := Panels} <- Charts, #{<<"alt">> := <<>>} = P <- Panels]).

%% Also of the same file: whoever goes by names alone knows which run is which.
no_name_of_a_page_is_there_twice_test_() ->
    {timeout, 60, fun() ->
        Page = page([sample(), atoll_bench_sample:scaling(), sample(), (sample())#{rounds := []}]),
        [
            begin
                {match, Found} = re:run(Page, Pattern, [global, {capture, all_but_first, binary}]),
                ?assertMatch([_, _, _ | _], Found),
                ?assertEqual({Pattern, []}, {Pattern, Found -- lists:usort(Found)})
            end
         || Pattern <- [
                " id=\"([^\"]*)\"", "<h2[^>]*>(.*)</h2>", "role=\"region\" aria-label=\"([^\"]*)\"", "download aria-label=\"([^\"]*)\"",
                "<li><a href=\"#[a-z]+-[0-9]+\">(.*?)</a>"
            ]
        ]
    end}.

a_run_alone_needs_no_number_test() ->
    ?assertEqual(nomatch, binary:match(page([sample()]), <<"run 1">>)).

a_run_that_is_not_complete_says_so_test_() ->
    {timeout, 60, fun() ->
        Said = fun(Status, Text) -> binary:match(page([(sample())#{status := Status}]), Text) =/= nomatch end,
        ?assert(Said(partial, <<"This result is partial">>)),
        ?assertNot(Said(complete, <<"class=\"banner\" role">>))
    end}.

a_point_that_failed_is_told_test() ->
    ?assertMatch({_, _}, binary:match(page([atoll_bench_sample:scaling()]), <<"did not start within 10 s.">>)).

a_run_without_a_round_has_a_page_test() ->
    ?assertMatch({_, _}, binary:match(page([(sample())#{rounds := [], status := partial}]), <<"0 of 441 rounds">>)).

%% The charts are drawn by Node.js, here by a script that draws nothing.
what_an_earlier_report_left_is_taken_away_test_() ->
    {timeout, 60, fun() ->
        case os:find_executable("node") of
            false -> ok;
            _ -> twice_in_a_directory()
        end
    end}.

twice_in_a_directory() ->
    Dir = atoll_test_file:temporary("atoll_bench_report_tests"),
    Bundle = filename:join(Dir, "bundle"),
    ok = filelib:ensure_dir(filename:join(Bundle, "x")),
    try
        [ok = file:write_file(filename:join(Bundle, Name), "") || Name <- ["report.js", "style.css", "svg.mjs"]],
        ok = file:write_file(filename:join(Dir, "mine.csv"), "mine"),
        Written = fun(Runs) ->
            {ok, Names} = atoll_bench_report:write(Dir, Runs, #{bundle => Bundle}),
            Tables = [filename:basename(Name) || Name <- Names, filename:extension(Name) =:= ".csv"],
            ?assertEqual(lists:sort(["mine.csv" | Tables]), lists:sort(filelib:wildcard("*.csv", Dir))),
            length(Tables)
        end,
        Two = Written([atoll_bench_sample:scaling(), atoll_bench_sample:names()]),
        One = Written([atoll_bench_sample:scaling()]),
        ?assertEqual({true, One}, {One < Two, Written([atoll_bench_sample:scaling()])})
    after
        ok = file:del_dir_r(Dir)
    end.

what_lacks_is_one_sentence_test() ->
    {error, Error} = atoll_bench_report:write("/nowhere", [sample()], #{bundle => "/no/bundle"}),
    ?assertEqual(
        "The scripts of the report are not in /no/bundle: \"make report-bundle\" builds them.",
        lists:flatten(atoll_bench_report:format_error(Error))
    ),
    ?assertEqual({error, no_runs}, atoll_bench_report:write("/nowhere", [])).

%% Texts

numbers_have_four_digits_that_matter_test_() ->
    [
        ?_assertEqual(Text, atoll_bench_report_text:number(N))
     || {N, Text} <- [
            {0, <<"0">>}, {0.0, <<"0">>}, {7, <<"7">>}, {1234567, <<"1,234,567">>}, {0.012345, <<"0.01235">>},
            {1.9, <<"1.900">>}, {12.345, <<"12.35">>}, {999.94, <<"999.9">>}, {999.96, <<"1,000">>}, {12345.6, <<"12,346">>},
            {-2.5, <<"\x{2212}2.500"/utf8>>}, {1.0e20, <<"1.000e+20">>}
        ]
    ].

times_have_the_unit_that_suits_them_test_() ->
    [
        ?_assertEqual(<<Text/binary>>, atoll_bench_report_text:time(Ns))
     || {Ns, Text} <- [
            {850, <<"850\x{a0}ns"/utf8>>}, {1500, <<"1.500\x{a0}\x{b5}s"/utf8>>},
            {2.5e6, <<"2.500\x{a0}ms"/utf8>>}, {61000000000, <<"61.00\x{a0}s"/utf8>>}
        ]
    ].

what_was_kept_is_let_go_test() ->
    _ = [persistent_term:erase(Key) || {{?MODULE, _} = Key, _} <- persistent_term:get()],
    ?assertEqual([], [Key || {{?MODULE, _} = Key, _} <- persistent_term:get()]).

%% Helpers

throughput() -> <<"msgs_per_s">>.
latency() -> <<"latency">>.

%% The sample takes a while to make, and every test reads the same; the last one lets
%% it go.
sample() ->
    kept(sample, fun() -> atoll_bench_sample:run(100) end).

kept(Key, Make) ->
    case persistent_term:get({?MODULE, Key}, none) of
        none ->
            Made = Make(),
            persistent_term:put({?MODULE, Key}, Made),
            Made;
        Made ->
            Made
    end.

%% The values of the first system at two numbers of actors.
small(Values) ->
    #{header := Header} = Run = sample(),
    Points = [#{<<"system">> => <<"atoll">>, <<"actors">> => N, <<"size">> => 100} || N <- lists:seq(1, length(Values))],
    Rounds = [
        #{<<"point">> => I, <<"round">> => 1, <<"values">> => #{throughput() => V}, <<"histograms">> => #{}}
     || {I, Of} <- lists:zip(lists:seq(0, length(Values) - 1), Values), V <- Of
    ],
    Run#{header := Header#{<<"points">> := Points}, rounds := Rounds}.

%% The run with those of its points alone that have the given values.
only(Wanted) ->
    #{header := #{<<"points">> := Points} = Header, rounds := Rounds} = Run = sample(),
    Kept = [I || {I, P} <- lists:zip(lists:seq(0, length(Points) - 1), Points), maps:with(maps:keys(Wanted), P) =:= Wanted],
    Places = maps:from_list(lists:zip(Kept, lists:seq(0, length(Kept) - 1))),
    Run#{
        header := Header#{<<"points">> := [lists:nth(I + 1, Points) || I <- Kept]},
        rounds := [R#{<<"point">> := maps:get(I, Places)} || #{<<"point">> := I} = R <- Rounds, is_map_key(I, Places)]
    }.

read(Run) -> read(1, Run).

read(N, Run) ->
    kept({N, erlang:phash2(Run, 1 bsl 32)}, fun() -> atoll_bench_report_data:read(N, Run) end).

metric(Name, #{metrics := Metrics}) ->
    hd([M || #{name := N} = M <- Metrics, N =:= Name]).

chart(Name, Run) ->
    Data = read(Run),
    atoll_bench_report_chart:sweep(metric(Name, Data), Data).

page(Runs) ->
    Parts = [parts(N, R) || {N, R} <- lists:zip(lists:seq(1, length(Runs)), Runs)],
    iolist_to_binary(atoll_bench_report_page:html(Parts, #{dir => "/", script => <<"script()">>, style => <<>>})).

parts(N, Run) ->
    kept({parts, N, erlang:phash2(Run, 1 bsl 32)}, fun() -> atoll_bench_report_parts:all(read(N, Run)) end).

kind(Id, Charts) ->
    hd([Kind || #{<<"id">> := I, <<"kind">> := Kind} <- Charts, I =:= Id]).
