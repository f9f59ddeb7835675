%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll version': which Atoll this is, on which OTP.
-module(atoll_cli_version).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "print the versions of Atoll and of Erlang/OTP".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll version"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := true}, []) ->
    Versions = [{atoll, list_to_binary(atoll:version())}, {otp, list_to_binary(otp())}],
    atoll_cli_io:print_json({Versions});
run(#{json := false}, []) ->
    atoll_cli_io:print(["atoll ", atoll:version(), " on Erlang/OTP ", otp(), $\n]).

%% The release alone is what the VM knows; the patch level is in a file, which
%% an installation may lack.
otp() ->
    Release = erlang:system_info(otp_release),
    File = filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"]),
    case file:read_file(File) of
        {ok, Text} -> string:trim(binary_to_list(Text));
        {error, _} -> Release
    end.
