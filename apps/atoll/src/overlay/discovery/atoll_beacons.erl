%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The beacons that a node hears of: contacts that say, by a number that
%% grows, that they are alive.
%%
%% What counts is that a number is seen to grow. The first sight of one proves
%% nothing, because it may have gone from node to node since its source died:
%% it is `new', and carried on for a while, so that a beacon spreads fast, but only
%% one that has grown is `fresh'. One that has not grown for the time limit is
%% `stale' and stays so until a higher number is seen, whoever still carries the
%% old one.
%%
%% Only the smallest-named fresh ones and the smallest-named new ones are carried.
-module(atoll_beacons).

-export([new/3, raise/4, merge/3, expire/2, fresh/1, table/1, counts/1]).

-export_type([beacons/0, stamp/0, table/0]).

-type stamp() :: {Incarnation :: pos_integer(), Number :: pos_integer()}.
%% Grows, also over a restart of its node.

-type table() :: [entry()].
%% In the order of the names.

-type entry() :: {node(), stamp()}.
%% Kept and carried on as the term that came: what nodes of one VM carry is then seen to be equal without
%% a look inside.

-record(beacon, {
    entry :: entry(),
    state :: fresh | new | stale,
    %% When it was seen to grow, or first.
    since :: atoll_protocol:now_ms()
}).

-record(beacons, {
    %% How many of each state are carried, how many are remembered, and for how
    %% long one that does not grow is believed.
    carried :: pos_integer(),
    max :: pos_integer(),
    limit_ms :: pos_integer(),
    known = #{} :: #{node() => #beacon{}},
    fresh = [] :: ordsets:ordset(node()),
    new = [] :: ordsets:ordset(node()),
    table = [] :: table(),
    forgotten = 0 :: non_neg_integer()
}).

-opaque beacons() :: #beacons{}.

%% @doc No beacons; Carried of a kind travel, Max are remembered.
-spec new(pos_integer(), pos_integer(), pos_integer()) -> beacons().
new(Carried, Max, LimitMs) ->
    #beacons{carried = Carried, max = Max, limit_ms = LimitMs}.

%% @doc The own beacon, one higher: than it was, and than anybody has seen it.
-spec raise(node(), pos_integer(), atoll_protocol:now_ms(), beacons()) -> beacons().
raise(Self, Incarnation, Now, #beacons{known = Known} = Beacons) ->
    Stamp =
        case Known of
            #{Self := #beacon{entry = {_, {Last, Number}}}} when Last >= Incarnation -> {Last, Number + 1};
            #{} -> {Incarnation, 1}
        end,
    carry(enter({Self, Stamp}, fresh, Now, Beacons)).

%% @doc What a neighbour carries.
-spec merge(table(), atoll_protocol:now_ms(), beacons()) -> beacons().
merge(Table, Now, #beacons{table = Own} = Beacons) ->
    case newer(Table, Own) of
        [] -> Beacons;
        Newer -> carry(lists:foldl(fun(Entry, B) -> see(Entry, Now, B) end, Beacons, Newer))
    end.

%% What is not carried already. Both are in the order of names, and most of what comes is
%% what is here.
newer([Entry | Table], [Entry | Own]) -> newer(Table, Own);
newer([{Node, Stamp} | Table], [{Node, Seen} | Own]) when Stamp =< Seen -> newer(Table, Own);
newer([{Node, _} | _] = Table, [{Other, _} | Own]) when Other < Node -> newer(Table, Own);
newer([Entry | Table], Own) -> [Entry | newer(Table, Own)];
newer([], _Own) -> [].

see({Node, Stamp} = Entry, Now, #beacons{known = Known} = Beacons) ->
    case Known of
        #{Node := #beacon{entry = {_, Seen}}} when Stamp =< Seen -> Beacons;
        #{Node := #beacon{state = fresh} = Beacon} ->
            %% By far the most: it stays where it is.
            Beacons#beacons{known = Known#{Node := Beacon#beacon{entry = Entry, since = Now}}};
        #{Node := _} -> enter(Entry, fresh, Now, Beacons);
        #{} -> enter(Entry, new, Now, make_room(Beacons))
    end.

%% The one that has not grown for longest is forgotten.
make_room(#beacons{known = Known, max = Max} = Beacons) when map_size(Known) < Max ->
    Beacons;
make_room(#beacons{known = Known} = Beacons) ->
    {_, Oldest} = lists:min([{Since, Node} || {Node, #beacon{since = Since}} <- maps:to_list(Known)]),
    Beacons#beacons{
        known = maps:remove(Oldest, Known),
        fresh = ordsets:del_element(Oldest, Beacons#beacons.fresh),
        new = ordsets:del_element(Oldest, Beacons#beacons.new),
        forgotten = Beacons#beacons.forgotten + 1
    }.

enter({Node, _} = Entry, fresh, Now, #beacons{known = Known, fresh = Fresh, new = New} = Beacons) ->
    Beacons#beacons{
        known = Known#{Node => #beacon{entry = Entry, state = fresh, since = Now}},
        fresh = ordsets:add_element(Node, Fresh),
        new = ordsets:del_element(Node, New)
    };
enter({Node, _} = Entry, new, Now, #beacons{known = Known, new = New} = Beacons) ->
    Beacons#beacons{
        known = Known#{Node => #beacon{entry = Entry, state = new, since = Now}},
        new = ordsets:add_element(Node, New)
    }.

%% @doc Those that have not grown for the time limit are stale from now on.
-spec expire(atoll_protocol:now_ms(), beacons()) -> beacons().
expire(Now, #beacons{known = Known, fresh = Fresh, new = New, limit_ms = Limit} = Beacons) ->
    Over = [
        Node
     || Node <- Fresh ++ New, #{Node := #beacon{since = Since}} <- [Known], Now - Since >= Limit
    ],
    case Over of
        [] ->
            Beacons;
        _ ->
            carry(Beacons#beacons{
                known = lists:foldl(
                    fun(Node, K) -> maps:update_with(Node, fun(B) -> B#beacon{state = stale} end, K) end, Known, Over
                ),
                fresh = Fresh -- Over,
                new = New -- Over
            })
    end.

carry(#beacons{known = Known, fresh = Fresh, new = New, carried = Carried} = Beacons) ->
    Nodes = lists:umerge(lists:sublist(Fresh, Carried), lists:sublist(New, Carried)),
    Beacons#beacons{table = [(maps:get(Node, Known))#beacon.entry || Node <- Nodes]}.

%% @doc Those that were seen to grow within the time limit.
-spec fresh(beacons()) -> ordsets:ordset(node()).
fresh(#beacons{fresh = Fresh}) -> Fresh.

%% @doc What to carry.
-spec table(beacons()) -> table().
table(#beacons{table = Table}) -> Table.

%% @doc For people: how many of each state, and how many were forgotten.
-spec counts(beacons()) -> #{atom() => non_neg_integer()}.
counts(#beacons{known = Known, fresh = Fresh, new = New, forgotten = Forgotten}) ->
    #{
        fresh => length(Fresh),
        new => length(New),
        stale => map_size(Known) - length(Fresh) - length(New),
        forgotten => Forgotten
    }.
