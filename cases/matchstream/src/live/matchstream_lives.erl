%% SPDX-License-Identifier: Apache-2.0
%% @doc The matches that run on this node: one process each, which is started when somebody asks for it first. With the switch `lookups' a
%% table says which it is, without it this process is asked each time.
%%
%% There are so many at most, by the setting `playing'. One that has ended, or that nobody follows and no watcher tells
%% anything, goes after a while, and is started again when it is wanted.
-module(matchstream_lives).
-behaviour(gen_server).

-export([start_link/0, with/2, find/1, known/1, stand/1, stood/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type missing() :: unknown_match | unavailable | busy.

-record(state, {lives = #{} :: #{matchstream_match:id() => pid()}}).

-define(STANDS, matchstream_stands).
%% Times that a process which was about to go is looked for.
-define(TRIES, 5).
-define(CALL_MS, 20000).

%% @doc Starts it.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc What a function says of the process of a match. One that goes just then, since nobody needed it, is started again.
-spec with(matchstream_match:id(), fun((pid()) -> {ok, Is} | {error, Why})) -> {ok, Is} | {error, Why | missing()}.
with(Id, Fun) -> with(Id, Fun, ?TRIES).

with(_, _, 0) -> {error, unavailable};
with(Id, Fun, Tries) ->
    case find(Id) of
        {ok, Live} ->
            try Fun(Live)
            catch
                exit:{Why, _} when Why =:= noproc; Why =:= {shutdown, unused} -> with(Id, Fun, Tries - 1);
                exit:_ -> {error, unavailable}
            end;
        {error, _} = Error -> Error
    end.

%% @doc The process of a match.
-spec find(matchstream_match:id()) -> {ok, pid()} | {error, missing()}.
find(Id) -> asked(find, Id).

%% @doc The process of a match, if it has one here.
-spec known(matchstream_match:id()) -> {ok, pid()} | {error, missing()}.
known(Id) -> asked(known, Id).

asked(What, Id) ->
    case matchstream_switches:is_on(lookups) andalso alive(Id) of
        {ok, _} = Ok -> Ok;
        _ ->
            try gen_server:call(?MODULE, {What, Id}, ?CALL_MS)
            catch exit:_ -> {error, unavailable}
            end
    end.

%% One that is gone may stand there still.
alive(Id) ->
    case ets:lookup(?MODULE, Id) of
        [{_, Live}] -> case is_process_alive(Live) of true -> {ok, Live}; false -> none end;
        [] -> none
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
-spec handle_call({find | known, matchstream_match:id()}, gen_server:from(), #state{}) -> {reply, {ok, pid()} | {error, missing()}, #state{}}.
handle_call({What, Id}, _, #state{lives = Lives} = S) ->
    case {alive(Id), What, map_size(Lives) >= matchstream_settings:get(playing)} of
        {{ok, _} = Ok, _, _} -> {reply, Ok, S};
        {none, known, _} -> {reply, {error, unknown_match}, S};
        {none, find, true} -> {reply, {error, busy}, S};
        {none, find, false} ->
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
        %% Another one has its place already.
        [] when Why =:= shutdown -> {stop, shutdown, S};
        %% One that could not be started.
        [] -> {noreply, S}
    end.
