%% SPDX-License-Identifier: Apache-2.0
%% What runs, what is stored of it, and the page.
-module(atoll_experiments_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONTEXT, #{size => full, orlib => none}).

all_of_it_takes_an_hour_and_a_half_at_most_test() ->
    ?assert(atoll_experiments:minutes(atoll_experiments:all(), full) =< 90).

the_whole_of_it_has_all_that_the_hour_has_test_() ->
    {timeout, 60, fun() ->
        Of = fun(Module, Size) -> maps:from_list([{Key, Sweep} || #{key := Key, do := {_, _, #{sweep := Sweep}}} <- atoll_experiments:asks(Module, #{size => Size, orlib => none})]) end,
        [
            ?assertEqual({Module, Key, Parameter, []}, {Module, Key, Parameter, Values -- map_get(Parameter, map_get(Key, Of(Module, whole)))})
         || Module <- atoll_experiments:all(), {Key, Sweep} <- maps:to_list(Of(Module, full)), {Parameter, Values} <- maps:to_list(Sweep)
        ],
        ?assert(atoll_experiments:minutes(atoll_experiments:all(), whole) > atoll_experiments:minutes(atoll_experiments:all(), full))
    end}.

names_and_keys_are_unique_and_what_is_asked_of_is_there_test() ->
    Names = atoll_experiments:names(),
    ?assertEqual(Names, lists:uniq(Names)),
    [
        begin
            Keys = [Key || #{key := Key} <- atoll_experiments:asks(Module, Context)],
            ?assertEqual(Keys, lists:uniq(Keys)),
            Full = [none | [Key || #{key := Key} <- Module:asks(?CONTEXT)]],
            ?assertEqual([], [From || #{from := From} <- Module:tables() ++ Module:questions()] -- lists:append(lists:duplicate(40, Full)))
        end
     || Module <- atoll_experiments:all(), Context <- [#{size => Size, orlib => none} || Size <- [full, whole, small]]
    ].

%% A sweep with a typing error in it would be found out after half an hour; and so would a question at a
%% point that nobody measures, or of a metric that there is not.
each_benchmark_would_take_its_sweep_and_has_what_is_asked_of_it_test_() ->
    [
        {lists:flatten(io_lib:format("~ts ~ts ~ts", [Experiment, Key, Size])), fun() ->
            {ok, Module} = case is_list(Bench) of true -> atoll_bench:find(Bench); false -> {ok, Bench} end,
            case atoll_bench:sweep(Module, Sweep) of
                {ok, Points} when Size =/= small ->
                    Metrics = [Name || #{name := Name} <- Module:metrics()],
                    [
                        begin
                            ?assertEqual([], metrics(maps:get(quantity, By)) -- Metrics),
                            [?assertMatch([_ | _], [P || P <- Points, maps:with(maps:keys(Place), P) =:= Place])
                             || At <- maps:get(at, By), Side <- [first, over], Place <- [maps:merge(At, map_get(Side, By))]]
                        end
                     || #{from := From, by := #{} = By} <- Experiment:questions(), From =:= Key
                    ],
                    ?assertEqual([], [M || #{from := From, quantity := Q} <- Experiment:tables(), From =:= Key, M <- metrics(Q)] -- lists:append(lists:duplicate(9, Metrics)));
                {ok, [_ | _]} ->
                    ok;
                %% Where no control groups can be made.
                {error, {point, _, _}} when Bench =:= "aco_place" ->
                    ok
            end
        end}
     || Experiment <- atoll_experiments:all(), Size <- [full, whole, small],
        #{key := Key, do := {How, Bench, #{sweep := Sweep}}} <- atoll_experiments:asks(Experiment, #{size => Size, orlib => none}), How =/= rows
    ].

metrics({What, Of}) when What =:= sum; What =:= product -> lists:append([metrics(Q) || Q <- Of]);
metrics({_, Of, _There}) -> metrics(Of);
metrics(Metric) -> [Metric].

%% What decides that two variants differ takes so many starts, each with a round; a factor takes one more.
what_is_to_be_decided_is_started_often_enough_test() ->
    [
        ?assert(min(Rounds, Starts) >= (case Kind of {differs, _} -> 5; knee -> 5; _ -> 6 end), {Experiment, Says})
     || Experiment <- atoll_experiments:all(),
        #{key := Key, do := {How, _, #{starts := Starts, rounds := Rounds}}} <- Experiment:asks(?CONTEXT), How =/= rows,
        #{from := From, kind := Kind, says := Says} <- Experiment:questions(), From =:= Key,
        Kind =/= counted
    ].

a_step_that_never_ends_is_ended_with_all_that_it_started_test() ->
    Self = self(),
    Ask = #{key => k, do => {rows, "waits", fun() ->
        spawn_link(fun() -> Self ! {child, self()}, receive after infinity -> ok end end),
        receive after infinity -> ok end
    end}},
    %% Long enough for it to begin.
    {error, Why} = atoll_experiments_step:run(Ask, "/nowhere", erlang:monotonic_time(millisecond) + 1000),
    ?assert(string:find(Why, "not done when the time") =/= nomatch),
    receive {child, Child} ->
        Ref = monitor(process, Child),
        receive {'DOWN', Ref, process, Child, _} -> ok after 10000 -> error(still_there) end
    after 10000 -> error(never_began)
    end.

a_step_that_crashes_is_a_sentence_test() ->
    Ask = #{key => k, do => {rows, "fails", fun() -> exit(oops) end}},
    {error, Why} = atoll_experiments_step:run(Ask, "/nowhere", erlang:monotonic_time(millisecond) + 60000),
    ?assert(string:find(Why, "oops") =/= nomatch).

what_fails_stands_on_the_page_and_the_rest_goes_on_test() ->
    in_a_folder(fun(Dir) ->
        {ok, #{page := Page, failed := 2, same := 1, not_so := 0}} =
            atoll_experiments:run([atoll_experiments_fake_long], #{dir => Dir, context => ?CONTEXT}),
        {ok, Text} = file:read_file(Page),
        [?assertMatch({_, _}, binary:match(Text, Part)) || Part <- [
            <<"- fails. It failed or was cut short, and what had been measured by then counts: a reason">>,
            <<"there is no benchmark \"fish\"">>,
            %% A bar would end the cell.
            <<"| Fake \\| one |">>, <<"**same**">>
        ]]
    end).

what_there_is_no_time_for_is_not_run_test() ->
    in_a_folder(fun(Dir) ->
        {ok, #{failed := 3, not_shown := 1}} = atoll_experiments:run([atoll_experiments_fake], #{dir => Dir, context => ?CONTEXT})
    end).

%% What a run of today would do is no matter, nor what is in the environment.
the_page_says_what_was_run_test() ->
    in_a_folder(fun(Dir) ->
        {ok, #{page := Page}} = atoll_experiments:run([atoll_experiments_fake_long], #{dir => Dir, context => #{size => small, orlib => none}}),
        {ok, Before} = file:read_file(Page),
        ?assertMatch({_, _}, binary:match(Before, <<"- works for small\n">>)),
        {ok, Stored} = file:read_file(filename:join(Dir, "run.json")),
        Other = binary:replace(Stored, <<"works for small">>, <<"works with other sizes">>),
        ok = file:write_file(filename:join(Dir, "run.json"), Other),
        {ok, _} = atoll_experiments:draw([atoll_experiments_fake_long], Dir),
        {ok, After} = file:read_file(Page),
        ?assertEqual(binary:replace(Before, <<"works for small">>, <<"works with other sizes">>), After)
    end).

%% What was measured before counts, and what there was earlier in the folder does not.
an_experiment_that_is_interrupted_is_told_as_such_test() ->
    in_a_folder(fun(Dir) ->
        Options = #{dir => Dir, context => ?CONTEXT},
        {ok, _} = atoll_experiments:run([atoll_experiments_fake_long], Options),
        Self = self(),
        {Pid, Ref} = spawn_monitor(fun() ->
            atoll_experiments:run([atoll_experiments_fake_long], Options#{say => fun
                (["  ", "fails"]) -> Self ! {done, works}, receive after infinity -> ok end;
                (_) -> ok
            end})
        end),
        receive {done, works} -> exit(Pid, kill) after 60000 -> error(late) end,
        receive {'DOWN', Ref, process, Pid, killed} -> ok end,
        {ok, #{page := Page, failed := 2, same := 1}} = atoll_experiments:draw([atoll_experiments_fake_long], Dir),
        {ok, Text} = file:read_file(Page),
        [?assertMatch({_, _}, binary:match(Text, Part)) || Part <- [<<"| interrupted, 1 min |">>, <<"- fails. It failed or was cut short, and what had been measured by then counts: it was interrupted">>]]
    end).

%% Every table of a run has its spread, its disturbed rounds, and what it could not have shown.
a_table_has_its_spread_and_what_it_could_not_have_shown_test() ->
    _ = rand:seed(exsss, 5),
    Run = atoll_experiments_made:run([
        {#{nodes => N, mode => Mode, space => 5000}, Start, #{wall_ms => Ms, cpu_ms => Ms, packets => Ms, memory_mb => Ms, connections_max => 3, connections_all => 6}, Others}
     || N <- [8, 16], Mode <- [mesh, groups], {Start, Ms} <- lists:enumerate(atoll_experiments_made:spread(6, 100, 0.05)),
        Others <- [case {N, Start} of {16, _} when Mode =:= groups -> 0.5; {_, 6} -> 0.9; _ -> 0.0 end]
    ]),
    Text = page(atoll_experiment_orbit, #{few => {run, Run}}),
    [?assertMatch({match, _}, re:run(Text, Part, [unicode])) || Part <- [
        %% Of five starts, less those that were disturbed; of what was always disturbed only in parentheses.
        "Time, ms:\n\n\\| nodes \\| mesh \\| groups \\|[^\n]*\n[^\n]*\n\\| 8 \\| [0-9.]+ \\[[0-9.]+–[0-9.]+\\] \\| [0-9.]+ \\[",
        "\\| 16 \\| [0-9.]+ \\[[0-9.]+–[0-9.]+\\] \\| \\([0-9.]+\\) \\|",
        "\\*6 starts; 9 of 24 rounds were disturbed, and are left out",
        "A difference from the first column is seen from a factor of 1\\.[0-9]+ on"
    ]].

page(Module, Results) ->
    Stored = #{<<"seconds">> => 1, <<"asks">> => [], <<"commit">> => null, <<"machine">> => maps:from_list([{atom_to_binary(K), V} || {K, V} <- maps:to_list(atoll_bench_machine:describe())])},
    unicode:characters_to_binary(atoll_experiments_page:markdown(#{<<"size">> => <<"full">>}, [#{
        about => Module:about(), stored => Stored, tables => Module:tables(), results => Results,
        findings => atoll_experiments_judge:findings(Module:questions(), Results), runs => []
    }])).

a_page_needs_results_test() ->
    in_a_folder(fun(Dir) ->
        {error, Error} = atoll_experiments:draw(Dir),
        ?assert(string:find(atoll_experiments:format_error(Error), Dir) =/= nomatch),
        %% Those of an older form do not say what was run.
        ok = file:write_file(filename:join(Dir, "run.json"), "{\"size\":\"full\"}"),
        ?assertMatch({error, {no_results, _}}, atoll_experiments:draw(Dir)),
        %% One that has lost its size takes new results.
        ok = file:write_file(filename:join(Dir, "run.json"), "{\"version\":2,\"experiments\":{}}"),
        ?assertEqual(ok, atoll_experiments:check(Dir, small))
    end).

in_a_folder(Fun) ->
    Dir = atoll_test_file:temporary("atoll-experiments"),
    ok = file:make_dir(Dir),
    try
        Fun(Dir)
    after
        ok = file:del_dir_r(Dir)
    end.
