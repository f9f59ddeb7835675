%% SPDX-License-Identifier: Apache-2.0
%% @doc The carrier: Erlang's distribution over connections of Atoll's, under programs
%% that know nothing of it.
%%
%% `erl -proto_dist atoll' selects it, and nothing else changes. It runs inside kernel,
%% before the application `atoll' and without it; its configuration is that of {@link
%% atoll_dist_config}. What is set for Erlang's own distribution (ports, interfaces,
%% socket options, cookies, the tick, the module that finds nodes) is honoured.
%%
%% A connection is of the kind `direct', where the VM's own driver carries the signals as
%% in Erlang's own distribution, or has lanes, several sockets under one channel ({@link
%% atoll_dist_channel}). Both ends agree on the kind when they connect, and
%% `net_kernel:node_info/1' shows it as the protocol of the peer's address; `links/0'
%% shows all of them. Peers on Erlang's own distribution are refused, unless the
%% configuration lets them in; such a connection is shown as `stock'.
%%
%% This module is the kernel's callback for it, over IPv4; `atoll6_dist' is that
%% over IPv6.
-module(atoll_dist).

-include_lib("kernel/include/net_address.hrl").

-export([links/0, carried/1, received/1, lanes/1, refused/0, prefer/1, fault/2]).
-export([router/1, own/2, disown/0, watch_links/0, relay_policy/1, relay/0]).
-export([childspecs/0, listen/1, listen/2, accept/1, accept_connection/5, setup/5, close/1, select/1]).
-export([address/0, address/1, is_node_name/1, setopts/2, getopts/2]).

%% @doc The connections that are up, sorted by node: for each its kind, its round trip in
%% microseconds, which end connected, for how long it has been up, and how many bytes it has
%% carried. Empty on a node without the carrier.
-spec links() -> [atoll_dist_keeper:link()].
links() ->
    [with_channels(Link) || Link <- atoll_dist_keeper:links()].

