%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes down on a node under test what its overlay says, for whoever judges it
%% ({@link atoll_chaos_sights}): its neighbours, whom it holds for dead, and the
%% broadcasts of this tool that reach it, each with the time. And says what readers find
%% there now.
%%
%% It begins with the neighbours that there are. It holds at most 100,000 records
%% between two looks; more are counted and not kept. It ends with its owner. The node
%% must run the application `atoll'; else the module stands alone, as
%% {@link atoll_chaos_agent} does.
-module(atoll_chaos_witness).

-behaviour(gen_server).

-export([ensure/1, take/0, stop/0, broadcast/1, view/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([note/0, said/0]).

-type note() :: {Us :: integer(), said()}.
%% The system's time.

-type said() ::
    {neighbour_up, node()}
    | {member_up, node()}
    | {dead, node()}
    | reborn
    | {broadcast, From :: node(), Id :: non_neg_integer()}.

-record(state, {
    %% Newest first.
    records = [] :: [note()],
    count = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-define(MAX, 100000).

%% @doc Starts it, unless it runs.
-spec ensure(Owner :: pid() | none) -> ok.
ensure(Owner) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, Owner, []) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok
    end.

%% @doc What it has written down since it was last asked, in order, and how many
%% records of that time it has not kept.
-spec take() -> {[note()], Dropped :: non_neg_integer()}.
take() ->
    gen_server:call(?MODULE, take).

%% @doc Ends it, if it runs.
-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.

%% @doc This node broadcasts that number; witnesses know it by that.
-spec broadcast(non_neg_integer()) -> {ok, Us :: integer()} | {error, term()}.
broadcast(Id) ->
    Us = os:system_time(microsecond),
    case atoll:broadcast(?MODULE, Id) of
        ok -> {ok, Us};
        {error, _} = Error -> Error
    end.

%% @doc What readers find on this node, with an overlay or without.
-spec view() -> atoll_sim_node:view().
view() ->
    #{
        neighbours => atoll:neighbours(),
        members =>
            case atoll:status() of
                #{overlay := #{roster := _}} -> atoll:members();
                #{} -> off
            end,
        groups => s_group:own_s_groups(),
        names => [{Group, Name, node(Pid)} || {Group, Name} <- atoll_name:names(), Pid <- [atoll_name:whereis(Group, Name)], is_pid(Pid)],
        reachable =>
            case atoll:reachable() of
                {ok, Nodes} -> Nodes;
                {error, _} -> off
            end
    }.

%% @private
-spec init(pid() | none) -> {ok, #state{}}.
init(Owner) ->
    %% Not that of whoever asked for it: it may be on another node.
    true = group_leader(whereis(init), self()),
    _ = [monitor(process, Owner) || is_pid(Owner)],
    ok = atoll:subscribe([neighbour_up, member_up, member_down, reborn, {broadcast, ?MODULE}]),
    {ok, lists:foldl(fun(Node, State) -> said({neighbour_up, Node}, State) end, #state{}, atoll:neighbours())}.

%% @private
-spec handle_call(take, gen_server:from(), #state{}) -> {reply, {[note()], non_neg_integer()}, #state{}}.
handle_call(take, _From, #state{records = Records, dropped = Dropped} = State) ->
    {reply, {lists:reverse(Records), Dropped}, State#state{records = [], count = 0, dropped = 0}}.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, normal, #state{}} when
    Message :: {atoll, atom(), map()} | {'DOWN', reference(), process, pid(), term()}.
handle_info({atoll, neighbour_up, #{node := Node}}, State) ->
    {noreply, said({neighbour_up, Node}, State)};
handle_info({atoll, member_up, #{node := Node}}, State) ->
    {noreply, said({member_up, Node}, State)};
handle_info({atoll, member_down, #{node := Node, reason := dead}}, State) ->
    {noreply, said({dead, Node}, State)};
handle_info({atoll, member_down, #{}}, State) ->
    {noreply, State};
handle_info({atoll, reborn, #{}}, State) ->
    {noreply, said(reborn, State)};
handle_info({atoll, broadcast, #{from := From, payload := Id}}, State) ->
    {noreply, said({broadcast, From, Id}, State)};
handle_info({'DOWN', _, process, _, _}, State) ->
    {stop, normal, State}.

said(_Said, #state{count = ?MAX, dropped = Dropped} = State) ->
    State#state{dropped = Dropped + 1};
said(Said, #state{records = Records, count = Count} = State) ->
    State#state{records = [{os:system_time(microsecond), Said} | Records], count = Count + 1}.
