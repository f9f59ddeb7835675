%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy provider': registers how hosts are reached.
-module(atoll_deploy_cli_provider).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "register how hosts are reached: here, by ssh, on Kubernetes, in a cloud".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => driver, value => "DRIVER", default => "ssh", read => atoll_cli_read:one_of([local, ssh, kubernetes, cloud]), help => "local, ssh, kubernetes or cloud"},
        #{name => ssh_dir, value => "DIR", read => atoll_cli_read:directory(), help => "the folder of keys and known_hosts (~/.ssh unless told)"},
        #{name => jump, value => "USER@HOST:PORT", help => "a host through which the others are reached"},
        #{name => namespace, value => "NAME", help => "the namespace of Kubernetes (default unless told)"},
        #{name => context, value => "NAME", help => "the context of kubectl"},
        #{name => kubectl, value => "PROGRAM", help => "a program in the place of kubectl"},
        #{name => cloud, value => "NAME", help => "the driver of Apache Libcloud, such as ec2"},
        #{name => secret_file, value => "FILE", is_read => true, help => "a file with the secret of the cloud"},
        #{name => argument, value => "TEXT", repeat => true, help => "an argument of the cloud's driver before its secret, or KEY=VALUE"},
        #{name => size, value => "NAME", help => "the size of the cloud's machines"},
        #{name => image, value => "NAME", help => "the image of the cloud's machines"},
        #{name => python, value => "PROGRAM", help => "a Python that has Apache Libcloud (python3 unless told)"}
        | atoll_deploy_cli:registering()
    ].

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() ->
    ["atoll deploy provider here --driver local", "atoll deploy provider lab --jump me@gate.example", "atoll deploy provider k8s --driver kubernetes --namespace reef", "atoll deploy provider lab --forget"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{driver := Driver, argument := Arguments} = Values, [Name]) ->
    Given = (maps:with([ssh_dir, jump, namespace, context, kubectl, cloud, secret_file, size, image, python], Values))#{driver => Driver},
    atoll_deploy_cli:registered(provider, Name, case Arguments of [] -> Given; _ -> Given#{arguments => Arguments} end, Values).
