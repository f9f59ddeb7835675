%% @doc The long run of simulations: each goal of the overlay with what was
%% measured. `make soak' runs it; it takes an hour or two on two cores.
-module(atoll_sim_soak).

-export([main/0]).

%% @doc Runs all, a row as each is done, and ends the VM: with 0 if every goal was
%% reached. The number of seeds is the first plain argument, 20 without.
-spec main() -> no_return().
main() ->
    Seeds =
        case init:get_plain_arguments() of
            [N | _] -> list_to_integer(N);
            [] -> 20
        end,
    Reached = [report(Goal()) || Goal <- goals(Seeds)],
    halt(
        case lists:all(fun lists_all/1, Reached) of
            true -> 0;
            false -> 1
        end
    ).

lists_all(Goals) ->
    lists:all(fun(IsReached) -> IsReached end, Goals).

report(Rows) ->
    [
        begin
            Mark =
                case IsReached of
                    true -> "reached";
                    false -> "MISSED"
                end,
            io:format("~-8s ~ts: ~ts~n", [Mark, Goal, Measured]),
            IsReached
        end
     || {Goal, IsReached, Measured} <- Rows
    ].

goals(Seeds) ->
    [fun() -> kills(Seeds) end, fun() -> storms(Seeds * 100) end, fun broadcasts/0] ++
        [fun detection/0, fun load/0, fun scamp/0, fun xbot/0, fun speed/0].

%% One growth serves three kills.
kills(Seeds) ->
    Shares = [{0.8, 1.0}, {0.9, 0.995}, {0.95, 0.93}],
    Results = parallel(
        fun(Seed) ->
            Grown = grow(#{nodes => 10000, seed => Seed}),
            [atoll_sim_overlay:strike(Share, Grown) || {Share, _} <- Shares]
        end,
        lists:seq(1, Seeds)
    ),
    lists:append([
        begin
            Each = [lists:nth(N, Of) || Of <- Results],
            After = [Connected || #{connected_after := Connected} <- Each],
            Rejoined = [Ms || #{rejoined_ms := Ms} <- Each],
            Name = io_lib:format("10,000 nodes, ~b % killed, ~b seeds", [round(100 * Share), Seeds]),
            [
                {[Name, ", connected"], lists:min(After) >= Goal,
                    io_lib:format("~.4f at least, ~.4f on average (goal ~p)", [
                        lists:min(After), atoll_sim_stats:mean(After), Goal
                    ])},
                {[Name, ", all again"], not lists:member(never, Rejoined),
                    io_lib:format("after ~p ms at most", [lists:max(Rejoined)])}
            ]
        end
     || {N, {Share, Goal}} <- lists:zip([1, 2, 3], Shares)
    ]).

%% Islands have as long as the beacon takes.
storms(Seeds) ->
    Islands = parallel(
        fun(Seed) ->
            Options = #{
                nodes => 50 + (Seed * 37) rem 151, seed => Seed, starts_per_s => 100000, broadcast => off
            },
            Grown = grow(Options#{settle_ms => 60000}),
            IsOne = fun(Cluster) -> atoll_sim_graph:connected(atoll_sim_cluster:neighbours(Cluster)) == 1 end,
            case IsOne(Grown) orelse IsOne(atoll_sim_cluster:wait(120000, Grown)) of
                true -> none;
                false -> Seed
            end
        end,
        lists:seq(1, Seeds)
    ),
    Lasting = [Seed || Seed <- Islands, Seed =/= none],
    [{io_lib:format("storms of 50 to 200 nodes, ~b seeds", [Seeds]), Lasting =:= [],
        io_lib:format("lasting islands with the seeds ~w", [Lasting])}].

broadcasts() ->
    Results = parallel(
        fun({Senders, Churn}) ->
            {ok, Result} = atoll_sim_broadcast:run(#{
                nodes => 10000, messages => 200, senders => Senders, churn => Churn, seed => 7
            }),
            {Senders, Churn, Result}
        end,
        [{1, 0.0}, {10, 0.0}, {1, 0.01}]
    ),
    [
        begin
            #{delivered := Delivered, redundancy := Redundancy, hops_max := Hops} = Result,
            IsReached =
                case Churn of
                    +0.0 -> Delivered == 1 andalso Redundancy =< 0.1 andalso Hops =< 12;
                    _ -> Delivered >= 0.999
                end,
            {io_lib:format("broadcast, 10,000 nodes, ~b senders, churn ~p", [Senders, Churn]), IsReached,
                io_lib:format("delivered ~.6f, redundancy ~.4f, ~b hops, p99 ~p ms", [
                    Delivered, Redundancy, Hops, maps:get(latency_ms_p99, Result)
                ])}
        end
     || {Senders, Churn, Result} <- Results
    ].

detection() ->
    #{detect_ms_p50 := P50, detect_ms_p99 := P99, false_deaths := False, missed := Missed} = detect(1000, 60),
    [{"detection, 1,000 nodes, an hour", P99 =< 6000 andalso False =:= 0 andalso Missed =:= 0,
        io_lib:format("p50 ~p ms, p99 ~p ms, ~b false deaths, ~b missed", [P50, P99, False, Missed])}].

load() ->
    [#{messages_per_node_per_s := Few}, #{messages_per_node_per_s := Many}] =
        parallel(fun(Nodes) -> detect(Nodes, 2) end, [100, 10000]),
    [{"load per node at 10,000 nodes against 100", abs(Many / Few - 1) =< 0.1,
        io_lib:format("~.2f and ~.2f messages a second", [Many, Few])}].

detect(Nodes, Minutes) ->
    {ok, Result} = atoll_sim_cluster:isolated(fun() ->
        atoll_sim_detect:run(#{
            nodes => Nodes, loss => 0.05, pause => 2000, paused => 0.05, minutes => Minutes, seed => 7
        })
    end),
    Result.

scamp() ->
    Goal = 6 * math:log(1000),
    Views = parallel(
        fun(Seed) ->
            Grown = grow(#{
                nodes => 1000, strategy => scamp, seed => Seed, starts_per_s => 3, broadcast => off, detector => off,
                discovery => #{}
            }),
            Sizes = [
                map_get(out, map_get(strategy, atoll_overlay_core:summary(atoll_sim_cluster:overlay(Node, Grown))))
             || Node <- atoll_sim_cluster:names(Grown)
            ],
            atoll_sim_stats:mean(Sizes)
        end,
        [1, 2]
    ),
    [{"scamp, mean view at 1,000 nodes", lists:all(fun(Mean) -> abs(Mean / Goal - 1) =< 0.25 end, Views),
        io_lib:format("~w (goal ~.1f)", [Views, Goal])}].

xbot() ->
    [Without, With] = parallel(
        fun(Xbot) ->
            Options = #{nodes => 400, seed => 7, latency => regions, settle_ms => 300000, options => #{xbot => Xbot}},
            atoll_sim_overlay:strike(0.0, grow(Options))
        end,
        [false, true]
    ),
    #{link_ms_mean := Long, active_mean := Degree0} = Without,
    #{link_ms_mean := Short, active_mean := Degree, connected_after := Connected} = With,
    [{"X-BOT, four regions, mean latency of a link", Short =< 0.8 * Long andalso Connected == 1,
        io_lib:format("~.1f ms, ~.1f without; degree ~.2f, ~.2f without", [Short, Long, Degree, Degree0])}].

%% One core, nothing else running.
speed() ->
    {Events, Wall} = atoll_sim_cluster:isolated(fun() ->
        {ok, Cluster} = atoll_sim_cluster:new(#{nodes => 1000, seed => 7}),
        Grown = atoll_sim_cluster:grow(Cluster),
        Begin = erlang:monotonic_time(millisecond),
        Later = atoll_sim_cluster:wait(60000, Grown),
        #{events := Before} = atoll_sim_cluster:counters(Grown),
        #{events := After} = atoll_sim_cluster:counters(Later),
        {After - Before, erlang:monotonic_time(millisecond) - Begin}
    end),
    Rate = Events * 1000 div Wall,
    [{"1,000 nodes, all protocols", Rate >= 150000, io_lib:format("~b events a second", [Rate])}].

grow(Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(Options),
    atoll_sim_cluster:grow(Cluster).

%% As many at a time as there are schedulers, the results in order.
parallel(Fun, Inputs) ->
    parallel(Fun, Inputs, erlang:system_info(schedulers_online), []).

parallel(_Fun, [], _Free, Running) ->
    [wait(Job) || Job <- lists:reverse(Running)];
parallel(Fun, Inputs, Free, Running) when length(Inputs) > Free ->
    {Now, Later} = lists:split(Free, Inputs),
    Done = parallel(Fun, Now, Free, Running),
    Done ++ parallel(Fun, Later, Free, []);
parallel(Fun, [Input | Inputs], Free, Running) ->
    Caller = self(),
    Tag = make_ref(),
    {_, Ref} = spawn_monitor(fun() -> Caller ! {Tag, atoll_sim_cluster:isolated(fun() -> Fun(Input) end)} end),
    parallel(Fun, Inputs, Free, [{Tag, Ref} | Running]).

wait({Tag, Ref}) ->
    receive
        {Tag, Result} ->
            true = erlang:demonitor(Ref, [flush]),
            Result;
        {'DOWN', Ref, process, _, Reason} ->
            exit(Reason)
    end.
