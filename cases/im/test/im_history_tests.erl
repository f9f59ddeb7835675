%% SPDX-License-Identifier: Apache-2.0
%% @doc The history checker: what keeps the promise is clean, and each violation that is planted is
%% found, by its kind.
-module(im_history_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, <<"alice">>).
-define(B, <<"bob">>).

properties_test_() ->
    atoll_prop:tests([
        {"what keeps the promise is clean, in whatever order the sides come", prop_clean(), 1000},
        {"an accepted message that nobody was told is lost", prop_planted(lost), 1000},
        {"what was passed over is a gap, accepted or not", prop_planted(gap), 1000},
        {"what was told again is found", prop_planted(twice), 1000},
        {"what was told after a later one is found", prop_planted(disorder), 1000},
        {"what nobody has said is found", prop_planted(invented), 1000},
        {"another body is found", prop_planted(altered), 1000},
        {"a delivery that was none is found", prop_planted(undelivered), 1000},
        {"two processes with one name at a time are found, and no others", prop_logins(), 1000}
    ]).

%% One direction: so many were said, told, accepted and delivered.
direction() ->
    ?LET(
        [Delivered, Accepted, Told, Said],
        ?LET(Numbers, vector(4, range(0, 12)), lists:sort(Numbers)),
        #{said => Said, told => lists:seq(1, Told), accepted => Accepted, delivered => Delivered, altered => none}
    ).

conversations() ->
    ?LET(
        Directions,
        non_empty(list({direction(), direction()})),
        [{{1 + N rem 2, 1 + N div 2}, D} || {N, D} <- lists:zip(lists:seq(0, length(Directions) - 1), Directions)]
    ).

sides({Id, {FromA, FromB}}) ->
    [{side, side(Id, ?A, ?B, FromA, FromB)}, {side, side(Id, ?B, ?A, FromB, FromA)}].

