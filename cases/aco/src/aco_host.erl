%% @doc The run on one node.
%%
%% A host starts the submasters and colonies of its node and the hosts of the nodes
%% below, keeps what may be lost, and takes all of it down. It is what has a name. The
%% master's node has the first one; the others are a tree as the submasters are, and a host
%% belongs to the one that has had it start something last, so the tree mends as the
%% submasters do. How it takes all down at the end is in {@link aco_end}.
%%
%% It also looks at connections and packets: the most connections this node has had at once,
%% counted at every nodeup and at the end, and the packets that have left it from its start
%% to the end of the run.
%%
%% A host whose parent is gone ends what it has, at once if its run is lost with that,
%% and otherwise after two minutes in which nobody has had it start anything: its parent may
%% have to be started again on another node first, after others have been tried in vain.
-module(aco_host).

-export([start_link/1]).
-export([init/3]).

-export_type([message/0, run/0]).

%% What every node needs of a run.
-type run() :: #{
    id := string(),
    mode := aco_tree:mode(),
    reliable := boolean(),
    nodes := [node(), ...],
    problem := aco_problem:problem(),
    options := aco_options:options(),
    chaos := number(),
    _ => _
}.

-type message() ::
    %% from a process of a submaster, or the master
    {start, aco_reach:request()}
    | {failed, aco_failure:reason()}
    %% from its finder
    | {reached, aco_reach:request(), pid() | none}
    | {not_reached, aco_reach:request(), aco_failure:reason()}
    %% from the host above
    | {start_role, pid(), aco_reach:request()}
    | {stop, pid(), Ms :: non_neg_integer()}
    %% from a host below
    | {started, aco_reach:request(), pid()}
    | {stopped, pid(), aco_report:report() | not_yours}
    %% from itself
    | {orphaned, pid()}
    %% from the runtime
    | {nodeup | nodedown, node(), term()}
    | {'DOWN', reference(), process, pid(), term()}
    | {'EXIT', pid(), term()}.

-record(host, {
    run :: run(),
    keep :: aco_keep:keep(),
    reach :: pid(),
    monkey :: pid() | none,
    %% the host above, or the master
    parent :: pid(),
    watch :: reference(),
    %% that it shares with the host above
    group :: aco_tree:group() | none,
    %% where its name is registered, each with how many names that is
    named = [] :: [aco_tree:group() | none],
    names = 0 :: non_neg_integer(),
    %% the hosts below, and what they were asked to start and have not yet
    hosts = #{} :: #{node() => {pid(), reference()}},
    starting = [] :: [aco_reach:request()],
    lost = [] :: [node()],
    peak = 0 :: non_neg_integer(),
    %% what the connections had carried before
    before :: aco_report:traffic()
}).

%% Longer than all that may be tried before somebody is asked to go on with those here: other
%% nodes, one after the other, that are silent.
-define(ORPHAN_MS, 120_000).
%% How often a process may be made again without getting anything done in between: a colony
%% a generation, a submaster to find all those below it.
-define(IN_VAIN, 50).
%% How long those below an orphan have to end.
-define(TAKE_DOWN_MS, 10_000).

%% @doc Starts the first host, on the master's node, linked to the caller, the master. It is
%% told `{stop, Master, Ms}', and answers `{stopped, Host, Report}'.
-spec start_link(run()) -> pid().
start_link(Run) ->
    spawn_link(?MODULE, init, [Run, self(), none]).

%% @private
-spec init(run(), pid(), aco_tree:group() | none) -> no_return().
init(#{nodes := Nodes, mode := Mode} = Run, Parent, Group) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    Watch = monitor(process, Parent),
    ok = connect(Mode, Nodes, {Parent, Watch}),
    Before = aco_report:traffic(),
    Keep = aco_keep:new(),
    loop(read_peak(registered(Group, #host{
        run = Run,
        keep = Keep,
        reach = aco_reach:start_link(self(), Run),
        monkey = aco_monkey:start_link(Keep, Run),
        parent = Parent,
        watch = Watch,
        group = Group,
        before = Before
    }))).

%% In a mesh the program connects its nodes, as distributed Erlang does by itself at the first
%% message, and a name is known to those that `global' has met; in groups the library has done
%% both. There are states that `global' does not get out of: the host can be told to end
%% meanwhile, and ends with its parent.
connect(sr, _, _) ->
    ok;
