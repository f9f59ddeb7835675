%% SPDX-License-Identifier: Apache-2.0
%% A partition that is handed over, on this node alone: the test is the master of the other node, which takes what comes when it likes.
-module(ring_vnode_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, 0).
-define(MS, 5000).

handoff_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {with, [fun what_was_handed_over_before_is_known_to_have_been/1]},
        {with, [fun what_changes_meanwhile_is_handed_over_again/1]},
        {with, [fun many_large_items_that_change_go_a_few_at_a_time/1]},
        {with, [fun commands_wait_for_the_last_items_and_are_passed_on/1]},
        {with, [fun a_partition_goes_on_when_whoever_hands_it_over_dies/1]},
        {with, [fun whoever_has_too_much_to_do_is_asked_again/1]},
        {with, [fun a_partition_that_is_not_to_be_here_is_not_taken/1]}
    ]}.

start() ->
    installed(#{}),
    {ok, Vnode} = ring_vnode:start_link({ring_kvs_vnode, ?P}, counters:new(1, [atomics])),
    true = unlink(Vnode),
    %% Whoever sends a command watches it.
    true = register(ring_master, spawn(fun() -> receive never -> ok end end)),
    Vnode.

installed(Told) ->
    {ok, Options} = ring_options:check(Told),
    ok = ring_options:install(Options),
    ring_view:new().

stop(Vnode) ->
    Ref = monitor(process, Vnode),
    ok = ring_vnode:drop(Vnode),
    receive {'DOWN', Ref, process, Vnode, _} -> ok end,
    ok = ended(whereis(ring_master), kill),
    uninstalled().

uninstalled() ->
    true = ets:delete(ring_view),
    ring_options:uninstall().

%% The test runs in a process of its own, and has commands come in.
master() -> true = register(ring_inbox:name(?P), self()).

handed(Vnode, Node) -> spawn_monitor(fun() -> ring_handoff:run(Vnode, ring_kvs_vnode, ?P, Node) end).

ended({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, Why} -> Why after ?MS -> late end.

%% Of a piece its keys, and who waits for the answer.
piece() -> receive {command, ring_kvs_vnode, ?P, here, {take, Items}, From} -> {[Key || {{_, Key}, _} <- Items], From} after ?MS -> late end.

taken(From) -> ring_send:reply(From, node(), taken).

all_taken(Worker, Keys) ->
    {_, Ref} = Worker,
    receive
        {command, ring_kvs_vnode, ?P, here, {take, Items}, From} ->
            ok = taken(From),
            all_taken(Worker, [Key || {{_, Key}, _} <- Items] ++ Keys);
        {'DOWN', Ref, process, _, Why} -> {Why, lists:sort(Keys)}
    after ?MS -> late
    end.

told(Vnode, Command) ->
    Alias = alias(),
    ok = ring_vnode:command(Vnode, primary, Command, {Alias, ?P}),
    Alias.

answer(Alias) -> receive {Alias, ?P, Answer} -> Answer after ?MS -> late end.

written(Vnode, Key) -> told(Vnode, {update, {?P, Key}, {1, {value, Key}}, #{}}).

fill(Vnode, Keys) -> [{ok, _, _} = answer(written(Vnode, Key)) || Key <- Keys].

what_was_handed_over_before_is_known_to_have_been(Vnode) ->
    master(),
    Keys = lists:seq(1, 500),
    _ = fill(Vnode, Keys),
    ?assertEqual({{handed, 500}, Keys}, all_taken(handed(Vnode, node()), [])),
    %% Nobody hands it back to whoever passes on to him.
    Alias = alias(),
    ok = ring_vnode:command(Vnode, here, {take, []}, {Alias, ?P}),
    ?assertEqual({error, passing}, answer(Alias)),
    %% Whoever began it may not have heard of its end.
    ?assertEqual({{handed, 0}, []}, all_taken(handed(Vnode, node()), [])),
    ?assertEqual({shutdown, turned}, ended(handed(Vnode, elsewhere@h))).

what_changes_meanwhile_is_handed_over_again(Vnode) ->
    master(),
    Keys = lists:seq(1, 300),
    _ = fill(Vnode, Keys),
    Worker = handed(Vnode, node()),
    {First, From} = piece(),
    _ = fill(Vnode, [hd(First)]),
    ok = taken(From),
    {{handed, 301}, Rest} = all_taken(Worker, []),
    ?assertEqual(lists:sort([hd(First) | Keys -- First]), Rest).

many_large_items_that_change_go_a_few_at_a_time(Vnode) ->
    master(),
    Keys = lists:seq(1, 6),
    _ = fill(Vnode, Keys),
    Worker = handed(Vnode, node()),
    {[_, _, _, _, _, _], From} = piece(),
    Value = binary:copy(<<0>>, 100_000),
    _ = [{ok, _, _} = answer(told(Vnode, {update, {?P, Key}, {1, {value, Value}}, #{}})) || Key <- Keys],
    ok = taken(From),
    {Some, Next} = piece(),
    ?assertEqual(3, length(Some)),
    ok = taken(Next),
    ?assertEqual({{handed, 12}, Keys -- Some}, all_taken(Worker, [])).

commands_wait_for_the_last_items_and_are_passed_on(Vnode) ->
    master(),
    _ = fill(Vnode, [a]),
    Worker = handed(Vnode, node()),
    {[a], From} = piece(),
    {ok, _, _} = answer(written(Vnode, a)),
    ok = taken(From),
    {[a], Last} = piece(),
    Waiting = told(Vnode, {get, {?P, a}}),
    _ = sys:get_state(Vnode),
    receive {Waiting, _, _} -> error(answered) after 0 -> ok end,
    ok = taken(Last),
    ?assertEqual({handed, 2}, ended(Worker)),
    %% The other node answers it, and what comes later.
    receive {command, ring_kvs_vnode, ?P, fallback, {get, {?P, a}}, {Waiting, ?P}} -> ok after ?MS -> error(late) end,
    Later = told(Vnode, {get, {?P, a}}),
    receive {command, ring_kvs_vnode, ?P, fallback, {get, {?P, a}}, {Later, ?P}} -> ok after ?MS -> error(late) end.

a_partition_goes_on_when_whoever_hands_it_over_dies(Vnode) ->
    master(),
    _ = fill(Vnode, [a]),
    {Pid, _} = Worker = handed(Vnode, node()),
    {[a], First} = piece(),
    {ok, _, _} = answer(written(Vnode, a)),
    ok = taken(First),
    {[a], _} = piece(),
    Waiting = written(Vnode, b),
    ?assertEqual(busy, gen_server:call(Vnode, handoff)),
    receive {Waiting, _, _} -> error(answered) after 0 -> ok end,
    true = exit(Pid, kill),
    ?assertEqual(killed, ended(Worker)),
    ?assertMatch({ok, _, _}, answer(Waiting)),
    %% The next one hands over all of it.
    ?assertEqual({{handed, 2}, [a, b]}, all_taken(handed(Vnode, node()), [])).

whoever_has_too_much_to_do_is_asked_again(Vnode) ->
    master(),
    _ = fill(Vnode, [a]),
    Worker = handed(Vnode, node()),
    {[a], From} = piece(),
    ok = ring_send:reply(From, node(), {error, overloaded}),
    ?assertEqual({{handed, 1}, [a]}, all_taken(Worker, [])).

%% It comes again when this node has heard of the plan.
a_partition_that_is_not_to_be_here_is_not_taken(Vnode) ->
    ok = ring_view:install(ring_state:new(16, 1, [elsewhere@h])),
    Take = fun() -> Alias = alias(), ok = ring_vnode:command(Vnode, here, {take, []}, {Alias, ?P}), answer(Alias) end,
    ?assertEqual({error, elsewhere}, Take()),
    ok = ring_view:install(ring_state:new(16, 1, [node()])),
    ?assertEqual(taken, Take()).

%% A partition with its master

master_test_() ->
    {foreach, fun begun/0, fun over/1, [
        {with, [fun what_comes_while_a_partition_ends_is_kept/1]},
        {with, [fun keys_that_compare_equal_are_two/1]},
        {with, [fun(Begun) -> atoll_quiet:run(fun() -> a_store_that_cannot_be_opened_is_a_sentence(Begun) end) end]}
    ]}.

begun() ->
    Dir = atoll_test_file:temporary("ring"),
    installed(#{store => dets, dir => Dir, queue => 2}),
    ok = ring_view:install(ring_state:new(16, 1, [node()])),
    ok = ring_master:new(),
    {ok, Vnodes} = ring_vnode_sup:start_link(),
    {ok, Master} = ring_master:start_link(),
    {ok, Inbox} = ring_inbox:start_link(ring_inbox:name(?P)),
    Pids = [Inbox, Master, Vnodes],
    _ = [true = unlink(Pid) || Pid <- Pids],
    {Dir, Pids}.

over({Dir, Pids}) ->
    _ = [ended(Pid, shutdown) || Pid <- Pids],
    true = ets:delete(ring_vnodes),
    _ = file:del_dir_r(Dir),
    uninstalled().

ended(Pid, Why) ->
    Ref = monitor(process, Pid),
    _ = exit(Pid, Why),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

asked(Command) -> ring_send:call(node(), {ring_kvs_vnode, ?P, primary}, Command, ?MS).

put_of(Key) -> {update, {?P, Key}, {1, {value, Key}}, #{}}.

got(Key) ->
    {ok, {ok, Clock}} = asked({get, {?P, Key}}),
    [Value || {_, {value, Value}} <- ring_dvv:values(Clock)].

%% The old process is held between the word that it is to end and its end.
what_comes_while_a_partition_ends_is_kept(_) ->
    {ok, {ok, _, _}} = asked(put_of(cod)),
    {ok, Old} = ring_master:find(ring_kvs_vnode, ?P),
    ok = sys:suspend(Old),
    ok = ring_master:drop(ring_kvs_vnode, ?P),
    Aliases = [
        begin
            Alias = alias(),
            ok = ring_send:command(node(), {ring_kvs_vnode, ?P, primary}, put_of(Key), {Alias, ?P}),
            Alias
        end
     || Key <- [eel, ray, tuna]
    ],
    [Eel, Ray, Tuna] = Aliases,
    ?assertEqual({error, overloaded}, answer(Tuna)),
    ?assertEqual(none, ring_master:find(ring_kvs_vnode, ?P)),
    ok = sys:resume(Old),
    ?assertMatch([{ok, _, _}, {ok, _, _}], [answer(Eel), answer(Ray)]),
    {ok, New} = ring_master:find(ring_kvs_vnode, ?P),
    ok = atoll_quiet:run(fun() -> ended(New, kill) end),
    ?assertEqual([[], [eel], [ray]], [got(cod), got(eel), got(ray)]).

keys_that_compare_equal_are_two(_) ->
    [N | _] = [I || I <- lists:seq(1, 60_000), ring_tree:leaf(I) =:= ring_tree:leaf(float(I))],
    {ok, {ok, _, _}} = asked(put_of(N)),
    {ok, {ok, _, _}} = asked(put_of(float(N))),
    {ok, Pid} = ring_master:find(ring_kvs_vnode, ?P),
    ?assertMatch(#{keys := 2}, gen_server:call(Pid, look)),
    {Items, _} = gen_server:call(Pid, {items, first}),
    ?assertEqual([N, float(N)], lists:sort(fun(A, _) -> is_integer(A) end, [Key || {{_, Key}, _} <- Items])),
    {ok, Keys} = asked({coverage, keys, [?P]}),
    ?assertEqual(2, length(Keys)).

a_store_that_cannot_be_opened_is_a_sentence({Dir, _}) ->
    {#{dir := Dir}, _} = ring_options:installed(),
    ok = filelib:ensure_dir(Dir),
    ok = file:write_file(Dir, <<>>),
    ?assertEqual({ok, {error, no_store}}, asked(put_of(cod))),
    ok = file:delete(Dir).
