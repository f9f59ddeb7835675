%% SPDX-License-Identifier: Apache-2.0
%% A trace says what happened, also to somebody who was not there.
-module(atoll_sim_trace_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(EVENTS, [
    {0, n1, {started, 1}},
    {1, n2, {started, 1}},
    {5, n1, {neighbour_up, n2}},
    {6, n2, {neighbour_up, n1}},
    {7, n10, {started, 1}},
    {7, n1, {neighbour_up, n10}},
    {8, world, {fault, {kill, n2}}},
    {8, n2, killed},
    {9, n10, paused},
    {12, n1, {neighbour_down, n2, lost}},
    {15, n2, {started, 2}},
    {16, n10, resumed}
]).

what_is_written_is_read_test() ->
    Header = #{repeat => "bin/atoll sim run a.script --seed 7", seed => 7, nodes => 3, strategy => hyparview},
    ?assertEqual(
        {ok, Header#{repeat := <<"bin/atoll sim run a.script --seed 7">>}, ?EVENTS},
        read(trace(Header, ?EVENTS))
    ).

the_file_is_text_test() ->
    ?assertEqual(
        <<"{atoll_trace,1,#{nodes=>3,repeat=><<\"x\">>,seed=>7}}.\n{8,world,{fault,{kill,n2}}}.\n">>,
        iolist_to_binary([
            atoll_sim_trace:header(#{seed => 7, repeat => "x", nodes => 3}),
            atoll_sim_trace:line(8, world, {fault, {kill, n2}})
        ])
    ).

a_broken_file_is_one_sentence_with_the_line_test_() ->
    [
        {Sentence, ?_assertEqual(Sentence, sentence(read(Text)))}
     || {Text, Sentence} <- [
            {"", "FILE:1: this is no trace: its first line is not {atoll_trace, Version, Header}."},
            {"hello\n", "FILE:1: this is no trace: its first line is not {atoll_trace, Version, Header}."},
            {"{atoll_trace,1,#{repeat=>foo}}.\n", "FILE:1: the header of a trace has no such repeat"},
            {"{atoll_trace,1,#{repeat=><<255>>}}.\n", "FILE:1: the header of a trace has no such repeat"},
            {"{atoll_trace,1,#{nodes=>0}}.\n", "FILE:1: the header of a trace has no such nodes"},
            {"{atoll_trace,1,#{1=>2}}.\n", "FILE:1: the header of a trace has no such 1"},
            {"{atoll_trace,2,#{}}.\n", "FILE:1: this trace is of version 2, and only version 1 can be read"},
            {[head(), "{1,n1,paused}.\n{2,n1,\n"], "FILE:3: this is no Erlang term: syntax error before: "},
            {[head(), "{1,n1,paused}.\n{atoll_trace_end,1}.\n{2,n1,paused}.\n"],
                "FILE:4: the trace has ended before this line"},
            {[head(), "{atoll_trace_end,many}.\n"], "FILE:2: this is no event of a trace"},
            {[head(), "{2,n1,paused}.\n{1,n1,killed}.\n"],
                "FILE:3: times do not go backwards, and 1 ms comes after 2 ms"},
            {[head(), "{2,n1,exploded}.\n"], "FILE:2: this is no event of a trace"},
            {[head(), "\n"], "FILE:2: this is no Erlang term: syntax error before: "},
            {[head(), <<255, 10>>], "FILE:2: this is no Erlang term: it is not UTF-8"}
        ]
    ].

a_trace_that_is_cut_is_read_as_far_as_it_goes_and_told_from_a_whole_one_test_() ->
    Events = [{1, n1, paused}, {2, n1, killed}],
    Bytes = iolist_to_binary(trace(#{}, Events)),
    Begin = iolist_size(head()),
    [?_assertEqual({ok, #{repeat => <<>>}, Events}, read(Bytes))] ++
    [
        {integer_to_list(Length), fun() ->
            {cut, #{repeat := <<>>}, Left, _} = Cut = read(binary:part(Bytes, 0, Length)),
            ?assert(lists:prefix(Left, Events)),
            Sentence = io_lib:format("FILE:~b: the trace is cut off here", [2 + length(Left)]),
            ?assertEqual(lists:flatten(Sentence), sentence(Cut))
        end}
     || Length <- lists:seq(Begin, byte_size(Bytes) - 1)
    ].

a_trace_from_whose_middle_something_was_cut_is_told_from_a_whole_one_test() ->
    Cut = read([head(), "{1,n1,paused}.\n{atoll_trace_end,2}.\n"]),
    ?assertMatch({cut, #{}, [{1, n1, paused}], _}, Cut),
    ?assertEqual("FILE:3: the trace was cut: its end counts 2 events, and 1 are there", sentence(Cut)).

a_missing_file_is_one_sentence_test() ->
    ?assertEqual(
        "/no/such: it cannot be read: no such file or directory",
        lists:flatten(atoll_sim_trace:format_error(element(2, atoll_sim_trace:read("/no/such"))))
    ).

a_fold_can_stop_test() ->
    Fun = fun({_, _, killed}, N) -> {stop, N}; (_, N) -> N + 1 end,
    ?assertMatch({ok, #{}, {stop, 7}}, with_file([head() | lines(?EVENTS)], fun(F) -> atoll_sim_trace:fold(Fun, 0, F) end)).

the_state_at_a_moment_test() ->
    At = fun(Ms) -> atoll_sim_trace:state_at(Ms, ?EVENTS) end,
    ?assertEqual(#{n1 => {alive, []}}, At(0)),
    ?assertEqual(#{n1 => {alive, [n2, n10]}, n2 => {alive, [n1]}, n10 => {alive, []}}, At(7)),
    ?assertEqual(#{n1 => {alive, [n2, n10]}, n2 => {dead, []}, n10 => {paused, []}}, At(11)),
    ?assertEqual(#{n1 => {alive, [n10]}, n2 => {alive, []}, n10 => {alive, []}}, At(99)).

what_a_watcher_sees_test() ->
    ?assertEqual(
        [{started, 1}, killed, {neighbour_up, a}, {dead, a, 1}, {notice, x}, none, {got, a, m}],
        [
            atoll_sim_trace:what(S)
         || S <- [
                {started, 1}, killed, {notice, {neighbour_up, a}}, {notice, {dead, a, 1}},
                {notice, x}, {deed, d}, {got, a, m}
            ]
        ]
    ).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_round_trip(), 100).

%% Whatever happened is read back, whatever was in the messages.
prop_round_trip() ->
    ?FORALL(Whats, list({choose(0, 9), what()}), begin
        {Events, _} = lists:mapfoldl(fun({Ms, What}, T) -> {{T + Ms, 'n 1', What}, T + Ms} end, 0, Whats),
        {ok, #{repeat => <<>>}, Events} =:= read(trace(#{}, Events))
    end).

what() ->
    Message = oneof([{shuffle, [n1, 'N2'], 3}, #{b => 1, a => "x\ny"}, <<255>>, 1.5, [[]]]),
    oneof([
        killed, paused, resumed, left, {started, 3}, {neighbour_down, n2, lost},
        {sent, n2, Message}, {got, n2, Message}, {broadcast, n2, Message}, {fault, {kill, [n1]}}
    ]).

trace(Header, Events) ->
    [atoll_sim_trace:header(Header), lines(Events), atoll_sim_trace:ending(length(Events))].

head() -> atoll_sim_trace:header(#{}).

lines(Events) -> [atoll_sim_trace:line(Ms, Where, What) || {Ms, Where, What} <- Events].

read(Text) ->
    case with_file(Text, fun atoll_sim_trace:read/1) of
        {error, {_, Line, Reason}} -> {error, {"FILE", Line, Reason}};
        {cut, Header, Events, {_, Line, Reason}} -> {cut, Header, Events, {"FILE", Line, Reason}};
        Read -> Read
    end.

with_file(Text, Fun) ->
    Name = atoll_test_file:temporary("atoll_sim_trace_tests"),
    ok = file:write_file(Name, Text),
    try
        Fun(Name)
    after
        file:delete(Name)
    end.

sentence({cut, _, _, Error}) -> sentence({error, Error});
sentence({error, Error}) ->
    unicode:characters_to_list(atoll_sim_trace:format_error(Error)).
