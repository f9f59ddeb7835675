%% SPDX-License-Identifier: Apache-2.0
%% What the operations on one group name mean when they happen one at a time: the
%% reference that concurrent histories are held against. The state is the list
%% of the groups of that name, each its sorted members; a node is in at most one.
-module(atoll_group_model).

-export([run/3, explains/3]).

-type groups() :: [[node()]].
-type operation() :: {new | add | remove | delete, Name :: atom(), [node()]}.
-type call() :: {
    Caller :: node(), operation(), Started :: integer(), Answer :: term(), Ended :: integer()
}.

-spec run(node(), operation(), groups()) -> {term(), groups()}.
run(_Caller, {new, Name, []}, Groups) ->
    {{ok, Name, []}, Groups};
run(Caller, {new, Name, Nodes}, Groups) ->
    case group_of(Caller, Groups) of
        none ->
            Members = [N || N <- lists:usort(Nodes), group_of(N, Groups) =:= none],
            {{ok, Name, Members}, lists:sort([Members | Groups])};
        _ ->
            {{error, s_group_name_is_in_use}, Groups}
    end;
run(Caller, {add, Name, Nodes}, Groups) ->
    Others = lists:delete(Caller, lists:usort(Nodes)),
    case {Others, group_of(Caller, Groups)} of
        {[], _} ->
            {{ok, Name, []}, Groups};
        {_, none} ->
            {{error, node_does_not_belong_to_the_s_group}, Groups};
        {_, Group} ->
            case Others -- Group of
                [] ->
                    {{ok, Name, Others}, Groups};
                _ ->
                    New = [N || N <- Others, group_of(N, Groups) =:= none],
                    {{ok, Name, New}, replace(Group, lists:usort(New ++ Group), Groups)}
            end
    end;
run(Caller, {remove, Name, Nodes}, Groups) ->
    case {lists:member(Caller, Nodes), group_of(Caller, Groups)} of
        {true, _} -> {{error, "cannot_remove_itself"}, Groups};
        {false, none} -> {{error, {"node_does_not_belong_to_s_group", Name}}, Groups};
        {false, Group} -> {ok, replace(Group, Group -- Nodes, Groups)}
    end;
run(Caller, {delete, Name, []}, Groups) ->
    case group_of(Caller, Groups) of
        none -> {{error, {"remote_s_group", Name}}, Groups};
        Group -> {ok, lists:delete(Group, Groups)}
    end.

%% Is there an order of the calls that gives these answers and leads from the
%% first groups to the last? A change that was answered before a call began comes
%% before it; an answer that changed nothing says what its own node knew, so it
%% is in order with the calls of that node only. Given at once, it may even come before a
%% new group of others that was answered before: who made that one had heard that a node is
%% in yet another group, which not all of its members know at that moment.
-spec explains([call()], groups(), groups()) -> boolean().
explains([], Groups, Last) ->
    Groups =:= lists:sort(Last);
explains(Calls, Groups, Last) ->
    lists:any(
        fun({Caller, Operation, _, Answer, _} = Call) ->
            case run(Caller, Operation, Groups) of
                {Answer, Next} -> explains(lists:delete(Call, Calls), Next, Last);
                {_Other, _} -> false
            end
        end,
        [Call || Call <- Calls, may_be_first(Call, Calls)]
    ).

may_be_first({Node, _, Started, _, _} = First, Calls) ->
    not lists:any(
        fun({Caller, Operation, _, _, Ended} = Call) ->
            Ended < Started andalso
                (Caller =:= Node orelse may_have_changed(Call) andalso not (is_of_own_knowledge(First) andalso is_of_others(Operation, Node)))
        end,
        Calls
    ).

is_of_own_knowledge({_, _, At, {error, _}, At}) -> true;
is_of_own_knowledge(_) -> false.

is_of_others({new, _, Nodes}, Node) -> not lists:member(Node, Nodes);
is_of_others(_, _) -> false.

may_have_changed({_, _, _, {error, _}, _}) -> false;
may_have_changed({_, _, Started, _, Ended}) -> Ended > Started.

group_of(Node, Groups) ->
    case [G || G <- Groups, lists:member(Node, G)] of
        [Group] -> Group;
        [] -> none
    end.

replace(Old, New, Groups) ->
    lists:sort([New | lists:delete(Old, Groups)]).
