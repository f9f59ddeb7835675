%% SPDX-License-Identifier: Apache-2.0
%% @doc Global operations against the number of nodes, in a mesh with `global' and in s_groups
%% (Figures 9, 10 and 11), at shares and numbers of nodes that the paper has too.
-module(atoll_experiment_debench).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(BENCH, "debench").
-define(SHARES, [1]).
-define(SIZES, [10, 20, 30]).
-define(GROUP, 10).
-define(SYSTEMS, [mesh, groups]).
%% Of what is offered: below it what one operation costs is not known, since others are given up.
-define(GOOD, {goodput_percent, 95}).
-define(HAS, #{nodes => [10 * N || N <- lists:seq(1, 10)], global => [0.01, 0.33, 0.5, 1]}).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => debench,
        title => "DE-Bench: global operations",
        question => "At which share of global operations, and on how many nodes, does what is done stop following what is offered?",
        minutes => 7,
        cannot => "at how many hosts that is: all nodes share the processors, so what an operation costs all nodes together (messages, processor time) "
            "says where the limit comes from, and the number of nodes is one of this machine. The load is fixed per node, so that it does not depend on the answers."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    [#{key => load, do => {bench, ?BENCH, #{sweep => #{nodes => [4], global => [10], offered => [50], group_size => [2]}, rounds => 1, starts => 1}}}];
asks(#{size := full}) ->
    Sweep = #{nodes => ?SIZES, global => ?SHARES, offered => [200], group_size => [?GROUP]},
    [
        #{key => load, do => {bench, ?BENCH, #{sweep => Sweep, rounds => 6, starts => 6}}},
        #{key => none_global, do => {bench, ?BENCH, #{sweep => Sweep#{nodes := [hd(?SIZES), lists:last(?SIZES)], global := [0], system => [mesh]}, rounds => 6, starts => 6}}}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => io_lib:format("~ts, ~ts % of the operations are global:", [Caption, number(Share)]), from => load, down => nodes, across => {system, ?SYSTEMS}, at => #{global => Share}, quantity => Metric}
     || {Caption, Metric} <- [
            {"Goodput, per cent of what is offered", goodput_percent},
            {"Messages of all nodes for an operation", messages_per_op},
            {"Processor time of all nodes for an operation, µs", cpu_us_per_op},
            {"Global register, median, ns", register},
            {"All operations of two nodes, median, ns", p2p}
        ],
        Share <- ?SHARES
    ] ++ [#{
        caption => "The knee, by `bin/atoll bench knee` (two lines that meet; the interval is that of the rounds):",
        from => load,
        kind => knee,
        head => ["system", "global, %", "knee"],
        rows => fun(Answer) -> [[atom_to_list(System), number(Share), knee_said(Knee)] || {System, Share, Knee} <- knees(Answer)] end
    }].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    {Few, Many, Most} = {hd(?SIZES), lists:last(?SIZES), lists:last(?SHARES)},
    Grown = fun(Metric, Called, System) ->
        #{quantity => Metric, called => Called, first => #{nodes => Many, system => System}, over => #{nodes => Few, system => System}, at => [#{global => Most}]}
    end,
    Grows = io_lib:format("On ~b nodes it took as many times that on ~b", [Many, Few]),
    [
        #{
            figure => "Figure 9",
            says => "In distributed Erlang even few global operations end the scaling, the earlier the more they are: 0.01 % at 60 nodes, 0.5 % at 50, 1 % at 30.",
            paper_has => ?HAS,
            kind => knee,
            from => load,
            by => fun(Answer) -> limit(knees(Answer)) end,
            why => "Where a knee is depends on the processors that all nodes share, so only their order is asked for: it takes two knees, and half an hour has time for one share."
        },
        #{
            figure => "Figure 11",
            says => "With s_groups of ten nodes throughput goes on growing linearly where that of distributed Erlang stops (40 nodes with 0.01 %).",
            paper_has => #{global => [0.01]},
            kind => knee,
            from => load,
            by => fun(Answer) -> linear(knees(Answer)) end
        },
        #{
            figure => "Figure 10",
            says => "The latency of global operations increases dramatically with the nodes.",
            paper_has => ?HAS,
            kind => {differs, more},
            from => load,
            by => Grown(register, Grows, mesh)
        },
        #{
            figure => "Figure 10",
            says => "Latencies of operations of two nodes are stable at scale.",
            paper_has => ?HAS,
            kind => {near, 1, 1},
            from => load,
            by => Grown(p2p, Grows, mesh),
            why => "Up to twice counts as stable: what two nodes do waits for the same processors as all else here."
        },
        #{
            figure => "section II",
            says => "A global operation synchronises all connected nodes: its messages grow with them.",
            paper_has => ?HAS,
            kind => {differs, more},
            from => load,
            by => (Grown(messages_per_op, ["Messages for an operation: on ", number(Many), " nodes as many times those on ", number(Few)], mesh))#{where => ?GOOD},
            why => "Only rounds in which 95 % of what was offered was done say what an operation costs."
        },
        #{
            figure => "section V",
            says => "In s_groups it synchronises those of the group: it takes fewer messages than in a mesh.",
            paper_has => ?HAS,
            kind => {differs, less},
            from => load,
            by => #{
                quantity => messages_per_op,
                called => "Groups of ten took of the messages of the mesh",
                first => #{system => groups},
                over => #{system => mesh},
                at => [#{nodes => Many, global => Most}],
                where => ?GOOD
            }
        },
        #{
            figure => "section II",
            says => "Point-to-point and local commands involve nobody else.",
            paper_has => #{nodes => map_get(nodes, ?HAS)},
            kind => {near, 1, 0.2},
            from => none_global,
            by => #{
                quantity => messages_per_op,
                called => io_lib:format("Without global operations messages for an operation on ~b nodes were of those on ~b", [Many, Few]),
                first => #{nodes => Many},
                over => #{nodes => Few},
                at => [#{global => 0}],
                where => ?GOOD
            }
        }
    ].

%% By system and share, the smallest share first; none of those that were not measured at two sizes.
knees({run, Run}) ->
    {ok, Found} = atoll_bench_knee_curves:knees([Run], #{seed => 1}),
    lists:sort([
        {binary_to_existing_atom(proplists:get_value(<<"system">>, Key)), proplists:get_value(<<"global">>, Key), Knee}
     || {Key, _Curve, #{verdict := Verdict} = Knee, _Failed} <- Found, Verdict =/= too_few
    ]).

knee_said(#{verdict := knee, nodes := N, low := Low, high := High, between := {Below, Above}}) ->
    io_lib:format("~ts nodes [~ts–~ts], between ~b and ~b", [number(N), number(Low), number(High), Below, Above]);
knee_said(#{verdict := at_most, nodes := N}) ->
    io_lib:format("at ~b nodes or fewer, the smallest number measured", [N]);
knee_said(#{verdict := none, up_to := N}) ->
    io_lib:format("none up to ~b nodes", [N]).

said(Knees) ->
    lists:join("; ", [[number(Share), " %: ", knee_said(Knee)] || {_, Share, Knee} <- Knees]).

%% Two that are found, and apart.
limit(All) ->
    Knees = [K || {mesh, _, _} = K <- All],
    Found = [{Low, High} || {_, _, #{verdict := knee, low := Low, high := High}} <- Knees],
    {
        case {Found, Knees} of
            {[{_, _} = Less, {_, _} = More | _], [_, _]} -> earlier(More, Less);
            _ -> unknown
        end,
        ["The knee of the mesh, by the share of global operations: ", said(Knees), "."]
    }.

earlier({_, High}, {Low, _}) when High < Low -> true;
earlier({Low, _}, {_, High}) when Low > High -> false;
earlier(_, _) -> unknown.

linear(All) ->
    Pairs = [{Mesh, Groups} || {mesh, Share, Mesh} <- All, {groups, Same, Groups} <- All, Share == Same],
    Limited = [Groups || {#{verdict := knee}, Groups} <- Pairs],
    {
        case Limited of
            [] -> unknown;
            _ -> lists:all(fun(#{verdict := Verdict}) -> Verdict =:= none end, Limited)
        end,
        ["The knee of groups of ten: ", said([K || {groups, _, _} = K <- All]), "."]
    }.
