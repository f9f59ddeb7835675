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
%% To a neighbour with which a circuit has a connection of its own frames go to the first of
%% its lanes, and large ones that may overtake others by turns to all: to the socket at once
%% if that has nothing to write, and by the process that writes to it if it has, or if such are
%% on their way, or if it has TLS. That process tells what is gone. A lane to whose process
%% something is on its way is passed over while another one is free.
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
    %% Whose turn it is of the spokes, or of the lanes.
    turn = 1 :: pos_integer(),
    %% What each writer has and has not told to be gone.
    given = #{} :: #{pid() => pos_integer()}
}).

-opaque trunk() :: #trunk{}.

%% Nobody is registered by it: a message to it ends where it arrives.
-define(NOBODY, atoll_dist_nobody).

%% For a smaller one the way over a spoke is not worth it, and on the first lane it waits least.
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
    {_, Spread} = spread(Frame, End, Trunk),
    {ok, 0, Spread};
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
send(Frames0, #trunk{via = Via} = Trunk0) ->
    case several(Via) andalso lists:partition(fun is_spread/1, Frames0) of
        {[_ | _] = Large, Frames} ->
            {Gone, Trunk} = lists:mapfoldl(fun(Frame, T) -> spread(Frame, hub, T) end, Trunk0, Large),
            in_order(Frames, lists:sum(Gone), Trunk);
        _ ->
            in_order(Frames0, 0, Trunk0)
    end.

several({spokes, _}) -> true;
several({own, Lanes}) -> tuple_size(Lanes) > 1;
several(messages) -> false.

is_spread(Frame) -> byte_size(Frame) >= ?LARGE andalso atoll_dist_circuit_frame:is_free(Frame).

%% What of it is gone.
spread(Frame, To, #trunk{via = {spokes, Spokes}, turn = Turn} = Trunk) ->
    ok = atoll_dist_spoke:send(element(Turn, Spokes), To, Frame),
    {0, Trunk#trunk{turn = next(Turn, Spokes)}};
spread(Frame, _To, #trunk{via = {own, Lanes}, turn = Turn, given = Given} = Trunk) ->
    Free = free(Turn, tuple_size(Lanes), Turn, Lanes, Given),
    to_lane([Frame], element(Free, Lanes), 0, Trunk#trunk{turn = next(Free, Lanes)}).

next(Turn, Ways) -> Turn rem tuple_size(Ways) + 1.

%% Of so many from I on the first that is; else that whose turn it is.
free(_I, 0, Turn, _Lanes, _Given) ->
    Turn;
free(I, Left, Turn, Lanes, Given) ->
    case is_map_key(element(1, element(I, Lanes)), Given) of
        true -> free(next(I, Lanes), Left - 1, Turn, Lanes, Given);
        false -> I
    end.

in_order(Frames, Gone0, #trunk{via = {own, Lanes}} = Trunk0) ->
    {Gone, Trunk} = to_lane(Frames, element(1, Lanes), Gone0, Trunk0),
    {ok, Gone, Trunk};
in_order(Frames, Gone, #trunk{helper = none, node = Node} = Trunk) ->
    send(Frames, {atoll_dist_hub, Node}, node(), Gone, Trunk);
in_order(Frames, Gone, #trunk{kept = Kept} = Trunk) ->
    {ok, Gone, Trunk#trunk{kept = lists:reverse(Frames, Kept)}}.

%% A socket that fails is told of by the connection's process.
to_lane([], _Lane, Gone, Trunk) ->
    {Gone, Trunk};
to_lane(Frames, {Writer, Socket}, Gone, #trunk{given = Given} = Trunk) when Socket =:= none; is_map_key(Writer, Given) ->
    {Gone, to_writer(Frames, Writer, Trunk)};
to_lane([Frame | Rest] = Frames, {Writer, Socket} = Lane, Gone, Trunk) ->
    case atoll_dist_transport:offer(Socket, Frame) of
        ok -> to_lane(Rest, Lane, Gone + byte_size(Frame), Trunk);
        _ -> {Gone, to_writer(Frames, Writer, Trunk)}
    end.

to_writer(Frames, Writer, #trunk{node = Node, given = Given} = Trunk) ->
    Writer ! {frames, self(), Node, Frames},
    Bytes = iolist_size(Frames),
    Trunk#trunk{given = maps:update_with(Writer, fun(Before) -> Before + Bytes end, Bytes, Given)}.

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
    in_order(lists:reverse(Kept), 0, Trunk#trunk{helper = none, kept = []}).

%% @doc `{written, Writer, Node, Bytes}' has come: what is gone, if that writes for this
%% trunk and not for an earlier one.
-spec written(pid(), non_neg_integer(), trunk()) -> {ok, trunk()} | no.
written(Writer, _Bytes, #trunk{via = {spokes, Spokes}} = Trunk) ->
    case lists:member(Writer, tuple_to_list(Spokes)) of
        true -> {ok, Trunk};
        false -> no
    end;
written(Writer, Bytes, #trunk{via = {own, _}, given = Given} = Trunk) when is_map_key(Writer, Given) ->
    case Given of
        #{Writer := Before} when Before > Bytes -> {ok, Trunk#trunk{given = Given#{Writer := Before - Bytes}}};
        #{} -> {ok, Trunk#trunk{given = maps:remove(Writer, Given)}}
    end;
written(_Writer, _Bytes, _Trunk) ->
    no.

%% @doc The helper that waits now: its monitor tells that it has ended.
-spec helper(trunk()) -> none | reference().
helper(#trunk{helper = Helper}) -> Helper.

%% @private
-spec wait(node()) -> term().
wait(Node) ->
    erlang:send({?NOBODY, Node}, ready, [noconnect]).
