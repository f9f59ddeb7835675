%% SPDX-License-Identifier: Apache-2.0
%% @doc Replicated data types without conflicts: values that several replicas change at once, and
%% that become equal when the replicas have told each other what they did, in whatever order and
%% however often. All of it is pure.
%%
%% A state is an element of a join-semilattice, and `join/2' is the least upper bound. A mutator
%% does not give the next state but a *delta*, mostly a small one: a state of the same type that
%% joined with the state gives the next one. Deltas may be joined with each other, be lost and
%% come again, and come in any order. These are the delta-state types of P. S. Almeida, A. Shoker,
%% C. Baquero, "Delta state replicated data types", J. Parallel Distrib. Comput. 111 (2018);
%% sections 6 and 7 have the counters, and the types with a causal context
%% (`atoll_crdt_context').
%%
%% == The types and their operations ==
%% <table>
%% <tr><th>type</th><th>operations</th><th>value</th><th>of two that do not know of each other</th></tr>
%% <tr><td>`gcounter'</td><td>`increment', `{increment, N}'</td><td>how many</td><td>both count</td></tr>
%% <tr><td>`pncounter'</td><td>the same, and `decrement', `{decrement, N}'</td><td>how many</td><td>both count</td></tr>
%% <tr><td>`max'</td><td>`{put, V}'</td><td>`{ok, V}', or `none'</td><td>the greater one stays</td></tr>
%% <tr><td>`lww'</td><td>`{put, V, Stamp}'</td><td>`{ok, V}', or `none'</td><td>the later one stays</td></tr>
%% <tr><td>`mv'</td><td>`{put, V}', `clear'</td><td>a sorted list</td><td>both stay, until the next `put'</td></tr>
%% <tr><td>`enable_wins'</td><td>`enable', `disable', `clear'</td><td>a boolean, at first `false'</td><td>it is enabled</td></tr>
%% <tr><td>`disable_wins'</td><td>`enable', `disable', `clear'</td><td>a boolean, at first `true'</td><td>it is disabled</td></tr>
%% <tr><td>`set'</td><td>`{add, E}', `{remove, E}', `clear'</td><td>a sorted list</td><td>what is added stays</td></tr>
%% <tr><td>`map'</td><td>`{update, {Key, Type}, Operation}', `{remove, {Key, Type}}', `clear'</td><td>a map
%%   of `{Key, Type}' to the value</td><td>what is updated stays, as far as that update goes</td></tr>
%% </table>
%% `map' holds the types that have a causal context: the last five, itself among them.
%%
%% == What an actor must keep to ==
%% Each mutator names the *actor*, who changes. No two replicas may change as one and the same
%% actor, and an actor that has lost its state is another one from then on: so an actor is a
%% node with the number of its life, for instance. All types but `max' and `lww' rely on it.
%%
%% Not promised: a bound on the size. A counter has an entry for each actor that ever changed it,
%% and so has a causal context. A removed element leaves nothing but that.
-module(atoll_crdt).

-export([new/1, types/0, type/1]).
-export([mutate/3, update/3, join/2, difference/2, value/1, equal/2, includes/2, bytes/1, hash/1]).
-export([format_error/1]).

-export_type([crdt/0, type/0, operation/0, actor/0, error/0]).

-type type() :: gcounter | pncounter | max | lww | mv | enable_wins | disable_wins | set | map.

-type actor() :: atom() | integer() | binary() | {actor(), actor()}.

-type operation() :: term().
%% See the table.

-opaque crdt() :: {type(), Store :: term(), atoll_crdt_context:context()}.
%% A state, or a delta. It goes from node to node as it is. The context of one that needs none
%% is empty.

-type error() ::
    {no_such_operation, type(), operation()}
    %% A map cannot hold it.
    | {not_in_a_map, term()}.

-define(HASHES, (1 bsl 32)).

