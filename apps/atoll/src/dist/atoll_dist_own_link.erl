%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A circuit's own connection: a TCP connection between its two ends, made while the
%% circuit goes over other nodes. Both ends prove with the cookie that they are who they
%% say, over fresh nonces; then it is a link for the hub ({@link atoll_dist_hub}), over
%% which frames of that circuit and of others' go.
%%
%% The end that connects says which circuit it is for and its name (`own'), the other one
%% proves itself (`own_answer'), then the first (`own_proof'). After that each frame has
%% four bytes before it with its length. An empty one is a sign of life, one of one byte
%% says whether the connection is wanted; any other is a circuit's.
%%
%% Two processes are one connection: one reads and watches, and stands for the link; one
%% writes, and waits where the socket takes nothing. Both end with the circuit's end, with
%% the hub, and with each other.
%%
%% Promised: nobody who cannot prove to have the cookie gets a frame in, and nobody one that
%% is longer than a circuit's may be: the connection ends. One that is silent
%% for a `net_ticktime' ends. What is handed to the writer it does not bound: who hands
%% does.
-module(atoll_dist_own_link).

-export([connect/3, knock/3, key/1, tell/2, close/1]).
-export([connecting/3, accepted/4, loop/1, writing/2]).

-define(WANTED, <<1>>).
-define(NOT_WANTED, <<0>>).

%% @doc Begins to connect with the other end of the calling end's circuit. The process is
%% told by the monitor on it if that fails; else it gets `{own_up, Pid, Link}'.
-spec connect(node(), atoll_dist_circuit_frame:id(), End :: pid()) -> {pid(), reference()}.
connect(Node, Id, End) ->
    case atoll_dist_process:start(?MODULE, connecting, [Node, Id, End], [monitor]) of
        {Pid, Ref} when is_pid(Pid) -> {Pid, Ref}
    end.

%% @doc By what the keeper knows that this circuit may get one.
-spec key(atoll_dist_circuit_frame:id()) -> binary().
key(Id) -> <<Id/binary, "own">>.

%% @doc Tells the other end whether it is wanted at this one.
-spec tell(pid(), boolean()) -> ok.
tell(Link, Wanted) ->
    Link ! {tell, Wanted},
    ok.

%% @doc Closes the connection.
-spec close(pid()) -> ok.
close(Link) ->
    true = exit(Link, shutdown),
    ok.

%% The end that connects

%% @private
-spec connecting(node(), atoll_dist_circuit_frame:id(), pid()) -> no_return().
connecting(Node, Id, End) ->
    _ = monitor(process, End),
    Ms = net_kernel:connecttime(),
    case atoll_dist_address:connect(Node, Ms) of
        {ok, Driver, Socket} -> prove(Node, Id, End, Driver, Socket, Ms);
        {error, unknown} -> failed(Node, "it is not known where it listens");
        {error, {bad_name, Why}} -> failed(Node, Why);
        {error, Reason} -> failed(Node, io_lib:format("it cannot be reached (~0p)", [Reason]))
    end.

