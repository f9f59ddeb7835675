%% SPDX-License-Identifier: Apache-2.0
%% What the tests of wires run on the nodes at their ends. Processes of it last as long
%% as the node.
-module(atoll_wire_probe).

-export([echo/0, round_trips/3, collect/0, collected/2, burst/4]).
-export([sink/0, pour/3, rate/1, digest/0, send/3]).

-define(ANSWER_MS, 10000).
-define(BLOCK, 262144).

%% Opens a socket, in a process that goes on with it.
serving(Open, Serve) ->
    Self = self(),
    Pid = spawn(fun() ->
        {ok, Socket} = Open(),
        {ok, Port} = inet:port(Socket),
        Self ! {self(), Port},
        Serve(Socket)
    end),
    receive {Pid, Port} -> {Pid, Port} end.

%% Datagrams

echo() ->
    {_, Port} = serving(fun() -> gen_udp:open(0, [binary, {active, true}]) end, fun echoing/1),
    Port.

echoing(Socket) ->
    receive
        {udp, Socket, Address, Port, Data} ->
            ok = gen_udp:send(Socket, Address, Port, Data),
            echoing(Socket)
    end.

%% How long each of so many took, microseconds; `lost' for one that did not come back.
round_trips(Address, Port, Count) ->
    {ok, Socket} = gen_udp:open(0, [binary, {active, false}]),
    Times = [round_trip(Socket, Address, Port, N) || N <- lists:seq(1, Count)],
    ok = gen_udp:close(Socket),
    Times.

round_trip(Socket, Address, Port, N) ->
    Begin = erlang:monotonic_time(microsecond),
    ok = gen_udp:send(Socket, Address, Port, <<N:32>>),
    case gen_udp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, {_, _, <<N:32>>}} -> erlang:monotonic_time(microsecond) - Begin;
        {error, timeout} -> lost
    end.

%% Numbers of datagrams, in the order in which they come.
collect() ->
    serving(fun() -> gen_udp:open(0, [binary, {active, true}, {recbuf, 4194304}]) end, fun(Socket) -> collecting(Socket, []) end).

collecting(Socket, Numbers) ->
    receive
        {udp, Socket, _, _, <<N:32, _/binary>>} -> collecting(Socket, [N | Numbers]);
        {From, count} ->
            From ! {self(), length(Numbers)},
            collecting(Socket, Numbers);
        {From, numbers} ->
            From ! {self(), lists:reverse(Numbers)},
            collecting(Socket, [])
    end.

%% Once there are so many: the kernel has them before the process.
collected(Pid, Count) ->
    collected(Pid, Count, erlang:monotonic_time(millisecond) + ?ANSWER_MS).

collected(Pid, Count, Deadline) ->
    case ask(Pid, count) < Count andalso erlang:monotonic_time(millisecond) < Deadline of
        true ->
            receive after 5 -> ok end,
            collected(Pid, Count, Deadline);
        false ->
            ask(Pid, numbers)
    end.

ask(Pid, What) ->
    Pid ! {self(), What},
    receive {Pid, Answer} -> Answer end.

burst(Address, Port, Count, Size) ->
    {ok, Socket} = gen_udp:open(0, [binary, {sndbuf, 4194304}]),
    _ = [ok = gen_udp:send(Socket, Address, Port, <<N:32, 0:(8 * (Size - 4))>>) || N <- lists:seq(1, Count)],
    gen_udp:close(Socket).

%% Streams

%% Takes what comes on any connection, and counts it.
sink() ->
    Received = counters:new(1, []),
    ok = persistent_term:put(?MODULE, Received),
    {_, Port} = serving(fun listen/0, fun(Socket) -> accepting(Socket, fun(S) -> swallow(S, Received) end) end),
    Port.

listen() ->
    gen_tcp:listen(0, [binary, {active, false}, {backlog, 64}, {buffer, ?BLOCK}, {exit_on_close, false}]).

accepting(Socket, Serve) ->
    {ok, Accepted} = gen_tcp:accept(Socket),
    Pid = spawn(fun() -> receive go -> Serve(Accepted) end end),
    ok = gen_tcp:controlling_process(Accepted, Pid),
    Pid ! go,
    accepting(Socket, Serve).

swallow(Socket, Received) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} ->
            counters:add(Received, 1, byte_size(Data)),
            swallow(Socket, Received);
        {error, closed} ->
            ok
    end.

%% Bytes a second that the sink takes, over so many milliseconds.
rate(Ms) ->
    Received = persistent_term:get(?MODULE),
    Begin = {counters:get(Received, 1), erlang:monotonic_time(microsecond)},
    receive after Ms -> ok end,
    {Bytes, At} = Begin,
    (counters:get(Received, 1) - Bytes) * 1000000 / (erlang:monotonic_time(microsecond) - At).

%% Sends as fast as it goes, until it is killed.
pour(Address, Port, Streams) ->
    spawn(fun() ->
        _ = [spawn_link(fun() -> pouring(Address, Port) end) || _ <- lists:seq(1, Streams)],
        receive stop -> exit(stopped) end
    end).

pouring(Address, Port) ->
    {ok, Socket} = gen_tcp:connect(Address, Port, [binary, {active, false}]),
    pouring(Socket).

pouring(Socket) ->
    ok = gen_tcp:send(Socket, <<0:(8 * ?BLOCK)>>),
    pouring(Socket).

%% Answers a connection with the digest of what came on it.
digest() ->
    {_, Port} = serving(fun listen/0, fun(Socket) -> accepting(Socket, fun(S) -> digesting(S, crypto:hash_init(sha256)) end) end),
    Port.

digesting(Socket, Hash) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} -> digesting(Socket, crypto:hash_update(Hash, Data));
        {error, closed} -> gen_tcp:send(Socket, crypto:hash_final(Hash))
    end.

%% Whether so many bytes arrive as they were sent, and how long that takes in microseconds.
send(Address, Port, Size) ->
    Data = rand:bytes(Size),
    {ok, Socket} = gen_tcp:connect(Address, Port, [binary, {active, false}, {exit_on_close, false}]),
    Begin = erlang:monotonic_time(microsecond),
    ok = gen_tcp:send(Socket, Data),
    ok = gen_tcp:shutdown(Socket, write),
    {ok, Answer} = gen_tcp:recv(Socket, 32),
    ok = gen_tcp:close(Socket),
    {Answer =:= crypto:hash(sha256, Data), erlang:monotonic_time(microsecond) - Begin}.
