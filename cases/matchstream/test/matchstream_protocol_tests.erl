%% SPDX-License-Identifier: Apache-2.0
%% The text of the protocol: requests, the golden transcript of the sample match, and decoding in pieces.
-module(matchstream_protocol_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% With MATCHSTREAM_GOLDEN=write the file is written anew: whoever does that reads what has changed.
the_sample_match_is_told_as_in_the_golden_transcript_test() ->
    File = filename:join([filename:dirname(?FILE), "golden", "sample.txt"]),
    Told = iolist_to_binary([matchstream_protocol:greeting() | [matchstream_protocol:event(Event) || Event <- told(sample())]]),
    _ = [ok = file:write_file(File, Told) || os:getenv("MATCHSTREAM_GOLDEN") =:= "write"],
    {ok, Golden} = file:read_file(File),
    ?assertEqual(Golden, Told).

sample() ->
    {ok, File} = matchstream_script:find("sample"),
    {ok, Script} = matchstream_script:read(File),
    Script.

%% The status after the start, and then each event, a second apart.
told(#{about := About, steps := Steps}) ->
    {ok, New} = matchstream_match:new(About),
    [{Kind, Data} | Rest] = [Step || {Kind, _} = Step <- Steps, Kind =/= sleep],
    {ok, _, Started} = matchstream_match:register(Kind, Data, 1773500000000, New),
    {Events, _} = lists:mapfoldl(fun({N, {K, D}}, Match) ->
        {ok, Event, Next} = matchstream_match:register(K, D, 1773500000000 + 1000 * N, Match),
        {Event, Next}
    end, Started, lists:zip(lists:seq(1, length(Rest)), Rest)),
    [matchstream_match:status(Started) | Events].

the_sample_has_each_kind_and_ends_as_it_says_test() ->
    #{final := Final, kinds := Kinds, ms := Ms} = matchstream_script:summary(sample()),
    ?assertEqual({{4, 2}, ended, 50000, matchstream_match:kinds() -- [cancel]}, {matchstream_match:score(Final), matchstream_match:period(Final), Ms, lists:sort(maps:keys(Kinds))}).

%% Whoever sends a request reads it the same.
requests_are_written_as_they_are_read_test_() ->
    [
        ?_assertEqual({ok, Request}, matchstream_protocol:request(hd(binary:split(iolist_to_binary(matchstream_protocol:encode_request(Request)), <<"\r\n">>))))
     || Request <- [{first, <<"ada">>}, {match, <<"ada">>, <<"x">>}, {rest, <<"ada">>, <<"x">>, 0}]
    ].

a_made_match_is_one_by_the_rules_test() ->
    #{about := About, steps := Steps} = matchstream_script:made(5),
    {ok, Script} = matchstream_script:check([{steps, Steps} | maps:to_list(About)]),
    ?assertMatch(#{kinds := #{start := 1, substitution := 5, stop := 1}, ms := 5000}, matchstream_script:summary(Script)).

%% The match of the paper's program: MATCHSTREAM_DATA names the folder of its script.
the_papers_match_ends_as_it_did_test_() ->
    case os:getenv("MATCHSTREAM_DATA") of
        false -> [];
        Dir ->
            {ok, Script} = matchstream_script:read(filename:join(Dir, "1.config")),
            #{final := Final, kinds := Kinds, ms := Ms} = matchstream_script:summary(Script),
            [
                ?_assertEqual({1, 3}, matchstream_match:score(Final)),
                ?_assertMatch(#{shot := 11, card := 5, substitution := 6}, Kinds),
                ?_assertEqual(1094000, Ms)
            ]
    end.

requests_are_read_test_() ->
    [?_assertEqual(Is, matchstream_protocol:request(Line)) || {Line, Is} <- [
        {<<"V:2:ada">>, {ok, {first, <<"ada">>}}},
        {<<"VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14:AFTER:12">>, {ok, {rest, <<"ada">>, <<"rfc-bay-2026-03-14">>, 12}}},
        {<<"VERSION:1:CONNECT:ada:MATCH:rfc-bay-2026-03-14">>, {ok, {match, <<"ada">>, <<"rfc-bay-2026-03-14">>}}}
    ]] ++ [?_assertMatch({error, _}, matchstream_protocol:request(Line)) || Line <- [<<>>, <<"V:2:">>, <<"V:1:ada">>, <<"VERSION:1:CONNECT:ada:MATCH:x:AFTER:-1">>, <<"VERSION:1:CONNECT:ada:MATCH:x:AFTER:">>, <<"V:2:a b">>, <<"V:2:", 0>>, <<"GET / HTTP/1.1">>, binary:copy(<<"x">>, 500), <<255, 254>>]].

events_are_the_same_in_whatever_pieces_they_come_test_() ->
    Events = told(sample()),
    Text = iolist_to_binary([matchstream_protocol:greeting(), [matchstream_protocol:event(Event) || Event <- Events], matchstream_protocol:error("the end.")]),
    {Whole, _} = matchstream_protocol:decode(Text, matchstream_protocol:new()),
    [
        ?_assertEqual([matchstream_protocol:event(Event) || Event <- Events], [Bytes || {event, _, Bytes} <- Whole]),
        ?_assertEqual({error, <<"the end.">>}, lists:last(Whole)),
        ?_assertMatch({event, #{kind := <<"goal">>, data := [{<<"player">>, <<"Breaker (9)">>}, {<<"team">>, <<"<<\"rfc\">>">>}]}, _}, lists:nth(6, Whole)),
        atoll_prop:test("pieces", ?FORALL(Sizes, non_empty(list(pos_integer())), pieces(Text, Sizes, Sizes, matchstream_protocol:new(), []) =:= Whole), 200)
    ].

pieces(<<>>, _, _, _, Frames) -> Frames;
pieces(Text, [], Sizes, Decoder, Frames) -> pieces(Text, Sizes, Sizes, Decoder, Frames);
pieces(Text, [N | More], Sizes, Decoder, Frames) ->
    {Part, Rest} = split_binary(Text, min(N, byte_size(Text))),
    {New, Next} = matchstream_protocol:decode(Part, Decoder),
    pieces(Rest, More, Sizes, Next, Frames ++ New).

what_is_no_event_is_bad_test_() ->
    Greeting = matchstream_protocol:greeting(),
    [?_assertMatch({_, bad}, matchstream_protocol:decode(<<Greeting/binary, Bytes/binary>>, matchstream_protocol:new())) || Bytes <- [
        <<"hello\r\n">>, <<"\r\n">>, <<"2026-03-14 10:00:00: goal:\nplayer: X (1)\n\r\n">>, binary:copy(<<"x">>, 70000)
    ]].
