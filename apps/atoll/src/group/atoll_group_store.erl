%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What one node knows of all groups: those it is in, and those it has left
%% or that were deleted (tombstones), which it remembers so that a stale view cannot
%% bring it back into them.
%%
%% Tombstones are bounded; beyond the bound the oldest is forgotten and counted.
-module(atoll_group_store).

-export([new/2, learn/2, own/1, own/2, find/2, views/1, published/1, co_members/1, known_nodes/1, rivals/1]).
-export([digests/2, missing/3, differs/3, tombstones_dropped/1]).

-export_type([store/0, digests/0]).

-type id() :: atoll_group_view:id().
-type view() :: atoll_group_view:view().

-type digests() :: [{id(), Digest :: non_neg_integer()}].

-record(store, {
    self :: node(),
    views = #{} :: #{id() => view()},
    max_tombstones :: pos_integer(),
    tombstones_dropped = 0 :: non_neg_integer()
}).

-opaque store() :: #store{}.

%% @doc The store of a node that knows of no group.
-spec new(node(), MaxTombstones :: pos_integer()) -> store().
new(Self, MaxTombstones) ->
    #store{self = Self, max_tombstones = MaxTombstones}.

%% @doc Takes in a view. One of a group that this node never had to do with is
%% none of its business.
-spec learn(view(), store()) -> store().
learn(View, #store{self = Self, views = Views} = Store) ->
    Id = atoll_group_view:id(View),
    case Views of
        #{Id := Known} ->
            bound(Store#store{views = Views#{Id := atoll_group_view:merge(Known, View)}});
        #{} ->
            case lists:member(Self, atoll_group_view:nodes(View)) of
                true -> bound(Store#store{views = Views#{Id => View}});
                false -> Store
            end
    end.

bound(#store{self = Self, views = Views, max_tombstones = Max, tombstones_dropped = Dropped} = Store) ->
    Tombstones = [
        {atoll_group_view:counter(View), Id}
     || {Id, View} <- maps:to_list(Views), not atoll_group_view:is_member(Self, View)
    ],
    case length(Tombstones) > Max of
        true ->
            {_, Oldest} = lists:min(Tombstones),
            bound(Store#store{views = maps:remove(Oldest, Views), tombstones_dropped = Dropped + 1});
        false ->
            Store
    end.

%% @doc The groups this node is in, by name, and by age should there be two of a name.
-spec own(store()) -> [view()].
own(#store{self = Self, views = Views}) ->
    Own = [
        {atoll_group_view:age(View), View}
     || View <- maps:values(Views), atoll_group_view:is_member(Self, View)
    ],
    [View || {_, View} <- lists:keysort(1, Own)].

%% @doc All of them, for the next life of this node.
-spec views(store()) -> [view()].
views(#store{views = Views}) ->
    [View || {_, View} <- lists:sort(maps:to_list(Views))].

%% @doc The group of that name that this node is in. Should it be in two, it is
%% the older.
-spec own(atom(), store()) -> none | view().
own(Name, Store) ->
    case [View || View <- own(Store), atoll_group_view:name(View) =:= Name] of
        [View | _] -> View;
        [] -> none
    end.

%% @doc What is known of the group of that identity.
-spec find(id(), store()) -> none | view().
find(Id, #store{views = Views}) ->
    maps:get(Id, Views, none).

%% @doc The groups this node is in, as upper rooms and readers are told.
-spec published(store()) -> [atoll_group_rules:published()].
published(Store) ->
    [
        {
            atoll_group_view:name(View),
            atoll_group_view:id(View),
            atoll_group_view:members(View)
        }
     || View <- own(Store)
    ].

%% @doc The other members of this node's groups, sorted.
-spec co_members(store()) -> [node()].
co_members(#store{self = Self} = Store) ->
    lists:usort([N || View <- own(Store), N <- atoll_group_view:members(View), N =/= Self]).

%% @doc The other nodes that are or were in this node's groups, sorted.
-spec known_nodes(store()) -> [node()].
known_nodes(#store{self = Self} = Store) ->
    lists:usort([N || View <- own(Store), N <- atoll_group_view:nodes(View), N =/= Self]).

%% @doc Groups that this node should leave: it is also in an older one of the same name.
-spec rivals(store()) -> [view()].
rivals(Store) ->
    rivals(own(Store), none).

%% They are sorted by name, then by age.
rivals([View | Views], Name) ->
    case atoll_group_view:name(View) of
        Name -> [View | rivals(Views, Name)];
        Other -> rivals(Views, Other)
    end;
rivals([], _Name) ->
    [].

%% @doc The digests of all groups that `Peer' has or had to do with.
-spec digests(node(), store()) -> digests().
digests(Peer, Store) ->
    [{atoll_group_view:id(View), atoll_group_view:digest(View)} || View <- shared(Peer, Store)].

%% @doc The views to send to `Peer', whose digests are given.
-spec missing(digests(), node(), store()) -> [view()].
missing(Theirs, Peer, #store{views = Views} = Store) ->
    Known = maps:from_list(Theirs),
    %% One that was out for long may have no register any more, and has to know all the same.
    Asked = [View || {Id, _} <- Theirs, #{Id := View} <- [Views]],
    [
        View
     || View <- lists:usort(Asked ++ shared(Peer, Store)),
        maps:get(atoll_group_view:id(View), Known, none) =/= atoll_group_view:digest(View)
    ].

%% @doc Whether `Peer', whose digests are given, may have something to tell.
-spec differs(digests(), node(), store()) -> boolean().
differs(Theirs, Peer, Store) ->
    Theirs -- digests(Peer, Store) =/= [].

shared(Peer, #store{views = Views}) ->
    [V || {_, V} <- lists:sort(maps:to_list(Views)), lists:member(Peer, atoll_group_view:nodes(V))].

%% @doc How many tombstones were forgotten.
-spec tombstones_dropped(store()) -> non_neg_integer().
tombstones_dropped(#store{tombstones_dropped = N}) -> N.
