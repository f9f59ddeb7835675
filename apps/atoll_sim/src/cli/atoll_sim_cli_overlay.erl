%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim overlay': how the links of a strategy hold when a share of the
%% nodes dies at once.
-module(atoll_sim_cli_overlay).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "kill a share of the nodes at once, and see who is still connected".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_sim_cli_options:shared() ++
        [#{name => kill, value => "SHARE", default => "0.5", read => atoll_cli_read:share(),
           help => "the share of the nodes that is killed"},
         #{name => spare, value => "contacts|nobody", default => "contacts", read => atoll_cli_read:one_of([contacts, nobody]),
           help => "whether the contacts are spared"}] ++
        atoll_sim_cli_options:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim overlay --nodes 300 --kill 0.5 --seed 7",
        "atoll sim overlay --strategy hyparview --nodes 10000 --kill 0.8 --seed 7 --json",
        "atoll sim overlay --nodes 300 --latency regions --option xbot=true"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_sim_cli_experiment:run(
        #{
            name => "sim overlay",
            options => options(),
            run => fun atoll_sim_overlay:run/1,
            own => maps:with([kill, spare], Values),
            keys => [strategy, nodes, killed, seed, virtual_ms, wall_ms, events_per_s, connected_before,
                     connected_after, active_min, active_max, symmetric, messages_per_node_per_s]
        },
        Values
    ).
