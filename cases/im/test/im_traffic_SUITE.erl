%% SPDX-License-Identifier: Apache-2.0
%% @doc Traffic over several client nodes, with a messenger of one process on a node of its own
%% ({@link im_toy}): what a run is when its clients are on other nodes, and what is left when one of
%% these dies. And traffic on the real messenger, whose promise it is that the history is clean.
-module(im_traffic_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    clients_of_all_nodes_talk_with_each_other/1,
    what_was_lost_between_nodes_is_found/1,
    a_client_node_that_dies_ends_the_run/1,
    clients_end_with_the_node_of_the_run/1
]).
-export([conversations_and_a_closed_loop_on_the_real_one/1, what_was_accepted_outlives_a_killed_server/1]).
-export([toy/1, begun/0, said/0, until_delivered/2]).

-define(ROUTER, 1).
-define(CLIENTS, 3).
-define(LATE_MS, 20000).

suite() -> [{timetrap, {minutes, 2}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [
        clients_of_all_nodes_talk_with_each_other, what_was_lost_between_nodes_is_found, a_client_node_that_dies_ends_the_run,
        clients_end_with_the_node_of_the_run
    ];
cases(deep) ->
    cases(fast) ++ [conversations_and_a_closed_loop_on_the_real_one, what_was_accepted_outlives_a_killed_server].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => [#{kind => "_router_", count => ?ROUTER, connect_all => false, apps => [], args => []}, im_cluster:client_options(?CLIENTS)]
    }),
    [Router | Clients] = atoll_cluster:nodes(Cluster),
    [{cluster, Cluster}, {router, Router}, {clients, Clients} | Config].

end_per_suite(Config) -> atoll_cluster_owned:stop(proplists:get_value(cluster, Config)).

end_per_testcase(_, Config) ->
    _ = atoll_cluster_owned:heal(proplists:get_value(cluster, Config)),
    ok.

clients_of_all_nodes_talk_with_each_other(Config) ->
    ok = toy(none, Config),
    Options = options(paper, #{time_scale => 1000, messages => {3, 6}, rivals => 20, ms => 3600000}, Config),
    %% Some have ended, and were replaced: those of the fifteen pairs have six messages at most.
    {ok, Result} = call(hd(proplists:get_value(clients, Config)), ?MODULE, until_delivered, [15 * 6, Options], Config),
    #{history := #{counts := Counts, messages := Messages, conversations := Conversations, logins := Logins}} = Result,
    #{total := #{sent := Sent, received := Received, delivered := Delivered}, conversations := #{'begun' := Begun, ended := Ended}} = Result,
    ?assertEqual({#{}, Sent, Sent, Sent}, {Counts, Received, Delivered, Messages}),
    ?assertEqual({30, #{finished => Begun}, Begun}, {Logins, Ended, Conversations}),
    #{is_drained := true, clients := #{rivals := Rivals, rivals_refused := Rivals}} = Result,
    ?assert(Begun > 15).

what_was_lost_between_nodes_is_found(Config) ->
    ok = toy({lose, 7}, Config),
    {ok, #{history := #{counts := Counts}}} = run(options(open, #{rate => 600, drain_ms => 300}, Config), Config),
    ?assertMatch(#{lost := _, gap := _}, Counts).

a_client_node_that_dies_ends_the_run(Config) ->
    [First, Second, Third] = proplists:get_value(clients, Config),
    ?assertEqual({outcome, {error, {node, Third, noconnection}}}, outcome_without(Third, [Third], Config)),
    ok = until(fun() -> not begun([First, Second], Config) end).

clients_end_with_the_node_of_the_run(Config) ->
    [First, Second | _] = proplists:get_value(clients, Config),
    _ = outcome_without(First, [First, Second], Config),
    ok = until(fun() -> not begun([Second], Config) end).

%% What becomes of a run whose node is killed when there are clients on these.
outcome_without(Victim, Nodes, Config) ->
    ok = toy(none, Config),
    {Pid, Ref} = spawn_monitor(fun() -> exit({outcome, run(options(closed, #{ms => 3600000}, Config), Config)}) end),
    ok = until(fun() -> lists:all(fun(Node) -> begun([Node], Config) end, Nodes) end),
    ok = atoll_cluster:kill(proplists:get_value(cluster, Config), Victim),
    receive {'DOWN', Ref, process, Pid, Outcome} -> Outcome after ?LATE_MS -> ct:fail(goes_on) end.

begun(Nodes, Config) -> lists:any(fun(Node) -> call(Node, ?MODULE, begun, [], Config) end, Nodes).

conversations_and_a_closed_loop_on_the_real_one(_Config) ->
    with_messenger(#{mode => rsd, routers => 2, servers => 3, clients => 1}, fun(Messenger) ->
        [real(Messenger, 800, More) || More <- [#{mode => paper, time_scale => 100, rivals => 20}, #{mode => closed, window => 2}]]
    end).

%% For longer where the machine is so busy that little was said.
real(Messenger, Ms, More) when Ms < ?LATE_MS ->
    Options = maps:merge(#{clients => 60, ms => Ms, ramp_ms => 300, drain_ms => ?LATE_MS}, More),
    {ok, #{traffic := Result}} = atoll_bench_im_run:traffic(Messenger, Options, #{}, atoll_tier:seed(?MODULE)),
    #{history := #{counts := Counts, messages := Messages}, total := #{sent := Sent, received := Received, delivered := Delivered}} = Result,
    ?assertEqual({#{}, Sent, Sent, Sent}, {Counts, Received, Delivered, Messages}),
    ?assertMatch(#{is_drained := true, logins := 60}, Result),
    Sent > 60 orelse real(Messenger, 4 * Ms, More).

what_was_accepted_outlives_a_killed_server(_Config) ->
    Shape = #{mode => rd, routers => 1, servers => 2, clients => 1},
    with_messenger(Shape, fun(#{cluster := Cluster, servers := [Victim | _], clients := [Client]} = Messenger) ->
        Self = self(),
        Pid = spawn_link(fun() ->
            Options = #{clients => 60, mode => open, rate => 3000, ms => 2500, ramp_ms => 300, drain_ms => ?LATE_MS},
            Self ! {self(), atoll_bench_im_run:traffic(Messenger, Options, #{}, atoll_tier:seed(?MODULE))}
        end),
        ok = until(fun() -> atoll_cluster:call(Cluster, Client, ?MODULE, said, []) > 1000 end),
        ok = atoll_cluster:kill(Cluster, Victim),
        receive
            {Pid, {ok, #{traffic := #{history := #{counts := Counts}, is_drained := IsDrained} = Result}}} ->
                ct:pal("~p", [maps:without([latency], Result)]),
                ?assertEqual({#{}, true}, {Counts, IsDrained})
        end
    end).

with_messenger(Shape, Fun) ->
    Ran = atoll_cluster:with_cluster(im_cluster:options(Shape), fun(Cluster) ->
        {ok, Messenger} = atoll_bench_im_run:ready(Cluster, Shape),
        Fun(Messenger)
    end),
    case Ran of
        {error, Reason} -> ct:fail(Reason);
        Result -> Result
    end.

options(Mode, More, Config) ->
    maps:merge(
        #{
            client_nodes => proplists:get_value(clients, Config), routers => [proplists:get_value(router, Config)], routers_per_node => 1,
            clients => 30, mode => Mode, ms => 400, ramp_ms => 100, drain_ms => ?LATE_MS, seed => atoll_tier:seed(?MODULE)
        },
        More
    ).

run(Options, Config) ->
    atoll_cluster:call(proplists:get_value(cluster, Config), hd(proplists:get_value(clients, Config)), im_traffic, run, [Options], infinity).

call(Node, Module, Function, Args, Config) ->
    atoll_cluster:call(proplists:get_value(cluster, Config), Node, Module, Function, Args, 3 * ?LATE_MS).

%% A new messenger in place of the one before.
toy(Fault, Config) -> call(proplists:get_value(router, Config), ?MODULE, toy, [Fault], Config).

%% On the nodes.

%% @private
toy(Fault) ->
    _ = [
        begin
            Ref = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Ref, process, Pid, _} -> ok end
        end
     || Pid <- [whereis(router_1)], is_pid(Pid)
    ],
    true = unlink(im_toy:start_link(Fault)),
    ok.

%% What comes of a run that is stopped when so many and one more are delivered, however long that takes.
%% @private
until_delivered(Count, Options) ->
    {ok, Run} = im_traffic:start(Options),
    ok = until(fun() -> maps:get(delivered, im_traffic:look(Run)) > Count end),
    im_traffic:stop(Run).

%% Whether there are clients.
%% @private
begun() ->
    lists:any(fun(Pid) -> proc_lib:translate_initial_call(Pid) =:= {im_client, init, 1} end, processes()).

%% How many messages the clients here have said.
%% @private
said() ->
    case [Pid || Pid <- processes(), proc_lib:translate_initial_call(Pid) =:= {im_traffic_node, init, 1}] of
        [Pid] -> maps:get(sent, im_traffic_node:call(Pid, look));
        [] -> 0
    end.

until(Is) -> until(Is, erlang:monotonic_time(millisecond) + ?LATE_MS).

until(Is, Deadline) ->
    case Is() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 20 -> until(Is, Deadline) end
    end.
