%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The way over which a process sends frames of circuits to a neighbour: to the hub
%% there, over the connection with it, in order and without ever waiting.
%%
%% A connection that is busy takes nothing. What was to be sent is kept then, until a
%% helper that waits in the process's stead has got something through; so one process
%% sends all frames of a trunk, and they stay in order over connections with lanes too.
%%
%% To a neighbour with which a circuit has a connection of its own frames go by the process
%% that writes to it. It tells what is gone.
%%
%% Promised: frames arrive in the order in which they were given, up to some frame after
%% which none arrives. It bounds nothing: who sends counts what is on its way.
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
    kept = [] :: [binary()]
}).

-opaque trunk() :: #trunk{}.

%% Nobody is registered by it: a message to it ends where it arrives.
-define(NOBODY, atoll_dist_nobody).

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
send(Frames, #trunk{helper = none, node = Node} = Trunk) ->
    send(Frames, {atoll_dist_hub, Node}, node(), 0, Trunk);
send(Frames, #trunk{kept = Kept} = Trunk) ->
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
    send(lists:reverse(Kept), Trunk#trunk{helper = none, kept = []}).

%% @doc Whether that process writes for this trunk: it tells `{written, Writer, Node, Bytes}'
%% of what is gone.
-spec is_of(pid(), trunk()) -> boolean().
is_of(Writer, #trunk{via = Via}) -> Via =:= {own, Writer}.

%% @doc The helper that waits now: its monitor tells that it has ended.
-spec helper(trunk()) -> none | reference().
helper(#trunk{helper = Helper}) -> Helper.

%% @private
-spec wait(node()) -> term().
wait(Node) ->
    erlang:send({?NOBODY, Node}, ready, [noconnect]).
