%% @doc ACO while processes are killed, and nodes (section VIII.ii, Reliability); and Orbit, which
%% has nothing that recovers.
-module(atoll_experiment_chaos).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [claim/5]).
-import(atoll_experiments_data, [number/1]).

-define(NODES, 8).
%% Enough for three levels: the second node has submasters, the last one a colony.
-define(NODES_TO_LOSE, 11).
-define(ROUNDS, 20).
-define(PACE_MS, 150).
%% A node is killed when this round is over.
-define(LOST_AFTER, 5).
%% Orbit takes many times as long as it is left alone.
-define(ORBIT_NODES, 6).
-define(ORBIT_SPACE, 100000).
-define(ORBIT_LOST_MS, 2500).
-define(ORBIT_RUN_MS, 120000).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => chaos,
        title => "Chaos",
        question => "Do the reliable versions of ACO come to the same result when processes are killed all the time, and when nodes are lost?",
        minutes => 3,
        cannot => "that a lost host is survived: all nodes are on one. A node is killed as a host would fail (SIGKILL to its process), but the kernel still "
            "closes its sockets, so the others hear of it at once."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := Size}) ->
    Seeds = case Size of full -> 20; small -> 1 end,
    [
        #{
            key => storm,
            says => io_lib:format("GR and SR (degree 2) on ~b nodes, seeds 1 to ~b, each with and without a kill per second on every node: ~b rounds, one each ~b ms",
                [?NODES, Seeds, ?ROUNDS, ?PACE_MS]),
            run => {job, fun() -> {ok, storm(Seeds)} end}
        },
        #{
            key => unreliable,
            says => io_lib:format("ML on ~b nodes in the same storm, ~b times", [?NODES, tries(Size)]),
            run => {job, fun() -> {ok, runs(ml, 1, lists:seq(1, tries(Size)))} end}
        }
    ] ++ [
        Step
     || Size =:= full,
        Step <- [
            #{
                key => lost,
                says => io_lib:format("GR and SR on ~b nodes; after round ~b a colony's node is killed, the node of submasters, both at once, or none", [?NODES_TO_LOSE, ?LOST_AFTER]),
                run => {job, fun() -> {ok, lost()} end}
            },
            #{
                key => orbit,
                says => io_lib:format("Orbit (g124 over ~b) in groups of three on ~b nodes; ~b ms after its start a gateway, or another node, is killed",
                    [?ORBIT_SPACE, ?ORBIT_NODES, ?ORBIT_LOST_MS]),
                run => {job, fun() -> {ok, [orbit(What) || What <- [gateway, member]]} end}
            }
        ]
    ].

tries(full) -> 3;
tries(small) -> 1.

storm(Seeds) ->
    lists:append(atoll_experiments_aco:parallel([
        fun() -> runs(Mode, Chaos, lists:seq(1, Seeds)) end || Mode <- [gr, sr], Chaos <- [0, 1]
    ])).

%% On one cluster, one seed after the other.
runs(Mode, Chaos, Seeds) ->
    Run = fun(Cluster) -> [atoll_experiments_aco:run(Cluster, spec(Mode, Chaos, Seed)) || Seed <- Seeds] end,
    Answers = case atoll_experiments_aco:cluster(Mode, ?NODES, Run) of
        {error, _} = Error -> [Error || _ <- Seeds];
        All -> All
    end,
    [
        maps:merge(#{mode => Mode, chaos => Chaos, seed => Seed}, atoll_experiments_aco:figures(Answer))
     || {Seed, Answer} <- lists:zip(Seeds, Answers)
    ].

spec(Mode, Chaos, Seed) ->
    #{
        problem => aco_sample:problem(40, Seed),
        options => #{ants => 4, local_iterations => 4, global_iterations => ?ROUNDS, seed => Seed},
        mode => Mode,
        pace_ms => ?PACE_MS,
        chaos => Chaos
    }.

%% The second node has submasters, and in SR is a gateway of theirs; the last one has a colony.
victims(none) -> [];
victims(submasters) -> [2];
victims(colony) -> [?NODES_TO_LOSE];
victims(both) -> [2, ?NODES_TO_LOSE].

lost() ->
    Cases = [none, submasters, colony, both],
    atoll_experiments_aco:parallel([fun() -> losing(Mode, What) end || Mode <- [gr, sr], What <- Cases]).

