%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a match on a node. It has an event kept, then tells the connections of its node and the other nodes.
%%
%% Promised: events go out in the order of their numbers, each once. One that another node has taken comes by
%% broadcast, or is read from the store when a number is missing, or after a while if nothing comes. After an answer of the store
%% that leaves open what became of an event the store is read before the next one is taken. It goes when the match has ended, and when for a
%% while no connection is there and no watcher has told anything.
-module(matchstream_live).
-behaviour(gen_server).

-export([start_link/1, register/4, remote/2, stand/1, look/1, outlets/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    id :: matchstream_match:id(),
    match :: matchstream_match:match(),
    outlets :: matchstream_outlet:outlets(),
    %% the store may have more than this process knows
    is_unsure = false :: boolean(),
    %% since the last look
    is_used = true :: boolean()
}).

-define(CALL_MS, 15000).
%% So long may a broadcast that was lost be missed.
-define(LOOK_MS, 2000).
-define(TRIES, 5).

%% @doc Starts it with what is kept of the match.
-spec start_link(matchstream_match:id()) -> gen_server:start_ret().
start_link(Id) -> gen_server:start_link(?MODULE, Id, []).

%% @doc See {@link matchstream:register/4}. It exits if the process is gone.
-spec register(pid(), term(), [{term(), term()}], pos_integer() | any) -> {ok, matchstream_match:event()} | {error, matchstream:error()}.
register(Live, Kind, Data, Seq) -> gen_server:call(Live, {register, Kind, Data, Seq}, ?CALL_MS).

%% @doc An event that another node has taken.
-spec remote(pid(), matchstream_match:event()) -> ok.
remote(Live, Event) -> gen_server:cast(Live, {remote, Event}).

%% @doc How it stands, as a connection needs it.
-spec stand(pid()) -> {Seq :: non_neg_integer(), binary(), IsRunning :: boolean()}.
stand(Live) -> gen_server:call(Live, stand, ?CALL_MS).

%% @doc The same after a look into the store, for whoever knows of an event that this process may not have heard of.
-spec look(pid()) -> {Seq :: non_neg_integer(), binary(), IsRunning :: boolean()}.
look(Live) -> gen_server:call(Live, look, ?CALL_MS).

%% @doc From which connections get its events.
-spec outlets(pid()) -> matchstream_outlet:outlets().
outlets(Live) -> gen_server:call(Live, outlets, ?CALL_MS).

