%% SPDX-License-Identifier: Apache-2.0
%% What nodes are started with and told, before any is.
-module(atoll_up_tests).

-include_lib("eunit/include/eunit.hrl").

the_overlay_of_a_cluster_stands_on_its_nodes_command_lines_test_() ->
    Nodes = ['r1@h', 'r2@h', 'r3@h', 'r4@h'],
    Args = fun(Overlay) ->
        #{args := Make, connect_all := false} = atoll_up_overlay:cluster(Overlay),
        pairs(Make(Nodes))
    end,
    [
        ?_assertEqual(
            [{"overlay", "hyparview"}, {"overlay_options", "#{active_max => 4}"}, {"contacts", "[r1@h,r2@h,r3@h]"}],
            Args(overlay(hyparview, #{active_max => 4}))
        ),
        ?_assertEqual(
            [{"overlay", "star"}, {"overlay_options", "#{servers => [r1@h,r2@h,r3@h]}"}, {"contacts", "[r1@h,r2@h,r3@h]"}],
            Args(overlay(star, #{}))
        ),
        %% Who is told its neighbours hears of the contacts later.
        ?_assertEqual([{"overlay", "static"}, {"overlay_options", "#{}"}, {"contacts", "[]"}], Args(overlay(static, #{}))),
        ?_assertEqual(
            [{"overlay", "hyparview"}, {"overlay_options", "#{active_max => 4}"}, {"contacts", "[r1@h]"},
             {"beacons", "off"}, {"detector", "#{period_ms => 500}"}],
            begin
                {ok, Script} = atoll_sim_script:check([{cluster, #{
                    strategy => hyparview, contacts => 1, options => #{active_max => 4}, discovery => off,
                    detector => #{period_ms => 500}
                }}]),
                Args(atoll_up_overlay:of_script(Script))
            end
        ),
        ?_assertNot(is_map_key(args, atoll_up_overlay:cluster(none)))
    ].

overlay(Name, Options) ->
    {ok, Module} = atoll_strategy:module(Name),
    atoll_up_overlay:new({Name, Module, Options}, #{}).

pairs([]) -> [];
pairs(["-atoll", Key, [_ | _] = Value | Args]) ->
    {ok, Tokens, _} = erl_scan:string(Value ++ "."),
    {ok, _} = erl_parse:parse_term(Tokens),
    [{Key, unquoted(Value)} | pairs(Args)].

unquoted(Text) -> [C || C <- Text, C =/= $'].

what_static_nodes_are_told_is_a_ring_with_chords_test() ->
    Nodes = [list_to_atom(lists:concat([r, I, "@h"])) || I <- lists:seq(1, 9)],
    Overlay = overlay(static, #{}),
    Told = atoll_up_overlay:told(Overlay, false, Nodes),
    [begin
        #{Node := Calls} = Told,
        ?assertEqual({atoll_overlay, contacts, [lists:sublist(Nodes, 3)]}, lists:last(Calls)),
        Joined = [Peer || {atoll, tell, [{join, Peer}]} <- Calls],
        ?assert(lists:member(Next, Joined) andalso length(Joined) =< 3)
     end
     || {Node, Next} <- lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)])],
    Hyparview = overlay(hyparview, #{}),
    ?assertEqual(#{}, atoll_up_overlay:told(Hyparview, false, Nodes)).

groups_say_who_is_in_which_clique_test() ->
    Cliques = overlay(cliques, #{}),
    ?assertMatch(#{a@h := [{atoll_overlay, contacts, _}]}, atoll_up_overlay:told(Cliques, true, [a@h, b@h])),
    ?assertMatch(#{a@h := [{atoll, tell, [{cliques, [_ | _]}]}, _]}, atoll_up_overlay:told(Cliques, false, [a@h, b@h])).

groups_differ_by_one_node_at_most_test_() ->
    [?_assertEqual(Lengths, [length(P) || P <- atoll_up_join:cut(lists:seq(1, N), K)])
     || {N, K, Lengths} <- [{9, 3, [3, 3, 3]}, {5, 2, [3, 2]}, {7, 3, [3, 2, 2]}, {4, 4, [1, 1, 1, 1]},
                            {3, 1, [3]}]].

nodes_with_the_carrier_keep_their_other_arguments_test() ->
    Carrier = {atoll, {lanes, 4}, true, no, false},
    #{args := Own, tls := false} = atoll_up_carrier:cluster(Carrier, #{}),
    ?assertEqual(["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{kind,{lanes,4}},{stock,accept},{faults,true}]"], Own),
    #{args := Made} = atoll_up_carrier:cluster(Carrier, #{args => fun([_, _]) -> ["-x"] end}),
    ?assertEqual(Own ++ ["-x"], Made([a, b])),
    #{args := Relaying, tls := true} = atoll_up_carrier:cluster({atoll, auto, false, sealed, true}, #{}),
    ?assertEqual(
        ["-proto_dist", "atoll", "-kernel", "atoll_dist", "[{kind,auto},{stock,accept},{faults,false},{seal,required},{tls,on}]",
         "-atoll", "directory", "on"],
        Relaying
    ),
    ?assertEqual(#{nodes => 1}, atoll_up_carrier:cluster(stock, #{nodes => 1})).