%% @doc The types.
-spec types() -> [type(), ...].
types() -> [gcounter, pncounter, max, lww, mv, enable_wins, disable_wins, set, map].

%% @doc The state of that type that nobody has changed yet.
-spec new(type()) -> crdt().
new(Type) -> {Type, (atoll_crdt_type:module(Type)):new(), atoll_crdt_context:new()}.

%% @doc The type of a state.
-spec type(crdt()) -> type().
type({Type, _, _}) -> Type.

%% @doc The delta of an operation on that state. One that changes nothing has a delta too.
-spec mutate(operation(), actor(), crdt()) -> {ok, crdt()} | {error, error()}.
mutate(Operation, Actor, {Type, Store, Context}) ->
    case (atoll_crdt_type:module(Type)):mutate(Operation, Actor, Store, Context) of
        {ok, Delta, Dots} -> {ok, {Type, Delta, atoll_crdt_context:from(Dots)}};
        {error, _} = Error -> Error;
        error -> {error, {no_such_operation, Type, Operation}}
    end.

%% @doc The next state, and the delta that makes it.
-spec update(operation(), actor(), crdt()) -> {ok, crdt(), Delta :: crdt()} | {error, error()}.
update(Operation, Actor, State) ->
    case mutate(Operation, Actor, State) of
        {ok, Delta} -> {ok, join(State, Delta), Delta};
        {error, _} = Error -> Error
    end.

%% @doc What both know together; both are of one type. Where that is the first one it is the very
%% same term.
-spec join(crdt(), crdt()) -> crdt().
join({Type, Store, Context}, {Type, OtherStore, OtherContext}) ->
    {Type, (atoll_crdt_type:module(Type)):join(Store, Context, OtherStore, OtherContext), atoll_crdt_context:join(Context, OtherContext)}.

%% @doc What of the first, a state or a delta, the second one does not know: a delta that joined with the second one gives the
%% join of both. By it a replica hands on of what it was told only what it did not know itself: V. Enes and others, "Efficient
%% synchronization of state-based CRDTs" (ICDE 2019).
-spec difference(crdt(), crdt()) -> crdt().
difference({Type, Store, Context}, {Type, Known, KnownContext}) ->
    Module = atoll_crdt_type:module(Type),
    Removed = [Dot || Dot <- Module:dots(Known) -- Module:dots(Store), atoll_crdt_context:has(Dot, Context)],
    Dots = atoll_crdt_context:from(Removed ++ atoll_crdt_context:difference(Context, KnownContext)),
    {Type, Module:difference(Store, Known, KnownContext), Dots}.

%% @doc What a user sees of it.
-spec value(crdt()) -> term().
value({Type, Store, _}) -> (atoll_crdt_type:module(Type)):value(Store).

%% @doc Whether they are the same state. Two with the same value need not be.
-spec equal(crdt(), crdt()) -> boolean().
equal(One, Other) -> One =:= Other.

%% @doc Whether the first one knows all that the second one does.
-spec includes(crdt(), crdt()) -> boolean().
includes(One, Other) -> join(One, Other) =:= One.

%% @doc How many bytes it has on the wire, in the external term format.
-spec bytes(crdt()) -> pos_integer().
bytes(State) -> erlang:external_size(State).

%% @doc 64 bits that are the same for equal states, on each release of OTP.
-spec hash(crdt()) -> non_neg_integer().
hash(State) -> erlang:phash2(State, ?HASHES) * ?HASHES + erlang:phash2({?MODULE, State}, ?HASHES).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({no_such_operation, Type, Operation}) ->
    io_lib:format("~0tp is no operation of the type ~ts.", [Operation, Type]);
format_error({not_in_a_map, Field}) ->
    io_lib:format("A map has keys {Key, Type}, where Type is ~ts, and not ~0tp.", [
        lists:join(", ", [atom_to_list(Type) || Type <- atoll_crdt_type:causal()]), Field
    ]).
