%% SPDX-License-Identifier: Apache-2.0
%% @doc Where commands for a node's partitions come in: sixteen processes, each for a part of them. What runs gets its commands at once; others go over the master ({@link ring_master}).
%%
%% Whoever receives a message of another node unpacks it, and copies its bytes with that. In one process for all partitions that was what callers waited for: with values of
%% 512 KB on a path of 20 ms it was at work in 58 per cent of all looks, and 18 commands waited for it.
%%
%% Not promised: the order of commands of which the first has the partition started.
-module(ring_inbox).
-behaviour(gen_server).

-export([child_specs/0, start_link/1, name/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(NAMES, {
    ring_inbox_0, ring_inbox_1, ring_inbox_2, ring_inbox_3, ring_inbox_4, ring_inbox_5, ring_inbox_6, ring_inbox_7,
    ring_inbox_8, ring_inbox_9, ring_inbox_10, ring_inbox_11, ring_inbox_12, ring_inbox_13, ring_inbox_14, ring_inbox_15
}).

%% @doc For the supervisor.
-spec child_specs() -> [supervisor:child_spec()].
child_specs() -> [#{id => Name, start => {?MODULE, start_link, [Name]}} || Name <- tuple_to_list(?NAMES)].

%% @doc Starts one under its name.
-spec start_link(atom()) -> gen_server:start_ret().
start_link(Name) -> gen_server:start_link({local, Name}, ?MODULE, [], []).

%% @doc That of a partition.
-spec name(ring_hash:partition()) -> atom().
name(Partition) -> element(1 + Partition rem tuple_size(?NAMES), ?NAMES).

%% @private
-spec init([]) -> {ok, none}.
init([]) -> {ok, none}.

%% @private
-spec handle_call(term(), gen_server:from(), none) -> no_return().
handle_call(Message, _, _) -> error({no_such_message, Message}).

%% @private
-spec handle_cast(term(), none) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(ring_master:command(), none) -> {noreply, none}.
handle_info({command, _, _, _, _, _} = Command, none) ->
    case ring_master:pass(Command) of
        passed -> ok;
        %% In vain while it is started anew: whoever asks watches it.
        none -> _ = catch ring_master ! Command, ok
    end,
    {noreply, none}.
