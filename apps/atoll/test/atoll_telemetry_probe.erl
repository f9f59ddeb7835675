%% SPDX-License-Identifier: Apache-2.0
%% Stands in for the library telemetry on a node: keeps what it is told, and lets a caller
%% wait for it.
-module(atoll_telemetry_probe).

-export([load/0, unload/0, execute/3, await/2, seen/0]).

-define(DEADLINE_MS, 15000).

%% The module telemetry is there from now on.
load() ->
    {ok, telemetry, Code} = compile:forms([
        {attribute, 1, module, telemetry},
        {attribute, 1, export, [{execute, 3}]},
        {function, 1, execute, 3, [
            {clause, 1, [{var, 1, V} || V <- ['E', 'M', 'D']], [], [
                {call, 1, {remote, 1, {atom, 1, ?MODULE}, {atom, 1, execute}}, [{var, 1, V} || V <- ['E', 'M', 'D']]}
            ]}
        ]}
    ]),
    {module, telemetry} = code:load_binary(telemetry, "telemetry", Code),
    true = register(?MODULE, spawn(fun() -> keep([], []) end)),
    ok.

unload() ->
    true = code:delete(telemetry),
    _ = code:purge(telemetry),
    _ = [exit(Pid, kill) || Pid <- [whereis(?MODULE)], is_pid(Pid)],
    ok.

execute(Event, Measurements, Metadata) ->
    ?MODULE ! {told, {Event, Measurements, Metadata}},
    ok.

%% The measurements of the first event of that kind whose metadata have these.
await(Kind, Some) ->
    Ref = make_ref(),
    ?MODULE ! {await, {self(), Ref}, Kind, Some},
    receive
        {Ref, Measurements} -> Measurements
    after ?DEADLINE_MS -> {never, Kind, Some, seen()}
    end.

%% All, oldest first.
seen() ->
    Ref = make_ref(),
    ?MODULE ! {seen, {self(), Ref}},
    receive
        {Ref, Seen} -> Seen
    after ?DEADLINE_MS -> error(no_answer)
    end.

keep(Seen, Waiting) ->
    Left = [W || {From, Kind, Some} = W <- Waiting, not answer(From, fits(Kind, Some, Seen))],
    receive
        {told, Told} -> keep(Seen ++ [Told], Left);
        {await, From, Kind, Some} -> keep(Seen, [{From, Kind, Some} | Left]);
        {seen, {Pid, Ref}} -> Pid ! {Ref, Seen}, keep(Seen, Left)
    end.

fits(Kind, Some, Seen) ->
    [M || {[atoll, K], M, D} <- Seen, K =:= Kind, maps:with(maps:keys(Some), D) =:= Some].

answer(_From, []) -> false;
answer({Pid, Ref}, [Measurements | _]) -> Pid ! {Ref, Measurements}, true.