prove(Node, Id, End, Driver, Socket, Ms) ->
    Here = atom_to_binary(node()),
    Nonce = crypto:strong_rand_bytes(16),
    %% What is wrong with sending shows in receiving.
    _ = Driver:send(Socket, atoll_dist_hello:make({own, #{id => Id, name => Here, nonce => Nonce}})),
    case heard(Driver, Socket, Ms) of
        {own_answer, #{nonce := Theirs, mac := Mac}} ->
            Said = [Id, Here, atom_to_binary(Node), Nonce, Theirs],
            case crypto:hash_equals(Mac, atoll_dist_hello:own_proof(cookie(Node), acceptor, Said)) of
                true ->
                    _ = Driver:send(Socket, atoll_dist_hello:make({own_proof, atoll_dist_hello:own_proof(cookie(Node), connector, Said)})),
                    welcomed(Node, End, Driver, Socket, Ms);
                false ->
                    failed(Node, "it does not prove to have the cookie")
            end;
        %% It connects itself, or is not ready.
        {refusal, _} ->
            exit({shutdown, refused});
        _ ->
            failed(Node, "it closes on the offer of one, so it may not know what that is")
    end.

%% The other end has taken the proof when it says anything.
welcomed(Node, End, Driver, Socket, Ms) ->
    _ = inet:setopts(Socket, framed()),
    case Driver:recv(Socket, 0, Ms) of
        {ok, First} ->
            self() ! {tcp, Socket, First},
            up(Node, End, self(), Driver, Socket);
        {error, _} ->
            failed(Node, "it takes no proof of the cookie")
    end.

-spec failed(node(), unicode:chardata()) -> no_return().
failed(Node, Why) ->
    Said = ["No connection of its own with ", atom_to_list(Node), ": ", Why, ". They stay connected over other nodes."],
    ok = atoll_dist_keeper:say_once(carrier_no_own, atom_to_binary(Node), Said),
    exit({shutdown, failed}).

heard(Driver, Socket, Ms) ->
    case Driver:recv(Socket, 0, Ms) of
        {ok, Frame} ->
            case atoll_dist_hello:read(list_to_binary(Frame)) of
                {ok, Hello} -> Hello;
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

cookie(Node) -> atom_to_binary(erlang:get_cookie(Node)).

framed() -> [binary, {packet_size, atoll_dist_circuit_frame:max_frame()}, {packet, 4}, atoll_dist_socket:nodelay()].

%% The end that accepts

%% @doc Somebody has connected, and says that it is the other end of a circuit. Called by
%% the socket's owner, who waits until it is over.
-spec knock(atoll_dist_hello:own(), atoll_dist_socket:driver(), gen_tcp:socket()) -> ok | refused.
knock(#{id := Id, name := Name, nonce := Nonce}, Driver, Socket) ->
    case atoll_dist_keeper:awaiting(key(Id)) of
        {ok, End} ->
            case let_in(End, Name) of
                {come_in, Node} ->
                    Own = crypto:strong_rand_bytes(16),
                    Said = [Id, Name, atom_to_binary(node()), Nonce, Own],
                    Answer = #{nonce => Own, mac => atoll_dist_hello:own_proof(cookie(Node), acceptor, Said)},
                    _ = Driver:send(Socket, atoll_dist_hello:make({own_answer, Answer})),
                    proven(heard(Driver, Socket, net_kernel:connecttime()), Said, Node, End, Driver, Socket);
                busy ->
                    _ = Driver:send(Socket, atoll_dist_hello:make({refusal, busy})),
                    ok;
                refused ->
                    refused
            end;
        unknown ->
            refused
    end.

let_in(End, Name) ->
    Ref = monitor(process, End),
    End ! {own_knock, self(), Name},
    receive
        {End, Answer} ->
            true = demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, End, _} ->
            refused
    after net_kernel:connecttime() ->
        refused
    end.

proven({own_proof, Mac}, Said, Node, End, Driver, Socket) ->
    case crypto:hash_equals(Mac, atoll_dist_hello:own_proof(cookie(Node), connector, Said)) of
        true -> hand_over(Node, End, Driver, Socket);
        false -> refused
    end;
proven({error, closed}, _Said, _Node, _End, _Driver, _Socket) ->
    %% Its own attempt was given up for ours; or it does not like the proof, and says so there.
    ok;
proven(_, _Said, _Node, _End, _Driver, _Socket) ->
    refused.

hand_over(Node, End, Driver, Socket) ->
    {Link, Ref} = atoll_dist_process:start(?MODULE, accepted, [Node, End, self(), Driver], [monitor]),
    _ = Driver:controlling_process(Socket, Link),
    Link ! {self(), Socket},
    receive
        {Link, up} -> true = demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Link, _} -> true
    end,
    ok.

%% @private
-spec accepted(node(), pid(), pid(), atoll_dist_socket:driver()) -> no_return().
accepted(Node, End, Doorkeeper, Driver) ->
    Ref = monitor(process, Doorkeeper),
    receive
        {Doorkeeper, Socket} ->
            true = demonitor(Ref, [flush]),
            _ = monitor(process, End),
            _ = inet:setopts(Socket, framed()),
            up(Node, End, Doorkeeper, Driver, Socket);
        {'DOWN', Ref, process, Doorkeeper, _} ->
            exit({shutdown, failed})
    end.

%% Both ends

-record(link, {
    node :: node(),
    ending :: pid(),
    socket :: gen_tcp:socket(),
    writer :: pid(),
    %% How often it looks whether anything was heard, and how often nothing was.
    tick_ms :: pos_integer(),
    missed = 0 :: non_neg_integer()
}).

%% After how many looks in vain it is taken for dead.
-define(MAX_MISSED, 4).

%% Attempt: by whom the end knows what became of it.
-spec up(node(), pid(), pid(), atoll_dist_socket:driver(), gen_tcp:socket()) -> no_return().
up(Node, End, Attempt, Driver, Socket) ->
    {ok, Config} = atoll_dist_keeper:config(),
    _ = atoll_dist_socket:tune(Socket, Config, #{kind => direct}),
    Writer = atoll_dist_process:start(?MODULE, writing, [Driver, Socket], [link]),
    _ = monitor(process, atoll_dist_hub),
    %% Before anything can come.
    ok = linked(Node, Writer),
    End ! {own_up, Attempt, self()},
    _ = [Attempt ! {self(), up} || Attempt =/= self()],
    Ms = max(1, tick_ms()),
    _ = erlang:start_timer(Ms, self(), tick),
    ok = or_end(inet:setopts(Socket, [{active, true}])),
    loop(#link{node = Node, ending = End, socket = Socket, writer = Writer, tick_ms = Ms}).

linked(Node, Writer) ->
    case atoll_dist_circuits:linked(Node, self(), {own, Writer}) of
        ok -> ok;
        taken -> exit({shutdown, taken})
    end.

tick_ms() ->
    case net_kernel:get_net_ticktime() of
        {ongoing_change_to, Seconds} -> Seconds * 250;
        Seconds when is_integer(Seconds) -> Seconds * 250;
        ignored -> 15000
    end.

or_end(ok) -> ok;
or_end({error, Reason}) -> exit({shutdown, Reason}).

%% @private
-spec loop(#link{}) -> no_return().
loop(#link{node = Node, ending = End, socket = Socket, writer = Writer, tick_ms = Ms, missed = Missed} = Link) ->
    receive
        {tcp, Socket, <<>>} ->
            ?MODULE:loop(Link#link{missed = 0});
        {tcp, Socket, Wanted} when byte_size(Wanted) =:= 1 ->
            End ! {own_theirs, self(), Wanted =:= ?WANTED},
            ?MODULE:loop(Link#link{missed = 0});
        {tcp, Socket, Frame} ->
            atoll_dist_hub ! {circuit, Node, Frame},
            ?MODULE:loop(Link#link{missed = 0});
        {tell, true} ->
            Writer ! {write, ?WANTED},
            ?MODULE:loop(Link);
        {tell, false} ->
            Writer ! {write, ?NOT_WANTED},
            ?MODULE:loop(Link);
        {timeout, _, tick} when Missed >= ?MAX_MISSED ->
            exit({shutdown, silent});
        {timeout, _, tick} ->
            _ = erlang:start_timer(Ms, self(), tick),
            Writer ! {write, <<>>},
            ?MODULE:loop(Link#link{missed = Missed + 1});
        %% The socket's end, the circuit's, or the hub's.
        _ ->
            exit({shutdown, closed})
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, loop, [Link])
    end.

%% @private
-spec writing(atoll_dist_socket:driver(), gen_tcp:socket()) -> no_return().
writing(Driver, Socket) ->
    receive
        {frames, From, Node, Frames} ->
            Bytes = lists:foldl(
                fun(Frame, Sum) ->
                    ok = or_end(Driver:send(Socket, Frame)),
                    Sum + byte_size(Frame)
                end,
                0,
                Frames
            ),
            From ! {written, self(), Node, Bytes};
        {write, Data} ->
            ok = or_end(Driver:send(Socket, Data))
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, writing, [Driver, Socket])
    end,
    ?MODULE:writing(Driver, Socket).
