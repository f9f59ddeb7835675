%% SPDX-License-Identifier: Apache-2.0
%% @doc Settings of the kernel (sysctl) that are held for a while. A small program, `priv/kernel', gives each back what it was when
%% it is released, and when this VM ends in whatever way; only a SIGKILL of its own stops it from that. What the machine
%% forbids is said.
-module(atoll_scale_kernel).

-export([hold/2, release/1]).

-export_type([held/0]).

-type held() :: port() | unchanged.

-define(MS, 10000).

%% @doc Sets it, such as `"net.core.somaxconn"', unless it is so already.
-spec hold(string(), atoll_scale_plan:value()) -> {ok, held()} | {error, unicode:chardata()}.
hold(Name, Value) ->
    File = filename:join("/proc/sys", string:replace(Name, ".", "/", all)),
    Text = atoll_scale_plan:filled("{value}", #{value => Value}),
    case file:read_file(File) of
        {ok, Is} ->
            case string:lexemes(binary_to_list(Is), " \t\n") =:= string:lexemes(Text, " \t\n") of
                true -> {ok, unchanged};
                false -> hold(Name, File, Text)
            end;
        {error, Reason} ->
            {error, ["the kernel's ", Name, " cannot be read here: ", file:format_error(Reason)]}
    end.

hold(Name, File, Text) ->
    Port = open_port({spawn_executable, filename:join(code:priv_dir(atoll_scale), "kernel")}, [{args, [File, Text]}, {line, 300}, exit_status, hide]),
    receive
        {Port, {data, {eol, "held"}}} -> {ok, Port};
        {Port, {data, {_, "refused " ++ Why}}} ->
            receive {Port, {exit_status, _}} -> ok end,
            {error, ["this machine does not let the kernel's ", Name, " be set: ", Why]}
    after ?MS ->
        true = port_close(Port),
        {error, ["the kernel's ", Name, " was not set in time"]}
    end.

%% @doc Gives it back.
-spec release(held()) -> ok.
release(unchanged) ->
    ok;
release(Port) ->
    true = port_command(Port, "end\n"),
    receive {Port, {exit_status, _}} -> ok after ?MS -> ok end.
