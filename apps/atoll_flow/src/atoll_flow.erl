%% SPDX-License-Identifier: Apache-2.0
%% @doc Observes the traffic of a running cluster, with Atoll on it or not: a process that has agents look at its nodes, five times a
%% second, and sums up what they say. Who is whose agent, {@link atoll_flow_shadow} decides.
%%
%% Without tracing it reads what connections have carried, which the VM and the carrier count anyway. With tracing it counts
%% messages one by one, by kind; a governor holds that within bounds, see {@link atoll_flow_probe}.
%%
%% Promised: whoever asks nodes is a hidden node, and no two observed nodes are connected by it. What an agent says of a node that
%% it does not own any more is not heard. Agents that are lost are replaced. When the process ends, in whatever way, agents and
%% probes go. Where none can be started at all it ends, with `{shutdown, {unable, Sentence}}'; otherwise they are tried again after a
%% second, then two, up to a minute.
%%
%% Subscribers get `{atoll_flow, Flow, Frame}' five times a second, without a bound: who does not read is to be no subscriber.
-module(atoll_flow).

-behaviour(gen_server).

-export([start_link/2, subscribe/1, unsubscribe/1, forget/2, wants/2, load/2, settle/2, sums/1, groups/1, agents/1, status/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0, status/0]).

-type options() :: #{
    %% Messages are counted one by one, by tracing.
    trace => boolean(),
    by => any | name | module,
    %% Above so many messages a second, of one node, only a part of them is traced.
    limit => pos_integer(),
    %% So many milliseconds from a look at a node to the next one; 200 unless told.
    period => pos_integer(),
    %% The file in which the shadow network is kept.
    keep => file:filename(),
    %% Agents live in a VM of their own, rather than in this one.
    apart => boolean(),
    %% The program that starts a VM on another host, as ssh does: then agents live where most of their nodes are.
    remote => file:filename()
}.

-type status() :: #{
    %% How each node is: not looked at yet, or whose looks fail and why.
    nodes := [{node(), atoll_flow_heard:state()}],
    %% Which part of the time was traced since this looks, by node, and how many of its messages are estimates; 1.0 and none if all was
    %% traced.
    shares := [{node(), float(), Estimated :: non_neg_integer()}],
    %% Of which only a part of the time is traced now.
    sampled := [node()],
    %% Messages that were traced, and the most that waited to be counted, of all nodes.
    seen := non_neg_integer(),
    longest := non_neg_integer(),
    agents_lost := non_neg_integer(),
    %% Events that were left out since too many came at once, and nodes since there are too many.
    omitted := non_neg_integer(),
    beyond := non_neg_integer(),
    %% Why the shadow network could not be kept the last time.
    not_kept := none | unicode:chardata()
}.

