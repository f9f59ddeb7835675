%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy family': registers nodes that are alike.
-module(atoll_deploy_cli_family).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "register nodes that are alike: a release, domains, flags, a cookie, needs".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => release, value => "NAME", help => "what they run"},
        #{name => domain, value => "NAME", repeat => true, help => "where they may be"},
        #{name => flag, value => "TEXT", repeat => true, help => "an argument of erl, as in --flag=+S --flag=1:1"},
        #{name => cookie_file, value => "FILE", is_read => true, help => "a file with their cookie (one is made unless told)"},
        #{name => cores, value => "N", read => atoll_cli_read:whole(1, 10000), help => "the cores that a node needs"},
        #{name => memory_mb, value => "N", read => atoll_cli_read:whole(1, 100000000), help => "the memory that a node needs"},
        #{name => attribute, value => "TEXT", repeat => true, help => "an attribute that its host must have"},
        #{name => seconds, value => "N", read => atoll_cli_read:whole(1, 3600), help => "in which a node is to be well, or to stop (30 unless told)"}
        | atoll_deploy_cli:registering()
    ].

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() -> ["atoll deploy family shop --release shop-1 --domain rack --cores 1 --memory-mb 512", "atoll deploy family shop --release plain --domain here --flag=+S --flag=1:1"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{domain := Domains, flag := Flags, attribute := Attributes} = Values, [Name]) ->
    Needs = maps:merge(maps:with([cores, memory_mb], Values), maps:from_list([{attributes, Attributes} || Attributes =/= []])),
    Lists = [{domains, Domains} || Domains =/= []] ++ [{flags, Flags} || Flags =/= []] ++ [{needs, Needs} || map_size(Needs) > 0],
    atoll_deploy_cli:registered(family, Name, maps:merge(maps:with([release, cookie_file, seconds], Values), maps:from_list(Lists)), Values).
