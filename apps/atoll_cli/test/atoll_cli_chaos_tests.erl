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

%% To epmd it is connected; for other nodes it listens.
listening() ->
    [
        Address
     || Port <- erlang:ports(),
        {ok, {Address, _}} <- [inet:sockname(Port)],
        {error, enotconn} <- [inet:peername(Port)]
    ].
