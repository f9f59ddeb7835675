%% SPDX-License-Identifier: Apache-2.0
%% @doc One server of a name in a group, on one node at a time: when it or its node ends, it is
%% started again, there or elsewhere.
%%
%% ```
%% init([]) ->
%%     Server = #{start => {counter, start_link, []}},
%%     {ok, {#{}, [atoll_singleton:child_spec(fish, counter, Server)]}}.
%%
%% %% In the module counter
%% start_link() -> gen_server:start_link({via, atoll_name, {fish, counter}}, ?MODULE, [], []).
%% '''
%%
%% Each node that may run the server has this child under a supervisor of its own, and so
%% <em>stands by</em>. The name is the lock: the server registers it before it does
%% anything, as every `via' name does, and the node on which it got it runs the server. The others follow
%% that process with a monitor. Who stands by has a name too, `{atoll_singleton, Name, Node}', so
%% each node finds the stand-bys in its own table, and there are no messages but those of the names.
%% `atoll_singleton_core' decides who tries when; docs/singletons.md has the whole.
%%
%% == Promised ==
%% <ul>
%% <li>Among connected nodes one server at most has the name. As long as a node that is in the group,
%%   stands by and can start it lives, one is running, or is being started.</li>
%% <li>A server that crashes is started again on its node, and after more than three times
%%   in ten seconds elsewhere. No failure is handed on to the supervisor above.</li>
%% <li>When its node dies, leaves the group, or stops the application or the supervisor there, another node
%%   starts it. In the last three cases the old one has ended before.</li>
%% <li>A node that is only busy keeps it, as it keeps its names.</li>
%% <li>Each side of a partition has one. When they meet, one loses the name by the group's rule, and
%%   is ended in the time of its `shutdown', or is killed where the rule is `random_exit'. It gets
%%   `{name_conflict, Group, Name, Winner}' as by any name, its node's subscribers the event
%%   `name_conflict', and the log a line.</li>
%% </ul>
%%
%% == Not promised ==
%% That there is never more than one: the sides of a partition have one each, and a node that has
%% stood still for so long that its connections are lost learns of the other when it goes on.
%% What must not happen twice has to be fenced where it happens. That the
%% state goes along: see the how-to. That a server moves to a better node while it runs.
%%
%% == How others do it ==
%% <dl>
%% <dt>`global' and a supervisor</dt><dd>The usual recipe: each node starts the server under the name, and who is refused
%%   fails its supervisor, or watches by itself. `global' needs a full mesh and locks all nodes.</dd>
%% <dt>Distributed applications of OTP</dt><dd>Failover of a whole application among
%%   configured nodes; both sides of a partition run it and go on so when they meet.</dd>
%% <dt>Horde</dt><dd>A supervisor whose children are shared by a CRDT. Here is no list of children that must be
%%   agreed on: who may run the server says so, with its own code.</dd>
%% <dt>syn</dt><dd>Names of the same kind; starting anew is left to the program.</dd>
%% <dt>Akka's cluster singleton</dt><dd>Runs on the oldest node, and needs a strategy against
%%   partitions to have one at all. Here no node is special, and each side has one.</dd>
%% </dl>
-module(atoll_singleton).

-behaviour(supervisor).

-export([child_spec/3, child_spec/4, start_link/3, start_link/4, stop/2, stand_bys/2, info/2, leave/0, format_error/1]).
-export([start_keeper/2, init/1]).

-export_type([server/0, params/0, error/0, info/0]).

-type server() :: supervisor:child_spec().
%% Of the server on this node, with `start' at least. `id' may be left out. `restart' is
%% `permanent', or left out. `shutdown' is how long a server has for its end, and so how long one that has
%% lost its name may run beside the winner: 1000 ms unless it is said.

-type params() :: atoll_place:params().
%% Which nodes may run it: those of the stand-bys that fit. `near' and `rank' say which are better; without
%% them a hash of node and name does. `among' is not for this, and `on_misfit' has no effect.

-type error() ::
    {not_a_server, term()}
    %% It is started again whatever its end; stop/2 ends it.
    | {not_permanent, term()}
    | {not_a_group, term()}
    | {place, atoll_place:error()}
    | {has_among, term()}
    %% These stand by, and have not said that they do so no more.
    | {not_stopped, [node()]}.

