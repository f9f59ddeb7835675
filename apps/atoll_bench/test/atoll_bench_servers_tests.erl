%% SPDX-License-Identifier: Apache-2.0
%% Which server does not scale: one that can do a thousand requests in a second at most, with many callers and with one.
-module(atoll_bench_servers_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SERVER, atoll_bench_servers_tests_server).

a_server_behind_which_callers_stand_in_a_row_is_named_test_() ->
    {timeout, 60, fun() ->
        Self = self(),
        {Server, Ref} = spawn_monitor(fun() ->
            true = register(?SERVER, self()),
            Self ! {self(), serves},
            serving()
        end),
        receive {Server, serves} -> ok end,
        ?assertMatch([#{name := ?SERVER, waiting_max := Most} | _] when Most >= 5, atoll_bench_servers:suspects(seen(8))),
        %% One caller at a time makes no row.
        ?assertEqual([], [Name || #{name := ?SERVER = Name} <- atoll_bench_servers:suspects(seen(1))]),
        true = exit(Server, kill),
        receive {'DOWN', Ref, process, Server, killed} -> ok end
    end}.

seen(Workers) ->
    ok = atoll_bench_servers:start(60_000),
    #{finished := N} = atoll_bench_load:closed(fun called/0, #{workers => Workers, ms => 500}),
    ?assert(N > 20),
    atoll_bench_servers:merged([atoll_bench_servers:stop()]).

called() ->
    Ref = monitor(process, ?SERVER),
    ?SERVER ! {served, self(), Ref},
    receive
        {Ref, ok} -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, _, Why} -> exit(Why)
    end.

serving() ->
    receive
        {served, From, Ref} ->
            receive after 1 -> ok end,
            From ! {Ref, ok},
            serving()
    end.

of_several_nodes_a_server_is_what_it_is_where_it_has_most_to_do_test() ->
    Server = fun(Name, Busy, Waiting) -> #{name => Name, busy => Busy, waiting => Waiting, waiting_max => round(Waiting)} end,
    Merged = atoll_bench_servers:merged([[Server(a, 90.0, 0.5), Server(b, 10.0, 0.0)], [Server(a, 20.0, 1.0), Server(c, 95.0, 0.0)]]),
    ?assertEqual([{a, 90.0, 1.0}, {c, 95.0, 0.0}, {b, 10.0, 0.0}], [{Name, Busy, Waiting} || #{name := Name, busy := Busy, waiting := Waiting} <- Merged]),
    ?assertEqual([a], [Name || #{name := Name} <- atoll_bench_servers:suspects(Merged)]),
    ?assertEqual("Callers stand in a row behind a, which does not scale: 1.0 wait on the average, and it is at work in 90 % of all looks.", lists:flatten(atoll_bench_servers:says(Merged))).
