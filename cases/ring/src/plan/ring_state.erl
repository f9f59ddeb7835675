%% SPDX-License-Identifier: Apache-2.0
%% @doc What all nodes of a ring agree on: who is in it, who has which partition, and which partitions are on their way. Pure.
%%
%% It is gossiped in small pieces ({@link ring_gossip}). Whatever pieces come in whatever order, however often, all nodes that have
%% had the same ones have the same state: a member has a counter, and the higher one counts, and of two with the same one the status that ends more; of two plans the later one; and what
%% has arrived is a set that belongs to one plan. Nodes that begin with other settings have another first plan, and take the larger one, if they have as many partitions.
%%
%% A plan says who had each partition when it was made (`owners'), and who is to have it (`next'). Until a partition has
%% arrived its old owner answers for it. Only the claimant makes plans, the first of the members that are well, and only
%% when all has arrived, or when somebody is gone for good. Two claimants on the two sides of a partition of the network make
%% two plans. One of them wins when they meet, and what stands elsewhere then is handed to its owner as hints are.
-module(ring_state).

-export([new/3, empty/2, is_status/1, set_member/3, status_of/2, members/1, members/2, plan/3, out/2, arrived/2, apply/3]).
-export([owner/2, owners/1, pending/1, pending/2, target/3, is_settled/1, partitions/1, copies/1, claimant/2, epoch/1]).
-export([digest/1, since/2, fits/3]).

-export_type([ring/0, status/0, piece/0, digest/0]).

-type status() ::
    %% wants to be in, and has nothing yet
    joining
    | valid
    %% wants to be out, and has something still
    | leaving
    %% is out
    | gone.

-opaque ring() :: #{
    partitions := ring_hash:count(),
    %% How many copies a key has: no two of so many partitions in a row should have one node.
    copies := pos_integer(),
    members := #{node() => {Counter :: pos_integer(), status()}},
    %% Of the plan: the later one is the larger one. That of an empty ring has the epoch 0.
    plan := plan(),
    owners := ring_claim:owners(),
    next := #{ring_hash:partition() => node()},
    arrived := ordsets:ordset(ring_hash:partition())
}.

-type plan() :: {Epoch :: non_neg_integer(), node() | none | {first, Settings :: non_neg_integer()}}.
%% Its name.

-type piece() ::
    {{member, node()}, {pos_integer(), status()}}
    | {plan, {plan(), Owners :: {tuple(), binary()}, Next :: [{ring_hash:partition(), node()}]}}
    | {arrived, {plan(), [ring_hash:partition()]}}.
%% What is told to others: a name, and a value.

-type digest() :: {[{node(), {pos_integer(), status()}}], plan(), ordsets:ordset(ring_hash:partition())}.

%% @doc The ring with which all of these nodes begin, each by itself and all with the same.
-spec new(ring_hash:count(), Copies :: pos_integer(), [node(), ...]) -> ring().
new(Partitions, Copies, Nodes) ->
    #{
        partitions => Partitions, copies => Copies, members => maps:from_keys(Nodes, {1, valid}), plan => {1, {first, erlang:phash2({Partitions, Copies, lists:sort(Nodes)})}},
        owners => ring_claim:claim(erlang:make_tuple(Partitions, none), Nodes, Copies), next => #{}, arrived => []
    }.

%% @doc That of a node which is in no ring yet, and takes the first one that it hears of.
-spec empty(ring_hash:count(), Copies :: pos_integer()) -> ring().
empty(Partitions, Copies) ->
    #{
        partitions => Partitions, copies => Copies, members => #{}, plan => {0, none}, owners => erlang:make_tuple(Partitions, none),
        next => #{}, arrived => []
    }.

%% @doc Whether that is a status.
-spec is_status(term()) -> boolean().
is_status(Status) -> lists:member(Status, [joining, valid, leaving, gone]).

