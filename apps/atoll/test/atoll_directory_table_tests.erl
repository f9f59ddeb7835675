%% SPDX-License-Identifier: Apache-2.0
%% Tables of the directory merge to the same whatever the order, tell where they differ,
%% keep their bounds, and are small.
-module(atoll_directory_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OWNER, me).
-define(BOUNDS, #{max_places => 100, max_gone => 100}).

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 1000)
     || {Title, Property} <- [
            {"merging is commutative",
                ?FORALL({A, B}, {entries(), entries()}, all(merge(A, B)) =:= all(merge(B, A)))},
            {"merging is associative",
                ?FORALL(
                    {A, B, C},
                    {entries(), entries(), entries()},
                    all(put_all(C, merge(A, B))) =:= all(merge(A, known(merge(B, C))))
                )},
            {"merging is idempotent",
                ?FORALL({A, B}, {entries(), entries()}, all(put_all(B, merge(A, B))) =:= all(merge(A, B)))},
            {"it says what it was told", ?FORALL(A, entries(), says(A))},
            {"the roots are equal where the places are, and nowhere else",
                ?FORALL({A, B}, {entries(), entries()}, roots_tell(table(A), table(B)))},
            {"two tables find what either lacks by prints",
                ?FORALL({A, B}, {entries(), entries()}, prints_tell(table(A), table(B)))},
            {"of a clique the members and the bridges are known",
                ?FORALL({A, B}, {entries(), entries()}, has_bridges(merge(A, B)))},
            {"cliques that nobody names any more are forgotten",
                ?FORALL(A, entries(), forgets_cliques(table(A)))},
            {"the bounds hold, but for the owner's entry",
                ?FORALL({A, Places, Gone}, {entries(), choose(1, 3), choose(0, 2)}, keeps_bounds(A, Places, Gone))}
        ]
    ].

entries() ->
    list({oneof([?OWNER, n1, n2, n3, n4, n5, n6]), {choose(1, 3), oneof([gone, place(), place()])}}).

place() ->
    ?LET(
        {Cliques, Relays, Links},
        {list(oneof([red, {blue, 1}, "green"])), oneof([all, all, none, [red]]), list(oneof([x, y, gone, place]))},
        atoll_directory_place:new(Cliques, Relays, Links)
    ).

table(Entries) -> put_all(Entries, atoll_directory_table:new(?OWNER, ?BOUNDS)).

put_all(Entries, Table) ->
    lists:foldl(fun({Node, Entry}, T) -> element(2, atoll_directory_table:put(Node, Entry, T)) end, Table, Entries).

merge(A, B) -> put_all(B, table(A)).

everybody() -> [?OWNER, n1, n2, n3, n4, n5, n6].

known(Table) ->
    [{Node, Entry} || Node <- everybody(), Entry <- [atoll_directory_table:entry(Node, Table)], Entry =/= unknown].

all(Table) -> known(Table).

live(Table) -> [Known || {_, {_, What}} = Known <- known(Table), What =/= gone].

says(Entries) ->
    Table = table(Entries),
    Expected = lists:foldl(
        fun({Node, Entry}, Acc) ->
            Acc#{Node => atoll_directory_table:wins(maps:get(Node, Acc, Entry), Entry)}
        end,
        #{},
        Entries
    ),
    known(Table) =:= [{Node, map_get(Node, Expected)} || Node <- everybody(), is_map_key(Node, Expected)] andalso
        atoll_directory_table:nodes(Table) =:= lists:sort([Node || {Node, _} <- live(Table)]) andalso
        maps:get(places, atoll_directory_table:counts(Table)) =:= length(live(Table)).

roots_tell(A, B) ->
    Same = live(A) =:= live(B),
    Same =:= (atoll_directory_table:root(A) =:= atoll_directory_table:root(B)) andalso
        Same =:= (atoll_directory_table:differing(atoll_directory_table:hashes(A), B) =:= []).

%% As two nodes do it.
prints_tell(A, B) ->
    Indices = atoll_directory_table:differing(atoll_directory_table:hashes(B), A),
    Beyond = [{I, atoll_directory_table:beyond(I, atoll_directory_table:prints(I, A), B)} || I <- Indices],
    ForA = lists:append([Entries || {_, {Entries, _}} <- Beyond]),
    ForB = lists:append([atoll_directory_table:with_prints(I, Wanted, A) || {I, {_, Wanted}} <- Beyond]),
    lists:sort(ForA) =:= lists:sort(live(B) -- live(A)) andalso lists:sort(ForB) =:= lists:sort(live(A) -- live(B)).

