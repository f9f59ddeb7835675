%% SPDX-License-Identifier: Apache-2.0
-module(im_client_table_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SESSION, {<<"a">>, <<"b">>}).

new() -> im_client_table:new(#{max_sessions => 2, away_messages => 3}).

%% Some processes.
pids(Count) -> [list_to_pid("<0.1." ++ integer_to_list(I) ++ ">") || I <- lists:seq(1, Count)].

run(Ops) -> run(Ops, new()).

run(Ops, Table) ->
    {Replies, _} = lists:mapfoldl(fun(Op, T) ->
        case im_client_table:apply(Op, T) of
            {Reply, unchanged} -> {Reply, T};
            {Reply, Next} -> {Reply, Next}
        end
    end, Table, Ops),
    Replies.

a_name_has_one_login_test() ->
    [P, Q, M, N] = pids(4),
    ?assertEqual([{ok, []}, {error, already_logged_in}, {ok, []}, 1],
                 run([{login, <<"a">>, P, M}, {login, <<"a">>, Q, N}, {login, <<"a">>, P, M}, count])).

who_is_away_keeps_its_sessions_and_comes_back_with_another_process_test() ->
    [P, Q, M, N] = pids(4),
    ?assertEqual([{ok, []}, {ok, P}, ok, ok, {ok, away}, {ok, [?SESSION]}, {error, not_logged_in},
                  {ok, #{pid => Q, monitor => N, sessions => [?SESSION], since => none}}],
                 run([{login, <<"a">>, P, M}, {open_session, <<"a">>, ?SESSION}, {away, <<"a">>, P, 7}, {away, <<"a">>, P, 8},
                      {open_session, <<"a">>, ?SESSION}, {login, <<"a">>, Q, N}, {away, <<"a">>, P, 9}, {peek, <<"a">>}])).

an_old_logout_does_not_end_a_new_login_test() ->
    [P, Q, M] = pids(3),
    ?assertMatch([_, ok, {ok, []}, {ok, []}, {ok, #{pid := Q}}, {ok, []}, none, {ok, []}],
                 run([{login, <<"a">>, P, M}, {away, <<"a">>, P, 1}, {login, <<"a">>, Q, M}, {logout, <<"a">>, P}, {peek, <<"a">>},
                      {logout, <<"a">>, Q}, {peek, <<"a">>}, {logout, <<"a">>, Q}])).

a_monitor_is_replaced_for_the_process_that_is_logged_in_test() ->
    [P, Q, M, N] = pids(4),
    ?assertMatch([{error, not_logged_in}, _, ok, {error, not_logged_in}, {ok, #{monitor := N}}],
                 run([{monitor, <<"a">>, P, M}, {login, <<"a">>, P, M}, {monitor, <<"a">>, P, N}, {monitor, <<"a">>, Q, M}, {peek, <<"a">>}])).

sessions_of_a_client_are_bounded_test() ->
    [P, M] = pids(2),
    Session = fun(B) -> {<<"a">>, B} end,
    ?assertEqual([{error, receiver_not_found}, {ok, []}, {ok, P}, {ok, P}, {error, too_many_sessions}, {ok, P}, ok, ok, {ok, P}, ok],
                 run([{open_session, <<"a">>, Session(<<"x">>)}, {login, <<"a">>, P, M}, {open_session, <<"a">>, Session(<<"x">>)},
                      {open_session, <<"a">>, Session(<<"y">>)}, {open_session, <<"a">>, Session(<<"z">>)},
                      {open_session, <<"a">>, Session(<<"x">>)}, {close_session, <<"a">>, Session(<<"x">>)},
                      {close_session, <<"a">>, Session(<<"x">>)}, {open_session, <<"a">>, Session(<<"z">>)},
                      {close_session, <<"nobody">>, Session(<<"z">>)}])).
