%% SPDX-License-Identifier: Apache-2.0
%% Which kind of connection the carrier is told to want of the nodes of groups.
-module(atoll_group_kinds_tests).

-include_lib("eunit/include/eunit.hrl").

-define(GROUPS, [{far, [a, b, c]}, {near, [a, c, d]}, {other, [a, e]}]).

only_the_others_of_a_group_with_a_kind_are_concerned_test() ->
    ?assertEqual(#{b => {lanes, 4}, c => {lanes, 4}}, atoll_group_kinds:wanted(#{far => {lanes, 4}}, ?GROUPS, a)).

a_node_in_two_groups_gets_what_two_ends_would_agree_on_test_() ->
    [
        ?_assertMatch(#{c := Both}, atoll_group_kinds:wanted(Kinds, Groups, a))
     || {One, Other, Both} <- [
            {auto, auto, auto},
            {direct, auto, direct},
            {{lanes, 2}, auto, {lanes, 2}},
            {{lanes, 2}, direct, {lanes, 2}},
            {{lanes, 2}, {lanes, 16}, {lanes, 16}}
        ],
        Kinds <- [#{far => One, near => Other}, #{far => Other, near => One}],
        Groups <- [?GROUPS, lists:reverse(?GROUPS)]
    ].

%% With the process

told_test_() ->
    {foreach,
        fun() ->
            {ok, Pid} = atoll_group_kinds:start_link(#{far => {lanes, 4}, near => direct}),
            true = unlink(Pid),
            Pid
        end,
        fun(Pid) ->
            case is_process_alive(Pid) of
                true -> gen_server:stop(Pid);
                false -> ok
            end
        end, [
            fun(_) -> {"the carrier is told of groups that come, change and go", fun changes/0} end,
            fun(_) -> {"nodes count as in a group while it is being made", fun making/0} end,
            fun(_) -> {"a maker that is killed leaves nothing behind", fun killed/0} end,
            fun(Pid) -> {"nothing is told any more when it has ended", fun() -> ended(Pid) end} end,
            fun(Pid) -> {"who waits for it when it is killed is let go", fun() -> killed_itself(Pid) end} end
        ]}.

changes() ->
    ok = atoll_group_kinds:groups([{far, [node(), a@h]}, {near, [b@h]}]),
    ?assertEqual(#{<<"a@h">> => {lanes, 4}, <<"b@h">> => direct}, atoll_dist_keeper:preferred()),
    ok = atoll_group_kinds:groups([{near, [b@h, c@h]}]),
    ?assertEqual(#{<<"b@h">> => direct, <<"c@h">> => direct}, atoll_dist_keeper:preferred()),
    ok = atoll_group_kinds:groups([]),
    ?assertEqual(#{}, atoll_dist_keeper:preferred()).

making() ->
    Seen = atoll_group_kinds:during(far, [a@h], fun atoll_dist_keeper:preferred/0),
    ?assertEqual(#{<<"a@h">> => {lanes, 4}}, Seen),
    over().

killed() ->
    Self = self(),
    Maker = spawn(fun() ->
        atoll_group_kinds:during(far, [a@h], fun() ->
            Self ! here,
            receive never -> ok end
        end)
    end),
    receive here -> ok end,
    ?assertEqual(#{<<"a@h">> => {lanes, 4}}, atoll_dist_keeper:preferred()),
    Ref = monitor(process, Maker),
    true = exit(Maker, kill),
    receive {'DOWN', Ref, _, _, _} -> ok end,
    over().

%% The news that the maker is gone may be on its way.
over() ->
    over(erlang:monotonic_time(millisecond) + 5000).

over(Deadline) ->
    _ = sys:get_state(atoll_group_kinds),
    case atoll_dist_keeper:preferred() of
        #{} = None when None =:= #{} -> ok;
        _ ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            over(Deadline)
    end.

killed_itself(Pid) ->
    ok = sys:suspend(Pid),
    {_, Ref} = spawn_monitor(fun() -> exit({said, atoll_group_kinds:groups([{near, [b@h]}])}) end),
    waited_for(Pid, erlang:monotonic_time(millisecond) + 5000),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, _, _, Why} -> ?assertEqual({said, ok}, Why) end.

waited_for(Pid, Deadline) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, 0} ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            waited_for(Pid, Deadline);
        {message_queue_len, 1} ->
            ok
    end.

ended(Pid) ->
    ok = atoll_group_kinds:groups([{near, [b@h]}]),
    ok = gen_server:stop(Pid),
    ?assertEqual(#{}, atoll_dist_keeper:preferred()),
    %% And without the process nobody waits.
    ok = atoll_group_kinds:groups([{near, [b@h]}]),
    ?assertEqual(done, atoll_group_kinds:during(near, [b@h], fun() -> done end)).
