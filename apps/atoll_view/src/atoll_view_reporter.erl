%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that looks at nodes for another one: in the same VM, or as the only one of a VM of its own
%% ({@link atoll_view_reporter_vm}). What it does, a module of this behaviour says.
%%
%% It gets orders from whoever it looks for, and `{next, To}' when that one wants to know what is new: he gets
%% `{report, Reporter, Report}', once, a moment after there is something and after a second at the latest. What nobody asks for is not
%% sent: the module keeps it, and no more of it than it has room for.
-module(atoll_view_reporter).

-behaviour(gen_server).

-export([start_link/2, start/2, next/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0]).

%% And what else the module takes.
-type options() :: #{way := atoll_view_join:way(), atom() => term()}.

%% This VM can talk with nodes now, by that cookie. The process traps exits.
-callback begun(options(), atoll_view_join:cookie()) -> State :: term().
%% Something has come: an order, or what it has asked for itself.
-callback came(Message :: term(), State :: term()) -> {ok, State :: term()} | {stop, Reason :: term(), State :: term()}.
-callback has_news(State :: term()) -> boolean().
%% All that was not told yet.
-callback report(State :: term()) -> {Report :: term(), State :: term()}.
%% Milliseconds: what comes within this time is told together.
-callback gathers() -> pos_integer().
-callback ended(State :: term()) -> ok.

-record(state, {
    module :: module(),
    its :: term(),
    %% Who wants to know, and when he is told.
    next = none :: none | {pid(), soon | later, reference()}
}).

-define(PULSE_MS, 1000).

%% @doc In this VM.
-spec start_link(module(), options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Module, Options) -> told(gen_server:start_link(?MODULE, {Module, Options}, [])).

%% @doc The only one of a VM.
-spec start(module(), options()) -> ok | {error, {unable, unicode:chardata()}}.
start(Module, Options) ->
    case told(gen_server:start({local, ?MODULE}, ?MODULE, {Module, Options}, [])) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

told({ok, Pid}) -> {ok, Pid};
told({error, {shutdown, {unable, Sentence}}}) -> {error, {unable, Sentence}}.

%% @doc What is new, as the only one of this VM says.
-spec next(timeout()) -> Report :: term().
next(Ms) ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {next, self()},
    receive
        {report, _, Report} -> true = demonitor(Ref, [flush]), Report;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after Ms -> exit(timeout)
    end.

%% @private
-spec init({module(), options()}) -> {ok, #state{}} | {stop, {shutdown, {unable, unicode:chardata()}}}.
init({Module, #{way := Way} = Options}) ->
    _ = process_flag(trap_exit, true),
    case atoll_view_join:start(Way) of
        {ok, Cookie} -> {ok, #state{module = Module, its = Module:begun(Options, Cookie)}};
        {error, Sentence} -> {stop, {shutdown, {unable, Sentence}}}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({next, pid()} | {timeout, reference(), ?MODULE} | term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({next, To}, #state{module = Module, its = Its} = State) ->
    {noreply, due(To, case Module:has_news(Its) of true -> soon; false -> later end, State)};
handle_info({timeout, Timer, ?MODULE}, #state{module = Module, its = Its0, next = {To, _, Timer}} = State) ->
    {Report, Its} = Module:report(Its0),
    To ! {report, self(), Report},
    {noreply, State#state{its = Its, next = none}};
%% One that was put off.
handle_info({timeout, _, ?MODULE}, State) ->
    {noreply, State};
handle_info(Message, #state{module = Module, its = Its0} = State) ->
    case Module:came(Message, Its0) of
        {ok, Its} -> {noreply, soon(State#state{its = Its})};
        {stop, Reason, Its} -> {stop, Reason, State#state{its = Its}}
    end.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{module = Module, its = Its}) -> Module:ended(Its).

due(To, When, #state{module = Module} = State) ->
    Ms = case When of soon -> Module:gathers(); later -> ?PULSE_MS end,
    State#state{next = {To, When, erlang:start_timer(Ms, self(), ?MODULE)}}.

soon(#state{module = Module, its = Its, next = {To, later, Timer}} = State) ->
    case Module:has_news(Its) of
        true -> _ = erlang:cancel_timer(Timer), due(To, soon, State);
        false -> State
    end;
soon(State) ->
    State.
