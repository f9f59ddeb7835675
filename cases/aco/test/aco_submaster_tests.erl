%% SPDX-License-Identifier: Apache-2.0
%% What a submaster takes for lost.
-module(aco_submaster_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DEADLINE_MS, 30_000).

%% A colony may be at work for longer than one that is missing has to be back.
who_was_back_before_it_was_killed_again_has_all_the_time_anew_test_() ->
    {timeout, 60, {spawn, fun back_and_killed/0}}.

back_and_killed() ->
    ok = aco_keep:new(),
    Name = {aco, "test", 1},
    Colony = spawn(fun() -> receive never -> ok end end),
    yes = global:register_name(Name, Colony),
    {ok, Submaster} = gen_server:start(aco_submaster, {[], run()}, []),
    1 = erlang:trace(Submaster, true, ['receive']),
    LongAgo = erlang:monotonic_time(millisecond) - 600_000,
    Submaster ! {again, 1, 1, LongAgo},
    Answer = gen_server:send_request(Submaster, {round, 1, []}),
    Submaster ! {again, 1, 1, LongAgo},
    _ = sys:get_state(Submaster),
    true = exit(Colony, kill),
    %% It was asked twice: a round that is not open yet is asked for by nobody.
    [?assertEqual({again, 1, 1, none}, next_again(Submaster, LongAgo)) || _ <- [1, 2]],
    _ = gen_server:receive_response(Answer, ?DEADLINE_MS),
    true = exit(Submaster, kill).

%% But for what this process has sent.
next_again(Submaster, LongAgo) ->
    receive
        {trace, Submaster, 'receive', {again, _, _, Missing} = Again} when Missing =/= LongAgo -> Again
    after ?DEADLINE_MS -> error(not_asked_again)
    end.

run() ->
    Place = #{nodes => [node()], below => [], group => {last, []}},
    #{id => "test", mode => gr, reliable => true, nodes => [node()], tree => #{[] => Place#{below := [1]}, 1 => Place}}.
