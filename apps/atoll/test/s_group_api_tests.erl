%% SPDX-License-Identifier: Apache-2.0
%% What the functions answer where the application does not run, and while a process of it is being started
%% anew: the same everywhere, and never an exit.
-module(s_group_api_tests).

-include_lib("eunit/include/eunit.hrl").

api_test_() ->
    {setup, fun quiet/0, fun loud/1, {inorder, [
        fun it_is_started_and_stopped/0,
        fun a_start_that_fails_has_a_sentence/0,
        fun without_the_application_all_say_so/0,
        {timeout, 60, fun while_it_restarts_all_say_so/0}
    ]}}.

quiet() ->
    _ = s_group:stop(),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Level.

loud(Level) ->
    _ = s_group:stop(),
    logger:set_primary_config(level, Level).

it_is_started_and_stopped() ->
    ?assertEqual({error, s_group_not_runnig}, s_group:stop()),
    {ok, Pid} = s_group:start(),
    ?assertEqual(Pid, whereis(atoll_sup)),
    ?assertEqual({error, {already_started, Pid}}, s_group:start()),
    ?assertMatch({state, no_conf}, lists:keyfind(state, 1, s_group:info())),
    ?assertEqual({error, has_its_own_supervisor}, s_group:start_link()),
    ?assertEqual(stopped, s_group:stop()),
    ?assertEqual({error, s_group_not_runnig}, s_group:info()),
    ?assertEqual({error, has_its_own_supervisor}, s_group:start_link()),
    [?assertMatch([_ | _], lists:flatten(s_group:format_error(E))) || E <- [has_its_own_supervisor, {already_started, Pid}]].

a_start_that_fails_has_a_sentence() ->
    ok = application:set_env(atoll, max_names, none),
    {error, {not_started, {bad_option, max_names, _}} = Error} = s_group:start(),
    ?assertMatch("the application atoll could not be started" ++ _, lists:flatten(s_group:format_error(Error))),
    ok = application:unset_env(atoll, max_names).

%% With an answer for each kind that can say why.
calls() ->
    P = self(),
    [
        {error, s_group, new_s_group, [[node()]]},
        {error, s_group, new_s_group, [g, [node()]]},
        {error, s_group, delete_s_group, [g]},
        {error, s_group, add_nodes, [g, [n1]]},
        {error, s_group, remove_nodes, [g, [n1]]},
        {error, s_group, info, []},
        {error, s_group, sync, []},
        {no, s_group, register_name, [g, name, P]},
        {no, s_group, register_name_external, [g, name, P]},
        {no, s_group, re_register_name, [g, name, P]},
        {no, s_group, unregister_name, [g, name]},
        {no, s_group, unregister_name_external, [g, name]},
        {no, atoll_name, register, [g, name, P, meta]},
        {no, atoll_name, register_external, [g, name, P, meta]},
        {no, atoll_name, re_register, [g, name, P, meta]},
        {no, atoll_name, unregister, [g, name]},
        {error, atoll_name, info, []},
        %% These hang on other processes.
        {watch, s_group, monitor_nodes, [true]},
        {watch, s_group, monitor_nodes, [false]},
        {table, s_group, registered_names, [{s_group, g}]},
        {table, atoll_name, find, [g, name]},
        {table, s_group, add_attributes, [[a]]},
        {table, s_group, remove_attributes, [[a]]}
    ].

%% What has no place for a reason, and what it answers as well where there is none.
others() ->
    [
        {undefined, s_group, whereis_name, [g, name]},
        {undefined, s_group, whereis_name, [node(), g, name]},
        {{badarg, {g, name, hello}}, s_group, send, [g, name, hello]},
        {{badarg, {g, name, hello}}, s_group, send, [node(), g, name, hello]},
        {[], s_group, registered_names, [{node, node()}]},
        {undefined, s_group, s_groups, []},
        {[], s_group, own_s_groups, []},
        {[node()], s_group, own_nodes, []},
        {[], s_group, own_nodes, [g]},
        {[], s_group, choose_nodes, [[{s_group, g}, {attribute, a}]]},
        {[], s_group, registered_attributes, []},
        {no, atoll_name, register_name, [{g, name}, self()]},
        %% No node is in such a group.
        {{no, cannot_register_in_remote_group}, s_group, register_name, ["g", name, self()]},
        {{no, cannot_register_in_remote_group}, s_group, register_name_external, ["g", name, self()]},
        {{no, cannot_re_register_in_remote_group}, s_group, re_register_name, ["g", name, self()]},
        {{no, cannot_unregister_from_remote_group}, s_group, unregister_name, ["g", name]},
        {{no, cannot_unregister_from_remote_group}, s_group, unregister_name_external, ["g", name]},
        {undefined, atoll_name, whereis_name, [{g, name}]},
        {undefined, atoll_name, whereis, [g, name]},
        {none, atoll_name, lookup, [g, name]},
        {[], atoll_name, names, []},
        {[], atoll_name, names, [g]},
        {ok, atoll_name, bye, []}
    ].

without_the_application_all_say_so() ->
    [
        ?assertEqual({Call, {case Kind of no -> no; _ -> error end, s_group_not_runnig}}, {Call, apply(M, F, Args)})
     || {Kind, M, F, Args} = Call <- calls()
    ],
    [?assertEqual({Call, Answer}, {Call, apply(M, F, Args)}) || {Answer, M, F, Args} = Call <- others()],
    ?assertEqual([], s_group:add_attributes([node()], [a])),
    ?assertEqual({error, not_running}, atoll:subscribe(all)),
    ?assertEqual(ok, atoll:unsubscribe()),
    ?assertEqual(not_running, atoll:status()).

%% Who starts them stands still, so that they stay away.
while_it_restarts_all_say_so() ->
    {ok, _} = s_group:start(),
    Supervisors = [atoll_sup, atoll_group_sup],
    [ok = sys:suspend(Name) || Name <- Supervisors],
    [kill(Room) || Room <- [atoll_name, atoll_group, atoll_group_watch, atoll_events]],
    [
        ?assertEqual({Call, {case Kind of no -> no; _ -> error end, restarting}}, {Call, apply(M, F, Args)})
     || {Kind, M, F, Args} = Call <- calls(), Kind =/= table
    ],
    [?assertEqual({Call, Answer}, {Call, apply(M, F, Args)}) || {Answer, M, F, Args} = Call <- others()],
    %% What looks into tables goes on.
    ?assertEqual({error, no_information_about_remote_group}, atoll_name:find(g, name)),
    ?assertEqual({error, no_information_about_remote_group}, s_group:registered_names({s_group, g})),
    ?assertEqual([], s_group:registered_names({s_group, undefined})),
    ?assertEqual(ok, s_group:add_attributes([a])),
    ?assertEqual([a], s_group:registered_attributes()),
    ?assertEqual({error, restarting}, atoll:subscribe(all)),
    ?assertEqual({error, restarting}, atoll:unsubscribe()),
    ?assertMatch(#{names := restarting}, atoll:status()),
    [ok = sys:resume(Name) || Name <- lists:reverse(Supervisors)],
    ?assertEqual(stopped, s_group:stop()).

kill(Room) ->
    Ref = monitor(process, Room),
    true = exit(whereis(Room), kill),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.
