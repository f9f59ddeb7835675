%% SPDX-License-Identifier: Apache-2.0
%% Faults of connections, on nodes with the carrier: they are what they are said to be,
%% and nothing is left of them: the cases share two nodes, but for one that wants others.
-module(atoll_chaos_carrier_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_cut_in_one_direction_loses_what_is_sent_there/1,
    a_cut_in_both_directions_ends_the_connection_until_it_heals/1,
    what_is_delayed_comes_later_and_one_way/1,
    what_is_lost_is_lost_until_it_heals/1,
    a_black_hole_gives_back_what_it_took/1,
    a_black_hole_is_found_out_and_lets_no_new_connection_through/1,
    a_lane_that_is_cut_ends_its_connection/1,
    a_lane_that_is_a_black_hole_is_healed/1,
    a_lane_stays_a_black_hole_whatever_else_is_done/1,
    a_new_connection_that_cannot_be_harmed_is_logged/1,
    a_run_that_is_killed_leaves_no_connection_harmed/1,
    a_node_that_starts_again_is_harmed_again/1
]).
-export([tell/2, hears_of/2, log/2, note_downs/0, forget/0]).

-define(CALL_MS, 20000).
-define(TRIES, 10).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    [{shared, cluster([])} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(shared, Config)).

%% It is found out when no tick has come for so long.
init_per_testcase(a_black_hole_is_found_out_and_lets_no_new_connection_through, Config) ->
    connected(cluster(["-kernel", "net_ticktime", "4"]), Config);
init_per_testcase(_Case, Config) ->
    connected(?config(shared, Config), Config).

cluster(More) ->
    Options = "[{kind,{lanes,2}},{faults,true},{stock,accept}]",
    atoll_cluster_owned:start(#{
        nodes => 2, connect_all => false, apps => [atoll], args => ["-proto_dist", "atoll", "-kernel", "atoll_dist", Options] ++ More
    }).

connected(Cluster, Config) ->
    [A, B] = atoll_cluster:nodes(Cluster),
    [true = call(Cluster, From, net_kernel, connect_node, [To]) || {From, To} <- [{A, B}, {B, A}]],
    [{cluster, Cluster} | Config].

end_per_testcase(_Case, Config) ->
    case {?config(shared, Config), ?config(cluster, Config)} of
        {C, C} -> [ok = call(C, Node, ?MODULE, forget, []) || Node <- atoll_cluster:nodes(C)];
        {_, Own} -> ok = atoll_cluster:stop(Own)
    end,
    ok.

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

start(C, Steps) ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 2}} | Steps ++ [{at, {5, min}, heal}]]),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => Script}),
    Run.

await(Look, Wanted) ->
    await(Look, Wanted, erlang:monotonic_time(millisecond) + ?CALL_MS).

%% What nodes make of it tells nobody here.
await(Look, Wanted, Deadline) ->
    case Look() of
        Wanted ->
            ok;
        Other ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({still, Other}),
            receive after 20 -> ok end,
            await(Look, Wanted, Deadline)
    end.

