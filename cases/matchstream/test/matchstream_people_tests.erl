%% SPDX-License-Identifier: Apache-2.0
%% Records, the model that is fitted to one, and how alike two of them are. The people are made up: each looks at the matches, thinks, follows one,
%% asks for its history a few times, and leaves.
-module(matchstream_people_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% What is drawn hangs on these, since thresholds are statistical.
-define(SEED, 27).

%% So many people, who think so long on the average.
people(Count, ThinkMs, Seed) ->
    R = rand:seed_s(exsss, Seed),
    {Entries, _} = lists:mapfoldl(fun(N, R0) ->
        {Start, R1} = pause(2000 * N, R0),
        {Thought, R2} = pause(ThinkMs, R1),
        {Times, R3} = rand:uniform_s(4, R2),
        {Looks, {At, R4}} = lists:mapfoldl(fun(_, {At, Ra}) -> {Ms, Rb} = pause(ThinkMs, Ra), {{At + Ms, history}, {At + Ms, Rb}} end, {Start + Thought, R3}, lists:seq(1, Times)),
        {Stay, R5} = pause(5 * ThinkMs, R4),
        User = integer_to_binary(N),
        {[{Ms, User, Kind} || {Ms, Kind} <- [{Start, matches}, {Start + Thought, watch}] ++ Looks ++ [{At + Stay, leave}]], R5}
    end, R, lists:seq(1, Count)),
    lists:append(Entries).

%% Of an exponential distribution.
pause(Mean, R) ->
    {U, Next} = rand:uniform_real_s(R),
    {round(-Mean * math:log(U)), Next}.

sessions(Count, ThinkMs, Seed) -> matchstream_people:sessions(people(Count, ThinkMs, Seed)).

alike(A, B) -> maps:map(fun(_, #{alike := Is}) -> Is end, matchstream_people:compare(A, B, ?SEED)).

who_is_simulated_is_like_who_was_recorded_test() ->
    People = sessions(80, 3000, ?SEED),
    Drawn = matchstream_people:draw(80, matchstream_people:fit(People), ?SEED),
    ?assertEqual(#{gaps => true, kinds => true, lengths => true}, alike(People, Drawn)).

%% Others think half as long.
another_pace_is_found_test() ->
    ?assertMatch(#{gaps := false, kinds := true}, alike(sessions(80, 3000, ?SEED), sessions(80, 1500, ?SEED + 1))).

%% A fourth ask for the port, too.
another_mixture_is_found_test() ->
    People = sessions(80, 3000, ?SEED),
    Others = [case N rem 4 of 0 -> {Start, Requests ++ [{100, port}, {100, port}]}; _ -> {Start, Requests} end || {N, {Start, Requests}} <- lists:zip(lists:seq(1, 80), People)],
    ?assertMatch(#{kinds := false}, alike(People, Others)).

distances_are_those_of_the_books_test() ->
    Of = fun(Gaps) -> [{0, [{0, matches} | [{Gap, match} || Gap <- Gaps]]}] end,
    Distance = fun(A, B) -> maps:map(fun(_, #{distance := Is}) -> Is end, matchstream_people:compare(Of(A), Of(B), ?SEED)) end,
    ?assertEqual(#{gaps => 0.0, kinds => 0.0, lengths => 0.0}, Distance([1, 2, 3], [3, 1, 2])),
    %% Up to 2 it is 2 of 4 and none.
    ?assertMatch(#{gaps := 0.5, kinds := +0.0}, Distance([1, 2, 3, 4], [3, 4, 5, 6])),
    ?assertMatch(#{gaps := 1.0}, Distance([1, 2], [3, 4])),
    %% One of two is a look at the matches, and one of four.
    ?assertMatch(#{kinds := 0.25, lengths := 1.0}, Distance([1], [1, 1, 1])).

%% A chain makes no step that was not seen, and no time beyond those that were.
only_what_was_seen_is_drawn_test_() ->
    Session = ?LET({Start, Requests}, {range(0, 10000), non_empty(list({range(0, 500), oneof([matches, match, history])}))}, {Start, [{0, element(2, hd(Requests))} | tl(Requests)]}),
    atoll_prop:test("drawn", ?FORALL({Recorded, Seed}, {non_empty(list(Session)), integer()}, begin
        Sessions = lists:sort(Recorded),
        Drawn = matchstream_people:draw(5, matchstream_people:fit(Sessions), Seed),
        Seen = lists:append([pairs(Requests) || {_, Requests} <- Sessions]),
        lists:all(fun({_, Requests}) ->
            lists:all(fun({From, To, Gap}) ->
                Gaps = [G || {F, T, G} <- Seen, {F, T} =:= {From, To}],
                Gaps =/= [] andalso Gap >= lists:min(Gaps) andalso Gap =< lists:max(Gaps)
            end, pairs(Requests))
        end, Drawn) andalso length(Drawn) =:= 5
    end), 200).

pairs(Requests) -> [{From, To, Gap} || {{_, From}, {Gap, To}} <- lists:zip(lists:droplast(Requests), tl(Requests))].

a_record_is_read_as_it_was_written_test() ->
    Dir = atoll_cli_os:new_dir(),
    File = filename:join(Dir, "record"),
    ok = file:write_file(File, "20 ada watch\n10 ada matches\n"),
    ?assertEqual({ok, [{10, <<"ada">>, matches}, {20, <<"ada">>, watch}]}, matchstream_record:read(File)),
    [
        begin
            ok = file:write_file(File, ["10 ada matches\n", Line, "\n"]),
            {error, Sentence} = matchstream_record:read(File),
            ?assertNotEqual({Line, nomatch}, {Line, string:find(Sentence, "line 2 is not")})
        end
     || Line <- ["x ada match", "10 ada", "10 ada nap", "10  match", "10 ada match more"]
    ],
    ok = atoll_cli_os:remove_dir(Dir).
