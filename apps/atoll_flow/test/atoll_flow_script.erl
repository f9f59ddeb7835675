%% SPDX-License-Identifier: Apache-2.0
%% Traffic of which all is known, for the suites: loaded into nodes that have nothing else of ours.
-module(atoll_flow_script).

-export([load/1, echo/0, hush/0, ping/2, pings/2, pinger/0, watched_sends/3, sized/2, kinds/1, flood/2]).

%% @doc Puts this module into a peer.
load(Peer) ->
    {?MODULE, Code, File} = code:get_object_code(?MODULE),
    {module, ?MODULE} = atoll_watch_peers:call(Peer, code, load_binary, [?MODULE, File, Code]),
    Peer.

%% @doc A process of this name sends back what it gets, until it is told to stop.
echo() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> true = register(?MODULE, self()), Self ! {self(), ready}, echoing() end),
    receive
        {Pid, ready} -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.

%% @doc Ends it.
hush() ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! stop,
    receive {'DOWN', Ref, process, _, _} -> ok end.

echoing() ->
    receive
        {From, Message} -> From ! Message, echoing();
        {'$gen_call', From, Message} -> gen_server:reply(From, Message), echoing();
        silent -> echoing();
        stop -> ok
    end.

%% @doc So many messages to the process there, one after the other, and as many back.
ping(_, 0) -> ok;
ping(Node, N) ->
    {?MODULE, Node} ! {self(), ping},
    receive ping -> ping(Node, N - 1) end.

%% @doc The same for so many milliseconds; says how many.
pings(Node, Ms) -> pings(Node, erlang:monotonic_time(millisecond) + Ms, 0).

pings(Node, Deadline, Sent) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> ok = ping(Node, 20), pings(Node, Deadline, Sent + 20);
        false -> Sent
    end.

%% @doc A process that sends messages to the one of this name on a node, when it is told to.
pinger() -> spawn(fun pinging/0).

pinging() ->
    receive {From, Node, N} -> _ = [{?MODULE, Node} ! silent || _ <- lists:seq(1, N)], From ! {self(), sent}, pinging() end.

%% @doc Has the sends of one process traced by the calling one, or not; or says how many it sees of so many.
watched_sends(Pinger, _, on) ->
    Self = self(),
    {Tracer, Ref} = spawn_monitor(fun() -> true = register(atoll_flow_tracer, self()), Self ! {self(), erlang:trace(Pinger, true, [send])}, counting(0) end),
    receive
        {Tracer, N} -> true = demonitor(Ref), N;
        {'DOWN', Ref, process, Tracer, Reason} -> error(Reason)
    end;
watched_sends(_, _, off) ->
    Ref = monitor(process, atoll_flow_tracer),
    true = exit(whereis(atoll_flow_tracer), kill),
    receive {'DOWN', Ref, process, _, _} -> ok end;
watched_sends(Pinger, Node, N) ->
    Pinger ! {self(), Node, N},
    receive {Pinger, sent} -> ok end,
    Delivered = erlang:trace_delivered(Pinger),
    receive {trace_delivered, Pinger, Delivered} -> ok end,
    atoll_flow_tracer ! {self(), told},
    receive {atoll_flow_tracer, Seen} -> Seen end.

counting(Seen) ->
    receive
        {trace, _, send, silent, _} -> counting(Seen + 1);
        {trace, _, _, _, _} -> counting(Seen);
        {From, told} -> From ! {atoll_flow_tracer, Seen}, counting(Seen)
    end.

%% @doc One message of each of these sizes, of binaries; says their sizes in the external format.
sized(Node, Sizes) ->
    [begin
        Message = {self(), binary:copy(<<7>>, Size)},
        {?MODULE, Node} ! Message,
        receive <<_/binary>> -> ok end,
        erlang:external_size(Message)
    end || Size <- Sizes].

%% @doc One call of a gen_server, two monitors, three links and two exit signals, to processes there.
kinds(Node) ->
    ping = gen_server:call({?MODULE, Node}, ping),
    Pids = [erpc:call(Node, erlang, spawn, [timer, sleep, [infinity]]) || _ <- [1, 2, 3]],
    _ = process_flag(trap_exit, true),
    Refs = [monitor(process, Pid) || Pid <- tl(Pids)],
    _ = [true = link(Pid) || Pid <- Pids],
    _ = [true = exit(Pid, kill) || Pid <- tl(Pids)],
    _ = [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Refs],
    _ = [receive {'EXIT', Pid, _} -> ok end || Pid <- tl(Pids)],
    ok.

%% @doc Sends for so many milliseconds, to the process there, a hundred at a time; says how many. Each hundred is answered, so that
%% what is sent has come.
flood(Node, Ms) -> flood(Node, erlang:monotonic_time(millisecond) + Ms, 0).

flood(Node, Deadline, Sent) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true ->
            _ = [{?MODULE, Node} ! silent || _ <- lists:seq(1, 99)],
            {?MODULE, Node} ! {self(), ping},
            receive ping -> flood(Node, Deadline, Sent + 100) end;
        false ->
            Sent
    end.
