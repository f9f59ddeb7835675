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
%% To a neighbour with which a circuit has a connection of its own frames go by the process
%% that writes to it. It tells what is gone.
%%
%% Promised: frames arrive in the order in which they were given, but for those that may
%% overtake others, up to some frame after which none arrives. It bounds nothing: who sends counts what is on its way.
-module(atoll_dist_trunk).

-export([new/1, send/2, freed/1, helper/1, is_of/2]).
-export([wait/1]).

-export_type([trunk/0]).

-record(trunk, {
    node :: node(),
    via :: atoll_dist_circuits:via() | none,
    %% Which gives one message when it ends, that of the monitor on it.
    helper = none :: none | reference(),
    %% The latest first.
    kept = [] :: [binary()],
    %% Whose turn it is of the spokes.
    turn = 1 :: pos_integer()
}).

-opaque trunk() :: #trunk{}.

%% Nobody is registered by it: a message to it ends where it arrives.
-define(NOBODY, atoll_dist_nobody).

%% For a smaller one the way over a spoke is not worth it.
-define(LARGE, 16384).

%% @doc To a neighbour.
-spec new(node()) -> trunk().
new(Node) -> #trunk{node = Node, via = atoll_dist_circuits:via(Node)}.

%% @doc Sends frames, or keeps them: how many bytes of all that was given are gone now.
-spec send([binary()], trunk()) -> {ok, Gone :: non_neg_integer(), trunk()} | down.
send(_Frames, #trunk{via = none}) ->
    down;
send(Frames, #trunk{via = {own, Writer}, node = Node} = Trunk) ->
    Writer ! {frames, self(), Node, Frames},
    {ok, 0, Trunk};
send(Frames0, #trunk{via = {spokes, _}} = Trunk0) ->
    case lists:partition(fun is_spread/1, Frames0) of
        {[], _} -> in_order(Frames0, Trunk0);
        {Spread, Frames} -> in_order(Frames, lists:foldl(fun spread/2, Trunk0, Spread))
    end;
send(Frames, Trunk) ->
    in_order(Frames, Trunk).

is_spread(Frame) -> byte_size(Frame) >= ?LARGE andalso atoll_dist_circuit_frame:is_free(Frame).

spread(Frame, #trunk{via = {spokes, Spokes}, turn = Turn} = Trunk) ->
    ok = atoll_dist_spoke:send(element(Turn, Spokes), Frame),
    Trunk#trunk{turn = Turn rem tuple_size(Spokes) + 1}.

in_order(Frames, #trunk{helper = none, node = Node} = Trunk) ->
    send(Frames, {atoll_dist_hub, Node}, node(), 0, Trunk);
in_order(Frames, #trunk{kept = Kept} = Trunk) ->
    {ok, 0, Trunk#trunk{kept = lists:reverse(Frames, Kept)}}.

send([Frame | Rest] = Frames, To, Here, Gone, Trunk) ->
    case erlang:send(To, {circuit, Here, Frame}, [nosuspend, noconnect]) of
        ok -> send(Rest, To, Here, Gone + byte_size(Frame), Trunk);
        nosuspend -> {ok, Gone, waits(Trunk#trunk{kept = lists:reverse(Frames)})};
        noconnect -> down
    end;
send([], _To, _Here, Gone, Trunk) ->
    {ok, Gone, Trunk}.

waits(#trunk{node = Node} = Trunk) ->
    {_, Ref} = spawn_opt(?MODULE, wait, [Node], [monitor, {priority, high}]),
    Trunk#trunk{helper = Ref}.

%% @doc The helper has ended: sends what was kept.
-spec freed(trunk()) -> {ok, Gone :: non_neg_integer(), trunk()} | down.
freed(#trunk{kept = Kept} = Trunk) ->
    in_order(lists:reverse(Kept), Trunk#trunk{helper = none, kept = []}).

%% @doc Whether that process writes for this trunk: it tells `{written, Writer, Node, Bytes}'
%% of what is gone.
-spec is_of(pid(), trunk()) -> boolean().
is_of(Writer, #trunk{via = {spokes, Spokes}}) -> lists:member(Writer, tuple_to_list(Spokes));
is_of(Writer, #trunk{via = Via}) -> Via =:= {own, Writer}.

%% @doc The helper that waits now: its monitor tells that it has ended.
-spec helper(trunk()) -> none | reference().
helper(#trunk{helper = Helper}) -> Helper.

%% @private
-spec wait(node()) -> term().
wait(Node) ->
    erlang:send({?NOBODY, Node}, ready, [noconnect]).