losing(Mode, What) ->
    Answer = atoll_experiments_aco:cluster(Mode, ?NODES_TO_LOSE, fun(Cluster) ->
        Nodes = atoll_cluster:nodes(Cluster),
        Victims = [lists:nth(Which, Nodes) || Which <- victims(What)],
        atoll_experiments_aco:run_losing(Cluster, Victims, ?LOST_AFTER, spec(Mode, 0, 1))
    end),
    maps:merge(#{mode => Mode, lost => What}, atoll_experiments_aco:figures(Answer)).

%% The first node of a group is its gateway; the second group is nodes 4 to 6.
orbit(What) ->
    Answer = atoll_experiments_aco:cluster(sr, ?ORBIT_NODES, fun(Cluster) ->
        Nodes = atoll_cluster:nodes(Cluster),
        Spec = #{generators => g124, space => ?ORBIT_SPACE, mode => groups, group_size => 3, nodes => Nodes},
        Victim = lists:nth(case What of gateway -> 4; member -> 5 end, Nodes),
        Killer = spawn_link(fun() -> receive after ?ORBIT_LOST_MS -> ok = atoll_cluster:kill(Cluster, Victim) end end),
        {ok, _} = atoll_bench_nodes:each(Cluster, {application, ensure_all_started}, [orbit], ?ORBIT_RUN_MS),
        Said = atoll_bench_nodes:call(Cluster, hd(Nodes), {orbit, run}, [Spec], ?ORBIT_RUN_MS),
        true = unlink(Killer),
        Said
    end),
    maps:merge(#{lost => What}, of_orbit(Answer)).

of_orbit({ok, {ok, #{size := Size}}}) -> #{size => Size};
of_orbit({ok, {error, Reason}}) -> #{failed => unicode:characters_to_binary(orbit:format_error(Reason))};
of_orbit({error, Why}) -> #{broken => unicode:characters_to_binary(Why)}.

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    [Storm, Unreliable, Lost, Orbit] = [case Results of #{Key := {ok, Runs}} -> Runs; #{} -> [] end || Key <- [storm, unreliable, lost, orbit]],
    #{
        tables => [
            #{
                caption => "In the storm, medians over the seeds; the difference is (cost of the best schedule with kills − without) of the same seed, "
                    "with the interval of its median at 95 per cent:",
                head => ["version", "runs", "ended", "rounds", "kills", "restarts", "difference", "time with / without"],
                rows => [stormy(Mode, Storm) || Mode <- [gr, sr], Storm =/= []]
            },
            #{
                caption => "With a node killed:",
                head => ["version", "lost", "rounds", "nodes lost", "restarts", "best", "time"],
                rows => [lost_row(Run) || Run <- Lost]
            }
        ],
        claims => [survives(gr, Storm), survives(sr, Storm), runtime(Storm), fails(Unreliable), survives_nodes(Lost), orbit_survives(Orbit)]
    }.

of_mode(Mode, Chaos, Runs) ->
    [Run || #{<<"mode">> := M, <<"chaos">> := C} = Run <- Runs, M =:= atom_to_binary(Mode), C == Chaos].

ended(Runs) ->
    [Run || #{<<"best">> := _} = Run <- Runs].

%% Of each seed that ended both times.
pairs(Mode, Key, Storm) ->
    [
        {With, Without}
     || #{<<"seed">> := Seed, Key := With} <- ended(of_mode(Mode, 1, Storm)),
        #{<<"seed">> := Same, Key := Without} <- ended(of_mode(Mode, 0, Storm)),
        Same =:= Seed
    ].

stormy(Mode, Storm) ->
    Kills = of_mode(Mode, 1, Storm),
    [
        name(Mode), number(length(Kills)), number(length(ended(Kills))), number(median(<<"rounds">>, Kills)),
        [number(sum(<<"kills">>, Kills)), " in all"], [number(sum(<<"restarts">>, Kills)), " in all"],
        difference(pairs(Mode, <<"best">>, Storm)),
        with_interval(ratios(Mode, Storm))
    ].

median(Key, Runs) ->
    case [Value || #{Key := Value} <- Runs] of
        [] -> none;
        Values -> atoll_bench_stats:median(Values)
    end.

sum(Key, Runs) -> lists:sum([Value || #{Key := Value} <- Runs]).

difference(Pairs) ->
    with_interval([With - Without || {With, Without} <- Pairs]).

with_interval([]) ->
    number(none);
with_interval(Samples) ->
    {Low, High} = interval(Samples),
    io_lib:format("~ts [~ts, ~ts]", [number(Number) || Number <- [atoll_bench_stats:median(Samples), Low, High]]).

interval(Samples) -> atoll_bench_stats:interval(Samples, #{seed => 1}).

ratios(Mode, Storm) ->
    [With / max(1, Without) || {With, Without} <- pairs(Mode, <<"wall_ms">>, Storm)].

name(Mode) -> [string:uppercase(atom_to_list(Mode)), "-ACO"].

survives(Mode, Storm) ->
    Runs = of_mode(Mode, 1, Storm),
    Ended = ended(Runs),
    Whole = [Run || #{<<"rounds">> := ?ROUNDS} = Run <- Ended],
    Pairs = pairs(Mode, <<"best">>, Storm),
    Worse = [1 || {With, Without} <- Pairs, With > Without],
    Holds = case Runs of
        [] -> unknown;
        _ -> length(Whole) =:= length(Runs) andalso sum(<<"kills">>, Runs) > 0 andalso
            Pairs =/= [] andalso element(2, interval([With - Without || {With, Without} <- Pairs])) =< 0
    end,
    claim("section VIII.ii", [name(Mode), " runs to completion under a Chaos Monkey on every node."], Holds,
        case Runs of
            [] -> none;
            _ -> io_lib:format("~b of ~b runs ended with all ~b rounds, through ~b kills and ~b restarts; ~b of ~b schedules were worse than without.",
                    [length(Whole), length(Runs), ?ROUNDS, sum(<<"kills">>, Runs), sum(<<"restarts">>, Runs), length(Worse), length(Pairs)])
        end,
        case [Why || #{<<"failed">> := Why} <- Runs] of
            [Why | _] -> ["One that did not end said: ", Why];
            [] -> ""
        end).

runtime(Storm) ->
    Times = [{Mode, Ratios} || Mode <- [gr, sr], Ratios <- [ratios(Mode, Storm)], Ratios =/= []],
    %% As far as the rounds can tell.
    Longer = [High || {_, Ratios} <- Times, {_, High} <- [interval(Ratios)]],
    claim("section VIII.ii", "Recovery at a kill a second has no measurable impact on the time of a run.",
        lists:all(fun(High) -> High < 1.1 end, Longer),
        case Times of
            [] -> none;
            _ -> ["With kills a run took as many times as long, by the median of the seeds and its interval at 95 per cent: ",
                  lists:join(", ", [[name(Mode), " ", with_interval(Ratios)] || {Mode, Ratios} <- Times]), "; up to 1.1 counts as none."]
        end,
        io_lib:format("Rounds begin ~b ms apart here, so that a run lasts some seconds: what is recovered before the next round is due costs no time.", [?PACE_MS])).

fails(Runs) ->
    Failed = [Why || #{<<"failed">> := Why} <- Runs],
    claim("section IV", "ML-ACO is not reliable.",
        length(Failed) =:= length(Runs),
        case Runs of
            [] -> none;
            _ -> io_lib:format("~b of ~b runs in the same storm ended before their time.", [length(Failed), length(Runs)])
        end,
        case Failed of [Why | _] -> ["One said: ", Why]; [] -> "" end).

survives_nodes(Lost) ->
    Whole = [Run || #{<<"rounds">> := ?ROUNDS} = Run <- Lost],
    Bests = lists:usort([Best || #{<<"best">> := Best} <- Lost]),
    Missed = [Run || #{<<"lost">> := What, <<"nodes_lost">> := Count} = Run <- Lost, Count < length(victims(binary_to_existing_atom(What)))],
    claim(none, "Nodes may be lost too (there processes are killed, and no nodes).",
        length(Whole) =:= length(Lost) andalso length(Bests) =:= 1 andalso Missed =:= [],
        case Lost of
            [] -> none;
            _ -> io_lib:format("With a colony's node, that of submasters, or both at once killed (with none too) ~b of ~b runs ended with all rounds, and found ~b different best cost~ts.",
                    [length(Whole), length(Lost), length(Bests), case Bests of [_] -> ""; _ -> "s" end])
        end,
        case [Why || #{<<"failed">> := Why} <- Lost] of
            [Why | _] -> ["One that did not end said: ", Why];
            [] -> [[io_lib:format("In ~b of them the run was over before the node was killed.", [length(Missed)])] || Missed =/= []]
        end).

orbit_survives(Runs) ->
    Whole = [Size || #{<<"size">> := Size} <- Runs],
    claim(none, "Orbit survives the loss of a node: what was lost is computed again.",
        length(Whole) =:= length(Runs) andalso length(lists:usort(Whole)) =< 1,
        case Runs of
            [] -> none;
            _ -> io_lib:format("~b of ~b runs ended with the same set when a gateway, or another node, was killed.", [length(Whole), length(Runs)])
        end,
        case [Why || #{<<"failed">> := Why} <- Runs] of [Why | _] -> ["One said: ", Why]; [] -> "" end).

lost_row(#{<<"mode">> := Mode, <<"lost">> := What, <<"failed">> := Why}) ->
    [[string:uppercase(Mode), "-ACO"], What, ["failed: ", Why] | lists:duplicate(4, "–")];
lost_row(#{<<"mode">> := Mode, <<"lost">> := What, <<"wall_ms">> := Ms} = Run) ->
    [[string:uppercase(Mode), "-ACO"], What | [number(maps:get(Key, Run)) || Key <- [<<"rounds">>, <<"nodes_lost">>, <<"restarts">>, <<"best">>]]]
        ++ [[number(Ms / 1000), " s"]].
