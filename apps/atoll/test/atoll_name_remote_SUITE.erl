%% SPDX-License-Identifier: Apache-2.0
%% Names of groups that the asking node is not in, on real nodes: three groups in a chain, joined by
%% a gateway each, known by the directory alone. Once on stock distribution, where a
%% connection is made on demand, and once over the carrier, where gateways relay.
-module(atoll_name_remote_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    a_name_is_reached_from_the_other_end_of_the_chain/1,
    each_behaviour_is_called_by_a_name_from_outside/1,
    who_stands_still_costs_a_moment/1,
    when_all_stand_still_the_answer_is_in_time/1,
    what_cannot_be_answered_says_why/1,
    a_name_of_its_own_group_is_asked_of_nobody/1,
    who_leaves_is_told_its_groups/1,
    a_look_for_who_is_gone_makes_no_connection/1
]).

-export([do/1, fill/1]).

-define(C, atoll_name_cluster).
-define(DIRECTORY, #{gather_ms => 50, pause_ms => 50, compare_ms => 1000}).
%% What a machine with other work adds to a time.
-define(SLACK_US, 1500000).
%% Long before the deadline.
-define(MOMENT_US, 1500000).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [{group, stock}, {group, carrier}].

groups() ->
    Cases = [
        a_name_is_reached_from_the_other_end_of_the_chain,
        each_behaviour_is_called_by_a_name_from_outside,
        what_cannot_be_answered_says_why,
        who_stands_still_costs_a_moment,
        when_all_stand_still_the_answer_is_in_time
    ],
    [{stock, Cases ++ [a_name_of_its_own_group_is_asked_of_nobody, a_look_for_who_is_gone_makes_no_connection, who_leaves_is_told_its_groups]}, {carrier, Cases}].

init_per_group(Kind, Config) ->
    Args = ["-atoll", "linger", "200", "directory", text(?DIRECTORY) | args(Kind)],
    C = ?C:start(5, Args),
    [A, G1, G2, D, E] = atoll_cluster:nodes(C),
    [ok = ?C:group(C, Group, Nodes) || {Group, Nodes} <- [{a, [A, G1]}, {b, [G1, G2]}, {c, [G2, D, E]}]],
    [Held] = ?C:call(C, E, atoll_name_witness, holders, [1]),
    yes = ?C:call(C, E, s_group, register_name, [c, target, Held]),
    World = #{cluster => C, held => Held, from => A, near => G1, gateway => G2, member => D, holder => E},
    ok = found(World),
    [{world, World}, {kind, Kind} | Config].

args(stock) -> ["on_demand_linger", "1000"];
args(carrier) -> ["-proto_dist", "atoll", "-kernel", "atoll_dist", text([{unrouted, refuse}])].

text(Term) -> lists:flatten(io_lib:format("~0p", [Term])).

end_per_group(_Kind, Config) ->
    #{cluster := C} = ?config(world, Config),
    atoll_cluster:stop(C).

end_per_testcase(_Case, Config) ->
    #{cluster := C} = World = ?config(world, Config),
    _ = atoll_cluster_owned:heal(C),
    found(World).

%% The directory knows the whole chain, and whoever stood still answers.
found(#{cluster := C, from := From, held := Held}) ->
    ?C:await(fun() -> find(C, From, c, target) end, {ok, Held}).

find(C, From, Group, Name) -> ?C:call(C, From, atoll_name, find, [Group, Name]).

timed(C, From, Group, Name) -> ?C:call(C, From, timer, tc, [atoll_name, find, [Group, Name]]).

a_name_is_reached_from_the_other_end_of_the_chain(Config) ->
    #{cluster := C, from := From, held := Held, holder := Holder} = World = ?config(world, Config),
    ?assertEqual([{a, [From, maps:get(near, World)]}], ?C:call(C, From, s_group, own_s_groups, [])),
    ?assertEqual(Held, ?C:call(C, From, s_group, whereis_name, [c, target])),
    ?assertEqual(Held, ?C:call(C, From, atoll_name, whereis_name, [{c, target}])),
    ?assertEqual([{c, target}], ?C:call(C, From, s_group, registered_names, [{s_group, c}])),
    %% In the order in which one process has sent them.
    Sends = [{s_group, send, [c, target, I]} || I <- [1, 2, 3]] ++ [{atoll_name, send, [{c, target}, I]} || I <- [4, 5, 6]],
    ?assertEqual([Held || _ <- Sends], ?C:call(C, From, lists, map, [fun ?MODULE:do/1, Sends])),
    ok = ?C:await(fun() -> ?C:call(C, Holder, atoll_name_holder, told, [Held]) end, [1, 2, 3, 4, 5, 6]),
    has_the_connections_of(?config(kind, Config), World).

%% Over the carrier nothing but its group's, whoever was asked.
has_the_connections_of(carrier, #{cluster := C, from := From, near := Near}) ->
    ?assertMatch([{Near, _}], ?C:call(C, From, atoll_reach_probe, own_links, [])),
    ?assertMatch([_ | _], ?C:call(C, From, atoll_reach_probe, circuits, []));
%% Those that were made for it are closed.
has_the_connections_of(stock, #{cluster := C, from := From, near := Near}) ->
    ok = ?C:await(fun() -> ?C:call(C, From, erlang, nodes, [connected]) end, [Near]).

each_behaviour_is_called_by_a_name_from_outside(Config) ->
    #{cluster := C, from := From, holder := Holder} = ?config(world, Config),
    Via = fun(Name) -> {via, atoll_name, {c, Name}} end,
    Children = [{Kind, Via(Kind)} || Kind <- [server, statem, event, supervisor]],
    Tree = ?C:call(C, Holder, atoll_name_servers, start_tree, [Via(top), Children, 0]),
    [
        begin
            Pid = ?C:call(C, Holder, atoll_name_servers, child, [Via(top), Kind]),
            ?assertEqual({Kind, Pid}, ?C:call(C, From, atoll_name_servers, ask, [Kind, Name])),
            %% It is somebody else's, so it cannot be had; but it is known who has it.
            ?assertEqual({error, {already_started, Pid}}, ?C:call(C, From, atoll_name_servers, start_second, [Child]))
        end
     || {Kind, Name} = Child <- Children
    ],
    ?assertEqual(ok, ?C:call(C, From, gen_server, cast, [Via(server), hello])),
    ok = ?C:call(C, Holder, atoll_name_servers, stop_tree, [Tree]).

%% The nearest and another one; over the carrier the nearest is the only way to the others.
who_stands_still_costs_a_moment(Config) ->
    #{cluster := C, from := From, held := Held, gateway := Gateway, member := Member, holder := Holder} = ?config(world, Config),
    Still = case ?config(kind, Config) of stock -> [Gateway, Member]; carrier -> [Member] end,
    %% What is left is to be asked last.
    _ = [?C:call(C, From, erlang, disconnect_node, [Holder]) || ?config(kind, Config) =:= stock],
    [ok = atoll_cluster:pause(C, Node) || Node <- Still],
    Times = [begin {Us, {ok, Held}} = timed(C, From, c, target), Us end || _ <- lists:seq(1, 4)],
    ?C:report("~p of 3 members stand still: a name is found after ~p us", [length(Still), Times]),
    ?assert(lists:max(Times) < ?MOMENT_US, Times).

%% Also where a connection has no room left, which suspends who writes to it.
when_all_stand_still_the_answer_is_in_time(Config) ->
    #{cluster := C, from := From, gateway := Gateway, member := Member, holder := Holder} = ?config(world, Config),
    Deadline = atoll_name_remote:deadline_ms() * 1000,
    %% On stock a connection on demand may have gone by now.
    pong = ?C:call(C, From, net_adm, ping, [Gateway]),
    [ok = atoll_cluster:pause(C, Node) || Node <- [Gateway, Member, Holder]],
    full = ?C:call(C, From, ?MODULE, fill, [Gateway]),
    Calls = [
        {{error, no_answer}, atoll_name, find, [c, target]},
        {undefined, s_group, whereis_name, [c, target]},
        {undefined, s_group, whereis_name, [Gateway, c, target]},
        {{badarg, {c, target, hello}}, s_group, send, [c, target, hello]},
        {[], s_group, registered_names, [{s_group, c}]},
        {[], s_group, registered_names, [{node, Gateway}]}
    ],
    Works = [{Call, ?C:work(fun() -> ?C:call(C, From, timer, tc, [M, F, Args]) end)} || {_, M, F, Args} = Call <- Calls],
    Answers = [{Call, ?C:result(Work)} || {Call, Work} <- Works],
    ?C:report("all members stand still: ~p us", [[Us || {_, {Us, _}} <- Answers]]),
    [
        begin
            ?assertEqual({Call, Answer}, {Call, Got}),
            ?assert(Us < Deadline + ?SLACK_US, {Call, Us})
        end
     || {{Answer, _, _, _} = Call, {Us, Got}} <- Answers
    ].

what_cannot_be_answered_says_why(Config) ->
    #{cluster := C, from := From, held := Held} = ?config(world, Config),
    %% No member is there to wait for.
    {Us, Nobody} = timed(C, From, nowhere, target),
    ?assertEqual({error, no_information_about_remote_group}, Nobody),
    ?assert(Us < ?MOMENT_US, Us),
    ?assertEqual({error, no_such_name}, find(C, From, c, never)),
    ?assertEqual({error, no_such_name}, find(C, From, a, never)),
    ?assertEqual({error, no_information_about_remote_group}, find(C, From, undefined, target)),
    [
        begin
            ?assertEqual(undefined, ?C:call(C, From, s_group, whereis_name, [Group, never])),
            ?assertEqual({badarg, {Group, never, hello}}, ?C:call(C, From, s_group, send, [Group, never, hello])),
            Via = {via, atoll_name, {Group, never}},
            ?assertEqual({noproc, {gen_server, call, [Via, who]}}, ?C:call(C, From, ?MODULE, do, [{exit, gen_server, call, [Via, who]}])),
            ?assertEqual(
                {badarg, {{Group, never}, hello}}, ?C:call(C, From, ?MODULE, do, [{exit, atoll_name, send, [{Group, never}, hello]}])
            )
        end
     || Group <- [nowhere, c, undefined]
    ],
    ?assertEqual({error, no_information_about_remote_group}, ?C:call(C, From, s_group, registered_names, [{s_group, nowhere}])),
    %% To give and to take names is for members.
    ?assertEqual({no, cannot_register_in_remote_group}, ?C:call(C, From, s_group, register_name, [c, new, Held])),
    ?assertEqual({no, cannot_unregister_from_remote_group}, ?C:call(C, From, s_group, unregister_name, [c, target])).

%% Everybody else is gone, and the process of the names is stopped too.
a_name_of_its_own_group_is_asked_of_nobody(Config) ->
    #{cluster := C, holder := Holder, held := Held, gateway := Gateway, member := Member} = ?config(world, Config),
    [ok = atoll_cluster:pause(C, Node) || Node <- [Gateway, Member]],
    Rooms = [atoll_name, atoll_group, atoll_route],
    [ok = ?C:call(C, Holder, sys, suspend, [Room]) || Room <- Rooms],
    {Us, {ok, Held}} = timed(C, Holder, c, target),
    {None, {error, no_such_name}} = timed(C, Holder, c, never),
    [ok = ?C:call(C, Holder, sys, resume, [Room]) || Room <- Rooms],
    ?assert(Us + None < ?MOMENT_US, {Us, None}).

%% It is looked for by a process of its own, which may come to that when the node has gone, and is starting again.
a_look_for_who_is_gone_makes_no_connection(Config) ->
    #{cluster := C, from := From, holder := Gone} = ?config(world, Config),
    %% An attempt of the case before it may be under way, which is in no list of nodes.
    IsThere = fun() ->
        _ = ?C:call(C, From, erlang, disconnect_node, [Gone]),
        lists:keymember(Gone, 2, ?C:call(C, From, atoll_barrier, connections, []))
    end,
    ok = ?C:await(fun() -> IsThere() orelse IsThere() end, false),
    ?assertEqual(unknown, ?C:call(C, From, atoll_name, look_for, [Gone, 0, self()])),
    ?assertNot(lists:member(Gone, ?C:call(C, From, erlang, nodes, [connected]))).

%% It would be held for a failure of the group otherwise.
who_leaves_is_told_its_groups(Config) ->
    #{cluster := C, member := Member} = ?config(world, Config),
    ?assertEqual({error, overlay_off}, ?C:call(C, Member, atoll, leave, [])),
    ok = ?C:call(C, Member, application, stop, [atoll]),
    ok = ?C:call(C, Member, application, set_env, [atoll, overlay, mesh]),
    ok = ?C:call(C, Member, application, start, [atoll]),
    ok = ?C:await(fun() -> ?C:call(C, Member, s_group, own_nodes, [c]) =/= [] end, true),
    ?assertEqual({still_in, [c]}, ?C:call(C, Member, atoll, leave, [])),
    ok = ?C:call(C, maps:get(holder, ?config(world, Config)), s_group, remove_nodes, [c, [Member]]),
    ok = ?C:await(fun() -> ?C:call(C, Member, s_group, own_s_groups, []) end, []),
    ?assertEqual(ok, ?C:call(C, Member, atoll, leave, [])).

%% Runs on the nodes.
do({Module, Function, Args}) -> apply(Module, Function, Args);
do({exit, Module, Function, Args}) -> try apply(Module, Function, Args) catch exit:Why -> Why end.

fill(Node) -> fill(Node, binary:copy(<<0>>, 100000), 10000).

fill(_Node, _Bytes, 0) ->
    not_full;
fill(Node, Bytes, Left) ->
    case erlang:send({nobody_here, Node}, Bytes, [nosuspend, noconnect]) of
        ok -> fill(Node, Bytes, Left - 1);
        nosuspend -> full;
        noconnect -> not_connected
    end.
