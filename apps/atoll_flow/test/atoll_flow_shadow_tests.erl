%% SPDX-License-Identifier: Apache-2.0
%% The shadow network beside agents that do as they are told: random histories of groups, of nodes that are lost, of agents that
%% are killed or do not hear what they are told; and the table of what becomes of whom, by hand.
-module(atoll_flow_shadow_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, [a, b, c, d, e]).
-define(GROUPS, [g1, g2, g3]).

properties_test_() ->
    atoll_prop:tests([
        {each_node_has_one_owner_at_every_moment, each_node_has_one_owner(), 5000},
        {a_restart_reproduces_the_last_structure, a_restart(), 2000},
        {a_picture_is_what_its_differences_are, a_picture(), 2000}
    ]).

event() ->
    Node = oneof(?NODES),
    Group = oneof(?GROUPS),
    Nodes = ?LET(List, list(Node), lists:usort(List)),
    frequency([
        {4, {new_group, Group, Nodes}}, {2, {delete_group, Group}}, {3, {add_nodes, Group, Nodes}}, {3, {remove_nodes, Group, Nodes}},
        {2, {found, Node}}, {1, {forgotten, Node}}, {3, {node_down, Node}}, {3, {node_up, Node}},
        {2, {picture, ?LET(Told, list({Group, Nodes}), maps:to_list(maps:from_list(Told))), Nodes}},
        {2, {kill, pos_integer()}}, {2, {deaf, pos_integer()}}, {1, check}
    ]).

%% Of those that run no node has two, after each single thing that is done. When agents are as they were told, each node that is observed
%% has one, which is allowed to have it; there are as many agents as groups and free nodes; and a node that is up is traced.
each_node_has_one_owner() ->
    ?FORALL(Events, list(event()), begin
        _ = lists:foldl(fun(Event, World) -> as_it_should_be(play(Event, World)) end, world(atoll_flow_shadow:new()), Events),
        true
    end).

world(Shadow) -> #{shadow => Shadow, agents => #{}, deaf => none}.

