%% SPDX-License-Identifier: Apache-2.0
%% @doc Ends this VM when a program that it works for, make or the shell that started
%% it, is gone or was interrupted.
%%
%% A terminal's Ctrl-C reaches make and this VM alike. But a signal may be sent
%% to make alone; make then waits for what it runs, and says nothing to it. It
%% can be seen all the same: from that moment it no longer catches the signal.
%% The clusters of this VM go with it, as always.
-module(atoll_cli_tie).

-export([start/0, catches_interrupt/1]).

%% Bit N - 1 of the mask stands for signal N; SIGINT is 2.
-define(SIGINT_BIT, 1).
-define(LOOK_MS, 500).
%% What a shell reports of a program that SIGINT has ended.
-define(INTERRUPTED, 130).

%% @doc Ties this VM to the processes that the environment variable ATOLL_TIED_TO
%% numbers, if there are any.
-spec start() -> ok.
start() ->
    lists:foreach(
        fun(Text) ->
            case string:to_integer(Text) of
                {Pid, []} when is_integer(Pid) -> spawn(fun() -> watch(file(Pid), state(file(Pid))) end);
                _ -> not_a_number
            end
        end,
        string:lexemes(os:getenv("ATOLL_TIED_TO", ""), " ")
    ).

watch(File, Before) ->
    %% No event tells of another process that is not a child.
    receive after ?LOOK_MS -> ok end,
    case {Before, state(File)} of
        {_, gone} -> halt(?INTERRUPTED);
        {{ok, true}, {ok, false}} -> halt(?INTERRUPTED);
        _ -> watch(File, Before)
    end.

file(Pid) ->
    filename:join(["/proc", integer_to_list(Pid), "status"]).

state(File) ->
    case file:read_file(File) of
        {ok, Text} -> {ok, catches_interrupt(Text)};
        {error, _} -> gone
    end.

%% @doc Whether a process catches SIGINT, by the text of its `/proc/PID/status'.
-spec catches_interrupt(binary()) -> boolean().
catches_interrupt(Text) ->
    case re:run(Text, "^SigCgt:\\s*([0-9a-fA-F]+)$", [multiline, {capture, [1], list}]) of
        {match, [Mask]} -> (list_to_integer(Mask, 16) bsr ?SIGINT_BIT) band 1 =:= 1;
        nomatch -> false
    end.
