%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The sockets of the carrier: their options, the measured round trip, and what the
%% kernel's environment says of them (`inet_dist_listen_options',
%% `inet_dist_connect_options', `inet_dist_use_interface', `inet_dist_listen_min' and
%% `inet_dist_listen_max', `dist_nodelay', `check_ip'), which is what it says to Erlang's
%% own distribution too.
%%
%% No buffer is given a fixed size: one that is large enough for a short path caps a long
%% one, and on a short one it was measured to cost a tenth of the throughput and to spare a
%% ping nothing that little unsent data does not. What the user has set in the kernel's
%% environment is never overridden by a profile, only by `direct_options' and
%% `lane_options' of {@link atoll_dist_config}.
-module(atoll_dist_socket).

-export([listen_options/0, connect_options/0, port_range/0, max_frame/0, is_near/2]).
-export([tuned/2, tune/3, short/1, rtt_us/1, rtt_us/2, has_ended/1, counters/1, bytes/1, now_us/0]).
-export([setopts/2, getopts/2]).

-type options() :: [gen_tcp:option()].

-export_type([driver/0]).

-type driver() :: inet_tcp | inet6_tcp.

%% How much may wait in the kernel, unsent, before the socket says that it is full.
-define(UNSENT, 131072).

%% What a socket of which little is wanted may hold, sent and not acknowledged too: what is
%% on its way beyond what the path has room for waits in the path. The system may take its own
%% least in place of this.
-define(SHORT, 2048).

%% Linux: TCP_INFO and TCP_NOTSENT_LOWAT of IPPROTO_TCP.
-define(TCP, 6).
-define(TCP_INFO, 11).
-define(TCP_NOTSENT_LOWAT, 25).
%% The first byte of TCP_INFO, of a connection that either end may still write to.
-define(TCP_ESTABLISHED, 1).

%% Many nodes that connect at once bring many lanes; one that finds no place waits for a
%% second. The operating system has a limit of its own. A longer queue is no help where more
%% come than the node can accept: then each waits for all that is before it.
-define(BACKLOG, 1024).

%% No frame before a connection is up is longer; a node's name has at most 255 letters.
-define(MAX_FRAME, 4096).

%% @doc The options of a listening socket.
-spec listen_options() -> options().
listen_options() ->
    Forced = forced() ++ [{ip, Ip} || {ok, Ip} <- [application:get_env(kernel, inet_dist_use_interface)]],
    merged([{reuseaddr, true}, {backlog, ?BACKLOG}, at_once()], user_options(inet_dist_listen_options), Forced).

%% @doc The options of a socket that connects.
-spec connect_options() -> options().
connect_options() ->
    merged([at_once()], user_options(inet_dist_connect_options), forced()).

%% Until the connection is up, whatever dist_nodelay says: an end that sends two frames one
%% after the other would wait with the second until the first is acknowledged, which the other
%% end puts off for 40 ms.
at_once() ->
    {nodelay, true}.

forced() ->
    [{mode, list}, {active, false}, {packet, 2}, {packet_size, ?MAX_FRAME}].

%% Ours that must be, then the user's, then those of ours that the user did not set.
merged(Defaults, Users, Forced) ->
    Forced ++ without(Forced, Users) ++ without(Users, Defaults).

without(Set, Options) ->
    Keys = [key(Option) || Option <- Set],
    [Option || Option <- Options, not lists:member(key(Option), Keys)].

key(list) -> mode;
key(binary) -> mode;
key(Family) when is_atom(Family) -> family;
key({raw, Protocol, Option, _Value}) -> {raw, Protocol, Option};
key({raw, {Protocol, Option, _Value}}) -> {raw, Protocol, Option};
key(Option) -> element(1, Option).

user_options(Key) ->
    case application:get_env(kernel, Key) of
        {ok, Options} -> Options;
        undefined -> []
    end.

%% @doc The ports to try to listen on, the first and the last; 0 leaves the choice.
-spec port_range() -> {inet:port_number(), inet:port_number()}.
port_range() ->
    case {application:get_env(kernel, inet_dist_listen_min), application:get_env(kernel, inet_dist_listen_max)} of
        {{ok, Min}, {ok, Max}} when is_integer(Min), is_integer(Max) -> {Min, Max};
        {{ok, Min}, _} when is_integer(Min) -> {Min, Min};
        _ -> {0, 0}
    end.

%% @doc How long a frame may be before a connection is up.
-spec max_frame() -> pos_integer().
max_frame() -> ?MAX_FRAME.

%% @doc Whether the peer may connect: kernel's `check_ip' wants it in a network of ours.
-spec is_near(driver(), inet:socket()) -> boolean().
is_near(Driver, Socket) ->
    application:get_env(kernel, check_ip, false) =/= true orelse is_in_own_network(Driver, Socket).

is_in_own_network(Driver, Socket) ->
    case {inet:peername(Socket), inet:getif(Socket)} of
        {{ok, {Ip, _}}, {ok, Networks}} ->
            lists:any(fun({Own, _, Mask}) -> Driver:mask(Mask, Ip) =:= Driver:mask(Mask, Own) end, Networks);
        _ ->
            false
    end.

%% @doc The options of a connection, direct or a lane, with that profile on that system.
-spec tuned(throughput | latency, Os :: {atom(), atom()}) -> options().
tuned(latency, {unix, linux}) -> [{raw, ?TCP, ?TCP_NOTSENT_LOWAT, <<?UNSENT:32/native>>}];
tuned(_Profile, _Os) -> [].

