%% SPDX-License-Identifier: Apache-2.0
%% @doc The server: has the contracts, disables what has reached its limit, and knows when all clients have seen that.
-module(adcounter_server).
-behaviour(gen_server).

-export([start_link/1, open/0, await/1, disabled_at/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    options :: adcounter_options:options(),
    disabled_at = never :: never | integer(),
    %% Who wait for the end.
    waiting = [] :: [gen_server:from()]
}).

%% @doc Starts it; there are no advertisements yet.
-spec start_link(adcounter_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc From now on there are.
-spec open() -> ok.
open() -> gen_server:call(?MODULE, open).

%% @doc Waits until all clients have reported that they have seen all disabled.
-spec await(Ms :: pos_integer()) -> ok | late.
await(Ms) ->
    try
        gen_server:call(?MODULE, await, Ms)
    catch
        exit:{timeout, _} -> late
    end.

%% @doc When the last advertisement was taken away, in milliseconds of the system's clock.
-spec disabled_at() -> integer() | never.
disabled_at() -> gen_server:call(?MODULE, disabled_at).

%% @private
-spec init(adcounter_options:options()) -> {ok, #state{}}.
init(Options) ->
    ok = atoll_crdt_replica:subscribe(adcounter_replica),
    {ok, #state{options = Options}}.

%% @private
-spec handle_call(open | await | disabled_at, gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call(open, _From, #state{options = #{ads := Ads, budget := Budget}} = State) ->
    {reply, adcounter:change(adcounter_program:contracts(Ads, Budget)), State};
handle_call(await, From, #state{waiting = Waiting} = State) ->
    {noreply, told(State#state{waiting = [From | Waiting]})};
handle_call(disabled_at, _From, #state{disabled_at = At} = State) ->
    {reply, At, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _State) -> error({unknown, Message}).

%% @private
-spec handle_info({atoll, adcounter_replica, {changed, term()}}, #state{}) -> {noreply, #state{}}.
handle_info({atoll, adcounter_replica, {changed, {impressions, Ad}}} = Notice, State) ->
    ok = adcounter:once(Notice),
    ok = adcounter:change(adcounter_program:triggered(Ad, fun adcounter:read/1)),
    {noreply, State};
handle_info({atoll, adcounter_replica, {changed, ads}}, #state{disabled_at = never} = State) ->
    case adcounter_program:is_over(fun adcounter:read/1) of
        true -> {noreply, State#state{disabled_at = erlang:system_time(millisecond)}};
        false -> {noreply, State}
    end;
handle_info({atoll, adcounter_replica, {changed, seen}} = Notice, State) ->
    ok = adcounter:once(Notice),
    {noreply, told(State)};
handle_info({atoll, adcounter_replica, {changed, _}}, State) ->
    {noreply, State}.

told(#state{waiting = []} = State) ->
    State;
told(#state{waiting = Waiting, options = #{clients := Clients}} = State) ->
    case adcounter:read(seen) of
        {ok, Seen} when length(Seen) >= Clients ->
            _ = [gen_server:reply(From, ok) || From <- Waiting],
            State#state{waiting = []};
        _ ->
            State
    end.
