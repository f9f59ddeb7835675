%% SPDX-License-Identifier: Apache-2.0
%% What is taken of an event: whatever it is, one line of a bounded length, at a bounded cost.
-module(atoll_watch_agent_log_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([formatted/1]).

-define(LOG, atoll_watch_agent_log).

properties_test_() ->
    atoll_prop:tests([{a_text_is_one_line_of_a_thousand_characters, a_text_is_one_line(), 1000}]).

a_text_is_one_line() ->
    Message = oneof([{string, term()}, {report, term()}, {term(), term()}, {oneof(["~p", "~ts", <<"~s ~w">>, "~5p~n~c", "~999999999w", 'an atom', "~"]), list(term())}]),
    Meta = oneof([#{}, #{time => 1, report_cb => fun gen_server:format_log/2}, #{report_cb => fun logger:format_otp_report/1}, #{report_cb => fun(_) -> error(no) end}, #{report_cb => x}]),
    ?FORALL({Msg, With}, {Message, Meta}, begin
        Text = ?LOG:text(#{level => error, msg => Msg, meta => With}),
        is_binary(Text) andalso string:length(Text) =< 1000 andalso binary:match(Text, [<<"\n">>, <<"\r">>, <<"\e">>]) =:= nomatch
    end).

text(Message) -> text(Message, #{}).
text(Message, Meta) -> ?LOG:text(#{level => error, msg => Message, meta => Meta}).

it_is_what_was_said_test() ->
    [?assertEqual({Message, Expected}, {Message, text(Message)}) || {Message, Expected} <- [
        {{"~ts of ~p: ~b", [<<"Größe"/utf8>>, {a, "b"}, 7]}, <<"Größe of {a,\"b\"}: 7"/utf8>>},
        {{<<"two\n  lines">>, []}, <<"two lines">>},
        {{string, "plain ~p"}, <<"plain ~p">>},
        {{string, <<"Größe"/utf8>>}, <<"Größe"/utf8>>},
        {{report, #{a => 1}}, <<"#{a => 1}">>},
        {{report, [{a, 1}, {b, <<"x">>}]}, <<"[{a,1},{b,<<\"x\">>}]">>},
        {{"~p ~p", [1]}, <<"{\"~p ~p\",[1]}">>}
    ]].

reports_of_otp_are_as_otp_writes_them_test() ->
    Report = #{label => {gen_server, terminate}, name => desk, last_message => hello, state => {state, 1}, log => [], reason => {badarg, [{m, f, 1, []}]}, client_info => undefined, process_label => undefined},
    ?assertMatch({match, _}, re:run(text({report, Report}, #{report_cb => fun gen_server:format_log/2}), "Generic server desk terminating.* Reason: ")),
    Sup = #{label => {supervisor, shutdown}, report => [{supervisor, {local, shop_sup}}, {errorContext, shutdown}, {reason, reached_max_restart_intensity}, {offender, [{pid, self()}, {id, x}]}]},
    ?assertMatch({match, _}, re:run(text({report, Sup}, #{report_cb => fun supervisor:format_log/2}), "shop_sup.*reached_max_restart_intensity")).

%% A function of the user's might never end.
a_formatter_of_the_user_is_not_called_test() ->
    Self = self(),
    Called = fun(Report) -> Self ! called, {"~p", [Report]} end,
    ?assertEqual(<<"#{a => b}">>, text({report, #{a => b}}, #{report_cb => Called})),
    ?assertEqual(<<"#{a => b}">>, text({report, #{a => b}}, #{report_cb => fun ?MODULE:formatted/1})),
    receive called -> error(called) after 0 -> ok end.

-spec formatted(term()) -> no_return().
formatted(_) -> error(called).

%% Ten times as much costs no more.
however_large_it_is_it_costs_the_same_test() ->
    [begin
        [Small, Large] = [atoll_test_cost:reductions(lists:nth(Nth, events(N)), fun(Message) -> text(Message) end) || N <- [10000, 100000]],
        ?assert(Large < 3 * Small + 100000, {Nth, Small, Large}),
        ?assert(Large < 1000000, {Nth, Large})
     end || Nth <- lists:seq(1, length(events(1)))].

%% Made one at a time: all of them together take long to make, and memory.
events(N) ->
    [
        fun() -> {"~p", [lists:seq(1, N)]} end,
        fun() -> {"~ts", [lists:duplicate(N, $x)]} end,
        fun() -> {"~ts", [binary:copy(<<"x">>, N)]} end,
        fun() -> {report, maps:from_keys(lists:seq(1, N), v)} end,
        fun() -> {report, list_to_tuple(lists:seq(1, N))} end,
        fun() -> {"~w", [1 bsl N]} end,
        fun() -> {lists:duplicate(N, $x), []} end,
        fun() -> {string, lists:duplicate(N, "ab")} end,
        fun() -> {report, #{last_message => lists:seq(1, N), reason => [lists:seq(1, N)]}} end,
        fun() -> {"~p", [lists:foldl(fun(_, Acc) -> {Acc, Acc} end, x, lists:seq(1, N div 1000))]} end
    ].

%% The reason is told, however large what stands before it.
each_part_has_its_share_test() ->
    ?assertMatch({match, _}, re:run(text({report, [{last_message, lists:duplicate(10000, {a, b})}, {reason, out_of_fish}]}), "last_message")),
    Report = #{label => {gen_server, terminate}, name => desk, last_message => lists:duplicate(100000, {x}), state => x, log => [], reason => out_of_fish, client_info => undefined, process_label => undefined},
    ?assertMatch({match, _}, re:run(text({report, Report}, #{report_cb => fun gen_server:format_log/2}), "desk.*out_of_fish")).

%% Supervisors

a_minute_of_ends_and_ten_of_giving_up_are_known_test() ->
    Known = lists:foldl(fun({Time, What}, Acc) -> ?LOG:seen(What, <<"s">>, Time, Acc) end, #{}, [{0, child_terminated}, {30, child_terminated}, {31, shutdown}]),
    At = fun(Now) -> element(1, ?LOG:standing(Now, Known)) end,
    ?assertEqual([{supervisor_ended, <<"s">>, 2}, {supervisor_gave_up, <<"s">>, 1}], At(59)),
    ?assertEqual([{supervisor_ended, <<"s">>, 1}, {supervisor_gave_up, <<"s">>, 1}], At(60)),
    ?assertEqual([{supervisor_ended, <<"s">>, 0}, {supervisor_gave_up, <<"s">>, 1}], At(630)),
    ?assertEqual({[], #{}}, ?LOG:standing(631, Known)).

twenty_supervisors_are_known_test() ->
    Many = lists:foldl(fun(N, Acc) -> ?LOG:seen(child_terminated, integer_to_binary(N), 0, Acc) end, #{}, lists:seq(1, 100)),
    ?assertEqual(20, map_size(Many)),
    ?assertEqual(20, map_size(?LOG:seen(shutdown, <<"1">>, 1, Many))),
    ?assertEqual(1, map_size(?LOG:seen(shutdown, <<"new">>, 100, Many))).
