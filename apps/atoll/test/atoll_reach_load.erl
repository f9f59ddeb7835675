%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: streams of numbered messages whose receivers know what is
%% missing, what came out of order and for how long nothing came; watchers that write down
%% each DOWN, EXIT and nodedown; and senders that send as fast as they can.
%%
%% Times are those of the machine's clock in microseconds: all nodes are on one machine.
-module(atoll_reach_load).

-export([receiver/0, stream/2, end_streams/1, received/1]).
-export([watch/1, watched/1]).
-export([swallow/0, swallowed/1, flood/3, end_flood/1]).

-define(DEADLINE_MS, 30000).

%% Streams

%% A process of this node that takes streams.
receiver() ->
    spawn(fun() ->
        %% What it measures is the way, and not who waits beside it here.
        _ = process_flag(priority, high),
        receiving(#{})
    end).

%% Of each stream the next number, when the last one came and the longest pause; faults; and
%% its length, once it has ended.
receiving(Streams) ->
    receive
        {number, Sender, N, _Data} ->
            Now = now_us(),
            Before = maps:get(Sender, Streams, #{next => 1, at => Now, pause => 0, pause_at => Now, wrong => [], ended => no}),
            #{next := Next, at := At, pause := Pause} = Before,
            receiving(Streams#{Sender => longest(Now - At, At, Pause, wrong(N, Next, Before#{next := N + 1, at := Now}))});
        {ended, Sender, Count} ->
            #{Sender := #{next := Next} = Before} = Streams,
            receiving(Streams#{Sender := wrong(Count + 1, Next, Before#{ended := Count})});
        {From, Ref, report} ->
            From ! {Ref, Streams},
            receiving(Streams)
    end.

longest(Gap, At, Pause, Stream) when Gap > Pause -> Stream#{pause := Gap, pause_at := At};
longest(_Gap, _At, _Pause, Stream) -> Stream.

wrong(Is, Is, Stream) -> Stream;
wrong(Is, Expected, #{wrong := Wrong} = Stream) -> Stream#{wrong := [{Is, instead_of, Expected} | Wrong]}.

%% From this node to each of these receivers: a message every so many milliseconds.
stream(Receivers, EveryMs) ->
    Caller = self(),
    Senders = [
        spawn(fun() ->
            Ref = monitor(process, Receiver),
            Receiver ! {number, self(), 1, <<>>},
            Caller ! {self(), begun},
            _ = erlang:send_after(rand:uniform(EveryMs), self(), next),
            streaming(Receiver, Ref, EveryMs, 1, [])
        end)
     || Receiver <- Receivers
    ],
    _ = [receive {Sender, begun} -> ok after ?DEADLINE_MS -> error(not_begun) end || Sender <- Senders],
    Senders.

streaming(Receiver, Ref, EveryMs, Sent, Downs) ->
    receive
        next ->
            _ = erlang:send_after(EveryMs, self(), next),
            Receiver ! {number, self(), Sent + 1, data(Sent)},
            streaming(Receiver, Ref, EveryMs, Sent + 1, Downs);
        {'DOWN', Ref, process, Receiver, Why} ->
            streaming(Receiver, Ref, EveryMs, Sent, [{now_us(), Why} | Downs]);
        {From, stop} ->
            Receiver ! {ended, self(), Sent},
            From ! {self(), {node(Receiver), Sent, Downs}}
    end.

%% Most are small, and some are more than one piece.
data(N) when N rem 50 =:= 0 -> binary:copy(<<N:32>>, 40000);
data(N) -> <<N:32>>.

%% They say to whom they sent how many, and which DOWN they got.
end_streams(Senders) ->
    _ = [Sender ! {self(), stop} || Sender <- Senders],
    [receive {Sender, Said} -> {Sender, Said} after ?DEADLINE_MS -> error({silent, Sender}) end || Sender <- Senders].

%% What a receiver has got, when so many streams have ended, or at the deadline.
received({Receiver, Count}) ->
    received(Receiver, Count, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

received(Receiver, Count, Deadline) ->
    Ref = make_ref(),
    Receiver ! {self(), Ref, report},
    Streams = receive {Ref, Is} -> Is end,
    Ended = length([x || #{ended := N} <- maps:values(Streams), is_integer(N)]),
    case Ended >= Count orelse erlang:monotonic_time(millisecond) > Deadline of
        true -> maps:to_list(Streams);
        false -> receive after 20 -> received(Receiver, Count, Deadline) end
    end.

%% Watchers

%% A process here monitors and links to a new process on each of these nodes, and hears of
%% nodes that go.
watch(Nodes) ->
    Caller = self(),
    Pid = spawn(fun() ->
        _ = process_flag(trap_exit, true),
        _ = process_flag(priority, high),
        Others = [gen_server:call({atoll_reach_probe, Node}, victim, ?DEADLINE_MS) || Node <- Nodes],
        _ = [{monitor(process, Other), link(Other)} || Other <- Others],
        ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
        Caller ! {self(), watching},
        watching([])
    end),
    receive
        {Pid, watching} -> Pid
    after ?DEADLINE_MS -> error(not_watching)
    end.

watching(Log) ->
    receive
        {'DOWN', _, process, Other, Why} -> watching([{now_us(), down, node(Other), Why} | Log]);
        {'EXIT', Other, Why} -> watching([{now_us(), exit, node(Other), Why} | Log]);
        {nodedown, Node, _} -> watching([{now_us(), nodedown, Node, none} | Log]);
        {nodeup, Node, _} -> watching([{now_us(), nodeup, Node, none} | Log]);
        {From, Ref, log} -> From ! {Ref, Log}, watching(Log)
    end.

%% What it has heard, the latest first.
watched(Pid) ->
    Ref = make_ref(),
    Pid ! {self(), Ref, log},
    receive
        {Ref, Log} -> Log
    after ?DEADLINE_MS -> error(silent)
    end.

%% As fast as they can

%% A process of this node that takes what comes.
swallow() ->
    spawn(fun() -> swallowing(0) end).

swallowing(Count) ->
    receive
        {From, Ref, count} -> From ! {Ref, Count}, swallowing(Count);
        _ -> swallowing(Count + 1)
    end.

%% How many messages it has taken.
swallowed(Pid) ->
    Ref = make_ref(),
    Pid ! {self(), Ref, count},
    receive
        {Ref, Count} -> Count
    after ?DEADLINE_MS -> error(silent)
    end.

%% So many processes of this node that send such messages there, for ever; gives one that
%% stands for them.
flood(To, Count, Bytes) ->
    Data = binary:copy(<<7>>, Bytes),
    spawn(fun() ->
        Senders = [spawn_link(fun() -> flooding(To, Data) end) || _ <- lists:seq(1, Count)],
        receive
            {From, stop} ->
                _ = [unlink(Pid) andalso exit(Pid, kill) || Pid <- Senders],
                From ! {self(), stopped}
        end
    end).

flooding(To, Data) ->
    To ! Data,
    flooding(To, Data).

end_flood(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, stopped} -> ok
    after ?DEADLINE_MS -> error(no_answer)
    end.

now_us() -> os:system_time(microsecond).
