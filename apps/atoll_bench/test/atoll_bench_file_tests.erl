%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_file_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HEADER, #{
    benchmark => fake,
    parameters => [#{name => size}],
    points => [#{size => 1}],
    metrics => [#{name => rate, label => <<"Rate">>, unit => <<"1/s">>, better => more, kind => value}],
    variant => size
}).
-define(ROUND, #{point => 0, round => 1, values => #{rate => 1.5}, histograms => #{}}).

what_was_written_is_read_test() ->
    {ok, Run} = with_lines(complete, [?ROUND, #{point => 0, error => <<"no">>}], fun atoll_bench_file:read/1),
    ?assertMatch(
        #{status := complete, rounds := [#{<<"values">> := #{<<"rate">> := 1.5}}], errors := [#{<<"error">> := <<"no">>}]},
        Run
    ).

a_file_without_an_end_is_not_read_for_ever_test_() ->
    {timeout, 60, fun() ->
        {error, Error} = atoll_bench_file:read("/dev/zero"),
        Said = lists:flatten(io_lib:format("~ts", [atoll_bench_file:format_error(Error)])),
        ?assertEqual("/dev/zero: it is larger than 67108864 bytes", Said)
    end}.

a_run_that_was_interrupted_is_partial_test() ->
    {ok, Run} = with_lines(partial, [?ROUND], fun atoll_bench_file:read/1),
    ?assertMatch(#{status := partial, rounds := [_]}, Run).

a_file_cut_anywhere_after_its_head_is_partial_and_keeps_what_is_whole_test_() ->
    {timeout, 60, fun() ->
        with_lines(complete, [?ROUND, maps:put(round, 2, ?ROUND)], fun(File) ->
            {ok, Text} = file:read_file(File),
            [Head, One, Two, _End, <<>>] = binary:split(Text, <<"\n">>, [global]),
            Ends = [byte_size(Head) + 1, byte_size(Head) + byte_size(One) + 2, byte_size(Head) + byte_size(One) + byte_size(Two) + 3],
            [
                begin
                    ok = file:write_file(File, binary:part(Text, 0, Size)),
                    {ok, #{status := partial, rounds := Rounds}} = atoll_bench_file:read(File),
                    ?assertEqual(length([End || End <- Ends, End =< Size]) - 1, length(Rounds))
                end
             || Size <- lists:seq(hd(Ends), byte_size(Text) - 1)
            ]
        end)
    end}.

%% A second try finds nothing in its way.
a_head_that_cannot_be_written_leaves_no_file_test() ->
    with_file(fun(Name) ->
        ?assertEqual(raised, raised(fun() -> atoll_bench_file:create(Name, maps:put(variant, {no, json}, ?HEADER)) end)),
        ?assertEqual({error, enoent}, file:read_file_info(Name))
    end).

what_is_wrong_is_one_sentence_test_() ->
    Head = "{\"atoll_bench\":1,\"benchmark\":\"x\",\"parameters\":[],\"points\":[{}],\"metrics\":[],\"variant\":\"a\"}\n",
    [
        ?_assertEqual(Sentence, sentence(Text))
     || {Text, Sentence} <- [
            {"", "the file is empty"},
            {"{\"atoll_bench\":2}\n", "this is a result file of version 2, and only version 1 can be read"},
            {"hello\n", "this is not the file of a run"},
            {"{}\n", "this is not the file of a run"},
            {Head ++ "{\n{\"end\":\"complete\"}\n", "line 2 is no JSON"},
            {Head ++ "{\"point\":0,\"values\":{\"x\":\"7\"},\"histograms\":{}}\n", "line 2 is none of a result file"},
            {Head ++ "{\"point\":0,\"values\":{},\"histograms\":{\"x\":{\"bits\":3}}}\n", "line 2 is none of a result file"},
            {Head ++ "{\"point\":7,\"error\":\"x\"}\n", "line 2 is none of a result file"},
            {Head ++ "{\"end\":\"complete\"}\n{\"end\":\"complete\"}\n", "line 2 is none of a result file"}
        ]
    ].

a_head_that_lacks_anything_is_refused_test_() ->
    Metric = hd(maps:get(metrics, ?HEADER)),
    Wrong =
        [maps:remove(Key, ?HEADER) || Key <- maps:keys(?HEADER)] ++
            [maps:put(metrics, [maps:remove(Key, Metric)], ?HEADER) || Key <- maps:keys(Metric)] ++
            [
                maps:put(Key, Value, ?HEADER)
             || {Key, Value} <- [
                    {parameters, [#{}]}, {parameters, 7}, {points, [#{}]}, {points, [#{size => [1]}]}, {points, [7]},
                    {metrics, [maps:put(kind, other, Metric)]}, {benchmark, 7}
                ]
            ],
    [
        ?_assertEqual({Header, "line 1 is none of a result file"}, {Header, sentence([atoll_bench_json:encode(maps:put(atoll_bench, 1, Header)), $\n])})
     || Header <- Wrong
    ].

sentence(Text) ->
    with_file(fun(File) ->
        ok = file:write_file(File, Text),
        {error, Error} = atoll_bench_file:read(File),
        Prefix = File ++ ": ",
        string:prefix(unicode:characters_to_list(atoll_bench_file:format_error(Error)), Prefix)
    end).

with_lines(Status, Lines, Fun) ->
    with_file(fun(Name) ->
        {ok, File} = atoll_bench_file:create(Name, ?HEADER),
        [ok = atoll_bench_file:append(File, Line) || Line <- Lines],
        ok = atoll_bench_file:close(File, Status),
        Fun(Name)
    end).

%% The libraries for JSON differ in what they raise.
raised(Fun) ->
    try Fun() of
        Value -> {returned, Value}
    catch
        _:_ -> raised
    end.

with_file(Fun) ->
    Name = atoll_test_file:temporary("atoll_bench_file_tests"),
    try
        Fun(Name)
    after
        file:delete(Name)
    end.
