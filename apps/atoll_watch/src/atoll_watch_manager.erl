%% SPDX-License-Identifier: Apache-2.0
%% @doc A manager: holds the connections with its nodes, asks their agents, and says what has changed. It runs in the VM of
%% the watch, or in one of its own ({@link atoll_watch_manager_vm}).
%%
%% It gets `{give, ...}' and `{take, Node}', and `{next, To}' from who wants to know what is new: that one gets
%% `{report, Manager, Report}', once, when there is something to be told and after a second at the latest. What nobody asks
%% for is not sent, and takes no more room than a look at each node. Whom it asks when, {@link atoll_watch_turns}
%% decides. Each node is asked by a process of its own, so one that hangs holds up no other; they go when it goes, and so do the
%% agents.
-module(atoll_watch_manager).

-behaviour(gen_server).

-export([start_link/1, start/1, next/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, given/0]).

-type options() :: #{
    way := atoll_view_join:way(),
    %% Milliseconds: each node is asked once in the first, and is to answer within the second.
    period := pos_integer(),
    answer := pos_integer(),
    %% How many nodes are asked at once.
    at_once := pos_integer()
}.

%% What it said last to another manager, if it was another one's.
-type given() :: {node(), atoll_watch_shares:lease(), Before :: none | atoll_watch_agent:sample()}.

-record(state, {
    cookie :: atoll_view_join:cookie(),
    turns :: atoll_watch_turns:turns(),
    answer :: pos_integer(),
    asking = #{} :: #{pid() => node()},
    %% Who wants to know, and when he is told.
    next = none :: none | {pid(), soon | later, reference()}
}).

%% Who asks a node ends with exit/1 by design.
-dialyzer({nowarn_function, done/2}).

%% A node that was up and is not is asked so often.
-define(AGAIN_MS, 1000).
%% What comes within this time is told together.
-define(GATHER_MS, 100).
-define(PULSE_MS, 1000).

%% @doc In this VM.
-spec start_link(options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Options) -> told(gen_server:start_link(?MODULE, Options, [])).

%% @doc The only one of a VM.
-spec start(options()) -> ok | {error, {unable, unicode:chardata()}}.
start(Options) ->
    case told(gen_server:start({local, ?MODULE}, ?MODULE, Options, [])) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

told({ok, Pid}) -> {ok, Pid};
told({error, {shutdown, {unable, Sentence}}}) -> {error, {unable, Sentence}}.

%% @doc What is new, as the only one of this VM says.
-spec next(timeout()) -> atoll_watch_report:report().
next(Ms) ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {next, self()},
    receive
        {report, _, Report} -> true = demonitor(Ref, [flush]), Report;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after Ms -> exit(timeout)
    end.

%% @private
-spec init(options()) -> {ok, #state{}} | {stop, {shutdown, {unable, unicode:chardata()}}}.
init(#{way := Way, period := Period, answer := Answer, at_once := AtOnce}) ->
    _ = process_flag(trap_exit, true),
    case atoll_view_join:start(Way) of
        {ok, Cookie} ->
            {ok, _} = timer:send_interval(Period, tick),
            _ = [{ok, _} = timer:send_interval(?AGAIN_MS, again) || Period > ?AGAIN_MS],
            {ok, #state{cookie = Cookie, turns = atoll_watch_turns:new(AtOnce), answer = Answer}};
        {error, Sentence} ->
            {stop, {shutdown, {unable, Sentence}}}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info(tick | again | {give, [given()]} | {take, node()} | {next, pid()} | {timeout, reference(), tell} | {'EXIT', pid(), term()}, #state{}) ->
    {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(Turn, State) when Turn =:= tick; Turn =:= again ->
    {noreply, stepped(Turn, State)};
handle_info({give, Given}, #state{cookie = Cookie} = State) ->
    ok = atoll_view_join:let_in([Node || {Node, _, _} <- Given], Cookie),
    {noreply, lists:foldl(fun({Node, Lease, Before}, Acc) -> stepped({give, Node, Lease, Before}, Acc) end, State, Given)};
handle_info({take, Node}, State) ->
    {noreply, stepped({take, Node}, State)};
handle_info({next, To}, #state{turns = Turns} = State) ->
    When = case atoll_watch_turns:has_news(Turns) of true -> soon; false -> later end,
    {noreply, due(To, When, State)};
handle_info({timeout, Timer, tell}, #state{next = {To, _, Timer}, turns = Turns0} = State) ->
    {Report, Turns} = atoll_watch_turns:report(Turns0),
    To ! {report, self(), Report#{os_pid => os:getpid(), memory => erlang:memory(total)}},
    {noreply, State#state{next = none, turns = Turns}};
%% One that was put off.
handle_info({timeout, _, tell}, State) ->
    {noreply, State};
handle_info({'EXIT', Pid, Reason}, #state{asking = Asking} = State) ->
    case maps:take(Pid, Asking) of
        {Node, Others} -> {noreply, soon(stepped(outcome(Node, Reason), State#state{asking = Others}))};
        error -> {stop, Reason, State}
    end.

due(To, When, State) ->
    Ms = case When of soon -> ?GATHER_MS; later -> ?PULSE_MS end,
    State#state{next = {To, When, erlang:start_timer(Ms, self(), tell)}}.

soon(#state{next = {To, later, Timer}} = State) ->
    _ = erlang:cancel_timer(Timer),
    due(To, soon, State);
soon(State) ->
    State.

%% What a node says of its connections with those that look is there since they look.
outcome(Node, {sampled, {ok, #{peers := Peers, readings := Readings} = Sample, _}}) ->
    IsView = fun(Is) -> Is =:= node() orelse is_atom(Is) andalso atoll_view_join:is_view(Is) end,
    {answered, Node, Sample#{peers := [Peer || Peer <- Peers, not IsView(Peer)], readings := [Reading || Reading <- Readings, not IsView(element(2, Reading))]}};
outcome(Node, {sampled, {error, Failure}}) ->
    {failed, Node, Failure};
outcome(Node, Reason) ->
    {failed, Node, {refused, io_lib:format("what ~ts said could not be read: ~0tP", [Node, Reason, 10])}}.

stepped(Input, #state{turns = Turns0} = State) ->
    {Effects, Turns} = atoll_watch_turns:step(Input, Turns0),
    lists:foldl(fun done/2, State#state{turns = Turns}, Effects).

done({ask, Node}, #state{asking = Asking, turns = Turns, answer = Ms} = State) ->
    Self = self(),
    Has = atoll_watch_turns:code(Node, Turns),
    Pid = spawn_link(fun() -> exit({sampled, atoll_watch_node:sample(Node, Self, Has, Ms)}) end),
    State#state{asking = Asking#{Pid => Node}};
done({leave, Node}, #state{asking = Asking} = State) ->
    {Its, Others} = lists:partition(fun({_, Asked}) -> Asked =:= Node end, maps:to_list(Asking)),
    lists:foreach(fun given_up/1, Its),
    %% Its agent goes when it has lost this process, whatever was asked meanwhile.
    _ = erlang:disconnect_node(Node),
    State#state{asking = maps:from_list(Others)}.

%% It may have ended just now.
given_up({Pid, _}) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    receive {'EXIT', Pid, _} -> ok after 0 -> ok end.
