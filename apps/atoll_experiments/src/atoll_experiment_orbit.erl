%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbit at scale (Figure 29): the same set, over more and more nodes, connected in three ways.
-module(atoll_experiment_orbit).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(MODES, [mesh, groups, 'groups-native']).
-define(SIZES, [8, 16, 32]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => orbit,
        title => "Orbit at scale",
        question => "What does it take to enumerate one set over more and more nodes, in a full mesh and in groups?",
        minutes => 5,
        cannot =>
            "a speed-up, since all nodes share the same processors, and so neither where the mesh stops being faster; nor sets of the paper's size, which take "
            "minutes each here. What is measured is what a way of connecting nodes costs: connections, packets, memory and processor time."
    }.

%% The last one is what lost nodes on busy gateways once: more than the space of 10,000 that there was room for.
-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    [#{key => few, do => {bench, "orbit", #{sweep => sweep([4], 500, [mesh, groups]), rounds => 1, starts => 1}}}];
asks(#{size := full}) ->
    [
        #{key => few, do => {bench, "orbit", #{sweep => sweep(?SIZES, 5000, ?MODES), rounds => 5, starts => 5}}},
        #{key => many, do => {bench, "orbit", #{sweep => sweep([64], 5000, [mesh, groups]), rounds => 1, starts => 1}}},
        #{key => native, do => {bench, "orbit", #{sweep => sweep([64], 20000, ['groups-native']), rounds => 2, starts => 1}}}
    ].

sweep(Nodes, Space, Modes) ->
    #{nodes => Nodes, space => [Space], mode => Modes, group_size => [0], workers => [4]}.

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => few, down => nodes, across => {mode, ?MODES}, quantity => Metric}
     || {Caption, Metric} <- [
            {"Connections of all nodes together:", connections_all},
            {"Connections of the busiest node:", connections_max},
            {"Packets sent by all nodes:", packets},
            {"Memory of all nodes, MB:", memory_mb},
            {"Time, ms:", wall_ms},
            {"Processor time of all nodes, ms:", cpu_ms}
        ]
    ] ++ [
        #{caption => Caption, from => many, down => nodes, across => {mode, [mesh, groups]}, quantity => Metric}
     || {Caption, Metric} <- [{"Connections of 64 nodes together:", connections_all}, {"Packets sent by 64 nodes:", packets}]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    Few = [#{nodes => N} || N <- ?SIZES],
    Groups = #{first => #{mode => groups}, over => #{mode => mesh}, at => Few},
    [
        #{
            figure => "Figure 29",
            says => "On few nodes D-Orbit is faster than SD-Orbit, since its messages go directly and not over a gateway.",
            paper_has => #{space => [2000000, 5000000]},
            kind => {differs, more},
            from => few,
            by => Groups#{quantity => wall_ms, called => "Groups take as many times as long as the mesh"}
        },
        #{
            figure => none,
            says => "The same of a set of 5,000: it takes groups longer than the mesh.",
            kind => {differs, more},
            from => few,
            by => Groups#{quantity => wall_ms, called => "Groups take as many times as long as the mesh"}
        },
        #{
            figure => none,
            says => "It takes groups more processor time than the mesh.",
            kind => {differs, more},
            from => few,
            by => Groups#{quantity => cpu_ms, called => "Groups take as many times the processor time of the mesh"}
        },
        #{
            figure => "section V",
            says => "A mesh of n nodes has O(n²) connections; s_groups keep the connections of a node to those of its group.",
            kind => counted,
            from => few,
            by => fun connections/1
        },
        #{
            figure => "Figure 29",
            says => "From 80 nodes on (2M elements; 100 with 5M) SD-Orbit is faster than D-Orbit.",
            kind => {differs, less},
            from => none,
            why => "One machine has no 80 nodes that do not wait for its processors. What makes a mesh slow on hosts of their own (memory, and traffic between hosts that grows with "
                "the connections) is not there: a connection is a buffer in the kernel, and gateways compete with the workers for the same processors."
        },
        #{
            figure => "section VIII.i",
            says => "Beyond 5M elements D-Orbit fails, since nodes have no memory left (64 GB); SD-Orbit runs with 60M.",
            kind => counted,
            from => none,
            why => "The sets are small here, and the application that makes groups has a memory of its own."
        },
        #{
            figure => none,
            says => "The mesh's program runs over groups as it stands, with fewer connections (there it was written anew: SD-Orbit has gateway processes of its own).",
            kind => {differs, less},
            from => few,
            by => Groups#{quantity => connections_all, first := #{mode => 'groups-native'}, called => "With relays (groups-native) it had of the mesh's connections"},
            why => "Relays are Atoll's, and each message between groups is handled by one or two gateways."
        },
        #{
            figure => none,
            says => "It does so on 64 nodes with a load that keeps the processors busy for seconds: no circuit is lost while all gateways live.",
            kind => counted,
            from => native,
            by => fun native/1,
            why => "Until circuits waited out the silence of a busy node, more than a space of 10,000 lost nodes here."
        }
    ].

%% Whichever program it is: where they are made for, the numbers are the same in each round.
connections(Answer) ->
    Rows = atoll_experiments_samples:rows(Answer),
    Mesh = lists:usort([{N, All} || #{<<"mode">> := <<"mesh">>, <<"nodes">> := N, <<"connections_all">> := All} <- Rows]),
    Shares = [
        {N, lists:max([All || #{<<"mode">> := <<"groups">>, <<"nodes">> := M, <<"connections_all">> := All} <- Rows, M =:= N]) / Of}
     || {N, Of} <- Mesh, lists:any(fun(Row) -> {maps:get(<<"mode">>, Row), maps:get(<<"nodes">>, Row)} =:= {<<"groups">>, N} end, Rows)
    ],
    Square = lists:all(fun({N, All}) -> All == N * (N - 1) / 2 end, Mesh),
    {
        case Shares of
            [_, _ | _] -> Square andalso element(2, lists:last(Shares)) < element(2, hd(Shares));
            _ when not Square -> false;
            _ -> unknown
        end,
        ["The mesh had ", said(Mesh), " nodes, in every round; groups had of that, at the most, ", said(Shares), "."]
    }.

said(Values) -> lists:join(", ", [[number(Value), " at ", number(N)] || {N, Value} <- Values]).

native({run, #{rounds := Rounds, errors := Errors}}) ->
    Ended = length(Rounds),
    {
        case {Ended, Errors} of {_, [_ | _]} -> false; {0, []} -> unknown; _ -> true end,
        [io_lib:format("~b rounds ended, ~b failed.", [Ended, length(Errors)]), [[" It said: ", Why] || #{<<"error">> := Why} <- Errors]]
    }.
