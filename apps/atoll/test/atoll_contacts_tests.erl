%% SPDX-License-Identifier: Apache-2.0
%% The contacts of one join, one after the other.
-module(atoll_contacts_tests).

-include_lib("eunit/include/eunit.hrl").

those(Nodes) -> those(Nodes, 1).

those(Nodes, Seed) ->
    {Contacts, _} = atoll_contacts:put(Nodes, rand:seed_s(exsss, Seed), atoll_contacts:new()),
    Contacts.

each_is_asked_once_and_each_node_begins_with_another_test() ->
    Orders = lists:usort([order(those([a, b, c], Seed)) || Seed <- lists:seq(1, 50)]),
    ?assertEqual([[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]], Orders).

order(Contacts) ->
    case atoll_contacts:first(Contacts) of
        {ok, Node} ->
            {next, Left} = atoll_contacts:failed(Node, Contacts),
            [Node | order(Left)];
        none ->
            []
    end.

who_is_not_asked_now_changes_nothing_test() ->
    Contacts = those([a, b, c]),
    [_, Second, _] = order(Contacts),
    ?assertEqual(other, atoll_contacts:failed(Second, Contacts)),
    ?assertEqual(Contacts, atoll_contacts:reached(Second, Contacts)).

once_one_is_reached_nobody_is_next_test() ->
    Contacts = those([a, b, c]),
    {ok, First} = atoll_contacts:first(Contacts),
    Reached = atoll_contacts:reached(First, Contacts),
    ?assertEqual(none, atoll_contacts:first(Reached)),
    ?assertEqual(other, atoll_contacts:failed(First, Reached)).

they_are_bounded_and_the_others_counted_test() ->
    Names = [list_to_atom("c" ++ integer_to_list(N)) || N <- lists:seq(1, 150)],
    Contacts = those(Names),
    ?assertEqual(#{contacts => 100, contacts_dropped => 50}, atoll_contacts:summary(Contacts)),
    {Again, _} = atoll_contacts:put(Names, rand:seed_s(exsss, 1), Contacts),
    ?assertEqual(#{contacts => 100, contacts_dropped => 100}, atoll_contacts:summary(Again)).