-type info() :: #{
    %% What this node does; `holder' while the server runs here.
    state := away | standby | holder | leaving,
    counts := #{
        %% Servers that were started, starts that were refused because another had the name, and
        %% that failed; those of them after a crash; how often it was left to others because of too many.
        started := non_neg_integer(),
        refused := non_neg_integer(),
        failed := non_neg_integer(),
        restarted := non_neg_integer(),
        left_to_others := non_neg_integer(),
        %% Names lost to another side, and servers ended in order.
        lost := non_neg_integer(),
        ended := non_neg_integer()
    }
}.

-define(SHUTDOWN_MS, 1000).
%% How long a node has to end its server when it is to be stopped, or the application is.
-define(STOP_MS, 15000).
-define(LEAVE_MS, 5000).

%% @doc As child_spec/4, for any node.
-spec child_spec(atom(), term(), server()) -> supervisor:child_spec().
child_spec(Group, Name, Server) ->
    child_spec(Group, Name, Server, #{}).

%% @doc The child for a supervisor of each node that may run the server. It is `transient', so that
%% after stop/2 it is not started again.
-spec child_spec(atom(), term(), server(), params()) -> supervisor:child_spec().
child_spec(Group, Name, Server, Params) ->
    #{
        id => {?MODULE, Group, Name},
        start => {?MODULE, start_link, [Group, Name, Server, Params]},
        restart => transient,
        type => supervisor
    }.

