%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy domain': registers which hosts a provider has.
-module(atoll_deploy_cli_domain).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "register hosts of a provider, and who works there in which folder".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => provider, value => "NAME", help => "how they are reached"},
        #{name => host, value => "HOST:PORT", repeat => true, help => "a host, by the name or address that its nodes are named by (127.0.0.1 unless told)"},
        #{name => machines, value => "N", read => atoll_cli_read:whole(1, 1000), help => "so many machines of a cloud in place of hosts"},
        #{name => user, value => "NAME", help => "the user there (yourself unless told)"},
        #{name => dir, value => "DIR", help => "the folder there (.atoll-deploy unless told)"}
        | atoll_deploy_cli:registering()
    ].

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() -> ["atoll deploy domain rack --provider lab --host 10.0.0.1 --host 10.0.0.2:2222 --user erl", "atoll deploy domain here --provider here"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{host := Hosts} = Values, [Name]) ->
    Given = maps:with([provider, machines, user, dir], Values),
    atoll_deploy_cli:registered(domain, Name, case Hosts of [] -> Given; _ -> Given#{hosts => Hosts} end, Values).
