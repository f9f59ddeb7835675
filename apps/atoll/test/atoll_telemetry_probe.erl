%% SPDX-License-Identifier: Apache-2.0
%% Stands in for the library telemetry on a node: keeps what it is told, lets a caller
%% wait for it, and calls the handlers that are attached, as that one does.
-module(atoll_telemetry_probe).

-export([load/0, unload/0, execute/3, attach/4, detach/1, list_handlers/1, await/2, seen/0]).

-define(DEADLINE_MS, 15000).

%% The module telemetry is there from now on.
load() ->
    {ok, telemetry, Code} = compile:forms([
        {attribute, 1, module, telemetry}, {attribute, 1, export, api()} |
        [{function, 1, F, N, [{clause, 1, vars(N), [], [{call, 1, {remote, 1, {atom, 1, ?MODULE}, {atom, 1, F}}, vars(N)}]}]} || {F, N} <- api()]
    ]),
    {module, telemetry} = code:load_binary(telemetry, "telemetry", Code),
    Self = self(),
    Keeper = spawn(fun() ->
        ?MODULE = ets:new(?MODULE, [named_table, public]),
        Self ! {self(), ready},
        keep([], [])
    end),
    receive {Keeper, ready} -> ok end,
    true = register(?MODULE, Keeper),
    ok.

api() -> [{execute, 3}, {attach, 4}, {detach, 1}, {list_handlers, 1}].

vars(N) -> [{var, 1, list_to_atom("V" ++ integer_to_list(I))} || I <- lists:seq(1, N)].

unload() ->
    true = code:delete(telemetry),
    _ = code:purge(telemetry),
    _ = [ended(Pid) || Pid <- [whereis(?MODULE)], is_pid(Pid)],
    ok.

%% The next one takes its name, and that of its table.
ended(Pid) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

execute(Event, Measurements, Metadata) ->
    ?MODULE ! {told, {Event, Measurements, Metadata}},
    lists:foreach(fun({_, _, Handle, Config}) -> Handle(Event, Measurements, Metadata, Config) end, ets:match_object(?MODULE, {'_', Event, '_', '_'})).

attach(Id, Event, Handle, Config) ->
    case ets:insert_new(?MODULE, {Id, Event, Handle, Config}) of
        true -> ok;
        false -> {error, already_exists}
    end.

detach(Id) ->
    case ets:take(?MODULE, Id) of
        [_] -> ok;
        [] -> {error, not_found}
    end.

list_handlers(Prefix) ->
    [#{id => Id, event_name => Event, function => Handle, config => Config} || {Id, Event, Handle, Config} <- ets:tab2list(?MODULE), lists:prefix(Prefix, Event)].

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
