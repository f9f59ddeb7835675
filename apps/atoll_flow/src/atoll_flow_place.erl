%% SPDX-License-Identifier: Apache-2.0
%% @doc Where agents live: in this VM, or in one of its own near the nodes ({@link atoll_flow_vm}). It starts and stops agents as it
%% is told, keeps the last look at each node and what else happened, and gives both to whoever asks.
%%
%% It gets `{flow, Order}', and `{next, To}' from who wants to know what is new: that one gets `{report, Place, Report}', once,
%% after a moment if there is something, and after a second at the latest. What nobody asks for takes no more room than a look at
%% each node and {@link event()}s, of which the last thousand are kept.
-module(atoll_flow_place).

-behaviour(gen_server).

-export([start_link/1, start/1, next/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0, order/0, report/0, event/0]).

-type options() :: #{way := atoll_view_join:way(), agents := atoll_flow_agent:options()}.

-type order() ::
    {start | configure, atoll_flow_shadow:agent(), atoll_flow_shadow:token(), [atoll_flow_shadow:owned()]}
    | {stop, atoll_flow_shadow:agent()}
    | {trace | look_for | untrace, atoll_flow_shadow:agent(), atoll_flow_shadow:change(), node()}
    | {wants, Turn :: non_neg_integer(), atoll_flow_agent:wants()}.

-type event() ::
    {node_up | node_down, atoll_flow_shadow:agent(), node()}
    | {not_seen, atoll_flow_shadow:agent(), node(), timeout | refused | other_version}
    | {agent_lost, atoll_flow_shadow:agent()}.

-type report() :: #{
    looks := [{atoll_flow_shadow:agent(), node(), Turn :: non_neg_integer(), atoll_flow_probe:look()}],
    %% Oldest first.
    events := [event()],
    %% What each agent says that it has.
    agents := [{atoll_flow_shadow:agent(), atoll_flow_shadow:token() | 0}],
    omitted := non_neg_integer()
}.

