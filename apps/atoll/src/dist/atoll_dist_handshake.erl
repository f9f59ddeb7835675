%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc How two nodes become connected: the carrier's first exchange (see {@link
%% atoll_dist_hello}), in which both agree on a kind, and then Erlang's own handshake.
%%
%% Each connection is one process, which `dist_util' keeps for as long as the connection
%% is up. It ends with the connection, and the connection with it.
%%
%% The kinds part in one place, `carry/3'. What comes before it and the handshake itself
%% are the same for all.
-module(atoll_dist_handshake).

-include_lib("kernel/include/dist_util.hrl").
-include_lib("kernel/include/net_address.hrl").

-export([accept/6, setup/6]).
-export([do_accept/7, do_setup/7]).

-export_type([link/0]).

-type link() :: #{
    kind := atoll_dist_kind:kind(),
    %% Whether the peer uses Erlang's own distribution.
    stock := boolean(),
    %% The round trip that both take it to be; with a stock peer, what this end measured.
    rtt_us := non_neg_integer(),
    %% Which end connected.
    started := here | there,
    driver := atoll_dist_socket:driver(),
    %% What the peer calls itself; nothing if it has no name yet. True once Erlang's
    %% handshake has ended, so in f_setopts_pre_nodeup and after.
    peer := binary(),
    %% Who stands for an accepted connection until it is up.
    doorkeeper := pid() | none,
    %% Where this end connected to.
    at := {inet:ip_address(), inet:port_number()} | none,
    %% The first exchange, as it was said; none with a stock peer.
    hello := {atoll_dist_hello:offer(), atoll_dist_hello:answer()} | none
}.

-type driver() :: atoll_dist_socket:driver().
%% What a peer connected by, and what it said first; or a circuit, and who opened it.
-type place() ::
    {atoll_dist_transport:socket(), atoll_dist_listener:first()}
    | {atoll_dist_circuits:circuit(), atoll_dist_circuit_frame:name()}.

-export_type([place/0]).

