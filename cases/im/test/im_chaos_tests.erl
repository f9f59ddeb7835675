%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's monkeys: what they kill, and how often, by the plan of the script that they are.
-module(im_chaos_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ROUTERS, ['r1@h', 'r2@h']).
-define(SERVERS, ['s1@h', 's2@h', 's3@h', 's4@h', 's5@h', 's6@h']).
-define(KILLS, 24000).

rhesus_kills_with_the_paper_s_weights_test_() ->
    {timeout, 60, fun() ->
        Kills = kills(im_chaos:rhesus(plan(#{mode => rsd}), 1, ?KILLS), atoll_tier:seed(?MODULE)),
        ?assertEqual(?KILLS, length(Kills)),
        Expected = #{
            router_side => 1 / 4, monitored_db => 3 / 4 / 5, chat_db => 3 / 4 / 5, client_db => 3 / 4 / 5, server_supervisor => 3 / 4 / 5,
            client_monitor => 3 / 4 / 10, chat_session => 3 / 4 / 10
        },
        Counts = maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun({_, What}) -> kind(What) end, Kills)),
        ?assertEqual(maps:keys(Expected), maps:keys(Counts)),
        [is_near(?KILLS * Share, map_get(Kind, Counts)) || {Kind, Share} <- maps:to_list(Expected)],
        %% Supervisor, its watcher and four routers on each of two nodes; each server as often.
        Each = maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun({Node, _}) -> Node end, Kills)),
        [is_near(?KILLS / 8, map_get(Node, Each)) || Node <- ?ROUTERS ++ ?SERVERS],
        [is_near(?KILLS / 4 / 12, length([x || Kill <- Kills, Kill =:= {Node, {name, Name}}])) || Node <- ?ROUTERS, Name <- [im_router_sup, router_supervisor, router_1, router_4]]
    end}.

rhesus_kills_the_databases_that_the_plan_has_on_a_node_test() ->
    {every, 5, 9, {one_of, Steps}} = im_chaos:rhesus(plan(#{mode => rsd}), 5, 9),
    [Names] = [[Name || {_, {name, Name}} <- What, lists:suffix("Chat_DB", atom_to_list(Name))] || {_, {kill_process, 's2@h', What}} <- Steps],
    %% The main one of its own shard, and the replica of the next one.
    ?assertEqual([server_2_Chat_DB, server_3_Chat_DB], Names).

baboon_kills_names_of_each_group_alike_test() ->
    Of = fun(Settings) -> lists:usort(kills(im_chaos:baboon(plan(Settings), 1, 100), 1)) end,
    ?assertEqual([{any, {any_name, global}}], Of(#{})),
    ?assertEqual([{any, {any_name, {group, router_1}}}, {any, {any_name, {group, router_2}}}], Of(#{mode => rsd})),
    Relayed = im_chaos:baboon(plan(#{mode => rsd, reach => relays}), 1, 2000),
    Names = lists:usort([Name || {_, {name, Name}} <- kills(Relayed, 1)]),
    ?assertEqual([im_plan:local_name(S, Kind, plan(#{mode => rsd})) || Kind <- [chat_db, client_db], S <- lists:seq(1, 6)], lists:sort(fun by_kind/2, Names)).

by_kind(A, B) -> key(A) =< key(B).

key(Name) ->
    [_, Number, Kind, _] = string:split(atom_to_list(Name), "_", all),
    {Kind =:= "Client", list_to_integer(Number)}.

the_paper_s_period_test() ->
    Periods = [im_chaos:period(Seed) || Seed <- lists:seq(1, 2000)],
    ?assert(lists:min(Periods) >= 6000 andalso lists:min(Periods) < 60000),
    ?assert(lists:max(Periods) =< 3600000 andalso lists:max(Periods) > 3540000),
    ?assertEqual(im_chaos:period(7), im_chaos:period(7)).

%% Five standard deviations.
is_near(Expected, Count) -> ?assert(abs(Count - Expected) < 5 * math:sqrt(Expected)).

kind({name, Name}) ->
    case {Name, lists:last(string:split(atom_to_list(Name), "_", all)), atom_to_list(Name)} of
        {im_monitored_db, _, _} -> monitored_db;
        {server_supervisor, _, _} -> server_supervisor;
        {_, "DB", Text} -> case string:find(Text, "Chat") of nomatch -> client_db; _ -> chat_db end;
        _ -> router_side
    end;
kind({module, im_client_monitor}) -> client_monitor;
kind({module, im_chat_session}) -> chat_session.

plan(Settings) ->
    {ok, Plan} = im_plan:new(Settings#{routers => ?ROUTERS, servers => ?SERVERS}),
    Plan.

%% What the script does, as whoever plays it.
kills(Step, Seed) ->
    Nodes = ?ROUTERS ++ ?SERVERS,
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => length(Nodes)}}, {at, 0, Step}]),
    ok = atoll_sim_script:check_names(Script, Nodes),
    {_, Plan} = atoll_sim_plan:script(Script, Nodes, Seed),
    all(Plan).

all(Plan0) ->
    case atoll_sim_plan:next(Plan0) of
        {_, Deeds, _, Plan} ->
            [{case On of [Node] -> Node; _ -> any end, What} || {kill_process, On, What, _} <- Deeds] ++ all(Plan);
        none ->
            []
    end.
