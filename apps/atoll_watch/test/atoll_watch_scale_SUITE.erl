%% SPDX-License-Identifier: Apache-2.0
%% What the watch of many nodes costs them and itself, in the deep tier: `bin/atoll watch' beside idle stock nodes, for a
%% while; `atoll_tier' has their number and how long. What was measured is in the log of the case.
-module(atoll_watch_scale_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([many_nodes_cost_what_is_promised/1]).

-import(atoll_watch_peers, [call/4, await/2]).

-define(LATE_MS, 60000).
-define(PERIOD_MS, 5000).
%% So many are started at once.
-define(STARTED, 4).

%% What is promised of 60 nodes; of more, the last two.
-define(NODE_SHARE, 0.015).
-define(WATCH_SHARE, 0.15).
-define(WATCH_BYTES, 150000000).
-define(ANSWER_MS, 200).

%% It compares times.
suite() -> [{timetrap, {minutes, 45}} | [{userdata, quiet} || atoll_tier:tier() =:= deep]].

all() ->
    [many_nodes_cost_what_is_promised || atoll_tier:tier() =:= deep].

many_nodes_cost_what_is_promised(_Config) ->
    {N, Seconds} = {atoll_tier:size(watched_nodes), atoll_tier:size(watched_s)},
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
    {Holder, [{_, First} | _] = Peers} = atoll_watch_peers:start(fun() -> started(N) end),
    try
        [true = call(Peer, net_kernel, connect_node, [First]) || Peer <- tl(Peers)],
        OsPids = [call(Peer, os, getpid, []) || Peer <- Peers],
        Links = fun() -> [lists:sort(call(Peer, erlang, nodes, [])) || Peer <- Peers] end,
        Before = Links(),
        [Idle] = spent([OsPids], Seconds),
        Watch = #{program := Program} = atoll_watch_web:started(Dir, First, Cookie, filename:join(Dir, "data"), atoll_test_port:free(), []),
        N = await(fun() -> #{<<"nodes">> := #{<<"up">> := Up}} = object("/api/v1/cluster", Watch), Up end, fun(Up) -> Up =:= N end),
        #{<<"counts">> := Counts0} = object("/api/v1/cluster", Watch),
        #{<<"items">> := Managers} = object("/api/v1/managers", Watch),
        Parts = [atoll_watch_web:vm(Watch) | [integer_to_list(OsPid) || #{<<"os_pid">> := OsPid} <- Managers]],
        Begun = erlang:monotonic_time(millisecond),
        [Busy, Own] = spent([OsPids, Parts], Seconds),
        Took = erlang:monotonic_time(millisecond) - Begun,
        Memory = [resident(OsPid) || OsPid <- Parts],
        #{<<"counts">> := Counts} = object("/api/v1/cluster", Watch),
        Answers = [{Path, lists:sort([took(Path, Watch) || _ <- lists:seq(1, 15)])}
                   || Path <- ["/api/v1/cluster", "/api/v1/nodes?limit=1000", "/api/v1/nodes?limit=50", "/api/v1/managers", "/api/v1/alarms", "/api/v1/topology", "/metrics",
                               ["/api/v1/nodes/", uri_string:quote(atom_to_list(First)), "/metrics"], "/api/v1/series?window=hour&metric=processes,memory_total&node=" ++ uri_string:quote(atom_to_list(First))]],
        Ages = [Now - At || {_, Node} <- Peers, {Now, #{<<"at_ms">> := At}} <- [{erlang:system_time(millisecond), object(["/api/v1/nodes/", uri_string:quote(atom_to_list(Node)), "/metrics?metric=processes"], Watch)}]],
        After = Links(),
        NodeShare = (Busy - Idle) / N / Seconds,
        WatchShare = Own / Seconds,
        ct:pal("~b nodes, ~b managers, ~.1f s~nof a scheduler of each node: ~.3f %~nof a core: ~.1f %~nmemory of the watch and its managers: ~w MB, ~.1f together~n"
               "milliseconds of answers, median and most: ~p~noldest look at a node: ~b ms~ncounted: ~p~nnodes of the managers: ~w~n",
               [N, length(Managers), Took / 1000, NodeShare * 100, WatchShare * 100, [Bytes div 1000000 || Bytes <- Memory], lists:sum(Memory) / 1000000,
                [{lists:flatten(Path), lists:nth(8, Each), lists:last(Each)} || {Path, Each} <- Answers], lists:max(Ages), Counts, [length(Its) || #{<<"nodes">> := Its} <- Managers]]),
        ?assertEqual(Before, After),
        ?assert(NodeShare =< ?NODE_SHARE, NodeShare),
        [?assert(WatchShare =< ?WATCH_SHARE andalso lists:sum(Memory) =< ?WATCH_BYTES, {WatchShare, Memory}) || N =< 60],
        %% The whole text for Prometheus, and the topology, which asks all nodes, are no answers of the page's.
        [?assert(lists:nth(8, Each) =< ?ANSWER_MS, {Path, Each}) || {Path, Each} <- Answers, Path =/= "/metrics", Path =/= "/api/v1/topology"],
        ?assert(lists:max(Ages) =< ?PERIOD_MS + ?PERIOD_MS div 2),
        ?assertEqual(maps:with([<<"missed">>, <<"overtaken">>], Counts0), maps:with([<<"missed">>, <<"overtaken">>], Counts)),
        ok = atoll_cli_os:signal(Program, "TERM"),
        #{status := 0} = atoll_cli_os:await_exit(Program, ?LATE_MS)
    after
        ok = atoll_watch_peers:stop(Holder),
        atoll_cli_os:remove_dir(Dir)
    end.

%% A few at a time: the start of a VM takes a processor.
started(0) -> [];
started(N) ->
    Self = self(),
    Some = min(N, ?STARTED),
    Pids = [spawn_link(fun() ->
        Peer = atoll_watch_peers:watched(["-connect_all", "false", "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]),
        Self ! {self(), Peer},
        receive never -> ok end
    end) || _ <- lists:seq(1, Some)],
    %% Before the others: what stands behind a comprehension and `++' is evaluated first.
    Peers = [receive {Pid, Peer} -> Peer end || Pid <- Pids],
    Peers ++ started(N - Some).

object(Path, Watch) ->
    {200, _, Object} = atoll_watch_web:get(Path, Watch),
    Object.

took(Path, Watch) ->
    {Us, {200, _, _}} = timer:tc(fun() -> atoll_watch_web:raw(#{method => "GET", path => Path, headers => [atoll_watch_web:bearer(Watch)]}, Watch) end),
    Us div 1000.

resident(OsPid) ->
    {ok, Status} = file:read_file(["/proc/", OsPid, "/status"]),
    {match, [Kb]} = re:run(Status, "VmRSS:\\s+([0-9]+) kB", [{capture, [1], list}]),
    list_to_integer(Kb) * 1024.

%% Seconds of processor time of the processes of each group, in so many seconds.
spent(Groups, Seconds) ->
    Ran = fun() -> [lists:sum([ran(OsPid) || OsPid <- OsPids]) || OsPids <- Groups] end,
    Before = Ran(),
    receive after Seconds * 1000 -> ok end,
    [(Now - Then) / 1.0e9 || {Now, Then} <- lists:zip(Ran(), Before)].

ran(OsPid) ->
    lists:sum([begin {ok, Text} = file:read_file(File), [Ns | _] = string:lexemes(binary_to_list(Text), " "), list_to_integer(Ns) end
               || File <- filelib:wildcard(lists:concat(["/proc/", OsPid, "/task/*/schedstat"]))]).
