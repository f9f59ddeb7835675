%% @doc Submasters placed by attributes on unequal nodes, against any order of the nodes.
-module(atoll_experiment_place).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [bench/3, claim/5, within/3]).
-import(atoll_experiments_data, [number/1, value/3, series/4, spread/3]).

%% So near is what was measured to be to what was expected.
-define(NEAR, 0.2).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => place,
        title => "Placement by attributes",
        question => "By how much is ML-ACO faster when its submasters are on the weak nodes, chosen by what the nodes say of themselves, than in any order?",
        minutes => 3,
        cannot => "nodes with more processors than others: a node is made weak by a bound on its processor time (control groups), and what it says of itself is "
            "that bound (cgroup_cpus)."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) ->
    Sweep = #{nodes => [5], slow => [1], ants => [2], local_iterations => [1], global_iterations => [2]},
    [bench(unequal, "aco_place", #{sweep => Sweep, rounds => 1, starts => 1})];
steps(#{size := full}) ->
    [bench(unequal, "aco_place", #{sweep => #{ants => [1, 5, 20, 80]}, rounds => 7, starts => 1})].

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    Run = atoll_experiments_data:run(unequal, Results),
    Ants = [N || {N, _} <- series(ants, #{order => attributes}, run_ms, Run), ratio(N, run_ms, Run) =/= none],
    #{
        tables => [
            #{
                caption => "Nodes that are given less: 3 of 11, with 4 % of a processor; the others have 16 %. Expected is the ratio of the least that a "
                    "colony's node may use, by the roles that were really dealt out:",
                head => ["ants of a colony", "random", "by attributes", "ratio", "expected", "colonies on weak nodes, random", "and by attributes"],
                rows => [row(N, Run) || N <- Ants]
            }
        || Ants =/= []],
        claims => [faster(Ants, Run), grows(Ants, Run), same_result(Ants, Run)]
    }.

row(N, Run) ->
    [
        number(N), ms(at(N, random, run_ms, Run)), ms(at(N, attributes, run_ms, Run)), atoll_experiments_spread:said(slower(N, Run)), number(expected(N, Run))
        | [[number(at(N, Order, slow_colonies, Run)), " %"] || Order <- [random, attributes]]
    ].

ms(Ms) -> atoll_bench_report_text:time(Ms * 1000000).

at(N, Order, Metric, Run) -> value(#{ants => N, order => Order}, Metric, Run).

%% Blind, over by attributes.
ratio(N, Metric, Run) ->
    case {at(N, random, Metric, Run), at(N, attributes, Metric, Run)} of
        {Blind, Chosen} when is_number(Blind), is_number(Chosen), Chosen > 0 -> Blind / Chosen;
        _ -> none
    end.

%% As many times as long, by the rounds of both.
slower(N, Run) ->
    [Blind, Chosen] = [spread(#{ants => N, order => Order}, run_ms, Run) || Order <- [random, attributes]],
    atoll_experiments_spread:ratio(Blind, Chosen).

%% The other way round: twice as much of a processor takes half the time.
expected(N, Run) ->
    case ratio(N, least_percent, Run) of
        none -> none;
        Least -> 1 / Least
    end.

faster([], _Run) ->
    claim("MacKenzie et al., section 3", "Without attributes the run is slower, towards the factor by which the nodes differ.", unknown, none, "");
faster(Ants, Run) ->
    Most = lists:last(Ants),
    {Ratio, Expected} = {ratio(Most, run_ms, Run), expected(Most, Run)},
    Near = within(Ratio, Expected, ?NEAR),
    claim("MacKenzie et al., section 3", "Without attributes the run is slower, towards the factor by which the nodes differ (24 there).",
        Near,
        io_lib:format("With ~ts ants a run in any order took ~ts times as long; expected was ~ts, and the difference is ~ts (within ~b % is what was aimed at).", [
            number(Most), number(Ratio), number(Expected), atoll_bench_report_text:percent(abs(Ratio - Expected) / Expected), round(100 * ?NEAR)
        ]),
        case Near of
            true -> "";
            false -> "What is not the colonies' own work (the tree's messages, which weak nodes handle in their share) is in both times."
        end).

grows(Ants, Run) ->
    Ratios = [slower(N, Run) || N <- Ants],
    claim("MacKenzie et al., section 3", "The factor grows with the number of ants.",
        growing(Ratios),
        case Ratios of
            [] -> none;
            _ -> ["The ratio was ", lists:join(", ", [[atoll_experiments_spread:said(Ratio), " with ", number(N)] || {N, Ratio} <- lists:zip(Ants, Ratios)]), " ants."]
        end,
        case lists:usort(Ratios) =:= Ratios of
            false when length(Ratios) > 1 -> ["Its median grows up to ", number(risen(Ants, Ratios)), " ants, and not from there on."];
            _ -> ""
        end).

%% More with the most ants than with the fewest, and nowhere less than with fewer.
growing([_, _ | _] = Ratios) ->
    Falls = [1 || {A, B} <- lists:zip(lists:droplast(Ratios), tl(Ratios)), atoll_experiments_spread:below(B, A) =:= true],
    case Falls of
        [] -> atoll_experiments_spread:below(hd(Ratios), lists:last(Ratios));
        _ -> false
    end;
growing(_) ->
    unknown.

%% Up to how many ants each median is more than the one before.
risen([_, More | Ants], [{A, _, _}, {B, _, _} = Ratio | Ratios]) when B > A -> risen([More | Ants], [Ratio | Ratios]);
risen([Last | _], _) -> Last.

same_result(Ants, Run) ->
    Same = [at(N, random, best, Run) == at(N, attributes, best, Run) || N <- Ants],
    claim(none, "Where a colony runs must not change the schedule that is found.",
        lists:all(fun(S) -> S end, Same),
        case Same of
            [] -> none;
            _ -> io_lib:format("In ~b of ~b numbers of ants both orders found the same cost.", [length([1 || true <- Same]), length(Same)])
        end,
        "").
