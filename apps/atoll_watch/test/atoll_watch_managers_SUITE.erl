%% SPDX-License-Identifier: Apache-2.0
%% Managers in VMs of their own before stock nodes: what is connected with what, and what becomes of it when a manager, the
%% watch, or a node is lost.
-module(atoll_watch_managers_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    each_node_is_connected_with_its_manager_alone/1,
    a_manager_that_is_killed_is_replaced_and_nothing_is_counted_twice/1,
    a_watch_that_is_killed_takes_its_managers_along/1,
    nodes_of_a_group_are_at_one_manager/1,
    the_nodes_of_a_lost_manager_are_asked_again_within_two_periods/1,
    a_manager_that_hangs_is_replaced/1,
    a_node_is_killed_stopped_and_back_within_the_usual_period/1,
    a_node_is_cut_off_and_back/1
]).

-import(atoll_watch_peers, [call/4, await/2]).

-define(LATE_MS, 30000).
-define(PERIOD_MS, 400).
%% What is promised of the usual one.
-define(USUAL_MS, 5000).
-define(SEEN_MS, 6000).
-define(BACK_MS, 3000).
%% The machine may be busy with other tests.
-define(LAG_MS, 8000).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [each_node_is_connected_with_its_manager_alone, a_manager_that_is_killed_is_replaced_and_nothing_is_counted_twice, a_watch_that_is_killed_takes_its_managers_along] ++
    [Case || atoll_tier:tier() =:= deep, Case <- [nodes_of_a_group_are_at_one_manager, the_nodes_of_a_lost_manager_are_asked_again_within_two_periods, a_manager_that_hangs_is_replaced, a_node_is_killed_stopped_and_back_within_the_usual_period, a_node_is_cut_off_and_back]].

%% A chain of four: the ends are not connected.
init_per_suite(Config) ->
    {Holder, Peers} = atoll_watch_peers:start(fun() ->
        Peers = [atoll_watch_peers:watched(["-connect_all", "false"]) || _ <- lists:seq(1, 4)],
        [true = call(Peer, net_kernel, connect_node, [Next]) || {Peer, {_, Next}} <- lists:zip(lists:droplast(Peers), tl(Peers))],
        Peers
    end),
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
    [{holder, Holder}, {peers, Peers}, {dir, Dir}, {cookie, Cookie} | Config].

end_per_suite(Config) ->
    ok = atoll_watch_peers:stop(proplists:get_value(holder, Config)),
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

peers(Config) -> proplists:get_value(peers, Config).

