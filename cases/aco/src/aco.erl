%% @doc ACO: colonies of ants look for the best order of the jobs of one machine, those
%% that minimise the weighted tardiness.
%%
%% Each colony runs some generations of ants, and tells its best; the best of all
%% is told to all; and so on, round after round. The modes differ in how the nodes
%% are connected and in what becomes of what is lost, never in the answer, which is that
%% of {@link aco_seq} with as many colonies:
%%
%%   tl  a master and colonies, every node connected with every other
%%   ml  a tree of submasters between them ({@link aco_tree}), connected like that
%%   gr  the same, and what is lost is started again and found by its name in `global'
%%   sr  the same in s_groups: nodes are connected with, and names known in, their own
%%       groups alone
%%
%% In gr and sr a run in which processes are killed, or nodes but the first, ends with
%% the same answer as any other. It ends with a sentence instead if a process is killed
%% more than 50 times without getting anything done in between (a colony a generation, a
%% submaster to find all those below it), or that many ants of a colony and 5 for each that
%% it has without one that comes to its end; if one fails by itself; or if a submaster or
%% colony has no node left to go on on. In tl and ml any loss ends it, with a sentence. The
%% master's node is needed in all modes.
%%
%% Not promised: that a run gets over nodes that live and only lost each other.
-module(aco).

-export([check/1, run/1, format_error/1]).

-export_type([spec/0, result/0, reason/0]).

-type spec() :: aco_run:spec().

-type reason() :: aco_run:reason() | aco_failure:reason().

-type result() :: #{
    best := aco_schedule:cost(),
    order := aco_schedule:order(),
    %% the colony that has found it
    colony := aco_colony:id(),
    optimum := aco_schedule:cost() | none,
    %% (best - optimum) / optimum, for an optimum of 0 the best itself
    gap := float() | none,
    rounds := pos_integer(),
    %% until all processes were there; and from then to the end of the last round
    build_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    mode := aco_tree:mode(),
    %% how many
    nodes := pos_integer(),
    colonies := pos_integer(),
    roles := [{node(), aco_tree:role()}],
    %% that the nodes have sent each other, see atoll_traffic. A node that was lost took its
    %% count with it, and so did the connections with it: then there are more.
    packets_sent := non_neg_integer() | unknown,
    %% the most that each node had at once, hidden ones too
    connections := #{node() => non_neg_integer()},
    connections_max := non_neg_integer(),
    connections_mean := float(),
    %% that the nodes had at the end
    names := non_neg_integer(),
    %% Processes that the monkeys have killed; and those that were made again, on whatever
    %% node and whatever had ended them. Where no node is lost these are as many as the kills,
    %% but for those at the very end and for ants that had just found what they were to.
    %% Ants that end with their colony are in neither number.
    kills := non_neg_integer(),
    restarts := non_neg_integer(),
    %% whose counts are missing
    nodes_lost := [node()]
}.

%% @doc Finds all that can be known to be wrong before the start. Nothing is
%% started, and no node is asked.
-spec check(spec()) -> ok | {error, aco_run:reason()}.
check(Spec) ->
    case aco_run:new(Spec) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

%% @doc Runs it from the calling process, whose node must be the first of the nodes.
%% In sr every node runs the application `atoll', with `-connect_all false'. When it
%% returns, all that it had started has ended and its s_groups are gone, on all nodes that
%% can still be told; others do it by themselves. If the caller dies, the run is taken down.
-spec run(spec()) -> {ok, result()} | {error, reason()}.
run(Spec) ->
    case aco_run:new(Spec) of
        {ok, Run} ->
            case aco_master:run(Run) of
                {ok, Ended} -> {ok, result(Ended, Run)};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% @doc One plain sentence that says what went wrong, and names the node, the
%% value or the limit.
-spec format_error(reason()) -> unicode:chardata().
format_error(Reason) ->
    aco_failure:format(Reason).

result(#{best := {Cost, Colony, Order}, report := Report} = Ended, Run) ->
    #{mode := Mode, tree := Tree, nodes := Nodes, optimum := Optimum} = Run,
    #{packets := Packets, connections := Connections, lost := Lost} = Report,
    Counts = maps:values(Connections),
    Same = maps:merge(maps:with([rounds, build_ms, wall_ms], Ended), maps:with([kills, restarts, names], Report)),
    maps:merge(Same, #{
        best => Cost,
        order => Order,
        colony => Colony,
        optimum => Optimum,
        gap => gap(Cost, Optimum),
        mode => Mode,
        nodes => length(Nodes),
        colonies => length(aco_tree:colonies(Tree)),
        roles => aco_tree:roles(Tree),
        packets_sent => Packets,
        connections => Connections,
        connections_max => lists:max(Counts),
        connections_mean => lists:sum(Counts) / length(Counts),
        nodes_lost => Lost
    }).

gap(_, none) -> none;
gap(Cost, Optimum) -> (Cost - Optimum) / max(1, Optimum).
