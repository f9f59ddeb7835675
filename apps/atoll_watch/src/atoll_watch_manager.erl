%% SPDX-License-Identifier: Apache-2.0
%% @doc A manager: holds the connections with its nodes, asks their agents, and says what has changed. It is a reporter
%% ({@link atoll_view_reporter}), in the VM of the watch or in one of its own, and its reports are {@link atoll_watch_report:report()}s.
%%
%% Its orders are `{give, ...}' and `{take, Node}'. Whom it asks when, {@link atoll_watch_turns} decides, which keeps a look at each
%% node. Each node is asked by a process of its own, so one that hangs holds up no other; they go when it goes, and so do the
%% agents.
-module(atoll_watch_manager).

-behaviour(atoll_view_reporter).

-export([begun/2, came/2, has_news/1, report/1, gathers/0, ended/1]).

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
    asking = #{} :: #{pid() => node()}
}).

%% Who asks a node ends with exit/1 by design.
-dialyzer({nowarn_function, done/2}).

%% A node that was up and is not is asked so often.
-define(AGAIN_MS, 1000).
-define(GATHER_MS, 100).

%% @private
-spec begun(options(), atoll_view_join:cookie()) -> #state{}.
begun(#{period := Period, answer := Answer, at_once := AtOnce}, Cookie) ->
    {ok, _} = timer:send_interval(Period, tick),
    _ = [{ok, _} = timer:send_interval(?AGAIN_MS, again) || Period > ?AGAIN_MS],
    #state{cookie = Cookie, turns = atoll_watch_turns:new(AtOnce), answer = Answer}.

%% @private
-spec came(tick | again | {give, [given()]} | {take, node()} | {'EXIT', pid(), term()}, #state{}) -> {ok, #state{}} | {stop, term(), #state{}}.
came(Turn, State) when Turn =:= tick; Turn =:= again ->
    {ok, stepped(Turn, State)};
came({give, Given}, #state{cookie = Cookie} = State) ->
    ok = atoll_view_join:let_in([Node || {Node, _, _} <- Given], Cookie),
    {ok, lists:foldl(fun({Node, Lease, Before}, Acc) -> stepped({give, Node, Lease, Before}, Acc) end, State, Given)};
came({take, Node}, State) ->
    {ok, stepped({take, Node}, State)};
came({'EXIT', Pid, Reason}, #state{asking = Asking} = State) ->
    case maps:take(Pid, Asking) of
        {Node, Others} -> {ok, stepped(outcome(Node, Reason), State#state{asking = Others})};
        error -> {stop, Reason, State}
    end.

%% @private
-spec has_news(#state{}) -> boolean().
has_news(#state{turns = Turns}) -> atoll_watch_turns:has_news(Turns).

%% @private
-spec report(#state{}) -> {atoll_watch_report:report(), #state{}}.
report(#state{turns = Turns0} = State) ->
    {Report, Turns} = atoll_watch_turns:report(Turns0),
    {Report#{os_pid => os:getpid(), memory => erlang:memory(total)}, State#state{turns = Turns}}.

%% @private
-spec gathers() -> pos_integer().
gathers() -> ?GATHER_MS.

%% @private What it has started is linked with it.
-spec ended(#state{}) -> ok.
ended(_) -> ok.

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
