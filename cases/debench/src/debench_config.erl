%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of DE-Bench: the original's keys, as Erlang terms in a file.
%% ```
%% {duration, 5}.
%% {concurrent, 10}.
%% {report_interval, 5}.
%% {operations, [{spawning, 10}, {global_register, 1}, {ping, remote_call, 10}]}.
%% '''
%% How they are read says {@link atoll_bench_config}. One key is ours,
%% `offered_load': so many operations begin in a second on each node, whatever becomes of the others;
%% or, if it is `closed', one begins when its worker's last has ended, as in the original.
-module(debench_config).

-export([read/1, check/1, format_error/1]).

-export_type([config/0, weighted/0, error/0]).

-type weighted() :: atoll_bench_config:weighted(debench_op:operation()).

-type config() :: #{
    %% Minutes.
    duration := number(),
    %% Worker processes of a node.
    concurrent := pos_integer(),
    %% Seconds.
    report_interval := number(),
    %% Names of nodes, which the original was pointed at; none if ours to choose.
    erlange_nodes := [node()],
    operations := [weighted(), ...],
    %% Seconds before and after the nodes are connected.
    sleep_time_before_ping := number(),
    sleep_time_after_ping := number(),
    %% Bytes that are sent along and come back.
    packet_size := pos_integer(),
    %% Microseconds for which the remote function keeps its processor busy.
    delay_remote_function := non_neg_integer(),
    %% Names that each node registers, and processes that it starts, before the load.
    initial_global_size := non_neg_integer(),
    initial_active_process := non_neg_integer(),
    %% Seconds.
    delay_after_bench_finished := number(),
    %% What the nodes' names begin with.
    node_name := atom() | none,
    %% In groups: whether operations of two nodes leave the group.
    transitive_connection := boolean(),
    %% Read, and without effect: names are numbered, not drawn.
    max_random := pos_integer(),
    %% Operations a second that each node begins, or a closed loop.
    offered_load := atoll_bench_pace:rate()
}.

-type error() :: atoll_bench_config:error().

-define(MAX_SECONDS, 86400).
-define(LEAST_INTERVAL, 0.1).
-define(MAX_WEIGHT, 1000000000).

%% @doc Reads and checks a file.
-spec read(file:filename_all()) -> {ok, config()} | {error, error()}.
read(File) -> atoll_bench_config:read(File, fun check/1).

%% @doc Checks terms that were read, each with its line.
-spec check([atoll_bench_terms:placed()]) -> {ok, config()} | {error, error()}.
check(Terms) ->
    case atoll_bench_config:check(Terms, rules()) of
        {ok, #{duration := Minutes, report_interval := Seconds} = Config} ->
            case atoll_bench_config:intervals(Minutes, Seconds) of
                ok -> {ok, Config};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% Each key, its default, how its value is read, and what that must be.
rules() ->
    Whole = fun atoll_bench_config:whole/2,
    Kept = fun atoll_bench_config:kept/1,
    %% Seconds, none among them.
    Pause = Kept(fun(N) -> is_number(N) andalso N >= 0 andalso N =< ?MAX_SECONDS end),
    [
        {duration, 5, atoll_bench_config:number(0, ?MAX_SECONDS div 60), "a number of minutes above 0, at most a day"},
        {concurrent, 10, Whole(1, 1000), "a whole number from 1 to 1000"},
        {report_interval, 5, Kept(fun(N) -> is_number(N) andalso N >= ?LEAST_INTERVAL andalso N =< ?MAX_SECONDS end), "a number of seconds from 0.1, at most a day"},
        {erlange_nodes, [], Kept(fun are_nodes/1), "a list of different names of nodes"},
        {operations, required, fun operations/1, "a list of {Operation, Weight} or {Label, Operation, Weight}"},
        {sleep_time_before_ping, 0, Pause, "a number of seconds from 0, at most a day"},
        {sleep_time_after_ping, 0, Pause, "a number of seconds from 0, at most a day"},
        {packet_size, 1000, Whole(1, 10000000), "a whole number of bytes from 1 to 10000000"},
        {delay_remote_function, 0, Whole(0, 10000000), "a whole number of microseconds from 0 to 10000000"},
        {initial_global_size, 0, Whole(0, 100000), "a whole number from 0 to 100000"},
        {initial_active_process, 0, Whole(0, 100000), "a whole number from 0 to 100000"},
        {delay_after_bench_finished, 0, Pause, "a number of seconds from 0, at most a day"},
        {node_name, none, fun name/1, "an atom of a letter and at most 39 letters, digits, _ or -"},
        {transitive_connection, false, Kept(fun is_boolean/1), "true or false"},
        {max_random, 1000000, Whole(1, 1 bsl 60), "a whole number from 1"},
        {offered_load, 100, atoll_bench_config:rate(100000), "a whole number of operations a second from 1 to 100000, or closed"}
    ].

%% The guard is for lists that do not end with one.
are_nodes(Nodes) when length(Nodes) >= 0 -> lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes);
are_nodes(_) -> false.

%% The original has whole names there, as it starts the node itself.
name(Name) when is_atom(Name) ->
    [Own | _] = string:split(atom_to_list(Name), "@"),
    Match = re:run(Own, "^[a-zA-Z][a-zA-Z0-9_-]{0,39}$", [dollar_endonly, {capture, none}]),
    case Match of match -> {ok, list_to_atom(Own)}; nomatch -> error end;
name(_) ->
    error.

%% There must be something to draw that is then done: a look-up or a removal waits for a
%% registration, and one that is drawn without is skipped.
operations(List) ->
    case (atoll_bench_config:operations(fun fault/1))(List) of
        {ok, Weighted} ->
            case [Operation || {_, Operation, Weight} <- Weighted, Weight > 0, begins(Operation)] of
                [] -> {error, "has no weight above 0 for an operation that can begin: a call, or a registration"};
                _ -> {ok, Weighted}
            end;
        Wrong ->
            Wrong
    end.

%% What is forced is measured under its operation's name.
fault({Label, Operation, Weight}) ->
    Others = lists:delete(Operation, debench_op:operations()),
    case {lists:member(Operation, debench_op:operations()), atoll_bench_config:is_label(Label), lists:member(Label, Others)} of
        {false, _, _} ->
            {error, io_lib:format("has ~0tp, which is no operation; there are ~ts", [Operation, lists:join(", ", [atom_to_list(O) || O <- debench_op:operations()])])};
        {true, false, _} ->
            {error, io_lib:format("has the label ~0tp, which must be an atom of 1 to 60 letters, digits and _", [Label])};
        {true, true, true} ->
            {error, io_lib:format("has the label ~ts for ~ts, and that is the name of another operation", [Label, Operation])};
        {true, true, false} when not is_number(Weight); Weight < 0; Weight > ?MAX_WEIGHT ->
            {error, io_lib:format("has the weight ~0tp for ~ts, which must be a number from 0 to ~b", [Weight, Label, ?MAX_WEIGHT])};
        {true, true, false} ->
            ok
    end.

begins(Operation) ->
    not lists:member(Operation, [global_whereis, global_unregister, local_whereis, local_unregister]).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(Error) -> atoll_bench_config:format_error(Error).
