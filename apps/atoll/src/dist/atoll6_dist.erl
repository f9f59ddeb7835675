%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The carrier over IPv6: `erl -proto_dist atoll6'. All else is as in {@link
%% atoll_dist}.
-module(atoll6_dist).

-include_lib("kernel/include/net_address.hrl").

-export([childspecs/0, listen/1, listen/2, accept/1, accept_connection/5, setup/5, close/1, select/1]).
-export([address/0, address/1, is_node_name/1, setopts/2, getopts/2]).

%% @doc What the kernel supervises; nothing more where the carrier runs over IPv4 too.
-spec childspecs() -> {ok, [supervisor:child_spec()]}.
childspecs() ->
    case init:get_argument(proto_dist) of
        {ok, [Protocols | _]} ->
            {ok, [Spec || {ok, Specs} <- [atoll_dist:childspecs()], Spec <- Specs, not lists:member("atoll", Protocols)]};
        error ->
            {ok, []}
    end.

%% @doc As `listen/2', at this host.
-spec listen(atom() | string()) -> {ok, {gen_tcp:socket(), #net_address{}, integer()}} | {error, term()}.
listen(Name) ->
    {ok, Host} = inet:gethostname(),
    listen(Name, Host).

%% @doc Listens for nodes, and registers this one.
-spec listen(atom() | string(), string()) -> {ok, {gen_tcp:socket(), #net_address{}, integer()}} | {error, term()}.
listen(Name, Host) ->
    atoll_dist_listener:listen(inet6_tcp, Name, Host).

%% @doc Starts the process that accepts connections.
-spec accept(gen_tcp:socket()) -> pid().
accept(Listening) ->
    atoll_dist_listener:accept(inet6_tcp, Listening).

%% @doc Starts the process of a connection that was accepted.
-spec accept_connection(
    pid(), atoll_dist_handshake:place(), node(), Allowed :: list(), SetupTime :: pos_integer()
) -> pid().
accept_connection(Doorkeeper, Place, MyNode, Allowed, SetupTime) ->
    atoll_dist_handshake:accept(inet6_tcp, Doorkeeper, Place, MyNode, Allowed, SetupTime).

%% @doc Starts the process of a connection to a node.
-spec setup(node(), normal | hidden, node(), longnames | shortnames, SetupTime :: pos_integer()) -> pid().
setup(Node, Type, MyNode, Domain, SetupTime) ->
    atoll_dist_handshake:setup(inet6_tcp, Node, Type, MyNode, Domain, SetupTime).

%% @doc Ends listening.
-spec close(gen_tcp:socket()) -> ok.
close(Listening) ->
    inet6_tcp:close(Listening).

%% @doc Whether the carrier can connect with such a node.
-spec select(node()) -> boolean().
select(Node) ->
    atoll_dist_address:is_known(inet6, Node).

%% @doc The kind of addresses, for a node that does not listen.
-spec address() -> #net_address{}.
address() ->
    {ok, Host} = inet:gethostname(),
    address(Host).

%% @doc As `address/0', of a host.
-spec address(string()) -> #net_address{}.
address(Host) ->
    #net_address{host = Host, protocol = atoll, family = inet6}.

%% @doc Whether that is a name of a node.
-spec is_node_name(term()) -> boolean().
is_node_name(Node) ->
    atoll_dist:is_node_name(Node).

%% @doc Sets options of the listening socket.
-spec setopts(inet:socket(), [term()]) -> ok | {error, term()}.
setopts(Socket, Options) ->
    atoll_dist_socket:setopts(Socket, Options).

%% @doc The options of a socket.
-spec getopts(inet:socket(), [term()]) -> {ok, [term()]} | {error, term()}.
getopts(Socket, Options) ->
    atoll_dist_socket:getopts(Socket, Options).
