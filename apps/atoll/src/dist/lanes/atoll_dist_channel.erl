%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A connection of the kind lanes: several sockets under one channel of Erlang's
%% distribution.
%%
%% Its processes are that of the handshake, which `dist_util' keeps for as long as the
%% connection is up; the controller ({@link atoll_dist_controller}), which takes packets
%% from the VM; a writer for each lane ({@link atoll_dist_writer}), which waits where a
%% lane is full; and the input handler ({@link atoll_dist_input}), which owns all sockets
%% and gives the VM what arrives. All are linked: the connection ends with any of them,
%% and the reason is that of the first.
%%
%% Promised: signals from one process to another arrive in the order in which they were
%% sent. With one lane all signals do. Not promised with more: that a signal which was
%% sent after another was received elsewhere arrives after it (the causal order of
%% different senders), which one TCP connection gives without promising it.
%%
%% What waits in these processes for the sockets is at most the configured budget, and
%% what one packet is beyond it; a socket has one batch more.
-module(atoll_dist_channel).

-include_lib("kernel/include/dist.hrl").
-include_lib("kernel/include/dist_util.hrl").

-export([carry/3, input/0, sockets/0]).
-export([tick/1, getstat/1, setopts/2, getopts/2]).

%% The key in the dictionary of the handshake's process under which its channel is.
-define(CHANNEL, atoll_dist_channel).

-record(channel, {
    %% Of all lanes, the first one first.
    sockets = [] :: [atoll_dist_transport:socket()],
    input :: pid(),
    controller = none :: pid() | none
}).

%% @doc What Erlang's handshake has to know of such a connection.
-spec carry(#hs_data{}, atoll_dist_handshake:link(), atoll_dist_config:config()) -> #hs_data{}.
carry(#hs_data{f_handshake_complete = Up} = HsData, #{kind := {lanes, N}} = Link, Config) ->
    %% Here, so that it is there when the peer's further lanes knock.
    Input = started(Link, Config),
    _ = put(?CHANNEL, #channel{input = Input}),
    flags(N, Config, HsData#hs_data{
        f_setopts_pre_nodeup = fun(Socket) -> before_up(Socket, Link, Config) end,
        f_setopts_post_nodeup = fun(_Socket) -> ok end,
        f_getll = fun(_Socket) -> {ok, (get(?CHANNEL))#channel.controller} end,
        f_handshake_complete = fun(Socket, Node, Handle) ->
            #channel{controller = Controller} = get(?CHANNEL),
            ok = Up(Socket, Node, Handle),
            ok = atoll_dist_controller:up(Controller, Handle)
        end,
        %% These stay with the connection as long as it is up, so they must not hold on
        %% to one version of this module.
        mf_tick = fun ?MODULE:tick/1,
        mf_getstat = fun ?MODULE:getstat/1,
        mf_setopts = fun ?MODULE:setopts/2,
        mf_getopts = fun ?MODULE:getopts/2
    }).

started(#{peer := Peer} = Link, Config) ->
    case atoll_dist_input:start(Link, Config) of
        {ok, Input} ->
            Input;
        taken ->
            Why = ["Refused a connection with ", Peer, ": it offers the id of another connection."],
            ok = atoll_dist_keeper:say_once(carrier_id_taken, Peer, Why),
            ?shutdown(no_node)
    end.

%% Over several lanes there is no order of all packets, so no atom cache; and each packet
%% must tell its sender where it can. Faults drop packets, which the cache would not
%% survive either.
flags(1, #{faults := false}, HsData) ->
    HsData;
flags(_N, _Config, HsData) ->
    HsData#hs_data{
        reject_flags = dist_util:strict_order_flags(),
        require_flags = ?DFLAG_SEND_SENDER bor ?DFLAG_EXIT_PAYLOAD
    }.

%% The cookie is checked by now.
before_up(Socket, #{peer := Peer, kind := {lanes, N}, hello := {_, Answer}} = Link, Config) ->
    #channel{input = Input} = Channel = get(?CHANNEL),
    ok = atoll_dist_transport:controlling_process(Socket, Input),
    Sockets = atoll_dist_input:join(Input, Socket, key(Peer)),
    case tuned(Sockets, Link, Config) of
        ok ->
            #{channels := Agreed} = Answer,
            #{channels := Channels} = Config,
            Groups = atoll_dist_named:layout(N, Agreed, Channels),
            ok = short(Groups, Sockets),
            Controller = atoll_dist_controller:start(Peer, Sockets, Input, Groups, Config),
            _ = put(?CHANNEL, Channel#channel{sockets = Sockets, controller = Controller}),
            ok;
        {error, _} = Error ->
            Error
    end.

%% A peer that has just been given its name has no cookie of its own.
key(<<>>) -> atom_to_binary(erlang:get_cookie());
key(Peer) -> atoll_dist_hello:cookie(Peer).

tuned([], _Link, _Config) ->
    ok;
tuned([Socket | Sockets], Link, Config) ->
    case atoll_dist_transport:carry(Socket, atoll_dist_frame:max_frame()) =:= ok andalso atoll_dist_socket:tune(Socket, Config, Link) of
        ok -> tuned(Sockets, Link, Config);
        false -> {error, einval};
        {error, _} = Error -> Error
    end.

short(Groups, Sockets) ->
    lists:foreach(fun atoll_dist_socket:short/1, [
        Socket
     || #{first := First, lanes := Lanes, monotonic := true} <- Groups, Socket <- lists:sublist(Sockets, First + 1, Lanes)
    ]).

%% @doc The input handler of the connection whose process calls; none if it has no lanes.
-spec input() -> pid() | none.
input() ->
    case get(?CHANNEL) of
        undefined -> none;
        #channel{input = Input} -> Input
    end.

%% @doc The sockets of all lanes of the connection whose process calls.
-spec sockets() -> [atoll_dist_transport:socket()].
sockets() ->
    case get(?CHANNEL) of
        undefined -> [];
        #channel{sockets = Sockets} -> Sockets
    end.

%% @private
-spec tick(atoll_dist_transport:socket()) -> ok.
tick(_Socket) ->
    atoll_dist_input:tick(input()).

%% @private
-spec getstat(atoll_dist_transport:socket()) ->
    {ok, Received :: non_neg_integer(), Sent :: non_neg_integer(), Waiting :: non_neg_integer()}.
getstat(_Socket) ->
    %% The node asks whenever it ticks, among others.
    ok = atoll_dist_input:ticks(input()),
    %% A lane that has ended has none. What that means is found by the input handler.
    Counters = [atoll_dist_socket:counters(Socket) || Socket <- sockets()],
    atoll_dist_tick:stat([{Received, Sent, Waiting, false} || {ok, Received, Sent, Waiting} <- Counters]).

%% @private
-spec setopts(atoll_dist_transport:socket(), [term()]) -> ok | {error, term()}.
setopts(_Socket, Options) ->
    setopts_all(sockets(), Options).

setopts_all([], _Options) ->
    ok;
setopts_all([Socket | Sockets], Options) ->
    case atoll_dist_socket:setopts(Socket, Options) of
        ok -> setopts_all(Sockets, Options);
        {error, _} = Error -> Error
    end.

%% @private
-spec getopts(atoll_dist_transport:socket(), [term()]) -> {ok, [term()]} | {error, term()}.
getopts(Socket, Options) ->
    %% All lanes have the same.
    atoll_dist_socket:getopts(Socket, Options).
