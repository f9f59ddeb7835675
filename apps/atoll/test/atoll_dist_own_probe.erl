%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: traffic over a connection that is to notice nothing, and
%% what is to be done to a circuit's own connection.
-module(atoll_dist_own_probe).

-export([load/1, end_load/1, linked/0, own_soon/2, moves/1, cut/1, lanes/1, attempts/0, offers/1, offer/2, knock/2, claim/1, waiting/1]).
-export([hold/1, let_go/1, stuff/3, unwritten/1, waits_for/1]).
-export([echo/0]).

-define(DEADLINE_MS, 15000).
%% How many messages are on their way at once, and the bytes of every so many'th.
-define(AHEAD, 64).
-define(BIG, 300000).
-define(EVERY, 50).
%% For so many hundredths of a second nothing is written.
-define(STILL_LOOKS, 50).

%% Numbered messages go to a process of Node, which sends them back; that is monitored, and
%% linked, and the node too.
load(Node) ->
    Caller = self(),
    Pid = spawn(fun() ->
        Echo = spawn(Node, ?MODULE, echo, []),
        _ = process_flag(trap_exit, true),
        true = link(Echo),
        _ = monitor(process, Echo),
        true = monitor_node(Node, true),
        Caller ! {self(), begun},
        send(Echo, 0, 0, true, 0, 0)
    end),
    receive
        {Pid, begun} -> Pid
    after ?DEADLINE_MS -> error(no_answer)
    end.

echo() ->
    receive
        {From, N, _Padding} ->
            From ! {self(), N},
            ?MODULE:echo();
        stop ->
            ok
    end.

send(Echo, Sent, Got, InOrder, Fired, Downs) when Sent - Got < ?AHEAD ->
    Padding =
        case Sent rem ?EVERY of
            0 -> binary:copy(<<0>>, ?BIG);
            _ -> <<>>
        end,
    Echo ! {self(), Sent + 1, Padding},
    take(Echo, Sent + 1, Got, InOrder, Fired, Downs, 0);
send(Echo, Sent, Got, InOrder, Fired, Downs) ->
    take(Echo, Sent, Got, InOrder, Fired, Downs, infinity).

take(Echo, Sent, Got, InOrder, Fired, Downs, Ms) ->
    receive
        {Echo, N} -> send(Echo, Sent, Got + 1, InOrder andalso N =:= Got + 1, Fired, Downs);
        {'DOWN', _, process, Echo, _} -> send(Echo, Sent, Got, InOrder, Fired + 1, Downs);
        {'EXIT', Echo, _} -> send(Echo, Sent, Got, InOrder, Fired + 1, Downs);
        {nodedown, _} -> send(Echo, Sent, Got, InOrder, Fired, Downs + 1);
        {From, stop} -> finish(From, Echo, Sent, Got, InOrder, Fired, Downs)
    after Ms -> send(Echo, Sent, Got, InOrder, Fired, Downs)
    end.

