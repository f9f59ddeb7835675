%% SPDX-License-Identifier: Apache-2.0
%% @doc The ring as a state that all members have: a handler of Atoll's overlay ({@link atoll_handler}), which broadcasts what changes and compares neighbours' rings, so that whoever
%% came late or was cut off gets what it lacks. All that is decided is in {@link ring_state}.
-module(ring_gossip).
-behaviour(atoll_handler).

-export([child_spec/1, put/1, subscribe/0]).
-export([init/1, merge/3, digest/1, since/2]).

%% A ring of 1,024 partitions is 4 KB; what has changed is brought within seconds of a cut's end.
-define(EXCHANGE_MS, 2000).

%% @doc For the supervisor, with the ring that this node begins with.
-spec child_spec(ring_state:ring()) -> supervisor:child_spec().
child_spec(Ring) -> atoll_handler:child_spec({?MODULE, ?MODULE, Ring, #{exchange_ms => ?EXCHANGE_MS}}).

%% @doc Says these pieces here and everywhere. What cannot be told at the moment comes to the others later.
-spec put([ring_state:piece()]) -> ok.
put(Pieces) ->
    _ = [atoll_handler:put(?MODULE, Name, Value) || {Name, Value} <- Pieces],
    ok.

%% @doc From now on the caller gets `{atoll, ring_gossip, {new, Name, Value}}' for each change.
-spec subscribe() -> ok.
subscribe() -> atoll_handler:subscribe(?MODULE).

%% @private After a crash it goes on with what the table has.
-spec init(ring_state:ring()) -> ring_state:ring().
init(First) ->
    Ring = case ring_view:ring() of {ok, Known} -> Known; none -> First end,
    ok = ring_view:install(Ring),
    Ring.

%% @private
-spec merge(term(), term(), ring_state:ring()) -> {new | stale, ring_state:ring()}.
merge(Name, Value, Ring) ->
    case ring_state:apply(Name, Value, Ring) of
        {changed, Now} ->
            ok = ring_view:install(Now),
            {new, Now};
        same ->
            _ = [logger:error(#{what => ring_with_other_partitions, own => ring_state:partitions(Ring), from => element(1, Value)}) || not ring_state:fits(Name, Value, Ring)],
            {stale, Ring}
    end.

%% @private
-spec digest(ring_state:ring()) -> ring_state:digest().
digest(Ring) -> ring_state:digest(Ring).

%% @private
-spec since(ring_state:digest(), ring_state:ring()) -> [ring_state:piece()].
since(Digest, Ring) -> ring_state:since(Digest, Ring).
