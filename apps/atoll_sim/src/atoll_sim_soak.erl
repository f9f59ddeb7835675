%% SPDX-License-Identifier: Apache-2.0
%% @doc The long run of simulations: each goal of the overlay with what was
%% measured. `make goals' runs it, and `make soak' with one seed; with 20 seeds it takes
%% some hours on two cores.
-module(atoll_sim_soak).

-export([main/0]).

-define(MAX_SEEDS, 1000).
-define(MAX_BYTES, (4 * ?GIB)).
%% Where each node has a table of all, or there are ten times as many.
-define(MAX_BYTES_LARGE, (16 * ?GIB)).
%% What one of the former takes, or 10,000 nodes with trees of ten senders.
-define(MAX_BYTES_FULL, (8 * ?GIB)).
-define(GIB, (1024 * 1024 * 1024)).
%% They take several gigabytes, and longer than all others together.
-define(BY_NAME, [deaths, large]).

%% @doc Runs the goals, a row as each is done, and ends the VM: with 0 if every one
%% was reached, with 1 if one was not, with 2 if it was asked for something else.
%% Plain arguments are the number of seeds, and the names of goals with commas
%% between them; all but the two largest if there are none.
-spec main() -> no_return().
main() ->
    %% A run that is told to end is no success.
    ok = os:set_signal(sigterm, default),
    case asked(init:get_plain_arguments()) of
        {ok, Goals} ->
            Reached = [IsReached || {_, Bounds, Parts} <- Goals, IsReached <- done(Bounds, Parts)],
            halt(
                case lists:member(false, Reached) of
                    false -> 0;
                    true -> 1
                end
            );
        {error, Sentence} ->
            io:put_chars(standard_error, [Sentence, $\n]),
            halt(2)
    end.

asked([Seeds, Goals]) ->
    case string:to_integer(Seeds) of
        {N, []} when is_integer(N), N > 0, N =< ?MAX_SEEDS -> chosen(string:lexemes(Goals, ","), goals(N));
        _ -> {error, io_lib:format("SEEDS must be a whole number from 1 to 1,000, not \"~ts\"", [Seeds])}
    end.

chosen([], Goals) ->
    {ok, [Goal || {Name, _, _} = Goal <- Goals, not lists:member(Name, ?BY_NAME)]};
chosen(Names, Goals) ->
    Known = [atom_to_list(Name) || {Name, _, _} <- Goals],
    case Names -- Known of
        [] -> {ok, [Goal || {Name, _, _} = Goal <- Goals, lists:member(atom_to_list(Name), Names)]};
        [Strange | _] -> {error, ["GOALS has no \"", Strange, "\"; there are ", lists:join(", ", Known)]}
    end.

done(alone, Parts) ->
    [report(Part()) || Part <- Parts];
done(#{} = Bounds, Parts) ->
    atoll_sim_parallel:map(fun(Part) -> report(Part()) end, Parts, Bounds).

%% Whether all were reached.
report(Rows) ->
    [
        io:format("~-8s ~ts: ~ts~n", [
            case IsReached of
                true -> "reached";
                false -> "MISSED"
            end,
            Goal,
            Measured
        ])
     || {Goal, IsReached, Measured} <- Rows
    ],
    lists:all(fun({_, IsReached, _}) -> IsReached end, Rows).

%% Each in one part, or in several whose rows are printed as they are done: one after the other, or side by side
%% within bounds.
goals(Seeds) ->
    [
        {kills, alone, [fun() -> kills(Seeds) end]},
        {deaths, #{bytes => ?MAX_BYTES_FULL}, [
            fun() -> deaths(Seed, Share) end
         || Seed <- lists:seq(1, Seeds), Share <- [0.95, 0.9, 0.8]
        ]},
        {large, alone, [fun large/0]},
        {storms, alone, [fun() -> storms(Seeds * 100) end]},
        {broadcast, #{bytes => ?MAX_BYTES_FULL}, [
            fun() -> broadcast(Senders, Churn) end
         || {Senders, Churn} <- [{10, 0.0}, {1, 0.0}, {1, 0.01}]
        ]},
        {return, alone, [fun return/0]},
        {detection, #{}, [fun() -> detection(Seed) end || Seed <- lists:seq(7, 6 + Seeds)]},
        {load, alone, [fun load/0]},
        {scamp, alone, [fun scamp/0]},
        {xbot, alone, [fun xbot/0]},
        {memory, alone, [fun memory/0]},
        {membership, alone, [fun membership/0]},
        {speed, alone, [fun speed/0]}
    ].

