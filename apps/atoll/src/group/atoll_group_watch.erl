%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Tells who asked (`s_group:monitor_nodes/1') which nodes of this node's own
%% groups come and go; on a free node, which visible nodes do.
%%
%% A node is here when it is connected and in one of this node's groups, and a watcher
%% hears `{nodeup, Node}' when a node gets to be here and `{nodedown, Node}' when it is
%% no more: the connection is lost, or they have no group in common any more. The two
%% alternate for each node. Who asked several times hears each as many times.
%%
%% Watchers are monitored and not linked, and their table is the supervisor's: neither
%% end takes the other down, and a watcher misses no change while this process is
%% started anew, but may hear of two that cancelled each other neither.
-module(atoll_group_watch).

-behaviour(gen_server).

-export([create_table/0, start_link/0, watch/0, unwatch/0, watchers/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Rows `{Pid, Times}', and one with the nodes that watchers were told of.
-define(HERE, here).

-record(state, {
    %% Connected nodes.
    up :: #{node() => visible | hidden},
    %% Watcher => the monitor on it.
    monitors :: #{pid() => reference()}
}).

%% @doc Makes the table; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Starts the process.
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The caller hears each event once more than before.
-spec watch() -> ok.
watch() ->
    gen_server:call(?MODULE, {watch, self()}).

%% @doc The caller hears nothing any more.
-spec unwatch() -> ok.
unwatch() ->
    gen_server:call(?MODULE, {unwatch, self()}).

%% @doc Who watches, each as often as it asked; sorted.
-spec watchers() -> [pid()].
watchers() ->
    lists:append([lists:duplicate(N, Pid) || {Pid, N} <- lists:sort(ets:tab2list(?MODULE)), is_pid(Pid)]).

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    ok = atoll_interpreter:subscribe(atoll_group),
    Up = maps:from_list([{N, Type} || Type <- [visible, hidden], N <- nodes(Type)]),
    Monitors = maps:from_list([
        {Pid, erlang:monitor(process, Pid)}
     || {Pid, _} <- ets:tab2list(?MODULE), is_pid(Pid)
    ]),
    {ok, tell(#state{up = Up, monitors = Monitors})}.

%% @private
-spec handle_call({watch | unwatch, pid()}, gen_server:from(), #state{}) -> {reply, ok, #state{}}.
handle_call({watch, Pid}, _From, #state{monitors = Monitors} = State) ->
    _ = ets:update_counter(?MODULE, Pid, 1, {Pid, 0}),
    case Monitors of
        #{Pid := _} -> {reply, ok, State};
        #{} -> {reply, ok, State#state{monitors = Monitors#{Pid => erlang:monitor(process, Pid)}}}
    end;
handle_call({unwatch, Pid}, _From, #state{monitors = Monitors} = State) ->
    _ = [erlang:demonitor(Ref, [flush]) || #{Pid := Ref} <- [Monitors]],
    {reply, ok, forget(Pid, State)}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _State) ->
    error({unexpected, Message}).

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} when
    Message ::
        {nodeup | nodedown, node(), [term()]}
        | {atoll, atoll_group, term()}
        | {'DOWN', reference(), process, pid(), term()}.
handle_info({nodeup, Node, Info}, #state{up = Up} = State) ->
    {noreply, tell(State#state{up = Up#{Node => proplists:get_value(node_type, Info)}})};
handle_info({nodedown, Node, _Info}, #state{up = Up} = State) ->
    {noreply, tell(State#state{up = maps:remove(Node, Up)})};
handle_info({atoll, atoll_group, _Notice}, State) ->
    {noreply, tell(State)};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, State) ->
    {noreply, forget(Pid, State)}.

forget(Pid, #state{monitors = Monitors} = State) ->
    true = ets:delete(?MODULE, Pid),
    State#state{monitors = maps:remove(Pid, Monitors)}.

tell(#state{up = Up} = State) ->
    Before =
        case ets:lookup(?MODULE, ?HERE) of
            [{_, Told}] -> Told;
            [] -> []
        end,
    Now = here(Up, atoll_group:own()),
    Events = [{nodedown, Node} || Node <- Before -- Now] ++ [{nodeup, Node} || Node <- Now -- Before],
    Watchers = watchers(),
    _ = [Pid ! Event || Event <- Events, Pid <- Watchers],
    true = ets:insert(?MODULE, {?HERE, Now}),
    State.

here(Up, []) ->
    lists:sort([Node || {Node, visible} <- maps:to_list(Up)]);
here(Up, Groups) ->
    lists:usort([Node || {_, _, Nodes} <- Groups, Node <- Nodes, is_map_key(Node, Up)]).
