%% SPDX-License-Identifier: Apache-2.0
%% @doc Answers nodes that run the original `attr': `{Pid, {report, Key, Names}}' is answered
%% with `{attr_vals, Key, Node, [{Name, Value}]}', anything else of that shape with
%% `{unknown_action, Node, Message}'; `dump' prints the attributes, and `stop' ends it.
%%
%% It never waits: each answer is worked out in a process of its own. There are at most
%% 1,000 of them; who asks beyond that gets no answer. `unknown_action' is not sent over a
%% connection that is busy. Other messages and casts are dropped, and a call is answered
%% with an error, since anybody may send any to a registered name.
-module(attr_server).

-behaviour(gen_server).

-export([start/1, stop/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(MAX_ANSWERS, 1000).

-record(state, {answering = #{} :: #{reference() => []}}).

%% @doc Starts it, if what is to be loaded can be.
-spec start(fun(() -> ok | {error, term()})) -> gen_server:start_ret().
start(Load) ->
    gen_server:start({local, ?MODULE}, ?MODULE, Load, []).

%% @doc Ends it.
-spec stop() -> ok | {error, not_running}.
stop() ->
    try
        gen_server:stop(?MODULE)
    catch
        exit:noproc -> {error, not_running}
    end.

%% @private
-spec init(fun(() -> ok | {error, term()})) -> {ok, #state{}} | {stop, term()}.
init(Load) ->
    case Load() of
        ok -> {ok, #state{}};
        {error, Reason} -> {stop, Reason}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, unknown_call}, #state{}}.
handle_call(_Request, _From, State) ->
    {reply, {error, unknown_call}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Notice, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_info({From, {report, Key, Name}}, State) when is_pid(From), is_atom(Name), Name =/= [] ->
    {noreply, answer(From, Key, [Name], State)};
handle_info({From, {report, Key, Names}}, State) when is_pid(From), is_list(Names) ->
    {noreply, answer(From, Key, Names, State)};
handle_info({From, Other}, State) when is_pid(From) ->
    _ = erlang:send(From, {unknown_action, node(), Other}, [noconnect, nosuspend]),
    {noreply, State};
handle_info(stop, State) ->
    {stop, normal, State};
handle_info(dump, State) ->
    {noreply, spawned(fun dump/0, State)};
handle_info({'DOWN', Ref, process, _, _}, #state{answering = Answering} = State) ->
    {noreply, State#state{answering = maps:remove(Ref, Answering)}};
handle_info(_Other, State) ->
    {noreply, State}.

answer(From, Key, Names, State) ->
    spawned(fun() -> answer(From, Key, Names) end, State).

spawned(_Fun, #state{answering = Answering} = State) when map_size(Answering) >= ?MAX_ANSWERS ->
    State;
spawned(Fun, #state{answering = Answering} = State) ->
    {_, Ref} = spawn_monitor(Fun),
    State#state{answering = Answering#{Ref => []}}.

answer(From, Key, Names) ->
    case atoll_attr:attributes(Names) of
        {ok, Values} ->
            From ! {attr_vals, Key, node(), [{Name, maps:get(Name, Values)} || Name <- Names]},
            ok;
        {error, _} ->
            %% No names, or Atoll is being started again: it asks once more, or times out.
            ok
    end.

dump() ->
    case atoll_attr:attributes() of
        {ok, Values} -> io:format("~tp~n", [lists:sort(maps:to_list(Values))]);
        {error, _} -> ok
    end.