%% One growth serves three kills. It is about the strategy's links: no table of 10,000 on each
%% of 10,000 nodes, here and in what else has as many.
kills(Seeds) ->
    Shares = [{0.8, 1.0}, {0.9, 0.995}, {0.95, 0.93}],
    Results = atoll_sim_parallel:map(
        fun(Seed) ->
            Grown = grow(#{nodes => 10000, seed => Seed, roster => off}),
            atoll_sim_overlay:strikes([Share || {Share, _} <- Shares], contacts, Grown)
        end,
        lists:seq(1, Seeds),
        #{bytes => ?MAX_BYTES, nodes => 10000, roster => off}
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

%% What ships: each of 10,000 nodes has a table of all, and contacts die as others do. It takes some gigabytes. That
%% tables fill is seen with fewer.
deaths(Seed, Share) ->
    Options = #{nodes => 10000, seed => Seed, full_rosters => true},
    {#{rejoined_ms := Rejoined, connected_after := Connected}, Most} = most(fun() ->
        atoll_sim_cluster:isolated(fun() -> atoll_sim_overlay:strike(Share, nobody, grow(Options)) end, Options)
    end),
    Name = io_lib:format("10,000 nodes with a roster, seed ~b, ~b % killed, contacts too", [Seed, round(100 * Share)]),
    [
        {Name, Rejoined =< 60000, io_lib:format("~.6f connected after 20 s, all after ~p ms", [Connected, Rejoined])},
        {[Name, ", memory of the VM"], Most =< ?MAX_BYTES_LARGE, io_lib:format("~.2f GiB at most", [gib(Most)])}
    ].

%% A table of all on each would be ten thousand million entries; without it only contacts are left to join by.
large() ->
    Options = #{nodes => 100000, seed => 7, roster => off},
    Begin = erlang:monotonic_time(second),
    {#{rejoined_ms := Rejoined, connected_after := Connected}, Most} = most(fun() ->
        atoll_sim_cluster:isolated(fun() -> atoll_sim_overlay:strike(0.8, contacts, grow(Options)) end, Options)
    end),
    Seconds = erlang:monotonic_time(second) - Begin,
    [
        {"100,000 nodes, 80 % killed", Rejoined =< 60000,
            io_lib:format("~.6f connected after 20 s, all after ~p ms; it took ~b s", [Connected, Rejoined, Seconds])},
        {"100,000 nodes, memory of the VM", Most =< ?MAX_BYTES_LARGE, io_lib:format("~.2f GiB at most", [gib(Most)])}
    ].

%% Islands have as long as the beacon takes.
storms(Seeds) ->
    Islands = atoll_sim_parallel:map(
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

broadcast(Senders, Churn) ->
    Options = #{nodes => 10000, messages => 200, senders => Senders, churn => Churn, seed => 7, roster => off},
    {ok, #{delivered := Delivered, redundancy := Redundancy, hops_max := Hops, latency_ms_p99 := P99}} =
        atoll_sim_cluster:isolated(fun() -> atoll_sim_broadcast:run(Options) end, Options),
    IsReached =
        case Churn of
            +0.0 -> Delivered == 1 andalso Redundancy =< 0.01 andalso Hops =< 12;
            _ -> Delivered >= 0.999
        end,
    [{io_lib:format("broadcast, 10,000 nodes, ~b senders, churn ~p", [Senders, Churn]), IsReached,
        io_lib:format("delivered ~.6f, redundancy ~.4f, ~b hops, p99 ~p ms", [Delivered, Redundancy, Hops, P99])}].

%% Broadcast alone: without detection, which would bury it, and without what follows from that: to a new life nothing of this is owed.
%% What one exchange brings is delivered in one moment.
return() ->
    {Healed, Delivered} = atoll_sim_cluster:isolated(fun() ->
        Grown = grow(#{nodes => 1000, seed => 7, detector => off, roster => off}),
        [Sender | Others] = atoll_sim_cluster:names(Grown),
        Lone = lists:last(Others),
        Built = send(lists:seq(1, 30), Sender, Grown),
        Cut = atoll_sim_cluster:update(
            fun(W) -> atoll_sim_world:set({partition, [[Lone], [Sender | Others] -- [Lone]]}, W) end,
            atoll_sim_cluster:watch({fun(Now, Node, Sight, Kept) -> delivered(Lone, Now, Node, Sight, Kept) end, []}, Built)
        ),
        Behind = send(lists:seq(31, 90), Sender, Cut),
        Whole = atoll_sim_cluster:update(fun(W) -> atoll_sim_world:set(heal, W) end, Behind),
        {atoll_sim_cluster:now(Whole), atoll_sim_cluster:watched(atoll_sim_cluster:wait(30000, Whole))}
    end),
    Times = lists:usort([Ms - Healed || {Ms, _} <- Delivered]),
    IsAll = lists:sort([Id || {_, Id} <- Delivered]) =:= lists:seq(31, 90),
    [{"cut off for 60 s, all that was missed in one exchange", IsAll andalso length(Times) =:= 1,
        io_lib:format("~b of 60 broadcasts, ~w ms after the heal", [length(Delivered), Times])}].

%% One a second.
send(Ids, Sender, Cluster) ->
    lists:foldl(
        fun(Id, C) ->
            Sent = atoll_sim_cluster:update(fun(W) -> atoll_sim_world:cast(Sender, {broadcast, Id}, W) end, C),
            atoll_sim_cluster:wait(1000, Sent)
        end,
        Cluster,
        Ids
    ).

delivered(Node, Now, Node, {notice, {broadcast, _, Id}}, Kept) -> [{Now, Id} | Kept];
delivered(_Lone, _Now, _Node, _Sight, Kept) -> Kept.

detection(Seed) ->
    #{detect_ms_p50 := P50, detect_ms_p99 := P99, false_deaths := False, missed := Missed, silent := Silent} =
        detect(#{nodes => 1000, minutes => 60, seed => Seed}),
    [{io_lib:format("detection, 1,000 nodes, an hour, seed ~b", [Seed]), P99 =< 6000 andalso False =:= 0 andalso Missed =:= 0,
        io_lib:format("~b silent, p50 ~p ms, p99 ~p ms, ~b false deaths, ~b missed", [Silent, P50, P99, False, Missed])}].

load() ->
    [#{messages_per_node_per_s := Few}, #{messages_per_node_per_s := Many}] =
        atoll_sim_parallel:map(
            fun(Nodes) -> detect(#{nodes => Nodes, minutes => 2, roster => off, seed => 7}) end, [100, 10000], #{bytes => ?MAX_BYTES}
        ),
    [{"load per node at 10,000 nodes against 100", abs(Many / Few - 1) =< 0.1,
        io_lib:format("~.2f and ~.2f messages a second", [Many, Few])}].

detect(Options) ->
    Run = fun() -> atoll_sim_detect:run(Options#{loss => 0.05, pause => 2000, paused => 0.05}) end,
    {ok, Result} = atoll_sim_cluster:isolated(Run, Options),
    Result.

scamp() ->
    Goal = 6 * math:log(1000),
    Views = atoll_sim_parallel:map(
        fun(Seed) ->
            Grown = grow(#{
                nodes => 1000, strategy => scamp, seed => Seed, starts_per_s => 3, broadcast => off, detector => off,
                roster => off
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
    [Without, With] = atoll_sim_parallel:map(
        fun(Xbot) ->
            Options = #{nodes => 400, seed => 7, latency => regions, settle_ms => 300000, options => #{xbot => Xbot}},
            atoll_sim_overlay:strike(0.0, contacts, grow(Options))
        end,
        [false, true]
    ),
    #{link_ms_mean := Long, active_mean := Degree0} = Without,
    #{link_ms_mean := Short, active_mean := Degree, connected_after := Connected} = With,
    [
        {"X-BOT, four regions, mean latency of a link", Short =< 0.8 * Long andalso Connected == 1,
            io_lib:format("~.1f ms, ~.1f without", [Short, Long])},
        {"X-BOT, four regions, equal degree", abs(Degree / Degree0 - 1) =< 0.05,
            io_lib:format("~.2f neighbours on average, ~.2f without", [Degree, Degree0])}
    ].

memory() ->
    Before = held(),
    {_, Most} = most(fun() ->
        Options = #{nodes => 10000, seed => 7, roster => off},
        atoll_sim_cluster:isolated(fun() -> atoll_sim_cluster:now(grow(Options)) end, Options)
    end),
    [{"10,000 nodes, memory of the VM", Most =< ?MAX_BYTES,
        io_lib:format("~.2f GiB at most, ~.2f before", [gib(Most), gib(Before)])}].

%% What the whole VM has at most meanwhile, looked at ten times a second: also while a heap is
%% being copied.
most(Fun) ->
    Sampler = spawn_link(fun() -> sample(held()) end),
    Result = Fun(),
    Sampler ! {most, self()},
    receive
        {most, Sampler, Most} -> {Result, Most}
    end.

sample(Most) ->
    receive
        {most, Asker} -> Asker ! {most, self(), Most}
    after 100 -> sample(max(Most, held()))
    end.

%% In pages that are there: a heap that has just been made is larger than what is in it. Where the system does
%% not say, what the VM has set aside.
held() ->
    case file:read_file("/proc/self/status") of
        {ok, Lines} ->
            {match, [KiB]} = re:run(Lines, "VmRSS:\\s+([0-9]+) kB", [{capture, [1], list}]),
            list_to_integer(KiB) * 1024;
        {error, _} ->
            erlang:memory(total)
    end.

gib(Bytes) -> Bytes / ?GIB.

%% One core, nothing else running. Nobody but the contact is told to join by it.
membership() ->
    {_, VirtualMs, WallMs} = timed(300000, fun() ->
        Alone = grow(#{
            nodes => 1000, seed => 7, detector => off, broadcast => off, discovery => off, roster => off, settle_ms => 0
        }),
        [Contact | Others] = atoll_sim_cluster:names(Alone),
        Join = fun(Node, C) ->
            Told = atoll_sim_cluster:update(fun(W) -> atoll_sim_world:cast(Node, {join, [Contact]}, W) end, C),
            atoll_sim_cluster:wait(1, Told)
        end,
        Joined = atoll_sim_cluster:wait(60000, lists:foldl(Join, Alone, Others)),
        true = atoll_sim_graph:connected(atoll_sim_cluster:neighbours(Joined)) > 0.99,
        Joined
    end),
    Times = VirtualMs / WallMs,
    [{"1,000 nodes, HyParView alone", Times >= 200, io_lib:format("~b x real time", [round(Times)])}].

%% One core, nothing else running.
speed() ->
    {Events, _, WallMs} = timed(60000, fun() -> grow(#{nodes => 1000, seed => 7}) end),
    Rate = Events * 1000 div WallMs,
    [{"1,000 nodes, all protocols", Rate >= 150000, io_lib:format("~b events a second", [Rate])}].

%% What happens in so long, and what that takes.
timed(VirtualMs, Grow) ->
    atoll_sim_cluster:isolated(fun() ->
        Grown = Grow(),
        Begin = erlang:monotonic_time(millisecond),
        Later = atoll_sim_cluster:wait(VirtualMs, Grown),
        WallMs = max(1, erlang:monotonic_time(millisecond) - Begin),
        #{events := Before} = atoll_sim_cluster:counters(Grown),
        #{events := After} = atoll_sim_cluster:counters(Later),
        {After - Before, VirtualMs, WallMs}
    end).

grow(Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(Options),
    atoll_sim_cluster:grow(Cluster).
