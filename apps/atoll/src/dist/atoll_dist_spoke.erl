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

-export([start/3, send/2]).
-export([init/3]).

%% @doc So many, for the connection with that node of which that is the process.
-spec start(node(), pos_integer(), Connection :: pid()) -> tuple().
start(Node, Count, Connection) ->
    list_to_tuple([proc_lib:spawn_opt(?MODULE, init, [Node, Connection, Hub], [{message_queue_data, off_heap}])
     || Hub <- [whereis(atoll_dist_hub)], _ <- lists:seq(1, Count)]).

%% @doc Has a frame sent to the hub there. The calling process will get `{written, Spoke,
%% Node, Bytes}'.
-spec send(pid(), binary()) -> ok.
send(Spoke, Frame) ->
    Spoke ! {frame, self(), Frame},
    ok.

%% @private
-spec init(node(), pid(), pid()) -> no_return().
init(Node, Connection, Hub) ->
    _ = monitor(process, Connection),
    _ = monitor(process, Hub),
    loop(Node).

loop(Node) ->
    receive
        {frame, From, Frame} ->
            _ = erlang:send({atoll_dist_hub, Node}, {circuit, node(), Frame}, [noconnect]),
            From ! {written, self(), Node, byte_size(Frame)},
            loop(Node);
        {'DOWN', _, process, _, _} ->
            exit(normal)
    end.