%% @doc Sets the options of a connection that is about to be up, of one lane of it if it
%% has several: those of the profile, unless the user has set them for all connections,
%% and then those configured for this kind.
-spec tune(atoll_dist_transport:socket(), atoll_dist_config:config(), #{kind := atoll_dist_kind:kind(), _ => _}) ->
    ok | {error, inet:posix()}.
tune(Socket, #{profile := Profile} = Config, #{kind := Kind}) ->
    Users = user_options(inet_dist_listen_options) ++ user_options(inet_dist_connect_options),
    Own =
        case {Kind, Config} of
            {direct, #{direct_options := Options}} -> Options;
            {{lanes, _}, #{lane_options := Options}} -> Options
        end,
    Tuned = without(Users ++ Own, tuned(Profile, os:type())),
    inet:setopts(atoll_dist_transport:inet(Socket), Tuned ++ Own).

%% @doc Has a lane take as little as can be before it has sent what it has taken, since what it
%% has cannot be dropped any more. Where the system has no such option it takes more.
-spec short(atoll_dist_transport:socket()) -> ok.
short(Lane) ->
    Socket = atoll_dist_transport:inet(Lane),
    _ = inet:setopts(Socket, [{low_watermark, 1}, {high_watermark, 1}, {sndbuf, ?SHORT}]),
    _ = [inet:setopts(Socket, [{raw, ?TCP, ?TCP_NOTSENT_LOWAT, <<1:32/native>>}]) || os:type() =:= {unix, linux}],
    %% If that fails the socket has ended, and says so.
    ok.

%% @doc The round trip of a connection as the operating system measures it: the shortest
%% of late, since a smoothed one has in it how long the other end waits to acknowledge.
-spec rtt_us(atoll_dist_transport:socket()) -> {ok, non_neg_integer()} | unknown.
rtt_us(Socket) ->
    %% Where tcpi_min_rtt and, for kernels before it, tcpi_rtt stand in struct tcp_info. The
    %% first is all ones where nothing was measured.
    case tcp_info(Socket) of
        {ok, <<_:148/binary, Us:32/native, _/binary>>} when Us > 0, Us < 16#FFFFFFFF -> {ok, Us};
        {ok, <<_:68/binary, Us:32/native, _/binary>>} when Us > 0 -> {ok, Us};
        _ -> unknown
    end.

%% @doc The shorter of that and of another measurement, of which 0 is none: what makes one too
%% long is no part of the path.
-spec rtt_us(atoll_dist_transport:socket(), OtherUs :: non_neg_integer()) -> non_neg_integer().
rtt_us(Socket, OtherUs) ->
    case rtt_us(Socket) of
        {ok, Us} when OtherUs =:= 0 -> Us;
        {ok, Us} -> min(Us, OtherUs);
        unknown -> OtherUs
    end.

%% @doc Whether it is closed, or the other end has closed it, though nobody reads that. Not
%% known is not ended.
-spec has_ended(atoll_dist_transport:socket()) -> boolean().
has_ended(Socket) ->
    case tcp_info(Socket) of
        {ok, <<State, _/binary>>} -> State =/= ?TCP_ESTABLISHED;
        Other -> Other =:= {error, einval}
    end.

tcp_info(Socket) ->
    case os:type() of
        {unix, linux} ->
            case inet:getopts(atoll_dist_transport:inet(Socket), [{raw, ?TCP, ?TCP_INFO, 152}]) of
                {ok, [{raw, ?TCP, ?TCP_INFO, Info}]} -> {ok, Info};
                Error -> Error
            end;
        _ ->
            unknown
    end.

%% @doc What was received and sent so far, in packets of the socket, and how many bytes wait.
-spec counters(atoll_dist_transport:socket()) ->
    {ok, Received :: non_neg_integer(), Sent :: non_neg_integer(), Waiting :: non_neg_integer()} | {error, inet:posix()}.
counters(Socket) ->
    case inet:getstat(atoll_dist_transport:inet(Socket), [recv_cnt, send_cnt, send_pend]) of
        {ok, Stats} -> list_to_tuple([ok | [proplists:get_value(K, Stats) || K <- [recv_cnt, send_cnt, send_pend]]]);
        {error, _} = Error -> Error
    end.

%% @doc How many bytes these sockets have received and sent so far; those that are closed
%% do not tell.
-spec bytes([atoll_dist_transport:socket()]) -> {In :: non_neg_integer(), Out :: non_neg_integer()}.
bytes(Sockets) ->
    Inet = [atoll_dist_transport:inet(Socket) || Socket <- Sockets],
    Stats = [{Key, N} || Socket <- Inet, {ok, Stat} <- [inet:getstat(Socket, [recv_oct, send_oct])], {Key, N} <- Stat],
    {lists:sum([N || {recv_oct, N} <- Stats]), lists:sum([N || {send_oct, N} <- Stats])}.

%% @doc A clock for measuring how long it took to connect.
-spec now_us() -> integer().
now_us() ->
    erlang:monotonic_time(microsecond).

%% @doc For `net_kernel:setopts/2': refuses what would break the connection.
-spec setopts(atoll_dist_transport:socket(), [term()]) -> ok | {error, term()}.
setopts(Socket, Options) ->
    case [Option || Option <- Options, lists:member(key(Option), [active, deliver, packet, packet_size, header, mode, exit_on_close])] of
        [] -> atoll_dist_transport:setopts(Socket, Options);
        Bad -> {error, {badopts, Bad}}
    end.

%% @doc For `net_kernel:getopts/2'.
-spec getopts(atoll_dist_transport:socket(), [term()]) -> {ok, [term()]} | {error, term()}.
getopts(Socket, Options) ->
    atoll_dist_transport:getopts(Socket, Options).
