%% SPDX-License-Identifier: Apache-2.0
%% A server to be placed, which says where it was started and how it was ended.
-module(atoll_place_worker).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% @doc A server that traps exits, and tells this process of its start and its end.
start_link(To) ->
    gen_server:start_link(?MODULE, To, []).

%% @private
init(To) ->
    _ = process_flag(trap_exit, true),
    To ! {started, self()},
    {ok, To}.

%% @private
handle_call(where, _From, To) -> {reply, node(), To}.

%% @private
handle_cast({stop, Reason}, To) -> {stop, Reason, To}.

%% @private
handle_info(Message, To) ->
    To ! {heard, self(), Message},
    {noreply, To}.

%% @private
terminate(Reason, To) ->
    To ! {ended, self(), Reason}.
