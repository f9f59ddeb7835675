%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll matchstream run': a match before so many clients, on a service of its own, and whether each got all of it.
-module(atoll_cases_matchstream_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% The watcher's process ends by exit, with what it has to say.
-dialyzer({nowarn_function, [begun/5, played/5]}).

-define(CONNECT_MS, 300000).
-define(END_MS, 60000).
-define(LOOK_MS, 50).
%% Clients that are connected and not served: some may never be.
-define(STILL_MS, 5000).

-spec summary() -> string().
summary() -> "play a match before many clients, and see whether each got all of it".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_matchstream:options() ++ [
        #{name => clients, short => $n, value => "N", default => "1000", read => atoll_cli_read:whole(1, 200000), help => "clients in all"},
        #{name => at_once, value => "C", default => "100", read => atoll_cli_read:whole(1, 20000), help => "that connect at a time"},
        #{name => loaders, value => "N", default => "0", read => atoll_cli_read:whole(0, 64), help => "programs that hold the clients: one has no more files than the system allows; 0 is this one alone"},
        #{name => slow, value => "N", default => "0", read => atoll_cli_read:whole(0, 20000), help => "further clients, that read nothing"},
        #{name => script, value => "SCRIPT", default => "sample", help => "a script that comes with MatchStream, or a file"},
        #{name => events, value => "N", read => atoll_cli_read:whole(1, 9000), help => "in place of a script: a match of so many events, long ones, a second from one to the next"},
        #{name => speed, value => "X", default => "10", read => atoll_cli_read:number(0.01, 100000), help => "how many times as fast as in the script"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll matchstream run", "atoll matchstream run -n 4000 --at-once 400 --stage 3", "atoll matchstream run --store redis --without backlog --json",
        "atoll matchstream run -n 10000 --slow 500 --events 300 --speed 4", "atoll matchstream run --nodes 4 -n 75000 --loaders 4 --at-once 2000"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{loaders := Loaders} = Values, []) ->
    case script(Values) of
        {ok, Script} ->
            {ok, _} = application:ensure_all_started(inets),
            atoll_cases_matchstream:with_service(Values, #{}, fun(Cluster) ->
                atoll_cases_matchstream_crowd:with_loaders(Loaders, fun(Crowd) -> begun(atoll_bench_matchstream_run:webs(Cluster), Cluster, Crowd, Script, Values) end)
            end);
        {error, Sentence} -> {usage, ["--script: ", Sentence]}
    end.

script(#{events := Count}) -> {ok, matchstream_script:made(Count)};
script(#{script := Given}) -> atoll_cases_matchstream:script(Given).

%% The clients come after the first event, the start: before it they would be sent away.
begun([{First, _, Base} | Others] = Nodes, Cluster, Loaders, Script, #{speed := Speed} = Values) ->
    Own = self(),
    Wait = fun(2, _) -> Own ! {started, self()}, receive go -> ok end; (_, _) -> ok end,
    Options = #{speed => Speed, before => Wait, others => [Web || {_, _, Web} <- Others]},
    {Watcher, Ref} = spawn_monitor(fun() -> exit({played, matchstream_watcher:play(Base, Script, Options)}) end),
    receive
        {'DOWN', Ref, process, _, Why} -> unplayed(Why);
        {started, Watcher} ->
            {ok, [Id]} = atoll_cluster:call(Cluster, First, matchstream, matches, []),
            Ports = lists:append([Is || {_, Is, _} <- Nodes]),
            {Crowd, Beside} = gathered(Cluster, Loaders, #{host => {127, 0, 0, 1}, ports => Ports, match => Id}, Values),
            ok = atoll_cli_progress:now_doing("The match is played"),
            Watcher ! go,
            played(Ref, {Cluster, First, Id}, Crowd, Script, {Beside, Values})
    end.

unplayed({played, {error, Error}}) -> {unable, matchstream_watcher:format_error(Error)};
unplayed(Why) -> {unable, io_lib:format("The watcher has failed: ~0tP", [Why, 10])}.

%% The clients, and what is to be said of how they came.
gathered(Cluster, Loaders, Options, #{clients := Count, slow := Slow, at_once := AtOnce}) ->
    ok = atoll_cli_progress:now_doing("Clients connect"),
    _ = [
        begin
            Silent = atoll_cases_matchstream_crowd:start(Loaders, Options#{count => Slow, at_once => AtOnce, does => read_nothing}),
            atoll_cases_matchstream_crowd:connected(Silent, ?CONNECT_MS)
        end
     || Slow > 0
    ],
    ok = following(Cluster, Slow),
    Memory = sum(memory, Cluster),
    Before = erlang:monotonic_time(millisecond),
    Crowd = atoll_cases_matchstream_crowd:start(Loaders, Options#{count => Count, at_once => AtOnce}),
    {Connected, _} = atoll_cases_matchstream_crowd:connected(Crowd, ?CONNECT_MS),
    Ms = erlang:monotonic_time(millisecond) - Before,
    ok = following(Cluster, Connected + Slow),
    Now = sum(memory, Cluster),
    {Crowd, #{connect_ms => Ms, memory => Now, bytes_each => (Now - Memory) div max(1, Connected)}}.

played(Ref, {Cluster, First, Id}, Crowd, #{about := About}, {Beside, Values}) ->
    receive
        {'DOWN', Ref, process, _, {played, {ok, #{sent := Sent, again := Again}}}} ->
            {ok, History} = atoll_cluster:call(Cluster, First, matchstream, history, [Id, 0]),
            Ended = atoll_cases_matchstream_crowd:verdict(Crowd, #{about => About, history => History, sent => Sent}, ?END_MS),
            ok = atoll_cli_progress:done(),
            said(Ended, Beside#{events => length(History), sent_again => Again, slow_closed => sum(slow, Cluster)}, Values);
        {'DOWN', Ref, process, _, Why} -> unplayed(Why)
    end.

sum(memory, Cluster) -> lists:sum([Bytes || {_, {ok, #{memory := Bytes}}} <- statuses(Cluster)]);
sum(Name, Cluster) -> lists:sum([maps:get(Name, Counts) || {_, {ok, #{counts := Counts}}} <- statuses(Cluster)]).

statuses(Cluster) -> atoll_cluster:multicall(Cluster, matchstream, status, []).

%% Those that are connected are not yet served. One that is refused never is, and one that is never accepted: it is waited for
%% as long as something happens.
following(Cluster, Connected) -> following(Cluster, Connected, 0, erlang:monotonic_time(millisecond)).

following(Cluster, Connected, Before, Since) ->
    Done = sum(clients, Cluster) + sum(refused, Cluster),
    Now = erlang:monotonic_time(millisecond),
    if
        Done >= Connected; Done =:= Before, Now - Since > ?STILL_MS -> ok;
        true ->
            receive after ?LOOK_MS -> ok end,
            following(Cluster, Connected, Done, case Done of Before -> Since; _ -> Now end)
    end.

said(timeout, _, _) -> {unable, "Some clients have not come to their end."};
said({ok, #{latencies := Latencies, complete := Complete, clients := All} = Verdict}, Beside, Values) ->
    Ms = fun(Percent) -> case Latencies of [] -> null; _ -> lists:nth(max(1, length(Latencies) * Percent div 100), Latencies) / 1000 end end,
    Said = maps:merge(maps:remove(latencies, Verdict), Beside#{p50_ms => Ms(50), p99_ms => Ms(99), max_ms => Ms(100)}),
    ok = case Values of
        #{json := true} -> atoll_cli_io:print([atoll_cli_json:encode({lists:sort(maps:to_list(Said))}), $\n]);
        #{} -> atoll_cli_io:print(atoll_cli_table:format([{left, ""}, {right, ""}], [[atom_to_list(Key), io_lib:format("~p", [Value])] || {Key, Value} <- lists:sort(maps:to_list(Said))]))
    end,
    case Complete of
        All -> ok;
        _ -> {failed, io_lib:format("Of ~b clients ~b have got all events of the match.", [All, Complete])}
    end.
