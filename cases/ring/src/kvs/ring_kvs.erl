%% SPDX-License-Identifier: Apache-2.0
%% @doc The key-value store on the ring: keys and values are any terms, and each key has N copies.
%%
%% A value is written over what its writer has seen: who reads a key gets a *context* with its values, and gives that along with the next value. Without one, or with one that is older than what another writer has
%% written meanwhile, both values stay side by side, and the next reader gets both. With `versions' set to `last' there is one: that which the key's first partition was given last, and of two that
%% different partitions were given, while a node was lost, the later one by the clocks of the nodes. What another one has written meanwhile is lost, and nobody is told.
%%
%% Promised: a value that was acknowledged is on W nodes, or on all that have a copy where these are fewer, and is there until somebody writes who has seen it. That holds as long as of these W nodes one is left that has it: with the store `dets' after any kill, with
%% `ets' as long as they are not all killed before the others have it. A read with `seen' is not older than that. Each error has a sentence.
%%
%% With `not_started', `starting', `no_ring' and `overloaded' nothing was done, and another node may be asked.
%%
%% Not promised: that a write with another error was not done; done again, it stands twice side by side. That a read without `seen' has the value of the last
%% write: while nodes are lost their partitions are kept by others. That keys/0 has all keys while a copy that was lost is filled again. That a deleted key takes no place: a mark stays.
-module(ring_kvs).
-compile({no_auto_import, [get/1, put/2]}).

-export([get/1, get/2, put/2, put/3, replace/2, delete/1, delete/2, join/2, keys/0, count/0, format_error/1]).

-export_type([context/0, seen/0, error/0]).

-type context() :: ring_dvv:context().
%% What a reader has seen: for writing over it.

-type seen() :: context() | {seen, ring_dvv:context()}.
%% What a reader or a writer has seen: for reading what is not older. What a writer gets is good for that alone: he has not seen what stands beside his value. One can be joined with another ({@link join/2}).

-type error() ::
    ring_coordinator:error()
    %% A partition's store could not be opened.
    | no_store
    %% So many values stand side by side that no more may.
    | {too_many_versions, pos_integer()}
    | {bad_option, term()}.

-define(ALL_MS, 30_000).

