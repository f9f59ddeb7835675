%% SPDX-License-Identifier: Apache-2.0
%% Views merge to the same whatever the order, and a deletion is for good.
-module(atoll_group_view_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, [n1, n2, n3, n4]).
-define(ID, {1, n1, 0}).

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 1000)
     || {Title, Property} <- [
            {"merging is commutative", prop_commutative()},
            {"merging is associative", prop_associative()},
            {"merging is idempotent", prop_idempotent()},
            {"what is merged is never older", prop_counter_grows()},
            {"what all members know is kept when the floor is raised", prop_raised()},
            {"equal views have equal digests, different ones do not", prop_digest()}
        ]
    ].

%% What a program has made counts as older than what a file says, and stays.
a_node_in_two_groups_of_a_name_leaves_the_configured_one_test() ->
    Configured = atoll_group_view:configured(g, [n1, n2]),
    Made = atoll_group_view:new(g, [n1, n3], {9, n3, 0}),
    Store = lists:foldl(fun atoll_group_store:learn/2, atoll_group_store:new(n1, 5), [Configured, Made]),
    ?assertEqual(Made, atoll_group_store:own(g, Store)),
    ?assertEqual([Configured], atoll_group_store:rivals(Store)).

configurations_that_differ_are_added_test() ->
    Merged = merge(atoll_group_view:configured(g, [n1, n2]), atoll_group_view:configured(g, [n2, n3])),
    ?assertEqual([n1, n2, n3], atoll_group_view:members(Merged)),
    Removed = atoll_group_view:remove([n3], {2, n1, 0}, Merged),
    ?assertEqual([n1, n2], atoll_group_view:members(merge(atoll_group_view:configured(g, [n1, n2, n3]), Removed))).

prop_commutative() ->
    ?FORALL({A, B}, {view(), view()}, merge(A, B) =:= merge(B, A)).

prop_associative() ->
    ?FORALL({A, B, C}, {view(), view(), view()}, merge(A, merge(B, C)) =:= merge(merge(A, B), C)).

prop_idempotent() ->
    ?FORALL({A, B}, {view(), view()}, merge(merge(A, B), B) =:= merge(A, B)).

prop_counter_grows() ->
    ?FORALL({A, B}, {view(), view()}, counter(merge(A, B)) =:= max(counter(A), counter(B))).

%% All who take part know the same when it is raised: nothing of what any of them knew is lost, now
%% or with what comes later, and who was out has no line any more.
prop_raised() ->
    ?FORALL({Views, Later}, {non_empty(list(view())), list(oneof(?NODES))}, begin
        Known = lists:foldl(fun merge/2, hd(Views), tl(Views)),
        Raised = atoll_group_view:raise({counter(Known) + 1, n1, 0}, Known),
        Removed = atoll_group_view:remove(Later, {counter(Known) + 2, n1, 0}, Raised),
        lists:all(
            fun(View) ->
                merge(View, Raised) =:= Raised andalso
                    atoll_group_view:members(merge(View, Removed)) =:= atoll_group_view:members(Known) -- Later
            end,
            [Known | Views]
        ) andalso atoll_group_view:former(Raised) =:= 0
    end).

prop_digest() ->
    ?FORALL(
        {A, B},
        {view(), view()},
        (A =:= B) =:= (atoll_group_view:digest(A) =:= atoll_group_view:digest(B))
    ).

%% A history of operations on one group. A stamp is one operation, so what it did
%% is a function of the stamp.
view() ->
    ?LET(
        Stamps,
        list(stamp()),
        ?LET(Deleted, frequency([{4, false}, {1, stamp()}]), build(Stamps, Deleted))
    ).

stamp() -> {choose(2, 30), oneof(?NODES), 0}.

build(Stamps, Deleted) ->
    View = lists:foldl(
        fun(Stamp, V) ->
            case erlang:phash2(Stamp, 3) of
                0 -> atoll_group_view:add(subset(Stamp), Stamp, V);
                1 -> atoll_group_view:remove(subset(Stamp), Stamp, V);
                2 -> atoll_group_view:raise(Stamp, V)
            end
        end,
        atoll_group_view:new(g, [n1, n2], ?ID),
        Stamps
    ),
    case Deleted of
        false -> View;
        Stamp -> atoll_group_view:delete(Stamp, View)
    end.

subset(Stamp) -> [N || N <- ?NODES, erlang:phash2({Stamp, N}, 2) =:= 0].

merge(A, B) -> atoll_group_view:merge(A, B).
counter(View) -> atoll_group_view:counter(View).

who_was_forgotten_is_out_until_it_is_added_again_test() ->
    Old = atoll_group_view:new(g, [n1, n2, n3], ?ID),
    Raised = atoll_group_view:raise({3, n1, 0}, atoll_group_view:remove([n3], {2, n1, 0}, Old)),
    ?assertEqual([n1, n2], atoll_group_view:nodes(Raised)),
    ?assertEqual([n1, n2], atoll_group_view:members(merge(Old, Raised))),
    Back = atoll_group_view:add([n3], {4, n2, 0}, Raised),
    ?assertEqual([n1, n2, n3], atoll_group_view:members(merge(merge(Old, Raised), Back))),
    %% What a file said before there were floors.
    {Name, Created, Registers, Deleted, 0} = atoll_group_view:to_plain(Old),
    ?assertEqual({ok, Old}, atoll_group_view:from_plain({Name, Created, Registers, Deleted})).

a_deletion_wins_over_a_later_addition_test() ->
    View = atoll_group_view:new(g, [n1, n2], ?ID),
    Deleted = atoll_group_view:delete({2, n2, 0}, View),
    Grown = atoll_group_view:add([n3], {3, n1, 0}, View),
    ?assertEqual([], atoll_group_view:members(merge(Deleted, Grown))),
    ?assertEqual([], atoll_group_view:members(merge(Grown, Deleted))).

the_later_operation_on_a_node_wins_test() ->
    View = atoll_group_view:new(g, [n1, n2, n3], ?ID),
    Without = atoll_group_view:remove([n3], {2, n1, 0}, View),
    Back = atoll_group_view:add([n3], {3, n2, 0}, View),
    ?assertEqual([n1, n2, n3], atoll_group_view:members(merge(Without, Back))),
    ?assertEqual([n1, n2, n3], atoll_group_view:members(merge(Back, Without))).

groups_of_one_name_are_not_merged_test() ->
    A = atoll_group_view:new(g, [n1], {1, n1, 0}),
    B = atoll_group_view:new(g, [n2], {1, n2, 0}),
    ?assertError(function_clause, merge(A, B)).

who_left_still_has_to_know_test() ->
    View = atoll_group_view:remove([n2], {2, n1, 0}, atoll_group_view:new(g, [n1, n2], ?ID)),
    ?assertEqual([n1], atoll_group_view:members(View)),
    ?assertEqual([n1, n2], atoll_group_view:nodes(View)).
