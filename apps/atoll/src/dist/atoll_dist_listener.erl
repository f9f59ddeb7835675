%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Where peers knock: the listening socket, the process that accepts, and for each
%% new connection a doorkeeper that reads its first frame and sends it the right way.
%%
%% Promised: at most so many connections are on their way to be up at a time, whatever
%% comes, and besides as many lanes as nodes with the right cookie are about to bring; when
%% there are more, one is closed, by {@link atoll_dist_pending} a stranger's as long as it
%% can be told from a node's. Each step has kernel's `net_setuptime' to be made. What a
%% stranger does wrong is said in the log once for each peer, and counted ({@link
%% atoll_dist_keeper:refused/0}).
-module(atoll_dist_listener).

-export([listen/3, accept/2]).
-export([start/3, loop/4, doorkeeper/4]).

-export_type([first/0]).

-include_lib("kernel/include/net_address.hrl").

-type first() :: {offer, atoll_dist_hello:offer()} | {stock, Name :: binary(), Frame :: string()}.
%% How a connection began.

%% Of those that are silent and of those that have said something. Few enough for a process
%% that may have 1,024 files open. An honest peer takes its steps in milliseconds.
-define(MAX_PENDING, 128).

%% How long it waits for a connection before it looks at who is gone.
-define(LOOK_MS, 1000).

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
    case atoll_dist_process:start(?MODULE, start, [Driver, self(), Socket], [link]) of
        Pid when is_pid(Pid) -> Pid
    end.

%% @private
-spec start(atoll_dist_socket:driver(), Kernel :: pid(), gen_tcp:socket()) -> no_return().
start(Driver, Kernel, Socket) ->
    loop(Driver, Kernel, Socket, atoll_dist_pending:new(?MAX_PENDING)).

%% @private
-spec loop(atoll_dist_socket:driver(), Kernel :: pid(), gen_tcp:socket(), atoll_dist_pending:pending()) -> no_return().
loop(Driver, Kernel, Socket, Pending0) ->
    Accepted = Driver:accept(Socket, ?LOOK_MS),
    Pending = heard(Pending0),
    case Accepted of
        {ok, New} ->
            ?MODULE:loop(Driver, Kernel, Socket, bounded(let_in(Driver, Kernel, New, Pending)));
        {error, Reason} when Reason =:= emfile; Reason =:= enfile ->
            Why = "The carrier can accept no connection, since this node has no file left to open.",
            ok = atoll_dist_keeper:say_once(carrier_out_of_files, <<>>, Why),
            receive after ?NO_FILES_MS -> ok end,
            ?MODULE:loop(Driver, Kernel, Socket, Pending);
        {error, Reason} when Reason =:= timeout; Reason =:= econnaborted ->
            ?MODULE:loop(Driver, Kernel, Socket, Pending);
        {error, Reason} ->
            atoll_dist_process:over(Reason)
    end.

let_in(Driver, Kernel, New, Pending) ->
    Address =
        case inet:peername(New) of
            {ok, {Ip, _}} -> Ip;
            %% It may be gone already.
            {error, _} -> unknown
        end,
    %% As this process, so that it hears what was said before others are let in.
    {Doorkeeper, _} = spawn_opt(?MODULE, doorkeeper, [self(), Driver, Kernel, New], [monitor, {priority, high}]),
    _ = Driver:controlling_process(New, Doorkeeper),
    Doorkeeper ! {self(), yours, Address},
    atoll_dist_pending:add(Doorkeeper, Address, Pending).

heard(Pending) ->
    receive
        {said, Doorkeeper} -> heard(bounded(atoll_dist_pending:said(Doorkeeper, Pending)));
        {'DOWN', _, process, Doorkeeper, _} -> heard(atoll_dist_pending:gone(Doorkeeper, Pending))
    after 0 -> Pending
    end.

bounded(Pending0) ->
    case atoll_dist_pending:crowded(fun atoll_dist_keeper:expected/0, Pending0) of
        {close, Doorkeeper, Pending} ->
            Why = "Many connections are on their way to be up; one is closed whenever another comes.",
            ok = atoll_dist_keeper:say_once(carrier_crowded, <<>>, Why),
            %% Its connection goes with it, and so does the process of the handshake.
            true = exit(Doorkeeper, kill),
            Pending;
        no ->
            Pending0
    end.

%% @private
-spec doorkeeper(Listener :: pid(), atoll_dist_socket:driver(), Kernel :: pid(), gen_tcp:socket()) -> ok.
doorkeeper(Listener, Driver, Kernel, Socket) ->
    Ref = monitor(process, Listener),
    From =
        receive
            {Listener, yours, Address} -> from(Address);
            {'DOWN', Ref, process, Listener, _} -> exit(normal)
        end,
    true = demonitor(Ref, [flush]),
    true = link(Kernel),
    case atoll_dist_socket:is_near(Driver, Socket) of
        true ->
            secured(atoll_dist_tls:accepted(Socket, net_kernel:connecttime()), Listener, Driver, Kernel, From);
        false ->
            say_of_stranger(carrier_stranger, From, "it is in no network of this node, and check_ip is set")
    end.

secured({ok, Socket}, Listener, Driver, Kernel, From) ->
    ok = atoll_dist_keeper:forget(carrier_no_tls, From),
    First = atoll_dist_transport:recv(Socket, 0, net_kernel:connecttime()),
    Read = read(First),
    _ = [Listener ! {said, self()} || element(1, Read) =/= error],
    opened(Read, Driver, Kernel, Socket, From);
secured({error, {tls, Why}}, _Listener, _Driver, _Kernel, From) ->
    say_of_stranger(carrier_no_tls, From, ["there is no TLS with it, since ", atoll_dist_tls:why(Why)]).

from(unknown) -> <<"somewhere">>;
from(Ip) -> list_to_binary(inet:ntoa(Ip)).

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