has_bridges(Table) ->
    Standings = [{Node, Place} || {Node, {_, Place}} <- live(Table)],
    lists:all(
        fun(Name) ->
            In = [{Node, Cliques, Links} || {Node, {Cliques, _, Links}} <- Standings, lists:member(Name, Cliques)],
            Bridges = [Node || {Node, Cliques, Links} <- In, length(Cliques) > 1 orelse Links =/= []],
            {Numbers, _, _} = atoll_directory_table:standing(element(1, hd(In)), Table),
            [Number] = [N || N <- Numbers, atoll_directory_table:name(N, Table) =:= Name],
            lists:sort(atoll_directory_table:members([Name, nobody_is_in], Table)) =:= lists:sort([Node || {Node, _, _} <- In]) andalso
                lists:sort(atoll_directory_table:bridges(Number, Table)) =:= lists:sort(Bridges)
        end,
        lists:usort(lists:append([Cliques || {_, {Cliques, _, _}} <- Standings]))
    ).

forgets_cliques(Table) ->
    Empty = lists:foldl(fun atoll_directory_table:drop/2, Table, everybody()),
    #{places := 0, cliques := 0, gone := 0} = atoll_directory_table:counts(Empty),
    [] = atoll_directory_table:members([red, {blue, 1}, "green"], Empty),
    true = lists:sort(atoll_directory_table:members([red, {blue, 1}, "green"], Table)) =:=
        lists:sort([Node || {Node, {_, {[_ | _], _, _}}} <- live(Table)]),
    atoll_directory_table:root(Empty) =:= atoll_directory_table:root(table([])).

keeps_bounds(Entries, MaxPlaces, MaxGone) ->
    {Table, Most} = lists:foldl(
        fun(Entry, {T0, Most0}) ->
            T = put_all([Entry], T0),
            {T, max(Most0, maps:get(places, atoll_directory_table:counts(T)))}
        end,
        {atoll_directory_table:new(?OWNER, #{max_places => MaxPlaces, max_gone => MaxGone}), 0},
        Entries
    ),
    #{places := Places, gone := Gone} = atoll_directory_table:counts(Table),
    Own = [Entry || {?OWNER, Entry} <- Entries],
    Places =< MaxPlaces + 1 andalso Gone =< max(MaxGone, Most) andalso
        (Own =:= [] orelse atoll_directory_table:entry(?OWNER, Table) =/= unknown).

%% One that is forgotten too soon is news again, from whoever has not heard of it.
as_many_gone_are_remembered_as_there_were_places_at_once_test() ->
    Empty = atoll_directory_table:new(?OWNER, #{max_places => 100, max_gone => 2}),
    Nodes = everybody() -- [?OWNER],
    Places = put_all([{N, {1, {[red], all, []}}} || N <- Nodes], Empty),
    Gone = put_all([{N, {2, gone}} || N <- Nodes], Places),
    ?assertEqual([{N, {2, gone}} || N <- lists:sort(Nodes)], lists:sort(known(Gone))),
    Count = length(Nodes),
    ?assertMatch(#{gone := Count, forgotten := 1}, atoll_directory_table:counts(put_all([{another, {1, gone}}], Gone))).

%% The promise is a hundred bytes for each of ten thousand nodes that are there, all tables and lists
%% counted as if nothing were shared.
ten_thousand_nodes_take_a_hundred_bytes_each_test_() ->
    [
        {Title, {timeout, 30, ?_assert(bytes_a_node(Places) =< 100)}}
     || {Title, Places} <- [
            {"a hierarchy of groups of eight", hierarchy()},
            {"no groups, four links each", links()}
        ]
    ].

bytes_a_node(Places) ->
    Table = lists:foldl(
        fun({Node, Place}, T) ->
            element(2, atoll_directory_table:put(Node, {1790000000000000, Place}, T))
        end,
        atoll_directory_table:new(hd(names()), #{max_places => 20000, max_gone => 1000}),
        Places
    ),
    ?assertMatch(#{places := 10000}, atoll_directory_table:counts(Table)),
    erts_debug:flat_size(Table) * erlang:system_info(wordsize) / 10000.

names() -> [list_to_atom(lists:concat(["n", I, "@host"])) || I <- lists:seq(1, 10000)].

hierarchy() ->
    {ok, Topology} = atoll_topology:hierarchy(names(), #{group_size => 8, gateways => 2, fanout => 8}),
    Cliques = maps:groups_from_list(
        fun({Node, _}) -> Node end,
        fun({_, Group}) -> Group end,
        [{Node, Group} || {Group, Members} <- atoll_topology:groups(Topology), Node <- Members]
    ),
    [{Node, atoll_directory_place:new(Groups, all, [])} || {Node, Groups} <- maps:to_list(Cliques)].

links() ->
    Names = list_to_tuple(names()),
    [
        {element(I, Names),
            atoll_directory_place:new([], all, [element(1 + (I * K) rem 10000, Names) || K <- [3, 7, 11, 13]])}
     || I <- lists:seq(1, 10000)
    ].
