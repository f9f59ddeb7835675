%% SPDX-License-Identifier: Apache-2.0
%% The directory on real nodes: who stands where is known everywhere, and routes come of it,
%% with reasons; who leaves, dies, relays for nobody, or is no node of Atoll.
%%
%% Two gateways join the first two groups, and one these with the third; the last node is
%% in no group. Most cases share a cluster, and each leaves it as it was.
-module(atoll_route_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [until/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    every_node_knows_how_to_reach_all_and_why/1,
    a_gateway_that_dies_is_passed_by_and_none_is_no_route/1,
    who_leaves_is_gone_at_once_and_comes_back/1,
    a_node_in_no_group_is_reached_by_its_link/1,
    who_relays_for_nobody_is_named_in_the_refusal/1,
    the_neighbours_of_an_overlay_are_links/1,
    a_hidden_peer_is_not_greeted/1,
    a_group_that_changes_moves_its_nodes/1,
    the_carrier_goes_by_the_routes_and_relays_by_the_policy/1,
    its_process_starts_anew_with_all_that_it_is_fed/1
]).

-define(CALL_MS, 20000).
-define(DIRECTORY, #{gather_ms => 50, pause_ms => 50, compare_ms => 1000, vouch_ms => 1000}).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [
        every_node_knows_how_to_reach_all_and_why,
        a_gateway_that_dies_is_passed_by_and_none_is_no_route,
        who_leaves_is_gone_at_once_and_comes_back,
        a_node_in_no_group_is_reached_by_its_link,
        who_relays_for_nobody_is_named_in_the_refusal,
        a_group_that_changes_moves_its_nodes,
        its_process_starts_anew_with_all_that_it_is_fed,
        the_neighbours_of_an_overlay_are_links,
        a_hidden_peer_is_not_greeted,
        the_carrier_goes_by_the_routes_and_relays_by_the_policy
    ].

init_per_suite(Config) ->
    [{shared, start(shared)} | Config].

end_per_suite(Config) ->
    atoll_cluster:stop(?config(shared, Config)).

init_per_testcase(Case, Config) ->
    Cluster =
        case count(Case) of
            shared -> ?config(shared, Config);
            _ -> start(Case)
        end,
    [{cluster, Cluster} | Config].

end_per_testcase(Case, Config) ->
    Cluster = ?config(cluster, Config),
    case count(Case) of
        shared -> mend(Cluster);
        _ -> atoll_cluster:stop(Cluster)
    end.

