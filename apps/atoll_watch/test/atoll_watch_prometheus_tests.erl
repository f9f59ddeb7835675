%% SPDX-License-Identifier: Apache-2.0
-module(atoll_watch_prometheus_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{a_label_is_read_as_it_was_written, a_label_is_read_as_it_was_written(), 500}]).

seen(Node, State, Readings) ->
    #{node => Node, state => State, since => 0, why => none, readings => Readings, rates => #{}}.

metrics(Names) -> [Metric || #{name := Name} = Metric <- atoll_watch_metric:all(), lists:member(Name, Names)].

a_text_has_a_head_for_each_metric_and_nothing_of_who_is_not_up_test() ->
    Seen = [seen('a@h', up, #{uptime => 1500, {dist_in, 'b@h'} => 7, utilisation => 0.25}), seen('b@h', silent, #{uptime => 9})],
    ?assertEqual(
        "# HELP erlang_node_up whether the node has answered\n"
        "# TYPE erlang_node_up gauge\n"
        "erlang_node_up{node=\"a@h\"} 1\n"
        "erlang_node_up{node=\"b@h\"} 0\n"
        "# HELP erlang_uptime_seconds time since the node was started\n"
        "# TYPE erlang_uptime_seconds gauge\n"
        "erlang_uptime_seconds{node=\"a@h\"} 1.5\n"
        "# HELP erlang_dist_in_bytes_total bytes that came over the connection with a node\n"
        "# TYPE erlang_dist_in_bytes_total counter\n"
        "erlang_dist_in_bytes_total{node=\"a@h\",peer=\"b@h\"} 7\n",
        unicode:characters_to_list(atoll_watch_prometheus:text(metrics([uptime, dist_in, ports]), Seen))
    ).

%% Whatever a process is called.
a_label_is_read_as_it_was_written() ->
    ?FORALL(Chars, list(oneof([$", $\\, $\n, $n, ${, $}, $a, $=, 16#e4])), begin
        Label = unicode:characters_to_binary(Chars),
        Text = unicode:characters_to_binary(atoll_watch_prometheus:text(metrics([mailbox]), [seen('a@h', up, #{{mailbox, Label} => 3})])),
        [Line] = [L || <<"erlang_mailbox{", L/binary>> <- binary:split(Text, <<"\n">>, [global])],
        {match, [Written]} = re:run(Line, "process=\"((?:[^\"\\\\]|\\\\.)*)\"} 3$", [{capture, all_but_first, binary}]),
        unescaped(Written) =:= Label
    end).

unescaped(<<"\\n", Rest/binary>>) -> <<"\n", (unescaped(Rest))/binary>>;
unescaped(<<"\\", C, Rest/binary>>) -> <<C, (unescaped(Rest))/binary>>;
unescaped(<<C, Rest/binary>>) -> <<C, (unescaped(Rest))/binary>>;
unescaped(<<>>) -> <<>>.
