%% SPDX-License-Identifier: Apache-2.0
%% The overlay as a picture: well-formed, the same each time, and with everybody in it.
-module(atoll_sim_svg_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Two parts; c is paused, x is dead and still named by d, y and z are forgotten.
-define(PICTURE, #{
    a => {alive, [b, c]},
    b => {alive, [a, c]},
    c => {paused, [a, b]},
    d => {alive, [e, x]},
    e => {alive, [d]},
    x => {dead, []},
    y => {dead, []},
    z => {dead, []}
}).

the_legend_counts_test() ->
    Texts = texts(svg(?PICTURE)),
    [
        ?assert(lists:member(Text, Texts), {Text, Texts})
     || Text <- [
            "hyparview at 12.345 s, seed 7",
            "5 alive, 5 links, 60.0 % connected",
            "3 nodes in the largest part",
            "1 island",
            "1 paused",
            "3 dead",
            "1 link known at one end",
            "dead and named by nobody: 2"
        ]
    ].

everybody_is_there_once_test() ->
    Classes = fun(Class) -> length([C || {circle, #{class := C}} <- tags(svg(?PICTURE)), C =:= Class]) end,
    %% One of each is in the legend.
    ?assertEqual(2 + 1, Classes("main")),
    ?assertEqual(1 + 1, Classes("main paused")),
    ?assertEqual(2 + 1, Classes("isle0")),
    ?assertEqual(3 + 1, Classes("dead")).

names_stand_beside_few_test() ->
    Names = fun(N) -> length([C || {text, #{class := "name"} = C} <- tags(svg(ring(N)))]) end,
    ?assertEqual(60, Names(60)),
    ?assertEqual(0, Names(61)).

nobody_is_a_picture_too_test() ->
    ?assert(lists:member("0 alive, 0 links, 100 % connected", texts(svg(#{})))).

one_node_stands_in_the_frame_test() ->
    inside(svg(#{a => {alive, []}})).

all_is_in_the_frame_test_() ->
    {timeout, 60, [?_test(inside(svg(Picture))) || Picture <- [?PICTURE, ring(100), ring(1000)]]}.

names_are_escaped_test() ->
    svg(#{'<a&"b>' => {alive, []}, '\x{e9}\x{3b1}@h' => {alive, ['<a&"b>']}}).

four_hundred_nodes_take_seconds_at_most_test_() ->
    {timeout, 60, fun() ->
        {Us, _} = timer:tc(fun() -> svg(ring(400)) end),
        ?assert(Us < 15000000, Us)
    end}.

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_same_bytes(), 30).

%% The same picture gives the same bytes, however its map was made, and it is XML.
prop_same_bytes() ->
    ?FORALL(
        Nodes,
        list({choose(1, 30), oneof([alive, alive, paused, dead]), list(choose(1, 30))}),
        begin
            Pairs = [
                {N, {name(N), {Status, [name(P) || Status =/= dead, P <- lists:usort(Peers), P =/= N]}}}
             || {N, Status, Peers} <- Nodes
            ],
            Unique = [Pair || {_, Pair} <- lists:ukeysort(1, Pairs)],
            svg(maps:from_list(Unique)) =:= svg(maps:from_list(lists:reverse(Unique)))
        end
    ).

ring(Count) ->
    maps:from_list([
        {name(N), {alive, [name((N + D - 1) rem Count + 1) || D <- [1, Count - 1]]}}
     || N <- lists:seq(1, Count)
    ]).

name(N) -> list_to_atom("n" ++ integer_to_list(N)).

%% The text, which must be XML.
svg(Picture) ->
    Svg = iolist_to_binary(
        atoll_sim_svg:svg(#{strategy => hyparview, seed => 7, nodes => map_size(Picture)}, 12345, Picture)
    ),
    {ok, _, _} = xmerl_sax_parser:stream(Svg, []),
    Svg.

tags(Svg) ->
    {ok, Found, _} = xmerl_sax_parser:stream(Svg, [
        {event_state, []},
        {event_fun, fun
            ({startElement, _, Name, _, Attributes}, _, Found) ->
                Map = maps:from_list([{list_to_atom(Key), Value} || {_, _, Key, Value} <- Attributes]),
                [{list_to_atom(Name), Map} | Found];
            (_, _, Found) ->
                Found
        end}
    ]),
    Found.

texts(Svg) ->
    {ok, Found, _} = xmerl_sax_parser:stream(Svg, [
        {event_state, []},
        {event_fun, fun
            ({characters, Text}, _, Found) -> [Text | Found];
            (_, _, Found) -> Found
        end}
    ]),
    Found.

inside(Svg) ->
    [#{width := Width, height := Height}] = [A || {svg, A} <- tags(Svg)],
    Inside = fun(Value, Size) -> list_to_float(Value) >= 0 andalso list_to_float(Value) =< list_to_integer(Size) end,
    Circles = [{X, Y} || {circle, #{cx := X, cy := Y}} <- tags(Svg), lists:member($., X)],
    ?assert(Circles =/= []),
    ?assertEqual([], [C || {X, Y} = C <- Circles, not (Inside(X, Width) andalso Inside(Y, Height))]).
