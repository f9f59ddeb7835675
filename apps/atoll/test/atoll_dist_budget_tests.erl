%% SPDX-License-Identifier: Apache-2.0
%% The budget: never more than it, and one packet; it goes on; its figures add up.
-module(atoll_dist_budget_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LIMIT, 10000).
-define(LARGEST, 3000).
-define(OVERHEAD, 256).

who_asks_before_taking_stays_within_the_budget_test_() ->
    atoll_prop:test(?FUNCTION_NAME, bounded(), 1000).

bounded() ->
    ?FORALL(Ops, list(oneof([{take, range(0, 3), range(1, ?LARGEST)}, {write, range(0, 3)}])), begin
        {Budget, Waiting, Most} = lists:foldl(fun op/2, {atoll_dist_budget:new(4, ?LIMIT), #{}, 0}, Ops),
        {Sizes, Packets} = {lists:append(maps:values(Waiting)), lists:sum([length(L) || L <- maps:values(Waiting)])},
        Total = lists:sum(Sizes) + Packets * ?OVERHEAD,
        conjunction([
            {total, equals(Total, atoll_dist_budget:total(Budget))},
            {lanes, equals(Total, lists:sum(tuple_to_list(atoll_dist_budget:waiting(Budget))))},
            {bounded, Most < ?LIMIT + ?LARGEST + ?OVERHEAD},
            {goes_on, 4 * Total > 3 * ?LIMIT orelse atoll_dist_budget:may_take(Budget)}
        ])
    end).

op({take, Lane, Size}, {Budget0, Waiting, Most}) ->
    case atoll_dist_budget:may_take(Budget0) of
        true ->
            Budget = atoll_dist_budget:add(Lane, Size, Budget0),
            Sizes = maps:get(Lane, Waiting, []),
            {Budget, Waiting#{Lane => [Size | Sizes]}, max(Most, atoll_dist_budget:total(Budget))};
        false ->
            {Budget0, Waiting, Most}
    end;
op({write, Lane}, {Budget, Waiting, Most}) ->
    Sizes = maps:get(Lane, Waiting, []),
    {atoll_dist_budget:written(Lane, lists:sum(Sizes), length(Sizes), Budget), Waiting#{Lane => []}, Most}.

a_spent_budget_waits_for_a_quarter_test() ->
    Take = fun(_, B) -> atoll_dist_budget:add(0, 1000 - ?OVERHEAD, B) end,
    Spent = lists:foldl(Take, atoll_dist_budget:new(2, ?LIMIT), lists:seq(1, 10)),
    ?assertNot(atoll_dist_budget:may_take(Spent)),
    Write = fun(Count, B) -> atoll_dist_budget:written(0, Count * (1000 - ?OVERHEAD), Count, B) end,
    ?assertNot(atoll_dist_budget:may_take(Write(2, Spent))),
    ?assert(atoll_dist_budget:may_take(Write(3, Spent))),
    %% Small packets are bounded by what they cost beside their bytes.
    {1, [#{lane := 0, waiting := 0, most_waiting := 10000, packets := 10, bytes := 7440}, #{lane := 1, packets := 0}]} =
        atoll_dist_budget:figures(Write(10, Spent)).

more_written_than_was_taken_is_a_fault_test() ->
    ?assertError({badmatch, false}, atoll_dist_budget:written(0, 1, 1, atoll_dist_budget:new(1, ?LIMIT))).
