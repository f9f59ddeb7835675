%% SPDX-License-Identifier: Apache-2.0
%% @doc What keeps the values of a partition. One process uses it, and it alone.
-module(ring_store).

-export([module/1]).

-export_type([store/0, of_key/0]).

-type store() :: term().

-type of_key() :: {ring_hash:partition(), Key :: term()}.

%% Whether it can be used with these settings; a sentence if not.
-callback check(ring_options:options()) -> ok | {error, Sentence :: unicode:chardata()}.

%% What was kept of this partition, or nothing.
-callback open(ring_hash:partition(), ring_options:options()) -> store().

-callback get(of_key(), store()) -> {ok, ring_dvv:clock(term())} | none.

%% When it returns the value is kept as safely as this store can.
-callback put(of_key(), ring_dvv:clock(term()), store()) -> ok.

-callback fold(fun((of_key(), ring_dvv:clock(term()), Acc) -> Acc), Acc, store()) -> Acc.

%% Forgets all of it.
-callback drop(store()) -> ok.

-callback close(store()) -> ok.

%% The partitions of which something was kept when the VM began.
-callback kept(ring_options:options()) -> [ring_hash:partition()].

%% @doc The one that the settings say.
-spec module(ring_options:options()) -> module().
module(#{store := ets}) -> ring_store_ets;
module(#{store := dets}) -> ring_store_dets.
