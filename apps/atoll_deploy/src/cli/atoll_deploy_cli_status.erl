%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy status': what is deployed, and what the hosts say of it.
-module(atoll_deploy_cli_status).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "list the nodes of families, as their hosts say".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_deploy_cli:state(), atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> ["[FAMILY]"].

-spec examples() -> [string()].
examples() -> ["atoll deploy status", "atoll deploy status shop --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, Family) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        Names = case Family of [] -> atoll_deploy:families(Deployment); [_] -> Family end,
        told([named(Name, atoll_deploy:status(Deployment, Name)) || Name <- Names], Json)
    end).

named(Name, {error, Sentence}) -> {error, ["The family ", Name, ": ", Sentence]};
named(_, Told) -> Told.

told(Told, Json) ->
    Shown = [Of || {ok, Of} <- Told],
    case [Sentence || {error, Sentence} <- Told] of
        [] -> show(Json, Shown);
        %% The others are listed.
        Sentences ->
            _ = [show(Json, Shown) || Shown =/= []],
            {unable, lists:join($\s, Sentences)}
    end.

show(true, Families) ->
    atoll_cli_io:print_json({[{families, [atoll_deploy_json:told(Family) || Family <- Families]}]});
show(false, Families) ->
    atoll_cli_io:print(lists:join($\n, [
        [
            io_lib:format("~ts: ~b of ~b nodes are up~n", [Name, length([up || #{state := up} <- Nodes]), Wanted]),
            [atoll_cli_table:format([{left, "node"}, {left, "release"}, {left, "state"}, {left, "why"}], [
                [Node, Release, atom_to_list(State), Why] || #{node := Node, release := Release, state := State, why := Why} <- Nodes
            ]) || Nodes =/= []]
        ]
     || #{family := Name, wanted := Wanted, nodes := Nodes} <- Families
    ])).
