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
    nodes := [{node(), state()}],
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

-type state() :: up | down | unknown | busy | timeout | refused | other_version | unreached.

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
    said = #{} :: #{node() => [{term(), [node()]}] | none},
    known = [] :: [node()],
    %% Since when each is down, and how many were found beyond the most.
    downs = #{} :: #{node() => integer()},
    beyond = 0 :: non_neg_integer(),
    %% The groups in which each was last, if it is in none any more: what it was sent until then was sent there.
    were = #{} :: #{node() => [term()]},
    sums :: atoll_flow_sums:sums(),
    states = #{} :: #{node() => state()},
    tracing = #{} :: #{node() => atoll_flow_probe:tracing()},
    shares = #{} :: #{node() => atoll_flow_share:share()},
    loads = #{} :: #{node() => atoll_flow_probe:load()},
    migrated = #{} :: #{node() => #{{pos_integer(), pos_integer()} => pos_integer()}},
    %% Whose load is wanted, by whom.
    loaded = #{} :: #{pid() => node()},
    subscribers = #{} :: #{pid() => reference()},
    %% How often what is wanted was told, and which of these times each node has been looked at after.
    turn = 0 :: non_neg_integer(),
    looks = #{} :: #{node() => non_neg_integer()},
    settling = [] :: [{gen_server:from(), Turn :: non_neg_integer()}],
    lost = 0 :: non_neg_integer(),
    omitted = #{} :: #{pid() => non_neg_integer()},
    not_kept = none :: none | unicode:chardata()
}).

