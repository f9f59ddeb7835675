%% SPDX-License-Identifier: Apache-2.0
%% @doc A partition that sends back what it is sent, and keeps nothing.
-module(ring_echo_vnode).
-behaviour(ring_vnode).

-export([init/2, handle_command/2, handle_coverage/3, items/2, items/3, take/2, is_empty/1, size/1, drop/1, close/1]).

%% @private
-spec init(ring_hash:partition(), ring_options:options()) -> {ok, none}.
init(_, _) -> {ok, none}.

%% @private
-spec handle_command({echo, term()}, none) -> {reply, {echo, term()}, [], none}.
handle_command({echo, _} = Echo, none) -> {reply, Echo, [], none}.

%% @private
-spec handle_coverage(term(), [ring_hash:partition()], none) -> none.
handle_coverage(_, _, none) -> none.

%% @private
-spec items([term()], none) -> [].
items(_, none) -> [].

%% @private
-spec items(term(), {pos_integer(), pos_integer()}, none) -> {[], none}.
items(_, _, none) -> {[], none}.

%% @private
-spec take([ring_vnode:item()], none) -> {[], none}.
take(_, none) -> {[], none}.

%% @private
-spec is_empty(none) -> true.
is_empty(none) -> true.

%% @private
-spec size(none) -> #{}.
size(none) -> #{}.

%% @private
-spec drop(none) -> ok.
drop(none) -> ok.

%% @private
-spec close(none) -> ok.
close(none) -> ok.
