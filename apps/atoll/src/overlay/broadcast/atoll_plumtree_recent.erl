%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A table with a bound that forgets what was used least recently.
%%
%% When an entry too many is stored, the oldest eighth goes at once, so that the
%% search for it is paid for by many. Among equally old ones the order of the keys
%% decides; they are nodes, and so it is the same order in every VM.
-module(atoll_plumtree_recent).

-export([new/1, find/2, store/4, touch/4, change/3, map/2, to_list/1, size/1, forgotten/1]).

-export_type([table/1]).

-record(table, {
    max :: pos_integer(),
    %% When it was last used, and what it is.
    entries = #{} :: #{node() => {atoll_protocol:now_ms(), term()}},
    forgotten = 0 :: non_neg_integer()
}).

-opaque table(_Value) :: #table{}.

%% Two uses that are less than this apart count as one.
-define(GRAIN_MS, 1000).

%% @doc An empty table for at most `Max' entries.
-spec new(pos_integer()) -> table(_).
new(Max) ->
    #table{max = Max}.

%% @doc The value of a key; to look is not to use.
-spec find(node(), table(Value)) -> {ok, Value} | error.
find(Key, #table{entries = Entries}) ->
    case Entries of
        #{Key := {_, Value}} -> {ok, Value};
        #{} -> error
    end.

%% @doc Stores a value, and forgets the oldest if it is one too many.
-spec store(node(), Value, atoll_protocol:now_ms(), table(Value)) -> table(Value).
store(Key, Value, Now, #table{max = Max, entries = Entries0} = Table) ->
    Entries = Entries0#{Key => {Now, Value}},
    case map_size(Entries) > Max of
        true -> forget(Key, Table#table{entries = Entries});
        false -> Table#table{entries = Entries}
    end.

%% @doc Says that the entry, whose value the caller holds, is in use.
-spec touch(node(), Value, atoll_protocol:now_ms(), table(Value)) -> table(Value).
touch(Key, Value, Now, #table{entries = Entries} = Table) ->
    case Entries of
        #{Key := {Used, _}} when Now - Used >= ?GRAIN_MS ->
            Table#table{entries = Entries#{Key := {Now, Value}}};
        #{} ->
            Table
    end.

%% @doc Another value of a key that there is; to change it is not to use it.
-spec change(node(), Value, table(Value)) -> table(Value).
change(Key, Value, #table{entries = Entries} = Table) ->
    #{Key := {Used, _}} = Entries,
    Table#table{entries = Entries#{Key := {Used, Value}}}.

forget(Newest, #table{max = Max, entries = Entries, forgotten = Forgotten} = Table) ->
    Ages = lists:sort([{Used, Key} || {Key, {Used, _}} <- maps:to_list(maps:remove(Newest, Entries))]),
    Oldest = [Key || {_, Key} <- lists:sublist(Ages, max(1, Max div 8))],
    Table#table{entries = maps:without(Oldest, Entries), forgotten = Forgotten + length(Oldest)}.

%% @doc Changes every value.
-spec map(fun((node(), Value) -> Value), table(Value)) -> table(Value).
map(Fun, #table{entries = Entries} = Table) ->
    Table#table{entries = maps:map(fun(Key, {Used, Value}) -> {Used, Fun(Key, Value)} end, Entries)}.

%% @doc All entries, in the order of their keys.
-spec to_list(table(Value)) -> [{node(), Value}].
to_list(#table{entries = Entries}) ->
    lists:sort([{Key, Value} || {Key, {_, Value}} <- maps:to_list(Entries)]).

%% @doc How many there are.
-spec size(table(_)) -> non_neg_integer().
size(#table{entries = Entries}) ->
    map_size(Entries).

%% @doc How many were forgotten so far.
-spec forgotten(table(_)) -> non_neg_integer().
forgotten(#table{forgotten = Forgotten}) ->
    Forgotten.