-define(PERIOD_MS, 200).
-define(LIMIT, 100000).
-define(MOST_NODES, 2000).
-define(FORGET_MS, 3600000).
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
                {ok, View} -> begun(View, Effects, #state{view_name = atoll_view:name(View), way = atoll_view:way(View), options = Options, shadow = Shadow, sums = atoll_flow_sums:new()});
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

begun(View, Effects, #state{shadow = Shadow, options = Options} = State) ->
    Groups = case atoll_view:running(View) of [] -> []; _ -> maps:get(groups, atoll_view:groups(View)) end,
    Nodes = [Node || {Node, _} <- atoll_view:nodes(View)],
    %% An own VM asks them, which is connected with them then.
    _ = [ok = atoll_view:close(View) || maps:get(apart, Options, false)],
    Known = lists:usort(Nodes ++ maps:keys(atoll_flow_shadow:owners(Shadow))),
    Said = maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Group}) -> Group end, [{Node, Group} || {_, Its} = Group <- Groups, Node <- Its]),
    _ = erlang:send_after(?PERIOD_MS, self(), frame),
    {ok, pictured(State, (done(Effects, State))#state{known = Known, said = Said})}.

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
handle_call(sums, _From, #state{sums = Sums} = State) -> {reply, Sums, State};
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
            State1 = lists:foldl(fun happened/2, State0#state{omitted = All#{Place => Omitted}, tries = maps:remove(Host, State0#state.tries)}, Events),
            State2 = lists:foldl(fun looked/2, State1, Looks),
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
placeless(Host, Reason, #state{tries = Tries0, waiting = Waiting, agents = Agents, shadow = Shadow, states = States, looks = Looks, lost = Lost} = State) ->
    Its = at(Host, State),
    case Reason of
        {shutdown, {unable, _}} ->
            N = maps:get(Host, Tries0, 0) + 1,
            Tries = Tries0#{Host => N},
            case map_size(Looks) =:= 0 andalso lists:all(fun(At) -> is_map_key(At, Tries) end, maps:values(Agents)) of
                true ->
                    {stop, Reason, State};
                false ->
                    _ = erlang:send_after(min(?MOST_AGAIN_MS, ?AGAIN_MS bsl min(N - 1, 10)), self(), {again, Host}),
                    Unreached = maps:from_keys([Node || {Node, Agent} <- maps:to_list(atoll_flow_shadow:owners(Shadow)), lists:member(Agent, Its)], unreached),
                    {noreply, settled(State#state{tries = Tries, waiting = Waiting#{Host => []}, states = maps:merge(States, Unreached), lost = Lost + length(Its)})}
            end;
        _ ->
            {noreply, lists:foldl(fun lost/2, State, Its)}
    end.

at(Host, #state{agents = Agents}) -> [Agent || {Agent, At} <- maps:to_list(Agents), At =:= Host].

lost(Agent, #state{lost = Lost} = State) -> stepped({agent_lost, Agent}, State#state{lost = Lost + 1}).

happened({agent_lost, Agent}, State) -> lost(Agent, State);
happened({not_seen, _, Node, Why}, #state{states = States} = State) -> State#state{states = States#{Node => Why}};
happened({What, Agent, Node}, #state{shadow = Shadow, states = States, tracing = Tracing} = State) ->
    case atoll_flow_shadow:owner(Node, Shadow) of
        {ok, Agent} ->
            {Is, Downs} = case What of
                node_up -> {up, maps:remove(Node, State#state.downs)};
                node_down -> {down, (State#state.downs)#{Node => erlang:monotonic_time(millisecond)}}
            end,
            stepped({What, Node}, State#state{states = States#{Node => Is}, downs = Downs, tracing = maps:remove(Node, Tracing)});
        _ -> State
    end.

%% Only its owner is heard.
looked({Agent, Node, Turn, #{groups := Groups, peers := Peers, tracing := Tracing, load := Load} = Look}, #state{shadow = Shadow, sums = Sums, said = Said, known = Known, states = States, looks = Looks, loads = Loads, were = Were} = State0) ->
    case atoll_flow_shadow:owner(Node, Shadow) of
        {ok, Agent} ->
            #state{downs = Downs} = State = migrated(Node, Load, State0),
            Gone = [Is || {Is, Since} <- maps:to_list(Downs), erlang:monotonic_time(millisecond) - Since > ?FORGET_MS],
            {Now, Beyond} = found(Peers, lists:subtract(Known, Gone)),
            State#state{
                sums = atoll_flow_sums:looked(Node, Look, fun(Peer) -> groups_of(Peer, Shadow, Were) end, Sums),
                were = case Groups of [_ | _] -> Were#{Node => [Group || {Group, _} <- Groups]}; _ -> Were end,
                said = Said#{Node => Groups},
                known = Now,
                downs = maps:without(Gone, Downs),
                states = (maps:without(Gone, States))#{Node => case Tracing of busy -> busy; _ -> up end},
                beyond = max(State0#state.beyond, Beyond),
                tracing = case Tracing of #{} -> (State#state.tracing)#{Node => Tracing}; _ -> maps:remove(Node, State#state.tracing) end,
                shares = case Tracing of #{} -> (State#state.shares)#{Node => atoll_flow_share:looked(Tracing, maps:get(Node, State#state.shares, none))}; _ -> State#state.shares end,
                loads = case Load of none -> maps:remove(Node, Loads); _ -> Loads#{Node => Load} end,
                looks = Looks#{Node => Turn}
            };
        _ -> State0
    end.

%% Whoever came first is observed. One that is down and that nobody is connected with is forgotten after an hour.
found(Peers, Known) ->
    New = lists:subtract(lists:usort(Peers), Known),
    {In, Out} = lists:split(min(length(New), max(0, ?MOST_NODES - length(Known))), New),
    {lists:umerge(Known, In), length(Out)}.

groups_of(Node, Shadow, Were) ->
    case [Group || {Group, Nodes} <- atoll_flow_shadow:groups(Shadow), lists:member(Node, Nodes)] of
        [] -> maps:get(Node, Were, []);
        Groups -> Groups
    end.

%% What has come since the last frame is in the next one.
migrated(_, none, State) -> State;
migrated(Node, #{migrations := Now}, #state{loads = Loads, migrated = Migrated} = State) ->
    Before = case Loads of #{Node := #{migrations := Is}} -> maps:from_list([{{F, T}, N} || {F, T, N} <- Is]); #{} -> #{} end,
    Gain = maps:from_list([{{From, To}, case maps:get({From, To}, Before, 0) of Had when Had =< N -> N - Had; _ -> N end} || {From, To, N} <- Now]),
    State#state{migrated = Migrated#{Node => maps:merge_with(fun(_, A, B) -> A + B end, Gain, maps:get(Node, Migrated, #{}))}}.

%% Groups are looked at again when somebody says another thing than before.
pictured(#state{said = Said, known = Known, states = States}, #state{said = Said, known = Known, states = States} = State) -> State;
pictured(_, #state{said = Said, known = Known, states = States} = State) ->
    {Groups, Free} = atoll_flow_picture:of_looks(Known, [Node || {Node, down} <- maps:to_list(States)], Said),
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
settled(#state{settling = Settling, looks = Looks, states = States, shadow = Shadow} = State) ->
    Last = lists:min([infinity | [maps:get(Node, Looks, -1) || Node <- maps:keys(atoll_flow_shadow:owners(Shadow)), maps:get(Node, States, up) =:= up]]),
    {Done, Waiting} = lists:partition(fun({_, Turn}) -> Turn =< Last end, Settling),
    lists:foreach(fun({From, _}) -> gen_server:reply(From, ok) end, Done),
    State#state{settling = Waiting}.

%% Nobody reads it: what is new waits for who comes.
framed(#state{subscribers = Subscribers} = State) when map_size(Subscribers) =:= 0 ->
    {_, Sums} = atoll_flow_sums:fresh(State#state.sums),
    State#state{sums = Sums, migrated = #{}};
framed(#state{subscribers = Subscribers, shadow = Shadow, sums = Sums0, states = States, options = Options, loads = Loads, migrated = Migrated} = State) ->
    {Fresh, Sums} = atoll_flow_sums:fresh(Sums0),
    Trace = maps:get(trace, Options, false),
    Frame = #{
        at => erlang:system_time(millisecond),
        groups => atoll_flow_shadow:groups(Shadow),
        nodes => lists:sort(maps:keys(atoll_flow_shadow:owners(Shadow))),
        down => lists:sort([Node || {Node, down} <- maps:to_list(States), is_map_key(Node, atoll_flow_shadow:owners(Shadow))]),
        counts => case Trace of true -> messages; false -> packets end,
        edges => edges(Trace, Fresh),
        shares => [{Node, Part} || {Node, Share} <- traced_now(State), Part <- [atoll_flow_share:fresh(Share)], Part < 1],
        loads => [{Node, Load#{migrations := [{From, To, N} || {{From, To}, N} <- lists:sort(maps:to_list(maps:get(Node, Migrated, #{}))), N > 0]}} || {Node, Load} <- lists:sort(maps:to_list(Loads))]
    },
    Self = self(),
    lists:foreach(fun(Pid) -> Pid ! {?MODULE, Self, Frame} end, maps:keys(Subscribers)),
    State#state{sums = Sums, migrated = #{}}.

traced_now(#state{tracing = Tracing, shares = Shares}) -> lists:sort(maps:to_list(maps:with(maps:keys(Tracing), Shares))).

edges(Trace, Fresh) ->
    Edges = lists:foldl(fun({{From, To, _, Kind, _}, {Count, Bytes}}, Acc) when (Kind =/= wire) =:= Trace ->
            maps:update_with({From, To}, fun({C, B}) -> {C + Count, B + Bytes} end, {Count, Bytes}, Acc);
        (_, Acc) -> Acc
    end, #{}, Fresh),
    [{From, To, Count, Bytes} || {{From, To}, {Count, Bytes}} <- lists:sort(maps:to_list(Edges)), Count > 0 orelse Bytes > 0].

status_of(#state{shadow = Shadow, states = States, tracing = Tracing, shares = Shares, lost = Lost, omitted = Omitted, not_kept = NotKept} = State) ->
    Nodes = lists:sort(maps:keys(atoll_flow_shadow:owners(Shadow))),
    #{
        nodes => [{Node, maps:get(Node, States, unknown)} || Node <- Nodes],
        shares => [{Node, atoll_flow_share:all(Share), atoll_flow_share:estimated(Share)} || {Node, Share} <- lists:sort(maps:to_list(Shares))],
        sampled => [Node || {Node, Share} <- traced_now(State), atoll_flow_share:is_sampled(Share)],
        seen => lists:sum([Seen || #{seen := Seen} <- maps:values(Tracing)]),
        longest => lists:max([0 | [Longest || #{longest := Longest} <- maps:values(Tracing)]]),
        agents_lost => Lost, beyond => State#state.beyond, omitted => lists:sum(maps:values(Omitted)), not_kept => NotKept
    }.
