%% SPDX-License-Identifier: Apache-2.0
%% Versions against a model in which each write is known with all that it stands over; hash trees; requests; and the checker of histories.
-module(ring_versions_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {"a copy has the values of the writes that it knows of and that none of these stands over", prop_model(), 1000},
        {"merging is commutative, associative and idempotent", prop_merge(), 500},
        {"a clock has the last starts of each partition on a node and no more, however often they begin, and nothing that stands is lost", prop_bounded(), 500},
        {"a value that its writer has is not sent back, and the rest is as it was", prop_without_newest(), 500},
        {"trees are equal where keys and hashes are, and else show where they are not", prop_tree(), 500},
        {"a request has one answer, and one that is true, whatever comes in whatever order", prop_request(), 1000}
    ]).

%% Versions. Replicas 1 to 3, each an actor; a write at one of them by somebody who has read at another one some time before. One that begins anew knows what it knew, and is another actor.

commands() -> list(oneof([{write, replica(), replica()}, {blind, replica()}, {sync, replica(), replica()}, {read, replica()}])).

restarts() -> list(frequency([{3, {restart, replica()}}, {1, {blind, replica()}}, {3, {write, replica(), replica()}}, {3, {sync, replica(), replica()}}, {2, {read, replica()}}])).

replica() -> range(1, 3).

prop_model() ->
    ?FORALL(Commands, commands(), begin
        {Clocks, Model, _, _, _} = run(Commands),
        conjunction([{R, equals(lists:sort(model_values(maps:get(R, Model))), lists:sort(ring_dvv:values(maps:get(R, Clocks))))} || R <- [1, 2, 3]])
    end).

