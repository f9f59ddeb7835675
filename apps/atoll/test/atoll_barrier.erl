%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: waits for an event, never for a while, and
%% says what it saw instead when the deadline is over.
-module(atoll_barrier).

-export([group/2, names/2, members/1, connected/1, restart_room/1, kept/1]).
-export([monitor_init/1, demonitor/1]).
-export([kept/0, listen/1, heard/2, hang_up/1]).
-export([fill/1, flood/1, end_flood/1, come_and_go/3, restart_with/2, disconnect_all/0, start_with/1]).
-export([start_anew/1, stopped/0, apart/0, connections/0]).

-define(DEADLINE_MS, 15000).

%% This node's group of that name has these members; with [] it is in none.
group(Name, Members) ->
    wait(atoll_group, fun() -> s_group:own_nodes(Name) end, lists:sort(Members)).

%% These names are in this node's group.
names(Group, Names) ->
    wait_for(fun() -> atoll_name:names(Group) end, lists:sort(Names)).

%% These are the members of the overlay, as this node knows.
members(Nodes) ->
    wait_for(fun atoll:members/0, lists:sort(Nodes)).

%% For what no notice tells: it is looked at until it is so.
wait_for(Look, Expected) ->
    wait_for(Look, Expected, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

wait_for(Look, Expected, Deadline) ->
    case {Look(), erlang:monotonic_time(millisecond) < Deadline} of
        {Expected, _} ->
            ok;
        {_, true} ->
            receive after 5 -> wait_for(Look, Expected, Deadline) end;
        {Seen, false} ->
            {still, Seen, instead_of, Expected}
    end.

%% This node is connected with these and no others.
connected(Nodes) ->
    wait(atoll_link, fun() -> lists:sort(nodes(connected)) end, lists:sort(Nodes)).

wait(Room, Look, Expected) ->
    ok = atoll_interpreter:subscribe(Room),
    try
        look(Room, Look, Expected, erlang:monotonic_time(millisecond) + ?DEADLINE_MS)
    after
        ok = atoll_interpreter:unsubscribe(Room)
    end.

look(Room, Look, Expected, Deadline) ->
    case Look() of
        Expected ->
            ok;
        Seen ->
            Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
            receive
                {atoll, Room, _} -> look(Room, Look, Expected, Deadline)
            after Left -> {still, Seen, instead_of, Expected}
            end
    end.

%% A process of this node monitors one of Node; gives it.
monitor_init(Node) ->
    Caller = self(),
    Pid = spawn(fun() ->
        Remote = erpc:call(Node, erlang, whereis, [init]),
        Ref = monitor(process, Remote),
        Caller ! {self(), monitoring},
        watch(Ref)
    end),
    receive
        {Pid, monitoring} -> Pid
    after ?DEADLINE_MS -> error(no_monitor)
    end.

watch(Ref) ->
    receive
        {From, stop} ->
            true = erlang:demonitor(Ref),
            From ! {self(), quiet};
        {'DOWN', Ref, process, _, Reason} ->
            receive
                {From, stop} -> From ! {self(), {down, Reason}}
            end
    end.

%% Ends the monitor; says whether it had fired.
demonitor(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, Answer} -> Answer
    after ?DEADLINE_MS -> error(no_answer)
    end.

%% Kills the room's process and waits for its successor.
restart_room(Room) ->
    Old = whereis(Room),
    Ref = monitor(process, Old),
    exit(Old, kill),
    receive
        {'DOWN', Ref, process, Old, killed} -> ok
    end,
    ok = wait_for(fun() -> is_pid(whereis(Room)) andalso whereis(Room) =/= Old end, true),
    %% A supervisor answers when it has started what it has to.
    _ = [supervisor:which_children(Sup) || Sup <- [atoll_sup, atoll_link_sup, atoll_rooms_sup, atoll_group_sup]],
    ok.

%% The link room looks at the connection with Node, which nobody wants, and keeps it.
kept(Node) ->
    ok = atoll_interpreter:subscribe(atoll_link),
    try
        receive
            {atoll, atoll_link, {kept, Node}} -> ok
        after ?DEADLINE_MS -> {not_kept, Node}
        end
    after
        ok = atoll_interpreter:unsubscribe(atoll_link)
    end.

%% What this node knows of groups is in its file.
kept() ->
    %% It handles what it is told in order.
    _ = sys:get_state(atoll_group_keeper),
    ok.

%% A process that has run Begin, and keeps what it is sent.
listen(Begin) ->
    Caller = self(),
    Pid = spawn(fun() ->
        _ = Begin(),
        Caller ! {self(), begun},
        listen_on()
    end),
    receive
        {Pid, begun} -> Pid
    after ?DEADLINE_MS -> error(no_answer)
    end.

%% Takes its messages out in the order in which they came.
listen_on() ->
    receive
        {From, heard, Count} when is_pid(From) -> From ! {self(), [receive Message -> Message end || _ <- lists:seq(1, Count)]}
    end,
    listen_on().

%% The next so many messages; with none asked for, those that are there.
heard(Pid, 0) ->
    {messages, Messages} = process_info(Pid, messages),
    Messages;
heard(Pid, Count) ->
    Pid ! {self(), heard, Count},
    receive
        {Pid, Heard} -> Heard
    after ?DEADLINE_MS -> {still, element(2, process_info(Pid, messages))}
    end.

%% Ends it.
hang_up(Pid) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end,
    %% What watches it has heard of it too.
    _ = sys:get_state(atoll_group_watch),
    ok.

%% The connection with Node, which reads nothing, is full.
fill(Node) ->
    case erlang:send({nobody, Node}, binary:copy(<<0>>, 200000), [noconnect, nosuspend]) of
        ok -> fill(Node);
        nosuspend -> ok
    end.

%% Processes of this node send Node large messages, as fast as they can; gives one
%% that stands for them.
flood(Node) ->
    Big = binary:copy(<<0>>, 200000),
    spawn(fun() ->
        Senders = [spawn_link(fun() -> send_for_ever(Node, Big) end) || _ <- lists:seq(1, 4)],
        receive
            {From, stop} ->
                _ = [unlink(Pid) andalso exit(Pid, kill) || Pid <- Senders],
                From ! {self(), stopped}
        end
    end).

send_for_ever(Node, Big) ->
    {nobody, Node} ! Big,
    send_for_ever(Node, Big).

end_flood(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, stopped} -> ok
    after ?DEADLINE_MS -> error(no_answer)
    end.

%% Makes and deletes a group so many times; gives the answers that were not as
%% they should be.
come_and_go(Name, Nodes, Times) ->
    Expected = {{ok, Name, lists:sort(Nodes)}, ok},
    Answers = [
        {s_group:new_s_group(Name, Nodes), s_group:delete_s_group(Name)}
     || _ <- lists:seq(1, Times)
    ],
    [Answer || Answer <- Answers, Answer =/= Expected].

%% The application starts anew with that linger time.
restart_with(Key, Value) ->
    ok = application:stop(atoll),
    ok = application:set_env(atoll, Key, Value),
    application:start(atoll).

%% No connection is left of those that this node has.
disconnect_all() ->
    lists:foreach(fun erlang:disconnect_node/1, nodes(connected)).

%% The application starts with these settings.
start_with(Settings) ->
    _ = [application:set_env(atoll, Key, Value) || {Key, Value} <- Settings],
    application:start(atoll).

%% The application starts with these settings and those of the command line, and no others;
%% it is stopped/0, or was never started.
start_anew(Settings) ->
    ok = application:load(atoll),
    _ = [application:set_env(atoll, Key, Value) || {Key, Value} <- Settings],
    case application:ensure_all_started(atoll) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% The application is stopped, with what it was told, and this node is connected with nobody.
stopped() ->
    _ = application:stop(atoll),
    _ = application:unload(atoll),
    apart().

%% This node is connected with nobody, and no attempt of it is under way. Where the
%% application is stopped on all nodes, it stays so.
apart() ->
    apart(erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

apart(Deadline) ->
    ok = disconnect_all(),
    %% The kernel's own table: nothing else tells of attempts.
    case {ets:tab2list(sys_dist), erlang:monotonic_time(millisecond) < Deadline} of
        {[], _} -> ok;
        {_, true} -> receive after 5 -> apart(Deadline) end;
        {Seen, false} -> {still, Seen, instead_of, []}
    end.

%% This node's connections and attempts, once `rex' has answered what it was asked by now: an answer
%% to a node that has gone is an attempt to connect.
connections() ->
    _ = sys:get_state(rex, infinity),
    %% The attempt is in the kernel's table when this is answered.
    _ = net_kernel:get_net_ticktime(),
    ets:tab2list(sys_dist).
