%% Each verdict hangs on the numbers: made-up ones of which the same is true as in the paper, and
%% others of which it is not.
-module(atoll_experiments_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_experiments_made, [run/2, json/1]).

orbit_test() ->
    ?assertEqual([true, true, unknown, unknown, unknown], holds(orbit([{4, 3, 100}, {9, 12, 200}]))),
    %% Groups with more of a mesh's connections the more nodes there are, and faster than the mesh.
    ?assertEqual([false, false, unknown, unknown, unknown], holds(orbit([{4, 3, 50}, {9, 36, 50}]))).

orbit(Groups) ->
    Metrics = [connections_all, connections_max, packets, memory_mb, wall_ms, cpu_ms],
    Mesh = [{#{nodes => N, mode => mesh}, [N * (N - 1) / 2, N - 1, 10, 10, 90, 10]} || {N, _, _} <- Groups],
    Others = [{#{nodes => N, mode => groups}, [C, 2, 10, 10, Ms, 10]} || {N, C, Ms} <- Groups],
    atoll_experiment_orbit:verdict(#{few => {ok, run(Metrics, Mesh ++ Others)}}).

a_mesh_that_is_none_is_told_test() ->
    Metrics = [connections_all, wall_ms],
    Points = [{#{nodes => N, mode => Mode}, [5, 1]} || N <- [4, 9], Mode <- [mesh, groups]],
    ?assertMatch([_, false | _], holds(atoll_experiment_orbit:verdict(#{few => {ok, run(Metrics, Points)}}))).

optimum_test() ->
    Of = fun(Set, Bests) ->
        holds(atoll_experiment_optimum:verdict(#{solved => {ok, json(#{
            set => Set, problems => 5, tried => [#{best => Best, optimum => 10, ms => 1} || Best <- Bests]
        })}}))
    end,
    ?assertEqual([true], Of(<<"wt40">>, [10, 10, 10, 10, 12])),
    ?assertEqual([false], Of(<<"wt40">>, [10, 10, 10, 11, 12])),
    %% Four of five must be reached, and not of those alone for which there was time.
    ?assertEqual([false], Of(<<"wt40">>, [10, 10, 10])),
    ?assertEqual([false], Of(<<"wt40">>, [10, 10, 10, 10, 9])),
    ?assertEqual([unknown], Of(<<"made">>, [10, 10, 10, 10, 10])),
    ?assertEqual([false], Of(<<"made">>, [10, 10, 10, 10, 9])).

traffic_test() ->
    Of = fun(Packets, Connections) ->
        Runs = [
            #{mode => Mode, nodes => 16, wall_ms => 125000, packets_sent => P, connections_all => C, connections_max => C, names => 0, best => 1}
         || {Mode, P, C} <- lists:zip3([sr, ml, gr], Packets, Connections)
        ],
        holds(atoll_experiment_traffic:verdict(#{packets => {ok, json(Runs)}}))
    end,
    ?assertEqual([true, true], Of([1, 2, 3], [10, 20, 20])),
    ?assertEqual([false, true], Of([2, 1, 3], [10, 20, 20])),
    ?assertEqual([false, false], Of([1, 3, 2], [20, 20, 20])),
    ?assertEqual([unknown, true], Of([1, 2, unknown], [10, 20, 20])).

a_version_that_failed_is_a_row_test() ->
    Runs = [#{mode => Mode, nodes => 16, failed => <<"no way">>} || Mode <- [sr, ml, gr]],
    #{tables := [#{rows := Rows}]} = Verdict = atoll_experiment_traffic:verdict(#{packets => {ok, json(Runs)}}),
    ?assertEqual(3, length(Rows)),
    ?assert(string:find(unicode:characters_to_list(Rows), "no way") =/= nomatch),
    ?assertEqual([unknown, unknown], holds(Verdict)).

chaos_test() ->
    Seeds = lists:seq(1, 5),
    Fine = [ended(Mode, Chaos, Seed, 100, 1000) || Mode <- [gr, sr], Chaos <- [0, 1], Seed <- Seeds],
    Failed = #{mode => ml, chaos => 1, seed => 1, failed => <<"lost">>},
    Lost = [#{mode => gr, lost => What, rounds => 20, nodes_lost => N, restarts => 1, best => 7, wall_ms => 10} || {What, N} <- [{none, 0}, {colony, 1}]],
    Of = fun(Storm, Ml, Nodes) ->
        Results = #{storm => {ok, json(Storm)}, unreliable => {ok, json(Ml)}, lost => {ok, json(Nodes)}},
        lists:droplast(holds(atoll_experiment_chaos:verdict(Results)))
    end,
    ?assertEqual([true, true, true, true, true], Of(Fine, [Failed], Lost)),
    %% One run of GR that ended before its time, schedules of SR that are worse, and slower.
    One = [R || #{mode := gr, chaos := 1, seed := 1} = R <- Fine],
    Short = (Fine -- One) ++ [#{mode => gr, chaos => 1, seed => 1, failed => <<"it failed">>}],
    ?assertMatch([false, true, true, true, true], Of(Short, [Failed], Lost)),
    Worse = [case R of #{mode := sr, chaos := 1} -> R#{best := 101, wall_ms := 2000}; _ -> R end || R <- Fine],
    ?assertMatch([true, false, false, true, true], Of(Worse, [Failed], Lost)),
    %% ML that got through; a node that was not lost; a schedule that changed.
    ?assertMatch([_, _, _, false, _], Of(Fine, [ended(ml, 1, 1, 100, 1000)], Lost)),
    ?assertMatch([_, _, _, _, false], Of(Fine, [Failed], [L#{nodes_lost := 0} || L <- Lost])),
    ?assertMatch([_, _, _, _, false], Of(Fine, [Failed], [(hd(Lost))#{best := 8} | Lost])),
    %% Nobody was killed: nothing was survived.
    ?assertMatch([false, false | _], Of([R#{kills := 0} || R <- Fine], [Failed], Lost)).

orbit_without_a_node_is_to_find_the_same_set_test() ->
    Of = fun(Runs) -> lists:last(holds(atoll_experiment_chaos:verdict(#{orbit => {ok, json(Runs)}}))) end,
    Whole = #{lost => gateway, size => 7},
    ?assertEqual(unknown, Of([])),
    ?assertEqual(true, Of([Whole, Whole#{lost := member}])),
    ?assertEqual(false, Of([Whole, Whole#{size := 8}])),
    ?assertEqual(false, Of([Whole, #{lost => member, failed => <<"why">>}])).

ended(Mode, Chaos, Seed, Best, Ms) ->
    #{mode => Mode, chaos => Chaos, seed => Seed, best => Best, rounds => 20, kills => 3 * Chaos, restarts => 2 * Chaos, wall_ms => Ms}.

weak_test() ->
    %% The time on eight nodes, and on sixteen.
    Of = fun(Few, Many) ->
        Metrics = [wall_ms, build_ms, cost],
        Points = [
            {#{nodes => N, mode => Mode}, [Ms - 1, 1, 7]}
         || {N, Times} <- [{8, Few}, {16, Many}], {Mode, Ms} <- lists:zip([sr, ml, gr], Times)
        ],
        holds(atoll_experiment_weak:verdict(#{versions => {ok, run(Metrics, Points)}}))
    end,
    ?assertEqual([true, true, true, true], Of([10, 11, 12], [10, 20, 30])),
    %% The slowest of all, and the one that grows least.
    ?assertEqual([true, true, false, true], Of([100, 11, 12], [110, 20, 30])),
    ?assertEqual([true, false, true, true], Of([10, 15, 20], [18, 20, 30])),
    ?assertEqual([false, false, true, true], Of([10, 20, 11], [11, 50, 12])).

place_test() ->
    Of = fun(Times) ->
        Metrics = [run_ms, least_percent, slow_colonies, best],
        Points = lists:append([
            [{#{ants => N, order => random}, [Blind, 4, 25, 7]}, {#{ants => N, order => attributes}, [100, 16, 0, 7]}]
         || {N, Blind} <- Times
        ]),
        holds(atoll_experiment_place:verdict(#{unequal => {ok, run(Metrics, Points)}}))
    end,
    %% Expected is 16 / 4.
    ?assertEqual([true, true, true], Of([{1, 150}, {80, 330}])),
    ?assertEqual([true, true, true], Of([{1, 150}, {80, 480}])),
    ?assertEqual([false, true, true], Of([{1, 150}, {80, 310}])),
    ?assertEqual([false, false, true], Of([{1, 700}, {80, 490}])),
    %% Beyond some ants it falls.
    ?assertEqual([true, false, true], Of([{1, 180}, {5, 360}, {20, 440}, {80, 360}])).

%% The rounds of two numbers of ants overlap: that it falls from one to the other is nothing.
a_fall_within_the_rounds_is_none_test() ->
    Of = fun(Times) ->
        Points = lists:append([
            [{#{ants => N, order => random}, [Ms, 4, 25, 7]} || Ms <- Blind] ++ [{#{ants => N, order => attributes}, [100, 16, 0, 7]}]
         || {N, Blind} <- Times
        ]),
        #{claims := [_, #{holds := Holds, why := Why} | _]} =
            atoll_experiment_place:verdict(#{unequal => {ok, run([run_ms, least_percent, slow_colonies, best], Points)}}),
        {Holds, unicode:characters_to_list(Why)}
    end,
    ?assertEqual({true, "Its median grows up to 20 ants, and not from there on."}, Of([{1, [170, 190]}, {20, [380, 480]}, {80, [370, 390]}])),
    ?assertEqual({true, ""}, Of([{1, [170, 190]}, {80, [370, 390]}])),
    ?assertMatch({false, _}, Of([{1, [170, 190]}, {20, [400, 480]}, {80, [370, 390]}])),
    ?assertMatch({unknown, _}, Of([{1, [170, 190]}, {80, [180, 390]}])).

what_overlaps_is_not_less_test() ->
    [A, B, C] = [atoll_experiments_spread:of_samples(Samples) || Samples <- [[1, 2, 3], [3, 4], [5]]],
    ?assertEqual([unknown, true, false], [atoll_experiments_spread:below(X, Y) || {X, Y} <- [{A, B}, {B, C}, {C, A}]]),
    ?assertEqual([unknown, true, false], [atoll_experiments_spread:ordered(L) || L <- [[A, B, C], [A, C], [A, C, B]]]),
    ?assertEqual([true, unknown, false, unknown], [atoll_experiments_spread:least(X, L) || {X, L} <- [{A, [C]}, {A, [B, C]}, {C, [A, C]}, {A, [none]}]]),
    ?assertEqual({2.5, 4 / 4, 8 / 2}, atoll_experiments_spread:ratio({7.5, 4, 8}, {3, 2, 4})),
    ?assertEqual("5", lists:flatten(unicode:characters_to_list(atoll_experiments_spread:said(C)))).

%% Where the knee is takes a bootstrap for each curve.
debench_test_() ->
    {timeout, 120, fun() ->
        %% Beyond eight nodes nothing is added in the mesh; with more global operations from five on.
        Knees = fun
            (_, 0, _) -> 100;
            (groups, _, _) -> 100;
            (mesh, 1, N) -> 100 * min(8, N) / N;
            (mesh, 10, N) -> 100 * min(5, N) / N
        end,
        ?assertEqual([true, true, true, true, true], holds(debench(Knees))),
        ?assertMatch([false, false | _], holds(debench(fun(mesh, _, _) -> 100; (groups, _, N) -> 100 * min(8, N) / N end)))
    end}.

debench(Percent) ->
    Metrics = [goodput_percent, messages_per_op, cpu_us_per_op, register, p2p],
    Points = [
        {#{nodes => N, global => Share, system => System, offered => 100, group_size => 4, packet_size => 1000},
            [Percent(System, Share, N), 2 + Share * case System of mesh -> N; groups -> 4 end / 100, 1, case System of mesh -> N; groups -> 1 end, 1]}
     || N <- [4, 8, 16, 32], Share <- [0, 1, 10], System <- [mesh, groups]
    ],
    #{header := Header} = Run = run(Metrics, Points),
    Named = Run#{header := Header#{<<"benchmark">> => <<"debench">>, <<"variant">> => <<"system">>}},
    atoll_experiment_debench:verdict(#{load => {ok, Named}}).

beyond_test() ->
    Tree = fun(Mode, N, Connections, Names) ->
        #{nodes => N, mode => Mode, messages => N, connections => Connections, connections_max => 1, groups => 1, names_held => Names}
    end,
    Name = fun(N, Messages) -> #{nodes => N, names => 20, yes => 20, links => 1, messages_per_name => Messages, answer_ms_p50 => 1} end,
    Of = fun(Groups, Messages) ->
        Trees = lists:append([[Tree(ml, N, N * N, 0), Tree(gr, N, N * N, N * N), Tree(sr, N, Groups(N), Groups(N))] || N <- [100, 10000]]),
        holds(atoll_experiment_beyond:verdict(#{tree => {ok, json(Trees)}, names => {ok, json([Name(10, 20), Name(100, Messages)])}, reach => {error, "no"}}))
    end,
    ?assertEqual([true, true, true, unknown], Of(fun(N) -> 8 * N end, 200)),
    ?assertEqual([false, false, false, unknown], Of(fun(N) -> N * N end, 2000)).

holds(#{claims := Claims}) -> [Holds || #{holds := Holds} <- Claims].
