%% @doc The head of a group: starts it, relays for it, takes it down.
%%
%% The submasters are a tree (`orbit_topology:children/2') whose root is linked
%% to the master. Each makes its s_groups from its own node, starts the
%% submasters below it and a host on every node of its group, and then gathers
%% one answer from each of them at each stage before it gives its own, so that
%% an answer of the root speaks for the whole run:
%%
%%   building    until all are ready        -> group_ready, to the parent
%%   running     from `start'               credit goes to the master meanwhile
%%   collecting  from `dump', until all have given their result   -> result
%%   halting     from `halt' or a failure, until every host has ended and every
%%               submaster below has halted -> halted
%%   closing     from `close', until every submaster below has ended; then the
%%               groups are deleted and this one ends
%%
%% Halting and closing are two stages because deleting a group takes
%% connections down, which must not happen while anyone may still send.
%%
%% Credit takes the shortest way to group 1: in a ring it goes round the ring,
%% on either side. All else goes along the tree, but for failures. A failure is
%% told to every neighbour, once, and each tells its own: where the ring is cut
%% it still arrives. It is sent before anything is taken down, on the very
%% connections that will go, so that nobody hears of a lost connection before
%% the failure that led to it.
%%
%% A submaster whose parent is gone halts and closes by itself. What is taken
%% down after a failure is not waited for without end: another node may be
%% silent.
-module(orbit_submaster).

-export([start_link/4]).
-export([init/3]).

-export_type([message/0, directory/0]).

%% How the groups of a run are reached. Only pids of neighbours are ever used.
-type directory() :: #{orbit_topology:id() => #{submaster := pid(), gateways := [pid()]}}.

-type message() ::
    %% from the parent
    {start, directory()}
    | {seed, orbit_generators:vertex(), orbit_credit:unit()}
    | dump
    | halt
    | close
    %% from a host: its workers and gateway processes
    | {ready, pid(), [pid(), ...], [pid()]}
    %% from a submaster below: all groups from there on
    | {group_ready, pid(), directory()}
    | {halted, pid()}
    %% from either
    | {result, pid(), orbit_tally:tally()}
    %% from a worker or a neighbour
    | {credit, orbit_credit:credit()}
    %% from a host or a neighbour
    | {failed, orbit_failure:reason()}
    %% from itself
    | {overdue, stage()}
    %% from the runtime
    | {'EXIT', pid(), term()}.

-type stage() :: building | built | running | collecting | collected
               | halting | halted | closing.

-record(submaster, {
    id :: orbit_topology:id(),
    run :: orbit_run:run(),
    topology :: orbit_topology:topology(),
    parent :: pid() | gone,
    meter :: orbit_meter:meter(),
    stage = building :: stage(),
    %% processes below that are alive, and their nodes: hosts, submasters
    hosts = #{} :: #{pid() => node()},
    children = #{} :: #{pid() => node()},
    %% those of them that still owe their answer at this stage
    owing = [] :: [pid()],
    %% filled while building
    workers = #{} :: #{node() => [pid(), ...]},
    gateways = [] :: [pid()],
    directory = #{} :: directory(),
    %% where credit goes: the master, or the next submaster on the way
    upward :: pid(),
    route :: orbit_route:route() | undefined,
    %% filled while collecting
    tally = orbit_tally:none() :: orbit_tally:tally(),
    %% a failed run deletes groups of others too, who may not be able to
    failed = false :: boolean()
}).

-define(TAKE_DOWN_MS, 5_000).

%% @doc Starts the submaster of a group on its gateway node, linked to the
%% caller: the master, or the submaster above.
-spec start_link(pid(), orbit_topology:id(), orbit_topology:topology(), orbit_run:run()) ->
    pid().
start_link(Parent, Id, Topology, Run) ->
    #{gateway := Node} = orbit_topology:group(Topology, Id),
    spawn_link(Node, ?MODULE, init, [Parent, Id, {Topology, Run}]).

%% @private
-spec init(pid(), orbit_topology:id(), {orbit_topology:topology(), orbit_run:run()}) ->
    no_return().
init(Parent, Id, {Topology, Run}) ->
    process_flag(trap_exit, true),
    S = #submaster{id = Id, run = Run, topology = Topology, parent = Parent, upward = Parent,
                   meter = orbit_meter:new()},
    case make_groups(own_groups(S)) of
        ok -> loop(start_others(S));
        {error, Reason} -> loop(fail(Reason, S))
    end.

loop(S) ->
    receive
        Message -> loop(handle(Message, S))
    end.

-spec handle(message(), #submaster{}) -> #submaster{}.
handle({'EXIT', Pid, Why}, S) ->
    ended(Pid, Why, S);
handle({overdue, Stage}, #submaster{stage = Stage} = S) ->
    advance(S#submaster{owing = []});
handle({overdue, _}, S) ->
    S;
handle(Message, #submaster{stage = Stage} = S)
  when Stage =:= halting; Stage =:= halted; Stage =:= closing ->
    handle_ending(Message, S);
handle({failed, Reason}, S) ->
    fail(Reason, S);
handle({ready, Host, Workers, Gateways}, #submaster{stage = building} = S) ->
    #submaster{hosts = #{Host := Node}, workers = Known, gateways = Others} = S,
    answered(Host, S#submaster{workers = Known#{Node => Workers}, gateways = Gateways ++ Others});
handle({group_ready, Child, Directory}, #submaster{stage = building} = S) ->
    answered(Child, S#submaster{directory = maps:merge(S#submaster.directory, Directory)});
handle({start, Directory}, #submaster{stage = built} = S) ->
    start(S#submaster{directory = Directory});
handle({seed, X, Unit}, #submaster{stage = running, route = Route} = S) ->
    ok = orbit_route:send(X, Unit, Route),
    S;
handle({credit, _} = Credit, #submaster{stage = running} = S) ->
    ok = orbit_meter:send(S#submaster.meter, credit, S#submaster.upward, Credit),
    S;
handle(dump, #submaster{stage = running} = S) ->
    ok = tell(below(S), dump, S),
    S#submaster{stage = collecting, owing = below(S)};
handle({result, Pid, Tally}, #submaster{stage = collecting, tally = Sum} = S) ->
    answered(Pid, S#submaster{tally = orbit_tally:add(Tally, Sum)});
handle(halt, #submaster{stage = collected} = S) ->
    ok = tell(maps:keys(S#submaster.children), halt, S),
    halt_below(S).

%% What was under way when the end came is of no use any more.
handle_ending({halted, Child}, #submaster{stage = halting} = S) -> answered(Child, S);
handle_ending(close, S) -> close(S);
handle_ending({ready, _, _, _}, S) -> S;
handle_ending({group_ready, _, _}, S) -> S;
handle_ending({start, _}, S) -> S;
handle_ending({seed, _, _}, S) -> S;
handle_ending({credit, _}, S) -> S;
handle_ending({result, _, _}, S) -> S;
handle_ending({failed, _}, S) -> S;
handle_ending({halted, _}, S) -> S;
handle_ending(dump, S) -> S;
handle_ending(halt, S) -> S.

%%% Building

%% The s_groups that this submaster makes: its own group's, and each gateway
%% group in which it is the first.
own_groups(#submaster{id = Id} = S) ->
    [Group || {Maker, Group} <- all_groups(S), Maker =:= Id].

%% The s_groups that its node is in, each with the number of its maker.
all_groups(#submaster{run = #{mode := Mode}}) when Mode =:= par; Mode =:= mesh ->
    [];
all_groups(#submaster{id = Id, run = Run, topology = Topology} = S) ->
    #{nodes := Nodes} = orbit_topology:group(Topology, Id),
    [{Id, {orbit_group:name(Run, group, Id), Nodes}}
     | [{hd(Members), {orbit_group:name(Run, gateway, N), [gateway(M, S) || M <- Members]}}
        || #{id := N, members := Members} <- orbit_topology:gateway_groups(Topology, Id)]].

make_groups([{Name, Nodes} | Groups]) ->
    case orbit_group:make(Name, Nodes) of
        ok -> make_groups(Groups);
        {error, Reason} -> {error, Reason}
    end;
make_groups([]) ->
    ok.

start_others(#submaster{id = Id, run = Run, topology = Topology} = S) ->
    Children = [{start_link(self(), Child, Topology, Run), gateway(Child, S)}
                || Child <- orbit_topology:children(Topology, Id)],
    #{gateway := Gateway, nodes := Nodes} = orbit_topology:group(Topology, Id),
    Hosts = [{orbit_host:start_link(Node, self(), host_config(Node =:= Gateway, Nodes, S)), Node}
             || Node <- Nodes],
    Started = S#submaster{children = maps:from_list(Children), hosts = maps:from_list(Hosts)},
    Started#submaster{owing = below(Started)}.

host_config(IsGateway, Nodes, #submaster{run = #{workers := Workers} = Run} = S) ->
    #{
        run => Run,
        nodes => Nodes,
        group => case own_groups(S) of [{Name, _} | _] -> Name; [] -> none end,
        %% as many as workers: at the busiest each of them has one to wait for
        gateways => case IsGateway andalso neighbours(S) of
                        [_ | _] -> Workers;
                        _ -> 0
                    end
    }.

%%% Running

start(#submaster{id = Id, topology = Topology, directory = Directory} = S) ->
    #submaster{workers = Workers, gateways = Gateways, meter = Meter} = S,
    #{gateway := Gateway, nodes := Nodes} = orbit_topology:group(Topology, Id),
    InOrder = lists:append([maps:get(Node, Workers) || Node <- Nodes]),
    Table = table(S),
    Start = #{own => Id, table => Table, workers => InOrder, gateways => Gateways,
              exits => exits(S), neighbours => []},
    Neighbours = [gateway(N, S) || N <- neighbours(S)],
    ok = maps:foreach(
        fun(Host, Node) when Node =:= Gateway ->
                orbit_meter:send(Meter, control, Host, {start, Start#{neighbours := Neighbours}});
           (Host, _) ->
                orbit_meter:send(Meter, control, Host, {start, Start})
        end,
        S#submaster.hosts),
    ok = tell(maps:keys(S#submaster.children), {start, Directory}, S),
    S#submaster{
        stage = running,
        upward = upward(S),
        %% for the first vertex, which starts here like one of a gateway
        route = orbit_route:new(Id, Table, InOrder, exits(S), Meter)
    }.

table(#submaster{topology = Topology, run = #{workers := PerNode}}) ->
    [PerNode * length(Nodes) || #{nodes := Nodes} <- orbit_topology:groups(Topology)].

%% For each group the gateways of the next group on the way there.
exits(#submaster{id = Id, topology = Topology, directory = Directory}) ->
    list_to_tuple([exit_to(To, Id, Topology, Directory)
                   || #{id := To} <- orbit_topology:groups(Topology)]).

exit_to(Id, Id, _, _) ->
    {};
exit_to(To, Id, Topology, Directory) ->
    #{gateways := Gateways} = maps:get(orbit_topology:next(Topology, Id, To), Directory),
    list_to_tuple(Gateways).

upward(#submaster{id = 1, parent = Master}) ->
    Master;
upward(#submaster{id = Id, topology = Topology, directory = Directory}) ->
    #{submaster := Next} = maps:get(orbit_topology:next(Topology, Id, 1), Directory),
    Next.

%%% The end

fail(Reason, S) ->
    ok = tell(neighbouring_submasters(S), {failed, Reason}, S),
    halt_below(S#submaster{failed = true}).

%% Parent and children, and in a ring the neighbour that is neither.
neighbouring_submasters(#submaster{parent = Parent, children = Children} = S) ->
    Others = [Pid || N <- neighbours(S),
                     #{submaster := Pid} <- [maps:get(N, S#submaster.directory, none)]],
    lists:usort([Pid || Pid <- [Parent | maps:keys(Children)], is_pid(Pid)] ++ Others).

halt_below(#submaster{hosts = Hosts} = S) ->
    ok = tell(maps:keys(Hosts), halt, S),
    _ = erlang:send_after(?TAKE_DOWN_MS, self(), {overdue, halting}),
    advance_if_answered(S#submaster{stage = halting, owing = below(S)}).

close(#submaster{stage = closing} = S) ->
    S;
close(#submaster{children = Children} = S) ->
    ok = tell(maps:keys(Children), close, S),
    _ = erlang:send_after(?TAKE_DOWN_MS, self(), {overdue, closing}),
    advance_if_answered(S#submaster{stage = closing, owing = maps:keys(Children)}).

%% A linked process has ended. Hosts do so when they are told to halt, and
%% submasters below when they are told to close.
ended(Parent, Why, #submaster{parent = Parent, stage = Stage} = S) ->
    Orphan = S#submaster{parent = gone},
    case Stage of
        halting -> Orphan#submaster{failed = true};
        halted -> close(Orphan#submaster{failed = true});
        closing -> Orphan;
        _ -> fail(orbit_failure:of_exit(node(Parent), Why), Orphan)
    end;
ended(Pid, Why, #submaster{hosts = Hosts, children = Children, stage = Stage} = S) ->
    #{Pid := Node} = maps:merge(Hosts, Children),
    Left = S#submaster{hosts = maps:remove(Pid, Hosts), children = maps:remove(Pid, Children)},
    case Stage of
        _ when Stage =:= halting; Stage =:= halted; Stage =:= closing -> answered(Pid, Left);
        building when Why =:= noconnection -> fail({unreachable, Node}, Left);
        _ -> fail(orbit_failure:of_exit(Node, Why), Left)
    end.

delete_groups(#submaster{failed = true} = S) ->
    lists:foreach(fun({_, {Name, _}}) -> orbit_group:delete(Name) end, all_groups(S));
delete_groups(S) ->
    lists:foreach(fun({Name, _}) -> ok = orbit_group:delete(Name) end, own_groups(S)).

%%% Gathering

answered(Pid, #submaster{owing = Owing} = S) ->
    advance_if_answered(S#submaster{owing = lists:delete(Pid, Owing)}).

advance_if_answered(#submaster{owing = []} = S) -> advance(S);
advance_if_answered(S) -> S.

%% Everyone has answered, or is not waited for any longer.
advance(#submaster{stage = building, id = Id, gateways = Gateways} = S) ->
    Own = #{Id => #{submaster => self(), gateways => Gateways}},
    Directory = maps:merge(S#submaster.directory, Own),
    ok = answer({group_ready, self(), Directory}, S),
    S#submaster{stage = built};
advance(#submaster{stage = collecting, parent = Parent, meter = Meter, tally = Tally} = S) ->
    %% the message that carries the count of messages is in the count
    ok = orbit_meter:count(Meter, control, Parent),
    Counted = (orbit_tally:none())#{messages := orbit_meter:read(Meter)},
    ok = orbit_meter:deliver(Parent, {result, self(), orbit_tally:add(Counted, Tally)}),
    S#submaster{stage = collected};
advance(#submaster{stage = halting, parent = gone} = S) ->
    close(S);
advance(#submaster{stage = halting} = S) ->
    ok = answer({halted, self()}, S),
    S#submaster{stage = halted};
advance(#submaster{stage = halted} = S) ->
    S;
advance(#submaster{stage = closing} = S) ->
    ok = delete_groups(S),
    exit(normal).

below(#submaster{hosts = Hosts, children = Children}) ->
    maps:keys(Hosts) ++ maps:keys(Children).

gateway(Id, #submaster{topology = Topology}) ->
    maps:get(gateway, orbit_topology:group(Topology, Id)).

neighbours(#submaster{id = Id, topology = Topology}) ->
    orbit_topology:neighbours(Topology, Id).

answer(Message, #submaster{parent = Parent} = S) ->
    tell([Parent], Message, S).

tell(Pids, Message, #submaster{meter = Meter}) ->
    lists:foreach(fun(Pid) -> orbit_meter:send(Meter, control, Pid, Message) end, Pids).
