%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Tells the carrier which kind of connection is wanted with the nodes of a group:
%% the key `carrier_kinds' of the configuration.
%%
%% It is told before the group room asks for a connection, and while a group is being
%% made or gets nodes, so that a connection that is made for the group's sake is of the
%% group's kind. A node in several groups gets what {@link atoll_dist_kind} makes of their
%% kinds: what is asked for outright beats what is left open, lanes beat direct, and of
%% two numbers of lanes the larger is taken. What the carrier's own configuration says of
%% a single peer (`peers') stands above it.
%%
%% A connection that is up keeps its kind until it is made anew. Without the carrier
%% nothing comes of it.
%%
%% The process runs where a kind is configured. It starts before the group room, which is
%% started anew after it and says its groups again.
-module(atoll_group_kinds).

-behaviour(gen_server).

-export([start_link/1, groups/1, during/3, wanted/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([kinds/0]).

-type kinds() :: #{Group :: atom() => atoll_dist_kind:asked()}.

-type nodes_of() :: [{Group :: atom(), [node()]}].

-record(state, {
    kinds :: kinds(),
    %% This node's groups.
    groups = [] :: nodes_of(),
    %% What is being done to groups, by the monitor on who does it.
    coming = #{} :: #{reference() => {Group :: atom(), [node()]}},
    %% What the carrier was told last.
    told = #{} :: #{node() => atoll_dist_kind:asked()}
}).

%% @doc Starts the process.
-spec start_link(kinds()) -> gen_server:start_ret().
start_link(Kinds) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Kinds, []).

%% @doc From now on these are this node's groups; returns when the carrier knows. Should the
%% process end meanwhile, the caller's supervisor starts both anew.
-spec groups(nodes_of()) -> ok.
groups(Groups) ->
    %% The process waits for nobody, so that a busy node makes this slow and nothing else.
    try
        gen_server:call(?MODULE, {groups, Groups}, infinity)
    catch
        exit:{_EndedOrNotThere, {gen_server, call, _}} -> ok
    end.

%% @doc Applies a function that is about to make a group, or to add nodes to it. While it
%% runs the nodes count as in the group.
-spec during(atom(), [node()], fun(() -> Result)) -> Result.
during(Group, Nodes, Fun) ->
    case whereis(?MODULE) of
        undefined ->
            Fun();
        Pid ->
            Ref = gen_server:call(Pid, {coming, Group, Nodes, self()}, infinity),
            try
                Fun()
            after
                gen_server:cast(Pid, {over, Ref})
            end
    end.

%% @doc What is wanted of which other node, by these kinds and groups.
-spec wanted(kinds(), nodes_of(), Self :: node()) -> #{node() => atoll_dist_kind:asked()}.
wanted(Kinds, Groups, Self) ->
    lists:foldl(
        fun({Node, Kind}, Wanted) ->
            case Wanted of
                #{Node := Other} -> Wanted#{Node := atoll_dist_kind:of_two(Other, Kind)};
                #{} -> Wanted#{Node => Kind}
            end
        end,
        #{},
        [{Node, Kind} || {Group, Nodes} <- Groups, #{Group := Kind} <- [Kinds], Node <- Nodes, Node =/= Self]
    ).

%% @private
-spec init(kinds()) -> {ok, #state{}}.
init(Kinds) ->
    %% What it has told ends with it.
    _ = process_flag(trap_exit, true),
    %% What one before it has told may still stand.
    ok = atoll_dist:prefer(#{}),
    {ok, #state{kinds = Kinds}}.

%% @private
-spec handle_call({groups, nodes_of()} | {coming, atom(), [node()], pid()}, gen_server:from(), #state{}) ->
    {reply, ok | reference(), #state{}}.
handle_call({groups, Groups}, _From, State) ->
    {reply, ok, tell(State#state{groups = Groups})};
handle_call({coming, Group, Nodes, Pid}, _From, #state{coming = Coming} = State) ->
    Ref = erlang:monitor(process, Pid),
    {reply, Ref, tell(State#state{coming = Coming#{Ref => {Group, Nodes}}})}.

%% @private
-spec handle_cast({over, reference()}, #state{}) -> {noreply, #state{}}.
handle_cast({over, Ref}, State) ->
    true = erlang:demonitor(Ref, [flush]),
    {noreply, over(Ref, State)}.

%% @private
-spec handle_info({'DOWN', reference(), process, pid(), term()}, #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Ref, process, _Pid, _Reason}, State) ->
    {noreply, over(Ref, State)}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, State) ->
    _ = tell(State#state{groups = [], coming = #{}}),
    ok.

over(Ref, #state{coming = Coming} = State) ->
    tell(State#state{coming = maps:remove(Ref, Coming)}).

tell(#state{kinds = Kinds, groups = Groups, coming = Coming, told = Told} = State) ->
    case wanted(Kinds, Groups ++ maps:values(Coming), node()) of
        Told ->
            State;
        Wanted ->
            ok = atoll_dist:prefer(Wanted),
            State#state{told = Wanted}
    end.
