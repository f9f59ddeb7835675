%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What is known of where every node stands: pure data that merges to the same
%% whatever the order, however often.
%%
%% Each node has one entry, `{Version, Place}' or `{Version, gone}'. Versions are a
%% node's own: its first one is the incarnation that it was started with, each change is one
%% more. Of two entries the higher version wins; at equal ones `gone' does, so that others
%% can say that a node is no more, and only itself can say the contrary; two places of one
%% version, which a node with a clock that went back may have made, are compared as terms.
%%
%% Memory. Names of cliques stand in it once and are numbers everywhere else, and each of
%% the usual places has a form of its own: a node in one clique is that clique's number, a
%% gateway a tuple of them. Beside that, each clique has a list of those through whom it can
%% be left, its bridges: gateways, and members with links of their own. Its other members are looked for
%% in all places when they are wanted, which is seldom.
%%
%% Bounds. So many places have room; more are refused. So many nodes that are gone are
%% remembered, or as many as this table had places at once if that is more, as in
%% {@link atoll_roster_table}; the one that came first makes room for the next. Those refused and
%% forgotten are counted. The owner's own entry has room always.
%%
%% Places stand in {@link atoll_buckets}, marked with all that is in them; the gone do not
%% count there: each node forgets its own.
%%
%% ```
%% T0 = atoll_directory_table:new(n1, #{max_places => 1000, max_gone => 100}),
%% {{changed, unknown}, T1} = atoll_directory_table:put(n2, {7, {[red, blue], all, []}}, T0),
%% {known, T1} = atoll_directory_table:put(n2, {6, gone}, T1)
%% '''
-module(atoll_directory_table).

-export([new/2, owned_by/2, put/3, drop/2, wins/2, entry/2, nodes/1, fold/3, counts/1]).
-export([standing/2, members/2, bridges/2, name/2]).
-export([root/1, hashes/1, differing/2, prints/2, beyond/3, with_prints/3]).

-export_type([table/0, entry/0, version/0, standing/0, clique_number/0, bounds/0]).

-type version() :: pos_integer().

-type entry() :: {version(), atoll_directory_place:place() | gone}.
%% As it travels.

-type clique_number() :: pos_integer().
%% Of a clique, in this table.

-type standing() :: {[clique_number()], atoll_directory_place:relays(), [node()]}.
%% A place with numbers for cliques. Cliques of which somebody relays keep their names.

-type bounds() :: #{max_places := pos_integer(), max_gone := non_neg_integer(), _ => _}.

-type packed() ::
    %% In no clique, in one, in several; relays for all, and has no links.
    []
    | clique_number()
    | {clique_number(), clique_number()}
    | tuple()
    %% Only links: a tuple of nodes. The two kinds of tuples are told apart by what is
    %% in them.
    | [tuple() | atoll_directory_place:relays(), ...]
    %% Gone: the number of its arrival below 0, or 0 for the owner's.
    | integer().

-record(clique, {
    name :: atoll_directory_place:clique(),
    %% How many places name it.
    count :: pos_integer(),
    %% In no order.
    bridges = [] :: [node()]
}).

-record(table, {
    owner :: node(),
    max_places :: pos_integer(),
    max_gone :: non_neg_integer(),
    %% Of each node {version(), packed()}.
    buckets = atoll_buckets:new() :: atoll_buckets:buckets(),
    numbers = #{} :: #{atoll_directory_place:clique() => clique_number()},
    cliques = #{} :: #{clique_number() => #clique{}},
    last_number = 0 :: non_neg_integer(),
    places = 0 :: non_neg_integer(),
    %% How many there were at once; never less again.
    most = 0 :: non_neg_integer(),
    %% The gone by the number of their arrival.
    gone = gb_trees:empty() :: gb_trees:tree(pos_integer(), node()),
    last_gone = 0 :: non_neg_integer(),
    forgotten = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer()
}).

-opaque table() :: #table{}.

-define(IS_GONE(Packed), (is_integer(Packed) andalso Packed =< 0)).

%% @doc An empty table of this node.
-spec new(node(), bounds()) -> table().
new(Owner, #{max_places := MaxPlaces, max_gone := MaxGone}) ->
    #table{owner = Owner, max_places = MaxPlaces, max_gone = MaxGone}.

%% @doc The same, for another node.
-spec owned_by(node(), table()) -> table().
owned_by(Owner, #table{} = Table) ->
    Table#table{owner = Owner}.

%% @doc Of two entries of one node the one that counts.
-spec wins(entry(), entry()) -> entry().
wins(A, B) ->
    case rank(A) > rank(B) of
        true -> A;
        false -> B
    end.

rank({Version, gone}) -> {Version, 1, gone};
rank({Version, Place}) -> {Version, 0, Place}.

%% @doc Merges one entry; says what was known before if that changed.
-spec put(node(), entry(), table()) -> {known | refused | {changed, unknown | entry()}, table()}.
put(Node, {Version, What} = Entry, #table{owner = Owner, places = Places, max_places = Max} = Table) ->
    Before = entry(Node, Table),
    case Before =/= unknown andalso wins(Before, Entry) =:= Before of
        true ->
            {known, Table};
        false when What =/= gone, Places >= Max, Node =/= Owner ->
            case Before of
                {_, Place} when Place =/= gone -> {{changed, Before}, store(Node, Version, What, Table)};
                _ -> {refused, Table#table{refused = Table#table.refused + 1}}
            end;
        false ->
            {{changed, Before}, store(Node, Version, What, Table)}
    end.

store(Node, Version, What, Table0) ->
    {Packed, Table} = enter(What, Node, Version, drop(Node, Table0)),
    forget(Table#table{buckets = atoll_buckets:put(Node, {Version, Packed}, Table#table.buckets)}).

%% @doc Forgets what is known of a node.
-spec drop(node(), table()) -> table().
drop(Node, #table{buckets = Buckets0} = Table) ->
    case atoll_buckets:take(Node, Buckets0) of
        {{Version, Packed}, Buckets} -> leave(Packed, Node, Version, Table#table{buckets = Buckets});
        error -> Table
    end.

%% The places that it counts, and the gone that it remembers.

enter(gone, Node, _Version, #table{owner = Node} = Table) ->
    {0, Table};
enter(gone, Node, _Version, #table{last_gone = Last, gone = Gone} = Table) ->
    {-(Last + 1), Table#table{last_gone = Last + 1, gone = gb_trees:insert(Last + 1, Node, Gone)}};
enter(Place, Node, Version, #table{places = Places, most = Most} = Table0) ->
    {Names, Relays, Links} = Place,
    {Numbers, Table1} = lists:mapfoldl(fun intern/2, Table0, Names),
    Standing = {Numbers, Relays, Links},
    Table = bridge(fun(Bridges) -> [Node | Bridges] end, Standing, Table1),
    Buckets = atoll_buckets:mark(Node, {Version, Place}, Table#table.buckets),
    {pack(Standing), Table#table{buckets = Buckets, places = Places + 1, most = max(Places + 1, Most)}}.

leave(0, _Node, _Version, Table) ->
    Table;
leave(Packed, _Node, _Version, #table{gone = Gone} = Table) when ?IS_GONE(Packed) ->
    Table#table{gone = gb_trees:delete(-Packed, Gone)};
leave(Packed, Node, Version, #table{places = Places, buckets = Buckets} = Table0) ->
    {Numbers, _, _} = Standing = unpack(Packed),
    Table1 = Table0#table{
        buckets = atoll_buckets:mark(Node, {Version, place(Standing, Table0)}, Buckets), places = Places - 1
    },
    Table = bridge(fun(Bridges) -> lists:delete(Node, Bridges) end, Standing, Table1),
    lists:foldl(fun release/2, Table, Numbers).

forget(#table{gone = Gone, max_gone = Max, most = Most} = Table) ->
    case gb_trees:size(Gone) > max(Max, Most) of
        true ->
            {_, Oldest} = gb_trees:smallest(Gone),
            forget(drop(Oldest, Table#table{forgotten = Table#table.forgotten + 1}));
        false ->
            Table
    end.

%% Cliques

intern(Name, #table{numbers = Numbers, cliques = Cliques, last_number = Last} = Table) ->
    case Numbers of
        #{Name := Number} ->
            #{Number := #clique{count = Count} = Clique} = Cliques,
            {Number, Table#table{cliques = Cliques#{Number := Clique#clique{count = Count + 1}}}};
        #{} ->
            Number = Last + 1,
            {Number, Table#table{
                numbers = Numbers#{Name => Number},
                cliques = Cliques#{Number => #clique{name = Name, count = 1}},
                last_number = Number
            }}
    end.

release(Number, #table{numbers = Numbers, cliques = Cliques} = Table) ->
    case Cliques of
        #{Number := #clique{count = 1, name = Name}} ->
            Table#table{numbers = maps:remove(Name, Numbers), cliques = maps:remove(Number, Cliques)};
        #{Number := #clique{count = Count} = Clique} ->
            Table#table{cliques = Cliques#{Number := Clique#clique{count = Count - 1}}}
    end.

%% Who cannot be passed through is no bridge.
bridge(_Fun, {[_], _, []}, Table) ->
    Table;
bridge(Fun, {Numbers, _, _}, Table) ->
    lists:foldl(
        fun(Number, #table{cliques = Cliques} = T) ->
            #{Number := #clique{bridges = Bridges} = Clique} = Cliques,
            T#table{cliques = Cliques#{Number := Clique#clique{bridges = Fun(Bridges)}}}
        end,
        Table,
        Numbers
    ).

-spec pack(standing()) -> packed().
pack({[], all, []}) -> [];
pack({[Number], all, []}) -> Number;
pack({[_ | _] = Numbers, all, []}) -> list_to_tuple(Numbers);
pack({[], all, Links}) -> list_to_tuple(Links);
pack({Numbers, Relays, Links}) -> [list_to_tuple(Numbers), Relays, list_to_tuple(Links)].

-spec unpack(packed()) -> standing().
unpack([]) -> {[], all, []};
unpack(Number) when is_integer(Number) -> {[Number], all, []};
unpack([Numbers, Relays, Links]) -> {tuple_to_list(Numbers), Relays, tuple_to_list(Links)};
unpack(Numbers) when is_integer(element(1, Numbers)) -> {tuple_to_list(Numbers), all, []};
unpack(Links) -> {[], all, tuple_to_list(Links)}.

%% Numbers come as names did, and not in the order of the names.
place({Numbers, Relays, Links}, Table) ->
    {lists:sort([name(Number, Table) || Number <- Numbers]), Relays, Links}.

%% What is in it

%% @doc What is known of a node.
-spec entry(node(), table()) -> entry() | unknown.
entry(Node, #table{buckets = Buckets} = Table) ->
    case atoll_buckets:find(Node, Buckets) of
        {ok, Kept} -> travelling(Kept, Table);
        error -> unknown
    end.

travelling({Version, Packed}, _Table) when ?IS_GONE(Packed) -> {Version, gone};
travelling({Version, Packed}, Table) -> {Version, place(unpack(Packed), Table)}.

%% @doc Where a node stands: what a search for routes asks most.
-spec standing(node(), table()) -> standing() | unknown.
standing(Node, #table{buckets = Buckets}) ->
    case atoll_buckets:find(Node, Buckets) of
        {ok, {_, Packed}} when ?IS_GONE(Packed) -> unknown;
        {ok, {_, Packed}} -> unpack(Packed);
        error -> unknown
    end.

%% @doc Who is in one of the cliques of these names, each node once, in no order. It goes
%% through all places.
-spec members([atoll_directory_place:clique()], table()) -> [node()].
members(Names, #table{numbers = Known, buckets = Buckets}) ->
    Numbers = maps:from_list([{Number, []} || Name <- Names, #{Name := Number} <- [Known]]),
    atoll_buckets:fold(
        fun
            (Node, {_, Number}, Nodes) when is_map_key(Number, Numbers) -> [Node | Nodes];
            (_Node, {_, Number}, Nodes) when is_integer(Number) -> Nodes;
            (Node, {_, Packed}, Nodes) -> [Node || is_in(unpack(Packed), Numbers)] ++ Nodes
        end,
        [],
        Buckets
    ).

is_in({In, _, _}, Numbers) -> lists:any(fun(Number) -> is_map_key(Number, Numbers) end, In).

%% @doc The members of a clique through whom it can be left.
-spec bridges(clique_number(), table()) -> [node()].
bridges(Number, #table{cliques = Cliques}) ->
    #{Number := #clique{bridges = Bridges}} = Cliques,
    Bridges.

%% @doc The name of a clique.
-spec name(clique_number(), table()) -> atoll_directory_place:clique().
name(Number, #table{cliques = Cliques}) ->
    #{Number := #clique{name = Name}} = Cliques,
    Name.

%% @doc The nodes that have a place, in the order of their names.
-spec nodes(table()) -> [node()].
nodes(Table) ->
    lists:sort(fold(fun(Node, _Version, _Standing, Nodes) -> [Node | Nodes] end, [], Table)).

%% @doc Goes through all places, in no order that means something.
-spec fold(fun((node(), version(), standing(), Acc) -> Acc), Acc, table()) -> Acc.
fold(Fun, Acc0, #table{buckets = Buckets}) ->
    atoll_buckets:fold(
        fun
            (_Node, {_, Packed}, Acc) when ?IS_GONE(Packed) -> Acc;
            (Node, {Version, Packed}, Acc) -> Fun(Node, Version, unpack(Packed), Acc)
        end,
        Acc0,
        Buckets
    ).

%% @doc How many places, cliques and gone nodes there are; how many were forgotten for later ones,
%% and refused for want of room.
-spec counts(table()) ->
    #{places | cliques | gone | forgotten | refused := non_neg_integer()}.
counts(#table{places = Places, numbers = Numbers, gone = Gone, forgotten = Forgotten, refused = Refused}) ->
    #{
        places => Places,
        cliques => map_size(Numbers),
        gone => gb_trees:size(Gone),
        forgotten => Forgotten,
        refused => Refused
    }.

%% Comparing

%% @doc Equal for tables with the same places, and hardly ever for others.
-spec root(table()) -> non_neg_integer().
root(#table{buckets = Buckets}) ->
    atoll_buckets:root(Buckets).

%% @doc What stands for each bucket, as it travels.
-spec hashes(table()) -> binary().
hashes(#table{buckets = Buckets}) ->
    << <<Hash:32>> || Hash <- tuple_to_list(atoll_buckets:hashes(Buckets)) >>.

%% @doc The buckets that differ from somebody else's; none can be told of what is no such
%% binary.
-spec differing(binary(), table()) -> [atoll_buckets:index()] | error.
differing(Theirs, #table{buckets = Buckets}) when byte_size(Theirs) =:= 512 ->
    atoll_buckets:differing(list_to_tuple([Hash || <<Hash:32>> <= Theirs]), Buckets);
differing(_Theirs, _Table) ->
    error.

%% @doc What stands for each place of a bucket.
-spec prints(atoll_buckets:index(), table()) -> binary().
prints(Index, Table) ->
    << <<Print:32>> || {Print, _} <- printed(Index, Table) >>.

%% @doc Of a bucket what somebody with these prints has not, and the prints that this table
%% has not.
-spec beyond(atoll_buckets:index(), Prints :: binary(), table()) -> {[{node(), entry()}], binary()}.
beyond(Index, Prints, Table) ->
    Own = printed(Index, Table),
    Theirs = sets:from_list([Print || <<Print:32>> <= Prints], [{version, 2}]),
    Mine = maps:from_list(Own),
    {
        [Entry || {Print, Entry} <- Own, not sets:is_element(Print, Theirs)],
        << <<Print:32>> || <<Print:32>> <= Prints, not is_map_key(Print, Mine) >>
    }.

%% @doc The places of a bucket that have these prints.
-spec with_prints(atoll_buckets:index(), Prints :: binary(), table()) -> [{node(), entry()}].
with_prints(Index, Prints, Table) ->
    Wanted = sets:from_list([Print || <<Print:32>> <= Prints], [{version, 2}]),
    [Entry || {Print, Entry} <- printed(Index, Table), sets:is_element(Print, Wanted)].

printed(Index, #table{buckets = Buckets} = Table) ->
    [
        {atoll_buckets:print(Node, Entry), {Node, Entry}}
     || {Node, {_, Packed} = Kept} <- atoll_buckets:bucket(Index, Buckets),
        not ?IS_GONE(Packed),
        Entry <- [travelling(Kept, Table)]
    ].
