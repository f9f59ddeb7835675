%% SPDX-License-Identifier: Apache-2.0
%% The rules of a match, each with what is not taken, and properties of any sequence of events.
-module(matchstream_match_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ABOUT, #{home => <<"rfc">>, visit => <<"bay">>, start_date => {2026, 3, 14}}).
-define(START, {start, [{home_players, [{1, <<"Marlin">>}, {9, <<"Breaker">>}]}, {visit_players, [{1, <<"Harbour">>}, {5, <<"Pier">>}]}]}).

new() ->
    {ok, Match} = matchstream_match:new(?ABOUT),
    Match.

played(Steps) -> lists:foldl(fun({Kind, Data}, Match) -> {ok, _, Next} = matchstream_match:register(Kind, Data, 0, Match), Next end, new(), Steps).

refused(Kind, Data, Steps) ->
    {error, Error} = matchstream_match:register(Kind, Data, 0, played(Steps)),
    %% Each has a sentence.
    ?assertEqual($., lists:last(unicode:characters_to_list(matchstream_match:format_error(Error)))),
    Error.

a_match_is_named_by_its_teams_and_its_day_test() ->
    ?assertEqual(<<"rfc-bay-2026-03-14">>, matchstream_match:id(new())).

what_is_no_match_is_refused_test_() ->
    [?_assertEqual({error, Error}, matchstream_match:new(maps:merge(?ABOUT, Wrong))) || {Wrong, Error} <- [
        {#{visit => <<"rfc">>}, same_team}, {#{home => <<"r c">>}, {bad_match, home}}, {#{visit => <<>>}, {bad_match, visit}},
        {#{start_date => {2026, 2, 30}}, {bad_match, start_date}}, {#{stadium => <<"a\nb">>}, {bad_match, stadium}}, {#{stadium => <<255>>}, {bad_match, stadium}}
    ]].

a_goal_counts_for_the_team_that_is_named_test() ->
    Match = played([?START, {goal, [{team, <<"rfc">>}, {player, 9}]}, {goal, [{team, <<"rfc">>}, {player, 5}, {player_team, <<"bay">>}]}]),
    ?assertEqual({2, 0}, matchstream_match:score(Match)).

an_event_names_its_player_test() ->
    {ok, #{seq := 2, data := Data}, _} = matchstream_match:register(goal, [{team, <<"rfc">>}, {player, 9}], 7, played([?START])),
    ?assertEqual([{player, {9, <<"Breaker">>}}, {team, <<"rfc">>}], Data).

a_red_card_takes_the_player_off_and_a_yellow_one_does_not_test() ->
    Of = fun(Card) -> maps:get(home_players, matchstream_match:to_map(played([?START, {card, [{team, <<"rfc">>}, {player, 9}, {card, Card}]}]))) end,
    ?assertEqual({[{1, <<"Marlin">>}], [{1, <<"Marlin">>}, {9, <<"Breaker">>}]}, {Of(red), Of(yellow)}).

who_is_substituted_is_replaced_test() ->
    Match = played([?START, {substitution, [{team, <<"bay">>}, {player_out, 5}, {player_in, {14, <<"Tiller">>}}]}]),
    ?assertMatch(#{visit_players := [{1, <<"Harbour">>}, {14, <<"Tiller">>}]}, matchstream_match:to_map(Match)).

the_periods_follow_each_other_test() ->
    Steps = [?START | [{Kind, []} || Kind <- [halftime_start, halftime_stop, extratime, halftime_start, halftime_stop, penalties, stop]]],
    ?assertEqual(
        [first, halftime, last, first_extra, halftime_extra, last_extra, penalties, ended],
        [matchstream_match:period(played(lists:sublist(Steps, N))) || N <- lists:seq(1, length(Steps))]
    ).

a_match_is_cancelled_before_it_starts_and_while_it_runs_and_not_after_it_test() ->
    [?assertEqual({Steps, ended}, {Steps, matchstream_match:period(played(Steps ++ [{cancel, []}]))}) || Steps <- [[], [?START], [?START, {halftime_start, []}]]],
    [?assertEqual({wrong_period, cancel, ended}, refused(cancel, [], [?START, {End, []}])) || End <- [stop, cancel]].

what_the_rules_do_not_let_happen_is_refused_test() ->
    Goal = [{team, <<"rfc">>}, {player, 9}],
    ?assertEqual({wrong_period, goal, not_started}, refused(goal, Goal, [])),
    ?assertEqual({wrong_period, goal, ended}, refused(goal, Goal, [?START, {stop, []}])),
    ?assertEqual({wrong_period, goal, halftime}, refused(goal, Goal, [?START, {halftime_start, []}])),
    {Start, Data} = ?START,
    ?assertEqual({wrong_period, start, first}, refused(Start, Data, [?START])),
    ?assertEqual({wrong_period, halftime_stop, first}, refused(halftime_stop, [], [?START])),
    ?assertEqual({invalid_team, <<"xxx">>}, refused(goal, [{team, <<"xxx">>}], [?START])),
    ?assertEqual({unknown_player, 5, <<"rfc">>}, refused(goal, [{team, <<"rfc">>}, {player, 5}], [?START])),
    ?assertEqual({invalid_card, blue}, refused(card, [{team, <<"rfc">>}, {player, 9}, {card, blue}], [?START])),
    ?assertEqual({already_plays, 1, <<"rfc">>}, refused(substitution, [{team, <<"rfc">>}, {player_out, 9}, {player_in, {1, <<"A">>}}], [?START])),
    ?assertEqual({missing, goal, team}, refused(goal, [], [?START])),
    ?assertEqual({unknown_key, stop, team}, refused(stop, [{team, <<"rfc">>}], [?START])),
    ?assertEqual({unknown_kind, <<"nap">>}, refused(<<"nap">>, [], [?START])),
    ?assertEqual({bad_value, home_players}, refused(start, [{home_players, [{1, <<"A">>}, {1, <<"B">>}]}], [])),
    ?assertEqual({no_pair, start, a}, refused(start, [a], [])).

what_is_no_script_is_said_test_() ->
    [
        ?_assertEqual({Steps, Said}, {Steps, begin {error, Sentence} = matchstream_script:check([{steps, Steps} | maps:to_list(?ABOUT)]), unicode:characters_to_list(Sentence) end})
     || {Steps, Said} <- [
            {[], "a script needs steps, a list that is not empty."},
            {[{start, []} | x], "a script needs steps, a list that is not empty."},
            {[{sleep, 10}, {sleep, 20}], "a script needs an event among its steps."},
            {[{start, [a | b]}], "step 1: {start,[a|b]} is neither {sleep, Milliseconds} nor {Kind, Data}."},
            {[{start, [a]}], "step 1: The data of an event are {Key, Value} each, and of this start one is a."},
            {[{sleep, 1}, {start, []}, nap], "step 3: nap is neither {sleep, Milliseconds} nor {Kind, Data}."}
        ]
    ].

%% Any events, right and wrong ones: what is taken is replayed to the same match, numbers have no gap, and the goals are counted.
any_history_replays_to_the_same_match_test_() ->
    atoll_prop:test("replay", ?FORALL(Steps, list(step()), begin
        {Match, Events} = lists:foldl(fun({Kind, Data}, {Before, Taken}) ->
            case matchstream_match:register(Kind, Data, 0, Before) of
                {ok, Event, After} -> {After, [Event | Taken]};
                {error, Error} -> _ = unicode:characters_to_binary(matchstream_match:format_error(Error)), {Before, Taken}
            end
        end, {new(), []}, [?START | Steps]),
        {Home, Visit} = matchstream_match:score(Match),
        lists:foldl(fun matchstream_match:replay/2, new(), lists:reverse(Events)) =:= Match
            andalso [Seq || #{seq := Seq} <- Events] =:= lists:seq(length(Events), 1, -1)
            andalso Home + Visit =:= length([goal || #{kind := goal} <- Events])
    end), 500).

step() ->
    Team = oneof([<<"rfc">>, <<"bay">>, <<"xxx">>]),
    Number = oneof([1, 5, 9, 14]),
    oneof([
        {oneof([halftime_start, halftime_stop, continue, extratime, penalties]), []},
        {oneof([goal, shot, foul]), [{team, Team}, {player, Number}]},
        {card, [{team, Team}, {player, Number}, {card, oneof([red, yellow, blue])}]},
        {substitution, [{team, Team}, {player_out, Number}, {player_in, {Number, <<"Tiller">>}}]}
    ]).
