%% SPDX-License-Identifier: Apache-2.0
%% @doc An agent of the shadow network: asks the probes of the nodes that it owns, once in a period, and tells its place what
%% they say. Each node is asked by a process of its own, so one that hangs holds up no other. A node that is lost is looked for once a
%% second until it is back, and is then traced again. When an agent ends, in whatever way, so do these processes.
%%
%% What probes monitor is its place, not the agent: so a probe goes on counting when its node gets another owner, and nothing is lost.
-module(atoll_flow_agent).

-behaviour(gen_server).

-export([start_link/5, order/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, order/0, wants/0]).

-type options() :: #{
    %% Milliseconds.
    period := pos_integer(),
    %% The probe, as it is put into nodes.
    code := atoll_view_put:code(),
    version := term()
}.

%% Of a node, and of the others.
-type wants() :: #{node() | others => atoll_flow_probe:wants()}.

-type order() ::
    {configure, atoll_flow_shadow:token(), [atoll_flow_shadow:owned()]}
    | {trace | look_for | untrace, atoll_flow_shadow:change(), node()}
    %% From now on; each node is looked at at once, and the looks have this number.
    | {wants, Turn :: non_neg_integer(), wants()}.

-record(state, {
    agent :: atoll_flow_shadow:agent(),
    place :: pid(),
    options :: options(),
    token = 0 :: atoll_flow_shadow:token() | 0,
    turn :: non_neg_integer(),
    wants :: wants(),
    eyes = #{} :: #{node() => pid()}
}).

-define(PROBE, atoll_flow_probe).
-define(ANSWER_MS, 5000).
-define(AGAIN_MS, 1000).
%% The one before it may be going.
-define(TRIES, 5).

%% @doc Starts it; it owns nothing yet. To its place it sends `{flow, Agent, Told}'.
-spec start_link(atoll_flow_shadow:agent(), Place :: pid(), atoll_view_join:cookie(), {Turn :: non_neg_integer(), wants()}, options()) -> {ok, pid()}.
start_link(Agent, Place, Cookie, Wants, Options) ->
    {ok, _} = gen_server:start_link(?MODULE, {Agent, Place, Cookie, Wants, Options}, []).

%% @doc Has it do something.
-spec order(pid(), order()) -> ok.
order(Pid, Order) -> gen_server:cast(Pid, Order).

%% @private
-spec init({atoll_flow_shadow:agent(), pid(), atoll_view_join:cookie(), {non_neg_integer(), wants()}, options()}) -> {ok, #state{}}.
init({Agent, Place, Cookie, {Turn, Wants}, Options}) ->
    _ = process_flag(trap_exit, true),
    _ = put(cookie, Cookie),
    {ok, #state{agent = Agent, place = Place, options = Options, turn = Turn, wants = Wants}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(order(), #state{}) -> {noreply, #state{}}.
handle_cast({configure, Token, Owned}, #state{eyes = Eyes} = State) ->
    Gone = maps:keys(Eyes) -- [Node || {Node, _} <- Owned],
    {noreply, had(Token, lists:foldl(fun({Node, Is}, Acc) -> seen(Node, Is, Acc) end, lists:foldl(fun unseen/2, State, Gone), Owned))};
handle_cast({untrace, {Before, Token}, Node}, #state{token = Before} = State) -> {noreply, had(Token, unseen(Node, State))};
handle_cast({trace, {Before, Token}, Node}, #state{token = Before} = State) -> {noreply, had(Token, seen(Node, up, State))};
handle_cast({look_for, {Before, Token}, Node}, #state{token = Before} = State) -> {noreply, had(Token, seen(Node, down, State))};
%% It has missed something, and gets its configuration.
handle_cast({What, {_, _}, _}, State) when What =:= untrace; What =:= trace; What =:= look_for -> {noreply, State};
handle_cast({wants, Turn, Wants}, #state{eyes = Eyes} = State) ->
    lists:foreach(fun({Node, Eye}) -> Eye ! {wants, Turn, of_node(Node, Wants)} end, maps:to_list(Eyes)),
    {noreply, State#state{turn = Turn, wants = Wants}}.

%% @private
-spec handle_info({'EXIT', pid(), term()}, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'EXIT', Pid, Reason}, #state{eyes = Eyes} = State) ->
    case {lists:keyfind(Pid, 2, maps:to_list(Eyes)), Reason} of
        %% It was not told to end.
        {{_, Pid}, _} -> {stop, Reason, State};
        {false, normal} -> {noreply, State};
        {false, _} -> {stop, Reason, State}
    end.

had(Token, #state{agent = Agent, place = Place} = State) ->
    Place ! {flow, Agent, {token, Token}},
    State#state{token = Token}.

unseen(Node, #state{eyes = Eyes} = State) ->
    case maps:take(Node, Eyes) of
        {Eye, Others} -> true = unlink(Eye), true = exit(Eye, kill), State#state{eyes = Others};
        error -> State
    end.

%% The process of a node finds out by itself whether that is lost.
seen(Node, _, #state{eyes = Eyes} = State) when is_map_key(Node, Eyes) -> State;
seen(Node, Is, #state{agent = Agent, place = Place, eyes = Eyes, turn = Turn, wants = Wants, options = Options} = State) ->
    ok = atoll_view_join:let_in([Node], get(cookie)),
    Begun = Options#{node => Node, place => Place, tell => fun(Told) -> Place ! {flow, Agent, {Node, Told}} end, is => Is, turn => Turn, wants => of_node(Node, Wants)},
    State#state{eyes = Eyes#{Node => spawn_link(fun() -> looking(Begun) end)}}.

of_node(Node, #{others := Others} = Wants) -> maps:get(Node, Wants, Others).

looking(#{is := Was, period := Period, turn := Turn, tell := Tell} = Eye) ->
    Begun = erlang:monotonic_time(millisecond),
    {Is, Next} = case looked(?TRIES, Eye) of
        {ok, Look} ->
            _ = [Tell(node_up) || Was =/= up],
            _ = Tell({look, Turn, Look}),
            {up, Begun + Period};
        noconnection ->
            _ = [Tell(node_down) || Was =/= down],
            {down, Begun + ?AGAIN_MS};
        %% It may hang, or have the probe of another version.
        Not ->
            _ = Tell({not_seen, Not}),
            {Was, Begun + ?AGAIN_MS}
    end,
    waiting(Next, Eye#{is := Is}).

waiting(Next, Eye) ->
    receive
        {wants, Turn, Wants} -> waiting(erlang:monotonic_time(millisecond), Eye#{turn := Turn, wants := Wants})
    after max(0, Next - erlang:monotonic_time(millisecond)) -> looking(Eye)
    end.

looked(0, _) ->
    refused;
looked(Tries, #{node := Node, place := Place, code := Code, version := Version, wants := Wants} = Eye) ->
    case atoll_view_put:ask(Node, ?PROBE, {look, Place, Version, Wants}, ?ANSWER_MS) of
        {ok, {ok, Look}} -> {ok, Look};
        {ok, {error, other_version}} -> other_version;
        gone ->
            case atoll_view_put:put(Node, Code, ?PROBE, Place, ?ANSWER_MS) of
                ok -> looked(Tries - 1, Eye);
                {error, {not_loaded, _}} -> refused;
                {error, Not} -> Not
            end;
        Not -> Not
    end.
