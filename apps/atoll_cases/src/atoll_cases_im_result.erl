%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of traffic over the messenger came to, for people and for programs.
-module(atoll_cases_im_result).

-export([json/1, table/1, broken/1, is_clean/1]).

%% @doc The object that `--json' prints.
-spec json(atoll_bench_im_run:result()) -> atoll_cli_json:object().
json(#{traffic := Traffic, storm := Storm, lost := Lost, left := Left}) ->
    #{history := #{counts := Counts, unchecked := Unchecked} = History, conversations := #{'begun' := Begun}, total := #{sent := AllSent, delivered := AllDelivered}} = Traffic,
    Of = fun(Key) -> {Key, maps:get(Key, Traffic)} end,
    {
        [Of(Key) || Key <- [seed, logins, login_ms, seconds, sent, received, delivered, shed, delivered_per_minute]] ++
        [
            {quality_percent, quality(Traffic)},
            {p50_us, us(50, Traffic)},
            {p99_us, us(99, Traffic)},
            {conversations, Begun},
            {sent_in_all, AllSent},
            {delivered_in_all, AllDelivered},
            Of(drain_ms), Of(is_drained),
            {kept, im_history:is_clean(History)},
            {unchecked, Unchecked},
            {violations, {[{Kind, N} || {Kind, N} <- maps:to_list(Counts)]}},
            {both_copies_lost, Lost},
            {left, case Left of none -> null; _ -> {lists:sort(maps:to_list(Left))} end}
        ] ++ [{Key, case Value of none -> null; _ -> Value end} || {Key, Value} <- lists:sort(maps:to_list(Storm))]
    }.

%% In percent of what was sent.
quality(#{sent := 0}) -> null;
quality(#{sent := Sent, below := Below}) -> 100 * Below / Sent.

us(P, #{latency := Latency}) ->
    case atoll_histogram:percentile(Latency, P) of
        none -> null;
        Ns -> Ns / 1000
    end.

%% @doc The lines that are printed otherwise.
-spec table(atoll_bench_im_run:result()) -> iolist().
table(#{traffic := Traffic, storm := #{kills := Kills, node_kills := NodeKills, back := Back, back_ms_median := Median}} = Result) ->
    #{
        logins := Logins, login_ms := LoginMs, seconds := Seconds, sent := Sent, delivered := Delivered, delivered_per_minute := PerMinute,
        history := #{conversations := Conversations, messages := Messages}
    } = Traffic,
    Rows = [
        ["logged in", [atoll_cli_table:count(Logins), " clients in ", atoll_cli_table:seconds(LoginMs)]],
        ["measured", [atoll_cli_table:seconds(round(1000 * Seconds))]],
        ["sent, delivered", [atoll_cli_table:count(Sent), ", ", atoll_cli_table:count(Delivered)]],
        ["delivered a minute", atoll_cli_table:count(round(PerMinute))],
        ["latency, median, p99", [shown(us(50, Traffic)), ", ", shown(us(99, Traffic)), " \x{b5}s"]],
        ["killed", [atoll_cli_table:count(Kills), " processes", back(Back, Median), ", ", atoll_cli_table:count(NodeKills), " nodes"]],
        ["checked", [atoll_cli_table:count(Conversations), " conversations, ", atoll_cli_table:count(Messages), " messages: ", verdict(Result)]],
        ["left on servers", left(Result)]
    ],
    atoll_cli_table:lines([left, left], Rows).

back(_, none) -> "";
back(Back, Median) -> [" (", atoll_cli_table:count(Back), " back after ", atoll_cli_table:decimal(Median), " ms, median)"].

shown(null) -> "-";
shown(Us) -> atoll_cli_table:decimal(Us).

verdict(#{traffic := #{history := #{counts := Counts}}} = Result) ->
    case map_size(Counts) of
        0 -> ["nothing lost, twice or out of order" | both_copies(Result)];
        _ -> broken(Result)
    end.

%% @doc What was broken, in a line.
-spec broken(atoll_bench_im_run:result()) -> unicode:chardata().
broken(#{traffic := #{history := #{counts := Counts}}} = Result) ->
    [
        lists:join(", ", [[atoll_cli_table:count(N), " ", string:replace(atom_to_list(Kind), "_", " ")] || {Kind, N} <- lists:sort(maps:to_list(Counts))])
        | both_copies(Result)
    ].

%% Processes come and go with connections.
left(#{left := none}) ->
    "not looked at";
left(#{left := #{processes := Processes} = Left}) ->
    Of = fun(What, N) -> io_lib:format("~s ~s~b", [What, case N > 0 of true -> "+"; false -> "" end, N]) end,
    Most = case [Of(What, N) || {What, N} <- lists:sort(maps:to_list(maps:remove(processes, Left))), N =/= 0] of
        [] -> "no rows, clients, sessions or names";
        More -> lists:join(", ", More)
    end,
    [Most, "; ", Of(processes, Processes)].

%% @doc Whether what a run has made on the servers is gone.
-spec is_clean(atoll_bench_im_run:result()) -> boolean().
is_clean(#{left := none}) -> true;
is_clean(#{left := Left}) -> lists:all(fun(N) -> N =:= 0 end, maps:values(maps:remove(processes, Left))).

both_copies(#{lost := []}) -> "";
both_copies(#{lost := Names}) -> ["; both copies were lost of ", lists:join(", ", [atom_to_list(Name) || Name <- Names])].
