%% SPDX-License-Identifier: Apache-2.0
%% @doc A way to a host through another one that is connected: a channel of that connection to the host, and a socket of this
%% machine that leads into it.
%%
%% OTP has the same as `ssh:tcpip_tunnel_to_server/6', but there the process that opens a channel is not the one that reads it:
%% what comes in between is lost, and the first line of an ssh server comes at once and unasked. Then both sides wait. Here the
%% process that opens the channel reads it, so all that comes is heard.
%%
%% The socket is connected with before anybody else can, and nothing listens any more when open/3 returns. All ends with the
%% connection, with the channel, or with whoever has the socket.
-module(atoll_deploy_ssh_jump).

-export([open/3]).

%% A module that may not be there, so that nothing asks for it before it is needed.
-define(CHANNEL, (list_to_atom("ssh_connection"))).
-define(LOOPBACK, {127, 0, 0, 1}).

%% @doc A passive socket of the calling process, whose bytes go to a port of a host and come from there. OTP's client takes one that gives
%% lists, and no other.
-spec open(Connection :: pid(), {Host :: string(), inet:port_number()}, Ms :: pos_integer()) -> {ok, gen_tcp:socket()} | {error, term()}.
open(Connection, To, Ms) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> opened(Self, Connection, To, Ms) end),
    receive
        {Pid, Port} ->
            true = demonitor(Ref, [flush]),
            Connected = gen_tcp:connect(?LOOPBACK, Port, [list, {active, false}, {nodelay, true}], Ms),
            _ = [Pid ! {connected, inet:sockname(Socket)} || {ok, Socket} <- [Connected]],
            Connected;
        {'DOWN', Ref, process, Pid, Reason} ->
            {error, Reason}
    end.

%% It ends with why nothing came of it.
opened(For, Connection, To, Ms) ->
    Ref = monitor(process, Connection),
    Owner = monitor(process, For),
    case (?CHANNEL):open_channel(Connection, "direct-tcpip", target(To), Ms) of
        {ok, Channel} ->
            {ok, Listen} = gen_tcp:listen(0, [binary, {ip, ?LOOPBACK}, {active, false}, {nodelay, true}]),
            {ok, Port} = inet:port(Listen),
            For ! {self(), Port},
            receive
                {connected, {ok, Peer}} ->
                    true = demonitor(Owner, [flush]),
                    Socket = accepted(Listen, Peer),
                    ok = gen_tcp:close(Listen),
                    _ = spawn_link(fun() -> up(Socket, Connection, Channel) end),
                    down(Socket, Connection, Channel, Ref);
                {'DOWN', _, process, _, _} -> ok
            end;
        {open_error, _, Said, _} -> exit(refused(Said));
        {error, Reason} -> exit(Reason)
    end.

%% RFC 4254, 7.2: where to, and where from.
target({Host, Port}) ->
    Text = unicode:characters_to_binary(Host),
    <<(byte_size(Text)):32, Text/binary, Port:32, 9:32, "127.0.0.1", 0:32>>.

refused(Said) ->
    Text = unicode:characters_to_list(Said),
    case {string:find(Text, "refused"), string:find(Text, "resolve")} of
        {nomatch, nomatch} -> Text;
        {nomatch, _} -> nxdomain;
        {_, _} -> econnrefused
    end.

%% Another user's program may have been faster.
accepted(Listen, Peer) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    case inet:peername(Socket) of
        {ok, Peer} -> Socket;
        _ -> ok = gen_tcp:close(Socket), accepted(Listen, Peer)
    end.

%% Each way has a process of its own: one that cannot go on does not hold up the other.
up(Socket, Connection, Channel) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Bytes} ->
            case (?CHANNEL):send(Connection, Channel, Bytes, infinity) of
                ok -> up(Socket, Connection, Channel);
                {error, _} -> exit(closed)
            end;
        {error, _} -> exit(closed)
    end.

down(Socket, Connection, Channel, Ref) ->
    receive
        {ssh_cm, Connection, {data, Channel, _, Bytes}} ->
            case gen_tcp:send(Socket, Bytes) of
                ok ->
                    ok = (?CHANNEL):adjust_window(Connection, Channel, byte_size(Bytes)),
                    down(Socket, Connection, Channel, Ref);
                {error, _} -> ok
            end;
        {ssh_cm, Connection, {eof, Channel}} -> ok;
        {ssh_cm, Connection, {closed, Channel}} -> ok;
        {'DOWN', Ref, process, Connection, _} -> ok
    end.
