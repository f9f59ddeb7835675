%% SPDX-License-Identifier: Apache-2.0
%% Tables merge to the same whatever the order, and tell by hashes where they differ.
-module(atoll_roster_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OWNER, me).

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
                    all(merge(merge_all(A, B), C)) =:= all(merge(A, merge_all(B, C)))
                )},
            {"merging is idempotent",
                ?FORALL({A, B}, {entries(), entries()}, all(put_all(B, merge(A, B))) =:= all(merge(A, B)))},
            {"the hashes are equal where the live entries are, and nowhere else",
                ?FORALL({A, B}, {entries(), entries()}, hashes_tell(table(A), table(B)))},
            {"what is newer is what the other lacks",
                ?FORALL({A, B}, {entries(), entries()}, newer_is_enough(table(A), table(B)))},
            {"the live ones are counted, and the bounds hold",
                ?FORALL({A, Members, Gone}, {entries(), choose(1, 4), choose(0, 3)}, keeps_bounds(A, Members, Gone))},
            {"one that knows the same has the same, but for who comes next",
                ?FORALL({A, Self}, {entries(), node_name()}, is_owned(A, Self))},
            {"the successors go once around all",
                ?FORALL(A, entries(), goes_around(?OWNER, table(A)))},
            {"each dead one falls to one of those that knew it, whoever has come since",
                ?FORALL({Names, Of}, {shuffled(lists:seq(1, 20)), vector(20, oneof([old, dead, new]))}, are_divided(Names, Of))}
        ]
    ].

entries() ->
    list({node_name(), {choose(1, 3), oneof([alive, left, dead])}}).

node_name() -> oneof([n1, n2, n3, n4, n5, n6, n7]).

is_owned(Entries, Self) ->
    Own = {Self, {9, alive}},
    Of = fun(Owner) -> put_all([Own | Entries], atoll_roster_table:new(Owner, 100, 100)) end,
    Owned = atoll_roster_table:owned_by(Self, Of(?OWNER)),
    Same = Of(Self),
    all(Owned) =:= all(Same) andalso
        atoll_roster_table:root(Owned) =:= atoll_roster_table:root(Same) andalso
        atoll_roster_table:successors(Self, 1, Owned) =:= atoll_roster_table:successors(Self, 1, Same) andalso
        goes_around(Self, Owned).

table(Entries) -> put_all(Entries, atoll_roster_table:new(?OWNER, 100, 100)).

put_all(Entries, Table) ->
    lists:foldl(fun({Node, Entry}, T) -> element(2, atoll_roster_table:put(Node, Entry, T)) end, Table, Entries).

merge(A, B) -> put_all(B, table(A)).

merge_all(A, B) -> all(merge(A, B)).

all(Table) ->
    lists:sort(lists:append([atoll_roster_table:bucket(I, Table) || I <- lists:seq(1, 128)])).

live(Table) -> [E || {_, {_, alive}} = E <- all(Table)].

hashes_tell(A, B) ->
    Same = live(A) =:= live(B),
    Differing = atoll_roster_table:differing(atoll_roster_table:hashes(B), A),
    Same =:= (atoll_roster_table:root(A) =:= atoll_roster_table:root(B)) andalso
        Differing =:=
            lists:usort([index(Node, A, B) || {Node, _} <- (live(A) -- live(B)) ++ (live(B) -- live(A))]).

index(Node, A, B) ->
    hd([I || I <- lists:seq(1, 128), T <- [A, B], lists:keymember(Node, 1, atoll_roster_table:bucket(I, T))]).

newer_is_enough(A, B) ->
    Sent = lists:append([
        atoll_roster_table:newer(I, atoll_roster_table:bucket(I, B), A) || I <- lists:seq(1, 128)
    ]),
    all(put_all(Sent, B)) =:= all(put_all(all(A), B)) andalso
        lists:all(fun({Node, Entry}) -> atoll_roster_table:entry(Node, B) =/= Entry end, Sent).

keeps_bounds(Entries, Members, MaxGone) ->
    {Table, Most} = lists:foldl(
        fun(Entry, {T0, Most0}) ->
            T = put_all([Entry], T0),
            {T, max(Most0, maps:get(alive, atoll_roster_table:counts(T)))}
        end,
        {atoll_roster_table:new(?OWNER, Members, MaxGone), 0},
        Entries
    ),
    #{alive := Alive, gone := Gone} = atoll_roster_table:counts(Table),
    Alive =:= length(live(Table)) andalso Alive =< Members andalso
        Gone =:= length(all(Table)) - Alive andalso Gone =< max(MaxGone, Most) andalso
        atoll_roster_table:alive(Table) =:= [Node || {Node, _} <- live(Table)].

%% From one that may be among them.
goes_around(Owner, Table) ->
    Alive = atoll_roster_table:alive(Table),
    Others = lists:delete(Owner, Alive),
    Around = around(Table, Owner, length(Others)),
    Others =:= lists:sort(Around) andalso
        Around =:= atoll_roster_table:successors(Owner, length(Alive) + 1, Table).

around(_Table, _Node, 0) -> [];
around(Table, Node, N) ->
    [Next] = atoll_roster_table:successors(Node, 1, Table),
    [Next | around(Table, Next, N - 1)].

