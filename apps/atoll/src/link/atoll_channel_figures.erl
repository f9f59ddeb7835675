%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Tells every ten seconds, as the event `channel', what this node has written in each channel of
%% each connection, and what waits there and was dropped: for dashboards that listen to
%% `telemetry'. On a node without channels nothing is asked and nothing told.
-module(atoll_channel_figures).
-behaviour(gen_server).

-export([start_link/0, tell/0, events/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(EVERY_MS, 10000).

%% @doc Starts the process.
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Has it told now, too.
-spec tell() -> ok.
tell() ->
    gen_server:cast(?MODULE, tell).

%% @doc The events that these connections make: details and measurements.
-spec events([atoll_connections:connection()]) ->
    [{#{node := node(), channel := atoll_dist_named:name()}, atoll_dist_sorter:channel()}].
events(Links) ->
    [
        {#{node => Node, channel => Name}, Figures}
     || #{node := Node, channels := Channels} <- Links, {Name, Figures} <- lists:sort(maps:to_list(Channels))
    ].

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    {ok, next([])}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> no_return().
handle_call(Request, _From, []) ->
    error({unknown, Request}).

%% @private
-spec handle_cast(tell, []) -> {noreply, []}.
handle_cast(tell, []) ->
    {noreply, told()}.

%% @private
-spec handle_info(tell, []) -> {noreply, []}.
handle_info(tell, []) ->
    {noreply, next(told())}.

next(State) ->
    _ = erlang:send_after(?EVERY_MS, self(), tell),
    State.

told() ->
    case atoll_dist_member:channels() of
        {ok, Channels} when map_size(Channels) > 0 ->
            lists:foreach(
                fun({Details, Figures}) -> ok = atoll_events:emit(channel, Details, Figures) end, events(atoll_dist:links())
            ),
            [];
        _ ->
            []
    end.