%% @doc The values of a key, and the context for writing over them. With `not_found' there may be a context too: of a key that was deleted.
-spec get(Key :: term()) -> {ok, [Value :: term(), ...], context()} | {not_found, context()} | {error, error()}.
get(Key) -> get(Key, #{}).

%% @doc The same, of which `r' copies are to answer; not older than what was `seen'.
-spec get(Key :: term(), #{r => pos_integer(), seen => seen()}) -> {ok, [Value :: term(), ...], context()} | {not_found, context()} | {error, error()}.
get(Key, How) ->
    case options(How) of
        {ok, #{read := Read, versions := Versions}} ->
            case ring_coordinator:read(Key, #{module => ring_kvs_vnode, r => maps:get(r, How, Read), seen => plain(maps:get(seen, How, #{}))}) of
                {ok, Clock} -> shown(Versions, ring_dvv:values(Clock), ring_dvv:context(Clock));
                {error, _} = Error -> Error
            end;
        {error, _} = Error -> Error
    end.

shown(_, [], Context) -> {not_found, Context};
shown(last, [_ | _] = Stamped, Context) -> shown(all, [lists:max(Stamped)], Context);
shown(all, Stamped, Context) ->
    case [Value || {_, {value, Value}} <- Stamped] of
        [] -> {not_found, Context};
        Values -> {ok, Values, Context}
    end.

%% @doc Writes a value beside what there is.
-spec put(Key :: term(), Value :: term()) -> {ok, seen()} | {error, error()}.
put(Key, Value) -> put(Key, Value, #{}).

%% @doc Writes a value: over what its writer has seen (`context'), and until `w' copies have it.
-spec put(Key :: term(), Value :: term(), #{context => context(), w => pos_integer()}) -> {ok, seen()} | {error, error()}.
put(Key, Value, How) -> write(Key, {value, Value}, How).

%% @doc Reads a key, and writes over what was read.
-spec replace(Key :: term(), Value :: term()) -> {ok, seen()} | {error, error()}.
replace(Key, Value) -> over(Key, fun(Context) -> put(Key, Value, #{context => Context}) end).

%% @doc Reads a key, and deletes what was read.
-spec delete(Key :: term()) -> {ok, seen()} | {error, error()}.
delete(Key) -> over(Key, fun(Context) -> delete(Key, #{context => Context}) end).

over(Key, Write) ->
    case get(Key) of
        {ok, _, Context} -> Write(Context);
        {not_found, Context} -> Write(Context);
        {error, _} = Error -> Error
    end.

%% @doc Deletes what its caller has seen of a key.
-spec delete(Key :: term(), #{context => context(), w => pos_integer()}) -> {ok, seen()} | {error, error()}.
delete(Key, How) -> write(Key, deleted, How).

write(Key, Value, How) ->
    case options(How) of
        {ok, #{write := Write}} ->
            Stamped = {erlang:system_time(microsecond), Value},
            case ring_coordinator:write(Key, #{module => ring_kvs_vnode, w => maps:get(w, How, Write), value => Stamped, context => maps:get(context, How, #{})}) of
                {written, Seen} -> {ok, {seen, Seen}};
                {error, _} = Error -> Error
            end;
        {error, _} = Error -> Error
    end.

plain({seen, Seen}) -> Seen;
plain(Context) -> Context.

%% @doc What both together have seen.
-spec join(seen(), seen()) -> seen().
join(A, B) -> {seen, ring_dvv:join(plain(A), plain(B))}.

options(How) ->
    case ring_options:installed() of
        none -> {error, not_started};
        {#{copies := N} = Options, _} ->
            case [Pair || {Key, Value} = Pair <- maps:to_list(How), not is_right(Key, Value, N)] of
                [] -> {ok, Options};
                [Bad | _] -> {error, {bad_option, Bad}}
            end
    end.

is_right(Key, Value, N) when Key =:= r; Key =:= w -> is_integer(Value) andalso Value > 0 andalso Value =< N;
is_right(seen, Seen, _) -> ring_dvv:is_context(plain(Seen));
is_right(context, Context, _) -> ring_dvv:is_context(Context);
is_right(_, _, _) -> false.

%% @doc All keys that have a value, in any order.
-spec keys() -> {ok, [Key :: term()]} | {error, error()}.
keys() ->
    case ring_coordinator:spread(ring_kvs_vnode, keys, ?ALL_MS) of
        {ok, Replies} -> {ok, lists:append(Replies)};
        {error, _} = Error -> Error
    end.

%% @doc How many keys have a value.
-spec count() -> {ok, non_neg_integer()} | {error, error()}.
count() ->
    case ring_coordinator:spread(ring_kvs_vnode, count, ?ALL_MS) of
        {ok, Replies} -> {ok, lists:sum(Replies)};
        {error, _} = Error -> Error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({too_few, Answered, Needed}) -> io_lib:format("Of ~b partitions that were to answer ~b have.", [Needed, Answered]);
format_error({too_few_nodes, Nodes, Needed}) -> io_lib:format("What has answered is on ~b nodes, and must be on ~b.", [Nodes, Needed]);
format_error(older) -> "Nobody who answers has what the caller has seen.";
format_error({lost, Node}) -> io_lib:format("The node ~ts was lost meanwhile; the value may be written, or not.", [Node]);
format_error(overloaded) -> "There are as many requests as there may be.";
format_error(no_ring) -> "This node is in no ring.";
format_error(no_store) -> "The partition cannot keep anything: its node's log says why.";
format_error(not_started) -> "The ring does not run on this node.";
format_error(starting) -> "The ring has just begun on this node, which does not know the others yet.";
format_error({uncovered, Partition}) -> io_lib:format("No node that has the keys of partition ~b can be reached.", [Partition]);
format_error({too_many_versions, N}) -> io_lib:format("~b values stand side by side, and no more may: read them, and write with the context.", [N]);
format_error({bad_option, {Key, Value}}) -> io_lib:format("The option ~0tp cannot be ~0tP.", [Key, Value, 9]);
format_error(Other) -> io_lib:format("A partition says ~0tP.", [Other, 9]).
