%% SPDX-License-Identifier: Apache-2.0
%% A node probes seldom enough, whom it may, and keeps its bounds whatever is sent to it.
-module(atoll_distance_core_tests).

-include_lib("eunit/include/eunit.hrl").

new(Options) -> element(1, start(Options)).

start(Options) ->
    atoll_distance_core:init(#{self => me@h, incarnation => 1000, seed => 1, options => Options}, 0).

handle(Event, State) -> handle(Event, 0, State).

handle(Event, Now, State) -> atoll_distance_core:handle(Event, Now, State).

do(Events, State) -> lists:foldl(fun(Event, S) -> element(1, handle(Event, S)) end, State, Events).

coordinate() -> atoll_distance_core:coordinate(new(#{})).

entry(Version) -> {Version, coordinate()}.

never_more_probes_in_a_minute_than_allowed_test_() ->
    [
        fun() ->
            {State0, Effects} = start(#{probes_per_minute => PerMinute}),
            [First] = [Ms || {timer, probe, Ms} <- Effects],
            {_, Pauses} = lists:foldl(
                fun(_, {S0, Before}) ->
                    {S, More} = handle({timeout, probe}, S0),
                    {S, [Ms || {timer, probe, Ms} <- More] ++ Before}
                end,
                {State0, [First]},
                lists:seq(1, 100)
            ),
            ?assertEqual(101, length(Pauses)),
            [?assert(Ms * PerMinute >= 60000) || Ms <- Pauses],
            [?assert(Ms * PerMinute =< 66000 + 2 * PerMinute) || Ms <- Pauses]
        end
     || PerMinute <- [1, 7, 20, 60]
    ].

nobody_is_measured_without_a_connection_test() ->
    {_, Effects} = handle({timeout, probe}, do([{up, a@h}, {down, a@h, lost}], new(#{}))),
    ?assertEqual([], [Deed || {act, Deed} <- Effects]).

one_measurement_at_a_time_test() ->
    {Probing, Effects} = handle({timeout, probe}, do([{up, a@h}], new(#{}))),
    ?assertMatch([{measure, [{a@h, true}]}], [Deed || {act, Deed} <- Effects]),
    {Still, Waits} = handle({timeout, probe}, Probing),
    ?assertEqual([], [Deed || {act, Deed} <- Waits]),
    [
        begin
            {_, Again} = handle({timeout, probe}, do([{cast, Answer}], Still)),
            ?assertEqual([{measure, [{a@h, IsFresh}]}], [Deed || {act, Deed} <- Again])
        end
     || {Answer, IsFresh} <- [{{measured, a@h, 70}, false}, {{silent, a@h}, false}, {nobody, true}]
    ].

%% One of them may be silent, and would be asked for every second time.
any_of_the_nearest_is_measured_test() ->
    Nodes = [a@h, b@h, c@h],
    Measured = [Event || Node <- Nodes, Event <- [{up, Node}, {cast, {measured, Node, 40000}}]],
    {Firsts, _} = lists:mapfoldl(
        fun(_, S0) ->
            {S, Effects} = handle({timeout, probe}, S0),
            [{measure, [{First, _} | _]}] = [Deed || {act, Deed} <- Effects],
            {First, do([{cast, nobody}], S)}
        end,
        do(Measured, new(#{})),
        lists:seq(1, 200)
    ),
    %% In turn one of the nearest and any one.
    Halves = [lists:usort([First || {N, First} <- lists:zip(lists:seq(1, 200), Firsts), N rem 2 =:= Half]) || Half <- [0, 1]],
    ?assertEqual([Nodes, Nodes], Halves).

a_connection_that_came_up_again_is_fresh_test() ->
    State = do([{up, a@h}, {timeout, probe}, {cast, {measured, a@h, 70}}, {down, a@h, lost}, {up, a@h}], new(#{})),
    {_, Effects} = handle({timeout, probe}, State),
    ?assertMatch([{measure, [{a@h, true}]}], [Deed || {act, Deed} <- Effects]).

a_measurement_is_told_and_moves_the_node_when_the_other_has_said_where_it_is_test() ->
    {Asking, Effects} = handle({cast, {measured, a@h, 40000}}, 5, do([{up, a@h}], new(#{}))),
    ?assertMatch([{notify, {measured, a@h, 40.0, 5}}, {send, a@h, {1, {ask, {1000, _}, []}}}], Effects),
    {Moved, Said} = handle({message, a@h, {1, {tell, entry(7), []}}}, 9, Asking),
    Here = coordinate(),
    There = atoll_distance_core:coordinate(Moved),
    ?assertEqual([{notify, {coordinate, a@h, Here, 9}}, {notify, {coordinate, me@h, There, 9}}], Said),
    ?assertNotEqual(Here, There),
    %% Once.
    {_, Nothing} = handle({message, a@h, {1, {tell, entry(8), []}}}, 9, Moved),
    ?assertEqual([{notify, {coordinate, a@h, Here, 9}}], Nothing).

who_asks_is_told_where_this_node_and_others_are_test() ->
    State = do([{message, b@h, {1, {tell, entry(5), [{c@h, 100, entry(6)}]}}}], new(#{})),
    {_, Effects} = handle({message, a@h, {1, {ask, entry(7), []}}}, 50, State),
    Here = coordinate(),
    [{send, a@h, {1, {tell, {1000, Here}, Others}}}] = [Sent || {send, _, _} = Sent <- Effects],
    ?assertEqual([{b@h, 50, {5, Here}}, {c@h, 150, {6, Here}}], lists:sort(Others)).

an_echo_goes_to_whoever_measures_test() ->
    {_, Effects} = handle({message, a@h, {1, {echo, somebody, key}}}, new(#{})),
    ?assertEqual([{act, {echo, somebody, key}}], Effects).

the_newer_word_about_a_node_counts_test() ->
    Known = do([{message, b@h, {1, {tell, entry(5), [{c@h, 0, entry(6)}]}}}], new(#{})),
    {_, Older} = handle({message, a@h, {1, {tell, entry(1), [{c@h, 0, entry(5)}, {b@h, 0, entry(9)}]}}}, Known),
    ?assertEqual([a@h, b@h], [Node || {notify, {coordinate, Node, _, _}} <- Older]).

a_word_of_its_own_earlier_life_is_overtaken_test() ->
    State = do([{message, b@h, {1, {tell, entry(5), [{me@h, 0, entry(99999)}]}}}], new(#{})),
    {_, [_, {send, a@h, {1, {tell, {Version, _}, _}}}]} = handle({message, a@h, {1, {ask, entry(7), []}}}, State),
    ?assertEqual(100000, Version).

%% Its own words must remain below what others take for a version.
a_word_of_no_life_of_its_own_is_not_test() ->
    Version = fun(Said) ->
        State = do([{message, b@h, {1, {tell, entry(5), [{me@h, 0, entry(Said)}]}}}], new(#{})),
        {_, [_, {send, a@h, {1, {tell, {Own, _}, _}}}]} = handle({message, a@h, {1, {ask, entry(7), []}}}, State),
        {Own, maps:get(odd, atoll_distance_core:summary(State))}
    end,
    Day = 24 * 60 * 60 * 1000 * 1000,
    ?assertEqual({1000 + Day + 1, 0}, Version(1000 + Day)),
    ?assertEqual({1000, 1}, Version(1000 + Day + 1)),
    ?assertEqual({1000, 1}, Version((1 bsl 58) - 1)).

what_is_odd_is_counted_and_nothing_else_test_() ->
    Coordinate = coordinate(),
    [
        {lists:flatten(io_lib:format("~0p", [Odd])), fun() ->
            {After, Effects} = handle({message, a@h, Odd}, new(#{})),
            ?assertEqual([], Effects),
            ?assertEqual(#{}, atoll_distance_core:known(After)),
            ?assertMatch(#{Count := 1}, atoll_distance_core:summary(After))
        end}
     || {Count, Odd} <- [
            {newer, {2, anything}},
            {odd, nothing},
            {odd, {0, {ask, entry(1), []}}},
            {odd, {1, nothing}},
            {odd, {1, {ask, {0, Coordinate}, []}}},
            {odd, {1, {ask, {1 bsl 60, Coordinate}, []}}},
            {odd, {1, {ask, {1, nowhere}, []}}},
            {odd, {1, {tell, entry(1), nothing}}}
        ]
    ].

of_others_what_is_odd_is_left_out_test() ->
    Others = [{c@h, -1, entry(1)}, {"c@h", 0, entry(1)}, {c@h, 1 bsl 40, entry(1)}, {c@h, 0, {1, nowhere}}, c@h],
    {After, _} = handle({message, a@h, {1, {tell, entry(1), Others}}}, new(#{})),
    ?assertEqual([a@h], maps:keys(atoll_distance_core:known(After))),
    Many = [{list_to_atom("n" ++ integer_to_list(I)), 0, entry(1)} || I <- lists:seq(1, 33)],
    {Too, _} = handle({message, a@h, {1, {tell, entry(1), Many}}}, new(#{})),
    ?assertEqual([a@h], maps:keys(atoll_distance_core:known(Too))).

what_is_known_is_bounded_test() ->
    State = lists:foldl(
        fun(I, S) ->
            Node = list_to_atom("n" ++ integer_to_list(I)),
            do([{up, Node}, {cast, {measured, Node, 5}}, {message, Node, {1, {tell, entry(I), []}}}], S)
        end,
        new(#{max_known => 10}),
        lists:seq(1, 30)
    ),
    ?assertMatch(#{known := 10, measured := 10, refused := 40}, atoll_distance_core:summary(State)).

what_is_old_is_forgotten_test() ->
    State = do(
        [{up, a@h}, {cast, {measured, a@h, 5}}, {up, b@h}, {cast, {measured, b@h, 5}}, {down, b@h, lost},
         {message, b@h, {1, {tell, entry(1), []}}}],
        new(#{forget_ms => 1000})
    ),
    {_, Early} = handle({timeout, sweep}, 999, State),
    ?assertMatch([{timer, sweep, _}], Early),
    {Swept, Late} = handle({timeout, sweep}, 1000, State),
    ?assertMatch([{timer, sweep, _}, {notify, {forgotten, coordinate, b@h}}, {notify, {forgotten, measured, b@h}}], Late),
    ?assertMatch(#{known := 0, measured := 1}, atoll_distance_core:summary(Swept)).

it_begins_where_it_was_test() ->
    Before = {[7.0 || _ <- element(1, coordinate())], 1.0, 0.1},
    {State, Effects} = atoll_distance_core:init(
        #{self => me@h, incarnation => 1, seed => 1, options => #{}, coordinate => Before}, 3
    ),
    ?assertEqual(Before, atoll_distance_core:coordinate(State)),
    ?assert(lists:member({notify, {coordinate, me@h, Before, 3}}, Effects)).
