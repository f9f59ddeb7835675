%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A circuit's own connection: a TCP connection between its two ends, made while the
%% circuit goes over other nodes. Both ends prove with the cookie that they are who they
%% say, over fresh nonces; then it is a link for the hub ({@link atoll_dist_hub}), over
%% which frames of that circuit and of others' go.
%%
%% The end that connects says which circuit it is for and its name (`own'), and gets a
%% number (`own_challenge'). It proves itself (`own_proof'), then the other one does
%% (`own_answer'). Before that proof nothing is done for who knocks: the circuit's end does
%% not hear of it, and no proof is given. After that each frame has
%% four bytes before it with its length. An empty one is a sign of life, one of one byte
%% says whether the connection is wanted; any other is a circuit's.
%%
%% Two processes are one connection: one reads and watches, and stands for the link; one
%% writes, and waits where the socket takes nothing. Frames of the circuit itself go to its
%% end, those of others to the hub. Both end with the circuit's end, with
%% the hub, and with each other.
%%
%% Promised: nobody who cannot prove to have the cookie gets a frame in, and nobody one that
%% is longer than a circuit's may be: the connection ends. One that is silent
%% for a `net_ticktime' ends. What is handed to the writer it does not bound: who hands
%% does.
-module(atoll_dist_own_link).

-export([connect/3, knock/2, key/1, tell/2, close/1]).
-export([connecting/3, accepted/3, loop/1, writing/1]).

%% For which it is: its id, and its end here.
-type circuit() :: {atoll_dist_circuit_frame:id(), pid()}.

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
        {ok, Socket} -> prove(Node, Id, End, Socket, Ms);
        {error, Reason} -> failed(Node, atoll_dist_address:format_error(Reason))
    end.

prove(Node, Id, End, Socket, Ms) ->
    Here = atom_to_binary(node()),
    Nonce = crypto:strong_rand_bytes(16),
    %% What is wrong with sending shows in receiving.
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own, #{id => Id, name => Here, nonce => Nonce}})),
    case heard(Socket, Ms) of
        {own_challenge, Theirs} ->
            Said = [Id, Here, atom_to_binary(Node), Nonce, Theirs],
            Cookie = atom_to_binary(erlang:get_cookie(Node)),
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_proof, atoll_dist_hello:own_proof(Cookie, connector, Said)})),
            answered(heard(Socket, Ms), atoll_dist_hello:own_proof(Cookie, acceptor, Said), Node, {Id, End}, Socket);
        _ ->
            failed(Node, "it closes on the offer of one, so it may not know what that is")
    end.

answered({own_answer, Mac}, Proof, Node, Circuit, Socket) ->
    case crypto:hash_equals(Mac, Proof) of
        true ->
            _ = atoll_dist_transport:carry(Socket, atoll_dist_circuit_frame:max_frame()),
            up(Node, Circuit, self(), Socket);
        false ->
            failed(Node, "it does not prove to have the cookie")
    end;
%% It connects itself, or is not ready.
answered({refusal, _}, _Proof, _Node, _Circuit, _Socket) ->
    exit({shutdown, refused});
answered(_, _Proof, Node, _Circuit, _Socket) ->
    failed(Node, "it takes no proof of the cookie").

-spec failed(node(), unicode:chardata()) -> no_return().
failed(Node, Why) ->
    Said = ["No connection of its own with ", atom_to_list(Node), ": ", Why, ". They stay connected over other nodes."],
    ok = atoll_dist_keeper:say_once(carrier_no_own, atom_to_binary(Node), Said),
    exit({shutdown, failed}).

heard(Socket, Ms) ->
    case atoll_dist_transport:recv(Socket, 0, Ms) of
        {ok, Frame} ->
            case atoll_dist_hello:read(list_to_binary(Frame)) of
                {ok, Hello} -> Hello;
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% The end that accepts

%% @doc Somebody has connected, and says that it is the other end of a circuit. Called by
%% the socket's owner, who waits until it is over.
-spec knock(atoll_dist_hello:own(), atoll_dist_transport:socket()) -> ok | refused.
knock(#{id := Id, name := Name, nonce := Nonce}, Socket) ->
    case atoll_dist_keeper:awaiting(key(Id)) of
        {ok, End} ->
            Own = crypto:strong_rand_bytes(16),
            Said = [Id, Name, atom_to_binary(node()), Nonce, Own],
            Cookie = atoll_dist_hello:cookie(Name),
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_challenge, Own})),
            case heard(Socket, net_kernel:connecttime()) of
                {own_proof, Mac} ->
                    case crypto:hash_equals(Mac, atoll_dist_hello:own_proof(Cookie, connector, Said)) of
                        true -> proven(let_in(End, Name), atoll_dist_hello:own_proof(Cookie, acceptor, Said), {Id, End}, Socket);
                        false -> refused
                    end;
                {error, closed} ->
                    %% Its own attempt was given up for ours.
                    ok;
                _ ->
                    refused
            end;
        unknown ->
            refused
    end.

