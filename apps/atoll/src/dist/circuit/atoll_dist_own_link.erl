%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A circuit's own connection, made between its two ends while the circuit goes over
%% other nodes. Both ends prove with the cookie that they are who they say, over fresh
%% nonces; then it is a link for the hub ({@link atoll_dist_hub}), over which frames of that
%% circuit and of others' go.
%%
%% The end that connects says which circuit it is for, its name, and which kind of connection
%% it wishes (`own'), and gets the kind that both agree on and a number (`own_challenge'). It
%% proves itself (`own_proof'), then the other one does (`own_answer'). Before that proof
%% nothing is done for who knocks: the circuit's end does not hear of it, and no proof is
%% given. Where the kind has several lanes the further ones join as those of any connection
%% ({@link atoll_dist_join}), under the number of the end that connects. After that each
%% frame has four bytes before it with its length. An empty one is a sign of life, one of one
%% byte says whether the connection is wanted; any other is a circuit's.
%%
%% One process reads all lanes and watches ({@link atoll_dist_tick}), and stands for the link;
%% one for each lane writes, and waits where the socket takes nothing. Frames of the circuit
%% itself go to its end, those of others to the hub. All end with the circuit's end, with
%% the hub, and with each other.
%%
%% Promised: nobody who cannot prove to have the cookie gets a frame in, and nobody one that
%% is longer than a circuit's may be: the connection ends. So it does when a lane ends, or is
%% silent for a `net_ticktime' and a quarter. Of each lane so many frames are read ahead and
%% no more: the circuit's end and the hub say how far they have got ({@link read_on/2}). What is handed to the writers it does not bound:
%% who hands does.
-module(atoll_dist_own_link).

-export([connect/3, knock/2, key/1, tell/2, read_on/2, close/1]).
-export([connecting/3, accepted/4, loop/1, writing/1]).

%% For which it is: its id, and its end here.
-type circuit() :: {atoll_dist_circuit_frame:id(), pid()}.

%% What both ends have said.
-type met() :: #{
    %% The circuit's id, and the names of the end that connects and of the other one.
    about := [binary()],
    %% What each has drawn.
    nonces := [<<_:128>>],
    lanes := atoll_dist_lanes:count(),
    cookie := binary()
}.

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

%% @doc Who got frames of that lane is through with those that it got before it was asked.
-spec read_on(pid(), atoll_dist_transport:tag()) -> ok.
read_on(Link, Lane) ->
    Link ! {read_on, Lane},
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
    BeganUs = atoll_dist_socket:now_us(),
    case atoll_dist_address:connect(Node, Ms) of
        {ok, Socket} ->
            RttUs = atoll_dist_socket:rtt_us(Socket, atoll_dist_socket:now_us() - BeganUs),
            prove(Node, {Id, End}, RttUs, Socket, Ms);
        {error, Reason} ->
            failed(Node, atoll_dist_address:format_error(Reason))
    end.

prove(Node, {Id, _} = Circuit, RttUs, Socket, Ms) ->
    [Here, There] = About = [atom_to_binary(Name) || Name <- [node(), Node]],
    Nonce = crypto:strong_rand_bytes(16),
    Own = #{id => Id, name => Here, wish => wish(There), rtt_us => RttUs, nonce => Nonce},
    %% What is wrong with sending shows in receiving.
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own, Own})),
    case heard(Socket, Ms) of
        {own_challenge, #{kind := Kind, nonce := Theirs}} ->
            Cookie = atom_to_binary(erlang:get_cookie(Node)),
            Met = #{about => [Id | About], nonces => [Nonce, Theirs], lanes => lanes(Kind), cookie => Cookie},
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_proof, proof(connector, Met)})),
            answered(heard(Socket, Ms), Met, Node, Circuit, Socket);
        _ ->
            failed(Node, "it closes on the offer of one, so it may not know what that is")
    end.

wish(Peer) ->
    {ok, Config} = atoll_dist_keeper:config(),
    atoll_dist_kind:wish(Peer, Config, atoll_dist_keeper:preferred()).

lanes(direct) -> 1;
lanes({lanes, Lanes}) -> Lanes.

proof(Side, #{about := About, nonces := Nonces, lanes := Lanes, cookie := Cookie}) ->
    atoll_dist_hello:own_proof(Cookie, Side, About ++ Nonces ++ [<<Lanes>>]).

answered({own_answer, Mac}, Met, Node, Circuit, Socket) ->
    case crypto:hash_equals(Mac, proof(acceptor, Met)) of
        true -> joined(inet:peername(atoll_dist_transport:inet(Socket)), Met, Node, Circuit, Socket);
        false -> failed(Node, "it does not prove to have the cookie")
    end;
%% It connects itself, or is not ready.
answered({refusal, _}, _Met, _Node, _Circuit, _Socket) ->
    exit({shutdown, refused});
answered(_, _Met, Node, _Circuit, _Socket) ->
    failed(Node, "it takes no proof of the cookie").

joined({ok, At}, Met, Node, Circuit, Socket) ->
    up(Node, Circuit, self(), [Socket | further(At, Met, Node)]);
%% It is closed again.
joined({error, Reason}, _Met, _Node, _Circuit, _Socket) ->
    exit({shutdown, Reason}).

%% All lanes but the first; the calling process ends if they do not come.
further(_At, #{lanes := 1}, _Node) ->
    [];
further(At, #{lanes := Lanes, cookie := Cookie, nonces := Nonces}, Node) ->
    Needs = #{
        lanes => Lanes, key => Cookie, said => Nonces, driver => atoll_dist_address:driver(), at => At,
        peer => atom_to_binary(Node)
    },
    atoll_dist_join:lanes(Needs, net_kernel:connecttime()).

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
knock(#{id := Id, name := Name, wish := Wish, rtt_us := RttUs, nonce := Nonce}, Socket) ->
    case atoll_dist_keeper:awaiting(key(Id)) of
        {ok, End} ->
            Kind = atoll_dist_kind:agree(wish(Name), Wish, atoll_dist_socket:rtt_us(Socket, RttUs)),
            Own = crypto:strong_rand_bytes(16),
            Met = #{
                about => [Id, Name, atom_to_binary(node())], nonces => [Nonce, Own], lanes => lanes(Kind),
                cookie => atoll_dist_hello:cookie(Name)
            },
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_challenge, #{kind => Kind, nonce => Own}})),
            case heard(Socket, net_kernel:connecttime()) of
                {own_proof, Mac} ->
                    case crypto:hash_equals(Mac, proof(connector, Met)) of
                        true -> proven(let_in(End, Name), Met, {Id, End}, Socket);
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

proven({come_in, Node}, Met, Circuit, Socket) ->
    hand_over(Node, Met, Circuit, Socket);
proven(busy, _Met, _Circuit, Socket) ->
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({refusal, busy})),
    ok;
proven(refused, _Met, _Circuit, _Socket) ->
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

hand_over(Node, Met, Circuit, Socket) ->
    {Link, Ref} = atoll_dist_process:start(?MODULE, accepted, [Node, Met, Circuit, self()], [monitor]),
    _ = atoll_dist_transport:controlling_process(Socket, Link),
    Link ! {self(), Socket},
    receive
        {Link, up} -> true = demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Link, _} -> true
    end,
    ok.

%% @private
-spec accepted(node(), met(), circuit(), pid()) -> no_return().
accepted(Node, #{nonces := [Id, _], lanes := Lanes} = Met, {_, End} = Circuit, Doorkeeper) ->
    Ref = monitor(process, Doorkeeper),
    receive
        {Doorkeeper, Socket} ->
            true = demonitor(Ref, [flush]),
            _ = monitor(process, End),
            ok = or_end(awaits(Id, Lanes)),
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({own_answer, proof(acceptor, Met)})),
            Further = further(none, Met, Node),
            _ = [ok = atoll_dist_keeper:joined(Id) || Lanes > 1],
            up(Node, Circuit, Doorkeeper, [Socket | Further]);
        {'DOWN', Ref, process, Doorkeeper, _} ->
            exit({shutdown, failed})
    end.

%% They may knock as soon as the other end has the answer.
awaits(_Id, 1) ->
    ok;
awaits(Id, Lanes) ->
    case atoll_dist_keeper:awaits(Id, self()) of
        ok -> atoll_dist_keeper:expects(Id, Lanes - 1);
        taken -> {error, taken}
    end.

%% Both ends

-record(lane, {
    socket :: atoll_dist_transport:socket(),
    %% How many frames more come before somebody has to say that they were taken.
    left :: non_neg_integer(),
    %% How many the end has got since it was asked last, and how many the hub.
    to_end = 0 :: non_neg_integer(),
    to_hub = 0 :: non_neg_integer()
}).

-record(link, {
    node :: node(),
    id :: atoll_dist_circuit_frame:id(),
    ending :: pid(),
    lanes :: #{atoll_dist_transport:tag() => #lane{}},
    %% In the order of the writers.
    tags :: [atoll_dist_transport:tag(), ...],
    writers :: tuple(),
    tick :: atoll_dist_tick:tick()
}).

%% So many frames of a lane are read ahead, and after so many of them who got them is asked.
%% Of two that get frames less than this each may have got before either is asked, so that one
%% is asked before the last.
-define(AHEAD, 16).
-define(ASK, 8).

-define(IS_DATA(Tag), (Tag =:= tcp orelse Tag =:= ssl)).

%% Attempt: by whom the end knows what became of it.
-spec up(node(), circuit(), pid(), [atoll_dist_transport:socket(), ...]) -> no_return().
up(Node, {Id, End}, Attempt, Sockets) ->
    {ok, Config} = atoll_dist_keeper:config(),
    Kind = case Sockets of [_] -> direct; _ -> {lanes, length(Sockets)} end,
    Lanes = [
        begin
            _ = atoll_dist_transport:carry(Socket, atoll_dist_circuit_frame:max_frame()),
            _ = atoll_dist_socket:tune(Socket, Config, #{kind => Kind}),
            Writer = atoll_dist_process:start(?MODULE, writing, [Socket], [link]),
            {Writer, case atoll_dist_transport:is_plain(Socket) of true -> Socket; false -> none end}
        end
     || Socket <- Sockets
    ],
    _ = monitor(process, atoll_dist_hub),
    %% Before anything can come.
    ok = linked(Node, {own, list_to_tuple(Lanes)}),
    End ! {own_up, Attempt, self()},
    _ = [Attempt ! {self(), up} || Attempt =/= self()],
    Ms = ticktime_ms(),
    Tick = atoll_dist_tick:new(length(Sockets), Ms, Ms, now_ms()),
    Tags = [atoll_dist_transport:tag(Socket) || Socket <- Sockets],
    Read = [read_more(?AHEAD, #lane{socket = Socket, left = 0}) || Socket <- Sockets],
    ok = later(Tick),
    loop(#link{
        node = Node, id = Id, ending = End, tags = Tags, writers = list_to_tuple([Writer || {Writer, _} <- Lanes]),
        lanes = maps:from_list(lists:zip(Tags, Read)), tick = Tick
    }).

%% So many more than what is left.
read_more(N, #lane{socket = Socket, left = Left} = Lane) ->
    ok = atoll_dist_transport:active(Socket, N),
    Lane#lane{left = Left + N}.

linked(Node, Via) ->
    case atoll_dist_circuits:linked(Node, self(), Via) of
        ok -> ok;
        taken -> exit({shutdown, taken})
    end.

ticktime_ms() ->
    case net_kernel:get_net_ticktime() of
        %% The node's distribution ends.
        ignored -> exit({shutdown, closed});
        Ticktime -> max(1, atoll_dist_tick:ms(Ticktime))
    end.

now_ms() -> erlang:monotonic_time(millisecond).

later(Tick) ->
    _ = erlang:send_after(atoll_dist_tick:period(Tick), self(), look_at_lanes),
    ok.

or_end(ok) -> ok;
or_end({error, Reason}) -> exit({shutdown, Reason}).

%% @private
-spec loop(#link{}) -> no_return().
loop(#link{lanes = Lanes} = Link) ->
    receive
        {Tcp, Socket, Frame} when ?IS_DATA(Tcp), is_map_key(Socket, Lanes) ->
            #{Socket := #lane{left = Left} = Lane} = Lanes,
            ?MODULE:loop(Link#link{lanes = Lanes#{Socket := arrived(Frame, Socket, Lane#lane{left = Left - 1}, Link)}});
        {read_on, Socket} when is_map_key(Socket, Lanes) ->
            #{Socket := Lane} = Lanes,
            ?MODULE:loop(Link#link{lanes = Lanes#{Socket := read_more(?ASK, Lane)}});
        %% It is read on when what was read has been taken.
        {Passive, _Socket} when Passive =:= tcp_passive; Passive =:= ssl_passive ->
            ?MODULE:loop(Link);
        {tell, Wanted} ->
            write(1, case Wanted of true -> ?WANTED; false -> ?NOT_WANTED end, Link),
            ?MODULE:loop(Link);
        look_at_lanes ->
            ?MODULE:loop(look(Link));
        {knock, Doorkeeper, _} ->
            %% It found the connection while lanes were still awaited.
            Doorkeeper ! {self(), refused},
            ?MODULE:loop(Link);
        %% A socket's end, the circuit's, or the hub's.
        _ ->
            exit({shutdown, closed})
    after atoll_dist_process:quiet_ms() ->
        proc_lib:hibernate(?MODULE, loop, [Link])
    end.

%% What is for this process counts for nobody else.
arrived(<<>>, _Socket, Lane, _Link) ->
    read_more(1, Lane);
arrived(Wanted, _Socket, Lane, #link{ending = End}) when byte_size(Wanted) =:= 1 ->
    End ! {own_theirs, self(), Wanted =:= ?WANTED},
    read_more(1, Lane);
arrived(<<_:16, Id:16/binary, _/binary>> = Frame, Socket, #lane{to_end = Count} = Lane, #link{node = Node, id = Id, ending = End}) ->
    End ! {circuit, Node, Frame},
    Lane#lane{to_end = asked(Count + 1, End, Socket)};
arrived(Frame, Socket, #lane{to_hub = Count} = Lane, #link{node = Node}) ->
    atoll_dist_hub ! {circuit, Node, Frame},
    Lane#lane{to_hub = asked(Count + 1, atoll_dist_hub, Socket)}.

asked(?ASK, Whom, Socket) ->
    Whom ! {got_so_far, self(), Socket},
    0;
asked(Count, _Whom, _Socket) ->
    Count.

look(#link{tags = Tags, lanes = Lanes, tick = Tick0} = Link) ->
    case atoll_dist_tick:check(now_ms(), [sample(map_get(Tag, Lanes)) || Tag <- Tags], Tick0) of
        {ok, Ticks, Tick} ->
            lists:foreach(fun(Lane) -> write(Lane + 1, <<>>, Link) end, Ticks),
            ok = later(Tick),
            Link#link{tick = Tick};
        {dead, _, _} ->
            exit({shutdown, silent})
    end.

sample(#lane{socket = Socket, left = Left}) ->
    case atoll_dist_socket:counters(Socket) of
        {ok, Read, Written, Waiting} -> {Read, Written, Waiting, Left =:= 0};
        %% It has ended, and says so.
        {error, _} -> {0, 0, 0, true}
    end.

write(Lane, Data, #link{writers = Writers}) ->
    element(Lane, Writers) ! {write, Data},
    ok.

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
