%% SPDX-License-Identifier: Apache-2.0
%% The hub's life: what outlives it when distribution is stopped and started again.
-module(atoll_dist_hub_tests).

-include_lib("eunit/include/eunit.hrl").

-export([started/0, stopped/1]).

-define(NODE, 'b@127.0.0.1').
-define(DEADLINE_MS, 5000).

%% As the supervisor of distribution does it.
started() ->
    {ok, Keeper} = atoll_dist_keeper:start_link(),
    {ok, Hub} = atoll_dist_hub:start_link(),
    [Hub, Keeper].

stopped(Pids) ->
    lists:foreach(
        fun(Pid) ->
            true = unlink(Pid),
            Ref = monitor(process, Pid),
            true = exit(Pid, shutdown),
            receive {'DOWN', Ref, process, Pid, shutdown} -> ok after ?DEADLINE_MS -> error(no_end) end
        end,
        Pids
    ).

heard() ->
    receive
        {atoll_dist, What, Node} -> {What, Node}
    after ?DEADLINE_MS -> nothing
    end.

who_watches_links_hears_of_them_when_distribution_is_started_again_test() ->
    First = started(),
    ?assertEqual([], atoll_dist:watch_links()),
    ok = atoll_dist_circuits:linked(?NODE, self(), messages),
    ?assertEqual({linked, ?NODE}, heard()),
    ?assertMatch(#{queue := _}, atoll_dist:relay()),
    ok = stopped(First),
    ?assertEqual({unlinked, ?NODE}, heard()),
    Second = started(),
    ok = atoll_dist_circuits:linked(?NODE, self(), messages),
    ?assertEqual({linked, ?NODE}, heard()),
    %% Once.
    ?assertEqual([?NODE], atoll_dist:watch_links()),
    ok = atoll_dist_circuits:counts(?NODE, self(), false),
    ?assertEqual({unlinked, ?NODE}, heard()),
    ok = stopped(Second),
    ?assertEqual({messages, []}, process_info(self(), messages)).

what_is_wanted_is_said_anew_with_each_attempt_to_connect_test() ->
    Hub = started(),
    World = atoll_link:act({act, {connect, ?NODE}}, {world, #{}, #{}, #{}}),
    ?assert(atoll_dist_circuits:is_own(?NODE)),
    {world, _, Helpers, _} = World,
    _ = [receive {'DOWN', Ref, process, _, _} -> ok after ?DEADLINE_MS -> error(no_answer) end || Ref <- maps:keys(Helpers)],
    stopped(Hub).