%% What a client keeps of what it says and of what it is told.
side(Id, Client, Peer, #{said := Said, accepted := Accepted, delivered := Delivered}, #{told := Told, altered := Altered}) ->
    Says = fun(N, Side) -> im_history_side:said(body(N, none), Side) end,
    Hears = fun(N, Side) -> im_history_side:told(N, body(N, Altered), Side) end,
    Side = lists:foldl(Says, im_history_side:new(Id, Client, Peer), lists:seq(1, Said)),
    lists:foldl(Hears, im_history_side:delivered(Delivered, im_history_side:accepted(Accepted, Side)), Told).

body(N, N) -> <<"another">>;
body(N, _) -> integer_to_binary(N).

report(Events) -> im_history:close(lists:foldl(fun im_history:event/2, im_history:new(), Events)).

prop_clean() ->
    ?FORALL(
        {Conversations, Seed},
        {conversations(), integer()},
        begin
            Report = report(shuffled(lists:append([sides(C) || C <- Conversations]), Seed)),
            #{conversations := Count, messages := Messages} = Report,
            Told = lists:sum([length(T) || {_, {#{told := A}, #{told := B}}} <- Conversations, T <- [A, B]]),
            ?WHENFAIL(
                io:format("~p~n", [Report]),
                im_history:is_clean(Report) andalso Count =:= length(Conversations) andalso Messages =:= Told
            )
        end
    ).

prop_planted(Kind) ->
    ?FORALL(
        {Conversations, Where, N, Seed},
        {conversations(), range(1, 1000), range(1, 1000), integer()},
        begin
            {Before, [{Id, {FromA, FromB}} | After]} = lists:split(Where rem length(Conversations), Conversations),
            Planted = {Id, {plant(Kind, N, FromA), FromB}},
            #{counts := Counts, violations := Violations} = Report =
                report(shuffled(lists:append([sides(C) || C <- Before ++ [Planted | After]]), Seed)),
            ?WHENFAIL(
                io:format("~p~n", [Report]),
                is_map_key(Kind, Counts) andalso lists:all(fun({_, In, From, _, _}) -> In =:= Id andalso From =:= ?A end, Violations) andalso
                    maps:keys(Counts) -- companions(Kind) =:= []
            )
        end
    ).

%% What cannot be without something else.
companions(lost) -> [lost, gap];
companions(undelivered) -> [undelivered, lost];
companions(Kind) -> [Kind].

plant(lost, N, #{said := Said} = D) ->
    All = max(1, Said),
    D#{said := All, accepted := All, delivered := 0, told := lists:seq(1, All) -- [1 + N rem All]};
plant(gap, N, #{said := Said} = D) ->
    Passed = 1 + N rem (Said + 1),
    D#{said := Said + 2, accepted := 0, delivered := 0, told := lists:seq(1, Said + 2) -- [Passed]};
plant(twice, N, #{said := Said} = D) ->
    All = lists:seq(1, max(1, Said)),
    D#{said := length(All), told := All ++ [1 + N rem length(All)]};
plant(disorder, N, #{said := Said} = D) ->
    {Before, [X, Y | After]} = lists:split(N rem (Said + 1), lists:seq(1, Said + 2)),
    D#{said := Said + 2, told := Before ++ [Y, X | After]};
plant(invented, _, #{said := Said} = D) ->
    D#{told := lists:seq(1, Said + 1)};
plant(altered, N, #{said := Said} = D) ->
    All = lists:seq(1, max(1, Said)),
    D#{said := length(All), told := All, altered := 1 + N rem length(All)};
plant(undelivered, _, #{told := Told} = D) ->
    D#{said := length(Told) + 1, delivered := length(Told) + 1}.

%% Processes that have the name one after the other, and one more that has it from the middle of one of them.
prop_logins() ->
    ?FORALL(
        {Lengths, Where, Rival, Seed},
        {non_empty(list(range(2, 50))), range(1, 1000), boolean(), integer()},
        begin
            {Events, _} = lists:mapfoldl(
                fun({Owner, Length}, Us) -> {[{login, ?A, Owner, Us}, {logout, ?A, Owner, Us + Length}], Us + Length} end,
                1000,
                lists:zip(lists:seq(1, length(Lengths)), Lengths)
            ),
            [{login, _, _, Since}, {logout, _, _, Until}] = lists:nth(1 + Where rem length(Events), Events),
            Also = [{login, ?A, rival, (Since + Until) div 2} || Rival],
            All = by_owner(shuffled(lists:append(Events) ++ Also, Seed)),
            im_history:is_clean(report(All)) =:= not Rival
        end
    ).

%% Of each process its login comes first: they are events of one node.
by_owner(Events) ->
    {Ins, Outs} = lists:partition(fun(Event) -> element(1, Event) =:= login end, Events),
    Ins ++ Outs.

shuffled(List, Seed) ->
    {Keyed, _} = lists:mapfoldl(fun(X, R0) -> {K, R} = rand:uniform_s(R0), {{K, X}, R} end, rand:seed_s(exsss, Seed), List),
    [X || {_, X} <- lists:sort(Keyed)].

sides_of_one_direction_alone_test() ->
    Said = side({1, 1}, ?A, ?B, #{said => 2, accepted => 1, delivered => 0}, #{told => [], altered => none}),
    %% The peer, who heard nothing, has not told of that conversation.
    ?assertMatch(#{counts := #{lost := 1}, violations := [{lost, {1, 1}, ?A, ?B, 1}]}, report([{side, Said}])),
    ?assertMatch(#{unchecked := 1, counts := Counts} when Counts =:= #{}, report([{side, Said}, {gone, ?B}])).

a_refused_message_is_no_gap_test() ->
    From = side({1, 1}, ?A, ?B, #{said => 3, accepted => 3, delivered => 3}, #{told => [], altered => none}),
    To = side({1, 1}, ?B, ?A, #{said => 0, accepted => 0, delivered => 0}, #{told => [1, 3], altered => none}),
    ?assert(im_history:is_clean(report([{side, im_history_side:refused(2, From)}, {side, To}]))),
    ?assertMatch(#{counts := #{lost := 1, gap := 1}}, report([{side, From}, {side, To}])).

a_message_of_a_conversation_that_has_ended_test() ->
    [_, {side, Side} = Again] = Sides =
        sides({{1, 1}, {#{said => 1, accepted => 1, delivered => 1, told => [1], altered => none}, #{said => 0, accepted => 0, delivered => 0, told => [], altered => none}}}),
    ?assert(im_history:is_clean(report(Sides))),
    ?assertMatch(#{counts := #{again := 1}}, report(Sides ++ [Again])),
    %% Twice of the same client, before its peer's.
    ?assertMatch(#{counts := #{again := 2}}, report([{side, Side}, {side, Side}])).

a_process_that_is_told_twice_that_it_is_logged_in_test() ->
    ?assertMatch(#{counts := #{}, logins := 1}, report([{login, ?A, one, 1}, {login, ?A, one, 5}])),
    %% It has lost the connection, and another one has the name until it comes back.
    Between = [{login, ?A, one, 1}, {logout, ?A, one, 5}, {login, ?A, two, 5}, {logout, ?A, two, 7}, {login, ?A, one, 9}],
    ?assertMatch(#{logins := 3}, report(Between)),
    ?assert(im_history:is_clean(report(Between))).

no_more_than_a_hundred_violations_are_kept_test() ->
    Sides = [side({1, N}, ?A, ?B, #{said => 1, accepted => 1, delivered => 0}, #{told => [], altered => none}) || N <- lists:seq(1, 150)],
    #{counts := #{lost := 150}, violations := Violations} = report([{side, S} || S <- Sides]),
    ?assertEqual(100, length(Violations)).
