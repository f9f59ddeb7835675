%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The way over which a process sends frames of circuits to a neighbour: to the hub
%% there, over the connection with it, in order and without ever waiting.
%%
%% A connection that is busy takes nothing. What was to be sent is kept then, until a
%% helper that waits in the process's stead has got something through; so one process
%% sends all frames of a trunk, and they stay in order over connections with lanes too.
%%
%% Over a connection with lanes large frames that may overtake others go by turns to the
%% connection's spokes ({@link atoll_dist_spoke}), which tell what is gone.
%%
%% To a neighbour with which a circuit has a connection of its own frames go to its socket
%% at once if that has nothing to write, and by the process that writes to it if it has, or
%% if such are on their way, or if it has TLS. That process tells what is gone.
%%
%% Promised: frames arrive in the order in which they were given, but for those that may
%% overtake others, up to some frame after which none arrives. It bounds nothing: who sends counts what is on its way.
-module(atoll_dist_trunk).

-export([new/1, new/2, send/2, pass/3, freed/1, written/3, helper/1]).
-export([wait/1]).

-export_type([trunk/0]).

-record(trunk, {
    node :: node(),
    via :: atoll_dist_circuits:via() | none,
    %% The end of a circuit whose it is; none of the hub's.
    whose = none :: none | pid(),
    %% Which gives one message when it ends, that of the monitor on it.
    helper = none :: none | reference(),
    %% The latest first.
    kept = [] :: [binary()],
    %% Whose turn it is of the spokes.
    turn = 1 :: pos_integer(),
    %% What a writer has and has not told to be gone.
    given = 0 :: non_neg_integer()
}).

-opaque trunk() :: #trunk{}.

%% Nobody is registered by it: a message to it ends where it arrives.
-define(NOBODY, atoll_dist_nobody).

%% For a smaller one the way over a spoke is not worth it.
-define(LARGE, 16384).

%% @doc To a neighbour.
-spec new(node()) -> trunk().
new(Node) -> #trunk{node = Node, via = atoll_dist_circuits:via(Node)}.

%% @doc The same of an end: frames that agree on a path say whose they are.
-spec new(node(), End :: pid()) -> trunk().
new(Node, End) -> (new(Node))#trunk{whose = End}.

%% @doc Sends a frame, past the hub there if it is known which end it is for.
-spec pass(binary(), none | pid(), trunk()) -> {ok, Gone :: non_neg_integer(), trunk()} | down.
pass(Frame, none, Trunk) ->
    send([Frame], Trunk);
