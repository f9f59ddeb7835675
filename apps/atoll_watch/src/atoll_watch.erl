%% SPDX-License-Identifier: Apache-2.0
%% @doc Watches a running cluster, with Atoll on it or not: a process that finds its nodes and has managers
%% put an agent into each and pull what they measure once in a period.
%%
%% A manager ({@link atoll_watch_manager}) is a process of this VM, or has a VM of its own, as many as are wanted; then this one
%% keeps no connection with a node. Each node has one manager at every moment ({@link atoll_watch_managers}). One that is
%% lost is replaced at once. What is known of its nodes, {@link atoll_watch_core} knows, so nothing is counted
%% twice, and no node is down since its manager is.
%%
%% Promised: whoever asks nodes is a hidden node ({@link atoll_view_join}), and no two watched nodes are
%% connected by it. A node is connected with its manager and with no other one. When the process ends, in whatever way, its managers
%% and their agents go.
%%
%% Subscribers get `{atoll_watch, Watch, Event}', see {@link event()}, without a bound: who does not
%% read is to be no subscriber. Alarms live as long as the process.
-module(atoll_watch).

-behaviour(gen_server).

-export([start_link/2, child_spec/2, nodes/1, node/2, counts/1, await/3, subscribe/1, unsubscribe/1]).
-export([add/2, remove/2, managers/1, call/6]).
-export([alarms/1, history/1, acknowledge/3, comment/4]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-compile({no_auto_import, [nodes/1, node/2]}).

-export_type([options/0, event/0]).

-type event() :: atoll_watch_core:event() | {met, [node(), ...]} | {alarm, atoll_watch_alarm:event()} | {manager_lost, atoll_watch_shares:manager()}.

-type options() :: #{
    %% How many have a VM of their own, or one for each hundred nodes; without, the only one is in this VM.
    managers => here | auto | pos_integer(),
    %% As of {@link atoll_watch_manager:options()}.
    answer => pos_integer(),
    period => pos_integer(),
    at_once => pos_integer(),
    %% As of {@link atoll_watch_core:options()}.
    max_nodes => pos_integer(),
    forget => pos_integer(),
    known => [node()],
    removed => [node()],
    %% Nodes that were named by people, beside those of the target.
    named => [node()],
    %% All that stood or had been cleared when another one watched.
    alarms => [atoll_watch_alarm:alarm()],
    %% In place of {@link atoll_watch_rule:all()}.
    rules => [atoll_watch_rule:rule()],
    %% It gets the events from the first one on.
    subscriber => pid()
}.

-record(state, {
    core :: atoll_watch_core:core(),
    managers :: atoll_watch_managers:managers(),
    period :: pos_integer(),
    alarms :: atoll_watch_alarm:alarms(),
    subscribers = #{} :: #{pid() => reference()},
    awaiting = [] :: [{gen_server:from(), Turns :: pos_integer()}]
}).

-define(PERIOD_MS, 5000).
%% OTP gives a connection seven seconds to be made; a node that answers does so at once.
-define(ANSWER_MS, 5000).
-define(AT_ONCE, 32).

%% @doc Begins to watch a cluster. If no node of it can be reached, says why in a sentence.
-spec start_link(atoll_view:target(), options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Target, Options) ->
    case gen_server:start_link(?MODULE, {Target, Options}, []) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, {unable, Sentence}}} -> {error, {unable, Sentence}}
    end.

%% @doc For a supervisor.
-spec child_spec(atoll_view:target(), options()) -> supervisor:child_spec().
child_spec({_, Name, _} = Target, Options) -> spec(Name, Target, Options);
child_spec({_, Name} = Target, Options) -> spec(Name, Target, Options).

spec(Name, Target, Options) -> #{id => {?MODULE, Name}, start => {?MODULE, start_link, [Target, Options]}}.

%% @doc The nodes, and what is known of each.
-spec nodes(pid()) -> [atoll_watch_core:seen()].
nodes(Watch) -> gen_server:call(Watch, nodes).

%% @doc One of them.
-spec node(pid(), node()) -> {ok, atoll_watch_core:seen()} | error.
node(Watch, Node) -> gen_server:call(Watch, {node, Node}).

%% @doc Watches a node that is not found by itself, or that was removed.
-spec add(pid(), node()) -> ok | {error, too_many}.
add(Watch, Node) -> gen_server:call(Watch, {add, Node}).

%% @doc Watches a node no more, until it is added.
-spec remove(pid(), node()) -> ok.
remove(Watch, Node) -> gen_server:call(Watch, {remove, Node}).

%% @doc The managers.
-spec managers(pid()) -> [atoll_watch_managers:manager()].
managers(Watch) -> gen_server:call(Watch, managers).

%% @doc Has the manager of a node call a function there, as erpc:call/5 does.
-spec call(pid(), node(), module(), Function :: atom(), Args :: [term()], Ms :: pos_integer()) -> term().
call(Watch, Node, M, F, Args, Ms) ->
    case gen_server:call(Watch, {who_has, Node}) of
        here -> erpc:call(Node, M, F, Args, Ms);
        {vm, Vm} -> atoll_view_reporter_vm:call(Vm, Node, M, F, Args, Ms);
        none -> error({erpc, noconnection})
    end.

%% @doc What was counted, see {@link atoll_watch_managers:counts/1} and {@link atoll_watch_core:counts/1}, and alarms that were left
%% out since too many stood, `omitted'.
-spec counts(pid()) -> #{atom() => non_neg_integer()}.
counts(Watch) -> gen_server:call(Watch, counts).

