%% SPDX-License-Identifier: Apache-2.0
-module(im_chat_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(S, {<<"a">>, <<"b">>}).

new() -> im_chat_table:new(#{max_sessions => 2, away_messages => 3}).

run(Ops) ->
    {Replies, _} = lists:mapfoldl(fun next/2, new(), Ops),
    Replies.

next(Op, T) ->
    case im_chat_table:apply(Op, T) of
        {Reply, unchanged} -> {Reply, T};
        {Reply, Next} -> {Reply, Next}
    end.

append(Inc, From, Seq) -> append(Inc, From, Seq, {0, 0}).

append(Inc, From, Seq, Delivered) -> {append, ?S, {Inc, self()}, From, Seq, <<"m", (integer_to_binary(Seq))/binary>>, none, Delivered}.

a_session_that_is_opened_again_keeps_its_incarnation_and_its_messages_test() ->
    ?assertMatch([{ok, #{inc := 5, ab := #{accepted := 0, kept := []}}}, ok,
                  {ok, #{inc := 5, finishing := false, ab := #{accepted := 1, delivered := 0, kept := [{1, <<"m1">>, none}]}, ba := #{accepted := 0}}}],
                 run([{open, ?S, self(), 5}, append(5, <<"a">>, 1), {open, ?S, self(), 6}])).

messages_are_taken_once_and_without_a_gap_test() ->
    ?assertMatch([_, ok, ok, {error, gap}, ok, {ok, #{ba := #{accepted := 2, kept := [{1, _, _}, {2, _, _}]}}}],
                 run([{open, ?S, self(), 5}, append(5, <<"b">>, 1), append(5, <<"b">>, 1), append(5, <<"b">>, 3), append(5, <<"b">>, 2), {peek, ?S}])).

a_direction_that_is_full_refuses_until_some_are_delivered_test() ->
    Full = [{open, ?S, self(), 5} | [append(5, <<"a">>, I) || I <- [1, 2, 3, 4]]],
    ?assertMatch([_, ok, ok, ok, {error, full}, ok, {ok, #{ab := #{accepted := 4, delivered := 1, kept := [{2, _, _}, _, {4, _, _}]}}}],
                 run(Full ++ [append(5, <<"a">>, 4, {1, 0}), {peek, ?S}])),
    ?assertMatch([_, ok, ok, ok, {error, full}, ok, ok, ok],
                 run(Full ++ [{delivered, ?S, {5, self()}, {1, 0}}, append(5, <<"a">>, 4), append(5, <<"b">>, 1)])).

another_incarnation_is_refused_test() ->
    ?assertMatch([_, {error, no_session}, {error, no_session}, {error, no_session}, ok, {ok, _}, ok, none, {error, no_session}],
                 run([{open, ?S, self(), 5}, append(4, <<"a">>, 1), {delivered, ?S, {4, self()}, {0, 0}}, {finishing, ?S, {4, self()}, true}, {remove, ?S, {4, self()}}, {peek, ?S},
                      {remove, ?S, {5, self()}}, {peek, ?S}, append(5, <<"a">>, 1)])).

that_the_end_was_asked_for_is_kept_until_it_is_taken_back_test() ->
    ?assertMatch([_, ok, {ok, #{finishing := true}}, ok, {ok, #{finishing := false}}],
                 run([{open, ?S, self(), 5}, {finishing, ?S, {5, self()}, true}, {open, ?S, self(), 6}, {finishing, ?S, {5, self()}, false}, {peek, ?S}])).

what_a_replaced_process_sends_late_is_refused_test() ->
    Late = [append(5, <<"a">>, 1), {delivered, ?S, {5, self()}, {0, 0}}, {finishing, ?S, {5, self()}, true}, {remove, ?S, {5, self()}}],
    ?assertMatch([_, _, Replaced, Replaced, Replaced, Replaced, {ok, #{finishing := false, ab := #{accepted := 0}}}] when Replaced =:= {error, replaced},
                 run([{open, ?S, self(), 5}, {open, ?S, c:pid(0, 99, 0), 6}] ++ Late ++ [{peek, ?S}])).

%% Against a list of all that was accepted: what is kept is what comes after what was delivered.
rows_keep_what_is_not_delivered_test_() ->
    atoll_prop:test(kept, ?FORALL(Steps, list({oneof([<<"a">>, <<"b">>]), range(1, 6), {range(0, 8), range(0, 8)}}), begin
        Ops = [{open, ?S, self(), 1} | [append(1, From, Seq, Delivered) || {From, Seq, Delivered} <- Steps]],
        {Replies, Table} = lists:mapfoldl(fun next/2, new(), Ops),
        {{ok, #{ab := AB, ba := BA}}, unchanged} = im_chat_table:apply({peek, ?S}, Table),
        lists:all(fun({Client, #{accepted := Accepted, delivered := Delivered, kept := Kept}}) ->
            Took = lists:usort([Seq || {ok, {append, _, _, From, Seq, _, _, _}} <- lists:zip(Replies, Ops), From =:= Client]),
            Took =:= lists:seq(1, Accepted) andalso [Seq || {Seq, _, _} <- Kept] =:= lists:seq(Delivered + 1, Accepted)
                andalso length(Kept) =< 3
        end, [{<<"a">>, AB}, {<<"b">>, BA}])
    end), 1000).