target(Node, Config) -> {joined, "stock", #{nodes => [Node], cookie_file => proplists:get_value(cookie, Config)}}.

watching(Options, Config, Fun) ->
    [{_, Node} | _] = peers(Config),
    atoll_cli_line:as_node(fun() ->
        {ok, Watch} = atoll_watch:start_link(target(Node, Config), maps:merge(#{managers => 2, period => ?PERIOD_MS, answer => 5000, subscriber => self()}, Options)),
        try
            ok = atoll_watch:await(Watch, 2, ?LATE_MS),
            Fun(Watch)
        after
            Pids = os_pids(Watch),
            ok = gen_server:stop(Watch),
            _ = await(fun() -> [Is || Pid <- Pids, Is <- [atoll_cluster_os:state(Pid)], Is =/= gone] end, fun(Is) -> Is =:= [] end)
        end
    end).

os_pids(Watch) -> [os_pid(OsPid) || #{os_pid := OsPid} <- atoll_watch:managers(Watch), OsPid =/= none].

os_pid(Text) ->
    Pid = list_to_integer(Text),
    {ok, Start} = atoll_cluster_os:start_time(Pid),
    {Pid, Start}.

%% Waits for an event, and gives those before it too.
until(Test, Watch) -> until(Test, Watch, []).

until(Test, Watch, Before) ->
    receive
        {atoll_watch, Watch, Event} ->
            case Test(Event) of
                true -> lists:reverse([Event | Before]);
                false -> until(Test, Watch, [Event | Before])
            end
    after ?LATE_MS -> error({late, Before, atoll_watch:managers(Watch)})
    end.

looked(Node) -> fun({looked, #{node := Is, state := up}}) -> Is =:= Node; (_) -> false end.

is({state, Node, Was, Is}) -> fun(Event) -> Event =:= {state, Node, Was, Is} end;
is({alarm, What, Rule, Node}) -> fun({alarm, {Is, #{rule := R, node := N}}}) -> {Is, R, N} =:= {What, Rule, Node}; (_) -> false end.

each_node_is_connected_with_its_manager_alone(Config) ->
    Peers = peers(Config),
    Links = fun() -> [lists:sort(call(Peer, erlang, nodes, [])) || Peer <- Peers] end,
    Before = Links(),
    watching(#{}, Config, fun(Watch) ->
        ?assertMatch([#{state := up}, #{state := up}, #{state := up}, #{state := up}], atoll_watch:nodes(Watch)),
        Managers = [#{nodes := [_, _]}, #{nodes := [_, _]}] = atoll_watch:managers(Watch),
        ?assertEqual(lists:sort([Node || {_, Node} <- Peers]), lists:sort(lists:append([Nodes || #{nodes := Nodes} <- Managers]))),
        ?assertEqual(Before, Links()),
        %% This VM is connected with none.
        Hidden = await(fun() -> [{Node, call(Peer, erlang, nodes, [hidden])} || {_, Node} = Peer <- Peers] end,
                       fun(Is) -> lists:all(fun({_, List}) -> length(List) =:= 1 end, Is) end),
        [begin
             [One] = lists:usort([Manager || {Node, [Manager]} <- Hidden, lists:member(Node, Nodes)]),
             ?assertMatch({match, _}, re:run(atom_to_list(One), ["^atoll_view_", OsPid, "@"]))
         end || #{nodes := Nodes, os_pid := OsPid} <- Managers],
        [{_, First} | _] = Peers,
        %% A question goes the same way.
        ?assertEqual(First, atoll_watch:call(Watch, First, erlang, node, [], 5000)),
        ?assertError({erpc, noconnection}, atoll_watch:call(Watch, 'nobody@127.0.0.1', erlang, node, [], 5000)),
        ?assertError({exception, badarg, _}, atoll_watch:call(Watch, First, erlang, hd, [[]], 5000)),
        %% One that is removed is asked no more, and comes to a manager again when it is added.
        ok = atoll_watch:remove(Watch, First),
        false = await(fun() -> call(hd(Peers), erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end),
        ok = atoll_watch:add(Watch, First),
        _ = until(is({state, First, unknown, up}), Watch),
        _ = until(is({state, First, unknown, up}), Watch)
    end),
    [false = await(fun() -> call(Peer, erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end) || Peer <- Peers].

a_manager_that_is_killed_is_replaced_and_nothing_is_counted_twice(Config) ->
    watching(#{}, Config, fun(Watch) ->
        [#{id := Id, os_pid := OsPid, nodes := [Node, _] = Nodes}, #{os_pid := Other}] = atoll_watch:managers(Watch),
        {_, Node} = Peer = lists:keyfind(Node, 2, peers(Config)),
        Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
        _ = call(Peer, lists, zipwith, [fun erlang:send/2, lists:duplicate(10001, Sleeper), lists:seq(1, 10001)]),
        Raised = until(is({alarm, raised, mailbox, Node}), Watch),
        [#{id := Alarm}] = atoll_watch:alarms(Watch),
        ok = atoll_watch:acknowledge(Watch, Alarm, <<"ann">>),
        Before = Raised ++ until(looked(Node), Watch) ++ until(looked(Node), Watch),
        [] = os:cmd("kill -9 " ++ OsPid),
        Lost = until(fun(Event) -> Event =:= {manager_lost, Id} end, Watch),
        After = lists:append([until(looked(Is), Watch) || Is <- Nodes ++ Nodes]),
        %% Nobody was down, nobody has started again, and the alarm is the same.
        ?assertEqual([], [Event || Event <- Lost ++ After, lists:member(element(1, Event), [state, restarted, forgotten]) orelse element(1, Event) =:= alarm andalso element(1, element(2, Event)) =/= acknowledged]),
        ?assertMatch([#{id := Alarm, state := acknowledged}], atoll_watch:alarms(Watch)),
        ?assertMatch([#{state := up, lost := 1, nodes := Nodes}, #{state := up, lost := 0, os_pid := Other}], atoll_watch:managers(Watch)),
        %% What a node has gained is the sum of what it is said to have gained, from look to look.
        [begin
             Looks = [{At, N, maps:get(reductions, Rates, none)}
                      || {looked, #{node := Is, state := up, sample := #{at := At}, readings := #{reductions := N}, rates := Rates}} <- Before ++ Lost ++ After, Is =:= Its],
             ?assert(length(Looks) >= 4),
             [?assert(abs((N - N0) - Rate * (At - At0) / 1000000) < 1, {At0, N0, At, N, Rate}) || {{At0, N0, _}, {At, N, Rate}} <- lists:zip(lists:droplast(Looks), tl(Looks))]
         end || Its <- Nodes],
        true = call(Peer, erlang, exit, [Sleeper, kill]),
        _ = until(is({alarm, cleared, mailbox, Node}), Watch),
        ?assertMatch(#{managers_lost := 1}, atoll_watch:counts(Watch))
    end).

%% The whole VM, as its machine would.
a_watch_that_is_killed_takes_its_managers_along(Config) ->
    [{_, Node} | _] = peers(Config),
    Watcher = atoll_watch_peers:watcher(),
    ok = call(Watcher, atoll_watch_peers, watch, [target(Node, Config), #{managers => 2, period => ?PERIOD_MS}]),
    Ask = fun(F) -> call(Watcher, atoll_watch, F, [call(Watcher, erlang, whereis, [atoll_watch_peers])]) end,
    Managers = await(fun() -> Ask(managers) end, fun(Is) -> lists:all(fun(#{state := State}) -> State =:= up end, Is) end),
    _ = await(fun() -> [State || #{state := State} <- Ask(nodes)] end, fun(Is) -> Is =:= [up, up, up, up] end),
    Pids = [os_pid(OsPid) || #{os_pid := OsPid} <- Managers],
    ok = atoll_watch_peers:kill(Watcher),
    _ = await(fun() -> [atoll_cluster_os:state(Pid) || Pid <- Pids] end, fun(Is) -> Is =:= [gone, gone] end),
    [false = await(fun() -> call(Peer, erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end) || Peer <- peers(Config)].

%% Deep tier

%% Two groups of two, which without them would be parted.
nodes_of_a_group_are_at_one_manager(Config) ->
    Peers = [{_, Node} | _] = lists:keysort(2, [atoll_watch_peers:watched(["-connect_all", "false"]) || _ <- [1, 2, 3, 4]]),
    [begin
         ok = call(Peer, code, add_paths, [[filename:dirname(code:which(atoll))]]),
         {ok, _} = call(Peer, application, ensure_all_started, [atoll])
     end || Peer <- Peers],
    Groups = [lists:sublist(Peers, From, 2) || From <- [1, 3]],
    [{ok, Name, Nodes} = call(hd(Group), s_group, new_s_group, [Name, Nodes]) || {Name, Group} <- lists:zip([fish, birds], Groups), Nodes <- [[Is || {_, Is} <- Group]]],
    true = call(hd(Peers), net_kernel, connect_node, [element(2, lists:last(Peers))]),
    atoll_cli_line:as_node(fun() ->
        {ok, Watch} = atoll_watch:start_link(target(Node, Config), #{managers => 2}),
        ?assertEqual([[Is || {_, Is} <- Group] || Group <- Groups], [Nodes || #{nodes := Nodes} <- atoll_watch:managers(Watch)]),
        ok = gen_server:stop(Watch)
    end),
    lists:foreach(fun atoll_watch_peers:kill/1, Peers).

%% From the last look that it told.
the_nodes_of_a_lost_manager_are_asked_again_within_two_periods(Config) ->
    watching(#{period => ?USUAL_MS}, Config, fun(Watch) ->
        [#{os_pid := OsPid, nodes := Nodes} | _] = atoll_watch:managers(Watch),
        took(2 * ?USUAL_MS, fun() ->
            [] = os:cmd("kill -9 " ++ OsPid),
            _ = until(fun(Event) -> Event =:= {manager_lost, 1} end, Watch),
            all_looked(Nodes, Watch)
        end)
    end).

all_looked([], _) ->
    ok;
all_looked(Nodes, Watch) ->
    {looked, #{node := Node}} = lists:last(until(fun({looked, #{node := Is, state := up}}) -> lists:member(Is, Nodes); (_) -> false end, Watch)),
    all_looked(Nodes -- [Node], Watch).

%% It takes ten seconds to be seen.
a_manager_that_hangs_is_replaced(Config) ->
    watching(#{}, Config, fun(Watch) ->
        [#{id := Id, os_pid := OsPid, nodes := Nodes} | _] = atoll_watch:managers(Watch),
        Hung = os_pid(OsPid),
        [] = os:cmd("kill -STOP " ++ OsPid),
        %% Nobody waits for it.
        ?assertError({erpc, _}, atoll_watch:call(Watch, hd(Nodes), erlang, node, [], 500)),
        Lost = until(fun(Event) -> Event =:= {manager_lost, Id} end, Watch),
        After = lists:append([until(looked(Node), Watch) || Node <- Nodes]),
        ?assertEqual([], [Event || {state, _, Was, _} = Event <- Lost ++ After, Was =/= unknown]),
        ?assertEqual(gone, atoll_cluster_os:state(Hung))
    end).

%% At the usual period: what is promised of it.
a_node_is_killed_stopped_and_back_within_the_usual_period(Config) ->
    [First | _] = peers(Config),
    Peer = {_, Node} = atoll_watch_peers:watched(["-connect_all", "false"]),
    true = call(First, net_kernel, connect_node, [Node]),
    watching(#{period => ?USUAL_MS}, Config, fun(Watch) ->
        OsPid = call(Peer, os, getpid, []),
        [] = os:cmd("kill -STOP " ++ OsPid),
        within(?USUAL_MS + ?SEEN_MS, is({alarm, raised, node_silent, Node}), Watch),
        [] = os:cmd("kill -CONT " ++ OsPid),
        within(?BACK_MS, is({alarm, cleared, node_silent, Node}), Watch),
        ok = atoll_watch_peers:kill(Peer),
        within(?USUAL_MS + ?SEEN_MS, is({alarm, raised, node_down, Node}), Watch),
        Again = atoll_watch_peers:restarted(Peer, ["-connect_all", "false"]),
        within(?BACK_MS, is({alarm, cleared, node_down, Node}), Watch),
        ok = atoll_watch_peers:kill(Again)
    end).

%% The watch is at one end of a wire, and the node at the other.
a_node_is_cut_off_and_back(Config) ->
    case atoll_wire:available() of
        {error, Error} -> {skip, lists:flatten(unicode:characters_to_list(atoll_wire:format_error(Error)))};
        ok ->
            {ok, Wire} = atoll_wire:start(#{rtt_ms => 1}),
            [Here, There] = atoll_wire:ends(Wire),
            {_, Node} = Peer = atoll_watch_peers:watched([], There),
            Watcher = atoll_watch_peers:watcher(Here),
            ok = call(Watcher, atoll_watch_peers, watch, [target(Node, Config), #{managers => 1}]),
            Watch = call(Watcher, erlang, whereis, [atoll_watch_peers]),
            Is = fun(State) -> await(fun() -> call(Watcher, atoll_watch, nodes, [Watch]) end, fun([#{state := Now}]) -> lists:member(Now, State) end) end,
            Standing = fun(N) -> await(fun() -> length(call(Watcher, atoll_watch, alarms, [Watch])) end, fun(Now) -> Now =:= N end) end,
            _ = Is([up]),
            [begin
                 ok = atoll_wire:set(Wire, #{loss => 1}),
                 took(?USUAL_MS + ?SEEN_MS, fun() -> Is([down]) end),
                 took(For + ?USUAL_MS + ?SEEN_MS, fun() -> Standing(1) end),
                 receive after For -> ok end,
                 ok = atoll_wire:set(Wire, #{loss => 0}),
                 took(?BACK_MS, fun() -> Is([up]) end),
                 took(?BACK_MS, fun() -> Standing(0) end)
             end || For <- [0, 20000]],
            ok = atoll_watch_peers:kill(Watcher),
            ok = atoll_watch_peers:kill(Peer),
            ok = atoll_wire:stop(Wire)
    end.

within(Ms, Test, Watch) -> took(Ms, fun() -> until(Test, Watch) end).

took(Ms, Fun) ->
    Begun = erlang:monotonic_time(millisecond),
    _ = Fun(),
    Took = erlang:monotonic_time(millisecond) - Begun,
    ct:pal("~b ms of ~b", [Took, Ms]),
    ?assert(Took =< Ms + ?LAG_MS, {Took, Ms}).
