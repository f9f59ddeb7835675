%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy release': registers what runs on hosts, and keeps it.
-module(atoll_deploy_cli_release).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "register a release, an archive or a folder of modules, and keep it".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => start, value => "COMMAND", help => "the command that starts a node (erl with the modules of the folder unless told)"},
        #{name => stop, value => "COMMAND", help => "the command that stops one (SIGTERM unless told)"},
        #{name => health, value => "COMMAND", help => "a command that succeeds when a node is well"},
        #{name => app, value => "NAME", repeat => true, help => "without a start command, an application to start"},
        #{name => sha256, value => "SUM", help => "the checksum that the archive must have"},
        #{name => image, value => "NAME", help => "the image for Kubernetes"}
        | atoll_deploy_cli:registering()
    ].

-spec more() -> unicode:chardata().
more() -> "Commands run in the folder of the release, and find ATOLL_NODE, ATOLL_FLAGS, ATOLL_COOKIE_FILE and ATOLL_CONTACTS in their environment.".

-spec operands() -> [string()].
operands() -> ["NAME", "[PATH]"].

-spec examples() -> [string()].
examples() ->
    ["atoll deploy release shop-1 _build/prod/shop-1.tar.gz --start 'bin/shop daemon' --stop 'bin/shop stop' --health 'bin/shop ping'", "atoll deploy release plain ebin --app shop"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{app := Apps} = Values, [Name | Path]) ->
    Given = maps:merge(maps:with([start, stop, health, sha256, image], Values), maps:from_list([{path, P} || P <- Path] ++ [{apps, Apps} || Apps =/= []])),
    atoll_deploy_cli:registered(release, Name, Given, Values).
