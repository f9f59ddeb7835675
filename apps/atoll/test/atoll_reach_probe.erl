%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: a named process that answers, and a look from each node
%% at what it reaches and what connections it has. Nothing here is told of any path.
-module(atoll_reach_probe).

-behaviour(gen_server).

-export([start/0, reach/2, reached_again/2, tcp/0, own_links/0, circuits/0, ask/1, round_trips/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(DEADLINE_MS, 30000).

%% Begins to answer on this node.
start() ->
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    ok.

init([]) ->
    {ok, none}.

%% A process of this node that waits for its end, for somebody elsewhere.
handle_call(victim, _From, State) ->
    {reply, spawn(fun() -> receive {die, Why} -> exit(Why) end end), State};
handle_call(echo, {Pid, _}, State) ->
    {reply, {node(), node(Pid)}, State}.

handle_cast(none, State) ->
    {noreply, State}.

handle_info({ping, From, Ref}, State) ->
    From ! {Ref, pong, node()},
    {noreply, State}.

%% From a process for each of these nodes, in each of the ways: by name and by pid, with
%% a call, a monitor and a link. What did not come as it should.
reach(Nodes, Ways) ->
    Tries = [{Node, Way, spawn_monitor(fun() -> exit({tried, try_way(Way, Node)}) end)} || Node <- Nodes, Way <- Ways],
    [
        {Node, Way, Got}
     || {Node, Way, {Pid, Ref}} <- Tries,
        Got <- [receive {'DOWN', Ref, process, Pid, {tried, Is}} -> Is; {'DOWN', Ref, process, Pid, Crash} -> Crash end],
        Got =/= ok
    ].

try_way(send, Node) ->
    Ref = make_ref(),
    {?MODULE, Node} ! {ping, self(), Ref},
    receive
        {Ref, pong, Node} -> ok
    after ?DEADLINE_MS -> timeout
    end;
try_way(call, Node) ->
    case gen_server:call({?MODULE, Node}, echo, ?DEADLINE_MS) of
        {Node, Here} when Here =:= node() -> ok;
        Other -> Other
    end;
try_way(monitor, Node) ->
    Victim = gen_server:call({?MODULE, Node}, victim, ?DEADLINE_MS),
    Ref = monitor(process, Victim),
    Victim ! {die, {seen, node()}},
    receive
        {'DOWN', Ref, process, Victim, {seen, Here}} when Here =:= node() -> ok;
        {'DOWN', Ref, process, Victim, Other} -> Other
    after ?DEADLINE_MS -> timeout
    end;
try_way(link, Node) ->
    Victim = gen_server:call({?MODULE, Node}, victim, ?DEADLINE_MS),
    process_flag(trap_exit, true),
    link(Victim),
    Victim ! {die, {seen, node()}},
    receive
        {'EXIT', Victim, {seen, Here}} when Here =:= node() -> ok;
        {'EXIT', Victim, Other} -> Other
    after ?DEADLINE_MS -> timeout
    end.

%% Calls a node until it answers: after how many milliseconds it did.
reached_again(Node, Ms) ->
    Began = erlang:monotonic_time(millisecond),
    reached_again(Node, Began, Began + Ms).

reached_again(Node, Began, Deadline) ->
    try gen_server:call({?MODULE, Node}, echo, max(1, Deadline - erlang:monotonic_time(millisecond))) of
        _ -> {ok, erlang:monotonic_time(millisecond) - Began}
    catch
        exit:Why ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive after 50 -> ok end,
                    reached_again(Node, Began, Deadline);
                false ->
                    {not_reached, Node, Why}
            end
    end.

%% How many TCP connections this process of the operating system has with others, but for
%% that with the port mapper: by its own account.
tcp() ->
    Fds = filename:join(["/proc", os:getpid(), "fd"]),
    {ok, Names} = file:list_dir(Fds),
    Inodes = maps:from_list([{Inode, []} || Name <- Names, {ok, "socket:[" ++ Rest} <- [file:read_link(filename:join(Fds, Name))], Inode <- [string:trim(Rest, trailing, "]")]]),
    length([x || Table <- ["/proc/net/tcp", "/proc/net/tcp6"], {Inode, Port} <- established(Table), is_map_key(Inode, Inodes), Port =/= epmd_port()]).

epmd_port() ->
    list_to_integer(os:getenv("ERL_EPMD_PORT", "4369")).

%% Of those that are established the inode and the peer's port.
established(Table) ->
    case file:read_file(Table) of
        {ok, Text} ->
            [_ | Lines] = binary:split(Text, <<"\n">>, [global, trim_all]),
            [
                {binary_to_list(Inode), binary_to_integer(lists:last(binary:split(Remote, <<":">>, [global])), 16)}
             || Line <- Lines,
                [_, _Local, Remote, <<"01">>, _, _, _, _, _, Inode | _] <- [binary:split(Line, <<" ">>, [global, trim_all])]
            ];
        {error, enoent} ->
            []
    end.

%% The nodes that this one has a connection of its own with, by the carrier's account, and
%% how many sockets that has.
own_links() ->
    [{Node, case Kind of {lanes, N} -> N; direct -> 1 end} || #{node := Node, kind := Kind} <- atoll_dist:links(), Kind =/= relay].

%% The paths of its circuits.
circuits() ->
    [Path || #{kind := relay, path := Path} <- atoll_dist:links()].

%% One call: whatever comes of it.
ask(Node) ->
    try gen_server:call({?MODULE, Node}, echo, ?DEADLINE_MS) of
        Answer -> {ok, Answer}
    catch
        exit:{Why, _} -> {error, Why}
    end.

%% So many round trips to a node, one after the other, in microseconds.
round_trips(Node, Count) ->
    [
        begin
            Ref = make_ref(),
            Began = erlang:monotonic_time(),
            {?MODULE, Node} ! {ping, self(), Ref},
            receive
                {Ref, pong, Node} -> erlang:convert_time_unit(erlang:monotonic_time() - Began, native, microsecond)
            after ?DEADLINE_MS -> error({no_answer, Node})
            end
        end
     || _ <- lists:seq(1, Count)
    ].
