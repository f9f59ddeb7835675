%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells other nodes of events by Atoll's broadcast, and hears of theirs. Where there is no overlay nobody is told: with one node there is none.
%%
%% A broadcast that is lost, or that cannot be sent now, is no loss: the processes of a match look into the store after a while.
-module(matchstream_gossip).
-behaviour(gen_server).

-export([start_link/0, tell/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(AGAIN_MS, 500).

%% @doc Starts it.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Tells the others.
-spec tell(matchstream_match:id(), matchstream_match:event()) -> ok.
tell(Id, Event) ->
    _ = atoll:broadcast(?MODULE, {Id, Event}),
    ok.

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    self() ! subscribe,
    {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> no_return().
handle_call(Request, _, _) -> error({no_such_call, Request}).

%% @private
-spec handle_cast(term(), []) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(subscribe | {atoll, broadcast, map()}, []) -> {noreply, []}.
handle_info(subscribe, []) ->
    case atoll:subscribe({broadcast, ?MODULE}) of
        ok -> ok;
        {error, _} -> _ = erlang:send_after(?AGAIN_MS, self(), subscribe), ok
    end,
    {noreply, []};
handle_info({atoll, broadcast, #{from := From}}, []) when From =:= node() -> {noreply, []};
handle_info({atoll, broadcast, #{payload := {Id, Event}}}, []) ->
    %% Where it has no process nobody follows it.
    _ = [matchstream_live:remote(Live, Event) || {ok, Live} <- [matchstream_lives:known(Id)]],
    {noreply, []}.
