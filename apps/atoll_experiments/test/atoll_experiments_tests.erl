-module(atoll_experiments_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONTEXT, #{size => full, orlib => none}).

all_of_it_takes_less_than_half_an_hour_test() ->
    ?assert(atoll_experiments:minutes(atoll_experiments:all()) < 30).

names_and_the_keys_of_steps_are_unique_test() ->
    Names = atoll_experiments:names(),
    ?assertEqual(Names, lists:uniq(Names)),
    [
        begin
            Keys = [Key || #{key := Key} <- Module:steps(Context)],
            ?assertEqual(Keys, lists:uniq(Keys))
        end
     || Module <- atoll_experiments:all(), Context <- [?CONTEXT, #{size => small, orlib => none}]
    ].

%% A sweep with a typing error in it would be found out after half an hour.
each_benchmark_would_take_its_sweep_test_() ->
    [
        {lists:flatten(io_lib:format("~ts ~ts", [Name, Key])), fun() ->
            {ok, Module} = atoll_bench:find(Name),
            case atoll_bench:sweep(Module, Sweep) of
                {ok, [_ | _]} -> ok;
                %% Where no control groups can be made.
                {error, {point, _, _}} when Name =:= "aco_place" -> ok
            end
        end}
     || Experiment <- atoll_experiments:all(), Size <- [full, small],
        #{key := Key, run := {bench, Name, #{sweep := Sweep}}} <- Experiment:steps(#{size => Size, orlib => none})
    ].

where_nothing_was_measured_nothing_is_claimed_test() ->
    [
        begin
            Failed = maps:from_list([{Key, {error, "it failed"}} || #{key := Key} <- Module:steps(?CONTEXT)]),
            [
                begin
                    #{claims := [_ | _] = Claims} = Module:verdict(Results),
                    ?assertEqual([unknown], lists:usort([Holds || #{holds := Holds} <- Claims])),
                    ?assertEqual(["Nothing was measured."], lists:usort([lists:flatten(Here) || #{here := Here} <- Claims]))
                end
             || Results <- [#{}, Failed]
            ]
        end
     || Module <- atoll_experiments:all()
    ].

a_step_that_never_ends_is_ended_with_all_that_it_started_test() ->
    Self = self(),
    Step = #{key => k, says => "waits", run => {job, fun() ->
        spawn_link(fun() -> Self ! {child, self()}, receive after infinity -> ok end end),
        receive after infinity -> ok end
    end}},
    %% Long enough for it to begin.
    {error, Why} = atoll_experiments_step:run(Step, "/nowhere", erlang:monotonic_time(millisecond) + 1000),
    ?assert(string:find(Why, "not done when the time") =/= nomatch),
    receive {child, Child} ->
        Ref = monitor(process, Child),
        receive {'DOWN', Ref, process, Child, _} -> ok after 10000 -> error(still_there) end
    after 10000 -> error(never_began)
    end.

a_step_that_crashes_is_a_sentence_test() ->
    Step = #{key => k, says => "fails", run => {job, fun() -> exit(oops) end}},
    {error, Why} = atoll_experiments_step:run(Step, "/nowhere", erlang:monotonic_time(millisecond) + 60000),
    ?assert(string:find(Why, "oops") =/= nomatch).

a_verdict_that_crashes_is_a_sentence_test() ->
    {failed, Why} = atoll_experiments_step:judged(atoll_experiments_no_such_module, #{}),
    ?assert(string:find(lists:flatten(Why), "undef") =/= nomatch).

what_fails_stands_on_the_page_and_the_rest_goes_on_test() ->
    in_a_folder(fun(Dir) ->
        {ok, #{page := Page, failed := 2, same := 1, not_so := 0}} =
            atoll_experiments:run([atoll_experiments_fake_long], #{dir => Dir, context => ?CONTEXT}),
        {ok, Text} = file:read_file(Page),
        [?assertMatch({_, _}, binary:match(Text, Part)) || Part <- [
            <<"It did; and a reason">>, <<"- fails: a reason">>, <<"there is no benchmark \"fish\"">>,
            %% A bar would end the cell.
            <<"| Fake \\| one |">>, <<"**same**">>
        ]]
    end).

what_there_is_no_time_for_is_not_run_test() ->
    in_a_folder(fun(Dir) ->
        {ok, #{failed := 3, not_shown := 1}} = atoll_experiments:run([atoll_experiments_fake], #{dir => Dir, context => ?CONTEXT})
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
        {ok, #{page := Page, failed := 2, same := 1}} =
            atoll_experiments:draw([atoll_experiments_fake_long], Dir, ?CONTEXT),
        {ok, Text} = file:read_file(Page),
        [?assertMatch({_, _}, binary:match(Text, Part)) || Part <- [<<"| interrupted, 1 min |">>, <<"- fails: it was not run">>]]
    end).

%% A run that was cut short has a file, which counts, and is told all the same.
a_run_that_was_cut_short_is_told_test() ->
    in_a_folder(fun(Dir) ->
        ok = write(Dir, "run.json", #{size => full, machine => atoll_bench_machine:describe()}),
        ok = write(Dir, "orbit.json", #{seconds => 1}),
        Header = #{benchmark => orbit, variant => mode, points => [#{nodes => 4, mode => mesh}], metrics => [], parameters => [#{name => nodes}, #{name => mode}], rounds => 1},
        {ok, File} = atoll_bench_file:create(filename:join(Dir, "orbit-few.jsonl"), Header),
        ok = atoll_bench_file:close(File, partial),
        Of = fun() -> {ok, #{page := Page}} = atoll_experiments:draw([atoll_experiment_orbit], Dir, ?CONTEXT), {ok, Text} = file:read_file(Page), Text end,
        ?assertMatch({_, _}, binary:match(Of(), <<"--nodes 4,8,16 --space 5000 --workers 4 --rounds 5 --starts 1: it was interrupted">>)),
        ok = write(Dir, "orbit-few.json", #{error => <<"no time">>}),
        ?assertMatch({_, _}, binary:match(Of(), <<"--nodes 4,8,16 --space 5000 --workers 4 --rounds 5 --starts 1: no time">>))
    end).

write(Dir, Name, Term) ->
    file:write_file(filename:join(Dir, Name), atoll_bench_json:encode(Term)).

a_page_needs_results_test() ->
    in_a_folder(fun(Dir) ->
        {error, Error} = atoll_experiments:draw(Dir, ?CONTEXT),
        ?assert(string:find(atoll_experiments:format_error(Error), Dir) =/= nomatch)
    end).

in_a_folder(Fun) ->
    Dir = atoll_test_file:temporary("atoll-experiments"),
    ok = file:make_dir(Dir),
    try
        Fun(Dir)
    after
        ok = file:del_dir_r(Dir)
    end.
