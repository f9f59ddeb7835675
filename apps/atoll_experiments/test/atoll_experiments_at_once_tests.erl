%% SPDX-License-Identifier: Apache-2.0
-module(atoll_experiments_at_once_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DEADLINE_MS, 30000).

all_points_are_measured_at_the_same_time_in_each_start_with_a_seed_of_its_own_test_() ->
    {timeout, 60, fun() ->
        true = register(waiting, self()),
        Dir = atoll_test_file:temporary("atoll-at-once"),
        ok = file:make_dir(Dir),
        try
            File = filename:join(Dir, "run.jsonl"),
            {Pid, Ref} = spawn_monitor(fun() ->
                exit({done, atoll_experiments_at_once:run(atoll_experiments_waiting, #{sweep => #{}, starts => 3, file => File, command => "by hand"})})
            end),
            [
                begin
                    %% Neither goes on before both have begun.
                    Begun = lists:sort([begun(), begun()]),
                    ?assertMatch([{a, _}, {b, _}], Begun),
                    _ = [Who ! {waiting, go_on} || {_, Who} <- Begun]
                end
             || _ <- [1, 2, 3]
            ],
            Failed = receive {'DOWN', Ref, process, Pid, {done, {ok, #{failed := F}}}} -> F after ?DEADLINE_MS -> error(late) end,
            ?assertEqual([{#{who => broken}, "it is broken"}, {#{who => failing}, "it fails"}], lists:sort(Failed)),
            {ok, #{status := complete, rounds := Rounds, errors := Errors, header := Header}} = Read = atoll_bench_file:read(File),
            ?assertMatch(#{<<"starts">> := 3, <<"command">> := <<"by hand">>}, Header),
            ?assertEqual(2, length(Errors)),
            ?assertEqual([{S, Who, S} || S <- [1, 2, 3], Who <- [<<"a">>, <<"b">>]],
                lists:sort([{S, Said, V} || #{<<"start">> := S, <<"said">> := Said, <<"values">> := #{<<"start">> := V}} <- Rounds])),
            ?assertEqual({6, 6}, {length(Rounds), length(atoll_experiments_samples:rows({run, element(2, Read)}))}),
            %% All that was set up is taken down: the failing one once, since it is left out after that.
            ?assertEqual([a, a, a, b, b, b, failing], lists:sort(down()))
        after
            true = unregister(waiting),
            ok = file:del_dir_r(Dir)
        end
    end}.

begun() -> receive {Pid, begun, Who} -> {Who, Pid} after ?DEADLINE_MS -> error(never_began) end.

down() -> receive {down, Who} -> [Who | down()] after 0 -> [] end.