done(Run, Fault) ->
    await(fun() -> [Fault || #{fault := F, outcome := done} <- atoll_chaos:events(Run), F =:= Fault] end, [Fault]).

%% A message, as a program sends it: what it does at its receiver.
send(C, From, To, Key) ->
    call(C, From, ?MODULE, tell, [To, Key]).

%% rpc:cast/4 may send none.
tell(To, Key) ->
    gen_server:cast({rex, To}, {cast, application, set_env, [atoll_chaos_test, Key, sent], whereis(user)}).

%% No message, so it is not lost; it goes after what was sent before, both ways.
hears_of(Name, Node) ->
    Ref = monitor(process, {Name, Node}),
    receive {'DOWN', Ref, process, _, noproc} -> ok end.

%% From now on the end of a connection has come when it has ended.
note_downs() ->
    Self = self(),
    Pid = spawn(fun() ->
        true = register(?MODULE, self()),
        ok = net_kernel:monitor_nodes(true),
        Self ! {self(), hears},
        note_down()
    end),
    receive {Pid, hears} -> ok end.

note_down() ->
    receive
        {nodedown, Peer} -> application:set_env(atoll_chaos_test, {down, Peer}, sent);
        {nodeup, _} -> ok
    end,
    note_down().

%% What a case has left on this node: what came, and who notes it.
forget() ->
    _ = [exit(whereis(?MODULE), kill) || whereis(?MODULE) =/= undefined],
    _ = logger:remove_handler(?MODULE),
    _ = [application:unset_env(atoll_chaos_test, Key) || {Key, _} <- application:get_all_env(atoll_chaos_test)],
    ok.

has_come(C, At, Key) ->
    call(C, At, application, get_env, [atoll_chaos_test, Key]) =:= {ok, sent}.

comes(C, From, To, Key) ->
    ok = send(C, From, To, Key),
    await(fun() -> has_come(C, To, Key) end, true).

%% What goes the other way comes after it would have.
round_trip(C, A, B, Key) ->
    ok = comes(C, A, B, {Key, 1}),
    ok = comes(C, B, A, {Key, 2}).

is_connected(C, From, To) -> lists:member(To, call(C, From, erlang, nodes, [])).

pair(Config) ->
    C = ?config(cluster, Config),
    [A, B] = atoll_cluster:nodes(C),
    {C, A, B}.

healed(C, A, B) ->
    await(fun() -> call(C, A, net_kernel, connect_node, [B]) end, true),
    ok = round_trip(C, A, B, healed),
    [?assertEqual(undefined, call(C, Node, erlang, whereis, [atoll_chaos_agent])) || Node <- [A, B]].

a_cut_in_one_direction_loses_what_is_sent_there(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {cut, {nodes, 1, 1}, {nodes, 2, 2}}}]),
    ok = done(Run, cut),
    ok = send(C, A, B, lost),
    ok = comes(C, B, A, comes),
    ?assert(is_connected(C, A, B)),
    #{events := Events} = atoll_chaos:stop(Run),
    ?assertMatch([#{outcome := done, ended_ms := _}], [E || #{fault := cut} = E <- Events]),
    _ = healed(C, A, B),
    %% It is not late, it is lost.
    ?assertNot(has_come(C, B, lost)).

a_cut_in_both_directions_ends_the_connection_until_it_heals(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {partition, [{nodes, 1, 1}]}}]),
    ok = done(Run, partition),
    [await(fun() -> is_connected(C, From, To) end, false) || {From, To} <- [{A, B}, {B, A}]],
    ?assertEqual([false, false], [call(C, From, net_kernel, connect_node, [To]) || {From, To} <- [{A, B}, {B, A}]]),
    _ = atoll_chaos:stop(Run),
    _ = healed(C, A, B).

what_is_delayed_comes_later_and_one_way(Config) ->
    {C, A, B} = pair(Config),
    Ms = 700,
    Run = start(C, [{at, 0, {delay, {nodes, 1, 1}, {nodes, 2, 2}, Ms}}]),
    ok = done(Run, delay),
    {Us, pong} = timer:tc(fun() -> call(C, A, net_adm, ping, [B]) end),
    ?assert(Us >= Ms * 1000),
    %% So is an answer to the other one, and no more than it.
    ok = comes_first(C, A, B, Ms, 1),
    _ = atoll_chaos:stop(Run),
    _ = healed(C, A, B).

%% What is sent back later than what is delayed comes before it, if the machine is not too busy for once.
comes_first(C, A, B, Ms, Try) ->
    Begun = erlang:monotonic_time(millisecond),
    ok = send(C, A, B, {late, Try}),
    ok = comes(C, B, A, {soon, Try}),
    case has_come(C, B, {late, Try}) of
        false ->
            await(fun() -> has_come(C, B, {late, Try}) end, true);
        true ->
            ?assert(erlang:monotonic_time(millisecond) - Begun >= Ms),
            ?assert(Try < ?TRIES),
            comes_first(C, A, B, Ms, Try + 1)
    end.