%% @doc The piece that gives a node this status.
-spec set_member(node(), status(), ring()) -> piece().
set_member(Node, Status, #{members := Members}) ->
    {Counter, _} = maps:get(Node, Members, {0, gone}),
    {{member, Node}, {Counter + 1, Status}}.

%% @doc The status of a node; that of one that was never in is `gone'.
-spec status_of(node(), ring()) -> status().
status_of(Node, #{members := Members}) -> element(2, maps:get(Node, Members, {0, gone})).

%% @doc All that are in, or about to be, with their status.
-spec members(ring()) -> [{node(), status()}].
members(#{members := Members}) -> [{Node, Status} || {Node, {_, Status}} <- lists:sort(maps:to_list(Members)), Status =/= gone].

%% @doc Those with one of these statuses.
-spec members([status()], ring()) -> [node()].
members(Wanted, Ring) -> [Node || {Node, Status} <- members(Ring), lists:member(Status, Wanted)].

%% @doc The first of the members that has partitions to care for and is well; that is for `Up' to say.
-spec claimant([node()], ring()) -> node() | none.
claimant(Up, Ring) ->
    case [Node || Node <- members([valid, leaving], Ring), lists:member(Node, Up)] of
        [Node | _] -> Node;
        [] -> none
    end.

%% @doc What the claimant tells when something is to change, and nothing if not: a plan, and who is a member in full with it. While partitions
%% are on their way there is no new plan, unless one of the old is with, or on its way to, somebody who is gone.
-spec plan(node(), [node()], ring()) -> [piece()].
plan(Claimant, Up, #{copies := Copies} = Ring) ->
    case {claimant(Up, Ring), members([joining, valid], Ring)} of
        {Claimant, [_ | _] = Wanted} -> planned(Claimant, Wanted, Copies, Ring);
        _ -> []
    end.

planned(Claimant, Wanted, Copies, #{partitions := Count} = Ring) ->
    Owners = owners(Ring),
    Known = [Node || {Node, _} <- members(Ring)],
    Has = lists:usort(tuple_to_list(Owners)),
    Orphaned = (Has ++ maps:values(pending(Ring))) -- Known =/= [],
    IsNeeded = Has -- Wanted =/= [] orelse members([joining], Ring) =/= [] orelse length(Has) < min(Count, length(Wanted)),
    case (is_settled(Ring) andalso IsNeeded) orelse Orphaned of
        false -> [];
        true ->
            To = ring_claim:claim(Owners, Wanted, Copies),
            %% Whoever is gone hands nothing over.
            From = list_to_tuple([case lists:member(A, Known) of true -> A; false -> B end || {A, B} <- lists:zip(tuple_to_list(Owners), tuple_to_list(To))]),
            Next = [{P, B} || {P, A, B} <- lists:zip3(lists:seq(0, tuple_size(From) - 1), tuple_to_list(From), tuple_to_list(To)), A =/= B],
            [{plan, {{epoch(Ring) + 1, Claimant}, pack(From), Next}} | [set_member(Node, valid, Ring) || Node <- members([joining], Ring)]]
    end.

%% @doc What a node that is leaving tells when it has nothing left, neither partitions nor hints: then it is out.
-spec out(node(), ring()) -> [piece()].
out(Node, Ring) ->
    case status_of(Node, Ring) =:= leaving andalso is_settled(Ring) andalso not lists:member(Node, tuple_to_list(owners(Ring))) of
        true -> [set_member(Node, gone, Ring)];
        false -> []
    end.

%% @doc The piece that says that these partitions have arrived.
-spec arrived([ring_hash:partition()], ring()) -> piece().
arrived(Partitions, #{plan := Plan}) -> {arrived, {Plan, Partitions}}.

%% @doc What a piece does; `same' if nothing. What nobody here can read does nothing.
-spec apply(Name :: term(), Value :: term(), ring()) -> {changed, ring()} | same.
apply({member, Node}, {Counter, Status}, #{members := Members} = Ring) ->
    case is_status(Status) andalso is_later({Counter, Status}, maps:get(Node, Members, {0, gone})) of
        true -> {changed, Ring#{members := Members#{Node => {Counter, Status}}}};
        false -> same
    end;
apply(plan, {Plan, Packed, Next}, #{plan := {Epoch, _} = Known, partitions := Count} = Ring) when Plan > Known ->
    Owners = unpack(Packed),
    case tuple_size(Owners) of
        Size when Size =:= Count; Epoch =:= 0 -> {changed, Ring#{partitions := Size, plan := Plan, owners := Owners, next := maps:from_list(Next), arrived := []}};
        _ -> same
    end;
apply(arrived, {Plan, Partitions}, #{plan := Plan, arrived := Arrived} = Ring) ->
    case ordsets:subtract(ordsets:from_list(Partitions), Arrived) of
        [] -> same;
        New -> {changed, Ring#{arrived := ordsets:union(New, Arrived)}}
    end;
apply(_, _, _) ->
    same.

is_later({Counter, A}, {Counter, B}) -> ends(A) > ends(B);
is_later({A, _}, {B, _}) -> A > B.

ends(joining) -> 0;
ends(valid) -> 1;
ends(leaving) -> 2;
ends(gone) -> 3.

%% @doc Whether a piece can be of this ring: a plan has as many partitions, unless the ring is empty.
-spec fits(Name :: term(), Value :: term(), ring()) -> boolean().
fits(plan, {_, {_, Numbers}, _}, #{partitions := Count, plan := {Epoch, _}}) -> Epoch =:= 0 orelse byte_size(Numbers) =:= 2 * Count;
fits(_, _, _) -> true.

%% A node is an atom of thirty bytes, and there may be many thousand partitions.
pack(Owners) ->
    Nodes = lists:usort(tuple_to_list(Owners)),
    Number = maps:from_list(lists:zip(Nodes, lists:seq(1, length(Nodes)))),
    {list_to_tuple(Nodes), << <<(map_get(Node, Number)):16>> || Node <- tuple_to_list(Owners) >>}.

unpack({Nodes, Numbers}) -> list_to_tuple([element(N, Nodes) || <<N:16>> <= Numbers]).

%% @doc Who answers for a partition now.
-spec owner(ring_hash:partition(), ring()) -> node() | none.
owner(Partition, #{owners := Owners, next := Next, arrived := Arrived}) ->
    case Next of
        #{Partition := To} ->
            case ordsets:is_element(Partition, Arrived) of
                true -> To;
                false -> element(Partition + 1, Owners)
            end;
        #{} -> element(Partition + 1, Owners)
    end.

%% @doc Who answers for each.
-spec owners(ring()) -> ring_claim:owners().
owners(#{owners := Owners, next := Next, arrived := Arrived}) ->
    lists:foldl(fun(P, Now) -> setelement(P + 1, Now, map_get(P, Next)) end, Owners, [P || P <- Arrived, is_map_key(P, Next)]).

%% @doc What is on its way, and to whom.
-spec pending(ring()) -> #{ring_hash:partition() => node()}.
pending(#{next := Next, arrived := Arrived}) -> maps:without(Arrived, Next).

%% @doc To whom a partition is on its way.
-spec pending(ring_hash:partition(), ring()) -> node() | none.
pending(Partition, #{next := Next, arrived := Arrived}) ->
    case Next of
        #{Partition := To} -> case ordsets:is_element(Partition, Arrived) of true -> none; false -> To end;
        #{} -> none
    end.

%% @doc To whom a node is to hand what it has of a partition: the next owner if it is the owner, and else the owner, as of a hint.
-spec target(ring_hash:partition(), node(), ring()) -> {next | owner, node()} | none.
target(Partition, Node, Ring) ->
    case {owner(Partition, Ring), pending(Partition, Ring)} of
        {Node, none} -> none;
        {Node, To} -> {next, To};
        {_, Node} -> none;
        {Owner, _} -> {owner, Owner}
    end.

%% @doc Whether nothing is on its way.
-spec is_settled(ring()) -> boolean().
is_settled(Ring) -> map_size(pending(Ring)) =:= 0.

%% @doc How many partitions there are.
-spec partitions(ring()) -> ring_hash:count().
partitions(#{partitions := N}) -> N.

%% @doc How many copies a key has.
-spec copies(ring()) -> pos_integer().
copies(#{copies := N}) -> N.

%% @doc How many plans there were; 0 of an empty ring.
-spec epoch(ring()) -> non_neg_integer().
epoch(#{plan := {Epoch, _}}) -> Epoch.

%% @doc What this state has, for another one to compare with.
-spec digest(ring()) -> digest().
digest(#{members := Members, plan := Plan, arrived := Arrived}) -> {lists:sort(maps:to_list(Members)), Plan, Arrived}.

%% @doc The pieces that somebody with that digest lacks.
-spec since(digest(), ring()) -> [piece()].
since({Members, Plan, Arrived}, #{members := Own, plan := OwnPlan, arrived := OwnArrived} = Ring) ->
    Known = maps:from_list(Members),
    [{{member, Node}, Is} || {Node, Is} <- lists:sort(maps:to_list(Own)), is_later(Is, maps:get(Node, Known, {0, gone}))] ++
        case OwnPlan of
            Plan -> [{arrived, {Plan, New}} || [_ | _] = New <- [ordsets:subtract(OwnArrived, Arrived)]];
            _ when OwnPlan > Plan -> [told(Ring) | [{arrived, {OwnPlan, OwnArrived}} || OwnArrived =/= []]];
            _ -> []
        end.

told(#{plan := Plan, owners := Owners, next := Next}) -> {plan, {Plan, pack(Owners), lists:sort(maps:to_list(Next))}}.