pass(Frame, End, #trunk{via = {spokes, _}} = Trunk) when byte_size(Frame) >= ?LARGE ->
    {ok, 0, spread(Frame, End, Trunk)};
pass(Frame, End, #trunk{via = Via, helper = none} = Trunk) when Via =:= messages; element(1, Via) =:= spokes ->
    case erlang:send(End, {circuit, node(), Frame}, [nosuspend, noconnect]) of
        ok -> {ok, byte_size(Frame), Trunk};
        %% It waits like any other.
        _ -> send([Frame], Trunk)
    end;
pass(Frame, _End, Trunk) ->
    send([Frame], Trunk).

%% @doc Sends frames, or keeps them: how many bytes of all that was given are gone now.
-spec send([binary()], trunk()) -> {ok, Gone :: non_neg_integer(), trunk()} | down.
send(_Frames, #trunk{via = none}) ->
    down;
send(Frames, #trunk{via = {own, _, Socket}, given = 0} = Trunk) when Socket =/= none ->
    to_socket(Frames, Socket, 0, Trunk);
send(Frames, #trunk{via = {own, _, _}} = Trunk) ->
    {ok, 0, to_writer(Frames, Trunk)};
send(Frames0, #trunk{via = {spokes, _}} = Trunk0) ->
    case lists:partition(fun is_spread/1, Frames0) of
        {[], _} -> in_order(Frames0, Trunk0);
        {Spread, Frames} -> in_order(Frames, lists:foldl(fun(Frame, Trunk) -> spread(Frame, hub, Trunk) end, Trunk0, Spread))
    end;
send(Frames, Trunk) ->
    in_order(Frames, Trunk).

is_spread(Frame) -> byte_size(Frame) >= ?LARGE andalso atoll_dist_circuit_frame:is_free(Frame).

spread(Frame, To, #trunk{via = {spokes, Spokes}, turn = Turn} = Trunk) ->
    ok = atoll_dist_spoke:send(element(Turn, Spokes), To, Frame),
    Trunk#trunk{turn = Turn rem tuple_size(Spokes) + 1}.

in_order(Frames, #trunk{helper = none, node = Node} = Trunk) ->
    send(Frames, {atoll_dist_hub, Node}, node(), 0, Trunk);
in_order(Frames, #trunk{kept = Kept} = Trunk) ->
    {ok, 0, Trunk#trunk{kept = lists:reverse(Frames, Kept)}}.

%% A socket that fails is told of by the connection's process.
to_socket([Frame | Rest] = Frames, Socket, Gone, Trunk) ->
    case atoll_dist_transport:offer(Socket, Frame) of
        ok -> to_socket(Rest, Socket, Gone + byte_size(Frame), Trunk);
        _ -> {ok, Gone, to_writer(Frames, Trunk)}
    end;
to_socket([], _Socket, Gone, Trunk) ->
    {ok, Gone, Trunk}.

to_writer(Frames, #trunk{via = {own, Writer, _}, node = Node, given = Given} = Trunk) ->
    Writer ! {frames, self(), Node, Frames},
    Trunk#trunk{given = Given + iolist_size(Frames)}.

send([Frame | Rest] = Frames, To, Here, Gone, Trunk) ->
    case erlang:send(To, message(Here, Frame, Trunk), [nosuspend, noconnect]) of
        ok -> send(Rest, To, Here, Gone + byte_size(Frame), Trunk);
        nosuspend -> {ok, Gone, waits(Trunk#trunk{kept = lists:reverse(Frames)})};
        noconnect -> down
    end;
send([], _To, _Here, Gone, Trunk) ->
    {ok, Gone, Trunk}.

message(Here, Frame, #trunk{whose = none}) ->
    {circuit, Here, Frame};
message(Here, Frame, #trunk{whose = End}) ->
    case atoll_dist_circuit_frame:head(Frame) of
        {ok, Type, _} when Type =:= open; Type =:= opened -> {circuit, Here, Frame, End};
        _ -> {circuit, Here, Frame}
    end.

waits(#trunk{node = Node} = Trunk) ->
    {_, Ref} = spawn_opt(?MODULE, wait, [Node], [monitor, {priority, high}]),
    Trunk#trunk{helper = Ref}.

%% @doc The helper has ended: sends what was kept.
-spec freed(trunk()) -> {ok, Gone :: non_neg_integer(), trunk()} | down.
freed(#trunk{kept = Kept} = Trunk) ->
    in_order(lists:reverse(Kept), Trunk#trunk{helper = none, kept = []}).

%% @doc `{written, Writer, Node, Bytes}' has come: what is gone, if that writes for this
%% trunk and not for an earlier one.
-spec written(pid(), non_neg_integer(), trunk()) -> {ok, trunk()} | no.
written(Writer, _Bytes, #trunk{via = {spokes, Spokes}} = Trunk) ->
    case lists:member(Writer, tuple_to_list(Spokes)) of
        true -> {ok, Trunk};
        false -> no
    end;
written(Writer, Bytes, #trunk{via = {own, Writer, _}, given = Given} = Trunk) ->
    {ok, Trunk#trunk{given = max(0, Given - Bytes)}};
written(_Writer, _Bytes, _Trunk) ->
    no.

%% @doc The helper that waits now: its monitor tells that it has ended.
-spec helper(trunk()) -> none | reference().
helper(#trunk{helper = Helper}) -> Helper.

%% @private
-spec wait(node()) -> term().
wait(Node) ->
    erlang:send({?NOBODY, Node}, ready, [noconnect]).
