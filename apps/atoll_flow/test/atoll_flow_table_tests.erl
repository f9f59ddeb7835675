%% SPDX-License-Identifier: Apache-2.0
%% Sums of looks, the tables of them, what groups they are of, and frames: without a node.
-module(atoll_flow_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {sums_are_what_was_said_whoever_looks, sums(), 1000},
        {the_tables_agree_with_each_other, tables(), 1000},
        {a_reader_of_frames_knows_what_was_written, frames(), 500}
    ]).

look(Epoch, Life, Sent, Wire) ->
    #{at => 0, life => Life, groups => none, peers => [], load => none, sent => Sent, connections => Wire,
      tracing => case Epoch of none -> off; _ -> tracing(Epoch, 0, 0, 0) end}.

tracing(Epoch, Traced, All, Estimated) -> #{epoch => Epoch, traced => Traced, all => All, whole => Traced =:= All, seen => 0, longest => 0, estimated => Estimated}.

%% However long the probe was there before, and for whom.
a_burst_that_was_sampled_is_told_test() ->
    Looks = [tracing(one, 5000, 5000, 0), tracing(one, 5900, 6000, 70), tracing(one, 100900, 101000, 70), tracing(two, 100, 200, 5)],
    [First, Second, Third, Last] = tl(lists:reverse(lists:foldl(fun(Look, [Share | _] = Shares) -> [atoll_flow_share:looked(Look, Share) | Shares] end, [none], Looks))),
    ?assertEqual([{1.0, 1.0, 0}, {0.9, 0.9, 70}], [{atoll_flow_share:all(Share), atoll_flow_share:fresh(Share), atoll_flow_share:estimated(Share)} || Share <- [First, Second]]),
    ?assertEqual({95900 / 96000, 1.0, 70}, {atoll_flow_share:all(Third), atoll_flow_share:fresh(Third), atoll_flow_share:estimated(Third)}),
    ?assertEqual({96000 / 96200, 0.5, 75}, {atoll_flow_share:all(Last), atoll_flow_share:fresh(Last), atoll_flow_share:estimated(Last)}),
    Said = fun(Share, Estimated) -> [unicode:characters_to_list(Line) || Line <- atoll_flow_cli:said(#{nodes => [], shares => [{a, Share, Estimated}], omitted => 0, beyond => 0, not_kept => none})] end,
    ?assertEqual({[], ["a sends more than the limit: 99.9 % of the time was traced, and 70 of its messages are taken from that"]}, {Said(1.0, 0), Said(95900 / 96000, 70)}).


%% Each node counts up from its epoch; a new epoch begins at 0. What it counted before the first look does not count.
sums() ->
    ?FORALL(Steps, list({oneof([a, b]), oneof([more, again]), range(0, 9)}), begin
        World0 = #{sums => atoll_flow_sums:new(), nodes => #{}, all => #{}, fresh => []},
        #{sums := Sums, all := All} = lists:foldl(fun({Node, What, N}, #{sums := S, nodes := Nodes, all := A} = World) ->
            {Epoch0, Had, Seen} = maps:get(Node, Nodes, {1, 0, false}),
            {Epoch, Has} = case What of more -> {Epoch0, Had + N}; again -> {Epoch0 + 1, N} end,
            Gain = case {Seen, What} of {false, _} -> 0; {true, _} -> N end,
            World#{
                sums := atoll_flow_sums:looked(Node, look(Epoch, 1, [{{p, {[], none}, message, any}, Has, 2 * Has}], []), fun groups_of/1, S),
                nodes := Nodes#{Node => {Epoch, Has, true}}, all := maps:update_with(Node, fun(G) -> G + Gain end, Gain, A)
            }
        end, World0, Steps),
        Totals = atoll_flow_sums:totals(Sums),
        {Fresh, Read} = atoll_flow_sums:fresh(Sums),
        {[], _} = atoll_flow_sums:fresh(Read),
        ?assertEqual([{Node, G, 2 * G} || {Node, G} <- lists:sort(maps:to_list(All)), G > 0], [{Node, C, B} || {{Node, p, _, message, any}, {C, B}} <- lists:sort(maps:to_list(Totals)), C > 0]),
        ?assertEqual(maps:to_list(Totals), maps:to_list(maps:from_list(Fresh))),
        true
    end).

