%% SPDX-License-Identifier: Apache-2.0
%% @doc A partition of the key-value store: orders writes, merges what others have ordered, and answers where its keys differ from another copy's.
%%
%% Beside its values, which a store keeps ({@link ring_store}), it has in memory an index of its keys by the partition to which they belong, with the hash of what stands there,
%% and a tree of these hashes for each of these partitions ({@link ring_tree}).
%%
%% As an actor that orders writes it has a new name with each start, since after a kill it may not know what it has ordered last.
-module(ring_kvs_vnode).
-behaviour(ring_vnode).

-export([kept/1]).
-export([init/2, handle_command/2, handle_coverage/3, items/2, items/3, take/2, is_empty/1, size/1, drop/1, close/1]).

-record(kvs, {
    actor :: ring_dvv:actor(),
    store :: {module(), ring_store:store()},
    %% `{{Of, Leaf, Key}, Hash}', in that order; the key as a binary, since 1 and 1.0 are two keys
    index :: ets:table(),
    trees = #{} :: #{ring_hash:partition() => ring_tree:tree()},
    delay_ms :: non_neg_integer()
}).

-type clock() :: ring_dvv:clock({Us :: integer(), {value, term()} | deleted}).

-type of_key() :: {ring_hash:partition(), Key :: term()}.

-type command() ::
    {get, of_key()}
    | {update, of_key(), Stamped :: term(), ring_dvv:context()}
    | {merge, of_key(), clock()}
    %% What a comparison asks, of the keys of a partition.
    | {root, ring_hash:partition()}
    | {branches, ring_hash:partition()}
    | {leaves, ring_hash:partition(), [0..15]}
    | {keys, ring_hash:partition(), [ring_tree:leaf()]}.

-define(MOST_VERSIONS, 100).

%% @doc The partitions of which there is something on the disk of this node.
-spec kept(ring_options:options()) -> [{module(), ring_hash:partition()}].
kept(Options) -> [{?MODULE, P} || P <- (ring_store:module(Options)):kept(Options)].

%% @private
-spec init(ring_hash:partition(), ring_options:options()) -> {ok, #kvs{}}.
init(Partition, #{delay_ms := DelayMs} = Options) ->
    Module = ring_store:module(Options),
    Store = Module:open(Partition, Options),
    Index = ets:new(ring_index, [ordered_set, private]),
    Actor = {{node(), Partition}, {erlang:system_time(microsecond), erlang:unique_integer([positive])}},
    Empty = #kvs{actor = Actor, store = {Module, Store}, index = Index, delay_ms = DelayMs},
    {ok, Module:fold(fun(OfKey, Clock, Kvs) -> indexed(OfKey, ring_dvv:hash(Clock), Kvs) end, Empty, Store)}.

%% @private
-spec handle_command(command(), #kvs{}) -> {reply, term(), [of_key()], #kvs{}}.
handle_command({get, OfKey}, Kvs) ->
    ok = delayed(Kvs),
    {reply, {ok, read(OfKey, Kvs)}, [], Kvs};
handle_command({update, OfKey, Stamped, Context}, #kvs{actor = Actor} = Kvs) ->
    ok = delayed(Kvs),
    Before = read(OfKey, Kvs),
    Over = case ring_options:installed() of
        {#{versions := last}, _} -> ring_dvv:join(Context, ring_dvv:context(Before));
        _ -> Context
    end,
    After = ring_dvv:event(Actor, Stamped, Over, Before),
    case length(ring_dvv:values(After)) of
        N when N > ?MOST_VERSIONS -> {reply, {error, {too_many_versions, N - 1}}, [], Kvs};
        _ ->
            Seen = maps:with([Actor], ring_dvv:context(After)),
            {reply, {ok, ring_dvv:without_newest(Actor, After), Seen}, [OfKey], written(OfKey, After, Kvs)}
    end;
handle_command({merge, OfKey, Clock}, Kvs) ->
    ok = delayed(Kvs),
    {Changed, Now} = merged(OfKey, Clock, Kvs),
    {reply, ok, [OfKey || Changed], Now};
handle_command({root, Of}, Kvs) ->
    {reply, ring_tree:root(tree(Of, Kvs)), [], Kvs};
handle_command({branches, Of}, Kvs) ->
    {reply, ring_tree:branches(tree(Of, Kvs)), [], Kvs};
handle_command({leaves, Of, Branches}, Kvs) ->
    {reply, ring_tree:leaves(Branches, tree(Of, Kvs)), [], Kvs};
handle_command({keys, Of, Leaves}, #kvs{index = Index} = Kvs) ->
    {reply, [{binary_to_term(Key), Hash} || Leaf <- Leaves, [Key, Hash] <- ets:match(Index, {{Of, Leaf, '$1'}, '$2'})], [], Kvs}.

%% As the paper's store, which takes its time.
delayed(#kvs{delay_ms = 0}) -> ok;
delayed(#kvs{delay_ms = Ms}) -> receive after Ms -> ok end.

tree(Of, #kvs{trees = Trees}) -> maps:get(Of, Trees, ring_tree:new()).

read(OfKey, #kvs{store = {Module, Store}}) ->
    case Module:get(OfKey, Store) of
        {ok, Clock} -> Clock;
        none -> ring_dvv:new()
    end.

merged(OfKey, Clock, Kvs) ->
    Before = read(OfKey, Kvs),
    After = ring_dvv:merge(Before, Clock),
    case ring_dvv:is_same(Before, After) of
        true -> {false, Kvs};
        false -> {true, written(OfKey, After, Kvs)}
    end.

written(OfKey, Clock, #kvs{store = {Module, Store}} = Kvs) ->
    ok = Module:put(OfKey, Clock, Store),
    indexed(OfKey, ring_dvv:hash(Clock), Kvs).

indexed({Of, Key}, Hash, #kvs{index = Index, trees = Trees} = Kvs) ->
    Place = {Of, ring_tree:leaf(Key), term_to_binary(Key)},
    Before = case ets:lookup(Index, Place) of [{_, Old}] -> Old; [] -> 0 end,
    true = ets:insert(Index, {Place, Hash}),
    Kvs#kvs{trees = Trees#{Of => ring_tree:change(Key, Before, Hash, tree(Of, Kvs))}}.

%% @private
-spec handle_coverage(keys | count, [ring_hash:partition()], #kvs{}) -> [Key :: term()] | non_neg_integer().
handle_coverage(keys, Partitions, Kvs) -> living(Partitions, Kvs);
handle_coverage(count, Partitions, Kvs) -> length(living(Partitions, Kvs)).

living(Partitions, #kvs{index = Index} = Kvs) ->
    [
        Key
     || Of <- Partitions,
        [Place] <- ets:match(Index, {{Of, '_', '$1'}, '_'}),
        Key <- [binary_to_term(Place)],
        lists:any(fun({_, Value}) -> Value =/= deleted end, ring_dvv:values(read({Of, Key}, Kvs)))
    ].

%% @private
-spec items(term() | first, {pos_integer(), pos_integer()}, #kvs{}) -> {[ring_vnode:item()], term()}.
items(After, {Count, Bytes}, #kvs{index = Index} = Kvs) ->
    First = case After of first -> ets:first(Index); _ -> ets:next(Index, After) end,
    gathered(First, After, Count, Bytes, Kvs, []).

gathered('$end_of_table', Last, _, _, _, Items) -> {lists:reverse(Items), Last};
gathered(_, Last, Count, Bytes, _, Items) when Count =:= 0; Bytes =< 0 -> {lists:reverse(Items), Last};
gathered({Of, _, Key} = Place, _, Count, Bytes, #kvs{index = Index} = Kvs, Items) ->
    OfKey = {Of, binary_to_term(Key)},
    Clock = read(OfKey, Kvs),
    gathered(ets:next(Index, Place), Place, Count - 1, Bytes - erlang:external_size(Clock), Kvs, [{OfKey, Clock} | Items]).

%% @private
-spec items([of_key()], #kvs{}) -> [ring_vnode:item()].
items(Keys, Kvs) -> [{OfKey, read(OfKey, Kvs)} || OfKey <- Keys].

%% @private
-spec take([ring_vnode:item()], #kvs{}) -> {[of_key()], #kvs{}}.
take(Items, Kvs) ->
    ok = ring_view:count(taken, length(Items)),
    lists:foldl(
        fun({OfKey, Clock}, {Changed, Now}) ->
            {Is, Next} = merged(OfKey, Clock, Now),
            {[OfKey || Is] ++ Changed, Next}
        end,
        {[], Kvs},
        Items
    ).

%% @private
-spec is_empty(#kvs{}) -> boolean().
is_empty(#kvs{index = Index}) -> ets:info(Index, size) =:= 0.

%% @private
-spec size(#kvs{}) -> #{atom() => non_neg_integer()}.
size(#kvs{index = Index}) -> #{keys => ets:info(Index, size)}.

%% @private
-spec drop(#kvs{}) -> ok.
drop(#kvs{store = {Module, Store}}) -> Module:drop(Store).

%% @private
-spec close(#kvs{}) -> ok.
close(#kvs{store = {Module, Store}}) -> Module:close(Store).
