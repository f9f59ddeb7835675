%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What an operation on a group means: when it makes sense, whom it concerns,
%% what it changes, and what its caller is told. The answers are those of SD
%% Erlang's `s_group', with its mixture of atoms and strings, so that programs
%% written for it need no change.
-module(atoll_group_rules).

-export([check/3, concerned/2, allows/4, change/4, notices/2, info/4]).

-export_type([operation/0, answer/0, published/0, notice/0, removal/0]).

-type operation() :: {new | add | remove | delete, Name :: atom(), [node()]}.
%% The nodes are sorted and each is in it once; none for `delete'.

-type view() :: atoll_group_view:view().

-type removal() :: majority | always.
%% Who may remove members that do not answer.

-type answer() ::
    ok
    | {ok, Name :: atom(), [node()]}
    | {error, term()}.

-type published() :: {Name :: atom(), atoll_group_view:id(), Members :: [node()]}.

-type notice() ::
    {s_group, created | deleted | nodes_added | nodes_removed, Name :: atom(), [node()]}.

%% @doc Whether the operation makes sense at node `Self', whose own group of that
%% name is given: go on with that view, or answer at once.
-spec check(operation(), node(), none | view()) -> {go, none | view()} | {done, answer()}.
check({new, undefined, _}, _Self, _Own) ->
    {done, {error, reserved_s_group_name}};
check({new, Name, []}, _Self, _Own) ->
    {done, {ok, Name, []}};
check({new, _Name, Nodes}, Self, Own) ->
    case {lists:member(Self, Nodes), Own} of
        {false, _} -> {done, {error, remote_s_group}};
        {true, none} -> {go, none};
        {true, _} -> {done, {error, s_group_name_is_in_use}}
    end;
check({add, Name, Nodes}, Self, Own) ->
    case {lists:delete(Self, Nodes), Own} of
        {[], _} ->
            {done, {ok, Name, []}};
        {_, none} ->
            {done, {error, node_does_not_belong_to_the_s_group}};
        {Others, View} ->
            case Others -- atoll_group_view:members(View) of
                [] -> {done, {ok, Name, Others}};
                _ -> {go, View}
            end
    end;
check({remove, Name, Nodes}, Self, Own) ->
    case {lists:member(Self, Nodes), Own} of
        {true, _} ->
            {done, {error, "cannot_remove_itself"}};
        {false, none} ->
            {done, {error, {"node_does_not_belong_to_s_group", Name}}};
        {false, View} ->
            case [Node || Node <- Nodes, atoll_group_view:is_member(Node, View)] of
                [] -> {done, ok};
                _ -> {go, View}
            end
    end;
check({delete, Name, []}, _Self, Own) ->
    case Own of
        none -> {done, {error, {"remote_s_group", Name}}};
        View -> {go, View}
    end.

%% @doc The nodes that the operation needs a lock at: the members, and those
%% that are to be.
-spec concerned(operation(), none | view()) -> [node()].
concerned({new, _, Nodes}, none) -> Nodes;
concerned({add, _, Nodes}, View) -> lists:umerge(atoll_group_view:members(View), Nodes);
concerned({_, _, _}, View) -> atoll_group_view:members(View).

%% @doc Whether these members are enough for the operation. Each side of a partition could
%% remove the other, and when they meet nobody would be left: so members that do not answer are
%% removed by more than half of all, or by half of them with the first by name.
-spec allows(operation(), none | view(), Granted :: [node()], removal()) -> ok | {error, {no_majority, [node()]}}.
allows({remove, _Name, Nodes}, View, Granted, majority) ->
    [First | _] = Members = atoll_group_view:members(View),
    Agree = [Node || Node <- Members, lists:member(Node, Granted)],
    Half = 2 * length(Agree) - length(Members),
    case [Node || Node <- Nodes, lists:member(Node, Members), not lists:member(Node, Granted)] of
        [_ | _] = Silent when Half < 0; Half =:= 0, hd(Agree) =/= First -> {error, {no_majority, Silent}};
        _ -> ok
    end;
allows(_Operation, _View, _Granted, _Removal) ->
    ok.

%% @doc The view after the operation, which these nodes have agreed to, and the
%% answer to its caller.
-spec change(operation(), none | view(), Granted :: [node()], atoll_group_view:stamp()) ->
    {view(), answer()}.
change({new, Name, _}, none, Granted, Stamp) ->
    {atoll_group_view:new(Name, Granted, Stamp), {ok, Name, Granted}};
change({add, Name, Nodes}, View, Granted, Stamp) ->
    Added = [
        Node
     || Node <- Nodes, lists:member(Node, Granted), not atoll_group_view:is_member(Node, View)
    ],
    {atoll_group_view:add(Added, Stamp, View), {ok, Name, Added}};
change({remove, _Name, Nodes}, View, _Granted, Stamp) ->
    Removed = [Node || Node <- Nodes, atoll_group_view:is_member(Node, View)],
    {atoll_group_view:remove(Removed, Stamp, View), ok};
change({delete, _Name, []}, View, _Granted, Stamp) ->
    {atoll_group_view:delete(Stamp, View), ok}.

%% @doc What happened to a node's own groups between two moments.
-spec notices(Before :: [published()], Now :: [published()]) -> [notice()].
notices(Before, Now) ->
    Deleted = [
        {s_group, deleted, Name, Nodes}
     || {Name, Id, Nodes} <- Before, not lists:keymember(Id, 2, Now)
    ],
    Deleted ++ lists:append([changes(lists:keyfind(Id, 2, Before), G) || {_, Id, _} = G <- Now]).

%% @doc The properties of `s_group:info/0', of a node that is connected with
%% these and has forgotten so many groups that it was in. What belongs to names,
%% to configured groups and to attributes is empty.
-spec info(node(), [published()], Connected :: [node()], Forgotten :: non_neg_integer()) ->
    [{atom(), term()}].
info(Self, Groups, Connected, Forgotten) ->
    Nodes = lists:umerge([Members || {_, _, Members} <- Groups]),
    {Synced, NoContact} = lists:partition(
        fun(Node) -> lists:member(Node, Connected) end, lists:delete(Self, Nodes)
    ),
    State =
        case Groups of
            [] -> no_conf;
            _ -> synced
        end,
    [
        {state, State},
        {own_group_names, [Name || {Name, _, _} <- Groups]},
        {own_group_nodes, Nodes},
        {synced_nodes, Synced},
        {sync_error, []},
        {no_contact, NoContact},
        {own_s_groups, [{Name, Members} || {Name, _, Members} <- Groups]},
        {other_groups, []},
        {monitoring, []},
        {attributes, []},
        {forgotten, Forgotten}
    ].

changes(false, {Name, _, Nodes}) ->
    [{s_group, created, Name, Nodes}];
changes({_, _, Old}, {Name, _, New}) ->
    [{s_group, nodes_added, Name, New -- Old} || New -- Old =/= []] ++
        [{s_group, nodes_removed, Name, Old -- New} || Old -- New =/= []].
