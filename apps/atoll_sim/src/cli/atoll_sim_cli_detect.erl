%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim detect': how soon the nodes hear of one that fell silent, and
%% whether anybody is buried who lives.
-module(atoll_sim_cli_detect).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% Nodes beside the contacts that it takes for one to be there that can fall
%% silent: each stays so for a while.
-define(MORTAL, 5).

-spec summary() -> string().
summary() -> "let nodes fall silent, and see how soon the others hear of it".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_sim_cli_options:shared() ++
        [
            #{name => loss, value => "SHARE", default => "0", read => atoll_cli_read:share(),
              help => "the share of the messages that is lost"},
            #{name => pause, value => "MS", default => "0", read => atoll_cli_read:whole(0, 3600000),
              help => "how long a pause of a node is; 0 for none"},
            #{name => paused, value => "SHARE", default => "0.05", read => atoll_cli_read:share(),
              help => "the share of the nodes that is in a pause at any moment"},
            #{name => minutes, value => "N", default => "10", read => atoll_cli_read:whole(1, 10000),
              help => "how long it is watched, in virtual time"}
        ] ++
        atoll_sim_cli_options:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim detect --nodes 100 --minutes 2 --seed 7",
        "atoll sim detect --nodes 1000 --loss 0.05 --pause 2000 --seed 7 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{nodes := Nodes} = Values, []) ->
    Contacts = maps:get(contacts, Values, 5),
    case Nodes >= Contacts + ?MORTAL of
        true ->
            atoll_sim_cli_experiment:run(experiment(Values), Values);
        false ->
            {usage, io_lib:format("--nodes must be at least ~b more than the contacts, who never fall silent and "
                                  "are ~b, not \"~b\"", [?MORTAL, Contacts, Nodes])}
    end.

experiment(Values) ->
    #{
        name => "sim detect",
        options => options(),
        run => fun atoll_sim_detect:run/1,
        own => maps:with([loss, pause, paused, minutes], Values),
        keys => [detect_ms_p50, detect_ms_p99, false_deaths_per_hour, messages_per_node_per_s]
    }.
