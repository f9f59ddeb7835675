%% SPDX-License-Identifier: Apache-2.0
-module(im_plan_tests).

-include_lib("eunit/include/eunit.hrl").

named(Kind, Count) -> [list_to_atom(Kind ++ integer_to_list(I) ++ "@host") || I <- lists:seq(1, Count)].

plan(Mode, NR, NS) -> plan(#{mode => Mode, routers => named("r", NR), servers => named("s", NS)}).

plan(Settings) ->
    {ok, Plan} = im_plan:new(Settings),
    Plan.

a_fault_of_the_settings_is_one_sentence_test_() ->
    Good = #{routers => ['r@h'], servers => ['s@h', 't@h']},
    [?_assertEqual(Sentence, begin
                                 {error, Reason} = im_plan:new(Settings),
                                 lists:flatten(io_lib:format("~ts", [im_plan:format_error(Reason)]))
                             end)
     || {Settings, Sentence} <- [
        {Good#{rooters => 1}, "There is no setting rooters."},
        {maps:remove(servers, Good), "The setting servers is missing: the nodes, in order."},
        {Good#{mode => mesh}, "The setting mode must be one of rd, rsd, not mesh."},
        {Good#{servers => []}, "The setting servers must be a list of nodes, not []."},
        {Good#{servers => ['s@h' | 't@h']}, "The setting servers must be a list of nodes, not [s@h|t@h]."},
        {Good#{servers => [s]}, "The setting servers must be a list of nodes, not [s]."},
        {Good#{away_messages => 0}, "The setting away_messages must be a whole number from 1 to 100000, not 0."},
        {Good#{servers => ['s@h', 'r@h']}, "The node r@h is named twice in the settings routers and servers."},
        {Good#{mode => rsd, routers => ['r@h', 'q@h', 'p@h']},
         "In mode rsd each router has a server at least; there are 3 routers and 2 servers."}
    ]].

%% The worked values of the original formula.
the_original_mapping_is_exact_test() ->
    Plan = plan(#{mapping => compat, routers => named("r", 1), servers => named("s", 4)}),
    Of = fun(Client) -> im_plan:server_of_client(Client, Plan) end,
    ?assertEqual([2, 2, 2, 2, 2], [Of(Client) || Client <- [<<"a">>, <<"tc1_1">>, <<"tc2_1">>, <<"tc100_3">>, <<"alice">>]]),
    ?assertEqual([3, 3], [Of(Client) || Client <- [<<"ab">>, <<"bob">>]]).

shares(Mapping) ->
    Plan = plan(#{mapping => Mapping, routers => named("r", 1), servers => named("s", 12)}),
    Clients = [iolist_to_binary(io_lib:format("tc~b_~b", [I, K])) || I <- lists:seq(1, 2500), K <- lists:seq(1, 4)],
    Count = lists:foldl(fun(C, Acc) -> maps:update_with(im_plan:server_of_client(C, Plan), fun(N) -> N + 1 end, 1, Acc) end, #{}, Clients),
    [maps:get(J, Count) || J <- lists:seq(1, 12)].

the_original_mapping_is_uneven_test() ->
    ?assertEqual([501, 99, 1900, 501, 99, 1900, 501, 99, 1900, 501, 99, 1900], shares(compat)).

the_own_mapping_is_even_test() ->
    [?assert(abs(Share - 10_000 / 12) < 100, Share) || Share <- shares(even)].

connections_are_those_of_the_formulas_test_() ->
    [?_assertEqual({RD, RSD}, {im_plan:connections(plan(rd, NR, NS)), im_plan:connections(plan(rsd, NR, NS))})
     || {NR, NS, RD, RSD} <- [{2, 12, 91, 43}, {4, 12, 120, 30}, {1, 5, 15, 15}, {2, 6, 28, 13}]].

the_second_copy_is_on_the_previous_node_test() ->
    [S1, S2, S3, S4, S5, S6] = named("s", 6),
    RD = plan(rd, 2, 6),
    ?assertEqual([S3, S2, S1, S6, S5, S4], im_plan:peers(3, RD)),
    ?assertEqual([S1, S6, S5, S4, S3, S2], im_plan:peers(1, RD)),
    ?assertEqual({all, named("r", 2) ++ named("s", 6)}, {im_plan:group_of(3, RD), im_plan:members(3, RD)}),
    RSD = plan(rsd, 2, 6),
    ?assertEqual([S1, S3, S2], im_plan:peers(1, RSD)),
    ?assertEqual([S4, S6, S5], im_plan:peers(4, RSD)),
    ?assertEqual({router_2, ['r2@host', S4, S5, S6]}, {im_plan:group_of(5, RSD), im_plan:members(5, RSD)}),
    ?assertEqual('r2@host', im_plan:router_of(5, RSD)).

%% Also where the numbers do not fit.
each_server_is_in_one_group_test_() ->
    [?_test(begin
         Plan = plan(rsd, NR, NS),
         [{routers_group, Routers} | Groups] = im_plan:groups(Plan),
         ?assertEqual(Routers, [Router || {_, [Router | _]} <- Groups]),
         ?assertEqual(named("s", NS), lists:append([Servers || {_, [_ | Servers]} <- Groups])),
         Sizes = [length(Members) || {_, Members} <- Groups],
         ?assert(lists:max(Sizes) - lists:min(Sizes) =< 1, Sizes)
     end) || {NR, NS} <- [{1, 1}, {2, 7}, {3, 7}, {3, 8}, {5, 5}, {4, 18}]].

names_are_the_papers_test() ->
    Plan = plan(rsd, 2, 6),
    ?assertEqual(['server_3_1_Client_DB', 'server_3_2_Chat_DB', 'server_6_Chat_DB'],
                 [im_plan:db_name(3, 1, client_db, Plan), im_plan:db_name(3, 2, chat_db, Plan), im_plan:local_name(6, chat_db, Plan)]).

a_node_has_one_part_test() ->
    Plan = plan(rd, 2, 3),
    ?assertEqual([{router, 2}, {server, 3}, none], [im_plan:role(Node, Plan) || Node <- ['r2@host', 's3@host', 'x@host']]).

a_session_is_the_same_from_both_sides_test() ->
    ?assertEqual(im_plan:session(<<"a">>, <<"b">>), im_plan:session(<<"b">>, <<"a">>)),
    ?assertEqual(<<"chat_session_a_b">>, im_plan:session_name(im_plan:session(<<"b">>, <<"a">>))),
    ?assertError(function_clause, im_plan:session(<<"a">>, <<"a">>)).

a_client_is_a_short_text_test() ->
    ?assert(im_plan:is_client(unicode:characters_to_binary([1078, $a]))),
    [?assertNot(im_plan:is_client(No), No) || No <- [<<>>, <<255>>, <<0:(65 * 8)>>, alice, "alice"]].
