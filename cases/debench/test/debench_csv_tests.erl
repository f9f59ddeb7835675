%% SPDX-License-Identifier: Apache-2.0
-module(debench_csv_tests).

-include_lib("eunit/include/eunit.hrl").

%% Looks of a tally into which these were written before each.
looks(Labels, Steps) ->
    Tally = debench_tally:new(Labels),
    {Looks, _} = lists:mapfoldl(
        fun(Records, Ms) ->
            _ = [ok = record(Record, Tally) || Record <- Records],
            {(debench_tally:look(Tally))#{elapsed_ms => Ms, restarts => 0, offered => 10}, Ms + 1000}
        end,
        1000,
        Steps
    ),
    Looks.

record(shed, Tally) -> debench_tally:shed(Tally);
record({Label, Us, In}, Tally) when is_number(Us) -> debench_tally:record(Label, ok, Us * 1000, In, Tally);
record({Label, Reason, In}, Tally) -> debench_tally:record(Label, {error, Reason}, 0, In, Tally).

-define(IN, {true, true}).

file(Name, Looks) ->
    {_, Text} = lists:keyfind(Name, 1, atoll_bench_csv:files(Looks)),
    string:lexemes(unicode:characters_to_list(Text), "\n").

the_headers_are_the_original_s_test() ->
    Looks = looks([ping], [[]]),
    ?assertEqual(["elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors" | ["1.0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0"]], file("ping_latencies.csv", Looks)),
    ?assertEqual(["elapsed, window, total, successful, failed", "1.0, 1.0, 0, 0, 0"], file("summary.csv", Looks)),
    ?assertEqual(["\"error\",\"count\""], file("errors.csv", Looks)),
    ?assertEqual(["ping_latencies.csv", "summary.csv", "errors.csv"], [Name || {Name, _} <- atoll_bench_csv:files(Looks)]).

a_window_has_what_came_in_it_alone_test() ->
    Looks = looks([ping, pong], [
        [{ping, 100, ?IN}, {ping, 100, ?IN}, {ping, timeout, ?IN}],
        [{ping, 200, ?IN}, {pong, 50, ?IN}, shed],
        []
    ]),
    ?assertEqual(
        ["1.0, 1.0, 2, 100, 100.1, 100, 100, 100, 100, 100, 1", "2.0, 1.0, 1, 200, 200.2, 200, 200, 200, 200, 200, 0",
         "3.0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0"],
        tl(file("ping_latencies.csv", Looks))
    ),
    ?assertEqual(["1.0, 1.0, 3, 2, 1", "2.0, 1.0, 3, 2, 1", "3.0, 1.0, 0, 0, 0"], tl(file("summary.csv", Looks))),
    ?assertEqual(["\"ping: timeout\",\"1\"", "\"shed\",\"1\""], tl(file("errors.csv", Looks))).

all_nodes_are_the_sum_of_each_test() ->
    One = looks([ping], [[{ping, 100, ?IN}, {ping, no, ?IN}], [shed]]),
    Other = looks([ping], [[{ping, 300, ?IN}], [{ping, no, ?IN}, {ping, down, ?IN}]]),
    Both = [atoll_bench_window:merged([A, B]) || {A, B} <- lists:zip(One, Other)],
    ?assertEqual(["1.0, 1.0, 3, 2, 1", "2.0, 1.0, 3, 0, 3"], tl(file("summary.csv", Both))),
    ?assertEqual(["\"ping: down\",\"1\"", "\"ping: no\",\"2\"", "\"shed\",\"1\""], tl(file("errors.csv", Both))),
    ?assertMatch(#{offered := 20, completed := 2}, lists:last(Both)).

what_begins_outside_the_window_is_not_measured_test() ->
    [Look] = looks([ping], [[{ping, 100, {false, true}}, {ping, 100, {true, false}}, {ping, 100, {false, false}}, {ping, no, {false, true}}]]),
    ?assertMatch(#{completed := 1, labels := [{ping, #{ok := 1, done := 3, errors := []}}]}, Look).

files_that_cannot_be_written_are_named_test() ->
    ?assertMatch({error, {"/dev/null/x", _}}, atoll_bench_csv:write("/dev/null/x", [{"a.csv", "a"}])).

files_are_written_into_a_directory_that_is_made_test() ->
    Dir = atoll_test_file:temporary("atoll-de-csv"),
    try
        ok = atoll_bench_csv:write(filename:join(Dir, "node"), [{"a.csv", "a\n"}]),
        ?assertEqual({ok, <<"a\n">>}, file:read_file(filename:join([Dir, "node", "a.csv"])))
    after
        file:del_dir_r(Dir)
    end.
