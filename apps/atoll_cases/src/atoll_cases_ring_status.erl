%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring status': who is in a ring, and who has how much of it.
-module(atoll_cases_ring_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show who is in a ring and has which part of it".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch() | atoll_view_cli_where:options(looks)].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll ring status", "atoll ring status -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, otp, Values, fun(View) ->
        {Said, Silent} = atoll_view:ask_all(atoll_view:up(View), ring, status, []),
        case lists:sort([{Node, Status} || {Node, {ok, Status}} <- Said]) of
            [] -> {unable, ["No node of the cluster ", atoll_view:name(View), " has a ring."]};
            Nodes -> show(Nodes, Silent, Values)
        end
    end).

show([{_, #{pending := Pending}} | _] = Nodes, Silent, #{json := true}) ->
    atoll_cli_io:print_json({[{pending, Pending}, {nodes, [{json(Node, Status)} || {Node, Status} <- Nodes]}, {silent, Silent}]});
show([{_, #{epoch := Epoch, partitions := Count, copies := Copies, pending := Pending}} | _] = Nodes, Silent, _) ->
    atoll_cli_io:print([
        atoll_cli_table:format(
            atoll_cases_ring:columns(),
            [atoll_cases_ring:row(Node, {ok, Status}) || {Node, Status} <- Nodes] ++ [atoll_cases_ring:row(Node, undefined) || Node <- Silent]
        ),
        io_lib:format("\n~b partitions, ~b copies of a key, plan ~b, ~b partitions on their way\n", [Count, Copies, Epoch, Pending])
    ]).

json(Node, #{members := Members, owned := Owned, counts := Counts} = Status) ->
    [
        {node, Node}, {is, proplists:get_value(Node, Members, out)}, {owned, maps:get(Node, Owned, 0)}, {counts, {lists:sort(maps:to_list(Counts))}}
        | [{Key, map_get(Key, Status)} || Key <- [epoch, running, handoffs, up]]
    ].
