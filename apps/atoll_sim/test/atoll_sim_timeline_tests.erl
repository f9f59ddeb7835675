%% SPDX-License-Identifier: Apache-2.0
%% The time line: one a line when they are few, counted in spans when they are many.
-module(atoll_sim_timeline_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HEADER, #{repeat => "bin/atoll sim run a.script --seed 7", seed => 7, nodes => 2, strategy => mesh}).

few_events_stand_one_a_line_test() ->
    Events = [
        {0, n1, {started, 1}},
        {12, n1, {neighbour_up, n2}},
        {1000, world, {fault, {kill, n2}}},
        {1000, n2, killed},
        {61003, n1, {dead, n2, 1}}
    ],
    ?assertEqual(
        [
            "trace   mesh, 2 nodes, seed 7",
            "repeat  bin/atoll sim run a.script --seed 7",
            "shows   5 events",
            "",
            "    time s  node  what",
            "     0.000  n1    started, incarnation 1",
            "     0.012  n1    + neighbour n2",
            "     1.000  ==== {kill,n2} ====",
            "     1.000  n2    killed",
            "    61.003  n1    declares n2 dead, incarnation 1"
        ],
        lines(Events, #{})
    ).

a_part_of_it_test() ->
    Events = [{T, n1, {neighbour_up, P}} || {T, P} <- [{1, a}, {2, b}, {3, n2}]] ++ [{4, n2, paused}, {5, n3, paused}],
    ?assertMatch(
        [_, _, "shows   2 of 5 events, from 0.002 s, to 0.004 s, of n2", "", _, "     0.003  n1    + neighbour n2",
            "     0.004  n2    paused"],
        lines(Events, #{from => 2, to => 4, node => n2})
    ).

many_events_are_counted_test() ->
    Ups = [{100 + T, n1, {neighbour_up, n2}} || T <- lists:seq(0, 1999)],
    Events = [{0, n1, {started, 1}}, {0, n2, {started, 1}} | Ups] ++
        [{2100, world, {fault, {kill, n2}}}, {2100, n2, killed}, {2101, n2, {started, 2}}],
    ?assertEqual(
        [
            "    from s          to   alive   events",
            "     0.000       0.499       2      402 ██████▍   2 started, 400 +neighbour",
            "     0.500       0.999       2      500 ████████  500 +neighbour",
            "     1.000       1.499       2      500 ████████  500 +neighbour",
            "     1.500       1.999       2      500 ████████  500 +neighbour",
            "     2.000       2.099       2      100 █▋        100 +neighbour",
            "     2.100  ==== {kill,n2} ====",
            "     2.100       2.101       2        2 ▏         1 restarted, 1 killed"
        ],
        lists:nthtail(4, lines(Events, #{lines => 5}))
    ).

nothing_is_shown_of_nothing_test() ->
    ?assertMatch([_, _, "shows   0 events", "", "    time s  node  what"], lines([], #{})).

a_header_may_say_nothing_test() ->
    ?assertMatch(<<"trace   of something\n", _/binary>>, unicode:characters_to_binary(atoll_sim_timeline:text(#{}, [], #{}))).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_bounded(), 200).

%% Never much longer or wider than asked for, and every event is counted.
prop_bounded() ->
    ?FORALL({Steps, Lines}, {list({choose(0, 2000), what()}), choose(5, 30)}, begin
        {Events, _} = lists:mapfoldl(fun({Ms, What}, T) -> {event(T + Ms, What), T + Ms} end, 0, Steps ++ Steps ++ Steps),
        Faults = length([F || {_, _, {fault, F}} <- Events]),
        Text = lines(Events, #{lines => Lines}),
        Rows = [string:lexemes(Row, " ") || Row <- lists:nthtail(min(5, length(Text)), Text)],
        Counted = lists:sum([list_to_integer(N) || [From, _, _, N | _] = Row <- Rows, number(From), number(lists:nth(2, Row))]),
        lists:all(fun(Line) -> length(Line) =< 100 end, Text) andalso
            case length(Events) =< Lines of
                true -> length(Rows) =:= length(Events);
                %% A step adds its own line and ends a span; words may wrap once or twice.
                false -> Counted =:= length(Events) - Faults andalso length(Rows) =< 3 * (max(5, Lines) + 2 + 2 * Faults)
            end
    end).

number(Word) -> string:to_float(Word) =/= {error, no_float}.

event(Ms, {fault, _} = Fault) -> {Ms, world, Fault};
event(Ms, What) -> {Ms, n1, What}.

what() ->
    frequency([
        {1, {fault, {kill, lists:seq(1000, 1100)}}},
        {9, oneof([killed, {started, 1}, {neighbour_up, n2}, {link_down, n3}, {suspect, n2}, {sent, n2, lists:duplicate(200, x)}])}
    ]).

lines(Events, Options) ->
    Text = unicode:characters_to_list(atoll_sim_timeline:text(?HEADER, Events, Options)),
    string:split(string:trim(Text, trailing, "\n"), "\n", all).
