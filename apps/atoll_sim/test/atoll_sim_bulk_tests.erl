%% SPDX-License-Identifier: Apache-2.0
%% One way of a link over which bulk goes: who gets in, and how long that waits.
-module(atoll_sim_bulk_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% A hundred bytes in a millisecond, and room for a thousand.
-define(RATE, 100000).
-define(QUEUE, 1000).

the_wait_is_bounded_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_wait(), 300).

%% What is taken waits for less than a full queue; and looking more often changes nothing of what
%% goes over the link.
prop_wait() ->
    ?FORALL(
        {Offered, Rate, Queue, Times, Seed},
        {oneof([full, choose(1, 100000000)]), choose(1000, 200000000), choose(1, 2000000), list(choose(0, 3000)), nat()},
        begin
            Asked = offers(Times, new(Offered, Rate, Queue, Seed)),
            lists:all(
                fun
                    (full) -> true;
                    ({wait, Ms}) -> Ms =< 1 + Queue * 1000 / Rate
                end,
                Asked
            )
        end
    ).

%% Whoever offers all that the link takes leaves hardly any room; half of it leaves half.
a_share_is_refused_that_grows_with_what_is_sent_test() ->
    Shares = [
        length([full || full <- offers(lists:duplicate(2000, 517), new(Offered, 100000000, 1000000, 7))]) / 2000
     || Offered <- [1000, 10000000, 50000000, full]
    ],
    [Nothing, Little, Half, Most] = Shares,
    ?assertEqual(0.0, Nothing),
    ?assert(Little < 0.1),
    ?assert(Half > 0.3 andalso Half < 0.6),
    ?assert(Most > 0.85 andalso Most < 1.0).

%% As long as there is something in the queue.
what_was_sent_is_told_of_the_time_between_test() ->
    Bulk = new(1000, ?RATE, ?QUEUE, 7),
    Sent = [sent(At - 1, At, Bulk) || At <- lists:seq(1, 3000)],
    %% A hundred bytes each tenth of a second, each a millisecond.
    Share = length([S || S <- Sent, S]) / 3000,
    ?assert(Share > 0.005 andalso Share < 0.03),
    ?assert(sent(2800, 3000, Bulk)).

new(Offered, Rate, Queue, Seed) ->
    atoll_sim_bulk:new(Offered, Rate, Queue, 0, rand:seed_s(exsss, Seed)).

offers(Times, {Bulk, Rand}) ->
    {Answers, _} = lists:mapfoldl(
        fun(Ms, {Now0, B0, R0}) ->
            Now = Now0 + Ms,
            {Answer, B, R} = atoll_sim_bulk:offer(Now, B0, R0),
            {Answer, {Now, B, R}}
        end,
        {0, Bulk, Rand},
        Times
    ),
    Answers.

sent(Since, Now, {Bulk, Rand}) ->
    {Sent, _, _} = atoll_sim_bulk:sent(Since, Now, Bulk, Rand),
    Sent.
