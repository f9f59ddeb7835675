%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the carrier does with a connection, whether that is a plain socket or one
%% with TLS around it ({@link atoll_dist_tls}): frames are sent and received, one at a time
%% or as messages, and another process gets it.
%%
%% A frame has its length before it: with TLS four bytes from the first one on, as in OTP's
%% own distribution over TLS; without, two until `carry/2', which sets four.
%%
%% Promised: a process that has asked for messages hears when the connection ends, whichever
%% of both it is.
-module(atoll_dist_transport).

-export([send/2, recv/3, controlling_process/2, close/1, carry/2, active/2, nodelay/0, inet/1, tag/1, is_plain/1]).

-export_type([socket/0, tag/0]).

%% With TLS what ssl knows it by, and the plain one below.
-type socket() :: gen_tcp:socket() | {tls, ssl:sslsocket(), gen_tcp:socket()}.

%% What stands in its messages: `{tcp | ssl, tag(), Frame}', and those that say that it has
%% been closed, has failed or is passive, each with `ssl' in place of `tcp' too.
-opaque tag() :: gen_tcp:socket() | ssl:sslsocket().

%% @doc Sends a frame; waits where the socket is full.
-spec send(socket(), iodata()) -> ok | {error, term()}.
send({tls, Ssl, _}, Frame) -> ssl:send(Ssl, Frame);
send(Socket, Frame) -> inet_tcp:send(Socket, Frame).

%% @doc Receives a frame before the connection is up, or so many bytes, as a list, which is
%% what `dist_util' wants.
-spec recv(socket(), non_neg_integer(), timeout()) -> {ok, [byte()]} | {error, term()}.
recv({tls, Ssl, _}, Length, Ms) ->
    case ssl:recv(Ssl, Length, Ms) of
        {ok, Frame} when is_binary(Frame) -> {ok, binary_to_list(Frame)};
        {error, _} = Error -> Error
    end;
recv(Socket, Length, Ms) ->
    inet_tcp:recv(Socket, Length, Ms).

%% @doc Gives it to another process; called by the one that has it.
-spec controlling_process(socket(), pid()) -> ok | {error, term()}.
controlling_process({tls, Ssl, _}, Pid) -> ssl:controlling_process(Ssl, Pid);
controlling_process(Socket, Pid) -> inet:tcp_controlling_process(Socket, Pid).

%% @doc Closes it.
-spec close(socket()) -> ok.
close({tls, Ssl, _}) ->
    _ = ssl:close(Ssl),
    ok;
close(Socket) ->
    inet_tcp:close(Socket).

%% @doc From now on it carries binary frames of at most so many bytes, each with four bytes
%% of length before it.
-spec carry(socket(), Max :: non_neg_integer()) -> ok | {error, term()}.
carry({tls, Ssl, Socket}, Max) ->
    case ssl:setopts(Ssl, [{packet_size, Max}]) of
        ok -> inet:setopts(Socket, [nodelay()]);
        {error, _} = Error -> Error
    end;
carry(Socket, Max) ->
    inet:setopts(Socket, [{packet_size, Max}, {packet, 4}, binary, nodelay()]).

%% @doc Whether small packets go out at once, which is so unless `dist_nodelay' says no.
-spec nodelay() -> {nodelay, boolean()}.
nodelay() ->
    {nodelay, application:get_env(kernel, dist_nodelay, true) =/= false}.

%% @doc Whether frames come as messages: so many, all, or none.
-spec active(socket(), boolean() | 1..32767) -> ok.
active({tls, Ssl, _}, Active) ->
    case ssl:setopts(Ssl, [{active, Active}]) of
        ok ->
            ok;
        {error, _} ->
            %% A passive one that has ended has told nobody.
            self() ! {ssl_closed, Ssl},
            ok
    end;
active(Socket, Active) ->
    %% If that fails, the socket has ended and says so.
    _ = inet:setopts(Socket, [{active, Active}]),
    ok.

%% @doc The plain socket, for its options and counters.
-spec inet(socket()) -> gen_tcp:socket().
inet({tls, _, Socket}) -> Socket;
inet(Socket) -> Socket.

%% @doc What its messages are known by.
-spec tag(socket()) -> tag().
tag({tls, Ssl, _}) -> Ssl;
tag(Socket) -> Socket.

%% @doc Whether it is one that takes what it is sent without another process.
-spec is_plain(socket()) -> boolean().
is_plain({tls, _, _}) -> false;
is_plain(_) -> true.