%% @doc Waits until every node that is known has been asked so many times, and has answered or failed to.
-spec await(pid(), Turns :: pos_integer(), timeout()) -> ok | timeout.
await(Watch, Turns, Ms) ->
    try
        gen_server:call(Watch, {await, Turns}, Ms)
    catch
        exit:{timeout, _} -> timeout
    end.

%% @doc The calling process gets the events from now on.
-spec subscribe(pid()) -> ok.
subscribe(Watch) -> gen_server:call(Watch, {subscribe, self()}).

%% @doc And no more.
-spec unsubscribe(pid()) -> ok.
unsubscribe(Watch) -> gen_server:call(Watch, {unsubscribe, self()}).

%% @doc The alarms that stand, in the order in which they were raised; times are system times, in milliseconds.
-spec alarms(pid()) -> [atoll_watch_alarm:alarm()].
alarms(Watch) -> gen_server:call(Watch, alarms).

%% @doc The alarms that were cleared, the last one first.
-spec history(pid()) -> [atoll_watch_alarm:alarm()].
history(Watch) -> gen_server:call(Watch, history).

%% @doc Somebody has seen an alarm.
-spec acknowledge(pid(), Id :: integer(), Who :: binary()) -> ok | {error, atoll_watch_alarm:error()}.
acknowledge(Watch, Id, Who) -> gen_server:call(Watch, {acknowledge, Id, Who}).

%% @doc Somebody says something of an alarm.
-spec comment(pid(), Id :: integer(), Who :: binary(), Text :: binary()) -> ok | {error, atoll_watch_alarm:error()}.
comment(Watch, Id, Who, Text) -> gen_server:call(Watch, {comment, Id, Who, Text}).