%% @private
-spec init(matchstream_match:id()) -> {ok, #state{}} | {stop, {shutdown, unknown_match | unavailable}}.
init(Id) ->
    case matchstream_store:read(Id, 0, infinity) of
        {ok, About, Events} ->
            _ = erlang:send_after(?LOOK_MS, self(), look),
            {ok, stood(#state{id = Id, match = matchstream_match:restored(About, Events), outlets = matchstream_outlet:start_link(Id)})};
        none -> {stop, {shutdown, unknown_match}};
        unavailable -> {stop, {shutdown, unavailable}}
    end.

stood(#state{id = Id, match = Match} = S) ->
    ok = matchstream_lives:stood(Id, stand_of(Match)),
    S.

stand_of(Match) -> {matchstream_match:seq(Match), matchstream_protocol:event(matchstream_match:status(Match)), matchstream_match:is_running(Match)}.

%% @private
-spec handle_call({register, term(), [{term(), term()}], pos_integer() | any} | stand | look | outlets, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({register, Kind, Data, Seq}, _, S) ->
    {Answer, Next} = registered(Kind, Data, Seq, ?TRIES, S),
    {reply, Answer, Next#state{is_used = true}};
handle_call(stand, _, #state{match = Match} = S) -> {reply, stand_of(Match), S};
handle_call(look, _, S) ->
    #state{match = Match} = Next = caught_up(S),
    {reply, stand_of(Match), Next};
handle_call(outlets, _, #state{outlets = Outlets} = S) -> {reply, Outlets, S#state{is_used = true}}.

registered(_, _, _, 0, S) -> {{error, unavailable}, S};
registered(Kind, Data, Seq, Tries, #state{is_unsure = true} = S) ->
    case caught_up(S) of
        #state{is_unsure = true} = Still -> {{error, unavailable}, Still};
        Sure -> registered(Kind, Data, Seq, Tries, Sure)
    end;
registered(Kind, Data, Seq, Tries, #state{id = Id, match = Match} = S) ->
    Next = matchstream_match:seq(Match) + 1,
    case Seq =:= any orelse Seq =:= Next of
        true ->
            case matchstream_match:register(Kind, Data, erlang:system_time(millisecond), Match) of
                {ok, Event, Changed} ->
                    case matchstream_store:append(Id, Event) of
                        ok ->
                            ok = matchstream_count:add(events, 1),
                            ok = matchstream_gossip:tell(Id, Event),
                            {{ok, Event}, published(Event, Changed, S)};
                        taken -> registered(Kind, Data, Seq, Tries - 1, S#state{is_unsure = true});
                        unavailable -> {{error, unavailable}, S#state{is_unsure = true}}
                    end;
                {error, _} = Error -> {Error, S}
            end;
        false when Seq > Next, Tries > 1 -> registered(Kind, Data, Seq, 1, S#state{is_unsure = true});
        false -> {same(Kind, Data, Seq, Id), S}
    end.

%% A watcher that asks again gives a player by the number, and what is kept has the name too.
same(Kind, Data, Seq, Id) ->
    case matchstream_store:read(Id, Seq - 1, Seq) of
        {ok, _, [#{kind := Kind, data := Kept} = Event]} ->
            Short = fun(Pairs) -> lists:sort([{Key, case {Key, Value} of {player_in, _} -> Value; {_, {N, _}} -> N; _ -> Value end} || {Key, Value} <- Pairs]) end,
            case Short(Kept) =:= Short(Data) of
                true -> {ok, Event};
                false -> {error, {conflict, Seq}}
            end;
        unavailable -> {error, unavailable};
        _ -> {error, {conflict, Seq}}
    end.

%% Who joins between the first two lines of this gets the event, and knows by its number that the status has it already.
published(Event, Changed, #state{outlets = Outlets} = S) ->
    Next = stood(S#state{match = Changed}),
    ok = matchstream_outlet:publish(Event, not matchstream_match:is_running(Changed), Outlets),
    Next.

caught_up(#state{id = Id, match = Match} = S) ->
    case matchstream_store:read(Id, matchstream_match:seq(Match), infinity) of
        {ok, _, Events} ->
            Caught = lists:foldl(fun(Event, #state{match = Is} = Acc) -> published(Event, matchstream_match:replay(Event, Is), Acc) end, S, Events),
            Caught#state{is_unsure = false};
        _ -> S#state{is_unsure = true}
    end.

%% @private
-spec handle_cast({remote, matchstream_match:event()}, #state{}) -> {noreply, #state{}}.
handle_cast({remote, #{seq := Seq} = Event}, #state{match = Match} = S) ->
    case matchstream_match:seq(Match) of
        Known when Seq =< Known -> {noreply, S};
        Known when Seq =:= Known + 1 -> {noreply, published(Event, matchstream_match:replay(Event, Match), S)};
        _ -> {noreply, caught_up(S)}
    end.

%% @private
-spec handle_info(look, #state{}) -> {noreply, #state{}} | {stop, {shutdown, unused}, #state{}}.
handle_info(look, #state{match = Match, is_used = IsUsed, outlets = Outlets} = S) ->
    case matchstream_match:period(Match) =:= ended orelse not IsUsed andalso matchstream_outlet:is_empty(Outlets) of
        %% With `normal' the outlets would stay.
        true -> {stop, {shutdown, unused}, S};
        false ->
            _ = erlang:send_after(?LOOK_MS, self(), look),
            {noreply, caught_up(S#state{is_used = false})}
    end.
