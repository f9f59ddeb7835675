%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_knee_curves_tests).

-include_lib("eunit/include/eunit.hrl").

run(Name, Points, Rounds) -> run(Name, Points, Rounds, []).

run(Name, Points, Rounds, Failed) ->
    #{
        file => Name,
        header => #{
            <<"benchmark">> => <<"debench">>,
            <<"parameters">> => [#{<<"name">> => N} || N <- [<<"nodes">>, <<"global">>, <<"system">>]],
            <<"points">> => [#{<<"nodes">> => N, <<"global">> => G, <<"system">> => S} || {N, G, S} <- Points]
        },
        rounds => [
            #{
                <<"point">> => P, <<"values">> => #{<<"goodput_percent">> => V}, <<"histograms">> => #{},
                <<"others_cpu">> => O
            }
         || {P, V, O} <- Rounds
        ],
        errors => [#{<<"point">> => P, <<"error">> => <<"names did not go">>} || P <- Failed],
        status => complete
    }.

key(Global, System) -> [{<<"global">>, Global}, {<<"system">>, System}].

points_that_differ_in_their_nodes_alone_are_a_curve_test() ->
    Points = [{8, 1, <<"mesh">>}, {4, 1, <<"mesh">>}, {4, 10, <<"mesh">>}],
    Run = run("a", Points, [{0, 80, 0.0}, {1, 100, 0.0}, {1, 90, 0.0}, {2, 50, 0.0}]),
    ?assertEqual(
        {ok, [{key(1, <<"mesh">>), [{4, [1.0, 0.9]}, {8, [0.8]}]}, {key(10, <<"mesh">>), [{4, [0.5]}]}]},
        atoll_bench_knee_curves:of_runs([Run])
    ).

files_are_taken_together_test() ->
    Runs = [
        run("a", [{4, 1, <<"mesh">>}], [{0, 100, 0.0}]),
        run("b", [{8, 1, <<"mesh">>}, {4, 1, <<"mesh">>}], [{0, 50, 0.0}, {1, 90, 0.0}])
    ],
    ?assertEqual({ok, [{key(1, <<"mesh">>), [{4, [1.0, 0.9]}, {8, [0.5]}]}]}, atoll_bench_knee_curves:of_runs(Runs)).

disturbed_rounds_count_only_where_there_are_no_others_test() ->
    Run = run("a", [{4, 1, <<"mesh">>}, {8, 1, <<"mesh">>}], [{0, 100, 0.0}, {0, 10, 0.5}, {1, 60, 0.5}]),
    ?assertEqual({ok, [{key(1, <<"mesh">>), [{4, [1.0]}, {8, [0.6]}]}]}, atoll_bench_knee_curves:of_runs([Run])),
    ?assertEqual({2, 3}, atoll_bench_knee_curves:disturbed([Run])).

a_point_without_a_round_is_left_out_test() ->
    Run = run("a", [{4, 1, <<"mesh">>}, {8, 1, <<"mesh">>}], [{0, 100, 0.0}]),
    ?assertEqual({ok, [{key(1, <<"mesh">>), [{4, [1.0]}]}]}, atoll_bench_knee_curves:of_runs([Run])).

of_a_closed_loop_there_is_no_curve_test() ->
    #{rounds := [Round]} = Run = run("a", [{4, 1, <<"mesh">>}], [{0, 100, 0.0}]),
    Closed = Run#{rounds := [Round#{<<"values">> := #{<<"goodput_per_s">> => 5000}}]},
    ?assertEqual({ok, []}, atoll_bench_knee_curves:knees([Closed], #{})).

a_point_that_failed_is_told_with_the_knee_of_the_others_test() ->
    Points = [{4, 1, <<"mesh">>}, {8, 1, <<"mesh">>}, {16, 1, <<"mesh">>}, {16, 10, <<"mesh">>}],
    Run = run("a", Points, [{0, 100, 0.0}, {1, 100, 0.0}], [2, 3]),
    Again = run("b", [{8, 1, <<"mesh">>}], [], [0]),
    ?assertEqual(
        {ok, [
            {key(1, <<"mesh">>), [{4, [1.0]}, {8, [1.0]}], #{verdict => none, up_to => 8}, [8, 16]},
            {key(10, <<"mesh">>), [], #{verdict => too_few}, [16]}
        ]},
        atoll_bench_knee_curves:knees([Run, Again], #{})
    ).

other_runs_are_a_sentence_test() ->
    #{header := Header} = Run = run("a", [], []),
    [
        begin
            {error, Error} = atoll_bench_knee_curves:of_runs([R]),
            ?assertEqual(Said, lists:flatten(io_lib:format("~ts", [atoll_bench_knee_curves:format_error(Error)])))
        end
     || {R, Said} <- [
            {Run#{header := Header#{<<"benchmark">> := <<"names">>}},
                "a: this is a run of names, and only one of debench has a knee"},
            {Run, "a: no round of this run is over"}
        ]
    ].
