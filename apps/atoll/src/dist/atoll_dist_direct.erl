%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A connection of the kind direct, and one with a stock peer: the VM's own driver
%% of the socket carries the signals, as in Erlang's own distribution. No process of ours
%% stands in between, so it is as fast as that and promises the same order.
-module(atoll_dist_direct).

-include_lib("kernel/include/dist_util.hrl").

-export([carry/3]).
-export([tick/1, getstat/1]).

%% @doc What Erlang's handshake has to know of such a connection.
-spec carry(#hs_data{}, #{kind := direct, rtt_us := non_neg_integer(), _ => _}, atoll_dist_config:config()) -> #hs_data{}.
carry(HsData, Link, Config) ->
    HsData#hs_data{
        f_setopts_pre_nodeup = fun(Socket) -> before_up(Socket, Link, Config) end,
        f_setopts_post_nodeup = fun after_up/1,
        f_getll = fun inet:getll/1,
        %% These stay with the connection as long as it is up, so they must not hold on
        %% to one version of this module.
        mf_tick = fun ?MODULE:tick/1,
        mf_getstat = fun ?MODULE:getstat/1,
        mf_setopts = fun atoll_dist_socket:setopts/2,
        mf_getopts = fun atoll_dist_socket:getopts/2
    }.

before_up(Socket, Link, Config) ->
    case inet:setopts(Socket, [{active, false}, {packet_size, 0}, {packet, 4}, atoll_dist_socket:nodelay()]) of
        ok -> atoll_dist_socket:tune(Socket, Config, Link);
        {error, _} = Error -> Error
    end.

%% From here on the driver gives what arrives to the VM.
after_up(Socket) ->
    inet:setopts(Socket, [{active, true}, {deliver, port}, {packet, 4}, binary, atoll_dist_socket:nodelay()]).

%% @private
-spec tick(inet:socket()) -> ok | {error, term()}.
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
-spec getstat(inet:socket()) ->
    {ok, Received :: non_neg_integer(), Sent :: non_neg_integer(), Waiting :: non_neg_integer()} | {error, term()}.
getstat(Socket) ->
    atoll_dist_socket:counters(Socket).
