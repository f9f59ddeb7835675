%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The lives that are known to be over: for each node the last one, bounded.
%%
%% A full table makes room by its oldest entry, but only if that has been there
%% for the time it is kept at least. Otherwise the new one is refused. This is
%% what ends a flood: an obituary that was forgotten while copies of it are still
%% on their way would be news again, and be sent on again, by everybody.
%%
%% ```
%% {new, T1} = atoll_obituaries:bury(n1, 3, Now, atoll_obituaries:new(10, 1000)),
%% {known, _} = atoll_obituaries:bury(n1, 2, Now, T1)
%% '''
-module(atoll_obituaries).

-export([new/2, bury/4, last/2, size/1, counts/1]).

-export_type([table/0, life/0]).

-type life() :: non_neg_integer().
%% An incarnation; 0 is before the first.

-record(table, {
    max :: pos_integer(),
    keep_ms :: non_neg_integer(),
    lives = #{} :: #{node() => {life(), Number :: pos_integer()}},
    %% By the number of their arrival, so the oldest comes first.
    order = gb_trees:empty() :: gb_trees:tree(pos_integer(), {node(), atoll_protocol:now_ms()}),
    last = 0 :: non_neg_integer(),
    forgotten = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer()
}).

-opaque table() :: #table{}.

%% @doc An empty table with room for Max nodes, each kept for KeepMs at least.
-spec new(pos_integer(), non_neg_integer()) -> table().
new(Max, KeepMs) ->
    #table{max = Max, keep_ms = KeepMs}.

%% @doc Says that this life is over. It is `known' if that life or a later one was.
-spec bury(node(), life(), atoll_protocol:now_ms(), table()) -> {new | known | refused, table()}.
bury(Node, Life, Now, #table{lives = Lives, order = Order} = Table) ->
    case Lives of
        #{Node := {Last, _}} when Last >= Life ->
            {known, Table};
        #{Node := {_, Number}} ->
            {new, enter(Node, Life, Now, Table#table{order = gb_trees:delete(Number, Order)})};
        #{} when map_size(Lives) < Table#table.max ->
            {new, enter(Node, Life, Now, Table)};
        #{} ->
            make_room(Node, Life, Now, Table)
    end.

make_room(Node, Life, Now, #table{order = Order0, lives = Lives, keep_ms = KeepMs} = Table) ->
    case gb_trees:take_smallest(Order0) of
        {_Number, {Oldest, Since}, Order} when Now - Since >= KeepMs ->
            Room = Table#table{
                order = Order,
                lives = maps:remove(Oldest, Lives),
                forgotten = Table#table.forgotten + 1
            },
            {new, enter(Node, Life, Now, Room)};
        _ ->
            {refused, Table#table{refused = Table#table.refused + 1}}
    end.

enter(Node, Life, Now, #table{lives = Lives, order = Order, last = Last} = Table) ->
    Number = Last + 1,
    Table#table{
        lives = Lives#{Node => {Life, Number}},
        order = gb_trees:insert(Number, {Node, Now}, Order),
        last = Number
    }.

%% @doc The last life of Node that is known to be over, or 0.
-spec last(node(), table()) -> life().
last(Node, #table{lives = Lives}) ->
    case Lives of
        #{Node := {Life, _}} -> Life;
        #{} -> 0
    end.

%% @doc How many nodes are in it.
-spec size(table()) -> non_neg_integer().
size(#table{lives = Lives}) ->
    map_size(Lives).

%% @doc How many were forgotten for newer ones, and refused for want of room.
-spec counts(table()) -> #{forgotten := non_neg_integer(), refused := non_neg_integer()}.
counts(#table{forgotten = Forgotten, refused = Refused}) ->
    #{forgotten => Forgotten, refused => Refused}.
