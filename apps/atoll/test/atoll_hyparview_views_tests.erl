%% SPDX-License-Identifier: Apache-2.0
%% The two views: what always holds, whatever is done to them.
-module(atoll_hyparview_views_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(V, atoll_hyparview_views).
-define(NODES, [n1, n2, n3, n4, n5, n6, n7, n8, n9]).
-define(ACTIVE_MAX, 3).
-define(PASSIVE_MAX, 4).

properties_test_() ->
    atoll_prop:tests([
        {"bounds hold, nobody is in both views or twice, nor this node in any", prop_holds(), 1000}
    ]).

prop_holds() ->
    ?FORALL(
        {Seed, Deeds},
        {integer(), list(deed())},
        begin
            {States, _} = lists:mapfoldl(
                fun(Deed, {Views0, Rand0}) ->
                    Done = do(Deed, Views0, Rand0),
                    {Done, Done}
                end,
                {new(), rand:seed_s(exsss, Seed)},
                Deeds
            ),
            lists:all(fun({Views, _}) -> holds(Views) end, States)
        end
    ).

deed() ->
    Node = oneof([self | ?NODES]),
    frequency([
        {3, {adopt, Node}},
        {2, {demote, Node}},
        {1, {forget, Node}},
        {2, {note, Node}},
        {2, {merge, list(Node), list(Node)}}
    ]).

do({adopt, Node}, Views0, Rand0) ->
    {Views, Evicted, Rand} = ?V:adopt(Node, Views0, Rand0),
    true = Node =:= self orelse ?V:is_active(Node, Views),
    true = expected(Evicted, Node, Views0, Views),
    {Views, Rand};
do({demote, Node}, Views0, Rand0) ->
    {Views, Rand} = ?V:demote(Node, Views0, Rand0),
    true = not ?V:is_active(Node, Views0) orelse lists:member(Node, ?V:passive(Views)),
    {Views, Rand};
do({forget, Node}, Views0, Rand) ->
    Views = ?V:forget(Node, Views0),
    false = lists:member(Node, ?V:active(Views) ++ ?V:passive(Views)),
    {Views, Rand};
do({note, Node}, Views0, Rand0) ->
    {Views, Rand} = ?V:note(Node, Views0, Rand0),
    true = Node =:= self orelse lists:member(Node, ?V:active(Views) ++ ?V:passive(Views)),
    {Views, Rand};
do({merge, Nodes, First}, Views0, Rand0) ->
    {Views, Rand} = ?V:merge(Nodes, First, Views0, Rand0),
    true = ?V:active(Views) =:= ?V:active(Views0),
    {Views, Rand}.

%% Somebody is evicted if and only if a new one comes and there is no room.
expected(none, Node, Before, _After) ->
    Node =:= self orelse ?V:is_active(Node, Before) orelse ?V:room(Before) > 0;
expected({evicted, Evicted}, Node, Before, After) ->
    Evicted =/= Node andalso ?V:room(Before) =:= 0 andalso not ?V:is_active(Node, Before) andalso
        ?V:is_active(Evicted, Before) andalso lists:member(Evicted, ?V:passive(After)).

holds(Views) ->
    Active = ?V:active(Views),
    Passive = ?V:passive(Views),
    Active =:= lists:usort(Active) andalso
        length(lists:usort(Active ++ Passive)) =:= length(Active) + length(Passive) andalso
        not lists:member(self, Active ++ Passive) andalso
        length(Active) =< ?ACTIVE_MAX andalso length(Passive) =< ?PASSIVE_MAX andalso
        ?V:size(Views) + ?V:room(Views) =:= ?ACTIVE_MAX.

new() -> ?V:new(self, ?ACTIVE_MAX, ?PASSIVE_MAX).

what_the_peer_was_sent_goes_first_test() ->
    Rand = rand:seed_s(exsss, 1),
    {Full, _} = ?V:merge([n1, n2, n3, n4], [], new(), Rand),
    {Merged, _} = ?V:merge([n5, n6], [n2, n4, n9], Full, Rand),
    ?assertEqual([n5, n6, n1, n3], ?V:passive(Merged)),
    ?assertEqual(2, ?V:dropped(Merged)).

%% There is room for four names, and for four spare ones.
what_is_forgotten_is_counted_test() ->
    Rand = rand:seed_s(exsss, 1),
    Counts = fun(Views) ->
        {?V:spare(Views), ?V:dropped(Views), ?V:spare_dropped(Views), ?V:names_dropped(Views)}
    end,
    {Full, Rand1} = ?V:merge(?NODES, [], new(), Rand),
    ?assertEqual({0, 0, 0, 5}, Counts(Full)),
    {Spare, Rand2} = ?V:merge([m1, m2, m3], [], Full, Rand1),
    ?assertEqual({3, 3, 0, 5}, Counts(Spare)),
    {Forgotten, _} = ?V:merge([m4, m5, m6], [], Spare, Rand2),
    ?assertEqual({4, 6, 2, 5}, Counts(Forgotten)).
