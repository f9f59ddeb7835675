%% SPDX-License-Identifier: Apache-2.0
%% @doc Ctrl-C as a message, for a command that has something to undo and to say when it is cut
%% short; SIGTERM and SIGHUP likewise. The VM cannot catch SIGINT: `bin/atoll' does for such
%% commands, and passes it on as SIGUSR1. The second one ends the VM at once.
-module(atoll_cli_interrupt).
-behaviour(gen_event).

-export([catching/1]).
-export([init/1, handle_event/2, handle_call/2]).

%% SIGUSR1 stands for Ctrl-C.
-define(SIGNALS, [sigusr1, sigterm, sighup]).
%% What a shell reports of a program that SIGINT has ended.
-define(INTERRUPTED, 130).

%% @doc Calls Fun; meanwhile the first of these signals is the message `interrupted' to this
%% process.
-spec catching(fun(() -> Result)) -> Result.
catching(Fun) ->
    ok = gen_event:add_handler(erl_signal_server, ?MODULE, self()),
    %% Its own handler would end the VM.
    _ = gen_event:delete_handler(erl_signal_server, erl_signal_handler, []),
    ok = set(handle),
    try
        Fun()
    after
        ok = set(default),
        gen_event:delete_handler(erl_signal_server, ?MODULE, [])
    end.

set(How) ->
    lists:foreach(fun(Signal) -> ok = os:set_signal(Signal, How) end, ?SIGNALS).

%% @private
-spec init(pid()) -> {ok, pid() | told}.
init(Pid) -> {ok, Pid}.

%% @private
-spec handle_event(sigusr1 | sigterm | sighup, pid() | told) -> {ok, told} | no_return().
handle_event(_Signal, told) ->
    halt(?INTERRUPTED);
handle_event(_Signal, Pid) ->
    Pid ! interrupted,
    {ok, told}.

%% @private
-spec handle_call(term(), pid() | told) -> no_return().
handle_call(Request, _) -> error({unknown_call, Request}).