what_is_lost_is_lost_until_it_heals(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {loss, 1}}]),
    ok = done(Run, loss),
    ok = send(C, A, B, there),
    ok = send(C, B, A, back),
    %% A packet is lost when it is its turn to go, and the run may end before.
    ok = call(C, A, ?MODULE, hears_of, [nobody, B]),
    #{events := Events} = atoll_chaos:stop(Run),
    ?assertMatch([#{outcome := done, ended_ms := _}], [E || #{fault := loss} = E <- Events]),
    _ = healed(C, A, B),
    ?assertEqual([false, false], [has_come(C, B, there), has_come(C, A, back)]).

a_black_hole_gives_back_what_it_took(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {black_hole, {nodes, 1, 1}, {nodes, 2, 2}}}]),
    ok = done(Run, black_hole),
    ok = send(C, A, B, there),
    ok = send(C, B, A, back),
    %% Nobody notices for a minute, and nothing passes.
    {badrpc, timeout} = call(C, A, rpc, call, [B, erlang, node, [], 500]),
    ?assertEqual([false, false, true, true], [
        has_come(C, B, there), has_come(C, A, back), is_connected(C, A, B), is_connected(C, B, A)
    ]),
    _ = atoll_chaos:stop(Run),
    await(fun() -> {has_come(C, B, there), has_come(C, A, back)} end, {true, true}),
    _ = healed(C, A, B).

a_black_hole_is_found_out_and_lets_no_new_connection_through(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {black_hole, {nodes, 1, 1}, {nodes, 2, 2}}}]),
    ok = done(Run, black_hole),
    [await(fun() -> is_connected(C, From, To) end, false) || {From, To} <- [{A, B}, {B, A}]],
    ?assertEqual([false, false], [call(C, From, net_kernel, connect_node, [To]) || {From, To} <- [{A, B}, {B, A}]]),
    _ = atoll_chaos:stop(Run),
    _ = healed(C, A, B).

