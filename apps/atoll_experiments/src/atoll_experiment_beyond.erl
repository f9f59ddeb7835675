%% @doc The same in simulation, beyond what one machine runs: what grows with the number of nodes,
%% from a hundred to ten thousand.
-module(atoll_experiment_beyond).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [claim/5, verdict_of/1]).
-import(atoll_experiments_data, [number/1]).

-define(DEGREE, 5).
-define(ROUNDS, 5).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => beyond,
        title => "Beyond this machine, in simulation",
        question => "What grows with the number of nodes, in a mesh and in groups, up to ten thousand?",
        minutes => 1,
        cannot => "time on real hosts: what runs are the protocols themselves, in virtual time, without processors and with a network of 1 to 20 ms. Nothing of "
            "global itself is simulated; of its names it is only counted on how many nodes they must be."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := Size}) ->
    {Trees, Names, Reached} = case Size of
        full -> {[100, 1000, 10000], [10, 32, 100, 200], [100, 1000]};
        small -> {[30], [5, 10], [20]}
    end,
    [
        #{
            key => tree,
            says => io_lib:format("ACO's tree (aco_branch, degree ~b) over ~ts nodes without nodes, ~b rounds", [?DEGREE, listed(Trees), ?ROUNDS]),
            run => {job, fun() -> {ok, [atoll_experiments_tree:run(Mode, N, ?DEGREE, ?ROUNDS) || N <- Trees, Mode <- [ml, gr, sr]]} end}
        },
        #{
            key => names,
            says => io_lib:format("names of s_groups (atoll_sim_names): 20 registrations in one group of ~ts nodes", [listed(Names)]),
            run => {job, fun() -> {ok, [atoll_sim_names:run(#{nodes => N}) || N <- Names]} end}
        },
        #{
            key => reach,
            says => io_lib:format("all that talk over the gateways of their groups (bin/atoll sim reach), ~ts nodes in groups of their number's square root", [listed(Reached)]),
            run => {job, fun() -> {ok, [reached(N) || N <- Reached]} end}
        }
    ].

listed(Numbers) -> lists:join(", ", [integer_to_list(N) || N <- Numbers]).

reached(N) ->
    {ok, Result} = atoll_sim_reach:run(#{nodes => N, group_size => round(math:sqrt(N))}),
    maps:with([nodes, groups, connections_mean, connections_max, connections_mesh, round_trip_ms_p50, mesh_ms_p50, reached, idle_messages_per_node_per_s], Result).

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    [Trees, Names, Reached] = [case Results of #{Key := {ok, Rows}} -> Rows; #{} -> [] end || Key <- [tree, names, reach]],
    #{
        tables => [
            #{
                caption => io_lib:format("ACO's tree; messages are those of ~b rounds between nodes; a name is held where it can be looked up:", [?ROUNDS]),
                head => ["nodes", "version", "messages", "connections, all", "busiest node", "s_groups", "names held, all nodes"],
                rows => [
                    [number(N), name(Mode) | [number(maps:get(Key, Row)) || Key <- [<<"messages">>, <<"connections">>, <<"connections_max">>, <<"groups">>, <<"names_held">>]]]
                 || #{<<"nodes">> := N, <<"mode">> := Mode} = Row <- Trees
                ]
            },
            #{
                caption => "A name in a group:",
                head => ["nodes of the group", "links", "messages for a registration", "answer, median", "answered with yes"],
                rows => [
                    [number(N), number(Links), number(Messages), [number(Ms), " ms"], [number(Yes), " of ", number(Asked)]]
                 || #{<<"nodes">> := N, <<"links">> := Links, <<"messages_per_name">> := Messages, <<"answer_ms_p50">> := Ms, <<"yes">> := Yes, <<"names">> := Asked} <- Names
                ]
            },
            #{
                caption => "Everybody reaches everybody, over gateways and in a mesh:",
                head => ["nodes", "groups", "connections of a node, mean", "busiest", "in a mesh", "round trip", "in a mesh", "reached"],
                rows => [
                    [number(maps:get(Key, Row)) || Key <- [<<"nodes">>, <<"groups">>, <<"connections_mean">>, <<"connections_max">>, <<"connections_mesh">>]]
                        ++ [[number(maps:get(Key, Row)), " ms"] || Key <- [<<"round_trip_ms_p50">>, <<"mesh_ms_p50">>]]
                        ++ [atoll_bench_report_text:percent(maps:get(<<"reached">>, Row))]
                 || Row <- Reached
                ]
            }
        ],
        claims => [connections(Trees), namespace(Trees), registration(Names), gateways(Reached)]
    }.

