%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_place_load_tests).

-include_lib("eunit/include/eunit.hrl").

-export([after_the_first/1]).

told_test_() ->
    {setup,
        fun() ->
            {ok, Started} = application:ensure_all_started(atoll),
            Started
        end,
        fun(Started) ->
            [ok = application:stop(App) || App <- lists:reverse(Started)]
        end,
        [fun a_node_that_was_too_busy_to_say_is_asked_again/0]}.

%% The first evaluation never ends in its time, as on a node that has just been bounded and still loads its code.
a_node_that_was_too_busy_to_say_is_asked_again() ->
    Asked = counters:new(1, []),
    ok = atoll_attr:insert(busy, {dynamic, {?MODULE, after_the_first, [Asked]}}),
    ?assertEqual([{node(), 0.3}], atoll_bench_place_load:told([node()], busy)),
    %% On a busy machine the second may be late, too.
    ?assert(counters:get(Asked, 1) > 1).

after_the_first(Asked) ->
    ok = counters:add(Asked, 1, 1),
    case counters:get(Asked, 1) of
        1 -> receive never -> ok end;
        _ -> 0.3
    end.
