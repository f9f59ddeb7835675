%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a cluster: it owns the run directory and the watchdog,
%% starts the nodes, and knows which of them are up.
%%
%% It never waits for a node. Its phases are starting, up and stopping, and
%% stopping is entered once and never left: by a request, by the end of the
%% owner, or by a start that failed. There is one way down, the watchdog's; the
%% server ends when the watchdog has said that nothing is left and when every
%% process that was starting a node has seen so.
%%
%% If this process crashes, its port closes, and the watchdog takes the
%% cluster down all the same.
-module(atoll_cluster_server).
-behaviour(gen_server).
-compile({no_auto_import, [nodes/1]}).

-export([start/3, stop/1, nodes/1, info/1, probe/1, targets/1, target/2]).
-export([killing/2, await_down/2, restart/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([notice/0, info/0, node_info/0]).

-type notice() ::
    %% while starting: how many nodes are up
    {progress, non_neg_integer()}
    %% the end of starting
    | started
    | {start_failed, Reason :: term()}
    %% later
    | {node_down, node(), killed | down}
    | stopped.
%% What the owner is sent, as `{atoll_cluster, Server, Notice}'.

-type info() :: #{
    name := string(),
    %% the run directory
    dir := file:filename(),
    %% the operating system's numbers of the owning VM and of the watchdog
    owner_pid := pos_integer(),
    watchdog_pid := pos_integer() | undefined,
    nodes := [node_info()]
}.

-type node_info() :: #{
    node := node(),
    os_pid := pos_integer() | undefined,
    state := up | down | paused,
    %% the file it logs to
    log := file:filename()
}.

-type found() ::
    {ok, atoll_cluster_call:target()} | {error, {node_down | unknown_node, node()}}.

-type serve() :: fun((Server :: pid(), status | stop) -> Answer :: term()).

-record(node, {
    %% the atoll_cluster_node process; undefined when the node is down
    proc :: pid() | undefined,
    %% set once it has started, and kept when it is down again
    target :: atoll_cluster_call:target() | undefined,
    up = false :: boolean(),
    %% whether kill/2 was asked for, which the owner's notice says
    killed = false :: boolean(),
    %% callers of kill/2, who wait until it is down
    on_down = [] :: [gen_server:from()],
    %% the caller of restart/2, who waits until it is up
    on_up :: gen_server:from() | undefined
}).

-record(state, {
    owner :: pid(),
    config :: atoll_cluster_options:config(),
    %% answers what other VMs ask on the socket
    serve :: serve(),
    phase = starting :: starting | up | stopping,
    %% why the start failed, for the owner when all is down
    failure :: undefined | {failed, term()},
    rundir :: atoll_cluster_rundir:claimed() | undefined,
    watchdog :: atoll_cluster_watchdog:watchdog() | undefined,
    %% whether the watchdog has said that nothing is left
    done = false :: boolean(),
    place :: {place, atoll_cluster_driver:place()} | undefined,
    %% the nodes' names in order, of which kind and where each is, and what is known of it
    order = [] :: [node()],
    places = #{} :: #{node() => {atoll_cluster_options:kind(), atoll_cluster_driver:host()}},
    nodes = #{} :: #{node() => #node{}},
    %% those whose start has not begun
    queue = [] :: [node()],
    %% callers of stop
    on_stopped = [] :: [gen_server:from()]
}).

%% The watchdog needs some tenths of a second. When it takes longer than this
%% the server gives up waiting and crashes; the watchdog goes on.
-define(DOWN_MS, 20000).

%% @doc Starts the server, whose owner is Owner. What becomes of it the owner
%% learns by its notices. Serve answers what comes in on the socket.
-spec start(pid(), atoll_cluster_options:config(), serve()) -> {ok, pid()}.
start(Owner, Config, Serve) ->
    {ok, _} = gen_server:start(?MODULE, {Owner, Config, Serve}, []).

%% @doc Takes the cluster down; returns when it is, or if it was.
-spec stop(pid()) -> ok.
stop(Server) ->
    try
        gen_server:call(Server, stop, infinity)
    catch
        exit:{Reason, _} when Reason =:= noproc; Reason =:= normal -> ok
    end.

%% @doc The nodes in order.
-spec nodes(pid()) -> [node()].
nodes(Server) ->
    gen_server:call(Server, nodes, infinity).

%% @doc What the cluster is made of.
-spec info(pid()) -> info().
info(Server) ->
    gen_server:call(Server, info, infinity).

%% @doc What is asked of each node for the status.
-spec probe(pid()) -> atoll_cluster_call:mfa_() | none.
probe(Server) ->
    gen_server:call(Server, probe, infinity).

%% @doc What each node is called by, in order.
-spec targets(pid()) -> [{node(), found()}].
targets(Server) ->
    gen_server:call(Server, targets, infinity).

%% @doc What a node is called by.
-spec target(pid(), node()) -> found().
target(Server, Node) ->
    gen_server:call(Server, {target, Node}, infinity).

%% @doc As target/2, and says that the caller is about to kill the node.
-spec killing(pid(), node()) -> found().
killing(Server, Node) ->
    gen_server:call(Server, {killing, Node}, infinity).

%% @doc Returns when the node is not up.
-spec await_down(pid(), node()) -> ok.
await_down(Server, Node) ->
    gen_server:call(Server, {await_down, Node}, infinity).

%% @doc Starts a node that is down again.
-spec restart(pid(), node()) -> ok | {error, term()}.
restart(Server, Node) ->
    gen_server:call(Server, {restart, Node}, infinity).

-spec init({pid(), atoll_cluster_options:config(), serve()}) ->
    {ok, #state{}, {continue, start}}.
init({Owner, Config, Serve}) ->
    %% The processes linked to this one are the nodes'; and the owner, if it
    %% wants to be.
    _ = process_flag(trap_exit, true),
    _ = monitor(process, Owner),
    {ok, #state{owner = Owner, config = Config, serve = Serve}, {continue, start}}.

-spec handle_continue(start, #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_continue(start, State) ->
    case prepare(State) of
        {ok, NewState} -> {noreply, start_more(NewState)};
        {error, Reason, NewState} -> fail(Reason, NewState)
    end.

%% Requests: what the state says is answered at once; kill and restart are
%% answered when the node is down, or up.
-spec handle_call(Request, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}
when
    Request ::
        nodes
        | info
        | probe
        | stop
        | targets
        | {target, node()}
        | {killing, node()}
        | {await_down, node()}
        | {restart, node()}.
handle_call(nodes, _From, #state{order = Order} = State) ->
    {reply, Order, State};
handle_call(info, _From, State) ->
    {reply, describe(State), State};
handle_call(probe, _From, #state{config = #{probe := Probe}} = State) ->
    {reply, Probe, State};
handle_call(stop, From, #state{on_stopped = Froms} = State) ->
    {noreply, go_down(State#state{on_stopped = [From | Froms]})};
handle_call(targets, _From, #state{order = Order} = State) ->
    {reply, [{Node, find(Node, State)} || Node <- Order], State};
handle_call({target, Node}, _From, State) ->
    {reply, find(Node, State), State};
handle_call({killing, Node}, _From, State) ->
    case find(Node, State) of
        {ok, _} = Target ->
            Known = maps:get(Node, State#state.nodes),
            {reply, Target, put_node(Node, Known#node{killed = true}, State)};
        {error, _} = Error ->
            {reply, Error, State}
    end;
handle_call({await_down, Node}, From, State) ->
    case State#state.nodes of
        #{Node := #node{up = true, on_down = Froms} = Known} ->
            {noreply, put_node(Node, Known#node{on_down = [From | Froms]}, State)};
        _ ->
            {reply, ok, State}
    end;
handle_call({restart, Node}, From, #state{phase = up} = State) ->
    case State#state.nodes of
        #{Node := #node{proc = undefined} = Known} ->
            {noreply, start_node(Node, Known#node{on_up = From}, State)};
        #{Node := _} ->
            {reply, {error, {node_up, Node}}, State};
        _ ->
            {reply, {error, {unknown_node, Node}}, State}
    end;
handle_call({restart, _Node}, _From, State) ->
    {reply, {error, stopped}, State}.

-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}} when
    Message ::
        {node_started, pid(), atoll_cluster_call:target()}
        | {'EXIT', pid() | port(), term()}
        | {'DOWN', reference(), process | port, pid() | port(), term()}
        | {port(), {data, term()}}
        | down_timeout.
handle_info({node_started, Proc, #{node := Node} = Target}, State) ->
    #{Node := #node{proc = Proc, on_up = From} = Known} = State#state.nodes,
    _ = [gen_server:reply(From, ok) || From =/= undefined],
    Up = Known#node{target = Target, up = true, killed = false, on_up = undefined},
    {noreply, node_started(put_node(Node, Up, State))};
handle_info({'EXIT', Owner, _Reason}, #state{owner = Owner} = State) ->
    {noreply, go_down(State)};
handle_info({'EXIT', Port, _Reason}, State) when is_port(Port) ->
    %% the watchdog's end is told by its monitor
    {noreply, State};
handle_info({'EXIT', Proc, Reason}, State) ->
    case [{Node, Known} || {Node, #node{proc = P} = Known} <- maps:to_list(State#state.nodes), P =:= Proc] of
        [{Node, Known}] -> node_ended(Node, Known, Reason, State);
        [] -> {stop, {linked_process, Reason}, State}
    end;
handle_info({'DOWN', _, process, Owner, _Reason}, #state{owner = Owner} = State) ->
    {noreply, go_down(State)};
handle_info({'DOWN', Ref, port, _Port, Reason}, #state{watchdog = #{ref := Ref}} = State) ->
    %% Also the one that was lost: its work is taken over, not shared.
    ok = atoll_cluster_watchdog:ended(State#state.watchdog),
    watchdog_ended(Reason, State#state{watchdog = undefined});
handle_info({Port, {data, {eol, <<"done">>}}}, #state{watchdog = #{port := Port}} = State) ->
    {noreply, State#state{done = true}};
handle_info(down_timeout, State) ->
    {stop, down_timeout, State}.

%% Starting

prepare(#state{config = #{name := Name} = Config} = State) ->
    Token = lists:concat([os:getpid(), ".", erlang:unique_integer([positive])]),
    case atoll_cluster_watchdog:sweep(atoll_cluster_rundir:stale()) of
        ok ->
            case atoll_cluster_rundir:claim(Name, Token) of
                {ok, Rundir} ->
                    {Order, _} = lists:unzip(Placed = placed(Config)),
                    Nodes = maps:from_keys(Order, #node{}),
                    prepare_claimed(State#state{rundir = Rundir, order = Order, places = maps:from_list(Placed), nodes = Nodes});
                {error, Reason} ->
                    {error, Reason, State}
            end;
        {error, Reason} ->
            {error, Reason, State}
    end.

%% The nodes in order, each with its kind and its host.
placed(#{name := Name, nodes := All, kinds := Kinds, hosts := Given, driver := Driver}) ->
    Hosts = [lists:nth(1 + I rem length(Given), Given) || I <- lists:seq(0, All - 1)],
    {Placed, []} = lists:mapfoldl(
        fun(#{kind := Infix, count := Count} = Kind, Left) ->
            {Own, Rest} = lists:split(Count, Left),
            {[{Node, {Kind, Host}} || {Node, Host} <- lists:zip(Driver:nodes(Name ++ Infix, Own), Own)], Rest}
        end,
        Hosts,
        Kinds
    ),
    lists:append(Placed).

prepare_claimed(#state{rundir = #{dir := Dir}} = State) ->
    case atoll_cluster_watchdog:open(Dir) of
        {ok, Watchdog} ->
            prepare_watched(State#state{watchdog = Watchdog});
        {error, Reason} ->
            _ = file:del_dir_r(Dir),
            {error, Reason, State#state{rundir = undefined}}
    end.

prepare_watched(#state{config = Config, rundir = Rundir, order = Order, serve = Serve} = State) ->
    #{name := Name, driver := Driver} = Config,
    #{dir := Dir, pids := Pids} = Rundir,
    Self = self(),
    case atoll_cluster_control:listen(atoll_cluster_rundir:control(Dir), fun(R) -> Serve(Self, R) end) of
        ok ->
            ok = certificates(Dir, Config),
            case Driver:prepare(#{name => Name, nodes => Order, pids => Pids, dir => Dir}) of
                {ok, Place} -> {ok, State#state{place = {place, Place}, queue = Order}};
                {error, Reason} -> {error, Reason, State}
            end;
        {error, Reason} ->
            {error, Reason, State}
    end.

certificates(_Dir, #{tls := false}) ->
    ok;
certificates(Dir, #{tls := true, hosts := Hosts}) ->
    Addresses = [inet:ntoa(Address) || #{address := Address} <- Hosts],
    Identity = atoll_certificates:identity(#{hosts => lists:usort(Addresses)}),
    atoll_certificates:files(atoll_cluster_rundir:certificates(Dir), Identity, [Identity]).

start_more(#state{phase = starting, queue = [Node | Queue], config = #{parallel := Parallel}} = State) ->
    case length(booting(State)) < Parallel of
        true -> start_more(start_node(Node, #node{}, State#state{queue = Queue}));
        false -> State
    end;
start_more(State) ->
    State.

start_node(Node, Known, #state{config = Config, rundir = #{dir := Dir}, place = {place, Place}} = State) ->
    #{driver := Driver, boot_timeout := Timeout} = Config,
    {#{apps := Apps, args := Args, connect_all := All}, Host} = maps:get(Node, State#state.places),
    Spec = #{
        node => Node, host => Host, args => args(Args, State) ++ tls(Dir, Config),
        connect_all => All, boot_timeout => Timeout
    },
    Job = #{driver => Driver, place => Place, spec => Spec, apps => Apps,
        out => atoll_cluster_rundir:out(Dir, Node)},
    put_node(Node, Known#node{proc = atoll_cluster_node:start_link(Job)}, State).

tls(_Dir, #{tls := false}) -> [];
tls(Dir, #{tls := true}) -> atoll_certificates:arguments(atoll_cluster_rundir:certificates(Dir)).

args(Make, #state{order = Order}) when is_function(Make) -> Make(Order);
args(Args, _State) -> Args.

node_started(#state{phase = starting, queue = Queue, order = Order} = State) ->
    Booting = length(booting(State)),
    notify({progress, length(Order) - length(Queue) - Booting}, State),
    case {Queue, Booting} of
        {[], 0} ->
            notify(started, State),
            State#state{phase = up};
        _ ->
            start_more(State)
    end;
node_started(State) ->
    State.

booting(#state{nodes = Nodes}) ->
    [Node || {Node, #node{proc = Proc, up = false}} <- maps:to_list(Nodes), Proc =/= undefined].

%% A node's end

node_ended(Node, #node{up = Up, killed = Killed, on_down = OnDown, on_up = OnUp} = Known, Reason, State) ->
    _ = [gen_server:reply(From, ok) || From <- OnDown],
    Down = Known#node{proc = undefined, up = false, on_down = [], on_up = undefined},
    NewState = put_node(Node, Down, State),
    case NewState#state.phase of
        stopping ->
            _ = [gen_server:reply(OnUp, {error, stopped}) || OnUp =/= undefined],
            check_down(NewState);
        _ when Up ->
            notify({node_down, Node, case Killed of true -> killed; false -> down end}, NewState),
            node_lost(Node, NewState);
        up ->
            gen_server:reply(OnUp, {error, start_error(Reason)}),
            {noreply, NewState};
        starting ->
            fail(start_error(Reason), NewState)
    end.

%% A cluster that lost a node before it was complete has not started.
node_lost(Node, #state{phase = starting} = State) -> fail({node_down, Node}, State);
node_lost(_Node, State) -> {noreply, State}.

start_error({shutdown, {start_failed, Reason}}) -> Reason;
start_error(Reason) -> Reason.

%% The way down

fail(Reason, State) ->
    case go_down(State#state{failure = {failed, Reason}}) of
        #state{rundir = undefined} = Stopped -> check_down(Stopped);
        Stopping -> {noreply, Stopping}
    end.

go_down(#state{phase = stopping} = State) ->
    State;
go_down(#state{watchdog = Watchdog, nodes = Nodes} = State) ->
    _ = erlang:send_after(?DOWN_MS, self(), down_timeout),
    %% Killed, and not left to find out: one that waits to write to a silent
    %% node would crash, and say so at length, when its node goes.
    _ = [exit(Proc, shutdown) andalso exit(Control, kill) ||
            #node{up = true, proc = Proc, target = #{handle := #{control := Control}}} <- maps:values(Nodes)],
    _ = [atoll_cluster_watchdog:finish(Watchdog) || Watchdog =/= undefined],
    State#state{phase = stopping, queue = []}.

watchdog_ended(_Reason, #state{phase = stopping, done = true} = State) ->
    check_down(State);
watchdog_ended(Reason, #state{phase = Phase, rundir = #{dir := Dir}} = State) ->
    logger:warning(#{what => watchdog_lost, dir => Dir, reason => Reason}),
    %% One that dies before it is ready is not started again: then something is
    %% wrong with it, and the crash of this process tells so.
    {ok, Watchdog} = atoll_cluster_watchdog:open(Dir),
    _ = [atoll_cluster_watchdog:finish(Watchdog) || Phase =:= stopping],
    {noreply, State#state{watchdog = Watchdog}}.

%% Everything is down when the watchdog is done, or none was needed, and no
%% process is left that could still be starting a node.
check_down(#state{watchdog = undefined, nodes = Nodes} = State) ->
    case [Proc || #node{proc = Proc} <- maps:values(Nodes), Proc =/= undefined] of
        [] -> all_down(State);
        _ -> {noreply, State}
    end;
check_down(State) ->
    {noreply, State}.

all_down(#state{place = Place, config = #{driver := Driver}, failure = Failure} = State) ->
    ok = case Place of
        {place, P} -> Driver:release(P);
        undefined -> ok
    end,
    case Failure of
        {failed, Reason} -> notify({start_failed, Reason}, State);
        undefined -> notify(stopped, State)
    end,
    _ = [gen_server:reply(From, ok) || From <- State#state.on_stopped],
    {stop, normal, State}.

%% Helpers

find(Node, #state{nodes = Nodes}) ->
    case Nodes of
        #{Node := #node{up = true, target = Target}} -> {ok, Target};
        #{Node := _} -> {error, {node_down, Node}};
        _ -> {error, {unknown_node, Node}}
    end.

describe(#state{config = #{name := Name, driver := Driver}, order = Order} = State) ->
    #state{rundir = #{dir := Dir, owner := {OwnerPid, _}}, watchdog = Watchdog} = State,
    #{
        name => Name,
        dir => Dir,
        owner_pid => OwnerPid,
        watchdog_pid => case Watchdog of #{process := {Pid, _}} -> Pid; undefined -> undefined end,
        nodes => [node_info(Node, find(Node, State), Driver, Dir) || Node <- Order]
    }.

node_info(Node, Target, Driver, Dir) ->
    Log = atoll_cluster_rundir:log(Dir, Node),
    case Target of
        {ok, #{handle := #{os_pid := OsPid} = Handle}} ->
            #{node => Node, os_pid => OsPid, state => Driver:state(Handle), log => Log};
        {error, _} ->
            #{node => Node, os_pid => undefined, state => down, log => Log}
    end.

put_node(Node, Known, #state{nodes = Nodes} = State) ->
    State#state{nodes = Nodes#{Node := Known}}.

notify(Notice, #state{owner = Owner}) ->
    Owner ! {atoll_cluster, self(), Notice},
    ok.
