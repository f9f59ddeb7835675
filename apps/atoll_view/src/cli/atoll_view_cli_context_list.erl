%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll context list': shows the contexts.
-module(atoll_view_cli_context_list).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "list the contexts, and which is in use".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll context list", "atoll context list --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json}, []) ->
    case atoll_view_context:all() of
        {ok, All} -> list(Json, All);
        {error, Sentence} -> {unable, Sentence}
    end.

list(true, #{in_use := InUse, contexts := Contexts}) ->
    atoll_cli_io:print_json(
        {[
            {in_use, case InUse of none -> null; _ -> text(InUse) end},
            {contexts, [
                {[{name, text(Name)} | [{Key, case Context of #{Key := Value} -> text(Value); #{} -> null end} || Key <- keys()]]}
             || {Name, Context} <- Contexts
            ]}
        ]}
    );
list(false, #{contexts := []}) ->
    atoll_cli_io:print("There is no context.\n");
list(false, #{in_use := InUse, contexts := Contexts}) ->
    Columns = [{left, "context"}, {left, "in use"}, {left, "node"}, {left, "cookie file"}, {left, "TLS options file"}],
    Rows = [
        [Name, case Name of InUse -> "yes"; _ -> "" end | [maps:get(Key, Context, "-") || Key <- keys()]]
     || {Name, Context} <- Contexts
    ],
    atoll_cli_io:print(atoll_cli_table:format(Columns, Rows)).

keys() -> [node, cookie_file, tls_options_file].

text(Text) -> unicode:characters_to_binary(Text).
