%% SPDX-License-Identifier: Apache-2.0
%% @doc Echo on the ring: what is sent to a partition comes back.
-module(ring_echo).

-export([echo/2, key/1]).

%% @doc Sends a term to the one partition of a key, and returns what comes back.
-spec echo(Key :: term(), Term) -> {ok, Term} | {error, ring_coordinator:error()}.
echo(Key, Term) ->
    case ring_options:installed() of
        none -> {error, not_started};
        {#{request_ms := Ms}, _} ->
            case ring_view:preflist(key(Key), 1) of
                none -> {error, no_ring};
                {ok, _, []} -> {error, {too_few, 0, 1}};
                {ok, _, [{Partition, Node, Role}]} ->
                    case ring_send:call(Node, {ring_echo_vnode, Partition, Role}, {echo, Term}, Ms) of
                        {ok, {echo, Back}} -> {ok, Back};
                        {ok, {error, Error}} -> {error, Error};
                        {error, lost} -> {error, {lost, Node}};
                        {error, late} -> {error, {too_few, 0, 1}}
                    end
            end
    end.

%% @doc What is hashed of a key.
-spec key(Key :: term()) -> term().
key(Key) -> {<<"echo">>, Key}.