play({kill, N}, #{agents := Agents} = World) when map_size(Agents) > 0 ->
    Agent = lists:nth(1 + N rem map_size(Agents), lists:sort(maps:keys(Agents))),
    step({agent_lost, Agent}, World#{agents := maps:remove(Agent, Agents)});
%% What it is told next gets lost; the periodic check repairs it.
play({deaf, N}, #{agents := Agents, deaf := none} = World) when map_size(Agents) > 0 ->
    World#{deaf := lists:nth(1 + N rem map_size(Agents), lists:sort(maps:keys(Agents)))};
play({What, _}, World) when What =:= kill; What =:= deaf ->
    World;
play(check, World) ->
    checked(World);
play(Event, World) ->
    step(Event, World).

%% Each agent says its token, whether anything was lost or not.
checked(#{agents := Agents} = World) ->
    lists:foldl(fun({Agent, {Token, _}}, Acc) -> step({agent_up, Agent, Token}, Acc) end, World#{deaf := none}, maps:to_list(Agents)).

step(Event, #{shadow := Shadow0} = World) ->
    {Effects, Shadow} = atoll_flow_shadow:step(Event, Shadow0),
    lists:foldl(fun done/2, World#{shadow := Shadow}, Effects).

done(keep, World) -> World;
done(Effect, #{deaf := Deaf} = World) when element(2, Effect) =:= Deaf, element(1, Effect) =/= start, element(1, Effect) =/= stop ->
    World#{deaf := {had, Deaf}};
done({stop, Agent}, #{agents := Agents, deaf := Deaf} = World) ->
    World#{agents := maps:remove(Agent, Agents), deaf := case Deaf of {had, Agent} -> none; _ -> Deaf end};
done({start, Agent, Token, Owned}, #{agents := Agents} = World) ->
    false = is_map_key(Agent, Agents),
    one_each(World#{agents := Agents#{Agent => {Token, maps:from_list(Owned)}}});
done({configure, Agent, Token, Owned}, #{agents := Agents} = World) ->
    one_each(World#{agents := Agents#{Agent := {Token, maps:from_list(Owned)}}});
done({What, Agent, {Before, Token}, Node}, #{agents := Agents} = World) when Token > Before ->
    case Agents of
        #{Agent := {Before, Its}} -> changed(What, Agent, Token, Node, Its, World);
        %% It has missed something.
        #{Agent := {_, _}} -> {had, Agent} = maps:get(deaf, World), World
    end.

changed(What, Agent, Token, Node, Its, #{agents := Agents} = World) ->
    one_each(World#{agents := Agents#{Agent := {Token, case What of
        trace -> Its#{Node => up};
        look_for -> Its#{Node => down};
        untrace -> maps:remove(Node, Its)
    end}}}).

%% But for one that did not hear that it is to give up a node.
one_each(#{agents := Agents, deaf := Deaf} = World) ->
    Owned = lists:append([maps:keys(Its) || {Agent, {_, Its}} <- maps:to_list(Agents), {had, Agent} =/= Deaf]),
    ?assertEqual(lists:usort(Owned), lists:sort(Owned)),
    World.

as_it_should_be(#{deaf := {had, _}} = World) ->
    as_it_should_be(checked(World));
as_it_should_be(#{shadow := Shadow, agents := Agents} = World) ->
    Groups = atoll_flow_shadow:groups(Shadow),
    Owners = atoll_flow_shadow:owners(Shadow),
    Has = maps:from_list([{Node, Agent} || {Agent, {_, Its}} <- maps:to_list(Agents), Node <- maps:keys(Its)]),
    ?assertEqual(Owners, Has),
    [?assert(lists:member(Node, proplists:get_value(Group, Groups))) || {Node, {group, Group}} <- maps:to_list(Owners)],
    [?assertEqual({Node, []}, {Owner, [G || {G, Nodes} <- Groups, lists:member(Node, Nodes)]}) || {Node, {free, Owner}} <- maps:to_list(Owners)],
    ?assertEqual([], lists:append([Nodes || {_, Nodes} <- Groups]) -- (maps:keys(Owners) ++ maps:keys(Owners) ++ maps:keys(Owners))),
    Wanted = [{group, Group} || {Group, _} <- Groups] ++ [Agent || {_, {free, _} = Agent} <- maps:to_list(Owners)],
    ?assertEqual(lists:sort(Wanted), lists:sort(maps:keys(Agents))),
    ?assertEqual(atoll_flow_shadow:agents(Shadow), [{Agent, lists:sort(maps:to_list(Its))} || {Agent, {_, Its}} <- lists:sort(maps:to_list(Agents))]),
    [?assertEqual({ok, Token}, atoll_flow_shadow:token(Agent, Shadow)) || {Agent, {Token, _}} <- maps:to_list(Agents)],
    World.

%% From what is kept the same agents come with the same nodes, and go on alike.
a_restart() ->
    ?FORALL({Events, Later}, {list(event()), list(event())}, begin
        #{shadow := Shadow} = World = lists:foldl(fun play/2, world(atoll_flow_shadow:new()), Events),
        {ok, Effects, Again} = atoll_flow_shadow:restored(atoll_flow_shadow:kept(Shadow)),
        ?assertEqual(atoll_flow_shadow:owners(Shadow), atoll_flow_shadow:owners(Again)),
        ?assertEqual(atoll_flow_shadow:groups(Shadow), atoll_flow_shadow:groups(Again)),
        ?assertEqual(atoll_flow_shadow:kept(Shadow), atoll_flow_shadow:kept(Again)),
        Restarted = lists:foldl(fun done/2, world(Again), Effects),
        _ = as_it_should_be(Restarted),
        Changes = [Event || Event <- Later, is_change(Event)],
        #{shadow := One} = lists:foldl(fun play/2, checked(World), Changes),
        #{shadow := Other} = lists:foldl(fun play/2, Restarted, Changes),
        ?assertEqual(atoll_flow_shadow:owners(One), atoll_flow_shadow:owners(Other)),
        true
    end).

is_change(Event) -> is_tuple(Event) andalso lists:member(element(1, Event), [new_group, delete_group, add_nodes, remove_nodes, found, forgotten]).

a_picture() ->
    Nodes = ?LET(List, list(oneof(?NODES)), lists:usort(List)),
    ?FORALL({Events, Told, Free}, {list(event()), ?LET(List, list({oneof(?GROUPS), Nodes}), maps:to_list(maps:from_list(List))), Nodes}, begin
        #{shadow := Shadow} = lists:foldl(fun play/2, world(atoll_flow_shadow:new()), Events),
        {_, Pictured} = atoll_flow_shadow:step({picture, Told, Free}, Shadow),
        ?assertEqual(lists:sort([Group || {_, [_ | _]} = Group <- Told]), lists:sort(atoll_flow_shadow:groups(Pictured))),
        ?assertEqual(lists:usort(Free ++ lists:append([Is || {_, Is} <- Told])), lists:sort(maps:keys(atoll_flow_shadow:owners(Pictured)))),
        %% Said twice, it is nothing new.
        ?assertMatch({[], _}, atoll_flow_shadow:step({picture, Told, Free}, Pictured)),
        true
    end).

%% The table of the tool.

after_all(Events) -> lists:foldl(fun(Event, {_, Shadow}) -> atoll_flow_shadow:step(Event, Shadow) end, {[], atoll_flow_shadow:new()}, Events).

-define(TWO, [{found, a}, {found, b}, {found, c}, {new_group, g1, [a, b]}]).

a_new_group_stops_the_agents_of_nodes_that_were_free_and_leaves_owned_ones_test() ->
    {Effects, Shadow} = after_all(?TWO ++ [{new_group, g2, [b, c]}]),
    ?assertMatch([{stop, {free, c}}, {start, {group, g2}, _, [{c, up}]}, keep], Effects),
    ?assertEqual(#{a => {group, g1}, b => {group, g1}, c => {group, g2}}, atoll_flow_shadow:owners(Shadow)).

a_deleted_group_gives_its_nodes_to_their_other_groups_or_to_agents_of_their_own_test() ->
    {Effects, Shadow} = after_all(?TWO ++ [{new_group, g2, [b, c]}, {delete_group, g1}]),
    ?assertMatch([{stop, {group, g1}}, {trace, {group, g2}, _, b}, {start, {free, a}, _, [{a, up}]}, keep], Effects),
    ?assertEqual(#{a => {free, a}, b => {group, g2}, c => {group, g2}}, atoll_flow_shadow:owners(Shadow)).

a_node_of_several_groups_goes_to_the_agent_of_the_one_that_was_known_first_test() ->
    {Effects, Shadow} = after_all([{new_group, g3, [a]}, {new_group, g2, [a, b]}, {new_group, g1, [a, c]}, {delete_group, g3}]),
    ?assertMatch([{stop, {group, g3}}, {trace, {group, g2}, _, a}, keep], Effects),
    ?assertEqual({ok, {group, g2}}, atoll_flow_shadow:owner(a, Shadow)).

nodes_that_are_added_are_traced_by_the_agent_of_the_group_test() ->
    {Effects, _} = after_all(?TWO ++ [{add_nodes, g1, [c]}]),
    ?assertMatch([{stop, {free, c}}, {trace, {group, g1}, _, c}, keep], Effects).

nodes_that_are_removed_are_given_up_and_have_another_owner_test() ->
    {Effects, _} = after_all(?TWO ++ [{remove_nodes, g1, [b]}]),
    ?assertMatch([{untrace, {group, g1}, _, b}, {start, {free, b}, _, [{b, up}]}, keep], Effects).

a_node_that_is_lost_is_looked_for_and_traced_when_it_is_back_test() ->
    ?assertMatch({[{look_for, {group, g1}, _, a}], _}, after_all(?TWO ++ [{node_down, a}])),
    ?assertMatch({[{trace, {group, g1}, _, a}], _}, after_all(?TWO ++ [{node_down, a}, {node_up, a}])),
    %% Its new owner looks for it.
    ?assertMatch({[{untrace, {group, g1}, _, a}, {start, {free, a}, _, [{a, down}]}, keep], _}, after_all(?TWO ++ [{node_down, a}, {remove_nodes, g1, [a]}])).

an_agent_with_another_token_gets_its_configuration_test() ->
    {_, Shadow} = after_all(?TWO),
    {ok, Token} = atoll_flow_shadow:token({group, g1}, Shadow),
    ?assertMatch({[], _}, atoll_flow_shadow:step({agent_up, {group, g1}, Token}, Shadow)),
    ?assertMatch({[{configure, {group, g1}, Token, [{a, up}, {b, up}]}], _}, atoll_flow_shadow:step({agent_up, {group, g1}, 0}, Shadow)),
    ?assertMatch({[{stop, {group, gone}}], _}, atoll_flow_shadow:step({agent_up, {group, gone}, 7}, Shadow)).

what_was_kept_wrongly_is_told_in_a_sentence_test_() ->
    {_, Shadow} = after_all(?TWO),
    {Tag, 1, Kept} = atoll_flow_shadow:kept(Shadow),
    [?_assertEqual(Sentence, begin {error, Error} = atoll_flow_shadow:restored(Term), lists:flatten(atoll_flow_shadow:format_error(Error)) end)
     || {Term, Sentence} <- [
            {other, "what was kept of the agents cannot be read: other"},
            {{Tag, 1, Kept#{owners := [{a, {free, b}}]}}, "what was kept of the agents gives a an owner that it cannot have, or none"},
            {{Tag, 1, Kept#{free := ["x", c], owners := [{"x", {free, "x"}} | maps:get(owners, Kept)], agents := [{{free, "x"}, 9} | maps:get(agents, Kept)]}}, "what was kept of the agents gives \"x\" an owner that it cannot have, or none"},
            {{Tag, 1, Kept#{agents := [{{group, g1}, 4}]}}, "what was kept of the agents has one too many, or lacks one: {free,c}"}
        ]].
