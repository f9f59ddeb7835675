%% SPDX-License-Identifier: Apache-2.0
%% Terms as text that is the same everywhere.
-module(atoll_sim_term_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

maps_are_in_the_order_of_their_keys_texts_test() ->
    ?assertEqual("#{1=>{},a=>#{x=>1,y=>2},z=>b}", text(#{z => b, a => #{y => 2, x => 1}, 1 => {}})).

one_line_test() ->
    ?assertEqual(nomatch, string:find(text({"a\nb", <<"c\nd">>, 'e\nf', "\x{2028}"}), "\n")).

what_cannot_be_read_back_is_a_string_test() ->
    ?assertMatch([$" | _], text(self())).

people_count_so_test() ->
    Sort = fun(Names) -> lists:sort(fun(A, B) -> atoll_sim_term:natural(A) =< atoll_sim_term:natural(B) end, Names) end,
    ?assertEqual([n1, n2, n10, n10@b, x], Sort([n10@b, n10, x, n2, n1])).

text(Term) ->
    binary_to_list(iolist_to_binary(atoll_sim_term:text(Term))).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_read_back(), 500).

%% What was written is read back.
prop_read_back() ->
    ?FORALL(Seed, integer(), begin
        {Term, _} = a_term(4, rand:seed_s(exsss, Seed)),
        Text = unicode:characters_to_list(iolist_to_binary([atoll_sim_term:text(Term), $.])),
        {ok, Tokens, _} = erl_scan:string(Text),
        {ok, Term} =:= erl_parse:parse_term(Tokens)
    end).

%% Drawn without PropEr's generators, which are slow for terms in terms. No bit
%% strings: they are not written for reading.
a_term(Depth, Rand0) ->
    {Kind, Rand1} = rand:uniform_s(min(Depth, 1) * 5 + 5, Rand0),
    {N, Rand2} = rand:uniform_s(1000, Rand1),
    case Kind of
        1 -> {N - 500, Rand2};
        2 -> {N / 7 - 70, Rand2};
        3 -> {list_to_atom([N]), Rand2};
        4 -> {lists:nth(N rem 4 + 1, ['after', '', aB_1@c, 'Ab']), Rand2};
        5 -> {lists:nth(N rem 4 + 1, [<<"a\"b">>, <<>>, <<"plain">>, <<255, 10>>]), Rand2};
        6 -> {lists:seq(N, N + N rem 30), Rand2};
        7 -> terms(N rem 5, Depth, Rand2, fun list_to_tuple/1);
        8 -> terms(N rem 5, Depth, Rand2, fun(Terms) -> maps:from_list(lists:zip(Terms, lists:reverse(Terms))) end);
        9 -> terms(N rem 5, Depth, Rand2, fun(Terms) -> Terms ++ Terms end);
        10 -> terms(N rem 5 + 1, Depth, Rand2, fun(Terms) -> Terms ++ improper end)
    end.

terms(Count, Depth, Rand0, Make) ->
    {Terms, Rand} = lists:mapfoldl(fun(_, R) -> a_term(Depth - 1, R) end, Rand0, lists:seq(1, Count)),
    {Make(Terms), Rand}.
