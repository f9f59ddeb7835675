%% SPDX-License-Identifier: Apache-2.0
%% @doc The driver of this machine. Its nodes are as those of any host: they outlive the master that started them, and are
%% found by their mark.
-module(atoll_deploy_local).
-behaviour(atoll_deploy_host).

-export([open/1, run/4, put/3, close/1]).

-spec open(atoll_deploy_host:address()) -> {ok, here}.
open(_) -> {ok, here}.

-spec run(here, [string()], iodata(), pos_integer()) -> {ok, non_neg_integer(), binary()} | {error, unicode:chardata()}.
run(here, Args, Input, Ms) ->
    %% Where they are to be found from: a relative folder counts from the user's home, as over ssh.
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, {cd, os:getenv("HOME", "/")}, exit_status, binary, use_stdio, stderr_to_stdout, hide]),
    true = port_command(Port, Input),
    ran(Port, erlang:monotonic_time(millisecond) + Ms, []).

ran(Port, Until, Said) ->
    receive
        {Port, {data, Data}} -> ran(Port, Until, [Said, Data]);
        {Port, {exit_status, Status}} -> {ok, Status, iolist_to_binary(Said)}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = port_close(Port),
        {error, "it did not answer in time"}
    end.

-spec put(here, file:filename(), string()) -> ok | {error, unicode:chardata()}.
put(here, From, To) ->
    case file:copy(From, filename:absname(To, os:getenv("HOME", "/"))) of
        {ok, _} -> ok;
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

-spec close(here) -> ok.
close(here) -> ok.
