%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll context add': gives a cluster that Atoll did not start a name.
-module(atoll_view_cli_context_add).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "give a cluster a name, by one of its nodes".

-spec options() -> [atoll_cli_options:option()].
options() -> 
    [Option || #{name := Name} = Option <- atoll_view_cli_where:options(looks), Name =/= cluster].

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() -> ["atoll context add prod --node shop@10.0.0.7 --cookie-file prod.cookie"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{node := Node} = Values, [Typed]) ->
    case (atoll_cli_read:name())(Typed) of
        {ok, Name} -> add(Name, Node, Values);
        {error, Must} -> {usage, ["NAME ", Must, ", not \"", Typed, $"]}
    end;
run(_Values, [_]) ->
    {usage, "--node is missing: one of the cluster's nodes, as in --node a@host"}.

%% From whatever folder it is used.
add(Name, Node, Values) ->
    Files = maps:map(fun(_, File) -> filename:absname(File) end, maps:with([cookie_file, tls_options_file], Values)),
    case atoll_view_context:add(Name, Files#{node => Node}) of
        {ok, true} -> atoll_cli_io:say(["Context ", Name, " is added, and in use."]);
        {ok, false} -> atoll_cli_io:say(["Context ", Name, " is added; \"atoll context use ", Name, "\" uses it."]);
        {error, Sentence} -> {unable, Sentence}
    end.
