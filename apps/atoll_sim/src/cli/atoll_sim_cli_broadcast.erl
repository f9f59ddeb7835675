%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim broadcast': what arrives of what is broadcast, how often, and
%% how late.
-module(atoll_sim_cli_broadcast).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "broadcast messages, and see what arrives, how often and how late".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_sim_cli_options:shared() ++
        [
            #{name => messages, value => "N", default => "200", read => atoll_cli_read:whole(1, 100000),
              help => "messages, ten a second"},
            #{name => senders, value => "N", default => "1", read => atoll_cli_read:whole(1, 100000),
              help => "nodes that send, by turns"},
            #{name => churn, value => "SHARE", default => "0", read => atoll_cli_read:share(),
              help => "the share of the nodes that is killed each second, and starts again"}
        ] ++
        atoll_sim_cli_options:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim broadcast --nodes 300 --messages 50 --seed 7",
        "atoll sim broadcast --nodes 10000 --messages 200 --senders 10 --churn 0.01 --seed 7 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{senders := Senders, nodes := Nodes}, []) when Senders > Nodes ->
    {usage, io_lib:format("--senders must be at most --nodes, which is ~b, not \"~b\"", [Nodes, Senders])};
run(Values, []) ->
    atoll_sim_cli_experiment:run(
        #{
            name => "sim broadcast",
            options => options(),
            run => fun atoll_sim_broadcast:run/1,
            own => maps:with([messages, senders, churn], Values),
            keys => [delivered, redundancy, hops_max, latency_ms_p99]
        },
        Values
    ).