start(Case) ->
    Count = case Case of shared -> 8; _ -> count(Case) end,
    atoll_cluster_owned:start(#{nodes => Count, connect_all => false, apps => [atoll], args => fun(Nodes) -> args(Case, Nodes) end}).

count(a_hidden_peer_is_not_greeted) -> 2;
count(the_neighbours_of_an_overlay_are_links) -> atoll_tier:size(link_overlay_nodes);
count(the_carrier_goes_by_the_routes_and_relays_by_the_policy) -> 8;
count(_) -> shared.

%% All are up, relay for everybody and are in the groups of the configuration; the last one is in none,
%% and nobody knows it.
mend(C) ->
    Nodes = atoll_cluster:nodes(C),
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [ok = again(C, Node) || #{node := Node, state := down} <- Infos],
    _ = [ok = relays(C, Node, all) || Node <- Nodes, {ok, Relays} <- [call(C, Node, application, get_env, [atoll, relays])], Relays =/= all],
    {Groups, Free} = {groups(Nodes), lists:last(Nodes)},
    lists:foreach(fun({Name, Members}) -> ok = has_members(C, Name, Members) end, Groups),
    case call(C, Free, erlang, nodes, []) of
        [] ->
            ok;
        _ ->
            ok = call(C, Free, application, stop, [atoll]),
            %% One that goes by itself meanwhile is as good.
            _ = [call(C, Free, erlang, disconnect_node, [Node]) || Node <- call(C, Free, erlang, nodes, [])],
            ok = call(C, Free, application, start, [atoll])
    end,
    _ = settled(C),
    [until(fun() -> lists:prefix("nobody has told", no_route(C, Node, Free)) end) || Node <- Nodes, Node =/= Free].

again(C, Node) ->
    ok = atoll_overlay_cluster:await_down(C, Node),
    atoll_cluster:restart(C, Node).

%% By the word of one that is in it.
has_members(C, Name, [Member | _] = Members) ->
    until(fun() ->
        case call(C, Member, s_group, own_nodes, [Name]) of
            Members -> true;
            Now ->
                _ = [call(C, Member, s_group, remove_nodes, [Name, Now -- Members]) || Now -- Members =/= []],
                _ = [call(C, Member, s_group, add_nodes, [Name, Members -- Now]) || Members -- Now =/= []],
                false
        end
    end).

args(the_carrier_goes_by_the_routes_and_relays_by_the_policy = Case, Nodes) ->
    ["-proto_dist", "atoll" | args({stock, Case}, Nodes)];
args(a_hidden_peer_is_not_greeted, _) ->
    ["-hidden", "-atoll", "directory", "on"];
args(the_neighbours_of_an_overlay_are_links, _) ->
    ["-atoll", "directory", term(?DIRECTORY), "overlay", "static"];
args(_, Nodes) ->
    ["-atoll", "linger", "200", "group_answer_timeout", "10000", "directory", term(?DIRECTORY), "s_groups", term(groups(Nodes))].

groups([A1, G1, G2, B1, G3, C1, C2, _Free]) ->
    [{a, [A1, G1, G2]}, {b, [G1, G2, B1, G3]}, {c, [G3, C1, C2]}].

term(Term) -> lists:flatten(io_lib:format("~0p", [Term])).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

route(C, From, To) -> call(C, From, atoll, route, [To]).

%% Its sentence.
no_route(C, From, To) ->
    {error, Error} = route(C, From, To),
    lists:flatten(io_lib:format("~ts", [atoll:format_error(Error)])).

%% All that are in a group know each other.
settled(C) ->
    Nodes = lists:droplast(atoll_cluster:nodes(C)),
    _ = [until(fun() -> call(C, Node, atoll, reachable, []) =:= {ok, Nodes -- [Node]} end) || Node <- Nodes],
    list_to_tuple(atoll_cluster:nodes(C)).

every_node_knows_how_to_reach_all_and_why(Config) ->
    C = ?config(cluster, Config),
    {A1, G1, G2, B1, G3, C1, _, Free} = settled(C),
    {ok, #{path := Path, hops := Hops, alternatives := Others, now := none}} = route(C, A1, C1),
    Both = [[A1, G1, G3, C1], [A1, G2, G3, C1]],
    ?assert(lists:member(Path, Both)),
    ?assertEqual(Both -- [Path], Others),
    [_, G | _] = Path,
    ?assertEqual(
        [
            #{from => A1, to => G, via => {group, a}, choices => 1},
            #{from => G, to => G3, via => {group, b}, choices => 2},
            #{from => G3, to => C1, via => {group, c}, choices => 1}
        ],
        Hops
    ),
    %% The gateways of two groups share their pairs; a co-member is a link away.
    ?assertMatch({ok, #{path := [B1, G3], now := link}}, route(C, B1, G3)),
    ?assertEqual({error, {not_a_node, "b"}}, route(C, B1, "b")),
    ?assertEqual(lists:concat([B1, " is both ends"]), no_route(C, B1, B1)),
    ?assertEqual(lists:concat(["nobody has told where ", Free, " is"]), no_route(C, B1, Free)),
    %% Nodes are known before they are connected.
    until(fun() ->
        #{route := #{linked := Linked}} = call(C, G3, atoll, status, []),
        Linked =:= 5
    end),
    #{route := #{places := 7, cliques := 3, groups := [b, c], relays := all, counters := #{sent := _}}} = call(C, G3, atoll, status, []),
    %% What the carrier asks.
    Ask = fun(To, Options) -> call(C, A1, atoll_interpreter, call, [atoll_route, {route, To, Options}]) end,
    ?assertEqual({ok, [A1, G2, G3, C1]}, Ask(C1, #{avoid => [G1]})),
    ?assertMatch({error, {no_route, _}}, Ask(C1, #{avoid => [G1, G2]})),
    ?assertMatch({error, {unknown, _}}, Ask(Free, #{})),
    ?assertEqual(Both, lists:usort([R || Salt <- lists:seq(1, 30), {ok, R} <- [Ask(C1, #{salt => Salt})]])).

a_gateway_that_dies_is_passed_by_and_none_is_no_route(Config) ->
    C = ?config(cluster, Config),
    {A1, G1, G2, B1, _, C1, _, _} = settled(C),
    ok = atoll_cluster:kill(C, G1),
    until(fun() -> not lists:member(G1, element(2, call(C, C1, atoll, reachable, []))) end),
    ?assertMatch({ok, #{path := [C1, _, G2, A1], alternatives := []}}, route(C, C1, A1)),
    ok = atoll_cluster:kill(C, G2),
    %% Until it has heard of the loss there is a route.
    until(fun() -> element(1, route(C, A1, B1)) =:= error end),
    ?assertMatch("no chain of groups and links leads" ++ _, no_route(C, A1, B1)),
    ok = again(C, G1),
    until(fun() -> element(1, route(C, A1, C1)) =:= ok end),
    ?assertMatch({ok, #{path := [A1, G1, _, C1]}}, route(C, A1, C1)),
    until(fun() -> element(1, route(C, C1, A1)) =:= ok end).

who_leaves_is_gone_at_once_and_comes_back(Config) ->
    C = ?config(cluster, Config),
    {A1, _, _, B1, G3, C1, _, _} = settled(C),
    Declared = fun() -> #{route := #{declared_gone := N}} = call(C, B1, atoll, status, []), N end,
    Before = Declared(),
    ok = call(C, G3, application, stop, [atoll]),
    %% Nobody has to miss it for that.
    until(fun() -> not lists:member(G3, element(2, call(C, A1, atoll, reachable, []))) end),
    ?assertEqual(Before, Declared()),
    ok = call(C, G3, application, start, [atoll]),
    until(fun() -> element(1, route(C, A1, C1)) =:= ok end).

a_node_in_no_group_is_reached_by_its_link(Config) ->
    C = ?config(cluster, Config),
    {A1, _, _, _, G3, C1, _, Free} = settled(C),
    true = call(C, Free, net_kernel, connect_node, [A1]),
    until(fun() -> element(1, route(C, C1, Free)) =:= ok end),
    {ok, #{path := [C1, G3, _, A1, Free], hops := Hops}} = route(C, C1, Free),
    ?assertMatch(#{from := A1, via := link}, lists:last(Hops)),
    until(fun() -> element(1, route(C, Free, C1)) =:= ok end),
    ?assertMatch({ok, #{path := [Free, A1, _, G3, C1]}}, route(C, Free, C1)).

who_relays_for_nobody_is_named_in_the_refusal(Config) ->
    C = ?config(cluster, Config),
    {A1, G1, G2, _, G3, C1, C2, _} = settled(C),
    ok = relays(C, G3, none),
    Refusal = lists:concat(["from ", A1, " to ", C1, " the only way is over ", G3, ", which relays for nobody"]),
    until(fun() -> element(1, route(C, A1, C1)) =:= error andalso no_route(C, A1, C1) =:= Refusal end),
    {error, {refused, _}} = call(C, A1, atoll_interpreter, call, [atoll_route, {route, C1, #{}}]),
    %% It is an end itself as before.
    ?assertMatch({ok, _}, route(C, A1, G3)),
    ok = relays(C, G3, all),
    ok = relays(C, G1, [c]),
    ok = relays(C, G2, [b]),
    until(fun() -> element(1, route(C, A1, C2)) =:= ok end),
    until(fun() -> [P || {ok, #{path := P}} <- [route(C, A1, C2)]] =:= [[A1, G1, G3, C2]] end),
    %% The carrier of G1 is told of these.
    until(fun() -> #{route := #{relays_for := N}} = call(C, G1, atoll, status, []), N =:= 3 end).

%% From a new start on.
relays(C, Node, Relays) ->
    ok = call(C, Node, application, stop, [atoll]),
    ok = call(C, Node, application, set_env, [atoll, relays, Relays]),
    call(C, Node, application, start, [atoll]).

the_neighbours_of_an_overlay_are_links(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    %% In a line.
    _ = [ok = call(C, A, atoll, tell, [{join, B}]) || {A, B} <- lists:zip(lists:droplast(Nodes), tl(Nodes))],
    [First | _] = Nodes,
    Last = lists:last(Nodes),
    until(fun() -> [P || {ok, #{path := P}} <- [route(C, First, Last)]] =:= [Nodes] end),
    ?assertMatch({ok, #{hops := [#{via := link} | _]}}, route(C, First, Last)),
    until(fun() -> call(C, Last, atoll, reachable, []) =:= {ok, lists:droplast(Nodes)} end),
    %% Who leaves the overlay leaves the directory.
    ok = call(C, Last, atoll, leave, []),
    until(fun() -> element(1, route(C, First, Last)) =:= error end),
    #{route := #{left := true}} = call(C, Last, atoll, status, []),
    Neighbour = lists:last(lists:droplast(Nodes)),
    ok = call(C, Last, atoll, join, [Neighbour]),
    ok = call(C, Last, atoll, tell, [{join, Neighbour}]),
    until(fun() -> element(1, route(C, First, Last)) =:= ok end).

a_hidden_peer_is_not_greeted(Config) ->
    C = ?config(cluster, Config),
    [A, B] = atoll_cluster:nodes(C),
    %% B plays the stranger.
    ok = call(C, B, application, stop, [atoll]),
    Ear = call(C, B, erlang, spawn, [timer, sleep, [infinity]]),
    true = call(C, B, erlang, register, [atoll_route, Ear]),
    Heard = fun() -> call(C, B, erlang, process_info, [Ear, messages]) end,
    true = call(C, B, net_kernel, connect_node, [A]),
    Status = fun() -> maps:get(route, call(C, A, atoll, status, [])) end,
    %% The rooms hear of it in the order of their subscriptions, and this one has when the link room has.
    until(fun() -> lists:member(B, [N || #{node := N} <- call(C, A, atoll_link, links, [])]) end),
    ?assertMatch(#{linked := 0, comparisons := 0, counters := #{sent := 0}}, Status()),
    ?assertEqual({messages, []}, Heard()),
    %% It speaks, and is answered.
    {atoll, 1, B, _} = call(C, B, erlang, send, [{atoll_route, A}, {atoll, 1, B, {1, {root, 0}}}]),
    until(fun() -> maps:get(linked, Status()) =:= 1 end),
    until(fun() -> Heard() =/= {messages, []} end).

a_group_that_changes_moves_its_nodes(Config) ->
    C = ?config(cluster, Config),
    {A1, _, _, _, _, C1, C2, Free} = settled(C),
    Folder = filename:join(?config(priv_dir, Config), recorded),
    ok = call(C, C1, atoll, record, [Folder]),
    {ok, c, [Free]} = call(C, C2, s_group, add_nodes, [c, [Free]]),
    %% Before that it may be known by its link with who has added it.
    until(fun() -> [length(P) || {ok, #{path := P}} <- [route(C, A1, Free)]] =:= [4] end),
    ok = call(C, C2, s_group, remove_nodes, [c, [C1]]),
    %% It is there still, and in no group: its links lead to it until they are closed.
    until(fun() -> call(C, C1, s_group, own_s_groups, []) =:= [] end),
    until(fun() ->
        #{route := #{groups := Groups, cliques := Cliques}} = call(C, C1, atoll, status, []),
        {Groups, Cliques} =:= {[], 3}
    end),
    {ok, #{route := _}} = call(C, C1, atoll, record, [off]),
    {ok, #{protocol := Protocol, events := [_ | _]} = Recording, _} = atoll_recording:read(filename:join(Folder, "route.rec")),
    ?assertEqual(ok, atoll_protocol:replay(Protocol, Recording)).

the_carrier_goes_by_the_routes_and_relays_by_the_policy(Config) ->
    C = ?config(cluster, Config),
    {A1, G1, G2, B1, G3, C1, C2, Free} = settled(C),
    {ok, #{path := [A1, Gateway, G3, C1] = Path, now := none}} = route(C, A1, C1),
    %% What was said is what is taken, each time.
    _ = [
        begin
            ok = parted(C, A1, C1),
            ?assertEqual(pong, call(C, A1, net_adm, ping, [C1])),
            ?assertMatch({ok, #{path := Path, now := {relay, Path}}}, route(C, A1, C1))
        end
     || _ <- lists:seq(1, 5)
    ],
    ?assertEqual({ok, {relay, lists:reverse(Path)}}, {ok, maps:get(now, element(2, route(C, C1, A1)))}),
    ?assert(lists:member(Gateway, [G1, G2])),
    %% The link is with the gateway, and the directory counts no circuit for one.
    #{route := #{linked := 2}, connections := Connections} = call(C, A1, atoll, status, []),
    ?assertMatch([#{kind := relay, sealed := false}], [L || #{node := N} = L <- Connections, N =:= C1]),
    ?assertEqual(3, length(Connections)),
    #{circuits := 1} = call(C, G3, atoll_dist, relay, []),
    %% Whoever is in no group is connected with directly, since nobody knows a way.
    ?assertEqual(pong, call(C, A1, net_adm, ping, [Free])),
    ?assertMatch([#{kind := direct}], [L || #{node := N} = L <- call(C, A1, atoll, links, []), N =:= Free]),
    %% Circuits that the policy does not allow any more end, and no other one is made, nor a link.
    ok = relays(C, G3, [a]),
    until(fun() -> element(1, route(C, A1, C2)) =:= ok end),
    until(fun() -> #{route := #{relays_for := N}} = call(C, G3, atoll, status, []), N =:= 3 end),
    until(fun() -> lists:prefix(lists:concat(["from ", B1, " to ", C2, " the only way is over ", G3]), sentence(C, B1, C2)) end),
    ?assertEqual(pong, call(C, A1, net_adm, ping, [C2])),
    ?assertEqual(pang, call(C, B1, net_adm, ping, [C2])),
    %% What it knows when its process is started anew ends none. The circuit that had ended comes back, by itself or by what is sent,
    %% since one of its ends is in the group.
    until(fun() -> call(C, A1, net_adm, ping, [C1]) =:= pong end),
    until(fun() -> maps:get(circuits, call(C, G3, atoll_dist, relay, [])) =:= 2 end),
    #{circuits := Circuits, lost := Lost} = call(C, G3, atoll_dist, relay, []),
    ok = started_anew(C, G3),
    until(fun() -> [N || #{route := #{places := 8, relays_for := N}} <- [call(C, G3, atoll, status, [])]] =:= [3] end),
    ?assertMatch(#{circuits := Circuits, lost := Lost}, call(C, G3, atoll_dist, relay, [])),
    ?assertEqual(pong, call(C, A1, net_adm, ping, [C2])),
    %% A carrier that has forgotten asks for it; what it keeps itself is no list of nodes, which costs
    %% the whole node a moment with each change.
    ?assertEqual(told, call(C, G3, persistent_term, get, [atoll_dist_relay_policy])),
    ok = call(C, G3, atoll_dist, relay_policy, [none]),
    until(fun() -> not lists:member(C2, call(C, A1, erlang, nodes, [])) end),
    {atoll_dist, relay_policy} = call(C, G3, erlang, send, [atoll_route, {atoll_dist, relay_policy}]),
    until(fun() -> call(C, A1, net_adm, ping, [C2]) =:= pong end),
    %% The relay holds to it whoever asks: here one that goes by no directory.
    ?assertEqual(pong, call(C, A1, net_adm, ping, [C1])),
    ok = relays(C, G3, none),
    until(fun() -> not lists:member(C1, call(C, A1, erlang, nodes, [])) end),
    %% Before that it is nowhere, and all connect directly.
    until(fun() -> lists:prefix(lists:concat(["from ", A1, " to ", C1, " the only way is over ", G3]), sentence(C, A1, C1)) end),
    ?assertMatch(#{circuits := 0, lost := #{policy := _}}, call(C, G3, atoll_dist, relay, [])),
    ?assertEqual(pang, call(C, A1, net_adm, ping, [C1])),
    %% A relay whose application is not there relays for nobody, though both ends know a way over it.
    ok = relays(C, G3, all),
    until(fun() -> element(1, route(C, A1, C1)) =:= ok end),
    ?assertEqual(pong, call(C, A1, net_adm, ping, [C1])),
    ok = call(C, G3, application, stop, [atoll]),
    until(fun() -> not lists:member(C1, call(C, A1, erlang, nodes, [])) end),
    ?assertMatch(#{circuits := 0, lost := #{policy := _}}, call(C, G3, atoll_dist, relay, [])),
    ok = call(C, G3, application, start, [atoll]),
    %% Without the application nobody is asked, and all connect directly.
    ok = call(C, A1, application, stop, [atoll]),
    ?assertEqual(pong, call(C, A1, net_adm, ping, [C1])),
    ?assertMatch([#{kind := direct}], [L || #{node := N} = L <- call(C, A1, atoll, links, []), N =:= C1]).

%% Neither has the other. OTP's process `rex' answers a node that comes up, and may connect again with
%% one that has just gone.
parted(C, A, B) ->
    until(fun() ->
        _ = call(C, A, erlang, disconnect_node, [B]),
        not lists:member(B, call(C, A, erlang, nodes, [])) andalso not lists:member(A, call(C, B, erlang, nodes, []))
    end).

sentence(C, From, To) ->
    case route(C, From, To) of
        {ok, _} -> "";
        {error, Error} -> lists:flatten(io_lib:format("~ts", [atoll:format_error(Error)]))
    end.

started_anew(C, Node) ->
    Before = call(C, Node, erlang, whereis, [atoll_route]),
    true = call(C, Node, erlang, exit, [Before, kill]),
    until(fun() -> not lists:member(call(C, Node, erlang, whereis, [atoll_route]), [Before, undefined]) end).

its_process_starts_anew_with_all_that_it_is_fed(Config) ->
    C = ?config(cluster, Config),
    {A1, G1, _, _, G3, C1, _, _} = settled(C),
    ok = started_anew(C, G3),
    until(fun() ->
        case call(C, G3, atoll, status, []) of
            #{route := #{places := 7, linked := 5, groups := [b, c]}} -> true;
            _ -> false
        end
    end),
    until(fun() -> element(1, route(C, A1, C1)) =:= ok end),
    ?assertMatch({ok, #{path := [G3, G1]}}, route(C, G3, G1)).
