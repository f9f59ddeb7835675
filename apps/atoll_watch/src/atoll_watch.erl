%% SPDX-License-Identifier: Apache-2.0
%% @doc Watches a running cluster, with Atoll on it or not: a process that finds its nodes, puts an
%% agent into each, and pulls what they measure once in a period.
%%
%% Promised: this VM is a hidden node ({@link atoll_view_join}), and no two watched nodes are
%% connected by it. At most 32 nodes are asked at once, each by a process with a time of its
%% own, so one that hangs holds up no other. When the process ends, in whatever way, the agents
%% go. What it decides, {@link atoll_watch_core} decides, without a process.
%%
%% Subscribers get `{atoll_watch, Watch, Event}', see {@link event()}, without a bound: who does not
%% read is to be no subscriber. Alarms live as long as the process.
-module(atoll_watch).

-behaviour(gen_server).

-export([start_link/2, child_spec/2, nodes/1, node/2, counts/1, await/3, subscribe/1, unsubscribe/1]).
-export([add/2, remove/2]).
-export([alarms/1, history/1, acknowledge/3, comment/4]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-compile({no_auto_import, [nodes/1, node/2]}).

-export_type([options/0, event/0]).

%% Who asks a node ends with exit/1 by design.
-dialyzer({nowarn_function, done/2}).

-type event() :: atoll_watch_core:event() | {met, [node(), ...]} | {alarm, atoll_watch_alarm:event()}.

-type options() :: #{
    %% Milliseconds within which a node is to answer.
    answer => pos_integer(),
    %% As of {@link atoll_watch_core:options()}.
    period => pos_integer(),
    at_once => pos_integer(),
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
    view :: atoll_view:view(),
    core :: atoll_watch_core:core(),
    alarms :: atoll_watch_alarm:alarms(),
    period :: pos_integer(),
    answer :: pos_integer(),
    %% Who asks which node.
    asking = #{} :: #{reference() => {pid(), node()}},
    subscribers = #{} :: #{pid() => reference()},
    awaiting = [] :: [{gen_server:from(), Turns :: pos_integer()}]
}).

-define(PERIOD_MS, 5000).
%% OTP gives a connection seven seconds to be made; a node that answers does so at once.
-define(ANSWER_MS, 5000).

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

%% @doc What was counted, see {@link atoll_watch_core:counts/1}, and alarms that were left out since too many stood, `omitted'.
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
            Named = [Node || {Node, _} <- atoll_view:nodes(View)] ++ maps:get(named, Options, []),
            Core = atoll_watch_core:new(Named, maps:with([at_once, max_nodes, forget, known, removed], Options)),
            #{period := Period, answer := Answer} = maps:merge(#{period => ?PERIOD_MS, answer => ?ANSWER_MS}, Options),
            Alarms = atoll_watch_alarm:restored(maps:get(alarms, Options, []), now_ms(), maps:with([rules], Options)),
            Begun = #state{view = View, core = Core, alarms = Alarms, period = Period, answer = Answer},
            {ok, lists:foldl(fun subscribed/2, Begun, [Pid || #{subscriber := Pid} <- [Options]]), {continue, tick}};
        {error, Sentence} ->
            {stop, {shutdown, {unable, Sentence}}}
    end.

%% @private
-spec handle_continue(tick, #state{}) -> {noreply, #state{}}.
handle_continue(tick, State) -> ticked(State).

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}} when
    Request ::
        nodes | {node | add | remove, node()} | counts | alarms | history | {await, pos_integer()} | {subscribe | unsubscribe, pid()}
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
handle_call(counts, _From, #state{core = Core, alarms = Alarms} = State) ->
    {reply, (atoll_watch_core:counts(Core))#{omitted => atoll_watch_alarm:omitted(Alarms)}, State};
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
-spec handle_info(tick | {'DOWN', reference(), process, pid(), term()}, #state{}) -> {noreply, #state{}}.
handle_info(tick, State) ->
    ticked(State);
handle_info({'DOWN', Ref, process, Pid, Reason}, #state{asking = Asking} = State) ->
    case maps:take(Ref, Asking) of
        {{Pid, Node}, Others} -> {noreply, stepped(outcome(Node, Reason), State#state{asking = Others})};
        error -> {noreply, unsubscribed(Pid, State)}
    end.

%% @private Who asks would only learn from it that nobody wants to know.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{asking = Asking}) ->
    lists:foreach(fun({Pid, _}) -> exit(Pid, kill) end, maps:values(Asking)).

ticked(#state{period = Period} = State) ->
    _ = erlang:send_after(Period, self(), tick),
    {noreply, stepped(tick, State)}.

%% What a node says of its connection with this VM is there since it is asked.
outcome(Node, {sampled, {ok, #{peers := Peers, readings := Readings} = Sample, _}}) ->
    {answered, Node, Sample#{peers := Peers -- [node()], readings := [Reading || Reading <- Readings, element(2, Reading) =/= node()]}};
outcome(Node, {sampled, {error, Failure}}) -> {failed, Node, Failure};
outcome(Node, Reason) -> {failed, Node, {refused, io_lib:format("what ~ts said could not be read: ~0tP", [Node, Reason, 10])}}.

stepped(Input, #state{core = Core0} = State) ->
    {Effects, Core} = atoll_watch_core:step(Input, erlang:monotonic_time(millisecond), Core0),
    told_turns(lists:foldl(fun done/2, State#state{core = Core}, Effects)).

done({meet, Nodes}, #state{view = View} = State) ->
    ok = atoll_view:let_in(Nodes, View),
    ok = tell({met, Nodes}, State),
    State;
done({leave, Node}, #state{asking = Asking} = State) ->
    {Its, Others} = lists:partition(fun({_, {_, Asked}}) -> Asked =:= Node end, maps:to_list(Asking)),
    lists:foreach(fun({Ref, {Pid, _}}) -> true = demonitor(Ref, [flush]), exit(Pid, kill) end, Its),
    %% Its agent goes when it has lost this process, whatever was asked meanwhile.
    _ = erlang:disconnect_node(Node),
    State#state{asking = maps:from_list(Others)};
done({tell, Event}, #state{alarms = Alarms0} = State) ->
    ok = tell(Event, State),
    {Events, Alarms} =
        case Event of
            {looked, Seen} -> atoll_watch_alarm:look(Seen, now_ms(), Alarms0);
            {Gone, Node} when Gone =:= forgotten; Gone =:= removed -> atoll_watch_alarm:forget(Node, now_ms(), Alarms0);
            _ -> {[], Alarms0}
        end,
    told_alarms(Events, State#state{alarms = Alarms});
done({compare, Abouts}, #state{alarms = Alarms0} = State) ->
    {Events, Alarms} = atoll_watch_alarm:compare(Abouts, now_ms(), Alarms0),
    told_alarms(Events, State#state{alarms = Alarms});
done({ask, Node}, #state{asking = Asking, answer = Ms} = State) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> exit({sampled, atoll_watch_node:sample(Node, Self, Ms)}) end),
    State#state{asking = Asking#{Ref => {Pid, Node}}}.

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
