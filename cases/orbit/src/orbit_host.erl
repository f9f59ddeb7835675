%% @doc The run on one node.
%%
%% A submaster starts one host on each node of its group. The host starts the
%% node's workers, on the gateway node the gateway processes too, and stands
%% for them: it says when the node is ready, adds up the workers' results, and
%% ends them all when it is told to, or when its submaster is gone.
%%
%% It is also the one who looks at connections.
%%
%% - Peak. Connections are counted at every nodeup and at the end, so the number
%%   reported is the most this node has had at once, and nothing is polled.
%% - Packets. What the connections have carried is read before the start and at
%%   the end.
%% - Loss. A vertex that was on its way over a connection that breaks is gone,
%%   and its credit with it: the run could never end. So a connection of this
%%   node to any node that it sends to must last from the start to the results;
%%   if it does not, the host reports the node as lost. Before the start
%%   nothing is sent, and processes that die are seen over their links.
%%
%% Links hold the processes of a run together. Whichever end dies, the other is
%% told, with the reason `noconnection' if it was the node.
-module(orbit_host).

-export([start_link/3]).
-export([init/2]).

-export_type([config/0, start/0, message/0]).

-type config() :: #{
    run := orbit_run:run(),
    %% the group's s_group; none in a mesh
    group := orbit_group:name() | none,
    nodes := [node(), ...],
    %% how many gateway processes to start
    gateways := non_neg_integer()
}.

%% What the workers and gateways need to know of the rest of the run.
-type start() :: #{
    own := orbit_topology:id(),
    table := orbit_route:table(),
    %% own group's workers, by slot, and gateway processes
    workers := [pid(), ...],
    gateways := [pid()],
    %% the gateways' exits; see orbit_route
    exits := orbit_route:exits(),
    %% nodes of other groups that this node sends to
    neighbours := [node()]
}.

-type message() ::
    %% from the submaster
    {start, start()}
    | dump
    | halt
    %% from a worker
    | {result, pid(), orbit_tally:tally()}
    %% from itself
    | connect_deadline
    %% from the runtime
    | {nodeup | nodedown, node(), term()}
    | {'EXIT', pid(), term()}.

-record(host, {
    submaster :: pid(),
    config :: config(),
    meter :: orbit_meter:meter(),
    workers :: [pid(), ...],
    gateways :: [pid()],
    %% connecting: waits for connections with the rest of the group
    stage = connecting :: connecting | ready | running | collecting | collected,
    %% the most connections seen at once
    peak = 0 :: non_neg_integer(),
    %% what the connections had carried before the start
    packets = 0 :: non_neg_integer() | unknown,
    %% nodes whose loss ends the run
    watched = [] :: [node()],
    %% workers that still owe their result
    owing = [] :: [pid()],
    tally = orbit_tally:none() :: orbit_tally:tally()
}).

-define(CONNECT_MS, 10_000).

%% @doc Starts the host on a node, linked to the caller, its submaster.
-spec start_link(node(), pid(), config()) -> pid().
start_link(Node, Submaster, Config) ->
    spawn_link(Node, ?MODULE, init, [Submaster, Config]).

%% @private
-spec init(pid(), config()) -> no_return().
init(Submaster, #{run := Run, nodes := Nodes, gateways := Gateways} = Config) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    _ = erlang:send_after(?CONNECT_MS, self(), connect_deadline),
    Meter = orbit_meter:new(),
    #{workers := Workers} = Run,
    ok = connect(Run, Nodes),
    loop(when_connected(read_peak(#host{
        submaster = Submaster,
        config = Config,
        meter = Meter,
        workers = [orbit_worker:start_link(Submaster, Run, Meter) || _ <- lists:seq(1, Workers)],
        gateways = [orbit_gateway:start_link() || _ <- lists:seq(1, Gateways)]
    }))).

loop(Host) ->
    receive
        Message -> loop(handle(Message, Host))
    end.

-spec handle(message(), #host{}) -> #host{}.
handle({start, Start}, #host{stage = ready} = Host) ->
    start(Start, Host);
handle(dump, #host{stage = running, workers = Workers} = Host) ->
    [Worker ! dump || Worker <- Workers],
    Host#host{stage = collecting, owing = Workers};
handle({result, Worker, Tally}, #host{stage = collecting} = Host) ->
    #host{owing = Owing, tally = Sum} = Host,
    when_collected(Host#host{owing = lists:delete(Worker, Owing),
                             tally = orbit_tally:add(Tally, Sum)});
handle(halt, Host) ->
    ok = end_children(Host),
    exit(normal);
handle({nodeup, _, _}, Host) ->
    when_connected(read_peak(Host));
handle({nodedown, Node, _}, #host{watched = Watched} = Host) ->
    case lists:member(Node, Watched) of
        true -> failed({node_lost, Node}, Host);
        false -> Host
    end;
handle(connect_deadline, #host{stage = connecting} = Host) ->
    failed({not_connected, node(), hd(missing(Host))}, Host);
handle(connect_deadline, Host) ->
    Host;
handle({'EXIT', Submaster, _}, #host{submaster = Submaster} = Host) ->
    orphaned(Host);
handle({'EXIT', _Child, Why}, Host) ->
    failed(orbit_failure:of_exit(node(), Why), Host).

%% In a mesh the program connects its nodes, as distributed Erlang does by
%% itself at the first message; in groups the library has done it.
connect(#{mode := mesh}, Nodes) ->
    lists:foreach(fun net_kernel:connect_node/1, Nodes);
connect(_, _) ->
    ok.

when_connected(#host{stage = connecting} = Host) ->
    case missing(Host) of
        [] ->
            #host{workers = Workers, gateways = Gateways} = Host,
            Packets = atoll_traffic:packets(),
            ok = report({ready, self(), Workers, Gateways}, Host),
            Host#host{stage = ready, packets = Packets};
        _ ->
            Host
    end;
when_connected(Host) ->
    Host.

missing(#host{config = #{nodes := Nodes}}) ->
    unconnected(Nodes).

unconnected(Nodes) ->
    Nodes -- [node() | nodes(connected)].

start(#{neighbours := Neighbours} = Start, #host{config = #{nodes := Nodes}} = Host) ->
    Watched = lists:delete(node(), Nodes) ++ Neighbours,
    case unconnected(Watched) of
        [] ->
            ok = start_gateways(Start, Host),
            ok = start_workers(Start, Host),
            Host#host{stage = running, watched = Watched};
        [Lost | _] ->
            failed({node_lost, Lost}, Host)
    end.

start_gateways(#{own := Own, table := Table, workers := Workers, exits := Exits}, Host) ->
    Route = orbit_route:new(Own, Table, Workers, Exits, Host#host.meter),
    lists:foreach(fun(Gateway) -> Gateway ! {start, Route} end, Host#host.gateways).

%% The workers of a group take its gateways in turn.
start_workers(#{own := Own, table := Table, workers := Group, gateways := Gateways}, Host) ->
    #host{workers = Here, meter = Meter} = Host,
    Assigned = lists:zip(Group, in_turn(Gateways, length(Group))),
    lists:foreach(
        fun({Worker, Exit}) ->
            Exits = erlang:make_tuple(length(Table), Exit),
            Worker ! {start, orbit_route:new(Own, Table, Group, Exits, Meter)}
        end,
        [Pair || {Worker, _} = Pair <- Assigned, lists:member(Worker, Here)]).

in_turn([], Count) ->
    lists:duplicate(Count, {});
in_turn(Gateways, Count) ->
    [{lists:nth(I rem length(Gateways) + 1, Gateways)} || I <- lists:seq(0, Count - 1)].

%% The message that carries the count of messages is in the count.
when_collected(#host{owing = [], submaster = Submaster, meter = Meter} = Host) ->
    #host{peak = Peak, packets = Before, tally = Tally} = Last = read_peak(Host),
    ok = orbit_meter:count(Meter, control, Submaster),
    Node = (orbit_tally:none())#{
        messages := orbit_meter:read(Meter),
        packets := orbit_tally:difference(atoll_traffic:packets(), Before),
        connections := #{node() => Peak}
    },
    ok = orbit_meter:deliver(Submaster, {result, self(), orbit_tally:add(Node, Tally)}),
    Last#host{stage = collected, watched = []};
when_collected(Host) ->
    Host.

read_peak(#host{peak = Peak} = Host) ->
    Host#host{peak = max(Peak, atoll_traffic:connections())}.

failed(Reason, Host) ->
    ok = report({failed, Reason}, Host),
    Host.

report(Message, #host{meter = Meter, submaster = Submaster}) ->
    orbit_meter:send(Meter, control, Submaster, Message).

%% Nobody is left to tell this node what to do, or to delete the group. Another
%% member may be deleting it at this moment: that it cannot be deleted twice is
%% no news.
-spec orphaned(#host{}) -> no_return().
orphaned(#host{config = #{group := Group}} = Host) ->
    ok = end_children(Host),
    _ = Group =:= none orelse orbit_group:delete(Group),
    exit(normal).

%% By monitors, because some may have died before and been heard of.
end_children(#host{workers = Workers, gateways = Gateways}) ->
    Monitors = [monitor(process, Child) || Child <- Workers ++ Gateways],
    [exit(Child, kill) || Child <- Workers ++ Gateways],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Monitors).
