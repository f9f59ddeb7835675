%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What happens on this node, for whoever wants to hear of it: the rooms emit
%% events, processes subscribe to kinds of them.
%%
%% An event is a kind and a map of details. Each subscriber to its kind gets
%% `{atoll, Kind, Details}' in the order in which one room emits. Where `telemetry'
%% is loaded it is executed with `[atoll, Kind]', the measurements of the event and the
%% time when it happened (`system_time', in native units), and the details as metadata, by
%% this module's process, so that a handler delays nobody else.
%%
%% Emitting costs one look into a table when nobody listens: measurements that take work
%% are a function, which is called for telemetry alone. The table belongs to
%% the supervisor, and so subscriptions outlive any room's process, this one's too.
%%
%% Not promised: that events wait for a slow subscriber, or for a slow handler of
%% telemetry. A subscriber's mailbox is its own affair, unless it subscribes with a bound
%% ({@link bound/1}): then no more events wait in it than that, and the others are
%% counted. Events are not handed to telemetry while more than 10,000 of them wait, and those
%% are counted.
-module(atoll_events).

-behaviour(gen_server).

-export([create_table/0, owner/0, start_link/0, subscribe/1, unsubscribe/0, emit/2, emit/3, emit/4, dropped/0]).
-export([bound/1, subscribe/2, took/1, dropped/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([kind/0, topic/0, details/0, measurements/0, bound/0]).

-type kind() :: atom().
-type topic() :: kind() | {kind(), Part :: term()}.
%% A part of a kind, as `{broadcast, Topic}'.
-type details() :: #{atom() => term()}.
-type measurements() :: #{atom() => number()} | fun(() -> #{atom() => number()}).

-opaque bound() :: {atomics:atomics_ref(), Max :: pos_integer()}.
%% How many events wait for a subscriber, and how many found no room.

%% Rows `{Topic, Pid}' and `{Topic, Pid, Bound}' say who hears what; `dropped' counts.
-define(DROPPED, '$dropped').
-define(MAX_WAITING, 10000).

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, bag, {read_concurrency, true}]),
    true = ets:insert(?MODULE, {?DROPPED, counters:new(1, [write_concurrency])}),
    ok.

%% @doc The process with which all subscriptions end.
-spec owner() -> pid().
owner() ->
    ets:info(?MODULE, owner).

%% @doc Starts the process that forgets subscribers when they end.
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc From now on the caller hears events of these topics too. Subscribing twice is
%% the same as once.
-spec subscribe([topic()]) -> ok.
subscribe(Topics) ->
    gen_server:call(?MODULE, {subscribe, [{Topic, self()} || Topic <- Topics]}).

%% @doc So many events may wait for the caller.
-spec bound(Max :: pos_integer()) -> bound().
bound(Max) ->
    {atomics:new(2, []), Max}.

%% @doc As subscribe/1; events that find no room are dropped. The caller says of each that it
%% has taken it ({@link took/1}).
-spec subscribe([topic()], bound()) -> ok.
subscribe(Topics, Bound) ->
    gen_server:call(?MODULE, {subscribe, [{Topic, self(), Bound} || Topic <- Topics]}).

%% @doc The caller has taken one event; so many still wait for it.
-spec took(bound()) -> non_neg_integer().
took({Ref, _Max}) ->
    atomics:sub_get(Ref, 1, 1).

%% @doc The events that found no room.
-spec dropped(bound()) -> non_neg_integer().
dropped({Ref, _Max}) ->
    atomics:get(Ref, 2).

%% @doc The caller hears no more events.
-spec unsubscribe() -> ok.
unsubscribe() ->
    gen_server:call(?MODULE, {unsubscribe, self()}).

%% @doc An event happened, of which there is nothing to measure.
-spec emit(kind(), details()) -> ok.
emit(Kind, Details) ->
    emit(Kind, Details, #{}).

%% @doc An event happened, with these numbers.
-spec emit(kind(), details(), measurements()) -> ok.
emit(Kind, Details, Measurements) ->
    Event = {atoll, Kind, Details},
    lists:foreach(fun(Row) -> give(Row, Event) end, ets:lookup(?MODULE, Kind)),
    execute(Kind, Details, Measurements).

%% @doc As emit/3; who subscribed to this part of the kind hears it too, and whoever
%% subscribed to both hears it once.
-spec emit(kind(), Part :: term(), details(), measurements()) -> ok.
emit(Kind, Part, Details, Measurements) ->
    Whole = ets:lookup(?MODULE, Kind),
    Event = {atoll, Kind, Details},
    lists:foreach(fun(Row) -> give(Row, Event) end, Whole),
    _ = [give(Row, Event) || Row <- ets:lookup(?MODULE, {Kind, Part}), not lists:keymember(element(2, Row), 2, Whole)],
    execute(Kind, Details, Measurements).

%% To ask a process how much waits in it would be to wait for it.
give({_Topic, Pid}, Event) ->
    Pid ! Event;
give({_Topic, Pid, {Ref, Max}}, Event) ->
    case atomics:add_get(Ref, 1, 1) =< Max of
        true ->
            Pid ! Event;
        false ->
            ok = atomics:sub(Ref, 1, 1),
            atomics:add(Ref, 2, 1)
    end.

%% @doc Events that telemetry was not told of.
-spec dropped() -> non_neg_integer().
dropped() ->
    [{_, Counter}] = ets:lookup(?MODULE, ?DROPPED),
    counters:get(Counter, 1).

%% The library does not depend on it: it is found at run time.
execute(Kind, Details, Measurements) ->
    case erlang:function_exported(telemetry, execute, 3) of
        true -> hand_over(Kind, Details, Measurements);
        false -> ok
    end.

hand_over(Kind, Details, Measurements) ->
    case whereis(?MODULE) of
        undefined ->
            ok;
        Pid ->
            case erlang:process_info(Pid, message_queue_len) of
                {message_queue_len, Waiting} when Waiting < ?MAX_WAITING ->
                    Measured = (measure(Measurements))#{system_time => erlang:system_time()},
                    gen_server:cast(Pid, {execute, telemetry, Kind, Measured, Details});
                _ ->
                    drop()
            end
    end.

measure(Measure) when is_function(Measure) -> Measure();
measure(Measured) -> Measured.

drop() ->
    [{_, Counter}] = ets:lookup(?MODULE, ?DROPPED),
    counters:add(Counter, 1, 1).

%% The state: subscriber => the monitor on it.

%% @private
-spec init([]) -> {ok, #{pid() => reference()}}.
init([]) ->
    %% Those of this process's earlier life.
    Pids = lists:usort([element(2, Row) || Row <- ets:tab2list(?MODULE), is_pid(element(2, Row))]),
    {ok, maps:from_list([{Pid, erlang:monitor(process, Pid)} || Pid <- Pids])}.

%% @private
-spec handle_call(term(), gen_server:from(), #{pid() => reference()}) ->
    {reply, ok, #{pid() => reference()}}.
handle_call({subscribe, Rows}, {Pid, _}, Monitors) ->
    true = ets:insert(?MODULE, Rows),
    case Monitors of
        #{Pid := _} -> {reply, ok, Monitors};
        #{} -> {reply, ok, Monitors#{Pid => erlang:monitor(process, Pid)}}
    end;
handle_call({unsubscribe, Pid}, _From, Monitors) ->
    _ = [erlang:demonitor(Ref, [flush]) || #{Pid := Ref} <- [Monitors]],
    {reply, ok, forget(Pid, Monitors)}.

%% @private
-spec handle_cast({execute, module(), kind(), #{atom() => number()}, details()}, State) -> {noreply, State}.
handle_cast({execute, Telemetry, Kind, Measured, Details}, Monitors) ->
    try
        _ = Telemetry:execute([atoll, Kind], Measured, Details),
        ok
    catch
        %% Whatever it is, it is no reason to lose the rooms.
        _:_ -> drop()
    end,
    {noreply, Monitors}.

%% @private
-spec handle_info({'DOWN', reference(), process, pid(), term()}, #{pid() => reference()}) ->
    {noreply, #{pid() => reference()}}.
handle_info({'DOWN', _Ref, process, Pid, _Reason}, Monitors) ->
    {noreply, forget(Pid, Monitors)}.

forget(Pid, Monitors) ->
    true = ets:match_delete(?MODULE, {'_', Pid}),
    true = ets:match_delete(?MODULE, {'_', Pid, '_'}),
    maps:remove(Pid, Monitors).
