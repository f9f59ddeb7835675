%% SPDX-License-Identifier: Apache-2.0
%% A peer made by hand: it speaks to a node of the carrier over a plain socket, as far as
%% it likes and as wrong as it likes.
-module(atoll_dist_handmade).

-export([address/1, open/1, offer/2, greet/2, greet/3, greet/4, lane/4, shake/3, answer/3, send/2, recv/1, recv/2, flags/1, is_closed/1]).
-export([accepting/2, between/2, strangers/4]).

-define(MS, 10000).

%% Where a node listens.
address(#{node := Node, peer := Peer}) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    {ok, Ip} = inet:parse_address(Host),
    {port, Port, _} = peer:call(Peer, erl_epmd, port_please, [Name, Ip], ?MS),
    {Ip, Port}.

open({Ip, Port}) ->
    {ok, Socket} = gen_tcp:connect(Ip, Port, [binary, {packet, 2}, {active, false}]),
    Socket.

offer(Name, Wish) ->
    atoll_dist_hello:make(
        {offer, #{name => Name, wish => Wish, rtt_us => 50, ticktime_ms => 60000, id => crypto:strong_rand_bytes(16), channels => none}}
    ).

%% The carrier's first exchange.
greet(Socket, Name) ->
    ok = send(Socket, offer(Name, {auto, 5000, 16})),
    {ok, Frame} = recv(Socket),
    atoll_dist_hello:read(Frame).

%% The same, asking for lanes: what both have said of the connection.
greet(Socket, Name, Kind) ->
    greet(Socket, Name, Kind, crypto:strong_rand_bytes(16)).

greet(Socket, Name, Kind, Id) ->
    Offer = #{name => Name, wish => Kind, rtt_us => 50, ticktime_ms => 60000, id => Id, channels => none},
    ok = send(Socket, atoll_dist_hello:make({offer, Offer})),
    {ok, Frame} = recv(Socket),
    {ok, {answer, #{kind := Kind, nonce := Nonce}}} = atoll_dist_hello:read(Frame),
    [Id, Nonce].

%% The frame of a further lane with that proof, and the answer that it must get.
lane([Id, _] = Said, Index, Key, Nonce) ->
    Mac = atoll_dist_hello:proof(Key, connector, Index, Said ++ [Nonce]),
    {
        atoll_dist_hello:make({lane, #{id => Id, index => Index, nonce => Nonce, mac => Mac}}),
        atoll_dist_hello:make({lane_answer, atoll_dist_hello:proof(Key, acceptor, Index, Said ++ [Nonce])})
    }.

%% Erlang's handshake, as who connects: gives the flags of the node. After it frames are
%% of four bytes.
shake(Socket, Name, #{flags := Flags, cookie := Cookie}) ->
    ok = send(Socket, <<$N, Flags:64, 17:32, (byte_size(Name)):16, Name/binary>>),
    case recv(Socket) of
        {ok, <<"sok", _/binary>>} ->
            {ok, <<$N, Theirs:64, Challenge:32, _Creation:32, _/binary>>} = recv(Socket),
            ok = send(Socket, <<$r, 42:32, (digest(Challenge, Cookie))/binary>>),
            case recv(Socket) of
                {ok, <<$a, Digest/binary>>} ->
                    Digest = digest(42, Cookie),
                    ok = inet:setopts(Socket, [{packet, 4}]),
                    {ok, Theirs};
                Other ->
                    Other
            end;
        Other ->
            Other
    end.

%% The same as who is connected with, unless it begins with something else.
answer(Socket, Name, #{flags := Flags, cookie := Cookie}) ->
    case recv(Socket) of
        {ok, <<$N, _Theirs:64, _/binary>>} ->
            ok = send(Socket, <<"sok">>),
            ok = send(Socket, <<$N, Flags:64, 42:32, 17:32, (byte_size(Name)):16, Name/binary>>),
            {ok, <<$r, Challenge:32, Digest:16/binary>>} = recv(Socket),
            Digest = digest(42, Cookie),
            ok = send(Socket, <<$a, (digest(Challenge, Cookie))/binary>>),
            ok = inet:setopts(Socket, [{packet, 4}]),
            {ok, Socket};
        {ok, _} ->
            unknown
    end.

digest(Challenge, Cookie) ->
    erlang:md5([Cookie, integer_to_list(Challenge)]).

%% Those that a node must have, those that this one would have.
flags(mandatory) -> element(3, erts_internal:get_dflags());
flags(all) -> element(2, erts_internal:get_dflags()).

send(Socket, Data) -> gen_tcp:send(Socket, Data).

recv(Socket) -> recv(Socket, ?MS).

recv(Socket, Ms) -> gen_tcp:recv(Socket, 0, Ms).

%% Whether the node closes, having said whatever it says.
is_closed(Socket) ->
    case recv(Socket) of
        {ok, _} -> is_closed(Socket);
        {error, timeout} -> false;
        {error, _} -> true
    end.

%% A process that listens, and does with each connection what it is told.
accepting(Ip, Do) ->
    Self = self(),
    Pid = spawn_link(fun() ->
        {ok, Listening} = gen_tcp:listen(0, [binary, {packet, 2}, {active, false}, {ip, Ip}]),
        {ok, Port} = inet:port(Listening),
        Self ! {self(), Port},
        accept(Listening, Do)
    end),
    receive
        {Pid, Port} -> {Pid, Port}
    end.

accept(Listening, Do) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    _ = Do(Socket),
    accept(Listening, Do).

%% A process that stands between who connects and a node: it passes frames on, or answers
%% them itself.
between({Ip, Port}, Decide) ->
    accepting(Ip, fun(Socket) ->
        Pid = spawn(fun() ->
            receive
                yours -> ok
            end,
            {ok, Frame} = recv(Socket),
            case Decide(Frame) of
                pass ->
                    {ok, There} = gen_tcp:connect(Ip, Port, [binary, {packet, 2}, {active, false}]),
                    ok = send(There, Frame),
                    [ok = inet:setopts(S, [{packet, raw}, {active, true}]) || S <- [Socket, There]],
                    pass(Socket, There);
                {answer, Answer} ->
                    ok = send(Socket, Answer),
                    _ = is_closed(Socket)
            end
        end),
        ok = gen_tcp:controlling_process(Socket, Pid),
        Pid ! yours
    end).

pass(One, Other) ->
    receive
        {tcp, One, Data} ->
            _ = send(Other, Data),
            pass(One, Other);
        {tcp, Other, Data} ->
            _ = send(One, Data),
            pass(One, Other);
        {tcp_closed, _} ->
            ok
    end.

%% Has that program (strangers.c) connect so many times a second for so long, as strangers and as who
%% begins like a node: how many were let in, of how many.
strangers(Program, {Ip, Port}, Rate, Ms) ->
    Offer = offer(<<"stranger@127.0.0.1">>, direct),
    Words = binary:encode_hex(<<(byte_size(Offer)):16, Offer/binary>>),
    Args = [inet:ntoa(Ip), integer_to_list(Port), integer_to_list(Rate), integer_to_list(Ms), Words],
    Running = open_port({spawn_executable, Program}, [{args, Args}, {line, 256}, stderr_to_stdout]),
    receive
        {Running, {data, {eol, Said}}} ->
            {ok, [Came, All], []} = io_lib:fread("came ~d of ~d", Said),
            {Came, All}
    end.
