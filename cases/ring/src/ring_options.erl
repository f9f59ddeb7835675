%% SPDX-License-Identifier: Apache-2.0
%% @doc The settings, the environment of the application, checked key by key when it starts. Nobody reads the environment later.
-module(ring_options).

-export([check/1, format_error/1, install/1, uninstall/0, installed/0]).

-export_type([options/0, error/0]).

-type options() :: #{
    %% The nodes with which the ring begins, the same on each of them. `[]', which is the default, for one that is to join a ring.
    nodes := [node()],
    %% A power of two, the same everywhere: 64 unless told.
    partitions := ring_hash:count(),
    %% How many copies a key has, how many of them answer a read, and how many have a write: 3, 2 and 2.
    copies := pos_integer(),
    read := pos_integer(),
    write := pos_integer(),
    %% Where values are kept: in memory, or on the disk below `dir', which is `ring.data' unless told.
    store := ets | dets,
    dir := file:filename(),
    %% Whether all versions that nobody has overwritten are kept, or the one that was written last: `all'.
    versions := all | last,
    %% Of the carrier, in which messages of partitions go; `none'. Each partition has its own key there.
    channel := atom(),
    %% For how long a partition holds each request for a key, as the paper's does: 0.
    delay_ms := non_neg_integer(),
    %% Requests that a node takes at a time, and that wait for a partition: 10000 and 1000.
    requests := pos_integer(),
    queue := pos_integer(),
    %% How long a request may take: 10000.
    request_ms := pos_integer(),
    %% A node that begins, and knows fewer others than a key has copies, waits so long for them before it takes requests: 5000.
    alone_ms := pos_integer(),
    %% Partitions that a node hands over at a time, and how often it looks what there is to hand over: 2 and 500.
    handoffs := pos_integer(),
    tick_ms := pos_integer(),
    %% How often copies are compared, and how many of them at a time: 200 and 8.
    exchange_ms := pos_integer(),
    exchanges := pos_integer()
}.

-type error() :: {bad_option, Key :: term(), Must :: string()}.

%% @doc All settings, with the defaults of those that are not told.
-spec check(#{atom() => term()}) -> {ok, options()} | {error, error()}.
check(Told) ->
    case maps:keys(Told) -- [Key || {Key, _, _, _} <- rules()] of
        [] -> checked(rules(), Told, #{});
        [Key | _] -> {error, {bad_option, Key, "is not known"}}
    end.

checked([], _, #{copies := Copies, read := R, write := W} = Options) ->
    case [Key || {Key, N} <- [{read, R}, {write, W}], N > Copies] of
        [] -> {ok, Options};
        [Key | _] -> {error, {bad_option, Key, "must be at most as many as there are copies"}}
    end;
checked([{Key, Default, Test, Must} | Rules], Told, Options) ->
    Value = maps:get(Key, Told, Default),
    case Test(Value) of
        true -> checked(Rules, Told, Options#{Key => Value});
        false -> {error, {bad_option, Key, Must}}
    end.

rules() ->
    Number = fun(Most) -> fun(N) -> is_integer(N) andalso N > 0 andalso N =< Most end end,
    One = fun(Words) -> fun(Word) -> lists:member(Word, Words) end end,
    Some = Number(1_000_000),
    [
        {nodes, [], fun are_nodes/1, "must be a list of different nodes"},
        {partitions, 64, fun ring_hash:is_count/1, "must be a power of two, 65536 at most"},
        {copies, 3, Number(16), "must be a whole number from 1 to 16"},
        {read, 2, Number(16), "must be a whole number from 1 to 16"},
        {write, 2, Number(16), "must be a whole number from 1 to 16"},
        {store, ets, One([ets, dets]), "must be ets or dets"},
        {dir, "ring.data", fun(T) -> is_list(T) andalso T =/= [] andalso io_lib:printable_unicode_list(T) end, "must be the name of a folder"},
        {versions, all, One([all, last]), "must be all or last"},
        {channel, none, fun is_atom/1, "must be a channel of the carrier, or none"},
        {delay_ms, 0, fun(N) -> is_integer(N) andalso N >= 0 andalso N =< 1000 end, "must be a number of milliseconds from 0 to 1000"},
        {requests, 10_000, Some, "must be a whole number above 0"},
        {queue, 1000, Some, "must be a whole number above 0"},
        {request_ms, 10_000, Some, "must be a number of milliseconds above 0"},
        {alone_ms, 5000, Some, "must be a number of milliseconds above 0"},
        {handoffs, 2, Number(100), "must be a whole number from 1 to 100"},
        {tick_ms, 500, Some, "must be a number of milliseconds above 0"},
        {exchange_ms, 200, Some, "must be a number of milliseconds above 0"},
        {exchanges, 8, Number(1000), "must be a whole number from 1 to 1000"}
    ].

are_nodes(Nodes) -> is_list(Nodes) andalso lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, Must}) -> io_lib:format("The setting ~0tp of ring ~ts.", [Key, Must]).

%% @doc Makes them those of this node, with two counts of its requests.
-spec install(options()) -> ok.
install(Options) -> persistent_term:put(?MODULE, {Options, atomics:new(2, [])}).

%% @doc There is no ring here any longer.
-spec uninstall() -> ok.
uninstall() ->
    _ = persistent_term:erase(?MODULE),
    ok.

%% @doc Those of this node.
-spec installed() -> {options(), Requests :: atomics:atomics_ref()} | none.
installed() -> persistent_term:get(?MODULE, none).
