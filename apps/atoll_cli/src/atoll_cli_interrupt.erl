%% @doc Ctrl-C as a message, for a command that has something to say when it is cut
%% short. The VM cannot catch SIGINT: `bin/atoll' does for such commands, and passes it
%% on as SIGUSR1. The second one ends the VM at once.
-module(atoll_cli_interrupt).
-behaviour(gen_event).

-export([catching/1]).
-export([init/1, handle_event/2, handle_call/2]).

%% What a shell reports of a program that SIGINT has ended.
-define(INTERRUPTED, 130).

%% @doc Calls Fun; meanwhile the first Ctrl-C is the message `interrupted' to this
%% process.
-spec catching(fun(() -> Result)) -> Result.
catching(Fun) ->
    ok = gen_event:add_handler(erl_signal_server, ?MODULE, self()),
    %% Its own handler would end the VM.
    _ = gen_event:delete_handler(erl_signal_server, erl_signal_handler, []),
    ok = os:set_signal(sigusr1, handle),
    try
        Fun()
    after
        ok = os:set_signal(sigusr1, default),
        gen_event:delete_handler(erl_signal_server, ?MODULE, [])
    end.

%% @private
-spec init(pid()) -> {ok, pid() | told}.
init(Pid) -> {ok, Pid}.

%% @private
-spec handle_event(sigusr1, pid() | told) -> {ok, told} | no_return().
handle_event(sigusr1, told) ->
    halt(?INTERRUPTED);
handle_event(sigusr1, Pid) ->
    Pid ! interrupted,
    {ok, told}.

%% @private
-spec handle_call(term(), pid() | told) -> no_return().
handle_call(Request, _) -> error({unknown_call, Request}).
