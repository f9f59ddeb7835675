%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a node's part of the ring as it should be: says who is well, makes the plan where this node is the claimant, and has partitions handed over that
%% are another node's, as the owner's to the next one, or as hints.
%%
%% A node that is lost is not well at once, and is tried to be reached again, as long as the overlay takes it for a member; a connection that was only closed comes back by that.
%% A node on which no ring runs is not well either, though it be a member of the overlay: its master of partitions is watched, and asked for until it is there again.
%%
%% A node that begins knows nobody at first, and would take all others for lost: it takes requests when it knows enough of them, or when `alone_ms' are over.
-module(ring_manager).
-behaviour(gen_server).

-export([start_link/1, look/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

%% A handoff's process ends by exit, with what it has come to.
-dialyzer({nowarn_function, handed/1}).

-define(LOOK_MS, 5000).

-record(state, {
    options :: ring_options:options(),
    %% Whether it has waited long enough for others.
    alone = false :: boolean(),
    %% Connections that are lost, and have not come back.
    lost = [] :: [node()],
    %% The masters that are watched, by their monitors, and nodes that have none.
    masters = #{} :: #{reference() => node()},
    without = [] :: [node()],
    %% What is being handed over, by the monitor of who does it.
    handoffs = #{} :: #{reference() => {module(), ring_hash:partition(), next | owner, node()}},
    %% What was handed to its next owner, and passes all on until the rest of its partition is there, too.
    passing = #{} :: #{{module(), ring_hash:partition()} => node()}
}).

%% @doc Starts it under its name.
-spec start_link(ring_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc What is being handed over: of which partition, as what, to whom.
-spec look() -> [{module(), ring_hash:partition(), next | owner, node()}].
look() -> gen_server:call(?MODULE, look).

%% @private
-spec init(ring_options:options()) -> {ok, #state{}, {continue, begin_all}}.
init(Options) -> {ok, #state{options = Options}, {continue, begin_all}}.

%% @private
-spec handle_continue(begin_all, #state{}) -> {noreply, #state{}}.
handle_continue(begin_all, #state{options = #{alone_ms := Ms} = Options} = S) ->
    _ = erlang:send_after(Ms, self(), alone),
    ok = net_kernel:monitor_nodes(true),
    ok = atoll:subscribe([member_up, member_down]),
    ok = ring_gossip:subscribe(),
    ok = ring_master:restore(ring_kvs_vnode:kept(Options)),
    {noreply, tick(S)}.

%% @private
-spec handle_call(look, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(look, _, #state{handoffs = Handoffs} = S) -> {reply, maps:values(Handoffs), S}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(tick, S) -> {noreply, tick(S)};
handle_info(alone, S) -> {noreply, who_is_well(S#state{alone = true})};
handle_info({nodedown, Node}, #state{lost = Lost} = S) ->
    ok = tried([Node]),
    {noreply, who_is_well(S#state{lost = lists:usort([Node | Lost])})};
handle_info({nodeup, Node}, #state{lost = Lost} = S) -> {noreply, who_is_well(S#state{lost = Lost -- [Node]})};
handle_info({atoll, member_up, #{node := Node}}, #state{lost = Lost} = S) -> {noreply, who_is_well(S#state{lost = Lost -- [Node]})};
handle_info({atoll, member_down, _}, S) -> {noreply, who_is_well(S)};
handle_info({atoll, ring_gossip, {new, _, _}}, S) ->
    {noreply, who_is_well(S)};
handle_info({'DOWN', Ref, process, _, Why}, #state{handoffs = Handoffs} = S) when is_map_key(Ref, Handoffs) ->
    {Handoff, Rest} = maps:take(Ref, Handoffs),
    Next = ended(Handoff, Why, S#state{handoffs = Rest}),
    %% One that has failed is begun again with a tick.
    {noreply, case Why of {handed, _} -> handed(Next); _ -> Next end};
handle_info({'DOWN', Ref, process, _, Why}, #state{masters = Masters, without = Without} = S) when is_map_key(Ref, Masters) ->
    {Node, Rest} = maps:take(Ref, Masters),
    None = case Why of noconnection -> Without; _ -> lists:usort([Node | Without]) end,
    {noreply, who_is_well(S#state{masters = Rest, without = None})};
handle_info({has_master, Node}, #state{without = Without} = S) -> {noreply, who_is_well(S#state{without = Without -- [Node]})}.

tick(#state{options = #{tick_ms := Ms}, lost = Lost, without = Without} = S) ->
    _ = erlang:send_after(Ms, self(), tick),
    Members = atoll:members(),
    ok = tried([Node || Node <- Lost, lists:member(Node, Members)]),
    ok = looked_for([Node || Node <- Without, lists:member(Node, Members)]),
    {ok, Ring} = ring_view:ring(),
    ok = ring_gossip:put(ring_state:plan(node(), ring_view:up(), Ring)),
    ok = ring_gossip:put([Piece || ring_master:vnodes() =:= [], Piece <- ring_state:out(node(), Ring)]),
    handed(who_is_well(S)).

%% To connect may take long, and is no work of this process.
tried(Nodes) ->
    _ = [spawn(fun() -> net_kernel:connect_node(Node) end) || Node <- Nodes],
    ok.

%% What answers is there.
looked_for(Nodes) ->
    Self = self(),
    _ = [
        spawn(fun() ->
            case rpc:call(Node, erlang, whereis, [ring_master], ?LOOK_MS) of
                Pid when is_pid(Pid) -> Self ! {has_master, Node};
                _ -> none
            end
        end)
     || Node <- Nodes
    ],
    ok.

who_is_well(S0) ->
    {ok, Ring} = ring_view:ring(),
    Members = [Node || {Node, _} <- ring_state:members(Ring)],
    Known = lists:delete(node(), Members),
    #state{lost = Lost, without = Without, alone = Alone, options = #{copies := Copies}} = S = watching(Known, S0),
    Up = lists:usort([node() | [Node || Node <- atoll:members() -- (Lost ++ Without), lists:member(Node, Known)]]),
    ok = ring_view:set_up(Up, Alone orelse length(Up) >= min(Copies, length(Members))),
    S.

%% Where there is a connection a monitor takes no time.
watching(Known, #state{masters = Masters, without = Without} = S) ->
    New = [Node || Node <- nodes(), lists:member(Node, Known), not lists:member(Node, Without), not lists:member(Node, maps:values(Masters))],
    S#state{masters = maps:merge(Masters, maps:from_list([{monitor(process, {ring_master, Node}), Node} || Node <- New]))}.

%% Begins as many handoffs as there may be. A partition that has never run here has arrived with that.
handed(S0) ->
    {ok, Ring} = ring_view:ring(),
    #state{options = #{handoffs := Most}, handoffs = Handoffs, passing = Passing} = S = turned(Ring, S0),
    Running = ring_master:vnodes(),
    ok = nothing_to_hand(Ring, [P || {{_, P}, _} <- Running], S),
    Busy = [{Module, P} || {Module, P, _, _} <- maps:values(Handoffs)] ++ maps:keys(Passing),
    Due = [
        {Module, P, As, To, Pid}
     || {{Module, P} = Id, Pid} <- lists:sort(Running),
        not lists:member(Id, Busy),
        {As, To} <- [ring_state:target(P, node(), Ring)],
        ring_view:is_up(To)
    ],
    Begun = [
        begin
            {_, Ref} = spawn_monitor(fun() -> ring_handoff:run(Pid, Module, P, To) end),
            {Ref, {Module, P, As, To}}
        end
     || {Module, P, As, To, Pid} <- lists:sublist(Due, max(0, Most - map_size(Handoffs)))
    ],
    S#state{handoffs = maps:merge(Handoffs, maps:from_list(Begun))}.

%% Another plan has come meanwhile: what was handed over is with that node, and comes back, or goes on, from there.
turned(Ring, #state{passing = Passing} = S) ->
    Turned = [Id || {{_, P} = Id, To} <- maps:to_list(Passing), ring_state:target(P, node(), Ring) =/= {next, To}],
    _ = [ok = ring_master:drop(Module, P) || {Module, P} <- Turned],
    S#state{passing = maps:without(Turned, Passing)}.

%% Of what does not run there may be something on the disk: its process has crashed.
nothing_to_hand(Ring, Running, #state{options = Options}) ->
    case [P || P <- maps:keys(ring_state:pending(Ring)), ring_state:owner(P, Ring) =:= node(), not lists:member(P, Running)] of
        [] -> ok;
        Stopped ->
            Kept = [Id || {_, P} = Id <- ring_kvs_vnode:kept(Options), lists:member(P, Stopped)],
            ok = ring_master:restore(Kept),
            Arrived = lists:sort(Stopped -- [P || {_, P} <- Kept]),
            ring_gossip:put([ring_state:arrived(Arrived, Ring) || Arrived =/= []])
    end.

%% All that runs of a partition has to be there before it counts as arrived.
ended({Module, P, As, To}, {handed, Items}, #state{passing = Passing} = S) ->
    ok = ring_view:count(handed, Items),
    case As of
        owner ->
            ok = ring_master:drop(Module, P),
            S;
        next ->
            Now = Passing#{{Module, P} => To},
            case [Id || {{_, Q} = Id, _} <- ring_master:vnodes(), Q =:= P, not is_map_key(Id, Now)] of
                [] ->
                    {ok, Ring} = ring_view:ring(),
                    %% Then they are dropped with the next look.
                    ok = ring_gossip:put([ring_state:arrived([P], Ring) || ring_state:target(P, node(), Ring) =:= {next, To}]);
                _ -> ok
            end,
            S#state{passing = Now}
    end;
%% It has gone to somebody else, from where it comes back or goes on.
ended({Module, P, _, _}, {shutdown, turned}, S) ->
    ok = ring_master:drop(Module, P),
    S;
ended(_, _, S) ->
    S.
