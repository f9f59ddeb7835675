%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A process that sends frames of circuits to a neighbour in others' stead. A
%% connection with lanes has as many as it has lanes: what one process sends keeps to one
%% lane, so only several fill them.
%%
%% It waits where the connection takes nothing, and tells who handed frames to it what is
%% gone. It ends with the connection's process, and with the hub.
%%
%% Promised: what one process hands to one spoke arrives in order, and nothing more.
%% What is handed to it it does not bound: who hands does.
-module(atoll_dist_spoke).

-export([start/3, send/3]).
-export([init/3]).

%% @doc So many, for the connection with that node of which that is the process.
-spec start(node(), pos_integer(), Connection :: pid()) -> tuple().
start(Node, Count, Connection) ->
    list_to_tuple([proc_lib:spawn_opt(?MODULE, init, [Node, Connection, Hub], [{message_queue_data, off_heap}])
     || Hub <- [whereis(atoll_dist_hub)], _ <- lists:seq(1, Count)]).

%% @doc Has a frame sent to the hub there, or past it to an end. The calling process will get
%% `{written, Spoke, Node, Bytes}'.
-spec send(pid(), hub | pid(), binary()) -> ok.
send(Spoke, To, Frame) ->
    Spoke ! {frame, self(), To, Frame},
    ok.

%% @private
-spec init(node(), pid(), pid()) -> no_return().
init(Node, Connection, Hub) ->
    _ = monitor(process, Connection),
    _ = monitor(process, Hub),
    loop(Node).

loop(Node) ->
    receive
        {frame, From, To, Frame} ->
            _ = erlang:send(case To of hub -> {atoll_dist_hub, Node}; _ -> To end, {circuit, node(), Frame}, [noconnect]),
            From ! {written, self(), Node, byte_size(Frame)},
            loop(Node);
        {'DOWN', _, process, _, _} ->
            exit(normal)
    end.
