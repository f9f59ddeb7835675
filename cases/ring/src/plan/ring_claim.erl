%% SPDX-License-Identifier: Apache-2.0
%% @doc Which node has which partition. Pure, and the same everywhere for the same arguments.
%%
%% Promised: of two nodes none has two partitions more than the other. Of any N partitions that follow each other no two have the
%% same node, wherever there are nodes enough for that and the search below finds it; from 2N nodes on it does in all tests. As few partitions move as balance
%% takes, and some more where spacing takes it: with 1,024 partitions less than a fifth more for each node that joins, from one node to 64, but for the third, and for each that leaves while six stay.
%%
%% Each node that has too few takes from those that have too many, at places that are spread over the ring. What then stands
%% too near to another partition of its node is exchanged with a partition elsewhere, as long as that makes it better. With few nodes that may not do:
%% then they take turns round the ring, and more moves.
-module(ring_claim).

-export([claim/3, quotas/2, crowded/2]).

-export_type([owners/0]).

-type owners() :: tuple().
%% Of each partition, from 0, its node; `none' for one that nobody has.

-type quota() :: #{node() => non_neg_integer()}.

%% Exchanges that are tried before it is left as it is.
-define(TRIES, 4000).

%% @doc Who has what, of these members, after these owners. `Spacing' is N.
-spec claim(owners(), [node(), ...], Spacing :: pos_integer()) -> owners().
claim(Owners, Members, Spacing) ->
    Nodes = lists:usort(Members),
    case length(Nodes) =< Spacing of
        %% No other order has so many nodes in a row without one of them twice. What is left at the seam cannot be helped.
        true -> in_turn(Owners, Nodes);
        false -> claim(Owners, Nodes, quotas(Owners, Nodes), Spacing - 1)
    end.

claim(Owners, Nodes, Quotas, Near) ->
    Freed = freed(Owners, Nodes),
    Given = newcomers(Freed, Quotas, Near),
    Found = spaced(orphans(Given, Quotas, Near), Owners, Near),
    case crowded(Found, Near + 1) of
        [] -> Found;
        Crowded ->
            Anew = spaced(in_turn(Owners, Nodes), Owners, Near),
            case length(crowded(Anew, Near + 1)) < length(Crowded) of
                true -> Anew;
                false -> Found
            end
    end.

