%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The connections that this node has, over the carrier and without it.
%%
%% Whoever asks reads what the runtime and the carrier keep; no process is asked, but of
%% kernel where a node uses the carrier beside another distribution, and of a connection that
%% has channels.
%%
%% Of a connection that the runtime drives itself it is not known who made it and since
%% when it has been up.
-module(atoll_connections).

-include_lib("kernel/include/net_address.hrl").

-export([all/0, received/1]).

-export_type([connection/0]).

-type connection() :: #{
    node := node(),
    %% `stock' is Erlang's own distribution, `relay' goes over other nodes' connections.
    kind := atoll_dist_kind:kind() | stock | relay,
    %% The round trip in microseconds.
    rtt_us := non_neg_integer() | unknown,
    %% Which end connected.
    started := here | there | unknown,
    %% For how many milliseconds it has been up.
    age_ms := non_neg_integer() | unknown,
    %% What it has carried, in all its lanes.
    bytes_in := non_neg_integer() | unknown,
    bytes_out := non_neg_integer() | unknown,
    %% What this end has written in each channel, and what waits, where there are channels; over
    %% other nodes there are none.
    channels => #{atoll_dist_named:name() => atoll_dist_sorter:channel()},
    %% Over other nodes: all of them, that which made it first (one that is no atom here as
    %% text), whether those between can neither read nor alter what they carry, and how
    %% often it took another path.
    path => [node() | binary()],
    sealed => boolean(),
    moves => non_neg_integer()
}.

%% @doc All of them, hidden ones too, sorted by node.
-spec all() -> [connection()].
all() ->
    Carried = atoll_dist:links(),
    Known = maps:from_list([{Node, []} || #{node := Node} <- Carried]),
    Others = [
        stock(Node, Controller)
     || {Node, Controller} <- erlang:system_info(dist_ctrl), not is_map_key(Node, Known), is_stock(Node)
    ],
    [Connection || {_, Connection} <- lists:sort([{Node, C} || #{node := Node} = C <- Carried ++ Others])].

%% @doc How many bytes have come over the connection with a node. It is not known of one
%% over other nodes, or of one of stock distribution over TLS.
-spec received(node()) -> {ok, non_neg_integer()} | unknown.
received(Node) ->
    case lists:keyfind(Node, 1, erlang:system_info(dist_ctrl)) of
        {Node, Port} when is_port(Port) ->
            case bytes(Port) of
                {In, _} when is_integer(In) -> {ok, In};
                _ -> unknown
            end;
        {Node, _Process} ->
            atoll_dist:received(Node);
        false ->
            unknown
    end.

%% One of the carrier's may have come up a moment ago and not be among its links yet.
is_stock(Node) ->
    case whereis(atoll_dist_keeper) of
        undefined -> true;
        _ -> is_not_carried(net_kernel:node_info(Node, address))
    end.

is_not_carried({ok, #net_address{protocol = Protocol}}) ->
    not lists:member(Protocol, [direct, stock, relay]) andalso not is_tuple(Protocol);
is_not_carried(_) ->
    false.

stock(Node, Controller) ->
    {In, Out} = bytes(Controller),
    #{
        node => Node,
        kind => stock,
        rtt_us => unknown,
        started => unknown,
        age_ms => unknown,
        bytes_in => In,
        bytes_out => Out
    }.

%% Under TLS a process drives it.
bytes(Port) when is_port(Port) ->
    case inet:getstat(Port, [recv_oct, send_oct]) of
        {ok, Stat} -> {proplists:get_value(recv_oct, Stat), proplists:get_value(send_oct, Stat)};
        {error, _} -> {unknown, unknown}
    end;
bytes(_Process) ->
    {unknown, unknown}.
