%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll matchstream run': a match before so many clients, on a service of its own, and whether each got all of it.
-module(atoll_cases_matchstream_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% The watcher's process ends by exit, with what it has to say.
-dialyzer({nowarn_function, watched/3}).

-define(CONNECT_MS, 300000).
-define(END_MS, 120000).
-define(LOOK_MS, 50).
%% Clients of one address, which has some twenty-eight thousand ports.
-define(PER_ADDRESS, 20000).

-spec summary() -> string().
summary() -> "play a match before many clients, and see whether each got all of it".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_matchstream:options() ++ [
        #{name => clients, short => $n, value => "N", default => "1000", read => atoll_cli_read:whole(1, 200000), help => "clients in all"},
        #{name => at_once, value => "C", default => "100", read => atoll_cli_read:whole(1, 20000), help => "that connect at a time"},
        #{name => script, value => "SCRIPT", default => "sample", help => "a script that comes with MatchStream, or a file"},
        #{name => speed, value => "X", default => "10", read => atoll_cli_read:number(0.01, 100000), help => "how many times as fast as in the script"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll matchstream run", "atoll matchstream run -n 4000 --at-once 400 --stage 3", "atoll matchstream run --store redis --without backlog --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{script := Given} = Values, []) ->
    case atoll_cases_matchstream:script(Given) of
        {ok, Script} ->
            {ok, _} = application:ensure_all_started(inets),
            atoll_cases_matchstream:with_service(Values, #{}, fun(Cluster) -> watched(Cluster, Script, Values) end);
        {error, Sentence} -> {usage, ["--script: ", Sentence]}
    end.

%% The clients come after the first event, the start: before it they would be sent away.
watched(Cluster, Script, #{clients := Count, at_once := AtOnce, speed := Speed} = Values) ->
    [{First, _, Base} | _] = Nodes = atoll_cases_matchstream:webs(Cluster),
    Own = self(),
    Wait = fun(2, _) -> Own ! {started, self()}, receive go -> ok end; (_, _) -> ok end,
    {Watcher, Ref} = spawn_monitor(fun() -> exit({played, matchstream_watcher:play(Base, Script, #{speed => Speed, before => Wait})}) end),
    receive
        {'DOWN', Ref, process, _, {played, {error, Error}}} -> {unable, matchstream_watcher:format_error(Error)};
        {'DOWN', Ref, process, _, Why} -> {unable, io_lib:format("The watcher has failed: ~0tP", [Why, 10])};
        {started, Watcher} ->
            {ok, [Id]} = atoll_cluster:call(Cluster, First, matchstream, matches, []),
            ok = atoll_cli_progress:now_doing("Clients connect"),
            Before = erlang:monotonic_time(millisecond),
            Viewers = matchstream_viewers:start(#{
                host => {127, 0, 0, 1}, ports => lists:append([Ports || {_, Ports, _} <- Nodes]), match => Id, count => Count, at_once => AtOnce,
                from => matchstream_viewers:parse_addresses(1 + Count div ?PER_ADDRESS)
            }),
            {ok, {Connected, _}} = matchstream_viewers:connected(Viewers, ?CONNECT_MS),
            ConnectMs = erlang:monotonic_time(millisecond) - Before,
            ok = following(Cluster, Connected, erlang:monotonic_time(millisecond) + ?END_MS),
            Memory = lists:sum([Bytes || {_, {ok, #{memory := Bytes}}} <- atoll_cluster:multicall(Cluster, matchstream, status, [])]),
            ok = atoll_cli_progress:now_doing("The match is played"),
            Watcher ! go,
            receive
                {'DOWN', Ref, process, _, {played, {ok, #{sent := Sent}}}} ->
                    Ended = matchstream_viewers:ended(Viewers, ?END_MS),
                    {ok, History} = atoll_cluster:call(Cluster, First, matchstream, history, [Id, 0]),
                    ok = atoll_cli_progress:done(),
                    judged(Ended, Script, History, Sent, #{connect_ms => ConnectMs, memory => Memory}, Values);
                {'DOWN', Ref, process, _, {played, {error, Error}}} -> {unable, matchstream_watcher:format_error(Error)};
                {'DOWN', Ref, process, _, Why} -> {unable, io_lib:format("The watcher has failed: ~0tP", [Why, 10])}
            end
    end.

%% Those that are connected are not yet served; some may never be.
following(Cluster, Connected, Deadline) ->
    Clients = lists:sum([N || {_, {ok, #{counts := #{clients := N}}}} <- atoll_cluster:multicall(Cluster, matchstream, status, [])]),
    case Clients >= Connected orelse erlang:monotonic_time(millisecond) >= Deadline of
        true -> ok;
        false ->
            receive after ?LOOK_MS -> ok end,
            following(Cluster, Connected, Deadline)
    end.

judged(timeout, _, _, _, _, _) -> {unable, "Some clients have not come to their end."};
judged({ok, Seen}, #{about := About}, History, Sent, Beside, Values) ->
    #{latencies := Latencies} = Verdict = matchstream_viewers:judge(Seen, #{about => About, history => History, sent => Sent}),
    Ms = fun(Percent) -> case Latencies of [] -> null; _ -> lists:nth(max(1, length(Latencies) * Percent div 100), Latencies) / 1000 end end,
    Said = maps:merge(maps:remove(latencies, Verdict), Beside#{events => length(History), p50_ms => Ms(50), p99_ms => Ms(99), max_ms => Ms(100)}),
    ok = case Values of
        #{json := true} -> atoll_cli_io:print([atoll_cli_json:encode({lists:sort(maps:to_list(Said))}), $\n]);
        #{} -> atoll_cli_io:print(atoll_cli_table:format([{left, ""}, {right, ""}], [[atom_to_list(Key), io_lib:format("~p", [Value])] || {Key, Value} <- lists:sort(maps:to_list(Said))]))
    end,
    case Verdict of
        #{complete := N, clients := N} -> ok;
        #{complete := N, clients := All} -> {failed, io_lib:format("Of ~b clients ~b have got all events of the match.", [All, N])}
    end.
