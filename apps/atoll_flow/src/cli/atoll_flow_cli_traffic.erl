%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll watch traffic': what the nodes of a running cluster send to each other, and from group to group.
-module(atoll_flow_cli_traffic).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2]).

-define(LIVE_MS, 1000).
-define(SETTLE_MS, 10000).
%% Of a cluster of some size all pairs are no help.
-define(SHOWN, [sent, flow, bridge, group, kind, by]).
-define(MOST_PAIRS, 40).

-spec summary() -> string().
summary() -> "count what the nodes of a running cluster send to each other".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [atoll_flow_cli:seconds(for, "5", "seconds for which it counts; 5m is five minutes")] ++
    atoll_flow_cli:options() ++
    [
        #{name => live, help => "show what has come so far each second, until Ctrl-C"},
        #{name => csv, value => "TABLE", read => atoll_cli_read:one_of(atoll_flow_table:names()),
          help => ["print one table as CSV: ", lists:join(", ", [atom_to_list(Name) || Name <- atoll_flow_table:names()])]},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll watch traffic", "atoll watch traffic -c reef --trace --by name --for 10", "atoll watch traffic --trace --live", "atoll watch traffic --csv node --for 1m"].

-spec more() -> unicode:chardata().
more() -> "docs/traffic.md says what is counted, and what that costs".

-spec run(atoll_cli_options:values(), []) -> atoll_cli_command:outcome().
run(#{json := true, csv := _}, []) -> {usage, "--json and --csv both say how it is printed: not both"};
run(#{live := true, json := true}, []) -> {usage, "--live is for people, and --json for other programs: not both"};
run(#{live := true, csv := _}, []) -> {usage, "--live is for people, and --csv for other programs: not both"};
run(#{live := true} = Values, []) ->
    atoll_cli_interrupt:catching(fun() -> atoll_flow_cli:observing(Values, #{}, fun(Name, Flow) -> shown(Name, Flow, Values, erlang:monotonic_time(millisecond)) end) end);
run(#{for := Ms, json := Json} = Values, []) ->
    atoll_cli_interrupt:catching(fun() -> atoll_flow_cli:observing(Values, #{}, fun(Name, Flow) ->
        Begun = erlang:monotonic_time(millisecond),
        receive
            interrupted -> ok;
            {'EXIT', Flow, Reason} -> exit(Reason)
        after Ms -> ok
        end,
        _ = atoll_flow:settle(Flow, ?SETTLE_MS),
        Took = erlang:monotonic_time(millisecond) - Begun,
        {Tables, Status} = counted(Flow, Values),
        lists:foreach(fun atoll_cli_io:say/1, atoll_flow_cli:said(Status)),
        case Values of
            #{csv := Table} -> atoll_cli_io:print(atoll_flow_cli:csv(Tables, Table));
            #{} when Json -> atoll_cli_io:print_json(atoll_flow_cli:json(Name, Tables, {measure(Values), Took, Status}));
            #{} -> atoll_cli_io:print(screen(Name, Tables, Took, Values))
        end
    end) end).

measure(#{trace := true}) -> messages;
measure(_) -> wire.

counted(Flow, Values) ->
    {atoll_flow_table:of_sums(measure(Values), atoll_flow:sums(Flow)), atoll_flow:status(Flow)}.

screen(Name, #{node := Pairs} = Tables, Ms, Values) ->
    {All, Between} = atoll_flow_table:between(Tables),
    What = case measure(Values) of messages -> " messages"; wire -> " packets" end,
    [
        Name, ": ", atoll_cli_table:count(round(All)), What, " between nodes in ", atoll_cli_table:seconds(Ms),
        [[", ", atoll_cli_table:count(round(Between)), " of them between groups (", atoll_cli_table:percent(Between / All), ")"] || All > 0], "\n\n",
        atoll_flow_cli:text(Tables, [node || length(Pairs) =< ?MOST_PAIRS] ++ (?SHOWN -- [by || not is_map_key(by, Values)])),
        [["\n", atoll_cli_table:count(length(Pairs)), " pairs of nodes: --csv node has them\n"] || length(Pairs) > ?MOST_PAIRS]
    ].

shown(Name, Flow, Values, Begun) ->
    {Tables, Status} = counted(Flow, Values),
    Text = [screen(Name, Tables, erlang:monotonic_time(millisecond) - Begun, Values), [[Line, $\n] || Line <- atoll_flow_cli:said(Status)]],
    ok = atoll_cli_io:print(case atoll_cli_io:screen() of
        none -> [Text, $\n];
        {Rows, Columns} -> ["\e[H\e[J", [[string:slice(Line, 0, Columns), $\n] || Line <- lists:sublist(string:split(unicode:characters_to_list(Text), "\n", all), Rows - 1)]]
    end),
    receive
        interrupted -> ok;
        {'EXIT', Flow, Reason} -> exit(Reason)
    after ?LIVE_MS -> shown(Name, Flow, Values, Begun)
    end.
