%% SPDX-License-Identifier: Apache-2.0
%% Who is chosen by values that may be old is asked, however old they are said to be.
-module(atoll_attr_chosen_tests).

-include_lib("eunit/include/eunit.hrl").

%% What was heard a moment ago is 0 ms old, and may have changed since.
a_node_chosen_by_what_it_told_is_asked_at_any_age_test_() ->
    [
        {lists:flatten(io_lib:format("max_age ~b, ~b ms old", [MaxAge, Age])), ?_assertEqual({Names, IsFresh}, chosen(MaxAge, Age))}
     || {MaxAge, Age, Names, IsFresh} <- [{1000, 0, [colour], false}, {1000, 7, [colour], false}, {0, 0, [], true}]
    ].

%% What the room is told of the node that is chosen: the attributes that it is asked for,
%% and whether all that is known of it is an answer to this choice.
chosen(MaxAge, Age) ->
    Test = self(),
    {Room, Ref} = spawn_opt(fun() ->
        true = register(atoll_attr, self()),
        Test ! {self(), begun},
        Answer = #{answers => [{b@h, #{colour => blue}, Age}], silent => [], unreachable => []},
        told({ask, Answer}),
        Test ! {self(), told(chosen)}
    end, [link, monitor]),
    receive
        {Room, begun} -> ok
    end,
    {ok, b@h, _} = atoll_attr:choose_node([b@h], "colour == blue", #{max_age => MaxAge, deadline => 1000}),
    %% The next one takes its name.
    receive
        {'DOWN', Ref, process, Room, _} -> ok
    end,
    receive
        {Room, #{names := Names, fresh := IsFresh}} -> {Names, IsFresh}
    end.

told(Answer) ->
    receive
        {'$gen_call', From, {protocol, Request}} ->
            case {Request, Answer} of
                {{ask, _}, {ask, Answers}} -> gen_server:reply(From, {ok, Answers});
                {{choose, Wanted}, chosen} -> gen_server:reply(From, {ok, b@h, none, #{}}), Wanted
            end
    end.
