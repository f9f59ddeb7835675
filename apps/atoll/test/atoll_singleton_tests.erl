%% SPDX-License-Identifier: Apache-2.0
%% A singleton on one node, which shares its names with nobody.
-module(atoll_singleton_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, atoll_singleton_probe).
-define(KEY, {undefined, it}).

singleton_test_() ->
    {foreach, fun start/0, fun stop/1, [
        fun(_) -> {Title, {timeout, 30, fun() -> atoll_quiet:run(Test) end}} end
     || {Title, Test} <- [
            {"a crash is mended", fun a_crash_is_mended/0},
            {"too many crashes take no supervisor down", fun too_many_crashes_take_no_supervisor_down/0},
            {"what cannot be started is tried again", fun what_cannot_be_started_is_tried_again/0},
            {"a server without the name is ended", fun a_server_without_the_name_is_ended/0},
            {"a name that is taken back ends the server", fun a_name_that_is_taken_back_ends_the_server/0},
            {"it outlives a restart of the application", fun it_outlives_a_restart_of_the_application/0},
            {"the keeper's crash takes the server along", fun a_crash_of_the_keeper_takes_the_server_along/0},
            {"stop ends it for good", fun stop_ends_it_for_good/0},
            {"a keeper that has just ended has nothing to say", fun a_keeper_that_has_just_ended_has_nothing_to_say/0}
        ]
    ]}.

start() ->
    {ok, _} = application:ensure_all_started(atoll),
    ok.

stop(_) ->
    ok = ?P:end_all(),
    _ = persistent_term:erase(?P),
    atoll_quiet:run(fun() -> ok = application:stop(atoll) end).

