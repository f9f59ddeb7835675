%% SPDX-License-Identifier: Apache-2.0
%% The rooms of the house: each calls only those below it, no modules call each
%% other in a circle, and the library needs OTP alone. The call graph is xref's.
-module(atoll_rooms_tests).

-include_lib("eunit/include/eunit.hrl").

%% The rooms of the library from the ground up; what is not in a room of its own
%% is on top.
-define(ROOMS, [core, dist, link, overlay, route, group, place, atoll]).

%% The applications of the repository, each with those it may call.
-define(APPLICATIONS, #{
    atoll => [],
    atoll_compat => [atoll],
    atoll_cluster => [],
    %% The frame knows no tool: the commands of one stand on it, in the tool's application.
    atoll_cli => [atoll],
    atoll_test => [atoll_cli, atoll_cluster],
    atoll_sim => [atoll, atoll_cli],
    atoll_semantics => [atoll, atoll_cli, atoll_cluster],
    atoll_view => [atoll, atoll_cli, atoll_cluster, atoll_sim],
    atoll_flow => [atoll, atoll_cli, atoll_cluster, atoll_view],
    atoll_up => [atoll, atoll_cli, atoll_cluster, atoll_sim, atoll_view],
    atoll_deploy => [atoll_cli, atoll_cluster],
    atoll_chaos => [atoll, atoll_cli, atoll_cluster, atoll_deploy, atoll_sim, atoll_up, atoll_view],
    aco => [atoll],
    orbit => [atoll],
    im => [atoll],
    subscribers => [atoll],
    atoll_crdt => [atoll],
    matchstream => [atoll],
    adcounter => [atoll, atoll_crdt],
    ring => [atoll],
    %% The harness knows no case; what it measures of them are the benchmarks.
    atoll_bench => [atoll, atoll_cli, atoll_cluster, atoll_deploy],
    atoll_scale => [atoll, atoll_bench, atoll_cli, atoll_cluster, atoll_tsung, atoll_view, atoll_watch],
    debench => [atoll, atoll_bench, atoll_cluster],
    atoll_tsung => [atoll, atoll_bench, atoll_cli, atoll_cluster, atoll_view],
    atoll_benchmarks => [atoll, aco, adcounter, atoll_bench, atoll_chaos, atoll_cluster, atoll_crdt, atoll_scale, atoll_sim, debench, im, matchstream, orbit, ring, subscribers],
    atoll_cases => [atoll, aco, adcounter, atoll_bench, atoll_benchmarks, atoll_chaos, atoll_cli, atoll_cluster, atoll_deploy, atoll_scale, atoll_up, atoll_view, debench, im, matchstream, orbit, ring, subscribers],
    atoll_load => [atoll, atoll_bench, atoll_benchmarks, atoll_cli, atoll_cluster, matchstream, ring],
    atoll_experiments => [atoll, aco, atoll_bench, atoll_benchmarks, atoll_cli, atoll_cluster, atoll_load, atoll_sim, im, matchstream, orbit]
}).

%% What the library may call beside itself.
-define(OTP, [erts, kernel, stdlib, crypto, ssl, public_key]).

%% A call of one module of another, and the applications that they belong to.
-type edge() :: {{From :: module(), To :: module()}, {Of :: atom(), OfOther :: atom()}}.

rooms_test_() ->
    {setup, fun edges/0, fun(Edges) ->
        Own = [Edge || {Edge, {atoll, atoll}} <- Edges],
        [
            {"a room calls only the rooms below it", ?_assertEqual([], upward(Own))},
            {"a part of a room calls no other part of it", ?_assertEqual([], aside(Own))},
            {"the parts of the overlay are seen",
                ?_assertEqual([broadcast, detector, discovery, roster, strategy], parts(overlay, Own))},
            {"no circle of modules", ?_assertEqual([], circles(Own))},
            {"the library needs OTP alone", ?_assertEqual([], foreign(Edges))},
            {"an application calls only those it stands on", ?_assertEqual([], trespass(Edges))},
            {"the graph is not empty", ?_assert(length(Own) > 20)}
        ]
    end}.

%% Seconds on a busy machine: the graph grows with the repository, and to look for a module takes long.
-spec edges() -> [edge()].
edges() ->
    {ok, Xref} = xref:start([{xref_mode, modules}]),
    ok = xref:set_default(Xref, [{warnings, false}]),
    lists:foreach(
        fun(App) -> {ok, _} = xref:add_directory(Xref, filename:join(code:lib_dir(App), "ebin")) end,
        maps:keys(?APPLICATIONS)
    ),
    {ok, Edges} = xref:q(Xref, "ME"),
    xref:stop(Xref),
    Of = maps:from_list([{M, application(M)} || M <- lists:usort(lists:append([[From, To] || {From, To} <- Edges]))]),
    [{{From, To}, {map_get(From, Of), map_get(To, Of)}} || {From, To} <- Edges, From =/= To].

upward(Own) ->
    [Edge || {From, To} = Edge <- Own, floor_of(To) > floor_of(From)].

parts(Room, Own) ->
    lists:usort([Part || Edge <- Own, Module <- tuple_to_list(Edge), [In, Part] <- [folders(Module)], In =:= Room]).

%% What parts have in common stands in the room itself, as does what puts them together.
aside(Own) ->
    [
        Edge
     || {From, To} = Edge <- Own,
        [Room, One] <- [folders(From)],
        [Same, Other] <- [folders(To)],
        Room =:= Same,
        One =/= Other
    ].

circles(Own) ->
    Graph = digraph:new(),
    try
        _ = [digraph:add_vertex(Graph, M) || {From, To} <- Own, M <- [From, To]],
        _ = [digraph:add_edge(Graph, From, To) || {From, To} <- Own],
        digraph_utils:cyclic_strong_components(Graph)
    after
        digraph:delete(Graph)
    end.

foreign(Edges) ->
    [Edge || {_, {atoll, Other}} = Edge <- Edges, not lists:member(Other, [atoll | ?OTP])].

trespass(Edges) ->
    [
        Edge
     || {_, {Of, Other}} = Edge <- Edges,
        is_map_key(Other, ?APPLICATIONS),
        Of =/= Other,
        not lists:member(Other, maps:get(Of, ?APPLICATIONS))
    ].

%% How high the module's room lies.
floor_of(Module) ->
    Room =
        case folders(Module) of
            [Folder | _] -> Folder;
            [] -> atoll
        end,
    length(lists:takewhile(fun(R) -> R =/= Room end, ?ROOMS)).

%% The folders under src that it stands in: its room, and there its part.
folders(Module) ->
    Source = filename:split(filename:dirname(proplists:get_value(source, Module:module_info(compile)))),
    Within = lists:takewhile(fun(Folder) -> Folder =/= "src" end, lists:reverse(Source)),
    lists:reverse([list_to_atom(Folder) || Folder <- Within]).

application(Module) ->
    case code:which(Module) of
        preloaded -> erts;
        Path when is_list(Path) -> application_of(filename:split(Path));
        _ -> Module
    end.

%% .../lib/kernel-8.5/ebin/net_kernel.beam
application_of(Parts) ->
    [_Beam, "ebin", Folder | _] = lists:reverse(Parts),
    list_to_atom(hd(string:split(Folder, "-"))).