-record(state, {
    view_name :: string(),
    way :: atoll_view_join:way(),
    options :: options(),
    shadow :: atoll_flow_shadow:shadow(),
    %% By host; `here' is where nothing says more.
    places = #{} :: #{here | string() => pid()},
    agents = #{} :: #{atoll_flow_shadow:agent() => here | string()},
    %% How often in a row a place has ended before it said anything; and those that are started again after a while.
    tries = #{} :: #{here | string() => pos_integer()},
    waiting = #{} :: #{here | string() => []},
    heard :: atoll_flow_heard:heard(),
    %% Whose load is wanted, by whom.
    loaded = #{} :: #{pid() => node()},
    subscribers = #{} :: #{pid() => reference()},
    %% How often what is wanted was told.
    turn = 0 :: non_neg_integer(),
    settling = [] :: [{gen_server:from(), Turn :: non_neg_integer()}],
    lost = 0 :: non_neg_integer(),
    omitted = #{} :: #{pid() => non_neg_integer()},
    not_kept = none :: none | unicode:chardata()
}).

-define(PERIOD_MS, 200).
-define(LIMIT, 100000).
-define(STOP_MS, 5000).
-define(AGAIN_MS, 1000).
-define(MOST_AGAIN_MS, 60000).

%% @doc Begins to observe. If no node of the cluster can be reached, says why in a sentence.
-spec start_link(atoll_view:target(), options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Target, Options) ->
    case gen_server:start_link(?MODULE, {Target, Options}, []) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, {unable, Sentence}}} -> {error, {unable, Sentence}}
    end.

%% @doc The calling process gets frames from now on, see {@link atoll_flow_frame:frame()}.
-spec subscribe(pid()) -> ok.
subscribe(Flow) -> gen_server:call(Flow, {subscribe, self()}).

%% @doc And no more.
-spec unsubscribe(pid()) -> ok.
unsubscribe(Flow) -> forget(Flow, self()).

%% @doc Another process gets no more.
-spec forget(pid(), pid()) -> ok.
forget(Flow, Pid) -> gen_server:call(Flow, {unsubscribe, Pid}).

%% @doc From now on messages are traced, or not.
-spec wants(pid(), Trace :: boolean()) -> ok.
wants(Flow, Trace) -> gen_server:call(Flow, {wants, Trace}).

%% @doc A subscriber gets the load of that node in its frames, too: run queues, migrations and mailboxes.
-spec load(pid(), node() | none) -> ok.
load(Flow, Node) -> gen_server:call(Flow, {load, self(), Node}).

%% @doc Waits until all that was sent until now is counted, or not in time.
-spec settle(pid(), timeout()) -> ok | timeout.
settle(Flow, Ms) ->
    try gen_server:call(Flow, settle, Ms)
    catch exit:{timeout, _} -> timeout
    end.

%% @doc What was counted.
-spec sums(pid()) -> atoll_flow_sums:sums().
sums(Flow) -> gen_server:call(Flow, sums).

%% @doc The groups, in the order in which they became known.
-spec groups(pid()) -> [{Group :: term(), [node()]}].
groups(Flow) -> gen_server:call(Flow, groups).

%% @doc The agents, and what each owns.
-spec agents(pid()) -> [{atoll_flow_shadow:agent(), [atoll_flow_shadow:owned()]}].
agents(Flow) -> gen_server:call(Flow, agents).

%% @doc How it goes.
-spec status(pid()) -> status().
status(Flow) -> gen_server:call(Flow, status).

%% @private
-spec init({atoll_view:target(), options()}) -> {ok, #state{}} | {stop, {shutdown, {unable, unicode:chardata()}}}.
init({Target, Options}) ->
    _ = process_flag(trap_exit, true),
    case kept(Options) of
        {error, Sentence} -> {stop, {shutdown, {unable, Sentence}}};
        {ok, Effects, Shadow} ->
            case atoll_view:open(Target) of
                {ok, View} -> {ok, begun(View, Effects, Shadow, Options)};
                {error, Sentence} -> {stop, {shutdown, {unable, Sentence}}}
            end
    end.

kept(#{keep := File}) ->
    case atoll_flow_kept:read(File) of
        none -> kept(#{});
        Is -> Is
    end;
kept(#{}) ->
    {ok, [], atoll_flow_shadow:new()}.

begun(View, Effects, Shadow, Options) ->
    Groups = case atoll_view:running(View) of [] -> []; _ -> maps:get(groups, atoll_view:groups(View)) end,
    Known = [Node || {Node, _} <- atoll_view:nodes(View)] ++ maps:keys(atoll_flow_shadow:owners(Shadow)),
    {Name, Way} = {atoll_view:name(View), atoll_view:way(View)},
    %% An own VM asks them, which is connected with them then.
    _ = [ok = atoll_view:close(View) || maps:get(apart, Options, false)],
    _ = erlang:send_after(?PERIOD_MS, self(), frame),
    pictured(done(Effects, #state{view_name = Name, way = Way, options = Options, shadow = Shadow, heard = atoll_flow_heard:new(Known, Groups)})).

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}} when
    Request :: {subscribe | unsubscribe, pid()} | {wants, boolean()} | {load, pid(), node() | none} | settle | sums | groups | agents | status.
handle_call({subscribe, Pid}, _From, State0) ->
    #state{subscribers = Subscribers} = State = unsubscribed(Pid, State0),
    {reply, ok, State#state{subscribers = Subscribers#{Pid => monitor(process, Pid)}}};
handle_call({unsubscribe, Pid}, _From, State) ->
    {reply, ok, unsubscribed(Pid, State)};
handle_call({wants, Trace}, _From, #state{options = Options} = State) ->
    {reply, ok, told_wants(State#state{options = Options#{trace => Trace}})};
handle_call({load, Pid, none}, _From, #state{loaded = Loaded} = State) ->
    {reply, ok, told_wants(State#state{loaded = maps:remove(Pid, Loaded)})};
handle_call({load, Pid, Node}, _From, #state{loaded = Loaded} = State) ->
    {reply, ok, told_wants(State#state{loaded = Loaded#{Pid => Node}})};
handle_call(settle, From, State0) ->
    #state{turn = Turn, settling = Settling} = State = told_wants(State0),
    {noreply, settled(State#state{settling = [{From, Turn} | Settling]})};
handle_call(sums, _From, #state{heard = Heard} = State) -> {reply, atoll_flow_heard:sums(Heard), State};
handle_call(groups, _From, #state{shadow = Shadow} = State) -> {reply, atoll_flow_shadow:groups(Shadow), State};
handle_call(agents, _From, #state{shadow = Shadow} = State) -> {reply, atoll_flow_shadow:agents(Shadow), State};
handle_call(status, _From, State) -> {reply, status_of(State), State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message :: frame | {report, pid(), atoll_flow_place:report()} | {again, here | string()} | {'EXIT', pid(), term()} | {'DOWN', reference(), process, pid(), term()}.
handle_info(frame, State) ->
    _ = erlang:send_after(?PERIOD_MS, self(), frame),
    {noreply, framed(State)};
handle_info({report, Place, #{looks := Looks, events := Events, agents := Agents, omitted := Omitted}}, #state{places = Places, omitted = All} = State0) ->
    case [Host || {Host, Is} <- maps:to_list(Places), Is =:= Place] of
        [Host] ->
            Place ! {next, self()},
            State1 = State0#state{omitted = All#{Place => Omitted}, tries = maps:remove(Host, State0#state.tries)},
            %% There is one look at each node, the last: at one that is lost in the end it was before that.
            Lost = [Node || {Node, node_down} <- maps:to_list(maps:from_list([{Node, What} || {What, _, Node} <- Events]))],
            {Before, After} = lists:partition(fun({_, Node, _, _}) -> lists:member(Node, Lost) end, Looks),
            State2 = lists:foldl(fun looked/2, lists:foldl(fun happened/2, lists:foldl(fun looked/2, State1, Before), Events), After),
            %% Orders may be under way to it: then it is told once more what it is about to have.
            State = lists:foldl(fun({Agent, Token}, Acc) -> stepped({agent_up, Agent, Token}, Acc) end, State2, Agents),
            {noreply, settled(pictured(State0, State))};
        %% It has been replaced.
        [] ->
            {noreply, State0}
    end;
handle_info({again, Host}, #state{waiting = Waiting} = State) ->
    {noreply, lists:foldl(fun(Agent, Acc) -> stepped({agent_lost, Agent}, Acc) end, State#state{waiting = maps:remove(Host, Waiting)}, at(Host, State))};
handle_info({'EXIT', Pid, Reason}, #state{places = Places} = State) ->
    case [Host || {Host, Is} <- maps:to_list(Places), Is =:= Pid] of
        [Host] -> placeless(Host, Reason, State#state{places = maps:remove(Host, Places)});
        [] when Reason =:= normal -> {noreply, State};
        [] -> {stop, Reason, State}
    end;
handle_info({'DOWN', _, process, Pid, _}, State) ->
    {noreply, unsubscribed(Pid, State)}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{places = Places}) ->
    Refs = [begin true = exit(Pid, shutdown), monitor(process, Pid) end || Pid <- maps:values(Places)],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok after ?STOP_MS -> ok end end, Refs),
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, maps:values(Places)).

%% A place has ended: it is started again, with all its agents.
placeless(Host, Reason, #state{tries = Tries0, waiting = Waiting, agents = Agents, shadow = Shadow, heard = Heard, lost = Lost} = State) ->
    Its = at(Host, State),
    case Reason of
        {shutdown, {unable, _}} ->
            N = maps:get(Host, Tries0, 0) + 1,
            Tries = Tries0#{Host => N},
            case not atoll_flow_heard:is_anybody(Heard) andalso lists:all(fun(At) -> is_map_key(At, Tries) end, maps:values(Agents)) of
                true ->
                    {stop, Reason, State};
                false ->
                    _ = erlang:send_after(min(?MOST_AGAIN_MS, ?AGAIN_MS bsl min(N - 1, 10)), self(), {again, Host}),
                    Unreached = [Node || {Node, Agent} <- maps:to_list(atoll_flow_shadow:owners(Shadow)), lists:member(Agent, Its)],
                    {noreply, settled(State#state{tries = Tries, waiting = Waiting#{Host => []}, heard = atoll_flow_heard:failed(Unreached, unreached, Heard), lost = Lost + length(Its)})}
            end;
        _ ->
            {noreply, lists:foldl(fun lost/2, State, Its)}
    end.

at(Host, #state{agents = Agents}) -> [Agent || {Agent, At} <- maps:to_list(Agents), At =:= Host].

lost(Agent, #state{lost = Lost} = State) -> stepped({agent_lost, Agent}, State#state{lost = Lost + 1}).

happened({agent_lost, Agent}, State) -> lost(Agent, State);
happened({not_seen, _, Node, Why}, #state{heard = Heard} = State) -> State#state{heard = atoll_flow_heard:failed([Node], Why, Heard)};
happened({What, Agent, Node}, #state{shadow = Shadow, heard = Heard} = State) ->
    case atoll_flow_shadow:owner(Node, Shadow) of
        {ok, Agent} ->
            stepped({What, Node}, State#state{heard = case What of
                node_up -> atoll_flow_heard:up(Node, Heard);
                node_down -> atoll_flow_heard:down(Node, erlang:monotonic_time(millisecond), Heard)
            end});
        _ -> State
    end.

%% Only its owner is heard.
looked({Agent, Node, Turn, Look}, #state{shadow = Shadow, heard = Heard} = State) ->
    case atoll_flow_shadow:owner(Node, Shadow) of
        {ok, Agent} -> State#state{heard = atoll_flow_heard:looked(Node, Turn, Look, atoll_flow_shadow:groups(Shadow), erlang:monotonic_time(millisecond), Heard)};
        _ -> State
    end.

%% Groups are looked at again when somebody says another thing than before.
pictured(#state{heard = Before}, #state{heard = Heard} = State) ->
    case atoll_flow_heard:is_same_picture(Before, Heard) of
        true -> State;
        false -> pictured(State)
    end.

pictured(#state{heard = Heard} = State) ->
    {Groups, Free} = atoll_flow_heard:picture(Heard),
    stepped({picture, Groups, Free}, State).

stepped(Event, #state{shadow = Shadow0} = State) ->
    {Effects, Shadow} = atoll_flow_shadow:step(Event, Shadow0),
    done(Effects, State#state{shadow = Shadow}).

done(Effects, State) -> lists:foldl(fun effect/2, State, Effects).

effect(keep, #state{options = #{keep := File}, shadow = Shadow} = State) ->
    State#state{not_kept = case atoll_flow_kept:write(File, Shadow) of ok -> none; {error, Sentence} -> Sentence end};
effect(keep, State) ->
    State;
effect({start, Agent, _, Owned} = Order, #state{agents = Agents, waiting = Waiting} = State0) ->
    Host = host(Owned, State0),
    #state{places = Places} = State = case is_map_key(Host, Waiting) of true -> State0; false -> placed(Host, State0) end,
    _ = [Place ! {flow, Order} || #{Host := Place} <- [Places]],
    State#state{agents = Agents#{Agent => Host}};
effect(Order, #state{agents = Agents, places = Places} = State) ->
    Agent = element(2, Order),
    case Agents of
        #{Agent := Host} ->
            _ = [Place ! {flow, Order} || #{Host := Place} <- [Places]],
            State#state{agents = case Order of {stop, _} -> maps:remove(Agent, Agents); _ -> Agents end};
        #{} -> State
    end.

%% Where most of the nodes are.
host(Owned, #state{options = #{remote := _}}) ->
    Hosts = [Host || {Node, _} <- Owned, [_, Host] <- [string:split(atom_to_list(Node), "@")]],
    case lists:reverse(lists:sort([{length([H || H <- Hosts, H =:= Host]), Host} || Host <- lists:usort(Hosts)])) of
        [{_, Host} | _] -> Host;
        [] -> here
    end;
host(_, _) ->
    here.

placed(Host, #state{places = Places} = State) when is_map_key(Host, Places) -> State;
placed(Host, #state{places = Places, way = Way, options = Options} = State) ->
    Place = #{way => Way, agents => #{period => maps:get(period, Options, ?PERIOD_MS), code => atoll_view_put:code(atoll_flow_probe:modules()), version => atoll_flow_probe:version()}},
    {ok, Pid} = case {Host, Options} of
        {here, #{apart := true}} -> atoll_view_reporter_vm:start_link(apart(Place));
        {here, #{}} -> atoll_view_reporter:start_link(atoll_flow_place, Place);
        {_, #{remote := Program}} -> atoll_view_reporter_vm:start_link((apart(Place))#{there => {Program, Host, atoll_flow_place:modules()}})
    end,
    Pid ! {flow, {wants, State#state.turn, wanted(State)}},
    Pid ! {next, self()},
    State#state{places = Places#{Host => Pid}}.

apart(Place) -> #{reporter => atoll_flow_place, options => Place, called => "What observes traffic"}.

wanted(#state{options = Options, loaded = Loaded}) ->
    Else = #{trace => maps:get(trace, Options, false), by => maps:get(by, Options, any), limit => maps:get(limit, Options, ?LIMIT), load => false},
    maps:merge(#{others => Else}, maps:from_list([{Node, Else#{load := true}} || Node <- maps:values(Loaded)])).

told_wants(#state{places = Places, turn = Turn0} = State) ->
    {Turn, Wants} = {Turn0 + 1, wanted(State)},
    lists:foreach(fun(Place) -> Place ! {flow, {wants, Turn, Wants}} end, maps:values(Places)),
    State#state{turn = Turn}.

unsubscribed(Pid, #state{subscribers = Subscribers, loaded = Loaded} = State) ->
    case maps:take(Pid, Subscribers) of
        {Ref, Others} ->
            true = demonitor(Ref, [flush]),
            Left = State#state{subscribers = Others, loaded = maps:remove(Pid, Loaded)},
            case is_map_key(Pid, Loaded) of true -> told_wants(Left); false -> Left end;
        error -> State
    end.

settled(#state{settling = []} = State) -> State;
settled(#state{settling = Settling, heard = Heard, shadow = Shadow} = State) ->
    Last = atoll_flow_heard:looked_after(maps:keys(atoll_flow_shadow:owners(Shadow)), Heard),
    {Done, Waiting} = lists:partition(fun({_, Turn}) -> Turn =< Last end, Settling),
    lists:foreach(fun({From, _}) -> gen_server:reply(From, ok) end, Done),
    State#state{settling = Waiting}.

%% Nobody reads it: who comes later gets what is new then.
framed(#state{subscribers = Subscribers, heard = Heard} = State) when map_size(Subscribers) =:= 0 ->
    State#state{heard = atoll_flow_heard:unframed(Heard)};
framed(#state{subscribers = Subscribers, shadow = Shadow, options = Options, heard = Heard0} = State) ->
    Of = #{at => erlang:system_time(millisecond), nodes => observed(State), groups => atoll_flow_shadow:groups(Shadow)},
    {Frame, Heard} = atoll_flow_heard:frame(Of, maps:get(trace, Options, false), Heard0),
    Self = self(),
    lists:foreach(fun(Pid) -> Pid ! {?MODULE, Self, Frame} end, maps:keys(Subscribers)),
    State#state{heard = Heard}.

observed(#state{shadow = Shadow}) -> lists:sort(maps:keys(atoll_flow_shadow:owners(Shadow))).

status_of(#state{heard = Heard, lost = Lost, omitted = Omitted, not_kept = NotKept} = State) ->
    (atoll_flow_heard:status(observed(State), Heard))#{agents_lost => Lost, omitted => lists:sum(maps:values(Omitted)), not_kept => NotKept}.