a_lane_that_is_cut_ends_its_connection(Config) ->
    {C, A, B} = pair(Config),
    [ok = call(C, Node, ?MODULE, note_downs, []) || Node <- [A, B]],
    Run = start(C, [{at, 0, {lane, {nodes, 1, 1}, {nodes, 2, 2}, 1, cut}}, {at, 0, {lane, {nodes, 1, 1}, {nodes, 2, 2}, 7, cut}}]),
    ok = done(Run, lane),
    %% What the nodes still have to say to each other may connect them again at once.
    [await(fun() -> has_come(C, At, {down, Of}) end, true) || {At, Of} <- [{A, B}, {B, A}]],
    #{events := Events} = atoll_chaos:stop(Run),
    ?assertMatch(
        [#{outcome := done, target := {B, 1, cut}}, #{outcome := passed_over, why := {no_lane, B}}],
        [E || #{fault := lane} = E <- Events]
    ),
    _ = healed(C, A, B).

a_lane_that_is_a_black_hole_is_healed(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [
        {at, 0, {lane, {nodes, 1, 1}, {nodes, 2, 2}, 0, black_hole}}, {at, 0, {lane, {nodes, 2, 2}, {nodes, 1, 1}, 1, black_hole}},
        {at, 0, {loss, {nodes, 1, 1}, {nodes, 2, 2}, 0.5}}, {at, 0, {loss, {nodes, 1, 1}, {nodes, 2, 2}, 0}}
    ]),
    await(fun() -> length([E || #{fault := lane, outcome := done} = E <- atoll_chaos:events(Run)]) end, 2),
    {badrpc, timeout} = call(C, A, rpc, call, [B, erlang, node, [], 500]),
    _ = atoll_chaos:stop(Run),
    ?assert(is_connected(C, A, B)),
    _ = healed(C, A, B).

a_lane_stays_a_black_hole_whatever_else_is_done(Config) ->
    {C, A, B} = pair(Config),
    Do = fun(What, Args) -> call(C, A, atoll_chaos_agent, What, Args ++ [{?MODULE, none}]) end,
    Held = fun(Key) ->
        ok = send(C, A, B, Key),
        {badrpc, timeout} = call(C, A, rpc, call, [B, erlang, node, [], 500]),
        ?assertNot(has_come(C, B, Key))
    end,
    %% One of them is said twice.
    [ok = Do(lane, [B, Lane, black_hole]) || Lane <- [0, 1, 0]],
    ok = Held(first),
    ok = Do(harm, [#{B => #{delay => 1}}]),
    ok = Do(harm, [#{}]),
    ok = Held(second),
    ?assertNot(has_come(C, B, first)),
    ok = Do(harm, [#{B => #{black_hole => true}}]),
    ?assertEqual([ok, {error, {no_lane, B}}], [Do(lane, [B, Lane, black_hole]) || Lane <- [1, 2]]),
    ok = Do(harm, [#{}]),
    ok = Held(third),
    ok = Do(mend_lanes, []),
    [await(fun() -> has_come(C, B, Key) end, true) || Key <- [first, second, third]],
    ok = call(C, A, atoll_chaos_agent, stop, [?MODULE]),
    _ = healed(C, A, B).

%% A peer that has come back on stock distribution; the first time it is harmed it is not there.
a_new_connection_that_cannot_be_harmed_is_logged(Config) ->
    {C, A, _} = pair(Config),
    Peer = 'stock@127.0.0.1',
    ok = call(C, A, logger, add_handler, [?MODULE, ?MODULE, #{level => warning}]),
    ok = call(C, A, atoll_chaos_agent, harm, [#{Peer => #{drop => 1}}, {?MODULE, none}]),
    Cookie = atom_to_list(call(C, A, erlang, get_cookie, [])),
    {ok, Pid, Peer} = peer:start(#{
        name => stock, host => "127.0.0.1", longnames => true, connection => standard_io,
        args => ["-setcookie", Cookie, "-connect_all", "false"]
    }),
    try
        true = peer:call(Pid, net_kernel, connect_node, [A]),
        await(fun() -> call(C, A, application, get_env, [atoll_chaos_test, not_harmed]) end, {ok, [Peer]})
    after
        peer:stop(Pid)
    end,
    %% Nothing is left to mend.
    ?assertEqual(ok, call(C, A, atoll_chaos_agent, harm, [#{}, {?MODULE, none}])),
    ok = call(C, A, atoll_chaos_agent, stop, [?MODULE]).

%% What the node's log says of it.
log(#{msg := {"The new connection with ~p is not harmed" ++ _, Args}}, _) ->
    application:set_env(atoll_chaos_test, not_harmed, Args);
log(_, _) ->
    ok.

a_run_that_is_killed_leaves_no_connection_harmed(Config) ->
    {C, A, B} = pair(Config),
    {Pid, _} = Run = start(C, [
        {at, 0, {loss, {nodes, 1, 1}, {nodes, 2, 2}, 1}}, {at, 0, {black_hole, {nodes, 1, 1}, {nodes, 2, 2}}}
    ]),
    ok = done(Run, black_hole),
    true = exit(Pid, kill),
    await(fun() -> [call(C, Node, erlang, whereis, [atoll_chaos_agent]) || Node <- [A, B]] end, [undefined, undefined]),
    _ = healed(C, A, B).

a_node_that_starts_again_is_harmed_again(Config) ->
    {C, A, B} = pair(Config),
    Run = start(C, [{at, 0, {loss, {nodes, 1, 1}, {nodes, 2, 2}, 1}}, {at, 0, {restart, {nodes, 1, 1}, fresh}}]),
    ok = done(Run, restart),
    await(fun() -> [is_integer(Ms) || #{fault := restart, recovered_ms := Ms} <- atoll_chaos:events(Run)] end, [true]),
    true = call(C, B, net_kernel, connect_node, [A]),
    %% The first ones over the new connection may pass.
    await(fun() -> passes(C, A, B, erlang:unique_integer()) end, false),
    ?assertNot(passes(C, A, B, lost)),
    _ = atoll_chaos:stop(Run),
    _ = healed(C, A, B),
    ?assertNot(has_come(C, B, lost)).

%% Within half a second, which is long on one machine.
passes(C, A, B, Key) ->
    ok = send(C, A, B, Key),
    comes_within(C, B, Key, 25).

comes_within(C, B, Key, Looks) ->
    case has_come(C, B, Key) of
        true -> true;
        false when Looks =:= 0 -> false;
        false ->
            receive after 20 -> comes_within(C, B, Key, Looks - 1) end
    end.
