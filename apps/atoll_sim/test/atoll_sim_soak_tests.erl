%% SPDX-License-Identifier: Apache-2.0
%% The long run as make starts it: what it is asked for is read before anything runs.
-module(atoll_sim_soak_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_asked_for_wrongly_is_a_sentence_test_() ->
    [
        {string:join(Args, " "), {timeout, 60, ?_assertEqual({2, Sentence ++ "\n"}, soak(Args))}}
     || {Args, Sentence} <- [
            {["abc", ""], "SEEDS must be a whole number from 1 to 1,000, not \"abc\""},
            {["0", ""], "SEEDS must be a whole number from 1 to 1,000, not \"0\""},
            {["2", "speed,xbott"],
                "GOALS has no \"xbott\"; there are kills, deaths, large, storms, broadcast, return, detection, load, scamp, xbot, "
                "memory, membership, speed"}
        ]
    ].

%% Whether it is reached hangs on the machine. It takes a thousand nodes.
a_goal_can_be_run_alone_test_() ->
    [
        {timeout, 600, fun() ->
            {Status, Rows} = soak(["1", "membership"]),
            ?assert(lists:member(Status, [0, 1])),
            ?assertMatch({match, _}, re:run(Rows, "^(reached |MISSED  ) 1,000 nodes, HyParView alone: \\d+ x real time\n$"))
        end}
     || atoll_tier:tier() =:= deep
    ].

soak(Args) ->
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        exit_status,
        stderr_to_stdout,
        {args, ["-noinput", "-pa" | code:get_path()] ++ ["-s", "atoll_sim_soak", "main", "-extra" | Args]}
    ]),
    output(Port, []).

output(Port, Said) ->
    receive
        {Port, {data, Data}} -> output(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Said)}
    end.
