%% @doc Packets and connections of ACO's versions at equal work in equal time (Figure 32).
-module(atoll_experiment_traffic).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiments_data, [number/1, ordered/1]).

-define(MODES, [sr, ml, gr]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => traffic,
        title => "Packets and connections of ACO",
        question => "What do names and a full mesh cost in packets, when the same work is done in the same time?",
        minutes => 4,
        cannot => "packets on a wire: there is no network between the nodes. What is counted is what the sockets of distribution were given to send (send_cnt "
            "of inet:getstat/2), on all nodes, from before the tree is built until the last round; many messages that travel as one count once. A "
            "connection over which nothing else was sent gets a tick each 15 s (net_ticktime 60, the default)."
    }.

%% All at once: the window is the same for all, and most of it is waiting.
-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) -> [step([5], 2)];
steps(#{size := full}) -> [step([16, 32], 125)].

step(Sizes, Rounds) ->
    #{
        key => packets,
        says => io_lib:format("ML, GR and SR (degree 2) on ~ts nodes, all at once: ~b rounds, one each second, 2 ants a colony, 1 generation a round, 20 jobs", [
            lists:join(" and ", [integer_to_list(N) || N <- Sizes]), Rounds
        ]),
        run => {job, fun() -> {ok, atoll_experiments_aco:parallel([fun() -> one(Mode, N, Rounds) end || N <- Sizes, Mode <- ?MODES])} end}
    }.

one(Mode, Count, Rounds) ->
    Spec = #{
        problem => aco_sample:problem(20, 1),
        options => #{ants => 2, local_iterations => 1, global_iterations => Rounds},
        mode => Mode,
        pace_ms => 1000
    },
    Answer = atoll_experiments_aco:cluster(Mode, Count, fun(Cluster) -> atoll_experiments_aco:run(Cluster, Spec) end),
    maps:merge(#{mode => Mode, nodes => Count}, atoll_experiments_aco:figures(Answer)).

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(#{packets := {ok, Runs}}) ->
    Sizes = lists:usort([N || #{<<"nodes">> := N} <- Runs]),
    #{
        tables => [
            #{
                caption => "",
                head => ["nodes", "version", "time", "packets sent, all nodes", "a second", "connections, all nodes", "busiest node", "names", "best"],
                rows => [line(N, Mode, run(N, Mode, Runs)) || N <- Sizes, Mode <- ?MODES]
            }
        ],
        claims => [packets(Sizes, Runs), connections(Sizes, Runs)]
    };
verdict(_) ->
    #{tables => [], claims => [packets([], []), connections([], [])]}.

line(N, Mode, #{<<"wall_ms">> := Ms, <<"packets_sent">> := Packets} = Run) ->
    Seconds = Ms / 1000,
    [
        number(N), name(Mode), [number(Seconds), " s"], said(Packets),
        case Packets of P when is_number(P), Seconds > 0 -> number(P / Seconds); _ -> "–" end
        | [said(maps:get(Key, Run)) || Key <- [<<"connections_all">>, <<"connections_max">>, <<"names">>, <<"best">>]]
    ];
line(N, Mode, #{<<"failed">> := Why}) ->
    [number(N), name(Mode), ["failed: ", Why] | lists:duplicate(6, "–")].

said(N) when is_number(N) -> number(N);
said(_) -> "–".

name(Mode) -> [string:uppercase(atom_to_list(Mode)), "-ACO"].

run(N, Mode, Runs) ->
    [Run] = [R || #{<<"nodes">> := Count, <<"mode">> := Name} = R <- Runs, Count =:= N, Name =:= atom_to_binary(Mode)],
    Run.

of_modes(Key, N, Runs) ->
    [case run(N, Mode, Runs) of #{Key := Value} when is_number(Value) -> Value; _ -> none end || Mode <- ?MODES].

lines(Key, Sizes, Runs) ->
    lists:join("; ", [["with ", number(N), " nodes ", lists:join(", ", [[name(Mode), " ", number(V)] || {Mode, V} <- lists:zip(?MODES, of_modes(Key, N, Runs))])]
                      || N <- Sizes]).

packets(Sizes, Runs) ->
    Holds = atoll_experiment:verdict_of([ordered(of_modes(<<"packets_sent">>, N, Runs)) || N <- Sizes]),
    Long = [Ms || #{<<"wall_ms">> := Ms} <- Runs],
    atoll_experiment:claim("Figure 32", "SR-ACO sends the fewest packets and GR-ACO the most: SR < ML < GR.", Holds,
        case Long of
            [] -> none;
            _ -> ["Packets in ", number(lists:min(Long) / 1000), " s or more, in one run of each: ", lines(<<"packets_sent">>, Sizes, Runs), "."]
        end,
        case Holds of
            false -> "The rounds' own messages are the same in all three but for who relays them; what differs is what keeps connections and names.";
            _ -> ""
        end).

connections(Sizes, Runs) ->
    Fewer = fun(N) -> case of_modes(<<"connections_all">>, N, Runs) of [Sr, Ml, _] -> ordered([Sr, Ml]) end end,
    atoll_experiment:claim("section VIII.ii", "ML-ACO and GR-ACO keep all nodes connected with each other; SR-ACO connects nodes within s_groups only.",
        atoll_experiment:verdict_of([Fewer(N) || N <- Sizes]),
        case [1 || #{<<"connections_all">> := _} <- Runs] of
            [] -> none;
            _ -> ["Connections: ", lines(<<"connections_all">>, Sizes, Runs), "."]
        end,
        "").
