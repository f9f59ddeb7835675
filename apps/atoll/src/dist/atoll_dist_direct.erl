%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A connection of the kind direct, and one with a stock peer: the VM's own driver
%% of the socket carries the signals, as in Erlang's own distribution. No process of ours
%% stands in between, so it is as fast as that and promises the same order.
-module(atoll_dist_direct).

-include_lib("kernel/include/dist_util.hrl").

-export([carry/3]).
-export([tick/1, getstat/1]).

%% @doc What Erlang's handshake has to know of such a connection. With TLS the process of
%% ssl that sends is the controller, as in OTP's own distribution over TLS, and is linked
%% to the process of the connection as there.
-spec carry(#hs_data{}, #{kind := direct, rtt_us := non_neg_integer(), _ => _}, atoll_dist_config:config()) -> #hs_data{}.
carry(#hs_data{socket = {tls, _, _} = Tls, f_handshake_complete = Up} = HsData, Link, Config) ->
    Sender = atoll_dist_tls:sender(Tls),
    true = link(Sender),
    kept(HsData#hs_data{
        f_setopts_pre_nodeup = fun(Socket) -> tuned(atoll_dist_transport:carry(Socket, 0), Socket, Link, Config) end,
        f_setopts_post_nodeup = fun(_Socket) -> ok end,
        f_getll = fun(_Socket) -> {ok, Sender} end,
        f_handshake_complete = fun(Socket, Node, Handle) ->
            ok = Up(Socket, Node, Handle),
            ok = atoll_dist_tls:up(Sender, Node, Handle)
        end
    });
carry(HsData, Link, Config) ->
    kept(HsData#hs_data{
        f_setopts_pre_nodeup = fun(Socket) -> before_up(Socket, Link, Config) end,
        f_setopts_post_nodeup = fun after_up/1,
        f_getll = fun inet:getll/1
    }).

kept(HsData) ->
    HsData#hs_data{
        %% These stay with the connection as long as it is up, so they must not hold on
        %% to one version of this module.
        mf_tick = fun ?MODULE:tick/1,
        mf_getstat = fun ?MODULE:getstat/1,
        mf_setopts = fun atoll_dist_socket:setopts/2,
        mf_getopts = fun atoll_dist_socket:getopts/2
    }.

before_up(Socket, Link, Config) ->
    tuned(inet:setopts(Socket, [{active, false}, {packet_size, 0}, {packet, 4}, atoll_dist_transport:nodelay()]), Socket, Link, Config).

tuned(ok, Socket, Link, Config) -> atoll_dist_socket:tune(Socket, Config, Link);
tuned({error, _} = Error, _Socket, _Link, _Config) -> Error.

%% From here on the driver gives what arrives to the VM.
after_up(Socket) ->
    inet:setopts(Socket, [{active, true}, {deliver, port}, {packet, 4}, binary, atoll_dist_transport:nodelay()]).

%% @private
-spec tick(atoll_dist_transport:socket()) -> ok | {error, term()}.
tick({tls, _, _} = Tls) ->
    atoll_dist_tls:sender(Tls) ! tick,
    ok;
tick(Socket) ->
    %% Also where the socket is busy: it must not hold up who ticks all of them.
    case inet_tcp:send(Socket, [], [force]) of
        {error, closed} ->
            self() ! {tcp_closed, Socket},
            {error, closed};
        Sent ->
            Sent
    end.

%% @private
-spec getstat(atoll_dist_transport:socket()) ->
    {ok, Received :: non_neg_integer(), Sent :: non_neg_integer(), Waiting :: non_neg_integer()} | {error, term()}.
getstat(Socket) ->
    atoll_dist_socket:counters(Socket).