are_divided(Names, Kinds) ->
    [Old, Dead, New] = [[N || {N, Kind} <- lists:zip(Names, Kinds), Kind =:= K] || K <- [old, dead, new]],
    Put = fun(Numbers, Status, T) -> put_all([{node_of(N), {1, Status}} || N <- Numbers], T) end,
    Table = Put(New, alive, Put(Dead, dead, Put(Old, alive, table([])))),
    lists:all(
        fun(D) ->
            To = fun(Live) -> [N || N <- Live, lists:member(node_of(D), atoll_roster_table:dead_after(node_of(N), Table))] end,
            case Old of
                [] -> To(New) =:= New;
                _ -> length(To(Old)) =:= 1
            end
        end,
        Dead
    ).

node_of(N) -> list_to_atom("n" ++ integer_to_list(N)).

shuffled(List) -> ?LET(Keys, vector(length(List), integer()), [E || {_, E} <- lists:sort(lists:zip(Keys, List))]).

the_higher_incarnation_wins_test() ->
    ?assertEqual({2, alive}, atoll_roster_table:wins({1, dead}, {2, alive})),
    ?assertEqual({2, dead}, atoll_roster_table:wins({2, dead}, {1, alive})).

of_one_incarnation_an_end_wins_and_leave_over_death_test() ->
    ?assertEqual([{1, dead}, {1, left}, {1, left}], [
        atoll_roster_table:wins(A, B)
     || {A, B} <- [{{1, alive}, {1, dead}}, {{1, left}, {1, alive}}, {{1, dead}, {1, left}}]
    ]).

the_end_that_came_first_is_forgotten_first_and_counted_test() ->
    Table = put_all(
        [{n1, {1, dead}}, {n2, {1, dead}}, {n1, {1, left}}, {n3, {1, dead}}, {n4, {1, dead}}],
        atoll_roster_table:new(?OWNER, 100, 2)
    ),
    ?assertEqual([{n3, {1, dead}}, {n4, {1, dead}}], all(Table)),
    ?assertMatch(#{gone := 2, forgotten := 2}, atoll_roster_table:counts(Table)).

%% One that is forgotten too soon is news again, from whoever has not heard of it.
as_many_ends_are_remembered_as_there_were_members_at_once_test() ->
    Names = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 6)],
    Live = put_all([{N, {1, alive}} || N <- Names], atoll_roster_table:new(?OWNER, 100, 2)),
    Dead = put_all([{N, {1, dead}} || N <- Names], Live),
    ?assertEqual([{N, {1, dead}} || N <- Names], all(Dead)),
    ?assertMatch(#{gone := 6, forgotten := 1}, atoll_roster_table:counts(put_all([{n7, {1, dead}}], Dead))).

the_own_end_is_never_forgotten_test() ->
    Ends = [{?OWNER, {1, left}} | [{N, {1, dead}} || N <- [n1, n2, n3]]],
    Table = put_all(Ends, atoll_roster_table:new(?OWNER, 9, 1)),
    ?assertEqual({1, left}, atoll_roster_table:entry(?OWNER, Table)).

who_finds_no_room_is_refused_and_counted_but_never_the_owner_or_a_new_life_test() ->
    Table0 = put_all([{n1, {1, alive}}, {n2, {1, alive}}], atoll_roster_table:new(?OWNER, 2, 9)),
    {refused, Table1} = atoll_roster_table:put(n3, {1, alive}, Table0),
    ?assertMatch(#{alive := 2, refused := 1}, atoll_roster_table:counts(Table1)),
    {{changed, {1, alive}}, Table2} = atoll_roster_table:put(n2, {2, alive}, Table1),
    {{changed, unknown}, Table3} = atoll_roster_table:put(?OWNER, {5, alive}, Table2),
    ?assertEqual([?OWNER, n1, n2], atoll_roster_table:alive(Table3)).

a_change_says_what_was_known_before_test() ->
    {{changed, unknown}, T1} = atoll_roster_table:put(n1, {3, alive}, table([])),
    {known, T1} = atoll_roster_table:put(n1, {2, dead}, T1),
    {{changed, {3, alive}}, _} = atoll_roster_table:put(n1, {3, dead}, T1).

%% 10,000 nodes that know 10,000 fit into one VM only so.
a_member_takes_a_few_words_beside_the_term_that_came_test_() ->
    [{integer_to_list(Count), fun() -> takes_few_words(Count) end} || Count <- [100, 1000, 10000]].

takes_few_words(Count) ->
    Entries = [{node_of(N), {N, alive}} || N <- lists:seq(1, Count)],
    Table = put_all(Entries, atoll_roster_table:new(?OWNER, 20000, 100)),
    ?assert(lists:all(fun({Node, Entry}) -> erts_debug:same(Entry, atoll_roster_table:entry(Node, Table)) end, Entries)),
    Own = erts_debug:flat_size(Table) - 3 * Count,
    Empty = erts_debug:flat_size(atoll_roster_table:new(?OWNER, 20000, 100)),
    ?assert(Own - Empty =< 5 * Count + 500).

a_change_among_many_copies_few_words_test() ->
    Before = put_all([{node_of(N), {N, alive}} || N <- lists:seq(1, 1000)], atoll_roster_table:new(?OWNER, 20000, 100)),
    {_, After} = atoll_roster_table:put(one_more, {1, alive}, Before),
    New = erts_debug:size([Before | After]) - erts_debug:size(Before),
    ?assert(New =< 150).
