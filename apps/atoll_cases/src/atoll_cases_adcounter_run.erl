%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll adcounter run': one run of the advertisement counter, on real nodes of its own or on simulated ones, and whether it came out as
%% promised.
-module(atoll_cases_adcounter_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(PER_CLIENT, 10).
%% Of more simulated nodes the command sees by itself who has seen the end.
-define(REPORTING, 200).

-spec summary() -> string().
summary() -> "count advertisements on clients until they are disabled".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => nodes, value => "N", default => "12", read => atoll_cli_read:whole(2, 100000), help => "nodes, of which one is the server"},
        #{name => mode, value => "MODE", default => "peer", read => atoll_cli_read:one_of([server, peer]),
          help => "server: all clients with the server; peer: over HyParView"},
        #{name => how, value => "HOW", default => "delta", read => atoll_cli_read:one_of([state, delta]), help => "what replicas send each other"},
        #{name => simulated, help => "in virtual time"},
        #{name => ads, value => "N", default => "1", read => atoll_cli_read:whole(1, 100), help => "advertisements"},
        #{name => budget, value => "N", read => atoll_cli_read:whole(1, 10000000),
          help => "how often each may be shown (10 times for each client unless told)"},
        #{name => interval, value => "S", default => "1", read => atoll_cli_read:number(0.01, 86400), help => "seconds from one impression of a client to the next"},
        #{name => propagation, value => "S", default => "0.5", read => atoll_cli_read:number(0.01, 3600), help => "seconds after which a replica tells what is new"},
        #{name => offline, value => "PERCENT", default => "0", read => atoll_cli_read:whole(0, 90), help => "part of the time that a client is off line"},
        #{name => triggers, value => "WHO", default => "server", read => atoll_cli_read:one_of([server, all]), help => "who disables an advertisement at its limit"},
        (atoll_cli_again:seed())#{help => "with --simulated, what all chance is drawn from (1 unless told)"},
        atoll_cli_json:switch()
        | atoll_deploy_cluster:options()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll adcounter run --nodes 20 --mode peer --how delta",
        "atoll adcounter run --mode server --how state --offline 30",
        "atoll adcounter run --simulated --nodes 1000 --seed 7 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{simulated := false, seed := _}, []) ->
    {usage, "--seed is for --simulated"};
run(#{simulated := true} = Values, []) ->
    Shape = (maps:with([nodes, mode], Values))#{seed => maps:get(seed, Values, 1), settings => settings(Values), progress => atoll_cli_progress:virtual_time()},
    Result = atoll_bench_adcounter_sim:run(Shape),
    ok = atoll_cli_progress:done(),
    shown(Result, Values);
run(Values, []) ->
    case atoll_bench_adcounter_run:start(maps:with([nodes, mode], Values), #{progress => atoll_cli_progress:bar("Starting nodes")}) of
        {ok, #{cluster := Cluster} = Ready} ->
            ok = atoll_cli_progress:done(),
            Doing = fun() -> atoll_bench_adcounter_run:run(Ready, settings(Values)) end,
            Ran =
                try
                    atoll_cases_program:watched(Cluster, "Clients show advertisements", Doing, none)
                after
                    ok = atoll_bench_adcounter_run:stop(Ready)
                end,
            case Ran of
                {ok, Result, _} -> shown(Result, Values);
                {error, Sentence} -> {unable, Sentence}
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

settings(#{nodes := Nodes, interval := Interval, propagation := Propagation} = Values) ->
    {ok, Settings} = adcounter_options:check((maps:with([how, ads, offline, triggers], Values))#{
        clients => Nodes - 1,
        budget => maps:get(budget, Values, ?PER_CLIENT * (Nodes - 1)),
        impression_ms => round(1000 * Interval),
        propagation_ms => round(1000 * Propagation),
        report => Nodes =< ?REPORTING orelse not maps:get(simulated, Values)
    }),
    Settings.

shown(Result, #{json := true}) ->
    ok = atoll_cli_io:print_json({[{Key, json(Value)} || {Key, Value} <- lists:sort(maps:to_list(Result))]}),
    adcounter_result:judge(Result);
shown(#{shown := Shown, counted := Counted, sent := Sent, bytes := Bytes, bytes_max := Most, seen := Seen, clients := Clients} = Result, _) ->
    #{overcount := Over, overcount_percent := Percent, bound := Bound, replicas := Replicas} = Result,
    ok = atoll_cli_io:print(atoll_cli_table:lines([left, left], [
        ["impressions shown", atoll_cli_table:count(Shown)],
        ["counted on all nodes", case Counted of differ -> "not the same"; _ -> atoll_cli_table:count(Counted) end],
        ["too many", [atoll_cli_table:count(Over), ", ", atoll_cli_table:decimal(Percent), " %; at most ", atoll_cli_table:count(Bound), " could be"]],
        ["clients that saw it disabled", [atoll_cli_table:count(Seen), " of ", atoll_cli_table:count(Clients)]],
        ["disabled after", ms(map_get(disabled_ms, Result))],
        ["seen by all after", ms(map_get(seen_ms, Result))],
        ["counters equal after", ms(map_get(equal_ms, Result))]
    ] ++ [
        ["sent, " ++ atom_to_list(Kind), [kilobytes(B), ", ", atoll_cli_table:count(M), " messages"]]
     || {Kind, #{messages := M, bytes := B}} <- lists:sort(maps:to_list(Sent))
    ] ++ [
        ["sent, all", [kilobytes(Bytes), ", ", kilobytes(Most), " by one node at most"]],
        ["told what was known", atoll_cli_table:count(map_get(redundant, Replicas))],
        ["deltas forgotten, told anew", [atoll_cli_table:count(map_get(forgotten, Replicas)), ", ", atoll_cli_table:count(map_get(fallbacks, Replicas))]]
    ] ++ [
        ["waited for the server", [atoll_cli_table:count(Max), " messages at most, ", atoll_cli_table:decimal(Mean), " on the average; at work in ", atoll_cli_table:decimal(Busy), " % of all looks"]]
     || #{server := #{busy := Busy, waiting := Mean, waiting_max := Max}} <- [Result]
    ] ++ [
        ["memory", [atoll_cli_table:decimal(Server), " MB the server, ", atoll_cli_table:decimal(Client), " MB a client"]]
     || #{memory_mb := #{server := Server, client := Client}} <- [Result]
    ])),
    adcounter_result:judge(Result).

kilobytes(Bytes) -> [atoll_cli_table:decimal(Bytes / 1000), " KB"].

ms(never) -> "never";
ms(Ms) -> [atoll_cli_table:count(Ms), " ms"].

json(never) -> null;
json(differ) -> null;
json(Map) when is_map(Map) -> {[{Key, json(Value)} || {Key, Value} <- lists:sort(maps:to_list(Map))]};
json(Value) -> Value.
