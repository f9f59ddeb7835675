%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll im status': what runs where in an instant messenger, and whether it is connected as its plan says.
-module(atoll_cases_im_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show what runs on which node of an instant messenger".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch() | atoll_view_cli_where:options(looks)].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll im status", "atoll im status -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, otp, Values, fun(View) -> shown(View, Values) end).

shown(View, Values) ->
    {Said, Silent} = atoll_view:ask_all(atoll_view:up(View), im, status, []),
    case [{Node, Status} || {Node, {ok, Status}} <- Said] of
        [] -> {unable, ["No node of the cluster ", atoll_view:name(View), " has a part in a messenger."]};
        Parts -> judged(lists:sort(Parts), Silent, Values)
    end.

judged([{_, #{settings := #{routers := Routers, servers := Servers} = Settings}} | _] = Parts, Silent, Values) ->
    {ok, Plan} = im_plan:new(Settings),
    There = im_cluster:links([{Node, Links} || {Node, #{links := Links}} <- Parts]),
    Wanted = im_plan:connections(Plan),
    ok = show(Settings, There, Wanted, Parts, Silent, Values),
    case (Routers ++ Servers) -- [Node || {Node, _} <- Parts] of
        [] when There =:= Wanted -> ok;
        [] -> {failed, io_lib:format("there are ~b connections, and by the formula ~b", [There, Wanted])};
        [Node | _] -> {failed, ["node ", atom_to_list(Node), " does not answer"]}
    end.

show(#{mode := Mode}, There, Wanted, Parts, Silent, #{json := true}) ->
    atoll_cli_io:print_json({[
        {mode, Mode},
        {connections, There},
        {connections_formula, Wanted},
        {nodes, [{[{node, Node} | json(Status)]} || {Node, Status} <- Parts]},
        {silent, Silent}
    ]});
show(#{mode := Mode}, There, Wanted, Parts, Silent, _Values) ->
    atoll_cli_io:print([
        atoll_cli_table:format(
            atoll_cases_im:columns(),
            [atoll_cases_im:row(Node, {ok, Status}) || {Node, Status} <- Parts] ++ [atoll_cases_im:row(Node, undefined) || Node <- Silent]
        ),
        io_lib:format("\nmode ~ts, ~b connections; by the formula ~b\n", [Mode, There, Wanted])
    ]).

json(#{links := Links, counters := Counters, databases := Databases} = Status) ->
    [
        {connections, length(Links)},
        {counters, {lists:sort(maps:to_list(Counters))}},
        {databases, [{[{Key, maps:get(Key, Database)} || Key <- [server, kind, role, rows, waiting]]} || Database <- Databases]}
    ] ++ [{Key, maps:get(Key, Status, null)} || Key <- [clients, sessions]]
        ++ [{Role, length(atoll_cases_im:databases(Role, Status))} || Role <- [main, replica]].
