%% The node that does harm from outside.
-module(atoll_cli_chaos_tests).

-include_lib("eunit/include/eunit.hrl").

%% In a VM of its own, which becomes distributed. There is a cluster whenever it does,
%% and with that epmd.
it_listens_on_this_machine_alone_test_() ->
    {timeout, 60, fun() ->
        {ok, Cluster} = atoll_cluster:start(#{nodes => 1}),
        Paths = [Dir || Dir <- code:get_path(), not lists:prefix(code:root_dir(), Dir)],
        {ok, Peer, _} = peer:start(#{connection => standard_io, args => ["-pa" | Paths]}),
        try
            ok = peer:call(Peer, atoll_cli_held, become_hidden, []),
            true = peer:call(Peer, erlang, is_alive, []),
            ?assertEqual([{127, 0, 0, 1}], peer:call(Peer, erlang, apply, [fun listening/0, []]))
        after
            peer:stop(Peer),
            atoll_cluster:stop(Cluster)
        end
    end}.

%% Asked for by name or not: it is the same distribution.
the_stock_carrier_may_be_asked_for_test_() ->
    {timeout, 60, fun() ->
        Asked = fun(#{cluster := Cluster}) ->
            [Node] = atoll_cluster:nodes(Cluster),
            {started, atoll_cluster:call(Cluster, Node, init, get_argument, [proto_dist], 5000)}
        end,
        ?assertEqual({started, error}, atoll_cli_chaos:on(#{carrier => stock}, 1, none, Asked))
    end}.

%% What comes after it in the script may rest on it.
a_name_that_was_refused_is_told_so_test() ->
    Events = [
        #{
            at_ms => 1000, fault => name, nodes => [n1], target => {register, fish, shop}, outcome => done,
            recovered_ms => none, took_ms => 3, answer => Answer
        }
     || Answer <- [yes, {no, name_or_pid_already_registered}]
    ],
    Lines = table(#{events => Events, overlay => none, expectations => 0, failed => []}),
    ?assertMatch({match, _}, re:run(Lines, "answered in 3 ms\n.*answer: another process of the group has the name,"), Lines).

%% What is expected of groups needs no overlay.
expectations_are_counted_where_no_overlay_runs_test() ->
    Judged = fun(Count, Failed) -> table(#{events => [], overlay => none, expectations => Count, failed => Failed}) end,
    ?assertMatch({match, _}, re:run(Judged(2, [failure]), "expectations +2\nexpectations that failed +1\n")),
    ?assertEqual(nomatch, re:run(Judged(0, []), "expectations")).

table(Result) ->
    unicode:characters_to_binary(atoll_cli_chaos_result:table(Result#{left_out => 0, summary => [], groups => none}, [n1])).

%% To epmd it is connected; for other nodes it listens.
listening() ->
    [
        Address
     || Port <- erlang:ports(),
        {ok, {Address, _}} <- [inet:sockname(Port)],
        {error, enotconn} <- [inet:peername(Port)]
    ].
