%% SPDX-License-Identifier: Apache-2.0
%% The simulated cluster: what it is made of, how it begins, and what whoever
%% drives it can draw and run.
-module(atoll_sim_cluster_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_cluster, [names/1, contacts/1, options/1, neighbours/1]).

%% What it is made of

only_the_number_of_nodes_must_be_told_test() ->
    #{progress := _} = Options = options(new(#{nodes => 7})),
    ?assertEqual(
        #{
            nodes => 7,
            strategy => hyparview,
            options => #{},
            detector => #{},
            broadcast => #{},
            discovery => #{},
            roster => #{},
            groups => off,
            directory => off,
            full_rosters => false,
            told => true,
            seed => 1,
            contacts => 5,
            formed => listed,
            latency => {uniform, 1, 20},
            rate => 115000000,
            queue => 1048576,
            starts_per_s => 1000,
            settle_ms => 60000
        },
        maps:remove(progress, Options)
    ).

what_is_told_takes_the_place_of_the_default_test() ->
    ?assertMatch(
        #{nodes := 9, strategy := mesh, seed := 4, contacts := 2},
        options(new(#{nodes => 9, strategy => mesh, seed => 4, contacts => 2}))
    ).

names_have_as_many_digits_as_the_last_one_needs_test() ->
    ?assertEqual([n1, n2, n3], names(new(#{nodes => 3}))),
    ?assertMatch([n01, n02 | _], names(new(#{nodes => 10}))),
    ?assertEqual(n10, lists:last(names(new(#{nodes => 10})))).

the_contacts_are_the_first_nodes_or_all_if_there_are_fewer_test() ->
    ?assertEqual([n01, n02, n03, n04, n05], contacts(new(#{nodes => 20}))),
    ?assertEqual([n01, n02], contacts(new(#{nodes => 20, contacts => 2}))),
    ?assertEqual([n1, n2, n3], contacts(new(#{nodes => 3}))).

what_is_wrong_is_said_in_one_sentence_test_() ->
    [
        ?_assertEqual(Sentence, sentence(atoll_sim_cluster:new(Options#{nodes => 3})))
     || {Options, Sentence} <- [
            {#{strategy => mash},
                "there is no strategy mash; there are cliques, hyparview, mesh, scamp, star, static, "
                "and any module that is one"},
            {#{options => #{active_max => 0}}, "the option active_max must be a whole number from 1 to 2147483647, not 0"},
            {#{strategy => mesh, options => #{active_max => 1}}, "there is no option active_max"},
            {#{detector => lists}, "the module lists is no detector: it lacks handle/3, init/2, options/0, summary/1"}
        ]
    ].

a_new_cluster_has_no_node_that_runs_and_no_past_test() ->
    Cluster = new(#{nodes => 5}),
    ?assertEqual([], neighbours(Cluster)),
    ?assertEqual(0, atoll_sim_cluster:now(Cluster)),
    ?assertMatch(#{events := 0, sent := 0, queued := 0}, atoll_sim_cluster:counters(Cluster)).

%% How it begins

contacts_start_at_once_and_the_others_at_moments_of_their_own_test() ->
    Options = #{nodes => 40, contacts => 3, starts_per_s => 20, watch => starts()},
    Cluster0 = new(Options),
    Launched = atoll_sim_cluster:launch(names(Cluster0), Cluster0),
    ?assertEqual([n01, n02, n03], [Node || {Node, _} <- neighbours(Launched)]),
    Started = started(atoll_sim_cluster:run(2000, Launched)),
    ?assertEqual(names(Cluster0), lists:sort([Node || {Node, _} <- Started])),
    {Contacts, Others} = lists:split(3, Started),
    ?assertEqual([{n01, 0}, {n02, 0}, {n03, 0}], Contacts),
    Moments = [Ms || {_, Ms} <- Others],
    ?assert(lists:all(fun(Ms) -> 1 =< Ms andalso Ms =< 2000 end, Moments)),
    %% Over both seconds, and not in the order of their names.
    ?assert(length([Ms || Ms <- Moments, Ms =< 1000]) > 9),
    ?assert(length([Ms || Ms <- Moments, Ms > 1000]) > 9),
    ?assertNotEqual(lists:sort(Others), Others).

only_those_that_are_launched_start_from_the_moment_when_they_are_test() ->
    Cluster0 = atoll_sim_cluster:run(5000, new(#{nodes => 9, contacts => 2, watch => starts()})),
    Cluster = atoll_sim_cluster:wait(1000, atoll_sim_cluster:launch([n2, n5, n6], Cluster0)),
    ?assertMatch([{n2, 5000}, {_, A}, {_, B}] when A > 5000 andalso B =< 5003, started(Cluster)),
    ?assertEqual([n2, n5, n6], [Node || {Node, _} <- neighbours(Cluster)]).

who_was_started_before_its_moment_starts_once_test() ->
    Cluster0 = new(#{nodes => 5, contacts => 1, watch => starts()}),
    Launched = atoll_sim_cluster:launch(names(Cluster0), Cluster0),
    Cluster = atoll_sim_cluster:wait(1000, atoll_sim_cluster:start(n5, fresh, Launched)),
    ?assertMatch([{n1, 0}, {n5, 0}, _, _, _], started(Cluster)).

a_grown_cluster_has_started_and_settled_test() ->
    Cluster = grown(#{nodes => 20, settle_ms => 30000, starts_per_s => 10}),
    ?assertEqual(32000, atoll_sim_cluster:now(Cluster)),
    ?assertEqual(1.0, atoll_sim_graph:connected(neighbours(Cluster))),
    ?assertEqual(names(Cluster), [Node || {Node, _} <- neighbours(Cluster)]).

%% What each would have heard of in the end is there from the start, so nothing is told.
with_full_rosters_all_know_each_other_at_once_test() ->
    Options = #{nodes => 30, settle_ms => 30000, starts_per_s => 10, messages => true, watch => {fun told_members/4, 0}},
    [{HeardOf, Learned}, {HeardOf, Full}] = [
        {[atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, C)) || Node <- names(C)], atoll_sim_cluster:watched(C)}
     || Whether <- [false, true], C <- [grown(Options#{full_rosters => Whether})]
    ],
    ?assert(Learned >= 30 * 29),
    ?assertEqual(0, Full),
    ?assertEqual([names(new(Options))], lists:usort(HeardOf)).

told_members(_Now, _Node, {notice, {member_up, _}}, N) -> N + 1;
told_members(_Now, _Node, {sent, _To, {_, _, roster, {Kind, _}}}, N) when Kind =:= news; Kind =:= entries; Kind =:= buckets -> N + 1;
told_members(_Now, _Node, _Sight, N) -> N.

who_has_all_in_its_roster_hears_of_their_ends_test() ->
    Cluster = grown(#{nodes => 20, full_rosters => true}),
    [Dead | Others] = lists:reverse(names(Cluster)),
    Killed = atoll_sim_cluster:update(fun(W) -> atoll_sim_world:kill(Dead, W) end, Cluster),
    Later = atoll_sim_cluster:wait(20000, Killed),
    ?assertEqual(
        [lists:sort(Others)],
        lists:usort([atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, Later)) || Node <- Others])
    ).

another_seed_is_another_beginning_test() ->
    Graph = fun(Seed) -> neighbours(grown(#{nodes => 20, seed => Seed, settle_ms => 5000})) end,
    ?assertEqual(Graph(1), Graph(1)),
    ?assertNotEqual(Graph(1), Graph(2)).

progress_is_told_each_second_of_virtual_time_test() ->
    Cluster = new(#{nodes => 2, progress => fun(Ms) -> self() ! {progress, Ms} end}),
    _ = atoll_sim_cluster:wait(700, atoll_sim_cluster:run(2500, Cluster)),
    ?assertEqual([1000, 2000, 2500, 3000, 3200], told_of(progress)).

who_watches_and_who_writes_down_see_the_same_test() ->
    Trace = fun(Now, Where, Sight) -> self() ! {trace, {Now, Where, Sight}} end,
    Watch = {fun(Now, Where, Sight, Kept) -> [{Now, Where, Sight} | Kept] end, []},
    Cluster = grown(#{nodes => 3, strategy => mesh, settle_ms => 100, trace => Trace, watch => Watch}),
    Seen = told_of(trace),
    ?assertMatch([{0, n1, {started, 1}} | _], Seen),
    ?assertEqual(Seen, lists:reverse(atoll_sim_cluster:watched(Cluster))),
    %% Whoever watches from now on begins with nothing, and is written down too.
    Later = atoll_sim_cluster:update(
        fun(World) -> atoll_sim_world:kill(n3, World) end, atoll_sim_cluster:watch(Watch, Cluster)
    ),
    ?assertMatch([{_, n3, killed}], atoll_sim_cluster:watched(Later)),
    ?assertMatch([{_, n3, killed}], told_of(trace)).

%% What a node knows when it starts

%% Nobody else is there to be told of but by what is remembered.
who_remembers_finds_the_others_and_who_does_not_is_alone_test() ->
    Base = #{nodes => 4, contacts => 1, settle_ms => 0},
    Alone = fun(Memory) ->
        Started = atoll_sim_cluster:start(n3, Memory, atoll_sim_cluster:start(n2, fresh, new(Base))),
        neighbours(atoll_sim_cluster:wait(5000, Started))
    end,
    ?assertEqual([{n2, []}, {n3, []}], Alone(fresh)),
    ?assertEqual([{n2, [n3]}, {n3, [n2]}], Alone({remembered, [n2]})).

%% Told, too, whom to be linked with.
who_is_started_later_is_told_what_it_was_told_in_the_beginning_test() ->
    Cluster = grown(#{nodes => 9, strategy => cliques, settle_ms => 5000}),
    Start = atoll_sim_cluster:starter(Cluster),
    Killed = atoll_sim_cluster:update(fun(World) -> atoll_sim_world:kill(n3, World) end, Cluster),
    Later = atoll_sim_cluster:at(6000, fun(World) -> Start(n3, World) end, Killed),
    ?assertEqual(neighbours(Cluster), neighbours(atoll_sim_cluster:wait(10000, Later))).

%% Own options of strategies

a_star_has_the_contacts_for_servers_test() ->
    Graph = neighbours(grown(#{nodes => 12, contacts => 3, strategy => star, settle_ms => 10000})),
    {[{n01, Of01}, {n02, _}, {n03, _}], Clients} = lists:split(3, Graph),
    ?assertEqual([n02, n03], Of01 -- [Client || {Client, _} <- Clients]),
    ?assertEqual([], [Client || {Client, Peers} <- Clients, length(Peers) =/= 1 orelse Peers -- [n01, n02, n03] =/= []]).

a_star_has_the_servers_that_are_told_test() ->
    Options = #{nodes => 6, contacts => 3, strategy => star, options => #{servers => [n5]}, settle_ms => 10000},
    Graph = neighbours(grown(Options)),
    ?assertEqual([{N, [n5]} || N <- [n1, n2, n3, n4, n6]], lists:keydelete(n5, 1, Graph)),
    ?assertEqual({n5, [n1, n2, n3, n4, n6]}, lists:keyfind(n5, 1, Graph)).

cliques_of_eight_stand_in_a_ring_and_share_a_gateway_with_the_next_test() ->
    Cluster = grown(#{nodes => 20, strategy => cliques, settle_ms => 10000}),
    Names = names(Cluster),
    {First, Others} = lists:split(8, Names),
    {Second, Third} = lists:split(8, Others),
    %% Each with the first of the next.
    Cliques = [First ++ [hd(Second)], Second ++ [hd(Third)], Third ++ [hd(First)]],
    CoMembers = fun(Node) -> lists:usort(lists:append([Of || Of <- Cliques, lists:member(Node, Of)])) -- [Node] end,
    ?assertEqual([{Node, CoMembers(Node)} || Node <- Names], neighbours(Cluster)).

a_small_cluster_is_one_clique_test() ->
    Cluster = grown(#{nodes => 8, strategy => cliques, settle_ms => 10000}),
    ?assertEqual([{N, names(Cluster) -- [N]} || N <- names(Cluster)], neighbours(Cluster)).

a_static_cluster_is_a_ring_with_two_chords_a_node_at_most_test() ->
    Cluster = grown(#{nodes => 20, strategy => static, settle_ms => 10000}),
    Graph = maps:from_list(neighbours(Cluster)),
    Names = names(Cluster),
    Ring = lists:zip(Names, tl(Names) ++ [hd(Names)]),
    ?assertEqual([], [Link || {A, B} = Link <- Ring, not lists:member(B, map_get(A, Graph))]),
    ?assertEqual(1.0, atoll_sim_graph:symmetric(neighbours(Cluster))),
    Ends = lists:sum([length(Peers) || Peers <- maps:values(Graph)]),
    ?assert(Ends div 2 > 20),
    ?assert(Ends div 2 =< 60).

the_chords_are_drawn_from_the_seed_test() ->
    Graph = fun(Seed) -> neighbours(grown(#{nodes => 20, strategy => static, settle_ms => 5000, seed => Seed})) end,
    ?assertEqual(Graph(3), Graph(3)),
    ?assertNotEqual(Graph(3), Graph(4)).

one_node_is_a_cluster_of_every_strategy_test_() ->
    [
        {atom_to_list(Strategy),
            ?_assertEqual([{n1, []}], neighbours(grown(#{nodes => 1, strategy => Strategy, settle_ms => 1000})))}
     || Strategy <- atoll_strategy:names()
    ].

%% What is drawn

draws_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_draws(), 300).

%% As many as there are at most, each of those given once, in the order of their
%% names; the same draw of the same cluster.
prop_draws() ->
    ?FORALL(
        {Nodes, Count, Seed},
        {choose(1, 30), choose(0, 40), choose(1, 5)},
        begin
            Cluster = new(#{nodes => Nodes, seed => Seed}),
            Names = names(Cluster),
            {Drawn, _} = Answer = atoll_sim_cluster:random(Count, Names, Cluster),
            Answer =:= atoll_sim_cluster:random(Count, Names, Cluster) andalso
                Drawn =:= lists:usort(Drawn) andalso
                Drawn -- Names =:= [] andalso
                length(Drawn) =:= min(Count, Nodes)
        end
    ).

the_next_draw_is_another_one_and_so_is_that_of_another_seed_test() ->
    Cluster = new(#{nodes => 40}),
    {First, Later} = atoll_sim_cluster:random(10, names(Cluster), Cluster),
    {Second, _} = atoll_sim_cluster:random(10, names(Cluster), Later),
    ?assertNotEqual(First, Second),
    {Other, _} = atoll_sim_cluster:random(10, names(Cluster), new(#{nodes => 40, seed => 2})),
    ?assertNotEqual(First, Other).

every_node_is_drawn_as_often_as_any_other_test() ->
    Cluster0 = new(#{nodes => 10}),
    {Draws, _} = lists:mapfoldl(
        fun(_, Cluster) -> atoll_sim_cluster:random(3, names(Cluster), Cluster) end, Cluster0, lists:seq(1, 1000)
    ),
    Tally = atoll_sim_stats:tally(lists:append(Draws)),
    ?assertEqual(10, map_size(Tally)),
    ?assert(lists:all(fun(N) -> 240 < N andalso N < 360 end, maps:values(Tally))).

%% Less memory

a_compact_world_is_smaller_and_takes_the_same_course_test_() ->
    {timeout, 60, fun() ->
        Grown = grown(#{nodes => 60, seed => 7, settle_ms => 9000, watch => {fun see/4, []}}),
        Compact = atoll_sim_cluster:update(fun atoll_sim_world:compact/1, Grown),
        Size = fun(Cluster) -> erts_debug:size([atoll_sim_cluster:overlay(Name, Cluster) || Name <- atoll_sim_cluster:names(Cluster)]) end,
        ?assert(Size(Compact) < 0.9 * Size(Grown)),
        %% Equal as terms, and so is what comes of them.
        ?assert(atoll_sim_cluster:world(Compact) =:= atoll_sim_cluster:world(Grown)),
        [Seen, Seen] = [
            atoll_sim_cluster:watched(
                atoll_sim_cluster:wait(5000, atoll_sim_cluster:update(fun(W) -> atoll_sim_world:kill(n07, W) end, Cluster))
            )
         || Cluster <- [Compact, Grown]
        ]
    end}.

see(Now, Node, Sight, Kept) -> [{Now, Node, Sight} | Kept].

%% A process of its own

what_is_isolated_runs_elsewhere_and_gives_its_result_test() ->
    Before = messages(),
    {Pid, Result} = atoll_sim_cluster:isolated(fun() -> {self(), 6 * 7} end),
    ?assertEqual(42, Result),
    ?assertNotEqual(self(), Pid),
    ?assertNot(is_process_alive(Pid)),
    ?assertEqual(Before, messages()).

what_is_raised_is_raised_here_with_its_stack_test_() ->
    [
        fun() ->
            Before = messages(),
            try atoll_sim_cluster:isolated(fun() -> raise(Class) end) of
                Result -> error({returned, Result})
            catch
                Class:boom:Stack -> ?assertMatch([{?MODULE, raise, 1, _} | _], Stack)
            end,
            ?assertEqual(Before, messages())
        end
     || Class <- [error, exit, throw]
    ].

a_large_world_has_a_heap_of_its_size_that_is_collected_whole_test() ->
    Heap = fun(Options) ->
        {garbage_collection, Info} = atoll_sim_cluster:isolated(fun() -> process_info(self(), garbage_collection) end, Options),
        {proplists:get_value(min_heap_size, Info), proplists:get_value(fullsweep_after, Info)}
    end,
    {Small, 50} = Heap(#{nodes => 100}),
    {Large, 0} = Heap(#{nodes => 4000, roster => off}),
    {Rosters, 0} = Heap(#{nodes => 1500}),
    ?assert(Small < Large),
    ?assert(Small < Rosters).

who_is_killed_while_isolated_is_no_result_test() ->
    ?assertExit(killed, atoll_sim_cluster:isolated(fun() -> exit(self(), kill) end)).

what_is_isolated_dies_with_its_caller_test() ->
    Test = self(),
    Caller = spawn(fun() ->
        atoll_sim_cluster:isolated(fun() ->
            Test ! {worker, self()},
            receive
                never -> ok
            end
        end)
    end),
    Worker = receive
        {worker, Pid} -> Pid
    after 5000 -> error(no_worker)
    end,
    Ref = monitor(process, Worker),
    exit(Caller, kill),
    ?assertEqual(
        killed,
        receive
            {'DOWN', Ref, process, Worker, Reason} -> Reason
        after 5000 -> still_there
        end
    ).

new(Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(Options),
    Cluster.

grown(Options) -> atoll_sim_cluster:grow(new(Options)).

sentence({error, Error}) -> unicode:characters_to_list(atoll_sim_cluster:format_error(Error)).

starts() ->
    {
        fun
            (Now, Node, {started, _}, Kept) -> [{Node, Now} | Kept];
            (_, _, _, Kept) -> Kept
        end,
        []
    }.

started(Cluster) -> lists:reverse(atoll_sim_cluster:watched(Cluster)).

told_of(What) ->
    receive
        {What, Term} -> [Term | told_of(What)]
    after 0 -> []
    end.

%% The tests of all modules share a process, and some leave one there.
messages() ->
    {messages, Messages} = process_info(self(), messages),
    Messages.

-spec raise(error | exit | throw) -> no_return().
raise(error) -> error(boom);
raise(exit) -> exit(boom);
raise(throw) -> throw(boom).
