%% SPDX-License-Identifier: Apache-2.0
%% The protocol of attributes, event by event: bounds, deadlines, and what peers may send.
%% {@link atoll_sim_attr_tests} has several nodes.
-module(atoll_attr_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SLOW, {slow, {dynamic, {m, slow}}}).
-define(KEY, {dynamic, {m, slow, []}}).

new(Options, Definitions) ->
    {State, []} = atoll_attr_core:init(
        #{self => me, incarnation => 1000, seed => 1, options => Options, definitions => Definitions}, 0
    ),
    State.

do(Event, State) -> do(Event, 0, State).
do(Event, Now, State) -> atoll_attr_core:handle(Event, Now, State).

ask(Nodes, Names) -> ask(Nodes, Names, 0).
ask(Nodes, Names, MaxAge) ->
    {ask, #{nodes => Nodes, names => Names, predicate => atoll_predicate:any(), ms => 500, max_age => MaxAge}}.

choose(Nodes) ->
    {choose, #{tiers => [Nodes], predicate => atoll_predicate:any(), names => [], ms => 500}}.

up(Node, State0) ->
    {State, []} = do({up, Node}, State0),
    State.

a_connected_node_is_asked_and_another_connected_first_test() ->
    S0 = up(b, new(#{}, [])),
    {S1, Effects} = do({call, from, ask([b, c], [x])}, S0),
    ?assertEqual([{timer, {asked, 1000}, 500}, {send, b, {1, {ask, 1000, [x], 500}}}, {want, c}], Effects),
    {S2, Sent} = do({up, c}, S1),
    ?assertEqual([{send, c, {1, {ask, 1000, [x], 500}}}], Sent),
    {S3, []} = do({message, b, {1, {values, 1000, #{x => 1}}}}, S2),
    {_, Over} = do({message, c, {1, {values, 1000, #{x => 2}}}}, S3),
    ?assertEqual(
        [
            {unwant, c},
            {cancel, {asked, 1000}},
            {reply, from, {ok, #{answers => [{b, #{x => 1}, 0}, {c, #{x => 2}, 0}], silent => [], unreachable => []}}}
        ],
        Over
    ).

a_lost_connection_is_made_again_and_the_question_repeated_test() ->
    {S1, _} = do({call, from, ask([b], [x])}, up(b, new(#{}, []))),
    {S2, [{want, b}]} = do({down, b, lost}, S1),
    {S3, [{send, b, {1, {ask, 1000, [x], 500}}}]} = do({up, b}, S2),
    {_, [{unwant, b}, _, {reply, from, {ok, #{answers := [_]}}}]} = do({message, b, {1, {values, 1000, #{x => 1}}}}, S3).

what_waits_for_a_connection_goes_with_the_time_that_is_left_test() ->
    {S1, [_, {want, b}]} = do({call, from, ask([b], [x])}, 1000, new(#{}, [])),
    {S2, Asked} = do({up, b}, 1300, S1),
    ?assertEqual([{send, b, {1, {ask, 1000, [x], 200}}}], Asked),
    %% Lost and made again at the very end: there is no use in it.
    {S3, _} = do({down, b, lost}, 1400, S2),
    ?assertMatch({_, []}, do({up, b}, 1500, S3)),
    %% A claim has the time of its step.
    {C1, [_, {timer, {step, 1000}, 250}, {want, b}]} = do({call, f, choose([b])}, 1000, new(#{}, [])),
    ?assertMatch({_, [{send, b, {1, {claim, 1000, [], 150}}}]}, do({up, b}, 1100, C1)).

only_what_was_asked_for_is_taken_and_in_its_bound_test() ->
    S0 = up(b, new(#{max_value => 100}, [])),
    {S1, _} = do({call, from, ask([b], [x, y, z], 1000)}, S0),
    Given = #{x => 1, y => lists:seq(1, 1000), other => 2, "no name" => 3},
    Taken = #{x => 1, y => undefined, z => undefined},
    {S2, Effects} = do({message, b, {1, {values, 1000, Given}}}, S1),
    ?assertMatch([{ok, #{answers := [{b, Taken, 0}]}}], [A || {reply, from, A} <- Effects]),
    %% And nothing else is remembered.
    {_, Known} = do({call, from, ask([b], [x, y], 1000)}, S2),
    ?assertEqual([{ok, #{answers => [{b, maps:remove(z, Taken), 0}], silent => [], unreachable => []}}], [A || {reply, from, A} <- Known]),
    [{_, [_, {send, b, _} | _]} = do({call, from, ask([b], [Name], 1000)}, S2) || Name <- [z, other]],
    %% So too of the node that is claimed.
    Choose = {choose, #{tiers => [[b]], predicate => atoll_predicate:any(), names => [x, y], ms => 500}},
    {C1, [_, _, {send, b, {1, {claim, 1000, [x, y], _}}}]} = do({call, f, Choose}, S0),
    {_, Chosen} = do({message, b, {1, {place, 1000, 1, Given}}}, C1),
    ?assertEqual([{ok, b, 1, #{x => 1, y => undefined}}], [A || {reply, f, A} <- Chosen]).

rows_that_no_node_could_have_are_not_kept_test() ->
    Rows = [
        {c, 1, 0, #{x => 1}},
        {d, 1, 0, #{x => lists:seq(1, 1000)}},
        {e, 1, 0, #{x => 1, y => 2, z => 3}},
        {f, 1, 0, #{"x" => 1}}
    ],
    {State, _} = do({message, b, {1, {gossip, [], Rows}}}, up(b, new(#{max_value => 100, max_interests => 2}, []))),
    ?assertMatch(#{gossip := #{rows := 1, rows_heard := 1, odd := 3}}, summary(State)).

an_answer_to_another_question_is_none_test() ->
    {S1, [_, Timer, _Claim]} = do({call, f, choose([b])}, up(b, new(#{}, []))),
    ?assertMatch({timer, {step, 1000}, _}, Timer),
    %% It was asked to enter it in line, and says how long the line is.
    {S2, []} = do({message, b, {1, {line, 1000, none, 0}}}, S1),
    {_, Chosen} = do({message, b, {1, {place, 1000, 1, #{}}}}, S2),
    ?assertEqual([{ok, b, 1, #{}}], [A || {reply, f, A} <- Chosen]).

a_claim_that_was_sent_twice_stays_where_the_choice_fell_test() ->
    {S1, _} = do({call, f, choose([b])}, up(b, new(#{}, []))),
    {S2, _} = do({down, b, lost}, S1),
    {S3, [{send, b, {1, {claim, 1000, [], _}}}]} = do({up, b}, S2),
    {S4, Chosen} = do({message, b, {1, {place, 1000, 1, #{}}}}, S3),
    ?assertMatch([{ok, b, 1, _}], [A || {reply, f, A} <- Chosen]),
    {S5, []} = do({message, b, {1, {place, 1000, 1, #{}}}}, S4),
    %% Nobody else's.
    ?assertMatch({_, [{send, c, {1, {leave, 1000}}}]}, do({message, c, {1, {place, 1000, 1, #{}}}}, S5)).

at_the_deadline_everything_is_given_back_test() ->
    {S1, _} = do({call, from, ask([b, c], [x])}, up(b, new(#{}, []))),
    {S2, Effects} = do({timeout, {asked, 1000}}, S1),
    ?assertEqual([{unwant, c}, {reply, from, {ok, #{answers => [], silent => [b, c], unreachable => []}}}], Effects),
    %% Late answers, and what is heard of connections.
    {S3, []} = do({message, b, {1, {values, 1000, #{x => 1}}}}, S2),
    {S4, []} = do({cast, {unreachable, c}}, S3),
    {_, []} = do({up, c}, S4).

two_questions_want_a_connection_once_test() ->
    {S1, [_, {want, b}]} = do({call, one, ask([b], [x])}, new(#{}, [])),
    {S2, [_]} = do({call, two, ask([b], [x])}, S1),
    {S3, [{reply, one, _}]} = do({timeout, {asked, 1000}}, S2),
    {_, [{unwant, b}, {reply, two, _}]} = do({timeout, {asked, 1001}}, S3).

a_question_of_a_peer_is_answered_before_its_time_is_over_test() ->
    {S1, Effects} = do({message, b, {1, {ask, 7, [slow, x], 500}}}, new(#{}, [?SLOW, {x, 1}])),
    ?assertMatch([{act, {evaluate, ?KEY, _}}, {timer, {evaluation, ?KEY}, 200}, {timer, {question, 1}, 450}], Effects),
    {_, Late} = do({timeout, {question, 1}}, S1),
    ?assertEqual([{send, b, {1, {values, 7, #{x => 1}}}}], Late).

questions_at_once_share_an_evaluation_test() ->
    {S1, [_, _, _]} = do({message, b, {1, {ask, 7, [slow], 500}}}, new(#{}, [?SLOW])),
    {S2, [{timer, {question, 2}, 450}]} = do({message, c, {1, {ask, 8, [slow], 500}}}, S1),
    {S3, Effects} = do({cast, {evaluated, ?KEY, {ok, 5}}}, S2),
    ?assertEqual([{b, 7}, {c, 8}], [{To, Id} || {send, To, {1, {values, Id, #{slow := 5}}}} <- Effects]),
    %% And the next is evaluated anew.
    {_, [{act, {evaluate, ?KEY, _}} | _]} = do({message, b, {1, {ask, 9, [slow], 500}}}, S3).

an_evaluation_that_is_late_is_ended_for_all_test() ->
    {S1, _} = do({message, b, {1, {ask, 7, [slow], 5000}}}, new(#{}, [?SLOW])),
    {_, Effects} = do({timeout, {evaluation, ?KEY}}, S1),
    ?assertEqual(
        [{act, {abandon, ?KEY}}, {cancel, {question, 1}}, {send, b, {1, {values, 7, #{}}}}], Effects
    ),
    %% The node itself says that it has it.
    {L1, _} = do({call, from, {values, [slow, x], 500}}, new(#{}, [?SLOW, {x, 1}])),
    {_, Local} = do({timeout, {evaluation, ?KEY}}, L1),
    ?assertEqual([{ok, #{slow => undefined, x => 1}}], [A || {reply, from, A} <- Local]),
    %% What fails is undefined.
    {_, Failed} = do({cast, {evaluated, ?KEY, failed}}, S1),
    ?assertEqual([#{slow => undefined}], [Values || {send, b, {1, {values, 7, Values}}} <- Failed]).

%% Of a node that is busy it is not known whether it fits: it is named, and not passed over.
who_has_not_said_in_time_what_the_condition_takes_is_silent_test() ->
    {ok, Fits} = atoll_predicate:new("slow > 1 or x == 2"),
    Ask = {ask, #{nodes => [b, c, d, e, me], names => [slow, x], predicate => Fits, ms => 500, max_age => 1000}},
    Up = lists:foldl(fun up/2, new(#{}, [?SLOW, {x, 1}]), [b, c, d, e]),
    {Asked, _} = do({call, from, Ask}, Up),
    Said = [{b, #{x => 1}}, {c, #{x => 2}}, {d, #{x => 1, slow => undefined}}, {e, #{x => 1, slow => 3}}],
    Heard = lists:foldl(fun({Node, Values}, S) -> element(1, do({message, Node, {1, {values, 1000, Values}}}, S)) end, Asked, Said),
    {Answered, Effects} = do({timeout, {evaluation, ?KEY}}, Heard),
    ?assertEqual(
        [{ok, #{answers => [{c, #{x => 2, slow => undefined}, 0}, {e, #{x => 1, slow => 3}, 0}], silent => [b, me], unreachable => []}}],
        [A || {reply, from, A} <- Effects]
    ),
    %% What has not been said is not remembered either.
    {_, Again} = do({call, from, Ask}, Answered),
    ?assertEqual([b, c], [Node || {send, Node, {1, {ask, _, _, _}}} <- Again]).

bounds_hold_test() ->
    S0 = new(#{max_questions => 1, max_answers => 1, max_attributes => 2, max_value => 20}, [?SLOW]),
    {S1, [_ | _]} = do({call, one, ask([b], [x])}, S0),
    {S2, [{reply, two, {error, overloaded}}]} = do({call, two, ask([b], [x])}, S1),
    {S3, [{reply, two, {error, overloaded}}]} = do({call, two, choose([b])}, S2),
    {S4, [_, _, _]} = do({message, b, {1, {ask, 7, [slow], 500}}}, S3),
    {S5, [{send, c, {1, {values, 8, Nothing}}}]} = do({message, c, {1, {ask, 8, [slow], 500}}}, S4),
    ?assertEqual(#{}, Nothing),
    {S6, [{act, {keep, [_]}}, {reply, f, ok}]} = do({call, f, {insert, a, 1, permanent}}, S5),
    {S7, [{reply, f, {error, {too_many_attributes, 2}}}]} = do({call, f, {insert, b, 1, permanent}}, S6),
    {_, [{reply, f, {error, {value_too_large, _, 20}}}]} = do({call, f, {update, a, lists:seq(1, 50)}}, S7).

what_is_loaded_has_its_bounds_too_test() ->
    S0 = new(#{max_attributes => 2, max_value => 100}, [{a, 1}]),
    Long = lists:seq(1, 1000),
    [
        begin
            {State, Effects} = do({call, f, {load, Definitions}}, S0),
            ?assertEqual([{reply, f, {error, {book, Error}}}], Effects),
            ?assertMatch(#{attributes := [{a, {static, 1}, configured}]}, summary(State))
        end
     || {Definitions, Error} <- [
            {[{b, 1}, {c, 1}, {d, 1}], {too_many, 3, 2}},
            {[{b, Long}], {too_large, b, erlang:external_size(Long), 100}}
        ]
    ],
    ?assertMatch({_, [{act, {keep, []}}, {reply, f, ok}]}, do({call, f, {load, [{b, 1}, {c, 1}]}}, S0)).

what_peers_send_harms_nobody_test() ->
    S0 = up(b, new(#{}, [])),
    lists:foldl(
        fun(Message, S) ->
            {Next, Effects} = do({message, b, Message}, S),
            ?assertEqual([], Effects, Message),
            Next
        end,
        S0,
        [
            rubbish, {2, new}, {1, rubbish}, {1, {ask, 1, [x | y], 5}}, {1, {ask, 1, ["x"], 5}}, {1, {ask, 1, [x], 0}},
            {1, {values, 1000, #{}}}, {1, {values, x, y}}, {1, {claim, 1, x, 5}}, {1, {claim, 1, [1], 5}}, {1, {place, 1, 0, #{}}},
            {1, {line, 1, x, 1}}, {1, {line, 1, 1, -1}}, {1, {leave, 7}}, {1, {gossip, x, y}}, {1, {gossip, [], [x | y]}}
        ]
    ).

what_fits_no_timer_and_no_bound_is_counted_and_not_taken_test() ->
    Odd = [
        {1, {ask, 1, [slow], 16#80000000}},
        {1, {ask, 1, [slow], 1 bsl 70}},
        {1, {claim, 1, [slow], 1 bsl 70}},
        {1, {ask, 1 bsl 64, [slow], 5}},
        {1, {claim, lists:seq(1, 1000), [slow], 5}},
        {1, {look, rubbish}},
        {1, {place, 1, 1 bsl 70, #{}}},
        {1, {line, 1, 0, 1}},
        {1, {line, 1, 1, 1 bsl 70}}
    ],
    S0 = up(b, new(#{}, [?SLOW])),
    State = lists:foldl(
        fun(Message, S) ->
            {Next, Effects} = do({message, b, Message}, S),
            ?assertEqual([], Effects, Message),
            Next
        end,
        S0,
        Odd
    ),
    ?assertEqual(length(Odd), maps:get(odd, maps:get(counts, summary(State)))),
    %% The longest time that there is.
    {_, Effects} = do({message, b, {1, {ask, 1, [slow], 16#7FFFFFFF}}}, S0),
    ?assertMatch([_, _, {timer, {question, _}, 16#7FFFFFCD}], Effects).

summary(State) ->
    {_, [{reply, me, Summary}]} = do({call, me, summary}, State),
    Summary.

a_place_that_nobody_waits_for_is_given_back_test() ->
    {S1, [_, {timer, {step, 1000}, 250}, {send, b, {1, {claim, 1000, [], 250}}}]} = do({call, f, choose([b])}, up(b, new(#{}, []))),
    {S2, [_, {reply, f, none}]} = do({timeout, {chosen, 1000}}, S1),
    ?assertMatch({_, [{send, b, {1, {leave, 1000}}}]}, do({message, b, {1, {place, 1000, 1, #{}}}}, S2)).

%% It has just said that it fits, and may only be slow to enter somebody in line.
who_fits_is_chosen_though_no_claim_is_answered_test() ->
    {choose, Wanted} = choose([b]),
    {S1, _} = do({call, f, {choose, Wanted#{fresh => true}}}, up(b, new(#{}, []))),
    {S2, [_, {reply, f, {ok, b, none, #{}}}]} = do({timeout, {chosen, 1000}}, S1),
    ?assertMatch(#{choices := 0}, summary(S2)),
    {_, Effects} = do({timeout, {step, 1000}}, S1),
    ?assertEqual([{ok, b, none, #{}}], [A || {reply, f, A} <- Effects]).

old_values_answer_without_a_question_test() ->
    {S1, _} = do({call, f, ask([b], [x], 1000)}, up(b, new(#{}, []))),
    {S2, _} = do({message, b, {1, {values, 1000, #{x => 1}}}}, 100, S1),
    {S3, Effects} = do({call, f, ask([b], [x], 1000)}, 600, S2),
    ?assertMatch([{reply, f, {ok, #{answers := [{b, #{x := 1}, 500}]}}}], [E || {reply, _, _} = E <- Effects]),
    ?assertEqual([], [E || {send, _, _} = E <- Effects]),
    %% It has become too old.
    {_, Later} = do({call, f, ask([b], [x], 1000)}, 1200, S3),
    ?assertMatch([{send, b, _}], [E || {send, _, _} = E <- Later]).
