%% SPDX-License-Identifier: Apache-2.0
%% Traffic of which all is known, for the suites: loaded into nodes that have nothing else of ours.
-module(atoll_flow_script).

-export([load/1, echo/0, hush/0, ping/2, sized/2, kinds/1, flood/2]).

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