-record(state, {
    options :: options(),
    cookie :: atoll_view_join:cookie(),
    agents = #{} :: #{atoll_flow_shadow:agent() => {pid(), atoll_flow_shadow:token() | 0}},
    wants = {0, #{else => #{trace => false, by => any, limit => 1, load => false}}} :: {Turn :: non_neg_integer(), atoll_flow_agent:wants()},
    looks = #{} :: #{node() => {atoll_flow_shadow:agent(), Turn :: non_neg_integer(), atoll_flow_probe:look()}},
    events = [] :: [event()],
    omitted = 0 :: non_neg_integer(),
    next = none :: none | {pid(), soon | later, reference()}
}).

-define(MOST, 1000).
-define(GATHER_MS, 20).
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
-spec next(timeout()) -> report().
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
init(#{way := Way} = Options) ->
    _ = process_flag(trap_exit, true),
    case atoll_view_join:start(Way) of
        {ok, Cookie} -> {ok, #state{options = Options, cookie = Cookie}};
        {error, Sentence} -> {stop, {shutdown, {unable, Sentence}}}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message ::
        {flow, order()}
        | {flow, atoll_flow_shadow:agent(), {token, atoll_flow_shadow:token()} | {node(), term()}}
        | {next, pid()}
        | {timeout, reference(), tell}
        | {'EXIT', pid(), term()}.
handle_info({flow, Order}, State) ->
    {noreply, done(Order, State)};
handle_info({flow, Agent, {token, Token}}, #state{agents = Agents} = State) ->
    case Agents of
        #{Agent := {Pid, _}} -> {noreply, State#state{agents = Agents#{Agent := {Pid, Token}}}};
        #{} -> {noreply, State}
    end;
handle_info({flow, Agent, {Node, {look, Turn, Look}}}, #state{looks = Looks} = State) ->
    {noreply, soon(State#state{looks = Looks#{Node => {Agent, Turn, Look}}})};
handle_info({flow, Agent, {Node, {not_seen, Why}}}, State) ->
    {noreply, happened({not_seen, Agent, Node, Why}, State)};
handle_info({flow, Agent, {Node, What}}, State) ->
    {noreply, happened({What, Agent, Node}, State)};
handle_info({next, To}, #state{looks = Looks, events = Events} = State) ->
    {noreply, due(To, case Looks =:= #{} andalso Events =:= [] of true -> later; false -> soon end, State)};
handle_info({timeout, Timer, tell}, #state{next = {To, _, Timer}, looks = Looks, events = Events, agents = Agents, omitted = Omitted} = State) ->
    To ! {report, self(), #{
        looks => [{Agent, Node, Turn, Look} || {Node, {Agent, Turn, Look}} <- maps:to_list(Looks)],
        events => lists:reverse(Events),
        agents => [{Agent, Token} || {Agent, {_, Token}} <- maps:to_list(Agents)],
        omitted => Omitted
    }},
    {noreply, State#state{next = none, looks = #{}, events = []}};
%% One that was put off.
handle_info({timeout, _, tell}, State) ->
    {noreply, State};
handle_info({'EXIT', Pid, Reason}, #state{agents = Agents} = State) ->
    case [Agent || {Agent, {Its, _}} <- maps:to_list(Agents), Its =:= Pid] of
        [Agent] -> {noreply, happened({agent_lost, Agent}, State#state{agents = maps:remove(Agent, Agents)})};
        [] when Reason =:= normal; Reason =:= shutdown -> {noreply, State};
        [] -> {stop, Reason, State}
    end.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{agents = Agents}) ->
    Refs = [begin true = exit(Pid, shutdown), monitor(process, Pid) end || {Pid, _} <- maps:values(Agents)],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

done({start, Agent, Token, Owned}, #state{agents = Agents} = State) when is_map_key(Agent, Agents) ->
    done({configure, Agent, Token, Owned}, State);
done({start, Agent, Token, Owned}, #state{agents = Agents, cookie = Cookie, wants = Wants, options = #{agents := Options}} = State) ->
    {ok, Pid} = atoll_flow_agent:start_link(Agent, self(), Cookie, Wants, Options),
    ok = atoll_flow_agent:order(Pid, {configure, Token, Owned}),
    State#state{agents = Agents#{Agent => {Pid, 0}}};
done({stop, Agent}, #state{agents = Agents} = State) ->
    case maps:take(Agent, Agents) of
        {{Pid, _}, Others} -> true = exit(Pid, shutdown), State#state{agents = Others};
        error -> State
    end;
done({configure, Agent, Token, Owned}, State) ->
    ordered(Agent, {configure, Token, Owned}, State);
done({wants, Turn, Wants}, #state{agents = Agents} = State) ->
    lists:foreach(fun({Pid, _}) -> ok = atoll_flow_agent:order(Pid, {wants, Turn, Wants}) end, maps:values(Agents)),
    State#state{wants = {Turn, Wants}};
done({What, Agent, Change, Node}, State) ->
    ordered(Agent, {What, Change, Node}, State).

%% One that is lost is told so already, and another one comes.
ordered(Agent, Order, #state{agents = Agents} = State) ->
    _ = [ok = atoll_flow_agent:order(Pid, Order) || #{Agent := {Pid, _}} <- [Agents]],
    State.

happened(Event, #state{events = Events, omitted = Omitted} = State) when length(Events) < ?MOST ->
    soon(State#state{events = [Event | Events], omitted = Omitted});
happened(_, #state{omitted = Omitted} = State) ->
    soon(State#state{omitted = Omitted + 1}).

due(To, When, State) ->
    State#state{next = {To, When, erlang:start_timer(case When of soon -> ?GATHER_MS; later -> ?PULSE_MS end, self(), tell)}}.

soon(#state{next = {To, later, Timer}} = State) ->
    _ = erlang:cancel_timer(Timer),
    due(To, soon, State);
soon(State) ->
    State.
