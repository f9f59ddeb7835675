%% SPDX-License-Identifier: Apache-2.0
%% What the link room makes of what it is told of connections.
-module(atoll_link_tests).

-include_lib("eunit/include/eunit.hrl").

%% Its `nodedown' may have been read before: no other one would follow.
a_node_that_has_gone_meanwhile_is_not_said_to_be_up_test() ->
    Told = {atoll_link, connected, 'gone@127.0.0.1', [{node_type, visible}]},
    ?assertEqual([], atoll_link:heard(Told)),
    ?assertEqual({[], world}, atoll_link:event(Told, world)),
    ?assertEqual([{up, 'gone@127.0.0.1'}], atoll_link:heard({nodeup, 'gone@127.0.0.1', [{node_type, visible}]})).