begun(Start) ->
    ok = ?P:start([atoll_singleton:child_spec(undefined, it, #{start => Start})]).

a_crash_is_mended() ->
    ok = begun({?P, server, [undefined, it]}),
    First = ?P:await(?KEY, [node()]),
    ok = has_started(1),
    true = exit(First, kill),
    Second = another(First),
    ?assertEqual(pong, gen_server:call({via, atoll_name, ?KEY}, ping)),
    ok = has_started(2),
    %% Whatever its end.
    ok = gen_server:cast(Second, normal),
    _ = another(Second),
    ok = has_started(3),
    ?assertMatch(#{state := holder, counts := #{started := 3, restarted := 2}}, atoll_singleton:info(undefined, it)).

%% It has its name before its keeper hears that it has started; one that ends between is no crash but a start that has failed.
has_started(Times) -> wait(fun() -> count(started) end, Times).

another(Pid) ->
    case ?P:await(?KEY, [node()]) of
        Pid -> another(Pid);
        Other -> Other
    end.

too_many_crashes_take_no_supervisor_down() ->
    ok = begun({?P, server, [undefined, it]}),
    _ = lists:foldl(
        fun(Times, Last) ->
            ok = has_started(Times),
            true = exit(Last, kill),
            another(Last)
        end,
        ?P:await(?KEY, [node()]),
        lists:seq(1, 3)
    ),
    ok = has_started(4),
    true = exit(?P:await(?KEY, [node()]), kill),
    none = ?P:await(?KEY, none),
    wait(fun() -> count(left_to_others) end, 1),
    ?assertMatch([{_, Pid, _, _}] when is_pid(Pid), ?P:children()).

what_cannot_be_started_is_tried_again() ->
    ok = persistent_term:put(?P, refuse),
    ok = begun({?P, flapping, [undefined, it]}),
    wait(fun() -> count(failed) >= 2 end, true),
    true = persistent_term:erase(?P),
    ?assert(is_pid(?P:await(?KEY, [node()]))).

a_server_without_the_name_is_ended() ->
    ok = begun({?P, careless, []}),
    wait(fun() -> count(failed) >= 1 end, true),
    ?assertEqual(none, ?P:await(?KEY, none)).

a_name_that_is_taken_back_ends_the_server() ->
    ok = begun({?P, server, [undefined, it]}),
    First = ?P:await(?KEY, [node()]),
    Ref = monitor(process, First),
    ok = s_group:unregister_name(undefined, it),
    %% It would look by itself, some seconds later.
    ok = atoll_events:emit(s_group_node_added, #{group => other, node => other}),
    receive
        {'DOWN', Ref, process, First, Reason} -> ?assertEqual(shutdown, Reason)
    after 10000 -> error(it_lives)
    end,
    _ = another(First).

it_outlives_a_restart_of_the_application() ->
    ok = begun({?P, server, [undefined, it]}),
    First = ?P:await(?KEY, [node()]),
    ok = application:stop(atoll),
    ?assertNot(is_process_alive(First)),
    ok = application:start(atoll),
    ?assertNotEqual(First, ?P:await(?KEY, [node()])).

a_crash_of_the_keeper_takes_the_server_along() ->
    ok = begun({?P, server, [undefined, it]}),
    First = ?P:await(?KEY, [node()]),
    true = exit(stand_by(), kill),
    _ = another(First),
    ?assertNot(is_process_alive(First)).

stop_ends_it_for_good() ->
    ok = begun({?P, server, [undefined, it]}),
    First = ?P:await(?KEY, [node()]),
    _ = stand_by(),
    ?assertEqual([node()], atoll_singleton:stand_bys(undefined, it)),
    ?assertEqual(ok, atoll_singleton:stop(undefined, it)),
    ?assertNot(is_process_alive(First)),
    none = ?P:await(?KEY, none),
    ?assertEqual(none, atoll_singleton:info(undefined, it)),
    wait(fun() -> [Pid || {_, Pid, _, _} <- ?P:children()] end, [undefined]).

%% The table has its name for as long as the process of the names has not heard of it.
a_keeper_that_has_just_ended_has_nothing_to_say() ->
    ok = begun({?P, server, [undefined, it]}),
    _ = ?P:await(?KEY, [node()]),
    Keeper = stand_by(),
    Ref = monitor(process, Keeper),
    ok = sys:suspend(atoll_name),
    true = exit(Keeper, kill),
    receive {'DOWN', Ref, process, _, killed} -> ok end,
    try
        ?assertEqual(none, atoll_singleton:info(undefined, it))
    after
        ok = sys:resume(atoll_name)
    end.

%% The keeper, which takes its own name beside the start of its server.
stand_by() -> ?P:await({undefined, {atoll_singleton, it, node()}}, [node()]).

count(What) ->
    case atoll_singleton:info(undefined, it) of
        #{counts := #{What := Count}} -> Count;
        none -> 0
    end.

%% It is looked at until it is so.
wait(Look, Expected) -> wait(Look, Expected, erlang:monotonic_time(millisecond) + 15000).

wait(Look, Expected, Deadline) ->
    case Look() of
        Expected ->
            ok;
        Seen ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, {still, Seen}),
            receive after 5 -> wait(Look, Expected, Deadline) end
    end.

every_error_has_a_sentence_test_() ->
    Server = #{start => {?P, careless, []}},
    [
        ?_assertEqual({ok, Sentence}, said(fun() -> atoll_singleton:start_link(Group, it, Spec, Params) end))
     || {Group, Spec, Params, Sentence} <- [
            {"reef", Server, #{}, "a group is an atom, and not \"reef\""},
            {reef, tea, #{}, "a server is described as a child of a supervisor, with start at least, and not as tea"},
            {reef, Server#{restart => transient}, #{},
                "a singleton is started again whatever its end, so restart is permanent and not transient; atoll_singleton:stop/2 ends it"},
            {reef, Server, #{among => [a]}, "a singleton is placed among the nodes that stand by for it, and not among [a]"},
            {reef, Server, #{near => 7}, "a process is not placed with near that is 7"}
        ]
    ] ++
        [?_assertEqual("a@h, b@h did not say within 15 s that nobody stands by there any more", lists:flatten(atoll_singleton:format_error({not_stopped, [a@h, b@h]})))].

said(Start) ->
    case Start() of
        {error, Error} -> {ok, lists:flatten(atoll_singleton:format_error(Error))};
        Other -> Other
    end.
