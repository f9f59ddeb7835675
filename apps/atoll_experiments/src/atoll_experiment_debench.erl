%% @doc Global operations against the number of nodes, in a mesh with `global' and in s_groups
%% (Figures 9, 10 and 11).
-module(atoll_experiment_debench).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [bench/3, claim/5, verdict_of/1]).
-import(atoll_experiments_data, [number/1, value/3, series/4]).

-define(SHARES, [0, 1, 10]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => debench,
        title => "DE-Bench: global operations",
        question => "At which share of global operations, and on how many nodes, does what is done stop following what is offered?",
        minutes => 10,
        cannot => "at how many hosts that is: all nodes share the processors, so what an operation costs all nodes together (messages, processor time) "
            "says where the limit comes from, and the number of nodes is one of this machine. The load is fixed per node, so that it does not hang on the answers."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) ->
    [bench(load, "debench", #{sweep => #{nodes => [4], global => [0, 10], offered => [50], group_size => [4]}, rounds => 1, starts => 1})];
steps(#{size := full}) ->
    [bench(load, "debench", #{sweep => #{nodes => [4, 8, 16, 24], global => ?SHARES, offered => [200], group_size => [4]}, rounds => 4, starts => 1})].

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    Run = atoll_experiments_data:run(load, Results),
    Knees = knees(Run),
    #{
        tables => [
            table("Goodput, per cent of what is offered:", goodput_percent, Run),
            table("Messages of all nodes for an operation:", messages_per_op, Run),
            table("Processor time of all nodes for an operation, µs:", cpu_us_per_op, Run),
            #{
                caption => "Global register, median, and all operations of two nodes, in ms:",
                head => ["nodes", "global, %", "register, mesh", "register, groups", "two nodes, mesh", "two nodes, groups"],
                rows => [
                    [number(N), number(Share)
                     | [in_ms(at(N, Share, System, Metric, Run)) || Metric <- [register, p2p], System <- [mesh, groups]]]
                 || Share <- shares(Run), Share > 0, N <- sizes(Run)
                ]
            },
            #{
                caption => "The knee, by `bin/atoll bench knee` (two lines that meet; the interval is that of the rounds):",
                head => ["system", "global, %", "knee"],
                rows => [[atom_to_list(System), number(Share), knee_said(Knee)] || {System, Share, Knee} <- Knees]
            }
        ],
        claims => [limit(Knees), linear(Knees), latency(Run), cost(Run), none(Run)]
    }.

sizes(none) -> [];
sizes(#{header := #{<<"points">> := Points}}) -> lists:usort([N || #{<<"nodes">> := N} <- Points]).

shares(none) -> [];
shares(#{header := #{<<"points">> := Points}}) -> lists:usort([Share || #{<<"global">> := Share} <- Points]).

at(N, Share, System, Metric, Run) ->
    value(#{nodes => N, global => Share, system => System}, Metric, Run).

table(Caption, Metric, Run) ->
    #{
        caption => Caption,
        head => ["nodes" | [io_lib:format("~ts, ~ts % global", [System, number(Share)]) || System <- [mesh, groups], Share <- shares(Run)]],
        rows => [[number(N) | [number(at(N, Share, System, Metric, Run)) || System <- [mesh, groups], Share <- shares(Run)]] || N <- sizes(Run)]
    }.

in_ms(none) -> number(none);
in_ms(Ns) -> number(Ns / 1.0e6).

%% By system and share, the smallest share first.
knees(none) ->
    [];
knees(Run) ->
    case atoll_bench_knee_curves:of_runs([Run]) of
        {ok, Curves} ->
            lists:sort([
                {System, Share, Knee}
             || {System, Share, #{verdict := Verdict} = Knee} <- [knee(Curve) || Curve <- Curves], Verdict =/= too_few
            ]);
        {error, _} ->
            []
    end.

knee({Key, Curve}) ->
    {binary_to_existing_atom(proplists:get_value(<<"system">>, Key)), proplists:get_value(<<"global">>, Key), atoll_bench_knee:find(Curve, #{seed => 1})}.

knee_said(#{verdict := knee, nodes := N, low := Low, high := High, between := {Below, Above}}) ->
    io_lib:format("~ts nodes [~ts–~ts], between ~b and ~b", [number(N), number(Low), number(High), Below, Above]);
knee_said(#{verdict := at_most, nodes := N}) ->
    io_lib:format("at ~b nodes or fewer, the smallest number measured", [N]);
knee_said(#{verdict := none, up_to := N}) ->
    io_lib:format("none up to ~b nodes", [N]).

has_knee(#{verdict := Verdict}) -> Verdict =:= knee orelse Verdict =:= at_most.

%% An earlier knee is a smaller number.
place_of(#{verdict := knee, nodes := N}) -> N;
place_of(#{verdict := at_most}) -> 0;
place_of(#{}) -> infinity.

said(Knees) ->
    lists:join("; ", [[number(Share), " %: ", knee_said(Knee)] || {_, Share, Knee} <- Knees]).

limit(All) ->
    Knees = [K || {mesh, _, _} = K <- All],
    Places = [place_of(Knee) || {_, _, Knee} <- Knees],
    claim("Figure 9", "In distributed Erlang even few global operations end the scaling, the earlier the more they are: 0.01 % at 60 nodes, 0.5 % at 50, 1 % at 30.",
        case Places of
            [_, _ | _] -> has_knee(element(3, lists:last(Knees))) andalso Places =:= lists:reverse(lists:sort(Places));
            _ -> unknown
        end,
        case Knees of [] -> none; _ -> ["The knee of the mesh, by the share of global operations: ", said(Knees), "."] end,
        "Names and nodes are fewer here, and the shares larger; where the knee is hangs on the processors that all nodes share.").

linear(All) ->
    Global = [K || {groups, Share, _} = K <- All, Share > 0],
    Mesh = [{Share, Knee} || {mesh, Share, Knee} <- All],
    Later = [place_of(Knee) >= place_of(proplists:get_value(Share, Mesh)) || {_, Share, Knee} <- Global, lists:keymember(Share, 1, Mesh)],
    Flat = [not has_knee(Knee) || {_, _, Knee} <- Global],
    claim("Figure 11", "With s_groups of ten nodes throughput goes on growing linearly where that of distributed Erlang stops.",
        verdict_of(Later ++ Flat),
        case Global of [] -> none; _ -> ["The knee of groups of four: ", said(Global), "."] end,
        case lists:member(false, Flat) of
            true -> "A knee of groups is that of the machine: without global operations it is where all processors are in use.";
            false -> ""
        end).

%% The first and the last number of nodes that was measured.
growth(System, Share, Metric, Run) ->
    case series(nodes, #{system => System, global => Share}, Metric, Run) of
        [{_, First} | [_ | _] = Rest] when First > 0 -> element(2, lists:last(Rest)) / First;
        _ -> none
    end.

most_global(Run) ->
    case shares(Run) of
        [] -> 0;
        Shares -> lists:last(Shares)
    end.

latency(Run) ->
    Share = most_global(Run),
    [Register, P2p, Groups] = [growth(System, Share, Metric, Run) || {System, Metric} <- [{mesh, register}, {mesh, p2p}, {groups, register}]],
    claim("Figure 10", "Latencies of operations of two nodes and of local ones are stable at scale; that of global ones increases dramatically.",
        case {Register, P2p} of
            {R, P} when is_number(R), is_number(P) -> R > 2 andalso P < 2;
            _ -> unknown
        end,
        case Register of
            none -> none;
            _ -> io_lib:format("From the fewest nodes to the most, with ~ts % global operations, the median latency became in the mesh ~ts times as long for a global register, "
                      "~ts times for operations of two nodes; in groups, ~ts times for a register.", [number(Share), number(Register), number(P2p), number(Groups)])
        end,
        "What two nodes do waits for the same processors as all else here.").

%% What the share of them adds, by how many they are.
extra(System, Share, Run) ->
    [
        {N, (With - Without) * 100 / Share}
     || N <- sizes(Run),
        [With, Without] <- [[at(N, S, System, messages_per_op, Run) || S <- [Share, 0]]],
        is_number(With), is_number(Without), Share > 0
    ].

grown([{_, First} | [_ | _] = Rest]) when First > 0 -> element(2, lists:last(Rest)) / First;
grown(_) -> none.

cost(Run) ->
    Share = most_global(Run),
    [Mesh, Groups] = [grown(extra(System, Share, Run)) || System <- [mesh, groups]],
    claim("section II", "A global operation synchronises all connected nodes; in an s_group those of the group.",
        case {Mesh, Groups} of
            {M, G} when is_number(M), is_number(G) -> M > 2 andalso G < 1.5;
            _ -> unknown
        end,
        case Mesh of
            none -> none;
            _ -> io_lib:format("Messages for a global operation, at a share of ~ts %: in the mesh ~ts nodes; in groups ~ts.",
            [number(Share) | [said_at(extra(System, Share, Run)) || System <- [mesh, groups]]])
        end,
        "").

said_at(Extra) -> lists:join(", ", [[number(Messages), " at ", number(N)] || {N, Messages} <- Extra]).

%% A look-up in one's own table sends nothing, so what is left are the operations of two nodes.
none(Run) ->
    Costs = [Cost || N <- sizes(Run), System <- [mesh, groups], Cost <- [at(N, 0, System, messages_per_op, Run)], Cost =/= none],
    claim("section II", "Point-to-point and local commands involve nobody else.",
        case Costs of [] -> unknown; _ -> lists:max(Costs) < 2 * lists:min(Costs) end,
        case Costs of
            [] -> none;
            _ -> io_lib:format("Without global operations one cost ~ts to ~ts messages, whatever the number of nodes.", [number(lists:min(Costs)), number(lists:max(Costs))])
        end,
        "").
