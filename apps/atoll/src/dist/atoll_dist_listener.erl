%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Where peers knock: the listening socket, the process that accepts, and for each
%% new connection a doorkeeper that reads its first frame and sends it the right way.
%%
%% Promised: at most so many connections are on their way to be up at a time, whatever
%% comes, and besides as many lanes as nodes with the right cookie are about to bring; when
%% there are more, the oldest is closed, so that who holds many open in silence keeps nobody
%% else out. Each step has kernel's `net_setuptime' to be made. What a stranger does wrong is
%% said in the log once for each peer.
-module(atoll_dist_listener).

-export([listen/3, accept/2]).
-export([loop/3, doorkeeper/4]).

-export_type([first/0]).

-include_lib("kernel/include/net_address.hrl").

-type first() :: {offer, atoll_dist_hello:offer()} | {stock, Name :: binary(), Frame :: string()}.
%% How a connection began.

%% Few enough for a process that may have 1,024 files open. An honest peer takes its
%% steps in milliseconds.
-define(MAX_PENDING, 256).

%% No file is left to open: until one is closed.
-define(NO_FILES_MS, 100).

%% @doc Listens, and tells the node's port to those that find nodes.
-spec listen(atoll_dist_socket:driver(), atom() | string(), string()) ->
    {ok, {gen_tcp:socket(), #net_address{}, Creation :: integer()}} | {error, term()}.
listen(Driver, Name, Host) ->
    case atoll_dist_keeper:config() of
        {ok, _} ->
            {First, Last} = atoll_dist_address:listen_port(Name, Host),
            register_at(listen(Driver, First, Last, atoll_dist_socket:listen_options()), Driver, Name, Host);
        {error, _} = Error ->
            Error
    end.

listen(_Driver, Port, Last, _Options) when Port > Last ->
    {error, eaddrinuse};
listen(Driver, Port, Last, Options) ->
    case Driver:listen(Port, Options) of
        {error, eaddrinuse} -> listen(Driver, Port + 1, Last, Options);
        Listening -> Listening
    end.

register_at({ok, Socket}, Driver, Name, Host) ->
    {ok, {_, Port} = Address} = inet:sockname(Socket),
    case (net_kernel:epmd_module()):register_node(Name, Port, Driver) of
        {ok, Creation} ->
            {ok, {Socket, #net_address{address = Address, host = Host, protocol = atoll, family = Driver:family()}, Creation}};
        Error ->
            ok = inet_tcp:close(Socket),
            Error
    end;
register_at({error, _} = Error, _Driver, _Name, _Host) ->
    Error.

%% @doc Starts to accept connections; called by the kernel's process for them.
-spec accept(atoll_dist_socket:driver(), gen_tcp:socket()) -> pid().
accept(Driver, Socket) ->
    spawn_link(?MODULE, loop, [Driver, self(), Socket]).

%% @private
-spec loop(atoll_dist_socket:driver(), Kernel :: pid(), gen_tcp:socket()) -> no_return().
loop(Driver, Kernel, Socket) ->
    _ = process_flag(priority, max),
    loop(Driver, Kernel, Socket, []).

%% Pending: the doorkeepers, the oldest last.
loop(Driver, Kernel, Socket, Pending0) ->
    Accepted = Driver:accept(Socket),
    Pending = bounded(without_gone(Pending0)),
    case Accepted of
        {ok, New} ->
            {Doorkeeper, _} = spawn_opt(?MODULE, doorkeeper, [self(), Driver, Kernel, New], [monitor]),
            %% A peer may be gone already.
            _ = Driver:controlling_process(New, Doorkeeper),
            Doorkeeper ! {self(), yours},
            loop(Driver, Kernel, Socket, [Doorkeeper | Pending]);
        {error, Reason} when Reason =:= emfile; Reason =:= enfile ->
            Why = "The carrier can accept no connection, since this node has no file left to open.",
            ok = atoll_dist_keeper:say_once(carrier_out_of_files, <<>>, Why),
            receive after ?NO_FILES_MS -> ok end,
            loop(Driver, Kernel, Socket, without_oldest(Pending));
        {error, econnaborted} ->
            loop(Driver, Kernel, Socket, Pending);
        {error, Reason} ->
            exit(Reason)
    end.

without_gone(Pending) ->
    receive
        {'DOWN', _, process, Doorkeeper, _} -> without_gone(lists:delete(Doorkeeper, Pending))
    after 0 -> Pending
    end.

bounded(Pending) when length(Pending) >= ?MAX_PENDING ->
    case length(Pending) >= ?MAX_PENDING + atoll_dist_keeper:expected() of
        true -> crowded(Pending);
        false -> Pending
    end;
bounded(Pending) ->
    Pending.

crowded(Pending) ->
    Why = "~b connections are on their way to be up; the oldest is closed to let a new one in.",
    ok = atoll_dist_keeper:say_once(carrier_crowded, <<>>, io_lib:format(Why, [length(Pending)])),
    without_oldest(Pending).

without_oldest([]) ->
    [];
without_oldest(Pending) ->
    %% Its connection goes with it, and so does the process of the handshake.
    exit(lists:last(Pending), kill),
    lists:droplast(Pending).

%% @private
-spec doorkeeper(Listener :: pid(), atoll_dist_socket:driver(), Kernel :: pid(), gen_tcp:socket()) -> ok.
doorkeeper(Listener, Driver, Kernel, Socket) ->
    Ref = monitor(process, Listener),
    receive
        {Listener, yours} -> true = demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Listener, _} -> exit(normal)
    end,
    true = link(Kernel),
    %% Which a socket that has failed does not tell any more.
    From = from(Socket),
    case atoll_dist_socket:is_near(Driver, Socket) of
        true ->
            secured(atoll_dist_tls:accepted(Socket, net_kernel:connecttime()), Driver, Kernel, From);
        false ->
            say_of_stranger(carrier_stranger, From, "it is in no network of this node, and check_ip is set")
    end.

secured({ok, Socket}, Driver, Kernel, From) ->
    ok = atoll_dist_keeper:forget(carrier_no_tls, From),
    First = atoll_dist_transport:recv(Socket, 0, net_kernel:connecttime()),
    opened(read(First), Driver, Kernel, Socket, From);
secured({error, {tls, Why}}, _Driver, _Kernel, From) ->
    say_of_stranger(carrier_no_tls, From, ["there is no TLS with it, since ", atoll_dist_tls:why(Why)]).

from(Socket) ->
    case inet:peername(Socket) of
        {ok, {Ip, _}} -> list_to_binary(inet:ntoa(Ip));
        {error, _} -> <<"somewhere">>
    end.

read({ok, Frame}) ->
    case atoll_dist_hello:read(list_to_binary(Frame)) of
        {ok, {stock, Name}} -> {stock, Name, Frame};
        {ok, Hello} -> Hello;
        {error, _} = Error -> Error
    end;
read({error, _} = Error) ->
    Error.

opened({offer, _} = First, Driver, Kernel, Socket, _From) ->
    hand_over(First, Driver, Kernel, Socket);
opened({stock, Name, _} = First, Driver, Kernel, Socket, _From) ->
    case atoll_dist_keeper:config() of
        {ok, #{stock := accept}} ->
            hand_over(First, Driver, Kernel, Socket);
        {ok, #{stock := refuse}} ->
            %% Which in Erlang's own handshake says that.
            _ = atoll_dist_transport:send(Socket, "snot_allowed"),
            Why = [
                "Refused node ", name(Name), ", which uses Erlang's own distribution. "
                "Start it with -proto_dist atoll, or this one with {stock,accept}."
            ],
            atoll_dist_keeper:say_once(carrier_stock_refused, Name, Why)
    end;
opened({lane, Lane}, _Driver, _Kernel, Socket, From) ->
    case atoll_dist_join:knock(Lane, Socket) of
        ok -> ok;
        refused -> say_of_stranger(carrier_lane_refused, From, "it offers a lane and does not prove that it belongs to a connection")
    end;
opened({own, Own}, _Driver, _Kernel, Socket, From) ->
    case atoll_dist_own_link:knock(Own, Socket) of
        ok -> ok;
        refused -> say_of_stranger(carrier_own_refused, From, "it offers a connection for a circuit and does not prove that it is of its other end")
    end;
opened({error, timeout}, _Driver, _Kernel, _Socket, From) ->
    say_of_stranger(carrier_silent_stranger, From, "it has said nothing in the time for it");
opened({error, closed}, _Driver, _Kernel, _Socket, _From) ->
    %% Those who watch whether a port is open do that all day.
    ok;
opened(_, _Driver, _Kernel, _Socket, From) ->
    say_of_stranger(carrier_garbage, From, "it says something else than a node does").

%% This process owns the socket, so the connection ends with it, unless it is handed over.
%% Then it stays until the connection is up: it stands for it among those on their way.
hand_over(First, Driver, Kernel, Socket) ->
    Kernel ! {accept, self(), {Socket, First}, Driver:family(), atoll},
    receive
        {Kernel, controller, Pid} ->
            Ref = monitor(process, Pid),
            _ = atoll_dist_transport:controlling_process(Socket, Pid),
            Pid ! {self(), controller},
            receive
                {up, Pid} -> ok;
                {'DOWN', Ref, process, Pid, _} -> ok
            end,
            true = unlink(Kernel),
            ok;
        {Kernel, unsupported_protocol} ->
            ok
    end.

say_of_stranger(What, From, Does) ->
    atoll_dist_keeper:say_once(What, From, ["Closed a connection from ", From, ": ", Does, "."]).

name(Name) when byte_size(Name) =< 255 -> Name;
name(Name) -> [binary:part(Name, 0, 255), "..."].
