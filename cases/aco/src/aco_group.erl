%% @doc The s_groups of a run, and the names of its hosts: in groups, in `global', or
%% nowhere.
%%
%% Groups have the run's own id in their names, so that two runs on one cluster never
%% share one. That is one atom for each group and run.
-module(aco_group).

-export([ensure/2, has/2, add/3, leave/2]).
-export([register/3, whereis/3, whereis/4]).

-export_type([run/0]).

%% What is needed of a run here.
-type run() :: #{id := string(), mode := aco_tree:mode(), _ => _}.

%% How long a node may take to be let into a group.
-define(ADD_MS, 10_000).
-define(AGAIN_MS, 100).
%% How often a node is tried to be connected before it is taken for dead.
-define(TRIES, 2).

%% @doc Makes a group, of which this node must be a member, with all of its nodes in it.
%% Nothing is to be done if this node is in it already.
-spec ensure(aco_tree:group(), run()) -> ok | {error, aco_failure:reason()}.
ensure(#{nodes := Nodes} = Group, Run) ->
    Name = name(Group, Run),
    case s_group:own_nodes(Name) of
        [_ | _] -> ok;
        [] -> whole(Name, Nodes, fun() -> s_group:new_s_group(Name, Nodes) end)
    end.

%% The library leaves a node out that it cannot reach; to a run that is a failure.
whole(Name, Nodes, Do) ->
    try Do() of
        {ok, Name, Members} ->
            case Nodes -- Members of
                [] -> ok;
                [Missing | _] -> {error, {left_out, Missing}}
            end;
        {error, Reason} ->
            {error, {group_failed, node(), Reason}}
    catch
        exit:{noproc, _} -> {error, {group_failed, node(), s_group_not_runnig}}
    end.

%% @doc Whether a node is in a group of this node.
-spec has(node(), {aco_tree:group(), run()}) -> boolean().
has(Node, {Group, Run}) ->
    lists:member(Node, s_group:own_nodes(name(Group, Run))).

%% @doc Has a node in a group of this node, within 10 s. A node that has just lost others may
%% not be ready for it at first; one that cannot even be connected is given up at once.
-spec add(node(), aco_tree:group(), run()) -> ok | {error, aco_failure:reason()}.
add(Node, Group, Run) ->
    add(Node, Group, Run, erlang:monotonic_time(millisecond) + ?ADD_MS).

add(Node, Group, Run, Deadline) ->
    Name = name(Group, Run),
    Added = whole(Name, [Node], fun() -> s_group:add_nodes(Name, [Node]) end),
    Ends = Added =:= ok orelse erlang:monotonic_time(millisecond) >= Deadline,
    case Ends orelse not connects(Node, ?TRIES) of
        true -> Added;
        false -> receive after ?AGAIN_MS -> add(Node, Group, Run, Deadline) end
    end.

%% Two nodes that connect each other at the same moment may refuse each other once.
connects(_, 0) ->
    false;
connects(Node, Tries) ->
    case net_kernel:connect_node(Node) of
        true -> true;
        _ -> receive after ?AGAIN_MS -> connects(Node, Tries - 1) end
    end.

%% @doc Deletes all groups of the run that this node is in, but for that one. That another
%% member deletes it too is no error.
-spec leave(run(), Kept :: aco_tree:group() | none) -> ok.
leave(#{mode := sr} = Run, Kept) ->
    Prefix = prefix(Run),
    Own = [Name || {Name, _} <- s_group:own_s_groups(), lists:prefix(Prefix, atom_to_list(Name))],
    lists:foreach(fun s_group:delete_s_group/1, Own -- [name(Group, Run) || #{} = Group <- [Kept]]);
leave(_, _) ->
    ok.

%% @doc Gives a process the name of the host of this node: in that group in the mode sr, in
%% `global' in gr, nowhere in the others. Answers how many names it has got. They go with the
%% process.
-spec register(aco_tree:group() | none, run(), pid()) -> {ok, 0 | 1} | {error, aco_failure:reason()}.
register(#{} = Group, #{mode := sr} = Run, Pid) ->
    Name = name(Group, Run),
    case s_group:register_name(Name, host(node(), Run), Pid) of
        yes -> {ok, 1};
        {no, Reason} -> {error, {name_failed, node(), Reason}}
    end;
register(_, #{mode := gr} = Run, Pid) ->
    case global:register_name(host(node(), Run), Pid) of
        yes -> {ok, 1};
        no -> {error, {name_failed, node(), name_or_pid_already_registered}}
    end;
register(_, _, _) ->
    {ok, 0}.

%% @doc The host of a node by its name, as it stands in a group of this node.
-spec whereis(node(), aco_tree:group() | none, run()) -> pid() | undefined.
whereis(Node, #{} = Group, #{mode := sr} = Run) ->
    s_group:whereis_name(name(Group, Run), host(Node, Run));
whereis(Node, _, #{mode := gr} = Run) ->
    global:whereis_name(host(Node, Run));
whereis(_, _, _) ->
    undefined.

%% @doc The same as a node itself has it, in one of its groups.
-spec whereis(ask, node(), aco_tree:group(), run()) -> pid() | undefined.
whereis(ask, Node, Group, Run) ->
    s_group:whereis_name(Node, name(Group, Run), host(Node, Run)).

host(Node, #{id := Id}) ->
    {aco, Id, Node}.

name(#{id := {Kind, Path}}, Run) ->
    list_to_atom(lists:concat([prefix(Run), Kind | ["_" ++ integer_to_list(I) || I <- Path]])).

prefix(#{id := Id}) ->
    "aco_" ++ Id ++ "_".
