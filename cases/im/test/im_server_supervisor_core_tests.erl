%% SPDX-License-Identifier: Apache-2.0
-module(im_server_supervisor_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, {client, <<"a">>}).
-define(S, {session, {<<"a">>, <<"b">>}}).
-define(CORE, im_server_supervisor_core).

who_is_not_there_is_started_and_asked_when_it_is_test() ->
    Login = {im, login, <<"a">>, self()},
    {S1, [{start, ?A, {login, <<"a">>, _}}]} = handle({request, ?A, {login, <<"a">>, self()}, Login}, ?CORE:new()),
    {_, []} = requested(?A, S1),
    {S2, [{watch, ?A, P}]} = handle({started, ?A, p(1)}, S1),
    P = p(1),
    ?assertMatch({_, [{send, P, Login}]}, handle({request, ?A, {login, <<"a">>, self()}, Login}, S2)).

one_that_dies_goes_on_from_its_row_test() ->
    {S, [{unwatch, _}, {start, ?S, again}]} = handle({down, p(1), killed}, running(?S, p(1))),
    ?assertEqual(undefined, ?CORE:where(?S, S)),
    ?assertMatch(#{started_again := 1}, ?CORE:info(S)).

one_that_ends_by_itself_or_for_another_is_forgotten_test() ->
    [?assertMatch({_, [{unwatch, _}]}, handle({down, p(1), Why}, running(?S, p(1)))) || Why <- [normal, {shutdown, replaced}]].

one_that_dies_before_it_is_up_is_started_again_test() ->
    {S, _} = requested(?S, ?CORE:new()),
    {Started, _} = handle({started, ?S, p(1)}, S),
    ?assertMatch({_, [{unwatch, _}, {start, ?S, again}]}, handle({down, p(1), killed}, Started)).

what_does_not_belong_here_is_forgotten_test() ->
    {S, _} = handle({down, p(1), killed}, running(?S, p(1))),
    {Forgotten, []} = handle({not_here, ?S}, S),
    ?assertMatch({_, [{start, ?S, _}]}, requested(?S, Forgotten)).

rows_are_kept_moved_or_started_test() ->
    {S, Effects} = handle({rows, [{?A, lost}, {?S, {keep, p(1)}}, {{client, <<"c">>}, move}]}, running({client, <<"c">>}, p(2))),
    ?assertEqual([{watch, ?S, p(1)}, {unwatch, p(2)}, {start, ?A, again}, {start, {client, <<"c">>}, again}], Effects),
    ?assertMatch(#{moved := 1, started_again := 1}, ?CORE:info(S)).

%% As the supervisor itself was killed: what the table says is watched again, and who died meanwhile is down at once.
what_the_table_has_is_watched_again_test() ->
    {S, Effects} = handle({watched, [{?A, p(1)}, {?S, p(2)}]}, ?CORE:new()),
    ?assertEqual([{watch, ?A, p(1)}, {watch, ?S, p(2)}], Effects),
    ?assertMatch({_, []}, handle({rows, [{?A, {keep, p(1)}}]}, S)),
    ?assertMatch({_, [{unwatch, _}, {watch, ?A, _}]}, handle({rows, [{?A, {keep, p(3)}}]}, S)).

one_that_nobody_knows_any_more_says_that_it_is_there_test() ->
    {S, [{watch, ?S, _}]} = handle({up, ?S, p(1)}, ?CORE:new()),
    ?assertEqual(p(1), ?CORE:where(?S, S)).

so_many_are_started_at_once_and_so_many_wait_test() ->
    Keys = [{client, integer_to_binary(I)} || I <- lists:seq(1, 6000)],
    S = lists:foldl(fun(Key, Acc) -> element(1, requested(Key, Acc)) end, ?CORE:new(), Keys),
    ?assertMatch(#{starting := 100, queued := 5000, dropped := 900}, ?CORE:info(S)),
    {_, [{watch, _, _}, {start, {client, <<"101">>}, _}]} = handle({up, {client, <<"7">>}, p(7)}, S).

%% What has a row in a shard that is taken over is started, however many there are.
a_whole_shard_is_started_test() ->
    Rows = [{{client, integer_to_binary(I)}, lost} || I <- lists:seq(1, 6000)],
    {S, Effects} = handle({rows, Rows}, ?CORE:new()),
    ?assertEqual(6000, length(all_started(Effects, S, []))).

all_started([], _, Keys) -> lists:usort(Keys);
all_started([{start, Key, again} | Effects], S, Keys) ->
    {Next, More} = handle({up, Key, c:pid(0, length(Keys) + 1, 1)}, S),
    all_started([E || {start, _, _} = E <- More] ++ Effects, Next, [Key | Keys]).

%% Whatever happens: who is known is watched, once, and nobody is started who is being started.
what_is_known_is_watched_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Events, list(event()), consistent(Events)), 1000).

consistent(Events) ->
    {S, Watched, _} = lists:foldl(fun(Event, {Core, Watching, Starting}) ->
        {Next, Effects} = handle(Event, Core),
        {Is, Start} = lists:foldl(fun
            ({watch, Key, Pid}, {Acc, Started}) -> false = maps:is_key(Pid, Acc), {Acc#{Pid => Key}, Started};
            ({unwatch, Pid}, {Acc, Started}) -> {maps:remove(Pid, Acc), Started};
            ({start, Key, _}, {Acc, Started}) -> {Acc, [Key | Started]};
            (_, Both) -> Both
        end, {Watching, []}, Effects),
        [] = [Key || Key <- Start, lists:member(Key, Starting), not over(Event, Key)],
        {Next, Is, lists:usort(Start ++ [K || K <- Starting, not over(Event, K)])}
    end, {?CORE:new(), #{}, []}, Events),
    lists:sort(?CORE:all(S)) =:= lists:sort([{Key, Pid} || {Pid, Key} <- maps:to_list(Watched)]).

over({up, Key, _}, Key) -> true;
over({not_here, Key}, Key) -> true;
over({down, _, _}, _) -> true;
over(_, _) -> false.

%% A process has one key, all its life.
event() ->
    ?LET({I, N}, {range(1, 4), range(0, 2)},
         begin
             Key = {client, integer_to_binary(I)},
             Pid = p(I * 10 + N),
             oneof([{request, Key, again, {im, x}}, {started, Key, Pid}, {not_here, Key}, {up, Key, Pid}, {watched, [{Key, Pid}]},
                    {rows, [{Key, lost}]}, {rows, [{Key, move}]}, {rows, [{Key, {keep, Pid}}]},
                    {down, Pid, killed}, {down, Pid, normal}])
         end).

handle(Event, S) -> ?CORE:handle(Event, S).

requested(Key, S) -> handle({request, Key, again, {im, x}}, S).

running(Key, Pid) ->
    {S, _} = handle({up, Key, Pid}, ?CORE:new()),
    S.

p(N) -> c:pid(0, N, 0).