connect(Mode, Nodes, {Parent, Watch}) ->
    {Pid, Ref} = spawn_opt(fun() -> connect(Mode, Nodes) end, [link, monitor]),
    receive
        {'DOWN', Ref, process, Pid, normal} ->
            ok;
        {'DOWN', Ref, process, Pid, Why} ->
            exit(Why);
        {'DOWN', Watch, process, Parent, _} ->
            given_up(Pid);
        {stop, Parent, _} ->
            ok = aco_gather:send(Parent, {stopped, self(), aco_report:lost(node())}),
            given_up(Pid)
    end.

connect(Mode, Nodes) ->
    lists:foreach(fun net_kernel:connect_node/1, Nodes),
    _ = Mode =:= gr andalso global:sync(),
    ok.

-spec given_up(pid()) -> no_return().
given_up(Connecting) ->
    true = exit(Connecting, kill),
    exit(normal).

loop(Host) ->
    receive
        Message -> loop(handle(Message, Host))
    end.

-spec handle(message(), #host{}) -> #host{}.
handle({start, #{asker := Asker, child := #{id := Id}, node := Node} = Request}, Host) when Node =:= node() ->
    Asker ! {started, Id, Node, role(Request, Host)},
    Host;
handle({start, Request}, #host{reach = Reach} = Host) ->
    Reach ! {reach, Request},
    Host;
handle({reached, #{group := Group} = Request, Found}, Host) ->
    start_there(Request, below(Request, Found, named(Group, Host)));
handle({not_reached, #{how := build}, Why}, Host) ->
    failed(Why, Host);
handle({not_reached, #{node := Node} = Request, _}, #host{lost = Lost} = Host) ->
    ok = not_started(Request),
    Host#host{lost = [Node | Lost]};
handle({start_role, Parent, #{group := Group} = Request}, Host) ->
    Adopted = registered(Group, adopted(Parent, Group, Host)),
    ok = aco_gather:send(Parent, {started, Request, role(Request, Adopted)}),
    Adopted;
handle({started, #{asker := Asker, child := #{id := Id}, node := Node} = Request, Pid}, Host) ->
    Asker ! {started, Id, Node, Pid},
    Host#host{starting = lists:delete(Request, Host#host.starting)};
handle({failed, Reason}, Host) ->
    failed(Reason, Host);
handle({stop, Parent, Ms}, #host{parent = Parent} = Host) ->
    stop(Ms, Host);
handle({stop, Other, _}, Host) ->
    ok = aco_gather:send(Other, {stopped, self(), not_yours}),
    Host;
handle({stopped, _, _}, Host) ->
    Host;
handle({orphaned, Parent}, #host{parent = Parent} = Host) ->
    stop(?TAKE_DOWN_MS, Host);
handle({orphaned, _}, Host) ->
    Host;
handle({nodeup, _, _}, Host) ->
    read_peak(Host);
handle({nodedown, _, _}, Host) ->
    Host;
handle({'DOWN', Watch, process, Parent, _}, #host{watch = Watch} = Host) ->
    ok = orphaned(Parent, Host),
    Host;
handle({'DOWN', Ref, process, Pid, Why}, #host{hosts = Hosts} = Host) ->
    case [Node || {Node, {_, Watch}} <- maps:to_list(Hosts), Watch =:= Ref] of
        [Node] -> host_lost(Node, Why, Host#host{hosts = maps:remove(Node, Hosts)});
        [] -> _ = Pid, Host
    end;
handle({'EXIT', Reach, Why}, #host{reach = Reach}) ->
    exit(Why);
handle({'EXIT', Monkey, Why}, #host{monkey = Monkey}) ->
    exit(Why);
handle({'EXIT', Pid, Why}, #host{keep = Keep} = Host) ->
    Failed = [Id || {Id, Role} <- aco_keep:roles(Keep), Role =:= Pid, Why =/= killed],
    ok = aco_keep:delete_role(Pid, Keep),
    %% Whoever has asked for one that is killed watches it. What fails by itself would again.
    lists:foldl(fun(Id, At) -> failed({crashed, Id, node(), Why}, At) end, Host, Failed).

%%% Here

%% The process of that one on this node: as it is, or started.
role(#{child := #{id := Id} = Child, node := Node, how := How}, #host{keep = Keep, run = Run} = Host) ->
    case aco_keep:role(Id, Keep) of
        {ok, Pid} ->
            Pid;
        none ->
            Pid = case Child of
                      #{branch := none} ->
                          aco_colony_server:start_link(self(), Keep, Id, Run);
                      #{branch := Branch} ->
                          #{reliable := Reliable} = Run,
                          aco_submaster:start_link(self(), Keep, aco_tree:moved(Branch, Node), Reliable)
                  end,
            ok = aco_keep:put_role(Id, Pid, Keep),
            _ = aco_keep:made(Id, How, Keep) > ?IN_VAIN andalso failed({in_vain, Id, node(), ?IN_VAIN}, Host),
            Pid
    end.

registered(Group, #host{named = Named, run = Run, names = Names} = Host) ->
    case lists:member(Group, Named) of
        true ->
            Host;
        false ->
            case aco_group:register(Group, Run, self()) of
                {ok, Count} -> Host#host{named = [Group | Named], names = Names + Count};
                {error, Reason} -> exit({shutdown, Reason})
            end
    end.

%% The first host shares no group with one above it: it is named in the first that it makes.
named(Group, #host{names = 0} = Host) -> registered(Group, Host);
named(_, Host) -> Host.

read_peak(#host{peak = Peak} = Host) ->
    Host#host{peak = max(Peak, atoll_traffic:connections())}.

%%% Below

%% The host of that node is the one that was found, or one that is started.
below(#{node := Node, group := Group}, Found, #host{hosts = Hosts, run = Run} = Host) ->
    case {Found, Hosts} of
        {_, #{Node := {Known, _}}} when Found =:= none; Found =:= Known ->
            Host;
        {none, #{}} ->
            Started = spawn_opt(Node, ?MODULE, init, [Run, self(), Group], [monitor]),
            Host#host{hosts = Hosts#{Node => Started}};
        {_, #{}} ->
            Host#host{hosts = Hosts#{Node => {Found, monitor(process, Found)}}}
    end.

start_there(#{node := Node} = Request, #host{hosts = Hosts, starting = Starting} = Host) ->
    #{Node := {Below, _}} = Hosts,
    ok = aco_gather:send(Below, {start_role, self(), Request}),
    Host#host{starting = [Request | Starting]}.

not_started(#{asker := Asker, child := #{id := Id}, node := Node}) ->
    Asker ! {not_started, Id, Node},
    ok.

host_lost(Node, Why, #host{starting = Starting, lost = Lost} = Host) ->
    {Waiting, Others} = lists:partition(fun(#{node := At}) -> At =:= Node end, Starting),
    Left = Host#host{starting = Others, lost = [Node | Lost]},
    case Why of
        _ when Why =:= noconnection; Why =:= noproc; Why =:= normal ->
            ok = lists:foreach(fun not_started/1, Waiting),
            Left;
        {shutdown, Reason} ->
            failed(Reason, Left);
        {undef, _} ->
            failed({no_code, Node}, Left);
        _ ->
            failed({host_failed, Node, Why}, Left)
    end.

%%% Above

%% Whoever has had it start something last is its parent.
adopted(Parent, Group, #host{parent = Parent} = Host) ->
    Host#host{group = Group};
adopted(Parent, Group, #host{watch = Watch} = Host) ->
    true = demonitor(Watch, [flush]),
    Host#host{parent = Parent, watch = monitor(process, Parent), group = Group}.

failed(Reason, #host{parent = Parent} = Host) ->
    ok = aco_gather:send(Parent, {failed, Reason}),
    Host.

%% The run is lost with the master's node, and with any other where nothing is reliable.
orphaned(Parent, #host{run = #{nodes := [Master | _], reliable := Reliable}}) ->
    Ms = case Reliable andalso node(Parent) =/= Master of
             true -> ?ORPHAN_MS;
             false -> 0
         end,
    _ = erlang:send_after(Ms, self(), {orphaned, Parent}),
    ok.

%%% The end

-spec stop(Ms :: non_neg_integer(), #host{}) -> no_return().
stop(Ms, #host{run = Run, keep = Keep, parent = Parent, group = Group, hosts = Hosts} = Host) ->
    #host{reach = Reach, monkey = Monkey, before = Before, names = Names, lost = Lost} = Host,
    #host{peak = Peak} = read_peak(Host),
    Own = aco_report:own(#{before => Before, peak => Peak, names => Names, lost => Lost}, Keep),
    Below = [{Node, Pid, Ref} || {Node, {Pid, Ref}} <- maps:to_list(Hosts)],
    Ends = #{run => Run, keep => Keep, reach => Reach, monkey => Monkey, parent => Parent, group => Group,
             hosts => Below},
    ok = aco_gather:send(Parent, {stopped, self(), aco_end:all(Own, Ms, Ends)}),
    exit(normal).
