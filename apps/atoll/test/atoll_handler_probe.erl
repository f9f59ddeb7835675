%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: a program with handlers in its supervision tree.
-module(atoll_handler_probe).

-behaviour(supervisor).

-export([start/1, stop/0, put/2, await/1, await_restart/1, restarted/2, waiting/1, listen/1, heard/1, end_of/1, refused/0]).
-export([init/1]).

-define(DEADLINE_MS, 15000).

%% The program, which the caller does not take with it when it ends.
start(Options) ->
    {ok, Pid} = supervisor:start_link({local, ?MODULE}, ?MODULE, Options),
    true = unlink(Pid),
    ok.

init(Options) ->
    {ok, {#{intensity => 5, period => 5}, [
        atoll_handler:child_spec({atoll_handler_registers, atoll_handler_registers, [named_table], Options}),
        atoll_handler:child_spec({atoll_handler_set, atoll_handler_set, []})
    ]}}.

stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.

put(From, To) ->
    lists:foreach(fun(Key) -> ok = atoll_handler_registers:put(Key, {value, Key}) end, lists:seq(From, To)).

%% This node has these registers; or those that it lacks when the deadline is over.
await(Keys) ->
    wait_for(fun() -> Keys -- keys() end, []).

%% The table is gone for as long as its handler is.
keys() ->
    case ets:whereis(atoll_handler_registers) of
        undefined -> [];
        Table -> [Key || {Key, _, {value, Key}} <- ets:tab2list(Table)]
    end.

%% Ends the handler; another one takes its place.
await_restart(Name) ->
    Old = whereis(Name),
    true = exit(Old, kill),
    restarted(Name, Old).

restarted(Name, Old) ->
    wait_for(fun() -> Pid = whereis(Name), is_pid(Pid) andalso Pid =/= Old end, true).

%% What waits for a handler.
waiting(Name) ->
    {message_queue_len, Waiting} = process_info(whereis(Name), message_queue_len),
    Waiting.

%% Writes down what is told as new, until heard/1.
listen(Name) ->
    Caller = self(),
    Pid = spawn(fun() ->
        true = register(listener, self()),
        ok = atoll_handler:subscribe(Name),
        Caller ! {self(), listening},
        hear(Name)
    end),
    receive
        {Pid, listening} -> ok
    after ?DEADLINE_MS -> still
    end.

hear(Name) ->
    receive
        {heard, From, Last} -> From ! {?MODULE, heard_until(Name, Last)}
    end.

heard_until(Name, Last) ->
    receive
        {atoll, Name, {new, Last, _}} -> [Last];
        {atoll, Name, {new, Id, _}} -> [Id | heard_until(Name, Last)]
    after ?DEADLINE_MS -> [still]
    end.

%% The ids, up to the last.
heard(Last) ->
    listener ! {heard, self(), Last},
    receive
        {?MODULE, Heard} -> Heard
    end.

%% Why a handler ends when the application is stopped.
end_of(Name) ->
    Ref = monitor(process, Name),
    ok = application:stop(atoll),
    receive
        {'DOWN', Ref, process, _, Reason} -> Reason
    after ?DEADLINE_MS -> still
    end.

wait_for(Look, Expected) ->
    wait_for(Look, Expected, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

wait_for(Look, Expected, Deadline) ->
    case {Look(), erlang:monotonic_time(millisecond) < Deadline} of
        {Expected, _} -> ok;
        {_, true} -> receive after 5 -> wait_for(Look, Expected, Deadline) end;
        {Seen, false} -> {still, Seen, instead_of, Expected}
    end.

%% What wrong uses are answered.
refused() ->
    Errors = [
        atoll_handler:start_link(other, no_such_module, []),
        atoll_handler:start_link(other, maps, []),
        atoll_handler:start_link(other, atoll_handler_set, [], #{piece_max => 0}),
        atoll_handler:start_link(other, atoll_handler_set, [], #{tea => 1}),
        atoll_handler:put(other, key, value),
        atoll_handler:status(other)
    ],
    [{Reason, unicode:characters_to_list(atoll:format_error(Reason))} || {error, Reason} <- Errors].
