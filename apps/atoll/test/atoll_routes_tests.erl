%% SPDX-License-Identifier: Apache-2.0
%% What a route is: a shortest chain of cliques and links that are there, drawn fairly, around
%% whom it is to avoid, with a reason where there is none.
-module(atoll_routes_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Two gateways join red and blue, one joins blue and green; s has links with b1 and t.
places() ->
    [
        {r1, [red]}, {r2, [red]}, {g1, [red, blue]}, {g2, [red, blue]},
        {b1, {[blue], all, [s]}}, {b2, [blue]}, {h, [blue, green]}, {e1, [green]},
        {s, {[], all, [b1, t]}}, {t, {[], all, [s]}}, {lost, [grey]}
    ].

table(Places) -> table(r1, Places).

table(Owner, Places) ->
    lists:foldl(
        fun({Node, Place}, Table) ->
            {{changed, unknown}, Next} = atoll_directory_table:put(Node, {1, place(Place)}, Table),
            Next
        end,
        atoll_directory_table:new(Owner, #{max_places => 10000, max_gone => 10}),
        Places
    ).

place({_, _, _} = Place) -> Place;
place(Cliques) -> {lists:sort(Cliques), all, []}.

find(From, To) -> find(From, To, #{}).

find(From, To, Options) -> atoll_routes:find(From, To, Options, table(places())).

%% Examples

co_members_need_nobody_test() ->
    ?assertEqual({ok, [r1, r2]}, find(r1, r2)).

a_gateway_joins_two_cliques_test() ->
    {ok, [r1, G, b1]} = find(r1, b1),
    ?assert(lists:member(G, [g1, g2])).

two_gateways_may_be_needed_test() ->
    {ok, [e1, h, G, r2]} = find(e1, r2),
    ?assert(lists:member(G, [g1, g2])).

known_links_lead_where_no_clique_does_test() ->
    {ok, [r1, _, b1, s]} = find(r1, s),
    {ok, [r1, _, b1, s, t]} = find(r1, t),
    {ok, [t, s, b1, _, r1]} = find(t, r1).

a_member_of_one_clique_is_passed_through_only_if_it_has_links_test() ->
    Table = table([{a, {[one], all, [m]}}, {m, {[two], all, [a]}}, {n, [two]}]),
    ?assertEqual({ok, [a, m, n]}, atoll_routes:find(a, n, #{}, Table)).

a_link_that_only_the_far_end_tells_of_counts_at_the_end_test() ->
    Table = table([{a, [one]}, {b, [one]}, {c, {[], all, [b]}}]),
    ?assertEqual({ok, [a, b, c]}, atoll_routes:find(a, c, #{}, Table)).

%% Salts draw the other gateway too; the same salt the same one.
the_draw_hangs_on_the_salt_test() ->
    Routes = [find(r1, b1, #{salt => I}) || I <- lists:seq(1, 30)],
    ?assertEqual([{ok, [r1, g1, b1]}, {ok, [r1, g2, b1]}], lists:usort(Routes)),
    ?assertEqual(find(r1, b1, #{salt => 7}), find(r1, b1, #{salt => 7})).

who_is_avoided_is_not_passed_through_test() ->
    ?assertEqual({ok, [r1, g2, b1]}, find(r1, b1, #{avoid => [g1]})),
    ?assertEqual({error, {avoided, r1, e1, [h]}}, find(r1, e1, #{avoid => [h]})),
    %% Ends are not in the way of themselves.
    ?assertMatch({ok, [r1, g2]}, find(r1, g2, #{avoid => [r1, g2]})).

the_first_hop_is_one_of_the_links_that_there_are_test() ->
    ?assertEqual({ok, [r1, g2, b1]}, find(r1, b1, #{linked => [r2, g2]})),
    ?assertEqual({ok, [r1, b1]}, find(r1, b1, #{linked => [b1]})),
    ?assertMatch({ok, [r1, r2, _, b1]}, find(r1, b1, #{linked => [r2]})),
    ?assertEqual({error, {no_route, r1, b1}}, find(r1, b1, #{linked => []})),
    %% A co-member without a link is reached over one with a link.
    ?assertEqual({ok, [r1, g1, r2]}, find(r1, r2, #{linked => [g1]})),
    %% A link that the directory knows nothing of.
    ?assertEqual({ok, [r1, h, e1]}, find(r1, e1, #{linked => [h]})),
    ?assertEqual({ok, [r1, stranger]}, find(r1, stranger, #{linked => [stranger]})).

who_is_not_known_may_still_have_links_test() ->
    ?assertEqual({ok, [new, g1, b2]}, find(new, b2, #{linked => [g1]})).

a_route_has_at_most_so_many_hops_test() ->
    ?assertMatch({ok, [_, _, _, _]}, find(r1, e1, #{max_hops => 3})),
    ?assertEqual({error, {too_far, r1, e1, 2}}, find(r1, e1, #{max_hops => 2})).

gateways_relay_for_whom_they_say_test() ->
    Rules = fun(One, Two) ->
        table([
            {a, [red]}, {b, [blue]}, {c, [green]},
            {g1, {[blue, green, red], One, []}}, {g2, {[blue, green, red], Two, []}}
        ])
    end,
    ?assertEqual({ok, [a, g2, b]}, atoll_routes:find(a, b, #{}, Rules(none, all))),
    ?assertEqual({ok, [a, g1, b]}, atoll_routes:find(a, b, #{}, Rules([red], none))),
    ?assertEqual({ok, [b, g1, a]}, atoll_routes:find(b, a, #{}, Rules([red], none))),
    ?assertEqual({ok, [b, g2, c]}, atoll_routes:find(b, c, #{}, Rules([red], [green]))),
    {error, Refused} = atoll_routes:find(b, c, #{}, Rules([red], [red])),
    ?assertMatch({refused, b, c, [{G, [red]}]} when G =:= g1; G =:= g2, Refused),
    %% A gateway may always be talked to.
    ?assertEqual({ok, [a, g1]}, atoll_routes:find(a, g1, #{}, Rules(none, none))).

each_reason_is_a_sentence_test() ->
    Sentence = fun(Error) -> lists:flatten(atoll_routes:format_error(Error)) end,
    {error, Same} = find(r1, r1),
    {error, Unknown} = find(r1, nobody),
    {error, NoRoute} = find(r1, lost),
    ?assertEqual("r1 is both ends", Sentence(Same)),
    ?assertEqual("nobody has told where nobody is", Sentence(Unknown)),
    ?assertEqual("no chain of groups and links leads from r1 to lost", Sentence(NoRoute)),
    ?assertEqual("b is more than 2 hops from a", Sentence({too_far, a, b, 2})),
    ?assertEqual("from a to b the only way is over g, h, which is to be avoided", Sentence({avoided, a, b, [g, h]})),
    ?assertEqual(
        "from a to b the only way is over g, which relays for nobody, and h, which relays for members of red, blue alone",
        Sentence({refused, a, b, [{g, none}, {h, [red, blue]}]})
    ).

other_routes_share_nobody_as_long_as_there_are_such_test() ->
    {ok, Routes} = atoll_routes:routes(r1, b1, 5, #{}, table(places())),
    ?assertEqual([[r1, g1, b1], [r1, g2, b1]], lists:sort(Routes)),
    {ok, Far} = atoll_routes:routes(r1, e1, 2, #{}, table(places())),
    ?assertEqual([[r1, g1, h, e1], [r1, g2, h, e1]], lists:sort(Far)),
    ?assertMatch({ok, [_]}, atoll_routes:routes(r1, b1, 1, #{}, table(places()))).

co_members_have_other_routes_too_test() ->
    {ok, [Direct | Others]} = atoll_routes:routes(r1, r2, 3, #{}, table(places())),
    ?assertEqual([r1, r2], Direct),
    ?assertEqual([[r1, g1, r2], [r1, g2, r2]], lists:sort(Others)).

it_is_explained_why_each_hop_is_one_test() ->
    {ok, Explanation} = atoll_routes:explain(r1, s, 2, #{avoid => [g2]}, table(places())),
    ?assertEqual(
        #{
            route => [r1, g1, b1, s],
            hops => [
                #{from => r1, to => g1, via => {clique, red}, choices => 1},
                #{from => g1, to => b1, via => {clique, blue}, choices => 1},
                #{from => b1, to => s, via => link, choices => 1}
            ],
            alternatives => []
        },
        Explanation
    ),
    {ok, #{hops := [_, #{choices := 2}], alternatives := [_]}} = atoll_routes:explain(r1, b1, 3, #{}, table(places())).

%% Properties

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 1500)
     || {Title, Property} <- [
            {"a route is a shortest path of the graph that the directory tells of",
                ?FORALL({Places, Options}, {some_places(), some_options()}, is_right(Places, Options))},
            {"several routes are different, valid, and apart while they can be",
                ?FORALL({Places, Count}, {some_places(), choose(1, 4)}, are_right(Places, Count))},
            {"who does not relay is not passed through",
                ?FORALL(Places, some_places([all, none, [one], [two]]), keeps_rules(Places))}
        ]
    ].

-define(NODES, [n1, n2, n3, n4, n5, n6, n7, n8]).

some_places() -> some_places([all]).

%% Links as both ends tell of them.
some_places(Relays) ->
    ?LET(
        {Places, Links},
        {
            [{Node, {list_of([one, two, three, four, five], 2), oneof(Relays)}} || Node <- ?NODES],
            list_of([{A, B} || A <- ?NODES, B <- ?NODES, A < B], 3)
        },
        [
            {Node, {Cliques, R, lists:usort([B || {A, B} <- Links, A =:= Node] ++ [A || {A, B} <- Links, B =:= Node])}}
         || {Node, {Cliques, R}} <- Places
        ]
    ).

list_of(Elements, Max) ->
    ?LET({Count, List}, {choose(0, Max), list(oneof(Elements))}, lists:usort(lists:sublist(List, Count))).

some_options() ->
    ?LET(
        {Avoid, Linked, Salt, Max},
        {list_of(?NODES, 2), oneof([any, list_of(?NODES, 4)]), integer(), choose(1, 6)},
        maps:merge(#{avoid => Avoid, salt => Salt, max_hops => Max}, maps:from_list([{linked, lists:delete(n1, Linked)} || is_list(Linked)]))
    ).

is_right(Places, Options) ->
    Table = table(Places),
    lists:all(
        fun(To) ->
            case {atoll_routes:find(n1, To, Options, Table), shortest(n1, To, Options, Places)} of
                {{ok, Route}, Length} -> length(Route) =:= Length andalso is_path(Route, Options, Places);
                {{error, {too_far, n1, To, _}}, far} -> true;
                {{error, {Why, n1, To}}, none} -> Why =:= no_route;
                {{error, {avoided, n1, To, [_ | _]}}, _} -> true;
                {_, _} -> false
            end
        end,
        tl(?NODES)
    ).

is_path(Route, Options, Places) ->
    Avoided = maps:get(avoid, Options, []),
    length(Route) =:= length(lists:usort(Route)) andalso
        [] =:= [Node || Node <- tl(lists:droplast(Route)), lists:member(Node, Avoided)] andalso
        lists:all(
            fun({A, B}) -> is_edge(A, B, Options, Places) end, lists:zip(lists:droplast(Route), tl(Route))
        ).

is_edge(n1, B, #{linked := Linked}, _Places) ->
    lists:member(B, Linked);
is_edge(A, B, _Options, Places) ->
    {_, {As, _, ALinks}} = lists:keyfind(A, 1, Places),
    {_, {Bs, _, _}} = lists:keyfind(B, 1, Places),
    lists:member(B, ALinks) orelse As -- Bs =/= As.

%% How many nodes the shortest route has, by another search: all simple ways, one hop more each time.
shortest(From, To, #{max_hops := Max} = Options, Places) ->
    case grow([From], [From], To, 1, Options, Places) of
        none -> none;
        Hops when Hops > Max -> far;
        Hops -> Hops + 1
    end.

grow([], _Seen, _To, _Hops, _Options, _Places) ->
    none;
grow(Layer, Seen, To, Hops, #{avoid := Avoid} = Options, Places) ->
    Next = lists:usort([B || A <- Layer, {B, _} <- Places, A =/= B, is_edge(A, B, Options, Places)]),
    case lists:member(To, Next) of
        true -> Hops;
        false -> grow((Next -- Seen) -- Avoid, Seen ++ Next, To, Hops + 1, Options, Places)
    end.

are_right(Places, Count) ->
    Table = table(Places),
    Options = #{max_hops => 8, avoid => []},
    lists:all(
        fun(To) ->
            case atoll_routes:routes(n1, To, Count, Options, Table) of
                {ok, [First | _] = Routes} ->
                    length(Routes) =< Count andalso
                        length(Routes) =:= length(lists:usort(Routes)) andalso
                        length(First) =:= shortest(n1, To, Options, Places) andalso
                        lists:all(fun(Route) -> is_path(Route, Options, Places) end, Routes) andalso
                        (Count =:= 1 orelse second_is_apart(First, Routes, To, Options, Places));
                {error, _} ->
                    shortest(n1, To, Options, Places) =:= none
            end
        end,
        tl(?NODES)
    ).

second_is_apart(First, Routes, To, Options, Places) ->
    Between = tl(lists:droplast(First)),
    case {Between, shortest(n1, To, Options#{avoid => Between}, Places)} of
        {[], _} -> true;
        {_, none} -> true;
        {_, Length} ->
            [_, Second | _] = Routes,
            length(Second) =:= Length andalso Second -- Between =:= Second
    end.

keeps_rules(Places) ->
    Table = table(Places),
    lists:all(
        fun(To) ->
            Names = [C || {Node, {Cliques, _, _}} <- Places, lists:member(Node, [n1, To]), C <- Cliques],
            Refusing = [
                Node
             || {Node, {_, Relays, _}} <- Places,
                not atoll_directory_place:allows(Relays, maps:from_keys(Names, []))
            ],
            Options = #{max_hops => 16, avoid => Refusing},
            case {atoll_routes:find(n1, To, #{}, Table), shortest(n1, To, Options, Places)} of
                {{ok, Route}, Length} -> length(Route) =:= Length andalso is_path(Route, Options, Places);
                {{error, {refused, n1, To, Who}}, none} -> Who =/= [] andalso [N || {N, _} <- Who] -- Refusing =:= [];
                {{error, {no_route, n1, To}}, none} -> true;
                {_, _} -> false
            end
        end,
        tl(?NODES)
    ).

%% Load

%% Of 40 x 40 pairs each of two gateways has between two fifths and three fifths; of four,
%% between a fifth and three tenths.
gateways_share_the_pairs_test_() ->
    [{integer_to_list(Count), ?_test(shares(Count))} || Count <- [2, 4]].

shares(Count) ->
    Pairs = [{member("a", I), member("b", J)} || I <- lists:seq(1, 40), J <- lists:seq(1, 40)],
    Table = joined(Count),
    Used = [begin {ok, [_, G, _]} = atoll_routes:find(A, B, #{}, Table), G end || {A, B} <- Pairs],
    Fair = length(Pairs) / Count,
    [?assert(abs(length([G || G <- Used, G =:= member("g", N)]) - Fair) < 0.2 * Fair) || N <- lists:seq(1, Count)].

joined(Gateways) ->
    table(
        [{member("a", I), [red]} || I <- lists:seq(1, 40)] ++ [{member("b", I), [blue]} || I <- lists:seq(1, 40)] ++
            [{member("g", I), [blue, red]} || I <- lists:seq(1, Gateways)]
    ).

member(Letter, I) -> list_to_atom(Letter ++ integer_to_list(I)).

when_a_gateway_is_gone_only_its_pairs_move_test() ->
    Before = joined(4),
    {{changed, _}, After} = atoll_directory_table:put(member("g", 2), {1, gone}, Before),
    [
        case {atoll_routes:find(A, B, #{}, Before), atoll_routes:find(A, B, #{}, After)} of
            {Same, Same} -> ok;
            {{ok, [A, G, B]}, {ok, _}} -> ?assertEqual(member("g", 2), G)
        end
     || I <- lists:seq(1, 40), {A, B} <- [{member("a", I), member("b", 41 - I)}]
    ].

%% Speed: some pairs of ten thousand nodes in a hierarchy of groups. Reductions are counted,
%% which no busy machine changes: so many are a few milliseconds.
a_search_among_ten_thousand_is_quick_test_() ->
    {timeout, 60, fun() ->
        Names = [member("n", I) || I <- lists:seq(1, 10000)],
        {ok, Topology} = atoll_topology:hierarchy(Names, #{group_size => 8, gateways => 2, fanout => 8}),
        Places = maps:groups_from_list(
            fun({Node, _}) -> Node end,
            fun({_, Group}) -> Group end,
            [{Node, Group} || {Group, Members} <- atoll_topology:groups(Topology), Node <- Members]
        ),
        Table = table(hd(Names), maps:to_list(Places)),
        Work = [
            work(fun() -> {ok, _} = atoll_routes:find(member("n", I), member("n", 10001 - I), #{}, Table) end)
         || I <- lists:seq(1, 4900, 100)
        ],
        ?assert(lists:nth(25, lists:sort(Work)) < 200000)
    end}.

work(Fun) ->
    {reductions, Before} = process_info(self(), reductions),
    _ = Fun(),
    {reductions, After} = process_info(self(), reductions),
    After - Before.