%% Only its process knows what each has carried.
with_channels(#{channel := Channel} = Known) ->
    Link = maps:remove(channel, Known),
    case atoll_dist_input:figures(Channel) of
        {ok, #{channels := Channels}} when map_size(Channels) > 0 -> Link#{channels => Channels};
        _ -> Link
    end;
with_channels(Link) ->
    Link.

%% @doc How many packets of the VM a connection that goes over other nodes has carried, each
%% way, by its distribution controller. What keeps it alive is not among them; it is in
%% what `net_kernel:node_info/1' counts.
-spec carried(Controller :: pid()) -> {ok, {In :: non_neg_integer(), Out :: non_neg_integer()}} | unknown.
carried(Controller) ->
    atoll_dist_circuits:carried(Controller).

%% @doc How many bytes have come from a node in all lanes of the connection with it;
%% unknown of one that has none of its own.
-spec received(node()) -> {ok, non_neg_integer()} | unknown.
received(Node) ->
    atoll_dist_keeper:received(Node).

%% @doc The figures of a connection with lanes: of each lane what it has carried and what
%% waits, how often the budget was spent, how many fences there were and how many packets
%% were behind them, and how many bytes that have arrived are held back.
-spec lanes(node()) -> {ok, map()} | {error, not_connected | no_lanes}.
lanes(Node) ->
    case atoll_dist_keeper:channel(Node) of
        {ok, none} -> {error, no_lanes};
        {ok, Channel} -> atoll_dist_input:figures(Channel);
        not_connected -> {error, not_connected}
    end.

%% @doc How often it has refused, closed or given up something, by what it says of it in the
%% log: `carrier_silent_stranger', `carrier_crowded' and so on. In the log it says the same
%% of a peer once.
-spec refused() -> #{atom() => pos_integer()}.
refused() ->
    atoll_dist_keeper:refused().

%% @doc For the rooms above: which kinds are wanted of which peers, where the
%% configuration does not say otherwise. Replaces what was preferred before. Connections
%% that are up stay as they are.
-spec prefer(#{node() => atoll_dist_kind:asked()}) -> ok.
prefer(Kinds) ->
    atoll_dist_keeper:prefer(Kinds).

%% @doc Injects a fault into the connection with a node, where `{faults, true}' is
%% configured; there a connection that would be direct has one lane.
%% Of what this node relays for others it is injected with `relay' for the node.
-spec fault(node() | relay, atoll_dist_fault:fault() | atoll_dist_hub:fault()) ->
    ok | {error, faults_off | bad_fault | not_connected | no_lanes}.
fault(relay, Fault) ->
    atoll_dist_hub:fault(Fault);
fault(Node, Fault) ->
    case atoll_dist_keeper:channel(Node) of
        {ok, none} -> {error, no_lanes};
        {ok, Channel} -> atoll_dist_input:fault(Channel, Fault);
        not_connected -> {error, not_connected}
    end.

%% @doc For the rooms above: the name of the process that knows ways to nodes; `none'
%% knows none, and then every connection is one of its own. It is asked with {@link
%% atoll_interpreter:call/2} for `{route, To, #{avoid => [node()], salt => term()}}', and
%% answers `{ok, Path}', all nodes with this one first, or `{error, {unknown | no_route |
%% refused, Sentence}}'.
-spec router(atom()) -> ok.
router(Name) ->
    atoll_dist_router:set(Name).

%% @doc For the rooms above: whether a connection of its own is wanted with a node,
%% whatever other way there is. It is when the next one is made. If they are connected over
%% other nodes, it is made now and the living connection goes over it; with `false' it
%% goes over others again, where there is a way (`atoll_dist_own').
-spec own(node(), boolean()) -> ok.
own(Node, Wants) ->
    atoll_dist_hub:own(Node, Wants).

%% @doc For the rooms above: none is wanted with any node.
-spec disown() -> ok.
disown() ->
    atoll_dist_hub:disown().

%% @doc From now on the caller gets `{atoll_dist, linked | unlinked, Node}' for each
%% connection of its own kind, which can carry for others, also after distribution was
%% stopped and started again; those that there are.
-spec watch_links() -> [node()].
watch_links() ->
    atoll_dist_hub:watch_links().

%% @doc For whom this node relays; at first for nobody. A list is asked for again, with
%% `{atoll_dist, relay_policy}' to the process that knows ways, when distribution was
%% started anew.
-spec relay_policy(atoll_dist_relay:policy()) -> ok.
relay_policy(Policy) ->
    atoll_dist_hub:policy(Policy).

%% @doc What this node relays: circuits, how many messages wait for the process that does
%% it (`queue'), bytes held and the budget for them, what was
%% forwarded, and what was refused, lost and dropped, by reason. Empty without the carrier.
-spec relay() -> map().
relay() ->
    atoll_dist_hub:figures().

%% @doc What the kernel supervises for the carrier.
-spec childspecs() -> {ok, [supervisor:child_spec()]}.
childspecs() ->
    {ok, atoll_dist_tls:childspecs() ++ [atoll_dist_keeper:child_spec(), atoll_dist_member:child_spec(), atoll_dist_hub:child_spec()]}.

%% @doc As `listen/2', at this host.
-spec listen(atom() | string()) -> {ok, {gen_tcp:socket(), #net_address{}, integer()}} | {error, term()}.
listen(Name) ->
    {ok, Host} = inet:gethostname(),
    listen(Name, Host).

%% @doc Listens for nodes, and registers this one.
-spec listen(atom() | string(), string()) -> {ok, {gen_tcp:socket(), #net_address{}, integer()}} | {error, term()}.
listen(Name, Host) ->
    atoll_dist_listener:listen(inet_tcp, Name, Host).

%% @doc Starts the process that accepts connections.
-spec accept(gen_tcp:socket()) -> pid().
accept(Listening) ->
    atoll_dist_listener:accept(inet_tcp, Listening).

%% @doc Starts the process of a connection that was accepted.
-spec accept_connection(
    pid(), atoll_dist_handshake:place(), node(), Allowed :: list(), SetupTime :: pos_integer()
) -> pid().
accept_connection(Doorkeeper, Place, MyNode, Allowed, SetupTime) ->
    atoll_dist_handshake:accept(inet_tcp, Doorkeeper, Place, MyNode, Allowed, SetupTime).

%% @doc Starts the process of a connection to a node.
-spec setup(node(), normal | hidden, node(), longnames | shortnames, SetupTime :: pos_integer()) -> pid().
setup(Node, Type, MyNode, Domain, SetupTime) ->
    atoll_dist_handshake:setup(inet_tcp, Node, Type, MyNode, Domain, SetupTime).

%% @doc Ends listening.
-spec close(gen_tcp:socket()) -> ok.
close(Listening) ->
    inet_tcp:close(Listening).

%% @doc Whether the carrier can connect with such a node.
-spec select(node()) -> boolean().
select(Node) ->
    atoll_dist_address:is_known(inet, Node).

%% @doc The kind of addresses, for a node that does not listen.
-spec address() -> #net_address{}.
address() ->
    {ok, Host} = inet:gethostname(),
    address(Host).

%% @doc As `address/0', of a host.
-spec address(string()) -> #net_address{}.
address(Host) ->
    #net_address{host = Host, protocol = atoll, family = inet}.

%% @doc Whether that is a name of a node.
-spec is_node_name(term()) -> boolean().
is_node_name(Node) ->
    is_atom(Node) andalso dist_util:is_node_name(atom_to_list(Node)).

%% @doc Sets options of the listening socket, for `net_kernel:setopts/2' of new ones.
-spec setopts(inet:socket(), [term()]) -> ok | {error, term()}.
setopts(Socket, Options) ->
    atoll_dist_socket:setopts(Socket, Options).

%% @doc The options of a socket.
-spec getopts(inet:socket(), [term()]) -> {ok, [term()]} | {error, term()}.
getopts(Socket, Options) ->
    atoll_dist_socket:getopts(Socket, Options).
