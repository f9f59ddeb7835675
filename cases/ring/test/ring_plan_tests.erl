%% SPDX-License-Identifier: Apache-2.0
%% The ring's pure half: hashing, claim, what nodes agree on, preference lists and coverage.
-module(ring_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {"a claim is balanced, spaced wherever there are nodes enough, and moves little", prop_claim(), 300},
        {"nodes that have had the same pieces have the same ring, in whatever order they came", prop_same(), 500},
        {"a ring comes to rest, with all its members and nobody else", prop_rest(), 200},
        {"what somebody lacks, and no more, is what makes rings equal", prop_since(), 500},
        {"a preference list has successive partitions, and no node of it twice while there are enough", prop_preflist(), 500},
        {"a coverage has the keys of each partition once, from somebody well who holds them", prop_coverage(), 500}
    ]).

node_of(N) -> list_to_atom("n" ++ integer_to_list(N) ++ "@h").

nodes_of(N) -> [node_of(I) || I <- lists:seq(1, N)].

none(Q) -> erlang:make_tuple(Q, none).

partitions_of_a_ring_are_all_hashes_test() ->
    [
        begin
            Ranges = [ring_hash:range(P, Q) || P <- lists:seq(0, Q - 1)],
            ?assertEqual(1 bsl 160, lists:sum([To - From + 1 || {From, To} <- Ranges])),
            ?assertEqual({0, (1 bsl 160) - 1}, {element(1, hd(Ranges)), element(2, lists:last(Ranges))}),
            <<Hash:160>> = crypto:hash(sha, term_to_binary(a_key, [{minor_version, 2}])),
            {From, To} = lists:nth(ring_hash:partition(a_key, Q) + 1, Ranges),
            ?assert(From =< Hash andalso Hash =< To)
        end
     || Q <- [1, 2, 64, 1024]
    ],
    ?assertEqual([true, true, true, false, false, false], [ring_hash:is_count(N) || N <- [1, 64, 65536, 0, 48, 131072]]),
    ?assertEqual([62, 63, 0], ring_hash:successors(62, 3, 64)).

%% The goal, with 1,024 partitions: 64 nodes that come one by one, and one more, and go again in any order.
sixty_four_nodes_that_come_and_go_test_() ->
    {timeout, 120, fun() ->
        Come = lists:foldl(fun(N, Owners) -> claimed(Owners, nodes_of(N)) end, none(1024), lists:seq(1, 65)),
        ?assertEqual(65, length(lists:usort(tuple_to_list(Come)))),
        _ = rand:seed(exsss, atoll_tier:seed(sixty_four_nodes)),
        Order = [Node || {_, Node} <- lists:sort([{rand:uniform(), Node} || Node <- nodes_of(65)])],
        _ = lists:foldl(
            fun(Node, {Nodes, Owners}) ->
                Left = Nodes -- [Node],
                {Left, claimed(Owners, Left)}
            end,
            {nodes_of(65), Come},
            lists:sublist(Order, 64)
        ),
        AtOnce = ring_claim:claim(none(1024), nodes_of(64), 3),
        ?assertEqual({0, []}, {spread(AtOnce), ring_claim:crowded(AtOnce, 3)})
    end}.

%% With fewer than six nodes spacing may take more. With three there is one order round the ring, and two nodes have but a third of it right.
claimed(Owners, Nodes) ->
    N = length(Nodes),
    Now = ring_claim:claim(Owners, Nodes, 3),
    ?assert(spread(Now) =< 1),
    ?assert(N < 6 orelse ring_claim:crowded(Now, 3) =:= []),
    Grows = N > length(lists:usort(tuple_to_list(Owners)) -- [none]),
    ?assert(N < 6 andalso not (Grows andalso N =/= 3) orelse moves(Owners, Now) =< 1.2 * least(Owners, Nodes)),
    Now.

