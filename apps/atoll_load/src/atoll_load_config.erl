%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a load: Basho Bench's keys, as Erlang terms in a file.
%% ```
%% {mode, max}.
%% {duration, 1}.
%% {concurrent, 8}.
%% {driver, ring}.
%% {key_generator, {int_to_bin_bigendian, {uniform_int, 10000}}}.
%% {value_generator, {fixed_bin, 1000}}.
%% {operations, [{get, 4}, {put, 1}]}.
%% '''
%% How they are read says {@link atoll_bench_config}. One key is ours, `offered_load': so many operations begin
%% in a second, of all workers together, whatever becomes of the others, and their time counts from when they were to begin. A driver may have
%% further keys ({@link atoll_load_driver}).
-module(atoll_load_config).

-export([read/1, check/1, format_error/1]).

-export_type([config/0, error/0]).

-type config() :: #{
    %% One operation of a worker begins when its last has ended, or after a pause: then a worker begins so many in a second.
    mode := max | {rate, number()},
    %% Operations in a second of all workers, whatever becomes of them; or none, and the mode says it.
    offered_load := pos_integer() | closed,
    %% Minutes.
    duration := number(),
    concurrent := pos_integer(),
    driver := module(),
    operations := [{Label :: atom(), Operation :: term(), Weight :: pos_integer()}, ...],
    key_generator := term(),
    value_generator := term(),
    %% Seconds.
    report_interval := number(),
    rng_seed := now | {integer(), integer(), integer()},
    code_paths := [file:filename()],
    %% That the first error ends it.
    shutdown_on_error := boolean(),
    pre_hook := none | {module(), Function :: atom()},
    post_hook := none | {module(), Function :: atom()},
    %% Nodes on which the workers run, which are started for it; by their hosts, of which there is one.
    distribute_work := boolean(),
    remote_nodes := [{Host :: localhost, Name :: atom()}],
    %% Keys of the driver.
    settings := #{atom() => term()}
}.

-type error() :: atoll_bench_config:error().

-define(MOST_MINUTES, 1440).
-define(MOST_WEIGHT, 10_000).
-define(MOST_NODES, 50).
-define(NAME, 30).

%% @doc Reads and checks a file.
-spec read(file:filename_all()) -> {ok, config()} | {error, error()}.
read(File) -> atoll_bench_config:read(File, fun check/1).

