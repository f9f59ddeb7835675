%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a replica knows of its neighbours: whose life each speaks with, what of it that life has acknowledged, whether it is on line, and when it is told the next thing.
%%
%% One that leaves unanswered what it was told is left alone for no interval, then for one, three, seven, fifteen, and thirty-one each time from then on. So of each neighbour a few
%% messages wait for one that is slow, and no more of them the longer it is slow.
-module(atoll_crdt_peers).
-compile({no_auto_import, [nodes/1]}).

-export([new/0, up/2, down/2, nodes/1]).
-export([speaks/4, acknowledges/3, lost/2, has/3, acked/2, least/2]).
-export([due/1, rested/1, told/3, anew/1]).

-export_type([peers/0, life/0, number_of/0]).

-type life() :: binary().
%% Drawn at the start of a replica, which is the actor of what it changes.

-type number_of() :: non_neg_integer().
%% Of the newest delta in the buffer; where none are kept, of intervals.

-record(peer, {
    %% The life that has spoken last.
    life = unknown :: unknown | life(),
    %% Up to where it has everything, as far as that is known.
    acked = unknown :: unknown | number_of(),
    is_online = true :: boolean(),
    %% Up to where it was told last, how often since it has answered, and how many intervals it is left alone.
    told = 0 :: number_of(),
    unanswered = 0 :: non_neg_integer(),
    pause = 0 :: non_neg_integer()
}).

-opaque peers() :: #{node() => #peer{}}.

%% The longest pause is one less than this power of two.
-define(PAUSES, 5).

%% @doc Nobody.
-spec new() -> peers().
new() -> #{}.

%% @doc A neighbour has come.
-spec up(node(), peers()) -> peers().
up(Node, Peers) -> Peers#{Node => #peer{}}.

%% @doc A neighbour has gone.
-spec down(node(), peers()) -> peers().
down(Node, Peers) -> maps:remove(Node, Peers).

%% @doc All of them.
-spec nodes(peers()) -> [node()].
nodes(Peers) -> maps:keys(Peers).

%% @doc A neighbour has said something: it is on line but for a good-bye, and has lost all if its life is another than before.
-spec speaks(node(), life(), Body :: hello | bye | term(), peers()) -> peers().
speaks(Node, Life, Body, Peers) ->
    case Peers of
        #{Node := #peer{life = Known} = Before} ->
            Peer =
                case {Known, Body} of
                    %% It may not have heard what it was told before.
                    {Life, hello} -> at_once(Before);
                    {Life, _} -> Before;
                    _ -> #peer{life = Life}
                end,
            Peers#{Node := Peer#peer{is_online = Body =/= bye}};
        #{} ->
            Peers
    end.

%% @doc A neighbour has everything up to that number.
-spec acknowledges(node(), number_of(), peers()) -> peers().
acknowledges(Node, Number, Peers) ->
    case Peers of
        #{Node := #peer{acked = Acked, told = Told} = Peer} ->
            Known = Peer#peer{acked = case Acked of unknown -> Number; _ -> max(Acked, Number) end},
            Peers#{Node := case Number >= Told of true -> at_once(Known); false -> Known end};
        #{} ->
            Peers
    end.

%% @doc It is not known any more what a neighbour has.
-spec lost(node(), peers()) -> peers().
lost(Node, Peers) -> maps:update_with(Node, fun(Peer) -> Peer#peer{acked = unknown} end, Peers).

%% @doc A neighbour has everything up to that number without being told.
-spec has(node(), number_of(), peers()) -> peers().
has(Node, Number, Peers) -> maps:update_with(Node, fun(Peer) -> Peer#peer{acked = Number} end, Peers).

%% @doc Up to where a neighbour has everything; one that has not spoken yet is a stranger.
-spec acked(node(), peers()) -> number_of() | unknown | stranger.
acked(Node, Peers) ->
    case Peers of
        #{Node := #peer{life = unknown}} -> stranger;
        #{Node := #peer{acked = Acked}} -> Acked
    end.

%% @doc Up to where all of those have everything of whom it is known; or that number.
-spec least(number_of(), peers()) -> number_of().
least(Number, Peers) -> lists:min([Number | [Acked || #peer{acked = Acked} <- maps:values(Peers), is_integer(Acked)]]).

%% @doc Those that are on line, and have answered or were left alone for long enough; in order.
-spec due(peers()) -> [node()].
due(Peers) -> lists:sort([Node || {Node, #peer{is_online = true, pause = 0}} <- maps:to_list(Peers)]).

%% @doc An interval is over.
-spec rested(peers()) -> peers().
rested(Peers) -> maps:map(fun(_, #peer{pause = Pause} = Peer) -> Peer#peer{pause = max(0, Pause - 1)} end, Peers).

%% @doc These are told something that is to be acknowledged with that number, or a greater one.
-spec told([node()], number_of(), peers()) -> peers().
told(Nodes, Number, Peers) ->
    Told = fun(#peer{unanswered = N} = Peer) -> Peer#peer{told = Number, unanswered = N + 1, pause = (1 bsl min(N, ?PAUSES)) - 1} end,
    lists:foldl(fun(Node, Acc) -> maps:update_with(Node, Told, Acc) end, Peers, Nodes).

%% @doc What was not answered may not have been heard: all can be told something at once.
-spec anew(peers()) -> peers().
anew(Peers) -> maps:map(fun(_, Peer) -> at_once(Peer) end, Peers).

at_once(Peer) -> Peer#peer{unanswered = 0, pause = 0}.
