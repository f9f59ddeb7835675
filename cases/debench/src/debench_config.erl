%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of DE-Bench: the original's keys, as Erlang terms in a file.
%% ```
%% {duration, 5}.
%% {concurrent, 10}.
%% {report_interval, 5}.
%% {operations, [{spawning, 10}, {global_register, 1}, {ping, remote_call, 10}]}.
%% '''
%% Of each key the first fault is a sentence, with the line; a key that is not known is one
%% too. What is missing has the default that stands with its rule. One key is ours,
%% `offered_load': so many operations begin in a second on each node, whatever becomes of the others;
%% or, if it is `closed', one begins when its worker's last has ended, as in the original.
-module(debench_config).

-export([read/1, check/1, format_error/1]).

-export_type([config/0, weighted/0, error/0]).

-type weighted() :: {Label :: atom(), debench_op:operation(), Weight :: number()}.

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
    offered_load := debench_pace:rate()
}.

-type error() ::
    {
        file:filename_all() | none,
        debench_terms:error()
            | {line, pos_integer(), What :: unicode:chardata()}
            | no_operations
            | {intervals, Minutes :: number(), Seconds :: number()}
    }.

-define(MAX_SECONDS, 86400).
%% Each interval is kept for each node until the files are written.
-define(LEAST_INTERVAL, 0.1).
-define(MAX_INTERVALS, 10000).
-define(MAX_WEIGHT, 1000000000).

%% @doc Reads and checks a file.
-spec read(file:filename_all()) -> {ok, config()} | {error, error()}.
read(File) ->
    case debench_terms:read(File) of
        {ok, Terms} ->
            case check(Terms) of
                {ok, Config} -> {ok, Config};
                {error, {none, Reason}} -> {error, {File, Reason}}
            end;
        {error, Reason} ->
            {error, {File, Reason}}
    end.

%% @doc Checks terms that were read, each with its line.
-spec check([debench_terms:placed()]) -> {ok, config()} | {error, error()}.
check(Terms) ->
    check(Terms, #{}).

check([], #{operations := _} = Given) ->
    Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- rules(), Default =/= required]),
    few_intervals(maps:merge(Defaults, Given));
check([], _Given) ->
    {error, {none, no_operations}};
check([{Line, {Key, Value}} | Terms], Given) ->
    case lists:keyfind(Key, 1, rules()) of
        false ->
            bad(Line, "there is no key ~tp", [Key]);
        {Key, _, _, _} when is_map_key(Key, Given) ->
            bad(Line, "~ts stands there twice", [Key]);
        {Key, _Default, Read, Must} ->
            case Read(Value) of
                {ok, Read1} -> check(Terms, Given#{Key => Read1});
                {error, Why} -> bad(Line, "~ts ~ts", [Key, Why]);
                error -> bad(Line, "~ts must be ~ts, not ~0tP", [Key, Must, Value, 12])
            end
    end;
check([{Line, Term} | _], _Given) ->
    bad(Line, "a term must be {Key, Value}, not ~0tP", [Term, 12]).

few_intervals(#{duration := Minutes, report_interval := Seconds} = Config) ->
    case 60 * Minutes / Seconds =< ?MAX_INTERVALS of
        true -> {ok, Config};
        false -> {error, {none, {intervals, Minutes, Seconds}}}
    end.

bad(Line, Format, Args) ->
    {error, {none, {line, Line, io_lib:format(Format, Args)}}}.

%% Each key, its default, how its value is read, and what that must be.
rules() ->
    [
        {duration, 5, number(0, ?MAX_SECONDS div 60), "a number of minutes above 0, at most a day"},
        {concurrent, 10, whole(1, 1000), "a whole number from 1 to 1000"},
        {report_interval, 5, fun interval/1, "a number of seconds from 0.1, at most a day"},
        {erlange_nodes, [], fun nodes/1, "a list of different names of nodes"},
        {operations, required, fun weights/1, "a list of {Operation, Weight} or {Label, Operation, Weight}"},
        {sleep_time_before_ping, 0, number(-1, ?MAX_SECONDS), "a number of seconds from 0, at most a day"},
        {sleep_time_after_ping, 0, number(-1, ?MAX_SECONDS), "a number of seconds from 0, at most a day"},
        {packet_size, 1000, whole(1, 10000000), "a whole number of bytes from 1 to 10000000"},
        {delay_remote_function, 0, whole(0, 10000000), "a whole number of microseconds from 0 to 10000000"},
        {initial_global_size, 0, whole(0, 100000), "a whole number from 0 to 100000"},
        {initial_active_process, 0, whole(0, 100000), "a whole number from 0 to 100000"},
        {delay_after_bench_finished, 0, number(-1, ?MAX_SECONDS), "a number of seconds from 0, at most a day"},
        {node_name, none, fun name/1, "an atom of a letter and at most 39 letters, digits, _ or -"},
        {transitive_connection, false, fun boolean/1, "true or false"},
        {max_random, 1000000, whole(1, 1 bsl 60), "a whole number from 1"},
        {offered_load, 100, fun load/1, "a whole number of operations a second from 1 to 100000, or closed"}
    ].

whole(Min, Max) -> fun(N) -> kept(is_integer(N) andalso N >= Min andalso N =< Max, N) end.

%% The bound below is not among them; that of -1 lets 0 be.
number(-1, Max) -> fun(N) -> kept(is_number(N) andalso N >= 0 andalso N =< Max, N) end;
number(Above, Max) -> fun(N) -> kept(is_number(N) andalso N > Above andalso N =< Max, N) end.

interval(N) -> kept(is_number(N) andalso N >= ?LEAST_INTERVAL andalso N =< ?MAX_SECONDS, N).

load(closed) -> {ok, closed};
load(N) -> (whole(1, 100000))(N).

boolean(Value) -> kept(is_boolean(Value), Value).

%% The guard is for lists that do not end with one.
nodes(Nodes) when length(Nodes) >= 0 ->
    kept(lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes), Nodes);
nodes(_) ->
    error.

%% The original has whole names there, as it starts the node itself.
name(Name) when is_atom(Name) ->
    [Own | _] = string:split(atom_to_list(Name), "@"),
    Match = re:run(Own, "^[a-zA-Z][a-zA-Z0-9_-]{0,39}$", [dollar_endonly, {capture, none}]),
    kept(Match =:= match, list_to_atom(Own));
name(_) ->
    error.

kept(true, Value) -> {ok, Value};
kept(false, _Value) -> error.

weights(List) when length(List) > 0 ->
    case [W || W <- List, not is_weighted(W)] of
        [] -> whole_set([weighted(W) || W <- List]);
        [Bad | _] when tuple_size(Bad) =:= 2; tuple_size(Bad) =:= 3 -> {error, weight_fault(Bad)};
        [_ | _] -> error
    end;
weights(_) ->
    error.

weighted({Operation, Weight}) -> {Operation, Operation, Weight};
weighted({_Label, _Operation, _Weight} = Weighted) -> Weighted.

is_weighted({Operation, Weight}) -> is_weighted({Operation, Operation, Weight});
is_weighted({Label, Operation, Weight}) ->
    is_label(Label, Operation) andalso lists:member(Operation, debench_op:operations()) andalso
        is_number(Weight) andalso Weight >= 0 andalso Weight =< ?MAX_WEIGHT;
is_weighted(_) ->
    false.

%% It is part of a file's name, and what is forced is measured under its operation's.
is_label(Label, Operation) ->
    Label =:= Operation orelse (is_word(Label) andalso not lists:member(Label, debench_op:operations())).

is_word(Label) ->
    is_atom(Label) andalso
        re:run(atom_to_list(Label), "^[a-zA-Z0-9_]{1,60}$", [dollar_endonly, {capture, none}]) =:= match.

weight_fault({Operation, Weight}) ->
    weight_fault({Operation, Operation, Weight});
weight_fault({Label, Operation, Weight}) ->
    case {lists:member(Operation, debench_op:operations()), is_label(Label, Operation), is_word(Label)} of
        {false, _, _} ->
            io_lib:format("has ~0tp, which is no operation; there are ~ts", [
                Operation, lists:join(", ", [atom_to_list(O) || O <- debench_op:operations()])
            ]);
        {true, false, false} ->
            io_lib:format("has the label ~0tp, which must be an atom of 1 to 60 letters, digits and _", [Label]);
        {true, false, true} ->
            io_lib:format("has the label ~ts for ~ts, and that is the name of another operation", [Label, Operation]);
        {true, true, _} ->
            io_lib:format("has the weight ~0tp for ~ts, which must be a number from 0 to ~b", [
                Weight, Label, ?MAX_WEIGHT
            ])
    end.

%% There must be something to draw that is then done: a look-up or a removal waits for a
%% registration, and one that is drawn without is skipped.
whole_set(Weighted) ->
    Labels = [Label || {Label, _, _} <- Weighted],
    Begun = [Operation || {_, Operation, Weight} <- Weighted, Weight > 0, begins(Operation)],
    case {Labels -- lists:usort(Labels), Begun} of
        {[Twice | _], _} -> {error, io_lib:format("has the label ~ts twice", [Twice])};
        {[], []} -> {error, "has no weight above 0 for an operation that can begin: a call, or a registration"};
        {[], _} -> {ok, Weighted}
    end.

begins(Operation) ->
    not lists:member(Operation, [global_whereis, global_unregister, local_whereis, local_unregister]).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({none, Reason}) -> reason(Reason);
format_error({File, Reason}) -> [File, ": ", reason(Reason)].

reason(no_operations) -> "it does not say which operations there are: {operations, [...]}";
reason({intervals, Minutes, Seconds}) ->
    io_lib:format("a duration of ~p minutes has more than ~b intervals of ~p seconds (report_interval)", [
        Minutes, ?MAX_INTERVALS, Seconds
    ]);
reason(Reason) -> debench_terms:format_error(Reason).