%% The model of a replica is the set of the writes that it knows of, each with the set of all that its writer had seen.
run(Commands) ->
    Each = fun(Value) -> maps:from_keys([1, 2, 3], Value) end,
    lists:foldl(fun command/2, {Each(ring_dvv:new()), Each(#{}), Each({#{}, #{}}), Each(1), 1}, Commands).

command({read, R}, {Clocks, Model, Read, Starts, N}) ->
    {Clocks, Model, Read#{R := {ring_dvv:context(maps:get(R, Clocks)), maps:get(R, Model)}}, Starts, N};
command({write, R, At}, {_, _, Read, _, _} = State) -> write(R, maps:get(At, Read), State);
command({blind, R}, State) -> write(R, {#{}, #{}}, State);
command({restart, R}, {Clocks, Model, Read, Starts, N}) -> {Clocks, Model, Read, maps:update_with(R, fun(Start) -> Start + 1 end, Starts), N};
command({sync, A, B}, {Clocks, Model, Read, Starts, N}) ->
    {Clocks#{B := ring_dvv:merge(maps:get(A, Clocks), maps:get(B, Clocks))}, Model#{B := maps:merge(maps:get(A, Model), maps:get(B, Model))}, Read, Starts, N}.

%% Whoever orders a write has, with it, all that its writer had seen, as the clock has.
write(R, {Context, Seen}, {Clocks, Model, Read, Starts, N}) ->
    Clock = ring_dvv:event({{vnode, R}, maps:get(R, Starts)}, N, Context, maps:get(R, Clocks)),
    Own = maps:get(R, Model),
    {Clocks#{R := Clock}, Model#{R := (maps:merge(Seen, Own))#{N => maps:keys(Seen)}}, Read, Starts, N + 1}.

model_values(Known) ->
    Over = lists:usort(lists:append(maps:values(Known))),
    [N || N <- maps:keys(Known), not lists:member(N, Over)].

prop_merge() ->
    ?FORALL(Commands, commands(), begin
        {#{1 := A, 2 := B, 3 := C}, _, _, _, _} = run(Commands),
        AB = ring_dvv:merge(A, B),
        conjunction([
            {commutative, equals(AB, ring_dvv:merge(B, A))},
            {associative, equals(ring_dvv:merge(AB, C), ring_dvv:merge(A, ring_dvv:merge(B, C)))},
            {idempotent, equals(AB, ring_dvv:merge(AB, AB))},
            {context, equals(ring_dvv:context(AB), ring_dvv:join(ring_dvv:context(A), ring_dvv:context(B)))},
            {covers, ring_dvv:covers(ring_dvv:context(AB), ring_dvv:context(A))},
            {hash, (A =:= B) =:= (ring_dvv:hash(A) =:= ring_dvv:hash(B))},
            {same, (A =:= B) =:= ring_dvv:is_same(A, B)}
        ])
    end).

%% Replicas begin up to a hundred times; what was overwritten may come back, and what stands does not go.
prop_bounded() ->
    ?FORALL(Commands, ?SIZED(Size, resize(5 * Size, restarts())), begin
        {Clocks, Model, _, _, _} = run(Commands),
        conjunction(lists:append([
            begin
                Clock = maps:get(R, Clocks),
                Stand = ring_dvv:values(Clock),
                [
                    {{lost, R}, equals([], model_values(maps:get(R, Model)) -- Stand)},
                    {{invented, R}, equals([], Stand -- maps:keys(maps:get(R, Model)))},
                    {{many, R}, map_size(ring_dvv:context(Clock)) =< 3 * 8 + length(Stand)}
                ]
            end
         || R <- [1, 2, 3]
        ]))
    end).

prop_without_newest() ->
    ?FORALL({Commands, R}, {commands(), replica()}, begin
        {_, _, _, Starts, _} = State = run(Commands),
        {Clocks, _, _, _, N} = command({blind, R}, State),
        Clock = maps:get(R, Clocks),
        Actor = {{vnode, R}, maps:get(R, Starts)},
        Sent = ring_dvv:without_newest(Actor, Clock),
        conjunction([
            {not_there, not lists:member(N - 1, ring_dvv:values(Sent))},
            {same, ring_dvv:is_same(Sent, Clock)},
            {again, equals(Clock, ring_dvv:with_newest(Actor, N - 1, Sent))}
        ])
    end).

%% A node began again a hundred times, and each time somebody wrote who had read.
a_clock_does_not_grow_with_the_starts_of_its_nodes_test() ->
    Grown = lists:foldl(fun(Start, Clock) -> ring_dvv:event({a, Start}, Start, ring_dvv:context(Clock), Clock) end, ring_dvv:new(), lists:seq(1, 100)),
    ?assertEqual([100], ring_dvv:values(Grown)),
    ?assertEqual(8, map_size(ring_dvv:context(Grown))),
    %% What nobody has seen stands, from however many starts.
    Beside = lists:foldl(fun(Start, Clock) -> ring_dvv:event({a, Start}, Start, #{}, Clock) end, ring_dvv:new(), lists:seq(1, 100)),
    ?assertEqual(lists:seq(1, 100), lists:sort(ring_dvv:values(Beside))),
    %% Who has seen what is forgotten has seen nothing later; who has seen what is not there yet has.
    ?assert(ring_dvv:covers(ring_dvv:context(Grown), #{{a, 1} => 1, {a, 100} => 1})),
    ?assertNot(ring_dvv:covers(ring_dvv:context(Grown), #{{a, 101} => 1})),
    ?assertNot(ring_dvv:covers(ring_dvv:context(Grown), #{{a, 100} => 2})),
    ?assertNot(ring_dvv:covers(ring_dvv:context(Grown), #{{b, 1} => 1})).

two_writers_that_knew_nothing_of_each_other_both_stay_test() ->
    One = ring_dvv:event({a, 1}, x, #{}, ring_dvv:new()),
    Two = ring_dvv:event({a, 1}, y, #{}, One),
    ?assertEqual([y, x], ring_dvv:values(Two)),
    ?assertEqual([z], ring_dvv:values(ring_dvv:event({b, 1}, z, ring_dvv:context(Two), Two))),
    %% One has seen the first of them alone.
    ?assertEqual([z, y], ring_dvv:values(ring_dvv:event({a, 1}, z, ring_dvv:context(One), Two))).

%% Trees

prop_tree() ->
    ?FORALL({Keys, Others}, {list({range(1, 40), range(1, 5)}), list({range(1, 40), range(0, 5)})}, begin
        A = maps:from_list(Keys),
        B = maps:filter(fun(_, Hash) -> Hash > 0 end, maps:merge(A, maps:from_list(Others))),
        %% One comes by changes, the other anew.
        Changed = lists:foldl(fun({Key, New}, {Tree, Has}) -> {ring_tree:change(Key, maps:get(Key, Has, 0), New, Tree), Has#{Key => New}} end, {tree(A), A}, Others),
        Wrong = lists:usort([ring_tree:leaf(Key) || Key <- maps:keys(maps:merge(A, B)), maps:get(Key, A, 0) =/= maps:get(Key, B, 0)]),
        Branches = ring_tree:differing(ring_tree:branches(tree(A)), ring_tree:branches(tree(B))),
        conjunction([
            {same, equals(tree(B), element(1, Changed))},
            {root, (A =:= B) =:= (ring_tree:root(tree(A)) =:= ring_tree:root(tree(B)))},
            {branches, equals(lists:usort([Leaf div 16 || Leaf <- Wrong]), Branches)},
            {leaves, equals(Wrong, ring_tree:differing(ring_tree:leaves(Branches, tree(A)), ring_tree:leaves(Branches, tree(B))))}
        ])
    end).

tree(Hashes) -> maps:fold(fun(Key, Hash, Tree) -> ring_tree:change(Key, 0, Hash, Tree) end, ring_tree:new(), Hashes).

%% Requests: three copies; each of them answers, fails, is lost or says nothing, in any order, and then the time is over.

%% Two of the partitions may be with one node, and that one is lost with both.
prop_request() ->
    ?FORALL({Kind, N, Have, Drawn, Order, Nodes}, {oneof([read, write]), range(1, 3), vector(3, range(0, 2)), vector(3, oneof([well, error, overloaded, lost, silent])), vector(3, integer()), oneof([[a, b, c], [a, b, a], [a, a, b]])}, begin
        Lost = [Node || {Node, lost} <- lists:zip(Nodes, Drawn)],
        Fates = [case lists:member(Node, Lost) of true -> lost; false -> Fate end || {Node, Fate} <- lists:zip(Nodes, Drawn)],
        Entries = [{P, lists:nth(P, Nodes), primary} || P <- [1, 2, 3]],
        Need = {N, min(N, length(lists:usort(Nodes)))},
        {Request, Effects} = case Kind of
            read -> ring_request:read({1, key}, Entries, Need, #{});
            write -> ring_request:write({1, key}, {value, #{}}, Entries, Need)
        end,
        World = #{fates => Fates, have => Have, order => Order, nodes => Nodes},
        {Answers, IsOver, Tells, Taken} = play(Effects, Request, World, [], [], []),
        Well = [P || {P, well} <- lists:enumerate(Fates)],
        conjunction([
            {one, equals(1, length(Answers))},
            {over, IsOver},
            {answer, is_right(Kind, hd(Answers), Need, of_all(case Kind of read -> Well; write -> Taken end, Nodes))},
            {repairs, Kind =:= write orelse lists:all(fun({P, _}) -> lists:nth(P, Fates) =:= well end, Tells)}
        ])
    end).

%% How many partitions these are, and on how many nodes.
of_all(Ps, Nodes) -> {length(Ps), length(lists:usort([lists:nth(P, Nodes) || P <- Ps]))}.

is_right(_, {error, {too_few, N, Copies}}, {Copies, _}, {N, _}) -> N < Copies;
is_right(_, {error, {too_few_nodes, N, Nodes}}, {_, Nodes}, {_, N}) -> N < Nodes;
is_right(write, {error, _}, _, {Taken, _}) -> Taken =:= 0;
is_right(_, {error, _}, _, _) -> false;
is_right(_, _, {Copies, Nodes}, {N, M}) -> N >= Copies andalso M >= Nodes.

play([over | _], _, _, _, {Answers, Tells, Taken}, _) -> {Answers, true, Tells, Taken};
play(Effects, Request, World, Asked, [], Taken) when is_list(Taken) -> play(Effects, Request, World, Asked, {[], [], Taken}, next);
play([{answer, Answer} | Effects], Request, World, Asked, {Answers, Tells, Taken}, Next) ->
    play(Effects, Request, World, Asked, {[Answer | Answers], Tells, Taken}, Next);
play([{ask, {P, _, _}, Command} | Effects], Request, World, Asked, State, Next) ->
    play(Effects, Request, World, [{P, Command} | Asked], State, Next);
play([{tell, {P, _, _}, Command} | Effects], Request, World, Asked, {Answers, Tells, Taken}, Next) ->
    play(Effects, Request, World, Asked, {Answers, [{P, Command} | Tells], Taken}, Next);
play([], Request, #{fates := Fates, order := Order} = World, Asked, {Answers, Tells, Taken} = State, Next) ->
    case lists:sort([{lists:nth(P, Order), P, Command} || {P, Command} <- Asked, lists:nth(P, Fates) =/= silent]) of
        [] ->
            case Next of
                %% After the time nothing may be left to wait for.
                timed_out -> {Answers, false, Tells, Taken};
                next ->
                    {Now, Effects} = ring_request:handle(timeout, Request),
                    play(Effects, Now, World, [], State, timed_out)
            end;
        [{_, P, Command} | _] ->
            {Event, Has} = event(P, lists:nth(P, Fates), Command, World),
            {Now, Effects} = ring_request:handle(Event, Request),
            play(Effects, Now, World, Asked -- [{P, Command}], {Answers, Tells, Has ++ Taken}, Next)
    end.

event(P, lost, _, #{nodes := Nodes}) -> {{lost, lists:nth(P, Nodes)}, []};
event(P, error, _, _) -> {{reply, P, {error, broken}}, []};
event(P, overloaded, _, _) -> {{reply, P, {error, overloaded}}, []};
event(P, well, {get, _}, #{have := Have}) ->
    {{reply, P, {ok, lists:foldl(fun(N, Clock) -> ring_dvv:event({a, 1}, N, ring_dvv:context(Clock), Clock) end, ring_dvv:new(), lists:seq(1, lists:nth(P, Have)))}}, []};
event(P, well, {update, _, Value, Context}, _) ->
    Actor = {{vnode, P}, 1},
    Clock = ring_dvv:event(Actor, Value, Context, ring_dvv:new()),
    {{reply, P, {ok, ring_dvv:without_newest(Actor, Clock), ring_dvv:context(Clock)}}, [P]};
%% What the others get has the value.
event(P, well, {merge, _, Clock}, _) ->
    [value] = ring_dvv:values(Clock),
    {{reply, P, ok}, [P]}.

%% As in a ring of three nodes and 64 partitions, at the seam.
two_copies_on_one_node_are_not_two_nodes_test() ->
    Entries = [{63, a, primary}, {0, a, primary}, {1, b, primary}],
    Clock = ring_dvv:event({a, 1}, x, #{}, ring_dvv:new()),
    {W0, [{ask, {63, a, primary}, _}]} = ring_request:write({63, key}, {x, #{}}, Entries, {2, 2}),
    {W1, [_, _]} = ring_request:handle({reply, 63, {ok, ring_dvv:without_newest({a, 1}, Clock), ring_dvv:context(Clock)}}, W0),
    {W2, []} = ring_request:handle({reply, 0, ok}, W1),
    ?assertMatch({_, [{answer, {written, _}}, over]}, ring_request:handle({reply, 1, ok}, W2)),
    ?assertMatch({_, [{answer, {error, {too_few_nodes, 1, 2}}}, over]}, ring_request:handle(timeout, W2)),
    ?assertMatch({_, [{answer, {error, {too_few_nodes, 1, 2}}}, over]}, ring_request:write({63, key}, {x, #{}}, [{63, a, primary}, {0, a, primary}], {2, 2})).

%% Of copies that differ the older ones are told the newer one.
a_read_repairs_what_is_older_test() ->
    Entries = [{1, a, primary}, {2, b, primary}, {3, c, primary}],
    Old = ring_dvv:event({a, 1}, x, #{}, ring_dvv:new()),
    New = ring_dvv:event({a, 1}, y, ring_dvv:context(Old), Old),
    {R0, [_, _, _]} = ring_request:read({1, key}, Entries, {2, 2}, #{}),
    {R1, []} = ring_request:handle({reply, 1, {ok, Old}}, R0),
    {R2, [{answer, {ok, New}}]} = ring_request:handle({reply, 2, {ok, New}}, R1),
    {_, Effects} = ring_request:handle({reply, 3, {ok, ring_dvv:new()}}, R2),
    ?assertEqual([{1, {merge, {1, key}, New}}, {3, {merge, {1, key}, New}}], lists:sort([{P, Command} || {tell, {P, _, _}, Command} <- Effects])),
    ?assertEqual(over, lists:last(Effects)).

a_read_waits_for_what_its_caller_has_seen_test() ->
    Entries = [{1, a, primary}, {2, b, primary}, {3, c, primary}],
    Old = ring_dvv:event({a, 1}, x, #{}, ring_dvv:new()),
    New = ring_dvv:event({a, 1}, y, ring_dvv:context(Old), Old),
    {R0, _} = ring_request:read({1, key}, Entries, {2, 2}, ring_dvv:context(New)),
    {R1, []} = ring_request:handle({reply, 1, {ok, Old}}, R0),
    {R2, []} = ring_request:handle({reply, 2, {ok, Old}}, R1),
    ?assertMatch({_, [{answer, {ok, New}} | _]}, ring_request:handle({reply, 3, {ok, New}}, R2)),
    ?assertMatch({_, [{answer, {error, older}} | _]}, ring_request:handle({lost, c}, R2)).

%% Histories

a_history_that_loses_an_acknowledged_write_is_found_test() ->
    Events = [{write, s, k, 1, [], ok}, {read, s, k, [1]}, {write, s, k, 2, [1], ok}, {write, t, k, 3, [], unknown}],
    Clean = #{acknowledged => 2, reads => 1, lost => [], invented => [], older => []},
    ?assertEqual(Clean, ring_history:check(Events, #{k => [2]})),
    ?assertEqual(Clean, ring_history:check(Events, #{k => [2, 3]})),
    ?assertEqual(Clean#{lost := [{k, 2}]}, ring_history:check(Events, #{k => [1]})),
    ?assertEqual(Clean#{lost := [{k, 1}, {k, 2}]}, ring_history:check(Events, #{k => [3]})),
    ?assertEqual(Clean#{invented := [{k, 9}], lost := [{k, 1}, {k, 2}]}, ring_history:check(Events, #{k => [9]})).

a_session_that_reads_what_is_older_than_it_has_seen_is_found_test() ->
    Events = [{write, s, k, 1, [], ok}, {write, s, k, 2, [1], ok}, {read, t, k, [1]}, {read, t, k, [2]}, {read, s, k, [1]}, {read, t, k, [2]}],
    ?assertMatch(#{older := [{s, k, 2}], lost := []}, ring_history:check(Events, #{k => [2]})),
    ?assertMatch(#{older := [{s, k, 1}]}, ring_history:check([{write, s, k, 1, [], ok}, {read, s, k, []}], #{k => [1]})).

%% Keys are kept by partitions: with another number of them they would not be found.
a_folder_of_another_ring_is_refused_test() ->
    Dir = atoll_test_file:temporary("ring"),
    Of = fun(Partitions) -> {ok, Options} = ring_options:check(#{store => dets, dir => Dir, partitions => Partitions}), Options end,
    try
        ?assertEqual(ok, ring_store_dets:check(Of(16))),
        ?assertEqual(ok, ring_store_dets:check(Of(16))),
        {error, Said} = ring_store_dets:check(Of(64)),
        ?assertMatch({match, _}, re:run(Said, "holds a ring of 16 partitions, and the setting partitions says 64\\.$", [unicode])),
        ok = file:write_file(filename:join([Dir, atom_to_list(node()), "notes.dets"]), <<>>),
        ok = file:write_file(filename:join([Dir, atom_to_list(node()), "7.dets"]), <<>>),
        ?assertEqual([7], ring_store_dets:kept(Of(16)))
    after
        ok = file:del_dir_r(Dir)
    end,
    ok = file:write_file(Dir, <<>>),
    ?assertMatch({error, _}, ring_store_dets:check(Of(16))),
    ok = file:delete(Dir).

settings_that_are_wrong_are_named_test() ->
    {ok, #{partitions := 64, copies := 3, read := 2, write := 2, store := ets}} = ring_options:check(#{}),
    [
        ?assertEqual(Said, lists:flatten(ring_options:format_error(element(2, ring_options:check(Told)))))
     || {Told, Said} <- [
            {#{partitions => 48}, "The setting partitions of ring must be a power of two, 65536 at most."},
            {#{copies => 2, read => 3}, "The setting read of ring must be at most as many as there are copies."},
            {#{parts => 1}, "The setting parts of ring is not known."}
        ]
    ].
