%% @doc Orbit: all vertices that a set of generators reaches from vertex 0.
%%
%% The set is enumerated by a distributed hash table. Every vertex has one
%% owner, a worker process; the owner of a new vertex computes its images and
%% sends each to its own owner; and the end is known by credit that travels
%% inside the messages (`orbit_credit'). The modes differ in how the nodes are
%% connected, never in the answer:
%%
%%   seq     one process
%%   par     the workers of one node
%%   mesh    the workers of all nodes, every node connected with every other
%%   groups  nodes in s_groups, the groups' gateways in one more
%%   ring    the same, but each gateway knows only its two neighbours
%%
%% No process of a run has a name, and all that it sends goes to pids that it
%% was given in this run. So a late message of an earlier run has nobody of
%% this run to come to.
-module(orbit).

-export([node_options/2, check/1, run/1, format_error/1]).

-export_type([spec/0, result/0, reason/0]).

-type spec() :: orbit_run:spec().

-type reason() :: orbit_run:reason() | orbit_failure:reason().

-type result() :: #{
    %% vertices in the set
    size := pos_integer(),
    %% messages with a vertex that reached a worker, whichever way they came:
    %% 1 + size times the number of generators
    vertices_received := pos_integer(),
    %% from the first vertex until every worker has given its result
    wall_ms := non_neg_integer(),
    %% equal for equal sets
    checksum := non_neg_integer(),
    %% how many
    nodes := pos_integer(),
    %% the most connections of its own each node had at once, hidden ones too;
    %% see atoll_traffic
    connections := #{node() => non_neg_integer()},
    connections_max := non_neg_integer(),
    connections_mean := float(),
    %% what crossed from node to node until the results were there
    messages := orbit_meter:messages(),
    %% all packets that the nodes have sent each other meanwhile, see atoll_traffic
    packets := orbit_tally:packets(),
    %% sorted; only if asked for
    vertices => [orbit_generators:vertex(), ...]
}.

%% @doc How the nodes of a mode are started, for {@link atoll_cluster:start/1}; `groups-native' is the
%% program of the mesh over groups ({@link orbit_native}). Where there are groups, nodes that are in
%% none are to be connected with nobody.
-spec node_options(seq | par | mesh | groups | ring | 'groups-native', GroupSize :: pos_integer()) ->
    #{connect_all := boolean(), apps := [atom()], args := [string()] | fun(([node(), ...]) -> [string()])}.
node_options('groups-native', Size) ->
    #{connect_all => false, apps => [atoll], args => fun(Nodes) -> orbit_native:args(Nodes, Size) end};
node_options(Mode, _Size) when Mode =:= groups; Mode =:= ring ->
    #{connect_all => false, apps => [atoll], args => ["-atoll", "free_group", "off"]};
node_options(_Mode, _Size) ->
    #{connect_all => true, apps => [], args => []}.

%% @doc Finds all that can be known to be wrong before the start. Nothing is
%% started, and no node is asked.
-spec check(spec()) -> ok | {error, orbit_run:reason()}.
check(Spec) ->
    case orbit_run:new(Spec) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

%% @doc Runs Orbit from the calling process, whose node must be the first of
%% the nodes. When it returns a result, all that it had started has ended and
%% its s_groups are gone. After an error the same is done on all nodes that can
%% still be told, and those that cannot do it by themselves as soon as they see
%% it. If the caller dies, the run is taken down.
-spec run(spec()) -> {ok, result()} | {error, reason()}.
run(Spec) ->
    case orbit_run:new(Spec) of
        {ok, #{mode := seq} = Run} -> answer(orbit_seq:run(Run), Run);
        {ok, Run} -> answer(orbit_master:run(Run), Run);
        {error, Reason} -> {error, Reason}
    end.

%% @doc One plain sentence that says what went wrong, and names the node, the
%% value or the limit.
-spec format_error(reason()) -> unicode:chardata().
format_error(Reason) ->
    orbit_failure:format(Reason).

answer({ok, Tally, WallMs}, #{vertices := Keep}) ->
    #{connections := Connections, vertices := Vertices} = Tally,
    Counts = maps:values(Connections),
    Result = #{
        size => maps:get(size, Tally),
        vertices_received => maps:get(received, Tally),
        wall_ms => WallMs,
        checksum => maps:get(checksum, Tally),
        nodes => map_size(Connections),
        connections => Connections,
        connections_max => lists:max(Counts),
        connections_mean => lists:sum(Counts) / length(Counts),
        messages => maps:get(messages, Tally),
        packets => maps:get(packets, Tally)
    },
    case Keep of
        true -> {ok, Result#{vertices => lists:sort(Vertices)}};
        false -> {ok, Result}
    end;
answer({error, Reason}, _) ->
    {error, Reason}.
