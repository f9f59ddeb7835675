%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares the copies of keys that nobody reads, and mends where they differ (anti-entropy).
%%
%% For each of its partitions a node goes through the partitions whose keys it holds, and asks each of the others that hold them: first for the hash of all, and only as long as that differs for
%% branches, leaves and keys ({@link ring_tree}). What differs is merged, and told both. Some comparisons are made in each turn, so
%% that all are made again and again at a cost that does not hang on the number of keys.
%%
%% Promised: copies whose nodes are well come to be equal, if nothing is written. Not promised: how soon.
-module(ring_entropy).
-behaviour(gen_server).

-export([start_link/1, pairs/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([pair/0]).

-type pair() :: {Of :: ring_hash:partition(), Own :: ring_hash:partition(), Other :: ring_hash:partition()}.
%% The keys of `Of', as this node has them in `Own' and another, or this one, in `Other'.

-record(state, {
    options :: ring_options:options(),
    %% What is left of this round.
    pairs = [] :: [pair()]
}).

-define(ASK_MS, 5000).
%% Keys of one comparison; others have their turn in the next round.
-define(KEYS, 1000).

%% @doc Starts it under its name.
-spec start_link(ring_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc All comparisons of a node: of each pair of copies one, from the side of the first. Pure.
-spec pairs(node(), Copies :: pos_integer(), ring_hash:count(), fun((ring_hash:partition()) -> node())) -> [pair()].
pairs(Node, Copies, Count, Owner) ->
    [
        {Of, Own, Other}
     || Of <- lists:seq(0, Count - 1),
        Held <- [ring_hash:successors(Of, Copies, Count)],
        Own <- Held,
        Owner(Own) =:= Node,
        Other <- Held,
        Own < Other
    ].

%% @private
-spec init(ring_options:options()) -> {ok, #state{}}.
init(#{exchange_ms := Ms} = Options) ->
    _ = erlang:send_after(Ms, self(), turn),
    {ok, #state{options = Options}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Message, _, _) -> error({no_such_message, Message}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(turn, #state{}) -> {noreply, #state{}}.
handle_info(turn, #state{options = #{exchange_ms := Ms, exchanges := Most, copies := Copies}, pairs = Left} = S) ->
    {ok, Ring} = ring_view:ring(),
    All = case {Left, ring_state:epoch(Ring)} of
        {[_ | _], _} -> Left;
        {[], 0} -> [];
        {[], _} -> pairs(node(), Copies, ring_state:partitions(Ring), fun ring_view:owner/1)
    end,
    {Now, Later} = lists:split(min(Most, length(All)), All),
    _ = [compared(Pair) || Pair <- Now],
    _ = erlang:send_after(Ms, self(), turn),
    {noreply, S#state{pairs = Later}}.

compared({Of, Own, Other}) ->
    Places = [{Own, node()}, {Other, ring_view:owner(Other)}],
    case ring_view:owner(Own) =:= node() andalso ring_view:is_up(ring_view:owner(Other)) of
        true ->
            ok = ring_view:count(exchanged),
            try
                down(Of, Places)
            catch
                %% One of both has not answered; there is a next round.
                throw:silent -> ok
            end;
        false -> ok
    end.

down(Of, Places) ->
    case both(Places, {root, Of}) of
        [Same, Same] -> ok;
        _ ->
            [A, B] = both(Places, {branches, Of}),
            [C, D] = both(Places, {leaves, Of, ring_tree:differing(A, B)}),
            [E, F] = both(Places, {keys, Of, ring_tree:differing(C, D)}),
            _ = [mended({Of, Key}, Places) || Key <- lists:sublist(ring_tree:differing(E, F), ?KEYS)],
            ok
    end.

mended(OfKey, Places) ->
    ok = ring_view:count(differing),
    [{ok, A}, {ok, B}] = both(Places, {get, OfKey}),
    Merged = ring_dvv:merge(A, B),
    [ask(Place, {merge, OfKey, Merged}) || {Place, Clock} <- lists:zip(Places, [A, B]), not ring_dvv:is_same(Clock, Merged)].

both(Places, Command) -> [ask(Place, Command) || Place <- Places].

ask({Partition, Node}, Command) ->
    case ring_send:call(Node, {ring_kvs_vnode, Partition, primary}, Command, ?ASK_MS) of
        {ok, {error, _}} -> throw(silent);
        {ok, Reply} -> Reply;
        {error, _} -> throw(silent)
    end.