%% @private
-spec init({atoll_view:target(), options()}) -> {ok, #state{}, {continue, tick}} | {stop, {shutdown, {unable, unicode:chardata()}}}.
init({Target, Options}) ->
    case atoll_view:open(Target) of
        {ok, View} ->
            _ = process_flag(trap_exit, true),
            Named = [Node || {Node, _} <- atoll_view:nodes(View)] ++ maps:get(named, Options, []),
            Groups = case atoll_view:running(View) of [] -> []; _ -> [Nodes || {_, Nodes} <- maps:get(groups, atoll_view:groups(View))] end,
            {Place, HowMany} =
                case Options of
                    #{managers := Number} when Number =/= here -> ok = atoll_view:close(View), {apart, Number};
                    #{} -> {here, 1}
                end,
            #{period := Period} = Asking = maps:merge(#{period => ?PERIOD_MS, answer => ?ANSWER_MS, at_once => ?AT_ONCE}, maps:with([period, answer, at_once], Options)),
            Begun = #state{
                core = atoll_watch_core:new(Named, maps:with([max_nodes, forget, known, removed], Options)),
                managers = atoll_watch_managers:new(Place, Asking#{way => atoll_view:way(View)}, HowMany, Groups),
                period = Period,
                alarms = atoll_watch_alarm:restored(maps:get(alarms, Options, []), now_ms(), maps:with([rules], Options))
            },
            {ok, lists:foldl(fun subscribed/2, Begun, [Pid || #{subscriber := Pid} <- [Options]]), {continue, tick}};
        {error, Sentence} ->
            {stop, {shutdown, {unable, Sentence}}}
    end.

%% @private
-spec handle_continue(tick, #state{}) -> {noreply, #state{}}.
handle_continue(tick, State) -> {noreply, ticked(State)}.

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}} when
    Request ::
        nodes | {node | add | remove | who_has, node()} | managers | counts | alarms | history | {await, pos_integer()} | {subscribe | unsubscribe, pid()}
        | {acknowledge, Id :: integer(), Who :: binary()}
        | {comment, Id :: integer(), Who :: binary(), Text :: binary()}.
handle_call(alarms, _From, #state{alarms = Alarms} = State) ->
    {reply, atoll_watch_alarm:standing(Alarms), State};
handle_call(history, _From, #state{alarms = Alarms} = State) ->
    {reply, atoll_watch_alarm:history(Alarms), State};
handle_call({acknowledge, Id, Who}, _From, #state{alarms = Alarms} = State) ->
    by_people(atoll_watch_alarm:acknowledge(Id, Who, now_ms(), Alarms), State);
handle_call({comment, Id, Who, Text}, _From, #state{alarms = Alarms} = State) ->
    by_people(atoll_watch_alarm:comment(Id, Who, Text, now_ms(), Alarms), State);
handle_call(nodes, _From, #state{core = Core} = State) ->
    {reply, atoll_watch_core:nodes(Core), State};
handle_call({node, Node}, _From, #state{core = Core} = State) ->
    {reply, atoll_watch_core:node(Node, Core), State};
handle_call({add, Node}, _From, State0) ->
    #state{core = Core} = State = stepped({add, Node}, State0),
    {reply, case atoll_watch_core:node(Node, Core) of {ok, _} -> ok; error -> {error, too_many} end, State};
handle_call({remove, Node}, _From, State) ->
    {reply, ok, stepped({remove, Node}, State)};
handle_call({who_has, Node}, _From, #state{managers = Managers} = State) ->
    {reply, atoll_watch_managers:line(Node, Managers), State};
handle_call(managers, _From, #state{managers = Managers} = State) ->
    {reply, atoll_watch_managers:list(Managers), State};
handle_call(counts, _From, #state{core = Core, alarms = Alarms, managers = Managers} = State) ->
    {reply, maps:merge(atoll_watch_managers:counts(Managers), (atoll_watch_core:counts(Core))#{omitted => atoll_watch_alarm:omitted(Alarms)}), State};
handle_call({await, Turns}, From, #state{awaiting = Awaiting} = State) ->
    {noreply, told_turns(State#state{awaiting = [{From, Turns} | Awaiting]})};
handle_call({subscribe, Pid}, _From, State) ->
    {reply, ok, subscribed(Pid, State)};
handle_call({unsubscribe, Pid}, _From, State) ->
    {reply, ok, unsubscribed(Pid, State)}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} when
    Message ::
        tick
        | {report, Line :: pid(), atoll_watch_report:report()}
        | {start, atoll_watch_shares:manager()}
        | {'EXIT', pid(), term()}
        | {'DOWN', reference(), process, pid(), term()}.
handle_info(tick, State) ->
    {noreply, ticked(State)};
handle_info({report, Line, Report}, #state{managers = Managers0} = State) ->
    {Looks, Managers} = atoll_watch_managers:reported(Line, Report, Managers0),
    {noreply, lists:foldl(fun(Look, Acc) -> stepped({looked, Look}, Acc) end, State#state{managers = Managers}, Looks)};
handle_info({start, Id}, #state{managers = Managers} = State) ->
    {noreply, State#state{managers = atoll_watch_managers:started(Id, before(State), Managers)}};
handle_info({'EXIT', Pid, _}, #state{managers = Managers0} = State) ->
    case atoll_watch_managers:lost(Pid, Managers0) of
        {lost, Id, Managers} ->
            ok = tell({manager_lost, Id}, State),
            {noreply, State#state{managers = Managers}};
        none ->
            {noreply, State}
    end;
handle_info({'DOWN', _, process, Pid, _}, State) ->
    {noreply, unsubscribed(Pid, State)}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{managers = Managers}) -> atoll_watch_managers:stop(Managers).

ticked(#state{period = Period} = State) ->
    _ = erlang:send_after(Period, self(), tick),
    compared(stepped(tick, State)).

before(#state{core = Core}) -> fun(Node) -> atoll_watch_core:before(Node, Core) end.

stepped(Input, #state{core = Core0} = State) ->
    {Effects, Core} = atoll_watch_core:step(Input, erlang:monotonic_time(millisecond), Core0),
    told_turns(lists:foldl(fun done/2, State#state{core = Core}, Effects)).

done({meet, Nodes}, #state{managers = Managers} = State) ->
    ok = tell({met, Nodes}, State),
    State#state{managers = atoll_watch_managers:met(Nodes, before(State), Managers)};
done({leave, Node}, #state{managers = Managers} = State) ->
    State#state{managers = atoll_watch_managers:gone(Node, Managers)};
done({tell, Event}, #state{alarms = Alarms0} = State) ->
    ok = tell(Event, State),
    {Events, Alarms} =
        case Event of
            {looked, Seen} -> atoll_watch_alarm:look(Seen, now_ms(), Alarms0);
            {Gone, Node} when Gone =:= forgotten; Gone =:= removed -> atoll_watch_alarm:forget(Node, now_ms(), Alarms0);
            _ -> {[], Alarms0}
        end,
    told_alarms(Events, State#state{alarms = Alarms}).

%% All nodes side by side, once in a period.
compared(#state{core = Core, alarms = Alarms0} = State) ->
    {Events, Alarms} = atoll_watch_alarm:compare(atoll_watch_core:abouts(Core), now_ms(), Alarms0),
    told_alarms(Events, State#state{alarms = Alarms}).

tell(Event, #state{subscribers = Subscribers}) ->
    Self = self(),
    lists:foreach(fun(Pid) -> Pid ! {?MODULE, Self, Event} end, maps:keys(Subscribers)).

told_alarms(Events, State) ->
    lists:foreach(fun(Event) -> ok = tell({alarm, Event}, State) end, Events),
    State.

by_people({ok, Events, Alarms}, State) -> {reply, ok, told_alarms(Events, State#state{alarms = Alarms})};
by_people({error, _} = Error, State) -> {reply, Error, State}.

%% People read it beside what else happened then.
now_ms() -> erlang:system_time(millisecond).

told_turns(#state{awaiting = Awaiting, core = Core} = State) ->
    Turns = atoll_watch_core:turns(Core),
    {Now, Later} = lists:partition(fun({_, Wanted}) -> Turns >= Wanted end, Awaiting),
    lists:foreach(fun({From, _}) -> gen_server:reply(From, ok) end, Now),
    State#state{awaiting = Later}.

subscribed(Pid, State) ->
    #state{subscribers = Subscribers} = Left = unsubscribed(Pid, State),
    Left#state{subscribers = Subscribers#{Pid => monitor(process, Pid)}}.

unsubscribed(Pid, #state{subscribers = Subscribers} = State) ->
    case maps:take(Pid, Subscribers) of
        {Ref, Others} ->
            true = demonitor(Ref, [flush]),
            State#state{subscribers = Others};
        error ->
            State
    end.
