%% SPDX-License-Identifier: Apache-2.0
%% @doc The state machine of a node that others call in DE-Bench: it answers with what it is
%% given.
-module(debench_fsm).
-behaviour(gen_statem).

-export([start_link/1]).
-export([callback_mode/0, init/1, ready/3]).

%% @doc Starts it under a name of this node.
-spec start_link(Name :: atom()) -> {ok, pid()}.
start_link(Name) ->
    {ok, _} = gen_statem:start_link({local, Name}, ?MODULE, [], []).

%% @private
-spec callback_mode() -> state_functions.
callback_mode() -> state_functions.

%% @private
-spec init([]) -> {ok, ready, none}.
init([]) -> {ok, ready, none}.

%% @private
-spec ready({call, gen_statem:from()}, {echo, binary(), non_neg_integer()}, none) ->
    {keep_state_and_data, {reply, gen_statem:from(), binary()}}.
ready({call, From}, {echo, Payload, Us}, none) ->
    {keep_state_and_data, {reply, From, debench_op:echo(Payload, Us)}}.
