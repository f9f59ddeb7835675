%% SPDX-License-Identifier: Apache-2.0
%% @doc The load of the benchmark {@link atoll_bench_dist}, on its two nodes.
%%
%% The last of the peers is the ping's. A round ends when everything that was sent
%% has been answered, and is as long as that took.
-module(atoll_bench_dist_load).

-export([answer/1, run/4]).

-export_type([kind/0]).

-type kind() :: ping_pong | request | flood | ping_beside_bulk | states.

-type result() :: {
    Ops :: non_neg_integer(), Us :: pos_integer(), {ok, atoll_histogram:export()} | none
}.

-define(PING_BYTES, 16).
%% Pings a second beside bulk, and how many may be under way.
-define(PING_RATE, 200).
-define(PINGS_MAX, 20).
-define(ANSWER_MS, 60000).
%% States told in a second.
-define(STATE_RATE, 1000).

%% @doc Processes that answer, for as long as this node is there.
-spec answer(pos_integer()) -> [pid(), ...].
answer(Count) ->
    [spawn(fun() -> answering(0) end) || _ <- lists:seq(1, Count)].

answering(Floods) ->
    receive
        {request, From, Tag, _Payload} ->
            From ! Tag,
            answering(Floods);
        {echo, From, Tag, Payload} ->
            From ! {Tag, Payload},
            answering(Floods);
        {flood, _Payload} ->
            answering(Floods + 1);
        {state, At, I, _Payload} ->
            Hist = atoll_histogram:new(),
            ok = seen(At, Hist),
            answering(stated(1, I, Hist));
        {flooded, From, Tag} ->
            From ! {Tag, Floods},
            answering(0)
    end.

%% How old each state is that is seen, till it is asked for: how many there were, and the last one.
%% An older one after a newer one is a fault.
stated(Count, Last, Hist) ->
    receive
        {state, At, I, _Payload} when I > Last ->
            ok = seen(At, Hist),
            stated(Count + 1, I, Hist);
        {state, _At, I, _Payload} ->
            error({older, I, Last});
        {stated, From, Tag} ->
            From ! {Tag, Count, Last, atoll_histogram:export(Hist)},
            0
    end.

%% Both nodes are on one machine, and read its one clock.
seen(At, Hist) ->
    atoll_histogram:record(max(0, os:system_time(nanosecond) - At), Hist).

%% @doc One round against the other node's processes.
-spec run(kind(), [pid(), ...], Size :: pos_integer(), Ms :: pos_integer()) -> result().
run(Kind, Peers, Size, Ms) ->
    Payload = payload(Size),
    Hist = atoll_histogram:new(),
    Begin = erlang:monotonic_time(),
    Until = Begin + erlang:convert_time_unit(Ms, millisecond, native),
    {Actors, [PingPeer]} = lists:split(length(Peers) - 1, Peers),
    Table = list_to_tuple(Actors),
    Actor = fun(Fun) -> fun(N) -> Fun(element(N, Table)) end end,
    Silent = fun(_Ns) -> ok end,
    Record = fun(Ns) -> atoll_histogram:record(Ns, Hist) end,
    Loop =
        case Kind of
            ping_pong -> Actor(fun(Peer) -> pinging(Peer, Payload, Until, Record, 0) end);
            request -> Actor(fun(Peer) -> requesting(Peer, Payload, Until, Record, 0) end);
            flood -> Actor(fun(Peer) -> flooding(Peer, Payload, Until, 0) end);
            states -> Actor(fun(Peer) -> ok = joined(states), stating(Peer, Payload, Begin, Until, 0) end);
            ping_beside_bulk -> Actor(fun(Peer) -> ok = joined(bulk), requesting(Peer, Payload, Until, Silent, 0) end)
        end,
    Count = length(Actors),
    {Done, Latency} =
        case Kind of
            ping_beside_bulk ->
                [Pings | Ops] = atoll_bench_node:together(
                    Count + 1,
                    fun
                        (1) -> pings(PingPeer, Ms);
                        (N) -> Loop(N - 1)
                    end,
                    Ms + ?ANSWER_MS
                ),
                {Ops, {ok, Pings}};
            flood ->
                {atoll_bench_node:together(Count, Loop, Ms + ?ANSWER_MS), none};
            states ->
                [{Seen, Ages}] = atoll_bench_node:together(1, Loop, Ms + ?ANSWER_MS),
                {[Seen], {ok, Ages}};
            _ ->
                Ops = atoll_bench_node:together(Count, Loop, Ms + ?ANSWER_MS),
                {Ops, {ok, atoll_histogram:export(Hist)}}
        end,
    Us = erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, microsecond),
    {lists:sum(Done), Us, Latency}.

%% Whoever asks for something small beside bulk does not wait for others to be answered.
pings(Peer, Ms) ->
    Payload = payload(?PING_BYTES),
    Ping = fun() ->
        Tag = make_ref(),
        Peer ! {echo, self(), Tag, Payload},
        receive
            {Tag, _} -> ok
        end
    end,
    #{latency := Latency} = atoll_bench_load:open(Ping, #{rate => ?PING_RATE, ms => Ms, workers_max => ?PINGS_MAX}),
    atoll_histogram:export(Latency).

%% Bytes that nobody can make smaller on the way.
payload(Size) ->
    rand:bytes(Size).

pinging(Peer, Payload, Until, Record, Done) ->
    Begin = erlang:monotonic_time(),
    case Begin < Until of
        true ->
            Peer ! {echo, self(), Begin, Payload},
            receive
                {Begin, _} -> ok
            end,
            Record(nanoseconds(Begin)),
            pinging(Peer, Payload, Until, Record, Done + 1);
        false ->
            Done
    end.

requesting(Peer, Payload, Until, Record, Done) ->
    Begin = erlang:monotonic_time(),
    case Begin < Until of
        true ->
            Peer ! {request, self(), Begin, Payload},
            receive
                Begin -> ok
            end,
            Record(nanoseconds(Begin)),
            requesting(Peer, Payload, Until, Record, Done + 1);
        false ->
            Done
    end.

flooding(Peer, Payload, Until, Sent) ->
    case erlang:monotonic_time() < Until of
        true ->
            %% The clock is looked at now and then.
            _ = [Peer ! {flood, Payload} || _ <- lists:seq(1, 100)],
            flooding(Peer, Payload, Until, Sent + 100);
        false ->
            Tag = make_ref(),
            Peer ! {flooded, self(), Tag},
            receive
                {Tag, Sent} -> Sent
            end
    end.

%% Where the system has that channel.
joined(Channel) ->
    case atoll:channel(Channel) of
        ok -> ok;
        {error, {no_channel, Channel, _}} -> ok
    end.

%% Those that are due. The last one must be seen, whatever was dropped.
stating(Peer, Payload, Begin, Until, Told) ->
    Now = erlang:monotonic_time(),
    case Now < Until of
        true ->
            Due = erlang:convert_time_unit(Now - Begin, native, microsecond) * ?STATE_RATE div 1000000,
            _ = [Peer ! {state, os:system_time(nanosecond), I, Payload} || I <- lists:seq(Told + 1, Due)],
            receive after 1 -> stating(Peer, Payload, Begin, Until, Due) end;
        false ->
            Tag = make_ref(),
            Peer ! {stated, self(), Tag},
            receive
                {Tag, Seen, Told, Ages} -> {Seen, Ages}
            end
    end.

nanoseconds(Begin) ->
    erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, nanosecond).
