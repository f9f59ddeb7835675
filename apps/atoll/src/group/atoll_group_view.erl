%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a node knows of one group: who is in it, and since which operation.
%%
%% A view says of each node whether it is in or out, and by which operation: a register
%% `{in | out, Stamp}' that only grows. Of two the larger stamp wins; a deletion, once
%% known, wins over everything. A node without a register of its own is out, since the floor:
%% so a view need not have a line for each node that ever was a member. {@link
%% raise/2} brings the floor up to an operation, and forgets who was out before.
%%
%% {@link merge/2} takes of each node the later of what both say, the floor being what
%% they say of those without a register. It is associative, commutative and
%% idempotent: members that were cut off from each other agree as soon as they
%% have exchanged their views, in any order and any number of times.
%%
%% An operation that is older than the floor and that nobody knew who raised it is lost. So it
%% is raised when all members have said what they know: what may be lost is what former
%% members have done among themselves since they were removed.
%%
%% Example: n1 makes the group of n1, n2, n3; then n1 removes n3 while n2, cut off,
%% adds n4. Merged, it is n1, n2, n4. If n2 had deleted the group, it is gone.
%%
%% A group's identity is its name and the stamp of its creation: two groups of
%% one name are never merged.
-module(atoll_group_view).

-export([new/3, configured/2, add/3, remove/3, delete/2, raise/2, merge/2]).
-export([id/1, name/1, age/1, members/1, is_member/2, nodes/1, former/1, counter/1, digest/1]).
-export([to_plain/1, from_plain/1]).

-export_type([view/0, id/0, stamp/0, plain/0]).

-type stamp() :: {Counter :: pos_integer(), node(), Incarnation :: integer()}.
%% A Lamport counter, the node that ran the operation, and when the node's
%% group process started: a node that restarts counts from the beginning and
%% must not use a stamp again. The standard order of terms is the order of
%% operations: if one knew of the other, the other's is smaller.

-type id() :: {Name :: atom(), Created :: stamp()}.

-type floor() :: 0 | stamp().
%% In the order of terms a number is before any stamp.

-type register() :: {in | out, floor()}.

-record(view, {
    id :: id(),
    %% Those that are not `{out, Floor}'.
    registers :: #{node() => register()},
    floor = 0 :: floor(),
    %% In the order of terms `false' is before any stamp.
    deleted = false :: false | stamp()
}).

-opaque view() :: #view{}.

-type plain() :: {
    Name :: atom(), Created :: stamp(), [{node(), in | out, stamp()}], Deleted :: false | stamp(), floor()
}.
%% As it stands in files, whatever becomes of the record. Without the floor in those of version 1.

%% Of a group that stands in the configuration of its nodes: it is the same group on
%% all of them, though nobody has made it, and every change is later. No node has
%% that name.
-define(CONFIGURED, {1, configured, 0}).

%% @doc The view of a group that is being made.
-spec new(atom(), [node()], stamp()) -> view().
new(Name, Nodes, Stamp) ->
    #view{id = {Name, Stamp}, registers = all(in, Nodes, Stamp)}.

%% @doc The view of a group that is configured. Where the configurations of two nodes
%% differ, all nodes are members that any of them says.
-spec configured(atom(), [node()]) -> view().
configured(Name, Nodes) -> new(Name, Nodes, ?CONFIGURED).

%% @doc Nodes become members.
-spec add([node()], stamp(), view()) -> view().
add(Nodes, Stamp, View) -> set(in, Nodes, Stamp, View).

%% @doc Nodes are members no more.
-spec remove([node()], stamp(), view()) -> view().
remove(Nodes, Stamp, View) -> set(out, Nodes, Stamp, View).

set(Status, Nodes, Stamp, #view{id = Id} = View) ->
    merge(#view{id = Id, registers = all(Status, Nodes, Stamp)}, View).

all(Status, Nodes, Stamp) ->
    maps:from_list([{Node, {Status, Stamp}} || Node <- Nodes]).

%% @doc The group is gone, for good.
-spec delete(stamp(), view()) -> view().
delete(Stamp, #view{deleted = Deleted} = View) -> View#view{deleted = max(Deleted, Stamp)}.

%% @doc The floor is this operation now: who was out by then has no register any more.
-spec raise(stamp(), view()) -> view().
raise(Stamp, #view{registers = Registers, floor = Floor} = View) ->
    Left = maps:filter(fun(_, {Status, S}) -> Status =:= in orelse S > Stamp end, Registers),
    View#view{registers = Left, floor = max(Floor, Stamp)}.

%% @doc What both views know together. They must be of the same group.
-spec merge(view(), view()) -> view().
merge(#view{id = Id} = A, #view{id = Id} = B) ->
    Floor = max(A#view.floor, B#view.floor),
    Registers = maps:filter(
        fun(_, Register) -> Register =/= {out, Floor} end,
        maps:map(
            fun(Node, _) -> later(of_node(Node, A), of_node(Node, B)) end,
            maps:merge(A#view.registers, B#view.registers)
        )
    ),
    #view{id = Id, registers = Registers, floor = Floor, deleted = max(A#view.deleted, B#view.deleted)}.

of_node(Node, #view{registers = Registers, floor = Floor}) -> maps:get(Node, Registers, {out, Floor}).

later({_, S1} = R1, {_, S2}) when S1 > S2 -> R1;
later({_, S1}, {_, S2} = R2) when S1 < S2 -> R2;
%% The same operation, or the floor that was raised by it: it knew of the node.
later({in, _} = R1, _) -> R1;
later(_, R2) -> R2.

%% @doc The group's identity.
-spec id(view()) -> id().
id(#view{id = Id}) -> Id.

%% @doc The group's name.
-spec name(view()) -> atom().
name(#view{id = {Name, _}}) -> Name.

%% @doc Groups of one name sort by this from the oldest to the youngest. One that is
%% configured counts as the youngest: what a program has made knows more than a file.
-spec age(view()) -> {Name :: atom(), IsConfigured :: boolean(), stamp()}.
age(#view{id = {Name, Stamp}}) -> {Name, Stamp =:= ?CONFIGURED, Stamp}.

%% @doc The members, sorted. A deleted group has none.
-spec members(view()) -> [node()].
members(#view{deleted = false, registers = Registers}) ->
    lists:sort([Node || {Node, {in, _}} <- maps:to_list(Registers)]);
members(#view{}) ->
    [].

%% @doc Whether the node is a member.
-spec is_member(node(), view()) -> boolean().
is_member(Node, #view{deleted = false, registers = Registers}) ->
    case Registers of
        #{Node := {in, _}} -> true;
        #{} -> false
    end;
is_member(_Node, #view{}) ->
    false.

%% @doc Every node that is a member, or was one since the floor, sorted: who has to know of a
%% change.
-spec nodes(view()) -> [node()].
nodes(#view{registers = Registers}) -> lists:sort(maps:keys(Registers)).

%% @doc How many of these are members no more.
-spec former(view()) -> non_neg_integer().
former(#view{registers = Registers}) -> length([out || {out, _} <- maps:values(Registers)]).

%% @doc The largest counter of any operation in the view: a later change has a larger one. It is
%% no version: two views with the same counter may differ.
-spec counter(view()) -> pos_integer().
counter(#view{registers = Registers, floor = Floor, deleted = Deleted, id = {_, Created}}) ->
    Stamps = [Created, Floor, Deleted | [Stamp || {_, Stamp} <- maps:values(Registers)]],
    lists:max([Counter || {Counter, _, _} <- Stamps]).

%% @doc A fingerprint: equal views, equal digests, on every node and release.
-spec digest(view()) -> non_neg_integer().
digest(#view{id = Id, registers = Registers, floor = Floor, deleted = Deleted}) ->
    erlang:phash2({Id, lists:sort(maps:to_list(Registers)), Floor, Deleted}, 1 bsl 32).

%% @doc All of it, for a file.
-spec to_plain(view()) -> plain().
to_plain(#view{id = {Name, Created}, registers = Registers, floor = Floor, deleted = Deleted}) ->
    {Name, Created, [{Node, S, Stamp} || {Node, {S, Stamp}} <- lists:sort(maps:to_list(Registers))], Deleted, Floor}.

%% @doc What a file says, if it is what {@link to_plain/1} makes.
-spec from_plain(term()) -> {ok, view()} | error.
from_plain({Name, Created, Registers, Deleted}) ->
    from_plain({Name, Created, Registers, Deleted, 0});
from_plain({Name, Created, Registers, Deleted, Floor}) when is_atom(Name), is_list(Registers) ->
    case
        is_stamp(Created) andalso (Deleted =:= false orelse is_stamp(Deleted)) andalso
            (Floor =:= 0 orelse is_stamp(Floor)) andalso are_registers(Registers)
    of
        true ->
            Map = maps:from_list([{Node, {S, Stamp}} || {Node, S, Stamp} <- Registers]),
            {ok, #view{id = {Name, Created}, registers = Map, floor = Floor, deleted = Deleted}};
        false ->
            error
    end;
from_plain(_) ->
    error.

are_registers([]) ->
    true;
are_registers([{Node, Status, Stamp} | Rest]) when is_atom(Node), Status =:= in orelse Status =:= out ->
    is_stamp(Stamp) andalso are_registers(Rest);
are_registers(_) ->
    false.

is_stamp({Counter, Node, Incarnation}) ->
    is_integer(Counter) andalso Counter > 0 andalso is_atom(Node) andalso is_integer(Incarnation);
is_stamp(_) ->
    false.