%% All nodes in turn, round and round: each in the turn in which it keeps most of what it has.
in_turn(Owners, Nodes) ->
    Count = tuple_size(Owners),
    Turns = length(Nodes),
    Keeps = lists:foldl(fun(P, All) -> maps:update_with({P rem Turns, owner(P, Owners)}, fun(N) -> N + 1 end, 1, All) end, #{}, lists:seq(0, Count - 1)),
    Wishes = lists:reverse(lists:sort([{N, Turn, Node} || {{Turn, Node}, N} <- maps:to_list(Keeps), lists:member(Node, Nodes)])),
    Given = lists:foldl(
        fun({_, Turn, Node}, Has) ->
            case is_map_key(Turn, Has) orelse lists:member(Node, maps:values(Has)) of
                true -> Has;
                false -> Has#{Turn => Node}
            end
        end,
        #{},
        Wishes
    ),
    Left = lists:zip(lists:seq(0, Turns - 1) -- maps:keys(Given), Nodes -- maps:values(Given)),
    All = maps:merge(Given, maps:from_list(Left)),
    list_to_tuple([map_get(P rem Turns, All) || P <- lists:seq(0, Count - 1)]).

%% @doc How many partitions each member is to have: those that have most keep one more, where it does not come out even.
-spec quotas(owners(), [node(), ...]) -> quota().
quotas(Owners, Nodes) ->
    Has = counts(Owners),
    Count = tuple_size(Owners),
    Least = Count div length(Nodes),
    More = Count rem length(Nodes),
    Sorted = lists:sort(fun(A, B) -> {-maps:get(A, Has, 0), A} =< {-maps:get(B, Has, 0), B} end, Nodes),
    maps:from_list([{Node, case I =< More of true -> Least + 1; false -> Least end} || {I, Node} <- lists:zip(lists:seq(1, length(Nodes)), Sorted)]).

%% @doc The partitions of which another one of the same node lies less than so many steps away.
-spec crowded(owners(), Spacing :: pos_integer()) -> [ring_hash:partition()].
crowded(Owners, Spacing) -> [P || P <- partitions(Owners), clashes(P, owner(P, Owners), Owners, Spacing - 1) > 0].

counts(Owners) ->
    lists:foldl(fun(Node, Has) -> maps:update_with(Node, fun(N) -> N + 1 end, 1, Has) end, #{}, tuple_to_list(Owners)).

partitions(Owners) -> lists:seq(0, tuple_size(Owners) - 1).

owner(Partition, Owners) -> element(Partition + 1, Owners).

set(Partition, Node, Owners) -> setelement(Partition + 1, Owners, Node).

%% Of those who are no members: nobody's.
freed(Owners, Nodes) ->
    Is = maps:from_keys(Nodes, true),
    list_to_tuple([case Is of #{Node := true} -> Node; #{} -> none end || Node <- tuple_to_list(Owners)]).

%% How many partitions within so many steps have this node, too.
clashes(_, none, _, _) -> 0;
clashes(Partition, Node, Owners, Near) ->
    Count = tuple_size(Owners),
    length([
        true
     || Step <- lists:seq(1, Near),
        Other <- lists:usort([(Partition + Step) rem Count, (Partition - Step + Count * Near) rem Count]),
        Other =/= Partition,
        owner(Other, Owners) =:= Node
    ]).

%% Each node that has none takes what it is to have from those with too many, or nobody's, spread evenly; each begins somewhat further on.
newcomers(Owners, Quotas, Near) ->
    Has = counts(Owners),
    New = [Node || Node <- lists:sort(maps:keys(Quotas)), not is_map_key(Node, Has)],
    {Taken, _} = lists:foldl(
        fun({I, Node}, {Now, Spare}) -> spread(Node, map_get(Node, Quotas), I / (length(New) + 1), Now, Spare, Near) end,
        {Owners, spare(Has, Quotas)},
        lists:zip(lists:seq(1, length(New)), New)
    ),
    Taken.

%% What each may give.
spare(Has, Quotas) -> maps:map(fun(Node, N) -> N - maps:get(Node, Quotas, 0) end, Has).

spread(_, 0, _, Owners, Spare, _) ->
    {Owners, Spare};
spread(Node, Wants, Offset, Owners, Spare, Near) ->
    Count = tuple_size(Owners),
    lists:foldl(
        fun(I, {Now, Left}) ->
            At = trunc((I + Offset) * Count / Wants) rem Count,
            case nearest(At, fun(P) -> maps:get(owner(P, Now), Left, 0) > 0 andalso clashes(P, Node, Now, Near) =:= 0 end, Count) of
                none -> {Now, Left};
                {ok, P} ->
                    From = owner(P, Now),
                    {set(P, Node, Now), Left#{From := map_get(From, Left) - 1}}
            end
        end,
        {Owners, Spare},
        lists:seq(0, Wants - 1)
    ).

%% The partition nearest to this one for which that holds.
nearest(At, Holds, Count) -> nearest(At, Holds, Count, 0).

nearest(_, _, Count, Step) when Step > Count div 2 -> none;
nearest(At, Holds, Count, Step) ->
    case [P || P <- [(At + Step) rem Count, (At - Step + Count) rem Count], Holds(P)] of
        [P | _] -> {ok, P};
        [] -> nearest(At, Holds, Count, Step + 1)
    end.

%% What is nobody's, or somebody's who has too many still, goes to whoever lacks some and has the fewest near. One who lacks but the one
%% that not all can have gives that up for another one with as many.
orphans(Owners, Quotas, Near) ->
    Has = maps:with(maps:keys(Quotas), maps:merge(maps:map(fun(_, _) -> 0 end, Quotas), counts(Owners))),
    Lacks = maps:filter(fun(_, N) -> N > 0 end, maps:map(fun(Node, Quota) -> Quota - map_get(Node, Has) end, Quotas)),
    Least = tuple_size(Owners) div map_size(Quotas),
    First = #{owners => Owners, lacks => Lacks, has => Has, spare => spare(counts(Owners), Quotas)},
    #{owners := Full} = lists:foldl(fun(P, Acc) -> adopted(P, Acc, Least, Near) end, First, given_first(Owners)),
    Full.

%% Nobody's first, then those that stand too near to another one of their node, then all others.
given_first(Owners) ->
    {Nobodys, Others} = lists:partition(fun(P) -> owner(P, Owners) =:= none end, partitions(Owners)),
    Nobodys ++ Others.

adopted(_, #{lacks := Lacks} = Acc, _, _) when map_size(Lacks) =:= 0 -> Acc;
adopted(P, #{owners := Owners, lacks := Lacks, has := Has, spare := Spare} = Acc, Least, Near) ->
    From = owner(P, Owners),
    case maps:get(From, Spare, 0) > 0 of
        false -> Acc;
        true ->
            Last = [Node || {Node, 1} <- lists:sort(maps:to_list(Lacks)), map_get(Node, Has) =:= Least],
            Others = [{Node, 0} || Last =/= [], {Node, N} <- maps:to_list(Has), N =:= Least, not is_map_key(Node, Lacks)],
            {_, _, To} = lists:min([{clashes(P, Node, Owners, Near), -N, Node} || {Node, N} <- maps:to_list(Lacks) ++ Others, Node =/= From]),
            Left = case Lacks of
                #{To := 1} -> maps:remove(To, Lacks);
                #{To := N} -> Lacks#{To := N - 1};
                #{} -> maps:remove(hd(Last), Lacks)
            end,
            Acc#{
                owners := set(P, To, Owners), lacks := Left, has := maps:update_with(To, fun(N) -> N + 1 end, Has),
                spare := Spare#{From := map_get(From, Spare) - 1}
            }
    end.

%% Exchanges partitions of two nodes as long as fewer stand too near, or as many do and fewer have moved.
spaced(Owners, _, 0) -> Owners;
spaced(Owners, Before, Near) -> spaced(queue:from_list(crowded(Owners, Near + 1)), Owners, Before, Near, ?TRIES).

spaced(_, Owners, _, _, 0) -> Owners;
spaced(Crowded, Owners, Before, Near, Tries) ->
    case queue:out(Crowded) of
        {empty, _} -> Owners;
        {{value, P}, Rest} ->
            case clashes(P, owner(P, Owners), Owners, Near) of
                0 -> spaced(Rest, Owners, Before, Near, Tries - 1);
                _ ->
                    case exchange(P, Owners, Before, Near) of
                        none -> spaced(Rest, Owners, Before, Near, Tries - 1);
                        {ok, Q} ->
                            Now = swapped(P, Q, Owners),
                            Again = [R || R <- around(P, Near, Now) ++ around(Q, Near, Now), clashes(R, owner(R, Now), Now, Near) > 0],
                            spaced(queue:join(Rest, queue:from_list(lists:usort(Again))), Now, Before, Near, Tries - 1)
                    end
            end
    end.

around(P, Near, Owners) ->
    Count = tuple_size(Owners),
    [(P + Step + Count * Near) rem Count || Step <- lists:seq(-Near, Near)].

swapped(P, Q, Owners) -> set(P, owner(Q, Owners), set(Q, owner(P, Owners), Owners)).

%% The partition with which an exchange helps most: fewer that are too near, then fewer that move.
exchange(P, Owners, Before, Near) ->
    Count = tuple_size(Owners),
    best([(P + Step) rem Count || Step <- lists:seq(1, Count - 1)], P, Owners, Before, Near, {{0, 0}, none}).

%% The first with which something is won and nothing more moves is good enough.
best([], _, _, _, _, {_, none}) -> none;
best([], _, _, _, _, {_, Q}) -> {ok, Q};
best([Q | Rest], P, Owners, Before, Near, {Best, _} = Known) ->
    case owner(Q, Owners) =:= owner(P, Owners) of
        true -> best(Rest, P, Owners, Before, Near, Known);
        false ->
            case gain(P, Q, Owners, Before, Near) of
                {Clashes, Moved} when Clashes < 0, Moved =< 0 -> {ok, Q};
                {Clashes, _} = Gain when Clashes < 0, Gain < Best -> best(Rest, P, Owners, Before, Near, {Gain, Q});
                _ -> best(Rest, P, Owners, Before, Near, Known)
            end
    end.

gain(P, Q, Owners, Before, Near) ->
    After = swapped(P, Q, Owners),
    Sum = fun(Now) -> clashes(P, owner(P, Now), Now, Near) + clashes(Q, owner(Q, Now), Now, Near) end,
    Moved = fun(Now) -> length([true || R <- [P, Q], owner(R, Now) =/= owner(R, Before)]) end,
    {Sum(After) - Sum(Owners), Moved(After) - Moved(Owners)}.
