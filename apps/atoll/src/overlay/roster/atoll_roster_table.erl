%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What is known of every node of a cluster: pure data that merges to the same
%% whatever the order, however often.
%%
%% Each node has an entry: its incarnation, and whether that life goes on (`alive'),
%% ended in order (`left') or was declared over (`dead'). Of two entries the higher
%% incarnation wins; at equal ones an end wins over `alive', and `left' over `dead':
%% who took leave and was then missed has left.
%%
%% Bounds. So many live members have room; more are refused. So many ends are
%% remembered, or as many as this table had live members at once if that is more: all of these may
%% end in one moment, and whoever has not heard of an end brings back what was forgotten. The end
%% that came first here makes room for the next. Those refused and forgotten are counted. The owner's
%% own entry has room always.
%%
%% The entries stand in {@link atoll_buckets}, by which two tables are compared and what
%% differs is found, without a look at what is equal. Ends have no mark there, so they do
%% not count: each node forgets its own.
%%
%% ```
%% T0 = atoll_roster_table:new(n1, 1000, 100),
%% {{changed, unknown}, T1} = atoll_roster_table:put(n2, {7, alive}, T0),
%% {known, T1} = atoll_roster_table:put(n2, {6, dead}, T1)
%% '''
-module(atoll_roster_table).

-export([new/3, owned_by/2, put/3, wins/2, entry/2, alive/1, dead/1, successors/3, dead_after/2]).
-export([root/1, hashes/1, differing/2, bucket/2, newer/3, counts/1]).

-export_type([table/0, entry/0, life/0, status/0]).

-type life() :: pos_integer().
%% The incarnation of a node.

-type status() :: alive | left | dead.

-type entry() :: {life(), status()}.
%% As it travels.

-type kept() ::
    %% The term that came: of a live one that came while no end was remembered, before all that are
    %% now, and of the owner. In a large cluster these are nearly all.
    entry()
    %% With the number of its arrival here.
    | {life(), status(), Number :: pos_integer()}.

-record(table, {
    owner :: node(),
    max_members :: pos_integer(),
    max_gone :: non_neg_integer(),
    %% Of each node a kept(); the live ones are marked with their lives.
    buckets = atoll_buckets:new() :: atoll_buckets:buckets(),
    alive = 0 :: non_neg_integer(),
    %% How many were alive at once; never less again.
    most = 0 :: non_neg_integer(),
    %% The live one that comes after the owner on the ring.
    next = none :: none | place(),
    %% Ends by the number of their arrival.
    gone = gb_trees:empty() :: gb_trees:tree(pos_integer(), node()),
    last = 0 :: non_neg_integer(),
    forgotten = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer()
}).

-opaque table() :: #table{}.

-type place() :: {Distance :: non_neg_integer(), node()}.
%% On the ring, as seen from some node.

-define(RANGE, (1 bsl 32)).

%% @doc An empty table of this node.
-spec new(node(), pos_integer(), non_neg_integer()) -> table().
new(Owner, MaxMembers, MaxGone) ->
    #table{owner = Owner, max_members = MaxMembers, max_gone = MaxGone}.

%% @doc The table of another node that knows the same.
-spec owned_by(node(), table()) -> table().
owned_by(Owner, Table) ->
    Table#table{owner = Owner, next = next(Owner, Table)}.

%% @doc Of two entries of one node the one that counts.
-spec wins(entry(), entry()) -> entry().
wins(A, B) ->
    %% As terms, a later life is greater, and alive < dead < left.
    max(A, B).

%% @doc Merges one entry; says what was known before if that changed.
-spec put(node(), entry(), table()) -> {known | refused | {changed, unknown | entry()}, table()}.
put(Node, Entry, #table{owner = Owner, alive = Alive, max_members = Max} = Table) ->
    case {entry(Node, Table), Entry} of
        %% As wins/2 says.
        {Before, _} when Before =/= unknown, Before >= Entry ->
            {known, Table};
        {{_, alive} = Before, _} ->
            {{changed, Before}, store(Node, Entry, remove(Node, Table))};
        {_, {_, alive}} when Alive >= Max, Node =/= Owner ->
            {refused, Table#table{refused = Table#table.refused + 1}};
        {unknown, _} ->
            {{changed, unknown}, store(Node, Entry, Table)};
        {Before, _} ->
            {{changed, Before}, store(Node, Entry, remove(Node, Table))}
    end.

%% Nothing is known of the node.
store(Node, Entry, Table0) ->
    {Kept, Table} = keep(Node, Entry, Table0),
    forget(appear(Node, Kept, Table)).

remove(Node, #table{buckets = Buckets0, gone = Gone} = Table0) ->
    {Kept, Buckets} = atoll_buckets:take(Node, Buckets0),
    Table = disappeared(Node, Kept, Table0#table{buckets = Buckets}),
    case number(Kept) of
        0 -> Table;
        Number -> Table#table{gone = gb_trees:delete_any(Number, Gone)}
    end.

appear(Node, Kept, #table{buckets = Buckets} = Table) when element(2, Kept) =:= alive ->
    #table{owner = Owner, alive = Alive, most = Most, next = Next} = Table,
    Table#table{
        buckets = atoll_buckets:put(Node, Kept, element(1, Kept), Buckets),
        alive = Alive + 1,
        most = max(Alive + 1, Most),
        next = nearer(Owner, Node, Next)
    };
appear(Node, Kept, #table{buckets = Buckets} = Table) ->
    Table#table{buckets = atoll_buckets:put(Node, Kept, Buckets)}.

disappeared(Node, Kept, #table{buckets = Buckets, alive = Alive} = Table0) when element(2, Kept) =:= alive ->
    Table = Table0#table{buckets = atoll_buckets:mark(Node, element(1, Kept), Buckets), alive = Alive - 1},
    case Table of
        #table{owner = Owner, next = {_, Node}} -> Table#table{next = next(Owner, Table)};
        #table{} -> Table
    end;
disappeared(_Node, _Ended, Table) ->
    Table.

-spec keep(node(), entry(), table()) -> {kept(), table()}.
keep(Owner, Entry, #table{owner = Owner} = Table) ->
    {Entry, Table};
keep(Node, {Life, Status} = Entry, #table{last = Last, gone = Gone} = Table) ->
    Number = Last + 1,
    case {Status, gb_trees:is_empty(Gone)} of
        {alive, true} -> {Entry, Table};
        {alive, false} -> {{Life, Status, Number}, Table#table{last = Number}};
        {_, _} -> {{Life, Status, Number}, Table#table{last = Number, gone = gb_trees:insert(Number, Node, Gone)}}
    end.

forget(#table{gone = Gone, max_gone = Max, most = Most} = Table) ->
    case gb_trees:size(Gone) > max(Max, Most) of
        true ->
            {_, Oldest} = gb_trees:smallest(Gone),
            forget(remove(Oldest, Table#table{forgotten = Table#table.forgotten + 1}));
        false ->
            Table
    end.

%% @doc What is known of a node.
-spec entry(node(), table()) -> entry() | unknown.
entry(Node, #table{buckets = Buckets}) ->
    case atoll_buckets:find(Node, Buckets) of
        {ok, Kept} -> travelling(Kept);
        error -> unknown
    end.

travelling({_, _} = Entry) -> Entry;
travelling({Life, Status, _Number}) -> {Life, Status}.

number({_, _}) -> 0;
number({_, _, Number}) -> Number.

%% @doc The live ones, in the order of their names.
-spec alive(table()) -> [node()].
alive(Table) ->
    lists:sort(fold(fun(Node, Nodes) -> [Node | Nodes] end, [], Table)).

fold(Fun, Acc0, #table{buckets = Buckets}) ->
    atoll_buckets:fold(
        fun
            (Node, Kept, Acc) when element(2, Kept) =:= alive -> Fun(Node, Acc);
            (_Node, _Ended, Acc) -> Acc
        end,
        Acc0,
        Buckets
    ).

%% @doc The dead that are remembered, in the order of their names.
-spec dead(table()) -> [node()].
dead(#table{gone = Gone} = Table) ->
    lists:sort([Node || Node <- gb_trees:values(Gone), element(2, entry(Node, Table)) =:= dead]).

%% @doc The so many live ones that come after this node on a ring in the order of a hash of
%% the names, the next one first.
-spec successors(node(), pos_integer(), table()) -> [node()].
successors(Owner, 1, #table{owner = Owner, next = Next}) ->
    [Node || {_, Node} <- [Next]];
successors(Node, 1, Table) ->
    [Next || {_, Next} <- [next(Node, Table)]];
successors(Node, Count, Table) ->
    lists:sublist([Other || {_, Other} <- live(Node, Table)], Count).

next(Node, Table) ->
    fold(fun(Other, Next) -> nearer(Node, Other, Next) end, none, Table).

nearer(Node, Node, Next) -> Next;
nearer(Node, Other, none) -> distance(Node, Other);
nearer(Node, Other, Next) -> min(distance(Node, Other), Next).

live(Node, Table) ->
    lists:sort(fold(fun(Other, Acc) -> [distance(Node, Other) || Other =/= Node] ++ Acc end, [], Table)).

%% @doc The dead on that ring between this node and the next live one that knows of them: one
%% that was here before they ended, as far as this table can tell. Newcomers are not told of those
%% who ended before.
-spec dead_after(node(), table()) -> [node()].
dead_after(Node, Table) ->
    Dead = lists:sort([distance(Node, D) || D <- dead(Table)]),
    Next = [distance(Node, N) || Dead =/= [], N <- successors(Node, 1, Table)],
    Mine = mine(Dead, Next, none, Table),
    %% Only where the next one has come since do those after it matter, and these are many.
    case [D || D <- Mine, Next =/= [], [distance(Node, D)] > Next] of
        [] -> Mine;
        _ -> mine(Dead, live(Node, Table), none, Table)
    end.

%% Oldest: the number of the one that has been here longest of those on the way, an atom if there is none:
%% as a term that is more than any.
mine([], _Live, _Oldest, _Table) ->
    [];
mine([Far | _] = Dead, [{_, Other} = Near | Live], Oldest, Table) when Near < Far ->
    mine(Dead, Live, min(number(Other, Table), Oldest), Table);
mine([{_, D} | Dead], Live, Oldest, Table) ->
    [D || number(D, Table) < Oldest] ++ mine(Dead, Live, Oldest, Table).

number(Node, #table{buckets = Buckets}) ->
    {ok, Kept} = atoll_buckets:find(Node, Buckets),
    number(Kept).

%% Clockwise from one to another. Where hashes are equal the names decide.
distance(From, To) ->
    Between = erlang:phash2(To, ?RANGE) - erlang:phash2(From, ?RANGE),
    case Between < 0 orelse (Between =:= 0 andalso To < From) of
        true -> {Between + ?RANGE, To};
        false -> {Between, To}
    end.

%% Comparing

%% @doc Equal for tables with the same live entries, and hardly ever for others.
-spec root(table()) -> non_neg_integer().
root(#table{buckets = Buckets}) ->
    atoll_buckets:root(Buckets).

%% @doc What stands for each bucket.
-spec hashes(table()) -> atoll_buckets:hashes().
hashes(#table{buckets = Buckets}) ->
    atoll_buckets:hashes(Buckets).

%% @doc The buckets that differ from somebody else's.
-spec differing(atoll_buckets:hashes(), table()) -> [atoll_buckets:index()].
differing(Theirs, #table{buckets = Buckets}) ->
    atoll_buckets:differing(Theirs, Buckets).

%% @doc All entries of a bucket, ends among them, in the order of the names.
-spec bucket(atoll_buckets:index(), table()) -> [{node(), entry()}].
bucket(Index, #table{buckets = Buckets}) ->
    [{Node, travelling(Kept)} || {Node, Kept} <- atoll_buckets:bucket(Index, Buckets)].

%% @doc Of a bucket what somebody whose entries in it are these does not know.
-spec newer(atoll_buckets:index(), [{node(), entry()}], table()) -> [{node(), entry()}].
newer(Index, Theirs, Table) ->
    Known = maps:from_list(Theirs),
    [
        {Node, Entry}
     || {Node, Entry} <- bucket(Index, Table),
        case Known of
            #{Node := Other} -> wins(Entry, Other) =/= Other;
            #{} -> true
        end
    ].

%% @doc How many are alive and gone, were forgotten for later ends, and refused for
%% want of room.
-spec counts(table()) ->
    #{
        alive := non_neg_integer(),
        gone := non_neg_integer(),
        forgotten := non_neg_integer(),
        refused := non_neg_integer()
    }.
counts(#table{alive = Alive, gone = Gone, forgotten = Forgotten, refused = Refused}) ->
    #{alive => Alive, gone => gb_trees:size(Gone), forgotten => Forgotten, refused => Refused}.