counts(Owners) -> lists:foldl(fun(Node, Has) -> maps:update_with(Node, fun(N) -> N + 1 end, 1, Has) end, #{}, tuple_to_list(Owners)).

spread(Owners) ->
    Counts = maps:values(counts(Owners)),
    lists:max(Counts) - lists:min(Counts).

moves(Before, After) -> length([moved || {A, B} <- lists:zip(tuple_to_list(Before), tuple_to_list(After)), A =/= B]).

%% What stays at most: of each node what it has, as far as there is room in balance, with the larger shares for those that have more.
least(Before, Nodes) ->
    Q = tuple_size(Before),
    Has = lists:reverse(lists:sort([maps:get(Node, counts(Before), 0) || Node <- Nodes])),
    Shares = [Q div length(Nodes) + case I =< Q rem length(Nodes) of true -> 1; false -> 0 end || I <- lists:seq(1, length(Nodes))],
    Q - lists:sum([min(A, B) || {A, B} <- lists:zip(Has, Shares)]).

%% Members come and go, one or some at a time.
prop_claim() ->
    ?FORALL({Bits, Spacing, Steps}, {range(3, 8), range(1, 4), non_empty(list({range(1, 3), oneof([come, go])}))}, begin
        Q = 1 bsl Bits,
        {_, _, AllBad} = lists:foldl(
            fun({N, What}, {Members, Owners, Bad}) ->
                Now = case What of
                    come -> lists:usort(Members ++ [node_of(lists:max([0 | [number(M) || M <- Members]]) + I) || I <- lists:seq(1, N)]);
                    go -> case length(Members) > N of true -> lists:nthtail(N, Members); false -> Members end
                end,
                case Now of
                    [] -> {Now, Owners, Bad};
                    _ when length(Now) > Q -> {Members, Owners, Bad};
                    _ ->
                        After = ring_claim:claim(Owners, Now, Spacing),
                        {Now, After, [Wrong || Wrong <- [wrong(Owners, After, Now, Spacing)], Wrong =/= fine] ++ Bad}
                end
            end,
            {[], none(Q), []},
            Steps
        ),
        ?WHENFAIL(io:format("~p~n", [AllBad]), AllBad =:= [])
    end).

number(Node) -> list_to_integer(tl(hd(string:split(atom_to_list(Node), "@")))).

wrong(Before, After, Members, Spacing) ->
    Q = tuple_size(After),
    Has = counts(After),
    Shares = [maps:get(Node, Has, 0) || Node <- Members],
    Crowded = ring_claim:crowded(After, Spacing),
    Enough = length(Members) >= 2 * Spacing andalso Q >= 4 * Spacing * Spacing,
    case {tuple_size(Before), maps:without(Members, Has)} of
        {Other, _} when Other =/= Q -> size;
        {_, Strangers} when map_size(Strangers) > 0 -> strangers;
        _ ->
            case {lists:max(Shares) - lists:min(Shares) =< 1, Enough andalso Crowded =/= []} of
                {false, _} -> {unbalanced, Shares};
                {true, true} -> {crowded, Spacing, length(Members), Crowded};
                {true, false} -> fine
            end
    end.

%% Rings

ring(N) -> ring_state:new(16, 3, nodes_of(N)).

%% A history: changes by the claimant, each with its pieces.
history() ->
    ?LET({N, Steps}, {range(1, 5), list({oneof([join, leave, remove, arrive, plan]), range(1, 8)})}, begin
        {_, Pieces} = lists:foldl(fun(Step, {Ring, All}) -> New = step(Step, Ring), {told(New, Ring), All ++ New} end, {ring(N), []}, Steps),
        {N, Pieces}
    end).

told(Pieces, Ring) -> lists:foldl(fun({Name, Value}, Now) -> case ring_state:apply(Name, Value, Now) of {changed, Next} -> Next; same -> Now end end, Ring, Pieces).

step({join, N}, Ring) -> [ring_state:set_member(node_of(N), joining, Ring) || ring_state:status_of(node_of(N), Ring) =:= gone];
step({What, N}, Ring) when What =:= leave; What =:= remove ->
    [
        ring_state:set_member(node_of(N), case What of leave -> leaving; remove -> gone end, Ring)
     || ring_state:status_of(node_of(N), Ring) =:= valid, length(ring_state:members([valid], Ring)) > 1
    ];
step({arrive, N}, Ring) ->
    case lists:sublist(lists:sort(maps:keys(ring_state:pending(Ring))), N) of
        [] -> [];
        Some -> [ring_state:arrived(Some, Ring)]
    end;
step({plan, _}, Ring) ->
    Up = [Node || {Node, _} <- ring_state:members(Ring)],
    ring_state:plan(ring_state:claimant(Up, Ring), Up, Ring).

%% Plans in the order in which they were made, or later ones first: the later one counts. What has arrived belongs to a plan.
prop_same() ->
    ?FORALL({{N, Pieces}, Seed}, {history(), integer()}, begin
        All = told(Pieces, ring(N)),
        Twice = told(Pieces ++ Pieces, ring(N)),
        %% As comparisons bring it: of two that have had different pieces each gets what it lacks.
        _ = rand:seed(exsss, Seed),
        {A, B} = lists:partition(fun(_) -> rand:uniform(2) =:= 1 end, Pieces),
        {C, D} = {told(A, ring(N)), told(B, ring(N))},
        E = told(ring_state:since(ring_state:digest(C), D), C),
        F = told(ring_state:since(ring_state:digest(D), C), D),
        conjunction([{twice, equals(All, Twice)}, {both, equals(E, F)}])
    end).

prop_rest() ->
    ?FORALL({N, Pieces}, history(), begin
        Ring = rest(told(Pieces, ring(N)), 10),
        Members = ring_state:members(Ring),
        Owners = lists:usort(tuple_to_list(ring_state:owners(Ring))),
        conjunction([
            {settled, ring_state:is_settled(Ring)},
            {valid, equals([], [Node || {Node, Status} <- Members, Status =/= valid])},
            {owners, equals([], Owners -- [Node || {Node, _} <- Members])},
            {all, length(Members) > 16 orelse length(Owners) =:= length(Members)}
        ])
    end).

rest(Ring, 0) -> Ring;
rest(Ring, N) ->
    Planned = told(step({plan, 1}, Ring), Ring),
    Arrived = told(step({arrive, 100}, Planned), Planned),
    rest(told([Piece || Node <- ring_state:members([leaving], Arrived), Piece <- ring_state:out(Node, Arrived)], Arrived), N - 1).

prop_since() ->
    ?FORALL({N, Pieces}, history(), begin
        Late = told(lists:sublist(Pieces, length(Pieces) div 2), ring(N)),
        Now = told(Pieces, ring(N)),
        conjunction([
            {same, equals(Now, told(ring_state:since(ring_state:digest(Late), Now), Late))},
            {empty, equals(Now, told(ring_state:since(ring_state:digest(ring_state:empty(16, 3)), Now), ring_state:empty(16, 3)))},
            {nothing, equals([], ring_state:since(ring_state:digest(Now), Now))}
        ])
    end).

%% One was told of a node more, and both of other copies.
nodes_that_begin_with_other_settings_come_to_have_one_ring_test_() ->
    [
        fun() ->
            C = told(ring_state:since(ring_state:digest(A), B), A),
            D = told(ring_state:since(ring_state:digest(B), A), B),
            ?assertEqual({ring_state:owners(C), ring_state:members(C)}, {ring_state:owners(D), ring_state:members(D)}),
            ?assertEqual(nodes_of(3), lists:usort(tuple_to_list(ring_state:owners(rest(C, 10)))))
        end
     || {A, B} <- [{ring_state:new(16, 3, nodes_of(2)), ring_state:new(16, 3, nodes_of(3))}, {ring_state:new(16, 3, [node_of(1), node_of(3)]), ring_state:new(16, 3, nodes_of(2))}]
    ].

%% Of two that say something of one node at a time, who ends it is right, in whatever order it is heard.
a_node_that_leaves_while_it_is_made_a_member_leaves_test() ->
    Ring = told([ring_state:set_member(node_of(4), joining, ring(3))], ring(3)),
    Of = fun(Status) -> ring_state:set_member(node_of(4), Status, Ring) end,
    [
        ?assertEqual(Last, ring_state:status_of(node_of(4), told(Pieces, Ring)))
     || {One, Other, Last} <- [{leaving, valid, leaving}, {gone, valid, gone}, {gone, leaving, gone}],
        Pieces <- [[Of(One), Of(Other)], [Of(Other), Of(One)]]
    ],
    {A, B} = {told([Of(valid)], Ring), told([Of(leaving)], Ring)},
    ?assertEqual([Of(leaving)], ring_state:since(ring_state:digest(A), B)),
    ?assertEqual([], ring_state:since(ring_state:digest(B), A)).

a_node_that_leaves_is_out_when_it_says_so_itself_test() ->
    Ring = ring(4),
    Leaving = told([ring_state:set_member(node_of(2), leaving, Ring)], Ring),
    ?assertEqual([], ring_state:out(node_of(2), Leaving)),
    Planned = told(step({plan, 1}, Leaving), Leaving),
    ?assertEqual([], ring_state:out(node_of(2), Planned)),
    Arrived = told(step({arrive, 100}, Planned), Planned),
    %% It may have hints: nobody else says it.
    ?assertEqual([], step({plan, 1}, Arrived)),
    ?assertEqual(gone, ring_state:status_of(node_of(2), told(ring_state:out(node_of(2), Arrived), Arrived))).

%% Who is gone hands nothing over: its partitions are others' at once.
a_node_that_is_removed_is_waited_for_by_nobody_test() ->
    Ring = ring(4),
    Removed = told([ring_state:set_member(node_of(2), gone, Ring)], Ring),
    Planned = told(step({plan, 1}, Removed), Removed),
    ?assertNot(lists:member(node_of(2), tuple_to_list(ring_state:owners(Planned)))),
    ?assertEqual([], [P || {P, To} <- maps:to_list(ring_state:pending(Planned)), To =:= node_of(2)]).

who_has_what_is_anothers_hands_it_over_test() ->
    Ring = ring(3),
    [Joined | _] = [told([ring_state:set_member(node_of(4), joining, Ring)], Ring)],
    Planned = told(step({plan, 1}, Joined), Joined),
    [{P, To} | _] = lists:sort(maps:to_list(ring_state:pending(Planned))),
    ?assertEqual(node_of(4), To),
    From = ring_state:owner(P, Planned),
    [Third | _] = nodes_of(3) -- [From],
    ?assertEqual({next, To}, ring_state:target(P, From, Planned)),
    ?assertEqual({owner, From}, ring_state:target(P, Third, Planned)),
    %% It is on its way there: it does not go back.
    ?assertEqual(none, ring_state:target(P, To, Planned)),
    Arrived = told([ring_state:arrived([P], Planned)], Planned),
    ?assertEqual({To, none, {owner, To}}, {ring_state:owner(P, Arrived), ring_state:target(P, To, Arrived), ring_state:target(P, From, Arrived)}).

%% Preference lists and coverage

prop_preflist() ->
    ?FORALL({Bits, N, Copies, P, Down}, {range(4, 7), range(1, 9), range(1, 4), nat(), list(range(1, 9))}, begin
        Q = 1 bsl Bits,
        Owners = ring_claim:claim(none(Q), nodes_of(N), Copies),
        Owner = fun(I) -> element(I + 1, Owners) end,
        IsUp = fun(Node) -> not lists:member(Node, [node_of(I) || I <- Down]) end,
        At = P rem Q,
        List = ring_preflist:of_partition(At, Copies, Q, Owner, IsUp),
        Nodes = [Node || {_, Node, _} <- List],
        Primaries = [Owner(I) || I <- ring_hash:successors(At, Copies, Q)],
        Distinct = length(lists:usort(Primaries)) =:= length(Primaries),
        Well = length([Node || Node <- nodes_of(N), IsUp(Node)]),
        conjunction([
            {up, lists:all(IsUp, Nodes)},
            {places, equals([], [I || {I, _, _} <- List] -- ring_hash:successors(At, Copies, Q))},
            {primary, equals([], [I || {I, Node, primary} <- List, Owner(I) =/= Node])},
            {fallback, equals([], [I || {I, Node, fallback} <- List, IsUp(Owner(I)) orelse Node =:= Owner(I)])},
            {twice, not Distinct orelse length(lists:usort(Nodes)) =:= length(Nodes)},
            {enough, not Distinct orelse length(List) =:= min(Copies, Well)}
        ])
    end).

prop_coverage() ->
    ?FORALL({Bits, N, Copies, Down}, {range(1, 6), range(1, 9), range(1, 4), list(range(1, 9))}, begin
        Q = 1 bsl Bits,
        Owners = ring_claim:claim(none(Q), nodes_of(N), Copies),
        Owner = fun(I) -> element(I + 1, Owners) end,
        IsUp = fun(Node) -> not lists:member(Node, [node_of(I) || I <- Down]) end,
        case ring_coverage:plan(Q, Copies, Owner, IsUp) of
            {ok, Parts} ->
                conjunction([
                    {once, equals(lists:seq(0, Q - 1), lists:sort(lists:append([Of || {_, _, Of} <- Parts])))},
                    {held, equals([], [{P, Of} || {P, _, All} <- Parts, Of <- All, not lists:member(P, ring_hash:successors(Of, Copies, Q))])},
                    {well, lists:all(fun({P, Node, _}) -> IsUp(Node) andalso Owner(P) =:= Node end, Parts)},
                    {few, length([up || Node <- nodes_of(N), IsUp(Node)]) < N orelse length(Parts) =:= ceil(Q / min(Copies, Q))}
                ]);
            {error, {uncovered, P}} ->
                not lists:any(fun(I) -> IsUp(Owner(I)) end, ring_hash:successors(P, Copies, Q))
        end
    end).
