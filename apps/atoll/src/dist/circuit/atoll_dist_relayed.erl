%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A connection of the kind relay, as the process of the connection sees it: a
%% circuit over other nodes ({@link atoll_dist_circuit}) stands for the socket.
%%
%% What the circuit carries is in order as over one TCP connection, and Erlang's handshake
%% with the other node goes over it first, cookie and all. What a node on the way can do to
%% it after that stands at {@link atoll_dist_seal}.
-module(atoll_dist_relayed).

-include_lib("kernel/include/dist_util.hrl").
-include_lib("kernel/include/net_address.hrl").

-export([open/3, carry/3, address/1]).
-export([tick/1, getstat/1]).

%% @doc A circuit with a node, once it stands; without one the calling process ends.
-spec open(node(), [node(), ...], atoll_dist_config:config()) -> atoll_dist_circuits:circuit().
open(Node, Path, Config) ->
    Circuit = atoll_dist_end:open(Node, Path, Config),
    ok = atoll_dist_end:await_up(Circuit),
    Circuit.

%% @doc What Erlang's handshake has to know of such a connection.
-spec carry(#hs_data{}, atoll_dist_circuits:circuit(), here | there) -> #hs_data{}.
carry(HsData, {circuit, End, _} = Circuit, Started) ->
    HsData#hs_data{
        socket = Circuit,
        this_flags = 0,
        f_send = fun atoll_dist_end:send/2,
        f_setopts_pre_nodeup = fun(_) -> ok end,
        f_setopts_post_nodeup = fun(_) -> ok end,
        f_getll = fun(_) -> {ok, End} end,
        f_handshake_complete = fun(C, Node, Handle) -> up(C, Node, Handle, Started) end,
        %% These stay with the connection as long as it is up, so they must not hold on
        %% to one version of this module.
        mf_tick = fun ?MODULE:tick/1,
        mf_getstat = fun ?MODULE:getstat/1
    }.

up(Circuit, Node, Handle, Started) ->
    ok = atoll_dist_keeper:up(self(), #{node => Node, kind => relay, started => Started, circuit => Circuit, channel => none}),
    atoll_dist_end:up(Circuit, Node, Handle).

%% @doc What stands for the address of such a connection.
-spec address(node()) -> #net_address{}.
address(Node) ->
    {node, _Name, Host} = dist_util:split_node(Node),
    #net_address{address = undefined, host = Host, protocol = relay, family = atoll_dist_address:family()}.

%% @private
-spec tick(atoll_dist_circuits:circuit()) -> ok.
tick(Circuit) ->
    atoll_dist_end:tick(Circuit).

%% @private
-spec getstat(atoll_dist_circuits:circuit()) -> {ok, non_neg_integer(), non_neg_integer(), 0}.
getstat(Circuit) ->
    atoll_dist_circuits:stat(Circuit).