%% @doc Checks terms that were read, each with its line. The driver comes first: which further keys there are hangs on it.
-spec check([atoll_bench_terms:placed()]) -> {ok, config()} | {error, error()}.
check(Terms) ->
    ok = code:add_pathsz([Path || {_, {code_paths, All}} <- Terms, is_list(All), Path <- All, is_list(Path)]),
    Driver = case [Name || {_, {driver, Name}} <- Terms] of [First | _] -> atoll_load_driver:find(First); [] -> none end,
    Further = case Driver of {ok, Module} -> atoll_load_driver:rules(Module); _ -> [] end,
    case atoll_bench_config:check(Terms, rules(Driver) ++ Further) of
        {ok, #{duration := Minutes, report_interval := Seconds} = Config} ->
            case atoll_bench_config:intervals(Minutes, Seconds) of
                ok -> distributed((maps:without([Key || {Key, _, _, _} <- Further], Config))#{settings => maps:with([Key || {Key, _, _, _} <- Further], Config)});
                {error, _} = Error -> Error
            end;
        {error, _} = Error -> Error
    end.

%% Basho Bench says twice that there are other nodes.
distributed(#{distribute_work := false} = Config) -> {ok, Config#{remote_nodes := []}};
distributed(#{remote_nodes := [_ | _]} = Config) -> {ok, Config};
distributed(#{remote_nodes := []}) -> {error, {none, {missing, remote_nodes}}}.

rules(Driver) ->
    Kept = fun atoll_bench_config:kept/1,
    Number = fun(Most) -> atoll_bench_config:number(0, Most) end,
    [
        {mode, max, fun mode/1, "max, or {rate, N} with 0.001 to 1000000 operations in a second of each worker"},
        {offered_load, closed, atoll_bench_config:rate(1_000_000), "a whole number of operations a second from 1 to 1000000, or closed"},
        {duration, 5, Number(?MOST_MINUTES), "a number of minutes above 0, at most a day"},
        {concurrent, 3, atoll_bench_config:whole(1, 10_000), "a whole number from 1 to 10000"},
        {driver, required, fun driver/1, "a driver"},
        {operations, [{get, get, 4}, {put, put, 4}, {delete, delete, 1}], atoll_bench_config:operations(fun(Weighted) -> fault(Weighted, case Driver of {ok, Module} -> atoll_load_driver:operations(Module); _ -> any end) end), "a list of {Operation, Weight} or {Label, Operation, Weight}"},
        {key_generator, {uniform_int, 100_000}, atoll_bench_config:checked(fun atoll_load_keys:check_key/1), "a generator"},
        {value_generator, {fixed_bin, 100}, atoll_bench_config:checked(fun atoll_load_keys:check_value/1), "a generator"},
        {report_interval, 10, Number(86_400), "a number of seconds above 0"},
        {rng_seed, {42, 23, 12}, Kept(fun(now) -> true; ({A, B, C}) -> is_integer(A) andalso is_integer(B) andalso is_integer(C); (_) -> false end), "now, or three whole numbers"},
        {code_paths, [], Kept(fun(L) -> is_list(L) andalso lists:all(fun io_lib:printable_unicode_list/1, L) end), "a list of folders"},
        {shutdown_on_error, false, Kept(fun is_boolean/1), "true or false"},
        {pre_hook, none, fun hook/1, "{Module, Function}"},
        {post_hook, none, fun hook/1, "{Module, Function}"},
        {distribute_work, false, Kept(fun is_boolean/1), "true or false"},
        {remote_nodes, [], fun remote_nodes/1, "a list of different {Host, Name}, of 50 at most, with letters, digits and _ in their names"}
    ].

%% Basho Bench has two words for it.
mode(Max) when Max =:= max; Max =:= {rate, max} -> {ok, max};
mode({rate, N} = Mode) when is_number(N), N >= 0.001, N =< 1_000_000 -> {ok, Mode};
mode(_) -> error.

hook({Module, Function} = Hook) when is_atom(Module), is_atom(Function) ->
    case code:ensure_loaded(Module) =:= {module, Module} andalso erlang:function_exported(Module, Function, 0) of
        true -> {ok, Hook};
        false -> {error, io_lib:format("has ~ts:~ts/0, which is no function", [Module, Function])}
    end;
hook(none) -> {ok, none};
hook(_) -> error.

%% What is wrong with it stands behind its name.
driver(Name) ->
    case atoll_load_driver:find(Name) of
        {ok, Driver} -> {ok, Driver};
        {error, Why} -> {error, Why}
    end.

fault({Label, Operation, Weight}, Known) when is_integer(Weight), Weight > 0, Weight =< ?MOST_WEIGHT ->
    case {atoll_bench_config:is_label(Label), Known =:= any orelse lists:member(Operation, Known)} of
        {true, true} -> ok;
        {true, false} -> {error, io_lib:format("has ~0tP, which is none of this driver's: ~ts", [Operation, 9, lists:join(", ", [atom_to_list(O) || O <- Known])])};
        {false, _} -> {error, io_lib:format("has the label ~0tP, which must be an atom of 1 to 60 letters, digits and _", [Label, 9])}
    end;
fault({Label, _, Weight}, _) -> {error, io_lib:format("has the weight ~0tP for ~0tP, which must be a whole number from 1 to ~b", [Weight, 9, Label, 9, ?MOST_WEIGHT])}.

%% They are started for the load, on this machine.
remote_nodes(List) ->
    IsNode = fun({Host, Name}) -> is_atom(Host) andalso atoll_bench_config:is_label(Name) andalso length(atom_to_list(Name)) =< ?NAME; (_) -> false end,
    case is_list(List) andalso length(List) =< ?MOST_NODES andalso lists:all(IsNode, List) andalso length(lists:usort(List)) =:= length(List) of
        true ->
            case [Host || {Host, _} <- List, Host =/= localhost] of
                [] -> {ok, List};
                [Host | _] -> {error, io_lib:format("has the host ~ts, and nodes for workers are started on this machine only: localhost", [Host])}
            end;
        false -> error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(Error) -> atoll_bench_config:format_error(Error).