%% The key in the process dictionary under which a frame waits that was read before
%% `dist_util' asked for it.
-define(READ_BEFORE, atoll_dist_read_before).

%% What to do then.
-define(STOCK, "Then start it with -proto_dist atoll, or this one with {stock,accept}").

%% @doc Starts the handshake with a node that connected; called by kernel's process.
-spec accept(driver(), Doorkeeper :: pid(), place(), node(), Allowed :: list(), SetupTime :: pos_integer()) -> pid().
accept(Driver, Doorkeeper, Place, MyNode, Allowed, SetupTime) ->
    start(do_accept, [Driver, self(), Doorkeeper, Place, MyNode, Allowed, SetupTime]).

%% @doc Starts to connect with a node; called by kernel's process.
-spec setup(driver(), node(), normal | hidden, node(), longnames | shortnames, SetupTime :: pos_integer()) -> pid().
setup(Driver, Node, Type, MyNode, Domain, SetupTime) ->
    start(do_setup, [Driver, self(), Node, Type, MyNode, Domain, SetupTime]).

start(Function, Args) ->
    %% No monitor is among the options.
    case spawn_opt(?MODULE, Function, Args, dist_util:net_ticker_spawn_options()) of
        Pid when is_pid(Pid) -> Pid
    end.

%% The end that accepts

%% @private
-spec do_accept(driver(), pid(), pid(), place(), node(), list(), pos_integer()) -> no_return().
do_accept(_Driver, Kernel, End, {{circuit, End, _} = Circuit, Peer}, MyNode, Allowed, SetupTime) ->
    ok = linked_to(End),
    ok = atoll_dist_end:await_place(Circuit),
    Timer = dist_util:start_timer(SetupTime),
    ok = await_name(atoll_dist_end:recv(Circuit), Peer),
    HsData = #hs_data{
        kernel_pid = Kernel,
        this_node = MyNode,
        timer = Timer,
        allowed = Allowed,
        f_recv = fun(C, 0, infinity) -> recv(fun() -> atoll_dist_end:recv(C) end) end,
        f_address = fun(_Circuit, Node) -> atoll_dist_relayed:address(Node) end
    },
    dist_util:handshake_other_started(atoll_dist_relayed:carry(HsData, Circuit, there));
do_accept(Driver, Kernel, Doorkeeper, {Socket, First}, MyNode, Allowed, SetupTime) ->
    %% Until the connection is up either one ends with the other.
    true = link(Doorkeeper),
    receive
        {Doorkeeper, controller} -> ok
    end,
    Timer = dist_util:start_timer(SetupTime),
    {ok, Config} = atoll_dist_keeper:config(),
    Link = greeted(First, Driver, Socket, Config),
    dist_util:reset_timer(Timer),
    HsData = base(Socket, Link#{doorkeeper := Doorkeeper}),
    dist_util:handshake_other_started(
        carry(
            HsData#hs_data{
                kernel_pid = Kernel,
                this_node = MyNode,
                timer = Timer,
                allowed = Allowed,
                f_address = fun(S, Node) -> ok = linked(Node, Link), address_of(Driver, S, Node, Link) end
            },
            Link,
            Config
        )
    ).

%% Who opened it may have given it up since it knocked.
linked_to(End) ->
    try link(End) of
        true -> ok
    catch
        error:noproc -> ?shutdown(no_node)
    end.

greeted({stock, Name, Frame}, Driver, Socket, _Config) ->
    _ = put(?READ_BEFORE, Frame),
    stock_link(there, Driver, Name, atoll_dist_socket:rtt_us(Socket, 0));
greeted({offer, Offer}, Driver, Socket, Config) ->
    #{name := Peer, wish := Theirs, rtt_us := TheirRttUs, channels := TheirChannels} = Offer,
    #{channels := Channels} = Config,
    RttUs = atoll_dist_socket:rtt_us(Socket, TheirRttUs),
    Ours = wish(Peer, Config),
    Agreed = atoll_dist_named:agree(atoll_dist_named:offer(Channels), TheirChannels),
    Carried = carried(atoll_dist_kind:agree(Ours, Theirs, RttUs), Config),
    {Kind, Had} = atoll_dist_kind:with_channels(Carried, [Ours, Theirs], Agreed),
    ok = has_crypto(Kind, Peer),
    Answer = #{
        kind => Kind, rtt_us => RttUs, ticktime_ms => ticktime_ms(), nonce => nonce(Kind), channels => Had
    },
    ok = or_end(atoll_dist_transport:send(Socket, atoll_dist_hello:make({answer, Answer}))),
    ok = await_name(atoll_dist_transport:recv(Socket, 0, infinity), Peer),
    link(Kind, RttUs, there, Driver, Peer, {Offer, Answer}).

%% The kind was chosen by the name in the offer, so that must be the name.
await_name(Received, Peer) ->
    {ok, Frame} = or_end(Received),
    _ = put(?READ_BEFORE, Frame),
    case {Peer, atoll_dist_hello:read(list_to_binary(Frame))} of
        {<<>>, _} ->
            ok;
        {_, {ok, {stock, Name}}} ->
            case atoll_dist_hello:same_name(Peer, Name) of
                true -> ok;
                false -> ?shutdown(no_node)
            end;
        _ ->
            ?shutdown(no_node)
    end.

%% The end that connects

%% @private
-spec do_setup(driver(), pid(), node(), normal | hidden, node(), longnames | shortnames, pos_integer()) -> no_return().
do_setup(Driver, Kernel, Node, Type, MyNode, Domain, SetupTime) ->
    Timer = dist_util:start_timer(SetupTime),
    Config = config(Node),
    case atoll_dist_router:way(Node, Config) of
        link -> setup_link(Driver, Kernel, Node, Type, MyNode, Domain, Timer, Config);
        {circuit, Path} -> setup_circuit(Kernel, Node, Type, MyNode, Path, Timer, Config);
        {refused, Said} -> give_up(Node, Said)
    end.

setup_circuit(Kernel, Node, Type, MyNode, Path, Timer, Config) ->
    dist_util:reset_timer(Timer),
    Circuit = atoll_dist_relayed:open(Node, Path, Config),
    dist_util:reset_timer(Timer),
    HsData = #hs_data{
        kernel_pid = Kernel,
        other_node = Node,
        this_node = MyNode,
        timer = Timer,
        %% That of all nodes since Erlang 23.
        other_version = 6,
        request_type = Type,
        f_recv = fun(C, 0, infinity) -> atoll_dist_end:recv(C) end,
        f_address = fun(_Circuit, _Node) -> atoll_dist_relayed:address(Node) end
    },
    dist_util:handshake_we_started(atoll_dist_relayed:carry(HsData, Circuit, here)).

setup_link(Driver, Kernel, Node, Type, MyNode, Domain, Timer, Config) ->
    #{ip := Ip, port := Port, version := Version, host := Host} = Place = find(Driver, Node, Domain),
    {Socket, Link} = met(connect(Driver, Place, Node, Timer), Driver, Place, Node, Timer, Config),
    dist_util:reset_timer(Timer),
    HsData = base(Socket, Link),
    Address = #net_address{address = {Ip, Port}, host = Host, protocol = shown(Link), family = Driver:family()},
    dist_util:handshake_we_started(
        carry(
            HsData#hs_data{
                kernel_pid = Kernel,
                other_node = Node,
                this_node = MyNode,
                timer = Timer,
                other_version = Version,
                request_type = Type,
                f_address = fun(_Socket, _Node) -> ok = linked(Node, Link), Address end
            },
            Link,
            Config
        )
    ).

config(Node) ->
    case atoll_dist_keeper:config() of
        {ok, Config} ->
            Config;
        {error, Why} ->
            %% A node that does not listen comes as far as here.
            ok = atoll_dist_keeper:say_once(carrier_bad_configuration, <<>>, Why),
            ?shutdown(Node)
    end.

find(Driver, Node, Domain) ->
    case atoll_dist_address:find(Driver, Node, Domain) of
        {ok, Place} ->
            Place;
        {error, {bad_name, Why}} ->
            Said = io_lib:format("Cannot connect with ~ts: ~ts.", [Node, Why]),
            ok = atoll_dist_keeper:say_once(carrier_bad_name, atom_to_binary(Node), Said),
            ?shutdown(Node);
        {error, unknown} ->
            ?shutdown(Node)
    end.

connect(Driver, #{ip := Ip, port := Port}, Node, Timer) ->
    dist_util:reset_timer(Timer),
    Started = atoll_dist_socket:now_us(),
    case Driver:connect(Ip, Port, atoll_dist_socket:connect_options()) of
        {ok, Plain} ->
            RttUs = atoll_dist_socket:now_us() - Started,
            dist_util:reset_timer(Timer),
            case atoll_dist_tls:connected(Plain, atom_to_binary(Node), net_kernel:connecttime()) of
                {ok, Socket} -> {Socket, atoll_dist_socket:rtt_us(Socket, RttUs)};
                {error, {tls, Why}} -> give_up(Node, ["there is no TLS with it, since ", atoll_dist_tls:why(Why)])
            end;
        %% It may have ended since it was found.
        _ -> ?shutdown(Node)
    end.

met({Socket, RttUs} = Connected, Driver, Place, Node, Timer, #{stock := Stock} = Config) ->
    case {atoll_dist_tls:is_stock(Socket), Stock} of
        {false, _} -> greet(Connected, Driver, Place, Node, Timer, Config);
        {true, accept} -> {Socket, stock_link(here, Driver, atom_to_binary(Node), RttUs)};
        {true, refuse} -> give_up(Node, ["it uses Erlang's own distribution. ", ?STOCK])
    end.

greet({Socket, RttUs}, Driver, Place, Node, Timer, Config) ->
    dist_util:reset_timer(Timer),
    Peer = atom_to_binary(Node),
    Wish = asked(wish(Peer, Config), RttUs, Config),
    #{channels := Channels} = Config,
    Offer = #{
        name => my_name(), wish => Wish, rtt_us => RttUs, ticktime_ms => ticktime_ms(), id => id(),
        channels => atoll_dist_named:offer(Channels)
    },
    %% What is wrong with sending shows in receiving.
    _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({offer, Offer})),
    case {heard(atoll_dist_transport:recv(Socket, 0, infinity)), Config} of
        {{answer, #{kind := Kind, rtt_us := AgreedUs} = Answer}, _} ->
            ok = has_crypto(Kind, Peer),
            #{ip := Ip, port := Port} = Place,
            {Socket, (link(Kind, AgreedUs, here, Driver, Peer, {Offer, Answer}))#{at := {Ip, Port}}};
        {{refusal, Reason}, _} ->
            give_up(Node, io_lib:format("it refuses to (~0p)", [Reason]));
        %% With TLS 1.3 it says only now that it does not take the certificate.
        {{no_tls, Alert}, _} ->
            give_up(Node, ["there is no TLS with it, since ", atoll_dist_tls:why(Alert)]);
        %% With TLS it would have been known by now.
        {nothing, #{stock := accept, tls := off}} ->
            %% A stock node closes on what is no handshake of Erlang's.
            ok = atoll_dist_transport:close(Socket),
            {Again, AgainUs} = connect(Driver, Place, Node, Timer),
            {Again, stock_link(here, Driver, Peer, AgainUs)};
        {nothing, _} ->
            give_up(Node, ["it closes on the carrier's offer: it is ending, takes TLS only, or uses Erlang's own distribution. ", ?STOCK]);
        _ ->
            give_up(Node, "it answers something else than the carrier does")
    end.

heard({ok, Frame}) ->
    case atoll_dist_hello:read(list_to_binary(Frame)) of
        {ok, Hello} -> Hello;
        {error, _} = Error -> Error
    end;
heard({error, {tls_alert, _} = Alert}) ->
    {no_tls, Alert};
heard({error, _}) ->
    nothing.

-spec give_up(node(), unicode:chardata()) -> no_return().
give_up(Node, Why) ->
    Said = ["Cannot connect with ", atom_to_list(Node), ": ", Why, "."],
    ok = atoll_dist_keeper:say_once(carrier_refused, atom_to_binary(Node), Said),
    ?shutdown(Node).

%% Both ends

%% One of its own to each connection, and as hard to foresee as the challenges of Erlang's own
%% handshake. It is no secret: what further lanes prove is over random numbers too.
id() ->
    erlang:md5(term_to_binary({make_ref(), erlang:monotonic_time(), erlang:time_offset(), os:getpid(), node()})).

nonce(direct) -> <<0:128>>;
nonce({lanes, _}) -> crypto:strong_rand_bytes(16).

%% A direct connection does without it: to load it takes longer than all else of a first
%% connection. But in embedded mode there is no loading to save, and what goes over the
%% connection may need it.
has_crypto(direct, Peer) ->
    case code:get_mode() of
        embedded -> has_crypto(Peer);
        interactive -> ok
    end;
has_crypto({lanes, _}, Peer) ->
    has_crypto(Peer).

has_crypto(Peer) ->
    case atoll_dist_crypto:ready() of
        ok ->
            ok;
        {error, Why} ->
            Said = io_lib:format("The carrier connects with nobody: the application crypto cannot be loaded (~tp).", [Why]),
            ok = atoll_dist_keeper:say_once(carrier_without_crypto, <<>>, Said),
            ?shutdown(Peer)
    end.

wish(Peer, Config) ->
    atoll_dist_kind:wish(Peer, Config, atoll_dist_keeper:preferred()).

%% Faults are injected in lanes, so where they can be a direct connection is one lane.
carried(direct, #{faults := true}) -> {lanes, 1};
carried(Kind, _Config) -> Kind.

asked({auto, LaneRttUs, _}, RttUs, #{faults := true}) when RttUs < LaneRttUs -> {lanes, 1};
asked(direct, _RttUs, #{faults := true}) -> {lanes, 1};
asked(Wish, _RttUs, _Config) -> Wish.

%% Where the kinds part: everything that Erlang's handshake has to know of a connection
%% of that kind, given what is the same for all.
carry(HsData, #{kind := direct} = Link, Config) ->
    atoll_dist_direct:carry(HsData, Link, Config);
carry(HsData, #{kind := {lanes, _}} = Link, Config) ->
    atoll_dist_channel:carry(HsData, Link, Config).

base(Socket, Link) ->
    #hs_data{
        socket = Socket,
        this_flags = 0,
        f_send = fun atoll_dist_transport:send/2,
        f_recv = fun(S, Length, Timeout) -> recv(fun() -> atoll_dist_transport:recv(S, Length, Timeout) end) end,
        f_handshake_complete = fun(S, Node, _Handle) -> up(S, Node, Link) end
    }.

recv(Recv) ->
    case erase(?READ_BEFORE) of
        undefined -> Recv();
        Frame -> {ok, Frame}
    end.

%% A neighbour of ours; said where its name is known and nothing of it can come yet.
linked(_Node, #{stock := true}) -> ok;
linked(Node, #{kind := direct}) -> atoll_dist_circuits:linked(Node, self(), messages);
linked(Node, #{kind := {lanes, _} = Lanes}) -> atoll_dist_circuits:linked(Node, self(), Lanes).

up(Socket, Node, #{rtt_us := RttUs, started := Started, doorkeeper := Doorkeeper} = Link) ->
    ok = atoll_dist_keeper:up(self(), #{
        node => Node, kind => shown(Link), rtt_us => RttUs, started => Started, sockets => sockets(Socket),
        channel => atoll_dist_channel:input(), named => is_named(Link)
    }),
    case Doorkeeper of
        none ->
            ok;
        _ ->
            true = unlink(Doorkeeper),
            Doorkeeper ! {up, self()},
            ok
    end.

is_named(#{hello := {_, #{channels := [_ | _]}}}) -> true;
is_named(_) -> false.

sockets(Socket) ->
    case atoll_dist_channel:sockets() of
        [] -> [Socket];
        Lanes -> Lanes
    end.

link(Kind, RttUs, Started, Driver, Peer, Hello) ->
    #{
        kind => Kind,
        stock => Hello =:= none,
        rtt_us => RttUs,
        started => Started,
        driver => Driver,
        peer => Peer,
        doorkeeper => none,
        at => none,
        hello => Hello
    }.

stock_link(Started, Driver, Peer, RttUs) ->
    link(direct, RttUs, Started, Driver, Peer, none).

shown(#{stock := true}) -> stock;
shown(#{kind := Kind}) -> Kind.

address_of(Driver, Socket, Node, Link) ->
    case {inet:peername(atoll_dist_transport:inet(Socket)), dist_util:split_node(Node)} of
        {{ok, Address}, {node, _Name, Host}} ->
            #net_address{address = Address, host = Host, protocol = shown(Link), family = Driver:family()};
        _ ->
            ?shutdown(Node)
    end.

my_name() ->
    case node() of
        %% The peer is about to give this node a name.
        nonode@nohost -> <<>>;
        Node -> atom_to_binary(Node)
    end.

ticktime_ms() -> atoll_dist_tick:ms(net_kernel:get_net_ticktime()).

or_end(ok) -> ok;
or_end({ok, _} = Ok) -> Ok;
or_end({error, _}) -> ?shutdown(no_node).
