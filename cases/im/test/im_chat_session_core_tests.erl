%% SPDX-License-Identifier: Apache-2.0
-module(im_chat_session_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(im_chat_session_world, [new/1, step/2, healed/1, verdict/1, sent/1]).

-define(A, <<"a">>).
-define(B, <<"b">>).

%%% Whatever happens

%% Of two clients that do not leave all that they say arrives, once and in order, and each is told that it did.
nothing_is_lost_twice_or_out_of_order_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_arrives(), 3000).

prop_arrives() -> ?FORALL(Steps, steps([]), all_arrived(played(Steps, #{}))).

%% Little is kept for who is away: what is refused is said again.
what_was_refused_arrives_later_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Steps, steps([]), all_arrived(played(Steps, #{away_messages => 3}))), 1000).

all_arrived(#{clients := #{?A := A, ?B := B}, info := Info} = Verdict) ->
    ?WHENFAIL(io:format(user, "~0tp~n", [Verdict]),
              lists:all(fun({#{said := Said, accepted := Accepted, delivered := Delivered, flight := Flight, faults := Faults, ended := Ended},
                             #{received := Received}}) ->
                  {Accepted, Delivered, Flight, Received, Faults, Ended} =:= {Said, Said, 0, bodies(Said), [], []}
              end, [{A, B}, {B, A}]) andalso maps:get(phase, Info) =:= open).

%% Clients come back as processes that know nothing. What any of them was told to be accepted arrives, and none
%% gets anything twice, out of order, or is told of what it has not said.
what_a_client_was_told_survives_it_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_survives(), 3000).

prop_survives() ->
    Forget = [{forget, ?A}, {forget, ?B}],
    ?FORALL(Steps, steps(Forget ++ Forget), all_owed_arrived(played(Steps, #{}))).

all_owed_arrived(#{clients := #{?A := A, ?B := B}} = Verdict) ->
    ?WHENFAIL(io:format(user, "~0tp~n", [Verdict]),
              lists:all(fun({#{owed := Owed, flight := Flight, faults := Faults, ended := Ended}, #{received := Received, before := Before}}) ->
                  Lives = [[binary_to_integer(Body) || Body <- Life] || Life <- [Received | Before]],
                  [Flight, Faults, Ended] =:= [0, [], []] andalso [binary_to_integer(Body) || Body <- Owed] -- lists:append(Lives) =:= []
                      andalso lists:all(fun(Life) -> Life =:= lists:usort(Life) end, Lives)
              end, [{A, B}, {B, A}])).

%% When one has finished, all that was accepted arrives before the end, which both are told; and no row is left.
a_conversation_ends_when_all_that_was_accepted_is_delivered_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_ends(), 3000).

prop_ends() ->
    Finish = [{finish, ?A}, {finish, ?B}],
    Chat = [{chat, ?A}, {chat, ?B}],
    ?FORALL({Steps, Who}, {steps(Finish ++ Chat), oneof(Finish)}, has_ended(played(Steps ++ [{finished, Who}], #{}))).

%% What a process had asked before it was killed came after what the next one asked, which ended then.
a_finish_that_was_lost_with_a_process_is_said_again_test() ->
    ?assertMatch(#{over := true, row := none}, played([kill, {arrive, 2}, sync, {arrive, 0}, delay, kill, {finished, {finish, ?A}}], #{})).

%% Each time that a client asks for a conversation that is over it is told so.
who_asks_again_after_the_end_is_told_each_time_test_() ->
    Removed = [{finish, ?A}, {arrive, 0}, {die, ?B}, {arrive, 0}, {arrive, 0}, {arrive, 0}, sync, {arrive, 1}, {arrive, 1}, {arrive, 1}, kill],
    atoll_prop:again(?FUNCTION_NAME, prop_ends(), [{Removed ++ [{back, ?B}, {arrive, 0}, {arrive, 0}, sync, {arrive, 1}], {finish, ?A}}]).

has_ended(#{clients := #{?A := A, ?B := B}, row := Row, rows := Rows, over := Over} = Verdict) ->
    ?WHENFAIL(io:format(user, "~0tp~n", [Verdict]),
              Over andalso Row =:= none andalso [[], []] =:= [Sessions || {_, Sessions} <- maps:values(Rows)]
              andalso lists:all(fun({#{said := Said, accepted := Accepted, faults := Faults, ended := Ended}, #{received := Received}}) ->
                  Faults =:= [] andalso Ended =/= [] andalso [Why || Why <- Ended, Why =/= expired] -- [finished, finished, finished] =:= [] andalso length(Received) >= Accepted
                  andalso length(Received) =< Said andalso Received =:= bodies(length(Received))
              end, [{A, B}, {B, A}])).

%% Who leaves gets no more of what was said to it. What comes is in order, and once; and either all is over or both may talk.
who_leaves_and_chats_again_gets_nothing_twice_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_leaves(), 3000).

prop_leaves() ->
    More = [{What, Who} || What <- [gone, finish, chat, chat], Who <- [?A, ?B]],
    ?FORALL(Steps, steps(More), has_settled(played(Steps, #{}))).

%% What was said to it before it left may be forgotten, while the other is away with what is for that one. The mark that the
%% conversation ends may come too late, or be lost.
who_has_left_gets_what_is_said_from_then_on_test_() ->
    Left = fun(More) -> [{say, ?A}, {arrive, 0}, {say, ?B}, {arrive, 0}, {die, ?B}, {arrive, 0}] ++ More ++ [{gone, ?B}] end,
    All = lists:append(lists:duplicate(3, lists:duplicate(9, {arrive, 0}) ++ [sync])),
    [
        atoll_prop:again(lists:concat([?FUNCTION_NAME, " ", Title]), prop_leaves(), [Steps])
     || {Title, Steps} <- [
            {late, Left([]) ++ [delay, {cut, ?A}, kill, {say, ?A}]},
            {lost, Left([sync]) ++ [failover, {cut, ?A}] ++ lists:duplicate(9, {arrive, 0}) ++ [kill, {say, ?A}]},
            {chat, Left([]) ++ [{cut, ?A}] ++ All ++ [{back, ?B}, {chat, ?B}] ++ All ++ [{back, ?A}] ++ All ++ [{say, ?A}]}
        ]
    ].

%% The word of the end was lost with a connection, and then the process. The next one knows of no end, and
%% what was not delivered must still be there (SEED=956078).
nothing_is_dropped_for_one_who_has_left_before_the_end_is_written_test() ->
    Steps = [{say, ?A}, {arrive, 0}, {say, ?B}, {arrive, 0}, {die, ?B}, {arrive, 0}, {gone, ?B}, delay, {cut, ?A}, kill, {say, ?A}],
    ?assertMatch(#{clients := #{?B := #{faults := [], received := [<<"1">>, <<"2">>]}}}, played(Steps, #{})).

has_settled(#{clients := Clients, info := Info, row := Row} = Verdict) ->
    ?WHENFAIL(io:format(user, "~0tp~n", [Verdict]),
              lists:all(fun(#{faults := Faults, received := Received}) ->
                  Numbers = [binary_to_integer(Body) || Body <- Received],
                  Faults =:= [] andalso Numbers =:= lists:usort(Numbers)
              end, maps:values(Clients))
              andalso case Info of
                          none -> Row =:= none;
                          #{phase := Phase, finishing := Finishing} -> {Phase, Finishing} =:= {open, false}
                      end).

bodies(N) -> [integer_to_binary(I) || I <- lists:seq(1, N)].

steps(More) ->
    list(frequency([{6, {say, client()}}, {20, {arrive, range(0, 9)}}, {8, sync}, {1, kill}, {1, delay}, {1, failover}, {1, {die, client()}},
                    {2, {back, client()}}, {1, {cut, client()}}, {3, {later, oneof([60, 300, 600, 1500])}}] ++ [{1, Step} || Step <- More])).

client() -> oneof([?A, ?B]).

%% A process that has ended has said hello, which comes after that of the one in its place.
a_late_hello_takes_no_client_its_place_test_() ->
    [
        atoll_prop:again(?FUNCTION_NAME, prop_arrives(), [[{cut, ?A}, {arrive, 0}, {back, ?A}, {say, ?B}, {arrive, 0}, {arrive, 1}, {die, ?A}, {arrive, 1}, {back, ?A}, {arrive, 1}, {arrive, 1}]]),
        atoll_prop:again(?FUNCTION_NAME, prop_survives(), [[{say, ?A}, {arrive, 0}, {say, ?B}, {cut, ?A}, {back, ?A}, {arrive, 2}, {forget, ?A}]]),
        atoll_prop:again(?FUNCTION_NAME, prop_ends(), [{[{cut, ?A}, {say, ?A}, {arrive, 0}, {chat, ?B}, {arrive, 0}, {die, ?B}, {back, ?B}, {arrive, 1}, {arrive, 1}], {finish, ?A}}])
    ].

%% It has asked for the row, and is killed: when that comes the next one has had the row removed.
a_row_that_was_removed_is_not_made_again_by_who_went_on_from_it_test_() ->
    Killed = [{finish, ?A}, {arrive, 0}, {arrive, 0}, {arrive, 0}, sync, kill, {arrive, 3}, sync, {arrive, 0}, delay, kill],
    atoll_prop:again(?FUNCTION_NAME, prop_ends(), [{Killed, {finish, ?A}}]).

%% As long as it takes until both have heard of the conversation, before the rest.
played(Steps, Options) ->
    verdict(healed(lists:foldl(fun({finished, Step}, W) -> said_again(Step, healed(W)); (Step, W) -> step(Step, W) end,
                               begun(Options), Steps))).

%% A client that has finished says so to each process that takes the place of the one to which it has said so.
said_again(Step, W) ->
    #{process := Told} = verdict(W),
    Next = healed(step(Step, W)),
    case verdict(Next) of
        #{over := false, process := Other} when Other =/= Told -> said_again(Step, Next);
        #{} -> Next
    end.

begun(Options) -> arrive(new(Options)).

%%% Single promises

a_message_costs_five_of_the_session_and_no_word_of_its_acceptance_test() ->
    Before = sent(begun(#{})),
    W = healed(step({say, ?A}, begun(#{}))),
    ?assertEqual(#{message => 1, delivered => 1}, maps:filter(fun(_, N) -> N > 0 end, maps:map(fun(What, N) -> N - maps:get(What, Before, 0) end, sent(W)))).

%% What a process of the conversation has given to the database before it was killed comes after the next has
%% begun, and after a client has come back that has not said it.
a_late_message_of_a_killed_session_takes_no_number_of_another_test() ->
    Late = lists:foldl(fun(Step, W) -> step(Step, W) end, begun(#{}), [{die, ?B}, {say, ?A}, {arrive, 0}, delay, {forget, ?A}, kill, {back, ?A}]),
    Said = arrive(step({say, ?A}, arrive(Late))),
    ?assertMatch(#{clients := #{?A := #{owed := [<<"2">>]}}}, verdict(Said)),
    ?assertMatch(#{clients := #{?B := #{received := [<<"2">>]}}}, verdict(healed(step(kill, Said)))).

a_sender_whose_receiver_is_away_is_told_at_once_test() ->
    W = arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{}))))),
    ?assertMatch(#{clients := #{?A := #{accepted := 1, delivered := 0, presence := away}}}, verdict(W)).

what_is_kept_for_somebody_who_is_away_comes_in_order_test() ->
    Said = lists:foldl(fun(_, W) -> arrive(step({say, ?A}, W)) end, arrive(step({die, ?B}, begun(#{}))), lists:seq(1, 40)),
    ?assertMatch(#{clients := #{?B := #{received := []}}}, verdict(Said)),
    #{clients := #{?A := #{delivered := 40, presence := online}, ?B := #{received := Received}}} = verdict(healed(Said)),
    ?assertEqual(bodies(40), Received).

no_more_is_kept_than_may_be_and_the_sender_is_told_test() ->
    W = lists:foldl(fun(_, Acc) -> arrive(step({say, ?A}, Acc)) end, arrive(step({die, ?B}, begun(#{away_messages => 3}))), lists:seq(1, 5)),
    ?assertMatch(#{clients := #{?A := #{accepted := 3, refused := 1}}}, verdict(W)),
    ?assertMatch(#{clients := #{?A := #{delivered := 5}}}, verdict(healed(W))).

a_finish_waits_for_what_is_not_delivered_test() ->
    W = arrive(step({finish, ?A}, arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{}))))))),
    ?assertMatch(#{over := false, clients := #{?A := #{ended := []}}}, verdict(W)),
    ?assertMatch(#{over := false, info := #{finishing := finished}}, verdict(arrive(step(kill, W)))),
    Back = healed(W),
    ?assertMatch(#{over := true, row := none, clients := #{?A := #{ended := [finished]}, ?B := #{ended := [finished], received := [<<"1">>]}}}, verdict(Back)).

who_chats_again_with_somebody_away_goes_on_test_() ->
    Finished = fun() -> arrive(step({finish, ?A}, arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{}))))))) end,
    [begin
         Again = lists:foldl(fun(Step, W) -> arrive(step(Step, W)) end, Finished(), Steps ++ [{say, ?A}]),
         {lists:flatten(io_lib:format("~p", [Steps])),
          ?_assertMatch(#{over := false, info := #{phase := open, finishing := false}, clients := #{?A := #{delivered := 2, ended := []}, ?B := #{received := [<<"1">>, <<"2">>]}}},
                        verdict(healed(Again)))}
     end || Steps <- [[{chat, ?A}], [kill, {chat, ?A}], [{chat, ?A}, kill]]].

%% The new process hears of the chat while it looks at the row.
a_chat_goes_on_in_the_next_process_test() ->
    W = step(kill, arrive(step({finish, ?A}, arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{})))))))),
    ?assertMatch(#{over := false, info := #{finishing := false}}, verdict(healed(step({chat, ?A}, W)))).

%% It has logged out, and what it said waits for the other.
who_has_left_may_chat_again_before_the_end_test() ->
    W = arrive(step({gone, ?B}, arrive(step({say, ?B}, arrive(step({die, ?A}, begun(#{}))))))),
    Again = arrive(step({say, ?B}, arrive(step({chat, ?B}, W)))),
    ?assertMatch(#{rows := #{?B := {_, [_]}}, clients := #{?B := #{accepted := 2}}}, verdict(Again)),
    ?assertMatch(#{over := false, info := #{phase := open, finishing := false}, clients := #{?A := #{received := [<<"1">>, <<"2">>], ended := []}}}, verdict(healed(Again))).

nobody_chats_again_with_who_has_left_test() ->
    W = step({chat, ?A}, arrive(step({gone, ?B}, arrive(step({say, ?B}, arrive(step({cut, ?A}, begun(#{})))))))),
    ?assertMatch(#{info := #{phase := open, finishing := finished}}, verdict(W)),
    ?assertMatch(#{over := true, row := none, clients := #{?A := #{received := [<<"1">>], ended := [finished]}}}, verdict(healed(W))).

who_is_gone_for_good_is_waited_for_no_longer_test() ->
    W = arrive(step({gone, ?B}, arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{}))))))),
    ?assertMatch(#{over := true, row := none, clients := #{?A := #{accepted := 1, ended := [finished]}}}, verdict(W)).

who_logs_out_still_says_what_it_has_and_what_it_said_is_kept_test() ->
    Said = arrive(step({say, ?B}, arrive(step({die, ?A}, begun(#{}))))),
    W = arrive(step({gone, ?B}, Said)),
    #{over := false, rows := #{?B := {_, []}}} = verdict(W),
    ?assertMatch(#{over := true, clients := #{?A := #{received := [<<"1">>]}}}, verdict(healed(W))).

a_conversation_in_which_nobody_says_anything_ends_test() ->
    W = arrive(step({say, ?A}, begun(#{idle_ms => 10_000}))),
    ?assertMatch(#{over := false}, verdict(arrive(step({later, 9_000}, arrive(step({later, 600}, W)))))),
    ?assertMatch(#{over := true, row := none, clients := #{?A := #{ended := [idle]}}}, verdict(arrive(late(30_000, W)))).

who_is_away_for_too_long_is_missed_even_if_nobody_says_so_test() ->
    W = arrive(step({say, ?A}, arrive(step({die, ?B}, begun(#{away_ms => 10_000, idle_ms => 5_000}))))),
    ?assertMatch(#{over := false}, verdict(arrive(late(60_000, W)))),
    ?assertMatch(#{over := true, clients := #{?A := #{ended := [expired]}}}, verdict(arrive(late(20_000, late(60_000, W))))).

late(Ms, W) -> lists:foldl(fun(_, Acc) -> arrive(step({later, 500}, Acc)) end, W, lists:seq(1, Ms div 500)).

nobody_talks_with_who_is_not_there_test() ->
    #{over := true, row := none, rows := Rows, clients := #{?A := A}} = verdict(arrive(new(#{logged_in => [?A]}))),
    ?assertMatch(#{faults := [receiver_not_found], ended := []}, A),
    ?assertMatch(#{?A := {_, []}}, Rows).

%% Nothing is under way: the next look is when it is idle.
at_rest_there_is_one_timer_for_long_test() ->
    #{beat_in := In} = verdict(late(3_000, arrive(step({say, ?A}, begun(#{}))))),
    ?assert(In > 100_000).

arrive(W) -> im_chat_session_world:arrived(W).

%%% What the world does not do

a_gap_that_is_there_again_after_a_hello_ends_the_conversation_test() ->
    {Core, Pid} = open_core(),
    {Gap, []} = handle({say, ?A, 3, <<"3">>, meta, Pid}, Core),
    {Greeted, _} = handle({hello, ?A, Pid, 0}, Gap),
    {_, Effects} = handle({say, ?A, 3, <<"3">>, meta, Pid}, Greeted),
    ?assertMatch([{ask, {client, ?A}, {leave, 1}, _}, {ask, {client, ?B}, {leave, 2}, _}], [E || {ask, _, _, _} = E <- Effects]),
    {Filled, _} = handle({say, ?A, 1, <<"1">>, meta, Pid}, Greeted),
    ?assertMatch({_, []}, handle({say, ?A, 3, <<"3">>, meta, Pid}, Filled)).

who_has_more_than_the_database_ends_it_test() ->
    {Core, Pid} = open_core(),
    {Lost, _} = handle({hello, ?A, Pid, 7}, Core),
    ?assertMatch(#{phase := closing, finishing := lost}, im_chat_session_core:info(Lost)).

too_long_a_message_is_refused_and_what_follows_waits_for_it_test() ->
    {Core, Pid} = open_core(),
    Self = self(),
    {Refused, [{send, Pid, {im, refused, {?A, ?B}, 1, 1, too_long}}]} = handle({say, ?A, 1, <<"longer than ten">>, meta, Pid}, Core),
    {Waits, []} = handle({say, ?A, 2, <<"2">>, meta, Pid}, Refused),
    {Still, []} = handle({say, ?A, 3, <<"3">>, meta, Pid}, Waits),
    ?assertMatch({_, [{ask, chat, {1, 0, 1}, {append, {?A, ?B}, {1, Self}, ?A, 1, <<>>, meta, {0, 0}}} | _]}, handle({say, ?A, 1, <<>>, meta, Pid}, Still)).

a_client_has_so_many_messages_that_are_not_accepted_test() ->
    {Core, Pid} = open_core(),
    Full = lists:foldl(fun(Seq, Acc) -> {Next, [{ask, chat, _, _} | _]} = handle({say, ?A, Seq, <<>>, meta, Pid}, Acc), Next end, Core, lists:seq(1, 64)),
    ?assertMatch({_, []}, handle({say, ?A, 65, <<>>, meta, Pid}, Full)).

what_another_process_of_the_client_says_is_dropped_test() ->
    {Core, _} = open_core(),
    ?assertMatch({_, []}, handle({say, ?A, 1, <<>>, meta, c:pid(0, 99, 0)}, Core)).

who_has_left_and_is_not_there_to_chat_again_ends_nothing_test() ->
    {Core, A} = open_core(),
    B = c:pid(0, 102, 0),
    {Waits, _} = lists:foldl(fun(Event, {Acc, _}) -> handle(Event, Acc) end, {Core, []},
        [{hello, ?B, B, 0}, {say, ?B, 1, <<"1">>, meta, B}, {db, {2, 0, 1}, ok}, {down, 1, A}, {gone, ?B, finished}, {db, {leave, 2}, ok}]),
    {Joins, [{ask, {client, ?B}, {join, 2}, _} | _]} = handle({ask, chat, ?B, c:pid(0, 103, 0)}, Waits),
    {Still, _} = handle({db, {join, 2}, {error, receiver_not_found}}, Joins),
    ?assertMatch(#{phase := open, finishing := finished}, im_chat_session_core:info(Still)).

%% A process of the session that is still there elsewhere ends first.
one_process_ends_before_the_next_begins_test() ->
    Old = c:pid(0, 50, 0),
    {New, _} = im_chat_session_core:new(config(), 0),
    {Waits, [{replace, Old} | _]} = handle({db, peek, {ok, #{pid => Old}}}, New),
    {_, [{kill, Old} | _]} = im_chat_session_core:handle(beat, 2000, Waits),
    ?assertMatch({_, [{ask, chat, open, {open, _, _, 1}} | _]}, handle({down, before, Old}, Waits)).

a_database_that_cannot_just_now_is_asked_again_test() ->
    {Core, Pid} = open_core(),
    {Said, _} = handle({say, ?A, 1, <<"1">>, meta, Pid}, Core),
    {Waits, [{beat, 50}]} = handle({db, {1, 0, 1}, not_main}, Said),
    ?assertMatch({_, [{ask, chat, {1, 1, 1}, {append, _, {1, _}, ?A, 1, <<"1">>, meta, {0, 0}}} | _]}, im_chat_session_core:handle(beat, 60, Waits)).

what_a_database_had_that_is_down_is_said_to_the_next_one_soon_test() ->
    {Core, Pid} = open_core(),
    {Said, _} = handle({say, ?A, 1, <<"1">>, meta, Pid}, Core),
    {Waits, [{beat, 50}]} = handle(no_main, Said),
    ?assertMatch({_, [{ask, chat, {1, 1, 1}, {append, _, {1, _}, ?A, 1, <<"1">>, meta, {0, 0}}} | _]}, im_chat_session_core:handle(beat, 60, Waits)).

handle(Event, Core) -> im_chat_session_core:handle(Event, 0, Core).

config() ->
    #{session => {?A, ?B}, self => self(), inc => 1, mode => new, away_ms => 1000, away_messages => 1000, idle_ms => 100_000, max_body => 10}.

%% Both are there, and the first has said hello.
open_core() ->
    [A, B] = [c:pid(0, N, 0) || N <- [101, 102]],
    None = #{accepted => 0, delivered => 0, kept => []},
    {New, _} = im_chat_session_core:new(config(), 0),
    {lists:foldl(fun(Event, Core) -> element(1, handle(Event, Core)) end, New,
                 [{db, peek, none}, {db, open, {ok, #{pid => self(), inc => 1, finishing => false, ab => None, ba => None}}},
                  {db, {join, 1}, {ok, A}}, {db, {join, 2}, {ok, B}}, {hello, ?A, A, 0}]), A}.
