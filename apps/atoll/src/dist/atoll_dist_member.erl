%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which processes of this node are in which channel ({@link atoll_dist_named}).
%%
%% A process is in one channel at most. It joins by itself, or a rule of the configuration
%% puts it there. Who writes to a connection reads the table for every packet; for what is
%% in none it finds nothing.
%%
%% Where there are rules, a process is looked at once, when its first signal goes to a node
%% with which this one has lanes: by its own process here, since a process that is looked at
%% may be busy or be waiting for the very connection. Till then its signals are in no
%% channel; they keep their order with those after. What a process becomes later is not
%% noticed. Of so many that wait to be looked at no more are taken, but are looked at when
%% they send again; that is counted.
%%
%% An entry goes some time after its process has ended: what it had sent may not have been
%% taken from the VM yet. What is taken after that is in no channel, and keeps its order too.
-module(atoll_dist_member).
-behaviour(gen_server).

-export([child_spec/0, start_link/0, join/1, channels/0, channel/1, figures/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([error/0]).

-type error() :: {no_channel, term(), [atoll_dist_named:name()]}.

%% Processes by their keys, each with its channel and how it came there: it is asked for,
%% joined, or a rule said so, whatever it said; and what follows.
-define(TABLE, ?MODULE).
-define(CHANNELS, channels).
%% How many processes wait to be looked at, and how many could not wait; of a node without
%% rules there is no such entry.
-define(ASKED, asked).

-define(MAX_WAITING, 10000).
%% What rules have said takes effect together, after so long: then it shares a fence.
-define(RULED_MS, 20).
%% How long an entry outlives its process.
-define(KEEP_MS, 1000).

-record(state, {
    rules :: [{atoll_dist_named:rule(), atoll_dist_named:name()}],
    %% What the rules have said, and is not in the table.
    ruled = [] :: [{atoll_dist_packet:key(), atoll_dist_named:name()}]
}).

%% @doc For the supervisor of distribution.
-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}, shutdown => 2000}.

%% @doc Starts the process.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc From now on the signals of the calling process are in that channel, `default' for
%% none. Without the carrier there is none to be in.
-spec join(atoll_dist_named:name()) -> ok | {error, error()}.
join(Name) ->
    case channels() of
        {ok, Channels} when Name =:= default; is_map_key(Name, Channels) ->
            gen_server:call(?MODULE, {join, atoll_dist_packet:key(self()), Name}, infinity);
        {ok, Channels} ->
            {error, {no_channel, Name, lists:sort(maps:keys(Channels))}};
        none ->
            ok
    end.

%% @doc The configured channels, if this node runs the carrier.
-spec channels() -> {ok, atoll_dist_named:channels()} | none.
channels() ->
    try
        {ok, ets:lookup_element(?TABLE, ?CHANNELS, 2)}
    catch
        error:badarg -> none
    end.

%% @doc In which channel a process is, `default' if in none. Where there are rules one that
%% was not seen before is looked at, but later.
-spec channel(atoll_dist_packet:key()) -> atoll_dist_named:name().
channel(Key) ->
    case ets:lookup(?TABLE, Key) of
        [{_, Name, _}] -> Name;
        [] -> unknown(Key)
    end.

unknown(Key) ->
    case ets:lookup(?TABLE, ?ASKED) of
        [] ->
            ok;
        [{_, Waiting, _}] when Waiting < ?MAX_WAITING ->
            case ets:insert_new(?TABLE, {Key, default, asked}) of
                true ->
                    _ = ets:update_counter(?TABLE, ?ASKED, {2, 1}),
                    gen_server:cast(?MODULE, {look, Key});
                false ->
                    ok
            end;
        [_] ->
            _ = ets:update_counter(?TABLE, ?ASKED, {3, 1}),
            ok
    end,
    default.

%% @doc How many processes there are entries of; how many wait to be looked at, and how often
%% one could not.
-spec figures() -> #{processes := non_neg_integer(), waiting := non_neg_integer(), passed := non_neg_integer()}.
figures() ->
    {Waiting, Passed, Others} =
        case ets:lookup(?TABLE, ?ASKED) of
            [{_, W, P}] -> {W, P, 2};
            [] -> {0, 0, 1}
        end,
    #{processes => ets:info(?TABLE, size) - Others, waiting => Waiting, passed => Passed}.

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    Channels =
        case atoll_dist_keeper:config() of
            {ok, #{channels := Configured}} -> Configured;
            %% Then this node does not listen.
            {error, _} -> #{}
        end,
    Rules = [{Rule, Name} || {Name, Channel} <- lists:sort(maps:to_list(Channels)), Rule <- maps:get(members, Channel, [])],
    true = ets:insert(?TABLE, [{?CHANNELS, Channels} | [{?ASKED, 0, 0} || Rules =/= []]]),
    {ok, #state{rules = Rules}}.

%% @private
-spec handle_call({join, atoll_dist_packet:key(), atoll_dist_named:name()}, gen_server:from(), #state{}) -> {reply, ok, #state{}}.
handle_call({join, Key, Name}, {Pid, _}, State) ->
    _ = [monitor(process, Pid, [{tag, {gone, Key}}]) || not ets:member(?TABLE, Key)],
    true = ets:insert(?TABLE, {Key, Name, joined}),
    {reply, ok, State}.

%% @private
-spec handle_cast({look, atoll_dist_packet:key()}, #state{}) -> {noreply, #state{}}.
handle_cast({look, Key}, #state{rules = Rules, ruled = Ruled} = State) ->
    _ = ets:update_counter(?TABLE, ?ASKED, {2, -1}),
    Pid = atoll_dist_packet:pid(Key),
    _ = monitor(process, Pid, [{tag, {gone, Key}}]),
    case [Name || {Rule, Name} <- Rules, meets(Rule, Pid)] of
        [Name | _] ->
            _ = [erlang:send_after(?RULED_MS, self(), ruled) || Ruled =:= []],
            {noreply, State#state{ruled = [{Key, Name} | Ruled]}};
        [] ->
            {noreply, State}
    end.

%% @private
-spec handle_info(ruled | {{gone, atoll_dist_packet:key()}, reference(), process, pid(), term()} | {forget, atoll_dist_packet:key()}, #state{}) ->
    {noreply, #state{}}.
handle_info(ruled, #state{ruled = Ruled} = State) ->
    %% Who has joined meanwhile has said where it wants to be.
    New = [{Key, Name, ruled} || {Key, Name} <- Ruled, [{_, _, asked}] <- [ets:lookup(?TABLE, Key)]],
    true = ets:insert(?TABLE, New),
    {noreply, State#state{ruled = []}};
handle_info({{gone, Key}, _, process, _, _}, State) ->
    _ = erlang:send_after(?KEEP_MS, self(), {forget, Key}),
    {noreply, State};
handle_info({forget, Key}, State) ->
    true = ets:delete(?TABLE, Key),
    {noreply, State}.

meets({name, Name}, Pid) ->
    %% Not of one that has ended.
    process_info(Pid, registered_name) =:= {registered_name, Name};
meets({call, Call}, Pid) ->
    process_info(Pid, initial_call) =:= {initial_call, Call} orelse proc_lib:translate_initial_call(Pid) =:= Call;
meets({label, Label}, Pid) ->
    %% From OTP 27 on; before that nobody has one.
    erlang:function_exported(proc_lib, get_label, 1) andalso apply(proc_lib, get_label, [Pid]) =:= Label;
meets({application, Name}, Pid) ->
    application:get_application(Pid) =:= {ok, Name}.