name(Mode) -> [string:uppercase(Mode), "-ACO"].

%% The value of a version at each number of nodes.
of_mode(Mode, Key, Trees) ->
    [{N, Value} || #{<<"nodes">> := N, <<"mode">> := M, Key := Value} <- Trees, M =:= Mode].

said(Values) -> lists:join(", ", [[number(Value), " at ", number(N)] || {N, Value} <- Values]).

per_node(Values) -> [{N, Value / N} || {N, Value} <- Values].

%% From the first to the last, as a factor.
growth([{_, First} | [_ | _] = More]) when First > 0 -> element(2, lists:last(More)) / First;
growth(_) -> none.

bounded(none) -> unknown;
bounded(Growth) -> Growth < 3.

connections(Trees) ->
    {Mesh, Groups} = {per_node(of_mode(<<"ml">>, <<"connections">>, Trees)), per_node(of_mode(<<"sr">>, <<"connections">>, Trees))},
    claim("section VIII.ii", "Connections of a mesh grow with the square of the nodes; those of a node in s_groups do not grow with them.",
        verdict_of([bounded(growth(Groups)), case growth(Mesh) of none -> unknown; G -> G > 3 end]),
        case Mesh of [] -> none; _ -> ["Connections for each node: ML and GR ", said(Mesh), " nodes; SR ", said(Groups), "."] end,
        "").

namespace(Trees) ->
    {Global, Groups} = {per_node(of_mode(<<"gr">>, <<"names_held">>, Trees)), per_node(of_mode(<<"sr">>, <<"names_held">>, Trees))},
    claim("Figure 31", "Maintaining the namespace limits GR; SR keeps names in small groups.",
        verdict_of([bounded(growth(Groups)), case growth(Global) of none -> unknown; G -> G > 3 end]),
        case Global of [] -> none; _ -> ["On so many nodes each name is held: GR ", said(Global), "; SR ", said(Groups), "."] end,
        "That each must be told is what a name costs at least.").

registration(Names) ->
    Costs = [{N, Messages / N} || #{<<"nodes">> := N, <<"messages_per_name">> := Messages} <- Names],
    All = [Yes =:= Asked || #{<<"yes">> := Yes, <<"names">> := Asked} <- Names],
    claim("section V", "Names of an s_group are replicated and synchronised on its nodes only.",
        verdict_of([bounded(growth(Costs)) | All]),
        case Costs of [] -> none; _ -> ["A registration took, for each member of the group, this many messages: ", said(Costs), " members."] end,
        "So its cost is that of the group's size, and no other node is in it.").

gateways(Reached) ->
    Trips = [{N, Over / Mesh} || #{<<"nodes">> := N, <<"round_trip_ms_p50">> := Over, <<"mesh_ms_p50">> := Mesh} <- Reached, is_number(Over), is_number(Mesh), Mesh > 0],
    claim("section VIII.i", "What goes over gateways takes longer than what goes directly.",
        case Trips of [] -> unknown; _ -> lists:all(fun({_, Ratio}) -> Ratio > 1 end, Trips) end,
        case Trips of [] -> none; _ -> ["A round trip over gateways took as many times as long as in a mesh: ", said(Trips), " nodes."] end,
        "").
