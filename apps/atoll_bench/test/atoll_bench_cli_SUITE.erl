%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll bench' as a user has it, on real nodes.
-module(atoll_bench_cli_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([its_page_can_be_followed/1, its_page_has_runs_that_are_possible/1, what_is_measured_is_kept_and_shown/1, a_row_has_all_that_was_measured/1, a_row_of_dist_has_the_keys_that_were_promised/1,
         names_of_groups_are_measured_beside_the_others/1,
         wrong_usage_says_one_sentence/1, a_result_file_that_cannot_be_made_is_status_3/1, a_run_that_is_interrupted_keeps_what_it_measured/1,
         a_run_is_the_same_as_itself/1, other_files_are_told/1, dist_agrees_with_a_loop_of_its_own/1,
         overlay_measures_what_a_cluster_is_known_to_have/1]).

-define(GONE_MS, 30000).
%% For a command of docs/measuring.md.
-define(PAGE_MS, 300000).
%% Of a loop beside another; how many there are, and how far apart the two may be.
-define(TURN_MS, 100).
-define(TURNS_MIN, 15).
-define(TURNS_MAX, 300).
-define(TOLERANCE, 0.1).
-define(NAMES, ["bench", "run", "names", "--nodes", "2", "--callers", "1", "--on", "first", "--system", "pg"]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [its_page_has_runs_that_are_possible, what_is_measured_is_kept_and_shown, a_run_is_the_same_as_itself,
     a_row_of_dist_has_the_keys_that_were_promised, names_of_groups_are_measured_beside_the_others,
     wrong_usage_says_one_sentence, a_result_file_that_cannot_be_made_is_status_3, a_run_that_is_interrupted_keeps_what_it_measured, other_files_are_told,
     overlay_measures_what_a_cluster_is_known_to_have];
cases(deep) ->
    cases(fast) ++ [its_page_can_be_followed, a_row_has_all_that_was_measured, dist_agrees_with_a_loop_of_its_own].

init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
    ok = atoll_cli_os:remove_dir(Dir),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(?config(dir, Config)).

%% The commands of docs/measuring.md, not run: each run has points that can be measured,
%% and what another command reads, a run before it has kept.
its_page_has_runs_that_are_possible(_Config) ->
    Commands = [atoll_cli_page:arguments(Command) || Command <- atoll_cli_page:commands(atoll_cli_page:read("docs/measuring.md"))],
    Kept = lists:foldl(
        fun
            (["bench", "run", Name | Rest], Files) ->
                {ok, Benchmark} = atoll_bench:find(Name),
                {ok, Options} = atoll_cli:options(atoll_bench_cli_run, [Name | Rest]),
                {ok, Values, [Name]} = atoll_cli_options:parse(Options, atoll_bench_cli_run:operands(), [Name | Rest]),
                Sweep = maps:with([Key || #{name := Key} <- Benchmark:parameters()], Values),
                ?assertMatch({Rest, {ok, [_ | _]}}, {Rest, atoll_bench:sweep(Benchmark, Sweep)}),
                [maps:get(out, Values) | Files];
            (["bench", _ | Rest], Files) ->
                ?assertEqual([], [File || File <- Rest, filename:extension(File) =:= ".jsonl"] -- Files),
                Files
        end,
        [],
        Commands
    ),
    ?assertMatch([_, _, _, _, _ | _], Kept).

%% The commands of docs/measuring.md as they stand, but for a round in place of many, and
%% few nodes. What draws needs Node.js, and is left to scripts/check-report.
its_page_can_be_followed(Config) ->
    _ = ct:timetrap({hours, 1}),
    Dir = ?config(dir, Config),
    {ok, Page} = file:read_file(filename:join(atoll_cli_os:root(), "docs/measuring.md")),
    {match, Blocks} = re:run(Page, "```sh\n(.*?)```", [global, dotall, {capture, [1], list}]),
    Commands = [Command || [Block] <- Blocks, Command <- string:lexemes(Block, "\n")],
    ?assertMatch([_, _, _, _, _ | _], Commands),
    {Own, Others} = lists:partition(fun(Command) -> lists:prefix("bin/atoll bench ", Command) end, Commands),
    ?assertEqual([], Others),
    [
        begin
            {Us, Ended} = timer:tc(fun() -> atoll_cli_os:run(Dir, short(string:lexemes(Command, " "), Dir), ?PAGE_MS) end),
            ct:log("~.1f s: ~ts", [Us / 1.0e6, Command]),
            ?assertMatch({Command, #{status := 0}}, {Command, Ended})
        end
     || Command <- Own, not lists:prefix("bin/atoll bench report", Command), can_be_run(Command)
    ],
    [
        ?assertEqual({Name, true}, {Name, filelib:is_regular(filename:join(Dir, Name))})
     || "bin/atoll bench report " ++ Rest <- Own, Name <- string:lexemes(Rest, " "), filename:extension(Name) =:= ".jsonl"
    ].

%% Nodes get a bound where that is allowed, and MariaDB is not installed everywhere.
can_be_run("bin/atoll bench run place --work " ++ _) -> atoll_quota:available() =:= ok;
can_be_run("bin/atoll bench run aco_place " ++ _) -> atoll_quota:available() =:= ok;
can_be_run("bin/atoll bench run subscribers --store mysql" ++ _) -> atoll_bench_mariadb:missing() =:= [];
can_be_run(_Command) -> true.

short(["bin/atoll" | Words], Dir) ->
    Less =
        case Words of
            ["bench", "run", "overlay" | _] -> ["--nodes", "2", "--rounds", "1", "--seconds", "1", "--broadcasts", "2"];
            ["bench", "run", "names" | _] -> ["--nodes", "2", "--rounds", "1"];
            %% With operations on all nodes.
            ["bench", "run", "debench" | _] -> ["--global", "10", "--rounds", "1"];
            %% Each system has nodes of its own.
            ["bench", "run", "dist" | _] -> ["--rounds", "1", "--system", "stock,direct"];
            ["bench", "run" | _] -> ["--rounds", "1"];
            _ -> []
        end,
    Kept = lists:foldl(fun without/2, Words, ["--starts" | [Option || "--" ++ _ = Option <- Less]]),
    [short_value(Word, Dir) || Word <- Kept] ++ Less.

without(Option, [Option, _Value | Words]) -> without(Option, Words);
without(Option, [Word | Words]) -> [Word | without(Option, Words)];
without(_Option, []) -> [].

%% Nodes of a herd.
short_value("20", _Dir) -> "4";
%% Of several numbers the first is enough: of paths it is the one that takes no root.
short_value(Word, Dir) ->
    case {re:run(Word, "^([0-9]+)(,[0-9]+)+$", [{capture, [1], list}]), filename:extension(Word)} of
        {{match, [First]}, _} -> First;
        {nomatch, ".jsonl"} -> filename:join(Dir, Word);
        {nomatch, _} -> Word
    end.

what_is_measured_is_kept_and_shown(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "run.jsonl"),
    {Run, Words} =
        case atoll_tier:tier() of
            fast -> {["dist", "--kind", "request", "--actors", "1", "--size", "100", "--system", "direct", "--starts", "1"], [<<"actors">>, <<"direct">>]};
            deep -> {["names", "--nodes", "2", "--callers", "1", "--on", "first", "--system", "pg"], [<<"nodes">>, <<"pg">>]}
        end,
    #{status := 0, stdout := Table} = atoll_cli_line:run(Dir, ["bench", "run" | Run] ++ ["--rounds", "2", "--out", File]),
    [?assertMatch({_, _}, binary:match(Table, Text)) || Text <- [list_to_binary(File) | Words]],
    {ok, #{status := complete, rounds := Rounds, header := Header}} = atoll_bench_file:read(File),
    ?assertEqual([1, 2], [R || #{<<"round">> := R} <- Rounds]),
    ?assertMatch(#{<<"command">> := <<"atoll bench run ", _/binary>>, <<"machine">> := #{<<"cores">> := _}}, Header),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

a_row_has_all_that_was_measured(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "run.jsonl"),
    #{status := 0, stdout := Json} = atoll_cli_os:run(Dir, ?NAMES ++ ["--rounds", "5", "--out", File, "--json"]),
    {ok, #{<<"status">> := <<"complete">>, <<"rows">> := [Row]}} = atoll_bench_json:decode(Json),
    ?assertMatch(
        #{
            <<"nodes">> := 2, <<"callers">> := 1, <<"on">> := <<"first">>, <<"rate">> := 0, <<"system">> := <<"pg">>,
            <<"registrations_per_s">> := _, <<"registrations_per_s_low">> := _, <<"registrations_per_s_high">> := _,
            <<"visible_per_s">> := _, <<"visible_ms">> := _, <<"cpu_us_per_op">> := _, <<"messages_per_op">> := _,
            <<"lookups_per_s">> := _, <<"lookup_factor">> := _, <<"latency_p50_us">> := _, <<"latency_p99_us">> := _,
            <<"latency_p99_low_us">> := _, <<"latency_p99_high_us">> := _
        },
        Row
    ),
    %% The same numbers as in a report.
    {ok, Run} = atoll_bench_file:read(File),
    Data = #{metrics := Metrics} = atoll_bench_report_data:read(1, Run),
    [Latency] = [M || #{kind := latency} = M <- Metrics],
    {ok, Told} = atoll_bench_report_data:summary(0, {Latency, 99}, Data),
    ?assertEqual(Told, [round(1000 * map_get(Key, Row)) || Key <- [<<"latency_p99_us">>, <<"latency_p99_low_us">>, <<"latency_p99_high_us">>]]).

a_row_of_dist_has_the_keys_that_were_promised(Config) ->
    Dir = ?config(dir, Config),
    %% Nobody answers a flood.
    Answered = {<<"request">>, []},
    Flood = {<<"flood">>, [<<"p50_us">>, <<"p99_us">>]},
    {Without, Systems} =
        case atoll_tier:tier() of
            fast -> {[Answered], [<<"direct">>]};
            deep -> {[Answered, {<<"ping_beside_bulk">>, []}, Flood], [<<"stock">>, <<"stock_tuned">>, <<"direct">>, <<"lanes4">>, <<"lanes16">>]}
        end,
    Args = [
        "bench", "run", "dist", "--rtt", "0", "--actors", "1", "--size", "100", "--rounds", "1", "--starts", "1",
        "--kind", commas([Kind || {Kind, _} <- Without]), "--system", commas(Systems), "--out", filename:join(Dir, "run.jsonl"), "--json"
    ],
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, Args),
    {ok, #{<<"status">> := <<"complete">>, <<"rows">> := Rows}} = atoll_bench_json:decode(Json),
    Keys = [<<"mb_per_s">>, <<"ops_per_s">>, <<"p50_us">>, <<"p99_us">>, <<"cpu">>],
    ?assertEqual(
        [{Kind, System, None} || {Kind, None} <- Without, System <- Systems],
        [
            {Kind, System, [Key || Key <- Keys, map_get(Key, Row) =:= null]}
         || #{<<"kind">> := Kind, <<"rtt_ms">> := 0, <<"actors">> := 1, <<"size">> := 100, <<"system">> := System} = Row <- Rows
        ]
    ).

commas(Words) -> binary_to_list(iolist_to_binary(lists:join(",", Words))).

names_of_groups_are_measured_beside_the_others(Config) ->
    Dir = ?config(dir, Config),
    {Count, Systems} =
        case atoll_tier:tier() of
            %% Others here measure pg.
            fast -> {2, [<<"s_group">>]};
            deep -> {4, [<<"global">>, <<"pg">>, <<"s_group">>, <<"s_group_of_4">>]}
        end,
    Args = [
        "bench", "run", "names", "--nodes", integer_to_list(Count), "--system", commas(Systems), "--callers", "1", "--on", "each", "--rounds", "1",
        "--out", filename:join(Dir, "run.jsonl"), "--json"
    ],
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, Args),
    {ok, #{<<"status">> := <<"complete">>, <<"rows">> := Rows}} = atoll_bench_json:decode(Json),
    ?assertEqual(
        Systems,
        [
            begin
                Numbers = [
                    registrations_per_s, visible_per_s, lookups_per_s, lookup_factor, visible_ms, messages_per_op, cpu_us_per_op,
                    latency_p50_us, latency_p99_us
                ],
                ?assert(lists:all(fun(Key) -> map_get(atom_to_binary(Key), Row) > 0 end, Numbers)),
                ?assertMatch(#{<<"nodes">> := Count, <<"callers">> := 1, <<"on">> := <<"each">>, <<"rate">> := 0}, Row),
                %% One round has no interval.
                Ends = [registrations_per_s_low, registrations_per_s_high, latency_p99_low_us, latency_p99_high_us],
                ?assert(lists:all(fun(Key) -> map_get(atom_to_binary(Key), Row) =:= null end, Ends)),
                System
            end
         || #{<<"system">> := System} = Row <- Rows
        ]
    ),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

wrong_usage_says_one_sentence(Config) ->
    Dir = ?config(dir, Config),
    There = filename:join(Dir, "there.jsonl"),
    ok = file:write_file(There, "mine"),
    [
        begin
            #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(Dir, ["bench" | Args]),
            ?assertEqual({Args, 2, <<>>}, {Args, Status, Out}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, list_to_binary(Part))}),
            ?assertEqual({Args, 1}, {Args, length(binary:matches(Said, <<"\n">>))})
        end
     || {Args, Part} <- [
            {["run"], "NAME is missing"},
            {["run", "dits"], "did you mean dist?"},
            {["run", "dist", "--actors", "1,x"], "--actors must be a whole number"},
            {["run", "dist", "--rtt", "x"], "--rtt must be a number from 0 to 60,000"},
            {["run", "dist", "--actors", "1,1"], "actors has the value 1 twice"},
            {["run", "names", "--actors", "1"], "there is no option --actors"},
            {["run", "names", "--system", "s_grup"], "must be one of global, pg, s_group, s_group_of_4"},
            {["run", "names", "--nodes", "6"], "groups of four are of two to four nodes, or of a multiple of four"},
            {["run", "names", "--rate", "-1"], "--rate must be a whole number"},
            {["list", "dits"], "there is no benchmark"},
            {["compare", There], "FILE is missing"},
            {["compare", There, There], "this is not the file of a run"}
        ]
    ],
    ?assertEqual([], atoll_cli_os:left(Dir)).

a_result_file_that_cannot_be_made_is_status_3(Config) ->
    Dir = ?config(dir, Config),
    There = filename:join(Dir, "there.jsonl"),
    ok = file:write_file(There, "mine"),
    [
        begin
            #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(Dir, ["bench", "run", "dist", "--out", File]),
            ?assertEqual({File, 3, <<>>}, {File, Status, Out}),
            ?assertMatch({File, {_, _}}, {File, binary:match(Said, list_to_binary([File, ": ", Why]))})
        end
     || {File, Why} <- [{There, "file already exists"}, {filename:join([Dir, "no", "such"]), "no such file or directory"}]
    ],
    ?assertEqual({ok, <<"mine">>}, file:read_file(There)),
    ?assertEqual([], atoll_cli_os:left(Dir)).

a_run_that_is_interrupted_keeps_what_it_measured(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "run.jsonl"),
    Program = atoll_cli_os:start(Dir, ?NAMES ++ ["--rounds", "1000", "--out", File]),
    ok = atoll_cli_os:await(fun() -> has_rounds(2, File) end, 60000),
    ok = atoll_cli_os:signal(Program, "INT"),
    #{status := 130, stderr := Told} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ?assertMatch({_, _}, binary:match(Told, list_to_binary([File, " keeps every round; Ctrl-C"]))),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)),
    {ok, #{status := partial, rounds := [_, _ | _]}} = atoll_bench_file:read(File),
    #{status := 0, stderr := Said} = atoll_cli_line:run(Dir, ["bench", "compare", File, File]),
    ?assertMatch({_, _}, binary:match(Said, <<"partial">>)).

has_rounds(Count, File) ->
    case atoll_bench_file:read(File) of
        {ok, #{rounds := Rounds}} -> length(Rounds) >= Count;
        {error, _} -> false
    end.

a_run_is_the_same_as_itself(Config) ->
    Dir = ?config(dir, Config),
    Measured = measured(atoll_tier:tier(), Dir),
    %% Whatever else this machine has to do.
    File = as(fun(Line) -> with_others(0.0, Line) end, Measured, filename:join(Dir, "run.jsonl")),
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, ["bench", "compare", File, File, "--json"]),
    {ok, #{<<"rows">> := [_ | _] = Rows}} = atoll_bench_json:decode(Json),
    [?assert(abs(Ratio - 1) < 0.000001) || #{<<"ratio">> := Ratio} <- Rows],
    ?assertEqual([], [V || #{<<"verdict">> := V} <- Rows, V =/= <<"same">>, V =/= <<"unclear">>]),
    %% Of a run in which all was five times as much, elsewhere, both are told.
    Other = as(fun changed/1, File, filename:join(Dir, "other.jsonl")),
    #{status := 0, stdout := Json2, stderr := Said} = atoll_cli_line:run(Dir, ["bench", "compare", File, Other, "--json"]),
    {ok, #{<<"rows">> := Rows2}} = atoll_bench_json:decode(Json2),
    ?assertMatch(
        #{
            <<"registrations_per_s">> := <<"faster">>, <<"visible_per_s">> := <<"faster">>, <<"cpu_us_per_op">> := <<"slower">>,
            <<"messages_per_op">> := <<"slower">>
        },
        maps:from_list([{M, V} || #{<<"metric">> := M, <<"what">> := <<"value">>, <<"verdict">> := V} <- Rows2])
    ),
    ?assertMatch({_, _}, binary:match(Said, <<"The machines of the two runs differ in cores.">>)),
    %% What others have disturbed says nothing, and that is said.
    Busy = as(fun(Line) -> with_others(0.5, Line) end, Other, filename:join(Dir, "busy.jsonl")),
    #{status := 0, stdout := Json3, stderr := Said3} = atoll_cli_line:run(Dir, ["bench", "compare", File, Busy, "--json"]),
    {ok, #{<<"rows">> := Rows3}} = atoll_bench_json:decode(Json3),
    ?assertEqual([{<<"unclear">>, null}], lists:usort([{V, Ratio} || #{<<"verdict">> := V, <<"ratio">> := Ratio} <- Rows3])),
    ?assertMatch({_, _}, binary:match(Said3, <<"5 of 5 rounds of ">>)).

%% A run with five rounds, as few as a comparison can do with. In the fast tier they are of
%% numbers that nobody has measured.
measured(deep, Dir) ->
    File = filename:join(Dir, "measured.jsonl"),
    #{status := 0} = atoll_cli_os:run(Dir, ?NAMES ++ ["--rounds", "5", "--out", File]),
    File;
measured(fast, Dir) ->
    File = filename:join(Dir, "measured.jsonl"),
    Metrics = [Metric || #{kind := value} = Metric <- atoll_bench_names:metrics()],
    {ok, Device} = atoll_bench_file:create(File, #{
        benchmark => <<"names">>, variant => system, machine => atoll_bench_machine:describe(), flags => [[]],
        parameters => [#{name => Name} || #{name := Name} <- atoll_bench_names:parameters()],
        metrics => [maps:map(fun(_, V) -> text(V) end, Metric) || Metric <- Metrics],
        points => [#{nodes => 2, callers => 1, on => first, rate => 0, system => pg}]
    }),
    _ = [
        ok = atoll_bench_file:append(Device, #{
            point => 0, round => R, start => R, others_cpu => 0.0, histograms => #{},
            values => maps:from_list([{Name, 1000 + R} || #{name := Name} <- Metrics])
        })
     || R <- lists:seq(1, 5)
    ],
    ok = atoll_bench_file:close(Device, complete),
    File.

text(Text) when is_list(Text) -> unicode:characters_to_binary(Text);
text(Other) -> Other.

as(Change, From, To) ->
    ok = file:write_file(To, [[atoll_bench_json:encode(Change(Line)), $\n] || Line <- lines(From)]),
    To.

with_others(Share, #{<<"others_cpu">> := _} = Round) -> Round#{<<"others_cpu">> := Share};
with_others(_Share, Line) -> Line.

lines(File) ->
    {ok, Text} = file:read_file(File),
    [Read || Line <- binary:split(Text, <<"\n">>, [global, trim]), {ok, Read} <- [atoll_bench_json:decode(Line)]].

changed(#{<<"machine">> := #{<<"cores">> := Cores} = Machine} = Header) ->
    Header#{<<"machine">> := Machine#{<<"cores">> := Cores + 1}};
changed(#{<<"values">> := Values} = Round) ->
    Round#{<<"values">> := maps:map(fun(_, V) -> 5 * V end, Values)};
changed(Line) ->
    Line.

other_files_are_told(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "later.jsonl"),
    ok = file:write_file(File, "{\"atoll_bench\":9}\n"),
    #{status := 2, stderr := Said} = atoll_cli_line:run(Dir, ["bench", "report", File]),
    ?assertMatch({_, _}, binary:match(Said, <<"of version 9, and only version 1 can be read">>)).

%% By short turns on one cluster, each first in every other one: the machine may be
%% busy, but it is for both. What counts is the median of the turns' ratios; there are
%% turns until it is known on which side of the tolerance it is.
dist_agrees_with_a_loop_of_its_own(_) ->
    _ = ct:timetrap({minutes, 20}),
    [agrees(Kind, Size) || {Kind, Size} <- [{ping_pong, 100}, {ping_pong, 65536}, {request, 1024}]].

agrees(Kind, Size) ->
    {ok, #{cluster := Cluster} = Setup} = atoll_bench_dist:setup(#{kind => Kind, rtt => 0, actors => 1, size => Size, system => stock}),
    State = Setup#{ms := ?TURN_MS},
    try
        [Here, There] = atoll_cluster:nodes(Cluster),
        Echo = atoll_cluster:call(Cluster, There, erlang, spawn, [fun echo/0]),
        Theirs = fun() ->
            {ok, #{ops_per_s := Ops, mb_per_s := Mb, latency := Latency}, _} = atoll_bench_dist:round(State),
            ?assert(abs(Mb / (Ops * Size / 1.0e6) - 1) < 0.001),
            {Ops, atoll_histogram:percentile(Latency, 50)}
        end,
        Ours = fun() ->
            Loop = fun() -> ping(Kind, Echo, Size) end,
            atoll_cluster:call(Cluster, Here, erlang, apply, [Loop, []], 30000)
        end,
        _ = [{Theirs(), Ours()} || _ <- lists:seq(1, 3)],
        [
            ?assert(abs(median(Ratios) - 1) =< ?TOLERANCE, {Kind, Size, Of, length(Ratios), interval(Ratios)})
         || {Of, Ratios} <- turns(1, Theirs, Ours, [])
        ]
    after
        ok = atoll_bench_dist:teardown(Setup)
    end.

turns(N, Theirs, Ours, Before) ->
    Turns = [turn(N, Theirs, Ours) | Before],
    Ratios = [
        {ops, [Their / Our || {{Their, _}, {Our, _}} <- Turns]}, {latency, [Their / Our || {{_, Their}, {_, Our}} <- Turns]}
    ],
    case N >= ?TURNS_MAX orelse (N >= ?TURNS_MIN andalso lists:all(fun({_, Rs}) -> is_known(interval(Rs)) end, Ratios)) of
        true -> Ratios;
        false -> turns(N + 1, Theirs, Ours, Turns)
    end.

is_known({Low, High}) ->
    (Low >= 1 - ?TOLERANCE andalso High =< 1 + ?TOLERANCE) orelse High < 1 - ?TOLERANCE orelse Low > 1 + ?TOLERANCE.

%% Where the median is, with 99%: by the ranks that a binomial distribution leaves it.
interval(Values) ->
    N = length(Values),
    Rank = max(1, trunc(N / 2 - 1.29 * math:sqrt(N))),
    Sorted = lists:sort(Values),
    {lists:nth(Rank, Sorted), lists:nth(N + 1 - Rank, Sorted)}.

turn(N, Theirs, Ours) when N rem 2 =:= 0 ->
    Their = Theirs(),
    {Their, Ours()};
turn(_, Theirs, Ours) ->
    Our = Ours(),
    {Theirs(), Our}.

median(Values) ->
    lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

echo() ->
    receive
        {ping_pong, From, Payload} ->
            From ! {back, Payload},
            echo();
        {request, From, _Payload} ->
            From ! {back, <<>>},
            echo()
    end.

%% Round trips a second, and the median of their times in nanoseconds.
ping(Kind, Echo, Size) ->
    Payload = rand:bytes(Size),
    Begin = erlang:monotonic_time(nanosecond),
    Times = pings({Kind, self(), Payload}, Echo, Begin, Begin + ?TURN_MS * 1000000, []),
    {length(Times) * 1.0e9 / lists:sum(Times), median(Times)}.

pings(Message, Echo, At, Until, Times) when At < Until ->
    Echo ! Message,
    receive
        {back, _} -> ok
    end,
    Now = erlang:monotonic_time(nanosecond),
    pings(Message, Echo, Now, Until, [Now - At | Times]);
pings(_Message, _Echo, _At, _Until, Times) ->
    Times.

overlay_measures_what_a_cluster_is_known_to_have(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "run.jsonl"),
    {Nodes, Seconds, Overlays} =
        case atoll_tier:tier() of
            fast -> {3, "1", [<<"bare">>, <<"hyparview">>]};
            deep -> {5, "2", [<<"bare">>, <<"stock">>, <<"mesh">>, <<"hyparview">>]}
        end,
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, [
        "bench", "run", "overlay", "--nodes", integer_to_list(Nodes), "--overlay", commas(Overlays), "--seconds", Seconds, "--broadcasts", "7",
        "--rounds", "1", "--out", File, "--json"
    ]),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)),
    {ok, #{<<"status">> := <<"complete">>, <<"rows">> := Rows}} = atoll_bench_json:decode(Json),
    Of = maps:from_list([{Overlay, Row} || #{<<"overlay">> := Overlay} = Row <- Rows]),
    ?assertEqual(lists:sort(Overlays), maps:keys(Of)),
    #{<<"bare">> := Bare, <<"hyparview">> := HyParView} = Of,
    Meshes = maps:values(maps:with([<<"stock">>, <<"mesh">>], Of)),
    Beating = maps:values(maps:with([<<"mesh">>, <<"hyparview">>], Of)),
    %% Who is on its own has nothing to say to anybody.
    [?assert(maps:get(Key, Bare) == 0) || Key <- [<<"neighbours">>, <<"connections">>, <<"bytes_per_s">>, <<"messages_per_s">>]],
    ?assertMatch(#{<<"joined_ms">> := null}, Bare),
    [?assert(maps:get(Key, Row) == Nodes - 1) || Row <- Meshes, Key <- [<<"neighbours">>, <<"connections">>]],
    #{<<"neighbours">> := Few} = HyParView,
    ?assert(Few >= 1 andalso Few =< Nodes - 1),
    #{<<"memory_kib">> := Least} = Bare,
    [
        begin
            #{<<"join_ms">> := First, <<"joined_ms">> := All, <<"killed_ms">> := Killed} = Row,
            ?assert(0 < First andalso First =< All andalso 0 < Killed),
            #{<<"memory_kib">> := Memory, <<"cpu_us_per_s">> := Cpu, <<"pss_kib">> := Pss} = Row,
            ?assert(Memory > Least andalso Cpu > 0 andalso Pss > 0)
        end
     || Row <- maps:values(maps:remove(<<"bare">>, Of))
    ],
    %% Atoll's detector beats; stock distribution is silent for seconds on end.
    [?assert(0 < maps:get(<<"messages_per_s">>, Row)) || Row <- Beating],
    [?assert(maps:get(<<"messages_per_s">>, Row) < maps:get(<<"bytes_per_s">>, Row)) || Row <- Beating],
    {ok, #{rounds := Rounds}} = atoll_bench_file:read(File),
    %% Each node is kept, and each broadcast.
    [
        ?assertEqual({Name, Nodes}, {Name, length(Samples)})
     || #{<<"samples">> := Each} <- Rounds, {Name, Samples} <- maps:to_list(Each)
    ],
    ?assertEqual(
        [7 || _ <- tl(Overlays)],
        [atoll_histogram:count(Hist) || #{<<"histograms">> := #{<<"broadcast">> := E}} <- Rounds, {ok, Hist} <- [atoll_histogram:import(E)]]
    ).