proven({come_in, Node}, Proof, Circuit, Socket) ->
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_answer, Proof})),
    hand_over(Node, Circuit, Socket);
proven(busy, _Proof, _Circuit, Socket) ->
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({refusal, busy})),
    ok;
proven(refused, _Proof, _Circuit, _Socket) ->
    refused.

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

hand_over(Node, Circuit, Socket) ->
    {Link, Ref} = atoll_dist_process:start(?MODULE, accepted, [Node, Circuit, self()], [monitor]),
    _ = atoll_dist_transport:controlling_process(Socket, Link),
    Link ! {self(), Socket},
    receive
        {Link, up} -> true = demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Link, _} -> true
    end,
    ok.

%% @private
-spec accepted(node(), circuit(), pid()) -> no_return().
accepted(Node, {_, End} = Circuit, Doorkeeper) ->
    Ref = monitor(process, Doorkeeper),
    receive
        {Doorkeeper, Socket} ->
            true = demonitor(Ref, [flush]),
            _ = monitor(process, End),
            _ = atoll_dist_transport:carry(Socket, atoll_dist_circuit_frame:max_frame()),
            up(Node, Circuit, Doorkeeper, Socket);
        {'DOWN', Ref, process, Doorkeeper, _} ->
            exit({shutdown, failed})
    end.

%% Both ends

-record(link, {
    node :: node(),
    id :: atoll_dist_circuit_frame:id(),
    ending :: pid(),
    socket :: atoll_dist_transport:tag(),
    writer :: pid(),
    %% How often it looks whether anything was heard, and how often nothing was.
    tick_ms :: pos_integer(),
    missed = 0 :: non_neg_integer()
}).

%% After how many looks in vain it is taken for dead.
-define(MAX_MISSED, 4).

-define(IS_DATA(Tag), (Tag =:= tcp orelse Tag =:= ssl)).

%% Attempt: by whom the end knows what became of it.
-spec up(node(), circuit(), pid(), atoll_dist_transport:socket()) -> no_return().
up(Node, {Id, End}, Attempt, Socket) ->
    {ok, Config} = atoll_dist_keeper:config(),
    _ = atoll_dist_socket:tune(Socket, Config, #{kind => direct}),
    Writer = atoll_dist_process:start(?MODULE, writing, [Socket], [link]),
    _ = monitor(process, atoll_dist_hub),
    %% Before anything can come.
    ok = linked(Node, {own, Writer, case atoll_dist_transport:is_plain(Socket) of true -> Socket; false -> none end}),
    End ! {own_up, Attempt, self()},
    _ = [Attempt ! {self(), up} || Attempt =/= self()],
    Ms = max(1, tick_ms()),
    _ = erlang:start_timer(Ms, self(), tick),
    ok = atoll_dist_transport:active(Socket, true),
    loop(#link{node = Node, id = Id, ending = End, socket = atoll_dist_transport:tag(Socket), writer = Writer, tick_ms = Ms}).

linked(Node, Via) ->
    case atoll_dist_circuits:linked(Node, self(), Via) of
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
loop(#link{node = Node, id = Id, ending = End, socket = Socket, writer = Writer, tick_ms = Ms, missed = Missed} = Link) ->
    receive
        {Tcp, Socket, <<>>} when ?IS_DATA(Tcp) ->
            ?MODULE:loop(Link#link{missed = 0});
        {Tcp, Socket, Wanted} when ?IS_DATA(Tcp), byte_size(Wanted) =:= 1 ->
            End ! {own_theirs, self(), Wanted =:= ?WANTED},
            ?MODULE:loop(Link#link{missed = 0});
        {Tcp, Socket, <<_:16, Id:16/binary, _/binary>> = Frame} when ?IS_DATA(Tcp) ->
            End ! {circuit, Node, Frame},
            ?MODULE:loop(Link#link{missed = 0});
        {Tcp, Socket, Frame} when ?IS_DATA(Tcp) ->
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
-spec writing(atoll_dist_transport:socket()) -> no_return().
writing(Socket) ->
    receive
        {frames, From, Node, Frames} ->
            Bytes = lists:foldl(
                fun(Frame, Sum) ->
                    ok = or_end(atoll_dist_transport:send(Socket, Frame)),
                    Sum + byte_size(Frame)
                end,
                0,
                Frames
            ),
            From ! {written, self(), Node, Bytes};
        {write, Data} ->
            ok = or_end(atoll_dist_transport:send(Socket, Data))
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, writing, [Socket])
    end,
    ?MODULE:writing(Socket).
