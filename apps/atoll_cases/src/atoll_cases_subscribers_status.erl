%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll subscribers status': what the nodes of a subscriber service say of themselves and of their database.
-module(atoll_cases_subscribers_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show the nodes of a subscriber service, their connections and errors".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch() | atoll_view_cli_where:options(looks)].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll subscribers status", "atoll subscribers status -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, otp, Values, fun(View) -> shown(View, Values) end).

shown(View, Values) ->
    {Said, Silent} = atoll_view:ask_all(atoll_view:up(View), subscribers, status, []),
    case lists:sort([{Node, Status} || {Node, {ok, Status}} <- Said]) of
        [] -> {unable, ["No node of the cluster ", atoll_view:name(View), " has a subscriber service."]};
        Services -> show(Services, Silent, Values)
    end.

show(Services, Silent, #{json := true}) ->
    atoll_cli_io:print_json({[{nodes, [{[{node, Node} | json(Status)]} || {Node, Status} <- Services]}, {silent, Silent}]});
show(Services, Silent, _Values) ->
    atoll_cli_io:print(atoll_cli_table:format(
        atoll_cases_subscribers:columns(),
        [atoll_cases_subscribers:row(Node, Status) || {Node, Status} <- Services ++ [{Node, silent} || Node <- Silent]]
    )).

json(#{counts := Counts} = Status) ->
    [{counts, {lists:sort(maps:to_list(Counts))}} | [{Key, plain(Value)} || {Key, Value} <- lists:sort(maps:to_list(maps:remove(counts, Status)))]].

plain(none) -> null;
plain(Text) when is_list(Text), Text =/= [], is_integer(hd(Text)) -> list_to_binary(Text);
plain(Value) -> Value.
