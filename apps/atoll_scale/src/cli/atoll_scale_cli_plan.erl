%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll scale plan': a description of a service to fill in, or what is wrong with one.
-module(atoll_scale_cli_plan).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "write a description of a service to fill in, or check one".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec more() -> unicode:chardata().
more() -> "Where PLAN is not there, it is written, with every key explained. Where it is, it is read and nothing else:\nwhat is wrong with it is said in a sentence".

-spec operands() -> [string()].
operands() -> ["PLAN"].

-spec examples() -> [string()].
examples() -> ["atoll scale plan shop.plan"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, [File]) ->
    case file:open(File, [write, exclusive, raw]) of
        {ok, Device} ->
            ok = file:write(Device, atoll_scale_plan:template()),
            ok = file:close(Device),
            atoll_cli_io:say([File, " is written: fill it in, and then \"atoll scale plan ", File, "\" checks it"]);
        {error, eexist} ->
            case atoll_scale_cli:plan(File) of
                {ok, #{name := Name, switches := Switches}} ->
                    atoll_cli_io:say([File, " describes ", Name, io_lib:format(", with ~b switches; nothing was started", [length(Switches)])]);
                Wrong ->
                    Wrong
            end;
        {error, Reason} ->
            {unable, [File, ": ", file:format_error(Reason)]}
    end.