%% @doc As start_link/4, for any node.
-spec start_link(atom(), term(), server()) -> supervisor:startlink_ret() | {error, error()}.
start_link(Group, Name, Server) ->
    start_link(Group, Name, Server, #{}).

%% @doc This node stands by for the server of that name in the group, `undefined' for that of
%% the free nodes. It returns at once, and does so as well where the node is not in the group, or the
%% application does not run: then it stands by as soon as it can.
-spec start_link(atom(), term(), server(), params()) -> supervisor:startlink_ret() | {error, error()}.
start_link(Group, Name, Server, Params) ->
    case check(Group, Server, Params) of
        {ok, Spec} -> supervisor:start_link(?MODULE, {Group, Name, Spec, Params});
        {error, _} = Error -> Error
    end.

check(Group, _Server, _Params) when not is_atom(Group) ->
    {error, {not_a_group, Group}};
check(_Group, _Server, #{among := Among}) ->
    {error, {has_among, Among}};
check(_Group, Server, Params) ->
    case atoll_place_choice:new(Params) of
        {ok, _} -> check_server(as_map(Server));
        {error, Error} -> {error, {place, Error}}
    end.

check_server(#{restart := Restart}) when Restart =/= permanent ->
    {error, {not_permanent, Restart}};
check_server(Server) when is_map(Server) ->
    %% What has lost its name must not be kept alive by a supervisor that waits.
    Spec = maps:merge(#{id => server, shutdown => ?SHUTDOWN_MS}, Server),
    case supervisor:check_childspecs([Spec]) of
        ok -> {ok, Spec#{restart => temporary}};
        {error, _} -> {error, {not_a_server, Server}}
    end;
check_server(Server) ->
    {error, {not_a_server, Server}}.

as_map({Id, Start, Restart, Shutdown, Type, Modules}) ->
    #{id => Id, start => Start, restart => Restart, shutdown => Shutdown, type => Type, modules => Modules};
as_map(Server) ->
    Server.

%% @private
%% The server is the second child, added while it is to run here, by the keeper, which decides. When the keeper
%% crashes the server goes too, so that nobody runs whom nobody looks after.
-spec init({atom(), term(), supervisor:child_spec(), params()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Singleton) ->
    Keeper = #{
        id => keeper,
        start => {?MODULE, start_keeper, [self(), Singleton]},
        restart => transient,
        significant => true
    },
    {ok, {#{strategy => one_for_all, intensity => 3, period => 10, auto_shutdown => any_significant}, [Keeper]}}.

%% @private
-spec start_keeper(pid(), {atom(), term(), supervisor:child_spec(), params()}) -> gen_server:start_ret().
start_keeper(Supervisor, {Group, Name, Spec, Params}) ->
    atoll_singleton_keeper:start_link(#{
        supervisor => Supervisor,
        group => Group,
        name => Name,
        server => Spec,
        params => Params
    }).

%% @doc Ends the server, and nobody stands by for it any more; from any node of the group. Those that
%% do not answer within 15 s are named: they may go on. A node that is not in the
%% group at that moment, or cut off, hears nothing of it.
-spec stop(atom(), term()) -> ok | {error, error()}.
stop(Group, Name) ->
    %% Who has the server comes last: nobody is left then to start it.
    Holder =
        case atoll_name:whereis(Group, Name) of
            undefined -> none;
            Pid -> node(Pid)
        end,
    {Last, First} = lists:partition(fun({Node, _}) -> Node =:= Holder end, atoll_singleton_keeper:stand_bys(Group, Name)),
    case ask(First, stop, ?STOP_MS) ++ ask(Last, stop, ?STOP_MS) of
        [] -> ok;
        Nodes -> {error, {not_stopped, lists:sort(Nodes)}}
    end.

%% @private The application is about to be stopped on this node: its servers end first, and their
%% names go to others with nobody in between.
-spec leave() -> ok.
leave() ->
    Own = [{node(), Pid} || {_, {?MODULE, _, Node}} = Key <- atoll_name:names(), Node =:= node(), Pid <- own(Key)],
    _ = ask(Own, leave, ?LEAVE_MS),
    ok.

own({Group, Name}) ->
    case atoll_name:whereis(Group, Name) of
        Pid when is_pid(Pid), node(Pid) =:= node() -> [Pid];
        _ -> []
    end.

%% Those that have not answered. One that has ended stands by no more.
ask(Keepers, Request, Ms) ->
    Until = erlang:monotonic_time(millisecond) + Ms,
    Asked = [{Node, gen_server:send_request(Pid, Request)} || {Node, Pid} <- Keepers],
    [Node || {Node, Id} <- Asked, not has_answered(gen_server:receive_response(Id, max(0, Until - erlang:monotonic_time(millisecond))))].

has_answered({reply, ok}) -> true;
has_answered({error, {noconnection, _}}) -> false;
has_answered({error, _}) -> true;
has_answered(timeout) -> false.

%% @doc The nodes that stand by for it, as this node knows, with the one that runs it; sorted.
-spec stand_bys(atom(), term()) -> [node()].
stand_bys(Group, Name) ->
    [Node || {Node, _} <- atoll_singleton_keeper:stand_bys(Group, Name)].

%% @doc What this node does for it, and what was counted; `none' where it is not in the group or
%% does not stand by.
-spec info(atom(), term()) -> info() | none.
info(Group, Name) ->
    case own({Group, {?MODULE, Name, node()}}) of
        [Pid] -> ask_info(Pid);
        [] -> none
    end.

%% A process that has just ended has its name until the table knows.
ask_info(Keeper) ->
    try
        gen_server:call(Keeper, info)
    catch
        exit:{Gone, _} when Gone =:= noproc; Gone =:= normal; Gone =:= shutdown; Gone =:= killed -> none
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({not_a_server, Server}) ->
    io_lib:format("a server is described as a child of a supervisor, with start at least, and not as ~0tP", [Server, 12]);
format_error({not_permanent, Restart}) ->
    io_lib:format("a singleton is started again whatever its end, so restart is permanent and not ~0tP; atoll_singleton:stop/2 ends it", [Restart, 8]);
format_error({not_a_group, Group}) ->
    io_lib:format("a group is an atom, and not ~0tP", [Group, 8]);
format_error({has_among, Among}) ->
    io_lib:format("a singleton is placed among the nodes that stand by for it, and not among ~0tP", [Among, 12]);
format_error({place, Error}) ->
    atoll_place:format_error(Error);
format_error({not_stopped, Nodes}) ->
    io_lib:format("~ts did not say within ~b s that nobody stands by there any more", [
        lists:join(", ", [atom_to_list(Node) || Node <- Nodes]), ?STOP_MS div 1000
    ]).
