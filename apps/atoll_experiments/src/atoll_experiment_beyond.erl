%% SPDX-License-Identifier: Apache-2.0
%% @doc Beyond what one machine runs, from a hundred nodes to ten thousand: what follows from
%% formulas, and what the protocols do in simulation. The two are not the same, and are told apart.
-module(atoll_experiment_beyond).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(DEGREE, 5).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => beyond,
        title => "Beyond this machine, by arithmetic and in simulation",
        question => "What grows with the number of nodes, in a mesh and in groups, up to ten thousand?",
        minutes => 1,
        cannot => "time on real hosts: what is simulated are the protocols themselves, in virtual time, without processors and with a network of 1 to 20 ms; one history "
            "each. Connections of a mesh and copies of names are worked out, and nothing of global itself is simulated."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := Size}) ->
    {Trees, Names, Reached} = case Size of
        full -> {[100, 1000, 10000], [10, 32, 100, 200], [100, 1000]};
        small -> {[30], [5, 10], [20]}
    end,
    [
        #{key => tree, do => {rows, io_lib:format("connections and names of ACO's tree (degree ~b) worked out for ~ts nodes", [?DEGREE, listed(Trees)]),
            fun() -> {ok, [atoll_experiments_tree:count(Mode, N, ?DEGREE) || N <- Trees, Mode <- [ml, gr, sr]]} end}},
        #{key => names, do => {rows, io_lib:format("names of s_groups (atoll_sim_names): 20 registrations in one group of ~ts nodes", [listed(Names)]),
            fun() -> {ok, [atoll_sim_names:run(#{nodes => N}) || N <- Names]} end}},
        #{key => reach, do => {rows, io_lib:format("all that talk over the gateways of their groups (bin/atoll sim reach), ~ts nodes in groups of their number's square root", [listed(Reached)]),
            fun() -> {ok, [reached(N) || N <- Reached]} end}}
    ].

listed(Numbers) -> lists:join(", ", [integer_to_list(N) || N <- Numbers]).

reached(N) ->
    {ok, Result} = atoll_sim_reach:run(#{nodes => N, group_size => round(math:sqrt(N))}),
    maps:with([nodes, groups, connections_mean, connections_max, connections_mesh, round_trip_ms_p50, mesh_ms_p50, reached], Result).

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        table(tree, arithmetic, "ACO's tree; a name is held where it can be looked up:", [
            {"nodes", <<"nodes">>}, {"version", <<"mode">>}, {"connections, all", <<"connections">>}, {"busiest node", <<"connections_max">>},
            {"s_groups", <<"groups">>}, {"names held, all nodes", <<"names_held">>}
        ]),
        table(names, simulation, "A name in a group:", [
            {"nodes of the group", <<"nodes">>}, {"links", <<"links">>}, {"messages for a registration", <<"messages_per_name">>},
            {"answer, median, ms", <<"answer_ms_p50">>}, {"names", <<"names">>}, {"answered with yes", <<"yes">>}
        ]),
        table(reach, simulation, "Everybody reaches everybody, over gateways and in a mesh:", [
            {"nodes", <<"nodes">>}, {"groups", <<"groups">>}, {"connections of a node, mean", <<"connections_mean">>}, {"busiest", <<"connections_max">>},
            {"in a mesh", <<"connections_mesh">>}, {"round trip, ms", <<"round_trip_ms_p50">>}, {"in a mesh, ms", <<"mesh_ms_p50">>}, {"share reached", <<"reached">>}
        ])
    ].

table(Key, Kind, Caption, Columns) ->
    {Head, Keys} = lists:unzip(Columns),
    #{caption => Caption, from => Key, kind => Kind, head => Head, rows => fun({rows, Rows}) -> [[shown(maps:get(K, Row)) || K <- Keys] || Row <- Rows] end}.

shown(Mode) when is_binary(Mode) -> [string:uppercase(Mode), "-ACO"];
shown(Number) -> number(Number).

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => "section VIII.ii",
            says => "Connections of a mesh grow with the square of the nodes; those of a node in s_groups do not grow with them.",
            kind => arithmetic, from => tree, by => fun(Answer) -> compared(Answer, <<"connections">>, <<"ml">>, "Connections for each node") end
        },
        #{
            figure => "Figure 31",
            says => "Maintaining the namespace limits GR; SR keeps names in small groups.",
            kind => arithmetic, from => tree, by => fun(Answer) -> compared(Answer, <<"names_held">>, <<"gr">>, "On so many nodes each name is held") end,
            why => "That each must be told is what a name costs at least."
        },
        #{
            figure => "section V",
            says => "Names of an s_group are replicated and synchronised on its nodes only.",
            kind => simulation, from => names, by => fun registration/1,
            why => "So its cost is that of the group's size, and no other node is in it."
        },
        #{
            figure => "section VIII.i",
            says => "What goes over gateways takes longer than what goes directly.",
            kind => simulation, from => reach, by => fun gateways/1
        }
    ].

%% With groups and without, for each node.
compared({rows, Rows}, Key, Mode, Called) ->
    [Mesh, Groups] = [[{N, Value / N} || #{<<"nodes">> := N, <<"mode">> := M, Key := Value} <- Rows, M =:= Of] || Of <- [Mode, <<"sr">>]],
    {
        all([bounded(growth(Groups)), case growth(Mesh) of none -> unknown; G -> G > 3 end]),
        [Called, ": ", string:uppercase(Mode), " ", said(Mesh), " nodes; SR ", said(Groups), "."]
    }.

said(Values) -> lists:join(", ", [[number(Value), " at ", number(N)] || {N, Value} <- Values]).

%% From the first to the last, as a factor.
growth([{_, First} | [_ | _] = More]) when First > 0 -> element(2, lists:last(More)) / First;
growth(_) -> none.

bounded(none) -> unknown;
bounded(Growth) -> Growth < 3.

all(Each) ->
    case {lists:member(false, Each), lists:member(unknown, Each)} of
        {true, _} -> false;
        {false, true} -> unknown;
        {false, false} -> true
    end.

registration({rows, Rows}) ->
    Costs = [{N, Messages / N} || #{<<"nodes">> := N, <<"messages_per_name">> := Messages} <- Rows],
    {
        all([bounded(growth(Costs)) | [Yes =:= Asked || #{<<"yes">> := Yes, <<"names">> := Asked} <- Rows]]),
        ["A registration took, for each member of the group, this many messages: ", said(Costs), " members."]
    }.

gateways({rows, Rows}) ->
    Trips = [{N, Over / Mesh} || #{<<"nodes">> := N, <<"round_trip_ms_p50">> := Over, <<"mesh_ms_p50">> := Mesh} <- Rows, is_number(Over), is_number(Mesh), Mesh > 0],
    {
        case Trips of [] -> unknown; _ -> lists:all(fun({_, Ratio}) -> Ratio > 1 end, Trips) end,
        ["A round trip over gateways took as many times as long as in a mesh: ", said(Trips), " nodes."]
    }.
