%% @doc What the command line asks of a node of a cluster that it holds; it runs on
%% that node, which finds this module where the command line does.
-module(atoll_cli_node).

-export([probe/0, names/1, await_settled/2, await_reach/2]).

-export_type([probe/0, unsettled/0]).

-type probe() :: #{
    %% The name of the strategy.
    overlay := atom(),
    %% How many nodes of the cluster it knows, itself included.
    members := non_neg_integer(),
    neighbours := [node()],
    %% What the parts of the overlay hold and count, see atoll:status().
    parts := off | #{atom() => term()},
    %% Its groups with their nodes; how many names it knows, and what was counted.
    groups := [{s_group:name(), [node()]}],
    names := restarting | #{atom() => term()}
}.

%% A link that comes up is told to nobody.
-define(LOOK_MS, 200).

-type unsettled() :: #{members := non_neg_integer(), neighbours := non_neg_integer()}.

%% @doc What `atoll status' says of a node's overlay, groups and names.
-spec probe() -> probe().
probe() ->
    #{overlay := Parts, members := Members, neighbours := Neighbours, groups := Groups, names := Names} = atoll:status(),
    #{
        overlay => application:get_env(atoll, overlay, off),
        members => Members,
        neighbours => Neighbours,
        parts => Parts,
        groups => Groups,
        names => Names
    }.

%% @doc The groups of this node, or that of the free nodes, with their names; of all, or of that
%% one alone.
-spec names(all | {group, s_group:name()}) -> atoll_cli_names:told().
names(Which) ->
    %% Otherwise this node is no free node, but none at all.
    true = is_pid(whereis(atoll_name)),
    Groups = [Group || {Name, _} = Group <- groups(s_group:own_s_groups()), Which =:= all orelse Which =:= {group, Name}],
    [
        {Group, Nodes, [
            {Name, Pid, Meta}
         || Name <- atoll_name:names(Group), {ok, Pid, Meta} <- [atoll_name:lookup(Group, Name)]
        ]}
     || {Group, Nodes} <- Groups
    ].

groups([]) -> [{undefined, s_group:own_nodes(undefined)}];
groups(Own) -> Own.

%% @doc Waits until this node knows so many members and, unless it is alone, has a
%% neighbour; at most for so long.
-spec await_settled(Members :: pos_integer(), Ms :: non_neg_integer()) -> ok | {late, unsettled()}.
await_settled(Count, Ms) ->
    ok = atoll:subscribe([member_up, member_down, neighbour_up]),
    Settled = await(Count, erlang:monotonic_time(millisecond) + Ms),
    ok = atoll:unsubscribe(),
    Settled.

await(Count, Deadline) ->
    case {length(atoll:members()), length(atoll:neighbours())} of
        {Count, Neighbours} when Neighbours > 0; Count =:= 1 ->
            ok;
        {Members, Neighbours} ->
            receive
                {atoll, _Kind, _Details} -> await(Count, Deadline)
            after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
                {late, #{members => Members, neighbours => Neighbours}}
            end
    end.

%% @doc Waits until this node knows how to reach so many others; at most for so long.
-spec await_reach(non_neg_integer(), Ms :: non_neg_integer()) -> ok | {late, non_neg_integer()}.
await_reach(Count, Ms) ->
    ok = atoll_interpreter:subscribe(atoll_route),
    Reached = await_reached(Count, erlang:monotonic_time(millisecond) + Ms),
    ok = atoll_interpreter:unsubscribe(atoll_route),
    Reached.

await_reached(Count, Deadline) ->
    {ok, Nodes} = atoll:reachable(),
    case length(Nodes) of
        Enough when Enough >= Count ->
            ok;
        Reached ->
            receive
                {atoll, atoll_route, _Notice} -> await_reached(Count, Deadline)
            after min(?LOOK_MS, max(0, Deadline - erlang:monotonic_time(millisecond))) ->
                case erlang:monotonic_time(millisecond) < Deadline of
                    true -> await_reached(Count, Deadline);
                    false -> {late, Reached}
                end
            end
    end.