finish(From, Echo, Sent, Sent, InOrder, Fired, Downs) ->
    From ! {self(), #{sent => Sent, got => Sent, in_order => InOrder, fired => Fired, nodedowns => Downs}},
    true = unlink(Echo),
    Echo ! stop;
finish(From, Echo, Sent, Got, InOrder, Fired, Downs) ->
    receive
        {Echo, N} -> finish(From, Echo, Sent, Got + 1, InOrder andalso N =:= Got + 1, Fired, Downs);
        {'DOWN', _, process, Echo, _} -> finish(From, Echo, Sent, Got, InOrder, Fired + 1, Downs);
        {'EXIT', Echo, _} -> finish(From, Echo, Sent, Got, InOrder, Fired + 1, Downs);
        {nodedown, _} -> finish(From, Echo, Sent, Got, InOrder, Fired, Downs + 1)
    after ?DEADLINE_MS ->
        From ! {self(), #{sent => Sent, got => Got, in_order => InOrder, fired => Fired, nodedowns => Downs}}
    end.

%% What became of it.
end_load(Pid) ->
    Pid ! {self(), stop},
    receive
        {Pid, Held} -> Held
    after 2 * ?DEADLINE_MS -> error(no_answer)
    end.

%% The nodes that a watcher of links hears of now.
linked() ->
    atoll_dist:watch_links().

%% At the next tenth of a second, which is the same on all nodes of a machine.
own_soon(Node, Wants) ->
    receive after 100 - erlang:system_time(millisecond) rem 100 -> atoll_dist:own(Node, Wants) end.

%% How often the circuit with Node has moved.
moves(Node) ->
    [Moves] = [Moves || #{node := Of, moves := Moves} <- atoll_dist:links(), Of =:= Node],
    Moves.

%% Kills the connection of its own, by its last lane.
cut(Node) ->
    {own, Lanes} = atoll_dist_circuits:via(Node),
    {Writer, _} = element(tuple_size(Lanes), Lanes),
    true = exit(Writer, kill),
    ok.

%% How many bytes each of its lanes has sent and received; with TLS nobody here knows.
lanes(Node) ->
    {own, Lanes} = atoll_dist_circuits:via(Node),
    [case Socket of none -> unknown; _ -> atoll_dist_socket:bytes([Socket]) end || {_, Socket} <- tuple_to_list(Lanes)].

%% How often this node has begun to connect, since it was asked first.
attempts() ->
    Function = {atoll_dist_own_link, connect, 3},
    case erlang:trace_info(Function, call_count) of
        {call_count, Count} when is_integer(Count) ->
            Count;
        {call_count, _} ->
            1 = erlang:trace_pattern(Function, true, [call_count]),
            0
    end.

%% Says that it is a circuit's own connection with Node.
claim(Node) ->
    {ok, Socket} = gen_tcp:listen(0, []),
    atoll_dist_circuits:linked(Node, self(), {own, {{self(), Socket}}}).

%% How many messages wait for a process.
waiting(Name) ->
    process_info(whereis(Name), message_queue_len).

%% The process that takes what comes for the one circuit that there is, or for others, does nothing
%% till it is let go.
hold(Who) ->
    Self = self(),
    Pid = pid(Who),
    Holder = spawn(fun() ->
        true = erlang:suspend_process(Pid),
        Self ! {self(), held},
        receive let_go -> ok end
    end),
    receive {Holder, held} -> Holder end.

let_go(Holder) ->
    Ref = monitor(process, Holder),
    Holder ! let_go,
    receive {'DOWN', Ref, process, Holder, _} -> ok after ?DEADLINE_MS -> error(no_end) end.

pid(hub) -> whereis(atoll_dist_hub);
pid('end') -> element(2, the_circuit()).

the_circuit() ->
    [{Id, End}] = [{Id, End} || {{lanes, <<Id:16/binary, "own">>}, {End, _}} <- ets:tab2list(atoll_dist_links)],
    {Id, End}.

%% How many messages wait for it.
waits_for(Who) ->
    {message_queue_len, N} = process_info(pid(Who), message_queue_len),
    N.

%% Has so many frames written that mean nothing, of the circuit with Node or of others'; how many
%% are not written when none has been for a while.
stuff(Node, Who, Count) ->
    {Own, _} = the_circuit(),
    Id = case Who of 'end' -> Own; hub -> crypto:strong_rand_bytes(16) end,
    Frame = atoll_dist_circuit_frame:data(kept, atoll_dist_circuit_frame:key(Id, 16#FFFFFFFF), 0, binary:copy(<<0>>, 60000)),
    {own, {{Writer, _}}} = atoll_dist_circuits:via(Node),
    _ = [Writer ! {write, Frame} || _ <- lists:seq(1, Count)],
    still(Node, Count, ?STILL_LOOKS).

still(Node, Before, Looks) ->
    receive after 10 -> ok end,
    case unwritten(Node) of
        0 -> 0;
        Before when Looks =:= 0 -> Before;
        Before -> still(Node, Before, Looks - 1);
        Fewer -> still(Node, Fewer, ?STILL_LOOKS)
    end.

%% Nothing waits for a connection that has ended.
unwritten(Node) ->
    case atoll_dist_circuits:via(Node) of
        {own, {{Writer, _}}} ->
            case process_info(Writer, message_queue_len) of
                {message_queue_len, N} -> N;
                undefined -> 0
            end;
        _ ->
            0
    end.

%% What somebody might offer who is not the other end: of a circuit that there is not, by
%% another's name, and without the cookie.
offers(Node) ->
    [Id | _] = [Id || {{lanes, <<Id:16/binary, "own">>}, _} <- ets:tab2list(atoll_dist_links)],
    Name = atom_to_binary(Node),
    [{crypto:strong_rand_bytes(16), Name}, {Id, <<"somebody@127.0.0.1">>}, {Id, Name}].

%% Offers that to Node, with a proof that proves nothing.
offer(Node, Offers) ->
    [offer_one(knocking(Node, Offer)) || Offer <- Offers].

offer_one(Socket) ->
    case gen_tcp:recv(Socket, 0, ?DEADLINE_MS) of
        {error, closed} ->
            refused;
        {ok, Frame} ->
            %% It proves nothing before we do.
            {ok, {own_challenge, _}} = atoll_dist_hello:read(Frame),
            ok = gen_tcp:send(Socket, atoll_dist_hello:make({own_proof, crypto:strong_rand_bytes(32)})),
            case gen_tcp:recv(Socket, 0, ?DEADLINE_MS) of
                {error, closed} -> refused;
                Other -> Other
            end
    end.

%% The same without any proof, and stays connected.
knock(Node, Offer) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn(fun() ->
        Socket = knocking(Node, Offer),
        {ok, _Challenge} = gen_tcp:recv(Socket, 0, ?DEADLINE_MS),
        Self ! {Ref, challenged},
        {error, closed} = gen_tcp:recv(Socket, 0)
    end),
    receive {Ref, challenged} -> ok after ?DEADLINE_MS -> error(no_challenge) end.

knocking(Node, {Id, As}) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    {ok, Ip} = inet:parse_address(Host),
    {port, Port, _} = erl_epmd:port_please(Name, Ip),
    {ok, Socket} = gen_tcp:connect(Ip, Port, [binary, {packet, 2}, {active, false}]),
    Nonce = crypto:strong_rand_bytes(16),
    ok = gen_tcp:send(Socket, atoll_dist_hello:make({own, #{id => Id, name => As, wish => {lanes, 4}, rtt_us => 0, nonce => Nonce}})),
    Socket.
