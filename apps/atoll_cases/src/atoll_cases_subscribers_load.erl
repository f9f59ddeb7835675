%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll subscribers load': requests to a subscriber service at a rate, on a service of its own or on one that
%% `atoll subscribers up' holds; also while its database is killed and comes back.
-module(atoll_cases_subscribers_load).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(DOWN_MS, 1000).
%% How long the service may take to be whole again.
-define(WHOLE_MS, 5000).

-spec summary() -> string().
summary() -> "send requests to a subscriber service at a rate".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => operation, value => "KIND", default => "write", read => atoll_cli_read:one_of([write, read]), help => "what requests do"},
        #{name => operations, value => "N", default => "50", read => atoll_cli_read:whole(1, 10000), help => "operations of a request, one after the other (500 in the thesis)"},
        #{name => rate, value => "N", default => "10", read => atoll_cli_read:whole(1, 100000), help => "requests that begin in a second, whatever becomes of them"},
        #{name => seconds, value => "S", default => "10", read => atoll_cli_read:whole(1, 86400), help => "how long requests begin"},
        #{name => kill_database, value => "S", read => atoll_cli_read:whole(1, 86400),
          help => "kill the database after so many seconds, and start it again a second later"},
        #{name => cluster, short => $c, value => "NAME", read => atoll_cli_read:name(),
          help => "to the service that \"atoll subscribers up\" holds under this name; without, one is started"},
        atoll_cli_json:switch()
    ] ++ [maps:remove(default, Option) || Option <- atoll_cases_subscribers:options()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll subscribers load --store mnesia --rate 20 --operations 500",
        "atoll subscribers load --store mysql --nodes 3 --rate 200 --operations 5 --kill-database 4",
        "atoll subscribers load -c reef --operation read"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case faults(Values) of
        [Fault | _] -> {usage, Fault};
        [] -> start(Values)
    end.

faults(#{seconds := Seconds} = Values) ->
    [[atoll_cli_options:flag(Key), " is for a service that is started here, and --cluster for one that runs: not both"]
     || is_map_key(cluster, Values), {Key, Value} <- maps:to_list(maps:with(own(), Values)), Value =/= false] ++
        ["--kill-database is for --store mysql" || is_map_key(kill_database, Values), maps:get(store, completed(Values)) =/= mysql] ++
        [io_lib:format("--kill-database must be less than --seconds, which is ~b, not \"~b\"", [Seconds, N]) || #{kill_database := N} <- [Values], N >= Seconds] ++
        [Sentence || not is_map_key(cluster, Values), {usage, Sentence} <- [atoll_cases_subscribers:check(completed(Values))]].

own() -> [kill_database | [Name || #{name := Name} <- atoll_cases_subscribers:options()]].

completed(Values) ->
    maps:merge(
        maps:from_list([{Name, Value} || #{name := Name, default := Text, read := Read} <- atoll_cases_subscribers:options(), {ok, Value} <- [Read(Text)]]),
        Values
    ).

start(#{cluster := _} = Values) ->
    atoll_view_cli_where:on_up(maps:with([cluster], Values), fun(Up) ->
        {Said, _} = atoll_view:ask_all(Up, subscribers, status, []),
        case lists:sort([Node || {Node, {ok, _}} <- Said]) of
            [] -> {unable, "No node of that cluster has a subscriber service."};
            Services -> on_held(Services, Values)
        end
    end);
start(Values) ->
    case atoll_cases_subscribers:start(atoll_cases_subscribers:shape(completed(Values)), none, #{}) of
        {ok, Ready} ->
            try
                loaded(Ready, Values)
            after
                ok = atoll_bench_subscribers_run:stop(Ready)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

%% The requesting node alone is ours.
on_held(Services, Values) ->
    Options = (atoll_bench_subscribers_run:requester_options())#{progress => atoll_cli_progress:bar("Starting nodes")},
    Ended = atoll_cluster:with_cluster(Options, fun(Cluster) ->
        [Requester] = atoll_cluster:nodes(Cluster),
        loaded(#{cluster => Cluster, services => Services, requester => Requester, server => none}, Values)
    end),
    case Ended of
        {error, Sentence} -> {unable, Sentence};
        Outcome -> Outcome
    end.

loaded(#{cluster := Cluster} = Ready, #{seconds := Seconds} = Values) ->
    Request = (maps:with([operation, operations, rate], Values))#{ms => 1000 * Seconds},
    Doing = io_lib:format("Requests for ~ts", [atoll_cli_table:seconds(1000 * Seconds)]),
    Before = atoll_bench_subscribers_run:connections(Ready),
    Does = fun() ->
        case Values of
            #{kill_database := At} ->
                case atoll_bench_subscribers_run:harmed(Ready, Request, #{after_ms => 1000 * At, down_ms => ?DOWN_MS}) of
                    {ok, Result, {whole_after, Ms}} -> {ok, {Result, Ms}};
                    {error, _} = Error -> Error
                end;
            #{} ->
                case atoll_bench_subscribers_run:load(Ready, Request) of
                    {ok, Result} -> {ok, {Result, none}};
                    {error, _} = Error -> Error
                end
        end
    end,
    case atoll_cases_program:watched(Cluster, Doing, Does, none) of
        {ok, {Result, Whole}, _Killed} ->
            Connections = {Before, atoll_bench_subscribers_run:connections(Ready)},
            ok = show(Result, Whole, Connections, Values),
            judged(Whole, Connections);
        {error, Sentence} ->
            {unable, Sentence}
    end.

judged(late, _) -> {failed, "the service was not whole again in time"};
judged(Ms, _) when is_integer(Ms), Ms > ?WHOLE_MS -> {failed, io_lib:format("the service was whole again ~b ms after its database, not ~b at most", [Ms, ?WHOLE_MS])};
judged(_, {Before, After}) when After > Before -> {failed, io_lib:format("there were ~b connections with the database, and are ~b", [Before, After])};
judged(_, _) -> ok.

show(#{latency := Latency} = Result, Whole, {Before, After}, #{json := true}) ->
    atoll_cli_io:print_json({
        [{Key, map_get(Key, Result)} || Key <- [finished, failed, unfinished]] ++
        [{errors, {lists:sort(maps:to_list(map_get(errors, Result)))}}] ++
        [{To, ms(map_get(From, Result))} || {To, From} <- [{mean_ms, mean_ns}, {sd_ms, sd_ns}]] ++
        [{p99_ms, ms(atoll_histogram:percentile(Latency, 99))}] ++
        [{Key, null(map_get(Key, Result))} || Key <- [service_cpu, database_cpu]] ++
        [{connections_before, Before}, {connections_after, After}, {whole_again_ms, case Whole of late -> null; _ -> null(Whole) end}]
    });
show(#{latency := Latency, finished := Finished, failed := Failed, unfinished := Unfinished, errors := Errors} = Result, Whole, {Before, After}, _) ->
    Shown = fun(Ns) -> case ms(Ns) of null -> "-"; Ms -> atoll_cli_table:decimal(Ms) end end,
    Kinds = [[", ", string:replace(atom_to_list(Kind), "_", " ", all), " ", atoll_cli_table:count(N)] || {Kind, N} <- lists:sort(maps:to_list(Errors))],
    atoll_cli_io:print(atoll_cli_table:lines([left, left], [
        ["requests ended", atoll_cli_table:count(Finished)],
        ["with an error", [atoll_cli_table:count(Failed), Kinds]],
        ["not ended", atoll_cli_table:count(Unfinished)],
        ["mean, sd, p99", [Shown(map_get(mean_ns, Result)), ", ", Shown(map_get(sd_ns, Result)), ", ", Shown(atoll_histogram:percentile(Latency, 99)), " ms"]],
        ["processors of service, database", lists:join(", ", [percent(map_get(Key, Result)) || Key <- [service_cpu, database_cpu]])]
        | [["connections before, after", [atoll_cli_table:count(Before), ", ", atoll_cli_table:count(After)]] || Before > 0]
            ++ [["whole again after", case Whole of late -> "not in time"; _ -> [atoll_cli_table:count(Whole), " ms"] end] || Whole =/= none]
    ])).

null(none) -> null;
null(Value) -> Value.

percent(none) -> "-";
percent(Percent) -> [atoll_cli_table:decimal(Percent), " %"].

ms(none) -> null;
ms(Ns) -> Ns / 1.0e6.
