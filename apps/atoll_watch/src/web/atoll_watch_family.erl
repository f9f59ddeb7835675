%% SPDX-License-Identifier: Apache-2.0
%% @doc Families of nodes: those that do the same, by their names. What stands before the `@' without the number at its
%% end is the family, so `shop1@a', `shop-2@b' and `shop@c' are of `shop'. Nothing is configured and no node is asked.
%%
%% Not promised: that nodes of one family run the same program.
-module(atoll_watch_family).

-export([of_node/1, all/2]).

-export_type([family/0]).

-type family() :: #{
    name := binary(),
    nodes := pos_integer(),
    states := #{atoll_watch_core:state() => pos_integer()},
    %% Alarms that stand, and the worst of them.
    alarms := non_neg_integer(),
    worst := atoll_watch_rule:severity() | none,
    %% The mean of a share and the sum of what has a size, over the nodes that say it.
    figures := #{atom() => number()}
}.

-define(SUMS, [memory, processes, reductions_per_s, dist_in_per_s, dist_out_per_s, run_queue]).
-define(SEVERITIES, [critical, major, minor, warning]).

%% @doc The family that a node is of.
-spec of_node(node()) -> binary().
of_node(Node) ->
    [Name | _] = binary:split(atom_to_binary(Node), <<"@">>),
    case re:replace(Name, "[-_.]?[0-9]+$", "", [{return, binary}]) of
        <<>> -> Name;
        Family when is_binary(Family) -> Family
    end.

%% @doc All families of these nodes, by name.
-spec all([atoll_watch_store:row()], #{node() => {pos_integer(), atoll_watch_rule:severity()}}) -> [family()].
all(Rows, Alarms) ->
    ByName = maps:groups_from_list(fun(#{node := Node}) -> of_node(Node) end, Rows),
    [family(Name, Of, Alarms) || {Name, Of} <- lists:sort(maps:to_list(ByName))].

family(Name, Rows, Alarms) ->
    Standing = [Is || #{node := Node} <- Rows, {_, _} = Is <- [maps:get(Node, Alarms, none)]],
    #{
        name => Name, nodes => length(Rows),
        states => maps:map(fun(_, Of) -> length(Of) end, maps:groups_from_list(fun(#{state := State}) -> State end, Rows)),
        alarms => lists:sum([Count || {Count, _} <- Standing]),
        worst => hd([Severity || Severity <- ?SEVERITIES, lists:keymember(Severity, 2, Standing)] ++ [none]),
        figures => maps:from_list(
            [{utilisation, lists:sum(Said) / length(Said)} || [_ | _] = Said <- [said(utilisation, Rows)]] ++
            [{Key, lists:sum(Said)} || Key <- ?SUMS, [_ | _] = Said <- [said(Key, Rows)]])
    }.

said(Key, Rows) -> [Value || #{figures := #{Key := Value}} <- Rows].
