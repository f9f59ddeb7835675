%% SPDX-License-Identifier: Apache-2.0
%% @doc What speaks for a run on one node, and hands on to those below it in the tree that the ways to
%% the master's node make ({@link orbit_plan}): down goes what the master tells, up goes credit, what
%% has come of it, and what was lost.
%%
%% This is all of the recovery. An epoch ({@link orbit_ledger}) is prepared from the master's node
%% on down: a submaster makes the groups of which it is the most senior member, or adds who is
%% missing there; has its own processes started, and asks the nodes below to do the same. Who is
%% killed meanwhile is asked again; who cannot be reached, it reports. It watches its own processes, those
%% below that are ready, and when all are the submasters of all neighbours, by pid, and reports what goes,
%% also if only the connection does: that begins the next epoch. So nothing that carries credit is lost unseen.
%%
%% It ends the run on its node when that is over elsewhere: when the caller of the run is gone, when a
%% neighbour's submaster has ended in order, when the master's node is gone, or when what it reported has
%% led to nothing.
-module(orbit_submaster).
-behaviour(gen_server).

-export([start_link/1, tell/2, quiet/1, loss/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(NOT_READY, #{workers => #{}, gateways => []}).

-record(state, {
    run :: orbit_host:run(),
    name :: atom(),
    %% its supervisor
    host :: pid(),
    epoch = 0 :: orbit_part:epoch(),
    plan :: orbit_plan:plan(),
    %% of this epoch: own ones, and the nodes of others
    own = ?NOT_READY :: map(),
    watched = #{} :: #{reference() => own | node()},
    %% parts whose results are to come, and those that are there
    owing = [] :: [orbit_part:id()],
    tally = orbit_tally:none() :: orbit_tally:tally()
}).

%% Without anything new after a loss; and how often it is looked for who is lost.
-define(ORPHAN_MS, 40_000).
-define(SEEK_MS, 1_000).
%% Two nodes that connect each other at the same moment may refuse each other once. A node that is
%% silent keeps whoever connects it waiting, seven seconds if the kernel is not told otherwise: then a
%% second try would take as long.
-define(TRIES, 5).
-define(AGAIN_MS, 50).
-define(SILENT_MS, 1_000).
%% How long what was killed together with its supervisor may take to be gone.
-define(GONE_MS, 5_000).

%% @doc Starts it, for a host.
-spec start_link(orbit_host:run()) -> gen_server:start_ret().
start_link(#{id := RunId} = Run) ->
    case gen_server:start_link({local, orbit_host:name(RunId)}, ?MODULE, {Run, self()}, []) of
        {error, {already_started, Before}} ->
            %% It ends: the host that had it was killed, and the news is on its way.
            Ref = monitor(process, Before),
            receive {'DOWN', Ref, process, _, _} -> start_link(Run) after ?GONE_MS -> exit(already_started) end;
        Started -> Started
    end.

%% @doc Tells the one of this node.
-spec tell(orbit_host:run_id(), term()) -> ok.
tell(RunId, Message) -> gen_server:cast(orbit_host:name(RunId), Message).

%% @doc It watches nothing any more.
-spec quiet(orbit_host:run_id()) -> ok.
quiet(RunId) ->
    try gen_server:call(orbit_host:name(RunId), quiet)
    catch exit:_ -> ok
    end.

%% @private
-spec init({orbit_host:run(), pid()}) -> {ok, #state{}}.
init({#{id := RunId, plan := Plan, caller := Caller} = Run, Host}) ->
    _ = [monitor(process, Caller, [{tag, caller_gone}]) || node(Caller) =:= node()],
    _ = erlang:send_after(?ORPHAN_MS, self(), {orphan, 0}),
    _ = erlang:send_after(?SEEK_MS, self(), seek),
    {ok, #state{run = Run, host = Host, name = orbit_host:name(RunId), plan = Plan}}.

%% @private
-spec handle_call({prepare, orbit_part:epoch(), orbit_plan:plan()} | quiet, gen_server:from(), #state{}) ->
    {reply, {ready, orbit_ledger:ready()} | old | ok, #state{}}.
handle_call({prepare, Epoch, Plan}, _, #state{epoch = Before} = S) when Epoch > Before ->
    prepared((unwatched(S))#state{epoch = Epoch, plan = Plan, own = ?NOT_READY, owing = [], tally = orbit_tally:none()});
handle_call({prepare, Epoch, _}, _, #state{epoch = Epoch, own = #{submaster := _} = Is} = S) ->
    %% Whoever has asked before was killed, and has told nobody what it heard from here and below.
    ok = prepare_below(S),
    {reply, {ready, Is}, S};
handle_call({prepare, _, _}, _, S) ->
    {reply, old, S};
handle_call(quiet, _, S) ->
    {reply, ok, unwatched(S)}.

%% @private
-spec handle_cast({up, orbit_ledger:event()} | {down, From :: node(), orbit_ledger:effect()}
                  | {result, orbit_part:epoch(), orbit_part:id(), orbit_tally:tally()}, #state{}) -> {noreply, #state{}}.
handle_cast({up, {ready, Epoch, Node, #{submaster := Submaster}} = Event}, #state{epoch = Epoch, plan = Plan, watched = Watched} = S) ->
    ok = up(Event, S),
    %% Those below that one are made ready by it, and nobody else watches it yet.
    {noreply, case lists:member(Node, orbit_plan:below(node(), Plan)) of
                  true -> S#state{watched = Watched#{monitor(process, Submaster) => Node}};
                  false -> S
              end};
handle_cast({up, Event}, S) ->
    ok = up(Event, S),
    {noreply, S};
handle_cast({down, _, Message}, #state{epoch = Epoch} = S) when element(2, Message) =:= Epoch ->
    _ = [gen_server:cast({S#state.name, Node}, {down, node(), Message}) || Node <- orbit_plan:below(node(), S#state.plan)],
    {noreply, told(Message, S)};
handle_cast({down, From, Message}, #state{epoch = Epoch, name = Name} = S) when element(2, Message) > Epoch ->
    %% This one is in the place of another, and was never ready.
    gen_server:cast({Name, From}, {up, {lost, element(2, Message)}}),
    {noreply, S};
handle_cast({down, _, _}, S) ->
    {noreply, S};
handle_cast({result, Epoch, Part, Tally}, #state{epoch = Epoch, owing = Owing, tally = Sum} = S) ->
    {noreply, when_collected(S#state{owing = lists:delete(Part, Owing), tally = orbit_tally:add(Tally, Sum)})};
handle_cast({result, _, _, _}, S) ->
    {noreply, S}.

%% @private
-spec handle_info({'DOWN' | caller_gone, reference(), process, pid(), term()} | {orphan, orbit_part:epoch()} | seek, #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Ref, process, _, Why}, #state{watched = Watched, epoch = Epoch, plan = Plan} = S) ->
    [First | _] = orbit_plan:present(Plan),
    case maps:take(Ref, Watched) of
        {Node, Left} when Node =/= own, Why =:= shutdown; Node =/= own, Why =:= normal ->
            {noreply, over(S#state{watched = Left})};
        {Node, Left} ->
            case Node =:= First andalso Why =:= noconnection andalso not connects(First, ?TRIES) of
                true -> {noreply, over(S#state{watched = Left})};
                false ->
                    ok = up(loss(case Node of own -> node(); _ -> Node end, Epoch, Why), S),
                    _ = erlang:send_after(?ORPHAN_MS, self(), {orphan, Epoch}),
                    {noreply, S#state{watched = Left}}
            end;
        error -> {noreply, S}
    end;
handle_info({caller_gone, _, process, _, _}, #state{run = #{id := RunId}, plan = Plan} = S) ->
    _ = spawn(orbit_host, finish, [RunId, Plan]),
    {noreply, unwatched(S)};
handle_info({orphan, Epoch}, #state{epoch = Epoch} = S) ->
    {noreply, over(S)};
handle_info({orphan, _}, S) ->
    {noreply, S};
handle_info(seek, #state{plan = Plan, run = #{id := RunId}} = S) ->
    Absent = orbit_plan:absent(node(), Plan),
    _ = spawn_link(fun() ->
        lists:foreach(fun(Node) -> net_kernel:connect_node(Node) =:= true andalso tell(RunId, {up, {back, Node}}) end, Absent)
    end),
    _ = erlang:send_after(?SEEK_MS, self(), seek),
    {noreply, S}.

%% @doc What it means that a process on that node is gone, for the master: what fails by itself would again.
-spec loss(node(), orbit_part:epoch(), Why :: term()) -> orbit_ledger:event().
loss(Node, Epoch, Why) ->
    case lists:member(Why, [killed, noproc, noconnection, shutdown, normal]) of
        true -> {lost, Epoch};
        false -> {failed, {crashed, Node, Why}}
    end.

%%% An epoch

prepared(#state{run = #{id := RunId} = Run, epoch = Epoch, plan = Plan, host = Host} = S) ->
    case grouped([Group || {Name, [Senior | _]} = Group <- orbit_plan:groups(Plan), Name =/= none, Senior =:= node()]) of
        ok ->
            ok = prepare_below(S),
            Are = orbit_host:have(Host, children(Run, Plan)),
            Is = #{submaster => self(), workers => maps:from_list([{Part, Pid} || {{part, Part}, Pid} <- maps:to_list(Are)]),
                   gateways => [Pid || {{gateway, _}, Pid} <- maps:to_list(Are)]},
            Watched = maps:from_list([{monitor(process, Pid), own} || Pid <- maps:values(Are)]),
            {reply, {ready, Is}, S#state{own = Is, watched = Watched}};
        {unreached, Node, Why} ->
            ok = tell(RunId, {up, {unreached, Epoch, Node, Why}}),
            {reply, old, S};
        {vain, Reason} ->
            ok = tell(RunId, {up, {vain, Epoch, Reason}}),
            {reply, old, S}
    end.

prepare_below(#state{run = Run, epoch = Epoch, plan = Plan}) ->
    lists:foreach(fun(Node) -> spawn_link(fun() -> below(Node, Run, Epoch, Plan) end) end, orbit_plan:below(node(), Plan)).

children(Run, Plan) ->
    [#{id => {part, Part}, start => {orbit_worker, start_link, [Part, Run]}} || Part <- orbit_plan:parts(node(), Plan)] ++
        [#{id => {gateway, N}, start => {orbit_gateway, start_link, []}} || N <- lists:seq(1, orbit_plan:relays(node(), Plan))].

%% In a process of its own. A node that has just been lost may be there the next moment.
below(Node, #{id := RunId} = Run, Epoch, Plan) ->
    case prepared(Node, Run, Epoch, Plan, ?TRIES) of
        {ready, Is} -> tell(RunId, {up, {ready, Epoch, Node, Is}});
        old -> ok;
        {error, Reason} -> tell(RunId, {up, {unreached, Epoch, Node, Reason}})
    end.

prepared(Node, Run, Epoch, Plan, Tries) ->
    case connects(Node, 2 * ?TRIES) andalso orbit_host:prepare(Node, Run, Epoch, Plan) of
        false -> {error, {unreachable, Node}};
        {error, {unreachable, Node}} when Tries > 1 -> prepared(Node, Run, Epoch, Plan, Tries - 1);
        Answer -> Answer
    end.

grouped([{Name, Members} | Groups]) ->
    Own = s_group:own_nodes(Name),
    case {unconnected(Members -- [node()]), Own, Members -- Own} of
        {[Node], _, _} -> {unreached, Node, {left_out, Node}};
        {[], [], _} -> made(atoll_topology:make(atoll_topology:of_groups([{Name, Members}])), Groups);
        {[], _, []} -> grouped(Groups);
        {[], _, Missing} ->
            case s_group:add_nodes(Name, Missing) of
                {ok, Name, Added} when length(Added) =:= length(Missing) -> grouped(Groups);
                {ok, Name, Added} -> made({error, #{why => {left_out, Missing -- Added}}}, Groups);
                {error, Reason} -> vain(s_group:format_error(Reason))
            end
    end;
grouped([]) ->
    ok.

made({ok, _}, Groups) -> grouped(Groups);
made({error, #{why := {left_out, [Node | _]}}}, _) -> {unreached, Node, {left_out, Node}};
made({error, Reason}, _) -> vain(atoll_topology:format_error(Reason)).

%% It may be another moment.
vain(Sentence) ->
    receive after ?AGAIN_MS -> {vain, {not_grouped, node(), Sentence}} end.

%% The first of them that cannot be connected: to find one more would take as long again.
unconnected(Nodes) -> lists:sublist(lists:dropwhile(fun(Node) -> connects(Node, ?TRIES) end, Nodes), 1).

connects(_, 0) -> false;
connects(Node, Tries) ->
    Began = erlang:monotonic_time(millisecond),
    case net_kernel:connect_node(Node) of
        true -> true;
        _ ->
            case erlang:monotonic_time(millisecond) - Began < ?SILENT_MS of
                true -> receive after ?AGAIN_MS -> connects(Node, Tries - 1) end;
                false -> false
            end
    end.

told({go, Epoch, Ready, Unit}, #state{plan = Plan, own = #{workers := Workers, gateways := Gateways}, watched = Watched} = S) ->
    Neighbours = orbit_plan:neighbours(node(), Plan),
    case unconnected(Neighbours) of
        [] ->
            Routes = routes(Ready, Plan),
            ok = lists:foreach(fun(Gateway) -> orbit_gateway:route(Gateway, Epoch, Routes) end, Gateways),
            ok = maps:foreach(fun(_, Worker) -> orbit_worker:'begin'(Worker, Epoch, Unit, Routes) end, Workers),
            Others = [{monitor(process, Submaster), Node} || Node <- Neighbours, #{Node := #{submaster := Submaster}} <- [Ready]],
            S#state{watched = maps:merge(Watched, maps:from_list(Others))};
        [Node] ->
            ok = up({vain, Epoch, {not_connected, node(), Node}}, S),
            S
    end;
told({collect, Epoch}, #state{own = #{workers := Workers}} = S) ->
    ok = maps:foreach(fun(_, Worker) -> orbit_worker:collect(Worker, Epoch) end, Workers),
    when_collected(S#state{owing = maps:keys(Workers)}).

routes(Ready, Plan) ->
    Hops = orbit_plan:hops(node(), Plan),
    Near = [node() | orbit_plan:neighbours(node(), Plan)],
    maps:from_list([{Part, case lists:member(Node, Near) of
                               true -> Worker;
                               false -> #{Node := Hop} = Hops, list_to_tuple(maps:get(gateways, maps:get(Hop, Ready)))
                           end} || {Node, #{workers := Workers}} <- maps:to_list(Ready), {Part, Worker} <- maps:to_list(Workers)]).

when_collected(#state{owing = [], epoch = Epoch, tally = Tally, run = #{survey := Survey}} = S) ->
    Said = case Survey of none -> none; {M, F, Args} -> apply(M, F, Args) end,
    ok = up({result, Epoch, node(), {Tally, Said}}, S),
    S;
when_collected(S) ->
    S.

up(Event, #state{plan = Plan, run = Run, name = Name}) ->
    case orbit_plan:above(node(), Plan) of
        none -> orbit_master:tell(Run, Event);
        Node -> gen_server:cast({Name, Node}, {up, Event})
    end.

unwatched(#state{watched = Watched} = S) ->
    ok = maps:foreach(fun(Ref, _) -> demonitor(Ref, [flush]) end, Watched),
    S#state{watched = #{}}.

%% Not by this process, which ends with it.
over(#state{run = #{id := RunId}} = S) ->
    _ = spawn(orbit_host, stop, [RunId]),
    unwatched(S).
