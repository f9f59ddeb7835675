%% SPDX-License-Identifier: Apache-2.0
%% @doc What a driver is: a module that does operations on a store. One of Basho Bench's form, with `new/1' and `run/4', is one as it is, as long as it
%% does not ask Basho Bench for its settings.
-module(atoll_load_driver).

-export([names/0, find/1, rules/1, operations/1, prepare/2, new/3, run/5, terminate/3]).

-export_type([store/0, where/0, answer/1]).

-type where() ::
    %% The workers run in this VM, whose memory the store is in;
    here
    %% in this VM, or on other nodes of this machine, if there are to be some;
    | anywhere
    %% on other nodes, one at least, since this VM is none.
    | elsewhere.

-type store() :: #{
    where := where(),
    %% What the workers are told of it.
    settings := #{atom() => term()},
    stop := fun(() -> ok),
    %% Called when a load begins.
    begins => fun(() -> ok),
    %% The nodes with its processes, if they are not in this VM.
    stores => #{cluster := atoll_cluster:cluster(), nodes := [node(), ...]}
}.

-type answer(State) ::
    {ok, State}
    %% Done, and not counted.
    | {silent, State}
    | {error, Reason :: term(), State}
    | {ok, Value :: term(), State}
    | {stop, Reason :: term()}.

%% A worker's state. Some drivers are told of their settings, too.
-callback new(Id :: pos_integer()) -> {ok, State :: term()} | {error, Reason :: term()}.
-callback new(Id :: pos_integer(), Settings :: #{atom() => term()}) -> {ok, State :: term()} | {error, Reason :: term()}.

-callback run(Operation :: term(), atoll_load_keys:generator(), atoll_load_keys:generator(), State) -> answer(State).

%% The operations that it has; one that does not say takes any.
-callback operations() -> [atom(), ...].

%% Keys of its own in the configuration.
-callback rules() -> [atoll_bench_config:rule()].

%% Starts the store that it loads, whose owner is the caller.
-callback prepare(Settings :: #{atom() => term()}) -> {ok, store()} | {error, Sentence :: unicode:chardata()}.

-callback terminate(Reason :: term(), State :: term()) -> _.

-optional_callbacks([new/1, new/2, operations/0, rules/0, prepare/1, terminate/2]).

%% @doc Our own.
-spec names() -> [{atom(), module()}].
names() ->
    [
        {null, atoll_load_null}, {ets, atoll_load_ets}, {mnesia, atoll_load_mnesia}, {ring, atoll_load_ring}, {redis, atoll_load_redis},
        {mariadb, atoll_load_mariadb}, {http, atoll_load_http}
    ].

%% @doc One of ours by its name, or any module that is one; what is wrong is said after `driver'.
-spec find(term()) -> {ok, module()} | {error, unicode:chardata()}.
find(Name) when is_atom(Name) ->
    Module = proplists:get_value(Name, names(), Name),
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case has(new, 1, Module) orelse has(new, 2, Module) of
                true ->
                    case has(run, 4, Module) of
                        true -> {ok, Module};
                        false -> {error, io_lib:format("~ts has no function run/4", [Module])}
                    end;
                false -> {error, io_lib:format("~ts has no function new/1", [Module])}
            end;
        {error, _} -> {error, io_lib:format("~0tp is none of ~ts, and no module that is found", [Name, lists:join(", ", [atom_to_list(N) || {N, _} <- names()])])}
    end;
find(Other) -> {error, io_lib:format("must be an atom, not ~0tP", [Other, 9])}.

%% On the node where the workers run nobody may have called it yet.
has(Function, Arity, Module) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, Function, Arity).

%% @doc Its own keys.
-spec rules(module()) -> [atoll_bench_config:rule()].
rules(Driver) -> case has(rules, 0, Driver) of true -> Driver:rules(); false -> [] end.

%% @doc Its operations.
-spec operations(module()) -> [atom(), ...] | any.
operations(Driver) -> case has(operations, 0, Driver) of true -> Driver:operations(); false -> any end.

%% @doc Has it start its store.
-spec prepare(module(), #{atom() => term()}) -> {ok, store()} | {error, unicode:chardata()}.
prepare(Driver, Settings) ->
    case has(prepare, 1, Driver) of
        true -> Driver:prepare(Settings);
        false -> {ok, #{where => anywhere, settings => Settings, stop => fun() -> ok end}}
    end.

%% @doc Begins a worker's part.
-spec new(module(), pos_integer(), #{atom() => term()}) -> {ok, State :: term()} | {error, term()}.
new(Driver, Id, Settings) ->
    case has(new, 2, Driver) of
        true -> Driver:new(Id, Settings);
        false -> Driver:new(Id)
    end.

%% @doc Does an operation.
-spec run(module(), term(), atoll_load_keys:generator(), atoll_load_keys:generator(), State) -> {ok | silent | {error, term()} | {stop, term()}, State}.
run(Driver, Operation, Key, Value, State) ->
    case Driver:run(Operation, Key, Value, State) of
        {ok, Now} -> {ok, Now};
        {ok, _, Now} -> {ok, Now};
        {silent, Now} -> {silent, Now};
        {error, Reason, Now} -> {{error, Reason}, Now};
        {stop, Reason} -> {{stop, Reason}, State}
    end.

%% @doc Ends a worker's part.
-spec terminate(module(), term(), term()) -> ok.
terminate(Driver, Reason, State) ->
    _ = case has(terminate, 2, Driver) of true -> Driver:terminate(Reason, State); false -> ok end,
    ok.