a_connection_that_is_a_new_one_counts_from_its_beginning_test() ->
    S1 = atoll_flow_sums:looked(a, look(none, 1, [], [{p, 100, 1000}, {q, unknown, 5}]), fun groups_of/1, atoll_flow_sums:new()),
    S2 = atoll_flow_sums:looked(a, look(none, 1, [], [{p, 110, 1500}, {q, unknown, 50}]), fun groups_of/1, S1),
    S3 = atoll_flow_sums:looked(a, look(none, 1, [], [{p, 3, 40}, {q, unknown, 50}]), fun groups_of/1, S2),
    ?assertEqual(#{{a, p, {[g1], none, []}, wire, any} => {13, 540}, {a, q, {[g1], none, []}, wire, any} => {0, 45}}, atoll_flow_sums:totals(S3)).

groups() -> [{g1, [a, b, c]}, {g2, [c, d]}, {g3, [e]}].

groups_of(Node) -> [Group || {Group, Nodes} <- groups(), lists:member(Node, Nodes)].

shared(A, B) -> [Group || Group <- groups_of(A), lists:member(Group, groups_of(B))].

%% What is sent is what comes; what goes between groups is a part of it.
tables() ->
    Node = oneof([a, b, c, d, e, f]),
    ?FORALL(Sent, list({Node, Node, oneof([message, call]), range(1, 9)}), begin
        Sums = lists:foldl(fun({From, To, Kind, N}, S) -> sent(From, To, Kind, N, S) end, atoll_flow_sums:new(), Sent),
        #{sent := OfNodes, flow := Flow, bridge := Bridge, node := Pairs, group := Groups, kind := Kinds} = Tables = atoll_flow_table:of_sums(messages, Sums),
        All = lists:sum([N || {_, _, _, N} <- Sent]),
        Sum = fun(List) -> lists:sum([element(2, Row) || Row <- List]) end,
        {All, Between} = atoll_flow_table:between(Tables),
        ?assertEqual(lists:duplicate(5, All), [Sum(Flow), lists:sum([Out || {_, _, Out} <- Flow]), Sum(Kinds), lists:sum([C || {_, _, C, _} <- Pairs]), lists:sum([C || {_, _, C, _} <- Groups])]),
        ?assert(lists:all(fun({_, A, B}) -> B =< A end, OfNodes)),
        ?assertEqual([c || lists:any(fun({From, To, _, _}) -> lists:member(c, [From, To]) end, Sent)], [Is || {Is, _, _} <- Bridge]),
        ?assertEqual(lists:sum([N || {From, To, _, N} <- Sent, shared(From, To) =:= [], {From, To} =/= {f, f}]), Between),
        [?assertEqual({Name, length(atoll_flow_table:columns(Name))}, {Name, length(Row)}) || Name <- atoll_flow_table:names(), Row <- atoll_flow_table:rows(Name, Tables)],
        true
    end).

%% As if that alone was said, from a new beginning.
sent(From, To, Kind, N, Sums) ->
    Looks = [look(none, 1, [], []), look(make_ref(), 1, [{{To, {groups_of(From), case shared(From, To) of [G | _] -> {ok, G}; [] -> none end}, Kind, any}, N, N}], [])],
    lists:foldl(fun(Look, Acc) -> atoll_flow_sums:looked(From, Look, fun groups_of/1, Acc) end, Sums, Looks).

the_group_table_names_the_way_test() ->
    Sums = lists:foldl(fun({From, To, N}, S) -> sent(From, To, message, N, S) end, atoll_flow_sums:new(), [{a, b, 1}, {a, d, 2}, {c, e, 3}, {a, f, 4}]),
    ?assertEqual([{<<"g1">>, <<"-">>, 4, 4}, {<<"g1">>, <<"g1">>, 1, 1}, {<<"g1">>, <<"g2">>, 2, 2}, {<<"g1+g2">>, <<"g3">>, 3, 3}],
                 maps:get(group, atoll_flow_table:of_sums(messages, Sums))).

tables_are_csv_test() ->
    Tables = atoll_flow_table:of_sums(messages, sent('a"1', z, message, 2, atoll_flow_sums:new())),
    ?assertEqual(<<"from,to,count,bytes\r\n\"a\"\"1\",z,2,2\r\n">>, iolist_to_binary(atoll_flow_cli:csv(Tables, node))),
    ?assertEqual(<<"node,sent,between_groups,share\r\n\"a\"\"1\",2,0,0.0000\r\nz,0,0,0.0000\r\n">>, iolist_to_binary(atoll_flow_cli:csv(Tables, sent))).

%% Pictures

each_node_is_in_what_it_says_itself_test() ->
    ?assertEqual({[{g, [a, b]}], [c]}, atoll_flow_picture:of_looks([a, b, c], [], #{a => [{g, [a, b, c]}], b => [{g, [a, b]}], c => []})).

one_that_says_nothing_is_in_what_others_say_test() ->
    ?assertEqual({[{g, [a, b]}], [c]}, atoll_flow_picture:of_looks([a, b, c], [], #{a => [{g, [a, b]}], b => none, c => none})).

a_lost_node_is_in_what_others_say_or_in_what_all_said_who_are_lost_test() ->
    Said = #{a => [{g, [a, b]}, {h, [a, c]}], b => [{g, [b]}], c => []},
    ?assertEqual({[{g, [b]}], [a, c]}, atoll_flow_picture:of_looks([a, b, c], [a], Said)),
    ?assertEqual({[{g, [a, b]}], []}, atoll_flow_picture:of_looks([a, b], [a], #{a => [{g, [a, b]}], b => [{g, [a, b]}]})),
    ?assertEqual({[{g, [a, b]}], []}, atoll_flow_picture:of_looks([a, b], [a, b], #{a => [{g, [a, b]}], b => [{g, [a, b]}]})).

%% Frames

frames() ->
    Node = oneof([a, b, c, d]),
    Nodes = ?LET(List, list(Node), lists:usort(List)),
    Frame = {Nodes, list({oneof([g1, g2]), Nodes}), Nodes, list({Node, Node, range(1, 9), range(1, 9)})},
    ?FORALL(Frames, list(Frame), begin
        Written = [#{at => 1000 + 200 * N, nodes => Ns, groups => Gs, down => Ds, edges => Es, counts => messages, shares => [], loads => []} || {N, {Ns, Gs, Ds, Es}} <- lists:zip(lists:seq(1, length(Frames)), Frames)],
        {Lines, _} = lists:mapfoldl(fun(Is, Writer) -> {{Object}, Next} = atoll_flow_frame:object(Is, Writer), {maps:from_list(Object), Next} end, atoll_flow_frame:new(), Written),
        _ = lists:foldl(fun({Line, #{groups := Gs, down := Ds, edges := Es, at := At}}, {Names0, Groups0, Down0}) ->
            Names = Names0 ++ maps:get(n, Line, []),
            Name = fun(N) -> binary_to_atom(lists:nth(N + 1, Names)) end,
            Groups = maps:get(g, Line, Groups0),
            Down = maps:get(d, Line, Down0),
            ?assertEqual(Gs, [{binary_to_atom(G), [Name(N) || N <- Ns]} || [G, Ns] <- Groups]),
            ?assertEqual(Ds, [Name(N) || N <- Down]),
            ?assertEqual(Es, [{Name(F), Name(T), C, B} || [F, T, C, B] <- maps:get(e, Line, [])]),
            ?assertEqual(At - 1200, maps:get(t, Line)),
            {Names, Groups, Down}
        end, {[], [], []}, lists:zip(Lines, Written)),
        true
    end).

%% Chips, as the facts have a machine: 2 chips with 6 cores of 2 threads.

machine() -> [{processor, [{core, [{thread, {logical, 0}}, {thread, {logical, 1}}]} || _ <- lists:seq(1, 6)]} || _ <- [1, 2]].

schedulers_stand_by_chip_core_and_thread_test() ->
    Places = atoll_flow_chips:places(24, machine()),
    ?assertEqual([{0, 0, 0}, {0, 0, 1}, {0, 1, 0}], lists:sublist(Places, 3)),
    ?assertEqual({1, 11, 1}, lists:last(Places)),
    ?assertEqual({2, 12, 24}, {length(lists:usort([C || {C, _, _} <- Places])), length(lists:usort([C || {_, C, _} <- Places])), length(lists:usort(Places))}),
    ?assertEqual([{0, 0, 0}, {0, 1, 0}], atoll_flow_chips:places(2, undefined)),
    ?assertEqual([{0, 0, 0}, {0, 0, 0}], atoll_flow_chips:places(2, [{processor, {logical, 0}}])).

a_migration_is_as_far_as_what_it_crosses_test() ->
    [A, B, C | _] = Places = atoll_flow_chips:places(24, machine()),
    ?assertEqual([thread, core, chip], [atoll_flow_chips:distance(A, Other) || Other <- [B, C, lists:last(Places)]]).
