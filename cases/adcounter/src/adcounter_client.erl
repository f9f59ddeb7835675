%% SPDX-License-Identifier: Apache-2.0
%% @doc A client: shows advertisements on this node, and is off line for a part of the time. {@link adcounter_phone} decides.
%%
%% It has nobody in its queue but its own timers, the replica's notices, one for each change of an object, and who asks for its report.
-module(adcounter_client).
-behaviour(gen_server).

-export([start_link/1, report/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {phone :: adcounter_phone:phone(), is_heavy :: boolean()}).

%% @doc Starts it.
-spec start_link(adcounter_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc When it has shown one, newest first, and when it saw all disabled; in milliseconds of the system's clock.
-spec report() -> {[integer()], integer() | never}.
report() -> gen_server:call(?MODULE, report).

%% @private
-spec init(adcounter_options:options()) -> {ok, #state{}}.
init(#{triggers := Triggers} = Options) ->
    ok = atoll_crdt_replica:subscribe(adcounter_replica),
    {First, Phone} = adcounter_phone:first(adcounter_phone:new(node(), rand:uniform(1 bsl 32), Options)),
    _ = erlang:send_after(First, self(), show),
    {ok, turned(#state{phone = Phone, is_heavy = Triggers =:= all})}.

%% @private
-spec handle_call(report, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(report, _From, #state{phone = Phone} = State) ->
    {reply, {adcounter_phone:shown(Phone), adcounter_phone:seen_at(Phone)}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _State) -> error({unknown, Message}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(show, #state{phone = Phone0} = State) ->
    {What, Changes, Phone1} = adcounter_phone:show(fun adcounter:read/1, erlang:system_time(millisecond), Phone0),
    ok = adcounter:change(Changes),
    case What of
        showing ->
            {Ms, Phone} = adcounter_phone:pause(Phone1),
            _ = erlang:send_after(Ms, self(), show),
            {noreply, State#state{phone = Phone}};
        done ->
            {noreply, State#state{phone = Phone1}}
    end;
handle_info(turn, State) ->
    {noreply, turned(State)};
handle_info({atoll, adcounter_replica, {changed, {impressions, Ad}}} = Notice, #state{is_heavy = true} = State) ->
    ok = adcounter:once(Notice),
    ok = adcounter:change(adcounter_program:triggered(Ad, fun adcounter:read/1)),
    {noreply, State};
handle_info({atoll, adcounter_replica, {changed, ads}}, #state{phone = Phone0} = State) ->
    {_, Changes, Phone} = adcounter_phone:look(fun adcounter:read/1, erlang:system_time(millisecond), Phone0),
    ok = adcounter:change(Changes),
    {noreply, State#state{phone = Phone}};
handle_info({atoll, adcounter_replica, {changed, _}}, State) ->
    {noreply, State}.

turned(#state{phone = Phone0} = State) ->
    {IsOnline, Ms, Phone} = adcounter_phone:turn(Phone0),
    ok = atoll_crdt_replica:online(adcounter_replica, IsOnline),
    _ = [erlang:send_after(Ms, self(), turn) || Ms =/= infinity],
    State#state{phone = Phone}.
