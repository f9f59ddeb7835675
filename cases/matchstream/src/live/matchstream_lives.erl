%% SPDX-License-Identifier: Apache-2.0
%% @doc The matches that run on this node: one process each, which is started when somebody asks for it first. With the switch `lookups' a
%% table says which it is, without it this process is asked each time.
%%
%% There are so many at most; one that has ended goes after a while.
-module(matchstream_lives).
-behaviour(gen_server).

-export([start_link/0, find/1, stand/1, stood/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {lives = #{} :: #{matchstream_match:id() => pid()}}).

-define(STANDS, matchstream_stands).
-define(MOST, 1000).
-define(CALL_MS, 20000).

%% @doc Starts it.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The process of a match.
-spec find(matchstream_match:id()) -> {ok, pid()} | {error, unknown_match | unavailable}.
find(Id) ->
    case matchstream_switches:is_on(lookups) andalso ets:lookup(?MODULE, Id) of
        [{_, Live}] -> {ok, Live};
        _ ->
            try gen_server:call(?MODULE, {find, Id}, ?CALL_MS)
            catch exit:_ -> {error, unavailable}
            end
    end.

%% @doc How a match of this node stands: its number, the status as text, and whether it runs.
-spec stand(matchstream_match:id()) -> {Seq :: non_neg_integer(), binary(), IsRunning :: boolean()} | none.
stand(Id) ->
    case ets:lookup(?STANDS, Id) of
        [{_, Seq, Status, IsRunning}] -> {Seq, Status, IsRunning};
        [] -> none
    end.

%% @doc The process of a match says so, before anybody gets the event.
-spec stood(matchstream_match:id(), {non_neg_integer(), binary(), boolean()}) -> ok.
stood(Id, {Seq, Status, IsRunning}) ->
    true = ets:insert(?STANDS, {Id, Seq, Status, IsRunning}),
    ok.

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    _ = process_flag(trap_exit, true),
    ?MODULE = ets:new(?MODULE, [named_table, {read_concurrency, true}]),
    ?STANDS = ets:new(?STANDS, [named_table, public, {read_concurrency, true}]),
    {ok, #state{}}.

%% @private
-spec handle_call({find, matchstream_match:id()}, gen_server:from(), #state{}) -> {reply, {ok, pid()} | {error, unknown_match | unavailable}, #state{}}.
handle_call({find, Id}, _, #state{lives = Lives} = S) ->
    case Lives of
        #{Id := Live} -> {reply, {ok, Live}, S};
        #{} when map_size(Lives) >= ?MOST -> {reply, {error, unavailable}, S};
        #{} ->
            case matchstream_live:start_link(Id) of
                {ok, Live} ->
                    true = ets:insert(?MODULE, {Id, Live}),
                    {reply, {ok, Live}, S#state{lives = Lives#{Id => Live}}};
                {error, {shutdown, Why}} ->
                    {reply, {error, Why}, S}
            end
    end.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info({'EXIT', pid(), term()}, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'EXIT', Live, Why}, #state{lives = Lives} = S) ->
    case [Id || {Id, Is} <- maps:to_list(Lives), Is =:= Live] of
        [Id] ->
            true = ets:delete(?MODULE, Id),
            true = ets:delete(?STANDS, Id),
            {noreply, S#state{lives = maps:remove(Id, Lives)}};
        [] when Why =:= shutdown -> {stop, shutdown, S};
        %% One that could not be started.
        [] -> {noreply, S}
    end.
