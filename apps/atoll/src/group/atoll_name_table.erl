%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a node knows of all names of its groups: a slot for each
%% ({@link atoll_name_slot}), and which of them are its own. Data only.
-module(atoll_name_table).

-export([new/0, slot/3, set/4, slots/2, ids/1, owns/3, owns_not/3, own/2, sizes/1]).

-export_type([table/0]).

-type id() :: atoll_group_view:id().
-type name() :: term().

-record(table, {
    slots = #{} :: #{id() => #{name() => atoll_name_slot:slot()}},
    %% The names that are this node's, held or put.
    own = #{} :: #{id() => #{name() => []}}
}).

-opaque table() :: #table{}.

%% @doc No names.
-spec new() -> table().
new() -> #table{}.

%% @doc What is known of that name; an empty slot where that is nothing.
-spec slot(id(), name(), table()) -> atoll_name_slot:slot().
slot(Id, Name, #table{slots = All}) ->
    case All of
        #{Id := #{Name := Slot}} -> Slot;
        #{} -> atoll_name_slot:new()
    end.

%% @doc This is known of it now. An empty slot takes no room.
-spec set(id(), name(), atoll_name_slot:slot(), table()) -> table().
set(Id, Name, Slot, #table{slots = All} = Table) ->
    Slots = maps:get(Id, All, #{}),
    case atoll_name_slot:is_empty(Slot) of
        false -> Table#table{slots = All#{Id => Slots#{Name => Slot}}};
        true -> Table#table{slots = without(Name, Id, Slots, All)}
    end.

%% @doc All names of a group that something is known of.
-spec slots(id(), table()) -> #{name() => atoll_name_slot:slot()}.
slots(Id, #table{slots = All}) -> maps:get(Id, All, #{}).

%% @doc The groups with such names, sorted.
-spec ids(table()) -> [id()].
ids(#table{slots = All}) -> lists:sort(maps:keys(All)).

%% @doc The name is this node's.
-spec owns(id(), name(), table()) -> table().
owns(Id, Name, #table{own = Own} = Table) ->
    Table#table{own = Own#{Id => (maps:get(Id, Own, #{}))#{Name => []}}}.

%% @doc It is not any more.
-spec owns_not(id(), name(), table()) -> table().
owns_not(Id, Name, #table{own = Own} = Table) ->
    #{Id := Names} = Own,
    Table#table{own = without(Name, Id, Names, Own)}.

%% @doc The names of a group that are this node's, sorted.
-spec own(id(), table()) -> [name()].
own(Id, #table{own = Own}) -> lists:sort(maps:keys(maps:get(Id, Own, #{}))).

%% @doc How many names there are, and how many of them are this node's.
-spec sizes(table()) -> {non_neg_integer(), non_neg_integer()}.
sizes(#table{slots = All, own = Own}) -> {size_of(All), size_of(Own)}.

size_of(Map) -> lists:sum([map_size(Names) || Names <- maps:values(Map)]).

without(Name, Id, Names, All) ->
    case maps:remove(Name, Names) of
        Left when map_size(Left) =:= 0 -> maps:remove(Id, All);
        Left -> All#{Id => Left}
    end.
