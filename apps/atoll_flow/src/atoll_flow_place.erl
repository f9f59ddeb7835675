%% SPDX-License-Identifier: Apache-2.0
%% @doc Where agents live: a reporter ({@link atoll_view_reporter}), in this VM or in one of its own near the nodes. It starts and
%% stops agents as it is told by `{flow, Order}'. A node that none of them owns any more is left five seconds later, as an agent elsewhere
%% may be about to go on with it, and at once when the place ends. It keeps the last look at each node and what else happened, and its reports are
%% {@link report()}s. What nobody asks for takes no more room than a look at each node and {@link event()}s, of which the last
%% thousand are kept.
-module(atoll_flow_place).

-behaviour(atoll_view_reporter).

-export([modules/0]).
-export([begun/2, came/2, has_news/1, report/1, gathers/0, ended/1]).

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
    %% As they were ordered.
    owned = #{} :: #{atoll_flow_shadow:agent() => [node()]},
    %% Where this place may be known; those that nobody owns have a timer.
    known = #{} :: #{node() => owned | reference()},
    wants = {0, #{others => #{trace => false, by => any, limit => 1, load => false}}} :: {Turn :: non_neg_integer(), atoll_flow_agent:wants()},
    looks = #{} :: #{node() => {atoll_flow_shadow:agent(), Turn :: non_neg_integer(), atoll_flow_probe:look()}},
    events = [] :: [event()],
    omitted = 0 :: non_neg_integer()
}).

-define(MOST, 1000).
-define(GATHER_MS, 20).
-define(KEPT_MS, 5000).
-define(LEAVE_MS, 2000).

%% @doc What it calls, for a host that does not have it.
-spec modules() -> [module(), ...].
modules() -> [atoll_flow_agent].

%% @private
-spec begun(options(), atoll_view_join:cookie()) -> #state{}.
begun(Options, Cookie) -> #state{options = Options, cookie = Cookie}.

%% @private
-spec came(Message, #state{}) -> {ok, #state{}} | {stop, term(), #state{}} when
    Message :: {flow, order()} | {timeout, reference(), {leave, node()}} | {flow, atoll_flow_shadow:agent(), {token, atoll_flow_shadow:token()} | {node(), term()}} | {'EXIT', pid(), term()}.
came({flow, Order}, State) ->
    {ok, kept(had(Order, done(Order, State)))};
came({timeout, Timer, {leave, Node}}, #state{known = Known} = State) ->
    case Known of
        #{Node := Timer} -> _ = leave(Node), {ok, State#state{known = maps:remove(Node, Known)}};
        %% It is owned again.
        #{} -> {ok, State}
    end;
came({flow, Agent, {token, Token}}, #state{agents = Agents} = State) ->
    case Agents of
        #{Agent := {Pid, _}} -> {ok, State#state{agents = Agents#{Agent := {Pid, Token}}}};
        #{} -> {ok, State}
    end;
came({flow, Agent, {Node, {look, Turn, Look}}}, #state{looks = Looks} = State) ->
    {ok, State#state{looks = Looks#{Node => {Agent, Turn, Look}}}};
came({flow, Agent, {Node, {not_seen, Why}}}, State) ->
    {ok, happened({not_seen, Agent, Node, Why}, State)};
came({flow, Agent, {Node, What}}, State) ->
    {ok, happened({What, Agent, Node}, State)};
came({'EXIT', Pid, Reason}, #state{agents = Agents} = State) ->
    case [Agent || {Agent, {Its, _}} <- maps:to_list(Agents), Its =:= Pid] of
        [Agent] -> {ok, happened({agent_lost, Agent}, State#state{agents = maps:remove(Agent, Agents)})};
        [] when Reason =:= normal; Reason =:= shutdown -> {ok, State};
        [] -> {stop, Reason, State}
    end.

%% @private
-spec has_news(#state{}) -> boolean().
has_news(#state{looks = Looks, events = Events}) -> map_size(Looks) > 0 orelse Events =/= [].

%% @private
-spec report(#state{}) -> {report(), #state{}}.
report(#state{looks = Looks, events = Events, agents = Agents, omitted = Omitted} = State) ->
    {
        #{
            looks => [{Agent, Node, Turn, Look} || {Node, {Agent, Turn, Look}} <- maps:to_list(Looks)],
            events => lists:reverse(Events),
            agents => [{Agent, Token} || {Agent, {_, Token}} <- maps:to_list(Agents)],
            omitted => Omitted
        },
        State#state{looks = #{}, events = []}
    }.

%% @private
-spec gathers() -> pos_integer().
gathers() -> ?GATHER_MS.

%% @private
-spec ended(#state{}) -> ok.
ended(#state{agents = Agents, known = Known}) ->
    ok = all_end([begin true = exit(Pid, shutdown), Pid end || {Pid, _} <- maps:values(Agents)]),
    %% All at once; who does not answer will see that it is gone.
    all_end([leave(Node) || Node <- maps:keys(Known)]).

all_end(Pids) ->
    Refs = [monitor(process, Pid) || Pid <- Pids],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

leave(Node) ->
    Self = self(),
    spawn_link(fun() -> atoll_view_put:ask(Node, atoll_flow_probe, {leave, Self}, ?LEAVE_MS) end).

%% Which nodes each agent is to have after an order.
had({What, Agent, _, Nodes}, #state{owned = Owned} = State) when What =:= start; What =:= configure ->
    State#state{owned = Owned#{Agent => [Node || {Node, _} <- Nodes]}};
had({stop, Agent}, #state{owned = Owned} = State) ->
    State#state{owned = maps:remove(Agent, Owned)};
had({wants, _, _}, State) ->
    State;
had({What, Agent, _, Node}, #state{owned = Owned} = State) ->
    Others = maps:get(Agent, Owned, []) -- [Node],
    State#state{owned = Owned#{Agent => case What of untrace -> Others; _ -> [Node | Others] end}}.

kept(#state{owned = Owned, known = Known} = State) ->
    Here = maps:from_keys(lists:append(maps:values(Owned)), owned),
    Left = maps:map(fun
        (Node, owned) -> erlang:start_timer(?KEPT_MS, self(), {leave, Node});
        (_, Timer) -> Timer
    end, maps:without(maps:keys(Here), Known)),
    State#state{known = maps:merge(Left, Here)}.

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

happened(Event, #state{events = Events} = State) when length(Events) < ?MOST -> State#state{events = [Event | Events]};
happened(_, #state{omitted = Omitted} = State) -> State#state{omitted = Omitted + 1}.
