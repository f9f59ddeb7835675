%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring put': write a value over those that a key has.
-module(atoll_cases_ring_put).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "write a value over those that a key has".

-spec options() -> [atoll_cli_options:option()].
options() -> [#{name => beside, help => "write it beside them, as somebody does who has not seen them"} | atoll_view_cli_where:options(changes)].

-spec operands() -> [string()].
operands() -> ["KEY", "VALUE"].

-spec examples() -> [string()].
examples() -> ["atoll ring put fish cod", "atoll ring put fish cod -c reef", "atoll ring put fish eel --beside -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{beside := Beside} = Values, [Key, Value]) ->
    [Own, Text] = [unicode:characters_to_binary(Typed) || Typed <- [Key, Value]],
    atoll_cases_ring:with_node(changes, Values, {ring_kvs, case Beside of true -> put; false -> replace end, [Own, Text]}, fun(Answer) -> atoll_cases_ring:settled("written", Answer) end).
